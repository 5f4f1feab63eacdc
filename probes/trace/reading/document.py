"""The outside of a trace file: bytes from disk, and where in them the events stand.

A trace is ``{"key": ..., "traceEvents": [ {...}, {...} ], "key": ...}`` or a bare list of events, plain or in
gzip or zstd. The head and the tail are small; the list is what grows to gigabytes and is handed on in blocks.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias, cast

from knowledge.errors import InputError
from knowledge.text import clean
from probes.trace.reading.lenient import WHITE, Damaged, Unfinished, members
from probes.trace.reading.values import text_of, tidy

BLOCK: Final = 1 << 20  # bytes that are decoded together: they stay in the processor's cache
HEAD_CAP: Final = 64 << 20  # bytes in front of the events: some writers put whole reports there
STDIN: Final = "-"
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]:"]', re.DOTALL)
_BOM: Final = b"\xef\xbb\xbf"
_WIDE: Final = (b"\xff\xfe", b"\xfe\xff")
HINT: Final = "a torch profiler trace is JSON with the key traceEvents, as export_chrome_trace writes it"

Block: TypeAlias = bytes | memoryview


class Document:
    """A trace file that is read once, from front to back."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.meta: dict[str, Any] = {}  # the keys beside the events
        self.problem = ""  # why the file ends before its end
        self.stopped = False  # the events' list was not closed
        self._raw, self._stream, self.size = _open(path)
        self._buffer = bytearray(BLOCK) if self._stream is self._raw else None
        self._outside: list[bytes] = []  # the text around the events

    @property
    def consumed(self) -> int:
        """Bytes of the file (compressed ones, of a compressed file) that were read."""
        try:
            return self._raw.tell()
        except OSError:  # a pipe
            return 0

    @property
    def bare(self) -> bool:
        """Whether the events stand in a list alone, without an object around it."""
        return bool(self._outside) and self._outside[0].removeprefix(_BOM).lstrip(WHITE) == b"["

    def read(self) -> Block:
        """The next bytes of text, valid until the next call; none at the end, whether that is whole or not."""
        if self.problem:
            return b""
        try:
            if self._buffer is None:
                return self._stream.read1(BLOCK)  # type: ignore[attr-defined,no-any-return]  # what is there before a fault
            return memoryview(self._buffer)[: self._raw.readinto(self._buffer)]  # type: ignore[attr-defined]
        except _faults() as error:  # a killed job leaves half a file
            self.problem = clean(str(error) or type(error).__name__)
            return b""

    def open_events(self, rest: bytes = b"", depth: int = 0) -> bytes | None:
        """Reads up to the first event; returns what was read beyond.

        With `rest`, what stands behind a list of events, and `depth` 1 it looks for another one; None when there is
        none. InputError when there is none at all.
        """
        search = _Search(depth)
        data = bytearray(rest)
        while True:
            if depth == 0:
                self._refuse(data)
            found = search.find(data)
            if found is not None:
                self._outside.append(bytes(data[:found]))
                return bytes(data[found:])
            part = self.read()
            if not part or len(data) > HEAD_CAP:
                if depth == 0:
                    raise self._none(search, bool(part))
                if part:
                    self.problem = f"more than {HEAD_CAP >> 20} MiB follow the events"
                self._outside.append(bytes(data))
                return None
            data += part

    def _refuse(self, data: bytearray) -> None:
        """InputError for what cannot be a trace, from its first bytes."""
        if bytes(data[:2]) in _WIDE:
            raise InputError(f"{self.path} is UTF-16 text, not UTF-8", hint="convert it: iconv -f UTF-16 -t UTF-8")
        first = bytes(data[:4096]).removeprefix(_BOM).lstrip(WHITE)[:1]
        if first and first not in (b"{", b"["):
            raise InputError(f"{self.path} is no trace: it does not begin as JSON", hint=HINT)

    def _none(self, search: _Search, more: bool) -> InputError:
        if more:
            return InputError(f"{self.path} holds no traceEvents in its first {HEAD_CAP >> 20} MiB", hint=HINT)
        if not search.keys and not search.at and not self.problem:
            return InputError(f"{self.path} is empty", hint=HINT)
        why = f": {self.problem}" if self.problem else f"; its keys are {', '.join(search.keys)}" if search.keys else ""
        return InputError(f"{self.path} holds no trace events{why}", hint=HINT)

    def finish(self) -> None:
        """Everything was read: takes the keys around the events into `meta`."""
        for i, text in enumerate(self._outside):
            body = text.removeprefix(_BOM).lstrip(WHITE)
            if i == 0:
                self.meta |= _keys(body) if body[:1] == b"{" else {}
            else:
                self.meta |= _keys(b"{" + body[1:].lstrip(WHITE + b","))
        self.meta.pop("traceEvents", None)

    def stop(self) -> None:
        """The file ended within the events."""
        self.stopped = True
        self.finish()

    def close(self) -> None:
        """Closes the file."""
        if self._stream is not self._raw:
            self._stream.close()
        if self._raw is not sys.stdin.buffer:
            self._raw.close()


class _Search:
    """Looks for the events' list; `find` goes on where it stopped when more text is there."""

    def __init__(self, depth: int) -> None:
        self.keys: list[str] = []  # at the top level, the first few
        self.at = 0
        self._depth = depth
        self._last = self._key = b""

    def find(self, data: bytearray) -> int | None:
        """Behind the bracket of ``"traceEvents": [`` at the top level, or of a bare list."""
        for match in _TOKEN.finditer(data, self.at):
            token = match[0]
            if token == b'"':
                return None  # its end is still to come
            self.at = match.end()
            if token == b"[" and (self._depth == 0 or (self._depth == 1 and self._key == b'"traceEvents"')):
                return self.at
            if token in b"{[":
                self._depth += 1
            elif token in b"}]":
                self._depth = max(self._depth - 1, 1)
            elif self._depth == 1:
                if token == b":":
                    self._key = self._last
                    if len(self.keys) < 8:
                        self.keys.append(clean(text_of(self._key))[:40])
                else:
                    self._last = token
        return None


def _faults() -> tuple[type[Exception], ...]:
    """What reading compressed bytes may raise."""
    import zstandard
    from isal import isal_zlib

    return EOFError, OSError, zlib.error, cast("type[Exception]", isal_zlib.error), zstandard.ZstdError


def _open(path: str) -> tuple[BinaryIO, BinaryIO, int | None]:
    """The file, its text, and its size in bytes where that is known. InputError."""
    try:
        raw: Any
        if path == STDIN:
            raw, size = sys.stdin.buffer, None
            magic = raw.peek(4)[:4]
        else:
            raw = Path(path).open("rb", buffering=0)  # noqa: SIM115 - closed by Document.close
            magic = raw.read(4)
            size = os.fstat(raw.fileno()).st_size
            if raw.seekable():
                raw.seek(0)
            else:  # a pipe or a process substitution
                raw, size = io.BufferedReader(_Joined(magic, raw)), None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    if magic[:2] == b"\x1f\x8b":
        from probes.trace.reading.gunzip import Gunzip

        return raw, Gunzip(raw), size  # type: ignore[return-value]  # as much of a stream as `read` uses
    if magic == b"\x28\xb5\x2f\xfd":
        import zstandard

        reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(raw, read_across_frames=True)
        return raw, io.BufferedReader(reader, BLOCK), size
    return raw, raw, size


class _Joined(io.RawIOBase):
    """A few bytes that were read already, then the rest of a stream that cannot go back."""

    def __init__(self, first: bytes, rest: BinaryIO) -> None:
        self._first, self._rest = first, rest

    def readable(self) -> bool:
        """It is for reading only."""
        return True

    def readinto(self, into: Any) -> int:
        """Fills `into` from the front."""
        part = self._first or self._rest.read(len(into)) or b""
        self._first = b""
        into[: len(part)] = part
        return len(part)

    def close(self) -> None:
        """Closes the stream."""
        self._rest.close()
        super().close()


def _keys(text: bytes) -> dict[str, Any]:
    """The keys of an object's text, as far as it is whole. What is no JSON costs its key alone."""
    found: dict[str, Any] = {}
    try:
        for key, low, high in members(text, 1, len(text)):
            if key:
                try:
                    found[key.decode("utf-8", "replace")] = json.loads(tidy(text[low:high]).decode("utf-8", "replace"))
                except (ValueError, RecursionError):
                    continue
    except (Damaged, Unfinished):
        pass
    return found


def blocks(document: Document, first: bytes) -> Iterator[Block]:
    """What `open_events` left over, then block after block; each valid until the next."""
    yield first
    while part := document.read():
        yield part
