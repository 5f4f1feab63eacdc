"""Out of device memory, as PyTorch (all formats since 1.0), JAX, TensorFlow, CuPy, vLLM and llama.cpp say it.

All amounts are MiB. What the message does not print stays unsaid: a message that is cut
gives fewer fields, never a zero.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from knowledge.lazy import lazy
from knowledge.observation import Observation, Scalar
from knowledge.text import excerpt
from probes.base import Context, Line, LogFormat
from probes.parse._app_emit import Emitter, none_seen
from probes.parse._app_lines import AppLine, application_head, matching, peel_all, rank_subject
from probes.parse._app_traceback import Traceback, tracebacks

NAME = "cuda-oom"
REVISION = 3
MERGE_LINES = 200  # the same failure of one process is printed again by its wrappers

TRIGGERS = (
    r"(?i)(?:CUDA|HIP|XPU) (?:error: )?out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation",
    r"Allocation on device|RESOURCE_EXHAUSTED: .*(?:[Oo]ut of memory|[Ff]ailed to allocate)|OOM when allocating|ran out of memory trying to allocate",
    r"No available memory for the cache blocks|Free memory on device|larger than the (?:maximum number of tokens|available KV cache)",
    r"Out of memory allocating|cudaMalloc failed: out of memory|Not enough memory\. Please try",
    # TensorRT: Error Code 1: Cuda Runtime (out of memory)     Requested amount of GPU memory (34359738368 bytes) could not be allocated.
    r"Cuda Runtime \(out of memory\)|Requested amount of GPU memory \(",
    # TensorRT-LLM: CUDA runtime error in ::cudaMallocAsync(ptr, n, mMemPool->getPool(), mCudaStream->get()): out of memory (.../tllmBuffers.h:112)
    # Assertion failed: Can't allocate new blocks. No free blocks left.     maxTokensInPagedKvCache must be large enough to process at least 1 sequence
    r"CUDA runtime error in .{1,300}: out of memory|No free blocks left|maxTokensInPagedKvCache .{0,40}must be large enough",
    r"Unable to allocate (?:CUDA|CUDA\d*) .*buffer",
    r"expandable_segments:(?:True|False)",  # a setting, kept with the event
)
_BARE = lazy(TRIGGERS[0])
_OTHERS = lazy("|".join(f"(?:{t})" for t in TRIGGERS[1:-1]))
_WORDS = tuple(lazy(trigger) for trigger in TRIGGERS[:-1])
_NCCL = lazy(r"NCCL (?:WARN|INFO|ERROR)")

_UNITS = {"b": 2**-20, "bytes": 2**-20, "byte": 2**-20, "kib": 2**-10, "mib": 1.0, "gib": 2**10, "tib": 2**20,
          "kb": 1e3 * 2**-20, "mb": 1e6 * 2**-20, "gb": 1e9 * 2**-20, "tb": 1e12 * 2**-20,
          "k": 2**-10, "m": 1.0, "g": 2**10}  # fmt: skip
_AMOUNT = r"([0-9][0-9,.]{0,24}) ?([KMGT]i?B|bytes?|B|[KMG]\b)"

# Tried to allocate 22.78 GiB. GPU 0 has a total capacity of 31.47 GiB of which 12.73 GiB is free. Including non-PyTorch
# memory, this process has 18.73 GiB memory in use. Of the allocated memory 9.08 GiB is allocated by PyTorch, and 9.35 GiB
# is reserved by PyTorch but unallocated.
# Tried to allocate 20.00 MiB (GPU 0; 7.79 GiB total capacity; 6.01 GiB already allocated; 19.94 MiB free; 6.10 GiB reserved in total by PyTorch)
_AMOUNTS = {
    "requested": (
        rf"[Tt]ried to allocate {_AMOUNT}",
        rf"Requested +: {_AMOUNT}",
        rf"trying to allocate {_AMOUNT}",
        rf"Requested amount of GPU memory \({_AMOUNT}\)",
        rf"Out of memory allocating {_AMOUNT}",
        rf"[Ff]ailed to allocate (?:request for )?{_AMOUNT}",
        rf"allocating {_AMOUNT} on device",
    ),
    "total": (
        rf"total capaci?ty of {_AMOUNT}",
        rf"{_AMOUNT} total capacity",
        rf"Device limit +: {_AMOUNT}",
        r"Free memory on device[^(]{0,40}\([0-9.]{1,12}/([0-9.]{1,12}) ([KMG]i?B)\)",
    ),
    "free": (
        rf"of which {_AMOUNT} is free",
        rf"{_AMOUNT} free",
        rf"Free \(according to CUDA\): {_AMOUNT}",
        r"Free memory on device[^(]{0,40}\(([0-9.]{1,12})/[0-9.]{1,12} ([KMG]i?B)\)",
    ),
    "in_use_process": (rf"this process has {_AMOUNT} memory in use",),
    "allocated": (
        rf"{_AMOUNT} is allocated by PyTorch",
        rf"{_AMOUNT} already allocated",
        rf"Currently allocated +: {_AMOUNT}",
        rf"allocated so far: {_AMOUNT}",
    ),
    "reserved_unallocated": (rf"{_AMOUNT} is reserved by PyTorch but unallocated",),
    "reserved": (rf"{_AMOUNT} reserved in total", rf"{_AMOUNT} cached"),
    "private_pools": (rf"with {_AMOUNT} allocated in private pools",),
    "allowed": (rf"{_AMOUNT} allowed;", rf"limit set to: {_AMOUNT}", rf"user-supplied memory fraction\) +: {_AMOUNT}"),
    "needed": (rf"desired GPU memory utilization \([0-9.]{{1,8}}, {_AMOUNT}\)", rf"\({_AMOUNT} KV cache is needed"),
    "available": (rf"available KV cache memory \({_AMOUNT}\)",),
}
_PATTERNS = {name: tuple(lazy(p) for p in patterns) for name, patterns in _AMOUNTS.items()}
_AMOUNT_RE = lazy(_AMOUNT)
_OTHER = lazy(rf"Process (\d{{1,9}}) has {_AMOUNT} memory in use")
_GPU = lazy(r"\bGPU[ :](\d{1,3})\b|on device (\d{1,3})\b|device:GPU:(\d{1,3})|GPU_(\d{1,3})_bfc")
_SHAPE = lazy(r"tensor with shape ?(\[[^\]]{1,120}\])")
# an advice in the message itself is not a setting
_SEGMENTS = lazy(r"(?<!setting )PYTORCH_(?:CUDA_)?ALLOC_CONF\S{0,40}expandable_segments:(True|False)")
_FRAMEWORKS = (
    ("trtllm", lazy(r"TensorRT-LLM|tensorrt_llm|maxTokensInPagedKvCache")),
    ("vllm", lazy(r"cache blocks|KV cache|Free memory on device|vllm")),
    ("sglang", lazy(r"mem-fraction-static")),
    ("jax", lazy(r"RESOURCE_EXHAUSTED|XlaRuntimeError|jax")),
    ("tensorflow", lazy(r"OOM when allocating|_bfc|tensorflow|stream_executor")),
    ("cupy", lazy(r"cupy|Out of memory allocating")),
    ("numba", lazy(r"numba|CudaAPIError")),
    ("llama.cpp", lazy(r"ggml|llama")),
    ("torch", lazy(r"torch|PyTorch|Tried to allocate|CUDA error: out of memory|Allocation on device")),
)


def amount(value: str, unit: str) -> float | None:
    """`value` (digits, thousands may be marked by commas) in `unit`, as MiB; None when it is not a number."""
    try:
        return round(float(value.replace(",", "").rstrip(".")) * _UNITS[unit.lower()], 3)
    except (KeyError, ValueError):
        return None


def sniff(head: str) -> int:
    """65 when a line of `head` says that device memory ran out."""
    found = matching(_WORDS, head) and any(_is_oom(line) for line in head.splitlines())
    return 65 if found else application_head(head)


def parse(lines: Sequence[Line], context: Context) -> list[Observation]:
    """One `cuda_oom` event for each process that ran out of device memory."""
    emit = Emitter(NAME, REVISION, context)
    app = peel_all(lines, context)
    segments = next((m[1] == "True" for m in (_SEGMENTS.search(line.text) for line in app) if m), None)
    owners = {n: traceback for traceback in tracebacks(app) for n in traceback.numbers}
    last: dict[str, tuple[int, str]] = {}
    for line in app:
        if not _is_oom(line.text):
            continue
        seen_at, seen = last.get(line.label, (-MERGE_LINES, ""))
        text = _joined(line, owners.get(line.number))
        bare = bool(_BARE.search(text)) and not _AMOUNT_RE.search(text)
        again = line.since - seen_at < MERGE_LINES and (bare or _core(text) == seen)
        last[line.label] = (line.number, seen if again else _core(text))
        if not again:
            _emit(emit, line, text, owners.get(line.number), segments)
    none_seen(emit, ("cuda_oom",), app)
    return emit.out


# What has not happened: WARNING: a larger batch may lead to CUDA out of memory     INFO: CUDA out of memory guard enabled     will retry on CUDA out of memory
_SPOKEN_OF = lazy(
    r"(?i)(?:\b(?:can|may|might|could|would)\s(?:also )?(?:cause|lead to|result in|trigger|run into|hit|go|get|raise)|\bto (?:avoid|prevent)|\bin case of|\bwill retry on|\bif|\bwhen|\bcatch(?:es|ing)?"
    r"|\bhandl(?:es?|ing))\s(?:an? |any |the )?CUDA out of memory|CUDA out of memory (?:guard|handl\w{1,4}|protection|detection|fallback|retry)\b"
)


def _is_oom(text: str) -> bool:
    if _NCCL.search(text) or not (_BARE.search(text) or _OTHERS.search(text)):
        return False
    return not _SPOKEN_OF.search(text) or _AMOUNT_RE.search(text) is not None


def _core(text: str) -> str:
    """The part that stays the same when a wrapper prints the message again."""
    found = re.search(r"[Tt]ri(?:ed|ying) to allocate.{0,300}|RESOURCE_EXHAUSTED.{0,200}", text)
    return found[0] if found else text[-200:]


def _joined(line: AppLine, traceback: Traceback | None) -> str:
    """The message with the lines that it goes on to."""
    if traceback is None or traceback.end is None or traceback.end.number > line.number:
        return line.text
    return traceback.text.replace("\n", " ")


def _emit(emit: Emitter, line: AppLine, text: str, traceback: Traceback | None, segments: bool | None) -> None:
    numbers = _numbers(text)
    others = [(pid, value) for pid, n, unit in _OTHER.findall(text) if (value := amount(n, unit)) is not None]
    if "in_use_process" not in numbers and (own := _own(others, numbers)):
        others.remove(own)
        numbers["in_use_process"] = own[1]
    gpu = _GPU.search(text)
    shape = _SHAPE.search(text)
    frame = traceback.user_frame if traceback else None
    fields: dict[str, Scalar] = {
        **numbers,
        "other_process": round(sum(value for _, value in others), 3) if others else None,
        "other_pids": ",".join(pid for pid, _ in others) or None,
        "gpu": next(int(group) for group in gpu.groups() if group) if gpu else None,
        "fragmentation": _share(numbers),
        "expandable_segments": segments,
        "shape": shape[1] if shape else None,
        "function": (frame.function or None) if frame else None,
        "file": frame.file if frame else None,
        "line_in_source": frame.line if frame else None,
        "framework": next((name for name, words in _FRAMEWORKS if words.search(text)), None),
        "rank": line.rank,
        "label": line.label or None,
        "message": excerpt(text),
    }
    at, clock = traceback.at if traceback else (line.at, line.clock)
    subject = rank_subject(line.rank, emit.document)
    emit.event("cuda_oom", subject, fields, line.number, line.raw, at=at, clock=clock)


def _numbers(text: str) -> dict[str, Scalar]:
    out: dict[str, float] = {}
    for name, patterns in _PATTERNS.items():
        found = next((m for m in (p.search(text) for p in patterns) if m), None)
        if found and (value := amount(found[1], found[2])) is not None:
            out[name] = value
    # the old format prints what is reserved in all, the new one what of it is unused
    if "reserved" in out and "allocated" in out and "reserved_unallocated" not in out:
        out["reserved_unallocated"] = round(max(0.0, out["reserved"] - out["allocated"]), 3)
    elif "reserved_unallocated" in out and "allocated" in out:
        out["reserved"] = round(out["reserved_unallocated"] + out["allocated"], 3)
    if _STARTS.search(text):  # looked at ahead of its first allocation: what is not free is another's
        out["reserved"] = 0.0
    return dict(out)


# vLLM: Free memory on device (12.31/79.11 GiB) on startup is less than desired GPU memory utilization (0.9, 71.2 GiB).
_STARTS = lazy(r"Free memory on device.{0,60} on startup is less than desired")


def _own(others: Sequence[tuple[str, float]], numbers: dict[str, Scalar]) -> tuple[str, float] | None:
    """The entry that is this process itself.

    Within a container the allocator does not find its own pid in the driver's list and prints
    itself as one of the others: the smallest that holds all that this allocator has reserved.
    """
    reserved = numbers.get("reserved", numbers.get("allocated"))
    if not isinstance(reserved, float) or reserved <= 0:
        return None
    return min((o for o in others if o[1] >= 0.98 * reserved), key=lambda o: o[1], default=None)


def _share(numbers: dict[str, Scalar]) -> float | None:
    """Reserved but unused memory over the request: above 1, the request would fit if it were in one piece."""
    unused, requested = numbers.get("reserved_unallocated"), numbers.get("requested")
    if isinstance(unused, float) and isinstance(requested, float) and requested > 0:
        return round(unused / requested, 4)
    return None


FORMAT = LogFormat(
    name=NAME,
    title="out of device memory in application logs",
    revision=REVISION,
    provides=("cuda_oom",),
    sniff=sniff,
    triggers=TRIGGERS,
    parse=parse,
    before=80,
    after=10,
)
