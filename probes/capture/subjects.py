"""What the facts of a capture are about: processes, ranks and jobs, named as the snapshot of processes names them."""

from __future__ import annotations

from knowledge.observation import Scope, Subject, node
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
