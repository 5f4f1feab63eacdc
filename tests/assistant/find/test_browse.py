"""Walking through what is known: kinds, pages, the links between them."""

from __future__ import annotations

from functools import cache

from assistant.dialogue._pages import page
from assistant.find import topic, topics
from assistant.find.browse import GLUE, KINDS, Linked, called, kind_of, linked, question, related
from assistant.intent.parse import understand
from assistant.intent.query import Intent
from assistant.render.sheet import text_part
from assistant.topics import kinds
from rules.loader import RuleSet, load
from tests.cases import each


@cache
def ruleset() -> RuleSet:
    return load()


def opened(name: str, lang: str = "en") -> Linked:
    sheet = page(name, lang)
    assert sheet is not None
    return linked(name, sheet, related(name, ruleset()), lang)


def lines(made: Linked, columns: int = 80) -> list[str]:
    return [line for part in made.parts for line in text_part(part, columns)]


def test_every_kind_of_page_is_offered() -> None:
    assert {k.name for k in KINDS} == set(kinds())
    for kind in KINDS:
        assert kind.title.zh
        assert kind.about.zh
        assert topics(kind.name)
    assert kind_of("something").title.en == "something"


def test_codes_stand_in_the_order_of_their_numbers() -> None:
    codes = [int(t.name) for t in topics("xid")]
    assert codes == sorted(codes)
    assert called(topics("xid")[0], "en")[0].startswith("XID ")


@each("kind", [k.name for k in KINDS])
@each("lang", ["en", "zh"])
def test_pages_of_every_kind_open_and_their_links_lead_to_pages(kind: str, lang: str) -> None:
    every = topics(kind)
    for t in (every[0], every[len(every) // 2], every[-1]):
        made = opened(t.id, lang)
        assert made.title
        assert all(topic(there) is not None for there in made.links.values())
        assert t.id not in made.links.values()
        found = {there for line in lines(made) for _, _, there in made.spans(line)}
        glued = {there for shown, there in made.links.items() if lang == "en" or shown.isascii()}
        assert glued <= found  # whatever the width, no link is broken over two lines
        query = understand(question(t, lang), lang=lang)
        assert query.intent is Intent.EXPLAIN
        assert query.topics[0].id == t.id


def test_a_code_leads_to_its_rules_and_runbooks_and_to_other_codes() -> None:
    made = opened("xid 48")
    there = set(made.links.values())
    assert any(t.startswith("rule ") for t in there)
    assert any(t.startswith("xid ") for t in there)
    assert any(t.startswith("runbook ") for t in opened("xid 79").links.values())


def test_a_rule_leads_to_its_facts_and_its_runbook() -> None:
    there = set(opened("rule gpu-fell-off-bus").links.values())
    assert "runbook gpu-off-bus" in there
    assert any(t.startswith("fact ") for t in there)


def test_a_term_leads_to_the_terms_it_names() -> None:
    from knowledge.catalog.lookup import glossary

    name = next(t.id for t in glossary().values() if t.see_also)
    assert {f"term {n}" for n in glossary()[name].see_also} <= set(opened(f"term {name}").links.values())


def test_a_link_is_a_whole_word() -> None:
    made = Linked("x", "", (), {"gpu-off-bus": "runbook gpu-off-bus", f"XID{GLUE}7": "xid 7"})
    assert list(made.spans("see gpu-off-bus.")) == [(4, 15, "runbook gpu-off-bus")]
    assert not list(made.spans("rules/gpu-off-bus.yaml gpu-off-bus-2"))
    assert not list(made.spans(f"XID{GLUE}79"))
