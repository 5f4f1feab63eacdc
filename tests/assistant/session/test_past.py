"""Earlier sentences, and what a line may become."""

from __future__ import annotations

import stat
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from assistant.intent.parse import understand
from assistant.intent.query import Intent
from assistant.session.completing import completed, names, sentences
from assistant.session.past import LONGEST, Past
from assistant.session.terminal import FILE, REMEMBERED

LINES = st.lists(st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=8), max_size=8)


def past(*said: str) -> Past:
    """What was said, nowhere kept."""
    made = Past(None)
    for text in said:
        made.add(text)
    return made


@given(LINES, st.text(max_size=4))
def test_walking_back_and_forth_ends_at_what_was_typed(said: list[str], typed: str) -> None:
    walked, steps = past(*said), 0
    while walked.older(typed) is not None:
        steps += 1
    back = [walked.newer() for _ in range(steps)]
    assert not steps or back[-1] == typed
    assert walked.newer() is None


@given(LINES)
def test_every_sentence_is_found_again_newest_first(said: list[str]) -> None:
    walked, found = past(*said), []
    while (line := walked.older("")) is not None:
        found.append(line)
    assert set(found) == set(said)
    assert found[:1] == said[-1:]


def test_only_sentences_that_begin_so_are_walked_through() -> None:
    walked = past("why?", "what is xid 79?", "Why not xid 31?", "check")
    assert [walked.older("why"), walked.older("why"), walked.older("why")] == ["Why not xid 31?", "why?", None]
    assert [walked.newer(), walked.newer(), walked.newer()] == ["Why not xid 31?", "why", None]


def test_what_was_said_is_kept_for_its_owner_alone_and_found_by_the_next_process(tmp_path: Path) -> None:
    said = Past(tmp_path / "state")
    for text in ("why?", "训练为什么慢？", "why?"):
        said.add(text)
    file = tmp_path / "state" / FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    again = Past(tmp_path / "state")
    again.load()
    assert again.lines == ["why?", "训练为什么慢？", "why?"]


def test_pasted_logs_are_found_again_but_not_kept(tmp_path: Path) -> None:
    said = Past(tmp_path)
    said.add("two\nlines")
    said.add("x" * (LONGEST + 1))
    assert said.older("") == "x" * (LONGEST + 1)
    assert said.older("") == "two\nlines"
    again = Past(tmp_path)
    again.load()
    assert not again.lines


def test_a_history_that_is_no_text_or_no_file_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"\xff\xfe\nwhy?\n\n")
    read = Past(tmp_path)
    read.load()
    assert read.lines[-1] == "why?"
    nothing = Past(tmp_path / FILE)
    nothing.load()
    nothing.add("why?")
    assert nothing.lines == ["why?"]


def test_no_more_is_remembered_than_the_command_line_does(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("".join(f"line {n}\n" for n in range(REMEMBERED + 50)))
    read = Past(tmp_path)
    read.load()
    assert len(read.lines) == REMEMBERED
    assert read.lines[-1] == f"line {REMEMBERED + 49}"


# --- completion -----------------------------------------------------------------------------

KNOWN = ("gpu-12", "gpu-13", "xid 7", "xid 79")


@given(st.text(max_size=12))
def test_a_completion_begins_with_what_was_typed_and_adds_to_it(text: str) -> None:
    for line in completed(text, sentences("en"), KNOWN):
        assert line.casefold().startswith(text.casefold())
        assert line != text


def test_sentences_come_first_then_names_of_one_or_two_words() -> None:
    assert completed("is this", sentences("en"), KNOWN)[0] == "is this node healthy?"
    assert completed("what about gpu-1", (), KNOWN) == ["what about gpu-12", "what about gpu-13"]
    assert completed("is it xid 7", (), KNOWN) == ["is it xid 79"]
    assert completed("", sentences("en"), KNOWN) == []
    assert completed("why\nwh", sentences("en"), KNOWN) == []


def test_every_sentence_that_is_offered_is_understood() -> None:
    for lang in ("en", "zh"):
        for text in sentences(lang):
            assert understand(text, lang=lang).intent is not Intent.UNKNOWN, text


def test_nodes_and_codes_are_known_by_name() -> None:
    found = names(("gpu-12",))
    assert "gpu-12" in found
    assert {"xid 79", "sxid 12028"} <= set(found)
