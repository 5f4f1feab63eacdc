"""An answer made ready for a screen: the choices mean what they say, and consent knows its price."""

from __future__ import annotations

import pytest

from assistant.intent.parse import understand
from assistant.intent.query import Intent
from assistant.planner import DONT_KNOW, answer_value
from assistant.session import phrases
from assistant.session.driver import Answer
from assistant.session.shown import Shown, choices, in_full, shown, terms
from assistant.session.state import Frame, Pending
from assistant.session.steps import Answered, Confirmed
from knowledge.facts import vocabulary
from knowledge.language import LANGUAGES, Text
from knowledge.observation import node
from probes.live import Cost, probes
from tests.assistant.session.test_core import OFF_BUS, held

ASKED = sorted(s.name for s in vocabulary() if s.ask is not None)


def pending_of(fact: str) -> Pending:
    """The question that the planner would ask about a fact."""
    spec = vocabulary()[fact]
    assert spec.ask is not None
    return Pending(fact, node("n1"), text=spec.ask, kind=str(spec.type))


def answer_to(text: str) -> Shown:
    """What a screen shows of the first answer of a talk."""
    (turn,) = held(OFF_BUS, [text])
    return shown(Answer(turn.reply, turn.state.said, turn.state.frame.pending, turn.state.frame))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_choice_means_what_its_word_would_mean_when_typed(lang: str) -> None:
    assert len(ASKED) > 5
    for fact in ASKED:
        pending = pending_of(fact)
        for choice in choices(pending, lang):
            assert isinstance(choice.event, Answered)
            typed = answer_value(phrases.question(pending), choice.text, lang)
            expected = DONT_KNOW if choice.event.value is None else choice.event.value
            assert typed == expected, (fact, choice)


def test_every_question_can_be_left_unanswered() -> None:
    assert all(any(c.event == Answered(None) for c in choices(pending_of(f), "en")) for f in ASKED)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_consent_tells_how_long_it_takes_and_what_it_does_to_its_target(lang: str) -> None:
    dear = [s for s in probes() if s.side_effects or s.cost >= Cost.HEAVY]
    assert dear
    for spec in dear:
        pending = Pending(probes=(spec.name,), reason=Text("it tells", "可以说明"), text=phrases.consent(spec))
        found = terms(pending, lang)
        assert found is not None
        said = [text for _, text in found.rows]
        assert all(effect.in_(lang) in said for effect in spec.side_effects)
        assert any(f"{spec.deadline:.0f}" in text for text in said)
        assert pending.reason.in_(lang) in said
        assert spec.name in found.question
        assert found.question.endswith(("?", "？"))
        assert [c.event for c in choices(pending, lang)] == [Confirmed(True), Confirmed(False)]


def test_what_only_reads_says_so() -> None:
    spec = next(s for s in probes() if not s.side_effects)
    found = terms(Pending(probes=(spec.name,), text=Text("?")), "en")
    assert found is not None
    assert ("Does to it", "nothing: it only reads") in found.rows


def test_a_diagnosis_is_shown_as_the_command_line_arranges_it() -> None:
    from assistant.render.view import view

    found = answer_to("what is wrong?")
    whole = found.answer.reply.shown or found.answer.reply.diagnosis
    assert whole is not None
    assert found.view == view(whole, "en")
    assert len(found.subjects) == len(found.view.blocks) > 0
    assert in_full(found).view == view(whole, "en", verbose=True)
    assert found.echo.startswith("understood: ")


def test_what_stands_behind_a_finding_is_asked_about_by_its_rule() -> None:
    found = answer_to("what is wrong?")
    ids = {f.id for f in found.answer.reply.diagnosis.findings} if found.answer.reply.diagnosis else set()
    assert found.subjects
    for subject in found.subjects:
        assert subject.finding in ids
        assert understand(subject.question).intent is Intent.WHY


@pytest.mark.slow
def test_a_hypothetical_answer_says_that_it_is_one() -> None:
    turns = held(OFF_BUS, ["is this node healthy?", "suppose there was no xid 79"])
    found = shown(Answer(turns[1].reply, turns[1].state.said, None, Frame()))
    assert "nothing of this was seen" in found.note
    assert not answer_to("is this node healthy?").note
