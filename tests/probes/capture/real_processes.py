"""Real processes in odd states, for the tests of targets: other users, namespaces, traced, stopped, dead, uninterruptible."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.components import cannot
from tests.probes.live.machine import NOBODY, SYSTEM_PYTHON, need_nobody, need_open_checkout

ROOT = Path(__file__).parents[3]
# The interpreter itself and not the environment's link to it: some tests mount over the folder that the checkout lies in.
PYTHON = [str(Path(sys.executable).resolve()), "-I", "-S"]
SLEEP = "print('ready', flush=True); import time; time.sleep(120)"
# A shell that holds device files of a GPU which is none; nobody else sees them.
DEVICES = (
    "mount -t tmpfs none /dev; for d in null nvidia0 nvidiactl nvidia-uvm; do mknod -m 666 /dev/$d c 1 3; done; "
    'exec 8</dev/nvidia0 9</dev/nvidia-uvm; exec "$@"'
)


@contextmanager
def started(argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Iterator[int]:
    """A child in a process group of its own, once it has said that it is ready; the whole group is killed at the end."""
    child = subprocess.Popen(
        argv,
        env=None if env is None else dict(env),
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        cwd=cwd,
        start_new_session=True,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        yield child.pid
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.kill()
        child.wait()
        child.stdout.close() if child.stdout else None


def sleeping(*words: str, env: Mapping[str, str] | None = None) -> Any:
    """A Python that sleeps, with these words behind it."""
    return started([*PYTHON, "-c", SLEEP, *words], env=env)


def until(true: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    """Wait for something that comes soon. AssertionError when it does not."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def state(pid: int) -> str:
    """R, S, D, T, t, Z; empty without such a process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def catches(pid: int, number: int) -> None:
    """Wait until a process has a handler for a signal: sent any earlier, it would just end."""

    def caught() -> bool:
        status = Path(f"/proc/{pid}/status").read_text()
        mask = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
        return bool(int(mask.split()[1], 16) >> (number - 1) & 1)

    until(caught, f"process {pid} does not catch signal {number}")


def in_state(pid: int, *states: str) -> None:
    """Wait until a process is in one of these states."""
    until(lambda: state(pid) in states, f"process {pid} is in state {state(pid)}, not in {states}")


def children(pid: int) -> list[int]:
    """Pids of the children."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if path.read_text().rpartition(")")[2].split()[1] == str(pid):
                found.append(int(path.parent.name))
    return sorted(found)


@contextmanager
def zombie() -> Iterator[int]:
    """A process that has ended, and whose parent does not ask how."""
    code = "import os, time\npid = os.fork()\nif not pid: os._exit(0)\nprint('ready', flush=True)\ntime.sleep(120)"
    with started([*PYTHON, "-c", code]) as parent:
        (pid,) = children(parent)
        in_state(pid, "Z")
        yield pid


VFORK = """
#include <unistd.h>
int wait_for_child(void) {
  if (vfork() == 0) { if (write(1, "ready\\n", 6) < 0) _exit(1); for (;;) pause(); }
  return 0;
}
"""


@contextmanager
def uninterruptible(folder: Path) -> Iterator[int]:
    """A Python in state D: it has called vfork, and its child takes its time. `folder`: for a small library."""
    if shutil.which("cc") is None:
        cannot("cc", "a process in state D needs a C compiler")
    (folder / "wait.c").write_text(VFORK)
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", str(folder / "wait.so"), str(folder / "wait.c")], check=True, timeout=60
    )
    code = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).wait_for_child()"
    with started([*PYTHON, "-c", code, str(folder / "wait.so")]) as pid:
        in_state(pid, "D")
        yield pid


def as_nobody(code: str, *words: str, before: Sequence[str] = ()) -> Any:
    """What a program of user nobody prints as JSON; it may import gpudiag. `before`: a command in front of it."""
    python = need_nobody()
    need_open_checkout()
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*NOBODY, *before, python, "-c", code, *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=env,
        cwd="/",
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def of_nobody(code: str = SLEEP, *words: str) -> Any:
    """A process of user nobody."""
    return started([*NOBODY, need_nobody(), "-I", "-S", "-c", code, *words])


def system_python() -> str:
    """An interpreter that any user may run."""
    return SYSTEM_PYTHON


@contextmanager
def group(name: str, controller: str = "") -> Iterator[Path]:
    """A control group of one's own; skips where none can be made. Processes in it have to end before the block does."""
    for base in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup") if not controller else (f"/sys/fs/cgroup/{controller}",):
        if (Path(base) / "cgroup.procs").exists():
            break
    else:
        cannot("cgroups", "no control groups are mounted here")
    folder = Path(base) / name
    made = []
    try:
        for one in (*reversed(folder.parents), folder):
            if not one.exists():
                one.mkdir()
                made.append(one)
    except OSError as error:
        for one in reversed(made):
            one.rmdir()
        cannot("cgroups", f"no control group can be made here: {error}")
    try:
        yield folder
    finally:
        for one in reversed(made):
            until(lambda one=one: _removed(one), f"{one} is still in use")  # type: ignore[misc]


def _removed(folder: Path) -> bool:
    with suppress(OSError):
        folder.rmdir()
    return not folder.exists()
