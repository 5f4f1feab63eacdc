"""What "explain this" asks of a trace is understood in both languages, and has an answer that holds what was measured."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from assistant import config
from assistant.intent.parse import understand
from assistant.intent.query import Intent
from assistant.session.driver import Conversation, Eyes
from assistant.session.state import Origin
from assistant.session.talk import session_of
from assistant.trace import questions
from knowledge.language import LANGUAGES, Text
from rules.loader import load
from tests.cases import each
from tests.conftest import ROOT

STARVED = str(ROOT / "assistant" / "demos" / "data-starved" / "rank0.json.gz")
EVERY = {name: value for name, value in vars(questions).items() if isinstance(value, Text)}
EVERY |= {
    "step": questions.step(6),
    "rank": questions.rank(0),
    "finding": questions.finding("trace-data-loader-in-process"),
}
# What one whole trace of one rank cannot tell, or only a capture of Python's stacks.
ELSEWHERE = {"FUNCTION", "STRAGGLER", "FRAGMENTS", "GIL", "rank"}


@pytest.fixture(scope="module")
def talk() -> Conversation:
    settings = config.load({"format": None, "lang": None, "color": None}, {}, ())
    eyes = Eyes(settings, load(), history=False)
    found = Conversation(session_of(eyes), eyes)
    found.say("what bounds my job?", Origin(inputs=(STARVED,)))
    return found


@each("lang", LANGUAGES)
@each("name", EVERY)
def test_each_question_is_understood(name: str, lang: str) -> None:
    assert understand(EVERY[name].in_(lang), lang=lang).intent is not Intent.UNKNOWN


@pytest.mark.slow
@each("lang", LANGUAGES)
@each("name", EVERY)
def test_each_question_is_answered_from_the_trace(talk: Conversation, name: str, lang: str) -> None:
    answer = talk.say(EVERY[name].in_(lang), Origin(inputs=(STARVED,)))
    assert answer.reply.headline or answer.reply.parts
    if name not in ELSEWHERE:
        assert answer.reply.settled, answer.reply.headline


def test_a_kernel_is_asked_about_by_what_it_does() -> None:
    assert questions.kernel("ncclDevKernel_AllReduce", "communication") is questions.NCCL
    assert questions.kernel("Memcpy HtoD (Pinned -> Device)", "copy") is questions.COPIES
    assert questions.kernel("who_knows", "other") is questions.WORST
    assert (
        questions.frame("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_kernel", "kernel")
        is questions.COMPUTE
    )
    assert questions.frame("torch/utils/data/dataloader.py(701): __next__", "python") is questions.LOADER
    assert questions.frame("Optimizer.step#AdamW.step", "mark") is questions.OPTIMIZER
    assert questions.frame("train.py(11): train_step", "python") is questions.HOST
    assert questions.phase("exposed_comm") is questions.NCCL


GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_kernel"


@each("lang", LANGUAGES)
@each(("kind", "name"), [("kernel", GEMM), ("operator", "aten::mm")])
def test_one_that_is_named_is_spoken_of(talk: Conversation, kind: str, name: str, lang: str) -> None:
    meant = questions.query_of(kind, name, lang)
    read = understand(meant.text, lang=lang)
    assert getattr(read.slots, kind) == getattr(meant.slots, kind) == (name,), "typed it is the same as pointed at"
    assert read.intent is meant.intent
    for query in (None, meant):
        reply = talk.say(meant.text, Origin(inputs=(STARVED,)), query).reply
        assert name in reply.headline
        assert reply.data["answer"] == "named"
        (rank,) = reply.data["ranks"]
        assert rank["calls"] == (288 if kind == "kernel" else 96)
        assert 0 < rank["share"] <= 100
        assert f"{rank['share']:.1f} %" in reply.headline
    if kind == "kernel":
        assert rank["class"] == "gemm"
        assert len(reply.parts) > 2, "what is known of work of its class follows"


def test_the_beginning_of_a_name_is_enough_and_explain_answers_too(talk: Conversation) -> None:
    reply = talk.say("how much time does kernel sm90_xmma_gemm take?", Origin(inputs=(STARVED,))).reply
    assert reply.headline.startswith(f"Kernel {GEMM}")
    reply = talk.say("explain operator aten::addmm", Origin(inputs=(STARVED,))).reply
    assert reply.headline.startswith("Operator aten::addmm takes")


def test_one_that_takes_little_is_not_made_up(talk: Conversation) -> None:
    reply = talk.say("how much time does kernel no_such_kernel take?", Origin(inputs=(STARVED,))).reply
    assert "is not among the 3 that take most time" in reply.headline
    assert not reply.settled


@each(
    "said",
    [
        "which kernel is the worst?",
        "is the kernel log clean?",
        "kernel 5.15.0-91-generic panics",
        "is the kernel_task hung?",
        "算子太慢",
    ],
)
def test_words_behind_kernel_are_no_name(said: str) -> None:
    slots = understand(said).slots
    assert not slots.kernel
    assert not slots.operator


def test_ranks_stand_side_by_side(tmp_path: Path) -> None:
    for rank in (0, 1):
        shutil.copy(STARVED, tmp_path / f"rank{rank}.json.gz")
    settings = config.load({"format": None, "lang": None, "color": None}, {}, ())
    eyes = Eyes(settings, load(), history=False)
    files = tuple(map(str, sorted(tmp_path.iterdir())))
    reply = (
        Conversation(session_of(eyes), eyes)
        .say("how much time does operator aten::mm take?", Origin(inputs=files))
        .reply
    )
    assert len(reply.data["ranks"]) == 2
    assert "the most of 2" in reply.headline
