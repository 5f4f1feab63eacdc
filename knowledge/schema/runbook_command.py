"""What is wrong with a command of a runbook: it is one argument list, with placeholders of the known names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from knowledge.errors import nearest_hint
from knowledge.runbook import PLACEHOLDERS


def command_faults(command: str) -> Iterator[tuple[str, str]]:
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
