"""Patterns that are made when they are first used, of the forms that `make` compiled.

A parser has dozens of them, a sentence of `ask` is held against two hundred, and most answers need a few of all. `re`
compiles in Python, half a millisecond each, and can keep nothing; but what it compiles a pattern to is a list of
numbers, and to make a pattern of that takes a hundredth. The numbers lie in a file of this very version of Python, each
under the text of its pattern: a pattern that changed is not in it, and is compiled as ever.
"""

from __future__ import annotations

import _sre
import json
import re
import sys
from array import array
from collections.abc import Mapping
from functools import cache, partial
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, AnyStr, NamedTuple, cast

FORMS = f"patterns-{'.'.join(map(str, sys.version_info))}-{sys.byteorder}.bin"
_METHODS = (
    "search",
    "match",
    "fullmatch",
    "finditer",
    "findall",
    "sub",
    "subn",
    "split",
    "flags",
    "groups",
    "groupindex",
)
declared: list[_Lazy] = []


class _Lazy:
    def __init__(self, source: str | bytes, flags: int) -> None:
        self.source: tuple[Any, int] = source, flags
        self.pattern = source  # known without it being compiled
        declared.append(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copy and pickle ask for what a pattern has not got
            raise AttributeError(name)
        pattern = made(*self.source, _shipped())
        self.__dict__.update({method: getattr(pattern, method) for method in _METHODS})
        return getattr(pattern, name)

    def __repr__(self) -> str:
        return f"lazy({self.source[0]!r})"


def lazy(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """``re.compile(pattern, flags)``, later. A pattern that is wrong is noticed at its first use: tests use them all."""
    return cast("re.Pattern[AnyStr]", _Lazy(pattern, flags))


class Forms(NamedTuple):
    """The file FORMS."""

    known: Mapping[
        str, str
    ]  # of each pattern: flags, groups, where its numbers begin and end, and its names with their groups
    numbers: bytes | mmap  # the file, mapped: a process needs a tenth of them
    begin: int  # where they begin


def forms(folder: Path) -> Forms:
    """What the file in this folder holds; nothing when there is none."""
    try:
        with (folder / FORMS).open("rb") as file:
            mapped = mmap(file.fileno(), 0, access=ACCESS_READ)
        return Forms(json.loads(mapped.readline()), mapped, mapped.tell())
    except (OSError, ValueError):
        return Forms({}, b"", 0)


_shipped = cache(partial(forms, Path(__file__).parent / "_compiled"))


def made(source: Any, flags: int, ready: Forms) -> re.Pattern[Any]:
    """``re.compile(source, flags)``, of its form where there is one."""
    form = ready.known.get(_key(source, flags))
    if form is None:
        return re.compile(source, flags)
    every, groups, start, end, *names = form.split()
    number_of = {name: int(number) for name, number in (pair.split(":") for pair in names)}
    name_of = dict(zip(number_of.values(), number_of, strict=True))
    code = array("I", ready.numbers[ready.begin + int(start) : ready.begin + int(end)]).tolist()
    by_number = tuple(name_of.get(number) for number in range(int(groups) + 1))
    out: re.Pattern[Any] = _sre.compile(source, int(every), code, int(groups), number_of, by_number)
    return out


def _key(source: str | bytes, flags: int) -> str:
    return f"{flags:d} {source!r}"


def compiled() -> bytes:
    """The file FORMS, of every pattern that the loaded modules declare."""
    known: dict[str, str] = {}
    numbers = bytearray()
    for source, flags in (pattern.source for pattern in declared):
        tree = re._parser.parse(source, flags)  # type: ignore[attr-defined]  # what `re.compile` does
        code = array("I", re._compiler._code(tree, flags)).tobytes()  # type: ignore[attr-defined]
        names = (f"{name}:{number}" for name, number in tree.state.groupdict.items())
        where = (len(numbers), len(numbers) + len(code))
        known[_key(source, flags)] = " ".join(
            map(str, (int(tree.state.flags | flags), tree.state.groups - 1, *where, *names))
        )
        numbers += code
    return json.dumps(known, ensure_ascii=False).encode() + b"\n" + numbers
