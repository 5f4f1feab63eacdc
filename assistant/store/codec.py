"""How observations become rows and rows observations again, and which samples are worth a row.

Most of what a check reads has not changed since the check before. A row therefore says: from `at` on this is
the value, at every later run in which the same probe was read, until the next row. What is written:

* a new value of a state, of a counter of events, or of any fact that a rule asks about over time: always;
* a new value of a gauge (temperature, power) or of a counter that always runs (energy, bytes): at most every
  ten minutes, and a gauge that steps (by a fifth of what it was, or is) at once. Such a row vouches for later runs only once those minutes are over (`holds_from`), because a
  change within them may have been passed over;
* a change of status (no permission, no answer): always, and so is a fact that its probe no longer gives.

A run older than the newest one of its node (an old bundle) writes every sample by itself; those rows vouch
for nothing but their own moment.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote, unquote

from knowledge.facts import FactSpec, Kind, Type
from knowledge.observation import Clock, Event, Observation, Origin, Scope, Series, Status, Subject, Value, latest

SECOND = 10**9
GAUGE_EVERY = 600 * SECOND
COUNTER_EVERY = 30 * SECOND
STEP = 0.2  # less is how a gauge jitters under one load. Our own
EXCERPT = 160  # characters of a raw line that are kept with a sample
EXACT = 2**53  # whole numbers above do not fit into a double
HISTORY = "history:"  # how the call of an observation begins that comes from here
# Parts of a machine. Processes, containers, jobs and documents come and go: their findings are kept, not their samples.
KEPT = frozenset({
    Scope.CLUSTER, Scope.RACK, Scope.SWITCH, Scope.NODE, Scope.GPU, Scope.MIG, Scope.NVSWITCH, Scope.NIC, Scope.PORT,
    Scope.LINK, Scope.PCI,
})  # fmt: skip
# 12,352,13454698950,-;NVRM: Xid    and    [13454.698950] NVRM: Xid
_SINCE_BOOT = re.compile(r"\d+,\d+,\d+,|(<\d+>)?\[ *\d+\.\d+\]")


class Key(NamedTuple):
    """What samples in one line have in common: two sources are never one series."""

    fact: str
    subject: str
    probe: str


class Cell(NamedTuple):
    """A status and a value in columns; at most one of the three holds something."""

    status: str
    num: float | None = None
    text: str | None = None
    json: str | None = None


class Last(NamedTuple):
    """The newest row of a key."""

    cell: Cell
    at: int


class Seen(NamedTuple):
    """What a check read for one key."""

    cell: Cell
    at: int | None  # ns UTC; None when the source's clock is another one
    call: str = ""
    excerpt: str = ""
    detail: str = ""


class Row(NamedTuple):
    """A sample to be written."""

    key: Key
    cell: Cell
    at: int
    holds_from: int | None  # ns UTC from which on the absence of a newer row means "unchanged"; None: never
    excerpt: str = ""
    detail: str = ""


def subject_text(subject: Subject) -> str:
    """A subject from the outermost to itself: ``node:n1/gpu:0000:3b:00.0/link:3``."""
    return "/".join(
        f"{s.scope}:{quote(s.id, safe=':@ ', errors='replace')}" for s in reversed(list(subject.ancestors()))
    )


def subject_of(text: str) -> Subject:
    """The inverse of `subject_text`. ValueError when `text` is none."""
    found: Subject | None = None
    for part in text.split("/"):
        scope, _, identifier = part.partition(":")
        found = Subject(Scope(scope), unquote(identifier), found)
    assert found is not None  # split gives at least one part
    return found


def storable(words: str) -> str:
    """`words` without NUL, which PostgreSQL refuses, and without lone surrogates, which no encoding holds."""
    if words.isascii() and "\0" not in words:
        return words
    return words.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def encode(o: Observation) -> Cell:
    """Status and value of an observation; of a series its newest sample."""
    value = o.value
    if isinstance(value, Series):
        value = value.values[-1] if value.values else None
    if o.status is not Status.OK or value is None or isinstance(value, Event):
        return Cell(str(o.status))
    if isinstance(value, str):
        return Cell(str(o.status), text=storable(value))
    if isinstance(value, tuple):
        return Cell(str(o.status), json=json.dumps(value))
    if not isinstance(value, bool) and (abs(value) > EXACT if isinstance(value, int) else not math.isfinite(value)):
        return Cell(str(o.status), json=json.dumps(value) if isinstance(value, int) else f'"{value}"')
    return Cell(str(o.status), num=float(value))


def decode(cell: Cell, spec: FactSpec | None) -> Value:
    """The value of a cell, of the type that the vocabulary gives the fact now."""
    if cell.text is not None:
        return cell.text
    if cell.json is not None:
        plain = json.loads(cell.json)
        if isinstance(plain, list):
            return tuple(str(x) for x in plain)
        return int(plain) if isinstance(plain, int) else float(plain)
    if cell.num is None:
        return None
    kind = spec.type if spec else Type.FLOAT
    if kind is Type.BOOL:
        return bool(cell.num)
    return int(cell.num) if kind is Type.INT and cell.num.is_integer() else cell.num


def every(spec: FactSpec | None, watched: bool) -> int:
    """ns that must lie between two samples of a fact before a new value alone is worth a row."""
    if spec is None or watched or spec.kind not in (Kind.GAUGE, Kind.COUNTER):
        return 0
    return COUNTER_EVERY if spec.kind is Kind.COUNTER and spec.unit == "count" else GAUGE_EVERY


def collect(observations: Iterable[Observation]) -> dict[Key, Seen]:
    """One sample a key of what a check measured: the newest where there are several."""
    groups: dict[Key, list[Observation]] = {}
    names: dict[Subject, str] = {}
    for o in observations:
        if o.origin is not Origin.MEASURED or o.subject.scope not in KEPT or isinstance(o.value, Event):
            continue
        if o.source.call.startswith(HISTORY):
            continue
        name = names.get(o.subject)
        if name is None:
            name = names[o.subject] = subject_text(o.subject)
        groups.setdefault(Key(o.fact, name, o.source.probe), []).append(o)
    return {key: _seen(group) for key, group in groups.items()}


def _seen(group: Sequence[Observation]) -> Seen:
    o = group[0] if len(group) == 1 else latest([x for x in group if x.status.answered] or group)
    at = o.at if o.clock is Clock.REALTIME else None
    return Seen(encode(o), at, storable(o.source.call), storable(o.excerpt[:EXCERPT]), storable(o.detail[:EXCERPT]))


def plan(
    last: Mapping[Key, Last], seen: Mapping[Key, Seen], as_of: int, before: int | None, spacing: Callable[[str], int]
) -> list[Row]:
    """The rows that a run writes.

    `before` is the time of the node's newest run so far (None: there is none). A run that is not newer stands
    by itself. `spacing` gives `every` for a fact.
    """
    if before is not None and as_of <= before:
        return [Row(k, s.cell, _within(s.at, None, as_of), None, s.excerpt, s.detail) for k, s in seen.items()]
    rows = []
    for key, s in seen.items():
        known = last.get(key)
        if known is not None and known.cell == s.cell:
            continue
        at = _within(s.at, before, as_of)
        ok = s.cell.status == Status.OK
        wait = spacing(key.fact) if ok else 0
        if (
            known is not None
            and known.cell.status == s.cell.status
            and at - known.at < wait
            and not (wait == GAUGE_EVERY and _steps(known.cell.num, s.cell.num))
        ):
            continue
        rows.append(Row(key, s.cell, at, at + wait, s.excerpt, s.detail))
    probes = {key.probe for key in seen}
    gone = Cell(str(Status.NOT_ASKED))
    rows += [
        Row(key, gone, as_of, as_of, "", "no longer told")
        for key, known in last.items()
        if key.probe in probes and key not in seen and known.cell != gone
    ]
    return rows


def _steps(was: float | None, now: float | None) -> bool:
    """Whether a reading is another one than before, by more than a gauge jitters."""
    return was is not None and now is not None and abs(now - was) > STEP * max(abs(was), abs(now))


def _within(at: int | None, after: int | None, as_of: int) -> int:
    """The sample's own time where it lies between the runs, else the run's."""
    return at if at is not None and at <= as_of and (after is None or at > after) else as_of


def identity(host: str, boot_id: str, o: Observation) -> str:
    """What makes an event the same one when the same line is read again.

    Host, kind, raw line and its time. A line of the kernel's own buffer carries its time since the boot: then the
    line and the boot say all, and the UTC time that was reckoned from them is left out, because the reckoning moves
    by a second when the clock is set. Elsewhere the time counts, and the boot only where the clock begins with it.
    """
    from hashlib import blake2b  # loads OpenSSL; most checks see no event

    code = o.value.code if isinstance(o.value, Event) else None
    words = [host, o.fact, str(code), subject_text(o.subject), o.excerpt]
    if _SINCE_BOOT.match(o.excerpt):
        words.append(boot_id)
    else:
        words += [boot_id if o.clock in (Clock.BOOT, Clock.MONOTONIC) else "", str(o.clock), str(o.at)]
    return blake2b(storable("\n".join(words)).encode(), digest_size=16).hexdigest()
