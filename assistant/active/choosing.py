"""What ``gpudiag test`` would run: which tests, on which GPUs, what is in the way. Nothing is started."""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from assistant.active.there import tools
from assistant.journal.unended import unended
from knowledge.errors import UsageError, nearest_hint
from knowledge.language import NO_TEXT, Text
from knowledge.observation import Status
from knowledge.record import dataclass
from knowledge.text import clean, digits, excerpt
from probes.active import ActiveTest, Refused, Step, chosen, spoken, tests
from probes.host import Host

LOOK_DEADLINE = 45.0  # seconds for looking whether the GPUs are idle: opening eight without persistence mode takes some
_NO_END = Text("the look at the GPUs came to no end", "对 GPU 的查看没有结束")


@dataclass(frozen=True, slots=True)
class Choice:
    """One test, and its runs; or why it has none."""

    test: ActiveTest
    steps: tuple[Step, ...] = ()
    why_not: Text | None = None

    @property
    def seconds(self) -> float:
        """That it takes as a rule."""
        return sum(s.seconds for s in self.steps)


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as nvidia-smi lists it."""

    index: int
    name: str
    pci: str
    busy: Text  # why it is not idle; empty when it is


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that is shown before consent."""

    choices: tuple[Choice, ...]
    gpus: tuple[Gpu, ...]  # those that were chosen
    only: tuple[int, ...]  # their indices, as tests are told them
    blind: Text = NO_TEXT  # why nobody knows whether they are idle
    there: str = ""  # another machine that they are of
    before: Text = NO_TEXT  # that some may have run already, and nobody knows how that ended

    @property
    def runs(self) -> tuple[Choice, ...]:
        """Tests that can run. None where a GPU is in use, or nobody knows."""
        return () if self.blind or self.busy else tuple(c for c in self.choices if c.steps)

    @property
    def busy(self) -> tuple[Text, ...]:
        """Why GPUs are not idle."""
        return tuple(g.busy for g in self.gpus if g.busy)

    @property
    def seconds(self) -> float:
        """Of all tests, as a rule."""
        return sum(c.seconds for c in self.runs)


def planned(args: argparse.Namespace, host: Host, there: str = "") -> Plan:
    """The plan. UsageError for tests and GPUs that do not exist. `there`: what another machine is called."""
    only = _gpus(args.gpu)
    wanted = _wanted(args.names, args.level)
    rows, busy, blind = _looked(host, only)
    gpus = tuple(
        Gpu(index, clean(r.get("name", ""))[:60], clean(r.get("pci.bus_id", ""))[:20], busy.get(r["index"], NO_TEXT))
        for r in rows if (index := digits(r.get("index", ""))) is not None
    )  # fmt: skip
    told = tuple(g.index for g in gpus)  # the recorded call names them: a replay asks the same
    have = tools(host, sorted({b for t in wanted for b in t.binaries}))
    choices = tuple(_choice(t, host, told, have, part=bool(only) and not args.names) for t in wanted)
    before = unended(args.settings.history.url, there or host.name, [t.name for t in wanted])
    return Plan(choices, gpus, told, blind, there, before)


def _gpus(given: Sequence[str]) -> tuple[int, ...]:
    try:
        return chosen(",".join(word.strip() for word in given))
    except ValueError as error:
        raise UsageError(f"--gpu {','.join(given)}: {error}") from None


def _wanted(names: Sequence[str], level: int | None) -> list[ActiveTest]:
    """Tests by name; else those up to a level, of a family only the one that belongs to it."""
    known = {t.name: t for t in tests()}
    families = {t.family for t in tests() if t.family}
    out: dict[str, ActiveTest] = {}
    for name in names:
        test = known.get(name)
        if name in families and level is not None:
            test = next(t for t in tests() if t.family == name and t.level == level)
        if test is None:
            raise UsageError(
                f"there is no test {name!r}", hint=nearest_hint(name, known) or f"tests: {', '.join(known)}"
            )
        out[test.name] = test
    if names:
        return list(out.values())
    upto = level or 1
    best = {t.family: t for t in tests() if t.family and t.level <= upto}
    return [t for t in tests() if t.level <= upto and (not t.family or best[t.family] is t)]


def _choice(test: ActiveTest, host: Host, gpus: tuple[int, ...], have: Collection[str], *, part: bool) -> Choice:
    """`part`: a part of the node was chosen, and no test by its name."""
    if not set(test.binaries) & set(have):
        names = " / ".join(test.binaries)
        return Choice(test, why_not=Text(f"{names} is not installed", f"未安装 {names}"))
    if test.whole_node and part:
        return Choice(
            test,
            why_not=Text(
                "it takes the whole node, and --gpu names a part of it", "它需要整个节点，而 --gpu 只指定了一部分"
            ),
        )
    steps = test.steps(host, gpus)
    return Choice(test, why_not=steps.why) if isinstance(steps, Refused) else Choice(test, tuple(steps))


def _looked(host: Host, only: tuple[int, ...]) -> tuple[list[dict[str, str]], Mapping[str, Text], Text]:
    """Rows of the GPUs, why some are not idle, and why nothing is known of them."""
    shown = ("--gpus", ",".join(map(str, only))) if only else ()
    reply = host.snapshot("active", "--look", *shown, deadline=LOOK_DEADLINE)
    try:
        said: Any = json.loads(reply.text) if reply.status is Status.OK else {}
    except (ValueError, RecursionError):
        said = {}
    if not isinstance(said, dict) or said.get("outcome") not in ("idle", "busy"):
        told = spoken(said.get("reason") or said.get("why")) if isinstance(said, dict) else NO_TEXT
        return [], {}, told or (Text(excerpt(reply.detail)) if reply.detail else _NO_END)
    return list(said["before"]["gpus"]), {gpu: spoken(why) for gpu, why in (said.get("busy") or {}).items()}, NO_TEXT
