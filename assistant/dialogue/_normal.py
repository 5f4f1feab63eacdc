"""Is that normal: yes, no or it depends, first; with the range that is usual, at rest by the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from assistant.intent.stated import AT_REST, asks_usual
from assistant.render.labels import aside, colon, listed
from knowledge.at_rest import AtRest, at_rest
from knowledge.language import Text
from knowledge.readings import Rating, scales
from knowledge.units import symbol

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from assistant.dialogue._rated import Rated
    from assistant.dialogue._words import Words

_IDLE_SHARE = 5  # % of utilisation up to which a GPU rests
_LEADS = {
    Rating.GOOD: Text("Yes, that is usual", "正常"),
    Rating.OPEN: Text("It depends", "视情况而定"),
    Rating.BAD: Text("No", "不正常"),
}
_FINE = Text("Fine", "正常")
_ORDER = (Rating.BAD, Rating.OPEN, Rating.GOOD)


class Resting(NamedTuple):
    """A stated value of a GPU at rest."""

    row: Rated
    usual: AtRest
    rating: Rating
    text: Text


def asked(turn: Turn) -> bool:
    """Whether it is asked if what is stated is usual."""
    return asks_usual(turn.query.asks or turn.query.text)


def lead(turn: Turn, rating: Rating) -> str:
    """The first words: yes, no or it depends."""
    return _LEADS[rating].in_(turn.lang)


def resting(turn: Turn, rows: Sequence[Rated]) -> list[Resting]:
    """The stated values of a GPU that is said to rest, the least usual first; none of one that works."""
    text = turn.query.text
    busy = [r.observation.value for r in rows if r.observation.fact == "gpu.utilization.core"]
    rests = AT_REST.search(text) is not None or any(isinstance(b, int | float) and b < _IDLE_SHARE for b in busy)
    out = []
    for row in rows if rests else ():
        usual, value = at_rest(row.observation.fact, text), row.observation.value
        if usual is not None and isinstance(value, int | float):
            out.append(Resting(row, usual, *usual.rating(value)))
    return sorted(out, key=lambda r: _ORDER.index(r.rating))


def of_rest(turn: Turn, rows: Sequence[Rated]) -> list[Resting]:
    """The stated values of a GPU that is said to rest, where it is asked if they are usual, or where all that is stated is."""
    found = resting(turn, rows)
    at_ease = {id(r.row) for r in found if r.rating is Rating.GOOD}
    return found if asked(turn) or all(id(r) in at_ease or r.rating is Rating.GOOD for r in rows) else []


def judges(turn: Turn) -> bool:
    """Whether it is asked if values are usual that are known by themselves, or at rest."""
    facts = [o.fact for o in turn.query.observations if o.fact != "gpu.name"]
    return bool(facts) and asked(turn) and all(f in scales() or at_rest(f, turn.query.text) is not None for f in facts)


def of_resting(turn: Turn, w: Words, found: Sequence[Resting]) -> Text:
    """The first line about a GPU at rest, in the one language of the answer."""
    first = found[0]
    shown = listed([_shown(w, r) for r in found], w.lang, ";")
    why = first.text.in_(w.lang)
    begins = lead(turn, first.rating) if asked(turn) else _FINE.in_(turn.lang)
    said = f"{begins}{colon(w.lang)}{shown}{w.t('. ', '。')}{why}".rstrip()
    return Text(said, said) if w.lang == "zh" else Text(said, "")


def _shown(w: Words, r: Resting) -> str:
    spec = w.d.facts.vocabulary.get(r.row.observation.fact)
    unit = symbol(spec.unit, w.lang) if spec is not None else ""
    span = f"{r.usual.low:g}{w.t(' to ', ' 至 ')}{r.usual.high:g} {unit}".rstrip()
    return w.seen(r.row.observation, places=False) + aside(w.t(f"at rest usual: {span}", f"空闲时常见：{span}"), w.lang)
