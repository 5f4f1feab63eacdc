"""An edited value in a whole talk: pointed at or said in words, the answer and what is kept are the same."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from assistant.proofs.hypotheses import query as why_not
from assistant.proofs.outline import outline
from assistant.proofs.supposing import query
from assistant.proofs.tree import tree, walk
from assistant.session.concluding import concluded
from assistant.session.state import State, plain, restored
from assistant.session.steps import Conclude, Said
from tests.assistant.dialogue.talk import said
from tests.assistant.proofs.test_supposing import value
from tests.assistant.session.test_core import OFF_BUS, session
from tests.assistant.session.test_pointed import adopted, seen_of
from tests.demo_lab import GPUS
from tests.diagnoses import few_gpus


@cache
def of_few_gpus() -> State:
    """A talk about a machine with a lost GPU and another one: something is supposed of it dozens of times."""
    seen = seen_of(OFF_BUS)
    told = few_gpus(seen.observations, GPUS[4:6])
    return session().adopted(State(), replace(seen, observations=told), OFF_BUS)


@pytest.mark.slow
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_if(lang: str) -> None:
    state = of_few_gpus()
    d = concluded(session(), state, state.frame.seen, ())
    found = {t.name: t for e in outline(d, lang) for _, n in walk(tree(e, d, lang)) for t in n.targets}
    assert len(found) > 10
    for target in list(found.values())[:12]:
        asked = query(target, value(target, d), d, lang)
        pointed, first = session().step(state, Said(asked.text, OFF_BUS, None, asked))
        spoken, second = session().step(state, Said(asked.text, OFF_BUS))
        assert isinstance(first[0], Conclude)
        assert isinstance(second[0], Conclude)
        assert first[0].reply.hypothetical, asked.text
        assert said(first[0].reply) == said(second[0].reply), asked.text
        assert (
            pointed.frame.seen == spoken.frame.seen == state.frame.seen
        )  # nothing was looked at, nothing seen changed
        assert restored(plain(pointed)).frame.last == pointed.frame.last


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_why_not(lang: str) -> None:
    state = adopted()
    d = concluded(session(), state, state.frame.seen, ())
    for rule in ("fabric-manager-failed", "thermal-margin-low", "ecc-disabled"):
        asked = why_not(rule, d, session().ruleset, lang)
        replies = [session().step(state, Said(asked.text, OFF_BUS, None, q))[1][0] for q in (asked, None)]
        assert all(isinstance(r, Conclude) for r in replies)
        pointed, spoken = (said(r.reply) for r in replies if isinstance(r, Conclude))
        assert pointed == spoken, asked.text
