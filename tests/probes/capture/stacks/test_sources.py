"""Source lines as the target sees them, and nothing else of anybody's."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from probes.capture.stacks import sources
from probes.capture.stacks.stack_document import StackDoc
from tests.components import cannot
from tests.probes.capture.real_processes import SLEEP, started
from tests.probes.live.machine import NOBODY, need_nobody

pytestmark = pytest.mark.process

CODE = "import time\n\ndef step():\n    loss.item()   \n    x = 1\x1b[31m\n" + "    y = " + "1 + " * 200 + "1\n"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(CODE)
    return path


def read(pid: int, *wanted: tuple[Path | str, int]) -> dict[str, str]:
    return sources.lines(pid, [(str(file), line) for file, line in wanted])


def test_lines_are_stripped_cut_and_cleaned(program: Path) -> None:
    found = read(os.getpid(), (program, 4), (program, 5), (program, 6), (program, 99), (program, 0), (program, -1))
    assert found[f"{program}:4"] == "loss.item()"
    assert found[f"{program}:5"] == "x = 1"
    assert len(found[f"{program}:6"]) == 200
    assert set(found) == {f"{program}:{n}" for n in (4, 5, 6)}


def test_only_python_files_are_read(tmp_path: Path, program: Path) -> None:
    secret = tmp_path / "key"
    secret.write_text("secret\n")
    (tmp_path / "link.py").symlink_to(secret)
    (tmp_path / "good.py").symlink_to(program)
    (tmp_path / "round.py").symlink_to(tmp_path / "round.py")
    (tmp_path / "folder.py").mkdir()
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "large.py").write_bytes(b"x\n" * (5 << 20))
    names = ("key", "link.py", "round.py", "folder.py", "pipe.py", "large.py", "none.py", "../../key")
    assert (
        read(os.getpid(), *((tmp_path / n, 1) for n in names), ("/dev/stdin", 1), ("a\nb.py", 1), ("a\0.py", 1)) == {}
    )
    assert read(os.getpid(), (tmp_path / "good.py", 4)) == {f"{tmp_path}/good.py:4": "loss.item()"}


def test_a_relative_path_is_relative_to_the_target(program: Path) -> None:
    with started([sys.executable, "-c", SLEEP], cwd=program.parent) as pid:
        assert read(pid, ("train.py", 4)) == {"train.py:4": "loss.item()"}


@pytest.mark.machine
def test_links_of_a_container_stay_in_it(tmp_path: Path, program: Path) -> None:
    """As root we would see both files; the target means the one below its own root."""
    if os.geteuid() != 0:
        cannot("chroot", "a root of its own needs root")
    root = tmp_path / "root"
    (root / "srv").mkdir(parents=True)
    (root / "work").symlink_to("/srv")
    (root / "srv" / "up.py").symlink_to("../../../../../.." + str(program))
    (root / "srv" / "train.py").write_text("inside\n")
    (root / "srv" / "link.py").symlink_to("/srv/train.py")
    (root / "srv" / "out.py").symlink_to(program)
    code = "import os, sys, time; os.chroot(sys.argv[1]); os.chdir('/'); print('ready', flush=True); time.sleep(60)"
    with started([sys.executable, "-I", "-S", "-c", code, str(root)]) as pid:
        found = read(pid, ("/work/train.py", 1), ("/work/link.py", 1), ("/work/out.py", 1), ("/work/up.py", 1))
    assert found == {"/work/train.py:1": "inside", "/work/link.py:1": "inside"}


@pytest.mark.machine
def test_what_the_target_may_not_read_is_not_read(program: Path) -> None:
    python = need_nobody()
    for folder in (program.parent, *program.parents[1:-1]):
        if folder.stat().st_mode & 0o005 != 0o005 and str(folder).startswith("/tmp/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    open_, shut = program, program.with_name("shut.py")
    shut.write_text("secret\n")
    shut.chmod(0o600)
    with started([*NOBODY, python, "-c", SLEEP]) as pid:
        assert set(read(pid, (open_, 4), (shut, 1))) == {f"{open_}:4"}


def test_a_process_that_is_gone_has_no_lines(program: Path) -> None:
    assert read(1 << 22, (program, 4)) == {}


def test_lines_of_documents_are_those_that_stacks_stand_on(program: Path) -> None:
    doc: StackDoc = {
        "tool": "py-spy", "rate": 50, "began": 0, "ended": 30, "error": "",
        "frames": [["<module>", str(program), 1], ["step", str(program), 4], ["never", str(program), 5], ["_run", "/usr/lib/python3.12/queue.py", 9]],
        "stacks": [[0, 1], [0, 3], [2]],
        "threads": {"7": {"name": "MainThread", "samples": [[0, 10, 0], [10, 10, 1]]}},
    }  # fmt: skip
    found = sources.of_documents(os.getpid(), [doc])
    assert set(found) == {f"{program}:1", f"{program}:4"}
