"""Frames and observations: the node of a recording as one frame, and what a frame tells as observations.

The vocabulary counts memory in MiB and rates in GB/s, frames in B and B/s.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from functools import cache
from typing import TypeVar

from assistant.live.frames import LOST, METRICS, SECOND, SILENT, Frame, Gpu, Instance, Proc, unresponsive
from knowledge.facts import Type, vocabulary
from knowledge.identity import is_pci, resolve
from knowledge.language import NO_TEXT, Text
from knowledge.observation import Clock, Observation, Scope, Source, Status, Subject, Value, gpu
from knowledge.record import dataclass
from knowledge.text import excerpt
from probes.parse.nvml_snapshot import HANGS_AFTER

_FACTORS = {"MiB": float(1 << 20), "GB/s": 1e9}  # what one of a fact's unit is in a metric's
# Facts `gpu.clock.event.*` and the ids of `knowledge.catalog.clock_events`; idleness holds no work up.
REASONS: Mapping[str, str] = {
    "gpu.clock.event.app_clocks": "applications_clocks_setting",
    "gpu.clock.event.sw_power_cap": "sw_power_cap",
    "gpu.clock.event.hw_slowdown": "hw_slowdown",
    "gpu.clock.event.sync_boost": "sync_boost",
    "gpu.clock.event.sw_thermal": "sw_thermal_slowdown",
    "gpu.clock.event.hw_thermal": "hw_thermal_slowdown",
    "gpu.clock.event.hw_power_brake": "hw_power_brake_slowdown",
    "gpu.clock.event.display": "display_clock_setting",
}
_BY_FACT = {m.fact: m.key for m in METRICS.values()}
_NAMES = frozenset({"gpu.index", "gpu.uuid", "gpu.name", "gpu.nvml.reachable"})
_GPU_FACTS = frozenset({*_BY_FACT, *REASONS, *_NAMES})
_RELATIONS = frozenset({
    "process.uses_gpu", "process.uses_mig", "process.gpu_memory", "process.gpu_utilization", "process.comm", "process.name", "process.command",
    "process.user", "process.in_container", "process.in_job", "container.in_pod", "rank.is_process",
})  # fmt: skip
_MIG_FACTS = frozenset({"mig.index", "mig.uuid", "mig.profile", "mig.memory.used", "mig.memory.total"})
_STATE = "node.driver.state"
_HUNG = round(HANGS_AFTER * SECOND)  # ns without an answer after which a driver counts as one that hangs
_WORKS = ("ok", "lost_gpu")  # states of a driver that answers
_GONE = {
    SILENT: (Status.TIMEOUT, "the GPU did not answer at this moment"),
    LOST: (Status.FAILED, "the GPU was lost at this moment"),
}
# nvmlDeviceGetMemoryInfo_v2(3): no answer in 24.55 s
_HANGS = re.compile(r"(\w+)(?:\([^)]*\))?: no answer in ([\d.]{1,12}) s")
_TAKEN = frozenset({*_GPU_FACTS, *_RELATIONS, *_MIG_FACTS, "gpu.pci", _STATE})
_T = TypeVar("_T")


@cache
def factor(metric: str) -> float:
    """What one unit of the metric's fact is in the metric's own."""
    return _FACTORS.get(vocabulary()[METRICS[metric].fact].unit, 1.0)


# --- from observations --------------------------------------------------------------------


def frame_of(observations: Iterable[Observation], host: str, at: int | None) -> Frame | None:
    """See `assistant.live.frames.from_observations`. `at` None: the newest time in what was seen."""
    batch = resolve(o for o in observations if o.fact in _TAKEN)
    told: dict[str, dict[str, Observation]] = defaultdict(dict)
    for o in batch:
        if o.subject.scope is Scope.GPU and o.fact in _GPU_FACTS and (not host or o.subject.host in ("", host)):
            _better(told[o.subject.id], o)
    parts = _parts(batch, host)
    newest = max((o.at for o in batch if o.at is not None and o.clock is Clock.REALTIME), default=0)
    moment = at if at is not None else newest
    gpus = [replace(_gpu(pci, facts, moment), instances=parts.get(pci, ())) for pci, facts in told.items()]
    gpus = [g for g in gpus if g.values or g.state or _looked(g)]
    trouble = _trouble(batch, gpus, told)
    if not gpus and not trouble:
        return None
    gpus.sort(key=lambda g: (g.index is None, g.index or 0, g.pci))
    return Frame(moment, host, tuple(gpus), processes_of(batch), trouble)


def _parts(batch: Iterable[Observation], host: str) -> dict[str, tuple[Instance, ...]]:
    """The MIG instances of each GPU, by their numbers."""
    told: dict[tuple[str, str], dict[str, Observation]] = defaultdict(dict)
    for o in batch:
        above = o.subject.up(Scope.GPU) if o.subject.scope is Scope.MIG and o.fact in _MIG_FACTS else None
        if above is not None and (not host or above.host in ("", host)):
            _better(told[above.id, o.subject.id], o)
    out: dict[str, list[Instance]] = defaultdict(list)
    for (pci, name), facts in told.items():
        used, total = (_value(facts, f"mig.memory.{which}", int) for which in ("used", "total"))
        out[pci].append(Instance(
            name, _value(facts, "mig.index", int), _value(facts, "mig.profile", str) or "", _value(facts, "mig.uuid", str) or "",
            None if used is None else used * _FACTORS["MiB"], None if total is None else total * _FACTORS["MiB"],
        ))  # fmt: skip
    return {
        pci: tuple(sorted(found, key=lambda i: (i.index is None, i.index or 0, i.id))) for pci, found in out.items()
    }


def _looked(g: Gpu) -> bool:
    """Whether somebody tried to read a metric of it at all."""
    return any(not why.startswith(Status.NOT_ASKED) for why in g.missing.values())


def _trouble(batch: Iterable[Observation], gpus: Iterable[Gpu], told: Mapping[str, Mapping[str, Observation]]) -> Text:
    """A call that hung, else what is wrong with the driver as a whole."""
    for g in gpus:
        if g.state == SILENT and (found := _hang(told[g.pci])):
            return unresponsive(found[1], g.label, float(found[2]))
    spec = vocabulary()[_STATE]
    for o in batch:
        if o.fact == _STATE and o.status is Status.OK and isinstance(o.value, str) and o.value not in _WORKS:
            words = spec.labels.get(o.value, Text(o.value, o.value))
            return Text(f"NVIDIA driver: {words.en}", f"NVIDIA 驱动：{words.in_('zh')}")
    return NO_TEXT


def _hang(facts: Mapping[str, Observation]) -> re.Match[str] | None:
    o = facts.get("gpu.nvml.reachable")
    return _HANGS.search(o.excerpt) if o is not None and o.value is False else None


def _better(told: dict[str, Observation], o: Observation) -> None:
    """Keep `o` unless what is there tells more, or was read later."""
    before = told.get(o.fact)
    if before is None or _rank(o) > _rank(before):
        told[o.fact] = o


def _rank(o: Observation) -> tuple[bool, int]:
    return o.status is Status.OK, o.at or 0


def _gpu(identifier: str, facts: Mapping[str, Observation], at: int) -> Gpu:
    values: dict[str, float] = {}
    missing: dict[str, str] = {}
    gone = _value(facts, "gpu.nvml.reachable", bool) is False
    state = "" if not gone else SILENT if _hang(facts) else LOST
    status, why = _GONE.get(state, (Status.NOT_ASKED, "nothing that was read tells it"))
    for metric in METRICS.values():
        o = facts.get(metric.fact)
        if o is None:
            missing[metric.key] = f"{status}: {why}"
        elif o.status is Status.OK and isinstance(o.value, int | float):
            values[metric.key] = o.value * factor(metric.key)
        else:
            missing[metric.key] = f"{o.status}: {o.detail}" if o.detail else str(o.status)
    moments = [o.at for o in facts.values() if o.status is Status.OK and o.at is not None and o.clock is Clock.REALTIME]
    return Gpu(
        identifier, _value(facts, "gpu.index", int), _value(facts, "gpu.uuid", str) or "", _value(facts, "gpu.name", str) or "",
        values, missing, tuple(r for fact, r in REASONS.items() if _value(facts, fact, bool)), state,
        max(moments, default=at),
    )  # fmt: skip


def _value(facts: Mapping[str, Observation], fact: str, kind: type[_T]) -> _T | None:
    o = facts.get(fact)
    return o.value if o is not None and o.status is Status.OK and isinstance(o.value, kind) else None


@dataclass(slots=True)
class _Told:
    """What was told of one process."""

    texts: dict[str, str] = field(default_factory=dict)
    gpus: dict[str, None] = field(default_factory=dict)
    instance: str = ""
    memory: int | None = None
    share: float | None = None


def processes_of(observations: Iterable[Observation]) -> tuple[Proc, ...]:
    """The processes on GPUs, by process id: who they are, and what they use."""
    return tuple(p for p in people_of(observations) if p.gpus)


def people_of(observations: Iterable[Observation]) -> tuple[Proc, ...]:
    """All processes that something is told of, by process id."""
    told: dict[str, _Told] = defaultdict(_Told)
    pods: dict[str, str] = {}
    ranks: dict[str, str] = {}
    for o in observations:
        if o.status is not Status.OK:
            continue
        if o.fact == "container.in_pod":
            pods[o.subject.id] = _named(o.value)
        elif o.fact == "rank.is_process":
            ranks[_named(o.value)] = o.subject.id
        elif o.subject.scope is Scope.PROCESS:
            _take(told[o.subject.id], o)
    found = [_process(pid, t, pods, ranks) for pid, t in told.items() if pid.isdigit()]
    return tuple(sorted(found, key=lambda p: p.pid))


def _take(told: _Told, o: Observation) -> None:
    match o.fact:
        case "process.uses_gpu":
            told.gpus.setdefault(_named(o.value))
        case "process.uses_mig":
            told.instance = told.instance or _named(o.value)
        case "process.gpu_memory" if isinstance(o.value, int | float):
            told.memory = (told.memory or 0) + round(o.value * _FACTORS["MiB"])
        case "process.gpu_utilization" if isinstance(o.value, int | float):
            told.share = max(told.share or 0.0, float(o.value))
        case _ if isinstance(o.value, str):
            told.texts.setdefault(o.fact, o.value)


def _process(pid: str, told: _Told, pods: Mapping[str, str], ranks: Mapping[str, str]) -> Proc:
    """Memory and share are told of a process as a whole: with several GPUs nobody knows which has how much."""
    text = told.texts
    container = _named(text.get("process.in_container", ""))
    alone = len(told.gpus) == 1
    use = (told.memory, told.share) if alone else (None, None)
    name = text.get("process.comm") or text.get("process.name", "").rpartition("/")[2]
    return Proc(
        int(pid), name, text.get("process.command", ""), text.get("process.user", ""), dict.fromkeys(told.gpus, use),
        pods.get(container, ""), _named(text.get("process.in_job", "")), ranks.get(pid, ""), container,
        dict.fromkeys(told.gpus, told.instance) if alone and told.instance else {},
    )  # fmt: skip


def _named(value: Value) -> str:
    """``61240`` of the relation ``job:61240``."""
    return str(value).partition(":")[2] if isinstance(value, str) else ""


# --- to observations ----------------------------------------------------------------------


def observations_of(frame: Frame, call: str = "live.jsonl") -> Iterator[Observation]:
    """What a frame tells, under the names of the vocabulary. The last good values of a GPU that is silent count as not told."""
    source = Source("live", call)
    home = Subject(Scope.NODE, frame.host)
    if frame.gpus:
        yield Observation("node.gpu.count", home, len(frame.gpus), Status.OK, source, frame.at, Clock.REALTIME)
    if any(g.state == SILENT and g.at and frame.at - g.at >= _HUNG for g in frame.gpus):
        yield Observation(
            _STATE, home, "unresponsive", Status.OK, source, frame.at, Clock.REALTIME, excerpt=excerpt(frame.trouble.en)
        )
    for g in frame.gpus:
        yield from _told_by(g, frame, source)
        yield from _of_instances(g, frame, source)
    for p in frame.processes:
        subject = Subject(Scope.PROCESS, str(p.pid), home)
        for pci, (memory, _) in p.gpus.items():
            yield Observation("process.uses_gpu", subject, f"gpu:{pci}", Status.OK, source, frame.at, Clock.REALTIME)
            if memory is not None and len(p.gpus) == 1:
                mib = round(memory / _FACTORS["MiB"])
                yield Observation("process.gpu_memory", subject, mib, Status.OK, source, frame.at, Clock.REALTIME)
            if pci in p.instances:
                place = f"mig:{p.instances[pci]}"
                yield Observation("process.uses_mig", subject, place, Status.OK, source, frame.at, Clock.REALTIME)


def _of_instances(g: Gpu, frame: Frame, source: Source) -> Iterator[Observation]:
    """What is told of its MIG instances; of a GPU that does not answer nothing."""
    for i in () if g.state else g.instances:
        subject = Subject(Scope.MIG, i.id, gpu(g.pci, frame.host))
        told: dict[str, Value] = {"mig.index": i.index, "mig.uuid": i.uuid or None, "mig.profile": i.profile or None}
        for which, size in (("used", i.memory_used), ("total", i.memory_total)):
            told[f"mig.memory.{which}"] = None if size is None else round(size / _FACTORS["MiB"])
        for fact, value in told.items():
            if value is not None:
                yield Observation(fact, subject, value, Status.OK, source, frame.at, Clock.REALTIME)


def _told_by(g: Gpu, frame: Frame, source: Source) -> Iterator[Observation]:
    subject = gpu(g.pci, frame.host)

    def seen(fact: str, value: Value, status: Status = Status.OK, why: str = "") -> Observation:
        return Observation(fact, subject, value, status, source, frame.at, Clock.REALTIME, detail=why)

    for fact, name in (("gpu.index", g.index), ("gpu.uuid", g.uuid), ("gpu.name", g.name)):
        if name not in (None, ""):
            yield seen(fact, name)
    if is_pci(g.pci):
        yield seen("gpu.pci", g.pci)
    if g.state != SILENT:
        yield seen("gpu.nvml.reachable", g.state != LOST)
    for fact, reason in REASONS.items() if not g.state else ():
        yield seen(fact, reason in g.reasons)
    for metric in METRICS.values():
        value = g.values.get(metric.key)
        if g.state:
            yield seen(metric.fact, None, *_GONE[g.state])
        elif value is not None:
            yield seen(metric.fact, _in_unit(metric.key, value))
        else:
            status, why = reason_of(g.missing.get(metric.key, ""))
            yield seen(metric.fact, None, status, why)


def _in_unit(metric: str, value: float) -> Value:
    told = value / factor(metric)
    return round(told) if vocabulary()[METRICS[metric].fact].type is Type.INT else round(told, 6)


def reason_of(text: str) -> tuple[Status, str]:
    """Status and detail of an entry of `Gpu.missing`."""
    word, _, why = text.partition(":")
    status = Status(word) if word in list(Status) else Status.NOT_ASKED
    return (status, why.strip()) if status is not Status.OK else (Status.FAILED, why.strip())
