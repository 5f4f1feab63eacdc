"""From printed fields to observations: shared by all parsers of NVIDIA tools."""

from __future__ import annotations

import calendar
from collections.abc import Iterable, Sequence
from dataclasses import field

from knowledge.identity import normalise_pci
from knowledge.lazy import lazy
from knowledge.observation import Clock, Event, Observation, Scope, Status, Subject, Value, gpu, node
from knowledge.record import dataclass
from knowledge.text import clean, digits
from knowledge.text import excerpt as cut
from probes.base import Context, Line
from probes.parse._smi_values import RESET, Reading, text_value

_MONTHS = ("", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# "Tue Jul 14 08:12:38 2026"
_CTIME = lazy(r"[A-Z][a-z]{2}\s+([A-Z][a-z]{2})\s+(\d{1,2})\s+(\d{2}):(\d{2}):(\d{2})\s+(\d{4})")
# "2026/07/14 08:12:38.696"
_SLASHED = lazy(r"(\d{4})/(\d{2})/(\d{2}) (\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?")


def cleaned(lines: Iterable[Line]) -> list[Line]:
    """The lines without escapes and invisible characters, under their own numbers."""
    return [Line(line.number, clean(line.text)) for line in lines]


def local_time(text: str) -> int | None:
    """Nanoseconds of a printed wall clock (zone unknown, kept as if UTC); None when it is not one."""
    text = text.strip()
    if found := _CTIME.fullmatch(text):
        month = _MONTHS.index(found[1]) if found[1] in _MONTHS else 0
        parts = (int(found[6]), month, *map(int, found.group(2, 3, 4, 5)))
        fraction = ""
    elif found := _SLASHED.fullmatch(text):
        parts = (*map(int, found.group(1, 2, 3, 4, 5, 6)),)
        fraction = found[7] or ""
    else:
        return None
    if not (1 <= parts[1] <= 12 and 1 <= parts[2] <= 31 and parts[3] < 24 and parts[4] < 60 and parts[5] < 61):
        return None
    return calendar.timegm((*parts, 0, 0, 0)) * 10**9 + int(fraction.ljust(9, "0") or 0)


@dataclass(slots=True)
class _Use:
    """What one process holds on one GPU."""

    memory: Reading
    excerpt: str
    line: int | None


_NAMELESS = Reading(None, Status.UNSUPPORTED, "the tool prints no name for this process")


@dataclass(slots=True)
class _Process:
    name: Reading | None = None
    kinds: list[str] = field(default_factory=list)
    uses: dict[Subject, _Use] = field(default_factory=dict)
    instances: dict[Subject, None] = field(default_factory=dict)


_HIDDEN = Reading(
    None, Status.UNSUPPORTED, "a GPU works and no process is listed: this view does not show them (a container)"
)


# Readings that every GPU has while its firmware answers; a tool that gets none prints ERR! or Unknown Error.
CORE = (
    "gpu.clock.sm", "gpu.memory.used", "gpu.performance_state", "gpu.power.draw", "gpu.temperature.core", "gpu.utilization.core",
)  # fmt: skip


class Emitter:
    """Collects the observations of one document under its probe, time and host."""

    def __init__(self, context: Context, probe: str, revision: int) -> None:
        self.context, self.probe, self.revision = context, probe, revision
        self.at: int | None = None
        self.clock = Clock.NONE
        self.out: list[Observation] = []
        self._processes: dict[str, _Process] = {}
        self._counts: dict[Subject, Reading] = {}

    @property
    def host(self) -> str:
        """The node, as far as the caller knows it."""
        return self.context.host

    @property
    def node(self) -> Subject:
        """The node that the document was taken on."""
        return node(self.host)

    def gpu(self, address: str) -> Subject:
        """The GPU in the slot at `address`."""
        return gpu(normalise_pci(clean(address)), self.host)

    def taken(self, text: str) -> None:
        """Note the printed time of the snapshot; text that is not a time changes nothing."""
        at = local_time(text)
        if at is not None:
            self.at, self.clock = at, Clock.LOCAL

    def add(
        self, fact: str, subject: Subject, reading: Reading | Value, line: int | None = None, excerpt: str = ""
    ) -> None:
        """One observation from a reading, or from a plain value that is there."""
        if not isinstance(reading, Reading):
            value, status, detail = reading, Status.OK, ""
        else:
            value, status, detail = reading.value, reading.status, reading.detail
        self.out.append(
            Observation(
                fact, subject, value, status, self.context.at(self.probe, self.revision, line), self.at, self.clock,
                excerpt=cut(excerpt, 300), detail=cut(detail),
            )
        )  # fmt: skip

    def event(self, fact: str, subject: Subject, event: Event, line: int | None = None, excerpt: str = "") -> None:
        """One event observation."""
        self.add(fact, subject, event, line, excerpt)

    def none_seen(self, fact: str, subject: Subject, detail: str = "", excerpt: str = "") -> None:
        """Nothing of the kind in this document, which would have shown it."""
        self.add(fact, subject, Reading(None, Status.NONE_SEEN, detail), None, excerpt)

    def share(self, pid: str, reading: Reading, line: int | None, excerpt: str) -> None:
        """Share of the GPU's time that a process had in the last sample."""
        self.add("process.gpu_utilization", Subject(Scope.PROCESS, pid, self.node), reading, line, excerpt)

    def answers(self, subject: Subject, seen: Sequence[Reading], line: int | None, excerpt: str) -> None:
        """Whether the GPU answers: some of its readings came, or at least three were asked and none did.

        A GPU of which the driver says that it requires a reset is reached; that is said instead.
        """
        if any(r.ok or RESET.search(r.detail) for r in seen):
            self.add("gpu.nvml.reachable", subject, True, line, excerpt)
        elif sum(r.status is Status.FAILED for r in seen) >= 3:
            self.add("gpu.nvml.reachable", subject, False, line, f"only errors: {excerpt}")

    # -- processes --------------------------------------------------------------------------

    def no_processes(self, holder: Subject) -> None:
        """The tool listed the processes of `holder`, and there were none."""
        self._counts.setdefault(holder, Reading(0))

    def processes_unknown(self, holder: Subject, reading: Reading) -> None:
        """The tool could not list the processes of `holder`."""
        self._counts.setdefault(holder, reading)

    def process(
        self, pid: str, holder: Subject, memory: Reading | None, *, name: str | None = None, kind: str = "",
        instance: Subject | None = None, line: int | None = None, excerpt: str = "",
    ) -> None:  # fmt: skip
        """One line of a process list. A pid with several lines for one GPU holds its largest figure."""
        if digits(pid, 10) is None:
            return
        record = self._processes.setdefault(pid, _Process())
        if name is not None and record.name is None:
            record.name = text_value(name) if name.strip() else _NAMELESS
        if kind and kind not in record.kinds:
            record.kinds.append(kind)
        if instance is not None:
            record.instances[instance] = None
        before = record.uses.get(holder)
        now = _Use(memory or Reading(None, Status.FAILED, "not printed"), excerpt, line)
        if before is None or (now.memory.ok and not (before.memory.ok and _mib(before.memory) >= _mib(now.memory))):
            record.uses[holder] = now
        if before is None:
            known = self._counts.get(holder)
            self._counts[holder] = Reading(int(known.value or 0) + 1 if known and known.ok else 1)

    def finish(self) -> list[Observation]:
        """All observations; process facts come last, one figure a process over all its GPUs."""
        self._wanted_resets()
        self._failed_readings()
        blind, lines = not self._processes and self._busy(), self._lines()
        for holder, reading in self._counts.items():
            self.add("gpu.processes", holder, _HIDDEN if blind and reading.ok else reading, lines.get(holder))
        for pid, record in self._processes.items():
            self._emit_process(Subject(Scope.PROCESS, pid, self.node), record)
        self._processes, self._counts = {}, {}
        return self.out

    def _lines(self) -> dict[Subject, int | None]:
        """The first line of each thing: by its place one of several outputs is known from the next."""
        return {o.subject: o.source.line for o in reversed(self.out) if o.source.line is not None}

    def _wanted_resets(self) -> None:
        """GPUs of which some value reads ``GPU requires reset``, whichever it is."""
        for o in {o.subject: o for o in reversed(self.out) if _wants_reset(o)}.values():
            self.add("gpu.reset_required", o.subject, True, o.source.line, o.excerpt)

    def _failed_readings(self) -> None:
        """Which of the core readings the tool could not get, for each GPU of which it printed several."""
        printed: dict[Subject, dict[str, bool]] = {}
        lines = self._lines()
        for o in self.out:
            if o.fact in CORE and o.subject.scope is Scope.GPU:
                failed = o.status is Status.FAILED and o.detail.startswith("printed as ") and not _wants_reset(o)
                printed.setdefault(o.subject, {}).setdefault(o.fact, failed)
        for subject, facts in printed.items():
            if len(facts) > 2:
                names = tuple(sorted(name for name, failed in facts.items() if failed))
                self.add(
                    "gpu.readings.failed",
                    subject,
                    names,
                    lines.get(subject),
                    "printed as an error: " + ", ".join(names),
                )

    def _busy(self) -> bool:
        """Whether some GPU works: then a list without any process is one that does not show them."""
        return any(
            o.fact == "gpu.utilization.core" and isinstance(o.value, int | float) and o.value > 0 for o in self.out
        )

    def _emit_process(self, subject: Subject, record: _Process) -> None:
        first = next(iter(record.uses.values()))
        for holder, use in record.uses.items():
            self.add("process.uses_gpu", subject, f"{holder.scope}:{holder.id}", use.line, use.excerpt)
        for instance in record.instances:
            self.add("process.uses_mig", subject, f"{instance.scope}:{instance.id}", first.line, first.excerpt)
        shown = "; ".join(use.excerpt for use in record.uses.values())
        self.add("process.gpu_memory", subject, _total([u.memory for u in record.uses.values()]), first.line, shown)
        if record.name is not None:
            self.add("process.name", subject, record.name, first.line, first.excerpt)
        if record.kinds:
            kinds = {part for kind in record.kinds for part in _KINDS.get(kind, ())}
            if kinds:
                self.add("process.gpu_contexts", subject, tuple(sorted(kinds)), first.line, first.excerpt)


# The "Type" column: C compute, G graphics, M an MPS client.
_KINDS = {"C": ("compute",), "G": ("graphics",), "C+G": ("compute", "graphics"), "M+C": ("compute", "mps"),
          "M": ("mps",), "M+C+G": ("compute", "graphics", "mps")}  # fmt: skip


def _wants_reset(o: Observation) -> bool:
    return o.subject.scope is Scope.GPU and o.status is Status.FAILED and RESET.search(o.detail) is not None


def _mib(reading: Reading) -> float:
    return float(reading.value) if isinstance(reading.value, int | float) else 0.0


def _total(readings: Sequence[Reading]) -> Reading:
    """The sum; when one part is missing, the sum is missing for the same reason."""
    bad = next((r for r in readings if not r.ok), None)
    return bad or Reading(round(sum(_mib(r) for r in readings)))


def total(readings: Iterable[Reading]) -> Reading:
    """The whole-number sum of counters; missing, with its reason, when one of them is."""
    return _total(list(readings))


def mig_id(instance: str, compute_instance: str) -> str:
    """Name of a MIG device within its GPU: the GPU instance, and the compute instance unless it is 0."""
    return instance if compute_instance in ("", "0") else f"{instance}/{compute_instance}"
