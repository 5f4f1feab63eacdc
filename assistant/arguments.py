"""Argument parsers: one command's own, and the whole tree for help, completion and the reference."""

from __future__ import annotations

import argparse
import itertools
import math
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from assistant.render.cells import terminal_width
from knowledge.errors import UsageError, nearest_hint
from knowledge.lazy import lazy

if TYPE_CHECKING:
    from assistant.cli import Command

DESCRIPTION = "Tells what is wrong with a GPU node or job, with the evidence under each sentence."

N = TypeVar("N", int, float)
_INVALID = lazy(r"invalid (.+) value: (.*)", re.DOTALL)  # argparse names the type ahead of the value
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
        found, rest = self.parse_known_args(args, namespace)
        operands = next((name for name in _BEHIND if isinstance(getattr(found, name, None), list)), "")
        if operands and all(w == "-" or w[:1] != "-" for w in rest):
            setattr(found, operands, [*getattr(found, operands), *rest])
        elif rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return found

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does. A flag that an action does not take is complained of by that action, which knows its own."""
        self._words = list(args or ())
        found, rest = super().parse_known_args(args, namespace)
        if strange := [w for w in rest if w[:1] == "-" and w != "-"]:
            self.error(f"unrecognized arguments: {strange[0]}")
        return found, rest

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """A word that is none of those allowed: the nearest are named. argparse would list them all, or print their types."""
        if action.choices is None or value in action.choices:
            return
        if self._misspelt():  # the word is the value of a flag that there is not
            self.error("")
        known = [str(choice) for choice in action.choices]
        name = "/".join(action.option_strings)
        said = f"{name} does not take {value!r}" if name else f"there is no {action.dest} {value!r}"
        self._refuse(said, nearest_hint(str(value), known) or f"allowed: {', '.join(known)}")

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the whole usage."""
        message = _INVALID.sub(lambda m: f"{m[2]} is no valid {_PLAIN.get(m[1], m[1])}", message)
        if strange := self._misspelt():  # argparse complains of the value, which it takes for an operand
            message = f"unrecognized arguments: {strange}"
        wrong = message.partition("unrecognized arguments: ")[2].split(" ")[0].split("=")[0]
        self._refuse(message, self._flag_hint(wrong) if wrong.startswith("-") else "")

    def _refuse(self, message: str, hint: str) -> NoReturn:
        more = f"see {self.prog} --help"
        raise UsageError(f"{self.prog.removeprefix('gpudiag ')}: {message}", hint=f"{hint} ({more})" if hint else more)

    def _flag_hint(self, wrong: str) -> str:
        """What was meant by a flag that this parser does not take: one of its actions' own, or the nearest of its own."""
        takers = [name for name, child in _children(self) if wrong in _flags(child)]
        if takers:
            return f"it stands behind its action: {', '.join(takers)}"
        return nearest_hint(wrong, [flag for flag in _flags(self) if flag.startswith("--")])

    def _misspelt(self) -> str:
        """The first long flag that was given and is none of this parser's; empty when all are known. Words from an action on
        are for its parser."""
        actions, known = dict(_children(self)), _flags(self)
        given = itertools.takewhile(lambda w: w != "--" and w not in actions, self._words)
        return next((flag for w in given if w[:2] == "--" and (flag := w.partition("=")[0]) not in known), "")


def _children(parser: argparse.ArgumentParser) -> list[tuple[str, argparse.ArgumentParser]]:
    """The actions of a parser, and theirs."""
    tables = [a.choices for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    return [pair for table in tables for pair in table.items()]


def _flags(parser: argparse.ArgumentParser) -> frozenset[str]:
    return frozenset(flag for action in parser._actions for flag in action.option_strings)


def within(least: float, most: float, what: str, of: Callable[[str], N]) -> Callable[[str], N]:
    """What reads a number from `least` to `most`; ValueError for any other. `what`: its name in a complaint."""

    def read(text: str) -> N:
        value = of(text)
        if not least <= value <= most:
            raise ValueError(text)
        return value

    read.__name__ = what  # argparse names the type in its complaint
    return read


rows = within(1, math.inf, "number of rows", int)


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
