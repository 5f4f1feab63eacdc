"""What the amdgpu driver says: RAS errors, bad pages, resets, queues that time out, page faults, lost GPUs.

Source of the lines: drivers/gpu/drm/amd of Linux 5.4 to 6.17 and logs in public issues. A poll of the counters that finds
nothing prints ``0 uncorrectable ...`` or ``no uncorrectable ...``: that is no error. A counter that is a whole number of
channels of 16 ones was read from a GPU that slept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from knowledge.identity import UNKNOWN_PCI
from knowledge.observation import Scalar, Status, Subject, gpu
from knowledge.record import dataclass
from probes.parse._kernel_common import Reading, address_of, body, from_kernel, number, rx, within
from probes.parse._kernel_shape import Entry
from probes.parse._logtime import SECOND

EVENTS = (
    "amdgpu_bad_pages", "amdgpu_fault", "amdgpu_hang", "amdgpu_init_failed", "amdgpu_lost", "amdgpu_ras", "amdgpu_reset", "amdgpu_ring_timeout",
)  # fmt: skip
BURSTS = dict.fromkeys(
    ("amdgpu_fault", "amdgpu_hang", "amdgpu_init_failed", "amdgpu_lost"), 10 * SECOND
)  # `LogFormat.bursts`
TRIGGERS = (
    r"amdgpu \d{4,8}:",
    r"amdgpu_job_timedout",
    r"GPU Recovery Failed",
    r"hardware errors detected in",
    r"VRAM is lost due to",
    r"qcm fence wait",
    r"RAS poison",
    r"amdgpu: probe of ",
    r"amdgpu: (?:HIQ MQD|Failed to (?:evict|remove|quiesce) queue|failed to (?:add|remove) hardware queue)",
)
HINTS = ("amdgpu", "qcm fence", "RAS poison", "hardware errors detected", "VRAM is lost")
_ADDRESS = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]"
# amdgpu 0000:03:00.0: amdgpu: ...        amdgpu 0000:03:00.0: [drm] ...
_DEVICE = rf"\bamdgpu ({_ADDRESS}): "
# 2 uncorrectable hardware errors detected in umc block
# socket: 0, die: 1, 3 new correctable hardware errors detected in gfx block, no user action is needed
# {12} socket: 0, die: 0, 5 deferred hardware errors detected in total in umc block
# 1 new poison consumption detected in sdma block
_RAS = (
    r"(?<![\d.])(\d{1,15}) (?:new )?(?:(uncorrectable|correctable|deferred) (?:hardware )?errors|(poison consumption)) detected in "
    r"(total in )?(\w{1,24}) block"
)
# {1}uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!      MI300: the commonest line of a fatal error
_FATAL = r"uncorrectable hardware error ?\((?:ERREVENT_)?(\w{1,40}?)(?:_INTERRUPT)?\) detected"
# RAS poison consumption, fall back to gpu reset flow: client id 27       RAS poison is consumed in ...     poison is consumed by client 27, ...
_POISON = r"(?i)\bpoison (?:consumption,|is (?:consumed|created))(?! .{0,40}\bno\b).{0,120}?(?:client(?: id)? (\w{1,12}))?(?=,|$)"
# SMU: I'm not done with your previous command: SMN_C2PMSG_66:0x0000000E SMN_C2PMSG_82:0x00000000
# Msg issuing pre-check failed(0xffffffff) and SMU may be not in the right state!
# HIQ MQD's queue_doorbell_id0 is not 0, Queue preemption time out        failed to remove hardware queue from MES, doorbell=0x1002
# Failed to evict queues of process 8812        Failed to remove queue 2 just after adding a new queue
# qcm fence wait loop timeout expired          The cp might be in an unrecoverable state due to an unsuccessful queues preemption
_HANGS = (
    ("smu", r"SMU: I'm not done with your previous command|SMU may be not in the right state|SMU: response:0xFFFFFFFF"),
    (
        "hws",
        r"qcm fence wait loop timeout expired|cp might be in an unrecoverable state|HWS hang|\bHIQ MQD\b.{0,60}[Qq]ueue preemption time out|"
        r"[Ff]ailed to (?:add|remove) hardware queue|Failed to (?:evict|quiesce) (?:process )?queues?|Failed to remove queue \d",
    ),
)
# {1}[Hardware Error]: aca entry[00].STATUS=0x98000800003e0000     one bank of AMD's Accelerator Check Architecture
_ACA = r"aca entry\[\d{1,4}\]\.STATUS=0x([0-9a-fA-F]{1,16})"
_ACA_KINDS = ((61, "uncorrected"), (44, "deferred"), (43, "poison"))  # bits of MCA_STATUS: UC, Deferred, Poison
# bad page reach threshold, GPU will be RMA'd
# RAS records:130 exceed threshold:128        Saved bad pages 256 reaches threshold value 256
_PAGES = r"(?:RAS records:\s?(\d{1,9}) exceed threshold:\s?(\d{1,9})|Saved bad pages (\d{1,9}) reaches threshold value (\d{1,9})|bad pages? (?:count )?reach\w{0,3} (?:the )?threshold)"
# GPU reset begin!    GPU reset begin!. Source:  1    GPU reset succeeded, trying to resume    GPU reset(2) failed
# GPU reset end with ret = -110
# [drm:amdgpu_job_timedout [amdgpu]] *ERROR* GPU Recovery Failed: -62
_RESET = r"GPU (?:reset|Recovery)(?:\((\d{1,6})\))? ?(begin|succeeded|[Ff]ailed|end with ret = )(?:: )?(-?\d{1,6})?"
_VRAM = "VRAM is lost due to GPU reset"
# ring gfx_0.0.0 timeout, signaled seq=13441142, emitted seq=13441144       ring comp_1.0.1 timeout, but soft recovered
# ring sdma0 timeout        the same line, told in short
_RING = r"\bring (\S{1,24}) timeout(?:, (signaled seq=|but soft recovered)|\s*$|\s+[^,\s])"
# Ring gfx_0.0.0 reset succeeded        Ring gfx_0.0.0 reset failed
_RING_RESET = r"\bRing (\S{1,24}) reset (succeeded|failed)"
# Process information: process python pid 2379 thread python:cs0 pid 2391       Process Main pid 65975 thread vkd3d pid 66181
_PROCESS = r"\bProcess (?:information: process )?(.{1,40}?) pid (\d{1,10}) thread "
# [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32770)   [mmhub0] no-retry page fault (src_id:0 ... for process x pid 7 thread
_FAULT = r"\[(gfxhub\d?|mmhub\d?)\] (?:no-retry |retry )?page fault \(src_id"
_FAULT_OF = r"for process (.{1,40}?) pid (\d{1,10}) thread"
_LOST = "device lost from bus!"
# amdgpu 0000:83:00.0: amdgpu: Fatal error during GPU init        amdgpu 0000:83:00.0: amdgpu: hw_init of IP block <psp> failed -22
# amdgpu: probe of 0000:83:00.0 failed with error -22        amdgpu 0000:83:00.0: probe with driver amdgpu failed with error -22
_INIT = (
    rf"Fatal error during GPU init|\b[hs]w_init of IP block <\w{{1,20}}> failed|amdgpu: probe of {_ADDRESS} failed with error -\d|"
    r"probe with driver amdgpu failed with error -\d"
)
_CHANNEL = 0xFFFF
_SEVERITY = {"uncorrectable": "uncorrected", "correctable": "corrected", "deferred": "deferred"}


@dataclass(slots=True)
class _Reset:
    """One reset while its lines are gathered."""

    entry: Entry
    subject: Subject
    stage: str = "begun"
    error: int | None = None
    vram_lost: bool = False
    lines: list[Entry] = field(default_factory=list)


def named(entry: Entry) -> bool:
    """True for a line in which the driver names a device."""
    return "amdgpu " in entry.message and rx(_DEVICE).search(entry.message) is not None


def read(reading: Reading) -> None:
    """All recognisers of this module."""
    mine = [
        (i, e) for i, e in enumerate(reading.entries) if any(hint in e.message for hint in HINTS) and from_kernel(e)
    ]
    if not mine:
        return
    _ras(reading, mine)
    _resets(reading, mine)
    _rings(reading, mine)
    _simple(reading, mine)


def _subject(reading: Reading, index: int) -> Subject:
    """The GPU of a line: the address in it, else the only one that the driver names around it."""
    entry = reading.entries[index]
    host = reading.host(entry)
    if found := rx(_DEVICE).search(entry.message):
        return gpu(address_of(found[1]), host)
    near = {
        address_of(found[1])
        for other in reading.entries[max(0, index - 4) : index + 12]
        if reading.host(other) == host
        and within(entry, other, 15 * SECOND)
        and (found := rx(_DEVICE).search(other.message))
    }
    return gpu(near.pop() if len(near) == 1 else f"{UNKNOWN_PCI}amdgpu", host)


def _ras(reading: Reading, mine: list[tuple[int, Entry]]) -> None:
    """New errors; a total only where no line of new ones stands beside it."""
    fresh: dict[tuple[Subject, str, str], Entry] = {}
    for index, entry in mine:
        if found := rx(_PAGES).search(entry.message):
            records, threshold = number(found[1] or found[3]), number(found[2] or found[4])
            fields: dict[str, Scalar] = {"records": records, "threshold": threshold, "text": body(entry.message)}
            reading.event("amdgpu_bad_pages", _subject(reading, index), entry, fields)
        if "uncorrectable hardware error" in entry.message and (fatal := rx(_FATAL).search(entry.message)):
            told: dict[str, Scalar] = {
                "severity": "uncorrected", "count": 1, "block": fatal[1].lower(), "total": False, "text": body(entry.message),
            }  # fmt: skip
            reading.event("amdgpu_ras", _subject(reading, index), entry, told)
            continue
        if "aca entry" in entry.message and (bank := rx(_ACA).search(entry.message)):
            status = int(bank[1], 16)
            kind = next((name for bit, name in _ACA_KINDS if status >> bit & 1), "corrected")
            told = {"severity": kind, "count": 1, "block": "aca", "total": False, "text": body(entry.message)}
            reading.event("amdgpu_ras", _subject(reading, index), entry, told)
            continue
        if "oison" in entry.message and (used := rx(_POISON).search(entry.message)):
            told = {
                "severity": "poison",
                "count": 1,
                "block": used[1] or "memory",
                "total": False,
                "text": body(entry.message),
            }
            reading.event("amdgpu_ras", _subject(reading, index), entry, told)
            continue
        found = rx(_RAS).search(entry.message)
        if not found or not int(found[1]):
            continue
        subject, count, block = _subject(reading, index), int(found[1]), found[5].lower()
        severity = _SEVERITY.get(found[2] or "", "poison")
        if count % _CHANNEL == 0:
            why = f"{count} errors are channels that read as ones: the GPU slept when it was asked"
            reading.add("amdgpu_ras", subject, entry, status=Status.FAILED, detail=why)
            continue
        key = (subject, severity, block)
        if found[4] and key in fresh and within(fresh[key], entry, 2 * SECOND):
            reading.again.add(entry.number)
            continue
        if not found[4]:
            fresh[key] = entry
        fields = {
            "severity": severity,
            "count": count,
            "block": block,
            "total": bool(found[4]),
            "text": body(entry.message),
        }
        reading.event("amdgpu_ras", subject, entry, fields)


def _resets(reading: Reading, mine: list[tuple[int, Entry]]) -> None:
    open_: dict[Subject, _Reset] = {}
    done: list[_Reset] = []
    for index, entry in mine:
        if _VRAM in entry.message:
            subject = _subject(reading, index)
            found_ = open_.get(subject) or next(reversed(open_.values()), None)
            if found_ is not None and within(found_.entry, entry, 120 * SECOND):
                found_.vram_lost = True
            continue
        found = rx(_RESET).search(entry.message) if "GPU re" in entry.message or "GPU Re" in entry.message else None
        if not found:
            continue
        subject, word = _subject(reading, index), found[2].lower()
        record = open_.get(subject)
        if record is None or word == "begin":
            record = open_[subject] = _Reset(entry, subject)
            done.append(record)
        record.lines.append(entry)
        if word == "failed" or (found[3] and int(found[3])):
            record.stage, record.error = "failed", int(found[3]) if found[3] else record.error
            record.entry = entry
        elif word != "begin" and record.stage != "failed":
            record.stage = "succeeded"
    for record in done:
        text = body(" | ".join(e.message for e in record.lines))
        fields: dict[str, Scalar] = {
            "stage": record.stage, "error": record.error, "vram_lost": record.vram_lost, "text": text,
        }  # fmt: skip
        reading.event("amdgpu_reset", record.subject, record.entry, fields)


def _rings(reading: Reading, mine: list[tuple[int, Entry]]) -> None:
    for place, (index, entry) in enumerate(mine):
        found = rx(_RING).search(entry.message) if " timeout" in entry.message else None
        if not found:
            continue
        recovered, process, pid = (found[2] or "").startswith("but"), "", None
        for _, other in _following(mine, place):
            if who := rx(_PROCESS).search(other.message):
                process, pid = process or who[1], pid or int(who[2])
            elif (again := rx(_RING_RESET).search(other.message)) and again[1] == found[1]:
                recovered = again[2] == "succeeded"
        fields: dict[str, Scalar] = {
            "ring": found[1], "recovered": recovered, "process": process, "pid": pid, "text": body(entry.message),
        }  # fmt: skip
        reading.event("amdgpu_ring_timeout", _subject(reading, index), entry, fields)


def _following(mine: list[tuple[int, Entry]], place: int) -> Iterator[tuple[int, Entry]]:
    """The lines that belong to the time-out at `place`: the next few, up to the next time-out."""
    entry = mine[place][1]
    for index, other in mine[place + 1 : place + 8]:
        if rx(_RING).search(other.message) or not within(entry, other, 10 * SECOND):
            return
        yield index, other


def _simple(reading: Reading, mine: list[tuple[int, Entry]]) -> None:
    """Lost GPUs, failed starts and page faults; a burst of the same is one event."""
    last: dict[tuple[str, Subject], Entry] = {}
    for place, (index, entry) in enumerate(mine):
        message = entry.message
        fault = rx(_FAULT).search(message) if "page fault" in message else None
        unit = next((unit for unit, pattern in _HANGS if rx(pattern).search(message)), "")
        fact = (
            "amdgpu_hang"
            if unit
            else "amdgpu_lost"
            if _LOST in message
            else "amdgpu_init_failed"
            if rx(_INIT).search(message)
            else "amdgpu_fault"
            if fault
            else ""
        )
        if not fact:
            continue
        subject = _subject(reading, index)
        before = last.get((fact, subject))
        last[fact, subject] = entry
        if before is not None and within(before, entry, 10 * SECOND):
            reading.again.add(entry.number)
            continue
        fields: dict[str, Scalar] = {"unit": unit, "text": body(message)}
        if fault:
            who = rx(_FAULT_OF).search(message)
            if who is None:
                near = [other.message for _, other in mine[place + 1 : place + 4]]
                said = (rx(_PROCESS).search(text) or rx(_FAULT_OF).search(text) for text in near)
                who = next((found for found in said if found), None)
            fields |= {"hub": fault[1], "process": who[1] if who else "", "pid": int(who[2]) if who else None}
        reading.event(fact, subject, entry, fields)
