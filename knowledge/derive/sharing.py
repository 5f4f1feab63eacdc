"""How GPUs are divided: by MIG, MPS, HAMi, cGPU or time slices; what each program was promised, and who takes most.

Settings are those that the sharing systems hand to a container: HAMi sets CUDA_DEVICE_MEMORY_LIMIT[_N] and CUDA_DEVICE_SM_LIMIT,
Alibaba's cGPU ALIYUN_COM_GPU_MEM_CONTAINER and _DEV, MPS reads CUDA_MPS_PINNED_DEVICE_MEM_LIMIT and
CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, and NVIDIA's device plugin names a GPU once for each of its slices that a container was given.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from knowledge.derive._added import with_added
from knowledge.lazy import lazy
from knowledge.observation import Observation, Origin, Scope, Source, Status, Subject, Value
from knowledge.text import digits

_JOINED = frozenset({Scope.PROCESS, Scope.GPU, Scope.MIG})
MPS_SERVER = "nvidia-cuda-mps"  # the server that works for its clients, as the kernel cuts its name
_UNITS = {"": 2.0**-20, "b": 2.0**-20, "k": 2.0**-10, "m": 1.0, "g": 1024.0, "t": 1048576.0}  # to MiB
# 4096m   1g   1073741824   2G
_SIZE = lazy(r"(\d{1,18}(?:\.\d{1,6})?)\s?([bkmgt]?)(?:i?b)?", re.IGNORECASE)
_HAMI_MEMORY = lazy(r"CUDA_DEVICE_MEMORY_LIMIT(?:_\d{1,3})?")
_HAMI_COMPUTE = lazy(r"CUDA_DEVICE_SM_LIMIT(?:_\d{1,3})?")
_HAMI_LIBRARIES = frozenset({"libvgpu.so", "libsoftmig.so"})


def enrich(observations: Sequence[Observation]) -> list[Observation]:
    """The batch with what follows about shares of GPUs."""
    seen = _Seen(observations)
    if not seen.programs and not seen.migs:
        return list(observations)
    of_programs = (o for p in seen.programs for o in _program(seen, p))
    return with_added(observations, (*_migs(seen), *of_programs, *_gpus(seen)))


def size_mib(text: str) -> float | None:
    """A size such as ``4096m``, ``2G`` or a number of bytes, in MiB; None when it is none, or zero (no limit)."""
    found = _SIZE.fullmatch(text.strip())
    value = float(found[1]) * _UNITS[found[2].lower()] if found else 0.0
    return value or None


def percent(text: str) -> float | None:
    """A share such as ``50``; None when it is none, and for 0 and 100 and more, which mean no limit."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < 100 else None


class _Seen:
    """What the joins need: settings and GPUs of each process, and values by fact and subject."""

    def __init__(self, observations: Sequence[Observation]) -> None:
        self.by: dict[tuple[str, Subject], list[Observation]] = defaultdict(list)
        self.uses: dict[Subject, list[Subject]] = defaultdict(list)
        self.env: dict[Subject, Mapping[str, str]] = {}
        self.migs: list[Subject] = []
        programs: dict[Subject, None] = {}
        for o in observations:
            if o.subject.scope not in _JOINED or o.source.call.startswith("history:"):
                continue
            self.by[o.fact, o.subject].append(o)
            if o.fact == "mig.memory.total" and o.status is Status.OK:
                self.migs.append(o.subject)
            if o.subject.scope is not Scope.PROCESS or o.status is not Status.OK:
                continue
            if o.fact in ("process.uses_gpu", "process.uses_mig", "process.env"):
                programs.setdefault(o.subject)
            if o.fact == "process.env" and isinstance(o.value, tuple):
                self.env[o.subject] = dict(str(v).split("=", 1) for v in o.value if "=" in str(v))
            if o.fact == "process.uses_gpu" and isinstance(o.value, str) and o.value.startswith("gpu:"):
                target = Subject(Scope.GPU, o.value.removeprefix("gpu:"), o.subject.up(Scope.NODE))
                if target not in self.uses[o.subject]:
                    self.uses[o.subject].append(target)
        self.programs = sorted(programs, key=repr)

    def one(self, fact: str, subject: Subject) -> Observation | None:
        """The only answer; None without one, or when answers differ."""
        found = [o for o in self.by.get((fact, subject), ()) if o.status is Status.OK]
        return found[-1] if found and all(o.value == found[0].value for o in found) else None

    def number(self, fact: str, subject: Subject) -> float | None:
        """The newest number."""
        found = [o.value for o in self.by.get((fact, subject), ()) if o.status is Status.OK]
        value = found[-1] if found else None
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def base(self, subject: Subject) -> Observation | None:
        """What a derived fact about the process rests on: its settings, else its GPU."""
        return next(
            (o for f in ("process.env", "process.uses_gpu", "process.uses_mig") for o in self.by.get((f, subject), ())),
            None,
        )

    def is_mps_server(self, subject: Subject) -> bool:
        """Whether the process is the server of MPS."""
        names = (self.one("process.comm", subject), self.one("process.name", subject))
        return any(o is not None and MPS_SERVER in str(o.value) for o in names)

    def contexts(self, subject: Subject) -> tuple[str, ...]:
        """Kinds of context of the process; empty when they are not known."""
        found = self.one("process.gpu_contexts", subject)
        return tuple(map(str, found.value)) if found and isinstance(found.value, tuple) else ()


# --- one program --------------------------------------------------------------------------


def _program(seen: _Seen, process: Subject) -> Iterator[Observation]:
    base, env = seen.base(process), seen.env.get(process, {})
    if base is None:
        return
    if seen.is_mps_server(process):
        yield _made("process.mps.served", process, None, base, "", Status.NOT_APPLICABLE, "it is the server of MPS")
        return
    kinds = _kinds(seen, process)
    if kinds:
        yield _made("process.share.by", process, tuple(sorted(kinds)), base, _quoted(env))
    limit = _memory_limit(seen, process)
    if limit is not None:
        yield _made("process.share.memory_limit", process, round(limit, 1), base, _quoted(env))
        held = seen.number("process.gpu_memory", process)
        if held is not None and len(seen.uses.get(process, ())) == 1:
            yield _made(
                "process.share.memory_used", process, round(100 * held / limit, 1), base, f"{held:g} of {limit:g} MiB"
            )
    compute = _compute_limit(env)
    if compute is not None:
        yield _made("process.share.compute_limit", process, compute, base, _quoted(env))
    repeated = _repeated(env)
    if repeated is not None:
        yield _made("process.visible_gpus.repeated", process, repeated, base, _quoted(env, "NVIDIA_VISIBLE_DEVICES"))
    served = _served(seen, process, env)
    if served is not None:
        yield _made("process.mps.served", process, served, base, _quoted(env))
    elif env and not any(name.startswith("CUDA_MPS_") for name in env):
        yield _made("process.mps.served", process, None, base, "", Status.NOT_APPLICABLE, "it was not set up for MPS")


def _kinds(seen: _Seen, process: Subject) -> set[str]:
    env, out = seen.env.get(process, {}), set()
    if any(o.status is Status.OK for o in seen.by.get(("process.uses_mig", process), ())):
        out.add("mig")
    if "mps" in seen.contexts(process) or any(name.startswith("CUDA_MPS_") for name in env):
        out.add("mps")
    interposed = seen.one("process.gpu_interposers", process)
    libraries = set(map(str, interposed.value)) if interposed and isinstance(interposed.value, tuple) else set()
    if any(_HAMI_MEMORY.fullmatch(n) or _HAMI_COMPUTE.fullmatch(n) for n in env) or libraries & _HAMI_LIBRARIES:
        out.add("hami")
    if "ALIYUN_COM_GPU_MEM_CONTAINER" in env:
        out.add("cgpu")
    if not out and _repeated(env):
        out.add("slice")
    return out


def _memory_limit(seen: _Seen, process: Subject) -> float | None:
    """MiB on each GPU; the smallest of several."""
    env = seen.env.get(process, {})
    found = [size_mib(v) for n, v in env.items() if _HAMI_MEMORY.fullmatch(n)]
    # 0=2G,1=4G
    pinned = env.get("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "").split(",")[:64]
    found += [size_mib(part.partition("=")[2]) for part in pinned]
    found.append(_cgpu_limit(seen, process, env))
    known = [v for v in found if v is not None]
    return min(known) if known else None


def _cgpu_limit(seen: _Seen, process: Subject, env: Mapping[str, str]) -> float | None:
    """cGPU: a number beside the card's own in the same unit, so their ratio counts; the card's memory is what the driver tells."""
    mine, card = (_number(env.get(f"ALIYUN_COM_GPU_MEM_{n}", "")) for n in ("CONTAINER", "DEV"))
    totals = [seen.number("gpu.memory.total", g) for g in seen.uses.get(process, ())]
    if not mine or not card or mine > card or not totals or None in totals:
        return None
    return min(t for t in totals if t is not None) * mine / card


def _number(text: str) -> float:
    return float(digits(text, 11) or 0)


def _compute_limit(env: Mapping[str, str]) -> float | None:
    values = [
        percent(v) for n, v in env.items() if _HAMI_COMPUTE.fullmatch(n) or n == "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
    ]
    known = [v for v in values if v is not None]
    return min(known) if known else None


def _repeated(env: Mapping[str, str]) -> int | None:
    """Entries of NVIDIA_VISIBLE_DEVICES that name a GPU again; None when it names none."""
    names = [n.strip() for n in env.get("NVIDIA_VISIBLE_DEVICES", "").split(",") if n.strip()]
    whole = [n.partition("::")[0] for n in names if n.startswith("GPU-") or n.isdigit()]
    return len(whole) - len(set(whole)) if whole else None


def _served(seen: _Seen, process: Subject, env: Mapping[str, str]) -> bool | None:
    """Whether a process that was set up for MPS is served; None when nothing tells."""
    if not any(name.startswith("CUDA_MPS_") for name in env) or not seen.uses.get(process):
        return None
    contexts = seen.contexts(process)
    if "mps" in contexts:
        return True
    beside = [p for p in seen.programs if seen.is_mps_server(p) and set(seen.uses[p]) & set(seen.uses[process])]
    return True if beside else (False if contexts else None)


# --- one GPU ------------------------------------------------------------------------------


def _migs(seen: _Seen) -> Iterator[Observation]:
    for mig in sorted(set(seen.migs), key=repr):
        used, total, base = (
            seen.number("mig.memory.used", mig),
            seen.number("mig.memory.total", mig),
            seen.one("mig.memory.used", mig),
        )
        if used is not None and total and base is not None:
            yield _made("mig.memory.share", mig, round(100 * used / total, 1), base, f"{used:g} of {total:g} MiB")


def _gpus(seen: _Seen) -> Iterator[Observation]:
    users: dict[Subject, list[Subject]] = defaultdict(list)
    for process in seen.programs:
        for g in seen.uses.get(process, ()):
            users[g].append(process)
    for g, processes in sorted(users.items(), key=lambda item: repr(item[0])):
        base = seen.by["process.uses_gpu", processes[0]][0]
        kinds = set().union(*(_kinds(seen, p) for p in processes))
        kinds |= {"mps"} if any(seen.is_mps_server(p) for p in processes) else set()
        if kinds:
            yield _made("gpu.sharing", g, tuple(sorted(kinds)), base, ", ".join(p.id for p in processes[:16]))
        yield from _promised(seen, g, processes, base)
        yield from _neighbours(seen, g, processes, base)
        others = [p for p in processes if not seen.is_mps_server(p)]
        if len(others) < len(processes) and all(seen.contexts(p) for p in others):
            past = [p for p in others if "compute" in seen.contexts(p) and "mps" not in seen.contexts(p)]
            yield _made("gpu.mps.bypassed", g, len(past), base, ", ".join(p.id for p in past[:16]))


def _promised(seen: _Seen, g: Subject, processes: Sequence[Subject], base: Observation) -> Iterator[Observation]:
    """Limits together, each owner's once: the processes of a container share one."""
    total = seen.number("gpu.memory.total", g)
    limits: dict[str, float] = {}
    for p in processes:
        limit, owner = _memory_limit(seen, p), seen.one("process.owner", p)
        if limit is not None:
            limits[str(owner.value) if owner else p.id] = limit
    if limits and total:
        said = "; ".join(f"{name}: {mib:g} MiB" for name, mib in sorted(limits.items())[:8])
        yield _made("gpu.share.memory_promised", g, round(100 * sum(limits.values()) / total, 1), base, said)


def _neighbours(seen: _Seen, g: Subject, processes: Sequence[Subject], base: Observation) -> Iterator[Observation]:
    """Who of several owners takes most time and memory. Nothing when an owner, or the value of one process, is not known."""
    mine = [p for p in processes if not seen.is_mps_server(p) and seen.contexts(p) != ("graphics",)]
    owners = {p: seen.one("process.owner", p) for p in mine}
    names = {str(o.value) for o in owners.values() if o is not None}
    if len(names) < 2 or any(o is None for o in owners.values()):
        return
    total = seen.number("gpu.memory.total", g)
    for fact, name, share in (
        ("process.gpu_utilization", "gpu.neighbour.name", "gpu.neighbour.share"),
        ("process.gpu_memory", "gpu.neighbour.memory_name", "gpu.neighbour.memory"),
    ):
        values = {p: seen.number(fact, p) for p in mine}
        # a value of a process is one of all its GPUs together: where it has several, none of them is told apart
        if any(v is None for v in values.values()) or any(len(seen.uses[p]) > 1 for p in mine):
            continue
        sums: dict[str, float] = defaultdict(float)
        for p, o in owners.items():
            sums[str(o.value) if o else ""] += values[p] or 0.0
        most = max(sorted(sums), key=lambda n: sums[n])
        whole = sum(sums.values()) if fact == "process.gpu_utilization" else total
        if not whole:
            continue
        said = "; ".join(f"{n}: {v:g}" for n, v in sorted(sums.items(), key=lambda item: -item[1])[:8])
        yield _made(name, g, most, base, said)
        yield _made(share, g, round(100 * sums[most] / whole, 1), base, said)
        if fact == "process.gpu_utilization":
            yield _made("gpu.neighbour.busy", g, min(100.0, whole), base, said)


def _quoted(env: Mapping[str, str], *names: str) -> str:
    """The settings that tell a share, as they stand."""
    wanted = names or tuple(n for n in env if n.startswith(("CUDA_DEVICE_", "CUDA_MPS_", "ALIYUN_COM_GPU_")))
    return " ".join(f"{n}={env[n]}" for n in sorted(wanted) if n in env)[:300]


def _made(
    fact: str, subject: Subject, value: Value, base: Observation, said: str, status: Status = Status.OK, why: str = ""
) -> Observation:
    source = Source("derived", base.source.call, base.source.line)
    return Observation(
        fact, subject, value, status, source, base.at, base.clock, excerpt=said or base.excerpt, detail=why,
        origin=Origin.DERIVED,
    )  # fmt: skip
