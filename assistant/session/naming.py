"""What a question names for the probes that look into one thing: the processes that it is about, found among what is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from assistant.render.labels import listed
from assistant.session.processes import command_of, on_gpus, script_of, title_of
from knowledge.language import NO_TEXT, Text
from knowledge.observation import Scope, Status, Subject
from knowledge.text import excerpt

if TYPE_CHECKING:
    from assistant.intent.query import Query
    from rules.factbase import FactBase

PIDS, NAMES = "pids", "names"
MOST = 8  # processes that are looked into for a question that names none
RANKS = 64  # and of jobs that are named
SAID = 8  # of these that a sentence names


class Meant(NamedTuple):
    """The processes that a question is about."""

    processes: tuple[Subject, ...] = ()  # by pid; of a rank with all the ranks of its job here
    which: tuple[Subject, ...] = ()  # several that a name fits, and no one job: a person has to say which
    gone: tuple[str, ...] = ()  # what was named, and is not among what is known

    @property
    def pids(self) -> tuple[int, ...]:
        """What the probes are told."""
        return tuple(int(s.id) for s in self.processes)


def meant(query: Query, facts: FactBase) -> Meant:
    """The processes that `query` names, each with the ranks that work with it; those that use a GPU where it names nothing."""
    slots = query.slots
    if not any((slots.pid, slots.process, slots.rank, slots.job)):
        gpu_users = {str(p.pid) for p in on_gpus(facts, MOST)}
        return Meant(tuple(s for s in _all(facts) if s.id in gpu_users))
    found: dict[Subject, None] = {}
    which: dict[Subject, None] = {}
    gone: list[str] = []
    for pid in slots.pid:
        hits = [s for s in _all(facts) if s.id == str(pid)]
        found.update(dict.fromkeys(hits))
        gone += [] if hits else [str(pid)]
    for name in slots.process:
        hits = _called(name, facts)
        one = len(hits) == 1 or _one_job(hits, facts)
        (found if one else which).update(dict.fromkeys(hits))
        gone += [] if hits else [name]
    if not slots.pid and not slots.process:  # "why is rank 3 late": the rank narrows the answer, the job is looked at
        for s in _ranks_and_jobs(query, facts):
            found.update(dict.fromkeys(_processes_of(s, facts)))
    whole = dict.fromkeys(p for s in found for p in (s, *mates(s, facts)))
    return Meant(tuple(sorted(whole, key=_by_pid))[:RANKS], tuple(which), tuple(gone))


def options(query: Query, facts: FactBase | None = None) -> dict[str, str]:
    """What the probes are told; as long as none of them is known the pids that were said."""
    named = (meant(query, facts).pids if facts is not None else ()) or query.slots.pid
    names = [name.replace(",", " ") for name in query.slots.process]
    told = {PIDS: ",".join(map(str, named)), NAMES: ",".join(names)}
    return {option: value for option, value in told.items() if value}


def known(query: Query, facts: FactBase) -> frozenset[str]:
    """The options that name something which is known to be there: nobody is asked to agree to look at nothing."""
    return frozenset({PIDS}) if meant(query, facts).pids else frozenset()


def mates(process: Subject, facts: FactBase) -> list[Subject]:
    """The other ranks here of the job of `process`; none for what is no rank."""
    if not rank_of(process, facts):
        return []
    jobs = facts.related(process, Scope.JOB)
    return [p for job in jobs for p in _processes_of(job, facts) if p != process and rank_of(p, facts)]


def whom(query: Query, facts: FactBase) -> Text:
    """The processes that `query` is about, within a sentence: ``process 4242 (train.py)``, ``ranks 0, 1 of job J``."""
    found = meant(query, facts).processes
    ranks = {s: rank_of(s, facts) for s in found}
    jobs = {job.id for s in found if ranks[s] for job in facts.related(s, Scope.JOB)}
    if len(found) > 1 and all(ranks.values()) and len(jobs) == 1:
        (job,) = jobs
        names = sorted(ranks.values(), key=lambda r: (len(r), r))[:SAID]
        more = len(found) - len(names)
        tail = Text(f" and {more} more", f" 等 {len(found)} 个") if more else NO_TEXT
        pids = ", ".join(s.id for s in found[:SAID]) + ("..." if more else "")
        return Text(
            f"ranks {listed(names, 'en')}{tail.en} of job {excerpt(job, 60)} (pids {pids})",
            f"作业 {excerpt(job, 60)} 的 rank {listed(names, 'zh')}{tail.zh}（pid {pids}）",
        )
    titles = [title_of(facts, s) for s in found[:SAID]] + ["..."] * (len(found) > SAID)
    if not titles:
        return NO_TEXT
    return Text(f"process{'es' if len(titles) > 1 else ''} {listed(titles, 'en')}", f"进程 {listed(titles, 'zh')}")


def rank_of(process: Subject, facts: FactBase) -> str:
    """Which rank a process is; empty for what is none."""
    return next((s.id for s in facts.related(process, Scope.RANK)), "")


def _ranks_and_jobs(query: Query, facts: FactBase) -> Iterable[Subject]:
    wanted = (
        (Scope.JOB, set(query.slots.job)), (Scope.RANK, set(map(str, query.slots.rank)) if not query.slots.job else set()),
    )  # fmt: skip
    return [s for scope, ids in wanted for s in facts.subjects(scope) if s.id in ids]


def _processes_of(subject: Subject, facts: FactBase) -> list[Subject]:
    """The processes of a job or a rank; of a job of ranks without those that only start them."""
    if subject.scope is Scope.JOB:
        ranks = {p for r in facts.below(subject, Scope.RANK) for p in facts.related(r, Scope.PROCESS)}
        return sorted(ranks, key=_by_pid) or facts.related(subject, Scope.PROCESS)
    return facts.related(subject, Scope.PROCESS)


def _called(name: str, facts: FactBase) -> list[Subject]:
    """Processes that a name fits: by script or module, else by any word of the command; without launchers and workers."""
    wanted = name.strip().casefold()
    every = _all(facts)
    hits = [s for s in every if script_of(facts, s).casefold() in (wanted, f"{wanted}.py")]
    hits = hits or [s for s in every if wanted in _words(command_of(facts, s))]
    inside = {s.id: s for s in hits}
    parents = {s: inside.get(_parent(s, facts)) for s in hits}
    starts = {p for s, p in parents.items() if p is not None and rank_of(s, facts) and not rank_of(p, facts)}
    workers = {s for s, p in parents.items() if p is not None and p not in starts}
    return [s for s in hits if s not in starts and s not in workers]


def _one_job(processes: Sequence[Subject], facts: FactBase) -> bool:
    """Whether all are ranks of one and the same job."""
    jobs = [set(facts.related(p, Scope.JOB)) if rank_of(p, facts) else set() for p in processes]
    return bool(jobs) and bool(set.intersection(*jobs))


def _words(command: str) -> set[str]:
    said = command.casefold().split()
    return {w.rpartition("/")[2] for w in said} | set(said)


def _parent(process: Subject, facts: FactBase) -> str:
    o = facts.current("process.parent", process)
    return str(o.value) if o is not None and o.status is Status.OK else ""


def _all(facts: FactBase) -> list[Subject]:
    """Processes that were seen to be there: a pid in an old line of a log is none."""
    return [
        s for s in facts.subjects(Scope.PROCESS) if s.id.isdigit() and facts.current("process.state", s) is not None
    ]


def _by_pid(subject: Subject) -> tuple[int, str]:
    return int(subject.id), subject.id
