"""Events out of blocks of text with msgspec: the plain decoder, and the oracle of the compiled one.

A decoder takes bytes in any portions (`feed`) and hands out complete events as columns. What is not JSON is
skipped up to the next event and counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import msgspec
import numpy as np

from probes.trace.columns import (
    ABSENT,
    ARGS,
    BASE,
    CATEGORIES,
    GROUP_OF,
    NO_TEXT,
    ArgKind,
    Array,
    Cat,
    Group,
    Strings,
    Wanted,
    dtype_of,
)
from probes.trace.document import text_of, tidy

_FLOWS: Final = frozenset({b'"s"', b'"t"', b'"f"'})
_SPAN: Final = frozenset({b'"X"'})
_EVENT = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)


@dataclass(slots=True)
class Tally:
    """What was met beside the kept events."""

    events: int = 0
    flows: int = 0
    skipped: int = 0  # no JSON, or without a usable time
    ignored: dict[str, int] = field(default_factory=dict)  # events of groups that nobody asked for, by category


@dataclass(slots=True)
class Meta:
    """Metadata events: how processes and threads are called. Keys are the texts of pid and tid."""

    process: dict[str, dict[str, str]] = field(default_factory=dict)  # pid -> name, labels
    thread: dict[tuple[str, str], str] = field(default_factory=dict)


def nanoseconds(raw: bytes) -> int | None:
    """Microseconds as decimal text to whole nanoseconds, exactly (half away from zero below a nanosecond).

    The text may be quoted. None for anything that is no finite number.
    """
    text = raw.strip(b' "')
    whole, point, part = text.partition(b".")
    if (whole.isdigit() or (whole[:1] == b"-" and whole[1:].isdigit())) and (not point or part.isdigit()):
        if len(part) <= 3:
            ns = abs(int(whole)) * 1000 + (int(part.ljust(3, b"0")) if part else 0)
        else:
            ns = abs(int(whole)) * 1000 + int(part[:3]) + (part[3] >= ord("5"))
        return -ns if whole[:1] == b"-" else ns
    try:
        exact = Decimal(text.decode("ascii")) * 1000
        return int(exact.to_integral_value("ROUND_HALF_UP")) if exact.is_finite() and abs(exact) < 2**62 else None
    except (InvalidOperation, ValueError, UnicodeDecodeError):
        return None


def integer(raw: bytes) -> int:
    """A number, quoted or not, as int64; ABSENT for anything else."""
    try:
        value = int(raw.strip(b' "'))
    except ValueError:
        try:
            value = int(float(raw.strip(b' "')))
        except (ValueError, OverflowError):
            return int(ABSENT)
    return value if -(2**63) < value < 2**63 else int(ABSENT)


def floating(raw: bytes) -> float:
    """A number, quoted or not; nan for anything else."""
    try:
        return float(raw.strip(b' "'))
    except ValueError:
        return float("nan")


class Decoder:
    """Columns of the wanted groups, from text in portions."""

    def __init__(self, wanted: Wanted, strings: Strings) -> None:
        self.tally = Tally()
        self.meta = Meta()
        self.done = False  # the events' list was closed
        self.rest = b""  # behind the closing bracket
        self._wanted = wanted
        self._strings = strings
        self._ids: dict[bytes, int] = {}
        self._kept = b""
        names = {column for columns in wanted.values() for column in columns}
        self._args = [ARGS[name] for name in sorted(names)]
        self._decode = _decoder({key for arg in self._args for key in arg.keys})
        self._rows: dict[Group, list[list[Any]]] = {
            g: [[] for _ in range(len(BASE) + len(columns))] for g, columns in wanted.items()
        }

    def feed(self, data: bytes, last: bool = False) -> dict[Group, dict[str, Array]]:
        """The events that are complete in what was fed so far. After `last` nothing is kept back."""
        text = self._kept + data
        cut = self._cut(text)
        self._kept = b"" if self.done or last else text[cut:]
        for event in self._events(text[:cut].strip(b", \r\n\t")):
            self._take(event)
        return self._columns()

    def _cut(self, text: bytes) -> int:
        """Up to where whole events reach."""
        depth, end = 0, 0
        for match in _EVENT.finditer(text):
            token = match[0]
            if token in (b"{", b"["):
                depth += 1
            elif token in (b"}", b"]"):
                depth -= 1
                if depth == 0:
                    end = match.end()
                elif depth < 0:
                    self.done = True
                    self.rest = text[match.start() :]
                    return end
        return end

    def _events(self, text: bytes) -> list[Any]:
        if not text:
            return []
        try:
            return self._decode(b"[" + text + b"]")
        except msgspec.DecodeError:
            pass
        try:
            return self._decode(tidy(b"[" + text + b"]"))
        except msgspec.DecodeError:
            return self._one_by_one(tidy(text))

    def _one_by_one(self, text: bytes) -> list[Any]:
        found = []
        depth = begin = 0
        for match in _EVENT.finditer(text):
            token = match[0]
            if token in (b"{", b"["):
                if depth == 0:
                    begin = match.start()
                depth += 1
            elif token in (b"}", b"]"):
                depth -= 1
                if depth == 0:
                    try:
                        found += self._decode(b"[" + text[begin : match.end()] + b"]")
                    except msgspec.DecodeError:
                        self.tally.skipped += 1
        return found

    def _id(self, raw: bytes) -> int:
        found = self._ids.get(raw)
        if found is None:
            found = self._ids[raw] = self._strings.id(text_of(raw))
        return found

    def _take(self, event: Any) -> None:
        tally = self.tally
        tally.events += 1
        ph = bytes(event.ph)
        if ph in _FLOWS:
            tally.flows += 1
            return
        if ph == b'"M"':
            self._metadata(event)
            return
        label = text_of(bytes(event.cat)) if event.cat else ""
        cat = CATEGORIES.get(label, Cat.OTHER)
        if ph not in _SPAN and cat is not Cat.MEMORY:
            cat = Cat.OTHER
        group = GROUP_OF[cat]
        if group not in self._wanted:
            tally.ignored[label] = tally.ignored.get(label, 0) + 1
            return
        start = nanoseconds(bytes(event.ts)) if event.ts else None
        dur = nanoseconds(bytes(event.dur)) if event.dur else 0
        if start is None or dur is None or not event.name:
            tally.skipped += 1
            return
        rows = self._rows[group]
        for column, value in zip(rows, (start, dur, self._id(bytes(event.name)), int(cat),
                                        self._id(bytes(event.pid)), self._id(bytes(event.tid))), strict=False):  # fmt: skip
            column.append(value)
        columns = self._wanted[group]
        args = event.args
        for column, arg in zip(rows[len(BASE) :], (a for a in self._args if a.name in columns), strict=True):
            raw = b""
            if args is not None:
                raw = next((bytes(v) for key in arg.keys if (v := getattr(args, _field(key)))), b"")
            column.append(self._value(arg.kind, raw))

    def _value(self, kind: ArgKind, raw: bytes) -> int | float:
        if kind is ArgKind.TEXT:
            return self._id(raw) if raw else NO_TEXT
        if kind is ArgKind.INT:
            return integer(raw) if raw else int(ABSENT)
        return floating(raw) if raw else float("nan")

    def _metadata(self, event: Any) -> None:
        name = text_of(bytes(event.name)) if event.name else ""
        pid, tid = text_of(bytes(event.pid)), text_of(bytes(event.tid))
        said = {
            k: text_of(bytes(v))
            for k in ("name", "labels")
            if event.args is not None and (v := getattr(event.args, _field(k)))
        }
        if name == "thread_name" and "name" in said:
            self.meta.thread[pid, tid] = said["name"]
        elif name in ("process_name", "process_labels"):
            self.meta.process.setdefault(pid, {}).update(said)

    def _columns(self) -> dict[Group, dict[str, Array]]:
        found: dict[Group, dict[str, Array]] = {}
        for group, rows in self._rows.items():
            if not rows[0]:
                continue
            names = [*BASE, *sorted(self._wanted[group])]
            found[group] = {n: np.array(v, dtype_of(n)) for n, v in zip(names, rows, strict=True)}
            for row in rows:
                row.clear()
        return found


def _field(key: str) -> str:
    return "a_" + re.sub(r"\W", "_", key)


def _decoder(keys: set[str]) -> Callable[[bytes], list[Any]]:
    raw = msgspec.Raw
    every = sorted(keys | {"name", "labels"})
    args = msgspec.defstruct(
        "Args", [(_field(k), raw, raw(b"")) for k in every], rename={_field(k): k for k in every}, gc=False
    )
    event = msgspec.defstruct(
        "Event",
        [(k, raw, raw(b"")) for k in ("ph", "cat", "name", "pid", "tid", "ts", "dur")] + [("args", args | None, None)],
        gc=False,
    )
    return msgspec.json.Decoder(list[event]).decode  # type: ignore[valid-type]
