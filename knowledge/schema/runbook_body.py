"""The page of a runbook below its front matter."""

from __future__ import annotations

from collections.abc import Iterable

from knowledge.errors import Fault
from knowledge.runbook import SECTIONS


class Body:
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
