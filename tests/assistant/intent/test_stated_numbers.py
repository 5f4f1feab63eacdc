"""Every number of a statement is the value of one thing, or it is quoted: none goes to another thing, and none vanishes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from assistant.intent.parse import understand
from assistant.intent.query import Intent
from knowledge.facts import Kind, Type, vocabulary
from knowledge.lexicon import lexicon
from knowledge.observation import Event, Scope, Value
from knowledge.readings import Rating, scales
from tests.cases import Faults, each

THINGS = {
    "en": ("on three gpus ", "on 2 of 8 gpus ", "gpus 0-2 are fine, gpu 3: "),
    "zh": ("三张卡", "8张卡里有两张", "0号卡正常，3号卡"),
}


LOWERED = [
    (f"gpu.power.{name}", "unknown:?", watts)
    for name, watts in (("draw", 348.0), ("limit", 350.0), ("limit.default", 700.0))
]
QUESTION = {"en": ", can I keep using it?", "zh": "，还能用吗"}


def said(text: str) -> list[tuple[str, str, Value]]:
    """Fact, subject and value of all that a sentence tells."""
    found = understand(text).observations
    return [(o.fact, o.subject.id, o.value.code if isinstance(o.value, Event) else o.value) for o in found]


def measured() -> Iterator[tuple[str, str, str, str, int, int]]:
    """Each fact of a GPU with a scale of numbers that people have a name for: its name, language, unit, a usual and a bad value."""
    known = vocabulary()
    unit = {"C": " C", "percent": " %", "MHz": " MHz"}
    for fact, scale in scales().items():
        spec = known[fact]
        if (
            spec.scope is not Scope.GPU
            or spec.type not in (Type.INT, Type.FLOAT)
            or ".pcie." in fact
            or ".nvlink." in fact
        ):
            continue
        bands = {rating: (band.low or 0, band.high) for rating, band in scale.bands if rating is not Rating.OPEN}
        if {Rating.GOOD, Rating.BAD} <= set(bands):
            value = {r: int(low if high is None else (low + high) // 2) for r, (low, high) in bands.items()}
            for name in [n for n, of in lexicon().facts.items() if of == fact][:12:6]:
                lang = "en" if name.isascii() else "zh"
                yield fact, name, lang, unit.get(spec.unit, ""), value[Rating.GOOD], value[Rating.BAD]


def test_there_are_facts_to_try_in_both_languages() -> None:
    assert len({fact for fact, *_ in measured()}) > 8
    assert len({lang for _, _, lang, *_ in measured()}) == 2


def test_of_values_in_a_row_each_is_one_gpus() -> None:
    with Faults() as faults:
        for fact, name, lang, unit, good, bad in measured():
            row = [good, good, bad, good]
            for between in (" ", ", ", "/"):
                text = f"{name} {between.join(map(str, row))}{unit}{QUESTION[lang]}"
                with faults.of(text):
                    assert [(f, v) for f, _, v in said(text)] == [(fact, v) for v in row]


def test_what_is_told_of_some_gpus_is_told_of_these() -> None:
    with Faults() as faults:
        for (fact, name, lang, unit, _, bad), which in product(measured(), range(3)):
            text = f"{THINGS[lang][which]}{name} {'是' if lang == 'zh' else 'is'} {bad}{unit}{QUESTION[lang]}"
            with faults.of(text):
                assert said(text) == [(fact, ("unknown:?x3", "unknown:?x2", "index:3")[which], bad)]


def test_a_number_of_something_else_is_no_value_and_is_quoted() -> None:
    with Faults() as faults:
        for fact, name, lang, _, _, bad in measured():
            if lang != "en":
                continue
            for text in (f"{name} of the wobbulator shows {bad} gizmos", f"{name} shows {bad} gizmos"):
                with faults.of(text):
                    query = understand(f"{text}, can I keep using it?")
                    assert fact not in {o.fact for o in query.observations}
                    assert query.unread == (text,)


def test_what_is_left_of_a_counter_is_not_what_was_counted() -> None:
    with Faults() as faults:
        for fact, name, lang, *_ in measured():
            if vocabulary()[fact].kind is Kind.COUNTER:
                text = f"剩余{name} 0，还能用吗" if lang == "zh" else f"spare {name} 0, can I use it?"
                with faults.of(text):
                    assert understand(text).observations == ()
                    assert understand(text).unread


@each(
    ("text", "facts"),
    [
        (
            "gpu 5 was at 101 C on the memory and 70 C on the core, ok?",
            [("gpu.temperature.memory", "index:5", 101), ("gpu.temperature.core", "index:5", 70)],
        ),
        (
            "88c hbm 103c, ok?",
            [("gpu.temperature.core", "unknown:?", 88), ("gpu.temperature.memory", "unknown:?", 103)],
        ),
        (
            "hbm 103 C core 88 C",
            [("gpu.temperature.memory", "unknown:?", 103), ("gpu.temperature.core", "unknown:?", 88)],
        ),
        ("pcie replays 40 a minute", [("gpu.pcie.replay.rate", "unknown:?", 40.0)]),
        ("pcie 重传每小时 600 次", [("gpu.pcie.replay.rate", "unknown:?", 10.0)]),
        ("2 GB/s all-reduce on 8 H100", [("benchmark.collective.busbw.largest", "unknown:?", 2.0)]),
        (
            "gpu 2 nvlink 17 of 18 links active",
            [
                ("gpu.nvlink.active", "index:2", 17),
                ("gpu.nvlink.inactive", "index:2", 1),
                ("link.state", "unknown:?", "inactive"),
                ("link.state", "unknown:others", "active"),
            ],
        ),
        ("node17 has 6 of 8 gpus", [("node.gpu.count", "node17", 6), ("node.gpu.expected", "node17", 8)]),
        (
            "gpu 1 link runs at 2.5GT/s, max 32GT/s",
            [("gpu.pcie.gen", "index:1", 1), ("gpu.pcie.gen.max", "index:1", 5)],
        ),
        ("gpu 3 corrected ecc is 2.3 million", [("gpu.ecc.volatile.corrected.total", "index:3", 2300000)]),
        ("6号卡累计不可纠正ECC 27 个", [("gpu.ecc.aggregate.uncorrected.total", "index:6", 27)]),
        (
            "sm clock 1980 on all but gpu 3, which is at 300",
            [("gpu.clock.sm", "unknown:?", 1980), ("gpu.clock.sm", "index:3", 300)],
        ),
        ("gpus 0,1 fine, gpu 3 xid 79, gpus 4-7 fine", [("xid", "index:3", 79)]),
        ("no xid 79 but xid 48 on gpu 3", [("xid", "index:3", 48)]),
        ("没有xid 79，但是有xid 48，gpu 2", [("xid", "index:2", 48)]),
        ("xid 74 on gpus 2 and 5", [("xid", "index:2", 74), ("xid", "index:5", 74)]),
        ("1号卡没事，2号卡掉卡了", [("gpu_lost", "index:2", None)]),
        (
            "三张卡里两张 65 度，一张只有 99 度",
            [
                ("gpu.temperature.core", "unknown:others1", 65),
                ("gpu.temperature.core", "unknown:others2", 65),
                ("gpu.temperature.core", "unknown:?", 99),
            ],
        ),
        ("two gpus run at 101 C", [("gpu.temperature.core", "unknown:?x2", 101)]),
        (
            "fan 2 of 6 in the chassis reads 0 rpm",
            [("sensor.kind", "fan 2", "fan"), ("sensor.state", "fan 2", "critical")],
        ),
        ("机箱3号风扇转速为0", [("sensor.kind", "3号风扇", "fan"), ("sensor.state", "3号风扇", "critical")]),
        ("power limit default 700 W", [("gpu.power.limit.default", "unknown:?", 700.0)]),
        ("someone cut the power cap from 700 W down to 350 W, it draws 348 W", LOWERED),
        ("功率上限被人从 700 W 降到 350 W，功耗 348 W", LOWERED),
        ("power limit 350 W of 700 W, draw 348 W", LOWERED),
        ("功率上限 350/700 W，功耗 348 W", LOWERED),
        ("host ram 1003 of 1007 GB used", [("node.memory.available.share", "", 0.0)]),
        (
            "gpu0 61C gpu1 62C gpu2 94C",
            [
                ("gpu.temperature.core", "index:0", 61),
                ("gpu.temperature.core", "index:1", 62),
                ("gpu.temperature.core", "index:2", 94),
            ],
        ),
        ("gpu 3 sits at 4%, bad?", [("gpu.utilization.core", "index:3", 4)]),
        ("gpu 3 is throttling", []),  # what lowers the clocks is not said
        ("0 of 8 gpus throttling", [("gpu.clock.event.hw_slowdown", "unknown:?", False)]),
    ],
)
def test_a_number_goes_to_the_thing_that_it_stands_with(text: str, facts: list[tuple[str, str, Value]]) -> None:
    assert sorted((one for one in said(text) if one[0] != "gpu.name"), key=str) == sorted(facts, key=str)


@each(
    "text",
    [
        "psu temp is 62 C",
        "gpu 2 temp -3 C",
        "温度-5度",
        "zorp count 17 on gpu 5",
    ],
)
def test_what_is_of_no_gpu_or_no_reading_is_quoted(text: str) -> None:
    query = understand(f"{text}, ok?")
    assert not query.observations
    assert query.unread


@each(
    "text",
    [
        "all ok but xid 79, ok?",
        "gpu 3 had xid 48, fine?",
        "dmesg里有 Xid 94,是4号卡",
        "3 AER fatal errors on gpu 2 today",
    ],
)
def test_a_report_is_judged_and_not_explained(text: str) -> None:
    assert understand(text).intent in (Intent.VERDICT, Intent.DIAGNOSE)


@each(
    "sentence",
    [
        "all reduce is 2x slower than yesterday", "all reduce 3 times slower", "all reduce 比昨天慢 2 倍",
        "clock 20% lower than before", "gpu memory 60% fragmented", "gpu memory 10% free",
        "torch profiler shows cudaStreamSynchronize 60% of cpu time",
    ],
)  # fmt: skip
def test_how_two_things_differ_or_a_share_of_something_else_is_no_reading(sentence: str) -> None:
    assert said(sentence) == []


@each(
    ("sentence", "fact", "subject", "value"),
    [
        ("uptime 45 days", "node.uptime", "", 45 * 86400.0),
        ("node up 20 days, xid 119", "node.uptime", "", 20 * 86400.0),
        ("运行时间 3 天", "node.uptime", "", 3 * 86400.0),
        ("all reduce 200 GB/s", "benchmark.collective.busbw.largest", "unknown:?", 200.0),
        ("gpu memory 60% used", "gpu.memory.share", "unknown:?", 60.0),
        ("八卡H800有一张卡掉了", "gpu_lost", "unknown:?", None),
    ],
)
def test_a_number_keeps_its_unit_and_its_thing(sentence: str, fact: str, subject: str, value: Value) -> None:
    assert (fact, subject, value) in said(sentence)


@each(
    "sentence",
    [
        "temps fine, GPU count 7/8, ok for training?", "temps fine, 7/8 GPUs, ok?", "power ok and gpu count is 7 of 8, ok?",
        "温度正常，GPU 数量 7/8，能训练吗",
    ],
)  # fmt: skip
def test_so_many_gpus_of_so_many_are_a_count_and_no_reading_named_ahead_of_it(sentence: str) -> None:
    assert {(o.fact, o.value) for o in understand(sentence).observations} == {
        ("node.gpu.count", 7),
        ("node.gpu.expected", 8),
    }


ECC, REMAP = "gpu.ecc.volatile", "gpu.row_remap"


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("1 volatile correctable ECC error, 0 uncorrectable, is that ok?", {f"{ECC}.corrected.total": 1, f"{ECC}.uncorrected.total": 0}),
        ("0 volatile correctable ECC errors, 4 uncorrectable, is that ok?", {f"{ECC}.corrected.total": 0, f"{ECC}.uncorrected.total": 4}),
        ("7 volatile single bit errors, no uncorrectable, fine?", {f"{ECC}.corrected.total": 7, f"{ECC}.uncorrected.total": 0}),
        ("9 uncorrectable remapped rows, no failure, no pending", {f"{REMAP}.uncorrectable": 9, f"{REMAP}.failure": False, f"{REMAP}.pending": False}),
        ("9 uncorrectable remapped rows, failure yes", {f"{REMAP}.uncorrectable": 9, f"{REMAP}.failure": True}),
        ("remap rows 8, nothing pending, ok?", {f"{REMAP}.uncorrectable": 8, f"{REMAP}.pending": False}),
        ("all links up, no inactive links, no links inactive", {"port.state": "active"}),
        ("links are inactive, no errors", {"link.state": "inactive"}),
    ],
)  # fmt: skip
def test_a_count_belongs_to_the_kind_that_stands_next_to_it_and_no_x_is_none(
    text: str, facts: dict[str, object]
) -> None:
    assert {o.fact: o.value for o in understand(text).observations} == facts


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("my 4090 sits at 83C hotspot 94C, fine?", {"gpu.temperature.core": 83, "gpu.temperature.hotspot": 94}),
        ("GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required), fine?", {"gpu.recovery_action": "gpu_reset"}),
        ("the recovery action went from 0x0 to 0x2 (Node Reboot Required)", {"gpu.recovery_action": "node_reboot"}),
        ("recovery action is none, x1 on gpu 3", {"gpu.recovery_action": "none", "gpu.pcie.width": 1}),
    ],
)  # fmt: skip
def test_a_hotspot_is_no_core_and_a_code_in_hex_no_lanes(text: str, facts: dict[str, object]) -> None:
    assert {o.fact: o.value for o in understand(text).observations if o.fact != "gpu.name"} == facts


@pytest.mark.parametrize(
    "text", ["Xid 154 GPU Reset Required, keep the job?", "xid 79 GPU has fallen off the bus, keep it?"]
)
def test_the_words_of_a_code_behind_it_count_nothing(text: str) -> None:
    found = understand(text)
    assert len(found.slots.xid) == 1
    assert not any("x154" in str(o.subject) or "x79" in str(o.subject) for o in found.observations)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("Xid 154 GPU Reset Required, keep the job?", "gpu_reset"),
        ("xid 154 went from None to Node Reboot, go on?", "node_reboot"),
        ("XID 154 (Drain and Reset) on gpu 3, can I use it?", "drain_and_reset"),
        ("xid 154 on gpu 3, can I use it?", None),
    ],
)
def test_xid_154_is_told_with_the_action_that_it_names(text: str, action: str | None) -> None:
    told = [o.value for o in understand(text).observations if isinstance(o.value, Event)]
    assert [event.get("recovery") for event in told] == [action]
