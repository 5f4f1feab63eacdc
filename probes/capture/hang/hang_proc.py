"""What /proc tells of processes that may hang: states, system calls, run times, sockets. Only reads, and no file that may wait.

What is read here needs no lock of the process's memory; of its environment, which does, see `environment`.
"""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address
from itertools import islice
from pathlib import Path
from typing import Any, Final

from knowledge.text import digits

_MOST_THREADS: Final = 1024
_SLEEP_ROWS: Final = 64  # threads of which it is read when they last ran
_MOST_BYTES: Final = 4 << 20
_NAMES: Final = (
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_RUN_ID",
)
_EXEC_START: Final = re.compile(r"exec_start\s*:\s*(\d+)\.(\d+)")
_STATES: Final = {"01": "established", "02": "syn-sent", "08": "close-wait"}


def look(pids: Iterable[int]) -> dict[str, Any]:
    """Every process of `pids` now; ``at`` is CLOCK_MONOTONIC in ns."""
    return {"at": time.monotonic_ns(), "processes": {str(pid): process(pid) for pid in pids}}


def process(pid: int) -> dict[str, Any]:
    """State, threads and bytes read and written of one process; ``{"error": ...}`` when there is none."""
    base = f"/proc/{pid}"
    row = _stat(_text(f"{base}/stat"))
    if row is None:
        return {"state": "", "error": "no such process"}
    out: dict[str, Any] = {"state": row[1], "comm": row[0], "parent": row[2], "threads": {}}
    tids: list[int] = []
    with suppress(OSError):
        tids = sorted(int(t.name) for t in Path(f"{base}/task").iterdir())[:_MOST_THREADS]
    now = _exec_start("/proc/thread-self/sched")
    for i, tid in enumerate(tids):
        out["threads"][str(tid)] = _thread(f"{base}/task/{tid}", now if i < _SLEEP_ROWS else None)
    out["io"] = dict(_fields(_text(f"{base}/io"), ("rchar", "wchar", "read_bytes", "write_bytes")))
    return out


def _thread(base: str, now: int | None) -> dict[str, Any]:
    """``ran``: ns on a CPU; ``switches``: how often it went off one; ``quiet``: ns since it last was on one, while it sleeps."""
    row = _stat(_text(f"{base}/stat"))
    out: dict[str, Any] = {"comm": row[0] if row else "", "state": row[1] if row else ""}
    ran = _text(f"{base}/schedstat").split()
    told = [digits(word) for word in ran[:2]]
    if len(told) == 2 and None not in told:
        out["ran"], out["waited"] = told
    switches = dict(_fields(_text(f"{base}/status"), ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")))
    if len(switches) == 2:
        out["switches"] = sum(switches.values())
    for name in ("wchan", "syscall"):
        if text := _text(f"{base}/{name}").strip():
            out[name] = text[:200]
    last = _exec_start(f"{base}/sched") if now is not None and out["state"] != "R" else None
    if last is not None and now is not None:
        out["quiet"] = max(now - last, 0)
    return out


def _exec_start(path: str) -> int | None:
    """When a thread last ran, ns of the scheduler's clock; None where the kernel does not tell (CONFIG_SCHED_DEBUG)."""
    found = _EXEC_START.search(_text(path, 400))
    return int(found[1]) * 1_000_000 + int(found[2]) if found else None


def _stat(text: str) -> tuple[str, str, int] | None:
    """Name, state and parent of a line of /proc/PID/stat; the name may hold blanks and brackets."""
    head, _, tail = text.rpartition(")")
    words = tail.split()
    if len(words) < 2 or not words[1].lstrip("-").isdigit():
        return None
    return head.partition("(")[2], words[0], int(words[1])


def _fields(text: str, names: Iterable[str]) -> Iterable[tuple[str, int]]:
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name in names and (number := digits(value.strip())) is not None:
            yield name, number


def _text(path: str, most: int = 1 << 16) -> str:
    """The first bytes of a file; empty when it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return file.read(most).decode("utf-8", "replace")
    except OSError:
        return ""


def environment(pid: int, names: Container[str] = _NAMES) -> dict[str, str]:
    """Variables a process was started with: those by which ranks find each other, or `names`.

    Empty for a process in state D, whose memory may be locked for long.
    """
    row = _stat(_text(f"/proc/{pid}/stat"))
    if row is None or row[1] == "D":
        return {}
    pairs = (item.partition("=") for item in _text(f"/proc/{pid}/environ", 1 << 20).split("\0"))
    return {name: value for name, _, value in pairs if name in names}


def ranks_of_job(known: Mapping[int, Mapping[str, str]]) -> dict[str, int]:
    """Rank by pid of all processes on this node that meet where those of `known` (environments by pid) do."""
    meetings = {_meeting(e) for e in known.values() if e}
    out: dict[str, int] = {}
    for path in Path("/proc").iterdir():
        if not path.name.isdigit():
            continue
        found = environment(int(path.name))
        rank = digits(found.get("RANK", ""))
        if rank is not None and _meeting(found) in meetings:
            out[path.name] = rank
    return out


def _meeting(env: Mapping[str, str]) -> tuple[str, ...]:
    run = env.get("TORCHELASTIC_RUN_ID", "none")
    return (run,) if run != "none" else (env.get("MASTER_ADDR", ""), env.get("MASTER_PORT", ""))


def sockets(pid: int) -> list[dict[str, Any]]:
    """TCP connections of a process that hold data which moves on neither side, or that are sent again and again."""
    inodes = set()
    with suppress(OSError):
        for fd in islice(Path(f"/proc/{pid}/fd").iterdir(), 4096):
            with suppress(OSError):
                target = str(fd.readlink())
                if target.startswith("socket:["):
                    inodes.add(target[8:-1])
    out = []
    for table in ("tcp", "tcp6") if inodes else ():
        for line in _text(f"/proc/{pid}/net/{table}", _MOST_BYTES).splitlines()[1:]:
            words = line.split()
            if len(words) > 9 and words[9] in inodes and words[3] in _STATES and (row := _connection(words)):
                out.append(row)
    return out[:64]


def _connection(words: list[str]) -> dict[str, Any] | None:
    """A line of /proc/net/tcp when something waits in it: to be acknowledged (tx), or to be read (rx)."""
    try:
        tx, rx = (int(n, 16) for n in words[4].split(":"))
        again = int(words[6], 16)
        if not (tx or rx or again):
            return None
        return {"local": _address(words[1]), "remote": _address(words[2]), "state": _STATES[words[3]],
                "tx": tx, "rx": rx, "retransmits": again}  # fmt: skip
    except (ValueError, struct.error):
        return None


def _address(text: str) -> str:
    """``0100007F:87AD``: words of 32 bits in the machine's order, and the port."""
    host, _, port = text.partition(":")
    raw = b"".join(struct.pack("=I", int(host[i : i + 8], 16)) for i in range(0, len(host), 8))
    if len(raw) == 4:
        return f"{IPv4Address(raw)}:{int(port, 16)}"
    six = IPv6Address(raw)
    return f"{six.ipv4_mapped or f'[{six}]'}:{int(port, 16)}"
