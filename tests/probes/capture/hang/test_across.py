"""Ranks compared over the same window: synthetic stacks for the laws, real ranks over gloo for the rest."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.capture.hang import across
from probes.capture.hang.standing import Member
from probes.capture.readings import samples
from probes.capture.stacks import stacks
from probes.live_host import LiveHost
from tests.live_jobs import Job, Ranks, torch_python

LIB = "/env/lib/python3.11/site-packages/torch/distributed/"
FRAMES = [
    ["main", "/work/train.py", 90], ["average", "/work/train.py", 60], ["wrapper", LIB + "c10d_logger.py", 83],
    ["all_reduce", LIB + "distributed_c10d.py", 3252], ["load", "/work/data.py", 10], ["decode_slowly", "/work/data.py", 30],
]  # fmt: skip
WAIT, LOAD, DECODE, STEP = [0, 1, 2, 3], [0, 4], [0, 4, 5], [0]
PERIOD = 10_000_000


def document(*ranks: Sequence[list[int]], offset: int = 0) -> dict[str, Any]:
    """One stack each 10 ms for each rank, on the main thread."""
    out: dict[str, Any] = {"stacks": {}, "targets": []}
    for rank, held in enumerate(ranks):
        pid = 100 + rank
        kinds: list[list[int]] = [WAIT, LOAD, DECODE, STEP]
        samples_ = [[offset + i * PERIOD, PERIOD, kinds.index(s)] for i, s in enumerate(held)]
        out["stacks"][str(pid)] = {
            "tool": "py-spy", "rate": 100, "began": offset, "ended": offset + len(held) * PERIOD, "error": "", "frames": FRAMES,
            "stacks": kinds, "threads": {str(pid): {"name": "MainThread", "samples": samples_}},
        }  # fmt: skip
        out["targets"].append({"process": {"pid": pid}, "rank": rank})
    return out


def members(count: int) -> list[Member]:
    return [Member(100 + i, i, i, count, "job") for i in range(count)]


def test_the_rank_that_the_others_wait_for() -> None:
    fast, slow = [WAIT] * 6 + [LOAD] * 4, [DECODE] * 6 + [LOAD] * 3 + [WAIT]
    found = across.compare(document(fast * 10, slow * 10, fast * 10), members(3))
    assert found is not None
    assert (found.rank, found.pid) == (1, 101)
    assert 55 < found.share < 65
    assert found.function == "decode_slowly (data.py:30)"
    assert found.waiting == "all_reduce, called by average (train.py:60)"


def test_a_balanced_job_gives_nothing() -> None:
    turn = [WAIT] * 3 + [LOAD] * 4
    assert across.compare(document(turn * 20, turn * 20, turn * 20), members(3)) is None


def test_ranks_that_are_late_in_turn_give_nothing() -> None:
    one, other = [WAIT] * 5 + [LOAD] * 5, [LOAD] * 5 + [WAIT] * 5
    assert across.compare(document(one * 20, other * 20), members(2)) is None
    assert across.compare(document(one * 10 + other * 10, other * 10 + one * 10), members(2)) is None


def test_a_window_that_holds_one_step_still_tells() -> None:
    found = across.compare(document([WAIT] * 60 + [LOAD] * 40, [DECODE] * 60 + [LOAD] * 40), members(2))
    assert found is not None
    assert found.rank == 1


stacks_ = st.lists(st.sampled_from([WAIT, LOAD, DECODE, STEP]), min_size=40, max_size=40)


@given(st.lists(stacks_, min_size=2, max_size=4), st.integers(0, 99))
def test_order_and_names_of_ranks_do_not_matter(held: list[list[list[int]]], seed: int) -> None:
    found = across.compare(document(*held), members(len(held)))
    turned = members(len(held))
    random.Random(seed).shuffle(turned)
    assert across.compare(document(*held), turned) == found
    swapped = across.compare(document(*reversed(held)), members(len(held)))
    shares = [] if found is None or swapped is None else [round(found.share, 6), round(swapped.share, 6)]
    assert len(set(shares)) <= 1
    if found is not None and swapped is not None:
        assert swapped.rank == len(held) - 1 - found.rank


@given(st.lists(stacks_, min_size=2, max_size=4), st.integers(0, 10**15))
def test_only_times_relative_to_each_other_count(held: list[list[list[int]]], offset: int) -> None:
    assert across.compare(document(*held, offset=offset), members(len(held))) == across.compare(
        document(*held), members(len(held))
    )


@given(st.lists(stacks_, min_size=2, max_size=4))
def test_shares_are_percent(held: list[list[list[int]]]) -> None:
    found = across.compare(document(*held), members(len(held)))
    assert found is None or across.LEAST_SHARE <= found.share <= 100


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**70) | st.text(max_size=6), lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=6), x, max_size=3)
)  # fmt: skip


@given(st.sampled_from(["began", "ended", "frames", "stacks", "threads", "rate"]), anything, anything)
def test_hostile_documents_never_raise(name: str, value: Any, threads: Any) -> None:
    turn = [WAIT] * 3 + [LOAD] * 4
    raw = document(turn, turn)
    raw["stacks"]["100"][name] = value
    raw["threads"] = threads
    across.compare(raw, members(2))
    across.compare({"stacks": value, "targets": threads}, members(2))


# --- real ranks ----------------------------------------------------------------------------------------


def captured(jobs: Sequence[Job]) -> dict[str, Any]:
    """Stacks and threads of two seconds, as a capture keeps them."""
    threads = samples.Recording(LiveHost(), [j.pid for j in jobs], gpus=False)
    threads.start()
    with stacks.Recording([j.pid for j in jobs], 50, 2.0) as recording:
        time.sleep(2)
    return {"stacks": {str(p): d for p, d in recording.documents.items()}, "threads": threads.stop().threads,
            "targets": [{"process": {"pid": j.pid}, "rank": i} for i, j in enumerate(jobs)]}  # fmt: skip


def of(jobs: Sequence[Job]) -> list[Member]:
    return [Member(j.pid, i, i, len(jobs), "job") for i, j in enumerate(jobs)]


@pytest.mark.machine
def test_a_slow_rank_over_gloo_is_named_with_its_function() -> None:
    with Ranks("--slow-rank", "1", "--slow", "0.03") as job:
        found = across.compare(captured(job.jobs), of(job.jobs))
        assert found is not None
        assert found.rank == 1
        assert found.function.startswith("augment_slowly (ranks.py:")
        assert found.waiting.startswith("all_reduce, called by average_gradients (ranks.py:")


@pytest.mark.machine
@pytest.mark.parametrize("slow", [True, False])
def test_ranks_that_wait_in_backward(slow: bool) -> None:
    with ExitStack() as stack:
        jobs = [
            Job("ddp.py", *(["--slow-rank", "0"] if slow else []), interpreter=torch_python(), env=env)
            for env in environments()
        ]
        for job in jobs:
            job.start()
            stack.callback(job.__exit__, None, None, None)
        for job in jobs:
            job.wait("ready", 120)
        if not slow:
            share_a_processor(jobs)
            # what else runs on the machine may hold one of them up for a while
            assert any(across.compare(captured(jobs), of(jobs)) is None for _ in range(3))
            return
        found = across.compare(captured(jobs), of(jobs))
        assert found is not None
        assert (found.rank, found.pid) == (0, jobs[0].pid)
        assert found.function.startswith("tokenize_slowly (ddp.py:")
        assert found.waiting.startswith("main (ddp.py:")


def share_a_processor(jobs: Sequence[Job]) -> None:
    """All threads of the jobs on one CPU, so that none has a better one."""
    cpu = {min(os.sched_getaffinity(0))}
    for job in jobs:
        for task in Path(f"/proc/{job.pid}/task").iterdir():
            with suppress(ProcessLookupError):
                os.sched_setaffinity(int(task.name), cpu)


def environments() -> list[dict[str, str]]:
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    common = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
        "TORCHELASTIC_RUN_ID": f"ddp-{port}",
    }
    return [common | {"RANK": str(r), "LOCAL_RANK": str(r)} for r in range(2)]
