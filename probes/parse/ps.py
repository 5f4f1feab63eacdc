"""``ps`` with a column of states: processes that sleep where no signal reaches them, and where in the kernel that is.

One look: a process may stand in state D for a moment and be well. The wait channel names a function of the kernel, which tells
the driver; ``ps`` shortens it to its column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from knowledge.language import Text
from knowledge.observation import Observation, Scope, Status, Subject, Value, node
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse._columns import cells

NAME, REVISION = "ps", 3
PROVIDES = ("node.gpu_tools.blocked", "process.blocked_in", "process.comm", "process.state", "process.wait_channel")
#   PID    PPID STAT WCHAN                            COMMAND             ELAPSED        USER  PID %CPU %MEM  VSZ RSS TTY STAT START TIME COMMAND
_HEAD = re.compile(r"(?=.{0,400}\bPID\b)(?=.{0,400}\b(?:STAT|S)\b)(?=.{0,400}\b(?:COMMAND|CMD)\b)[A-Z%_ ]{6,400}")
# $ ps -eo pid,ppid,stat,wchan:32,etime,cmd | awk '$3 ~ /D/'        a filter took the heading away; the command still names the columns
_ASKED = re.compile(
    r"\bps (?:-?[A-Za-z]{1,8} ){0,3}-?[A-Za-z]{0,6}o[ ]?((?:[a-z%]{1,12}(?::\d{1,4})?,){1,30}[a-z%]{1,12}(?::\d{1,4})?)\b"
)
_TITLES = {
    "stat": "STAT",
    "state": "S",
    "s": "S",
    "cmd": "CMD",
    "args": "COMMAND",
    "command": "COMMAND",
    "comm": "COMMAND",
    "ucmd": "CMD",
}
# ana      41234  0.0  2.0 123456789 40000000 ?   Dl   08:00 100:00 python train.py         ps aux | grep python
_AUX = re.compile(
    r"[\w.+$-]{1,32}\s{1,12}\d{1,10}\s{1,8}\d{1,5}(?:\.\d)?\s{1,8}\d{1,3}(?:\.\d)?\s{1,16}\d{1,16}\s{1,16}\d{1,14}\s{1,8}(?:\?|pts/\d{1,6}|tty\w{1,8})\s{1,8}"
    r"[DIRSTtXZ][<NLsl+]{0,5}\s{1,8}[\w:]{4,8}\s{1,8}\d{1,7}:\d\d\s\S.{0,4000}"
)
_AUX_COLUMNS = ["USER", "PID", "%CPU", "%MEM", "VSZ", "RSS", "TTY", "STAT", "START", "TIME", "COMMAND"]
STATES = {
    "R": "running",
    "S": "sleeping",
    "D": "blocked",
    "I": "idle",
    "T": "stopped",
    "t": "traced",
    "Z": "zombie",
    "X": "dead",
}
# Functions of the kernel by how they begin -> the module that they are of
_MODULES = (
    ("nvidia_uvm", re.compile(r"uvm_|nv_uvm_|nvUvm")),
    ("nvidia", re.compile(r"nvidia_|nvkms_|nv_|_nv0|rm_|os_acquire_|os_wait_|os_delay")),
    ("amdgpu", re.compile(r"amdgpu_|kfd_|svm_range_|amdttm_")),
    ("nfs", re.compile(r"_?nfs\d{0,2}_|__nfs_|rpc_|__rpc_")),
    ("lustre", re.compile(r"ll_|vvp_|lov_|osc_|ldlm_|mdc_|ptlrpc_|cl_sync_io_")),
)
# Programs that do nothing but ask the driver of the GPU. The kernel cuts names at 15 characters.
_TOOLS = re.compile(
    r"nvidia-smi|nvidia-persiste\w{0,4}|nvidia-debugdu\w{0,2}|nvidia-bug-rep\S{0,10}|nvidia-modprobe|nvidia-device-\w{0,6}|nv-hostengine|"
    r"dcgmi|dcgm-exporter|dcgm_exporter|nvsm|nvitop|gpustat|nvtop|rocm-smi|rocm_smi\.py|amd-smi|gpu-feature-dis\w{0,7}"
)
_INTERPRETER = re.compile(r"python[\d.]{0,5}")
_STORAGE = ("nfs", "lustre")  # a tool that waits for these does not wait for the driver


def sniff(head: str) -> int:
    """91 for a heading with a process id, a state and a command; 88 for rows of ``ps aux`` without it."""
    lines = [line.text[:500].strip() for line in lines_of(head)[:20]]
    if any(_HEAD.fullmatch(line) or _HEAD.fullmatch(" ".join(_asked(line))) for line in lines):
        return 91
    written = [line for line in lines if line]
    rows = sum(bool(_AUX.fullmatch(line)) for line in written)
    return 88 if rows and rows >= len(written) - 1 else 0  # ahead of them the command may stand


def _asked(line: str) -> list[str]:
    """The columns that a command asks for, by the titles of their headings; empty for any other line."""
    found = _ASKED.search(line)
    return [_TITLES.get(name, name.upper()) for name in re.sub(r":\d+", "", found[1]).split(",")] if found else []


def parse(text: str, context: Context) -> list[Observation]:
    """State of each process; the module that those which are blocked sleep in, where a wait channel tells it; how many tools of
    the GPU's driver are blocked."""
    out: list[Observation] = []
    stuck: list[Line] = []
    tools = False
    columns: list[str] = []
    for line in lines_of(text):
        if _HEAD.fullmatch(line.text[:500].strip()):
            columns = line.text.split()
            continue
        if not columns and (asked := _asked(line.text[:500])):
            columns = asked
            continue
        if not columns and _AUX.fullmatch(line.text[:4400].strip()):
            columns = _AUX_COLUMNS
        command = "COMMAND" if "COMMAND" in columns else "CMD"
        row = cells(line.text, columns, command) if columns else {}
        state = STATES.get((row.get("STAT") or row.get("S") or "-")[0])
        if state is None or not re.fullmatch(r"\d{1,10}", row.get("PID", "")):
            continue
        subject = Subject(Scope.PROCESS, row["PID"], node(context.host))
        values: dict[str, Value] = {
            "process.state": state,
            "process.comm": row[command].split()[0].rpartition("/")[2].strip("[]")[:40],
        }
        channel = row.get("WCHAN", "-")
        if state == "blocked" and re.fullmatch(r"[A-Za-z_]\w{2,80}", channel):
            values["process.wait_channel"] = channel
            if module := next((name for name, begins in _MODULES if begins.match(channel)), ""):
                values["process.blocked_in"] = module
        if _is_tool(row[command]):
            tools = True
            if state == "blocked" and values.get("process.blocked_in") not in _STORAGE:
                stuck.append(line)
        source, shown = context.at(NAME, REVISION, line.number), excerpt(clean(line.text.strip()), 300)
        out += [Observation(fact, subject, value, Status.OK, source, excerpt=shown) for fact, value in values.items()]
    if tools:
        shown = "; ".join(clean(line.text.strip())[:120] for line in stuck) or "none of them in state D"
        at = context.at(NAME, REVISION, stuck[0].number if stuck else None)
        out.append(
            Observation(
                "node.gpu_tools.blocked", node(context.host), len(stuck), Status.OK, at, excerpt=excerpt(shown, 400)
            )
        )
    return out


def unread(text: str) -> list[tuple[int, Text]]:
    """Programs in state D of which the listing does not say what they wait for: whether they hang, one look cannot tell."""
    told = parse(text, Context())
    known = {o.subject.id for o in told if o.fact == "process.wait_channel"}
    return waiting([o for o in told if o.subject.id not in known], text)


def waiting(told: Sequence[Observation], text: str) -> list[tuple[int, Text]]:
    """One note for all programs that are blocked; threads of the kernel, which stand in brackets, wait there as they should."""
    names = {o.subject.id: str(o.value) for o in told if o.fact == "process.comm"}
    lines = text.splitlines()
    found = [
        (o.source.line or 1, f"{names.get(o.subject.id, '')} (pid {o.subject.id})")
        for o in told
        if o.fact == "process.state" and o.value == "blocked" and "[" not in lines[(o.source.line or 1) - 1]
    ]
    if not found:
        return []
    who, more = ", ".join(name for _, name in found[:3]), f" (+{len(found) - 3})" if len(found) > 3 else ""
    pid = found[0][1].rpartition(" ")[2].rstrip(")")
    ask = f"`cat /proc/{pid}/stack`, `ps -o pid,stat,wchan:32,etime,cmd -p {pid}`"
    en = f"state D (no signal reaches it): {who}{more}; for how long and on what it waits is not told ({ask})"
    zh = f"处于 D 状态（信号无法中断）：{who}{more}；未说明等待了多久、在等什么（{ask}）"
    return [(found[0][0], Text(en, zh))]


def _is_tool(command: str) -> bool:
    """Whether a command line runs a tool of the driver, by itself or in its interpreter."""
    names = [word.rpartition("/")[2].strip("[]") for word in command.split()[:2]]
    if len(names) == 2 and _INTERPRETER.fullmatch(names[0]):
        return _TOOLS.fullmatch(names[1]) is not None
    return bool(names) and _TOOLS.fullmatch(names[0]) is not None


FORMAT = DocumentFormat(NAME, "ps", REVISION, PROVIDES, sniff, parse, unread=unread)
