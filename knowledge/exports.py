"""What the modules of a folder export, where the folder is the list: no two of them may take the same name or place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from knowledge.errors import TwinsError

T = TypeVar("T")


def unlike(found: Iterable[tuple[str, T]], things: str, own: Mapping[str, str]) -> list[T]:
    """What is exported, given with its module. TwinsError names every two modules that agree where each has its own.

    `own`: of an attribute, what is said of two that share it: ``{"name": "are called {!r}"}``.
    """
    known = list(found)
    clashes = []
    for attribute, said in own.items():
        seen: dict[object, str] = {}
        for module, thing in known:
            value = getattr(thing, attribute)
            if value in seen:
                clashes.append(f"two {things} {said.format(value)}: {seen[value]} and {module}")
            seen.setdefault(value, module)
    if clashes:
        raise TwinsError("\n".join(clashes))
    return [thing for _, thing in known]
