"""The words of a difference: what became of a line's time, and the parts of a window, in both languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Final

from knowledge.language import Text

REST: Final = "everything else"
_SEVERAL: Final = 0.25  # of a line's difference: what counts and lengths must each explain for both to be named


class Why(StrEnum):
    """What became of a line's time."""

    NEW = "new"
    GONE = "gone"
    MORE = "more calls"
    FEWER = "fewer calls"
    SLOWER = "slower calls"
    FASTER = "faster calls"
    MORE_SLOWER = "more and slower calls"
    FEWER_FASTER = "fewer and faster calls"
    MOVED = "another kernel"
    LONGER = "longer"
    SHORTER = "shorter"
    SAME = ""


WHY: Final[Mapping[Why, Text]] = {
    Why.NEW: Text("new", "新增"),
    Why.GONE: Text("gone", "消失"),
    Why.MORE: Text("more calls", "调用次数增多"),
    Why.FEWER: Text("fewer calls", "调用次数减少"),
    Why.SLOWER: Text("slower calls", "单次调用变慢"),
    Why.FASTER: Text("faster calls", "单次调用变快"),
    Why.MORE_SLOWER: Text("more and slower calls", "调用次数增多且变慢"),
    Why.FEWER_FASTER: Text("fewer and faster calls", "调用次数减少且变快"),
    Why.MOVED: Text("another kernel", "改用其他 kernel"),
    Why.LONGER: Text("longer", "变长"),
    Why.SHORTER: Text("shorter", "变短"),
    Why.SAME: Text("unchanged", "未变"),
}
PARTS: Final[Mapping[str, Text]] = {
    "compute": Text("compute", "计算"),
    "exposed communication": Text("exposed communication", "未被掩盖的通信"),
    "exposed copies": Text("exposed copies and sets", "未被掩盖的内存拷贝与置值"),
    "idle": Text("idle", "空闲"),
    "idle: data loader": Text("idle: data loader", "空闲：等待数据加载"),
    "idle: synchronisation": Text("idle: synchronisation", "空闲：同步等待"),
    "idle: host": Text("idle: other host work", "空闲：其他主机端工作"),
    "idle: launch": Text("idle: launch", "空闲：启动开销"),
    "idle: device": Text("idle: device waits for itself", "空闲：设备自身等待"),
    "idle: unknown": Text("idle: unknown", "空闲：原因未知"),
    REST: Text("everything else", "其余各项"),
}


def divided(values: Sequence[int], by: int) -> list[int]:
    """Each value by `by`, rounded so that they add up to the rounded quotient of their sum."""
    if by == 1:
        return [int(v) for v in values]
    edges = [0]
    for value in values:
        edges.append(edges[-1] + int(value))
    rounded = [(2 * e + by) // (2 * by) for e in edges]
    return [high - low for low, high in pairwise(rounded)]


def why(a_ns: float, b_ns: float, a_count: float, b_count: float) -> Why:
    """Whether counts or lengths explain b - a: each at the mean of the other's two values, so that both add up to it."""
    if a_ns == b_ns:
        return Why.SAME
    if (not a_count and (a_ns or not b_count)) or (not b_count and (b_ns or not a_count)):
        return Why.LONGER if b_ns > a_ns else Why.SHORTER  # calls that began before the window are not counted in it
    if not a_count or not b_count:
        return Why.NEW if not a_count else Why.GONE
    mean_a, mean_b = a_ns / a_count, b_ns / b_count
    gap = b_ns - a_ns
    calls = (b_count - a_count) * (mean_a + mean_b) / 2 / gap
    length = (mean_b - mean_a) * (a_count + b_count) / 2 / gap
    if min(calls, length) >= _SEVERAL:
        return Why.MORE_SLOWER if gap > 0 else Why.FEWER_FASTER
    if calls > length:
        return Why.MORE if gap > 0 else Why.FEWER
    return Why.SLOWER if gap > 0 else Why.FASTER
