"""Two values that a sentence holds against each other: whose they are, and what the second one is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assistant.intent.parse import understand
from knowledge.compared import quantities
from knowledge.facts import vocabulary
from knowledge.observation import Origin
from tests.cases import each


@each(
    ("text", "quantity", "value", "other", "kind", "of"),
    [
        ("gpu 6 sits at 1200 MHz while the rest are at 1755, all at 100% util", "clock", 1200, 1755, "peers", "6"),
        ("one GPU out of 8 runs at 1200 MHz while the others are at 1900", "clock", 1200, 1900, "peers", ""),
        ("gpu 3 draws 300 W, the rest of the 8 draw 690", "power-draw", 300, 690, "peers", "3"),
        ("3号卡只有1200MHz，其他卡都是1755MHz", "clock", 1200, 1755, "peers", "3"),
        ("everyone else runs at x16 but gpu 2 at x8", "pcie-width", 8, 16, "peers", "2"),
        ("rank 13 takes 940 ms per step, others 610", "rank-step", 0.94, 0.61, "peers", "13"),
        ("mlx5_3 links at 200 Gb/s, the other HCAs at 400", "port-rate", 200, 400, "peers", "mlx5_3"),
        ("node07 gets 38 GB/s, others 370 GB/s", "bandwidth", 38, 370, "peers", "node07"),
        ("HCA should be 400 Gb/s and shows 200", "port-rate", 200, 400, "expected", ""),
        ("spec says 700W limit, nvidia-smi shows 350", "power-limit", 350, 700, "expected", ""),
        ("used to be x16 now x8", "pcie-width", 8, 16, "past", ""),
        ("this machine used to do 470 GB/s busbw now im getting 210", "bandwidth", 210, 470, "past", ""),
        ("d2h copies dropped from 52 GB/s to 12 GB/s", "host-copy", 12, 52, "past", ""),
        ("主机到设备的拷贝以前 54 GB/s，现在 26 GB/s", "host-copy", 26, 54, "past", ""),
        ("MFU dropped from 48% to 31%", "mfu", 31, 48, "past", ""),
        ("busbw fell to 45 GB/s from 455 GB/s", "bandwidth", 45, 455, "past", ""),
        ("网卡以前是 400G 现在只有 200G", "port-rate", 200, 400, "past", ""),
        ("mlx5_1 should not run at 200 of 400 Gb/s", "port-rate", 200, 400, "expected", "mlx5_1"),
        ("we bought 80 GB of gpu memory, it only shows 40 GB", "memory-size", 40, 80, "expected", ""),
        ("显存标称 80G，只显示 40960MiB", "memory-size", 40, 80, "expected", ""),
        ("gpu 2 has 70 GB of memory in use, the others 40 GB", "memory-used", 70, 40, "peers", "2"),
        ("8 卡机，7 张 1980MHz，1 张 1200MHz", "clock", 1200, 1980, "peers", ""),
        ("同样的任务放 A 节点跑 1.0s/step，放 B 节点跑 1.3s/step，配置一样", "step", 1.3, 1.0, "peers", "B 节点"),
        ("两张卡一张 x16 一张 x8", "pcie-width", 8, 16, "peers", ""),
        ("two cards, one at x16 and one at x8", "pcie-width", 8, 16, "peers", ""),
        ("这台 460 GB/s，那台 210 GB/s", "bandwidth", 210, 460, "peers", "那台"),
        ("node a takes 1.3 s per step, node b 1.0 s per step", "step", 1.3, 1.0, "peers", "node a"),
    ],
)
def test_the_words_around_two_values_tell_what_they_are(
    text: str, quantity: str, value: float, other: float, kind: str, of: str
) -> None:
    query = understand(text)
    assert [(c.quantity, c.value, c.other, c.kind, c.of[1]) for c in query.compared] == [
        (quantity, value, other, kind, of)
    ]
    assert query.unread == ()
    assert all(o.origin is Origin.TOLD for o in query.observations)


@each(
    "text",
    [
        "should the port be at 400 Gb/s or 200 Gb/s?",
        "what is the difference between pcie x16 and x8?",
        "gpu 5 was at 101 C on the memory and 70 C on the core, ok?",
        "the cpu is at 91 C, the others at 62",
        "gpu 3 was 93 C yesterday, xid 79 now",
        "gpu 2 nvlink 17 of 18 links active",
        "expected full nvlink, gpu 2 shows 12 links up out of 18",
        "H100 has 700 W and A100 400 W, which one should I buy?",
        "batch size went from 32 to 64 and now OOM",
        "spent 40k last month, avg gpu util 22%, what to cut first",
        "nccl 2.18 on rank 3 while others have 2.19",
        "gpu 3 is at 85 C, 20 C hotter than the others",
        "1 张卡 650W，温度 60 度",
    ],
)
def test_two_numbers_are_no_comparison(text: str) -> None:
    assert understand(text).compared == ()


@each("text", ["gpu 5 is 15 degrees hotter than the others, normal?", "只有5号卡温度比别的高15度，正常吗"])
def test_by_how_much_two_differ_is_the_value_of_neither(text: str) -> None:
    assert understand(text).observations == ()


@given(st.integers(400, 1400), st.integers(1500, 1980), st.integers(0, 7), st.booleans())
def test_the_order_of_the_sides_changes_nothing(low: int, high: int, gpu: int, first: bool) -> None:
    one, rest = f"gpu {gpu} runs at {low} MHz", f"the others run at {high} MHz"
    pair = understand(f"{one}, {rest}" if first else f"{rest}, {one}").compared[0]
    assert (pair.value, pair.other, pair.of) == (low, high, ("gpu", str(gpu)))


def test_the_size_of_memory_is_not_what_is_in_use() -> None:
    told = understand("A100 80G 显存应该是80G，nvidia-smi里只显示 40960MiB").observations
    assert {(o.fact, o.value) for o in told} == {("gpu.name", "A100"), ("gpu.memory.total", 40960)}


def test_what_is_counted_or_named_beside_is_told_of_each() -> None:
    told = {(o.subject.id, o.value) for o in understand("gpus 0 and 1 at 1980 MHz, gpu 2 at 700 MHz").observations}
    assert {v for _, v in told} == {1980, 700}
    counted = understand("gpu 2 has 8 nvlinks up, the other seven have 18").observations
    assert sorted(o.value for o in counted if o.fact == "gpu.nvlink.active") == [8, *[18] * 7]  # type: ignore[type-var]


def test_every_quantity_is_of_facts_of_the_vocabulary() -> None:
    names = {name for q in quantities() for name in (q.fact, q.expected) if name}
    assert all(name in vocabulary() for name in names)
    assert all(q.meaning and q.do for q in quantities())


@each("said", ["power 690 of 700 W, throttle: SW Power Cap", "功耗 690/700 W，软件功耗上限 active"])
def test_the_name_of_a_throttle_reason_is_no_power_limit(said: str) -> None:
    """What a GPU draws beside SW Power Cap is its draw; a cap of so many watts is a limit."""
    assert "gpu.power.limit.default" not in {o.fact for o in understand(said).observations}
    assert "gpu.power.limit.default" in {o.fact for o in understand("power capped 500 of 700 W, ok?").observations}
