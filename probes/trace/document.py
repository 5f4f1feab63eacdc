"""The outside of a trace file: bytes from disk, and where in them the events stand.

A trace is ``{"key": ..., "traceEvents": [ {...}, {...} ], "key": ...}`` or a bare list of events. The head and
the tail are small; the list is what grows to gigabytes and is handed on in blocks.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from knowledge.errors import InputError

BLOCK: Final = 4 << 20  # bytes that are decoded together
HEAD_CAP: Final = 64 << 20  # bytes in front of the events: some writers put whole reports there
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
_CONTROL = bytes(32 if c < 32 else c for c in range(256))


class Document:
    """A trace file that is read once, from front to back."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.meta: dict[str, Any] = {}  # the keys beside the events
        self.problem = ""  # why the file ends before its end
        self.stopped = False  # the events' list was not closed
        self._raw, self._stream, self.size = _open(path)
        self._rest = b""
        self._head = b""

    @property
    def consumed(self) -> int:
        """Bytes of the file (compressed ones, of a compressed file) that were read."""
        return self._raw.tell()

    def read(self, size: int = BLOCK) -> bytes:
        """The next bytes of text; none at the end, whether that is whole or not."""
        if self.problem:
            return b""
        try:
            return self._stream.read(size)
        except (EOFError, zlib.error, OSError) as error:  # a killed job leaves half a file
            self.problem = str(error) or type(error).__name__
            return b""

    def open_events(self) -> bytes:
        """Reads up to the first event; returns what was read beyond. InputError when there is no list of events."""
        data = b""
        while True:
            part = self.read()
            data += part
            found = _events_at(data)
            if found is not None:
                self._head = data[:found]
                return data[found:]
            if not part:
                raise InputError(f"{self.path} holds no trace events" + (f": {self.problem}" if self.problem else ""),
                                 hint="a torch profiler trace is JSON with the key traceEvents")  # fmt: skip
            if len(data) > HEAD_CAP:
                raise InputError(f"{self.path} holds no traceEvents in its first {HEAD_CAP >> 20} MiB")

    def finish(self, rest: bytes) -> None:
        """Takes what stands behind the events' closing bracket, `rest` and all that follows, into `meta`."""
        parts = [rest]
        size = len(rest)
        while part := self.read():
            size += len(part)
            if size <= HEAD_CAP:
                parts.append(part)
        self.meta = _keys(self._head, b"".join(parts))

    def stop(self) -> None:
        """The file ended within the events."""
        self.stopped = True
        self.meta = _keys(self._head, b"]}")

    def close(self) -> None:
        """Closes the file."""
        self._stream.close()
        self._raw.close()


def _open(path: str) -> tuple[BinaryIO, BinaryIO, int]:
    from isal import igzip

    try:
        raw = Path(path).open("rb")  # noqa: SIM115 - closed by Document.close
        magic = raw.read(4)
        raw.seek(0)
        size = os.fstat(raw.fileno()).st_size
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    if magic[:2] == b"\x1f\x8b":
        return raw, igzip.IGzipFile(fileobj=raw, mode="rb"), size  # type: ignore[return-value,no-untyped-call]
    return raw, raw, size


def _events_at(data: bytes) -> int | None:
    """Where the first event may begin: behind the bracket of ``"traceEvents": [`` at the top level, or of a bare list."""
    depth = 0
    key = b""
    for match in _TOKEN.finditer(data):
        token = match[0]
        if token == b"[" and (depth == 0 or (depth == 1 and key == b'"traceEvents"')):
            return match.end()
        if token in (b"{", b"["):
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
        elif depth == 1 and data[match.end() : match.end() + 8].lstrip()[:1] == b":":
            key = token
    return None


def _keys(head: bytes, tail: bytes) -> dict[str, Any]:
    """The keys before and behind the events. A damaged tail costs only what stands in it."""
    if not head.lstrip().startswith(b"{"):
        return {}
    for end in (tail, b"]}"):
        try:
            found = json.loads((head + end).translate(_CONTROL).decode("utf-8", "replace"))
        except ValueError:
            continue
        if isinstance(found, dict):
            found.pop("traceEvents", None)
            return found
    return {}


def tidy(data: bytes) -> bytes:
    """`data` with a space for each control character: outside strings they are white space, inside forbidden."""
    return data.translate(_CONTROL)


def text_of(raw: bytes) -> str:
    """A JSON string literal (with its quotes) as text, any other value as its JSON text."""
    raw = tidy(raw)
    if raw[:1] != b'"':
        return raw.decode("utf-8", "replace").strip()
    if b"\\" not in raw:
        return raw[1:-1].decode("utf-8", "replace")
    return str(json.loads(raw.decode("utf-8", "replace"), strict=False))


def blocks(document: Document) -> Iterator[bytes]:
    """What `open_events` left over, then block after block."""
    yield document.open_events()
    while part := document.read():
        yield part
