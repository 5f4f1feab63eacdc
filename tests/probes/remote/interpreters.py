"""Interpreters of other versions: those of `tests.live_jobs`, and 3.6 and 3.7, which only the far side's core knows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from probes.remote.reach import BOOTSTRAP, FLAGS


def far(minor: int | None = None) -> list[str]:
    """The command that is the far side, under this interpreter or under Python 3.`minor`; the test skips without one."""
    return [*_interpreter(minor), *FLAGS, BOOTSTRAP]


def _interpreter(minor: int | None) -> list[str]:
    if minor is None or sys.version_info[:2] == (3, minor):
        return [sys.executable]
    root = os.environ.get("GPUDIAG_PYTHON314_ROOT", "").rstrip("/")
    paths = [[p] for p in os.environ.get("GPUDIAG_PYTHONS", "").split(":") if f"3.{minor}" in p]
    home = os.environ.get("PYENV_ROOT", "") or str(Path("~/.pyenv").expanduser())
    paths += [[str(p)] for p in sorted(Path(home).glob(f"versions/3.{minor}.*/bin/python3"))]
    paths += [[p] for p in [shutil.which(f"python3.{minor}")] if p]
    paths += [["chroot", root, "/usr/bin/python3.14"]] if root and minor == 14 and os.geteuid() == 0 else []
    for argv in paths:
        done = subprocess.run([*argv, "-I", "-S", "-c", "import sys; print(sys.version_info[1])"], capture_output=True, text=True,
                              check=False)  # fmt: skip
        if done.stdout.strip() == str(minor):
            return argv
    pytest.skip(f"Python 3.{minor} is not here")
