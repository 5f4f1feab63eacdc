"""The words of ``gpudiag profile``, in both languages."""

from __future__ import annotations

from knowledge.language import Text

_WORDS: dict[str, Text] = {
    # sections
    "found": Text("Found", "发现"),
    "elsewhere": Text("Also found on this machine (gpudiag check tells more)", "本机另有发现（详见 gpudiag check）"),
    "did": Text("What each process did", "各进程的活动"),
    "counted": Text("Iterations as they were counted", "迭代计数"),
    "kicker": Text("Capture of a running job", "运行中作业的采集"),
    "where": Text("Where the time went", "时间去向"),
    "stands": Text("Where each one stands", "各进程所处位置"),
    "gpus": Text("GPUs over the window", "窗口内的 GPU"),
    "iterations": Text("Iterations", "迭代"),
    "captured": Text("What was captured", "采集内容"),
    "cost": Text("At what cost", "代价"),
    "left": Text("What was left behind", "残留"),
    "notes": Text("Notes", "备注"),
    "next": Text("Next", "下一步"),
    "costs": Text("What it costs", "所需代价"),
    "refused": Text("What is refused", "不予采集"),
    "flame": Text("Call stacks over the window", "窗口内的调用栈"),
    # columns
    "part": Text("part", "部分"),
    "way": Text("way", "途径"),
    "outcome": Text("outcome", "结果"),
    "target": Text("target", "目标"),
    "time": Text("time", "时间"),
    "size": Text("size", "大小"),
    "verdict": Text("verdict", "结论"),
    "targets": Text("from", "来源"),
    "id": Text("id", "编号"),
    "gpu": Text("GPU", "GPU"),
    "series": Text("reading", "读数"),
    "mean": Text("mean", "平均"),
    "paid": Text("cost", "代价"),
    "function": Text("function", "函数"),
    "share": Text("share", "占比"),
    "kind": Text("waits for", "等待"),
    # outcomes
    "ok": Text("captured", "已采集"),
    "partial": Text("in part", "部分"),
    "refused_": Text("refused", "拒绝"),
    "declined": Text("not agreed to", "未同意"),
    "failed": Text("failed", "失败"),
    "timeout": Text("no answer in time", "超时"),
    # kinds of a hang
    "collective": Text("a collective", "集合通信"),
    "data": Text("data", "数据"),
    "lock": Text("a lock", "锁"),
    "io": Text("a disk or a network", "磁盘或网络"),
    "device": Text("the GPU", "GPU"),
    "sleep": Text("nothing: it sleeps", "休眠"),
    "python": Text("its own Python code", "自身 Python 代码"),
    "unknown": Text("not known", "未知"),
}  # fmt: skip

# Fact of what the driving thread did -> word, tone; in the order in which equal shares stand.
ACTIVITIES: dict[str, tuple[Text, str]] = {
    "stack.operator.share": (Text("operators (forward)", "算子（前向）"), "green"),
    "stack.backward.share": (Text("backward", "反向"), "green"),
    "stack.optimizer.share": (Text("optimizer", "优化器"), "green"),
    "stack.data_wait.share": (Text("waiting for the data loader", "等待数据加载器"), "red"),
    "stack.data_work.share": (Text("loading data itself", "自行加载数据"), "red"),
    "stack.collective.share": (Text("collectives", "集合通信"), "yellow"),
    "stack.sync.share": (Text("synchronising (.item(), .cpu())", "同步（.item()、.cpu()）"), "yellow"),
    "stack.python.share": (Text("Python", "Python"), "blue"),
    "stack.checkpoint.share": (Text("checkpoint", "保存检查点"), "yellow"),
    "stack.compile.share": (Text("compiling", "编译"), "yellow"),
    "stack.import.share": (Text("imports", "导入"), "blue"),
    "stack.logging.share": (Text("logging", "日志"), "yellow"),
    "stack.io.share": (Text("reading and writing", "读写"), "red"),
    "stack.gc.share": (Text("garbage collection", "垃圾回收"), "yellow"),
    "stack.gil_wait.share": (Text("waiting for the interpreter lock", "等待解释器锁"), "red"),
    "stack.sleep.share": (Text("sleeping, or waiting for a lock", "休眠或等待锁"), "dim"),
}  # fmt: skip

# Series of a GPU -> word, unit; in the order in which they are drawn.
SERIES: dict[str, tuple[Text, str]] = {
    "utilization": (Text("utilisation", "利用率"), "%"),
    "sm_activity": (Text("SM activity", "SM 活动"), "%"),
    "tensor_activity": (Text("tensor cores", "张量核心"), "%"),
    "memory_bandwidth": (Text("memory bandwidth", "显存带宽"), "%"),
    "power_mw": (Text("power", "功率"), "W"),
    "sm_clock": (Text("SM clock", "SM 时钟"), "MHz"),
    "temperature": (Text("temperature", "温度"), "°C"),
    "pcie_rx_kbs": (Text("PCIe in", "PCIe 接收"), "MB/s"),
}  # fmt: skip


def word(key: str, lang: str) -> str:
    """The word for `key`."""
    return _WORDS[key].in_(lang)


def outcome(name: str, lang: str) -> str:
    """What became of a part."""
    return word("refused_" if name == "refused" else name, lang) if name in _OUTCOMES else name


_OUTCOMES = frozenset({"ok", "partial", "refused", "declined", "failed", "timeout"})
