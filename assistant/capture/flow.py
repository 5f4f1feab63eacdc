"""From the command line to a capture: who, what, at which cost; consent; the capture; the answer."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from assistant.asking import interruptible
from assistant.capture import options
from assistant.capture.looking import called
from assistant.exits import Exit
from assistant.output import Progress, say, write
from knowledge.errors import GpudiagError, InputError, UsageError
from knowledge.language import Text
from probes.capture import manifest

if TYPE_CHECKING:
    from assistant.journal.noting import Noting
    from assistant.machine import Look
    from probes.capture.model import Target
    from probes.capture.plan import Plan

# What of the machine stands beside a capture: cheap probes, whose answers the causal chain needs.
PROBES = ("processes", "nvml", "system", "pci", "kernel-log")
BUDGET = 4.0  # seconds for them
PATIENCE = (
    30.0  # s more until the look is over: with twenty times more to run than CPUs, what is not a probe took that long
)


def run(args: argparse.Namespace) -> int:
    """Everything."""
    if args.document:
        _only_outside(args)
    plan = planned(args)
    if args.document:
        from assistant.capture import document as document_

        return document_.printed(args, plan)
    if args.dry_run:
        from assistant.capture import consent

        write(consent.shown(plan, args))
        return Exit.OK
    if plan.injects and not args.yes:
        from assistant.capture import consent
        from probes.capture.plan import gentle

        if not consent.asked(plan, args):
            plan = gentle(plan)
    folder, kept = _folder(args, plan)
    cancel = Event()
    noting = _noting(args, plan)
    outcome = "failed"
    try:
        with interruptible(cancel):
            document, look = _captured(args, plan, folder, cancel)
        outcome = "cancelled" if cancel.is_set() else "ended"
    except BaseException:
        with suppress(OSError):
            folder.rmdir()  # where nothing was captured nothing is kept
        raise
    finally:
        if noting is not None:
            noting.result({"outcome": outcome})
    from assistant.capture import answer, looking

    seen = looking.conclude(folder, document, args.settings, look)
    code = answer.give(args, seen)
    if cancel.is_set():
        say(
            f"gpudiag: {Text('broken off: what was captured by then is above, and kept', '已中断：以上为此前采集到的内容，已保存').in_(args.settings.output.lang)}",
            args.quiet,
        )
    if kept:
        say(f"gpudiag: {Text('kept as', '已保存为').in_(args.settings.output.lang)} {seen.id} ({folder})", args.quiet)
    return Exit.INTERRUPTED if cancel.is_set() else code


def _only_outside(args: argparse.Namespace) -> None:
    """UsageError unless a document is asked for as it can be given: nobody is asked, and nothing is kept."""
    if not args.outside:
        raise UsageError("--document asks nobody, so it is for what is read from outside", hint="--outside --document")
    if args.output or args.dry_run:
        raise UsageError(f"--document only prints, so {'-o' if args.output else '--dry-run'} goes without it")


def _noting(args: argparse.Namespace, plan: Plan) -> Noting | None:
    """The journal, with the intent in it, of what runs inside processes; looking from outside touches nothing."""
    if not plan.injects:
        return None
    from assistant.journal.noting import Noting

    noting = Noting(args.settings, args.settings.machine.name or here(), args.quiet)
    data = {
        "command": plan.wish.line, "pids": [p.target.process.pid for p in plan.targets], "risk": "disruptive",
        "items": sorted({str(s.item) for p in plan.targets for s in p.steps if s.runs}),
        "consent": "--yes" if args.yes else "asked at the terminal",
    }  # fmt: skip
    noting.intent("profile", data)
    return noting


def line(args: argparse.Namespace, targets: Sequence[Target]) -> str:
    """The command line that does the same again, of the processes that were found."""
    words = ["gpudiag", "profile"]
    for flag, values in (
        ("--pid", args.pid),
        ("--name", args.name),
        ("--job", args.job),
        ("--container", args.container),
        ("--with", args.with_),
    ):
        words += [word for value in values for word in (flag, shlex.quote(value))]
    words += [
        f
        for f, on in (
            ("--gpu-users", args.gpu_users),
            ("--all-ranks", args.all_ranks),
            ("--force", args.force),
            ("--hang", args.hang),
            ("--outside", args.outside),
        )
        if on
    ]
    words += [w for n in args.rank for w in ("--rank", str(n))]
    for flag, value in (("--duration", f"{args.duration // 10**6}ms" if args.duration else ""), ("--iterations", args.iterations),
                        ("--skip", args.skip), ("--anchor", args.anchor), ("-o", args.output)):  # fmt: skip
        words += [flag, shlex.quote(str(value))] if value else []
    del targets
    return " ".join(words)


def planned(args: argparse.Namespace) -> Plan:
    """Whom, what, and how: nothing is touched. UsageError for what cannot be."""
    from probes.capture import plan as plan_
    from probes.capture import run as run_

    wish = options.wish(args, line(args, ()))
    if args.output:
        _usable(Path(args.output))
    targets = _targets(args)
    items = plan_.DEFAULT if wish.hang else plan_.whole(wish.items)
    surveys = run_.survey(targets, items, wish.window, force=wish.force)
    return plan_.make(wish, targets, surveys)


def _usable(folder: Path) -> None:
    """Whether a capture may go into `folder`, which need not be there. UsageError, InputError."""
    try:
        there = [p.lstat().st_uid for p in (folder, folder.resolve()) if os.path.lexists(p)]
        taken = os.path.lexists(folder / manifest.NAME)
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: links in a circle
        raise InputError(
            f"-o {folder}: {getattr(error, 'strerror', None) or error}", hint="-o names a folder"
        ) from None
    if taken:
        raise UsageError(f"{folder} holds a capture already", hint="name another folder with -o")
    asked = os.environ.get("SUDO_UID", "") if os.geteuid() == 0 else ""
    trusted = {0, os.geteuid(), int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 11 else 0}
    if stranger := next((uid for uid in there if uid not in trusted), None):
        raise InputError(
            f"-o {folder} belongs to another user ({stranger}), who could read and change what is written there",
            hint="name a folder of your own, or one that is not there yet",
        )


def _targets(args: argparse.Namespace) -> list[Target]:
    from probes.capture.whom import target

    found = target.find(options.pids(args), options.names(args.name), args.gpu_users, options.names(args.job), options.names(args.container),
                        whole_job=args.all_ranks)  # fmt: skip
    if not args.rank:
        return found
    chosen = [t for t in found if t.rank in args.rank]
    if not chosen:
        there = sorted({t.rank for t in found if t.rank is not None})
        raise UsageError(f"none of the processes is rank {', '.join(map(str, args.rank))}",
                         hint=f"ranks here: {', '.join(map(str, there)) or 'none'}")  # fmt: skip
    return chosen


def _folder(args: argparse.Namespace, plan: Plan) -> tuple[Path, bool]:
    """Where the capture goes, made; and whether it is one of those that `profile list` names."""
    from assistant.capture.records import home
    from probes.capture.run import named

    folder = Path(args.output).absolute() if args.output else home() / named(plan)
    number = 1
    while not args.output and (folder / manifest.NAME).exists():
        number += 1
        folder = folder.with_name(f"{named(plan)}-{number}")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{folder} cannot be made: {error.strerror or error}", hint="-o names a folder that can"
        ) from None
    return folder, not args.output


def _captured(args: argparse.Namespace, plan: Plan, folder: Path, cancel: Event) -> tuple[dict[str, Any], Look | None]:
    """The document, and the machine at the same time."""
    from assistant import __version__
    from probes.capture import run as run_

    bar = Progress(args.quiet, after=0.2)
    beside = _Beside(args, plan, folder)
    try:
        document = run_.capture(
            plan,
            folder,
            progress=bar,
            cancel=cancel,
            host=args.settings.machine.name or here(),
            version=__version__,
            leaving=beside.start,
        )
    except OSError as error:
        raise InputError(f"{folder}: the capture cannot be written: {error.strerror or error}") from None
    finally:
        bar.done()
    return document, beside.result()


def here() -> str:
    """What this machine calls itself."""
    import socket

    return socket.gethostname()


class _Beside:
    """The machine, looked at when the window is over, while traces are read: in the window it would take the job's CPU."""

    def __init__(self, args: argparse.Namespace, plan: Plan, folder: Path) -> None:
        self._args, self._folder = args, folder
        self._pids = ",".join(str(p.target.process.pid) for p in plan.targets)
        self._look: Look | None = None
        self._thread: Thread | None = None

    def start(self) -> None:
        """Begins; once."""
        if self._thread is None:
            self._thread = Thread(target=self._work, name="machine", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        from assistant import machine
        from assistant.commands.collect import save
        from probes.live import probes

        known = {spec.name for spec in probes()}
        wish = machine.Wish(only=tuple(n for n in PROBES if n in known), budget=BUDGET)
        try:
            look = machine.here(self._args.settings, wish, options={"processes": {"pids": self._pids}})
            self._look = look
            save(look, str(self._folder / manifest.MACHINE))
        except (GpudiagError, OSError):  # the capture speaks for itself
            return

    def result(self) -> Look | None:
        """What was seen; None when it was not to be had in time."""
        if self._thread is not None:
            self._thread.join(BUDGET + PATIENCE)
        return self._look


def who(targets: Sequence[Target], lang: str) -> str:
    """The targets in a line: few by name, many by number."""
    names = [called(t, lang) for t in targets[:4]]
    return ", ".join(names) + (f" +{len(targets) - 4}" if len(targets) > 4 else "")
