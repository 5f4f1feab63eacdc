"""nccl-tests and rccl-tests: the table of sizes and bandwidths of a collective."""

from __future__ import annotations

import re
from dataclasses import field

from knowledge.observation import Observation, Scope, Status, Subject
from knowledge.record import dataclass
from probes.base import Context, DocumentFormat, Line
from probes.parse import _app_bench
from probes.parse._active_facts import NCCL_TESTS as FACTS
from probes.parse._app_emit import Emitter, clean_lines, whole

NAME = "nccl-tests"
REVISION = 3

#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
_HEADER = re.compile(r"#\s{1,12}size\s{1,30}count\s{1,30}type\b.{0,200}busbw")
_ROW = re.compile(r"\s{0,30}(\d{1,18})\s{1,30}(\d{1,18})\s{1,20}([a-z]\w{1,20})\s(.{1,200})")
# #  Rank  0 Group  0 Pid 305376 on inst-1 device  0 [0000:0f:00] NVIDIA A100-SXM4-40GB
_RANK = re.compile(
    r"#\s{1,8}Rank\s{1,8}(\d{1,7})\s.{0,60}?Pid\s{1,8}\d{1,9} on\s{1,40}(\S{1,100})\s{1,8}device"
    r"(?:\s{1,8}\d{1,4} \[[0-9a-fA-Fx:.]{2,16}\] (\S.{0,80}))?"
)
_START = re.compile(r"# Collective test starting: (\w{2,40})")
_COMMAND = re.compile(
    r"\b((?:all_reduce|all_gather|reduce_scatter|alltoall|broadcast|reduce|sendrecv|gather|scatter|hypercube)_perf)\b"
)
_AVERAGE = re.compile(r"# Avg bus bandwidth\s{0,8}:\s{0,8}([0-9.]{1,20})")
_BOUNDS = re.compile(r"# Out of bounds values\s{0,8}:\s{0,8}(\d{1,12})\s{1,4}(\w{1,20})")
_VERSION = re.compile(r"\b[NR]CCL version ([0-9][\w.+-]{0,60})|nccl-library=(\d{4,6})")
# gpu-3: Test NCCL failure common.cu:958 'unhandled cuda error'
_FAILURE = re.compile(
    r"Test (?:NCCL|CUDA|RCCL|HIP) failure|Test failure \S{1,80}:\d{1,6}|failed to init|No CUDA devices"
)
# Behind the failure the place in the source of nccl-tests: it ended before it had a table
_FAILED = re.compile(r"\bTest (?:NCCL|CUDA|RCCL|HIP) failure \S{1,60}\.(?:cu|cpp|hip|h):\d{1,6} '")


@dataclass(frozen=True, slots=True)
class _Row:
    size: int
    line: Line
    redop: str
    # (time us, algbw GB/s, busbw GB/s, wrong) out of place, then in place; None where N/A is printed
    groups: tuple[tuple[float | None, float | None, float | None, float | None], ...]


@dataclass(slots=True)
class _Run:
    """One table."""

    op: str = ""
    op_line: Line | None = None
    rows: list[_Row] = field(default_factory=list)
    ranks: dict[int, str] = field(default_factory=dict)  # rank -> host
    models: dict[int, str] = field(default_factory=dict)  # rank -> name of its GPU
    version: tuple[str, Line] | None = None
    average: tuple[float, Line] | None = None
    bounds: tuple[int, str, Line] | None = None
    header: Line | None = None
    columns: int = 2


def sniff(head: str) -> int:
    """95 when the head of the table or the line that starts a test stands there, 92 for the test's own word of its failure."""
    found = any(_HEADER.match(line.lstrip()) for line in head.splitlines() if "busbw" in line)
    if found or _START.search(head):
        return 95
    return 92 if _FAILED.search(head) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Bandwidths and errors of each table, the whole of it and row by row."""
    emit = Emitter(NAME, REVISION, context)
    runs = _runs(text)
    failure = next((line for line in clean_lines(text) if _FAILURE.search(line.text)), None)
    if not runs:
        if failure and _FAILED.search(text):
            _app_bench.named(emit, NAME, failure)
            _app_bench.completed(emit, False, failure)
            _app_bench.failed(emit, failure)
        return emit.out
    _app_bench.named(emit, NAME, runs[0].header or runs[0].op_line)
    for index, run in enumerate(runs, 1):
        _emit(emit, run, index if len(runs) > 1 else 0)
    last = runs[-1]
    done = last.average[1] if last.average else None
    _app_bench.completed(emit, done is not None, done)
    if failure:
        _app_bench.failed(emit, failure)
    return emit.out


def _runs(text: str) -> list[_Run]:
    runs = [_Run()]
    command: tuple[str, Line] | None = None
    for line in clean_lines(text):
        run, body = runs[-1], line.text.lstrip()
        if start := _START.match(body):
            if run.header or run.op:
                runs.append(run := _Run())
            run.op, run.op_line = start[1], line
        elif _HEADER.match(body):
            if run.header and run.rows:
                runs.append(run := _Run(ranks=dict(run.ranks), models=dict(run.models)))
            run.header, run.columns = line, max(1, body.count("busbw"))
        elif rank := _RANK.match(body):
            if run.rows:
                runs.append(run := _Run())
            run.ranks[int(rank[1])] = rank[2]
            run.models[int(rank[1])] = (rank[3] or "").strip()
        elif row := _ROW.match(line.text):
            if run.header and (read := _row(row, line, run.columns)):
                run.rows.append(read)
        elif average := _AVERAGE.match(body):
            value = _app_bench.decimal(average[1])
            run.average = (value, line) if value is not None else None
        elif bounds := _BOUNDS.match(body):
            run.bounds = (int(bounds[1]), bounds[2], line)
        elif version := _VERSION.search(body):
            run.version = run.version or (version[1] or _library(version[2]), line)
        if not run.op and (found := _COMMAND.search(body)):
            command = command or (found[1], line)
    runs = [run for run in runs if run.header or run.op]
    for run in runs:
        if not run.op and command:
            run.op, run.op_line = command
    return runs


def _library(code: str) -> str:
    """NCCL's version code since 2.9: 22707 is 2.27.7."""
    number = int(code)
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def _row(found: re.Match[str], line: Line, columns: int) -> _Row | None:
    size = whole(found[1])
    words = found[4].split()
    columns = min(columns, len(words) // 4)
    if size is None or not columns:
        return None
    tail = words[-4 * columns :]
    groups = []
    for start in range(0, 4 * columns, 4):
        time, algbw, busbw, wrong = (_app_bench.decimal(word) for word in tail[start : start + 4])
        groups.append((time, algbw, busbw, wrong))
    if groups[0][0] is None or groups[0][2] is None:
        return None
    lead = words[: -4 * columns]
    return _Row(size, line, lead[0] if lead else "", tuple(groups))


def _emit(emit: Emitter, run: _Run, index: int) -> None:
    op, assumed = run.op.removesuffix("_perf"), ""
    if not op and _is_all_reduce(run):
        op, assumed = "all_reduce", "the output does not name it; busbw is 2(n-1)/n of algbw, as of no other collective"
    subject = Subject(Scope.COLLECTIVE, (op or "collective") + (f"#{index}" if index else ""), emit.document)
    line = run.op_line or run.header
    if op and line:
        emit.fact("benchmark.collective.op", subject, op, line.number, line.text, detail=assumed)
    if run.ranks:
        shown = f"{len(run.ranks)} ranks on {len(set(run.ranks.values()))} nodes"
        place = run.header.number if run.header else None
        emit.fact("benchmark.collective.ranks", subject, len(run.ranks), place, shown)
        emit.fact("benchmark.collective.nodes", subject, len(set(run.ranks.values())), place, shown)
        models = set(run.models.values())
        if len(models) == 1 and all(models):
            emit.fact(
                "benchmark.collective.gpu", subject, next(iter(models)), place, f"{shown}, each on {', '.join(models)}"
            )
    if run.version:
        emit.fact("benchmark.collective.nccl", subject, run.version[0], run.version[1].number, run.version[1].text)
    _totals(emit, subject, run)
    for row in run.rows:
        _rows(emit, subject, row)


def _totals(emit: Emitter, subject: Subject, run: _Run) -> None:
    name = "benchmark.collective"
    if run.average:
        emit.fact(f"{name}.busbw.avg", subject, run.average[0], run.average[1].number, run.average[1].text)
    else:
        line = run.header.number if run.header else None
        emit.missing(f"{name}.busbw.avg", subject, Status.FAILED, "the run ends before its last line", line=line)
    checked = [(w, row) for row in run.rows for *_, w in row.groups if w is not None]
    if run.bounds and (checked or run.bounds[1] != "OK"):
        good = run.bounds[1] == "OK" and run.bounds[0] == 0
        emit.fact(f"{name}.correct", subject, good, run.bounds[2].number, run.bounds[2].text)
    elif run.bounds:
        # "0 OK" is printed as well when nothing was compared
        line, text = run.bounds[2].number, run.bounds[2].text
        reason = "the run did not check its results (validation off)"
        emit.missing(f"{name}.correct", subject, Status.UNSUPPORTED, reason, line=line, excerpt=text)
    if checked:
        bad = next((row for w, row in checked if w > 0), checked[0][1])
        emit.fact(f"{name}.wrong", subject, int(sum(w for w, _ in checked if w >= 1)), bad.line.number, bad.line.text)
    rows = [row for row in run.rows if row.size > 0]
    if not rows:
        return
    best = max(rows, key=lambda row: max(b for _, _, b, _ in row.groups if b is not None))
    largest = max(rows, key=lambda row: row.size)
    first = min(rows, key=lambda row: row.size)
    top = max(b for _, _, b, _ in best.groups if b is not None)
    emit.fact(f"{name}.busbw.max", subject, top, best.line.number, best.line.text)
    emit.fact(f"{name}.largest", subject, largest.size, largest.line.number, largest.line.text)
    emit.fact(f"{name}.busbw.largest", subject, largest.groups[0][2], largest.line.number, largest.line.text)
    emit.fact(f"{name}.latency", subject, first.groups[0][0], first.line.number, first.line.text)


def _rows(emit: Emitter, subject: Subject, row: _Row) -> None:
    if row.size == 0:
        return
    here = _app_bench.part(emit, f"{row.size} B", subject)
    for prefix, group in zip(("", "in_place."), row.groups, strict=False):
        for name, value in zip(("time", "algbw", "busbw"), group, strict=False):
            if value is not None:
                emit.fact(f"benchmark.collective.{prefix}{name}", here, value, row.line.number, row.line.text)


def _is_all_reduce(run: _Run) -> bool:
    """busbw = algbw x 2(n-1)/n holds for all_reduce only (nccl-tests, PERFORMANCE.md). Two ranks cannot be told apart."""
    count = len(run.ranks)
    if count < 3 or not run.rows:
        return False
    _, algbw, busbw, _ = max(run.rows, key=lambda row: row.size).groups[0]
    return bool(algbw and busbw and algbw > 1 and abs(busbw / algbw - 2 * (count - 1) / count) < 0.01)


FORMAT = DocumentFormat(name=NAME, title="nccl-tests", revision=REVISION, provides=FACTS, sniff=sniff, parse=parse)
