"""``gpudiag check``: what is wrong with this machine, another one (``--host``), a recorded one, or what logs and captured outputs tell."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NamedTuple

from assistant.inventory.target import add_target, names
from assistant.output import Progress, say, write

if TYPE_CHECKING:
    from collections.abc import Callable

    from assistant.changes import Changes
    from assistant.commands._narrated import Narration
    from assistant.diagnosis import Diagnosis
    from assistant.inventory.model import Node
    from assistant.machine import Look, Wish
    from knowledge.errors import GpudiagError
    from probes.runner import Progress as Probing

NAME = "check"
HELP = "tell what is wrong with this machine or another one, or from a bundle, logs and captured outputs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Inputs, what is known beside them, and how to answer."""
    add = parser.add_argument
    add("files", nargs="*", metavar="FILE", help="the same as --input FILE; - is standard input")
    add(
        "--log",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="kernel, system, journal or application logs (.gz, .zst, .xz and .bz2 too); - is standard input",
    )
    add(
        "--input",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="any captured output; its kind is recognised by its content",
    )
    names(
        add(
            "--host",
            default="",
            metavar="NAME",
            help="look at this node from here; beside FILEs: the node that they come from",
        )
    )
    add_target(parser)
    add("--expect-gpus", type=_count, metavar="N", help="how many GPUs the node should have")
    add("--site", metavar="FILE", help="site file: changed thresholds and severities, suppressed rules")
    add("--rules", action="append", default=[], metavar="PACK", help="rule file or folder laid over the shipped rules")
    add("--verbose", action="store_true", help="everything: all evidence, the rule's page, all that is undecided")
    add("--timing", action="store_true", help="say how long reading and thinking took (in JSON: the key timing)")
    add("--nagios", action="store_true", help="one line and the exit codes of monitoring plugins")
    add(
        "--bundle", metavar="FILE", help="a recorded machine: a bundle folder, .tar.gz or .zip, or an nvidia-bug-report"
    )
    add_probing(parser, " (without FILE, --log, --input and --bundle)")
    add("--since-last", action="store_true", help="also what changed since the last check of this node in the history")
    add("--since-good", action="store_true", help="also what changed since the last check that found nothing wrong")
    add("--no-history", action="store_true", help="neither read nor write the history")
    add("--record", metavar="FILE", help="also write the bundle that this answer can be given again from")
    from assistant.commands._narration import add_option

    add_option(parser, "--no-narrate")


def add_probing(parser: argparse.ArgumentParser, when: str = "") -> None:
    """How a machine is looked at: shared by all commands that do. `when` says when, if not always."""
    group = parser.add_argument_group(f"looking at a machine{when}")
    add = group.add_argument
    add("--probe", action="append", default=[], metavar="NAME", help="only this probe; may be repeated")
    add(
        "--with",
        action="append",
        default=[],
        metavar="NAME",
        dest="with_",
        help="also a probe that is not run by default",
    )
    add("--without", action="append", default=[], metavar="NAME", help="all but this probe")
    add("--budget", type=_seconds, default=30.0, metavar="SECONDS", help="time for all probes together (default: 30)")
    add("--again", action="store_true", help="also run what hung before, or ran when the machine went down")


def wish(args: argparse.Namespace) -> Wish:
    """What the options of `add_probing` say."""
    from assistant.machine import Wish

    if args.probe or args.with_:
        from probes.active import refuse

        refuse([*args.probe, *args.with_])
    return Wish(tuple(args.probe), tuple(args.with_), tuple(args.without), args.budget, args.again)


def _seconds(text: str) -> float:
    value = float(text)
    if not 0.1 <= value <= 3600:
        raise ValueError(text)
    return value


_seconds.__name__ = "number of seconds (0.1 to 3600)"


def _count(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 1024:
        raise ValueError(text)
    return value


_count.__name__ = "number of GPUs"  # argparse names the type in its complaint


def run(args: argparse.Namespace) -> int:
    """Read, diagnose, print."""
    from assistant.commands._narration import narrating
    from assistant.output import WriteError
    from knowledge.errors import GpudiagError

    if not args.nagios:
        with narrating(args) as narration:
            return _run(args, narration)
    try:
        return _run(args)
    except WriteError as error:
        say(f"gpudiag: {error}")
        return 3  # UNKNOWN
    except GpudiagError as error:  # a monitoring system would read exit code 2 as CRITICAL
        from assistant.render import nagios

        write(nagios.line(nagios.UNKNOWN, error.message) + "\n")
        return nagios.UNKNOWN


def _run(args: argparse.Namespace, narration: Narration | None = None) -> int:
    from time import perf_counter, process_time

    from assistant.render.diagnosis import show
    from assistant.sources import tells

    start, cpu = perf_counter(), process_time()
    diagnosis, look, read_s, trouble = diagnosed(args)
    if narration is not None:
        from assistant.reply import Reply

        narration.begin(Reply(args.settings.output.lang, "", diagnosis=diagnosis))
    changes = _since_last(args, diagnosis, look, trouble) if args.since_last or args.since_good else None
    timing = None
    if args.timing:
        timing = {"read_s": read_s, "total_s": perf_counter() - start, "cpu_s": process_time() - cpu}
        timing = {name: round(value, 6) for name, value in timing.items()}
    if args.nagios:
        from assistant.render import nagios

        write(nagios.render(diagnosis, args.settings.output.lang))
        lost = _keep(args, look)
        _remember(args, diagnosis, look, trouble)
        if lost:
            say(f"gpudiag: {lost}")  # the answer is out, and its code counts
        return nagios.code(diagnosis)
    text = show(diagnosis, args.settings.output, tells, verbose=args.verbose, timing=timing, changes=changes)
    write(narration.within(text) if narration is not None else text)
    if changes is None and not args.quiet:
        _hint_at_updates(args, diagnosis, look)
    lost = _keep(args, look)
    _remember(args, diagnosis, look, trouble)
    if lost:
        raise lost
    if timing is not None and args.settings.output.format != "json":
        say("timing: " + ", ".join(f"{name} {value:.3f}" for name, value in timing.items()))
    if narration is not None:
        narration.below()
    return diagnosis.exit


def _since_last(args: argparse.Namespace, diagnosis: Diagnosis, look: Look | None, trouble: str) -> Changes | None:
    """What is different from the check before; None, and a line that says why, when that is not known.

    `trouble`: what was said already about a history that cannot be used.
    """
    from assistant.store import since_last
    from knowledge.language import Text

    if look is not None and not look.reached:
        return None  # it could not be reached: nothing can be said to have changed
    host = look.host if look else args.host
    boot = look.boot_id if look else ""
    found = since_last(args.settings.history.url, diagnosis, host, boot_id=boot, good=args.since_good)
    if isinstance(found, Text):
        why = found.in_(args.settings.output.lang)
        if why != trouble:
            say(f"gpudiag: {why}")
        return None
    return found


def _hint_at_updates(args: argparse.Namespace, diagnosis: Diagnosis, look: Look | None) -> None:
    """A line for a node that is sick: its software is another one than when it was last well."""
    from assistant.store import since_last
    from knowledge.language import Text

    sick = diagnosis.verdict.state in ("degraded", "unhealthy")
    if look is None or not look.reached or args.bundle or args.no_history or not sick:
        return
    found = since_last(args.settings.history.url, diagnosis, look.host, boot_id=look.boot_id, good=True)
    if isinstance(found, Text) or not found.software:
        return
    from assistant.render.changes import updates

    say(f"gpudiag: {updates(found, args.settings.output.lang)}")


def _remember(args: argparse.Namespace, diagnosis: Diagnosis, look: Look | None, trouble: str) -> None:
    """After the answer: this machine's check goes into the history. What goes wrong there is one line."""
    if look is None or not look.reached or args.bundle or args.no_history or args.settings.history.url == "off":
        return  # nothing was looked at, or not now, or nobody wants it kept
    from assistant.commands.rules import ruleset
    from assistant.store import remember

    history = args.settings.history
    complaint = remember(
        history.url, look.host, diagnosis, look.results, days=history.days, boot_id=look.boot_id,
        rules=ruleset(args, args.settings).rules, lang=args.settings.output.lang, told=bool(trouble),
    )  # fmt: skip
    if complaint:
        say(f"gpudiag: {complaint}", args.quiet)


def _keep(args: argparse.Namespace, look: Look | None) -> GpudiagError | None:
    """After the answer: what it was given from. Why that could not be kept."""
    if args.record and look is not None and look.reached:
        from assistant.commands.collect import save
        from knowledge.errors import GpudiagError

        try:
            save(look, args.record)
        except GpudiagError as error:
            return error
        say(f"gpudiag: recorded in {args.record}", args.quiet)
    return None


class Found(NamedTuple):
    """A diagnosis, the machine it is of when one was asked, and the seconds that reading took."""

    diagnosis: Diagnosis
    look: Look | None
    read_s: float
    trouble: str  # why the history could not be read; said already


def diagnosed(args: argparse.Namespace) -> Found:
    """The diagnosis of what the arguments name: inputs, a bundle, or else this machine."""
    from time import perf_counter

    from assistant.commands.rules import ruleset
    from assistant.diagnosis import diagnose
    from assistant.inventory.target import expected
    from assistant.sources import Reading, read, told

    inputs = [*args.files, *args.input]
    given = bool(args.log or inputs or args.bundle)
    _refuse_mixed(args, given)
    start = perf_counter()
    bar = Progress(args.quiet)
    other = _other(args, given)
    try:
        reading = read(args.log, inputs, args.host, bytes_read(bar)) if args.log or inputs else Reading()
        look, more = _machine(args, bar, other) if args.bundle or not given else (None, [])
    finally:
        bar.done()
    rules = ruleset(args, args.settings)
    trouble = ""
    if look and look.reached and not args.bundle and not args.no_history:
        from assistant.machine import remembering

        look, trouble = remembering(args.settings, look, rules.rules)
        if trouble:
            say(f"gpudiag: {trouble}", args.quiet)
    lang = args.settings.output.lang
    notes = [f"{n.source}: {n.text.in_(lang)}" for n in reading.notes]
    gpus = told(look.host if look else args.host, args.expect_gpus) or (expected(other) if other is not None else [])
    read_s = perf_counter() - start
    found = diagnose(
        [*(look.observations if look else []), *(look.earlier if look else ()), *reading.observations, *gpus],
        rules,
        notes=[*more, *notes],
        # A bundle is the machine that it was recorded on: the answer is the one that was given there.
        sources=[*([args.bundle] if look and args.bundle and not look.recording else []), *reading.sources],
        cut=reading.cut,
        as_of=look.as_of if look else None,
        whole=bool(look and look.whole),
        seen="" if look is None else "recorded" if args.bundle else "live",
        earlier=reading.earlier,
    )  # fmt: skip
    return Found(found, look, read_s, trouble)


def _refuse_mixed(args: argparse.Namespace, given: bool) -> None:
    from knowledge.errors import UsageError

    options = (("--probe", args.probe), ("--with", args.with_), ("--without", args.without), ("--record", args.record))
    chosen = [name for name, value in options if value]
    if given and chosen:
        raise UsageError(
            f"{' and '.join(chosen)} is about reading this machine, but files were given",
            hint="leave out the files to look at this machine",
        )
    if getattr(args, "narrate", None) and getattr(args, "nagios", False):
        raise UsageError("--nagios is one line for a monitoring system", hint="leave out --narrate")
    if args.since_last and args.since_good:
        raise UsageError("--since-last and --since-good compare with different checks", hint="leave one of them out")
    if (args.since_last or args.since_good) and args.no_history:
        flag = "--since-good" if args.since_good else "--since-last"
        raise UsageError(
            f"{flag} needs the history, and --no-history says to leave it alone", hint="leave one of them out"
        )


def _other(args: argparse.Namespace, given: bool) -> Node | None:
    """The other machine that is to be looked at; None for this one."""
    from assistant.inventory.target import settle, target

    settle(args, live=not given)
    return None if given else target(args)


def _machine(args: argparse.Namespace, bar: Progress, other: Node | None) -> tuple[Look, list[str]]:
    """A bundle, another machine, or this one; and what there is to say about how it was read."""
    from assistant import machine

    if other is not None:
        look = _there(args, bar, other)
        return look, look.notes
    if not args.bundle:
        look = machine.here(args.settings, wish(args), probing(bar))
        return look, look.notes
    host, look = machine.bundle(args.bundle)
    notes = [*look.notes, *machine.remarks(args.bundle, host, look, args.settings.output.lang)]
    return look, notes


def _there(args: argparse.Namespace, bar: Progress, other: Node) -> Look:
    """Another machine. One that cannot be reached is one of which nothing is known, and that is said with the reason."""
    from assistant import machine
    from probes.remote import ConnectError

    bar(f"connecting to {other.name}")
    try:
        return machine.there(args.settings, other.reach, wish(args), probing(bar))
    except ConnectError as error:
        bar.done()
        lang = args.settings.output.lang
        say(f"gpudiag: {error.in_(lang)}")
        return machine.unreached(other.name, wish(args), error.why, lang)


def probing(bar: Progress) -> Callable[[Probing], None]:
    """Shows what is being waited for."""

    def report(progress: Probing) -> None:
        waiting = ", ".join(progress.waiting[:4]) + (", ..." if len(progress.waiting) > 4 else "")
        bar(f"probes {progress.done}/{progress.total}: waiting for {waiting}")

    return report


def bytes_read(bar: Progress) -> Callable[[str, int, int | None], None]:
    """Shows how far the reading of a file is."""

    def report(name: str, done: int, total: int | None) -> None:
        share = f" {done * 100 // total} %" if total else f" {done >> 20} MiB"
        bar(f"reading {name}{share}")

    return report
