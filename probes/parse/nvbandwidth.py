"""nvbandwidth: copy bandwidth between host and GPUs and between GPUs, as matrices."""

from __future__ import annotations

import re
from dataclasses import field
from statistics import median

from knowledge.identity import normalise_pci
from knowledge.observation import Observation, Status, Subject, gpu
from knowledge.record import dataclass
from probes.base import Context, DocumentFormat, Line
from probes.parse import _app_bench
from probes.parse._active_facts import NVBANDWIDTH as FACTS
from probes.parse._app_emit import Emitter, clean_lines

NAME = "nvbandwidth"
REVISION = 2

_VERSION = re.compile(r"nvbandwidth Version: (\S{1,40})")
_DRIVER = re.compile(r"Driver Version: ([0-9][\w.]{1,30})\s*$")
_DEVICE = re.compile(r"Device (\d{1,3}): (.{1,100}?)(?: \(([0-9a-fA-F:.]{5,20})\))?\s*$")
_RUNNING = re.compile(r"Running (\w{3,80})\.")
_KIND = re.compile(r"mem\w{1,10} .{1,120}\((GB/s|ns|us)\)\s*$")
_COLUMNS = re.compile(r"\s{1,40}\d{1,3}(?:\s{1,20}\d{1,3}){0,256}\s*$")
_CELLS = re.compile(r"\s{0,10}(\d{1,3})((?:\s{1,20}(?:-?[0-9.]{1,20}|N/A|ERROR|nan)){1,256})\s*$")
_SUM = re.compile(r"SUM (\w{3,80}) ([0-9.]{1,20})")
_WAIVED = re.compile(r"(?:(\w{3,80}) (?:WAIVED|waived)|Waived:)")
_ERROR = re.compile(
    r"\[(CUDA_ERROR_\w{3,60}|NVML_ERROR\w{0,60})\]|\bERROR\b|Invalid value when checking the pattern|CUDA_ERROR_\w{3,60}"
)

# which test gives the figure of a GPU: copies of one GPU at a time, by its copy engine
_PER_GPU = {"host_to_device_memcpy_ce": "benchmark.h2d", "device_to_host_memcpy_ce": "benchmark.d2h"}
_PEERS = ("device_to_device_memcpy_write_ce", "device_to_device_memcpy_read_ce")


@dataclass(slots=True)
class _Test:
    name: str
    line: Line
    unit: str = ""
    cells: dict[tuple[int, int], tuple[float, Line]] = field(default_factory=dict)
    columns: list[int] = field(default_factory=list)
    total: tuple[float, Line] | None = None


def sniff(head: str) -> int:
    """95 when the tool names itself or a bandwidth matrix stands there."""
    if _VERSION.search(head):
        return 95
    return 90 if re.search(r"^Running \w{3,80}_(?:ce|sm)\.\s*$", head, re.MULTILINE) and "memcpy" in head else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Sums and extremes of each test, and the host and peer bandwidth of each GPU."""
    emit = Emitter(NAME, REVISION, context)
    tests: list[_Test] = []
    devices: dict[int, Subject] = {}
    first: Line | None = None
    error: Line | None = None
    lines = clean_lines(text)
    for line in lines:
        if found := _DEVICE.match(line.text):
            _device(emit, devices, found, line)
        elif found := _RUNNING.match(line.text):
            tests.append(_Test(found[1], line))
        elif tests:
            _feed(tests[-1], line)
        elif found := _DRIVER.match(line.text):
            emit.fact("node.driver.version", emit.node, found[1], line.number, line.text)
        first = first or (line if _VERSION.search(line.text) else None)
        error = error or (line if _ERROR.search(line.text) else None)
    if first or tests:
        _app_bench.named(emit, NAME, first or tests[0].line)
    for test in tests:
        _emit(emit, test, devices)
    if tests:
        last = tests[-1]
        whole = last.total is not None or not last.unit
        _app_bench.completed(emit, whole and error is None, last.total[1] if last.total else last.line)
    if error and (first or tests):
        _app_bench.failed(emit, error)
    return emit.out


def _device(emit: Emitter, devices: dict[int, Subject], found: re.Match[str], line: Line) -> None:
    index = int(found[1])
    # the number in brackets is domain, bus and device: 00000009:01:00
    subject = gpu(normalise_pci(found[3]) if found[3] else f"index:{index}", emit.context.host)
    devices[index] = subject
    emit.fact("gpu.name", subject, found[2].strip(), line.number, line.text)


def _feed(test: _Test, line: Line) -> None:
    text = line.text
    if kind := _KIND.match(text):
        test.unit = kind[1]
    elif (total := _SUM.match(text)) and total[1] == test.name:
        value = _app_bench.decimal(total[2])
        test.total = (value, line) if value is not None else None
    elif test.unit and not test.columns and _COLUMNS.match(text):
        test.columns = [int(word) for word in text.split()]
    elif test.columns and not test.total and (row := _CELLS.match(text)):
        for column, word in zip(test.columns, row[2].split(), strict=False):
            value = _app_bench.decimal(word)
            if value is not None:
                test.cells[int(row[1]), column] = (value, line)


def _emit(emit: Emitter, test: _Test, devices: dict[int, Subject]) -> None:
    subject = _app_bench.part(emit, test.name)
    if not test.cells and not test.total:
        reason = "waived: this machine cannot run it, or the output ends before the result"
        emit.missing(
            "benchmark.copy.sum", subject, Status.UNSUPPORTED, reason, line=test.line.number, excerpt=test.line.text
        )
        return
    values = [value for value, _ in test.cells.values()]
    if test.unit != "GB/s":
        if values and test.unit == "ns":
            line = next(iter(test.cells.values()))[1]
            emit.fact("benchmark.copy.latency", subject, max(values), line.number, line.text)
        return
    if test.total:
        emit.fact("benchmark.copy.sum", subject, test.total[0], test.total[1].number, test.total[1].text)
    if values:
        for name, cell in (
            ("min", min(test.cells.values(), key=lambda c: c[0])),
            ("max", max(test.cells.values(), key=lambda c: c[0])),
        ):
            emit.fact(f"benchmark.copy.{name}", subject, cell[0], cell[1].number, cell[1].text)
    _per_gpu(emit, test, devices)


def _per_gpu(emit: Emitter, test: _Test, devices: dict[int, Subject]) -> None:
    """The best NUMA node's figure for host copies, the worst peer's for copies between GPUs."""
    fact = _PER_GPU.get(test.name) or ("benchmark.d2d.min" if test.name == _PEERS[0] else "")
    if not fact:
        return
    worst = fact == "benchmark.d2d.min"
    by_gpu: dict[int, list[tuple[float, Line]]] = {}
    for (row, column), cell in test.cells.items():
        by_gpu.setdefault(row if worst else column, []).append(cell)
    for index, cells in sorted(by_gpu.items()):
        value, line = (min if worst else max)(cells, key=lambda cell: cell[0])
        subject = devices.get(index, gpu(f"index:{index}", emit.context.host))
        emit.fact(fact, subject, value, line.number, line.text)
        if worst:  # one sick GPU is the slowest peer of all others: which it is, the median tells
            emit.fact("benchmark.d2d.median", subject, round(median(v for v, _ in cells), 2), line.number, line.text)


FORMAT = DocumentFormat(name=NAME, title="nvbandwidth", revision=REVISION, provides=FACTS, sniff=sniff, parse=parse)
