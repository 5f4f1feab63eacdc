"""py-spy's chrometrace: recorded ones, damaged ones, and made ones of any shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.capture.stacks.chrometrace import Trace, read

RECORDED = Path(__file__).parents[3] / "captures" / "stacks"
FILES = sorted(RECORDED.glob("*.json"))

Sample = tuple[int, list[str]]  # us until the next one, functions


def event(ph: str, name: str, ts: int, file: str = "/home/ana/train.py", line: int = 1, tid: int = 7) -> dict[str, Any]:
    return {
        "args": {"filename": file, "line": line},
        "cat": "py-spy",
        "name": name,
        "ph": ph,
        "pid": 1,
        "tid": tid,
        "ts": ts,
    }


def written(samples: list[Sample], label: str = "thread (42): MainThread", tid: int = 7) -> list[dict[str, Any]]:
    """What py-spy writes of a thread's samples: what begins and ends between two of them."""
    events: list[dict[str, Any]] = []
    before: list[str] = []
    now = 1000
    for gap, names in samples:
        stack = [label, *names]
        same = next(
            (i for i, (a, b) in enumerate(zip(before, stack, strict=False)) if a != b), min(len(before), len(stack))
        )
        events += [event("E", n, now, "" if n == label else "/t.py", tid=tid) for n in reversed(before[same:])]
        events += [event("B", n, now, "" if n == label else "/t.py", tid=tid) for n in stack[same:]]
        before = stack
        now += gap
    return events + [event("E", n, now, "" if n == label else "/t.py", tid=tid) for n in reversed(before)]


def names(trace: Trace, stack: int) -> list[str]:
    return [trace.frames[f][0] for f in trace.stacks[stack]]


SAMPLES = st.lists(
    st.tuples(st.integers(1, 50_000), st.lists(st.sampled_from("abcde"), max_size=6)), min_size=1, max_size=30
)


@given(SAMPLES)
def test_what_was_sampled_is_read_back(samples: list[Sample]) -> None:
    trace = read(json.dumps(written(samples)).encode())
    spans = trace.threads["42"].spans
    assert sum(ns for _, ns, _ in spans) == sum(gap for gap, _ in samples)
    at = 1000
    for gap, stack in samples:  # each instant has the stack that was sampled last
        here = [s for b, ns, s in spans if b <= at < b + ns]
        assert [names(trace, s) for s in here] == [stack]
        at += gap
    assert not trace.cut
    assert trace.torn == 0


@given(SAMPLES, st.data())
def test_a_file_that_ends_early_loses_only_its_end(samples: list[Sample], data: st.DataObject) -> None:
    whole = json.dumps(written(samples)).encode()
    short = whole[: data.draw(st.integers(0, len(whole) - 1))]
    full, trace = read(whole), read(short, cut=True)
    assert trace.cut
    kept = {label: t.spans for label, t in trace.threads.items()}
    for spans in kept.values():
        told = [(b, ns, names(full, s)) for b, ns, s in full.threads["42"].spans]
        for b, ns, s in spans[:-1]:
            assert (b, ns, names(trace, s)) in told


@given(st.binary(max_size=300))
def test_any_bytes_are_read(data: bytes) -> None:
    assert read(data).last >= 0


@given(st.recursive(st.none() | st.integers() | st.text(max_size=5) | st.sampled_from(["B", "E"]),
                    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["ph", "ts", "name", "args", "tid", "filename"]), inner, max_size=5)))  # fmt: skip
def test_any_json_is_read(data: Any) -> None:
    read(json.dumps(data).encode())


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_recorded_files_read_whole(path: Path) -> None:
    trace = read(path.read_bytes())
    assert not trace.cut
    for thread in trace.threads.values():
        assert thread.spans
        for (a, ns, _), (b, _, _) in zip(thread.spans, thread.spans[1:], strict=False):
            assert a + ns <= b


def test_the_threads_of_a_recorded_job_of_python_39_have_addresses() -> None:
    trace = read((RECORDED / "python39_two_threads.json").read_bytes())
    assert {t.name for t in trace.threads.values()} == {"MainThread", "helper: thread (x)"}
    assert all(label.startswith("0x") for label in trace.threads)


def test_a_recorded_job_shows_its_planted_function() -> None:
    trace = read((RECORDED / "train_data_bound.json").read_bytes())
    main = next(t for t in trace.threads.values() if t.name == "MainThread")
    spent = sum(ns for _, ns, s in main.spans if "decode_slowly" in names(trace, s))
    assert spent * 2 > sum(ns for _, ns, _ in main.spans)


def test_damage_in_the_middle_keeps_what_is_before_it() -> None:
    data = (RECORDED / "train_data_bound.json").read_bytes()
    trace = read(data[:20_000] + b"\0garbage" + data[20_000:])
    assert trace.cut
    assert any(t.spans for t in trace.threads.values())


def test_a_stack_with_a_line_that_no_file_has_is_torn() -> None:
    events = written([(10, ["a"]), (10, ["b"]), (10, ["a"])])
    for e in events:
        if e["name"] == "b":
            e["args"]["line"] = 2_000_000_000
    trace = read(json.dumps(events).encode())
    assert trace.torn == 1
    assert [names(trace, s) for _, _, s in trace.threads["42"].spans] == [["a"], ["a"]]


def test_a_stack_on_another_root_than_the_threads_own_is_torn() -> None:
    rows: list[Sample] = [(10, ["<module>", "train", n]) for n in "ab" * 30]
    rows[17] = (10, ["leaf", "deeper"])
    trace = read(json.dumps(written(rows)).encode())
    assert trace.torn == 1
    assert {names(trace, s)[0] for _, _, s in trace.threads["42"].spans} == {"<module>"}


def test_roots_may_differ_where_c_code_calls_python() -> None:
    rows: list[Sample] = [(10, [n]) for n in ("hook", "other") * 20]
    assert read(json.dumps(written(rows)).encode()).torn == 0


def test_a_thread_that_takes_the_place_of_another_is_another() -> None:
    events = written([(10, ["a"])], "thread (42): one") + [
        {**e, "ts": e["ts"] + 10} for e in written([(30, ["b"])], "thread (43): two")
    ]
    trace = read(json.dumps(events).encode())
    assert {k: (t.name, [ns for _, ns, _ in t.spans]) for k, t in trace.threads.items()} == {
        "42": ("one", [10]),
        "43": ("two", [30]),
    }


def test_more_than_is_kept_is_cut() -> None:
    rows: list[Sample] = [(10, [n]) for n in "ab" * 50]
    trace = read(json.dumps(written(rows)).encode(), most=20)
    assert trace.cut
    assert len(trace.threads["42"].spans) <= 20
