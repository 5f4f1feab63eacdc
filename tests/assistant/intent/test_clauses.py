"""Several questions of one message: each is found, and one question is never cut in two."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assistant.intent.clauses import questions
from assistant.intent.parse import understand
from assistant.intent.query import Intent
from tests.cases import each

ENGLISH = ("what is xid 95", "do I have to RMA the card", "how do I reset one gpu", "can I keep using the node", "which gpu failed", "why is the training slow")  # fmt: skip
CHINESE = ("xid 95是什么", "要不要换卡", "怎么复位一张卡", "这台机器还能用吗", "哪张卡坏了", "训练为什么慢")


@given(st.permutations(ENGLISH), st.sampled_from((" and ", ", ", ", and ", "? ", "? and ")), st.booleans())
def test_each_question_is_found(said: list[str], between: str, zh: bool) -> None:
    first, second = said[:2]
    if zh:
        first, second = (CHINESE[ENGLISH.index(s)] for s in (first, second))
        between = "？" if "?" in between else "，"
    found = questions(f"{first}{between}{second}?")
    assert [q.rstrip("?？") for q in found] == [first, second]


@each(
    "text",
    ["is it the driver or the card?", "is xid 13 the user's code or the hardware?", "why is it slow, is it the network?",
     "how do I see which process uses the GPU and how much memory it takes", "node gpu-12 threw xid 48 then 63, can I keep using it?",
     "what is xid 79 and how do I fix it", "is 85 C and 650 W normal for an H100?", "训练变慢了，是不是网络的问题", "这是硬件问题，还是软件问题？",
     "0号卡显存总比别的卡高几个G，怎么回事", "降频这么久，还能用么", "ECC错误是什么，怎么处理"],
)  # fmt: skip
def test_one_question_is_one(text: str) -> None:
    assert not questions(text)
    assert not understand(text).also


def test_what_is_told_and_what_is_named_belong_to_each_question() -> None:
    q = understand("gpu 3 threw xid 79. what does it mean, and is the node usable?")
    assert (q.intent, [o.intent for o in q.also]) == (Intent.VERDICT, [Intent.EXPLAIN])
    assert {q.slots.xid, *(o.slots.xid for o in q.also)} == {(79,)}
    rma = understand("what is xid 95 and do I have to RMA the card?")
    assert rma.intent is Intent.VERDICT
    assert rma.slots.xid == (95,)


@each(
    "text",
    ["can I use MIG with MPS and is it worth it?", "what is persistence mode and should I turn it on?",
     "ECC 怎么开？开了显存会变少吗？", "how many GPUs do I need and how long will it take to train a 70B model?"],
)  # fmt: skip
def test_what_is_asked_of_a_book_and_of_nothing_else_asks_for_no_look(text: str) -> None:
    q = understand(text)
    assert not q.also
    assert q.intent in (Intent.EXPLAIN, Intent.FIX)


def test_codes_that_are_asked_about_together_stand_in_one_table() -> None:
    assert understand("what is xid 48 and what is xid 63").slots.xid == (48, 63)
