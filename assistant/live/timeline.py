"""What was known when: a recording as something that can be looked at moment by moment.

Events carry their time. A state was read once, at the end of the recording, and says nothing about the time before it,
unless frames were recorded: those tell the state of each GPU as it was.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from assistant.live.facts import observations_of
from assistant.live.frames import LOST, SECOND, SILENT, Frame, Gpu, from_observations
from knowledge.catalog.clock_events import Fault, find
from knowledge.facts import vocabulary
from knowledge.language import Text
from knowledge.observation import Clock, Event, Observation, Status
from knowledge.record import dataclass
from knowledge.text import excerpt

if TYPE_CHECKING:
    from assistant.session.state import Seen

STALE = 10 * SECOND  # an older frame does not tell how a GPU is now
TWINS = SECOND  # the same event of the same thing within this is one mark
LEAD = 10 * SECOND  # a recording without frames begins so long ahead of what happened first
_WIDTH = 200  # characters of a mark's text
# What does not change while a machine runs, and names things: without it what a frame and what a log tell would not meet.
_LASTING = frozenset({
    "gpu.pci", "gpu.uuid", "gpu.index", "gpu.minor", "gpu.name", "gpu.architecture", "gpu.brand", "gpu.serial",
    "node.boot_id", "node.driver.version",
})  # fmt: skip
# Events whose severity is neither in a catalogue nor "warning".
_SEVERITY = {
    "boot": "info", "driver_loaded": "info", "gpu_reset": "info", "fm_nothing_to_do": "info", "link_carrier": "warning", "gpu_lost": "critical", "gpu_init_failed": "error",
    "gpu_reset_failed": "critical", "nvswitch_lost": "critical", "nvlink_training_failed": "error", "fm_gave_up": "error",
    "uvm_fatal_error": "error", "pci_reset_failed": "error", "amdgpu_hang": "error",
    "gsp_heartbeat_timeout": "error", "gsp_rpc_timeout": "error", "gsp_crash": "error", "pmu_halted": "error",
    "kernel_panic": "critical", "kernel_oops": "critical", "machine_check": "error", "hardware_error": "error", "oom_kill": "error",
    "soft_lockup": "error", "hung_task": "error", "driver_load_failed": "error", "driver_library_mismatch": "error",
    "pcie_link_down": "error", "pcie_containment": "error", "fm_failed": "error", "fm_version_mismatch": "error",
    "cuda_oom": "error", "cuda_error": "error", "nccl_error": "error", "nccl_watchdog_timeout": "error", "rank_failed": "error",
    "job_terminated": "error", "process_fault": "error", "io_error": "error", "filesystem_damaged": "error", "network_table_full": "error",
    "slurm_failure": "error", "kubelet_runtime_silent": "error", "daemon_disk_full": "error",
}  # fmt: skip
_NAMED = frozenset({"hw_thermal_slowdown", "hw_power_brake_slowdown"})  # they say why there is an `hw_slowdown`


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened. `line`: the line that tells it; None where the readings do."""

    at: int  # ns UTC
    text: str
    severity: str  # info, warning, error, critical
    line: Observation | None = None
    gpu: str = ""  # PCI address of the GPU that it is about


@dataclass(frozen=True)
class Timeline:
    """A recording over time. All times are ns UTC."""

    seen: Seen
    frames: tuple[Frame, ...]  # oldest first; the last one of a recording without any is its own state
    marks: tuple[Mark, ...]  # oldest first
    begin: int
    end: int

    @classmethod
    def of(cls, seen: Seen, frames: Sequence[Frame] = (), lang: str = "en") -> Timeline:
        """`frames` are those that were recorded, oldest first. A recording without a time has begin and end at 0."""
        own = () if frames else (from_observations(seen.observations, seen.host, seen.as_of),)
        shown = tuple(frames) or tuple(f for f in own if f is not None)
        marks = sorted([*_logged(seen.observations, lang), *_shown(frames, lang)], key=lambda m: (m.at, m.text))
        moments = [m.at for m in marks] + [f.at for f in shown] + ([seen.as_of] if seen.as_of is not None else [])
        end = max(moments, default=0)
        telling = [m.at - LEAD for m in marks if m.severity != "info"] + [f.at for f in frames]
        begin = min(telling, default=end)  # that the node booted a month ago is nothing to begin with
        return cls(seen, shown, tuple(m for m in marks if m.at >= begin), begin, end)

    @property
    def still(self) -> bool:
        """Whether it is one moment: there is nothing to play."""
        return self.end == self.begin

    @cached_property
    def _times(self) -> list[int]:
        return [f.at for f in self.frames]

    @cached_property
    def _marked(self) -> list[int]:
        return [m.at for m in self.marks]

    def frame(self, moment: int) -> Frame | None:
        """The newest frame that is not newer than `moment`; None ahead of the first."""
        number = bisect_right(self._times, moment)
        return self.frames[number - 1] if number else None

    def next(self, moment: int) -> Mark | None:
        """The first mark after `moment`."""
        number = bisect_right(self._marked, moment)
        return self.marks[number] if number < len(self.marks) else None

    def previous(self, moment: int) -> Mark | None:
        """The last mark before `moment`."""
        number = bisect_left(self._marked, moment)
        return self.marks[number - 1] if number else None

    def passed(self, moment: int) -> tuple[Mark, ...]:
        """The marks up to `moment`."""
        return self.marks[: bisect_right(self._marked, moment)]

    def stage(self, moment: int) -> tuple[object, ...]:
        """What differs only where a diagnosis may: two moments with the same stage need not both be diagnosed."""
        if moment >= self.end:
            return ("end",)
        frame = self._fresh(moment)
        gpus = tuple((g.pci, g.state, g.reasons) for g in frame.gpus) if frame is not None else None
        return (bisect_right(self._marked, moment), gpus)

    def at(self, moment: int) -> Seen:
        """What was known at `moment`: all of it from the end on; before, what had happened, and the frame of the moment."""
        if moment >= self.end:
            return self.seen
        frame = self._fresh(moment)
        told = tuple(observations_of(frame)) if frame is not None else ()
        kept = [k for o in self.seen.observations if (k := _known(o, moment)) is not None]
        unknown = _unread(self.seen.observations, {o.fact for o in (*kept, *told)}, moment)
        return replace(self.seen, observations=(*kept, *unknown, *told), as_of=moment)

    def _fresh(self, moment: int) -> Frame | None:
        frame = self.frame(moment)
        return frame if frame is not None and moment - frame.at <= STALE else None


def _known(o: Observation, moment: int) -> Observation | None:
    """`o` as it was at `moment`; None when that was not known yet. A log that was looked at later tells of the time before."""
    if o.fact in _LASTING or o.fact.startswith("log."):
        return o
    if o.at is None or o.clock is not Clock.REALTIME:
        return None
    if o.at <= moment:
        return o
    if o.status is Status.NONE_SEEN and o.window is not None and o.window[0] <= moment:
        return replace(o, at=moment, window=(o.window[0], moment))
    return None


def _unread(observations: Iterable[Observation], told: Set[str], moment: int) -> Iterator[Observation]:
    """What the health of a machine rests on and was read later: without it a quiet log would look like a healthy machine."""
    from assistant.diagnosis import BASE

    base = {fact for _, facts in BASE for fact in facts} - told
    for o in observations:
        if o.fact in base:
            yield replace(
                o, value=None, status=Status.NOT_ASKED, at=moment, clock=Clock.REALTIME, detail=_LATER, excerpt=""
            )


_LATER = "at this moment nobody had read it: it was read at the end of the recording"


# --- marks of the logs --------------------------------------------------------------------


def _logged(observations: Iterable[Observation], lang: str) -> Iterator[Mark]:
    last: dict[object, int] = {}
    for o in sorted((o for o in observations if _is_timed(o)), key=lambda o: o.at or 0):
        assert isinstance(o.value, Event)
        assert o.at is not None
        key = (o.fact, o.subject, o.value.code)
        before = last.get(key)
        last[key] = o.at
        if before is None or o.at - before > TWINS:
            text = excerpt(vocabulary()[o.fact].sentence(o, lang), _WIDTH)
            yield Mark(o.at, text, severity_of(o), o, o.subject.id if o.subject.scope == "gpu" else "")


def _is_timed(o: Observation) -> bool:
    return isinstance(o.value, Event) and o.status is Status.OK and o.at is not None and o.clock is Clock.REALTIME


def severity_of(o: Observation) -> str:
    """How bad an event is: what the catalogue says of a code, else of its kind."""
    assert isinstance(o.value, Event)
    code = o.value.code
    if o.fact.startswith("xid") and code is not None:
        from knowledge.catalog.xid import xid

        entry = xid(code)
        return str(entry.severity) if entry is not None else "warning"
    if o.fact == "sxid" and code is not None:
        from knowledge.catalog.sxid import advise

        found = advise(code, str(o.value.get("severity_word") or "")).severity
        return str(found) if found is not None else "warning"
    if o.fact == "aer":
        return "error" if o.value.get("severity") == "fatal" else "warning"
    return _SEVERITY.get(o.fact, "warning")


# --- marks of the readings ----------------------------------------------------------------


def _shown(frames: Sequence[Frame], lang: str) -> Iterator[Mark]:
    """Where a GPU is lost, falls silent, begins to be held down by a fault, or meets an uncorrected error."""
    before: dict[str, Gpu] = {}
    held: dict[tuple[str, str], int] = {}  # when a reason was last seen
    for frame in frames:
        for g in frame.gpus:
            old = before.get(g.pci)
            before[g.pci] = g
            for text, severity in _changes(g, old, frame.at, held):
                yield Mark(frame.at, text.in_(lang), severity, None, g.pci)


def _changes(g: Gpu, old: Gpu | None, at: int, held: dict[tuple[str, str], int]) -> Iterator[tuple[Text, str]]:
    was = old.state if old is not None else ""
    if g.state == LOST and was != LOST:
        yield Text(f"{g.label} is lost", f"{g.label} 丢失"), "critical"
    elif g.state == SILENT and was != SILENT:
        yield Text(f"{g.label} does not answer", f"{g.label} 无响应"), "error"
    if g.state == SILENT:
        return
    for reason in g.reasons:
        event = find(reason) if reason != "hw_slowdown" or not _NAMED & set(g.reasons) else None
        since = held.get((g.pci, reason))
        held[g.pci, reason] = at
        if event is not None and event.fault is Fault.YES and (since is None or at - since > STALE):
            yield Text(f"{g.label} slows down: {event.label}", f"{g.label} 降频：{event.label}"), "warning"
    errors = _risen(g, old, "ecc_uncorrected")
    if errors:
        more = f"{errors:.0f} uncorrected ECC {'error' if errors == 1 else 'errors'}"
        yield Text(f"{g.label}: {more} more", f"{g.label}：新增 {errors:.0f} 个不可纠正 ECC 错误"), "error"


def _risen(g: Gpu, old: Gpu | None, metric: str) -> float:
    now, then = g.value(metric), old.value(metric) if old is not None else None
    return max(now - then, 0.0) if now is not None and then is not None else 0.0
