"""From an understood sentence to what has to be found out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from assistant.planner.model import Goal
from knowledge.observation import Event, Scope, Status, Subject, gpu, node
from rules.index import Index, index

if TYPE_CHECKING:
    from assistant.intent.query import Query
    from rules.factbase import FactBase
    from rules.loader import RuleSet

# How much worse than the best topic another may fit and still be meant: what is named at all scores alike.
_AS_GOOD = 0.8
# Codes that a topic of this kind is about -> the events that carry them.
_CODED = {"xid": ("xid", "xid_implied"), "sxid": ("sxid",)}


def goal_of(query: Query, ruleset: RuleSet, facts: FactBase | None = None) -> Goal:
    """What `query` asks to be found out; its rules are None when it names nothing to look for: the health of it all.

    Codes, pasted lines and symptoms count before topics, of which there are always some.
    """
    from assistant.intent.query import BY_PHRASE, Intent, of_process

    cards = index(ruleset.rules)
    subjects = frozenset(_subjects(query, facts))
    if query.intent is Intent.PROBE:
        return _to_show(query, subjects)
    named = set(_of_codes(query, cards)) | set(_of_lines(query, cards))
    fitting = set(_of_symptoms(query, cards))
    if not named and not fitting and query.intent not in BY_PHRASE:
        named = set(_of_topics(query, cards))
    core = named | fitting
    verdict = query.intent is Intent.VERDICT
    looks = _looks_into() if of_process(query) else {}
    told = {fact for facts_of in looks.values() for fact in facts_of}
    if looks and not core:  # "what does pid 4242 do": what can be said about processes, and what causes that
        core = {c.id for c in cards.cards.values() if c.scope is Scope.PROCESS or not c.asks.isdisjoint(told)}
    elif not any(not cards.cards[name].asks.isdisjoint(told) for name in core):
        looks = {}  # a crash, an XID: a look at what runs now tells nothing of it
    if not core:
        return Goal(None, subjects, verdict, query.symptoms)
    rules = cards.above(core) | _effects(named, cards)
    return Goal(rules, subjects, verdict, query.symptoms, frozenset(core), probes=frozenset(looks))


def only_by_looking(query: Query) -> bool:
    """ "Show the stack of pid 4242": whether it asks to see what only a look into a process tells."""
    from assistant.intent.query import Intent, of_process
    from assistant.planner.asked import asked_facts, named_probes
    from knowledge.facts import vocabulary
    from probes.live import probes

    if query.intent is not Intent.PROBE or not of_process(query):
        return False
    looks = _looks_into()
    facts = {
        f for f in asked_facts(query) if vocabulary()[f].scope is not Scope.NODE
    }  # the word "pid" names some of a node
    named = set(named_probes(query.text, probes(), tools_only=bool(facts)))
    return facts <= frozenset().union(*looks.values()) and named <= looks.keys()


def _looks_into() -> dict[str, frozenset[str]]:
    """The probes that look into a process that is named and leave it undisturbed, each with what only such a look tells."""
    from probes.live import Cost, probes

    known = {fact for s in probes() if not s.wants for fact in s.provides}
    return {s.name: frozenset(s.provides) - known for s in probes() if s.wants and s.cost < Cost.HEAVY}


def _to_show(query: Query, subjects: frozenset[Subject]) -> Goal:
    """Values are shown as they are: no rule is settled for it."""
    from assistant.planner.asked import named_probes, wanted
    from probes.active import is_test
    from probes.live import probes

    facts = wanted(query)
    if only_by_looking(query):
        return Goal(frozenset(), subjects, facts=frozenset({"process.state"}), probes=frozenset(_looks_into()))
    named = named_probes(query.text, probes(), tools_only=bool(facts))
    # "run the DCGM diagnostic level 3" names a fact too; which test is meant, its name tells.
    tests = [n for n in named_probes(query.text, probes()) if is_test(n)]
    return Goal(frozenset(), subjects, facts=facts, probes=frozenset([*named, *tests]))


def _effects(named: Iterable[str], cards: Index) -> frozenset[str]:
    """What named rules could cause: where their own line is gone, that is what is left to see.

    A symptom needs none: the rules that it goes with are its effects already.
    """
    return frozenset[str]().union(*(cards.effects(rule) for rule in named))


def _of_codes(query: Query, cards: Index) -> Iterable[str]:
    for code in query.slots.xid:
        yield from _coded(cards, _CODED["xid"], code)
    for code in query.slots.sxid:
        yield from _coded(cards, _CODED["sxid"], code)


def _coded(cards: Index, events: tuple[str, ...], code: int) -> list[str]:
    """Rules that name the code, else those that take every code of these events."""
    named = [c.id for c in cards.cards.values() if any(c.about(event, code) for event in events)]
    return named or [c.id for c in cards.cards.values() if not c.any_code.isdisjoint(events)]


def _of_lines(query: Query, cards: Index) -> Iterable[str]:
    """Rules about what stands in pasted lines."""
    for o in query.observations:
        if o.status is not Status.OK:
            continue
        if isinstance(o.value, Event) and o.value.code is not None:
            yield from _coded(cards, _CODED.get(o.fact, (o.fact,)), o.value.code)
        else:
            yield from (c.id for c in cards.cards.values() if o.fact in c.asks)


def _of_symptoms(query: Query, cards: Index) -> Iterable[str]:
    if not query.symptoms:
        return ()
    from knowledge.symptoms import symptoms

    known = symptoms()
    said = [known[name] for name in query.symptoms if name in known]
    tags = {tag for s in said for tag in s.tags}
    named = {rule for s in said for rule in s.rules}
    return [c.id for c in cards.cards.values() if c.id in named or not tags.isdisjoint(c.symptoms)]


def _of_topics(query: Query, cards: Index) -> Iterable[str]:
    """Rules of the topics that fit best; a term or a clock names no rule.

    Topics are found by likeness. Who asks what is wrong, or whether a thing can be used, must not be sent to look at
    less than all of it for a word that some rule's title shares: there only a rule that is called by its id counts.
    """
    from assistant.intent.query import Intent

    broad = query.intent in (Intent.DIAGNOSE, Intent.VERDICT)
    best = max((t.score for t in query.topics), default=0.0)
    for topic in query.topics:
        if topic.score < _AS_GOOD * best or (broad and topic.name not in query.text.casefold()):
            continue
        if topic.kind == "rule" and topic.name in cards.cards:
            yield topic.name
        elif topic.kind == "runbook":
            yield from (c.id for c in cards.cards.values() if c.runbook == topic.name)
        elif topic.kind in _CODED and topic.name.isdigit():
            yield from _coded(cards, _CODED[topic.kind], int(topic.name))


def _subjects(query: Query, facts: FactBase | None) -> Iterable[Subject]:
    """What the sentence names, under the names that the facts have for it."""
    slots = query.slots
    hosts = slots.node or ("",)
    if not any((slots.gpu, slots.pid, slots.job, slots.rank)):
        yield from (node(name) for name in slots.node)
    for host in hosts:
        for which in slots.gpu:
            yield _gpu(which, host, facts)
        for scope, names in ((Scope.PROCESS, slots.pid), (Scope.JOB, slots.job), (Scope.RANK, slots.rank)):
            for name in names:
                yield _known(Subject(scope, str(name), node(host)), facts)


def _gpu(which: int | str, host: str, facts: FactBase | None) -> Subject:
    """The GPU called so: by index, address or UUID, whichever the facts tie to a GPU."""
    if facts is not None:
        name = "gpu.index" if isinstance(which, int) else "gpu.uuid"
        for s in facts.subjects(Scope.GPU):
            seen = facts.current(name, s)
            if (not host or s.host == host) and seen is not None and seen.status is Status.OK and seen.value == which:
                return s
    return _known(gpu(f"index:{which}" if isinstance(which, int) else which, host), facts)


def _known(subject: Subject, facts: FactBase | None) -> Subject:
    """The subject of the facts with this name, when exactly one has it; else `subject` as it is."""
    if facts is None:
        return subject
    called = [
        s for s in facts.subjects(subject.scope) if s.id == subject.id and (not subject.host or s.host == subject.host)
    ]
    return called[0] if len(called) == 1 else subject
