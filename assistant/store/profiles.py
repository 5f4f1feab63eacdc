"""Continuous profiles in the history: samples of call stacks, raw for an hour, by the minute for a week, by the hour for a quarter.

A target (what `watch --profile NAME` samples on a node) has one call tree, kept frame by frame; a bucket is a packed table
of places in that tree and how often they were met. A process that is sampled once a second takes about a megabyte a day.

What is old is told by the checks of the node, as in the rest of the history. What is rolled up keeps every sample; hours are the last
grain, so they go one at a time, and the newest ones never.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple, TypeVar

from assistant.store.clock import agreed, witnesses
from assistant.store.codec import storable
from assistant.store.file import Store, Transaction
from assistant.store.read import FOREVER
from assistant.store.read import SQL as NODES
from knowledge.record import dataclass

K = TypeVar("K")
S = 1_000_000_000
RAW, MINUTE, HOUR = 10, 60, 3600  # seconds of a bucket
KEPT = {RAW: 3600 * S, MINUTE: 7 * 86_400 * S, HOUR: 92 * 86_400 * S}  # ns: an hour, a week, a quarter
GAP = 7  # days: a clock that is as far ahead of the checks ages nothing
FLOOR = 32  # hours of a target's newest processes, in the order of writing, that stay whatever the clocks say
FRAMES = 200_000  # places of one target; beyond, samples are charged to the caller that is known
DEPTH = 128  # frames of a stack, the outermost
Stack = tuple[str, ...]  # outermost first

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "profile_target": ("node_id", "name"),
    "profile_process": ("target_id", "boot_id", "pid", "start", "title", "first_at", "last_at"),
    "profile_frame": ("target_id", "parent", "name"),
    "profile_bucket": ("process_id", "length", "at", "samples", "cells"),
}
_INSERT = {t: f"INSERT INTO {t} ({', '.join(c)}) VALUES (:{', :'.join(c)})" for t, c in COLUMNS.items()}
_IGNORING = " ON CONFLICT DO NOTHING"
STATEMENTS: Mapping[str, str] = {
    **{f"into {table}": sql for table, sql in _INSERT.items()},
    "target": "SELECT id FROM profile_target WHERE node_id = :node AND name = :name",
    "process": "SELECT id FROM profile_process WHERE target_id = :target AND boot_id = :boot AND pid = :pid AND start = :start",
    "seen": "UPDATE profile_process SET last_at = :at WHERE id = :process AND last_at < :at",
    "frames": "SELECT id, parent, name FROM profile_frame WHERE target_id = :target ORDER BY id",
    "lost frames": "DELETE FROM profile_frame WHERE target_id = :target",
    "bucket": "SELECT samples, cells FROM profile_bucket WHERE process_id = :process AND length = :length AND at = :at",
    "drop": "DELETE FROM profile_bucket WHERE process_id = :process AND length = :length AND at = :at",
    "inside": (
        "SELECT at, samples, cells FROM profile_bucket WHERE process_id = :process AND length = :length "
        "AND at >= :since AND at < :until ORDER BY at"
    ),
    "all targets": "SELECT id FROM profile_target ORDER BY id",
    "first": "SELECT min(at) FROM profile_bucket WHERE process_id = :process AND length = :length",
    "newest hours": "SELECT at FROM profile_bucket WHERE process_id = :process AND length = :length ORDER BY at DESC LIMIT :most",
    "old": "DELETE FROM profile_bucket WHERE process_id = :process AND length = :length AND at < :edge",
    "all processes": "SELECT id FROM profile_process WHERE target_id = :target ORDER BY id",
    "gone": (
        "DELETE FROM profile_process WHERE target_id = :target AND last_at < :edge "
        "AND NOT EXISTS (SELECT 1 FROM profile_bucket b WHERE b.process_id = profile_process.id)"
    ),
}
SQL: Mapping[str, str] = {
    "targets": (
        "SELECT t.id, n.host, t.name, count(p.id), min(p.first_at), max(p.last_at) FROM profile_target t "
        "JOIN node n ON n.id = t.node_id LEFT JOIN profile_process p ON p.target_id = t.id "
        "WHERE (:host = '' OR n.host = :host) GROUP BY t.id, n.host, t.name ORDER BY n.host, t.name"
    ),
    "processes": (
        "SELECT p.id, p.pid, p.title, p.first_at, p.last_at FROM profile_process p "
        "WHERE p.target_id = :target AND p.last_at >= :since AND p.first_at < :until ORDER BY p.first_at, p.id"
    ),
    "tree": "SELECT f.id, f.parent, f.name FROM profile_frame f WHERE f.target_id = :target ORDER BY f.id",
    "buckets": (
        "SELECT b.length, b.at, b.samples, b.cells FROM profile_bucket b "
        "WHERE b.process_id = :process AND b.at + CAST(b.length AS BIGINT) * 1000000000 > :since AND b.at < :until ORDER BY b.at, b.length"
    ),
}


class Sampled(NamedTuple):
    """Samples of one process in one stretch of `RAW` seconds."""

    boot_id: str
    pid: int
    start: int
    title: str
    at: int  # ns UTC, a multiple of `RAW` seconds
    stacks: Mapping[Stack, int]  # how often each was met


# --- packing ------------------------------------------------------------------------------


def packed(cells: Mapping[int, int]) -> bytes:
    """Places and counts, both positive: gaps of the sorted places and counts as varints, deflated."""
    out = bytearray()
    last = 0
    for place, count in sorted(cells.items()):
        if place <= 0 or count <= 0:
            raise ValueError((place, count))
        for value in (place - last, count):
            while value > 0x7F:
                out.append(value & 0x7F | 0x80)
                value >>= 7
            out.append(value)
        last = place
    return zlib.compress(bytes(out), 6)


def unpacked(data: bytes) -> dict[int, int]:
    """What `packed` was given. ValueError for bytes that it cannot have made."""
    try:
        raw = zlib.decompress(data)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    values: list[int] = []
    value = shift = 0
    for byte in raw:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            values.append(value)
            value = shift = 0
        elif shift > 63:
            raise ValueError("a number is too long")
    if shift or len(values) % 2:
        raise ValueError("it is cut off")
    cells: dict[int, int] = {}
    place = 0
    for gap, count in zip(values[::2], values[1::2], strict=True):
        place += gap
        cells[place] = count
    return cells


def added(tables: Iterable[Mapping[K, int]]) -> dict[K, int]:
    """The sum of tables of counts."""
    out: dict[K, int] = {}
    for table in tables:
        for key, count in table.items():
            out[key] = out.get(key, 0) + count
    return out


# --- writing ------------------------------------------------------------------------------


@dataclass(slots=True)
class Tree:
    """The call tree of a target while it is written to."""

    target: int
    places: dict[tuple[int, str], int] = field(default_factory=dict)  # parent, name -> id

    def place(self, c: Transaction, stack: Stack) -> int:
        """The place of the innermost frame of a stack; of the innermost one that fits where the tree is full."""
        at = 0
        for name in stack[:DEPTH] or ("?",):
            key = (at, storable(name))
            found = self.places.get(key)
            if found is None:
                if len(self.places) >= FRAMES and at:
                    return at
                found = self._grow(c, key)
            at = found
        return at

    def _grow(self, c: Transaction, key: tuple[int, str]) -> int:
        about = {"target_id": self.target, "parent": key[0], "name": key[1]}
        c.touched(_INSERT["profile_frame"] + _IGNORING, about)
        ((number,),) = c.rows(
            "SELECT id FROM profile_frame WHERE target_id = :target_id AND parent = :parent AND name = :name", about
        )
        self.places[key] = int(number)
        return int(number)


def keep(store: Store, host: str, name: str, sampled: Sequence[Sampled]) -> None:
    """Write samples of a target, roll up what is old enough, and take away what is too old: one transaction."""
    if not sampled:
        return
    with store.transaction() as c:
        c.touched("INSERT INTO node (host) VALUES (:host) ON CONFLICT DO NOTHING", {"host": host})
        ((node,),) = c.rows(NODES["node"] + c.for_update, {"host": host})
        target = _number(c, "profile_target", "target", {"node_id": node, "name": name}, {"node": node, "name": name})
        tree = Tree(target, {(int(p), str(n)): int(i) for i, p, n in c.rows(STATEMENTS["frames"], {"target": target})})
        for one in sampled:
            process = _process(c, target, one)
            cells = added({tree.place(c, stack): count} for stack, count in one.stacks.items() if count > 0)
            for length in (RAW, MINUTE):
                _add(c, process, length, one.at, cells)
        _roll(c, target, agreed([max(s.at for s in sampled), *witnesses(c, node)], GAP), step=HOUR * S)


def prune(c: Transaction, now: int) -> None:
    """Roll up and take away what is old enough at `now` (ns UTC), of every target."""
    for (target,) in c.rows(STATEMENTS["all targets"], {}):
        _roll(c, int(target), now)


def _process(c: Transaction, target: int, one: Sampled) -> int:
    about = {"target": target, "boot": one.boot_id, "pid": one.pid, "start": one.start}
    values = {
        "target_id": target, "boot_id": one.boot_id, "pid": one.pid, "start": one.start, "title": storable(one.title),
        "first_at": one.at, "last_at": one.at,
    }  # fmt: skip
    number = _number(c, "profile_process", "process", values, about)
    c.touched(STATEMENTS["seen"], {"process": number, "at": one.at + RAW * S})
    return number


def _number(c: Transaction, table: str, asked: str, values: Mapping[str, Any], about: Mapping[str, Any]) -> int:
    found = c.rows(STATEMENTS[asked], about)
    if not found:
        c.touched(_INSERT[table] + _IGNORING, values)
        found = c.rows(STATEMENTS[asked], about)
    return int(found[0][0])


def _add(c: Transaction, process: int, length: int, at: int, cells: Mapping[int, int]) -> None:
    """Add counts to a bucket, which may be there already."""
    about = {"process": process, "length": length, "at": at - at % (length * S)}
    before = [unpacked(bytes(row[1])) for row in c.rows(STATEMENTS["bucket"], about)]
    whole = added([*before, cells])
    if before:
        c.touched(STATEMENTS["drop"], about)
    if whole:
        row = {"process_id": process, "samples": sum(whole.values()), "cells": packed(whole)}
        c.touched(_INSERT["profile_bucket"], {**row, "length": length, "at": about["at"]})


def _roll(c: Transaction, target: int, now: int, step: int = FOREVER) -> None:
    """Hours out of the minutes that are about to go; then what is older than its kind is kept goes, of the hours no more than `step` ns."""
    processes = [int(row[0]) for row in c.rows(STATEMENTS["all processes"], {"target": target})]
    for process in processes:
        _hours(c, process, (now - KEPT[MINUTE]) // (HOUR * S) * HOUR * S)
        c.touched(STATEMENTS["old"], {"process": process, "length": RAW, "edge": now - KEPT[RAW]})
    may_go = _beyond_floor(c, processes)
    edge = min([now - KEPT[HOUR], *(first + step for first, _ in may_go.values())])
    for process, (_, until) in may_go.items():
        c.touched(STATEMENTS["old"], {"process": process, "length": HOUR, "edge": min(edge, until)})
    gone = c.touched(STATEMENTS["gone"], {"target": target, "edge": now - KEPT[HOUR]})
    if gone and not c.rows(STATEMENTS["all processes"], {"target": target}):
        c.touched(STATEMENTS["lost frames"], {"target": target})


def _beyond_floor(c: Transaction, processes: Sequence[int]) -> dict[int, tuple[int, int]]:
    """The processes, in the order of writing, whose hours are not all among the `FLOOR` newest: the first hour that may go, and up to which."""
    out, left = {}, FLOOR
    for process in reversed(processes):
        about = {"process": process, "length": HOUR, "most": left}
        stay = [int(row[0]) for row in c.rows(STATEMENTS["newest hours"], about)] if left else []
        left -= len(stay)
        first, until = _first(c, process, HOUR), stay[-1] if stay else FOREVER
        if first is not None and first < until:
            out[process] = (first, until)
    return out


def _hours(c: Transaction, process: int, edge: int) -> None:
    """The minutes before `edge` (a whole hour, ns UTC) become hours."""
    while (first := _first(c, process, MINUTE)) is not None and first < edge:
        hour = first - first % (HOUR * S)
        about = {"process": process, "length": MINUTE, "since": hour, "until": hour + HOUR * S}
        _add(c, process, HOUR, hour, added(unpacked(bytes(r[2])) for r in c.rows(STATEMENTS["inside"], about)))
        c.touched(STATEMENTS["old"], {"process": process, "length": MINUTE, "edge": hour + HOUR * S})


def _first(c: Transaction, process: int, length: int) -> int | None:
    """Where the oldest bucket of a grain begins, ns UTC; None without one."""
    ((at,),) = c.rows(STATEMENTS["first"], {"process": process, "length": length})
    return None if at is None else int(at)


# --- reading ------------------------------------------------------------------------------

Ask = Callable[[str, Mapping[str, Any]], list[tuple[Any, ...]]]


class Target(NamedTuple):
    """What was sampled, and since when."""

    id: int
    host: str
    name: str
    processes: int
    first_at: int | None
    last_at: int | None


@dataclass(frozen=True, slots=True)
class Slice:
    """Samples of one process in a stretch of time."""

    process: int  # number in the history
    pid: int
    title: str
    at: int  # ns UTC
    length: int  # seconds
    stacks: Mapping[Stack, int]


def targets(ask: Ask, host: str = "") -> list[Target]:
    """Everything that was sampled, on `host` or everywhere."""
    return [Target(*row) for row in ask(SQL["targets"], {"host": host})]


def slices(ask: Ask, target: Target, since: int, until: int) -> list[Slice]:
    """The samples of a window [since, until) ns UTC, in the finest grain that is kept of each stretch; no sample twice.

    A bucket counts when its middle lies in the window.
    """
    names: dict[int, Stack] = {0: ()}
    for number, parent, name in ask(SQL["tree"], {"target": target.id}):
        names[int(number)] = (*names.get(int(parent), ("?",)), str(name))
    out = []
    for process, pid, title, _, _ in ask(SQL["processes"], {"target": target.id, "since": since, "until": until}):
        # Whole minutes, to tell whether the raw buckets of one are all there.
        edges = {"since": since - since % (MINUTE * S), "until": min(until + MINUTE * S, FOREVER)}
        rows = ask(SQL["buckets"], {"process": process, **edges})
        for length, at, _, cells in _finest([(int(r[0]), int(r[1]), int(r[2]), bytes(r[3])) for r in rows]):
            if since <= at + length * S // 2 < until:
                stacks = {names.get(place, ("?",)): n for place, n in unpacked(cells).items()}
                out.append(Slice(int(process), int(pid), str(title), at, length, stacks))
    return sorted(out, key=lambda s: (s.at, s.process))


def _finest(rows: Sequence[tuple[int, int, int, bytes]]) -> list[tuple[int, int, int, bytes]]:
    """Of buckets that hold the same samples those of the finest grain.

    A minute holds what its raw buckets hold; they stand for it only while all of them are there.
    """
    raw: dict[int, int] = {}
    for length, at, samples, _ in rows:
        if length == RAW:
            minute = at - at % (MINUTE * S)
            raw[minute] = raw.get(minute, 0) + samples
    whole = {at for length, at, samples, _ in rows if length == MINUTE and raw.get(at) == samples}
    minutes = {at for length, at, _, _ in rows if length == MINUTE}
    out = []
    for row in rows:
        length, at = row[0], row[1]
        minute = at - at % (MINUTE * S)
        if (
            (length == RAW and (minute in whole or minute not in minutes))
            or (length == MINUTE and at not in whole)
            or length == HOUR
        ):
            out.append(row)
    return out
