"""``edac-util -v``, ``ras-mc-ctl`` and the kernel's own files: errors of the host's memory by module, as EDAC counts them and as rasdaemon kept them.

rasdaemon also keeps errors of PCI Express and machine checks. A record of a section that nobody reads here counts as an error
line that was not understood: who read half of the list must not call the node healthy.
"""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import datetime

from knowledge.identity import normalise_pci
from knowledge.observation import Clock, Event, Observation, Scalar, Scope, Status, Subject, node
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse._kernel_common import severity_of
from probes.parse._kernel_unread import FACT as UNREAD

NAME, REVISION = "memory-errors", 3
KINDS = {"Corrected": "corrected", "Uncorrected": "uncorrected", "Fatal": "uncorrected"}
PROVIDES = (
    *(f"{what}.errors.{kind}" for what in ("dimm", "node.memory") for kind in ("corrected", "uncorrected")), "aer", "machine_check", UNREAD,
)  # fmt: skip
# mc0: csrow0: CPU_SrcID#0_MC#0_Chan#0_DIMM#0: 12 Corrected Errors      mc0: 0 Uncorrected Errors with no DIMM info
_EDAC = re.compile(
    r"(mc\d{1,3}): (?:(csrow\d{1,4}): )?(?:(\S[^:]{0,80}): )?(\d{1,12}) (Corrected|Uncorrected) Errors(?: with no DIMM info)?\.?"
)
# /sys/devices/system/edac/mc/mc1/ue_count:2      /sys/devices/system/edac/mc/mc0/dimm3/dimm_ce_count:17
_FILE = re.compile(
    r"(?:/sys/devices/system/edac/mc/)?(mc\d{1,3})/(?:((?:csrow|dimm|rank)\d{1,4})/)?(?:dimm_)?([cu])e_count ?[:=] ?(\d{1,12})"
)
_FILE_KINDS = {"c": "corrected", "u": "uncorrected"}
# 	Corrected on DIMM Label(s): 'CPU_SrcID#0_MC#1_Chan#0_DIMM#1' location: 1:0:1:-1 errors: 212
_SUMMARY = re.compile(
    r"(Corrected|Uncorrected|Fatal) on DIMM Label\(s\): '(.{1,160})' location: ?([\d:-]{1,40}) errors: (\d{1,12})"
)
# 1 2026-09-30 10:00:00 +0000 1 Uncorrected error(s): memory read error at B2 location: 0:1:1:-1, addr 35, grain 5, syndrome 0
_RECORD = re.compile(
    r"\d{1,9} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4} {1,4}(\d{1,9}) (Corrected|Uncorrected|Fatal) error\(s\):? {1,4}.{1,80}? at (.{1,160}?) location: ?([\d:-]{1,40}).{0,400}"
)
# mc#0csrow#2channel#0  0   0       below   Label                 CE      UE
_COUNTS_HEAD = re.compile(r"Label\s{1,200}CE\s{1,40}UE")
_COUNTS = re.compile(r"(\S.{0,120}?)\s{1,200}(\d{1,12})\s{1,40}(\d{1,12})")
# edac-util: No errors to report.       No Memory errors.
_NONE = re.compile(r"edac-util: No errors to report\.?|No Memory errors\.")
# PCIe AER events:      MCE records summary:      Disk errors summary:      No PCIe AER errors.
_SECTION = re.compile(r"(?:(MCE)|[A-Z]\w{0,30}(?: \w{1,30}){0,3}) (?:events|errors|records)(?: summary)?:")
_EMPTY = re.compile(r"No [A-Za-z]\w{0,30}(?: \w{1,30}){0,3} (?:errors|events)\.")
_STAMP = r"\d{1,9} (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}) {1,4}"
_AER_KIND = r"(Corrected|Uncorrected \((?:Non-)?Fatal\))"
# 5 2026-11-29 03:12:31 +0000 0000:5a:01.0 Uncorrected (Fatal) error: Surprise Link Down
_AER = re.compile(rf"{_STAMP}([0-9a-fA-F:]{{5,14}}\.[0-7]) {_AER_KIND} error: (.{{1,400}})")
# 	211 Corrected errors: Bad TLP        	0000:5a:01.0 211 Corrected errors: Bad TLP
_AER_SUMMARY = re.compile(rf"(?:([0-9a-fA-F:]{{5,14}}\.[0-7]):? )?(\d{{1,9}}) {_AER_KIND} errors: (.{{1,400}})")
# 1 2026-11-29 03:12:31 +0000 error: Instruction CACHE Level-0 Instruction-Fetch Error, mci Uncorrected_error, ..., cpu=0x00000003, bank=0x00000000
_MCE = re.compile(rf"{_STAMP}error: (.{{1,700}})")
_MCE_SUMMARY = re.compile(r"(\d{1,9}) (.{1,300}) errors")
_HEX = r"\b{}=0x([0-9a-fA-F]{{1,16}})"
# What rasdaemon calls the bits of the AER status registers (ras-aer-handler.c), and what the kernel does.
_BITS = {
    "receiver error": "RxErr", "bad tlp": "BadTLP", "bad dllp": "BadDLLP", "relay_num rollover": "Rollover",
    "replay_num rollover": "Rollover", "replay timer timeout": "Timeout", "advisory non-fatal": "NonFatalErr",
    "data link protocol": "DLP", "surprise link down": "SDES", "surprise down error": "SDES", "poisoned tlp": "TLP",
    "flow control protocol": "FCP", "completion timeout": "CmpltTO", "completer abort": "CmpltAbrt",
    "unexpected completion": "UnxCmplt", "receiver overflow": "RxOF", "malformed tlp": "MalfTLP", "ecrc": "ECRC",
    "unsupported request": "UnsupReq", "acs violation": "ACSViol",
}  # fmt: skip


def sniff(head: str) -> int:
    """93 for a line of one of them."""
    return 93 if any(_told(clean(line.text[:800]).strip()) for line in lines_of(head)[:400]) else 0


def _told(text: str) -> bool:
    return any(
        form.fullmatch(text) for form in (_EDAC, _FILE, _SUMMARY, _RECORD, _COUNTS_HEAD, _NONE, _AER, _AER_SUMMARY)
    )


def parse(text: str, context: Context) -> list[Observation]:
    """How many errors each module had, and all together; what else rasdaemon kept."""
    here = node(context.host)
    events: list[Observation] = []
    unread: list[Line] = []
    section = ""
    counts: dict[tuple[str, str], int] = defaultdict(int)
    lines: dict[tuple[str, str], Line] = {}
    inside: set[tuple[str, str]] = set()  # modules and rows of a controller: its own file counts them too
    table = False
    none: Line | None = None
    for line in lines_of(text):
        told = clean(line.text[:800]).strip()
        found: list[tuple[str, str, int]] = []
        if m := _EDAC.fullmatch(told):
            place = " ".join(part for part in m.group(1, 2) if part)
            found = [(f"{m[3]} ({place})" if m[3] else place, KINDS[m[5]], int(m[4]))]
        elif m := _FILE.fullmatch(told):
            found = [(" ".join(part for part in m.group(1, 2) if part), _FILE_KINDS[m[3]], int(m[4]))]
            inside.update((module, kind) for module, kind, _ in found if m[2])
        elif m := _SUMMARY.fullmatch(told):
            found = [(f"{m[2]} ({m[3]})", KINDS[m[1]], int(m[4]))]
        elif m := _RECORD.fullmatch(told):
            found = [(f"{m[3]} ({m[4]})", KINDS[m[2]], int(m[1]))]
        elif table and (m := _COUNTS.fullmatch(told)):
            found = [(m[1], "corrected", int(m[2])), (m[1], "uncorrected", int(m[3]))]
        table = _COUNTS_HEAD.fullmatch(told) is not None or (table and bool(found))
        none = line if _NONE.fullmatch(told) else none
        if head := _SECTION.fullmatch(told):
            section = head[1] or "another"
        elif not told or _EMPTY.fullmatch(told):
            section = ""
        elif event := _event(told, section, line, context):
            events.append(event)
        elif section and not found:
            unread.append(line)
        for module, kind, count in found:
            counts[module, kind] += count
            lines[module, kind] = line
    out = [
        _observation(f"dimm.errors.{kind}", Subject(Scope.OBJECT, module, here), count, lines[module, kind], context)
        for (module, kind), count in counts.items()
    ]
    for kind in ("corrected", "uncorrected"):
        own = [
            (count, lines[key]) for key, count in counts.items() if key[1] == kind and not _counted(key, inside, counts)
        ]
        if own or none:
            total, last = sum(count for count, _ in own), own[-1][1] if own else none
            assert last is not None
            out.append(_observation(f"node.memory.errors.{kind}", here, total, last, context))
    if unread:
        out.append(_observation(UNREAD, here, len(unread), unread[0], context))
    return out + events


def _counted(key: tuple[str, str], inside: set[tuple[str, str]], counts: dict[tuple[str, str], int]) -> bool:
    """Whether the file of the controller counts what this one of a row or module does."""
    return key in inside and (key[0].split(" ")[0], key[1]) in counts


def _event(told: str, section: str, line: Line, context: Context) -> Observation | None:
    """An error of PCI Express, or a machine check; a summary tells how many, not when."""
    here, times = node(context.host), 1
    fields: dict[str, Scalar] = {"text": excerpt(told, 300)}
    aer, aers, mce, mces = (form.fullmatch(told) for form in (_AER, _AER_SUMMARY, _MCE, _MCE_SUMMARY))
    when = ""
    if aer or aers:
        fact = "aer"
        if aer:
            when, device, kind, said = aer.groups()
        elif aers:
            device, kind, said, times = aers[1], aers[3], aers[4], int(aers[2])
        bits = [_BITS.get(word.strip().lower(), word.strip()) for word in said.split(",")]
        fields |= {"severity": severity_of(kind), "bits": ",".join(bits), "count": times}
        if device:
            fields["device"] = address = normalise_pci(device)
            here = Subject(Scope.PCI, address, here)
    elif section == "MCE" and (mce or mces):
        fact, when, times = "machine_check", mce[1] if mce else "", 1 if mce or not mces else int(mces[1])
        fatal, mended = re.search(r"uncorrected", told, re.IGNORECASE), re.search(r"corrected", told, re.IGNORECASE)
        fields["severity"] = "uncorrected" if fatal else "corrected" if mended else "untold"
        for name in ("cpu", "bank"):
            if number := re.search(_HEX.format(name), told):
                fields[name] = int(number[1], 16)
    else:
        return None
    at = _when(when)
    clock = Clock.NONE if at is None else Clock.REALTIME
    shown, source = excerpt(told, 300), context.at(NAME, REVISION, line.number)
    return Observation(fact, here, Event(None, fields), Status.OK, source, at, clock, excerpt=shown, times=times)


def _when(stamp: str) -> int | None:
    """The time in ns; None without one, or for one that no calendar has."""
    try:
        return int(datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S %z").timestamp()) * 10**9
    except ValueError:
        return None


def _observation(fact: str, subject: Subject, count: int, line: Line, context: Context) -> Observation:
    shown = excerpt(clean(line.text.strip()), 300)
    return Observation(fact, subject, count, Status.OK, context.at(NAME, REVISION, line.number), excerpt=shown)


FORMAT = DocumentFormat(NAME, "edac-util -v, ras-mc-ctl, /sys/devices/system/edac", REVISION, PROVIDES, sniff, parse)
