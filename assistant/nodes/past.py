"""The last checks of every node, from the history: one read for all of them, whatever their number.

Plain SQL that SQLite and PostgreSQL both understand, as in `assistant.store.read`: for each node the index leads to its
newest run, so that a history of many thousand checks costs no more than one of a few.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from assistant.nodes import Found, Look, worst
from knowledge.language import NO_TEXT, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from assistant.store.location import Location
    from assistant.store.read import Reader, Run

T = TypeVar("T")
KEPT = 48  # checks of one node that its page shows
_LOOK = "n.host, r.state, r.text_en, r.text_zh, r.as_of, r.origin, r.id FROM node n JOIN run r ON r.id = "
SQL: Mapping[str, str] = {
    "newest": (
        f"SELECT {_LOOK}(SELECT x.id FROM run x WHERE x.node_id = n.id AND NOT x.late "
        "ORDER BY x.as_of DESC, x.id DESC LIMIT 1)"
    ),
    "told": (
        f"SELECT {_LOOK}(SELECT x.id FROM run x WHERE x.node_id = n.id AND NOT x.late AND x.state <> 'unknown' "
        "ORDER BY x.as_of DESC, x.id DESC LIMIT 1)"
    ),
    "findings": (
        "SELECT n.host, f.key, f.title_en, f.title_zh, f.severity, f.subject, f.opened_at FROM finding f "
        "JOIN node n ON n.id = f.node_id WHERE f.how IN ('', 'unseen') AND f.role = 'root' AND f.severity <> 'info'"
    ),
}


class Past(NamedTuple):
    """What the history says of all nodes; and why it says nothing, if it cannot be read."""

    looks: Mapping[str, Sequence[Look]] = {}
    trouble: Text = NO_TEXT


def read(url: str) -> Past:
    """The newest checks of every node of a history. A history that is off, or not begun, is empty and no trouble."""
    found, why = _asked(url, _looks)
    return found if found is not None else Past(trouble=why)


def checks_of(url: str, host: str) -> list[Run]:
    """The last checks of one node, the newest first; none when the history cannot be read."""
    found, _ = _asked(url, lambda reader: reader.runs(host, limit=KEPT))
    return found or []


def mark(url: str) -> tuple[int, ...]:
    """Something that is another when the history has changed; empty where that cannot be told without asking a server."""
    location = _location(url)
    if location is None or location.path is None:
        return ()
    out = []
    for path in (location.path, location.path.with_name(location.path.name + "-wal")):
        try:
            stat = path.stat()
        except OSError:
            out += [0, 0]
        else:
            out += [stat.st_mtime_ns, stat.st_size]
    return tuple(out)


def _location(url: str) -> Location | None:
    from assistant.store.location import parse
    from knowledge.errors import ConfigError

    try:
        return parse(url)
    except ConfigError:
        return None


def _asked(url: str, question: Callable[[Reader], T]) -> tuple[T | None, Text]:
    """The answer; without one the reason, if it is more than that there is no history."""
    from assistant.store import OFF, _reader
    from assistant.store.location import StoreError

    reader, why = _reader(url)
    if reader is None:
        return None, why if why is not None and why is not OFF else NO_TEXT
    try:
        with reader:
            return question(reader), NO_TEXT
    except StoreError as error:
        return None, error.said


def _looks(reader: Reader) -> Past:
    findings: dict[str, list[Found]] = {}
    for host, key, en, zh, severity, subject, since in reader.ask(SQL["findings"], {}):
        findings.setdefault(str(host), []).append(
            Found(str(key), Text(en, zh), str(severity), str(subject), int(since))
        )
    looks: dict[str, list[Look]] = {}
    for row in reader.ask(SQL["newest"], {}):
        look = _look(row)
        # Findings stay open in the history while nobody could look for them: they belong to the newest check either way.
        looks[str(row[0])] = [_with(look, worst(findings.get(str(row[0]), ())))]
    for row in reader.ask(SQL["told"], {}):
        if all(look.run != int(row[6]) for look in looks[str(row[0])]):
            looks[str(row[0])].append(_look(row))
    return Past(looks)


def _look(row: Sequence[Any]) -> Look:
    _, state, en, zh, at, origin, run = row
    return Look(str(state), Text(str(en), str(zh)), int(at), "history", str(origin), int(run))


def _with(look: Look, findings: tuple[Found, ...]) -> Look:
    from dataclasses import replace

    return replace(look, findings=findings)
