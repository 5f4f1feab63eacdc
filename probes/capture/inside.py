"""What runs inside the targets: one guest each, side by side, begun at one moment, waited for no longer than its deadline.

A guest that cannot be got in is told with its reason and leaves nothing; the others go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from itertools import pairwise
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from knowledge.language import Text
from knowledge.record import dataclass
from knowledge.text import excerpt
from probes.capture.model import Item, Outcome, Part, Refusal, Rung, Window
from probes.capture.plan import Plan, Planned

if TYPE_CHECKING:
    from probes.capture.guest.guest import Guest, GuestState

INJECT: Final = 2.5  # seconds that a call waits to be taken by the main thread
LEAD: Final = 1.6  # seconds from the calls to the window's begin: the slowest rank has made its pilot by then
STOPS: Final = 12.0  # seconds that profilers may take to stop and to write, after the window
COUNTING: Final = 60.0  # seconds that iterations are waited for
POLL: Final = 0.05
FEW: Final = 8  # iterations: fewer say nothing of the rate


@dataclass(slots=True)
class Inside:
    """One target with its guest, and what became of it."""

    planned: Planned
    guest: Guest | None = None
    rung: Rung | None = None
    refusal: Refusal | None = None  # why the guest did not get in
    state: GuestState | None = None  # as it last told
    parts: list[Part] = field(default_factory=list)
    iterations: dict[str, Any] | None = None
    torch: dict[str, Any] | None = None
    entered: bool = False  # the call was made: something ran in the target
    marks: tuple[str, ...] = ()  # what is ours in it: its folder

    @property
    def items(self) -> tuple[Item, ...]:
        """What it was to get."""
        return self.planned.called

    @property
    def phase(self) -> str:
        """Where the guest is: as it last told."""
        return self.state.phase if self.state is not None else ""

    def poll(self) -> GuestState:
        """Asks the guest, which also tells it that somebody waits."""
        assert self.guest is not None
        self.state = self.guest.poll()
        return self.state

    @property
    def stuck(self) -> bool:
        """The main thread never took the call: it stands somewhere."""
        return self.refusal is not None and self.refusal.code == "no-answer"


def enter(plan: Plan, start_at: int | None, *, say: Callable[[str], None], cancel: Event) -> list[Inside]:
    """Makes the call in every target that is to have one, side by side. `start_at`: monotonic ns, where ranks begin together."""
    chosen = [Inside(p) for p in plan.targets if plan.inject(p)]
    if not chosen or cancel.is_set():
        return []
    say("asking the job" if len(chosen) == 1 else f"asking {len(chosen)} processes")
    with ThreadPoolExecutor(max_workers=min(32, len(chosen)), thread_name_prefix="inject") as pool:
        list(pool.map(lambda one: _enter(one, plan, start_at), chosen))
    return chosen


def _enter(one: Inside, plan: Plan, start_at: int | None) -> None:
    from probes.capture.guest.guest import Guest
    from probes.capture.inject import inject

    target, wish = one.planned.target, plan.wish
    guest = Guest(
        target,
        one.items,
        plan.window,
        events=wish.events,
        loss=wish.loss,
        start_at=start_at,
        force=wish.force,
        patience=COUNTING,
    )
    try:
        guest.prepare()
        one.guest, one.marks = (
            guest,
            (guest.inside,),
        )  # not its thread's name: kineto's own thread inherits that, and stays
        done = inject.run(target.process, guest.code, rungs=one.planned.ways, deadline=INJECT)
        one.rung, one.entered = done.rung, True
    except inject.InjectError as error:
        one.refusal = error.refusal
    except OSError as error:
        one.refusal = _no_place(error)
    if one.refusal is not None:
        guest.clean()  # a queued call finds no file, and does nothing
        one.guest = None


def _no_place(error: OSError) -> Refusal:
    why = excerpt(error.strerror or str(error), 200)
    return Refusal("no-place", Text(f"no private folder could be made where the job sees it: {why}", f"无法在作业可见处建立私有目录：{why}"),
                   Text("it needs one of /tmp, /dev/shm, /var/tmp in the job's file system, writable", "作业的文件系统中需有可写的 /tmp、/dev/shm 或 /var/tmp"))  # fmt: skip


def wait(found: Sequence[Inside], window: Window, *, say: Callable[[str], None], cancel: Event) -> None:
    """Until all guests are done, or their time is over; a cancelled capture stops them and waits for that alone."""
    span = COUNTING if window.by_iterations else window.duration_ns / 1e9
    until = time.monotonic() + LEAD + span + STOPS
    stopped = False
    while waiting := [one for one in found if one.guest is not None and not one.poll().over]:
        now = time.monotonic()
        if (cancel.is_set() or now >= until) and not stopped:
            stopped, until = True, now + STOPS
            _stop(waiting)
        elif now >= until:
            break
        say(f"waiting for {len(waiting)} of {len(found)}: {waiting[0].phase}" if len(found) > 1 else waiting[0].phase)
        time.sleep(POLL)


def _stop(waiting: Sequence[Inside]) -> None:
    for one in waiting:
        if one.guest is not None:
            one.guest.stop()


def collect(found: Sequence[Inside], folder: Path) -> None:
    """Takes what the guests made, and clears them away; each target by itself."""
    for one in found:
        if one.guest is None:
            continue
        try:
            one.parts, one.iterations, one.torch = one.guest.collect(folder)
        except OSError as error:
            why = excerpt(error.strerror or str(error), 200)
            one.parts = [
                Part(i, Outcome.FAILED, one.rung, Text(f"its files could not be taken: {why}", f"无法取回文件：{why}"))
                for i in one.items
            ]
        finally:
            one.guest.clean()


class Spans(NamedTuple):
    """Iterations around a window, ns; None where none were counted."""

    before: int | None = None  # a usual one
    after: int | None = None
    longest: int | None = None  # while the guest was there


def spans(one: Inside | None) -> Spans:
    """What the iterations that were counted tell of the guest's stay: before its window, within it and until its last stop, after."""
    ends = one.iterations.get("ends") if one is not None and one.iterations is not None else None
    moments = [e for e in ends if isinstance(e, int)] if isinstance(ends, list) else []
    pairs = [(a, b) for a, b in pairwise(moments) if b > a]
    timed = [p for p in one.parts if p.ended > p.began > 0] if one is not None else []
    if not pairs or not timed:
        return Spans(longest=max((b - a for a, b in pairs), default=None))
    began, ended = min(p.began for p in timed), max(p.ended for p in timed)
    before, after = [b - a for a, b in pairs if b <= began], [b - a for a, b in pairs if a >= ended]
    return Spans(_usual(before), _usual(after), max(b - a for a, b in pairs))


def _usual(lengths: Sequence[int]) -> int | None:
    """The lower quartile: what other work on the machine adds says nothing of what the capture did. None for too few."""
    return sorted(lengths)[len(lengths) // 4] if len(lengths) >= FEW else None
