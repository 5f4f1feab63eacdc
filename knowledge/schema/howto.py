"""Shape of ``knowledge/data/howto.yaml``."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from knowledge.runbook import PLACEHOLDERS, placeholders
from knowledge.schema import Strict
from knowledge.schema.glossary import Bilingual, Line, Sourced


class Phrases(Strict):
    """What people say, per language."""

    en: list[Line] = Field(min_length=1)
    zh: list[Line] = Field(min_length=1)


class Command(Strict):
    """A line to type; placeholders are those of runbooks."""

    command: Line | None = None

    @field_validator("command")
    @classmethod
    def _known(cls, command: str | None) -> str | None:
        for name in placeholders(command or ""):
            if name not in PLACEHOLDERS:
                raise ValueError(f"{{{name}}} is no placeholder of runbooks: {', '.join(PLACEHOLDERS)}")
        return command


class Step(Command):
    """One thing to do."""

    do: Bilingual
    risk: Literal["safe", "disruptive", "destructive"] = "safe"
    note: Bilingual | None = None


class Verify(Command):
    """How to see that it worked."""

    see: Bilingual


class Does(Strict):
    """What a task does to what, by the words of ``tasks.yaml``: any of the verbs, and all of the things."""

    verb: list[str] = Field(min_length=1)
    thing: list[str] = Field(min_length=1)

    @model_validator(mode="after")
    def _known(self) -> Self:
        from knowledge.compiled import shard

        known = {(e["kind"], e["id"]) for e in shard("tasks")}
        for kind, names in (("verb", self.verb), ("thing", self.thing)):
            for name in names:
                if (kind, name) not in known:
                    raise ValueError(f"{name!r} is no {kind} of tasks.yaml")
        return self


class Entry(Sourced):
    """One task; see `knowledge.howto.Howto`."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    title: Bilingual
    ask: Phrases
    does: list[Does] = []  # by which it is found however a sentence puts them together
    about: Bilingual  # the answer in one sentence
    steps: list[Step] = Field(min_length=1)
    verify: Verify | None = None
    runbook: str = ""  # the full procedure, where one exists

    @model_validator(mode="after")
    def _runbook_exists(self) -> Self:
        from knowledge.runbook import FOLDER

        if self.runbook and not (FOLDER / f"{self.runbook}.md").is_file():
            raise ValueError(f"there is no runbook {self.runbook!r}")
        return self
