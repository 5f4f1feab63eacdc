"""What a snapshot says of the machine itself: kernel, firmware, clocks, frequencies, container, and where GPUs are."""

from __future__ import annotations

import re

from knowledge.identity import is_pci, normalise_pci
from knowledge.observation import Scope, Status, Subject
from probes.parse._system_cpu import CPU, per_core
from probes.parse._system_doc import Gap, Number, Out, Pair, Reading, decimal, growth, listed, whole

TEXTS = {
    "node.hostname": "/proc/sys/kernel/hostname", "node.kernel.version": "/proc/sys/kernel/osrelease",
    "node.boot_id": "/proc/sys/kernel/random/boot_id", "node.product.vendor": "/sys/class/dmi/id/sys_vendor",
    "node.product.name": "/sys/class/dmi/id/product_name", "node.product.board": "/sys/class/dmi/id/board_name",
    "node.firmware.version": "/sys/class/dmi/id/bios_version", "node.firmware.date": "/sys/class/dmi/id/bios_date",
    "node.clock.source": "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "node.cpu.frequency.driver": CPU + "cpu0/cpufreq/scaling_driver",
    "node.cpu.energy_preference": CPU + "cpu0/cpufreq/energy_performance_preference",
}  # fmt: skip
NUMBERS = {
    "node.numa.balancing": "/proc/sys/kernel/numa_balancing", "node.memory.swappiness": "/proc/sys/vm/swappiness",
    "node.memory.overcommit": "/proc/sys/vm/overcommit_memory", "node.memory.zone_reclaim": "/proc/sys/vm/zone_reclaim_mode",
    "node.threads.max": "/proc/sys/kernel/threads-max", "node.pids.max": "/proc/sys/kernel/pid_max",
}  # fmt: skip
CHOICES = {
    "node.memory.huge_pages": "/sys/kernel/mm/transparent_hugepage/enabled",
    "node.memory.huge_pages.defrag": "/sys/kernel/mm/transparent_hugepage/defrag",
}
FREQUENCY = ("node.cpu.frequency.max", "node.cpu.frequency.limit", "node.cpu.frequency.limit.share")
THROTTLE = ("node.cpu.throttle.core", "node.cpu.throttle.package", "node.cpu.throttle.rate")
KERNEL = ("node.kernel.parameters", "node.kernel.mitigations", "node.iommu.parameter")
PROVIDES = (
    *TEXTS, *NUMBERS, *CHOICES, *FREQUENCY, *THROTTLE, *KERNEL, "node.clock.available", "node.uptime", "node.kernel.taints",
    "node.cpu.governors", "node.cpu.frequency.busy", "node.cpu.boost", "node.virtual", "node.container",
    "node.container.kind", "gpu.numa", "gpu.cpu_affinity",
)  # fmt: skip

# Bits of /proc/sys/kernel/tainted: Documentation/admin-guide/tainted-kernels.rst
TAINTS = (
    "proprietary_module", "forced_module", "cpu_out_of_specification", "forced_unload", "machine_check", "bad_page",
    "user_request", "died", "acpi_override", "warning", "staging_driver", "firmware_workaround", "out_of_tree_module",
    "unsigned_module", "soft_lockup", "live_patch", "auxiliary", "struct_randomised", "test",
)  # fmt: skip
# Makers of GPUs and accelerators: NVIDIA, AMD, Intel, Habana, Huawei, Moore Threads. A server's management
# controller (ASPEED, Matrox) and the screens of virtual machines are display devices too, and no GPUs.
_MAKERS = frozenset({"0x10de", "0x1002", "0x8086", "0x1da3", "0x19e5", "0x1ed5"})
_CONTAINERS = (
    ("kubernetes", re.compile(r"kubepods")), ("docker", re.compile(r"/docker[-/]")), ("podman", re.compile(r"libpod")),
    ("containerd", re.compile(r"cri-containerd|/containerd/")), ("lxc", re.compile(r"/lxc[./]")),
)  # fmt: skip


def parse(out: Out) -> None:
    """Everything about the machine."""
    for fact, path in TEXTS.items():
        seen = out.snapshot.get(path)
        if isinstance(seen, Reading) and seen.text.strip():
            out.value(fact, seen.text.strip(), seen, seen.text)
        else:
            out.gap((fact,), seen if isinstance(seen, Gap) else Gap(Status.UNSUPPORTED, f"{path} is empty"), path)
    for fact, path in NUMBERS.items():
        _number(out, fact, path)
    for fact, path in CHOICES.items():
        _choice(out, fact, path)
    _clocks(out)
    _kernel(out)
    _frequency(out)
    _throttle(out)
    _kind(out)
    _gpus(out)


def _number(out: Out, fact: str, path: str) -> None:
    seen = out.snapshot.get(path)
    number = whole(seen.text) if isinstance(seen, Reading) else None
    if isinstance(seen, Reading) and number is not None:
        out.value(fact, number, seen, seen.text)
    else:
        out.gap((fact,), seen if isinstance(seen, Gap) else Gap(Status.FAILED, f"{path} is no number"), path)


def _choice(out: Out, fact: str, path: str) -> None:
    """``always [madvise] never``: the word in brackets."""
    seen = out.snapshot.get(path)
    found = re.search(r"\[([\w+]{1,30})\]", seen.text) if isinstance(seen, Reading) else None
    if isinstance(seen, Reading) and found:
        out.value(fact, found[1], seen, seen.text)
    else:
        out.gap((fact,), seen if isinstance(seen, Gap) else Gap(Status.FAILED, f"{path} marks no choice"), path)


def _clocks(out: Out) -> None:
    path = "/sys/devices/system/clocksource/clocksource0/available_clocksource"
    seen = out.snapshot.get(path)
    if isinstance(seen, Gap):
        out.gap(("node.clock.available",), seen, path)
    else:
        out.value("node.clock.available", tuple(sorted(set(seen.text.split()[:32]))), seen, seen.text)
    path = "/proc/uptime"
    up = out.snapshot.get(path)
    seconds = decimal(up.text.split(" ")[0]) if isinstance(up, Reading) else None
    if isinstance(up, Reading) and seconds is not None:
        out.value("node.uptime", seconds, up, up.text)
    else:
        out.gap(("node.uptime",), up if isinstance(up, Gap) else Gap(Status.FAILED, f"{path} is not understood"), path)


def _kernel(out: Out) -> None:
    path = "/proc/sys/kernel/tainted"
    seen = out.snapshot.get(path)
    bits = whole(seen.text) if isinstance(seen, Reading) else None
    if isinstance(seen, Reading) and bits is not None:
        names = [name for i, name in enumerate(TAINTS) if bits >> i & 1]
        out.value("node.kernel.taints", tuple(sorted(names)), seen, f"tainted: {seen.text}")
    else:
        gap = seen if isinstance(seen, Gap) else Gap(Status.FAILED, f"{path} is no number")
        out.gap(("node.kernel.taints",), gap, path)
    path = "/proc/cmdline"
    seen = out.snapshot.get(path)
    if isinstance(seen, Gap):
        out.gap(KERNEL, seen, path)
        return
    words = seen.text.split()[:64]
    given = {word.partition("=")[0]: word.partition("=")[2] or "on" for word in words}
    out.value("node.kernel.parameters", tuple(sorted(set(words))), seen, seen.text)
    out.value(
        "node.kernel.mitigations", given.get("mitigations", "auto"), seen, seen.text or "mitigations is not given"
    )
    iommu = [
        word for word in words if word.partition("=")[0] in ("iommu", "intel_iommu", "amd_iommu", "iommu.passthrough")
    ]
    if iommu:
        out.value("node.iommu.parameter", " ".join(iommu), seen, seen.text)
    else:
        out.gap(
            KERNEL[2:], Gap(Status.NOT_APPLICABLE, "the kernel was started without a parameter for the IOMMU"), path
        )


# --- frequency ----------------------------------------------------------------------------


def _frequency(out: Out) -> None:
    base = CPU + "cpu*/cpufreq/"
    path = base + "scaling_governor"
    seen = out.snapshot.get(path)
    if isinstance(seen, Reading) and seen.each:
        names = sorted(set(seen.each.values()))
        count = {name: sum(value == name for value in seen.each.values()) for name in names}
        shown = ", ".join(f"{name}: {n} CPUs" for name, n in count.items())
        out.value("node.cpu.governors", tuple(names), seen, f"scaling_governor {shown}")
    else:
        out.gap(("node.cpu.governors",), _of_folder(seen), path)
    limits, tops = out.snapshot.get(base + "scaling_max_freq"), out.snapshot.get(base + "cpuinfo_max_freq")
    if isinstance(limits, Gap) or isinstance(tops, Gap):
        out.gap(FREQUENCY, limits if isinstance(limits, Gap) else _of_folder(tops), base + "scaling_max_freq")
    else:
        _limits(out, limits, tops)
    _busy(out)
    _boost(out)


def _of_folder(seen: Reading | Gap) -> Gap:
    if isinstance(seen, Gap):
        return seen
    return next(iter(seen.failed.values()), Gap(Status.FAILED, f"{seen.path} is not understood"))


def _limits(out: Out, limits: Reading, tops: Reading) -> None:
    """The core that is held lowest in relation to what it can do. Files are in kHz."""
    ratios = {}
    for name, text in limits.each.items():
        low, high = whole(text), whole(tops.each.get(name))
        if low is not None and high:
            ratios[name] = (low, high)
    if not ratios:
        out.gap(FREQUENCY, Gap(Status.FAILED, f"{limits.path} is not understood"), limits.path)
        return
    worst = min(ratios, key=lambda n: (ratios[n][0] / ratios[n][1], n))
    low, high = ratios[worst]
    shown = f"cpu{worst}: scaling_max_freq {low} kHz, cpuinfo_max_freq {high} kHz"
    out.value(
        FREQUENCY[0],
        max(top for _, top in ratios.values()) / 1000,
        tops,
        f"highest cpuinfo_max_freq of {len(ratios)} CPUs",
    )
    out.value(FREQUENCY[1], low / 1000, limits, shown)
    out.value(FREQUENCY[2], min(100.0, 100.0 * low / high), limits, shown)


def _busy(out: Out) -> None:
    """Mean frequency of the cores that worked: idle ones may be as slow as they like."""
    fact, path = "node.cpu.frequency.busy", "/proc/cpuinfo"
    pair = out.snapshot.twice("/proc/stat")
    cores = per_core(pair) if isinstance(pair, Pair) else pair
    if isinstance(cores, Gap):
        out.gap((fact,), cores, "/proc/stat")
        return
    seen = out.snapshot.get(path)
    clocks = _cpuinfo_clocks(seen) if isinstance(seen, Reading) else {}
    if not clocks:
        path = CPU + "cpu*/cpufreq/scaling_cur_freq"
        seen = out.snapshot.get(path)
        raw = seen.each if isinstance(seen, Reading) else {}
        pairs = ((whole(name), whole(text)) for name, text in raw.items())
        clocks = {name: khz / 1000 for name, khz in pairs if name is not None and khz is not None}
    busy = [mhz for core, mhz in clocks.items() if core in cores and cores[core]["busy"] >= 50]
    if isinstance(seen, Gap):
        out.gap((fact,), seen, path)
    elif not clocks:
        out.gap((fact,), Gap(Status.UNSUPPORTED, "the frequency of no CPU is told"), path)
    elif not busy:
        out.gap(
            (fact,),
            Gap(Status.NOT_APPLICABLE, "no CPU of which the frequency is known was busy for half the time"),
            path,
        )
    else:
        out.value(fact, sum(busy) / len(busy), seen, f"{len(busy)} busy CPUs, {min(busy):.0f} to {max(busy):.0f} MHz")


def _cpuinfo_clocks(seen: Reading) -> dict[int, float]:
    out: dict[int, float] = {}
    number: int | None = None
    for line in seen.text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "processor":
            number = whole(value)
        elif key.strip() == "cpu MHz" and number is not None:
            mhz = decimal(value)
            if mhz:
                out[number] = mhz
    return out


def _boost(out: Out) -> None:
    off, on = out.snapshot.get(CPU + "intel_pstate/no_turbo"), out.snapshot.get(CPU + "cpufreq/boost")
    for seen, meant in ((off, "0"), (on, "1")):
        if isinstance(seen, Reading) and seen.text.strip() in ("0", "1"):
            out.value(
                "node.cpu.boost", seen.text.strip() == meant, seen, f"{seen.path.rpartition('/')[2]}: {seen.text}"
            )
            return
    gap = on if isinstance(on, Gap) else Gap(Status.FAILED, f"{on.path} is not understood")
    out.gap(("node.cpu.boost",), gap, CPU + "cpufreq/boost")


def _throttle(out: Out) -> None:
    known: list[tuple[Number, Pair]] = []
    gaps: list[Gap] = []
    for fact, name in zip(THROTTLE, ("core_throttle_count", "package_throttle_count"), strict=False):
        path = f"{CPU}cpu*/thermal_throttle/{name}"
        pair = out.snapshot.twice(path)
        counts = [] if isinstance(pair, Gap) else [whole(text) for text in pair.after.each.values()]
        if isinstance(pair, Gap) or not counts or None in counts:
            gap = pair if isinstance(pair, Gap) else _of_folder(pair.after)
            out.gap((fact,), gap, path)
            gaps.append(gap)
            continue
        top = max(n or 0 for n in counts)
        out.value(fact, top, pair.after, f"highest {name} of {len(counts)} CPUs: {top}")
        grown = [
            growth(whole(pair.before.each.get(cpu)), whole(text), f"{name} of cpu{cpu}")
            for cpu, text in pair.after.each.items()
        ]
        if broken := [g for g in grown if isinstance(g, Gap)]:
            gaps.append(broken[0])
        else:
            known.append((max(g for g in grown if not isinstance(g, Gap)), pair))
    if not known:
        out.gap(THROTTLE[2:], gaps[0], f"{CPU}cpu*/thermal_throttle")
        return
    most, window = max(known, key=lambda p: (p[0], p[1].after.path))
    shown = f"{most} more on the CPU with most of them in {window.seconds:.3f} s"
    out.value(THROTTLE[2], most / window.seconds, window, shown)


# --- virtual machine, container -----------------------------------------------------------


def _kind(out: Out) -> None:
    path = "/proc/cpuinfo"
    seen, above = out.snapshot.get(path), out.snapshot.get("/sys/hypervisor/type")
    virtual = isinstance(seen, Reading) and "hypervisor" in seen.line("flags")
    if isinstance(above, Reading) and above.text.strip():
        out.value("node.virtual", True, above, above.text)
    elif virtual and isinstance(seen, Reading):
        out.value("node.virtual", True, seen, seen.line("flags"))
    elif isinstance(seen, Reading) and seen.line("model name"):  # x86: the processor would say so
        out.value("node.virtual", False, seen, "no hypervisor flag")
    else:
        gap = seen if isinstance(seen, Gap) else Gap(Status.UNSUPPORTED, "processors of this kind do not tell")
        out.gap(("node.virtual",), gap, path)
    _container(out)


def _container(out: Out) -> None:
    facts, group = ("node.container", "node.container.kind"), out.snapshot.get("/proc/self/cgroup")
    marks = (("/run/secrets/kubernetes.io", "kubernetes"), ("/run/.containerenv", "podman"), ("/.dockerenv", "docker"))
    kind = next(((k, s) for p, k in marks if isinstance(s := out.snapshot.get(p), Reading)), None)
    said = out.snapshot.get("/run/systemd/container")
    if kind is None and isinstance(said, Reading) and said.text.strip():
        kind = (said.text.strip(), said)
    if kind is None and isinstance(group, Reading):
        kind = next(((k, group) for k, pattern in _CONTAINERS if pattern.search(group.text)), None)
    if kind is not None:
        shown = f"{kind[1].path}: {kind[1].text}"
        out.value(facts[0], True, kind[1], shown)
        out.value(facts[1], kind[0], kind[1], shown)
        return
    mounts = out.snapshot.get("/proc/self/mountinfo")
    if isinstance(group, Gap) or isinstance(mounts, Gap):
        out.gap(facts, group if isinstance(group, Gap) else _of_folder(mounts), "/proc/self/cgroup")
    elif re.search(r"(?m)^\S+ \S+ \S+ \S+ / [^\n]* - overlay ", mounts.text):
        why = "the root is an overlay, as in containers and on nodes without a disk: nothing else tells which it is"
        out.gap(facts, Gap(Status.UNSUPPORTED, why), "/proc/self/mountinfo")
    else:
        out.value(facts[0], False, group, "no mark of a container, and the root is no overlay")
        out.gap(facts[1:], Gap(Status.NOT_APPLICABLE, "not in a container"), "/proc/self/cgroup")


# --- GPUs ---------------------------------------------------------------------------------


def _gpus(out: Out) -> None:
    """NUMA node and nearby CPUs of each GPU; nothing is said where there is none."""
    base = "/sys/bus/pci/devices"
    seen = out.snapshot.get(base)
    if isinstance(seen, Gap):
        out.gap(("gpu.numa", "gpu.cpu_affinity"), seen, base)
        return
    nodes = out.snapshot.get("/sys/devices/system/node/node*/cpulist")
    single = isinstance(nodes, Reading) and len(nodes.each) + len(nodes.failed) == 1
    entries = seen.plain.get("each")
    for name, entry in sorted(entries.items() if isinstance(entries, dict) else ()):
        address = normalise_pci(name)
        if not isinstance(entry, dict) or not is_pci(address) or not _is_gpu(entry):
            continue
        subject = Subject(Scope.GPU, address, out.node)
        number, path = entry.get("numa_node"), f"{base}/{name}/numa_node"
        here = Reading(path, at=seen.at)
        if isinstance(number, str) and (count := whole(number)) is not None:
            out.value("gpu.numa", count, here, f"numa_node: {number}", subject=subject)
        elif number == "-1":
            only = Gap(Status.NOT_APPLICABLE, "the machine has one NUMA node")
            gap = (
                only
                if single
                else Gap(Status.UNSUPPORTED, "the firmware does not tell the NUMA node (numa_node is -1)")
            )
            out.gap(("gpu.numa",), gap, path, subject=subject, shown=f"numa_node: {number}")
        else:
            out.gap(("gpu.numa",), Gap(Status.FAILED, f"{path} is no number"), path, subject=subject)
        cpus, path = entry.get("local_cpulist"), f"{base}/{name}/local_cpulist"
        if isinstance(cpus, str) and listed(cpus):
            out.value("gpu.cpu_affinity", cpus, Reading(path, at=seen.at), f"local_cpulist: {cpus}", subject=subject)
        else:
            out.gap(("gpu.cpu_affinity",), Gap(Status.FAILED, f"{path} is no list of CPUs"), path, subject=subject)


def _is_gpu(entry: dict[str, object]) -> bool:
    kind, vendor = str(entry.get("class", "")), str(entry.get("vendor", ""))
    if vendor not in _MAKERS:
        return False
    return vendor == "0x10de" if kind.startswith("0x0300") else kind.startswith(("0x0302", "0x0380", "0x1200"))
