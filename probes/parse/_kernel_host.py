"""The host in the kernel log: memory and CPU errors, crashes, stalls, storage, power."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace

from knowledge.observation import Event, Scalar, Scope, Subject
from knowledge.record import dataclass
from probes.parse._kernel_common import Reading, body, from_kernel, number, rx, says, within
from probes.parse._kernel_shape import Entry, Kind
from probes.parse._logtime import SECOND

BURSTS = {"kernel_oops": 10 * SECOND}  # `LogFormat.bursts`
Fields = dict[str, Scalar]

# mce: [Hardware Error]: CPU 17: Machine Check: 0 Bank 7: 8c00004000010091
# mce: [Hardware Error]: CPU 2: Machine Check Exception: 5 Bank 5: be00000000800400
_MCE = r"\[Hardware Error\]: CPU:? ?(\d{1,5})(?:[: ].{0,40}?)(Machine Check(?: Exception)?): ?\w{1,4} Bank (\d{1,4}): ?([0-9a-fA-F]{4,16})"
_UNCORRECTED = 61  # the bit UC of MCi_STATUS, Intel SDM volume 3B, 16.3.2.2
_MCE_EVENTS = r"mce: CPU ?(\d{1,5})?.{0,40}(?:Machine check|machine check)|mce: \[Hardware Error\]: Machine check (?:events logged|error)"
# mce: Uncorrected hardware memory error in user-access at 3fff8040
# Memory failure: 0x3fff8: Killing python3:3311 due to hardware memory corruption
# MCE: Killing python3:3311 due to hardware memory corruption fault at 7f1c2e400000
# Memory failure: 0x3fff8: recovery action for dirty LRU page: Recovered
_POISON = (
    r"mce: Uncorrected hardware memory error in \S{1,30} at \w{1,18}|MCE: Killing .{1,64}:\d{1,10} due to hardware memory corruption|"
    r"Memory failure: (0x[0-9a-fA-F]{1,16}): (?:Killing .{1,64}:\d{1,10} due to|recovery action for|.{0,60}hardware memory corruption)"
)
# Uhhuh. NMI received for unknown reason 3d on CPU 0.        NMI: PCI system error (SERR) for reason b1 on CPU 0.
# NMI: IOCK error (debug interrupt?) for reason 61 on CPU 12.
_NMI = r"(?:NMI received for (unknown) reason|NMI: (PCI system error \(SERR\)|IOCK error).{0,40} for reason) ([0-9a-f]{2}) on CPU (\d{1,5})"
# {1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 1
# {1}[Hardware Error]: event severity: corrected            {1}[Hardware Error]:   section_type: memory error
# BERT: Error records from previous boot:      [Hardware Error]: event severity: fatal      the same without a number, after a boot
# [Hardware Error]:   fru_text: CPU1_DIMM_C2   [Hardware Error]:   error_type: 3, multi-bit ECC
_APEI = r"(?:\{(\d{1,9})\})?\[Hardware Error\]: +(event severity|section_type|device_id|fru_text|error_type|DIMM location|physical_address|vendor_id|class_code|aer_uncor_status): ([\w:.,() /-]{1,80})"
_APEI_OPEN = r"\{(\d{1,9})\}\[Hardware Error\]: Hardware error from APEI|BERT: Error records from previous boot"
# Kernel panic - not syncing: Fatal exception
_PANIC = r"Kernel panic - not syncing: ?(.{0,200})"
# sysrq: SysRq : Trigger a crash       sysrq: Trigger a crash
_SYSRQ = r"sysrq: (?:SysRq ?: ?)?Trigger a crash"
# BUG: unable to handle kernel NULL pointer dereference at ...      BUG: kernel NULL pointer dereference, address: ...
# Oops: 0002 [#1] SMP           general protection fault, probably for non-canonical address ...      kernel BUG at x.c:1
_OOPS = (
    r"BUG: unable to handle (?:kernel |page )?.{0,100}|BUG: kernel NULL pointer.{0,100}|kernel BUG at \S{1,200}|"
    r"Oops: [0-9a-fA-F]{4}.{0,60}|general protection fault,? ?.{0,100}|Internal error: Oops.{0,60}"
)
_IN_SYSRQ = r"sysrq_handle_crash|sysrq_trigger"
_COMM = r"CPU: \d{1,5} (?:UID: \d{1,10} )?PID: (\d{1,10}) Comm: (.{1,64}?) (?:Tainted|Not tainted|Kdump)"
# watchdog: BUG: soft lockup - CPU#12 stuck for 23s! [python3:4242]      NMI watchdog: Watchdog detected hard LOCKUP on cpu 3
_SOFT = r"BUG: soft lockup - CPU#(\d{1,5}) stuck for (\d{1,9})s! \[(.{1,64}):(\d{1,10})\]"
_HARD = r"(?i)(?:Watchdog detected hard LOCKUP|BUG: hard lockup) on cpu ?#?(\d{1,5})"
# rcu: INFO: rcu_sched self-detected stall on CPU       rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:
_RCU = r"INFO: rcu_\w{1,20} (?:self-)?detected (?:expedited )?stalls? on CPU"
# INFO: task python3:4242 blocked for more than 120 seconds.
_HUNG = r"INFO: task (.{1,64}):(\d{1,10}) blocked for more than (\d{1,9}) seconds"
# nfs: server filer-1 not responding, still trying       nfs: server filer-1 OK        ... not responding, timed out
_NFS = r"nfs: server (\S{1,255}) (not responding(?:, (?:still trying|timed out))?|OK)\b"
# Lustre: scratch-OST0004-osc-ffff: Connection to scratch-OST0004 (at 10.0.0.4@o2ib) was lost; in progress ...
# LustreError: 167-0: scratch-MDT0000-mdc-ffff9f: This client was evicted by scratch-MDT0000; in progress operations using ...
# LustreError: 11-0: scratch-OST0004-osc-ffff9f: operation ost_statfs to node 10.0.0.4@o2ib failed: rc = -107
_EVICTED = (
    r"LustreError: .{0,160}?(?:This client was (evicted) by ([\w.-]{1,120})|"
    r"([\w.-]{1,100}?)(?:-(?:osc|mdc|mgc)\S{0,40})?: operation \w{1,40} to node \S{1,80} failed: rc = -(?:107|108|110|113)\b)"
)
# CIFS: VFS: \\\\filer-2 has not responded in 180 seconds. Reconnecting...      ceph: mds0 hung      libceph: osd3 (1)10.0.0.7:6801 socket closed
_OTHER_SERVER = r"(CIFS): (?:VFS: )?\\{0,4}(\S{1,120}) has not responded in \d{1,6} seconds|(?:lib)?(ceph): (?:\[\S{1,60}\]: )?((?:mds|mon|osd)\d{1,6}) .{0,80}?(?:hung|session lost|socket error|connect error|went away)"
_LUSTRE = r"Lustre(?:Error)?: .{0,120}?Connection (to|restored to) (?:service )?([\w.-]{1,120})(?: \(at \S{1,100}\))?( was lost)?"
# beegfs: python3(40112): NodeConn (acquire stream): Connect failed on all available routes: beegfs-storage stor03 [ID: 3]
# beegfs: messaging(2231): Receive timed out from beegfs-storage stor03 [ID: 3] @ 10.0.0.3:8003
# ... Unable to connect to: beegfs-meta meta01 [ID: 1].        ... Communication error: Receive timed out from: ...; Peer: beegfs-storage stor03
_BEEGFS = (
    r"beegfs: .{0,160}?(?:Connect failed|Unable to connect|Communication error|Receive timed out|Retrying communication|Disconnect\w{0,3}:).{0,120}?"
    r"\b(beegfs-(?:storage|meta|mgmtd) [\w.-]{1,120})"
)
# blk_update_request: I/O error, dev nvme0n1, sector 1953    I/O error, dev sda, sector 2048 op 0x0:(READ)
# blk_update_request: critical medium error, dev sda, sector 1221312 op 0x0:(READ)
_IO = r"(?:I/O|critical medium|critical target|critical nexus|protection|timeout|recoverable transport) error, dev ([\w!-]{1,40}), sector (\d{1,20})(?: op \w{1,6}:\((\w{1,20})\))?"
# nvme nvme0: I/O 523 QID 4 timeout, aborting       nvme nvme0: controller is down; will reset: CSTS=0xffffffff
_NVME = r"nvme (nvme\d{1,4}): (?:I/O .{0,40}timeout|controller is down|Device not ready|Removing after probe failure|Disabling device after reset failure|Abort status).{0,120}"
# md/raid1:md0: Disk failure on nvme0n1p2, disabling device.
# md/raid0:md0: Disk failure on nvme0n1p2 detected, failing array.       One with redundancy goes on (`_kernel_units`).
_RAID = r"md/raid0:\w{1,20}: Disk failure on ([\w-]{1,40})"
# sd 0:0:0:0: [sda] tag#12 FAILED Result: hostbyte=DID_BAD_TARGET driverbyte=DRIVER_OK cmd_age=0s
_SCSI = r"\[(sd[a-z]{1,3})\] tag#\d{1,6} FAILED Result: hostbyte=DID_(BAD_TARGET|NO_CONNECT|TIME_OUT|TRANSPORT_DISRUPTED|ERROR)\b"
# XFS (nvme0n1): metadata I/O error in "xfs_read_agf" at daddr 0x1 len 1 error 5      XFS (dm-3): log I/O error -5
_XFS_IO = r"XFS \(([\w-]{1,40})\): (?:metadata|log) I/O error"
# python3: page allocation failure: order:9, mode:0x40dc0(GFP_KERNEL|__GFP_COMP|__GFP_ZERO), nodemask=(null)
_PAGES = r"(.{1,64}?): page allocation failure[:.] order:(\d{1,2}), mode:0x[0-9a-fA-F]{1,8}(?:\(([\w|]{1,200})\))?"
# nf_conntrack: nf_conntrack: table full, dropping packet          neighbour: arp_cache: neighbor table overflow!
_TABLE = r"nf_conntrack: .{0,40}table full|(neighbo).{0,40}table overflow"
# EXT4-fs error (device sda1): ...      EXT4-fs (sda1): Remounting filesystem read-only      Aborting journal on device md0-8.
# XFS (dm-3): Metadata CRC error detected at ...      XFS (dm-3): Unmount and run xfs_repair      XFS (dm-3): Corruption of in-memory data
# XFS (dm-3): metadata I/O error in "xfs_read_agf+0x9c" at daddr 0x1 len 1 error 74: EFSBADCRC (117: EFSCORRUPTED), no error of the drive
# BTRFS error (device nvme1n1: state EA): ...      BTRFS critical (device sdb): corrupt leaf: ...
_DAMAGE = (
    r"EXT4-fs error \(device ([\w-]{1,40})\)|EXT4-fs \(([\w-]{1,40})\): Remounting filesystem read-only|"
    r"Aborting journal on device ([\w-]{1,36})-\d{1,4}\b|XFS \(([\w-]{1,40})\): (?:Metadata (?:CRC error|corruption) detected|Corruption|"
    r"Internal error|Unmount and run xfs_repair|metadata I/O error .{0,200}\berror (?:74|117)\b)|"
    r"BTRFS (?:error|critical) \(device ([\w-]{1,40})[):]"
)
# python3[4242]: segfault at 0 ip 00007f3a sp 00007ffd error 4 in libcuda.so.535.104.05[7f3a+1000]
_SEGFAULT = r"(.{1,64}?)\[(\d{1,10})\]: segfault at [0-9a-fA-F]{1,16} ip \S{1,20} sp \S{1,20} error \d{1,9}(?: in (\S{1,120}?)\[)?"
_TRAP = r"traps: (.{1,64}?)\[(\d{1,10})\] (?:general protection|trap \w{1,30}).{0,80}?(?: in (\S{1,120}?)\[)?$"
# CPU17: Package temperature above threshold, cpu clock throttled (total events = 123)
_THROTTLE = r"CPU(\d{1,5}): (Core|Package) temperature(?: is)? above threshold, cpu clock (?:is )?throttled(?: \(total events = (\d{1,12})\))?"
# thermal thermal_zone0: critical temperature reached (105 C), shutting down
_CRITICAL = r"critical temperature reached"
# ACPI: ... / ipmievd: Power Supply sensor ... Failure detected asserted / systemd-logind: Power key pressed
_POWER = (
    r"[Pp]ower [Ss]upply.{0,60}(?:[Ff]ail|[Ll]ost|[Aa]sserted)|[Pp]ower (?:key|button) pressed|[Pp]ower [Uu]nit.{0,60}(?:[Ff]ail|[Ll]ost|[Pp]ower off)|"
    r"AC lost|IPMI Watchdog.{0,60}(?:timeout|expired)|[Ww]atchdog2.{0,60}(?:[Pp]ower cycle|[Hh]ard reset|[Tt]imer expired)"
)
_POWER_TAGS = ("ipmievd", "ipmiseld", "ipmi-sel", "systemd-logind", "apcupsd", "acpid", "bmc")


@dataclass(frozen=True, slots=True)
class _Rule:
    """Words that must occur, the pattern, the event and its fields."""

    fact: str
    hint: str
    pattern: str
    fields: Callable[[re.Match[str]], Fields]


def _nothing(_: re.Match[str]) -> Fields:
    return {}


def _pages(found: re.Match[str]) -> Fields:
    """Pages are of 4 KiB. Whoever may not wait for a single one tries again: the network's receive path does it under load."""
    passing = found[2] == "0" and "GFP_ATOMIC" in (found[3] or "")
    size = 4 << min(int(found[2]), 20)
    return {
        "process": found[1].strip(),
        "order": int(found[2]),
        "size_kib": size,
        "severity": "info" if passing else "warning",
    }


_RULES = (
    _Rule("machine_check", "Machine Check", _MCE,
          lambda m: {"cpu": int(m[1]), "bank": int(m[3]), "status": m[4].lower(),
                     "severity": "uncorrected" if "Exception" in m[2] or int(m[4], 16) >> _UNCORRECTED & 1 else "corrected"}),
    _Rule("machine_check", "achine check", _MCE_EVENTS, lambda m: {"cpu": number(m[1]), "severity": "untold"}),
    _Rule("network_table_full", "table ", _TABLE, lambda m: {"table": "neighbours" if m[1] else "connections"}),
    _Rule("page_allocation_failure", "page allocation", _PAGES, _pages),
    _Rule("host_memory_error", "emory ", _POISON,
          lambda m: {"severity": "uncorrected", "page": _page(m[1]) if m[1] else None, "count": 1}),
    _Rule("nmi", "NMI", _NMI, lambda m: {"kind": "unknown" if m[1] else "serr" if "SERR" in m[2] else "iochk",
                                         "reason": m[3], "cpu": int(m[4])}),
    _Rule("kernel_panic", "Kernel panic", _PANIC, lambda m: {"reason": body(m[1], 200)}),
    _Rule("sysrq_crash", "sysrq", _SYSRQ, _nothing),
    _Rule("soft_lockup", "soft lockup", _SOFT,
          lambda m: {"kind": "soft", "cpu": int(m[1]), "seconds": int(m[2]), "process": m[3], "pid": int(m[4])}),
    _Rule("soft_lockup", "hard ", _HARD, lambda m: {"kind": "hard", "cpu": int(m[1])}),
    _Rule("soft_lockup", "rcu_", _RCU, lambda _: {"kind": "rcu"}),
    _Rule("hung_task", "blocked for more", _HUNG,
          lambda m: {"process": m[1], "pid": int(m[2]), "seconds": int(m[3])}),
    _Rule("filesystem_stall", "nfs: server", _NFS,
          lambda m: {"filesystem": "nfs", "server": m[1], "state": "restored" if m[2] == "OK" else "lost"}),
    _Rule("filesystem_stall", "LustreError", _EVICTED,
          lambda m: {"filesystem": "lustre", "server": m[2] or m[3], "state": "evicted" if m[1] else "lost",
                     "client": "evicted" if m[1] else None}),
    _Rule("filesystem_stall", "CIFS", _OTHER_SERVER, lambda m: {"filesystem": "cifs", "server": m[2], "state": "lost"}),
    _Rule("filesystem_stall", "ceph", _OTHER_SERVER, lambda m: {"filesystem": "ceph", "server": m[4], "state": "lost"}),
    _Rule("filesystem_stall", "beegfs", _BEEGFS, lambda m: {"filesystem": "beegfs", "server": m[1], "state": "lost"}),
    _Rule("filesystem_stall", "Lustre", _LUSTRE,
          lambda m: {"filesystem": "lustre", "server": m[2], "state": "restored" if "restored" in m[1] else "lost"}),
    _Rule("io_error", " error, dev ", _IO, lambda m: {"device": m[1], "sector": int(m[2]), "operation": m[3]}),
    _Rule("io_error", "nvme nvme", _NVME, lambda m: {"device": m[1], "gone": "timeout" not in m[0]}),
    _Rule("io_error", "hostbyte=", _SCSI, lambda m: {"device": m[1], "gone": m[2] in ("BAD_TARGET", "NO_CONNECT")}),
    *(_Rule("filesystem_damaged", hint, _DAMAGE, lambda m: {"device": next(filter(None, m.groups()), None)})
      for hint in ("EXT4-fs", "Aborting journal", "XFS (", "BTRFS ")),
    _Rule("io_error", "XFS (", _XFS_IO, lambda m: {"device": m[1]}),
    _Rule("io_error", "Disk failure on", _RAID, lambda m: {"device": m[1]}),
    _Rule("process_fault", "segfault at", _SEGFAULT,
          lambda m: {"process": m[1].strip(), "pid": int(m[2]), "library": m[3], "kind": "segfault"}),
    _Rule("process_fault", "traps: ", _TRAP,
          lambda m: {"process": m[1].strip(), "pid": int(m[2]), "library": m[3], "kind": "trap"}),
    _Rule("cpu_throttled", "above threshold", _THROTTLE,
          lambda m: {"cpu": int(m[1]), "level": m[2].lower(), "count": number(m[3])}),
    _Rule("power_event", "critical temperature", _CRITICAL, lambda _: {"source": "thermal"}),
)  # fmt: skip


def read(reading: Reading) -> None:
    """All recognisers of this module."""
    for entry in reading.entries:
        for rule in _RULES:
            if rule.hint not in entry.message:
                continue
            found = rx(rule.pattern).search(entry.message)
            if found and says(entry, found.start()):
                _one(reading, entry, rule, found)
                break
    _frames(reading)
    _returns(reading)
    _summaries(reading)
    _apei(reading)
    _modules(reading)
    _crashes(reading)
    _power(reading)


#  os_acquire_rwlock_write+0x3c/0x60 [nvidia]
_FRAME = r"^\s*(?:\? )?[\w.]{1,100}\+0x[0-9a-f]{1,8}/0x[0-9a-f]{1,8} \[(\w{1,60})\b"
_STACK = 40  # lines that the kernel prints of one process


def _frames(reading: Reading) -> None:
    """Name the module in which a hung process waits: that of the first frame below it that stands in any."""
    hung = {o.source.line: i for i, o in enumerate(reading.found) if o.fact == "hung_task"}
    place: int | None = None
    begun = 0
    for entry in reading.entries:
        if entry.number in hung:
            place, begun = hung[entry.number], entry.number
        elif place is not None and entry.number - begun <= _STACK and (found := rx(_FRAME).search(entry.message)):
            o = reading.found[place]
            if isinstance(o.value, Event):
                reading.found[place] = replace(o, value=Event(None, {**o.value.fields, "module": found[1]}))
            place = None


# ms without an answer, from which on the kernel calls the tasks that wait hung (hung_task_timeout_secs, docs.kernel.org/admin-guide/sysctl/kernel.html)
HANGS = 120_000


def _returns(reading: Reading) -> None:
    """Say of a file server that was lost after how long it answered again: a short while is no more than information."""
    for place, o in enumerate(reading.found):
        if o.fact == "filesystem_stall" and isinstance(o.value, Event) and o.value.get("state") != "restored":
            reading.found[place] = replace(o, value=Event(None, {**o.value.fields, "severity": "warning"}))
    lost: dict[tuple[object, ...], list[int]] = {}
    for place, o in enumerate(reading.found):
        if o.fact != "filesystem_stall" or not isinstance(o.value, Event):
            continue
        key = (o.subject, o.value.get("filesystem"), o.value.get("server"))
        if o.value.get("state") != "restored":
            lost.setdefault(key, []).append(place)
            continue
        for earlier in lost.pop(key, []):
            before = reading.found[earlier]
            if (
                isinstance(before.value, Event)
                and before.at is not None
                and o.at is not None
                and o.clock is before.clock
            ):
                gone = max(0, o.at - before.at) // 10**6
                away: dict[str, Scalar] = {"away_ms": gone} if gone else {}
                if (
                    before.value.get("state") == "lost" and gone < HANGS
                ):  # a client that was evicted has lost data, back or not
                    away["severity"] = "info"
                reading.found[earlier] = replace(before, value=Event(None, {**before.value.fields, **away}))


def _summaries(reading: Reading) -> None:
    """Drop "events logged" where the machine checks themselves, or the memory errors that they were, stand in the log."""
    checks = [o for o in reading.found if o.fact == "machine_check" and isinstance(o.value, Event)]
    memory = [o for o in reading.found if o.fact == "host_memory_error" and isinstance(o.value, Event)]
    banks = [o for o in checks if isinstance(o.value, Event) and "bank" in o.value.fields]
    lines = sorted(o.source.line or 0 for o in (*banks, *memory))
    echoes = {
        id(o)
        for o in checks
        if isinstance(o.value, Event) and o.value.get("severity") == "untold" and _near(lines, o.source.line or 0, 30)
    }
    reading.found = [o for o in reading.found if id(o) not in echoes]


def _one(reading: Reading, entry: Entry, rule: _Rule, found: re.Match[str]) -> None:
    fields = rule.fields(found)
    if rule.fact == "filesystem_stall" and rule.pattern is _LUSTRE and not (found[3] or "restored" in found[1]):
        return  # connection lines that tell neither loss nor return
    if rule.fact == "process_fault":
        subject = Subject(Scope.PROCESS, str(fields["pid"]), reading.node(entry))
    else:
        subject = reading.node(entry)
    if rule.fact == "io_error":
        fields.setdefault("gone", False)
    fields["text"] = body(entry.message)
    reading.event(rule.fact, subject, entry, fields)


def _near(lines: Sequence[int], line: int, span: int) -> bool:
    place = bisect_left(lines, line - span)
    return place < len(lines) and lines[place] <= line + span


_APEI_NAMES = {"event severity": "severity", "section_type": "section", "device_id": "device", "fru_text": "part",
               "error_type": "error", "DIMM location": "part", "physical_address": "page"}  # fmt: skip


def _apei(reading: Reading) -> None:
    """Records of the firmware, ``{n}[Hardware Error]`` or after ``BERT:``: one event each, PCIe sections with their device."""
    records: list[tuple[Entry, Fields]] = []
    latest: dict[tuple[str, str], Fields] = {}  # (host, number) of the record that a line belongs to
    for entry in reading.entries:
        if ("[Hardware Error]" not in entry.message and "BERT: " not in entry.message) or not from_kernel(entry):
            continue
        opens, found = rx(_APEI_OPEN).search(entry.message), rx(_APEI).search(entry.message)
        told = opens or found
        if not told:
            continue
        key = (reading.host(entry), told[1] or "")
        if opens or key not in latest:
            latest[key] = {"text": body(entry.message)}
            records.append((entry, latest[key]))
        if found:
            name = _APEI_NAMES.get(found[2], found[2])
            said = found[3].strip() if name != "page" else _page(found[3], 12)
            latest[key].setdefault(
                name, said.partition(", ")[2] or said if name == "error" else said
            )  # 3, multi-bit ECC
    for entry, fields in records:
        if not fields.keys() & {"severity", "section"}:
            continue  # a heading alone
        device, vendor, kind = (str(fields.pop(name, "")) for name in ("device", "vendor_id", "class_code"))
        if bits := _uncorrected(str(fields.pop("aer_uncor_status", ""))):
            fields.setdefault("error", bits)
        if device:
            fields["device"] = device
        subject = reading.device(entry, device) if device else reading.node(entry)
        # Kernels print the three bytes of the class in either order; 03 is a display controller, as GPUs without a display are, too.
        if device and vendor.startswith("0x10de") and (kind.startswith("03") or kind.endswith("03")):
            subject = reading.gpu(entry, device)
        reading.event("hardware_error", subject, entry, fields)


# Bits of the uncorrectable error status (PCI Express Base Specification, 7.8.4.2; the kernel's names in aer.c)
_UNCORRECTED_BITS = {
    4: "Data Link Protocol", 5: "Surprise Down", 12: "Poisoned TLP", 13: "Flow Control Protocol", 14: "Completion Timeout", 15: "Completer Abort",
    16: "Unexpected Completion", 17: "Receiver Overflow", 18: "Malformed TLP", 19: "ECRC", 20: "Unsupported Request", 21: "ACS Violation",
    22: "Uncorrectable Internal",
}  # fmt: skip


def _uncorrected(status: str) -> str:
    """``Surprise Down`` of ``0x00000020, aer_uncor_mask: 0x00000000``."""
    try:
        bits = int(status.partition(",")[0], 16)
    except ValueError:
        return ""
    return ", ".join(name for bit, name in _UNCORRECTED_BITS.items() if bits >> bit & 1)


# The page that EDAC names beside the module: ... on CPU_SrcID#1_MC#1_Chan#0_DIMM#0 (channel:0 slot:0 page:0x3a5c2b offset:0xa40 ...
_EDAC_PAGE = r"\bpage:(0x[0-9a-fA-F]{1,16})\b"


def _page(address: str, shift: int = 0) -> str:
    """A number of a page as the kernel prints it; of a physical address its page."""
    try:
        return f"{int(address, 16) >> shift:#x}"
    except ValueError:
        return ""


def _modules(reading: Reading) -> None:
    """The kernel stops who uses a bad page and names the page: the module is what EDAC or the firmware says of that page."""
    modules: dict[tuple[Subject, str], Scalar] = {}
    bare: list[int] = []
    for i, o in enumerate(reading.found):
        if o.fact == "host_memory_error" and isinstance(o.value, Event):
            if o.value.get("page"):
                bare.append(i)
            elif told := rx(_EDAC_PAGE).search(str(o.value.get("text"))):
                modules[o.subject, _page(told[1])] = o.value.get("location")
        elif o.fact == "hardware_error" and isinstance(o.value, Event) and o.value.get("page"):
            modules[o.subject, str(o.value.get("page"))] = o.value.get("part")
    for i in bare:
        o = reading.found[i]
        assert isinstance(o.value, Event)
        if module := modules.get((o.subject, str(o.value.get("page")))):
            fields = {name: said for name, said in o.value.fields.items() if name != "page"}
            reading.found[i] = replace(o, value=Event(None, {**fields, "location": module}))


def _crashes(reading: Reading) -> None:
    """Oopses: the lines of one crash are one event, and others that follow within ten seconds; a crash that SysRq asked for is
    deliberate.
    """
    open_: tuple[Entry, Fields] | None = None
    asked: Entry | None = None
    found_: list[tuple[Entry, Fields]] = []
    for entry in reading.entries:
        message = entry.message
        if "sysrq" in message and rx(_SYSRQ).search(message):
            asked = entry
        if open_ and within(open_[0], entry, 10 * SECOND) and entry.number - open_[0].number <= 80:
            if rx(_IN_SYSRQ).search(message):
                open_[1]["deliberate"] = True
            if (comm := rx(_COMM).search(message)) and "process" not in open_[1]:
                open_[1].update({"process": comm[2], "pid": int(comm[1])})
        else:
            open_ = None
        found = rx(_OOPS).search(message) if _may_crash(message) else None
        if found is None or not says(entry, found.start()):
            continue
        if open_ is not None:
            open_ = (entry, open_[1])
        else:
            deliberate = asked is not None and within(asked, entry, 10 * SECOND)
            open_ = (entry, {"what": body(found[0], 200), "deliberate": deliberate})
            found_.append(open_)
    for entry, fields in found_:
        reading.event("kernel_oops", reading.node(entry), entry, {**fields, "text": body(entry.message)})


def _may_crash(message: str) -> bool:
    return "BUG" in message or "Oops" in message or "general protection" in message


def _power(reading: Reading) -> None:
    """Power supplies, power buttons and management controllers, as their daemons log them."""
    for entry in reading.entries:
        if entry.kind is Kind.DAEMON and entry.tag.lower().startswith(_POWER_TAGS):
            source = entry.tag
        elif entry.kind is Kind.KERNEL and entry.message.startswith(("ACPI:", "ipmi", "IPMI")):
            source = "kernel"
        else:
            continue
        if rx(_POWER).search(entry.message):
            reading.event("power_event", reading.node(entry), entry, {"source": source, "text": body(entry.message)})
