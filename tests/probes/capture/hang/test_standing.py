"""What a thread stands in, whether it stands still, and the ranks of a job together: pure, on looks of our own making."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from probes.capture.hang.standing import (
    LEAST_S,
    MOVES,
    POLLS,
    SHORT,
    SPINS,
    UNSEEN,
    WORKS,
    Member,
    Standing,
    members,
    standing,
)
from probes.capture.hang.standing_frames import Cause, Kind, Native, Place, call_name, normal, place, short, where
from probes.capture.hang.standing_job import Pattern, jobs, judge
from tests.cases import each

LIB = "/env/lib/python3.11"
C10D = ("all_reduce", f"{LIB}/site-packages/torch/distributed/distributed_c10d.py", 3252)
LOGGED = ("_exception_logger.<locals>.wrapper", f"{LIB}/site-packages/torch/distributed/c10d_logger.py", 83)
MAIN = ("main", "/work/train.py", 90)
TRAIN = ("train", "/work/train.py", 42)
FUTEX = Native("S", "futex", ("0x5",), "futex_do_wait")
S = 1_000_000_000


def frames(*extra: tuple[str, str, int]) -> list[tuple[str, str, int]]:
    return [MAIN, TRAIN, *extra]


@each(
    ("stack", "native", "line", "expected"),
    [
        (frames(LOGGED, C10D), FUTEX, "work.wait()", (Kind.COLLECTIVE, "all_reduce", Cause.NONE)),
        (frames(LOGGED, ("all_gather_object", C10D[1], 1), LOGGED, ("all_gather", C10D[1], 9)), FUTEX, "", (Kind.COLLECTIVE, "all_gather_object", Cause.NONE)),
        (frames(LOGGED, ("init_process_group", C10D[1], 1), ("_create_c10d_store", f"{LIB}/site-packages/torch/distributed/rendezvous.py", 1)), FUTEX, "",
         (Kind.COLLECTIVE, "init_process_group", Cause.RENDEZVOUS)),
        (frames(), FUTEX, "dist.barrier()", (Kind.COLLECTIVE, "barrier", Cause.NONE)),
        (frames(("_MultiProcessingDataLoaderIter._try_get_data", f"{LIB}/site-packages/torch/utils/data/dataloader.py", 1), ("Queue.get", f"{LIB}/multiprocessing/queues.py", 1)),
         Native("S", "poll"), "", (Kind.DATA, "", Cause.NONE)),
        (frames(("fetch", f"{LIB}/site-packages/torch/utils/data/_utils/fetch.py", 1), ("__getitem__", "/work/data.py", 3)), Native("S", "clock_nanosleep"), "", (Kind.DATA, "", Cause.NONE)),
        (frames(), Native("R", "running"), "total += loss.item()", (Kind.DEVICE, "", Cause.NONE)),
        (frames(("synchronize", f"{LIB}/site-packages/torch/cuda/__init__.py", 1)), Native("R"), "", (Kind.DEVICE, "", Cause.NONE)),
        (frames(("_engine_run_backward", f"{LIB}/site-packages/torch/autograd/graph.py", 1)), FUTEX, "", (Kind.COLLECTIVE, "backward", Cause.BACKWARD)),
        (frames(("save", f"{LIB}/site-packages/torch/serialization.py", 1)), Native("S", "write"), "", (Kind.IO, "", Cause.CHECKPOINT)),
        (frames(("save", f"{LIB}/site-packages/torch/serialization.py", 1)), Native("D", "write", (), "nfs_wait_bit"), "", (Kind.IO, "", Cause.STORAGE)),
        (frames(), Native("D", "ioctl", (), "os_acquire_rwlock_write"), "", (Kind.DEVICE, "", Cause.DRIVER)),
        (frames(("interaction", f"{LIB}/pdb.py", 1), ("cmdloop", f"{LIB}/cmd.py", 1)), Native("S", "read", ("0x0",)), "", (Kind.IO, "", Cause.DEBUGGER)),
        (frames(), Native("S", "read", ("0x0",)), "input()", (Kind.IO, "", Cause.STDIN)),
        (frames(), Native("T"), "", (Kind.UNKNOWN, "", Cause.STOPPED)),
        (frames(("Event.wait", f"{LIB}/threading.py", 1)), FUTEX, "", (Kind.LOCK, "", Cause.NONE)),
        (frames(), FUTEX, "with lock:", (Kind.LOCK, "", Cause.NONE)),
        (frames(), Native("S", "clock_nanosleep"), "time.sleep(60)", (Kind.SLEEP, "", Cause.NONE)),
        (frames(), Native("S", "select", ("0x0",)), "", (Kind.SLEEP, "", Cause.NONE)),
        (frames(("readinto", f"{LIB}/socket.py", 1)), Native("S", "recvfrom"), "", (Kind.IO, "", Cause.NONE)),
        (frames(("select", f"{LIB}/selectors.py", 1), ("_run_once", f"{LIB}/asyncio/base_events.py", 1)), Native("S", "epoll_wait"), "", (Kind.IO, "", Cause.IDLE)),
        (frames(), Native("R", "running"), "x += 1", (Kind.PYTHON, "", Cause.NONE)),
        ((), Native("S", "syscall 999"), "", (Kind.UNKNOWN, "", Cause.NONE)),
    ],
)  # fmt: skip
def test_what_a_thread_stands_in(
    stack: Sequence[tuple[str, str, int]], native: Native, line: str, expected: tuple[Kind, str, Cause]
) -> None:
    found = place(tuple(stack), native, line, distributed=True)
    assert (found.kind, found.name, found.cause) == expected
    assert stack == () or found.frame in stack


def test_backward_of_a_process_alone_waits_for_the_device() -> None:
    found = place((MAIN, ("backward", f"{LIB}/site-packages/torch/autograd/__init__.py", 1)), FUTEX)
    assert found.kind is Kind.DEVICE


def test_who_called_is_of_the_program() -> None:
    found = place(tuple(frames(LOGGED, C10D)), FUTEX)
    assert found == Place(Kind.COLLECTIVE, "all_reduce", Cause.NONE, TRAIN)
    assert where(TRAIN) == "train (train.py:42)"
    assert short(C10D[1]) == "torch/distributed/distributed_c10d.py"
    assert normal([TRAIN, C10D]) == ("train (train.py)", "all_reduce (torch/distributed/distributed_c10d.py)")


def test_system_calls_have_names() -> None:
    assert call_name("x86_64", "202 0x7f 0x189 0x0 0x0 0x0 0xff 0x7ffc 0x7f71")[0] == "futex"
    assert call_name("aarch64", "98 0x7f 0x189")[0] == "futex"
    assert call_name("x86_64", "running") == ("running", ())
    assert call_name("x86_64", "9999 0x0") == ("syscall 9999", ("0x0",))
    assert call_name("x86_64", "") == call_name("x86_64", "-1 0x0") == ("", ())


# --- looks -------------------------------------------------------------------------------------------


def hang(
    *rows: dict[str, Any],
    stack: Sequence[Any] = (),
    second: Sequence[Any] | None = None,
    pid: int = 7,
    gap: float = 0.5,
) -> dict[str, Any]:
    """The part of two looks at one process; `rows`: of its main thread."""
    looks = [
        {"at": round(i * gap * S), "processes": {str(pid): {"state": r.get("state", "S"), "threads": {str(pid): {"state": "S", "syscall": "202 0x5"} | r}, "io": r.get("io", {})}}}
        for i, r in enumerate(rows)
    ]  # fmt: skip
    held = [stack, stack if second is None else second]
    dumps = (
        [{"pid": pid, "error": "", "threads": [{"tid": pid, "frames": [list(f) for f in s]}]} for s in held]
        if stack
        else []
    )
    return {"dumps": dumps, "proc": {"machine": "x86_64", "looks": looks}}


def row(ran: int = 100, switches: int = 5, quiet: float = 60.0, **other: Any) -> dict[str, Any]:
    return {"ran": ran, "switches": switches, "quiet": round(quiet * S)} | other


ME = Member(7, 0, 0, 2, "job")


@each(
    ("rows", "second", "still", "why"),
    [
        ((row(), row()), None, True, None),
        ((row(), row(quiet=1)), None, None, SHORT),
        ((row(), row(switches=7)), None, None, POLLS),
        ((row(), row()), frames(("other", "/work/x.py", 1)), False, MOVES),
        ((row(), row(ran=400_000_000)), None, None, SPINS),
        ((row(),), None, None, UNSEEN),
        ((row(state="T"), row(state="T")), None, True, None),
    ],
)
def test_standing_still_is_more_than_the_same_stack(rows: Any, second: Any, still: bool | None, why: Any) -> None:
    found = standing(hang(*rows, stack=frames(LOGGED, C10D), second=second), ME)
    assert found.still is still
    if why is not None:
        assert found.why == why


def test_what_computes_at_one_place_moves() -> None:
    rows = (row(state="R", syscall="running"), row(ran=450_000_000, state="R", syscall="running"))
    assert standing(hang(*rows, stack=frames()), ME).still is False


def test_a_process_that_has_ended_is_not_said_to_stand_for_a_while() -> None:
    found = standing(hang(row(), row(state="Z")), ME)
    assert (found.still, found.cause, found.seconds) == (True, Cause.ENDED, 0.0)


def test_a_long_span_does_what_the_scheduler_does_not_tell() -> None:
    plain = [{k: v for k, v in row().items() if k != "quiet"} for _ in range(2)]
    assert standing(hang(*plain, stack=frames()), ME).why == SHORT
    assert standing(hang(*plain, stack=frames(), gap=LEAST_S + 1), ME).still is True


def test_bytes_that_flow_are_progress() -> None:
    loading = frames(("fetch", f"{LIB}/site-packages/torch/utils/data/_utils/fetch.py", 1))
    found = standing(hang(row(io={"rchar": 5}), row(io={"rchar": 6}), stack=loading), ME)
    assert (found.still, found.why) == (False, MOVES)


def test_a_loader_waits_for_workers_that_work_or_are_dead() -> None:
    stack = frames(
        ("_MultiProcessingDataLoaderIter._try_get_data", f"{LIB}/site-packages/torch/utils/data/dataloader.py", 1)
    )
    me = Member(7, 0, 0, 2, "job", helpers=(8,))
    part = hang(row(), row(), stack=stack)
    found = standing(part, me)
    assert (found.still, found.cause) == (True, Cause.WORKERS_DEAD)
    for i, look in enumerate(part["proc"]["looks"]):
        look["processes"]["8"] = {"state": "S", "threads": {"8": {"ran": i * 300_000_000}}}
    found = standing(part, me)
    assert (found.still, found.why) == (False, WORKS)


def test_the_thread_that_is_waited_for_stands_for_the_process() -> None:
    part = hang(row(), row(), stack=frames(("Thread.join", f"{LIB}/threading.py", 1)))
    worker = [["run", f"{LIB}/threading.py", 1], ["loop", "/work/train.py", 5], list(LOGGED), list(C10D)]
    for dump in part["dumps"]:
        dump["threads"].append({"tid": 9, "frames": worker})
    for look in part["proc"]["looks"]:
        look["processes"]["7"]["threads"]["9"] = row(state="S", syscall="202 0x9")
    found = standing(part, ME)
    assert (found.kind, found.name, found.still) == (Kind.COLLECTIVE, "all_reduce", True)


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**70) | st.text(max_size=6), lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=6), x, max_size=3)
)  # fmt: skip


@given(anything, anything, anything, st.sampled_from(["looks", "dumps", "frames", "threads", "targets"]))
def test_hostile_documents_never_raise(one: Any, other: Any, third: Any, which: str) -> None:
    part: dict[str, Any] = hang(row(), row(), stack=frames())
    if which == "looks":
        part["proc"]["looks"] = [
            one,
            {"at": other, "processes": {"7": third}},
            {"processes": {"7": {"state": one, "threads": {"7": other}, "io": third}}},
        ]
    elif which == "dumps":
        part["dumps"] = [one, {"pid": 7, "threads": other}, {"pid": 7, "error": third}]
    elif which == "frames":
        part["dumps"][0]["threads"][0]["frames"] = [one, [other, third, 1], ["a", "b", one]]
    elif which == "threads":
        part["proc"] |= {"machine": one, "local_world": {"7": other}, "ranks": third}
        part["sources"] = one
    found = [ME, *members(one if which == "targets" else [{"process": {"pid": 7}, "rank": other, "helpers": third}])]
    json.dumps([str(v) for v in jobs(part, found)])


# --- ranks together ------------------------------------------------------------------------------------


def stood(rank: int, kind: Kind = Kind.COLLECTIVE, name: str = "all_reduce", **other: Any) -> Standing:
    given_: dict[str, Any] = {"still": True, "seconds": 60.0, "stack": (name or kind.value,)} | other
    return Standing(
        Member(100 + rank, rank, rank, 8, "job"), kind, name=name if kind is Kind.COLLECTIVE else "", **given_
    )


rank_states = st.builds(
    lambda kind, name, still, cause: {"kind": kind, "name": name, "still": still, "cause": cause, "why": SHORT if still is None else MOVES},
    st.sampled_from([Kind.COLLECTIVE, Kind.COLLECTIVE, Kind.DEVICE, Kind.LOCK, Kind.SLEEP, Kind.DATA]),
    st.sampled_from(["all_reduce", "all_gather"]), st.sampled_from([True, True, None, False]), st.sampled_from([Cause.NONE, Cause.NONE, Cause.ENDED, Cause.STOPPED]),
)  # fmt: skip


@given(st.lists(rank_states, min_size=1, max_size=8), st.integers(0, 99))
def test_the_order_of_ranks_does_not_matter(states: list[dict[str, Any]], seed: int) -> None:
    found = [stood(i, **s) for i, s in enumerate(states)]
    turned = list(found)
    random.Random(seed).shuffle(turned)
    assert judge("job", turned) == judge("job", found)


@given(st.lists(rank_states, min_size=1, max_size=8), st.permutations(range(8)))
def test_other_numbers_give_the_same_verdict(states: list[dict[str, Any]], order: list[int]) -> None:
    before, after = (
        judge("job", [stood(i, **s) for i, s in enumerate(states)]),
        judge("job", [stood(order[i], **s) for i, s in enumerate(states)]),
    )
    assert (before.pattern, before.hung, before.desync) == (after.pattern, after.hung, after.desync)
    assert {order[s.member.rank or 0] for s in before.late} == {s.member.rank for s in after.late}
    assert {order[r] for r in before.absent} == set(after.absent)


@given(st.lists(rank_states, min_size=1, max_size=8))
def test_a_job_in_which_anything_moves_is_not_hung(states: list[dict[str, Any]]) -> None:
    found = judge("job", [stood(i, **s) for i, s in enumerate(states)])
    if any(s["still"] is False and s["cause"] is not Cause.ENDED for s in states):
        assert found.hung is False
    if found.hung:
        assert not any(s["still"] is False and s["cause"] is not Cause.ENDED for s in states)


@given(st.lists(rank_states, min_size=1, max_size=8))
def test_who_waits_is_never_late_but_where_ranks_lost_step(states: list[dict[str, Any]]) -> None:
    found = judge("job", [stood(i, **s) for i, s in enumerate(states)])
    if found.pattern is not Pattern.DESYNC:
        assert not set(found.late) & set(found.waiting)
    assert len(found.late) + len(found.waiting) <= 2 * len(states)


def test_the_minority_is_named_the_worst_first() -> None:
    found = judge("job", [*(stood(i) for i in range(6)), stood(6, Kind.LOCK), stood(7, Kind.IO, cause=Cause.STORAGE)])
    assert [s.member.rank for s in found.late] == [7, 6]
    assert found.guilty is not None
    assert found.elsewhere == 0


def test_a_host_that_waits_for_its_device_waits_for_the_others_there() -> None:
    found = judge("job", [stood(0), stood(1, Kind.DEVICE, still=None, why=SPINS), stood(2, Kind.DATA)])
    assert [s.member.rank for s in found.late] == [2]
    assert found.hung is True
    only = judge("job", [stood(i, Kind.DEVICE, still=None, why=SPINS) for i in range(4)])
    assert (only.hung, only.why, only.pattern) == (None, SPINS, Pattern.TOGETHER)


def test_a_late_rank_that_polls_is_guilty_when_nobody_was_let_through() -> None:
    polls = stood(1, Kind.SLEEP, still=None, why=POLLS)
    assert judge("job", [stood(0), polls]).hung is True
    assert judge("job", [stood(0, still=None, why=SHORT), polls]).hung is None


def test_point_to_point_is_no_desync() -> None:
    assert not judge("job", [stood(0, name="recv"), stood(1, name="all_reduce")]).desync
    assert judge("job", [stood(0, name="barrier"), stood(1, name="all_reduce")]).desync


def spinning(rank: int) -> Standing:
    return stood(rank, Kind.DEVICE, still=None, why=SPINS)


def test_a_spin_is_told_from_a_long_kernel_by_idle_gpus_or_an_old_record() -> None:
    ranks = [spinning(0), spinning(1)]
    assert judge("job", ranks, {"gpus": {"0000:3b:00.0": 100.0}}).hung is None
    assert judge("job", ranks, {"gpus": {"0000:3b:00.0": 0.0}}).hung is True
    waits = {
        "group": "0",
        "desc": "default_pg",
        "seq": 3,
        "name": "nccl:all_reduce",
        "state": "started",
        "created": 5 * S,
        "p2p": False,
    }
    for seconds, hung in ((10, None), (100, True)):
        rows = {str(r): {"written": (5 + seconds) * S, "dump": {"entries": [waits]}} for r in (0, 1)}
        assert judge("job", ranks, {"flight": {"ranks": rows}}).hung is hung


def test_connections_that_nobody_acknowledges_are_shown() -> None:
    row = {"local": "10.0.0.1:5", "remote": "10.0.0.2:6", "state": "established", "tx": 4096, "rx": 0, "retransmits": 3}
    found = judge("job", [stood(0)], {"proc": {"sockets": {"100": [row, row | {"retransmits": 0}]}}})
    assert found.links == ("pid 100: 10.0.0.1:5 to 10.0.0.2:6: 4096 bytes not acknowledged, sent again 3 times",)
