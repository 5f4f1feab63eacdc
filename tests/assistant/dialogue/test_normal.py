"""Is that normal: yes, no or it depends stands first, with the range; at rest by the model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.diagnosis import diagnose
from assistant.dialogue import Turn, answerer
from assistant.intent.parse import understand
from knowledge.at_rest import at_rest
from knowledge.compiled import shard
from knowledge.facts import vocabulary
from knowledge.readings import Rating
from rules.loader import load
from tests.cases import each

MODELS = ("H100", "A100", "V100", "T4", "L4", "RTX 4090")
RATINGS = (Rating.GOOD, Rating.OPEN, Rating.BAD)
YES, MAYBE, NO = ("Yes", "正常"), ("It depends", "视情况而定"), ("No", "不正常")


def first(said: str) -> str:
    query = understand(said)
    seen = diagnose(query.observations, load())
    return answerer(query.intent).answer(Turn(query, query.lang, load(), seen)).headline


@given(st.sampled_from(MODELS), st.integers(1, 700), st.integers(1, 700))
def test_at_rest_more_is_never_more_usual(model: str, a: int, b: int) -> None:
    usual = at_rest("gpu.power.draw", f"my idle {model}")
    assert usual is not None
    low, high = (RATINGS.index(usual.rating(v)[0]) for v in sorted((a, b)))
    assert low <= high


@pytest.mark.parametrize(
    ("en", "zh", "begins"),
    [
        ("an idle V100 draws 40 W, is that normal?", "空闲的 V100 功耗 40W，正常吗", YES),
        ("H100 idles at 125 W - is this expected?", "H100 空载功耗 125W，正常吗", MAYBE),
        ("is 260 W normal at idle for an A100", "A100待机功耗260W正常吗", NO),
        ("SM clock is 210 MHz while idle, is that usual?", "空闲时 SM 时钟 210 MHz，正常吗", YES),
        ("util 0 % and 70 GB of memory used, normal?", "GPU 利用率 0%，显存占用 70GB，正常吗", MAYBE),
        ("HBM temperature is 70 C, normal?", "HBM 温度 70 度，正常吗", YES),
        ("persistence mode is off, is that usual?", "持久模式关闭，正常吗", MAYBE),
        ("MFU of 45 %, is that normal?", "MFU 45% 正常吗", YES),
        ("is an MFU of 12 % normal?", "MFU 12% 正常吗", NO),
        ("volatile uncorrectable ecc is 3, is that normal?", "不可纠正 ECC 有 3 个，正常吗", NO),
    ],
)
def test_the_first_word_answers(en: str, zh: str, begins: tuple[str, str]) -> None:
    for said, word in zip((en, zh), begins, strict=True):
        assert first(said).startswith(word), (said, first(said))


def test_what_is_known_at_rest_is_of_facts_with_a_unit() -> None:
    for entry in shard("at_rest"):
        assert vocabulary()[entry["fact"]].unit or entry["id"] == "pcie-generation", entry[
            "id"
        ]  # counted in generations


def test_without_a_question_for_the_usual_nothing_is_called_so() -> None:
    assert not first("an idle V100 draws 40 W, can I use it?").startswith("Yes")


@each(("said", "begins"), [
    ("Remapping Failure Occurred : Yes. keep or drain", "Drain it and keep new work away"),
    ("NVRM: Xid (PCI:0000:3b:00): 94, pid=22817, name=python3, Contained: SM (0x1). my job died, can i just restart it", "Yes, restart the job"),
    ("Xid 31 报了一次，是硬件问题吗", "目前看不是"), ("is xid 48 hardware?", "Yes"), ("is xid 13 a hardware problem", "No"), ("xid 13 是代码问题吗", "目前看是"),
    ("sxid 12028 是啥意思，要停机吗", "不需要排空节点"), ("sxid 20034 要停机吗", "需要"), ("SXid 20034 nvswitch, all 8 gpus dropped from the job. reboot or rma", "Not replacing it"),
])  # fmt: skip
def test_yes_and_no_are_of_what_is_asked(said: str, begins: str) -> None:
    assert first(said).startswith(begins)


@pytest.mark.parametrize(
    "text",
    ["NCCL allreduce times out on rank 17 only, other ranks are waiting", "NCCL allreduce times out on rank 3 after 10 minutes, others wait"],
)  # fmt: skip
def test_the_number_of_a_rank_and_a_duration_are_no_share(text: str) -> None:
    from assistant.dialogue import _measure

    assert _measure.answer(understand(text), "en") is None
    judged = _measure.answer(understand("exposed communication of 17 %, ok?"), "en")
    assert judged is not None
    assert "17" in judged.headline
