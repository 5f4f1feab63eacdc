"""Facts from samples of threads: CPU, run queue, I/O, the interpreter's lock, control groups.

Shares come from the kernel's counters wherever there is one (schedstat, cpu.stat, io); from counted samples only where
there is none: state D, and waits for the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from knowledge.observation import Observation, Status, Subject
from probes.capture.model import Target
from probes.capture.readings import timebase
from probes.capture.readings._telling import Gap, Teller, Told, Window, begun, gap, growth, inside, known, mapping
from probes.capture.readings.cgroup_facts import tell_groups

PROBE = "job-samples"
LITTLE = 1 << 20  # bytes: a process that reads less in a window has no habits of reading
FEW = 0.05  # share of a process's samples on a NUMA node below which it does not count as running there
BAD_LOOKS = "fewer than two looks at it"


def observations(
    document: Mapping[str, Any],
    target: Target,
    subject: Subject,
    *,
    driving: int | None = None,
    window: Window | None = None,
) -> list[Observation]:
    """What the samples say of one process; `driving` is the thread that runs its loop, by default the main one.

    `window` is the part that counts (monotonic ns), by default all that was sampled. Never raises; a document that could
    not be had gives each fact with the reason.
    """
    tell = Teller(PROBE, begun(document, window))
    pid = target.process.pid
    if why := _absent(document, pid):
        for fact in FACTS:
            tell.add(fact, subject, why)
        return tell.out
    at = timebase.times(document.get("at"))
    rows = mapping(mapping(document.get("rows")).get(str(pid)))
    number = pid if driving is None else driving
    _thread(tell, subject, at, mapping(rows.get(str(number))), number, document, pid, window)
    _process(tell, subject, at, rows, document, pid, window)
    _crowd(tell, subject, at, document, target, window)
    _files(tell, subject, document, target, window)
    _numa(tell, subject, rows, document, pid)
    tell_groups(tell, subject, mapping(document.get("cgroup")), pid, window)
    return tell.out


FACTS = (
    "thread.cpu.share", "thread.runqueue.share", "thread.blocked_io.share", "thread.gil_wait.share", "process.window.cpu",
    "process.window.threads", "process.window.runnable", "process.window.faults.major", "process.window.read",
    "process.window.write", "process.window.read.miss.share", "process.window.swap", "process.window.migrations",
    "process.window.remote_memory.share", "process.cgroup.cpu.limit", "process.cgroup.throttled.share",
    "process.cgroup.throttled.periods.share",
)  # fmt: skip


def in_windows(document: Mapping[str, Any], pid: int, tid: int, name: str, spans: Any) -> timebase.Values:
    """Share (percent) of each window that a thread's counter `name` (``cpu``, ``wait``) took; NaN where it was not sampled."""
    at = timebase.times(document.get("at"))
    row = mapping(mapping(mapping(document.get("rows")).get(str(pid))).get(str(tid)))
    return timebase.rates(at, timebase.column(row.get(name), len(at)), spans) / 1e9 * 100


def busiest(document: Mapping[str, Any], pid: int) -> int | None:
    """The thread of a process that used most CPU; None when none was seen."""
    at = timebase.times(document.get("at"))
    rows = mapping(mapping(document.get("rows")).get(str(pid)))
    used = {tid: growth(at, mapping(row).get("cpu"), None)[0] for tid, row in rows.items() if tid.isdigit()}
    seen = {tid: grown for tid, grown in used.items() if np.isfinite(grown)}
    return int(max(seen, key=lambda tid: (seen[tid], -int(tid)))) if seen else None


def _absent(document: Mapping[str, Any], pid: int) -> Gap | None:
    """Why nothing can be said of a process."""
    if "status" in document:
        return gap(document)
    about = mapping(document.get("process")).get(str(pid))
    if about is None:
        return Gap(Status.NOT_ASKED, "this process was not sampled")
    found = gap(about)
    if found and ("ENOENT" in found.detail or "ESRCH" in found.detail):
        return Gap(Status.FAILED, "the process had ended before it was looked at")
    return found


# --- threads ------------------------------------------------------------------------------


def _thread(
    tell: Teller, subject: Subject, at: timebase.Times, row: Mapping[str, Any], tid: int, document: Mapping[str, Any], pid: int,
    window: Window | None,
) -> None:  # fmt: skip
    call = f"/proc/{pid}/task/{tid}"
    for fact, name in (("thread.cpu.share", "cpu"), ("thread.runqueue.share", "wait")):
        grown, seconds = growth(at, row.get(name), window)
        told: Told = min(grown / seconds / 1e7, 100.0) if seconds > 0 else _why(row, name)
        tell.add(
            fact, subject, told, f"{call}/schedstat", f"{grown / 1e6:.1f} ms of {seconds:.3f} s" if seconds else ""
        )
    keep = inside(at, window)
    states = _words(row.get("state"), keep)
    asleep = states.count("D")
    shown = f"{asleep} of {len(states)} samples in state D"
    delayed, _ = growth(at, row.get("blkio"), window)
    if delayed > 0:
        shown += f"; block I/O delayed it for {delayed / _ticks(document):.2f} s"
    told = 100.0 * asleep / len(states) if states else _why(row, "state")
    tell.add("thread.blocked_io.share", subject, told, f"{call}/stat", shown)
    waits = known(row.get("gil"), keep)
    whole = mapping(mapping(mapping(document.get("process")).get(str(pid))).get("gil"))
    source = row.get("gil") if isinstance(row.get("gil"), Mapping) else whole
    why = gap(source) if "status" in mapping(source) else None
    told = 100.0 * float(waits.mean()) if len(waits) else why or _why(row, "gil")
    shown = (
        f"{int(waits.sum())} of {len(waits)} samples wait in futex on an address of the interpreter"
        if len(waits)
        else ""
    )
    tell.add("thread.gil_wait.share", subject, told, f"{call}/syscall", shown)
    _migrations(tell, subject, at, row, call, window)


def _migrations(
    tell: Teller, subject: Subject, at: timebase.Times, row: Mapping[str, Any], call: str, window: Window | None
) -> None:
    moved = [m for m in row.get("migrations") or () if isinstance(m, int)]
    seen = at[np.isfinite(timebase.column(row.get("cpu"), len(at)))]
    seconds = (int(seen[-1]) - int(seen[0])) / 1e9 if len(seen) > 1 else 0.0
    if len(moved) > 1 and seconds > 0:
        told: Told = max(moved[-1] - moved[0], 0) / seconds
        tell.add(
            "process.window.migrations",
            subject,
            told,
            f"{call}/sched",
            f"nr_migrations {moved[0]} to {moved[-1]} in {seconds:.3f} s",
        )
        return
    places = known(row.get("cpu_number"), inside(at, window))
    changes = int(np.count_nonzero(np.diff(places))) if len(places) > 1 else 0
    told = changes / seconds if seconds > 0 and len(places) > 1 else _why(row, "cpu_number")
    tell.add(
        "process.window.migrations",
        subject,
        told,
        f"{call}/stat",
        f"another CPU in {changes} of {len(places)} samples: at least",
    )


def _why(row: Mapping[str, Any], name: str) -> Gap:
    """Why a thread has no value of a column."""
    if not row:
        return Gap(Status.FAILED, "this thread was not seen in the window")
    values = row.get(name)
    if isinstance(values, list) and all(v is None for v in values):
        return Gap(Status.UNSUPPORTED, "the kernel does not tell it")
    found = gap(values)
    return found or Gap(Status.FAILED, BAD_LOOKS)


def _words(values: object, keep: Any) -> list[str]:
    if not isinstance(values, list):
        return []
    return [v for v, used in zip(values, keep, strict=False) if used and isinstance(v, str)]


def _ticks(document: Mapping[str, Any]) -> int:
    ticks = document.get("ticks_per_s")
    return ticks if isinstance(ticks, int) and ticks > 0 else 100


# --- the process --------------------------------------------------------------------------


def _process(
    tell: Teller, subject: Subject, at: timebase.Times, rows: Mapping[str, Any], document: Mapping[str, Any], pid: int,
    window: Window | None,
) -> None:  # fmt: skip
    about = mapping(mapping(document.get("process")).get(str(pid)))
    looks, call = timebase.times(about.get("at")), f"/proc/{pid}/stat"
    grown, seconds = growth(looks, about.get("cpu"), window)
    if seconds < 0.5:  # it counts in ticks: two of them would be a tenth of so short a window
        parts = [growth(at, mapping(row).get("cpu"), window) for row in rows.values()]
        grown, seconds = sum(g for g, s in parts if s > 0), max((s for _, s in parts), default=0.0)
    told: Told = grown / seconds / 1e9 if seconds > 0 else Gap(Status.FAILED, BAD_LOOKS)
    tell.add("process.window.cpu", subject, told, call, f"{grown / 1e9:.3f} s of CPU in {seconds:.3f} s")
    threads = known(about.get("threads"), inside(looks, window))
    tell.add(
        "process.window.threads", subject, int(threads[-1]) if len(threads) else Gap(Status.FAILED, BAD_LOOKS), call
    )
    faults, seconds = growth(looks, mapping(about.get("faults")).get("major"), window)
    told = faults / seconds if seconds > 0 else Gap(Status.FAILED, BAD_LOOKS)
    tell.add("process.window.faults.major", subject, told, call, f"{faults:.0f} in {seconds:.3f} s" if seconds else "")
    swap = known(about.get("swap"), inside(looks, window))
    told = int(swap[-1]) if len(swap) else Gap(Status.UNSUPPORTED, "the kernel does not tell VmSwap")
    tell.add(
        "process.window.swap",
        subject,
        told,
        f"/proc/{pid}/status",
        f"{int(swap[0])} to {int(swap[-1])} bytes" if len(swap) else "",
    )


def _running(states: object, keep: Any) -> float:
    """Share of the looks within the window at which a thread ran or was ready; it is not looked at every time."""
    if not isinstance(states, list):
        return 0.0
    seen = [(i, s == "R") for i, (s, used) in enumerate(zip(states, keep, strict=False)) if used and isinstance(s, str)]
    if not seen:
        return 0.0
    there = (seen[-1][0] - seen[0][0] + 1) / max(int(np.count_nonzero(keep)), 1)
    return min(there, 1.0) * sum(ran for _, ran in seen) / len(seen)


def _crowd(
    tell: Teller,
    subject: Subject,
    at: timebase.Times,
    document: Mapping[str, Any],
    target: Target,
    window: Window | None,
) -> None:
    """Threads that want a CPU, those of its loader's workers with them, and the CPUs that they may have."""
    pids = (target.process.pid, *(h.pid for h in target.helpers))
    rows = [row for pid in pids for row in mapping(mapping(document.get("rows")).get(str(pid))).values()]
    keep = inside(at, window)
    running = sum(_running(mapping(row).get("state"), keep) for row in rows)
    tell.add("process.window.runnable", subject, float(running) if keep.any() else Gap(Status.FAILED, BAD_LOOKS),
             f"/proc/{pids[0]}/task", f"{int(keep.sum())} looks at {len(rows)} threads of {len(pids)} processes")  # fmt: skip
    allowed = str(mapping(mapping(document.get("process")).get(str(pids[0]))).get("cpus_allowed", ""))
    if count := len(cpus(allowed)):
        tell.add(
            "process.cpus_allowed.count", subject, count, f"/proc/{pids[0]}/status", f"Cpus_allowed_list: {allowed}"
        )


def _files(tell: Teller, subject: Subject, document: Mapping[str, Any], target: Target, window: Window | None) -> None:
    """I/O of the process and of its helpers: workers of a data loader read for it."""
    sums: dict[str, float] = {}
    why: Gap | None = None
    shown = []
    for pid in (target.process.pid, *(h.pid for h in target.helpers)):
        about = mapping(mapping(document.get("process")).get(str(pid)))
        counters, looks = mapping(about.get("io")), timebase.times(about.get("at"))
        if not counters or "status" in counters or len(looks) < 2:
            why = why or gap(counters if counters else about) or Gap(Status.FAILED, BAD_LOOKS)
            continue
        parts = {}
        for name in ("read_bytes", "write_bytes", "rchar"):
            grown, seconds = growth(looks, counters.get(name), window)
            if seconds > 0:
                parts[name] = grown
                sums[name] = sums.get(name, 0.0) + grown
                sums[name + "/s"] = sums.get(name + "/s", 0.0) + grown / seconds
        shown.append(
            f"{pid}: {parts.get('read_bytes', 0):.0f} of {parts.get('rchar', 0):.0f} bytes read came from storage"
        )
    call, words = f"/proc/{target.process.pid}/io", ", ".join(shown[:4])
    for fact, name in (("process.window.read", "read_bytes"), ("process.window.write", "write_bytes")):
        tell.add(fact, subject, sums.get(name + "/s", why or Gap(Status.FAILED, BAD_LOOKS)), call, words)
    told: Told = why or Gap(Status.FAILED, BAD_LOOKS)
    if "read_bytes" in sums and "rchar" in sums:
        stored, every = sums["read_bytes"], max(sums["rchar"], sums["read_bytes"])
        told = (
            100 * stored / every
            if every >= LITTLE
            else Gap(Status.NOT_APPLICABLE, f"next to nothing was read ({every:.0f} bytes)")
        )
    tell.add("process.window.read.miss.share", subject, told, call, words)


def _numa(tell: Teller, subject: Subject, rows: Mapping[str, Any], document: Mapping[str, Any], pid: int) -> None:
    """Memory on nodes other than those on which its threads ran."""
    fact, call = "process.window.remote_memory.share", f"/proc/{pid}/numa_maps"
    about = mapping(mapping(document.get("process")).get(str(pid)))
    spread, pages = mapping(about.get("nodes")), mapping(about.get("numa"))
    places = {n: cpus(str(text)) for n, text in spread.items() if n.isdigit()}
    if len(places) == 1:
        tell.add(fact, subject, Gap(Status.NOT_APPLICABLE, "this machine has one NUMA node"), call)
        return
    held = {n: v for n, v in mapping(pages.get("bytes")).items() if isinstance(v, int)}
    total = sum(held.values())
    if not places or not total:
        why = gap(spread) if "status" in spread else gap(pages)
        tell.add(fact, subject, why or Gap(Status.FAILED, "no page was counted"), call)
        return
    local = ran_on(rows.values(), places) or {
        n for n, own in places.items() if own & cpus(str(about.get("cpus_allowed", "")))
    }
    remote = sum(v for n, v in held.items() if n not in local)
    shown = f"runs on node {','.join(sorted(local))}; " + ", ".join(
        f"N{n}={v >> 20} MiB" for n, v in sorted(held.items())
    )
    tell.add(
        fact,
        subject,
        100.0 * remote / total,
        call,
        shown + ("" if pages.get("complete") else "; not all of it was counted"),
    )


def ran_on(rows: Iterable[Any], places: Mapping[str, frozenset[int]]) -> set[str]:
    """NUMA nodes on which threads that used CPU were seen, but for the odd one."""
    seen: dict[int, int] = {}
    for row in rows:
        used = known(mapping(row).get("cpu"), np.ones(len(mapping(row).get("cpu") or ()), bool))
        if len(used) > 1 and used[-1] > used[0]:
            for number in mapping(row).get("cpu_number") or ():
                if isinstance(number, int):
                    seen[number] = seen.get(number, 0) + 1
    total = sum(seen.values())
    counts = {n: sum(many for cpu, many in seen.items() if cpu in own) for n, own in places.items()}
    return {n for n, many in counts.items() if total and many >= FEW * total}


def cpus(text: str) -> frozenset[int]:
    """``0-3,8`` as numbers; empty for what is no list of CPUs."""
    found: set[int] = set()
    for part in text.split(","):
        low, _, high = part.strip().partition("-")
        if low.isdecimal() and (not high or high.isdecimal()) and int(high or low) < 1 << 16:
            found.update(range(int(low), int(high or low) + 1))
    return frozenset(found)
