"""Single readings out of a rule's plain data: a value, a duration, a count, a name, each checked where it stands."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias

from knowledge.errors import alike, nearest_hint
from knowledge.facts import FactSpec, Type, Vocabulary
from knowledge.observation import Scalar
from knowledge.record import dataclass
from knowledge.units import parse_duration
from rules.compare import version
from rules.condition import Op, Path, Quantifier

Report: TypeAlias = Callable[[Path, str, str], None]
UNRESOLVED: Any = object()  # the value of a parameter that does not exist, or has a fault of its own: that is told


@dataclass(slots=True)
class Reader:
    """Reads one thing at a time; every fault goes to `report`, with its path, and reading goes on."""

    vocabulary: Vocabulary
    params: Mapping[str, Any]
    report: Report
    used_params: set[str]
    broken: set[Path] = field(default_factory=set)  # where a value is not known because of a fault elsewhere
    partly: bool = False  # groups are kept without the parts that have a fault: for who checks, not for who evaluates

    def resolve(self, raw: Any, path: Path) -> Any:
        """`raw`, or the value of the parameter that ``$name`` stands for."""
        if isinstance(raw, str) and raw.startswith("$"):
            name = raw[1:]
            if name not in self.params:
                self.report(path, f"no parameter {name!r}", nearest_hint(name, self.params))
                return UNRESOLVED
            self.used_params.add(name)
            if self.params[name] is UNRESOLVED:
                self.broken.add(path)
            return self.params[name]
        return raw

    def value(self, raw: Any, type_: Type, op: Op, path: Path, spec: FactSpec) -> Scalar | tuple[Scalar, ...]:
        """A plain value, or for `in` and sets a list of them, checked against the type."""
        raw = self.resolve(raw, path)
        if raw is UNRESOLVED:
            return None
        if op in (Op.IN, Op.NOT_IN):
            if not isinstance(raw, list) or not raw:
                self.report(path, f"{op} takes a list", "")
                return ()
        elif not (type_ is Type.SET and isinstance(raw, list)):
            if op is Op.MATCHES:
                self._pattern(raw, path)
            if op in (Op.VERSION_BELOW, Op.VERSION_AT_LEAST) and isinstance(raw, str) and not version(raw):
                self.report(path, f"{raw!r} is not a version", "write 570.86.15")
            return self._scalar(raw, type_, path, spec)
        here = ((*path, i) for i in range(len(raw)))
        return tuple(self._scalar(self.resolve(item, at), type_, at, spec) for item, at in zip(raw, here, strict=True))

    def _scalar(self, raw: Any, type_: Type, path: Path, spec: FactSpec) -> Scalar:
        if raw is UNRESOLVED:
            return None
        good = {
            Type.BOOL: isinstance(raw, bool),
            Type.INT: isinstance(raw, int) and not isinstance(raw, bool),
            Type.FLOAT: (isinstance(raw, int) and not isinstance(raw, bool))
            or (isinstance(raw, float) and not math.isnan(raw)),
        }.get(type_, isinstance(raw, str))
        if not good:
            self.report(path, f"{raw!r} is not a {type_}", f"{spec.name} is in {spec.unit}" if spec.unit else "")
        elif spec.values and type_ in (Type.ENUM, Type.SET) and raw not in spec.values:
            self.report(path, f"{spec.name} is never {raw!r}", nearest_hint(str(raw), spec.values))
        return raw if isinstance(raw, bool | int | float | str) else None

    def _pattern(self, raw: Any, path: Path) -> None:
        import re2

        options = re2.Options()
        options.log_errors = False  # the library would write to stderr itself, beside the fault
        try:
            re2.compile(str(raw), options)
        except re2.error as error:
            self.report(path, f"not an RE2 pattern: {error}", "RE2 has no look-around and no back-references")

    def each(self, raw: Any, path: Path) -> Quantifier | None:
        """How many of several subjects; None when nothing is said."""
        raw = self.resolve(raw, path)
        if raw is None or raw is UNRESOLVED:
            return None
        if isinstance(raw, str) and raw in ("any", "all", "none"):
            return Quantifier(raw)
        if isinstance(raw, dict) and len(raw) == 1:
            ((kind, number),) = raw.items()
            number = self.resolve(number, path)
            if number is UNRESOLVED:
                return None
            number = -1 if isinstance(number, bool) or not isinstance(number, int | float) else number
            if (kind == "at_least" and number >= 1 and number % 1 == 0) or (kind == "share" and 0 < number <= 1):
                return Quantifier(kind, float(number))
        self.report(path, f"{raw!r} is not a quantifier", "any, all, none, {at_least: 2} or {share: 0.5}")
        return None

    def count(self, raw: Any, path: Path) -> tuple[int, int | None]:
        """The least and the most times that something happens."""
        if raw is None:
            return 1, None
        if not isinstance(raw, dict) or not raw or set(raw) - {"at_least", "at_most"}:
            self.report(path, "count takes at_least and at_most", "")
            return 1, None
        low, high = self.resolve(raw.get("at_least", 0), path), self.resolve(raw.get("at_most"), path)
        if UNRESOLVED in (low, high):
            return 1, None
        if any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in (low, 0 if high is None else high)):
            self.report(path, "a count is a whole number", "")
            return 1, None
        if high is None and low == 0:
            self.report(path, "at least 0 is always true", "")
        if high is not None and high < low:
            self.report(path, f"at least {low} and at most {high} is never true", "")
        return low, high

    def duration(self, plain: Mapping[str, Any], key: str, path: Path) -> int | None:
        """The length of time under `key` in ns; None when nothing is said."""
        raw = self.resolve(plain.get(key), (*path, key))
        if raw is None or raw is UNRESOLVED:
            return None
        try:
            length = parse_duration(str(raw))
        except ValueError as error:
            self.report((*path, key), str(error), "")
            return None
        if length == 0:
            self.report((*path, key), f"{key} is longer than nothing", "")
        return length

    def number(
        self,
        plain: Mapping[str, Any],
        key: str,
        path: Path,
        default: float,
        low: float,
        high: float,
        whole: bool = False,
    ) -> float:
        """The number under `key`, within `low` and `high`; the default after a fault."""
        raw = self.resolve(plain.get(key, default), (*path, key))
        if raw is UNRESOLVED:
            return default
        kind = int if whole else (int, float)
        if not isinstance(raw, bool) and isinstance(raw, kind) and low <= raw <= high:
            return float(raw)
        bounds = f" from {low:g} to {high:g}" if high != float("inf") else ""
        self.report((*path, key), f"{key} is a {'whole ' if whole else ''}number{bounds}, not {raw!r}", "")
        return default

    def listed(self, plain: Mapping[str, Any], key: str, path: Path) -> Sequence[Any]:
        """The list under `key`; empty when nothing is said."""
        raw = plain.get(key, ())
        if isinstance(raw, list | tuple):
            return raw
        self.report((*path, key), f"{key} takes a list", "")
        return ()

    def field(self, spec: FactSpec, name: Any, path: Path) -> str | None:
        """The type of an event's field."""
        if name == "code":
            return "int"
        if isinstance(name, str) and name in spec.fields:
            return spec.fields[name]
        self.report(path, f"event {spec.name} has no field {name!r}", nearest_hint(str(name), ["code", *spec.fields]))
        return None

    def fact(self, name: Any, path: Path) -> FactSpec | None:
        """The fact of this name."""
        spec = self.vocabulary.get(name) if isinstance(name, str) else None
        if spec is None:
            self.report(
                path, f"no fact {name!r} in the vocabulary", nearest_hint(str(name), (s.name for s in self.vocabulary))
            )
        elif spec.replaced_by:
            self.report(path, f"{name} is replaced by {spec.replaced_by}", "")
        return spec

    def word(self, kind: type[Any], raw: Any, path: Path, allowed: Sequence[Any] | set[Any] | frozenset[Any]) -> Any:
        """`raw` as one of the words of `kind` that may stand here; None after a fault."""
        try:
            word = kind(raw)
        except ValueError:
            word = None
        if word not in allowed:
            names = sorted(str(a) for a in allowed)
            self.report(
                path, f"{raw!r} cannot stand here", nearest_hint(str(raw), names) or f"allowed: {', '.join(names)}"
            )
            return None
        return word

    def lacking(
        self, plain: Mapping[str, Any], keys: Iterable[str], known: set[str], path: Path, message: str, hint: str = ""
    ) -> None:
        """Reports that keys are missing, unless a key that nobody reads looks like the missing one: that is told."""
        if any(key not in plain and not self.misspelt(plain, key, known) for key in keys):
            self.report(path, message, hint)

    def misspelt(self, plain: Mapping[str, Any], key: str, known: set[str]) -> bool:
        """Whether an unknown key looks like `key`, which is missing."""
        return key not in plain and any(k not in known and alike(k, key) for k in plain)

    def unknown_keys(self, plain: Mapping[str, Any], known: set[str], path: Path) -> None:
        """Reports keys that nobody reads, with the nearest one that somebody does."""
        for key in plain:
            if key not in known:
                self.report((*path, key), f"unknown key {key!r}", nearest_hint(key, known))
