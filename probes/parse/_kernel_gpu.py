"""What the NVIDIA driver says outside XID lines: lost GPUs, failed starts, GSP, power states."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from knowledge.catalog.nv_status import init_failure, status_in
from knowledge.language import Text
from knowledge.observation import Event, Observation, Scalar, Scope, Subject
from probes.parse._kernel_common import PCI, Reading, address_of, body, from_kernel, is_command, number, rx, within
from probes.parse._kernel_shape import Entry, Kind
from probes.parse._logtime import SECOND
from probes.parse._speakers import reports

_GSP = ("gsp_heartbeat_timeout", "gsp_rpc_timeout", "gsp_crash", "pmu_halted")
BURSTS = {"gpu_lost": 10 * SECOND, **dict.fromkeys(_GSP, 2 * SECOND)}  # `LogFormat.bursts`

# NVRM: GPU 0000:91:00.0: GPU has fallen off the bus.
# Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.  Reboot the system to recover this GPU
# slurmd: error: gpu_p_get_device_count: Failed to get device count: GPU is lost
_LOST = rf"(?:GPU ?(?:at )?(?:PCI:)?({PCI})?.{{0,80}}?)?(?:has fallen off the bus|GPU [Ii]s [Ll]ost|NV_ERR_GPU_IS_LOST)"
# NVRM: The NVIDIA GPU 0000:b3:00.0
# NVRM: (PCI ID: 10de:26b5) installed in this system has
# NVRM: fallen off the bus and is not responding to commands.
_GONE = r"NVRM: ()fallen off the bus and is not responding"
_GONE_GPU = rf"NVRM: The NVIDIA GPU ({PCI})"
# nvidia-nvswitch1: Device 0000:06:00.0 has fallen off the bus
_SWITCH_LOST = (
    rf"\bnvidia-nvswitch(\d{{1,3}}): (?:[Dd]evice )?\(?(?:PCI:)?({PCI})?.{{0,80}}?(?:fallen off (?:the )?bus|is lost)"
)
_LOST_STATUS = ("NV_ERR_GPU_IS_LOST",)  # of which `_lost` tells
_HANDLE = rf"Unable to determine the device handle for (?:GPU|gpu) ?({PCI})?"
# NVRM: GPU 0000:09:00.0: RmInitAdapter failed! (0x22:0x56:894)
# NVRM: GPU 0000:09:00.0: rm_init_adapter failed, device minor number 0
# NVRM: osInitNvMapping: *** Cannot attach gpu     NVRM: RmInitAdapter: osInitNvMapping failed, bailing out of ...
# NVRM: GPU 0000:9b:00.0: request_irq() failed (-28)
_INIT = r"request_irq\(\) failed|RmInitAdapter failed|rm_init_adapter failed|osInitNvMapping|Cannot attach gpu|RmInitAdapter: "
_ENDED = "rm_init_adapter failed"
_NO_INTERRUPT = Text("the kernel gave it no interrupt", "内核未能为其分配中断")
_NO_REASON = Text("the driver gave up", "驱动放弃")
_NO_FIRMWARE = (0x60, 0x61)  # stages in which the files of the firmware are sought and loaded
_INIT_CODE = r"\((0x[0-9a-fA-F]{1,8}:0x[0-9a-fA-F]{1,8}:\d{1,8})\)"
_MINOR = r"device minor number (\d{1,5})"
# NVRM: GPU5 _kgspRpcRecvPoll: GSP RM heartbeat timed out
# NVRM: GPU6 _kgspIsHeartbeatTimedOut: Heartbeat timed out, currentTimeMs 812751949 heartbeat 1899482 ...
_HEARTBEAT = r"(?i:heartbeat timed ?out)"
# NVRM: _issueRpcAndWait: rpcRecvPoll timedout for fn 76 sequence 4129!
# NVRM: nvAssertFailedNoLog: Assertion failed: Back to back GSP RPC timeout detected! GPU marked for reset @ ...
# NVRM: Rate limiting GSP RPC error prints for GPU at PCI:0000:9b:00 (printing 1 of every 30).
_RPC = (
    r"Back to back GSP RPC timeout|rpcRecvPoll timed ?out|_kgspRpcRecvPoll|Rate limiting GSP RPC|"
    r"rpcSendMessage failed|Timeout while waiting for RPC|_kgspLogRpcTimeout|\* GSP Timeout \*"
)
_RPC_CALL = r"(?:fn|function) (\d{1,6})(?: ?\((\w{1,60})\))?(?:!| sequence (\d{1,10}))?"
# NVRM: kgspHealthCheck_TU102: ****************************** GSP-CrashCat Report ***...
_CRASH = r"GSP-CrashCat|GSP firmware crash|kgspHealthCheck\w*: .{0,60}[Cc]rash"
# NVRM: GPU0 _kgspRpcGspEventPmuHalted: Received signal from GSP that PMU has halted.
_PMU = r"PMU has halted|EventPmuHalted"
# NVRM: Attempting to remove device 0000:d4:00.0 with non-zero usage count!
_BUSY = rf"Attempting to remove device ({PCI}) with non-zero usage count"
# NVRM: nvAssertFailedNoLog: Assertion failed: <condition> @ kern_bus_vbar2.c:346
# NVRM: GPU0 nvCheckOkFailedNoLog: Check failed: GPU lost from the bus [NV_ERR_GPU_IS_LOST] (0x0000000F) returned from ... @ crashcat.c:216
_ASSERT = r"NVRM: .{0,80}?(?:[Aa]ssert\w*|[Cc]heck)(?: failed)?: (?:Assertion failed: )?(.{1,600}?)(?: @ ([\w./-]{1,120}:\d{1,7}))?$"
# nvidia-gpu 0000:09:00.3: Refused to change power state, currently in D3
# nvidia 0000:01:00.0: Unable to change power state from D3cold to D0, device inaccessible
# nvidia 0000:5d:00.0: can't change power state from D3cold to D0 (config space inaccessible)
_POWER = (
    rf"(?:([\w-]{{1,40}}) )?({PCI}): (?:Refused to|Unable to|[Cc]an't|[Cc]annot) change power state,?\s*(.{{0,100}})"
)
# nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing
_PEERMEM = r"nvidia[-_]peermem\b.{0,100}invalid context|nv_get_p2p_free_callback.{0,60}invalid context"
# NVRM: knvlinkUpdatePostRxDetectLinkMask_IMPL: Failed to update Rx Detect Link mask!
_NVLINK = r"NVRM: (?!\s*-?\d+ +\d+ )(?=.{0,300}?[nN][vV][lL]ink)(?=.{0,400}?(?:[Ff]ail|[Ee]rror|[Tt]imed? ?out|[Ff]ault|(?<!shut)down\b))"

# NVRM: ... Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) ...      nvidia-uvm: ... Reset required [NV_ERR_RESET_REQUIRED]
_RESET = r"NV_ERR_RESET_REQUIRED|\b[Rr]eset required\b"
_UVM_RESET = r"nvidia-(?:uvm|modeset|drm): .{0,300}NV_ERR_RESET_REQUIRED"

# NVRM: nvidia-uvm: uvm_global_set_fatal_error: Global fatal error: NV_ERR_ECC_ERROR     uvm encountered global fatal error 0x3f, requiring
_UVM = r"uvm_global_set_fatal_error\w*\b.{0,160}|\buvm encountered (?:a )?global fatal error.{0,60}"
# NVRM: GPU0 gpuHandleSanityCheckRegReadError_GH100: Possible bad register read: addr: 0x110804,  regvalue: 0xbadf4100,  error code: ...
_BAD_READ = r"[Pp]ossible bad register read: .{0,60}?regvalue: (0xbad\w{1,8})"
_BAD_READ_REASON = Text("a register reads as an error code", "寄存器读出错误码")

# NVRM: API mismatch: the client has the version 535.104.05, but
# NVRM: this kernel module has the version 535.86.10.  Please ...
_MISMATCH = r"NVRM: API mismatch: the client"
_VERSIONS = r"has the version (\d{1,5}\.\d{1,5}(?:\.\d{1,5})?)"
# From the most specific reason to the least; the burst of lines around it is one failure.
_LOAD = (
    ("bar_invalid", r"This PCI I/O region assigned to your NVIDIA device is invalid|system BIOS may have misconfigured your GPU|BAR\d is 0M @ 0x0 \(PCI:"),
    ("nouveau", r"already bound to nouveau|nouveau, rivafb|Try unloading the conflicting kernel module"),
    ("unsupported_gpu", r"NVIDIA GPU .{0,80}installed in this system is\s+not supported"),
    ("signature", r"(?:nvidia.{0,60}: |modprobe: )?(?:Loading of (?:unsigned )?module (?:nvidia\S* )?.{0,60}is rejected|"
     r"unsigned module loading is restricted)"),
    ("symbol", r"\bnvidia\w*: (?:Unknown symbol|disagrees about version of symbol)"),
    ("version_magic", r"\bnvidia\w*: version magic .{0,200}should be"),
    ("firmware", r"nvidia .{0,40}: Direct firmware load for nvidia/\S{1,80} failed"),
    ("no_gpu", r"NVRM: No NVIDIA (?:GPU|graphics adapter|devices?) (?:found|probed)"),
    ("probe_failed", r"nvidia: probe of (?:\S{7,16}) failed with error|NVRM: The NVIDIA probe routine (?:failed|was not)|"
     r"NVRM: None of the NVIDIA (?:devices|graphics adapters) were initialized"),
)  # fmt: skip
_LOAD_HINTS = ("NVRM", "nvidia", "module")


def read(reading: Reading) -> None:
    """All recognisers of this module, in file order each."""
    _lost(reading)
    _init(reading)
    _gsp(reading)
    _simple(reading)
    _load(reading)


def _driver(entry: Entry, start: int) -> bool:
    """True when the driver (or a tool that quotes it) says what begins at `start`."""
    return from_kernel(entry, start) or ("NVRM: " in entry.message and not is_command(entry, start))


def _lost(reading: Reading) -> None:
    """Lost GPUs, unless an XID 79 of the same GPU tells it already."""
    dead: dict[Subject, list[tuple[int, Observation]]] = {}
    for o in reading.found:
        if o.fact == "xid" and isinstance(o.value, Event) and o.value.code == 79:
            dead.setdefault(o.subject, []).append((o.source.line or 0, o))
    said: dict[Subject, Entry] = {}
    for index, entry in enumerate(reading.entries):
        message = entry.message
        if "Xid (" in message or not (
            "off the bus" in message or "off bus" in message or "lost" in message.lower() or "handle" in message
        ):
            continue
        if "nvswitch" in message:
            _switch_lost(reading, entry)
            continue
        found = rx(_HANDLE).search(message) or rx(_LOST).search(message) or rx(_GONE).search(message)
        if not found or is_command(entry, found.start()) or not _names_gpu(entry, found):
            continue
        address = found[1] or _gone(reading, index)
        subject = reading.gpu(entry, address) if address else reading.near_gpu(index)
        told = _died(dead.get(subject, ()), entry)
        told = told or (subject in said and within(said[subject], entry, 10 * SECOND))
        said[subject] = entry
        if told:
            reading.again.add(entry.number)
        else:
            reporter = "NVRM" if "NVRM" in message else entry.tag or entry.kind.value
            reading.event("gpu_lost", subject, entry, {"text": body(message), "reporter": reporter})


def _switch_lost(reading: Reading, entry: Entry) -> None:
    found = rx(_SWITCH_LOST).search(entry.message)
    if found and from_kernel(entry, found.start()):
        name = address_of(found[2]) if found[2] else f"nvidia-nvswitch{found[1]}"
        switch = Subject(Scope.NVSWITCH, name, reading.node(entry))
        reading.event("nvswitch_lost", switch, entry, {"text": body(entry.message)})


def _gone(reading: Reading, index: int) -> str:
    """The address in the line or two above the end of a message that spans three."""
    number = reading.entries[index].number
    for other in reversed(reading.entries[max(0, index - 3) : index]):
        if number - other.number <= 3 and (named := rx(_GONE_GPU).search(other.message)):
            return named[1]
    return ""


def _names_gpu(entry: Entry, found: re.Match[str]) -> bool:
    """False for prose about lost GPUs: somebody must report it, or an address stand in it."""
    if entry.kind is Kind.DAEMON:
        told = reports(entry.tag, entry.message, found, named=found[1] is not None or "NVRM" in entry.message)
    else:
        told = "NVRM" in entry.message or found[1] is not None or entry.kind is Kind.KERNEL
    return told and ("GPU" in entry.message or "NVRM" in entry.message or "nvidia" in entry.message.lower())


def _died(deaths: Sequence[tuple[int, Observation]], entry: Entry) -> bool:
    """True when an XID 79 of the same GPU lies within ten minutes (or 200 lines) of the entry."""
    place = bisect_left(deaths, entry.number, key=lambda death: death[0])
    for line, o in deaths[max(0, place - 1) : place + 1]:
        if o.at is None or entry.at is None or o.clock is not entry.clock:
            near = abs(line - entry.number) <= 200
        else:
            near = abs(o.at - entry.at) <= 600 * SECOND
        if near:
            return True
    return False


def _init(reading: Reading) -> None:
    """One event for each attempt to start a GPU: the lines up to ``rm_init_adapter failed``, or to one that was said before."""
    group: list[int] = []
    whole: set[str] = set()  # GPUs of which attempts of several lines were seen

    def close() -> None:
        entries = [reading.entries[i] for i in group]
        # Of a log with folded lines an end may stand alone: its attempt is one of those that the beginning stands for.
        end = len(group) == 1 and _ENDED in entries[0].message and reading.context.times
        if group and not (end and _address(entries[0]) in whole):
            whole.update(_address(e) for e in entries[1:])
            _init_event(reading, group)
        group.clear()

    for index, entry in enumerate(reading.entries):
        found = rx(_INIT).search(entry.message) if any(w in entry.message for w in ("nit", "attach", "irq")) else None
        if not found or not _driver(entry, found.start()):
            continue
        if group:
            last = reading.entries[group[-1]]
            ended = _ENDED in last.message
            other = reading.host(last) != reading.host(entry) or not within(last, entry, 10 * SECOND)
            named = {_address(e) for e in (entry, *(reading.entries[i] for i in group))} - {""}
            said = {_spelling(reading.entries[i]) for i in group}
            if ended or other or len(named) > 1 or _spelling(entry) in said:
                close()
        group.append(index)
    close()


def _spelling(entry: Entry) -> str:
    """The message without its numbers."""
    return rx(r"[0-9]+").sub("#", entry.message)


def _address(entry: Entry) -> str:
    found = rx(rf"GPU (?:at )?(?:PCI:)?({PCI})").search(entry.message)
    return found[1].lower() if found else ""


def _init_event(reading: Reading, group: Sequence[int]) -> None:
    entries = [reading.entries[i] for i in group]
    text = " | ".join(e.message for e in entries)
    named = next((e for e in entries if _address(e)), None)
    subject = reading.gpu(named, _address(named)) if named else reading.near_gpu(group[0])
    code, minor = rx(_INIT_CODE).search(text), rx(_MINOR).search(text)
    why = init_failure(text)
    unsaid = _NO_INTERRUPT if "request_irq() failed" in text else _NO_REASON
    reason = why.reason if why is not None and why.reason else unsaid
    fields = {
        "error": code[1] if code else None,
        "status": why.status.name if why is not None and why.status is not None else None,
        "firmware": why is not None and why.stage in _NO_FIRMWARE,
        "reason": reason.en,
        "reason_zh": reason.zh,
        "minor": number(minor[1]) if minor else None,
        "stage": "attach" if "Cannot attach gpu" in text or "osInitNvMapping" in text else None,
        "text": body(text),
    }
    reading.event("gpu_init_failed", subject, entries[0], fields, raw=" | ".join(e.raw.strip() for e in entries))


def _gsp(reading: Reading) -> None:
    """GSP: heartbeat, RPC timeouts, crashes, PMU halts; lines that follow each other within two seconds are one event, of lines
    without a time those within six lines.
    """
    bursts: list[tuple[str, Subject, Entry, dict[str, Scalar]]] = []
    last: dict[tuple[str, Subject], tuple[Entry, dict[str, Scalar]]] = {}
    for index, entry in enumerate(reading.entries):
        message = entry.message
        if "NVRM" not in message or "Xid (" in message:
            continue
        for fact, pattern in zip(_GSP, (_HEARTBEAT, _RPC, _CRASH, _PMU), strict=True):
            found = rx(pattern).search(message)
            if not found or is_command(entry, found.start()):
                continue
            subject = reading.near_gpu(index)
            call = rx(_RPC_CALL).search(message)
            fields: dict[str, Scalar] = {"text": body(message)}
            if fact == "gsp_rpc_timeout" and call:
                fields |= {"function": number(call[1]), "name": call[2], "sequence": number(call[3])}
            before = last.get((fact, subject))
            near = before is not None and (entry.at is not None or entry.number - before[0].number <= 6)
            if before and near and within(before[0], entry, 2 * SECOND):
                before[1].update({k: v for k, v in fields.items() if v is not None and k not in before[1]})
                last[fact, subject] = (entry, before[1])
                reading.again.add(entry.number)
            else:
                last[fact, subject] = (entry, fields)
                bursts.append((fact, subject, entry, fields))
            break
    for fact, subject, entry, fields in bursts:
        reading.event(fact, subject, entry, fields)


def _simple(reading: Reading) -> None:
    """Messages that one line tells in full."""
    for index, entry in enumerate(reading.entries):
        message = entry.message
        if "usage count" in message and (found := rx(_BUSY).search(message)) and _driver(entry, found.start()):
            reading.event("gpu_device_busy_removed", reading.gpu(entry, found[1]), entry, {"text": body(message)})
        elif "power state" in message and (found := rx(_POWER).search(message)) and from_kernel(entry, found.start()):
            _power(reading, entry, found)
        elif "invalid context" in message and (found := rx(_PEERMEM).search(message)):
            if from_kernel(entry, found.start()):
                reading.event("peermem_invalid_context", reading.node(entry), entry, {"text": body(message)})
        elif "fatal" in message and (found := rx(_UVM).search(message)) and _driver(entry, found.start()):
            status = status_in(found[0])
            fields = {"status": status.name if status is not None else body(found[0], 80), "text": body(message)}
            reading.event("uvm_fatal_error", reading.node(entry), entry, fields)
        elif "RESET_REQ" in message and (found := rx(_UVM_RESET).search(message)) and _driver(entry, found.start()):
            reading.event("gpu_reset_demanded", reading.near_gpu(index), entry, {"text": body(message)})
        elif "NVRM: " in message and "Xid (" not in message:
            _nvrm(reading, index, entry)


def _nvrm(reading: Reading, index: int, entry: Entry) -> None:
    start = entry.message.find("NVRM: ")
    message = entry.message[start : start + 1500]
    if is_command(entry, start):
        return
    if ("RESET_REQ" in message or "eset required" in message) and rx(_RESET).search(message):
        reading.event("gpu_reset_demanded", reading.near_gpu(index), entry, {"text": body(message)})
    elif "bad register read" in message and (found := rx(_BAD_READ).search(message)):
        reading.event("nvidia_assertion", reading.node(entry), entry, {
            "condition": body(message, 300), "status": found[1], "grave": True,
            "reason": _BAD_READ_REASON.en, "reason_zh": _BAD_READ_REASON.zh, "text": body(message),
        })  # fmt: skip
    elif ("ssert" in message or "heck failed" in message) and (found := rx(_ASSERT).match(message)):
        status = status_in(found[1])
        if not rx(_RPC).search(message) and (status is None or status.name not in _LOST_STATUS):
            fields: dict[str, Scalar] = {"condition": body(found[1], 300), "location": found[2], "text": body(message)}
            if status is not None:
                fields |= {
                    "status": status.name,
                    "grave": status.grave,
                    "reason": status.title.en,
                    "reason_zh": status.title.zh,
                }
            reading.event("nvidia_assertion", reading.node(entry), entry, fields)
    elif rx(_NVLINK).match(message):
        reading.event("nvlink_driver_message", reading.near_gpu(index), entry, {"text": body(message)})


def _power(reading: Reading, entry: Entry, found: re.Match[str]) -> None:
    driver, address, state = found[1] or "", found[2], found[3].strip(" ,")
    if driver.startswith("nvidia") or reading.is_gpu(entry, address):
        base = address.partition(".")[0]  # .3 is the USB-C controller on the same card
        subject, fact = reading.gpu(entry, base), "gpu_power_state_stuck"
    else:
        subject, fact = reading.device(entry, address), "pci_power_state_stuck"
    reading.event(fact, subject, entry, {"driver": driver, "state": state, "text": body(entry.message)})


def _load(reading: Reading) -> None:
    """Why the driver did not come up: one event for a burst of lines, named by its most specific cause."""
    burst: list[int] = []  # entries of it that name a reason, by their index
    reasons: list[int] = []  # their places in `_LOAD`
    for index, entry in enumerate(reading.entries):
        message = entry.message
        if "Xid (" in message or not any(hint in message for hint in _LOAD_HINTS):
            continue
        if entry.kind in (Kind.DAEMON, Kind.QUOTE):
            continue
        if rx(_MISMATCH).search(message):
            _mismatch(reading, index, entry)
            continue
        reason = next((place for place, (_, pattern) in enumerate(_LOAD) if rx(pattern).search(message)), None)
        if reason is None or not from_kernel(entry, len(message) - len(message.lstrip())):
            continue
        if burst and not _goes_on(reading, burst[0], entry):
            _load_failed(reading, burst, reasons)
            burst, reasons = [], []
        burst.append(index)
        reasons.append(reason)
    if burst:
        _load_failed(reading, burst, reasons)


def _goes_on(reading: Reading, first: int, entry: Entry) -> bool:
    """Whether `entry` belongs to the failure that began at `first`."""
    begun = reading.entries[first]
    same = reading.host(begun) == reading.host(entry)
    return same and entry.number - begun.number <= 12 and within(begun, entry, 5 * SECOND)


def _load_failed(reading: Reading, burst: Sequence[int], reasons: Sequence[int]) -> None:
    """The driver ends each failure with general words (``probe routine was not called``), after or ahead of the cause."""
    best = min(reasons)
    index = burst[reasons.index(best)]
    entry = reading.entries[index]
    device = next((d for i in (index, *burst) if (d := rx(rf"\b({PCI})\b").search(_following(reading, i)))), None)
    fields = {"reason": _LOAD[best][0], "device": device[1].lower() if device else None, "text": body(entry.message)}
    reading.event("driver_load_failed", reading.node(entry), entry, fields)


def _following(reading: Reading, index: int, count: int = 3) -> str:
    """The message and those on the next lines, without the driver's prefix."""
    first = reading.entries[index]
    parts = [
        e.message.partition("NVRM:")[2] or e.message
        for e in reading.entries[index : index + count]
        if e.number - first.number < count and (e.kind is first.kind or "NVRM:" in e.message)
    ]
    return " ".join(" ".join(parts).split())


def _mismatch(reading: Reading, index: int, entry: Entry) -> None:
    text = _following(reading, index, 4)
    versions = rx(_VERSIONS).findall(text)
    fields = {
        "library": versions[0] if versions else None,
        "module": versions[1] if len(versions) > 1 else None,
        "text": body(text),
    }
    reading.event("driver_library_mismatch", reading.node(entry), entry, fields)
