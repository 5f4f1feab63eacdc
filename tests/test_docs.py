"""Undocumented is broken: the generated reference is up to date and complete, and the pages link to what exists."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path

import pytest

from assistant import reference
from assistant.arguments import command_parser
from assistant.cli import command_modules, load_all
from assistant.commands import demo
from assistant.config import OPTIONS
from assistant.exits import Exit
from knowledge.advice import advice
from knowledge.facts import vocabulary
from knowledge.howto import howtos
from knowledge.language import Text
from knowledge.runbook import all_runbooks
from rules.loader import load
from tests.cases import timeless
from tests.conftest import Gpudiag

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@cache
def built() -> dict[str, str]:
    """Every page of the reference as it would be written now."""
    return reference.build()


def lines_with(pattern: str) -> Iterator[tuple[Path, int, str]]:
    """What the pattern finds, group by group, with page and line."""
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        for found in re.finditer(pattern, text, re.MULTILINE):
            yield path, text.count("\n", 0, found.start(1)) + 1, found[1]


# --- the reference ------------------------------------------------------------------------


def test_the_reference_is_up_to_date() -> None:
    """The only test that fails when a page was not written again."""
    if said := reference.stale(built()):
        pytest.fail(said, pytrace=False)


def test_everything_is_documented() -> None:
    pages = built()
    wanted = {
        "commands.md": [f"## gpudiag {name}\n" for name in command_modules()],
        "facts.md": [f"| `{spec.name}` |" for spec in vocabulary()],
        "rules.md": [f"| `{rule.id}` |" for rule in load().rules],
        "exit-codes.md": [f"| {int(code)} | {code.name} |" for code in Exit],
        "configuration.md": [f"| `{option.key}` | `{option.variable}` |" for option in OPTIONS],
    }
    assert [(page, words) for page, all_ in wanted.items() for words in all_ if words not in pages[page]] == []


def test_a_stale_page_is_noticed(tmp_path: Path) -> None:
    folder = tmp_path / "docs" / "reference"
    folder.mkdir(parents=True)
    for name, text in built().items():
        (folder / name).write_text(text, encoding="utf-8")
    (tmp_path / "README.md").write_text(f"# A\n\n{reference.transcript()}\n", encoding="utf-8")
    assert reference.stale(built(), tmp_path) == ""
    page = folder / "exit-codes.md"
    page.write_text(built()[page.name].replace("| 0 |", "| 9 |"), encoding="utf-8")
    (folder / "facts.md").unlink()
    (folder / "old.md").touch()
    (tmp_path / "README.md").write_text("# A\n\n```console\n$ gpudiag check\n```\n", encoding="utf-8")
    first = built()[page.name].split("\n").index(next(x for x in built()[page.name].split("\n") if "| 0 |" in x)) + 1
    assert reference.stale(built(), tmp_path).splitlines() == [
        f"docs/reference/exit-codes.md:{first}:1: out of date",
        "docs/reference/facts.md:1:1: out of date",
        "docs/reference/old.md:1:1: belongs to nothing",
        "README.md:3:1: the exchange is out of date",
        "4 out of date: run make docs",
    ]


# --- the pages ----------------------------------------------------------------------------


def test_links_within_the_repository_lead_somewhere() -> None:
    found = list(lines_with(r"\]\(([^)#\s]+)[^)]*\)"))
    lost = [f"{path.relative_to(ROOT)}:{line}: {target}" for path, line, target in found
            if "://" not in target and not (path.parent / target).exists()]  # fmt: skip
    assert found
    assert lost == []


def test_commands_in_the_pages_exist() -> None:
    known = {*command_modules(), "conversation"}  # the first line of a recorded one
    # A page that shows how to add a command has its file.
    taught = {(path, name) for path, _, name in lines_with(r"^`assistant/commands/(\w+)\.py`$")}
    code = r"(?s:```.*?```)|`[^`\n]+`"  # code, not prose
    found = [(path, line, name) for path, start, text in lines_with(f"({code})")
             for line, name in commands_in(text, start)]  # fmt: skip
    lost = [f"{path.relative_to(ROOT)}:{line}: gpudiag {name}" for path, line, name in found
            if name not in known and (path, name) not in taught]  # fmt: skip
    assert len(found) > 100
    assert lost == []


def commands_in(code: str, first: int) -> Iterator[tuple[int, str]]:
    """The commands that a piece of code names, with their lines."""
    for found in re.finditer(r"(?<![\w/.-])gpudiag ([a-z][a-z-]*)", code):
        yield first + code.count("\n", 0, found.start()), found[1]


VERBS = ("read", "reads", "sees")  # what gpudiag does, in a sentence
NAMED = re.compile(r"(?<![\w/.-])gpudiag ([a-z][a-z-]*)([^\n`，。；、;,()（）\u4e00-\u9fff]*)")


def advised(said: object) -> Iterator[str]:
    """The texts of an advice, a task or a runbook, in both languages, with its commands."""
    if isinstance(said, str):
        yield said
    elif isinstance(said, Text):
        yield from (said.en, said.zh)
    elif isinstance(said, tuple | list):
        for one in said:
            yield from advised(one)
    elif is_dataclass(said):
        for field in fields(said):
            if field.name not in ("sources", "see"):
                yield from advised(getattr(said, field.name))


def test_what_advice_tasks_and_runbooks_tell_to_run_is_taken_by_the_command_line() -> None:
    """Nobody at a node at night is sent to a command or a flag that is not there."""
    flags = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
    taken = {c.NAME: set(flags.findall(command_parser(c).format_help())) for c in load_all()}
    texts = [t for book in (advice().values(), howtos().values(), all_runbooks()) for one in book for t in advised(one)]
    told = [m for t in texts for m in NAMED.finditer(t) if m[1] not in VERBS]
    lost = [m[0] for m in told if m[1] not in taken or not taken[m[1]].issuperset(flags.findall(m[2]))]
    assert len(told) > 100
    assert lost == []


def test_the_exchange_of_the_readme_is_what_the_program_prints(gpudiag: Gpudiag) -> None:
    shown = re.fullmatch(r"```console\n\$ gpudiag (check .*?)\n(.*\n)```", reference.transcript(), re.DOTALL)
    assert shown is not None
    folder = ROOT / "assistant" / "demos" / demo.FIRST
    real = gpudiag(*shlex.split(shown[1]), cwd=folder).out
    real, shown_ = timeless(real), timeless(shown[2])
    assert real.startswith(shown_)
    assert real[len(shown_) :].count("\n") <= 2  # only the line about the rule set is left out


def test_the_conversation_in_the_readme_is_one_that_was_held() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"```console\n\$ gpudiag chat[^\n]*\n(.*?)```", text, re.DOTALL)
    assert block is not None
    story = (ROOT / "tests" / "stories" / "lost-gpu.txt").read_text(encoding="utf-8")
    pieces = [piece.strip("\n") for piece in block[1].split("\n...\n")]
    assert len([piece for piece in pieces if piece.startswith("> ")]) >= 4
    for piece in filter(None, pieces):
        assert piece in story, piece
