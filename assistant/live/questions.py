"""What "explain this" asks about a GPU, a reading, an event or a process on a screen: sentences that the conversation knows.

Pure, in both languages. The words for a reading are those of the lexicon (`knowledge/data/lexicon/facts.yaml`); one that
has none there is named as the vocabulary names it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.live.frames import LOST, METRICS, SILENT
from assistant.live.words import stands_out
from knowledge.language import Text
from knowledge.observation import Event, Scope

if TYPE_CHECKING:
    from assistant.live.frames import Gpu, Proc
    from knowledge.observation import Observation

_SAID = {
    "utilization": Text("utilization", "利用率"),
    "sm_activity": Text("SM activity", "SM 活跃度"),
    "tensor_activity": Text("tensor activity", "tensor 利用率"),
    "memory_bandwidth": Text("memory bandwidth", "显存带宽"),
    "memory_used": Text("memory usage", "显存占用"),
    "memory_total": Text("total memory", "总显存"),
    "power": Text("power draw", "功耗"),
    "power_limit": Text("power limit", "功耗上限"),
    "temperature": Text("temperature", "温度"),
    "memory_temperature": Text("memory temperature", "显存温度"),
    "sm_clock": Text("SM clock", "SM 时钟"),
    "memory_clock": Text("memory clock", "显存时钟"),
    "pcie_tx": Text("pcie throughput", "PCIe 吞吐"),
    "nvlink_tx": Text("nvlink bandwidth", "NVLink 带宽"),
    "pcie_width": Text("pcie link width", "PCIe 链路宽度"),
    "pcie_generation": Text("pcie generation", "PCIe 代数"),
    "ecc_uncorrected": Text("uncorrected ECC errors", "不可纠正 ECC 错误"),
    "ecc_corrected": Text("corrected ECC errors", "可纠正 ECC 错误"),
    "fan": Text("fan speed", "风扇转速"),
}


def name_of(gpu: Gpu) -> str:
    """``gpu 3``, else its address."""
    return f"gpu {gpu.index}" if gpu.index is not None else gpu.pci


def _named(gpu: Gpu, lang: str) -> str:
    name = name_of(gpu)
    return name.replace("gpu", "GPU") + " " if lang == "zh" else name


def of_gpu(gpu: Gpu, lang: str = "en") -> str:
    """About the GPU as a whole."""
    name = _named(gpu, lang)
    if gpu.state == LOST:
        return Text(f"why did {name} fall off the bus?", f"{name}为什么掉卡？").in_(lang)
    if gpu.state == SILENT:
        return Text(f"{name} does not respond, why?", f"{name}没有响应，为什么？").in_(lang)
    return Text(f"is {name} ok?", f"{name}正常吗？").in_(lang)


def of_metric(gpu: Gpu, metric: str, lang: str = "en") -> str:
    """About a reading: what it is; or why it is so, where it stands out."""
    name = _named(gpu, lang)
    if gpu.state == LOST:
        return of_gpu(gpu, lang)
    if stands_out(gpu, metric):
        match metric:
            case "temperature":
                return Text(f"why is {name} too hot?", f"{name}为什么过热？").in_(lang)
            case "ecc_uncorrected":
                return Text(f"{name} has uncorrected ECC errors, can I keep using it?",
                            f"{name}有不可纠正 ECC 错误，还能用吗？").in_(lang)  # fmt: skip
    if metric == "sm_clock" and gpu.reasons:
        return of_reasons(gpu, lang)
    said = _SAID.get(metric) or Text(METRICS[metric].fact)
    return Text(f"what is the {said.en} of {name}?", f"{name}的{said.in_('zh')}是多少？").in_(lang)


def of_instance(gpu: Gpu, column: str = "", lang: str = "en") -> str:
    """About the MIG instances of a GPU: their memory, their UUIDs, else what they are."""
    name = _named(gpu, lang)
    fact = {"memory_used": "mig.memory.used", "name": "mig.uuid"}.get(column, "mig.profile")
    return Text(f"show {fact} of {name}", f"显示 {name}的 {fact}").in_(lang)


def of_reasons(gpu: Gpu, lang: str = "en") -> str:
    """About what holds its clocks down."""
    name = _named(gpu, lang)
    if gpu.reasons:
        return Text(f"why is {name} throttling?", f"{name}为什么降频？").in_(lang)
    return Text(f"show clock event reasons of {name}", f"{name}的降频原因是什么？").in_(lang)


def of_event(line: Observation, lang: str = "en") -> str:
    """About something that happened: an XID asks whether that GPU can be used, anything else what it is."""
    gpu = line.subject.up(Scope.GPU)
    if (
        isinstance(line.value, Event)
        and line.value.code is not None
        and line.fact.rpartition(".")[2] in ("xid", "sxid")
    ):
        kind = line.fact.rpartition(".")[2]
        where = Text(f" on gpu {gpu.id}", f"GPU {gpu.id} 的 ") if gpu is not None else Text("")
        return Text(f"what does {kind} {line.value.code}{where.en} mean?",
                    f"{where.in_('zh')}{kind} {line.value.code} 是什么意思？").in_(lang)  # fmt: skip
    return line.excerpt or Text(f"show {line.fact}", f"显示 {line.fact}").in_(lang)


def of_process(process: Proc, column: str = "", lang: str = "en") -> str:
    """About a process: its use of memory, or what it does."""
    pid = process.pid
    if column == "memory":
        return Text(f"how much GPU memory does pid {pid} use?", f"进程 {pid} 用了多少显存？").in_(lang)
    if column in ("pod", "job", "rank") and getattr(process, column):
        return Text(f"which {column} does pid {pid} belong to?", f"进程 {pid} 属于哪个 {column}？").in_(lang)
    return Text(f"why is pid {pid} slow?", f"进程 {pid} 为什么慢？").in_(lang)


def of_trouble(lang: str = "en") -> str:
    """About a driver that does not answer, or that there is none."""
    return Text("why does the driver not respond?", "驱动为什么没有响应？").in_(lang)
