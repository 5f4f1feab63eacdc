"""gpu-burn: progress lines with speed, errors and temperature of each GPU, and its verdict.

Progress is printed over itself (carriage returns). The error counts start at zero after
each summary, so they are added up over the summaries.
"""

from __future__ import annotations

import re

from knowledge.observation import Observation, Status, Subject, gpu
from knowledge.record import dataclass
from probes.base import Context, DocumentFormat, Line
from probes.parse import _app_bench
from probes.parse._active_facts import GPU_BURN as FACTS
from probes.parse._app_emit import Emitter, clean_lines, whole

NAME = "gpu-burn"
REVISION = 1

_DEVICE = re.compile(r"GPU (\d{1,3}): (.{1,100}?) \(UUID: (GPU-[0-9a-f-]{36})\)")
# 50.0%  proc'd: 2261 (7150 Gflop/s) - 0 (0 Gflop/s)   errors: 0 - 12  (WARNING!)- -1  (DIED!)  temps: 38 C - --
_PROGRESS = re.compile(
    r"[0-9.]{1,6}% {1,4}proc'd: (.{1,6000}?) errors: (.{1,3000}?) temps: ((?:\d{1,3} C|--)(?: - (?:\d{1,3} C|--)){0,511})"
)
_SPEED = re.compile(r"(-?\d{1,12}) \((-?\d{1,9}) Gflop/s\)(\s{0,3}\(DIED!\))?")
_ERRORS = re.compile(r"(-?\d{1,15})\s{0,3}(\((?:WARNING|DIED)!\))?")
_VERDICT = re.compile(r"\s{0,8}GPU (\d{1,3}): (OK|FAULTY)\s*$")
_TESTED = re.compile(r"Tested (\d{1,3}) GPUs?:")
_FAILURE = re.compile(
    r"No clients are alive|Couldn't init a GPU test|No CUDA devices|Couldn't (?:find|open)|Error in \"|CUDA_ERROR_"
)


@dataclass(slots=True)
class _Gpu:
    """What the run says of one GPU."""

    errors: int = 0  # of the summaries that are over
    pending: int = 0  # since the last summary
    peak: int = 0
    gflops: int = 0
    hottest: int | None = None
    died: bool = False
    verdict: str = ""
    verdict_line: Line | None = None
    line: Line | None = None
    worst: Line | None = None


def sniff(head: str) -> int:
    """95 for a progress line, 90 for the list of verdicts; 0 otherwise."""
    if re.search(r"proc'd: -?\d{1,12} \(-?\d{1,9} Gflop/s\)", head):
        return 95
    return 90 if re.search(r"^Tested \d{1,3} GPUs?:\s*$", head, re.MULTILINE) and "GPU 0:" in head else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Verdict, errors, speed and highest temperature of each GPU."""
    emit = Emitter(NAME, REVISION, context)
    subjects: dict[int, Subject] = {}
    gpus: dict[int, _Gpu] = {}
    failure: Line | None = None
    end: Line | None = None
    first: Line | None = None
    for line in clean_lines(text):
        if steps := list(_PROGRESS.finditer(line.text)):
            first = first or line
            for step in steps:
                _progress(gpus, step, line)
        elif "Summary at:" in line.text:
            for one in gpus.values():
                one.errors, one.pending = one.errors + one.pending, 0
        elif found := _VERDICT.match(line.text):
            one = gpus.setdefault(int(found[1]), _Gpu())
            one.verdict, one.verdict_line = found[2].lower(), line
        elif found := _DEVICE.match(line.text):
            subjects[int(found[1])] = gpu(found[3], context.host)
            emit.fact("gpu.name", subjects[int(found[1])], found[2], line.number, line.text)
        elif _TESTED.match(line.text):
            end = line
        elif _FAILURE.search(line.text):
            failure = failure or line
    if gpus or failure:
        _app_bench.named(emit, NAME, first or end or failure)
        _app_bench.completed(emit, end is not None, end)
    for index, one in sorted(gpus.items()):
        _emit(emit, subjects.get(index, gpu(f"index:{index}", context.host)), one)
    if failure:
        _app_bench.failed(emit, failure)
    return emit.out


def _progress(gpus: dict[int, _Gpu], found: re.Match[str], line: Line) -> None:
    speeds = _SPEED.findall(found[1])
    errors = _ERRORS.findall(found[2])
    temperatures = [whole(word.replace("C", "")) for word in found[3].split(" - ")]
    for index, (done, gflops, dead) in enumerate(speeds[:512]):
        one = gpus.setdefault(index, _Gpu())
        one.line = line
        one.died = one.died or done == "-1" or bool(dead)
        one.gflops = int(gflops) or one.gflops
        if index < len(errors):
            count, note = errors[index]
            one.died = one.died or "DIED" in note
            one.pending = max(one.pending, int(count))
            if int(count) > one.peak:
                one.peak, one.worst = int(count), line
        heat = temperatures[index] if index < len(temperatures) else None
        if heat is not None:
            one.hottest = max(heat, one.hottest or heat)


def _emit(emit: Emitter, subject: Subject, one: _Gpu) -> None:
    line, verdict = one.line or one.verdict_line, one.verdict_line
    if one.verdict and verdict:
        emit.fact("benchmark.burn.verdict", subject, one.verdict, verdict.number, verdict.text)
    else:
        reason = "the run ends before its verdict"
        emit.missing("benchmark.burn.verdict", subject, Status.FAILED, reason, line=line.number if line else None)
    if one.line is None or line is None:
        return
    worst = one.worst or line
    emit.fact("benchmark.burn.errors", subject, one.errors + one.pending, worst.number, worst.text)
    emit.fact("benchmark.burn.died", subject, one.died, line.number, line.text)
    emit.fact("benchmark.burn.gflops", subject, one.gflops, line.number, line.text)
    if one.hottest is not None:
        emit.fact("benchmark.burn.temperature.max", subject, one.hottest, line.number, line.text)


FORMAT = DocumentFormat(name=NAME, title="gpu-burn", revision=REVISION, provides=FACTS, sniff=sniff, parse=parse)
