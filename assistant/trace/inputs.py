"""What a file is, by its first bytes: a trace for the reader, an export of another profiler, or no trace at all."""

from __future__ import annotations

import re
from pathlib import Path

from knowledge.errors import InputError
from knowledge.language import Text
from probes.trace.columns import Wanted
from probes.trace.reading.reader import Trace

HEAD = 1 << 16  # bytes by which a file is recognised


def head(path: str) -> bytes:
    """The first bytes of a file, unpacked. InputError when it cannot be opened, is empty or damaged from the start."""
    from probes.trace.reading.document import Document

    if Path(path).exists() and not Path(path).is_file():  # a pipe gives its bytes once: to the reader
        return b"{"
    document = Document(path)
    try:
        start = bytes(document.read()[:HEAD])
    finally:
        document.close()
    if not start and not document.problem:
        raise InputError(
            f"{path} is empty", hint="the profiler writes its trace when it stops: did the job end before that?"
        )
    if not start:
        raise InputError(
            f"{path} is damaged: {document.problem}",
            hint="was the file copied whole, and did the profiler end before the job?",
        )
    return start


def kind_of(start: bytes) -> str:
    """What a file is, by its first bytes: trace, nsys, nsys-trace, nsys-sum, ncu, ncu-rep, snapshot,
    speedscope, folded; empty for anything else.
    """
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"SQLite format 3\0"):
        return "nsys"
    if start[:4] == b"NVR\0":
        return "ncu-rep"
    if start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return "snapshot"
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):  # UTF-16
        return "trace"
    if text[:1] in (b"{", b"["):
        if b"speedscope.app" in start or (
            b'"shared"' in start and b'"profiles"' in start and b"traceEvents" not in start
        ):
            return "speedscope"
        if b'"device_traces"' in start or (b'"segments"' in start and b"traceEvents" not in start):
            return "snapshot"
        return "trace"
    from probes.trace.nsight import ncu_csv
    from probes.trace.reading import nsys_csv

    if ncu_csv.looks_like(start):
        return "ncu"
    if nsys_csv.looks_like_trace(start):
        return "nsys-trace"
    if nsys_csv.looks_like_sum(start):
        return "nsys-sum"
    if _FOLDED.match(text):
        return "folded"
    return ""


_FOLDED = re.compile(rb"[^\x00\n]{1,4000};[^\x00\n]{0,60000} \d{1,18}\r?\n")
_WHAT: dict[str, tuple[Text, str]] = {
    "nsys-sum": (Text("a summary of kernels by nsys stats", "nsys stats 的 kernel 汇总"), "gpudiag trace kernels FILE"),
    "ncu": (Text("an Nsight Compute report", "Nsight Compute 报告"), "gpudiag trace kernels FILE"),
    "snapshot": (Text("a memory snapshot of PyTorch", "PyTorch 显存快照"), "gpudiag trace summary FILE"),
    "speedscope": (Text("a speedscope profile", "speedscope 剖析文件"), "gpudiag trace flame FILE"),
    "folded": (Text("folded stacks", "折叠调用栈"), "gpudiag trace flame FILE"),
    "ncu-rep": (
        Text("a binary Nsight Compute report", "Nsight Compute 二进制报告"),
        "ncu --import FILE --csv --page raw > report.csv",
    ),
}


def exported(path: str, needs: Wanted) -> Trace | None:
    """The trace of an export of Nsight Systems; None for what the reader takes.

    InputError for a file that is something else than a trace; it says what, and what takes it.
    """
    kind = kind_of(start := head(path))
    if kind == "trace":
        return None
    if kind == "nsys":
        from probes.trace.reading.nsys import read_sqlite

        return read_sqlite(path, needs)
    if kind == "nsys-trace":
        from probes.trace.reading.nsys_csv import read_trace_csv

        return read_trace_csv(path, needs)
    if kind in _WHAT:
        what, command = _WHAT[kind]
        raise InputError(
            f"{path} is {what.en}, not a profiler trace",
            hint=f"{'export it first: ' if kind == 'ncu-rep' else ''}{command}",
        )
    binary = b"\0" in start[:4096]
    raise InputError(
        f"{path} is no trace: {'binary data' if binary else 'it does not begin as JSON does'}",
        hint="a trace is what torch.profiler's export_chrome_trace or tensorboard_trace_handler writes (.json, .json.gz)"
        + ("; of an .nsys-rep: nsys export --type sqlite FILE" if path.endswith((".nsys-rep", ".qdrep")) else ""),
    )
