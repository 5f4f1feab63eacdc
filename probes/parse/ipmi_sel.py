"""``ipmitool sel elist`` and ``sel list``, records of ``sel list -v`` and ``sel get``: the management controller's event log; ``sel info``
before it or alone.

Lines as the tool prints them since 1.8.11 (lib/ipmi_sel.c); since 1.8.19 the date has the locale's order and the time
may end with AM or PM and a zone. The controller's clock is taken for UTC: it mostly is, and the log does not say.
An entry that a later one takes back (Deasserted, Fully Redundant) is kept as cleared. An entry from before the
controller knew the time (Pre-Init) has no date: it lies between the dated entries around it, and the log may be years old.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Sequence

from knowledge.observation import ANY_TIME, Clock, Event, Observation, Status, node
from knowledge.record import dataclass
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse import _ipmi_words

NAME, REVISION = "ipmi-sel", 4
PROVIDES = ("bmc_event", "node.bmc.log.entries", "node.bmc.log.used")
KEPT = 200  # entries that are no routine; the newest
#    1 | 06/14/2023 | 10:01:17 | Power Supply PS2 Status | Power Supply AC lost | Asserted
#   34 | 02/25/25 | 04:50:09 PM EST | Memory #0x02 | Uncorrectable ECC (UnCorrectable ECC |  DIMMD7) | Asserted
#    5 |  Pre-Init  |0000000123| System Event #0x01 | Timestamp Clock Sync | Asserted
_ENTRY = re.compile(
    r"\s{0,8}([0-9a-f]{1,4})\s?\|\s{0,4}(Pre-Init|[\d/.-]{6,10})\s{0,4}\|\s?([\d:]{8,10}(?: [AP]M)?(?: [A-Z0-9+-]{1,6})?)\s{0,2}\|(.{3,600})"
)
#  Sensor Type           : Critical Interrupt        one line of a record of ``sel get``
_FIELD = re.compile(
    r"\s{0,4}(SEL Record ID|Timestamp|Sensor Type|Sensor Number|Sensor ID|Event Direction|Description)\s{0,24}: (.{0,400})"
)
_STAMP = re.compile(r"(Pre-Init|[\d/.-]{6,10}) {1,4}([\d:]{8,10}(?: [AP]M)?(?: [A-Z0-9+-]{1,6})?)\s{0,4}")
_OF_RECORD = {"Assertion Event": "asserted", "Deassertion Event": "deasserted"}
_DATES = (
    re.compile(r"(?P<m>\d{1,2})/(?P<d>\d{1,2})/(?P<y>\d{2}|\d{4})"),
    re.compile(r"(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})"),
    re.compile(r"(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?P<y>\d{2}|\d{4})"),
)
_TIME = re.compile(r"(\d{1,2}):(\d{2}):(\d{2})(?: ([AP]M))?(?: \S{1,6})?")
# Percent Used     : 6%          Entries          : 62           SEL has no entries
_USED = re.compile(r"Percent Used\s{1,20}: (\d{1,3})%")
_ENTRIES = re.compile(r"Entries\s{1,20}: (\d{1,6})")
_EMPTY = re.compile(r"SEL has no entries")
_DIRECTIONS = ("Asserted", "Deasserted")
_FAILED = re.compile(
    r"Could not open device at \S{1,60}|Unable to (?:open|establish|get)[^\n]{0,80}|Get SEL Info command failed[^\n]{0,60}"
)


@dataclass(slots=True)
class _Entry:
    number: int
    line: Line
    at: int | None
    type_: str
    sensor: str
    event: str
    state: str
    reading: str
    between: tuple[int, int] | None = None  # ns: an entry without a date lies there


def sniff(head: str) -> int:
    """90 when entries or records stand in it, or the summary does."""
    lines = [line for line in head.splitlines()[:60] if line.strip()]
    entries = sum(_ENTRY.match(line) is not None for line in lines)
    if entries and entries * 2 >= len(lines) - 12:
        return 90
    if any((m := _FIELD.fullmatch(line)) and m[1] == "SEL Record ID" for line in lines):
        return 90
    return 90 if "SEL Information" in head[:400] or (_EMPTY.search(head[:200]) and len(head) < 400) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Events that are no routine, in the order of their numbers; that no others were logged; how full the log is."""
    lines = [Line(line.number, clean(line.text)) for line in lines_of(text)]
    listed = [e for line in lines if (e := _entry(line)) is not None]
    entries = sorted(listed or _records(lines), key=lambda e: e.number)
    # records that were asked for one by one say nothing of the others; those of a whole log begin with the first
    some = bool(entries) and not listed and [e.number for e in entries] != list(range(1, len(entries) + 1))
    printed = next((int(m[1]) for line in lines if (m := _ENTRIES.match(line.text.strip()))), None)
    used = next((int(m[1]) for line in lines if (m := _USED.match(line.text.strip()))), None)
    here, out = node(context.host), []

    def add(
        fact: str, value: object, number: int | None, shown: str, status: Status = Status.OK, detail: str = ""
    ) -> None:
        source = context.at(NAME, REVISION, number)
        plain = value if isinstance(value, int | float) else None
        out.append(Observation(fact, here, plain, status, source, excerpt=excerpt(shown, 300), detail=excerpt(detail)))

    if used is not None:
        add("node.bmc.log.used", float(used), None, f"Percent Used: {used}%")
    empty = _EMPTY.search(text) is not None
    if printed is not None or (entries and not some) or empty:
        count = printed if printed is not None else len(entries)
        add("node.bmc.log.entries", count, None, f"{count} entries")
    if entries or empty or printed == 0:
        out += _events(entries, context)
        # fewer than the log counts: the listing is cut, or some were not understood
        if not some and (printed is None or len(entries) >= printed):
            add("bmc_event", None, None, "", Status.NONE_SEEN, "the event log holds no other entry that is no routine")
    elif printed is None and (failed := _FAILED.search(clean(text))):
        add("bmc_event", None, None, failed[0], Status.FAILED, failed[0])
    return out


def _entry(line: Line) -> _Entry | None:
    found = _ENTRY.match(line.text)
    if found is None:
        return None
    parts = [part.strip() for part in found[4].split("|")]
    if len(parts) < 2:
        return None
    at = next((i for i in range(len(parts) - 1, 1, -1) if parts[i] in _DIRECTIONS), None)
    event = " | ".join(parts[1:at])  # the decoding of some boards holds a bar of its own
    state = parts[at].lower() if at is not None else "logged"
    reading = " | ".join(parts[at + 1 :]) if at is not None else ""
    type_, sensor = _ipmi_words.split(parts[0])
    sensor = parts[0] if sensor.startswith("#") else sensor  # ``sel list``: a number says nothing without its type
    return _Entry(int(found[1], 16), line, _when(found[2], found[3]), type_, sensor, event, state, reading)


def _records(lines: Sequence[Line]) -> list[_Entry]:
    """The records that are printed in lines of their own; one without a description was cut off, and is left out."""
    told: list[dict[str, tuple[str, Line]]] = []
    for line in lines:
        if (found := _FIELD.fullmatch(line.text[:500])) is not None:
            if found[1] == "SEL Record ID":
                told.append({})
            if told:
                told[-1].setdefault(found[1], (found[2].strip(), line))
    return [entry for record in told if (entry := _record(record)) is not None]


def _record(record: dict[str, tuple[str, Line]]) -> _Entry | None:
    said = {key: value for key, (value, _) in record.items()}
    if not said.get("Description") or not re.fullmatch(r"[0-9a-f]{1,4}", said["SEL Record ID"]):
        return None
    stamp = _STAMP.fullmatch(said.get("Timestamp", ""))
    named = re.sub(r" \(0x[0-9a-f]{1,4}\)$", "", said.get("Sensor ID", "")) or f"#0x{said.get('Sensor Number', '')}"
    type_, sensor = _ipmi_words.split(f"{said.get('Sensor Type', '')} {named}")
    sensor = f"{said.get('Sensor Type', '')} {named}" if sensor.startswith("#") else sensor
    at = _when(stamp[1], stamp[2]) if stamp else None
    state = _OF_RECORD.get(said.get("Event Direction", ""), "logged")
    return _Entry(
        int(said["SEL Record ID"], 16), record["Description"][1], at, type_, sensor, said["Description"], state, ""
    )


def _when(date: str, time: str) -> int | None:
    """The time in ns; None before the controller knew it."""
    day = next((m for pattern in _DATES if (m := pattern.fullmatch(date))), None)
    clock = _TIME.fullmatch(time)
    if day is None or clock is None:
        return None
    year, month, number = int(day["y"]), int(day["m"]), int(day["d"])
    hour, minute, second = int(clock[1]), int(clock[2]), int(clock[3])
    if clock[4]:
        hour = hour % 12 + (12 if clock[4] == "PM" else 0)
    if month > 12 >= number:  # a locale that begins with the day
        month, number = number, month
    year += 2000 if year < 100 else 0
    if not (
        1980 <= year < 2100 and 1 <= month <= 12 and 1 <= number <= 31 and hour < 24 and minute < 60 and second < 61
    ):
        return None
    return calendar.timegm((year, month, number, hour, minute, second, 0, 0, 0)) * 10**9


def _events(entries: Sequence[_Entry], context: Context) -> list[Observation]:
    out: list[Observation] = []
    _bound(entries)
    for i, entry in enumerate(entries):
        found = _ipmi_words.meaning(entry.type_, entry.event)
        if found is None or entry.state == "deasserted":
            continue
        state = "cleared" if any(_takes_back(later, entry) for later in entries[i + 1 :]) else entry.state
        fields = {
            "kind": found.kind, "sensor": excerpt(entry.sensor, 60), "event": excerpt(entry.event, 120), "state": state,
            "severity": found.severity, "reading": excerpt(entry.reading, 80),
            "date": "known" if entry.between is None else "not known",
        }  # fmt: skip
        source = context.at(NAME, REVISION, entry.line.number)
        out.append(
            Observation("bmc_event", node(context.host), Event(None, fields), Status.OK, source, entry.at, Clock.REALTIME,
                        entry.between, excerpt=excerpt(entry.line.text, 300))
        )  # fmt: skip
    return out[-KEPT:]


def _bound(entries: Sequence[_Entry]) -> None:
    """An entry without a date lies between the dated ones around it; anywhere, where these contradict each other."""
    for i, entry in enumerate(entries):
        if entry.at is None:
            low = next((e.at for e in reversed(entries[:i]) if e.at is not None), ANY_TIME[0])
            high = next((e.at for e in entries[i + 1 :] if e.at is not None), ANY_TIME[1])
            entry.between = (low, high) if low <= high else ANY_TIME


def _takes_back(later: _Entry, entry: _Entry) -> bool:
    if (later.type_, later.sensor) != (entry.type_, entry.sensor):
        return False
    if later.state == "deasserted":
        return later.event == entry.event
    return _ipmi_words.restores(later.event)


FORMAT = DocumentFormat(NAME, "ipmitool sel elist", REVISION, PROVIDES, sniff, parse)
