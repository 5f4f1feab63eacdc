"""Why: the chain from the verdict to the lines it stands on. Half a screen; naming a finding, a code or a GPU focuses it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from assistant.dialogue._looked import looked_at
from assistant.dialogue._opening import opening
from assistant.dialogue._scope import scoped
from assistant.dialogue._words import CLAUSES, Words, causes_of, finding_data, suggest
from assistant.render.labels import colon, label, led, listed
from assistant.render.sheet import Fields, Paragraph, Part
from assistant.render.working import at_work
from assistant.reply import Reply
from knowledge.text import clean
from rules.engine import Grade, Role
from rules.evaluate import evaluate
from rules.proof import Truth

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from rules.engine import Finding

EFFECTS = 3  # consequences that are named
_ASKED = re.compile(
    r"\b(?:do|did|are|would) you (?:ask|asking|want|need)\b|\bask(?:ing)? (?:me|that|this)\b|为(?:什么|何|啥)要?(?:问|想知道)|问这"
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")


def answer(turn: Turn) -> Reply:
    """The chain of the verdict's finding, or of the one that is named; why a question was asked; why it is fine."""
    if _ASKED.search(turn.query.text.casefold()) or turn.diagnosis is None:
        from assistant.dialogue._asked import why_asked

        if (asked := why_asked(turn)) is not None:
            return asked
    start = opening(turn)
    if isinstance(start, Reply):
        return start
    w, f = start
    return _fine(turn, w) if f is None else _chain(turn, w, f)


def _chain(turn: Turn, w: Words, f: Finding) -> Reply:
    d = w.d
    rows = [
        (w.t("rule", "规则"), f"{f.rule.id}{colon(w.lang)}{_first(f.rule.why.in_(w.lang))}"),
        *_cause(w, f),
        (w.t("explains", "解释了"), _few(w, w.view.effects(f.explains))),
        (w.t("may explain", "可能解释"), _few(w, w.view.effects(f.may_explain))),
        (w.t("action", "动作"), w.action(f)),
        (w.t("action from", "动作依据"), "" if f.advice.resolver == "rule" else _speaker(w, f)),
    ]
    parts: list[Part] = [*w.section("It holds because", "成立依据", w.clauses(f.proof)), Fields(tuple(rows))]
    if agreed := _agreed(w, f):
        parts[2:2] = w.section("What agrees" if f.grade is not Grade.RULED_OUT else "What speaks against it",
                               "相互印证" if f.grade is not Grade.RULED_OUT else "反对的证据", agreed)  # fmt: skip
    others = [x for x in d.roots if x.id != f.id and f.role is Role.ROOT and not turn.query.topics]
    if others and f.grade is not Grade.RULED_OUT:
        said = listed((w.title(x) for x in others[:3]), w.lang, ";")
        rest = len(others) - 3
        more = f"{w.mark}{label('more_lines', w.lang).format(n=rest)}" if rest > 0 else ""
        parts.append(Paragraph(w.t(f"{led('Found beside it', said, 'en')}{more}.", f"此外：{said}{more}。")))
    return Reply(
        turn.lang,
        _head(w, f),
        tuple(parts),
        focus=f.id,
        suggestions=suggest(turn.lang, "evidence", "confidence", "next"),
        data={"answer": "why", "finding": finding_data(f, turn.lang), "rule": f.rule.id,
              "clauses": list(w.clauses(f.proof, 100)), "explains": list(f.explains),
              "explained_by": list(f.explained_by), "said_by": f.advice.resolver},
    )  # fmt: skip


def _head(w: Words, f: Finding) -> str:
    title, verdict = w.title(f), w.d.verdict
    if f.grade is Grade.RULED_OUT:
        return w.t(f"{title} (ruled out, although its condition holds).", f"{w.quoted(title)}的条件成立，但已排除。")
    roots = causes_of(f, w.d)
    if f.role is Role.SYMPTOM and roots:
        cause = w.title(roots[0])
        return w.t(
            f"{title} ({w.grade(f)}). {led('It is a consequence of this', cause, 'en')}.",
            f"{w.quoted(title)}（{w.grade(f)}）是“{cause}”的后果。",
        )
    if w.d.roots and w.d.roots[0].id == f.id:
        state = label(str(verdict.state), w.lang)
        lead = f"{state}. {title}" if ": " in title else f"{state}, because {_lower(title)}"  # one colon is enough
        return w.t(f"{lead} ({w.grade(f)}).", f"{state}，因为{w.quoted(title)}（{w.grade(f)}）。")
    return w.t(f"{title} ({w.grade(f)}).", f"{title}（{w.grade(f)}）。")


def _lower(title: str) -> str:
    """A title within a sentence: words of ours lose their capital, names keep it."""
    first = title.split(" ", 1)[0]
    return title if not first[1:].islower() or title[:1] == "/" else title[:1].lower() + title[1:]


def _few(w: Words, titles: Sequence[str]) -> str:
    """The first titles, and how many more."""
    rest = len(titles) - EFFECTS
    return listed([*titles[:EFFECTS], *([label("more_lines", w.lang).format(n=rest)] if rest > 0 else [])], w.lang, ";")


def _first(text: str) -> str:
    """The first two sentences of a rule's page."""
    parts = [part.strip() for part in _SENTENCE.split(clean(text)) if part.strip()][:2]
    return ("" if parts and parts[0].endswith(("。", "！", "？")) else " ").join(parts)


def _cause(w: Words, f: Finding) -> list[tuple[str, str]]:
    if f.role is Role.ROOT and not f.explained_by:
        return []
    roots = [w.title(x) for x in causes_of(f, w.d)[:2]]
    return [(w.t("explained by", "原因"), listed(roots, w.lang, ";"))]


def _speaker(w: Words, f: Finding) -> str:
    """Who decided the action, with the line that did."""
    line = f.advice.because[0] if f.advice.because else None
    told = f"{colon(w.lang)}{w.seen(line)}" if line is not None and f.advice.resolver != "rule" else ""
    return f"{w.said_by(f)}{told}"


def _agreed(w: Words, f: Finding) -> list[str]:
    """The further signs that made the grade what it is."""
    against = f.grade is Grade.RULED_OUT
    proofs = [evaluate(c, f.subject, w.d.facts) for c in (f.rule.excludes if against else f.rule.confirms)]
    return [line for p in proofs if p.truth is Truth.TRUE for line in w.clauses(p, 1)][:2]


# --- nothing found ------------------------------------------------------------------------


def _fine(turn: Turn, w: Words) -> Reply:
    """Why nothing is held against the machine: what was looked at, and what could not be seen."""
    d, lang = w.d, turn.lang
    parts = [*w.section("Looked at", "查看了", looked_at(w)),
             *w.section("Could not be seen", "未能查看", w.unseen(CLAUSES))]  # fmt: skip
    if waiting := w.undecided(2):
        parts += w.section("Still open", "尚未确定", waiting)
    text, work = d.verdict.text.in_(lang), at_work(d.facts)  # what the GPUs do is no reason
    head = clean(text.replace(work.in_(lang), "") if work else text).strip().rstrip(".。")
    where = scoped(d, turn.base.slots) if turn.base is not None else None
    if where is not None and where.narrow:
        place = w.view.where(where.subjects)
        head = w.t(f"Nothing wrong was found on {place}", f"{place}{' ' if place[-1:].isascii() else ''}未发现问题")
    if d.settled:
        tail = w.t("no rule that could be decided found anything against it", "所有能判定的规则都未发现问题")
    else:
        tail = w.t("what was read does not settle it", "已读到的信息不足以下结论")
    return Reply(
        lang,
        w.t(f"{head}: {tail}.", f"{head}：{tail}。"),
        tuple(parts),
        settled=d.settled,
        suggestions=suggest(lang, "evidence", "confidence", "alternatives"),
        data={"answer": "why", "finding": None, "sources": list(d.sources), "asked": d.coverage.asked,
              "answered": d.coverage.answered, "undecided": [u.rule.id for u in d.undecided]},
    )  # fmt: skip
