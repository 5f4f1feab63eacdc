"""A command of gpudiag in a process of its own, for surfaces that must not stand still while a trace is read.

What it says on stderr comes through a terminal of our own, because only there it tells how far it has read.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from knowledge.errors import InputError
from knowledge.text import clean

TICK = 0.1  # seconds between two looks at whether somebody has given it up
GRACE = 2.0  # seconds from the polite signal to the other one
LIMIT = 256 << 20  # bytes of an answer
_KEPT = 1 << 16  # bytes of stderr: its end
_LINE_END = re.compile(rb"[\r\n]+|\x1b\[K")
_READING = re.compile(r"(?:reading|traces) ")
_OWN = "gpudiag: "
_ANSWERED = (0, 1, 3)  # exit codes beside an answer


class Told(NamedTuple):
    """What a command said."""

    code: int
    text: str  # stdout
    remarks: tuple[str, ...]  # lines of stderr, without progress

    def data(self) -> dict[str, Any]:
        """The answer as JSON. InputError where it is none."""
        try:
            found = json.loads(self.text)
        except (ValueError, RecursionError):
            raise InputError("the answer was cut off", hint="; ".join(self.remarks[-2:])) from None
        if not isinstance(found, dict):
            raise InputError("the answer is no object")
        return found


def run(
    words: Sequence[str],
    check: Callable[[], object],
    told: Callable[[str], object] = lambda _: None,
    columns: int = 100,
) -> Told:
    """Carry out ``gpudiag WORDS``.

    `check` is called ten times a second, and what it raises ends the process and comes out of here; `told` gets what
    is read and how far. `columns`: of text. InputError with the command's own words when it gives no answer.
    """
    ours, theirs = _terminal()
    # -P and our own path: neither the current folder nor its absence decides what is imported.
    code = f"import sys; sys.path[:] = {sys.path!r}; from assistant.cli import main; sys.exit(main())"
    argv = [sys.executable, "-P", "-c", code, *words]
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=theirs,
            env=_environ(columns),
            start_new_session=True,
        )
    except OSError as error:
        os.close(ours)
        raise InputError(f"gpudiag {words[0]} cannot be started: {error.strerror or error}") from error
    finally:
        os.close(theirs)
    try:
        out, err = _followed(process, ours, check, told)
        left = _ended(process, check)
    except BaseException:
        _end(process)
        raise
    finally:
        os.close(ours)
        if process.stdout is not None:
            process.stdout.close()
    remarks = tuple(line for line in _lines(err) if not _READING.match(line))
    if left not in _ANSWERED:
        raise InputError(_why(left, remarks))
    return Told(left, out.decode("utf-8", "replace"), remarks)


def _terminal() -> tuple[int, int]:
    """Our end and theirs; a pipe where no terminal can be had: then nothing tells how far it is."""
    with suppress(OSError):
        return os.openpty()
    return os.pipe()


def _environ(columns: int) -> Mapping[str, str]:
    return {**os.environ, "PYTHONUTF8": "1", "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": str(max(20, columns))}


def _followed(
    process: subprocess.Popen[bytes], ours: int, check: Callable[[], object], told: Callable[[str], object]
) -> tuple[bytes, bytes]:  # fmt: skip
    """All of stdout and the end of stderr."""
    assert process.stdout is not None
    out, err = bytearray(), bytearray()
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout.fileno(), selectors.EVENT_READ)
        ready.register(ours, selectors.EVENT_READ)
        while ready.get_map():
            check()
            for key, _ in ready.select(TICK):
                piece = _read(key.fd)
                if not piece:
                    ready.unregister(key.fd)
                elif key.fd == ours:
                    err += piece
                    del err[:-_KEPT]
                    if progress := _progress(piece):
                        told(progress)
                else:
                    out += piece
                    if len(out) > LIMIT:
                        raise InputError(f"the answer is larger than {LIMIT >> 20} MiB", hint="fewer files at once")
    return bytes(out), bytes(err)


def _ended(process: subprocess.Popen[bytes], check: Callable[[], object]) -> int:
    """The exit code."""
    while True:
        check()
        with suppress(subprocess.TimeoutExpired):
            return process.wait(TICK)


def _read(fd: int) -> bytes:
    """What is there; nothing at the end, which a terminal tells by an error."""
    try:
        return os.read(fd, 1 << 16)
    except OSError:
        return b""


def _lines(raw: bytes) -> list[str]:
    return [line for piece in _LINE_END.split(raw) if (line := clean(piece.decode("utf-8", "replace")).strip())]


def _progress(piece: bytes) -> str:
    """The last that it says of how far it is."""
    return next((line for line in reversed(_lines(piece)) if _READING.match(line)), "")


def _why(code: int, remarks: Sequence[str]) -> str:
    """Why there is no answer, in its own words."""
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
        return f"the analysis was ended by signal {name}" + (
            ": is there too little memory?" if name == "SIGKILL" else ""
        )
    said = [line.removeprefix(_OWN) for line in remarks]
    return "\n".join(said[-3:]) or f"no answer (exit code {code})"


def _end(process: subprocess.Popen[bytes]) -> None:
    """End it and what it started: they are ours alone, in a session of their own."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with suppress(OSError):
            os.killpg(process.pid, sign)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
            return
