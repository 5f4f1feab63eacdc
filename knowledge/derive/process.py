"""What processes and GPUs say together: who holds a GPU, how many share it, whether its CPUs are near.

The driver lists processes with a context, /proc tells which hold a device file, and to whom they belong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from knowledge.derive._added import with_added
from knowledge.lazy import lazy
from knowledge.observation import Observation, Origin, Scope, Source, Status, Subject, Value

_MPS = "nvidia-cuda-mps"  # the server that works for its clients, as the kernel cuts its name
_JOINED = frozenset({Scope.PROCESS, Scope.GPU, Scope.NODE, Scope.MIG})
_RANGE = lazy(r"(\d{1,5})(?:-(\d{1,5}))?")


def cpus(text: str) -> frozenset[int]:
    """CPUs of a list such as ``0-3,8`` or ``0-3 8``; empty when it is none."""
    out: set[int] = set()
    for part in text.replace(",", " ").split():
        found = _RANGE.fullmatch(part)
        if not found or int(found[2] or found[1]) < int(found[1]):
            return frozenset()
        out.update(range(int(found[1]), int(found[2] or found[1]) + 1))
    return frozenset(out)


def enrich(observations: Sequence[Observation]) -> list[Observation]:
    """The batch with `process.holds_gpu`, `process.cpus_near_gpu`, `gpu.owners`, `gpu.owners.batch` and `gpu.unlisted_holders`."""
    seen = _Seen(observations)
    if not seen.told:
        return list(observations)
    return with_added(observations, (*_holds(seen), *_near(seen), *_owners(seen), *_unlisted(seen)))


class _Seen:
    """The observations that the joins need, by fact and subject."""

    def __init__(self, observations: Sequence[Observation]) -> None:
        self.by: dict[tuple[str, Subject], list[Observation]] = defaultdict(list)
        self.uses: dict[Subject, list[Subject]] = defaultdict(list)  # process -> GPUs with a context
        self.opens: dict[Subject, list[Subject]] = defaultdict(list)
        processes: dict[Subject, None] = {}
        for o in observations:
            if o.subject.scope not in _JOINED:
                continue
            self.by[o.fact, o.subject].append(o)
            if o.fact == "process.state" and o.status is Status.OK:
                processes.setdefault(o.subject)
            target = _gpu(o) if o.fact in ("process.uses_gpu", "process.opens_gpu") else None
            if target is not None:
                ends = (self.uses if o.fact == "process.uses_gpu" else self.opens)[o.subject]
                if target not in ends:
                    ends.append(target)
        self.told = sorted(processes, key=repr)  # processes of which /proc told something

    def one(self, fact: str, subject: Subject) -> Observation | None:
        """The only answer to a question; None without one, or when answers differ."""
        found = [o for o in self.by.get((fact, subject), ()) if o.status is Status.OK]
        return found[0] if found and all(o.value == found[0].value for o in found) else None

    def value(self, fact: str, subject: Subject) -> Value:
        """The value of `one`; None without it."""
        found = self.one(fact, subject)
        return found.value if found else None

    def status(self, fact: str, subject: Subject) -> Status | None:
        """Why there is no value; None when nobody asked."""
        return next((o.status for o in self.by.get((fact, subject), ())), None)

    def why_not(self, fact: str, subject: Subject) -> tuple[Status, str] | None:
        """Why there is not one answer: the reason of a source, or that answers differ; None when nobody asked."""
        found = self.by.get((fact, subject), ())
        if any(o.status is not Status.OK for o in found):
            return next((o.status, o.detail) for o in found if o.status is not Status.OK)
        values = sorted({str(o.value) for o in found})
        return (Status.FAILED, f"sources disagree: {' and '.join(values)}") if values else None


def _gpu(o: Observation) -> Subject | None:
    if o.status is not Status.OK or not isinstance(o.value, str) or not o.value.startswith("gpu:"):
        return None
    return Subject(Scope.GPU, o.value.removeprefix("gpu:"), o.subject.up(Scope.NODE))


def _holds(seen: _Seen) -> list[Observation]:
    """Whether a process holds a GPU: yes by either source, no only where its open files were looked at."""
    out = []
    for process in seen.told:
        listed = seen.uses.get(process) or any(
            o.status is Status.OK for o in seen.by.get(("process.uses_mig", process), ())
        )
        opened = seen.opens.get(process) or seen.value("process.computes", process) is True
        based = next(
            (
                o for fact in ("process.uses_gpu", "process.uses_mig", "process.opens_gpu", "process.computes")
                for o in seen.by.get((fact, process), ())
                if o.status in (Status.OK, Status.NONE_SEEN) and o.value is not False
            ),
            None,
        )  # fmt: skip
        if based is None:
            continue
        if listed or opened:
            out.append(_derived("process.holds_gpu", process, True, based, based.excerpt or str(based.value)))
        elif seen.status("process.opens_gpu", process) is Status.NONE_SEEN:
            out.append(_derived("process.holds_gpu", process, False, based, "no device file of a GPU is open"))
    return out


def _near(seen: _Seen) -> list[Observation]:
    """Share of a process's CPUs that are close to a GPU of its own; of a device file only when it opens a single one."""
    out = []
    for process in seen.told:
        if seen.value("process.computes", process) is not True:
            continue
        opened = seen.opens.get(process, [])
        gpus = seen.uses.get(process) or (opened if len(opened) == 1 else [])
        allowed = seen.one("process.cpus_allowed", process)
        mine = cpus(str(allowed.value)) if allowed else frozenset[int]()
        near = [seen.one("gpu.cpu_affinity", g) for g in gpus]
        lists = [cpus(str(o.value)) for o in near if o is not None]
        if allowed is None or not mine or not gpus or len(lists) < len(gpus) or not all(lists):
            continue
        close = frozenset[int]().union(*lists)
        share = round(100 * len(mine & close) / len(mine), 1)
        said = f"allowed {allowed.value}; near {gpus[0].id}: {', '.join(str(o.value) for o in near if o)}"
        out.append(_derived("process.cpus_near_gpu", process, share, allowed, said))
    return out


def _owners(seen: _Seen) -> list[Observation]:
    """How many have work on a GPU. One whose owner is not known may be anybody: then only two known ones count."""
    users: dict[Subject, list[Subject]] = defaultdict(list)
    for process in sorted(seen.uses, key=repr):
        for g in seen.uses[process]:
            users[g].append(process)
    out = []
    for g, processes in sorted(users.items(), key=lambda item: repr(item[0])):
        base = seen.by["process.uses_gpu", processes[0]][0]
        if any(_on_purpose(seen, p) for p in processes):
            why = "MPS or MIG shares it on purpose"
            out.append(_derived("gpu.owners", g, None, base, "", Status.NOT_APPLICABLE, why))
            continue
        working = [p for p in processes if _works(seen, p)]
        owners = {p: seen.value("process.owner", p) for p in working}
        known = sorted({str(v) for v in owners.values() if v is not None})
        unknown = [p.id for p, v in owners.items() if v is None]
        said = "; ".join(f"{owner}: {', '.join(p.id for p, v in owners.items() if v == owner)}" for owner in known)
        if len(known) > 1 or not unknown:
            batch = sum(owner.startswith("job ") for owner in known)
            out.append(_derived("gpu.owners", g, len(known), base, said))
            out.append(_derived("gpu.owners.batch", g, batch, base, said))
        else:
            why = f"to whom process {', '.join(unknown[:4])} belongs is not known"
            out.append(_derived("gpu.owners", g, None, base, said, Status.NOT_ASKED, why))
    return out


def _on_purpose(seen: _Seen, process: Subject) -> bool:
    contexts = seen.value("process.gpu_contexts", process)
    name = str(seen.value("process.comm", process) or seen.value("process.name", process) or "")
    mig = any(o.status is Status.OK for o in seen.by.get(("process.uses_mig", process), ()))
    return mig or (isinstance(contexts, tuple) and "mps" in contexts) or _MPS in name


def _works(seen: _Seen, process: Subject) -> bool:
    """False for what only draws: a desktop on a GPU is no job."""
    return seen.value("process.gpu_contexts", process) != ("graphics",)


def _unlisted(seen: _Seen) -> list[Observation]:
    """Processes that could work on a GPU of which the driver lists none. Only where all processes could be looked at."""
    holders: Mapping[Subject, list[Subject]] = defaultdict(list)
    for process in sorted(seen.opens, key=repr):
        if process not in seen.uses and seen.value("process.computes", process) is True:
            for g in seen.opens[process]:
                holders[g].append(process)
    out = []
    told = [(g, found) for (fact, g), found in seen.by.items() if fact == "gpu.processes" and g.scope is Scope.GPU]
    for g, found in sorted(told, key=lambda item: repr(item[0])):
        if seen.value("gpu.processes", g) != 0:
            continue
        node = g.up(Scope.NODE)
        whole = node is not None and seen.one("node.processes.on_gpu", node) is not None
        said = ", ".join(f"{p.id} {seen.value('process.comm', p) or ''}".strip() for p in holders[g][:8])
        if holders[g] or whole:
            out.append(_derived("gpu.unlisted_holders", g, len(holders[g]), found[0], said))
        elif node is not None and (reason := seen.why_not("node.processes.on_gpu", node)) is not None:
            out.append(_derived("gpu.unlisted_holders", g, None, found[0], "", *reason))
    return out


def _derived(
    fact: str, subject: Subject, value: Value, base: Observation, said: str, status: Status = Status.OK, why: str = ""
) -> Observation:
    source = Source("derived", base.source.call, base.source.line)
    return Observation(
        fact, subject, value, status, source, base.at, base.clock, excerpt=said, detail=why, origin=Origin.DERIVED
    )
