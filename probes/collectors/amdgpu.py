"""What the amdgpu driver shows of its GPUs in sysfs, raw, as one JSON document (``gpudiag/amdgpu/1``).

Run as ``python -I -B amdgpu.py --deadline SECONDS [--root DIR]``. Python 3.8 and later, standard library only. Of each
device that is bound to amdgpu: product and VBIOS, load and memory, sensors and their limits (hwmon), the error counters of
each block (ras/*_err_count) and the list of bad memory pages. Nothing of any process is read.

Left alone: ``xgmi_error``, which is cleared by reading, and all of a GPU that sleeps: asking wakes it, and its error
counters read as ones meanwhile. The GPUs are read side by side; a read that does not come back is named in ``hung``.

``--root DIR`` is put in front of every path that is opened.
"""

# pathlib would cost this short-lived process its import
# ruff: noqa: PTH208
from __future__ import annotations

import argparse
import errno
import json
import os
import re
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Record = dict[str, Any]  # Python 3.8 cannot evaluate it

SCHEMA = "gpudiag/amdgpu/1"
DRIVER = "/sys/bus/pci/drivers/amdgpu"
CAP = 65536  # bytes of one file
MOST = 64  # GPUs
MARGIN = 0.15  # seconds kept for printing
ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
FILES = (
    "product_name", "serial_number", "vbios_version", "gpu_busy_percent", "mem_info_vram_total", "mem_info_vram_used",
    "pcie_replay_count", "numa_node",
)  # fmt: skip
SENSORS = re.compile(
    r"(?:temp[1-9]_(?:label|input|crit|emergency)|power1_(?:average|input|cap)|freq[1-9]_(?:label|input))"
)
COUNTERS = re.compile(r"[a-z0-9_]{1,40}_err_count")


def said(error: OSError) -> Record:
    """An OS error as text: its name, then the kernel's words."""
    return {"error": f"{errno.errorcode.get(error.errno or 0, error.errno)}: {error.strerror}"}


def read(path: str) -> Any:
    """The text of a file, or why there is none; None when it does not exist."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        return None if error.errno in (errno.ENOENT, errno.ENOTDIR) else said(error)
    try:
        parts, size = [], 0
        while size < CAP:
            part = os.read(handle, CAP - size)
            if not part:
                break
            parts.append(part)
            size += len(part)
        return b"".join(parts).decode("utf-8", "replace").strip()
    except OSError as error:
        return said(error)
    finally:
        os.close(handle)


def names(path: str) -> list[str]:
    """What is in a folder, sorted; nothing when it cannot be listed."""
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


class Device(threading.Thread):
    """Reads one GPU; `at` is the file that it waits for."""

    def __init__(self, folder: str) -> None:
        super().__init__(daemon=True)
        self.folder = folder
        self.record: Record = {}
        self.lock = threading.Lock()
        self.at = ""

    def keep(self, group: str, name: str) -> None:
        """One file into a group of the record."""
        self.at = name
        value = read(f"{self.folder}/{name}")
        with self.lock:
            if value is not None:
                self.record.setdefault(group, {})[name.rsplit("/", 1)[-1]] = value

    def run(self) -> None:
        """Everything of this GPU, unless it sleeps."""
        self.keep("power", "power/runtime_status")
        if str(self.record.get("power", {}).get("runtime_status", "")).startswith("suspend"):
            self.record["asleep"] = True
            self.at = ""
            return
        for name in FILES:
            self.keep("files", name)
        for monitor in names(f"{self.folder}/hwmon")[:1]:
            for name in names(f"{self.folder}/hwmon/{monitor}"):
                if SENSORS.fullmatch(name):
                    self.keep("hwmon", f"hwmon/{monitor}/{name}")
        there = names(f"{self.folder}/ras")
        with self.lock:
            self.record["ras_folder"] = bool(there)
        for name in there:
            if COUNTERS.fullmatch(name):
                self.keep("ras", f"ras/{name}")
        if "gpu_vram_bad_pages" in there:
            self.keep("pages", "ras/gpu_vram_bad_pages")
        self.at = ""

    def told(self) -> Record:
        """What was read so far, and what it still waits for."""
        with self.lock:
            out: Record = json.loads(json.dumps(self.record))
        if self.at and self.is_alive():
            out["hung"] = f"{self.folder}/{self.at}"
        return out


def work(root: str, deadline: float) -> Record:
    """Everything that can be had before `deadline` (monotonic)."""
    try:
        found = [name for name in sorted(os.listdir(root + DRIVER)) if ADDRESS.fullmatch(name)]
    except OSError as error:
        return {"devices": {}, **said(error)}
    devices = {name: Device(f"{root}/sys/bus/pci/devices/{name}") for name in found[:MOST]}
    for device in devices.values():
        device.start()
    for device in devices.values():
        device.join(max(0.0, deadline - time.monotonic()))
    out = {name: device.told() for name, device in devices.items()}
    for record in out.values():
        if root and "hung" in record:
            record["hung"] = record["hung"][len(root) :]
    return {"devices": out}


def host_name(root: str) -> str:
    """The machine's own name."""
    found = read(root + "/proc/sys/kernel/hostname")
    return found if isinstance(found, str) and found else os.uname().nodename


def main() -> None:
    """Print the document and end, whatever still hangs."""
    parser = argparse.ArgumentParser(description="GPUs of the amdgpu driver, raw, as JSON")
    parser.add_argument("--deadline", type=float, default=5.0, help="seconds")
    parser.add_argument("--root", default="", help="folder that stands for /")
    options = parser.parse_args()
    deadline = time.monotonic() + max(0.1, options.deadline - MARGIN)
    root = options.root.rstrip("/")
    out: Record = {"schema": SCHEMA, "at_ns": time.time_ns(), "host": host_name(root), **work(root, deadline)}
    data = json.dumps(out, indent=1).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]
    for handle in (1, 2):  # a thread that hangs in the kernel would hold the pipe open
        os.close(handle)
    os._exit(0)


if __name__ == "__main__":
    main()
