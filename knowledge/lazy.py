"""Patterns that are compiled when they are first used.

A parser has dozens of them, most answers need a few, and compiling all took a fifth of `check` on
a small log.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

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


class _Lazy:
    def __init__(self, source: str | bytes, flags: int) -> None:
        self._source: tuple[Any, int] = source, flags
        self.pattern = source  # known without it being compiled

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copy and pickle ask for what a pattern has not got
            raise AttributeError(name)
        compiled = re.compile(*self._source)
        self.__dict__.update({method: getattr(compiled, method) for method in _METHODS})
        return getattr(compiled, name)

    def __repr__(self) -> str:
        return f"lazy({self._source[0]!r})"


def lazy(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """``re.compile(pattern, flags)``, later. A pattern that is wrong is noticed at its first use: tests use them all."""
    return cast("re.Pattern[AnyStr]", _Lazy(pattern, flags))
