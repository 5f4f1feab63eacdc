"""Files that processes with a GPU have open for writing, in two readings: where checkpoints go, and whether they move.

Of each process that holds a GPU's device file open: the files on disks and in memory that are open for writing, with the folder,
the position (which moves as a file is written from start to end), the file system behind it, and whether a thread of the process was in
state D at both readings. No file is opened or asked for its size: neither would come back from a dead server. Names of files are
not kept but for their ending. Needs Linux's /proc; of processes of other users, root.

    python -I -B open_files.py --deadline SECONDS [--root DIR] [--window SECONDS]
"""

from __future__ import annotations

# ruff: noqa: PTH115, PTH208 - thousands of links are read: pathlib would cost more than the reads
import argparse
import contextlib
import errno
import json
import os
import re
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # Python 3.8 knows no such type
    Record = dict[str, Any]

SCHEMA = "gpudiag/open-files/1"
DEVICE = re.compile(r"/dev/(?:nvidia[0-9]|kfd|dri/render|davinci[0-9]|accel/)")
# Pieces of programs that are no files of anybody: shared memory of NCCL and PyTorch, semaphores, locks.
PLUMBING = re.compile(r"/(?:nccl-|torch_|sem\.|cuda|psm_|__KMP|pymp-|ray|vader_|openmpi)[^/]*$|\.lock$|\.sock$")
NOT_FILES = ("/proc/", "/sys/", "/memfd:", "/anon")
MOST = 64  # processes
FDS = 8192  # of one process
FILES = 32  # kept of one process
THREADS = 256


def named(error: OSError) -> str:
    """``EACCES: Permission denied``."""
    return f"{errno.errorcode.get(error.errno or 0, 'EIO')}: {error.strerror or error}"


def read(path: str, size: int = 1 << 16) -> str:
    """The text of a file of /proc."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while size > 0:
            part = os.read(fd, min(size, 1 << 16))
            if not part:
                break
            parts.append(part)
            size -= len(part)
        return b"".join(parts).decode("utf-8", "replace")
    finally:
        os.close(fd)


def mounts(text: str) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Of mountinfo: by mount id the device, type and point; by device the mount that people know it by."""
    by_id: dict[str, list[str]] = {}
    best: dict[str, tuple[Any, str]] = {}
    for line in text.splitlines():
        words = line.split(" ")
        if "-" not in words[6:] or len(words) < 10:
            continue
        dash = words.index("-", 6)
        kind, point = words[dash + 1], re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), words[4])
        by_id[words[0]] = [words[2], kind, point]
        rank = (words[3] != "/", "rw" not in words[5].split(","), len(point), point)
        if words[2] not in best or rank < best[words[2]][0]:
            best[words[2]] = (rank, point)
    return by_id, {device: point for device, (_, point) in best.items()}


def processes(proc: str, until: float) -> tuple[list[tuple[int, list[tuple[str, str]]]], int]:
    """Processes that hold a GPU, with what they have open; and how many could not be looked into."""
    found: list[tuple[int, list[tuple[str, str]]]] = []
    denied = 0
    for name in sorted((n for n in os.listdir(proc) if n.isdigit()), key=int):
        if time.monotonic() > until or len(found) >= MOST:
            break
        links = []
        try:
            for fd in os.listdir(f"{proc}/{name}/fd")[:FDS]:
                try:
                    links.append((fd, os.readlink(f"{proc}/{name}/fd/{fd}")))
                except OSError:
                    continue
        except OSError as error:
            denied += error.errno in (errno.EACCES, errno.EPERM)
            continue
        if any(DEVICE.match(link) for _, link in links):
            found.append((int(name), links))
    return found, denied


def is_file(link: str) -> bool:
    """Whether a link of fd/ leads to somebody's file."""
    if not link.startswith("/") or link.startswith(NOT_FILES) or link.endswith(" (deleted)"):
        return False
    if link.startswith("/dev/") and not link.startswith("/dev/shm/"):
        return False
    return PLUMBING.search(link) is None


def position(proc: str, pid: int, fd: str) -> dict[str, str]:
    """Lines of fdinfo by name; empty when the file has been closed."""
    try:
        lines = read(f"{proc}/{pid}/fdinfo/{fd}", 4096).splitlines()
    except OSError:
        return {}
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def blocked(proc: str, pid: int) -> set[str]:
    """Threads in state D."""
    out = set()
    try:
        for thread in os.listdir(f"{proc}/{pid}/task")[:THREADS]:
            try:
                state = read(f"{proc}/{pid}/task/{thread}/stat", 1024).rpartition(") ")[2][:1]
            except OSError:
                continue
            if state == "D":
                out.add(thread)
    except OSError:
        return set()
    return out


def look(proc: str, pid: int, links: list[tuple[str, str]], known: dict[str, str]) -> Record:
    """Files of one process that are open for writing."""
    try:
        by_id, _ = mounts(read(f"{proc}/{pid}/mountinfo", 1 << 20))
    except OSError as error:
        return {"error": named(error)}
    files: list[Record] = []
    for fd, link in links:
        if not is_file(link):
            continue
        info = position(proc, pid, fd)
        try:
            writable = int(info.get("flags", "0"), 8) & 3 != 0
        except ValueError:
            continue
        if not writable or not info.get("pos", "").isdecimal():
            continue
        device, kind, point = by_id.get(info.get("mnt_id", ""), ["", "", ""])
        folder, _, name = link.rpartition("/")
        files.append({
            "fd": fd, "folder": folder or "/", "ending": name.rpartition(".")[2][:16] if "." in name else "",
            "device": device, "type": kind, "mount": known.get(device, point), "pos": [int(info["pos"])],
        })  # fmt: skip
    files.sort(key=lambda f: -f["pos"][0])
    return {"files": files[:FILES], "more": max(0, len(files) - FILES)}


def again(proc: str, pid: int, record: Record, before: set[str]) -> None:
    """The second reading of one process."""
    for file in record.get("files", []):
        info = position(proc, pid, file["fd"])
        if info.get("pos", "").isdecimal():
            file["pos"].append(int(info["pos"]))
    record["blocked"] = len(before & blocked(proc, pid))


def main() -> None:
    """Print the document and end."""
    parser = argparse.ArgumentParser(description="files that GPU processes write, raw, as JSON")
    parser.add_argument("--deadline", type=float, default=5.0, help="seconds")
    parser.add_argument("--root", default="", help="folder that stands for /")
    parser.add_argument("--window", type=float, default=0.5, help="seconds between the two readings")
    options = parser.parse_args()
    begun = time.monotonic()
    proc = options.root.rstrip("/") + "/proc"
    out: Record = {"schema": SCHEMA, "at_ns": time.time_ns(), "host": os.uname().nodename, "processes": {}}
    with contextlib.suppress(OSError):  # a tree without it: our own name
        out["host"] = read(proc + "/sys/kernel/hostname", 256).strip() or out["host"]
    try:
        table = next((p for p in (proc + "/1/mountinfo", proc + "/self/mountinfo") if os.access(p, os.R_OK)), "")
        _, known = mounts(read(table, 1 << 22)) if table else ({}, {})
        found, out["denied"] = processes(proc, begun + options.deadline / 2)
    except OSError as error:
        out["error"] = named(error)
        found, known = [], {}
    records = {pid: look(proc, pid, links, known) for pid, links in found}
    first = {pid: blocked(proc, pid) for pid in records}
    window = max(0.0, min(options.window, options.deadline - (time.monotonic() - begun) - 0.3)) if found else 0.0
    started = time.monotonic()
    time.sleep(window)
    for pid, record in records.items():
        again(proc, pid, record, first[pid])
    out["seconds"] = round(time.monotonic() - started, 3)
    out["processes"] = {str(pid): record for pid, record in records.items()}
    print(json.dumps(out, indent=1))


if __name__ == "__main__":
    main()
