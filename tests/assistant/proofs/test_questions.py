"""Rules and facts that are named as they are written are meant, whatever words their names are made of."""

from __future__ import annotations

import pytest

from assistant.intent.parse import understand
from assistant.intent.query import Intent
from assistant.proofs import questions
from assistant.topics import action, rule, runbook
from knowledge.facts import vocabulary
from tests.cases import each

NAMES = {
    "rule": lambda: sorted(rule.names())[::11],
    "fact": lambda: sorted(s.name for s in vocabulary() if "." in s.name and not s.replaced_by)[::29],
    "runbook": lambda: sorted(runbook.names())[::4],
}


@pytest.mark.slow
@each("lang", ["en", "zh"])
@each(("kind", "intent"), [("rule", Intent.EXPLAIN), ("fact", Intent.EXPLAIN), ("runbook", Intent.RUNBOOK)])
def test_a_page_is_asked_for_by_its_name(kind: str, intent: Intent, lang: str) -> None:
    for name in NAMES[kind]():
        q = understand(questions.of_topic(f"{kind} {name}", lang))
        assert (q.intent, q.lang) == (intent, lang), q.text
        if kind != "runbook":
            assert q.topics[0].id == f"{kind} {name}", q.text


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_an_action_means(lang: str) -> None:
    for name in action.names():
        q = understand(questions.of_topic(f"action {name}", lang))
        assert q.intent in (Intent.EXPLAIN, Intent.FIX), q.text
        assert q.topics[0].id == f"action {name}", q.text


@pytest.mark.slow
@each(
    ("sentence", "intent"),
    [
        ("why did you conclude {}?", Intent.WHY), ("为什么判断是 {}？", Intent.WHY), ("why not {} on gpu 3?", Intent.WHYNOT),
        ("gpu 3 上为什么不是 {}？", Intent.WHYNOT), ("what if {}.limit were 3?", Intent.WHATIF),
    ],
)  # fmt: skip
def test_a_rule_is_meant_by_its_id(sentence: str, intent: Intent) -> None:
    for name in NAMES["rule"]():
        q = understand(sentence.format(name))
        assert q.intent is intent, q.text
        assert not q.symptoms, q.text  # "hung" in a name is no complaint


def test_what_only_looks_like_a_name_is_none() -> None:
    assert understand("is node gpu-12 healthy?").slots.node == ("gpu-12",)
    assert understand("why is my-own-job slow?").symptoms
    assert understand("how do I turn on core.dumps?").intent is not Intent.UNKNOWN
