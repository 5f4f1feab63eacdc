"""What a GPU really does: utilisation, activity of its parts, power, links and clocks of one source, read together.

Utilisation is the share of time with any kernel on the GPU (nvidia-smi manual), so it proves idleness and nothing else. What
tells work from waiting is SM active, the pipes and DRAM active (DCGM fields 1001-1008, NVML GPM), and where those were not
read the power drawn. Several samples of a source are read as their mean, and as waves where they go up and down.
Limits that the input does not name are those of the model (knowledge/gpus.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice, pairwise

from knowledge.derive.capture import LANE
from knowledge.derive.sharing import MPS_SERVER
from knowledge.gpus import Dtype, GpuSpec, candidates, find
from knowledge.observation import Clock, Observation, Origin, Scope, Source, Status, Subject, Value

# fact -> (what it tells, factor to percent, W or GB/s); what a capture says of its window stands beside a single sample
_LEVELS: Mapping[str, tuple[str, float]] = {
    "gpu.utilization.core": ("busy", 1), "gpu.activity.graphics": ("engine", 1), "gpu.activity.sm": ("sm", 1),
    "gpu.activity.tensor": ("tensor", 1), "gpu.activity.dram": ("dram", 1), "gpu.activity.fp16": ("fp16", 1),
    "gpu.activity.fp32": ("fp32", 1), "gpu.activity.fp64": ("fp64", 1), "gpu.utilization.memory": ("copies", 1),
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
    "gpu.power.limit", "gpu.power.limit.requested", "gpu.name", "gpu.window.waits_for", "gpu.pcie.gen", "gpu.pcie.width", "gpu.clock.sm.max", "gpu.processes",
    "gpu.memory.total",
})  # fmt: skip

_RANK_SETTINGS = (
    "RANK",
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "SLURM_PROCID",
)  # torchrun, MPI, Slurm: the first that is set
_PARTS = ("waves", "sm", "tensor", "dram", "fp32", "fp64")  # what works in a GPU
_PART = frozenset({"mig.profile", "mig.uuid", "mig.memory.total"})  # what tells that a GPU has this instance

# Thresholds in percent. SM active: NVIDIA's guide to the profiling metrics calls 0.5 and less ineffective and 0.8 necessary;
# DRAM active: the same guide has about 0.8 as the most that is reached. Power: waits in NCCL are reported at 152 of 700 W (H100)
# and 44 of 250 W (V100), 18 to 22 % of the limit (github.com/NVIDIA/nccl issues 968, 1550, 199). Tensor active of 38 is the
# least that published training runs reach as MFU (knowledge/data/ranges.yaml). The others are our own, set between those.
BUSY, FREE = 75.0, 5.0  # a kernel is there most of the time; hardly ever
FEW_SMS, MANY_SMS, LITTLE_POWER, HALF_POWER = 25.0, 80.0, 30.0, 60.0
TENSOR_GOOD, TENSOR_SOME, TENSOR_NONE = 38.0, 20.0, 5.0
DRAM_ROOF, DRAM_SOME, DRAM_LITTLE, DRAM_STILL = 50.0, 30.0, 25.0, 3.0
PLAIN_PIPES = 20.0
LINK_FULL = {"pcie": 60.0, "nvlink": 50.0}
# Where nobody told the link: more of the slowest that carries the traffic, as it may well be a faster one. Generation 3 is that of Volta.
LINK_FULL_ASSUMED, PCIE_LEAST = 70.0, 3
# Where nobody told the highest SM clock: no data-centre GPU since Volta has a lower one (V100 PCIe 1380 MHz, A100 1410, T4 1590,
# H100 1980, MI300X 2100: their data sheets).
CLOCK_LEAST = 1380.0
HELD_DOWN = 50.0  # of the samples, and of the highest clock
# What holds clocks down: shares of samples, of the time between two, and counters of time.
_HOLDS = {
    "power": ("capped", "by_power", "power_time"),
    "heat": ("hot", "by_heat", "heat_time"),
    "brake": ("braked", "", "brake_time"),
}
CONTEXT_MIB = 64.0  # less than any CUDA context takes (some 100 to 500 MiB)
HOLDS_MIB = 2048.0  # more than contexts and libraries take
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

PEERS = 3  # others that are as busy: fewer have no middle
ALIKE, IN_STEP = 0.3, 0.75  # how near to their middle, and what share of them: ranks of one job do the same
_CALLED = {
    "busy": "util", "engine": "engine", "sm": "SM", "tensor": "tensor", "dram": "DRAM", "fp32": "FP32", "fp64": "FP64",
    "fp16": "FP16", "copies": "memory util", "power": "W", "power_share": "% of power", "pcie_rx": "PCIe in", "pcie_tx": "PCIe out",
    "pcie_share": "PCIe", "nvlink_rx": "NVLink in", "nvlink_tx": "NVLink out", "clock": "MHz",
}  # fmt: skip

# Worst first: of sources that differ the worst counts, so more evidence is never milder.
_ORDER = (
    "throttled", "busy_idle", "pcie_bound", "nvlink_bound", "in_waves", "fp32_bound", "fp64_bound", "latency_bound",
    "allocated_idle", "held_idle", "memory_bound", "tensor_bound", "working", "idle",
)  # fmt: skip


_Samples = dict[str, list[Observation]]  # what one source tells of one GPU, by what it is, in the order of time or line
_Static = Mapping[str, Observation]


def enrich(observations: Sequence[Observation]) -> list[Observation]:
    """The batch with `gpu.work.*` of each GPU of which somebody told how busy it is, and `mig.work.*` of each part of one that is divided."""
    seen = _Seen(observations)
    works: dict[Subject, _Work] = {}
    gpus: dict[Subject, _Work] = {}
    for subject in sorted(seen.reads, key=str):
        told = [w for w in seen.works(subject) if w.samples]
        if judged := [w for w in told if w.kind]:
            works[subject] = min(judged, key=lambda w: (_ORDER.index(w.kind), -len(w.over), -len(w.shown), w.shown))
        if subject.scope is Scope.GPU and told:
            gpus[subject] = works.get(subject, told[0])
    beside = list(_beside(gpus))
    # Of what no class fits the figures are told too where its peers do more or less: who they are about, and over how long.
    unclassed = {o.subject: gpus[o.subject] for o in beside if o.subject not in works}
    alone = (o for subject, work in {**works, **unclassed}.items() for o in work.facts(subject))
    return [*observations, *alone, *beside, *_silent(seen.parts, works)]


class _Seen:
    """What was told: readings of each GPU by their source, what holds for the device whoever says so, and who is on it."""

    def __init__(self, observations: Sequence[Observation]) -> None:
        self.reads: dict[Subject, dict[str, _Samples]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
        self.past: dict[Subject, dict[str, list[Observation]]] = defaultdict(lambda: defaultdict(list))
        self.static: dict[Subject, dict[str, Observation]] = defaultdict(dict)
        self.given: set[Subject] = set()
        self.parts: dict[Subject, Observation] = {}
        self.users: dict[Subject, set[Subject]] = defaultdict(set)
        self.servers: set[Subject] = set()  # of MPS: they work for others
        self.ranks: dict[Subject, set[str]] = defaultdict(set)  # of a process, and of a GPU where its rank names it
        for o in observations:
            if o.status is Status.OK:
                self._take(o)

    def _take(self, o: Observation) -> None:
        level = _level(o) if o.subject.scope in (Scope.GPU, Scope.MIG) else None
        if o.source.call.startswith("history:"):
            if level:
                self.past[o.subject][o.source.probe].append(o)
            return
        if o.subject.scope is Scope.MIG and (level or o.fact in _PART):
            self.parts.setdefault(o.subject, o)
        if o.fact == "pod.uses_gpu":
            self.given.add(_used(o))
        elif o.fact == "process.uses_gpu":
            self.users[_used(o)].add(o.subject)
        elif o.fact == "rank.uses_gpu":
            self.ranks[_used(o)].add(o.subject.id)
        elif o.fact == "process.is_rank":
            self.ranks[o.subject].add(str(o.value).removeprefix("rank:"))
        elif o.fact == "process.env" and isinstance(o.value, tuple):
            set_to = dict(str(v).split("=", 1) for v in o.value if "=" in str(v))
            self.ranks[o.subject] |= set(islice((set_to[name] for name in _RANK_SETTINGS if name in set_to), 1))
        elif o.fact in ("process.name", "process.comm") and MPS_SERVER in str(o.value):
            self.servers.add(o.subject)
        elif o.fact in _STATIC and o.subject.scope is Scope.GPU:
            known = self.static[o.subject]
            known[o.fact] = max(known.get(o.fact, o), o, key=_later)
        elif level and isinstance(o.value, int | float):
            self.reads[o.subject][_together(o)][level[0]].append(o)

    def works(self, subject: Subject) -> Iterator[_Work]:
        """What each source tells of `subject`; then each together with what it told before, as far as it held its memory all the time."""
        static, given, programs = self.static[subject], subject in self.given, len(self.users[subject] - self.servers)
        ranks = self.ranks[subject].union(*(self.ranks[p] for p in self.users[subject]))
        rank = next(iter(ranks)) if len(ranks) == 1 else None
        divided = any(part.parent == subject for part in self.parts)  # the mode alone divides nothing
        for _, samples in sorted(self.reads[subject].items()):
            yield _Work(samples, static, given, programs, rank, divided)
        for probe, before in sorted(self.past[subject].items()):
            whole: _Samples = defaultdict(list)
            now = (o for its in self.reads[subject].values() for found in its.values() for o in found)
            for o in (*before, *(o for o in now if o.source.probe == probe)):
                whole[_LEVELS[f"gpu.{o.fact[4:]}"][0]].append(o)
            if _steady(whole.get("held", ())):
                yield _Work(whole, static, given, programs, rank, divided)


def in_waves(busy: Sequence[float]) -> bool:
    """Whether percentages over time go up and down: both sides for a good part of a window, and back and forth, not once as at a start."""
    if len(busy) < WINDOW:
        return False
    sides = [v >= UP for v in busy if v >= UP or v <= DOWN]
    least = PART * len(busy) / 100
    return sum(a != b for a, b in pairwise(sides)) >= WAVES and least <= sum(sides) <= len(sides) - least


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


def _silent(parts: Mapping[Subject, Observation], works: Mapping[Subject, _Work]) -> Iterator[Observation]:
    """Of GPUs that are divided by MIG, how many instances there are of which nobody told how busy they are."""
    divided: dict[Subject, list[Subject]] = defaultdict(list)
    for part in sorted(parts, key=str):
        if (whole := part.up(Scope.GPU)) is not None:
            divided[whole].append(part)
    for whole, its in divided.items():
        first, silent = parts[its[0]], [part for part in its if part not in works]
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
    """How much each GPU works beside the others of its node that are as busy, where there are enough of them: by SM active, and
    where that was read of fewer than the power, by power. Others that are not alike do not work in step: nothing is compared."""
    busy = {g: w for g, w in works.items() if w.busy >= BUSY or w.least}
    by = {name: {g: v for g, w in busy.items() if (v := w.mean(name)) is not None} for name in ("sm", "power")}
    what = "sm" if len(by["sm"]) >= len(by["power"]) else "power"
    if len(by[what]) < 2:
        return
    from statistics import median  # loads fractions and decimal

    for gpu, own in by[what].items():
        if works[gpu].kind == "throttled" or (works[gpu].held and (works[gpu].clock_lost or 0.0) > ALIKE * 100):
            continue  # why it does less is known
        others = [g for g in by[what] if g != gpu and g.host == gpu.host]
        enough = (
            PEERS if works[gpu].told_by[-1].origin is not Origin.TOLD else 2
        )  # who says "the others" means all of them
        middle = median(by[what][g] for g in others) if len(others) >= enough else 0.0
        alike = sum(abs(by[what][g] - middle) <= ALIKE * middle for g in others)
        if middle > 0 and alike >= IN_STEP * len(others):
            shown = f"{_CALLED[what]} {own:.4g} beside {middle:.4g}, the median of {len(others)} others"
            yield works[gpu].told("gpu.work.peers.share", gpu, float(f"{100 * own / middle:.3g}"), shown)
            idle = sum(works[g].kind == "busy_idle" for g in others)
            yield works[gpu].told(
                "gpu.work.peers.idle", gpu, 100 * idle / len(others), f"{idle} of {len(others)} others"
            )


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
        self, samples: _Samples, static: _Static, given: bool, programs: int, rank: str | None, divided: bool
    ) -> None:
        self.samples, self.static, self.given, self.programs, self.rank = samples, static, given, programs, rank
        self.divided = divided
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

    def mean(self, name: str) -> float | None:
        """The mean of the samples of `name`."""
        found = self.samples.get(name)
        return _mean(found) if found else None

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
    def design(self) -> float | None:
        """W that the model is built for; of several variants the most, of which less is drawn than of any other."""
        known = [m.tdp_w for m in self.models if m.tdp_w]
        return max(known) if known else None

    @property
    def limit(self) -> float | None:
        """W that the power is held against."""
        return self.told_limit or self.design

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
        return 100 * power / limit if power is not None and limit else self.mean("power_share")

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
        """Where nobody told the link nor the model: the generation of the slowest link that carries the traffic."""
        known = [v for way in ("rx", "tx") if (v := self.mean(f"pcie_{way}")) is not None]
        if self.pcie_known or self.mean("pcie_share") is not None or self.models or not known:
            return None
        return next((g for g in LANE if g >= PCIE_LEAST and self._lanes(g) >= max(known)), None)

    @cached_property
    def nvlink(self) -> float | None:
        """Percent of what all NVLinks of the model carry in one direction."""
        link = self.models[0].nvlink if len(self.models) == 1 else None
        return self._of_link("nvlink", link.gbs / 2 if link else 0.0)

    def _of_link(self, name: str, carries: float) -> float | None:
        known = [v for way in ("rx", "tx") if (v := self.mean(f"{name}_{way}")) is not None]
        return 100 * max(known) / carries if known and carries > 0 else None

    @property
    def clock_lost(self) -> float | None:
        """Percent that the SM clock lies below its highest; of one that nobody told, below the least that it can be, if it does at all."""
        clock, most = self.mean("clock"), self.number("gpu.clock.sm.max")
        if clock is None or (most is None and clock >= CLOCK_LEAST):
            return None
        return min(100.0, max(0.0, 100 - 100 * clock / (most or CLOCK_LEAST)))

    @property
    def seconds(self) -> float:
        """Time between the first and last sample, as far as their times are told."""
        told = self.samples.get("busy") or self.samples["engine"]
        timed = [o.at for o in told if o.at is not None and o.clock is told[-1].clock]
        return (max(timed) - min(timed)) / 10**9 if timed else 0.0

    @property
    def waves(self) -> bool:
        """Whether it goes up and down, by its samples, or by those of a captured window."""
        return in_waves(self.over) or (self.mean("waves") or 0.0) >= HELD_DOWN

    @cached_property
    def kind(self) -> str:
        """Its class; empty where the figures do not tell."""
        if self.divided:  # its own readings tell nobody's work
            return ""
        if self.waves:
            return "in_waves"
        if self.least:
            return self._bound()
        if self.busy >= BUSY and (held := self.mean("held")) is not None and held < CONTEXT_MIB:
            return ""  # no program is on it: some drivers say so of a GPU that they have just woken to be asked
        if self.busy < FREE:
            return self._idle()
        if self.busy < BUSY:
            return self._linked() or ("working" if len(self.over) >= WINDOW else "")
        if (self.clock_lost or 0.0) > HELD_DOWN and not self.held:  # where a reason is told, that is the finding
            return "throttled"
        return self._bound() or self._doing_little()

    @property
    def held(self) -> bool:
        """Whether the driver says most of the time what holds its clocks down."""
        told = ("slowed", "hot", "braked", "warm", "set", "capped")
        shares = [self.mean(name) for name in told] + [self.held_by(what) for what in _HOLDS]
        return max(share or 0.0 for share in shares) >= HELD_DOWN

    def _idle(self) -> str:
        if max(self.mean("sm") or 0.0, self.mean("tensor") or 0.0, self.mean("dram") or 0.0) >= FREE:
            return ""
        if (self.mean("held") or 0.0) >= HOLDS_MIB or (self.mean("held_share") or 0.0) >= HELD_SHARE:
            return "held_idle"
        return "allocated_idle" if self.given or self.number("gpu.processes") else "idle"

    def _bound(self) -> str:
        """What a GPU that works is bound by; empty where nothing stands out."""
        tensor, dram = self.mean("tensor"), self.mean("dram")
        if linked := self._linked():
            return linked
        if tensor is not None and tensor >= TENSOR_GOOD:
            return "tensor_bound"
        if dram is not None and dram >= DRAM_ROOF:
            return "memory_bound"
        for kind in (
            "fp64",
            "fp32",
        ):  # NVIDIA's profiling counters need Volta, and every GPU with them has tensor cores
            if (self.mean(kind) or 0.0) >= PLAIN_PIPES and tensor is not None and tensor < TENSOR_NONE:
                return f"{kind}_bound"
        return ""

    def _linked(self) -> str:
        """Which of its links is full while its tensor cores do little; empty where none is."""
        for name, share in (("pcie", self.pcie), ("nvlink", self.nvlink)):
            if share is None or (self.mean("tensor") or 0.0) >= TENSOR_GOOD:
                continue
            assumed = name == "pcie" and self.pcie_assumed is not None
            if (share >= LINK_FULL_ASSUMED and self.quiet) if assumed else share >= LINK_FULL[name]:
                return f"{name}_bound"
        return ""

    @property
    def quiet(self) -> bool:
        """Whether tensor cores and memory do little, as far as they were read."""
        # Memory utilisation is time with any read or write, so it tells less than how many there are. Of a slow clock the same take longer.
        dram = self.mean("dram")
        reads = dram is None and (self.mean("copies") or 0.0) >= DRAM_SOME and not self.held
        return (self.mean("tensor") or 0.0) < TENSOR_SOME and (dram or 0.0) < DRAM_LITTLE and not reads

    def _doing_little(self) -> str:
        """Of a GPU that is busy and that nothing binds: whether it does any work."""
        sm, tensor, dram, power = self.mean("sm"), self.mean("tensor"), self.mean("dram"), self.power_share
        quiet = self.quiet
        if power is not None and power < LITTLE_POWER and quiet:
            return "busy_idle"  # whatever the SMs hold: a kernel that spins on all of them draws as little
        if sm is not None:
            if sm < FEW_SMS and quiet and (power is None or power < HALF_POWER):
                return "busy_idle"
            pipes = max(self.mean(name) or 0.0 for name in ("fp64", "fp32", "fp16"))
            blind = sm >= MANY_SMS and power is None and not any(name in self.samples for name in ("fp64", "fp32"))
            waits = tensor is not None and dram is not None and quiet and pipes < PLAIN_PIPES and not blind
            return "latency_bound" if waits and (power is None or power < HALF_POWER) else "working"
        copies = self.mean("copies")
        if power is None and self.capped:
            return "working"  # what is held at a power limit draws all that it may
        if power is None and copies is not None and copies <= DRAM_STILL and (tensor or 0.0) < TENSOR_NONE:
            return "busy_idle"  # a kernel all the time, and memory is neither read nor written
        if power is None and tensor is not None and dram is not None and max(tensor, dram) < TENSOR_NONE:
            return "busy_idle"
        told = power is not None or tensor is not None or any(self.held_by(what) is not None for what in _HOLDS)
        return "working" if told else ""

    @property
    def cause(self) -> str:
        """What keeps a GPU busy that does next to nothing: whether its kernels read and write memory at all. Where the call
        is known in which its process waits, that says more."""
        tensor = self.mean("tensor")
        dram = self.mean("dram") if self.mean("dram") is not None else self.mean("copies")
        if self.kind != "busy_idle" or self.held or dram is None or "gpu.window.waits_for" in self.static:
            return ""
        return "spins" if max(dram, tensor or 0.0) <= DRAM_STILL else "small_kernels"

    @property
    def lost(self) -> float | None:
        """Percent of its time that is lost at most, by the counter that tells it; None where none does."""
        sm, power = self.mean("sm"), self.power_share
        match self.kind:
            case "held_idle" | "allocated_idle":
                return 100.0
            case "in_waves":
                return None if self.least else 100 - self.busy
            case "throttled":
                return self.clock_lost
            case "busy_idle" | "pcie_bound" | "nvlink_bound":
                known = sm if sm is not None else power
            case "latency_bound":
                known = max(self.mean(name) or 0.0 for name in ("tensor", "dram", "fp64", "fp32", "fp16"))
            case "fp32_bound":
                known = self._of_peak()
            case _:
                known = None
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
        parts = [f"{word} {mean:.3g}" for name, word in _CALLED.items() if (mean := self.mean(name)) is not None]
        of = f", mean of {len(self.over)}" if len(self.over) > 1 else ""
        return ", ".join(parts) + of

    def facts(self, gpu: Subject) -> Iterator[Observation]:
        """What there is to say of it, or of a MIG instance."""
        if gpu.scope is Scope.MIG:
            own: dict[str, Value] = {
                "class": self.kind,
                "busy": None if self.least else self.busy,
                "share": self.mean("sm"),
                "lost.share": self.lost,
                "samples": len(self.over) if len(self.over) >= WINDOW else None,
            }
            for name, value in own.items():
                if value is not None:
                    yield self.told(f"mig.work.{name}", gpu, value, self.shown if name == "class" else "")
            return
        told: dict[str, Value] = {
            "gpu.work.class": self.kind or None,
            "gpu.work.busy": None if self.least else self.busy,
            "gpu.work.share": self.mean("sm"),
        }
        if self.mean("power") is not None:
            model = None if self.told_limit else self.design
            told |= {
                "gpu.work.power": self.mean("power"),
                "gpu.work.power.limit": self.limit,
                "gpu.power.design": model,
            }
        window = len(self.over) >= WINDOW
        told |= {"gpu.work.seconds": self.seconds if window else None, "gpu.work.samples": len(self.over) if window else None, "gpu.work.cause": self.cause or None,
                 "gpu.work.pcie.share": self.pcie, "gpu.work.nvlink.share": self.nvlink,
                 "gpu.work.clock.lost": self.clock_lost if self.busy >= BUSY else None,  # an idle one lowers its clocks itself
                 "gpu.work.idle.share": 100 * sum(v <= DOWN for v in self.over) / len(self.over) if in_waves(self.over) else None,
                 "gpu.work.lost.share": self.lost, "gpu.work.at_stake": None if self.lost is None else round(24 * self.lost / 100, 1)}  # fmt: skip
        if self.pcie_known and self.kind == "pcie_bound":
            told["gpu.work.pcie.carries"] = self._lanes(self.pcie_known)
        told["gpu.work.pcie.assumed"] = self.pcie_assumed if self.kind == "pcie_bound" else None
        told["gpu.clock.sm.least"] = (
            CLOCK_LEAST if self.kind == "throttled" and not self.number("gpu.clock.sm.max") else None
        )
        told["gpu.work.rank"] = self.rank
        told["gpu.work.programs"] = self.programs if self.programs > 1 else None
        told |= {f"gpu.work.held.{what}": self.held_by(what) for what in _HOLDS}
        for fact, value in told.items():
            if value is not None:
                yield self.told(fact, gpu, value, self._from(fact))
        if (self.busy >= BUSY or self.least) and len(self.over) < WINDOW:
            why = f"{len(self.over)} of {WINDOW} samples, which is no window: run gpudiag profile --pid PID"
            yield replace(self.told("gpu.work.samples", gpu, None, ""), status=Status.NOT_ASKED, detail=why)

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
