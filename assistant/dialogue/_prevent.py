"""How what was found is kept from coming back: what ends it, and the advice that is nearest to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.dialogue._words import suggest, words
from assistant.find import asked
from assistant.intent.after import prevents
from assistant.render.labels import led
from assistant.render.sheet import Fields, Items
from assistant.reply import Reply

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from rules.engine import Finding

NEAR = 0.35  # share of the words of a finding's title that an advice must hold to be about it; set on titles of rules of each area
BESIDE = 0.05  # by which another kind of entry may be nearer: where it is more, the advice is of something else


def answer(turn: Turn, f: Finding | None) -> Reply | None:
    """What keeps a finding from coming back; None where that is not asked."""
    if f is None or turn.diagnosis is None or not prevents(turn.query.text):
        return None
    from knowledge.advice import advice

    w, lang = words(turn), turn.lang
    found = asked.nearest(f"how to prevent {f.rule.title.en}")
    near = next(
        (n for n in found if n.id.startswith("advice ") and n.score >= max(NEAR, found[0].score - BESIDE)), None
    )
    page = advice().get(near.id.removeprefix("advice ")) if near is not None else None
    lead = w.t("It comes back as long as its cause stays", "只要原因还在，就会再次发生")
    more = () if page is None else (Items((page.says.in_(lang), *(m.in_(lang) for m in page.more[:2]))),)
    rows = Fields((
        (w.t("do", "动作"), w.action(f)),
        (w.t("runbook", "处置手册"), f"gpudiag runbook show {f.advice.runbook}" if f.advice.runbook else ""),
    ))  # fmt: skip
    return Reply(
        lang, led(lead, w.title(f), lang) + w.t(".", "。"), (*more, rows), focus=f.id, settled=True,
        suggestions=suggest(lang, "why", "evidence"),
        data={"answer": "prevent", "finding": f.rule.id, "page": near.id if page is not None and near is not None else None},
    )  # fmt: skip
