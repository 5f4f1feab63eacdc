"""Runbooks: what to do about a finding, step by step, for people and for `assistant.actions`.

One file is ``knowledge/runbooks/<id>.md``: YAML front matter (the steps: the truth that a
machine reads) and a body with the sections ``## English`` and ``## 中文`` (half a screen
each: what you see, what it means, why these steps, common mistakes).

A step may say when it applies and how it is verified in conditions on facts, as in rules; they are kept
here as plain data: what they mean is known above (`assistant.runbooks`). A branch leads down the page only,
a loop stands within one step and is bounded: so every walk ends.

A command is one argument list: it is shown to people, and split with `shlex` to be run, so it
needs no shell. The rare one that does is written ``sh -c '...'`` and takes no placeholders.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from knowledge import compiled
from knowledge.errors import Fault, FaultsError, UnknownNameError
from knowledge.language import Text
from knowledge.placeholders import PLACEHOLDERS, Placeholder, fill, placeholders, ready
from knowledge.record import dataclass
from knowledge.units import parse_duration

if TYPE_CHECKING:
    from knowledge.schema.runbook import Checks

__all__ = [
    "END", "FOLDER", "PLACEHOLDERS", "SECTIONS", "Consent", "Placeholder", "Repeat", "Risk", "Runbook", "Step", "Tree", "about",
    "all_runbooks", "build_all", "fill", "folders", "lay_over", "lint", "placeholders", "ready", "runbook", "site_faults",
]  # fmt: skip

FOLDER = compiled.ROOT / "runbooks"
NO_TEXT = Text("")
END = "end"
"""What ``next`` says where the walk is over."""
Tree: TypeAlias = Mapping[str, Any]
"""A condition as it stands in the file: ``{fact: gpu.row_remap.pending, op: is, value: true}``."""
SECTIONS = {"en": "## English", "zh": "## 中文"}


class Risk(StrEnum):
    """What a step can cost."""

    SAFE = "safe"
    """Reads, or writes files of its own; running work does not notice."""
    DISRUPTIVE = "disruptive"
    """Running or coming work is slowed, moved, stopped from starting or interrupted; it can be put back."""
    DESTRUCTIVE = "destructive"
    """Something is lost for good: a process with its unsaved work, files, recorded counters."""


class Consent(StrEnum):
    """Who must agree before a step is run."""

    NONE = "none"
    """Nobody: only for safe steps."""
    OPERATOR = "operator"
    """Whoever runs the node."""
    OWNER = "owner"
    """Whoever owns the job or service that the step touches."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """A step that is done again until something holds."""

    until: Tree = field(hash=False)
    at_most: int
    every: int
    """ns between two rounds."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a runbook. Optional texts and commands are empty when a step has none."""

    id: str
    title: Text
    do: Text
    """What to do and why."""
    risk: Risk
    consent: Consent
    command: str = ""
    """One line with placeholders such as ``{node}``; see `fill`."""
    when: Text = NO_TEXT
    """When the step applies at all."""
    verify: Text = NO_TEXT
    """How to see that it worked."""
    verify_command: str = ""
    on_failure: str = ""
    """Where to go when it did not: a later step of this runbook, or another runbook."""
    only_if: Tree | None = field(default=None, hash=False)
    """``if``: the step is left out where this is false."""
    verify_if: Tree | None = field(default=None, hash=False)
    """What holds once it worked: looked at afresh after the step."""
    verify_with: tuple[str, ...] = ()
    """Probes that are run to see that; empty: the cheapest that tell its facts."""
    repeat: Repeat | None = None
    timeout: int = 0
    """ns that its command may take; 0: nothing is said."""
    next: str = ""
    """The step that follows where it worked, when it is not the next one on the page; `END`."""

    @property
    def bound(self) -> int:
        """How often it is done in one walk, at most."""
        return self.repeat.at_most if self.repeat is not None else 1


@dataclass(frozen=True, slots=True)
class Runbook:
    """One problem and what to do about it."""

    id: str
    title: Text
    summary: Text
    applies: tuple[str, ...]
    """Topics: ``xid 79``, ``sxid 12028``, or the area of a rule (``pcie``)."""
    steps: tuple[Step, ...]
    references: tuple[str, ...]
    body: Text
    """The page, Markdown, without a heading of its own."""
    file: str = ""
    """The file of a site's own runbook; empty for a shipped one."""
    replaces: bool = False
    """Whether there is a shipped one of the same id, which it stands in for."""

    def step(self, name: str) -> Step:
        """The step called `name`. Raises UnknownNameError with the nearest ids."""
        for step in self.steps:
            if step.id == name:
                return step
        raise UnknownNameError(f"step of runbook {self.id}", name, (step.id for step in self.steps), kind_zh="步骤")


def runbook(name: str) -> Runbook:
    """The runbook called `name`. Raises UnknownNameError with the nearest ids."""
    table = _table()
    if name not in table:
        raise UnknownNameError("runbook", name, table, kind_zh="处置手册")
    return table[name]


def all_runbooks() -> tuple[Runbook, ...]:
    """Every runbook, by id: the shipped ones and the site's."""
    return tuple(_table().values())


def about(topic: str) -> tuple[Runbook, ...]:
    """Runbooks whose `applies` holds `topic` (``xid 79``, ``pcie``), by id."""
    return tuple(found for found in all_runbooks() if topic in found.applies)


def build_all() -> list[dict[str, Any]]:
    """All shipped runbooks as plain data (the wheel's ``_compiled/runbooks.json``).

    Raises FaultsError with every fault of every file.
    """
    from knowledge.schema import runbook_files as schema

    entries, faults = schema.read_folder(FOLDER)
    if faults:
        raise FaultsError(faults)
    return entries


def lint(folder: Path = FOLDER, checks: Checks | None = None) -> list[Fault]:
    """All faults of the runbooks in `folder`, by place. A site's runbook may lead on to a shipped one.

    `checks`: what conditions and probes are, handed in from above; without it their shape alone is checked.
    """
    from knowledge.schema import runbook_files as schema

    shipped = (path.stem for path in FOLDER.glob("*.md"))
    return sorted(schema.read_folder(folder, shipped, checks)[1])


# --- a site's own -------------------------------------------------------------------------

_site: tuple[Path, ...] = ()


def lay_over(folders: Sequence[Path]) -> None:
    """From here on the runbooks of `folders` count too; the later folder wins, and each over a shipped one of its id.

    A setting of the process, told once when it starts (``runbook_dirs``).
    """
    global _site  # noqa: PLW0603 - every surface asks `runbook` by name; one setting a process
    _site = tuple(folders)
    _all.cache_clear()


def folders() -> tuple[Path, ...]:
    """Where runbooks are read from: the shipped ones, then the site's."""
    return (FOLDER, *_site)


def site_faults() -> tuple[Fault, ...]:
    """Why some of a site's runbooks do not count: a file with faults is left out whole."""
    return _all()[1]


@lru_cache(maxsize=1)
def _all() -> tuple[dict[str, Runbook], tuple[Fault, ...]]:
    shipped = _shipped()
    if not _site:
        return shipped, ()
    from knowledge.schema import runbook_files as schema

    found, faults = schema.read_site(_site, shipped)
    own = {name: replace(_runbook(data), file=file, replaces=name in shipped) for name, (file, data) in found.items()}
    return dict(sorted((shipped | own).items())), tuple(faults)


def _table() -> dict[str, Runbook]:
    return _all()[0]


@lru_cache(maxsize=1)
def _shipped() -> dict[str, Runbook]:
    shipped = compiled.SHIPPED / "runbooks.json"
    if shipped.is_file():
        entries = json.loads(shipped.read_bytes())
    else:
        code = [Path(__file__), *sorted((compiled.ROOT / "schema").glob("runbook*.py"))]
        entries = compiled.cached("runbooks", [*sorted(FOLDER.glob("*.md")), *code], build_all)
    return {entry["id"]: _runbook(entry) for entry in sorted(entries, key=lambda entry: str(entry["id"]))}


def _runbook(data: Mapping[str, Any]) -> Runbook:
    return Runbook(
        id=data["id"],
        title=Text.of(data["title"]),
        summary=Text.of(data["summary"]),
        applies=tuple(data["applies"]),
        steps=tuple(_step(step) for step in data["steps"]),
        references=tuple(data["references"]),
        body=Text.of(data["body"]),
    )


def _step(data: Mapping[str, Any]) -> Step:
    return Step(
        id=data["id"],
        title=Text.of(data["title"]),
        do=Text.of(data["do"]),
        risk=Risk(data["risk"]),
        consent=Consent(data["consent"]),
        command=data.get("command") or "",
        when=Text.of(data.get("when")),
        verify=Text.of(data.get("verify")),
        verify_command=data.get("verify_command") or "",
        on_failure=data.get("on_failure") or "",
        only_if=data.get("if"),
        verify_if=data.get("verify_if"),
        verify_with=tuple(data.get("verify_with") or ()),
        repeat=_repeat(data.get("repeat")),
        timeout=parse_duration(data["timeout"]) if data.get("timeout") else 0,
        next=data.get("next") or "",
    )


def _repeat(data: Mapping[str, Any] | None) -> Repeat | None:
    return Repeat(data["until"], data["at_most"], parse_duration(data["every"])) if data else None
