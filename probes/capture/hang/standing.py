"""Whether one process stands still, where, and since when: from two or more looks at it (`hang.look`). Pure.

A process that is slow is not hung. So "still" needs more than the same stack twice: the thread that drives the work must
not have run at all in between, and must have stood for `LEAST_S`, which the kernel tells of a thread that sleeps. A
thread that wakes and sleeps again at the same line polls, or loops slowly; one that spins in a collective or in a wait
for the device may wait for a long kernel: of these two looks cannot tell, and nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from knowledge.language import NO_TEXT, Text
from knowledge.record import dataclass
from knowledge.text import clean, excerpt
from probes.capture.hang.standing_frames import (
    Cause,
    Kind,
    Native,
    Place,
    Stack,
    call_name,
    normal,
    ours,
    place,
    uses_workers,
    where,
)
from probes.capture.stacks.activity import Frame
from probes.parse._host_snapshot import mapping, mappings, whole

LEAST_S: Final = (
    3.0  # seconds without any run: a step that waits this long with idle CPUs in all ranks is rare, a hang is not
)
BUSY: Final = 0.05  # of a CPU: below it a thread only wakes to look whether it may go on (a data loader does each 5 s)
SURE: Final = frozenset({Cause.ENDED, Cause.STOPPED, Cause.TRACED, Cause.DEBUGGER, Cause.WORKERS_DEAD})
_MOST_FRAMES: Final = 1000
_S: Final = 1_000_000_000

SHORT = Text("it is there for a moment only", "仅停住片刻")
POLLS = Text(
    "it wakes and sleeps again at the same place: a poll, or a slow loop", "在同一处反复唤醒又休眠：轮询，或很慢的循环"
)
SPINS = Text("it spins in a wait: a long kernel looks the same", "在等待中自旋：长时间运行的 kernel 看起来相同")
SERVES = Text("it waits for requests", "在等待请求")
WORKS = Text("its data loader's workers work", "其 data loader 的 worker 仍在工作")
UNSEEN = Text("it could not be looked at twice", "未能查看两次")
MOVES = Text("it moves", "在前进")


@dataclass(frozen=True, slots=True)
class Member:
    """One process of a capture, as far as it matters here."""

    pid: int
    rank: int | None = None
    local_rank: int | None = None
    world: int | None = None
    job: str = ""
    helpers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one process stands."""

    member: Member
    kind: Kind = Kind.UNKNOWN
    cause: Cause = Cause.NONE
    name: str = ""  # of the collective
    function: str = ""  # where, for people
    stack: tuple[str, ...] = ()  # of the thread that drives, root first, without lines
    still: bool | None = None  # None: cannot be told; `why` says why
    why: Text = NO_TEXT
    seconds: float = 0.0  # that it has stood there, at least
    evidence: str = ""  # state, system call, seconds: what a person can look at

    @property
    def waits(self) -> bool:
        """Whether it waits for other ranks."""
        return self.kind is Kind.COLLECTIVE


def members(targets: object) -> tuple[Member, ...]:
    """The members of a capture from ``targets`` of its document; rows that are damaged are left out."""
    out = []
    for row in mappings(targets):
        pid = whole(mapping(row.get("process")).get("pid"))
        helpers = (whole(h.get("pid")) for h in mappings(row.get("helpers")))
        if pid is not None:
            out.append(Member(pid, whole(row.get("rank")), whole(row.get("local_rank")), whole(row.get("world_size")),
                              clean(str(row.get("job") or "")), tuple(p for p in helpers if p is not None)))  # fmt: skip
    return tuple(out)


def standing(hang: Mapping[str, Any], member: Member) -> Standing:
    """Where `member` stands, from the ``hang`` part of a capture."""
    looks = [_Look(look, member.pid) for look in mappings(mapping(hang.get("proc")).get("looks"))]
    dumps = [threads_of(d) for d in mappings(hang.get("dumps")) if d.get("pid") == member.pid and not d.get("error")]
    if not looks:
        return Standing(member, why=UNSEEN)
    if not looks[-1].state or looks[-1].state in "ZX":
        return Standing(member, cause=Cause.ENDED, still=True, seconds=0.0, evidence="the process has ended")
    seen = _Seen(member, str(mapping(hang.get("proc")).get("machine")), looks, dumps, mapping(hang.get("sources")))
    return _judged(seen, looks, hang)


class _Look:
    """What /proc told of a process at one moment."""

    def __init__(self, look: Mapping[str, Any], pid: int) -> None:
        row = mapping(mapping(look.get("processes")).get(str(pid)))
        self.at = whole(look.get("at")) or 0
        self.state = str(row.get("state") or "")
        self.threads = mapping(row.get("threads"))
        self.io = {k: v for k, v in mapping(row.get("io")).items() if whole(v) is not None}

    def native(self, tid: int, machine: str) -> Native:
        row = mapping(self.threads.get(str(tid)))
        call, arguments = call_name(machine, str(row.get("syscall") or ""))
        return Native(str(row.get("state") or ""), call, arguments, str(row.get("wchan") or ""))

    def number(self, tid: int, name: str) -> int | None:
        return whole(mapping(self.threads.get(str(tid))).get(name))


@dataclass(slots=True)
class _Thread:
    tid: int
    stacks: list[Stack]  # one a dump; empty where it was not in it
    native: Native
    place: Place


class _Seen:
    """The threads of a process with what each stands in, and the one that drives."""

    def __init__(self, member: Member, machine: str, looks: Sequence[_Look], dumps: Sequence[Mapping[int, Stack]],
                 sources: Mapping[str, Any]) -> None:  # fmt: skip
        self.member = member
        self.machine = machine
        last = looks[-1]
        tids = {tid for dump in dumps for tid in dump} | {member.pid}
        lines = mapping(sources.get(str(member.pid)))
        self.threads: dict[int, _Thread] = {}
        for tid in sorted(tids, key=lambda t: (t != member.pid, t)):
            stacks = [dump.get(tid, ()) for dump in dumps]
            native = last.native(tid, machine)
            newest = stacks[-1] if stacks else ()
            line = str(lines.get(f"{newest[-1][1]}:{newest[-1][2]}", "")) if newest else ""
            found = place(newest, native, line, distributed=(member.world or 0) > 1)
            self.threads[tid] = _Thread(tid, stacks, native, found)
        self.driver = self._driver()

    def _driver(self) -> _Thread:
        """The main thread; or, where that only waits for another one, the one that is in a collective, or loads data, for it."""
        main = self.threads[self.member.pid]
        waits = main.place.kind is Kind.LOCK or main.place.cause in (Cause.BACKWARD, Cause.IDLE)
        if not waits:
            return main
        # In backward, hooks run in the engine's own threads; trainers start the loop in a thread and join it.
        wanted = (Kind.COLLECTIVE, Kind.DATA, Kind.DEVICE)
        others = [t for t in self.threads.values() if t is not main and t.place.kind in wanted and _of_program(t)]
        return min(others, key=lambda t: (wanted.index(t.place.kind), t.tid), default=main)

    def deadlock(self, stood: Iterable[int]) -> tuple[_Thread, ...]:
        """Threads that each wait for a lock in the user's own code; two or more, or none."""
        held = set(stood)
        found = [
            t for t in self.threads.values()
            if t.tid in held and t.place.kind is Kind.LOCK and t.native.call == "futex" and t.stacks
            and t.stacks[-1] and ours(t.stacks[-1][-1])
        ]  # fmt: skip
        addresses = {t.native.arguments[:1] for t in found}
        return tuple(found) if len(found) > 1 and len(addresses) > 1 else ()


def threads_of(dump: Mapping[str, Any]) -> dict[int, Stack]:
    """Stacks by thread of one dump, frames checked."""
    out: dict[int, Stack] = {}
    for thread in mappings(dump.get("threads")):
        tid, frames = whole(thread.get("tid")), thread.get("frames")
        if tid is not None and isinstance(frames, list):
            out[tid] = tuple(f for f in map(_frame, frames[:_MOST_FRAMES]) if f is not None)
    return out


def _frame(row: object) -> Frame | None:
    if not isinstance(row, list) or len(row) != 3 or not isinstance(row[0], str) or not isinstance(row[1], str):
        return None
    return clean(row[0]), clean(row[1]), whole(row[2]) or 0


def _of_program(thread: _Thread) -> bool:
    """Whether a thread runs the program, and not a library's own loop: some frame of it is the user's."""
    return bool(thread.stacks) and any(map(ours, thread.stacks[-1]))


def _judged(seen: _Seen, looks: Sequence[_Look], hang: Mapping[str, Any]) -> Standing:
    driver, member = seen.driver, seen.member
    kind, cause = driver.place.kind, driver.place.cause
    stack = driver.stacks[-1] if driver.stacks else ()
    function = _function(driver.place)
    if kind is Kind.DATA and uses_workers(stack) and _all_ended(hang, member.helpers):
        cause = Cause.WORKERS_DEAD
    if kind is Kind.LOCK and (locked := seen.deadlock(_stood(seen, looks))):
        cause = Cause.DEADLOCK
        function = "; ".join(where(t.stacks[-1][-1]) for t in locked[:4])
    unread = next(
        (str(d.get("error")) for d in mappings(hang.get("dumps")) if d.get("pid") == member.pid and d.get("error")), ""
    )
    evidence = _evidence(driver) + (f"; {excerpt(unread, 120)}" if unread and not stack else "")
    out = Standing(member, kind, cause, driver.place.name, function, normal(stack), evidence=evidence)
    return _timed(out, driver, looks, hang)


def _timed(out: Standing, driver: _Thread, looks: Sequence[_Look], hang: Mapping[str, Any]) -> Standing:
    """`out` with whether it stands still, and for how long."""
    span = (looks[-1].at - looks[0].at) / _S
    ran, woke = _grown(looks, driver.tid, "ran"), _grown(looks, driver.tid, "switches")
    asleep = driver.native.state in ("S", "D", "T", "t")
    quiet = (looks[-1].number(driver.tid, "quiet") or 0) / _S if asleep and not ran and not woke else 0.0
    seconds = max(quiet, span if not ran and not woke and len(looks) > 1 else 0.0)
    out = replace(out, seconds=round(seconds, 1))
    if out.cause in (Cause.STOPPED, Cause.TRACED) and any(
        k.native(driver.tid, "").state not in ("T", "t") for k in looks
    ):
        return replace(out, why=SHORT)  # strace, or a profiler, stops threads for a moment
    if out.cause in SURE:
        return replace(out, still=True)
    if len(looks) < 2 or ran is None:
        return replace(out, why=UNSEEN)
    told = [s for s in driver.stacks if s]
    if len(set(told)) > 1:
        return replace(out, still=False, why=MOVES)
    if ran > BUSY * span * _S:
        spins = bool(told) and out.kind in (Kind.COLLECTIVE, Kind.DEVICE)
        return replace(out, why=SPINS, seconds=round(span, 1)) if spins else replace(out, still=False, why=MOVES)
    if out.cause is Cause.IDLE:
        return replace(out, why=SERVES)
    if out.kind in (Kind.IO, Kind.DATA) and _moved_bytes(looks):
        return replace(out, still=False, why=MOVES)
    if out.kind is Kind.DATA and _helpers_work(hang, out.member.helpers):
        return replace(out, still=False, why=WORKS)
    if woke:
        return replace(out, why=POLLS, seconds=round(span, 1) if told else 0.0)
    return replace(out, still=True) if seconds >= LEAST_S else replace(out, why=SHORT)


def _stood(seen: _Seen, looks: Sequence[_Look]) -> list[int]:
    """The threads that did not run between the first and the last look."""
    return [t for t in seen.threads if _grown(looks, t, "ran") == 0 and not _grown(looks, t, "switches")]


def _grown(looks: Sequence[_Look], tid: int, name: str) -> int | None:
    """By how much a counter of a thread grew between the first and the last look; None when it was not read."""
    first, last = looks[0].number(tid, name), looks[-1].number(tid, name)
    return None if first is None or last is None else max(last - first, 0)


def _moved_bytes(looks: Sequence[_Look]) -> bool:
    first, last = looks[0].io, looks[-1].io
    return any(last[name] > first[name] for name in first.keys() & last.keys())


def _helpers_work(hang: Mapping[str, Any], helpers: Iterable[int]) -> bool:
    """Whether a worker process used a CPU, read or wrote between the looks."""
    looks = mappings(mapping(hang.get("proc")).get("looks"))
    for pid in helpers:
        mine = [_Look(look, pid) for look in looks]
        if len(mine) < 2:
            continue
        span = mine[-1].at - mine[0].at
        ran = sum(_grown(mine, int(t), "ran") or 0 for t in mine[-1].threads if t.isascii() and t.isdigit())
        if ran > BUSY * span or _moved_bytes(mine):
            return True
    return False


def _all_ended(hang: Mapping[str, Any], helpers: Sequence[int]) -> bool:
    """Whether there were workers, and none lives."""
    looks = mappings(mapping(hang.get("proc")).get("looks"))
    states = [_Look(looks[-1], pid).state for pid in helpers] if looks else []
    return bool(states) and all(s in ("", "Z", "X") for s in states)


def _function(found: Place) -> str:
    if found.frame is None:
        return ""
    called = f"{found.name}, called by " if found.name and found.frame[0] != found.name else ""
    return called + where(found.frame)


def _evidence(driver: _Thread) -> str:
    native = driver.native
    parts = [f"thread {driver.tid}", f"state {native.state}" if native.state else "", native.call,
             f"at {native.wchan}" if native.wchan not in ("", "0") else ""]  # fmt: skip
    return ", ".join(p for p in parts if p)
