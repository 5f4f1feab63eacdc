"""A recorded /proc with processes in it, as the collector `processes` finds it below ``--root``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

STATUS = """Name:\t{name}
State:\t{state}
Tgid:\t{pid}
Pid:\t{pid}
PPid:\t{ppid}
TracerPid:\t0
Uid:\t{uid}\t{uid}\t{uid}\t{uid}
NSpid:\t{pid}
VmRSS:\t   12345 kB
Threads:\t1
CapEff:\t{capabilities}
Cpus_allowed_list:\t{cpus}
Mems_allowed_list:\t0-1
voluntary_ctxt_switches:\t100
nonvoluntary_ctxt_switches:\t7
"""
LIMITS = """Limit                     Soft Limit           Hard Limit           Units
Max locked memory         {memlock:<21}{memlock:<21}bytes
Max open files            1024                 1048576              files
"""


class Tree:
    """Writes processes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.file("proc/sys/kernel/hostname", "gpu-1\n")
        self.file("proc/sys/kernel/random/boot_id", "11111111-2222-3333-4444-555555555555\n")
        self.file("proc/uptime", "90000.00 100.00\n")
        self.file("etc/passwd", "root:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\n")
        self.process(1, "systemd", ppid=0)
        self.process(2, "kthreadd", ppid=0, flags=0x00200000)

    def file(self, name: str, text: str) -> Path:
        """A file below the root."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def process(
        self, pid: int, name: str, *, ppid: int = 1, state: str = "S", flags: int = 0, argv: Sequence[str] = (),
        env: Mapping[str, str] | None = None, opens: Sequence[str] = (), cgroup: str = "0::/user.slice", cpus: str = "0-95",
        memlock: str = "unlimited", threads: Mapping[int, tuple[str, str]] | None = None, uid: int = 1000, cpu: int = 10,
        stack: str = "[<0>] do_syscall_64+0x5b/0xf0\n", wchan: str = "do_wait", capabilities: str = "0000000000000000",
    ) -> None:  # fmt: skip
        """A process; `threads` are others than the main one: state and schedstat."""
        at = f"proc/{pid}"
        count = 1 + len(threads or {})
        self.file(f"{at}/stat", _stat(pid, name, state, ppid, flags, cpu, count))
        self.file(f"{at}/status", STATUS.format(**locals()))
        self.file(f"{at}/cmdline", "".join(f"{a}\0" for a in argv))
        self.file(f"{at}/environ", "".join(f"{k}={v}\0" for k, v in (env or {}).items()))
        self.file(f"{at}/cgroup", cgroup + "\n")
        self.file(f"{at}/limits", LIMITS.format(memlock=memlock))
        self.file(f"{at}/oom_score_adj", "0\n")
        self.file(f"{at}/io", "read_bytes: 1048576\nwrite_bytes: 0\n")
        for thread, (how, scheduled) in {pid: (state, "5000000 1000000 42"), **(threads or {})}.items():
            task = f"{at}/task/{thread}"
            self.file(f"{task}/stat", _stat(thread, name, how, ppid, flags, cpu, count))
            self.file(f"{task}/schedstat", scheduled + "\n")
            self.file(f"{task}/wchan", wchan)
            self.file(f"{task}/stack", stack)
        for folder in ("fd", "ns"):
            (self.root / at / folder).mkdir(exist_ok=True)
        for number, path in enumerate(opens, 3):
            (self.root / at / "fd" / str(number)).symlink_to(path)
        (self.root / at / "ns" / "pid").symlink_to("pid:[4026531836]")
        (self.root / at / "ns" / "mnt").symlink_to("mnt:[4026531841]")
        (self.root / at / "exe").symlink_to("/usr/bin/" + name)

    def gpu(self, address: str, minor: int) -> None:
        """What the driver says of a GPU."""
        self.file(
            f"proc/driver/nvidia/gpus/{address}/information", f"Model: \t\t NVIDIA H100\nDevice Minor: \t {minor}\n"
        )

    def hang(self, name: str) -> None:
        """A file whose opening never returns."""
        path = self.root / name
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(path)


def _stat(pid: int, name: str, state: str, ppid: int, flags: int, cpu: int, threads: int) -> str:
    rest = [state, ppid, pid, pid, 0, -1, flags, 100, 0, 3, 0, cpu, 0, 0, 0, 20, 0, threads, 0, 1000, 4096000, 3000]
    return f"{pid} ({name}) " + " ".join(map(str, rest)) + "\n"


def ranks(tree: Tree, count: int, *, first: int = 4000, cgroup: str = "0::/user.slice", **common: str) -> list[int]:
    """A launcher and its ranks, each on a GPU of its own."""
    tree.process(first - 1, "torchrun", argv=["python", "-m", "torch.distributed.run", "train.py"], cgroup=cgroup)
    for i in range(count):
        env = {
            "RANK": str(i), "LOCAL_RANK": str(i), "WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "none", "OMP_NUM_THREADS": "1", **common,
        }  # fmt: skip
        opens = ["/dev/nvidiactl", "/dev/nvidia-uvm", f"/dev/nvidia{i}"]
        argv = ["/usr/bin/python3", "train.py", "--lr", "1e-4"]
        tree.process(first + i, "python3", ppid=first - 1, argv=argv, env=env, opens=opens, cgroup=cgroup)
    return list(range(first, first + count))
