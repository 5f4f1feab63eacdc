"""Failures of Python programs on GPUs that are not CUDA, NCCL or device-memory errors, and how the job ended.

Data loaders, checkpoints, shared memory, missing libraries, forks, numeric blow-ups, rendezvous stores:
kind names them. Any other exception that ended a process has kind ``exception``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from knowledge.lazy import lazy
from knowledge.observation import Clock, Observation, Scalar
from knowledge.record import dataclass
from knowledge.text import excerpt
from probes.base import Context, Line, LogFormat
from probes.parse import _app_exit
from probes.parse._app_cuda import classify
from probes.parse._app_emit import Emitter, none_seen
from probes.parse._app_lines import AppLine, application_head, matching, peel_all, rank_subject
from probes.parse._app_traceback import EXCEPTION, Frame, Traceback, tracebacks

NAME = "python-traceback"
REVISION = 7

TRIGGERS = (
    r"Traceback \(most recent call last\)",
    r"[A-Za-z](?:Error|Exception)(?:: |$)",  # all tracebacks begin alike: this line tells one from another
    r"DataLoader worker|bus error encountered in worker|Too many open files|received 0 items of ancdata",
    r"(?:lib[\w+-]+\.so[.\d]*: (?:cannot open shared object|version )|undefined symbol: |NVMLError_|NVML Shared Library Not Found)",
    r"Cannot re-initialize CUDA in forked subprocess|unable to (?:open shared memory object|mmap|write to file) ",
    r"(?i)loss is (?:nan|inf)|found nan|nan (?:values )?in |returned nan values|(?:loss|grad_norm)['\"]?\s*[:= ]\s*-?(?:nan|inf)\b|number of nan iterations:\s*[1-9]",
    r"(?i)gradient overflow|OVERFLOW! Rank|Minimum loss scale reached|loss scale already at minimum",
    r"client socket has timed out|waiting for clients\.|store based barrier|Rendezvous\w*Error|EADDRINUSE|address already in use",
    r"Connection closed by peer \[",
    r"(?i)falling back to (?:the )?cpu|Skipping registering GPU devices|Cannot dlopen some GPU libraries|GPU will not be used|no usable GPU found|no compatible GPUs were discovered|\"inference compute\" id=\S+ library=cpu",
    r"Failed to create (?:CUDA|Tensorrt|ROCM|MIGraphX)ExecutionProvider|Specified provider '(?:CUDA|Tensorrt|ROCM|MIGraphX)ExecutionProvider' is not in available",
    r"device_type of 'cuda', but CUDA is not available",
    r"engine plan file is (?:generated on an incompatible device|not compatible with this version of TensorRT)",
    r"Serialized Engine Version: \d",
    r"\[Errno (?:5|116|122)\]|Disk quota exceeded",
    r"inline_container\.cc|PytorchStream(?:Reader|Writer) failed|failed finding central directory|Error while deserializing header|expected \d+ more bytes|Ran out of input",
    r"^/job:\w+/replica:\d+/task:\d+$|/task:\d+ heartbeat timeout\. This|threads to join the rendezvous",
    r"Watchdog caught collective operation timeout",
    *_app_exit.TRIGGERS,
)

# kind and the words that tell it, the more exact first
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("dataloader_shm", lazy(r"DataLoader worker .{0,60}killed by signal: Bus error|bus error encountered in worker|insufficient shared memory")),
    ("dataloader_worker_killed", lazy(r"DataLoader worker .{0,60}(?:killed by signal|exited unexpectedly)")),
    ("shared_memory", lazy(r"unable to (?:open shared memory object|mmap \d+ bytes|write to file) ?.{0,80}(?:</torch_|/dev/shm|torch_)")),
    ("too_many_open_files", lazy(r"Too many open files|received 0 items of ancdata")),
    ("disk_full", lazy(r"\[Errno 28\]|No space left on device")),
    # OSError: [Errno 122] Disk quota exceeded: '/home/u/ckpt'    OSError: [Errno 5] Input/output error    OSError: [Errno 116] Stale file handle
    ("quota", lazy(r"\[Errno 122\]|Disk quota exceeded")),
    ("storage_error", lazy(r"\[Errno (?:5|116)\]")),
    # [enforce fail at inline_container.cc:626] . unexpected pos 20864 vs 20758       PytorchStreamWriter failed writing file data/7: file write failed
    ("checkpoint_not_written", lazy(r"inline_container\.cc:\d{1,5}\].{0,40}unexpected pos|PytorchStreamWriter failed (?:writing|closing)")),
    # a record that the archive never had ("failed locating file") is another matter
    ("checkpoint_damaged", lazy(
        r"PytorchStreamReader failed reading|failed finding central directory|Error while deserializing header"
        r"|unexpected EOF, expected \d{1,20} more bytes|UnpicklingError: (?:invalid load key|pickle data was truncated)|EOFError: Ran out of input"
    )),
    # UNAVAILABLE: The following tasks are unhealthy (stopped sending heartbeats):       /job:jax_worker/replica:0/task:5       alone on the next line
    ("jax_task_lost", lazy(r"^/job:\w{1,40}/replica:\d{1,6}/task:\d{1,6}$|/task:\d{1,6} heartbeat timeout\. This indicates")),
    ("xla_rendezvous", lazy(r"Termination timeout .{0,200}Expected \d{1,6} threads to join the rendezvous, but only \d{1,6}")),
    ("fork_cuda", lazy(r"Cannot re-initialize CUDA in forked subprocess")),
    ("missing_library", lazy(r"lib[\w+-]{1,60}\.so[.\d]{0,20}: (?:cannot open shared object|undefined symbol|version)|undefined symbol: ")),
    ("nvml", lazy(r"NVMLError|NVML Shared Library Not Found")),
    ("address_in_use", lazy(r"EADDRINUSE|[Aa]ddress already in use")),
    ("store_timeout", lazy(
        r"client socket has timed out|waiting for clients\.|store based barrier|RendezvousTimeoutError"
        r"|RendezvousConnectionError|DistStoreError|DistNetworkError|[Ww]ait timeout after \d+ ?ms"
    )),
    ("gloo", lazy(r"Connection closed by peer \[|gloo/transport")),
    ("nan_loss", lazy(
        r"(?i)\bloss is (?:nan|inf)|found nan|\bnan (?:values )?in (?:local |the )?(?:forward|loss|grad|output|tensor|backward)|returned nan values"
        r"|\bloss['\"]?\s*[:= ]\s*-?(?:nan|inf)\b|\bgrad_norm['\"]?\s*[:= ]\s*-?nan\b|number of nan iterations:\s*[1-9]"
    )),
    # A skipped step alone is how a loss scaler finds its scale. It fails when it can go no lower:
    # Exception: Current loss scale already at minimum - cannot decrease scale anymore.       FloatingPointError: Minimum loss scale reached (0.0001).
    # [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 1, reducing to 1
    # Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 1.0
    ("grad_overflow", lazy(
        r"(?i)Minimum loss scale reached|loss scale already at minimum"
        r"|(?:gradient overflow|OVERFLOW! Rank).{0,120}reducing (?:loss scale )?to (?:1(?:\.0*)?|0(?:\.\d*)?|\d\.\d+e-\d+)$"
    )),
    # JAX: An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed. Falling back to cpu.
    # TensorFlow: Cannot dlopen some GPU libraries. ... Skipping registering GPU devices...        Could not find cuda drivers on your machine, GPU will not be used.
    # llama.cpp: warning: no usable GPU found, --gpu-layers option will be ignored        onnxruntime: Failed to create CUDAExecutionProvider. Require cuDNN 9.* and CUDA 12.*.
    # ollama: msg="no compatible GPUs were discovered"        msg="inference compute" id=0 library=cpu variant="" compute="" driver=0.0
    # What a single operator does on the CPU is another matter: the line has to speak of the device.
    ("cpu_fallback", lazy(
        r"CUDA-enabled jaxlib is not installed|No GPU/TPU found, falling back to CPU|Skipping registering GPU devices|Cannot dlopen some GPU libraries"
        r"|no compatible GPUs were discovered|msg=\"inference compute\" id=\S{1,80} library=cpu\b"
        r"|Could not find cuda drivers on your machine, GPU will not be used|no usable GPU found, --gpu-layers|device_type of 'cuda', but CUDA is not available"
        r"|Failed to create (?:CUDA|Tensorrt|ROCM|MIGraphX)ExecutionProvider"
        r"|Specified provider '(?:CUDA|Tensorrt|ROCM|MIGraphX)ExecutionProvider' is not in available"
        r"|\b(?:CUDA|GPU|ROCm|HIP)\b(?: requested but| is| was)? ?(?:not available|unavailable|not found|not detected).{0,80}[Ff]alling back to (?:the )?(?:CPU|cpu)"
    )),
    # [TRT] [E] ... The engine plan file is generated on an incompatible device, expecting compute 8.0 got compute 9.0, please rebuild.
    # Serialization assertion stdVersionRead == kSERIALIZATION_VERSION failed.Version tag does not match. Note: Current Version: 238, Serialized Engine Version: 236)
    ("engine_mismatch", lazy(
        r"Version tag does not match\. Note: Current Version: \d{1,6}, Serialized Engine Version: \d{1,6}"
        r"|engine plan file is (?:generated on an incompatible device|not compatible with this version of TensorRT)"
    )),
)  # fmt: skip
_WORDS = tuple(lazy(trigger, re.MULTILINE) for trigger in TRIGGERS[1:])
_STANDALONE = frozenset(kind for kind, _ in _KINDS) - {"disk_full", "nvml"}
_OTHERS = lazy(
    r"NCCL|nccl(?:System|Internal|Remote|Unhandled|Invalid)|DistBackendError|ncclUniqueId|[Oo]ut of memory|RESOURCE_EXHAUSTED"
    r"|No available memory for the cache blocks|Free memory on device|KV cache"
)
# NCCL INFO NET/Plugin : dlerror=libnccl-net.so: cannot open shared object file ... No plugin found
# W tensorflow/...: Could not load dynamic library 'libnvinfer.so.7'; dlerror: libnvinfer.so.7: cannot open shared ...
# INFO ... Unable to initialize backend 'tpu': INTERNAL: Failed to open libtpu.so: libtpu.so: cannot open shared ...
_OPTIONAL = lazy(r"NCCL INFO|libtpu\.so|libnccl-(?:net|tuner|profiler|env)|libnvinfer|No plugin found")
_LAUNCHER = lazy(
    r"ChildFailedError|SignalException|CalledProcessError|ProcessExitedException|RayTaskError|WorkerCrashed"
)
# How the callers of an engine of vLLM or SGLang met its end, which has a cause of its own.
_ECHO = lazy(
    r"EngineDeadError|Engine core initialization failed|Engine process failed to start|Background loop has errored"
)
# What has not happened: WARNING [utils.py:2168] Found ulimit of 51200 ... This can cause fd limit errors like `OSError: [Errno 24] Too many open files`.
_WARNED = lazy(
    r"(?i)\b(?:can|may|might|could|would)\s+(?:also\s+)?(?:cause|lead to|result in|trigger|produce|end in|run into|fail with|raise)\b[^\n]{0,120}$"
    r"|\b(?:to (?:avoid|prevent)|in case of|if you (?:see|get|hit|encounter))\b[^\n]{0,80}$"
)
_NOT_FAILED = lazy(r"(?:KeyboardInterrupt|SystemExit|GeneratorExit|StopIteration)$|\w{1,60}Warning$")

# After an exception that was handled the program goes on: [2026-11-26 02:11:42] step 18121 | loss 2.109     INFO: 10.0.0.7:51122 - "POST /v1/completions HTTP/1.1" 200 OK
_GOES_ON = lazy(
    r"(?i)\b(?:step|iter|iteration|epoch|batch)s?\b['\"]?\s{0,4}[:=\[ ]\s{0,4}\d.{0,200}\b(?:loss|lr|time|s/it|it/s|acc)|HTTP/\d\.\d\" 2\d\d\b"
    r"|\btraining (?:finished|completed?|done)\b"
)
_FINISHED = lazy(r"(?i)^.{0,80}\btraining (?:finished|completed?|done)\b(?! (?:with|in) (?:error|fail))")

_TIMED_OUT = lazy(r"Watchdog caught collective operation timeout")
# How a rank meets the end of another one; of its own trouble an exception of another kind tells.
_LOST = lazy(
    r"NCCL (?:communicator was aborted|error)|ncclRemoteError|DistBackendError|Connection (?:closed|reset) by (?:remote )?peer"
)
_OF_PEERS = lazy(r"Connection|BrokenPipe|Timeout|Dist\w{1,20}Error$|CancelledError")
_PID = lazy(r"\(pid(?:\(s\))? (\d{1,9})")
_OF_RANK = lazy(
    r"\(RANK (\d{1,6})\)"
)  # Traceback (most recent call last): (RANK 13)        of torch.distributed.checkpoint
_KILLED = lazy(r"killed by signal: ([\w ]{1,30})")
_SIGNALS = {"Bus error": 7, "Killed": 9, "Segmentation fault": 11, "Aborted": 6, "Terminated": 15}
_LIBRARY = lazy(r"(lib[\w+-]{1,60}\.so[.\d]{0,20})")
_SYMBOL = lazy(r"undefined symbol: (\w{1,200})")
_ADDRESS = lazy(r"\(([\w.:-]{1,80}), (\d{1,5})\)|\[([\w.:]{1,60})\]:(\d{1,5})|port: (\d{1,5})")
_JOINED = lazy(r"(\d{1,6})/(\d{1,6}) clients joined|world_size=(\d{1,6}), worker_count=(\d{1,6})")
_TIMEOUT = lazy(r"(?:timed out after|Timed out after|timeout after) (\d{1,9}) ?(ms|s|seconds)")
_ERRNO = lazy(r"\[Errno (\d{1,3})\]")


@dataclass(slots=True)
class _Found:
    """One failure of one process; repeats are counted."""

    kind: str
    line: AppLine
    text: str
    at: int | None
    clock: Clock
    exception: str = ""
    frame: Frame | None = None
    count: int = 1
    went_on: bool = False
    timed_out: bool = False
    alone: bool = False
    place: str = ""


# AssertionError: Rank 21: found NaN in local forward loss calculation. Device: 5, node: gpu044
_PLACES = (
    ("step", lazy(r"(?i)\b(?:global_?step|iteration|iter|step)['\"]?[ :=]{1,10}(\d{1,9})\b")),
    ("rank", lazy(r"(?i)\brank[ :=]{1,2}(\d{1,6})\b")),
    ("GPU", lazy(r"(?i)\b(?:device|gpu|cuda)[ :=]{1,2}(\d{1,2})\b")),
    ("node", lazy(r"(?i)\b(?:node|host)(?:name)?[ :=]{1,2}([a-z][\w.-]{1,62}\d[\w.-]{0,20})\b")),
)


def sniff(head: str) -> int:
    """50 for a traceback or another line of these kinds; 0 when there is none."""
    if "Traceback (most recent call last)" in head:
        return 50
    lines = head.splitlines()
    words = matching(_WORDS, "\n".join(lines))
    found = any(word.search(line) for line in lines for word in words)
    return 45 if found else application_head(head)


def parse(lines: Sequence[Line], context: Context) -> list[Observation]:
    """`python_error`, `rank_failed` and `job_terminated` events of the windows."""
    emit = Emitter(NAME, REVISION, context)
    app = peel_all(lines, context)
    going, waited, lost = _last_work(app), _first_timeout(app), {line.label for line in app if _LOST.search(line.text)}
    # torch marks the lines of an exception with the rank, the program's own it does not: that it came to its end is of all
    finished = max((line.number for line in app if not line.label and _FINISHED.search(line.text)), default=0)
    for found in _failures(app):
        found.went_on = found.line.number < max(going.get(found.line.label, 0), finished)
        found.alone = (
            found.line.label not in lost and bool(lost and found.line.label) and not _OF_PEERS.search(found.exception)
        )
        found.timed_out = waited.get(found.line.label, found.line.number) < found.line.number
        _emit(emit, found)
    _app_exit.rank_failures(emit, app)
    _app_exit.job_ends(emit, app)
    none_seen(emit, ("python_error", "rank_failed", "job_terminated"), app)
    return emit.out


def _last_work(app: Sequence[AppLine]) -> dict[str, int]:
    """The number of the last line of each label that shows the program at work."""
    return {line.label: line.number for line in app if _GOES_ON.search(line.text)}


def _first_timeout(app: Sequence[AppLine]) -> dict[str, int]:
    """The number of the first line of each label that tells of a collective that timed out."""
    return {line.label: line.number for line in reversed(app) if _TIMED_OUT.search(line.text)}


def _failures(app: Sequence[AppLine]) -> list[_Found]:
    inside: set[int] = set()
    raw: list[_Found] = []
    whole = tracebacks(app)
    for traceback in whole:
        inside |= traceback.numbers
        if found := _of_traceback(traceback):
            raw.append(found)
    raw += [
        _Found(kind, line, line.text, line.at, line.clock, count=line.times)
        for line in app
        if line.number not in inside and (kind := _kind(line.text)) in _STANDALONE
    ]
    merged: dict[tuple[str, str, str], _Found] = {}
    for found in sorted(raw, key=lambda found: found.line.number):
        # a loop that prints "loss: nan" says one thing; two different exceptions say two
        key = (found.line.label, found.kind, _which(found))
        found.place = _place_of(found)
        if key in merged:
            merged[key].count += found.count
            merged[key].place = merged[key].place or found.place
            if found.kind == "exception" or (found.kind == "grad_overflow" and found.exception):
                merged[
                    key
                ].line = found.line  # where the run ended: the overflows before it are steps that were skipped
            if found.kind == "grad_overflow" and found.exception:
                merged[key].text = found.text
            merged[key].frame = merged[key].frame or found.frame
            merged[key].exception = merged[key].exception or found.exception
        else:
            merged[key] = found
    if any(line.times > 1 for line in app):
        _count_folded(app, merged, {t.end.number for t in whole if t.end is not None})
    return list(merged.values())


def _count_folded(app: Sequence[AppLine], merged: Mapping[tuple[str, str, str], _Found], ends: Set[int]) -> None:
    """Count the exceptions whose calls were folded: their lines are not the end of any traceback."""
    for line in app:
        named = EXCEPTION.match(line.text) if line.number not in ends else None
        if named and (known := merged.get((line.label, "exception", named[1]))):
            known.count += line.times
            known.line = max(known.line, line, key=lambda line: line.number)


def _which(found: _Found) -> str:
    """What tells two failures of one kind apart."""
    if found.kind == "exception":
        return found.exception
    if found.kind == "jax_task_lost":
        return found.text
    library = _LIBRARY.search(found.text)
    return library[1] if library and found.kind == "missing_library" else ""


def _kind(text: str) -> str:
    kind = next(
        (kind for kind, words in _KINDS if (m := words.search(text)) and not _WARNED.search(text[: m.start()])), ""
    )
    return "" if kind == "missing_library" and _OPTIONAL.search(text) else kind


def _of_traceback(traceback: Traceback) -> _Found | None:
    end, text = traceback.end, traceback.text
    if end is None or _LAUNCHER.search(traceback.exception) or _NOT_FAILED.search(traceback.exception):
        return None
    if _ECHO.search(text.split("\n", 1)[0]):
        return None
    kind = _kind(text)
    if not kind:
        # what other formats report, and what the program handled, is no failure of its own
        first = text.split("\n", 1)[0]
        if traceback.caught or _OTHERS.search(text) or classify(first) is not None:
            return None
        kind = "exception"
    at, clock = traceback.at
    if of := _OF_RANK.search(traceback.head.text):
        end = replace(end, rank=int(of[1]))
    return _Found(kind, end, text, at, clock, traceback.exception, traceback.user_frame, end.times)


def _emit(emit: Emitter, found: _Found) -> None:
    text, frame, line = found.text, found.frame, found.line
    joined, address, timeout = _JOINED.search(text), _ADDRESS.search(text), _TIMEOUT.search(text)
    killed, errno = _KILLED.search(text), _ERRNO.search(text)
    pid, library, symbol = _PID.search(text), _LIBRARY.search(text), _SYMBOL.search(text)
    network = found.kind in ("store_timeout", "address_in_use", "gloo")
    fields: dict[str, Scalar] = {
        "kind": found.kind,
        "exception": found.exception or None,
        "function": (frame.function or None) if frame else None,
        "file": frame.file if frame else None,
        "line_in_source": frame.line if frame else None,
        "pid": int(pid[1]) if pid else None,
        "signal": next((n for word, n in _SIGNALS.items() if killed[1].startswith(word)), None) if killed else None,
        "errno": int(errno[1]) if errno else None,
        "library": library[1] if library and found.kind == "missing_library" else None,
        "symbol": symbol[1] if symbol else None,
        "address": (address[1] or address[3]) if address and network else None,
        "port": next((int(p) for p in (address[2], address[4], address[5]) if p), None)
        if address and network
        else None,
        "joined": int(joined[1] or joined[4]) if joined else None,
        "expected": int(joined[2] or joined[3]) if joined else None,
        "timeout_s": _seconds(timeout) if timeout else None,
        "count": found.count,
        "went_on": found.went_on,
        "timed_out": found.timed_out,
        "alone": found.alone,
        "rank": line.rank,
        "label": line.label or None,
        "place": found.place or None,
        "message": excerpt(text.split("\n", 1)[0]),
    }
    subject = rank_subject(line.rank, emit.document)
    emit.event("python_error", subject, fields, line.number, line.raw, at=found.at, clock=found.clock)


_FILES = frozenset({"disk_full", "quota", "storage_error", "checkpoint_not_written", "checkpoint_damaged"})
_FILE = lazy(r"['\"](/[^'\"]{1,200})['\"]")  # OSError: [Errno 5] Input/output error: '/lustre/ckpt/__13_0.distcp'
_TASK = lazy(r"/(task):(\d{1,6})")
_ARRIVED = lazy(r"Expected (\d{1,6}) threads to join the rendezvous, but only (\d{1,6})")


def _place_of(found: _Found) -> str:
    """The step of a loss, the file of what storage refused, the task or the number of threads that did not come."""
    if found.kind == "nan_loss":
        return _place(found.text, found.line.rank)
    if found.kind in _FILES and (file := _FILE.search(found.text[:1000])):
        return file[1]
    if found.kind == "exception" and found.line.rank is None and found.line.label.isdecimal():
        return f"task {found.line.label}"  # srun --label
    if found.kind == "jax_task_lost" and (task := _TASK.search(found.text)):
        return f"{task[1]} {task[2]}"
    if found.kind == "xla_rendezvous" and (threads := _ARRIVED.search(found.text)):
        return f"{threads[2]}/{threads[1]}"
    return ""


def _place(text: str, rank: int | None) -> str:
    """``step 5100, rank 21, GPU 5, node gpu044``, as far as the line names them; its rank where nothing else has told it."""
    parts = [
        f"{word} {m[1]}"
        for word, where in _PLACES
        if (m := where.search(text.split("\n", 1)[0][:1000])) is not None and (word != "rank" or rank is None)
    ]
    return ", ".join(parts)


def _seconds(found: re.Match[str]) -> float:
    return int(found[1]) / (1000 if found[2] == "ms" else 1)


FORMAT = LogFormat(
    name=NAME,
    title="Python tracebacks and how jobs ended",
    revision=REVISION,
    provides=("python_error", "rank_failed", "job_terminated"),
    sniff=sniff,
    triggers=TRIGGERS,
    parse=parse,
    before=40,  # of a deep stack: the calls stand between the first line and the last
    after=80,
    counts=("python_error", "job_terminated"),
)
