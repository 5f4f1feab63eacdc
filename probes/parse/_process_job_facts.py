"""The facts of one job as far as it runs on this node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from knowledge.observation import Scalar, Scope, Status, Subject
from probes.parse._host_snapshot import Snapshot, gap, mapping
from probes.parse._process_facts import cpus, memlock
from probes.parse._process_jobs import Job
from probes.parse._process_rows import Proc, refusal
from probes.parse._smi_values import Reading

# Settings that decide what two ranks do with each other; what may differ from rank to rank by design (NCCL_DEBUG on
# rank 0, NCCL_IB_HCA, NCCL_SOCKET_IFNAME, NCCL_DEBUG_FILE, CUDA_VISIBLE_DEVICES) is not among them.
ALIKE = frozenset({
    "NCCL_ALGO", "NCCL_PROTO", "NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE", "NCCL_NET",
    "NCCL_NET_PLUGIN", "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_NTHREADS", "NCCL_BUFFSIZE", "NCCL_NVLS_ENABLE",
    "NCCL_COLLNET_ENABLE", "NCCL_CROSS_NIC", "NCCL_CUMEM_ENABLE", "NCCL_COMM_BLOCKING", "NCCL_LAUNCH_MODE",
    "TORCH_NCCL_BLOCKING_WAIT", "TORCH_NCCL_ASYNC_ERROR_HANDLING", "CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_MAX_CONNECTIONS",
})  # fmt: skip
# What differs from rank to rank, and what only names the job.
_OWN = ("RANK", "LOCAL_RANK", "GROUP_RANK", "SLURM_", "OMPI_", "PMI_", "HOSTNAME", "POD_", "MASTER_", "WORLD_SIZE", "LOCAL_WORLD_SIZE",
        "NODE_RANK", "TORCHELASTIC_")  # fmt: skip


def tell_job(emit: Snapshot, job: Job, procs: Mapping[int, Proc], user: Callable[[Proc], str]) -> None:
    """All facts of a job and its ranks."""
    subject = Subject(Scope.JOB, job.id, emit.node)
    first = job.members[0]
    pids = ", ".join(str(p.pid) for p in job.workers[:8])
    shown = f"pids {pids}"

    def say(fact: str, reading: Reading | Scalar, text: str = shown, part: str = "environ") -> None:
        emit.add(fact, subject, reading, f"/proc/{first.pid}/{part}", text)

    say("job.launcher", job.launcher)
    say("job.user", first.env.get("SLURM_JOB_USER") or user(first))
    name = next((p.env["SLURM_JOB_NAME"] for p in job.members if p.env.get("SLURM_JOB_NAME")), "")
    say("job.name", name or _program(job, procs), f"SLURM_JOB_NAME={name}" if name else shown)
    _ranks(emit, job, subject, procs, say)
    _settings(emit, job, subject, first)
    _processors(job, say)
    _memlock(job, say)


def _program(job: Job, procs: Mapping[int, Proc]) -> str:
    """The script of the first worker, else its name."""
    worker = (job.workers or job.members)[0]
    found = worker.detail.get("cmdline")
    arguments = [a for a in found if isinstance(a, str)] if isinstance(found, list) else []
    script = next((a for a in arguments[1:] if a.endswith((".py", ".sh"))), "")
    return script.rpartition("/")[2] or procs[worker.pid].name


def _ranks(emit: Snapshot, job: Job, subject: Subject, procs: Mapping[int, Proc], say: Callable[..., None]) -> None:
    if not job.ranks:
        return
    launches = [launch for launch, _ in job.ranks.values()]
    for number, (_, proc) in sorted(job.ranks.items()):
        rank = Subject(Scope.RANK, str(number), subject)
        call = f"/proc/{proc.pid}/environ"
        emit.add("rank.is_process", rank, f"process:{proc.pid}", call, f"rank {number} of {launches[0].world}")
        emit.add("rank.on_node", rank, f"node:{emit.host}", call)
    world = max(launch.world for launch in launches)
    say("job.ranks", world, f"WORLD_SIZE={world}")
    say("job.ranks.here", len(job.ranks))
    expected = {launch.local_world for launch in launches} - {None}
    if len(expected) != 1:
        return
    (count,) = expected
    assert count is not None
    say("job.ranks.expected_here", count, f"LOCAL_WORLD_SIZE={count}")
    say("job.spans_nodes", world > count, f"{count} of {world} ranks belong here")
    present = {launch.local for launch in launches if launch.local is not None}
    missing = sorted(set(range(min(count, 4096))) - present)
    hidden = _hidden(job, procs) if missing else None
    if hidden is not None:
        why = gap(refusal(hidden.detail, "environ")) or Reading(None, Status.NOT_ASKED, "not read")
        emit.add("job.ranks.missing_here", subject, why, f"/proc/{hidden.pid}/environ")
        return
    text = "local ranks " + ", ".join(map(str, missing[:16])) if missing else f"local ranks 0 to {count - 1} are there"
    say("job.ranks.missing_here", len(missing), text)


def _hidden(job: Job, procs: Mapping[int, Proc]) -> Proc | None:
    """A process that may be one of the ranks that are not seen: its environment could not be read."""
    ranks = [p for _, p in job.ranks.values()]
    users, parents = {p.uid for p in ranks}, {p.ppid for p in ranks}
    near = (p for p in procs.values() if p.uid in users and (p.computes or p.ppid in parents) and p not in job.members)
    return next((p for p in near if refusal(p.detail, "environ")), None)


def _settings(emit: Snapshot, job: Job, subject: Subject, first: Proc) -> None:
    """Variables of all workers, and those that should be alike and are not."""
    call = f"/proc/{first.pid}/environ"
    readable = [
        p for p in job.workers if isinstance(p.detail.get("environ"), dict) and not refusal(p.detail, "environ")
    ]
    if len(readable) < len(job.workers) or not readable:
        silent = next((p for p in job.workers if p not in readable), first)
        why = gap(refusal(silent.detail, "environ")) or Reading(None, Status.NOT_ASKED, "the environment was not read")
        for fact in ("job.env", "job.env.differing"):
            emit.add(fact, subject, why, f"/proc/{silent.pid}/environ")
        return
    values: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    names = {n for p in readable for n in p.env if not n.startswith(_OWN)}
    labels = {p.pid: f"rank {number}" for number, (_, p) in job.ranks.items()}
    for p in readable:
        for name in names:
            values[name][p.env.get(name, "")].append(labels.get(p.pid, f"pid {p.pid}"))
    settings = sorted({f"{name}={value}" for name, found in values.items() for value, who in found.items() if value})
    emit.add("job.env", subject, tuple(settings), call, " ".join(settings))
    differing = sorted(n for n in names & ALIKE if len(values[n]) > 1)
    shown = "; ".join(f"{n}: {_spread(values[n])}" for n in differing)
    emit.add("job.env.differing", subject, len(differing), call, shown or f"the same for {len(readable)} processes")


def _spread(found: Mapping[str, Sequence[str]]) -> str:
    return ", ".join(
        f"{value or 'unset'} ({', '.join(who[:3])}{' ...' if len(who) > 3 else ''})"
        for value, who in sorted(found.items())
    )


def _processors(job: Job, say: Callable[..., None]) -> None:
    """CPUs that the workers may use together, for each of them, and against the threads that OpenMP starts."""
    workers = job.workers
    lists = [mapping(p.detail.get("status")).get("Cpus_allowed_list") for p in workers]
    allowed = [cpus(text) if isinstance(text, str) else frozenset[int]() for text in lists]
    if not workers or not all(allowed):
        return
    together = len(frozenset[int]().union(*allowed))
    shown = f"{len(workers)} processes on CPUs " + "; ".join(sorted({str(text) for text in lists})[:4])
    say("job.cpus", together, shown, "status")
    if job.ranks:
        say("job.cpus_per_rank", round(together / len(workers), 2), shown, "status")
    threads = [p.number("OMP_NUM_THREADS") for p in workers]
    known = [n for n in threads if n]
    if len(known) < len(workers):
        unread = next((p for p in workers if refusal(p.detail, "environ")), None)
        if unread is None:
            unset = Reading(None, Status.NOT_APPLICABLE, "OMP_NUM_THREADS is not set for all of its processes")
            say("job.omp_threads", unset)
            say("job.omp_threads_per_cpu", unset)
        return
    total = sum(known)
    say("job.omp_threads", total, f"OMP_NUM_THREADS: {' + '.join(map(str, known[:16]))}")
    say("job.omp_threads_per_cpu", round(total / together, 2), f"{total} threads on {together} CPUs")


def _memlock(job: Job, say: Callable[..., None]) -> None:
    """The lowest limit of locked memory among the workers."""
    found = [memlock(p) for p in job.workers]
    bounds = [r for r in found if r.ok]
    if bounds:
        lowest = min(bounds, key=lambda r: float(r.value) if isinstance(r.value, int | float) else 0.0)
        say("job.limit.memlock", lowest, f"{len(bounds)} of {len(found)} processes have a limit", "limits")
    elif found:
        say("job.limit.memlock", found[0], "", "limits")
