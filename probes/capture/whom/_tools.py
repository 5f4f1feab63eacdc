"""The tools around a capture: which py-spy is here and what it reads, and which other profiler a target is under."""

from __future__ import annotations

import re

from knowledge.observation import Status
from probes.capture.inject import interpreter
from probes.capture.model import Process
from probes.capture.whom import identity
from probes.capture.whom._match import line_of
from probes.collectors import processes as collector
from probes.host import Host

# The newest Python that each release of py-spy reads (its release notes; 0.4.2 and 0.4.3 were tried on 3.14).
_READS = (((0, 4, 2), (3, 14)), ((0, 4, 0), (3, 13)), ((0, 3, 13), (3, 11)))
_VERSION = re.compile(r"py-spy (\d{1,4})\.(\d{1,4})\.(\d{1,4})")  # py-spy 0.4.3
# Variables and mapped files by which Nsight and others stand between the program and CUPTI.
_INJECTION = ("CUDA_INJECTION64_PATH",)
_MAPPED = re.compile(
    rb"/(lib(?:ToolsInjection\w*|cuda-injection|cuinj64|TreeLauncherTargetInjection|InterceptorInjectionTarget|sanitizer-collection)"
    rb"[\w.-]*\.so[.0-9]*)"
)
_ABOVE = {
    "nsys": "Nsight Systems", "nsys-launcher": "Nsight Systems", "ncu": "Nsight Compute", "nv-nsight-cu-cli": "Nsight Compute",
    "compute-sanitizer": "Compute Sanitizer",
}  # fmt: skip


def py_spy_version(said: str) -> tuple[int, int, int] | None:
    """The numbers of what ``py-spy --version`` says; None when it says nothing of the kind."""
    found = _VERSION.match(said)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def newest_read(version: tuple[int, int, int]) -> tuple[int, int]:
    """The newest Python that a release of py-spy is known to read."""
    return next((python for least, python in _READS if version >= least), (3, 10))


def free_threaded(process: Process) -> bool:
    """Whether the process runs a Python built without the GIL."""
    found = interpreter.image(process.pid)
    return found is not None and interpreter.free_threaded(found)


def profiled_by(process: Process, host: Host) -> str:
    """The profiler of CUDA that a process is under, and how that shows; empty when none is seen."""
    reply = host.read(f"/proc/{process.pid}/environ")
    told = collector.environment_of(reply.data) if reply.status is Status.OK else {}
    for name in _INJECTION:
        if told.get(name):
            return f"{name}={told[name]}"
    found = _MAPPED.search(host.read(f"/proc/{process.pid}/maps").data)
    if found:
        return found[1].decode("ascii", "replace")
    rows = identity.rows_now()
    here, seen = process.parent, {process.pid}
    while here in rows and here not in seen:
        seen.add(here)
        name = line_of(identity.command(here, host)).program
        if name in _ABOVE:
            return f"{_ABOVE[name]} (process {here}, {name})"
        here = int(str(rows[here][collector.PPID]))
    return ""
