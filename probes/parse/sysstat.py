"""``mpstat -P ALL``, ``pidstat``, ``sar -u``, ``-r`` and ``-n DEV,EDEV``: time of CPUs and processes, memory, load and errors of interfaces.

Each prints rows below a heading, again and again, and their average at the end, which counts where it is there; else the last rows do.
Of memory, and of the CPU that a process was on, the last row before the average counts: it is how things stand.
"""

from __future__ import annotations

import re

from knowledge.observation import Observation, Scope, Status, Subject, Value, node
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse._sysstat_title import titled

NAME, REVISION = "sysstat", 2
_CPU = {
    "%usr": "node.cpu.user", "%user": "node.cpu.user", "%sys": "node.cpu.system", "%system": "node.cpu.system",
    "%iowait": "node.cpu.iowait", "%irq": "node.cpu.irq", "%soft": "node.cpu.softirq", "%steal": "node.cpu.steal",
}  # fmt: skip
_NIC = {
    "rxerr/s": "nic.rx.errors.rate", "txerr/s": "nic.tx.errors.rate", "rxdrop/s": "nic.rx.dropped.rate", "txdrop/s": "nic.tx.dropped.rate",
    "%ifutil": "nic.used.share",
}  # fmt: skip
_WAITS = 50.0  # %wait from which a process counts as one that queues for its CPU
_CORES = ("softirq", "system", "busy")
PROVIDES = (
    *dict.fromkeys(_CPU.values()), *(f"node.cpu.core.{what}.{part}" for what in _CORES for part in ("max", "cpu")), "node.cpu.online",
    "node.memory.available.share", *_NIC.values(), "process.comm", "process.cpu", "process.runqueue.wait",
    "node.cpu.core.queued.processes", "node.cpu.core.queued.cpu", "node.cpu.core.queued.programs",
)  # fmt: skip
# Linux 5.15.0-91-generic (gpu-07) 	11/20/2025 	_x86_64_	(128 CPU)
_TITLE = re.compile(r"Linux \S{1,80} \(\S{1,255}\)\s{1,20}\S{6,12}\s{1,20}_\w{2,20}_\s{1,20}\((\d{1,5}) CPU\)")
# 01:00:00 AM  CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle      Average:        IFACE   rxerr/s ...
_WHEN = r"(?:\d\d:\d\d:\d\d(?: [AP]M)?|Average:)"
_HEAD = re.compile(rf"{_WHEN}\s{{1,20}}((?:CPU|IFACE|kbmemfree|UID)\s.{{10,400}})")
_ROW = re.compile(rf"({_WHEN})\s{{1,20}}(\S.{{1,400}})")
# 01:00:01 AM  1000      4242   45.00    2.00    0.00   60.00   47.00    12  python3       below   UID PID %usr %system %guest %wait %CPU CPU Command
_PROCESS = re.compile(
    r"\d{1,10}\s{1,20}(\d{1,10})\s((?:\s{0,20}\d{1,9}[.,]\d{1,4}){3,5})\s{1,20}(\d{1,5}|-)\s{1,4}(\S.{0,200})"
)
_NUMBER = re.compile(r"\d{1,15}(?:[.,]\d{1,4})?")
Cells = dict[str, float]


def sniff(head: str) -> int:
    """93 for the title that all of them print, and a heading below it."""
    lines = [clean(line.text[:500]).strip() for line in lines_of(head)[:40]]
    return 93 if any(map(_TITLE.fullmatch, lines)) and any(map(_HEAD.fullmatch, lines)) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """The averages of each table, or its last rows."""
    tables: dict[str, dict[str, tuple[Cells, Line]]] = {}
    processes: dict[str, tuple[re.Match[str], Line]] = {}
    placed: dict[str, tuple[re.Match[str], Line]] = {}
    columns: list[str] = []
    online: tuple[int, Line] | None = None
    for line in lines_of(text):
        told = clean(line.text[:600]).strip()
        if title := _TITLE.fullmatch(told):
            online = int(title[1]), line
        elif head := _HEAD.fullmatch(told):
            columns = head[1].split()
        elif columns and (row := _ROW.fullmatch(told)):
            if columns[:2] == ["UID", "PID"]:
                if process := _PROCESS.fullmatch(row[2]):
                    processes[process[1]] = process, line
                    if process[3] != "-":
                        placed[process[1]] = process, line
                continue
            cells = row[2].split()
            keyed = columns[0] != "kbmemfree"
            numbers = cells[1:] if keyed else cells
            if not keyed and row[1] == "Average:" and columns[0] in tables:
                continue
            if len(cells) == len(columns) and all(map(_NUMBER.fullmatch, numbers)):
                names = columns[1:] if keyed else columns
                values = {n: float(c.replace(",", ".")) for n, c in zip(names, numbers, strict=True)}
                tables.setdefault(columns[0], {})[cells[0] if keyed else ""] = values, line
        elif not told:
            columns = []
    sheet = _Sheet(titled(text, context))
    if online and (placed or "CPU" in tables):
        sheet.add("node.cpu.online", sheet.node, *online)
    _cpus(sheet, tables.get("CPU", {}))
    for name, (cells, line) in tables.get("IFACE", {}).items():
        for column, fact in _NIC.items():
            if column in cells:
                sheet.add(fact, Subject(Scope.NIC, name, sheet.node), cells[column], line)
    for cells, line in tables.get("kbmemfree", {}).values():
        used, share = cells.get("kbmemused", 0.0), cells.get("%memused", 0.0)
        if "kbavail" in cells and used and share:
            sheet.add(
                "node.memory.available.share", sheet.node, round(min(100.0, cells["kbavail"] * share / used), 1), line
            )
    for pid, (process, line) in processes.items():
        _process(sheet, Subject(Scope.PROCESS, pid, sheet.node), process, line)
    _queued(sheet, placed)
    return sheet.out


class _Sheet:
    def __init__(self, context: Context) -> None:
        self.node, self.out, self._context = node(context.host), list[Observation](), context

    def add(self, fact: str, subject: Subject, value: Value, line: Line) -> None:
        """One value of a line."""
        shown, source = excerpt(clean(line.text.strip()), 300), self._context.at(NAME, REVISION, line.number)
        self.out.append(Observation(fact, subject, value, Status.OK, source, excerpt=shown))


def _process(sheet: _Sheet, subject: Subject, found: re.Match[str], line: Line) -> None:
    """%usr %system %guest %wait %CPU; older ones have no %wait."""
    times = [float(cell.replace(",", ".")) for cell in found[2].split()]
    sheet.add("process.comm", subject, clean(found[4].strip()), line)
    sheet.add("process.cpu", subject, round(times[-1] / 100, 3), line)
    if len(times) == 5 and times[3] + times[4] > 0:
        sheet.add("process.runqueue.wait", subject, round(100 * times[3] / (times[3] + times[4]), 1), line)


def _queued(sheet: _Sheet, placed: dict[str, tuple[re.Match[str], Line]]) -> None:
    """The CPU for which most processes queue, and which they are."""
    waiting: dict[int, list[tuple[re.Match[str], Line]]] = {}
    for process, line in placed.values():
        times = [float(cell.replace(",", ".")) for cell in process[2].split()]
        if len(times) == 5:
            own = waiting.setdefault(int(process[3]), [])
            if times[3] >= _WAITS:
                own.append((process, line))
    if not waiting:
        return
    cpu = max(waiting, key=lambda cpu: (len(waiting[cpu]), -cpu))
    named = [(f"{clean(process[4].strip())} ({process[1]})", line) for process, line in waiting[cpu]]
    last = named[-1][1] if named else next(line for _, line in placed.values())
    sheet.add("node.cpu.core.queued.processes", sheet.node, len(named), last)
    if named:
        sheet.add("node.cpu.core.queued.cpu", sheet.node, cpu, last)
        sheet.add("node.cpu.core.queued.programs", sheet.node, excerpt(", ".join(name for name, _ in named), 200), last)


def _cpus(sheet: _Sheet, rows: dict[str, tuple[Cells, Line]]) -> None:
    if "all" in rows:
        cells, line = rows["all"]
        for column, fact in _CPU.items():
            if column in cells:
                sheet.add(fact, sheet.node, cells[column], line)
    cores = {int(name): row for name, row in rows.items() if name.isdigit()}
    for what, columns in (("softirq", ("%irq", "%soft")), ("system", ("%sys",)), ("busy", ("%idle",))):
        if not cores or any(column not in cells for cells, _ in cores.values() for column in columns):
            continue
        sums = {cpu: sum(cells[c] for c in columns) for cpu, (cells, _) in cores.items()}
        if what == "busy":
            sums = {cpu: 100.0 - idle - cores[cpu][0].get("%iowait", 0.0) for cpu, idle in sums.items()}
        most = max(sums, key=lambda cpu: (sums[cpu], -cpu))
        sheet.add(f"node.cpu.core.{what}.max", sheet.node, round(min(100.0, max(0.0, sums[most])), 2), cores[most][1])
        sheet.add(f"node.cpu.core.{what}.cpu", sheet.node, most, cores[most][1])


FORMAT = DocumentFormat(NAME, "mpstat, pidstat, sar", REVISION, PROVIDES, sniff, parse)
