"""Durations round trip; text of strangers is made safe; sentences fold and fall back."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.compared import quantities
from knowledge.howto import howtos
from knowledge.language import NO_TEXT, Text
from knowledge.runbook import all_runbooks
from knowledge.text import clean, digits, excerpt, opened
from knowledge.units import format_duration, parse_duration
from tests.cases import each

SECOND = 10**9

# --- durations ----------------------------------------------------------------------------


@each(
    ("text", "seconds"),
    [("90s", 90), ("10m", 600), ("1h30m", 5400), ("24h", 86400), ("7d", 604800), ("2w", 1209600), ("0s", 0),
     ("0.1s", 0.1), ("2.5ms", 0.0025), ("1d12h", 129600), ("1.5h", 5400), ("1us", 1e-6)],
)  # fmt: skip
def test_durations_as_people_write_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == round(seconds * SECOND)


@each("text", ["", "5", "s", "-5s", "+5s", "1 h", " 5s", "5s ", "1h,", "5y", "1.s", ".5s", "1e3s", "5S",
                                  "5min", "٥s", "5s\n", "1h 30m", "9" * 5000 + "s"])  # fmt: skip
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@given(st.integers(0, 10**19))
def test_writing_and_reading_a_duration(ns: int) -> None:
    text = format_duration(ns)
    assert parse_duration(text) == ns
    assert format_duration(-ns) == (f"-{text}" if ns else "0s")


@given(st.integers(0, 10**6), st.text("0123456789", min_size=1, max_size=9))
def test_decimals_are_exact(whole: int, decimals: str) -> None:
    assert parse_duration(f"{whole}.{decimals}s") == whole * SECOND + int(decimals.ljust(9, "0"))


@given(st.text())
def test_no_text_breaks_durations(text: str) -> None:
    with suppress(ValueError):
        assert parse_duration(text) >= 0


# --- text ---------------------------------------------------------------------------------


@each(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b1;31mred\x9bm", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://h\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\x1b[2K\x1b[1Gb", "ab"),
        ("a\u202eb\u202c", "ab"),  # bidi override
        ("a\u2066b\u2069", "ab"),  # bidi isolate
        ("a\u200bb\u200db\ufeff", "abb"),  # zero width
        ("a\u00adb", "ab"),  # soft hyphen
        ("a\x00b\x07c\x7fd\x85e", "abcde"),
        ("a\U000e0041b", "ab"),  # tag characters
        ("a\ud800b", "ab"),  # half a pair
        ("a\tb\nc", "a\tb\nc"),
        ("GPU 已从总线掉线（XID 79）。", "GPU 已从总线掉线（XID 79）。"),
        ("é ü 😀", "é ü 😀"),
    ],
)
def test_what_is_cleaned(text: str, expected: str) -> None:
    assert clean(text) == expected


_NASTY = st.text(st.sampled_from(list("\x1b[]m0;31\x07\\\x9bK\u202e\u200b\ud800\x00中 a\t\n"))) | st.text()


@given(_NASTY)
def test_cleaned_text_cannot_steer_a_terminal(text: str) -> None:
    out = clean(text)
    assert not [c for c in out if c not in "\t\n" and unicodedata.category(c) in ("Cc", "Cs")]
    assert not re.search("[\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u2069\ufeff]", out)
    assert out.encode("utf-8").decode("utf-8") == out
    assert clean(out) == out


@pytest.mark.slow
@given(st.text(st.characters(categories=("L", "N", "P", "S"))))
def test_nothing_that_is_read_is_lost(text: str) -> None:
    assert clean(text) == text


@given(_NASTY | st.text(min_size=200), st.integers(0, 400))
def test_an_excerpt_is_one_line_within_its_limit(text: str, limit: int) -> None:
    line = excerpt(text, limit)
    assert len(line) <= limit
    assert "\n" not in line
    assert line == clean(line)
    if limit >= 400 and len(text) <= 400 and "\n" not in text:
        assert line == clean(text).strip()


@each(
    ("text", "most", "expected"),
    [("0", 18, 0), ("007", 18, 7), ("9" * 18, 18, 10**18 - 1), ("9" * 19, 18, None), ("123", 2, None), ("", 18, None),
     ("-1", 18, None), ("+1", 18, None), ("1 ", 18, None), ("1_0", 18, None), ("²", 18, None), ("٣", 18, None), ("x", 18, None)],
)  # fmt: skip
def test_a_number_that_digits_spell(text: str, most: int, expected: int | None) -> None:
    assert digits(text, most) == expected


@given(
    st.lists(st.integers(0, 10**12), min_size=8, max_size=40), st.integers(20, 200), st.sampled_from([", ", " ", "; "])
)
def test_a_number_is_never_cut(numbers: list[int], limit: int, between: str) -> None:
    line = excerpt(between.join(f"counter_{i % 7} {n}" for i, n in enumerate(numbers)), limit)
    whole = {*map(str, numbers), *map(str, range(7))}
    assert set(re.findall(r"[0-9]+", line)) <= whole


def test_a_long_line_keeps_both_ends() -> None:
    line = excerpt("begin " + "x" * 1000 + " end", 60)
    assert line.startswith("begin ")
    assert line.endswith(" end")
    assert " ... " in line


# --- two languages ------------------------------------------------------------------------


@each(
    ("zh", "expected"),
    [
        ("设备的配置空间 读出全 1", "设备的配置空间读出全 1"),
        ("重启节点； 在日志中", "重启节点；在日志中"),
        ("运行 nvidia-smi 检查", "运行 nvidia-smi 检查"),
        ("掉线 （XID 79）", "掉线（XID 79）"),
        (" 空格 ", "空格"),
    ],
)
def test_a_folded_line_between_han_leaves_no_space(zh: str, expected: str) -> None:
    assert Text.of({"en": " words stay apart ", "zh": zh}) == Text("words stay apart", expected)


@given(st.text("中文 a，。（", max_size=30))
def test_folding_twice_folds_nothing_more(zh: str) -> None:
    once = Text.of({"en": "x", "zh": zh}).zh
    assert Text.of({"en": "x", "zh": once}).zh == once
    assert once.replace(" ", "") == zh.replace(" ", "")


def test_texts_of_other_shapes() -> None:
    assert Text.of(None) == NO_TEXT
    assert not NO_TEXT
    assert Text.of("same") == Text("same", "same")
    assert Text.of({"en": "only"}).in_("zh") == "only"
    assert Text("a", "甲").in_("zh") == "甲"
    assert Text("a", "甲").in_("fr") == "a"
    assert Text("", "甲")


def typed() -> Iterator[str]:
    """What the pages tell people to type, each as it stands."""
    for task in howtos().values():
        yield from (c for c in (*(s.command for s in task.steps), task.verify_command) if c)
    for book in all_runbooks():
        yield from (c for s in book.steps for c in (s.command, s.verify_command) if c)


def test_a_command_that_opens_a_sentence_is_never_changed() -> None:
    """A command with a capital letter does not run where it is copied."""
    english = {"kill", "free", "timeout", "last", "top"}  # words too: what follows them tells
    changed = [w for w in {c.split()[0] for c in typed()} - english if opened(f"{w} on both ends")[0] != w[0]]
    assert changed == []
    assert [opened(c) for c in ("free -h", "watch -n 1 nvidia-smi", "cat /proc/mounts")] == [
        "free -h", "watch -n 1 nvidia-smi", "cat /proc/mounts"
    ]  # fmt: skip
    assert all(
        opened(d)[0] == d[0] for q in quantities() for d in q.do if d.split()[0] in {"ibstat", "mlxlink", "ethtool"}
    )


@given(st.from_regex(r"[a-z]{1,20}( [a-z]{1,8}){0,3}", fullmatch=True))
def test_only_the_first_letter_of_a_sentence_is_ever_another(text: str) -> None:
    assert opened(text)[1:] == text[1:]
    assert opened(text).casefold() == text
