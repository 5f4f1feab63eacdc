"""Undocumented is broken: the generated reference is up to date and complete, and the pages link to what exists."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from assistant import reference
from assistant.cli import command_modules
from assistant.commands import demo
from assistant.config import OPTIONS
from assistant.exits import Exit
from knowledge.facts import vocabulary
from rules.loader import load
from tests.conftest import Gpudiag

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def test_the_reference_is_up_to_date() -> None:
    stale = reference.out_of_date(reference.build())
    assert stale == [], "run make docs"


def page(name: str) -> str:
    return (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8")


def test_everything_is_documented() -> None:
    commands, facts, rules = page("commands.md"), page("facts.md"), page("rules.md")
    for name in command_modules():
        assert f"## gpudiag {name}\n" in commands
    for spec in vocabulary():
        assert f"| `{spec.name}` |" in facts
    for rule in load().rules:
        assert f"| `{rule.id}` |" in rules
    for code in Exit:
        assert f"| {int(code)} | {code.name} |" in page("exit-codes.md")
    for option in OPTIONS:
        assert f"| `{option.key}` | `{option.variable}` |" in page("configuration.md")


def test_a_stale_page_is_noticed() -> None:
    pages = reference.build()
    changed = pages | {"exit-codes.md": pages["exit-codes.md"].replace("| 0 |", "| 9 |")}
    assert [f.file for f in reference.out_of_date(changed)] == ["docs/reference/exit-codes.md"]
    missing = {k: v for k, v in pages.items() if k != "facts.md"}
    assert [f.file for f in reference.out_of_date(missing)] == ["docs/reference/facts.md"]


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_within_the_repository_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), target


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_in_the_pages_exist(path: Path) -> None:
    known = {*command_modules(), "conversation"}  # the first line of a recorded one
    text = path.read_text(encoding="utf-8")
    shown = [*re.findall(r"```.*?```", text, re.DOTALL), *re.findall(r"`[^`\n]+`", text)]  # code, not prose
    for name in re.findall(r"(?<![\w/.-])gpudiag ([a-z][a-z-]*)", "\n".join(shown)):
        assert name in known, name


def test_the_exchange_in_the_readme_is_what_the_program_prints(gpudiag: Gpudiag) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert reference.readme() == text, "run make docs"
    shown = re.search(r"```console\n\$ gpudiag (check .*?)\n(.*?)```", text, re.DOTALL)
    assert shown is not None
    folder = ROOT / "assistant" / "demos" / demo.FIRST
    real = gpudiag(*shlex.split(shown[1]), cwd=folder).out
    assert real.startswith(shown[2])
    assert real[len(shown[2]) :].count("\n") <= 2  # only the line about the rule set is left out


def test_the_conversation_in_the_readme_is_one_that_was_held() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"```console\n\$ gpudiag chat[^\n]*\n(.*?)```", text, re.DOTALL)
    assert block is not None
    story = (ROOT / "tests" / "stories" / "lost-gpu.txt").read_text(encoding="utf-8")
    pieces = [piece.strip("\n") for piece in block[1].split("\n...\n")]
    assert len([piece for piece in pieces if piece.startswith("> ")]) >= 4
    for piece in filter(None, pieces):
        assert piece in story, piece
