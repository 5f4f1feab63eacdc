"""The whole journal, record for record: out of the history, or out of an export that somebody kept.

An export is JSON lines: one object a record, with the columns of the table in their order and `data` as the text that its hash was
made of; the last line is the head. Each line is exactly what `line_of` makes of its record, so that no byte can differ unnoticed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import IO, TYPE_CHECKING

from assistant.journal.chain import COLUMNS, SCHEMA, Head, Row
from assistant.journal.verify import Checked, Fault, Place, Wrong, check
from assistant.store.journal import PAGE, SQL, head_of
from assistant.store.location import StoreError
from knowledge.errors import InputError, UsageError

if TYPE_CHECKING:
    from assistant.store.journal import Ask

LINE = 64 << 20  # bytes of one line, at most: more than any record has
MANY = 1000  # lines of a file without one record, after which it is taken for something else
HEX = "0123456789abcdef"


# --- the history ---------------------------------------------------------------------------


def places(ask: Ask, until: int) -> Iterator[Place]:
    """Records up to number `until`, in order. What cannot be read stands there without a row. StoreError when nothing can."""
    after = 0
    while after < until:
        for place in _page(ask, after):
            if place.row is None:
                yield place
                return
            if place.row.seq > until:
                return
            after = place.row.seq
            yield place
            if after >= until:
                return
        if not ask(SQL["journal next"], {"after": after}):
            return


def _page(ask: Ask, after: int) -> list[Place]:
    """A page; of one that holds something that is no text, record for record up to there."""
    try:
        return [Place(Row(*r)) for r in ask(SQL["journal all"], {"after": after, "limit": PAGE})]
    except StoreError:
        if not ask(SQL["journal next"], {"after": after}):  # nothing can be read at all: raised again here
            raise
    found: list[Place] = []
    while len(found) < PAGE:
        try:
            rows = ask(SQL["journal all"], {"after": after, "limit": 1})
        except StoreError:
            return [*found, Place(None)]
        if not rows:
            break
        found.append(Place(Row(*rows[0])))
        after = int(rows[0][0])
    return found


def checked(ask: Ask, kept: tuple[Head, ...] = ()) -> Checked:
    """The journal of a history, up to its newest record. Others may append meanwhile."""
    head = head_of(ask)
    found = check(places(ask, head.seq), head, kept)
    if found.fault is not None:
        return found
    last = next((int(row[0]) for row in ask(SQL["journal last"], {})), 0)
    newest = head_of(ask).seq  # asked for after it: whoever appends writes both at once
    return found if last <= newest else found._replace(fault=Fault(newest + 1, Wrong.BEYOND))


# --- an export -----------------------------------------------------------------------------


def line_of(row: Row) -> str:
    """A record as a line."""
    return json.dumps(row._asdict(), ensure_ascii=False, separators=(",", ":"), default=repr) + "\n"


def head_line(head: Head) -> str:
    """The last line."""
    return json.dumps({"schema": SCHEMA, "head": str(head)}, separators=(",", ":")) + "\n"


def exported(ask: Ask, to: IO[bytes]) -> Checked:
    """Write the journal as it stands; what a check of it found on the way.

    Records are written sound or not, up to one that cannot be read.
    """
    head = head_of(ask)

    def written() -> Iterator[Place]:
        for place in places(ask, head.seq):
            if place.row is not None:
                to.write(line_of(place.row).encode("utf-8", "surrogatepass"))
            yield place

    walk = written()
    found = check(walk, head)
    for _ in walk:  # behind a fault too
        pass
    to.write(head_line(head).encode())
    return found


def checked_file(stream: IO[bytes], name: str, kept: tuple[Head, ...] = ()) -> Checked:
    """An export. InputError for what is none."""
    ends: list[Head] = []
    walk = _lines(stream, ends)
    found = check(walk, None, kept)
    if not found.head.seq and not any(p.row is not None for p in islice(walk, MANY)) and not ends:
        raise InputError(f"{name} is no export of the journal", hint="gpudiag journal export -o FILE makes one")
    if found.fault is not None or ends == [found.head]:
        return found
    if not ends or ends[0].seq > found.head.seq:  # its last line is gone, or lines before it
        return found._replace(fault=Fault(found.head.seq + 1, Wrong.CUT))
    wrong = Fault(ends[0].seq + 1, Wrong.BEYOND) if ends[0].seq < found.head.seq else Fault(ends[0].seq, Wrong.REPLACED)
    return found._replace(fault=wrong)


def _lines(stream: IO[bytes], ends: list[Head]) -> Iterator[Place]:
    number = 0
    while line := stream.readline(LINE):
        number += 1
        place = Place(None, number) if ends else _place(line, number, ends)
        if place is not None:
            yield place


def _place(line: bytes, number: int, ends: list[Head]) -> Place | None:
    """The record of a line; None for the head, which goes to `ends`."""
    try:
        text = line.decode("utf-8", "surrogatepass")
        found = json.loads(text)
        if isinstance(found, dict) and tuple(found) == COLUMNS:
            row = Row(**found)
            if row.sound and line_of(row) == text:
                return Place(row, number)
        elif isinstance(found, dict) and "head" in found:
            head = head_of_text(str(found["head"]))
            if head_line(head) == text:
                ends.append(head)
                return None
    except (ValueError, RecursionError, UsageError):
        pass
    return Place(None, number)


def head_of_text(text: str) -> Head:
    """The head that ``SEQ:HASH`` names. UsageError for what names none."""
    seq, _, hashed = text.strip().partition(":")
    number = int(seq) if seq.isascii() and seq.isdecimal() and len(seq) < 19 else -1
    if number >= 0 and len(hashed) == 64 and not hashed.strip(HEX):
        return Head(number, hashed)
    raise UsageError(
        f"{text[:100]!r} is no head of a journal",
        hint="a head is SEQ:HASH, as journal verify and journal export print it",
    )
