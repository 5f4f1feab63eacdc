"""A real systemd, as pid 1 of namespaces of its own, that runs the shipped unit."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.probes.live.machine import cannot, need_mounts

ROOT = Path(__file__).parent.parent.parent.parent
UNIT = ROOT / "assistant" / "deploy" / "gpudiag-watch.service"
SYSTEMD = "/usr/lib/systemd/systemd"
BOOT = """
echo 0 > "$3/cgroup.procs"
exec unshare -C sh -euc "$4" sh "$1" "$2"
"""
INSIDE = """
for place in /run /etc/systemd /opt /var/lib /var/cache /var/tmp; do mount -t tmpfs -o mode=755 none $place; done
mkdir -p /etc/systemd/system /run/systemd/system /opt/gpudiag/bin /var/cache/gpudiag
cp -r "$1"/units/* /etc/systemd/system/
cp "$1/gpudiag" /opt/gpudiag/bin/gpudiag
cp -r "$1/cache/." /var/cache/gpudiag/
mount -t proc proc /proc
mount -t tmpfs none /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
exec env -i container=test PATH=/usr/bin:/bin "$2" --unit=test.target --log-target=console --log-level=warning --show-status=no
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
        inside = ["nsenter", "-t", str(self.pid), "-m", "-p", "-C", *argv]
        done = subprocess.run(inside, capture_output=True, text=True, timeout=30, check=False)
        return (done.stdout + done.stderr).strip()

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
    need_mounts()
    if not Path(SYSTEMD).exists():
        cannot("systemd", "systemd is not installed")
    units = folder / "units"
    (units / "gpudiag-watch.service.d").mkdir(parents=True)
    shutil.copy(UNIT, units)
    (units / "gpudiag-watch.service.d" / "test.conf").write_text(HERE.format(folder=folder, port=port, root=ROOT))
    (units / "test.target").write_text("[Unit]\nDefaultDependencies=no\nWants=gpudiag-watch.service\n")
    program = folder / "gpudiag"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -B -m assistant "$@"\n')
    program.chmod(0o755)
    (folder / "cache").mkdir()
    shutil.copytree(cache, folder / "cache", dirs_exist_ok=True)
    group = _control_group()
    words: Sequence[str] = [BOOT, "sh", str(folder), SYSTEMD, str(group), INSIDE]
    with (folder / "systemd.log").open("w") as log:
        child = subprocess.Popen(
            ["unshare", "-p", "-f", "-m", "--propagation", "private", "--kill-child", "sh", "-euc", *words],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        made = Lab(_first_child(child), folder, port)
        for _ in range(100):
            if made.run("systemctl", "is-system-running") in ("running", "degraded", "starting"):
                break
            time.sleep(0.1)
        else:
            cannot("systemd", "systemd does not start in a namespace here")
        yield made
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
        _remove(group)


def _control_group() -> Path:
    lines = [line.split(" - ") for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    points = [before.split()[4] for before, after in lines if after.startswith("cgroup2 ")]
    group = Path(points[0] if points else "/none") / f"gpudiag-watch-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        cannot("systemd", f"no control group can be made here: {error}")
    return group


def _remove(group: Path) -> None:
    for _ in range(50):
        with suppress(OSError):
            for below, _, _ in os.walk(group, topdown=False):
                Path(below).rmdir()
        if not group.exists():
            return
        time.sleep(0.05)


def _first_child(child: subprocess.Popen[bytes]) -> int:
    for _ in range(50):
        found = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split() if child.poll() is None else []
        if found:
            return int(found[0])
        time.sleep(0.05)
    cannot("systemd", "no process namespace here")
    raise AssertionError
