"""Prints what /proc and /sys say of the machine, raw, as one JSON document (``gpudiag/system/1``).

Run as ``python -I -B system.py --deadline SECONDS [--root DIR] [--interval SECONDS] [--later DIR]``.
Python 3.8 and later, standard library only. Two readings of what counts or changes, half a second
apart, each with the realtime and the monotonic clock of each file; the rest is read once.

What is kept: the kernel's own figures of processors, memory, pressure, disks, network, interrupts and
the control groups of this process; the names of the product, board and firmware (no serial numbers);
class, vendor and NUMA node of display devices and accelerators; of the kernel's command line only the
parameters listed below, because secrets may stand among the others. Nothing of any other process is read.

An unreadable file becomes ``{"error": "EACCES: Permission denied"}``. When a read does not come back,
the document ends before the deadline with what there is, and ``hung`` names the file.

``--root DIR`` is put in front of every path that is opened (a mounted host, a recorded tree); ``--later
DIR`` is the root of the second reading, for trees that were recorded at two moments.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import threading
import time
from typing import Any

SCHEMA = "gpudiag/system/1"
INTERVAL = 0.5  # seconds between the readings: long enough for 50 ticks of each core's clock
BLOCK = 1 << 17
LIMIT = 1 << 20  # bytes of one file; the largest, /proc/vmstat and /proc/stat, have a few dozen KiB
LARGE = 16 << 20  # of those of which only some lines are kept: /proc/interrupts of 512 cores has 10 MiB
LEVELS = 12  # of a control group and its parents
SAMPLED = 16  # current frequency: on kernels before 5.18 one read may sleep 10 ms
SLOW = 0.15  # seconds that these may take together

PER_CPU = "/sys/devices/system/cpu/cpu*/"
NUMA = "/sys/devices/system/node/node*/"

ONCE = (
    "/proc/sys/kernel/hostname", "/proc/sys/kernel/osrelease", "/proc/sys/kernel/tainted", "/proc/uptime",
    "/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max", "/proc/sys/kernel/numa_balancing",
    "/proc/sys/kernel/sched_schedstats", "/proc/sys/vm/swappiness", "/proc/sys/vm/zone_reclaim_mode",
    "/proc/sys/vm/overcommit_memory", "/proc/sys/vm/max_map_count", "/proc/sys/fs/nr_open",
    "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/kernel/mm/transparent_hugepage/defrag",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/devices/system/clocksource/clocksource0/available_clocksource",
    "/sys/devices/system/cpu/online", "/sys/devices/system/cpu/present", "/sys/devices/system/cpu/isolated",
    "/sys/devices/system/cpu/smt/active", "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "/sys/devices/system/cpu/intel_pstate/status", "/sys/devices/system/cpu/cpufreq/boost",
    "/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name", "/sys/class/dmi/id/board_name",
    "/sys/class/dmi/id/bios_vendor", "/sys/class/dmi/id/bios_version", "/sys/class/dmi/id/bios_date",
    "/sys/hypervisor/type", "/run/systemd/container", "/proc/self/cgroup",
)  # fmt: skip
EACH_ONCE = (
    PER_CPU + "topology/physical_package_id", PER_CPU + "topology/thread_siblings_list",
    PER_CPU + "cpufreq/scaling_governor", PER_CPU + "cpufreq/scaling_max_freq", PER_CPU + "cpufreq/cpuinfo_max_freq",
    NUMA + "cpulist", NUMA + "distance",
)  # fmt: skip
FIRST_CPU = ("scaling_driver", "energy_performance_preference", "cpuinfo_min_freq", "base_frequency")
TWICE = (
    "/proc/stat", "/proc/schedstat", "/proc/vmstat", "/proc/diskstats", "/proc/net/dev", "/proc/net/snmp",
    "/proc/net/netstat", "/proc/interrupts",
)  # fmt: skip
LAST = (
    "/proc/loadavg", "/proc/meminfo", "/proc/net/sockstat", "/proc/sys/fs/file-nr", "/proc/cpuinfo", "/proc/swaps",
)  # fmt: skip
PRESSURE = ("/proc/pressure/cpu", "/proc/pressure/memory", "/proc/pressure/io", "/proc/pressure/irq")
EACH_TWICE = (
    PER_CPU + "thermal_throttle/core_throttle_count", PER_CPU + "thermal_throttle/package_throttle_count",
    NUMA + "numastat",
)  # fmt: skip
EACH_LAST = (NUMA + "meminfo",)
MARKERS = ("/.dockerenv", "/run/.containerenv", "/run/secrets/kubernetes.io")

# Lines that are kept of long files.
CPUINFO = ("processor", "model name", "physical id", "core id", "cpu MHz", "vendor_id", "microcode", "CPU implementer")
CMDLINE = (
    "mitigations", "spectre_v2", "iommu", "intel_iommu", "amd_iommu", "iommu.passthrough", "iommu.strict", "pci",
    "pcie_aspm", "pcie_ports", "isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity", "hugepages", "hugepagesz",
    "default_hugepagesz", "transparent_hugepage", "numa_balancing", "numa", "psi", "cgroup_no_v1", "cgroup_disable",
    "systemd.unified_cgroup_hierarchy", "intel_pstate", "amd_pstate", "cpufreq.default_governor",
    "processor.max_cstate", "intel_idle.max_cstate", "idle", "clocksource", "tsc", "nosmt", "maxcpus", "nr_cpus",
    "mem", "swapaccount", "nomodeset", "modprobe.blacklist", "rd.driver.blacklist", "module_blacklist",
    "nouveau.modeset", "nvidia-drm.modeset", "nvidia-drm.fbdev", "crashkernel", "init_on_alloc", "init_on_free",
    "panic", "hung_task_panic", "softlockup_panic", "nmi_watchdog", "noibrs", "noibpb", "pti", "audit",
)  # fmt: skip

V2_ONCE = ("cpu.max", "memory.max", "memory.high", "memory.swap.max", "pids.max", "cpuset.cpus.effective",
           "cpuset.mems.effective")  # fmt: skip
V2_TWICE = ("cpu.stat", "memory.events")
V2_LAST = ("memory.current", "memory.stat", "memory.swap.current", "pids.current")
V2_OWN = ("cpu.pressure", "memory.pressure", "io.pressure")
V1_ONCE = {
    "cpu": ("cpu.cfs_quota_us", "cpu.cfs_period_us"), "memory": ("memory.limit_in_bytes",), "pids": ("pids.max",),
    "cpuset": ("cpuset.effective_cpus", "cpuset.effective_mems", "cpuset.cpus"),
}  # fmt: skip
V1_TWICE = {"cpu": ("cpu.stat",), "memory": ("memory.oom_control", "memory.failcnt")}
V1_LAST = {"memory": ("memory.usage_in_bytes", "memory.stat"), "pids": ("pids.current",)}


def said(error: OSError) -> dict[str, Any]:
    """An OS error as text: its name, then the kernel's words."""
    return {"error": f"{errno.errorcode.get(error.errno or 0, error.errno)}: {error.strerror}"}


class Reader:
    """Opens files under a root, and remembers which one it is at."""

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/")
        self.at = ""

    def raw(self, path: str, limit: int = LIMIT) -> bytes:
        """The bytes of a file. OSError when it cannot be read."""
        self.at = path
        handle = os.open(self.root + path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            parts = []
            size = 0
            while size < limit:
                part = os.read(handle, BLOCK)
                if not part:
                    break
                parts.append(part)
                size += len(part)
            return b"".join(parts)[:limit]
        finally:
            os.close(handle)

    def text(self, path: str, limit: int = LIMIT) -> str | dict[str, Any]:
        """A file as text, or why it cannot be read."""
        try:
            return self.raw(path, limit).decode("utf-8", "replace")
        except OSError as error:
            return said(error)

    def names(self, path: str) -> list[str] | dict[str, Any]:
        """Names in a folder, sorted; or why it cannot be listed."""
        self.at = path
        try:
            return sorted(os.listdir(self.root + path))  # noqa: PTH208 - pathlib costs as much as all the rest of the start
        except OSError as error:
            return said(error)

    def there(self, path: str) -> bool:
        """Whether something stands at a path."""
        self.at = path
        return os.path.lexists(self.root + path)

    def link(self, path: str) -> str | dict[str, Any]:
        """Where a symbolic link leads, or why it leads nowhere."""
        self.at = path
        try:
            return os.readlink(self.root + path)  # noqa: PTH115 - as above
        except OSError as error:
            return said(error)

    def each(self, pattern: str) -> dict[str, Any]:
        """Texts by what stands for the star; a file that is absent in the first folder is looked for in no other."""
        head, tail = pattern.split("*")
        folder, prefix = head.rsplit("/", 1)
        names = self.names(folder or "/")
        if isinstance(names, dict):
            return names
        out: dict[str, Any] = {}
        keys = [name[len(prefix) :] for name in names if name.startswith(prefix)]
        if prefix:  # cpu0, node3; cpufreq and cpuidle stand beside them
            keys = sorted((key for key in keys if key.isdigit()), key=int)
        for key in keys:
            value = self.text(head + key + tail)
            if isinstance(value, dict) and not out and value["error"].startswith("ENOENT"):
                second = keys[1:2] == [key]
                if second or len(keys) == 1:
                    return value
                continue  # cpu0 may be the one that lacks it
            out[key] = value.strip("\n") if isinstance(value, str) else value
        return {"each": out} if out else {"error": f"ENOENT: nothing is called {pattern}"}


def stamped(value: str | dict[str, Any]) -> dict[str, Any]:
    """A reading with both clocks, taken right after it."""
    out: dict[str, Any] = {"at_ns": time.time_ns(), "mono_ns": time.monotonic_ns()}
    if isinstance(value, dict):
        out.update(value)
    else:
        out["text"] = value
    return out


def keep(text: str | dict[str, Any], wanted: tuple[str, ...]) -> str | dict[str, Any]:
    """The lines of `text` that begin with one of `wanted`."""
    if not isinstance(text, str):
        return text
    return "".join(line + "\n" for line in text.split("\n") if line.startswith(wanted))


def command_line(text: str | dict[str, Any]) -> str | dict[str, Any]:
    """The parameters of the kernel's command line that hold no secrets."""
    if not isinstance(text, str):
        return text
    words = [word for word in text.split() if word.partition("=")[0].replace("-", "_") in KNOWN]
    return " ".join(words) + "\n"


KNOWN = frozenset(name.replace("-", "_") for name in CMDLINE)


def cut_interrupts(first: dict[str, Any], second: dict[str, Any]) -> None:
    """Only the head and the lines that differ: interrupts that did not come say nothing, and there are thousands."""
    one, two = first.get("text"), second.get("text")
    if one is None or two is None:
        return
    before, after = one.split("\n"), two.split("\n")
    same = frozenset(before[1:]) & frozenset(after[1:])
    first["text"] = "\n".join(before[:1] + [line for line in before[1:] if line not in same]) + "\n"
    second["text"] = "\n".join(after[:1] + [line for line in after[1:] if line not in same]) + "\n"
    first["kept"] = second["kept"] = "the head, and lines that differ between the readings"


# --- control groups -----------------------------------------------------------------------


def hierarchies(reader: Reader) -> dict[str, tuple[str, str]]:
    """Where control groups are mounted: controller ("unified" for version 2) -> (mount point, its root)."""
    out: dict[str, tuple[str, str]] = {}
    text = reader.text("/proc/self/mountinfo")
    for line in text.split("\n") if isinstance(text, str) else ():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(" "), right.split(" ")
        if len(fields) < 5 or len(kind) < 3:
            continue
        if kind[0] == "cgroup2":
            out.setdefault("unified", (fields[4], fields[3]))
        elif kind[0] == "cgroup":
            for name in kind[2].split(","):
                out.setdefault(name, (fields[4], fields[3]))
    if not out and reader.there("/sys/fs/cgroup/cgroup.controllers"):
        out["unified"] = ("/sys/fs/cgroup", "/")
    return out


def folders(reader: Reader, mounted: dict[str, tuple[str, str]], pid: int | str = "self") -> dict[str, list[str]]:
    """Folders of a process's control groups by controller, from its own outwards to where it is mounted."""
    out = {}
    text = reader.text(f"/proc/{pid}/cgroup")
    for line in text.split("\n") if isinstance(text, str) else ():
        parts = line.split(":", 2)
        if len(parts) != 3:
            continue
        for name in parts[1].split(",") if parts[1] else ("unified",):
            if name in mounted and (name == "unified" or name in V1_ONCE):
                out[name] = chain(reader, parts[2], *mounted[name])
    return out


def chain(reader: Reader, path: str, mount: str, root: str) -> list[str]:
    """The folder of `path` and those above it. A container without a namespace of its own sees its folder as the root."""
    if root != "/" and (path == root or path.startswith(root.rstrip("/") + "/")):
        path = path[len(root.rstrip("/")) :]
    names = [name for name in path.split("/") if name and name != ".."]
    if not reader.there("/".join([mount.rstrip("/"), *names])):
        names = []  # a path of another namespace
    whole = [mount.rstrip("/") + "".join("/" + name for name in names[:n]) for n in range(len(names), -1, -1)]
    return whole[: LEVELS - 1] + whole[-1:] if len(whole) > LEVELS else whole


def group_files(groups: dict[str, list[str]], v2: tuple[str, ...], v1: dict[str, tuple[str, ...]]) -> list[str]:
    """Paths of the files called so in all folders."""
    out = []
    for name in sorted(groups):
        for folder in groups[name]:
            out += [folder + "/" + leaf for leaf in (v2 if name == "unified" else v1.get(name, ()))]
    return out


# --- the document -------------------------------------------------------------------------


def read_once(reader: Reader, document: dict[str, Any]) -> None:
    """What does not change while we look."""
    static = document["static"]
    for path in ONCE:
        static[path] = reader.text(path)
    static["/proc/cmdline"] = command_line(reader.text("/proc/cmdline"))
    static["/proc/sys/kernel/random/boot_id"] = boot = reader.text("/proc/sys/kernel/random/boot_id")
    document["host"] = static["/proc/sys/kernel/hostname"]
    document["boot_id"] = boot
    for name in ("host", "boot_id"):
        document[name] = document[name].strip() if isinstance(document[name], str) else ""
    for pattern in EACH_ONCE:
        static[pattern] = reader.each(pattern)
    for name in FIRST_CPU:
        path = "/sys/devices/system/cpu/cpu0/cpufreq/" + name
        static[path] = reader.text(path)
    for path in MARKERS:
        static[path] = "is there\n" if reader.there(path) else {"error": "ENOENT: No such file or directory"}
    static["/proc/self/mountinfo"] = mounts(reader.text("/proc/self/mountinfo"))
    document["cgroups"] = groups = folders(reader, hierarchies(reader))
    for path in group_files(groups, V2_ONCE, V1_ONCE):
        static[path] = reader.text(path)
    static["/sys/block"] = listed(reader.names("/sys/block"))
    static["/sys/class/net"] = networks(reader)
    static["/sys/bus/pci/devices"] = devices(reader)


def mounts(text: str | dict[str, Any]) -> str | dict[str, Any]:
    """The lines of the root, of /dev/shm and of control groups: others may name servers and volumes."""
    if not isinstance(text, str):
        return text
    kept = []
    for line in text.split("\n"):
        fields = line.split(" ")
        if len(fields) > 5 and (fields[4] in ("/", "/dev/shm") or " - cgroup" in line):
            kept.append(line + "\n")
    return "".join(kept)


def listed(names: list[str] | dict[str, Any]) -> dict[str, Any]:
    """Names in a folder as an entry of the document."""
    return names if isinstance(names, dict) else {"names": names}


def networks(reader: Reader) -> dict[str, Any]:
    """Interfaces, and for those that stand for a device where that is."""
    names = reader.names("/sys/class/net")
    if isinstance(names, dict):
        return names
    out = {}
    for name in names:
        link = reader.link(f"/sys/class/net/{name}/device")
        if isinstance(link, str):
            state = reader.text(f"/sys/class/net/{name}/operstate")
            out[name] = {"device": link, "operstate": state.strip() if isinstance(state, str) else state}
    return {"names": names, "devices": out}


def devices(reader: Reader) -> dict[str, Any]:
    """Display devices and accelerators on the PCI bus (classes 03 and 12)."""
    names = reader.names("/sys/bus/pci/devices")
    if isinstance(names, dict):
        return names
    out = {}
    for name in names:
        folder = f"/sys/bus/pci/devices/{name}/"
        kind = reader.text(folder + "class")
        if isinstance(kind, str) and kind.strip()[:4] in ("0x03", "0x12"):
            entry: dict[str, Any] = {"class": kind.strip()}
            for leaf in ("vendor", "device", "numa_node", "local_cpulist"):
                value = reader.text(folder + leaf)
                entry[leaf] = value.strip() if isinstance(value, str) else value
            out[name] = entry
    return {"each": out}


def shared_memory(reader: Reader) -> dict[str, Any]:
    """Size and use of /dev/shm, in bytes and files."""
    reader.at = "/dev/shm (statvfs)"
    try:
        seen = os.statvfs(reader.root + "/dev/shm")
        own, above = (os.stat(reader.root + path).st_dev for path in ("/dev/shm", "/dev"))  # noqa: PTH116 - as above
    except OSError as error:
        return said(error)
    return {"size": seen.f_blocks * seen.f_frsize, "free": seen.f_bfree * seen.f_frsize, "files": seen.f_files,
            "files_free": seen.f_ffree, "mounted": own != above}  # fmt: skip


def read_twice(reader: Reader, document: dict[str, Any], out: dict[str, Any], second: bool) -> None:
    """One reading of what counts; the second one also takes what is a level."""
    groups = document["cgroups"]
    for path in TWICE + PRESSURE:
        text = reader.text(path, LARGE if path in ("/proc/interrupts", "/proc/schedstat") else LIMIT)
        if path == "/proc/schedstat":
            text = keep(text, ("version", "cpu"))
        out[path] = stamped(text)
    for pattern in EACH_TWICE:
        out[pattern] = stamped(reader.each(pattern))
    for path in group_files(groups, V2_TWICE, V1_TWICE):
        out[path] = stamped(reader.text(path))
    if not second:
        return
    for path in LAST:
        text = reader.text(path, LARGE if path == "/proc/cpuinfo" else LIMIT)
        out[path] = stamped(cpu_model(text) if path == "/proc/cpuinfo" else text)
    for pattern in EACH_LAST:
        out[pattern] = stamped(reader.each(pattern))
    own = {name: levels[:1] for name, levels in groups.items()}
    for path in group_files(groups, V2_LAST, V1_LAST) + group_files(own, V2_OWN, {}):
        out[path] = stamped(reader.text(path))
    out["/dev/shm"] = stamped(shared_memory(reader))
    out[PER_CPU + "cpufreq/scaling_cur_freq"] = stamped(frequencies(reader, document))


def cpu_model(text: str | dict[str, Any]) -> str | dict[str, Any]:
    """The lines of interest of /proc/cpuinfo, and whether the processor says that it is a virtual one."""
    if not isinstance(text, str):
        return text
    head = text.partition("\n\n")[0]
    flags = next((line for line in head.split("\n") if line.startswith("flags")), "")
    virtual = "flags\t\t: hypervisor\n" if " hypervisor" in flags else ""
    return f"{keep(text, CPUINFO)}{virtual}"


def frequencies(reader: Reader, document: dict[str, Any]) -> dict[str, Any]:
    """Current frequency of some cores, where /proc/cpuinfo does not tell it."""
    table = document["static"][PER_CPU + "cpufreq/scaling_governor"].get("each")
    if not table:
        return {"error": "ENOENT: No such file or directory"}
    keys = list(table)
    ended = time.monotonic() + SLOW
    out = {}
    for key in keys[:: max(1, len(keys) // SAMPLED)][:SAMPLED]:
        value = reader.text(f"/sys/devices/system/cpu/cpu{key}/cpufreq/scaling_cur_freq")
        out[key] = value.strip() if isinstance(value, str) else value
        if time.monotonic() > ended:
            break
    return {"each": out}


def collect(reader: Reader, later: str, interval: float, ended: float, document: dict[str, Any]) -> None:
    """Fills the document; what is in it at any moment is whole."""
    read_once(reader, document)
    first, second = document["readings"]
    read_twice(reader, document, first, False)
    time.sleep(max(0.0, min(interval, (ended - time.monotonic()) * 0.6)))
    reader.root = later.rstrip("/")
    read_twice(reader, document, second, True)
    cut_interrupts(first["/proc/interrupts"], second["/proc/interrupts"])
    document["own_cpu_ms"] = round(time.process_time() * 1000, 1)


def printed(document: dict[str, Any]) -> str:
    """The document as text: one record a line."""
    lines = []
    for key, value in list(document.items()):
        if key == "static":
            value = f"{{\n{records(value)}\n}}"
        elif key == "readings":
            parts = ",\n".join(f"{{\n{records(reading)}\n}}" for reading in value)
            value = f"[\n{parts}\n]"
        else:
            value = json.dumps(value, ensure_ascii=False)
        lines.append(f"{json.dumps(key)}: {value}")
    return "{" + ",\n".join(lines) + "}\n"


def records(table: dict[str, Any]) -> str:
    """The entries of a table, one a line."""
    return ",\n".join(
        f"  {json.dumps(path)}: {json.dumps(value, ensure_ascii=False)}" for path, value in list(table.items())
    )


def arguments(words: list[str]) -> tuple[float, float, str, str]:
    """Options by name. ValueError for words that are none."""
    out = {"--deadline": "10", "--root": "/", "--interval": str(INTERVAL), "--later": ""}
    for at in range(0, len(words), 2):
        if words[at] not in out:
            raise ValueError(f"unknown option {words[at]}")
        if at + 1 == len(words):
            raise ValueError(f"{words[at]} needs a value")
        out[words[at]] = words[at + 1]
    return float(out["--deadline"]), float(out["--interval"]), out["--root"], out["--later"] or out["--root"]


def main() -> int:
    """Prints the document; exit code 2 when it is called wrongly."""
    try:
        deadline, interval, root, later = arguments(sys.argv[1:])
    except ValueError as error:
        sys.stderr.write(f"system: {error}\n")
        return 2
    ended = time.monotonic() + deadline
    document = {
        "schema": SCHEMA, "host": "", "at_ns": time.time_ns(), "boot_id": "", "interval_s": interval,
        "tick_hz": os.sysconf("SC_CLK_TCK"), "page_bytes": os.sysconf("SC_PAGE_SIZE"), "cgroups": {}, "static": {},
        "readings": [{}, {}],
    }  # fmt: skip
    reader = Reader(root)
    worker = threading.Thread(
        target=collect, args=(reader, later, interval, ended - deadline * 0.2, document), daemon=True
    )
    worker.start()
    worker.join(max(0.1, deadline * 0.85 - 0.05))
    if worker.is_alive():
        document["hung"] = reader.at
    document["at_ns"] = time.time_ns()
    text = printed(document).encode("utf-8", "replace")
    while text:
        text = text[os.write(1, text) :]
    os._exit(0)  # a thread that hangs in the kernel would keep the interpreter


if __name__ == "__main__":
    sys.exit(main())
