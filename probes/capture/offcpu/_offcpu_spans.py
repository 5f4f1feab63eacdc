"""Switches of threads off and onto a CPU, put together to spans: pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple

from knowledge.record import dataclass
from knowledge.text import clean, digits
from probes.capture.offcpu.offcpu_document import DEEPEST, MOST_SPANS, MOST_STACKS, OffThread

# futex_do_wait+0x46, finish_task_switch.isra.0, do_nanosleep ([kernel.kallsyms])
_SUFFIX = re.compile(r"(\+(0x[0-9a-f]+|\d+)(/0x[0-9a-f]+)?|\.(isra|constprop|part|cold|llvm|lto_priv)\.?\d*)+$")
_NAME = re.compile(r"^[A-Za-z_$.][\w$.]{0,120}$")
_BITS = ((0x30, "X"), (0x08, "t"), (0x04, "T"), (0x02, "D"), (0x01, "S"))


class Standing(NamedTuple):
    """How a thread stood at one moment."""

    pid: int
    name: str
    state: str
    ran: int  # ns on a CPU since it was born, -1: not told
    functions: tuple[str, ...]  # of the kernel, outermost first; empty: not told, or it runs


def function(text: str) -> str:
    """A function of the kernel as the tools print it, without offset, suffix and module; "?" for what has no name."""
    name = text.strip().partition(" ")[0]
    name = _SUFFIX.sub("", name)
    return name if _NAME.match(name) else "?"


def state_letter(text: str) -> str:
    """The state in which a thread left its CPU: "S", "R+", "D|K", or the number of it."""
    if (bits := digits(text)) is not None:
        return next((letter for mask, letter in _BITS if bits & mask), "R")
    return text[:1] if text[:1] in "RSDTtXZPI" else "?"


@dataclass
class _Thread:
    pid: int
    off: list[list[Any]] = field(default_factory=list)
    on: list[list[int]] = field(default_factory=list)
    left: tuple[int, int, str] | None = None  # since when it is off, its stack, its state
    told: bool = False  # whether both the sample and the record of that switch were seen
    first: tuple[int, bool] | None = None  # when first seen, and whether it came onto a CPU then


class Spans:
    """Collects what was recorded, in the order of time for each thread."""

    def __init__(self, pids: Sequence[int]) -> None:
        self.functions: list[str] = []
        self.stacks: list[list[int]] = []
        self.cut = False
        self.lost = 0
        self.blind = 0  # spans without a stack
        self._pids = frozenset(pids)
        self._threads: dict[int, _Thread] = {}
        self._known: dict[str, int] = {}
        self._seen: dict[tuple[int, ...], int] = {}
        self._count = 0

    def stack(self, functions: Sequence[str]) -> int:
        """The number of a stack, outermost function first; -1 for an empty one."""
        key = []
        for name in functions[-DEEPEST:]:
            key.append(self._known.setdefault(name, len(self.functions)))
            if key[-1] == len(self.functions):
                self.functions.append(name)
        if not key:
            return -1
        found = self._seen.get(tuple(key))
        if found is None:
            if len(self.stacks) >= MOST_STACKS:
                self.cut = True
                return -1
            found = self._seen[tuple(key)] = len(self.stacks)
            self.stacks.append(key)
        return found

    def leave(self, pid: int, tid: int, at: int, stack: int, state: str, *, sample: bool) -> None:
        """A thread leaves its CPU. perf tells it twice: by a sample with stack and state, then by a record of the switch."""
        thread = self._of(pid, tid, at, onto=False)
        if thread is None:
            return
        if thread.left is not None and not sample and not thread.told:
            thread.told = True
            if state == "R":
                thread.left = (*thread.left[:2], "R")
            return
        thread.left, thread.told = (at, stack, state), not sample

    def enter(self, pid: int, tid: int, at: int) -> None:
        """A thread comes onto a CPU."""
        thread = self._of(pid, tid, at, onto=True)
        if thread is not None:
            self._close(thread, at)

    def span(self, pid: int, tid: int, since: int, ns: int, stack: int, state: str) -> None:
        """A whole span at once."""
        thread = self._of(pid, tid, since, onto=False)
        if thread is not None:
            thread.left = (since, stack, state)
            self._close(thread, since + ns)

    def seen(self, pid: int, tid: int, at: int) -> None:
        """A thread was there and not off its CPU."""
        self._of(pid, tid, at, onto=False)

    def work(self, pid: int, tid: int, at: int, stack: int) -> None:
        """A sample of the kernel's work for a thread."""
        thread = self._of(pid, tid, at, onto=False)
        if thread is not None and stack >= 0 and self._room():
            thread.on.append([at, stack])

    def threads(
        self, began: int, ended: int, before: Mapping[int, Standing], after: Mapping[int, Standing]
    ) -> dict[str, OffThread]:
        """All of them, with what they stood in before their first switch and after their last."""
        for tid, thread in self._threads.items():
            if thread.first and thread.first[1] and tid in before:  # it was off when the window began
                self._insert(thread, began, thread.first[0], before[tid])
            if thread.left is not None and tid in after and thread.left[2] not in "XZ":
                self._close(thread, ended)
        for tid, was in before.items():
            now = after.get(tid)
            if (
                tid not in self._threads
                and now is not None
                and now.pid == was.pid
                and 0 <= was.ran == now.ran
                and now.state != "R"
            ):
                thread = self._threads[tid] = _Thread(was.pid)
                self._insert(thread, began, ended, was if was.functions else now)
        names = {tid: s.name for tid, s in (*after.items(), *before.items())}
        return {
            str(tid): {
                "pid": t.pid,
                "name": clean(names.get(tid, ""))[:100],
                "off": _within(t.off, began),
                "on": sorted(t.on),
            }
            for tid, t in sorted(self._threads.items())
        }

    def _of(self, pid: int, tid: int, at: int, *, onto: bool) -> _Thread | None:
        if pid not in self._pids or tid <= 0:
            return None
        thread = self._threads.get(tid)
        if thread is None:
            thread = self._threads[tid] = _Thread(pid)
        thread.first = thread.first or (at, onto)
        return thread

    def _close(self, thread: _Thread, at: int) -> None:
        if thread.left is not None and at > thread.left[0] and self._room():
            thread.off.append([thread.left[0], at - thread.left[0], *thread.left[1:]])
            self.blind += thread.left[1] < 0
        thread.left = None

    def _insert(self, thread: _Thread, since: int, until: int, stood: Standing) -> None:
        state = stood.state if stood.state in "SDTtPI" else "?"
        if until > since and self._room():
            thread.off.append([since, until - since, self.stack(stood.functions), state])

    def _room(self) -> bool:
        self._count += 1
        if self._count > MOST_SPANS:
            self.cut = True
        return self._count <= MOST_SPANS


def _within(spans: list[list[Any]], began: int) -> list[list[Any]]:
    """Without what was before the window began."""
    found = [[max(since, began), ns - max(began - since, 0), stack, state] for since, ns, stack, state in spans]
    return sorted(s for s in found if s[1] > 0)
