"""Figures that stand together decide: memory that is free and was refused, data in a step, the mean of a cluster."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.dialogue import Turn, answerer
from assistant.intent.amounts import cluster_use, loading, oom
from assistant.intent.parse import understand
from assistant.intent.query import Intent
from assistant.reply import Reply
from rules.loader import load

REFUSED = (
    "cuda oom: tried to allocate {} GiB but {} GiB are free",
    "OutOfMemoryError, it needs {}GB and only {}GB is free",
    "显存不足，申请 {}GB，还有 {}GB 空闲",
    "out of memory for a {} GiB tensor with {} GB free, why?",
)
STEPS = (
    "dataloader takes {} ms of a {} ms step",
    "data loading is {} ms per {} ms iteration",
    "数据加载占 {} ms，一步 {} ms",
)
NONE = ("the kernel's oom killer killed my job, 3 GB free", "cuda out of memory", "20 GB are free on gpu 3", "step takes 900 ms", "cpu of the cluster is at 35 % util",
        "job is stuck, all gpus at 99 % util", "all gpus 100% util but 130 W each", "训练卡住了，所有GPU利用率100%")  # fmt: skip


def answered(said: str) -> Reply:
    query = understand(said)
    assert query.intent is Intent.EXPLAIN, query.intent
    return answerer(query.intent).answer(Turn(query, query.lang, load()))


@given(st.sampled_from(REFUSED), st.integers(1, 90), st.integers(2, 90))
def test_what_is_asked_against_what_is_free_decides(frame: str, asked: int, free: int) -> None:
    reply = answered(frame.format(asked, free))
    assert reply.data["kind"] == ("too-large" if asked > free else "fits")


@pytest.mark.parametrize(
    "said",
    [
        "OOM: 14 GiB reserved but unallocated by PyTorch",
        "cuda oom, 9 GB is reserved by pytorch but unused",
        "爆显存，已保留但未分配 8GB",
    ],
)
def test_much_that_is_reserved_and_unused_is_fragmentation(said: str) -> None:
    assert answered(said).data["kind"] == "fragmented"


@given(st.sampled_from(STEPS), st.integers(1, 500), st.integers(501, 3000))
def test_the_share_of_a_step_is_judged_by_its_band(frame: str, wait: int, step: int) -> None:
    reply = answered(frame.format(wait, step))
    share = 100 * wait / step
    assert reply.data["rating"] == ("good" if share < 2 else "fair" if share < 10 else "poor")
    assert f"{share:.0f} %" in reply.headline


@pytest.mark.parametrize("said", NONE)
def test_where_nothing_of_the_kind_is_said_nothing_is_read(said: str) -> None:
    assert (oom(said), loading(said), cluster_use(said)) == (None, None, None)


@pytest.mark.parametrize(("said", "rating"), [("our cluster is at 35 % mean util, is that bad?", "fair"), ("集群平均利用率 15%，算低吗", "poor"), ("average gpu utilization of the fleet is 62 percent, is it ok", "good")])  # fmt: skip
def test_the_mean_of_a_cluster_is_judged_as_one(said: str, rating: str) -> None:
    assert answered(said).data["rating"] == rating
