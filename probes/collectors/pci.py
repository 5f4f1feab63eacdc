"""The PCI bus as sysfs shows it, and what the NVIDIA driver says of its GPUs in /proc and /dev.

Collected: of display controllers, accelerators, NVSwitches, network adapters and NVMe drives, and of
the bridges above them, the files of /sys/bus/pci/devices that hold identity, link, error counters,
power, driver, NUMA node, IOMMU group and regions; the first 64 bytes of their configuration space
and, where the kernel lets us, their PCI Express, AER and ACS capabilities; slot names; the type of
IOMMU groups; /proc/driver/nvidia/{version,params,gpus/*/information}; the lines of /proc/modules that
belong to GPU and RDMA drivers, without the load address; name, mode, owner and accessibility of /dev/nvidia*.
Nothing of any process is read.

A read that does not come back (a device that hangs the bus) is given up after a second and named; the
other devices are read all the same. A device in D3cold is not read where that would wake it.

    python -I -B pci.py --deadline SECONDS [--root DIR]
"""

from __future__ import annotations

import argparse
import collections
import errno
import functools
import json
import os
import re
import stat
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # Python 3.8 knows no such types
    Record = dict[str, Any]
    Jobs = collections.deque[tuple[Record, Callable[["Walker"], None]]]

SCHEMA = "gpudiag/pci/1"
PATIENCE = 1.0  # seconds for one read: a completion timeout of PCI Express is at most 64 ms (base specification)
LARGEST = 65536  # bytes of one file that are kept

ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
ROOT_BUS = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")
NVIDIA = "0x10de"
ENDPOINTS = ("0x03", "0x02", "0x0c06", "0x0108", "0x12")  # classes: display, network, InfiniBand, NVMe, accelerators
TEXTS = (
    "device", "subsystem_vendor", "subsystem_device", "revision", "numa_node", "local_cpulist", "enable",
    "d3cold_allowed", "sriov_numvfs", "sriov_totalvfs", "reset_method", "resource",
    "aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal", "aer_rootport_total_err_cor",
    "aer_rootport_total_err_nonfatal", "aer_rootport_total_err_fatal", "max_link_speed", "max_link_width",
)  # fmt: skip
ASLEEP = ("current_link_speed", "current_link_width")  # the kernel wakes a device to answer
MODULES = re.compile(r"nvidia|nouveau|mlx|ib_|rdma|irdma|bnxt_re|efa|gdrdrv|nv_peer_mem|vfio_pci|nova_core")
EXPRESS, AER, ACS = 0x10, 0x0001, 0x000D  # capability, then extended capabilities


def named(error: OSError) -> str:
    """``EACCES: Permission denied``."""
    return f"{errno.errorcode.get(error.errno or 0, 'EIO')}: {error.strerror or error}"


class GivenUp(Exception):
    """The walker was replaced while it waited."""


class Walker(threading.Thread):
    """Does the jobs one after the other; `waits_for` and `since` say what it waits for."""

    def __init__(self, jobs: Jobs, root: str) -> None:
        super().__init__(daemon=True)
        self.jobs = jobs
        self.root = root
        self.lock = threading.Lock()
        self.record: Record = {}
        self.waits_for = ""
        self.since = 0.0
        self.given_up = False

    def run(self) -> None:
        """The jobs, until there are none or it is given up."""
        try:
            while self.jobs:
                self.record, job = self.jobs.popleft()
                job(self)
        except (GivenUp, IndexError):
            pass

    def give_up(self, waited: float) -> None:
        """Say in the record what it waits for; from here on the walker changes nothing."""
        with self.lock:
            self.given_up = True
            self.record["hung"] = self.waits_for
            self.record["waited_s"] = waited

    def ask(self, path: str, call: Callable[[str], Any]) -> Any:
        """What `call` gives for the path below the root; an error as ``{"error": ...}``, an absent file as None."""
        self.waits_for, self.since = path, time.monotonic()
        try:
            value = call(self.root + path)
        except OSError as error:
            value = None if error.errno in (errno.ENOENT, errno.ENOTDIR) else {"error": named(error)}
        with self.lock:
            if self.given_up:
                raise GivenUp
            self.since = 0.0
        return value

    def text(self, path: str) -> Any:
        """The text of a file."""
        return self.ask(path, _read)

    def names(self, path: str) -> list[str]:
        """What is in a folder, sorted; nothing when it cannot be listed."""
        found = self.ask(path, os.listdir)
        return sorted(found) if isinstance(found, list) else []

    def keep(self, key: str, value: Any) -> None:
        """Put a value into the record."""
        if value is not None:
            with self.lock:
                if self.given_up:
                    raise GivenUp
                self.record[key] = value


def _read(path: str) -> str:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(fd, LARGEST)
        while len(data) < LARGEST:
            more = os.read(fd, LARGEST - len(data))
            if not more:
                break
            data += more
    finally:
        os.close(fd)
    return data.decode("utf-8", "replace").strip()


def _target(path: str) -> str:
    return os.readlink(path).rsplit("/", 1)[-1]  # noqa: PTH115 - pathlib takes longer to import than all the reads


def _config(path: str) -> Record:
    """The first 64 bytes, and the capabilities of interest, as hex; reading them changes nothing on the device."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        head = os.pread(fd, 64, 0)
        out = {"head": head.hex()}
        if len(head) < 64 or head[:4] == b"\xff\xff\xff\xff" or not head[6] & 0x10:
            return out
        if not os.pread(fd, 1, 64):
            out["limited"] = "the kernel shows more than 64 bytes only with CAP_SYS_ADMIN"
            return out
        at, left = head[0x34] & 0xFC, 48
        while at >= 0x40 and left:
            word = os.pread(fd, 2, at)
            if len(word) < 2:
                break
            if word[0] == EXPRESS:
                out["express"] = os.pread(fd, 0x3C, at).hex()
            at, left = word[1] & 0xFC, left - 1
        at, left = 0x100, 96
        while at >= 0x100 and left and "express" in out:
            header = int.from_bytes(os.pread(fd, 4, at), "little")
            if header in (0, 0xFFFFFFFF):
                break
            if header & 0xFFFF == AER:
                out["aer"] = os.pread(fd, 0x18, at).hex()
            elif header & 0xFFFF == ACS:
                out["acs"] = os.pread(fd, 8, at).hex()
            at, left = header >> 20 & 0xFFC, left - 1
        return out
    finally:
        os.close(fd)


def chain(link: str) -> list[str]:
    """Addresses from the root port down to the device, from where its link in /sys/bus/pci/devices points to."""
    out: list[str] = []
    for part in link.split("/"):
        if ROOT_BUS.fullmatch(part):
            out = []  # a root bus below a device: what is above belongs to another hierarchy
        elif ADDRESS.fullmatch(part):
            out.append(part)
    return out


def survey(walker: Walker, devices: Record, groups: Record) -> None:
    """Find the functions that matter and queue a job for each."""
    base = "/sys/bus/pci/devices"
    names = walker.ask(base, os.listdir)
    if not isinstance(names, list):
        walker.keep("error", names["error"] if names else f"ENOENT: {base} does not exist")
        return
    wanted: dict[str, list[str]] = {}
    seen: dict[str, tuple[Any, Any]] = {}
    unclassed: list[str] = []  # what they are is not told
    for name in sorted(names):
        class_ = walker.text(f"{base}/{name}/class")
        vendor = walker.text(f"{base}/{name}/vendor")
        seen[name] = (class_, vendor)
        if not isinstance(class_, str):
            unclassed.append(name)
            continue
        if class_.startswith(ENDPOINTS) or (class_.startswith("0x0680") and vendor == NVIDIA):
            link = walker.ask(f"{base}/{name}", os.readlink)
            wanted[name] = chain(link) if isinstance(link, str) else [name]
    for path in list(wanted.values()):
        for depth, bridge in enumerate(path[:-1], 1):
            wanted.setdefault(bridge, path[:depth])
    walker.keep("functions", len(names))
    if unclassed:
        walker.keep("unclassed", unclassed)
    for name in sorted(wanted):
        class_, vendor = seen.get(name) or (None, None)
        record: Record = {"path": wanted[name], "class": class_, "vendor": vendor}
        devices[name] = record
        walker.jobs.append((record, functools.partial(function, folder=f"{base}/{name}", groups=groups)))


def function(walker: Walker, folder: str, groups: Record) -> None:
    """One PCI function."""
    there = set(walker.names(folder))
    for key in TEXTS:
        if key in there:
            walker.keep(key, walker.text(f"{folder}/{key}"))
    for key in ("driver", "iommu_group", "physfn"):
        if key in there:
            walker.keep(key, walker.ask(f"{folder}/{key}", _target))
    if "power" in there:
        for key in ("runtime_status", "control"):
            walker.keep("power/" + key, walker.text(f"{folder}/power/{key}"))
    state = walker.text(folder + "/power_state") if "power_state" in there else None
    walker.keep("power_state", state)
    group = walker.record.get("iommu_group")
    if isinstance(group, str) and group not in groups:
        groups[group] = walker.text(f"/sys/kernel/iommu_groups/{group}/type")
    if state == "D3cold":
        for key in (*ASLEEP, "config"):
            walker.keep(key, {"skipped": "the device is switched off (D3cold) and reading this would wake it"})
        return
    if "config" in there:
        walker.keep("config", walker.ask(folder + "/config", _config))
    for key in ASLEEP:
        if key in there:
            walker.keep(key, walker.text(f"{folder}/{key}"))


def slots(walker: Walker) -> None:
    """Addresses of the slots that the platform names."""
    for name in walker.names("/sys/bus/pci/slots"):
        walker.keep(name, walker.text(f"/sys/bus/pci/slots/{name}/address"))


def driver(walker: Walker) -> None:
    """What the NVIDIA driver says in /proc, and the modules that are loaded."""
    base = "/proc/driver/nvidia"
    walker.keep("version", walker.text(base + "/version"))
    walker.keep("params", walker.text(base + "/params"))
    gpus = walker.ask(base + "/gpus", os.listdir)
    if isinstance(gpus, list):
        found = {name: walker.text(f"{base}/gpus/{name}/information") for name in sorted(gpus)}
        walker.keep("gpus", found)
    else:
        walker.keep("gpus", gpus)
    modules = walker.text("/proc/modules")
    if isinstance(modules, str):
        lines = [line for line in modules.splitlines() if MODULES.match(line)]
        modules = [re.sub(r" 0x[0-9a-f]+", "", line) for line in lines]
    walker.keep("modules", modules)


def nodes(walker: Walker) -> None:
    """The device files, and whether this process may use them. None of them is opened."""
    for name in walker.names("/dev"):
        if name.startswith("nvidia"):
            walker.keep(name, walker.ask("/dev/" + name, _node))


def _node(path: str) -> Record:
    found = os.stat(path)  # noqa: PTH116 - as above
    kind = "char" if stat.S_ISCHR(found.st_mode) else "folder" if stat.S_ISDIR(found.st_mode) else "file"
    out = {"kind": kind, "mode": f"{stat.S_IMODE(found.st_mode):04o}", "uid": found.st_uid, "gid": found.st_gid}
    if kind == "char":
        out["device"] = f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"
    # inode_permission asks the device cgroup too, so this tells what a container or a job is denied
    out["usable"] = os.access(path, os.R_OK | os.W_OK, effective_ids=True)
    return out


def work(root: str, deadline: float) -> Record:
    """Everything that can be had before `deadline` (monotonic)."""
    patience = min(PATIENCE, max(0.05, (deadline - time.monotonic()) / 4))
    document: Record = {"bus": {}, "devices": {}, "slots": {}, "iommu_groups": {}, "driver": {}, "nodes": {}}
    devices, groups = document["devices"], document["iommu_groups"]
    jobs: Jobs = collections.deque(
        [
            (document["driver"], driver),
            (document["nodes"], nodes),
            (document["slots"], slots),
            (document["bus"], functools.partial(survey, devices=devices, groups=groups)),
        ]
    )
    walker = Walker(jobs, root)
    walker.start()
    while True:
        walker.join(0.05)
        if not walker.is_alive():
            return document
        now, since = time.monotonic(), walker.since
        if now >= deadline:
            walker.give_up(round(now - since, 3) if since else 0)
            for record, _ in list(jobs):
                record["unread"] = "the time was spent"
            jobs.clear()
            return document
        if since and now - since >= patience:
            walker.give_up(round(now - since, 3))
            walker = Walker(jobs, root)
            walker.start()


def host_name(root: str) -> str:
    """The machine's own name: in a container that sees it below `root` another one than ours."""
    try:
        return _read(root + "/proc/sys/kernel/hostname") or os.uname().nodename
    except OSError:
        return os.uname().nodename


def main() -> None:
    """Print the document and end, whatever still hangs."""
    parser = argparse.ArgumentParser(description="PCI bus and NVIDIA driver, raw, as JSON")
    parser.add_argument("--deadline", type=float, default=10.0, help="seconds")
    parser.add_argument("--root", default="", help="folder that stands for /")
    options = parser.parse_args()
    deadline = time.monotonic() + max(0.2, options.deadline - 0.1)
    root = options.root.rstrip("/")
    out: Record = {
        "schema": SCHEMA,
        "at_ns": time.time_ns(),
        "host": host_name(root),
        "machine": os.uname().machine,
        "uid": os.geteuid(),
    }
    try:
        out["boot_id"] = _read(root + "/proc/sys/kernel/random/boot_id")
    except OSError as error:
        out["boot_id"] = {"error": named(error)}
    out.update(work(root, deadline))
    data = json.dumps(out, indent=1).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]
    for fd in (1, 2):  # a thread that hangs in the kernel would hold the pipe open
        os.close(fd)
    os._exit(0)


if __name__ == "__main__":
    main()
