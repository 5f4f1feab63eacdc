"""fio: whether its jobs came to their end, and the first error that one met.

Source of the lines: fio's stat.c and io_u.c (fio 3):

    fio: io_u error on file /raid/t.0.0: Input/output error: read offset=8123123712, buflen=1048576
    read: (groupid=0, jobs=4): err= 5 (file:io_u.c:1845, func=io_u error, error=Input/output error): pid=81231: Mon ...
    Run status group 0 (all jobs):

How fast it was is not judged: that depends on what is measured.
"""

from __future__ import annotations

import re

from knowledge.observation import Observation
from probes.base import Context, DocumentFormat
from probes.parse import _app_bench
from probes.parse._app_emit import Emitter, clean_lines

NAME, REVISION = "fio", 1
PROVIDES = _app_bench.COMMON
# read: (g=0): rw=read, bs=(R) 1024KiB-1024KiB, ...        read: (groupid=0, jobs=4): err= 0: pid=81231: Mon Nov 30 02:11:33 2026
_JOB = re.compile(r".{1,80}: \((?:g=\d{1,6}\): rw=|groupid=\d{1,6}, jobs=\d{1,6}\): err=\s{0,3}\d).{0,400}")
_END = re.compile(r"Run status group \d{1,6} \(all jobs\):\s{0,4}")
_ERROR = re.compile(
    r"fio: (?:io_u error on file|pid=\d{1,9}, err=|first direct IO errored|job .{1,80} hasn't exited|.{1,200}: No space left on device).{0,300}|.{1,80}: \(groupid=\d{1,6}, jobs=\d{1,6}\): err=\s{0,3}[1-9].{0,300}"
)


def sniff(head: str) -> int:
    """92 for the line of a job."""
    return 92 if any(_JOB.fullmatch(line.text[:600]) for line in clean_lines(head)[:2000]) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Whether it ran to its end without an error, and the first error."""
    emit = Emitter(NAME, REVISION, context)
    lines = clean_lines(text)
    error = next((line for line in lines if _ERROR.fullmatch(line.text.strip()[:700])), None)
    end = next((line for line in lines if _END.fullmatch(line.text[:80])), None)
    _app_bench.named(emit, NAME, next((line for line in lines if _JOB.fullmatch(line.text[:600])), None))
    _app_bench.completed(emit, end is not None and error is None, end)
    if error:
        _app_bench.failed(emit, error)
    return emit.out


FORMAT = DocumentFormat(NAME, "fio", REVISION, PROVIDES, sniff, parse)
