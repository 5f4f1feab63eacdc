"""Application log lines without what launchers put in front of them.

torchrun, srun, mpirun, Ray, kubectl, container runtimes and syslog all mark lines with the
process they came from. The mark is kept as the `label` of a line, so that the lines of one
process can be told from those of its neighbours; a rank is only taken where the mark names
a global one (``[rank3]:``, ``[1,3]<stderr>:``, ``[Rank 3]``). A local rank (``[default3]:``)
or a Slurm task (``3:``) is a label: on a second node the same number is another process.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from functools import cache, lru_cache
from typing import Any

import re2

from knowledge.lazy import lazy
from knowledge.observation import Clock, Scope, Subject
from knowledge.record import dataclass
from knowledge.text import clean
from probes.base import Context, Line
from probes.parse._json import loaded
from probes.parse._serving_lines import ANSWERED, LEVELS
from probes.parse._speakers import hearsay_line
from probes.parse._step_lines import STEPS

MAX_LINE = 8192  # characters looked at; longer lines are base64 or dumps
MAX_PREFIXES = 8

# 2024-03-03T12:11:38.123456789Z stderr F text            (container runtime interface)
# [2026-03-03 12:11:38] text    2026-03-03 12:11:38,123 text    2026-03-03T12:11:38+08:00 text
#  [2026-03-03 12:11:38] iteration        1/ (Megatron-LM)      [titan] 2026-03-03 12:11:38,123 - root - INFO - step:  1 (torchtitan)
# [2026-03-03 12:11:38 DP0 TP0] Decode batch. #running-req: 20 (SGLang)
_TIME = lazy(
    r"(?:\[titan\])? ?\[?(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))? ?(Z|UTC|[+-]\d\d:?\d\d)?(?: [A-Z]P\d{1,4}){0,4}\]?"
    r"(?: (?:stdout|stderr) [FP](?: |$)|[:,]?(?: |$))"
)
_RANK = lazy(r"\[rank ?(\d{1,6})\]: ?")  # [rank3]: Traceback (most recent call last):
_ROLE = lazy(r"\[([A-Za-z_][A-Za-z_-]{0,30})(\d{1,5})\]: ?")  # [default3]:epoch 1
_MPI = lazy(r"\[(?:[\w.@-]{1,80}@)?\d{1,9},(\d{1,7})\]<(?:stdout|stderr|stddiag)>: ?")  # [1,3]<stderr>:text
_TASK = lazy(r" {0,5}(\d{1,6}):(?: |$)")  # "3: text", srun --label
# (RayTrainWorker pid=1234, ip=10.0.0.1) text     (Worker_TP0 pid=77) text     (VllmWorker rank=1 pid=77) text     (pid=77) text
_RAY = lazy(
    r"\(((?:[\w.:]{1,80} )?(?:rank=\d{1,5} )?pid=\d{1,9}(?:, ip=[\w.:]{1,60})?)\)(?: \[repeated [^\]]{1,80}\])? ?"
)
_POD = lazy(r"\[pod/([\w./-]{1,200})\] ?")  # [pod/train-0/main] text
_COMPOSE = lazy(r"([\w.-]{1,60}[-_]\d{1,3}) {1,40}\| ?")  # vllm-1  | text
_HOST = lazy(r"([a-z][a-z0-9-]{0,60}\d(?:\.[a-z0-9.-]{1,80})?): ")  # node5: text, pdsh
# Mar  3 12:11:38 gpu-12 train.sh[4242]: text
_SYSLOG = lazy(r"([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) ([\w.-]{1,80}) [\w./@-]{1,80}(?:\[\d{1,9}\])?: ")
_VLLM = lazy(r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (\d\d)-(\d\d) (\d\d):(\d\d):(\d\d) \[?[\w./]{1,80}:\d{1,6}\]? ?")
# [E1206 18:44:12.715298746 ProcessGroupNCCL.cpp:607] [Rank 0] ...   (month and day, no year)
_GLOG = lazy(r"\[?[IWEF](\d{1,2})(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{1,9})")
_INLINE_RANK = lazy(r"\[(?:PG[^\]]{0,120} )?[Rr]ank (\d{1,6})\]")  # [PG ID 0 PG GUID 0(default_pg) Rank 3]
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"


@dataclass(frozen=True, slots=True)
class AppLine:
    """One line: where it stands, what it says, and which process wrote it as far as the line tells."""

    number: int
    raw: str
    text: str
    label: str = ""
    rank: int | None = None
    host: str = ""
    at: int | None = None  # ns of `clock`
    clock: Clock = Clock.NONE
    times: int = 1  # how many equal ones it stands for
    since: int = 0  # number of the first of them; its own where it stands for itself alone


def peel(line: Line, times: int = 1, since: int = 0) -> AppLine:
    """`line` without the marks of launchers and runtimes; of a message of several lines within JSON the first."""
    return _peeled(line, times, since)[0]


def _peeled(line: Line, times: int, since: int) -> list[AppLine]:
    """The lines of the message of `line`: more than one only where JSON holds them."""
    texts, fields = _unwrap(line.text)
    raw = clean(line.text[:MAX_LINE])
    if fields is None:
        return [_bare(line.number, raw, raw, times, since)]
    rank = fields.get("rank")
    told = next((found for key in _WHEN if (found := _TIME.match(f"{fields.get(key)} "))), None)
    at, clock = _timestamp(*told.group(1, 2, 3, 4)) if told else (None, Clock.NONE)
    out = []
    for text in texts:
        one = _bare(line.number, raw if len(texts) == 1 else text, text, times, since)
        if one.rank is None and type(rank) is int and 0 <= rank < 10**6:
            one = replace(one, rank=rank, label=f"rank{rank}")
        out.append(one if one.at is not None else replace(one, at=at, clock=clock))
    return out


def _bare(number: int, raw: str, text: str, times: int, since: int) -> AppLine:
    labels: list[str] = []
    rank: int | None = None
    host = ""
    at, clock = None, Clock.NONE
    for _ in range(MAX_PREFIXES):
        if (found := _RANK.match(text)) or (found := _MPI.match(text)):
            rank, label = int(found[1]), ""
        elif found := _TIME.match(text):
            label = ""
            if at is None:
                at, clock = _timestamp(found[1], found[2], found[3], found[4])
        elif found := _ROLE.match(text):
            label = found[1] + found[2]
        elif found := _RAY.match(text) or _POD.match(text) or _COMPOSE.match(text):
            label = found[1]
        elif found := _SYSLOG.match(text):
            host, label = found[2], found[2]
            if at is None:
                at, clock = _yearless(found[1])
        elif found := _VLLM.match(text):
            label = ""
            if at is None:
                month, day, *of_day = (int(part) for part in found.groups())
                at, clock = _compose(month, day, of_day, 0)
        elif (found := _HOST.match(text)) or (found := _TASK.match(text)):
            label = found[1]
            host = host or (found[1] if found.re is _HOST else "")
        else:
            break
        text = text[found.end() :]
        labels += [label] if label else []
    if rank is None:
        rank, text = _rank_inside(text)
    if at is None and (found := _GLOG.search(text[:200])):
        at, clock = _glog(found)
    key = f"rank{rank}" if rank is not None else " ".join(labels)
    return AppLine(number, raw, text, key, rank, host, at, clock, times, since or number)


def peel_all(lines: Iterable[Line], context: Context) -> list[AppLine]:
    """Every line without its marks, in order, but for those of a system log in which a program passes on what people write."""
    times, since = context.times, context.since
    return [
        one
        for line in lines
        if not hearsay_line(line.text)
        for one in _peeled(line, times.get(line.number, 1), since.get(line.number, 0))
    ]


def rank_subject(rank: int | None, document: Subject) -> Subject:
    """The rank that a line names, as part of the document: rank 3 of another log is another one; else the document."""
    return document if rank is None else Subject(Scope.RANK, str(rank), document)


def span(lines: Sequence[AppLine]) -> tuple[tuple[int, int] | None, Clock]:
    """First and last time that the lines tell, when all times are of one clock."""
    told = [(line.at, line.clock) for line in lines if line.at is not None]
    clocks = {clock for _, clock in told}
    if len(clocks) != 1:
        return None, Clock.NONE
    times = [at for at, _ in told if at is not None]
    return (min(times), max(times)), clocks.pop()


def _rank_inside(text: str) -> tuple[int | None, str]:
    """A rank named within the line; a progress bar may stand in front of it without a line end."""
    here = text.find("[rank")
    if here > 0 and (found := _RANK.match(text, here)):
        return int(found[1]), text[found.end() :]
    if found := _INLINE_RANK.search(text):
        return int(found[1]), text
    return None, text


# Where loggers put what was said, and the exception below it.
# {"log": "...", "stream": "stderr"} (Docker)    {"message": "...", "exc_info": "Traceback ..."} (python-json-logger)
# {"event": "...", "exception": "Traceback ..."} (structlog)    {"textPayload": "..."} (Google Cloud)
_SAID = ("log", "message", "msg", "event", "textPayload")
_RAISED = ("exc_info", "exception", "stack_trace", "traceback", "stack")
_WHEN = ("time", "timestamp", "@timestamp", "ts", "asctime")


def _unwrap(text: str) -> tuple[list[str], dict[str, Any] | None]:
    """The lines of a message that a container runtime or a logger stored as JSON, and the object; None where it is none."""
    text = text.strip()
    if not text.startswith("{") or not text.endswith("}"):
        return [], None
    try:
        data = loaded(text)
    except (ValueError, RecursionError):
        return [], None
    if not isinstance(data, dict):
        return [], None
    told = next((data[key] for key in _SAID if isinstance(data.get(key), str)), None)
    raised = next((data[key] for key in _RAISED if isinstance(data.get(key), str)), "")
    if told is None and not raised:
        return [], None
    lines = [clean(line[:MAX_LINE]) for part in (told or "", raised) for line in part.splitlines()]
    return lines or [""], data


def _timestamp(date: str, time: str, fraction: str | None, zone: str | None) -> tuple[int | None, Clock]:
    try:
        moment = datetime.fromisoformat(f"{date}T{time}")
    except ValueError:
        return None, Clock.NONE
    offset = timedelta(0)
    if zone and zone[0] in "+-":
        offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:])) * (-1 if zone[0] == "-" else 1)
    if abs(offset) >= timedelta(hours=24):
        return None, Clock.NONE
    try:
        seconds = int(moment.replace(tzinfo=timezone(offset)).timestamp())
    except (OverflowError, ValueError):
        return None, Clock.NONE
    ns = seconds * 10**9 + int((fraction or "0").ljust(9, "0"))
    return ns, Clock.REALTIME if zone else Clock.LOCAL


def _yearless(text: str) -> tuple[int | None, Clock]:
    month, rest = divmod(_MONTHS.find(text[:3]), 3)
    if rest:
        return None, Clock.NONE
    clock = text[7:].split(":")
    return _compose(month + 1, int(text[4:6]), [int(part) for part in clock], 0)


def _glog(found: re.Match[str]) -> tuple[int | None, Clock]:
    return _compose(int(found[1]), int(found[2]), [int(found[i]) for i in (3, 4, 5)], int(found[6].ljust(9, "0")))


def _compose(month: int, day: int, clock: list[int], ns: int) -> tuple[int | None, Clock]:
    try:
        moment = datetime(2000, month, day, clock[0], clock[1], clock[2], tzinfo=UTC)
    except ValueError:
        return None, Clock.NONE
    return int(moment.timestamp()) * 10**9 + ns, Clock.YEARLESS


# What is known of programs on GPUs. A mark of a launcher alone (``[rank3]:``) is not: what stands behind it may be anything.
_LAUNCHED = lazy(
    r"NCCL (?:INFO|WARN|version)|Traceback \(most recent call last\)|ProcessGroupNCCL"
    r"|slurmstepd: error|srun: error|CUDA error: |CUDA out of memory"
    # INFO 11-24 09:10:41 [gpu_worker.py:276] Available KV cache memory: 41.22 GiB        a server of language models
    r"|(?:INFO|WARNING|ERROR) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./]{1,80}\.py:\d{1,6}\]"
    # [2026-11-28 22:00:05,332] [INFO] [logging.py:107:log_dist] [Rank 0] step=10, skipped=2        DeepSpeed
    r"|\[(?:INFO|WARNING|ERROR)\] \[(?:logging|loss_scaler|launch|timer|engine|comm|stage\w{1,20}|\w{0,20}checkpoint_engine)\.py:\d{1,5}:\w{1,40}\]"
    # time=2026-11-29T10:11:01.331Z level=INFO source=types.go:130 msg="inference compute" id=GPU-1a2b library=cuda        ollama
    r"|source=(?:routes|sched|server|runner|gpu|types|device|ggml|images|llama)\.go:\d{1,6} msg="
    r"|\[(?:api_server|gpu_worker|kv_cache_utils|core|engine|llm_engine|async_llm)\.py:\d{1,5}\]"
)
_OFTEN = (*STEPS, *LEVELS, ANSWERED)
_KERNEL = lazy(r"NVRM:|\bkernel:|\] nvidia|\] pcieport|BIOS-e820")


def is_application_log(lines: Sequence[AppLine]) -> bool:
    """True when the lines come from a program on GPUs, and not from a kernel.

    Only then may a parser say that it saw none of what it looks for.
    """
    if any(_KERNEL.search(line.raw) for line in lines):
        return False
    return any(_understood(line.raw) for line in lines)


def _understood(text: str) -> bool:
    """Whether a text holds a line of a program on GPUs that some format reads."""
    return _LAUNCHED.search(text) is not None or holds(_OFTEN, text)


def matching(words: tuple[re.Pattern[str], ...], head: str) -> list[re.Pattern[str]]:
    """Those of `words` (triggers of a format) that stand anywhere in `head`: the others need not be looked for in its lines.

    Most logs hold none of them: RE2 tells that for all at once, as the scanner does.
    """
    found = holds(tuple(word.pattern for word in words), head)
    return [word for word in words if word.search(head)] if found else []


def holds(triggers: tuple[str, ...], text: str) -> bool:
    """Whether one of `triggers` (RE2) is in a text of any length."""
    return _any_of(triggers).search(text.encode(errors="replace")) is not None


@cache
def _any_of(triggers: tuple[str, ...]) -> Any:
    return re2.compile(("(?m)" + "|".join(f"(?:{trigger})" for trigger in triggers)).encode())


@lru_cache(maxsize=2)
def application_head(head: str) -> int:
    """20 for the log of a program on GPUs, whatever it holds: then "none seen" is an answer; 0 otherwise."""
    return 20 if _understood(head) else 0
