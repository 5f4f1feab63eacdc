"""Captures from inside real jobs, for the tests of the agent."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from probes.capture.guest.guest import Guest, GuestState
from probes.capture.model import Item, Part, Target, Window
from probes.capture.whom import identity
from tests.live_jobs import Job


@dataclass
class Got:
    """What one capture gave."""

    state: GuestState
    parts: dict[Item, Part]
    iterations: dict[str, Any] | None
    torch: dict[str, Any] | None
    phases: list[str] = field(default_factory=list)


def guest(job: Job, items: Sequence[Item], window: Window, *, target: Target | None = None, **words: Any) -> Guest:
    """Prepared, with its call made at a safe point of the main thread. `target`: the job, where it has been read."""
    made = Guest(target or Target(identity.read(job.pid)), items, window, **words)
    made.prepare()
    job.execute(made.code)
    return made


def wait(one: Guest, reached: Callable[[GuestState], bool] = lambda s: s.over, seconds: float = 120.0) -> tuple[GuestState, list[str]]:  # fmt: skip
    """Until it is where it should be, or over."""
    until, phases = time.monotonic() + seconds, [""]
    while True:
        state = one.poll()
        if state.phase != phases[-1]:
            phases.append(state.phase)
        if reached(state) or state.over:
            return state, phases[1:]
        assert time.monotonic() < until, f"the agent stands at {state}"
        time.sleep(0.02)


def capture(job: Job, items: Sequence[Item], window: Window, folder: Path, **words: Any) -> Got:
    """A whole capture, cleaned up."""
    one = guest(job, items, window, **words)
    try:
        state, phases = wait(one)
        parts, iterations, torch = one.collect(folder)
    finally:
        one.clean()
    return Got(state, {p.item: p for p in parts}, iterations, torch, phases)


def folders(job: Job) -> list[str]:
    """Folders of agents that are there for this job."""
    return [
        str(p)
        for place in ("tmp", "dev/shm", "var/tmp")
        for p in Path(f"/proc/{job.pid}/root/{place}").glob(f".gpudiag-{job.pid}-*")
    ]


def threads(job: Job) -> list[str]:
    """Names of its threads."""
    return [Path(f"/proc/{job.pid}/task/{t}/comm").read_text().strip() for t in os.listdir(f"/proc/{job.pid}/task")]  # noqa: PTH208


def descriptors(job: Job) -> int:
    """How many it has open."""
    return len(os.listdir(f"/proc/{job.pid}/fd"))  # noqa: PTH208


def checked(job: Job, seconds: float = 20.0) -> str:
    """What `check` of tests/jobs/loop.py prints when the agent's thread has ended."""
    until = time.monotonic() + seconds
    while True:
        said = job.said("check()", "left [")
        if "'gpudiag'" not in said or time.monotonic() > until:
            return said
