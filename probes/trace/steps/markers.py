"""Where iterations begin and end on the host: marks of profilers, trainers and serving engines, by name.

Names as they are written by: torch/profiler/profiler.py (ProfilerStep#N), torch/optim/optimizer.py
(Optimizer.step#Adam.step), vllm/v1/worker/gpu_worker.py (execute_context_..), sglang/srt/managers/scheduler.py
(step[DECODE bs=8]), tensorrt_llm/_torch/pyexecutor/py_executor.py
([Executor] _forward_step 7: 0 ctx reqs, 8 gen reqs), ATOM (decode[bs=8]), Lightning's PyTorchProfiler, Megatron-LM and NVTX users (iteration 7), jax.profiler.StepTraceAnnotation (train 7).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import re2

from knowledge.errors import InputError
from knowledge.language import Text
from knowledge.record import dataclass
from knowledge.text import excerpt
from probes.trace.columns import I64, Cat, Group, Mask, Table
from probes.trace.reading.reader import Trace


class Kind(NamedTuple):
    """One kind of mark."""

    label: str
    pattern: str  # RE2, searched in a name
    groups: tuple[Group, ...] = (Group.MARK, Group.OP)  # before 2022 annotations were operators
    tiles: bool = False  # one begins where the one before ends
    jax: bool = False  # in traces of JAX alone: names that would say nothing elsewhere
    ends: bool = False  # an iteration ends with such a mark, and begins with the end of the one before


# In order: the first kind that gives two iterations counts, else the first that gives one.
KINDS: Final = (
    Kind("ProfilerStep", r"^ProfilerStep\s*#\s*\d+$", tiles=True),
    Kind("vLLM execute", r"^execute_(?:\d+_)?context_\d+\(.*\)_generation_\d+\(.*\)"),
    Kind("SGLang step", r"^step\[[A-Za-z_]+(?: [a-z_]+=\d+)*\]"),
    Kind("TensorRT-LLM step", r"^\[Executor\] _forward_step(?: \d+)?: \d+ ctx reqs"),
    Kind("ATOM step", r"^(?:prefill|decode)\[bs=\d+"),
    Kind("iteration", r"(?i)^(?:train(?:ing)?|global|profile)?[ _:/-]?(?:iteration|iter|step)[ _:=#]*\d+$"),
    Kind("JAX step", r"#\d+$", (Group.MARK,), jax=True),
    Kind("JAX step", r"^\d+$", (Group.MARK,), jax=True),  # the device's "Steps" line
    Kind("train", r"(?i)^train(?:_step)?[ _:=#]*\d+$"),
    Kind("Lightning batch", r"^\[pl\]\[profile\].*run_training_batch$", tiles=True),
    Kind("Optimizer.step", r"^Optimizer\.step#", ends=True),
    Kind("execute_model", r"gpu_model_runner\.py\(\d+\): execute_model$", (Group.PYTHON,)),
    Kind("run_batch", r"managers/scheduler\.py\(\d+\): _?run_batch", (Group.PYTHON,)),
    Kind("EngineCore.step", r"engine/core\.py\(\d+\): step|EngineCore\.step", (Group.PYTHON, Group.MARK, Group.OP)),
)
MOST: Final = 50_000  # marks that are looked at: a pattern that fits every operator is no iteration
_ANY: Final = (Group.MARK, Group.OP, Group.PYTHON)
_NUMBER: Final = re.compile(r"\d+")


@dataclass(slots=True)
class Marks:
    """Iterations on the host's clock, in order of time; all arrays of one length."""

    marker: str  # label of the kind; empty: none was found
    start: I64  # ns
    end: I64
    names: list[str]  # cleaned
    tiled: bool  # one follows on another: what the device does between belongs to the later one
    thread: tuple[int, int] = (-1, -1)  # pid, tid of the marks
    notes: tuple[Text, ...] = ()
    device: bool = False  # the host's side was not recorded: these are the device's own marks, on its clock
    words: tuple[str, ...] = ()  # first group of a marker given by the user

    def __len__(self) -> int:
        return len(self.start)


NO_MARKS: Final = Marks("", np.empty(0, np.int64), np.empty(0, np.int64), [], tiled=False)


def named(trace: Trace, table: Table, pattern: re2._Regexp, among: Mask | None = None) -> Mask:
    """The rows of `table` whose name the pattern finds: each distinct name (of those `among`, by number) is looked at once."""
    there = np.zeros(len(trace.strings) + 1, np.bool_)  # and one for -1
    there[table.name] = True
    if among is not None:
        there &= among
    for number in np.flatnonzero(there[:-1]).tolist():
        there[number] = pattern.search(trace.strings[number]) is not None
    there[-1] = False
    hit: Mask = there[table.name]
    return hit


def _candidates(trace: Trace) -> Mask:
    """The names that any known kind fits, in one look at each: traces hold up to millions of names."""
    any_kind = re2.compile("|".join(f"(?:{k.pattern})" for k in KINDS if not k.jax or trace.kind == "jax"))
    there = np.zeros(len(trace.strings) + 1, np.bool_)
    for group in _ANY:
        table = trace.tables.get(group)
        if table is not None:
            there[table.name] = True
    for number in np.flatnonzero(there[:-1]).tolist():
        there[number] = any_kind.search(trace.strings[number]) is not None
    return there


def find(trace: Trace, marker: str = "") -> Marks:
    """The marks of `marker` (a regular expression of RE2), or of the best known kind that the trace holds.

    InputError for an expression that RE2 does not take.
    """
    if marker:
        options = re2.Options()
        options.log_errors = False  # RE2 would print to stderr
        try:
            pattern = re2.compile(marker, options)
        except re2.error as e:
            said = e.args[0] if e.args else e  # RE2's own words are bytes
            why = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
            raise InputError(f"{excerpt(marker, 80)!r} is no regular expression of RE2: {excerpt(why, 120)}") from e
        return _user(trace, marker, pattern)
    best, among = NO_MARKS, _candidates(trace)
    for kind in KINDS:
        if kind.jax and trace.kind != "jax":
            continue
        marks = _of_kind(trace, kind, among)
        if len(marks) > 1:
            return marks
        if len(marks) and not len(best):
            best = marks
    return best


def _rows(trace: Trace, groups: tuple[Group, ...], pattern: re2._Regexp, among: Mask | None = None) -> Table | None:
    """Host marks that match, of the first group that holds any; marks of the device's side only when there are no others."""
    device: Table | None = None
    for group in groups:
        table = trace.tables.get(group)
        if table is None or not len(table):
            continue
        found = table.take(named(trace, table, pattern, among) & (table.dur > 0))
        host = found.take(np.not_equal(found.cat, Cat.GPU_MARK))
        if len(host):
            return host
        device = device if device is not None else (found if len(found) else None)
    return device


def _one_thread(table: Table) -> tuple[Table, int]:
    """The marks of the thread on which they last longest, outermost ones only; and how many threads there are."""
    key = table.ids("pid").astype(np.int64) << 32 | (table.ids("tid").astype(np.int64) & 0xFFFFFFFF)
    threads, which = np.unique(key, return_inverse=True)
    weight = np.bincount(which, weights=table.dur.astype(np.float64))
    mine = table.take(which == int(weight.argmax()))
    reach = np.maximum.accumulate(mine.end)
    outer = np.ones(len(mine), np.bool_)
    outer[1:] = mine.start[1:] >= reach[:-1]
    return mine.take(outer), len(threads)


def _of_kind(trace: Trace, kind: Kind, among: Mask) -> Marks:
    table = _rows(trace, kind.groups, re2.compile(kind.pattern), among)
    if table is None:
        return NO_MARKS
    table, threads = _one_thread(table)
    marks = _marks(trace, kind.label, table, threads)
    marks.tiled = marks.tiled or kind.tiles
    return _between_ends(trace, marks) if kind.ends else marks


def _marks(trace: Trace, label: str, table: Table, threads: int) -> Marks:
    notes = []
    device = bool(np.equal(table.cat, Cat.GPU_MARK).all())
    if threads > 1 and not device:
        notes.append(Text(f"{label} marks stand on {threads} threads; those of the thread on which they last longest were taken",
                          f"{label} 标记出现在 {threads} 个线程上；取其中总时长最长的线程"))  # fmt: skip
    if len(table) > MOST:
        notes.append(
            Text(
                f"of {len(table)} {label} marks the first {MOST} were taken",
                f"共 {len(table)} 个 {label} 标记，取前 {MOST} 个",
            )
        )
        table = table.take(np.arange(MOST))
    names = [excerpt(trace.strings[n], 160) for n in table.name.tolist()]
    start, end = table.start, table.end
    thread = (int(table["pid"][0]), int(table["tid"][0]))
    return Marks(label, start, end, names, _follow(start, end), thread, tuple(notes), device)


def _follow(start: I64, end: I64) -> bool:
    """Whether marks follow on each other: what is between two is under 2 % of one, in the median (measured: 0.01 to 0.2 %)."""
    if len(start) < 2:
        return False
    return float(np.median(start[1:] - end[:-1])) < 0.02 * float(np.median(end - start))


def _between_ends(trace: Trace, marks: Marks) -> Marks:
    """Iterations from the end of one optimizer step to the end of the next.

    Several optimizers step in turn, or one a parameter group: steps that follow each other without a launch between
    them are one; and of names that come in a fixed round (a generator's and a discriminator's) the last one ends it.
    """
    last = _apart(trace, marks)
    if (period := _round([marks.names[i] for i in last.tolist()])) > 1:
        last = last[period - 1 :: period]
    if len(last) < 2:
        return NO_MARKS
    end = marks.end[last]
    names = [marks.names[i] for i in last[1:].tolist()]
    return Marks(marks.marker, end[:-1], end[1:], names, tiled=True, thread=marks.thread, notes=marks.notes)


def _apart(trace: Trace, marks: Marks) -> I64:
    """Of each run of steps with nothing launched between them the last."""
    calls = trace.tables.get(Group.RUNTIME)
    if calls is None or not len(calls) or len(marks) < 2:
        return np.arange(len(marks))
    pattern = re2.compile(r"(?i)launch")
    launches = calls.start[named(trace, calls, pattern)]
    if not len(launches):
        return np.arange(len(marks))
    between = np.searchsorted(launches, marks.start[1:]) - np.searchsorted(launches, marks.end[:-1])
    return np.flatnonzero(np.append(between > 0, True))


def _round(names: list[str]) -> int:
    """The length of the round in which distinct names come; 1 when there is none."""
    period = len(set(names))
    if period < 2 or len(names) < 2 * period:
        return 1
    return period if all(a == b for a, b in zip(names, names[period:], strict=False)) else 1


def _user(trace: Trace, marker: str, pattern: re2._Regexp) -> Marks:
    table = _rows(trace, _ANY, pattern)
    if table is None:
        return NO_MARKS
    table, threads = _one_thread(table)
    marks = _marks(trace, excerpt(marker, 80), table, threads)
    if pattern.groups:
        found = (pattern.search(trace.strings[n]) for n in table.name[:MOST].tolist())
        marks.words = tuple(excerpt((m.group(1) if m else "") or "", 80) for m in found)
    return marks


class Step(NamedTuple):
    """What a mark's name says of a step of a serving engine."""

    kind: str = ""  # prefill, decode, mixed, or the engine's own word
    batch: int | None = None  # requests
    tokens: int | None = None  # scheduled in this step


_VLLM: Final = re.compile(
    r"^execute_(?:(\d+)_)?context_(\d+)\((?:sq)?(\d+)[^)]*\)_generation_(\d+)\((?:sq)?(\d+)[^)]*\)"
)
_SGLANG: Final = re.compile(r"^step\[([A-Za-z_]+)((?: [a-z_]+=\d{1,12})*)\]")
_TRT: Final = re.compile(
    r"^\[Executor\] _forward_step(?: \d{1,12})?: (\d{1,9}) ctx reqs(?:, (\d{1,12}) ctx tokens)?, (\d{1,9}) gen reqs"
)
_ATOM: Final = re.compile(r"^(prefill|decode)\[bs=(\d{1,9})(?: toks?=(\d{1,12}))?")
_MODES: Final = {"extend": "prefill", "prefill": "prefill", "decode": "decode", "mixed": "mixed"}


def step_of(name: str) -> Step:
    """``execute_context_2(512)_generation_30(30)``, ``step[EXTEND bs=4 toks=1024]``; all None for other names."""
    if m := _VLLM.match(name):
        context, context_tokens, generation, generated = (int(m[i]) for i in range(2, 6))
        tokens = int(m[1]) if m[1] else context_tokens + generated
        return Step(_phase(context, generation), context + generation, tokens)
    if m := _SGLANG.match(name):
        said = dict(pair.split("=") for pair in m[2].split())
        kind = _MODES.get(m[1].lower(), m[1].lower())
        batch = int(said["bs"]) if "bs" in said else None
        return Step(kind, batch, int(said["toks"]) if "toks" in said else (batch if kind == "decode" else None))
    if m := _TRT.match(name):
        context, generation = int(m[1]), int(m[3])
        known = m[2] is not None or not context
        return Step(_phase(context, generation), context + generation, int(m[2] or 0) + generation if known else None)
    if m := _ATOM.match(name):
        batch = int(m[2])
        return Step(m[1], batch, int(m[3]) if m[3] else (batch if m[1] == "decode" else None))
    return Step()


def _phase(context: int, generation: int) -> str:
    return "mixed" if context and generation else "prefill" if context else "decode"


def numbers(marks: Marks) -> Iterator[int]:
    """The number that each name ends with or holds alone; counted from 0 where names do not tell them apart."""
    found = [_NUMBER.findall(name) for name in marks.names]
    if all(len(f) == 1 and len(f[0]) < 16 for f in found):
        own = [int(f[0]) for f in found]
        if len(set(own)) == len(own):
            return iter(own)
    return iter(range(len(marks)))
