"""Off-CPU time under the Python frames: how long a thread was off the CPU, in which function of the kernel, called from where. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field

from knowledge import waits
from knowledge.record import dataclass
from probes.capture.offcpu.offcpu_document import OffCpuDoc, OffThread
from probes.capture.readings._telling import Window
from probes.capture.stacks import blame
from probes.capture.stacks.blame import Meaning, Place, Tally
from probes.capture.stacks.stack_document import StackDoc

NOWHERE = Place("?", "")  # no Python frame was seen at that time


@dataclass
class Joined:
    """One thread off the CPU. Times are ns; `kinds` add up to `off`."""

    covered: int = 0  # of the window
    off: int = 0
    blind: int = 0  # of it without a function of the kernel
    tally: Tally = field(default_factory=Tally)  # by kind of wait and Python function
    kernel: Counter[tuple[str, Place, str]] = field(
        default_factory=Counter
    )  # kind, Python function, function of the kernel
    kinds: Counter[str] = field(default_factory=Counter)

    def share(self, *kinds: str) -> float:
        """Percent of the window in these kinds of wait; without any, in all."""
        ns = sum(self.kinds[k] for k in kinds) if kinds else self.off
        return min(100.0, 100 * ns / self.covered) if self.covered else 0.0

    def top(self) -> str:
        """The kind that took most; "" when it was never off."""
        return min(self.kinds, key=lambda k: (-self.kinds[k], k), default="")

    def function(self, *kinds: str) -> tuple[str, str, int] | None:
        """The Python function under which most of these kinds was, the kernel's function there, and ns; None where none was seen."""
        sums: Counter[Place] = Counter()
        for (kind, place, _), ns in self.kernel.items():
            if kind in kinds and place != NOWHERE:
                sums[place] += ns
        best = blame.most(sums)
        if best is None:
            return None
        kind = max(kinds, key=lambda k: self.tally.functions.get(k, Counter())[best[0]])
        return self.tally.said(best[0], kind), self.kernel_function(*kinds, place=best[0]), best[1]

    def kernel_function(self, *kinds: str, place: Place | None = None) -> str:
        """The kernel's function in which most of these kinds was, under one Python function or all; "" where none was seen."""
        sums: Counter[str] = Counter()
        for (kind, where, name), ns in self.kernel.items():
            if kind in kinds and name and place in (None, where):
                sums[name] += ns
        return min(sums, key=lambda n: (-sums[n], n), default="")


def join(
    doc: OffCpuDoc,
    stacks: StackDoc | None,
    tid: str,
    sources: Mapping[str, str] | None = None,
    window: Window | None = None,
) -> Joined:
    """What the thread `tid` waited for, and under which function of the program. `window`: the part that counts."""
    low, high = max(doc["began"], window[0] if window else 0), min(doc["ended"], window[1] if window else doc["ended"])
    found = Joined(covered=max(0, high - low))
    thread = doc["threads"].get(tid)
    if thread is None or not found.covered:
        return found
    told = {n: [doc["functions"][i] for i in doc["stacks"][n]] for n in range(len(doc["stacks"]))}
    python = _Python(stacks, tid, sources or {})
    for since, until, stack, state in _clipped(thread, low, high):
        ns = until - since
        found.off += ns
        functions = told.get(stack, [])
        kind = waits.kind(functions, state)
        if stack < 0 and kind == waits.UNKNOWN:
            found.blind += ns
        kernel = waits.named(functions) if kind != waits.PREEMPTED else ""  # it was ready: any function is as good
        for part, meaning in python.parts(since, until):
            found.tally.add(kind, part, meaning)
            found.kernel[kind, meaning.place, kernel] += part
            found.kinds[kind] += part
    found.tally.samples = len(thread["off"])
    return found


def _clipped(thread: OffThread, low: int, high: int) -> Iterator[tuple[int, int, int, str]]:
    for since, ns, stack, state in thread["off"]:
        begin, end = max(since, low), min(since + ns, high)
        if end > begin:
            yield begin, end, stack, state


class _Python:
    """The Python stacks of a thread, asked for in the order of time."""

    def __init__(self, stacks: StackDoc | None, tid: str, sources: Mapping[str, str]) -> None:
        self._doc, self._sources = stacks, sources
        rows = stacks["threads"][tid]["samples"] if stacks is not None and tid in stacks["threads"] else []
        self._rows = sorted(rows)
        self._place = 0
        self._known: dict[int, Meaning] = {}

    def parts(self, since: int, until: int) -> Iterator[tuple[int, Meaning]]:
        """The ns of a span under each Python function, and those under none."""
        rows = self._rows
        while self._place < len(rows) and rows[self._place][0] + rows[self._place][1] <= since:
            self._place += 1
        left, here = until - since, self._place
        while here < len(rows) and rows[here][0] < until:
            part = min(until, rows[here][0] + rows[here][1]) - max(since, rows[here][0])
            if part > 0 and left > 0:
                part = min(part, left)
                left -= part
                yield part, self._meaning(rows[here][2])
            here += 1
        if left > 0:
            yield left, Meaning(waits.UNKNOWN, NOWHERE, 0)

    def _meaning(self, stack: int) -> Meaning:
        if stack not in self._known:
            assert self._doc is not None
            self._known[stack] = blame.meaning(blame.frames_of(self._doc, stack), None, self._sources)
        return self._known[stack]
