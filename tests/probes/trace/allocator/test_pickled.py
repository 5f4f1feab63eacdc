"""Plain data out of pickles: the same as the interpreter's own reader, and nothing for any other pickle."""

from __future__ import annotations

import os
import pickle
import struct
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.errors import InputError
from probes.trace.allocator.pickled import load, looks_like
from tests.cases import each

PROTOCOLS = st.integers(0, 5)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner) | st.tuples(inner, inner, inner, inner),
    max_leaves=30,
)  # fmt: skip


@given(plain, PROTOCOLS)
def test_plain_data_is_what_it_was(value: Any, protocol: int) -> None:
    assert load(pickle.dumps(value, protocol)) == value


@given(st.binary(max_size=300), st.integers(3, 5))
def test_bytes_are_plain_too(value: bytes, protocol: int) -> None:
    assert load(pickle.dumps([value, value], protocol)) == [value, value]


@given(st.integers(1, 2000), PROTOCOLS)
def test_what_recurs_is_one_object(count: int, protocol: int) -> None:
    frames = [{"name": str(i)} for i in range(300)]
    found = load(pickle.dumps([frames[i % 300] for i in range(count)], protocol))
    assert found == [frames[i % 300] for i in range(count)]
    assert all(found[i] is found[i % 300] for i in range(count))


class Evil:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, (f"touch {self.mark}",)


@each("protocol", range(6))
def test_a_call_is_refused_and_nothing_of_it_runs(protocol: int, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    with pytest.raises(InputError, match="not plain data"):
        load(pickle.dumps({"segments": [Evil(mark)]}, protocol))
    assert not mark.exists()


@each("protocol", range(6))
@each("thing", [OrderedDict(a=1), {1, 2}, frozenset({1}), Path("x"), 1 + 2j, {3: 4}, range(3)])
def test_other_objects_are_refused(thing: Any, protocol: int) -> None:
    with pytest.raises(InputError):
        load(pickle.dumps(thing, protocol))


@each(
    "program",
    [
        b"cos\nsystem\n(S'true'\ntR.",
        b"(S'true'\nios\nsystem\n.",
        b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.",
        b"\x80\x02(cbuiltins\nexec\nS'1'\no.",
        b"\x80\x02cos\nsystem\n)\x81.",
        b"\x80\x02}}b.",  # BUILD
        b"\x80\x02\x82\x01.",  # EXT1
        b"P1\n.",
        b"\x80\x02K\x01Q.",
        b"\x80\x05\x97.",
        b"\x80\x04\x8f.",
    ],
)
def test_programs_written_by_hand_are_refused(program: bytes) -> None:
    with pytest.raises(InputError, match="not plain data"):
        load(program)


@each(
    "program",
    [
        b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"x",  # a length of exabytes
        b"\x80\x05\x96" + struct.pack("<Q", 2**40) + b"x",
        b"\x80\x04\x8d" + b"\xff" * 8 + b"x",
        b"\x80\x02X\xff\xff\xff\xffx",
        b"T\xff\xff\xff\xffx.",  # a negative length
        b"\x80\x02\x8b\xff\xff\xff\x7f" + b"x",
        b"I" + b"9" * 100_000 + b"\n.",
        b"L" + b"9" * 300 + b"L\n.",
        b"I" + b"9" * (2 << 20),
        b"\x80\x04\x95" + b"\xff" * 8,
        b"", b".", b"\x80", b"h\x05.", b"j\x05\x00\x00\x00.", b"j\x05", b"(", b"u.", b"}(u", b"e.", b"]K\x01e.", b"K\x01a.",
        b"}K\x01s.", b"}K\x01K\x02s.", b"\x85.", b"S'x.\n.", b"Sx\n.", b"Inf\n.", b"gx\n.", b"\x80\x02K", b"}(K\x01u.",
    ],
)  # fmt: skip
def test_damage_is_an_input_error(program: bytes) -> None:
    with pytest.raises(InputError):
        load(program)


def test_a_far_place_in_the_memo_costs_nothing() -> None:
    assert load(b"\x80\x02]r\xff\xff\xff\xff.") == []


def test_depth_is_no_recursion() -> None:
    deep = load(b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".")
    for _ in range(99_999):
        (deep,) = deep
    assert deep == []


@each("program", [b"]" * 100_000, b"}" * 100_000, b"]\x94" + b"\x94" * 100_000, b"(" * 900_000,
                                     b"]2" + b"(2e" * 300_000, b"K\x01" * 900_000])  # fmt: skip
def test_what_multiplies_is_stopped_at_the_budget(program: bytes) -> None:
    with pytest.raises(InputError, match="more memory"):
        load(b"\x80\x04" + program + b".", memory=1 << 20)


@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_or_an_input_error(data: bytes) -> None:
    with suppress(InputError):
        load(data, memory=1 << 20)


@given(plain, PROTOCOLS, st.data())
def test_a_damaged_byte_never_escapes(value: Any, protocol: int, draw: st.DataObject) -> None:
    data = bytearray(pickle.dumps(value, protocol))
    data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    with suppress(InputError):
        load(bytes(data), memory=1 << 20)


def test_pickles_are_recognised() -> None:
    assert all(looks_like(pickle.dumps({"a": [1]}, p)) for p in range(6))
    assert not any(looks_like(x) for x in (b"", b'{"a": 1}', b"[1]", b"\x80\x09", b"PK\x03\x04"))
