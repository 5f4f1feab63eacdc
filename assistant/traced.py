"""How a verdict is worded that traces or a capture of a job gave: what bounds the job, and no word on the health of a node."""

from __future__ import annotations

from collections.abc import Sequence

from assistant.render.labels import impact_words
from knowledge.language import NO_TEXT, Text
from rules.engine import Finding, Role

AREAS = frozenset({"trace", "capture"})  # of rules/catalog: how a job spends its time


def only(findings: Sequence[Finding]) -> bool:
    """Whether all of some findings are about how a job spends its time."""
    return bool(findings) and all(f.rule.area in AREAS for f in findings)


def tail(same: Sequence[Finding]) -> Text:
    """The sentence behind the headline: how much of the time the first finding explains, of several ranks at most."""
    said = [impact_words(same[0].impact, lang, most=len(same) > 1) for lang in ("en", "zh")]
    return Text(f"It {said[0]}.", f"{said[1]}。") if all(said) else NO_TEXT


def quiet(findings: Sequence[Finding]) -> Text:
    """The headline when nothing asks for a change: what bounds the job, where the traces tell. Empty without traces."""
    roots = [f for f in findings if f.role is Role.ROOT]
    if not only(roots):
        return NO_TEXT
    first = roots[0]
    more = tail([f for f in roots if f.rule.id == first.rule.id])
    return Text(f"{first.title.en}.{f' {more.en}' if more else ''}", f"{first.title.zh}。{more.zh}")
