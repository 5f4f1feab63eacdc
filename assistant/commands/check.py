"""``gpudiag check``: what is wrong, from logs and captured tool outputs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from assistant.output import Progress, say, write
from assistant.render.labels import label

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from assistant.diagnosis import Diagnosis
    from knowledge.observation import Observation

NAME = "check"
HELP = "tell what is wrong, from logs and captured tool outputs"


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
        help="kernel, system, journal or application logs (.gz and .zst too); - is standard input",
    )
    add(
        "--input",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="any captured output; its kind is recognised by its content",
    )
    add("--host", default="", metavar="NAME", help="name of the node that the inputs come from")
    add("--expect-gpus", type=_count, metavar="N", help="how many GPUs the node should have")
    add("--site", metavar="FILE", help="site file: changed thresholds and severities, suppressed rules")
    add("--rules", action="append", default=[], metavar="PACK", help="rule file or folder laid over the shipped rules")
    add("--verbose", action="store_true", help="everything: all evidence, the rule's page, all that is undecided")
    add("--timing", action="store_true", help="say how long reading and thinking took (in JSON: the key timing)")
    add("--nagios", action="store_true", help="one line and the exit codes of monitoring plugins")
    add("--bundle", metavar="FILE", help="a recorded machine: a bundle folder, .tar.gz or .zip")


def _count(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 1024:
        raise ValueError(text)
    return value


_count.__name__ = "number of GPUs"  # argparse names the type in its complaint


def run(args: argparse.Namespace) -> int:
    """Read, diagnose, print."""
    from assistant.output import WriteError
    from knowledge.errors import GpudiagError

    if not args.nagios:
        return _run(args)
    try:
        return _run(args)
    except WriteError as error:
        say(f"gpudiag: {error}")
        return 3  # UNKNOWN
    except GpudiagError as error:  # a monitoring system would read exit code 2 as CRITICAL
        from assistant.render import nagios

        write(nagios.line(nagios.UNKNOWN, error.message) + "\n")
        return nagios.UNKNOWN


def _run(args: argparse.Namespace) -> int:
    from time import perf_counter, process_time

    from assistant.render.diagnosis import show
    from assistant.sources import tells

    start, cpu = perf_counter(), process_time()
    diagnosis, read_s = diagnosed(args)
    timing = None
    if args.timing:
        timing = {"read_s": read_s, "total_s": perf_counter() - start, "cpu_s": process_time() - cpu}
        timing = {name: round(value, 6) for name, value in timing.items()}
    if args.nagios:
        from assistant.render import nagios

        write(nagios.render(diagnosis, args.settings.output.lang))
        return nagios.code(diagnosis)
    write(show(diagnosis, args.settings.output, tells, verbose=args.verbose, timing=timing))
    if timing is not None and args.settings.output.format != "json":
        say("timing: " + ", ".join(f"{name} {value:.3f}" for name, value in timing.items()))
    return diagnosis.exit


def diagnosed(args: argparse.Namespace) -> tuple[Diagnosis, float]:
    """The diagnosis of what the arguments name, and the seconds that reading took."""
    from time import perf_counter

    from assistant.commands.rules import ruleset
    from assistant.diagnosis import diagnose
    from assistant.sources import read, told
    from knowledge.errors import UsageError

    inputs = [*args.files, *args.input]
    if not args.log and not inputs and not args.bundle:
        raise UsageError(
            "check needs something to look at: FILE, --log FILE for kernel, system and application logs, --input FILE for "
            "captured outputs (nvidia-smi -q, dcgmi diag -j, a metrics scrape, ibstat, ...)",
            hint="for example: dmesg | gpudiag check --log -   or: gpudiag demo",
        )
    start = perf_counter()
    bar = Progress(args.quiet)
    try:
        reading = read(args.log, inputs, args.host, _report(bar))
    finally:
        bar.done()
    lang = args.settings.output.lang
    notes = [f"{n.source}: {n.text.in_(lang)}" for n in reading.notes]
    recorded = recording(args.bundle, lang) if args.bundle else Recorded()
    read_s = perf_counter() - start
    found = diagnose(
        [*recorded.observations, *reading.observations, *told(args.host, args.expect_gpus)],
        ruleset(args, args.settings),
        notes=[*recorded.notes, *notes],
        sources=[*([args.bundle] if args.bundle else []), *reading.sources],
        cut=reading.cut,
        as_of=recorded.as_of,
    )
    return found, read_s


class Recorded(NamedTuple):
    """What a bundle holds: observations, what its probes could not tell, and the time it was taken (ns UTC)."""

    observations: Sequence[Observation] = ()
    notes: Sequence[str] = ()
    as_of: int | None = None


def recording(path: str, lang: str) -> Recorded:
    """Every probe over a recorded machine. A probe that got no answer says why in a note."""
    from knowledge.observation import Status
    from probes.bundle import BundleHost
    from probes.runner import run as probe

    host = BundleHost(Path(path))
    results = probe(host)
    silent = [r for r in results if r.status is not Status.OK]
    notes = [f"{path}: {r.probe}: {r.detail or r.status}" for r in silent]
    if host.skipped:
        notes.append(f"{path}: {label('newer_entries', lang).format(n=host.skipped)}")
    return Recorded([o for r in results for o in r.observations], notes, host.as_of)


def _report(bar: Progress) -> Callable[[str, int, int | None], None]:
    def report(name: str, done: int, total: int | None) -> None:
        share = f" {done * 100 // total} %" if total else f" {done >> 20} MiB"
        bar(f"reading {name}{share}")

    return report
