"""The app in a real terminal, from the shell and back to it, whatever ends it."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import struct
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests import nvml_lab
from tests.components import component
from tests.conftest import ROOT, Gpudiag
from tests.tui.lab import BUS
from tests.tui.tmux_lab import PATIENCE, PROMPT, Terminal, ended, family, terminal

pytestmark = pytest.mark.machine

MODES = ("#{alternate_on}", "#{cursor_flag}", "#{mouse_any_flag}", "#{wrap_flag}")


@pytest.fixture
def there(tmp_path: Path, clean_environment: dict[str, str]) -> Iterator[Terminal]:
    component("tmux")
    with terminal(tmp_path, clean_environment) as opened:
        yield opened


def modes(there: Terminal) -> str:
    """What an app may have left switched on in the terminal."""
    return there.tmux("display-message", "-p", " ".join(MODES))


def kept(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "state" / "tui.json").read_text())
    return found


def test_a_session_from_the_shell_and_back(there: Terminal, tmp_path: Path) -> None:
    stty, before = there.ask("stty -g"), modes(there)
    there.gpudiag("tui", *BUS)
    there.wait("fallen off the bus")
    app = there.app()
    there.press("M-3")  # one is typing: Alt with the digit
    there.wait(lambda s: "Findings" in s and "CRITICAL" in s.upper())
    there.type("?")
    there.wait("Ctrl-P finds")
    there.press("Escape")
    there.wait(lambda s: "Ctrl-P finds" not in s)
    there.type(":")
    there.wait(lambda s: any(line.strip() == ":" for line in s.splitlines()))
    there.type("theme light")
    there.wait(":theme light")
    there.press("Enter")
    there.press("M-1")
    there.wait("⏎ Ask")
    there.type("what is xid 79?")
    there.press("Enter")
    there.wait(lambda s: "GPU has fallen off" in s and "79" in s)
    processes = family(app)
    there.press("C-q")
    there.wait(PROMPT)
    assert ended(processes)
    assert (there.ask("stty -g"), modes(there)) == (stty, before)
    assert there.ask("echo $?") == "0"
    assert kept(tmp_path)["theme"] == "light"


def test_alone_it_opens_the_app_on_this_machine_and_ends_while_it_looks(there: Terminal, tmp_path: Path) -> None:
    """Unmounted during a probe: a driver that never answers keeps nobody from leaving."""
    place = nvml_lab.folder(tmp_path, "hung_call")
    there.gpudiag(prefix=f"LD_LIBRARY_PATH={place} ")
    there.wait("looking")
    app = there.app()
    end = time.monotonic() + PATIENCE
    while len(processes := family(app)) < 2:  # a probe's child is under way
        assert time.monotonic() < end
        time.sleep(0.02)
    there.press("C-q")
    there.wait(PROMPT)
    assert ended(processes)


def test_a_storm_of_sizes_and_it_is_suspended_and_comes_back(there: Terminal) -> None:
    there.gpudiag("tui", *BUS, "--screen", "findings")
    there.wait("fallen off the bus")
    for n in range(40):
        there.resize(20 + n * 37 % 180, 3 + n * 11 % 57)
    there.resize(100, 30)
    shown = there.wait(lambda s: "fallen off the bus" in s.splitlines()[0] and "Explain" in s.rstrip().splitlines()[-1])
    lines = shown.split("\n")[:30]
    assert len(lines) == 30
    assert all(len(line) <= 100 for line in lines)
    there.press("C-z")
    there.wait("Stopped")
    there.run("fg")
    there.wait(lambda s: "fallen off the bus" in s.splitlines()[0])
    there.press("C-q")
    there.wait(PROMPT)


def test_a_signal_ends_it_and_the_terminal_is_given_back(there: Terminal, tmp_path: Path) -> None:
    stty, before = there.ask("stty -g"), modes(there)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        (tmp_path / "state" / "tui.json").unlink(missing_ok=True)
        there.gpudiag("tui", *BUS, "--screen", "findings")
        there.wait("fallen off the bus")
        processes = family(there.app())
        processes[0].send_signal(number)
        there.wait(PROMPT)
        assert there.ask("echo $?") == str(128 + number)
        assert ended(processes)
        assert (there.ask("stty -g"), modes(there)) == (stty, before)
        assert kept(tmp_path)["pane"] == "findings"


def test_the_window_is_closed(there: Terminal, tmp_path: Path) -> None:
    there.gpudiag("tui", *BUS, "--screen", "findings")
    there.wait("fallen off the bus")
    processes = family(there.app())
    there.close()
    assert ended(processes)
    assert kept(tmp_path)["pane"] == "findings"


def opened(folder: Path, environ: dict[str, str], *, deaf: bool = False) -> tuple[int, int]:
    """The app in a terminal that this process reads: its id, and the other end. `deaf`: it ignores SIGHUP."""
    argv = [sys.executable, "-P", "-m", "assistant", "tui", *BUS, "--screen", "findings"]
    mine = {**environ, "TERM": "xterm-256color", "GPUDIAG_STATE_DIR": str(folder), "GPUDIAG_HISTORY_URL": "off"}
    pid, other = pty.fork()
    if pid == 0:
        if deaf:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        os.chdir(ROOT)
        os.execve(argv[0], argv, mine)
    seen = b""
    while b"fallen off the bus" not in seen:
        seen += os.read(other, 1 << 16)
    return pid, other


def test_the_terminal_vanishes_and_nobody_says_so(tmp_path: Path, clean_environment: dict[str, str]) -> None:
    """A lost connection without a SIGHUP (it is ignored): an app that goes on reading nothing would spin for ever."""
    pid, other = opened(tmp_path, clean_environment, deaf=True)
    processes = family(psutil.Process(pid))
    os.close(other)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 128 + signal.SIGHUP
    assert ended(processes[1:])


UNSTOPPED = """
import asyncio
from textual.app import App
from tui.terminal import Terminal

async def begin():
    Terminal(App()).start_application_mode()
    print("begun", flush=True)

asyncio.run(begin())
"""


def test_what_still_reads_keys_keeps_no_process_alive(clean_environment: dict[str, str]) -> None:
    """The app ended without stopping its driver, and its terminal is gone."""
    argv = [sys.executable, "-P", "-c", UNSTOPPED]
    pid, other = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        os.chdir(ROOT)
        os.execve(argv[0], argv, {**clean_environment, "TERM": "xterm-256color"})
    seen = b""
    while b"begun" not in seen:
        seen += os.read(other, 1 << 16)
    os.close(other)
    process = psutil.Process(pid)
    try:
        assert ended([process])
    finally:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def test_a_terminal_that_takes_nothing_keeps_it_from_nothing(tmp_path: Path, clean_environment: dict[str, str]) -> None:
    """A connection that hangs: every write waits, and the app with it. It ends all the same when it is told to."""
    pid, other = opened(tmp_path, clean_environment)
    processes = family(psutil.Process(pid))
    for n in range(60):  # nobody reads what is drawn for these
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 30 + n % 30, 100 + n, 0, 0))
        time.sleep(0.02)
    os.kill(pid, signal.SIGTERM)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 128 + signal.SIGTERM
    assert ended(processes[1:])
    os.close(other)


def test_where_there_is_no_terminal(gpudiag: Gpudiag) -> None:
    told = gpudiag("tui")
    assert told.code == 2
    assert "needs a terminal" in told.err
    alone = gpudiag()
    assert alone.code == 0
    assert "usage:" in alone.out.casefold()


def test_a_terminal_that_cannot_be_drawn_on(there: Terminal) -> None:
    there.gpudiag("tui", prefix="TERM=dumb ")
    there.wait("TERM is dumb")
    there.resize(100, 70)  # the whole list of commands
    there.gpudiag(prefix="TERM=dumb ")
    there.wait("usage:")


def test_without_colour_every_state_has_its_mark(there: Terminal) -> None:
    there.gpudiag("tui", *BUS, "--screen", "findings", prefix="NO_COLOR=1 ")
    there.wait("fallen off the bus")
    for width, height in ((80, 24), (200, 60)):
        there.resize(width, height)
        there.wait(lambda s: "✖" in s.splitlines()[0] and "Explain" in s.rstrip().splitlines()[-1])
        coloured = there.tmux("capture-pane", "-p", "-e")
        assert "\x1b[38;2;" not in coloured
    there.press("C-q")
    there.wait(PROMPT)
