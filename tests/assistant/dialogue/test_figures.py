"""One value that is known by itself is judged first, and a count or a name beside it is never taken for it."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.diagnosis import diagnose
from assistant.dialogue import Turn, answerer
from assistant.intent.figures import Clock, figure
from assistant.intent.parse import understand
from assistant.intent.query import Intent
from assistant.intent.seen import seen
from assistant.reply import Reply
from knowledge import expected
from knowledge.gpus import GpuSpec, all_specs
from rules.loader import load
from tests.cases import each

LISTED = (
    "nvidia-smi lists {a} gpus on an {b} gpu box",
    "{b} gpus in this node, nvidia-smi lists {a}",
    "should see {b} gpus, see {a}",
    "{b} 卡服务器 nvidia-smi 只列出 {a} 张",
)
# What is asked is another thing than the one value: a fault beside it, its peers, what it was, a machine, a run.
NONE = (
    "H100 at 698 of 700 W and dmesg is full of errors",
    "mfu 38 %, and gpu 3 has 5 uncorrectable ecc errors",
    "H100 draws 380 W, others 650 W",
    "step time went from 3 to 9 s since yesterday",
    "9 GiB in use but no process, xid 79 on gpu 2",
    "can I keep training with mfu 38 %?",
    "MFU 40%,但是昨晚一直报错",
    "100% util but only 130 W on H100",
    "power 680 W on gpu-17, H100, normal?",
)


def answered(said: str) -> Reply:
    query = understand(said)
    assert query.intent is Intent.EXPLAIN, query.intent
    return answerer(query.intent).answer(Turn(query, query.lang, load()))


def rating(said: str) -> object:
    return answered(said).data["rating"]


@settings(max_examples=30)
@given(st.sampled_from(LISTED), st.integers(2, 16), st.integers(2, 16))
def test_gpus_that_are_listed_are_held_against_those_that_are_there(frame: str, a: int, b: int) -> None:
    found = [(s.listed, s.there) for s in seen(frame.format(a=a, b=b))]
    assert found == ([(a, b)] if a <= b else [])


@pytest.mark.parametrize("frame", ["h2d copy of {} GB/s, gen{} x16, ok?", "主机到设备 {} GB/s,Gen{} 正常吗"])
@settings(max_examples=15)
@given(generation=st.sampled_from([3, 4, 5]), percent=st.integers(20, 100))
def test_a_copy_is_held_against_its_link(frame: str, generation: int, percent: int) -> None:
    link = expected.host_copy(generation, 16)
    assert link is not None
    gbs = round(link.typical * percent / 100, 1)
    assert rating(frame.format(gbs, generation)) == ("good" if gbs >= link.floor else "poor")


@settings(max_examples=15)
@given(nics=st.sampled_from([2, 4, 8]), rate=st.sampled_from([100, 200, 400]), percent=st.integers(10, 100))
def test_a_bus_bandwidth_between_nodes_is_held_against_the_cards_told_beside_it(
    nics: int, rate: int, percent: int
) -> None:
    gbs = round(nics * rate / 8 * percent / 100, 1)
    reply = answered(f"{gbs} GB/s busbw all_reduce on 2 nodes 8xH100 with {nics}x{rate}G NDR, expected?")
    assert (reply.data["value"], reply.data["nics"], reply.data["rate"]) == (gbs, nics, rate)
    share = 100 * gbs / (nics * rate / 8)
    assert reply.data["rating"] == ("good" if share >= 85 else "poor")


@pytest.mark.parametrize(
    ("said", "begins"),
    [
        ("mfu of 38% on llama 70b with 512 h100s bf16 ok or not?", "Fine"),
        ("MFU 只有 9%", "偏低"),
        ("h100 pulling 698W of 700 is that bad", "Fine"),
        ("H100 draws 380 of 700 W while training", "Too low"),
        ("功耗 300W 正常吗", "正常"),
        ("功耗 699W 上限 700W，是不是快坏了", "正常：699/700 W"),
        ("my H100 does 2.9 TB/s in a bandwidth test, 3.35 is the spec. good?", "Fine"),
        ("memory bandwidth 900 GB/s on H100 SXM, is that low?", "Too low"),
        ("79.1GiB / 80GiB used on all gpus, should I worry", "Fine"),
        ("显存占了78G但是没有进程,咋回事", "有问题"),
        ("空卡显存用了 4MiB 有问题吗", "正常"),
        ("A100 40G 的卡显示 40960MiB 正常吗", "正常"),
        ("my H100 80GB card only has 10GB visible", "Not as it should be"),
        ("is 78C ok for an A100?", "Fine"),
        ("每步 3.2 秒,偶尔跳到 9 秒", "偶发尖峰"),
        ("step time 1.82s p50, 1.85s p99. anything to fix?", "Fine"),
        ("no space left on device but df shows plenty of space", "A problem"),
        ("ib_write_bw shows 97 Gb/s on an HDR 200 card", "Too low"),
        ("IB 400G 测出来 22 GB/s 正常吗", "不正常，偏低：176/400 Gb/s"),
        ("IB 400G 测出来 47 GB/s 正常吗", "正常：376/400 Gb/s"),
        ("we get only 180 Gb/s over a 400G infiniband port, fine?", "Too low: 180 of 400 Gb/s"),
        ("all_reduce busbw 双机只有 5GB/s 正常吗", "不正常，偏低"),
        ("GPU 利用率 100% 是好事吗", "正常"),
    ],
)
def test_the_conclusion_comes_first(said: str, begins: str) -> None:
    assert answered(said).headline.startswith(begins)


@pytest.mark.parametrize("said", NONE)
def test_nothing_is_judged_by_one_value_where_more_is_told_or_asked(said: str) -> None:
    assert understand(said).intent is not Intent.EXPLAIN


@given(st.text(max_size=120))
def test_any_text_is_read(text: str) -> None:
    figure(text)


# A value that is fine alone, and what may be told behind it.
FINE = (
    ("H100 draws 690 of 700 W, normal?", "功耗 690W 正常吗"),
    ("core at 70 C, is that ok?", "温度70度正常吗"),
    ("mfu 45 %, good?", "MFU 45% 正常吗"),
    ("utilization 99 %, normal?", "利用率99%正常吗"),
    ("busbw 470 GB/s on 8 H100, ok?", "8卡 H100 busbw 470 GB/s 正常吗"),
)
TROUBLES = (
    ("ranks hang", "卡住了"),
    ("it fell off the bus", "掉卡了"),
    ("loss is nan", "loss变成nan"),
    ("nvlink is inactive on gpu 3", "nvlink断了"),
    ("clocks are 210 MHz", "时钟只有210MHz"),
    ("uncorrectable ecc errors 3", "有不可纠正ECC错误 3 个"),
    ("the node keeps rebooting", "节点一直重启"),
)
JOINED = (("{} but {}", "{} 但是{}"), ("{} {}", "{} {}"), ("{} {}!", "{}，不过{}"))


@pytest.mark.slow
@each(("fine", "trouble", "joined"), lambda: product(FINE, TROUBLES, JOINED), ids=str)
def test_no_value_is_fine_where_trouble_is_told_behind_it(
    fine: tuple[str, str], trouble: tuple[str, str], joined: tuple[str, str]
) -> None:
    for n in (0, 1):
        query = understand(joined[n].format(fine[n], trouble[n]))
        turn = Turn(query, query.lang, load(), diagnose([*query.observations], load()), host="n1")
        head = answerer(query.intent).answer(turn).headline
        assert not re.match(r"Fine|Yes|正常|没有问题|可以|.*(?:no fault|不是故障)", head), (query.text, head)


@given(st.sampled_from([s for s in all_specs() if s.max_clock_mhz]), st.floats(0.3, 1.0))
def test_a_clock_is_held_against_the_highest_of_its_model(model: GpuSpec, share: float) -> None:
    most = model.max_clock_mhz or 0.0
    rated = rating(f"{share * most:.0f} of {most:.0f} MHz under load, normal?")
    assert (rated == "good") is (share > 0.92) or abs(share - 0.92) < 0.01
    assert rated != "good" if share < 0.7 else True
    capped = f"{model.family} {model.form_factor} at {share * most:.0f} MHz with the power limit at {(model.tdp_w or 0) / 2:.0f} W"
    found = figure(capped)
    assert isinstance(found, Clock)
    assert found.limit == round((model.tdp_w or 0) / 2)
