"""Which of many like things a problem is at: the port, rank, link or part that the lines of its finding name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from assistant.render.labels import listed, subject_name
from knowledge.facts import vocabulary
from knowledge.language import NO_TEXT, Text
from knowledge.observation import Event, Observation, Scope
from knowledge.text import clean, excerpt

if TYPE_CHECKING:
    from rules.engine import Finding

_ROOM = 60  # characters for all places of a headline; the first one stands whatever it takes
_WORDS = 160  # characters of one part: a message may be long, and both ends of a link stand in it
_AWAY = "away_ms"
_MOST = 500  # events of one finding that are looked at


def which(findings: Sequence[Finding]) -> Text:
    """``PCI device 0000:5d:01.0``, ``rank 27, mlx5_3, peer 10.4.0.19``: the first ones, then how many there are more.
    Empty where the lines name nothing, or several findings name different things: their subjects tell them apart."""
    places = _places(findings[0]) if findings else []
    if not places or any(_places(f) != places for f in findings[1:]):
        return NO_TEXT
    shown = places[:1]
    while len(shown) < len(places) and sum(len(p.en) + 2 for p in places[: len(shown) + 1]) <= _ROOM:
        shown = places[: len(shown) + 1]
    rest = len(places) - len(shown)
    en, zh = listed((p.en for p in shown), "en", ";"), listed((p.in_("zh") for p in shown), "zh", ";")
    return Text(f"{en} and {rest} more", f"{zh} 等 {len(places)} 处") if rest else Text(en, zh)


def _places(f: Finding) -> list[Text]:
    title = f.title.in_("en") + f.title.in_("zh")
    places = [place for place in dict.fromkeys(_place(o, f, title) for o in _as_left(f)) if place]
    parts = [set(p.en.split(", ")) for p in places]
    return [
        p for p, own in zip(places, parts, strict=True) if not any(own < other for other in parts)
    ]  # another says it and more


def _as_left(f: Finding) -> Iterator[Observation]:
    """The events as the last one of each thing leaves it: that it came back once is not said where it went away again."""
    events = f.events[:_MOST]
    gone = [_gone(o) for o in events]
    things = [(o.fact, *_parts(o, f, "en")) for o in gone]
    last = dict(zip(things, events, strict=True))
    for o, away, thing in zip(events, gone, things, strict=True):
        yield away if last[thing] == _gone(last[thing]) else o


def _gone(o: Observation) -> Observation:
    """The event without how long it was away (`away_ms`), as of something that has not come back."""
    if not isinstance(o.value, Event) or o.value.get(_AWAY) is None:
        return o
    return replace(o, value=replace(o.value, fields={k: v for k, v in o.value.fields.items() if k != _AWAY}))


def _place(o: Observation, f: Finding, title: str) -> Text:
    """What the event tells of its place that neither the title nor the name of the finding's subject says."""
    known = {s.id for s in f.subject.ancestors()}
    kept: list[tuple[str, str]] = []
    for en, zh in zip(_parts(o, f, "en"), _parts(o, f, "zh"), strict=True):
        said = en.lower() in title.lower() or en.rpartition(" ")[2] in known or any(en in other for other, _ in kept)
        kept += [] if said else [(en, zh)]
    return Text(listed((en for en, _ in kept), "en"), listed((zh for _, zh in kept), "zh")) if kept else NO_TEXT


def _parts(o: Observation, f: Finding, lang: str) -> Iterator[str]:
    """The event's own subject, where it is a part of the finding's, then what its fact says `which` it is."""
    part = o.subject != f.subject and f.subject in o.subject.ancestors()
    named = o.subject.scope is Scope.PROCESS and f.program is not None  # the program is named beside the title
    name = subject_name(o.subject, "en") if o.subject.id.isdigit() else o.subject.id  # an 8 may stand for anything
    if part and not named and name and name not in f.title.en:
        yield subject_name(o.subject, lang)
    spec = vocabulary().get(o.fact)
    if spec is not None and isinstance(o.value, Event):
        for text in spec.place(o.value, lang):
            yield clean(excerpt(text, _WORDS))
