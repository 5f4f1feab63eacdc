"""What a GPU really does: utilisation, activity of its parts, power, links and clocks of one source, read together.

Utilisation is the share of time with any kernel on the GPU (nvidia-smi manual), so it proves idleness and nothing else. What
tells work from waiting is SM active, the pipes and DRAM active (DCGM fields 1001-1008, NVML GPM), and where those were not
read the power drawn. Several samples of a source are read as their mean, and as waves where they go up and down.
Limits that the input does not name are those of the model (knowledge/gpus.py).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate, islice, pairwise, takewhile
from typing import NamedTuple

from knowledge.derive.capture import LANE
from knowledge.derive.sharing import MPS_SERVER
from knowledge.gpus import Dtype, GpuSpec, all_specs, candidates, find
from knowledge.observation import Clock, Observation, Origin, Scope, Source, Status, Subject, Value

# fact -> (what it tells, factor to percent, W or GB/s); what a capture says of its window stands beside a single sample
_LEVELS: Mapping[str, tuple[str, float]] = {
    "gpu.utilization.core": ("busy", 1), "gpu.activity.graphics": ("engine", 1), "gpu.activity.sm": ("sm", 1),
    "gpu.activity.tensor": ("tensor", 1), "gpu.activity.dram": ("dram", 1), "gpu.activity.fp16": ("fp16", 1),
    "gpu.activity.fp32": ("fp32", 1), "gpu.activity.fp64": ("fp64", 1), "gpu.utilization.memory": ("copies", 1),
    "gpu.activity.sm_occupancy": ("warps", 1),
    "gpu.power.draw": ("power", 1), "gpu.memory.used": ("held", 1), "gpu.memory.share": ("held_share", 1),
    "gpu.clock.sm": ("clock", 1), "gpu.clock.graphics": ("clock", 1),
    "gpu.pcie.rx": ("pcie_rx", 1), "gpu.pcie.tx": ("pcie_tx", 1), "gpu.nvlink.rx": ("nvlink_rx", 1), "gpu.nvlink.tx": ("nvlink_tx", 1),
    "gpu.clock.event.hw_slowdown": ("slowed", 100), "gpu.clock.event.hw_thermal": ("hot", 100),
    "gpu.clock.event.app_clocks": ("set", 100), "gpu.clock.event.sw_power_cap": ("capped", 100),
    "gpu.clock.event.hw_power_brake": ("braked", 100), "gpu.clock.event.sw_thermal": ("warm", 100),
    "gpu.window.waves": ("waves", 100), "gpu.window.utilization": ("busy", 1), "gpu.window.sm_activity": ("sm", 1), "gpu.window.tensor_activity": ("tensor", 1),
    "gpu.window.memory_bandwidth": ("dram", 1), "gpu.window.power.share": ("power_share", 1),
    "gpu.window.pcie.used.share": ("pcie_share", 1),
    "gpu.window.hw_slowdown.share": ("slowed", 1), "gpu.window.thermal.share": ("hot", 1), "gpu.window.power_brake.share": ("braked", 1),
    "gpu.violation.power.share": ("by_power", 1), "gpu.violation.thermal.now": ("by_heat", 100),
    "gpu.violation.power": ("power_time", 1), "gpu.violation.thermal": ("heat_time", 1),
    "gpu.clock.event_time.sw_power_cap": ("power_time", 1), "gpu.clock.event_time.hw_power_brake": ("brake_time", 1),
    "gpu.clock.event_time.hw_thermal": ("heat_time", 1), "gpu.clock.event_time.sw_thermal": ("heat_time", 1),
}  # fmt: skip
# What holds for the device whichever source names it.
_STATIC = frozenset({
    "gpu.power.limit", "gpu.power.limit.requested", "gpu.power.limit.default", "gpu.name", "gpu.window.waits_for", "gpu.pcie.gen", "gpu.pcie.width", "gpu.clock.sm.max", "gpu.processes",
    "gpu.memory.total",
})  # fmt: skip

_RANK_SETTINGS = (
    "RANK",
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "SLURM_PROCID",
)  # torchrun, MPI, Slurm: the first that is set
# Of a program: what it is called, whose it is, what kind it is, and its share of the GPU's time.
_OF_PROGRAM = frozenset({
    "process.name", "process.comm", "process.gpu_contexts", "process.user", "process.owner", "process.gpu_utilization",
})  # fmt: skip
_PROFILED = ("gpu.activity.graphics", "gpu.activity.sm", "gpu.activity.tensor", "gpu.activity.dram")
SHOWN = 8  # programs or pods that are named
_PARTS = ("waves", "sm", "tensor", "dram", "fp32", "fp64")  # what works in a GPU
_PART = frozenset({"mig.profile", "mig.uuid", "mig.memory.total"})  # what tells that a GPU has this instance

# Thresholds in percent. SM active: NVIDIA's guide to the profiling metrics calls 0.5 and less ineffective and 0.8 necessary;
# DRAM active: the same guide has about 0.8 as the most that is reached. Power: waits in NCCL are reported at 152 of 700 W (H100)
# and 44 of 250 W (V100), 18 to 22 % of the limit (github.com/NVIDIA/nccl issues 968, 1550, 199). Tensor active of 38 is the
# least that published training runs reach as MFU (knowledge/data/ranges.yaml). The others are our own, set between those.
BUSY, FREE = 75.0, 5.0  # a kernel is there most of the time; hardly ever
FEW_SMS, MANY_SMS, LITTLE_POWER, HALF_POWER = 25.0, 80.0, 30.0, 60.0
# A kernel that spins on all SMs draws some more than one of NCCL, and a small card at its highest clocks 30 to 45 % of its 70 to 150 W
# with nothing to do: where memory stands still too, so much power is no sign of work either. Our own.
SPINNING_POWER = 45.0
# Of the warps that its SMs can hold. Products of matrices run well with so few, but then their pipes are full. Our own.
FEW_WARPS = 25.0
TENSOR_GOOD, TENSOR_SOME, TENSOR_NONE = 38.0, 20.0, 5.0
# Bound by memory: seven eighths of those 80, or three quarters where tensor cores do little. Our own.
DRAM_FULL, DRAM_NEAR = 70.0, 60.0
DRAM_ROOF, DRAM_SOME, DRAM_LITTLE, DRAM_STILL = 50.0, 30.0, 25.0, 3.0
# What only waits reads and writes next to nothing; 1 % of an H100's memory are 33 GB/s, which kernels that are small or far apart move. Our own.
SPINS_AT_MOST = 1.0
PLAIN_PIPES = 20.0
# Products of matrices keep the FP32 pipe at work for most of the cycles; simulation has as much again of other instructions. Our own.
PRODUCTS = 65.0
LINK_FULL = {"pcie": 60.0, "nvlink": 50.0}
# Where nobody told the link: more of the slowest that carries the traffic, as it may well be a faster one. Generation 3 is that of Volta.
LINK_FULL_ASSUMED, PCIE_LEAST = 65.0, 3
NVLINK_LEAST = 300.0  # GB/s in both directions: that of a V100; bridges of workstation cards carry less
# Percent of the busier direction that flows the other way where GPUs exchange, and of the time in which memory is read or written. Our own.
ALIKE_WAYS, HALF_READS = 70.0, 60.0
# Where nobody told the highest SM clock: no data-centre GPU since Volta has a lower one (V100 PCIe 1380 MHz, A100 1410, T4 1590,
# H100 1980, MI300X 2100: their data sheets).
CLOCK_LEAST = 1380.0
HELD_DOWN = 50.0  # of the samples, and of the highest clock
# Power limits. At its own limit an H100 or A100 keeps some 70 % and more of its highest clock under matrix products; a limit counts as
# lowered a tenth below its default, as costly where a quarter of the clock is gone or, where nobody told the clock, of the limit. Our own.
LOWERED, COSTLY, FAR_BELOW, AT_LIMIT = 90.0, 25.0, 75.0, 95.0
OVER = 1.05  # of the power that a model is built for: samples lie a little above it
NOT_FULL, SLOW = (
    85.0,
    35.0,
)  # what is held at a full limit draws more; and what clock no full load loses on a larger card
SMALL_CARD = 80.0  # W: cards of 70 and 72 W (T4, L4) run far below their highest clock at full load; no other data-centre card is built for less
# Cards of 150 W and less (A2, T4, L4, A10: data sheets) have base clocks of a third to a half of their highest, and full loads hold them
# there; where nobody read what they draw, only a clock far below that is no such load's. Our own.
LOW_POWER_CARD, FAR_DOWN = 150.0, 75.0
# What holds clocks down: shares of samples, of the time between two, and counters of time.
_HOLDS = {
    "power": ("capped", "by_power", "power_time"),
    "heat": ("hot", "by_heat", "heat_time"),
    "brake": ("braked", "", "brake_time"),
}
# Whose "memory utilization" is a share of the bandwidth: DramBandwidthUtilization of AMD's driver (Linux, smu_v13_0_6_ppt.c, of MI300).
# NVIDIA's is time with any read or write (nvidia-smi manual).
_AMD = ("amd", "rocm")
CONTEXT_MIB = 64.0  # less than any CUDA context takes (some 100 to 500 MiB)
HOLDS_MIB = 2048.0  # more than contexts and libraries take
# An Ascend chip holds some 3.4 GiB for itself: npu-smi shows 3162 to 3450 of 65536 MB of a 910B on which no process runs (issues of vllm-ascend).
ASCEND_OWN_MIB = 3584.0
STEADY = 0.8  # of the most: a caching allocator keeps what it has
HELD_SHARE = 50.0  # percent of the memory, where nobody says how much that is: the same on any data-centre GPU
WINDOW = 10  # samples that make a window
# Of earlier checks: as many looks as make a window, where a gauge is kept once in ten minutes (assistant/store/codec.py), and some more.
BEFORE = 3 * 3600 * 10**9  # ns
OVER_TIME: Mapping[
    str, bool
] = {  # and whether it is a gauge, of which samples count; of counters of time the ends tell
    "gpu.utilization.core": True,
    "gpu.activity.sm": True,
    "gpu.activity.tensor": True,
    "gpu.activity.dram": True,
    "gpu.power.draw": True,
    "gpu.memory.used": True,
    "mig.activity.graphics": True,
    "mig.activity.sm": True,
    "mig.activity.tensor": True,
    "mig.activity.dram": True,
    "mig.memory.used": True,
    "gpu.clock.event_time.hw_thermal": False,
    "gpu.clock.event_time.sw_thermal": False,
    "gpu.clock.event_time.hw_power_brake": False,
}
UP, DOWN, WAVES, PART = (
    70.0,
    20.0,
    3,
    15.0,
)  # a sample is up or down; how often it must change; each side's share of the samples
# What comes and goes by chance is seldom full and mostly in between: of uniform load one window of twenty passes for waves (of 40 %, one of
# eight), and waves of six samples are all seen.
FULL, BETWEEN = 85.0, 35.0
# Where what it does changes once and stays so: samples that tell what it does; how far a figure has to move for that, and how near
# to their mean the later samples have to stay, in percent of all that there is of it. Our own.
PHASE, SHIFT, NEAR, OUTLIERS = 3, 25.0, 15.0, 10
PART_TIME, STEADY_LOAD = 60.0, 0.3  # busy for less than that, and how far its samples lie from their mean
SAME = 0.1  # GPUs of one node whose figures lie so near do the same

PEERS = 3  # others that are as busy: fewer have no middle
ALIKE, IN_STEP = 0.3, 0.75  # how near to their middle, and what share of them: ranks of one job do the same
_CALLED = {
    "busy": "util", "engine": "engine", "sm": "SM", "warps": "occupancy", "tensor": "tensor", "dram": "DRAM", "fp32": "FP32", "fp64": "FP64",
    "fp16": "FP16", "copies": "memory util", "power": "W", "power_share": "% of power", "pcie_rx": "PCIe in", "pcie_tx": "PCIe out",
    "pcie_share": "PCIe", "nvlink_rx": "NVLink in", "nvlink_tx": "NVLink out", "clock": "MHz",
}  # fmt: skip

# Worst first: of sources that differ the worst counts, so more evidence is never milder.
_ORDER = (
    "throttled", "busy_idle", "pcie_bound", "nvlink_bound", "in_waves", "fp32_bound", "latency_bound", "unseen", "fp64_bound", "fp32_work",
    "allocated_idle", "held_idle", "part_time", "memory_bound", "tensor_bound", "working", "idle",
)  # fmt: skip


_Samples = dict[str, list[Observation]]  # what one source tells of one GPU, by what it is, in the order of time or line
_Static = Mapping[str, Observation]


def enrich(observations: Sequence[Observation]) -> list[Observation]:
    """The batch with `gpu.work.*` of each GPU of which somebody told how busy it is, and `mig.work.*` of each part of one that is divided."""
    seen = _Seen(observations)
    _with_power_of_package(seen)
    works: dict[Subject, _Work] = {}
    gpus: dict[Subject, _Work] = {}
    read = {subject: [w for w in seen.works(subject) if w.samples] for subject in sorted(seen.reads, key=str)}
    _together_at_work(read)
    for subject, told in read.items():
        if judged := [w for w in _of_rows(told) if w.kind]:
            works[subject] = min(judged, key=lambda w: (_ORDER.index(w.kind), -len(w.over), -len(w.shown), w.shown))
        if subject.scope is Scope.GPU and told:
            changed = next((w for w in told if w.before is not None), told[0])
            gpus[subject] = works.get(subject, changed)
    beside = list(_beside(gpus))
    # Of what no class fits the figures are told too where its peers do more or less: who they are about, and over how long.
    compared = {o.subject for o in beside}
    unclassed = {
        g: w
        for g, w in gpus.items()
        if g not in works
        and (g in compared or w.programs > 1 or g in seen.unread or w.before or w.busy < BUSY or w.mean("power"))
        and not w.divided
    }
    alone = (o for subject, work in {**works, **unclassed}.items() for o in work.facts(subject))
    return [*observations, *alone, *beside, *_silent(seen.parts, read), *_unread(seen.unread, gpus)]


def _with_power_of_package(seen: _Seen) -> None:
    """Tells the second die of each package of AMD's MI250 what the package draws: rocm-smi names that of the first die alone, and N/A
    or 0 W of the second (github.com/wandb/wandb/pull/5449 has the listing of eight dies)."""
    listed: dict[tuple[str, str], dict[int, tuple[Subject, _Samples]]] = defaultdict(dict)
    for subject, read in seen.reads.items():
        name, _, number = subject.id.partition(":")
        if name == "amd" and (number := number.removeprefix("card")).isdecimal():
            for call, samples in read.items():
                listed[subject.host, call][int(number)] = subject, samples
    for dies in listed.values():
        draws = {n for n, (_, samples) in dies.items() if _mean(samples.get("power", ())) > 0}
        if len(dies) != 2 * len(draws) or any(n % 2 or n + 1 not in dies for n in draws):
            continue
        for n in draws:
            (first, whole), (second, samples) = dies[n], dies[n + 1]
            if min(_mean(die.get("busy", ())) for die in (whole, samples)) < BUSY:
                continue  # what one of them draws is not told
            samples["power"] = [*whole["power"]]
            if (limit := seen.static[first].get("gpu.power.limit")) is not None:
                seen.static[second]["gpu.power.limit"] = limit


_OF_A_MOMENT = ("busy_idle", "latency_bound", "held_idle", "allocated_idle")


def _of_rows(judged: Sequence[_Work]) -> list[_Work]:
    """Those of `judged` that count: of one tool that looked several times its last look, beside what all of them tell as a row."""
    looks: dict[str, list[_Work]] = defaultdict(list)
    for w in judged:
        looks[w.told_by[-1].source.probe].append(w)
    return [w for its in looks.values() for w in _of_looks(its)]


def _of_looks(looks: Sequence[_Work]) -> Sequence[_Work]:
    """Where looks make a window, what goes on in it counts, and no moment of it; where they are fewer, the last one, with what it was before."""
    row = next((w for w in looks if w.joined), None)
    if row is None or not row.told_by:
        return looks
    alone = [w for w in looks if not w.joined]
    if row.before is not None:
        return [row]
    ordered = sorted(alone, key=_newest)
    last = ordered[-1]
    now = list(takewhile(lambda w: w.kind == last.kind, reversed(ordered)))
    ahead = ordered[: -len(now)]
    window = row.kind == "in_waves" or len(row.over) >= WINDOW
    if window and (last.kind not in _OF_A_MOMENT or any(w.kind == last.kind for w in ahead)):
        return [row, *(w for w in alone if w.kind not in _OF_A_MOMENT and (row.waves or w is last))]
    if ahead:
        last.before, last.since = ahead[-1], now[-1].told_by[0]
    return [last, row] if row.kind in ("", last.kind) else [last]


def _newest(w: _Work) -> tuple[int, int, str, str]:
    return _later(w.told_by[-1])


_ALIKE_FOR = ("tensor", "dram", "copies", "power", "pcie_rx", "pcie_tx", "nvlink_rx", "nvlink_tx")


def _together_at_work(read: Mapping[Subject, Sequence[_Work]]) -> None:
    """Tells each GPU what the others of its node do that do the same: a bound then falls on one side of all of them."""
    by_node: dict[str, list[_Work]] = defaultdict(list)
    for subject, told in read.items():
        if subject.scope is Scope.GPU:
            by_node[subject.host].extend(told)
    for works in by_node.values():
        for name in _ALIKE_FOR:
            _shared_mean(name, [w for w in works if w.busy >= BUSY and name in w.samples])
        for w in works:
            w.alone = sum(other.busy >= BUSY for other in works) < 2


def _shared_mean(name: str, works: Sequence[_Work]) -> None:
    """Tells each of `works` the mean of those that lie within a tenth of it."""
    own = {w: w.mean(name) or 0.0 for w in works}
    ordered = sorted(own.values())
    sums = [0.0, *accumulate(ordered)]
    for w, value in own.items():
        first, end = bisect_left(ordered, value * (1 - SAME)), bisect_right(ordered, value * (1 + SAME))
        w.of_all[name] = (sums[end] - sums[first]) / (end - first)


class _Seen:
    """What was told: readings of each GPU by their source, what holds for the device whoever says so, and who is on it."""

    def __init__(self, observations: Sequence[Observation]) -> None:
        self.reads: dict[Subject, dict[str, _Samples]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
        self.past: dict[Subject, dict[str, list[Observation]]] = defaultdict(lambda: defaultdict(list))
        self.static: dict[Subject, dict[str, Observation]] = defaultdict(dict)
        self.given: dict[Subject, dict[str, None]] = defaultdict(dict)  # to which pods
        self.in_part: dict[Subject, dict[str, None]] = defaultdict(dict)  # and of a MIG instance
        self.said_of: dict[Subject, dict[str, str]] = defaultdict(
            dict
        )  # of a process: its name, its user, its share of the time
        self.unread: dict[Subject, list[Observation]] = defaultdict(list)
        self.parts: dict[Subject, Observation] = {}
        self.users: dict[Subject, set[Subject]] = defaultdict(set)
        self.servers: set[Subject] = set()  # of MPS: they work for others
        self.ranks: dict[Subject, set[str]] = defaultdict(set)  # of a process, and of a GPU where its rank names it
        for o in observations:
            if o.status is Status.OK:
                self._take(o)
            elif o.fact in _PROFILED and o.source.probe.startswith("dcgm"):
                self.unread[o.subject].append(o)

    def _take(self, o: Observation) -> None:
        level = _level(o) if o.subject.scope in (Scope.GPU, Scope.MIG) else None
        if o.source.call.startswith("history:"):
            if level:
                self.past[o.subject][o.source.probe].append(o)
            return
        if o.subject.scope is Scope.MIG and (level or o.fact in _PART):
            self.parts.setdefault(o.subject, o)
        if o.fact == "pod.uses_gpu":
            self.given[_used(o)][o.subject.id] = None
        elif o.fact == "pod.uses_mig":
            number, _, whole = str(o.value).removeprefix("mig:").partition("@gpu:")
            self.in_part[Subject(Scope.MIG, number, Subject(Scope.GPU, whole, o.subject.up(Scope.NODE)))][
                o.subject.id
            ] = None
        elif o.subject.scope is Scope.PROCESS and o.fact in _OF_PROGRAM:
            self._program(o)
        elif o.fact == "process.uses_gpu":
            self.users[_used(o)].add(o.subject)
        elif o.fact == "rank.uses_gpu":
            self.ranks[_used(o)].add(o.subject.id)
        elif o.fact == "process.is_rank":
            self.ranks[o.subject].add(str(o.value).removeprefix("rank:"))
        elif o.fact == "process.env" and isinstance(o.value, tuple):
            set_to = dict(str(v).split("=", 1) for v in o.value if "=" in str(v))
            self.ranks[o.subject] |= set(islice((set_to[name] for name in _RANK_SETTINGS if name in set_to), 1))
        elif o.fact in _STATIC and o.subject.scope is Scope.GPU:
            known = self.static[o.subject]
            known[o.fact] = max(known.get(o.fact, o), o, key=_later)
        elif level and isinstance(o.value, int | float):
            self.reads[o.subject][_together(o)][level[0]].append(o)

    def _program(self, o: Observation) -> None:
        """What tells one program of a GPU from another."""
        if o.fact in ("process.name", "process.comm") and MPS_SERVER in str(o.value):
            self.servers.add(o.subject)
        elif o.fact == "process.gpu_contexts" and o.value == ("graphics",):
            self.servers.add(o.subject)  # a desktop draws, it does not compute
        self.said_of[o.subject][o.fact] = str(o.value)

    def owners(self, subject: Subject) -> tuple[str, ...]:
        """Who has it: programs by their names, else the pods that it was given to."""
        programs = sorted(self.users[subject] - self.servers, key=lambda p: (len(p.id), p.id))
        if subject.scope is Scope.MIG:
            return tuple(f"pod {name}" for name in self.in_part.get(subject, ()))
        return tuple(
            _called(p, self.said_of[p], len(programs) > 1 and self._has_one_gpu(p)) for p in programs
        ) or tuple(f"pod {name}" for name in self.given.get(subject, ()))

    def _has_one_gpu(self, program: Subject) -> bool:
        """Whether a program's share of the time is that of one GPU: of several, no listing keeps them apart."""
        return sum(program in its for its in self.users.values()) == 1

    def works(self, subject: Subject) -> Iterator[_Work]:
        """What each source tells of `subject`; then each together with what it told before, as far as it held its memory all the time."""
        static, users = self.static[subject], self.owners(subject)
        given = users if subject.scope is Scope.MIG else tuple(self.given.get(subject, ()))
        programs = len(self.users[subject] - self.servers)
        ranks = self.ranks[subject].union(*(self.ranks[p] for p in self.users[subject]))
        rank = next(iter(ranks)) if len(ranks) == 1 else None
        divided = any(part.parent == subject for part in self.parts)  # the mode alone divides nothing
        for _, samples in sorted(self.reads[subject].items()):
            yield _Work(samples, static, given, users, programs, rank, divided).now()
        for samples in _looks_of_one_tool(self.reads[subject].values()):
            row = _Work(samples, static, given, users, programs, rank, divided).now()
            row.joined = True
            yield row
        for probe, before in sorted(self.past[subject].items()):
            whole: _Samples = defaultdict(list)
            now = (o for its in self.reads[subject].values() for found in its.values() for o in found)
            for o in (*before, *(o for o in now if o.source.probe == probe)):
                whole[_LEVELS[f"gpu.{o.fact[4:]}"][0]].append(o)
            if _steady(whole.get("held", ())):
                yield _Work(whole, static, given, users, programs, rank, divided)


def in_waves(busy: Sequence[float], down: float = DOWN, full: float = FULL) -> bool:
    """Whether percentages over time go up and down: both sides for a good part of a window, and back and forth, not once as at a start."""
    if len(busy) < WINDOW:
        return False
    sides = [v >= UP for v in busy if v >= UP or v <= down]
    up = [v for v in busy if v >= UP]
    if not up or sum(up) / len(up) < full or len(busy) - len(sides) > BETWEEN * len(busy) / 100:
        return False
    least = PART * len(busy) / 100
    return sum(a != b for a, b in pairwise(sides)) >= WAVES and least <= sum(sides) <= len(sides) - least


def _moved(before: Sequence[float], after: Sequence[float]) -> bool:
    """Whether a figure moved and stays where it went: no sample ahead was there, unless those since are a window."""
    old, new = (sum(side) / len(side) for side in (before, after))
    if abs(new - old) < SHIFT or sum(abs(v - new) > NEAR for v in after) > OUTLIERS * len(after) / 100:
        return False
    return len(after) >= WINDOW or not any(abs(v - new) <= NEAR for v in before)


def _looks_of_one_tool(read: Iterable[_Samples]) -> Iterator[_Samples]:
    """What several files tell that one tool wrote, as two scrapes are: as one row of samples, of the last hours."""
    calls: dict[str, set[str]] = defaultdict(set)
    whole: dict[str, _Samples] = defaultdict(lambda: defaultdict(list))
    for samples in read:
        for name, found in samples.items():
            for o in found:
                if o.at is not None and o.clock is Clock.REALTIME:
                    calls[o.source.probe].add(o.source.call)
                    whole[o.source.probe][name].append(o)
    for probe in sorted(p for p, its in calls.items() if len(its) > 1):
        last = max(o.at or 0 for found in whole[probe].values() for o in found)
        late = {n: [o for o in found if (o.at or 0) > last - BEFORE] for n, found in whole[probe].items()}
        yield defaultdict(list, late)


def _called(program: Subject, said: Mapping[str, str], with_share: bool) -> str:
    """``python3 (pid 4242, user ann)``, and `with_share` that of the time."""
    name = said.get("process.name") or said.get("process.comm") or ""
    whose = said.get("process.owner") or (f"user {said['process.user']}" if "process.user" in said else "")
    place = ", ".join(part for part in (f"pid {program.id}", whose) if part)
    share = f" {said['process.gpu_utilization']} %" if with_share and "process.gpu_utilization" in said else ""
    return f"{name.rsplit('/', 1)[-1]} ({place}){share}" if name else f"{place}{share}"


def _used(o: Observation) -> Subject:
    """The GPU that a pod or process uses."""
    return Subject(Scope.GPU, str(o.value).removeprefix("gpu:"), o.subject.up(Scope.NODE))


def _steady(held: Sequence[Observation]) -> bool:
    """Whether the same memory was held over a window: looks far apart are of one program then, not of one after the other."""
    sizes = [_number(o) for o in held]
    return len(sizes) >= WINDOW and min(sizes) >= max(HOLDS_MIB, STEADY * max(sizes))


def _level(o: Observation) -> tuple[str, float] | None:
    """What an observation tells and its factor; of a MIG instance what the same reading of a GPU tells."""
    return _LEVELS.get(f"gpu.{o.fact[4:]}" if o.fact.startswith("mig.") else o.fact)


def _unread(unread: Mapping[Subject, Sequence[Observation]], gpus: Mapping[Subject, _Work]) -> Iterator[Observation]:
    """How many profiling counters DCGM was asked for and had no value of, where none of them had one."""
    for gpu, found in unread.items():
        work, facts = gpus.get(gpu), {o.fact for o in found}
        if work is not None and not any(work.samples.get(_LEVELS[fact][0]) for fact in _PROFILED):
            yield work.told("gpu.work.unread", gpu, len(facts), found[-1].excerpt)


def _silent(parts: Mapping[Subject, Observation], works: Mapping[Subject, Sequence[_Work]]) -> Iterator[Observation]:
    """Of GPUs that are divided by MIG, how many instances there are of which nobody told how busy they are."""
    divided: dict[Subject, list[Subject]] = defaultdict(list)
    for part in sorted(parts, key=str):
        if (whole := part.up(Scope.GPU)) is not None:
            divided[whole].append(part)
    for whole, its in divided.items():
        first, silent = parts[its[0]], [part for part in its if not works.get(part)]
        said = ", ".join(part.id for part in silent[:16])
        source = Source("derived", first.source.call, first.source.line)
        yield Observation(
            "gpu.mig.unprofiled",
            whole,
            len(silent),
            source=source,
            at=first.at,
            clock=first.clock,
            excerpt=said,
            origin=Origin.DERIVED,
        )


def _beside(works: Mapping[Subject, _Work]) -> Iterator[Observation]:
    """How much each GPU works beside the others of its node that are as busy, where there are enough of them: by SM active, tensor
    active and power. Others that are not alike do not work in step, and other jobs do other things: nothing is compared."""
    busy = {g: w for g, w in works.items() if w.busy >= BUSY or w.least}
    for gpu, work in busy.items():
        if work.kind == "throttled" or (work.held and (work.clock_lost or 0.0) > ALIKE * 100):
            continue  # why it does less is known
        others = [w for g, w in busy.items() if g != gpu and g.host == gpu.host and w.jobs == work.jobs]
        # who says "the others" means all of them
        enough = PEERS if work.told_by[-1].origin is not Origin.TOLD else 2
        found = [c for name in ("sm", "tensor", "power") if (c := _compared(name, work, others, enough))]
        if not found:
            continue
        found.sort()
        told = found[min(1, len(found) - 1)]  # two that agree; one alone may be of other work that is as much
        yield work.told("gpu.work.peers.share", gpu, float(f"{told.share:.3g}"), told.shown)
        yield work.told("gpu.work.peers.spread", gpu, float(f"{told.spread:.3g}"), told.shown)
        idle = sum(w.kind == "busy_idle" for w in others)
        yield work.told("gpu.work.peers.idle", gpu, 100 * idle / len(others), f"{idle} of {len(others)} others")
    for gpu, work in works.items():
        resting = work.kind in ("idle", "held_idle", "allocated_idle")
        if not resting and (work.kind not in ("", "working", "part_time") or work.least or work.busy >= PART_TIME):
            continue
        others = [w for g, w in works.items() if g != gpu and g.host == gpu.host]
        if len(others) >= PEERS and work.jobs in (others[0].jobs, frozenset()) and len({w.jobs for w in others}) == 1:
            idle = sum(w.kind == "busy_idle" for w in others)
            yield work.told("gpu.work.peers.idle", gpu, 100 * idle / len(others), f"{idle} of {len(others)} others")
            if (held := work.mean("held") or 0.0) >= HOLDS_MIB:  # ranks of one job hold about as much
                same = [w for w in others if w.busy >= BUSY and abs((w.mean("held") or 0.0) - held) <= ALIKE * held]
                alike = sum(w.kind != "busy_idle" for w in same)
                shown = f"{alike} of {len(others)} others work and hold as much"
                yield work.told("gpu.work.peers.at_work", gpu, 100 * alike / len(others), shown)


class _Compared(NamedTuple):
    """One figure beside that of the others: its share of their middle, and how far they lie apart, in percent."""

    share: float
    spread: float
    shown: str


def _compared(name: str, work: _Work, others: Sequence[_Work], enough: int) -> _Compared | None:
    own, theirs = work.mean(name), [v for w in others if (v := w.mean(name)) is not None]
    if own is None or len(theirs) < max(enough, IN_STEP * len(others)):
        return None
    from statistics import median  # loads fractions and decimal

    middle = median(theirs)
    if middle <= 0 or (name == "tensor" and middle < TENSOR_SOME):
        return None
    apart = sorted(abs(v - middle) / middle for v in theirs)
    if sum(v <= ALIKE for v in apart) < IN_STEP * len(theirs):
        return None
    shown = f"{_CALLED[name]} {own:.4g} beside {middle:.4g}, the median of {len(theirs)} others"
    return _Compared(100 * own / middle, 100 * apart[-1], shown)


def _together(o: Observation) -> str:
    """What `o` was read with: the same output, the same capture, or the same collector at the same moment."""
    if o.fact.startswith("gpu.window."):
        return "window"
    return o.source.probe if o.source.probe.endswith("-snapshot") else o.source.call


def _later(o: Observation) -> tuple[int, int, str, str]:
    return o.at or 0, o.source.line or 0, repr(o.value), repr(o.source)


def _number(o: Observation) -> float:
    level = _level(o)
    return float(o.value) * level[1] if level and isinstance(o.value, int | float) else 0.0


def _mean(found: Sequence[Observation]) -> float:
    """The mean of some samples, 0 of none."""
    return sum(map(_number, found)) / max(1, len(found))


class _Work:
    """What one source tells of one GPU, as figures, each None where it does not tell them."""

    def __init__(
        self, samples: _Samples, static: _Static, given: tuple[str, ...], users: tuple[str, ...], programs: int,
        rank: str | None, divided: bool,
    ) -> None:  # fmt: skip
        self.samples, self.static, self.given, self.programs, self.rank = samples, static, given, programs, rank
        self.users, self.divided = users, divided
        self.of_all: dict[str, float] = {}  # the mean of those of its node that do the same
        self.alone = True  # no other GPU of its node is busy
        self.joined = False  # of looks that one tool told in files of their own
        self.since: Observation | None = None  # the first sample that tells what the last one does
        self.before: _Work | None = None  # what the same source told of the time ahead, where it did something else
        self.drawn = 0.0  # W that it drew at most, in all samples of the source: no limit is below that
        self.of = 0  # of how many samples those are the last, where it did something else ahead
        for found in samples.values():
            found.sort(key=_later)
        told = samples.get("busy") or samples.get("engine") or []
        if not told and (sm := samples.get("sm")) and all(_number(o) >= BUSY for o in sm):
            told = sm  # an SM that has a warp has a kernel
        self.least = not told  # nobody says how busy it was: what works in it has a kernel, so for as long at least
        if self.least:
            told = max((samples.get(name, []) for name in _PARTS), key=_mean)
        self.told_by = told
        self.over = [_number(o) for o in told]  # how busy it was, sample by sample
        self.samples = samples if told else {}

    def now(self) -> _Work:
        """What the newest samples tell, where what it does changed for good: then with what it did before."""
        if (cut := self._change()) is None:
            return self
        late, early = (self._of(self._since(cut, later=later)) for later in (True, False))
        late = late.now()
        before = late.before or early.now()
        if late.kind == before.kind:
            return self
        now = self._of(late.samples)  # judged anew beside the other GPUs of its node
        now.before, now.of = before, len(self.over)
        return now

    def _of(self, samples: _Samples) -> _Work:
        """The work that some of its samples tell."""
        some = _Work(samples, self.static, self.given, self.users, self.programs, self.rank, self.divided)
        some.drawn = max(self.drawn, *map(_number, self.samples.get("power", ())), 0.0)
        return some

    def _since(self, cut: int, *, later: bool) -> _Samples:
        """The samples from number `cut` on, or those ahead of it: by their times, else by their lines."""
        timed = self.timed

        def place(o: Observation) -> int:
            return (o.at if timed else o.source.line) or 0

        first = place(self.told_by[cut])
        kept = {name: [o for o in found if (place(o) >= first) is later] for name, found in self.samples.items()}
        return {name: found for name, found in kept.items() if found}

    @property
    def timed(self) -> bool:
        """Whether each sample has a time of its own."""
        return len({o.at for o in self.told_by}) > 1

    def _change(self) -> int | None:
        """The number of the sample from which on it does something else; None where it goes on as before, or back and forth."""
        n = len(self.over)
        if n < 2 * PHASE or self.waves:
            return None
        rows = list(self._levels())
        sums = [[0.0, *accumulate(row)] for row in rows]

        def apart(k: int) -> float:
            return sum(k * (n - k) / n * (s[k] / k - (s[n] - s[k]) / (n - k)) ** 2 for s in sums)

        k = max(range(PHASE, n - PHASE + 1), key=apart)
        return k if any(_moved(row[:k], row[k:]) for row in rows) else None

    def _levels(self) -> Iterator[list[float]]:
        """What each of its figures was, sample by sample, in percent; of those that were read as often as how busy it was."""
        yield self.over
        whole = {"power": self.limit, "clock": self.highest_clock}
        for name in ("sm", "tensor", "dram", "copies", "power", "clock"):
            if len(found := [_number(o) for o in self.samples.get(name, ())]) == len(self.over):
                most = max(whole.get(name) or 0.0, *found) if name in whole else 100.0
                yield [100 * v / most for v in found] if most else found

    def mean(self, name: str) -> float | None:
        """The mean of the samples of `name`."""
        found = self.samples.get(name)
        return _mean(found) if found else None

    def common(self, name: str) -> float | None:
        """The mean of `name` over all GPUs of its node that do the same: what decides on which side of a bound they lie."""
        return self.of_all.get(name, self.mean(name))

    @property
    def jobs(self) -> frozenset[str]:
        """The pods that it was given to, without the number that tells the ranks of one job apart."""
        return frozenset(name.rstrip("0123456789").rstrip("-") if name[-1:].isdigit() else name for name in self.given)

    def number(self, fact: str) -> float | None:
        """A property of the device."""
        o = self.static.get(fact)
        return float(o.value) if o is not None and isinstance(o.value, int | float) else None

    @property
    def busy(self) -> float:
        """Percent of the time with a kernel, at least."""
        return sum(self.over) / len(self.over)

    @cached_property
    def models(self) -> tuple[GpuSpec, ...]:
        """The models that its name fits: one, or several where somebody said "H100"."""
        o = self.static.get("gpu.name")
        if o is None or not isinstance(o.value, str):
            return ()
        memory = self.number("gpu.memory.total")
        one = find(o.value, memory) or find(o.value)
        return (one,) if one else candidates(o.value, memory)

    @property
    def is_ascend(self) -> bool:
        """Whether its name is one of Huawei's."""
        return (o := self.static.get("gpu.name")) is not None and str(o.value).startswith("Ascend")

    @cached_property
    def possible(self) -> tuple[GpuSpec, ...]:
        """The models that it can be: by its name, else those that have the memory which is used and draw the power that it draws."""
        if self.models:
            return self.models
        held, power = self.mean("held") or 0.0, self.mean("power") or 0.0
        return tuple(
            m for m in all_specs()
            if m.vendor == "nvidia" and (m.memory_gib or held) * 1024 * 1.03 >= held and (m.tdp_w or power) * 1.05 >= power
        )  # fmt: skip

    @property
    def design(self) -> float | None:
        """W that the model is built for; of several variants the most, of which less is drawn than of any other."""
        known = [m.tdp_w for m in self.models if m.tdp_w]
        return max(known) if known else None

    @property
    def limit(self) -> float | None:
        """W that the power is held against; what draws more than its model is built for has a limit that nobody told."""
        power, design = self.mean("power") or 0.0, self.design
        return self.told_limit or (design if design and power <= OVER * design else None)

    @property
    def normal_limit(self) -> float | None:
        """W that its limit is without anybody's doing: the default that the input names, else what its one model is built for."""
        return self.number("gpu.power.limit.default") or (self.design if len(self.models) == 1 else None)

    @property
    def at_limit(self) -> str:
        """At what kind of power limit its clocks are held; empty where none holds them, or nobody told."""
        power, limit, normal, lost = self.mean("power"), self.told_limit, self.normal_limit, self.clock_lost
        if self.divided or self.least or self.busy < BUSY or power is None:
            return ""
        near = limit is not None and 100 * power >= AT_LIMIT * limit
        if not self.capped and not near:
            return ""
        if limit is not None and normal is not None and near and 100 * limit < LOWERED * normal:
            costs = lost >= COSTLY if lost is not None else 100 * limit <= FAR_BELOW * normal
            return "lowered" if costs else "lower"
        if near or not self.capped:
            return "full"
        least = min((m.tdp_w for m in self.possible if m.tdp_w), default=0.0) if "held" in self.samples else 0.0
        full, slow = limit or normal or least, lost or 0.0
        if self._otherwise_held:
            return ""
        if full and slow >= COSTLY and 100 * power < NOT_FULL * full:
            return "untold"
        if limit or normal:
            return "full"
        return "untold" if slow >= SLOW and power > SMALL_CARD else ""

    @property
    def _otherwise_held(self) -> bool:
        """Whether heat or the server holds its clocks as well, which makes it draw less."""
        flags = max(self.mean(name) or 0.0 for name in ("slowed", "hot", "braked", "warm"))
        return max(flags, self.held_by("heat") or 0.0, self.held_by("brake") or 0.0) >= 5

    @property
    def told_limit(self) -> float | None:
        """W that the input names: the limit in force, else the one asked for."""
        return self.number("gpu.power.limit") or self.number("gpu.power.limit.requested") or None

    @property
    def power_share(self) -> float | None:
        """Percent of the power limit."""
        power, limit = self.mean("power"), self.limit
        if self.told_limit is None and self.capped:
            return None  # it is at a limit that nobody told, not far below that of its model
        if power is not None and limit:
            return 100 * power / limit
        if power is not None and 100 * power < LITTLE_POWER * self.drawn:
            return 100 * power / self.drawn  # at most
        return self.mean("power_share")

    @property
    def _power_of_all(self) -> float | None:
        """`power_share`, of all GPUs of its node that draw as much."""
        share, own, common = self.power_share, self.mean("power"), self.common("power")
        return share * common / own if share is not None and own and common else share

    @property
    def dram(self) -> float | None:
        """Percent of what the memory can move; of AMD's GPUs as their driver tells it."""
        dram = self.mean("dram")
        return self.mean("copies") if dram is None and self.told_by[-1].source.probe.startswith(_AMD) else dram

    @property
    def capped(self) -> bool:
        """Whether a power limit holds its clocks down most of the time."""
        return (self.held_by("power") or self.mean("capped") or 0.0) >= HELD_DOWN

    def held_by(self, what: str) -> float | None:
        """Percent of the time that power, heat or the brake held its clocks down: by a counter of time, by what is told of the
        time between samples, or by the samples of a window. None where nobody tells, or of one moment alone."""
        flag, share, counter = _HOLDS[what]
        flags = [flag, "warm"] if what == "heat" else [flag]
        told = [self.mean(share), self._grown(counter)]
        told += [self.mean(name) for name in flags if len(self.samples.get(name, ())) >= WINDOW]
        return max((v for v in told if v is not None), default=None)

    def _grown(self, counter: str) -> float | None:
        """Percent of the time between its first and last reading by which a counter of microseconds grew. It begins anew with the
        driver, so only growth counts; one that grows faster than time is in another unit."""
        shares = []
        for fact in {o.fact for o in self.samples.get(counter, ())}:
            timed = [
                o for o in self.samples[counter] if o.fact == fact and o.at is not None and o.clock is Clock.REALTIME
            ]
            span = (timed[-1].at or 0) - (timed[0].at or 0) if timed else 0
            grown = sum(max(0.0, _number(b) - _number(a)) for a, b in pairwise(timed))
            if span > 0 and (share := 100_000 * grown / span) <= 105:
                shares.append(min(100.0, share))
        return max(shares, default=None)

    @cached_property
    def pcie(self) -> float | None:
        """Percent of what the link carries in one direction; by model where the input names no generation or width."""
        if (share := self.mean("pcie_share")) is not None:
            return share
        return self._of_link("pcie", self._lanes(self.pcie_known or self.pcie_assumed or 0))

    def _lanes(self, generation: float) -> float:
        """GB/s in one direction of all its lanes, 16 where nobody told them."""
        return LANE.get(int(generation), 0.0) * (self.number("gpu.pcie.width") or 16)

    @cached_property
    def pcie_known(self) -> float | None:
        """The generation of the link, by the input or by the model."""
        return self.number("gpu.pcie.gen") or (self.models[0].pcie_generation if len(self.models) == 1 else None)

    @cached_property
    def pcie_assumed(self) -> int | None:
        """Where nobody told the link nor the model: the generation of the slowest link that carries the traffic, of models that it can be."""
        known = [v for way in ("rx", "tx") if (v := self.common(f"pcie_{way}")) is not None]
        if self.pcie_known or self.mean("pcie_share") is not None or self.models or not known:
            return None
        built = {m.pcie_generation for m in self.possible} or set(LANE)
        return next((g for g in LANE if g >= PCIE_LEAST and g in built and self._lanes(g) >= max(known)), None)

    @cached_property
    def nvlink(self) -> float | None:
        """Percent of what all NVLinks of the model carry in one direction."""
        return self._of_link("nvlink", self.nvlink_known or self.nvlink_assumed or 0.0)

    @property
    def nvlink_known(self) -> float | None:
        """GB/s in one direction of all NVLinks of its model."""
        link = self.models[0].nvlink if len(self.models) == 1 else None
        return link.gbs / 2 if link else None

    @cached_property
    def nvlink_assumed(self) -> float | None:
        """Where nobody told the model: GB/s in one direction of the slowest links that carry the traffic, of models that it can be."""
        known = [v for way in ("rx", "tx") if (v := self.common(f"nvlink_{way}")) is not None]
        if len(self.models) == 1 or not known:
            return None
        links = {m.nvlink.gbs for m in self.possible if m.nvlink and m.nvlink.gbs >= NVLINK_LEAST}
        return min((gbs / 2 for gbs in links if gbs / 2 >= max(known)), default=None)

    @property
    def both_ways(self) -> float | None:
        """Percent of the traffic of the busier direction over PCIe that flows the other way."""
        rx, tx = self.mean("pcie_rx"), self.mean("pcie_tx")
        return 100 * min(rx, tx) / max(rx, tx) if rx is not None and tx is not None and max(rx, tx) > 0 else None

    def _of_link(self, name: str, carries: float) -> float | None:
        known = [v for way in ("rx", "tx") if (v := self.mean(f"{name}_{way}")) is not None]
        return 100 * max(known) / carries if known and carries > 0 else None

    @property
    def clock_lost(self) -> float | None:
        """Percent that the SM clock lies below its highest; of one that nobody told, below the least that it can be, if it does at all."""
        clock, most = self.mean("clock"), self.highest_clock
        if clock is None or (most is None and clock >= CLOCK_LEAST):
            return None
        return min(100.0, max(0.0, 100 - 100 * clock / (most or CLOCK_LEAST)))

    @property
    def highest_clock(self) -> float | None:
        """MHz of its highest SM clock, by the input or by its model."""
        return self.number("gpu.clock.sm.max") or (self.models[0].max_clock_mhz if len(self.models) == 1 else None)

    @property
    def seconds(self) -> float:
        """Time between the first and last sample, as far as their times are told."""
        told = self.samples.get("busy") or self.samples["engine"]
        timed = [o.at for o in told if o.at is not None and o.clock is told[-1].clock]
        return (max(timed) - min(timed)) / 10**9 if timed else 0.0

    @property
    def waves(self) -> bool:
        """Whether it goes up and down, by its samples, or by those of a captured window."""
        return self.down_share is not None or (self.mean("waves") or 0.0) >= HELD_DOWN

    @cached_property
    def down_share(self) -> float | None:
        """Percent of the samples in which it does nothing, where its work goes up and down: no kernel is there, or one that waits,
        by SM active, or by power where nobody read that."""
        limit, sm = self.limit, [_number(o) for o in self.samples.get("sm", ())]
        power = [100 * _number(o) / limit for o in self.samples.get("power", ())] if limit and not sm else []
        for found, down, full in ((self.over, DOWN, FULL), (sm, DOWN, FULL), (power, LITTLE_POWER, UP)):
            if in_waves(found, down, full):
                return 100 * sum(v <= down for v in found) / len(found)
        return None

    @cached_property
    def kind(self) -> str:
        """Its class; empty where the figures do not tell."""
        if self.divided:  # its own readings tell nobody's work, but for what all of it computes
            return bound if self.busy >= BUSY and (bound := self._bound()) in ("fp32_bound", "fp64_bound") else ""
        if self.waves:
            return "in_waves"
        if self.least:
            return self._bound()
        if self.busy >= BUSY and (held := self.mean("held")) is not None and held < CONTEXT_MIB:
            return ""  # no program is on it: some drivers say so of a GPU that they have just woken to be asked
        if self.busy < FREE:
            return self._idle()
        if self.busy < BUSY:
            return self._linked() or self._part_time()
        if self._slow_for_no_reason:
            return "throttled"
        return self._bound() or self._doing_little()

    @property
    def _slow_for_no_reason(self) -> bool:
        """Whether its clock is below half of its highest, and neither the driver nor what it draws says why: at its power limit it
        can draw no more, whoever names the limit."""
        lost = self.clock_lost or 0.0
        if lost <= HELD_DOWN or self.held or self.draws_all:
            return False
        small = self.mean("power") is None and self.design is not None and self.design <= LOW_POWER_CARD
        return lost > FAR_DOWN or not small

    @property
    def draws_all(self) -> bool:
        """Whether it draws the power that its limit allows: the one told, else that of its model, else of a model that it can be."""
        power, limit = self.mean("power"), self.limit
        if power is None:
            return False
        if limit is not None:
            return 100 * power >= AT_LIMIT * limit
        most = self.number("gpu.clock.sm.max")
        return any(
            m.tdp_w and m.tdp_w <= SMALL_CARD and 100 * power >= AT_LIMIT * m.tdp_w and most in (None, m.max_clock_mhz)
            for m in self.possible
        )

    @property
    def held(self) -> bool:
        """Whether the driver says most of the time what holds its clocks down."""
        told = ("slowed", "hot", "braked", "warm", "set", "capped")
        shares = [self.mean(name) for name in told] + [self.held_by(what) for what in _HOLDS]
        return max(share or 0.0 for share in shares) >= HELD_DOWN

    def _part_time(self) -> str:
        """Of a GPU that is busy for some of a window: whether it is so all along, which neither requests nor a start or an end are."""
        if len(self.over) < WINDOW:
            return ""
        apart = sum(abs(v - self.busy) for v in self.over) / len(self.over)
        return "part_time" if self.busy < PART_TIME and apart <= STEADY_LOAD * self.busy else "working"

    def _idle(self) -> str:
        if max(self.mean("sm") or 0.0, self.mean("tensor") or 0.0, self.mean("dram") or 0.0) >= FREE:
            return ""
        own = ASCEND_OWN_MIB if self.is_ascend else 0.0
        if (self.mean("held") or 0.0) >= HOLDS_MIB + own or (self.mean("held_share") or 0.0) >= HELD_SHARE:
            return "held_idle"
        return "allocated_idle" if self.given or self.number("gpu.processes") else "idle"

    def _bound(self) -> str:
        """What a GPU that works is bound by; empty where nothing stands out."""
        dram = self.dram
        if linked := self._linked():
            return linked
        if (self.common("tensor") or 0.0) >= TENSOR_GOOD:
            return "tensor_bound"
        tensor = self.mean("tensor")
        # SMs that hold warps nearly always may well run matrix products where nobody read the tensor cores.
        little = tensor < TENSOR_SOME if tensor is not None else (self.mean("sm") or 0.0) < MANY_SMS
        if dram is not None and (dram >= DRAM_FULL or (dram >= DRAM_NEAR and little)):
            return "memory_bound"
        for kind in (
            "fp64",
            "fp32",
        ):  # NVIDIA's profiling counters need Volta, and every GPU with them has tensor cores
            if (active := self.mean(kind) or 0.0) >= PLAIN_PIPES and tensor is not None and tensor < TENSOR_NONE:
                return "fp32_work" if kind == "fp32" and active < PRODUCTS else f"{kind}_bound"
        return ""

    def _linked(self) -> str:
        """Which of its links is full while its tensor cores do little; empty where none is."""
        for name, own in (("pcie", self.pcie), ("nvlink", self.nvlink)):
            if own is None or (self.mean("tensor") or 0.0) >= TENSOR_GOOD:
                continue
            share = self._link_of_all(name, own)
            assumed = (self.pcie_assumed if name == "pcie" else self.nvlink_assumed) is not None
            still = self.quiet or self._shares_weights if name == "pcie" else self._exchanges
            if (share >= LINK_FULL_ASSUMED and still) if assumed else share >= LINK_FULL[name]:
                return f"{name}_bound"
        return ""

    def _link_of_all(self, name: str, share: float) -> float:
        """The `share` of a link that is used, of all GPUs of its node with as much traffic."""
        ways = (f"{name}_rx", f"{name}_tx")
        own, common = (max(map(read, ways), key=lambda v: v or 0.0) for read in (self.mean, self.common))
        return share * common / own if own and common else share

    @property
    def _exchanges(self) -> bool:
        """Whether tensor cores, SMs and memory leave time for exchanging, which reads and writes memory itself."""
        return (
            (self.mean("tensor") or 0.0) < TENSOR_SOME
            and (self.mean("dram") or 0.0) < DRAM_ROOF
            and (self.mean("sm") or 0.0) < MANY_SMS
        )

    @property
    def _shares_weights(self) -> bool:
        """Whether as much flows out as in while memory is read for some of the time, as tensor parallel decoding without NVLink does.
        What fills no more than generation 3 is half of most links."""
        dram, reads = self.mean("dram"), self.mean("copies") or 0.0
        if (self.both_ways or 0.0) < ALIKE_WAYS or (self.pcie_assumed or 0) <= PCIE_LEAST:
            return False
        return (self.mean("tensor") or 0.0) < DRAM_SOME and (reads < HALF_READS if dram is None else dram < DRAM_ROOF)

    @property
    def quiet(self) -> bool:
        """Whether tensor cores and memory do little, as far as they were read."""
        # Memory utilisation is time with any read or write, so it tells less than how many there are. Of a slow clock the same take longer.
        dram = self.mean("dram")
        reads = dram is None and (self.mean("copies") or 0.0) >= DRAM_SOME and not self.held
        return (self.mean("tensor") or 0.0) < TENSOR_SOME and (dram or 0.0) < DRAM_LITTLE and not reads

    def _doing_little(self) -> str:
        """Of a GPU that is busy and that nothing binds: whether it does any work."""
        sm, tensor, dram, power = self.mean("sm"), self.mean("tensor"), self.mean("dram"), self._power_of_all
        quiet = self.quiet
        if power is not None and power < LITTLE_POWER and quiet:
            return "busy_idle"  # whatever the SMs hold: a kernel that spins on all of them draws as little
        if sm is not None:
            if sm < FEW_SMS and quiet and (power is None or power < HALF_POWER):
                return "busy_idle"
            little = tensor is not None and dram is not None and quiet and tensor + dram < DRAM_SOME
            if not little or self._pipes >= PLAIN_PIPES or (power is not None and power >= HALF_POWER):
                return "working"
            if self._moves <= DRAM_STILL:
                return "busy_idle"  # warps are there and nothing moves
            if sm < MANY_SMS or power is not None or not self._pipes_unread or self._few_warps:
                return "latency_bound"
            return "unseen"
        if power is None and self.capped:
            return "working"  # what is held at a power limit draws all that it may
        if self._memory_still and (power is None or power < SPINNING_POWER):
            return "busy_idle"  # a kernel all the time, and memory is neither read nor written
        if power is None and tensor is not None and dram is not None and max(tensor, dram) < TENSOR_NONE:
            return "busy_idle"
        told = power is not None or tensor is not None or any(self.held_by(what) is not None for what in _HOLDS)
        return "working" if told else ""

    @property
    def _memory_still(self) -> bool:
        """Whether memory is hardly read or written and tensor cores do nothing, as far as they were read; memory has to be."""
        moves = self.mean("copies") if self.dram is None else self.dram
        return moves is not None and moves <= DRAM_STILL and (self.mean("tensor") or 0.0) < TENSOR_NONE

    @property
    def _few_warps(self) -> bool:
        """Whether its SMs hold few of the warps that they can, of kernels of a network: those have work for tensor cores."""
        warps = self.mean("warps")
        return warps is not None and warps <= FEW_WARPS and (self.mean("tensor") or 0.0) > DRAM_STILL

    @property
    def _pipes(self) -> float:
        """Percent of the busiest of the pipes beside the tensor cores, as far as they were read."""
        return max(self.mean(name) or 0.0 for name in ("fp64", "fp32", "fp16"))

    @property
    def _pipes_unread(self) -> bool:
        """Whether nobody told what the pipes of plain FP32 and FP64 do."""
        return not any(name in self.samples for name in ("fp64", "fp32"))

    @property
    def _moves(self) -> float:
        """Percent of the busiest of tensor cores, memory and the other pipes, as far as they were read."""
        return max(self.mean("tensor") or 0.0, self.mean("dram") or 0.0, self._pipes)

    @property
    def cause(self) -> str:
        """What keeps a GPU busy that does next to nothing: whether its kernels read and write memory at all. Where the call
        is known in which its process waits, that says more."""
        if self._spins_between:
            return "spins_between"
        tensor = self.common("tensor")
        dram, sm, power = self.common("dram"), self.mean("sm"), self._power_of_all
        dram = self.common("copies") if dram is None else dram
        many = power is not None if sm is None else sm >= FEW_SMS  # what computes within registers moves nothing either
        if self.kind != "busy_idle" or self.held or dram is None or "gpu.window.waits_for" in self.static:
            return ""
        if max(dram, tensor or 0.0) > SPINS_AT_MOST:
            return "small_kernels"
        if many and (power is None or power >= LITTLE_POWER) and self._pipes_unread:
            return "pipes_unread" if tensor is None else "unread"
        return "stands_still" if self.alone else "spins"

    @property
    def _spins_between(self) -> bool:
        """Whether a kernel is there while its work is down."""
        return self.kind == "in_waves" and self.down_share is not None and not in_waves(self.over)

    @property
    def _guessed(self) -> bool:
        """Whether what would settle its class was not read, which no number of samples tells."""
        by_warps = self.kind == "latency_bound" and self.power_share is None and (self.mean("sm") or 0.0) >= MANY_SMS
        return self.cause.endswith("unread") or (by_warps and self._pipes_unread)

    @property
    def lost(self) -> float | None:
        """Percent of its time that is lost at most, by the counter that tells it; None where none does."""
        sm, power = self.mean("sm"), self.power_share
        known: float | None = None
        match self.kind:
            case "held_idle" | "allocated_idle":
                return 100.0
            case "in_waves":
                return None if self.least else self.down_share if self._spins_between else 100 - self.busy
            case "throttled":
                return self.clock_lost
            case "busy_idle" if sm is not None and sm >= FEW_SMS:  # a warp that waits counts as well
                known = self._moves
            case "latency_bound":
                known = self._moves
            case "busy_idle" | "pcie_bound" | "nvlink_bound":
                known = sm if sm is not None else power
            case "fp32_bound":
                known = self._of_peak()
        if known is None and self.busy >= BUSY and any(self.held_by(what) for what in ("heat", "brake")):
            return self.clock_lost
        return None if known is None else min(100.0, max(0.0, 100 - known))

    def _of_peak(self) -> float | None:
        """Percent of the TF32 peak that FP32 reaches on this model."""
        peaks = [m.peaks for m in self.models]
        plain, tensor = (peaks[0].get(Dtype.FP32), peaks[0].get(Dtype.TF32)) if len(peaks) == 1 else (None, None)
        return 100 * plain / tensor if plain and tensor else None

    @cached_property
    def shown(self) -> str:
        """The figures as they were read, for the excerpt."""
        read = ((word, self.mean(name)) for name, word in _CALLED.items())
        parts = [
            f"{word} {mean:.0f}" if mean >= 100 else f"{word} {mean:.3g}" for word, mean in read if mean is not None
        ]
        of = f", mean of {len(self.over)}" if len(self.over) > 1 else ""
        return ", ".join(parts) + of

    @property
    def sm_share(self) -> float | None:
        """SM active, which cannot be more than all of the time: DCGM's ratios overshoot a little."""
        sm = self.mean("sm")
        return None if sm is None else min(100.0, sm)

    def facts(self, gpu: Subject) -> Iterator[Observation]:
        """What there is to say of it, or of a MIG instance."""
        if gpu.scope is Scope.MIG:
            own: dict[str, Value] = {
                "class": self.kind,
                "busy": None if self.least else self.busy,
                "share": self.sm_share,
                "lost.share": self.lost,
                "owner": ", ".join(self.users[:SHOWN]) or None,
                "samples": len(self.over) if len(self.over) >= WINDOW else None,
            }
            for name, value in own.items():
                if value is not None:
                    yield self.told(f"mig.work.{name}", gpu, value, self.shown if name == "class" else "")
            return
        told: dict[str, Value] = {
            "gpu.work.class": self.kind or None,
            "gpu.work.busy": None if self.least else self.busy,
            # warps that are there and move nothing are no work
            "gpu.work.share": None if self.kind == "busy_idle" and (self.sm_share or 0.0) >= FEW_SMS else self.sm_share,
        }
        if self.mean("power") is not None:
            model = None if self.told_limit else self.limit
            told |= {
                "gpu.work.power": self.mean("power"),
                "gpu.work.power.limit": self.limit,
                "gpu.power.design": model,
            }
        window = len(self.over) >= WINDOW and not self._guessed
        told |= {"gpu.work.seconds": self.seconds if window else None, "gpu.work.samples": len(self.over) if window else None, "gpu.work.cause": self.cause or None,
                 "gpu.work.pcie.share": self.pcie, "gpu.work.nvlink.share": self.nvlink,
                 "gpu.work.clock.lost": self.clock_lost if self.busy >= BUSY else None,  # an idle one lowers its clocks itself
                 "gpu.work.idle.share": self.down_share,
                 "gpu.work.lost.share": self.lost, "gpu.work.at_stake": None if self.lost is None else round(24 * self.lost / 100, 1)}  # fmt: skip
        if self.pcie_known and self.kind == "pcie_bound":
            told["gpu.work.pcie.carries"] = self._lanes(self.pcie_known)
        told["gpu.work.pcie.assumed"] = self.pcie_assumed if self.kind == "pcie_bound" else None
        told["gpu.work.pcie.both"] = self.both_ways if self.kind == "pcie_bound" else None
        if self.kind == "nvlink_bound":
            told |= {"gpu.work.nvlink.carries": self.nvlink_known, "gpu.work.nvlink.assumed": self.nvlink_assumed}
        guessed = self.clock_lost is not None and not self.highest_clock
        told["gpu.clock.sm.least"] = CLOCK_LEAST if self.kind == "throttled" and guessed else None
        told["gpu.work.clock.lost.least"] = self.clock_lost if guessed and self.busy >= BUSY else None
        told["gpu.work.limit"] = self.at_limit or None
        told["gpu.work.power.normal"] = self.normal_limit if self.at_limit in ("lower", "lowered") else None
        told["gpu.work.owner"] = ", ".join(self.users[:SHOWN]) or None
        told["gpu.work.rank"] = self.rank
        told["gpu.work.programs"] = self.programs if self.programs > 1 else None
        told |= {f"gpu.work.held.{what}": self.held_by(what) for what in _HOLDS}
        for fact, value in told.items():
            if value is not None:
                yield self.told(fact, gpu, value, self._from(fact))
        if self.before is not None and (was := self.before.kind or self._worked_before):
            before = self.told("gpu.work.before", gpu, was, self.before.shown)
            first = self.since or self.told_by[0]
            if self.of:
                yield self.told("gpu.work.now.samples", gpu, len(self.over), f"the last {len(self.over)} of {self.of}")
                yield self.told("gpu.work.all.samples", gpu, self.of, "")
            yield replace(before, at=first.at if self.since or self.before.timed else None, clock=first.clock)
        if (self.busy >= BUSY or self.least) and not window:
            why = f"{len(self.over)} of {WINDOW} samples, which is no window: run gpudiag profile --pid PID"
            if self.cause == "pipes_unread":
                why = "what its tensor cores and pipes do was not read: a scrape with DCGM's profiling fields, or gpudiag profile --pid PID"
            elif self._guessed:
                why = "FP32 and FP64 active were not read: dcgmi dmon -e 1006,1007"
            yield replace(self.told("gpu.work.samples", gpu, None, ""), status=Status.NOT_ASKED, detail=why)

    @property
    def _worked_before(self) -> str:
        """That it was at work, where it drew far more than now that it does next to nothing, and no limit was told that says so."""
        before = self.before.mean("power") if self.before is not None else None
        little = self.kind == "busy_idle" and 100 * (self.mean("power") or 0.0) < HALF_POWER * (before or 0.0)
        return "working" if little else ""

    def _from(self, fact: str) -> str:
        """What one figure was read from."""
        if fact in ("gpu.power.design", "gpu.work.power.limit") and (name := self.static.get("gpu.name")):
            return str(name.value) if self.told_limit is None else ""
        return self.shown if fact == "gpu.work.class" else ""

    def told(self, fact: str, gpu: Subject, value: Value, shown: str) -> Observation:
        """One fact, with the place of the newest sample."""
        last = self.told_by[-1]
        source = Source("derived", last.source.call, last.source.line)
        value = round(value, 2) if isinstance(value, float) else value
        return Observation(fact, gpu, value, source=source, at=last.at, clock=last.clock, excerpt=shown, origin=Origin.DERIVED)  # fmt: skip
