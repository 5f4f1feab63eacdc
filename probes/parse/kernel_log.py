"""Kernel logs, system logs and journals: what the kernel, NVIDIA's driver and its daemons reported.

The scanner hands over the lines that match a trigger, the lines around them, and the first
and last lines of the file, which tell the window of time that the log covers. Each event is
one observation; a NONE_SEEN observation for each kind of event says that, apart from those
listed, none occurred in that window. A text without a line of the kernel covers nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any

import re2

from knowledge.observation import Clock, Observation, Status, node
from probes.base import Context, Line, LogFormat, lines_of
from probes.parse import (
    _kernel_agents,
    _kernel_amd,
    _kernel_ascend,
    _kernel_boots,
    _kernel_device,
    _kernel_fabric,
    _kernel_gpu,
    _kernel_host,
    _kernel_intel,
    _kernel_memory,
    _kernel_net,
    _kernel_oom,
    _kernel_pcie,
    _kernel_reset,
    _kernel_slurm,
    _kernel_units,
    _kernel_unread,
    _kernel_xid,
)
from probes.parse._kernel_boots import straighten
from probes.parse._kernel_common import Reading, rx
from probes.parse._kernel_shape import Entry, Kind, entries_of, is_record_file
from probes.parse._logtime import SECOND, Point, descending, settle

NAME = "kernel-log"
REVISION = 12
SAMPLE = 64  # first and last lines that are always read

KERNEL_EVENTS = (
    "aer", "boot", "cpu_throttled", "driver_library_mismatch", "driver_load_failed", "driver_loaded", "gpu_device_busy_removed",
    "gpu_init_failed", "gpu_lost", "gpu_power_state_stuck", "gpu_reset_demanded", "gsp_crash", "gsp_heartbeat_timeout", "gsp_rpc_timeout",
    "hardware_error", "host_memory_error", "hung_task", "filesystem_damaged", "filesystem_stall", "io_error", "kernel_oops", "kernel_panic",
    "link_carrier", "machine_check", "network_table_full", "nic_error", "nvidia_assertion", "nvlink_driver_message", "nvswitch_lost", "oom_kill", "page_allocation_failure",
    "pci_power_state_stuck", "pcie_bandwidth_limited", "pcie_containment", "pcie_link_down", "peermem_invalid_context",
    "nmi", "pmu_halted", "process_fault", "soft_lockup", "sxid", "sysrq_crash", "uvm_fatal_error", "xid",
    *_kernel_device.EVENTS,
)  # fmt: skip
DAEMON_EVENTS = (
    "fm_error", "fm_failed", "fm_gave_up", "fm_nothing_to_do", "fm_version_mismatch", "hostengine_failed", "imex_connection_lost", "imex_error",
    "link_carrier", "modprobe_failed", "nvidia_service_failed", "nvlink_training_failed", "persistenced_failed", *_kernel_agents.EVENTS, *_kernel_slurm.EVENTS,
)  # fmt: skip
VENDORS = (_kernel_amd, _kernel_intel, _kernel_ascend)  # drivers of other vendors' GPUs
VENDOR_EVENTS = tuple(event for module in VENDORS for event in module.EVENTS)  # covered where the driver speaks at all
UNCOVERED = (
    *_kernel_agents.UNCOVERED,
    "gpu_reset_attempt",
    "power_event",
    "device_plugin_unhealthy",
    "xid_reported",
)  # told by daemons that few nodes run: not seeing one says nothing
PROVIDES = (
    *_kernel_slurm.STATES,
    *_kernel_units.STATES,
    *sorted({*KERNEL_EVENTS, *DAEMON_EVENTS, *UNCOVERED, *VENDOR_EVENTS}),
    "gpu.serial", "gpu.uuid", _kernel_unread.FACT, "log.kernel.readable", "log.kernel.truncated_head", "node.driver.version",
    "node.fabricmanager.version",
)  # fmt: skip

TRIGGERS = (
    # NVIDIA's driver
    r"NVRM: ", r"NV_ERR_RESET_REQUIRED", r"Xid \(", r"(?i:xid ?\()", r"XidCriticalError", r"device marked unhealthy", r"off (?:the )?bus", r"GPU [Ii]s [Ll]ost", r"device handle for", r"change power state",
    r"invalid context", r"nvidia[a-z_-]*: (?:probe of|Unknown sym|disagrees|version magic)",
    r"firmware load for nvidia", r"is rejected", r"unsigned module",
    # PCI Express and host hardware
    r": AER: ", r"PCIe Bus Error", r"callbacks suppressed", r"error status/mask", r"DPC: containment", r"\): (?:Link Down|Card not)",
    r"available PCIe bandwidth", r"\[Hardware Error\]", r"mce: ", r"EDAC ", r"above threshold", r"critical temperature",
    # memory, crashes, stalls, storage
    r"oom-kill", r"oom_reaper", r"Kill(?:ed)? process ", r"as a result of limit", r"Kernel panic", r"Trigger a crash",
    r"sysrq_", r"BUG: ", r"kernel BUG at", r"Oops: ", r"general protection", r" Comm: ", r"hard LOCKUP", r"hard lockup",
    r"detected .{0,10}stall", r"blocked for more than", r"nfs: server", r"Lustre", r" error, dev ", r"Disk failure on", r"md: \w{1,20}: recovery done", r"hostbyte=DID_", r"NETDEV WATCHDOG", r": transmit timeout: ", r"nvme nvme",
    r"EXT4-fs error", r"Remounting filesystem", r"Aborting journal", r"BTRFS (?:error|critical)", r"XFS \([A-Za-z0-9_-]*\): (?:[Mm]etadata|log|Corruption|Internal|Unmount)", r"segfault at", r"traps: ",
    # network
    r"(?:ost|ained) carrier", r"link (?:dis)?connected",
    r"[Ll]ink (?:is )?(?:[Uu]p|[Dd]own|UP|DOWN|ACTIVE|INIT)", r"active interface", r"mlx\d_core",
    # daemons
    r"fabricmanager", r"nvidia-imex", r"nvidia-persistenced", r'modprobe[\[":]', r"nv-hostengine", r"nvidia-[a-z-]*\.service: ",
    r'dcgm[a-z-]*(?:\.service|\[|")', r"Failed to start", r"[Pp]ower (?:[Ss]upply|key|button|[Uu]nit)", r"AC lost",
    r"IPMI Watchdog", r"table full, dropping", r"table overflow", r"[Ww]atchdog2",
    # boots; journal messages that are printed as a list of bytes
    r"Linux version ", r"-- (?:Boot|Reboot)", r"PM: suspend", r'"MESSAGE" ?: ?\[',
    # memory that failed, NMIs, bonds, servers, what the firmware kept
    r"Memory failure", r"hardware memory (?:error|corruption)", r"NMI", r"slave ", r"set_fatal_error", r"uvm encountered", r"CIFS: ", r"ceph: ", r"infiniband mlx\d_", r"BERT: Error",
    r"page allocation failure",
    *_kernel_agents.TRIGGERS,
    *_kernel_device.TRIGGERS,
    *_kernel_memory.TRIGGERS,
    *_kernel_reset.TRIGGERS,
    *_kernel_slurm.TRIGGERS,
    *_kernel_units.TRIGGERS,
    *(trigger for module in VENDORS for trigger in module.TRIGGERS),
)  # fmt: skip
# Plain words that stand in every line a trigger matches: a quick look before the full one.
_HINTS = (
    "NVRM", "Xid (", "xid", "XID", "XidCritical", "off the bus", "off bus", "handle for", "power state", "invalid context", "nvidia",
    "rejected", "unsigned", "AER", "aer_", "PCIe", "error status", "DPC", "Slot(", "Hardware Error", "mce: ", "EDAC",
    "threshold", "critical temp", "oom", "process ", "result of limit", "panic", "crash", "sysrq", "BUG", "Oops",
    "general prot", "Comm: ", "LOCKUP", "stall", "blocked for", "nfs:", "Lustre", " error, dev ", "I/O error", "Disk failure", "recovery done", "hostbyte=", "NETDEV", "transmit timeout", "nvme", "EXT4", "XFS", "BTRFS", "Aborting", "NV_ERR_RESET", "active interface",
    "segfault", "traps:", "arrier", "ink ", "connected", "mlx", "fabricmanager", "modprobe", "hostengine", "dcgm",
    "Failed to start", "ower ", "AC lost", "IPMI", "table full", "table overflow", "atchdog2", "Linux version", "-- ", "PM: suspend", "MESSAGE", "s lost", "s Lost",
    "Memory failure", "memory error", "memory corruption", "hard lockup", "NMI", "slave", "set_fatal_error", "uvm encountered", "CIFS: ", "ceph: ", "BERT: ",
    "page allocation",
    *_kernel_agents.HINTS,
    *_kernel_device.HINTS,
    *_kernel_memory.HINTS,
    *_kernel_reset.HINTS,
    *_kernel_slurm.HINTS,
    *_kernel_units.HINTS,
    *(hint for module in VENDORS for hint in module.HINTS),
)  # fmt: skip
_BARE_STARTS = ("NVRM: ", "nvidia-nvswitch", "nvidia 0000:", "pcieport 0000:", "amdgpu 0000:", "xe 0000:", "i915 0000:",
                "[ascend] [")  # fmt: skip
_PSTORE = r"(?:Panic|Oops|Emergency|Shutdown|Restart|Halt)#\d{1,6} Part\d{1,4}"
HOSTS = 512  # of a log of more nodes, those with events and the first ones are told of: fifty facts each
CROWD = f"the log is of more than {HOSTS} nodes: that of one node tells what did not occur on it"
NONE = "the log was read from end to end of this window; what is not listed did not occur in it"


def parse(lines: Sequence[Line], context: Context) -> list[Observation]:
    """Observations of one log, in line order, then what its window covers."""
    entries = entries_of(_selected(lines))
    _kernel_xid.respell(entries)
    backwards = _settle(entries)
    reading = Reading(entries, context, NAME, REVISION, backwards)
    for module in (
        _kernel_boots,
        _kernel_xid,
        _kernel_gpu,
        _kernel_reset,
        _kernel_pcie,
        _kernel_device,
        _kernel_oom,
        _kernel_memory,
        _kernel_host,
        _kernel_net,
        _kernel_fabric,
        _kernel_slurm,
        _kernel_units,
        _kernel_agents,
    ):
        module.read(reading)
    for vendor in VENDORS:
        vendor.read(reading)
    events = sorted(reading.found, key=lambda o: (o.source.line or 0, o.fact))
    return [*events, *_kernel_unread.read(reading, entries), *_coverage(reading, entries)]


def _selected(lines: Sequence[Line]) -> Sequence[Line]:
    """The lines worth taking apart: the ends of the file, those with a word of interest, and what wraps."""
    if len(lines) <= 4 * SAMPLE or is_record_file(lines):
        return lines
    keep: set[int] = set(range(SAMPLE)) | set(range(len(lines) - SAMPLE, len(lines)))
    hinted = _hinted()
    for index, line in enumerate(lines):
        if hinted.search(line.text.encode(errors="replace")):
            keep.add(index)
            if _kernel_xid.unfinished(line.text.rstrip()) and index + 1 < len(lines):
                keep.add(index + 1)
    return [lines[i] for i in sorted(keep)]


@cache
def _hinted() -> Any:
    """All words at once: two hundred looks into each line cost ten times as much."""
    return re2.compile("|".join(re2.escape(hint) for hint in _HINTS).encode())


def _settle(entries: list[Entry]) -> bool:
    """Give the entries their times; whether they stand backwards (pstore parts, ``journalctl -r``) on the boot clock."""
    points = [Point(e.number, e.stamp, e.boots) for e in entries]
    backwards = descending(points) or any("Part" in e.message and rx(_PSTORE).match(e.message) for e in entries)
    for entry, (at, clock) in zip(entries, settle(points, joined=not backwards), strict=True):
        entry.at, entry.clock = at, clock
    straighten(entries)
    return backwards


def _kernel_lines(reading: Reading, entries: Iterable[Entry]) -> list[Entry]:
    """The entries that are output of the kernel."""
    events = set(KERNEL_EVENTS) - {"xid", "sxid", "gpu_lost"}  # those are also quoted by other tools
    told = {o.source.line for o in reading.found if o.fact in events}
    return [
        e
        for e in entries
        if e.kind is Kind.KERNEL or (e.kind is Kind.BARE and (e.message.startswith(_BARE_STARTS) or e.number in told))
    ]


def _coverage(reading: Reading, entries: Sequence[Entry]) -> Iterator[Observation]:
    """Whether this is a kernel log at all; if so, what did not occur in which window, for each host."""
    kernel = _kernel_lines(reading, entries)
    daemons = [e for e in entries if e.kind is Kind.DAEMON and e.tag and e.stamp is not None]
    context = reading.context
    source = context.at(NAME, REVISION)
    if not kernel:
        seen = sum(1 for e in entries if e.message)
        detail = "no line of kernel output among those read" if seen else "the log is empty"
        yield Observation("log.kernel.readable", node(context.host), None, Status.FAILED, source, detail=detail)
    own, said, all_ = _by_host(reading, kernel), _by_host(reading, daemons), _by_host(reading, entries)
    hosts = dict.fromkeys(o.subject.host for o in reading.found) | dict.fromkeys(own) | dict.fromkeys(said)
    told = set(islice(hosts, HOSTS))
    for host in sorted(own):
        if host not in told:
            yield Observation("log.kernel.readable", node(host), None, Status.FAILED, source, detail=CROWD)
            continue
        yield Observation("log.kernel.readable", node(host), True, source=source)
        yield from _head(own[host], host, context)
        speaking = [event for module in VENDORS if any(map(module.named, own[host])) for event in module.EVENTS]
        yield from _none_seen((*KERNEL_EVENTS, *speaking), all_[host], host, context)
    for host in sorted(told & set(said)):
        facts = [f for f in DAEMON_EVENTS if host not in own or f not in KERNEL_EVENTS]
        yield from _none_seen(facts, all_[host], host, context)


def _by_host(reading: Reading, entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    out: dict[str, list[Entry]] = {}
    for entry in entries:
        out.setdefault(reading.host(entry), []).append(entry)
    return out


def _head(own: Sequence[Entry], host: str, context: Context) -> Iterator[Observation]:
    """Whether a log on the boot clock starts amid a boot: its ring buffer had wrapped around."""
    first = own[0]
    if first.number > SAMPLE or first.clock is not Clock.BOOT or first.at is None:
        return
    source = context.at(NAME, REVISION, first.number)
    yield Observation(
        "log.kernel.truncated_head", node(host), first.at > SECOND and not first.boots,
        source=source, at=first.at, clock=first.clock, excerpt=first.raw[:200],
    )  # fmt: skip


def _none_seen(facts: Iterable[str], own: Sequence[Entry], host: str, context: Context) -> Iterator[Observation]:
    clock, window = _window(own)
    for fact in sorted(facts):
        yield Observation(
            fact, node(host), None, Status.NONE_SEEN, context.at(NAME, REVISION),
            at=window[1] if window else None, clock=clock, window=window,
            detail=NONE if window else f"{NONE}; its lines carry no time",
        )  # fmt: skip


def _window(own: Iterable[Entry]) -> tuple[Clock, tuple[int, int] | None]:
    """First and last time on the clock that most lines carry."""
    timed = [(e.clock, e.at) for e in own if e.at is not None]
    if not timed:
        return Clock.NONE, None
    clock = Counter(c for c, _ in timed).most_common(1)[0][0]
    times = [at for c, at in timed if c is clock]
    return clock, (min(times), max(times))


# The shapes of Slurm's and Kubernetes' own logs are those of other programs too: what they speak of tells.
_SPEAKERS = {
    "slurm": r"(?i)slurm|\bgres\b|\bJobId=|\b(?:prolog|epilog)\b|drain_nodes|\bgpu_p_",
    "klog": r"(?i)nvidia\.com/|device.?plugin|kubelet",
}


def sniff(head: str) -> int:
    """How sure it is that `head` is a kernel or system log; 0 when nothing speaks for it."""
    entries = entries_of([line for line in lines_of(head)[:400] if line.text.strip()])
    if not entries:
        return 0
    kernel = sum(e.kind is Kind.KERNEL or (e.kind is Kind.BARE and e.message.startswith(_BARE_STARTS)) for e in entries)
    tags = Counter(e.tag for e in entries if e.kind is Kind.DAEMON and e.stamp is not None)
    daemons = sum(n for tag, n in tags.items() if tag not in _SPEAKERS or rx(_SPEAKERS[tag]).search(head))
    share = (kernel + daemons) / len(entries)
    if kernel:
        return round(30 + 60 * share) if share >= 0.1 else 20
    if daemons and share >= 0.5:
        return 40
    return (
        15
        if rx(r"NVRM: |(?i:\bxid ?\([^)]{2,32}\) ?[:;] ?\d)|XidCriticalError: Xid=\d|" + _kernel_reset.SAID).search(
            head
        )
        else 0
    )


FORMAT = LogFormat(
    name=NAME,
    title="kernel log, system log or journal",
    revision=REVISION,
    provides=PROVIDES,
    sniff=sniff,
    triggers=TRIGGERS,
    parse=parse,
    after=1,
    counts=(_kernel_unread.FACT,),
    stands=_kernel_agents.stands,
    bursts=dict(
        row for m in (_kernel_device, _kernel_fabric, _kernel_gpu, _kernel_host, *VENDORS) for row in m.BURSTS.items()
    ),
)
