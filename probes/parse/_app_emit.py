"""Builds observations for the parsers of application logs, network tools and benchmarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from knowledge.lazy import lazy
from knowledge.observation import Clock, Event, Observation, Scalar, Scope, Source, Status, Subject, Value, node
from knowledge.record import dataclass
from knowledge.text import clean
from knowledge.text import excerpt as tidy
from probes.base import Context, Line, lines_of
from probes.parse._app_lines import AppLine, is_application_log, span

_NUMBER = lazy(r"[-+]?[0-9]{1,18}(?:\.[0-9]{1,12})?")


@dataclass(slots=True)
class Emitter:
    """Collects the observations of one input; each carries the parser, the file and the line."""

    probe: str
    revision: int
    context: Context
    out: list[Observation] = field(default_factory=list)

    @property
    def node(self) -> Subject:
        """The node that the text was taken on."""
        return node(self.context.host)

    @property
    def document(self) -> Subject:
        """The text itself, as part of the node it was taken on."""
        return Subject(Scope.DOCUMENT, self.context.source, self.node)

    def source(self, line: int | None) -> Source:
        """Where an observation of `line` comes from."""
        return self.context.at(self.probe, self.revision, line)

    def fact(
        self,
        name: str,
        subject: Subject,
        value: Value,
        line: int | None = None,
        excerpt: str = "",
        *,
        detail: str = "",
        at: int | None = None,
        clock: Clock = Clock.NONE,
    ) -> None:
        """One value that the text gives, without control characters."""
        if isinstance(value, str):
            value = clean(value)
        elif isinstance(value, tuple):
            value = tuple(clean(word) for word in value)
        self.out.append(
            Observation(
                name, subject, value, Status.OK, self.source(line), at, clock, excerpt=tidy(excerpt), detail=detail
            )
        )

    def missing(
        self, name: str, subject: Subject, status: Status, detail: str, *, line: int | None = None, excerpt: str = ""
    ) -> None:
        """One value that the text should give and does not."""
        self.out.append(
            Observation(name, subject, None, status, self.source(line), excerpt=tidy(excerpt), detail=tidy(detail))
        )

    def event(
        self,
        name: str,
        subject: Subject,
        fields: Mapping[str, Scalar],
        line: int,
        excerpt: str,
        *,
        code: int | None = None,
        at: int | None = None,
        clock: Clock = Clock.NONE,
    ) -> None:
        """Something that happened once; fields without a value are left out."""
        known = {
            key: clean(value) if isinstance(value, str) else value for key, value in fields.items() if value is not None
        }
        self.fact(name, subject, Event(code, known), line, excerpt, at=at, clock=clock)


def clean_lines(text: str) -> list[Line]:
    """All lines of a text, numbered from 1, without escapes and control characters."""
    return [Line(line.number, clean(line.text)) for line in lines_of(text)]


def number(text: str) -> float | None:
    """The number at the start of `text`; None when it does not start with one."""
    found = _NUMBER.match(text.strip())
    return float(found[0]) if found else None


def whole(text: str | None, limit: int = 18) -> int | None:
    """`text` as a decimal integer of at most `limit` digits; None when it is not one."""
    if text is None:
        return None
    text = text.strip()
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > limit:
        return None
    return int(text)


def none_seen(emit: Emitter, names: Sequence[str], lines: Sequence[AppLine]) -> None:
    """Say for each event of `names` that, apart from those listed, none occurred: the whole log was looked at."""
    if not is_application_log(lines):
        return
    window, clock = span(lines)
    for name in names:
        emit.out.append(
            Observation(
                name,
                emit.document,
                None,
                Status.NONE_SEEN,
                emit.source(None),
                at=window[1] if window else None,
                clock=clock,
                window=window,
                detail="no other such line in this log",
            )
        )
