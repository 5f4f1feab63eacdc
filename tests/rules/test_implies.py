"""Whether one condition implies another: where the answer is yes, no facts ever show otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Observation, Series, Status
from rules.condition import Condition
from rules.evaluate import evaluate
from rules.implies import bare, implies
from rules.proof import Truth
from tests.cases import each
from tests.rules.lab import (
    CONDITIONS,
    GPU,
    GPUS,
    HERE,
    MINUTE,
    NOW,
    VOCABULARY,
    bang,
    base,
    condition,
    events,
    quiet,
    seen,
    worlds,
)

Plain = dict[str, Any]


def said(a: Plain, b: Plain) -> bool:
    return implies(condition(a), condition(b), VOCABULARY)


# --- the law ------------------------------------------------------------------------------


def refuted(tree: Mapping[int, Condition], told: Iterable[tuple[int, int]], world: list[Observation]) -> list[Any]:
    """Pairs that the facts of this world contradict, with the subject that shows it."""
    facts = base(world)
    found = []
    pairs = list(told)
    for subject in GPUS[:2]:
        truth = {i: evaluate(tree[i], subject, facts).truth for i in {i for pair in pairs for i in pair}}
        found += [
            (tree[a], tree[b], subject) for a, b in pairs if truth[a] is Truth.TRUE and truth[b] is not Truth.TRUE
        ]
    return found


def pairs_of(trees: Sequence[Condition]) -> list[tuple[int, int]]:
    """The pairs of which the check says yes."""
    numbers = range(len(trees))
    return [(i, j) for i, j in product(numbers, numbers) if i != j and implies(trees[i], trees[j], VOCABULARY)]


def signed(items: Iterable[Plain]) -> list[Plain]:
    return [form for item in items for form in (item, {"not": item})]


_ORDERS = ("at_least", "at_most", "above", "below", "is", "is_not")
_MANY = ("any", "all", "none", {"at_least": 1}, {"at_least": 2}, {"share": 0.5}, {"share": 1})
_LIMIT = {"fact": "limit"}


def one_fact() -> list[list[Plain]]:
    """Conditions on one fact each, in every form; those of one list are held against each other."""
    level: Plain = {"fact": "level"}
    past = {"fact": "level", "within": "5m", "coverage": 0.1}
    return [
        signed([
            {"known": "level"},
            *({**level, "op": op, "value": n} for op, n in product(_ORDERS, (0, 5))),
            *({**level, "op": op, "value": n} for op, n in product(("in", "not_in"), ([0], [0, 5], [5, 7]))),
            *({**level, "op": op, "value": _LIMIT} for op in _ORDERS),
            *({**level, "op": op, "value": {**_LIMIT, "plus": 2}} for op in ("above", "below")),
        ]),
        signed({**level, "op": op, "value": n, "on": "node", "each": each}
               for op, n, each in product(("at_least", "below", "is_not"), (0, 5), _MANY)),
        signed({**level, "op": op, "value": _LIMIT, "on": on, "each": each}
               for op, on, each in product(("at_least", "above"), ("node", "others"), _MANY[:4])),
        signed({**level, "op": op, "value": n, "peers": "ratio", "min_peers": least}
               for op, n, least in product(("at_least", "above", "below", "is_not"), (1, 1.5), (1, 2))),
        signed({**past, "op": op, "value": n, "take": take}
               for op, n, take in product(("at_least", "above", "at_most", "is_not"), (0, 5),
                                          ("increase", "sustained", "percentile"))),
        signed([{"known": "crc"}, *({"fact": "crc", "op": "above", "value": n, "each": each} for n, each in product((0, 5), _MANY))]),
        signed([{"known": "good"}, *({"fact": "good", "op": op, "value": v}
                                     for op, v in product(("is", "is_not"), (True, False)))]),
        signed([{"known": "mode"}, *({"fact": "mode", "op": op, "value": v}
                                     for op, v in product(("is", "is_not"), ("red", "blue"))),
                *({"fact": "mode", "op": op, "value": v}
                  for op, v in product(("in", "not_in"), (["red"], ["red", "blue"], ["green", "blue"])))]),
        signed([{"fact": "word", "op": "matches", "value": "^t"},
                *({"fact": "word", "op": op, "value": v} for op, v in product(("is", "is_not"), ("two", "one"))),
                *({"fact": "word", "op": "in", "value": v} for v in (["two"], ["one", "two"])),
                *({"fact": "word", "op": "contains", "value": v} for v in ("o", "WO", "two", "n"))]),
        signed([{"fact": "release", "op": "is", "value": "570.1"}, {"fact": "release", "op": "is_not", "value": "x"},
                *({"fact": "release", "op": op, "value": v}
                  for op, v in product(("version_below", "version_at_least"), ("9", "570.1", "570.1.0", "570.10")))]),
        signed({"fact": "release", "op": op, "value": v, "on": "node", "each": each}
               for op, v, each in product(("version_below", "is", "is_not"), ("9", "x", "8"), ("any", "all", "none"))
               if op != "version_below" or v != "x"),
        signed({"fact": "flags", "op": op, "value": v}
               for op, v in product(("contains", "is", "is_not"), ("hot", ["hot"], ["hot", "cold"]))),
    ]  # fmt: skip


@cache
def families() -> list[tuple[dict[int, Condition], list[tuple[int, int]]]]:
    """The conditions of `one_fact` as trees, and which are said to imply which."""
    built = [[bare(condition(plain)) for plain in family] for family in one_fact()]
    return [(dict(enumerate(trees)), pairs_of(trees)) for trees in built]


@st.composite
def numbers_over_time(draw: st.DrawFn) -> list[Observation]:
    """Samples of levels, releases and words: what the conditions above ask for besides."""
    out = []
    for on in GPUS:
        samples = draw(st.just([]) | st.lists(st.sampled_from((0.0, 4.5, 5.0, 9.0)), max_size=4))
        if samples:
            times = tuple(NOW + (i - len(samples)) * MINUTE for i in range(len(samples)))
            out.append(seen("level", Series(times, tuple(samples)), on, probe="z"))
    out += [seen("release", draw(st.sampled_from(("570.1", "570.2-open", "8", "x", ""))), on) for on in GPUS]
    out.append(seen("word", draw(st.sampled_from(("two", "one", "WON", "")))))
    return out


@pytest.mark.slow
@given(worlds(), numbers_over_time())
def test_no_facts_refute_what_is_said_of_one_fact(world: list[Observation], more: list[Observation]) -> None:
    for tree, told in families():
        assert told, "the check sees something in every family"
        assert refuted(tree, told, [*world, *more]) == []


_PARTS: Mapping[str, tuple[Any, ...]] = {
    "where": ({}, {"code": 1}, {"code": [1, 2]}, {"place": 0}, {"code": 1, "place": {"at_least": 0}}, {"slot": {"is_not": 1}}),
    "count": (None, {"at_least": 2}, {"at_least": 3}, {"at_most": 2}, {"at_least": 1, "at_most": 1}),
    "within": (None, "1m", "3m"),
    "gap": (None, "1m", "2m"),
    "same": ([], ["place"], ["place", "slot"]),
    "on": ("self", "node", "others"),
    "after": (None, {"event": "knock", "within": "2m"}, {"event": "knock", "where": {"place": 1}, "within": "1m"},
              {"event": "knock", "within": "1m"}),
    "event": ("bang", "knock"),
}  # fmt: skip
_TOGETHER = [
    *combinations(_PARTS, 2),
    ("count", "within", "gap"),
    ("count", "same", "where"),
    ("count", "gap", "where"),
]


def neighbours(parts: Sequence[str]) -> list[Plain]:
    """Conditions on events that differ in some parts; the other parts say nothing."""
    chosen = {name: options if name in parts else options[:1] for name, options in _PARTS.items()}
    out = [{k: v for k, v in zip(chosen, picked, strict=True) if v not in (None, {}, [])}
           for picked in product(*chosen.values())]  # fmt: skip
    lacking = ("slot",)  # a field that only one of the two events has
    good = [p for p in out if p["event"] == "bang" or not {*p.get("where", ()), *p.get("same", ())} & {*lacking}]
    return signed(good) if len(parts) == 2 else good


@cache
def event_pairs(of_node: bool = False) -> tuple[dict[int, Condition], list[tuple[int, int]]]:
    """Conditions on events in every two of their parts, and which are said to imply which."""
    number: dict[str, int] = {}
    tree: dict[int, Condition] = {}
    told: set[tuple[int, int]] = set()
    for parts in (p for p in _TOGETHER if not of_node or len(p) == 3 or "on" in p):
        family = {}
        for plain in neighbours(parts):
            i = number.setdefault(repr(plain), len(number))
            family[i] = tree[i] = tree.get(i) or bare(condition(plain))
        told |= {(i, j) for i, j in product(family, family)
                 if (i != j or of_node) and implies(tree[i], tree[j], VOCABULARY, of_node=of_node)}  # fmt: skip
    return tree, sorted(told)


@st.composite
def happenings(draw: st.DrawFn) -> list[Observation]:
    """Many events in a few minutes, mostly about one GPU, mostly with somebody who looked for all of them."""
    minute, two = st.integers(-5, 0).map(lambda m: m * MINUTE), st.integers(0, 1)
    slot = st.sampled_from(({}, {"slot": 0}, {"slot": 1}))
    one = st.builds(lambda at, code, place, more: bang(at, code=code + 1, place=place, **more), minute, two, two, slot)
    far = st.builds(lambda at, place: bang(at, HERE, name="knock", place=place), minute, two)
    out = [
        *draw(st.lists(one, min_size=1, max_size=5)),
        *draw(st.lists(far, max_size=2)),
        *draw(st.lists(events(), max_size=4)),
    ]
    out += [quiet(name) for name in ("bang", "knock") if draw(st.integers(0, 3))]
    return out


@pytest.mark.slow
@given(happenings())
def test_no_events_refute_what_is_said(world: list[Observation]) -> None:
    assert refuted(*event_pairs(), world) == []


@pytest.mark.slow
@given(st.lists(CONDITIONS, min_size=2, max_size=4), st.lists(worlds(), min_size=3, max_size=3))
def test_no_facts_refute_what_is_said_of_groups(plain: list[Plain], many: list[list[Observation]]) -> None:
    """Each against each, and each against what it is a part of."""
    plain = [*plain, {"all": plain}, {"any": plain}, {"all": [plain[0], {"any": plain[1:]}]}]
    trees = [condition(p) for p in plain]
    told = pairs_of(trees)
    whole = len(plain) - 3
    assert all((whole, i) in told and (i, whole + 1) in told for i in range(whole)), "a part of a group is seen"
    for world in many:
        assert refuted(dict(enumerate(trees)), told, world) == []


@pytest.mark.slow
@given(happenings())
def test_no_events_refute_what_is_said_of_the_node(world: list[Observation]) -> None:
    tree, told = event_pairs(of_node=True)
    facts = base(world)
    of_node = {j: evaluate(tree[j], HERE, facts).truth for j in {j for _, j in told}}
    for gpu in GPUS[:2]:
        of_part = {i: evaluate(tree[i], gpu, facts).truth for i in {i for i, _ in told}}
        assert not [(tree[i], tree[j]) for i, j in told if of_part[i] is Truth.TRUE and of_node[j] is not Truth.TRUE]


# --- what it sees -------------------------------------------------------------------------

XID: Plain = {"event": "bang", "where": {"code": 1}}
LEVEL: Plain = {"fact": "level", "op": "above", "value": 5}
GOOD: Plain = {"fact": "good", "op": "is", "value": True}
SEEN: list[tuple[Plain, Plain]] = [
    ({**XID, "count": {"at_least": 5}, "within": "1h"}, XID),
    ({**XID, "count": {"at_least": 5}, "within": "1h"}, {**XID, "count": {"at_least": 3}, "within": "2h"}),
    ({**XID, "count": {"at_least": 2}, "within": "1h", "gap": "3m"}, {"event": "bang", "count": {"at_least": 2}, "within": "1h"}),
    ({**XID, "count": {"at_least": 3}, "within": "1h", "gap": "3m"}, {**XID, "count": {"at_least": 2}, "within": "1d", "gap": "3m"}),
    ({**XID, "same": ["place"], "count": {"at_least": 2}}, {**XID, "count": {"at_least": 2}}),
    ({**XID, "after": {"event": "knock", "within": "1m"}}, XID),
    ({**XID, "within": "1h"}, {**XID, "within": "2h"}),
    ({**XID, "on": "others"}, {**XID, "on": "node"}),
    ({"event": "bang", "where": {"code": 1, "place": {"above": 3}}}, {"event": "bang", "where": {"code": [1, 2], "place": {"at_least": 2}}}),
    ({"not": {"event": "bang"}}, {"not": XID}),
    ({"fact": "level", "op": "at_least", "value": 90}, {"fact": "level", "op": "above", "value": 80}),
    ({"fact": "level", "op": "is", "value": 7}, LEVEL),
    ({"not": {"fact": "level", "op": "below", "value": 6}}, LEVEL),
    ({"fact": "mode", "op": "in", "value": ["red", "blue"]}, {"fact": "mode", "op": "is_not", "value": "green"}),
    ({"fact": "good", "op": "is_not", "value": False}, GOOD),
    ({"fact": "word", "op": "contains", "value": "watchdog"}, {"fact": "word", "op": "contains", "value": "Dog"}),
    ({"fact": "flags", "op": "contains", "value": "hot"}, {"fact": "flags", "op": "contains", "value": ["hot", "cold"]}),
    ({"fact": "release", "op": "version_below", "value": "535"}, {"fact": "release", "op": "version_below", "value": "570.1"}),
    ({**LEVEL, "on": "node", "each": "all"}, {"fact": "level", "op": "above", "value": 4, "on": "node", "each": "any"}),
    ({**LEVEL, "on": "node", "each": {"at_least": 3}}, {**LEVEL, "on": "node", "each": {"at_least": 2}}),
    ({**LEVEL, "take": "sustained", "within": "5m"}, {"fact": "level", "op": "above", "value": 4, "take": "sustained", "within": "5m"}),
    (LEVEL, {"known": "level"}),
    ({"all": [LEVEL, GOOD, XID]}, {"all": [XID, LEVEL]}),
    ({"all": [LEVEL, GOOD]}, {"any": [GOOD, XID]}),
    ({"any": [{"fact": "level", "op": "is", "value": 7}, {"fact": "level", "op": "is", "value": 9}]}, LEVEL),
    ({"all": [XID, {"any": [{"fact": "level", "op": "above", "value": 8}, {"all": [LEVEL, GOOD]}]}]}, {"all": [LEVEL, XID]}),
]  # fmt: skip


@each("a, b", SEEN)
def test_what_is_narrower_is_seen(a: Plain, b: Plain) -> None:
    assert said(a, b)
    assert not said(b, a) or a["fact"] == "good", "and the other way round it is no such thing"


OTHER: list[tuple[Plain, Plain]] = [
    (XID, {"event": "bang", "where": {"code": 2}}),
    (XID, {**XID, "count": {"at_least": 2}}),
    (XID, {**XID, "within": "1h"}),
    (XID, {"event": "bang", "where": {"code": 1, "place": 0}}),
    (XID, {**XID, "same": ["place"]}),
    ({**XID, "count": {"at_least": 5}, "within": "1h"}, {**XID, "within": "1h"}),
    ({**XID, "count": {"at_least": 5}, "within": "1h"}, {**XID, "count": {"at_least": 2}, "within": "1h", "gap": "3m"}),
    ({**XID, "count": {"at_least": 2}, "gap": "3m"}, {"event": "bang", "count": {"at_least": 2}, "gap": "3m"}),
    ({"any": [XID, LEVEL]}, XID),
    ({"any": [LEVEL, GOOD]}, {"all": [LEVEL, GOOD]}),
    (LEVEL, {"fact": "level", "op": "above", "value": {"fact": "limit"}}),
    (LEVEL, {**LEVEL, "on": "node", "each": "any"}),
    (XID, {**XID, "on": "node"}),  # an event of a rack is seen from its parts
    ({"known": "level"}, {"fact": "level", "op": "at_least", "value": 0}),
    ({"not": {"fact": "watts", "op": "below", "value": 6, "take": "increase", "within": "5m"}},
     {"fact": "watts", "op": "at_least", "value": 6, "take": "increase", "within": "5m"}),
]  # fmt: skip


@each("a, b", OTHER)
def test_what_only_looks_narrower(a: Plain, b: Plain) -> None:
    assert not said(a, b)


def test_conditions_that_come_true_in_too_many_ways() -> None:
    """Of 3 ** 6 ways nobody looks at each; what is written alike is seen all the same."""
    many = {"all": [{"any": [{**LEVEL, "value": 10 * i + j} for j in range(3)]} for i in range(6)]}
    assert not said(many, LEVEL)
    assert said(many, {"all": many["all"][::-1]})


def test_an_event_of_a_part_is_one_of_the_node() -> None:
    one, other = condition(XID), condition({"event": "bang"})
    assert implies(one, other, VOCABULARY, of_node=True)
    assert not implies(other, one, VOCABULARY, of_node=True)
    assert not implies(one, condition({**XID, "on": "node"}), VOCABULARY, of_node=True), "of a rack it is not"
    for plain in (LEVEL, {"known": "level"}, {"not": XID}, {**XID, "gap": "3m", "count": {"at_least": 2}}):
        same = condition(plain)
        assert implies(same, same, VOCABULARY)
        assert not implies(same, same, VOCABULARY, of_node=True), plain


def test_a_status_that_answers_nothing_refutes_nothing() -> None:
    """The facts of the law do come true: it would hold of anything where they never do."""
    facts = base([seen("level", 9), seen("good", None, status=Status.DENIED), bang(0), bang(-MINUTE, code=2)])
    truths = [evaluate(condition(plain), GPU, facts).truth for plain in (LEVEL, XID, GOOD)]
    assert truths == [Truth.TRUE, Truth.TRUE, Truth.UNKNOWN]
