"""Our own notes within answers, in Chinese: why a value is missing, what a collector counted.

Probes note such things once, in English, beside the raw text of tools and kernels. What is ours is told in the
language of the answer; what is not known here stays as it is: it is a raw line, a code or a name.
"""

from __future__ import annotations

import re
from functools import cache

# A note, or the end of one behind "CALL: "; \1, \2 are names, numbers and calls.
_ZH: tuple[tuple[str, str], ...] = (
    (r"no answer (?:in|within) ([\d.]+) s", r"\1 秒内无应答"),
    (r"(\S.{0,200}?) did not answer within ([\d.?]+) s", r"\1 在 \2 秒内无应答"),
    (r"(\S.{0,200}?) did not come back(?: in time)?", r"\1 未返回"),
    (r"no end after ([\d.e+]+) s", r"\1 秒后仍未结束"),
    (r"every read returns all ones: it has left the bus", "设备只返回全 1：已从总线上掉线"),
    (r"(\w+): all bits set, the device does not answer", r"\1：所有位均为 1，设备无应答"),
    (r"throttled in (\d+) of (\d+) periods", r"\2 个周期中有 \1 个被限流"),
    (r"throttled in (\d+) of (\d+) periods since the group was made", r"自该组建立以来 \2 个周期中有 \1 个被限流"),
    (r"(\d+) of (\d+) (?:links are )?active", r"\2 条链路中 \1 条激活"),
    (r"(\d+) of (\d+) (?:links are )?inactive", r"\2 条链路中 \1 条未激活"),
    (r"(\d+) of (\d+) active, down: (.{1,200})", r"\2 个中有 \1 个激活，断开：\3"),
    (r"(\d+) of (\d+) active, (\d+) at (\S{1,20}) Gb/s", r"\2 个中有 \1 个激活，其中 \3 个为 \4 Gb/s"),
    (r"(\d+) of (\d+) up", r"\2 个中有 \1 个已启用"),
    (r"not (?:active|up): (.{1,300})", r"未激活：\1"),
    (r"slower: (.{1,300})", r"速率较低：\1"),
    (r"(\d+) of (\d+) devices gave a handle", r"\2 个设备中有 \1 个给出句柄"),
    # traces
    (
        r"the trace of one rank was given: compare the traces of several",
        "只给出了一个 rank 的轨迹：请比较多个 rank 的轨迹",
    ),
    (r"no collective was recorded that two of the ranks took part in", "没有记录到两个 rank 共同参与的集合通信"),
    (r"fewer than three whole iterations", "完整迭代不足三个"),
    (r"the trace holds no mark of iterations", "轨迹中没有迭代标记"),
    (r"the report holds no such metric: record with ncu --set full", "报告没有该指标：请用 ncu --set full 采集"),
    # denials of the policy for chats (assistant.rights.words)
    (r"no grant of yours covers (\S{1,80})", r"您的授权均不包含 \1"),
    (r"you may have (\S{1,80}) run, but not on (\S{1,80})", r"您可以运行 \1，但不可在 \2 上"),
    (r"(\S{1,80}) on (\S{1,80}) costs more .{1,80}", r"在 \2 上运行 \1 的开销超出您的上限"),
    (
        r"(\S{1,80}) on (\S{1,80}) is \w{1,20}, and your rights there end at \w{1,20}",
        r"在 \2 上运行 \1 的风险超出您的上限",
    ),
    (
        r"(\S{1,80}) on (\S{1,80}) needs privileges, and no grant .{1,40}",
        r"在 \2 上运行 \1 需要特权，而您的授权均不包含特权",
    ),
    (r"no grant names a role of yours", "没有任何授权包含您的角色"),
    (
        r"A second person has to agree: this is \w{1,20}. The grant (\S{1,80}) lets you ask for it",
        r"需要第二人同意；授权 \1 允许您提出请求",
    ),
    (r"(\d+) live readings answered", r"\1 项实时读数有应答"),
    (r"parent (\d+) \((.{1,40})\)", r"父进程 \1（\2）"),
    (r"thread (\d+) in state (\w), seen (\d+) times", r"线程 \1 处于 \2 状态，查看 \3 次均如此"),
    (r"(\S{1,20} \w{1,4}), (\S{1,20} \w{1,4}) used", r"\1，已用 \2"),
    (r"SRAM \+ DRAM uncorrected, volatile", "SRAM + DRAM，未纠正，自驱动加载以来"),
    (r"SRAM \+ DRAM uncorrected, aggregate", "SRAM + DRAM，未纠正，累计"),
    (r"SRAM \+ DRAM corrected, volatile", "SRAM + DRAM，已纠正，自驱动加载以来"),
    (r"SRAM \+ DRAM corrected, aggregate", "SRAM + DRAM，已纠正，累计"),
    (r"sum of (.{1,200})", r"\1 之和"),
    (r"computed from (.{1,200})", r"由 \1 计算得出"),
    (r"(.{1,200}) is not installed", r"未安装 \1"),
    (r"nvidia-smi is not installed or not in the path", "未安装 nvidia-smi，或不在 PATH 中"),
    (r"(.{1,200}?) is not understood", r"无法理解 \1"),
    (r"(.{1,200}?) is no number", r"\1 不是数字"),
    (r"(.{1,200}?) is empty", r"\1 为空"),
    (r"(.{1,200}?) was not recorded", r"未记录 \1"),
    (r"(.{1,200}?) is not in the snapshot", r"\1 不在快照中"),
    (r"(.{1,200}?) was read only once", r"\1 只读取了一次"),
    (r"(.{1,120}?) of this kernel does not tell (.{1,80})", r"此内核的 \1 不提供 \2"),
    (r"(.{1,120}?) does not tell (.{1,80})", r"\1 不提供 \2"),
    (r"the document is cut or is no JSON", "文档不完整或不是 JSON"),
    (r"the document ends early, or its schema is not (\S+)", r"文档提前结束，或其 schema 不是 \1"),
    (r"the time for probes was spent before it was this one's turn", "轮到该探针之前时间已用完"),
    (r"the time was spent", "时间已用完"),
    (r"there was no second reading in time", "未能及时完成第二次读取"),
    (r"there is no second reading", "没有第二次读取"),
    (r"the second reading did not come back", "第二次读取未返回"),
    (r"only part of the time that is asked about was looked at", "只查看了所问时间的一部分"),
    (r"no other such line in this log", "该日志中没有其他此类行"),
    (r"the lines do not tell when it happened", "这些行没有说明发生时间"),
    (r"date not known", "日期未知"),
    (r"the line does not tell (.{1,80})", r"该行没有说明 \1"),
    (r"only (\d+) peers with a value, (\d+) needed", r"只有 \1 个同伴有数值，需要 \2 个"),
    (r"the peers' median is not above zero", "同伴的中位数不大于零"),
    (r"the probe said nothing", "探针没有给出任何内容"),
    (r"the probe broke: (.{1,300})", r"探针出错：\1"),
    (r"needs (CAP_\w+) or the same user: run sudo gpudiag check", r"需要 \1 或同一用户：请运行 sudo gpudiag check"),
    (r"needs root: run sudo gpudiag check", "需要 root：请运行 sudo gpudiag check"),
    (r"(gpudiag|gpudiag check) on the node itself", r"\1（在节点本身上）"),
    (r"no process of that name runs", "没有该名称的进程在运行"),
    (r"(\d+) s old", r"已过 \1 秒"),
    (r"the NVIDIA driver is not loaded", "未加载 NVIDIA 驱动"),
    (r"the environment was not read", "未读取环境变量"),
    (r"the link is down", "链路断开"),
    (r"the interface has no link", "接口没有链路"),
    (r"there is no such file", "没有该文件"),
    (r"not supported", "不支持"),
    (r"the driver does not report it", "驱动不报告该值"),
    (r"not found", "未找到"),
    (r"not printed", "未打印"),
    (r"printed without a value", "打印时没有数值"),
    (r"not understood as (?:a |an )?(?:number in )?(.{1,100}?): (.{1,200})", r"无法理解为 \1：\2"),
    (r"not understood: (.{1,200})", r"无法理解：\1"),
    (r"not understood", "无法理解"),
    (r"not read", "未读取"),
    (r"not a number", "不是数字"),
)


# What an input is called: a format's title, for people. Those that only gpudiag makes are asked for by its command.
_SOURCES = {
    "CUDA errors in application logs": "the application's log",
    "out of device memory in application logs": "the application's log",
    "Python tracebacks and how jobs ended": "the job's log to its end",
    "NCCL and torch.distributed logs": "the NCCL and torch.distributed logs",
    "Fabric Manager log": "the Fabric Manager's log",
    "kernel log": "the kernel log",
    "system log or journal": "the system log or journal",
    "kernel log, system log or journal": "the kernel log, system log or journal",
    "dcgm-exporter scrape": "a scrape of dcgm-exporter",
    "nvidia_gpu_exporter scrape": "a scrape of nvidia_gpu_exporter",
    "AMD device-metrics-exporter scrape": "a scrape of AMD's device-metrics-exporter",
    "answer of Prometheus (query or query_range)": "an answer of Prometheus (query or query_range)",
    "metrics page of vLLM": "the metrics page of the serving engine",
    "metrics page of vLLM, SGLang, Triton or TGI": "the metrics page of the serving engine",
    "logs of vLLM, SGLang, TensorRT-LLM and TGI servers": "the log of the inference server",
    "result of an active test (gpudiag test)": "the result of an active test (gpudiag test)",
    "capture of a running job (gpudiag profile)": "a capture of the running job (gpudiag profile)",
    "torch.profiler trace": "a torch.profiler trace",
    "torch memory snapshot": "a memory snapshot of PyTorch",
    "ncu --csv report": "an ncu --csv report",
    "version lines of GPU node software": "the versions of the node's GPU software",
    "environment and build of PyTorch (collect_env)": "PyTorch's report of its environment (collect_env)",
    "Redfish resources": "the Redfish resources of the management controller",
    "nccl-tests": "a run of nccl-tests",
    "perftest (ib_write_bw ...)": "a run of perftest (ib_write_bw ...)",
    "nvbandwidth": "a run of nvbandwidth",
    "gpu-burn": "a run of gpu-burn",
    "GPCNeT": "a run of GPCNeT",
}
_HERE = ("gpudiag check on the node", "在节点上运行 gpudiag check")
_SOURCES_ZH = {
    "CUDA errors in application logs": "应用日志中的 CUDA 错误",
    "out of device memory in application logs": "应用日志中的显存不足",
    "dcgm-exporter scrape": "dcgm-exporter 的抓取结果",
    "result of an active test (gpudiag test)": "主动测试的结果（gpudiag test）",
    "nvidia_gpu_exporter scrape": "nvidia_gpu_exporter 的抓取结果",
    "AMD device-metrics-exporter scrape": "AMD device-metrics-exporter 的抓取结果",
    "answer of Prometheus (query or query_range)": "Prometheus 的查询结果（query 或 query_range）",
    "dcgmi nvlink -e or -s": "dcgmi nvlink -e 或 -s",
    "Fabric Manager log": "Fabric Manager 日志",
    "kernel log, system log or journal": "内核日志、系统日志或 journal",
    "NCCL and torch.distributed logs": "NCCL 与 torch.distributed 日志",
    "nvidia-smi summary table or GPU list": "nvidia-smi 概要表或 GPU 列表",
    "nvidia-smi --query CSV, dmon or pmon": "nvidia-smi --query CSV、dmon 或 pmon",
    "nvidia-smi -q text": "nvidia-smi -q 文本",
    "nvidia-bug-report.log and other files of several outputs": "nvidia-bug-report.log 等汇集多个输出的文件",
    "perftest (ib_write_bw ...)": "perftest（ib_write_bw 等）",
    "Python tracebacks and how jobs ended": "Python 错误栈与作业的结束方式",
    "version lines of GPU node software": "GPU 节点软件的版本信息",
    "capture of a running job (gpudiag profile)": "运行中作业的采集（gpudiag profile）",
    "torch.profiler trace": "torch.profiler 轨迹",
    "torch memory snapshot": "PyTorch 显存快照",
    "kernel log": "内核日志",
    "system log or journal": "系统日志或 journal",
    "metrics page of vLLM": "推理引擎的 metrics 页面",
    "metrics page of vLLM, SGLang, Triton or TGI": "推理引擎的 metrics 页面",
    "logs of vLLM, SGLang, TensorRT-LLM and TGI servers": "推理服务的日志",
    "environment and build of PyTorch (collect_env)": "PyTorch 环境报告（collect_env）",
    "Redfish resources": "管理控制器的 Redfish 资源",
    "ncu --csv report": "ncu --csv 报告",
    "crictl ps or images (JSON)": "crictl ps 或 images（JSON）",
    "dmon or pmon": "dmon 或 pmon",
    "Triton or TGI": "Triton 或 TGI",
    "nccl-tests": "nccl-tests 的结果",
    "nvbandwidth": "nvbandwidth 的结果",
    "gpu-burn": "gpu-burn 的结果",
    "GPCNeT": "GPCNeT 的结果",
}


def source_name(title: str, lang: str) -> str:
    """A format's title as a thing to get."""
    known = _SOURCES_ZH if lang == "zh" else _SOURCES
    if title not in known and "snapshot" in title:
        return _HERE[lang == "zh"]
    return known.get(title, title)


# What gpudiag itself reads, where a privilege is lacking to read more of it.
_PARTS_ZH = {
    "NVML snapshot": "NVML", "PCI snapshot": "PCI", "RDMA snapshot": "RDMA",
    "snapshot of processes (gpudiag)": "进程", "snapshot of /proc and /sys (gpudiag)": "/proc 与 /sys",
    "gpudiag services snapshot": "服务", "gpudiag filesystems snapshot": "文件系统",
}  # fmt: skip
_PARTS = {
    "NVML snapshot": "NVML", "PCI snapshot": "PCI", "RDMA snapshot": "RDMA",
    "snapshot of processes (gpudiag)": "processes", "snapshot of /proc and /sys (gpudiag)": "/proc and /sys",
    "gpudiag services snapshot": "services", "gpudiag filesystems snapshot": "file systems",
}  # fmt: skip


def part_name(title: str, lang: str) -> str:
    """A format's title as a part of the machine that a command would show."""
    return (_PARTS_ZH if lang == "zh" else _PARTS).get(title) or source_name(title, lang)


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern), said) for pattern, said in _ZH)


def our_words(note: str, lang: str) -> str:
    """`note` with what we wrote ourselves in `lang`; a call, a file or an error code ahead of it stays."""
    if lang != "zh" or len(note) > 600:
        return note
    parts = note.split("; ")
    told = [_one(part) for part in parts]
    return note if told == parts else "；".join(told)


def _one(note: str) -> str:
    if said := _known(note):
        return said
    head, mark, rest = note.partition(": ")
    if mark and (said := _known(rest)):
        return f"{head}：{said}"
    return note


def _known(note: str) -> str:
    for pattern, said in _patterns():
        if found := pattern.fullmatch(note):
            return found.expand(said)
    return ""
