"""Events out of damaged text: what counts as an event when the JSON is not clean.

This is the reference that `decode` falls back on and that `scanner.c` follows to the letter: an object whose top
level is key, colon, value, comma; values are strings (control characters and unknown escapes allowed), bracketed
text whose brackets match outside strings, or any word (`NaN`). What breaks that is damage: it costs the event it
stands in, and reading goes on behind the next ``}, {``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_WORD = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_STRING = re.compile(_WORD, re.DOTALL)
_BRACKET = re.compile(_WORD + rb'|[{}\[\]"]', re.DOTALL)
_SPACE = re.compile(rb"[\x00-\x20]*+")
_SCALAR = re.compile(rb'[^\x00-\x20,}\]"{\[:]++')
_BETWEEN = re.compile(rb"\}[\x00-\x20]*+,[\x00-\x20]*+\{")
_ESCAPE = re.compile(rb'\\(?:(["\\/bfnrt])|u00([0-7][0-9a-fA-F]))')
_PLAIN: Final = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
WHITE: Final = bytes(range(33))
_TRIES: Final = 1000  # brackets that are looked at for one between events


class Unfinished(Exception):
    """The text ends within a value."""


class Damaged(Exception):
    """No JSON, whatever may follow."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


def close(text: bytes, at: int, stop: int) -> int:
    """Behind the bracket that closes the one just before `at`. Raises Unfinished."""
    depth = 1
    for match in _BRACKET.finditer(text, at, stop):
        token = match[0]
        if token in b"{[":
            depth += 1
        elif token in b"}]":
            depth -= 1
            if depth == 0:
                return match.end()
        elif token == b'"':
            raise Unfinished
    raise Unfinished


def members(text: bytes, at: int, stop: int) -> Iterator[tuple[bytes | None, int, int]]:
    """Key (plain, without quotes), begin and end of each value of the object whose ``{`` stands before `at`.

    At its end ``(None, end, end)``, end behind the ``}``. Raises Unfinished and Damaged.
    """
    while True:
        at = _over(text, at, stop)
        if text[at] == 0x7D:
            yield None, at + 1, at + 1
            return
        if text[at] != 0x22:
            raise Damaged(at)
        key = _STRING.match(text, at, stop)
        if key is None:
            raise Unfinished
        at = _over(text, key.end(), stop)
        if text[at] != 0x3A:
            raise Damaged(at)
        begin = _over(text, at + 1, stop)
        end = _value(text, begin, stop)
        yield _key(key[0][1:-1]), begin, end
        at = _over(text, end, stop)
        if text[at] == 0x2C:
            at += 1
        elif text[at] != 0x7D:
            raise Damaged(at)


def _over(text: bytes, at: int, stop: int) -> int:
    """The first byte that is no white space."""
    match = _SPACE.match(text, at, stop)
    if match is None or match.end() >= stop:
        raise Unfinished
    return match.end()


def _value(text: bytes, at: int, stop: int) -> int:
    if text[at] in b"{[":
        return close(text, at + 1, stop)
    match = (_STRING if text[at] == 0x22 else _SCALAR).match(text, at, stop)
    if match is None:
        if text[at] == 0x22:
            raise Unfinished
        raise Damaged(at)
    if match.end() >= stop:
        raise Unfinished
    return match.end()


def _key(raw: bytes) -> bytes:
    """A key without its escapes; one with escapes beyond ASCII is none that is looked for: empty."""
    if b"\\" not in raw:
        return raw
    plain = _ESCAPE.sub(lambda m: _PLAIN.get(m[1], m[1]) if m[1] else bytes([int(m[2], 16)]), raw)
    return b"" if _ESCAPE.sub(b"", raw).count(b"\\") else plain


def resume(text: bytes, at: int) -> tuple[int, bytes]:
    """Where the next event begins that follows another; or the end, and what to put before the text to come."""
    match = _BETWEEN.search(text, at)
    if match is not None:
        return match.end() - 1, b""
    tail = text[at:].rstrip(WHITE)
    if tail.endswith(b"}"):
        return len(text), b"}"
    if tail.endswith(b",") and tail[:-1].rstrip(WHITE).endswith(b"}"):
        return len(text), b"},"
    return len(text), b""


def last_cut(text: bytes, at: int, stop: int) -> int:
    """Behind the ``}`` of the last ``}, {`` in front of `stop`; `at` when there is none."""
    here = stop
    for _ in range(_TRIES):
        here = text.rfind(b"{", at, here)
        if here <= at:
            break
        head = text[max(at, here - 64) : here].rstrip(WHITE)
        if head.endswith(b","):
            body = head[:-1].rstrip(WHITE)
            if body.endswith(b"}"):
                return here - min(64, here - at) + len(body)
    return at
