"""States that were bad at one look and good at a later one, or the other way: what came back, what was lost, and when.

A port that is down at 03:00 and active at 05:00 is no contradiction between sources: it was away, and is back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, pairwise

from knowledge.derive.growth import between, in_order, replaced
from knowledge.facts import Kind, vocabulary
from knowledge.observation import Event, Observation, Origin, Scalar, Scope, Source, Status, Subject, Value
from knowledge.text import excerpt

# What the change of a state of each kind of thing is called.
FACTS = {scope: f"{scope}_state_change" for scope in (Scope.GPU, Scope.LINK, Scope.PORT, Scope.NIC, Scope.NODE)}
# Words of Slurm that take a node out of use; `sinfo` and `scontrol` put more than one into a state.
_HELD = ("down", "drain", "drng", "fail", "not_responding", "error", "unknown", "inval", "reboot", "power")

Judge = Callable[[Value], bool | None]


def _words(good: str, bad: str) -> Judge:
    """Good and bad values; of any other nobody knows."""
    known = {**dict.fromkeys(good.split(), True), **dict.fromkeys(bad.split(), False)}
    return lambda value: known.get(str(value).lower())


def _slurm(value: Value) -> bool | None:
    return not any(word in str(value).lower() for word in _HELD) if isinstance(value, str) and value else None


_SERVICES = (
    "fabric_manager",
    "persistence",
    "dcgm",
    "imex",
    "kubelet",
    "slurmd",
    "munge",
    "subnet_manager",
    "container_runtime",
)
STATES: Mapping[str, Judge] = {
    "port.state": _words("active", "down init armed"),
    "link.state": _words("active", "inactive"),
    "nic.operstate": _words("up", "down lowerlayerdown notpresent"),
    "gpu.fabric.state": _words("completed", "not_started in_progress"),
    "gpu.nvml.reachable": _words("true", "false"),
    "node.driver.state": _words("ok", "not_loaded library_mismatch library_missing no_devices lost_gpu nvml_failed unresponsive"),
    "node.kubernetes.ready": _words("true", "false"),
    "node.slurm.state": _slurm,
    **{f"node.service.{name}.state": _words("running", "stopped failed not_running restarting") for name in _SERVICES},
}  # fmt: skip
LISTED = "node.gpu.listed"  # what a table or a list shows
COUNTS = ("node.gpu.count", "node.pci.gpu_count", "node.gpus.amd", LISTED)  # good is what there are most of
PEERS = "gpu.peer.nvlinks.most"  # of a GPU, likewise
_COUNTED = (*COUNTS, PEERS)

_ADDRESSES = (
    "port.lid",
    "port.guid",
    "gpu.uuid",
    "gpu.serial",
    "gpu.cpu_affinity",
)  # by which two files are known to be of one machine
_NO_ADDRESS = (0, 65535, "")
_ALIKE = 0.6  # of the facts that two outputs tell, those that both do where one command printed them


def enrich(observations: Sequence[Observation]) -> list[Observation]:
    """The batch with an event for each state that came back, and each number of GPUs that fell."""
    samples: dict[tuple[str, Subject], list[Observation]] = defaultdict(list)
    for o in observations:
        if _is_look(o):
            samples[o.fact, o.subject].append(o)
    several = {place: found for place, found in samples.items() if len(found) > 1}
    others = {whole for s in replaced(observations) for whole in s.ancestors()} if several else set()
    looks = Looks(observations)
    changes = [
        c
        for (fact, subject), found in several.items()
        if subject not in others and (c := _change(fact, subject, found, looks))
    ]
    counted = {c.subject for c in changes if _state(c) == "node.gpu.count"}
    return [*looks.without_past(), *(c for c in changes if _state(c) != LISTED or c.subject not in counted)]


class Looks:
    """Files that tell no time, looked at in the order in which they were named; GPUs and ports tell whether they are of one machine."""

    def __init__(self, observations: Sequence[Observation]) -> None:
        self._all = observations
        self._by_file: dict[tuple[str, str], list[Observation]] = defaultdict(list)
        self._past: dict[tuple[str, str], tuple[str, str]] = {}  # a file, and the later one that tells the same things
        for o in observations:
            self._by_file[o.source.probe, o.source.call].append(o)

    def follow(self, course: Sequence[Observation]) -> bool:
        """Whether the files of `course` are looks of one tool at one machine, one after the other."""
        files = list(dict.fromkeys((o.source.probe, o.source.call) for o in course))
        if not all(o.source.order for o in course) or len({probe for probe, _ in files}) > 1:
            return False
        whole = course[0].fact in COUNTS
        if not all(self._same_machine(a, b, whole) for a, b in pairwise(files)):
            return False
        self._past |= dict.fromkeys(files[:-1], files[-1])
        return True

    def _same_machine(self, first: tuple[str, str], second: tuple[str, str], whole: bool) -> bool:
        one, other = ({o.fact for o in self._by_file[file]} for file in (first, second))
        if len(one & other) < _ALIKE * len(one | other):
            return False  # two commands of one tool: `amd-smi list` and `amd-smi metric -g 0`
        if whole:  # of what is counted one file has all that the other has: what is listed besides is another machine's
            some, others = self.gpus(*first), self.gpus(*second)
            return bool(some & others) and (some <= others or others <= some)
        a, b = self._addresses(first), self._addresses(second)
        common = a.keys() & b.keys()
        return bool(common) and all(a[at] == b[at] for at in common)

    def gpus(self, probe: str, call: str) -> set[str]:
        """The GPUs that a file names by a name that stays theirs: a number does not."""
        named = {g.id for o in self._by_file[probe, call] if (g := o.subject.up(Scope.GPU))}
        return {name for name in named if not name.startswith(("index:", "amd:", "unknown:"))}

    def _addresses(self, file: tuple[str, str]) -> dict[tuple[str, Subject], Value]:
        return {(o.fact, o.subject): o.value for o in self._by_file[file]
                if o.fact in _ADDRESSES and o.status is Status.OK and o.value not in _NO_ADDRESS}  # fmt: skip

    def without_past(self) -> list[Observation]:
        """The batch without what a later look of the same tool tells anew, but for what happened."""
        if not self._past:
            return list(self._all)
        told = {file: {(o.fact, o.subject) for o in found} for file, found in self._by_file.items()}

        def is_past(o: Observation) -> bool:
            after = self._past.get((o.source.probe, o.source.call))
            state = vocabulary()[o.fact].kind is Kind.STATE and not isinstance(o.value, Event)
            return after is not None and state and o.at is None and (o.fact, o.subject) in told[after]

        return [o for o in self._all if not is_past(o)]


def _state(o: Observation) -> object:
    return o.value.get("state") if isinstance(o.value, Event) else None


def _is_look(o: Observation) -> bool:
    ours = o.origin is Origin.MEASURED and not o.source.call.startswith("history:")
    return (o.fact in STATES or o.fact in _COUNTED) and o.status is Status.OK and ours


def _change(fact: str, subject: Subject, found: Sequence[Observation], looks: Looks) -> Observation | None:
    course = in_order(found)
    several = course[0].at is None and len({o.source.call for o in course}) > 1
    if fact == LISTED or (several and fact in COUNTS):
        course = [o for o in course if o.value != 1 or _of_all(o, course)] or course
    if several and (len({o.value for o in course}) == 1 or not looks.follow(course)):
        return None
    most = max((o.value for o in course if isinstance(o.value, int)), default=0)
    judge = STATES.get(fact) or (lambda value: value == most)
    judged = [(good, o) for o in course if (good := judge(o.value)) is not None]
    runs = [(good, [o for _, o in run]) for good, run in groupby(judged, key=lambda pair: pair[0])]
    if len(runs) < 2 or (not runs[-1][0] and fact not in _COUNTED):
        return None  # it is bad now: what it is says the rest
    back = runs[-1][0]
    was, now = runs[-2][1][0] if back else runs[-2][1][-1], runs[-1][1][0]
    fields: dict[str, Scalar] = {"state": fact, "was": _said(was), "now": _said(now), "back": back}
    if fact in COUNTS and not back:
        gone = looks.gpus(was.source.probe, was.source.call) - looks.gpus(now.source.probe, now.source.call)
        if isinstance(was.value, int) and isinstance(now.value, int) and len(gone) == was.value - now.value:
            fields["lost"] = ", ".join(sorted(gone))
    if was.at is not None and now.at is not None and (was.at, was.clock) != (now.at, now.clock):
        fields |= dict(zip(("since", "until"), between(was, now), strict=True))
    if (often := sum(not good for good, _ in runs)) > 1:
        fields["often"] = often
    source = Source("derived", now.source.call, now.source.line, order=now.source.order)
    shown = f"{_said(was)} ({was.source}) -> {_said(now)} ({now.source})"
    return Observation(FACTS[subject.scope], subject, Event(None, fields), source=source, at=now.at, clock=now.clock,
                       origin=Origin.DERIVED, excerpt=excerpt(shown, 200))  # fmt: skip


def _of_all(one: Observation, course: Sequence[Observation]) -> bool:
    """Whether a look at one GPU was at all there are: a list is of all; a table may be of one that was asked for (`-i`), but hardly
    where there are two.
    """
    return "listed" in one.excerpt or max(o.value for o in course if isinstance(o.value, int)) <= 2


def _said(o: Observation) -> str:
    return str(o.value).lower() if not isinstance(o.value, str) else o.value
