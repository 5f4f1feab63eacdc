"""What can be read, without loading all of it: an index of the formats, kept like any compiled data.

Loading every parser costs more than most answers. The index says which module holds which
format, so that a log needs the log formats only, and "what would tell this" needs none.
"""

from __future__ import annotations

import importlib
import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import probes.parse
from knowledge import compiled
from probes.base import LogFormat

FOLDER = Path(probes.parse.__path__[0])


class Entry(NamedTuple):
    """One format, as its module declares it."""

    module: str
    name: str
    title: str
    log: bool
    provides: tuple[str, ...]


@cache
def index() -> tuple[Entry, ...]:
    """Every format, by name."""
    shipped = compiled.SHIPPED / "formats.json"
    if shipped.is_file():
        rows = json.loads(shipped.read_bytes())
    else:
        files = [
            *sorted(FOLDER.glob("*.py")),
            FOLDER.parent / "base.py",
            FOLDER.parent / "trace" / "verdict" / "provides.py",
            FOLDER.parent / "capture" / "provides.py",
        ]
        rows = compiled.cached("formats", files, build)
    return tuple(Entry(row[0], row[1], row[2], row[3], tuple(row[4])) for row in rows)


def build() -> list[list[Any]]:
    """The index as plain data (the wheel's ``_compiled/formats.json``). Loads every parser."""
    from probes import registry

    homes = {id(home.FORMAT): path.stem for path in FOLDER.glob("[a-z]*.py") if (home := _module(path.stem))}
    return [[homes[id(f)], f.name, f.title, isinstance(f, LogFormat), list(f.provides)] for f in registry.formats()]


def _module(name: str) -> Any:
    return importlib.import_module(f"{probes.parse.__name__}.{name}")


@cache
def log_formats() -> tuple[LogFormat, ...]:
    """The log formats; no other parser is loaded."""
    return tuple(_module(entry.module).FORMAT for entry in index() if entry.log)


def provided() -> frozenset[str]:
    """Every fact that some format can give."""
    return frozenset(name for entry in index() for name in entry.provides)


@cache
def tellers(fact: str) -> tuple[str, ...]:
    """Titles of the formats that give `fact`: captured outputs before logs, the most telling first.

    Snapshots of our own collectors and answers to queries come last: nobody has one lying about.
    """
    found = (e for e in index() if fact in e.provides)
    known = sorted(found, key=lambda e: (e.name.endswith(("-snapshot", "-answer")), e.log, -len(e.provides), e.name))
    return tuple(e.title for e in known)
