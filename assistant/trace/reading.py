"""Files of traces: found, recognised by content, read one after the other or side by side, with progress on stderr."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import Generic, TypeVar

from assistant.exits import Exit
from assistant.output import Progress, say
from assistant.trace.inputs import exported, head, kind_of
from knowledge.errors import GpudiagError, InputError, UsageError
from knowledge.record import dataclass
from probes.trace.columns import Wanted, both
from probes.trace.model import Window
from probes.trace.reading.reader import Trace

T = TypeVar("T")
_PACKED = 15  # by which gzip shrinks a trace (12 to 20 on recorded ones)
_WORTH = 200 << 20  # bytes from which processes are worth their start: half a second each


@dataclass(slots=True)
class Results(Generic[T]):
    """What the files gave, in their order, and why some gave nothing."""

    found: list[T] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)  # file -> why

    def code(self, code: int = Exit.OK) -> int:
        """`code`, or UNDECIDED where nothing is wrong and a file could not be read."""
        return Exit.UNDECIDED if self.failed and code == Exit.OK else code


@contextmanager
def standard_input(args: argparse.Namespace) -> Iterator[None]:
    """Where - is among the files, standard input is kept in a file for as long: it is read more than once."""
    args.kept = ""
    if "-" not in args.files:
        yield
        return
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(
            "- is standard input, and nothing is piped into it", hint="zcat trace.json.gz | gpudiag trace summary -"
        )
    with tempfile.TemporaryDirectory(prefix="gpudiag-") as folder:
        args.kept = str(Path(folder) / "standard input")
        with Path(args.kept).open("wb") as out:
            shutil.copyfileobj(sys.stdin.buffer, out, 1 << 20)
        yield


def place(args: argparse.Namespace, path: str) -> str:
    """Where the file that is called `path` lies."""
    return str(args.kept) if path == "-" else path


def names_of(args: argparse.Namespace, repeated: bool = False) -> list[str]:
    """The files that the arguments name, each once unless `repeated`; folders stand for the traces in them."""
    from probes.trace.reading.reader import files

    return [name for given in args.files for name in files([given])] if repeated else files(args.files)


def each(args: argparse.Namespace, needs: Wanted, work: Callable[[Trace], T]) -> Results[T]:
    """`work` on each trace that the arguments name, with ``--rank`` only on that rank's.

    InputError when none of them can be used; its message is the first one's.
    """
    names = names_of(args)
    wish: int | None = getattr(args, "rank", None)
    results = over(args, names if wish is None else of_rank(wish, names), needs, work, wish)
    if not results.found:
        raise UsageError(
            f"none of the {len(names)} traces is of rank {wish}",
            hint="gpudiag trace summary names the ranks that there are",
        )
    return results


def over(
    args: argparse.Namespace, names: Sequence[str], needs: Wanted, work: Callable[[Trace], T], wish: int | None = None
) -> Results[T]:
    """`work` on each of the traces `names`; of `wish` only on that rank's. InputError when all of them fail: the first one's."""
    at_once = _at_once(args, names)
    if at_once > 1:
        return _side_by_side(args, names, needs, work, wish, at_once)
    results: Results[T] = Results()
    first: GpudiagError | None = None
    for path in names:
        try:
            results.found += _worked(args, path, needs, work, wish)
        except GpudiagError as error:
            first = first or error
            results.failed[path] = error.message
    if first is not None and not results.found:
        raise first
    return results


def _at_once(args: argparse.Namespace, names: Sequence[str]) -> int:
    """How many traces are read at the same time: as many as asked for, else as cores where there is enough to read."""
    asked: int | None = getattr(args, "jobs", 1)
    if asked == 1 or len(names) < 2 or "-" in names:
        return 1
    from probes.many import cores

    size = sum(Path(n).stat().st_size * (_PACKED if n.endswith(".gz") else 1) for n in names if Path(n).is_file())
    return min(asked or (cores() if size > _WORTH else 1), len(names))


def _side_by_side(
    args: argparse.Namespace,
    names: Sequence[str],
    needs: Wanted,
    work: Callable[[Trace], T],
    wish: int | None,
    at_once: int,
) -> Results[T]:
    """As `over`, in processes; what is no trace for the reader is read here."""
    from probes.trace.reading.many import read_many

    results: Results[T] = Results()
    other = {name for name in names if not _is_trace(name)}
    bar = Progress(args.quiet)
    try:
        plain = [name for name in names if name not in other]
        outcomes = read_many(plain, _Work(work, wish), needs, jobs=at_once, memory=args.memory, progress=_shown(bar))
    finally:
        bar.done()
    told = {o.path: o for o in outcomes}
    for name in names:
        outcome = told.get(name)
        if outcome is None:
            try:
                results.found += _worked(args, name, needs, work, wish)
            except GpudiagError as error:
                results.failed[name] = error.message
        elif outcome.value is not None:
            results.found += outcome.value
        else:
            results.failed[name] = outcome.error.split("\n")[0]
    if results.failed and not results.found:
        raise InputError(next(iter(results.failed.values())))
    return results


@dataclass(frozen=True, slots=True)
class _Work(Generic[T]):
    """What a process does with its trace. It is sent there, so it is no function within another."""

    work: Callable[[Trace], T]
    wish: int | None

    def __call__(self, trace: Trace) -> list[T]:
        """The result; nothing for a rank that was not asked for."""
        return [self.work(trace)] if self.wish is None or trace.rank == self.wish else []


def _is_trace(path: str) -> bool:
    """Whether the reader takes the file; what cannot be opened is told by whoever reads it."""
    try:
        return kind_of(head(path)) == "trace"
    except GpudiagError:
        return False


def _worked(
    args: argparse.Namespace, path: str, needs: Wanted, work: Callable[[Trace], T], wish: int | None
) -> list[T]:
    """One trace's result; it is read and let go here, so that never two are held."""
    trace = load(args, path, needs)
    return [work(trace)] if wish is None or trace.rank == wish else []


_RANK = re.compile(r"(?:^|[^a-z])(?:rank|worker|trainer)[-_.]?(\d{1,6})(?!\d)", re.IGNORECASE)


def of_rank(rank: int, names: Sequence[str]) -> list[str]:
    """Only the files that may be of `rank`: those whose names say another one are not read."""
    if len(names) == 1:
        return list(names)
    said = {name: _RANK.search(Path(name).name) for name in names}
    sure = [name for name, found in said.items() if found and int(found[1]) == rank]
    return sure or [name for name, found in said.items() if not found]


def load(args: argparse.Namespace, path: str, needs: Wanted) -> Trace:
    """One trace. InputError for what is none, with what it is instead where that is known."""
    from probes.trace.reading.reader import read

    here = place(args, path)
    bar = Progress(args.quiet)
    try:
        trace = exported(here, needs) or read(here, needs, memory=args.memory, progress=_shown(bar))
    except MemoryError:
        raise InputError(
            f"{path}: there is not enough memory to read it", hint="--memory 256MiB keeps less of it in memory"
        ) from None
    except GpudiagError as error:
        error.message = error.message.replace(here, "standard input") if path == "-" else error.message
        raise
    finally:
        bar.done()
    trace.path = path
    return trace


def _shown(bar: Progress) -> Callable[[str, int, int | None], None]:
    def report(name: str, done: int, total: int | None) -> None:
        share = f" {min(100, done * 100 // total)} %" if total else f" {done >> 20} MiB"
        bar(f"reading {Path(name).name}{share}")

    return report


def all_of(args: argparse.Namespace, kind: str) -> list[str]:
    """The files that the arguments name, when all of them are of that kind; none otherwise."""
    names = names_of(args)
    try:
        return names if all(kind_of(head(place(args, name))) == kind for name in names) else []
    except InputError:  # told file by file, by the reading
        return []


# --- windows -------------------------------------------------------------------------------


def needs_of(args: argparse.Namespace, *needs: Wanted) -> Wanted:
    """All that `needs` and the window that is asked for take."""
    if getattr(args, "window", "trace") == "trace":
        return both(*needs)
    from probes.trace.steps import iterations

    return both(*needs, iterations.NEEDS)


def window(args: argparse.Namespace, trace: Trace) -> Window | None:
    """The window asked for; None where the trace holds no GPU activity."""
    if not len(trace.gpu):
        return None
    from probes.trace.windows import window_of

    return window_of(trace, args.window, args.marker)


def note_failures(results: Results[T], quiet: bool) -> None:
    """One line on stderr for each file that gave nothing."""
    for path, why in results.failed.items():
        say(f"gpudiag: {why if path in why else f'{path}: {why}'}", quiet)
