"""Whose conversation it is: the terminal's, of this login, or the named one."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from assistant.session.key import Key, terminal_key
from tests.conftest import ROOT

SHOW = "import json; from assistant.session.key import terminal_key; print(json.dumps(terminal_key()))"


def key_of(line: bytes) -> Key:
    import json

    return Key(*json.loads(line))


def on_a_terminal(times: int = 1) -> list[Key]:
    """Keys of so many processes, one after the other, of one login on a new terminal."""
    script = "import subprocess, sys\n" + f"for _ in range({times}): subprocess.run([sys.executable, '-c', {SHOW!r}])"
    master, slave = pty.openpty()
    code = f"import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n{script}"
    one = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        stdin=slave,
        stderr=slave,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    out, _ = one.communicate(timeout=60)
    os.close(slave)
    os.close(master)
    return [key_of(line) for line in out.splitlines()]


@pytest.mark.process
def test_processes_of_a_login_share_a_conversation_and_logins_do_not() -> None:
    first, second = on_a_terminal(2)
    (other,) = on_a_terminal()  # mostly on a terminal of the same name
    assert first == second
    assert first.channel.startswith("/dev/")
    assert other != first
    assert {first.user, other.user} == {str(os.getuid())}


@pytest.mark.process
def test_without_a_terminal_there_is_one_a_user() -> None:
    found = []
    for _ in range(2):
        one = subprocess.Popen(
            [sys.executable, "-c", SHOW], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        found.append(key_of(one.communicate(timeout=60)[0]))
    assert found == [Key("cli", "none", "", str(os.getuid()))] * 2


def test_a_named_one_is_the_same_everywhere() -> None:
    assert terminal_key("rack 4") == Key("cli", "", "rack 4", str(os.getuid()))
    assert terminal_key("rack 4") != terminal_key("rack 5")
