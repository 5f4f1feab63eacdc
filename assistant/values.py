"""Values as people say them, for the facts of the vocabulary: "off", "90 C", "1.5 GiB", "drain and reset"."""

from __future__ import annotations

import math
import re

from knowledge.errors import nearest_hint
from knowledge.facts import FactSpec, Type
from knowledge.language import Text
from knowledge.lazy import lazy
from knowledge.observation import Value
from knowledge.record import dataclass
from knowledge.text import excerpt
from knowledge.units import symbol

_YES = frozenset(
    {
        "true",
        "yes",
        "y",
        "on",
        "1",
        "enabled",
        "enable",
        "active",
        "set",
        "是",
        "真",
        "开",
        "开启",
        "启用",
        "打开",
        "已启用",
        "有",
    }
)
_NO = frozenset(
    {
        "false",
        "no",
        "n",
        "off",
        "0",
        "disabled",
        "disable",
        "inactive",
        "unset",
        "否",
        "假",
        "关",
        "关闭",
        "禁用",
        "停用",
        "已禁用",
        "没有",
    }
)
_NUMBER = lazy(r"([+-]?[0-9]{1,15}(?:\.[0-9]{1,9})?(?:e[+-]?[0-9]{1,2})?)\s*([^\d\s].{0,19})?")
# Units as they are written, by the unit of the fact: factor to it.
_UNITS: dict[str, dict[str, float]] = {
    "C": {"c": 1, "°c": 1, "℃": 1, "deg": 1, "degrees": 1, "degree": 1, "celsius": 1, "度": 1, "摄氏度": 1},
    "percent": {"%": 1, "percent": 1, "pct": 1, "％": 1},
    "MiB": {"mib": 1, "mb": 1, "m": 1, "gib": 1024, "gb": 1024, "g": 1024, "tib": 1048576, "kib": 1 / 1024},
    "MiB/s": {"mib/s": 1, "mb/s": 1, "gib/s": 1024, "gb/s": 1024},
    "GB/s": {"gb/s": 1, "gbytes/s": 1, "mb/s": 0.001, "tb/s": 1000},
    "Gb/s": {"gb/s": 1, "gbit/s": 1, "gbps": 1, "g": 1, "mb/s": 0.001, "mbit/s": 0.001},
    "W": {"w": 1, "watt": 1, "watts": 1, "kw": 1000, "瓦": 1},
    "MHz": {"mhz": 1, "ghz": 1000},
    "s": {"s": 1, "sec": 1, "seconds": 1, "ms": 0.001, "m": 60, "min": 60, "minutes": 60, "h": 3600, "hours": 3600, "秒": 1},
    "ms": {"ms": 1, "s": 1000, "us": 0.001},
    "us": {"us": 1, "ms": 1000, "s": 1_000_000},
    "per second": {"/s": 1, "per second": 1, "a second": 1},
    "per minute": {"/min": 1, "per minute": 1, "a minute": 1},
    "per day": {"/day": 1, "/d": 1, "per day": 1, "a day": 1},
    "count": {"x": 1, "times": 1, "次": 1, "个": 1},
    "ratio": {"x": 1, "%": 0.01, "percent": 0.01},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Problem:
    """Why what was said cannot be a value of a fact, and what can."""

    text: Text


def parse(spec: FactSpec, said: str, op: str = "is") -> Value | Problem:
    """What `said` means as a value of `spec`. `op` above and below: the least step beyond the number.

    Problem when it is no value that the fact can have; its text names those that are.
    """
    word = " ".join(said.split())[:200]
    match spec.type:
        case Type.BOOL:
            return _bool(spec, word, op)
        case Type.INT | Type.FLOAT:
            return _number(spec, word, op)
        case Type.ENUM:
            return _word(spec, word)
        case Type.SET:
            return _words(spec, word)
        case Type.STR if word and op == "is":
            return word
    return Problem(Text(f"No value of {spec.name} can be supposed.", f"无法假设 {spec.name} 的值。"))


def _bool(spec: FactSpec, word: str, op: str) -> bool | Problem:
    folded = word.casefold()
    if op == "none":
        return False
    if folded in _YES:
        return True
    if folded in _NO:
        return False
    return _refused(spec, word, Text("yes or no", "是或否"))


def _number(spec: FactSpec, word: str, op: str) -> int | float | Problem:
    if op == "none":
        return 0
    found = _NUMBER.fullmatch(word)
    sign = symbol(spec.unit)
    of = Text(f" in {sign}" if sign else "", f"（单位 {sign}）" if sign else "")
    unit = Text(f"a number{of.en}", f"数字{of.zh}")
    if found is None:
        return _refused(spec, word, unit)
    factor = _factor(spec.unit, (found[2] or "").strip())
    if factor is None:
        return _refused(spec, word, unit)
    value = float(found[1]) * factor
    if not math.isfinite(value):
        return _refused(spec, word, unit)
    if spec.type is Type.INT:
        whole = math.floor(value) if op == "above" else math.ceil(value)
        if op == "is" and value != whole:
            return _refused(spec, word, Text(f"a whole number{of.en}", f"整数{of.zh}"))
        return whole + {"above": 1, "below": -1}.get(op, 0)
    return value + {"above": 1, "below": -1}.get(op, 0) * max(abs(value) * 0.01, 1e-6)


def _factor(unit: str, said: str) -> float | None:
    if not said:
        return 1
    word = said.casefold()
    if word == unit.casefold():
        return 1
    return _UNITS.get(unit, {}).get(word)


def _word(spec: FactSpec, word: str) -> str | Problem:
    folded = _fold(word)
    for value in spec.values:
        label = spec.labels.get(value)
        if folded in (_fold(value), *((_fold(label.en), _fold(label.zh)) if label else ())):
            return value
    return _refused(spec, word, Text(*[", ".join(spec.values[:12])] * 2))


def _words(spec: FactSpec, word: str) -> tuple[str, ...] | Problem:
    if _fold(word) in ("none", "nothing", "empty", "", "无", "空"):
        return ()
    parts = [p for p in re.split(r"[,;、，；]| and |和", word) if p.strip()]
    if not spec.values:
        return tuple(dict.fromkeys(p.strip() for p in parts))
    out = []
    for part in parts:
        one = _word(spec, part.strip())
        if isinstance(one, Problem):
            return one
        out.append(one)
    return tuple(dict.fromkeys(out))


def _fold(word: str) -> str:
    return re.sub(r"[\s_-]+", " ", word.casefold()).strip()


def _refused(spec: FactSpec, word: str, allowed: Text) -> Problem:
    said = excerpt(word, 60)
    hint = nearest_hint(_fold(said).replace(" ", "_"), spec.values) if spec.values and len(spec.values) > 12 else ""
    more = f" ({hint})" if hint else ""
    return Problem(Text(
        f"{spec.name} is never {said!r}: it is {allowed.en}.{more}", f"{spec.name} 不会是 {said!r}：应为{' ' if allowed.zh[:1].isascii() else ''}{allowed.zh}。",
    ))  # fmt: skip
