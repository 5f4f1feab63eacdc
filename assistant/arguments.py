"""Argument parsers: one command's own, and the whole tree for help, completion and the reference."""

from __future__ import annotations

import argparse
import itertools
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from assistant.render.cells import terminal_width
from knowledge.errors import UsageError, nearest_hint

if TYPE_CHECKING:
    from assistant.cli import Command

DESCRIPTION = "Tells what is wrong with a GPU node or job, with the evidence under each sentence."

_INVALID = re.compile(r"invalid (.+) value: (.*)", re.DOTALL)  # argparse names the type ahead of the value
_BEHIND = ("files", "machines")  # operands that may stand behind flags
_PLAIN = {"int": "whole number", "float": "number"}


class _Formatter(argparse.HelpFormatter):
    """Help as wide as answers are. Told the width, argparse does not load `shutil` to find it out."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=terminal_width())


class Parser(argparse.ArgumentParser):
    """Complains by raising UsageError, with the nearest names; abbreviations of flags are not guessed."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        kwargs.setdefault("allow_abbrev", False)
        kwargs.setdefault("formatter_class", _Formatter)
        self._words: list[str] = []
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]  # handed through as they come

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does; files and machines also stand behind flags (before Python 3.12 argparse refuses them there)."""
        self._words = list(args or ())
        found, rest = self.parse_known_args(args, namespace)
        operands = next((name for name in _BEHIND if isinstance(getattr(found, name, None), list)), "")
        if operands and all(w == "-" or w[:1] != "-" for w in rest):
            setattr(found, operands, [*getattr(found, operands), *rest])
        elif rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return found

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the whole usage."""
        message = _INVALID.sub(lambda m: f"{m[2]} is no valid {_PLAIN.get(m[1], m[1])}", message)
        if strange := self._misspelt():  # argparse complains of the value, which it takes for an operand
            message = f"unrecognized arguments: {strange}"
        wrong = message.partition("unrecognized arguments: ")[2].split(" ")[0].split("=")[0]
        flags = [flag for action in _every(self) for flag in action.option_strings if flag.startswith("--")]
        hint = nearest_hint(wrong, flags) if wrong.startswith("-") else ""
        more = f"see {self.prog} --help"
        raise UsageError(f"{self.prog.removeprefix('gpudiag ')}: {message}", hint=f"{hint} ({more})" if hint else more)

    def _misspelt(self) -> str:
        """The first long flag that was given and is none; empty when all are known."""
        known = {flag for action in _every(self) for flag in action.option_strings}
        given = (w.partition("=")[0] for w in itertools.takewhile(lambda w: w != "--", self._words) if w[:2] == "--")
        return next((flag for flag in given if flag not in known), "")


def _every(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The options of a parser and of its actions: a misspelt one of an action is complained of by the whole."""
    children = [c for a in parser._actions if isinstance(a, argparse._SubParsersAction) for c in a.choices.values()]
    return [*parser._actions, *(action for child in children for action in child._actions)]


def rows(text: str) -> int:
    """How many rows to show: 1 or more."""
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


rows.__name__ = "number of rows"  # argparse names the type in its complaint


def add_globals(parser: argparse.ArgumentParser, nested: bool = False) -> None:
    """Flags that every command takes, before or after its name and its actions.

    A `nested` parser writes nothing for a flag that is absent, so that it keeps what an outer one read.
    """
    absent: dict[str, Any] = {"default": argparse.SUPPRESS} if nested else {}
    add = parser.add_argument_group("output").add_argument
    add("--format", choices=("text", "json", "markdown", "html"), help="shape of the answer on stdout", **absent)
    add("--lang", choices=("en", "zh"), help="language of the answer", **absent)
    add("--color", choices=("auto", "always", "never"), help="colour of text answers", **absent)
    add("-q", "--quiet", action="store_true", help="nothing on stderr but errors", **absent)


def _fill(parser: argparse.ArgumentParser, command: Command, nested: bool) -> None:
    command.add_arguments(parser)
    add_globals(parser, nested)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                add_globals(child, nested=True)


def command_parser(command: Command) -> Parser:
    """The parser of one command."""
    parser = Parser(prog=f"gpudiag {command.NAME}", description=command.HELP)
    _fill(parser, command, nested=False)
    return parser


def full_parser(commands: Iterable[Command]) -> Parser:
    """All commands under one parser."""
    parser = Parser(prog="gpudiag", description=DESCRIPTION)
    parser.add_argument("-V", "--version", action="store_true", help="print the version")
    add_globals(parser)
    children = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in commands:
        _fill(children.add_parser(command.NAME, help=command.HELP, description=command.HELP), command, nested=True)
    return parser
