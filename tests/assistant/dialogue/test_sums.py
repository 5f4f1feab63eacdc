"""Sums that a sentence asks for: the figure is that of the formula, and what reports trouble is no sum."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.dialogue import Turn, answerer
from assistant.dialogue._sums import interval
from assistant.intent.parse import understand
from assistant.intent.query import Intent
from assistant.intent.sums import GPU_HOURS, Saves, asked
from assistant.reply import Reply
from rules.loader import load

HOURS = st.floats(0.5, 2000)


def answered(said: str) -> Reply:
    query = understand(said)
    assert query.intent is Intent.EXPLAIN, (said, query.intent)
    return answerer(query.intent).answer(Turn(query, query.lang, load()))


@given(HOURS, st.floats(0.001, 0.2), st.floats(0.2, 5))
def test_no_other_interval_of_checkpoints_loses_less(failing: float, write: float, other: float) -> None:
    def loses(every: float) -> float:
        return write / every + every / (2 * failing)

    best = interval(failing, write)
    assert loses(best) <= loses(best * other) * (1 + 1e-9)


@given(
    st.sampled_from(
        (
            "a node fails every {} days, {} nodes, checkpoint takes {} min, how often to save?",
            "每台节点 {} 天坏一次，{} 台，存一次 {} 分钟，checkpoint 多久存一次",
        )
    ),
    st.integers(10, 400),
    st.integers(2, 4000),
    st.integers(1, 20),
)
def test_the_time_between_interruptions_is_that_of_all_nodes(frame: str, days: int, nodes: int, minutes: int) -> None:
    told = answered(frame.format(days, nodes, minutes)).data
    assert told["mtbf_h"] == pytest.approx(days * 24 / nodes, abs=0.001)
    assert told["interval_h"] == pytest.approx(interval(days * 24 / nodes, minutes / 60), abs=0.001)


@given(
    st.sampled_from(("MFU of a {}B model on {} H100 at {} tokens/s", "{}B 模型 {} 张 H100 每秒 {} 个 token，MFU 多少")),
    st.integers(1, 400),
    st.integers(8, 20000),
    st.floats(5, 90),
)
def test_mfu_is_what_the_tokens_take_of_the_peak(frame: str, size: int, gpus: int, share: float) -> None:
    tokens = round(share / 100 * gpus * 989.4e12 / (6 * size * 1e9))
    told = answered(frame.format(size, f"{gpus:,}", f"{tokens:,}")).data
    assert told["mfu_percent"] == pytest.approx(share, rel=0.02, abs=6e11 * size / (gpus * 989.4e12) + 0.01)


@given(st.integers(2, 90), st.integers(1, 99), st.integers(16, 9000))
def test_a_better_utilisation_saves_its_share(before: int, more: int, gpus: int) -> None:
    after = min(before + more, 100)
    told = answered(f"what would raising utilisation from {before} % to {after} % on {gpus} GPUs save?").data
    assert told["saved_percent"] == pytest.approx(100 * (1 - before / after), abs=0.01)


@given(st.integers(16, 100_000))
def test_more_gpus_are_interrupted_more_often(gpus: int) -> None:
    assert answered(f"how often does a job on {gpus:,} gpus fail?").data["mtbf_h"] == pytest.approx(
        GPU_HOURS / gpus, abs=0.001
    )


@given(
    st.sampled_from(
        (
            ("mtbf of {:,} nodes if one node fails every {} years", 8760),
            ("{:,} 个节点，每个节点 {} 年坏一次，任务多久断一次", 8760),
            ("we have {:,} nodes with mtbf {} months each, how often does the job fail", 730),
        )
    ),
    st.integers(2, 9000),
    st.integers(1, 20),
)
def test_a_time_told_of_one_part_is_divided_by_the_parts(frame: tuple[str, int], nodes: int, many: int) -> None:
    said, hours = frame
    assert answered(said.format(nodes, many)).data["mtbf_h"] == pytest.approx(many * hours / nodes, abs=0.001)


def test_a_report_of_trouble_is_no_sum() -> None:
    for said in (
        "checkpoint saves take 5 minutes on 8 gpus, why so slow?",
        "util went from 40 to 70 % since the update",
        "the job on 64 gpus crashed 3 times today",
        "512 张卡的任务昨晚挂了",
        "checkpoint 存了 20 分钟还没存完",
        "mfu dropped from 45 to 30 % on 64 h100",
    ):
        assert asked(said) is None, said


@given(st.integers(1, 400), st.sampled_from((("bf16", 2.4), ("fp8", 1.2), ("int4", 0.6))), st.integers(1, 64))
def test_a_model_fits_where_its_weights_and_a_fifth_do(size: int, weight: tuple[str, float], gpus: int) -> None:
    told = answered(f"is {gpus} x H100 80GB enough to serve a {size}B model in {weight[0]}?")
    assert told.data["need_gb"] == pytest.approx(size * weight[1], abs=0.06)
    assert told.headline.startswith("Yes" if size * weight[1] <= gpus * 72 else "No")


@pytest.mark.parametrize(
    ("said", "hours"),
    [
        ("how often should we checkpoint a 512 gpu run if we lose a node about every 2 days?", 48),
        ("512 卡训练大约两天坏一台，checkpoint 多久存一次", 48),
        ("a node dies every 36 h on 1024 gpus, how often to save a checkpoint", 36),
        ("how often to checkpoint on 64 nodes, a node fails every 100 days", 37.5),
    ],
)
def test_how_often_some_node_is_lost_is_of_the_whole(said: str, hours: float) -> None:
    found = asked(said)
    assert isinstance(found, Saves)
    assert found.failing == pytest.approx(hours)


@given(every=st.integers(5, 59), write=st.integers(1, 20), fails=st.integers(2, 40))
def test_how_often_it_saves_today_is_not_how_long_a_save_takes(every: int, write: int, fails: int) -> None:
    for said in (
        f"mtbf {fails}h, checkpoint every {every} min takes {write} min, best interval?",
        f"每 {every} 分钟存一次 checkpoint，一次 {write} 分钟，MTBF {fails} 小时，间隔多少最好",
    ):
        found = asked(said)
        assert isinstance(found, Saves)
        assert (round(found.write * 60), found.failing) == (write, fails), said


@given(
    st.sampled_from(
        (
            "can I run a 70B model in fp8 on {} H100 80GB with {}k context and {} concurrent users?",
            "70B 模型 fp8，{} 张 H100 80GB，{}k 上下文，{} 并发，够吗",
        )
    ),
    st.sampled_from((1, 2, 4, 8)),
    st.sampled_from((2, 8, 32, 128)),
    st.integers(1, 64),
)
def test_a_model_fits_with_the_cache_of_all_its_requests(frame: str, gpus: int, kilo: int, users: int) -> None:
    reply = answered(frame.format(gpus, kilo, users))
    needed = 70 * 1.1 + 2 * 80 * 8 * 128 * 2 * kilo * 1024 * users / 1e9
    assert reply.data["need_gb"] == pytest.approx(needed, abs=0.1)
    assert reply.headline.startswith(("Yes", "够") if needed <= gpus * 80 * 0.9 else ("No", "不够")), reply.headline
