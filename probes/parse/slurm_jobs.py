"""``squeue``, ``sacct`` and ``scontrol show job``: jobs that Slurm ended, and jobs that wait for what does not come by itself.

States and reasons: man squeue (JOB STATE CODES, JOB REASON CODES), man sacct. sacct shortens a word to its column and marks
that with a plus sign (``OUT_OF_ME+``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from knowledge.observation import Clock, Event, Observation, Scalar, Scope, Status, Subject, node
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse._columns import cells, ruled
from probes.parse._logtime import parse_iso
from probes.parse.sinfo_reasons import nodes

NAME, REVISION = "slurm-jobs", 6
PROVIDES = ("job_terminated", "slurm_job_waits", "node.slurm.held")
#              JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)
_QUEUE = re.compile(r"(?=.{0,400}\bJOBID\b)(?=.{0,400}\bST(?:ATE)?\b).{0,400}\bNODELIST\(REASON\)\s{0,20}")
# JobID           JobName  Partition    Account  AllocCPUS      State ExitCode
_ACCOUNT = re.compile(r"\s{0,40}(?=.{0,400}\bJobID(?:Raw)?\b)(?=.{0,400}\bState\b).{0,400}")
# JobID|JobName|Partition|Account|AllocCPUS|State|ExitCode|       of sacct -p and -P
_PIPED = re.compile(r"(?=.{0,400}\bJobID(?:Raw)?\|)(?=.{0,400}\bState\b)[\w|]{1,400}")
# JobId=991240 ArrayJobId=991238 ArrayTaskId=2 JobName=train7b          JobState=NODE_FAIL Reason=NodeDown Dependency=(null)
_SHOWN = re.compile(r"(?m)^\s{0,20}JobId=(\d{1,12})\b")
_STATE = re.compile(r"\bJobState=([A-Z_]{2,20})(?: Reason=(\S{1,300}))?")
_HOSTS = re.compile(r"(?m)^\s{0,20}NodeList=(\S{1,2000})")
_END_TIME = re.compile(r"\bEndTime=(\S{1,40})")
_EXIT = re.compile(r"\bExitCode=(\d{1,3}:\d{1,3})\b")
_ENDS = {
    "NODE_FAIL": "node_failure",
    "BOOT_FAIL": "node_failure",
    "OUT_OF_MEMORY": "oom_killed",
    "TIMEOUT": "time_limit",
    "DEADLINE": "time_limit",
    "PREEMPTED": "preempted",
    "FAILED": "failed",
}
# man squeue (JOB STATE CODES) and man sacct: a word that is none of them was not read from the column of states
_NAMES = (
    "BOOT_FAIL CANCELLED COMPLETED COMPLETING CONFIGURING DEADLINE EXPEDITING FAILED LAUNCH_FAILED NODE_FAIL OUT_OF_MEMORY "
    "PENDING POWER_UP_NODE PREEMPTED RECONFIG_FAIL REQUEUED REQUEUE_FED REQUEUE_HOLD RESIZING RESV_DEL_HOLD REVOKED RUNNING "
    "SIGNALING SPECIAL_EXIT STAGE_OUT STOPPED SUSPENDED TIMEOUT UPDATE_DB"
)
_SHORT = "BF CA CD CF CG DL F NF OOM PD PR R RD RF RH RQ RS RV SE SI SO ST S TO"
_STATES = frozenset(f"{_NAMES} {_SHORT}".split())
_LEAST = 5  # characters of a state that was cut
_JOB = re.compile(r"[\w.+\[\]%,-]{1,60}")
_OF_NODE = re.compile(
    r"NodeFail|NodeDown|BootFail", re.IGNORECASE
)  # why a job FAILED: the node, and not its own exit code
_CODES = {
    "NF": "NODE_FAIL",
    "BF": "BOOT_FAIL",
    "OOM": "OUT_OF_MEMORY",
    "TO": "TIMEOUT",
    "DL": "DEADLINE",
    "PR": "PREEMPTED",
    "F": "FAILED",
    "PD": "PENDING",
}
# Reasons that nothing but a person ends; Priority, Resources, Dependency, limits and a hold of the user's own end by themselves.
_STUCK = re.compile(
    r"ReqNodeNotAvail|launch failed|JobLaunchFailure|JobHeldAdmin|BadConstraints|DependencyNeverSatisfied|PartitionDown|PartitionInactive|"
    r"PartitionNodeLimit|PartitionTimeLimit|InvalidAccount|InvalidQOS|NonExistent|NodeDown|RaisedSignal|Nodes required for job are DOWN|"
    r"Nodes_required_for_job_are_DOWN"
)
# ReqNodeNotAvail, UnavailableNodes:gpu[017-018]      nodes that are down, drained or do not answer
_UNAVAILABLE = re.compile(r"UnavailableNodes:([\w.\[\],-]{1,2000})")


# TresPerNode=gres/gpu:10        TresPerJob=gres/gpu:h100:64        ReqTRES=cpu=16,mem=128G,node=1,billing=16,gres/gpu=10
_ASKS = re.compile(r"\b(?:TresPer\w{3,8}|ReqTRES)=(\S{0,200}gres\S{1,200})")


def sniff(head: str) -> int:
    """94 for a heading of the queue or of the accounts, or for a job with its state."""
    lines = [clean(line.text[:800]) for line in lines_of(head)[:40]]
    if any(_QUEUE.fullmatch(line) or _PIPED.fullmatch(line) for line in lines):
        return 94
    dashed = any(_ACCOUNT.fullmatch(one) and re.fullmatch(r"[- \t]{4,800}", two) for one, two in pairwise(lines))
    return 94 if dashed or (_SHOWN.search(head) and _STATE.search(head)) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """What became of each job that is listed; none seen of what a list of jobs holds none of."""
    out: list[Observation] = []
    document = Subject(Scope.DOCUMENT, context.source, node(context.host))
    listed = False
    unread: Line | None = None  # the first row of a job whose state is none of Slurm's
    told: set[tuple[str, str]] = set()
    for row, line in _rows(text):
        job, state = row.get("job", ""), row.get("state", "")
        if not _JOB.fullmatch(job) or not _is_state(state):
            if job[:1].isdigit():
                unread = unread or line
            continue
        listed = True
        full = _full(state)
        number, _, step = job.partition(".")
        if (number, full) in told:  # its steps end as it does
            continue
        told.add((number, full))
        out += _job(number, step, full, row, line, context)
    if unread is not None:
        why, source = "the state of a job was not understood", context.at(NAME, REVISION, unread.number)
        shown = excerpt(clean(unread.text.strip()), 300)
        out += [Observation(f, document, None, Status.FAILED, source, detail=why, excerpt=shown) for f in PROVIDES[:2]]
    for fact in PROVIDES[:2]:
        if listed and not any(o.fact == fact for o in out):
            out.append(Observation(fact, document, None, Status.NONE_SEEN, context.at(NAME, REVISION)))
    return out


def _is_state(word: str) -> bool:
    """Whether a word is one of Slurm's states, also one that its column cut, or with who cancelled it."""
    first, _, by = word.partition(" ")
    return (not by or re.fullmatch(r"by \S{1,40}", by) is not None) and (first in _STATES or bool(_begins(first)))


def _begins(word: str) -> str:
    """The state that a column cut: ``OUT_OF_ME+`` of sacct, ``NODE_FAI`` of ``squeue -l``."""
    short = word.rstrip("+")
    return next((s for s in sorted(_STATES) if s.startswith(short)), "") if len(short) >= _LEAST else ""


def _full(state: str) -> str:
    word = state.partition(" ")[0]
    return _CODES.get(word) or (word if word in _STATES else _begins(word) or word)


def _job(
    number: str, step: str, state: str, row: Mapping[str, str], line: Line, context: Context
) -> Iterator[Observation]:
    here = node(context.host)
    subject = Subject(Scope.JOB, number, Subject(Scope.DOCUMENT, context.source, here))
    source, shown = context.at(NAME, REVISION, line.number), excerpt(clean(line.text.strip()), 300)
    why, hosts = row.get("why", "").strip("()"), row.get("hosts", "")
    if reason := "node_failure" if state == "FAILED" and _OF_NODE.search(why) else _ENDS.get(state):
        fields: dict[str, Scalar] = {
            "reason": reason,
            "job": number,
            "step": step or None,
            "message": shown,
            "exitcode": int(row["exit"].partition(":")[0]) if row.get("exit") else None,
            "host": None if hosts in ("", "(null)", "None assigned") else excerpt(hosts, 120),
        }
        event = Event(None, {key: value for key, value in fields.items() if value is not None})
        end = parse_iso(row.get("end", ""))
        at, clock = (end.value, end.clock) if end is not None else (None, Clock.NONE)
        yield Observation("job_terminated", subject, event, Status.OK, source, at, clock, excerpt=shown)
    elif state == "PENDING" and _STUCK.search(why):
        told: dict[str, Scalar] = {"job": number, "reason": excerpt(clean(why.replace("_", " ")), 200)}
        if asks := excerpt(row.get("asks", ""), 120):
            told["asks"] = asks
        yield Observation("slurm_job_waits", subject, Event(None, told), Status.OK, source, excerpt=shown)
        if found := _UNAVAILABLE.search(why):
            for name in nodes(found[1]):
                yield Observation("node.slurm.held", node(name), True, Status.OK, source, excerpt=shown)


def _rows(text: str) -> Iterator[tuple[dict[str, str], Line]]:
    """Job, state, why it waits and its nodes, of each row or block."""
    lines = lines_of(text)
    columns: list[str] = []
    bar = ""
    for line in lines:
        told = clean(line.text[:4000])
        if _QUEUE.fullmatch(told[:800]) or _PIPED.fullmatch(told[:800].strip()):
            bar = "" if _QUEUE.fullmatch(told[:800]) else "|"
            columns = told.strip().split(bar or None)
        elif columns and bar:
            yield _named(dict(zip(columns, told.strip().split(bar), strict=False))), line
        elif columns and (row := cells(told, columns, columns[-1])):
            yield _named(row), line
    for row, line in ruled(lines):
        named = _named(row)
        well = _JOB.fullmatch(named["job"]) and _is_state(named["state"])
        yield named if well else _worded(clean(line.text[:4000]).split(), [*row]) or named, line
    starts = [*_SHOWN.finditer(text)]
    for found, end in zip(starts, [*(s.start() for s in starts[1:]), len(text)], strict=False):
        block = text[found.start() : end]
        if state := _STATE.search(block):
            at = text.count("\n", 0, found.start() + state.start())
            hosts = _HOSTS.search(block)
            asks, code = _ASKS.search(block), _EXIT.search(block)
            yield (
                {
                    "job": found[1],
                    "state": state[1],
                    "why": state[2] or "",
                    "hosts": hosts[1] if hosts else "",
                    "asks": asks[1] if asks else "",
                    "exit": code[1] if code else "",
                    "end": ended[1] if (ended := _END_TIME.search(block)) else "",
                },
                Line(at + 1, lines[at].text if at < len(lines) else state[0]),
            )


def _worded(words: Sequence[str], columns: Sequence[str]) -> dict[str, str]:
    """A row whose words stand under no column (its blanks were folded): the job is first, and one word is a state."""
    at = next((n for n, word in enumerate(words) if n and len(word) > 4 and _is_state(word)), 0)
    if not at or not re.fullmatch(r"\d[\w.+\[\]%,-]{0,59}", words[0]):
        return {}
    code = next((w for w in words[at + 1 :] if re.fullmatch(r"\d{1,3}:\d{1,3}", w)), "")
    last = columns[-1:] == ["NodeList"] and len(words) > at + 1 and words[-1] != code
    return {"job": words[0], "state": words[at], "exit": code, "hosts": words[-1] if last else "", "why": "", "end": ""}


def _named(row: Mapping[str, str]) -> dict[str, str]:
    last = row.get("NODELIST(REASON)", "")
    return {
        "job": row.get("JOBID") or row.get("JobID") or row.get("JobIDRaw") or "",
        "state": row.get("ST") or row.get("STATE") or row.get("State") or "",
        "why": last if last.startswith("(") else "",
        "end": row.get("End", ""),
        "hosts": row.get("NodeList") or (last if not last.startswith("(") else ""),
        "exit": code if re.fullmatch(r"\d{1,3}:\d{1,3}", code := row.get("ExitCode", "").strip()) else "",
    }


FORMAT = DocumentFormat(NAME, "squeue, sacct and scontrol show job", REVISION, PROVIDES, sniff, parse)
