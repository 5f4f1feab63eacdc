"""The facts of one process."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from knowledge.observation import Scalar, Scope, Status, Subject
from knowledge.text import clean, digits
from probes.parse._host_snapshot import AS_ROOT, Snapshot, gap, mapping, mappings, words
from probes.parse._process_jobs import Job, adopted, launch_of, scheduler_job
from probes.parse._process_rows import STATES, Proc, ancestors, refusal
from probes.parse._smi_values import Reading

IPC_LOCK = 14  # CAP_IPC_LOCK: memory may be locked beyond the limit
LEAST_NS = 5_000_000  # time run and waited below which a share says nothing: a hundredth of the interval
_APPTAINER = ("apptainer", "singularity", "starter", "starter-suid")
_FRAME = re.compile(
    r"\[<[0-9a-fx]+>\] (?P<function>[A-Za-z0-9_.]{1,80})\+\S{1,40}(?: \[(?P<module>[a-z0-9_]{1,60})\])?"
)


def stat_fields(counters: Mapping[str, Any]) -> list[str]:
    """The fields of /proc/PID/stat behind the name; empty when they could not be read."""
    line = counters.get("stat")
    return line[line.rfind(")") + 2 :].split() if isinstance(line, str) and ")" in line else []


def cpus(text: str) -> frozenset[int]:
    """CPUs of a list such as ``0-3,8``; empty when it is none."""
    out: set[int] = set()
    for part in text.strip().split(","):
        found = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", part.strip())
        if not found or int(found[2] or found[1]) < int(found[1]):
            return frozenset()
        out.update(range(int(found[1]), int(found[2] or found[1]) + 1))
    return frozenset(out)


def numbers(value: object) -> list[int]:
    """The whole numbers of a text such as ``12 34 5``, or of an array."""
    parts = value.split() if isinstance(value, str) else value if isinstance(value, list) else []
    return [int(p) for p in parts if str(p).isascii() and str(p).isdigit() and len(str(p)) < 20]


def memlock(proc: Proc) -> Reading:
    """Soft limit of locked memory in MiB; not applicable where none holds."""
    limits = mapping(proc.detail.get("limits"))
    if why := gap(limits):
        return why
    soft = next(iter(words(limits.get("memlock"))), "")
    effective = mapping(proc.detail.get("status")).get("CapEff")
    if isinstance(effective, str) and re.fullmatch(r"[0-9a-f]{1,32}", effective) and int(effective, 16) >> IPC_LOCK & 1:
        return Reading(None, Status.NOT_APPLICABLE, "it has CAP_IPC_LOCK: the limit does not hold for it")
    if soft == "unlimited":
        return Reading(None, Status.NOT_APPLICABLE, "unlimited")
    most = digits(soft, 19)
    return Reading(None, Status.FAILED, "not printed") if most is None else Reading(round(most / (1 << 20), 3))


class Teller:
    """Tells of processes, under the node and time of one document."""

    def __init__(self, emit: Snapshot, document: Mapping[str, Any], procs: Mapping[int, Proc]) -> None:
        self._emit, self._document, self._procs = emit, document, procs
        self._tick = max(1, _int(document.get("clock_ticks")) or 100)
        self._page = _int(document.get("page_size")) or 4096
        uptime, interval = document.get("uptime_s"), document.get("interval_s")
        self._uptime = float(uptime) if isinstance(uptime, int | float) else None
        self._interval = float(interval) if isinstance(interval, int | float) and interval > 0 else None
        self._users = mapping(document.get("users"))

    def user(self, proc: Proc) -> str:
        """Name of the user, else the number."""
        name = self._users.get(str(proc.uid))
        return clean(name) if isinstance(name, str) else str(proc.uid)

    def tell(self, proc: Proc, job: Job | None) -> None:
        """All facts of a process."""
        subject = Subject(Scope.PROCESS, str(proc.pid), self._emit.node)
        say = _Say(self._emit, subject, f"/proc/{proc.pid}")
        self._row(say, proc)
        self._where(say, proc, job)
        self._adopted(say, proc)
        if not proc.full:
            if proc.state != "D":
                say("process.blocked_for", 0.0, "stat", f"{proc.pid} ({proc.name}) {proc.state}")
            return
        self._words(say, proc)
        self._limits(say, proc)
        self._stuck(say, proc)
        two = mappings(proc.detail.get("counters"))
        if len(two) > 1:
            self._rates(say, proc, two[0], two[1])

    def _row(self, say: _Say, proc: Proc) -> None:
        stat = f"{proc.pid} ({proc.name}) {proc.state} {proc.ppid}"
        say("process.comm", proc.name, "stat", stat)
        state = STATES.get(proc.state)
        say("process.state", state or Reading(None, Status.FAILED, f"state {proc.state!r} is not known"), "stat", stat)
        say("process.parent", proc.ppid, "stat", stat)
        say("process.user", self.user(proc), "", f"uid {proc.uid}")
        say("process.threads", proc.threads, "stat", f"{proc.threads} threads")
        say("process.memory.resident", round(proc.rss * self._page / (1 << 20)), "stat", f"{proc.rss} pages")
        say("process.computes", proc.computes, "fd", ", ".join(sorted(proc.devices))[:200])
        if self._uptime is not None:
            age = round(max(0.0, self._uptime - proc.start / self._tick), 1)
            say("process.age", age, "stat", f"started {proc.start} ticks after the boot")
        if proc.later is not None and self._interval is not None and proc.later >= proc.cpu:
            used = (proc.later - proc.cpu) / self._tick
            say("process.cpu", round(used / self._interval, 2), "stat", f"{used:g} s of CPU in {self._interval:g} s")

    def _where(self, say: _Say, proc: Proc, job: Job | None) -> None:
        # What was forked from a process on a GPU runs where that one runs.
        home = proc if proc.full else next((a for a in ancestors(proc.pid, self._procs) if a.full and a.devices), proc)
        place, env = home.place, home.env
        if job is not None:
            say("process.in_job", f"job:{job.id}", "environ", _launch(proc) or place.line)
        elif why := gap(refusal(proc.detail, "environ")):
            say("process.in_job", why, "environ")
        else:
            say("process.in_job", Reading(None, Status.NONE_SEEN), "environ")
        pod = self._pod(home)
        if place.container:
            container = Subject(Scope.CONTAINER, place.container, self._emit.node)
            say("process.in_container", f"container:{place.container}", "cgroup", place.line)
            self._emit.add("container.runtime", container, place.runtime, say.at("cgroup"), place.line)
            if pod:
                self._emit.add("container.in_pod", container, f"pod:{pod}", say.at("cgroup"), place.line)
        if pod and env.get("POD_NAME"):
            name = "/".join(part for part in (env.get("POD_NAMESPACE", ""), env["POD_NAME"]) if part)
            self._emit.add(
                "pod.name",
                Subject(Scope.POD, pod, self._emit.node),
                name,
                say.at("environ"),
                f"POD_NAME={env['POD_NAME']}",
            )
        if not place.container and proc.full and not proc.kernel:
            around = next((a.name for a in ancestors(proc.pid, self._procs) if a.name in _APPTAINER), "")
            say("process.contained_by", "apptainer" if around else self._mounts(proc), "ns/mnt", around)
        batch = scheduler_job(home)
        owner = (
            f"job {batch}"
            if batch
            else f"pod {pod}"
            if pod
            else f"container {place.container}"
            if place.container
            else ""
        )
        if home.full:
            say("process.owner", owner or f"user {self.user(proc)}", "cgroup", place.line or f"uid {proc.uid}")

    def _pod(self, proc: Proc) -> str:
        """The pod: namespace and name where the environment tells both, as exporters name it, else its uid."""
        space, name = proc.env.get("POD_NAMESPACE", ""), proc.env.get("POD_NAME", "")
        kubernetes = bool(proc.place.pod) or "KUBERNETES_SERVICE_HOST" in mapping(proc.detail.get("environ"))
        return f"{space}/{name}" if kubernetes and space and name else proc.place.pod

    def _mounts(self, proc: Proc) -> str | Reading:
        """Whether a process without a container of its own name sees other file systems than init: enroot, pyxis, bwrap."""
        first, mine = self._procs.get(1), mapping(proc.detail.get("namespaces"))
        init = mapping(mapping(first.detail).get("namespaces")).get("mnt") if first else None
        init = init or mapping(self._document.get("reader")).get("init_mount_namespace")
        here = mine.get("mnt")
        if isinstance(here, dict):
            return gap(here) or Reading(None, Status.FAILED, "not read")
        if not isinstance(init, str) or not isinstance(here, str):
            return Reading(None, Status.DENIED, f"the mount namespace of process 1 cannot be seen; {AS_ROOT}")
        return "nothing" if here == init else "mount_namespace"

    def _words(self, say: _Say, proc: Proc) -> None:
        if proc.kernel:
            return
        for fact, part in (("process.command", "cmdline"), ("process.env", "environ")):
            why = gap(refusal(proc.detail, part))
            found = proc.detail.get(part)
            if why is None and proc.state == "Z":
                why = Reading(None, Status.NOT_APPLICABLE, "a zombie has none any more")
            if why is not None:
                say(fact, why, part)
            elif part == "cmdline" and isinstance(found, list):
                command = clean(" ".join(words(found)))
                say(fact, command or f"[{proc.name}]", part, command)
            elif part == "environ" and isinstance(found, dict):
                settings = tuple(f"{k}={v}" for k, v in sorted(proc.env.items()))
                self._emit.add(fact, say.subject, settings, say.at(part), " ".join(settings))

    def _limits(self, say: _Say, proc: Proc) -> None:
        status = mapping(proc.detail.get("status"))
        if isinstance(allowed := status.get("Cpus_allowed_list"), str):
            say("process.cpus_allowed", allowed, "status", f"Cpus_allowed_list: {allowed}")
            if count := len(cpus(allowed)):
                say("process.cpus_allowed.count", count, "status", f"Cpus_allowed_list: {allowed}")
        if isinstance(nodes := status.get("Mems_allowed_list"), str):
            say("process.memory_nodes", nodes, "status", f"Mems_allowed_list: {nodes}")
        if proc.kernel:
            return
        limits = mapping(proc.detail.get("limits"))
        shown = " ".join(words(limits.get("memlock")))
        say("process.limit.memlock", memlock(proc), "limits", f"Max locked memory {shown}")
        files = digits(next(iter(words(limits.get("nofile"))), ""))
        if files is not None:
            say("process.limit.files", files, "limits", f"Max open files {files}")
        score = proc.detail.get("oom_score_adj")
        if isinstance(score, str) and re.fullmatch(r"-?\d{1,4}", score):
            say("process.oom_score_adj", int(score), "oom_score_adj", score)
        executable = proc.detail.get("executable")
        if isinstance(executable, str):
            say("process.executable_deleted", executable.endswith(" (deleted)"), "exe", executable)
        elif isinstance(executable, dict) and proc.state != "Z":
            say("process.executable_deleted", gap(executable) or Reading(None, Status.FAILED, "not read"), "exe")

    def _adopted(self, say: _Say, proc: Proc) -> None:
        """Whether a rank of torchrun has lost its launcher."""
        told = adopted(proc, launch_of(proc), self._procs)
        if told is not None:
            parent = self._procs[proc.ppid]
            say("process.adopted", told, "stat", f"parent {parent.pid} ({parent.name})")
        elif why := gap(refusal(proc.detail, "environ")):
            say("process.adopted", why, "environ")
        else:
            say("process.adopted", Reading(None, Status.NOT_APPLICABLE, "no rank that torchrun started"), "environ")

    def _stuck(self, say: _Say, proc: Proc) -> None:
        """How long the thread that has been blocked longest cannot have run, at least, and where it waits."""
        if isinstance(hung := proc.detail.get("hung"), str):
            say("process.lock_stuck", True, "cmdline", f"{hung} did not answer")
        elif isinstance(proc.detail.get("cmdline"), list):
            say("process.lock_stuck", False, "cmdline", "cmdline was read")
        looks = mappings(proc.detail.get("blocked"))
        seconds, thread = blocked(looks)
        shown = f"thread {thread} in state D, seen {len(looks)} times" if thread else ""
        say("process.blocked_for", seconds, "task/*/stat", shown)
        if not thread:
            return
        last = mapping(mapping(looks[-1].get("threads")).get(thread))
        wchan, stack = last.get("wchan"), last.get("stack")
        frames = [found for line in words(stack) if (found := _FRAME.search(line))]
        if isinstance(wchan, str) and wchan.strip() not in ("", "0"):
            say("process.wait_channel", clean(wchan), f"task/{thread}/wchan", wchan)
        elif frames:
            say("process.wait_channel", frames[0]["function"], f"task/{thread}/stack", words(stack)[0])
        else:
            why = (
                gap(mapping(wchan))
                or gap(mapping(stack))
                or Reading(None, Status.DENIED, f"the kernel does not tell; {AS_ROOT}")
            )
            say("process.wait_channel", why, f"task/{thread}/wchan")
        modules = [f["module"] for f in frames if f["module"]]
        if frames:
            say(
                "process.blocked_in",
                modules[0] if modules else "kernel",
                f"task/{thread}/stack",
                " < ".join(f[0] for f in frames[:4]),
            )
        else:
            why = gap(mapping(stack)) or Reading(None, Status.DENIED, f"the stack cannot be read; {AS_ROOT}")
            say("process.blocked_in", why, f"task/{thread}/stack")

    def _rates(self, say: _Say, proc: Proc, first: Mapping[str, Any], second: Mapping[str, Any]) -> None:
        a, b = first.get("at_s"), second.get("at_s")
        if not isinstance(a, int | float) or not isinstance(b, int | float) or b <= a:
            return
        seconds = float(b - a)
        old, new = stat_fields(first), stat_fields(second)
        if len(old) > 9 and len(new) > 9 and (faults := numbers([old[9], new[9]])) and len(faults) == 2:
            self._rate(say, "process.faults.major", faults[0], faults[1], seconds, "stat", "majflt")
        switched = [numbers(c.get("switches")) for c in (first, second)]
        if all(len(s) == 2 for s in switched):
            self._rate(
                say,
                "process.switches.involuntary",
                switched[0][1],
                switched[1][1],
                seconds,
                "status",
                "nonvoluntary_ctxt_switches",
            )
        self._io(say, first, second, seconds)
        self._scheduling(say, proc, first, second, seconds)

    def _rate(
        self, say: _Say, fact: str, old: int, new: int, seconds: float, part: str, name: str, per: float = 1.0
    ) -> None:
        if new >= old:
            say(fact, round((new - old) / per / seconds, 2), part, f"{name}: {old} -> {new} in {seconds:.3g} s")

    def _io(self, say: _Say, first: Mapping[str, Any], second: Mapping[str, Any], seconds: float) -> None:
        before, after = mapping(first.get("io")), mapping(second.get("io"))
        for fact, name in (("process.io.read", "read_bytes"), ("process.io.write", "write_bytes")):
            if why := gap(before):
                say(fact, why, "io")
                continue
            old, new = _int(before.get(name)), _int(after.get(name))
            if old is not None and new is not None:
                self._rate(say, fact, old, new, seconds, "io", name, 1 << 20)

    def _scheduling(
        self, say: _Say, proc: Proc, first: Mapping[str, Any], second: Mapping[str, Any], seconds: float
    ) -> None:
        before, after = mapping(first.get("threads")), mapping(second.get("threads"))
        pairs = [(numbers(before[t]), numbers(after[t])) for t in sorted(before) if t in after]
        deltas = [
            tuple(n - o for o, n in zip(old, new, strict=True)) for old, new in pairs if len(old) == len(new) == 3
        ]
        if not deltas or any(d < 0 for three in deltas for d in three):
            return
        run, wait, slices = (sum(d[i] for d in deltas) for i in range(3))
        shown = f"ran {run / 1e6:.4g} ms, waited {wait / 1e6:.4g} ms, {len(deltas)} of {proc.threads} threads"
        idle = Reading(None, Status.NOT_APPLICABLE, "it asked for hardly any CPU time")
        say(
            "process.runqueue.wait",
            round(100 * wait / (run + wait), 1) if run + wait >= LEAST_NS else idle,
            "task/*/schedstat",
            shown,
        )
        every = Reading(None, Status.NOT_ASKED, f"{len(deltas)} of {proc.threads} threads were read")
        say(
            "process.switches",
            round(slices / seconds, 1) if len(deltas) >= proc.threads else every,
            "task/*/schedstat",
            shown,
        )


def blocked(looks: Sequence[Mapping[str, Any]]) -> tuple[float, str]:
    """Seconds for which one thread was in state D at every look and never ran in between; and the thread."""
    best = (0.0, "")
    if len(looks) < 2:
        return best
    for thread, entry in sorted(mapping(looks[0].get("threads")).items()):
        start, end, ran = looks[0].get("at_s"), None, mapping(entry).get("schedstat")
        for look in looks[1:]:
            now = mapping(mapping(look.get("threads")).get(thread))
            if not now or numbers(now.get("schedstat"))[2:] != numbers(ran)[2:] or not numbers(ran):
                end = None
                break
            end = look.get("at_s")
        if isinstance(start, int | float) and isinstance(end, int | float) and end - start > best[0]:
            best = (round(end - start, 2), thread)
    return best


def _launch(proc: Proc) -> str:
    names = (
        "SLURM_JOB_ID",
        "TORCHELASTIC_RUN_ID",
        "MASTER_ADDR",
        "MASTER_PORT",
        "RANK",
        "WORLD_SIZE",
        "OMPI_COMM_WORLD_RANK",
    )
    return " ".join(f"{n}={proc.env[n]}" for n in names if n in proc.env)


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


class _Say:
    """Adds observations of one process."""

    def __init__(self, emit: Snapshot, subject: Subject, folder: str) -> None:
        self.subject = subject
        self._emit, self._folder = emit, folder

    def at(self, part: str) -> str:
        """The file that a person can look at."""
        return f"{self._folder}/{part}" if part else self._folder

    def __call__(self, fact: str, reading: Reading | Scalar, part: str, shown: str = "") -> None:
        self._emit.add(fact, self.subject, reading, self.at(part), shown)
