"""Several outputs in one text that nobody set apart: which lines each of them takes, and what is left.

People paste one output below the other: with a blank line, a code fence or a sentence between them, and a line of the kernel
log wherever it was printed. A block (lines without a blank one among them) that a format recognises alone begins an output of
that format; blocks that nobody recognises belong to the output ahead of them, as the blocks of any report do. A line of a log stands in
an output without belonging to it. What no output takes is left, to be read line by line. Line numbers stay those of the text.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from json import JSONDecoder
from typing import NamedTuple, TypeGuard

from knowledge.lazy import lazy
from knowledge.observation import Event, Status
from probes.around import bare
from probes.base import DocumentFormat, Format, LogFormat, leading, lines_of, scored
from probes.whole import Whole
from probes.whole import whole as whole_of

HEAD = 65_536  # characters that a block is recognised by
MOST = 512  # blocks that begin differently and are looked at: those of one report begin alike
_DIGITS = lazy(r"[0-9a-fA-F]*[0-9][0-9a-fA-F]*")
_HEADS = 2  # blocks ahead of an output that may be its heading
_AT_MOST = 16  # blocks of the beginning of an output that tell what it is
_LINE = 500  # characters of a line that tell whether it is one of a log
# [  101.250000] usb 1-1: ...     [Mon Nov 30 10:01:02 2026] usb 1-1: ...     Nov 30 10:01:02 gpu-12 kernel: usb 1-1: ...
_KERNEL = lazy(
    r"\[ {0,12}\d{1,12}\.\d{3,9}\] \S|\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\] \S"
    r"|(?:[A-Z][a-z]{2} [ \d]\d |\d{4}-\d\d-\d\d[T ])\d\d:\d\d:\d\d\S{0,20} \S{1,80} kernel: "
)
_STARTS = frozenset("[123456789JFMASOND")
# What an output may begin with: no field below another, no row of a framed table, no end of a bracket.
_HEADLINE = lazy(r"[^\s|+}\])<]|<\?xml|\+[-=]|\s+[A-Za-z0-9]+(?:\s+[A-Za-z0-9/%]+)+\s*$")
_FIELD = lazy(r"\s+[A-Z][^:]{0,60} : \S")
_TITLE = lazy(r" +[A-Z][A-Za-z /]{2,60}$")  # of a part of `nvidia-smi -q`
# Mon Nov 16 10:12:33 2026     +-------+     $ nvidia-smi
_LEADS = lazy(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w ]{4,12}\s*$|[+|][-=+|]{20,}\s*$|\$ \S")
# # HELP vllm:num_requests_running ...     DCGM_FI_DEV_GPU_TEMP{gpu="0"} 42
_METRIC = lazy(r"# (HELP|TYPE) |[A-Za-z_:][\w:]*(?:\{.*\})? [-+.\deE]+(?: \d+)?$")
_RULED = lazy(r"\+[-=+]{10,}")
# Nov 16 09:01:12 gpu-07 ...   2026-11-16T09:01:12 ...   [2026-11-16T09:12:33.120] error: ...   INFO 11-16 09:12:33 [...   n1:12:34 [3] NCCL INFO ...
_LOGGED = lazy(
    r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d |\[? ?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d|\[[A-Z][a-z]{2} \d\d \d{4} \d\d:|[IWEF]\d{4} \d\d:\d\d:\d\d"
    r"|(?:INFO|WARNING|ERROR|DEBUG) \d\d-\d\d \d\d:|\S{1,80}:\d{1,9}:\d{1,9} \[\d{1,3}\] |(?:docker|podman): Error )"
)
# How tools, and people in a table of their own, write that something is not well.
_TROUBLE = lazy(
    r"\b(?:FAIL(?:ED|URE)?|FAULTY?|CRIT(?:ICAL)?|ERRORS?|DEGRADED|OFFLINE|DOWN|DEAD|ALARM|FATAL|UNHEALTHY|EMERGENCY)\b"
)
_ROOT_ENDS = lazy(r"</[\w-]{1,60}>\s*$")
_PART = 30  # a certainty of rows that were picked out of a report
_FIRST = 6  # rows of a part without a headline, of which one tells whose it is
_WINDOW = 12  # lines that tell what an output is that begins there
_SURELY = 60  # a certainty that no line of another output has by chance
_CERTAINLY = 90  # the same of one line alone
_BEGINS = 3  # lines of a block that tell it from others: a ruled line begins tables of many kinds


class Piece(NamedTuple):
    """One output: its format, whether the commands behind prompts are to be left out of it, its first line (1-based), its text."""

    format: DocumentFormat
    commands: bool
    first: int
    text: str

    @property
    def last(self) -> int:
        """Its last line."""
        return self.first + self.text.count("\n")


class Apart(NamedTuple):
    """The outputs of a text in order, and what is a log in it: all other lines of that are blank. And the lines that tell of trouble below
    an output that is at its end, in no layout that anybody reads.
    """

    pieces: tuple[Piece, ...]
    logs: str
    troubled: tuple[int, ...] = ()


class Named(io.BytesIO):
    """A text as a file with a name for people."""

    def __init__(self, text: str, name: str) -> None:
        super().__init__(text.encode("utf-8", "surrogatepass"))
        self.name = name


class _Block(NamedTuple):
    start: int  # of its lines the first, from 0, and the one behind the last
    end: int


class _Run(NamedTuple):
    format: DocumentFormat
    commands: bool
    blocks: list[_Block]


def recognised(head: str) -> tuple[Format | None, bool]:
    """What recognises the first part of an input, a document also with a prompt, quote signs or marks around it; and whether
    the commands behind prompts are to be left out with them, since it is not recognised otherwise."""
    from probes import registry  # loads every parser

    for commands in (False, True):
        plain = bare(head, commands)
        found = registry.sniff(plain.text) if plain.found or not commands else None
        if isinstance(found, DocumentFormat):
            return found, commands
    return registry.sniff(head), False


def standing(text: str) -> set[int]:
    """The lines (1-based) that are, each by itself, surely of a log: those of the kernel with its time, and any that tell something."""
    from probes import registry
    from probes.parse import _kernel_unread
    from probes.parse.bug_report import CERTAIN
    from probes.scan import scan

    lines = _lines(text)
    logs = registry.log_formats()
    out = {n for n, line in enumerate(lines, 1) if line[:1] in _STARTS and _KERNEL.match(line)}
    for o in scan([Named(text, "")], logs).observations:
        line = o.source.line
        if o.status is not Status.OK or line is None or line > len(lines) or line in out:
            continue
        own = lines[line - 1][:_LINE]
        told = isinstance(o.value, Event) and max(f.sniff(own) for f in logs) >= CERTAIN
        if told or o.fact == _kernel_unread.FACT:  # a driver or a daemon begins that line
            out.add(line)
    return out


def apart(text: str, logged: Collection[int], whole: Format | None = None, commands: bool = False) -> Apart | None:
    """The outputs in `text`; None where it is one, or a log without any.

    `logged` are the lines (1-based) of a log that stand on their own, `whole` is what recognises the rest of the text, with its `commands`.
    """
    lines = _lines(text)
    blocks = [part for block in _blocks(lines, logged) for part in _parted(lines, block)]
    kinds = list(_kinds(lines, blocks))
    of_log = {block for block, (kind, _) in zip(blocks, kinds, strict=True) if _is_log(lines, block, kind)}
    below: list[_Block] = []
    runs = _runs(lines, blocks, kinds, of_log, below)
    troubled = tuple(n + 1 for block in below for n in range(*block) if _tells_trouble(lines, _Block(n, n + 1)))
    if isinstance(whole, DocumentFormat) and len(runs) < 2 and not troubled:
        if not logged and not any(isinstance(kind, LogFormat) for kind, _ in kinds):
            return None
        own = {block for run in runs for block in run.blocks}
        rest = [block for block in blocks if block not in of_log and block not in own]
        if not runs or (runs[0].format is not whole and rest and whole.sniff(_text(lines, *rest))):
            runs.append(_Run(whole, commands, rest))
    if not runs:
        return None
    log_lines = {n for block in _about(blocks, kinds) for n in range(*block)} | {n - 1 for n in logged}
    logs = "\n".join(line if n in log_lines else "" for n, line in enumerate(lines))
    return Apart(tuple(_piece(lines, run) for run in runs if run.blocks), logs, troubled)


def _about(blocks: Sequence[_Block], kinds: Sequence[tuple[Format | None, bool]]) -> Iterator[_Block]:
    """The blocks of logs, and those next to them that nobody recognises: what is told by several lines may have blank ones among them."""
    for stretch, group in groupby(zip(blocks, kinds, strict=True), key=lambda row: not _is_output(row[1][0])):
        rows = list(group)
        if stretch and any(isinstance(kind, LogFormat) for _, (kind, _) in rows):
            yield from (block for block, _ in rows)


def _lines(text: str) -> list[str]:
    return [line.text for line in lines_of(text)]


def _blocks(lines: Sequence[str], logged: Collection[int]) -> Iterator[_Block]:
    start = None
    for n, line in enumerate(lines):
        if line.strip() and n + 1 not in logged:
            start = n if start is None else start
        elif start is not None:
            yield _Block(start, n)
            start = None
    if start is not None:
        yield _Block(start, len(lines))


def _parted(lines: Sequence[str], block: _Block) -> Iterator[_Block]:
    """The outputs of a block, which stand below each other without a blank line: one ends where what begins is surely another's."""
    start = block.start
    while start < block.end:
        end = _closed(lines, start, block.end) or next(_others(lines, start, block.end), block.end)
        yield _Block(start, end)
        start = end


def _closed(lines: Sequence[str], start: int, end: int) -> int | None:
    """The first line below a JSON or XML document that begins at a line and closes; None where none does."""
    first = lines[start].lstrip()
    if first.startswith("<?xml"):
        return next((n + 1 for n in range(end - 1, start, -1) if _ROOT_ENDS.match(lines[n])), None)
    if first[:1] not in ("{", "["):
        return None
    stop = start + 1
    while True:  # four times as many lines each time: of many documents below each other none is looked through to the end of all
        text = "\n".join(lines[start:stop])
        try:
            _, length = JSONDecoder().raw_decode(text, len(text) - len(text.lstrip()))
            break
        except (ValueError, RecursionError):
            if stop >= end:
                return None
            stop = min(end, start + 4 * (stop - start))
    if text[length:].partition("\n")[0].strip():
        return None  # [   12.345678] of a log
    return start + 1 + text.count("\n", 0, length)


def _others(lines: Sequence[str], start: int, end: int) -> Iterator[int]:
    """The lines at which another output begins than the one that begins at `start`."""
    from probes.parse.bug_report import is_prompt

    seen: set[str] = set()
    start += is_prompt(lines[start])  # below the command that printed it
    for n in range(start + 1, end):
        line = lines[n][:_LINE]
        headed = bool(_HEADLINE.match(line) or (line.startswith("|") and n - 2 > start and _RULED.match(lines[n - 1])))
        if not headed and _FIELD.match(line):  # the first of a part that was cut out of a report
            headed = not all(_FIELD.match(line) or _TITLE.match(line) for line in lines[max(start, n - _FIRST) : n])
        if not headed or (shape := _shape(line)) in seen or len(seen) >= MOST:
            continue
        seen.add(shape)
        if _LOGGED.match(line) and not _LOGGED.match(lines[n - 1]):
            if _log_begins(lines, start, n, end):
                yield n
            continue
        if (at := _other(lines, start, n, end)) is not None:
            yield at


def _log_begins(lines: Sequence[str], start: int, n: int, end: int) -> bool:
    """Whether a log begins at a line, below an output that has no such lines."""
    if any(_LOGGED.match(line) for line in lines[start:n]):
        return False
    ahead, _ = recognised("\n".join(lines[start:n])[:HEAD])
    behind, _ = recognised("\n".join(lines[n : min(end, n + _WINDOW)]))
    return isinstance(ahead, DocumentFormat) and isinstance(behind, LogFormat)


def _shape(line: str) -> str:
    """What lines of one kind have in common."""
    if metric := _METRIC.match(line):
        return metric[1] or "metric"
    return _DIGITS.sub("0", line)


def _other(lines: Sequence[str], start: int, n: int, end: int) -> int | None:
    """The line at which another output begins than the one that began at `start`, where line `n` is what it is known by."""
    from probes import registry

    forms = [form for form in registry.document_formats() if form.files is None and form.name != registry.SEVERAL]
    closed = _closed(lines, n, end)
    stop = closed or min(end, n + _WINDOW)
    window = "\n".join(lines[n:stop])
    below = "\n".join(lines[n + 1 : stop + 1])[:HEAD]
    rows = scored(forms, window[:HEAD])
    scores = [(score, form) for score, form in rows if score and (closed or form.sniff(below) < score)]
    scores += [(score, form) for score, form in scored(forms, lines[n][:_LINE]) if score >= _CERTAINLY]
    above = "\n".join(lines[start:n])[:HEAD]
    least = _SURELY
    if not scores and not closed:  # a part without a headline: the row that it becomes known by
        if n - 1 > start and _TITLE.match(lines[n - 1]):
            window = "\n".join(lines[n - 1 : stop])
            above = "\n".join(lines[start : n - 1])[:HEAD]
            rows = scored(forms, window[:HEAD])
        known = "\n".join(lines[start : n + 1])[:HEAD]
        scores = [
            (score, form) for score, form in rows if score >= _PART and form.sniff(above) == 0 and form.sniff(known) > 0
        ]
        least = _PART
    found = list(dict.fromkeys(leading(scores)))  # of those that are known by this line
    top = max((score for score, _ in scores), default=0)
    if len(found) != 1 or top < least:
        return None
    ahead = recognised("\n".join(lines[start:n])[:HEAD])[0]
    if isinstance(ahead, LogFormat):  # of which the last line is one of a log, and this is none
        if top < _CERTAINLY or not _LOGGED.match(lines[n - 1]) or _LOGGED.match(lines[n]):
            return None
    elif ahead is None or ahead is found[0]:
        return None
    if not closed and found[0].sniff(lines[n]) >= top and ahead.sniff(window) >= top:
        return None  # a row of both
    at = n
    while at - 1 > start and (_LEADS.match(lines[at - 1]) or (lines[at][:1] == " " and _TITLE.match(lines[at - 1]))):
        at -= 1
    if at == n and _surer_below(found[0], lines[n - 1 : n + 1], top):
        at -= 1
    return at if at > start else None


def _surer_below(form: Format, pair: Sequence[str], top: int) -> bool:
    """Whether a line is known by the one above it, which is of the same output then: ``GPU 0: ...`` above what is said of its links."""
    return form.sniff(pair[1]) < form.sniff("\n".join(pair)) >= top


def _kinds(lines: Sequence[str], blocks: Sequence[_Block]) -> Iterator[tuple[Format | None, bool]]:
    """What recognises each block alone. Blocks that begin alike are of one kind."""
    known: dict[tuple[str, ...], tuple[Format | None, bool]] = {}
    for block in blocks:
        begins = lines[block.start : min(block.end, block.start + _BEGINS)]
        key = tuple(_DIGITS.sub("0", line[:200]) for line in begins)
        if key not in known:
            known[key] = recognised(_text(lines, block)) if len(known) < MOST else (None, False)
        yield known[key]


def _text(lines: Sequence[str], *blocks: _Block) -> str:
    return "\n\n".join("\n".join(lines[b.start : b.end])[:HEAD] for b in blocks)[:HEAD]


def _runs(
    lines: Sequence[str],
    blocks: Sequence[_Block],
    kinds: Sequence[tuple[Format | None, bool]],
    of_log: Collection[_Block],
    below: list[_Block],
) -> list[_Run]:
    """The outputs with the blocks of each; what stands behind the end of one, and is of none, goes to `below`."""
    runs: list[_Run] = []
    open_: list[_Block] = []  # blocks that nobody recognises alone, since the last that somebody did

    def close(ahead: _Run | None = None) -> None:
        """Give the open blocks to outputs of several such, to the one behind them, or to the one before."""
        left = _typed(lines, open_) if ahead is not None else len(open_)
        own, asked = open_[:left], open_[left:]  # behind a prompt stands what it asked for
        while own and (found := _first_of(lines, own, ahead)) is not None:
            run, at, end = found
            before(own[:at])
            if runs and runs[-1].format is run.format:
                runs[-1].blocks.extend(run.blocks)
            else:
                runs.append(run)
            own = own[end:]
        if ahead is not None and asked != open_ and _suits(lines, heads := [*own[-_HEADS:], *asked], ahead):
            asked = heads  # whose they are nobody can tell: both may read them
        before(own)
        if ahead is not None:
            ahead.blocks[:0] = asked
        open_.clear()

    def before(own: Sequence[_Block]) -> None:
        told = [n for n, block in enumerate(own) if _tells_trouble(lines, block)]
        if own and runs and not _ended(lines, runs[-1]):
            first = told[0] if told else len(own)  # what tells of no trouble is not asked where the output ends
            runs[-1].blocks.extend(own[:first])
            own = own[first:]
        if own and runs:
            (below if _ended(lines, runs[-1]) else runs[-1].blocks).extend(own)

    for block, (kind, commands) in zip(blocks, kinds, strict=True):
        if _is_output(kind):
            if runs and runs[-1].format is kind and len(open_) - _typed(lines, open_) == 0:
                runs[-1].blocks.extend((*open_, block))
                open_.clear()
                continue
            run = _Run(kind, commands, [block])
            close(run)
            runs.append(run)
        elif block in of_log:
            close()
        else:
            open_.append(block)
    close()
    return runs


def _tells_trouble(lines: Sequence[str], block: _Block) -> bool:
    return any(_TROUBLE.search(line[:_LINE]) for line in lines[block.start : block.end])


def _first_of(lines: Sequence[str], blocks: Sequence[_Block], ahead: _Run | None) -> tuple[_Run, int, int] | None:
    """The first output of several blocks of which nobody recognises one alone, and where among them it begins and is known."""
    for end in range(1, min(len(blocks), _AT_MOST) + 1):
        kind, commands = recognised(_text(lines, *blocks[:end]))
        if not _is_output(kind):
            continue
        if ahead is not None and ahead.format is kind:
            return None
        sure, start = kind.sniff(_text(lines, *blocks[:end])), 0
        while start + 1 < end and kind.sniff(_text(lines, *blocks[start + 1 : end])) >= sure:
            start += 1
        return _Run(kind, commands, list(blocks[start:end])), start, end
    return None


def _typed(lines: Sequence[str], blocks: Sequence[_Block]) -> int:
    """The place of the last of the blocks that begins with a command at a prompt; their number where none does."""
    from probes.parse.bug_report import is_prompt

    return next((n for n in range(len(blocks) - 1, -1, -1) if is_prompt(lines[blocks[n].start])), len(blocks))


def _is_output(kind: Format | None) -> TypeGuard[DocumentFormat]:
    return isinstance(kind, DocumentFormat) and kind.files is None


def _ended(lines: Sequence[str], run: _Run) -> bool:
    """Whether an output says itself that it is at its end: nothing behind it is of it."""
    return whole_of(_piece(lines, run).text)[0] is Whole.PROVEN


def _is_log(lines: Sequence[str], block: _Block, kind: Format | None) -> bool:
    """Whether a block is a log, and not the end of an output with a line of a log in it, or below it."""
    from probes import registry

    return isinstance(kind, LogFormat) and kind.sniff(_text(lines, block)) >= registry.LOG


def _suits(lines: Sequence[str], blocks: Sequence[_Block], run: _Run) -> bool:
    """Whether an output is as surely of its kind with these blocks ahead of it; nothing stands ahead of JSON or XML."""
    if blocks and lines[run.blocks[0].start].lstrip()[:1] in ("{", "[", "<"):
        return False
    return run.format.sniff(_text(lines, *blocks, *run.blocks)) >= run.format.sniff(_text(lines, *run.blocks))


def _piece(lines: Sequence[str], run: _Run) -> Piece:
    """The output from its first block to its last; what stands between and is not of it is blank."""
    start, end = run.blocks[0].start, run.blocks[-1].end
    own = [""] * (end - start)
    for block in run.blocks:
        own[block.start - start : block.end - start] = lines[block.start : block.end]
    return Piece(run.format, run.commands, start + 1, "\n".join(own))
