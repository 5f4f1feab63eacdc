"""Help: examples of each kind in both languages; every sentence of it is understood as what it stands for."""

from __future__ import annotations

import pytest

from assistant.dialogue.help import EXAMPLES, examples
from assistant.intent.parse import understand
from assistant.intent.query import Intent
from tests.assistant.dialogue.talk import ask, query, said
from tests.cases import each

KINDS = {
    "what is wrong": {Intent.DIAGNOSE, Intent.VERDICT, Intent.PROBE},
    "may it be used": {Intent.VERDICT},
    "what it means": {Intent.EXPLAIN},
    "what to do": {Intent.FIX},
    "the steps": {Intent.RUNBOOK},
    "show a value": {Intent.PROBE},
    "what happened": {Intent.HISTORY},
    "after an answer": {
        Intent.WHY, Intent.EVIDENCE, Intent.CONFIDENCE, Intent.ALTERNATIVES, Intent.WHATIF, Intent.NEXT, Intent.RERUN,
    },
}  # fmt: skip


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_help_shows_every_kind(lang: str) -> None:
    reply = ask(None, query(Intent.HELP, "help", lang))
    text = said(reply)
    for kind, sentences in EXAMPLES:
        assert kind.in_(lang) in text
        assert all(s.in_(lang) in text for s in sentences)
    assert reply.settled
    assert reply.suggestions == examples(lang)


@each("lang", ["en", "zh"])
@each("kind", [k.en for k, _ in EXAMPLES])
def test_every_example_is_understood(kind: str, lang: str) -> None:
    sentences = next(s for k, s in EXAMPLES if k.en == kind)
    for sentence in sentences:
        assert understand(sentence.in_(lang)).intent in KINDS[kind], sentence.in_(lang)
