"""RDMA adapters as sysfs shows them: ports, counters, and the network interfaces behind them.

Collected of each adapter in /sys/class/infiniband: its description, firmware, board and PCI address; of
each port its state, rate, LIDs, the first GIDs with their types, and all counters twice, half a second
apart; of each network interface behind it the state, speed, MTU and statistics, twice as well; and the
NUMA node of NVIDIA GPUs. Hardware (MAC) addresses of interfaces are not read; GIDs, which hold them, are kept only
as "set", but for the first, from which a port has its GUID.

Each adapter is read by a thread of its own: one whose firmware does not answer is named and left behind.

    python -I -B rdma.py --deadline SECONDS [--root DIR] [--window SECONDS]
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import errno
import functools
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # Python 3.8 knows no such type
    Record = dict[str, Any]

SCHEMA = "gpudiag/rdma/1"
LARGEST = 4096  # an attribute of sysfs is one page at most
GIDS = 16  # entries of the GID table that are looked at: a table has 256, hardly ever more than a few are used

ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
ADAPTER = ("node_type", "node_guid", "node_desc", "fw_ver", "board_id", "hca_type", "hw_rev")
DEVICE = ("vendor", "device", "numa_node")
PORT = ("state", "phys_state", "rate", "link_layer", "lid", "sm_lid")
INTERFACE = ("operstate", "carrier", "type", "flags", "mtu", "speed", "duplex")
CHANGING = ("carrier_changes", "carrier_up_count", "carrier_down_count")
NO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"
LINK_LOCAL_PREFIX = "fe80:0000:0000:0000:"  # a GID with only this prefix and zeros is an empty entry too


def named(error: OSError) -> str:
    """``EACCES: Permission denied``."""
    return f"{errno.errorcode.get(error.errno or 0, 'EIO')}: {error.strerror or error}"


class GivenUp(Exception):
    """The time is up and the document is being written."""


class Reader(threading.Thread):
    """Reads one thing into its record, and stops where it is when it is given up."""

    def __init__(self, root: str, record: Record, job: Callable[[Reader], None]) -> None:
        super().__init__(daemon=True)
        self.root = root
        self.record = record
        self.job = job
        self.lock = threading.Lock()
        self.waits_for = ""
        self.given_up = False

    def run(self) -> None:
        """The jobs, until there are none or it is given up."""
        with contextlib.suppress(GivenUp):
            self.job(self)

    def ask(self, path: str, call: Callable[[str], Any]) -> Any:
        """What `call` gives for the path below the root; an error as ``{"error": ...}``, an absent file as None."""
        self.waits_for = path
        try:
            value = call(self.root + path)
        except OSError as error:
            value = None if error.errno in (errno.ENOENT, errno.ENOTDIR) else {"error": named(error)}
        self.check()
        self.waits_for = ""
        return value

    def check(self) -> None:
        """GivenUp when nothing may be changed any more."""
        if self.given_up:
            raise GivenUp

    def texts(self, folder: str, names: Iterable[str], into: Record) -> None:
        """The text of several files of one folder."""
        for name in names:
            value = self.ask(f"{folder}/{name}", _read)
            if value is not None:
                self.put(into, name, value)

    def put(self, into: Record, key: str, value: Any) -> None:
        """Put a value into a part of the record."""
        with self.lock:
            self.check()
            into[key] = value

    def names(self, folder: str) -> list[str]:
        """What is in a folder, sorted; nothing when it cannot be listed."""
        found = self.ask(folder, os.listdir)
        return sorted(found) if isinstance(found, list) else []

    def taken(self) -> Record:
        """A copy of the record as far as it got; the thread changes nothing afterwards."""
        with self.lock:
            self.given_up = True
            out = copy.deepcopy(self.record)
        if self.is_alive() and self.waits_for:
            out["hung"] = self.waits_for
        elif self.is_alive():
            out["unread"] = "the time was spent"
        return out


def _read(path: str) -> str:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, LARGEST).decode("utf-8", "replace").strip()
    finally:
        os.close(fd)


def adapter(reader: Reader, folder: str, window: float) -> None:
    """One adapter: what it is, then its counters, and its counters again `window` seconds later."""
    out = reader.record
    reader.texts(folder, ADAPTER, out)
    link = reader.ask(folder + "/device", _target)
    if isinstance(link, str) and ADDRESS.fullmatch(link):
        reader.put(out, "pci", link)
    physical = reader.ask(folder + "/device/physfn", _target)
    if physical is not None:
        reader.put(out, "physfn", physical)
    reader.texts(folder + "/device", DEVICE, out)
    reader.put(out, "ports", {})
    reader.put(out, "interfaces", {})
    for name in sorted(reader.names(folder + "/ports"), key=lambda n: (len(n), n)):
        record: Record = {}
        reader.put(out["ports"], name, record)
        port(reader, f"{folder}/ports/{name}", record)
    for name in reader.names(folder + "/device/net"):
        record = {}
        reader.put(out["interfaces"], name, record)
        reader.texts("/sys/class/net/" + name, INTERFACE, record)
        master = reader.ask(f"/sys/class/net/{name}/master", _target)
        if master is not None:
            reader.put(record, "master", master)
    readings: list[Record] = []
    reader.put(out, "readings", readings)
    again = time.monotonic() + window
    counters(reader, folder, readings)
    pause = again - time.monotonic()
    if pause > 0:
        time.sleep(pause)
    reader.check()
    counters(reader, folder, readings)


def _target(path: str) -> str:
    return os.readlink(path).rsplit("/", 1)[-1]  # noqa: PTH115 - pathlib takes longer to import than all the reads


def port(reader: Reader, folder: str, out: Record) -> None:
    """State of one port, and which of its first GIDs are set."""
    reader.texts(folder, PORT, out)
    types: list[str] = []
    for index in range(GIDS):
        gid = reader.ask(f"{folder}/gids/{index}", _read)
        if gid is None:
            break
        if not isinstance(gid, str) or gid in (NO_GID, LINK_LOCAL_PREFIX + "0000:0000:0000:0000"):
            continue
        if index == 0:
            reader.put(out, "gid0", gid)
        kind = reader.ask(f"{folder}/gid_attrs/types/{index}", _read)
        types.append(kind if isinstance(kind, str) else "set")
    reader.put(out, "gids", types)


def counters(reader: Reader, folder: str, readings: list[Record]) -> None:
    """One reading of every counter of the adapter's ports and interfaces, with its own time."""
    out: Record = {"at_ns": time.time_ns(), "monotonic_ns": time.monotonic_ns(), "ports": {}, "interfaces": {}}
    with reader.lock:
        reader.check()
        readings.append(out)
    for name in reader.record["ports"]:
        record: Record = {"counters": {}, "hw_counters": {}}
        reader.put(out["ports"], name, record)
        for kind in ("counters", "hw_counters"):
            where = f"{folder}/ports/{name}/{kind}"
            reader.texts(where, [n for n in reader.names(where) if n != "lifespan"], record[kind])
    for name in reader.record["interfaces"]:
        record = {}
        reader.put(out["interfaces"], name, record)
        where = "/sys/class/net/" + name
        reader.texts(where, CHANGING, record)
        reader.texts(where + "/statistics", reader.names(where + "/statistics"), record)
    reader.put(out, "until_ns", time.time_ns())
    reader.put(out, "until_monotonic_ns", time.monotonic_ns())


def gpus(reader: Reader) -> None:
    """NUMA node of each NVIDIA GPU."""
    base = "/sys/bus/pci/devices"
    for name in reader.names(base):
        where = f"{base}/{name}"
        if reader.ask(where + "/vendor", _read) != "0x10de":
            continue
        if str(reader.ask(where + "/class", _read)).startswith("0x03"):
            node = reader.ask(where + "/numa_node", _read)
            if node is not None:
                reader.put(reader.record, name, node)


def listing(root: str, deadline: float) -> tuple[list[str], Record]:
    """Names of the adapters; why there are none."""
    base = "/sys/class/infiniband"
    out: Record = {}
    reader = Reader(root, out, lambda r: r.put(out, "names", r.ask(base, os.listdir)))
    reader.start()
    reader.join(max(0.05, deadline - time.monotonic()))
    found = reader.taken()
    names = found.get("names")
    if isinstance(names, list):
        return sorted(names), {}
    if names is None and "hung" not in found:
        return [], {"absent": f"{base} does not exist"}
    return [], names if isinstance(names, dict) else {"hung": base}


def host_name(root: str) -> str:
    """The machine's own name: in a container that sees it below `root` another one than ours."""
    try:
        return _read(root + "/proc/sys/kernel/hostname") or os.uname().nodename
    except OSError:
        return os.uname().nodename


def main() -> None:
    """Print the document and end, whatever still hangs."""
    parser = argparse.ArgumentParser(description="RDMA adapters, raw, as JSON")
    parser.add_argument("--deadline", type=float, default=10.0, help="seconds")
    parser.add_argument("--root", default="", help="folder that stands for /")
    parser.add_argument("--window", type=float, default=0.5, help="seconds between the two readings")
    options = parser.parse_args()
    deadline = time.monotonic() + max(0.2, options.deadline - 0.1)
    root = options.root.rstrip("/")
    out: Record = {
        "schema": SCHEMA,
        "at_ns": time.time_ns(),
        "monotonic_ns": time.monotonic_ns(),
        "host": host_name(root),
    }
    out["uid"] = os.geteuid()
    try:
        out["boot_id"] = _read(root + "/proc/sys/kernel/random/boot_id")
    except OSError as error:
        out["boot_id"] = {"error": named(error)}
    names, why = listing(root, deadline)
    out["listing"] = why or {"count": len(names)}
    window = max(0.0, min(options.window, options.deadline / 3))
    readers = {
        name: Reader(root, {}, functools.partial(adapter, folder="/sys/class/infiniband/" + name, window=window))
        for name in names
    }
    placed = Reader(root, {}, gpus)
    waiting = [*readers.values(), placed] if names else []
    for reader in waiting:
        reader.start()
    for reader in waiting:
        reader.join(max(0.0, deadline - time.monotonic()))
    out["adapters"] = {name: reader.taken() for name, reader in readers.items()}
    out["gpus"] = placed.taken() if names else {}
    data = json.dumps(out, indent=1).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]
    for fd in (1, 2):  # a thread that hangs in the kernel would hold the pipe open
        os.close(fd)
    os._exit(0)


if __name__ == "__main__":
    main()
