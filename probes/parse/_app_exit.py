"""How processes and jobs ended, in the words of torchrun, mpirun, srun, Slurm, Kubernetes and the shell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from knowledge.lazy import lazy
from knowledge.observation import Clock, Scalar
from knowledge.text import excerpt
from probes.parse._app_emit import Emitter, whole
from probes.parse._app_lines import AppLine, rank_subject

TRIGGERS = (
    r"ChildFailedError|Root Cause \(first observed failure\)|failed \(exitcode: |exits with return code = -?\d",
    r"exitcode  : -?\d",
    r"process rank \d+ with PID|Process name: \[\[\d+,\d+\],\d+\]|srun: error: \S+: tasks? [0-9,\-]+: ",
    r"slurmstepd: error: |srun: error: Node failure|due to failure of node|on failed node|DUE TO (?:TIME LIMIT|PREEMPTION|NODE FAILURE)|Exceeded (?:job|step) memory limit",
    r"[Ss]pot (?:[Ii]nstance )?(?:[Ii]nterruption (?:notice|warning)|ITN event)|[Ii]nstance (?:was|is being) preempted|compute\.instances\.preempted",
    r"died with <Signals\.SIG\w+: \d+>|Caught signal \d+ \(",
    r"\bOOMKilled\b|The node was low on resource|[Rr]eason:? +(?:Evicted|Preempt\w*|DeadlineExceeded)|exit code 137\b",
    r"SignalException: Process|Fatal Python error: |TERM_(?:MEMLIMIT|RUNLIMIT|OWNER)|PBS: job killed",
    r"line \d+: +\d+ (?:Killed|Terminated|Segmentation fault|Aborted|Bus error|Illegal instruction)",
    r"due to the node running low on memory|killed due to memory pressure \(OOM\)",
    r"^(?:\[[^\]]{1,40}\]:? ?)?(?:Killed|Segmentation fault|Bus error|Aborted)(?: \(core dumped\))?\s*$",
)

SIGNALS = {4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}
_WORDS = {"killed": 9, "terminated": 15, "segmentation fault": 11, "aborted": 6, "bus error": 7,
          "illegal instruction": 4, "floating point exception": 8}  # fmt: skip
REASONS = {9: "killed", 15: "terminated", 11: "segfault", 6: "aborted", 7: "bus_error", 4: "illegal_instruction",
            8: "floating_point"}  # fmt: skip

_SIGTERM = 15

_ENTRY = lazy(r"\[\d{1,6}\]:$")
# "  rank      : 3 (local_rank: 3)"   "  exitcode  : -9 (pid: 1234)"
_FIELD = lazy(r"\s{1,8}(time|host|rank|exitcode|traceback) {0,8}: (.{0,300})")
_LOCAL = lazy(r"(-?\d{1,7}) \((?:local_rank|pid): (\d{1,9})\)")
_SIGNAL = lazy(r"Signal (\d{1,2}) \((SIG\w{2,8})\)")
# failed (exitcode: -9) local_rank: 0 (pid: 1234) of binary: /usr/bin/python3
_ELASTIC = lazy(r"failed \(exitcode: (-?\d{1,5})\) local_rank: (\d{1,5}) \(pid: (\d{1,9})\)")
# mpirun noticed that process rank 3 with PID 1234 on node gpu-7 exited on signal 9 (Killed).
_MPI = lazy(r"process rank (\d{1,7}) with PID (\d{1,9}) on node (\S{1,80}) exited on signal (\d{1,2})")
_MPI_NAME = lazy(r"Process name: \[\[\d{1,9},\d{1,9}\],(\d{1,7})\]")
_MPI_EXIT = lazy(r"Exit code: +(\d{1,3})\b")
# srun: error: node5: task 3: Killed      srun: error: node5: tasks 0-7: Exited with exit code 1
_SRUN = lazy(r"srun: error: ([\w.\[\],-]{1,80}): tasks? ([0-9,\-]{1,80}): (.{1,120})")
_DEEPSPEED = lazy(r"exits with return code = (-?\d{1,5})")


def rank_failures(emit: Emitter, lines: Sequence[AppLine]) -> None:
    """One `rank_failed` event for each process that a launcher reports as failed. What SIGTERM ended beside one that failed
    by itself is not the first: the launcher ends the others.
    """
    failed: list[tuple[AppLine, int | None, dict[str, Scalar]]] = []
    pids = _summary(failed, lines)
    for index, line in enumerate(lines):
        text = line.text
        fields: dict[str, Scalar] = {}
        rank = line.rank
        if found := _ELASTIC.search(text):
            if found[3] in pids:
                continue
            fields = {
                "exitcode": int(found[1]),
                "local_rank": int(found[2]),
                "pid": int(found[3]),
                "launcher": "torchrun",
            }
        elif found := _MPI.search(text):
            rank = int(found[1])
            fields = {"pid": int(found[2]), "host": found[3], "signal": int(found[4]), "launcher": "mpirun"}
        elif found := _MPI_NAME.search(text):
            rank = int(found[1])
            after = next((e for e in (_MPI_EXIT.search(n.text) for n in lines[index + 1 : index + 3]) if e), None)
            fields = {"exitcode": int(after[1]) if after else None, "launcher": "mpirun"}
        elif found := _SRUN.search(text):
            fields = {"host": found[1], "task": found[2], "launcher": "srun", **_srun(found[3])}
        elif (found := _DEEPSPEED.search(text)) and int(found[1]) != 0:
            fields = {"exitcode": int(found[1]), "launcher": "deepspeed"}
        else:
            continue
        _failed(failed, line, rank, fields)
    first = [fields.get("signal") != _SIGTERM for _, _, fields in failed]
    for (line, rank, fields), own in zip(failed, first, strict=True):
        echo = fields.get("root") is False or (any(first) and not own)
        code = fields.get("exitcode")
        emit.event(
            "rank_failed",
            rank_subject(rank, emit.document),
            {**fields, "rank": rank, "echo": echo},
            line.number,
            line.raw,
            code=code if isinstance(code, int) else None,
            at=line.at,
            clock=line.clock,
        )


def _summary(out: list[tuple[AppLine, int | None, dict[str, Scalar]]], lines: Sequence[AppLine]) -> set[str]:
    """The failures of torchrun's table; the pids that it lists."""
    pids: set[str] = set()
    entry: dict[str, Scalar] | None = None
    quoted: list[AppLine] = []
    root, rank = False, None
    for line in [*lines, AppLine(0, "", "=====")]:
        text = line.text
        if text.startswith(("Failures:", "Root Cause (")):
            root = text.startswith("Root")
        if _ENTRY.match(text) or text.startswith(("=====", "-----", "Root Cause (")):
            if entry and quoted:
                shown = replace(quoted[0], raw=" ".join(part.text.strip() for part in quoted))
                _failed(out, shown, rank, entry)
            entry = {"root": root, "launcher": "torchrun"} if _ENTRY.match(text) else None
            quoted, rank = [line], None
        elif entry is not None and (found := _FIELD.match(text)):
            quoted.append(line)
            rank = _entry_field(entry, found[1], found[2].strip(), rank)
            if found[1] == "exitcode" and (pair := _LOCAL.match(found[2])):
                pids.add(pair[2])
    return pids


def _entry_field(entry: dict[str, Scalar], name: str, value: str, rank: int | None) -> int | None:
    pair = _LOCAL.match(value)
    if name == "rank" and pair:
        entry["local_rank"] = int(pair[2])
        return int(pair[1])
    if name == "exitcode" and pair:
        entry["exitcode"], entry["pid"] = int(pair[1]), int(pair[2])
    elif name == "traceback" and (signal := _SIGNAL.search(value)):
        entry["signal"] = int(signal[1])
    elif name in ("time", "host"):
        entry[name] = value
    return rank


def _srun(said: str) -> dict[str, Scalar]:
    lowered = said.lower()
    if found := re.search(r"exit code (\d{1,3})", lowered):
        return {"exitcode": int(found[1])}
    if "out of memory" in lowered:
        return {"reason": "oom_killed"}
    return {"signal": next((number for word, number in _WORDS.items() if lowered.startswith(word)), None)}


def _failed(
    out: list[tuple[AppLine, int | None, dict[str, Scalar]]], line: AppLine, rank: int | None, fields: dict[str, Scalar]
) -> None:
    if not set(fields) & {"exitcode", "signal", "reason", "local_rank", "task"} and rank is None:
        return
    code = fields.get("exitcode")
    if fields.get("signal") is None and isinstance(code, int):
        # a launcher prints -9, a shell 128 + 9
        number = -code if code < 0 else code - 128
        fields["signal"] = number if number in SIGNALS else None
    signal = fields.get("signal")
    if code is None and isinstance(signal, int):
        fields["exitcode"] = -signal  # srun and mpirun name the signal alone
    fields["signal_name"] = SIGNALS.get(signal) if isinstance(signal, int) else None
    out.append((line, rank, fields))


_JOB = lazy(r"\b(?:JOB|STEP|StepId=|JobId=|step) ?(\d{1,12})(?:\.(\w{1,20}))?")
_ON = lazy(r"\bON ([\w.\[\],-]{1,80})")
_LOST = lazy(r"(?:Node failure on|failure of node|on failed node) ([\w.-]{1,80})")  # the other line names who tells it
# reason and the line that tells it, the more exact first
_ENDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    # Task was killed due to the node running low on memory.        3 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed
    (
        "node_memory_low",
        lazy(
            r"(?<!\b0 )(?:killed due to the node running low on memory|Workers \(tasks / actors\) killed due to memory pressure \(OOM\))"
        ),
    ),
    (
        "oom_killed",
        # "OOMKilled": false,      says that it was not
        lazy(
            r"oom[_-]kill event|Exceeded (?:job|step) memory limit|OOM [Kk]illed|\bOOMKilled\b(?![\"']?\s{0,4}[:=]\s{0,4}[\"']?(?i:false))|TERM_MEMLIMIT"
        ),
    ),
    (
        "time_limit",
        lazy(r"DUE TO TIME LIMIT|[Rr]eason:? +DeadlineExceeded|TERM_RUNLIMIT|PBS: job killed: walltime"),
    ),
    # Spot Instance interruption notice received    Spot ITN event received. Instance will be interrupted at ...
    # Instance was preempted. (compute.instances.preempted of Google Cloud)
    (
        "preempted",
        lazy(
            r"DUE TO PREEMPTION|[Rr]eason:? +Preempt|[Ss]pot (?:[Ii]nstance )?(?:[Ii]nterruption (?:notice|warning)|ITN event) (?:was )?(?:received|detected)"
            r"|[Ii]nstance (?:was|is being) preempted\b|compute\.instances\.preempted"
        ),
    ),
    (
        "node_failure",
        lazy(
            r"DUE TO NODE FAILURE|srun: error: Node failure|\b[Rr]equeue job JobId=\d+ due to failure of node|Killing JobId=\d+ on failed node"
        ),
    ),
    ("evicted", lazy(r"The node was low on resource|[Rr]eason:? +Evicted")),
    ("cancelled", lazy(r"\*\*\* (?:JOB|STEP) .{1,80} CANCELLED AT|TERM_OWNER")),
)
_GOT_SIGNAL = lazy(r"SignalException: Process (\d{1,9}) got signal: (\d{1,2})")
_DIED = lazy(
    r"(?:line \d{1,7}: +(\d{1,9}) |^|Fatal Python error: )"
    r"(Killed|Terminated|Segmentation fault|Aborted|Bus error|Illegal instruction|Floating point exception)\b(.{0,20})"
)
# CalledProcessError: Command '['python', 'train.py']' died with <Signals.SIGKILL: 9>.     [gpu-a:4021 :0:4021] Caught signal 7 (Bus error: nonexistent physical address)
_BY_SIGNAL = lazy(r"died with <Signals\.SIG\w{2,8}: (\d{1,2})>|Caught signal (\d{1,2}) \(")
_EXIT_137 = lazy(r"exit code (13[0-9]|14[0-3])\b")


def job_ends(emit: Emitter, lines: Sequence[AppLine]) -> None:
    """One `job_terminated` event for each reason that a scheduler, a container runtime or a shell gives."""
    seen: set[tuple[Scalar, ...]] = set()
    broken = False
    for line in lines:
        fields = _end(line.text)
        broken = broken or _breaks(line.text)
        if fields is None or (broken and fields.get("reason") == "cancelled"):
            continue  # srun ends the step of a task that failed
        key = (line.label, fields.get("reason"), fields.get("signal"), fields.get("job"), fields.get("pid"))
        if key in seen:
            continue
        seen.add(key)
        fields |= {"rank": line.rank, "message": excerpt(line.text)}
        subject = rank_subject(line.rank, emit.document)
        at, clock = (line.at, line.clock) if line.at is not None else _ended_at(line.text)
        emit.event("job_terminated", subject, fields, line.number, line.raw, at=at, clock=clock)


def _breaks(text: str) -> bool:
    """Whether srun tells of a task that ended by itself with an error: not by SIGTERM, and not with the step."""
    found = _SRUN.search(text)
    told = _srun(found[3]) if found else {}
    return told.get("signal") not in (None, _SIGTERM) or bool(told.get("exitcode") or told.get("reason"))


# *** STEP 88123.0 ON n1 CANCELLED AT 2025-11-12T10:00:00 DUE TO TIME LIMIT ***
_AT = lazy(r"CANCELLED AT (20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d)\b")


def _ended_at(text: str) -> tuple[int | None, Clock]:
    """When Slurm says that it ended a job, by its own clock; None where it does not say."""
    if (found := _AT.search(text)) is None:
        return None, Clock.NONE
    try:
        when = datetime.fromisoformat(found[1]).replace(tzinfo=UTC)
    except ValueError:
        return None, Clock.NONE
    return int(when.timestamp()) * 10**9, Clock.LOCAL


def _end(text: str) -> dict[str, Scalar] | None:
    fields: dict[str, Scalar] = {}
    if reason := next((name for name, words in _ENDS if words.search(text)), None):
        fields["reason"] = reason
        if job := _JOB.search(text):
            fields["job"], fields["step"] = job[1], job[2]
        if on := (_LOST if reason == "node_failure" else _ON).search(text):
            fields["host"] = on[1]
        return fields
    number = 0
    if found := _GOT_SIGNAL.search(text):
        number = int(found[2])
        fields["pid"] = int(found[1])
    elif (found := _DIED.search(text)) and (
        found[1] or text.startswith("Fatal") or found[3].strip() in ("", "(core dumped)")
    ):
        number = _WORDS[found[2].lower()]
        fields["pid"] = whole(found[1])
    elif found := _BY_SIGNAL.search(text):
        number = int(found[1] or found[2])
    elif found := _EXIT_137.search(text):
        number = int(found[1]) - 128
        fields["exitcode"] = int(found[1])
    else:
        return None
    fields |= {"reason": REASONS.get(number, "signal"), "signal": number}
    return fields
