"""The control group that gpudiag runs in: limits of a container or of a job, and whether they hold it back.

Version 2 has one tree, version 1 one for each controller; limits of all levels hold, the tightest one counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from knowledge.observation import Status
from probes.parse._system_doc import Gap, Out, Pair, Reading, growth, listed, whole
from probes.parse._system_memory import pressure

PATH = ("node.cgroup.version", "node.cgroup.path")
CPU = ("node.cgroup.cpu.limit", "node.cgroup.cpu.throttled", "node.cgroup.cpu.throttled_time",
       "node.cgroup.cpu.throttled_share")  # fmt: skip
MEMORY = ("node.cgroup.memory.limit", "node.cgroup.memory.used", "node.cgroup.memory.held", "node.cgroup.memory.share")
EVENTS = ("node.cgroup.memory.oom_kills", "node.cgroup.memory.limit_hits", "node.cgroup.memory.high_hits")
PIDS = ("node.cgroup.pids.limit", "node.cgroup.pids.current", "node.cgroup.pids.share")
CPUSET = ("node.cgroup.cpuset", "node.cgroup.cpuset.count")
PRESSURE = {"cpu": "some", "memory": "full", "io": "full"}
PROVIDES = (*PATH, *CPU, *MEMORY, *EVENTS, *PIDS, *CPUSET,
            *(f"node.cgroup.pressure.{r}.{kind}.avg10" for r, kind in PRESSURE.items()))  # fmt: skip
UNLIMITED = 1 << 60  # version 1 writes the largest number of pages instead of "max"
V1 = ("cpu", "memory", "pids", "cpuset")


def parse(out: Out) -> None:
    """Everything about control groups."""
    groups = out.snapshot.groups
    if not any(groups.values()):
        why = Gap(Status.UNSUPPORTED, "no control group of this process is mounted")
        seen = out.snapshot.get("/proc/self/cgroup")
        out.gap(PROVIDES, seen if isinstance(seen, Gap) else why, "/proc/self/cgroup")
        return
    _path(out)
    _cpu(out)
    _memory(out)
    _pids(out)
    _cpuset(out)
    own = _chain(out, "unified")[:1]
    for resource, kind in PRESSURE.items():
        _pressure(
            out, f"node.cgroup.pressure.{resource}.{kind}.avg10", f"{own[0] if own else ''}/{resource}.pressure", kind
        )


def _chain(out: Out, controller: str) -> tuple[str, ...]:
    return out.snapshot.groups.get(controller, ())


def _levels(out: Out, controller: str, leaf: str, old: str) -> list[Reading | Gap]:
    """The file of each level, from this process's outwards: of version 2 where it is there, else of version 1."""
    new = [out.snapshot.get(f"{folder}/{leaf}") for folder in _chain(out, "unified")]
    if any(isinstance(seen, Reading) for seen in new):
        return new
    one = [out.snapshot.get(f"{folder}/{old}") for folder in _chain(out, controller)]
    return one or new


def _none(out: Out, facts: Sequence[str], levels: Sequence[Reading | Gap], what: str, path: str) -> None:
    """No level has a limit: an answer, unless a level could not be read."""
    unread = next((s for s in levels if isinstance(s, Gap) and s.status is not Status.UNSUPPORTED), None)
    out.gap(facts, unread or Gap(Status.NOT_APPLICABLE, f"no control group above this process limits {what}"), path)


def _folder(seen: Reading) -> str:
    return seen.path.rpartition("/")[0]


def _path(out: Out) -> None:
    new, old = "unified" in out.snapshot.groups, any(name in out.snapshot.groups for name in V1)
    seen = out.snapshot.get("/proc/self/cgroup")
    own = (_chain(out, "memory") if old else ()) or _chain(out, "unified") or next(iter(out.snapshot.groups.values()))
    if isinstance(seen, Gap):
        out.gap(PATH, seen, "/proc/self/cgroup")
        return
    version = "hybrid" if new and old else "v2" if new else "v1"
    out.value(PATH[0], version, seen, f"mounted for this process: {', '.join(sorted(out.snapshot.groups))}")
    out.value(PATH[1], next(iter(own), "/"), seen, seen.text)


# --- cpu ----------------------------------------------------------------------------------


def _cores(out: Out, seen: Reading) -> float | None:
    """The limit in cores (quota over period); None without one."""
    if seen.path.endswith("cpu.max"):
        quota, _, period = seen.text.strip().partition(" ")
    else:
        quota, period = seen.text.strip(), out.snapshot.text(f"{_folder(seen)}/cpu.cfs_period_us")
    a, b = whole(quota), whole(period)
    return a / b if a is not None and b else None


def _cpu(out: Out) -> None:
    levels = _levels(out, "cpu", "cpu.max", "cpu.cfs_quota_us")
    limits = {s.path: c for s in levels if isinstance(s, Reading) and (c := _cores(out, s)) is not None}
    if not limits:
        _none(out, CPU, levels, "the CPU", "cpu.max")
        return
    tight = min(limits, key=lambda p: (limits[p], p))
    seen = next(s for s in levels if isinstance(s, Reading) and s.path == tight)
    out.value(CPU[0], limits[tight], seen, f"{tight.rpartition('/')[2]}: {seen.text.strip()}")
    path = f"{_folder(seen)}/cpu.stat"
    pair = out.snapshot.twice(path)
    if isinstance(pair, Gap):
        out.gap(CPU[1:], pair, path)
    else:
        _throttled(out, pair)


def _throttled(out: Out, pair: Pair) -> None:
    path = pair.after.path
    before, after = pair.before.table(), pair.after.table()
    key = "throttled_usec" if "throttled_usec" in after else "throttled_time"  # us of version 2, ns of version 1
    second = 1e6 if key == "throttled_usec" else 1e9
    periods, held, time = (
        growth(whole(before.get(k)), whole(after.get(k)), f"{k} of {path}") for k in ("nr_periods", "nr_throttled", key)
    )
    if isinstance(time, Gap):
        out.gap((CPU[2],), time, path)
    else:
        out.value(CPU[2], time / second / pair.seconds, pair, f"{key}: +{time} in {pair.seconds:.3f} s")
    broken = next((g for g in (periods, held) if isinstance(g, Gap)), None)
    if isinstance(periods, Gap) or isinstance(held, Gap):
        out.gap((CPU[1],), broken or Gap(Status.FAILED, f"{path} is not understood"), path)
    elif periods == 0:
        out.value(CPU[1], 0.0, pair, "no period of the limit ended while anything ran")
    else:
        shown = f"throttled in {held} of {periods} periods"
        out.value(CPU[1], min(100.0, 100.0 * held / periods), pair, shown)
    total, stopped = whole(after.get("nr_periods")), whole(after.get("nr_throttled"))
    if total is None or stopped is None:
        out.gap((CPU[3],), Gap(Status.FAILED, f"{path} does not tell nr_periods and nr_throttled"), path)
    elif total == 0:
        out.value(CPU[3], 0.0, pair, "no period of the limit has ended yet")
    else:
        shown = f"throttled in {stopped} of {total} periods since the group was made"
        out.value(CPU[3], min(100.0, 100.0 * stopped / total), pair, shown)


# --- memory -------------------------------------------------------------------------------


def _limit(seen: Reading) -> int | None:
    limit = whole(seen.text)
    return limit if limit is not None and 0 < limit < UNLIMITED else None


def _memory(out: Out) -> None:
    levels = _levels(out, "memory", "memory.max", "memory.limit_in_bytes")
    limits = {s.path: n for s in levels if isinstance(s, Reading) and (n := _limit(s)) is not None}
    if not limits:
        _none(out, MEMORY, levels, "memory", "memory.max")
        first = next((s for s in levels if isinstance(s, Reading)), None)
        _events(out, _folder(first) if first else next(iter(_chain(out, "unified") or _chain(out, "memory")), ""))
        return
    full = {path: _held(out, path.rpartition("/")[0]) for path in limits}
    known = {path: held for path, held in full.items() if not isinstance(held, Gap)}
    # The level that is nearest to its limit; where use is not known, the tightest one.
    tight = (
        max(known, key=lambda p: (known[p][1] / limits[p], p)) if known else min(limits, key=lambda p: (limits[p], p))
    )
    seen = next(s for s in levels if isinstance(s, Reading) and s.path == tight)
    out.value(MEMORY[0], limits[tight] / 2**20, seen, f"{tight.rpartition('/')[2]}: {seen.text.strip()}")
    folder, held = _folder(seen), full[tight]
    if isinstance(held, Gap):
        out.gap(MEMORY[1:], held, folder)
    else:
        used, kept, usage = held
        shown = f"{used} bytes, of which {kept} are no page cache that can be dropped; limit {limits[tight]}"
        out.value(MEMORY[1], used / 2**20, usage, shown)
        out.value(MEMORY[2], kept / 2**20, usage, shown)
        out.value(MEMORY[3], 100.0 * kept / limits[tight], usage, shown)
    _events(out, folder)


def _held(out: Out, folder: str) -> tuple[int, int, Reading] | Gap:
    """Bytes in use and those that cannot be dropped: page cache fills a group up to its limit and harms nobody."""
    usage: Reading | Gap = Gap(Status.UNSUPPORTED, f"{folder} does not tell its use")
    for leaf in ("memory.current", "memory.usage_in_bytes"):
        usage = out.snapshot.get(f"{folder}/{leaf}")
        if isinstance(usage, Reading):
            break
    stat = out.snapshot.get(f"{folder}/memory.stat")
    if isinstance(usage, Gap) or isinstance(stat, Gap):
        return usage if isinstance(usage, Gap) else stat if isinstance(stat, Gap) else Gap(Status.FAILED, folder)
    used, table = whole(usage.text), stat.table()
    start = "total_" if "total_active_file" in table else ""
    files = [whole(table.get(start + key)) for key in ("active_file", "inactive_file")]
    if used is None or None in files:
        return Gap(Status.FAILED, f"memory.stat and use of {folder} are not understood")
    spare = sum(n or 0 for n in files) + (whole(table.get("slab_reclaimable")) or 0)
    return used, max(0, used - spare), usage


def _events(out: Out, folder: str) -> None:
    """Kills and hits of the limit: memory.events of version 2; oom_control and failcnt of version 1."""
    path = f"{folder}/memory.events"
    pair = out.snapshot.twice(path)
    old = out.snapshot.twice(f"{folder}/memory.oom_control") if isinstance(pair, Gap) else pair
    if isinstance(pair, Gap) and isinstance(old, Gap):
        out.gap(EVENTS, pair if old.status is Status.NOT_ASKED else old, path)
        return
    pair = old if isinstance(pair, Gap) else pair
    assert isinstance(pair, Pair)
    kills = whole(pair.after.table().get("oom_kill"))
    if kills is None:
        why = Gap(Status.UNSUPPORTED, f"{pair.after.path} of this kernel does not tell oom_kill")
        out.gap(EVENTS[:1], why, pair.after.path)
    else:
        out.value(EVENTS[0], kills, pair.after, pair.after.line("oom_kill "))
    if pair.after.path == path:
        for fact, key in ((EVENTS[1], "max"), (EVENTS[2], "high")):
            one, two = (whole(r.table().get(key)) for r in (pair.before, pair.after))
            out.rate(fact, one, two, pair, f"{key} of {path}")
        return
    hits = out.snapshot.twice(f"{folder}/memory.failcnt")
    if isinstance(hits, Gap):
        out.gap(EVENTS[1:2], hits, folder)
    else:
        out.rate(EVENTS[1], whole(hits.before.text), whole(hits.after.text), hits, hits.after.path)
    out.gap(EVENTS[2:], Gap(Status.NOT_APPLICABLE, "control groups of version 1 have no memory.high"), folder)


# --- pids, cpuset, pressure ---------------------------------------------------------------


def _pids(out: Out) -> None:
    levels = _levels(out, "pids", "pids.max", "pids.max")
    limits = {s.path: n for s in levels if isinstance(s, Reading) and (n := _limit(s)) is not None}
    if not limits:
        _none(out, PIDS, levels, "processes", "pids.max")
        return
    now = {path: whole(out.snapshot.text(path[: -len("max")] + "current")) for path in limits}
    known = {path: n for path, n in now.items() if n is not None}
    tight = max(known, key=lambda p: (known[p] / limits[p], p)) if known else min(limits, key=lambda p: (limits[p], p))
    seen = next(s for s in levels if isinstance(s, Reading) and s.path == tight)
    out.value(PIDS[0], limits[tight], seen, f"pids.max: {seen.text.strip()}")
    current = f"{_folder(seen)}/pids.current"
    used = out.snapshot.get(current)
    if isinstance(used, Gap) or tight not in known:
        out.gap(PIDS[1:], used if isinstance(used, Gap) else Gap(Status.FAILED, f"{current} is no number"), current)
        return
    shown = f"pids.current: {known[tight]} of {limits[tight]}"
    out.value(PIDS[1], known[tight], used, shown)
    out.value(PIDS[2], 100.0 * known[tight] / limits[tight], used, shown)


def _cpuset(out: Out) -> None:
    levels = _levels(out, "cpuset", "cpuset.cpus.effective", "cpuset.effective_cpus")
    if not any(isinstance(s, Reading) for s in levels):
        levels = _levels(out, "cpuset", "cpuset.cpus.effective", "cpuset.cpus")
    seen = next((s for s in levels if isinstance(s, Reading) and s.text.strip()), None)
    cpus = listed(seen.text) if seen else None
    if seen is None:
        _none(out, CPUSET, levels, "which CPUs may be used", "cpuset.cpus.effective")
    elif not cpus:
        out.gap(CPUSET, Gap(Status.FAILED, f"{seen.path} is no list of CPUs"), seen.path, shown=seen.text)
    else:
        out.value(CPUSET[0], seen.text.strip(), seen, seen.text)
        out.value(CPUSET[1], len(cpus), seen, seen.text)


def _pressure(out: Out, fact: str, path: str, kind: str) -> None:
    seen: Reading | Gap = out.snapshot.get(path)
    if path.startswith("/") and path.count("/") == 1:
        seen = Gap(Status.UNSUPPORTED, "pressure of a control group is told by version 2 only")
    if isinstance(seen, Gap):
        out.gap((fact,), seen, path)
        return
    line = seen.line(kind + " ")
    numbers = pressure(line)
    if numbers is None:
        out.gap(
            (fact,),
            Gap(Status.FAILED if line else Status.UNSUPPORTED, f"{path} does not tell {kind}"),
            path,
            shown=line,
        )
    else:
        out.value(fact, numbers[0], seen, line)
