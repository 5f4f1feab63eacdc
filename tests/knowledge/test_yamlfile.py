"""The strict loader: the 1.2 core schema, every fault with its place, and no text that breaks it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from knowledge import yamlfile
from knowledge.errors import FaultsError
from knowledge.yamlfile import Document
from tests.cases import each


def read(text: str) -> Document:
    return yamlfile.parse(text, "t.yaml")


def plain(text: str) -> Any:
    """The data of a text without fault."""
    document = read(text)
    assert document.faults == []
    return document.data


def places(document: Document) -> list[tuple[int, int]]:
    return [(f.line, f.column) for f in document.faults]


# --- the core schema ----------------------------------------------------------------------


@each("word", ["off", "on", "no", "yes", "No", "Yes", "NO", "OFF", "y", "n", "tRUE", "nUll", "1:30",
                                  "1_000", "0b11", "2024-01-01", "2024-01-01T00:00:00Z", "<<", "=", "1e", "e3", ".", "+",
                                  "0x", "0o8", "0xg", "+0x1", "1.2.3", "0o17a"])  # fmt: skip
def test_what_is_text_in_yaml_1_2_stays_text(word: str) -> None:
    assert plain(f"a: {word}") == {"a": word}


@each(
    ("word", "value"),
    [
        ("true", True), ("True", True), ("TRUE", True), ("false", False), ("False", False), ("FALSE", False),
        ("~", None), ("null", None), ("Null", None), ("NULL", None), ("", None),
        ("0o17", 15), ("010", 10), ("0x1F", 31), ("-3", -3), ("+7", 7), ("00", 0),
        ("1e3", 1000.0), ("1.", 1.0), (".5", 0.5), ("-1.5e-1", -0.15), (".inf", math.inf), ("-.INF", -math.inf),
    ],
)  # fmt: skip
def test_what_is_not_text(word: str, value: Any) -> None:
    got = plain(f"a: {word}")["a"]
    assert got == value
    assert type(got) is type(value)


def test_not_a_number() -> None:
    assert math.isnan(plain("a: .nan")["a"])


@each("word", ["true", "~", "010", "1e3", ".nan", "off", ""])
def test_quotes_make_text(word: str) -> None:
    assert plain(f"a: '{word}'") == {"a": word}
    assert plain(f'a: "{word}"') == {"a": word}
    assert plain(f"a: !!str {word}") == {"a": word}


def test_blocks_are_text() -> None:
    assert plain("a: |\n  010\nb: >-\n  true\n") == {"a": "010\n", "b": "true"}


def test_an_empty_text_is_nothing() -> None:
    assert plain("") is None
    assert plain("# only a comment\n") is None


def test_the_first_document_alone_is_read() -> None:
    assert places(read("a: 1\n---\nb: 2\n")) == [(2, 1)]


# --- faults with their place --------------------------------------------------------------


def test_every_key_that_stands_twice() -> None:
    document = read("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\na: 2\n")
    assert places(document) == [(5, 3), (6, 1)]
    assert "first at" in document.faults[0].message or "3:3" in document.faults[0].message


def test_keys_are_text() -> None:
    assert plain("1: a\ntrue: b\n~: c\n") == {"1": "a", "true": "b", "~": "c"}
    for text in ("? [a]\n: b", "? {a: b}\n: c"):
        document = read(f"good: 1\n{text}\n")
        assert places(document) == [(2, 3)], text


@each(
    ("text", "place"),
    [
        ("a: 1\nb: [1, 2\nc: 3\n", (3, 2)),
        ("a: 1\n  b: 2\n", (2, 4)),
        ("a: 'never closed\n", (2, 1)),
        ("a: 1\n\tb: 2\n", (2, 1)),
        ("a: &x 1\nb: *y\n", (2, 4)),
        ("a: 1\nb: !!python/object:os.system x\n", (2, 4)),
        ("a: 1\nb: !custom 5\n", (2, 4)),
        ("a: 1\nb: \x00\n", (2, 4)),
        ("a: 1\nbc: d\x1b[0m\n", (2, 6)),
        ("a: @x\n", (1, 4)),
        ("- 1\na: 2\n", (2, 1)),
    ],
)
def test_a_fault_says_where(text: str, place: tuple[int, int]) -> None:
    document = read(text)
    assert places(document)[:1] == [place], document.faults


def test_the_place_of_every_value_and_key() -> None:
    document = read("# top\nparams:\n  floor: {type: int,\n          default: 3}\nwhen:\n- {a: b}\n- x\n")
    assert document.at(("params",)) == (2, 1)
    assert document.at(("params", "floor")) == (3, 3)
    assert document.at(("params", "floor", "default")) == (4, 11)
    assert document.at(("when", 0, "a")) == (6, 4)
    assert document.at(("when", 1)) == (7, 3)
    assert document.at(("when", 1, "nothing", "below")) == (7, 3), "the nearest parent"
    assert document.at(("nothing",)) == (1, 1) or document.at(("nothing",)) == document.at(())


def test_columns_count_characters() -> None:
    assert places(read('{"好": 1, "好": 2}\n')) == [(1, 10)]
    assert read("中文: {甲: 1, 乙: 2}\n").at(("中文", "乙")) == (1, 12)


def test_faults_come_together() -> None:
    document = read("a: 1\na: 2\nb: !x 1\nc: {d: 1, d: 2}\n")
    assert [line for line, _ in places(document)] == [2, 3, 4]
    with pytest.raises(FaultsError) as caught:
        document.raise_faults()
    assert len(caught.value.faults) == 3


# --- aliases ------------------------------------------------------------------------------


def test_aliases_are_read() -> None:
    assert plain("a: &x [1, 2]\nb: *x\n") == {"a": [1, 2], "b": [1, 2]}


def test_a_bomb_of_aliases_is_a_fault_and_costs_little() -> None:
    levels = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    levels += [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 20)]
    document = read("\n".join(levels))
    assert document.faults
    assert len(document.marks) < 5 * yamlfile.MAX_COPIED


def test_a_merge_key_is_only_a_key() -> None:
    assert plain("a: &x {p: 1}\nb: {<<: *x}\n") == {"a": {"p": 1}, "b": {"<<": {"p": 1}}}


@pytest.mark.parametrize(
    ("text", "column"), [("a: &x [*x]\n", 8), ("a: &x {b: *x}\n", 11), ("&x [1, &y [*x, *y]]\n", 12)]
)
def test_a_value_that_holds_itself_is_a_fault(text: str, column: int) -> None:
    document = read(text)
    assert places(document) == [(1, column)]
    assert document.data is None


# --- nothing breaks it --------------------------------------------------------------------


@each("text", ["[" * 10_000, "[" * 10_000 + "]" * 10_000, "{a: " * 10_000, "- " * 10_000 + "x",
                                  "\n".join(" " * i + "a:" for i in range(3_000)), "? " * 10_000, "!" * 10_000,
                                  "&a " * 5_000])  # fmt: skip
def test_deep_nesting_is_a_fault(text: str) -> None:
    assert read(text).faults


def test_a_rule_s_depth_is_read() -> None:
    depth = yamlfile.MAX_DEPTH - 1
    value = plain("[" * depth + "]" * depth)
    for _ in range(depth - 1):
        (value,) = value
    assert value == []


_PIECES = st.sampled_from(
    [*"[]{}:,-?&*!|>'\"%@`#~\t \n\r\x00\x1b\ufeff\u2028\ud800", "a", "1", "a: ", "- ", "&x ", "*x", "---\n", "...\n",
     "%YAML 1.1\n", "!!str ", "<<: ", "\n  ", ": |\n", "中"]
)  # fmt: skip


@given(st.text() | st.lists(_PIECES, max_size=40).map("".join))
@example("\ud800")
@example("a: \U0001f600\n")
@example("%TAG ! tag:x,2000:\n---\n!a b\n")
@example("a: " + "9" * 5000)
@example("0x")
@example("a: &\u2028x 1")
def test_no_text_raises(text: str) -> None:
    document = read(text)
    lines = text.count("\n") + text.count("\r") + text.count("\x85") + text.count("\u2028") + text.count("\u2029") + 2
    for fault in document.faults:
        assert 1 <= fault.line <= lines
        assert fault.column >= 1
        assert fault.message


@given(st.binary(max_size=80))
def test_no_file_raises(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(raw)
    assert isinstance(yamlfile.load(path), Document)


# JSON writes what lies beyond the basic plane as two escapes, which are two characters to YAML.
_WORDS = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=40)
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _WORDS
)
_TREES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=3), max_leaves=12
)


@pytest.mark.slow
@given(_TREES)
def test_json_is_read_as_what_it_says(tree: Any) -> None:
    assert plain(json.dumps(tree)) == tree


# --- files --------------------------------------------------------------------------------


def test_a_byte_order_mark_is_no_content(tmp_path: Path) -> None:
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\nb: !x 1\n")
    document = yamlfile.load(path)
    assert places(document) == [(2, 4)]
    assert document.data["a"] == 1


def test_bytes_that_are_not_utf_8_have_a_place(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes("a: 1\nname: M\xfcller\n".encode("latin-1"))
    document = yamlfile.load(path)
    assert places(document) == [(2, 8)]
    assert "0xfc" in document.faults[0].message
    assert document.data is None


@pytest.mark.parametrize("name", ["absent.yaml", "folder", "with\x00nul"])
def test_what_cannot_be_read_is_a_fault(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    document = yamlfile.load(tmp_path / name)
    assert len(document.faults) == 1
    assert "cannot be read" in document.faults[0].message


def test_utf_16_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "wide.yaml"
    path.write_bytes("a: 1".encode("utf-16"))
    assert yamlfile.load(path).faults
