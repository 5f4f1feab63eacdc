"""Patterns that are made when they are first used, of the forms that `make` compiled.

A parser has dozens of them, a sentence of `ask` is held against two hundred, and most answers need a few of all. `re`
compiles in Python, half a millisecond each, and can keep nothing; but what it compiles a pattern to is a list of
numbers, and to make a pattern of that takes a hundredth. The numbers lie in a file of this very version of Python, each
under the text of its pattern: a pattern that changed is not in it, and is compiled as ever.
"""

from __future__ import annotations

import _sre
import re
import sys
from array import array
from base64 import b64decode, b64encode
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, AnyStr, cast

from knowledge import parts

FORMS = f"patterns-{'.'.join(map(str, sys.version_info))}-{sys.byteorder}.parts"
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


@cache
def _shipped() -> Mapping[str, Any]:
    try:
        return parts.opened(Path(__file__).parent / "_compiled" / FORMS)
    except (OSError, ValueError):  # `make` was not here, or was another version's
        return {}


def made(source: Any, flags: int, forms: Mapping[str, Any]) -> re.Pattern[Any]:
    """``re.compile(source, flags)``, of its form where there is one."""
    key = _key(source, flags)
    if key not in forms:
        return re.compile(source, flags)
    flags, groups, numbers, form = forms[key]
    names = {number: name for name, number in numbers.items()}
    by_number = tuple(names.get(number) for number in range(groups + 1))
    code = array("I", b64decode(form)).tolist()
    out: re.Pattern[Any] = _sre.compile(source, flags, code, groups, numbers, by_number)
    return out


def _key(source: str | bytes, flags: int) -> str:
    return f"{flags:d} {source!r}"


def compiled() -> bytes:
    """The file FORMS, of every pattern that the loaded modules declare."""
    forms = {}
    for source, flags in (pattern.source for pattern in declared):
        tree = re._parser.parse(source, flags)  # type: ignore[attr-defined]  # what `re.compile` does
        code = array("I", re._compiler._code(tree, flags))  # type: ignore[attr-defined]
        state = tree.state
        form = (state.flags | flags, state.groups - 1, state.groupdict, b64encode(code.tobytes()).decode())
        forms[_key(source, flags)] = form
    return parts.written(forms)
