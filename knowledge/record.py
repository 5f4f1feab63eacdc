"""`dataclasses.dataclass`, at a tenth of its price for a class that is declared and not used.

The one of the standard library writes the source of six methods and compiles it when a class is declared: half a
millisecond each, which is a fifth of every start, and a command makes objects of one class in three. Here the methods
that need no source are shared, and ``__init__`` is written when the first object is made. For classes with slots; any
other is left to `dataclasses`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import MISSING, FrozenInstanceError, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # to a type checker it is the one of the standard library
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - exported
else:

    def dataclass(cls: type | None = None, /, **how: bool) -> Any:
        """`dataclasses.dataclass`, with the same arguments."""
        if how not in ({"slots": True}, {"slots": True, "frozen": True}):
            return dataclasses.dataclass(cls, **how)
        return lambda declared: _slotted(declared, frozen="frozen" in how)


def _slotted(declared: type, *, frozen: bool) -> Any:
    declared.__doc__ = declared.__doc__ or declared.__name__  # or `dataclasses` has `inspect` read a signature
    cls: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(declared)
    compared = _values(f.name for f in fields(cls) if f.compare)

    def __init__(self: Any, *args: Any, **named: Any) -> None:
        cls.__init__ = _init(cls, frozen=frozen)
        cls.__init__(self, *args, **named)

    def __eq__(self: Any, other: object) -> bool:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    methods: dict[str, Any] = {"__init__": __init__, "__repr__": _repr, "__eq__": __eq__, "__hash__": None}
    if frozen:
        hashed = _values(f.name for f in fields(cls) if (f.compare if f.hash is None else f.hash))
        methods |= {"__hash__": lambda self: hash(hashed(self)), "__setattr__": _refuse, "__delattr__": _refuse}
        methods |= {"__setstate__": _restore}
    for name, method in methods.items():
        if declared.__dict__.get(name) is None:  # a class that has its own keeps it
            setattr(cls, name, method)
    return cls


def _values(names: Iterable[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What reads these attributes of an object, as a tuple."""
    every = tuple(names)
    return attrgetter(*every) if len(every) > 1 else lambda self: tuple(getattr(self, name) for name in every)


def _init(cls: Any, *, frozen: bool) -> Any:
    """``__init__`` of a class, written as `dataclasses` does."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_absent": object()}
    parameters, lines = ["self"], []
    for f in fields(cls):
        if f.kw_only or not f.init:
            raise TypeError(f"{cls.__qualname__}.{f.name}: leave out slots=True, only `dataclasses` can do this")
        value, default = f.name, f"_default_{f.name}"
        if f.default_factory is not MISSING:
            known[default] = f.default_factory
            value, default = f"{default}() if {f.name} is _absent else {f.name}", "_absent"
        elif f.default is not MISSING:
            known[default] = f.default
        else:
            default = ""
        parameters.append(f"{f.name}={default}" if default else f.name)
        lines.append(f"_set(self, {f.name!r}, {value})" if frozen else f"self.{f.name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines or ["pass"]), known)
    known["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
    return known["__init__"]


def _repr(self: Any) -> str:
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{type(self).__qualname__}({shown})"


def _refuse(_self: Any, name: str, *_value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _restore(self: Any, state: tuple[None, dict[str, Any]]) -> None:
    """What was pickled or copied, into an object that refuses to be changed."""
    for name, value in state[1].items():
        object.__setattr__(self, name, value)
