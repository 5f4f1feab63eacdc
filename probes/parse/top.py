"""``top`` in text, and the line of ``uptime`` that begins it: load, what the CPUs do, memory, processes that are blocked or zombies.

    top - 14:02:11 up 10 days,  3:04,  2 users,  load average: 190.52, 180.58, 150.59
    Tasks: 1900 total,   3 running, 1800 sleeping,   0 stopped,  40 zombie
    %Cpu(s):  2.0 us,  1.0 sy,  0.0 ni, 20.0 id, 77.0 wa,  0.0 hi,  0.0 si,  0.0 st
    MiB Mem : 2063838.0 total,   1200.0 free, 2060000.0 used,   2638.0 buff/cache
    MiB Swap:   8192.0 total,      0.0 free,   8192.0 used.   1500.0 avail Mem

Of several rounds the last counts. The table shows the busiest processes: those that are blocked may stand below, and are counted
as far as they are shown. A load alone is no trouble and no health: how many CPUs there are is not printed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from knowledge.language import Text
from knowledge.observation import Observation, Scope, Status, Subject, Value, node
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse.ps import STATES, waiting

NAME, REVISION = "top", 1
_LOADS = r"load average: {1,4}(\d{1,6}[.,]\d\d), {1,4}(\d{1,6}[.,]\d\d), {1,4}(\d{1,6}[.,]\d\d)"
# 14:02:11 up 10 days,  3:04,  2 users,  load average: 0.52, 0.58, 0.59
_UP = re.compile(
    rf"(?P<top>top - )?\s{{0,4}}\d\d:\d\d:\d\d up {{1,4}}(?P<up>.{{1,60}}?), {{1,4}}(?:\d{{1,5}} users?, {{1,4}})?{_LOADS}\s{{0,20}}"
)
_DAYS = re.compile(r"(?:(\d{1,6}) days?)?,? {0,4}(?:(\d{1,2}):(\d\d)|(\d{1,2}) min)?")
#   Tasks: 214, 1630 thr; 3 running      Load average: 190.52 180.58 150.59      (htop)
_HTOP = re.compile(r".{0,120}\bLoad average: (\d{1,6}\.\d\d) (\d{1,6}\.\d\d) (\d{1,6}\.\d\d)\s{0,40}")
_TASKS = re.compile(r"(?:Tasks|Threads): {1,4}\d{1,9} total,.{1,80}?(\d{1,9}) zombie\s{0,20}")
_CPUS = re.compile(r"%?Cpu\(s\): {0,4}(.{20,200})")
_SHARE = re.compile(r"(\d{1,3}[.,]\d)[ %]{0,2}(us|sy|ni|id|wa|hi|si|st)\b")
_CPU_FACTS = {"wa": "node.cpu.iowait", "st": "node.cpu.steal", "si": "node.cpu.softirq", "sy": "node.cpu.system"}
_MEMORY = re.compile(r"(?:[KMGTPE]iB )?(Mem|Swap) ?: {0,20}(\d{1,16}(?:[.,]\d)?)k? ?total,(.{1,160})")
_USED = re.compile(r"(\d{1,16}(?:[.,]\d)?)k? ?used")
_AVAILABLE = re.compile(r"(\d{1,16}(?:[.,]\d)?) avail Mem")
#     PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND
_TITLE = re.compile(r"\s{0,8}PID {1,4}USER\b.{0,80}\bS {1,4}%CPU\b.{0,60}\bCOMMAND\s{0,20}")
LOADS = ("node.load.1m", "node.load.5m", "node.load.15m")
PROVIDES = (
    *LOADS, *_CPU_FACTS.values(), "node.uptime", "node.processes.zombie", "node.tasks.blocked", "node.memory.available.share",
    "node.swap.used.share", "node.swap.total", "process.state", "process.comm", "process.cpu",
)  # fmt: skip
_FEWEST = (
    8  # CPUs that a machine with a GPU for computing has at the least: a load below that is none, whatever the machine
)
_IDLE = 50.0  # % of the CPUs that do nothing, so that a high load is made by tasks that wait


def sniff(head: str) -> int:
    """96 for the first line of top, or its table; 90 for uptime's line, or htop's load."""
    lines = [clean(line.text[:400]) for line in lines_of(head)[:60]]
    if any((m := _UP.fullmatch(line)) and m["top"] for line in lines) or any(map(_TITLE.fullmatch, lines)):
        return 96
    written = [line for line in lines if line.strip()]
    alone = bool(written) and all(_UP.fullmatch(line) for line in written)
    return 90 if alone or any(map(_HTOP.fullmatch, lines)) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Facts of the last round, and of the processes that it shows."""
    lines = [Line(line.number, clean(line.text[:400])) for line in lines_of(text)]
    begins = [i for i, line in enumerate(lines) if _UP.fullmatch(line.text)]
    last = lines[begins[-1] :] if begins else lines
    here, out = node(context.host), []

    def add(
        fact: str, value: Value, line: Line, subject: Subject = here, status: Status = Status.OK, why: str = ""
    ) -> None:
        at = context.at(NAME, REVISION, line.number)
        out.append(Observation(fact, subject, value, status, at, excerpt=excerpt(line.text.strip(), 300), detail=why))

    for line in last:
        if (up := _UP.fullmatch(line.text)) or (up := _HTOP.fullmatch(line.text)):
            for fact, load in zip(LOADS, up.groups()[-3:], strict=True):
                add(fact, _number(load), line)
            if (since := _seconds(up.groupdict().get("up") or "")) is not None:
                add("node.uptime", since, line)
        elif tasks := _TASKS.fullmatch(line.text):
            add("node.processes.zombie", int(tasks[1]), line)
        elif cpus := _CPUS.fullmatch(line.text):
            for share, name in _SHARE.findall(cpus[1]):
                if name in _CPU_FACTS:
                    add(_CPU_FACTS[name], _number(share), line)
        elif memory := _MEMORY.fullmatch(line.text.strip()):
            for fact, value in _memory(memory[1], _number(memory[2]), memory[3], last):
                add(fact, value, line)
    _processes(last, context, out)
    return out


def _number(text: str) -> float:
    return float(text.replace(",", "."))


def _seconds(up: str) -> float | None:
    """Of ``10 days,  3:04`` or ``12 min``; None for anything else."""
    found = _DAYS.fullmatch(up.strip()) if up else None
    if found is None:
        return None
    days, hours, minutes, alone = (int(part or 0) for part in found.groups())
    return float(((days * 24 + hours) * 60 + minutes + alone) * 60)


def _memory(kind: str, total: float, rest: str, lines: Sequence[Line]) -> list[tuple[str, float]]:
    if kind == "Mem":  # what can be had stands at the end of the line of swap
        found = next((m for line in lines if (m := _AVAILABLE.search(line.text))), None)
        return [("node.memory.available.share", _share(_number(found[1]), total))] if found and total else []
    used = _USED.search(rest)
    if not total:
        return [("node.swap.total", 0.0)]
    return [("node.swap.used.share", _share(_number(used[1]), total))] if used else []


def _share(part: float, whole: float) -> float:
    return round(min(1.0, part / whole) * 100, 1)


def _processes(lines: Sequence[Line], context: Context, out: list[Observation]) -> None:
    """State, name and CPU of each process that is shown; how many of them are blocked, where some are."""
    columns: list[str] = []
    blocked: list[Line] = []
    for line in lines:
        if _TITLE.fullmatch(line.text):
            columns = line.text.split()
            continue
        cells = line.text.split(None, max(0, len(columns) - 1)) if columns else []
        row = dict(zip(columns, cells, strict=False))
        state = STATES.get(row.get("S", ""))
        if len(cells) < len(columns) or state is None or not row.get("PID", "").isdigit():
            continue
        subject = Subject(Scope.PROCESS, row["PID"], node(context.host))
        values: dict[str, Value] = {
            "process.state": state,
            "process.comm": row["COMMAND"].split()[0].rpartition("/")[2][:40],
        }
        if re.fullmatch(r"\d{1,6}(?:[.,]\d)?", row.get("%CPU", "")):
            values["process.cpu"] = round(_number(row["%CPU"]) / 100, 3)
        blocked += [line] if state == "blocked" else []
        source, shown = context.at(NAME, REVISION, line.number), excerpt(line.text.strip(), 300)
        out += [Observation(fact, subject, value, Status.OK, source, excerpt=shown) for fact, value in values.items()]
    if blocked:
        shown = excerpt("; ".join(line.text.strip()[:60] for line in blocked), 300)
        at = context.at(NAME, REVISION, blocked[0].number)
        out.append(Observation("node.tasks.blocked", node(context.host), len(blocked), Status.OK, at, excerpt=shown))


def unread(text: str) -> list[tuple[int, Text]]:
    """A load of which nobody can say whether it is much, and programs in state D."""
    told = parse(text, Context())
    load = next((o for o in told if o.fact == "node.load.1m"), None)
    return [*_much(load, text), *waiting(told, text)]


def _much(load: Observation | None, text: str) -> list[tuple[int, Text]]:
    """Of a load that is none on no machine: the number of CPUs is not there, and they are not said to be busy."""
    if load is None or not isinstance(load.value, float) or load.value < _FEWEST:
        return []
    shares = [
        {name: _number(n) for n, name in _SHARE.findall(m[1])}
        for line in lines_of(text)
        if (m := _CPUS.fullmatch(clean(line.text[:400])))
    ]
    resting = shares[-1].get("id", 0.0) + shares[-1].get("wa", 0.0) if shares else None
    waits = shares[-1].get("wa", 0.0) >= _IDLE if shares else False  # for I/O: the rules tell
    if waits or (resting is not None and resting < _IDLE):
        return []
    what = f"a load of {load.value:g}"
    if resting is None:
        en = f"whether {what} is much is not told: see the number of CPUs (`nproc`) and what waits (`ps -eo pid,stat,wchan:32,cmd | awk '$2 ~ /^D/'`)"
        zh = f"负载 {load.value:g} 是否过高无法判断：请查看 CPU 数（`nproc`）以及哪些任务在等待（`ps -eo pid,stat,wchan:32,cmd | awk '$2 ~ /^D/'`）"
    else:
        en = f"{what} while the CPUs rest for {resting:g} % of the time: tasks wait, and on what is not told (`ps -eo pid,stat,wchan:32,cmd | awk '$2 ~ /^D/'`)"
        zh = f"负载 {load.value:g}，而 CPU 有 {resting:g}% 的时间空闲：有任务在等待，但未说明等什么（`ps -eo pid,stat,wchan:32,cmd | awk '$2 ~ /^D/'`）"
    return [(load.source.line or 1, Text(en, zh))]


FORMAT = DocumentFormat(NAME, "top or uptime", REVISION, PROVIDES, sniff, parse, unread=unread)
