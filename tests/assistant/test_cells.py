"""Widths, wrapping and cutting: laws."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assistant.render.cells import Paint, cut, pad, width, wrap

WORDS = st.lists(st.text(st.sampled_from("abcXYZ09_./显存错误节点，。"), min_size=1, max_size=12), max_size=30).map(
    " ".join
)


@given(WORDS, st.integers(20, 120))
def test_wrapping_loses_nothing_and_keeps_the_width(text: str, columns: int) -> None:
    lines = wrap(text, columns, "  - ", "    ")
    kept = "".join(line[4:] for line in lines).replace(" ", "")
    assert kept == text.replace(" ", "")
    longest = max((width(word) for word in text.split()), default=0)
    for line in lines:
        # A word that is too long stays whole; closing punctuation may hang over by itself.
        assert width(line) <= max(columns, 4 + longest) + 2


@given(WORDS, st.integers(20, 120))
def test_a_cut_text_fits(text: str, columns: int) -> None:
    short = cut(text, columns)
    assert width(short) <= columns
    assert (short == text) == (width(text) <= columns)


def test_widths() -> None:
    assert width("GPU") == 3
    assert width("显存") == 4
    assert width("e\u0301") == 1
    assert pad("显存", 6) == "显存  "


def test_han_text_breaks_without_blanks_and_keeps_them_beside_latin() -> None:
    assert wrap("驱动已无法通过 PCIe 访问该 GPU", 16) == ["驱动已无法通过", "PCIe 访问该 GPU"]


def test_punctuation_does_not_begin_a_line() -> None:
    assert all(line[:1] not in "，。" for line in wrap("显存错误，" * 20, 24))


def test_colour_only_when_wanted() -> None:
    assert Paint(False)("x", "red") == "x"
    assert Paint(True)("x", "red", "bold") == "\x1b[31;1mx\x1b[0m"
