"""From the command line to tests and what they say: the plan, consent, the runs, the machine after them, the answer."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from assistant.active import choosing, consent, page, there
from assistant.active.watched import Watched
from assistant.asking import interruptible
from assistant.exits import Exit
from assistant.journal.noting import Noting
from assistant.output import Progress, say, write
from knowledge.language import Text
from probes.active import duration
from probes.host import Host, Recording, RecordingHost
from probes.live_host import LiveHost

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.inventory.model import Node
    from assistant.machine import Look
    from probes.hang_memory import HangMemory
    from probes.live import ProbeSpec
    from probes.runner import ProbeResult


def run(args: argparse.Namespace) -> int:
    """Everything."""
    lang = args.settings.output.lang
    _refuse(args.record)
    cancel = Event()
    other = there.node_of(args)
    with _machine(args, other) as host:
        plan = choosing.planned(args, host, other.name if other is not None else "")
    if args.dry_run or not plan.runs:
        _show(plan, args)
        return Exit.OK if args.dry_run else Exit.UNDECIDED
    if not args.yes and not consent.asked(plan, args):
        say(Text("gpudiag: nothing was started", "gpudiag: 未启动任何内容").in_(lang), args.quiet)
        return Exit.UNDECIDED
    if args.yes and plan.before.en:
        say(f"gpudiag: {plan.before.in_(lang)}", args.quiet)
    with _machine(args, other, plan) as host, interruptible(cancel):
        done, look = _tested(plan, args, host, cancel)
    code = _answer(plan, args, done, look, other)
    if cancel.is_set():
        say(
            Text(
                "gpudiag: broken off: what was measured by then is above", "gpudiag: 已中断：以上为此前测得的内容"
            ).in_(lang),
            args.quiet,
        )
        return Exit.INTERRUPTED
    unsettled = any(set(one.outcomes) != {"ended"} for one in done)
    return Exit.UNDECIDED if code == Exit.OK and unsettled else code


@contextmanager
def _machine(args: argparse.Namespace, other: Node | None, plan: choosing.Plan | None = None) -> Iterator[Host]:
    """This machine, or a connection to another one: for the look before consent, or for the tests of `plan`."""
    if other is not None:
        with there.line(args.settings, other, plan, args.budget) as far:
            yield far
        return
    with LiveHost(args.settings.machine.name, root=args.settings.machine.root, memory=_memory(args)) as live:
        yield live


def _refuse(place: str | None) -> None:
    """UsageError for what is no place for a bundle, before a quarter of an hour was spent."""
    if place is None:
        return
    from knowledge.errors import UsageError

    if place in ("", "-"):
        raise UsageError(
            "a bundle is not written to standard output", hint="name FILE.tar.gz, FILE.zip, or a new folder"
        )
    if not Path(place).absolute().parent.is_dir():
        raise UsageError(f"{place} cannot be written: there is no folder {Path(place).absolute().parent}")


def _show(plan: choosing.Plan, args: argparse.Namespace) -> None:
    from assistant.render.trace_page import Page, show

    lang = args.settings.output.lang
    write(
        show(
            Page("gpudiag/test-plan/1", consent.data(plan, lang), lambda: consent.parts(plan, lang)),
            args.settings.output,
        )
    )


def _memory(args: argparse.Namespace) -> HangMemory | None:
    from assistant.config import state_folder
    from probes.hang_memory import HangMemory
    from probes.live_host import boot_id

    boot = boot_id()
    return HangMemory(state_folder(args.settings) / "hangs.json", boot) if boot else None


# --- the runs -----------------------------------------------------------------------------


def _tested(plan: choosing.Plan, args: argparse.Namespace, looked: Host, cancel: Event) -> tuple[list[page.Done], Look]:
    """Each test, then the machine as the tests left it: their traces in the kernel log and the counters belong to them."""
    from assistant import machine
    from probes.live import probes
    from probes.remote.remote_host import RemoteHost
    from probes.runner import run as run_probes
    from probes.runner import select

    bar = Progress(args.quiet, after=0.2)
    progress = _Bar(bar)
    far = looked if isinstance(looked, RemoteHost) else None
    watched = there.WatchedThere(far, progress.told, cancel) if far else Watched(looked, progress.told, cancel)
    host = RecordingHost(watched)
    noting = Noting(args.settings, host.name, args.quiet)
    told = {"guarded": "1"} | ({"gpus": ",".join(map(str, plan.only))} if plan.only else {})
    known = {spec.name: spec for spec in probes()}
    done: list[page.Done] = []
    try:
        for number, choice in enumerate(plan.runs, 1):
            if cancel.is_set():
                break
            progress.begin(choice, number, len(plan.runs), args)
            noting.intent(f"test:{choice.test.name}", _intent(choice, plan, args))
            [result] = run_probes(host, [_told(known[choice.test.name], told)], timing=True)
            done.append(page.Done(choice.test.name, result))
            noting.result({"outcome": ", ".join(done[-1].outcomes) or str(result.status), "why": result.detail})
        bar("looking at the machine after the tests")
        watched.now()
        after = select()
        results = run_probes(host, after, budget=args.budget, timing=True, jobs=machine.JOBS)
    finally:
        bar.done()
    everything: list[ProbeResult] = sorted([*(one.result for one in done), *results], key=lambda r: r.probe)
    names = tuple(r.probe for r in everything)
    unasked = tuple(r.probe for r in everything if r.unasked)
    options = {one.name: told for one in done}
    look = machine.Look(host.name, tuple(everything), host.replies, host.as_of, Recording(names, unasked, options))
    return done, there.told(look, far, args.settings.output.lang) if far else look


def _intent(choice: choosing.Choice, plan: choosing.Plan, args: argparse.Namespace) -> dict[str, Any]:
    """What the journal says of a test before it begins."""
    return {
        "argv": [list(step.argv) for step in choice.steps], "gpus": [g.index for g in plan.gpus], "risk": "disruptive",
        "consent": "--yes" if args.yes else "asked at the terminal", "expected_seconds": choice.seconds,
    }  # fmt: skip


def _told(spec: ProbeSpec, options: dict[str, str]) -> ProbeSpec:
    return replace(spec, collect=lambda request, host: spec.collect(replace(request, options=options), host))


class _Bar:
    """Progress of the test that runs, from its own output where that tells, else from the clock."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._choice: choosing.Choice | None = None
        self._begun, self._lead = 0.0, ""
        self._lines: list[str] = []

    def begin(self, choice: choosing.Choice, number: int, total: int, args: argparse.Namespace) -> None:
        """The next test."""
        self._lines = []
        self._choice, self._begun, self._lead = choice, time.monotonic(), f"{choice.test.name} ({number}/{total})"
        lang = args.settings.output.lang
        say(Text(
            f"gpudiag: {choice.test.name}: about {duration(choice.seconds, 'en')}",
            f"gpudiag: {choice.test.name}：约 {duration(choice.seconds, 'zh')}",
        ).in_(lang), args.quiet)  # fmt: skip

    def told(self, said: dict[str, Any]) -> None:
        """One line of the collector; an empty one when only time has gone by."""
        if self._choice is None:
            return
        self._lines = [str(x) for x in said.get("lines") or self._lines]
        gone = time.monotonic() - self._begun
        share = self._choice.test.progress(self._lines)
        shown = f" {100 * share:.0f} %" if share is not None else ""
        newest = f": {self._lines[-1].strip()}" if self._lines else ""
        self._bar(f"{self._lead}{shown} {gone:.0f} of about {self._choice.seconds:.0f} s{newest}")


# --- the answer ---------------------------------------------------------------------------


def _answer(
    plan: choosing.Plan, args: argparse.Namespace, done: list[page.Done], look: Look, other: Node | None
) -> int:
    from assistant import machine
    from assistant.commands.rules import ruleset
    from assistant.diagnosis import diagnose
    from assistant.inventory import target
    from assistant.sources import tells

    rules = ruleset(args, args.settings)
    trouble, lang = "", args.settings.output.lang
    if not args.no_history:
        look, trouble = machine.remembering(args.settings, look, rules.rules)
        if trouble:
            say(f"gpudiag: {trouble}", args.quiet)
    expected = target.expected(other) if other is not None else []
    found = diagnose(
        [*look.observations, *look.earlier, *expected],
        rules,
        notes=look.notes,
        as_of=look.as_of,
        whole=look.whole,
        seen="live",
    )
    left_out = consent.hindrances(replace(plan, gpus=()), lang)
    write(page.show(done, found, args.settings.output, tells, args.verbose, left_out))
    _keep(args, look, found, rules.rules, bool(trouble))
    return found.exit


def _keep(args: argparse.Namespace, look: Look, found: Diagnosis, rules: Any, told: bool) -> None:
    """After the answer: the history, and the bundle."""
    history = args.settings.history
    if not args.no_history and history.url != "off":
        from assistant.store import remember

        complaint = remember(
            history.url, look.host, found, look.results, days=history.days, boot_id=look.boot_id, rules=rules,
            lang=args.settings.output.lang, told=told,
        )  # fmt: skip
        if complaint:
            say(f"gpudiag: {complaint}", args.quiet)
    if args.record:
        from assistant.commands.collect import save

        save(look, args.record)
        say(f"gpudiag: recorded in {args.record}", args.quiet)
