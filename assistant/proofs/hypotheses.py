"""Everything that could have been concluded and was not, what is nearest to holding first, each with what keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.dialogue._standing import Stand, Standing, standings
from assistant.dialogue._words import Words, words_of
from assistant.dialogue.whynot import reason
from assistant.intent.query import Intent, Query, Topic
from assistant.proofs import questions
from knowledge.record import dataclass
from knowledge.text import clean, opened
from rules.proof import Truth

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from rules.loader import RuleSet

_FOUND = (Stand.CONCLUDED, Stand.SYMPTOM)


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A rule that holds nowhere."""

    rule: str
    title: str
    stand: Stand
    severity: str
    reason: str  # what is not so, what is not known


def hypotheses(d: Diagnosis, ruleset: RuleSet, lang: str) -> tuple[Hypothesis, ...]:
    """Each rule that is not among the findings, where it is nearest to holding."""
    w = words_of(d, lang)
    found = {f.rule.id for f in d.findings}
    every = (s for s in standings(ruleset.rules, d) if s.stand not in _FOUND and s.rule.id not in found)
    return tuple(
        Hypothesis(s.rule.id, w.rule_name(s.rule), s.stand, str(s.rule.severity), _reason(w, s)) for s in every
    )


def _reason(w: Words, s: Standing) -> str:
    """What is not so; that it is not, the list says already."""
    first = next((p for p in s.lacking if p.truth is Truth.FALSE), None)
    if s.stand is Stand.NOT_MATCHED and first is not None:
        return clean(opened(w.clause(first, places=False)))
    return clean(opened(reason(w, s)))


def query(rule: str, d: Diagnosis, ruleset: RuleSet, lang: str) -> Query:
    """Why that rule was not concluded, as a question."""
    from assistant.find import topic
    from assistant.intent.echo import echo

    text = questions.why_not(ruleset[rule], None, d, lang)
    known = topic(f"rule {rule}") or Topic(f"rule {rule}", 0.0, ruleset[rule].title)
    return echo(Query(text, lang, Intent.WHYNOT, topics=(known._replace(score=1.0),)))
