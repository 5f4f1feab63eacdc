"""How whole a captured document is, as far as its shape tells: proven by its end, broken, or not tellable.

What is cut may have held anything, so a broken document is no proof of health; nor is one whose end nothing marks.
"""

from __future__ import annotations

import json
from enum import StrEnum
from xml.parsers import expat

from knowledge.language import NO_TEXT, Text
from knowledge.lazy import lazy

END_KNOWN = "input.end_known"  # the fact that is False for a document whose end nothing marks
LAYOUT_KNOWN = "input.layout_known"  # and the one that is False for an input that no parser reads
XID_BESIDE = "input.xid_beside"  # an XID that a sentence beside an output tells of
OF_INPUTS = (END_KNOWN, LAYOUT_KNOWN, XID_BESIDE)  # they tell of what was given, not of the machine


class Whole(StrEnum):
    """What the shape of a text says of its end."""

    PROVEN = "proven"  # an end mark, or a structure that closes
    BROKEN = "broken"
    UNTOLD = "untold"


# A title in brackets is none: [P2P (Peer-to-Peer) GPU Bandwidth Latency Test]
_JSON = lazy(r"[\[{]\s*(?:[\[\]{}\"\d-]|true\b|false\b|null\b|\Z)")
_XML = lazy(r"\s*(?:<\?xml|<!DOCTYPE|<[A-Za-z_][\w.-]*[\s>])")
_FRAME = lazy(r"[ \t]*[+|╒╞╘├└│┌╭╰]")  # a line of a table that is drawn
# A branch of a tree is none of it:     └─1822 /usr/bin/nv-fabricmanager -c ...     │   ├─sda2     +-00.1  Intel Corporation
_BRANCH = lazy(r"[ \t│|]*(?:[├└]─{1,3}|[+|`]-{1,2})[^-─=+|┬┼┴]")
_CLOSED = lazy(r"[ \t]*(?:[+╘└╰][-=+═─┴╧┘╛╯ ]*[+╛┘╯]|\+[-=+]{3,})[ \t]*$")
# The table of plain nvidia-smi: since driver 325 a list of processes follows, also where none runs.
_TABLE = lazy(r"\| NVIDIA-SMI\s{1,20}\S{1,30}\s{1,60}(?:KMD |Driver )Version:")
_ROW = lazy(
    r"\|[^\n]{5,120}(?:[\dA-Fa-f]{8}:[\dA-Fa-f]{2}:[\dA-Fa-f]{2}\.\d |MiB ?/ {0,8}\d{1,8}MiB )[^\n]{0,60}\|"
)  # of a GPU, at the very beginning
_HOLDERS = lazy(r"\| (?:Compute )?[Pp]rocesses:")
_ATTACHED = lazy(r"(?m)^Attached GPUs {1,60}: (\d{1,4})\r?$")
_KEY = lazy(r"[ \t]{1,40}[^:]{1,120}:[ \t]*$")  # of a report a line whose value is missing
# The keys of one GPU down to its processes, of which each has its own; with how far they are set in.
_NAMED = lazy(r"(?m)^( +)(\w[^:\r\n]{0,80}?) *(?::.*)?\r?$")
_PROCESSES = lazy(r"(?m)^ {4}(?:Compute )?Processes\b")
# What stands last: of drivers since 560 the capabilities, whose only line is EGM; before that the processes.
_LAST = lazy(
    r"(?m)^ {4}(?:(?:Compute )?Processes *: None|Capabilities\r?\n {8}EGM *: \S+)\r?\s*\Z|^ {12}Used GPU Memory *: (?:N/A|\d+ MiB)\r?\s*\Z"
)
# A benchmark that prints its result last, and how that begins. nccl-tests:  #       size         count      type   redop    root     time   algbw   busbw #wrong
_RUNS = (
    (lazy(r"(?m)^#\s{1,12}size\s{1,12}count\s{1,12}type\b.{0,120}\bbusbw\b"), lazy(r"(?m)^# Avg bus bandwidth\s")),
    # 10.0%  proc'd: 2811 (51211 Gflop/s) - 2790 (50811 Gflop/s)   errors: 0 - 0   temps: 61 C - 63 C        gpu-burn
    (lazy(r"\d% {1,4}proc'd: -?\d{1,12} \(-?\d"), lazy(r"(?m)^Tested \d{1,3} GPUs?:")),
    # T/V                N    NB     P     Q               Time                 Gflops        HPL; read: (g=0): rw=read, bs=(R) ...        fio
    (lazy(r"(?m)^T/V\s{1,20}N\s{1,12}NB\s{1,12}P\s{1,12}Q\s"), lazy(r"(?m)^Finished\s{1,12}\d{1,9} tests with")),
    (
        lazy(r"(?m)^\S.{0,80}: \(g=\d{1,6}\): rw="),
        lazy(r"(?m)^Run status group \d|: \(groupid=\d{1,6}, jobs=\d{1,6}\): err=\s{0,3}[1-9]"),
    ),
)
_GPU = lazy(r"(?m)^GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]")


def whole(text: str) -> tuple[Whole, Text]:
    """How whole a document is; why, where it is broken."""
    start = text.lstrip("\ufeff \t\r\n")
    if _JSON.match(start):
        return _json(start)
    if _XML.match(start):
        return _xml(start)
    if why := _report(text):
        return Whole.BROKEN, why
    if _ROW.match(start):
        return Whole.BROKEN, Text(
            "is rows of nvidia-smi's table without its head: what else the node has, nobody can tell",
            "是 nvidia-smi 表格中的几行，没有表头：节点上其余情况无从得知",
        )
    last = text.rstrip().rpartition("\n")[2]
    if _FRAME.match(last) and not _BRANCH.match(last) and not _CLOSED.match(last):
        return Whole.BROKEN, Text("is cut off: its table does not end", "不完整：表格没有结尾")
    if tables := [m.end() for m in _TABLE.finditer(text)]:
        if not _HOLDERS.search(text, tables[-1]):
            return Whole.BROKEN, Text(
                "is cut off: the list of processes below its table is missing", "不完整：缺少表格下方的进程列表"
            )
        return Whole.PROVEN, NO_TEXT
    for begins, ends in _RUNS:
        if (began := begins.search(text)) and not ends.search(text, began.end()):
            return Whole.BROKEN, Text(
                "is of a run without its result: it was cut off, still goes on, or hangs",
                "是没有结果的测试运行：输出被截断、仍在运行或已挂起",
            )
    if text.rstrip().endswith("# EOF") or _every_section(text):  # OpenMetrics
        return Whole.PROVEN, NO_TEXT
    return Whole.UNTOLD, NO_TEXT


def _json(text: str) -> tuple[Whole, Text]:
    """One value or several behind each other (a line each, or pretty ones); words behind the last are a pasted prompt."""
    decoder, at, found = json.JSONDecoder(strict=False), 0, 0
    while at < len(text):
        try:
            _, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            if found and text[at] not in "{[":
                return Whole.PROVEN, NO_TEXT
            return Whole.BROKEN, Text("is cut off or damaged: the JSON does not end", "不完整或已损坏：JSON 没有结尾")
        found += 1
        while at < len(text) and text[at] in " \t\r\n,;":
            at += 1
    return Whole.PROVEN, NO_TEXT


_TOKEN = lazy(r'"(?:[^"\\]|\\.)*"|[{}\[\],]')


def closed(text: str) -> str:
    """Of JSON that is cut off or damaged what can be read: up to its last whole value, with what was open closed. Empty when nothing can."""
    start = text.lstrip("\ufeff \t\r\n")
    if not _JSON.match(start):
        return ""
    try:
        json.JSONDecoder(strict=False).raw_decode(start)
    except json.JSONDecodeError as fault:
        start = start[: fault.pos]
    except RecursionError:
        return ""
    open_, end, still = [], 0, ""
    for m in _TOKEN.finditer(start):
        match m[0]:
            case "{" | "[":
                open_.append("}" if m[0] == "{" else "]")
            case "}" | "]":
                if not open_ or open_.pop() != m[0]:
                    break
                end, still = m.end(), "".join(reversed(open_))
            case ",":
                end, still = m.start(), "".join(reversed(open_))
    return start[:end] + still


def _xml(text: str) -> tuple[Whole, Text]:
    parser = expat.ParserCreate()
    try:
        parser.Parse(text.encode("utf-8", "replace"), True)
    except expat.ExpatError as fault:
        if fault.code == expat.errors.codes[expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT]:
            return Whole.PROVEN, NO_TEXT
        return Whole.BROKEN, Text(
            f"is cut off or damaged: line {fault.lineno}", f"不完整或已损坏：第 {fault.lineno} 行"
        )
    return Whole.PROVEN, NO_TEXT


def _report(text: str) -> Text | None:
    """Of ``nvidia-smi -q``: GPUs that it announces and does not show, a last section or a last line without content."""
    if "NVSMI LOG" not in text[:65_536]:
        return None
    attached = _ATTACHED.search(text)
    if attached is None:
        return Text("is cut off: it does not say how many GPUs there are", "不完整：没有说明有多少个 GPU")
    wanted, seen = int(attached[1]), len(_GPU.findall(text))
    of_one = seen == 1 and _LAST.search(text[-512:])  # nvidia-smi -q -i N: it announces all GPUs and shows that one
    if seen < wanted and not of_one:
        return Text(
            f"is cut off: it announces {wanted} GPUs and shows {seen}",
            f"不完整：声明有 {wanted} 个 GPU，只列出 {seen} 个",
        )
    last = text[-512:].rstrip().rpartition("\n")[2]
    if last.startswith(" ") and ":" not in last and seen == wanted:
        return Text("is cut off: its last section is empty", "不完整：最后一节没有内容")
    if _KEY.match(last):
        return Text("is cut off: its last line has no value", "不完整：最后一行没有值")
    return None


def _every_section(text: str) -> bool:
    """Whether a report of ``nvidia-smi -q`` goes to its last section and says as much of each GPU as of every other one.

    Of a single GPU nothing betrays a hole: ``nvidia-smi -q -x`` has an end.
    """
    if "NVSMI LOG" not in text[:65_536] or not _LAST.search(text[-512:]):
        return False
    starts = [m.start() for m in _GPU.finditer(text)]
    gpus = [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]
    ends = [_PROCESSES.search(gpu) for gpu in gpus]
    if len(gpus) < 2 or not all(ends):
        return False
    named = [_NAMED.findall(gpu[: end.start()]) for gpu, end in zip(gpus, ends, strict=True) if end]
    return ("    ", "Product Name") in named[0] and all(n == named[0] for n in named)


_SAYS = lazy(r"\bends early\b|\bis cut\b|\bnot well formed\b")


def says_cut(detail: str) -> bool:
    """Whether a parser's reason says that it missed a part of its text."""
    return _SAYS.search(detail) is not None
