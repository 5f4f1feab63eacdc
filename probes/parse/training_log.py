"""The steps of a training run as its log tells them: how long they take, and what becomes of loss and gradients.

Of each rank (or process) the lines of one kind make a series. What a line does not time is timed by the clock of the lines.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import PurePath

from knowledge.observation import Clock, Observation, Scalar, Scope, Status, Subject
from knowledge.record import dataclass
from knowledge.text import excerpt
from probes.base import Context, Line, LogFormat
from probes.parse import _pace
from probes.parse._app_emit import Emitter
from probes.parse._app_lines import AppLine, application_head, holds, peel_all, rank_subject
from probes.parse._pace import median
from probes.parse._step_lines import STEPS, Step, read

NAME, REVISION = "training-log", 3
TIMED = 5.0  # s between two lines, from which on a clock of whole seconds tells them apart by a fifth
GROWN = 10.0  # times the usual gradient: our habit; clipping hides it, and healthy runs peak for single steps
DIVERGED = 1.5  # times the loss that was reached: our habit
FEWEST, AT_END = 5, 20  # lines that tell how long a step waited for its data: how it goes now
EDGE = 3  # values of the loss at each end, of which the middle one counts
END = {"gradients": 5, "loss": 10}  # values at the end that show it
SKIPPED = (
    3  # lines at the end in which half of the steps or more were skipped: a scaler that looks for its scale skips few
)


@dataclass(frozen=True, slots=True)
class _Told:
    line: AppLine
    step: Step


def sniff(head: str) -> int:
    """30 for a log with lines of steps: what else is in it stays with the formats that know it."""
    found = holds(STEPS, head) and any(holds(STEPS, line) and read(line) is not None for line in head.splitlines())
    return 30 if found else application_head(head)


def parse(lines: Sequence[Line], context: Context) -> list[Observation]:
    """How many steps were read, how long they take, and what is odd about them."""
    emit = Emitter(NAME, REVISION, context)
    told = [
        _Told(line, step)
        for line in peel_all(lines, context)
        if holds(STEPS, line.raw) and (step := read(line.text)) is not None and step.kind != "validation"
    ]
    if not told:
        return emit.out
    _seen(emit, told)
    series = _series(told)
    _changes(emit, series)
    _ranks(emit, series)
    _numbers(emit, told)
    _skipped(emit, told)
    _data_wait(emit, told)
    last = told[-1].line
    emit.out.append(
        Observation(
            "training_pace", emit.document, None, Status.NONE_SEEN, emit.source(last.number), excerpt=excerpt(last.raw),
            detail="nothing else of the pace, the loss or the gradients stands out",
        )
    )  # fmt: skip
    return emit.out


def _seen(emit: Emitter, told: Sequence[_Told]) -> None:
    last = told[-1].line
    emit.fact("training.lines", emit.document, len(told), last.number, last.raw)
    numbers = [t.step.number for t in told if t.step.number is not None]
    if numbers:
        emit.fact("training.step.last", emit.document, numbers[-1], last.number, last.raw)
    own = [t for t in told if t.line.label == told[-1].line.label]
    losses = [t for t in own if t.step.loss is not None and math.isfinite(t.step.loss)]
    for fact, ends in (
        (("training.loss.first", losses[:EDGE]), ("training.loss.last", losses[-EDGE:])) if len(losses) > 1 else ()
    ):
        edge = ends[0] if fact.endswith("first") else ends[-1]
        emit.fact(
            fact,
            emit.document,
            median(t.step.loss or 0.0 for t in ends[: len(losses) // 2]),
            edge.line.number,
            edge.line.raw,
        )
    rates = [t for t in own if t.step.rate is not None]
    if rates:
        usual, line = median(t.step.rate or 0.0 for t in rates), rates[-1].line
        emit.fact("training.rate", emit.document, f"{_short(usual)} {rates[-1].step.unit}", line.number, line.raw)


def _data_wait(emit: Emitter, told: Sequence[_Told]) -> None:
    """Which share of the steps at the end the job waited for its data, where the lines tell both times."""
    timed = [t for t in told if t.step.data is not None and t.step.seconds is not None][-AT_END:]
    if len(timed) < FEWEST:
        return
    share = median(_data_share(t.step.data or 0.0, t.step.seconds or 0.0) for t in timed)
    job = Subject(Scope.JOB, PurePath(emit.document.id).name, emit.document)
    last = timed[-1].line
    emit.fact("job.step.data_wait.share", job, round(share, 1), last.number, last.raw)


def _data_share(data: float, step: float) -> float:
    """In percent; what is longer than the step is not counted in it."""
    return 100 * data / (step if data <= step else data + step)


# --- how long steps take ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Series:
    name: str
    rank: int | None
    unit: str  # "s", or what its rate is counted in
    values: Sequence[_pace.Value]
    lines: Sequence[AppLine]

    def said(self, took: float) -> str:
        """``4.1 s``, ``7100 tokens/s``."""
        return f"{_short(took)} s" if self.unit == "s" else f"{_short(1 / took)} {self.unit}"


def _series(told: Sequence[_Told]) -> list[_Series]:
    """Of each process the lines that tell its pace: where several kinds do, those of seconds, else the most."""
    groups: dict[tuple[str, int | None], list[_Told]] = defaultdict(list)
    for t in told:
        rank = t.line.rank if t.line.rank is not None else t.step.rank
        groups[_called(t.line.label) if rank is None else f"rank {rank}", rank].append(t)
    found = [_of_process(name, rank, own) for (name, rank), own in groups.items()]
    return [s for s in found if s is not None]


def _called(label: str) -> str:
    """The mark of a launcher as people say it: a number alone is a task of Slurm."""
    return f"task {label}" if label.isdigit() else label


def _of_process(name: str, rank: int | None, told: Sequence[_Told]) -> _Series | None:
    kinds: dict[tuple[str, str], list[_Told]] = defaultdict(list)
    for t in told:
        if t.step.seconds is not None:
            kinds[t.step.kind, "s"].append(t)
        elif t.step.rate is not None:
            kinds[t.step.kind, t.step.unit].append(t)
    if not kinds:
        return _by_clock(name, rank, told)
    kind, unit = max(kinds, key=lambda k: (len(kinds[k]), k[1] == "s"))
    own = _alike(kinds[kind, unit])
    took = [t.step.seconds if unit == "s" else 1 / (t.step.rate or 1.0) for t in own]
    values = [_pace.Value(t.line.number, t.step.number, s or 0.0, t.line.at) for t, s in zip(own, took, strict=True)]
    if own[-1].step.may_add_up and unit == "s":
        values = _pace.apart(values) or values
    return _Series(name, rank, unit, values, [t.line for t in own])


def _alike(told: Sequence[_Told]) -> Sequence[_Told]:
    """The lines of the last load: with a larger batch or longer sequences a step takes longer, and should."""
    last = told[-1].step.load
    start = next((i + 1 for i in range(len(told) - 1, -1, -1) if told[i].step.load != last), 0)
    return told[start:]


def _by_clock(name: str, rank: int | None, told: Sequence[_Told]) -> _Series | None:
    """The time from line to line for each step, where the lines have times and numbers."""
    values, lines = [], []
    for a, b in pairwise(told):
        if a.line.at is None or b.line.at is None or a.line.clock is not b.line.clock:
            return None
        if a.step.number is None or b.step.number is None:
            return None
        steps, seconds = b.step.number - a.step.number, (b.line.at - a.line.at) / 1e9
        if steps > 0 and seconds > 0:
            values.append((_pace.Value(b.line.number, b.step.number, seconds / steps, b.line.at), seconds))
            lines.append(b.line)
    if not values or median(s for _, s in values) < TIMED:
        return None
    return _Series(name, rank, "s", [v for v, _ in values], lines)


def _changes(emit: Emitter, series: Sequence[_Series]) -> None:
    """Of ranks that wait for each other all tell the same: the series with the most lines says it."""
    if not series:
        return
    longest = max(series, key=lambda s: len(s.values))
    _median(emit, longest)
    if found := _pace.change(longest.values):
        _emit_change(emit, longest, found)
    elif peaks := _pace.peaks(longest.values):
        _emit_peaks(emit, longest, peaks)


def _median(emit: Emitter, series: _Series) -> None:
    usual = median(v.took for v in series.values[_pace.WARM_UP :] or series.values)
    line = series.lines[-1]
    emit.fact("training.pace", emit.document, series.said(usual), line.number, line.raw)


def _emit_change(emit: Emitter, series: _Series, found: _pace.Change) -> None:
    line = _line_of(series, found.since)
    fields: dict[str, Scalar] = {
        "kind": {"jump": "slower", "rise": "slowing", "while": "slow_for_a_while"}[found.kind],
        "before": series.said(found.before),
        "after": series.said(found.after),
        "times": round(found.times, 2),
        "since": _where(found.since, line.clock),
        "until": _where(found.until, line.clock) if found.until else None,
        "rank": series.rank,
        "unit": series.unit,
    }
    _emit(emit, line, fields)


def _emit_peaks(emit: Emitter, series: _Series, found: _pace.Peaks) -> None:
    line = _line_of(series, found.first)
    fields: dict[str, Scalar] = {
        "kind": "slow_each" if found.steps else "slow_now_and_then",
        "before": series.said(found.usual),
        "after": series.said(found.peak),
        "times": round(found.peak / found.usual, 2),
        "count": found.many,
        "every": found.steps,
        "share": round(found.share),
        "since": _where(found.first, line.clock),
        "unit": series.unit,
    }
    _emit(emit, line, fields)


def _ranks(emit: Emitter, series: Sequence[_Series]) -> None:
    """One rank, or one node, that takes longer than those beside it."""
    units = {s.unit for s in series}
    if len(units) != 1:
        return
    took = {s.name: [v.took for v in s.values] for s in series}
    found = _pace.slowest({name: own[_pace.WARM_UP :] for name, own in took.items()}) or _pace.slowest_of_few(took)
    if found is None:
        return
    own = next(s for s in series if s.name == found[0])
    fields: dict[str, Scalar] = {
        "kind": "rank_slower",
        "who": own.name,
        "before": own.said(found[2]),
        "after": own.said(found[1]),
        "times": round(found[1] / found[2], 2),
        "since": _where(own.values[0], own.lines[0].clock),
        "rank": own.rank,
        "unit": own.unit,
    }
    _emit(emit, own.lines[-1], fields)


# --- what becomes of loss and gradients -------------------------------------------------------


def _numbers(emit: Emitter, told: Sequence[_Told]) -> None:
    own = [t for t in told if t.line.label == told[-1].line.label]
    gradients = [(t, t.step.gradient) for t in own if t.step.gradient is not None]
    losses = [(t, t.step.loss) for t in own if t.step.loss is not None]
    for kind, values, times in (("gradients", gradients, GROWN), ("loss", losses, DIVERGED)):
        known = [(t, v) for t, v in values if math.isfinite(v) and v > 0]
        if (found := _grown(known, times, END[kind])) is not None:
            first, before, after = found
            fields: dict[str, Scalar] = {
                "kind": f"{kind}_grow",
                "before": _short(before),
                "after": _short(after),
                "times": round(after / before, 2),
                "since": _where(
                    _pace.Value(first.line.number, first.step.number, 1.0, first.line.at), first.line.clock
                ),
                "rank": first.line.rank,
            }
            _emit(emit, first.line, fields)
            return


def _skipped(emit: Emitter, told: Sequence[_Told]) -> None:
    """Steps that are not taken, to the end of the log."""
    lines = []
    for before, t in reversed(list(pairwise(told))):
        steps = (t.step.number or 0) - (before.step.number or 0)
        if not 0 < steps <= 2 * t.step.skipped:
            break
        lines.append(t)
    if len(lines) >= SKIPPED:
        first = lines[-1]
        where = _where(_pace.Value(first.line.number, first.step.number, 1.0, first.line.at), first.line.clock)
        fields: dict[str, Scalar] = {
            "kind": "steps_skipped",
            "count": sum(t.step.skipped for t in lines),
            "since": where,
            "rank": first.line.rank,
        }
        _emit(emit, first.line, fields)


def _grown(values: Sequence[tuple[_Told, float]], times: float, end: int) -> tuple[_Told, float, float] | None:
    """The first line of the growth that lasts to the end, what was usual before it, and what it came to."""
    if len(values) < max(_pace.LEAST, 2 * end):
        return None
    usual = median(v for _, v in values[len(values) // 4 : max(len(values) // 4 + 1, 3 * len(values) // 4)])
    least = min(median(v for _, v in values[i : i + end]) for i in range(0, len(values) - end + 1, end))
    level = times * min(usual, 2 * least)
    start = len(values)
    while start > 0 and values[start - 1][1] >= level:
        start -= 1
    if len(values) - start < end or start < end:
        return None
    return values[start][0], min(usual, 2 * least), median(v for _, v in values[start:])


# --- words ------------------------------------------------------------------------------------


def _emit(emit: Emitter, line: AppLine, fields: dict[str, Scalar]) -> None:
    rank = fields.get("rank")
    subject = rank_subject(rank if isinstance(rank, int) and fields["kind"] == "rank_slower" else None, emit.document)
    emit.event("training_pace", subject, fields, line.number, line.raw, at=line.at, clock=line.clock)


def _line_of(series: _Series, value: _pace.Value) -> AppLine:
    line = next(line for line in series.lines if line.number == value.line)
    return line if value.at is not None else replace(line, at=None, clock=Clock.NONE)


def _where(value: _pace.Value, clock: Clock) -> str:
    """``step 3100 (11-24 12:40)``, as far as it is known; else the line."""
    name = f"step {value.step}" if value.step is not None else f"line {value.line}"
    if value.at is None or clock not in (Clock.REALTIME, Clock.LOCAL, Clock.YEARLESS):
        return name
    return f"{name} ({datetime.fromtimestamp(value.at / 1e9, UTC):%m-%d %H:%M})"


def _short(value: float) -> str:
    """Three digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


FORMAT = LogFormat(
    name=NAME,
    title="training logs (Megatron, DeepSpeed, NeMo, torchtitan, Hugging Face, Lightning)",
    revision=REVISION,
    provides=(
        "training.lines",
        "training.step.last",
        "training.pace",
        "training.rate",
        "training.loss.first",
        "training.loss.last",
        "training_pace",
        "job.step.data_wait.share",
    ),
    sniff=sniff,
    triggers=STEPS,
    parse=parse,
    counts=("training_pace",),
    series=STEPS,
)
