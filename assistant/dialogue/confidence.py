"""How sure: the grade in words, which signs agree, what is missing and what would tell it, what would change the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.dialogue import _clauses
from assistant.dialogue._looked import looked_at
from assistant.dialogue._opening import opening, placed
from assistant.dialogue._scope import fine
from assistant.dialogue._words import CLAUSES, Words, causes_of, finding_data, suggest
from assistant.render import describe
from assistant.render.labels import colon, led, listed
from assistant.render.sheet import Items, Part
from assistant.reply import Reply
from knowledge.language import Text
from knowledge.text import opened
from rules.condition import leaves
from rules.engine import Grade, Role
from rules.evaluate import evaluate
from rules.proof import LeafProof, Proof, Truth, flips, leaf_proofs

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from rules.condition import Condition
    from rules.engine import Finding

_MEANING = {
    Grade.CONFIRMED: Text("the condition holds and an independent sign agrees", "条件成立，且有独立迹象印证"),
    Grade.PROBABLE: Text("the condition holds; whether further signs agree is not known", "条件成立；其他迹象是否印证尚不清楚"),
    Grade.POSSIBLE: Text("the condition holds, but the signs that should agree do not all do so",
                         "条件成立，但应当印证的迹象并未全部出现"),
    Grade.RULED_OUT: Text("the condition holds, but something else accounts for it", "条件成立，但另有原因可以解释"),
}  # fmt: skip
_ALONE = Text("the condition holds, and the rule needs no further sign", "条件成立，该规则无需其他迹象")
_TRUTH = {
    Truth.TRUE: Text("agrees", "印证"), Truth.FALSE: Text("does not agree", "不印证"), Truth.UNKNOWN: Text("not known", "未知"),
}  # fmt: skip


def answer(turn: Turn) -> Reply:
    """The grade of the finding that the talk is about; without one, how much the silence is worth."""
    turn = placed(turn)
    start = opening(turn)
    if isinstance(start, Reply):
        return start
    w, f = start
    return _silence(turn, w) if f is None else _grade(turn, w, f)


def _grade(turn: Turn, w: Words, f: Finding) -> Reply:
    from assistant.dialogue.evidence import conflicts_of

    facts = w.d.facts
    confirms = [(c, evaluate(c, f.subject, facts)) for c in f.rule.confirms]
    excludes = [(c, evaluate(c, f.subject, facts)) for c in f.rule.excludes]
    missing = [
        m
        for _, p in (*confirms, *excludes)
        for leaf in leaf_proofs(p)
        if leaf.truth is Truth.UNKNOWN
        for m in leaf.missing
    ]
    meaning = _ALONE if f.grade is Grade.CONFIRMED and not confirms else _MEANING[f.grade]
    parts: list[Part] = [*w.section("Signs that should agree", "应当印证的迹象", [_sign(w, c, p) for c, p in confirms[:CLAUSES]]),
                         *w.section("Would rule it out", "可据此排除", [_against(w, c, p) for c, p in excludes[:3]])]  # fmt: skip
    if f.grade in (Grade.PROBABLE, Grade.POSSIBLE):
        parts += w.section("Would settle it", "可据此确认", [w.gaps(missing)] if w.view.gaps.needs(missing) else ())
    parts += w.section("Mistaken for it", "容易误判的情况", [w.mistaken(f)])
    parts += w.section("Sources contradict each other", "来源相互矛盾", conflicts_of(w, f, 2))
    parts += w.section("Would change the answer", "会改变结论的情况", [changes(w, f)])
    head = w.t(
        f"{led(w.grade(f).capitalize(), w.title(f), 'en')}. {opened(meaning.en)}.",
        f"{w.grade(f)}：{w.quoted(w.title(f))}。{meaning.in_('zh')}。",
    )
    return Reply(
        turn.lang,
        head,
        tuple(parts),
        focus=f.id,
        suggestions=suggest(turn.lang, "evidence", "alternatives", "why"),
        data={"answer": "confidence", "finding": finding_data(f, turn.lang),
              "confirms": [{"clause": describe.lines(c, "en"), "truth": str(p.truth)} for c, p in confirms],
              "excludes": [{"clause": describe.lines(c, "en"), "truth": str(p.truth)} for c, p in excludes],
              "missing": [str(m) for m in dict.fromkeys(missing)]},
    )  # fmt: skip


def in_words(w: Words, c: Condition, p: Proof) -> str:
    """A condition with what was seen of it, in one line: its telling clause."""
    if isinstance(p, LeafProof):
        return w.clause(p)
    told = w.clauses(p, 1)
    known = w.d.facts.vocabulary
    return (
        told[0] if told else listed((_clauses.asked(leaf, known, w.lang) for leaf in list(leaves(c))[:2]), w.lang, ";")
    )


def _sign(w: Words, c: Condition, p: Proof) -> str:
    return _judged(w, _TRUTH[p.truth].in_(w.lang), in_words(w, c, p))


def _against(w: Words, c: Condition, p: Proof) -> str:
    word = {
        Truth.TRUE: w.t("speaks against it", "反对"), Truth.FALSE: w.t("is not so", "不成立"), Truth.UNKNOWN: _TRUTH[p.truth].in_(w.lang),
    }[p.truth]  # fmt: skip
    return _judged(w, word, in_words(w, c, p))


def _judged(w: Words, word: str, said: str) -> str:
    """What a sign says of the finding, and the sign."""
    unknown = word == _TRUTH[Truth.UNKNOWN].in_(w.lang)  # what would tell it stands behind a colon of its own
    if not (unknown and colon(w.lang) in said):
        return f"{word}{colon(w.lang)}{said}"
    return f"{word}{w.mark}{said[0].lower() if said[1:2].islower() else said[0]}{said[1:]}"


def changes(w: Words, f: Finding) -> str:
    """The smallest thing that would have to be otherwise for the finding not to stand."""
    if f.grade is Grade.RULED_OUT:
        return ""
    turned = flips(f.proof, Truth.FALSE)
    if not turned:
        return ""
    what = listed((w.clause(p, places=False) for p in turned[:3]), w.lang, ";")
    more = len(turned) - 3
    rest = w.t(f"; {more} more", f"；另有 {more} 项") if more > 0 else ""
    said = w.t(f"It no longer holds without this: {what}{rest}", f"若没有这一点，结论即不成立：{what}{rest}")
    if f.role is Role.SYMPTOM:
        cause = w.title(causes_of(f, w.d)[0]) if causes_of(f, w.d) else ""
        return said + (
            w.mark + w.t(f"the verdict rests on its cause: {cause}", f"总体判断取决于其原因：{cause}") if cause else ""
        )
    return said


def _silence(turn: Turn, w: Words) -> Reply:
    """How much it is worth that nothing was found."""
    d = w.d
    unseen, waiting = w.unseen(3), w.undecided(len(w.d.undecided))
    where = fine(turn)
    place = w.view.where(where.subjects) if where is not None else ""
    on = w.t(f" on {place}", f"{place} ") if place else ""
    if not d.settled:
        head = w.t("Not sure at all: what was read does not settle it.", "无法确定：已读到的信息不足以下结论。")
    elif unseen or waiting:
        head = w.t(f"Sure as far as it was looked: nothing wrong was found{on}, and some things could not be seen.",
                   f"就所查看的范围而言可以确定：{on}未发现问题，但有些内容未能查看。")  # fmt: skip
    else:
        head = w.t(f"Sure as far as rules and sources reach: nothing wrong was found{on}, and no reading failed.",
                   f"在规则与来源所及范围内可以确定：{on}未发现问题，也没有读取失败。")  # fmt: skip
    parts: list[Part] = [Items(tuple(looked_at(w)))]
    parts += w.section("Could not be seen", "未能查看", unseen[:3])
    parts += w.section("Would change the answer", "会改变结论的情况", waiting[:3])
    return Reply(
        turn.lang,
        head,
        tuple(parts),
        settled=d.settled,
        suggestions=suggest(turn.lang, "evidence", "alternatives", "rerun"),
        data={"answer": "confidence", "finding": None, "asked": d.coverage.asked, "answered": d.coverage.answered,
              "undecided": [u.rule.id for u in d.undecided]},
    )  # fmt: skip
