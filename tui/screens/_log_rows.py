"""What the log screen shows of a line: its row in the table, and the line in full."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from knowledge.language import Text
from tui.tones import MARKS, Tone, of_severity
from tui.widgets.columns import Cell, Row
from tui.widgets.notes import Note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assistant.live.loglines import LogLine
    from assistant.live.logsource import Log

LIMIT = 60_000  # rows of a log that grows: those ahead of them are let go
_RANK = {"info": 1, "warning": 2, "error": 3, "critical": 4}


class Held:
    """One log of the source, with its rows."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.title = _short(log.title)
        self.rows: list[Row] = []
        self.counts: Counter[str] = Counter()  # decoded lines by severity

    def take(self, rows: Sequence[Row]) -> None:
        """More of its lines."""
        self.rows.extend(rows)
        del self.rows[:-LIMIT]
        self.counts.update(line.decoded.severity for row in rows if (line := line_of(row)).decoded is not None)

    def told(self, lang: str) -> list[str]:
        """What it is, and how many of its lines mean something."""
        lines = Text(f"{len(self.rows):,} lines", f"{len(self.rows):,} 行").in_(lang)
        bad, warned = self.counts["critical"] + self.counts["error"], self.counts["warning"]
        marks = [f"{MARKS[tone]} {n:,}" for tone, n in ((Tone.ERROR, bad), (Tone.WARNING, warned)) if n]
        return [self.title, lines, *(["  ".join(marks)] if marks else [])]


def line_of(row: Row) -> LogLine:
    """The line that a row shows."""
    line: LogLine = row.data
    return line


def moment_of(row: Row) -> int | None:
    """When the line was written, ns UTC, where that is known."""
    line = line_of(row)
    return line.at if line.clock == "realtime" else None


def row_of(line: LogLine, lang: str) -> Row:
    """A line as a row: time, mark, event, line, meaning."""
    from assistant.live.loglines import when

    time = Cell(when(line.at, line.clock), Tone.DIM, line.at)
    d = line.decoded
    if d is None:
        return Row(line.key, (time, "", "", line.message, ""), line)
    tone = of_severity(d.severity)
    mark = Cell(MARKS.get(tone, "·"), tone, _RANK.get(d.severity, 0))
    meaning = Cell(d.meaning.in_(lang), Tone.DIM if tone is Tone.INFO else tone)
    return Row(line.key, (time, mark, Cell(d.label.in_(lang), tone), line.message, meaning), line)


def in_full(line: LogLine, title: str, lang: str, room: int) -> list[Note]:
    """Everything about a line; `room` lines for each part of what it means."""
    from assistant.live.loglines import whole

    place = Text(f"line {line.number:,}", f"第 {line.number:,} 行").in_(lang)
    told = [whole(line.at, line.clock, lang), place, *([line.level] if line.level else []), title]
    notes = [Note(" · ".join(told), Tone.DIM), Note(line.message.strip(), most=room + 1)]
    if (d := line.decoded) is not None:
        tone = of_severity(d.severity)
        said = d.label.in_(lang) + Text(": ", "：").in_(lang) + d.meaning.in_(lang)
        notes.append(Note(f"{MARKS.get(tone, '·')} {said}", tone, most=room))
        if more := d.more(lang):
            notes.append(Note(more, Tone.DIM, most=room))
    return notes


def _short(title: str) -> str:
    """A file by its name; a command as it is."""
    return f"…/{title.rpartition('/')[2]}" if len(title) > 30 and title.count("/") > 1 and " " not in title else title
