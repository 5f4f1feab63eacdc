"""The tree of findings and the tree of a proof: nothing is lost, everything answers "explain this"."""

from __future__ import annotations

import pytest
from hypothesis import given

from assistant.diagnosis import diagnose
from assistant.intent.parse import understand
from assistant.intent.query import Intent
from assistant.proofs.hypotheses import hypotheses, query
from assistant.proofs.outline import Kind, outline, owner, shown
from assistant.proofs.page import page
from assistant.proofs.tree import Kind as Nodes
from assistant.proofs.tree import tree, walk
from rules.proof import Truth, leaf_proofs
from tests.assistant.dialogue.talk import STATES, XIDS, ask, rules, small
from tests.cases import each
from tests.diagnoses import incident

INCIDENTS = ("off-the-bus", "driver-hangs", "healthy", "rail-down", "mig")


@given(XIDS, STATES)
def test_every_finding_stands_in_the_tree_once(xids: list[int], states: dict[str, bool]) -> None:
    d = small(xids, states)
    entries = outline(d, "en")
    keys = [e.key for e in entries]
    assert len(set(keys)) == len(keys)
    alone = [e.findings[0].id for e in entries if len(e.findings) == 1 and e.kind in (Kind.CAUSE, Kind.SYMPTOM)]
    assert sorted(alone) == sorted(f.id for f in d.findings)
    assert {e.under for e in entries if e.under} <= {e.key for e in entries if e.leads}
    for n, e in enumerate(entries):
        if e.under:
            assert e.depth == entries[keys.index(e.under)].depth + 1
            assert keys.index(e.under) < n


@pytest.mark.slow
@each("lang", ["en", "zh"])
@each("name", INCIDENTS)
def test_everything_can_be_asked_about(name: str, lang: str) -> None:
    d = incident(name)
    asked = set()
    for e in outline(d, lang):
        asked.add(e.question)
        asked |= {n.question for _, n in walk(tree(e, d, lang)) if n.kind is not Nodes.HEADING}
    assert "" not in asked
    for question in asked:
        q = understand(
            question,
            lang=lang,
            hosts=[s.id for s in d.facts.subjects(d.findings[0].subject.scope)] if d.findings else (),
        )
        assert q.intent is not Intent.UNKNOWN, question
        assert q.lang == lang, question


def test_a_finding_is_asked_about_by_rule_and_place() -> None:
    for name in ("off-the-bus", "rail-down"):
        d = incident(name)
        for f in d.findings:
            entry = owner(outline(d, "en"), f.id)
            assert entry is not None
            for lang in ("en", "zh"):
                q = understand(owner(outline(d, lang), f.id).question, lang=lang)  # type: ignore[union-attr]
                assert q.intent is Intent.WHY, q.text
                reply = ask(d, q)
                assert reply.data["finding"]["rule"] == f.rule.id, q.text


def test_the_proof_has_every_clause() -> None:
    d = incident("off-the-bus")
    for f in d.findings:
        entry = next(e for e in outline(d, "en") if e.findings == (f,))
        nodes = [n for _, n in walk(tree(entry, d, "en")) if n.key.startswith("when")]
        assert sum(n.kind is Nodes.CLAUSE for n in nodes) == len(list(leaf_proofs(f.proof)))


def test_what_is_missing_is_unknown_and_says_why() -> None:
    d = incident("off-the-bus")
    seen = [n for e in outline(d, "en") for _, n in walk(tree(e, d, "en")) if n.kind is Nodes.MISSING]
    assert seen
    assert all(n.truth is Truth.UNKNOWN and n.text and n.place for n in seen)


def test_folding_hides_what_stands_below() -> None:
    d = incident("driver-hangs")
    entries = outline(d, "en")
    heads = {e.key for e in entries if e.leads}
    assert all(not e.under for e in shown(entries, heads))
    assert shown(entries, set()) == entries


def test_where_nothing_was_found_it_says_so_and_what_is_open() -> None:
    d = incident("healthy")
    first = outline(d, "en")[0]
    assert first.kind is Kind.VERDICT
    assert first.severity == "ok"
    assert any(n.kind is Nodes.TEXT for _, n in walk(tree(first, d, "en")))
    nothing = diagnose([], rules())
    assert outline(nothing, "zh")[0].severity == "unknown"


@pytest.mark.slow
def test_what_was_not_concluded_can_be_asked_for() -> None:
    d = incident("off-the-bus")
    every = hypotheses(d, rules(), "en")
    found = {f.rule.id for f in d.findings}
    assert len(every) > 100
    assert not found & {h.rule for h in every}
    assert all(h.reason and h.title for h in every)
    for h in every[:40]:
        for lang in ("en", "zh"):
            q = query(h.rule, d, rules(), lang)
            spoken = understand(q.text, lang=lang)
            assert spoken.intent is Intent.WHYNOT, q.text
            assert ask(d, q).headline == ask(d, spoken).headline, q.text


def test_the_page_has_the_findings_and_the_proof() -> None:
    d = incident("off-the-bus")
    entries = outline(d, "en")
    sheet = page(d, entries, entries[0], "en")
    assert sheet.data["diagnosis"]["verdict"]["state"] == "unhealthy"
    assert len(sheet.parts) > 4
