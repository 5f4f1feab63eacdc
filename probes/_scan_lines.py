"""A stream of bytes as regions of whole lines, without copying them, and lines of any length.

CR, LF and CRLF end a line, as in `probes.base.lines_of`. A line longer than the cap is taken
apart into pieces that depend on its content alone, never on where a read happened to end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

SEAM = 4096  # how far back from the cap a good place to cut is looked for
MAX_HITS = 256  # pieces of one line that are kept because they match


class Region(NamedTuple):
    """Whole lines: ``data[start:end]``; the last one may lack its newline at the end of the file."""

    data: bytes
    start: int
    end: int


class LongLine(NamedTuple):
    """A line longer than the cap: its first piece, the pieces that match, its last piece."""

    pieces: tuple[bytes, ...]
    hits: tuple[int, ...]  # places in `pieces` of those that match
    length: int
    lost: int  # matching pieces that were not kept

    @property
    def ends(self) -> tuple[bytes, ...]:
        """The first and the last piece: what stands for the line as context."""
        return (self.pieces[0], self.pieces[-1]) if len(self.pieces) > 1 else self.pieces


class Cutter:
    """Takes a long line apart while it is read."""

    def __init__(self, cap: int, matches: Callable[[bytes], bool]) -> None:
        self.cap = cap
        self.matches = matches
        self.rest = b""
        self.length = 0
        self.kept: list[tuple[int, bytes, bool]] = []  # (index, piece, matches)
        self.count = 0
        self.hits = 0
        self.lost = 0

    def feed(self, data: bytes) -> None:
        """More of the line."""
        self.length += len(data)
        at = 0
        while len(self.rest) + len(data) - at > self.cap:
            take = self.cap - len(self.rest)
            window = self.rest + data[at : at + take]
            at += take
            cut = _place(window, self.cap)
            self._piece(window[:cut])
            self.rest = window[cut:]
        self.rest += data[at:]

    def _piece(self, piece: bytes) -> None:
        hit = self.matches(piece)
        if hit and self.hits >= MAX_HITS:
            self.lost += 1
        elif hit or self.count == 0:
            self.hits += hit
            self.kept.append((self.count, piece, hit))
        self.count += 1

    def finish(self) -> LongLine:
        """The line, once its end was seen."""
        last, self.rest = self.rest, b""
        hit = self.matches(last)
        self.kept.append((self.count, last, hit))
        pieces = tuple(piece for _, piece, _ in self.kept)
        hits = tuple(i for i, (_, _, hit) in enumerate(self.kept) if hit)
        return LongLine(pieces, hits, self.length, self.lost)


def _place(window: bytes, cap: int) -> int:
    """Where to cut: behind a JSON object, an escaped newline or a blank near the end, else at the end."""
    low = max(1, cap - SEAM)
    for mark in (b"},", b"\\n", b" "):
        at = window.rfind(mark, low)
        if at >= 0:
            return min(at + len(mark), cap)
    return cap


def cut(line: bytes, cap: int, matches: Callable[[bytes], bool]) -> LongLine:
    """A line that is in memory already, as `Cutter` would take it apart."""
    cutter = Cutter(cap, matches)
    cutter.feed(line)
    return cutter.finish()


def regions(
    read: Callable[[int], bytes], size: int, cap: int, matches: Callable[[bytes], bool]
) -> Iterator[Region | LongLine]:
    """The lines of a stream, about `size` bytes at a time."""
    carry: list[bytes] = []  # an unfinished line, shorter than the cap
    held = 0
    cutter: Cutter | None = None
    for data in _normalised(read, size):
        start = 0
        first = data.find(b"\n") if held or cutter else -2
        if first != -2:  # an unfinished line goes on here
            part = data if first < 0 else data[:first]
            held += len(part)
            if cutter is None and held > cap:
                cutter = Cutter(cap, matches)
                cutter.feed(b"".join(carry))
                carry = []
            if cutter is not None:
                cutter.feed(part)
            else:
                carry.append(part)
            if first < 0:
                continue
            if cutter is not None:
                yield cutter.finish()
                cutter = None
            else:
                line = b"".join(carry) + b"\n"
                yield Region(line, 0, len(line))
            carry, held, start = [], 0, first + 1
        end = data.rfind(b"\n", start) + 1
        if end > start:
            yield Region(data, start, end)
        else:
            end = start
        rest = data[end:]
        if rest:
            held = len(rest)
            if held > cap:
                cutter = Cutter(cap, matches)
                cutter.feed(rest)
            else:
                carry = [rest]
    if cutter is not None:
        yield cutter.finish()
    elif carry:
        line = b"".join(carry)
        yield Region(line, 0, len(line))


def _normalised(read: Callable[[int], bytes], size: int) -> Iterator[bytes]:
    """Chunks of about `size` bytes in which LF ends each line."""
    pending = False  # a CR at the end of the last chunk
    while data := _filled(read, size):
        if pending or b"\r" in data:
            data = b"\r" + data if pending else data
            pending = data.endswith(b"\r")
            data = (data[:-1] if pending else data).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if data:
            yield data
    if pending:
        yield b"\n"


def _filled(read: Callable[[int], bytes], size: int) -> bytes:
    """`size` bytes, fewer only at the end: pipes and unpackers give what they have."""
    data = read(size)
    if not data or len(data) >= size:
        return data
    parts, held = [data], len(data)
    while held < size and (data := read(size - held)):
        parts.append(data)
        held += len(data)
    return b"".join(parts)
