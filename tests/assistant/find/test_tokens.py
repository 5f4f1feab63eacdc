"""Tokens: the same for questions and pages, bounded on any text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.find.tokens import MAX_CHARS, MAX_WORD, STOP, is_han, stem, terms, tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("XID 79?", ["xid", "79"]),
        ("xid79", ["xid", "79"]),
        ("ＸＩＤ　７９", ["xid", "79"]),
        ("pid4242很慢", ["pid", "4242", "很慢"]),
        ("第3块GPU掉卡了", ["第", "3", "块", "gpu", "掉卡", "卡了"]),
        ("H100 fp8 sm90", ["h100", "fp8", "sm90"]),
        ("DCGM_FI_DEV_GPU_TEMP", ["dcgm", "fi", "dev", "gpu", "temp"]),
        ("gpu.ecc.mode", ["gpu", "ecc", "mode"]),
        ("0x4f 555.42.02 43%", ["0x4f", "555.42.02", "43"]),
        ("what's wrong, isn't it", ["what", "wrong", "isnt", "it"]),
        ("xi\u200bd 79", ["xid", "79"]),
        ("", []),
    ],
)
def test_cuts(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


@pytest.mark.parametrize(
    "words",
    [("throttle", "throttles", "throttled", "throttling"), ("retry", "retries", "retried"), ("hang", "hangs", "hanging"),
     ("stop", "stopped", "stopping"), ("link", "links")],
)  # fmt: skip
def test_forms_of_a_word_meet(words: tuple[str, ...]) -> None:
    assert len({stem(w) for w in words}) == 1


@pytest.mark.parametrize("word", ["bus", "status", "access", "79", "sm90", "ecc", "speed", "行重"])
def test_what_is_no_form_stays(word: str) -> None:
    assert stem(word) == word


@given(st.text(max_size=300))
def test_any_text(text: str) -> None:
    found = tokens(text)
    assert all(0 < len(t) <= MAX_WORD for t in found)
    assert [stem(t) for t in found if t not in STOP] == terms(text)
    assert tokens(text) == found


@given(st.text(alphabet=st.characters(codec="utf-8", categories=["Lu", "Ll", "Nd", "Zs"]), max_size=60))
def test_width_and_case_do_not_matter(text: str) -> None:
    assert tokens(unicodedata.normalize("NFKC", text)) == tokens(text)
    if text.isascii():
        assert tokens(text.upper()) == tokens(text)


@given(st.text(alphabet="行重映射失败显存", min_size=2, max_size=20))
def test_han_pairs(text: str) -> None:
    pairs = tokens(text)
    assert pairs == [text[i : i + 2] for i in range(len(text) - 1)]
    assert all(map(is_han, pairs))


def test_a_paste_is_read_in_part() -> None:
    assert "needle" in tokens("x " * (MAX_CHARS // 2 - 10) + "needle")
    assert "needle" not in tokens("x " * MAX_CHARS + "needle")
    assert tokens("a" * 2_000_000) == ["a" * MAX_WORD]
