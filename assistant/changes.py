"""What is different from the last time: two diagnoses of one machine, one of now and one from the history.

Pure: the same two sides give the same changes. A finding that is not there any more is cleared only when what it
stood on was read again; otherwise it is "not looked at", with what was missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from assistant.store.codec import KEPT, Key, Last, collect, decode, encode, subject_of, subject_text
from assistant.store.read import PastFinding, Run
from knowledge.facts import FactSpec, Kind, Type, Vocabulary
from knowledge.observation import Clock, Event, Observation, Scope, Status, Subject, Value
from knowledge.record import dataclass
from knowledge.units import parse_duration
from rules.engine import Finding, Undecided
from rules.factbase import FactBase
from rules.model import Severity

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis

# Versions and settings of the node's software: what an update, or a reboot into it, changes.
SOFTWARE = (
    "node.driver.version", "node.driver.nvml_version", "node.driver.installed_version", "node.driver.library_version",
    "node.driver.open", "node.driver.options", "node.cuda.version", "node.cuda.toolkit.version", "node.dcgm.version",
    "node.fabricmanager.version", "node.kernel.version", "node.kernel.newest", "node.kernel.parameters",
    "node.firmware.version", "node.version.docker", "node.version.docker_server", "node.version.container_runtime",
    "node.version.kubelet", "node.version.slurm", "node.version.rdma_stack", "node.version.container_toolkit",
    "node.version.imex", "node.device_plugin.version", "gpu.vbios", "gpu.inforom.image", "gpu.gsp.firmware", "port.firmware",
)  # fmt: skip
# States that tell which machine this is and how it is set up; what changes by itself while a job runs is none.
FACTS_OF_INTEREST = (
    *SOFTWARE, "node.driver.state", "node.gpu.count", "node.pci.gpu_count", "node.pci.nvswitch_count",
    "node.pci.nic_count", "node.ib.ports.total", "node.ib.ports.active", "gpu.uuid", "gpu.serial", "gpu.name",
    "gpu.ecc.mode", "gpu.mig.mode", "gpu.mig.devices",
    "gpu.compute_mode", "gpu.persistence_mode", "gpu.power.limit", "gpu.row_remap.pending", "gpu.row_remap.failure",
    "gpu.pcie.width.max", "gpu.pcie.gen.max", "gpu.nvlink.active", "port.state", "port.rate",
)  # fmt: skip
# Words in the names of counters that count something going wrong, not work done.
_TROUBLE = frozenset({
    "ecc", "error", "errors", "replay", "recovery", "retired_pages", "row_remap", "dropped", "discards", "aer", "crc",
    "downed",
})  # fmt: skip
FORGOTTEN = parse_duration("7d")  # a finding that nobody could look for any more; pid 4242 never comes back
_GRADES = ("ruled_out", "possible", "probable", "confirmed")


@dataclass(frozen=True, slots=True)
class Before:
    """What the history knows of the last run."""

    run: Run
    findings: tuple[PastFinding, ...]  # open ones, also those that the last run could not look for
    known: Mapping[Key, Last] = field(default_factory=dict)


def as_before(diagnosis: Diagnosis, host: str = "", boot_id: str = "") -> Before:
    """A diagnosis of this conversation as the earlier side of a comparison: nothing of it is in the history."""
    at = diagnosis.as_of or 0
    v = diagnosis.verdict
    run = Run(0, host, at, "talk", False, boot_id, "", diagnosis.ruleset, str(v.state), str(v.usable), v.text,
              int(diagnosis.exit), {})  # fmt: skip
    read = collect(k.inner for k in diagnosis.facts.observations)
    known = {key: Last(seen.cell, seen.at or at) for key, seen in read.items()}
    return Before(run, tuple(_as_past(f, at) for f in diagnosis.findings), known)


def _as_past(f: Finding, at: int) -> PastFinding:
    first, last = f.times
    clock = next((o.clock for o in f.events if o.at is not None), Clock.NONE)
    stands = tuple(sorted({(o.fact, subject_text(o.subject)) for o in (*f.events, *f.because)}))
    return PastFinding(
        f.id, f.rule.id, f.xid, f.subject, f.title, str(f.severity), str(f.grade), str(f.role), str(f.advice.bucket),
        f.explained_by, f.count, first, last, clock, at, at, 0, "", stands,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Unseen:
    """A finding of then that now nobody could look for."""

    finding: PastFinding
    missing: tuple[str, ...]  # facts


@dataclass(frozen=True, slots=True)
class Shift:
    """A finding that is there both times, but not the same: (what, then, now)."""

    finding: Finding
    past: PastFinding
    what: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class FactChange:
    """A state that has another value."""

    fact: str
    subject: Subject
    before: Value
    after: Value


@dataclass(frozen=True, slots=True)
class CounterChange:
    """A counter of trouble that grew; `restarted`: it began at zero in between, so it grew by at least so much."""

    fact: str
    subject: Subject
    before: float
    after: float
    increase: float
    restarted: bool


@dataclass(frozen=True, slots=True)
class Changes:
    """Everything that is different."""

    host: str
    since: int  # ns UTC, of the earlier run
    until: int | None
    origin: str  # of the earlier run
    rebooted: bool | None  # None: nobody knows
    state: tuple[str, str]
    usable: tuple[str, str]
    ruleset: tuple[str, str]
    new: tuple[Finding, ...]
    cleared: tuple[PastFinding, ...]
    unseen: tuple[Unseen, ...]
    worse: tuple[Shift, ...]
    eased: tuple[Shift, ...]
    still: tuple[tuple[Finding, int], ...]  # with the time since when (ns UTC)
    facts: tuple[FactChange, ...]
    counters: tuple[CounterChange, ...]
    good: bool = False  # the earlier run is the last one that found nothing wrong, not the last one

    @property
    def software(self) -> tuple[FactChange, ...]:
        """Changed versions and settings of the node's software: what an update or a reboot brings."""
        return tuple(c for c in self.facts if c.fact in SOFTWARE)

    def __bool__(self) -> bool:
        """True when anything is different."""
        return bool(
            self.new or self.cleared or self.worse or self.eased or self.facts or self.counters or self.rebooted
            or self.unseen or self.state[0] != self.state[1] or self.usable[0] != self.usable[1]
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Now:
    """The present side, as far as it is compared."""

    host: str
    as_of: int | None
    ruleset: str
    state: str
    usable: str
    findings: tuple[Finding, ...]
    undecided: tuple[Undecided, ...]
    facts: FactBase
    boot_id: str = ""


def compare(before: Before, now: Now) -> Changes:
    """The differences between the last run and now."""
    rebooted = _rebooted(before.run.boot_id, now.boot_id)
    past = {f.key: f for f in before.findings if _remembered(f, now.as_of)}
    present = {f.id: f for f in now.findings}
    new = [f for f in now.findings if f.id not in past]
    cleared, unseen = [], []
    for key, finding in past.items():
        if key not in present:
            gaps = not_looked_at(finding, now.facts, now.undecided, rebooted)
            if gaps:
                unseen.append(Unseen(finding, gaps))
            else:
                cleared.append(finding)
    worse, eased, still = [], [], []
    for key, f in present.items():
        if key not in past:
            continue
        what, direction = _shift(past[key], f)
        if direction > 0:
            worse.append(Shift(f, past[key], what))
        elif direction < 0:
            eased.append(Shift(f, past[key], what))
        still.append((f, past[key].opened_at))
    readings = _readings(now.facts)
    return Changes(
        host=now.host, since=before.run.as_of, until=now.as_of, origin=before.run.origin, rebooted=rebooted,
        state=(before.run.state, now.state), usable=(before.run.usable, now.usable),
        ruleset=(before.run.ruleset, now.ruleset), new=tuple(new), cleared=tuple(cleared), unseen=tuple(unseen),
        worse=tuple(worse), eased=tuple(eased), still=tuple(still),
        facts=tuple(_fact_changes(before.known, readings, now.facts.vocabulary)),
        counters=tuple(_counter_changes(before.known, readings, now.facts.vocabulary, rebooted)),
    )  # fmt: skip


def _rebooted(before: str, now: str) -> bool | None:
    return before != now if before and now else None


def _remembered(past: PastFinding, as_of: int | None) -> bool:
    return past.how != "unseen" or as_of is None or as_of - past.last_at <= FORGOTTEN


# --- findings -----------------------------------------------------------------------------


def not_looked_at(
    past: PastFinding, facts: FactBase, undecided: Iterable[Undecided], rebooted: bool | None
) -> tuple[str, ...]:
    """Facts for want of which the absence of a finding means nothing; empty when it is gone for certain."""
    for u in undecided:
        if u.rule.id == past.rule and u.subject == past.subject:
            return tuple(dict.fromkeys(m.fact for m in u.missing)) or (past.rule,)
    if past.stands_on is None:
        return (past.rule,)
    missing = [fact for fact, where in past.stands_on if not _looked(fact, subject_of(where), past, facts, rebooted)]
    return tuple(dict.fromkeys(missing))


def _looked(fact: str, subject: Subject, past: PastFinding, facts: FactBase, rebooted: bool | None) -> bool:
    spec = facts.vocabulary.get(fact)
    if spec is not None and spec.kind is Kind.EVENT:
        return _log_reaches(fact, subject, past, facts, rebooted)
    if subject.scope not in KEPT:  # a process or a rank is gone for good: whether anything told the fact is what counts
        return fact in facts.facts
    return any(o.status.answered for s in subject.ancestors() for o in facts.of(fact, s))


def _log_reaches(fact: str, subject: Subject, past: PastFinding, facts: FactBase, rebooted: bool | None) -> bool:
    """Whether a log was read that would show the event again, had it not been left behind by a reboot."""
    looks = [
        o for s in subject.ancestors() for o in facts.of(fact, s) if o.status in (Status.NONE_SEEN, Status.NOT_APPLICABLE)
    ]  # fmt: skip
    if not looks:
        return False
    if rebooted or past.last_event is None:
        return True
    return any(o.window is None or o.clock is not past.clock or o.window[0] <= past.last_event for o in looks)


def _shift(past: PastFinding, f: Finding) -> tuple[tuple[tuple[str, str, str], ...], int]:
    """What differs, and whether it is worse (1), eased (-1) or neither (0): the first of these that differs says."""
    what: list[tuple[str, str, str]] = []
    direction = 0
    ranks = (
        ("severity", past.severity, str(f.severity), _severity(past.severity), _severity(str(f.severity))),
        ("grade", past.grade, str(f.grade), _grade(past.grade), _grade(str(f.grade))),
        ("count", str(past.count), str(f.count), past.count, f.count),
    )
    for name, old, new, a, b in ranks:
        if a != b:
            what.append((name, old, new))
            if not direction and not (name == "count" and b < a):  # a log that was rotated shows fewer lines
                direction = 1 if b > a else -1
    if past.bucket != f.advice.bucket:
        what.append(("action", past.bucket, str(f.advice.bucket)))
    return tuple(what), direction


def _severity(word: str) -> int:
    return Severity(word).rank if word in list(Severity) else -1


def _grade(word: str) -> int:
    return _GRADES.index(word) if word in _GRADES else -1


# --- facts --------------------------------------------------------------------------------


def _readings(facts: FactBase) -> dict[tuple[str, Subject], Observation]:
    """The present value of every fact about a part of a machine."""
    places = {(k.fact, k.inner.subject) for k in facts.observations if k.inner.subject.scope in KEPT}
    found = {place: facts.current(*place) for place in sorted(places, key=lambda p: (p[0], str(p[1]), p[1].host))}
    return {place: o for place, o in found.items() if o is not None and not isinstance(o.value, Event)}


def _past(known: Mapping[Key, Last], wanted: Iterable[str]) -> dict[tuple[str, Subject], Last]:
    """The newest past reading of each fact and subject, of whichever probe."""
    names = set(wanted)
    out: dict[tuple[str, Subject], Last] = {}
    for key, last in sorted(known.items()):
        if key.fact in names and last.cell.status == Status.OK:
            place = (key.fact, subject_of(key.subject))
            if place not in out or last.at > out[place].at:
                out[place] = last
    return out


def _fact_changes(
    known: Mapping[Key, Last], readings: Mapping[tuple[str, Subject], Observation], words: Vocabulary
) -> Iterable[FactChange]:
    past = _past(known, FACTS_OF_INTEREST)
    for place, o in readings.items():
        last = past.get(place)
        if last is None or o.status is not Status.OK or encode(o) == last.cell:
            continue
        before = decode(last.cell, words.get(o.fact))
        if not _same(before, o.value, words.get(o.fact)):
            yield FactChange(o.fact, o.subject, before, o.value)


def _same(a: Value, b: Value, spec: FactSpec | None) -> bool:
    """Whether two values mean the same; a power limit that is reported with another rounding is no change."""
    if spec is not None and spec.type is Type.FLOAT and isinstance(a, int | float) and isinstance(b, int | float):
        return abs(a - b) <= 0.005 * max(abs(a), abs(b))
    return a == b


def counts_trouble(spec: FactSpec) -> bool:
    """Whether a fact is a counter of something going wrong on a part of a machine."""
    hardware = spec.scope in KEPT and spec.scope is not Scope.NODE
    return spec.kind is Kind.COUNTER and hardware and not _TROUBLE.isdisjoint(spec.name.split("."))


def _counter_changes(
    known: Mapping[Key, Last],
    readings: Mapping[tuple[str, Subject], Observation],
    words: Vocabulary,
    rebooted: bool | None,
) -> Iterable[CounterChange]:
    past = _past(known, (s.name for s in words if counts_trouble(s)))
    replaced = {
        c.subject for c in _fact_changes(known, readings, words) if c.fact == "gpu.uuid"
    }  # another device: its counters have nothing to do with the old one's
    for place, o in readings.items():
        last = past.get(place)
        if last is None or last.cell.num is None or o.status is not Status.OK or o.clock is Clock.TRACE:
            continue
        if isinstance(o.value, bool) or not isinstance(o.value, int | float):
            continue
        if any(s in replaced for s in o.subject.ancestors()):
            continue
        spec = words.get(o.fact)
        restarted = o.value < last.cell.num or bool(rebooted and spec and spec.per_boot)
        grown = float(o.value) if restarted else float(o.value) - last.cell.num
        if grown > 0:
            yield CounterChange(o.fact, o.subject, last.cell.num, float(o.value), grown, restarted)
