"""Whether a journal is as it was written: the first record that is not, and what is wrong with it. Pure.

Who can write to the database can also write the whole chain anew; then only a head that was kept elsewhere tells. That is what
`kept` is for: number and hash of a record, as ``journal verify`` and ``journal export`` print them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from assistant.journal.chain import GENESIS, Head, Row
from knowledge.language import Text


class Wrong(StrEnum):
    """What is wrong with a record."""

    CHANGED = "changed"
    """It is not what its hash was made of, or it cannot be read."""
    MISSING = "missing"
    """Later ones are there, and it is not."""
    OUT_OF_ORDER = "out-of-order"
    """It stands behind later ones."""
    DUPLICATED = "duplicated"
    """It stands there twice."""
    UNLINKED = "unlinked"
    """Its hash is right, and it does not follow the record that is before it: one of the two was written anew."""
    REPLACED = "replaced"
    """Its hash is not the one that was kept of it: it, or one before it, was written anew."""
    CUT = "cut"
    """It and all after it are gone: the journal ends before the head that was kept."""
    BEYOND = "beyond"
    """It stands behind the head: nobody appended it."""


SAYS: dict[Wrong, Text] = {
    Wrong.CHANGED: Text("was changed: its hash is not that of what it says", "已被修改：哈希与内容不符"),
    Wrong.MISSING: Text("is missing, later ones are there", "缺失，而其后的记录仍在"),
    Wrong.OUT_OF_ORDER: Text("is out of order: later ones stand before it", "顺序错误：其后的记录排在它之前"),
    Wrong.DUPLICATED: Text("is there twice", "重复出现"),
    Wrong.UNLINKED: Text(
        "does not follow the one before it: one of the two was written anew", "与前一条记录不衔接：两者之一被重写"
    ),
    Wrong.REPLACED: Text(
        "has another hash than the one that was kept: it, or one before it, was written anew",
        "哈希与另存的不同：它或之前的某条记录被重写",
    ),
    Wrong.CUT: Text("is missing, and all after it: the journal is cut off", "及其后的记录缺失：账本结尾被截断"),
    Wrong.BEYOND: Text(
        "stands behind the newest one: gpudiag did not append it", "位于最新记录之后：不是由 gpudiag 追加的"
    ),
}


class Fault(NamedTuple):
    """The first record that is not as it was written."""

    seq: int
    wrong: Wrong
    line: int = 0  # of an export; 0: in the database

    def said(self) -> Text:
        """A clause: ``record 12 was changed: ...``."""
        says, where = SAYS[self.wrong], f" (line {self.line})" if self.line else ""
        return Text(f"record {self.seq}{where} {says.en}",
                    f"第 {self.seq} 条记录{f'（第 {self.line} 行）' if self.line else ''}{says.in_('zh')}")  # fmt: skip


class Checked(NamedTuple):
    """What a check found."""

    head: Head  # the last record that is as it was written
    first_at: int = 0  # ns UTC, of the first and last sound record
    last_at: int = 0
    fault: Fault | None = None


class Place(NamedTuple):
    """A record where it stands. `row`: None where nothing can be read there."""

    row: Row | None
    line: int = 0


def check(places: Iterable[Place], head: Head | None = None, kept: Iterable[Head] = ()) -> Checked:
    """Walk along the chain. `head`: the newest record, as the journal itself knows it; `kept`: heads kept elsewhere.

    Records must stand in the order of their numbers, from 1 on.
    """
    wanted = {one.seq: one.hash for one in kept}
    walk = iter(places)
    last, first_at, last_at = Head(0, GENESIS), 0, 0
    for place in walk:
        fault = _fault(place, last, walk)
        if fault is None and place.row is not None and wanted.get(place.row.seq, place.row.hash) != place.row.hash:
            fault = Fault(place.row.seq, Wrong.REPLACED, place.line)
        if fault is not None or place.row is None:
            return Checked(last, first_at, last_at, fault)
        last = Head(place.row.seq, place.row.hash)
        first_at, last_at = first_at or place.row.at, place.row.at
    return Checked(last, first_at, last_at, _at_the_end(last, head, wanted))


def _fault(place: Place, last: Head, rest: Iterator[Place]) -> Fault | None:
    """What is wrong with what stands behind `last`."""
    row, due = place.row, last.seq + 1
    if row is None or not row.sound:
        return Fault(due, Wrong.CHANGED, place.line)
    if row.seq == due:
        return None if row.previous == last.hash else Fault(due, Wrong.UNLINKED, place.line)
    if row.seq < due:
        return Fault(row.seq, Wrong.DUPLICATED, place.line)
    later = any(p.row is not None and p.row.seq == due and p.row.sound for p in rest)
    return Fault(due, Wrong.OUT_OF_ORDER if later else Wrong.MISSING, place.line)


def _at_the_end(last: Head, head: Head | None, wanted: dict[int, str]) -> Fault | None:
    if max([head.seq if head is not None else 0, *wanted]) > last.seq:
        return Fault(last.seq + 1, Wrong.CUT)
    if head is None or head == last:
        return None
    return Fault(last.seq, Wrong.REPLACED) if head.seq == last.seq else Fault(head.seq + 1, Wrong.BEYOND)
