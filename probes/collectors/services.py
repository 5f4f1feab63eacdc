"""Prints the state of the services that GPU nodes need, raw, as one JSON document (``gpudiag/services/1``).

Run as ``python -I -B services.py --deadline SECONDS [--root DIR]``. Python 3.8 and later, standard library
only. Kept are what ``systemctl show`` prints of a fixed list of units (state, result, restarts, times), which
of a fixed list of sockets and pid files exist, the kernel's opinion of its clock (adjtimex), the version
line of the NVIDIA driver, and, only where systemd does not answer, which of a fixed list of
process names run. No command line, environment, journal or configuration of any service is read.

With ``--root DIR`` paths are opened below DIR, and systemd is not asked: it would answer for this machine.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import json
import os
import re
import select
import shutil
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

SCHEMA = "gpudiag/services/1"
UNITS = [
    "nvidia-fabricmanager",
    "nvidia-persistenced",
    "nvidia-dcgm",
    "dcgm",
    "nvidia-imex",
    "nvidia-mps",
    "docker",
    "containerd",
    "crio",
    "kubelet",
    "k3s",
    "k3s-agent",
    "rke2-server",
    "rke2-agent",
    "slurmd",
    "munge",
    "opensm",
    "opensmd",
    "chronyd",
    "chrony",
    "ntpd",
    "ntp",
    "ntpsec",
    "systemd-timesyncd",
    "ptp4l",
    "phc2sys",
]
PROPERTIES = (
    "Id,LoadState,ActiveState,SubState,Result,ExecMainStatus,NRestarts,ActiveEnterTimestamp,"
    "ActiveEnterTimestampMonotonic,UnitFileState,MainPID"
)
# As the kernel keeps them: cut after 15 characters.
PROCESSES = frozenset(
    name[:15]
    for name in [
        "nv-fabricmanager",
        "nvidia-fabricmanager",
        "nvidia-persistenced",
        "nv-hostengine",
        "nvidia-imex",
        "nvidia-cuda-mps-control",
        "nvidia-cuda-mps-server",
        "dockerd",
        "containerd",
        "crio",
        "kubelet",
        "k3s",
        "k3s-server",
        "k3s-agent",
        "rke2",
        "slurmd",
        "munged",
        "opensm",
        "chronyd",
        "ntpd",
        "systemd-timesyncd",
        "ptp4l",
        "phc2sys",
    ]
)
SOCKETS = (
    "/run/nvidia-persistenced/socket", "/run/nvidia-fabricmanager/socket", "/run/containerd/containerd.sock",
    "/run/crio/crio.sock", "/run/k3s/containerd/containerd.sock", "/run/docker.sock", "/var/run/docker.sock",
    "/run/munge/munge.socket.2", "/var/run/munge/munge.socket.2", "/var/lib/kubelet/device-plugins/kubelet.sock",
    "/tmp/nvidia-mps/control", "/run/nvidia/mps/pipe/control",
)  # fmt: skip
MARGIN = 0.2
CAP = 1 << 18  # bytes of what systemctl prints: 25 units have some 8 KiB


def said(error: OSError) -> dict[str, str]:
    """An OS error as text: its name, then the kernel's words."""
    return {"error": f"{errno.errorcode.get(error.errno or 0, error.errno)}: {error.strerror}"}


def read(path: str, cap: int = 4096) -> dict[str, str]:
    """``{"text": ...}`` of a small file, or why there is none."""
    try:
        with Path(path).open("rb", buffering=0) as file:
            return {"text": (file.read(cap) or b"").decode("utf-8", "backslashreplace")}
    except OSError as error:
        return said(error)


def line(path: str) -> str:
    """The only line of a file; empty when it cannot be read."""
    return read(path).get("text", "").strip()


def systemctl(deadline: float) -> dict[str, Any]:
    """What systemd says of the units: an exit code and text, or why there is none."""
    argv = ["systemctl", "show", "--no-pager", "--property=" + PROPERTIES, *(unit + ".service" for unit in UNITS)]
    found = shutil.which(argv[0])
    answer: dict[str, Any] = {"call": "systemctl show"}
    if found is None:
        return {**answer, "error": "ENOENT: systemctl is not installed"}
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "SYSTEMD_COLORS": "0"}
    try:
        child = subprocess.Popen(
            [found, *argv[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
    except OSError as error:
        return {**answer, **said(error)}
    out, err, ended = outputs(child, time.monotonic() + max(0.1, deadline))
    if not ended:
        child.kill()
        return {**answer, "hung": "systemctl show", "seconds": round(deadline, 1)}
    answer["exit"] = child.returncode
    answer["text"] = out.decode("utf-8", "backslashreplace").splitlines()
    answer["stderr"] = err[:2048].decode("utf-8", "backslashreplace").strip()
    return answer


def outputs(child: subprocess.Popen[bytes], until: float) -> tuple[bytes, bytes, bool]:
    """What a child prints, at most `CAP` bytes of each kind, and whether it ended in time and kept within that."""
    kept: dict[int, bytes] = {}
    open_ = [pipe.fileno() for pipe in (child.stdout, child.stderr) if pipe is not None]
    first, second = open_
    while open_ and (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select(open_, [], [], left)
        for handle in ready:
            data = os.read(handle, 1 << 16)
            kept[handle] = kept.get(handle, b"") + data
            if not data:
                open_.remove(handle)
            elif len(kept[handle]) > CAP:
                return b"", b"", False
    try:
        child.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        return b"", b"", False
    return kept.get(first, b""), kept.get(second, b""), not open_


def processes(root: str) -> dict[str, Any]:
    """Pid and name of the processes of interest, and whether the whole machine can be seen from here."""
    try:
        pids = sorted(int(entry.name) for entry in os.scandir(root + "/proc") if entry.name.isdigit())
    except OSError as error:
        return said(error)
    names = ((pid, line(f"{root}/proc/{pid}/comm")) for pid in pids)
    found = [{"pid": pid, "comm": name} for pid, name in names if name in PROCESSES]
    # kthreadd is pid 2 of the first pid namespace only; who may not see it does not see the others' processes either
    return {"whole": line(root + "/proc/2/comm") == "kthreadd", "running": found}


def sockets(root: str) -> dict[str, Any]:
    """Of each path whether it is there."""
    found: dict[str, Any] = {}
    for path in SOCKETS:
        try:
            mode = Path(root + path).stat().st_mode
        except FileNotFoundError:
            continue
        except OSError as error:
            found[path] = said(error)
        else:
            found[path] = "socket" if stat.S_ISSOCK(mode) else "pipe" if stat.S_ISFIFO(mode) else "file"
    return found


class _Timex(ctypes.Structure):
    """struct timex of adjtimex(2), 64 bit; the tail is padding."""

    _fields_ = [
        ("modes", ctypes.c_uint), ("offset", ctypes.c_long), ("freq", ctypes.c_long), ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long), ("status", ctypes.c_int), ("rest", ctypes.c_char * 256),
    ]  # fmt: skip


def clock() -> dict[str, Any]:
    """State of the kernel's clock discipline; modes 0 only reads. The clock is the same below every root."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        timex = _Timex()
        state = libc.adjtimex(ctypes.byref(timex))
    except (OSError, AttributeError) as error:
        return {"error": f"ENOSYS: {error}"}
    if state < 0:
        return said(OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno())))
    return {"state": state, "status": timex.status, "maxerror_us": timex.maxerror, "esterror_us": timex.esterror}


def driver(root: str) -> str | None:
    """The line that names the version of the loaded NVIDIA module."""
    text = read(root + "/proc/driver/nvidia/version").get("text", "")
    found = re.search(r"^NVRM version:.*$", text, re.MULTILINE)
    return found[0] if found else None


def main() -> None:
    """Print the document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deadline", type=float, default=5.0)
    parser.add_argument("--root", default="")
    given = parser.parse_args()
    root = given.root.rstrip("/")
    document: dict[str, Any] = {
        "schema": SCHEMA, "host": line(root + "/proc/sys/kernel/hostname"), "at_ns": time.time_ns(),
        "boot_id": line(root + "/proc/sys/kernel/random/boot_id"), "uptime_s": None, "driver": driver(root),
        "clock": clock(), "sockets": sockets(root),
    }  # fmt: skip
    with suppress(ValueError, IndexError):
        document["uptime_s"] = float(line(root + "/proc/uptime").split()[0])
    if root:
        document["systemctl"] = {
            "call": "systemctl show",
            "error": "ENOENT: not asked, it would answer for another root",
        }
    else:
        document["systemctl"] = systemctl(given.deadline - MARGIN)
    if document["systemctl"].get("exit") != 0:
        document["processes"] = processes(root)
    sys.stdout.write(json.dumps(document, indent=1) + "\n")
    sys.stdout.flush()
    os._exit(0)  # a systemctl that cannot be killed is left behind


if __name__ == "__main__":
    main()
