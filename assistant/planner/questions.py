"""Questions for a person: what no probe can tell, and what is said to it.

Asked is only what matters now: a probe that runs unasked comes first, and of what is merely conceivable nobody is asked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from assistant.planner.model import Goal, Question
from assistant.planner.ranking import weight
from assistant.planner.tellers import Tellers
from assistant.planner.waiting import Waiting
from knowledge.facts import FactSpec, Vocabulary
from knowledge.language import Text
from knowledge.observation import Scope, Subject
from rules.index import Index

UNNAMED = "unnamed"  # what a job or an object is called of which nobody has told the name
MOST = 3  # at a time: a person answers a few questions, not a form


def questions(
    goal: Goal, live: Mapping[str, Waiting], unasked: Collection[str], tellers: Tellers, index: Index, words: Vocabulary,
    tags: Collection[str],
) -> list[Question]:  # fmt: skip
    """The questions of the rules that wait for nothing but a person, best first. `unasked`: probes that may run now."""
    value: dict[tuple[str, Subject], float] = {}
    waiting: dict[tuple[str, Subject], list[tuple[float, str]]] = {}
    for rule_id, w in live.items():
        if not _worth_asking(w, goal, unasked, tellers):
            continue
        total = weight(w, goal, tags)
        for fact, subjects in w.subjects.items():
            for subject in dict.fromkeys(_asked_of(words[fact], s) for s in subjects):
                key = (fact, subject)
                value[key] = value.get(key, 0.0) + total
                waiting.setdefault(key, []).append((-total, rule_id))
    best = sorted(value, key=lambda key: (-value[key], key[0], str(key[1])))
    return [_question(words[fact], subject, [r for _, r in sorted(waiting[fact, subject])], index)
            for fact, subject in best[:MOST]]  # fmt: skip


def _worth_asking(w: Waiting, goal: Goal, unasked: Collection[str], tellers: Tellers) -> bool:
    """Something of it is true, or it was asked about; and no probe that can be run now would settle it as well."""
    if not (w.evidence or w.card.id in goal.core):
        return False
    return not any(set(tellers.of(fact)) & set(unasked) for fact in w.now)


def _asked_of(spec: FactSpec, subject: Subject) -> Subject:
    """What the fact is about, seen from the rule's subject."""
    found = subject.up(spec.scope)
    if found is None:
        return subject.up(Scope.NODE) or subject
    return found if found.id or found.scope is Scope.NODE else found._replace(id=UNNAMED)


def _question(spec: FactSpec, subject: Subject, rules: list[str], index: Index) -> Question:
    assert spec.ask is not None
    labels = tuple(spec.labels.items())
    return Question(
        spec.name, subject, spec.ask, str(spec.type), spec.values, _why(rules, index, spec.name), tuple(rules), labels,
        spec.unit,
    )  # fmt: skip


def _why(rules: list[str], index: Index, fact: str) -> Text:
    """Why it is asked: the first rule that waits, and what would follow."""
    rule = index.rule(rules[0])
    title = rule.name
    more_en = (
        f" ({len(rules) - 1} more {'rule waits' if len(rules) == 2 else 'rules wait'} for it)" if rules[1:] else ""
    )
    more_zh = f"（另有 {len(rules) - 1} 条规则等待该信息）" if rules[1:] else ""
    from rules.condition import facts_of

    if fact in facts_of(rule.when):
        return Text(
            f"No probe can tell it, and it decides whether this holds: {title.en} (rule {rule.id}){more_en}.",
            f"没有探针能得知，而它决定下列结论是否成立：{title.zh}（规则 {rule.id}）{more_zh}。",
        )
    if any(fact in facts_of(c) for c in rule.excludes):
        return Text(
            f"No probe can tell it, and it could rule this out: {title.en} (rule {rule.id}){more_en}.",
            f"没有探针能得知，而它可能排除下列结论：{title.zh}（规则 {rule.id}）{more_zh}。",
        )
    return Text(
        f"No probe can tell it, and it would make this surer: {title.en} (rule {rule.id}){more_en}.",
        f"没有探针能得知，而它能使下列结论更确定：{title.zh}（规则 {rule.id}）{more_zh}。",
    )
