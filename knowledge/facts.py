"""The fact vocabulary: every name that a probe may provide and a rule may mention.

Each area has one file in ``knowledge/data/facts/``. A name is never reused; a fact that
was renamed stays with `replaced_by` so that old history can be read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from functools import cache
from typing import Any

from knowledge.errors import UndeclaredFactError, UnknownNameError
from knowledge.language import Text
from knowledge.lazy import lazy
from knowledge.observation import AT_LEAST, Event, Observation, Scope, Series, Value
from knowledge.record import dataclass
from knowledge.units import TIMES, parse_duration, span, symbol

_FIELDS = lazy(r"\{(\w{1,40})")


class Kind(StrEnum):
    """How a fact behaves over time."""

    STATE = "state"  # a property that changes rarely
    GAUGE = "gauge"  # a level that goes up and down
    COUNTER = "counter"  # only grows, until a reset
    EVENT = "event"  # happens at an instant; one observation each
    RELATION = "relation"  # ties two subjects; the value names the other one


class Type(StrEnum):
    """What a value is."""

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    STR = "str"
    ENUM = "enum"
    SET = "set"  # tuple of words
    EVENT = "event"
    SUBJECT = "subject"  # "scope:id", for relations


@dataclass(frozen=True, slots=True)
class FactSpec:
    """One name of the vocabulary."""

    name: str
    scope: Scope
    type: Type
    kind: Kind
    meaning: Text
    # The evidence sentence: {value}, {unit}, {subject}, event fields; {value:error|errors} agrees in number, {ran_ms:ms} is
    # a duration as people write it, {size} a value in bytes.
    says: Text
    unit: str = ""
    values: tuple[str, ...] = ()  # of an ENUM or SET: what may stand there
    labels: Mapping[str, Text] = field(default_factory=dict)  # how a sentence calls a word of `values` or of a field
    fields: Mapping[str, str] = field(default_factory=dict)  # of an EVENT: name -> bool|int|float|str
    which: tuple[Text, ...] = ()  # of an EVENT: the parts that say in a headline which of the like it is
    max_age: int | None = None  # ns; an older value is STALE on a live host
    ask: Text | None = None  # how to ask a person who can know it
    derived: bool = False  # computed in knowledge/derive
    derived_from: tuple[str, ...] = ()  # the facts that it is computed from: who tells them tells it
    per_boot: bool = False  # a COUNTER that starts at zero with each driver load
    replaced_by: str = ""

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> FactSpec:
        """From checked YAML."""
        ask = data.get("ask")
        age = data.get("max_age")
        return cls(
            name=data["name"], scope=Scope(data["scope"]), type=Type(data["type"]), kind=Kind(data["kind"]),
            meaning=Text.of(data["meaning"]), says=Text.of(data["says"]), unit=data.get("unit", ""),
            which=tuple(Text.of(part) for part in data.get("which", ())),
            values=tuple(data.get("values", ())), fields=dict(data.get("fields", {})),
            labels={word: Text.of(said) for word, said in data.get("labels", {}).items()},
            max_age=parse_duration(age) if age else None, ask=Text.of(ask) if ask else None,
            derived=data.get("derived", False), derived_from=tuple(data.get("derived_from", ())),
            per_boot=data.get("per_boot", False), replaced_by=data.get("replaced_by", ""),
        )  # fmt: skip

    def accepts(self, value: Value) -> bool:
        """True when `value` is of this fact's type (a Series counts for any number).

        NaN is what exporters print for a number that they do not have: no fact accepts it.
        """
        if isinstance(value, Series):
            return self.type in (Type.INT, Type.FLOAT)
        match self.type:
            case Type.EVENT:
                return isinstance(value, Event) and self._accepts_fields(value)
            case Type.SET:
                return isinstance(value, tuple) and (not self.values or set(value) <= set(self.values))
            case Type.ENUM:
                return isinstance(value, str) and value in self.values
            case Type.SUBJECT:
                return isinstance(value, str) and value.partition(":")[0] in list(Scope)
            case _:
                return _is(self.type, value)

    def _accepts_fields(self, event: Event) -> bool:
        return (event.code is None or _is(Type.INT, event.code)) and all(
            name in self.fields and (value is None or _is(Type(self.fields[name]), value))
            for name, value in event.fields.items()
        )

    def sentence(self, observation: Observation, language: str = "en") -> str:
        """The observation in words, from the template `says`."""
        value = observation.value
        words: dict[str, Value] = {"unit": symbol(self.unit), "subject": str(observation.subject)}
        template = self.says.in_(language)
        if isinstance(value, Event):  # of some hundred fields a sentence names a few
            named = (name for name in self.fields if f"{{{name}" in template)
            words |= {"code": value.code, **{name: value.get(name) for name in named}}
        else:
            words["value"] = value
            words["size"] = _size(value) if "{size" in template else None
        said = {n: _Word(word, self._word(word, language)) for n, word in words.items() if f"{{{n}" in template}
        if "value" in said and observation.detail.startswith(AT_LEAST):
            said["value"] = _Word(value, f"{'至少' if language == 'zh' else 'at least'} {self._word(value, language)}")
        return template.format_map(_Blank(said))

    def place(self, event: Event, language: str = "en") -> list[str]:
        """The parts of `which` whose fields the event tells."""
        out = []
        for part in self.which:
            told = {name: event.get(name) for name in _FIELDS.findall(part.en)}
            if not any(value is None or value == "" for value in told.values()):
                said = {name: _Word(value, self._word(value, language)) for name, value in told.items()}
                out.append(part.in_(language).format_map(_Blank(said)))
        return out

    def _word(self, value: Value, language: str) -> str:
        """A value as a sentence calls it."""
        if value is None:
            return "-"
        if isinstance(value, Series):
            return _number(value.values[-1]) if value.values else "-"
        if isinstance(value, tuple):
            return ", ".join(self._word(v, language) for v in value) or {"zh": "无"}.get(language, "none")
        if isinstance(value, bool):
            return {"zh": ("否", "是")}.get(language, ("no", "yes"))[value]
        if isinstance(value, str) and value in self.labels:
            return self.labels[value].in_(language)
        if isinstance(value, str) and value in self.values:
            return value.replace("_", " ")  # our own spelling of several words
        if isinstance(value, float):
            return _percent(value) if self.unit == "percent" else _number(value)
        return str(value)


class _Word:
    """A value within a sentence. ``{value:error|errors}`` is the word that goes with the number, ``{ran_ms:ms}`` a duration."""

    __slots__ = ("_said", "_value")

    def __init__(self, value: Value, said: str) -> None:
        self._value, self._said = value, said

    def __format__(self, forms: str) -> str:
        if forms in TIMES and isinstance(self._value, int | float):
            return span(self._value, forms)
        one, _, many = forms.partition("|")
        return (one if self._value == 1 else many) if forms else self._said


class _Blank(dict[str, _Word]):
    """Missing words become a dash; a template never raises on data."""

    def __missing__(self, key: str) -> _Word:
        return _Word(None, "-")


def _is(type_: Type, value: Value) -> bool:
    """True when `value` is a plain value of `type_`: bool, int, float or str."""
    if type_ is Type.BOOL or isinstance(value, bool):
        return type_ is Type.BOOL and isinstance(value, bool)
    if type_ is Type.FLOAT and isinstance(value, float):
        return not math.isnan(value)
    if type_ in (Type.INT, Type.FLOAT):
        return isinstance(value, int) and abs(value) < _MOST
    return isinstance(value, str)


_MOST = 1 << 1000  # what a document of a stranger holds beyond that is no count, and cannot be reckoned with


def _number(value: float) -> str:
    return f"{value:.6g}"


def _percent(value: float) -> str:
    """A share to a tenth; what a tenth would make none or all of it, or what is smaller, keeps its figures."""
    said = f"{value:.1f}".removesuffix(".0")
    return said if abs(value) >= 1 and (said != "100" or value == 100) else f"{value:.4g}"


def _size(value: Value) -> Value:
    """An amount of bytes in the unit in which it is at least one; what is no number stays."""
    if not isinstance(value, int | float) or not _is(Type.FLOAT, value) or not math.isfinite(value):
        return value
    amount, unit = float(value), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if abs(amount) < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.3g} {unit}" if abs(amount) < 1000 else f"{amount:.0f} {unit}"


class Vocabulary:
    """All facts by name: ready ones, or checked plain data of which each entry is built when it is asked for."""

    def __init__(self, specs: Mapping[str, FactSpec | Mapping[str, Any]]) -> None:
        self._entries = dict(specs)
        self._specs: dict[str, FactSpec] = {}
        self._former: dict[str, list[str]] | None = None
        self._having: dict[tuple[str, str | None], list[FactSpec]] = {}

    def __getitem__(self, name: str) -> FactSpec:
        found = self.get(name)
        if found is None:
            raise UnknownNameError("fact", name, self._entries, kind_zh="事实")
        return found

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[FactSpec]:
        return (self[name] for name in self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, name: str) -> FactSpec | None:
        """The fact called `name`, or None."""
        found = self._specs.get(name)
        if found is None and (entry := self._entries.get(name)) is not None:
            found = self._specs[name] = entry if isinstance(entry, FactSpec) else FactSpec.from_plain(entry)
        return found

    def told(self, observation: Observation) -> FactSpec:
        """The fact that our own parsers, probes and derivations tell. UndeclaredFactError when there is none of that name."""
        spec = self.get(observation.fact)
        if spec is None:
            raise UndeclaredFactError(observation.fact, observation.source.probe, self.nearest(observation.fact))
        return spec

    def current(self, name: str) -> str | None:
        """What a fact of an older record is called now; None when this version does not know it."""
        spec = self.get(name)
        return (spec.replaced_by or name) if spec else None

    def having(self, key: str, value: str | None = None) -> list[FactSpec]:
        """The facts of which attribute `key` says something, or says `value`. The others are not built."""
        if (key, value) not in self._having:
            told = {n: getattr(e, key) if isinstance(e, FactSpec) else e.get(key) for n, e in self._entries.items()}
            self._having[key, value] = [self[name] for name, said in told.items() if said and value in (None, said)]
        return list(self._having[key, value])

    def former(self, name: str) -> list[str]:
        """The names that a fact had before."""
        if self._former is None:
            self._former = {}
            for old, entry in self._entries.items():
                new = entry.replaced_by if isinstance(entry, FactSpec) else entry.get("replaced_by", "")
                self._former.setdefault(new, []).append(old)
        return self._former.get(name, []) if name else []

    def nearest(self, name: str) -> str:
        """The closest existing name, or an empty string."""
        import difflib

        close = difflib.get_close_matches(name, self._entries, n=1, cutoff=0.5)
        return close[0] if close else ""


@cache
def vocabulary() -> Vocabulary:
    """The shipped vocabulary. FaultsError when a data file is wrong."""
    from knowledge.compiled import shard

    return Vocabulary({data["name"]: data for data in shard("facts")})
