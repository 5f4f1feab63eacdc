"""Laws of the follow-ups: they touch nothing, repeat themselves, and hold what they promise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.commands import demo
from assistant.diagnosis import Diagnosis
from assistant.dialogue._standing import Stand
from assistant.dialogue._suppose import Supposition, measured, suppose, value_of
from assistant.dialogue.whynot import answer as why_not
from assistant.intent.query import Intent, Query, Slots
from assistant.render.json_ import plain
from assistant.reply import Reply
from knowledge.facts import Kind, vocabulary
from knowledge.observation import Scope, Status
from tests.assistant.dialogue.talk import (
    MINE,
    STATES,
    XIDS,
    answered,
    ask,
    asked_of,
    query,
    rules,
    said,
    small,
    turn,
    understood,
)
from tests.cases import each
from tests.diagnoses import incident, smaller

DEMOS = demo.names()
LANGS = ("en", "zh")


OPENING = {"en": "check this node", "zh": "检查本节点"}
SUPPOSED = {"en": "what if ECC is off?", "zh": "如果 ECC 关闭呢？"}


def questions(d: Diagnosis, lang: str) -> Iterator[tuple[Query, str]]:
    """Every follow-up about the whole, with the focus on each finding, and with names that are and are not there."""
    for intent in MINE:
        yield query(intent, lang=lang), ""
        yield query(intent, lang=lang, slots=Slots(gpu=(0,), xid=(79,))), ""
        yield query(intent, lang=lang, slots=Slots(gpu=(99,), pid=(1,), node=("x",))), ""
    for f in (*d.findings[:6], *d.ruled_out[:2]):
        for intent in (Intent.WHY, Intent.EVIDENCE, Intent.CONFIDENCE, Intent.ALTERNATIVES, Intent.NEXT):
            yield query(intent, lang=lang), f.id
    yield understood(SUPPOSED[lang], lang), ""
    yield query(Intent.ALTERNATIVES, lang=lang, symptoms=("slow-training",)), ""


@pytest.mark.slow
@each("name", DEMOS)
def test_a_smaller_machine_has_the_same_troubles(name: str) -> None:
    """So what is supposed of it is supposed of the incident. What takes many peers may be lost."""
    whole, part = incident(name), smaller(name)
    assert part.verdict.state is whole.verdict.state
    assert [f.id for f in part.roots][:1] == [f.id for f in whole.roots][:1]
    assert {f.id for f in part.findings} <= {f.id for f in whole.findings}


@pytest.mark.slow
@each("name", DEMOS)
def test_they_touch_nothing_and_repeat_themselves(name: str) -> None:
    """Each question in one language, in turns: which, changes from one incident to the next."""
    d, small_one = incident(name), smaller(name)
    before = plain(d, verbose=True), plain(small_one, verbose=True)
    for n, both in enumerate(zip(*(questions(d, lang) for lang in LANGS), strict=True), DEMOS.index(name)):
        (q, focus), lang = both[n % 2], LANGS[n % 2]
        base = understood(OPENING[lang], lang) if q.assumed else None  # as in `test_wording`: worked out once
        first, again = answered(name, q, focus, base), ask(asked_of(name, q), q, focus=focus, base=base)
        assert first == again or (said(first), first.data) == (said(again), again.data)
        assert first.headline
        assert "{" not in first.headline
        if first.diagnosis is not None:  # of a part: the base is not shown as if it were new
            assert q.intent in (Intent.VERDICT, Intent.WHYNOT)
            assert first.diagnosis.verdict.text.in_(lang) == first.headline
            assert first.diagnosis.findings == d.findings
    assert (plain(d, verbose=True), plain(small_one, verbose=True)) == before


@pytest.mark.slow
@each("name", DEMOS)
def test_they_are_short_and_lead_on(name: str) -> None:
    for intent in MINE:
        reply = answered(name, query(intent))
        rows = said(reply).count("\n") + 1
        assert rows <= 24, (intent, rows)
        assert 1 <= len(reply.suggestions) <= 4


@pytest.mark.slow
@each("name", DEMOS)
def test_why_not_any_rule(name: str) -> None:
    """Of all rules those that were found or ruled out in an incident, and each third of the others: each has an answer, and
    one that agrees with the findings. In one language, in turns."""
    d, built = incident(name), replace(rules(), rules=tuple(rules().rules))  # not anew for each question
    found = {f.rule.id for f in d.findings}
    out = {f.rule.id for f in d.ruled_out}
    for n, rule in enumerate(built.rules, DEMOS.index(name)):
        if n % 3 and rule.id not in found | out:
            continue
        asked = query(Intent.WHYNOT, lang=LANGS[n % 2], topics=(f"rule {rule.id}",))
        reply = why_not(replace(turn(d, asked), ruleset=built))
        stand = reply.data["rules"][0]["stand"]
        assert (stand in (Stand.CONCLUDED, Stand.SYMPTOM)) == (rule.id in found), rule.id
        assert stand != Stand.RULED_OUT or rule.id in out
        assert reply.headline


# --- what if: the true values change nothing ------------------------------------------------


@pytest.mark.slow
@each("name", DEMOS)
def test_the_true_values_change_nothing(name: str) -> None:
    """Supposing of every fact of a GPU or a rank and of its node what is known of it."""
    d = incident(name)
    subjects = [s for scope in (Scope.GPU, Scope.RANK) for s in d.facts.subjects(scope)[:2]]
    subjects += d.facts.subjects(Scope.NODE)
    made = []
    for subject in subjects:
        for fact in sorted(d.facts.facts):
            o = d.facts.current(fact, subject)
            spec = vocabulary().get(fact)
            if o is not None and o.status is Status.OK and spec is not None and spec.kind is not Kind.EVENT:
                made.append(value_of(spec, subject, o.value, d.facts))
    assert made
    assert not [s for s in made if s != Supposition()], "what is so already supposes nothing"
    assert told(suppose(d, rules(), made[:1])) == told(d)


def told(d: Diagnosis) -> object:
    return (
        d.verdict,
        [(f.id, f.severity, f.grade, f.role, f.advice.bucket, f.explains) for f in d.findings],
        [f.id for f in d.ruled_out],
        [(u.rule.id, u.subject) for u in d.undecided],
        d.settled,
    )


@given(XIDS, STATES, st.sampled_from(MINE), st.sampled_from(LANGS))
def test_any_small_world_has_an_answer(xids: list[int], states: dict[str, bool], intent: Intent, lang: str) -> None:
    d = small(xids, states)
    kept = list(measured(d.facts))
    reply: Reply = ask(d, query(intent, lang=lang, slots=Slots(xid=tuple(xids[:1]))))
    assert reply.headline
    assert list(measured(d.facts)) == kept
    assert told(suppose(d, rules(), ())) == told(d)


def test_hostile_words() -> None:
    """A megabyte, controls, markup: an answer, at once, and clean."""
    d = incident("off-the-bus")
    for text in (
        "why not " + "x" * 1_000_000,
        "为什么不是" + "热" * 300_000,
        "\x1b[31m\u202e\u200b<script>",
        "(" * 5000,
        "",
        "drain" * 50_000,
    ):
        for intent in MINE:
            q = query(intent, text, slots=Slots(gpu=("x" * 5000,), node=("[" * 2000,), process=(text[:5000],)))
            reply = ask(d, q)
            assert "\x1b" not in said(reply)
            assert "\u202e" not in said(reply)
            assert len(said(reply)) < 20_000


def test_the_turn_is_all_they_need() -> None:
    """No module asks the clock, the disk or the network: the same turn twice is the same answer."""
    d = incident("rail-down")
    for intent in MINE:
        t = turn(d, query(intent))
        from assistant.dialogue import answerer

        assert said(answerer(intent).answer(t)) == said(answerer(intent).answer(t))


@pytest.mark.slow
@pytest.mark.parametrize("lang", LANGS)
def test_what_is_suggested_is_understood(lang: str) -> None:
    for name in ("healthy", "off-the-bus", "double-bit-error", "overheating"):
        for q, focus in questions(incident(name), lang):
            for suggestion in answered(name, q, focus).suggestions:
                assert understood(suggestion, lang).intent is not Intent.UNKNOWN, suggestion
