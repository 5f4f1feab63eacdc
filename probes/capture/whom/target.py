"""Which processes a capture is of: by pid, by name, by GPU, by job, by container; all of these together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches

from knowledge.errors import UsageError
from knowledge.language import Text
from probes.capture.model import Process, Target
from probes.capture.whom import _containers, identity
from probes.capture.whom._kin import trains
from probes.capture.whom._match import NO, STRONG, launches, strength
from probes.capture.whom._scene import Scene
from probes.host import Host
from probes.parse._process_jobs import Job, Launch
from probes.parse._process_rows import refusal

SHOWN = 8  # running candidates that an error lists
_MPS = "nvidia-cuda-mps"  # the server of MPS holds the GPU for its clients


def find(
    pids: Iterable[int] = (), names: Iterable[str] = (), gpu_users: bool = False, jobs: Iterable[str] = (),
    containers: Iterable[str] = (), *, whole_job: bool = False, host: Host | None = None,
) -> list[Target]:  # fmt: skip
    """The union of all that is asked for, by rank and then pid; each process once.

    `names`: see `_match.strength`. `gpu_users`: whatever computes on a GPU. `jobs`: all ranks here of a job, by its name, its
    Slurm number or its torchrun run id. `containers`: what runs Python in a container, by the beginning of its id or its name.
    `whole_job`: all ranks of the job of each process that was found. Launchers, shells, workers of loaders and gpudiag itself
    are taken only when their pid is given. UsageError for what is not there, with what runs instead.
    """
    asked, wanted = tuple(dict.fromkeys(pids)), tuple(dict.fromkeys(names))
    works, boxes = tuple(dict.fromkeys(jobs)), tuple(dict.fromkeys(containers))
    if not (asked or wanted or gpu_users or works or boxes):
        raise UsageError("no process is named", hint="give --pid, --name, --gpu-users, --job or --container")
    with identity.opened(host) as live:
        chosen = _Chosen()
        asked = tuple(chosen.add(found.pid, f"--pid {pid}") for pid, found in _checked(asked, live).items())
        scene = Scene(live, asked)
        for name in wanted:
            chosen.all(_by_name(scene, name), f"--name {name}")
        if gpu_users:
            chosen.all(_by_gpu(scene), "--gpu-users")
        for job in works:
            chosen.all(_by_job(scene, job), f"--job {job}")
        for box in boxes:
            chosen.all(_in_container(scene, box), f"--container {box}")
        if whole_job:
            _widen(scene, chosen)
        return _targets(scene, chosen)


class _Chosen:
    """Pids, and what each was found by."""

    def __init__(self) -> None:
        self.why: dict[int, list[str]] = {}

    def add(self, pid: int, why: str) -> int:
        reasons = self.why.setdefault(pid, [])
        if why not in reasons:
            reasons.append(why)
        return pid

    def all(self, pids: Iterable[int], why: str) -> None:
        for pid in pids:
            self.add(pid, why)


# --- by each of the ways --------------------------------------------------------------------


def _checked(pids: Sequence[int], host: Host) -> dict[int, Process]:
    """The process of each pid; UsageError, for all of them at once, where there is none."""
    found, gone = {}, []
    for pid in pids:
        try:
            found[pid] = identity.read(pid, host)
        except identity.NoProcessError as error:
            gone.append((pid, error))
    if not gone:
        return found
    first = gone[0][1]
    if len(gone) == 1 and first.hint:
        raise first
    scene = Scene(host)
    inside = next((f"; {p} has pid {pid} in its container" for pid, _ in gone for p in _inner(scene, pid)), "")
    message = first.message if len(gone) == 1 else "there are no processes " + ", ".join(str(pid) for pid, _ in gone)
    raise UsageError(message + inside, hint=_running(scene))


def _inner(scene: Scene, pid: int) -> list[int]:
    """Processes here that have this pid in a namespace of their own."""
    found = []
    for other in scene.users:
        with suppress(OSError, ValueError):
            named = [int(n) for n in identity.status_of(other).get("NSpid", "").split()]
            if len(named) > 1 and named[-1] == pid and scene.works(other):
                found.append(other)
    return found


def _by_name(scene: Scene, name: str) -> list[int]:
    matched = {pid: _strength(scene, name, pid) for pid in scene.users if not scene.own(pid)}
    matched = {pid: how for pid, how in matched.items() if how != NO and (how == STRONG or pid not in scene.above)}
    taken = [pid for pid in matched if not launches(scene.line(pid)) and not scene.servant(pid)]
    ranks = [child for pid in taken for child in _ranks_below(scene, pid)]
    taken = [p for p in taken if not _ranks_below(scene, p) or trains(identity.thread_names(p))]
    found = sorted({*taken, *ranks})
    if found:
        return found
    if matched:
        pid = min(matched)
        raise UsageError(
            f"{name!r} only names what starts or serves other programs: {_title(scene, pid)}",
            hint=f"to capture it all the same: --pid {pid}. {_running(scene)}".strip(),
        )
    near = get_close_matches(name, sorted(_names(scene)), n=3, cutoff=0.6)
    meant = f"did you mean {', '.join(near)}? " if near else ""
    raise UsageError(f"no process is called {name!r}", hint=meant + _running(scene))


def _strength(scene: Scene, name: str, pid: int) -> int:
    """How well a name means a process. Of programs that run no Python a word of the command line says nothing: an editor."""
    how = strength(name, scene.comm(pid), scene.line(pid))
    return how if how == STRONG or pid in scene.pythons else NO


def _ranks_below(scene: Scene, pid: int) -> list[int]:
    return [p for p in scene.users if scene.parent(p) == pid and scene.kin(p) == "rank"]


def _by_gpu(scene: Scene) -> list[int]:
    found = [p for p in scene.computing if not scene.comm(p).startswith(_MPS) and not scene.own(p)]
    found = [
        p for p in found if p in scene.contexts or not scene.servant(p)
    ]  # a worker shares what its parent has open
    if not found:
        denied = scene.denied
        blind = f"open files of {denied} processes of other users cannot be seen without root. " if denied else ""
        raise UsageError("no process that can be seen computes on a GPU here", hint=blind + _running(scene))
    return found


def _by_job(scene: Scene, wanted: str) -> list[int]:
    found = [job for job in scene.jobs if wanted in _titles(job)]
    if not found and wanted.isdigit() and (job := _job_around(scene, int(wanted))) is not None:
        found = [job]
    if not found:
        shown = ", ".join(sorted(job.id for job in scene.jobs)[:SHOWN])
        hint = f"jobs here: {shown}" if shown else f"no job is seen here. {_running(scene)}"
        raise UsageError(f"no job {wanted!r} on this node", hint=hint)
    return sorted({pid for job in found for pid in _members(scene, job)})


def _titles(job: Job) -> set[str]:
    """What a job may be called: its name here, the Slurm number at its beginning, torchrun's run id."""
    batch, _, meeting = job.id.rpartition("/")
    return {job.id, f"job:{job.id}", *({batch, meeting} if batch else ()), meeting.removeprefix("torchrun-")}


def _members(scene: Scene, job: Job) -> list[int]:
    """The ranks of a job; without ranks, its processes that run Python and start no others."""
    if job.ranks:
        return [p.pid for _, p in job.ranks.values()]
    return [p.pid for p in job.workers if scene.works(p.pid)]


def _in_container(scene: Scene, wanted: str) -> list[int]:
    places = {pid: scene.place(pid) for pid in scene.users}
    inside = [pid for pid, place in places.items() if _containers.means(wanted, place)]
    names: dict[str, set[str]] = {}
    if not inside:
        names = _containers.named(scene.host)
        inside = [p for p, place in places.items() if _containers.means(wanted, place, names.get(place.container, ()))]
    if not inside:
        known = {place.container for place in places.values() if place.container}
        known |= {name for box in known for name in names.get(box, ())}
        hint = (
            f"containers here: {', '.join(sorted(known)[:SHOWN])}"
            if known
            else "no process that is seen here is in one"
        )
        raise UsageError(f"no running container {wanted!r} is seen on this node", hint=hint)
    found = [pid for pid in inside if scene.works(pid)]
    if not found:
        shown = ", ".join(_title(scene, pid) for pid in inside[:SHOWN])
        raise UsageError(
            f"nothing in container {wanted!r} runs Python", hint=f"to capture one of these, give --pid: {shown}"
        )
    return found


def _widen(scene: Scene, chosen: _Chosen) -> None:
    """The ranks beside each process, and those below a launcher, which then is none of them."""
    for pid in list(chosen.why):
        job = _job_around(scene, pid)
        beside = _ranks_below(scene, scene.parent(pid))
        family = (
            beside if pid in beside else _ranks_below(scene, pid)
        )  # of torch.multiprocessing.spawn: in no environment
        ranks = _members(scene, job) if job is not None else family
        if pid not in ranks and ranks and (launches(scene.line(pid)) or pid in map(scene.parent, ranks)):
            del chosen.why[pid]
        chosen.all((p for p in ranks if p != pid), f"job {job.id}" if job is not None else f"beside {pid}")


def _job_around(scene: Scene, pid: int) -> Job | None:
    """The job of a process; of a launcher, the job of the ranks that it started."""
    if (job := scene.job_of(pid)) is not None or not launches(scene.line(pid)):
        return job
    return next((job for job in scene.jobs for p in job.workers if pid in scene.ancestors(p.pid)), None)


# --- what is told of each -------------------------------------------------------------------


def _targets(scene: Scene, chosen: _Chosen) -> list[Target]:
    out = []
    for pid, why in chosen.why.items():
        try:
            out.append(_target(scene, pid, why))
        except identity.NoProcessError:
            if any(reason.startswith("--pid") for reason in why):
                raise
    if not out:
        raise UsageError("what was named has ended", hint=_running(Scene(scene.host)))
    return sorted(out, key=lambda t: (t.job, t.rank is None, t.rank or 0, t.process.pid))


def _target(scene: Scene, pid: int, why: Sequence[str]) -> Target:
    process = identity.read(pid, scene.host)
    launch, job = scene.launch_of(pid), scene.job_of(pid)
    found = Target(
        process, job=job.id if job else "", gpus=scene.gpus(pid), why=", ".join(why),
        helpers=identity.helpers(pid, scene.host, scene.rows), notes=_notes(scene, pid, launch),
    )  # fmt: skip
    return (
        found if launch is None else replace(found, rank=launch.rank, local_rank=launch.local, world_size=launch.world)
    )


def _notes(scene: Scene, pid: int, launch: Launch | None) -> tuple[Text, ...]:
    proc = scene.procs.get(pid)
    if launch is not None:
        return ()
    if launches(scene.line(pid)) and (job := _job_around(scene, pid)) is not None and job.ranks:
        ranks = ", ".join(str(rank) for rank in sorted(_members(scene, job))[:SHOWN])
        return (
            Text(f"process {pid} starts ranks and trains nothing itself; the ranks are {ranks} (--pid {pid} --all-ranks takes them all)",
                 f"进程 {pid} 只负责启动 rank，自身不训练；其 rank 为 {ranks}（--pid {pid} --all-ranks 可全部采集）"),
        )  # fmt: skip
    if scene.servant(pid):
        above = scene.parent(pid)
        return (
            Text(f"process {pid} works for process {above}: it is a worker of a loader or a pool",
                 f"进程 {pid} 服务于进程 {above}：它是数据加载器或进程池的 worker"),
        )  # fmt: skip
    if proc is None:
        return (
            Text(f"nothing more could be read of process {pid}: no rank, no job, no GPU is known of it",
                 f"无法读取进程 {pid} 的更多信息：其 rank、作业和 GPU 均不可知"),
        )  # fmt: skip
    why = refusal(proc.detail, "environ")
    if not why:
        return ()
    said = str(why.get("error") or why.get("hung"))
    return (
        Text(f"the environment of process {pid} could not be read ({said}): its rank and its job are not known; "
             "root or its own user may read it",
             f"无法读取进程 {pid} 的环境变量（{said}）：其 rank 与作业不可知；root 或该进程所属用户可以读取"),
    )  # fmt: skip


# --- what runs instead ----------------------------------------------------------------------


def _candidates(scene: Scene) -> list[int]:
    return [pid for pid in sorted(scene.pythons) if scene.works(pid) and pid not in scene.above]


def _running(scene: Scene) -> str:
    """A sentence on what runs Python here, those with torch first; empty without any."""
    torch = {pid: _torch(scene, pid) for pid in _candidates(scene)}
    found = sorted(torch, key=lambda p: (not torch[p], p))
    if not found:
        return "no process that runs Python is seen here"
    shown = ", ".join(f"{_title(scene, p)}{' with torch' if torch[p] else ''}" for p in found[:SHOWN])
    more = f", and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return f"running Python here: {shown}{more}"


def _torch(scene: Scene, pid: int) -> bool:
    return b"/libtorch" in scene.host.read(f"/proc/{pid}/maps").data


def _names(scene: Scene) -> set[str]:
    known = set()
    for pid in _candidates(scene):
        line = scene.line(pid)
        known |= {scene.comm(pid), line.script.rpartition("/")[2], line.module}
    return known - {""}


def _title(scene: Scene, pid: int) -> str:
    """``4242 (train.py)``."""
    return f"{pid} ({scene.line(pid).short or scene.comm(pid)})"
