"""Sampled stacks counted: what a thread does, which functions of the program do it, and the same as a call tree.

Times are ns of the window; of each thread the parts add up to the whole. The order of the samples does not matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Final, NamedTuple

import numpy as np

from knowledge.activities import activities
from knowledge.record import dataclass
from knowledge.text import clean, excerpt
from probes.capture.stacks.activity import Frame, Kind, State, classify, function, known, runs_training
from probes.capture.stacks.stack_document import StackDoc, looks
from probes.capture.stacks.thread_states import States
from probes.trace.trees.calltree import CallTree
from probes.trace.trees.calltree import Kind as Node
from probes.trace.trees.folded import Builder

_WAITS: Final = ("sleep", "unknown")  # what a thread does that leaves the driving to another


class Place(NamedTuple):
    """A function of a file; `of` is the call that it makes, where that has the name (a collective)."""

    name: str
    file: str
    of: str = ""


@dataclass
class Tally:
    """What one thread did."""

    total: int = 0  # ns
    samples: int = 0  # how often it was looked at, about
    activity: Counter[str] = field(default_factory=Counter)  # ns
    functions: dict[str, Counter[Place]] = field(default_factory=dict)  # of each activity the blamed ones, ns
    hot: Counter[Place] = field(default_factory=Counter)  # over all activities: the deepest function of the program
    lines: Counter[tuple[str, Place, int]] = field(default_factory=Counter)  # of an activity, and of all ("")
    callers: Counter[tuple[str, Place, Place, int]] = field(
        default_factory=Counter
    )  # in an activity, and in all (""): who called it straight, from which line
    states: Counter[State | None] = field(default_factory=Counter)
    training: int = 0  # ns in what only a thread that trains or serves does

    def share(self, activity: str) -> float:
        """Percent of the thread's time."""
        return 100 * self.activity[activity] / self.total if self.total else 0.0

    def top(self, activity: str) -> tuple[Place, int] | None:
        """The function that has most of an activity, and its ns."""
        return most(self.functions.get(activity, Counter()))

    def line(self, place: Place, activity: str = "") -> int:
        """The line of a function that was seen most, in one activity or in all."""
        here = {n: ns for (a, p, n), ns in self.lines.items() if p == place and a == activity}
        return min(here, key=lambda n: (-here[n], n), default=0)

    def said(self, place: Place, activity: str = "") -> str:
        """ "decode_slowly (train.py:42)"; a helper of another file together with who mostly calls it: "burn (util.py:3) ← step (train.py:9)"."""
        found = said(place, self.line(place, activity))
        here = {(c, n): ns for (a, p, c, n), ns in self.callers.items() if p == place and a == activity}
        whole = sum(ns for (a, p, _), ns in self.lines.items() if p == place and a == activity)
        caller, line = min(here, key=lambda k: (-here[k], k), default=(None, 0))
        if (
            caller is None
            or caller.file == place.file
            or 2 * sum(n for (c, _), n in here.items() if c == caller) < whole
        ):
            return found
        return f"{found} ← {said(caller, line)}"

    def add(self, activity: str, ns: int, meaning: Meaning) -> None:
        """Charges `ns` of an activity to the function that is blamed for it."""
        place = meaning.place
        self.activity[activity] += ns
        self.functions.setdefault(activity, Counter())[place] += ns
        plain = place._replace(of="")
        for one in {place, plain}:
            self.lines[activity, one, meaning.line] += ns
            self.lines["", one, meaning.line] += ns
            if meaning.caller is not None:
                self.callers[activity, one, meaning.caller, meaning.caller_line] += ns
                self.callers["", one, meaning.caller, meaning.caller_line] += ns
        self.hot[plain] += ns
        self.total += ns


class Meaning(NamedTuple):
    """What a stack in a state means."""

    activity: str
    place: Place
    line: int
    caller: Place | None = None  # of the program too, and straight above it
    caller_line: int = 0


def said(place: Place, line: int) -> str:
    """A function as people name it."""
    file = PurePosixPath(place.file).name or "?"
    name = place.of or place.name
    return f"{excerpt(name, 80) or '?'} ({excerpt(file, 60)}:{line})"


def most(counter: Counter[Place]) -> tuple[Place, int] | None:
    """The place with the most ns, and how many; of equals always the same."""
    return min(counter.items(), key=lambda item: (-item[1], item[0]), default=None)


def frames_of(doc: StackDoc, stack: int) -> tuple[Frame, ...]:
    """The frames of a stack, outermost first."""
    return tuple((f[0], f[1], f[2]) for f in (doc["frames"][i] for i in doc["stacks"][stack]))


def text_of(sources: Mapping[str, str], frame: Frame) -> str:
    """The line that a frame stands on; "" when it could not be read."""
    return sources.get(f"{frame[1]}:{frame[2]}", "")


def tally(doc: StackDoc, tid: str, sources: Mapping[str, str], states: States | None = None) -> Tally:
    """What the thread `tid` did in the window."""
    found = Tally()
    meanings: dict[tuple[int, State | None], Meaning] = {}
    training: dict[int, bool] = {}
    for began, ns, stack in doc["threads"][tid]["samples"]:
        parts = states.parts(tid, began, ns) if states else iter([(began, ns, None)])
        if stack not in training:
            training[stack] = runs_training(frames_of(doc, stack))
        found.training += ns if training[stack] else 0
        for _, part, state in parts:
            key = (stack, state)
            if key not in meanings:
                meanings[key] = meaning(frames_of(doc, stack), state, sources)
            found.add(meanings[key].activity, part, meanings[key])
            found.states[state] += part
    found.samples = looks(doc, found.total)
    return found


def meaning(frames: tuple[Frame, ...], state: State | None, sources: Mapping[str, str]) -> Meaning:
    """What a stack in a state means, and whom it is blamed on."""
    if not frames:
        return Meaning("unknown", Place("?", ""), 0)
    activity, blamed, _ = classify(frames, state, text_of(sources, frames[-1]))
    name, file, line = frames[blamed]
    place = Place(name, file, _call(frames) if activity == "collective" else "")
    if blamed > 0 and is_programs(name, file) and is_programs(*frames[blamed - 1][:2]):
        above, where, at = frames[blamed - 1]
        return Meaning(activity, place, line, Place(above, where), at)
    return Meaning(activity, place, line)


def _call(frames: tuple[Frame, ...]) -> str:
    """The collective as the program calls it: the outermost frame that belongs to one."""
    return next(
        (function(n) for n, file, _ in frames if any(a.id == "collective" for a, _ in known(n, file).hits)), ""
    )  # fmt: skip


def driving(doc: StackDoc, pid: int, sources: Mapping[str, str]) -> str | None:
    """The thread that runs the loop: the main one, unless it only waits while another is in operators. None: no thread was seen."""
    threads = doc["threads"]
    if not threads:
        return None
    main = str(pid) if str(pid) in threads else next((t for t, v in threads.items() if v["name"] == "MainThread"), None)
    work = {tid: _work(doc, tid, sources) for tid in threads}
    busiest = min(work, key=lambda t: (-work[t][0], -work[t][1], t))
    if main is None:
        return busiest
    trains, busy = work[main]
    # a main thread that drives shows some of it: a tenth is left to waits that it has in common with one that does not
    waits_only = trains == 0 and busy <= 0.1
    return busiest if waits_only and work[busiest][0] >= 0.2 else main


def _work(doc: StackDoc, tid: str, sources: Mapping[str, str]) -> tuple[float, float]:
    """The shares of a thread's time in training, and in anything but waits."""
    found = tally(doc, tid, sources)
    if not found.total:
        return 0.0, 0.0
    return found.training / found.total, 1 - sum(found.activity[w] for w in _WAITS) / found.total


def worker_tallies(documents: Mapping[int, StackDoc], sources: Mapping[str, str], threads: Mapping[str, object] | None) -> dict[int, tuple[Tally, Tally]]:  # fmt: skip
    """Of each process that is a worker of a data loader: all that its main thread did, and that part of it which made batches."""
    found: dict[int, tuple[Tally, Tally]] = {}
    for pid, doc in sorted(documents.items()):
        for tid in doc["threads"]:
            loops = [_is_worker(frames_of(doc, i)) for i in range(len(doc["stacks"]))]
            samples = doc["threads"][tid]["samples"]
            if not any(loops[s[2]] for s in samples):
                continue
            busy = [_makes(frames_of(doc, i)) for i in range(len(doc["stacks"]))]
            states = States(threads, pid)
            work: StackDoc = {**doc, "threads": {tid: {"name": "", "samples": [s for s in samples if busy[s[2]]]}}}
            found[pid] = tally(doc, tid, sources, states), tally(work, tid, sources, states)
            break
    return found


def _is_worker(frames: Iterable[Frame]) -> bool:
    return any(function(n) == "_worker_loop" and f.endswith("torch/utils/data/_utils/worker.py") for n, f, _ in frames)


def _makes(frames: Iterable[Frame]) -> bool:
    """Whether a worker's stack is in its data set, and not in the queues on both sides of it."""
    return any(a.id == "data_work" for n, f, _ in frames for a, _ in known(n, f).hits)


def gil_holders(doc: StackDoc, tid: str, states: States) -> Tally:
    """What other threads of the process ran on a CPU while `tid` waited for the interpreter's lock, as one activity "python"."""
    found = Tally()
    waits = [
        (at, ns)
        for began, span, _ in doc["threads"][tid]["samples"]
        for at, ns, state in states.parts(tid, began, span)
        if state is State.GIL
    ]
    for other, thread in doc["threads"].items():
        if other == tid or not states.known(other):
            continue
        rows = thread["samples"]
        place = 0
        for at, ns in waits:
            while place < len(rows) and sum(rows[place][:2]) <= at:
                place += 1
            if place < len(rows) and rows[place][0] <= at and states.at(other, at) is State.CPU:
                frames = frames_of(doc, rows[place][2])
                if frames:
                    found.add("python", ns, meaning(frames, State.CPU, {}))
    return found


@lru_cache(maxsize=65536)
def is_programs(name: str, file: str) -> bool:
    """Whether a frame is of the program itself."""
    return known(name, file).kind is Kind.USER


@dataclass(frozen=True, slots=True)
class Cost:
    """One function of the program over a window."""

    place: Place
    line: int  # seen most
    own: int  # ns as the deepest frame of the program: its own code, operators and library calls
    whole: int  # ns with everything of the program that it calls


def functions(doc: StackDoc, tid: str) -> list[Cost]:
    """The functions of the program that a thread was in, the dearest first."""
    own: Counter[Place] = Counter()
    whole: Counter[Place] = Counter()
    lines: Counter[tuple[Place, int]] = Counter()
    for _, ns, stack in doc["threads"][tid]["samples"]:
        mine = [(Place(n, f), line) for n, f, line in frames_of(doc, stack) if is_programs(n, f)]
        for place in {p for p, _ in mine}:
            whole[place] += ns
        for place, line in mine:
            lines[place, line] += ns
        if mine:
            own[mine[-1][0]] += ns
    best: dict[Place, tuple[int, int]] = {}
    for (place, line), ns in lines.items():
        best[place] = max(best.get(place, (0, 0)), (ns, -line))
    found = [Cost(p, -best[p][1], own[p], ns) for p, ns in whole.items()]
    return sorted(found, key=lambda c: (-c.whole, -c.own, c.place))


def tree(doc: StackDoc, tids: Iterable[str] | None = None, title: str = "") -> CallTree:
    """The stacks as a call tree, a root for each thread; times are ns of the window, in `cpu_ns`. None: all threads."""
    builder = Builder(title, "nanoseconds")
    for tid in sorted(doc["threads"] if tids is None else tids):
        thread = doc["threads"][tid]
        name = clean(thread["name"])
        label = f"thread {tid} ({name})" if name else f"thread {tid}"
        spent: Counter[int] = Counter()
        for _, ns, stack in thread["samples"]:
            spent[stack] += ns
        for stack, ns in sorted(spent.items()):
            builder.add([label, *(f"{n} ({f}:{line})" for n, f, line in frames_of(doc, stack))], ns)
    found = builder.tree()
    found.kind[found.parent < 0] = np.uint8(Node.ROOT)
    return found


def activities_seen(found: Tally) -> list[tuple[str, float]]:
    """Ids and percent of what a thread did, the most first."""
    order = list(activities())
    return sorted(((a, found.share(a)) for a in found.activity), key=lambda s: (-s[1], order.index(s[0])))
