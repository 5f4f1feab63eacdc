"""A real systemd, as pid 1 of namespaces of its own, that runs the shipped unit."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.systemd_pid1 import systemd, within

ROOT = Path(__file__).parent.parent.parent.parent
UNIT = ROOT / "assistant" / "deploy" / "gpudiag-watch.service"
HIDDEN = ("/run", "/etc/systemd", "/opt", "/var/lib", "/var/cache", "/var/tmp")
INSIDE = f"""
for place in {" ".join(HIDDEN)}; do mount -t tmpfs -o mode=755 none $place; done
mkdir -p /etc/systemd/system /run/systemd/system /opt/gpudiag/bin /var/cache/gpudiag
cp -r "$1"/units/* /etc/systemd/system/
cp "$1/gpudiag" /opt/gpudiag/bin/gpudiag
cp -r "$1/cache/." /var/cache/gpudiag/
"""
# What the machine of a test lacks; all else is as shipped. The checkout may lie where PrivateTmp hides it.
HERE = """[Unit]
DefaultDependencies=no
[Service]
WatchdogSec=4
TimeoutAbortSec=3
RestartSec=1
StandardError=file:{folder}/log
BindReadOnlyPaths={root}
ExecStart=
ExecStart=/usr/bin/env gpudiag watch --interval 1 --listen 127.0.0.1:{port} --no-history --probe kernel-log --probe nvml --probe system
"""


@dataclass
class Lab:
    """The systemd, by its pid as seen from here."""

    pid: int
    folder: Path
    port: int

    def run(self, *argv: str) -> str:
        """Output of a command inside."""
        return run(self.pid, *argv)

    def shows(self, name: str) -> str:
        """A property of the unit."""
        return self.run("systemctl", "show", "-P", name, "gpudiag-watch")

    def log(self) -> str:
        """What the service has said."""
        path = self.folder / "log"
        return path.read_text() if path.exists() else ""


def until(what: Callable[[], Any], seconds: float = 60.0, why: Callable[[], str] = lambda: "") -> Any:
    """The first true value of `what`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(OSError):
            if value := what():
                return value
        time.sleep(0.1)
    raise AssertionError(f"it did not come to pass: {why()}")


@contextmanager
def lab(folder: Path, port: int, cache: Path) -> Iterator[Lab]:
    """A systemd that has been told to run the unit. Skips where none can be had."""
    with serving(folder, UNIT, HERE.format(folder=folder, port=port, root=ROOT), cache) as pid:
        yield Lab(pid, folder, port)


@contextmanager
def serving(folder: Path, unit: Path, here: str, cache: Path, layout: str = INSIDE) -> Iterator[int]:
    """The pid of a systemd that has been told to run `unit`, with `here` laid over it. Skips where none can be had."""
    if any(ROOT.is_relative_to(hidden) for hidden in HIDDEN):
        pytest.skip(f"the unit's own folders hide this checkout: {ROOT}")
    drop = folder / "units" / f"{unit.name}.d"
    drop.mkdir(parents=True)
    shutil.copy(unit, drop.parent)
    (drop / "test.conf").write_text(here)
    (drop.parent / "test.target").write_text(f"[Unit]\nDefaultDependencies=no\nWants={unit.name}\n")
    program = folder / "gpudiag"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -B -m assistant "$@"\n')
    program.chmod(0o755)
    cache.mkdir(parents=True, exist_ok=True)
    shutil.copytree(cache, folder / "cache", dirs_exist_ok=True)

    def ready(pid: int) -> bool:
        return run(pid, "systemctl", "is-system-running") in ("running", "degraded", "starting")

    with systemd(folder, layout, ready) as pid:
        yield pid


def run(pid: int, *argv: str) -> str:
    """Output of a command where `pid` is pid 1."""
    done = subprocess.run([*within(pid), *argv], capture_output=True, text=True, timeout=30, check=False)
    return (done.stdout + done.stderr).strip()
