"""What stated counters of a GPU mean where no rule can draw a class from them: by the measure, the kind of work and the model.

A figure alone tells no fault, and never that all is well; what is left to read is always named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from assistant.render.labels import listed
from assistant.render.sheet import Items, Part
from assistant.topics.range import judged
from knowledge.gpus import all_specs, candidates
from knowledge.language import Text
from knowledge.lazy import lazy
from knowledge.observation import Observation, Scope, Status
from knowledge.ranges import Band, Range, ranges
from knowledge.readings import scales
from knowledge.workloads import Workload, named

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from assistant.dialogue._words import Words

# As in knowledge/derive/working.py: a kernel is there most of the time or hardly ever; percent of the power limit of waits, and of work.
BUSY, QUIET, LITTLE_POWER, HALF_POWER, ROOF = 75.0, 10.0, 30.0, 60.0, 50.0
LEAST_DESIGN = 250.0  # W of the smallest board of those whose power nobody takes for another figure
WARM = 80.0  # °C from which on the scale of core temperatures (readings.yaml) calls none usual
_WORST = ("bad", "poor", "fair", "open", "good")
# Models that power is held against where nobody names one: from the smallest board to the largest.
_KNOWN = ("L4", "T4", "A10", "V100", "L40S", "A100", "H100", "B200")
LOOKS = (
    "dcgmi dmon -e 155,203,1002,1004,1005,1007 -c 30",
    "nvidia-smi --query-gpu=name,utilization.gpu,power.draw,power.limit,clocks.sm --format=csv -l 1",
    "gpudiag profile --pid PID",
)


class Judged(NamedTuple):
    """A stated figure with its measure and the band in which it lies, for the kind of work that was named."""

    observation: Observation
    measure: Range
    band: Band
    workload: Workload | None


def quiet(turn: Turn, said: Sequence[Observation]) -> Text | None:
    """Why a GPU that is idle in the phase that was named is no fault; None where none was named, or it is not idle."""
    phase = next((w for w in named(turn.query.text) if w.quiet), None)
    busy = [_number(o) for o in said if o.fact == "gpu.utilization.core"]
    idle = max(busy) < QUIET if busy else _IDLE.search(turn.query.text) is not None
    if phase is None or not idle or any(o.fact != "gpu.utilization.core" for o in said):
        return None
    return Text(f"Usual while {phase.title.en}: {phase.quiet.en}.", f"{phase.title.zh}时属常见：{phase.quiet.zh}。")


def headline(turn: Turn, said: Sequence[Observation]) -> tuple[Text, list[Judged], bool] | None:
    """The first line about stated counters, each of them judged, and whether it calls them fine; None where none is a counter of work."""
    own, told, name = _own(turn, said)
    warm = any(v >= WARM for fact, v in told.items() if fact.startswith("gpu.temperature."))
    if not warm and (fine := _at_limit(told, name, turn.query.text)) is not None:
        return fine, [], True
    if not warm and (fine := _as_busy(told, name)) is not None:
        return fine, [], True
    if (alone := _shared(told) or _by_power(told, name)) is not None:
        return alone, [], False
    rows = _judged(own, named(turn.query.text))
    if not rows:
        return None
    figures = {r.observation.fact for r in rows}
    if figures == {"gpu.utilization.core"}:
        return _busy(rows[0], turn.query.text) if _number(rows[0].observation) >= BUSY else _idle(rows[0]), rows, False
    rows.sort(
        key=lambda r: (
            not _roof(r, told),
            r.observation.fact == "gpu.utilization.core",
            not _full(r),
            _WORST.index(r.band.rating),
        )
    )
    return _said(rows[0]), rows, rows[0].band.rating == "good"


def _as_busy(told: Mapping[str, float], name: str) -> Text | None:
    """Of a GPU that draws most of what it may at a clock that nothing holds down, and is not warm: so a busy one looks.
    None where a part of it was read, or how busy it is, which say more."""
    power, most, clock = told.get("gpu.power.draw"), _most(told, name), told.get("gpu.clock.sm")
    if power is None or not most or clock is None or any(fact.startswith(_OF_WORK) for fact in told):
        return None
    if not (HALF_POWER <= 100 * power / most <= 200 - AT_LIMIT and clock >= SLOW_CLOCK):
        return None
    whose = Text(f"a busy {name}", f"繁忙的 {name} ") if name else Text("a busy GPU", "繁忙的 GPU ")
    return Text(
        f"Usual for {whose.en}: {power:g} of {most:g} W at {clock:g} MHz, and nothing told is warm. Whether it is as fast as its neighbours, their clocks and power under the same load tell.",
        f"{whose.in_('zh')}常见如此：{power:g}/{most:g} W、{clock:g} MHz，所述温度均不高。是否与其他卡一样快，请对比同负载下它们的时钟与功耗。",
    )


def by_power(turn: Turn, said: Sequence[Observation]) -> Text | None:
    """What a middling power means of a busy GPU of which no part was read: decoding may look so, and training should not."""
    _, told, name = _own(turn, said)
    power, most = told.get("gpu.power.draw"), _most(told, name)
    parts = any(fact.startswith("gpu.activity.") for fact in told)
    if power is None or not most or parts or told.get("gpu.utilization.core", 0.0) < BUSY:
        return None
    share, measure = 100 * power / most, ranges()["power-share"]
    band, kind = (measure.band(share) or measure.bands[0]).among(named(turn.query.text))
    if not LITTLE_POWER <= share < HALF_POWER:
        return None
    text = judged(measure, round(share), band, kind)
    busy = f"{told['gpu.utilization.core']:g} %"
    return Text(f"{text.en} ({busy}, {power:g} of {most:g} W)", f"{text.in_('zh')}（{busy}，{power:g}/{most:g} W）")


def by_cpu(said: Sequence[Observation]) -> Text | None:
    """Of GPUs that are little used while the CPUs of their host are full: those hold them up."""
    told = {o.fact: _number(o) for o in reversed(said)}
    cpu, gpu = told.get("node.cpu.busy"), told.get("gpu.utilization.core")
    if cpu is None or gpu is None or cpu < FULL_CPU or gpu >= HALF_POWER:
        return None
    return Text(
        f"The CPUs are the bottleneck: they are {cpu:g} % busy and the GPUs, {gpu:g} % busy, wait for them. Loading and preparing data (more or fewer workers, decoding on the GPU, a cache), launching kernels (CUDA graphs, torch.compile) or other programs on the node: top, then py-spy record on the busiest process.",
        f"瓶颈在 CPU：CPU 利用率 {cpu:g} %，GPU 只有 {gpu:g} %，在等 CPU。可能是数据加载与预处理（调整 worker 数、GPU 解码、缓存）、kernel 启动（CUDA graph、torch.compile）或节点上的其他程序：先看 top，再对最忙的进程用 py-spy record。",
    )


FULL_CPU = 90.0  # percent of the time from which on the CPUs of a host have nothing to spare


def _most(told: Mapping[str, float], name: str) -> float:
    """W that the power is held against: the limit that was told, else what the model is built for; 0 where nobody knows."""
    return told.get("gpu.power.limit") or (
        max((s.tdp_w or 0.0 for s in candidates(name)), default=0.0) if name else 0.0
    )


def clock(turn: Turn, said: Sequence[Observation]) -> Text | None:
    """What a low clock under load means, where power does not hold it; None where nobody tells so."""
    _, told, name = _own(turn, said)
    return _clock_held(told, name, turn.query.text)


def _own(turn: Turn, said: Sequence[Observation]) -> tuple[list[Observation], dict[str, float], str]:
    """What was told of the GPU in question, as observations and as figures by their facts, and its name."""
    own = [o for o in said if o.subject.scope is Scope.GPU and "others" not in o.subject.id and o.status is Status.OK]
    known = turn.diagnosis.facts.observations if turn.diagnosis is not None else ()
    name = next((str(k.inner.value) for k in known if k.fact == "gpu.name"), "")
    return own, {o.fact: _number(o) for o in reversed(own)}, name


def in_doubt(rows: Sequence[Judged]) -> bool:
    """Whether a part of the GPU was read that does little, though its SMs have work."""
    return any(
        (r.observation.fact in _PARTS and r.band.rating != "good" and _number(r.observation) < _SOME)
        or (r.observation.fact == "gpu.activity.sm" and r.band.rating in ("bad", "poor", "fair"))
        for r in rows
    )


_PARTS, _SOME = ("gpu.activity.tensor", "gpu.activity.dram"), 20.0


def parts(w: Words, rows: Sequence[Judged]) -> tuple[Part, ...]:
    """Each figure with its band, where there are several, and what is left to read."""
    each = [_said(r).in_(w.lang) for r in rows[1:]]
    return (*([Items(tuple(each))] if each else []), *w.section("To be sure", "要确认", list(LOOKS)))


def _judged(said: Sequence[Observation], kinds: Sequence[Workload]) -> list[Judged]:
    out: dict[str, Judged] = {}
    for o in said:
        scale = scales().get(o.fact)
        if (
            scale is None
            or not scale.measure
            or not isinstance(o.value, int | float)
            or not o.fact.startswith(_OF_WORK)
        ):
            continue
        measure = ranges()[scale.measure]
        if (band := measure.band(o.value)) is None:
            continue
        out.setdefault(o.fact, Judged(o, measure, *band.among(kinds)))
    return list(out.values())


_OF_WORK = (
    "gpu.activity.",
    "gpu.utilization.core",
    "gpu.power.share",
    "gpu.nvlink.tx",
    "gpu.nvlink.rx",
    "gpu.pcie.tx",
    "gpu.pcie.rx",
)


def _full(r: Judged) -> bool:
    """Whether it is a link in whose uppermost band the traffic lies."""
    return r.measure.id.endswith("-traffic") and r.band.high is None


def _roof(r: Judged, told: Mapping[str, float]) -> bool:
    """Whether it is the memory's bandwidth that binds the work: little of the SMs is so by nature then."""
    return (
        r.observation.fact == "gpu.activity.dram"
        and _number(r.observation) >= ROOF
        and told.get("gpu.activity.tensor", 0.0) < _SOME
    )


def _said(r: Judged) -> Text:
    return judged(r.measure, _number(r.observation), r.band, r.workload)


def _number(o: Observation) -> float:
    return float(o.value) if isinstance(o.value, int | float) else 0.0


def _idle(r: Judged) -> Text:
    """Of a GPU of which nothing but a low utilisation is told: what that says, and the hours in which no kernel ran."""
    free = 100 - _number(r.observation)
    said, hours = _said(r), 24 * free / 100
    return Text(
        f"{said.en} {free:g} % of the time no kernel runs: {hours:.3g} GPU-hours a day on each GPU, at least.",
        f"{said.in_('zh')}有 {free:g} % 的时间没有 kernel：每块 GPU 每天至少 {hours:.3g} GPU 小时。",
    )


def _busy(r: Judged, text: str) -> Text:
    """Of a GPU of which nothing but its utilisation is told: busy, and nobody knows whether it works."""
    if _MIG.search(text):
        look = "dcgmi dmon -e 1001,1002,1004,1005 -i GPU/INSTANCE -c 30"
        return Text(
            f"Busy {r.observation.value} % is not working yet, and of a MIG instance only profiling fields tell: {look}, each as a share of that instance. An instance has its profile's share of SMs and memory bandwidth, so compare with that and not with the whole GPU.",
            f"利用率 {r.observation.value} % 还不等于在工作；MIG 实例只有 profiling 字段能说明：{look}，均为占该实例的比例。实例只有其规格对应的 SM 与显存带宽，应与之比较，而不是与整卡比较。",
        )
    return Text(
        f"Busy {r.observation.value} % is not working yet: it says that some kernel is there, also one that waits. Read SM, tensor and DRAM active and the power: {LOOKS[0]}.",
        f"利用率 {r.observation.value} % 还不等于在工作：只说明有 kernel，等待中的也算。请读取 SM、tensor、DRAM active 与功耗：{LOOKS[0]}。",
    )


_IDLE = lazy(
    r"(?<![a-z])(?:zero|idle\w*|nothing|drops?|low|not (?:used|working|busy))(?![a-z])|空闲|闲着|很低|掉|为\s*0|是\s*0|不动|没有?利用",
    re.IGNORECASE,
)
_LOADED = lazy(r"(?<![a-z])(?:full|under|heavy|max) load(?![a-z])|满载|负载下|满负载", re.IGNORECASE)
_MIG = lazy(r"(?<![a-z])mig(?![a-z])", re.IGNORECASE)
_HELD_AT = lazy(
    r"(?<![a-z])(?:cap(?:ped|ping)?|pinned|limit(?:ed)?|maxed|pegged|stuck|full|tdp)(?![a-z])|顶|封顶|上限|打满|跑满|满功率|墙",
    re.IGNORECASE,
)
_AGAINST = lazy(
    r"(?<![a-z])(?:at|against|on|hits?|reach\w*) (?:its|the|their|our)(?![a-z])[^.,;]{0,24}(?:limit|cap)|顶着|顶在|顶到|撞到|撞上|压在",
    re.IGNORECASE,
)
AT_LIMIT = 95.0  # percent of the limit from which on it is held there


def _shared(told: Mapping[str, float]) -> Text | None:
    """Of a GPU with several programs on it: they take turns, and its counters are of all of them."""
    programs = int(told.get("gpu.processes", 0))
    if programs < 2:
        return None
    return Text(
        f"{programs} programs share the GPU: without MPS they take turns, so each gets about {100 / programs:.0f} % of the time, and utilization is that of all together. See who works: nvidia-smi pmon -c 10; then MPS (small kernels side by side), MIG (each its own part), or fewer programs.",
        f"{programs} 个程序共用该 GPU：没有 MPS 时轮流执行，各得约 {100 / programs:.0f} % 的时间，利用率是合计的。用 nvidia-smi pmon -c 10 查看谁在工作；再考虑 MPS（小 kernel 并行）、MIG（各用一部分）或减少程序数。",
    )


def _at_limit(told: Mapping[str, float], name: str, text: str) -> Text | None:
    """Of a GPU that draws all that it may: as at full load, unless somebody lowered the limit."""
    power, limit = told.get("gpu.power.draw"), told.get("gpu.power.limit")
    design = max((s.tdp_w or 0.0 for s in candidates(name)), default=0.0) if name else 0.0
    power = limit if power is None and _AGAINST.search(text) else power
    if limit is None and design and power is not None and AT_LIMIT <= 100 * power / design <= 200 - AT_LIMIT:
        limit = design  # 690 W of an H100: all that it is built for
    # "1200 MHz under load at 700 W": a round figure that models are built for, told beside the clock
    loaded = "gpu.clock.sm" in told and _LOADED.search(text) is not None and (power or 0.0) >= LEAST_DESIGN
    if power is None or (limit is None and not loaded and not _HELD_AT.search(text) and power != design):
        return None
    built = {s.family for s in all_specs() if s.tdp_w == (limit or power)}
    if limit is None and not (built and (not design or design == power)):
        return None
    most = limit or power
    if 100 * power / most < AT_LIMIT or _far_below(told, name, most):
        return None
    if design and most < design:
        return Text(
            f"At its power limit ({power:g} of {most:g} W), and {name} is built for {design:g} W: somebody lowered the limit, and its clocks give way early. Read power.default_limit; nvidia-smi -pl raises it.",
            f"已到功率上限（{power:g}/{most:g} W），而 {name} 的设计功率为 {design:g} W：有人调低了上限，时钟会更早降低。请查看 power.default_limit；可用 nvidia-smi -pl 调回。",
        )
    kinds = f" ({', '.join(sorted(built)[:4])})" if built and not design else ""
    return Text(
        f"Usual at full load: it draws {power:g} of {most:g} W{kinds}, and the driver lets its clocks give way there. No fault while the limit is the default one (power.default_limit) and its clocks are like those of its peers: nvidia-smi -q -d POWER,CLOCK,PERFORMANCE.",
        f"满载时属常见：功耗 {power:g}/{most:g} W{f'（{kinds[2:-1]}）' if kinds else ''}，驱动会在此处让时钟下降。只要上限为默认值（power.default_limit）且时钟与其他 GPU 相近就不是故障：nvidia-smi -q -d POWER,CLOCK,PERFORMANCE。",
    )


def at_its_limit(turn: Turn, said: Sequence[Observation]) -> Text | None:
    """Why the clock of a GPU gives way that draws all that it may and is not warm; None for any other."""
    _, told, name = _own(turn, said)
    warm = any(v >= WARM for fact, v in told.items() if fact.startswith("gpu.temperature."))
    return None if warm else _at_limit(told, name, turn.query.text)


def clock_free(turn: Turn, said: Sequence[Observation]) -> Text | None:
    """Of a GPU that draws little at a high clock: nothing holds it down, and it has little to do. None where its clock or power
    were not told, where it is hot, or where the driver names a reason."""
    _, told, name = _own(turn, said)
    text, power, most = turn.query.text, told.get("gpu.power.draw"), _most(told, name)
    top = max((s.max_clock_mhz or 0.0 for s in candidates(name)), default=0.0) if name else 0.0
    mhz = told.get("gpu.clock.sm") or told.get("gpu.clock.graphics")
    high = mhz >= (FREE_CLOCK * top if top else TOP_CLOCK) if mhz is not None else AT_TOP.search(text) is not None
    held = any(v for fact, v in told.items() if fact.startswith("gpu.clock.event."))
    warm = any(v >= WARM for fact, v in told.items() if fact.startswith("gpu.temperature."))
    if not high or power is None or held or warm or any(fact.startswith("gpu.activity.") for fact in told):
        return None
    if power > (HALF_POWER / 100 * most if most else LITTLE_WATTS):
        return None
    clock = (
        (f"{mhz:g} MHz is a clock", f"{mhz:g} MHz 是") if mhz is not None else ("its highest is a clock", "最高时钟是")
    )
    drawn = f"{power:g} of {most:g} W" if most else f"{power:g} W"
    busy = told.get("gpu.utilization.core", 0.0) >= BUSY
    work = (
        Text("its kernels wait or are tiny, though it shows as busy", "虽显示忙碌，但 kernel 在等待或极小")
        if busy
        else Text(
            "it has little to do: nothing runs, or kernels that wait or are tiny",
            "工作很少：没有任务，或 kernel 在等待、极小",
        )
    )
    return Text(
        f"Not throttled: {clock[0]} that nothing holds down, neither heat nor a power limit. {drawn} at such a clock says that {work.en}. Look at the job, not at the cooling: utilization, SM active and what the process waits for (gpudiag profile --pid PID).",
        f"没有降频：{clock[1]}没有被过热或功率上限压低的时钟。此时钟下功耗 {drawn.replace(' of ', '/')} 说明{work.in_('zh')}。应查看作业而不是散热：利用率、SM active 以及进程在等什么（gpudiag profile --pid PID）。",
    )


# Without a model: MHz that only newer GPUs than A100, V100 and T4 reach (1410, 1530, 1590: data sheets), none of them held down;
# W that is little on those of 300 W and more. With one: the share of its highest clock. Our own.
TOP_CLOCK, LITTLE_WATTS, FREE_CLOCK = 1700.0, 200.0, 0.85
AT_TOP = lazy(
    r"(?<![a-z])(?:clocks?|freq\w*|mhz|boost\w*)[^.,;]{0,16}(?:at|is|are) (?:its |the |their )?(?:max\w*|full|highest|top|boost|peak)(?![a-z])|(?<![a-z])(?:max\w*|full|highest|top|boost|peak) (?:sm )?(?:clocks?|freq\w*|boost)(?![a-z])|(?:频率|时钟)[^，。；]{0,6}(?:最高|满|拉满|顶)",
    re.IGNORECASE,
)
SLOW_CLOCK = 1200.0  # MHz from which on the scale of SM clocks (readings.yaml) calls one usual under load


def _clock_held(told: Mapping[str, float], name: str, text: str) -> Text | None:
    """Of a busy GPU whose clock is low though it draws far less than it may: something other than power holds it."""
    clock, power = told.get("gpu.clock.sm"), told.get("gpu.power.draw")
    limit = _most(told, name)
    if clock is not None and power is not None and (top := _far_below(told, name, limit or power)):
        return _far_too_slow(clock, top, power)
    loaded = told.get("gpu.utilization.core", 0.0) >= BUSY or _LOADED.search(text) is not None
    if (
        clock is None
        or clock >= SLOW_CLOCK
        or power is None
        or not limit
        or not loaded
        or 100 * power / limit >= AT_LIMIT - 10
    ):
        return None
    return Text(
        f"Its SM clock of {clock:g} MHz is held down under load, and not by its power ({power:g} of {limit:g} W): locked or application clocks, heat or a power brake. nvidia-smi -q -d PERFORMANCE,CLOCK names what; nvidia-smi -rgc and -rac undo locks.",
        f"负载下 SM 时钟 {clock:g} MHz 被压低，且不是功耗所致（{power:g}/{limit:g} W）：锁频或应用时钟、过热、power brake。用 nvidia-smi -q -d PERFORMANCE,CLOCK 查看原因；nvidia-smi -rgc 与 -rac 可解除锁定。",
    )


# Of boards of 250 W and more (small ones go down to their base clock at their limit: a T4 to 585 of 1590 MHz). Our own.
FAR_BELOW, SLOW_ALWAYS = (
    0.5,
    1000.0,
)  # share of the highest clock; MHz below which no such board is for its power limit alone


def _far_below(told: Mapping[str, float], name: str, most: float) -> float:
    """The highest clock (MHz) of a GPU that draws nearly all of `most` W at less than half of it: a power limit alone takes no clock
    so far down. 0 where that is not so, or its clock or model is not known."""
    clock, power = told.get("gpu.clock.sm"), told.get("gpu.power.draw", told.get("gpu.power.limit"))
    if clock is None or power is None or most < LEAST_DESIGN or 100 * power / most < AT_LIMIT:
        return 0.0
    models = [s for s in (candidates(name) if name else all_specs()) if s.vendor == "nvidia"]
    tops = [s.max_clock_mhz for s in models if s.tdp_w == most and s.max_clock_mhz]
    top = min(tops or [s.max_clock_mhz for s in models if name and s.max_clock_mhz], default=0.0)
    return top if clock < min(SLOW_ALWAYS, FAR_BELOW * top) else 0.0


def _far_too_slow(clock: float, top: float, power: float) -> Text:
    return Text(
        f"Not usual: an SM clock of {clock:g} MHz is less than half of its highest, {top:g} MHz, and a power limit alone does not take it so far down ({power:g} W): a power brake, heat (of the memory too), a hardware slowdown or locked clocks. nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE under load names what; compare with a neighbour.",
        f"不正常：SM 时钟 {clock:g} MHz 不到最高时钟 {top:g} MHz 的一半，仅触及功率上限（{power:g} W）不会降到这么低：power brake、过热（包括显存）、硬件降频或锁频。负载下运行 nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE 查看原因，并与相邻 GPU 对比。",
    )


def _by_power(told: Mapping[str, float], name: str) -> Text | None:
    """What power says of a busy GPU whose model and limit nobody told: on which boards it is a wait, and on which a full load."""
    power = told.get("gpu.power.draw")
    if power is None or told.get("gpu.utilization.core", 0.0) < BUSY or name or "gpu.power.limit" in told:
        return None
    boards = [(f, max(s.tdp_w for s in all_specs() if s.family == f and s.tdp_w)) for f in _KNOWN]
    sides: dict[bool | None, list[str]] = {True: [], None: [], False: []}
    for family, watts in boards:
        share = 100 * power / watts
        if share <= 105:
            sides[True if share < LITTLE_POWER else False if share >= HALF_POWER else None].append(
                f"{family} {watts:.0f} W"
            )
    if not any(sides.values()):
        return None
    en = [f"{said} {listed(sides[k], 'en')}" for k, said in _SIDES_EN.items() if sides[k]]
    zh = [f"{said}：{listed(sides[k], 'zh')}" for k, said in _SIDES_ZH.items() if sides[k]]
    busy = told["gpu.utilization.core"]
    return Text(
        f"{_most_of(sides, busy, power).en} {'. '.join(en)}. Which model is it (or its power.limit)?",
        f"{_most_of(sides, busy, power).in_('zh')}{'。'.join(zh)}。请说明型号（或 power.limit）。",
    )


_SIDES_EN = {True: "Next to no work on", None: "Little work on", False: "Work on"}
_SIDES_ZH = {True: "几乎没有有效计算的型号", None: "负载偏轻的型号", False: "在工作的型号"}


def _most_of(sides: Mapping[bool | None, Sequence[str]], busy: float, power: float) -> Text:
    """What that power says on most models; a kernel that waits counts as busy."""
    if len(sides[True]) > len(sides[None]) + len(sides[False]):
        return Text(
            f"Most likely it waits and does not work: busy {busy:g} % at {power:g} W, and a kernel that waits counts as busy.",
            f"多半在等待而不是在工作：利用率 {busy:g} %、功耗 {power:g} W，等待中的 kernel 也计入利用率。",
        )
    return Text(
        f"Whether it works depends on the model: busy {busy:g} % at {power:g} W, and a kernel that waits counts as busy.",
        f"是否在工作取决于型号：利用率 {busy:g} %、功耗 {power:g} W，等待中的 kernel 也计入利用率。",
    )
