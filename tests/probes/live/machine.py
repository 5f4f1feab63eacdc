"""What tests on the real machine need: a mount namespace of their own, an ordinary user, fake tools on a PATH."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import probes.collectors
from tests.components import cannot

COLLECTORS = Path(probes.collectors.__path__[0])
SYSTEM_PYTHON = "/usr/bin/python3"
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


@cache
def _closed() -> bool:
    tried = [*(NOBODY if os.geteuid() == 0 else ()), "test", "-r", __file__]
    return subprocess.run(tried, check=False, cwd="/", timeout=20).returncode != 0


def need_open_checkout() -> None:
    """Skip where user nobody cannot read this checkout (below a home folder that is its owner's alone)."""
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    if _closed():
        cannot("open-checkout", "this checkout is not readable by other users")


@cache
def _mounts() -> str:
    """Why nothing can be mounted here; empty when it can."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return "mounting needs root and unshare"
    tried = subprocess.run(
        ["unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=64k none /mnt"],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    return "" if tried.returncode == 0 else f"mounting is not permitted here: {tried.stderr.strip()}"


def need_mounts() -> None:
    """Skip where a mount namespace of one's own is not to be had."""
    if why := _mounts():
        cannot("mounts", why)


def need_nobody() -> str:
    """An interpreter that an ordinary user can run; skip where none is, or where this is no root."""
    if os.geteuid() != 0 or not Path(SYSTEM_PYTHON).exists() or shutil.which("setpriv") is None:
        cannot("nobody", "another user needs root, setpriv and a Python in /usr/bin")
    return SYSTEM_PYTHON


def in_own_mounts(script: str, *words: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """A shell script whose mounts nobody else sees, and which are gone with it."""
    return subprocess.run(
        ["unshare", "-m", "--propagation", "private", "sh", "-euc", script, "sh", *words],
        capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip


def collector(name: str, *words: str) -> list[str]:
    """The command line of a collector, as a live host starts it."""
    return [sys.executable, "-I", "-B", str(COLLECTORS / f"{name}.py"), *words]


def collect(name: str, *words: str, before: Sequence[str] = (), timeout: float = 30) -> dict[str, Any]:
    """The document that a collector prints."""
    done = subprocess.run(
        [*before, *collector(name, *words)], capture_output=True, text=True, timeout=timeout, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return dict(json.loads(done.stdout))


def tool(folder: Path, name: str, script: str) -> Path:
    """An executable on a PATH."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return path


def tree(root: Path, files: dict[str, str]) -> Path:
    """Files below a root."""
    for name, text in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root
