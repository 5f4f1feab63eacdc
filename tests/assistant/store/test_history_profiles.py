"""Continuous profiles in the history: nothing is lost or counted twice, whatever the grain; and they stay small."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.store.location import parse
from assistant.store.profiles import (
    DEPTH,
    FLOOR,
    HOUR,
    KEPT,
    MINUTE,
    RAW,
    S,
    Sampled,
    Stack,
    added,
    keep,
    packed,
    slices,
    targets,
    unpacked,
)
from assistant.store.read import FOREVER, Reader, open_reader
from assistant.store.write import opened
from tests.assistant.store.history_lab import DAY
from tests.assistant.store.test_history_clock import written

T0 = 1_790_000_000 * S // (HOUR * S) * (HOUR * S)  # a whole hour
NAME, HOST = "train.py", "n1"
cells = st.dictionaries(st.integers(1, 2**40), st.integers(1, 2**40), max_size=60)
frame = st.text("abcdé;() ", min_size=1, max_size=6)
stacks = st.dictionaries(st.lists(frame, min_size=1, max_size=5).map(tuple), st.integers(1, 50), min_size=1, max_size=8)


def write(url: str, *sampled: Sampled, name: str = NAME) -> None:
    location = parse(url)
    assert location is not None
    store = opened(location)
    try:
        keep(store, HOST, name, sampled)
    finally:
        store.close()


def reading(url: str) -> Reader:
    location = parse(url)
    assert location is not None
    found = open_reader(location)
    assert found is not None
    return found


def one(at: int, found: dict[Stack, int], pid: int = 7, start: int = 1) -> Sampled:
    return Sampled("boot", pid, start, "python train.py", at, found)


def total(url: str, since: int = 0, until: int = FOREVER) -> Counter[Stack]:
    with reading(url) as r:
        (target,) = targets(r.ask)
        return Counter(added(s.stacks for s in slices(r.ask, target, since, until)))


@given(cells)
def test_what_is_packed_comes_back(table: dict[int, int]) -> None:
    assert unpacked(packed(table)) == table


@given(st.binary(max_size=60))
def test_bytes_of_others_are_refused_or_read(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        unpacked(data)


def test_only_counts_are_packed() -> None:
    with pytest.raises(ValueError, match="0"):
        packed({1: 0})


def test_what_is_kept_comes_back(url: str) -> None:
    a, b = ("MainThread", "main", "step"), ("MainThread", "main", "load; (x)")
    write(url, one(T0, {a: 7, b: 3}), one(T0 + 10 * S, {a: 10}), one(T0 + 10 * S, {b: 1}, pid=8))
    write(url, one(T0 + 20 * S, {a: 2}))
    assert total(url) == {a: 19, b: 4}
    assert total(url, T0 + 10 * S, T0 + 20 * S) == {a: 10, b: 1}  # the raw grain is there
    with reading(url) as r:
        (target,) = targets(r.ask, HOST)
        assert (target.name, target.host, target.processes, target.first_at) == (NAME, HOST, 2, T0)
        assert targets(r.ask, "elsewhere") == []
        assert [(s.pid, s.length) for s in slices(r.ask, target, T0, T0 + 60 * S)] == [
            (7, 10),
            (7, 10),
            (8, 10),
            (7, 10),
        ]


@pytest.mark.slow
@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(0, 12 * 24 * 60), stacks), min_size=1, max_size=12))
def test_no_sample_is_lost_or_counted_twice(
    tmp_path_factory: pytest.TempPathFactory, rows: Sequence[tuple[int, dict[Stack, int]]]
) -> None:
    """Over twelve days: minutes of the last week, hours of the days before."""
    url = f"sqlite:///{tmp_path_factory.mktemp('p')}/history.db"
    wanted: Counter[Stack] = Counter()
    for minute, found in sorted(rows, key=lambda r: r[0]):
        write(url, one(T0 + minute * 60 * S, found))
        wanted.update(found)
    assert total(url) == wanted
    with reading(url) as r:
        (target,) = targets(r.ask)
        split = T0 + rows[0][0] * 60 * S // (HOUR * S) * (HOUR * S)
        parts = [slices(r.ask, target, *w) for w in ((0, split), (split, FOREVER))]
    assert Counter(added(s.stacks for part in parts for s in part)) == wanted


def test_grains_grow_with_age_and_end(url: str) -> None:
    stack = ("MainThread", "main")

    def lengths() -> set[int]:
        with reading(url) as r:
            (target,) = targets(r.ask)
            return {s.length for s in slices(r.ask, target, T0, T0 + HOUR * S)}

    write(url, one(T0, {stack: 5}))
    assert lengths() == {RAW}
    write(url, one(T0 + KEPT[RAW] + 60 * S, {stack: 1}))
    assert lengths() == {MINUTE}
    write(url, one(T0 + KEPT[MINUTE] + HOUR * S, {stack: 1}))
    assert lengths() == {HOUR}
    assert total(url)[stack] == 7
    for n in range(FLOOR):
        write(url, one(T0 + KEPT[HOUR] + n * HOUR * S, {stack: 1}))
    assert lengths() == {HOUR}, "the newest hours stay"
    write(url, one(T0 + KEPT[HOUR] + KEPT[MINUTE] + 2 * FLOOR * HOUR * S, {stack: 1}))
    assert lengths() == set()
    assert total(url)[stack] == FLOOR + 3  # one hour a turn: that of the second stays for now


def hours(url: str) -> list[int]:
    with reading(url) as r:
        (target,) = targets(r.ask)
        return [s.at for s in slices(r.ask, target, 0, FOREVER)]


@pytest.mark.parametrize("ahead", [480 * DAY, -480 * DAY])
def test_a_clock_that_jumps_and_comes_back_takes_no_sample(tmp_path: Path, ahead: int) -> None:
    """It is told by the checks that `watch` writes beside the samples; and the fine grain is there afterwards, too."""
    url = f"sqlite:///{tmp_path}/history.db"
    stack = ("MainThread", "main")
    before = [T0 + n * 10 * MINUTE * S for n in range(FLOOR * 6 + 60)]
    jumped = [before[-1] + ahead + n * 10 * MINUTE * S for n in range(1, 16)]
    after = [before[-1] + n * 10 * MINUTE * S for n in range(16, 20)]
    written(url, before[-20:])
    write(url, *(one(at, {stack: 1}) for at in before))
    for at in [*jumped, *after]:
        written(url, [at])
        write(url, one(at, {stack: 1}, start=2 if at in jumped else 1))
    assert total(url)[stack] == len(before) + len(jumped) + len(after)
    with reading(url) as r:
        (target,) = targets(r.ask)
        assert {s.length for s in slices(r.ask, target, before[-1], before[-1] + MINUTE * S)} <= {RAW, MINUTE}


def test_a_clock_that_stays_wrong_takes_an_hour_a_turn_and_leaves_the_newest(tmp_path: Path) -> None:
    """Whatever else is known of the time: here nothing is."""
    url = f"sqlite:///{tmp_path}/history.db"
    stack, future = ("MainThread", "main"), T0 + 480 * DAY
    write(url, *(one(T0 + n * HOUR * S, {stack: 1}, pid=n % 3) for n in range(FLOOR + 10)))
    left = []
    for turn in range(12):
        write(url, one(future + turn * 10 * S, {stack: 1}, pid=9))
        left.append(sum(at < future for at in hours(url)))
    assert left == [*range(FLOOR + 9, FLOOR - 1, -1), FLOOR, FLOOR]
    write(url, *(one(future + n * HOUR * S, {stack: 1}, pid=9) for n in range(1, 200)))
    assert max(hours(url)) == future + 199 * HOUR * S


def test_a_stack_without_end_is_cut(url: str) -> None:
    write(url, one(T0, {tuple(f"f{n}" for n in range(4 * DEPTH)): 3}))
    assert {len(stack): n for stack, n in total(url).items()} == {DEPTH: 3}


def test_two_targets_keep_trees_of_their_own(url: str) -> None:
    write(url, one(T0, {("a",): 1}))
    write(url, one(T0, {("b",): 2}), name="serve.py")
    with reading(url) as r:
        found = {t.name: added(s.stacks for s in slices(r.ask, t, 0, FOREVER)) for t in targets(r.ask)}
    assert found == {NAME: {("a",): 1}, "serve.py": {("b",): 2}}


def test_a_day_of_a_process_takes_less_than_twenty_megabytes(tmp_path: Path) -> None:
    """A sample a second of 400 stacks, of which each ten seconds see eight: three hours of it, and what they make of a day."""
    url = f"sqlite:///{tmp_path}/history.db"
    known = [tuple(f"function_{(n * k) % 97} (package/module_{k}.py)" for k in range(20)) for n in range(400)]
    for block in range(36):  # five minutes each
        batch = [
            one(T0 + (block * 30 + n) * 10 * S, {known[(block * 30 + n) * 5 + k % 400 & 255]: 2 for k in range(8)})
            for n in range(30)
        ]
        write(url, *batch)
    size = sum(p.stat().st_size for p in Path(tmp_path).iterdir())
    assert size * 8 < 20 << 20, f"{size >> 10} KiB in three hours"


def test_an_empty_batch_writes_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/history.db"
    write(url)
    with reading(url) as r:
        assert targets(r.ask) == []
