"""Shared by all tests: components that a machine may lack, and the command line as a function."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("shared", deadline=None)  # other work may hold the machine at any time
settings.load_profile("shared")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # thousands of processes would compile everything anew
sys.dont_write_bytecode = False
# A shell's job in the background, or nohup: what these signals do is tested all the same.
for _number, _usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGQUIT, signal.SIG_DFL),
):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _usual)

ROOT = Path(__file__).parent.parent
COMMANDS = {
    "cc": "cc", "rg": "rg", "git": "git", "chromium": "chromium", "bash": "bash", "zsh": "zsh", "tcsh": "tcsh",
    "prometheus": "prometheus", "promtool": "promtool", "alertmanager": "prometheus-alertmanager",
    "journalctl": "journalctl", "journal-remote": "/usr/lib/systemd/systemd-journal-remote",
    "sshd": "/usr/sbin/sshd", "ssh": "ssh-keygen", "tmux": "tmux",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Answer:
    """What one run of the command line gave."""

    code: int
    out: str
    err: str


Gpudiag = Callable[..., Answer]


def component(name: str) -> str:
    """Path of an optional component; the test skips without it, and fails when GPUDIAG_REQUIRE names it."""
    path = shutil.which(COMMANDS[name])
    if path is None:
        required = os.environ.get("GPUDIAG_REQUIRE", "").split(",")
        if name in required:
            pytest.fail(f"{name} is required here (GPUDIAG_REQUIRE) and was not found")
        pytest.skip(f"{name} is not installed")
    return path


@pytest.fixture
def require() -> Callable[[str], str]:
    """`component`, for tests that need one."""
    return component


@pytest.fixture(scope="session")
def clean_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment without anybody's settings, in English; compiled data is shared by all runs."""
    kept = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("GPUDIAG_", "LC_", "LANG", "XDG_", "NO_COLOR", "COLUMNS"))
    }
    home = tmp_path_factory.mktemp("home")
    cache = tmp_path_factory.getbasetemp() / "gpudiag-cache"
    return kept | {"HOME": str(home), "LANG": "C.UTF-8", "GPUDIAG_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)}


@pytest.fixture
def gpudiag(clean_environment: dict[str, str]) -> Gpudiag:
    """The command line in a process of its own: ``gpudiag("explain", "xid", "79")``."""

    def run(
        *words: str,
        stdin: str | bytes | None = None,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        timeout: float = 120,
    ) -> Answer:
        data = stdin.encode() if isinstance(stdin, str) else stdin or b""
        argv: Sequence[str] = [sys.executable, "-m", "assistant", *words]
        done = subprocess.run(
            argv,
            input=data,
            capture_output=True,
            cwd=cwd or ROOT,
            env=clean_environment | (env or {}),
            timeout=timeout,
            check=False,
        )
        return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run
