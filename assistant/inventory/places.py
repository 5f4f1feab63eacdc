"""Where each key of a TOML text stands: the parser of the standard library tells values and no places.

What is walked here has been parsed already, so it is TOML (https://toml.io/en/v1.0.0): the walk only has to know where strings,
arrays and inline tables end. Keys within an inline table stand on the line of the table's own key.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import TypeAlias

Path: TypeAlias = tuple[str, ...]
Place: TypeAlias = tuple[int, int]  # line and column, from 1

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_LITERAL = re.compile(r"'([^'\n]*)'")
_BASIC = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
# What a value consists of; the multi-line strings first, whose last quotes may stand ahead of the closing three.
_PIECE = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}' r"|'''(?:[^']|'(?!''))*'{3,5}" r'|"(?:[^"\\\n]|\\.)*"' r"|'[^'\n]*'"
    r"|#[^\n]*|[\[{]|[\]}]|\n|[^\"'#\[\]{}\n]+", re.DOTALL,
)  # fmt: skip


def places(text: str) -> dict[Path, Place]:
    """The place of every table and every key; the first one where a table is opened again."""
    out: dict[Path, Place] = {}
    lines = [0, *(i + 1 for i, c in enumerate(text) if c == "\n")]  # where each line begins
    prefix: Path = ()
    at = _end(_BLANK, text, 0)
    while at < len(text):
        begun = at
        if text[at] == "[":
            brackets = 2 if text.startswith("[[", at) else 1
            prefix, at = _key(text, _end(_SPACE, text, at + brackets))
            _note(out, lines, prefix, begun)
            at += brackets
        else:
            key, at = _key(text, at)
            _note(out, lines, (*prefix, *key), begun)
            at = _value(text, at + 1)
        at = _end(_BLANK, text, max(at, begun + 1))
    return out


def place(found: Mapping[Path, Place], key: Sequence[str]) -> Place:
    """Where `key` stands; else the table around it; else the top."""
    for size in range(len(key), 0, -1):
        if (at := found.get(tuple(key[:size]))) is not None:
            return at
    return 1, 1


def _note(out: dict[Path, Place], lines: Sequence[int], key: Path, at: int) -> None:
    number = bisect_right(lines, at)
    where = number, at - lines[number - 1] + 1
    for size in range(len(key), 0, -1):  # `[hosts.a]` opens `hosts` too
        out.setdefault(key[:size], where)


def _key(text: str, at: int) -> tuple[Path, int]:
    """A dotted key from `at` on, and where what follows it stands."""
    out: list[str] = []
    while True:
        at = _end(_SPACE, text, at)
        if bare := _BARE.match(text, at):
            out.append(bare[0])
        elif bare := _LITERAL.match(text, at):
            out.append(bare[1])
        elif bare := _BASIC.match(text, at):
            out.append(_unescaped(bare[0]))
        else:
            return tuple(out), at
        at = _end(_SPACE, text, bare.end())
        if not text.startswith(".", at):
            return tuple(out), at
        at += 1


def _unescaped(quoted: str) -> str:
    import tomllib

    try:
        return str(tomllib.loads(f"k = {quoted}")["k"])
    except tomllib.TOMLDecodeError:  # no text that was parsed before
        return quoted[1:-1]


def _value(text: str, at: int) -> int:
    """Where the line ends on which a value ends."""
    deep = 0
    while (piece := _PIECE.match(text, at)) is not None:
        at = piece.end()
        if piece[0] in ("[", "{"):
            deep += 1
        elif piece[0] in ("]", "}"):
            deep -= 1
        elif piece[0] == "\n" and deep <= 0:
            break
    return at


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
