"""The log scanner: files of any size, every log format in one pass, in bounded memory.

Blocks of bytes are searched for the triggers of all formats at once; only lines that match,
their neighbours and both ends of a file become text and are handed to `LogFormat.parse`.
What could not be read is said in a note, and whatever stands ahead of a break is used.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

from knowledge.errors import InputError
from knowledge.language import Text
from knowledge.observation import AT_LEAST, Event, Observation, Status, Subject
from knowledge.record import dataclass
from probes._scan_fold import Fold
from probes._scan_lines import LongLine, Region, regions
from probes._scan_match import Matched, Matcher
from probes._scan_open import Plain, foreign, opened, unpacked
from probes._scan_subjects import LEAST, Subjects
from probes._scan_windows import KEEP, SNIFF, Stretch, Windows
from probes.base import Context, LogFormat

if TYPE_CHECKING:
    from concurrent.futures import Future

BLOCK = 4 << 20  # bytes searched at once
LINE = 64 << 10  # a longer line is taken apart
WORKERS = 2  # RE2 releases the interpreter lock: a search runs while the next block is read and counted

Input: TypeAlias = str | Path | BinaryIO
Progress: TypeAlias = Callable[[str, int, int | None], None]  # name, bytes read, bytes in all if known


@dataclass(frozen=True, slots=True)
class Note:
    """Something to know about an input; a `problem` when part of it was not read."""

    source: str
    text: Text
    problem: bool = True

    def __str__(self) -> str:
        return f"{self.source}: {self.text.en}"


@dataclass(frozen=True, slots=True)
class Scanned:
    """One input: how much of it was read, and by which formats."""

    source: str
    lines: int
    matches: int  # lines handed over because a trigger matched, over all formats
    formats: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScanResult:
    """Observations in the order of the inputs and their lines; what to know about the inputs."""

    observations: tuple[Observation, ...]
    notes: tuple[Note, ...]
    inputs: tuple[Scanned, ...]


def scan(
    inputs: Sequence[Input],
    formats: Sequence[LogFormat],
    context_for: Callable[[str], Context] = Context,
    progress: Progress | None = None,
    *,
    block: int = BLOCK,
    line: int = LINE,
    keep: int = KEEP,
    engine: str = "auto",
    fold: Callable[[], Fold] | None = None,
) -> ScanResult:
    """Read logs (files, ``-`` for standard input, open streams; plain, gzip, zstd, xz or bzip2).

    `context_for` gives the context of an input by its name. `block`, `line` and `keep` are bytes
    searched at once, of a line in one piece, and of one input's lines that are kept. `engine` is ``re2``, ``hyperscan``
    or ``auto``; the answer is the same. `fold` makes what folds the equal lines of an input. InputError when none of the inputs can be opened.
    """
    matcher = Matcher(formats, engine)
    observations: list[Observation] = []
    notes: list[Note] = []
    done: list[Scanned] = []
    failures: list[InputError] = []
    for item in inputs:
        try:
            name, stream, size, close = opened(item)
        except InputError as error:
            failures.append(error)
            notes.append(Note(str(item), Text(str(error), str(error))))
            continue
        job = _Job(name, stream, size, formats, matcher, progress, block, line, keep, fold and fold())
        try:
            job.run()
        finally:
            if close:
                stream.close()
        found, said, scanned = job.result(context_for(name))
        observations += found
        notes += said
        done.append(scanned)
    if failures and len(failures) == len(inputs):
        if len(failures) == 1:
            raise failures[0]
        raise InputError("none of the logs can be read: " + "; ".join(f.message for f in failures))
    return ScanResult(tuple(observations), tuple(notes), tuple(done))


class _Job:
    """The scan of one input."""

    def __init__(
        self, name: str, stream: BinaryIO, size: int | None, formats: Sequence[LogFormat], matcher: Matcher,
        progress: Progress | None, block: int, line: int, keep: int, fold: Fold | None,
    ) -> None:  # fmt: skip
        self.name = name
        self.size = size
        self.formats = formats
        self.matcher = matcher
        self.progress = progress
        self.block = block
        self.line = line
        self.reader = unpacked(stream)
        self.windows = Windows(formats, matcher, line, keep, fold)
        if size is not None:
            matcher.expect(size)
        self.subjects = Subjects()
        self.foreign: Text | None = None
        self.empty = True

    def run(self) -> None:
        """Read to the end."""
        if os.cpu_count() == 1:
            self._inline(self._regions())
        else:
            self._threaded()

    def _regions(self) -> Iterator[Region | LongLine]:
        return regions(self._read, self.block, self.line, self.matcher.matches)

    def _read(self, size: int) -> bytes:
        if self.foreign is not None:
            return b""
        data = self.reader.read(size)
        if self.empty and data:
            self.empty = False
            while len(data) < SNIFF and (more := self.reader.read(SNIFF - len(data))):
                data += more
            self.foreign = foreign(data[:SNIFF], self.name, packed=not isinstance(self.reader, Plain))
            if self.foreign is not None:
                return b""
        if self.progress is not None and data:
            self.progress(self.name, self.reader.consumed, self.size)
        return data

    def _inline(self, parts: Iterator[Region | LongLine]) -> None:
        for part in parts:
            if isinstance(part, Region):
                self.windows.region(part, self.matcher.lines(*part))
            else:
                self.windows.long_line(part)

    def _threaded(self) -> None:
        """Search blocks in threads, take their results in order."""
        parts = self._regions()
        first = next(parts, None)
        second = next(parts, None)
        if first is None or second is None:  # small: not worth a thread
            self._inline(iter([first] if first is not None else []))
            return
        waiting: deque[tuple[Region | LongLine, Future[Matched] | None]] = deque()
        from concurrent.futures import ThreadPoolExecutor  # loads logging: a small log has no use for it

        with ThreadPoolExecutor(WORKERS, "scan") as pool:
            for part in chain((first, second), parts):
                small = isinstance(part, Region) and part.end - part.start < 4096
                future = None
                if isinstance(part, Region) and not small:
                    future = pool.submit(self.matcher.lines, *part)
                waiting.append((part, future))
                while len(waiting) > 2 * WORKERS + 2:
                    self._settle(*waiting.popleft())
            while waiting:
                self._settle(*waiting.popleft())

    def _settle(self, part: Region | LongLine, future: Future[Matched] | None) -> None:
        if isinstance(part, Region):
            self.windows.region(part, future.result() if future else self.matcher.lines(*part))
        else:
            self.windows.long_line(part)

    def result(self, context: Context) -> tuple[list[Observation], list[Note], Scanned]:
        """What the formats make of the lines, and what there is to say about the input."""
        windows = self.windows
        lines = windows.finish()
        chosen = _choose(self.formats, windows)
        parts: list[Sequence[Observation]] = []
        for i, claimed in chosen:
            stretches = windows.stretches[i]
            told = replace(
                context,
                times={s.rest[-1]: 1 + s.many - len(s.own) for s in stretches},
                since={n: s.first for s in stretches for n in s.rest},
                programs={s.rest[-1]: s.programs for s in stretches},
            )
            found: Sequence[Observation] = self.formats[i].parse(lines[i], told)
            lines[i] = []
            if not claimed:  # another format knows this file: this one only adds what it found
                found = [o for o in found if o.status is Status.OK]
            found = _repeated(found, stretches, self.formats[i])
            parts.append(self.subjects.told(found))
        observations = [
            o for (i, _), part in zip(chosen, parts, strict=True) for o in self._honest(part, self.formats[i])
        ]
        notes = [Note(self.name, text, problem) for text, problem in self._remarks()]
        names = tuple(self.formats[i].name for i, _ in chosen)
        return observations, notes, Scanned(self.name, windows.lines, sum(windows.hits), names)

    def _honest(self, found: Iterable[Observation], of: LogFormat) -> list[Observation]:
        """ "None seen" is not said of a file of which matching lines had to be left out, and a number of lines is the least."""
        unread = f" {self.foreign.en}" if self.foreign else ""
        if not unread and self.empty:  # packed data that breaks ahead of its first byte is not empty
            unread = f": {self.reader.problem.en}" if self.reader.problem else " the file is empty"
        lost = self.windows.lost or self.subjects.refused or any(line.lost for line in self.windows.long.values())
        out = []
        for o in found:
            if o.status is Status.FAILED and unread:
                out.append(replace(o, detail=f"{self.name}{unread}"))
            elif o.status is Status.NONE_SEEN and lost:
                detail = "the log holds more different lines that match than can be told apart"
                out.append(replace(o, status=Status.FAILED, detail=detail, window=None))
            elif o.fact in of.counts and isinstance(o.value, int) and lost:
                out.append(replace(o, detail=f"{AT_LEAST}: more different lines match than can be told apart"))
            else:
                out.append(replace(o, detail=LEAST) if self.subjects.least(o) else o)
        return out

    def _remarks(self) -> Iterator[tuple[Text, bool]]:
        windows = self.windows
        if self.foreign is not None:
            yield self.foreign, True
        elif self.empty and self.reader.problem is None:
            yield Text("is empty", "为空文件"), True
        if self.reader.problem is not None:
            yield self.reader.problem, True
        if windows.long:
            number, line = min(windows.long.items())
            kib = self.line // 1024
            yield (
                Text(
                    f"{len(windows.long)} line(s) longer than {kib} KiB (the first is line {number}, {line.length} bytes): "
                    "their beginning, their end and the parts that match were read",
                    f"{len(windows.long)} 行超过 {kib} KiB（首个为第 {number} 行，{line.length} 字节）：只读取了开头、结尾和匹配的部分",
                ),
                any(entry.lost for entry in windows.long.values()),
            )
        if windows.lost:
            yield (
                Text(
                    f"{windows.lost} lines were only counted: more different lines match than can be told apart, "
                    "so each GPU, port and node has at least as many events as are told",
                    f"匹配的不同行过多，有 {windows.lost} 行只计数、未逐行区分；各 GPU、端口和节点的事件数为下限",
                ),
                True,
            )
        if self.subjects.refused:
            yield (
                Text(
                    f"{self.subjects.refused} lines were only counted: they are about more GPUs, ports and nodes than one answer tells apart "
                    "(read the log of one node for those)",
                    f"有 {self.subjects.refused} 行只计数：涉及的 GPU、端口和节点数量超出一次回答可区分的范围（请单独读取某个节点的日志）",
                ),
                True,
            )
        if windows.alone:
            yield (
                Text(
                    f"{windows.alone} lines around those that match were left out: there are more than can be kept",
                    f"匹配行周围有 {windows.alone} 行未使用：数量超出可保留的范围",
                ),
                True,
            )


def _repeated(found: Sequence[Observation], stretches: Sequence[Stretch], of: LogFormat) -> Sequence[Observation]:
    """Each event as often as its line stands for, in the time since the first of those lines; of bursts as many as there were
    (`LogFormat.bursts`), of states one.
    """
    if not stretches:
        return found
    whose = {number: stretch for stretch in stretches for number in stretch.rest}
    begun = {(o.fact, o.source.line): o for o in found}
    burst: dict[
        tuple[str, Subject, int], list[int]
    ] = {}  # places of the events of a stretch, apart from those of its first line
    out: list[Observation | None] = list(found)
    for place, o in enumerate(found):
        stretch = whose.get(o.source.line or 0)
        if stretch is None or not isinstance(o.value, Event) or o.fact in of.counts or of.stands(o):
            continue
        if o.fact in of.bursts:
            burst.setdefault((o.fact, o.subject, stretch.first), []).append(place)
        elif o.source.line == stretch.rest[-1]:
            # the others may tell nothing: what they tell it with is folded
            told = sum((o.fact, number) in begun for number in stretch.own)
            out[place] = _stands_for(o, 1 + stretch.many - told, begun.get((o.fact, stretch.first)))
    for (fact, _, first), places in burst.items():
        many = whose[found[places[0]].source.line or 0].pauses[of.bursts[fact]]
        for place in places[many:]:  # the burst goes on: the lines that would tell are folded
            out[place] = None
        if 0 < len(places) < many:
            out[places[-1]] = _stands_for(found[places[-1]], 1 + many - len(places), begun.get((fact, first)))
    return [o for o in out if o is not None]


def _stands_for(o: Observation, times: int, first: Observation | None) -> Observation:
    """The event for so many of its kind, of which `first` is the first where a line tells it."""
    start = first.at if first is not None and first.clock is o.clock else None  # not known: it may lie anywhere before
    return replace(o, times=times * o.times, window=None if o.at is None else (min(start or 0, o.at), o.at))


def _choose(formats: Sequence[LogFormat], windows: Windows) -> list[tuple[int, bool]]:
    """Places of the formats that read this file, and whether each recognises it as its own.

    A format reads a file that it recognises or in which one of its triggers matched. The file
    belongs to the format that is surest, and to those at least half as sure. When no format
    recognises anything, all of them read it, and say that they found nothing to read.
    """
    head = windows.sniffed()
    scores = [f.sniff(head) for f in formats]
    if best := max(scores, default=0):
        return [(i, 2 * score >= best) for i, score in enumerate(scores) if score or windows.hits[i]]
    matched = [(i, True) for i in range(len(formats)) if windows.hits[i]]
    return matched or [(i, True) for i in range(len(formats))]
