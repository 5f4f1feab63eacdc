"""What kinds of kernels the time went to, as far as names, grids and the device's description tell."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from knowledge.record import dataclass
from probes.trace.columns import I64, Cat, Group, wanted
from probes.trace.model import Window
from probes.trace.names.classify import (
    KernelClass,
    TensorCore,
    is_communication,
    kernel_class,
    moves_only_bytes,
    tensor_core,
)
from probes.trace.reading.reader import Trace
from probes.trace.verdict.candidates import short

NEEDS: Final = wanted(gpu="grid", mark="")
TINY: Final = 5_000  # ns: about what one launch costs the host and the device; a kernel of less is mostly overhead
_MATRIX: Final = (KernelClass.GEMM, KernelClass.CONVOLUTION, KernelClass.ATTENTION)
# cudnn::ops::nchwToNhwcKernel<...>; nhwcToNchwKernel; cudnn::ops::nhwcAddPadding is none
_LAYOUT: Final = re.compile(r"(?i)nchw_?(?:to|2)_?nhwc|nhwc_?(?:to|2)_?nchw|batched_transpose|SubTensorOpWithScalar")
# triton_poi_fused_add_0, triton_red_fused_..., triton_per_...: Inductor's; ## Call CompiledFxGraph ... ##; Torch-Compiled Region: 0/0
_INDUCTOR: Final = re.compile(
    r"^triton_(?:poi|red|per|tem|mm|for|split)\w*|^Torch-Compiled Region|CompiledFxGraph|^CompiledFunction"
)


@dataclass(frozen=True, slots=True)
class Mix:
    """Shares of the summed kernel time of a window, 0 to 1; None where nothing tells."""

    kernel_ns: int
    tiny: float
    underfilled: float | None
    plain: float  # matrix products that by their names use no tensor cores
    plain_top: str
    bytes_only: float
    layout: float
    compiled: bool
    top: str  # communication left out
    top_share: float | None  # of the time of kernels other than communication
    comm_top: str
    tensor_cores: bool | None  # of the device


def mix(trace: Trace, window: Window) -> Mix | None:
    """The kinds of kernels of the window; None without kernels."""
    gpu = trace.gpu
    rows = np.flatnonzero(np.equal(gpu.cat, Cat.KERNEL) & (gpu.start >= window.start_ns) & (gpu.start < window.end_ns))
    total = int(gpu.dur[rows].sum())
    if not total:
        return None
    name, dur = gpu.name[rows], gpu.dur[rows]
    spent = np.bincount(name, weights=dur, minlength=len(trace.strings)).astype(np.int64)
    ids = np.flatnonzero(spent)
    texts = {int(i): trace.strings[int(i)] for i in ids}
    comm = [i for i, t in texts.items() if is_communication(t)]
    plain = [i for i, t in texts.items() if _is_plain(t)]
    moving = [i for i, t in texts.items() if moves_only_bytes(t)]
    layout = [i for i, t in texts.items() if _LAYOUT.search(t[:400])]
    computing = [i for i in texts if i not in set(comm)]
    return Mix(
        kernel_ns=total, tiny=int(dur[dur < TINY].sum()) / total,
        underfilled=_underfilled(trace, rows, set(comm)),
        plain=int(spent[plain].sum()) / total, plain_top=_named(trace, spent, plain),
        bytes_only=int(spent[moving].sum()) / total, layout=int(spent[layout].sum()) / total,
        compiled=_compiled(trace, texts.values()), top=_named(trace, spent, computing),
        top_share=int(spent[computing].max()) / int(spent[computing].sum()) if computing else None,
        comm_top=_named(trace, spent, comm), tensor_cores=_has_tensor_cores(trace.devices),
    )  # fmt: skip


def _is_plain(name: str) -> bool:
    return kernel_class(name) in _MATRIX and tensor_core(name) is TensorCore.NO


def _longest(spent: I64, ids: list[int]) -> int:
    return max(ids, key=lambda i: (int(spent[i]), -i))


def _named(trace: Trace, spent: I64, ids: list[int]) -> str:
    return short(trace.strings[_longest(spent, ids)]) if ids else ""


def _compiled(trace: Trace, kernels: Any) -> bool:
    marks = np.unique(trace[Group.MARK].name)
    names = [*kernels, *(trace.strings[int(n)] for n in marks)]
    return any(_INDUCTOR.search(n) for n in names)


def _underfilled(trace: Trace, rows: I64, comm: set[int]) -> float | None:
    """Share of the kernel time, communication left out, in kernels of at most half as many blocks as the device has SMs."""
    sms = next((d.get("numSms") for d in trace.devices if d.get("numSms")), None)
    gpu = trace.gpu
    keep = rows[~np.isin(gpu.name[rows], list(comm))] if comm else rows
    grid = gpu.ids("grid")[keep]
    blocks = {int(g): n for g in np.unique(grid[grid >= 0]) if (n := _blocks(trace.strings[int(g)])) is not None}
    known = np.isin(grid, list(blocks))
    if not isinstance(sms, int) or not known.any():
        return None
    few = np.isin(grid, [g for g, n in blocks.items() if 2 * n <= sms])
    total = int(gpu.dur[keep[known]].sum())
    return int(gpu.dur[keep[few]].sum()) / total if total else None


def _blocks(grid: str) -> int | None:
    """``[128, 1, 1]``: 128."""
    parts = re.findall(r"\d{1,10}", grid[:64])
    return int(parts[0]) * int(parts[1]) * int(parts[2]) if len(parts) == 3 else None


def _has_tensor_cores(devices: list[dict[str, Any]]) -> bool | None:
    """From Volta on (compute capability 7.0), or an AMD Instinct from MI100 on; None when nothing tells."""
    for device in devices:
        name, major = str(device.get("name") or ""), device.get("computeMajor")
        if "Instinct" in name or re.search(r"\bMI\d{3}", name):
            return True
        if name.startswith(("AMD", "gfx")) or not isinstance(major, int):
            continue
        return major >= 7 and not re.search(r"GTX 16|MX\d{3}|T\d00\b", name)  # Turing without tensor cores
    return None
