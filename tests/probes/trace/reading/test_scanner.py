"""Laws of the two decoders: the compiled scanner gives what msgspec gives, whatever the bytes and the portions."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.trace.columns import ARGS, CATEGORIES, Group, Strings, Wanted, dtype_of, wanted
from probes.trace.reading import scanner
from probes.trace.reading.decode import Decoder
from probes.trace.reading.scanner import Scanner
from probes.trace.reading.tally import LIMITS, TOO_MANY, Limits
from tests.cases import each
from tests.components import cannot

ALL: Wanted = {g: frozenset(ARGS) for g in Group}
SOME: Wanted = wanted(gpu="stream correlation occupancy grid", op="dims external", mark="")


@pytest.fixture(scope="module")
def built() -> Any:
    """The library; required where a C compiler is required."""
    found = scanner.library()
    if found is None:
        cannot("cc", "the compiled scanner was not built from this source")
    return found


def result(reader: Any, text: bytes, cuts: list[int]) -> dict[str, Any]:
    """All that a decoder says about `text`, with texts instead of their numbers."""
    strings = reader._strings
    found: dict[Group, dict[str, list[Any]]] = {}
    edges = [0, *sorted(c % (len(text) + 1) for c in cuts), len(text)]
    for i, (a, b) in enumerate(pairwise(edges)):
        rest = reader.done
        for group, columns in reader.feed(text[a:b], last=i == len(edges) - 2).items():
            into = found.setdefault(group, {})
            for name, column in columns.items():
                assert column.dtype == dtype_of(name)
                values = column.tolist()
                is_text = dtype_of(name).__name__ == "int32"
                into.setdefault(name, []).extend(strings[v] if is_text and v >= 0 else repr(v) for v in values)
        if rest:
            reader.rest += text[a:b]
    return {"rows": found, "tally": reader.tally, "meta": reader.meta, "done": reader.done, "rest": reader.rest}


def alike(lib: Any, text: bytes, cuts: list[int], asked: Wanted = ALL, limits: Limits = LIMITS) -> dict[str, Any]:
    plain = result(Decoder(asked, Strings(), limits), text, [])
    assert result(Decoder(asked, Strings(), limits), text, cuts) == plain
    assert result(Scanner(asked, Strings(), lib, 0, limits), text, cuts) == plain
    assert result(Scanner(asked, Strings(), lib, 1 << 30, limits), text, cuts) == plain
    return plain


numbers = st.one_of(
    st.integers(-(2**66), 2**66),
    st.integers(0, 10**9).map(lambda n: n / 1000),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text('0123456789.-+eE "', max_size=12),
    st.sampled_from(
        ["1e3", "-0.0005", "123456.7895", "1e-400", "1e400", "18446744073709551615", "9" * 30, "0" * 40 + "1.5"]
    ),
)
words = st.one_of(
    st.text(max_size=8), st.sampled_from(["", 'a"b', "\\", "{", "}, {", "]", "\n", "\u0130", "\ud800", "\x00"])
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, words),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
keys = st.sampled_from([key for arg in ARGS.values() for key in arg.keys] + ["name", "labels", "other", "a\nb"])
arguments = st.dictionaries(keys, values, max_size=6)
events = st.fixed_dictionaries(
    {},
    optional={
        "ph": st.sampled_from(["X", "X", "X", "M", "s", "f", "i", None, 1]),
        "cat": st.sampled_from([*CATEGORIES, "ac2g", "", None, 7]),
        "name": st.one_of(words, st.sampled_from(["k", "process_name", "thread_name", "[memory]", None, 3])),
        "pid": st.one_of(st.integers(-3, 2**40), words, st.none()),
        "tid": st.one_of(st.integers(-3, 2**40), words),
        "ts": numbers,
        "dur": st.one_of(numbers, st.none()),
        "args": arguments | values,
        "id": values,
    },
)
cuts = st.lists(st.integers(0, 10**6), max_size=4)


def shuffled(event: dict[str, Any], order: list[int]) -> dict[str, Any]:
    items = list(event.items())
    return dict(sorted(items, key=lambda kv: order[items.index(kv) % len(order)]))


@st.composite
def documents(draw: Callable[..., Any]) -> bytes:
    """What stands behind the opening bracket: events and other things, pretty or compact, and a tail."""
    order = draw(st.lists(st.integers(0, 9), min_size=1, max_size=8))
    strange = st.none() | st.integers() | st.lists(values, max_size=2)
    things = draw(st.lists(events.map(lambda e: shuffled(e, order)) | strange, max_size=6))
    style = draw(st.sampled_from([{}, {"indent": 2}, {"separators": (",", ":")}, {"indent": "\t"}]))
    text: str = json.dumps(things, ensure_ascii=draw(st.booleans()), **style)
    tail: bytes = draw(st.sampled_from([b"", b', "a": [{}, {}]}', b"\n}"]))
    return text[1:].encode("utf-8", "surrogatepass") + tail


def repeats_a_key(text: bytes) -> bool:
    """Of a key that stands twice JSON says nothing; msgspec takes the last, the others stop at the first that settles."""
    return any(
        max(re.findall(rb'"ph"|"cat"', part).count(k) for k in (b'"ph"', b'"cat"')) > 1
        for part in re.split(rb"\}[\x00-\x20]*,[\x00-\x20]*\{", text)
    )


@given(documents(), cuts, st.sampled_from([ALL, SOME, {}]))
def test_well_formed(built: Any, text: bytes, cuts: list[int], asked: Wanted) -> None:
    assert alike(built, text, cuts, asked)["done"]


@pytest.mark.slow
@given(documents(), cuts, st.data())
def test_damaged(built: Any, text: bytes, cuts: list[int], data: st.DataObject) -> None:
    """Bytes flipped, put in, taken out and doubled."""
    for _ in range(data.draw(st.integers(1, 4))):
        at, size = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 12))
        new = data.draw(
            st.sampled_from(
                [
                    b"",
                    b'"',
                    b"{",
                    b"}",
                    b"[",
                    b"]",
                    b",",
                    b":",
                    b"\\",
                    b"\x00",
                    b"\xff",
                    b"NaN",
                    b"}, {",
                    text[at : at + 60],
                ]
            )
        )
        text = text[:at] + new + text[at + (size if new != b'"' else 0) :]
    if not repeats_a_key(text):
        alike(built, text, cuts)


@pytest.mark.slow
@given(st.binary(max_size=200), cuts)
def test_no_trace_at_all(built: Any, text: bytes, cuts: list[int]) -> None:
    alike(built, text, cuts)


EVENT = b'{"ph": "X", "cat": "kernel", "name": "k%d", "pid": 0, "tid": "stream 7", "ts": %d.125, "dur": 2.5, "args": {"stream": 7, "correlation": %d}}'


def lines(count: int) -> list[bytes]:
    return [EVENT % (i % 7, 1000 + 10 * i, i) for i in range(count)]


@pytest.mark.slow
def test_truncated_at_every_byte(built: Any) -> None:
    event = b'{"ph": "X", "cat": "kernel", "name": "k", "ts": 1.125, "dur": 2, "args": {"stream": 7}}'
    text = event + b",\n" + event + b'\n], "traceName": "t"}'
    for end in range(len(text)):
        whole = text[:end].count(b"}}")
        found = alike(built, text[:end], [end // 2])
        assert found["tally"].events == whole
        assert found["tally"].skipped == 0


@pytest.mark.slow
@each("fault", [b'"', b"}", b"{", b"]", b"\\", b":", b'"x', b"{{{{", b'"name": "a'])
def test_a_fault_costs_little(built: Any, fault: bytes) -> None:
    """At most the three events around the fault, or, where it looks like the list's end, what follows."""
    text = b",\n".join(lines(12)) + b"]}"
    for at in range(700, 700 + len(EVENT), 7):
        found = alike(built, text[:at] + fault + text[at:], [400])
        if fault == b"]" and found["tally"].skipped == 0:
            continue
        assert found["tally"].events >= 9


@pytest.mark.slow
def test_long_events_and_portions(built: Any) -> None:
    """Longer than a portion of the scanner; names that span many; wide white space."""
    long = b'{"ph": "X", "cat": "cpu_op", "name": "%s", "ts": 1, "args": {"Input Dims": [%s1]}}' % (
        b"x" * 600_000,
        b"[2, 3]," * 100_000,
    )
    text = long + b"  " * 300_000 + b"," + EVENT % (1, 2, 3) + b"]"
    found = alike(built, text, [1, 400_000, 700_000, 1_300_000])
    assert found["tally"].events == 2
    assert len(found["rows"][Group.OP]["dims"][0]) == 700_003


def test_an_event_that_never_ends(built: Any) -> None:
    text = (
        b'{"ph": "X", "args": {"a": "'
        + b", ".join(lines(60)).replace(b'"', b"'")
        + b" ,"
        + b", ".join(lines(60))
        + b"]}"
    )
    assert alike(built, text, [10, 2999, 3000, 5000], limits=LIMITS._replace(event=3000))["tally"].events >= 50


def test_too_many_texts(built: Any) -> None:
    names = [b'{"ph": "X", "cat": "kernel", "name": "name %d", "ts": 1, "pid": 1}' % i for i in range(40)]
    found = alike(built, b",".join(names) + b"]", [100, 1500], limits=LIMITS._replace(texts=2000))
    assert found["tally"].texts_lost > 20
    assert found["rows"][Group.GPU]["name"][-1] == TOO_MANY


@pytest.mark.slow
def test_deep_nesting(built: Any) -> None:
    """Deeper than any recursion; open brackets that are never closed."""
    deep = EVENT % (1, 2, 3)
    deep = deep[:-1] + b', "deep": ' + b'[{"a":' * 50_000 + b"1" + b"}]" * 50_000 + b"}"
    found = alike(built, deep + b"," + EVENT % (1, 2, 3) + b"]", [1000])
    assert (found["tally"].events, found["done"]) == (2, True)
    alike(built, b'{"a": ' * 20_000, [9])
    alike(built, b'},{"a":[' * 5_000, [])


@pytest.mark.slow
def test_numbers_are_exact(built: Any) -> None:
    times = {b"1666149715033200": 1666149715033200000, b"6057777712345678.9995": None, b"1.0005": 1001, b"-1.0005": -1001,
             b'"12.5"': 12500, b"1e3": 1_000_000, b"0.0004": 0, b"1.5e-3": 2, b"5.": 5000, b".5": 500, b"1e30": None, b"NaN": None,
             b"4611686018427387.903": 4611686018427387903, b"4611686018427387.904": None, b"1_0": None, b'""': None}  # fmt: skip
    for raw, expected in times.items():
        text = b'{"ph": "X", "cat": "kernel", "name": "k", "ts": %s}]' % raw
        rows = alike(built, text, [])["rows"]
        assert (rows[Group.GPU]["start"] if rows else None) == (None if expected is None else [repr(expected)]), raw


@pytest.mark.process
def test_the_variable_forces_msgspec(built: Any) -> None:
    code = "from probes.trace.reading.scanner import decoder; from probes.trace.columns import Strings; print(type(decoder({}, Strings())).__name__)"
    for value, name in (("python", "Decoder"), ("", "Scanner")):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {scanner.VARIABLE: value},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == name


@pytest.mark.process
def test_a_library_of_another_source_is_not_used(require: Callable[[str], str], tmp_path: Path) -> None:
    compiler = require("cc")
    old = tmp_path / "old.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", '-DSOURCE_HASH="0"', "-o", str(old), str(scanner.SOURCE), "-lm"], check=True
    )
    assert scanner.library(old) is None
    assert scanner.library(tmp_path / "none.so") is None
    shutil.copy(__file__, tmp_path / "text.so")
    assert scanner.library(tmp_path / "text.so") is None
