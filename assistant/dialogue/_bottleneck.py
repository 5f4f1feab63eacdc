"""What a trace or a capture is asked by name: "is it memory bound?", "would CUDA graphs help?", "which rank?": yes, no with the value, or how much."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from assistant.dialogue._scope import Scoped, belongs, scoped
from assistant.dialogue._standing import Stand, Standing, standings
from assistant.dialogue._words import Words, causes_of, finding_data, suggest, words
from assistant.intent.query import Intent
from assistant.render.labels import aside, colon, impact_words, led, many, subject_name
from assistant.render.sheet import Fields, Items, Paragraph, Part
from assistant.reply import Reply
from knowledge.bottlenecks import Bottleneck, asked_about, bottlenecks
from knowledge.observation import Observation, Scope, Status, Subject
from knowledge.record import dataclass
from knowledge.text import opened
from rules.engine import Role
from rules.model import Severity
from rules.proof import LeafProof, Truth

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from rules.engine import Finding

MOST, RANKS, ALSO = 4, 4, 2  # names of one sentence, ranks of one fact, further findings: so many are answered
_MUCH = re.compile(r"\bhow (?:much|many|big|large|long|often)\b|多少|多大|多久|几次|占比")
_OF_TRACES = ("trace.", "job.", "ncu.")  # facts that traces give
_HOLDS = (Stand.CONCLUDED, Stand.SYMPTOM)
_OPEN = (Stand.UNKNOWN, Stand.NO_SUBJECT, Stand.INAPPLICABLE)


class _Seen(NamedTuple):
    """A value, and everything that has it."""

    o: Observation
    of: tuple[Subject, ...]


@dataclass(frozen=True, slots=True)
class _Judged:
    """One name, with where its rules stand and what was measured."""

    about: Bottleneck
    stands: tuple[Standing, ...]  # the one to speak of first
    seen: tuple[_Seen, ...]

    @property
    def held(self) -> tuple[Finding, ...]:
        """What was found of it, the first to speak of first."""
        return tuple(s.finding for s in self.stands if s.stand in _HOLDS and s.finding is not None)


def answer(turn: Turn) -> Reply | None:
    """The answer from the traces of the turn's diagnosis; None when nothing of the kind is named, or something else may tell."""
    assert turn.diagnosis is not None  # who calls looked
    where = scoped(turn.diagnosis, turn.query.slots)
    asked = asked_about(turn.query.text)[:MOST] or _of_rank(turn, where)
    if not asked or (where.unknown and not where.subjects):
        return None
    w = words(turn)
    judged = [_judge(w, turn, b, where) for b in asked]
    silent = not any(j.seen or j.held for j in judged) and all(s.stand in _OPEN for j in judged for s in j.stands)
    if silent and any(not name.startswith(_OF_TRACES) for name in turn.diagnosis.facts.facts):
        return None  # what else was read may tell
    return _reply(turn, w, judged)


def _of_rank(turn: Turn, where: Scoped) -> tuple[Bottleneck, ...]:
    """ "Why is rank 2 slow?": whether it makes the others wait."""
    if not turn.query.slots.rank or not where.subjects:
        return ()
    known = turn.diagnosis.facts.facts if turn.diagnosis is not None else ()
    return tuple(b for b in bottlenecks().values() if not set(b.names).isdisjoint(known))[:1]


# --- what is known ------------------------------------------------------------------------


def _judge(w: Words, turn: Turn, b: Bottleneck, where: Scoped) -> _Judged:
    by_id = {r.id: r for r in turn.ruleset.rules}
    every = standings([by_id[name] for name in b.rules if name in by_id], w.d, where.subjects)
    place = {name: n for n, name in enumerate(b.rules)}
    order = {f.id: n for n, f in enumerate(w.d.findings)}

    def key(s: Standing) -> tuple[int, int, int]:
        """What holds ahead of the rest, a cause ahead of what it explains; then as the data lists them."""
        level = 0 if s.stand in _HOLDS else 1 if s.stand is Stand.NOT_MATCHED else 2
        first = order.get(s.finding.id, 0) if s.finding is not None else 0
        return level, first if level == 0 and s.stand is Stand.CONCLUDED else len(order), place[s.rule.id]

    return _Judged(b, tuple(sorted(every, key=key)), tuple(_measured(w, b, where)))


def _measured(w: Words, b: Bottleneck, where: Scoped) -> Iterator[_Seen]:
    """The facts with their values: of the first that is known each rank's, the greatest first; of the others the greatest."""
    facts, first = w.d.facts, True
    for name in b.facts:
        spec = facts.vocabulary.get(name)
        if spec is None:
            continue
        here = [s for s in facts.subjects(spec.scope) if not where.named or belongs(s, where.subjects, facts)]
        known = [o for s in here if (o := facts.current(name, s)) is not None and o.status is Status.OK]
        known.sort(key=lambda o: -o.value if isinstance(o.value, int | float) else 0)
        alike: dict[str, list[Observation]] = {}
        for o in known:
            alike.setdefault(str(o.value), []).append(o)
        groups = list(alike.values())[: RANKS if first else 1]
        yield from (_Seen(group[0], tuple(o.subject for o in group)) for group in groups)
        first = first and not known


# --- what is said -------------------------------------------------------------------------


def _reply(turn: Turn, w: Words, judged: Sequence[_Judged]) -> Reply:
    held = [f for j in judged for f in j.held]
    first = next((j for j in judged if j.held), judged[0])
    f = first.held[0] if first.held else None
    told = len(judged) == 1 and _by_value(turn, first)
    root = _root(turn, w)
    spoken = f or (None if told else root)  # what the talk goes on about
    parts: list[Part] = []
    if len(judged) > 1:
        parts.append(Items(tuple(_line(w, j) for j in judged)))
    head = _several(w, judged) if len(judged) > 1 else _head(turn, w, first)
    lines = [x for j in judged for x in _evidence(w, j)]
    if lines:
        parts.append(Items(tuple(dict.fromkeys(lines))))
    if f is not None:
        parts.append(Fields(_fields(w, f, held)))
    elif root is not None and not told:
        instead = any(_verdict(j) == "no" for j in judged)
        lead = w.t("Something else was found", "实际发现的是") if instead else w.t("Found", "发现")
        parts.append(Paragraph(f"{led(lead, _named(w, root), w.lang)}{w.t('.', '。')}"))
    return Reply(
        turn.lang, head, tuple(parts), focus=spoken.id if spoken is not None else "",
        suggestions=suggest(turn.lang, *(("why", "evidence", "next") if f is not None else ("why", "alternatives", "next"))),
        data={"answer": "bottleneck",
              "asked": [{"id": j.about.id, "holds": _verdict(j), "findings": [finding_data(x, turn.lang) for x in j.held],
                         "measured": [{"fact": o.fact, "subject": str(o.subject), "value": o.value} for o, _ in j.seen]}
                        for j in judged]},
    )  # fmt: skip


def _root(turn: Turn, w: Words) -> Finding | None:
    """The worst that was found; where the question is about some process, of that."""
    where = scoped(w.d, turn.query.slots)
    about = {f.id for f in where.about if f.subject.scope is not Scope.NODE} if where.narrow else set[str]()
    pool = [x for x in w.d.roots if x.id in about] or list(w.d.roots)
    return next((x for x in pool if x.severity is not Severity.INFO), next(iter(pool), None))


def _verdict(j: _Judged) -> str:
    if j.held:
        return "yes"
    return "no" if any(s.stand in (Stand.NOT_MATCHED, Stand.RULED_OUT) for s in j.stands) else "unknown"


def _by_value(turn: Turn, j: _Judged) -> bool:
    """Whether a value answers: "which kernel?", "how much of the time is communication?"."""
    kind = j.about.kind
    return bool(j.seen) and (
        kind == "which" or (kind == "cause" and _MUCH.search(turn.query.text.casefold()) is not None)
    )


def _head(turn: Turn, w: Words, j: _Judged) -> str:
    if other := _other_rank(turn, w, j):
        return other
    if _by_value(turn, j):
        said = opened(_at(w, j.seen[0]))
        return (
            said + w.t(f": {_named(w, j.held[0])}.", f"：{_named(w, j.held[0])}。") if j.held else said + w.t(".", "。")
        )
    if not j.held:
        return _not(turn, w, j)
    f = j.held[0]
    if j.about.kind == "remedy":
        most = f" {f.impact.share * 100:.3g} %" if f.impact is not None else ""
        gain = (
            w.t(f", at most{most} of {f.impact.of.en}", f"，至多占{f.impact.of.zh}的{most}")
            if f.impact is not None
            else ""
        )
        return w.t(f"Yes, it can help{gain}: {w.title(f)}.", f"有用{gain}：{w.quoted(w.title(f))}。")
    if turn.query.intent is Intent.WHYNOT:
        return w.t(f"{led('It is among the findings', _named(w, f), 'en')}.", f"它就在结论之中：{_named(w, f)}。")
    return w.t(f"{led('Yes', _named(w, f), 'en')}.", f"是：{_named(w, f)}。")


def _named(w: Words, f: Finding) -> str:
    """``Rank 0: Data-bound ... (confirmed), explains 58 % of the traced window (0.54 s)``, of all ranks of which it is so."""
    same = [x for x in w.d.findings if x.rule.id == f.rule.id and x.title == f.title and x.role is f.role]
    much = impact_words(f.impact, w.lang, most=len(same) > 1)
    title = w.rule_title(f.title, [x.subject for x in same])
    return w.t(title, w.quoted(title)) + aside(w.grade(f), w.lang) + (w.t(", ", "，") + much if much else "")


def _not(turn: Turn, w: Words, j: _Judged) -> str:
    """That it is not so, with the value that says so; or that nobody can tell."""
    name = j.about.title
    if _verdict(j) == "unknown":
        lacks = _lacking(w, j, Truth.UNKNOWN)
        tail = f"{colon(w.lang)}{lacks}" if lacks else w.t(".", "。")
        if any(fact.startswith("trace.") for fact in w.d.facts.facts):
            return w.t(f"The trace does not tell about {name.en}{tail}", f"该轨迹无法说明{_spaced(name.zh)}{tail}")
        return w.t(f"The capture does not tell about {name.en}{tail}", f"该采集无法说明{_spaced(name.zh)}{tail}")
    because = _lacking(w, j, Truth.FALSE)
    word = {"remedy": w.t("It would hardly help", "作用不大"), "which": w.t("None", "没有")}.get(
        j.about.kind, w.t("Because", "因为") if turn.query.intent is Intent.WHYNOT else w.t("No", "不是")
    )
    mark = {"Because": " ", "因为": ""}.get(word, colon(w.lang))
    return f"{word}{mark}{because}{w.t('.', '。')}" if because else f"{word}{w.t('.', '。')}"


def _other_rank(turn: Turn, w: Words, j: _Judged) -> str:
    """The rank that it is, where the question names another one."""
    ranks = {str(n) for n in turn.query.slots.rank}
    told = next((o for o, _ in j.seen if o.fact in j.about.names), None)
    if not ranks or told is None or str(told.value) in ranks:
        return ""
    said = w.seen(told, places=False)
    return w.t(f"It is not rank {', '.join(sorted(ranks))}: {said}.", f"不是 rank {'、'.join(sorted(ranks))}：{said}。")


def _several(w: Words, judged: Sequence[_Judged]) -> str:
    """Which of several names it is."""
    so = [j for j in judged if j.held]
    if not so:
        names = [j.about.title for j in judged]
        return w.t(
            f"Neither {' nor '.join(n.en for n in names)}.", f"既不是{'，也不是'.join(_spaced(n.zh) for n in names)}。"
        )
    best = max(so, key=lambda j: j.held[0].impact.share if j.held[0].impact is not None else 0.0)
    return opened(f"{best.about.title.in_(w.lang)}{colon(w.lang)}{_named(w, best.held[0])}{w.t('.', '。')}")


def _line(w: Words, j: _Judged) -> str:
    name, verdict = j.about.title.in_(w.lang), _verdict(j)
    if verdict == "yes":
        return f"{name}{colon(w.lang)}{_named(w, j.held[0])}"
    said = w.t("no", "不是") if verdict == "no" else w.t("not known", "未知")
    because = _lacking(w, j, Truth.FALSE if verdict == "no" else Truth.UNKNOWN)
    return f"{name}{colon(w.lang)}{said}{w.mark + because if because else ''}"


def _first(j: _Judged, truth: Truth) -> LeafProof | None:
    """The first clause of the rules that is not so, or that is not known."""
    return next((p for s in j.stands for p in s.lacking if p.truth is truth), None)


def _lacking(w: Words, j: _Judged, truth: Truth) -> str:
    p = _first(j, truth)
    return w.clause(p, places=False) if p is not None else ""


def _evidence(w: Words, j: _Judged) -> list[str]:
    """What was measured, a line each; and what a rule was not so by."""
    told = {seen.o.fact for seen in j.seen}
    against = _first(j, Truth.FALSE) if _verdict(j) == "no" else None
    more = [o for o in against.observations if o.fact not in told][:1] if against is not None else []
    return [opened(_at(w, seen, places=True)) for seen in (*(_Seen(o, (o.subject,)) for o in more), *j.seen)]


def _at(w: Words, seen: _Seen, *, places: bool = False) -> str:
    """One value, with the ranks that have it where there are several."""
    said = w.seen(seen.o, places=places and len(seen.of) == 1)
    if seen.o.subject.scope is not Scope.RANK or len(w.d.facts.subjects(Scope.RANK)) == 1:
        return said
    name = subject_name(seen.of[0], w.lang) if len(seen.of) == 1 else many(seen.of, w.lang)
    return f"{name}{colon(w.lang)}{said}"


def _fields(w: Words, f: Finding, held: Sequence[Finding]) -> tuple[tuple[str, str], ...]:
    also = [x for x in held if x.rule.id != f.rule.id and x.role is Role.ROOT][:ALSO]
    cause = next((c for c in causes_of(f, w.d) if c.id != f.id), None)
    return (
        (w.t("cause", "原因"), w.title(cause) if cause is not None else ""),
        (w.t("do", "动作"), w.action(f)),
        (w.t("also", "另有"), w.mark.join(_named(w, x) for x in also)),
    )


def _spaced(name: str) -> str:
    return f"{' ' if name[:1].isascii() else ''}{name}"
