"""Reports of Nsight Compute (``ncu --csv``): what one launch of a kernel was limited by, to the line of its source.

Names of metrics: Nsight Compute, Kernel Profiling Guide (Metrics Reference) and the section files that ship with
it; both the raw names and those of the details page are known. What a report does not hold is None.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from knowledge.text import clean
from probes.trace.nsight.ncu_advice import advice
from probes.trace.nsight.ncu_csv import Record, decimal_comma, looks_like, records
from probes.trace.nsight.ncu_stalls import Values, source_lines, stalls_of
from probes.trace.nsight.ncu_types import Advice, Bound, KernelProfile, SourceLine, Stall

__all__ = ["Advice", "Bound", "KernelProfile", "SourceLine", "Stall", "looks_like", "read_ncu"]


def read_ncu(path: str) -> tuple[KernelProfile, ...]:
    """The launches of a report in its order. InputError when it cannot be read or is none."""
    found = records(path)
    comma = decimal_comma(found)
    profiles = (_profile(record, comma) for record in found)
    return tuple(replace(p, advice=advice(p)) for p in profiles)


# What it is -> names of metrics, the raw ones first. "name|unit": the one of that unit.
_NAMES: Final = {
    "duration": ("gpu__time_duration.sum", "gpu__time_duration.avg", "gpu__time_duration.max", "Duration"),
    "compute": ("sm__throughput.avg.pct_of_peak_sustained_elapsed", "Compute (SM) Throughput", "Compute (SM) [%]", "SOL SM", "SM [%]"),
    "memory": ("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "Memory Throughput|%", "SOL Memory", "Memory [%]"),
    "dram": ("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "dram__throughput.avg.pct_of_peak_sustained_elapsed",
             "DRAM Throughput", "SOL DRAM"),
    "l1": ("l1tex__throughput.avg.pct_of_peak_sustained_active", "L1/TEX Cache Throughput", "SOL L1/TEX Cache"),
    "l2": ("lts__throughput.avg.pct_of_peak_sustained_elapsed", "L2 Cache Throughput", "SOL L2 Cache"),
    "tensor": ("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
               "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
               "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
               "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active"),
    "theoretical": ("sm__maximum_warps_per_active_cycle_pct", "Theoretical Occupancy"),
    "achieved": ("sm__warps_active.avg.pct_of_peak_sustained_active", "Achieved Occupancy"),
    "registers": ("launch__registers_per_thread", "Registers Per Thread"),
    "waves": ("launch__waves_per_multiprocessor", "Waves Per SM"),
    "sms": ("launch__sm_count", "device__attribute_multiprocessor_count", "# SMs"),
    "shared": ("launch__shared_mem_per_block",),
    "shared_static": ("launch__shared_mem_per_block_static", "Static Shared Memory Per Block"),
    "shared_dynamic": ("launch__shared_mem_per_block_dynamic", "Dynamic Shared Memory Per Block"),
}  # fmt: skip
_LIMITS: Final = {
    "registers": ("launch__occupancy_limit_registers", "Block Limit Registers"),
    "shared memory": ("launch__occupancy_limit_shared_mem", "Block Limit Shared Mem"),
    "blocks": ("launch__occupancy_limit_blocks", "Block Limit SM"),
    "warps": ("launch__occupancy_limit_warps", "Block Limit Warps"),
    "barriers": ("launch__occupancy_limit_barriers", "Block Limit Barriers"),
}
_NO_LIMIT: Final = 1 << 20  # of barriers a kernel may use none


def _profile(record: Record, comma: bool) -> KernelProfile:
    values = Values(record, comma)
    numbers = {what: values.of(*names) for what, names in _NAMES.items()}
    limits = {what: n for what, names in _LIMITS.items() if (n := values.whole(*names)) is not None and n < _NO_LIMIT}
    least = min(limits.values(), default=0)
    stalls = stalls_of(values)
    lines, of_lines = source_lines(record.lines, comma)
    return KernelProfile(
        id=clean(record.id)[:40],
        name=clean(record.name)[:2000],
        device=clean(record.columns.get("Device", ""))[:100],
        grid=_size(record, "Grid Size", values, "launch__grid_size", "Grid Size"),
        block=_size(record, "Block Size", values, "launch__block_size", "Block Size"),
        duration_ns=values.of(*_NAMES["duration"], base=1e9),
        compute_pct=numbers["compute"],
        memory_pct=numbers["memory"],
        dram_pct=numbers["dram"],
        l1_pct=numbers["l1"],
        l2_pct=numbers["l2"],
        tensor_pct=numbers["tensor"],
        occupancy_theoretical_pct=numbers["theoretical"],
        occupancy_achieved_pct=numbers["achieved"],
        limits=limits,
        limiters=tuple(w for w, n in limits.items() if n == least) if least else (),
        registers=values.whole(*_NAMES["registers"]),
        shared_bytes=_shared(values),
        waves=numbers["waves"],
        sms=values.whole(*_NAMES["sms"]) or None,
        bound=_bound(numbers["compute"], numbers["memory"]),
        stalls=stalls or of_lines,
        lines=lines,
        rules=tuple(clean(r)[:600] for r in record.rules[:10]),
    )


def _bound(compute: float | None, memory: float | None) -> Bound:
    if compute is None or memory is None:
        return Bound.UNKNOWN
    if max(compute, memory) < 60:
        return Bound.LATENCY
    if abs(compute - memory) < 10:
        return Bound.BALANCED
    return Bound.COMPUTE if compute > memory else Bound.MEMORY


_TRIPLE: Final = re.compile(r"\(?\s*(\d{1,10})\s*[,x]\s*(\d{1,10})\s*[,x]\s*(\d{1,10})\s*\)?")


def _size(record: Record, column: str, values: Values, *metrics: str) -> tuple[int, ...] | None:
    found = _TRIPLE.fullmatch(record.columns.get(column, ""))
    if found:
        return int(found[1]), int(found[2]), int(found[3])
    count = values.whole(*metrics)
    return (count,) if count else None


def _shared(values: Values) -> int | None:
    total = values.of(*_NAMES["shared"], base=1.0)
    if total is None:
        parts = [values.of(*_NAMES[n], base=1.0) for n in ("shared_static", "shared_dynamic")]
        total = sum(p or 0 for p in parts) if any(p is not None for p in parts) else None
    return round(total) if total is not None else None
