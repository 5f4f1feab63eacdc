"""Error lines of drivers and daemons that no reader took: what was not understood is never fine.

A line counts when a driver or daemon of which this log is read says it and it has a word of failure that nothing in it takes back.
Near what was understood (the lines of one failure belong together) it does not count.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from knowledge.observation import AT_LEAST, Event, Observation, Status, node
from probes._trouble import tells_trouble
from probes.parse._kernel_common import Reading, is_command, rx
from probes.parse._kernel_shape import Entry, Kind
from probes.parse._kernel_slurm import STATES

FACT = "log.driver.errors_not_read"
NEAR = 12  # lines of a fault that was understood
BESIDE = "equal lines near faults that were understood are not told apart"
LEAST = f"{AT_LEAST}: {BESIDE}"
_NO_FAULT = frozenset({"boot", "driver_loaded", "link_carrier", "slurm_step_ended"})
# Drivers by what stands ahead of their words; daemons are known by their tag.
_DRIVER = (
    r"NVRM: |\bnvidia(?:[-_](?:nvswitch\d*|nvlink|modeset|uvm|drm|peermem|gpu))?\b[^:]{0,60}: |\bamdgpu\b|\bmlx[45]_(?:core|ib)\b|"
    r"\bpcieport\b|\bAER: |\b(?:APEI|GHES)\b|\[Hardware Error\]|\b(?:i915|xe) [0-9a-f]{4}:|"
    r"\bbeegfs: |\b(?:wekafs|WEKAFS)\w{0,4}\b"
)
_DAEMONS = ("nv-", "nvidia-", "dcgm", "slurm", "klog", "kubelet", "gpu-feature-discovery", "mmfs")
_WORDS = (
    "NVRM",
    "nvidia",
    "amdgpu",
    "mlx",
    "pcieport",
    "AER",
    "APEI",
    "GHES",
    "Hardware Error",
    "i915",
    "xe ",
    "beegfs",
    "wekafs",
    "WEKAFS",
)
_BAD = (
    r"(?i)\bfail(?:ed|ure|s)?\b|\berrors?\b|\*error\*|\btimed? ?out\b|\bassert(?:ion)?\b|\bfatal\b|\buncorrect\w{0,6}\b|\bhang\b|\bhung\b|"
    r"\bunrecoverable\b|\bcorrupt\w{0,4}\b|\bstuck\b|\bis lost\b|\bdead\b|\bunresponsive\b|\bnot respond(?:ing|ed)?\b|"
    r"\bno connection\b|\bunreachable\b|\brefused\b"
)
# What takes it back: counts of none, words about handling errors, notices of a start that goes on.
_FINE = (
    r"(?i)(?<![.:\w-])(?:no|0|zero|without|ignor\w{1,4})(?: \w{1,20}){0,3} (?:errors?|fail\w{0,4}|faults?|timeouts?)\b|"
    r"\berrors? (?:handl|report|inject|polic|mask|recover|correct|count|poll|log|detect|contain)\w{0,8}\b|\bcorrect(?:ed|able)\b|"
    r"\berrors?[=: ]{1,3}0+\b|\bret(?:urn\w{0,3})?[=: ]{1,3}0\b|\bAER: enabled\b|\btaint\w{0,3}\b|\bfirmware bug\b|\boptional\b|"
    r"\bbridge window\b|\bVF BAR\b|\bBAR \d{1,2}\b.{0,60}\b(?:failed to assign|no space)\b|"
    # the kubelet's own round of statistics, and a pod that keeps failing: its other lines tell why, and of GPUs' own pods it counts
    r"Failed to get system container stats|\"Error syncing pod, skipping\"(?!.{0,2000}(?:nvidia|gpu-operator))|"
    r"\btimeout (?:is |was )?(?:set|changed)\b|\btimeout ?[=:]|\bhang ?check\b|\bfailed with error -2\b"
)


def read(reading: Reading, entries: Sequence[Entry]) -> list[Observation]:
    """How many such lines each host's log has, with the first; nothing where there is none.

    Of folded lines nobody knows which stood near what was understood: they count as far as there is too little of that, and the
    `detail` of the number says `LEAST`. Where that leaves none of them it is not known whether there is any.
    """
    context = reading.context
    told = {
        o.source.line
        for o in reading.found
        if o.source.line and (isinstance(o.value, Event) or o.fact in STATES) and o.fact not in _NO_FAULT
    } | reading.again
    taken = {
        o.source.line for o in reading.found if isinstance(o.value, Event)
    }  # though it says nothing of its neighbours
    places = sorted(told)
    spans = sorted(
        (context.since.get(number, number), number, context.times[number] - 1)
        for number in told
        if number in context.times
    )
    found: dict[str, list[tuple[Entry, int]]] = {}
    unsure: dict[str, Entry] = {}
    for entry in entries:
        if entry.number in taken or not _failing(entry):
            continue
        near, folded = _near(entry, places), context.times.get(entry.number, 1) - 1
        maybe = not near and bool(_beside(entry.number, entry.number, (), spans))
        first = context.since.get(entry.number, entry.number)
        beside = _beside(first, entry.number, places, spans) if folded else 0
        if least := max(0, folded - beside) + (not near and not maybe):
            found.setdefault(reading.host(entry), []).append((entry, least))
        if maybe or beside:
            unsure.setdefault(reading.host(entry), entry)
    out = [
        Observation(
            FACT, node(host), None, Status.FAILED, context.at(reading.probe, reading.revision, entry.number),
            at=entry.at, clock=entry.clock, excerpt=entry.raw.strip()[:300], detail=BESIDE,
        )
        for host, entry in sorted(unsure.items()) if host not in found
    ]  # fmt: skip
    for host, lines in sorted(found.items()):
        first_ = lines[0][0]
        source = context.at(reading.probe, reading.revision, first_.number)
        out.append(
            Observation(
                FACT, node(host), sum(n for _, n in lines), Status.OK, source, at=first_.at, clock=first_.clock, excerpt=first_.raw.strip()[:300],
                detail=LEAST if host in unsure else "",
            )
        )  # fmt: skip
    return out


def _beside(first: int, last: int, told: Sequence[int], spans: Sequence[tuple[int, int, int]]) -> int:
    """How many lines from the line `first` to `last` may stand near what was understood, at most."""
    reach = 2 * NEAR  # on both sides of a line
    low, high = first - NEAR, last + NEAR
    seen = bisect_right(told, high) - bisect_left(told, low)
    seen += sum(times for begin, end, times in spans if begin <= high and low <= end)
    return seen * reach


def _failing(entry: Entry) -> bool:
    message = entry.message
    if entry.kind is Kind.DAEMON:
        spoken = entry.tag.startswith(_DAEMONS)
    elif entry.kind in (Kind.KERNEL, Kind.BARE):
        spoken = any(word in message for word in _WORDS) and rx(_DRIVER).match(message) is not None
    else:
        return False
    if not spoken or not tells_trouble(message.encode("utf-8", "surrogatepass")):  # of which words _BAD's are some
        return False
    if not (found := rx(_BAD).search(message)) or rx(_FINE).search(message):
        return False
    return not is_command(entry, found.start())


def _near(entry: Entry, told: Sequence[int]) -> bool:
    place = bisect_left(told, entry.number - NEAR)
    return place < len(told) and told[place] <= entry.number + NEAR
