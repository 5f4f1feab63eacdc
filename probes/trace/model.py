"""What the analyses of a trace give: frozen values in integer nanoseconds, ready to be shown, compared and sent.

`plain` turns any of them into JSON: fields keep their names, enums their words, `Text` both languages' choice.
A share is a fraction from 0 to 1. None stands for "the trace does not tell"; zero for zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, is_dataclass
from enum import StrEnum
from typing import Any

from knowledge.language import Text
from knowledge.record import dataclass
from probes.trace.names.classify import KernelClass, TensorCore


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
    kernel_ns: int  # launched before, and not begun: the device waited for another stream, an event, or its scheduler
    unknown_ns: int  # the call of the kernel behind the gap was not recorded
    after_sync_ns: int = (
        0  # of host_ns and launch_ns: of gaps that began within a synchronising call, which had drained the queue
    )
    late_ns: int = 0  # of kernel_ns: launched within the gap, and more than 100 us behind that call still not begun


@dataclass(frozen=True, slots=True)
class Gap:
    """One idle gap of a device."""

    start_ns: int
    end_ns: int
    cause: str  # the largest part of it: data_loader, sync, host, launch, kernel, unknown (fields of `Idle`)
    kernel: str  # that ended it; empty: none
    blame: str  # what the launching thread was in: user's function, operator, or runtime call; empty: not recorded
    blame_kind: str  # python, annotation, operator, runtime; empty: none
    iteration: str = ""  # name of the iteration mark it lies in, where one was read
    device: int = 0

    @property
    def size_ns(self) -> int:
        """Its length."""
        return self.end_ns - self.start_ns


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
    compute_bound_share: float | None  # of kernel time: known shapes above the knee
    covered_share: float  # of kernel time whose shapes are known
    far_below_share: float | None = None  # of kernel time, in neither of the above: below a fifth of their own roof
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
    kind: str = ""  # of a serving step: prefill, decode, mixed; else the group of a marker that was given
    batch: int | None = None  # requests of a serving step
    tokens: int | None = None  # scheduled in a serving step
    cpu_start_ns: int | None = None  # the mark on the host
    cpu_end_ns: int | None = None

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
    between_ns: int | None = None  # from the first to the last, and in none of them
    device: bool = True  # False: the trace holds no work of a device, and all parts but the data loader are unknown


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
    largest_free: int | None = None  # the greatest free block (snapshot)
    largest_request: int | None = None  # the greatest allocation that was seen
    suspects: tuple[
        tuple[str, int], ...
    ] = ()  # frames whose live bytes only grow, and by how much (snapshot with history)
    out_of_memory: tuple[int, ...] = ()  # requests that failed, bytes (snapshot with history)


@dataclass(frozen=True, slots=True)
class Difference:
    """One line of a difference. All lines of a level add up to the whole."""

    path: str  # "aten::linear > gemm_kernel", or a kernel's name
    kind: str  # kernel, operator, idle, window part
    a_ns: int
    b_ns: int
    a_count: int
    b_count: int
    share: float  # of the whole gap (b - a) of its level; may be negative or above 1; 0 where there is no gap
    why: str = ""  # a word of diff.Why: more calls, slower calls, new, gone, another kernel
    detail: Text | None = None  # which kernel replaced which
    frames: tuple[str, ...] = ()  # the whole path, of a line whose `path` is abridged


@dataclass(frozen=True, slots=True)
class Diff:
    """Two windows, traces or ranks."""

    a: str
    b: str
    a_ns: int
    b_ns: int
    parts: tuple[Difference, ...]  # compute, exposed communication, exposed copies, idle: adds up to b_ns - a_ns
    kernels: tuple[Difference, ...]  # by name: adds up to the difference of summed device time
    tree: tuple[Difference, ...]  # summed device time by aligned call path: adds up as `kernels` does
    notes: tuple[Text, ...] = ()
    host: tuple[Difference, ...] = ()  # self time on the host by aligned call path: adds up to its difference
    per_iteration: bool = False  # all times and counts are of one iteration, on average


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
    mem_ns: int | None = None
    data_loader_ns: int | None = None  # the host stood in the data loader
    kernels: int | None = None


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
    slower: float | None = None  # transfer time per byte against that of like groups: 2.0 is twice


@dataclass(frozen=True, slots=True)
class Wait:
    """One rank waited for another in collectives."""

    rank: int | None
    file: str
    late_rank: int | None
    late_file: str
    ns: int


@dataclass(frozen=True, slots=True)
class Straggler:
    """A rank that others wait for, and what it spends more time on than they do."""

    rank: int | None
    file: str
    makes_wait_ns: int  # of all others together
    delays_ns: int  # of the one that waited most for it
    share: float  # of all waiting
    cause: str  # compute, data_loader, host, launch, sync, mem; before: it entered the window late; unknown
    extra_ns: int  # of the cause, beyond the median of the other ranks
    why: Text


@dataclass(frozen=True, slots=True)
class Spread:
    """One iteration over all ranks: how unevenly they compute in it."""

    number: int
    mean_ns: int  # compute time, of all ranks
    max_ns: int
    slowest_rank: int | None
    slowest_file: str

    @property
    def imbalance(self) -> float:
        """max / mean - 1."""
        return self.max_ns / self.mean_ns - 1 if self.mean_ns else 0.0


@dataclass(frozen=True, slots=True)
class PipelineStage:
    """One rank's part in a pipeline: how long its device waited for its neighbours."""

    rank: int | None
    file: str
    stage: int | None  # place in the pipeline's group; None: the group is not recorded
    stages: int | None
    window_ns: int
    bubble_ns: int  # nothing but sends and receives, or nothing at all around them
    exposed_ns: int  # of it, a send or receive kernel was on the device (most of it: it spins until data comes)
    transfers: int  # send and receive kernels
    iterations: int | None
    microbatches: int | None = None  # of an iteration: sends of the first stage; None: cannot be counted
    evidence: str = ""  # how sends and receives are known: "recorded" arguments of kernels, or an "annotation"

    @property
    def fraction(self) -> float:
        """Bubble, of the window."""
        return self.bubble_ns / self.window_ns if self.window_ns else 0.0


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The bubbles of a pipeline."""

    stages: tuple[PipelineStage, ...]  # in order of stage, then rank
    depth: int | None
    microbatches: int | None
    fraction: float  # bubble of all stages, of their windows
    ideal: float | None  # (p - 1) / (m + p - 1): GPipe and 1F1B without interleaving (Narayanan et al., SC 2021)
    notes: tuple[Text, ...] = ()


@dataclass(frozen=True, slots=True)
class Ranks:
    """Many ranks' traces of one job."""

    timings: tuple[RankTiming, ...]
    collectives: tuple[Collective, ...]
    missing: tuple[int, ...]  # ranks of the world without a trace
    failed: Mapping[str, str] = field(default_factory=dict)  # file -> why it gave nothing
    aligned: bool = False  # clocks of the ranks could be compared
    notes: tuple[Text, ...] = ()
    stragglers: tuple[Straggler, ...] = ()  # worst first
    waits: tuple[Wait, ...] = ()  # who waits for whom, longest first, at most 64
    iterations: int | None = None  # that all ranks have and that the numbers are about; None: each rank's whole trace
    world_size: int | None = None
    imbalance: float | None = None  # of compute time: max / mean - 1
    offsets_ns: Mapping[str, int] = field(default_factory=dict)  # file -> its clock against the first rank's
    spreads: tuple[Spread, ...] = ()  # of the common iterations, in their order; at most the first 10,000
    pipeline: Pipeline | None = None
    residual_ns: int | None = None  # by which the ends of a collective differ after that, nine in ten at most


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
