"""The words of the field."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from knowledge.catalog.lookup import Term, find_term, glossary
from tests.cases import each

HAN = re.compile("[\u4e00-\u9fff]")
ALL = list(glossary().values())


@each("entry", ALL, ids=lambda t: t.id)
def test_a_term_is_complete_and_found_by_its_names(entry: Term) -> None:
    assert HAN.search(entry.text.zh)
    assert not HAN.search(entry.text.en)
    assert not HAN.search(entry.term.en)
    assert entry.term.zh
    assert entry.sources
    assert set(entry.see_also) <= set(glossary())
    assert entry.id not in entry.see_also
    for name in (entry.id, entry.term.en, entry.term.zh, entry.term.en.upper(), entry.id.replace("-", "_")):
        assert find_term(name) is entry


def test_the_glossary_answers_what_people_ask() -> None:
    assert len(ALL) >= 60
    asked = {
        "SM active": "sm-active", "MFU": "mfu", "HFU": "hfu", "T.Limit": "t-limit", "row remap": "row-remap", "BAR1": "bar1",
        "retired pages": "page-retirement", "IMEX": "imex", "fabric manager": "fabric-manager", "UCE": "ecc-uncorrectable",
        "bus bandwidth": "busbw", "expandable_segments": "expandable-segments", "throttle reasons": "clock-event",
        "GSP": "gsp", "PMU": "pmu", "RST": "rst", "MIG": "mig", "MPS": "mps", "AER": "aer", "straggler": "straggler",
        "silent data corruption": "silent-data-corruption", "nvidia-fabricmanager": "fabric-manager",
    }  # fmt: skip
    for word, identifier in asked.items():
        found = find_term(word)
        assert (found.id if found else None) == identifier
    assert find_term("no such word") is None


def test_every_other_spelling_leads_somewhere() -> None:
    for entry in ALL:
        for name in entry.also:
            assert find_term(name) is not None


@given(st.text(max_size=60))
def test_any_word_is_answered(word: str) -> None:
    found = find_term(word)
    assert found is None or found in ALL
