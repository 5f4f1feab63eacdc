"""bpftrace: spans off the CPU where there is no perf, and calls of a library's functions, counted by uprobe.

It needs root in the initial pid namespace: BPF sees threads by their numbers there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

from knowledge.text import clean, excerpt
from probes.capture.offcpu import _offcpu_why
from probes.capture.offcpu._offcpu_spans import Spans, Standing, function, state_letter
from probes.capture.offcpu.offcpu_document import Launches

LIBRARIES: Final = {
    "libcudart.so": ("cudaLaunchKernel", "cudaLaunchKernelExC", "cudaGraphLaunch"),
    "libcuda.so": ("cuLaunchKernel", "cuLaunchKernelEx", "cuGraphLaunch"),
}  # the first that is mapped: what the runtime launches, it launches through the driver
SHORTEST: Final = 20_000  # ns of spans that are printed: each costs a line
MOST_STANDING: Final = 256  # threads whose wait has begun before we did
MOST_LAUNCHES: Final = 256  # different stacks that are kept
LARGEST: Final = 32 << 20  # bytes of its output
_INITIAL: Final = "pid:[4026531836]"  # PROC_PID_INIT_INO of the kernel
_QUIET: Final = {"PATH": f"{os.defpath}:/usr/sbin:/sbin", "LANG": "C.UTF-8", "BPFTRACE_STRLEN": "64"}
# Probes are set one after another: when the last one has been hit all are there.
_MARK: Final = 'interval:ms:10 { if (!@go) { @go = 1; printf("began %llu\\n", nsecs); } }'
_SAFE = re.compile(r"[\w./+-]{1,500}")


def program() -> str | None:
    """Path of bpftrace; None when there is none."""
    return shutil.which("bpftrace")


def refused() -> str:
    """A key of `_offcpu_why.why` when bpftrace cannot be used; "" when it can."""
    if program() is None:
        return "bpftrace-missing"
    with suppress(OSError):
        if os.geteuid() == 0 and os.readlink("/proc/self/ns/pid") == _INITIAL:  # noqa: PTH115 - no path
            return ""
    return "bpf-not-permitted"


def switches(pids: Sequence[int], seconds: int, standing: Mapping[int, Standing]) -> str:
    """The program that prints each span off the CPU, with the stack that the thread left with. `standing`: who is off it already."""
    ours = " || ".join(f"pid == {pid}" for pid in pids)
    off = [(tid, s.pid) for tid, s in standing.items() if s.state in "SD"][:MOST_STANDING]
    begun = " ".join(f"@t[{tid}] = nsecs; @p[{tid}] = {pid}; @d[{tid}] = 1;" for tid, pid in off)
    row = "@p[args->next_pid], args->next_pid, $t, nsecs - $t, @d[args->next_pid]"
    return f"""
BEGIN {{ {begun} }}
tracepoint:sched:sched_switch {{
  if ({ours}) {{ @t[tid] = nsecs; @s[tid] = kstack(perf, 32); @h[tid] = 1; @d[tid] = args->prev_state; @p[tid] = pid; }}
  $t = @t[args->next_pid];
  if ($t) {{
    if (@go && nsecs - $t >= {SHORTEST}) {{
      if (@h[args->next_pid]) {{ printf("off %d %d %llu %llu %d%s\\n", {row}, @s[args->next_pid]); }}
      else {{ printf("off %d %d %llu %llu %d\\n", {row}); }}
    }}
    delete(@t[args->next_pid]);
  }}
}}
interval:s:{seconds} {{ exit(); }}
{_MARK}
END {{ clear(@s); clear(@h); clear(@d); clear(@p); clear(@go); }}
"""  # what is left in @t is printed at the end: threads that are still off


def launches(pid: int, library: str, symbols: Sequence[str], seconds: int) -> str:
    """The program that counts calls. `library` as the process maps it."""
    path = f"/proc/{pid}/root{library}"
    probes = "\n".join(
        f'uprobe:{path}:{s} /@go/ {{ @n[tid, "{s}"] = count(); @s[tid, ustack(perf, 16)] = count(); }}' for s in symbols
    )
    return f"{probes}\ninterval:s:{seconds} {{ exit(); }}\n{_MARK}\n"


def library_of(pid: int, libraries: Iterable[str] = LIBRARIES) -> tuple[str, str]:
    """The mapped file that is one of these libraries, and which; two empty strings without one."""
    found: dict[str, str] = {}
    with suppress(OSError), Path(f"/proc/{pid}/maps").open("r", encoding="utf-8", errors="replace") as file:
        for line in file:
            path = line.split(None, 5)[5].rstrip("\n") if line.count("/") else ""
            name = next((k for k in libraries if path.rsplit("/", 1)[-1].startswith(k)), "")
            if name and _SAFE.fullmatch(path):
                found.setdefault(name, path)
    return next(((found[k], k) for k in libraries if k in found), ("", ""))


@cache
def _version() -> str:
    try:
        done = subprocess.run(
            ["bpftrace", "--version"], capture_output=True, timeout=5, check=False, stdin=subprocess.DEVNULL, env=_QUIET
        )
    except (OSError, subprocess.TimeoutExpired):
        return "bpftrace"
    return excerpt(done.stdout.decode("utf-8", "replace"), 60) or "bpftrace"


class Bpf:
    """One bpftrace at work."""

    def __init__(self, text: str, folder: Path, name: str, pid: int | None = None, *, as_json: bool = False) -> None:
        self.tool, self.code, self.detail, self.began, self.ended = _version(), "", "", 0, 0
        self._argv = [
            program() or "bpftrace",
            "-B",
            "line",
            *(["-f", "json"] if as_json else []),
            *(["-p", str(pid)] if pid else []),
            str(folder / f"{name}.bt"),
        ]
        self._out, self._begun = folder / f"{name}.out", threading.Event()
        (folder / f"{name}.bt").write_text(text)
        self._child: subprocess.Popen[bytes] | None = None
        self._errors = bytearray()

    def start(self, patience: float = 8.0) -> bool:
        """Whether its probes are set; `code` says why not."""
        with self._out.open("wb") as out:
            try:
                self._child = subprocess.Popen(
                    self._argv,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.PIPE,
                    env=_QUIET,
                    start_new_session=True,
                )
            except OSError as error:
                self.code, self.detail = "failed", str(error)
                return False
        threading.Thread(target=self._listen, args=(self._child,), daemon=True).start()
        until = time.monotonic() + patience
        while time.monotonic() < until and self._child.poll() is None:
            if begun := _BEGAN.search(self._read(1 << 16)):
                self.began = int(begun[1])
                return True
            time.sleep(0.02)
        self._begun.wait(1)
        said = bytes(self._errors).decode("utf-8", "replace")
        self.code = _offcpu_why.code_of(said) if self._child.poll() is not None else "timeout"
        self.detail = excerpt(said, 200)
        return False

    def _listen(self, child: subprocess.Popen[bytes]) -> None:
        assert child.stderr is not None
        with suppress(OSError, ValueError):
            for line in child.stderr:
                if len(self._errors) < 1 << 16 and b"RLIMIT_MEMLOCK" not in line:
                    self._errors += line
        self._begun.set()

    def _read(self, most: int) -> bytes:
        try:
            with self._out.open("rb") as file:
                return file.read(most)
        except OSError:
            return b""

    def stop(self, patience: float = 12.0) -> str:
        """Ends it; all that it printed."""
        if self._child is None:
            return ""
        self.ended = time.monotonic_ns()
        with suppress(OSError):
            self._child.send_signal(signal.SIGINT)
        try:
            self._child.wait(patience)
        except subprocess.TimeoutExpired:
            self.code = "timeout"
        return self._read(LARGEST).decode("utf-8", "replace")

    def kill(self) -> None:
        """Its probes are gone with it."""
        if self._child is not None:
            with suppress(OSError):
                os.killpg(self._child.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(2)
            self._begun.wait(1)
            if self._child.stderr is not None:
                with suppress(OSError):
                    self._child.stderr.close()


# {"type": "printf", "data": "began 48256414142164\n"}
_BEGAN = re.compile(rb"began (\d{1,19})\D")
# off 4242 4243 48256414761073 80109 1
_OFF = re.compile(r"^off (\d{1,10}) (\d{1,10}) (\d{1,19}) (\d{1,17}) (\d{1,10})$")
# 	ffffffff821f8c03 schedule+35
_STACK = re.compile(r"^\s+[0-9a-f]{1,16} (?P<name>\S.*)$")
_LOST = re.compile(r"^Lost (\d{1,15}) events")


# @t[4242]: 48256414761073
_STILL = re.compile(r"^@t\[(\d{1,10})\]: (\d{1,19})$")


def read(spans: Spans, text: str, before: Mapping[int, Standing], after: Mapping[int, Standing], ended: int) -> None:
    """What the program of `switches` printed, into `spans`. Stacks of threads that stood off the CPU all along are those of /proc."""
    head: re.Match[str] | None = None
    stack: list[str] = []
    for line in (*text.splitlines(), "end"):
        if frame := _STACK.match(line):
            stack.append(function(frame["name"]))
            continue
        if not line.strip():
            continue
        if head is not None:
            pid, tid, since, ns = (int(head[i]) for i in range(1, 5))
            told, state = stack[::-1], state_letter(head[5])
            if not told and tid in before:
                told, state = list(before[tid].functions), before[tid].state
            spans.span(pid, tid, since, ns, spans.stack(told), state)
        head, stack = _OFF.match(line), []
        if lost := _LOST.match(line):
            spans.lost += int(lost[1])
        still = _STILL.match(line)
        if still and (now := after.get(int(still[1]))) is not None and now.state != "R" and ended > int(still[2]):
            spans.span(
                now.pid, int(still[1]), int(still[2]), ended - int(still[2]), spans.stack(now.functions), now.state
            )


# {"type": "map", "data": {"@n": {"13109,launch_it": 1480}}}
# {"type": "map", "data": {"@s": {"13109,\n\t7f7aa4ecc0f9 launch_it+0 (/app/libfn.so)\n": 1480}}}
def read_launches(text: str) -> tuple[list[list[Any]], list[list[Any]]]:
    """Counts and stacks from what the program of `launches` printed; what is none of it is left out."""
    counts: list[list[Any]] = []
    stacks: list[list[Any]] = []
    for line in text.splitlines():
        try:
            row = json.loads(line) if line.startswith("{") else None
        except (ValueError, RecursionError):
            continue
        data = row.get("data") if isinstance(row, dict) and row.get("type") == "map" else None
        for name, cells in data.items() if isinstance(data, dict) else ():
            for key, calls in cells.items() if isinstance(cells, dict) else ():
                tid, _, what = str(key).partition(",")
                if not tid.isdigit() or type(calls) is not int or not 0 < calls < 1 << 62:
                    continue
                if name == "@n":
                    counts.append([int(tid), clean(what)[:100], calls])
                elif name == "@s":
                    frames = [clean(m["name"])[:200] for f in what.splitlines() if (m := _STACK.match(f))]
                    stacks.append([int(tid), frames[::-1], calls])
    stacks.sort(key=lambda s: (-s[2], s[0], s[1]))
    return sorted(counts), stacks[:MOST_LAUNCHES]


def none(code: str, detail: str = "", library: str = "") -> Launches:
    """Calls that could not be counted."""
    return {"library": library, "symbols": [], "began": 0, "ended": 0, "error": _offcpu_why.why(code, detail).why.en, "code": code,
            "detail": detail, "counts": [], "stacks": []}  # fmt: skip
