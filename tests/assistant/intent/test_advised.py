"""Questions that are about no machine: which advice they get, and which sentences get none."""

from __future__ import annotations

import re

from assistant.dialogue import Turn, explain
from assistant.intent import models
from assistant.intent.grammar import page_of, words_of
from assistant.intent.parse import understand
from assistant.intent.query import Intent
from knowledge.advice import advice
from knowledge.compiled import shard
from rules.loader import load
from tests.cases import each


@each(
    ("said", "page"),
    [
        ("infiniband or roce for the new cluster?", "roce-or-infiniband"),
        ("新集群用 RoCE 还是 IB", "roce-or-infiniband"),
        ("is MPS better than time slicing here", "mig-mps-or-time-slicing"),
        ("can four grad students use the same A100", "share-one-gpu"),
        ("同一张卡上放两个推理服务行不行", "share-one-gpu"),
        ("may I reset gpu 5 while the others are training", "reset-beside-jobs"),
        ("别人在跑任务，能复位 2 号卡吗", "reset-beside-jobs"),
        ("NCCL hangs, should I set NCCL_P2P_DISABLE=1", "nccl-p2p-disable"),
        ("NCCL_IB_DISABLE=1 要不要加", "nccl-ib-disable"),
        ("how can saving the checkpoint take less time", "checkpoint-saving"),
        ("fabricmanager 起不来，版本对不上", "fabric-manager-version"),
        ("k8s 里 pod 申请了 1 张 GPU 但看到 8 张卡，怎么回事", "other-gpus-than-requested"),
        ("I asked slurm for --gres=gpu:4 but torch sees only 1 of 8", "other-gpus-than-requested"),
        ("pod requests 2 gpus but sees 8 gpus, why?", "other-gpus-than-requested"),
        ("kubelet: Allocate failed due to no healthy devices present", "no-healthy-devices"),
        ("the job hangs only with more than 24 nodes", "hangs-only-with-more-nodes"),
        ("显存缓存满了一直 preempt", "vllm-preemption"),
        ("loss went nan at step 900, hw or sw?", "nan-hardware-or-code"),
        ("更新完驱动，nvidia-smi 只剩 7 张卡了", "gpu-missing-after-driver-upgrade"),
        ("服务器重启完识别不到显卡", "gpus-gone-after-reboot"),
        ("返修一般几天能回来", "rma-duration"),
        ("换件前用不用先下线", "drain-before-repair"),
        ("报 ECC 告警还能跑吗", "ecc-error-still-usable"),
        ("NVLink 异常怎么处理", "nvlink-errors-and-return"),
        ("A800 功率老是拉不满", "power-stays-low"),
        ("k8s 集群里看不到 gpu", "node-offers-no-gpu"),
        ("宿主机正常，容器里用不了", "container-without-cuda"),
        ("进程杀不死，kill -9 没用", "process-not-killed"),
        ("单机能跑，双机就卡住", "nccl-fails-over-nodes"),
        ("断电来电后要做哪些检查", "after-power-outage"),
        ("复位能解决 ECC 问题吗", "what-a-reboot-mends"),
        ("返修回来要跑哪些测试", "after-repair"),
        ("怎么避免坏节点再被用到", "keep-bad-gpu-out"),
        ("新买的机器怎么验收", "burn-in"),
        ("NVLink 实时带宽怎么看", "nvlink-in-use"),
        ("NVML version mismatch 了", "smi-version-mismatch"),
        ("虚机里认不到直通的显卡", "gpu-not-seen-in-vm"),
        ("leaf 交换机割接会影响训练吗", "switch-upgrade-beside-jobs"),
        ("设备插件一直重启", "device-plugin-fails"),
        ("国产卡和 N 卡能一起训吗", "makers-in-one-job"),
        ("卡掉线了，不重启能拉回来吗", "lost-gpu-without-reboot"),
        ("ssh 一直超时，ping 能通", "pings-without-ssh"),
        ("怎么区分是驱动还是硬件的问题", "hardware-or-driver"),
        ("有卡报 ECC 错误了，需要先下线吗", "ecc-error-still-usable"),
        ("报修需要准备什么材料", "rma-ticket"),
        ("sglang decode 40 tok/s on 8xH100 for llama 70b bs=1 is that normal", "expected-tokens"),
    ],
)
def test_advice_is_found(said: str, page: str) -> None:
    query = understand(said)
    assert (query.intent, query.page) == (Intent.EXPLAIN, f"advice {page}")
    assert not query.unread


@each(
    "said",
    [
        "xid 79 on gpu 3 while others run, can I reset it?",
        "nvidia-smi 显示 ERR!，任务还在跑，先不动可以吗",
        "slurm 申请 4 张卡，训练报 Xid 79，看到 3 张卡",
        "I requested 8 gpus and the job shows gpu 3 at 95 C, ok?",
        "申请 8 张卡训练，看到 loss 变 nan",
        "slurm node has only 7 of 8 gpus",
        "nvidia-smi shows ERR! for power but the jobs are running, can I leave it?",
        "why is my job slow with two jobs on one GPU",
        "how many processes are on gpu 3",
        "昨晚任务停了，现在少了一张卡，我该咋办",
        "nccl timeout on rank 3, what now",
        "which alerts fired on gpu-17?",
        "GPU 2 报 ECC 告警，还能跑吗",
        "GPU 3 温度很高 95 度怎么办",
        "节点没有空闲 GPU",
        "which alerts fired on gpu-17 for ib",
        "corrected ecc errors 1200 per day on gpu 2, too many?",
        "quota exceeded: pod pending in namespace team-a",
        "spot instance got killed, job lost 3 hours",
        "new node fails dcgmi diag -r 3",
        "pods of my job half pending, half running holding gpus",
        "gpu 5 preempted and job failed with xid 94",
        "corrected ecc errors rising on gpu 2 since yesterday",
        "node7 的 PFC 计数暴涨，训练变慢",
        "GPU 3 可纠正错误一直涨",
        "gpu 坏了 需要返修吗 xid 48 复位后还有",
        "GPU 3 温度 95 度，可以继续训练吗",
        "idle H100 draws 120W, nothing running. normal?",
    ],
)
def test_a_report_of_trouble_gets_none(said: str) -> None:
    assert not understand(said).page


def test_a_slow_checkpoint_is_looked_at_where_there_is_a_machine() -> None:
    query = understand("saving the checkpoint takes 9 minutes")
    assert query.intent in (Intent.DIAGNOSE, Intent.VERDICT)
    assert query.page == "advice checkpoint-saving"


@each(
    ("said", "ids"),
    [
        ("A100 or H100 for finetuning?", ("a100-sxm-80", "h100-sxm")),
        ("H100 SXM or PCIe?", ("h100-pcie", "h100-sxm")),
        ("A100 40GB or 80GB?", ("a100-sxm-40", "a100-sxm-80")),
        ("4090 和 H20 哪个合适", ("h20", "rtx-4090")),
        ("A100 reaches 230 GB/s or H100 350 GB/s", ()),
        ("gpu 3 is an A100", ()),
    ],
)
def test_models_that_are_compared(said: str, ids: tuple[str, ...]) -> None:
    assert tuple(sorted(m.id for m in models.compared(said))) == ids


@each(
    ("said", "figure", "first", "headline"),
    [
        ("H800 的 NVLink 带宽多少", models.Figure.NVLINK, "h800-sxm", "H800 的 NVLink 带宽：400 GB/s（8 条，双向合计）。"),
        ("A800 显存带宽", models.Figure.BANDWIDTH, "a800-sxm-80", "显存带宽：A800 SXM4 80 GB 为 2039 GB/s；A800 PCIe 80 GB 为 1935 GB/s。"),
        ("L20 的 NVLink 带宽多少", models.Figure.NVLINK, "l20", "L20 没有 NVLink。"),
        ("H20 的 fp8 算力是多少", models.Figure.PEAK, "h20", "H20 的 FP8 峰值算力（稠密）：296 TFLOP/s。"),
        ("how much memory does an H200 have?", models.Figure.MEMORY, "h200-sxm", "H200, memory: 141 GB."),
    ],
)  # fmt: skip
def test_a_figure_of_a_data_sheet(said: str, figure: models.Figure, first: str, headline: str) -> None:
    query = understand(said)
    of = models.specified(said)
    assert of is not None
    assert (query.intent, of.figure, of.of[0].id) == (Intent.EXPLAIN, figure, first)
    reply = explain.answer(Turn(query, query.lang, load()))
    assert reply.headline == headline


@each(
    "said",
    ["H100 的 nvlink 断了怎么办", "H100 显存占用多少正常", "A100 显存带宽只有 800 GB/s", "8 张 H20 显存够 671B 吗"],
)
def test_no_figure_of_a_data_sheet(said: str) -> None:
    assert models.specified(said) is None


def test_each_variable_is_asked_for_by_its_name() -> None:
    for a in advice().values():
        for name in a.variables:
            assert understand(f"should I set {name}?").page == f"advice {a.id}"


def test_each_phrase_of_an_entry_asks_for_it() -> None:
    """Of each phrase the sentence of its first words; what stands in a choice is meant alike."""
    for a in shard("advice"):
        for text in (t for lang in ("en", "zh") for t in a.get("said", {}).get(lang, ())):
            assert page_of(words_of(_sentence(text))) == f"advice {a['id']}", text


def _sentence(phrase: str) -> str:
    first = re.sub(r"\(([^|()]*)[^()]*\)", r"\1", re.sub(r"\[[^\]]*\]", " ", phrase))
    return first.replace("..", " ").strip() + " ?"
