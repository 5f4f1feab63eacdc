"""What a person states, value by value: what the rules and the scales of readings make of each, the worst first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from assistant.diagnosis import bad
from assistant.dialogue import _clauses
from assistant.render.labels import aside
from assistant.topics.range import bounds
from knowledge.lazy import lazy
from knowledge.observation import Event, Observation, Status
from knowledge.readings import Meaning, Rating, Scale, scales
from knowledge.units import symbol
from rules.condition import FactLeaf
from rules.model import Bucket
from rules.proof import leaf_proofs
from rules.resolve import buckets

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.dialogue._words import Words
    from rules.engine import Finding

_IDLE = lazy(r"\b(?:idle\w{0,3}|at rest|no load|without load|unloaded)\b|空闲|空载|待机|没有负载|无负载", re.IGNORECASE)
_ORDER = {Rating.BAD: 0, Rating.OPEN: 1, Rating.GOOD: 2}
_WORDS = {
    Rating.BAD: ("bad", "异常"),
    Rating.GOOD: ("usual", "正常"),
    Rating.OPEN: ("not enough alone", "单凭此值无法判断"),
}


_PLURAL = {"is": "are", "has": "have", "goes": "go", "runs": "run", "draws": "draw", "counts": "count", "was": "were"}
_MANY = lazy(r"((?:[0-9]+|other) [A-Za-z]+s )(is|has|goes|runs|draws|counts|was)(?![a-z])")  # 3 GPUs, the other GPUs


class Rated(NamedTuple):
    """One stated value with what is known of it."""

    observation: Observation
    meaning: Meaning
    scale: Scale | None = None
    finding: Finding | None = None  # the rule that holds because of it

    @property
    def rating(self) -> Rating:
        """BAD, Rating.OPEN or Rating.GOOD: a rule goes before a scale."""
        return Rating.BAD if self.finding is not None else self.meaning.rating


def usual(o: Observation) -> Rating:
    """How a stated value is by its scale alone; what has none is good."""
    scale = scales().get(o.fact)
    return scale.meaning(o.value).rating if scale is not None and o.status is Status.OK else Rating.GOOD


def rated(d: Diagnosis, said: Sequence[Observation]) -> list[Rated]:
    """Every stated value, those that are bad first. What no rule and no scale knows is open."""
    values = {(o.fact, o.subject): o.value for o in said}
    by_value: dict[tuple[object, object], Finding] = {}
    for f in bad(d.findings):
        for o in (*f.because, *f.events):
            by_value.setdefault((o.fact, o.subject), f)
    rows = []
    for o in said:
        scale = scales().get(o.fact)
        meaning = scale.meaning(o.value) if scale is not None and o.status is Status.OK else Meaning(Rating.OPEN)
        if scale is not None and scale.under_load and meaning.rating is Rating.BAD and _IDLE.search(o.excerpt):
            meaning = meaning._replace(rating=Rating.OPEN)
        if scale is not None and scale.same_as and values.get((scale.same_as, o.subject)) == o.value:
            meaning = Meaning(Rating.GOOD)
        rows.append(Rated(o, meaning, scale, by_value.get((o.fact, o.subject))))
    compared_with = {r.scale.same_as for r in rows if r.scale is not None and r.scale.same_as}
    return sorted((r for r in rows if r.observation.fact not in compared_with), key=lambda r: _ORDER[r.rating])


def stands(w: Words, r: Rated) -> str:
    """A stated value as a clause, with its limit: ``the core temperature of GPU 1 is 104 °C (bad: from 87 °C)``."""
    said = w.seen(r.observation, places=False)
    if w.lang != "zh":
        said = _MANY.sub(lambda m: f"{m[1]}{_PLURAL[m[2]]}", said)
    if isinstance(r.observation.value, Event):
        return said
    word = w.t(*_WORDS[r.rating])
    limit = _limit(w, r)
    return said + aside(f"{word}{w.t(': ', '：')}{limit}" if limit else word, w.lang)


def _limit(w: Words, r: Rated) -> str:
    spec = w.d.facts.vocabulary.get(r.observation.fact)
    if r.finding is not None:
        for p in leaf_proofs(r.finding.proof):
            if isinstance(p.leaf, FactLeaf) and p.leaf.fact == r.observation.fact and _clauses.ordered(p.leaf):
                return _clauses.wanted(p.leaf, w.d.facts.vocabulary, w.lang)
        return ""
    if r.meaning.band is None or (r.meaning.band.low is None and r.meaning.band.high is None):
        return ""
    return bounds(r.meaning.band, symbol(spec.unit, w.lang) if spec is not None else "", w.lang)


def to_do(w: Words, scale: Scale) -> str:
    """The action for a bad value: the vendor's word and a sentence."""
    info = buckets()[Bucket(scale.bucket)]
    return f"{info.bucket}{w.t(': ', '：')}{(scale.do or info.text).in_(w.lang)}"
