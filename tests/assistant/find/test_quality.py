"""How often the first topic found is the right one, and one of the first three."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.find import search
from assistant.find import topic as topic_of
from knowledge import yamlfile

QUESTIONS = yamlfile.load(Path(__file__).parent / "questions.yaml").data
# What the search reached (all of them), less three questions: a change that costs more must be argued.
FLOORS = {"en": (0.95, 0.97), "zh": (0.90, 0.96)}


def ranks(language: str) -> list[int]:
    """For each question the place of the first right topic, 0 the first; 99 none of the first eight."""
    out = []
    for text, right in QUESTIONS[language]:
        found = [t.id for t in search(str(text))]
        out.append(next((n for n, name in enumerate(found) if name in right), 99))
    return out


@pytest.mark.parametrize("language", FLOORS)
def test_right_topics_come_first(language: str) -> None:
    places = ranks(language)
    first, three = FLOORS[language]
    assert sum(p == 0 for p in places) / len(places) >= first, [
        (q[0], p) for q, p in zip(QUESTIONS[language], places, strict=True) if p
    ]
    assert sum(p < 3 for p in places) / len(places) >= three


def test_enough_is_asked() -> None:
    assert sum(map(len, QUESTIONS.values())) >= 80


@pytest.mark.parametrize("language", FLOORS)
def test_every_right_topic_exists(language: str) -> None:
    """A label that names no topic would be a question that can only be missed."""
    lost = [q[0] for q in QUESTIONS[language] if not all(topic_of(name) for name in q[1])]
    assert lost == []
