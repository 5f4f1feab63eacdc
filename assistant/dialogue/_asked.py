"""Why a question is asked: which rule waits for the fact, and what would follow from each answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from assistant.dialogue._suppose import differences, suppose, value_of
from assistant.dialogue._words import Words, words
from assistant.render import describe
from assistant.render.labels import colon, label, listed
from assistant.render.sheet import Fields, Paragraph, Part
from assistant.reply import Reply
from knowledge.facts import vocabulary
from rules.condition import FactLeaf, leaves
from rules.engine import Role

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.dialogue import Turn
    from assistant.planner import Question
    from assistant.session.state import Pending
    from knowledge.observation import Value
    from rules.engine import Finding, Undecided
    from rules.model import Rule

_ANSWERS = 4  # of a question that are played through, at most


def why_asked(turn: Turn) -> Reply | None:
    """Why the person is asked what they are asked, or would be next; None when there is no question."""
    if turn.pending is not None and turn.pending.probes:
        return _consent(turn, turn.pending)
    q = _question(turn)
    return _because(turn, q) if q is not None else None


def _question(turn: Turn) -> Question | None:
    """The question that waits for an answer, else the first one of the plan."""
    from assistant.planner import Question
    from knowledge.observation import node

    questions = turn.plan.questions if turn.plan is not None else ()
    waits = turn.pending
    if waits is None or not waits.fact:
        return questions[0] if questions else None
    for q in questions:
        if q.fact == waits.fact and waits.subject in (None, q.subject):
            return q
    d = turn.diagnosis
    known: tuple[Finding | Undecided, ...] = () if d is None else (*d.findings, *d.undecided)
    waiting = [x.rule.id for x in known if any(m.fact == waits.fact for m in x.missing)]
    rules = tuple(dict.fromkeys(waiting)) or tuple(r.id for r in turn.ruleset.rules if _clauses(r, waits.fact, "en"))
    return Question(waits.fact, waits.subject or node(turn.host), waits.text, waits.kind, (), waits.reason, rules)


def _consent(turn: Turn, waits: Pending) -> Reply:
    """Why consent is asked for: what the probes would tell."""
    lang = turn.lang
    names = listed(waits.probes, lang)
    known = [c for name in waits.probes if turn.plan is not None and (c := turn.plan.candidate(name)) is not None]
    head = waits.reason.in_(lang) or (
        f"运行 {names} 需要您同意。" if lang == "zh" else f"To run {names} needs your consent."
    )
    rows = tuple((c.probe, c.reason.in_(lang)) for c in known)
    return Reply(lang, head, (Fields(rows),) if rows else (), settled=False,
                 suggestions=("是", "否") if lang == "zh" else ("yes", "no"),
                 data={"answer": "why-asked", "probes": list(waits.probes)})  # fmt: skip


def _because(turn: Turn, q: Question) -> Reply:
    """Which rules wait for the fact, and what would follow from each answer."""
    waiting = [r for r in turn.ruleset.rules if r.id in set(q.rules)]
    lang = turn.lang
    zh = lang == "zh"
    head = q.reason.in_(lang)
    if not head:
        said = listed((r.title.in_(lang) for r in waiting[:3]), lang, ";")
        head = f"因为以下判断取决于 {q.fact}：{said}。" if zh else f"Because this depends on {q.fact}: {said}."
    parts: list[Part] = [Paragraph(q.text.in_(lang))]
    clauses = tuple((r.id, clause) for r in waiting[:3] for clause in _clauses(r, q.fact, lang)[:1])
    if clauses:
        parts.append(Fields(clauses))
    follows = tuple(_consequences(turn, q)) if turn.diagnosis is not None else ()
    if follows:
        parts.append(Fields(follows))
    return Reply(
        lang,
        head,
        tuple(parts),
        settled=False,
        suggestions=(("是", "否", "不知道") if zh else ("yes", "no", "I don't know")) if q.kind == "bool" else
        (("不知道", "跳过") if zh else ("I don't know", "never mind")),
        data={"answer": "why-asked", "fact": q.fact, "rules": [r.id for r in waiting],
              "answers": dict(follows)},
    )  # fmt: skip


def _clauses(rule: Rule, fact: str, lang: str) -> list[str]:
    every = (rule.when, *rule.confirms, *rule.excludes)
    return [
        describe.leaf(leaf, lang)
        for c in every
        for leaf in leaves(c)
        if isinstance(leaf, FactLeaf) and leaf.fact == fact
    ]


def _consequences(turn: Turn, q: Question) -> Iterator[tuple[str, str]]:
    """Each answer, and what would follow from it."""
    d = turn.diagnosis
    assert d is not None
    w = words(turn)
    spec = vocabulary().get(q.fact)
    if spec is None:
        return
    for value, name in _possible(q, w):
        then = suppose(d, turn.ruleset, [value_of(spec, q.subject, value, d.facts)])
        yield name, outcome(w, d, then)


def _possible(q: Question, w: Words) -> Sequence[tuple[Value, str]]:
    if q.kind == "bool":
        return [(True, w.t("yes", "是")), (False, w.t("no", "否"))]
    return [(v, str(v)) for v in q.values][:_ANSWERS]


def outcome(w: Words, now: Diagnosis, then: Diagnosis) -> str:
    """What a supposition leads to, in one clause."""
    diff = differences(now, then)
    said = []
    if diff.appear:
        said.append(w.t("then also: ", "则还有：") + listed((w.title(f) for f in diff.appear[:2]), w.lang, ";"))
    if diff.vanish:
        said.append(w.t("no longer: ", "不再成立：") + listed((w.title(f) for f in diff.vanish[:2]), w.lang, ";"))
    for before, after in diff.change[:2]:
        said.append(f"{w.title(after)}{colon(w.lang)}{changed(w, before, after)}")
    return listed(said, w.lang, ";") or w.t("nothing changes", "没有变化")


def changed(w: Words, before: Finding, after: Finding) -> str:
    """What is different about a finding: ``probable -> confirmed``."""
    pairs = [
        (label(str(before.severity), w.lang), label(str(after.severity), w.lang)),
        (w.grade(before), w.grade(after)),
        (str(before.advice.bucket), str(after.advice.bucket)),
    ]
    said = [f"{a} -> {b}" for a, b in pairs if a != b]
    if before.role is not after.role:
        said.append(
            w.t("now a cause of its own", "成为独立原因")
            if after.role is Role.ROOT
            else w.t("now a consequence", "成为后果")
        )
    if not said and before.advice.until.en != after.advice.until.en:
        said.append(after.advice.until.in_(w.lang))
    return listed(said, w.lang) or after.title.in_(w.lang)
