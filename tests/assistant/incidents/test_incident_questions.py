"""What "explain this" asks of incidents is understood, and answered by the page that is meant."""

from __future__ import annotations

import pytest

from assistant.dialogue import Turn
from assistant.dialogue import explain as explaining
from assistant.dialogue import runbook as guiding
from assistant.incidents import questions
from assistant.incidents.events import Event, Kind
from assistant.incidents.fold import Incident, fold
from assistant.intent.parse import understand
from assistant.intent.query import Intent
from assistant.reply import Reply
from knowledge.runbook import all_runbooks
from rules.loader import load


def about(rule: str, xid: int | None) -> Incident:
    return fold([Event(1, 0, Kind.FINDING, "a", "cli", {"key": rule, "rule": rule, "xid": xid})])


def answered(asked: questions.Asked, lang: str) -> Reply:
    """As the chat answers it."""
    query = asked.query(lang) or understand(asked.text(lang), lang=lang)
    answer = {Intent.EXPLAIN: explaining.answer, Intent.RUNBOOK: guiding.answer}[query.intent]
    return answer(Turn(query, lang, load()))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_runbook_is_asked_for_by_its_name(lang: str) -> None:
    for book in all_runbooks():
        assert answered(questions.about_runbook(book.id), lang).data["runbook"] == book.id


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_rule_is_asked_for_by_its_code_or_its_name(lang: str) -> None:
    for rule in load().rules:
        incident = about(rule.id, rule.xid)
        asked = questions.about_incident(incident)
        topic = f"rule {rule.id}" if rule.xid is None else f"xid {rule.xid}"
        assert answered(asked, lang).data["topics"] == [topic]
        assert questions.about_event(incident.events[0], incident) == asked


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_an_incident_without_anything_still_asks(lang: str) -> None:
    assert understand(questions.about_incident(fold([])).text(lang), lang=lang).intent is Intent.RUNBOOK
