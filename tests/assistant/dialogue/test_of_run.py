"""Whether to stop a run: the effect of what is wrong decides, and the first word follows what was asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.diagnosis import diagnose
from assistant.dialogue import Turn, answerer
from assistant.dialogue._of_run import Fate, fate
from assistant.dialogue._should import Advised
from assistant.intent.of_run import Run, asked
from assistant.intent.parse import understand
from rules.loader import load
from rules.model import Bucket, Usable

STOPS = ("should I stop the run?", "shall we abort training?", "do I have to kill my job", "要不要停训练", "任务需要杀掉吗")  # fmt: skip
GOES_ON = ("can I let it finish the night?", "can the job go on until monday?", "is it safe to keep training?", "还能接着跑吗", "能让它跑完吗")  # fmt: skip
EITHER = ("kill the job or wait?", "do i stop the run or let it continue?", "停训练还是继续跑")
OTHERS = ("how do I stop the job?", "why did the training stop?", "the job was killed", "训练停了", "怎么停止训练", "can I reset the GPU?", "is gpu 3 ok?", "stop")  # fmt: skip
# What is told, and the first words of the answer in both languages to "stop?" and to "can it go on?".
TOLD = (
    (("xid 79 on gpu 3, ", "3号卡 xid 79，"), ("Yes, stop", "要停"), ("No, stop", "不能继续")),
    (("gpu 3 is hw thermal throttling, ", "3号卡硬件过热降频，"), ("Not at once", "不必立刻停"), ("Only to its next", "只可跑到")),
    (("row remap pending on gpu 3: yes, ", "3号卡行重映射 pending，"), ("No, let", "不用停"), ("Yes, let", "可以继续")),
)  # fmt: skip


@pytest.mark.parametrize(("sentences", "run"), [(STOPS, Run.STOP), (GOES_ON, Run.GO_ON), (EITHER, Run.EITHER), (OTHERS, None)])  # fmt: skip
def test_what_is_asked_of_a_run(sentences: tuple[str, ...], run: Run | None) -> None:
    assert {s: asked(s) for s in sentences} == dict.fromkeys(sentences, run)


@given(st.sampled_from(Bucket), st.sampled_from([u for u in Usable if u is not Usable.UNKNOWN]))
def test_a_run_goes_on_only_where_the_thing_can_be_used(bucket: Bucket, usable: Usable) -> None:
    end = fate([Advised("it", bucket, "do", usable.stops)], usable)
    assert (end is Fate.GO_ON) <= (usable is Usable.YES)
    assert usable.stops <= (end in (Fate.STOP, Fate.CHECKPOINT))


@pytest.mark.parametrize(("said", "stop", "on"), TOLD, ids=[t[0][0] for t in TOLD])
def test_the_opposite_question_has_the_opposite_first_word(
    said: tuple[str, str], stop: tuple[str, str], on: tuple[str, str]
) -> None:
    for n, (first, second) in enumerate(
        (("should I stop the run?", "can it finish the night?"), ("要不要停训练", "还能接着跑吗"))
    ):
        for question, begins in ((first, stop[n]), (second, on[n])):
            q = understand(said[n] + question)
            reply = answerer(q.intent).answer(Turn(q, q.lang, load(), diagnose(q.observations, load())))
            shown = reply.headline
            assert shown.startswith(begins), (question, shown)
            assert not q.unread


@pytest.mark.parametrize("said", ["training hangs in nccl, should I kill the job?", "训练卡住了，要不要杀掉任务"])
def test_a_run_that_hangs_is_looked_at_and_then_stopped(said: str) -> None:
    query = understand(said)
    assert query.symptoms[0] == "hang", "what is asked of the run is no complaint"
    reply = answerer(query.intent).answer(Turn(query, query.lang, load(), diagnose((), load())))
    assert reply.shown is not None
    assert "py-spy dump" in reply.shown.verdict.text.in_(query.lang)[:120]
