"""Shape of ``knowledge/runbooks/*.md`` and everything that is checked when they are read.

The front matter is checked by `Entry`. What needs more than one value (duplicate step ids,
consent against risk, targets of ``on_failure``, commands) is checked on the plain data, so
that one broken value never hides another fault. All faults come with their place in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from knowledge import compiled, yamlfile
from knowledge.errors import Fault, nearest_hint
from knowledge.runbook import PLACEHOLDERS, SECTIONS, Consent, Risk
from knowledge.schema import Strict

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


Id = Annotated[str, AfterValidator(_id)]


class Sentence(Strict):
    """One text in both languages, neither empty, each in its own script."""

    en: Annotated[str, AfterValidator(_english)]
    zh: Annotated[str, AfterValidator(_chinese)]


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


class Entry(Strict):
    """The front matter of one runbook; see `knowledge.runbook.Runbook`."""

    id: Id
    title: Sentence
    applies: list[Annotated[str, AfterValidator(_topic)]] = Field(min_length=1)
    summary: Sentence
    steps: list[StepEntry] = Field(min_length=1)
    references: list[Annotated[str, AfterValidator(_url)]] = Field(min_length=1)


def read_folder(folder: Path, elsewhere: Iterable[str] = ()) -> tuple[list[dict[str, Any]], list[Fault]]:
    """Every ``*.md`` of `folder` as plain data, and all faults.

    `elsewhere` holds ids of runbooks that do not stand in this folder but may be named by ``on_failure``.
    """
    paths = sorted(folder.glob("*.md"))
    known = frozenset(path.stem for path in paths) | frozenset(elsewhere)
    entries: list[dict[str, Any]] = []
    faults: list[Fault] = []
    for path in paths:
        inside = path.is_relative_to(compiled.ROOT.parent)
        shown = str(path.relative_to(compiled.ROOT.parent)) if inside else str(path)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            faults.append(Fault(shown, 1, 1, f"cannot be read: {error}"))
            continue
        entry, found = read(text, shown, known)
        faults.extend(found)
        entries.append(entry)
    return entries, faults


def read(text: str, file: str, known: frozenset[str]) -> tuple[dict[str, Any], list[Fault]]:
    """One runbook as plain data, and its faults; `known` holds the ids of all runbooks.

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
    body = _Body(file, lines, end + 1)
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
        target = step.get("on_failure")
        if not isinstance(target, str):
            continue
        place = ("steps", index, "on_failure")
        later = {each for each in ids[index + 1 :] if isinstance(each, str)}
        if target == stem or (target in ids and target not in later):
            document.fault(place, f"on_failure {target!r} leads back: it names a later step or another runbook")
        elif target not in later and target not in known:
            document.fault(place, f"on_failure {target!r} leads nowhere", nearest_hint(target, later | known))


def _check_step(document: yamlfile.Document, index: int, step: dict[str, Any]) -> None:
    """Consent against risk, and the commands."""
    place = ("steps", index)
    if step.get("risk") in (Risk.DISRUPTIVE, Risk.DESTRUCTIVE) and step.get("consent") == Consent.NONE:
        document.fault((*place, "consent"), f"a {step['risk']} step needs consent: operator or owner")
    if step.get("verify_command") and not step.get("verify"):
        document.fault((*place, "verify_command"), "verify_command without verify: say what to look for")
    for key, command in _commands(step):
        for message, hint in _command_faults(command):
            document.fault((*place, key), f"{key}: {message}", hint)


def _command_faults(command: str) -> Iterator[tuple[str, str]]:
    """What is wrong with a command: (message, hint)."""
    if not command.strip() or "\n" in command:
        yield "a command is one line", ""
        return
    if command.lstrip().startswith("{"):
        yield "the program itself cannot be a placeholder", ""
    unquoted, quoted, closed = _quoting(command)
    if not closed:
        yield "a quote is not closed", ""
    if found := sorted(set(re.findall(r"[|&;<>()$`*?\[\]~\\]", unquoted))):
        yield f"{' '.join(found)} needs a shell", "quote it, or write sh -c '...' without placeholders"
    for name in dict.fromkeys(re.findall(r"\{([^{}]*)\}", unquoted)):
        if name not in PLACEHOLDERS:
            yield f"unknown placeholder {{{name}}}", nearest_hint(name, PLACEHOLDERS)
    for name in dict.fromkeys(re.findall(r"\{([^{}]*)\}", quoted)):
        if name in PLACEHOLDERS:
            yield f"placeholder {{{name}}} stands inside quotes", "values are quoted when they are filled in"


def _quoting(command: str) -> tuple[str, str, bool]:
    """The characters outside quotes, those inside, and whether every quote is closed.

    Inside double quotes a shell still expands ``$`` and backticks: they count as outside.
    """
    outside: list[str] = []
    inside: list[str] = []
    quote = ""
    for char in command:
        if quote:
            if char == quote:
                quote = ""
            else:
                (outside if quote == '"' and char in "$`\\" else inside).append(char)
        elif char in "'\"":
            quote = char
        else:
            outside.append(char)
    return "".join(outside), "".join(inside), not quote


class _Body:
    """The Markdown below the front matter: exactly the two sections, prose only."""

    def __init__(self, file: str, lines: list[str], start: int) -> None:
        self.file = file
        self.start = start
        self.faults: list[Fault] = []
        self.sections: dict[str, tuple[int, list[str]]] = {}
        titles = {title: language for language, title in SECTIONS.items()}
        current: list[str] | None = None
        for number, line in enumerate(lines[start:], start=start + 1):
            if line.startswith("## "):
                current = []
                language = titles.get(line.rstrip())
                if language is None:
                    self._fault(number, f"unknown section {line.rstrip()!r}", f"allowed: {', '.join(titles)}")
                elif language in self.sections:
                    self._fault(number, f"section {line.rstrip()!r} stands twice")
                else:
                    self.sections[language] = (number, current)
            elif current is not None:
                current.append(line)
            elif line.strip():
                self._fault(number, "text before the first section")

    @property
    def texts(self) -> dict[str, str]:
        """The sections by language."""
        return {language: "\n".join(lines).strip() for language, (_, lines) in self.sections.items()}

    def check(self, commands: Iterable[str]) -> None:
        """Both sections are there and say something; no command is repeated in the prose."""
        commands = [command for command in commands if len(command.split()) > 1]
        for language, title in SECTIONS.items():
            if language not in self.sections:
                self._fault(self.start, f"section {title!r} is missing")
                continue
            number, lines = self.sections[language]
            if not any(line.strip() for line in lines):
                self._fault(number, f"section {title!r} is empty")
            for offset, line in enumerate(lines, start=number + 1):
                if line.lstrip().startswith("```") or any(command in line for command in commands):
                    self._fault(offset, "a command stands in the page; commands stand in steps only")

    def _fault(self, line: int, message: str, hint: str = "") -> None:
        self.faults.append(Fault(self.file, line, 1, message, hint))
