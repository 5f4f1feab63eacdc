"""A comparison in words answers first: how far apart, what does that, what to run; and nothing of it is called seen."""

from __future__ import annotations

from assistant.diagnosis import State, diagnose
from assistant.dialogue import Turn, answerer
from assistant.intent.compared import stand_out
from assistant.intent.parse import understand
from assistant.reply import Reply
from assistant.session.concluding import rooted
from rules.loader import load
from rules.model import Usable
from tests.cases import each


def answered(text: str) -> Reply:
    query = understand(text)
    told = tuple(o.about(rooted(o.subject, "unknown:?")) for o in query.observations)
    return answerer(query.intent).answer(Turn(query, query.lang, load(), diagnose(told, load())))


@each(
    ("text", "first", "because"),
    [
        (
            "gpu 6 sits at 1200 MHz while the rest are at 1755, all at 100% util",
            "GPU 6 runs at 1200 MHz, its peers at 1755 MHz (32 % less): it holds the job back",
            "power brake",
        ),
        ("只有3号卡温度是92度，其余都是65度", "GPU 3 的温度为 92 °C，其他卡为 65 °C（高 27 °C）", "散热"),
        ("the others draw 250 W, gpu 1 draws 690 W", "The others draw 250 W, GPU 1 690 W (64 % less)", "wait"),
        ("HCA should be 400 Gb/s and shows 200", "The port runs at 200 Gb/s instead of 400 Gb/s (half of it is gone)", "cable"),
        ("MFU dropped from 48% to 31%", "The job runs at 31 % MFU now, before at 48 % (35 % less)", "NCCL or driver"),
        (
            "got 320 GB/s busbw last week, 38 now on 8xH100",
            "The test reaches 38 GB/s now, before 320 GB/s (about 1/8 of it): 8x H100 on one node reach 460-480 GB/s, so this is about 1/12",
            "NVLink is not used",
        ),
        ("gpu 3 is at pcie gen 3, all others at gen 5", "GPU 3 runs at PCIe generation 3, its peers at 5 (1/4 of the rate)", "under load"),
        ("temps across the box: 64 66 63 65 62 81 64 65", "Number 6 of the 8 listed (GPU 5 if they start at 0) is at 81 °C, its peers at 64.5 °C", "cooling"),
        ("功率 690 688 701 312 695 690 688 700，训练中", "所列 8 个中的第 4 个（从 0 数起为 GPU 3）的功耗为 312 W，其他卡为 690 W", "power brake"),
        ("power 690 688 701 312 695 690 688 700 W, training", "Number 4 of the 8 listed (GPU 3 if they start at 0) draws 312 W", "held down"),
        ("gpu 1 runs at 1740 MHz, the rest at 1755", "GPU 1 runs at 1740 MHz, its peers at 1755 MHz (1 % less): sound ones", "no fault"),
    ],
)  # fmt: skip
def test_the_first_line_compares_and_says_what_does_that(text: str, first: str, because: str) -> None:
    reply = answered(text)
    assert reply.headline.startswith(first)
    assert because in reply.headline
    assert not reply.settled


@each(
    ("text", "lost"),
    [
        ("H100 should have 80GB memory, nvidia-smi shows 40GB total", True),
        ("expected 900 GB/s nvlink on h100, nvlink status shows 16 links up of 18", True),
        ("显存只有40G，应该80G", True),
        ("the limit should be 350 W, it shows 700 W", True),
        ("MFU should be 31%, it is 48%", True),
        ("why is MFU only 48% now, it was 31% before", True),
        ("MFU went from 31% to 48%", False),
        ("step time dropped from 3.1 s to 2.0 s", False),
    ],
)
def test_nothing_is_called_lost_by_it_only_where_the_direction_is_certain(text: str, lost: bool) -> None:
    """Who says what a value should be complains, and has perhaps been read the wrong way round."""
    said = answered(text).headline
    assert ("nothing is lost" in said or "没有损失" in said) is not lost


def test_what_was_not_understood_is_still_said() -> None:
    reply = answered("gpu 6 runs at 1200 MHz while the rest are at 1755, and the wobbulator says red 17")
    assert reply.headline.startswith("GPU 6 runs at 1200 MHz")
    assert any("wobbulator" in clause for clause in reply.data["not_taken_as_fact"])


def test_a_rule_that_holds_of_the_told_values_makes_it_no_milder() -> None:
    reply = answered("gpu 2 counts 9 uncorrectable ecc errors, the others 0")
    assert reply.diagnosis is not None
    assert reply.diagnosis.verdict.state is not State.OK
    assert reply.diagnosis.verdict.usable.rank >= Usable.IMPAIRED.rank


def test_across_nodes_the_table_of_one_node_says_nothing() -> None:
    assert "460" not in answered("busbw went from 350 GB/s to 38 GB/s on 16 nodes of 8xH100").headline


def test_a_bus_bandwidth_alone_is_held_against_its_model() -> None:
    reply = answered("busbw is 38 GB/s on 8xH100, is that ok?")
    assert "NVLink is not used" in reply.headline
    assert "460" not in answered("busbw is 440 GB/s on 8xH100, is that ok?").headline


@each(
    ("text", "of"),
    [
        ("temps across the box: 64 66 63 65 62 70 64 65", 0),
        ("power 690 688 350 340 345 690 688 700 W, training", 0),
        ("各卡利用率：98 97 98 99 41 98 97 99", 1),
    ],
)
def test_alike_or_of_two_kinds_nothing_stands_out_of_a_list(text: str, of: int) -> None:
    assert len(stand_out(understand(text).observations)) == of
