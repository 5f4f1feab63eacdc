"""Prints how firmware and kernel set the machine up, raw, as one JSON document (``gpudiag/platform/1``).

Run as ``python -I -B platform.py --deadline SECONDS [--root DIR]``. Python 3.8 and later, standard library only.

What is kept: error counters of memory modules (EDAC), temperatures and fans of the kernel's own sensors (hwmon),
idle states of the first core, microcode versions, NUMA nodes, huge pages, the policy of PCIe link power, model,
firmware and state of drives and software arrays, and how many crash records the firmware keeps (their names, not
their content). No serial number is read, and nothing of any process.

An unreadable file becomes ``{"error": "EACCES: Permission denied"}``; what is not there is left out. Sensors come
last and get half a second: some sit behind slow buses. When a read does not come back, the document ends before the
deadline with what there is, and ``hung`` names the file. ``--root DIR`` is put in front of every path.

Formats: https://docs.kernel.org/admin-guide/RAS/main.html (EDAC), .../hwmon/sysfs-interface.html,
.../admin-guide/pm/cpuidle.html, .../admin-guide/mm/hugetlbpage.html, .../admin-guide/md.html,
Documentation/ABI/testing/sysfs-class-nvme and sysfs-devices-system-cpu.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

SCHEMA = "gpudiag/platform/1"
LIMIT = 4096  # bytes of one file; NUMA's meminfo, the longest, has some 2 KiB
MOST = 4096  # folders of one kind: more than any machine has cores
SENSORS = 0.5  # seconds in which reads of sensors are begun
CPU = "/sys/devices/system/cpu/"
SINGLE = (
    "/proc/sys/kernel/hostname", "/proc/sys/kernel/random/boot_id", CPU + "smt/control", CPU + "cpuidle/current_driver",
    CPU + "cpuidle/current_governor", "/sys/module/pcie_aspm/parameters/policy",
)  # fmt: skip
# A folder, how the names in it begin, and the files that are read below each.
GROUPS = (
    (
        "/sys/devices/system/edac/mc",
        "mc",
        ("mc_name", "size_mb", "ce_count", "ue_count", "ce_noinfo_count", "ue_noinfo_count"),
    ),
    (CPU, "cpu", ("microcode/version", "topology/physical_package_id")),
    (CPU + "cpu0/cpuidle", "state", ("name", "latency", "disable")),
    ("/sys/kernel/mm/hugepages", "hugepages-", ("nr_hugepages", "free_hugepages")),
    ("/sys/class/nvme", "nvme", ("model", "firmware_rev", "state", "transport")),
    ("/sys/block", "sd", ("device/state",)),
    ("/sys/block", "md", ("md/level", "md/array_state", "md/degraded", "md/raid_disks", "md/sync_action")),
)
MODULE = ("dimm_label", "dimm_location", "dimm_ce_count", "dimm_ue_count", "dimm_mem_type", "size")
SENSOR = re.compile(r"(?:temp\d{1,3}_(?:input|label|max|crit)|fan\d{1,3}_(?:input|label|min))\Z")
CRASHES = "/sys/fs/pstore"


def said(error: OSError) -> dict[str, str]:
    """An OS error as text: its name, then the kernel's words."""
    return {"error": f"{errno.errorcode.get(error.errno or 0, error.errno)}: {error.strerror}"}


class Reader:
    """Opens files under a root, keeps what it read, and remembers which one it is at."""

    def __init__(self, root: str, document: dict[str, Any]) -> None:
        self.root = root.rstrip("/")
        self.at = ""
        self.files: dict[str, Any] = document["files"]

    def names(self, folder: str, prefix: str = "") -> list[str]:
        """Names in a folder that begin with `prefix` and a number, in order; none when it is not there."""
        self.at = folder
        try:
            found = os.listdir(self.root + folder)  # noqa: PTH208 - pathlib costs as much as the rest of the start
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                self.files[folder] = said(error)
            return []
        kept = [
            name
            for name in found
            if name.startswith(prefix) and (not prefix or name[len(prefix) :][:1].isdigit() or prefix == "sd")
        ]
        return sorted(kept, key=lambda name: (len(name), name))[:MOST]

    def text(self, path: str) -> str:
        """The file's text, empty when there is none; kept in the document unless it is not there."""
        self.at = path
        try:
            handle = os.open(self.root + path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                data = os.read(handle, LIMIT)
            finally:
                os.close(handle)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                self.files[path] = said(error)
            return ""
        text = data.decode("utf-8", "replace").strip("\n\0 ")
        self.files[path] = text
        return text

    def link(self, path: str) -> None:
        """Keeps the last part of where a symbolic link leads."""
        self.at = path
        try:
            self.files[path] = os.path.basename(os.readlink(self.root + path))  # noqa: PTH115, PTH119 - as above
        except OSError:
            return


def collect(reader: Reader, document: dict[str, Any]) -> None:
    """Fills the document; what is in it at any moment is whole."""
    for path in SINGLE:
        reader.text(path)
    for folder, prefix, leaves in GROUPS:
        for name in reader.names(folder, prefix):
            for leaf in leaves:
                reader.text(f"{folder.rstrip('/')}/{name}/{leaf}")
    modules(reader)
    numa(reader)
    memory(reader)
    found = reader.names(CRASHES)
    if CRASHES not in reader.files and os.path.isdir(reader.root + CRASHES):  # noqa: PTH112 - as above
        reader.files[CRASHES] = "\n".join(name for name in found if name.startswith("dmesg-"))
    ended = time.monotonic() + SENSORS
    for path in sensors(reader):
        if time.monotonic() > ended:
            document["cut"] = f"sensors: stopped at {path} after {SENSORS} s"
            return
        reader.text(path)


def modules(reader: Reader) -> None:
    """Memory modules below their controllers; older drivers name them by rank."""
    top = "/sys/devices/system/edac/mc"
    for controller in reader.names(top, "mc"):
        for prefix in ("dimm", "rank"):
            for name in reader.names(f"{top}/{controller}", prefix):
                for leaf in MODULE:
                    reader.text(f"{top}/{controller}/{name}/{leaf}")


def numa(reader: Reader) -> None:
    """Processors and the size of the memory of each NUMA node."""
    top = "/sys/devices/system/node"
    for name in reader.names(top, "node"):
        reader.text(f"{top}/{name}/cpulist")
        path = f"{top}/{name}/meminfo"
        if reader.text(path):
            reader.files[path] = first(reader.files[path], "MemTotal:")


def memory(reader: Reader) -> None:
    """The machine's memory, one line of /proc/meminfo."""
    if reader.text("/proc/meminfo"):
        reader.files["/proc/meminfo"] = first(reader.files["/proc/meminfo"], "MemTotal:")


def first(text: Any, word: str) -> str:
    """The first line that holds `word`; empty when none does."""
    lines = text.split("\n") if isinstance(text, str) else []
    return next((line for line in lines if word in line), "")


def sensors(reader: Reader) -> Iterator[str]:
    """Files of the kernel's sensors. Power meters of the firmware ask the management controller: seconds."""
    top = "/sys/class/hwmon"
    for name in reader.names(top, "hwmon"):
        folder = f"{top}/{name}"
        if reader.text(folder + "/name") in ("", "power_meter"):
            continue
        reader.link(folder + "/device")
        for leaf in reader.names(folder):
            if SENSOR.match(leaf):
                yield f"{folder}/{leaf}"


def arguments(words: list[str]) -> tuple[float, str]:
    """Options by name. ValueError for words that are none."""
    out = {"--deadline": "4", "--root": "/"}
    for at in range(0, len(words), 2):
        if words[at] not in out:
            raise ValueError(f"unknown option {words[at]}")
        if at + 1 == len(words):
            raise ValueError(f"{words[at]} needs a value")
        out[words[at]] = words[at + 1]
    return float(out["--deadline"]), out["--root"]


def printed(document: dict[str, Any]) -> str:
    """The document as text: one file a line."""
    lines = []
    for key, value in list(document.items()):
        if key == "files":
            entries = [f"  {json.dumps(p)}: {json.dumps(t, ensure_ascii=False)}" for p, t in list(value.items())]
            text = "{\n" + ",\n".join(entries) + "\n}"
        else:
            text = json.dumps(value, ensure_ascii=False)
        lines.append(f"{json.dumps(key)}: {text}")
    return "{" + ",\n".join(lines) + "}\n"


def main() -> int:
    """Prints the document; exit code 2 when it is called wrongly."""
    try:
        deadline, root = arguments(sys.argv[1:])
    except ValueError as error:
        sys.stderr.write(f"platform: {error}\n")
        return 2
    document: dict[str, Any] = {"schema": SCHEMA, "host": "", "at_ns": time.time_ns(), "boot_id": "", "files": {}}
    reader = Reader(root, document)
    worker = threading.Thread(target=collect, args=(reader, document), daemon=True)
    worker.start()
    worker.join(max(0.1, deadline * 0.85 - 0.05))
    if worker.is_alive():
        document["hung"] = reader.at
    for key, path in (("host", "/proc/sys/kernel/hostname"), ("boot_id", "/proc/sys/kernel/random/boot_id")):
        value = document["files"].get(path)
        document[key] = value if isinstance(value, str) else ""
    text = printed(document).encode("utf-8", "replace")
    while text:
        text = text[os.write(1, text) :]
    os._exit(0)  # a thread that hangs in the kernel would keep the interpreter


if __name__ == "__main__":
    sys.exit(main())
