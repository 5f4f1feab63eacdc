"""What a parser is: a pure function from text to observations, and how it is recognised.

A module in `probes/parse` exports ``FORMAT``, a `DocumentFormat` or a `LogFormat`; the
folder is the registry. Parsers never raise on bad text: what they cannot read becomes an
observation with a status and a reason, or is left out when it says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from knowledge.language import Text
from knowledge.observation import Observation, Source
from knowledge.record import dataclass

_HEAD = 65_536  # characters of an input that is recognised
Progress: TypeAlias = Callable[[str, int, int | None], None]  # file, bytes done, bytes in all


class Line(NamedTuple):
    """One line of a log: its 1-based number in the file, and its text without the line end."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Context:
    """What a parser is told about its input."""

    source: str = "-"  # file name or command, as shown to people
    host: str = ""  # node the text was taken on, when known
    # Of a log: number of a line -> how many equal ones it stands for, of which the others are not among the lines; and number of a
    # line that such ones may lie ahead of -> that of the first of them, which is among the lines.
    times: Mapping[int, int] = field(default_factory=dict)
    since: Mapping[int, int] = field(default_factory=dict)
    programs: Mapping[int, int] = field(
        default_factory=dict
    )  # by how many programs (pid=) at least some were written in one moment

    def at(self, probe: str, revision: int, line: int | None = None) -> Source:
        """The `Source` of an observation from this input."""
        return Source(probe, self.source, line, revision)


@dataclass(frozen=True, slots=True)
class DocumentFormat:
    """A captured tool output that is read as a whole."""

    name: str  # "nvidia-smi-q"
    title: str  # "nvidia-smi -q text"
    revision: int  # grows when the same text gives other observations
    provides: tuple[str, ...]  # names of the facts it can give
    sniff: Callable[[str], int]  # the first 64 KiB -> 0 (not this) .. 100 (certainly this)
    parse: Callable[[str, Context], list[Observation]]
    # What is too large to be held as a text, and of which several files are one thing, is read by path: (paths, progress,
    # what tells of a file that gave nothing).
    files: Callable[[Sequence[str], Progress | None, Callable[[str, Text], None]], list[Observation]] | None = None
    binary: Callable[[bytes], bool] | None = (
        None  # with `files`: whether the first bytes of a file that is no text are its
    )
    # Parts of a text that nobody reads and that may tell of trouble: where each begins (1-based), and which command printed it, or
    # why it is not read.
    unread: Callable[[str], Sequence[tuple[int, str | Text]]] | None = None
    # Whether the times that the lines of a text begin with are read by `parse`: then it is no log that quotes the document.
    timed: Callable[[str], bool] | None = None


@dataclass(frozen=True, slots=True)
class LogFormat:
    """Lines of interest within logs of any size.

    The scanner hands over every line that matches a trigger together with `before` lines
    ahead of it and `after` lines behind it (windows that touch are joined), and the first
    and last lines of the file, in order, each line once. All log formats share one pass.

    Of a burst of equal lines it gets some: ``Context.times`` tells how many a line stands for. The scanner puts that into
    the events of that line (`Observation.times`); what a parser counts itself it adds up from there.
    """

    name: str
    title: str
    revision: int
    provides: tuple[str, ...]
    sniff: Callable[[str], int]
    triggers: tuple[str, ...]  # RE2 patterns, matched on raw lines; cheap and a superset
    parse: Callable[[Sequence[Line], Context], list[Observation]]
    before: int = 0
    after: int = 0
    counts: tuple[
        str, ...
    ] = ()  # facts whose events (or numbers of lines) say themselves how many lines they stand for, or are told once
    # Whether an event tells how things stand, once however many lines say it; of any other there are as many as lines.
    stands: Callable[[Observation], bool] = lambda _: False
    # Facts of which lines are one event that follow each other within so many ns (one of the scanner's PAUSES).
    bursts: Mapping[str, int] = field(default_factory=dict, hash=False)
    # RE2 patterns, among the triggers, of lines of which a program writes one each step: each tells a value, none is equal to
    # another. They are never folded; of very many the format gets the first, the last and a sample (`probes._scan_series`).
    series: tuple[str, ...] = ()


Format: TypeAlias = DocumentFormat | LogFormat


def lines_of(text: str) -> list[Line]:
    """All lines of a text, numbered from 1; CR, LF and CRLF end a line."""
    return list(_known_lines(text)) if len(text) <= _HEAD else _split(text)


@lru_cache(maxsize=4)
def _known_lines(text: str) -> tuple[Line, ...]:
    """The lines of what an input is recognised by: each of many formats asks for them."""
    return tuple(_split(text))


def _split(text: str) -> list[Line]:
    return [Line(i, line) for i, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1)]


def best(formats: Iterable[Format], head: str) -> Format | None:
    """The format that recognises `head` with the highest certainty; None when none does."""
    return last_named(surest(formats, head))


def last_named(formats: Iterable[Format]) -> Format | None:
    """Of formats that are alike sure the one whose name comes last: any, and always the same. None of none."""
    return max(formats, key=lambda f: f.name, default=None)


def surest(formats: Iterable[Format], head: str) -> list[Format]:
    """Those that recognise `head` with the highest certainty. The certainties are the order in which formats come: a
    document that two recognise alike belongs to neither, and the tests' samples must hold none.
    """
    return leading(scored(formats, head))


def scored(formats: Iterable[Format], head: str) -> list[tuple[int, Format]]:
    """How surely each format recognises `head`, 0 to 100."""
    return [(f.sniff(head), f) for f in formats]


def leading(scores: Iterable[tuple[int, Format]]) -> list[Format]:
    """The formats with the highest certainty; none where all are 0."""
    ranked = list(scores)
    top = max((score for score, _ in ranked), default=0)
    return [f for score, f in ranked if score == top > 0]
