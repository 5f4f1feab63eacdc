"""Real processes for the tests of captures: interpreters that are found, and jobs (tests/jobs) that run until they are killed.

torch is looked for in GPUDIAG_TORCH_PYTHON (an interpreter that has it), in `.torch/` of the checkout, and here itself.
Interpreters: GPUDIAG_PYTHONS (paths with a colon between), pyenv's folder, `python3.X` on PATH; GPUDIAG_PYTHON314_ROOT is the
root of a file system with Python 3.14, which is run by chroot.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from tests import served_jobs
from tests.components import cannot

ROOT = Path(__file__).parent.parent
JOBS = Path(__file__).parent / "jobs"
OLDEST, NEWEST = (3, 8), (3, 14)
MINORS = range(OLDEST[1], NEWEST[1] + 1)  # of Python 3


def torch_python() -> str:
    """An interpreter that has torch; the test skips without one, and fails when GPUDIAG_REQUIRE names torch."""
    path = _torch_here()
    if not path and "torch" in os.environ.get("GPUDIAG_REQUIRE", "").split(","):
        pytest.fail("torch is required here (GPUDIAG_REQUIRE) and was not found")
    if not path:
        pytest.skip("no interpreter with torch: GPUDIAG_TORCH_PYTHON, or .torch/ in the checkout")
    return path


def _torch_here() -> str:
    for path in (os.environ.get("GPUDIAG_TORCH_PYTHON", ""), str(ROOT / ".torch/bin/python")):
        if path and os.access(path, os.X_OK):
            return path
    return sys.executable if importlib.util.find_spec("torch") is not None else ""


@functools.cache
def pythons() -> tuple[tuple[tuple[int, int], str], ...]:
    """Interpreters that were found, one a minor version: (3, 8) and its path, oldest first."""
    paths = [p for p in os.environ.get("GPUDIAG_PYTHONS", "").split(":") if p]
    home = os.environ.get("PYENV_ROOT", "") or str(Path("~/.pyenv").expanduser())
    paths += sorted(str(p) for p in Path(home).glob("versions/*/bin/python3"))
    paths += [shutil.which(f"python3.{minor}") or "" for minor in MINORS]
    paths.append(sys.executable)
    found: dict[tuple[int, int], str] = {}
    for path in filter(None, paths):
        version = _version([path])
        if version is not None and OLDEST <= version <= NEWEST:
            found.setdefault(version, path)
    root = _chroot()
    if root and os.geteuid() == 0:
        path = f"{root}/usr/bin/python3.14"
        version = _version(_argv(path))
        if version is not None:
            found.setdefault(version, path)
    return tuple(sorted(found.items()))


def python(major: int, minor: int) -> str:
    """The interpreter of this version; the test skips without it."""
    path = dict(pythons()).get((major, minor))
    if path is None:
        cannot(f"python{major}.{minor}", f"Python {major}.{minor} is not here")
    return path


def _version(argv: Sequence[str]) -> tuple[int, int] | None:
    try:
        done = subprocess.run([*argv, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True,
                              timeout=20, check=False)  # fmt: skip
        major, minor = done.stdout.split()
        return int(major), int(minor)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def _chroot() -> str:
    return os.environ.get("GPUDIAG_PYTHON314_ROOT", "").rstrip("/")


def _argv(path: str) -> list[str]:
    root = _chroot()
    return ["chroot", root, path.removeprefix(root)] if root and path.startswith(root + "/") else [path]


def precede(pid: int, nice: int) -> None:
    """Sets where the session of a process stands among others (autogroup), where we may, and where there is such a thing."""
    with suppress(OSError), Path(f"/proc/{pid}/autogroup").open("r+") as file:
        file.write(str(nice))


class Job:
    """A job of tests/jobs (or a script by its path) that runs until the block ends.

    `options`: its words; `interpreter`: of `pythons()` or `torch_python()`; `prefix`: a command in front (unshare, setpriv),
    `pid` is then that of the command; `wait`: seconds for its line "ready". A job with torch is forked from a process that has
    imported it (`served_jobs`), and looks like any other; `plain`: it starts a fresh interpreter. `pause`: seconds that it rests in
    each iteration; with `captures`, the folder in which they will be, only while none is under way (`counters.rest`).
    """

    def __init__(self, script: str, *options: str, interpreter: str = sys.executable, env: Mapping[str, str] | None = None,
                 prefix: Sequence[str] = (), wait: float = 90.0, cwd: str | None = None, plain: bool = False,
                 pause: float = 0.0, captures: Path | None = None) -> None:  # fmt: skip
        self._script, self._options, self._interpreter = script, options, interpreter
        self._env, self._prefix, self._wait, self._cwd = dict(env or {}), list(prefix), wait, cwd
        if pause or captures is not None:
            self._env |= {"GPUDIAG_JOB_PAUSE": str(pause or 0.05), "GPUDIAG_JOB_CAPTURES": str(captures or "")}
        self._plain = plain or bool(prefix) or interpreter != _torch_here()
        self._child: subprocess.Popen[bytes] | served_jobs.ServedJob | None = None

    def __enter__(self) -> Job:
        self.start()
        try:
            self.wait("ready", self._wait)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def start(self) -> None:
        """Begin, without waiting for "ready"."""
        root = _chroot() if len(_argv(self._interpreter)) > 1 else ""
        self.folder = Path(tempfile.mkdtemp(prefix="live-job-", dir=f"{root}/tmp" if root else None))
        self.folder.chmod(0o755)
        (self.folder / "counters").write_bytes(bytes(32))
        (self.folder / "counters").chmod(0o666)
        script = Path(self._script) if "/" in self._script else JOBS / self._script
        if root:
            for name in ("counters.py", script.name):
                shutil.copy(script.parent / name, self.folder / name)
            script = self.folder / script.name
        inside = str(self.folder).removeprefix(root)
        env = served_jobs.ENVIRONMENT | {
            "GPUDIAG_JOB_COUNTERS": f"{inside}/counters", "GPUDIAG_JOB_EXEC": f"{inside}/code", "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": inside,
        }  # fmt: skip
        argv = [*self._prefix, *_argv(self._interpreter), str(script).removeprefix(root), *self._options]
        with (self.folder / "output").open("wb") as out:
            if not self._plain and "import torch" in script.read_text():
                self._child = served_jobs.served(argv, env | self._env, self._cwd, out.fileno())
            if self._child is None:
                self._child = subprocess.Popen(
                    argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=env | self._env, cwd=self._cwd,
                    start_new_session=True, preexec_fn=served_jobs.die_with_parent,  # noqa: PLW1509 - no thread of a test starts one
                )  # fmt: skip

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None) -> None:
        if self._child is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.kill()
            self._child.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def pid(self) -> int:
        """Of the process that was started."""
        assert self._child is not None
        return self._child.pid

    @property
    def output(self) -> str:
        """What it has printed so far."""
        return (self.folder / "output").read_text(errors="replace")

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._child is not None and self._child.poll() is None

    @property
    def status(self) -> int | None:
        """How it ended: its exit status, negative the signal; None while it runs."""
        return self._child.poll() if self._child is not None else None

    def wait(self, line: str, seconds: float = 60.0) -> None:
        """Until it has printed this line. AssertionError when it ends before, or does not in time."""
        until = time.monotonic() + seconds
        while line not in self.output.splitlines():
            assert self.alive, f"{self._script} ended:\n{self.output}"
            assert time.monotonic() < until, f"{self._script} did not say {line!r} in {seconds} s:\n{self.output}"
            time.sleep(0.02)

    def execute(self, code: str) -> None:
        """Run a statement on its main thread at a safe point (SIGUSR1), as an injector would; returns at once."""
        (self.folder / "code").write_text(code)
        os.kill(self.pid, signal.SIGUSR1)

    def said(self, code: str, word: str, seconds: float = 60.0) -> str:
        """The line that begins with `word` and is printed after `execute(code)`. AssertionError when none comes."""
        before = len(self.output)
        self.execute(code)
        until = time.monotonic() + seconds
        while True:
            for line in self.output[before:].splitlines(keepends=True):
                assert not line.startswith("raised"), line
                if line.startswith(word) and line.endswith("\n"):
                    return line.rstrip("\n")
            assert self.alive, self.output
            assert time.monotonic() < until, self.output
            time.sleep(0.02)

    def _counters(self) -> tuple[int, int, int, int]:
        count, longest, last, note = struct.unpack("<4Q", (self.folder / "counters").read_bytes())
        return count, longest, last, note

    @property
    def iterations(self) -> int:
        """So far."""
        return self._counters()[0]

    @property
    def longest_ns(self) -> int:
        """The longest iteration since the start or `forget_longest`."""
        return self._counters()[1]

    @property
    def last_ns(self) -> int:
        """CLOCK_MONOTONIC at the end of the last iteration."""
        return self._counters()[2]

    @property
    def note(self) -> int:
        """The number that a job may use."""
        return self._counters()[3]

    def forget_longest(self) -> None:
        """Count the longest iteration from now on."""
        with (self.folder / "counters").open("r+b", buffering=0) as file:
            file.seek(8)
            file.write(bytes(8))

    def advance(self, iterations: int = 1, seconds: float = 60.0) -> None:
        """Until it has made so many more iterations. AssertionError when it does not."""
        goal, until = self.iterations + iterations, time.monotonic() + seconds
        while self.iterations < goal:
            assert self.alive, f"{self._script} ended:\n{self.output}"
            assert time.monotonic() < until, f"{self._script} does not go on:\n{self.output}"
            time.sleep(0.01)

    def rate(self, seconds: float = 1.0) -> float:
        """Iterations a second, measured for so long."""
        begin, at = self.iterations, time.monotonic()
        time.sleep(seconds)
        return (self.iterations - begin) / (time.monotonic() - at)


class Ranks:
    """The ranks of one job (ranks.py, or another `script`) over gloo on this machine: `jobs` in the order of their rank.

    `more`: as for each `Job`.
    """

    def __init__(
        self,
        *options: str,
        size: int = 2,
        interpreter: str | None = None,
        wait: float = 120.0,
        script: str = "ranks.py",
        **more: Any,
    ) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(size),
                  "TORCHELASTIC_RUN_ID": f"job-{port}"}  # fmt: skip
        self.jobs = [
            Job(
                script,
                *options,
                interpreter=interpreter or torch_python(),
                env=common | {"RANK": str(r), "LOCAL_RANK": str(r)},
                **more,
            )
            for r in range(size)
        ]
        self._wait, self._stack = wait, ExitStack()

    def __enter__(self) -> Ranks:
        try:
            for job in self.jobs:
                job.start()
                self._stack.callback(job.__exit__, None, None, None)
            for job in self.jobs:
                job.wait("ready", self._wait)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()
