"""Jobs with torch without its import (3 CPU seconds): forked from a process that has it, one for each interpreter in a test run.

The server is `tests/jobs/served/sitecustomize.py`. What a look into the job finds is what it finds of any: program, command
line, environment, folder, session, stacks. Where that cannot be had (no checkpoint-restore in the kernel), there is no server.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import secrets
import select
import signal
import socket
import subprocess
import time
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

_FOLDER = Path(__file__).parent / "jobs/served"
_LONGEST = 1000  # characters of a script's path
# Variables that are read when a process begins, or when torch is imported.
_AT_START = ("PYTHON", "LD_", "OMP_", "OPENBLAS_", "MKL_", "KINETO_", "TORCH_", "CUDA_")
_PRCTL = ctypes.CDLL(None).prctl
_begun: list[subprocess.Popen[bytes]] = []  # that end by themselves
# As this process began: a Dask worker that a test starts leaves OMP_NUM_THREADS=1 and its like in `os.environ`, and every job
# after it would import torch by itself.
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("GPUDIAG_")}


def die_with_parent() -> None:
    """A test run that is killed leaves no job behind (prctl PR_SET_PDEATHSIG)."""
    _PRCTL(1, signal.SIGKILL)


def running_jobs() -> set[int]:
    """Jobs of whichever worker that a server of this process has forked."""
    jobs: set[int] = set()
    for server in _begun:
        with suppress(psutil.NoSuchProcess):
            jobs |= {child.pid for child in psutil.Process(server.pid).children(recursive=True)}
    return jobs


class ServedJob:
    """A process that a server has forked, with what tests need of `subprocess.Popen`."""

    def __init__(self, pid: int, said: socket.socket) -> None:
        self.pid = pid
        self._said = said
        self._status: int | None = None

    def poll(self) -> int | None:
        """Its exit status, negative the signal; None while it runs."""
        if self._status is None and not select.select([self._said], [], [], 0)[0]:
            return None
        return self.wait()

    def wait(self) -> int:
        """Until it has ended, and nobody has its pid."""
        if self._status is None:
            self._status = int(self._said.recv(16) or -signal.SIGKILL)  # silence: it ended with its server
            self._said.close()
        return self._status

    def kill(self) -> None:
        """End it."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


class _Server:
    def __init__(self, interpreter: str, env: Mapping[str, str]) -> None:
        """As a job is started, but for what the server needs, which no job sees.

        All workers of a test run share it. Its address is free with the last of them, and belongs to whoever binds it first: that
        one begins the server, which hears them once it has loaded and ends with the run.
        """
        self.env = dict(env)
        run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
        address = f"\0gpudiag-jobs-{run}-{zlib.crc32(interpreter.encode()):x}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener, suppress(OSError):
            listener.bind(address)
            listener.listen(64)
            self._begin(interpreter, listener)
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.works = self._heard(address)

    def _begin(self, interpreter: str, listener: socket.socket) -> None:
        script = f"/{secrets.token_hex(_LONGEST // 2)}"
        owner = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
        own = {"PYTHONPATH": str(_FOLDER), "JOB_SERVER_SCRIPT": script, "JOB_SERVER_OWNER": str(owner)}
        env = self.env | own | {"OPENBLAS_NUM_THREADS": "1"}
        _begun.append(subprocess.Popen([interpreter, script], env=env, stdin=listener.fileno(), start_new_session=True))

    def _heard(self, address: str) -> bool:
        until = time.monotonic() + 1
        while True:
            try:
                self._line.connect(address)
                return self._line.recv(16) == b"ready"
            except ConnectionRefusedError:  # bound, and not yet listened at; or ended: it works nowhere
                if time.monotonic() > until:
                    return False
                time.sleep(0.02)
            except ConnectionResetError:
                return False

    def start(self, argv: Sequence[str], env: Mapping[str, str], cwd: str | None, output: int) -> ServedJob | None:
        """A job, whose standard output and error go to `output`; None where that cannot be."""
        said, tell = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with tell, Path(os.devnull).open("rb") as nothing:
            request = json.dumps({"argv": [*argv], "env": {**env}, "cwd": cwd}).encode()
            socket.send_fds(self._line, [request], [nothing.fileno(), output, tell.fileno()])
        word, _, number = said.recv(32).partition(b" ")
        if word == b"pid":
            return ServedJob(int(number), said)
        said.close()
        return None


@functools.cache
def _server(interpreter: str) -> _Server:
    return _Server(interpreter, ENVIRONMENT | {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"})


def served(argv: Sequence[str], env: Mapping[str, str], cwd: str | None, output: int) -> ServedJob | None:
    """A job with torch, that is started as `argv` says; None where it has to be started by itself.

    So it has to be when something of its environment counts from the beginning of a process.
    """
    server = _server(argv[0])
    early = any(name.startswith(_AT_START) and server.env.get(name) != value for name, value in env.items())
    return server.start(argv, env, cwd, output) if server.works and not early else None
