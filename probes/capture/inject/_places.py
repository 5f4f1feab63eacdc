"""Addresses in a process that the injector needs: of the interpreter and of the C library.

Functions come from the dynamic symbols of the mapped files; that those files are what is mapped is checked byte by byte
at each function. The few instructions without a name are looked for in the C library's code as it stands in memory.
"""

from __future__ import annotations

from pathlib import Path

from knowledge.record import dataclass
from probes.capture.inject import interpreter
from probes.capture.inject._memory import Memory
from probes.capture.inject._refusals import refuse
from probes.capture.inject.elf import EM_X86_64, Elf, ElfError, Kind
from probes.capture.inject.interpreter import ADD, READY, RUN, Image, Mapping

POST = "sem_post"
_LIBC = ("libc.so", "libc-", "libc.musl", "ld-musl", "libpthread")
# mov $15,%rax (or %eax); syscall: where a signal handler returns to
_RESTORERS = (b"\x48\xc7\xc0\x0f\0\0\0\x0f\x05", b"\xb8\x0f\0\0\0\x0f\x05")
_SYSCALL = b"\x0f\x05\xc3"  # syscall; ret
# xchg %eax,%REG; ret: keeps a result in a register that the restorer does not overwrite
_KEEP = {
    b"\x97\xc3": "rdi",
    b"\x96\xc3": "rsi",
    b"\x91\xc3": "rcx",
    b"\x92\xc3": "rdx",
    b"\x93\xc3": "rbx",
    b"\x95\xc3": "rbp",
}
_CHECKED = 32  # bytes of each function


@dataclass(frozen=True, slots=True)
class Places:
    """Addresses in the process."""

    add: int  # Py_AddPendingCall
    add_size: int
    run: int  # PyRun_SimpleString
    ready: int  # Py_IsInitialized; 0 without it
    post: int  # sem_post
    restorer: int
    syscall: int
    via: int  # a place that keeps the result in `register` and returns
    register: str


def find(pid: int, memory: Memory) -> Places:
    """The addresses in process `pid`. InjectError when one is missing, or the file on the disk is not what is mapped."""
    mapped = interpreter.maps(pid)
    python = interpreter.image(pid)
    if python is None:
        raise refuse("no-python")
    if interpreter.free_threaded(python):
        raise refuse("free-threaded")
    if python.machine != EM_X86_64 or shadow_stack(pid):
        raise refuse("arch", "shadow stacks are on" if python.machine == EM_X86_64 else f"machine {python.machine}")
    libc = interpreter.library(pid, mapped, _LIBC, (POST,)) or interpreter.library(
        pid, mapped, _program(python), (POST,)
    )
    if libc is None:
        raise refuse("no-pending-call", "sem_post of its C library was not found", "未找到 C 库的 sem_post")
    add, run, post = _function(python, ADD, memory), _function(python, RUN, memory), _function(libc, POST, memory)
    ready = _function(python, READY, memory) if READY in python.symbols else 0
    restorer, syscall, via, register = _instructions(mapped, memory)
    return Places(add, max(python.symbols[ADD].size, 64), run, ready, post, restorer, syscall, via, register)


def _program(python: Image) -> tuple[str, ...]:
    """A program that is linked statically has its C library within."""
    return (python.path.rpartition("/")[2],)


def _function(image: Image, name: str, memory: Memory) -> int:
    """Address of a function whose first bytes in memory are those of the file."""
    symbol, address = image.symbols.get(name), image.address(name)
    if symbol is None or address is None or symbol.kind is not Kind.FUNCTION:
        raise refuse("no-pending-call", f"{name} is not exported by {image.path}", f"{image.path} 未导出 {name}")
    size = min(max(symbol.size, 1), _CHECKED)
    try:
        with Elf(image.readable) as elf:
            same = elf.read(symbol.value, size) == memory.read(address, size)
    except (OSError, ElfError):
        same = False
    if not same:
        raise refuse(
            "no-pending-call", f"{image.path} is not what is in memory, or patched", f"{image.path} 与内存内容不一致"
        )
    return address


def _instructions(mapped: tuple[Mapping, ...], memory: Memory) -> tuple[int, int, int, str]:
    restorer = syscall = via = 0
    register = ""
    for row in _code(mapped):
        try:
            data = memory.read(row.start, row.end - row.start)
        except OSError:
            continue
        restorer = restorer or _first(data, row.start, _RESTORERS)
        syscall = syscall or _first(data, row.start, (_SYSCALL,))
        for pattern, name in _KEEP.items() if not via else ():
            via = _first(data, row.start, (pattern,))
            if via:
                register = name
                break
        if restorer and syscall and via:
            return restorer, syscall, via, register
    raise refuse("no-pending-call", "its C library has not the instructions needed", "其 C 库缺少所需指令")


def _code(mapped: tuple[Mapping, ...]) -> list[Mapping]:
    """Executable parts of files, the C library's first."""
    rows = [r for r in mapped if r.access.startswith("r-x") and r.inode and r.end - r.start <= 64 << 20]
    return sorted(rows, key=lambda r: not r.path.rpartition("/")[2].startswith(_LIBC))


def _first(data: bytes, base: int, patterns: tuple[bytes, ...]) -> int:
    for pattern in patterns:
        at = data.find(pattern)
        if at >= 0:
            return base + at
    return 0


def shadow_stack(pid: int) -> bool:
    """Whether any of its threads has a shadow stack (x86_Thread_features of Linux 6.6): returns must match calls there."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return False
    line = next((s for s in text.splitlines() if s.startswith("x86_Thread_features:")), "")
    return "shstk" in line.split()
