"""Injections, each in a process of its own: forked from a small one, which has loaded nothing else. For the tests of the injector."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from probes.capture.inject import pending
from probes.capture.inject._refusals import InjectError

ROOT = Path(__file__).parents[3]


class Injections:
    """The process that forks; until the block ends."""

    def __enter__(self) -> Injections:
        argv = [sys.executable, "-m", "tests.probes.capture.injections"]
        self._child = subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None) -> None:
        self._child.communicate()

    def inject(
        self,
        pid: int,
        code: str,
        seconds: float,
        *,
        killed_before: int | None = None,
        killed_after: float | None = None,
    ) -> object:
        """What `pending.inject` answers (its refusal's code), or the number of the signal that ended it.

        `killed_before`: which of its ptrace requests (from 0) it is killed before; `killed_after`: seconds after the first.
        """
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps([pid, code, seconds, killed_before, killed_after]) + "\n")
        self._child.stdin.flush()
        return json.loads(self._child.stdout.readline())


class _Death:
    """Comes before a request, or a while after the first."""

    def __init__(self, before: int | None, after: float | None) -> None:
        self._before, self._after, self._count = before, after, 0

    def __call__(self, _: str) -> None:
        if self._after is not None and not self._count:
            threading.Timer(self._after, os.kill, (os.getpid(), signal.SIGKILL)).start()
        if self._count == self._before:
            os.kill(os.getpid(), signal.SIGKILL)
        self._count += 1


def _injected(pid: int, code: str, seconds: float, before: int | None, after: float | None) -> object:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        done = pending.inject(pid, code, until=time.monotonic() + seconds, before=_Death(before, after))
    except InjectError as error:
        return error.refusal.code
    except BaseException as error:  # noqa: BLE001 - a fork must not go on as the process that forks
        return repr(error)
    return {"answered": done.answered, "how": done.how}


def _forked(wish: list[Any]) -> object:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, json.dumps(_injected(*wish)).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        data = file.read()
    _, status = os.waitpid(child, 0)
    return json.loads(data) if data else -os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(_forked(json.loads(line))), flush=True)
