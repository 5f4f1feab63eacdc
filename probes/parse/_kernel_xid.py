"""XID and SXID lines, and the identity lines that the driver prints ahead of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from knowledge.identity import normalise_pci
from knowledge.observation import Scope, Status, Subject, gpu
from knowledge.record import dataclass
from probes.parse._kernel_common import LOADING, Reading, body, is_command, number, rx
from probes.parse._kernel_shape import Entry, Kind

# A redacted address ("0000:..:00", "...") is still the address of some GPU.
_ADDRESS = r"(?:PCI:)?([0-9a-fA-FxX.*#?_:-]{2,32})"
# NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
#   on a GPU that is cut into instances (MIG):  NVRM: Xid (PCI:0000:41:00 GPU-I:05): 94, ...
_XID = rf"\bXid \({_ADDRESS}((?: GPU-[A-Z]{{1,3}}(?::\w{{1,8}})?){{0,3}})\): ?(\d{{1,6}})(?![\w.:%])"
# nvrm: xid (pci:0000:9B:00) : 79 , pid=unknown, GPU has fallen off the bus.       typed, or read off a picture
_LOOSE = r"(?i)(?:\bnvrm ?[:;] ?)?\bxid ?\( ?(?:pci ?: ?)?([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-9a-f])?) ?\) ?[:;] ?(\d{1,3})\b(?![\w.:%]) ?,?"
# NVRM: Xid (PCI:0000:3b           cut before the code
_CUT = r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]{0,20})\)?:? ?$"
_CODE = r"\d{1,3}, "  # ... and the next line, when a terminal broke it there
# nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 24007, Fatal, Link 28 sourcetrack timeout error (First)
_SXID = rf"(?:\b(nvidia-nvswitch\d+): )?\bSXid \({_ADDRESS}\): ?(\d{{1,6}})(?![\w.:%]),?\s*"
_SXID_TEXT = r"(?:(Non-fatal|Fatal|Correctable|Info\w*|Warning)\b,?\s*)?((?:Link (-?\d{1,4})\b)?.*)"
# ... 20034, Severity 1 Engine instance 60 Sub-engine instance 00     ... 20034, Data {0x10000000, ...}
_DETAIL = r"(?:Severity \d|Engine instance|Data \{)"
# pid=8494,   name=RenderThread, ...      pid='<unknown>', name=<unknown>, ...      pid=1896, Row ...
_PID = r",?\s*pid\s*=\s*(?:'([^']{0,40})'|\"([^\"]{0,40})\"|([^,\s]{1,40}))\s*(?:,\s*|$)"
_NAME = r"name\s*=\s*"
# How the body of an Xid line can begin; process names hold commas, spaces and brackets.
_BODY = (
    r"(?:C[hH] |[Cc]hannel|GPU |Graphics|Timeout|Contain|Uncontain|Row |An |A |NV[Ll]ink|CTX |MMU |Class |NETIR|RLW|"
    r"TLW|SAW|MSE|GSP|error|Engine|PBDMA|intr|Info|Reset|Dynamic|DRAM|Page|L[12]|Unrecover|SYS|Preempt|Video|RM |Copy|"
    r"CE|No |Failed|Falcon|PMU|BAR|Host|Bus|Internal|HUB|FB|Ucode|CMDre|Head|Display|XVE|Data|[0-9a-fA-Fx]{8}\b)"
)
_CONNECTIVES = frozenset({"", "to", "from", "on", "at", "of", "for", "the", "is", "and", "was"})
_NO_REST = r"[A-Z_]+=|NVRM|nvidia|<\d|\["  # a line that does not go on with the one before it
_LOCATED = r"NVRM: (?:GPU at (?:PCI:)?|GPU (?=[0-9a-fA-F:.]{7,16}: GPU serial))([0-9a-fA-F:.]{7,16})"
# NVRM: GPU at PCI:0000:91:00: GPU-b6c3b2be-c55b-d076-fa0e-d464e4c7e08b
_UUID = r"NVRM: GPU at (?:PCI:)?([0-9a-fA-F:.]{7,18}): (GPU-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})\b"
# NVRM: GPU Board Serial Number: 1653723052734      NVRM: GPU 0000:91:00.0: GPU serial number is 1653723052734.
_BOARD = r"NVRM: GPU Board Serial Number: ?(\w{1,32})"
_SERIAL = r"NVRM: GPU ([0-9a-fA-F:.]{7,18}): GPU serial number is (\w{1,32})"
# 'nvidia.com/gpu' device marked unhealthy: GPU-7540a9b3-eeb9-1214-1526-f93c9ea826a8
# XidCriticalError: Xid=94 on Device=GPU-...; marking device as unhealthy.      ..., the device will go unhealthy.
_UNHEALTHY = (
    r"device marked unhealthy: (GPU-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){0,3}(?:-[0-9a-fA-F]{12})?)|"
    r"on Device=(GPU-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){0,3}(?:-[0-9a-fA-F]{12})?)[,;] (?:marking device as|the device will go) unhealthy"
)
# XidCriticalError: Xid=69 on Device=GPU-7540a9b3-eeb9-1214-1526-f93c9ea826a8, the device will go unhealthy.
_REPORTED = (
    r"XidCriticalError: Xid=(\d{1,4}) on Device=(GPU-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){0,3}(?:-[0-9a-fA-F]{12})?)\b"
)
_NEXT = r"\s*(?:<\d>)?(?:\[ *\d{1,10}\.\d{1,9}\])?\s*NVRM: "


@dataclass(frozen=True, slots=True)
class _Xid:
    """One XID as a line tells it."""

    entry: Entry
    subject: Subject
    code: int
    pid: int | None
    process: str
    text: str
    mig: str  # "GPU-I:05", "GPU-I:01 GPU-CI:02"; empty on a GPU that is not cut into instances


def respell(entries: Iterable[Entry]) -> None:
    """Give lines whose XID was typed, or read off a picture, the driver's spelling; what they show stays as it was."""
    for entry in entries:
        plain = "Xid (" in entry.message and rx(_XID).search(entry.message) is not None
        if not plain and (found := rx(_LOOSE).search(entry.message)):
            spelt = f"NVRM: Xid (PCI:{found[1].lower()}): {found[2]},"
            entry.message = f"{entry.message[: found.start()]}{spelt}{entry.message[found.end() :]}"


def read(reading: Reading) -> None:
    """XIDs, SXIDs, UUIDs, serial numbers and the driver's version."""
    _xids(reading)
    _sxids(reading)
    _reported(reading)
    _withheld(reading)
    _identity(reading)


def _xids(reading: Reading) -> None:
    events: list[_Xid] = []
    for index, entry in enumerate(reading.entries):
        if "Xid (" not in entry.message:
            continue
        message = _joined(reading, index)
        events += _in_line(reading, entry, message)
        if (cut := rx(_CUT).search(message)) and not is_command(entry, cut.start()):
            detail = "the line is cut off ahead of the XID's number"
            reading.add("xid", reading.gpu(entry, cut[1] or "cut"), entry, status=Status.FAILED, detail=detail)
    own = {(e.subject, e.code, e.text[:40]) for e in events if e.entry.kind is Kind.KERNEL}
    for event in events:
        if event.entry.kind is not Kind.KERNEL and (event.subject, event.code, event.text[:40]) in own:
            continue  # a tool that repeats the kernel's line in the same log
        programs = reading.context.programs.get(event.entry.number, 0)
        fields = {
            "pid": event.pid, "process": event.process, "text": event.text, "mig": event.mig,
            "programs_folded": programs if programs > 1 else None,
        }  # fmt: skip
        reading.event("xid", event.subject, event.entry, fields, code=event.code)


def _in_line(reading: Reading, entry: Entry, message: str) -> Iterator[_Xid]:
    for found in rx(_XID).finditer(message):
        if not set(found[1]) & {":", "."} or is_command(entry, found.start()):
            continue
        pid, process, text = parse_body(_until_quote(message, found))
        yield _Xid(entry, reading.gpu(entry, found[1]), int(found[3]), pid, process, text, found[2].strip())


def _until_quote(message: str, found: re.Match[str]) -> str:
    """What follows the code, up to the end of the quotation or of the interleaved line."""
    text = message[found.end() : found.end() + 4000]
    if "NVRM: " in text and (following := rx(_NEXT).search(text)):
        text = text[: following.start()]
    for mark in ('\\"', '"') if '"' in message else ():  # in a string of JSON that is cut, or of logfmt
        if message.count(mark, 0, found.start()) % 2:
            return text.partition(mark)[0]
    return text


def parse_body(text: str) -> tuple[int | None, str, str]:
    """pid (None when unknown), process name (empty when unknown) and text of what follows the code."""
    pid: int | None = None
    found = rx(_PID).match(text)
    if found:
        digits = found[1] or found[2] or found[3] or ""
        pid = int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 10 else None
        text = text[found.end() :]
    process = ""
    if named := rx(_NAME).match(text):
        process, text = _name(text[named.end() :])
    return pid, "" if process == "<unknown>" else process, body(text.lstrip(" ,").rstrip())


def _name(text: str) -> tuple[str, str]:
    """A process name and what is behind it: the comma that a known body follows, else the first."""
    if text.startswith(("'", '"')) and (end := text.find(text[0], 1)) > 0:
        return text[1:end], text[end + 1 :].lstrip(" ,")
    first = text.find(", ")
    if first < 0:
        return text.rstrip(" ,").strip(), ""
    comma = first
    while 0 <= comma <= 64:
        rest = text[comma + 1 :].lstrip()
        if rx(_BODY).match(rest):
            return text[:comma].strip(), rest
        comma = text.find(", ", comma + 1)
    return text[:first].strip(), text[first + 1 :].lstrip()


def unfinished(text: str) -> bool:
    """True when a text breaks off where a sentence cannot end: the next line may hold the rest."""
    last = text[-8:].rpartition(" ")[2]
    if last in _CONNECTIVES or text.endswith((",", "(")) or text.count("(") > text.count(")"):
        return True
    return "GPU recovery" in text and rx(r" to 0x\d").search(text) is None


def _joined(reading: Reading, index: int) -> str:
    """The message, with the next line where the body was wrapped onto it."""
    entry = reading.entries[index]
    if index + 1 >= len(reading.entries) or reading.entries[index + 1].number != entry.number + 1:
        return entry.message
    after, found = reading.entries[index + 1], rx(_XID).search(entry.message)
    if found is None and after.kind is Kind.BARE and rx(_CUT).search(entry.message) and rx(_CODE).match(after.message):
        return f"{entry.message} {after.message}"
    if found is None or entry.message[found.end() : found.end() + 1] != ",":
        return entry.message
    tail = entry.message[found.end() + 1 :].strip()
    if not (unfinished(tail) or after.message.startswith("(0x")) or rx(_NO_REST).match(after.message):
        return entry.message
    if after.kind is not Kind.BARE and (tail or not rx(r"Head |[0-9a-f]{8}\b").match(after.message)):
        return entry.message  # a line of its own
    return f"{entry.message} {after.message}"


def _sxids(reading: Reading) -> None:
    details: list[tuple[Entry, Subject, int, str, str]] = []
    mains: set[tuple[Subject, int]] = set()
    for entry in reading.entries:
        if "SXid (" not in entry.message:
            continue
        found = rx(_SXID).search(entry.message)
        if not found or not set(found[2]) & {":", "."} or is_command(entry, found.start()):
            continue
        subject = Subject(Scope.NVSWITCH, normalise_pci(found[2]), reading.node(entry))
        rest, code = entry.message[found.end() :].strip(), int(found[3])
        if rx(_DETAIL).match(rest):
            details.append((entry, subject, code, rest, found[1] or ""))
            continue
        mains.add((subject, code))
        _sxid(reading, entry, subject, code, rest, found[1] or "")
    for entry, subject, code, rest, reporter in details:
        if (subject, code) not in mains:  # the line that these belong to was lost
            mains.add((subject, code))
            _sxid(reading, entry, subject, code, rest, reporter)


def _sxid(reading: Reading, entry: Entry, subject: Subject, code: int, rest: str, reporter: str) -> None:
    found = rx(_SXID_TEXT).match(rest)
    word, text, link = (found[1], found[2], found[3]) if found else (None, rest, None)
    fields = {
        "severity_word": word, "link": number(link), "text": body(text), "reporter": reporter or "kernel",
    }  # fmt: skip
    reading.event("sxid", subject, entry, fields, code=code)


def _reported(reading: Reading) -> None:
    """XIDs in the log of NVIDIA's Kubernetes device plugin, which names the GPU by its UUID."""
    for entry in reading.entries:
        if "XidCriticalError" not in entry.message or (found := rx(_REPORTED).search(entry.message)) is None:
            continue
        if not is_command(entry, found.start()):
            fields = {"reporter": "the Kubernetes device plugin", "text": body(entry.message[found.start() :])}
            reading.event("xid_reported", gpu(found[2], reading.host(entry)), entry, fields, code=int(found[1]))


def _withheld(reading: Reading) -> None:
    """GPUs that the device plugin gives away no more."""
    for entry in reading.entries:
        if "nhealthy" in entry.message and (found := rx(_UNHEALTHY).search(entry.message)):
            fields = {"text": body(entry.message)}
            reading.event("device_plugin_unhealthy", gpu(found[1] or found[2], reading.host(entry)), entry, fields)


def _identity(reading: Reading) -> None:
    seen: set[tuple[str, Subject, str]] = set()
    located: tuple[int, str] | None = None  # entry index and address of the last "GPU at" line

    def once(fact: str, subject: Subject, entry: Entry, value: str) -> None:
        if (fact, subject, value) in seen:
            return
        seen.add((fact, subject, value))
        if fact == "gpu.serial" and not value.strip("0"):
            reading.add(fact, subject, entry, status=Status.UNSUPPORTED, detail="the board prints no serial number")
        else:
            reading.add(fact, subject, entry, value)

    for index, entry in enumerate(reading.entries):
        message = entry.message
        if "NVRM: " not in message:
            continue
        if place := rx(_LOCATED).search(message):
            located = (index, place[1].rstrip(":."))
        if found := rx(_UUID).search(message):
            once("gpu.uuid", reading.gpu(entry, found[1].rstrip(":")), entry, found[2])
        elif found := rx(_SERIAL).search(message):
            once("gpu.serial", reading.gpu(entry, found[1]), entry, found[2])
        elif (found := rx(_BOARD).search(message)) and located and index - located[0] <= 2:
            once("gpu.serial", reading.gpu(entry, located[1]), entry, found[1])
        elif found := rx(LOADING).search(message):
            once("node.driver.version", reading.node(entry), entry, found[1])
