"""What is wrong with a rule beyond its shape: the page, the tests, the graph, the reach.

Faults of the shape are found by `rules.loader`; the checks here need the whole set, or the
names that probes provide, which are handed in from above.
"""

from __future__ import annotations

import graphlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import NamedTuple, TypeGuard

from knowledge.errors import Fault, nearest_hint
from knowledge.facts import Vocabulary, vocabulary
from knowledge.yamlfile import Path_, unsure
from rules.condition import (
    All,
    Any_,
    Condition,
    EventLeaf,
    FactLeaf,
    KnownLeaf,
    Leaf,
    Op,
    Reference,
    Take,
    facts_of,
    leaves,
)
from rules.implies import bare
from rules.model import Bucket, Effect, Risk, Rule, Severity, Usable, facts_named
from rules.overlap import overlaps
from rules.resolve import buckets

_SERIOUS = (Severity.ERROR, Severity.CRITICAL)
_APPLIES = ("arch", "vendor")  # what the engine looks at, and whose rule it is
# What decides where a rule holds, what it advises, and whether that is explained.
_DECIDE = (
    "when",
    "excludes",
    "params",
    "scope",
    "applies",
    "status",
    "action",
    "severity",
    "severity_from",
    "xid",
    "explains",
)


def lint(
    rules: Sequence[Rule],
    provided: Collection[str],
    runbooks: Collection[str],
    faulty: Mapping[str, Collection[Path_]] | None = None,
    named: Collection[str] = (),
) -> list[Fault]:
    """All faults of a rule set. `provided` are facts that probes, derivation or people can give.

    `faulty`: by its file, what could not be read of a rule (`loader.read_partly`). It is told already, and nothing that
    depends on it is judged. `named`: rules that are there although nothing could be read of them.
    """
    if not rules and not named:
        return [Fault("rules", 1, 1, "no rules were found: nothing was checked")]
    vocab = vocabulary()
    ids = {*(r.id for r in rules), *named}
    faulty = faulty or {}
    faults: list[Fault] = []
    for rule in rules:
        bad = faulty.get(rule.file, ())
        for found in _rule_faults(rule, ids, vocab, provided, runbooks):
            needs = (found.path,) if found.needs is None else found.needs
            if not any(unsure(path, bad) for path in needs):
                line, column = place(rule, found.path)
                faults.append(Fault(rule.file, line, column, found.message, found.hint))
    faults += _cycles(rules)
    unread = [r.id for r in rules if any(unsure((key,), faulty.get(r.file, ())) for key in _DECIDE)]
    faults += _graver(rules, unread)
    faults += _overlaps(rules, vocab, unread)
    return sorted(faults)


def place(rule: Rule, path: Path_) -> tuple[int, int]:
    """Line and column of a path in the rule's file (the file is read again: faults are rare)."""
    from knowledge import yamlfile

    shipped = Path(__file__).parent.parent / rule.file  # an absolute path stays what it is
    return yamlfile.load(shipped if shipped.is_file() else Path(rule.file)).at(path)


class _Found(NamedTuple):
    """A fault of a rule, and what has to be readable for it to be one: what stands at its place, if nothing is said."""

    path: Path_
    message: str
    hint: str = ""
    needs: tuple[Path_, ...] | None = None  # none of them: it rests on leaves of conditions, which were read


def _rule_faults(
    rule: Rule, ids: Collection[str], vocab: Vocabulary, provided: Collection[str], runbooks: Collection[str]
) -> Iterator[_Found]:
    yield from _page(rule)
    yield from _tests(rule)
    yield from _action(rule, runbooks)
    yield from _gravity(rule)
    for i, e in enumerate(rule.explains):
        if e.rule and e.rule not in ids:
            yield _Found(("explains", i, "rule"), f"explains {e.rule!r}, which is no rule", nearest_hint(e.rule, ids))
        if not e.rule and not e.by:
            needs = (("explains", i, "rule"), ("explains", i, "by"))
            yield _Found(("explains", i), "explains names a rule or a catalogue (by)", needs=needs)
    told: set[str] = set()
    for condition in (rule.when, *rule.confirms, *rule.excludes):
        for name in sorted(facts_of(condition) - told):
            told.add(name)
            if _nobody_tells(name, vocab, provided):
                yield _Found(condition.path, _NOBODY.format(name), needs=())
    yield from _beside(rule, told, vocab, provided)
    yield from _fields(rule, vocab)
    for condition in (rule.when, *rule.confirms, *rule.excludes):
        yield from _constant(condition)
    yield from _life(rule)
    for key in rule.applies:
        if key not in _APPLIES:
            yield _Found(("applies", key), f"nothing looks at {key!r}", nearest_hint(key, _APPLIES))


_NOBODY = "nothing can tell {}: no probe provides it, it is not derived, nobody is asked"


def _nobody_tells(name: str, vocab: Vocabulary, provided: Collection[str]) -> bool:
    spec = vocab.get(name)
    return spec is not None and name not in provided and not spec.derived and spec.ask is None


def _beside(rule: Rule, told: Collection[str], vocab: Vocabulary, provided: Collection[str]) -> Iterator[_Found]:
    """Facts that stand beside the conditions: of `names`, `leads`, `impact`, `shows` and of what an action `impairs`."""
    named: list[tuple[Path_, str]] = [(("shows", i), name) for i, name in enumerate(rule.shows)]
    for key, text in (("names", rule.names), ("leads", rule.leads)):
        named += [((key,), name) for name in facts_named(text.en)]
        if text and not text.zh:
            yield _Found((key,), f"{key} has no Chinese", needs=((key, "zh"),))
        if set(facts_named(text.en)) != set(facts_named(text.zh or text.en)):
            yield _Found((key,), f"{key} tells other facts in Chinese")
    if rule.impact is not None:
        named += [(("impact", key), getattr(rule.impact, key)) for key in ("share", "window", "hours")]
        if not rule.impact.of.zh:
            yield _Found(("impact", "of"), "of has no Chinese", needs=(("impact", "of", "zh"),))
    if rule.action.impairs:
        named.append((("action", "impairs"), rule.action.impairs))
    for path, name in named:
        if name not in told and _nobody_tells(name, vocab, provided):
            yield _Found(path, _NOBODY.format(name))


def _page(rule: Rule) -> Iterator[_Found]:
    for key, text in (("title", rule.title), ("why", rule.why), ("false_positives", rule.false_positives)):
        if not text.en:
            yield _Found((key,), f"{key} is missing", needs=((key, "en"),))
        if not text.zh and (text.en or key != "false_positives"):
            yield _Found((key,), f"{key} has no Chinese", needs=((key, "zh"),))
    if len(rule.why.en) < 80:
        short = "the page is too short to help: what it is, how we know, what it is confused with"
        yield _Found(("why",), short, needs=(("why", "en"),))
    if not rule.references:
        yield _Found(("references",), "no reference")
    for i, text in enumerate(rule.action.then):
        if not text.zh:
            yield _Found(("action", "then", i), "a step has no Chinese", needs=(("action", "then", i, "zh"),))
    if rule.action.text and not rule.action.text.zh:
        yield _Found(("action", "text"), "the action has no Chinese", needs=(("action", "text", "zh"),))


def _tests(rule: Rule) -> Iterator[_Found]:
    kinds = {t.expect for t in rule.tests}
    needs: tuple[Path_, ...] = tuple(("tests", i, "expect") for i in range(len(rule.tests))) or (("tests",),)
    for kind, meaning in (
        ("matched", "a case that matches"),
        ("not_matched", "a near miss"),
        ("unknown", "a case that stays unknown"),
    ):
        if kind not in kinds:
            yield _Found(("tests",), f"the tests lack {meaning} (expect: {kind})", needs=needs)


# Words that are no instruction without the rule's own.
_SAYS_NOTHING = (
    Bucket.ASK_PLATFORM,
    Bucket.CHANGE_SETTING,
    Bucket.FIX_CODE,
    Bucket.INSPECT_NETWORK,
    Bucket.TUNE_JOB,
    Bucket.UPDATE_SWFW,
)


def _action(rule: Rule, runbooks: Collection[str]) -> Iterator[_Found]:
    spec = rule.action
    bucket, resolve, runbook = (("action", key) for key in ("bucket", "resolve", "runbook"))
    if spec.bucket is None and not spec.resolve:
        yield _Found(("action",), "an action has a bucket or resolvers", needs=(bucket, resolve))
    if spec.resolve and spec.bucket is None:
        yield _Found(("action",), "resolvers need a bucket to fall back to", needs=(bucket,))
    info = buckets().get(spec.bucket) if spec.bucket else None
    risky = info is not None and (spec.risk or info.risk) is not Risk.SAFE
    book = spec.runbook or (info.runbook if info else "")
    if (risky or rule.severity in _SERIOUS) and not book:
        needs = (bucket, runbook, ("action", "risk"), ("severity",))
        yield _Found(("action",), "a risky action or a severity of error and above needs a runbook", needs=needs)
    if spec.bucket in _SAYS_NOTHING and rule.severity is not Severity.INFO and not spec.text:
        hint = "add action.text: {en: ..., zh: ...}"
        yield _Found(("action",), f"{spec.bucket} alone does not say what to do", hint, (("action", "text"), bucket))
    if book and book not in runbooks:
        yield _Found(runbook, f"no runbook {book!r}", nearest_hint(book, runbooks))


def _life(rule: Rule) -> Iterator[_Found]:
    """What ends a grave fault that events tell of has to be said, by its action or by the rule: else it would never be over."""
    said = {
        ("uncured",): rule.uncured,
        ("action", "again"): rule.action.again,
        ("action", "confirm"): rule.action.confirm,
    }
    for key, text in said.items():
        if text.en and not text.zh:
            yield _Found(key, f"{key[-1]} has no Chinese", needs=((*key, "zh"),))
    if rule.uncured and rule.cured_by:
        yield _Found(("uncured",), "says why nothing ends it, beside what ends it", needs=(("cured_by",), ("uncured",)))
    if rule.cured_by is not None:
        if not rule.cured_by and not rule.uncured:
            yield _Found(
                ("cured_by",), "nothing ends it, and no word why", "add uncured: {en: ..., zh: ...}", (("uncured",),)
            )
        return
    events = any(isinstance(leaf, EventLeaf) and not leaf.negated for leaf in leaves(rule.when))
    bucket = rule.action.bucket if not rule.action.resolve else None  # a resolver's word tells
    if events and rule.severity in _SERIOUS and bucket is not None and buckets()[bucket].cured_by is None:
        hint = "cured_by: [reset, reload, reboot, replace], or cured_by: [] with uncured: {en: ..., zh: ...}"
        needs = (("cured_by",), ("severity",), ("action", "bucket"))
        yield _Found(("action",), f"{bucket} does not say what ends the fault", hint, needs)


def _fields(rule: Rule, vocab: Vocabulary) -> Iterator[_Found]:
    events = [leaf.event for leaf in leaves(rule.when) if isinstance(leaf, EventLeaf)]
    known = {"code", *(name for e in events for name in vocab[e].fields)}
    for key in ("split_by", "severity_from"):
        name = getattr(rule, key)
        if name and name not in known:
            hint = nearest_hint(name, known)
            yield _Found((key,), f"no event of this rule has a field {name!r}", hint, ((key,), ("when",)))


def _constant(condition: Condition) -> Iterator[_Found]:
    """Conditions that can never hold, or always do: alone, or two of one group that exclude each other."""
    if isinstance(condition, KnownLeaf) and condition.negated:
        never = f"never true: that {condition.fact} is not known proves nothing"
        yield _Found(condition.path, never, needs=())
    if not isinstance(condition, All | Any_):
        return
    for child in condition.children:
        yield from _constant(child)
    for a, b in combinations(condition.children, 2):
        if isinstance(a, All | Any_) or isinstance(b, All | Any_):
            continue
        what = b.event if isinstance(b, EventLeaf) else b.fact
        if isinstance(condition, All) and (_opposite(a, b) or _disjoint(a, b)):
            yield _Found(b.path, f"never true together with the other condition on {what}", needs=())
        if isinstance(condition, Any_) and (_opposite(a, b) or _covering(a, b)):
            yield _Found(b.path, f"always true together with the other condition on {what}", needs=())


def _opposite(a: Leaf, b: Leaf) -> bool:
    return a.negated != b.negated and bare(replace(a, negated=False)) == bare(replace(b, negated=False))


def _same_measure(a: Leaf, b: Leaf) -> TypeGuard[FactLeaf]:
    """Whether two leaves compare one and the same number with plain values."""
    if not isinstance(a, FactLeaf) or not isinstance(b, FactLeaf) or a.each is not None:
        return False
    if isinstance(a.value, Reference) or isinstance(b.value, Reference):
        return False
    one, two = (replace(x, op=Op.IS, value=None, negated=False, path=()) for x in (a, b))
    return one == two


def _interval(leaf: FactLeaf) -> tuple[float, float] | None:
    if isinstance(leaf.value, bool) or not isinstance(leaf.value, int | float):
        return None
    low, high = {
        Op.AT_LEAST: (leaf.value, float("inf")),
        Op.ABOVE: (leaf.value, float("inf")),
        Op.AT_MOST: (float("-inf"), leaf.value),
        Op.BELOW: (float("-inf"), leaf.value),
        Op.IS: (leaf.value, leaf.value),
    }.get(leaf.op, (0.0, -1.0))
    return None if low > high or leaf.negated else (low, high)


def _disjoint(a: Leaf, b: Leaf) -> bool:
    if not (_same_measure(a, b) and _same_measure(b, a)):
        return False
    one, two = _interval(a), _interval(b)
    if one and two:
        strict = Op.ABOVE in (a.op, b.op) or Op.BELOW in (a.op, b.op)
        low, high = max(one[0], two[0]), min(one[1], two[1])
        return low > high or (low == high and strict)
    return a.op is Op.IS and b.op is Op.IS and not a.negated and not b.negated and a.value != b.value


def _covering(a: Leaf, b: Leaf) -> bool:
    """Whether one of the two holds for every number (a course over time may do neither)."""
    if not (_same_measure(a, b) and _same_measure(b, a)) or a.take is Take.SUSTAINED:
        return False
    one, two = _interval(a), _interval(b)
    if not one or not two or Op.IS in (a.op, b.op):
        return False
    low, high = max(one[0], two[0]), min(one[1], two[1])
    gap = low == high and {a.op, b.op} == {Op.ABOVE, Op.BELOW}
    everything = min(one[0], two[0]) == float("-inf") and max(one[1], two[1]) == float("inf")
    return everything and low <= high and not gap


def _cycles(rules: Sequence[Rule]) -> list[Fault]:
    graph = {r.id: {e.rule for e in r.explains if e.rule} for r in rules}
    faults: list[Fault] = []
    while True:
        try:
            graphlib.TopologicalSorter(graph).prepare()
            return faults
        except graphlib.CycleError as error:
            names = list(reversed(error.args[1]))  # graphlib lists effects before causes
            rule = next(r for r in rules if r.id == names[0])
            message = f"explains goes round in a circle: {' -> '.join(names)}"
            faults.append(Fault(rule.file, *place(rule, ("explains",)), message))
            graph[names[0]].discard(names[1])  # and look for the next one


def _graver(rules: Sequence[Rule], unread: Collection[str]) -> Iterator[Fault]:
    """Causes that are milder than what they explain, and do not say what becomes of it: nobody may take it for over by accident."""
    by_id = {r.id: r for r in rules if r.id not in unread}
    for rule in by_id.values():
        for i, e in enumerate(rule.explains):
            effect = by_id.get(e.rule)
            if e.effect is Effect.ENDS and not e.because.en:
                message = f"nothing is left of {e.rule}, and no word why"
                yield Fault(rule.file, *place(rule, ("explains", i)), message, "add because: {en: ..., zh: ...}")
            if effect is None or e.effect is not None:
                continue
            ours, theirs = _use(rule), _use(effect)
            if effect.severity.rank > rule.severity.rank or (ours and theirs and theirs.rank > ours.rank):
                yield Fault(
                    rule.file, *place(rule, ("explains", i)),
                    f"explains {e.rule}, which is graver: what becomes of it when this is known?",
                    "effect: stays (it counts as before), or effect: ends with because: {en: ..., zh: ...}",
                )  # fmt: skip


def _gravity(rule: Rule) -> Iterator[_Found]:
    """What may still run is no critical fault: the state of an answer and whether the thing can be used say the same."""
    if rule.severity is Severity.CRITICAL and _use(rule) in (Usable.YES, Usable.IMPAIRED):
        yield _Found(("severity",), f"critical, and usable: {_use(rule)}", "severity: error, or usable: not_yet or no")


def _use(rule: Rule) -> Usable | None:
    """What every finding of the rule says about use; None where it depends on more than the rule."""
    if rule.action.usable or rule.action.bucket is None or rule.action.resolve:
        return rule.action.usable
    return buckets()[rule.action.bucket].usable


def _overlaps(rules: Sequence[Rule], vocab: Vocabulary, unread: Collection[str]) -> Iterator[Fault]:
    """Pairs that say the same or contradict each other, each told once: at the rule that stands later in `rules`."""
    order = {r.id: i for i, r in enumerate(rules)}
    for found in overlaps(rules, vocab, unread):
        other, rule = sorted((found.narrow, found.wide), key=lambda r: order[r.id])
        there = f"rule {other.id} ({other.file}:{':'.join(map(str, place(other, ('when',))))})"
        if found.advised is None:
            message = f"says the same as {there}, and neither explains the other"
        else:
            ours, theirs = found.advised if rule is found.narrow else found.advised[::-1]
            both = f"whenever this holds, {there} holds too" if rule is found.narrow else f"holds whenever {there} does"
            message = f"{both}: {ours} here contradicts {theirs} there, and neither explains the other"
        hint = f"let the one that is the cause explain the other: explains: [{{rule: {other.id}}}]"
        yield Fault(rule.file, *place(rule, ("when",)), message, hint)
