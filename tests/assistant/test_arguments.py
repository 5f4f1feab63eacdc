"""What is said of arguments that are wrong: by the parser that they were meant for, with the nearest that it takes."""

from __future__ import annotations

import argparse

import pytest

from assistant.arguments import Parser, command_parser
from assistant.cli import load, load_all
from knowledge.errors import UsageError
from tests.cases import each


def refused(words: str) -> str:
    """The complaint about a command line."""
    name, *rest = words.split()
    with pytest.raises(UsageError) as error:
        command_parser(load(name)).parse_args(rest)
    return str(error.value)


def actions(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The actions of a command, and theirs."""
    tables = (a.choices for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return {name: child for table in tables for name, child in table.items()}


PARSERS = {command.NAME: command_parser(command) for command in load_all()}
WITH_ACTIONS = sorted((name, action) for name, parser in PARSERS.items() for action in actions(parser))


@each(("name", "action"), WITH_ACTIONS, ids=str)
def test_every_misspelt_action_is_recognised(name: str, action: str) -> None:
    wrong = action + "x"
    said = refused(f"{name} {wrong}")
    assert said.startswith(f"{name}: there is no action {wrong!r}\n")
    assert "invalid choice" not in said
    near = said.partition("did you mean ")[2].partition("?")[0].split(", ")
    assert action in near


@pytest.mark.slow
@each(("name", "action"), WITH_ACTIONS, ids=str)
def test_a_misspelt_flag_of_an_action_suggests_its_own(name: str, action: str) -> None:
    """The complaint is that action's, and no flag of another one is in it."""
    child = actions(PARSERS[name])[action]
    own = {flag for a in child._actions for flag in a.option_strings}
    others = {f for c in actions(PARSERS[name]).values() for a in c._actions for f in a.option_strings} - own
    wrong = [f"{flag}x" for flag in sorted(own) if len(flag) > 4 and f"{flag}x" not in own]
    for flag in (*wrong, *(o for o in sorted(others) if o.startswith("--"))):
        said = refused(f"{name} {action} {flag} 1")
        assert said.startswith(f"{name} {action}: unrecognized arguments: {flag}\n")
        hint = said.partition("\n")[2].replace(",", " ").replace("?", " ").split()
        assert not others & set(hint)
        if flag in wrong:
            assert flag[:-1] in hint


@each(
    ("words", "said"),
    [
        ("incident shw", "incident: there is no action 'shw'\n  did you mean show? (see gpudiag incident --help)"),
        ("runbook lst", "runbook: there is no action 'lst'\n  did you mean list? (see gpudiag runbook --help)"),
        ("config hst", "config: there is no action 'hst'\n  did you mean hosts? (see gpudiag config --help)"),
        ("completion fish", "completion: there is no shell 'fish'\n  allowed: bash, tcsh, zsh"),
        ("check --format jsn", "check: --format does not take 'jsn'\n  did you mean json?"),
        ("incident note --byy x 3", "incident note: unrecognized arguments: --byy\n  did you mean --by?"),
        ("incident --byy x note 3", "incident: unrecognized arguments: --byy\n"),
        ("incident --by x note 3", "it stands behind its action: open, note, step, change, close"),
        ("incident note three hot", "incident note: argument NUMBER: 'three' is no valid whole number"),
        ("history --lang fr list", "history: --lang does not take 'fr'\n  allowed: en, zh"),
        ("trace summary --byy=name x", "trace summary: unrecognized arguments: --byy"),
    ],
)
def test_what_is_said(words: str, said: str) -> None:
    assert said in refused(words)


def test_what_is_right_is_read_as_before() -> None:
    note = command_parser(load("incident")).parse_args(["note", "3", "--by", "me", "too", "hot"])
    assert (note.action, note.number, note.by, note.words) == ("note", 3, "me", ["too", "hot"])
    dashed = command_parser(load("incident")).parse_args(["note", "3", "--", "--by", "-x"])
    assert dashed.words == ["--by", "-x"]
    behind = Parser(prog="gpudiag x")
    behind.add_argument("files", nargs="*")
    behind.add_argument("--top")
    assert behind.parse_args(["a", "--top", "3", "b", "-"]).files == ["a", "b", "-"]
