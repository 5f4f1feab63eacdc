"""Network interfaces of hardware, and the bonds over them: flow control, error correction, counters of the driver.

Of each interface with a device behind it: state, speed, MTU, driver, RDMA device; what ``ethtool -a``, ``--show-fec`` and
``-S`` show (the counters twice, half a second apart, and of them those that tell of pauses, drops, errors and modules, not
those of single queues); what ``dcb pfc show`` and ``dcb app show`` tell (priorities with flow control, DSCP entries); and the
files of MLNX_OFED for trust and ECN where they are. Of each bond what /proc/net/bonding shows, without hardware addresses.

ethtool and dcb are not needed: the same questions are put to the kernel (``linux/ethtool.h``, ``linux/dcbnl.h``), and none of
them needs a privilege. Each interface is read by a thread of its own: one whose firmware hangs is named and left behind.
With ``--root`` only files are read: the kernel that would be asked is that of this process.

    python -I -B interfaces.py --deadline SECONDS [--root DIR] [--window SECONDS]
"""

from __future__ import annotations

import argparse
import array
import contextlib
import copy
import errno
import fcntl
import functools
import json
import os
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # Python 3.8 knows no such type
    Record = dict[str, Any]

SCHEMA = "gpudiag/interfaces/1"
LARGEST = 4096
MOST = 64  # interfaces; nodes of GPUs have about twenty
COUNTERS = 512  # kept of one interface
SIOCETHTOOL = 0x8946
GPAUSE, GSTRINGS, GSTATS, GSSET, GFEC = 0x12, 0x1B, 0x1D, 0x37, 0x50
STATISTICS = 1  # ETH_SS_STATS
NAME = 32  # ETH_GSTRING_LEN
GETDCB, IEEE_GET, IFNAME, IEEE, PFC, APPS, APP, TRUST = 78, 21, 1, 13, 2, 3, 1, 11
FILES = ("operstate", "carrier", "type", "mtu", "speed", "duplex")
KEPT = re.compile(
    r"pause|pfc|xo(?:ff|n)\b|xoff|xon|prio|discard|drop|out_of_buffer|err|symbol|correct|link_down|link_fail|module|pci|storm|"
    r"stall|mark|cnp|ecn|oversize|overflow|crc|fcs|retrans|timeout|recover|miss|no_buf"
)
# Counters of single queues and channels: rx12_drops, rx_queue_3_drops, [4]: rx_discards, ch3_poll, tx-1.drops
QUEUE = re.compile(r"^(?:[rt]x|ch|xdp|vport|ptp)?[_-]?(?:queue[_-]?)?\[?\d+|queue_\d|_q\d|-\d+\.")
MAC = re.compile(r"(?:[0-9a-f]{2}:){5,19}[0-9a-f]{2}", re.IGNORECASE)


def named(error: OSError) -> str:
    """``EACCES: Permission denied``."""
    return f"{errno.errorcode.get(error.errno or 0, 'EIO')}: {error.strerror or error}"


class GivenUp(Exception):
    """The time is up and the document is being written."""


class Reader(threading.Thread):
    """Reads one interface into its record, and stops where it is when it is given up."""

    def __init__(self, root: str, record: Record, job: Callable[[Reader], None]) -> None:
        super().__init__(daemon=True)
        self.root = root
        self.record = record
        self.job = job
        self.lock = threading.Lock()
        self.waits_for = ""
        self.given_up = False

    def run(self) -> None:
        """The job, until it is done or given up."""
        with contextlib.suppress(GivenUp):
            self.job(self)

    def ask(self, what: str, call: Callable[[], Any]) -> Any:
        """What `call` gives; an error as ``{"error": ...}``, what does not exist as None."""
        self.waits_for = what
        try:
            value = call()
        except OSError as error:
            value = None if error.errno in (errno.ENOENT, errno.ENOTDIR) else {"error": named(error)}
        if self.given_up:
            raise GivenUp
        self.waits_for = ""
        return value

    def text(self, path: str) -> Any:
        """The text of a small file below the root."""
        return self.ask(path, lambda: _read(self.root + path))

    def target(self, path: str) -> Any:
        """The last part of what a link points to."""
        return self.ask(path, lambda: os.readlink(self.root + path).rsplit("/", 1)[-1])  # noqa: PTH115 - pathlib is slow

    def names(self, path: str) -> list[str]:
        """What is in a folder, sorted; nothing when it cannot be listed."""
        found = self.ask(path, lambda: os.listdir(self.root + path))  # noqa: PTH208
        return sorted(found) if isinstance(found, list) else []

    def put(self, key: str, value: Any) -> None:
        """Put a value into the record, when there is one."""
        if value is None:
            return
        with self.lock:
            if self.given_up:
                raise GivenUp
            self.record[key] = value

    def taken(self) -> Record:
        """A copy of the record as far as it got; the thread changes nothing afterwards."""
        with self.lock:
            self.given_up = True
            out = copy.deepcopy(self.record)
        if self.is_alive():
            out.update({"hung": self.waits_for} if self.waits_for else {"unread": "the time was spent"})
        return out


def _read(path: str, largest: int = LARGEST) -> str:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, largest).decode("utf-8", "replace").strip()
    finally:
        os.close(fd)


# --- ethtool -------------------------------------------------------------------------------


def ethtool(line: socket.socket, name: str, data: array.array) -> array.array:  # type: ignore[type-arg]
    """Put one question; the answer is written over it. OSError as the kernel says it."""
    address, _ = data.buffer_info()
    request = struct.pack("16sP", name.encode()[:15], address).ljust(40, b"\0")
    fcntl.ioctl(line.fileno(), SIOCETHTOOL, request)
    return data


def _words(*values: int) -> array.array:  # type: ignore[type-arg]
    return array.array("B", struct.pack(f"={len(values)}I", *values))


def pause(line: socket.socket, name: str) -> Record:
    """``ethtool -a``: flow control of the whole link."""
    _, auto, rx, tx = struct.unpack("=4I", ethtool(line, name, _words(GPAUSE, 0, 0, 0)).tobytes())
    return {"autoneg": bool(auto), "rx": bool(rx), "tx": bool(tx)}


def fec(line: socket.socket, name: str) -> Record:
    """``ethtool --show-fec``: bits of the active and the configured error correction."""
    _, active, configured, _ = struct.unpack("=4I", ethtool(line, name, _words(GFEC, 0, 0, 0)).tobytes())
    return {"active": active, "configured": configured}


def counter_names(line: socket.socket, name: str) -> list[str]:
    """Names of the driver's counters, in order."""
    found = ethtool(line, name, array.array("B", struct.pack("=IIQI", GSSET, 0, 1 << STATISTICS, 0)))
    mask, count = struct.unpack("=8xQI", found.tobytes())
    if not mask or not count:
        return []
    # The driver may have got more counters by the time it writes them: room for twice as many.
    data = array.array("B", struct.pack("=3I", GSTRINGS, STATISTICS, count) + bytes(2 * NAME * count + LARGEST))
    raw = ethtool(line, name, data).tobytes()
    count = min(struct.unpack_from("=I", raw, 8)[0], 2 * count)
    parts = (raw[12 + NAME * i : 12 + NAME * (i + 1)] for i in range(count))
    return [part.split(b"\0")[0].decode("ascii", "replace").strip() for part in parts]


def counter_values(line: socket.socket, name: str, names: list[str]) -> Record:
    """The counters worth keeping, by name."""
    count = len(names)
    data = array.array("B", struct.pack("=2I", GSTATS, count) + bytes(16 * count + LARGEST))
    raw = ethtool(line, name, data).tobytes()
    if struct.unpack_from("=I", raw, 4)[0] != count:
        raise OSError(errno.EAGAIN, "the driver changed its counters meanwhile")
    values = struct.unpack_from(f"={count}Q", raw, 8)
    kept = {n: values[i] for i, n in enumerate(names) if KEPT.search(n) and not QUEUE.search(n)}
    return dict(list(kept.items())[:COUNTERS])


# --- data centre bridging ------------------------------------------------------------------


def attributes(data: bytes) -> Iterable[tuple[int, bytes]]:
    """Netlink attributes: type and value."""
    at = 0
    while at + 4 <= len(data):
        size, kind = struct.unpack_from("=HH", data, at)
        if size < 4 or at + size > len(data):
            return
        yield kind & 0x3FFF, data[at + 4 : at + size]
        at += (size + 3) & ~3


def bridging(name: str) -> Record:
    """``dcb pfc show`` and ``dcb app show``: IEEE 802.1Qaz objects of one interface."""
    word = name.encode() + b"\0"
    body = (
        struct.pack("=BBH", 0, IEEE_GET, 0)
        + struct.pack("=HH", 4 + len(word), IFNAME)
        + word.ljust((len(word) + 3) & ~3, b"\0")
    )
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as line:
        line.settimeout(1.0)
        line.send(struct.pack("=IHHII", 16 + len(body), GETDCB, 1, 1, 0) + body)
        answer = line.recv(1 << 16)
    return understood(answer)


def understood(answer: bytes) -> Record:
    """The kernel's message as values; OSError for one that says no."""
    size, kind = struct.unpack_from("=IH", answer)
    if kind == 2:
        code = -struct.unpack_from("=i", answer, 16)[0]
        raise OSError(code, os.strerror(code))
    out: Record = {}
    for outer, value in attributes(answer[20:size]):
        for inner, part in attributes(value) if outer == IEEE else ():
            if inner == PFC and len(part) >= 2:
                out["pfc_capable"], out["pfc"] = part[0], part[1]
            elif inner == APPS:
                entries = [
                    struct.unpack_from("=BBH", entry)
                    for kind, entry in attributes(part)
                    if kind == APP and len(entry) >= 4
                ]
                out["apps"] = [list(entry) for entry in entries[:128]]
            elif inner == TRUST:
                out["trusted"] = [entry[0] for _, entry in attributes(part) if entry]
    return out


# --- one interface -------------------------------------------------------------------------


def interface(reader: Reader, name: str, window: float) -> None:
    """One interface: what it is, how it is set, and its counters, twice."""
    folder = "/sys/class/net/" + name
    for file in FILES:
        reader.put(file, reader.text(f"{folder}/{file}"))
    reader.put("driver", reader.target(folder + "/device/driver"))
    reader.put("model", reader.text(folder + "/device/device"))
    reader.put("master", reader.target(folder + "/master"))
    reader.put("physfn", reader.target(folder + "/device/physfn"))
    reader.put("rdma", reader.names(folder + "/device/infiniband"))
    reader.put("trust", reader.text(folder + "/qos/trust"))
    for side in ("np", "rp"):  # notification and reaction point of RoCE's congestion control (MLNX_OFED)
        where = f"{folder}/ecn/roce_{side}/enable"
        found = {p: reader.text(f"{where}/{p}") for p in reader.names(where)[:8]}
        reader.put("ecn_" + side, found or None)
    for device in reader.names(folder + "/device/infiniband")[:1]:
        reader.put("traffic_class", reader.text(f"/sys/class/infiniband/{device}/tc/1/traffic_class"))
    if reader.root:
        reader.put("kernel", {"skipped": "below --root only files are read"})
        return
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        reader.put("pause", reader.ask("ethtool -a", lambda: pause(line, name)))
        reader.put("fec", reader.ask("ethtool --show-fec", lambda: fec(line, name)))
        reader.put("dcb", reader.ask("dcb show", lambda: bridging(name)))
        names = reader.ask("ethtool -S", lambda: counter_names(line, name))
        if not isinstance(names, list):
            reader.put("readings", names)
            return
        counted(reader, line, name, names, window)


def counted(reader: Reader, line: socket.socket, name: str, names: list[str], window: float) -> None:
    """Two readings of the counters, `window` seconds apart, each with its time."""
    readings: list[Record] = []
    reader.put("readings", readings)
    again = time.monotonic() + window
    for last in (False, True):
        taken: Record = {"at_ns": time.time_ns(), "monotonic_ns": time.monotonic_ns()}
        values = reader.ask("ethtool -S", lambda: counter_values(line, name, names) if names else {})
        taken["counters"] = values
        with reader.lock:
            if reader.given_up:
                raise GivenUp
            readings.append(taken)
        if not names:
            return
        if not last:
            time.sleep(max(0.0, again - time.monotonic()))


# --- the document --------------------------------------------------------------------------


def bonds(root: str) -> Record:
    """Of each bond the lines of its file; of a hardware address only whether it is set."""
    base = root + "/proc/net/bonding"
    out: Record = {}
    try:
        names = sorted(os.listdir(base))[:MOST]  # noqa: PTH208
    except OSError as error:
        return {} if error.errno == errno.ENOENT else {"error": named(error)}
    for name in names:
        try:
            text = _read(f"{base}/{name}", 1 << 16)
        except OSError as error:
            out[name] = {"error": named(error)}
            continue
        out[name] = MAC.sub(lambda m: "unset" if set(m[0]) <= set("0:") else "set", text).splitlines()[:1000]
    return out


def listing(root: str) -> tuple[list[str], Record]:
    """Interfaces that have hardware behind them; why there are none."""
    base = root + "/sys/class/net"
    try:
        names = sorted(os.listdir(base))  # noqa: PTH208
    except OSError as error:
        return [], {"error": named(error)}
    found = [n for n in names if os.path.lexists(f"{base}/{n}/device")]
    more = {"left_out": len(found) - MOST} if len(found) > MOST else {}
    return found[:MOST], {"count": len(found), **more}


def host_name(root: str) -> str:
    """The machine's own name: in a container that sees it below `root` another one than ours."""
    try:
        return _read(root + "/proc/sys/kernel/hostname") or os.uname().nodename
    except OSError:
        return os.uname().nodename


def main() -> None:
    """Print the document and end, whatever still hangs."""
    parser = argparse.ArgumentParser(description="network interfaces, raw, as JSON")
    parser.add_argument("--deadline", type=float, default=10.0, help="seconds")
    parser.add_argument("--root", default="", help="folder that stands for /")
    parser.add_argument("--window", type=float, default=0.5, help="seconds between the two readings")
    options = parser.parse_args()
    deadline = time.monotonic() + max(0.2, options.deadline - 0.1)
    root = options.root.rstrip("/")
    out: Record = {
        "schema": SCHEMA, "at_ns": time.time_ns(), "monotonic_ns": time.monotonic_ns(), "host": host_name(root),
    }  # fmt: skip
    names, out["listing"] = listing(root)
    window = max(0.0, min(options.window, options.deadline / 3))
    readers = {n: Reader(root, {}, functools.partial(interface, name=n, window=window)) for n in names}
    for reader in readers.values():
        reader.start()
    out["bonds"] = bonds(root)
    for reader in readers.values():
        reader.join(max(0.0, deadline - time.monotonic()))
    out["interfaces"] = {name: reader.taken() for name, reader in readers.items()}
    data = json.dumps(out, indent=1).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]
    for fd in (1, 2):  # a thread that hangs in the kernel would hold the pipe open
        os.close(fd)
    os._exit(0)


if __name__ == "__main__":
    main()
