"""`gpudiag chat`: on a real terminal, over a pipe, recorded and held again."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from assistant.session.key import Key
from assistant.session.store import Dialogues
from assistant.session.transcript import read
from tests.assistant.session.terminal_lab import Terminal
from tests.command_server import CommandServer
from tests.conftest import ROOT, Answer

DEMOS = ROOT / "assistant" / "demos"
HANGS = "#!/bin/sh\ntrap '' TERM INT HUP\nwhile :; do sleep 1; done\n"


@pytest.fixture
def env(clean_environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """A state of its own, and no history."""
    state = {"GPUDIAG_STATE_DIR": str(tmp_path / "state"), "GPUDIAG_HISTORY_URL": "off", "LC_ALL": "C.UTF-8"}
    return clean_environment | state


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A kernel log with a double-bit error in it."""
    return Path(shutil.copy(DEMOS / "double-bit-error" / "kern.log", tmp_path / "kern.log"))


def piped(server: CommandServer, env: dict[str, str], folder: Path, text: str, *args: str) -> Answer:
    """Sentences over a pipe."""
    code, out, err = server.run(["chat", *args], text.encode("utf-8", "surrogateescape"), folder, env, 120)
    return Answer(code, out.decode(), err.decode())


# --- a terminal ---------------------------------------------------------------------------


def test_a_conversation_on_a_terminal_goes_on_in_the_next_process(
    command_server: CommandServer, env: dict[str, str], log: Path
) -> None:
    with Terminal(command_server, ["chat", "--log", str(log), "--thread", "t"], env) as screen:
        assert "Ctrl-D ends" in screen.until("> ")
        first = screen.say("what is wrong?")
        assert "UNHEALTHY" in first
        assert "understood:" in first
        assert "kern.log:2" in screen.say("how do you know?")
        screen.type("\x04")
        assert screen.end() == 0
    with Terminal(command_server, ["chat", "--thread", "t"], env) as screen:
        assert "Going on with:" in screen.until("\n> ")
        assert "double-bit ECC" in screen.say("why?")
        screen.type("\x04")
        assert screen.end() == 0
    with Terminal(command_server, ["chat", "--thread", "t", "--new"], env) as screen:
        screen.until("> ")
        assert "Going on with" not in screen.seen
        assert "double-bit" not in screen.say("why?")
        screen.type("exit\r")
        assert screen.end() == 0


def test_chinese_on_a_narrow_terminal(command_server: CommandServer, env: dict[str, str], log: Path) -> None:
    with Terminal(command_server, ["--lang", "zh", "chat", "--log", str(log)], env, columns=50) as screen:
        assert "Ctrl-D 结束" in screen.until("> ")
        assert "异常" in screen.say("出了什么问题？")
        assert "双比特" in screen.say("为什么？")
        screen.type("\x04")
        assert screen.end() == 0


def test_ctrl_c_at_the_prompt_begins_a_new_line(command_server: CommandServer, env: dict[str, str], log: Path) -> None:
    with Terminal(command_server, ["chat", "--log", str(log)], env) as screen:
        screen.until("> ")
        screen.type("what is wr")
        screen.until("what is wr")
        screen.interrupt("what is wr\n> ")
        assert "UNHEALTHY" in screen.say("what is wrong?")
        screen.type("\x04")
        assert screen.end() == 0


def test_ctrl_c_breaks_off_a_turn_and_keeps_the_conversation(
    command_server: CommandServer, env: dict[str, str], tmp_path: Path
) -> None:
    binaries = tmp_path / "bin"
    binaries.mkdir()
    for name in ("dmesg", "journalctl", "lspci", "nvidia-smi"):
        (binaries / name).write_text(HANGS)
        (binaries / name).chmod(0o755)
    hanging = env | {"PATH": f"{binaries}:{os.environ['PATH']}"}
    with Terminal(command_server, ["chat", "--no-history"], hanging) as screen:
        screen.until("> ")
        assert "XID 63" in screen.say("what is xid 63?")
        before = len(screen.seen)
        screen.type("what is wrong with this node?\r")
        assert wait_for(binaries)
        screen.type("\x03")
        assert "Broken off" in screen.prompt(before)
        assert "no answer yet" in screen.say("why?"), "the talk is where it was before"
        assert "XID 64" in screen.say("and xid 64?")
        screen.type("\x04")
        assert screen.end() == 0
    until = time.monotonic() + 10
    while running(binaries) and time.monotonic() < until:
        time.sleep(0.05)
    assert not running(binaries)


def wait_for(binaries: Path) -> bool:
    """Whether one of them is run."""
    until = time.monotonic() + 30
    while not running(binaries) and time.monotonic() < until:
        time.sleep(0.05)
    return bool(running(binaries))


def running(folder: Path) -> list[str]:
    """The programs of `folder` that run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in line:
            found.append(line)
    return found


def test_tab_completes_what_is_suggested(command_server: CommandServer, env: dict[str, str], log: Path) -> None:
    with Terminal(command_server, ["chat", "--log", str(log)], env) as screen:
        screen.until("> ")
        screen.say("what is wrong?")
        before = len(screen.seen)
        screen.type("can\t")
        assert "can I keep using it?" in screen.until("it?", before)
        assert "Not until" in screen.say("")
        screen.type("\x04")
        assert screen.end() == 0


def test_what_was_typed_is_remembered_for_its_owner_only(
    command_server: CommandServer, env: dict[str, str], log: Path, tmp_path: Path
) -> None:
    for keys in ("what is wrong?", "\x1b[A"):  # the second time with the arrow key
        with Terminal(command_server, ["chat", "--log", str(log), "--new"], env) as screen:
            screen.until("> ")
            assert "UNHEALTHY" in screen.say(keys)
            screen.type("\x04")
            assert screen.end() == 0
    kept = tmp_path / "state" / "chat_history"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert "what is wrong?" in kept.read_text()
    kept.unlink()
    with Terminal(command_server, ["chat", "--log", str(log)], env | {"GPUDIAG_DIALOGUE_DAYS": "0"}) as screen:
        screen.until("> ")
        screen.say("what is wrong?")
        assert "double-bit" in screen.say("why?"), "while it lasts it is remembered"
        screen.type("\x04")
        assert screen.end() == 0
    assert not kept.exists()


def test_pasted_lines_are_one_sentence(
    command_server: CommandServer, env: dict[str, str], log: Path, tmp_path: Path
) -> None:
    record = tmp_path / "talk.txt"
    with Terminal(command_server, ["chat", "--log", str(log), "--record", str(record)], env) as screen:
        screen.until("> ")
        before = len(screen.seen)
        screen.type("\x1b[200~NVRM: Xid (PCI:0000:3b:00): 79, pid=1,\nGPU has fallen off the bus.\x1b[201~")
        screen.until("off the bus.", before)
        screen.say("")
        screen.type("```\rwhat is wrong?\r```\r")
        screen.prompt()
        screen.type("\x04")
        assert screen.end() == 0
    first, second = read(str(record)).turns
    assert first.text.split("\n")[1] == "GPU has fallen off the bus."
    assert second.text == "what is wrong?"


# --- a pipe -------------------------------------------------------------------------------


def test_over_a_pipe_a_line_is_a_sentence(command_server: CommandServer, env: dict[str, str], log: Path) -> None:
    said = piped(
        command_server,
        env,
        log.parent,
        "what is wrong?\n\nwhy?\n```\nhow do you\nknow?\n```\n为什么？",
        "--log",
        log.name,
    )
    assert said.code == 0
    assert "\n> " not in said.out
    assert "\x1b" not in said.out + said.err
    assert said.out.startswith("UNHEALTHY")
    assert "因为" in said.out
    assert [line.startswith("understood:") for line in said.err.splitlines()] == [True, True, True, False]
    assert "理解为：" in said.err.splitlines()[3]


def test_what_goes_wrong_in_a_turn_leaves_the_talk_alone(
    command_server: CommandServer, env: dict[str, str], log: Path
) -> None:
    (log.parent / "bad.log").mkdir()
    said = piped(command_server, env, log.parent, "what is wrong?\n\x00\x1b[2J\nwhy?\n", "--log", log.name)
    assert said.code == 0
    assert "double-bit" in said.out.rpartition("\n\n")[0]
    missing = piped(command_server, env, log.parent, "what is wrong?\nhelp\n", "--log", "none.log")
    assert missing.code == 0
    assert "none.log" in missing.err
    assert "Traceback" not in missing.err


def test_json_is_one_answer_a_line(command_server: CommandServer, env: dict[str, str], log: Path) -> None:
    said = piped(command_server, env, log.parent, "what is wrong?\nwhy?\n", "--log", log.name, "--format", "json")
    answers = [json.loads(line) for line in said.out.splitlines()]
    assert [a["query"]["intent"] for a in answers] == ["diagnose", "why"]


def test_a_page_is_no_conversation(command_server: CommandServer, env: dict[str, str], tmp_path: Path) -> None:
    said = piped(command_server, env, tmp_path, "", "--format", "html")
    assert said.code == 2
    assert "export as html" in said.err


def test_two_chats_of_one_thread_share_the_talk(command_server: CommandServer, env: dict[str, str], log: Path) -> None:
    with Terminal(command_server, ["chat", "--log", str(log), "--thread", "t"], env) as screen:
        screen.until("> ")
        screen.say("what is wrong?")
        assert "double-bit" in piped(command_server, env, log.parent, "why?\n", "--thread", "t").out
        assert "double-bit" in screen.say("how do you know?")
        screen.type("\x04")
        assert screen.end() == 0


# --- recorded -----------------------------------------------------------------------------

TALK = "what is wrong?\nwhy?\nhow do you know?\nwhat else could it be?\nhow sure are you?\nagain\nwhat next?\n能继续用吗？\nundo\n"


@pytest.mark.parametrize("source", ["log", "bundle"])
def test_a_recorded_conversation_replays_the_same_anywhere(
    command_server: CommandServer, env: dict[str, str], tmp_path: Path, source: str
) -> None:
    here = tmp_path / "a"
    here.mkdir()
    if source == "log":
        shutil.copy(DEMOS / "double-bit-error" / "kern.log", here / "kern.log")
        about = ["--log", "kern.log"]
    else:
        shutil.copytree(DEMOS / "off-the-bus" / "bundle", here / "node")
        about = ["--bundle", "node"]
    assert piped(command_server, env, here, TALK, *about, "--record", "talk.txt").code == 0
    assert len(read(str(here / "talk.txt")).turns) == TALK.count("\n")
    there = shutil.copytree(here, tmp_path / "b")
    narrow = env | {"COLUMNS": "50", "GPUDIAG_HOST_NAME": "elsewhere", "GPUDIAG_LANG": "zh"}
    again = piped(command_server, narrow, tmp_path, "", "--replay", str(there / "talk.txt"))
    assert (again.code, again.out) == (0, "")
    assert "9" in again.err


def test_a_difference_is_shown_and_told_by_the_exit_code(
    command_server: CommandServer, env: dict[str, str], log: Path, tmp_path: Path
) -> None:
    assert (
        piped(command_server, env, tmp_path, "what is wrong?\nwhy?\n", "--log", "kern.log", "--record", "talk.txt").code
        == 0
    )
    talk = tmp_path / "talk.txt"
    talk.write_text(talk.read_text().replace("UNHEALTHY", "HEALTHY", 1))
    said = piped(command_server, env, tmp_path, "", "--replay", "talk.txt")
    assert said.code == 1
    assert "-HEALTHY  GPU" in said.out
    assert "+UNHEALTHY  GPU" in said.out
    assert "talk.txt:7 recorded" in said.out


def test_a_file_that_is_wrong_is_told_by_another(
    command_server: CommandServer, env: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "talk.txt").write_text("# gpudiag conversation 1\n# log: none.log\n# lnag: en\n> x\n")
    said = piped(command_server, env, tmp_path, "", "--replay", "talk.txt")
    assert said.code == 2
    assert "talk.txt:3:1: '# lnag' is not known (did you mean lang" in said.err
    (tmp_path / "talk.txt").write_text("# gpudiag conversation 1\n# log: none.log\n> x\n")
    said = piped(command_server, env, tmp_path, "", "--replay", "talk.txt")
    assert said.code == 2
    assert "none.log is not there" in said.err
    for more in (["--log", "x"], ["--record", "y"], ["--thread", "t"]):
        said = piped(command_server, env, tmp_path, "", "--replay", "talk.txt", *more)
        assert said.code == 2
        assert f"{more[0]} cannot stand beside --replay" in said.err


def test_a_live_machine_is_recorded_with_what_it_told(
    command_server: CommandServer, env: dict[str, str], tmp_path: Path
) -> None:
    args = ["--record", "talk.txt", "--budget", "20"]
    assert piped(command_server, env, tmp_path, "what is wrong with this node?\nagain\n", *args).code == 0
    turns = read(str(tmp_path / "talk.txt")).turns
    assert turns[0].looks[0] == "talk-look1.tar.gz"
    assert turns[1].looks
    again = piped(command_server, env | {"PATH": str(tmp_path)}, tmp_path, "", "--replay", "talk.txt")
    assert (again.code, again.out) == (0, "")
    (tmp_path / turns[1].looks[0]).unlink()
    assert piped(command_server, env, tmp_path, "", "--replay", "talk.txt").code == 2


def test_a_recording_takes_nobodys_place(command_server: CommandServer, env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "talk.txt").write_text("mine")
    said = piped(command_server, env, tmp_path, "help\n", "--record", "talk.txt")
    assert said.code == 2
    assert "exists already" in said.err
    assert (tmp_path / "talk.txt").read_text() == "mine"


def test_relative_files_of_a_recording_elsewhere_stay_found(
    command_server: CommandServer, env: dict[str, str], log: Path, tmp_path: Path
) -> None:
    (tmp_path / "talks").mkdir()
    assert (
        piped(command_server, env, tmp_path, "what is wrong?\n", "--log", log.name, "--record", "talks/t.txt").code == 0
    )
    assert read(str(tmp_path / "talks/t.txt")).all("log") == (str(log),)
    assert piped(command_server, env, ROOT, "", "--replay", str(tmp_path / "talks/t.txt")).code == 0


def test_a_conversation_of_another_version_is_set_aside(
    command_server: CommandServer, env: dict[str, str], log: Path, tmp_path: Path
) -> None:
    key = Key("cli", "", "t", str(os.getuid()))
    store = Dialogues(tmp_path / "state" / "dialogues")
    store.save(key, {"version": 99})
    said = piped(command_server, env, tmp_path, "what is wrong?\nwhy?\n", "--log", log.name, "--thread", "t")
    assert said.code == 0
    assert said.err.count("is not understood") == 1
    assert "double-bit" in said.out
    assert list(store.folder.glob("*.damaged"))
    kept = store.load(key)
    assert kept is not None
    assert kept["version"] != 99
