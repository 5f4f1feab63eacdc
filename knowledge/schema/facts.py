"""Shape of ``knowledge/data/facts/*.yaml``."""

from __future__ import annotations

import re
import string
from typing import Self

from pydantic import Field, field_validator, model_validator

from knowledge.facts import Kind, Type
from knowledge.observation import Scope
from knowledge.schema import Strict, Words
from knowledge.units import TIMES, parse_duration

_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)*")


class Entry(Strict):
    """One fact; see `knowledge.facts.FactSpec` for the meaning of each key."""

    name: str
    scope: Scope = Field(strict=False)
    type: Type = Field(strict=False)
    kind: Kind = Field(strict=False)
    unit: str = ""
    values: list[str] = []
    labels: dict[str, Words] = {}
    fields: dict[str, str] = {}
    which: list[Words] = []
    max_age: str | None = None
    meaning: Words
    says: Words
    ask: Words | None = None
    derived: bool = False
    derived_from: list[str] = []
    per_boot: bool = False
    replaced_by: str = ""

    @field_validator("name")
    @classmethod
    def _name(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError("a fact name is lower-case words joined by dots")
        return name

    @field_validator("max_age")
    @classmethod
    def _age(cls, age: str | None) -> str | None:
        if age is not None:
            parse_duration(age)
        return age

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.type is Type.EVENT) != (self.kind is Kind.EVENT):
            raise ValueError("type event goes with kind event")
        if (self.type is Type.SUBJECT) != (self.kind is Kind.RELATION):
            raise ValueError("type subject goes with kind relation")
        if self.type is Type.ENUM and not self.values:
            raise ValueError("an enum lists its values")
        if self.derived != bool(self.derived_from):
            raise ValueError("a derived fact names what it is derived_from, and only a derived one does")
        if self.fields and self.type is not Type.EVENT:
            raise ValueError("only events have fields")
        if bad := set(self.fields.values()) - {"bool", "int", "float", "str"}:
            raise ValueError(f"field types are bool, int, float, str; not {', '.join(sorted(bad))}")
        said = [("says", self.says, {"value", "size", "unit", "subject", "code", *self.fields})]
        said += [("which", part, set(self.fields)) for part in self.which]
        for key, text, allowed in said:
            for language in ("en", "zh"):
                for _, word, forms, _ in string.Formatter().parse(getattr(text, language)):
                    if word is not None and word not in allowed:
                        raise ValueError(f"{key}.{language} fills in {{{word}}}, which is not a field")
                    if forms and forms not in TIMES and forms.count("|") != 1:
                        raise ValueError(
                            f"{key}.{language} has {forms!r}: write {{{word}:one|many}}, or a unit of time ({', '.join(TIMES)})"
                        )
        if self.values and (bad := set(self.labels) - set(self.values)):
            raise ValueError(f"labels of what is no value: {', '.join(sorted(bad))}")
        if self.labels and not self.values and self.type is not Type.EVENT:
            raise ValueError("labels go with the values of an enum or set, or with the fields of an event")
        return self
