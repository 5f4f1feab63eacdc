"""``ibdiagnet``: what a check of an InfiniBand fabric found, port by port, and its closing table of stages.

Lines as the user manual of ibdiagnet (fabric links validation, bit error rate, port counters) and the tool's output show them:
``-E-`` is an error, ``-W-`` a warning, ``-I-`` the rest. Warnings are many on a healthy fabric (firmware, cables without data);
only those about speed and width of a link count here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from knowledge.observation import Event, Observation, Scalar, Scope, Status, Subject, node
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of

NAME, REVISION = "ibdiagnet", 2
PROVIDES = ("fabric_port_fault", "fabric.check.errors")
_MOST = 2000  # faults that are told: a fabric with more is judged by these
# -I- Discovering ... 212 nodes (32 Switches & 180 CA-s) discovered.        -I- Fabric Discover finished successfully
_SIGN = re.compile(
    r"(?m)^-I- (?:Discovering \.\.\. |Fabric Discover |Stage\s{2,60}Warnings\s{1,20}Errors)|^-[EW]- lid=0x[0-9a-f]{4} dev=\d{1,6} "
)
_HEADING = re.compile(r"-I- Stage\s{2,60}Warnings\s{1,20}Errors(?:\s.{0,40})?")
# -I- Port Counters             0          2
_STAGE = re.compile(r"-I- (\S.{0,60}?)\s{2,60}(\d{1,9})\s{1,20}(\d{1,9})(?:\s.{0,200})?")
_TOLD = re.compile(r"-([EW])- (\S.{0,600})")
# Sec0d9a0300246e30/Nec0d9a0300246e30/P19<-->switch-004/U1/P20        name=S-leaf04/P17        gpu044/mlx5_3/P1
# dev=54002 MF0;ib-leaf-07:MQM9700/U1/13/2: the switch, its model, and port 2 of cage 13
_PORT = re.compile(
    r"(?<![\w/:])((?:[\w.-]{1,64}:)?(?:[\w.-]{1,64}/){1,3}P\d{1,3}"
    r"|(?:[\w.-]{1,64}:)?[\w.-]{1,64}/(?:mlx\d_\w{1,10}|U\d{1,3})/\d{1,3}(?:/\d{1,3})?)\b"
)
# symbol_error_counter=18244 (threshold=0)        link_downed_counter             : 7        "port_rcv_errors" increased during the run (difference value=12,
_COUNTER = re.compile(
    r"\"?\b([a-z][a-z0-9]{1,30}(?:_[a-z0-9]{1,30}){1,6})\"?(?: ?= ?| {0,40}: {0,20}| increased during the run \((?:difference )?value ?= ?)"
    r"(\d{1,20}|0x[0-9a-f]{1,16})\b(?: {0,8}\((overflow)\))?",
    re.IGNORECASE,
)
_SHOWN = 4  # counters of a port that stand in a headline; the largest first
_NO_COUNTER = ("difference_", "threshold", "lid", "dev", "link_speed", "link_width")
_DOWNS = re.compile(r"link_downe?d?(?:_counter)?")
_KINDS = (
    ("speed", re.compile(r"[Uu]nexpected (?:actual )?link speed|link speed")),
    ("width", re.compile(r"[Uu]nexpected width|link width")),
    ("ber", re.compile(r"\bBER\b")),
    ("down", re.compile(r"link_down")),
    ("counter", re.compile(r"\w{1,60}=\d{1,20} ?\(threshold|counter|errors? exceed")),
)


def sniff(head: str) -> int:
    """94 for the words of its stages."""
    return 94 if _SIGN.search(head) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Faults of ports, and how many errors its table of stages counts."""
    document = Subject(Scope.DOCUMENT, context.source, node(context.host))
    out: list[Observation] = []
    total: int | None = None
    last, open_ = 1, False  # whether the lines that follow tell the counters of the last fault
    for line in lines_of(text):
        told = clean(line.text[:800]).strip()
        if _HEADING.fullmatch(told):
            total, last = 0, line.number
        elif total is not None and (stage := _STAGE.fullmatch(told)):
            total += int(stage[3])
        elif found := _TOLD.fullmatch(told):
            last_fault = len(out)
            out += _fault(found[1], found[2], line, context) if len(out) < _MOST else []
            open_ = len(out) > last_fault
        elif told.startswith("-"):
            open_ = False
        elif open_ and (counted := list(_COUNTER.finditer(told))):
            out[-1] = _also(out[-1], counted, told)
    out = [_named(o) for o in _with_other_ends(out)]
    source = context.at(NAME, REVISION, last)
    if total is None:
        why = "the output ends early: its table of stages is missing"
        out.append(Observation("fabric.check.errors", document, None, Status.FAILED, source, detail=why))
    else:
        out.append(Observation("fabric.check.errors", document, total, Status.OK, source, excerpt=f"Errors: {total}"))
    if not any(o.fact == "fabric_port_fault" for o in out):
        out.append(Observation("fabric_port_fault", node(context.host), None, Status.NONE_SEEN, source))
    return out


def _with_other_ends(found: list[Observation]) -> list[Observation]:
    """The other end of a link, which one line of a port names, told with the first line of that port."""
    peers: dict[Subject, Scalar] = {}
    for o in found:
        if isinstance(o.value, Event) and (peer := o.value.get("peer")) is not None:
            peers.setdefault(o.subject, peer)
    out = []
    for o in found:
        if isinstance(o.value, Event):
            fields = {k: v for k, v in o.value.fields.items() if k != "peer"}
            peer = peers.pop(o.subject, None)
            o = replace(o, value=Event(None, fields if peer is None else {**fields, "peer": peer}))
        out.append(o)
    return out


def _counters(found: Iterable[re.Match[str]]) -> str:
    """``name value`` of each counter that is one, as a line of the event."""
    told = {
        m[1].lower(): f"{int(m[2], 0)}{' or more' if m[3] else ''}"
        for m in found
        if not m[1].lower().startswith(_NO_COUNTER)
    }
    return ", ".join(f"{name} {value}" for name, value in told.items())


def _also(o: Observation, found: Sequence[re.Match[str]], said: str) -> Observation:
    """The fault with the counters that a line below it tells."""
    assert isinstance(o.value, Event)
    before, more = str(o.value.get("counters") or ""), _counters(found)
    fields = {**o.value.fields, "counters": ", ".join(part for part in (before, more) if part)}
    return replace(o, value=Event(None, fields), excerpt=excerpt(f"{o.excerpt} | {said}", 300))


def _named(o: Observation) -> Observation:
    """What kind the counters say the fault is, and the largest of them; without any the field is left out."""
    if not isinstance(o.value, Event):
        return o
    told = [part for part in str(o.value.get("counters") or "").split(", ") if part]
    fields = {k: v for k, v in o.value.fields.items() if k != "counters"}
    if not told:
        return replace(o, value=Event(None, fields))
    if fields["kind"] in ("other", "counter"):
        down = any(_DOWNS.match(part) and not part.endswith(" 0") for part in told)
        fields["kind"] = "down" if down else "counter"
    told.sort(key=lambda part: -int(part.split()[1]))
    rest = len(told) - _SHOWN
    fields["counters"] = ", ".join(told[:_SHOWN]) + (f", +{rest}" if rest > 0 else "")
    return replace(o, value=Event(None, fields))


def _fault(level: str, said: str, line: Line, context: Context) -> list[Observation]:
    """What a line says of a port; nothing of a line that names none, or of a warning about something else."""
    kind = next((kind for kind, words in _KINDS if words.search(said)), "other")
    ports = list(dict.fromkeys(_PORT.findall(said)))
    if not ports or (level == "W" and kind not in ("speed", "width")):
        return []
    fields: dict[str, Scalar] = {
        "kind": kind,
        "text": excerpt(said, 200),
        "counters": _counters(_COUNTER.finditer(said)),
    }
    if len(ports) > 1:
        fields["peer"] = ports[1]
    subject = Subject(Scope.PORT, ports[0], node(context.host))
    source = context.at(NAME, REVISION, line.number)
    return [
        Observation("fabric_port_fault", subject, Event(None, fields), Status.OK, source, excerpt=excerpt(line.text))
    ]


FORMAT = DocumentFormat(NAME, "ibdiagnet", REVISION, PROVIDES, sniff, parse)
