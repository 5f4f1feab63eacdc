"""A machine as ``nvidia-bug-report.log`` shows it: its sections are the files and commands of a recording.

The report is cut into sections by `probes.parse.bug_report`, as for ``--input``. Commands are
found by what they ask, not by their spelling: ``/usr/bin/nvidia-smi --query`` is ``nvidia-smi -q``.
"""

from __future__ import annotations

import re
import shlex
import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from knowledge.errors import InputError
from knowledge.observation import Status
from knowledge.text import excerpt
from probes._bundle_store import UNPACKED, too_large
from probes._scan_open import foreign, opened, unpacked
from probes.bundle import BundleHost
from probes.host import CallKind, Recording, ReplayHost, Reply, not_asked
from probes.live._kernel_sources import OLD_JOURNAL, ZONE
from probes.parse import bug_report
from probes.parse._logtime import SECOND, calendar_stamp

HEAD = 65_536
PICKED = "the report holds only those of its lines that name NVRM or nvidia-"
_PICKED_HEAD = re.compile(r"  (/\S{1,200}|journalctl -b -?\d{1,3}|):")
_NOT_THERE = re.compile(r"^\*\*\* (/\S{1,300}) (does not exist|is not readable)$", re.MULTILINE)
_TAR = b"ustar"  # at 257 of a tar
# Date: Sat Nov 15 12:00:00 UTC 2025      Date: Sat 15 Nov 2025 12:00:00 PM CET
_DATES = (
    re.compile(r"^Date: \w+\.? +(?P<mo>\w+\.?) +(?P<d>\d{1,2}) (?P<h>\d\d:\d\d:\d\d)(?: (?P<p>[AP]M))? (?P<z>[A-Z+-]\w*) (?P<y>\d{4})", re.MULTILINE),
    re.compile(r"^Date: \w+\.?,? +(?P<d>\d{1,2}) (?P<mo>\w+\.?) +(?P<y>\d{4}) (?P<h>\d\d:\d\d:\d\d)(?: (?P<p>[AP]M))? (?P<z>[A-Z+-]\w*)", re.MULTILINE),
)  # fmt: skip
# Hours ahead of UTC of zones whose name means one thing; "CST" and "IST" do not.
_ZONES = {
    "UTC": 0, "GMT": 0, "WET": 0, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "MSK": 3, "JST": 9, "KST": 9, "EST": -5, "EDT": -4,
    "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "AEST": 10, "AEDT": 11, "HKT": 8, "SGT": 8,
}  # fmt: skip
# 2025-11-15T13:00:00+0100 host kernel: ...      a journal tells the zone of the machine
_OFFSET = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?([+-])(\d\d):?(\d\d) ", re.MULTILINE)
_HOST = re.compile(r"^(?:uname: )?Linux ([\w.-]{1,80}) \d{1,2}\.\d{1,3}\.", re.MULTILINE)
_FILTERED = re.compile(r"_COMM=|_UID=|_SYSTEMD|^-[ut]$|--unit|--user|--identifier|--list-boots")


class BugReportHost(ReplayHost):
    """The machine of a report. What the report does not hold is NOT_ASKED."""

    recording: Recording | None = None  # which probes recorded it: none of ours did
    skipped = 0
    version = ""

    def __init__(self, path: str | Path, text: str) -> None:
        """`text` is the whole report, unpacked."""
        self.path = str(path)
        offset = _offset(text)
        sections = bug_report.split(text)
        super().__init__(_name(text), _files(text, sections, offset), _date(text[:HEAD], offset))
        self._commands = [(words, s) for s in sections if (words := _words(s.name))]
        self._picked = [(name, lines) for s in sections for name, lines in _grepped(s) if not name.startswith("/")]

    def run(self, argv: Sequence[str], *, deadline: float) -> Reply:  # noqa: ARG002 - part of the protocol
        """The section that holds what the command asks for."""
        texts = _matching(list(argv), self._commands)
        if not texts and self._picked and tuple(argv) == OLD_JOURNAL:
            data = b"".join(lines for _, lines in sorted(self._picked, key=lambda p: _boot(p[0].split())))
            return Reply(CallKind.COMMAND, tuple(argv), data=data, exit_code=0, cut=True, detail=PICKED)
        if not texts:
            return not_asked(CallKind.COMMAND, argv)
        return Reply(CallKind.COMMAND, tuple(argv), data="\n".join(texts).encode(), exit_code=0, started=self.as_of)

    @property
    def replies(self) -> tuple[Reply, ...]:
        """The files, and each command as the report spells it."""
        told: dict[tuple[str, ...], Reply] = {}
        for words, section in self._commands:
            data = section.text.encode()
            told.setdefault(tuple(words), Reply(CallKind.COMMAND, tuple(words), data=data, exit_code=0))
        return tuple(sorted((*super().replies, *told.values()), key=lambda r: r.key))


def opened_bundle(path: str | Path, *, limit: int = UNPACKED) -> BundleHost | BugReportHost:
    """The recorded machine at `path`: a bundle, or a bug report, packed or not, told by content and not by name.

    InputError for what is neither, cannot be read, or is larger than `limit` bytes.
    """
    if Path(path).is_dir():
        return BundleHost(path, limit=limit)
    name, stream, _, close = opened(path)
    try:
        reader = unpacked(stream)
        data = bytearray()
        while len(data) < HEAD and (part := reader.read(HEAD - len(data))):
            data += part
        if not bug_report.is_nvidia(data.decode("utf-8", "replace")):
            return _no_report(path, bytes(data), limit)
        while part := reader.read(1 << 20):
            data += part
            if len(data) > limit:
                raise too_large(name, limit)
    finally:
        if close:
            stream.close()
    if reader.problem is not None:
        raise InputError(
            f"{name}: {reader.problem.en}", hint="copy it again, or read what there is of it with --input",
            zh=f"{name}：{reader.problem.in_('zh')}", hint_zh="请重新复制，或用 --input 读取已有部分",
        )  # fmt: skip
    return BugReportHost(path, data.decode("utf-8-sig", "replace"))


def _no_report(path: str | Path, head: bytes, limit: int) -> BundleHost:
    """A bundle; for a single file that is none, what to do with it."""
    packed = head[:4] == b"PK\x03\x04" or head[257:262] == _TAR
    if not packed and head and foreign(head, str(path)) is None:
        raise InputError(
            f"{path} is no bundle",
            hint="a bundle is what `gpudiag collect` writes, or nvidia-bug-report.log; other outputs go to --input",
            zh=f"{path} 不是录制包",
            hint_zh="录制包由 `gpudiag collect` 写出，或为 nvidia-bug-report.log；其他输出请用 --input",
        )
    return BundleHost(path, limit=limit)


# --- sections -----------------------------------------------------------------------------


def _name(text: str) -> str:
    found = _HOST.search(text[:HEAD])
    return excerpt(found[1]) if found else ""


def _files(text: str, sections: Iterable[bug_report.Section], offset: int | None) -> Iterable[Reply]:
    told: dict[str, Reply] = {}
    for found in _NOT_THERE.finditer(text):
        status = Status.DENIED if found[2] == "is not readable" else Status.UNSUPPORTED
        told[found[1]] = Reply(CallKind.FILE, (found[1],), status, detail=f"{found[1]} {found[2]}")
    for section in sections:
        path = section.name.split()[0].replace("/./", "/") if section.name else ""
        if path.startswith("/") and not _words(section.name):
            told[path] = Reply(CallKind.FILE, (path,), data=section.text.encode())
        for name, lines in _grepped(section):
            if name.startswith("/"):
                told.setdefault(name, Reply(CallKind.FILE, (name,), data=lines, cut=True, detail=PICKED))
    if ZONE not in told:  # times of its logs and of the report itself are of one zone, whichever that is
        told[ZONE] = Reply(CallKind.FILE, (ZONE,), data=_fixed_zone(offset or 0))
    return told.values()


def _grepped(section: bug_report.Section) -> Iterator[tuple[str, bytes]]:
    """The logs of which lines were picked: a path or ``journalctl -b -1``, and the lines."""
    if not section.name.startswith(bug_report.GREPPED):
        return
    name, lines = "", list[str]()
    for line in [*section.text.split("\n"), "  :"]:
        if head := _PICKED_HEAD.fullmatch(line):
            if name:
                yield name, "".join(f"{text}\n" for text in lines if text.strip()).encode()
            name, lines = head[1], []
        else:
            lines.append(line)


def _words(name: str) -> list[str]:
    """Program and arguments of a command's heading; empty for a file."""
    if not bug_report.command_of(name):
        return []
    try:
        words = shlex.split(name)
    except ValueError:
        words = name.split()
    start = next((i for i, w in enumerate(words) if w.rsplit("/", 1)[-1] in bug_report.TOOLS | bug_report.OTHERS), 0)
    words = [words[start].rsplit("/", 1)[-1], *words[start + 1 :]]
    return [*words[:-1], words[-1].removesuffix(":")]


_Commands = Sequence[tuple[list[str], bug_report.Section]]


def _matching(argv: Sequence[str], commands: _Commands) -> list[str]:
    """Texts of the sections that answer `argv`: mostly one; of the journal, each boot's."""
    program, asked = argv[0].rsplit("/", 1)[-1], set(argv[1:])
    same = [(words[1:], s.text) for words, s in commands if words[0] == program]
    if program == "journalctl":
        if "--list-boots" in asked or "-u" in asked:
            return [text for words, text in same if set(words) == asked][:1]
        kernel = [(words, text) for words, text in same if not any(_FILTERED.search(w) for w in words)]
        return [text for _, text in sorted(kernel, key=lambda item: _boot(item[0]))]
    if program == "dmesg":
        return [text for _, text in same][:1] if not asked else []
    wanted = _canonical(argv[1:])
    exact = [text for words, text in same if _canonical(words) == wanted]
    if not exact and program == "lspci":  # the more -v, the better: all of them name the devices
        listed = [
            (sum(w.count("v") for w in words if re.fullmatch(r"-[nvx]+", w)), text)
            for words, text in same
            if "-t" not in "".join(words)
        ]
        exact = [text for v, text in sorted(listed, key=lambda item: -item[0]) if v]
    return exact[:1]


def _canonical(words: Sequence[str]) -> list[str]:
    long = {"--query": "-q", "--display": "-d", "--status": "-s", "--errorcounters": "-e", "--matrix": "-m"}
    return sorted(long.get(w, w) for w in words)


def _boot(words: Sequence[str]) -> int:
    """``-b -1`` comes ahead of ``-b 0``."""
    number = re.search(r"(?:-b|--boot)[= ]?(-?\d+)", " ".join(words))
    return int(number[1]) if number else 0


# --- time ---------------------------------------------------------------------------------


def _dated(head: str) -> re.Match[str] | None:
    return next((found for pattern in _DATES if (found := pattern.search(head))), None)


def _offset(text: str) -> int | None:
    """Seconds that the machine's zone is ahead of UTC; None when nothing tells."""
    found = _dated(text[:HEAD])
    zone = found["z"] if found else ""
    if zone in _ZONES:
        return _ZONES[zone] * 3600
    if told := re.fullmatch(r"([+-])(\d\d)(\d\d)?", zone) or _OFFSET.search(text):
        seconds = int(told[2]) * 3600 + int(told[3] or 0) * 60
        return -seconds if told[1] == "-" else seconds
    return None


def _date(head: str, offset: int | None) -> int | None:
    """When the report was written, ns UTC; as if the zone were UTC where nothing tells it."""
    found = _dated(head)
    if not found:
        return None
    hour = int(found["h"][:2])
    if found["p"]:
        hour = hour % 12 + (12 if found["p"] == "PM" else 0)
    stamp = calendar_stamp(found["mo"], found["d"], f"{hour:02d}{found['h'][2:]}", found["y"])
    return stamp.value - (offset or 0) * SECOND if stamp else None


def _fixed_zone(offset: int) -> bytes:
    """A zone file (TZif, RFC 9636) of one offset."""
    return b"TZif" + bytes(16) + struct.pack(">6l", 0, 0, 0, 0, 1, 4) + struct.pack(">lbB", offset, 0, 0) + b"LOC\0"
