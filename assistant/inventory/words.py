"""What the inventory file may hold: names, and the values of its keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from assistant.inventory.model import REACH, VIAS, Key
from knowledge.errors import nearest_hint
from knowledge.text import clean, excerpt

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")  # as DNS, Slurm and Kubernetes allow them; safe in any list
NO_NAME = "is no name: letters, digits, dots, dashes and underscores"
# Where (the path of a key), what, and the nearest that is allowed.
Faults: TypeAlias = Callable[[Sequence[str], str, str], None]
THIS = "{name}"  # within a value: the name of the machine, for sets of them
_GPUS = Key("number", most=1024)


def values(
    table: Mapping[str, Any], key: Sequence[str], known: Collection[str], file: str, fault: Faults
) -> dict[str, Any]:
    """The values of a table that are what they have to be; of the others `fault` is told. `file`: paths count from its folder."""
    out = {}
    for name, value in table.items():
        where = (*key, name)
        if name not in known:
            fault(where, f"unknown key {excerpt(name, 60)!r}", nearest_hint(name, known))
            continue
        found, wrong = _value(name, value, file)
        if wrong:
            fault(where, wrong, nearest_hint(str(value), VIAS) if name == "via" else "")
        else:
            out[name] = found
    return out


def shown(value: Any) -> str:
    """A value as a fault names it."""
    return excerpt(repr(value), 60)


def _value(name: str, value: Any, file: str) -> tuple[Any, str]:
    """`value` as it is used, and what is wrong with it; empty when it is right."""
    match name:
        case "via":
            return value, "" if value in VIAS else f"via is {shown(value)}"
        case "aliases":
            right = isinstance(value, list) and all(isinstance(v, str) for v in value)
            return value, "" if right else f"aliases is a list of names, not {shown(value)}"
        case "labels":
            return _labels(value)
        case "gpus":
            return _number(name, value, _GPUS)
    spec = REACH[name]
    match spec.kind:
        case "flag":
            return value, "" if isinstance(value, bool) else f"{name} is true or false, not {shown(value)}"
        case "number" | "seconds":
            return _number(name, value, spec)
        case _:
            return _text(name, value, spec, file)


def _labels(value: Any) -> tuple[Any, str]:
    if isinstance(value, dict) and all(isinstance(v, str | int | float) for v in value.values()):
        return {clean(k): clean(str(v)) for k, v in value.items()}, ""
    return None, f"labels is a table of words, not {shown(value)}"


def _number(name: str, value: Any, spec: Key) -> tuple[Any, str]:
    whole = spec.kind == "number"
    right = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    if right and spec.least <= value <= spec.most:
        return (value if whole else float(value)), ""
    what = "a whole number" if whole else "a number of seconds"
    return None, f"{name} is {what} from {spec.least:g} to {spec.most:g}, not {shown(value)}"


def _text(name: str, value: Any, spec: Key, file: str) -> tuple[Any, str]:
    if not isinstance(value, str) or not value:
        return None, f"{name} is a word, not {shown(value)}"
    if spec.kind == "path":
        value, wrong = _path(value, file)
        if wrong:
            return None, wrong
    from probes.remote.reach import Reach

    try:
        Reach("x", **{name: value.replace(THIS, "x")})
    except ValueError as error:
        return None, str(error)
    return value, ""


def _path(value: str, file: str) -> tuple[Any, str]:
    """A path counts from the folder of the file that names it."""
    try:
        return str(Path(file).absolute().parent / Path(value).expanduser()), ""
    except RuntimeError:  # ~somebody, whom nobody knows
        return None, f"{shown(value)} begins with nobody's home"
