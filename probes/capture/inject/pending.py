"""A Python call asked of a process that runs: ptrace of one thread, `Py_AddPendingCall`.

One thread is borrowed, preferably one that sleeps in a system call. It makes, by the frame of `_sigframe`, at most five short
calls: mmap of 16 KiB (once a process: the place is found again and used again), `Py_IsInitialized`,
`Py_AddPendingCall(PyRun_SimpleString, text)`, `Py_AddPendingCall(sem_post, flag)`. Then everything is put back exactly, also a
sleep with the rest of its time. The interpreter runs the text on its main thread at its next safe point, and then the
flag, by which we know.

Nothing here can kill the target when *we* die: the frame heals the thread (`_sigframe`, `ptrace`). No malloc, no dlopen, no
breakpoint, no patched code, no Python lock is taken on the borrowed thread. What stays behind: the 16 KiB, of which the pages
that were written are resident (4 KiB).

Call `inject` in a process of its own which ends afterwards: a thread that could not be stopped is let go by that end.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import field
from enum import Enum
from pathlib import Path

from knowledge.record import dataclass
from probes.capture.inject import _sigframe, interpreter
from probes.capture.inject._memory import Memory
from probes.capture.inject._places import Places, find
from probes.capture.inject._refusals import InjectError, refuse
from probes.capture.inject._threads import EINTR_CALLS, Candidate, candidates, state
from probes.capture.inject.ptrace import Kind, Registers, Stop, Thread

BASE = 0x6770_7564_0000  # "gpud": where the text goes, so that it is found again
SLOT, SLOTS = 16 << 10, 8
MAGIC = b"gpudiag pending\0"
MOST_CODE = SLOT - 64 - 1  # bytes
_FLAG, _QUEUED, _TEXT = 32, 16, 64  # offsets in a slot
_STOP_WITHIN = 0.05  # seconds for a thread to stop; longer: it is in the kernel for good
_STOP_AT_MOST = 2.0  # seconds, for a thread that only waits for a CPU
_PAUSE = 0.02  # seconds between rounds over the threads
_BOUNDARY = 0.1  # seconds for a running thread to come to a system call
_CALL_WITHIN = 1.0  # seconds for one borrowed call
_ENOUGH = 6  # threads that are tried
_ALL = (1 << 64) - 1
_MMAP, _SIGPROCMASK, _SIGRETURN = 9, 14, 15
_EXEC_OR_EXIT = frozenset({59, 322, 60, 231})
_DIRECTION_TRAP = 0x500  # eflags: DF, which the ABI wants clear, and TF
_USER_CS = 0x33  # 64 bits
_FAULTS = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGSYS, signal.SIGTRAP})


@dataclass(frozen=True, slots=True)
class Done:
    """What became of one injection."""

    tid: int  # the thread that was borrowed
    how: str  # "in a system call" or "running"
    stopped_ns: int  # how long it was stopped
    answered: bool  # the call ran before the deadline
    seconds: float


class _Unfinished(Exception):
    """The borrowed call did not come back in time: it is left to heal."""


class _Gone(Exception):
    """The borrowed thread has ended."""


def wrap(code: str, inner_pid: int) -> str:
    """The text that is run: `code` in a namespace of its own, in this process and not in a fork of it, raising nothing.

    An exception out of it would become an error in whatever line the job runs. A KeyboardInterrupt that falls into it is the
    user's and is raised again behind it.
    """
    guarded = f"exec({code!r}, {{'__name__': '_gpudiag'}})"
    if inner_pid:
        guarded = f"import os\n if os.getpid() == {inner_pid}: {guarded}"
    inner = f"try:\n {guarded}\nexcept KeyboardInterrupt:\n import _thread; _thread.interrupt_main()\nexcept BaseException:\n pass\n"
    return f"try:\n exec({inner!r}, {{'__name__': '_gpudiag'}})\nexcept BaseException:\n pass\n"


def inject(
    pid: int, code: str, *, until: float, before: Callable[[str], None] = lambda _: None,
) -> Done:  # fmt: skip
    """Ask process `pid` to run `code` on its main thread; waits until it ran, or `until` (time.monotonic).

    `before` is told each ptrace request before it is made. InjectError with the refusal.
    """
    began = time.monotonic()
    text = wrap(code, inner(pid)).encode() + b"\0"
    if len(text) > MOST_CODE:
        raise refuse("failed", f"the code has {len(text)} bytes, more than {MOST_CODE}", f"代码过长:{len(text)} 字节")
    with _alone(pid), _memory(pid) as memory, _quiet():
        places = find(pid, memory)
        call = _Call(pid, memory, places, text, until, before)
        try:
            loan = _lend(call)
            answered = _answered(call, loan.slot)
        except ProcessLookupError:
            raise refuse("gone") from None
        finally:
            _release(call)
    how = "in a system call" if _sigframe.restarting(loan.saved) else "running"
    return Done(loan.tid, how, loan.stopped_ns, answered, time.monotonic() - began)


@dataclass(slots=True)
class _Call:
    """What is asked, and of whom."""

    pid: int
    memory: Memory
    places: Places
    text: bytes
    until: float
    before: Callable[[str], None]
    rows: tuple[interpreter.Mapping, ...] = ()
    lingering: dict[int, Thread] = field(default_factory=dict)  # were asked to stop and have not yet


class _Where(Enum):
    """How far a borrowed thread is from what it was."""

    WHOLE = "whole"  # stopped, nothing changed yet
    WITHIN = "within"  # a call is under way
    BETWEEN = "between"  # stopped before the restorer
    FREE = "free"  # let go


@dataclass(slots=True)
class _Loan:
    """One thread, borrowed: what it was, and what it is made to do."""

    call: _Call
    thread: Thread
    saved: Registers
    extended: bytes
    mask: int
    start: int = 0  # stack pointer of the borrowed calls
    frame: bytes = b""
    slot: int = 0  # address of the text
    stopped_ns: int = 0
    held: set[int] = field(default_factory=set)  # signals that cannot be blocked and came meanwhile
    masked: bool = False
    where: _Where = _Where.WHOLE
    queued: bool = False  # the call may be in the interpreter's queue

    @property
    def tid(self) -> int:
        """The thread."""
        return self.thread.tid

    def run(self, function: int, *arguments: int, rax: int = 0) -> int:
        """One borrowed call; its result as a signed 32-bit number, of a system call as it is.

        Afterwards the thread stands before the restorer: whatever becomes of us, it heals.
        """
        names = ("rdi", "rsi", "rdx", "r10" if rax else "rcx", "r8", "r9")
        given = dict(zip(names, arguments, strict=False))
        self.call.memory.write(self.start, self.frame)
        self.where = _Where.WITHIN
        self.thread.set_registers(
            self.saved | given | {
                "rip": function, "rsp": self.start, "rax": rax, "orig_rax": _ALL,
                "eflags": self.saved["eflags"] & ~_DIRECTION_TRAP,
            }
        )  # fmt: skip
        if not self.masked:  # behind set_registers: if we died in between, the thread must not stay without signals
            self.thread.set_mask(_ALL)
            self.masked = True
        return self._until_return(rax)

    def _until_return(self, number: int) -> int:
        until, entry, result = time.monotonic() + _CALL_WITHIN, False, 0
        while True:
            self.thread.go_to_syscall()
            stop = self._stop(until)
            if stop.kind is not Kind.SYSCALL:
                continue
            entry = not entry
            now = self.thread.registers()
            if not entry:
                result = _sigframe.signed(now["rax"]) if number and now["orig_rax"] == number else result
            elif now["orig_rax"] == _SIGRETURN and now["rsp"] == self.start + 16:
                value = now[self.call.places.register] & 0xFFFFFFFF
                self._before_restorer(now, until)
                self.where = _Where.BETWEEN
                return result if number else value - (1 << 32) if value >> 31 else value

    def _before_restorer(self, now: Registers, until: float) -> None:
        """Instead of `rt_sigreturn` a system call that does nothing, and back to the restorer.

        `rt_sigreturn` would make a sleep that was interrupted forget the rest of its time.
        """
        self.thread.set_registers(
            now | {"orig_rax": _SIGPROCMASK, "rdi": 0, "rsi": 0, "rdx": 0, "r10": 8, "rip": self.call.places.restorer}
        )
        self.thread.go_to_syscall()
        while self._stop(until).kind is not Kind.SYSCALL:
            self.thread.go_to_syscall()

    def _stop(self, until: float) -> Stop:
        stop = self.thread.wait(until)
        if stop.kind is Kind.GONE:
            raise _Gone
        if stop.kind is Kind.LATE:
            raise _Unfinished
        if stop.kind is Kind.SIGNAL:
            if stop.signal in _FAULTS:
                self.restore()
                raise refuse("failed", f"signal {stop.signal} within the call", f"调用期间收到信号 {stop.signal}")
            self.held.add(stop.signal)
        return stop

    def back(self) -> None:
        """Put everything back as it was and let go."""
        until = time.monotonic() + _CALL_WITHIN
        while True:
            self.thread.interrupt_and_go()
            if self._stop(until).kind in (Kind.INTERRUPT, Kind.GROUP):
                break
        self.restore()

    def restore(self) -> None:
        """From a stop where the kernel still decides on the system call: registers last, from then on nothing is amiss."""
        self.thread.set_extended(self.extended)
        self.thread.set_mask(self.mask)
        self.thread.set_registers(self.saved)
        self.thread.detach()
        self.where = _Where.FREE
        for number in self.held:
            with suppress(ProcessLookupError):
                os.kill(self.call.pid, number)

    def leave(self) -> None:
        """Let go. A call that is under way finishes by itself, and the frame puts everything back."""
        if self.where is _Where.WHOLE:
            self.restore()
        elif self.where is _Where.BETWEEN:
            self.back()
        elif self.where is _Where.WITHIN:
            self.thread.interrupt()
            stop = self.thread.wait(time.monotonic() + _STOP_WITHIN)
            if stop.kind is not Kind.LATE:
                self.thread.detach(stop.signal if stop.kind is Kind.SIGNAL else 0)
            self.where = _Where.FREE


def _lend(call: _Call) -> _Loan:
    """Borrow one thread after the other until one did it."""
    call.rows = interpreter.maps(call.pid)
    tried, why = 0, ""
    while not tried or time.monotonic() < call.until:  # at least once, however late it is
        for candidate in candidates(call.pid)[:_ENOUGH]:
            _release(call)
            if candidate.tid in call.lingering:
                continue
            tried += 1
            loan = _take(call, candidate)
            if isinstance(loan, str):
                why = loan
                continue
            try:
                if _ask(loan):
                    return loan
            except _Gone:
                if loan.queued:  # perhaps: to ask again could run it twice
                    return loan
                why = "a thread ended meanwhile"
                continue
            why = "queue-full"
            break
        if _ended(call.pid):
            raise refuse("gone")
        _release(call)
        if time.monotonic() >= call.until:
            break
        time.sleep(_PAUSE)
    if why == "queue-full":
        raise refuse("queue-full")
    raise refuse("failed", f"none of {tried} tries got a thread at rest: {why}", f"{tried} 次尝试均未借到线程:{why}")


def _release(call: _Call) -> None:
    """Let go of threads that have stopped by now: none may stay stopped, it may hold the interpreter's lock."""
    for tid, thread in list(call.lingering.items()):
        with suppress(OSError):
            stop = thread.wait(0.0)
            if stop.kind is Kind.LATE:
                continue
            if stop.kind in (Kind.SIGNAL, Kind.SYSCALL):
                thread.interrupt_and_go(stop.signal)
                continue
            thread.detach()
        del call.lingering[tid]


def _take(call: _Call, candidate: Candidate) -> _Loan | str:
    """Stop one thread where it can be borrowed; a word why not."""
    thread = Thread(candidate.tid, call.before)
    try:
        thread.seize()
    except ProcessLookupError:
        return "a thread ended meanwhile"
    except PermissionError:
        if candidate.tid == call.pid and not _ended(call.pid):  # one that ends is refused as well
            raise refuse("no-permission", "ptrace was refused", "ptrace 被拒绝") from None
        return "a thread may not be traced"
    try:
        thread.interrupt()
        found = _settle(call, thread)
    except ProcessLookupError:
        return "a thread ended meanwhile"
    if isinstance(found, Stop):
        if found.kind is Kind.LATE:
            call.lingering[thread.tid] = thread
            return "a thread does not stop"
        if found.kind is Kind.GROUP:
            thread.detach()
            raise refuse("stopped")
        return "a thread ended meanwhile"
    if found is None:
        thread.detach()
        return "a thread stood where it may not be borrowed"
    began = time.monotonic_ns()
    loan = _Loan(call, thread, found, thread.extended(), thread.mask(), stopped_ns=began)
    loan.start, loan.frame = _sigframe.build(found, loan.extended, loan.mask, call.places.restorer, call.places.via)
    return loan


def _settle(call: _Call, thread: Thread) -> Registers | Stop | None:
    """Registers of the thread at a place where it may be borrowed; None: not here. A stop that is none is given back."""
    stop = _until_interrupt(thread, time.monotonic() + _STOP_WITHIN)
    if stop.kind is not Kind.INTERRUPT:
        return stop
    now = thread.registers()
    if not _sigframe.in_syscall(now):
        stop = _to_boundary(thread)
        if stop.kind is Kind.SYSCALL:  # at the door of exec or exit
            return None
        if stop.kind is not Kind.INTERRUPT:
            return stop
        now = thread.registers()
    return _fit(call, thread, now)


def _until_interrupt(thread: Thread, until: float) -> Stop:
    """Deliver what comes before the stop that was asked for. A thread that only waits for a CPU is waited for."""
    last = time.monotonic() + _STOP_AT_MOST
    while True:
        stop = thread.wait(until)
        if stop.kind in (Kind.SIGNAL, Kind.SYSCALL):
            thread.interrupt_and_go(stop.signal)
        elif stop.kind is Kind.LATE and time.monotonic() < last and state(thread.tid) != "D":
            until = time.monotonic() + _STOP_WITHIN
        else:
            return stop


def _to_boundary(thread: Thread) -> Stop:
    """Let a running thread go on to the end of its next system call: there it holds no lock of a few instructions."""
    until, sent = time.monotonic() + _BOUNDARY, 0
    while True:
        thread.go_to_syscall(sent)
        sent = 0
        stop = thread.wait(until)
        if stop.kind is Kind.SIGNAL:
            sent = stop.signal
            continue
        if stop.kind is Kind.LATE:
            thread.interrupt()
            return _until_interrupt(thread, time.monotonic() + _STOP_WITHIN)
        if stop.kind is not Kind.SYSCALL or thread.registers()["orig_rax"] in _EXEC_OR_EXIT:
            return stop
        thread.interrupt()  # a call that would block ends at once; it begins again afterwards
        thread.go_to_syscall()
        return _until_interrupt(thread, time.monotonic() + _STOP_WITHIN)


def _fit(call: _Call, thread: Thread, now: Registers) -> Registers | None:
    """The registers to come back to; None when the thread may not be borrowed where it stands."""
    if now["cs"] != _USER_CS or not _room(call, now["rsp"]):
        return None
    if not _sigframe.in_syscall(now):
        place = call.places.add
        if place <= now["rip"] < place + call.places.add_size or _in_rseq(call.memory, thread):
            return None
    # epoll_wait and its like report EINTR after any stop, where nothing in the program asked for one: begin it again
    if (
        now["orig_rax"] in EINTR_CALLS
        and _sigframe.signed(now["rax"]) == -_sigframe.EINTR
        and not _signalled(call.pid, thread.tid)
    ):
        return _sigframe.again(now)
    return now


def _room(call: _Call, pointer: int) -> bool:
    """Whether the stack goes on far enough below the pointer."""
    for fresh in (False, True):
        if fresh:
            call.rows = interpreter.maps(call.pid)
        for row in call.rows:
            if row.start <= pointer - _sigframe.ROOM and pointer <= row.end and row.access.startswith("rw"):
                return True
    return False


def _in_rseq(memory: Memory, thread: Thread) -> bool:
    """Whether a restartable sequence is under way (tcmalloc has them): the kernel must see its end or its abort."""
    pointer = thread.rseq()
    try:
        return bool(pointer and int.from_bytes(memory.read(pointer + 8, 8), "little"))
    except OSError:
        return True


def _signalled(pid: int, tid: int) -> bool:
    """Whether a signal waits for the thread that it does not block."""
    try:
        lines = Path(f"/proc/{pid}/task/{tid}/status").read_text(errors="replace").splitlines()
    except OSError:
        return True
    bits = {n: int(v, 16) for n, _, v in (s.partition(":") for s in lines) if n in ("SigPnd", "ShdPnd", "SigBlk")}
    return bool((bits.get("SigPnd", 0) | bits.get("ShdPnd", 0)) & ~bits.get("SigBlk", 0))


def _ask(loan: _Loan) -> bool:
    """The borrowed calls. False when the interpreter's queue is full. The thread goes on afterwards, whatever happened."""
    began = loan.stopped_ns
    try:
        fine = _steps(loan)
        loan.back()
    except _Gone:
        raise
    except _Unfinished:
        _leave(loan)
        raise refuse("failed", "a borrowed call did not come back in time", "借用的调用未及时返回") from None
    except InjectError:
        _leave(loan)
        raise
    except ProcessLookupError:
        raise _Gone from None
    except OSError as error:
        _leave(loan)
        raise refuse("failed", str(error)) from None
    finally:
        loan.stopped_ns = time.monotonic_ns() - began
    return fine


def _leave(loan: _Loan) -> None:
    with suppress(OSError, _Gone, _Unfinished):
        loan.leave()


def _steps(loan: _Loan) -> bool:
    call, places = loan.call, loan.call.places
    if places.ready and loan.run(places.ready) != 1:
        raise refuse("no-python", "its interpreter is starting or ending", "解释器正在启动或退出")
    loan.slot = _slot(loan)
    head = MAGIC + bytes(_TEXT - len(MAGIC))
    call.memory.write(loan.slot, head + call.text)
    call.memory.write(loan.slot + _QUEUED, struct.pack("<Q", 1))
    loan.queued = True
    if loan.run(places.add, places.run, loan.slot + _TEXT) != 0:
        call.memory.write(loan.slot + _QUEUED, struct.pack("<Q", 0))
        loan.queued = False
        return False
    loan.run(places.add, places.post, loan.slot + _FLAG)
    return True


def _slot(loan: _Loan) -> int:
    """Address of a slot that is free: one of an earlier injection that ran, or a new one."""
    call = loan.call
    for address in range(BASE, BASE + SLOT * SLOTS, SLOT):
        found_as = _slot_state(call, address)
        if found_as == "free":
            return address
        if found_as == "none":
            flags = 0x100022  # MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE
            found = loan.run(call.places.syscall, address, SLOT, 3, flags, _ALL, 0, rax=_MMAP)
            if found <= 0:
                raise refuse("failed", f"mmap: {os.strerror(-found)}")
            return found
    raise refuse("queue-full", f"{SLOTS} calls", f"{SLOTS} 个调用")


def _slot_state(call: _Call, address: int) -> str:
    """`none`: nothing is mapped there; `free`, `busy`: ours; `other`: somebody else's."""
    if not any(r.start < address + SLOT and address < r.end for r in call.rows):
        return "none"
    try:
        head = call.memory.read(address, _TEXT)
    except OSError:
        return "other"
    if head[: len(MAGIC)] != MAGIC:
        return "other" if any(head) else "free"  # mapped by one of us who died before it was written
    queued, ran = struct.unpack_from("<Q", head, _QUEUED)[0], struct.unpack_from("<I", head, _FLAG)[0]
    return "free" if ran or not queued else "busy"


def _ended(pid: int) -> bool:
    return state(pid) in ("", "Z", "X")


def _answered(call: _Call, slot: int) -> bool:
    """Wait until the call ran."""
    while True:
        try:
            if call.memory.read(slot + _FLAG, 4) != bytes(4):
                return True
        except OSError:
            raise refuse("gone", "while it was asked", "注入期间") from None
        _release(call)
        if time.monotonic() >= call.until:
            return False
        time.sleep(0.001)


def inner(pid: int) -> int:
    """The process's number in its own pid namespace; 0 when that is not told."""
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    return 0


@contextmanager
def _alone(pid: int) -> Iterator[None]:
    """One injector a process at a time: an abstract socket, which goes away with whoever holds it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as lock:
        try:
            lock.bind(f"\0gpudiag-inject-{pid}")
        except OSError:
            raise refuse("tracer", "another gpudiag asks it right now", "另一个 gpudiag 正在操作") from None
        yield


@contextmanager
def _memory(pid: int) -> Iterator[Memory]:
    try:
        memory = Memory(pid)
    except OSError as error:
        if not isinstance(error, PermissionError) or _ended(pid):
            raise refuse("gone") from None
        raise refuse("no-permission", f"its memory: {error.strerror}") from None
    try:
        yield memory
    finally:
        memory.close()


@contextmanager
def _quiet() -> Iterator[None]:
    """No signal and no garbage collection of ours while a thread is stopped."""
    collects, before = gc.isenabled(), signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    gc.disable()
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if collects:
            gc.enable()
