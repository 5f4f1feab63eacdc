"""Several outputs in one file: nvidia-bug-report.log, ruled banners, headings, and transcripts of a shell.

Each section is read by the format that recognises it; line numbers are those of the whole
file. nvidia-bug-report.log::

    ____________________________________________

    /usr/bin/nvidia-smi --query

    ==============NVSMI LOG==============

Banners and headings::

    ################################################################################
    # idle :: topo -m
    # $ nvidia-smi topo -m
    ################################################################################

    ===== ibstat =====
    ==> dmesg.log <==
    root@gpu-12:~# dmesg -T

Looks one after the other, each below its time (`probes.moments`)::

    === 2026-11-03 03:00 ===
    Tue Nov  3 03:00:00 UTC 2026
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from knowledge.language import Text
from knowledge.observation import Event, Observation, Status
from knowledge.record import dataclass
from probes import moments
from probes.base import Context, DocumentFormat, Format, Line, LogFormat, best, lines_of
from probes.parse._smi_emit import Emitter
from probes.parse._smi_errors import module_fits

NAME = "output-bundle"
REVISION = 1
HEAD = 65536
MOST = 64  # sections that are looked at to recognise a file
KNOWN = 30  # of the log format that leads in a section: what its lines tell counts, what they do not tell may stand elsewhere
CERTAIN = 60  # of a log format within a section: most lines are of that log
GREPPED = (
    "Scanning kernel log files"  # heading of lines that were picked out of logs: what is not there may have occurred
)

_NVIDIA = re.compile(r"^Start of NVIDIA bug report log file", re.MULTILINE)
_UNDERSCORES = re.compile(r"_{30,120}\s*$")
_META = re.compile(r"\*\*\* ls: ")
_ABSENT = re.compile(r"\*\*\* (\S{1,300}) (?:does not exist|is not readable)|Skipping ")
_REPORT = "==NVSMI LOG=="  # the headline of nvidia-smi -q, and a line of each report: where it stands twice, two were taken one after the other
_COUNTED = "\nAttached GPUs "
_STATISTICS = "NIC statistics:"  # the headline of ethtool -S, behind ethtool's own output
_RULE = re.compile(r"([#=*])\1{19,200}\s{0,4}$")
# ===== ibstat =====   --- lspci -vvv ---   ### dmesg   ==> /var/log/kern.log <==
_HEADING = re.compile(
    r"(?:([=*-])\1{2,80} (\S.{0,200}?) \1{3,80}|#{2,6} (\S.{0,200}?)(?: #{2,80})?|==> (\S.{0,200}?) <==)\s*$"
)
# $ ibstat    # dmesg    root@gpu-12:~# lspci -vvv    [root@gpu-12 ~]# ip -j link    + nvidia-smi -q
_PROMPT = re.compile(
    r"(?:[\w.-]{1,40}@([\w.-]{1,80})[: ][^$#>]{0,120}[$#>]|\[[\w.-]{1,40}@([\w.-]{1,80}) [^\]]{0,120}\][$#]|[$#+]) (\S.{0,20000})$"
)
_TYPED = re.compile(
    r"\$ (?:sudo )?(?:[\w.-]{0,40}/){0,8}[a-z][a-z0-9]{1,20}[\w.+-]{0,40}(?: |$)"
)  # behind a dollar sign any program
_UNAME = re.compile(r"^(?:uname: )?Linux ([\w.-]{1,80}) \d{1,2}\.\d{1,3}\.", re.MULTILINE)

# commands whose output is of use here; the second kind alone does not make a file a bundle
TOOLS = frozenset(
    [
        "nvidia-smi",
        "dmesg",
        "journalctl",
        "ibstat",
        "ibstatus",
        "ibv_devinfo",
        "ibdev2netdev",
        "ip",
        "lspci",
        "dcgmi",
        "rdma",
        "mlxlink",
        "perfquery",
        "nvbandwidth",
        "gpu_burn",
        "gpu-burn",
        "all_reduce_perf",
        "all_gather_perf",
        "alltoall_perf",
        "reduce_scatter_perf",
        "ib_write_bw",
        "ib_read_bw",
        "ib_send_bw",
        "ib_write_lat",
        "ib_read_lat",
        "ib_send_lat",
        "nvidia-bug-report.sh",
    ]
)
OTHERS = frozenset(
    [
        "cat",
        "tail",
        "head",
        "grep",
        "zcat",
        "uname",
        "hostname",
        "date",
        "uptime",
        "free",
        "df",
        "lscpu",
        "lsmod",
        "modinfo",
        "numactl",
        "systemctl",
        "ls",
        "ps",
        "top",
        "lsblk",
        "mount",
        "env",
        "printenv",
        "python",
        "python3",
        "torchrun",
        "srun",
        "mpirun",
        "sbatch",
        "squeue",
        "sinfo",
        "scontrol",
        "sacct",
        "kubectl",
        "crictl",
        "docker",
        "nvcc",
        "ethtool",
        "curl",
        "netstat",
        "ss",
        "sysctl",
        "ulimit",
        "echo",
        "which",
        "sensors",
        "ipmitool",
        "fuser",
        "lsof",
    ]
)
_WRAPPERS = frozenset(("sudo", "time", "timeout", "bash", "sh", "-c", "chroot", "nsenter", "srun"))


@dataclass(frozen=True, slots=True)
class Section:
    """One output within a file: what produced it, its first line (1-based, in the file), its text, its host if told."""

    name: str
    start_line: int
    text: str
    host: str = ""
    typed: bool = False  # at a prompt, by somebody who shows what it printed


@dataclass(frozen=True, slots=True)
class _Head:
    """A heading: its name, the lines that it takes, the host that a prompt names, and whether it is one."""

    name: str
    lines: int
    host: str = ""
    typed: bool = False
    timed: bool = False  # it says when what follows was taken


def split(text: str) -> list[Section]:
    """The sections of `text` in order; what stands ahead of the first heading is a section without a name."""
    lines = lines_of(text)
    heads = dict(_nvidia_heads(lines) if is_nvidia(text) else _heads(lines))
    out: list[Section] = []
    name, host, start, typed = "", "", 0, False
    index = 0
    while index <= len(lines):
        head = heads.get(index)
        if head is None and index < len(lines):
            index += 1
            continue
        body = lines[start:index]
        if any(line.text.strip() for line in body):
            out.append(Section(name, body[0].number, "\n".join(line.text for line in body), host, typed))
        if head is None:
            break
        if head.lines or any(
            line.text.strip() for line in body
        ):  # else a headline directly behind the command that printed it
            name, host, typed = head.name, head.host or host, head.typed
        start = index + head.lines
        index += max(1, head.lines)
    return out


def command_of(name: str) -> str:
    """The program that a heading names (``sudo /usr/bin/nvidia-smi -q`` is ``nvidia-smi``); empty when it names none known."""
    for word in name.split()[:8]:
        base = word.rsplit("/", 1)[-1].strip("`'\":$")
        if base in TOOLS or base in OTHERS:
            return base
        if base not in _WRAPPERS and not word.startswith("-") and not base.isdigit():
            break
    return ""


def sniff(head: str) -> int:
    """100 for nvidia-bug-report.log, for two or more headed outputs of which one is of a tool, and for several outputs that are read."""
    if is_nvidia(head):
        return 100
    heads = [found for _, found in _heads(lines_of(head))]
    commands = [command_of(found.name) for found in heads if found.name]
    tools = {command for command in commands if command in TOOLS}
    if len(commands) > 1 and tools:
        return 100
    headed = (
        any(commands) or any(found.typed for found in heads) or head.count(_COUNTED) > 1 or f"\n{_STATISTICS}" in head
    )
    looks = sum(found.timed for found in heads) > 1 and _are_outputs(head)
    return 100 if looks or (headed and _several(head)) else 0


def _are_outputs(head: str) -> bool:
    """Whether at least two of the sections are outputs of tools, and none of them is a part of a log."""
    from probes import registry

    formats = [f for f in registry.formats() if f.name != NAME]
    found = [best(formats, section.text[:HEAD]) for section in split(head)[:MOST]]
    return sum(isinstance(f, DocumentFormat) for f in found) > 1 and not any(isinstance(f, LogFormat) for f in found)


def _several(head: str) -> bool:
    """Whether at least two of the sections are outputs that some format reads, or one of those that somebody shows."""
    sections = split(head)[:MOST]
    read = [_is_read(section) for section in sections]
    shown = [section.typed and not _tells_nothing(section.name) for section in sections]
    return sum(read) > 1 or (sum(read) == 1 and any(s and not r for s, r in zip(shown, read, strict=True)))


def _is_read(section: Section) -> bool:
    return _reader(section)[0] is not None


def _reader(section: Section) -> tuple[Format | None, str, int]:
    """The format that reads a section, the text that it is given, and how many lines of that stand above the section."""
    from probes import registry

    formats = [f for f in registry.formats() if f.name != NAME]
    named = _with_command(section)
    by_command = best(formats, named[:HEAD]) if named else None
    chosen = best(formats, section.text[:HEAD])
    if isinstance(by_command, DocumentFormat) and chosen in (None, by_command):  # it may name the device, too
        return by_command, named, 1
    return chosen, section.text, 0


def _with_command(section: Section) -> str:
    """What was typed, and what it printed: rows that were picked out of an output are known by the command alone."""
    return f"$ {section.name}\n{section.text}" if section.typed else ""


def unread(text: str) -> list[tuple[int, str | Text]]:
    """What somebody shows of a command at a prompt, and no format reads, or not in full: what it printed may tell of trouble."""
    if is_nvidia(text):
        return []
    out: list[tuple[int, str | Text]] = []
    for section in split(text)[:MOST]:
        reader, given, above = _reader(section)
        if reader is None and section.typed and not (_tells_nothing(section.name) or _says_well(section.text)):
            out.append((section.start_line, section.name))
        elif isinstance(reader, DocumentFormat) and reader.unread is not None:
            out += [(section.start_line - 1 - above + line, what) for line, what in reader.unread(given)]
    return out


# systemctl is-active: active      nvidia-smi --gpu-reset: GPU 00000000:9D:00.0 was successfully reset. All done.
# nvidia-smi -pm 1: Enabled persistence mode for GPU 00000000:18:00.0.      -mig 1: Enabled MIG Mode for GPU 00000000:18:00.0
# nvidia-smi -lgc 1980: GPU clocks set to "(gpuClkMin 1980, gpuClkMax 1980)" for GPU 00000000:18:00.0
_WELL = re.compile(
    r"(?i)(?:active|enabled|running|ok|(?:all )?done\.?)|.{0,200} was successfully reset\.?(?: all done\.?)?"
    r"|(?:Persistence mode is already )?Enabled (?:persistence|MIG|ECC support|accounting)?.{0,20}for GPU [\dA-F:.]{1,20}|(?:GPU|Memory) clocks (?:re)?set to .{1,100}for GPU [\dA-F:.]{1,20}"
)


def _says_well(text: str) -> bool:
    """Whether each line that a command printed says that it is well, in a word."""
    return all(_WELL.fullmatch(line.strip()) for line in text.splitlines() if line.strip())


def _tells_nothing(command: str) -> bool:
    """Whether what a command prints is of no node's health: ``cd``, ``date``."""
    words = [w for w in command.split() if w != "sudo" and not w.startswith("-")]
    return not words or words[0] in _OF_SHELL or (words[0] in ("cat", "head") and set(words[1:]) <= _OF_SYSTEM)


_OF_SYSTEM: Final = frozenset(
    ["/etc/os-release", "/etc/lsb-release", "/etc/redhat-release", "/etc/hostname", "/proc/uptime"]
)
_OF_SHELL: Final = frozenset(
    ["cd", "ls", "pwd", "echo", "date", "hostname", "uname", "uptime", "whoami", "id", "clear", "env", "printenv", "which", "history", "exit",
     "su", "nvcc", "python", "python3", "pip", "export", "source", "ssh", "sleep", "watch", "tmux", "lsb_release", "vi", "vim", "nano",
     "nproc", "arch", "who", "tty", "stat", "wc", "mkdir", "cp", "mv", "rm", "chmod", "kill", "module", "conda", "git", "hostnamectl", "timedatectl", "man"]
)  # fmt: skip


def parse(text: str, context: Context) -> list[Observation]:
    """What the formats of the sections give. A log that stands in several sections counts once."""
    from probes import registry

    formats = [format_ for format_ in registry.formats() if format_.name != NAME]
    found = _UNAME.search(text[:HEAD])
    host = context.host or (found[1] if found else "")
    sections = split(text)
    if not is_nvidia(text):  # whose sections hold what their headings name
        sections = [own for section in sections for own in _outputs(section)]
    parts = [
        _section(section, formats, replace(context, host=context.host or section.host or host)) for section in sections
    ]
    host = host or next((section.host for section in sections if section.host), "")
    across = Emitter(replace(context, host=host), NAME, REVISION)  # what only two sections tell together
    module_fits(across, lines_of(text[:HEAD]))
    return _once([*parts, across.out])


def _outputs(section: Section) -> list[Section]:
    """The outputs that stand in one section, which nobody set apart."""
    from probes import pieces, registry

    logged = pieces.standing(section.text)
    rest = "\n".join("" if n in logged else line.text for n, line in enumerate(lines_of(section.text), 1))
    whole = registry.sniff(rest[:HEAD]) or best(
        registry.document_formats(), _with_command(replace(section, text=rest))[:HEAD]
    )
    if whole is FORMAT or (found := pieces.apart(section.text, logged, whole)) is None:
        return [section]
    own = [replace(section, start_line=section.start_line + piece.first - 1, text=piece.text) for piece in found.pieces]
    later = [replace(one, name="", typed=False) for one in own[1:]]
    return [*own[:1], *later, replace(section, name="", typed=False, text=found.logs)]


def _section(section: Section, formats: Sequence[Format], context: Context) -> list[Observation]:
    chosen, given, above = _reader(section)
    head, shift = section.text[:HEAD], section.start_line - 1
    if isinstance(chosen, DocumentFormat):
        return [_moved(o, shift - above) for o in chosen.parse(given, context)]
    if chosen is None:
        return []
    lines = [Line(line.number + shift, line.text) for line in lines_of(section.text)]
    out: list[Observation] = []
    for format_ in formats:
        if isinstance(format_, LogFormat) and (certainty := format_.sniff(head)) > 0:
            found = format_.parse(lines, context)
            # a page that happens to hold one such line is not a log in which nothing else was seen
            whole = certainty >= CERTAIN and not section.name.startswith(GREPPED)
            told = format_ is chosen and certainty >= KNOWN
            out += [o for o in found if whole or isinstance(o.value, Event) or (told and o.status is Status.OK)]
    return out


def _moved(observation: Observation, shift: int) -> Observation:
    source = observation.source
    if source.line is None or not shift:
        return observation
    return replace(observation, source=replace(source, line=source.line + shift))


def _once(parts: Sequence[list[Observation]]) -> list[Observation]:
    """All observations; of an event that several sections tell, as often as the section that tells it most often.

    A bug report holds the kernel log as dmesg, as journal and as file.
    """
    keys = [[_key(o) for o in part] for part in parts]
    counts = [Counter(key for key in row if key is not None) for row in keys]
    most: dict[tuple[str, ...], int] = {}
    for place, counted in enumerate(counts):
        for key, count in counted.items():
            if key not in most or count > counts[most[key]][key]:
                most[key] = place
    return [
        observation
        for place, (part, row) in enumerate(zip(parts, keys, strict=True))
        for observation, key in zip(part, row, strict=True)
        if key is None or most[key] == place
    ]


def _key(observation: Observation) -> tuple[str, ...] | None:
    value = observation.value
    if not isinstance(value, Event):
        return None
    return observation.fact, repr(observation.subject), repr(value.code), repr(sorted(value.fields.items()))


def is_nvidia(text: str) -> bool:
    """True when the first 64 KiB announce nvidia-bug-report.log."""
    return _NVIDIA.search(text[:HEAD]) is not None


def _nvidia_heads(lines: Sequence[Line]) -> Iterator[tuple[int, _Head]]:
    """Rules of underscores; the next line that is not empty is the file or the command."""
    index = 0
    while index < len(lines):
        if not _UNDERSCORES.match(lines[index].text):
            index += 1
            continue
        title = index + 1
        while title < len(lines) and not lines[title].text.strip() and title - index < 4:
            title += 1
        name = lines[title].text.strip() if title < len(lines) else ""
        taken = title - index + 1
        if name.startswith("*** "):
            if title + 1 < len(lines) and _META.match(lines[title + 1].text):
                taken += 1
            name = "" if _ABSENT.match(name) else name[4:]
        elif _UNDERSCORES.match(name):
            taken, name = 1, ""
        yield index, _Head(name, taken)
        index += taken


def _heads(lines: Sequence[Line]) -> Iterator[tuple[int, _Head]]:
    """Banners between two equal rules, headings of one line, and prompts."""
    index, stamped = 0, moments.stamped(lines)
    while index < len(lines):
        head = _banner(lines, index) or _one_line(lines[index].text)
        if head and head.timed and stamped:
            head = None
        if head:
            yield index, head
        index += max(1, head.lines) if head else 1


def _banner(lines: Sequence[Line], index: int) -> _Head | None:
    rule = _RULE.match(lines[index].text)
    if not rule:
        return None
    inside: list[str] = []
    for line in lines[index + 1 : index + 7]:
        if (end := _RULE.match(line.text)) and end[1] == rule[1]:
            break
        inside.append(line.text.strip().strip(rule[1]).strip())
    else:
        return None
    titles = [title for title in inside if title]
    commands = [title[2:] for title in titles if title.startswith("$ ")]
    name = commands[0] if commands else (titles[0] if titles else "")
    if not name or not (commands or rule[1] == "#" or _is_title(name)):
        return None
    return _Head(name, len(inside) + 2)


def is_prompt(line: str) -> bool:
    """Whether a command at a prompt stands in this line."""
    return (found := _one_line(line)) is not None and found.typed


def _one_line(text: str) -> _Head | None:
    if len(text) > 20200:
        return None
    if _REPORT in text or text.startswith(_STATISTICS):
        return _Head("", 0)
    if (found := _PROMPT.match(text)) and (found[1] or found[2] or command_of(found[3]) or _TYPED.match(text)):
        return _Head(found[3].strip(), 1, found[1] or found[2] or "", typed=True)
    if moments.moment_of(text) is not None:
        return _Head("", 1, timed=True)
    if found := _HEADING.match(text):
        name = found[2] or found[3] or found[4]
        if found[4] or _is_title(name):
            return _Head(name, 1)
    return None


def _is_title(name: str) -> bool:
    """True for a command or a file; a sentence between dashes is part of an output."""
    words = name.split()
    return bool(command_of(name)) or (
        len(words) == 1 and re.search(r"/|\.(?:log|txt|out|json|xml|csv|prom)$", name) is not None
    )


FORMAT = DocumentFormat(
    name=NAME,
    title="nvidia-bug-report.log and other files of several outputs",
    revision=REVISION,
    provides=(),  # whatever the formats of its sections provide
    sniff=sniff,
    parse=parse,
    unread=unread,
)
