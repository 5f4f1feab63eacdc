"""Active tests: what each is, what it runs, what it costs. They load the machine, so nobody starts one without consent.

One module a test, exporting ``TEST``; a module whose name starts with an underscore is a helper, and the folder is the
list. A test is run by the collector `probes/collectors/active.py`, which looks whether the GPUs are idle before and
while it runs; what it prints is read by `probes/parse/active_run.py`. So a test can be asked of any `Host`: this machine,
one over ssh, a recording.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from types import ModuleType
from typing import NamedTuple

from knowledge.errors import UsageError
from knowledge.exports import unlike
from knowledge.language import Text
from knowledge.lazy import lazy
from knowledge.observation import Observation, Status, node
from knowledge.record import dataclass
from knowledge.text import excerpt
from probes.base import Context
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.parse._active_facts import OWN
from probes.parse._active_reasons import spoken as spoken

MARGIN = 30.0  # seconds beside a test: two looks at the GPUs before it, ending it when it takes too long
_OVER = frozenset({"job", "cancelled", "busy", "blind"})  # outcomes after which no further run is begun
_GPUS = lazy(r"\d{1,3}(?:,\d{1,3}){0,127}")


class Step(NamedTuple):
    """One run of a tool."""

    argv: tuple[str, ...]
    seconds: float  # that it takes as a rule
    limit: float  # after which it is ended
    beside: tuple[str, ...] = ()  # a second program that it talks to: started before it, ended after it
    label: str = ""  # what of the machine it is about, where a test has several runs: "mlx5_0 to mlx5_1"


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a test has nothing to run here."""

    why: Text


class ActiveTest(NamedTuple):
    """One test. `steps` asks the host only for files and listings, and so costs nothing."""

    name: str
    title: Text
    binaries: tuple[str, ...]  # any one of them
    level: int  # 1: seconds; 2: minutes; 3: a quarter of an hour; 4: longer
    cost: Text  # beside the time: "loads every GPU to its power limit"
    seconds: float  # as a rule, on a node with 8 GPUs
    main: tuple[str, ...]  # facts that get the reason when it gives none
    provides: tuple[str, ...]  # facts that its tool tells
    steps: Callable[[Host, tuple[int, ...]], Sequence[Step] | Refused]
    progress: Callable[[Sequence[str]], float | None]  # newest lines of the tool -> share that is done, 0 .. 1
    allow: tuple[str, ...] = ()  # processes that are the test's own though a service starts them
    whole_node: bool = False  # it needs every GPU of the node to be idle
    root: bool = False
    family: str = ""  # tests of which a level chooses one: dcgm-diag


@cache
def tests() -> tuple[ActiveTest, ...]:
    """Every test, the quickest first."""
    names = sorted(info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_"))
    return exported(importlib.import_module(f"{__name__}.{name}") for name in names)


def exported(modules: Iterable[ModuleType]) -> tuple[ActiveTest, ...]:
    """The tests of these modules, the quickest first. TwinsError when two of them have one name."""
    found: list[tuple[str, ActiveTest]] = []
    for module in modules:
        found += [(module.__name__, test) for test in ([module.TEST] if hasattr(module, "TEST") else module.TESTS)]
    each = unlike(found, "active tests", {"name": "are called {!r}"})
    return tuple(sorted(each, key=lambda t: (t.level, t.seconds, t.name)))


def named(name: str) -> ActiveTest | None:
    """The test called `name`."""
    return next((t for t in tests() if t.name == name), None)


def is_test(name: str) -> bool:
    """Whether a probe of that name loads the machine. The first level of the diagnostic does not."""
    test = named(name)
    return test is not None and test.name != test.family


def refuse(names: Sequence[str]) -> None:
    """UsageError for active tests among the probes that are to be run beside others: those ask first, and need their time."""
    if found := [n for n in names if is_test(n)]:
        raise UsageError(
            f"{found[0]} is an active test: it loads the machine", hint=f"gpudiag test {found[0]} asks first"
        )


def chosen(text: str) -> tuple[int, ...]:
    """The GPUs of ``0,2,3``, sorted; none for all. ValueError for what names none."""
    if not text:
        return ()
    if not _GPUS.fullmatch(text):
        raise ValueError(f"{excerpt(text, 40)!r} names no GPUs: write their numbers, as in 0,2,3")
    return tuple(sorted({int(word) for word in text.split(",")}))


def installed_gpus(host: Host) -> int:
    """How many GPUs the NVIDIA driver has."""
    return len({path.split("/")[5] for path in host.files("/proc/driver/nvidia/gpus/*/information")})


def call(test: ActiveTest, step: Step, gpus: Sequence[int]) -> tuple[str, ...]:
    """The arguments of the collector for one run."""
    shown = () if not gpus or test.whole_node else ("--gpus", ",".join(map(str, gpus)))
    allow = ("--allow", ",".join(test.allow)) if test.allow else ()
    beside = ("--beside", json.dumps(list(step.beside))) if step.beside else ()
    return ("--test", test.name, *shown, *allow, *beside, "--", *step.argv)


def collect(test: ActiveTest, request: ProbeRequest, host: Host) -> list[Observation]:
    """Run every step of `test` on the GPUs of the option ``gpus`` (none: all), one after the other."""
    from probes.live._absent import absent
    from probes.live._fetch import missing
    from probes.parse import active_run

    gpus = chosen(request.options.get("gpus", ""))
    steps = test.steps(host, gpus)
    if isinstance(steps, Refused):
        return absent(test.main, host, "/proc/net/dev", active_run.FORMAT, steps.why.en)
    out: list[Observation] = []
    for step in steps:
        reply = host.snapshot("active", *call(test, step, gpus), deadline=min(step.limit + MARGIN, request.deadline))
        if not reply.whole or not reply.text.strip():
            lost = test.main if reply.status is Status.NOT_ASKED else ("active.outcome",)
            out += missing(lost, host, reply, active_run.FORMAT)
            break
        # Named as people type it: the same test has one name over time, whatever was asked about it.
        out += active_run.FORMAT.parse(reply.text, Context(excerpt(shlex.join(step.argv), 200), host.name))
        if any(o.fact == "active.outcome" and o.value in _OVER for o in out):
            break  # what comes next would be refused, or is not wanted any more
    told = {o.fact for o in out}
    if any(o.status is not Status.NOT_ASKED for o in out) and (
        lacking := [fact for fact in test.main if fact not in told]
    ):
        why = next((str(o.value) for o in out if o.fact == "active.why"), f"{test.name} printed no result")
        last = out[-1].source
        out += [
            Observation(fact, node(host.name), None, Status.FAILED, replace(last, line=None), detail=excerpt(why))
            for fact in lacking
        ]
    return out


def spec(test: ActiveTest) -> ProbeSpec:
    """The test as a probe: for a conversation, which asks for consent first, and for recordings."""
    longest = Text(f"takes about {duration(test.seconds, 'en')}", f"约需 {duration(test.seconds, 'zh')}")
    idle = Text("runs on idle GPUs only, and is ended when a job appears", "仅在空闲 GPU 上运行，出现作业时即终止")
    return ProbeSpec(
        name=test.name,
        title=test.title,
        provides=tuple(dict.fromkeys((*OWN, *test.provides))),
        main=test.main,
        collect=lambda request, host: collect(test, request, host),
        needs=Needs(binaries=test.binaries, privileges=("root",) if test.root else ()),
        cost=Cost.HEAVY,
        side_effects=(longest, test.cost, idle),
        deadline=4 * test.seconds + MARGIN * 2,
        default=False,
        takes=frozenset({"gpus"}),
    )


def duration(seconds: float, lang: str) -> str:
    """``20 seconds``, ``15 minutes``, as one says it."""
    if seconds < 90:
        return f"{seconds:.0f} seconds" if lang == "en" else f"{seconds:.0f} 秒"
    minutes = round(seconds / 60)
    return f"{minutes} minutes" if lang == "en" else f"{minutes} 分钟"


def share_of(pattern: re.Pattern[str], lines: Sequence[str], whole: float) -> float | None:
    """The last number that `pattern` finds, as a share of `whole`; None when it finds none."""
    for line in reversed(lines):
        if found := list(pattern.finditer(line)):
            return min(1.0, float(found[-1][1]) / whole)
    return None
