"""CUDA errors in the logs of programs: PyTorch, JAX, TensorFlow, CuPy, Numba, Triton and plain CUDA.

A failed kernel is reported by a later call of the host, so the traceback names the place
where the error was noticed. Two things name the place where it happened: a run with
``CUDA_LAUNCH_BLOCKING=1``, and the line that a device-side assertion prints.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field

from knowledge.lazy import lazy
from knowledge.observation import Clock, Observation, Scalar
from knowledge.record import dataclass
from knowledge.text import excerpt
from probes.base import Context, Line, LogFormat
from probes.parse._app_cuda import OUT_OF_MEMORY, SMI, Reading, classify
from probes.parse._app_emit import Emitter, none_seen
from probes.parse._app_lines import AppLine, application_head, matching, peel_all, rank_subject
from probes.parse._app_traceback import Frame, Traceback, tracebacks

NAME = "cuda-error"
REVISION = 5
MERGE_LINES = 400  # the same error of one process is printed by the traceback, the watchdog and std::terminate
MAX_PLACES = 200  # different assertions kept; a kernel prints one line for each thread

TRIGGERS = (
    r"(?:CUDA|HIP|Cuda|cuda) (?:(?:driver|runtime|Runtime|Driver) )?(?:API )?(?:[Ee]rror|failure)",
    r"cudaError[A-Z]|CUDA_ERROR_[A-Z]|CUDA unknown error|Triton Error|GPUassert|Cuda Runtime \(",
    r"C(?:UBLAS|UDNN|USOLVER|USPARSE|UFFT|URAND)_(?:STATUS_)?[A-Z]",
    r"thread: \[\d+,\d+,\d+\] Assertion|CUDA_LAUNCH_BLOCKING=1",
    r"system not yet initialized|\bcu(?:da)?[A-Z]\w{2,40}(?:\([^()]{0,40}\))? (?:return|fail|gives|gave|返回|报)",
    r"an illegal memory access was encountered|device-side assert triggered|uncorrectable ECC error encountered",
    r"(?:Memory access fault|HW Exception) by GPU node-|HSA_STATUS_ERROR_(?:MEMORY|EXCEPTION|ILLEGAL)",
    r"unspecified launch failure|misaligned address|no kernel image is available|failed call to cuInit",
    r"Found no NVIDIA driver|No CUDA GPUs are available|driver on your system is too old|is not compatible with the current PyTorch",
    r"out of resource: shared memory|not compiled with CUDA enabled|from cudaGetDeviceCount|CUDA driver version is insufficient",
    r"(?:^|: |\] |:)(?:No devices were found\s*$|NVIDIA-SMI has failed because it couldn't communicate)",
    r"ROCk module is NOT loaded|cuda driver library init failure: \d|torch\.cuda\.is_available\(\) is False",
)
_TRIGGER = lazy("|".join(f"(?:{t})" for t in TRIGGERS))
_WORDS = tuple(lazy(trigger) for trigger in TRIGGERS)
# srun: job 7 has been allocated resources      + nvidia-smi      exited with exit code 6
_JOB = lazy(
    r"^(?:srun|slurmstepd|prterun|mpirun|torchrun)\b|^\+ \S|Traceback \(most recent|\b[Ee]xited with exit code \d"
)
_NOT_OURS = lazy(r"NCCL (?:WARN|INFO|ERROR)|NCCL error(?: in|: )|ncclUnhandledCudaError|\bXid\b")
_ADVICE = lazy(r"For debugging consider|Compile with|might be asynchronously reported|^Search for `")
# ../aten/src/ATen/native/cuda/ScatterGatherKernel.cu:144: operator(): block: [0,0,0], thread: [32,0,0] Assertion `idx_dim >= 0 && idx_dim < index_size && "index out of bounds"` failed.
_ASSERT_HEAD = lazy(r"(\S{1,300}\.(?:cuh?|cpp|hpp|h|py))[:(](\d{1,7})\)?:? ?(.{0,400})")
_ASSERT_TAIL = lazy(r"\[\d+,\d+,\d+\], thread: \[\d+,\d+,\d+\] Assertion [`'](.{1,400}?)[`'] failed")
_BLOCKING = lazy(r"\bCUDA_LAUNCH_BLOCKING=1\b")
_API = lazy(
    r"when calling [`']?(\w{3,80})|[Cc]all to (cu\w{2,60})|\"(cu\w{3,60}) ?\(|from (cuda\w{3,60})\(\)|(cu\w{3,60})\(\) (?:failed|returned)"
)
_OPERATOR = lazy(
    r"\b(aten::\w{1,60}|torch(?:\.\w{1,40}){1,4}|F\.\w{1,40}|run_backward|jnp\.\w{1,40}|cupy\.\w{1,40})\b\(?"
)
_SHAPES = lazy(
    r"\((\d[\dx]{0,40} and \d[\dx]{0,40})\)|\b[Ss](?:hape|ize)s?\b[ :=]{0,3}((?:torch\.Size)?[\[(][^\])]{1,120}[\])]{1,2})"
)
_FRAMEWORKS = (
    ("triton", lazy(r"\btriton\b|Triton Error")),
    ("cupy", lazy(r"\bcupy")),
    ("numba", lazy(r"\bnumba\.|CudaAPIError|CudaSupportError")),
    ("jax", lazy(r"\bjax|XlaRuntimeError|\bxla\b")),
    ("tensorflow", lazy(r"tensorflow|stream_executor|failed call to cuInit")),
    ("torch", lazy(r"\btorch\b|c10|CUDA kernel errors might|ProcessGroupNCCL|AcceleratorError")),
)


@dataclass(slots=True)
class _Assert:
    """Device-side assertions that failed at one place."""

    file: str
    line: int
    function: str
    text: str
    first: AppLine
    threads: int = 1
    used: bool = False


@dataclass(slots=True)
class _Found:
    """One CUDA error of one process; repeats are counted."""

    reading: Reading
    line: AppLine
    text: str
    at: int | None
    clock: Clock
    frame: Frame | None = None
    operator: str = ""
    count: int = 1
    last: int = 0
    fields: dict[str, Scalar] = field(default_factory=dict)


def sniff(head: str) -> int:
    """60 when a line of `head` reports a CUDA error of a program."""
    for line in head.splitlines() if matching(_WORDS, head) else ():
        if _TRIGGER.search(line) and not any(p.search(line) for p in (_NOT_OURS, _ADVICE)) and not SMI.fullmatch(line):
            reading = classify(line)
            if reading is not None and reading.kind != OUT_OF_MEMORY:
                return 60
    return application_head(head)


def parse(lines: Sequence[Line], context: Context) -> list[Observation]:
    """Every CUDA error of the windows, one event for each process and kind."""
    emit = Emitter(NAME, REVISION, context)
    app = peel_all(lines, context)
    if not any(_JOB.search(line.raw) for line in app):  # alone they are an output of nvidia-smi
        app = [line for line in app if not SMI.fullmatch(line.text)]
    blocking = any(_BLOCKING.search(line.text) and not _ADVICE.search(line.text) for line in app)
    asserts = _assertions(app)
    for found in _errors(app, asserts):
        _emit(emit, found, blocking)
    none_seen(emit, ("cuda_error",), app)
    return emit.out


def _assertions(app: Sequence[AppLine]) -> list[_Assert]:
    groups: dict[tuple[str, str, int, str], _Assert] = {}
    for line in app:
        if ": block: [" not in line.text and " block: [" not in line.text:
            continue
        head, _, tail = line.text.partition("block: ")
        what, where = _ASSERT_TAIL.match(tail), _ASSERT_HEAD.search(head.rstrip(" :"))
        if not what or not where:
            continue
        key = (line.label, where[1], int(where[2]), what[1])
        if key in groups:
            groups[key].threads += line.times
        elif len(groups) < MAX_PLACES:
            groups[key] = _Assert(where[1], int(where[2]), where[3].strip(" :"), what[1], line, line.times)
    return list(groups.values())


def _errors(app: Sequence[AppLine], asserts: Sequence[_Assert]) -> list[_Found]:
    """All errors in the order of their lines, repeats merged, assertions tied to them."""
    raw: list[_Found] = []
    inside: set[int] = set()
    for traceback in tracebacks(app):
        inside |= traceback.numbers
        if found := _of_traceback(traceback):
            raw.append(found)
    raw += [found for line in app if line.number not in inside and (found := _of_line(line))]
    merged = _merge(sorted(raw, key=lambda found: found.line.number))
    for found in merged:
        if found.reading.kind == "device_assert" and (origin := _nearest(asserts, found.line)):
            origin.used = True
            _tie(found, origin)
    for origin in asserts:
        if not origin.used:
            alone = _Found(
                Reading("device_assert", 710, "cudaErrorAssert", True),
                origin.first,
                origin.first.text,
                origin.first.at,
                origin.first.clock,
            )
            _tie(alone, origin)
            merged.append(alone)
    return sorted(merged, key=lambda found: found.line.number)


def _of_traceback(traceback: Traceback) -> _Found | None:
    end = traceback.end
    if end is None or _NOT_OURS.search(traceback.text):
        return None
    reading = classify("\n".join(traceback.text.split("\n")[:2]))
    if reading is None or reading.kind == OUT_OF_MEMORY:
        return None
    at, clock = traceback.at
    found = _Found(reading, end, traceback.text, at, clock, traceback.user_frame, count=end.times, last=end.number)
    code = [traceback.text, *(frame.code for frame in reversed(traceback.frames))]
    operator = next((o[1] for o in map(_OPERATOR.search, code) if o), "")
    found.operator = "backward" if operator == "run_backward" else operator
    return found


def _of_line(line: AppLine) -> _Found | None:
    text = line.text
    if not _TRIGGER.search(text) or _NOT_OURS.search(text) or _ADVICE.search(text) or "] Assertion " in text:
        return None
    reading = classify(text)
    if reading is None or reading.kind == OUT_OF_MEMORY:
        return None
    if reading.kind == "other" and not re.search(r"(?:CUDA|HIP) (?:driver )?error: \S|cudaError|CUDA_ERROR_", text):
        return None
    return _Found(reading, line, text, line.at, line.clock, count=line.times, last=line.number)


def _merge(found: Sequence[_Found]) -> list[_Found]:
    out: list[_Found] = []
    latest: dict[tuple[str | None, str], _Found] = {}
    for item in found:
        kind, label = item.reading.kind, item.line.label
        # what std::terminate prints carries no rank: it belongs to the last error of its kind
        known = latest.get((label, kind)) or (latest.get((None, kind)) if not label and item.frame is None else None)
        if known is None or item.line.since - known.last > MERGE_LINES:
            known = item
            out.append(item)
        else:
            known.count += item.count
            known.last = item.line.number
            known.frame = known.frame or item.frame
            known.operator = known.operator or item.operator
            known.text = max(known.text, item.text, key=len)
        latest[label, kind] = latest[None, kind] = known
    return out


def _nearest(asserts: Sequence[_Assert], line: AppLine) -> _Assert | None:
    """The assertion that this error reports: of the same process, else of an unnamed one, the last before it."""
    for label in dict.fromkeys((line.label, "")):
        before = [a for a in asserts if a.first.label == label and a.first.number < line.number]
        if before:
            return before[-1]
    return None


def _tie(found: _Found, origin: _Assert) -> None:
    found.fields |= {
        "kernel_file": origin.file,
        "kernel_line": origin.line,
        "kernel": origin.function or None,
        "assertion": excerpt(origin.text),
        "threads": origin.threads,
    }


def _emit(emit: Emitter, found: _Found, blocking: bool) -> None:
    reading, frame, line = found.reading, found.frame, found.line
    sync = blocking or "assertion" in found.fields
    api = _API.search(found.text)
    shapes = _SHAPES.search(found.text)
    fields: dict[str, Scalar] = {
        "kind": reading.kind,
        "name": reading.name or None,
        "api": next((group for group in api.groups() if group), None) if api else None,
        "function": frame.function or None if frame else None,
        "file": frame.file if frame else None,
        "line_in_source": frame.line if frame else None,
        "operator": found.operator or None,
        "shapes": next((group for group in shapes.groups() if group), None) if shapes else None,
        "rank": line.rank,
        "label": line.label or None,
        "framework": next((name for name, words in _FRAMEWORKS if words.search(found.text)), None),
        "sync": sync,
        "deferred": reading.asynchronous and not blocking,
        "count": found.count,
        "message": excerpt(found.text.split("\n", 1)[0]),
        **found.fields,
    }
    subject = rank_subject(line.rank, emit.document)
    emit.event("cuda_error", subject, fields, line.number, line.raw, code=reading.code, at=found.at, clock=found.clock)


FORMAT = LogFormat(
    name=NAME,
    title="CUDA errors in application logs",
    revision=REVISION,
    provides=("cuda_error",),
    sniff=sniff,
    triggers=TRIGGERS,
    parse=parse,
    before=80,
    after=40,
    counts=("cuda_error",),
)
