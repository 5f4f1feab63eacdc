"""Shape of ``knowledge/runbooks/*.md`` and everything that is checked when they are read.

The front matter is checked by `Entry`. What needs more than one value (duplicate step ids,
consent against risk, targets of ``on_failure``, commands) is checked on the plain data, so
that one broken value never hides another fault. All faults come with their place in the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, Field

from knowledge import compiled, yamlfile
from knowledge.errors import Fault, nearest_hint
from knowledge.record import dataclass
from knowledge.runbook import END, Consent, Risk
from knowledge.schema import Strict
from knowledge.schema.runbook_body import Body
from knowledge.schema.runbook_command import command_faults
from knowledge.schema.runbook_flow import NOWHERE, Leads, check_flow, round_trip
from knowledge.units import parse_duration

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
# What a runbook is about: a code of the driver, or the area of a rule.
_TOPIC = re.compile(r"s?xid [0-9]{1,5}|[a-z][a-z0-9]*([.-][a-z0-9]+)*")
_HAN = re.compile("[\u4e00-\u9fff]")


def _english(text: str) -> str:
    if not text.strip():
        raise ValueError("the English text is empty")
    if _HAN.search(text):
        raise ValueError("the English text holds Chinese characters")
    return text


def _chinese(text: str) -> str:
    if not text.strip():
        raise ValueError("the Chinese text is empty")
    if not _HAN.search(text):
        raise ValueError("the Chinese text holds no Chinese characters")
    return text


def _id(text: str) -> str:
    if not _ID.fullmatch(text):
        raise ValueError("an id is lower-case words joined by hyphens")
    return text


def _topic(text: str) -> str:
    if not _TOPIC.fullmatch(text):
        raise ValueError("a topic is 'xid N', 'sxid N' or a lower-case area")
    return text


def _url(text: str) -> str:
    if not re.fullmatch(r"https://\S+", text):
        raise ValueError("a reference is one https address")
    return text


def _duration(text: str) -> str:
    length = parse_duration(text)
    if not 0 < length <= LONGEST:
        raise ValueError("a length of time is above nothing and a day at most")
    return text


Id = Annotated[str, AfterValidator(_id)]
Duration = Annotated[str, AfterValidator(_duration)]
LONGEST = 86_400 * 10**9  # ns: what takes longer than a day is no step that somebody waits for
ROUNDS = 1000  # of a loop

Path_: TypeAlias = tuple[str | int, ...]
Report: TypeAlias = Callable[[Path_, str, str], None]


@dataclass(frozen=True, slots=True)
class Checks:
    """What this layer cannot know, handed in from above."""

    condition: Callable[[Any, bool, Report], None]
    """Reports the faults of a condition, by paths within it; True: a probe must be able to tell it again."""
    probes: Collection[str]
    """Names of all probes."""


class Sentence(Strict):
    """One text in both languages, neither empty, each in its own script."""

    en: Annotated[str, AfterValidator(_english)]
    zh: Annotated[str, AfterValidator(_chinese)]


class RepeatEntry(Strict):
    """A loop within a step; see `knowledge.runbook.Repeat`."""

    until: dict[str, Any]
    at_most: int = Field(ge=1, le=ROUNDS)
    every: Duration


class StepEntry(Strict):
    """One step; see `knowledge.runbook.Step` for the meaning of each key."""

    id: Id
    title: Sentence
    do: Sentence
    command: str | None = None
    risk: Risk = Field(strict=False)
    consent: Consent = Field(strict=False)
    when: Sentence | None = None
    verify: Sentence | None = None
    verify_command: str | None = None
    on_failure: Id | None = None
    only_if: dict[str, Any] | None = Field(default=None, alias="if")
    verify_if: dict[str, Any] | None = None
    verify_with: list[str] | None = Field(default=None, min_length=1)
    repeat: RepeatEntry | None = None
    timeout: Duration | None = None
    next: Id | None = None


class Entry(Strict):
    """The front matter of one runbook; see `knowledge.runbook.Runbook`."""

    id: Id
    title: Sentence
    applies: list[Annotated[str, AfterValidator(_topic)]] = Field(min_length=1)
    summary: Sentence
    steps: list[StepEntry] = Field(min_length=1)
    references: list[Annotated[str, AfterValidator(_url)]] = Field(min_length=1)


def read(
    text: str, file: str, known: frozenset[str], checks: Checks | None = None, leads: Leads = NOWHERE
) -> tuple[dict[str, Any], list[Fault]]:
    """One runbook as plain data, and its faults; `known` holds the ids of all runbooks, `leads` to which each leads.

    The data can be used only when there are no faults.
    """
    lines = text.splitlines()
    end = _front_matter_end(lines)
    if end is None:
        return {}, [Fault(file, 1, 1, "a runbook starts with front matter between two lines '---'")]
    # The opening line becomes an empty one, so that marks are lines of the whole file.
    document = yamlfile.parse("\n".join(["", *lines[1:end]]) + "\n", file)
    data = document.data
    if document.faults and data is None:
        return {}, document.faults
    if not isinstance(data, dict):
        document.fault((), "the front matter holds keys and values")
        return {}, document.faults
    compiled.check(document, (), data, Entry)
    _check_names(document, data, Path(file).stem, known)
    for index, step in enumerate(_steps(data)):
        _check_step(document, index, step)
        if checks is not None:
            _check_conditions(document, index, step, checks)
    check_flow(document, _steps(data))
    for index, step in enumerate(_steps(data)):
        if way := round_trip(Path(file).stem, step.get("on_failure"), leads):
            document.fault(("steps", index, "on_failure"), f"on_failure goes round in a circle: {' -> '.join(way)}")
    body = Body(file, lines, end + 1)
    body.check(command for step in _steps(data) for _, command in _commands(step))
    return {**data, "body": body.texts}, [*document.faults, *body.faults]


def _front_matter_end(lines: list[str]) -> int | None:
    """Index of the line that closes the front matter."""
    if not lines or lines[0].rstrip() != "---":
        return None
    return next((index for index, line in enumerate(lines) if index and line.rstrip() == "---"), None)


def _steps(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The steps; one that is no mapping (a fault of the shape) counts as empty, so that places stay right."""
    steps = data.get("steps")
    return [step if isinstance(step, dict) else {} for step in steps] if isinstance(steps, list) else []


def _commands(step: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The commands of a step that are text, with their keys."""
    for key in ("command", "verify_command"):
        if isinstance(step.get(key), str):
            yield key, step[key]


def _check_names(document: yamlfile.Document, data: dict[str, Any], stem: str, known: frozenset[str]) -> None:
    """Ids: the file name, no step twice, no step called like a runbook, every ``on_failure`` leads on."""
    if isinstance(data.get("id"), str) and data["id"] != stem:
        document.fault(("id",), f"id {data['id']!r} is not the file name {stem!r}")
    ids = [step.get("id") for step in _steps(data)]
    for index, (step, name) in enumerate(zip(_steps(data), ids, strict=True)):
        if isinstance(name, str):
            if name in ids[:index]:
                document.fault(("steps", index, "id"), f"step {name!r} stands twice")
            if name in known:
                document.fault(("steps", index, "id"), f"step {name!r} has the name of a runbook")
        if name == END:
            document.fault(("steps", index, "id"), f"no step is called {END}: next says it where the walk is over")
        _check_branch(document, index, step.get("on_failure"), ids, stem, known, "on_failure")
        _check_branch(document, index, step.get("next"), ids, stem, frozenset({END}), "next")


def _check_branch(
    document: yamlfile.Document,
    index: int,
    target: object,
    ids: list[object],
    stem: str,
    known: frozenset[str],
    key: str,
) -> None:
    """A branch leads down the page or (`known`) elsewhere: so no walk goes round."""
    if not isinstance(target, str):
        return
    place = ("steps", index, key)
    later = {each for each in ids[index + 1 :] if isinstance(each, str)}
    goal = "a later step or another runbook" if key == "on_failure" else f"a later step, or {END}"
    if target == stem or (target in ids and target not in later):
        loop = "a loop is written repeat: {until, at_most, every}"
        document.fault(place, f"{key} {target!r} leads back: it names {goal}", loop)
    elif target not in later and target not in known:
        document.fault(place, f"{key} {target!r} leads nowhere", nearest_hint(target, later | known))


def _check_step(document: yamlfile.Document, index: int, step: dict[str, Any]) -> None:
    """Consent against risk, and the commands."""
    place = ("steps", index)
    if step.get("risk") in (Risk.DISRUPTIVE, Risk.DESTRUCTIVE) and step.get("consent") == Consent.NONE:
        document.fault((*place, "consent"), f"a {step['risk']} step needs consent: operator or owner")
    if step.get("verify_command") and not step.get("verify"):
        document.fault((*place, "verify_command"), "verify_command without verify: say what to look for")
    shown = step.get("verify") or step.get("verify_if") or step.get("verify_command")
    if step.get("risk") == Risk.DISRUPTIVE and step.get("command") and not shown:
        document.fault((*place, "risk"), "a disruptive step without verify: say how to see that it worked")
    if step.get("verify_with") and not step.get("verify_if"):
        document.fault((*place, "verify_with"), "verify_with without verify_if: nothing asks for what they tell")
    if step.get("timeout") and not step.get("command"):
        document.fault((*place, "timeout"), "timeout without command: there is nothing that could take too long")
    if isinstance(step.get("repeat"), dict) and "at_most" not in step["repeat"]:
        document.fault((*place, "repeat"), "a loop without a bound", f"at_most: 1 to {ROUNDS}")
    for key, command in _commands(step):
        for message, hint in command_faults(command):
            document.fault((*place, key), f"{key}: {message}", hint)


def _check_conditions(document: yamlfile.Document, index: int, step: dict[str, Any], checks: Checks) -> None:
    """Conditions and probes, by what the layers above know of them."""
    repeat = step.get("repeat")
    until = repeat.get("until") if isinstance(repeat, dict) else None
    for keys, tree, again in (
        (("if",), step.get("if"), False),
        (("verify_if",), step.get("verify_if"), True),
        (("repeat", "until"), until, True),
    ):
        if isinstance(tree, dict):

            def report(path: Path_, message: str, hint: str, at: Path_ = ("steps", index, *keys)) -> None:
                document.fault((*at, *path), message, hint)

            checks.condition(tree, again, report)
    probes = step.get("verify_with")
    for n, name in enumerate(probes if isinstance(probes, list) else ()):
        if isinstance(name, str) and name not in checks.probes:
            document.fault(("steps", index, "verify_with", n), f"no probe {name!r}", nearest_hint(name, checks.probes))
