"""The line that says what is being waited for, on a real terminal."""

from __future__ import annotations

import os
import pty
import sys
from subprocess import PIPE, Popen

import pytest

from tests.conftest import ROOT

SCRIPT = """
import sys, time
sys.path.insert(0, {root!r})
from assistant.output import Progress
bar = Progress({quiet}, after=0.2)
bar("connecting to gpu-12")
time.sleep({wait})
bar.done()
"""


def shown(wait: float, quiet: bool = False) -> str:
    """What a terminal gets on stderr of work that calls once, and then takes `wait` seconds."""
    ours, theirs = pty.openpty()
    script = SCRIPT.format(root=str(ROOT), quiet=quiet, wait=wait)
    with Popen([sys.executable, "-I", "-c", script], stdout=PIPE, stderr=theirs) as child:
        os.close(theirs)
        out = b""
        try:
            while part := os.read(ours, 4096):
                out += part
        except OSError:  # the terminal has no other side any more
            pass
        child.wait(60)
    os.close(ours)
    return out.decode()


@pytest.mark.process
def test_work_that_takes_long_is_named_though_nobody_calls_again() -> None:
    said = shown(1.0)
    assert "connecting to gpu-12" in said
    assert said.endswith("\x1b[K"), "the line is taken away"


@pytest.mark.process
def test_short_work_and_quiet_work_say_nothing() -> None:
    assert shown(0.0) == ""
    assert shown(1.0, quiet=True) == ""
