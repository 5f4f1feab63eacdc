"""The word lists: every phrase can be read, every name exists, and nothing is slow to match."""

from __future__ import annotations

import pytest

from assistant.intent import grammar, phrases, typos
from assistant.intent.query import Intent
from knowledge.facts import vocabulary
from knowledge.lexicon import lexicon
from tests.cases import each


def test_every_phrase_is_about_an_intent_and_can_begin() -> None:
    data = lexicon()
    classes: dict[str, phrases.Element] = {}
    for name, words in data.classes.items():
        classes[name] = phrases.of_class(words, classes)
    for phrase in data.phrases:
        assert phrase.intent in list(Intent)
        assert phrases.firsts(phrases.parse(phrase.text.removeprefix("^ "), classes)), phrase.text
    assert {p.intent for p in data.phrases} == set(map(str, Intent)) - {"unknown"}


def test_every_fact_that_has_a_name_exists() -> None:
    known = {spec.name for spec in vocabulary()}
    assert set(lexicon().facts.values()) <= known


@each("text", ["(a|b", "a)", "[a", "a @nothing"])
def test_a_broken_phrase_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"bracket|class"):
        phrases.parse(text, {})


def test_a_phrase_moves_over_words() -> None:
    row = phrases.parse("why [is] (it|the node) .. slow", {})
    assert phrases.ends(row, ["why", "is", "the", "node", "so", "very", "slow"], [0]) == {7}
    assert phrases.ends(row, ["why", "it", "slow"], [0]) == {3}
    assert not phrases.ends(row, ["why", "a", "slow"], [0])
    assert not phrases.ends(row, ["why", "it", *["so"] * (phrases.GAP + 1), "slow"], [0])


def test_both_languages_have_each_intent() -> None:
    for intent in set(Intent) - {Intent.UNKNOWN}:
        texts = [p.text for p in lexicon().phrases if p.intent == intent]
        assert any(t.isascii() for t in texts), intent
        assert any(not t.isascii() for t in texts), intent


@each(
    ("written", "read"),
    [("trainning", "training"), ("solw", "slow"), ("persistance", "persistance"), ("weather", "weather"),
     ("kubernets", "kubernetes"), ("qwertyuiop", "qwertyuiop")],
)  # fmt: skip
def test_slips(written: str, read: str) -> None:
    assert typos.nearest(written) == read


@each("text", ["/data/trainning/solw.txt", "node-trainning-1", "NCCL_DEBGU=INFO", "a@exmaple.com"])
def test_names_and_paths_are_never_repaired(text: str) -> None:
    assert typos.repair(text) == (text, ())


@each(("a", "b", "slips"), [("slow", "solw", 1), ("ecc", "ecc", 0), ("hang", "hng", 1), ("abcd", "wxyz", 3)])
def test_distance(a: str, b: str, slips: int) -> None:
    assert typos.distance(a, b, 2) == typos.distance(b, a, 2) == slips


def test_politeness_is_no_part_of_a_sentence() -> None:
    words = ["hey", "please", "check", "again", "thanks", "!"]
    begin, finish = grammar.core(words)
    assert words[begin:finish][:1] == ["check"]
