"""Conversations under rough use: real processes, and files that are not what they were."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from assistant.commands.demo import FOLDER
from tests.command_server import CommandServer
from tests.conftest import ROOT, Answer, Gpudiag

DEMOS = ROOT / "assistant" / "demos"
Ask = Callable[..., Answer]


@pytest.fixture
def ask(gpudiag: Gpudiag, tmp_path: Path) -> Ask:
    """``gpudiag ask`` in a state of its own, in one conversation."""
    env = {"GPUDIAG_STATE_DIR": str(tmp_path / "state"), "GPUDIAG_HISTORY_URL": "off"}

    def run(*words: str, **more: object) -> Answer:
        more = {"env": env, "cwd": tmp_path, **more}
        return gpudiag("ask", "--thread", "t", *words, **more)

    return run


@pytest.mark.parametrize("command", ["ask", "chat"])
def test_bytes_that_are_no_text_cost_no_answer(gpudiag_process: Gpudiag, tmp_path: Path, command: str) -> None:
    env = {"GPUDIAG_STATE_DIR": str(tmp_path), "PYTHONIOENCODING": "utf-8:strict"}
    answer = gpudiag_process(command, stdin=b"what is xid 79 \xff\xfe\n", env=env)
    assert answer.code == 0
    assert "fallen off the bus" in answer.out


def test_standard_input_that_cannot_be_read_is_told(command_server: CommandServer, tmp_path: Path) -> None:
    said = tmp_path / "said"
    env = {**os.environ, "GPUDIAG_STATE_DIR": str(tmp_path)}
    with Path("/proc/self/mem").open("rb") as unreadable, said.open("wb") as told:  # reading its first byte is an error
        streams = [unreadable.fileno(), told.fileno(), told.fileno()]
        assert command_server.begin(["ask", "-"], streams, env=env).wait() == 2
    assert "cannot be read" in said.read_text()


def test_a_pipe_that_a_sentence_names_is_not_waited_for(ask: Ask, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "kern.log")
    answer = ask(f"what is wrong in {tmp_path}/kern.log", timeout=60)
    assert answer.code == 2
    assert "no plain file" in answer.err


def test_a_talk_goes_on_about_the_same_file_in_another_folder(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    shutil.copy(DEMOS / "double-bit-error" / "kern.log", tmp_path / "kern.log")
    (tmp_path / "other" / "kern.log").write_text("Jan  1 00:00:00 n1 kernel: hello\n")
    assert "UNHEALTHY" in ask("what is wrong?", "--log", "kern.log").out
    again = ask("again", cwd=tmp_path / "other")
    assert "Nothing changed" in again.out
    given = ask("why?", "--log", "kern.log", cwd=tmp_path / "other")
    assert "UNHEALTHY" not in given.out
    assert "from kern.log" in given.out


@pytest.mark.parametrize("follow_up", ["why", "prove it", "check again", "为什么"])
def test_a_follow_up_over_a_file_that_is_missing_says_so(ask: Ask, tmp_path: Path, follow_up: str) -> None:
    answer = ask(follow_up, "--log", str(tmp_path / "absent.log"))
    assert answer.code == 2
    assert "absent.log" in answer.err
    assert answer.out == ""


def test_a_recording_of_another_node_in_the_same_place_is_not_compared(ask: Ask, tmp_path: Path) -> None:
    place = tmp_path / "bundle"
    shutil.copytree(DEMOS / "row-remap-pending" / "bundle", place)
    first = ask("can I use it?", "--bundle", "bundle")
    assert first.code == 1
    shutil.rmtree(place)
    gone = ask("again")
    assert gone.code == 2
    assert "no such file" in gone.err
    assert "double-bit" in ask("why?").out
    shutil.copytree(DEMOS / "healthy" / "bundle", place)
    other = ask("again")
    assert "changed" not in other.out
    assert "nothing is compared" in other.out
    assert other.code == 0


def test_what_goes_wrong_leaves_a_chat_where_it_was(command_server: CommandServer, tmp_path: Path) -> None:
    shutil.copy(DEMOS / "double-bit-error" / "kern.log", tmp_path / "kern.log")
    env = {**os.environ, "GPUDIAG_STATE_DIR": str(tmp_path), "GPUDIAG_HISTORY_URL": "off"}
    with command_server.start(["chat", "--log", "kern.log"], env=env, cwd=tmp_path) as chat:
        chat.stdin.write("what is wrong?\n")
        chat.stdin.flush()
        while "you could ask" not in (line := chat.stdout.readline()):
            assert line
        (tmp_path / "kern.log").unlink()
        out, err = chat.communicate("again\nwhy?\n", timeout=100)
    assert "no such file" in err
    assert "UNHEALTHY. GPU 0000:48:00.0: " in out


def test_a_file_that_is_not_there_is_no_sentence_when_one_comes_on_standard_input(
    gpudiag: Gpudiag, tmp_path: Path
) -> None:
    env = {"GPUDIAG_STATE_DIR": str(tmp_path / "state"), "GPUDIAG_HISTORY_URL": "off"}
    assert "XID 79: " in gpudiag("ask", "--log", str(tmp_path / "yes"), stdin="what is xid 79?", env=env).out
    asked = gpudiag("ask", "--log", str(tmp_path / "yes"), stdin="what is wrong?", env=env)
    assert (asked.code, asked.out) == (2, "")
    assert "no such file" in asked.err


def test_without_a_terminal_nothing_is_remembered_but_by_name(gpudiag: Gpudiag, tmp_path: Path) -> None:
    """Two steps of CI of one user would answer for each other's machines."""
    env = {"GPUDIAG_STATE_DIR": str(tmp_path / "state"), "GPUDIAG_HISTORY_URL": "off"}
    sick = str(FOLDER / "double-bit-error" / "kern.log")
    assert "UNHEALTHY" in gpudiag("ask", "--log", sick, "what is wrong?", env=env).out
    assert "double-bit" not in gpudiag("ask", "why?", env=env).out
    assert not list((tmp_path / "state").glob("dialogues/*"))
    assert "UNHEALTHY" in gpudiag("ask", "--thread", "ci", "--log", sick, "what is wrong?", env=env).out
    assert "double-bit" in gpudiag("ask", "--thread", "ci", "why?", env=env).out
    here = gpudiag("ask", "--thread", "ci", "is this node healthy?", "--format", "json", env=env)
    assert "double-bit" not in here.out, "this node is the one that it is typed on"


def test_options_of_a_look_mean_the_machine(gpudiag: Gpudiag, tmp_path: Path) -> None:
    env = {"GPUDIAG_STATE_DIR": str(tmp_path / "state"), "GPUDIAG_HISTORY_URL": "off"}
    sick = str(FOLDER / "double-bit-error" / "kern.log")
    gpudiag("ask", "--thread", "t", "--log", sick, "what is wrong?", env=env)
    assert "double-bit" in gpudiag("ask", "--thread", "t", "can I keep using it?", env=env).out
    assert (
        "double-bit" not in gpudiag("ask", "--thread", "t", "--without", "system", "can I keep using it?", env=env).out
    )
