"""The incidents of ``gpudiag demo`` that are recorded bundles: each is a machine in order, made sick.

``python -m tests.demo_incidents [NAME ...]`` records them again into assistant/demos (needs a C compiler). What people
read of them, the stories, is written by hand beside the bundles.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from assistant.commands.demo import FOLDER
from tests import system_trees
from tests.demo_lab import GPUS, NICS, Node, leaks, space
from tests.probes.collectors.sysfs_tree import correctable

GIB = 1 << 30
CONTAINER = """812 640 0:155 / / rw,relatime - overlay overlay rw
813 812 0:158 / /proc rw,nosuid - proc proc rw
817 812 0:28 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw
821 812 0:160 / /dev/shm rw,nosuid - tmpfs shm rw,size={shm}k
830 812 259:3 /datasets /data rw,noatime - xfs /dev/nvme1n1 rw
"""


def rank_log(node: Node, ranks: range, seconds: float, missing: int | None = None) -> list[str]:
    """The watchdogs of the ranks that wait."""
    return [
        f"[rank{r}]:[E{node.stamp(seconds - r, '%m%d %H:%M:%S')}.104000 ProcessGroupNCCL.cpp:632] [Rank {r}] Watchdog caught "
        f"collective operation timeout: WorkNCCL(SeqNum=48211, OpType=ALLREDUCE, NumelIn=268435456, NumelOut=268435456, "
        f"Timeout(ms)=600000) ran for 60000{r} milliseconds before timing out."
        for r in ranks
        if r != missing
    ]


def healthy(node: Node) -> None:
    """Nothing is wrong."""
    node.job()


def off_the_bus(node: Node) -> dict[str, str]:
    """GPU 5 is gone since twelve minutes; its ranks wait for each other."""
    node.nvml = "lost"
    node.job()
    gone, port = GPUS[5], f"0000:{int(GPUS[5][5:7], 16) - 1:02x}:00.0"
    place = node.pci.pci(gone)
    (place / "config").write_bytes(b"\xff" * 4096)
    node.says(
        765,
        f"pcieport {port}: AER: Uncorrected (Fatal) error received: {port}",
        f"pcieport {port}: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)",
        f"pcieport {port}:   device [1000:c030] error status/mask=00000020/00100000",
        f"pcieport {port}:    [ 5] SDES                   (First)",
    )
    node.says(
        764,
        f"NVRM: Xid (PCI:{gone[:-2]}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        f"NVRM: GPU {gone}: GPU has fallen off the bus.",
        f"NVRM: GPU {gone}: GPU serial number is 1650220000005.",
        f"NVRM: Xid (PCI:{gone[:-2]}): 154, pid='<unknown>', name=<unknown>, GPU recovery action changed from 0x0 (None) "
        "to 0x2 (Node Reboot Required)",
    )
    node.says(763, "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 28 LTSSM Fault Up")
    node.says(762, "nvidia-nvswitch2: SXid (PCI:0000:07:00.0): 20034, Fatal, Link 12 LTSSM Fault Up")
    node.says(761, f"NVRM: Xid (PCI:{GPUS[0][:-2]}): 45, pid=4200, name=python3, Ch 00000012")
    lines = [
        f"{node.name}:4204:4614 [4] NCCL INFO Channel 00/0 : 4[4] -> 5[5] via P2P/CUMEM",
        f"{node.name}:4205:4622 [5] transport/p2p.cc:275 NCCL WARN Cuda failure 'unspecified launch failure'",
        *rank_log(node, range(8), 160, missing=5),
        "[rank5]: RuntimeError: CUDA error: unspecified launch failure",
    ]
    return {"train.log": "\n".join(lines) + "\n"}


def row_remap(node: Node) -> None:
    """A row of GPU 2's memory failed; the job was restarted, the GPU was not reset."""
    node.nvml = "ecc_climbing"
    node.job("finetune.py", job="51907")
    at = GPUS[2][:-2]
    node.says(
        5400,
        f"NVRM: Xid (PCI:{at}): 48, pid=3118, name=python3, DBE (double bit error) ECC Error in HBM",
        f"NVRM: Xid (PCI:{at}): 63, pid='<unknown>', name=<unknown>, Row Remapper: New row (0x00000000a1b2c340) marked for "
        "remapping, reset gpu to activate.",
        f"NVRM: Xid (PCI:{at}): 94, pid=3118, name=python3, Contained: HBM (0x1,0x7). RST: No, D-RST: Yes",
    )


def driver_hangs(node: Node) -> None:
    """GPU 3 does not answer one call any more; its rank sleeps in the driver."""
    node.nvml = "hung_call"
    node.job(ranks=[0, 1, 2, 4, 5, 6, 7], job="50022")
    stack = (
        "[<0>] os_acquire_rwlock_write+0x33/0x50 [nvidia]\n[<0>] _nv042330rm+0x2c/0x90 [nvidia]\n"
        "[<0>] rm_ioctl+0x58/0xb0 [nvidia]\n[<0>] nvidia_unlocked_ioctl+0x1e/0x30 [nvidia]\n[<0>] __x64_sys_ioctl+0x91/0xc0\n"
    )
    env = {"RANK": "3", "LOCAL_RANK": "3", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "8", "MASTER_ADDR": "127.0.0.1",
           "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "50022", "OMP_NUM_THREADS": "1", "SLURM_JOB_ID": "50022"}  # fmt: skip
    node.rank(
        3, ppid=4199, env=env, argv=["/opt/env/bin/python3", "pretrain.py"], state="D", stack=stack,
        wchan="os_acquire_rwlock_write", cgroup="0::/system.slice/slurmstepd.scope/job_50022/step_0",
    )  # fmt: skip
    node.says(
        640,
        f"NVRM: Xid (PCI:{GPUS[3][:-2]}): 119, pid=4203, name=python3, Timeout after 6s of waiting for RPC response from GPU3 "
        "GSP! Expected function 76 (GSP_RM_CONTROL) (0x20803032 0x598).",
    )
    for again in (500, 379, 258):
        node.says(
            again,
            f"INFO: task python3:4203 blocked for more than {620 - again} seconds.",
            "      Tainted: P           OE     5.15.0-122-generic #132-Ubuntu",
            '"echo 0 > /proc/sys/kernel/hung_task_timeout_secs" disables this message.',
            "task:python3         state:D stack:    0 pid: 4203 ppid:  4199 flags:0x00000000",
        )


def overheating(node: Node) -> None:
    """GPU 1 is too hot and slows down."""
    node.nvml = "hot"
    node.job("pretrain.py", job="61240")


def nvswitch_fault(node: Node) -> None:
    """A link between GPU 1 and an NVSwitch broke; the fabric manager says so as well."""
    node.nvml = "link_down"
    node.job("pretrain.py", job="58811")
    node.says(
        1830,
        "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 33 LTSSM Fault Up",
        "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Severity 1 Engine instance 33 Sub-engine instance 00",
        "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Data {0x50610002, 0x10100030, 0x00000000, 0x10100030, 0x00000000}",
    )
    node.says(
        1829,
        f"NVRM: Xid (PCI:{GPUS[1][:-2]}): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 9"
        "(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
    )
    form = "%b %d %Y %H:%M:%S"
    node.put(
        "var/log/fabricmanager.log",
        f"[{node.boot.strftime(form)}] [INFO] [tid 1344] Successfully configured all the available NVSwitches to route GPU "
        "NVLink traffic. NVLink Peer-to-Peer support will be enabled once the GPUs are successfully registered with the "
        "NVLink fabric.\n"
        f"[{node.stamp(1829, form)}] [ERROR] [tid 1390] detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id "
        "00000000:06:00.0 physical id 9 port 33",
    )


def rail_down(node: Node) -> dict[str, str]:
    """The port of adapter 3 lost its link several times, and then for good."""
    node.job(job="70415")
    for seconds in (5400, 2210, 1904):
        node.says(seconds, f"mlx5_core {NICS[3]} ibp3s0: Link down")
        node.says(seconds - 21, f"mlx5_core {NICS[3]} ibp3s0: Link up")
    node.says(903, f"mlx5_core {NICS[3]} ibp3s0: Link down")
    here = (node.root / "sys/class/infiniband/mlx5_3").resolve()
    for path, text in (("state", "1: DOWN"), ("phys_state", "3: Disabled"), ("rate", "10 Gb/sec (4X SDR)"),
                       ("counters/link_downed", "4"), ("counters/symbol_error", "4021"),
                       ("hw_counters/local_ack_timeout_err", "1188"), ("phys_state", "2: Polling")):  # fmt: skip
        node.put(str((here / "ports/1" / path).relative_to(node.root.resolve())), text)
    for path, text in (("operstate", "down"), ("carrier", "0"), ("carrier_changes", "9"), ("carrier_down_count", "5"),
                       ("speed", "-1")):  # fmt: skip
        net = (node.root / "sys/class/net/ibp3s0").resolve()
        node.put(str((net / path).relative_to(node.root.resolve())), text)
    lines = [
        f"{node.name}:4203:4618 [3] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [2]mlx5_2:1/IB [3]mlx5_3:1/IB",
        f"{node.name}:4203:4640 [3] NCCL INFO NET/IB : mlx5_3:1 Got async event : port error",
        f"{node.name}:4203:4640 [3] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.40.2.18<41022> with "
        "status=12 opcode=0 len=0 vendor err 129 (Recv) localGid fe80::946d:ae03:4b:3 remoteGidsfe80::946d:ae03:51:3 hca mlx5_3",
        f"[rank3]:[E{node.stamp(880, '%m%d %H:%M:%S')}.551000 ProcessGroupNCCL.cpp:1834] [PG ID 0 PG GUID 0(default_pg) Rank 3] "
        "Process group watchdog thread terminated with exception: NCCL error: remote process exited or there was a network error",
    ]
    return {"train.log": "\n".join(lines) + "\n"}


def _container(node: Node, shm: int, quota: str = "max 100000") -> str:
    """Let the machine be what a container sees of it; the folder of its control group."""
    group = "/kubepods.slice/kubepods-burstable.slice/kubepods-pod3c1f.slice/cri-containerd-9b2e.scope"
    node.put("proc/self/cgroup", "0::" + group)
    node.put("proc/self/mountinfo", CONTAINER.format(shm=shm >> 10))
    (node.root / "data").mkdir(exist_ok=True)
    node.put("run/secrets/kubernetes.io/serviceaccount/namespace", "research")
    node.mounts = {"/": space(960 * 10**9, 610 * 10**9), "/dev/shm": space(shm, shm - (1 << 20)),
                   "/data": space(7 * 10**12, 4 * 10**12)}  # fmt: skip
    for path, text in system_trees.cgroup2(group, cpu_max=quota + "\n").items():
        if text is not None:
            node.put(path[1:], text)
    return group


def small_shm(node: Node) -> dict[str, str]:
    """The container has the 64 MiB of shared memory that runtimes give by default."""
    node.job("train_vit.py", job="0")
    _container(node, 64 << 20)
    lines = [
        f"{node.stamp(95)} INFO epoch 0: 16 loader workers a rank",
        "[rank2]: Traceback (most recent call last):",
        '[rank2]:   File "/workspace/train_vit.py", line 214, in main',
        "[rank2]:     for step, batch in enumerate(loader):",
        '[rank2]:   File "/opt/env/lib/python3.11/site-packages/torch/utils/data/dataloader.py", line 1284, in _try_get_data',
        "[rank2]:     raise RuntimeError(f'DataLoader worker (pid(s) {pids_str}) exited unexpectedly') from e",
        "[rank2]: RuntimeError: DataLoader worker (pid 6120) is killed by signal: Bus error. It is possible that dataloader's "
        "workers are out of shared memory. Please try to raise your shared memory limit.",
    ]
    return {"pod.log": "\n".join(lines) + "\n"}


def cpu_limit(node: Node) -> None:
    """The container may use four cores, and eight ranks with their loaders want more."""
    node.job("train_vit.py", job="0")
    group = _container(node, 64 * GIB, "400000 100000")[1:]
    base = "usage_usec {}\nuser_usec {}\nsystem_usec 90\nnr_periods {}\nnr_throttled {}\nthrottled_usec {}\n"
    node.put(
        f"sys/fs/cgroup/{group}/cpu.stat", base.format(91_000_000_000, 80_000_000_000, 201_400, 166_120, 88_700_000_000)
    )
    node.change(
        f"sys/fs/cgroup/{group}/cpu.stat", base.format(91_002_000_000, 80_002_000_000, 201_405, 166_125, 88_701_900_000)
    )
    node.put(f"sys/fs/cgroup/{group}/cpu.pressure", system_trees.pressure(61.0, 48.5, 900_000_000))


def half_width(node: Node) -> None:
    """GPU 4's link came up with eight of sixteen lanes, and its signals are bad."""
    node.nvml = "narrow"
    node.job(job="63377")
    gpu, port = GPUS[4], f"0000:{int(GPUS[4][5:7], 16) - 1:02x}:00.0"
    for address in (gpu, port):
        node.put(f"sys/bus/pci/devices/{address}/current_link_width", 8)
    node.put(f"sys/bus/pci/devices/{gpu}/aer_dev_correctable", correctable(RxErr=1804, BadTLP=377, BadDLLP=112))
    for seconds in (82000, 41000, 7300, 640):
        node.says(
            seconds,
            f"pcieport {port}: AER: Corrected error message received from {gpu}",
            f"nvidia {gpu}: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
            f"nvidia {gpu}:   device [10de:2330] error status/mask=00000001/0000e000",
            f"nvidia {gpu}:    [ 0] RxErr                  (First)",
        )


def left_behind(node: Node) -> None:
    """The job of yesterday is over, and one of its ranks is not."""
    node.nvml = "left_behind"
    env = {"RANK": "3", "LOCAL_RANK": "3", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "8", "MASTER_ADDR": "127.0.0.1",
           "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "none", "OMP_NUM_THREADS": "1"}  # fmt: skip
    node.rank(
        3, ppid=1, env=env, argv=["/opt/env/bin/python3", "sft.py", "--run", "tuesday"], state="S", wchan="futex_wait_queue",
        cgroup="0::/user.slice/user-1000.slice/session-41.scope",
    )  # fmt: skip


def mig(node: Node) -> None:
    """GPU 0 is divided, and all is well."""
    node.nvml = "mig"
    node.job("serve.py", job="44001")


def nfs_hung(node: Node) -> None:
    """The file server of /data does not answer; ranks that write a checkpoint wait."""
    node.job(job="66120", ranks=range(1, 8))
    stack = "[<0>] rpc_wait_bit_killable+0x11/0x70 [sunrpc]\n[<0>] nfs_wait_bit_killable+0x11/0x70 [nfs]\n[<0>] ksys_write+0x67/0xe0\n"
    env = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "8", "MASTER_ADDR": "127.0.0.1",
           "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "66120", "OMP_NUM_THREADS": "1", "SLURM_JOB_ID": "66120"}  # fmt: skip
    node.rank(
        0, ppid=4199, env=env, argv=["/opt/env/bin/python3", "pretrain.py"], state="D", stack=stack, wchan="rpc_wait_bit_killable",
        cgroup="0::/system.slice/slurmstepd.scope/job_66120/step_0",
    )  # fmt: skip
    node.mounts["/data"] = "hung"
    node.says(1290, "nfs: server 10.40.0.9 not responding, still trying")
    node.says(1110, "nfs: server 10.40.0.9 not responding, still trying")
    node.says(
        1043,
        "INFO: task python3:4200 blocked for more than 120 seconds.",
        "      Tainted: P           OE     5.15.0-122-generic #132-Ubuntu",
        '"echo 0 > /proc/sys/kernel/hung_task_timeout_secs" disables this message.',
        "task:python3         state:D stack:    0 pid: 4200 ppid:  4199 flags:0x00004000",
    )


def no_fabric(node: Node) -> dict[str, str]:
    """The fabric manager died, so that CUDA does not start."""
    node.nvml = "no_fabric"
    shutil.rmtree(node.root / "proc/1344")
    node.says(
        4020,
        "nvidia-fabricmanager.service: Main process exited, code=exited, status=1/FAILURE",
        "nvidia-fabricmanager.service: Failed with result 'exit-code'.",
        "Failed to start NVIDIA fabric manager service.",
        unit="systemd[1]",
    )
    lines = [
        "[rank0]: Traceback (most recent call last):",
        '[rank0]:   File "/workspace/train.py", line 88, in <module>',
        "[rank0]:     torch.cuda.set_device(local_rank)",
        '[rank0]:   File "/opt/env/lib/python3.11/site-packages/torch/cuda/__init__.py", line 476, in set_device',
        "[rank0]:     torch._C._cuda_setDevice(device)",
        "[rank0]: RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling "
        "NumCudaDevices() that might have already set an error? Error 802: system not yet initialized",
    ]
    return {"train.log": "\n".join(lines) + "\n"}


Make = Callable[[Node], "dict[str, str] | None"]
# Name -> the machine's name, the moment of the recording (UTC), and what is wrong with it.
INCIDENTS: dict[str, tuple[str, str, Make]] = {
    "healthy": ("cedar-h100-011", "2026-03-14T09:26:53", healthy),
    "off-the-bus": ("oak-h100-042", "2026-08-19T02:53:40", off_the_bus),
    "row-remap-pending": ("ash-h100-023", "2026-04-02T15:41:20", row_remap),
    "driver-hangs": ("birch-h100-118", "2026-05-21T22:17:05", driver_hangs),
    "overheating": ("elm-h100-030", "2026-07-08T13:05:44", overheating),
    "nvswitch-fault": ("larch-h100-009", "2026-02-11T06:48:30", nvswitch_fault),
    "rail-down": ("maple-h100-076", "2026-06-16T18:20:10", rail_down),
    "small-shm": ("vit-train-0", "2026-05-05T10:12:31", small_shm),
    "cpu-limit": ("vit-train-1", "2026-05-06T08:55:02", cpu_limit),
    "half-width": ("pine-h100-051", "2026-03-27T11:34:50", half_width),
    "left-behind": ("rowan-h100-004", "2026-04-22T07:58:15", left_behind),
    "mig": ("yew-h100-002", "2026-06-30T16:00:00", mig),
    "nfs-hung": ("alder-h100-087", "2026-07-27T03:33:12", nfs_hung),
    "fabric-manager-down": ("hazel-h100-015", "2026-02-25T12:09:37", no_fabric),
}


def record(name: str, into: Path, work: Path) -> None:
    """Make the machine of an incident in a new folder below `work`, and put its bundle and its logs into `into`."""
    host, now, make = INCIDENTS[name]
    node = Node(work / name, host, now)
    logs = make(node) or {}
    libraries = work / "nvml-libraries"
    libraries.mkdir(exist_ok=True)
    node.collect(into / "bundle", libraries)
    for file, text in logs.items():
        (into / file).write_text(text)


def main(names: list[str]) -> int:
    """Record the named incidents, or all."""
    with tempfile.TemporaryDirectory(prefix="machines") as work:
        for name in names or INCIDENTS:
            into = FOLDER / name
            into.mkdir(exist_ok=True)
            shutil.rmtree(into / "bundle", ignore_errors=True)
            record(name, into, Path(work))
            for leak in leaks(into / "bundle", Path(work)):
                sys.stderr.write(f"{name}: tells of this machine: {leak}\n")
            sys.stdout.write(f"{name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
