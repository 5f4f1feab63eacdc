"""Log lines and tracebacks within a message: the kernel-log and job-log parsers themselves read them.

They cost a tenth of a second to load, so they are only asked when a message looks like a paste.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from assistant.intent.query import PASTED
from assistant.intent.tables import tables
from knowledge.lazy import lazy
from knowledge.observation import Observation, Source, Status

if TYPE_CHECKING:
    from knowledge.catalog.lookup import Match

MOST = 200  # observations kept of one message
_I = re.IGNORECASE
# What the lines of logs look like. Each begins with something that no sentence has.
_LINE = lazy(
    r"NVRM:|S?Xid \(|\bNCCL (?:WARN|INFO|ERROR)|Traceback \(most recent|CUDA error: |CUDA out of memory\.|"
    r"RuntimeError:|[A-Za-z]{2,40}Error: |"
    r"torch\.(?:cuda|distributed|OutOf)[A-Za-z.]*Error|Watchdog caught|ProcessGroupNCCL|\bBUG: |Oops: |Kernel panic|"
    r"amdgpu(?: [0-9a-f:.]{4,12})?: |AER: |pcieport [0-9a-f]{4}:|mlx5_core [0-9a-f]{4}:|mce: \[|EDAC |segfault at |Out of memory: Kill|oom-kill:|soft lockup|blocked for more than|"
    r"^\[ *[0-9]{1,9}\.[0-9]{3,9}\]|^[A-Z][a-z]{2} [ 0-9][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2} |^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}|"
    r"\[rank[0-9]+\]:|^[A-Za-z0-9.-]{1,64}:[0-9]{2,8}:[0-9]{2,8} \[[0-9]+\]|File \"[^\"]{1,200}\", line [0-9]|"
    r"EXT4-fs (?:error|warning)|slurmstepd: error|slurmd: error|srun: error|DUE TO TIME LIMIT|exitcode *: |Signal 9|nvidia-nvswitch[0-9]|No devices were found|"
    # what the tools around a job print: container runtimes, data loaders, kubectl, linkers
    r"Error response from daemon|could not select device driver|unknown or invalid runtime name|nvidia-container-cli: |OCI runtime create failed|unresolvable CDI devices|"
    r"[Dd]ata[Ll]oader worker \(pid|unable to open shared memory object|bus error encountered in worker|\(core dumped\)|Fatal Python error: |"
    r"[Tt]erminated with exit code [0-9]|Reason: *OOMKilled|cu(?:DNN|BLAS|FFT|SPARSE|SOLVER) error: |NCCL error: |lib[A-Za-z0-9_.+-]{2,40}\.so(?:\.[0-9]+)*: cannot open shared object file|"
    r"NVIDIA driver on your system is too old|Found no NVIDIA driver on your system|CUDA driver version is insufficient for CUDA runtime|"
    r"RmInitAdapter(?: failed|:)|rm_init_adapter failed|osInitNvMapping|(?i:invalid gres\b)|(?:Memory access fault|HW Exception) by GPU node-[0-9]|"
    r"\bcu(?:da)?[A-Z][A-Za-z0-9_]{2,40}(?:\([^()]{0,40}\))? (?:return(?:s|ed)|fail(?:s|ed) with|gives|gave|返回|报) ?(?:error )?(?:code )?[0-9]{1,3}\b|"
    r"Unable to determine the device handle|Failed to initialize NVML|couldn't communicate with the NVIDIA driver|bash: line [0-9]|"
    r"(?<![Nn]o )(?<!is )(?<!没有)(?<!没有 )\b(?i:cuda|hip) (?i:error)(?: code)?[ :=(#]{1,2}[0-9]{1,3}\b",
    re.MULTILINE,
)


# what the driver prints behind "NVRM: ", and people quote without it
_OF_DRIVER = lazy(r"RmInitAdapter(?: failed|:)|rm_init_adapter failed|osInitNvMapping")


class Paste(NamedTuple):
    """A message taken apart."""

    said: str  # what the person says, without the lines of logs
    pasted: str  # the lines of logs
    observations: tuple[Observation, ...] = ()
    matches: tuple[Match, ...] = ()


def looks_pasted(raw: str) -> bool:
    """Whether `raw` holds a line of a log or a traceback, or quotes the message of an error."""
    return raw.count("\n") >= 6 or _place(raw) is not None


def _place(line: str) -> tuple[int, int] | None:
    """Where a line of a log, or the message of an error, begins in `line`, and where what tells it ends; None where neither stands."""
    if (found := _LINE.search(line)) is not None:
        return found.span()
    low = line.lower()
    places = ((at, at + len(message)) for message in tables()["messages"] if (at := low.find(message)) >= 0)
    return min(places, default=None)


def take(raw: str, said: str) -> Paste:
    """The log lines of `raw` read by the parsers; `said` is the message in its normal spelling."""
    if not looks_pasted(raw):
        return Paste(said, "")
    from assistant.sources import parse_text
    from knowledge.catalog.lookup import find_signature

    words, lines = _apart(raw)
    pasted = "\n".join(lines)
    found = [o for o in parse_text("log", f"{pasted}\n") if o.status is Status.OK]
    observations = [replace(o, source=_source(o.source)) for o in found[:MOST] if not o.fact.startswith("log.")]
    matches = find_signature(pasted)
    if not observations and not matches:
        return Paste(said if "\n" not in said else " ".join(words) or said, "" if words else pasted)
    return Paste(" ".join(words), pasted, tuple(observations), tuple(matches[:8]))


def _source(source: Source) -> Source:
    return replace(source, call=PASTED)


def _apart(raw: str) -> tuple[list[str], list[str]]:
    """What is said, and the lines of logs; a question on the line of a log is said."""
    words: list[str] = []
    lines: list[str] = []
    inside = False  # of a traceback or a code block
    for line in raw.replace("```", "\n```\n").split("\n"):
        fence = line.strip().startswith("```")
        if fence:
            inside = not inside
            rest = line.strip().strip("`").strip()
            if rest:
                lines.append(rest)
            continue
        if (place := _place(line)) is not None:
            ahead, log, behind = _split(line, *place)
            words += [w for w in (ahead, behind) if w]
            lines.append(log if "NVRM:" in log else _OF_DRIVER.sub(r"NVRM: \g<0>", log, count=1))
            continue
        if inside or line.startswith(("  ", "\t", ">")) or not line.strip() or (lines and _unasked(line)):
            lines.append(line.removeprefix(">").removeprefix(" "))
        else:
            words.append(line.strip())
    return words, lines


# what does this mean: NVRM: Xid (...)      gpu-12 says "NVRM: ..."      `CUDA error: ...` why?
_AHEAD = lazy(
    r"^(.{3,160}?)(?:[:\uff1a]|\u662f|[\u201c\"'`\u2018]|\bsays?\b|\bmeans?\b|\bgot\b|\bis\b|\bget(?:ting)?\b|\bsee(?:ing)?\b|\bwith\b|\bdoes\b|\bare\b|\bwhy\b|\bfix\b|\berror\b|\bthis\b|\bof\b|\babout\b|\bexplain\b|\u62a5|\u62a5\u9519|\u51fa\u73b0|\u610f\u601d|\u89e3\u91ca|\u8fd9\u4e2a)"
    r"\s*[\"'`\u201c\u2018]?\s*$",
    _I,
)
_STAMP = lazy(
    r"^(?:\[[^\]]{1,40}\]|<\d+>|[A-Z][a-z]{2} [ \d]\d [\d:]{8}|\d{4}-\d\d-\d\d|[\w.-]+:\d+:\d+ \[\d\]|kernel:|[A-Za-z0-9_.-]+ kernel:)"
)
_BEHIND = lazy(
    r"[\"'`\u201d\u2019]\s+[,.\u2014-]?\s*(?=[A-Za-z\u4e00-\u9fff])|[\"'`\u201d\u2019](?=[\u4e00-\u9fff])|(?<=[.!?])\s+(?=(?:what|why|how|can|is|should|do|does|any|help|please|so)\b)|(?<=\))\s+(?=(?:what|why|how|can|should|any|help|please|so)\b)|"
    r",\s+(?=(?:what does|what is|why|how do|can i|is this|should i|what should)\b)|\s+[-\u2014]+\s+(?=[A-Za-z\u4e00-\u9fff])|[\uff0c\u3002\uff1f\uff1b]\s*|\s+(?=[\u4e00-\u9fff])|\s+(?=(?:what does|what do i do|what should i|how do i|how to fix|can i keep|is this bad)\b)|\s+(?=means?\s*\??$)",
    _I,
)


def _split(line: str, at: int, end: int) -> tuple[str, str, str]:
    """What is said ahead of a log line, the line, and what is said behind it; `at` to `end` belongs to the line."""
    ahead = ""
    said = line[:at]
    if at > 2 and not _STAMP.match(line) and any(p.search(said) for p in (_AHEAD, _HAN, _ASKS)):
        ahead, line, end = said.strip(" `\"'\u201c\u2018"), line[at:], end - at
    behind = ""
    for found in _BEHIND.finditer(line, end):
        tail = line[found.end() :]
        if _ASKS.search(tail) or (_HAN.search(tail) and not _LINE.search(tail)):
            line, behind = line[: found.start()], tail.strip()
            break
    return ahead, line.strip("`\"' \u201c\u201d"), behind


_HAN = lazy("[\u4e00-\u9fff]")
_ASKS = lazy(
    r"\?\s*$|\uff1f|(?<![a-z])(?:what|why|how|can i|can we|should|is this|does this|explain|please|means?|meaning|help|is it|any idea)(?![a-z])|\u4ec0\u4e48|\u600e\u4e48|\u5417|\u4e3a\u4f55|\u5982\u4f55|\u89e3\u91ca",
    _I,
)


def _unasked(line: str) -> bool:
    """Whether a line between log lines asks nothing."""
    return _ASKS.search(line) is None and _HAN.search(line) is None and len(line.split()) > 3 and not line[0].isupper()
