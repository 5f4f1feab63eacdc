"""A rule file of the wrong shape, with something neutral in each place that is wrong: so that the rest of it can be checked.

What stands in for what is wrong is never judged: its path is among the faulty ones of the document.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

_ROUNDS = 6  # what is taken out may leave something else missing, one level above at a time
_NEUTRAL: Mapping[str, Any] = {
    "revision": 1, "title": {"en": ""}, "status": "stable", "severity": "warning", "scope": "node", "when": {},
    "action": {}, "why": {"en": ""}, "type": "int", "default": 0, "of": {"en": ""}, "given": {}, "expect": "matched",
}  # fmt: skip


def mended(data: Mapping[str, Any], stem: str) -> dict[str, Any] | None:
    """`data` in the shape of a rule file. Items of lists keep their places. None when it cannot be brought into shape."""
    from pydantic import ValidationError

    from rules.schema import RuleFile

    plain: dict[str, Any] = copy.deepcopy(dict(data))
    for _ in range(_ROUNDS):
        try:
            RuleFile.model_validate(plain)
        except ValidationError as error:
            _mend(plain, [(tuple(e["loc"]), e["type"]) for e in error.errors(include_url=False)], stem or "unnamed")
        else:
            return plain
    return None


def _mend(plain: dict[str, Any], complaints: list[tuple[tuple[Any, ...], str]], stem: str) -> None:
    """Put something neutral in each place that is complained of. Places are found before anything is moved."""
    found = [(_place(plain, loc), loc[-1] if loc else "", kind) for loc, kind in complaints]
    done: set[tuple[int, Any]] = set()
    for (inside, key), last, kind in reversed(found):
        if kind == "missing":
            whole = inside[key] if key is not None else plain
            whole[last] = stem if last == "id" else copy.deepcopy(_NEUTRAL.get(last, ""))
        elif key is not None and (id(inside), key) not in done:
            done.add((id(inside), key))
            _take_out(inside, key, kind)


def _place(plain: dict[str, Any], loc: tuple[Any, ...]) -> tuple[Any, Any]:
    """The mapping or list, and the key or index in it, of the last part of `loc` that exists (tags of unions do not)."""
    inside, key, here = None, None, plain
    for part in loc:
        exists = part in here if isinstance(here, dict) else isinstance(here, list) and part in range(len(here))
        if not exists:
            break
        inside, key, here = here, part, here[part]
    return inside, key


def _take_out(inside: Any, key: Any, kind: str) -> None:
    if isinstance(inside, dict) or kind in ("literal_error", "enum"):
        del inside[key]
    else:
        inside[key] = "" if kind == "string_type" else {}
