"""Folded stacks and speedscope files: there and back, from other tools, and what is neither."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.errors import InputError
from knowledge.text import clean
from probes.trace.reading.reader import Trace
from probes.trace.trees.calltree import CallTree, Kind, Time
from probes.trace.trees.folded import escaped, folded, from_folded, unescaped
from probes.trace.trees.profiles import read_profile
from probes.trace.trees.speedscope import SCHEMA, from_speedscope, speedscope
from probes.trace.trees.stacks import tree
from tests.probes.trace.stack_cases import traces

# py-spy record --format raw
PY_SPY = """\
process 7:"python train.py";<module> (train.py:90);main (train.py:61);step (train.py:42) 12
process 7:"python train.py";<module> (train.py:90);main (train.py:61) 3
process 7:"python train.py";_bootstrap (threading.py:973);read (data.py:8) 5
"""


def stacks_of(found: CallTree, time: Time) -> Counter[str]:
    """Folded lines, those of one path together."""
    lines: Counter[str] = Counter()
    for line in folded(found, time):
        path, _, value = line.rpartition(" ")
        lines[path] += int(value)
    return lines


@given(traces())
def test_folded_there_and_back(trace: Trace) -> None:
    found = tree(trace)
    for time in ("gpu", "cpu"):
        lines = list(folded(found, time))
        assert all("\n" not in line and line.count(" ") >= 1 for line in lines)
        if lines:
            assert stacks_of(from_folded(lines), "cpu") == stacks_of(found, time)


@given(traces())
def test_speedscope_there_and_back(trace: Trace) -> None:
    found = tree(trace)
    document = speedscope(found, "t")
    valid(document)
    again = from_speedscope(json.dumps(document).encode())
    for time in ("gpu", "cpu"):
        assert stacks_of(again, time) == stacks_of(found, time)


def valid(document: dict[str, Any]) -> None:
    """What https://www.speedscope.app/file-format-schema.json requires of sampled profiles."""
    assert document["$schema"] == SCHEMA
    frames = document["shared"]["frames"]
    assert all(isinstance(f["name"], str) and isinstance(f.get("line", 1), int) for f in frames)
    assert document["profiles"]
    for profile in document["profiles"]:
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}
        assert profile["type"] == "sampled"
        assert profile["unit"] in {"none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"}
        assert len(profile["samples"]) == len(profile["weights"])
        assert sum(profile["weights"]) == profile["endValue"] - profile["startValue"]
        assert all(0 <= i < len(frames) for sample in profile["samples"] for i in sample)


@given(st.text(max_size=40))
def test_escaping_there_and_back(text: str) -> None:
    shown = escaped(text)
    assert ";" not in shown
    assert clean(shown) == shown
    assert len(shown.splitlines()) == 1
    assert escaped(unescaped(shown)) == shown


def test_semicolons_and_percent_signs_survive() -> None:
    assert unescaped(escaped("a;b%3B%25 100%")) == "a;b%3B%25 100%"


def test_py_spy_raw_becomes_frames_like_the_profilers(tmp_path: Path) -> None:
    path = tmp_path / "spy.txt"
    path.write_text(PY_SPY)
    found = read_profile(str(path))
    assert found.unit == "samples"
    assert int(found.cpu_ns.sum()) == 20
    step = found.names.index("train.py(42): step")
    node = found.frame.tolist().index(step)
    assert Kind(found.kind[node]) is Kind.PYTHON
    assert found.path(node) == [
        'process 7:"python train.py"',
        "train.py(90): <module>",
        "train.py(61): main",
        "train.py(42): step",
    ]


def test_lines_that_are_none_are_told(tmp_path: Path) -> None:
    path = tmp_path / "spy.txt.gz"
    path.write_bytes(gzip.compress(b"# a comment\n\na;b 3\nno number here\na;b -4\n7\n"))
    found = read_profile(str(path))
    assert int(found.cpu_ns.sum()) == 3
    assert "3 lines" in found.notes[0].en


def py_spy_speedscope() -> dict[str, Any]:
    """As py-spy writes it: a sampled profile a thread, in seconds."""
    frames = [
        {"name": "main", "file": "train.py", "line": 61, "col": None},
        {"name": "read", "file": "data.py", "line": 8},
    ]
    base = {"type": "sampled", "unit": "seconds", "startValue": 0.0, "endValue": 1.0}
    return {"$schema": SCHEMA, "shared": {"frames": frames}, "exporter": "py-spy@0.3.14", "name": "py-spy", "profiles": [
        base | {"name": "Thread 1", "samples": [[0], [0, 1]], "weights": [0.25, 0.01]},
        base | {"name": "Thread 2", "samples": [[1]], "weights": [0.5]},
    ]}  # fmt: skip


def test_py_spy_speedscope_has_a_tree_for_each_thread() -> None:
    found = from_speedscope(json.dumps(py_spy_speedscope()).encode())
    assert stacks_of(found, "cpu") == {
        "Thread 1;train.py(61): main": 250_000_000,
        "Thread 1;train.py(61): main;data.py(8): read": 10_000_000,
        "Thread 2;data.py(8): read": 500_000_000,
    }


def evented(events: list[tuple[str, int, float]]) -> bytes:
    profile = {"type": "evented", "name": "p", "unit": "milliseconds", "startValue": 0, "endValue": 9,
               "events": [{"type": t, "frame": f, "at": at} for t, f, at in events]}  # fmt: skip
    return json.dumps({"shared": {"frames": [{"name": "a"}, {"name": "b"}]}, "profiles": [profile]}).encode()


def test_evented_profiles_charge_the_innermost_frame() -> None:
    found = from_speedscope(evented([("O", 0, 0), ("O", 1, 2), ("C", 1, 5), ("C", 0, 9)]))
    assert stacks_of(found, "cpu") == {"a": 6_000_000, "a;b": 3_000_000}


@pytest.mark.parametrize(
    "data",
    [
        b"{}", b"{", b'{"shared": {"frames": []}, "profiles": [{"type": "other"}]}', b"[" * 100_000,
        evented([("O", 0, 0), ("C", 1, 2)]), evented([("O", 0, 5), ("C", 0, 2)]), evented([("O", 7, 0), ("C", 7, 2)]),
        evented([("O", 0, 0), ("C", 0, 1e300)]),
    ],
)  # fmt: skip
def test_what_is_no_speedscope_file_is_refused(data: bytes) -> None:
    with pytest.raises(InputError):
        from_speedscope(data)


@pytest.mark.parametrize("data", [b"", b"hello world\n", b"\x1f\x8b\x08half", b"\x00\xff\xfe"])
def test_what_is_no_profile_is_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises(InputError):
        read_profile(str(path))
    with pytest.raises(InputError):
        read_profile(str(tmp_path / "absent"))
