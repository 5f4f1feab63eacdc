"""Room for a capture: in the target's file system for its trace, and in its control group and its machine for its memory."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from knowledge.language import Text
from knowledge.record import dataclass
from probes.capture._inroot import open_at
from probes.capture.model import Process, Refusal
from probes.collectors import system

MEMORY = 512 << 20  # bytes: the profiler held 130-500 MB at its peak over four captures (docs/profile.md)
SPACE = 64 << 20  # bytes: 50,000 events are 20-30 MB of JSON
FOLDERS = ("/tmp", "/dev/shm", "/var/tmp")  # as the target sees them
_UNLIMITED = 1 << 60  # cgroup v1 writes the largest number of pages


@dataclass(frozen=True, slots=True)
class Limit:
    """How much memory is left below the tightest limit."""

    left: int  # bytes
    limit: int
    folder: str  # of the control group; empty: the machine itself


def folder(process: Process, need: int = SPACE, among: Sequence[str] = FOLDERS) -> str:
    """The first folder of `among` in which the target may write and that has room, as the target calls it; empty: none."""
    for name in among:
        with suppress(OSError):
            at = open_at(process.root, name, os.O_PATH | os.O_DIRECTORY)  # a link leads to where it leads the target
            try:
                told, room = os.fstat(at), os.fstatvfs(at)
            finally:
                os.close(at)
            if room.f_flag & os.ST_RDONLY:
                continue
            free = room.f_bfree if process.uid == 0 else room.f_bavail
            if _writable(told, process.uid) and free * room.f_frsize >= need:
                return name
    return ""


def space(process: Process) -> Refusal | None:
    """None when a trace has room in the target's file system."""
    if folder(process):
        return None
    shown = ", ".join(FOLDERS)
    return Refusal(
        "no-space",
        Text(f"process {process.pid} has no folder to write a trace to: {shown}, as it sees them, are full, read-only or not its "
             f"to write ({SPACE >> 20} MiB are needed)",
             f"进程 {process.pid} 没有可写入 trace 的目录：其所见的 {shown} 已满、只读或不可写（需要 {SPACE >> 20} MiB）"),
        Text(f"make room: df -h {process.root}/tmp; du -xh --max-depth=1 {process.root}/tmp",
             f"请腾出空间：df -h {process.root}/tmp；du -xh --max-depth=1 {process.root}/tmp"),
    )  # fmt: skip


def memory(process: Process) -> Refusal | None:
    """None when the target may grow by what a capture takes without being killed for it."""
    tight = tightest(process.pid)
    if tight is None or tight.left >= MEMORY:
        return None
    left, limit = tight.left >> 20, tight.limit >> 20
    where = f"its control group {tight.folder} may use {limit} MiB" if tight.folder else f"the machine has {limit} MiB"
    where_zh = f"其 cgroup {tight.folder} 上限为 {limit} MiB" if tight.folder else f"本机内存共 {limit} MiB"
    return Refusal(
        "near-memory-limit",
        Text(f"process {process.pid} is close to running out of memory: {where}, and {left} MiB of it are left; a profiler takes up to "
             f"{MEMORY >> 20} MiB in the target, which the kernel would kill",
             f"进程 {process.pid} 接近内存上限：{where_zh}，仅剩 {left} MiB；profiler 在目标进程内最多占用 {MEMORY >> 20} MiB，"
             "可能导致其被内核终止"),
        Text("capture stacks and cpu, which take none of the target's memory; or raise the limit; --force captures all the same",
             "仅采集 stacks 与 cpu（不占用目标内存）；或提高上限；--force 可强制采集"),
        forced=True,
    )  # fmt: skip


def tightest(pid: int) -> Limit | None:
    """Where the least memory is left: at a level of its control groups, or the machine; None when nothing tells."""
    found = [*_groups(pid), *_machine()]
    return min(found, key=lambda limit: limit.left, default=None)


def _groups(pid: int) -> list[Limit]:
    reader = system.Reader("")
    groups = system.folders(reader, system.hierarchies(reader), pid)
    out = []
    for at in groups.get("unified", ()):
        out += _level(at, "memory.max", "memory.current", "inactive_file")
    for at in groups.get("memory", ()):
        out += _level(at, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    return out


def _level(at: str, most: str, used: str, reclaimable: str) -> list[Limit]:
    """The limit of one control group; none where there is none. Cached file pages are given back and do not count."""
    limit, usage = _number(f"{at}/{most}"), _number(f"{at}/{used}")
    if limit is None or usage is None or limit >= _UNLIMITED:
        return []
    cached = _field(f"{at}/memory.stat", reclaimable) or 0
    return [Limit(max(0, limit - max(0, usage - cached)), limit, at)]


def _machine() -> list[Limit]:
    total, left = (_field("/proc/meminfo", name) for name in ("MemTotal:", "MemAvailable:"))
    return [Limit(left << 10, total << 10, "")] if total is not None and left is not None else []


def _writable(told: os.stat_result, uid: int) -> bool:
    """Whether this user may write to a folder, as far as owner and mode tell; groups are not looked at."""
    return uid == 0 or bool(told.st_mode & stat.S_IWOTH) or (told.st_uid == uid and bool(told.st_mode & stat.S_IWUSR))


def _number(path: str) -> int | None:
    with suppress(OSError, ValueError):
        return int(Path(path).read_text())
    return None


def _field(path: str, name: str) -> int | None:
    with suppress(OSError):
        found = re.search(rf"^{re.escape(name)}\s+(\d+)", Path(path).read_text(), re.MULTILINE)
        return int(found[1]) if found else None
    return None
