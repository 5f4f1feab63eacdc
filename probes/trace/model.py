"""What the analyses of a trace give: frozen values in integer nanoseconds, ready to be shown, compared and sent.

`plain` turns any of them into JSON: fields keep their names, enums their words, `Text` both languages' choice.
A share is a fraction from 0 to 1. None stands for "the trace does not tell"; zero for zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum
from typing import Any

from knowledge.language import Text
from probes.trace.classify import KernelClass, TensorCore


@dataclass(frozen=True, slots=True)
class Window:
    """The part of the trace that numbers are about."""

    kind: str  # "trace": first GPU start to last GPU end; "iterations": the union of whole iterations
    start_ns: int
    end_ns: int
    iterations: int | None = None  # how many whole ones it holds
    marker: str = ""  # what an iteration is there: "ProfilerStep"


@dataclass(frozen=True, slots=True)
class KernelStat:
    """Statistics of kernels, copies or sets that share a key."""

    name: str
    total_ns: int
    count: int
    mean_ns: float
    min_ns: int
    max_ns: int
    stddev_ns: float  # of the population; 0 for one
    share: float  # of the summed time of all kernels of the window
    kind: KernelClass = KernelClass.OTHER
    tensor_core: TensorCore = TensorCore.UNKNOWN


@dataclass(frozen=True, slots=True)
class OpStat:
    """Statistics of operators that share a key (name, or name and shapes)."""

    name: str
    shapes: str
    count: int
    cpu_ns: int  # inclusive host time, of the outermost occurrence where it nests in itself
    cpu_self_ns: int  # without the operators it calls
    gpu_ns: int  # device time of the kernels launched directly by it
    gpu_total_ns: int  # and by what it calls
    kernels: int
    share: float  # gpu_ns of the summed device time of the window


@dataclass(frozen=True, slots=True)
class Idle:
    """Why the device was idle; the parts add up to `total_ns` exactly.

    A gap is charged to what the launch of the kernel behind it waited for.
    """

    total_ns: int
    data_loader_ns: int  # the host stood in the data loader
    sync_ns: int  # the host stood in a synchronising call (.item(), cudaStreamSynchronize)
    host_ns: int  # the host did other things: Python, operators
    launch_ns: int  # the launch call and its way to the device
    kernel_ns: int  # launched long before: the device waited for another stream, an event, or its scheduler
    unknown_ns: int  # the call of the kernel behind the gap was not recorded


@dataclass(frozen=True, slots=True)
class Launches:
    """Statistics of launches. Delays are kernel.start - (call.start + call.dur); of a graph only its first kernel."""

    count: int
    graph_launches: int
    graph_kernels: int
    short_kernels: int  # shorter on the device than their launch call on the host
    median_call_ns: int
    median_delay_ns: int
    p99_delay_ns: int
    slow_calls: int  # longer than 50 us (HTA)
    late_kernels: int  # delayed more than 100 us (HTA)
    per_ms: float
    median_kernel_ns: int
    queue_mean: float  # launched and not yet started, time-weighted
    queue_max: int
    queue_empty_share: float  # of the window in which nothing was queued


@dataclass(frozen=True, slots=True)
class StreamUse:
    """One stream of one device."""

    device: int
    stream: str
    busy_ns: int
    kernels: int
    comm_ns: int


@dataclass(frozen=True, slots=True)
class TensorCoreShare:
    """Kernel time by what its names say of tensor cores; the three shares add up to 1."""

    yes: float
    no: float
    unknown: float


@dataclass(frozen=True, slots=True)
class RankSummary:
    """One rank, one window: the temporal breakdown (``facts/trace``: definitions) and what explains it."""

    rank: int | None
    file: str
    window: Window
    span_ns: int
    busy_ns: int  # union of all kernels, copies and sets
    idle_ns: int  # span - busy
    compute_ns: int  # union of the kernels that are no communication
    comm_ns: int  # union of the communication kernels
    mem_ns: int  # union of copies and sets
    comm_compute_overlap_ns: int
    exposed_comm_ns: int  # communication and no computing
    exposed_mem_ns: int  # copies and sets, and neither computing nor communication
    kernels: int
    comm_kernels: int
    mem_ops: int
    top_kernels: tuple[KernelStat, ...]
    idle: Idle | None
    launches: Launches | None
    streams: tuple[StreamUse, ...]
    tensor_core: TensorCoreShare | None
    classes: Mapping[str, int] = field(default_factory=dict)  # KernelClass -> summed kernel time, ns
    devices: int = 1
    gpu: str = ""  # product name
    world_size: int | None = None
    whole: bool = True
    notes: tuple[Text, ...] = ()


class Side(StrEnum):
    """Which side of the roofline's knee work stands on."""

    MEMORY = "memory"
    COMPUTE = "compute"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Work:
    """GEMMs and attention of one operator and shape, on the roofline."""

    op: str
    shapes: str
    dtype: str
    count: int
    gpu_ns: int
    flop: int  # of all calls together
    bytes: int  # least traffic: each operand once
    intensity: float  # FLOP per byte
    tflops: float  # achieved
    gbs: float  # achieved, of the least traffic
    side: Side
    of_peak: float | None  # achieved against the roof at this intensity
    share: float  # of the window's kernel time
    batch: int | None = None  # the dimension that more samples would grow
    batch_at_knee: int | None = None  # where the same product turns compute-bound


@dataclass(frozen=True, slots=True)
class Roofline:
    """All GEMMs and attention of a window."""

    gpu: str
    knee: float | None  # FLOP per byte for the main dtype
    peak_tflops: float | None
    bandwidth_gbs: float | None
    work: tuple[Work, ...]
    flop: int  # recorded shapes only: GEMM FLOP, no model FLOP
    gemm_tflops: float | None  # over the window
    memory_bound_share: float | None  # of kernel time: known shapes under the knee, and kernels that only move bytes
    compute_bound_share: float | None
    covered_share: float  # of kernel time whose shapes are known
    mfu: float | None = None  # only when parameters and tokens were given
    mfu_formula: str = ""
    notes: tuple[Text, ...] = ()


@dataclass(frozen=True, slots=True)
class Iteration:
    """One iteration of one rank."""

    number: int
    name: str
    start_ns: int
    end_ns: int
    compute_ns: int
    comm_ns: int
    exposed_comm_ns: int
    mem_ns: int
    idle_ns: int
    data_loader_ns: int
    kernels: int
    loss: float | None = None
    gradnorm: float | None = None
    outlier: str = ""  # which part is out of the ordinary: "idle", "comm", ...; empty: none

    @property
    def span_ns(self) -> int:
        """Its length."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class Iterations:
    """The iterations of one rank."""

    rank: int | None
    file: str
    marker: str  # which kind of marker was used; empty: none was found
    clock: str  # "gpu": the marker's own GPU side or the kernels launched in it; "cpu"
    items: tuple[Iteration, ...]
    median_ns: int | None
    notes: tuple[Text, ...] = ()


@dataclass(frozen=True, slots=True)
class AllocatorPoint:
    """The allocator's state at one time, bytes."""

    at_ns: int
    allocated: int
    reserved: int


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """The allocator of one device, from [memory] events or from a snapshot."""

    device: str
    allocations: int
    frees: int
    churn_bytes: int  # allocated in all
    peak_allocated: int
    peak_reserved: int
    end_allocated: int
    end_reserved: int
    growth_per_iteration: int | None  # bytes by which the low water mark rises from iteration to iteration
    fragmentation: float | None  # of reserved: free but split (snapshot), or reserved - allocated at the peak
    timeline: tuple[AllocatorPoint, ...]  # at most a few hundred points, peaks kept
    top: tuple[tuple[str, int], ...] = ()  # who holds what: operator or frame, bytes
    segment_events: int = 0  # cudaMalloc and cudaFree calls in the window
    notes: tuple[Text, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """One line of a difference. All lines of a level add up to the whole."""

    path: str  # "aten::linear > gemm_kernel", or a kernel's name
    kind: str  # kernel, operator, idle, window part
    a_ns: int
    b_ns: int
    a_count: int
    b_count: int
    share: float  # of the whole gap (b - a); may be negative or above 1
    why: str = ""  # more calls, slower calls, new, gone


@dataclass(frozen=True, slots=True)
class Diff:
    """Two windows, traces or ranks."""

    a: str
    b: str
    a_ns: int
    b_ns: int
    parts: tuple[Difference, ...]  # compute, exposed communication, exposed copies, idle: adds up to b_ns - a_ns
    kernels: tuple[Difference, ...]  # by name: adds up to the difference of summed device time
    tree: tuple[Difference, ...]  # by aligned call path
    notes: tuple[Text, ...] = ()


@dataclass(frozen=True, slots=True)
class RankTiming:
    """One rank within the job."""

    rank: int | None
    file: str
    span_ns: int
    compute_ns: int
    exposed_comm_ns: int
    idle_ns: int
    waits_ns: int  # in collectives, for the last to arrive
    makes_wait_ns: int  # that others waited for it


@dataclass(frozen=True, slots=True)
class Collective:
    """Kernels of one collective over ranks, matched by group and order."""

    name: str
    group: str
    count: int
    ranks: tuple[int, ...]
    transfer_ns: int  # the shortest participation: all were there
    skew_ns: int  # the rest: waiting for the last
    late_rank: int | None  # who came last most often, by time
    late_share: float
    bytes: int | None
    bus_gbs: float | None  # bus bandwidth over the transfer time (nccl-tests, PERFORMANCE.md)
    slow_link: bool = False  # transfers slow with no one late


@dataclass(frozen=True, slots=True)
class Ranks:
    """Many ranks' traces of one job."""

    timings: tuple[RankTiming, ...]
    collectives: tuple[Collective, ...]
    missing: tuple[int, ...]  # ranks of the world without a trace
    failed: Mapping[str, str] = field(default_factory=dict)  # file -> why it gave nothing
    aligned: bool = False  # clocks of the ranks could be compared
    notes: tuple[Text, ...] = ()


def plain(value: Any, lang: str = "en") -> Any:
    """JSON of any of these values."""
    if isinstance(value, Text):
        return value.in_(lang)
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name), lang) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(k): plain(v, lang) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [plain(v, lang) for v in value]
    return str(value) if isinstance(value, StrEnum) else value
