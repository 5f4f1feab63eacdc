"""What was learned belongs to the examples that are there, and can be explained."""

from __future__ import annotations

import pytest

from assistant.intent import weights
from assistant.intent.features import features
from assistant.intent.intents import hint
from assistant.intent.query import BY_PHRASE, Intent
from assistant.intent.reading import read
from knowledge.examples import examples
from tests.assistant.intent.test_sentences import sentences


def test_the_weights_were_fitted_from_these_examples() -> None:
    assert weights.main(["--check"]) == 0, "run make learn"


def test_no_example_is_labelled_twice() -> None:
    wants: dict[str, set[str]] = {}
    for text, intent, _ in examples():
        wants.setdefault(text.casefold(), set()).add(intent)
    assert {text: w for text, w in wants.items() if len(w) > 1} == {}


def test_every_intent_has_examples_in_both_languages() -> None:
    said = {(intent, any("\u4e00" <= c <= "\u9fff" for c in text)) for text, intent, _ in examples()}
    assert {(str(i), han) for i in Intent if i not in BY_PHRASE for han in (False, True)} <= said
    labelled = {(e["intent"], any("\u4e00" <= c <= "\u9fff" for c in e["say"])) for e in sentences()}
    assert {(str(i), han) for i in BY_PHRASE for han in (False, True)} <= labelled, "whole phrases decide these"


@pytest.mark.parametrize(
    ("text", "intent"),
    [("why is my job so slow since the driver update", Intent.DIAGNOSE), ("show me the clocks of gpu 2", Intent.PROBE)],
)
def test_a_decision_can_be_explained(text: str, intent: Intent) -> None:
    reading = read(text)
    signs = features(reading, hint(reading.sentence))
    shares = weights.likely(signs)
    assert shares[0][0] is intent
    assert sum(share for _, share in shares) == pytest.approx(1.0)
    reasons = weights.reasons(signs, intent)
    assert reasons
    assert all(sign in signs and weight > 0 for sign, weight in reasons)


def test_a_separable_set_is_learned() -> None:
    rows = [({"a": 1.0, "both": 1.0}, 0), ({"b": 1.0, "both": 1.0}, 1)] * 20
    fitted = weights._fit(rows)
    assert fitted["a"][0] > fitted["a"][1]
    assert fitted["b"][1] > fitted["b"][0]
    assert weights._fit(rows) == fitted  # a fixed order, a fixed seed
