"""What a machine may lack. GPUDIAG_REQUIRE (names with commas between, set by .ci/run) says what must be there."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest

PROGRAMS = {
    "cc": ["cc"],
    "rg": ["rg"],
    "git": ["git"],
    "chromium": ["chromium"],
    "bash": ["bash"],
    "zsh": ["zsh"],
    "tcsh": ["tcsh"],
    "prometheus": ["prometheus"],
    "promtool": ["promtool"],
    "alertmanager": ["prometheus-alertmanager"],
    "journalctl": ["journalctl"],
    "journal-remote": ["/usr/lib/systemd/systemd-journal-remote"],
    "sshd": ["/usr/sbin/sshd", "ssh-keygen"],
    "ssh": ["ssh", "ssh-keygen"],
    "tmux": ["tmux"],
    "slurm": ["slurmctld", "slurmd", "srun", "sinfo", "scontrol", "squeue", "scancel", "munged"],
}
"""All programs that the tests of a component run: a part of a package is no component."""


def cannot(name: str, why: str) -> NoReturn:
    """Skip the test, or fail it where GPUDIAG_REQUIRE names the component."""
    if name in os.environ.get("GPUDIAG_REQUIRE", "").split(","):
        pytest.fail(f"{name} is required here (GPUDIAG_REQUIRE): {why}")
    pytest.skip(why)


def component(name: str) -> str:
    """Path of the first program of a component, when all of them are here; else as `cannot`."""
    search = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    programs = PROGRAMS.get(name, [name])
    missing = [p for p in programs if shutil.which(p, path=search) is None]
    if missing:
        cannot(name, f"{name}: {', '.join(missing)} not installed")
    return shutil.which(programs[0], path=search) or ""
