"""The frame that lets a borrowed thread heal itself, x86-64.

What the kernel puts on the stack before it runs a signal handler: all registers, the extended state, the signal mask. The
borrowed function returns into the C library's restorer, whose `rt_sigreturn` puts everything back. So a thread whose tracer
was killed half-way finishes the call and goes on where it was, as after any signal handler: at worst a system call with a
timeout reports EINTR, which code that may get signals must bear anyway. While the tracer lives, it restores by itself and
exactly.

Layout: `struct rt_sigframe` (arch/x86/include/asm/sigframe.h), `struct sigcontext_64` and `struct _fpx_sw_bytes`
(arch/x86/include/uapi/asm/sigcontext.h). Pure functions of bytes.
"""

from __future__ import annotations

import struct

from probes.capture.inject.ptrace import Registers

RED_ZONE = 128  # bytes below the stack pointer that the interrupted function may use
ROOM = 48 << 10  # bytes below the stack pointer that must be there: the frame, and what the borrowed function needs
ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK = 512, 513, 514, 516
EINTR = 4
_INSTRUCTION = 2  # bytes of `syscall`
_FLAGS = 7  # UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS
_MAGIC1, _MAGIC2 = 0x46505853, 0x46505845
_SOFTWARE = 464  # offset of the kernel's own bytes in the FXSAVE area
_HEAD = 8 + 40 + 256 + 8 + 128  # restorer, ucontext up to the registers, registers, mask, siginfo
_CONTEXT = struct.Struct("<18Q4H4QQ8Q")
_ORDER = (
    "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rdi", "rsi", "rbp", "rbx", "rdx", "rax", "rcx", "rsp", "rip", "eflags",
)  # fmt: skip


def signed(value: int) -> int:
    """A register as a signed number."""
    return value - (1 << 64) if value >> 63 else value


def restarting(registers: Registers) -> int:
    """The code of a system call that the kernel is about to begin again (512, 513, 514, 516); 0 when there is none."""
    code = -signed(registers["rax"])
    codes = (ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK)
    return code if in_syscall(registers) and code in codes else 0


def in_syscall(registers: Registers) -> bool:
    """Whether the thread stopped on its way out of a system call."""
    return signed(registers["orig_rax"]) >= 0


def again(registers: Registers) -> Registers:
    """The same thread at the beginning of its system call: what the kernel does for a call that begins again."""
    return registers | {
        "rip": registers["rip"] - _INSTRUCTION, "rax": registers["orig_rax"], "orig_rax": (1 << 64) - 1,
    }  # fmt: skip


def by_hand(registers: Registers) -> Registers:
    """Where the thread goes on when nobody is left who restores it: the kernel's restart is done in advance."""
    code = restarting(registers)
    if (
        code == ERESTART_RESTARTBLOCK
    ):  # its rest of the time is known to the kernel alone, which forgets it at rt_sigreturn
        return registers | {"rax": (1 << 64) - EINTR, "orig_rax": (1 << 64) - 1}
    return again(registers) if code else registers | {"orig_rax": (1 << 64) - 1}


def build(registers: Registers, extended: bytes, mask: int, restorer: int, via: int) -> tuple[int, bytes]:
    """The stack pointer at entry of the borrowed function, and the bytes from there on.

    The function returns to `via`, a place that ends in `ret`, and from there to the restorer.
    """
    state = _state(extended)
    top = registers["rsp"] - RED_ZONE
    at_state = (top - len(state)) & ~63
    start = ((at_state - 8 - _HEAD) & ~15) - 8  # as behind a `call`: the pointer plus 8 is aligned to 16
    later = by_hand(registers)
    context = _CONTEXT.pack(
        *(later[n] for n in _ORDER), later["cs"] & 0xFFFF, 0, 0, later["ss"] & 0xFFFF, 0, 0, 0, 0, at_state, *([0] * 8)
    )
    # an alternate stack of size 0 is refused by the kernel and ignored: the thread keeps the one it has
    ucontext = struct.pack("<QQQQQ", _FLAGS, 0, 0, 0, 0) + context + struct.pack("<Q", mask)
    frame = struct.pack("<QQ", via, restorer) + ucontext + bytes(128)
    return start, frame.ljust(at_state - start, b"\0") + state


def _state(extended: bytes) -> bytes:
    """The XSAVE area as `rt_sigreturn` takes it: with its size and features where the kernel looks for them."""
    features = extended[_SOFTWARE : _SOFTWARE + 8]  # ptrace puts XCR0 there
    size = len(extended)
    software = struct.pack("<II8sI28x", _MAGIC1, size + 4, features, size)
    return extended[:_SOFTWARE] + software + extended[_SOFTWARE + len(software) :] + struct.pack("<I", _MAGIC2)
