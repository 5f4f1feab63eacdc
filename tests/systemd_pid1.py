"""A real systemd as pid 1 of namespaces of its own, for tests; skips where none can be had."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.components import cannot
from tests.probes.live.machine import need_mounts

SYSTEMD = "/usr/lib/systemd/systemd"
_BOOT = """
echo 0 > "$3/cgroup.procs"
exec unshare -C sh -euc "$4" sh "$1" "$2"
"""
# The scripts of the tests lay their units out first; then this starts a target that wants nothing else.
_START = """
mount -t proc proc /proc
mount -t tmpfs none /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
exec env -i container=test PATH=/usr/bin:/bin "$2" --unit=test.target --log-target=console --log-level=warning --show-status=no
"""


def within(pid: int) -> list[str]:
    """The words ahead of a command that is to run where `pid` is pid 1."""
    return ["nsenter", "-t", str(pid), "-m", "-p", "-C"]


@contextmanager
def systemd(folder: Path, layout: str, ready: Callable[[int], bool]) -> Iterator[int]:
    """The pid, seen from here, of a systemd that is `ready`; its log is ``systemd.log`` in `folder`.

    `layout` is a shell script that runs first, in the mount namespace; ``$1`` is `folder`.
    """
    need_mounts()
    if not Path(SYSTEMD).exists():
        cannot("systemd", "systemd is not installed")
    group = _control_group(folder.name)
    words = [_BOOT, "sh", str(folder), SYSTEMD, str(group), layout + _START]
    with (folder / "systemd.log").open("w") as log:
        child = subprocess.Popen(
            ["unshare", "-p", "-f", "-m", "--propagation", "private", "--kill-child", "sh", "-euc", *words],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        pid = _first_child(child)
        for _ in range(100):
            if ready(pid):
                break
            time.sleep(0.1)
        else:
            cannot("systemd", "systemd does not start in a namespace here")
        yield pid
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
        _remove(group)


def _control_group(name: str) -> Path:
    """A control group of our own: what systemd makes is made below it, and goes with it."""
    lines = [line.split(" - ") for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    points = [before.split()[4] for before, after in lines if after.startswith("cgroup2 ")]
    group = Path(points[0] if points else "/none") / f"gpudiag-test-{os.getpid()}-{name}"
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
