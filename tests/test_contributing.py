"""What CONTRIBUTING.md shows works as it stands there: a fact, a format, a probe, a rule, a command and a screen."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from assistant.exits import Exit
from tests.conftest import ROOT
from tests.overlay import checkout

pytestmark = pytest.mark.process
# A path on a line of its own, and the file below it.
SHOWN = re.compile(r"^`([\w/-]+\.\w+)`\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ZONES = """\
Node 0, zone      DMA      1      1      1      1      1      1      1      1      0      0      0
Node 0, zone   Normal   4381   2046    118     37      9      3      1      0      0      0      0
"""


def shown() -> dict[str, str]:
    """Path and text of each file."""
    return dict(SHOWN.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def came(tmp_path_factory: pytest.TempPathFactory, clean_environment: dict[str, str]) -> Any:
    """What came of running all of it, in a checkout with these files and no other rule."""
    folder = checkout(tmp_path_factory.mktemp("checkout"), without="rules/catalog")
    for path, text in shown().items():
        (folder / path).parent.mkdir(exist_ok=True)
        with (folder / path).open("x", encoding="utf-8") as file:
            file.write(text)
    root = tmp_path_factory.mktemp("machine")
    (root / "proc").mkdir()
    (root / "proc/buddyinfo").write_text(ZONES)
    env = clean_environment | {
        "PYTHONPATH": f"{folder}:{ROOT}",
        "GPUDIAG_HISTORY_URL": "off",
        "GPUDIAG_CACHE_DIR": str(root / "cache"),
    }
    argv = [sys.executable, "-m", "tests.smallest", str(root)]
    done = subprocess.run(argv, env=env, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_each_of_them_is_shown() -> None:
    folders = {
        "knowledge/data/facts",
        "probes/parse",
        "probes/live",
        "rules/catalog/system",
        "assistant/commands",
        "tui/screens",
    }
    assert {str(Path(path).parent) for path in shown()} == folders
    assert len(shown()) == len(folders)


def test_the_format_is_recognised_and_the_rule_concludes_from_it(came: Any) -> None:
    code, out = came["format"]
    found = json.loads(out)
    assert code == Exit.FINDING
    assert [f["rule"] for f in found["findings"]] == ["memory-in-small-pieces"]
    assert "the node of buddyinfo has 0 free blocks of memory of 2 MiB and more" in out


def test_the_probe_is_replayed_and_says_what_is_missing(came: Any) -> None:
    fact = "node.memory.large_blocks"
    assert came["probe"]["seen"] == came["probe"]["again"] == [[fact, 0, "ok", ""]]
    assert came["probe"]["absent"] == [[fact, None, "not_asked", "/proc/buddyinfo was not recorded"]]


def test_the_rule_has_no_fault_and_each_flip_breaks_a_case(came: Any) -> None:
    assert came["lint"] == [0, "1 files, 0 faults, 0 warnings\n"]
    assert came["test"] == [0, "0 mutants survived\n1 rules\n3 passed, 0 failed\n"]


def test_the_command_answers_and_stands_in_the_help(came: Any) -> None:
    assert came["command"] == [0, "node.memory.large_blocks: Free blocks of memory of 2 MiB and more.\n"]
    assert re.search(r"^ +facts +what the names of facts mean$", came["help"][1], re.MULTILINE)


def test_the_screen_comes_with_its_key(came: Any) -> None:
    screen = "\n".join(came["screen"])
    assert "9 Facts" in screen
    assert "this node has 0 free blocks of memory of 2 MiB and more" in screen


@pytest.mark.parametrize("path", [path for path in shown() if path.endswith(".py")])
def test_the_code_is_as_the_house_writes_it(path: str) -> None:
    ruff = Path(sys.executable).with_name("ruff")
    for words in (["check"], ["format", "--check"]):
        argv = [str(ruff), *words, "--no-cache", "--stdin-filename", path, "-"]
        done = subprocess.run(argv, input=shown()[path], capture_output=True, text=True, check=False, cwd=ROOT)
        assert done.returncode == 0, done.stdout
