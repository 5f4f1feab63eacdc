"""Chinese as engineers type it in a chat: blanks for commas, several values, English words. The first line says what is meant."""

from __future__ import annotations

from assistant.diagnosis import diagnose
from assistant.dialogue import Turn, answerer
from assistant.intent.normal import language
from assistant.intent.parse import understand
from assistant.reply import Reply
from rules.loader import load
from tests.cases import each

BETTER = "更好的一侧"
FINE = ("正常", "无需", "没有问题", "可以", "能判断的都正常", "仅凭这些无需")


def answered(said: str) -> Reply:
    query = understand(said, lang="zh")
    assert query.lang == "zh"
    found = diagnose(query.observations, load())
    return answerer(query.intent).answer(Turn(query, query.lang, load(), found))


def first(reply: Reply) -> str:
    shown = reply.shown or reply.diagnosis
    return reply.headline or (shown.verdict.text.in_("zh") if shown is not None else "")


@each(
    "said",
    (
        "volatile uncorrectable 是 0，aggregate uncorrectable 是 2，之前没注意",
        "aggregate 是 5 volatile 是 0",
        "volatile 双比特 0，累计双比特 3，之前没看过",
        "uncorrectable 0，correctable 12，以前没统计",
    ),
)
def test_two_counters_of_one_moment_are_no_before_and_now(said: str) -> None:
    assert not understand(said).compared
    assert BETTER not in first(answered(said))


@each(
    "said, value, other",
    (
        ("7 张卡 98%，一张 61%", 61, 98),
        ("8张卡里7张利用率99% 剩一张 12% 咋回事", 12, 99),
        ("六张卡 1755MHz 两张 1200MHz", 1200, 1755),
        ("有一张 93 度，其余七张 70 度", 93, 70),
    ),
)
def test_cards_that_are_counted_are_peers(said: str, value: float, other: float) -> None:
    pair = understand(said).compared[0]
    assert (pair.kind, {pair.value, pair.other}) == ("peers", {value, other})
    assert "之前" not in first(answered(said))
    assert "gpu-missing" not in understand(said).symptoms


@each(
    "said, now, was",
    (
        ("昨天 tflops 620，今天 410，没改过代码", 410, 620),
        ("ib 端口 400G 现在协商成 200G", 200, 400),
        ("频率 1980，现在只有 1410", 1410, 1980),
    ),
)
def test_words_of_time_make_a_before_and_a_now(said: str, now: float, was: float) -> None:
    pair = understand(said).compared[0]
    assert (pair.kind, pair.value, pair.other) == ("past", now, was)


def test_a_state_of_load_is_no_utilisation() -> None:
    for said in ("满载温度 85 度", "满载 1980MHz 72 度"):
        assert all(o.fact != "gpu.utilization.core" for o in understand(said).observations)
    drawn = {o.fact: o.value for o in understand("H100 满载功耗才 130W").observations}
    assert drawn["gpu.utilization.core"] == 100  # what it draws is held against it


@each(
    "said",
    (
        "remap 2 行 failure yes",
        "row remap 2 行 pending yes 要重启吗",
        "volatile uncorrectable 1 aggregate uncorrectable 3，这卡还能用不",
        "温度都正常，但 slurm drain 原因是 gres/gpu count reported lower than configured (7 < 8)",
        "allocatable 只有 6，capacity 是 8，pod 一直 pending",
        "k8s 节点 allocatable gpu 0，nvidia-smi 能看到 8 张",
        "满载 720W 91 度 没啥问题吧",
        "gpu 1 正常 gpu 2 掉卡了",
    ),
)
def test_trouble_beside_what_is_in_order_is_the_answer(said: str) -> None:
    assert not first(answered(said)).startswith(FINE)


@each(
    "said",
    (
        "remapped rows correctable 0 uncorrectable 3 pending no failure no，要换卡吗",
        "满载 690W 72C ECC 0，没啥问题吧",
        "volatile 0 aggregate 2 要紧吗",
        "温度 45 ecc 0 xid 没有，没事吧",
    ),
)
def test_several_good_values_are_told_to_be_good(said: str) -> None:
    assert first(answered(said)).startswith(("所述情况不需要", *FINE, "就所述而言"))


@each(
    "said, begins",
    (
        ("A100 要不要关 ECC", "不要关"),
        ("推理集群能不能把 ecc 关了省点显存", "不要关"),
        ("NCCL_TIMEOUT 要不要调大", "不要先调大"),
        ("升级驱动之前 fabricmanager 要先停吗", "要先停"),
        ("xid 48 是直接 RMA 还是重启看看", "先复位"),
        ("昨天晚上重启后就好了 还需要管吗", "还要查"),
    ),
)
def test_advice_that_says_no_begins_with_it(said: str, begins: str) -> None:
    assert first(answered(said)).startswith(begins)


@each(
    "said, page",
    (
        ("看 dataloader 慢用 py-spy 还是 nsys", "py-spy-or-nsys"),
        ("dcgm-exporter 采集间隔设多少合适", "metrics-interval"),
        ("第一个 epoch 特别慢 后面就好了", "first-steps-slow"),
        ("前 100 步很慢之后稳定", "first-steps-slow"),
        ("vLLM 吞吐上不去 gpu 利用率 95", "serving-throughput-stuck"),
        ("推理利用率只有 20% 怎么跟老板解释", "utilization-of-inference"),
        ("哪些 xid 需要半夜爬起来处理", "alerts-worth-having"),
    ),
)
def test_advice_is_found_in_talk(said: str, page: str) -> None:
    assert understand(said).page == f"advice {page}"


def test_a_reboot_that_is_past_is_no_trouble_of_its_own() -> None:
    assert "node-unreachable" not in understand("重启后 volatile 是 0，aggregate 是 2").symptoms
    assert "node-unreachable" in understand("机器重启了 不知道啥原因 bmc 里没日志").symptoms


@each("said", ("k8s 里 capacity 8 allocatable 7", "光模块 rx power -15dBm", "volatile 是 0，aggregate 是 2"))
def test_english_names_in_a_chinese_sentence_leave_it_chinese(said: str) -> None:
    assert language(said, "en") == "zh"


def test_pauses_that_come_back_are_no_hang() -> None:
    for said in ("每 1000 步慢一次 大概 40 秒", "训练每跑 200 步就卡 30 秒左右", "每100个step有一次从2s涨到9s"):
        assert first(answered(said)).startswith("偶发尖峰")
