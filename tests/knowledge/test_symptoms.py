"""Symptoms and their hypotheses: complete, in both languages, and tied to rules and facts that exist."""

from __future__ import annotations

import re
from collections import defaultdict
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from knowledge.facts import vocabulary
from knowledge.language import LANGUAGES
from knowledge.priors import CauseClass
from knowledge.schema import hypotheses as hypothesis_schema
from knowledge.schema import symptoms as symptom_schema
from knowledge.symptoms import Hypothesis, Symptom, hypotheses, hypotheses_of, rules_of, symptoms
from rules.loader import load
from rules.model import Rule, RuleStatus
from tests.cases import each

DATA = Path(__file__).parents[2] / "knowledge" / "data"
HAN = re.compile("[\u4e00-\u9fff]")
RULES: dict[str, Rule] = {r.id: r for r in load().rules}
SYMPTOMS = list(symptoms().values())
HYPOTHESES = list(hypotheses().values())
ASKED_FOR = {
    "slow-training", "hang", "crash", "nan-loss", "out-of-memory", "gpu-missing", "low-utilization", "busy-but-slow",
    "noisy-neighbour", "container-no-gpu", "scheduler-refuses-node", "gpu-too-hot", "memory-errors", "network-trouble",
    "straggler", "startup-fails", "driver-hangs", "node-unreachable", "gpu-lost", "slow-data-loading", "disk-trouble",
    "slow-serving", "server-fault",
}  # fmt: skip
# What people say of two things alike: no program can tell which one is meant, so both are offered.
SHARED = {
    "job does not start": {"scheduler-refuses-node", "startup-fails"},
    "反复重启": {"crash", "node-unreachable"},  # a job or the machine: Chinese leaves out which
}


def entry(folder: str, name: str) -> Any:
    """The plain data of one symptom or hypothesis, as it stands in its file."""
    entries = [e for f in sorted((DATA / folder).glob("*.yaml")) for e in yaml.safe_load(f.read_text(encoding="utf-8"))]
    return deepcopy(next(e for e in entries if e["id"] == name))


def test_every_symptom_that_people_have_is_there() -> None:
    assert set(symptoms()) == ASKED_FOR


@each("symptom", SYMPTOMS, ids=lambda s: s.id)
def test_a_symptom_is_complete_in_both_languages(symptom: Symptom) -> None:
    for text in (symptom.title, symptom.text):
        assert HAN.search(text.zh)
        assert text.en
        assert not HAN.search(text.en)
    assert set(symptom.said) == set(LANGUAGES)
    assert len(symptom.said["en"]) >= 20
    assert len(symptom.said["zh"]) >= 15
    assert len({h.id for h in symptom.hypotheses}) == len(symptom.hypotheses) >= 6
    assert all(source.startswith("https://") for source in symptom.sources)
    assert (DATA / "symptoms" / f"{symptom.id}.yaml").is_file()


@each("hypothesis", HYPOTHESES, ids=lambda h: h.id)
def test_a_hypothesis_can_be_told_by_rules_or_by_a_person(hypothesis: Hypothesis) -> None:
    named = (*hypothesis.rules, *hypothesis.signs)
    assert [name for name in named if name not in RULES] == []
    assert all(RULES[name].status is not RuleStatus.RETIRED for name in named)
    assert set(hypothesis.decides) <= set(hypothesis.rules)
    vocab = vocabulary()
    assert [fact for fact in hypothesis.facts if fact not in vocab] == []
    assert [fact for fact in hypothesis.facts if vocab[fact].replaced_by] == []
    if hypothesis.ask:
        assert vocab[hypothesis.ask].ask, "a question exists for it"
    assert hypothesis.cause in CauseClass
    assert HAN.search(hypothesis.title.zh)
    assert not HAN.search(hypothesis.title.en)
    if hypothesis.find_out:
        assert HAN.search(hypothesis.find_out.zh)
        assert hypothesis.sources
    assert hypothesis.rules or hypothesis.find_out


def test_every_hypothesis_belongs_to_a_symptom() -> None:
    assert {h.id for s in SYMPTOMS for h in (*s.hypotheses, *s.running)} == set(hypotheses())


def test_a_job_that_runs_has_hypotheses_that_its_stacks_and_threads_decide() -> None:
    looked_into = [s for s in SYMPTOMS if s.running]
    assert {s.id for s in looked_into} >= {"slow-training", "hang", "straggler", "low-utilization"}
    for symptom in looked_into:
        assert {h.id for h in symptom.running}.isdisjoint(h.id for h in symptom.hypotheses)
        assert all(h.decides for h in symptom.running), "what speaks against each can be shown"
        assert hypotheses_of([symptom.id], running=True) == symptom.running
    assert hypotheses_of(["nan-loss"], running=True) == symptoms()["nan-loss"].hypotheses


def test_every_rule_with_a_tag_is_reached_from_a_symptom_with_that_tag() -> None:
    reached: dict[str, set[str]] = defaultdict(set)
    for symptom in SYMPTOMS:
        for tag in symptom.tags:
            reached[tag] |= symptom.rules
    lost = {(tag, r.id) for r in RULES.values() for tag in r.symptoms if r.id not in reached[tag]}
    assert lost == set()


def test_every_rule_belongs_to_some_hypothesis() -> None:
    named = {name for h in HYPOTHESES for name in (*h.rules, *h.signs)}
    assert set(RULES) - named == set()


def test_no_tag_is_invented() -> None:
    assert {tag for s in SYMPTOMS for tag in s.tags} == {tag for r in RULES.values() for tag in r.symptoms}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_phrase_means_one_symptom(lang: str) -> None:
    meant: dict[str, set[str]] = defaultdict(set)
    for symptom in SYMPTOMS:
        for phrase in symptom.said[lang]:
            meant[phrase.casefold()].add(symptom.id)
    shared = {phrase: ids for phrase, ids in meant.items() if len(ids) > 1}
    assert shared == {phrase: ids for phrase, ids in SHARED.items() if bool(HAN.search(phrase)) is (lang == "zh")}


def test_rules_of_several_symptoms_are_those_of_each() -> None:
    both = rules_of(["hang", "nan-loss"])
    assert both == symptoms()["hang"].rules | symptoms()["nan-loss"].rules
    assert "nccl-watchdog-timeout" in both, "signs count: the planner has to look for them"
    assert rules_of([]) == frozenset()
    assert rules_of(["no-such-symptom"]) == frozenset()


def test_a_hypothesis_of_two_symptoms_stands_once() -> None:
    names = [h.id for h in hypotheses_of(["slow-training", "straggler", "slow-training"])]
    assert len(names) == len(set(names))
    assert set(names) == {h.id for name in ("slow-training", "straggler") for h in symptoms()[name].hypotheses}


def test_where_a_person_has_to_look_silence_of_the_rules_rules_nothing_out() -> None:
    waits = hypotheses()["program-waits"]
    assert waits.find_out
    assert waits.rules
    assert waits.decides == ()
    assert hypotheses()["ecc-off"].decides == hypotheses()["ecc-off"].rules


@pytest.mark.slow
@each(
    ("change", "complaint"),
    [
        ({"rules": [], "decides": [], "find_out": None}, "nor a person"),
        ({"sources": []}, "sources"),
        ({"decides": ["gpu-fell-off-bus"]}, "decides names"),
        ({"signs": ["input-bound-job"]}, "twice"),
        ({"cause": "weather"}, "pattern"),
        ({"colour": "red"}, "Extra inputs"),
        ({"title": {"en": "Only English", "zh": "Only English"}}, "Chinese"),
    ],
)
def test_a_wrong_hypothesis_is_refused(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        hypothesis_schema.Entry.model_validate(entry("hypotheses", "input-starved") | change)


@pytest.mark.slow
@each(
    ("path", "value", "complaint"),
    [
        (("said", "en"), ["slow"], "at least 20"),
        (("said", "zh"), ["slow"] * 15, "no Chinese"),
        (("said", "zh"), ["很慢"] * 15, "twice"),
        (("said", "en"), ["训练慢"] * 20, "hold Chinese"),
        (("hypotheses",), ["cpu-short"], "at least 6"),
        (("sources",), [], "at least 1"),
    ],
)
def test_a_wrong_symptom_is_refused(path: tuple[str, ...], value: Any, complaint: str) -> None:
    data = entry("symptoms", "slow-training")
    here = data
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = value
    with pytest.raises(ValidationError, match=complaint):
        symptom_schema.Entry.model_validate(data)
