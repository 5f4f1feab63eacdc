"""Sentences from lines: fences, pastes, what a pipe and a terminal give; and what Tab completes."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from assistant.session.reading import BEGIN, END, LIMIT, Sentences
from assistant.session.terminal import completions


def read(lines: Iterable[str]) -> list[str]:
    """All sentences of some lines."""
    left = iter(lines)

    def next_line(_: str) -> str:
        try:
            return next(left)
        except StopIteration:
            raise EOFError from None

    sentences = Sentences(next_line)
    return list(iter(sentences.next, None))


def test_a_line_is_a_sentence() -> None:
    assert read(["what is xid 79?", "", "   ", "why?\r", "为什么？"]) == ["what is xid 79?", "why?", "为什么？"]


def test_lines_between_fences_are_one() -> None:
    assert read(["```", "line 1", "", "line 2", "```", "why?"]) == ["line 1\n\nline 2", "why?"]
    assert read(["```log", "line 1", "```"]) == ["line 1"]
    assert read(["what is this? ```", "a", "b```", "next"]) == ["what is this? \na\nb", "next"]
    assert read(["```", "no end", "to it"]) == ["no end\nto it"]
    assert read(["see ```x``` here"]) == ["see ```x``` here"]


def test_what_is_pasted_is_one() -> None:
    assert read([f"{BEGIN}line 1", f"line 2{END}", "why?"]) == ["line 1\nline 2", "why?"]
    assert read([f"look: {BEGIN}a", f"b{END}", "why?"]) == ["look: a\nb", "why?"]
    assert read([f"{BEGIN}all{END}"]) == ["all"]
    assert read([f"{BEGIN}a{END} and now?", "x"]) == ["a", "and now?", "x"]
    assert read([f"{BEGIN}never", "closed"]) == ["never\nclosed"]


def test_a_paste_without_end_stays_bounded() -> None:
    (found,) = read([BEGIN, *["x" * 1000] * 5000])
    assert len(found) <= LIMIT


@given(st.lists(st.text(f"ab`{BEGIN}{END} \n", max_size=20), max_size=12))
def test_any_lines_end_in_sentences_that_hold_something(lines: list[str]) -> None:
    assert all(s == s.strip() != "" for s in read(lines))


def test_tab_completes_suggestions_and_names() -> None:
    offers, names = ["why?", "what next?", "为什么？"], ["gpu-12", "gpu-13", "next?"]
    assert completions("w", offers, names) == ["why?", "what next?"]
    assert completions("WHA", offers, names) == ["what next?"]
    assert completions("为", offers, names) == ["为什么？"]
    assert completions("is gpu-1", offers, names) == ["is gpu-12", "is gpu-13"]
    assert completions("gpu-12", offers, names) == []
    assert completions("", offers, names) == offers
    assert completions("x ", [], names) == []
