"""Wishes about all that was given, by the kinds of their words: any order of them, and no word of another kind."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assistant.intent.made_of import asked
from assistant.intent.parse import understand
from assistant.intent.query import Intent
from tests.cases import each


@each(
    ("text", "intent"),
    [("which card do I pull out", Intent.WHICH), ("到底是第几号卡不对劲", Intent.WHICH),
     ("what went on around 3:15", Intent.HISTORY), ("04:00 发生了什么", Intent.HISTORY), ("把报错按先后顺序讲一遍", Intent.EVENTS),
     ("give me the short version for management", Intent.SUMMARY), ("用大白话给领导说说现在啥情况", Intent.SUMMARY),
     ("do we blame the hardware or the user's code here", Intent.CAUSE), ("是网络的锅还是GPU的锅", Intent.CAUSE),
     ("what is wrong with the node", None), ("which gpu should I buy", None), ("GPU有问题吗", None), ("还有别的原因吗", None),
     ("explain that conclusion", None), ("is there a problem with the gpu", None), ("which rank hangs?", None)],
)  # fmt: skip
def test_what_a_sentence_is_made_of(text: str, intent: Intent | None) -> None:
    q = understand(text)
    assert q.intent is intent if intent is not None else asked(text.casefold().split()) is None


@given(
    st.permutations(["which", "card", "do", "i", "pull", "out"]), st.sampled_from(("faster", "memory", "<xid>", "ecc"))
)
def test_the_order_does_not_matter_and_one_other_word_does(words: list[str], other: str) -> None:
    assert asked(words) is Intent.WHICH
    assert asked([*words, other]) is None
