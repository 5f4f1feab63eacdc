"""Products, convolutions and attention of a trace on the roofline of its GPU, and what share of the time is bound by what.

Roofline (Williams, Waterman, Patterson, CACM 2009): at an intensity of I FLOP per byte a GPU of peak P and memory
bandwidth B reaches min(P, I B); the two meet at the knee, P / B. Intensity here is that of the least traffic, so a
product on the memory side truly is; one on the compute side may still wait for memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import ceil
from typing import Final

from knowledge.text import clean
from probes.trace.links import Links
from probes.trace.model import Roofline, Side, Window, Work
from probes.trace.names import kinds
from probes.trace.reading.reader import Trace
from probes.trace.windows import whole
from probes.trace.work.calls import Doubt, Kind, shown
from probes.trace.work.chips import Chip, chip
from probes.trace.work.mfu import Model, utilisation
from probes.trace.work.owners import NEEDS, Owned, Shape, format_of_kernel, owners
from probes.trace.work.roofline_notes import far_below, notes

__all__ = ["NEEDS", "roofline"]

_OVER: Final = 1.05  # above the peak by more than clocks and rounding explain: shapes or times are wrong


def roofline(
    trace: Trace,
    window: Window | None = None,
    *,
    gpu: str = "",
    parameters: float | None = None,
    tokens_per_second: float | None = None,
    tokens: float | None = None,
    layers: int | None = None,
    hidden: int | None = None,
    sequence: int | None = None,
    gpus: int = 1,
    training: bool = True,
    links: Links | None = None,
) -> Roofline:
    """All products, convolutions and attention of `window` (none: the whole trace), the longest first.

    `gpu` names the GPU where the trace does not, or wrongly. MFU is given only for `parameters` with
    `tokens_per_second` or `tokens` (of one iteration, or of the whole window when that is no union of iterations),
    both for `gpus` GPUs together; `layers`, `hidden` (heads times their size) and `sequence` add attention's part.
    Needs the tables of `NEEDS`. `links` spares joins that were made already.
    """
    window = whole(trace) if window is None else window
    found = owners(trace, links or Links(trace), window)
    used = chip(gpu, trace.devices)
    total = int(trace.gpu.dur[found.kernels].sum())
    work = sorted(
        _merged(_work(trace, s, used, total) for s in found.shapes), key=lambda w: (-w.gpu_ns, w.op, w.shapes)
    )
    work = _with_batches(work, found.shapes, used)
    span = window.end_ns - window.start_ns
    counted = sum(w.flop for w in work if not _impossible(w, used))
    main = _main_format(work, used)
    bound = _bound(trace, found, work, total)
    model = Model(parameters, tokens_per_second, tokens, layers, hidden, sequence, gpus, training)
    mfu = utilisation(model, used, main, window)
    return Roofline(
        gpu=used.title,
        knee=used.knee(main),
        peak_tflops=used.peak(main),
        bandwidth_gbs=used.bandwidth_gbs,
        work=tuple(work),
        flop=counted,
        gemm_tflops=counted / span / 1000 if span > 0 and work else None,
        memory_bound_share=bound[0] if total else None,
        compute_bound_share=bound[1] if work and used.knee(main) is not None else None,
        covered_share=sum(w.gpu_ns for w in work) / total if total else 0.0,
        far_below_share=bound[2] if work and used.knee(main) is not None else None,
        mfu=mfu.share,
        mfu_formula=mfu.formula,
        notes=(*notes(trace, found, work, used, total, _impossible), *mfu.notes),
    )


def _format(shape: Shape, used: Chip) -> str:
    """FP32 operands are multiplied in TF32 or in FP32: the kernel's name tells; where it does not, the faster is assumed."""
    if shape.cost.dtype != "fp32":
        return shape.cost.dtype
    said = format_of_kernel(shape.kernel)
    if said in ("tf32", "fp32"):
        return said if used.has_tf32 or not used.models else "fp32"
    return "tf32" if used.has_tf32 else "fp32"


def _work(trace: Trace, shape: Shape, used: Chip, total: int) -> Work:
    flop, moved = shape.cost.flop * shape.calls, shape.cost.bytes * shape.calls
    time = int(trace.gpu.dur[shape.rows].sum())
    text = clean(shown(shape.dims)) + (" (causal?)" if shape.cost.doubt is Doubt.CAUSAL else "")
    one = Work(
        op=clean(shape.op),
        shapes=text,
        dtype=_format(shape, used),
        count=shape.calls,
        gpu_ns=time,
        flop=flop,
        bytes=moved,
        intensity=flop / moved if moved else 0.0,
        tflops=flop / time / 1000 if time else 0.0,
        gbs=moved / time if time else 0.0,
        side=Side.UNKNOWN,
        of_peak=None,
        share=time / total if total else 0.0,
    )
    return _placed(one, used, shape.fewer)


def _placed(one: Work, used: Chip, fewer: bool = False) -> Work:
    """Its side of the knee and its share of the roof. `fewer`: the algorithm does less than the formula counts."""
    knee, peak, bandwidth = used.knee(one.dtype), used.peak(one.dtype), used.bandwidth_gbs
    if knee is None or peak is None or bandwidth is None or not one.gpu_ns:
        return one
    side = Side.MEMORY if one.intensity < knee else Side.COMPUTE
    if one.tflops > peak * _OVER:
        return replace(one, side=side if fewer else Side.UNKNOWN)
    roof = min(used.reachable(one.dtype) or peak, one.intensity * bandwidth / 1000)
    share = one.tflops / roof if one.flop else None
    if share is not None and roof * _OVER < one.tflops <= one.intensity * bandwidth / 1000:
        share = 1.0  # better than its vendor's best
    return replace(one, side=side, of_peak=share if share is not None and share <= _OVER else None)


def _impossible(one: Work, used: Chip) -> bool:
    """Faster than its GPU can be, by its own formula."""
    peak = used.peak(one.dtype)
    return peak is not None and one.tflops > peak * _OVER and one.side is Side.UNKNOWN


def _merged(work: Iterable[Work]) -> list[Work]:
    """One line for what reads the same: the recorded values that differ are of no interest."""
    found: dict[tuple[str, str, str, Side], Work] = {}
    for one in work:
        key = one.op, one.shapes, one.dtype, one.side
        have = found.get(key)
        found[key] = one if have is None else _sum(have, one)
    return list(found.values())


def _sum(a: Work, b: Work) -> Work:
    flop, moved, time = a.flop + b.flop, a.bytes + b.bytes, a.gpu_ns + b.gpu_ns
    parts = [(w.of_peak, w.gpu_ns) for w in (a, b)]
    of_peak = None if any(p is None for p, _ in parts) or not time else sum((p or 0) * t for p, t in parts) / time
    return replace(
        a, count=a.count + b.count, gpu_ns=time, flop=flop, bytes=moved, intensity=flop / moved if moved else 0.0,
        tflops=flop / time / 1000 if time else 0.0, gbs=moved / time if time else 0.0, of_peak=of_peak,
        share=a.share + b.share,
    )  # fmt: skip


def _with_batches(work: list[Work], shapes: list[Shape], used: Chip) -> list[Work]:
    """Which dimension of each product counts samples or tokens, and its size at the knee.

    Of a layer's forward pass it is the rows; where the sums run over it (a weight's gradient) it is the inner size.
    Rows of products with a bias are numbers of tokens; without any such product, the most frequent number of rows.
    """
    tokens = _token_sizes(shapes)
    ways: dict[tuple[str, str], tuple[int, int | None]] = {}
    for shape in shapes:
        key = clean(shape.op), clean(shown(shape.dims))
        one = next((b for b in shape.cost.batches if len(shape.cost.batches) == 1 or b[0] in tokens), None)
        if one is not None and one[0] > 0:
            ways[key] = one[0], _at_knee(shape, one, used.knee(_format(shape, used)))
    return [replace(w, batch=b[0], batch_at_knee=b[1]) if (b := ways.get((w.op, w.shapes))) else w for w in work]


def _token_sizes(shapes: list[Shape]) -> set[int]:
    rows: dict[int, int] = {}
    found = set()
    for shape in shapes:
        ways = shape.cost.batches
        if shape.cost.kind is Kind.GEMM and len(ways) == 1:
            found.add(ways[0][0])
        elif shape.cost.kind is Kind.GEMM and ways:
            rows[ways[0][0]] = rows.get(ways[0][0], 0) + shape.calls
    if found or not rows:
        return found
    return {max(rows, key=lambda size: (rows[size], size))}


def _at_knee(shape: Shape, batch: tuple[int, int], knee: float | None) -> int | None:
    """FLOP and the bytes of the activations grow with x, the weights' do not: f x / (a x + w) = knee, solved for x."""
    size, fixed = batch
    if knee is None or not size:
        return None
    gain = (shape.cost.flop - knee * (shape.cost.bytes - fixed)) / size
    return max(1, ceil(knee * fixed / gain)) if gain > 0 else None


def _main_format(work: list[Work], used: Chip) -> str:
    time: dict[str, int] = {}
    for one in work:
        time[one.dtype] = time.get(one.dtype, 0) + one.gpu_ns
    return max(time, key=lambda d: (time[d], d), default="bf16" if used.peak("bf16") else "fp16")


def _bound(trace: Trace, found: Owned, work: list[Work], total: int) -> tuple[float, float, float]:
    """Shares of kernel time: on the memory's side, on the computing side, and far below either; the rest is not known.

    A product that reaches less than a fifth of its roof waits for something else: it is too small for its GPU.
    """
    if not total:
        return 0.0, 0.0, 0.0
    rest = found.kernels[~found.owned]
    moving = int(trace.gpu.dur[rest[kinds.only_bytes(trace)[rest]]].sum()) if len(rest) else 0
    near = {s: sum(w.gpu_ns for w in work if w.side is s and not far_below(w)) for s in Side}
    far = sum(w.gpu_ns for w in work if far_below(w))
    return (near[Side.MEMORY] + moving) / total, near[Side.COMPUTE] / total, far / total
