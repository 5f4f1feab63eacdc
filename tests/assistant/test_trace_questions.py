"""What "explain this" asks of a trace is understood in both languages, and has an answer that holds what was measured."""

from __future__ import annotations

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


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", EVERY)
def test_each_question_is_understood(name: str, lang: str) -> None:
    assert understand(EVERY[name].in_(lang), lang=lang).intent is not Intent.UNKNOWN


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", EVERY)
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
