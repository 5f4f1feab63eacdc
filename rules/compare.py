"""Two-valued comparison of a value that is there with what a condition asks."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from knowledge.lazy import lazy
from knowledge.observation import Event, Scalar, Value
from rules.condition import FieldTest, Op, Reference

_VERSION = lazy(r"[vV]?([0-9]{1,9}(?:\.[0-9]{1,9})*)")


def version(text: str) -> tuple[int, ...]:
    """The numbers that a version begins with, without zeros at the end (12.4 is 12.4.0); empty when there is none."""
    found = _VERSION.match(text.strip())
    parts = [int(part) for part in found[1].split(".")] if found else []
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def compare(value: Value, op: Op, wanted: Scalar | tuple[Scalar, ...] | Reference) -> bool:
    """Two-valued comparison of a present value. Values of other kinds compare as different."""
    check: Callable[[Value, object], bool] = _COMPARE[op]
    return check(value, wanted)


def _number(op: Callable[[float, float], bool]) -> Callable[[Value, object], bool]:
    def check(value: Value, wanted: object) -> bool:
        if isinstance(value, int | float) and isinstance(wanted, int | float):
            return op(value, wanted)
        return False

    return check


def _equal(value: Value, wanted: object) -> bool:
    if isinstance(value, bool) != isinstance(wanted, bool):
        return False
    return value == wanted


def _one_of(value: Value, items: tuple[object, ...]) -> bool:
    return value in items and any(_equal(value, item) for item in items)  # the first is quick, and takes 1 for true


def _contains(value: Value, wanted: object) -> bool:
    items = wanted if isinstance(wanted, tuple) else (wanted,)
    if isinstance(value, str):
        return any(str(item).casefold() in value.casefold() for item in items)
    return isinstance(value, tuple) and any(item in value for item in items)


@lru_cache(maxsize=512)
def _pattern(pattern: str) -> Callable[[str], object]:
    import re2

    compiled = re2.compile(pattern)

    def search(text: str) -> object:
        try:
            return compiled.search(text)
        except UnicodeEncodeError:  # half of a surrogate pair, from bytes that were no text
            return compiled.search(text.encode("utf-8", "replace").decode())

    return search


_COMPARE: dict[Op, Callable[[Value, object], bool]] = {
    Op.IS: _equal,
    Op.IS_NOT: lambda v, w: not _equal(v, w),
    Op.IN: lambda v, w: isinstance(w, tuple) and _one_of(v, w),
    Op.NOT_IN: lambda v, w: isinstance(w, tuple) and not _one_of(v, w),
    Op.AT_LEAST: _number(lambda a, b: a >= b),
    Op.AT_MOST: _number(lambda a, b: a <= b),
    Op.ABOVE: _number(lambda a, b: a > b),
    Op.BELOW: _number(lambda a, b: a < b),
    Op.CONTAINS: _contains,
    Op.MATCHES: lambda v, w: isinstance(v, str) and _pattern(str(w))(v) is not None,
    Op.VERSION_BELOW: lambda v, w: isinstance(v, str) and bool(version(v)) and version(v) < version(str(w)),
    Op.VERSION_AT_LEAST: lambda v, w: isinstance(v, str) and bool(version(v)) and version(v) >= version(str(w)),
}


def field_holds(test: FieldTest, event: Event) -> bool:
    """True when the event's field satisfies the test. A field that the line lacks satisfies nothing."""
    value = event.get(test.field)
    return value is not None and compare(value, test.op, test.value)
