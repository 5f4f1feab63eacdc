"""Questions about files that were given are answered from what stands in them: which, when, how often, and what came of what."""

from __future__ import annotations

from dataclasses import replace

from assistant.diagnosis import diagnose
from assistant.dialogue import _also, _became, _host_memory, _steps
from assistant.intent.of_files import meant
from assistant.intent.parse import understand
from assistant.intent.query import Intent
from assistant.render.sheet import Items
from assistant.sources import parse_text
from tests.assistant.dialogue.talk import ask, rules, turn
from tests.cases import each

KERNEL = """2026-11-29T03:05:12+00:00 n12 kernel: NVRM: Xid (PCI:0000:43:00): 79, pid=22931, name=python, GPU has fallen off the bus.
2026-11-29T03:48:40+00:00 n12 kernel: Out of memory: Killed process 55120 (loader) total-vm:812331220kB, anon-rss:402331220kB, file-rss:0kB, shmem-rss:0kB, UID:1004 pgtables:792332kB oom_score_adj:0
2026-11-29T05:01:55+00:00 n12 kernel: NVRM: Xid (PCI:0000:1b:00): 31, pid=401122, name=python3, Ch 00000012, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f10_a2c00000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ
2026-11-29T05:02:55+00:00 n12 kernel: NVRM: Xid (PCI:0000:1b:00): 31, pid=401122, name=python3, Ch 00000012, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f10_a2c00000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ
"""
FLAPS = """Nov 28 03:10:11 n5 kernel: mlx5_core 0000:5e:00.0 ibp94s0: Link down
Nov 28 03:10:24 n5 kernel: mlx5_core 0000:5e:00.0 ibp94s0: Link up
Nov 28 03:31:40 n5 kernel: mlx5_core 0000:5e:00.0 ibp94s0: Link down
Nov 28 03:31:52 n5 kernel: mlx5_core 0000:5e:00.0 ibp94s0: Link up
Nov 28 04:05:40 n5 kernel: mlx5_core 0000:5e:00.0 ibp94s0: Link down
Nov 28 04:05:49 n5 kernel: mlx5_core 0000:5e:00.0 ibp94s0: Link up
"""
NCCL = "[2026-11-28 03:31:17] d02:18877:19301 [5] transport/net_ib.cc:1862 NCCL WARN NET/IB: mlx5_3:1 Got completion from peer 10.4.0.11<40122> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_RDMA_WRITE(1) reqSize=0 vendor_err=129 req_type=Send localGid fe80::1 remoteGids fe80::2 hca mlx5_3\n"
FULL = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.44 GiB. GPU 3 has a total capacity of 79.11 GiB of which 1.81 GiB is free. Including non-PyTorch memory, this process has 77.29 GiB memory in use. Of the allocated memory 70.12 GiB is allocated by PyTorch, and 5.01 GiB is reserved by PyTorch but unallocated.\n"
SLURM = """slurmstepd: error: Detected 1 oom_kill event in StepId=771204.0. Some of the step tasks have been OOM Killed.
srun: error: c03: task 5: Out Of Memory
slurmstepd: error: *** STEP 771204.0 ON c01 CANCELLED AT 2026-11-28T03:41:09 ***
srun: error: c01: tasks 0-1: Killed
"""
AER = """Nov 29 03:11:42 n1 kernel: pcieport 0000:5a:01.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Receiver ID)
Nov 29 03:12:31 n1 kernel: pcieport 0000:5a:01.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)
"""
IMEX = """[Nov 28 2026 10:01:11] [INFO] [tid 4121] Connection established to node 2 with ip address 192.0.2.13.
[Nov 28 2026 10:44:20] [ERROR] [tid 4133] Connection lost to node 2 with ip address 192.0.2.13.
"""
SEVEN = "index, name, pci.bus_id, temperature.gpu\n" + "".join(
    f"{n}, NVIDIA H100 80GB HBM3, 00000000:{n + 1}0:00.0, 40\n" for n in (0, 1, 2, 3, 4, 6, 7)
)
LOST = """[2026-11-28T03:49:12.901] Killing JobId=88431 on failed node e07
[2026-11-28T03:49:12.910] requeue job JobId=88431 due to failure of node e07
"""


def _steps_of(*took: int) -> str:
    return "".join(
        f"[2026-11-28 02:{n:02}:03] step {100 * n} | loss {3 - n / 50:.4f} | {ms} ms/step | tokens/s {65536000 // ms}\n"
        for n, ms in enumerate(took)
    )


STEPS, STEADY = _steps_of(412, 413, 612, 615, 611), _steps_of(412, 413, 413, 411, 412)
SMI = """index, name, temperature.gpu, power.draw [W], utilization.gpu [%], clocks.sm [MHz], memory.used [MiB], memory.total [MiB]
0, NVIDIA H100 80GB HBM3, 58, 610.11 W, 99 %, 1755 MHz, 61000 MiB, 81559 MiB
1, NVIDIA H100 80GB HBM3, 71, 600.32 W, 98 %, 1740 MHz, 61010 MiB, 81559 MiB
2, NVIDIA H100 80GB HBM3, 44, 118.00 W, 0 %, 1980 MHz, 600 MiB, 81559 MiB
"""


RANKS = """\
n12:7700:7810 [0] NCCL INFO comm 0x55d00a00 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x9d3f12 - Init COMPLETE
n12:7705:7815 [5] NCCL INFO comm 0x55d05a00 rank 1 nranks 2 cudaDev 1 nvmlDev 1 busId c3000 commId 0x9d3f12 - Init COMPLETE
[rank0]:[E1126 18:40:11.200113 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=18422, OpType=ALLREDUCE, NumelIn=256, NumelOut=256, Timeout(ms)=600000) ran for 600030 milliseconds before timing out.
[rank0]:[E1126 18:40:11.210113 ProcessGroupNCCL.cpp:1664] [PG 0 (default_pg) Rank 0] Exception (either an error or timeout) detected by watchdog at work: 18422, last enqueued NCCL work: 18424, last completed NCCL work: 18421.
[rank1]:[E1126 18:40:29.119200 ProcessGroupNCCL.cpp:1664] [PG 0 (default_pg) Rank 1] Exception (either an error or timeout) detected by watchdog at work: 18421, last enqueued NCCL work: 18421, last completed NCCL work: 18421.
"""
TWO_GPUS = """\
Nov 27 03:11:43 n1 kernel: [1893313.310034] NVRM: Xid (PCI:0000:9a:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
Nov 27 03:11:44 n1 kernel: [1893314.120010] NVRM: Xid (PCI:0000:8a:00): 45, pid=318822, name=python, Ch 00000008
"""
_LIMIT = "2026/11/28 21:0{}:00.100, {}, NVIDIA H100 80GB HBM3, 99 %, 340.00 W, {} W, {} MHz, 60"
CAPPED = "timestamp, index, name, utilization.gpu [%], power.draw [W], power.limit [W], clocks.current.sm [MHz], temperature.gpu\n" + "\n".join(
    _LIMIT.format(m, i, "350.00" if i == 1 and m > 2 else "700.00", 1035 if i == 1 and m > 2 else 1755) for m in range(6) for i in range(4)
)  # fmt: skip
_OF_FILES = {
    Intent.HISTORY: Intent.EVENTS,
    Intent.RERUN: Intent.VERDICT,
}  # what was given has its own past, and is looked at once


def _said(kind: str, text: str, said: str) -> str:
    """The first line of the answer, as a session gives it for files, with what else was asked."""
    d, q = diagnose(parse_text(kind, text), rules()), understand(said)
    q = replace(q, intent=meant(q) or _OF_FILES.get(q.intent, q.intent))
    steps = (_became.answer(turn(d, q)) if q.intent is Intent.VERDICT else None) or _steps.answer(turn(d, q))
    reply = _also.beside(steps or _host_memory.answer(turn(d, q)) or ask(d, q), turn(d, q))
    beside = [item for part in reply.parts[:1] if isinstance(part, Items) for item in part.items] if q.also else []
    return " ".join((reply.headline, *beside))


@each(
    ("text", "said", "names"),
    [
        (FULL, "which rank failed?", ["Rank 3"]),
        (KERNEL, "which GPU faulted first and at what time?", ["43:00", "At 2026-11-29 03:05:12"]),
        (NCCL, "which hosts are involved?", ["Node d02"]),
        (NCCL, "which node and which NIC?", ["Node d02, NIC mlx5_3"]),
        (NCCL, "which host and NIC is it?", ["Node d02, NIC mlx5_3"]),
        (SLURM, "which node ran out of memory?", ["Node c03"]),
        (SLURM, "which task was OOM killed and on which node?", ["Task 5, node c03"]),
        (SLURM, "which job was it?", ["Job 771204"]),
        (LOST, "which node failed and when?", ["Node e07", "03:49:12"]),
        (IMEX, "which node did we lose and why?", ["Node 2 (192.0.2.13)", "IMEX lost its connection"]),
        (
            AER,
            "which PCIe device had the fatal error and at what time?",
            ["11-29 03:12:31: Fatal PCIe error", "0000:5a:01.0"],
        ),
        (SEVEN, "which GPU is missing?", ["GPU 5: left out of 0 to 7"]),
        (FLAPS, "哪个网卡有问题?", ["ibp94s0"]),
        (KERNEL, "which GPU has the page fault?", ["1b:00"]),
        (RANKS, "which process is behind?", ["Pid 7705 (rank 1)"]),
        (RANKS, "which host is it?", ["Node n12 (rank 1)"]),
        (TWO_GPUS, "which process was on GPU 9a?", ["tell no process", "python (pid 318822) on GPU 0000:8a:00.0"]),
        (NCCL, "which node is at fault?", ["d02 only logged it: its peer 10.4.0.11"]),
        (NCCL, "是哪台机器的问题?", ["对端 10.4.0.11 或中间链路"]),
        (
            CAPPED,
            "what changed between 21:01 and 21:04?",
            ["Since 2026-11-28 21:03:00.100", "350 W", "before", "700 W"],
        ),
        (CAPPED, "从什么时候开始的?", ["自 2026-11-28 21:03:00.100 起"]),
        (RANKS, "哪个rank卡住了?", ["Rank 1"]),
        (CAPPED, "有什么变化?", ["自 2026-11-28 21:03:00.100 起", "350 W"]),
        (
            SMI,
            "can I use this node?",
            ["Nothing wrong was found in what was read", "the kernel log was not read (`dmesg -T`)"],
        ),
        (SMI, "这台机器能用吗?", ["已读内容未发现问题", "未读取内核日志（`dmesg -T`）"]),
        (CAPPED, "which GPU is slow and since when?", ["GPU 1", "Since 2026-11-28 21:03:00.100", "350 W", "700 W"]),
    ],
)
def test_what_the_lines_name_is_named(text: str, said: str, names: list[str]) -> None:
    headline = _said("input", text, said)
    assert all(name in headline for name in names), headline
    assert "names no" not in headline


@each(
    ("said", "answer", "never"),
    [
        ("what happened between 03:00 and 04:00?", "2 events", "XID 31"),
        ("三点到四点之间发生了什么", "2 条事件", "XID 31"),
        ("did anything happen from 04:00 to 05:00", "Nothing that is understood was logged then", "XID"),
        ("how many times did Xid 31 happen?", "Twice", "XID 79"),
        ("how often did Xid 48 happen?", "Never in what was read", "XID 79"),
        ("did the OOM kill cause the GPU failure?", "No: XID 79", "the other way"),
        ("did the Xid 79 happen before the OOM?", "First XID 79", "No:"),
        ("GPU 掉卡是因为内存不足吗?", "不是：XID 79", "解释了"),
    ],
)
def test_times_counts_and_order_are_those_of_the_lines(said: str, answer: str, never: str) -> None:
    headline = _said("log", KERNEL, said)
    assert answer in headline
    assert never not in headline


def test_a_link_goes_down_as_often_as_it_goes_down() -> None:
    assert _said("log", FLAPS, "how many times did the link go down?").startswith(
        "3 times, 11-28 03:10:11 to 11-28 04:05:40"
    )
    assert _said("log", FLAPS, "was the link down at 04:00?").startswith("Yes: 11-28 03:31:40, 11-28 04:05:40")
    fits = _said("log", FLAPS, "did the network cause my NCCL timeout at 03:31?")
    assert fits.startswith("It fits in time")
    assert "itself is not in what was read" in fits


@each(
    ("text", "said", "begins"),
    [
        (STEPS, "at which iteration did it get slower?", "The steps became slower at step 200"),
        (STEPS, "is it getting slower?", "Yes: The steps became slower"),
        (STEADY, "is it getting slower?", "No, the pace is steady: 0.412 s a step in the steps"),
        (STEADY, "did the loss diverge?", "The loss falls"),
        (STEADY, "训练速度多少?", "每步 0.412 s，159067 tokens/s"),
        (STEADY.splitlines()[0] + "\n", "is it getting slower?", "Too few lines"),
    ],
)  # fmt: skip
def test_the_steps_of_a_training_answer(text: str, said: str, begins: str) -> None:
    headline = _said("log", text, said)
    assert headline.startswith(begins), headline


@each(
    ("said", "begins"),
    [
        ("which GPU is hottest?", "GPU 1: highest temperature, 71 °C"),
        ("which GPU draws the most power?", "GPU 0: highest power draw, 610.11 W"),
        ("which card is idle and what is its temperature?", "GPU 2: busy 0 % (118 of 700 W): idle and free. what is its temperature? The core temperature of GPU 2 is 44 °C."),
        ("哪张卡显存用得最多?", "GPU 1：已用显存最高"),
    ],
)  # fmt: skip
def test_the_one_by_a_degree_comes_first(said: str, begins: str) -> None:
    headline = _said("input", SMI, said)
    assert headline.startswith(begins), headline


SAR = """Linux 5.15.0-122-generic (n16) \t11/29/2026 \t_x86_64_\t(96 CPU)

02:00:01 PM kbmemfree   kbavail kbmemused  %memused kbbuffers  kbcached  kbcommit   %commit  kbactive   kbinact   kbdirty
02:10:01 PM  10000000 160000000 900000000     90.00    100000 100000000 500000000     50.00 400000000 300000000       100
"""
EDAC = """mc0: 0 Corrected Errors with no DIMM info
mc1: csrow0: 3 Uncorrected Errors
mc1: csrow0: CPU_SrcID#0_MC#1_Chan#0_DIMM#0: 0 Corrected Errors
mc1: csrow0: CPU_SrcID#0_MC#1_Chan#1_DIMM#0: 8123 Corrected Errors
"""


@each(
    ("text", "said", "begins"),
    [
        (EDAC, "which DIMM do I replace, and how many corrected errors does it have?", "CPU_SrcID#0_MC#1_Chan#1_DIMM#0 (mc1 csrow0): 8123 corrected errors. mc1 csrow0: 3 uncorrected"),
        (EDAC, "how many corrected errors are there?", "CPU_SrcID#0_MC#1_Chan#1_DIMM#0"),
        (EDAC, "哪根内存条要换?", "CPU_SrcID#0_MC#1_Chan#1_DIMM#0"),
        (SAR, "is the memory full?", "Not full: 16 % of the host's memory"),
        (SAR, "还剩多少内存?", "未满：主机内存还有 16 %"),
    ],
)  # fmt: skip
def test_memory_is_that_of_the_host_where_no_other_was_read(text: str, said: str, begins: str) -> None:
    answer = _said("input", text, said)
    assert answer.startswith(begins), answer


SAMPLES = """timestamp, index, temperature.gpu
2026/11/28 14:00:00.000, 0, 61
2026/11/28 14:00:00.000, 3, 83
2026/11/28 14:10:00.000, 0, 62
2026/11/28 14:10:00.000, 3, 71
"""


@each(
    ("said", "begins"),
    [
        (
            "what was the highest temperature of gpu 3 and when?",
            "GPU 3: highest temperature 83 °C at 2026-11-28 14:00:00",
        ),
        ("how hot did GPU 3 get?", "GPU 3: highest temperature 83 °C at 2026-11-28 14:00:00"),
        ("GPU 3 最高温度是多少?", "GPU 3：最高温度 83 °C，时间 2026-11-28 14:00:00"),
        ("how hot was GPU 0 at 14:00?", "GPU 0: temperature 61 °C at 2026-11-28 14:00:00"),
        ("how hot was GPU 0 at 09:00?", "No temperature of GPU 0 was read at that time."),
        ("highest temperature of GPU 9?", "No temperature of GPU 9 was read."),
        ("which GPU is hottest?", "GPU 3: highest temperature, 71 °C"),
    ],
)
def test_of_a_gpu_that_is_named_all_its_samples_count(said: str, begins: str) -> None:
    answer = _said("input", SAMPLES, said)
    assert answer.startswith(begins), answer


@each(
    ("text", "said", "begins"),
    [
        (FULL, "is it hardware or my code?", "Software: the job"),
        (KERNEL.split("\n", 2)[2], "was it the GPU or the code?", "Software: the program, as far as it shows"),
        (LOST, "is it my code?", "No, as far as it shows: the node or its scheduler"),
        (SLURM, "是网络的问题吗?", "目前看不是，而是软件：作业"),
        (KERNEL.replace(": 31,", ": 94,").replace("python3, Ch 00000012", "python3, Contained: SM (0x1). RST: No, D-RST: No"), "is Xid 94 hardware or my code?", "GPU memory (hardware)"),
    ],
)  # fmt: skip
def test_whose_fault_it_is(text: str, said: str, begins: str) -> None:
    headline = _said("log", text, said)
    assert headline.startswith(begins), headline


OFF = "Nov 18 02:10:10 n2 kernel: [812331.1] NVRM: Xid (PCI:0000:52:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"


@each(
    ("text", "said", "begins"),
    [
        (OFF, "is it the cable or the GPU?", "Signs of the GPU's hardware, none of cables or links"),
        (OFF, "bad power supply or bad card?", "Signs of the GPU's hardware, none of"),
        (OFF, "是线缆问题还是GPU坏了？", "有 GPU 硬件的迹象，没有线缆或链路的迹象"),
        (FLAPS, "is it the cable or the switch?", "What was read does not tell cables or links from the network"),
        (FLAPS, "是网卡还是显卡的问题", "有网络的迹象，没有 GPU 硬件的迹象"),
        (OFF, "is it the data loader or the cable?", "What was read does not tell"),
    ],
)  # fmt: skip
def test_which_of_two_it_is_is_told_by_signs_of_one_alone(text: str, said: str, begins: str) -> None:
    headline = _said("log", text, said)
    assert headline.startswith(begins), headline


ONE_BAD = "index, name, ecc.errors.uncorrected.volatile.total, temperature.gpu\n" + "".join(
    f"{n}, NVIDIA H100 80GB HBM3, {2 * (n == 1)}, 40\n" for n in range(3)
)
MISMATCH = "Nov 18 02:26:09 n2 kernel: NVRM: API mismatch: the client has the version 550.107.02, but\nNov 18 02:26:09 n2 kernel: NVRM: this kernel module has the version 550.90.07.  Please\n"
NAN = "".join(
    f"[2026-11-25 06:02:{n:02}] step={10 * n} loss={2.2 if n < 6 else 'nan'} step_time=0.83s\n" for n in range(9)
)
DBE = """Nov 20 10:11:12 n1 kernel: [90121.1] NVRM: Xid (PCI:0000:c3:00): 48, pid='<unknown>', name=<unknown>, An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at partition 6, subpartition 1.
Nov 20 10:40:32 n1 kernel: [91881.3] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.183.06  Wed Jun 26 06:46:07 UTC 2024
Nov 21 22:15:40 n1 kernel: [219989.4] NVRM: Xid (PCI:0000:c3:00): 48, pid='<unknown>', name=<unknown>, An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at partition 6, subpartition 1.
Nov 21 22:15:40 n1 kernel: [219989.5] NVRM: Xid (PCI:0000:c3:00): 64, pid='<unknown>', name=<unknown>, Row Remapper: Failed to remap row 0x0000000000511d00
"""
QUIET = f"""{OFF}Nov 18 02:36:44 n2 kernel: [    0.000000] Linux version 5.15.0-119-generic (buildd@lcy02-amd64-075) (gcc 11.4.0) #129-Ubuntu SMP
Nov 18 02:36:45 n2 kernel: [   10.2] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024
Nov 25 12:00:00 n2 kernel: [638601.0] systemd-journald[812]: Data hash table of /var/log/journal/system.journal has a fill level at 75.0, suggesting rotation.
"""
REFUSED = f"""{OFF}Nov 18 02:26:09 n2 root: nvidia-smi --gpu-reset -i 6: Unable to reset this GPU: GPU 00000000:52:00.0 has fallen off the bus
Nov 18 02:41:55 n2 kernel: [814225.0] NVRM: GPU 0000:52:00.0: RmInitAdapter failed! (0x23:0x65:1426)
"""
NFS = """Nov 26 15:00:10 n3 kernel: [300100.1] nfs: server 10.8.0.5 not responding, still trying
Nov 26 15:02:20 n3 kernel: [300230.1] INFO: task python:44120 blocked for more than 120 seconds.
Nov 26 15:09:41 n3 kernel: [300671.1] nfs: server 10.8.0.5 OK
"""


@each(
    ("text", "said", "begins"),
    [
        (DBE, "is it still there after the reset?", "It came back, 35 hours after the reload of the driver of 11-20 10:40:32"),
        (DBE, "复位之后还在吗?", "又出现了：11-20 10:40:32 重新加载驱动之后 35 小时"),
        (DBE, "did the reset help?", "No. It came back"),
        (DBE, "how long did the reset hold?", "35 hours. It came back"),
        (QUIET, "is it still there after the reboot?", "Nothing of it in the 7 days since the reboot of 11-18 02:36:44"),
        (QUIET, "重启之后好了吗?", "11-18 02:36:44 重启之后，日志中 7 天内未再出现"),
        (QUIET, "was it rebooted after the error?", "Yes: the reboot at 11-18 02:36:44"),
        (OFF, "was it rebooted after the error?", "No. Nothing in the log ends it"),
        (REFUSED, "did anyone reboot it after that?", "Tried: the reset at 11-18 02:26:09, and it was refused."),
        (NAN, "did the loss recover?", "The loss became NaN"),
        (ONE_BAD, "is it fixed now?", "There, by what was read. GPU 1"),
        (ONE_BAD, "did the reset clear the pending row remap?", "Nothing of it in what was read."),
        (REFUSED, "is it still gone after the reset attempt?", "Still there: the reset of 11-18 02:26:09 was refused; last sign of it 11-18 02:41:55"),
        (REFUSED, "复位成功了吗?", "没有。仍然存在"),
        (FLAPS, "has the link recovered?", "Up again since 11-28 04:05:49, by the last line of it; lost 3 times before"),
        (FLAPS.rsplit("Nov", 1)[0], "is it up now?", "Still down since 11-28 04:05:40"),
        (FLAPS, "以后还会出现吗?", "日志无法预知"),
        (NFS, "现在恢复了吗", "文件服务器已恢复应答"),
        (NFS, "how long did it last?", "9 min, from 11-26 15:00:10 to 11-26 15:09:41 (over)"),
        (STEADY, "is my training slow?", "No, the pace is steady"),
    ],
)  # fmt: skip
def test_what_became_of_it_is_told_by_what_came_after(text: str, said: str, begins: str) -> None:
    headline = _said("input" if text.startswith("index") else "log", text, said)
    assert headline.startswith(begins), headline


@each(
    ("text", "said", "begins"),
    [
        (SLURM, "did the driver cause it?", "No sign in what was read that it is the driver."),
        (SLURM, "是显存不够吗?", "所读内容中没有迹象表明是显存不足的问题。"),
        (STEPS, "is the data loader slow?", "What was read does not tell whether it is the data loader."),
        (STEPS, "is the gpu broken?", "No sign of a broken GPU in what was read."),
        (FULL, "显卡坏了吗?", "目前看不是，而是软件：作业"),
        (QUIET, "is my GPU memory bad?", "No sign in what was read that it is the GPU's memory, and nothing else wrong."),
        (OFF, "is it a hardware problem?", "Yes, as far as it shows: GPU hardware"),
        (MISMATCH, "how do I stop it from happening again?", "It comes back as long as its cause stays."),
        (OFF, "怎么防止再发生?", "只要原因还在，就会再次发生"),
        (NAN, "which checkpoint should I resume from?", "Not simply the newest"),
        (NAN, "从哪个step的checkpoint恢复?", "不要直接用最新的"),
        (STEADY, "which checkpoint should I resume from?", "The newest complete one"),
        (ONE_BAD, "the others are fine, do i need to reboot the whole node?", "No, rebooting the node is not called for"),
        (ONE_BAD, "are the other two fine?", "Yes, as far as it was read: nothing was found on GPU 0, GPU 2"),
        (ONE_BAD, "is anything wrong with the other two?", "Nothing was found on GPU 0, GPU 2, as far as it was read"),
        (ONE_BAD, "另外两张卡有问题吗?", "就已读内容而言，GPU 0、GPU 2 未发现问题"),
    ],
)  # fmt: skip
def test_a_second_question_is_answered_from_what_was_given(text: str, said: str, begins: str) -> None:
    headline = _said("input" if text.startswith("index") else "log", text, said)
    assert headline.startswith(begins), headline


@each(
    ("said", "wish"),
    [
        ("有没有问题?", Intent.DIAGNOSE), ("有问题吗", Intent.DIAGNOSE), ("这日志有没有什么异常", Intent.DIAGNOSE),
        ("有没有别的问题?", None), ("还有问题吗?", None), ("这卡要不要换?", Intent.VERDICT), ("怎么恢复?", Intent.NEXT),
        ("第一次和最后一次是什么时候?", Intent.EVENTS), ("how much does it cost the job?", Intent.DIAGNOSE),
        ("what does a GPU hour cost in euros?", None), ("what is the last collective that rank 5 completed?", None),
        ("are the remaining three ok?", Intent.VERDICT), ("另外两张卡有问题吗?", Intent.VERDICT), ("how much slower is it than the others?", None),
        ("what is xid 79?", None), ("can I still use it?", None), ("is it safe to use?", None), ("还能用吗?", None),
        ("is the node back up?", Intent.VERDICT), ("what should I check after the reboot?", None),
    ],
)  # fmt: skip
def test_no_other_topic_is_read_into_a_question_about_files(said: str, wish: Intent | None) -> None:
    assert meant(understand(said)) is wish


def test_what_asks_to_look_already_is_left_as_it_is() -> None:
    assert understand("what is the last collective that rank 5 completed?").intent is Intent.DIAGNOSE


@each(
    ("said", "wish"),
    [
        ("does this need a reboot or just a reset?", Intent.VERDICT),
        ("is it safe to reset only that gpu while others train?", Intent.VERDICT),
        ("rma or reset first?", Intent.VERDICT),
        ("when should I reset and when reboot?", None),
    ],
)
def test_which_remedy_it_takes_is_decided_by_what_the_files_show(said: str, wish: Intent | None) -> None:
    assert meant(understand(said)) is wish
