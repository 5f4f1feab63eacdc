"""What a reader of the roofline must know: what was assumed, what is missing, what cannot be true."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Final

from knowledge.gpus import all_specs
from knowledge.language import Text
from knowledge.text import clean
from probes.trace.columns import NO_TEXT, Group
from probes.trace.model import Work
from probes.trace.reading.reader import Trace
from probes.trace.work.calls import Doubt
from probes.trace.work.chips import Chip
from probes.trace.work.owners import Owned, format_of_kernel

_WORTH: Final = 0.1  # of kernel time: less is no news
_FAR: Final = 0.2  # of the roof: a product that fills its GPU reaches more than half of it


def notes(
    trace: Trace, found: Owned, work: list[Work], used: Chip, total: int, impossible: Callable[[Work, Chip], bool]
) -> list[Text]:
    """All that apply, the most important first."""
    said = [*_gpu(trace, used), *_shapes(trace, found, total)]
    if any(impossible(w, used) for w in work):
        one = next(w for w in work if impossible(w, used))
        said.append(Text(
            f"{one.op} ({one.shapes}) would run at {one.tflops:.0f} TFLOP/s, above the peak of the GPU: recorded shapes or times are wrong; not counted",
            f"{one.op}（{one.shapes}）的速率为 {one.tflops:.0f} TFLOP/s，超过 GPU 峰值：记录的形状或时间有误，未计入"))  # fmt: skip
    if any(w.of_peak is None and w.side.value == "memory" for w in work):
        said.append(Text("some products are faster than memory allows: their operands came from the cache",
                         "部分运算快于显存带宽允许的速度：其操作数来自缓存"))  # fmt: skip
    if any(s.fewer for s in found.shapes):
        said.append(Text("some convolutions use Winograd's algorithm or a Fourier transform, which multiply less than their FLOP count says",
                         "部分卷积使用 Winograd 算法或傅里叶变换，实际乘法次数少于按公式计算的 FLOP"))  # fmt: skip
    return [*said, *_reachable(work, used), *_far_below(work), *_doubts(found, used)]


def _gpu(trace: Trace, used: Chip) -> list[Text]:
    if not used.title:
        return [Text("the trace does not name its GPU: no peak, no side of the roofline (name it with --gpu)",
                     "轨迹没有 GPU 型号：无法给出峰值和屋顶线位置（用 --gpu 指定）")]  # fmt: skip
    name = clean(used.title)
    if not used.models:
        near = ", ".join(difflib.get_close_matches(name.lower(), [s.id for s in all_specs()], n=3, cutoff=0.5))
        return [Text(f"the peaks of {name} are not known (name the GPU with --gpu{': ' + near if near else ''})",
                     f"不知道 {name} 的峰值（用 --gpu 指定 GPU{'：' + near if near else ''}）")]  # fmt: skip
    if used.bandwidth_gbs is None or (used.peak("bf16") is None and used.peak("fp16") is None):
        several = ", ".join(m.id for m in used.models[:6])
        if len(used.models) > 1:
            return [Text(f"{name} may be {several}, whose figures differ (name one with --gpu)",
                         f"{name} 可能是 {several}，其指标不同（用 --gpu 指定）")]  # fmt: skip
    names = {clean(str(d.get("name"))) for d in trace.devices if d.get("name")}
    if len(names) > 1:
        return [
            Text(
                f"the trace holds different GPUs; all work is held against {name}",
                f"轨迹包含不同型号的 GPU；均按 {name} 计算",
            )
        ]
    return []


def _shapes(trace: Trace, found: Owned, total: int) -> list[Text]:
    ops = trace[Group.OP]
    if not len(ops):
        return [Text("the trace holds no operators: nothing is known of the shapes of products",
                     "轨迹中没有算子：无法得知矩阵运算的形状")]  # fmt: skip
    if not (ops.ids("dims") != NO_TEXT).any():
        return [
            Text(
                "no shapes were recorded (profile with record_shapes=True)",
                "没有记录形状（采集时使用 record_shapes=True）",
            )
        ]
    said = []
    if total and found.alone / total >= _WORTH:
        share = found.alone / total
        said.append(Text(f"{share:.0%} of kernel time belongs to no recorded operator (graph replay, code outside the framework): its shapes are not known",
                         f"{share:.0%} 的 kernel 时间不属于任何已记录的算子（图重放、框架之外的代码）：形状未知"))  # fmt: skip
    if total and found.unread / total >= 0.001:
        share = found.unread / total
        said.append(Text(f"{share:.1%} of kernel time is in products, convolutions or attention whose recorded inputs do not settle their work",
                         f"{share:.1%} 的 kernel 时间属于输入记录不足以确定计算量的矩阵乘、卷积或注意力"))  # fmt: skip
    return said


def _reachable(work: list[Work], used: Chip) -> list[Text]:
    for dtype in sorted({w.dtype for w in work}):
        peak, reached = used.peak(dtype), used.reachable(dtype)
        if peak and reached and reached < peak:
            return [Text(f"shares of the roof are of what large products reach on this GPU ({reached:g} TFLOP/s {dtype}, by its vendor), not of the data sheet ({peak:g})",
                         f"屋顶线占比以该 GPU 上大型运算的可达值为准（厂商数据：{dtype} {reached:g} TFLOP/s），而非规格书峰值（{peak:g}）")]  # fmt: skip
    return []


def far_below(one: Work) -> bool:
    """Whether a product reaches so little of its roof that neither side binds it yet."""
    return one.of_peak is not None and one.of_peak < _FAR


def _far_below(work: list[Work]) -> list[Text]:
    share = sum(w.share for w in work if far_below(w))
    if share < _WORTH:
        return []
    return [Text(f"products with {share:.0%} of kernel time stay below {_FAR:.0%} of their roof: too small, or badly shaped, to be bound by either side yet",
                 f"占 kernel 时间 {share:.0%} 的运算低于其屋顶线的 {_FAR:.0%}：规模太小或形状不佳，尚未受任何一侧限制")]  # fmt: skip


def _doubts(found: Owned, used: Chip) -> list[Text]:
    said = []
    if any(s.cost.doubt is Doubt.CAUSAL for s in found.shapes):
        said.append(Text("of some attention it was not recorded whether it is causal; it is counted as not: if it is, its FLOP are half",
                         "部分注意力没有记录是否为因果（causal）；按非因果计算：若为因果，FLOP 减半"))  # fmt: skip
    if any(s.cost.doubt is Doubt.MASK for s in found.shapes):
        said.append(Text("which gradients of convolutions were computed is not recorded; both are counted",
                         "没有记录卷积计算了哪些梯度；按两者都计算"))  # fmt: skip
    unsure = [s for s in found.shapes if s.cost.dtype == "fp32" and format_of_kernel(s.kernel) not in ("tf32", "fp32")]
    if unsure and used.has_tf32:
        said.append(Text("whether some FP32 products use TF32 does not show in their kernels' names; held against the TF32 peak",
                         "部分 FP32 运算是否使用 TF32 无法从 kernel 名称看出；按 TF32 峰值比较"))  # fmt: skip
    return said
