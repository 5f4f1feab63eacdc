"""Machines for the incidents of ``gpudiag demo``: a tree of files, a fake NVML, fake log tools; recorded by `gpudiag collect`.

`Node` makes an HGX machine in order: 8 GPUs where the fake NVML has them, 8 adapters, 4 NVSwitches, a job. An incident makes
it sick (`tests.demo_incidents`), `record` runs the real program on it. All names and figures are invented.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests import nvml_lab, system_trees
from tests.conftest import ROOT
from tests.probes.collectors import process_tree, sysfs_tree
from tests.probes.collectors.sysfs_tree import put

DRIVER = "575.57.08"
GPUS = tuple(f"0000:{bus:02x}:00.0" for bus in (0x1A, 0x3B, 0x4C, 0x5D, 0x9A, 0xBA, 0xCA, 0xDA))
NICS = tuple(f"0000:{bus:02x}:00.0" for bus in (0x1B, 0x3C, 0x4D, 0x5E, 0x9B, 0xBB, 0xCB, 0xDB))
SWITCHES = tuple(f"0000:{bus:02x}:00.0" for bus in (5, 6, 7, 8))
BOOT_ID = "6f2c1d9e-4b7a-4c55-9d3e-2a8f0b6c7d11"
KERNEL = "5.15.0-122-generic"
CORES = 16  # fewer than such a machine has: a bundle is to be small
UP = timedelta(days=4, hours=5, minutes=12)
GIB = 1 << 30
MOUNTS = """1 0 259:2 / / rw,relatime - ext4 /dev/nvme0n1p2 rw
22 1 0:5 / /proc rw,nosuid - proc proc rw
31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw
40 25 0:26 / /dev/shm rw,nosuid - tmpfs tmpfs rw,size=1056964608k
52 1 259:3 / /scratch rw,noatime - xfs /dev/nvme1n1 rw
60 1 0:61 / /data rw,relatime - nfs4 10.40.0.9:/export/data rw,vers=4.1,hard,proto=tcp,timeo=600,retrans=2
"""
# Services of the machine, as the kernel names their processes.
DAEMONS = {
    830: "systemd-journal",
    1201: "chronyd",
    1310: "nvidia-persiste",
    1344: "nv-fabricmanage",
    1502: "containerd",
    1611: "slurmd",
    1633: "munged",
}
BOOT_LOG = (
    (0.0, "Linux version 5.15.0-122-generic (buildd@example) (gcc 11.4.0) #132-Ubuntu SMP"),
    (1.4, "PCI: Using configuration type 1 for base access"),
    (7.9, "EXT4-fs (nvme0n1p2): mounted filesystem with ordered data mode. Opts: (null). Quota mode: none."),
    (12.1, f"NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  {DRIVER}  Release Build"),
    (12.6, "nvidia-nvswitch: Probing device 0000:05:00.0, Vendor Id = 0x10de, Device Id = 0x22a3, Class = 0x68000"),
    (19.2, "mlx5_core 0000:1b:00.0: firmware version: 28.39.1002"),
)


def space(size: int, free: int, block: int = 4096) -> list[int]:
    """What statvfs says of `size` bytes."""
    blocks, left = size // block, free // block
    return [block, block, blocks, left, left, blocks // 4, blocks // 5, blocks // 5]


class Node:
    """A machine, as files that can be written over, a kernel log, and what stands beside them."""

    def __init__(self, folder: Path, name: str, now: str) -> None:
        """`now` is the moment of the recording: ``2026-03-14T09:26:53``, UTC."""
        self.folder, self.name = folder, name
        self.now = datetime.fromisoformat(now).replace(tzinfo=UTC)
        self.root, self.later = folder / "root", folder / "later"
        self.nvml = "healthy8"
        self.kernel: list[tuple[datetime, str]] = []
        self.services: list[tuple[datetime, str]] = []
        self.mounts: dict[str, list[int] | str] = {
            "/": space(960 * 10**9, 610 * 10**9),
            "/dev/shm": space(1008 * GIB, 1001 * GIB),
            "/scratch": space(7 * 10**12, 4 * 10**12),
            "/data": space(900 * 10**12, 380 * 10**12, 1 << 20),
        }
        folder.mkdir(parents=True)
        self.later.mkdir()
        self._system()
        self.processes = process_tree.Tree(self.root)
        self.pci = self._devices()
        self._daemons()
        self.boot = self.now - UP
        for seconds, text in BOOT_LOG:
            self.kernel.append((self.boot + timedelta(seconds=seconds), text))
        self.put("proc/sys/kernel/hostname", name)
        self.put("proc/sys/kernel/random/boot_id", BOOT_ID)
        self.put("proc/uptime", f"{UP.total_seconds():.2f} 5100000.00")
        self.put("proc/stat", self.text("proc/stat").replace("btime 1700000000", f"btime {int(self.boot.timestamp())}"))
        later = (self.later / "proc/stat").read_text()
        self.change("proc/stat", later.replace("btime 1700000000", f"btime {int(self.boot.timestamp())}"))

    def put(self, path: str, text: object) -> None:
        """Write a file of the tree."""
        put(self.root / path, str(text).rstrip("\n"))

    def text(self, path: str) -> str:
        """A file of the tree."""
        return (self.root / path).read_text()

    def change(self, path: str, text: str) -> None:
        """What a file says at the second reading, half a second later."""
        put(self.later / path, text.rstrip("\n"))

    def ago(self, seconds: float) -> datetime:
        """A moment before the recording."""
        return self.now - timedelta(seconds=seconds)

    def says(self, seconds: float, *lines: str, unit: str = "") -> None:
        """The kernel, or a service, writes a line that many seconds before the recording."""
        kept = self.services if unit else self.kernel
        for number, line in enumerate(lines):
            fraction = int(seconds * 7919) % 900_000 + 211 * number
            kept.append((self.ago(seconds) + timedelta(microseconds=fraction), (unit or "kernel") + ": " + line))

    def stamp(self, seconds: float, form: str = "%Y-%m-%d %H:%M:%S") -> str:
        """A moment before the recording, as a log of the machine writes it."""
        return self.ago(seconds).strftime(form)

    # --- its parts --------------------------------------------------------------------------

    def _system(self) -> None:
        files = system_trees.healthy(system_trees.Machine(cores=CORES, interrupts=6, pci=0)).files
        machine = system_trees.Machine(cores=CORES, interrupts=6, pci=0)
        whole = system_trees.healthy(machine)
        for path, content in files.items():
            if content is not None and not path.startswith(("/sys/bus/pci", "/sys/class/net/lo")):
                put(self.root / path[1:], content.rstrip("\n"))
        for path, content in whole.later.items():
            if content is not None and not path.startswith("/sys/bus/pci"):
                put(self.later / path[1:], content.rstrip("\n"))
        for name, device in (("eth0", "0000:e1:00.0"),):
            (self.root / f"sys/class/net/{name}").mkdir(parents=True, exist_ok=True)
            (self.root / f"sys/class/net/{name}/device").symlink_to(f"../../../{device}")
        self.put("proc/sys/kernel/osrelease", KERNEL)
        self.put("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=UUID=1 ro iommu=pt")
        self.put("proc/self/mountinfo", MOUNTS)
        for path in ("/", "dev/shm", "scratch", "data", "var/log"):
            (self.root / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
        self.put("sys/module/nvidia/version", DRIVER)
        for number in range(2):  # memory controllers
            folder = f"sys/devices/system/edac/mc/mc{number}"
            for name, value in (
                ("mc_name", "Intel_10nm Socket#0 IMC#0"),
                ("ce_count", 0),
                ("ue_count", 0),
                ("size_mb", 1 << 20),
            ):
                self.put(f"{folder}/{name}", value)
        for resource in ("cpu", "memory", "io", "irq"):
            self.put(f"proc/pressure/{resource}", system_trees.pressure(0.4 if resource == "cpu" else 0.0, 0.0, 1000))

    def _devices(self) -> sysfs_tree.Node:
        node = sysfs_tree.Node(self.root)
        for index, (gpu, nic) in enumerate(zip(GPUS, NICS, strict=True)):
            left, right = node.switch(int(gpu[5:7], 16) - 3, index // 4)
            node.gpu(gpu, left, index, index // 4)
            uuid = f"GPU-5e1f0000-1111-2222-3333-000000{index:06d}"
            here = self.root / f"proc/driver/nvidia/gpus/{gpu}/information"
            lines = [f"GPU UUID: \t {uuid}" if x.startswith("GPU UUID") else x for x in here.read_text().splitlines()]
            put(here, "\n".join(lines))
            node.function(nic, right, "020700", sysfs_tree.NIC, numa=index // 4, driver="mlx5_core")
            node.nics.append(nic)
            node.adapter(index, nic)
        for index, address in enumerate(SWITCHES):
            port = f"0000:00:{index + 1:02x}.0"
            node.function(port, "pci0000:00", "060400", "8086:352a", port=sysfs_tree.ROOT_PORT, acs=0x1D)
            node.function(address, port, "068000", sysfs_tree.NVSWITCH, driver="nvidia-nvswitch")
            node.nvswitches.append(address)
        for place in self.root.glob("sys/devices/**/resource"):
            put(place, "\n".join(place.read_text().splitlines()[:7]))  # the rest is zeros
        modules = ("nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_peermem", "mlx5_core", "mlx5_ib", "ib_core")
        node.driver(*modules, version=DRIVER)
        return node

    def _daemons(self) -> None:
        tree = self.processes
        tree.file("etc/passwd", "root:x:0:0::/root:/bin/sh\nmlops:x:1000:1000::/home/mlops:/bin/sh\n")
        for pid, name in ((1, "systemd"), (2, "kthreadd"), *DAEMONS.items()):
            if pid > 2:
                tree.process(pid, name, uid=0, cgroup=f"0::/system.slice/{name}.service")
            tree.file(f"proc/{pid}/comm", name + "\n")
        self_ = self.root / "proc/self"
        self_.mkdir(exist_ok=True)
        (self_ / "ns").mkdir(exist_ok=True)
        for number, (kind, inode) in enumerate((("pid", 4026531836), ("mnt", 4026531841))):
            (self_ / "ns" / kind).symlink_to(f"{kind}:[{inode}]")
            assert number < 2
        tree.file("proc/self/status", "Name:\tpython3\nCapEff:\t000001ffffffffff\n")

    def job(self, name: str = "pretrain.py", ranks: Sequence[int] = range(8), job: str = "48213") -> None:
        """A training job under Slurm: a launcher, and a rank on each GPU, with the process ids that NVML tells."""
        tree, group = self.processes, f"0::/system.slice/slurmstepd.scope/job_{job}/step_0"
        tree.process(4199, "torchrun", argv=["/opt/env/bin/torchrun", "--nproc-per-node=8", name], cgroup=group)
        tree.file("proc/4199/comm", "torchrun\n")
        for i in ranks:
            env = {
                "RANK": str(i), "LOCAL_RANK": str(i), "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "8", "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": job, "OMP_NUM_THREADS": "1", "SLURM_JOB_ID": job,
            }  # fmt: skip
            self.rank(i, ppid=4199, env=env, argv=["/opt/env/bin/python3", name], cgroup=group)

    def rank(
        self, index: int, *, ppid: int, env: Mapping[str, str], argv: Sequence[str], cgroup: str, state: str = "R",
        stack: str = "[<0>] do_syscall_64+0x5b/0xf0\n", wchan: str = "0", cpu: int = 90000,
    ) -> None:  # fmt: skip
        """One process that holds a GPU."""
        cpus = "0-7" if index < 4 else "8-15"
        opens = ["/dev/nvidiactl", "/dev/nvidia-uvm", f"/dev/nvidia{index}"]
        self.processes.process(
            4200 + index, "python3", ppid=ppid, state=state, argv=argv, env=env, opens=opens, cgroup=cgroup, cpus=cpus, cpu=cpu,
            stack=stack, wchan=wchan,
        )  # fmt: skip

    # --- recording --------------------------------------------------------------------------

    def _tools(self) -> Path:
        """Programs on the PATH: those that print logs. There are no others."""
        place = self.folder / "bin"
        place.mkdir()
        lines = {
            "kernel.log": [(t, x if x.startswith("kernel: ") else "kernel: " + x) for t, x in self.kernel],
            "service.log": self.services,
        }
        for name, entries in lines.items():
            rows = [f"{t.strftime('%Y-%m-%dT%H:%M:%S.%f')}+0000 {x}" for t, x in sorted(entries, key=lambda e: e[0])]
            (self.folder / name).write_text("".join(r + "\n" for r in rows) or "-- No entries --\n")
        form = "%a %Y-%m-%d %H:%M:%S UTC"
        boots = f" 0 {BOOT_ID.replace('-', '')} {self.boot.strftime(form)}—{self.ago(3).strftime(form)}\n"
        (self.folder / "boots").write_text(boots)
        script = (
            f'#!/bin/sh\ncase "$*" in\n*--list-boots*) /bin/cat {self.folder}/boots;;\n'
            f"*_TRANSPORT=kernel*) /bin/cat {self.folder}/kernel.log;;\n*) /bin/cat {self.folder}/service.log;;\nesac\n"
        )
        ring = [(t, x.removeprefix("kernel: ")) for t, x in self.kernel]
        rows = [
            f"kern  :info  : {t.strftime('%Y-%m-%dT%H:%M:%S,%f')}+00:00 {x}"
            for t, x in sorted(ring, key=lambda e: e[0])
        ]
        (self.folder / "ring").write_text("".join(r + "\n" for r in rows))
        version = f"#!/bin/sh\necho 'Fabric Manager version is : {DRIVER}'\n"
        for name, text in (
            ("journalctl", script), ("dmesg", f"#!/bin/sh\n/bin/cat {self.folder}/ring\n"), ("nv-fabricmanager", version),
        ):  # fmt: skip
            (place / name).write_text(text)
            (place / name).chmod(0o755)
        return place

    def collect(self, out: Path, libraries: Path, *words: str) -> None:
        """Run the real ``gpudiag collect`` on this machine. `libraries` is where the fake NVML is built."""
        tools = self._tools()
        program = ROOT / "tests" / "demo_machine.py"
        config, python = self.folder / "machine.json", self.folder / "python3"
        config.write_text(
            json.dumps({
                "now_ns": int(self.now.timestamp()) * 10**9, "uptime_ns": int(UP.total_seconds()) * 10**9,
                "root": str(self.root), "later": str(self.later), "mounts": self.mounts, "python": str(python),
                "repository": str(ROOT), "name": self.name, "release": KERNEL,
            })
        )  # fmt: skip
        python.write_text(f'#!/bin/sh\nexec {sys.executable} -I -B {program} {config} "$@"\n')
        python.chmod(0o755)
        nvml = nvml_lab.folder(libraries, self.nvml)
        env = {
            "PATH": str(tools), "HOME": str(self.folder), "LD_LIBRARY_PATH": str(nvml), "GPUDIAG_HOST_ROOT": str(self.root),
            "GPUDIAG_HOST_NAME": self.name, "GPUDIAG_STATE_DIR": str(self.folder / "state"), "TZ": "UTC", "LC_ALL": "C.UTF-8",
        }  # fmt: skip
        argv = [str(python), "-m", "assistant", "collect", "-o", str(out), *words]
        done = subprocess.run(argv, env=env, cwd=self.folder, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        (out / "observations.jsonl").unlink()  # three quarters of it, and no replay reads it
        for place in (out, *out.rglob("*")):  # a bundle is its owner's alone; these are for everybody
            place.chmod(0o755 if place.is_dir() else 0o644)


def leaks(folder: Path, made_in: Path) -> list[str]:
    """What a bundle tells of the machine that made it: its paths and its name."""
    words = {str(made_in), str(ROOT), "/tmp/", sys.prefix, sys.base_prefix, sys.executable} - {"/usr"}
    found = []
    for file in sorted(p for p in folder.rglob("*") if p.is_file()):
        text = file.read_text(errors="replace")
        found += [f"{file.name}: {word}" for word in sorted(words) if word in text]
        found += [
            f"{file.name}: {m[0]}" for m in re.finditer(rf"(?<![\w/]){re.escape(socket.gethostname())}(?![\w/])", text)
        ]
    return found
