"""Records of the journal, and the chain that holds them together. Pure.

A record's hash is SHA-256 over the UTF-8 of the JSON array

    ["gpudiag/journal/1",seq,at,kind,subject,who,surface,data,previous]

without blanks, characters beyond ASCII as they are, where `data` is the text that is stored: a JSON object with sorted names,
without blanks. JSON tells where one column ends and the next begins, so no two records have the same bytes. `previous` is the
hash of the record before; that of the first one is `GENESIS`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any, NamedTuple

from knowledge.record import dataclass

SCHEMA = "gpudiag/journal/1"
GENESIS = "d1e26d5a9d1728f6a258fdc9e31465eca4bce24f408ef9d6d6144145902f9e6a"  # SHA-256 of SCHEMA
COLUMNS = ("seq", "at", "kind", "subject", "who", "surface", "data", "previous", "hash")


class Entry(NamedTuple):
    """A record that is to be written. Its data is cleaned, and secrets in it are masked (`assistant.journal.cleaning`)."""

    kind: str  # intent, result, requested, approved, refused, expired, used, note
    data: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it was written."""

    seq: int  # from 1 on, without gaps
    at: int  # ns UTC, of the writer's clock
    kind: str
    subject: str  # opaque: what belongs together
    who: str
    surface: str  # cli, tui, slack
    data: Mapping[str, Any] = field(default_factory=dict)
    hash: str = ""
    previous: str = ""

    def text(self, name: str) -> str:
        """A field of its data as a word; empty when it is missing or none."""
        value = self.data.get(name)
        return value if isinstance(value, str) else ""


class Row(NamedTuple):
    """A record as it is stored: columns of the table, fields of an export."""

    seq: int
    at: int
    kind: str
    subject: str
    who: str
    surface: str
    data: str  # JSON, canonical
    previous: str
    hash: str

    @property
    def sound(self) -> bool:
        """Whether every column has its type and the hash is that of the others."""
        whole = all(type(value) is int for value in self[:2]) and all(type(value) is str for value in self[2:])
        return whole and self.hash == digest(self)

    def record(self) -> Record:
        """What it says; without data where that is no JSON object."""
        try:
            data = json.loads(self.data)
        except (ValueError, RecursionError):
            data = {}
        data = data if isinstance(data, dict) else {}
        return Record(*self[:6], data, self.hash, self.previous)


class Head(NamedTuple):
    """The newest record: its number and hash. 0 and `GENESIS` where there is none."""

    seq: int
    hash: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash}"


def canonical(data: Mapping[str, Any]) -> str:
    """`data` as it is stored. ValueError for numbers that JSON has not."""
    return json.dumps(data, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(row: Row) -> str:
    """The hash of a record, in hexadecimal; see above. Halves of surrogate pairs, which UTF-8 has not, count as they are."""
    from hashlib import sha256  # loads OpenSSL

    written = json.dumps([SCHEMA, *row[:8]], ensure_ascii=False, separators=(",", ":"))
    return sha256(written.encode("utf-8", "surrogatepass")).hexdigest()


def linked(head: Head, row: Row) -> Row:
    """`row` as the one that follows `head`."""
    row = row._replace(seq=head.seq + 1, previous=head.hash)
    return row._replace(hash=digest(row))
