"""Conditions as written: the tree that they become, and every fault that the builder names with its path."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rules.builder import Builder
from rules.compare import version
from rules.condition import (
    All,
    Any_,
    EventLeaf,
    FactLeaf,
    FieldTest,
    KnownLeaf,
    On,
    Op,
    Path,
    Quantifier,
    Reference,
    facts_of,
    leaves,
)
from rules.proof import Truth
from tests.cases import each
from tests.rules.lab import CONDITIONS, MINUTE, VOCABULARY, condition, faults_of, seen, truth

LEVEL = {"fact": "level", "op": "above", "value": 5}


def leaf(**more: Any) -> dict[str, Any]:
    return LEVEL | more


# --- the tree -----------------------------------------------------------------------------


def test_negation_goes_to_the_leaves() -> None:
    tree = condition({"not": {"all": [LEVEL, {"any": [{"event": "bang"}, {"not": {"known": "good"}}]}]}})
    assert isinstance(tree, Any_)
    one, inner = tree.children
    assert isinstance(one, FactLeaf)
    assert one.negated
    assert isinstance(inner, All)
    assert [x.negated for x in leaves(inner)] == [True, False]
    assert [type(x) for x in leaves(tree)] == [FactLeaf, EventLeaf, KnownLeaf]
    assert [x.path for x in leaves(tree)] == [
        ("when", "not", "all", 0),
        ("when", "not", "all", 1, "any", 0),
        ("when", "not", "all", 1, "any", 1, "not"),
    ]


@given(CONDITIONS)
def test_to_negate_twice_is_nothing(plain: dict[str, Any]) -> None:
    twice = condition({"not": {"not": plain}})
    assert [(type(x), x.negated) for x in leaves(twice)] == [(type(x), x.negated) for x in leaves(condition(plain))]
    assert facts_of(twice) == facts_of(condition(plain))


def test_an_event_as_written() -> None:
    plain = {"event": "bang", "where": {"code": [1, 2], "place": {"at_least": 1, "below": 3}, "text": "x"}, "same": ["place"],
             "count": {"at_least": 2, "at_most": 5}, "within": "1h", "gap": "3m", "on": "others",
             "after": {"event": "knock", "within": "60s", "where": {"place": 1}}}  # fmt: skip
    tree = condition(plain)
    assert isinstance(tree, EventLeaf)
    assert tree.where == (
        FieldTest("code", Op.IN, (1, 2)), FieldTest("place", Op.AT_LEAST, 1), FieldTest("place", Op.BELOW, 3),
        FieldTest("text", Op.IS, "x"),
    )  # fmt: skip
    assert (tree.at_least, tree.at_most, tree.within, tree.gap, tree.on) == (2, 5, 60 * MINUTE, 3 * MINUTE, On.OTHERS)
    assert tree.after is not None
    assert (tree.after.event, tree.after.within) == ("knock", MINUTE)
    assert facts_of(tree) == {"bang", "knock"}


@each(
    ("raw", "expected"),
    [("any", Quantifier("any")), ("none", Quantifier("none")), ({"at_least": 2}, Quantifier("at_least", 2)),
     ({"share": 0.5}, Quantifier("share", 0.5)), ({"share": 1}, Quantifier("share", 1))],
)  # fmt: skip
def test_quantifiers(raw: Any, expected: Quantifier) -> None:
    tree = condition(leaf(on="node", each=raw))
    assert isinstance(tree, FactLeaf)
    assert tree.each == expected


def test_parameters_stand_for_values_anywhere() -> None:
    params = {"n": 5, "time": "10m", "few": 2, "words": "red", "code": 7}
    used: set[str] = set()
    plain = {"all": [
        leaf(value="$n"), leaf(take="increase", within="$time"), leaf(on="node", each={"at_least": "$few"}),
        {"fact": "mode", "op": "in", "value": ["$words"]},
        {"event": "bang", "where": {"code": ["$code"], "place": {"above": "$n"}}, "count": {"at_least": "$few"}},
        {"fact": "level", "op": "above", "value": {"fact": "limit", "plus": "$n"}},
    ]}  # fmt: skip
    found: list[Any] = []
    tree = Builder(VOCABULARY, params, lambda *f: found.append(f), used).build(plain, ("when",))
    assert found == []
    assert used == set(params)
    assert tree is not None
    one, two, three, four, five, six = leaves(tree)
    assert isinstance(one, FactLeaf)
    assert one.value == 5
    assert isinstance(two, FactLeaf)
    assert two.within == 10 * MINUTE
    assert isinstance(three, FactLeaf)
    assert three.each == Quantifier("at_least", 2)
    assert isinstance(four, FactLeaf)
    assert four.value == ("red",)
    assert isinstance(five, EventLeaf)
    assert five.where == (FieldTest("code", Op.IN, (7,)), FieldTest("place", Op.ABOVE, 5))
    assert isinstance(six, FactLeaf)
    assert six.value == Reference("limit", 1.0, 5.0)


# --- faults -------------------------------------------------------------------------------

FAULTS: list[tuple[Any, Path, str]] = [
    (5, ("when",), "is a mapping"),
    ({}, ("when",), "exactly one of"),
    ({"al": [LEVEL]}, ("when",), "exactly one of"),
    ({"all": [LEVEL], "any": [LEVEL]}, ("when",), "exactly one of"),
    ({"all": []}, ("when", "all"), "at least one"),
    ({"any": LEVEL}, ("when", "any"), "at least one"),
    ({"not": [LEVEL]}, ("when", "not"), "is a mapping"),
    ({"all": [LEVEL], "within": "5m"}, ("when", "within"), "unknown key"),
    ({"known": "levle"}, ("when", "known"), "no fact 'levle'"),
    ({"known": ["level"]}, ("when", "known"), "no fact"),
    (leaf(fact="levle"), ("when", "fact"), "no fact 'levle'"),
    (leaf(fact="gone"), ("when", "fact"), "replaced by level"),
    (leaf(fact="bang"), ("when", "fact"), "is an event"),
    ({"fact": "level", "op": "above"}, ("when",), "op and value"),
    (leaf(op="over"), ("when", "op"), "cannot stand here"),
    (leaf(op=["above"]), ("when", "op"), "cannot stand here"),
    (leaf(valeu=3), ("when", "valeu"), "unknown key"),
    (leaf(value="hot"), ("when", "value"), "is not a int"),
    (leaf(value=True), ("when", "value"), "is not a int"),
    (leaf(value=5.5), ("when", "value"), "is not a int"),
    (leaf(value=None), ("when", "value"), "is not a int"),
    (leaf(op="in", value=5), ("when", "value"), "takes a list"),
    (leaf(op="in", value=[]), ("when", "value"), "takes a list"),
    (leaf(op="in", value=[1, "x"]), ("when", "value", 1), "is not a int"),
    (leaf(value="$none"), ("when", "value"), "no parameter 'none'"),
    ({"fact": "good", "op": "above", "value": True}, ("when", "op"), "cannot stand here"),
    ({"fact": "good", "op": "is", "value": "yes"}, ("when", "value"), "is not a bool"),
    ({"fact": "mode", "op": "is", "value": "rde"}, ("when", "value"), "is never 'rde'"),
    ({"fact": "mode", "op": "matches", "value": "r"}, ("when", "op"), "cannot stand here"),
    ({"fact": "flags", "op": "contains", "value": "warm"}, ("when", "value"), "is never 'warm'"),
    ({"fact": "word", "op": "matches", "value": "(?!x)"}, ("when", "value"), "RE2"),
    ({"fact": "word", "op": "matches", "value": r"(a)\1"}, ("when", "value"), "RE2"),
    ({"fact": "release", "op": "version_below", "value": "new"}, ("when", "value"), "not a version"),
    ({"fact": "watts", "op": "above", "value": float("nan")}, ("when", "value"), "is not a float"),
    (leaf(value={"fact": "limti"}), ("when", "value", "fact"), "no fact 'limti'"),
    (leaf(value={"fact": "watts"}), ("when", "value"), "is in W"),
    (leaf(value={"fact": "word"}), ("when", "value", "fact"), "is a str"),
    (leaf(value={"fact": "limit", "time": 2}), ("when", "value", "time"), "unknown key"),
    (leaf(value={"fact": "limit", "times": "2"}), ("when", "value", "times"), "is a number"),
    (leaf(op="in", value={"fact": "limit"}), ("when", "value"), "plain value"),
    (leaf(take="growth", within="5m"), ("when", "take"), "cannot stand here"),
    (leaf(take="increase"), ("when",), "needs `within`"),
    (leaf(take="increase", within="soon"), ("when", "within"), "not a duration"),
    (leaf(take="increase", within="0s"), ("when", "within"), "longer than nothing"),
    (leaf(within="5m"), ("when", "within"), "without take"),
    (leaf(coverage=0.5), ("when", "coverage"), "without take"),
    (leaf(take="increase", within="5m", coverage=1.5), ("when", "coverage"), "from 0 to 1"),
    (leaf(take="increase", within="5m", per="1s"), ("when", "per"), "without take: rate"),
    (leaf(take="rate", within="5m", percentile=5), ("when", "percentile"), "without take: percentile"),
    (leaf(take="percentile", within="5m", percentile=101), ("when", "percentile"), "from 0 to 100"),
    (
        {"fact": "word", "op": "is", "value": "x", "take": "sustained", "within": "5m"},
        ("when", "fact"),
        "course over time",
    ),
    (leaf(on="node"), ("when",), "say each"),
    (leaf(on="elsewhere", each="any"), ("when", "on"), "cannot stand here"),
    (leaf(on="via", each="any"), ("when", "on"), "cannot stand here"),
    (leaf(via=["gpus"], each="any"), ("when", "via", 0), "cannot stand here"),
    (leaf(via="gpu", each="any"), ("when", "via"), "takes a list"),
    (leaf(via=["gpu"], on="node", each="any"), ("when", "on"), "beside via"),
    (leaf(on="node", each="most"), ("when", "each"), "not a quantifier"),
    (leaf(on="node", each={"share": 1.5}), ("when", "each"), "not a quantifier"),
    (leaf(on="node", each={"share": 0}), ("when", "each"), "not a quantifier"),
    (leaf(on="node", each={"at_least": 1.5}), ("when", "each"), "not a quantifier"),
    (leaf(on="node", each={"at_least": True}), ("when", "each"), "not a quantifier"),
    (leaf(peers="median"), ("when", "peers"), "the word ratio"),
    (leaf(peers="ratio", value={"fact": "limit"}), ("when", "value"), "plain number"),
    (leaf(peers="ratio", each="any"), ("when", "each"), "beside peers"),
    (leaf(min_peers=3), ("when", "min_peers"), "without peers"),
    (leaf(peers="ratio", min_peers=0), ("when", "min_peers"), "from 1"),
    ({"event": "bnag"}, ("when", "event"), "no fact 'bnag'"),
    ({"event": "level"}, ("when", "event"), "not an event"),
    ({"event": "bang", "where": {"plaec": 1}}, ("when", "where", "plaec"), "has no field 'plaec'"),
    ({"event": "bang", "where": [1]}, ("when", "where"), "is a mapping"),
    ({"event": "bang", "where": {"place": "x"}}, ("when", "where", "place"), "is not a int"),
    (
        {"event": "bang", "where": {"place": {"matches": "x"}}},
        ("when", "where", "place", "matches"),
        "cannot stand here",
    ),
    ({"event": "bang", "where": {"text": {"matches": "("}}}, ("when", "where", "text", "matches"), "RE2"),
    ({"event": "bang", "same": "place"}, ("when", "same"), "takes a list"),
    ({"event": "bang", "same": ["spot"]}, ("when", "same", 0), "has no field 'spot'"),
    ({"event": "bang", "count": 2}, ("when", "count"), "at_least and at_most"),
    ({"event": "bang", "count": {}}, ("when", "count"), "at_least and at_most"),
    ({"event": "bang", "count": {"at_least": "2"}}, ("when", "count"), "whole number"),
    ({"event": "bang", "count": {"at_least": -1}}, ("when", "count"), "whole number"),
    ({"event": "bang", "count": {"at_least": 0}}, ("when", "count"), "always true"),
    ({"event": "bang", "count": {"at_least": 3, "at_most": 2}}, ("when", "count"), "never true"),
    ({"event": "bang", "on": "below"}, ("when", "on"), "cannot stand here"),
    ({"event": "bang", "after": {"event": "knock"}}, ("when", "after"), "with `within`"),
    ({"event": "bang", "after": 5}, ("when", "after"), "with `within`"),
    (
        {"event": "bang", "after": {"event": "knock", "within": "1m", "count": {}}},
        ("when", "after", "count"),
        "unknown key",
    ),
    ({"event": "bang", "op": "above"}, ("when", "op"), "unknown key"),
]


@each(("plain", "path", "words"), FAULTS, ids=lambda v: str(v)[:50])
def test_every_fault_is_named_at_its_path(plain: Any, path: Path, words: str) -> None:
    found = faults_of(plain)
    assert any(at == path and words in message for at, message, _ in found), found


@each(
    ("plain", "name"),
    [
        (leaf(fact="levle"), "level"), (leaf(op="abov"), "above"), (leaf(coverge=1), "coverage"),
        ({"event": "bang", "where": {"plaec": 1}}, "place"), ({"fact": "mode", "op": "is", "value": "bleu"}, "blue"),
        ({"evnt": "bang"}, "event"), (leaf(value="$limti"), "limit"), ({"fact": "good", "op": "above", "value": 1}, "is"),
    ],
)  # fmt: skip
def test_the_nearest_name_is_told(plain: Any, name: str) -> None:
    found = faults_of(plain, {"limit": 3})
    assert any(name in hint for _, _, hint in found), found


def test_all_faults_at_once() -> None:
    plain = {"all": [plain for plain, _, _ in FAULTS[10:20]]}
    assert len({path[:3] for path, _, _ in faults_of(plain)}) == 10


_JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.sampled_from(("level", "bang", "above", "any", "$x", "5m")),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(("all", "any", "not", "event", "fact", "known", "op", "value", "where", "same", "count", "within",
                         "on", "via", "each", "peers", "take", "after", "at_least", "share", "place", "code")),
        inner, max_size=5,
    ),
    max_leaves=12,
)  # fmt: skip


@given(_JUNK)
def test_no_shape_raises_and_none_is_quietly_nothing(plain: Any) -> None:
    found: list[Any] = []
    tree = Builder(VOCABULARY, {}, lambda *f: found.append(f), set()).build(plain, ("when",))
    assert tree is not None or found
    assert all(isinstance(path, tuple) and message for path, message, _ in found)


# --- versions -----------------------------------------------------------------------------


@each(
    ("text", "numbers"),
    [("570.86.15", (570, 86, 15)), ("v1.2", (1, 2)), ("12.0", (12,)), ("535.104.05-ubuntu", (535, 104, 5)), ("0", (0,)),
     ("0.0", (0,)), ("new", ()), ("", ()), (" 9 ", (9,))],
)  # fmt: skip
def test_versions_are_numbers(text: str, numbers: tuple[int, ...]) -> None:
    assert version(text) == numbers


@each(("have", "want"), [("9.1", "10.0"), ("570.86.15", "570.124"), ("12.4", "12.4.1"), ("1", "1.0.0.1")])
def test_versions_are_compared_as_numbers(have: str, want: str) -> None:
    world = [seen("release", have)]
    assert truth({"fact": "release", "op": "version_below", "value": want}, world) is Truth.TRUE
    assert truth({"fact": "release", "op": "version_at_least", "value": want}, world) is Truth.FALSE
    assert truth({"fact": "release", "op": "version_at_least", "value": have}, world) is Truth.TRUE


def test_a_pattern_meets_bytes_that_were_no_text() -> None:
    from rules.compare import _COMPARE
    from rules.condition import Op

    matches = _COMPARE[Op.MATCHES]
    assert matches("train\udc80.py", "^train")
    assert not matches("\udcff", "^train")
