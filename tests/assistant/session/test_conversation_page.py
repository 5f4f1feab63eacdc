"""The page about conversations shows what the program really prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from assistant.commands.demo import FOLDER
from assistant.intent.parse import understand
from assistant.session.transcript import parse
from tests.conftest import ROOT, Gpudiag

PAGE = (ROOT / "docs" / "conversation.md").read_text(encoding="utf-8")
AGE = re.compile(r"\(\d+ days ago\)")  # of a recorded log: another one each day
DEMO = FOLDER / "double-bit-error"
EXCHANGES = [
    (command, shown)
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    for command, shown in re.findall(r"^\$ gpudiag (.*?)\n(.*?)(?=^\$ |\Z)", block, re.DOTALL | re.MULTILINE)
]


def test_there_is_something_to_check() -> None:
    assert len(EXCHANGES) >= 2
    assert all(shown.strip() for _, shown in EXCHANGES)


def test_the_exchanges_are_what_the_program_prints(gpudiag: Gpudiag, tmp_path: Path) -> None:
    """One after the other, as a reader would type them at one terminal. What the page leaves out stands as ``...``."""
    env = {"GPUDIAG_STATE_DIR": str(tmp_path), "GPUDIAG_HISTORY_URL": "off"}
    for command, shown in EXCHANGES:
        first, *more = shlex.split(command)
        named = ("--thread", "page") if first == "ask" else ()  # there is no terminal here
        answer = gpudiag(first, *named, *more, cwd=DEMO, env=env)
        rest = AGE.sub("(some days ago)", answer.err + answer.out)
        for part in re.split(r"^\.\.\.\n", AGE.sub("(some days ago)", shown).strip("\n") + "\n", flags=re.MULTILINE):
            at = rest.find(part)
            assert at >= 0, f"{command}: {part!r} is not in {rest!r}"
            rest = rest[at + len(part) :]


def test_the_transcript_is_one() -> None:
    (shown,) = re.findall(r"```text\n(# gpudiag conversation.*?)```", PAGE, re.DOTALL)
    assert parse(shown).turns


def rows(title: str) -> list[tuple[str, list[str]]]:
    """A table's first cells, and the sentences of each row."""
    section = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    found = re.findall(r"^\| (.*?) \| (.*) \|$", section, re.MULTILINE)
    return [(first, re.findall(r"`([^`]+)`", f"{first} {second.partition('; marked')[0]}")) for first, second in found]


KINDS = {
    "what is wrong": {"diagnose"}, "may it be used": {"verdict"}, "what something means": {"explain"},
    "what to do": {"fix", "runbook"}, "one value": {"probe"}, "what was before": {"history"}, "money": {"cost"},
}  # fmt: skip


def test_every_sentence_of_the_page_is_understood_as_it_says() -> None:
    asked = [(first, s) for first, sentences in rows("What can be asked") for s in sentences]
    assert {first for first, _ in asked} == set(KINDS)
    wrong = {s: str(understand(s).intent) for first, s in asked if understand(s).intent not in KINDS[first]}
    assert wrong == {}
    about = [s for _, sentences in rows("About traces") for s in sentences]
    assert len(about) > 8
    assert {s: str(understand(s).intent) for s in about if understand(s).intent in ("unknown", "help")} == {}
    follow = [s for first, sentences in rows("Going on") for s in sentences if not s.startswith(".")]
    assert len(follow) > 10
    assert {s: str(understand(s).intent) for s in follow if not understand(s).follows_up} == {}
