"""Writes Kineto files event by event. See `tests.trace_files`, from which tests import it."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from probes.trace.columns import Wanted, both
from probes.trace.reading import reader
from probes.trace.reading.reader import Trace

Us: TypeAlias = int | float | str | Decimal  # microseconds

_OLD = {"kernel": "Kernel", "gpu_memcpy": "Memcpy", "gpu_memset": "Memset", "cpu_op": "Operator",
        "cuda_runtime": "Runtime", "python_function": "PythonFunction"}  # fmt: skip
_PID = 4242


def nanoseconds(us: Us) -> int:
    """Whole ns of microseconds, exact for text and for floats of at most three decimals."""
    return round(Decimal(str(us)) * 1000)


class TraceFile:
    """A trace under construction. Methods add one event each and return the trace itself."""

    def __init__(self, *, rank: int | None = None, world: int | None = None, gpu: str = "NVIDIA H100 80GB HBM3",
                 devices: int = 1, base_ns: int | None = None, at: Us = 0, head: dict[str, Any] | None = None) -> None:  # fmt: skip
        self.events: list[dict[str, Any]] = []
        self.head: dict[str, Any] = {"schemaVersion": 1}
        self.shift_ns = nanoseconds(at)  # added to every time: an epoch base, or nothing
        if gpu:
            self.head["deviceProperties"] = [
                {"id": i, "name": gpu, "totalGlobalMem": 80 << 30, "numSms": 132} for i in range(devices)
            ]
        if rank is not None:
            self.head["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world or rank + 1}
        if base_ns is not None:
            self.head["baseTimeNanoseconds"] = base_ns
        self.head.update(head or {})

    def add(self, cat: str, name: str, start: Us, dur: Us | None, pid: int | str, tid: int | str, args: dict[str, Any],
            ph: str = "X") -> TraceFile:  # fmt: skip
        """Any event. Arguments whose value is None are left out."""
        event: dict[str, Any] = {"ph": ph, "cat": cat, "name": name, "pid": pid, "tid": tid}
        event["ts"] = nanoseconds(start) + self.shift_ns
        if dur is not None:
            event["dur"] = nanoseconds(dur)
        event["args"] = {k: v for k, v in args.items() if v is not None}
        self.events.append(event)
        return self

    def kernel(self, name: str, start: Us, dur: Us, *, stream: int | str = 7, correlation: int | None = None,
               external: int | None = None, device: int = 0, grid: Sequence[int] = (128, 1, 1),
               block: Sequence[int] = (256, 1, 1), **args: Any) -> TraceFile:  # fmt: skip
        """A kernel on the device."""
        base = {"External id": external, "device": device, "stream": stream, "correlation": correlation,
                "grid": list(grid), "block": list(block)}  # fmt: skip
        return self.add("kernel", name, start, dur, device, stream, base | args)

    def memcpy(self, name: str, start: Us, dur: Us, *, bytes: int = 1 << 20, stream: int | str = 7,
               correlation: int | None = None, device: int = 0, **args: Any) -> TraceFile:  # fmt: skip
        """A copy on the device."""
        base = {"device": device, "stream": stream, "correlation": correlation, "bytes": bytes}
        return self.add("gpu_memcpy", name, start, dur, device, stream, base | args)

    def memset(self, start: Us, dur: Us, *, bytes: int = 4096, stream: int | str = 7, correlation: int | None = None,
               device: int = 0, **args: Any) -> TraceFile:  # fmt: skip
        """A set on the device."""
        base = {"device": device, "stream": stream, "correlation": correlation, "bytes": bytes}
        return self.add("gpu_memset", "Memset (Device)", start, dur, device, stream, base | args)

    def launch(self, start: Us, dur: Us, *, correlation: int | None = None, name: str = "cudaLaunchKernel",
               tid: int | str = 1, pid: int | str = _PID, **args: Any) -> TraceFile:  # fmt: skip
        """A runtime call: a launch, or whatever `name` says (cudaMemcpyAsync, cudaStreamSynchronize, ...)."""
        cat = "cuda_driver" if name.startswith("cu") and not name.startswith("cuda") else "cuda_runtime"
        return self.add(cat, name, start, dur, pid, tid, {"correlation": correlation} | args)

    def op(self, name: str, start: Us, dur: Us, *, dims: Any = None, types: Any = None, external: int | None = None,
           module: str | None = None, tid: int | str = 1, pid: int | str = _PID, **args: Any) -> TraceFile:  # fmt: skip
        """An operator of the framework."""
        base = {"External id": external, "Input Dims": dims, "Input type": types, "Module Hierarchy": module}
        return self.add("cpu_op", name, start, dur, pid, tid, base | args)

    def python(self, name: str, start: Us, dur: Us, *, tid: int | str = 1, pid: int | str = _PID,
               **args: Any) -> TraceFile:  # fmt: skip
        """A Python function: "train.py(12): step", "nn.Module: Linear_0", "<built-in method ...>"."""
        return self.add("python_function", name, start, dur, pid, tid, args)

    def annotation(self, name: str, start: Us, dur: Us, *, gpu: bool = False, stream: int | str = 7, tid: int | str = 1,
                   pid: int | str = _PID, **args: Any) -> TraceFile:  # fmt: skip
        """A record_function or NVTX range; `gpu`: its device side."""
        if gpu:
            return self.add("gpu_user_annotation", name, start, dur, 0, stream, {"stream": stream} | args)
        return self.add("user_annotation", name, start, dur, pid, tid, args)

    def memory(self, at: Us, bytes: int, *, address: int = 1, allocated: int = 0, reserved: int = 0, device: int = 0,
               device_type: int = 1, tid: int | str = 1) -> TraceFile:  # fmt: skip
        """An allocator event: `bytes` below zero is a free."""
        args = {"Total Reserved": reserved, "Total Allocated": allocated, "Bytes": bytes, "Addr": address,
                "Device Id": device, "Device Type": device_type}  # fmt: skip
        return self.add("cpu_instant_event", "[memory]", at, None, _PID, tid, args, ph="i")

    def wait(self, name: str, start: Us, dur: Us, *, stream: int | str = 7, device: int = 0) -> TraceFile:
        """A cuda_sync row on a stream: no busy time."""
        return self.add("cuda_sync", name, start, dur, device, stream, {"stream": stream, "device": device})

    def thread_name(self, name: str, *, tid: int | str = 1, pid: int | str = _PID) -> TraceFile:
        """What a thread is called."""
        return self.add("__metadata", "thread_name", 0, None, pid, tid, {"name": name}, ph="M")

    def text(self, style: str = "kineto") -> str:
        """The file."""
        events = [_event(e, style) for e in self.events]
        if style == "compact":
            return json.dumps(self.head)[:-1] + ', "traceEvents": [' + ", ".join(events) + "]}"
        head = "".join(f"  {json.dumps(k)}: {json.dumps(v)},\n" for k, v in self.head.items())
        return "{\n" + head + '  "traceEvents": [\n' + ",\n".join(events) + '\n  ],\n  "traceName": "t.json"\n}\n'

    def save(self, path: Path, *, style: str = "kineto", gz: bool | None = None, cut: int | None = None) -> str:
        """Writes the file (gzip: as told, else by the name's end), cut off after `cut` bytes; its path as text."""
        data = self.text(style).encode("utf-8")
        if gz if gz is not None else path.name.endswith(".gz"):
            data = gzip.compress(data, 6)
        path.write_bytes(data[:cut])
        return str(path)


class HasTrace(Protocol):
    """A job that fills a trace."""

    trace: TraceFile


def read(file: TraceFile | HasTrace, *needs: Wanted, style: str = "kineto") -> Trace:
    """The trace, written to a file that is gone afterwards, and read for `needs` (``summary.NEEDS``, ``wanted(...)``)."""
    trace = file if isinstance(file, TraceFile) else file.trace
    with tempfile.TemporaryDirectory() as folder:
        return reader.read(trace.save(Path(folder) / "trace.json", style=style), both(*needs))


def _event(event: dict[str, Any], style: str) -> str:
    fields = {k: json.dumps(v, ensure_ascii=False) for k, v in event.items()}
    for key in ("ts", "dur"):
        if key in event:
            fields[key] = _microseconds(event[key], style)
    if style == "old":
        fields["cat"] = json.dumps(_OLD.get(event["cat"], event["cat"]))
    if style == "compact":
        return "{" + ", ".join(f'"{k}": {fields[k]}' for k in reversed(fields)) + "}"
    head = ", ".join(f'"{k}": {v}' for k, v in fields.items() if k not in ("ts", "dur", "args"))
    times = ", ".join(f'"{k}": {fields[k]}' for k in ("ts", "dur") if k in fields)
    return f'  {{\n    {head},\n    {times},\n    "args": {fields["args"]}\n  }}'


def _microseconds(ns: int, style: str) -> str:
    if style == "old":
        return str(round(ns / 1000))
    sign, ns = "-" if ns < 0 else "", abs(ns)
    if style == "compact" and ns % 1000 == 0:
        return f"{sign}{ns // 1000}"
    return f"{sign}{ns // 1000}.{ns % 1000:03d}"
