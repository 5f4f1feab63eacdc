"""Not understood: said, with what is near, never an answer to another question."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assistant.dialogue._pages import close_page
from assistant.intent.parse import understand
from assistant.intent.query import Intent
from assistant.reply import Reply
from knowledge.text import clean
from tests.assistant.dialogue.talk import ask, query
from tests.cases import each


def unknown(text: str, lang: str = "en") -> Reply:
    return ask(None, query(Intent.UNKNOWN, text, lang))


@each("text", ["what is the weather", "write me a poem", "asdkjh", "今天天气怎么样", "sort a list in python"])
def test_nothing_near(text: str) -> None:
    reply = unknown(text, "zh" if text[0] > "z" else "en")
    assert text in reply.headline
    assert not reply.settled
    assert reply.data["closest"] == []
    assert reply.parts == ()
    assert 2 <= len(reply.suggestions) <= 3


def test_something_near() -> None:
    reply = unknown("nvlink things")
    assert "term nvlink" in reply.data["closest"]
    assert not reply.settled


@given(st.text(max_size=400), st.sampled_from(["en", "zh"]))
def test_any_text_is_quoted_safely(text: str, lang: str) -> None:
    reply = unknown(text, lang)
    assert clean(reply.headline) == reply.headline
    assert "\n" not in reply.headline
    assert len(reply.headline) < 120
    assert len(reply.data["closest"]) <= 3


def test_a_paste() -> None:
    assert len(unknown("lorem ipsum " * 90_000).headline) < 120


@each(("said", "page"), [
    ("torch 2.1 on rtx 5090: no kernel image is available for execution on the device", "pytorch no-kernel-image"),
    ("Failed to initialize NVML: Unknown Error inside container after a few hours, host ok", "pytorch nvml-unknown-in-container"),
    ("the flux capacitor shows 40 gigawatts, is that normal", ""),
])  # fmt: skip
def test_a_page_that_is_near_enough_is_shown_where_nothing_was_a_fact(said: str, page: str) -> None:
    assert close_page(understand(said)) == page
