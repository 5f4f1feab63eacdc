"""Which rank of which job a process is, from what launchers put into environments and cgroups.

A variable tells what was so when the program was started: what a program sets for itself later is not seen.
Jobs are parts of a node here: a job that spans nodes is one subject on each of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import field

from knowledge.record import dataclass
from probes.parse._process_rows import Proc, ancestors, refusal

# launcher: rank, ranks of the job, rank on the node, ranks on the node; the more exact first
_VARIABLES = (
    ("torch", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    ("mpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("mpi", "PMI_RANK", "PMI_SIZE", "PMI_LOCAL_RANK", "PMI_LOCAL_SIZE"),
    ("slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", ""),
)
_LOOPBACK = ("localhost", "127.", "::1")
# Programs that adopt what outlives its launcher: init systems, container shims, Slurm's step daemon.
ADOPTERS = frozenset({"systemd", "init", "tini", "dumb-init", "docker-init", "catatonit", "slurmstepd", "containerd-shim",
                      "conmon", "pause", "s6-svscan"})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Launch:
    """What a launcher told one process."""

    kind: str  # torch, mpi, slurm
    rank: int
    world: int
    local: int | None
    local_world: int | None


@dataclass(slots=True)
class Job:
    """The part of a job that runs here."""

    id: str
    launcher: str  # slurm, torchrun, mpi, none
    members: list[Proc] = field(default_factory=list)  # by pid
    ranks: dict[int, tuple[Launch, Proc]] = field(default_factory=dict)

    @property
    def workers(self) -> list[Proc]:
        """The processes that do the work: the ranks, else all members whose details are known."""
        return [p for _, p in self.ranks.values()] or [p for p in self.members if p.full]


def launch_of(proc: Proc) -> Launch | None:
    """The rank that a process was given; None when it was given none."""
    for kind, *names in _VARIABLES:
        rank, world, local, local_world = (proc.number(name) if name else None for name in names)
        if rank is None or world is None or rank >= world:
            continue
        if kind == "slurm" and not (proc.place.step or proc.env.get("SLURM_STEP_ID", "")).isdigit():
            continue  # the batch script and what it starts are told a task number, but they are no tasks
        return Launch(kind, rank, world, local, local_world)
    return None


def scheduler_job(proc: Proc) -> str:
    """The Slurm job, by the cgroup, which nobody can leave, else by the environment; empty without one."""
    return proc.place.job or proc.env.get("SLURM_JOB_ID", "") or proc.env.get("SLURM_JOBID", "")


def _meeting(proc: Proc, launch: Launch) -> str:
    """What all ranks of one launch have in common."""
    env = proc.env
    if launch.kind == "torch":
        address, port = env.get("MASTER_ADDR", ""), env.get("MASTER_PORT", "")
        run = env.get("TORCHELASTIC_RUN_ID", "")
        name = (
            f"torchrun-{run}"
            if run not in ("", "none")
            else f"{address}:{port}"
            if address
            else f"launcher-{proc.ppid}"
        )
        here = address.startswith(_LOOPBACK) or not address
        return f"{proc.place.container}/{name}" if here and proc.place.container else name
    if launch.kind == "slurm":
        return f"step-{proc.place.step or env.get('SLURM_STEP_ID', '')}"
    return f"launcher-{proc.ppid}"


def jobs_of(procs: Mapping[int, Proc]) -> list[Job]:
    """The jobs whose processes are seen: those with ranks, those of Slurm, and programs that stand alone on a GPU."""
    launches = {p.pid: found for p in procs.values() if p.full and (found := launch_of(p)) is not None}
    for pid in [p for p, found in launches.items() if found.kind != "torch" and _starts_others(p, launches, procs)]:
        del launches[pid]
    meetings = {pid: (scheduler_job(procs[pid]), _meeting(procs[pid], found)) for pid, found in launches.items()}
    jobs: dict[str, Job] = {}
    for pid, (batch, meeting) in meetings.items():
        several = len({m for b, m in meetings.values() if b == batch}) > 1
        name = meeting if not batch else f"{batch}/{meeting}" if several else batch
        launcher = "slurm" if batch else "torchrun" if launches[pid].kind == "torch" else "mpi"
        job = jobs.setdefault(name, Job(name, launcher))
        job.members.append(procs[pid])
    for job in jobs.values():
        job.ranks = _ranks(job.members, launches, procs)
    _others(jobs, procs)
    for job in jobs.values():
        job.members.sort(key=lambda p: p.pid)
    return [jobs[name] for name in sorted(jobs)]


def _starts_others(pid: int, launches: Mapping[int, Launch], procs: Mapping[int, Proc]) -> bool:
    """Whether ranks of torch run below this process: then it is their launcher and no rank."""
    return any(f.kind == "torch" and any(a.pid == pid for a in ancestors(p, procs)) for p, f in launches.items())


def _ranks(
    members: Iterable[Proc], launches: Mapping[int, Launch], procs: Mapping[int, Proc]
) -> dict[int, tuple[Launch, Proc]]:
    """One process for each rank: what it starts inherits its variables. The one on the GPU, the outermost, the oldest."""
    same: dict[int, list[Proc]] = defaultdict(list)
    for proc in members:
        same[launches[proc.pid].rank].append(proc)
    out = {}
    for rank, group in sorted(same.items()):
        pids = {p.pid for p in group}
        best = min(group, key=lambda p: (not p.computes, any(a.pid in pids for a in ancestors(p.pid, procs)), p.pid))
        out[rank] = (launches[best.pid], best)
    return out


def _others(jobs: dict[str, Job], procs: Mapping[int, Proc]) -> None:
    """Processes without a rank: what a member started, Slurm's, and what computes on a GPU by itself."""
    of = {p.pid: job.id for job in jobs.values() for p in job.members}
    for proc in procs.values():
        if proc.pid in of or proc.kernel or not (proc.computes or (proc.full and scheduler_job(proc))):
            continue
        line = list(ancestors(proc.pid, procs))
        name = next((of[a.pid] for a in line if a.pid in of), "")
        launcher = "none"
        if not name and (batch := scheduler_job(proc)):
            name, launcher = batch, "slurm"
        if not name and refusal(proc.detail, "environ"):
            continue  # it may be a rank of a job that is seen
        if not name:
            name = f"pid-{[proc, *(a for a in line if a.computes)][-1].pid}"
        job = jobs.setdefault(name, Job(name, launcher))
        job.members.append(proc)


def adopted(proc: Proc, launch: Launch | None, procs: Mapping[int, Proc]) -> bool | None:
    """Whether a rank of torchrun outlived the agent that started it; None when that cannot be told."""
    if launch is None or launch.kind != "torch" or "TORCHELASTIC_RUN_ID" not in proc.env:
        return None
    parent = procs.get(proc.ppid)
    return None if parent is None else parent.name in ADOPTERS
