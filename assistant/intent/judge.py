"""What a sentence wants, all signs weighed: an example that says the same, then rules that leave no doubt, then the weights."""

from __future__ import annotations

from assistant.intent import weights
from assistant.intent.features import features
from assistant.intent.grammar import runs
from assistant.intent.intents import hint
from assistant.intent.query import FOLLOW_UPS, Intent
from assistant.intent.reading import Reading

WHOLE = 11  # weight from which a phrase that is all that is said decides, when it is about the talk itself
DOUBT = 0.35  # share below which what the rules do not understand is not guessed either


def decide(reading: Reading) -> Intent:
    """The intent of a sentence."""
    same = weights.example(reading.words)
    if same is not None and not reading.raw:
        return same
    told = hint(reading.sentence)
    if reading.raw or not reading.words or runs("never").find(reading.words):
        return told.intent
    if told.intent in told.alone and told.intent in FOLLOW_UPS and told.found[told.intent] >= WHOLE:
        return told.intent
    best, share = weights.likely(features(reading, told))[0]
    return told.intent if share < DOUBT else best
