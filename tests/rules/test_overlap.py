"""Rules that hold together and advise different things: what is a contradiction, and what is none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from knowledge.facts import vocabulary
from knowledge.observation import Scope
from rules.builder import Builder
from rules.model import ActionSpec, Bucket, Explains, Rule, RuleStatus, Severity, Usable
from rules.overlap import Overlap, overlaps
from tests.cases import each
from tests.rules.lab import VOCABULARY, rule

BANG: dict[str, Any] = {"event": "bang", "where": {"code": 31}}
OFTEN: dict[str, Any] = {**BANG, "count": {"at_least": 5}, "within": "1h"}
RESET, RESTART = Bucket.DRAIN_AND_RESET, Bucket.RESTART_APP


def found(*rules: Rule) -> list[Overlap]:
    return list(overlaps(rules, VOCABULARY))


def advised(
    narrow: Bucket, wide: Bucket, *, how: Severity = Severity.WARNING, how_wide: Severity = Severity.WARNING
) -> bool:
    """Whether the two contradict each other, whichever is read first."""
    pair = [rule("often", OFTEN, bucket=narrow, severity=how), rule("once", BANG, bucket=wide, severity=how_wide)]
    one, two = found(*pair), found(*pair[::-1])
    assert [(x.narrow.id, x.wide.id, x.advised) for x in one] == [(x.narrow.id, x.wide.id, x.advised) for x in two]
    assert all(x.advised == (narrow, wide) for x in one)
    return bool(one)


def test_a_count_on_top_of_the_same_event() -> None:
    (overlap,) = found(rule("often", OFTEN, bucket=RESET), rule("once", BANG, bucket=RESTART))
    assert (overlap.narrow.id, overlap.wide.id, overlap.advised) == ("often", "once", (RESET, RESTART))


def test_what_says_the_same_is_told_whatever_it_advises() -> None:
    for bucket in (RESET, RESTART):
        (overlap,) = found(rule("one", BANG, bucket=RESET), rule("two", {"any": [BANG]}, bucket=bucket))
        assert overlap.advised is None


@each(
    "narrow, wide, more, contradict",
    [
        (RESET, RESET, {}, False),
        (RESET, RESTART, {}, True),
        (RESET, Bucket.IGNORE, {}, True),
        (Bucket.IGNORE, RESET, {}, True),
        (Bucket.IGNORE, Bucket.MONITOR, {}, False),
        (Bucket.MONITOR, Bucket.IGNORE, {}, False),
        (RESET, Bucket.MONITOR, {}, False),  # "act when it repeats": it has
        (RESET, Bucket.MONITOR, {"how_wide": Severity.ERROR}, True),  # the verdict says: keep watching
        (Bucket.MONITOR, RESET, {}, True),
        (RESTART, Bucket.TUNE_JOB, {"how": Severity.INFO}, False),  # a note is never among the steps
        (RESTART, Bucket.TUNE_JOB, {"how_wide": Severity.INFO}, False),
        (RESTART, Bucket.IGNORE, {"how_wide": Severity.INFO}, True),  # "no action is needed now" beside one
        (RESTART, Bucket.INSPECT_NETWORK, {"how_wide": Severity.INFO}, True),  # "not usable until" is no mere note
    ],
)
def test_what_contradicts(narrow: Bucket, wide: Bucket, more: dict[str, Severity], contradict: bool) -> None:
    assert advised(narrow, wide, **more) is contradict


def test_an_action_that_leaves_the_thing_in_use_stays_a_note() -> None:
    wide = rule("once", BANG, severity=Severity.INFO)
    action = ActionSpec(Bucket.INSPECT_NETWORK, usable=Usable.YES)
    assert found(rule("often", OFTEN, bucket=RESET), replace(wide, action=action)) == []


@each("turn", [False, True])
def test_explaining_settles_it_in_either_direction_and_through_others(turn: bool) -> None:
    often, once = rule("often", OFTEN, bucket=RESET), rule("once", BANG, bucket=RESTART)
    cause, effect = (once, often) if turn else (often, once)
    assert found(replace(cause, explains=(Explains(rule=effect.id),)), effect) == []
    between = rule("between", {"event": "knock"}, explains=[Explains(rule=effect.id)])
    assert found(replace(cause, explains=(Explains(rule="between"),)), effect, between) == []
    assert len(found(replace(cause, explains=(Explains(rule="between"),)), effect)) == 1, "there is no such rule"


def test_another_kind_of_thing_is_another_matter() -> None:
    often, once = rule("often", OFTEN, bucket=RESET), rule("once", BANG, bucket=RESTART)
    hopper, both = {"arch": "Hopper"}, {"arch": ["hopper", "ampere"]}
    assert found(often, replace(once, applies=hopper)) == []
    assert len(found(replace(often, applies=hopper), once)) == 1
    assert len(found(replace(often, applies=hopper), replace(once, applies=both))) == 1
    assert found(replace(often, applies=both), replace(once, applies=hopper)) == []
    assert found(replace(often, status=RuleStatus.RETIRED), once) == []


def test_events_of_a_part_are_the_nodes() -> None:
    gpu, node = rule("gpu", OFTEN, bucket=RESET), rule("node", BANG, bucket=RESTART, scope=Scope.NODE)
    assert [x.advised for x in found(gpu, node)] == [(RESET, RESTART)]
    once, often = rule("gpu", BANG, bucket=RESET), rule("node", OFTEN, bucket=RESTART, scope=Scope.NODE)
    assert found(once, often) == [], "nor does it see that five of a node are some of a GPU"
    assert found(gpu, replace(node, scope=Scope.LINK)) == []


def test_a_rule_that_excludes_itself_contradicts_nothing() -> None:
    often = rule("often", {"all": [OFTEN, {"any": [{"fact": "level", "op": "above", "value": 8},
                                                   {"fact": "good", "op": "is", "value": False}]}]}, bucket=RESET)  # fmt: skip
    hot, bad = {"fact": "level", "op": "above", "value": 5}, {"fact": "good", "op": "is", "value": False}
    assert found(often, rule("once", BANG, excludes=[hot, bad], bucket=RESTART)) == []
    assert len(found(often, rule("once", BANG, excludes=[hot], bucket=RESTART))) == 1


# --- actions that are resolved: of real codes ---------------------------------------------


def real(
    name: str, when: dict[str, Any], *resolve: str, bucket: Bucket = Bucket.CONTACT_SUPPORT, xid: int | None = None
) -> Rule:
    """A rule over the shipped vocabulary."""
    faults: list[Any] = []
    built = Builder(vocabulary(), {}, lambda *f: faults.append(f), set()).build(when, ("when",))
    assert built is not None, faults
    action = ActionSpec(bucket, resolve)
    return replace(rule(name, {"known": "level"}), when=built, action=action, xid=xid, severity=Severity.ERROR)


def resolved(when: dict[str, Any], *resolve: str, often: Bucket = RESET, **more: Any) -> list[Any]:
    narrow = {**when, "count": {"at_least": 5}, "within": "1h"}
    pair = [real("often", narrow, bucket=often), real("once", when, *resolve, **more)]
    return [x.advised for x in overlaps(pair, vocabulary())]


def test_a_bucket_that_is_resolved_is_that_of_the_code() -> None:
    fault, ecc = {"event": "xid", "where": {"code": 31}}, {"event": "xid", "where": {"code": 48}}
    assert resolved(fault, "recovery154", "workflow", xid=31) == [(RESET, RESTART)]
    assert resolved(fault, "recovery154", "workflow", xid=31, often=RESTART) == []
    assert resolved(ecc, "workflow", xid=48) == [(RESET, Bucket.RESET_GPU)]
    assert resolved(ecc, "workflow", xid=48, often=Bucket.RESET_GPU) == []
    fell_off = {"event": "xid", "where": {"code": 79}}
    assert resolved(fell_off, "catalogue", often=Bucket.RESTART_BM) == [], "NVIDIA's action for 79"
    assert resolved(fell_off, "catalogue") == [(RESET, Bucket.RESTART_BM)]


def test_of_several_codes_one_is_enough() -> None:
    several = {"event": "xid", "where": {"code": [31, 79]}}
    assert resolved(several, "catalogue", often=Bucket.RESTART_BM) == [(Bucket.RESTART_BM, RESTART)]


@each(
    "when",
    [
        {"event": "xid"},  # any code
        {"event": "xid", "where": {"code": 145}},  # the sub-code decides
        {"event": "xid", "where": {"code": 154}},  # the driver's own word
    ],
)
def test_what_the_code_does_not_decide_is_no_fault(when: dict[str, Any]) -> None:
    assert resolved(when, "decoded", "catalogue") == []
    assert resolved(when) == [(RESET, Bucket.CONTACT_SUPPORT)], "what is not resolved is known"


def test_a_condition_on_what_the_resolver_reads_leaves_the_bucket_open() -> None:
    word: dict[str, Any] = {"fact": "gpu.recovery_action", "op": "is", "value": "gpu_reset"}
    wide = {"fact": "gpu.on_bus", "op": "is", "value": True}
    pair = [real("both", {"all": [wide, word]}, bucket=RESET), real("one", wide, "recovery154")]
    assert list(overlaps(pair, vocabulary())) == []
    plain = [real("both", {"all": [wide, {"known": "gpu.name"}]}, bucket=RESET), real("one", wide, "recovery154")]
    assert [x.advised for x in overlaps(plain, vocabulary())] == [(RESET, Bucket.CONTACT_SUPPORT)]
