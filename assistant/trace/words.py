"""The words of the pages about traces, in both languages."""

from __future__ import annotations

from pathlib import Path

from assistant.render.trace_units import duration
from knowledge.language import Text
from knowledge.text import excerpt
from probes.trace.model import Window

_WORDS: dict[str, Text] = {
    "compute": Text("computing", "计算"),
    "comm": Text("communication", "通信"),
    "exposed_comm": Text("exposed communication", "未被掩盖的通信"),
    "exposed_mem": Text("exposed copies and sets", "未被掩盖的拷贝与置零"),
    "mem": Text("copies and sets", "拷贝与置零"),
    "idle": Text("idle", "空闲"),
    "data_loader": Text("waiting for data", "等待数据"),
    "sync": Text("host synchronising", "主机同步"),
    "host": Text("host busy elsewhere", "主机忙于其他工作"),
    "launch": Text("launching", "启动 kernel"),
    "kernel": Text("waiting on the device", "设备端等待"),
    "unknown": Text("cause not recorded", "原因未记录"),
    "where": Text("Where the time went", "时间去向"),
    "top_kernels": Text("Top kernels", "耗时最多的 kernel"),
    "notes": Text("Notes", "备注"),
    "next": Text("Next", "下一步"),
    "total": Text("total", "总计"),
    "count": Text("count", "次数"),
    "mean": Text("mean", "平均"),
    "min": Text("min", "最小"),
    "max": Text("max", "最大"),
    "stddev": Text("std dev", "标准差"),
    "share": Text("share", "占比"),
    "name": Text("name", "名称"),
    "rank": Text("rank", "rank"),
    "file": Text("file", "文件"),
    "time": Text("time", "时间"),
    "span": Text("span", "跨度"),
    "overlap": Text("overlap", "重叠"),
    "kernels": Text("kernels", "kernel 数"),
    "not_read": Text("Could not be read", "无法读取"),
    "length": Text("length", "时长"),
    "same": Text("SAME", "相同"),
    "slower": Text("SLOWER", "变慢"),
    "faster": Text("FASTER", "变快"),
    "short_compute": Text("computing", "计算"),
    "short_exposed_comm": Text("exp. comm", "未掩盖通信"),
    "short_mem": Text("copies", "拷贝"),
    "short_idle": Text("idle", "空闲"),
    "short_data_loader": Text("data", "数据"),
    "nothing": Text("no GPU activity", "没有 GPU 活动"),
}


def word(key: str, lang: str) -> str:
    """The word for `key`."""
    return _WORDS[key].in_(lang)


def short(name: str) -> str:
    """A kernel's or operator's name as people say it: without templates' arguments, cleaned."""
    from probes.trace.names import naming

    return excerpt(naming.short(name), 300)


def rank_name(rank: int | None, file: str) -> str:
    """``rank 3``; the file's stem where the rank is not known."""
    if rank is not None:
        return f"rank {rank}"
    name = "stdin" if file == "-" else Path(file).name
    return excerpt(name.removesuffix(".gz").removesuffix(".json") or name, 80)


def window_text(window: Window, lang: str) -> str:
    """``whole trace, 928 ms``; ``6 iterations (ProfilerStep), 812 ms``."""
    length = duration(window.end_ns - window.start_ns)
    if window.kind != "iterations":
        return Text(f"whole trace, {length} from the first GPU start to the last GPU end",
                    f"整个轨迹，从首个 GPU 活动开始到最后一个结束，共 {length}").in_(lang)  # fmt: skip
    n, what = window.iterations or 0, excerpt(window.marker, 60)
    return Text(f"{n} whole iteration{'s' if n != 1 else ''} ({what}), {length}",
                f"{n} 个完整迭代（{what}），共 {length}").in_(lang)  # fmt: skip
