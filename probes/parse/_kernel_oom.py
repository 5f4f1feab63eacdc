"""Host memory: OOM kills, of the whole host or of one memory cgroup. Not CUDA's out of memory."""

from __future__ import annotations

from dataclasses import field

from knowledge.observation import Scalar
from knowledge.record import dataclass
from probes.parse._kernel_common import Reading, body, from_kernel, number, rx, within
from probes.parse._kernel_shape import Entry
from probes.parse._logtime import SECOND

# python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=979
_INVOKED = r"(.{1,64}?) invoked oom-killer:"
# oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0-1,oom_memcg=/a,task_memcg=/a/b,task=node,
#   pid=863987,uid=0
_SUMMARY = r"oom-kill:constraint=(\w{1,40})"
_MEMCG = r"oom_memcg=([^,\s]{1,1000})"
_TASK = r",task=(.{1,64}?),pid=(\d{1,10})"
# Memory cgroup out of memory: Killed process 4242 (python3) total-vm:98304kB, anon-rss:65536kB, file-rss:0kB, ...
# Out of memory: Killed process 123, UID 48, (httpd).     Out of memory: Kill process 456 (python) score 50 or ...
_KILLED = (
    r"(?:(Memory cgroup out of memory|Out of memory(?: \(oom_kill_allocating_task\))?): )?"
    r"(?:Killed|Kill) process (\d{1,10})(?:, UID \d{1,10},)? \((.{1,64}?)\)"
)
_ANON = r"anon-rss:(\d{1,15})kB"
# Task in /docker/abc killed as a result of limit of /docker/abc        (kernels before 4.19)
_LIMIT = r"Task in (\S{1,1000}) killed as a result of limit of (\S{1,1000})"
# oom_reaper: reaped process 345646 (vector), now anon-rss:0kB, file-rss:0kB, shmem-rss:0
_REAPED = r"oom_reaper: reaped process (\d{1,10}) \((.{1,64}?)\)"


@dataclass(slots=True)
class _Kill:
    """One kill while its lines are gathered."""

    entry: Entry
    host: str
    steps: set[str] = field(default_factory=set)
    fields: dict[str, Scalar] = field(default_factory=dict)
    lines: list[Entry] = field(default_factory=list)


def read(reading: Reading) -> None:
    """One event for each process that the kernel killed for want of memory."""
    kills: list[_Kill] = []
    for entry in reading.entries:
        message = entry.message
        if not ("oom" in message or "memory" in message or "process" in message or "Task in" in message):
            continue
        told = _told(message)
        if told is not None and from_kernel(entry, told[2]):
            _merge(kills, reading.host(entry), entry, told[0], told[1])
    for kill in kills:
        fields = {**kill.fields, "kind": _kind(kill)}
        fields["text"] = body(kill.lines[-1 if "killed" in kill.steps else 0].message)
        raw = " | ".join(e.raw.strip() for e in kill.lines)
        reading.event("oom_kill", reading.node(kill.entry), kill.entry, fields, raw=raw)


def _told(message: str) -> tuple[str, dict[str, Scalar], int] | None:
    """Which step of a kill a line is, what it tells, and where in the line that begins."""
    if found := rx(_SUMMARY).search(message):
        fields: dict[str, Scalar] = {"constraint": found[1]}
        if memcg := rx(_MEMCG).search(message):
            fields["cgroup"] = memcg[1]
        if task := rx(_TASK).search(message):
            fields |= {"process": task[1], "pid": int(task[2])}
        return "summary", fields, found.start()
    if found := rx(_KILLED).search(message):
        rss = rx(_ANON).search(message)
        fields = {"pid": int(found[2]), "process": found[3], "rss": int(rss[1]) / 1024 if rss else None}
        if (found[1] or "").startswith("Memory cgroup"):
            fields["constraint"] = "CONSTRAINT_MEMCG"
        return "killed" if found[1] or rss else "other", fields, found.start()
    if found := rx(_REAPED).search(message):
        return "reaped", {"pid": int(found[1]), "process": found[2]}, found.start()
    if found := rx(_LIMIT).search(message):
        return "limit", {"cgroup": found[2], "constraint": "CONSTRAINT_MEMCG"}, found.start()
    if found := rx(_INVOKED).search(message):
        return "invoked", {"invoker": found[1].strip()}, found.start()
    return None


def _merge(kills: list[_Kill], host: str, entry: Entry, step: str, fields: dict[str, Scalar]) -> None:
    """Add a line to the kill it belongs to: the same process, or the next step of an open kill."""
    if step == "other":
        return  # "Killed process" without the words of the OOM killer: some other program
    pid = number(str(fields["pid"])) if "pid" in fields else None
    for kill in reversed(kills[-4:]):
        known = kill.fields.get("pid")
        same = pid is not None and known == pid
        next_step = (pid is None or known is None) and step not in kill.steps and step != "invoked"
        near = entry.number - kill.lines[-1].number <= 400 and within(kill.lines[-1], entry, 10 * SECOND)
        if kill.host == host and near and (same or (next_step and _follows(kill, step))):
            break
    else:
        kill = _Kill(entry, host)
        kills.append(kill)
    kill.steps.add(step)
    kill.lines.append(entry)
    for name, value in fields.items():
        if value is not None:
            kill.fields.setdefault(name, value)


def _follows(kill: _Kill, step: str) -> bool:
    """The kernel prints: invoked, (limit), summary, killed, reaped."""
    order = ("invoked", "limit", "summary", "killed", "reaped")
    return all(order.index(done) < order.index(step) for done in kill.steps)


def _kind(kill: _Kill) -> str | None:
    constraint = str(kill.fields.get("constraint", ""))
    if constraint == "CONSTRAINT_MEMCG" or "cgroup" in kill.fields:
        return "cgroup"
    return "host" if constraint or "killed" in kill.steps else None
