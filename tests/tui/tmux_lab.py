"""A real terminal: tmux, its own server on its own socket, with a shell in it that the app is started from."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.components import component
from tests.conftest import ROOT

PATIENCE = 60.0  # seconds until something that must come is missed: machines are slow at times
PROMPT = "there>"


class Terminal:
    """One window of a tmux server of its own."""

    def __init__(self, folder: Path, environ: Mapping[str, str], size: tuple[int, int]) -> None:
        self._tmux, self._socket = component("tmux"), folder / "tmux.sock"
        kept = {k: v for k, v in environ.items() if k not in ("TMUX", "TMUX_PANE", "TERM", "PS1", "COLUMNS", "LINES")}
        self._environ = {**kept, "PS1": PROMPT + " ", "LANG": "C.UTF-8"}
        (folder / "tmux.conf").write_text(
            "set -g status off\nset -g default-terminal screen-256color\nset -s escape-time 0\n"
        )
        shell = [component("bash"), "--norc", "--noprofile"]
        self.tmux("-f", str(folder / "tmux.conf"), "new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), *shell)
        self.wait(PROMPT)

    def tmux(self, *words: str) -> str:
        """One command of tmux, and what it prints."""
        argv = [self._tmux, "-u", "-S", str(self._socket), *words]
        done = subprocess.run(argv, env=self._environ, capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def type(self, text: str) -> None:
        """Letters, as they are."""
        self.tmux("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        """Keys by their names in tmux: Enter, C-q, Escape, PageDown."""
        self.tmux("send-keys", *keys)

    def run(self, *words: str, prefix: str = "") -> None:
        """Type a command line into the shell."""
        self.type(prefix + shlex.join(words))
        self.press("Enter")

    def gpudiag(self, *words: str, prefix: str = "") -> None:
        """Start gpudiag."""
        self.run(sys.executable, "-P", "-m", "assistant", *words, prefix=prefix)

    def resize(self, width: int, height: int) -> None:
        """Another size of the window."""
        self.tmux("resize-window", "-x", str(width), "-y", str(height))

    @property
    def screen(self) -> str:
        """What stands there."""
        return self.tmux("capture-pane", "-p")

    def wait(self, wanted: str | Callable[[str], bool], seconds: float = PATIENCE) -> str:
        """The screen once `wanted` holds or stands there."""
        end = time.monotonic() + seconds
        while True:
            shown = self.screen
            if (wanted in shown) if isinstance(wanted, str) else wanted(shown):
                return shown
            assert time.monotonic() < end, f"{wanted} did not come:\n{shown}"
            time.sleep(0.05)

    @property
    def shell(self) -> psutil.Process:
        """The shell in the window."""
        return psutil.Process(int(self.tmux("display-message", "-p", "#{pane_pid}")))

    def app(self) -> psutil.Process:
        """The gpudiag that the shell runs."""
        end = time.monotonic() + PATIENCE
        while True:
            for child in self.shell.children():
                if "assistant" in child.cmdline():
                    return child
            assert time.monotonic() < end, "gpudiag does not run"
            time.sleep(0.05)

    def ask(self, command: str) -> str:
        """What a command prints in the shell, one line."""
        self.tmux("send-keys", "-R")  # a clean screen
        self.press("C-l")
        self.type(f"echo =$({command})=")
        self.press("Enter")
        shown = self.wait(lambda s: s.count("=") >= 4)
        return shown.rpartition("\n=")[2].partition("=")[0] if "\n=" in shown else shown

    def close(self) -> None:
        """The window vanishes, with the server."""
        subprocess.run(
            [self._tmux, "-S", str(self._socket), "kill-server"], capture_output=True, timeout=30, check=False
        )


@contextmanager
def terminal(folder: Path, environ: Mapping[str, str], size: tuple[int, int] = (120, 40)) -> Iterator[Terminal]:
    """A terminal whose gpudiag keeps everything in `folder`."""
    state = {
        "GPUDIAG_STATE_DIR": str(folder / "state"), "GPUDIAG_HISTORY_URL": "off", "PYTHONPATH": str(ROOT),
        "PATH": os.environ["PATH"],
    }  # fmt: skip
    opened = Terminal(folder, {**environ, **state}, size)
    try:
        yield opened
    finally:
        opened.close()


def family(process: psutil.Process) -> list[psutil.Process]:
    """A process and all that it has started."""
    return [process, *process.children(recursive=True)]


def ended(processes: list[psutil.Process], seconds: float = PATIENCE) -> bool:
    """Whether all of them end."""
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    return not [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]
