"""ptrace of one thread, x86-64: the few requests that the injector makes, and what a stop means.

Two habits keep the tracee safe from the death of the tracer at any moment, which the kernel answers by detaching:

* Stops are looked at with WNOWAIT. A stop that was fetched loses its signal when the tracer dies then; one that was only
  looked at delivers it. PTRACE_O_TRACESYSGOOD makes a stop at a system call no SIGTRAP, which would kill.
* Never PTRACE_SINGLESTEP (the trap flag outlives the tracer), no breakpoint, no debug register.

Requests and stops: ptrace(2). Standard library only. A tracer is one thread of one process: requests of another one fail.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from enum import Enum

from knowledge.record import dataclass

_WALL = 0x40000000
_CONT, _DETACH, _SYSCALL = 7, 17, 24
_SEIZE, _INTERRUPT = 0x4206, 0x4207
_GETREGSET, _SETREGSET = 0x4204, 0x4205
_GETSIGMASK, _SETSIGMASK = 0x420A, 0x420B
_RSEQ = 0x420F  # PTRACE_GET_RSEQ_CONFIGURATION, Linux 5.13
_OPTIONS = 1  # TRACESYSGOOD
_PRSTATUS, _XSTATE = 1, 0x202
_EVENT_STOP = 128
_MOST_XSTATE = 64 << 10  # bytes; AMX makes it 11 KiB
_SLICE = 0.002  # seconds: SIGCHLD may go to another thread of ours, so waiting looks again
NAMES = (
    "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi", "orig_rax", "rip",
    "cs", "eflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs",
)  # fmt: skip  # struct user_regs_struct, x86-64
Registers = dict[str, int]


class Kind(Enum):
    """What a stop, or the lack of one, is."""

    INTERRUPT = "interrupt"  # asked for by `interrupt`
    GROUP = "group"  # the whole process is stopped (SIGSTOP)
    SYSCALL = "syscall"  # at the entry or the exit of a system call
    SIGNAL = "signal"  # a signal is about to be delivered
    GONE = "gone"  # the thread has ended
    LATE = "late"  # nothing until the time given


@dataclass(frozen=True, slots=True)
class Stop:
    """One stop of the tracee."""

    kind: Kind
    signal: int = 0


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class _Rseq(ctypes.Structure):
    _fields_ = (("pointer", ctypes.c_uint64), ("size", ctypes.c_uint32), ("signature", ctypes.c_uint32),
                ("flags", ctypes.c_uint32), ("pad", ctypes.c_uint32))  # fmt: skip


def supported() -> bool:
    """Whether this machine is one that the injector knows: x86-64 Linux, 64 bits."""
    return platform.machine() == "x86_64" and ctypes.sizeof(ctypes.c_void_p) == 8


def allowed() -> bool:
    """Whether the ptrace system call exists for us at all: a container's seccomp filter may forbid it."""
    try:
        _call(_CONT, 0x7FFFFFFF, 0, 0)  # no such thread
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return True  # pragma: no cover - there is no such thread


class Thread:
    """One traced thread. `before` is told the name of each request before it is made: for tests of dying in between."""

    def __init__(self, tid: int, before: Callable[[str], None] = lambda _: None) -> None:
        self.tid = tid
        self._before = before

    def seize(self) -> None:
        """Begin to trace; the thread goes on. OSError as ptrace gives it."""
        self._request("seize", _SEIZE, 0, _OPTIONS)

    def interrupt(self) -> None:
        """Ask for a stop; nothing is delivered to the thread."""
        self._request("interrupt", _INTERRUPT, 0, 0)

    def go(self, sent: int = 0) -> None:
        """Go on, delivering `sent`."""
        self._request("cont", _CONT, 0, sent)

    def interrupt_and_go(self, sent: int = 0) -> None:
        """Go on until the stop that is asked for: each stop of another kind takes the request back (ptrace_stop in the kernel)."""
        self.interrupt()
        self.go(sent)

    def go_to_syscall(self, sent: int = 0) -> None:
        """Go on to the next entry or exit of a system call."""
        self._request("syscall", _SYSCALL, 0, sent)

    def detach(self, sent: int = 0) -> None:
        """Let go. A thread that has gone meanwhile is let go already."""
        with suppress(ProcessLookupError):
            self._request("detach", _DETACH, 0, sent)

    def registers(self) -> Registers:
        """The general registers."""
        values = (ctypes.c_uint64 * len(NAMES))()
        self._set("getregs", _GETREGSET, _PRSTATUS, ctypes.addressof(values), ctypes.sizeof(values))
        return dict(zip(NAMES, values, strict=True))

    def set_registers(self, registers: Registers) -> None:
        """Set the general registers."""
        values = (ctypes.c_uint64 * len(NAMES))(*(registers[n] & 0xFFFFFFFFFFFFFFFF for n in NAMES))
        self._set("setregs", _SETREGSET, _PRSTATUS, ctypes.addressof(values), ctypes.sizeof(values))

    def extended(self) -> bytes:
        """The extended state (SSE, AVX, AVX-512, AMX) as XSAVE lays it out."""
        buffer = ctypes.create_string_buffer(_MOST_XSTATE)
        length = self._set("getxstate", _GETREGSET, _XSTATE, ctypes.addressof(buffer), _MOST_XSTATE)
        return buffer.raw[:length]

    def set_extended(self, state: bytes) -> None:
        """Set the extended state."""
        buffer = ctypes.create_string_buffer(state, len(state))
        self._set("setxstate", _SETREGSET, _XSTATE, ctypes.addressof(buffer), len(state))

    def mask(self) -> int:
        """Blocked signals, bit n-1 for signal n."""
        value = ctypes.c_uint64()
        self._request("getmask", _GETSIGMASK, 8, ctypes.addressof(value))
        return value.value

    def set_mask(self, mask: int) -> None:
        """Set the blocked signals; those that arrive wait in the kernel."""
        value = ctypes.c_uint64(mask)
        self._request("setmask", _SETSIGMASK, 8, ctypes.addressof(value))

    def rseq(self) -> int:
        """Address of its `struct rseq`; 0 without one, or where the kernel does not tell."""
        value = _Rseq()
        try:
            self._request("rseq", _RSEQ, ctypes.sizeof(value), ctypes.addressof(value))
        except OSError:
            return 0
        return int(value.pointer)

    def wait(self, until: float) -> Stop:
        """The next stop, at most until `until` (time.monotonic); SIGCHLD should be blocked in this thread."""
        while True:
            try:
                found = os.waitid(os.P_PID, self.tid, os.WSTOPPED | os.WEXITED | os.WNOWAIT | os.WNOHANG | _WALL)
            except ChildProcessError:
                return Stop(Kind.GONE)
            if found is not None:
                return self._stop(found.si_code, found.si_status)
            left = until - time.monotonic()
            if left <= 0:
                return Stop(Kind.LATE)
            signal.sigtimedwait({signal.SIGCHLD}, min(left, _SLICE))

    def _stop(self, code: int, status: int) -> Stop:
        if code not in (os.CLD_TRAPPED, os.CLD_STOPPED):
            with suppress(ChildProcessError):  # it ended: fetched, so that no dead thread stays
                os.waitid(os.P_PID, self.tid, os.WEXITED | os.WNOHANG | _WALL)
            return Stop(Kind.GONE)
        number, event = status & 0xFF, status >> 8
        if event == _EVENT_STOP:
            return Stop(Kind.INTERRUPT if number == signal.SIGTRAP else Kind.GROUP, number)
        if number == signal.SIGTRAP | 0x80:
            return Stop(Kind.SYSCALL)
        return Stop(Kind.SIGNAL, number)

    def _set(self, name: str, request: int, which: int, base: int, length: int) -> int:
        vector = _Vector(base, length)
        self._request(name, request, which, ctypes.addressof(vector))
        return int(vector.length)

    def _request(self, name: str, request: int, address: int, data: int) -> None:
        self._before(name)
        _call(request, self.tid, address, data)


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.restype = ctypes.c_long
    libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    return libc


_LIBC = _libc()


def _call(request: int, tid: int, address: int, data: int) -> None:
    ctypes.set_errno(0)
    if _LIBC.ptrace(request, tid, ctypes.c_void_p(address), ctypes.c_void_p(data)) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
