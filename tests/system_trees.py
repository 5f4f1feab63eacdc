"""Machines as trees of /proc and /sys, written to a folder: sound ones, and sick ones at two moments.

Names and figures are invented; the formats are the kernel's. The real collector reads them with
``--root`` (and ``--later`` for the second moment).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import probes.collectors

COLLECTOR = Path(probes.collectors.__path__[0]) / "system.py"
CPU = "/sys/devices/system/cpu/"
NODE = "/sys/devices/system/node/"
POD = "/kubepods.slice/pod7/cri-containerd-2b.scope"


@dataclass(slots=True)
class Machine:
    """What a tree is made from. `later` is laid over `files` for the second moment."""

    cores: int = 8
    ticks: Mapping[str, int] = field(
        default_factory=lambda: {"user": 5, "idle": 45}
    )  # of each core between the moments
    per_core: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    interrupts: int = 20  # lines
    files: dict[str, str | None] = field(default_factory=dict)  # None: the file is not there
    later: dict[str, str | None] = field(default_factory=dict)
    pci: int = 4


FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")
BASE = (600000, 40, 50000, 9000000, 2000, 10, 900, 600, 0, 0)


def stat(machine: Machine, moment: int) -> str:
    """/proc/stat at moment 0 or 1."""
    lines = []
    for core in range(machine.cores):
        ticks = machine.per_core.get(core, machine.ticks)
        lines.append([base + moment * ticks.get(name, 0) for name, base in zip(FIELDS, BASE, strict=True)])
    total = [sum(column) for column in zip(*lines, strict=True)]
    rows = [f"cpu  {' '.join(map(str, total))}"]
    rows += [f"cpu{n} {' '.join(map(str, line))}" for n, line in enumerate(lines)]
    rows += [f"intr {5000000 + moment * 1000} {'0 ' * 300}".strip(), f"ctxt {10000000 + moment * 4000}", "btime 1700000000",
             f"processes {70000 + moment}", "procs_running 3", "procs_blocked 0", "softirq 1 2 3"]  # fmt: skip
    return "\n".join(rows) + "\n"


def schedstat(cores: int, moment: int, waited: int = 1000000) -> str:
    """/proc/schedstat: `waited` ns more for each core, ten timeslices."""
    rows = ["version 15", "timestamp 4295000000"]
    for n in range(cores):
        rows.append(f"cpu{n} 0 0 0 0 0 0 {10**12} {5 * 10**9 + moment * waited} {900000 + moment * 10}")
        rows.append(f"domain0 {'f' * (cores // 4 or 1)} {'0 ' * 45}".strip())
    return "\n".join(rows) + "\n"


def interrupts(machine: Machine, moment: int, device: str = "", on: int = 0, count: int = 0) -> str:
    """/proc/interrupts; `device` has interrupted core `on` `count` times by the second moment."""
    rows = ["            " + "".join(f"CPU{n:<8}" for n in range(machine.cores))]
    for i in range(machine.interrupts):
        counts = [100 * i] * machine.cores
        name = f"eth0-TxRx-{i}"
        if i == 0 and device:
            name = device
            counts[on] += moment * count
        rows.append(f"{64 + i:>4}: {' '.join(f'{c:>10}' for c in counts)}  IR-PCI-MSI {524288 + i}-edge      {name}")
    rows.append(f" LOC: {' '.join(str(7000 + moment * 50) for _ in range(machine.cores))}   Local timer interrupts")
    rows.append("ERR:          0")
    return "\n".join(rows) + "\n"


def pressure(some: float = 0.0, full: float = 0.0, total: int = 0) -> str:
    """A file of /proc/pressure with the same average over each span."""
    return "".join(
        f"{kind} avg10={v:.2f} avg60={v:.2f} avg300={v:.2f} total={total}\n"
        for kind, v in (("some", some), ("full", full))
    )


def meminfo(available: int = 900000, **more: int) -> str:
    """/proc/meminfo in MiB of 1000000."""
    sizes = {"MemTotal": 1000000, "MemFree": available // 2, "MemAvailable": available, "Dirty": 3, "Writeback": 0,
             "AnonPages": 60000, "Shmem": 900, "SUnreclaim": 4000, "Unevictable": 100, "CommitLimit": 500000,
             "Committed_AS": 80000, "SwapTotal": 0, "SwapFree": 0} | more  # fmt: skip
    rows = [f"{name + ':':<16}{size * 1024:>8} kB" for name, size in sizes.items()]
    return (
        "\n".join([*rows, "HugePages_Total:       0", "HugePages_Free:        0", "Hugepagesize:       2048 kB"]) + "\n"
    )


VMSTAT = {"nr_free_pages": 1, "pgmajfault": 700, "pswpin": 0, "pswpout": 0, "allocstall_normal": 5, "allocstall_movable": 1,
          "oom_kill": 0}  # fmt: skip


def table(values: Mapping[str, int]) -> str:
    """``name value`` lines."""
    return "".join(f"{name} {value}\n" for name, value in values.items())


def disk(name: str, ios: int, ms: int, busy: int, weighted: int, sectors: int = 800) -> str:
    """A line of /proc/diskstats."""
    return f" 259       0 {name} {ios} 0 {sectors} {ms} {ios} 0 {sectors} {ms} 0 {busy} {weighted} 0 0 0 0 0 0\n"


def net(name: str, rx_drop: int = 0, rx_errs: int = 0, octets: int = 10**9) -> str:
    """A line of /proc/net/dev."""
    return f"  {name}: {octets} 5000 {rx_errs} {rx_drop} 0 0 0 12 {octets} 6000 0 0 0 0 0 0\n"


NET_HEAD = "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed\n"


def snmp(out: int = 1000000, again: int = 20) -> str:
    """/proc/net/snmp."""
    return (
        "Ip: Forwarding DefaultTTL\nIp: 1 64\n"
        "Tcp: RtoAlgorithm ActiveOpens InSegs OutSegs RetransSegs InErrs\n"
        f"Tcp: 1 500 900000 {out} {again} 0\n"
        "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\nUdp: 100 0 0 100 0\n"
    )


def numa(cores: int) -> dict[str, str | None]:
    """Two NUMA nodes with CPUs, and one of memory alone, as a GPU with coherent memory shows it."""
    half, out = cores // 2, dict[str, str | None]()
    for n, cpus in enumerate((f"0-{half - 1}", f"{half}-{cores - 1}", "")):
        folder = f"{NODE}node{n}/"
        out[folder + "cpulist"] = cpus + "\n"
        out[folder + "distance"] = "10 21 80\n"
        free = 900 if n == 2 else 40000000
        out[folder + "meminfo"] = (
            f"Node {n} MemTotal: 500000000 kB\nNode {n} MemFree: {free} kB\nNode {n} Active(file): 10000000 kB\n"
            f"Node {n} Inactive(file): {0 if n == 2 else 50000000} kB\nNode {n} SReclaimable: 1000 kB\n"
        )
        out[folder + "numastat"] = "numa_hit 90000\nnuma_miss 7\nnuma_foreign 7\n"
    return out


def per_cpu(cores: int) -> dict[str, str | None]:
    """Topology, frequency and throttle counts of each core: two threads a core, two packages."""
    half, out = cores // 2, dict[str, str | None]()
    for n in range(cores):
        folder = f"{CPU}cpu{n}/"
        first = n % half
        out |= {
            folder + "topology/physical_package_id": f"{first * 2 // half}\n",
            folder + "topology/thread_siblings_list": f"{first},{first + half}\n",
            folder + "cpufreq/scaling_governor": "performance\n", folder + "cpufreq/scaling_max_freq": "3800000\n",
            folder + "cpufreq/cpuinfo_max_freq": "3800000\n", folder + "cpufreq/scaling_cur_freq": "3100000\n",
            folder + "thermal_throttle/core_throttle_count": "3\n", folder + "thermal_throttle/package_throttle_count": "5\n",
        }  # fmt: skip
    return out


def gpus(count: int) -> dict[str, str | None]:
    """GPUs of NVIDIA, and the display of the management controller, which is none."""
    out: dict[str, str | None] = {}
    cards = {f"0000:{0x1B + i:02x}:00.0": ("0x030200", "0x10de", str(i % 2)) for i in range(count)}
    for address, (kind, vendor, node) in (cards | {"0000:03:00.0": ("0x030000", "0x1a03", "0")}).items():
        folder = f"/sys/bus/pci/devices/{address}/"
        out |= {folder + "class": kind + "\n", folder + "vendor": vendor + "\n", folder + "device": "0x2330\n",
                folder + "numa_node": node + "\n", folder + "local_cpulist": "0-3\n"}  # fmt: skip
    return out


def cgroup2(folder: str, **more: str) -> dict[str, str | None]:
    """Files of one group of version 2; ``cpu_max`` is cpu.max."""
    files = {"cpu.max": "max 100000\n", "memory.max": "max\n", "memory.high": "max\n", "pids.max": "max\n",
             "cpu.stat": "usage_usec 1\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n", "memory.current": "1048576\n",
             "memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n", "pids.current": "12\n",
             "memory.stat": "anon 900000\nactive_file 1000\ninactive_file 2000\nslab_reclaimable 100\n",
             "cpuset.cpus.effective": "0-7\n", "cpuset.mems.effective": "0\n", "cpu.pressure": pressure(),
             "memory.pressure": pressure(), "io.pressure": pressure()}  # fmt: skip
    files |= {name.replace("_", "."): text for name, text in more.items()}
    return {f"/sys/fs/cgroup{folder}/{name}": text for name, text in files.items()}


ROOT_MOUNT = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
V2_MOUNT = "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"


def healthy(machine: Machine | None = None) -> Machine:
    """A GPU node that works, with everything in its place; what `machine` says of a file stands."""
    m = machine or Machine()
    names = ("eth0", "lo", "veth1a")
    base: dict[str, str | None] = {
        "/proc/stat": stat(m, 0), "/proc/schedstat": schedstat(m.cores, 0), "/proc/interrupts": interrupts(m, 0),
        "/proc/meminfo": meminfo(), "/proc/vmstat": table(VMSTAT), "/proc/loadavg": "3.10 2.90 2.50 3/1900 4242\n",
        "/proc/uptime": "86400.50 600000.00\n", "/proc/diskstats": disk("nvme0n1", 500, 100, 90, 200) + disk("nvme0n1p1", 400, 90, 80, 90),
        "/proc/net/dev": NET_HEAD + "".join(net(n) for n in names), "/proc/net/snmp": snmp(),
        "/proc/net/netstat": "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 0 4 4\n",
        "/proc/net/sockstat": "sockets: used 300\nTCP: inuse 40 orphan 0 tw 7 alloc 50 mem 256\n",
        "/proc/sys/fs/file-nr": "9000\t0\t9223372036854775807\n", "/proc/swaps": "Filename Type Size Used Priority\n",
        "/proc/cpuinfo": "".join(f"processor\t: {n}\nmodel name\t: Example 9000\ncpu MHz\t\t: 3100.000\nflags\t\t: fpu tsc\n\n" for n in range(m.cores)),
        "/proc/cmdline": "root=UUID=11 password=geheim iommu=pt mitigations=off token=abc\n",
        "/proc/self/cgroup": "0::/user.slice\n", "/proc/self/mountinfo": ROOT_MOUNT + V2_MOUNT,
        "/proc/sys/kernel/hostname": "gpu-12\n", "/proc/sys/kernel/osrelease": "6.8.0-40-generic\n",
        "/proc/sys/kernel/tainted": "12289\n", "/proc/sys/kernel/random/boot_id": "0f0e0d0c-0000-4000-8000-000000000001\n",
        "/proc/sys/kernel/pid_max": "4194304\n", "/proc/sys/kernel/threads-max": "8000000\n", "/proc/sys/kernel/numa_balancing": "0\n",
        "/proc/sys/vm/swappiness": "60\n", "/proc/sys/vm/overcommit_memory": "0\n", "/proc/sys/vm/zone_reclaim_mode": "0\n",
        **{f"/proc/pressure/{r}": pressure(1.5 if r == "cpu" else 0.0, 0.0, 1000) for r in ("cpu", "memory", "io", "irq")},
        CPU + "online": f"0-{m.cores - 1}\n", CPU + "present": f"0-{m.cores - 1}\n", CPU + "isolated": "\n",
        CPU + "intel_pstate/no_turbo": "0\n", CPU + "cpu0/cpufreq/scaling_driver": "intel_pstate\n",
        CPU + "cpu0/cpufreq/energy_performance_preference": "performance\n",
        "/sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
        "/sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet acpi_pm \n",
        "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
        "/sys/kernel/mm/transparent_hugepage/defrag": "always defer defer+madvise [madvise] never\n",
        "/sys/class/dmi/id/sys_vendor": "Example\n", "/sys/class/dmi/id/product_name": "XE 8000\n",
        "/sys/class/dmi/id/board_name": "B1\n", "/sys/class/dmi/id/bios_version": "1.2\n", "/sys/class/dmi/id/bios_date": "01/02/2026\n",
        "/sys/block/nvme0n1/size": "1\n", "/sys/block/loop0/size": "0\n", "/dev/shm/.keep": "",
        **{f"/sys/class/net/{n}/operstate": "up\n" for n in names},
        **numa(m.cores), **per_cpu(m.cores), **gpus(m.pci),
        **cgroup2("/user.slice"), "/sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
    }  # fmt: skip
    after: dict[str, str | None] = {
        "/proc/stat": stat(m, 1), "/proc/schedstat": schedstat(m.cores, 1),
        "/proc/interrupts": interrupts(m, 1, "nvidia", 2, 40),
        "/proc/net/snmp": snmp(1005000, 21), "/proc/diskstats": disk("nvme0n1", 520, 104, 95, 210, 1800) + disk("nvme0n1p1", 420, 94, 85, 95),
    }  # fmt: skip
    if "/proc/interrupts" not in m.files:
        base["/proc/interrupts"] = interrupts(m, 0, "nvidia", 2, 40)
    m.files = base | m.files
    m.later = after | {path: text for path, text in m.files.items() if text != base.get(path)} | m.later
    return m


def write(machine: Machine, folder: Path) -> tuple[Path, Path]:
    """The two trees, ready for ``--root`` and ``--later``."""
    first, second = folder / "first", folder / "second"
    for root, files in ((first, machine.files), (second, machine.files | machine.later)):
        for path, text in files.items():
            place, before = root / path.lstrip("/"), first / path.lstrip("/")
            if text is None:
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            if root is second and machine.files.get(path) == text:
                place.hardlink_to(before)
            else:
                place.write_text(text)
        device = root / "sys/class/net/eth0/device"
        if device.parent.is_dir():
            device.symlink_to("../../../0000:05:00.0")
    return first, second


def run(
    *words: str, timeout: float = 60, user: int | None = None, python: str = sys.executable
) -> tuple[dict[str, Any], str]:
    """The collector as a real child process: the document, and the text that it printed.

    Another user may be allowed to read neither this interpreter nor this folder: the system's own
    interpreter then gets the program by standard input.
    """
    argv = [python, "-I", "-B", str(COLLECTOR), *words]
    more: dict[str, Any] = {}
    if user is not None:
        other = shutil.which("python3", path="/usr/bin:/bin:/usr/local/bin")
        if other is None:
            pytest.skip("no interpreter that everybody may run")
        argv = [other, "-I", "-B", "-", *words]
        more = {"user": user, "group": user, "extra_groups": [], "input": COLLECTOR.read_bytes(), "cwd": "/"}
    done = subprocess.run(argv, capture_output=True, timeout=timeout, check=True, **more)
    text = done.stdout.decode()
    return json.loads(text), text


def snapshot(machine: Machine, folder: Path, *more: str) -> str:
    """What the collector prints on the trees of a machine."""
    first, second = write(machine, folder)
    return run("--deadline", "30", "--interval", "0.05", "--root", str(first), "--later", str(second), *more)[1]
