"""The log of an inference server: what its statistics come to over time, and what gave way."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from knowledge.lazy import lazy
from knowledge.observation import Clock, Observation, Scalar, Scope, Status, Subject
from knowledge.record import dataclass
from knowledge.text import excerpt
from probes.base import Context, Line, LogFormat
from probes.parse import _serving_lines as words
from probes.parse._app_emit import Emitter
from probes.parse._app_lines import AppLine, application_head, holds, peel_all
from probes.parse._pace import median
from probes.parse._serving_names import TITLES

NAME, REVISION = "serving-log", 4
TRIGGERS = (
    *words.LEVELS, words.ANSWERED, words.PREEMPTED, words.RETRACTED, words.HANGS, words.WATCHDOG, words.STARTED, words.DIED, words.TRITON, words.LOADED,
)  # fmt: skip
_DIED, _HANGS = lazy(words.DIED), lazy(words.HANGS)
_START = lazy(r"failed to start|initialization failed")
_SGLANG = lazy(r"sglang|Scheduler hit|sigquit from a child|TP\d+\]")
_TRITON, _LOADED = lazy(words.TRITON), lazy(words.LOADED)
_MODEL = lazy(r"failed to load '([^']{1,160})'")
_NAMES = {**TITLES, "trtllm": "TensorRT-LLM"}

FULL = 95.0  # % of the KV cache, as the rules for metrics pages have it (serving-kv-cache-full)
LAST = 10  # lines at work, of which half have to show it
LEAST = 3  # lines that show it
LATEST, ENOUGH = 100, 20  # answered requests that are looked at, and that are needed
QUEUE = 2.0  # s, as the rules for metrics pages have it (serving-requests-queue): what MLPerf allows to the first token
MANY = 10  # preemptions that are worth a word: vLLM and SGLang both call single ones harmless


@dataclass(frozen=True, slots=True)
class _Told:
    line: AppLine
    levels: words.Levels


def sniff(head: str) -> int:
    """55 for lines of such a server."""
    return 55 if holds(TRIGGERS, head) else application_head(head)


def parse(lines: Sequence[Line], context: Context) -> list[Observation]:
    """Levels of each engine as its last line tells them, what they were over the whole log, and what went wrong."""
    emit = Emitter(NAME, REVISION, context)
    app = [line for line in peel_all(lines, context) if holds(TRIGGERS, line.raw)]
    if not app:
        return emit.out
    engines: dict[tuple[str, str], list[_Told]] = defaultdict(list)
    for line in app:
        if holds(words.LEVELS, line.text) and (told := words.levels(line.text, line.raw)) is not None:
            engines[told.engine, told.which].append(_Told(line, told))
    model = next((name for line in app if (name := words.model(line.text))), "")
    for (engine, which), own in engines.items():
        _levels(emit, _subject(emit, engine, which, model), own, model)
        name = " ".join([_NAMES[engine], *([f"engine {which}"] if which else [])])
        _queue(emit, name, own)
        _stalled(emit, name, own, app)
    if not engines:
        _silent(emit, app)
    _queue_time(emit, app, model)
    _room(emit, app, engines, model)
    _preempted(emit, app, engines)
    _watchdog(emit, app, engines)
    _died(emit, app, engines)
    _not_loaded(emit, app)
    _nothing_else(emit, app[-1])
    return emit.out


def _nothing_else(emit: Emitter, last: AppLine) -> None:
    emit.out.append(
        Observation(
            "serving_trouble", emit.document, None, Status.NONE_SEEN, emit.source(last.number), excerpt=excerpt(last.raw),
            detail="nothing else in the lines of the server",
        )
    )  # fmt: skip


def _subject(emit: Emitter, engine: str, which: str, model: str) -> Subject:
    name = " ".join([engine, *([model] if model else []), *([f"engine {which}"] if which else [])])
    return Subject(Scope.OBJECT, name, emit.node)


def _levels(emit: Emitter, subject: Subject, told: Sequence[_Told], model: str) -> None:
    last = told[-1]
    making = next((t for t in reversed(told) if t.levels.decode), last)
    emit.fact("serving.engine", subject, last.levels.engine, last.line.number, last.line.raw)
    if model:
        emit.fact("serving.model", subject, model, last.line.number, last.line.raw)
    for fact, t, value in (
        ("serving.requests.running", last, last.levels.running),
        ("serving.requests.waiting", last, last.levels.waiting),
        ("serving.kv_cache.used.share", last, last.levels.cache),
        ("serving.tokens.prompt.rate", last, last.levels.prompt),
        ("serving.tokens.output.rate", making, making.levels.output),
        ("serving.prefix_cache.hit.share", last, last.levels.hits),
    ):
        if value is not None:
            emit.fact(fact, subject, value, t.line.number, t.line.raw)
    emit.fact("serving.log.lines", subject, len(told), last.line.number, last.line.raw)
    for fact, pick in (("serving.log.waiting.most", _waiting), ("serving.log.kv_cache.most", _cache)):
        known = [(value, t) for t in told if (value := pick(t)) is not None]
        if known:
            most, t = max(known, key=lambda k: k[0])
            emit.fact(fact, subject, most, t.line.number, t.line.raw)


def _waiting(told: _Told) -> int | None:
    return told.levels.waiting


def _cache(told: _Told) -> float | None:
    return told.levels.cache


# --- what goes wrong --------------------------------------------------------------------------


def _queue(emit: Emitter, name: str, told: Sequence[_Told]) -> None:
    """Requests that wait: for the KV cache where it is full, else for a place in the batch."""
    busy = [t for t in told if (t.levels.running or t.levels.waiting) and t.levels.cache is not None]
    full = [t for t in busy if (t.levels.cache or 0.0) >= FULL and _harm(t)]
    queue = [t for t in busy if (t.levels.cache or 0.0) < FULL and _harm(t) and (t.levels.waiting or 0) >= 0.5 * (t.levels.running or 0)]  # fmt: skip
    # Two lines say it as well where the piece of a log has no other.
    if _lasts(full, busy) or 2 <= len(full) == len(told):
        _emit_queue(emit, name, "kv_full", full)
    elif _lasts(queue, busy):
        runs = [t.levels.running or 0 for t in queue]
        limit = max(runs) if max(runs) - min(runs) <= 1 and max(runs) > 1 else None
        _emit_queue(emit, name, "queue_at_limit" if limit else "queue", queue)


def _harm(told: _Told) -> bool:
    """Whether more wait than come and go from one step to the next: a tenth of what runs."""
    waiting, running = told.levels.waiting or 0, told.levels.running or 0
    return waiting >= max(2, 0.1 * running) or (waiting >= 1 and told.levels.preempted > 0)


def _lasts(shown: Sequence[_Told], busy: Sequence[_Told]) -> bool:
    """Whether it is so at the end, or was for a fifth of the time."""
    end = {t.line.number for t in busy[-LAST:]} & {t.line.number for t in shown}
    return len(shown) >= LEAST and (2 * len(end) >= min(LAST, len(busy)) or 5 * len(shown) >= len(busy))


def _emit_queue(emit: Emitter, name: str, kind: str, shown: Sequence[_Told]) -> None:
    first, last = shown[0], shown[-1]
    _emit(emit, kind, first.line, {
        "engine": name,
        "before": first.levels.waiting,
        "waiting": last.levels.waiting,
        "running": last.levels.running,
        "cache": round(median(t.levels.cache or 0.0 for t in shown), 1),
        "count": len(shown),
        "since": _when(first.line),
        "until": _when(last.line),
    })  # fmt: skip


def _stalled(emit: Emitter, name: str, told: Sequence[_Told], app: Sequence[AppLine]) -> None:
    """Requests run and no token comes, at the end of the log."""
    still = 0
    while still < len(told) and _stands(told[-1 - still].levels):
        still += 1
    after = [line for line in app if line.number > told[-1].line.number and _HANGS.search(line.text)]
    hung = sum(line.times for line in after)
    # A piece of a log that shows nothing else, or both signs at once, say it as well as a longer one.
    if still < LEAST and hung < 2 and not (still and hung) and not 2 <= still == len(told):
        return
    first = told[-still] if still else told[-1]
    _emit(emit, "stalled", first.line if still else after[0], {
        "engine": name, "running": told[-1].levels.running, "waiting": told[-1].levels.waiting,
        "since": _when(first.line if still else after[0]), "count": still or hung,
    })  # fmt: skip


def _silent(emit: Emitter, app: Sequence[AppLine]) -> None:
    """The front end of vLLM waits for its workers, minute after minute, in a piece of a log without statistics."""
    waits = [line for line in app if _HANGS.search(line.text)]
    count = sum(line.times for line in waits)
    if count >= 2:
        _emit(emit, "workers_silent", waits[0], {
            "engine": _NAMES["vllm"], "since": _when(waits[0]), "until": _when(waits[-1]), "count": count,
        })  # fmt: skip


def _stands(levels: words.Levels) -> bool:
    return bool(levels.running) and not levels.prompt and levels.output == 0


def _queue_time(emit: Emitter, app: Sequence[AppLine], model: str) -> None:
    """How long requests waited, of a server that tells it of each (TGI): of the last hundred, so that a rush that is over is."""
    every = [(line, seconds) for line in app if (seconds := words.queued(line.text)) is not None]
    told = every[-LATEST:]
    if not told:
        return
    last, subject = told[-1][0], _subject(emit, "tgi", "", model)
    emit.fact("serving.engine", subject, "tgi", last.number, last.raw)
    emit.fact("serving.log.lines", subject, len(every), last.number, last.raw)
    if len(told) < ENOUGH:
        return
    late = sorted(seconds for _, seconds in told)[math.ceil(0.95 * len(told)) - 1]
    emit.fact("serving.queue_time.p95", subject, round(late, 6), last.number, last.raw)
    if late > QUEUE:
        first = next(line for line, seconds in told if seconds > QUEUE)
        _emit(emit, "queue_time", first, {
            "engine": _NAMES["tgi"], "count": sum(seconds > QUEUE for _, seconds in told), "of": len(told), "seconds": round(late, 1),
            "since": _when(first), "until": _when(last),
        })  # fmt: skip


def _preempted(emit: Emitter, app: Sequence[AppLine], engines: Mapping[tuple[str, str], Sequence[_Told]]) -> None:
    said = [(line, found) for line in app if (found := words.preempted(line.text)) is not None]
    cumulated = max((n for _, (n, since_start) in said if since_start), default=0)
    counted = sum(n * line.times for line, (n, since_start) in said if not since_start)
    inside = [t for own in engines.values() for t in own if t.levels.preempted]
    many = cumulated + counted + sum(t.levels.preempted for t in inside)
    if many < MANY:  # vLLM's older engine says the first and each fiftieth one
        return
    line = said[-1][0] if said else inside[-1].line
    first = said[0][0] if said else inside[0].line
    engine = "sglang" if counted and not cumulated and not inside else "vllm"
    _emit(
        emit, "preempted", line, {"engine": _NAMES[engine], "count": many, "since": _when(first), "until": _when(line)}
    )


def _watchdog(emit: Emitter, app: Sequence[AppLine], engines: Mapping[tuple[str, str], Sequence[_Told]]) -> None:
    """SGLang's watchdog saw no step end for as long as it waits; each rank says so."""
    said = [(line, seconds) for line in app if (seconds := words.waited(line.text)) is not None]
    if said:
        (first, seconds), last = said[0], said[-1][0]
        _emit(emit, "watchdog", first, {
            "engine": _NAMES["sglang"], "since": _when(first), "seconds": seconds, "count": sum(line.times for line, _ in said),
            "went_on": _makes_tokens_after(last, engines), "message": excerpt(first.text),
        })  # fmt: skip


def _makes_tokens_after(line: AppLine, engines: Mapping[tuple[str, str], Sequence[_Told]]) -> bool:
    return any(t.line.number > line.number and t.levels.output for own in engines.values() for t in own)


def _died(emit: Emitter, app: Sequence[AppLine], engines: Mapping[tuple[str, str], Sequence[_Told]]) -> None:
    gone = [line for line in app if _DIED.search(line.text)]
    if not gone:
        return
    first = next((line for line in gone if line.number == min(g.number for g in gone)), gone[0])
    told = [t for own in engines.values() for t in own]
    starting = any(_START.search(line.text) for line in gone) and not any(t.line.number < first.number for t in told)
    engine = told[0].levels.engine if told else "sglang" if any(_SGLANG.search(line.raw) for line in gone) else "vllm"
    _emit(emit, "engine_never_up" if starting else "engine_died", first, {
        "engine": _NAMES[engine], "since": _when(first), "count": sum(line.times for line in gone),
        "went_on": _makes_tokens_after(gone[-1], engines),
        "message": excerpt(first.text),
    })  # fmt: skip


def _not_loaded(emit: Emitter, app: Sequence[AppLine]) -> None:
    """What Triton says of a model that it could not load: once, with the first words, which have the reason."""
    said = [line for line in app if _TRITON.search(line.text)]
    if not said:
        return
    named = _MODEL.search(said[0].text)
    name = f"'{named[1]}'" if named else None
    loaded = [line.number for line in app if name and _LOADED.search(line.text) and name in line.text]
    _emit(emit, "engine_never_up", said[0], {
        "engine": _NAMES["triton"], "since": _when(said[0]), "count": sum(line.times for line in said),
        "went_on": bool(loaded) and loaded[-1] > said[0].number, "message": excerpt(said[0].text),
    })  # fmt: skip


def _room(emit: Emitter, app: Sequence[AppLine], engines: Mapping[tuple[str, str], Sequence[_Told]], model: str) -> None:  # fmt: skip
    found = next(((n, line) for line in app if (n := words.room(line.text)) is not None), None)
    if found is not None and len(engines) == 1:
        ((engine, which),) = engines
        emit.fact("serving.kv_cache.size", _subject(emit, engine, which, model), found[0], found[1].number, found[1].raw)  # fmt: skip


def _emit(emit: Emitter, kind: str, line: AppLine, fields: dict[str, Scalar]) -> None:
    fields = {**fields, "kind": kind}
    emit.event("serving_trouble", emit.document, fields, line.number, line.raw, at=line.at, clock=line.clock)


def _when(line: AppLine) -> str:
    """``11-24 09:15:20``; the number of the line where it has no time."""
    if line.at is None or line.clock not in (Clock.REALTIME, Clock.LOCAL, Clock.YEARLESS):
        return f"line {line.number}"
    return f"{datetime.fromtimestamp(line.at / 1e9, UTC):%m-%d %H:%M:%S}"


FORMAT = LogFormat(
    name=NAME,
    title="logs of vLLM, SGLang, TensorRT-LLM, Triton and TGI servers",
    revision=REVISION,
    provides=(
        "serving_trouble", "serving.engine", "serving.model", "serving.requests.running", "serving.requests.waiting",
        "serving.kv_cache.used.share", "serving.kv_cache.size", "serving.tokens.prompt.rate", "serving.tokens.output.rate",
        "serving.prefix_cache.hit.share", "serving.queue_time.p95", "serving.log.lines", "serving.log.waiting.most", "serving.log.kv_cache.most",
    ),
    sniff=sniff,
    triggers=TRIGGERS,
    parse=parse,
    counts=("serving_trouble",),
    series=(*words.LEVELS, words.ANSWERED),
)  # fmt: skip
