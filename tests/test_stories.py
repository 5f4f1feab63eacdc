"""Conversations from end to end: recorded machines and logs, real sentences, every answer compared word for word.

``python tests/test_stories.py`` holds all of them again and writes down what is answered now; read the difference.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from assistant.cli import main
from assistant.session.transcript import read
from tests.cases import each

STORIES = sorted((Path(__file__).parent / "stories").glob("*.txt"))


def test_there_are_stories_in_both_languages() -> None:
    said = [turn.text for story in STORIES for turn in read(str(story)).turns]
    assert len(STORIES) >= 12
    assert len(said) >= 80
    assert sum(any("\u4e00" <= c <= "\u9fff" for c in text) for text in said) >= 15


@pytest.mark.slow
@each("story", STORIES, ids=lambda p: p.stem)
def test_a_story_is_told_again_word_for_word(story: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["chat", "--replay", str(story)])
    assert code == 0, capsys.readouterr().out


def _again(story: Path) -> None:
    """Write a story anew: its head and its sentences stay, the answers are those of now."""
    kept = read(str(story))
    fresh = story.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    about = [
        word for key in ("bundle", "log", "input", "host") for value in kept.all(key) for word in (f"--{key}", value)
    ]
    said = "".join(f"```\n{t.text}\n```\n" if "\n" in t.text else f"{t.text}\n" for t in kept.turns)
    argv = ["--lang", kept.one("lang") or "en", "chat", "--record", fresh.name, *about]
    environment = {**os.environ, "COLUMNS": "100", "GPUDIAG_HOST_NAME": "desk"}
    root = Path(__file__).parent.parent
    subprocess.run(
        [sys.executable, "-m", "assistant", *argv], input=said, text=True, cwd=story.parent, check=True,
        env={**environment, "PYTHONPATH": str(root)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    fresh.replace(story)


if __name__ == "__main__":
    for path in STORIES:
        _again(path)
