"""What else could it be: what is open and what would settle it, what is ruled out and why, what it is mistaken for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from assistant.dialogue._named import chosen, named
from assistant.dialogue._pointed import pointed
from assistant.dialogue._standing import Stand, Standing, standings
from assistant.dialogue._words import Words, nothing_yet, suggest, words
from assistant.intent.query import Intent
from assistant.render.labels import label
from assistant.render.sheet import Paragraph, Part, Table
from assistant.reply import Reply
from knowledge.language import Text
from knowledge.record import dataclass
from rules.engine import Grade, Role
from rules.evaluate import evaluate
from rules.proof import Truth

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from assistant.differential import Row
    from rules.engine import Finding, Undecided
    from rules.model import Rule

MOST, ROWS = 6, 5


@dataclass(frozen=True, slots=True)
class _Other:
    """Another explanation, where it stands, and what would settle it or why it is none."""

    title: str
    state: str
    word: str
    why: str
    id: str


def answer(turn: Turn) -> Reply:
    """The differential table of the symptoms that were asked about, if any; else the other hypotheses."""
    if turn.diagnosis is None:
        return nothing_yet(turn)
    w = words(turn)
    symptoms = turn.query.symptoms or (turn.base.symptoms if turn.base is not None else ())
    found = named(turn)
    f = chosen(turn, found)
    if symptoms and not found.what:
        return _differential(turn, symptoms)
    others = list(_others(turn, w, f))[:MOST]
    parts: list[Part] = []
    if others:
        header = (w.t("could be", "可能"), w.t("state", "状态"), w.t("why, or what would settle it", "原因或如何确认"))
        parts.append(Table(header, tuple((o.title, o.word, o.why) for o in others)))
    parts += w.section("Mistaken for it", "容易误判的情况", [w.mistaken(f) if f is not None else ""])
    return Reply(
        turn.lang,
        _head(w, f, others),
        tuple(parts),
        focus=f.id if f is not None and found.what else "",
        suggestions=suggest(turn.lang, "confidence", "why", "next"),
        data={"answer": "alternatives", "finding": f.id if f is not None else None,
              "others": [{"id": o.id, "title": o.title, "state": o.state, "why": o.why} for o in others]},
    )  # fmt: skip


def _head(w: Words, f: Finding | None, others: Sequence[_Other]) -> str:
    still = [o for o in others if o.state in ("beside", "possible", "open")]
    if f is None:
        if still:
            return w.t(f"Nothing was found; {len(still)} thing{'' if len(still) == 1 else 's'} could not be excluded.",
                       f"未发现问题；有 {len(still)} 项不能排除。")  # fmt: skip
        return w.t(
            "Nothing was found, and nothing that speaks for anything was left open.",
            "未发现问题，也没有悬而未决的迹象。",
        )
    title = w.title(f)
    if still:
        many = "" if len(still) == 1 else "s"
        return w.t(f"{len(still)} other explanation{many} cannot be excluded beside this. {title} ({w.grade(f)}).",
                   f"除{w.quoted(title)}之外，还有 {len(still)} 项不能排除。")  # fmt: skip
    return w.t(
        f"Nothing else speaks up: no other rule is open. {title} ({w.grade(f)}).",
        f"没有其他可能：{w.quoted(title)}{w.grade(f)}，没有其他规则悬而未决。",
    )


# --- the order: what is found beside it, what is possible, what is open, what is ruled out --


def _others(turn: Turn, w: Words, f: Finding | None) -> Iterator[_Other]:
    d = w.d
    seen = {f.rule.id} if f is not None else set()
    for x in d.findings:
        beside = x.role is Role.ROOT and x.grade is not Grade.POSSIBLE
        if x.rule.id in seen or not (beside or x.grade is Grade.POSSIBLE):
            continue
        seen.add(x.rule.id)
        word = w.t("found beside it", "同时发现") if beside else w.grade(x)
        why = f"{w.t('action: ', '动作：')}{x.advice.bucket}" if beside else w.gaps(x.missing) or _disagrees(w, x)
        yield _Other(w.title(x), "beside" if beside else "possible", word, why, x.id)
    for s in _open_causes(turn, f):
        if s.rule.id not in seen:
            seen.add(s.rule.id)
            yield _open(w, s.rule, w.gaps(m for p in s.lacking for m in p.missing), s)
    for u in sorted(d.undecided, key=lambda u: (-u.rule.severity.rank, u.rule.id, str(u.subject))):
        if u.rule.id not in seen and _tellable(w, u):
            seen.add(u.rule.id)
            yield _open(w, u.rule, w.gaps(u.missing), None)
    for x in d.ruled_out:
        if x.rule.id not in seen:
            seen.add(x.rule.id)
            yield _Other(w.title(x), "ruled_out", label("ruled_out", w.lang), _against(w, x), x.id)


def _open(w: Words, rule: Rule, needs: str, s: Standing | None) -> _Other:
    word = w.t("open", "未确定")
    title = w.rule_name(rule)
    if s is not None and s.subject is not None and not needs:
        needs = w.clause(s.lacking[0]) if s.lacking else ""
    return _Other(title, "open", word, needs, rule.id)


def _tellable(w: Words, u: Undecided) -> bool:
    """Whether it is a question at all, and anything could settle it."""
    return w.view.gaps.worth_saying(u) and bool(w.view.gaps.needs(u.missing))


def _open_causes(turn: Turn, f: Finding | None) -> list[Standing]:
    """Rules that could explain the finding and of which it is not known whether they hold."""
    if f is None or f.grade is Grade.RULED_OUT:
        return []
    causes = [r for r in turn.ruleset.rules if r.id != f.rule.id and any(e.rule == f.rule.id for e in r.explains)]
    assert turn.diagnosis is not None
    known = standings(causes, turn.diagnosis)
    return [s for s in known if s.stand is Stand.UNKNOWN and _speaks(s)]


def _speaks(s: Standing) -> bool:
    from knowledge.observation import Status
    from rules.proof import leaf_proofs

    if s.proof is None:
        return False
    return any(
        p.truth is Truth.TRUE and any(o.status is Status.OK for o in p.observations) for p in leaf_proofs(s.proof)
    )


def _disagrees(w: Words, f: Finding) -> str:
    proofs = [evaluate(c, f.subject, w.d.facts) for c in f.rule.confirms]
    said = [line for p in proofs if p.truth is Truth.FALSE for line in w.clauses(p, 1)]
    return w.t("does not agree: ", "不印证：") + said[0] if said else ""


def _against(w: Words, f: Finding) -> str:
    proofs = [evaluate(c, f.subject, w.d.facts) for c in f.rule.excludes]
    said = [line for p in proofs if p.truth is Truth.TRUE for line in w.clauses(p, 1)]
    return said[0] if said else ""


# --- a symptom that was asked about -------------------------------------------------------


def _differential(turn: Turn, symptoms: Iterable[str]) -> Reply:
    from assistant.differential import differential, summary, table

    assert turn.diagnosis is not None
    rows = differential(tuple(symptoms), turn.diagnosis, turn.plan, turn.lang, turn.ruleset, pointed(turn.query))
    parts: list[Part] = [*table(rows, turn.lang, ROWS)]
    head = summary(rows, turn.lang)
    if (first := _first(turn, rows)) is not None:
        parts.insert(0, Paragraph(head))
        head = first
    return Reply(
        turn.lang,
        head,
        tuple(parts),
        settled=turn.diagnosis.settled,
        suggestions=suggest(turn.lang, "next", "confidence", "why"),
        data={"answer": "alternatives", "rows": [_plain(r) for r in rows]},
    )


def _first(turn: Turn, rows: Sequence[Row]) -> str | None:
    """The answer to "why" and "how sure" when no cause is found; None for "what else", which the summary answers."""
    from assistant.differential import Stand

    if turn.query.intent not in (Intent.WHY, Intent.CONFIDENCE, Intent.EVIDENCE) or any(
        r.state is Stand.FOR for r in rows
    ):
        return None
    n, shut = len(rows), sum(r.state is Stand.AGAINST for r in rows)
    sure = turn.query.intent is Intent.CONFIDENCE
    en, zh = ("Not sure yet, for no cause", "尚不确定：还没有") if sure else ("No cause", "还没有")
    said = Text(f"{en} was found: {shut} of {n} possible causes are ruled out, {n - shut} are open.",
                f"{zh}找到原因，{n} 种可能原因中已排除 {shut} 种，{n - shut} 种未定。")  # fmt: skip
    return said.in_(turn.lang)


def _plain(row: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return {k: str(v) if k == "state" else v for k, v in asdict(row).items()}
