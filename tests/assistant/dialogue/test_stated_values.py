"""What a person states is rated value by value, and the worst one answers: in no company does a bad one become a yes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from assistant.diagnosis import diagnose
from assistant.dialogue import Turn, answerer
from assistant.intent.query import Intent, Query
from assistant.intent.told import TOLD
from assistant.render.sheet import Fields
from assistant.reply import Reply
from knowledge.facts import Kind, Type, vocabulary
from knowledge.identity import UNKNOWN_PCI
from knowledge.observation import Observation, Origin, Scope, Subject, Value, gpu, node
from knowledge.readings import Rating, Scale, scales
from rules.condition import FactLeaf, Op, leaves
from rules.loader import load
from rules.model import Bucket, Severity
from rules.resolve import buckets
from tests.cases import Faults, each

UNREAD = "the wobbulator says red"
QUESTIONS = (
    ("en", Intent.VERDICT, "can I keep using it?"),
    ("en", Intent.DIAGNOSE, "is that normal?"),
    ("zh", Intent.VERDICT, "没问题吧"),
    ("zh", Intent.VERDICT, "卡要换吗"),
)
PRAISE = (
    "Yes",
    "Nothing wrong",
    "Nothing stated",
    "Usual",
    "满载时属常见",
    "能判断的都正常",
    "仅凭这些无需处理",
    "就所述而言没有问题",
    "可以",
    "所述数值均正常",
    "所述情况不需要",
)


class Told(NamedTuple):
    """One fact with a value."""

    fact: str
    value: Value


GOOD = Told("gpu.temperature.core", 58)


def said(told: Told) -> Observation:
    host = node("unknown:?")
    scope = vocabulary()[told.fact].scope
    where = host if scope is Scope.NODE else Subject(scope, f"{UNKNOWN_PCI}?", host)
    where = gpu(f"{UNKNOWN_PCI}?", host.id) if scope is Scope.GPU else where
    return Observation(told.fact, where, told.value, source=TOLD, excerpt="as said", origin=Origin.TOLD)


def asked(told: tuple[Told, ...], lang: str, intent: Intent, question: str, unread: tuple[str, ...] = ()) -> Reply:
    seen = tuple(map(said, told))
    query = Query(text=question, lang=lang, intent=intent, observations=seen, asks=question, unread=unread)
    return answerer(intent).answer(Turn(query, lang, load(), diagnose(seen, load())))


def first(reply: Reply) -> str:
    """What stands first, whoever wrote it."""
    shown = reply.shown or reply.diagnosis
    return reply.headline or (shown.verdict.text.in_(reply.lang) if shown is not None else "")


def bad() -> Iterator[Told]:
    """Each fact that a rule of severity error or worse compares with a fixed value, with one for which the comparison holds;
    and each scale with a value that it calls bad."""
    known = vocabulary()
    out: dict[Told, None] = {}
    for rule in load().rules:
        if rule.severity.rank < Severity.ERROR.rank:
            continue
        for leaf in leaves(rule.when):
            spec = known.get(leaf.fact) if isinstance(leaf, FactLeaf) else None
            if not isinstance(leaf, FactLeaf) or spec is None or spec.kind is Kind.EVENT or spec.derived:
                continue
            value = _holding(leaf)
            if value is not None and spec.accepts(value) and _rating(leaf.fact, value) is not Rating.GOOD:
                out.setdefault(Told(leaf.fact, value))
    for name, scale in scales().items():
        out.update(dict.fromkeys(Told(name, value) for value in _called_bad(scale, known[name].type)))
    yield from out


def _rating(fact: str, value: Value) -> Rating:
    return scales()[fact].meaning(value).rating if fact in scales() else Rating.OPEN


def _holding(leaf: FactLeaf) -> Value:
    match leaf.op, leaf.value:
        case Op.IS, bool() | str() | int() as value:
            return value
        case Op.IN, [str() as value, *_]:
            return value
        case ((Op.ABOVE | Op.AT_LEAST), int() as value):
            return value + 1
    return None


def _called_bad(scale: Scale, kind: Type) -> Iterator[Value]:
    for rating, band in scale.bands:
        if rating is Rating.BAD:
            edge = band.low if band.low is not None else (band.high or 1) - 1
            yield int(edge) if kind is Type.INT else float(edge)
    yield from (word for word, (rating, _) in (scale.words or {}).items() if rating is Rating.BAD)


@pytest.mark.slow
def test_a_bad_value_is_never_praised_alone_or_in_company() -> None:
    with Faults() as faults:
        for one in bad():
            for lang, intent, question in QUESTIONS:
                for told, unread in (((one,), ()), ((GOOD, one), ()), ((GOOD, one), (UNREAD,))):
                    with faults.of(f"{one} {question} {unread}"):
                        reply = asked(told, lang, intent, question, unread)
                        assert reply.data.get("usable") != "yes"
                        assert not first(reply).startswith(PRAISE), first(reply)


def test_what_was_not_understood_comes_first_and_forbids_praise() -> None:
    for lang, intent, question in QUESTIONS:
        reply = asked((GOOD,), lang, intent, question, (UNREAD,))
        assert UNREAD in reply.headline
        assert not reply.headline.startswith(PRAISE)
        assert not reply.settled


@each(("told", "begins", "holds"), [
    (Told("gpu.temperature.memory", 104), "Only for what runs already", "104 °C"),
    (Told("node.service.fabric_manager.state", "stopped"), "No: ", "RESTART_FM"),
    (Told("port.state", "down"), "No: ", "INSPECT_NETWORK"),
    (Told("gpu.fan.speed", 0), "No: ", "CHECK_MECHANICALS"),
    (Told("gpu.pcie.width", 8), "No: ", "(bad: below 16)"),
    (Told("gpu.row_remap.pending", True), "It depends", "DRAIN_AND_RESET"),
    (Told("gpu.temperature.core", 62), "Nothing wrong in that: ", "(usual: 1 .. 80 °C)"),
])  # fmt: skip
def test_a_stated_value_is_repeated_with_its_limit_and_the_action(told: Told, begins: str, holds: str) -> None:
    reply = asked((told,), "en", Intent.VERDICT, "can I keep using it?")
    assert reply.headline.startswith(begins)
    assert holds in f"{reply.headline} {[p.rows for p in reply.parts if isinstance(p, Fields)]}"


def test_scales_are_of_facts_that_exist_and_name_actions_that_exist() -> None:
    known = vocabulary()
    for name, scale in scales().items():
        spec = known[name]
        assert not scale.same_as or scale.same_as in known
        assert not scale.bucket or Bucket(scale.bucket) in buckets()
        assert set(scale.words or ()) <= {*spec.values, "true", "false"}, name
        assert bool(scale.bands) <= (spec.type in (Type.INT, Type.FLOAT)), name
