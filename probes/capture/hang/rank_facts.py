"""What the ranks of a capture say together, as observations: who stands still and where, who is late, what is stuck.

The rest of the job is reasoned about by rules; here are only facts, each with what a person can look at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from knowledge.observation import Clock, Observation, Scope, Source, Status, Subject, Value, node
from knowledge.text import clean, excerpt
from probes.capture.hang import across
from probes.capture.hang.flight import Flight, Stuck, of_part
from probes.capture.hang.stack_tree import spans
from probes.capture.hang.standing import Member, Standing, members
from probes.capture.hang.standing_frames import Cause
from probes.capture.hang.standing_job import JobStanding, Pattern, jobs
from probes.parse._host_snapshot import mapping, whole

NAME: Final = "capture"
REVISION: Final = 1
FACTS: Final = (
    "process.in_job", "process.is_rank", "rank.is_process", "job.ranks.captured", "job.slow_rank", "job.slow_rank.is_process",
    "job.slow_rank.function", "job.slow_rank.wait.share", "job.waiting.function", "job.hung", "job.hung.rank", "job.hung.is_process",
    "job.hung.function", "job.hung.collective", "job.hung.ranks_waiting", "job.hung.absent", "job.hung.desync", "process.hung",
    "process.hung.function", "process.hung.kind", "nccl.flight.collective", "nccl.flight.seq", "nccl.flight.missing_ranks",
)  # fmt: skip


def observations(document: Mapping[str, Any], host: str = "", called: str = "capture.json") -> list[Observation]:
    """Everything that a capture's document tells of its ranks together. Pure; bad input never raises.

    `host`: the node's name; `called`: what the document is called in evidence.
    """
    at = whole(document.get("as_of"))
    say = _Say(host, at, Source(NAME, called, revision=REVISION))
    found = members(document.get("targets"))
    by_job: dict[str, list[Member]] = {}
    for m in found:
        _relations(say, m)
        if m.job:
            by_job.setdefault(m.job, []).append(m)
    for job, own in by_job.items():
        say.put("job.ranks.captured", say.job(job), sum(m.rank is not None for m in own) or len(own))
    hang = mapping(document.get("hang"))
    if hang:
        flight = of_part(hang.get("flight"), max((m.world or 0 for m in found), default=0))
        for verdict in jobs(hang, found):
            _standing(say, verdict)
            _hung(say, verdict, flight, named=bool(verdict.ranks and verdict.ranks[0].member.job))
    for job, own in by_job.items():
        _late(say, job, across.compare(document, own))
    return say.out


class _Say:
    """Collects observations, all of one moment and one source."""

    def __init__(self, host: str, at: int | None, source: Source) -> None:
        self.host, self._at, self._source = host, at, source
        self.out: list[Observation] = []

    def process(self, pid: int) -> Subject:
        return Subject(Scope.PROCESS, str(pid), node(self.host))

    def job(self, name: str) -> Subject:
        return Subject(Scope.JOB, name, node(self.host))

    def put(self, fact: str, subject: Subject, value: Value, shown: str = "") -> None:
        clock = Clock.REALTIME if self._at is not None else Clock.NONE
        value = clean(value) if isinstance(value, str) else value
        self.out.append(
            Observation(fact, subject, value, Status.OK, self._source, self._at, clock, excerpt=excerpt(shown, 400))
        )

    def lack(self, fact: str, subject: Subject, why: str, status: Status = Status.FAILED) -> None:
        clock = Clock.REALTIME if self._at is not None else Clock.NONE
        self.out.append(
            Observation(fact, subject, None, status, self._source, self._at, clock, detail=excerpt(why, 300))
        )


def _relations(say: _Say, m: Member) -> None:
    """Which rank of which job a process is."""
    if not m.job:
        return
    process = say.process(m.pid)
    say.put("process.in_job", process, f"job:{m.job}")
    if m.rank is not None:
        say.put("process.is_rank", process, f"rank:{m.rank}", f"rank {m.rank} of job {m.job}")
        say.put("rank.is_process", Subject(Scope.RANK, str(m.rank), say.job(m.job)), f"process:{m.pid}")


# --- what stands still -----------------------------------------------------------------------------


def _standing(say: _Say, verdict: JobStanding) -> None:
    """Each process by itself."""
    for s in verdict.ranks:
        subject = say.process(s.member.pid)
        if s.cause is Cause.ENDED:
            say.lack("process.hung", subject, "the process has ended", Status.NOT_APPLICABLE)
            continue
        shown = _shown(s)
        if s.still is None:
            say.lack("process.hung", subject, f"{s.why.en}: {shown}" if s.why else shown)
        else:
            say.put("process.hung", subject, s.still, shown)
        if s.still is not False:
            say.put("process.hung.kind", subject, str(s.kind), shown)
            if s.function:
                say.put("process.hung.function", subject, s.function, shown)


def _shown(s: Standing) -> str:
    """Where a process stands, for people."""
    who = f"rank {s.member.rank} (pid {s.member.pid})" if s.member.rank is not None else f"pid {s.member.pid}"
    parts = [
        s.function or "no Python stack",
        str(s.cause) if s.cause else "",
        s.evidence,
        f"for {s.seconds:g} s" if s.seconds else "",
    ]
    return f"{who}: " + "; ".join(p for p in parts if p)


def _hung(say: _Say, verdict: JobStanding, flight: Flight, *, named: bool) -> None:
    """The job: whether it stands, who is waited for, who waits where."""
    if not named:
        return
    job = say.job(verdict.job)
    stuck = flight.stuck[0] if flight.stuck else None
    if verdict.hung is None:
        say.lack("job.hung", job, f"ranks stand still, but it cannot be told that they hang: {verdict.why.en}")
    else:
        say.put("job.hung", job, verdict.hung, _picture(verdict))
    _flight(say, job, stuck)
    if verdict.hung is False:
        return
    if verdict.absent:
        say.put(
            "job.hung.absent", job, tuple(map(str, verdict.absent)), f"ranks {spans(verdict.absent)} have no process"
        )
    _guilty(say, job, verdict, flight)
    if verdict.waiting:
        others = [s for s in verdict.waiting if s is not verdict.guilty]
        say.put("job.hung.ranks_waiting", job, len(others), f"ranks {_ranks(others)}")
        differ = verdict.desync or (stuck is not None and stuck.mismatch == "collective")
        say.put("job.hung.desync", job, differ, _places(verdict.waiting))
    if verdict.collective:
        say.put("job.hung.collective", job, verdict.collective, _places(verdict.waiting))


def _guilty(say: _Say, job: Subject, verdict: JobStanding, flight: Flight) -> None:
    """The rank that the others wait for: by the stacks; where they do not tell, by the flight recorder; else one that is absent."""
    guilty = verdict.guilty
    if guilty is None and verdict.pattern is not Pattern.ABSENT:
        guilty = next((s for s in verdict.ranks if s.member.rank in flight.guilty), None)
    if guilty is not None:
        others = f"; also ranks {_ranks(verdict.late[1:])}" if verdict.late[1:] else ""
        if guilty.member.rank is not None:
            say.put("job.hung.rank", job, str(guilty.member.rank), _shown(guilty) + others)
        say.put("job.hung.is_process", job, f"process:{guilty.member.pid}", _shown(guilty))
        if guilty.function:
            say.put("job.hung.function", job, guilty.function, _shown(guilty))
    elif verdict.absent and verdict.waiting:
        say.put("job.hung.rank", job, str(verdict.absent[0]), f"ranks {spans(verdict.absent)} have no process")


def _flight(say: _Say, job: Subject, stuck: Stuck | None) -> None:
    if stuck is None:
        return
    shown = f"{stuck.collective} number {stuck.seq} of group {stuck.group}, {stuck.state}; entered by ranks {spans(stuck.entered)}"
    shown += f", called at {stuck.called}" if stuck.called else ""
    if stuck.mismatch:
        shown += f"; ranks differ in the {stuck.mismatch}: " + ", ".join(
            f"{v} ({spans(r)})" for v, r in stuck.differing.items()
        )
    say.put("nccl.flight.collective", job, stuck.collective, shown)
    say.put("nccl.flight.seq", job, stuck.seq, shown)
    if stuck.missing or not stuck.silent:
        say.put("nccl.flight.missing_ranks", job, tuple(map(str, stuck.missing)), shown)
    else:
        say.lack("nccl.flight.missing_ranks", job, f"no dump of ranks {spans(stuck.silent)}")


def _ranks(found: Sequence[Standing]) -> str:
    return spans(s.member.rank for s in found if s.member.rank is not None)


def _places(found: Sequence[Standing]) -> str:
    """Where ranks wait: ``all_reduce, called by train (t.py:22): 0-6``."""
    places: dict[str, list[int]] = {}
    for s in found:
        places.setdefault(s.function or str(s.kind), []).append(
            s.member.rank if s.member.rank is not None else s.member.pid
        )
    return "; ".join(
        f"{where}: {spans(ranks)}" for where, ranks in sorted(places.items(), key=lambda p: (-len(p[1]), p[0]))
    )


def _picture(verdict: JobStanding) -> str:
    """The job in one line."""
    rest = f"; {verdict.elsewhere} ranks were not looked at" if verdict.elsewhere else ""
    rest += "".join(f"; {link}" for link in verdict.links[:2])
    match verdict.pattern:
        case Pattern.LATE:
            return f"{len(verdict.waiting)} ranks wait for {_ranks(verdict.late) or 'others'}{rest}"
        case Pattern.ABSENT:
            return f"{len(verdict.waiting)} ranks wait for ranks {spans(verdict.absent)}, which have no process{rest}"
        case Pattern.DESYNC:
            return f"ranks wait in different collectives: {_places(verdict.waiting)}{rest}"
        case Pattern.TOGETHER:
            return f"all {len(verdict.waiting)} ranks wait in {verdict.collective or 'the device'}: nobody is late here{rest}"
    moving = [s for s in verdict.ranks if s.still is False]
    return (
        f"{len(moving)} of {len(verdict.ranks)} processes move"
        if moving
        else f"for {verdict.seconds:g} s nothing has moved{rest}"
    )


# --- who is late -------------------------------------------------------------------------------------


def _late(say: _Say, name: str, found: across.Late | None) -> None:
    if found is None:
        return
    job = say.job(name)
    shown = f"rank {found.rank} (pid {found.pid}): {found.function or '?'}; the others wait {found.share:.1f} % of the window in {found.waiting or '?'}"
    say.put("job.slow_rank", job, str(found.rank), shown)
    say.put("job.slow_rank.is_process", job, f"process:{found.pid}", shown)
    say.put("job.slow_rank.wait.share", job, round(found.share, 1), shown)
    if found.function:
        say.put("job.slow_rank.function", job, found.function, shown)
    if found.waiting:
        say.put("job.waiting.function", job, found.waiting, shown)
