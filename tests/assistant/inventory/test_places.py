"""Where a key of a TOML text stands, held against what the standard library's parser finds in the text."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.inventory.places import place, places

BARE = st.text("abcxyz019_-", min_size=1, max_size=6)
KEY = st.one_of(BARE, st.text("ab .\"\\#[]='é\t", max_size=6))
VALUE = st.one_of(
    st.sampled_from([
        "1", "true", '"a # b"', "'[x'", '"""\nhosts.a = 1\n[x]\n"""', "'''\nk = 1\n'''", '""""a""""', "'''a''''",
        '[1, [2, # "]\n 3], "]"]', '{a = 1, "b c" = [1, 2]}', "2026-11-20T10:00:00Z", '"\\"="', '"\\\\"', "[\n]", '""', "''''''",
    ])
)  # fmt: skip


def quoted(key: str) -> str:
    return key if key and key.isascii() and key.replace("-", "").replace("_", "").isalnum() else json.dumps(key)


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, dict[tuple[str, ...], int]]:
    """A TOML text, and the line of every table and key in it."""
    lines: list[str] = []
    found: dict[tuple[str, ...], int] = {}
    at = 1
    tables = draw(st.lists(st.lists(KEY, min_size=1, max_size=2).map(tuple), max_size=4, unique=True))
    for table in [(), *tables]:
        if any(t != table and t[: len(table)] == table for t in tables) and table:
            continue  # a table within another one is opened once
        keys = draw(st.lists(KEY, max_size=3, unique=True))
        keys = [k for k in keys if not any((*table, k) == t[: len(table) + 1] for t in tables)]
        if table:
            text = draw(st.sampled_from(["", "# [no]\n", "\r\n"])) + f" [ {' . '.join(map(quoted, table))} ] # x = 1"
            at += text.count("\n")
            lines.append(text)
            for size in range(1, len(table) + 1):
                found.setdefault(table[:size], at)
            at += 1
        for key in keys:
            text = f"{quoted(key)} = {draw(VALUE)}{draw(st.sampled_from(['', ' # c = [']))}"
            found.setdefault((*table, key), at)
            lines.append(text)
            at += text.count("\n") + 1
    return "\n".join(lines) + draw(st.sampled_from(["", "\n"])), found


@given(texts())
def test_every_key_has_its_line(made: tuple[str, dict[tuple[str, ...], int]]) -> None:
    text, lines = made
    tomllib.loads(text)
    found = places(text)
    assert {key: at[0] for key, at in found.items()} == lines


def keys_of(data: dict[str, Any], prefix: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    out = set()
    for key, value in data.items():
        out.add((*prefix, key))
        if isinstance(value, dict):
            out |= keys_of(value, (*prefix, key))
    return out


@pytest.mark.slow
@given(st.text("[]ab=\"'#.\n ,{}\\1", max_size=60))
def test_any_text_ends_and_valid_text_loses_no_key(text: str) -> None:
    found = places(text)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    assert all(place(found, key) != (1, 1) or key[:1] in found for key in keys_of(data) if key[:1] != ("",))


@pytest.mark.parametrize(
    ("key", "at"),
    [
        (("hosts", "a b", "port"), (3, 3)),
        (("hosts", "a b", "nowhere"), (2, 2)),
        (("gone",), (1, 1)),
        (("list", "x"), (4, 1)),
    ],
)
def test_the_nearest_place(key: tuple[str, ...], at: tuple[int, int]) -> None:
    assert place(places("# first\n [hosts.'a b']\n  port = 1\n[[list]]\n"), key) == at
