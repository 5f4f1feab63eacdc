"""Cards: what stands on them is what the built rules say."""

from __future__ import annotations

from functools import cache

from rules.condition import facts_of
from rules.index import Index, card_of, index, names, shape_of
from rules.loader import load
from tests.cases import each
from tests.rules.lab import condition, rule


@cache
def shipped() -> Index:
    return index(load().rules)


def test_every_compiled_card_is_that_of_its_rule() -> None:
    assert list(shipped().cards) == [r.id for r in load().rules]
    for r in load().rules:
        assert shipped().cards[r.id] == card_of(r)
        assert shipped().rule(r.id) is r


def test_a_card_names_all_facts_of_the_conditions() -> None:
    for r in load().rules:
        card = shipped().cards[r.id]
        assert card.asks == facts_of(r.when)
        assert card.more == frozenset().union(*(facts_of(c) for c in (*r.confirms, *r.excludes)))


def test_who_explains_whom_is_the_same_from_both_sides() -> None:
    for cause in shipped().cards:
        for effect in shipped().effects(cause):
            assert cause in shipped().causes(effect)
    assert "uncorrectable-ecc" in shipped().causes("row-remap-recorded")


def test_the_catalogue_explains_by_code() -> None:
    """XID 48 explains 63 in NVIDIA's catalogue; a rule that relies on it names no rule itself."""
    from knowledge.catalog.xid import xid

    entry = xid(94)
    assert entry is not None
    by_code = {c.xid: c.id for c in shipped().cards.values() if c.xid is not None}
    named = {by_code[code] for code in entry.explains if code in by_code}
    assert named <= shipped().effects(by_code[94])


def test_above_is_closed_under_causes() -> None:
    above = shipped().above(["row-remap-recorded"])
    assert "row-remap-recorded" in above
    assert all(shipped().causes(r) <= above for r in above)


@each(
    ("plain", "shape"),
    [
        ({"fact": "good", "op": "is", "value": True}, "good"),
        ({"fact": "level", "op": "above", "value": {"fact": "limit"}}, "level limit"),
        ({"event": "bang", "after": {"event": "knock", "within": "1m"}}, "bang knock"),
        ({"known": "busy"}, "busy"),
        (
            {"all": [{"known": "busy"}, {"any": [{"known": "level"}, {"known": "good"}]}]},
            ["all", "busy", ["any", "level", "good"]],
        ),
    ],
)
def test_a_shape_keeps_groups_and_names(plain: object, shape: object) -> None:
    assert shape_of(condition(plain)) == shape


def test_codes_are_those_that_a_leaf_names() -> None:
    one = card_of(rule("r", {"any": [{"event": "bang", "where": {"code": [1, 2]}}, {"event": "knock"}]}))
    assert one.codes == {"bang": (1, 2)}
    assert one.any_code == {"knock"}
    assert one.about("bang", 2)
    assert not one.about("bang", 3)
    assert not one.about("knock", 1)
    assert set(names(one.when)) == {"bang", "knock"}


def test_the_index_of_one_rule_set_is_made_once() -> None:
    assert index(load().rules) is index(load().rules)
    mine = (rule("r", {"known": "busy"}),)
    assert index(mine) is index(mine)
    assert set(index(mine).cards) == {"r"}
