"""What people state is evidence: read as facts where it can be, and never in the way of the truth where it cannot."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from assistant.diagnosis import diagnose
from assistant.dialogue import Turn, answerer
from assistant.intent import phrases
from assistant.intent.parse import understand
from assistant.intent.query import Intent, Query
from assistant.intent.stated import _rows
from assistant.intent.tables import tables
from assistant.reply import Reply
from assistant.session.concluding import rooted
from assistant.values import Problem, parse
from knowledge.facts import FactSpec, Kind, vocabulary
from knowledge.lexicon import lexicon
from knowledge.observation import Event, Observation, Origin, Scope, Source, gpu, node
from knowledge.readings import Rating, scales
from rules.condition import FactLeaf, Op, leaves
from rules.loader import RuleSet, load
from rules.model import Severity
from tests.assistant.dialogue.talk import understood
from tests.cases import Faults, each

HERE = Source("machine", "a look at it")
WHICH = ("gpu.index", "sensor.kind", "service.role")  # tell which thing is meant, not how it is


def told(text: str) -> dict[str, Any]:
    """The facts that a sentence tells, the first thing of each."""
    out: dict[str, Any] = {}
    for o in understand(text).observations:
        out.setdefault(o.fact, dict(o.value.fields) if isinstance(o.value, Event) else o.value)
    return out


@each(("text", "facts"), [
    ("volatile uncorrectable ecc is 3 on one A100, can I keep training on it?", {"gpu.ecc.volatile.uncorrected.total": 3}),
    ("should I RMA this GPU? row remap failure is 1", {"gpu.row_remap.failure": True}),
    ("nvlink 有一条 inactive，8 卡 H100，还能训练吗？", {"link.state": "inactive"}),
    ("two of the nvlinks on gpu 3 are down, can I keep training?", {"link.state": "inactive"}),
    ("pcie link of gpu 2 is at x8 instead of x16, can I use the node?", {"gpu.pcie.width": 8, "gpu.pcie.width.max": 16}),
    ("only 7 of 8 gpus show up in nvidia-smi, is the node usable?", {"node.gpu.count": 7, "node.gpu.expected": 8}),
    ("8卡 H100 只看到 7 张，还能用吗", {"node.gpu.count": 7, "node.gpu.expected": 8}),
    ("nvidia-smi finds 3 cards, should be 4", {"node.gpu.count": 3, "node.gpu.expected": 4}),
    ("nvidia-smi reports 15 gpus, supposed to be 16", {"node.gpu.count": 15, "node.gpu.expected": 16}),
    ("there should be 4 gpus, nvidia-smi detects 3", {"node.gpu.count": 3, "node.gpu.expected": 4}),
    ("we bought 8 cards but nvidia-smi only detects 6", {"node.gpu.count": 6, "node.gpu.expected": 8}),
    ("lspci sees 6 gpus, there ought to be 8", {"node.pci.gpu_count": 6, "node.gpu.expected": 8}),
    ("nvidia-smi 里显示 6 张卡，应该是 8 张", {"node.gpu.count": 6, "node.gpu.expected": 8}),
    ("gpu 3 has 5 uncorrectable ecc errors and a pending row remap, is it usable",
     {"gpu.ecc.volatile.uncorrected.total": 5, "gpu.row_remap.pending": True}),
    ("GPU 3 温度 95 度，可以继续训练吗", {"gpu.temperature.core": 95}),
    ("fabric manager is not running, can I start the training?", {"node.service.fabric_manager.state": "stopped"}),
    ("驱动没加载，可以用吗", {"node.driver.state": "not_loaded"}),
    ("gpu.row_remap.failure is true, can I use it?", {"gpu.row_remap.failure": True}),
    ("GPU 2 上 ECC 双比特错误 2 个还能用吗", {"gpu.ecc.volatile.uncorrected.total": 2}),
    ("power brake is active on gpu 4, is it usable?", {"gpu.clock.event.hw_power_brake": True}),
    ("nvlink 4 on gpu 0 is inactive, can I train?", {"link.state": "inactive"}),
    ("3号卡易失性不可纠正ECC有7个，还能接着训吗", {"gpu.ecc.volatile.uncorrected.total": 7}),
    ("ecc 0, retired pages 0, HBM 106 C. is that ok?",
     {"gpu.ecc.volatile.uncorrected.total": 0, "gpu.retired_pages.double_bit": 0, "gpu.temperature.memory": 106}),
    ("temp is not 67 but 97, ok?", {"gpu.temperature.core": 97}),
    ("说错了，温度不是 97 度是 67 度，还用管吗", {"gpu.temperature.core": 67}),
    ("有一张卡 pcie 只有 x4，应该是 x16，能凑合用吗", {"gpu.pcie.width": 4, "gpu.pcie.width.max": 16}),
    ("fabricmanager 没挂，nvlink 也没断，可以跑吧", {"node.service.fabric_manager.state": "running", "link.state": "active"}),
    ("机箱冒烟了，ecc 是 0，能继续跑吗", {"node.hazard": "smoke", "gpu.ecc.volatile.uncorrected.total": 0}),
    ("remapped rows pending no, failure no, can I use the card?", {"gpu.row_remap.pending": False, "gpu.row_remap.failure": False}),
    ("一个电源模块坏了，机器还能用吗", {"psu.state": "failed"}),
    ("SRAM uncorrectable 2 with threshold exceeded yes",
     {"gpu.ecc.volatile.uncorrected.sram": 2, "gpu.ecc.sram_threshold_exceeded": True}),
    ("SRAM 不可纠正 2，阈值未超过", {"gpu.ecc.volatile.uncorrected.sram": 2, "gpu.ecc.sram_threshold_exceeded": False}),
    ("SRAM 不可纠正错误 2 个，已超过阈值", {"gpu.ecc.sram_threshold_exceeded": True}),
    ("lspci 8 个，nvidia-smi 7 个", {"node.pci.gpu_count": 8, "node.gpu.count": 7}),
    ("nvidia-smi 7, lspci shows 8 gpus", {"node.pci.gpu_count": 8, "node.gpu.count": 7}),
    ("显存单比特错误 100 多万次", {"gpu.ecc.volatile.corrected.total": 1_000_000}),
    ("load 5，cpu 30%，正常吗", {"node.load.1m": 5.0, "node.cpu.busy": 30.0}),
    ("/dev/shm 64M，dataloader 报 bus error", {"node.shm.size": 64.0, "python_error": {"kind": "dataloader_shm"}}),
    ("throttle reasons: none", {"gpu.clock.event.hw_slowdown": False}),
])  # fmt: skip
def test_values_and_states_become_facts(text: str, facts: dict[str, Any]) -> None:
    assert told(text).items() >= facts.items()
    assert all(o.origin is Origin.TOLD for o in understand(text).observations)


@each("text", [
    "is the row remap pending on gpu 2?", "what is a row remap failure?", "is this node ok?", "can I use gpu 3?",
    "no errors in dmesg, can I use the node?", "we start a new job tomorrow, is the node ok?", "这个节点健康吗？",
    "is ecc on?", "how many GPUs are there?", "没有报错，这台机器可以用吗", "we have 8 H100 here, can I use the node?",
])  # fmt: skip
def test_a_question_states_nothing(text: str) -> None:
    query = understand(text)
    assert not query.observations
    assert not query.unread


@each(
    ("text", "facts"),
    [
        (
            "row remapper shows 1 correctable remap, 0 pending, no failure. RMA?",
            {"correctable": 1, "pending": False, "failure": False},
        ),
        (
            "row remapper: 1 correctable, 0 uncorrectable, 0 pending, 1 failed",
            {"correctable": 1, "uncorrectable": 0, "pending": False, "failure": True},
        ),
        ("remapped rows 1, pending no, failure yes", {"uncorrectable": 1, "pending": False, "failure": True}),
        (
            "remapped rows: 2 uncorrectable, 1 pending, 0 failed",
            {"uncorrectable": 2, "pending": True, "failure": False},
        ),
        ("no row remap pending, 2 uncorrectable remaps", {"pending": False, "uncorrectable": 2}),
        ("failure 1 for row remapping", {"failure": True}),
        ("行重映射 1 次，待处理 0，失败 0", {"uncorrectable": 1, "pending": False, "failure": False}),
    ],
)
def test_in_a_list_a_nought_is_of_its_own_fact(text: str, facts: dict[str, Any]) -> None:
    assert told(text) == {f"gpu.row_remap.{name}": value for name, value in facts.items()}
    assert not understand(text).unread


@each(
    ("text", "facts"),
    [
        ("batch size 2 per gpu gives 20% util", {"gpu.utilization.core": 20}),
        ("num_workers=0 and gpu util 20%", {"gpu.utilization.core": 20}),
        ("昇腾910b3 芯片温度 78 度", {"gpu.temperature.core": 78, "gpu.vendor": "huawei"}),
        (
            "pcie replay counter on gpu 2 is climbing, 41200 now",
            {"gpu.pcie.replay": 41200, "gpu.pcie.replay.growing": True},
        ),
        (
            "mlx5_2 has 5000 symbol errors, link downed 3",
            {"port.counters.symbol_error": 5000, "port.counters.link_downed": 3},
        ),
        ("ttft p99 is 6s on our vllm server", {"serving.ttft.p99": 6}),
        ("ibstat says Polling / Down on mlx5_3 only", {"port.state": "down"}),
        ("no space left on device: /dev/shm", {"node.shm.share": 100}),
    ],
)
def test_a_number_is_of_what_it_stands_with_and_no_setting_or_name_is_a_reading(
    text: str, facts: dict[str, Any]
) -> None:
    assert told(f"{text}, bad?") == facts


@each(
    ("text", "facts"),
    [
        ("clocks_event_reasons.sw_power_cap is Active during the run, bad?", {"sw_power_cap": True}),
        ("clocks_throttle_reasons.hw_thermal_slowdown is Active", {"hw_thermal": True}),
        ("clocks_event_reasons.hw_slowdown: Not Active", {"hw_slowdown": False}),
        ("clocks_event_reasons.sw_thermal_slowdown: Active", {"sw_thermal": True}),
        ("clocks_throttle_reasons.gpu_idle is Active", {"idle": True}),
        ("clocks_event_reasons.active is 0x0000000000000004", {"sw_power_cap": True}),
    ],
)
def test_a_field_of_nvidia_smi_is_its_own_reason(text: str, facts: dict[str, Any]) -> None:
    assert told(text) == {f"gpu.clock.event.{name}": value for name, value in facts.items()}


@each(
    "text",
    [
        "GPU 5 的 NVLink 只有 12 条是 active，另外 6 条 inactive，要返修吗？",
        "GPU 5 has 12 active NVLinks and 6 inactive",
        "GPU 5: 12 nvlinks active, 6 down",
    ],
)
def test_links_that_are_down_are_of_the_same_gpu(text: str) -> None:
    found = {(o.fact, o.subject.up(Scope.GPU).id, o.value) for o in understand(text).observations}  # type: ignore[union-attr]
    assert found == {
        ("gpu.nvlink.active", "index:5", 12),
        ("gpu.nvlink.inactive", "index:5", 6),
        ("link.state", "index:5", "inactive"),
    }


@each(
    ("text", "facts", "unread"),
    [
        (
            "HW thermal slowdown was active yesterday, not active now, fixed?",
            {"gpu.clock.event.hw_thermal": False},
            "HW thermal slowdown was active yesterday",
        ),
        ("gpu 3 was 93 C yesterday, xid 79 now", {"xid": {}}, "gpu 3 was 93 C yesterday"),
    ],
)
def test_what_was_is_not_how_it_is(text: str, facts: dict[str, Any], unread: str) -> None:
    assert told(text) == facts
    assert understand(text).unread == (unread,)


@each(
    ("text", "facts", "other", "kind"),
    [
        ("GPU 0 was at 93C yesterday, today it's 61C, ok?", {"gpu.temperature.core": 61}, 93, "past"),
        ("昨天 GPU 4 温度 93 度，今天 61 度，还要管吗", {"gpu.temperature.core": 61}, 93, "past"),
        ("gpu 3 was 93 C yesterday and is 61 C today, ok?", {"gpu.temperature.core": 61}, 93, "past"),
        (
            "the port should be at 400G but is at 200G, ok?",
            {"port.rate": 200, "port.rate.expected": 400},
            400,
            "expected",
        ),
        ("端口速率 200G，应该是 400G，能用吗？", {"port.rate": 200, "port.rate.expected": 400}, 400, "expected"),
        (
            "gpu 3 shows a 350W cap instead of 700W, ok?",
            {"gpu.power.limit": 350, "gpu.power.limit.default": 700},
            700,
            "expected",
        ),
        ("gpu 2 温度应该是 60 度，实际 92 度，能用吗", {"gpu.temperature.core": 92}, 60, "expected"),
    ],
)
def test_what_was_or_should_be_is_what_the_reading_is_held_against(
    text: str, facts: dict[str, Any], other: float, kind: str
) -> None:
    query = understand(text)
    assert told(text) == facts
    assert [(c.other, c.kind) for c in query.compared] == [(other, kind)]
    assert query.unread == ()


@each(
    ("text", "facts"),
    [
        ("温度从昨天开始一直 93 度，现在还是", {"gpu.temperature.core": 93}),
        ("since yesterday gpu 3 is at 95 C, now it is slow", {"gpu.temperature.core": 95}),
        ("/dev/shm is 64M", {"node.shm.size": 64}),
        ("/dev/shm 只有 64M", {"node.shm.size": 64}),
        ("内存 2T 只剩 3G，还能跑吗", {"node.memory.available": 3072}),
        ("服务器 2T 内存，可用只剩 3G", {}),
        ("host RAM 2T, only 3G free", {}),
        (
            "16 nvlinks active, 2 other links down",
            {"gpu.nvlink.active": 16, "gpu.nvlink.inactive": 2, "link.state": "inactive"},
        ),
        ("sram threshold is 10, errors 2", {}),
        ("corrected ecc errors 2M", {"gpu.ecc.volatile.corrected.total": 2_000_000}),
    ],
)
def test_a_time_and_a_unit_are_what_they_are_beside(text: str, facts: dict[str, Any]) -> None:
    assert told(text) == facts


@each(("text", "unread"), [
    ("the chassis beeps and a strange led is on, can I use the node?", "the chassis beeps and a strange led is on"),
    ("the whatsit counter is 17 on gpu 3, can I keep using it?", "the whatsit counter is 17 on gpu 3"),
    ("那个灯一直在报警，还能用吗", "那个灯一直在报警"),
    ("nv_peermem isn't loaded, will NCCL still work?", "nv_peermem isn't loaded"),
    ("temp 60 C, ecc 0, and the wobbulator says RED. ok?", "and the wobbulator says RED"),
    ("retired pages grow by 5 per minute, temp 50 C, ok?", "retired pages grow by 5 per minute"),
    ("one gpu is at 60 C, another at 99 C, ok?", "another at 99 C"),
])  # fmt: skip
def test_what_is_no_fact_is_echoed_word_for_word(text: str, unread: str) -> None:
    query = understand(text)
    assert query.unread == (unread,)
    assert unread in query.echo.in_(query.lang)


@each(
    "text",
    ["利用率偶尔会掉到 0，别的都正常", "GPU utilization falls to 0 % every 30 s", "带宽忽高忽低，390 到 210 来回跳"],
)
def test_how_busy_it_is_for_some_of_the_time_is_no_reading(text: str) -> None:
    assert understand(text).observations == ()


@each(("text", "denied"), [
    ("no smoke comes out and temp is 60 C, can I use it?", "node.hazard"), ("没有冒烟，温度 60 度，可以用吗", "node.hazard"),
    ("fabric manager isn't failed, it's running. good to go?", "failed"), ("I never said the link is down; it's pcie x8, is it ok?", "link.state"),
])  # fmt: skip
def test_what_is_denied_is_no_fact(text: str, denied: str) -> None:
    facts = told(text)
    assert facts
    assert denied not in {*facts, *map(str, facts.values())}


def test_a_thing_is_what_its_own_clause_names() -> None:
    said = understand("gpu 0-2 are at 1980 MHz and gpu 7 at 345, why?").observations
    assert {o.subject.id: o.value for o in said} == {"index:0": 1980, "index:1": 1980, "index:2": 1980, "index:7": 345}
    said = understand("ib0 active, ib3 down, keep on?").observations
    assert {o.subject.id: o.value for o in said} == {"ib0": "active", "ib3": "down"}


def test_others_are_no_part_of_what_is_asked_about() -> None:
    said = understand("7 of 8 GPUs at 1980 MHz and one at 345 MHz with 29 C, what is it?").observations
    clocks = {o.subject.id: o.value for o in said if o.fact == "gpu.clock.sm" and isinstance(o.value, int)}
    assert sorted(clocks.values()) == [345, *[1980] * 7]
    assert [o.subject.id for o in said if o.fact == "gpu.temperature.core"] == [
        i for i, v in clocks.items() if v == 345
    ]


def test_every_statement_can_be_read_and_tells_facts_that_exist() -> None:
    known = vocabulary()
    _, rows = _rows()
    assert len(rows) == len(lexicon().statements)
    for row, tells in rows:
        assert phrases.firsts(row)
        for one in tells:
            spec = known[one.fact]
            if spec.kind is Kind.EVENT:
                assert set(one.where) <= set(spec.fields), one
            elif not str(one.value).startswith("<"):
                assert not isinstance(parse(spec, str(one.value)), Problem), one
                assert one.others is None or not isinstance(parse(spec, one.others), Problem), one


# --- the law: no yes over a bad value -----------------------------------------------------


def bad_values(ruleset: RuleSet) -> dict[str, set[str]]:
    """Each fact that a rule of severity error or worse compares, with values for which it holds, as they would be said."""
    out: dict[str, set[str]] = {}
    for rule in ruleset.rules:
        if rule.severity.rank < Severity.ERROR.rank:
            continue
        for leaf in leaves(rule.when):
            if (
                not isinstance(leaf, FactLeaf) or leaf.fact in WHICH or leaf.peer_ratio
            ):  # a share of the others' is no value
                continue
            said = _said(leaf, vocabulary()[leaf.fact])
            # What a rule reads beside the bad one ("another link is active") is usual by itself.
            usual = leaf.fact in scales() and scales()[leaf.fact].meaning(said).rating is Rating.GOOD
            if said and not usual:
                out.setdefault(leaf.fact, set()).add(said)
    return out


def _said(leaf: FactLeaf, spec: FactSpec) -> str:
    value = leaf.value
    match leaf.op, value:
        case Op.IS, bool():
            return "yes" if value else "no"
        case Op.IS, str() | int() | float():
            return str(value).replace("_", " ")
        case Op.IN, [first, *_]:
            return str(first).replace("_", " ")
        case ((Op.ABOVE | Op.AT_LEAST), (int() | float())):
            return str(value + 1) if value >= 1 or isinstance(value, int) else "0.5"
        case ((Op.BELOW | Op.AT_MOST), (int() | float())) if value > 1:
            return str(value - 1)
    return ""


@cache
def _healthy() -> tuple[Observation, ...]:
    """A node of which all that a yes rests on was read, and is fine."""
    here = node("n1")
    facts: dict[str, bool | int | str] = {
        "node.driver.state": "ok",
        "node.gpu.count": 4,
        "node.pci.gpu_count": 4,
        "log.kernel.readable": True,
    }
    gpus = [gpu(f"0000:0{i}:00.0", "n1") for i in range(1, 5)]
    return (
        *(Observation(name, here, value, source=HERE) for name, value in facts.items()),
        *(Observation("gpu.index", g, i, source=HERE) for i, g in enumerate(gpus)),
        *(Observation("gpu.nvml.reachable", g, True, source=HERE) for g in gpus),
    )


def _asked(text: str, lang: str, seen: tuple[Observation, ...]) -> tuple[Query, Reply]:
    query = understood(text, lang)
    said = [o.about(rooted(o.subject, "n1" if seen else "")) for o in query.observations]
    turn = Turn(query, lang, load(), diagnose([*seen, *said], load(), whole=bool(seen)), host="n1")
    return query, answerer(query.intent).answer(turn)


def _names(fact: str) -> dict[str, list[str]]:
    """What a fact is called in a sentence of each language: as people call it, else by its own words."""
    said = [name for name, of in lexicon().facts.items() if of == fact]
    plain = re.sub(r"[._]", " ", fact)
    means = [run.replace(" ", "") for runs in tables()["facts"].values() for run, of in runs if of == fact and not run.isascii()]  # fmt: skip
    means = [run for run in means if re.search("[a-z0-9]", run) is None]  # the blanks around Latin words are lost
    chinese = [name for name in (*said, *means) if not name.isascii()]
    return {"en": [*[n for n in said if n.isascii()][:2], plain], "zh": chinese[:2] or [fact]}


def _sentences(fact: str, value: str) -> Iterator[tuple[str, str]]:
    names = _names(fact)
    yield "en", f"{names['en'][0]} is {value} on gpu 2, can I keep using the node?"
    yield "en", f"can we train on this node? {fact} is {value}"
    yield "zh", f"{names['zh'][0]} 是 {value}，这个节点还能用吗？"


@pytest.mark.slow
def test_a_stated_bad_value_is_that_fact_with_that_value() -> None:
    with Faults() as faults:
        for fact, values in sorted(bad_values(load()).items()):
            value = sorted(values)[0]
            for lang, names in _names(fact).items():
                for name in names:
                    text = (
                        f"{name} 是 {value}，还能用吗" if lang == "zh" else f"{name} is {value}, can I keep using it?"
                    )
                    with faults.of(text):
                        assert told(text).get(fact) == parse(vocabulary()[fact], value)


def test_the_harness_gets_a_yes_from_a_healthy_node() -> None:
    assert _asked("can I keep using the node?", "en", _healthy())[1].data["usable"] == "yes"


@pytest.mark.slow
def test_no_stated_bad_value_gets_a_yes() -> None:
    tried = 0
    with Faults() as faults:
        for fact, values in sorted(bad_values(load()).items()):
            for value in sorted(values)[:2]:
                for lang, text in _sentences(fact, value):
                    for seen in ((), _healthy()):
                        with faults.of(text):
                            query, reply = _asked(text, lang, seen)
                            if query.intent is Intent.VERDICT:
                                tried += 1
                                assert reply.data.get("usable") != "yes", reply.headline
                            assert not reply.headline.startswith(("Yes", "可以")), reply.headline
    assert tried > 400


@each(
    "text",
    [
        "nvidia-smi finds 3 cards, should be 4",
        "nvidia-smi 里显示 6 张卡，应该是 8 张",
        "there should be 4 gpus, nvidia-smi detects 3",
    ],
)
def test_a_tool_that_counts_the_gpus_does_not_hang(text: str) -> None:
    assert understand(text).symptoms == ("gpu-missing",)


@each(
    "text",
    ["training hung at step 900, all gpus 100% util but only ~130W", "训练卡住了，所有GPU利用率100%，功耗只有120W"],
)
def test_that_a_job_hangs_leads_over_how_busy_it_looks(text: str) -> None:
    said = understand(text)
    assert said.symptoms[0] == "hang"
    assert "gpu-missing" not in said.symptoms


@pytest.mark.parametrize(
    "text",
    ["our DGX: is docker running?", "我们的 DGX 上 docker 在跑吗", "客户的节点上 fabricmanager 启动了没有", "我们的节点 dcgm 还正常吗"],
)  # fmt: skip
def test_whether_a_service_runs_is_asked_and_not_told(text: str) -> None:
    assert understand(text).observations == ()
    assert understand("our DGX: docker is down, ok?").observations
