"""perftest: ``ib_write_bw``, ``ib_read_bw``, ``ib_send_bw`` and the latency tests."""

from __future__ import annotations

import re
from dataclasses import field

from knowledge.observation import Observation, Subject
from knowledge.record import dataclass
from probes.base import Context, DocumentFormat, Line
from probes.parse import _app_bench
from probes.parse._active_facts import PERFTEST as FACTS
from probes.parse._active_facts import RDMA_LATENCIES as _LATENCIES
from probes.parse._app_emit import Emitter, clean_lines

NAME = "perftest"
REVISION = 2

#                     RDMA_Write BW Test        RDMA_Write Bidirectional BW Test        Send Latency Test
_TITLE = re.compile(
    r"\s{0,60}(RDMA_Write|RDMA_Read|Send|Atomic\w{0,20}|Raw_Ethernet\w{0,20}|Write|Read)( \w{1,20})? (BW|Latency) Test\s*$"
)
_BW = re.compile(r"\s{0,20}#bytes\s{1,20}(?:#qp\s{1,20}|#sl\s{1,20})?#iterations\s{1,20}BW peak\[(\w{1,4})/sec\]")
_LATENCY = re.compile(r"\s{0,20}#bytes\s{1,20}#iterations\s{1,20}t_(?:min|avg)\[usec\]")
_ROW = re.compile(r"\s{0,20}(\d{1,12})\s{1,20}(\d{1,12})\s{1,20}([0-9.\s]{1,200})$")
_PARAMETER = re.compile(
    r"\s{0,20}(Device|Mtu|Link type|Connection type|Number of qps|Transport type|GID index)\s{0,20}: ([\w.\[\]-]{1,40})"
)
_ERROR = re.compile(
    r"Couldn't connect to|Unable to (?:init|open|write|read)|Failed to modify QP|Completion with error|Failed status \d"
    r"|IB device \S{1,40} not found|No IB devices found|Did not detect devices|Couldn't (?:get|listen|create)|Failed to exchange"
)
# $ ib_write_bw -d mlx5_0 gpu-a02
_CALL = re.compile(r"\bib_(?:write|read|send|atomic)_(?:bw|lat)\b")
# the printed MB/sec and MiB/sec are both 2^20 bytes (perftest divides by 0x100000)
_TO_GBPS = {"MB": 8 * 2**20 / 1e9, "MiB": 8 * 2**20 / 1e9, "Gb": 1.0, "GB": 8.0, "Mb": 1e-3}
_NAMES = {"RDMA_Write": "ib_write", "RDMA_Read": "ib_read", "Send": "ib_send", "Write": "ib_write", "Read": "ib_read"}


@dataclass(slots=True)
class _Test:
    name: str
    line: Line
    parameters: dict[str, tuple[str, Line]] = field(default_factory=dict)
    unit: str = ""  # of a bandwidth table; empty for a latency table
    header: Line | None = None
    rows: dict[int, tuple[list[float], Line]] = field(default_factory=dict)


def sniff(head: str) -> int:
    """95 for a table of perftest, 85 for its headline, 84 for the command with what kept it from starting; 0 otherwise."""
    lines = head.splitlines()
    if any(_BW.match(line) or _LATENCY.match(line) for line in lines if "#bytes" in line):
        return 95
    if any(_TITLE.match(line) for line in lines):
        return 85
    return 84 if _CALL.search(head) and any(_ERROR.search(line) for line in lines) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Bandwidth or latency by message size, in Gb/s and microseconds."""
    emit = Emitter(NAME, REVISION, context)
    test: _Test | None = None
    tests: list[_Test] = []
    lines = clean_lines(text)
    for line in lines:
        if found := _TITLE.match(line.text):
            name = _NAMES.get(found[1], found[1].lower()) + ("_bw" if found[3] == "BW" else "_lat")
            # a loopback run prints server and client into one stream: the same headline twice
            if test is None or test.rows or test.name != name:
                tests.append(test := _Test(name, line))
        elif (bandwidth := _BW.match(line.text)) or _LATENCY.match(line.text):
            if test is None:
                tests.append(test := _Test("ib_bw" if bandwidth else "ib_lat", line))
            test.unit, test.header = bandwidth[1] if bandwidth else "", line
        elif test is not None:
            _feed(test, line)
    for each in tests:
        _emit(emit, each)
    error = next((line for line in lines if _ERROR.search(line.text)), None)
    if tests:
        rows = [row for each in tests for row in each.rows.values()]
        _app_bench.completed(emit, bool(rows) and error is None, rows[-1][1] if rows else None)
    if error and (tests or sniff(text)):
        if not tests:
            _app_bench.named(emit, NAME, error)
            _app_bench.completed(emit, False, error)
        _app_bench.failed(emit, error)
    return emit.out


def _feed(test: _Test, line: Line) -> None:
    if test.header and (row := _ROW.match(line.text)):
        values = [value for word in row[3].split() if (value := _app_bench.decimal(word)) is not None]
        if len(values) >= (2 if test.unit else 1):
            test.rows[int(row[1])] = (values, line)
        return
    for piece in re.split(r"\t+| {3,}(?=[A-Z][a-z]+ type|Device)", line.text):
        if found := _PARAMETER.match(piece):
            test.parameters.setdefault(found[1], (found[2], line))


def _emit(emit: Emitter, test: _Test) -> None:
    _app_bench.named(emit, test.name, test.line)
    subject = _app_bench.part(emit, test.name)
    for key, fact in (("Device", "device"), ("Link type", "link_type")):
        if key in test.parameters:
            value, line = test.parameters[key]
            emit.fact(f"benchmark.rdma.{fact}", subject, value, line.number, line.text)
    if "Mtu" in test.parameters:
        value, line = test.parameters["Mtu"]
        if (digits := value.split("[")[0]).isascii() and digits.isdigit():
            emit.fact("benchmark.rdma.mtu", subject, int(digits), line.number, line.text)
    if not test.rows:
        return
    if test.unit:
        _bandwidth(emit, subject, test)
    else:
        _latency(emit, subject, test)


def _bandwidth(emit: Emitter, subject: Subject, test: _Test) -> None:
    factor = _TO_GBPS.get(test.unit)
    if factor is None:
        return
    for size, (values, line) in test.rows.items():
        here = _app_bench.part(emit, f"{size} B", subject)
        emit.fact("benchmark.rdma.bw.peak", here, round(values[0] * factor, 4), line.number, line.text)
        emit.fact("benchmark.rdma.bw.average", here, round(values[1] * factor, 4), line.number, line.text)
        if len(values) > 2:
            emit.fact("benchmark.rdma.message_rate", here, values[2], line.number, line.text)
    best = max(test.rows.values(), key=lambda row: row[0][1])
    largest = test.rows[max(test.rows)]
    emit.fact("benchmark.rdma.bw.max", subject, round(best[0][1] * factor, 4), best[1].number, best[1].text)
    emit.fact(
        "benchmark.rdma.bw.largest", subject, round(largest[0][1] * factor, 4), largest[1].number, largest[1].text
    )


def _latency(emit: Emitter, subject: Subject, test: _Test) -> None:
    # with --duration only the average is printed
    names = ("avg",) if test.header and "t_min" not in test.header.text else _LATENCIES
    for size, (values, line) in test.rows.items():
        here = _app_bench.part(emit, f"{size} B", subject)
        for name, value in zip(names, values, strict=False):
            emit.fact(f"benchmark.rdma.latency.{name}", here, value, line.number, line.text)
    values, line = test.rows[min(test.rows)]
    typical = values[min(2, len(values) - 1)] if names is _LATENCIES else values[0]
    emit.fact("benchmark.rdma.latency.smallest", subject, typical, line.number, line.text)


FORMAT = DocumentFormat(
    name=NAME, title="perftest (ib_write_bw ...)", revision=REVISION, provides=FACTS, sniff=sniff, parse=parse
)
