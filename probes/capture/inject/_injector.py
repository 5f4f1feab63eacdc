"""The process that injects: ``python -I -S -B _injector.py``, one request as JSON on standard input, one answer on output.

It is a process of its own so that nothing of gpudiag, and no signal, can come between while a thread is borrowed; when it is killed,
the kernel detaches the target, which heals (`pending`). All signals that can be blocked are.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from probes.capture.inject import gdb, pending, remote_exec
from probes.capture.inject._refusals import InjectError, refuse
from probes.capture.model import Rung

_NICE = -10  # the stop of the borrowed thread is as long as we take: be in front where we may


def perform(request: dict[str, Any]) -> dict[str, Any]:
    """Inject, and say what came of it."""
    pid, code, until = int(request["pid"]), str(request["code"]), float(request["until"])
    try:
        rung = Rung(request["rung"])
        if not _same(pid, int(request.get("start", 0))):
            raise refuse("gone")
        if rung is Rung.PENDING_CALL:
            done = pending.inject(pid, code, until=until)
            if not done.answered:
                raise refuse("no-answer")
            detail = f"thread {done.tid} {done.how}, stopped for {done.stopped_ns / 1e6:.1f} ms"
            return {"seconds": done.seconds, "detail": detail, "stopped_ns": done.stopped_ns}
        if rung is Rung.REMOTE_EXEC:
            return {"seconds": remote_exec.inject(pid, code, until=until), "detail": "sys.remote_exec"}
        text = pending.wrap(code, pending.inner(pid))
        return {"seconds": gdb.inject(pid, text, until=until), "detail": "gdb; all threads were stopped meanwhile"}
    except InjectError as error:
        return {"refusal": asdict(error.refusal)}
    except OSError as error:
        gone = isinstance(error, ProcessLookupError) or not Path(f"/proc/{pid}").exists()
        return {"refusal": asdict(refuse("gone" if gone else "failed", "" if gone else str(error)).refusal)}


def _same(pid: int, start: int) -> bool:
    """Whether it is still the process that was looked at: a number is used again. `start`: 0 where it is not known."""
    fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    return not start or fields[19] == str(start)


def main() -> None:
    """One request, one answer."""
    request = json.loads(sys.stdin.read())
    if request["rung"] != Rung.GDB:  # gdb would inherit it, and be deaf to its target's stops and to our wish to quit
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    if request["rung"] == Rung.PENDING_CALL:
        with suppress(OSError):
            os.nice(_NICE)
    print(json.dumps(perform(request)), flush=True)


if __name__ == "__main__":
    main()
