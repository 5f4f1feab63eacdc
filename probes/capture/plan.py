"""What a capture will do to each target, by which way, what it will not do and why, and what all of it costs.

Pure: what was found out about the targets (`run.survey`) comes in, and a plan goes out that people are asked about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Final

from knowledge.language import Text
from knowledge.record import dataclass
from probes.capture.model import (
    EVENTS,
    GENTLE,
    INJECTED,
    LEAST_MS,
    MOST_MS,
    STACK_RATE,
    Cost,
    Item,
    Outcome,
    Part,
    Refusal,
    Rung,
    Target,
    Window,
)

# What is asked for when nobody says what: the second set only when the job's owner agrees.
DEFAULT: Final = (Item.STACKS, Item.CPU)
AGREED: Final = (Item.TORCH, Item.KERNELS)
_NEEDS: Final[Mapping[Item, tuple[Item, ...]]] = {
    Item.KERNELS: (Item.TORCH,),
    Item.SHAPES: (Item.TORCH,),
    Item.FLOPS: (Item.TORCH, Item.SHAPES),  # computed from the shapes
}
# What the target has nothing of: nobody misses it who did not name it (codes of `preflight`).
_ABSENT: Final = frozenset({"no-cuda", "no-torch", "no-python"})
# What an endpoint or dynolog can give, and what speaks against that as well.
TRACED: Final = frozenset({Item.TORCH, Item.KERNELS, Item.SHAPES, Item.FLOPS})
SERVED: Final = frozenset({Rung.ENDPOINT, Rung.DYNOLOG})
_NOT_SERVED: Final = frozenset(
    {"gone", "zombie", "kernel-thread", "no-python", "no-torch", "no-cuda", "stopped", "state-d", "no-space"}
)
_GENTLE_RUNG: Final[Mapping[Item, Rung]] = {Item.STACKS: Rung.PY_SPY, Item.CPU: Rung.PROC, Item.OFFCPU: Rung.PERF}
# ms that the job stands at most in one piece when the profiler stops or writes: a pilot measures what an event costs in
# this job, and the window is cut such that each of the two stays below 90 ms; an iteration of the job comes on top.
STOP_MS = 150


@dataclass(frozen=True, slots=True)
class Wish:
    """What was asked for."""

    items: tuple[Item, ...] = (*DEFAULT, *AGREED)
    window: Window = field(default_factory=Window)
    explicit: bool = False  # the items were named, so one that cannot be had is worth a word
    force: bool = False
    agreed: bool = False  # consent was given beforehand
    hang: bool = False  # only the hang path: nothing is injected, whatever else was asked for
    loss: str = "loss"  # the local that LOSS reads
    events: int = EVENTS
    line: str = ""  # the command line that asked

    @property
    def injects(self) -> bool:
        """Whether something is to run in the targets: an item of that kind, or the counting of iterations."""
        return not self.hang and (bool(INJECTED.intersection(self.items)) or self.window.by_iterations)


@dataclass(frozen=True, slots=True)
class Survey:
    """What was found out about one target without touching it."""

    refused: Mapping[Item, Refusal]
    ways: tuple[Rung, ...] | Refusal = ()  # how a call can be made in it, best first
    served: tuple[Rung, ...] = ()  # how a trace can be had without one: an endpoint of its server, dynolog's protocol


@dataclass(frozen=True, slots=True)
class Step:
    """One item at one target: by which way, or why not."""

    item: Item
    rung: Rung | None = None
    refusal: Refusal | None = None
    declined: bool = False

    @property
    def runs(self) -> bool:
        """Whether it is done."""
        return self.refusal is None and not self.declined


@dataclass(frozen=True, slots=True)
class Planned:
    """One target, and what is done to it."""

    target: Target
    steps: tuple[Step, ...]
    ways: tuple[Rung, ...] = ()
    barred: Refusal | None = None  # why no call can be made in it

    @property
    def gentle(self) -> tuple[Item, ...]:
        """What is read from outside."""
        return tuple(s.item for s in self.steps if s.runs and s.item in GENTLE)

    @property
    def injected(self) -> tuple[Item, ...]:
        """What runs inside."""
        return tuple(s.item for s in self.steps if s.runs and s.item in INJECTED)

    @property
    def called(self) -> tuple[Item, ...]:
        """Of these what needs a call in the target."""
        return tuple(s.item for s in self.steps if s.runs and s.item in INJECTED and s.rung not in SERVED)

    @property
    def server(self) -> Rung | None:
        """The way without a call that gives the rest; None where there is none."""
        return next((s.rung for s in self.steps if s.runs and s.rung in SERVED), None)

    @property
    def from_server(self) -> tuple[Item, ...]:
        """What comes that way."""
        return tuple(s.item for s in self.steps if s.runs and s.rung in SERVED)

    def left_out(self) -> list[Part]:
        """The parts that are not tried, with the reason."""
        return [_not_done(s) for s in self.steps if not s.runs]


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that a capture does."""

    wish: Wish
    targets: tuple[Planned, ...]
    window: Window
    declined: bool = False

    @property
    def injects(self) -> bool:
        """Whether anything runs in a target."""
        counts = self.wish.window.by_iterations and any(p.ways for p in self.targets)
        return not self.declined and not self.wish.hang and (any(p.injected for p in self.targets) or counts)

    @property
    def items(self) -> tuple[Item, ...]:
        """What is captured of at least one target, in the order of `Item`."""
        got = {i for p in self.targets for i in (*p.gentle, *p.injected)}
        return tuple(i for i in Item if i in got)

    @property
    def costs(self) -> tuple[Cost, ...]:
        """What it costs the targets, part by part."""
        return tuple(cost(item, self.wish.events) for item in self.items)

    def inject(self, planned: Planned) -> bool:
        """Whether a call is made in this target."""
        return (
            self.injects
            and bool(planned.ways)
            and (bool(planned.called) or (self.window.by_iterations and not planned.server))
        )


def whole(items: Iterable[Item]) -> tuple[Item, ...]:
    """`items` with what they need, in the order of `Item`."""
    got = set(items)
    got |= {need for item in got for need in _NEEDS.get(item, ())}
    return tuple(i for i in Item if i in got)


def make(wish: Wish, targets: Sequence[Target], surveys: Mapping[int, Survey]) -> Plan:
    """The plan for `wish`; `surveys` by pid. What needs consent is in it: `gentle` takes it out again."""
    items = whole(wish.items)
    planned = [_planned(wish, t, items, surveys.get(t.process.pid, Survey({}))) for t in targets]
    plan = Plan(wish, tuple(planned), wish.window)
    return plan if plan.injects or not wish.window.by_iterations else replace(plan, window=_by_time(wish.window))


def gentle(plan: Plan) -> Plan:
    """The same without what runs in the targets: consent was not given. Iterations cannot be counted then: the time counts."""
    planned = [
        replace(p, steps=tuple(replace(s, declined=True) if s.runs and s.item in INJECTED else s for s in p.steps))
        for p in plan.targets
    ]
    return replace(plan, targets=tuple(planned), window=_by_time(plan.window), declined=True)


def _by_time(window: Window) -> Window:
    return replace(window, iterations=0, skip=0)


def _planned(wish: Wish, target: Target, items: Sequence[Item], survey: Survey) -> Planned:
    barred = survey.ways if isinstance(survey.ways, Refusal) else None
    ways = survey.ways if isinstance(survey.ways, tuple) else ()
    steps = []
    for item in items:
        if wish.hang and item in INJECTED:
            continue
        refusal = survey.refused.get(item)
        if item in INJECTED and refusal is None:
            refusal = barred or (None if ways else NO_WAY)
        rung = _GENTLE_RUNG.get(item) or (ways[0] if ways else None)
        if item in TRACED and (way := _served(survey, refusal)) is not None:
            rung, refusal = way, None
        if refusal is not None and refusal.code in _ABSENT and not wish.explicit:
            continue
        steps.append(Step(item, None if refusal else rung, refusal))
    return Planned(target, tuple(steps), ways, barred)


def _served(survey: Survey, refusal: Refusal | None) -> Rung | None:
    """The way without a call, where it is the better one, or the only one."""
    if not survey.served or (refusal is not None and refusal.code in _NOT_SERVED):
        return None
    first = survey.served[0]
    # dynolog's trace comes seconds later, and knows no budget of events
    return first if first is Rung.ENDPOINT or refusal is not None else None


NO_WAY: Final = Refusal(
    "no-way",
    Text("no way was found to make a call in this process", "没有找到在该进程中执行调用的途径"),
    Text("stacks and CPU samples need none: --with stacks,cpu", "调用栈与 CPU 采样不需要注入：--with stacks,cpu"),
)
_DECLINED: Final = Text("consent was not given", "未获同意")
_AGREE: Final = Text("--yes agrees to it", "--yes 表示同意")


def _not_done(step: Step) -> Part:
    if step.refusal is not None:
        return Part(step.item, Outcome.REFUSED, why=step.refusal.why, remedy=step.refusal.remedy)
    return Part(step.item, Outcome.DECLINED, why=_DECLINED, remedy=_AGREE)


# --- windows and costs -----------------------------------------------------------------------


def window_fault(window: Window) -> str:
    """Why a window cannot be had, for people; empty when it can."""
    ms = window.duration_ns / 1e6
    if not LEAST_MS <= ms <= MOST_MS:
        return f"{ms:g} ms is no window: {LEAST_MS} to {MOST_MS} ms can be captured"
    if window.iterations and not 1 <= window.iterations <= 1000:
        return f"{window.iterations} iterations are no window: 1 to 1000 can be captured"
    if not 0 <= window.skip <= 100_000:
        return f"{window.skip} iterations cannot be skipped"
    return ""


def cost(item: Item, events: int = EVENTS) -> Cost:
    """What `item` costs a target at most: measured (docs/profile.md), but for memory, loss and gradnorm, which are estimates."""
    match item:
        case Item.STACKS:
            said = Text(
                f"read from outside {STACK_RATE} times a second; nothing stops, the job keeps its rate (below 1 %)",
                f"从外部每秒读取 {STACK_RATE} 次；不暂停作业，速率影响低于 1 %",
            )
            return Cost(item, said, 1.0, 0.0)
        case Item.CPU:
            return Cost(
                item,
                Text("files of /proc and NVML are read; the job is not touched", "只读取 /proc 与 NVML，不触碰作业"),
            )
        case Item.OFFCPU:
            said = Text(
                "the kernel records each switch of the job's threads (perf, else bpftrace, else /proc): some microseconds a switch; where they "
                "are many, only /proc is read",
                "内核记录作业线程的每次切换（perf，否则 bpftrace，否则 /proc）：每次切换数微秒；切换很多时只读取 /proc",
            )
            return Cost(item, said, 2.0, 0.0)
        case Item.TORCH | Item.KERNELS:
            said = Text(
                f"the profiler runs in the job: up to 18 % slower while it does, and stops of at most {STOP_MS} ms when it ends; the window is cut "
                f"short for that where many events come ({events:,} at most). It leaves a sleeping thread and some memory behind, and writes a "
                "few lines to the job's stderr",
                f"在作业内运行 profiler：期间最多慢 18 %，结束时每次最多停顿 {STOP_MS} 毫秒；事件很多时会为此缩短窗口（最多 {events:,} 个）。"
                "会留下一个休眠线程和一些内存，并向作业的 stderr 写几行",
            )
            return Cost(item, said, 18.0, STOP_MS)
        case Item.SHAPES | Item.FLOPS:
            said = Text(
                f"shapes of inputs make each event more than twice as dear, so the window is cut shorter; stops of at most {STOP_MS} ms",
                f"记录输入形状使每个事件的代价增加一倍以上，因此窗口更短；每次最多停顿 {STOP_MS} 毫秒",
            )
            return Cost(item, said, 21.0, STOP_MS)
        case Item.MEMORY:
            return Cost(item, Text("one question to the CUDA allocator", "向 CUDA 分配器查询一次"), 0.0, 1.0)
        case Item.LOSS:
            said = Text(
                "one variable is read each iteration; a value on the GPU makes the host wait for it",
                "每次迭代读取一个变量；若在 GPU 上则主机会等待",
            )
            return Cost(item, said, 1.0, 1.0)
        case Item.GRADNORM:
            said = Text(
                "the norm of all gradients is computed each iteration, and the host waits for it",
                "每次迭代计算全部梯度的范数，主机会等待结果",
            )
            return Cost(item, said, 5.0, 10.0)
