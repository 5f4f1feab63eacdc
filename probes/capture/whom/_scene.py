"""What runs on this machine, as far as it may be a target: one look, out of which targets are chosen."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import cached_property
from typing import Any

from knowledge.identity import is_pci
from knowledge.observation import Observation, Status
from knowledge.record import dataclass
from probes.base import Context
from probes.capture.whom import identity
from probes.capture.whom._kin import LOADER_THREAD, Kin, is_python
from probes.capture.whom._match import Line, launches, line_of, ours
from probes.collectors import processes as collector
from probes.host import Host
from probes.parse import _host_snapshot, nvml_snapshot, processes_snapshot
from probes.parse._process_jobs import Job, Launch, jobs_of
from probes.parse._process_place import Place
from probes.parse._process_rows import Proc, processes

DEADLINE = 8.0  # seconds for the snapshot of processes
NVML_DEADLINE = 20.0  # opening GPUs without persistence mode takes a second or two each
MOST = 90  # processes asked for by pid: the collector tells of 96 in full
_SERVANTS = frozenset({Kin.WORKER, Kin.TRACKER, Kin.SERVER, Kin.COMPILER})


@dataclass
class Scene:
    """Processes of this machine, and what the collector `processes` told of those that run Python."""

    host: Host
    asked: tuple[int, ...] = ()
    rows: Mapping[int, list[Any]] = field(default_factory=identity.rows_now)
    _lines: dict[int, Line] = field(default_factory=dict)
    _kin: dict[int, Kin | None] = field(default_factory=dict)

    # --- single processes -----------------------------------------------------------------

    def line(self, pid: int) -> Line:
        """The command line, in its parts."""
        if pid not in self._lines:
            words = identity.command(pid, self.host)
            self._lines[pid] = line_of(words, python=is_python(identity.program_of(pid)))
        return self._lines[pid]

    def comm(self, pid: int) -> str:
        """The short name."""
        return str(self.rows[pid][collector.NAME]) if pid in self.rows else ""

    def parent(self, pid: int) -> int:
        """Of the process that started it, 0 without one."""
        return int(self.rows[pid][collector.PPID]) if pid in self.rows else 0

    def kin(self, pid: int) -> Kin | None:
        """What it is to its parent; None when it runs no Python, or its parent runs none."""
        if pid not in self._kin:
            above = self.parent(pid)
            self._kin[pid] = identity.kin_of(pid, above, self.host) if above in self.pythons else None
        return self._kin[pid]

    def servant(self, pid: int) -> bool:
        """Whether it is a worker of another process, or something like it; also one whose parent has ended."""
        return self.kin(pid) in _SERVANTS or self.comm(pid) == LOADER_THREAD

    def works(self, pid: int) -> bool:
        """Whether it runs Python and does the work itself: no launcher, no worker of another one, not gpudiag."""
        return pid in self.pythons and not self.servant(pid) and not launches(self.line(pid)) and not self.own(pid)

    def own(self, pid: int) -> bool:
        """Whether it belongs to gpudiag."""
        return pid == os.getpid() or ours(self.line(pid))

    def ancestors(self, pid: int) -> frozenset[int]:
        """The processes that started it, and those that started them."""
        found: set[int] = set()
        here = self.parent(pid)
        while here > 0 and here not in found:
            found.add(here)
            here = self.parent(here)
        return frozenset(found)

    @cached_property
    def above(self) -> frozenset[int]:
        """The processes that started gpudiag."""
        return self.ancestors(os.getpid())

    @cached_property
    def users(self) -> list[int]:
        """Processes that are no threads of the kernel."""
        return [p for p, row in self.rows.items() if not row[collector.FLAGS] & collector.PF_KTHREAD]

    @cached_property
    def pythons(self) -> frozenset[int]:
        """Processes that run Python: by their program, or where that may not be read, by how they were called."""
        found = set()
        for pid in self.users:
            program = identity.program_of(pid)
            if is_python(program) or (not program and line_of(identity.command(pid, self.host)).python):
                found.add(pid)
        return frozenset(found)

    # --- the collector's view ---------------------------------------------------------------

    @cached_property
    def text(self) -> str:
        """The snapshot of processes; empty when it failed."""
        more = sorted((p for p in self.pythons if p not in self.asked), key=lambda p: (self.servant(p), self.own(p), p))
        words = [w for pid in [*self.asked, *more][:MOST] for w in ("--pid", str(pid))]
        reply = self.host.snapshot("processes", "--interval", "0", *words, deadline=DEADLINE)
        return reply.text if reply.status is Status.OK else ""

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """The snapshot as it was printed."""
        return _host_snapshot.document(self.text, processes_snapshot.SCHEMA)

    @cached_property
    def procs(self) -> dict[int, Proc]:
        """Its processes."""
        return processes(self.document)

    @property
    def denied(self) -> int:
        """Processes whose open files may not be seen."""
        return _host_snapshot.whole(_host_snapshot.mapping(self.document.get("holders")).get("denied")) or 0

    @cached_property
    def jobs(self) -> list[Job]:
        """The jobs that it shows."""
        return jobs_of(self.procs)

    def job_of(self, pid: int) -> Job | None:
        """The job that a process belongs to: its own, or that of the process that it works for."""
        return next((job for job in self.jobs for p in job.members if p.pid == pid), None)

    def launch_of(self, pid: int) -> Launch | None:
        """Its rank, when it is the process of that rank."""
        return next((launch for job in self.jobs for launch, p in job.ranks.values() if p.pid == pid), None)

    def place(self, pid: int) -> Place:
        """Where it runs."""
        return identity.place(pid)

    # --- GPUs ---------------------------------------------------------------------------------

    @cached_property
    def computing(self) -> list[int]:
        """Processes that hold a GPU to compute on it."""
        holders = {p.pid for p in self.procs.values() if p.computes and p.full}
        return sorted(holders | {p for p in self.contexts if p in self.rows})

    def gpus(self, pid: int) -> tuple[str, ...]:
        """PCI addresses of the GPUs that it uses: as NVML says, else those whose device files it holds."""
        return tuple(sorted(self._uses.get(pid) or self._opens.get(pid) or ()))

    @cached_property
    def _opens(self) -> dict[int, set[str]]:
        found = processes_snapshot.parse(self.text, Context("processes")) if self._holders else []
        return _addresses(found, "process.opens_gpu")

    @cached_property
    def _nvml(self) -> list[Observation]:
        if not self._holders:
            return []  # nobody holds a GPU: the driver need not be asked
        reply = self.host.snapshot("nvml", "--quick", deadline=NVML_DEADLINE)
        return nvml_snapshot.FORMAT.parse(reply.text, Context("nvml")) if reply.text else []

    @cached_property
    def _uses(self) -> dict[int, set[str]]:
        return _addresses(self._nvml, "process.uses_gpu")

    @cached_property
    def contexts(self) -> set[int]:
        """Processes that have a context to compute in, and not only one to draw in, as NVML says."""
        told = [o for o in self._nvml if o.fact == "process.gpu_contexts" and o.subject.id.isdigit()]
        return {int(o.subject.id) for o in told if o.status is Status.OK and {"C", "M"} & set(_kinds(o.value))}

    @property
    def _holders(self) -> bool:
        return any(p.devices for p in self.procs.values())


def _kinds(value: object) -> tuple[object, ...]:
    return tuple(value) if isinstance(value, tuple | list | frozenset | set) else (value,)


def _addresses(found: Iterable[Observation], fact: str) -> dict[int, set[str]]:
    out: dict[int, set[str]] = {}
    for o in found:
        address = str(o.value).removeprefix("gpu:")
        if o.fact == fact and o.status is Status.OK and o.subject.id.isdigit() and is_pci(address):
            out.setdefault(int(o.subject.id), set()).add(address)
    return out
