"""Processors in a snapshot: what they did between the readings, who waited for them, and who interrupts them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from knowledge.observation import Status
from probes.parse._system_doc import Gap, Out, Pair, Reading, decimal, growth, listed, whole

CPU = "/sys/devices/system/cpu/"
# cpu  635650 39 57258 1714326 2627 0 597 611 0 0
_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
BUSY_CORE = 95.0  # percent of the window: one tick in fifty of half a second may belong to another

SHARES = ("user", "system", "iowait", "irq", "softirq", "steal")
STAT = ("node.cpu.busy", *(f"node.cpu.{name}" for name in SHARES))
CORES = ("node.cpu.core.busy.max", "node.cpu.core.busy.cpu", "node.cpu.cores.saturated",
         "node.cpu.core.softirq.max", "node.cpu.core.softirq.cpu")  # fmt: skip
RATES = {"intr": "node.interrupts", "ctxt": "node.context_switches", "processes": "node.forks"}
TASKS = {"procs_running": "node.tasks.running", "procs_blocked": "node.tasks.blocked"}
SCHED = ("node.cpu.queue_wait", "node.cpu.wait_per_slice")
LOAD = ("node.load.1m", "node.load.5m", "node.load.15m", "node.load.per_cpu", "node.threads.total")
SHAPE = ("node.cpu.online", "node.cpu.present", "node.cpu.packages", "node.cpu.cores", "node.cpu.threads_per_core")
DEVICES = ("node.interrupts.device", "node.interrupts.device.rate", "node.interrupts.device.core_share",
           "node.interrupts.device.cpu")  # fmt: skip
PROVIDES = (*STAT, *CORES, *RATES.values(), *TASKS.values(), *SCHED, *LOAD, *SHAPE, *DEVICES,
            "node.cpu.model", "node.cpu.isolated")  # fmt: skip


def parse(out: Out) -> None:
    """Everything about processors but their frequency."""
    _shape(out)
    _stat(out)
    _schedstat(out)
    _load(out)
    _interrupts(out)


def online(out: Out) -> int | None:
    """How many CPUs are online; None when nobody tells."""
    cpus = listed(out.snapshot.text(CPU + "online"))
    return len(cpus) if cpus else None


def _shape(out: Out) -> None:
    for fact, name in (("node.cpu.online", "online"), ("node.cpu.present", "present")):
        seen = out.snapshot.get(CPU + name)
        cpus = listed(seen.text) if isinstance(seen, Reading) else None
        if isinstance(seen, Reading) and cpus:
            out.value(fact, len(cpus), seen, f"{name}: {seen.text}")
        else:
            out.gap((fact,), seen if isinstance(seen, Gap) else _unread(CPU + name), CPU + name)
    isolated = out.snapshot.get(CPU + "isolated")
    if isinstance(isolated, Reading):
        out.value("node.cpu.isolated", isolated.text.strip(), isolated, f"isolated: {isolated.text}")
    else:
        out.gap(("node.cpu.isolated",), isolated, CPU + "isolated")
    siblings, packages = (
        out.snapshot.get(f"{CPU}cpu*/topology/{name}") for name in ("thread_siblings_list", "physical_package_id")
    )
    if isinstance(packages, Reading) and packages.each:
        count = len(set(packages.each.values()))
        out.value(
            "node.cpu.packages",
            count,
            packages,
            f"physical_package_id: {', '.join(sorted(set(packages.each.values())))}",
        )
    else:
        out.gap(("node.cpu.packages",), _why(packages), f"{CPU}cpu*/topology/physical_package_id")
    if isinstance(siblings, Reading) and siblings.each:
        cores = set(siblings.each.values())
        out.value("node.cpu.cores", len(cores), siblings, f"{len(cores)} different thread_siblings_list")
        widest = max((len(listed(core) or ()) for core in cores), default=0)
        out.value("node.cpu.threads_per_core", widest, siblings, f"thread_siblings_list: {min(cores)}")
    else:
        path = f"{CPU}cpu*/topology/thread_siblings_list"
        out.gap(("node.cpu.cores", "node.cpu.threads_per_core"), _why(siblings), path)
    _model(out)


def _model(out: Out) -> None:
    seen = out.snapshot.get("/proc/cpuinfo")
    if isinstance(seen, Gap):
        out.gap(("node.cpu.model",), seen, "/proc/cpuinfo")
    elif line := seen.line("model name"):
        out.value("node.cpu.model", line.partition(":")[2].strip(), seen, line)
    else:
        gap = Gap(Status.UNSUPPORTED, "/proc/cpuinfo does not name the model on this architecture")
        out.gap(("node.cpu.model",), gap, "/proc/cpuinfo")


def _why(seen: Reading | Gap) -> Gap:
    if isinstance(seen, Gap):
        return seen
    return next(iter(seen.failed.values()), _unread(seen.path))


def _unread(path: str) -> Gap:
    return Gap(Status.FAILED, f"{path} is not understood")


# --- /proc/stat ---------------------------------------------------------------------------


def shares(before: str, after: str) -> Mapping[str, float] | Gap:
    """Percent of the time between two lines of /proc/stat, by field, and ``busy``.

    The kernel's own documentation says that iowait may decrease, and idle is computed from the same
    sums: of the two only their sum has to grow. Guest time is part of user and nice.
    """
    name = after.split(" ", 1)[0]
    one, two = ([whole(word) for word in line.split()[1:9]] for line in (before, after))
    if len(one) < 4 or len(one) != len(two) or None in one or None in two:
        return Gap(Status.FAILED, f"the line {name} of /proc/stat is not understood")
    grown: dict[str, float] = dict.fromkeys(_FIELDS, 0.0)
    for field, x, y in zip(_FIELDS, one, two, strict=False):
        assert x is not None
        assert y is not None
        grown[field] = y - x
    idle = grown["idle"] + grown["iowait"]
    bad = next((f for f in _FIELDS if f not in ("idle", "iowait") and grown[f] < 0), "idle" if idle < 0 else "")
    if bad:
        return Gap(Status.FAILED, f"{bad} of {name} in /proc/stat went backwards (a core went offline or was reset)")
    total = sum(grown.values())
    if total <= 0:
        return Gap(Status.FAILED, f"no tick of {name} was counted between the readings")
    out = {field: 100.0 * max(0.0, ticks) / total for field, ticks in grown.items()}
    for field in ("idle", "iowait"):  # one may shrink, and then the other is more than both together
        out[field] = min(out[field], 100.0 * idle / total)
    out["busy"] = 100.0 * (total - idle) / total
    out["user"] += out["nice"]
    return out


def per_core(pair: Pair) -> Mapping[int, Mapping[str, float]] | Gap:
    """`shares` of each core that is in both readings."""
    before = _core_lines(pair.before)
    out: dict[int, Mapping[str, float]] = {}
    for number, line in _core_lines(pair.after).items():
        if number in before:
            share = shares(before[number], line)
            if isinstance(share, Gap):
                return share
            out[number] = share
    return out or Gap(Status.FAILED, "/proc/stat names no core in both readings")


def _core_lines(seen: Reading) -> dict[int, str]:
    out = {}
    for line in seen.text.splitlines():
        if line.startswith("cpu"):
            number = whole(line.partition(" ")[0][3:])
            if number is not None:
                out[number] = line
    return out


def _stat(out: Out) -> None:
    path = "/proc/stat"
    seen, pair = out.snapshot.get(path), out.snapshot.twice(path)
    if isinstance(seen, Gap):
        out.gap(TASKS.values(), seen, path)
    else:
        for key, fact in TASKS.items():
            line = seen.line(key + " ")
            count = whole(line.partition(" ")[2])
            if count is None:
                out.gap((fact,), Gap(Status.FAILED, f"{path} does not tell {key}"), path)
            else:
                out.value(fact, count, seen, line)
    if isinstance(pair, Gap):
        out.gap((*STAT, *CORES, *RATES.values()), pair, path)
        return
    before, after = pair.before.line("cpu "), pair.after.line("cpu ")
    total = shares(before, after)
    if isinstance(total, Gap):
        out.gap(STAT, total, path, shown=after)
    else:
        shown = f"{before} -> {after}"
        out.value("node.cpu.busy", total["busy"], pair, shown)
        for name in SHARES:
            out.value(f"node.cpu.{name}", total[name], pair, shown)
    _cores(out, pair)
    for key, fact in RATES.items():
        one, two = (whole(r.line(key + " ").partition(" ")[2].partition(" ")[0]) for r in (pair.before, pair.after))
        out.rate(fact, one, two, pair, key)


def _cores(out: Out, pair: Pair) -> None:
    cores = per_core(pair)
    if isinstance(cores, Gap):
        out.gap(CORES, cores, pair.after.path)
        return
    lines = _core_lines(pair.after)
    top = max(cores, key=lambda c: (cores[c]["busy"], -c))
    out.value("node.cpu.core.busy.max", cores[top]["busy"], pair, lines[top])
    out.value("node.cpu.core.busy.cpu", top, pair, lines[top])
    full = [c for c in cores if cores[c]["busy"] >= BUSY_CORE]
    out.value("node.cpu.cores.saturated", len(full), pair, f"busy for {BUSY_CORE:.0f} % and more: {_few(full)}")
    loud = max(cores, key=lambda c: (cores[c]["softirq"] + cores[c]["irq"], -c))
    out.value("node.cpu.core.softirq.max", cores[loud]["softirq"] + cores[loud]["irq"], pair, lines[loud])
    out.value("node.cpu.core.softirq.cpu", loud, pair, lines[loud])


def _few(numbers: list[int]) -> str:
    shown = ", ".join(f"cpu{n}" for n in numbers[:8])
    return f"{shown} and {len(numbers) - 8} more" if len(numbers) > 8 else shown or "none"


# --- /proc/schedstat, /proc/loadavg -------------------------------------------------------


def _schedstat(out: Out) -> None:
    """Fields 7 to 9 of each cpu line: ns run, ns that runnable tasks waited, timeslices (version 15 and later)."""
    path = "/proc/schedstat"
    pair = out.snapshot.twice(path)
    if isinstance(pair, Gap):
        out.gap(SCHED, pair, path)
        return
    version = whole(pair.after.line("version ").partition(" ")[2])
    if version is None or version < 15:
        out.gap(SCHED, Gap(Status.UNSUPPORTED, f"{path} is of a version before 15"), path)
        return
    before, after = _core_lines(pair.before), _core_lines(pair.after)
    waited = slices = 0
    both = sorted(set(before) & set(after))
    for core in both:
        one, two = ([whole(word) for word in line.split()[1:10]] for line in (before[core], after[core]))
        for field, name in ((7, "time waited"), (8, "timeslices")):
            old, new = (row[field] if len(row) > 8 else None for row in (one, two))
            grown = growth(old, new, f"{name} of cpu{core} in {path}")
            if isinstance(grown, Gap):
                out.gap(SCHED, grown, path, shown=after[core])
                return
            if field == 7:
                waited += int(grown)
            else:
                slices += int(grown)
    if not both:
        out.gap(SCHED, _unread(path), path)
        return
    shown = f"{waited} ns waited for {slices} timeslices on {len(both)} CPUs in {pair.seconds:.3f} s"
    out.value("node.cpu.queue_wait", waited / (pair.seconds * 1e9 * len(both)), pair, shown)
    if slices:
        out.value("node.cpu.wait_per_slice", waited / slices / 1e6, pair, shown)
    else:
        gap = Gap(Status.NOT_APPLICABLE, "nothing ran between the readings")
        out.gap(("node.cpu.wait_per_slice",), gap, path, shown=shown)


def _load(out: Out) -> None:
    path = "/proc/loadavg"
    seen = out.snapshot.get(path)
    if isinstance(seen, Gap):
        out.gap(LOAD, seen, path)
        return
    words = seen.text.split()
    loads = [decimal(word) for word in words[:3]]
    if len(loads) < 3 or None in loads:
        out.gap(LOAD, _unread(path), path, shown=seen.text)
        return
    for fact, load in zip(LOAD, loads, strict=False):
        out.value(fact, load, seen, seen.text)
    cpus, first = online(out), loads[0]
    if cpus and first is not None:
        out.value("node.load.per_cpu", first / cpus, seen, f"{seen.text.strip()} on {cpus} CPUs")
    else:
        out.gap(("node.load.per_cpu",), Gap(Status.FAILED, "how many CPUs are online is not known"), path)
    threads = whole(words[3].partition("/")[2]) if len(words) > 3 else None
    if threads is None:
        out.gap(("node.threads.total",), _unread(path), path, shown=seen.text)
    else:
        out.value("node.threads.total", threads, seen, seen.text)


# --- /proc/interrupts ---------------------------------------------------------------------

#  98:   12  0  IR-PCI-MSI 524288-edge      nvidia
# 131:    0 77  IR-PCI-MSIX-0000:0c:00.0   12-edge      mlx5_comp12@pci:0000:0c:00.0
_QUEUE = re.compile(r"(?:-(?:TxRx|rx|tx|input|output|req|fp)[-_.]?\d{0,5}|[q-]\d{1,5})$")
_AT = re.compile(r"([a-z0-9]{1,20}?)_[a-z]{1,20}\d{0,5}@pci:([0-9a-f:.]{5,16})", re.IGNORECASE)


def device_of(words: list[str]) -> str:
    """The device that an interrupt's description names, without the number of its queue; empty without one."""
    for i in range(len(words) - 1, -1, -1):
        if words[i].endswith(("edge", "level", "fasteoi")):
            words = words[i + 1 :]
            break
    else:
        words = words[-1:]
    name = " ".join(words)
    if at := _AT.search(name):
        return f"{at[1]}@{at[2]}"
    return _QUEUE.sub("", name)


def _interrupts(out: Out) -> None:
    path = "/proc/interrupts"
    pair = out.snapshot.twice(path)
    grown = pair if isinstance(pair, Gap) else _by_device(pair)
    if isinstance(pair, Gap) or isinstance(grown, Gap):
        out.gap(DEVICES, grown if isinstance(grown, Gap) else _unread(path), path)
        return
    if not grown:
        out.value("node.interrupts.device.rate", 0.0, pair, "no device interrupted a CPU between the readings")
        gap = Gap(Status.NOT_APPLICABLE, "no device interrupted a CPU between the readings")
        out.gap([fact for fact in DEVICES if not fact.endswith(".rate")], gap, path)
        return
    name = max(grown, key=lambda n: (sum(grown[n].values()), n))
    total = sum(grown[name].values())
    top = max(grown[name], key=lambda c: (grown[name][c], -c))
    shown = f"{name}: {total} interrupts in {pair.seconds:.3f} s, {grown[name][top]} of them on cpu{top}"
    out.value("node.interrupts.device", name, pair, shown)
    out.value("node.interrupts.device.rate", total / pair.seconds, pair, shown)
    out.value("node.interrupts.device.core_share", 100.0 * grown[name][top] / total, pair, shown)
    out.value("node.interrupts.device.cpu", top, pair, shown)


def _by_device(pair: Pair) -> dict[str, dict[int, int]] | Gap:
    """Interrupts of each device by CPU, of those that came between the readings."""
    before, after = _interrupt_lines(pair.before), _interrupt_lines(pair.after)
    if before is None or after is None or before[0] != after[0]:
        return Gap(Status.FAILED, "the columns of /proc/interrupts are not understood, or a CPU came or went")
    columns = after[0]
    out: dict[str, dict[int, int]] = {}
    for label, words in after[1].items():
        old = before[1].get(label)
        name = device_of(words[len(columns) :])
        if old is None or not name:
            continue
        for cpu, x, y in zip(columns, old, words, strict=False):
            grown = growth(whole(x), whole(y), f"interrupt {label} on cpu{cpu}")
            if isinstance(grown, Gap):
                return grown
            if grown:
                counts = out.setdefault(name, {})
                counts[cpu] = counts.get(cpu, 0) + int(grown)
    return out


def _interrupt_lines(seen: Reading) -> tuple[tuple[int, ...], dict[str, list[str]]] | None:
    """The CPUs of the columns, and the words of each numbered interrupt."""
    head, *rest = seen.text.splitlines() or [""]
    columns = [whole(word[3:]) for word in head.split() if word.startswith("CPU")]
    cpus = tuple(c for c in columns if c is not None)
    if not cpus or len(cpus) != len(head.split()):
        return None
    lines = {}
    for line in rest:
        label, _, words = line.partition(":")
        if whole(label) is not None:
            lines[label.strip()] = words.split()
    return cpus, lines
