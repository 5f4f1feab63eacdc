"""Shared by the tests of NVIDIA tool parsers: captures, look-ups, and the laws that hold for each parser."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from hypothesis import strategies as st

from knowledge.observation import Event, Observation, Status, Value
from probes.base import Context, DocumentFormat
from tests.probes.parse.vocabulary_check import assert_in_vocabulary

CAPTURES = Path(__file__).parents[2] / "captures"
CONTEXT = Context("capture.txt", "node-a")


def capture(name: str) -> str:
    """The text of ``tests/captures/<name>``."""
    return (CAPTURES / name).read_text(encoding="utf-8")


def parse(form: DocumentFormat, name: str) -> list[Observation]:
    """Observations of a capture; each is in the vocabulary and among what the format provides."""
    observations = form.parse(capture(name), CONTEXT)
    assert_in_vocabulary(observations, form)
    return observations


def all_of(observations: Iterable[Observation], fact: str, subject: str | None = None) -> list[Observation]:
    """The observations of a fact, about one subject id if given."""
    return [o for o in observations if o.fact == fact and subject in (None, o.subject.id)]


def one(observations: Iterable[Observation], fact: str, subject: str | None = None) -> Observation:
    """The only observation of a fact."""
    found = all_of(observations, fact, subject)
    assert len(found) == 1, [(o.subject, o.value, o.status) for o in found]
    return found[0]


def value(observations: Iterable[Observation], fact: str, subject: str | None = None) -> Value:
    """The value of the only observation of a fact, which has one."""
    found = one(observations, fact, subject)
    assert found.status is Status.OK, found
    return found.value


def status(observations: Iterable[Observation], fact: str, subject: str | None = None) -> Status:
    """The status of the only observation of a fact."""
    return one(observations, fact, subject).status


def events(observations: Iterable[Observation], fact: str, subject: str | None = None) -> list[Event]:
    """The events of a fact."""
    return [o.value for o in all_of(observations, fact, subject) if isinstance(o.value, Event)]


def plain(observations: Iterable[Observation]) -> set[tuple[str, str, str, str]]:
    """What is told, without the places where it is printed."""
    return {(o.fact, str(o.subject), repr(o.value), o.status.value) for o in observations}


def check_cut(form: DocumentFormat, name: str, at: int) -> None:
    """A parser answers for a capture that was cut anywhere, without inventing a value.

    Only the last line may read differently, because a cut number is a number.
    """
    text = capture(name)
    cut = text[: at % (len(text) + 1)]
    form.sniff(cut)
    assert_in_vocabulary(form.parse(cut, CONTEXT), form)


def check_any(form: DocumentFormat, text: str) -> None:
    """A parser and its sniffer answer for any text."""
    assert 0 <= form.sniff(text) <= 100
    assert_in_vocabulary(form.parse(text, CONTEXT), form)


def shuffled_lines(names: Sequence[str]) -> st.SearchStrategy[str]:
    """Texts made of the lines of captures, in any order, with strange lines between them."""
    lines = sorted({line for name in names for line in capture(name).splitlines()})
    strange = st.sampled_from(
        ["", "\x1b[31mred\x1b[0m", "GPU 0: \u202e", "| | |", "{", " : ", "x" * 300, "\t:\t", "+---+"]
    )
    return st.lists(st.sampled_from(lines) | strange | st.text(max_size=40), max_size=40).map("\n".join)
