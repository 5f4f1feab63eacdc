"""Asking a running Python process to run a short statement: which ways there are, and doing it.

The work is done in a child process (`_injector`) with signals blocked and a hard deadline. Whatever becomes of that child, the target
goes on: see `pending`. Afterwards the target is looked at: it must be traced by nobody, and not stopped.

Codes of a refusal: gone, zombie, stopped, tracer, state-d, no-python, no-pending-call, free-threaded, arch, no-permission
(with its kinds, `_access`), yama, remote-debug-off, queue-full, no-answer, failed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from knowledge.language import Text
from knowledge.record import dataclass
from probes.capture.inject import _injector, gdb, interpreter, ptrace, remote_exec
from probes.capture.inject._places import shadow_stack
from probes.capture.inject._refusals import InjectError, refusal, refuse
from probes.capture.inject.elf import EM_X86_64
from probes.capture.inject.interpreter import ADD, RUN, Image
from probes.capture.model import Process, Python, Refusal, Rung
from probes.capture.whom import _access

__all__ = ["InjectError", "Injected", "able", "run"]

OLDEST, NEWEST = (3, 8), (3, 14)
ORDER = (Rung.REMOTE_EXEC, Rung.PENDING_CALL, Rung.GDB)
# after these the next way is tried: nothing was asked of the target yet
_NEXT = frozenset({"arch", "no-pending-call", "remote-debug-off", "free-threaded"})
_GRACE = 3.0  # seconds over the deadline before the child is killed
_GDB_GRACE = 60.0  # gdb must not be killed while it works
_CALM = 1.0  # seconds for the target to be seen untraced


@dataclass(frozen=True, slots=True)
class Injected:
    """The call was run (through gdb: was queued)."""

    rung: Rung
    seconds: float  # from asking to the answer
    detail: str = ""
    stopped_ns: int = 0  # how long the borrowed thread was stopped; 0: not told


def able(process: Process, *, force: bool = False) -> tuple[Rung, ...] | Refusal:
    """The ways that would work, best first, or why none would. Looks, and touches nothing.

    `force` passes over what may be passed over at one's own risk (`Refusal.forced`).
    """
    over = _standing(process)
    if over is not None and not (force and over.forced):
        return over
    python, image = interpreter.read(process.pid), interpreter.image(process.pid)
    if denied := _access.may_look(process):
        return denied
    if python is None or image is None:
        return refusal("no-python")
    if not OLDEST <= python.version <= NEWEST:
        said = ".".join(map(str, python.version))
        return refusal("no-python", f"Python {said}; 3.8 to 3.14 are known", f"Python {said};支持 3.8 至 3.14")
    if barred := _barred():
        return barred
    reasons = {rung: _against(rung, process.pid, python, image) for rung in ORDER}
    ways = tuple(rung for rung, reason in reasons.items() if reason is None)
    if ways:
        return ways
    return reasons[Rung.PENDING_CALL] or refusal("no-pending-call")


def run(process: Process, code: str, *, rungs: Sequence[Rung] = (), deadline: float = 5.0) -> Injected:
    """Let the main thread of `process` run `code`, a short statement that must not block; returns when it has run.

    It runs in a namespace of its own, and what it raises is dropped. `rungs`: the ways to try, in order; none given: those that
    `able` names. Raises InjectError. With `no-answer` the call may still run later: it must do nothing harmful then.
    """
    if not rungs:
        ways = able(process)
        if isinstance(ways, Refusal):
            raise InjectError(ways)
        rungs = ways
    elif denied := _access.may_look(process):
        raise InjectError(denied)
    until = time.monotonic() + deadline
    last: InjectError | None = None
    for rung in rungs:
        if over := _standing(process):
            raise InjectError(over)
        try:
            done = _child(process, code, rung, until)
        except InjectError as error:
            last = error
            _calm(process)
            if error.refusal.code in _NEXT or (
                rung is Rung.REMOTE_EXEC and error.refusal.code in ("failed", "no-permission")
            ):
                continue
            raise
        _calm(process)
        return done
    raise last or refuse("no-pending-call")


def _standing(process: Process) -> Refusal | None:
    """What speaks against it in how the process stands right now."""
    stat, status = _stat(process.pid), _status(process.pid)
    if not stat or (process.start and stat[19] != str(process.start)):
        return refusal("gone")
    state = stat[0]
    if state in "ZX":
        return refusal("zombie")
    tracer = status.get("TracerPid", "0")
    if tracer != "0" or state == "t":
        name = _comm(tracer)
        return refusal("tracer", f"{name}, pid {tracer}" if name else f"pid {tracer}")
    if state == "T":
        return refusal("stopped")
    if state == "D" and _stays_in_d(process.pid):
        return refusal("state-d")
    return None


def _stays_in_d(pid: int) -> bool:
    """A job that reads files is in state D now and then; only one that stays there is refused."""
    for _ in range(10):
        time.sleep(0.02)
        if _stat(pid)[:1] != ["D"]:
            return False
    return True


def _barred() -> Refusal | None:
    """Rules that concern tracing, beyond looking into memory."""
    if not ptrace.allowed():
        return refusal(
            "no-permission", "a seccomp filter forbids the system call ptrace", "seccomp 过滤器禁止 ptrace 系统调用"
        )
    level, capable = _access.yama(), int(_status(os.getpid()).get("CapEff", "0"), 16) >> _access.SYS_PTRACE & 1
    # at level 1 descendants may be traced, but it is a child of ours that traces, and the target is none of its descendants
    if level == 3 or (level in (1, 2) and not capable):
        return refusal("yama", f"kernel.yama.ptrace_scope = {level}")
    return None


def _against(rung: Rung, pid: int, python: Python, image: Image) -> Refusal | None:
    """What speaks against one way; None when nothing does."""
    free = interpreter.free_threaded(image)
    if rung is Rung.REMOTE_EXEC:
        if python.version < remote_exec.OLDEST:
            return refusal(
                "no-pending-call", "sys.remote_exec came with Python 3.14", "sys.remote_exec 自 Python 3.14 起提供"
            )
        return remote_exec.able(pid)
    if free:
        return refusal("free-threaded")
    shadow = shadow_stack(pid)
    if rung is Rung.PENDING_CALL:
        if not ptrace.supported() or image.machine != EM_X86_64 or shadow:
            return refusal("arch", "shadow stacks are on" if shadow else os.uname().machine)
        missing = [n for n in (ADD, RUN) if n not in image.symbols]
        return refusal("no-pending-call", f"{missing[0]} is not exported", f"未导出 {missing[0]}") if missing else None
    return refusal("arch", "shadow stacks are on", "已启用影子栈") if shadow else gdb.able(image)


# --- the child ------------------------------------------------------------------------------------


def _child(process: Process, code: str, rung: Rung, until: float) -> Injected:
    request = json.dumps({"pid": process.pid, "start": process.start, "code": code, "rung": rung, "until": until})
    grace = _GDB_GRACE if rung is Rung.GDB else _GRACE
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", "-B", _injector.__file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        out, errors = child.communicate(request.encode(), timeout=max(until - time.monotonic(), 0.0) + grace)
    except subprocess.TimeoutExpired:
        child.kill()
        with suppress(subprocess.TimeoutExpired):
            child.communicate(timeout=1.0)
        raise refuse("failed", "the injector hung and was ended", "注入进程挂起,已被终止") from None
    return _answer(out, errors, rung)


def _answer(out: bytes, errors: bytes, rung: Rung) -> Injected:
    try:
        answer: dict[str, Any] = json.loads(out)
    except ValueError:
        said = errors.decode(errors="replace").strip().splitlines()[-1:] or ["it ended without a word"]
        raise refuse("failed", said[0][:200]) from None
    if "refusal" in answer:
        said = answer["refusal"]
        raise InjectError(Refusal(said["code"], Text(**said["why"]), Text(**said["remedy"]), said["forced"]))
    return Injected(rung, float(answer["seconds"]), str(answer["detail"]), int(answer.get("stopped_ns", 0)))


def _calm(process: Process) -> None:
    """The target must be traced by nobody and not be left in a tracing stop."""
    until = time.monotonic() + _CALM
    while True:
        threads = _traced(process.pid)
        if not threads:
            return
        if time.monotonic() >= until:
            who = ", ".join(f"{tid}" for tid in threads[:4])
            raise refuse("failed", f"threads {who} are still traced", f"线程 {who} 仍被跟踪")
        time.sleep(0.01)


def _traced(pid: int) -> list[int]:
    """Threads of the process that somebody traces."""
    found = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                text = (task / "status").read_text(errors="replace")
                if "\nTracerPid:\t0\n" not in text:
                    found.append(int(task.name))
    return found


# --- /proc ------------------------------------------------------------------------------------------


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the state on; none when there is no such process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
    return fields if len(fields) > 19 else []


def _status(pid: int) -> dict[str, str]:
    try:
        text = Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return {}
    return {n: v.strip() for n, _, v in (line.partition(":") for line in text.splitlines())}


def _comm(pid: str) -> str:
    try:
        return Path(f"/proc/{int(pid)}/comm").read_text(errors="replace").strip()
    except (OSError, ValueError):
        return ""
