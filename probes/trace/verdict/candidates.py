"""What could be mended: stretches for CUDA graphs, runs for fusion, copies, the optimiser, the allocator.

Every gain is an upper bound, and says how it was found: a stretch gives back at most the gaps that the host and its
launches left in it, a run of n fused kernels keeps one of its n passes over the data.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from knowledge.record import dataclass
from probes.trace.breakdown.callgaps import Slow, idle_within, longest, slowest
from probes.trace.breakdown.hostside import named
from probes.trace.breakdown.idle import Cause, Gaps, thread_of
from probes.trace.columns import I64, Cat, Group, Mask, wanted
from probes.trace.intervals import clip, union
from probes.trace.links import Links
from probes.trace.model import Window
from probes.trace.names.kinds import communication, only_bytes
from probes.trace.reading.reader import Trace

NEEDS: Final = wanted(gpu="correlation device stream external", runtime="correlation", op="external", mark="")
# An operator of PyTorch costs the host some 5 to 30 us until its kernel is launched: what runs shorter than that on
# the GPU cannot be kept fed from Python (PyTorch, "Accelerating PyTorch with CUDA Graphs").
SHORT: Final = 30_000  # ns
PAUSE: Final = 1_000_000  # ns; a longer gap is no matter of launches: something else ran on the host
RUN: Final = 10  # kernels from which a stretch is one
NEXT: Final = 100_000  # ns; kernels that far apart are not next to each other
SHOWN: Final = 4  # kernels of a sequence that are named

_GRAPH: Final = re.compile(r"GraphLaunch")
# Memcpy HtoD (Pageable -> Device); Memcpy DtoH (Device -> Pageable); Memcpy HtoD (Pinned -> Device)
_PAGEABLE: Final = re.compile(r"Pageable")
_HOST: Final = re.compile(r"Pageable|Pinned|HtoD|DtoH|HostToDevice|DeviceToHost")
_KIND_KNOWN: Final = re.compile(r"Pageable|Pinned")
# The allocator goes to the driver: cudaMalloc, cudaFree, hipMalloc, hipFree; with expandable segments cuMemCreate.
_MALLOC: Final = re.compile(
    r"^(?:cuda|hip)(?:Malloc|Free)$|^cuMem(?:Create|Map|Unmap|Release)$|^hipMem(?:Create|Map|Unmap|Release)$"
)
_STEP: Final = re.compile(r"^Optimizer\.step#")  # Optimizer.step#SGD.step
_FUSED: Final = re.compile(r"(?i)fused_?(?:adam|sgd|lamb|adagrad)|FusedAdam|FusedSgd|adam_kernel_fused")
_FOREACH: Final = re.compile(r"multi_tensor_apply")


@dataclass(frozen=True, slots=True)
class Stretches:
    """Stretches of short kernels, launched one by one."""

    count: int
    kernels: int
    gap_ns: int  # left in them by the host and its launches: the most that graphs could save
    where: str = ""  # the operator in which the one with the longest gaps begins


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of kernels that only move bytes."""

    count: int
    kernels: int
    kernel_ns: int
    saved_ns: int  # (n-1)/n of each run: an upper bound
    top: str = ""  # the sequence that would save the most
    top_count: int = 0


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies between host and device."""

    count: int
    pageable: int | None  # None: the names do not tell which memory it was
    pageable_ns: int | None


@dataclass(frozen=True, slots=True)
class Candidates:
    """Everything of one window."""

    stretches: Stretches | None  # None: launches were not recorded
    runs: Runs
    copies: Copies
    optimizer: str  # loop, foreach, fused; empty: no step with kernels was recorded
    optimizer_ns: int
    malloc_calls: int | None
    malloc_ns: int | None  # the union of these calls, over all threads
    malloc_idle_ns: int | None = None  # the device was idle meanwhile, and waited for the thread that stood in them
    slow: Slow | None = None  # the runtime call behind most of the idle time of launches
    longest_gap_ns: int | None = None


def candidates(links: Links, window: Window, gaps: Gaps) -> Candidates:
    """What could be mended in the window."""
    trace = links.trace
    kind, ns = _optimizer(links, window)
    runtime = trace[Group.RUNTIME]
    calls = named(trace, runtime, _MALLOC) & (runtime.end > window.start_ns) & (runtime.start < window.end_ns)
    recorded = len(runtime) > 0
    return Candidates(
        stretches=_stretches(links, window, gaps) if recorded else None,
        runs=_runs(trace, window), copies=_copies(trace, window), optimizer=kind, optimizer_ns=ns,
        malloc_calls=int(calls.sum()) if recorded else None,
        malloc_ns=clip(union(runtime.start[calls], runtime.end[calls]), window.start_ns, window.end_ns).total
        if recorded else None,
        malloc_idle_ns=idle_within(trace, window, gaps, calls) if bool((gaps.launch >= 0).any()) else None,
        slow=slowest(trace, window, gaps), longest_gap_ns=longest(window, gaps),
    )  # fmt: skip


def _within(trace: Trace, window: Window) -> Mask:
    gpu = trace.gpu
    return (gpu.start >= window.start_ns) & (gpu.start < window.end_ns)


def _stretches(links: Links, window: Window, gaps: Gaps) -> Stretches:
    """Maximal runs of kernels that are short, no communication and no part of a graph, on each device."""
    trace = links.trace
    gpu, runtime = trace.gpu, trace[Group.RUNTIME]
    graph = named(trace, runtime, _GRAPH)
    launch = links.launch
    by_graph = (
        np.where(launch >= 0, graph[np.maximum(launch, 0)], False) if len(graph) else np.zeros(len(gpu), np.bool_)
    )
    fits = np.equal(gpu.cat, Cat.KERNEL) & (gpu.dur < SHORT) & ~by_graph & ~communication(trace) & (launch >= 0)
    gap = np.zeros(len(gpu), np.int64)  # before each row, by the host or its launch
    late = gaps.cause == Cause.HOST
    gap[gaps.kernel[late]] = (gaps.end - gaps.start)[late]
    found = [_device_stretches(rows, fits, gap) for rows in _by(gpu.ints("device"), _within(trace, window))]
    best = max(found, key=lambda f: f[3], default=(0, 0, 0, 0, -1))
    return Stretches(
        sum(f[0] for f in found), sum(f[1] for f in found), sum(f[2] for f in found), _operator(links, best[4])
    )


def _device_stretches(rows: I64, fits: Mask, gap: I64) -> tuple[int, int, int, int, int]:
    """Number of stretches, kernels and ns of gaps in them, the most of one, and the row that begins that one."""
    ok = fits[rows]
    joined = ok[1:] & ok[:-1] & (gap[rows][1:] < PAUSE)
    heads = np.flatnonzero(ok & ~np.concatenate([[False], joined]))
    if not len(heads):
        return 0, 0, 0, 0, -1
    chain = np.cumsum(np.isin(np.arange(len(rows)), heads, assume_unique=True)) - 1
    member = np.flatnonzero(ok)
    size = np.bincount(chain[member], minlength=len(heads))
    inner = member[~np.isin(member, heads, assume_unique=True)]  # the gap before the first is none of the stretch's
    lost = np.bincount(chain[inner], weights=gap[rows[inner]], minlength=len(heads))
    long = size >= RUN
    best = int(np.argmax(np.where(long, lost, -1)))
    if not long[best]:
        return 0, 0, 0, 0, -1
    return int(long.sum()), int(size[long].sum()), int(lost[long].sum()), int(lost[best]), int(rows[heads[best]])


def _operator(links: Links, row: int) -> str:
    if row < 0 or not len(links.trace[Group.OP]):
        return ""
    op = int(links.op[row])
    return links.trace.strings[int(links.trace[Group.OP].name[op])] if op >= 0 else ""


def _by(keys: I64, mask: Mask) -> list[I64]:
    """Row numbers of `mask`, one array for each key, in their order."""
    rows = np.flatnonzero(mask)
    return [rows[keys[rows] == key] for key in np.unique(keys[rows])]


def _runs(trace: Trace, window: Window) -> Runs:
    """Runs of at least two bytes-only kernels in a row on one stream, those of foreach and fused optimisers left out."""
    gpu = trace.gpu
    fits = only_bytes(trace) & ~named(trace, gpu, _FOREACH) & ~named(trace, gpu, _FUSED)
    stream = gpu.ints("device").astype(np.int64) << 32 | gpu.ids("stream")
    chains: list[tuple[I64, I64]] = []  # (rows, chain number) of each stream
    offset = 0
    for rows in _by(stream, _within(trace, window)):
        ok = fits[rows]
        near = gpu.start[rows][1:] - gpu.end[rows][:-1] < NEXT
        head = ok & ~np.concatenate([[False], ok[1:] & ok[:-1] & near])
        number = np.cumsum(head) - 1 + offset
        chains.append((rows[ok], number[ok]))
        offset += int(head.sum())
    if not offset:
        return Runs(0, 0, 0, 0)
    row, number = (np.concatenate([c[i] for c in chains]) for i in (0, 1))
    return _sum_runs(trace, row, number, offset)


def _sum_runs(trace: Trace, row: I64, number: I64, count: int) -> Runs:
    size = np.bincount(number, minlength=count)
    spent = np.bincount(number, weights=trace.gpu.dur[row], minlength=count)
    several = size >= 2
    saved = np.where(several, spent * (size - 1) / np.maximum(size, 1), 0)
    if not several.any():
        return Runs(0, 0, 0, 0)
    top, times = _top_sequence(trace, row, number, size, saved)
    return Runs(int(several.sum()), int(size[several].sum()), int(spent[several].sum()), int(saved.sum()), top, times)


def _top_sequence(trace: Trace, row: I64, number: I64, size: I64, saved: I64) -> tuple[str, int]:
    """The sequence of names whose runs would save the most together, and how often it stands there.

    Sequences are told apart by a hash of their names and places, 64 bits wide: equal ones are one sequence.
    """
    first = np.concatenate([np.zeros(1, np.int64), np.cumsum(size)])[:-1]
    place = np.arange(len(row)) - first[number]
    name = trace.gpu.name[row].astype(np.uint64)
    mixed = (name + np.uint64(0x9E3779B97F4A7C15)) * (place.astype(np.uint64) * np.uint64(2) + np.uint64(1))
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    keys = np.add.reduceat(mixed, first)
    _, which, inverse, times = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    best = int(np.argmax(np.bincount(inverse, weights=saved)))
    head = int(first[which[best]])
    names = [short(trace.strings[int(n)]) for n in trace.gpu.name[row[head : head + int(size[which[best]])]][:SHOWN]]
    rest = int(size[which[best]]) - len(names)
    return " + ".join(names) + (f" + {rest} more" if rest > 0 else ""), int(times[best])


_TEMPLATE: Final = re.compile(r"(?:void |at::native::|\(anonymous namespace\)::|at::|c10::)")
# vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, ...>: the functor is the telling part
_FUNCTOR: Final = re.compile(r"(\w*(?:Functor|_kernel_cuda|_kernel_impl|_kernel)\w*)")


def short(name: str, width: int = 48) -> str:
    """A kernel's name as a person would call it: without namespaces, with its functor, cut."""
    plain = _TEMPLATE.sub("", name[:400])
    head = re.split(r"[<(]", plain, maxsplit=1)[0].strip()
    functors = [f for f in _FUNCTOR.findall(plain[len(head) :]) if f != head]
    said = f"{head}<{functors[0]}>" if functors and head.endswith(("elementwise_kernel", "reduce_kernel")) else head
    return said if len(said) <= width else said[: width - 3] + "..."


def _copies(trace: Trace, window: Window) -> Copies:
    gpu = trace.gpu
    copies = np.equal(gpu.cat, Cat.MEMCPY) & _within(trace, window)
    host = copies & named(trace, gpu, _HOST)
    known = host & named(trace, gpu, _KIND_KNOWN)
    if host.any() and not known.any():
        return Copies(int(host.sum()), None, None)
    pageable = host & named(trace, gpu, _PAGEABLE)
    return Copies(int(host.sum()), int(pageable.sum()), int(gpu.dur[pageable].sum()))


def _optimizer(links: Links, window: Window) -> tuple[str, int]:
    """How the optimiser updates, and the ns between first start and last end of the kernels of each of its steps."""
    trace = links.trace
    runtime = trace[Group.RUNTIME]
    kernels = np.flatnonzero(_within(trace, window) & links.kernels & (links.launch >= 0))
    if not len(kernels):
        return "", 0
    call = links.launch[kernels]
    at, owner = runtime.start[call], thread_of(runtime)[call]
    order = np.argsort(at, kind="stable")
    at = at[order]
    total, steps, counted = 0, 0, np.zeros(len(kernels), np.bool_)
    for table in (trace[Group.MARK], trace[Group.OP]):
        rows = np.flatnonzero(named(trace, table, _STEP) & np.not_equal(table.cat, Cat.GPU_MARK))
        for row in rows.tolist()[:1000]:
            low, high = np.searchsorted(at, [table.start[row], table.start[row] + table.dur[row]])
            inside = order[low:high]
            inside = inside[owner[inside] == (int(table.ids("pid")[row]) << 32 | int(table.ids("tid")[row]))]
            hit = kernels[inside[~counted[inside]]]
            if len(hit):
                start = trace.gpu.start[hit]
                total += int((start + trace.gpu.dur[hit]).max() - start.min())
                steps += 1
                counted[inside] = True
    if not steps:
        return "", 0
    names = [trace.strings[int(n)] for n in np.unique(trace.gpu.name[kernels[counted]])]
    if any(_FUSED.search(n) for n in names):
        return "fused", total
    foreach = named(trace, trace.gpu, _FOREACH)[kernels[counted]]
    if foreach.sum() * 2 >= len(foreach) or int(counted.sum()) < 20 * steps:
        return ("foreach", total) if foreach.any() else ("", total)
    return "loop", total
