"""Memory in a snapshot: what is left, swapping, NUMA nodes, stalls, and shared memory."""

from __future__ import annotations

import re
from typing import TypeGuard

from knowledge.observation import Status
from probes.parse._system_doc import Gap, Out, Pair, Reading, decimal, growth, listed, whole

MIB = 1024  # kB of /proc/meminfo in one MiB
LEVELS = {
    "node.memory.total": "MemTotal", "node.memory.available": "MemAvailable", "node.memory.free": "MemFree",
    "node.memory.dirty": "Dirty", "node.memory.writeback": "Writeback", "node.memory.shared": "Shmem",
    "node.memory.slab_unreclaimable": "SUnreclaim", "node.memory.anonymous": "AnonPages",
    "node.memory.unevictable": "Unevictable", "node.memory.committed": "Committed_AS",
    "node.memory.commit_limit": "CommitLimit", "node.swap.total": "SwapTotal",
}  # fmt: skip
COUNTS = {"node.hugepages.total": "HugePages_Total", "node.hugepages.free": "HugePages_Free"}
SUMS = ("node.memory.available.share", "node.swap.used", "node.hugepages.size")
VMSTAT = {"node.faults.major": ("pgmajfault",), "node.memory.reclaim.stalls": ("allocstall",),
          "node.swap.in": ("pswpin",), "node.swap.out": ("pswpout",)}  # fmt: skip
NUMA = ("node.numa.nodes", "node.numa.available.min", "node.numa.available.node", "node.numa.miss")
PRESSURE = {"cpu": ("some",), "memory": ("some", "full"), "io": ("some", "full"), "irq": ("full",)}
AVERAGES = ("avg10", "avg60", "avg300")
SHM = ("node.shm.size", "node.shm.used", "node.shm.share", "node.shm.mounted")


def pressure_facts(resource: str) -> tuple[str, ...]:
    """The facts of one file of /proc/pressure."""
    return tuple(
        f"node.pressure.{resource}.{kind}.{span}" for kind in PRESSURE[resource] for span in (*AVERAGES, "now")
    )


PROVIDES = (*LEVELS, *COUNTS, *SUMS, *VMSTAT, *NUMA, *SHM, "node.memory.oom_kills",
            *(fact for resource in PRESSURE for fact in pressure_facts(resource)))  # fmt: skip

# MemAvailable:    1024 kB
_MEMINFO = re.compile(r"(?:Node \d{1,5} )?([\w()]{1,40}): {0,30}(\d{1,20})(?: kB)?\s*")
_PRESSURE = re.compile(
    r"(?:some|full) avg10=([\d.]{1,12}) avg60=([\d.]{1,12}) avg300=([\d.]{1,12}) total=(\d{1,20})\s*"
)


def parse(out: Out) -> None:
    """Everything about memory."""
    _meminfo(out)
    _vmstat(out)
    _numa(out)
    for resource in PRESSURE:
        _pressure(out, resource)
    _shm(out)


def meminfo(text: str) -> dict[str, int]:
    """Sizes in kB, and counts, of /proc/meminfo or of a NUMA node's meminfo."""
    found = (_MEMINFO.fullmatch(line) for line in text.splitlines())
    return {m[1]: int(m[2]) for m in found if m}


def _meminfo(out: Out) -> None:
    path = "/proc/meminfo"
    seen = out.snapshot.get(path)
    if isinstance(seen, Gap):
        out.gap((*LEVELS, *COUNTS, *SUMS), seen, path)
        return
    sizes = meminfo(seen.text)

    def lacking(key: str) -> Gap:
        return Gap(Status.UNSUPPORTED, f"{path} of this kernel does not tell {key}")

    for fact, key in LEVELS.items():
        if key in sizes:
            out.value(fact, sizes[key] / MIB, seen, seen.line(key + ":"))
        else:
            out.gap((fact,), lacking(key), path)
    for fact, key in COUNTS.items():
        if key in sizes:
            out.value(fact, sizes[key], seen, seen.line(key + ":"))
        else:
            out.gap((fact,), lacking(key), path)
    if "Hugepagesize" in sizes:
        out.value("node.hugepages.size", sizes["Hugepagesize"] / MIB, seen, seen.line("Hugepagesize:"))
    else:
        out.gap(("node.hugepages.size",), lacking("Hugepagesize"), path)
    both = f"{seen.line('MemAvailable:')}; {seen.line('MemTotal:')}"
    if sizes.get("MemTotal") and "MemAvailable" in sizes:
        share = min(100.0, 100.0 * sizes["MemAvailable"] / sizes["MemTotal"])
        out.value("node.memory.available.share", share, seen, both)
    else:
        out.gap(("node.memory.available.share",), lacking("MemAvailable and MemTotal"), path)
    if sizes.get("SwapTotal", -1) >= sizes.get("SwapFree", 0):
        used = (sizes["SwapTotal"] - sizes.get("SwapFree", 0)) / MIB
        out.value("node.swap.used", used, seen, f"{seen.line('SwapTotal:')}; {seen.line('SwapFree:')}")
    else:
        out.gap(("node.swap.used",), lacking("SwapTotal and SwapFree"), path)


def _vmstat(out: Out) -> None:
    path = "/proc/vmstat"
    seen, pair = out.snapshot.get(path), out.snapshot.twice(path)
    if isinstance(seen, Gap):
        out.gap(("node.memory.oom_kills",), seen, path)
    else:
        kills = whole(seen.table().get("oom_kill"))
        if kills is None:
            out.gap(("node.memory.oom_kills",), Gap(Status.UNSUPPORTED, f"{path} does not tell oom_kill"), path)
        else:
            out.value("node.memory.oom_kills", kills, seen, seen.line("oom_kill "))
    if isinstance(pair, Gap):
        out.gap(VMSTAT, pair, path)
        return
    before, after = pair.before.table(), pair.after.table()
    pages = out.snapshot.page / 2**20
    for fact, (key,) in VMSTAT.items():
        names = [name for name in after if name == key or (key == "allocstall" and name.startswith("allocstall_"))]
        if not names:
            out.gap((fact,), Gap(Status.UNSUPPORTED, f"{path} of this kernel does not tell {key}"), path)
            continue
        one, two = ([whole(table.get(name)) for name in names] for table in (before, after))
        sums = [None if None in row else sum(n or 0 for n in row) for row in (one, two)]
        out.rate(fact, sums[0], sums[1], pair, key, times=pages if fact.startswith("node.swap") else 1.0)


def _numa(out: Out) -> None:
    base = "/sys/devices/system/node/node*/"
    lists, memory, counts = (out.snapshot.get(base + "cpulist"), out.snapshot.get(base + "meminfo"),
                             out.snapshot.twice(base + "numastat"))  # fmt: skip
    if isinstance(lists, Gap):
        out.gap(("node.numa.nodes",), lists, base + "cpulist")
    else:
        shown = "; ".join(f"node{n}: {cpus or 'no CPUs'}" for n, cpus in lists.each.items())
        out.value("node.numa.nodes", len(lists.each) + len(lists.failed), lists, shown)
    _numa_memory(out, memory, lists)
    path = base + "numastat"
    if isinstance(counts, Gap):
        out.gap(("node.numa.miss",), counts, path)
        return
    before, after = (
        [whole(Reading("", text).table().get("numa_miss")) for _, text in sorted(r.each.items())]
        for r in (counts.before, counts.after)
    )
    if not after or None in (*before, *after):
        out.gap(("node.numa.miss",), Gap(Status.FAILED, f"{path} does not tell numa_miss"), path)
    else:
        out.rate("node.numa.miss", sum(n or 0 for n in before), sum(n or 0 for n in after), counts, "numa_miss")


def _numa_memory(out: Out, memory: Reading | Gap, lists: Reading | Gap) -> None:
    """The node with the least memory to be had. Nodes without CPUs are memory of GPUs (Grace Hopper) or expanders."""
    facts, path = NUMA[1:3], "/sys/devices/system/node/node*/meminfo"
    if isinstance(memory, Gap):
        out.gap(facts, memory, path)
        return
    shares = {}
    for name, text in memory.each.items():
        number, sizes = whole(name), meminfo(text)
        without = isinstance(lists, Reading) and listed(lists.each.get(name, "")) == ()
        if number is None or not sizes.get("MemTotal") or "MemFree" not in sizes or without:
            continue
        spare = sum(sizes.get(key, 0) for key in ("MemFree", "Active(file)", "Inactive(file)", "SReclaimable"))
        shares[number] = min(100.0, 100.0 * spare / sizes["MemTotal"])
    if not shares:
        out.gap(facts, next(iter(memory.failed.values()), Gap(Status.FAILED, f"{path} is not understood")), path)
        return
    least = min(shares, key=lambda n: (shares[n], n))
    shown = "; ".join(f"node{n}: {share:.1f} %" for n, share in sorted(shares.items()))
    out.value(facts[0], shares[least], memory, f"free and page cache of {shown}")
    out.value(facts[1], least, memory, f"free and page cache of {shown}")


def _pressure(out: Out, resource: str) -> None:
    path = f"/proc/pressure/{resource}"
    seen, pair = out.snapshot.get(path), out.snapshot.twice(path)
    for kind in PRESSURE[resource]:
        name = f"node.pressure.{resource}.{kind}"
        averages = [f"{name}.{span}" for span in AVERAGES]
        if isinstance(seen, Gap):
            out.gap((*averages, f"{name}.now"), seen, path)
            continue
        line = seen.line(kind + " ")
        numbers = pressure(line)
        if numbers is None:
            gap = Gap(Status.FAILED if line else Status.UNSUPPORTED, f"{path} does not tell {kind} as expected")
            out.gap((*averages, f"{name}.now"), gap, path, shown=line)
            continue
        for fact, number in zip(averages, numbers, strict=False):
            out.value(fact, number, seen, line)
        if isinstance(pair, Gap):
            out.gap((f"{name}.now",), pair, path)
        else:
            _now(out, f"{name}.now", pair, kind)


def _now(out: Out, fact: str, pair: Pair, kind: str) -> None:
    first, last = (pressure(r.line(kind + " ")) for r in (pair.before, pair.after))
    grown = growth(first[3] if first else None, last[3] if last else None, f"total of {kind} in {pair.after.path}")
    if isinstance(grown, Gap):
        out.gap((fact,), grown, pair.after.path)
    else:  # total is in microseconds
        out.value(fact, min(100.0, grown / pair.seconds / 1e4), pair, f"{grown:.0f} us stalled in {pair.seconds:.3f} s")


def pressure(line: str) -> tuple[float, float, float, int] | None:
    """avg10, avg60 and avg300 in percent, and total in us; None when the line is none."""
    found = _PRESSURE.fullmatch(line)
    averages = [decimal(found[i]) for i in (1, 2, 3)] if found else []
    if found is None or any(a is None or a > 100 for a in averages):
        return None
    one, two, three = (a or 0.0 for a in averages)
    return one, two, three, int(found[4])


def _shm(out: Out) -> None:
    path = "/dev/shm"
    seen = out.snapshot.get(path)
    if isinstance(seen, Gap):
        out.gap(SHM, seen, path)
        return
    size, free, mounted = (seen.plain.get(key) for key in ("size", "free", "mounted"))
    if isinstance(mounted, bool):
        out.value("node.shm.mounted", mounted, seen, f"a file system of its own: {'yes' if mounted else 'no'}")
    else:
        out.gap(SHM[3:], Gap(Status.FAILED, f"what is mounted on {path} is not told"), path)
    if not (_size(size) and _size(free) and free <= size):
        out.gap(SHM[:3], Gap(Status.FAILED, f"the size of {path} is not understood"), path)
        return
    used = (size - free) / 2**20
    shown = f"{path}: {size / 2**20:.0f} MiB, {used:.0f} MiB used"
    out.value("node.shm.size", size / 2**20, seen, shown)
    out.value("node.shm.used", used, seen, shown)
    if size:
        out.value("node.shm.share", 100.0 * (size - free) / size, seen, shown)
    else:
        out.gap(SHM[2:3], Gap(Status.NOT_APPLICABLE, f"{path} has no size of its own"), path)


def _size(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64
