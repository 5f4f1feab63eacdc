"""Answers as rows: whatever is said fits its columns, and everything that is said can be opened."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.render import text as shapes
from assistant.render.cells import Paint, width
from assistant.session.driver import Answer
from assistant.session.shown import Shown, in_full, shown
from assistant.session.state import Origin
from tests.assistant.session.test_core import ROW_REMAP, held, origin
from tests.tui.lab import BUS
from tui.tones import Tone
from tui.widgets.rows import NONE, Pen, Span, Stop, folded, length, plain
from tui.widgets.turns import LINES, Turn

LEFT_BEHIND = origin("left-behind")
OFF_BUS = Origin(BUS[1])
WORDS = st.text(st.sampled_from("abc /:-.，。（）显存错误 \n"), max_size=120)
SENTENCES = (
    "what is wrong?", "is this node healthy?", "is gpu 3 ok?", "why is training slow?", "what is xid 79", "suppose there was no xid 79", "why?",
    "how do I enable ECC?", "help", "这个节点健康吗？", "write me a poem",
)  # fmt: skip


def t(en: str, _: str) -> str:
    """English."""
    return en


@cache
def answers() -> tuple[Shown, ...]:
    """Answers of many kinds."""
    turns = [turn for origin in (OFF_BUS, ROW_REMAP) for turn in held(origin, SENTENCES)]
    return tuple(shown(Answer(x.reply, x.state.said, x.state.frame.pending, x.state.frame)) for x in turns)


def laid(answer: Shown, columns: int, *, opened: bool = False, live: bool = True) -> tuple[list[str], list[Stop]]:
    """The rows of a turn, as text."""
    turn = Turn("question", shown=answer, echo=answer.echo)
    rows, stops = turn.rows(columns, t, "en", live=live)
    while opened:
        closed = {
            s.value for r in rows for x in r if x.text == "▸ " and x.stop != NONE if (s := stops[x.stop]).kind == "fold"
        }
        if not closed:
            break
        turn.turned ^= closed
        turn.changed()
        rows, stops = turn.rows(columns, t, "en", live=live)
    assert all(length(row) <= columns for row in rows), max(map(length, rows))
    return [plain(row) for row in rows], stops


@given(WORDS, st.integers(8, 60), st.integers(0, 6), st.integers(0, 6))
def test_folded_text_fits_and_loses_nothing(text: str, columns: int, first: int, rest: int) -> None:
    columns += 8
    lines = folded(text, columns, first, rest)
    assert all(width(line) <= columns - (first if n == 0 else 0) for n, line in enumerate(lines))
    assert "".join("".join(lines).split()) == "".join(text.split())


@given(st.lists(st.text("abc de", min_size=1, max_size=30), max_size=8), st.integers(12, 60))
def test_chips_flow_without_losing_a_letter(texts: list[str], columns: int) -> None:
    pen = Pen(columns)
    pen.flow([(Span("a ", Tone.ACCENT, n), Span(text, Tone.PLAIN, n)) for n, text in enumerate(texts)])
    assert all(length(row) <= columns for row in pen.rows)
    for n, text in enumerate(texts):
        said = "".join(span.text for row in pen.rows for span in row if span.stop == n)
        assert "".join(said.removeprefix("a ").split()) == "".join(text.split())


@pytest.mark.slow
@given(st.sampled_from(range(2 * len(SENTENCES))), st.integers(24, 130), st.booleans())
def test_every_answer_fits_its_columns(which: int, columns: int, opened: bool) -> None:
    laid(answers()[which], columns, opened=opened)


@pytest.mark.slow
def test_all_words_of_the_command_line_stand_in_what_is_opened() -> None:
    for answer in answers():
        if answer.view is None:
            continue
        said = "".join("".join(laid(answer, 100, opened=True)[0]).split())
        printed = shapes.render(answer.view, 80, Paint(False)).splitlines()
        for line in printed:
            for word in line.replace("->", "").replace("gpudiag runbook show", "").split():  # there it is a link
                assert word.strip("-:|") in said, (word, line)


def told(origin: Origin) -> Shown:
    """What is said of a recording."""
    (turn,) = held(origin, ["what is wrong?"])
    return shown(Answer(turn.reply, turn.state.said, None, turn.state.frame))


@pytest.mark.slow
def test_only_the_first_finding_is_open() -> None:
    answer, other = (told(o) for o in (LEFT_BEHIND, OFF_BUS))
    assert answer.view is not None
    assert other.view is not None
    both = replace(answer.view, blocks=(*answer.view.blocks, *other.view.blocks))
    answer = replace(answer, view=both, subjects=(*answer.subjects, *other.subjects))
    rows, _ = laid(answer, 100)
    signs = [row.strip()[0] for row in rows if row.strip()[:1] in ("▾", "▸")]
    assert signs[0] == "▾"
    assert "▾" not in signs[1:]


def test_in_full_there_is_more() -> None:
    answer = next(a for a in answers() if a.view is not None and a.view.blocks)
    some = "\n".join(laid(answer, 100, opened=True)[0])
    turn = Turn("question", shown=in_full(answer), full=True)
    full = "\n".join("".join(span.text for span in row) for row in turn.rows(100, t, "en", live=True)[0])
    for name in ("  rule: ", "  why: ", "  mistaken for it: ", "  sources: "):
        assert name in full
        assert name not in some


def test_chips_of_the_newest_answer_have_letters_and_older_ones_do_not() -> None:
    answer = next(a for a in answers() if a.suggestions and not a.question)
    new, stops = laid(answer, 100)
    old, _ = laid(answer, 100, live=False)
    assert any(row.strip().startswith("a ") for row in new)
    assert any(row.strip().startswith("› ") for row in old)
    assert [s.value for s in stops if s.kind == "chip"] == list(answer.suggestions)


def test_a_hypothetical_answer_is_marked_on_every_line() -> None:
    answer = next(a for a in answers() if a.note)
    rows, _ = laid(answer, 80)
    below = rows[next(n for n, row in enumerate(rows) if "nothing of this was seen" in row) :]
    assert all(row.startswith("┆") for row in below)


def test_a_pasted_log_is_folded_until_it_is_opened() -> None:
    turn = Turn("\n".join(f"line {n}" for n in range(400)))
    turn.shown = answers()[0]
    rows, stops = turn.rows(80, t, "en", live=True)
    said = [plain(row) for row in rows]
    assert sum(row.strip().removeprefix("❯ ").startswith("line ") for row in said) == LINES
    assert any("397 more lines" in row for row in said)
    turn.turned ^= {stops[0].value}
    turn.changed()
    assert any("line 399" in plain(row) for row in turn.rows(80, t, "en", live=True)[0])


@pytest.mark.parametrize(
    ("turn", "words"),
    [
        (Turn("q", waits=True), "waits"),
        (Turn("q", doing="looking 3/9 · nvml"), "looking 3/9 · nvml"),
        (Turn("q", trouble="no such file"), "✖ no such file"),
        (Turn("q", broken="Broken off"), "◌ Broken off"),
    ],
)
def test_each_state_of_a_turn_has_words_of_its_own(turn: Turn, words: str) -> None:
    assert any(words in plain(row) for row in turn.rows(60, t, "en", live=False)[0])
