"""The same call through gdb, where borrowing a thread ourselves is not written (aarch64) or not possible.

gdb gets no symbols: `auto-solib-add off`, and the addresses that `elf` computed. All threads stop for about half a second.
gdb's way is less careful than ours: a thread that is in a call when gdb is killed does not heal. So gdb is never killed while
it works; at the deadline it is asked to quit (SIGTERM), which lets the target go.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from probes.capture.inject import interpreter
from probes.capture.inject._refusals import refuse
from probes.capture.inject.interpreter import ADD, READY, RUN, Image
from probes.capture.model import Refusal

_QUIT_WITHIN = 30.0  # seconds for gdb to let go; it is not killed even then
_LEAST = 10.0  # seconds that gdb is given: it stops and starts every thread
_FLAGS = 0x22  # MAP_PRIVATE | MAP_ANONYMOUS
_SIZE = 16 << 10
_LIBC = ("libc.so", "libc-", "libc.musl", "ld-musl", "libpthread")
# `call` needs a type; nothing of the target's own types is known
_MMAP = "(long (*)(long, long, int, int, int, long))"
_ADD = "(int (*)(long, long))"
_READY = "(int (*)(void))"


def able(image: Image) -> Refusal | None:
    """What speaks against it; None when nothing does."""
    from probes.capture.inject._refusals import refusal

    if shutil.which("gdb") is None:
        return refusal("no-pending-call", "gdb is not installed", "未安装 gdb")
    missing = [n for n in (ADD, RUN) if n not in image.symbols]
    return refusal("no-pending-call", f"{missing[0]} is not exported", f"未导出 {missing[0]}") if missing else None


def inject(pid: int, text: str, *, until: float) -> float:
    """Ask process `pid` to run `text`, which `pending.wrap` made; seconds until the call is queued. InjectError with the refusal.

    There is no answer from it: whoever sent the text sees by its effects that it ran.
    """
    began = time.monotonic()
    gdb = shutil.which("gdb")
    if gdb is None:
        raise refuse("no-pending-call", "gdb is not installed", "未安装 gdb")
    with tempfile.TemporaryDirectory(prefix="gpudiag-gdb-") as folder:
        said = _gdb([gdb, *_options(), *_words(pid, text, Path(folder))], max(until, began + _LEAST))
    results = dict(line.partition("=")[::2] for line in said.splitlines() if line.startswith("gpudiag-"))
    _judge(results, said)
    return time.monotonic() - began


def _judge(results: Mapping[str, str], said: str) -> None:
    if results.get("gpudiag-added") == "0":
        return
    if results.get("gpudiag-ready", "1") != "1":
        raise refuse("no-python", "its interpreter is starting or ending", "解释器正在启动或退出")
    if results.get("gpudiag-added") == "-1":
        raise refuse("queue-full")
    low = said.lower()
    if "no such process" in low:
        raise refuse("gone")
    if "not permitted" in low or "could not attach" in low:
        raise refuse("no-permission", "gdb could not attach", "gdb 无法附加")
    if (
        "extended state" in low
    ):  # gdb 13 and older on CPUs with AMX: "Couldn't write extended state status: Bad address."
        raise refuse(
            "failed", "this gdb is too old for the registers of this CPU", "此 gdb 版本过旧，不支持本机 CPU 的寄存器"
        )
    raise refuse("failed", "gdb: " + (said.strip().splitlines() or ["it said nothing"])[-1][:200])


def _options() -> list[str]:
    early = ("set auto-solib-add off", "set auto-load off", "set sysroot /", "set debuginfod enabled off")
    return ["-nx", "-nh", "-q", "-batch", *(word for line in early for word in ("-iex", line))]


def _words(pid: int, text: str, folder: Path) -> list[str]:
    """The commands, one after the other: gdb in batch mode stops at the first that fails, and lets go."""
    python = interpreter.image(pid)
    if python is None:
        raise refuse("no-python")
    libc = interpreter.library(pid, interpreter.maps(pid), _LIBC, ("mmap",))
    add, run, ready = (python.address(n) for n in (ADD, RUN, READY))
    mmap = libc.address("mmap") if libc is not None else None
    if add is None or run is None or mmap is None:
        raise refuse("no-pending-call")
    file = folder / "text"
    file.write_bytes(text.encode() + b"\0")
    if file.stat().st_size > _SIZE:
        raise refuse("failed", "the code is too long", "代码过长")
    lines = [
        "set confirm off",
        "set unwindonsignal on",
        "set print thread-events off",
        "set language c",
        f"attach {pid}",
    ]
    if ready is not None:
        lines += [
            f"set $ready = ({_READY} {ready:#x})()",
            'printf "gpudiag-ready=%d\\n", $ready',
            "if !$ready\n detach\n quit\nend",
        ]
    lines += [
        f"set $page = ({_MMAP} {mmap:#x})(0, {_SIZE}, 3, {_FLAGS}, -1, 0)",
        f"restore {file} binary $page",
        f"set $added = ({_ADD} {add:#x})({run:#x}, $page)",
        'printf "gpudiag-added=%d\\n", $added',
        "detach",
    ]  # fmt: skip
    script = folder / "commands"
    script.write_text("\n".join(lines) + "\n")
    return ["-x", str(script)]


def _gdb(argv: list[str], until: float) -> str:
    """What gdb said. At the deadline it is asked to quit, and waited for."""
    env = {k: os.environ[k] for k in ("PATH",) if k in os.environ} | {"LC_ALL": "C", "HOME": "/nonexistent"}
    child = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=env,
        start_new_session=True,
    )
    try:
        out, _ = child.communicate(timeout=max(until - time.monotonic(), 0.1))
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            child.send_signal(signal.SIGTERM)
        try:
            out, _ = child.communicate(timeout=_QUIT_WITHIN)
        except subprocess.TimeoutExpired:
            raise refuse(
                "failed", f"gdb (pid {child.pid}) does not let go", f"gdb(pid {child.pid})未释放目标"
            ) from None
        raise refuse("failed", "gdb took too long and was asked to quit", "gdb 超时,已要求其退出") from None
    return out.decode(errors="replace")
