"""What the facts of a capture are about: processes, ranks and jobs, named as the snapshot of processes names them."""

from __future__ import annotations

from knowledge.observation import Scope, Subject, node
from knowledge.text import excerpt
from probes.capture.model import Target


def process_subject(pid: int, host: str) -> Subject:
    """A process, as `processes-snapshot` names it."""
    return Subject(Scope.PROCESS, str(pid), node(host))


def job_subject(target: Target, host: str) -> Subject | None:
    """The job that a target belongs to, as `process.in_job` names it; None where it is in none."""
    return Subject(Scope.JOB, target.job, node(host)) if target.job else None


def rank_subject(target: Target, host: str) -> Subject | None:
    """The rank that a target is."""
    job = job_subject(target, host)
    return Subject(Scope.RANK, str(target.rank), job) if job is not None and target.rank is not None else None


def script(target: Target) -> str:
    """The script or module that a process runs, without its folder; empty when none shows."""
    words = list(target.process.command[1:])
    if "-m" in words[:4] and words.index("-m") + 1 < len(words):
        return excerpt(words[words.index("-m") + 1], 60)
    return excerpt(next((w.rsplit("/", 1)[-1] for w in words if w.endswith((".py", ".sh"))), ""), 60)
