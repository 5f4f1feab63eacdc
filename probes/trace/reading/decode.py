"""Events out of blocks of text with msgspec: the plain decoder, and the oracle of the compiled one.

A decoder takes bytes in any portions (`feed`) and hands out complete events as columns. Clean JSON goes through
msgspec, a block at a time; an event in which msgspec finds a fault is read as `lenient` says, alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np

from probes.trace.columns import (
    ABSENT,
    ARGS,
    BASE,
    CATEGORIES,
    GROUP_OF,
    NO_TEXT,
    Arg,
    ArgKind,
    Array,
    Cat,
    Group,
    Strings,
    Wanted,
    dtype_of,
)
from probes.trace.reading.lenient import WHITE, Damaged, Unfinished, close, last_cut, members, resume
from probes.trace.reading.tally import (
    LABELS,
    LIMITS,
    TEXT_COST,
    TOO_MANY,
    Limits,
    Meta,
    Tally,
    known,
    pairs,
    take_metadata,
)
from probes.trace.reading.values import floating, integer, nanoseconds, text_of, tidy

FLOWS: Final = (b'"s"', b'"t"', b'"f"')

_CATS: Final = {f'"{c}"'.encode(): kind for c, kind in CATEGORIES.items()}
_FIELDS: Final = ("ph", "cat", "name", "pid", "tid", "ts", "dur")
_LIST = re.compile(rb"[{\[\]]")
_AT = re.compile(r"\(byte (\d+)\)")
_FAULTS: Final = 8  # of a block; then it is read event by event
_NULL: Final = (b"", b"null")
_PRE: Final = WHITE + b","


_Column: TypeAlias = tuple[Callable[[bytes], Any], Any, list[Callable[[Any], msgspec.Raw]]]


class Decoder:
    """Columns of the wanted groups, from text in portions."""

    def __init__(self, wanted: Wanted, strings: Strings, limits: Limits = LIMITS) -> None:
        self.tally = Tally()
        self.meta = Meta()
        self.done = False  # the events' list was closed
        self.rest = b""  # behind the closing bracket
        self._wanted = wanted
        self._strings = strings
        self._ids: dict[bytes, int] = {}
        self._spent = 0
        self._kept = b""
        self._lost = False  # behind damage, before the next event
        self._retries = limits.retries
        self._limits = limits
        names = sorted({column for columns in wanted.values() for column in columns})
        self._keys = {key.encode() for name in names for key in ARGS[name].keys} | {b"name", b"labels"}
        self._event, self._arguments, self._decode = _types(sorted(k.decode() for k in self._keys))
        self._columns_of = {g: [self._column(ARGS[c]) for c in sorted(columns)] for g, columns in wanted.items()}
        self._rows: dict[Group, list[tuple[Any, ...]]] = {g: [] for g in wanted}
        self._kinds: dict[tuple[bytes, bytes], tuple[Cat, Group]] = {}

    def _column(self, arg: Arg) -> _Column:
        """How an argument's text becomes a value, and from which fields."""
        of = {ArgKind.TEXT: self._id, ArgKind.INT: integer, ArgKind.FLOAT: floating}[arg.kind]
        absent = {ArgKind.TEXT: NO_TEXT, ArgKind.INT: int(ABSENT), ArgKind.FLOAT: float("nan")}[arg.kind]
        return of, absent, [attrgetter(_field(key)) for key in arg.keys]

    def feed(self, data: bytes | memoryview, last: bool = False) -> dict[Group, dict[str, Array]]:
        """The events that are complete in what was fed so far. After `last` nothing is kept back."""
        if self.done:
            return {}
        text = b"".join((self._kept, data))
        self._kept = b""
        at = self._resume(text, 0) if self._lost else 0
        faults = 0
        while at < len(text):
            if faults < _FAULTS and not self._lost:
                at = self._fast(text, at)
                faults += 1
            at = self._step(text, at, last)
        return self._columns()

    def _fast(self, text: bytes, at: int) -> int:
        """Whole events in front of the last that may be one, if they are clean; behind them, else `at`."""
        stop = len(text)
        for _ in range(3):
            cut = last_cut(text, at, stop)
            if cut <= at:
                return at
            part = text[at:cut]
            clean = part.lstrip(_PRE)
            try:
                for event in self._events(clean):
                    self._take(event)
                return cut
            except msgspec.DecodeError as error:
                where = _AT.search(str(error))
                if where is None:
                    return at
                stop = min(stop - 1, at + len(part) - len(clean) + int(where[1]))
            except (RecursionError, UnicodeDecodeError):
                return at
        return at

    def _events(self, text: bytes) -> list[Any]:
        try:
            return self._decode(b"[" + text + b"]")
        except msgspec.DecodeError:
            plain = tidy(text)
            if plain == text:
                raise
        return self._decode(b"[" + plain + b"]")

    def _step(self, text: bytes, at: int, last: bool) -> int:
        """One element of the list, read leniently; behind it."""
        match = _LIST.search(text, at)
        if match is None:
            return len(text)
        begin = match.start()
        if match[0] == b"]":
            self.done, self.rest = True, text[begin:]
            return len(text)
        try:
            if match[0] == b"{":
                return self._one(text, begin)
            end = close(text, begin + 1, min(len(text), begin + self._limits.event))
        except Damaged as damage:
            self.tally.skipped += 1
            return self._resume(text, damage.at)
        except Unfinished:
            return self._unfinished(text, begin, last)
        self.tally.skipped += 1
        return end

    def _unfinished(self, text: bytes, begin: int, last: bool) -> int:
        whole = len(text) - begin >= self._limits.event
        if not whole and not last:
            self._kept = text[begin:]
            return len(text)
        self.tally.skipped += whole
        if self._retries:
            self._retries -= 1
            return self._resume(text, begin + 1)
        return self._resume(text, min(begin + self._limits.event, len(text)))

    def _resume(self, text: bytes, at: int) -> int:
        at, self._kept = resume(text, at)
        self._lost = at >= len(text)
        return at

    def _one(self, text: bytes, begin: int) -> int:
        """Takes the event at `begin`; behind it. Raises Damaged and Unfinished."""
        stop = min(len(text), begin + self._limits.event)
        found: dict[str, bytes] = {}
        end = begin
        for key, low, high in members(text, begin + 1, stop):
            end = high
            if key is None:
                break
            name = key.decode("latin-1")
            if name in _FIELDS or name == "args":
                found[name] = text[low:high]
                if self._settled(found):
                    end = close(text, high, stop)
                    if found["ph"] == b'"M"':
                        return self._metadata(text[begin:end], end)
                    break
        self._take(self._made(found))
        return end

    def _settled(self, found: dict[str, bytes]) -> bool:
        """Whether the rest of the event cannot matter: nothing of it is kept."""
        ph = found.get("ph")
        if ph is None:
            return False
        return ph in FLOWS or ph == b'"M"' or ("cat" in found and _kind(found["cat"], ph)[1] not in self._wanted)

    def _made(self, found: dict[str, bytes]) -> Any:
        args = found.pop("args", b"")
        made = self._arguments(**{_field(k): msgspec.Raw(v) for k, v in pairs(args, self._keys).items()})
        return self._event(**{k: msgspec.Raw(v) for k, v in found.items()}, args=made)

    def _metadata(self, raw: bytes, end: int) -> int:
        self.tally.events += 1
        take_metadata(self.meta, raw)
        return end

    def _id(self, raw: bytes) -> int:
        found = self._ids.get(raw)
        if found is None:
            if self._spent + len(raw) + TEXT_COST > self._limits.texts:
                self.tally.texts_lost += 1
                return self._strings.id(TOO_MANY)
            self._spent += len(raw) + TEXT_COST
            found = self._ids[raw] = self._strings.id(text_of(raw))
        return found

    def _take(self, event: Any) -> None:
        tally = self.tally
        tally.events += 1
        ph = bytes(event.ph)
        if ph in FLOWS:
            tally.flows += 1
            return
        args = event.args if isinstance(event.args, self._arguments) else None
        if ph == b'"M"':
            said = {k: text_of(v) for k in ("name", "labels") if args is not None and (v := _given(args, _field(k)))}
            self.meta.add(
                text_of(_given(event, "name")), text_of(_given(event, "pid")), text_of(_given(event, "tid")), said
            )
            return
        label = bytes(event.cat)
        cat, group = self._kind(label, ph)
        rows = self._rows.get(group)
        if rows is None:
            tally.ignore(label)
            return
        start, dur, name = nanoseconds(bytes(event.ts)), 0, bytes(event.name)
        if (raw := bytes(event.dur)) not in _NULL:
            dur = nanoseconds(raw)  # type: ignore[assignment]  # None is looked for below
        if start is None or dur is None or name in _NULL:
            tally.skipped += bool(name or event.ts)  # JAX ends its list with an empty event
            return
        row = [start, dur, self._id(name), cat, self._id(_given(event, "pid")), self._id(_given(event, "tid"))]
        for of, absent, fields in self._columns_of[group]:
            value = absent
            if args is not None:
                for given in fields:
                    raw = bytes(given(args))
                    if raw and raw != b"null":
                        value = of(raw)
                        break
            row.append(value)
        rows.append(tuple(row))

    def _kind(self, label: bytes, ph: bytes) -> tuple[Cat, Group]:
        found = self._kinds.get((label, ph))
        if found is None:
            if len(self._kinds) > LABELS:
                self._kinds.clear()
            found = self._kinds[label, ph] = _kind(label, ph)
        return found

    def _columns(self) -> dict[Group, dict[str, Array]]:
        found: dict[Group, dict[str, Array]] = {}
        for group, rows in self._rows.items():
            if rows:
                names = [*BASE, *sorted(self._wanted[group])]
                values = zip(*rows, strict=True)
                found[group] = {n: np.array(v, dtype_of(n)) for n, v in zip(names, values, strict=True)}
                rows.clear()
        return found


def _given(of: Any, key: str) -> bytes:
    """A field's text; empty when it is absent or null."""
    return known(bytes(getattr(of, key)))


def _kind(label: bytes, ph: bytes) -> tuple[Cat, Group]:
    cat = _CATS.get(label, Cat.OTHER)
    if ph != b'"X"' and cat is not Cat.MEMORY:
        cat = Cat.OTHER
    return cat, GROUP_OF[cat]


def _field(key: str) -> str:
    return "a_" + re.sub(r"\W", "_", key)


def _types(keys: list[str]) -> tuple[Any, Any, Callable[[bytes], list[Any]]]:
    raw = msgspec.Raw
    args = msgspec.defstruct(
        "Args", [(_field(k), raw, raw(b"")) for k in keys], rename={_field(k): k for k in keys}, gc=False
    )
    other = str | int | float | bool | list[raw] | None  # type: ignore[valid-type]
    event = msgspec.defstruct(
        "Event", [(k, raw, raw(b"")) for k in _FIELDS] + [("args", args | other, None)], gc=False
    )  # fmt: skip
    return event, args, msgspec.json.Decoder(list[event]).decode  # type: ignore[valid-type]
