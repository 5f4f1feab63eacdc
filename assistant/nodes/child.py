"""Has recordings read by a child, and hands on each as soon as it is told."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from assistant.nodes.bundles import Told, request, told_in
from knowledge.language import Text

PATIENCE = 0.2  # seconds between two looks at whether it is still wanted
_CHUNK = 1 << 16


def reading(
    paths: Sequence[str], *, site: str | None = None, packs: Sequence[str] = (), check: Callable[[], None] = lambda: None
) -> Iterator[Told]:  # fmt: skip
    """Each of `paths`, in this order. `check` is called often, and what it raises ends the child.

    Recordings that the child did not come to, because it broke down, are told as such.
    """
    if not paths:
        return
    left = list(paths)
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "assistant.nodes"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        assert child.stdin is not None
        with suppress(BrokenPipeError):
            child.stdin.write(request(paths, site, packs).encode())
            child.stdin.close()
        for line in _lines(child, check):
            told = told_in(line)
            left.remove(told.path)
            yield told
        child.wait()
    finally:
        _end(child)
    why = Text(f"the process that reads it ended ({child.returncode})", f"读取它的进程已结束（{child.returncode}）")
    yield from (Told(path, "", None, why) for path in left)


def _lines(child: subprocess.Popen[bytes], check: Callable[[], None]) -> Iterator[str]:
    assert child.stdout is not None
    kept = b""
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            check()
            if not selector.select(PATIENCE):
                continue
            part = os.read(child.stdout.fileno(), _CHUNK)
            if not part:
                return
            *whole, kept = (kept + part).split(b"\n")
            yield from (line.decode() for line in whole)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Nothing of it stays, whether it has finished or is not wanted any more."""
    if child.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
    child.wait()
