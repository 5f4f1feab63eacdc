"""py-spy's chrometrace into samples: pure, whatever the file holds.

py-spy writes an event when a frame appears (B) or is gone (E) between two of its samples; times are us since it began. The outermost frame is
the thread's label, ``thread (4242): MainThread``. A stack that stays the same over many samples is one span here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import field
from typing import Final

import msgspec

from knowledge.record import dataclass
from probes.capture.stacks.activity import MODULE, function

MOST_SPANS: Final = 200_000  # of all threads of a process: 12 MB of JSON
DEEPEST: Final = 512  # frames of a stack that are kept, outermost first: recursion goes on below them
_LONGEST = 1000  # characters of a name or a path
# thread (4058): MainThread; thread (0x7F2A303C7B80): MainThread (Python up to 3.10)
_LABEL = re.compile(r"^thread \((?P<id>0x[0-9A-Fa-f]{1,16}|\d{1,10})\)(?:: (?P<name>.*))?$", re.DOTALL)
_TRUE_ROOTS = (MODULE, "_run_module_as_main", "_bootstrap", "_bootstrap_inner")
_RARE = 0.05  # of a thread's stacks: another root than the usual one is more than an accident from here on
_LINES = 10_000_000  # no file has that many


class _Args(msgspec.Struct):
    filename: str = ""
    line: int | None = None


class _Event(msgspec.Struct):
    ph: str = ""
    name: str = ""
    tid: int = 0
    ts: int | float = 0
    args: _Args = msgspec.field(default_factory=_Args)


@dataclass
class Thread:
    """What was seen of one thread."""

    name: str
    spans: list[tuple[int, int, int]] = field(default_factory=list)  # us since the begin, us, stack


@dataclass
class Trace:
    """Frames and stacks are numbered; threads by what py-spy calls them: an OS number, or ``0x7f...``."""

    frames: list[tuple[str, str, int]] = field(default_factory=list)
    stacks: list[tuple[int, ...]] = field(default_factory=list)  # outermost first
    threads: dict[str, Thread] = field(default_factory=dict)
    last: int = 0  # us
    cut: bool = False  # the file was damaged, or held more than is kept
    torn: int = 0  # spans that were left out: their stacks cannot be


def read(data: bytes, cut: bool = False, most: int = MOST_SPANS) -> Trace:
    """The trace in py-spy's file. `cut`: only the head of it is here; `most`: spans that are kept. Never raises."""
    trace = Trace(cut=cut)
    try:
        events = msgspec.json.decode(data, type=list[_Event])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        trace.cut = True
        events = _salvaged(data)
    _Reader(trace, most).take(events)
    _drop_torn(trace)
    return trace


def _salvaged(data: bytes) -> list[_Event]:
    """The events before the place where a file is damaged or ends."""
    begin = data.find(b"[")
    body = data[begin:] if begin >= 0 else b"["
    try:
        return msgspec.json.decode(body[: body.rfind(b"},{") + 1] + b"]", type=list[_Event])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    found = []
    for part in body[1:].split(b"},{"):  # damaged in the middle: event by event, up to the first that is none
        try:
            found.append(msgspec.json.decode(b"{" + part.strip(b"{}[], \n") + b"}", type=_Event))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            break
    return found


class _Open:
    """The stack of one of py-spy's thread slots as it stands."""

    def __init__(self) -> None:
        self.stack: list[int] = []  # frames without the label
        self.thread: Thread | None = None
        self.since = 0


class _Reader:
    def __init__(self, trace: Trace, most: int) -> None:
        self.trace, self.most = trace, most
        self.frames: dict[tuple[str, str, int], int] = {}
        self.stacks: dict[tuple[int, ...], int] = {}
        self.slots: dict[int, _Open] = {}
        self.spans = 0

    def take(self, events: Iterable[_Event]) -> None:
        for event in events:
            if event.ph not in "BE" or not event.ph:
                continue
            ts = int(min(max(event.ts, 0), 1 << 50))
            slot = self.slots.setdefault(event.tid, _Open())
            if ts > slot.since:
                self._close(slot, ts)
            self.trace.last = max(self.trace.last, ts)
            self._apply(slot, event)
            if self.spans >= self.most:
                self.trace.cut = True
                return
        for slot in self.slots.values():  # of a whole file nothing is open: py-spy ends what is
            self._close(slot, self.trace.last)

    def _apply(self, slot: _Open, event: _Event) -> None:
        label = _LABEL.match(event.name[:_LONGEST]) if not event.args.filename else None
        if label is not None:
            slot.stack.clear()
            slot.thread = None
            if event.ph == "B":
                slot.thread = self.trace.threads.setdefault(label["id"], Thread(label["name"] or ""))
            return
        frame = self._frame(event)
        if event.ph == "B":
            slot.stack.append(frame)
        elif frame in slot.stack[-DEEPEST:]:
            while slot.stack.pop() != frame:
                pass

    def _frame(self, event: _Event) -> int:
        key = (event.name[:_LONGEST], event.args.filename[:_LONGEST], event.args.line or 0)
        number = self.frames.setdefault(key, len(self.frames))
        if number == len(self.trace.frames):
            self.trace.frames.append(key)
        return number

    def _close(self, slot: _Open, ts: int) -> None:
        if slot.thread is not None and ts > slot.since:
            stack = tuple(slot.stack[:DEEPEST])
            number = self.stacks.setdefault(stack, len(self.stacks))
            if number == len(self.trace.stacks):
                self.trace.stacks.append(stack)
            spans = slot.thread.spans
            if spans and spans[-1][2] == number and sum(spans[-1][:2]) == slot.since:
                spans[-1] = (spans[-1][0], ts - spans[-1][0], number)
            else:
                spans.append((slot.since, ts - slot.since, number))
                self.spans += 1
        slot.since = ts


def _drop_torn(trace: Trace) -> None:
    """Leaves out stacks that cannot be: a thread that was read while it ran can give the frames of a call that has just ended.

    They show by lines that no file has, and by another outermost frame than the thread's own, which never changes while it runs.
    """
    bad_frame = [not 0 <= line < _LINES or not name or "\0" in file for name, file, line in trace.frames]
    impossible = [any(bad_frame[f] for f in stack) for stack in trace.stacks]
    for thread in trace.threads.values():
        roots = Counter(_root(trace, stack) for _, _, stack in thread.spans)
        root, seen = max(roots.items(), key=lambda r: (r[1], r[0]), default=(("", ""), 0))
        strict = function(root[0]) in _TRUE_ROOTS and len(thread.spans) - seen <= _RARE * len(thread.spans)
        kept = [
            s for s in thread.spans if not impossible[s[2]] and not (strict and trace.stacks[s[2]] and _root(trace, s[2]) != root)
        ]  # fmt: skip
        trace.torn += len(thread.spans) - len(kept)
        thread.spans[:] = kept


def _root(trace: Trace, stack: int) -> tuple[str, str]:
    frames = trace.stacks[stack]
    return trace.frames[frames[0]][:2] if frames else ("", "")
