"""What else a message asks is answered below what leads, and how grave codes are is told from the catalogue."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from assistant.dialogue import _also
from assistant.intent.parse import understand
from knowledge.catalog.xid import all_xids, xid
from rules.model import Severity
from tests.assistant.dialogue.talk import OFF_BUS, ask, log, said, turn

CODES = tuple(e.code for e in all_xids())


def test_each_question_has_the_first_line_of_its_own_answer() -> None:
    d = log(OFF_BUS)
    for text in ("can I use this node, and which card is affected?", "这台机器还能用吗，哪张卡坏了？"):
        q = understand(text)
        whole = said(_also.beside(ask(d, q), turn(d, q)))
        assert all(_also.first(ask(d, one)) in whole for one in (q, *q.also))
        assert len(q.also) == 1


def test_the_same_answer_is_given_once() -> None:
    d, q = log(OFF_BUS), understand("is the node ok? can I use the node?")
    assert q.also
    assert said(_also.beside(ask(d, q), turn(d, q))) == said(ask(d, q))


def test_what_no_look_told_is_to_be_asked_by_itself() -> None:
    q = replace(understand("how do I reset one gpu?"), also=(understand("which card is affected?"),))
    assert "ask this by itself" in said(_also.beside(ask(None, q), turn(None, q)))


@given(
    st.sampled_from(CODES),
    st.sampled_from(CODES),
    st.sampled_from(("xid {} or {}, which is worse?", "XID {} 和 {} 哪个严重？")),
)
def test_the_graver_of_two_codes_leads(a: int, b: int, how: str) -> None:
    headline = ask(None, understand(how.format(a, b))).headline
    first, second = (xid(n) for n in (a, b))
    assert first is not None
    assert second is not None
    ranks = [Severity(e.severity).rank for e in (first, second)]
    if a != b and ranks[0] != ranks[1]:
        assert re.findall(r"XID (\d+)", headline)[0] == str(a if ranks[0] > ranks[1] else b)
