"""Values in words, with the unit of their fact."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.dialogue import _clauses
from knowledge.language import Text
from knowledge.observation import Event, Series, Status, Value
from knowledge.text import clean
from knowledge.units import measured, symbol
from rules.condition import EventLeaf, FactLeaf, Take

if TYPE_CHECKING:
    from knowledge.facts import FactSpec, Vocabulary
    from rules.proof import LeafProof


def unit_of(spec: FactSpec | None) -> str:
    """The unit as it is written behind a number."""
    return symbol(spec.unit) if spec is not None else ""


def in_words(spec: FactSpec | None, value: Value, lang: str) -> str:
    """``91 °C``, ``no``, ``drain and reset``; empty of an event and of nothing."""
    if isinstance(value, Series):
        value = value.values[-1] if value.values else None
    if value is None or isinstance(value, Event):
        return ""
    if isinstance(value, bool):
        return (Text("yes", "是") if value else Text("no", "否")).in_(lang)
    if isinstance(value, tuple):
        return ", ".join(in_words(spec, v, lang) for v in value) or Text("none", "无").in_(lang)
    if isinstance(value, int | float):
        return measured(value, spec.unit if spec is not None else "")
    if spec is not None and value in spec.labels:
        return spec.labels[value].in_(lang)
    return clean(value).replace("_", " ") if spec is not None and value in spec.values else clean(value)


def seen_value(p: LeafProof, known: Vocabulary, lang: str) -> str:
    """What a clause compared: the value of its fact, or what the rules note of a comparison over time or over others."""
    leaf = p.leaf
    if isinstance(leaf, EventLeaf):
        if any(isinstance(o.value, Event) for o in p.observations):
            n = sum(isinstance(o.value, Event) for o in p.observations)
            return Text(f"{n} seen", f"共 {n} 条").in_(lang)
        return ""
    if not isinstance(leaf, FactLeaf) or leaf.each is not None or leaf.peer_ratio or leaf.take is not Take.LAST:
        return _clauses.note(p.seen, lang)
    first = next((o for o in p.observations if o.fact == leaf.fact), None)
    if first is None or first.status is not Status.OK:
        return _clauses.note(p.seen, lang)
    return in_words(known.get(leaf.fact), first.value, lang)
