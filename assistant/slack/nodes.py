"""One queue a machine: never two looks at once at the same one, whoever asks.

Who asks for just what is being looked at already, or waits for its turn, gets that look's result: a second asker joins. Among several
people each has a look in turn, so that nobody's ten questions stand before somebody else's first. A look that everybody who
waited for it has given up is ended.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from assistant.session.state import Seen
    from probes.runner import Progress

    Tell = Callable[[Progress], None]
    Run = Callable[[Tell], Seen]

POLL = 0.1  # seconds between two looks at whether the asker has given up


class AbandonedError(Exception):
    """Nobody waits for the look any more."""


class What(NamedTuple):
    """What is looked at on a machine; equal ones are one look."""

    probes: frozenset[str]
    options: tuple[tuple[str, str], ...] = ()
    budget: bool = True  # whether it may be cut short: what somebody agreed to may not


class Waiting(NamedTuple):
    """How it stands with a look that has not begun."""

    before: int  # looks that come first
    joined: bool  # whether it is somebody else's


class _Look:
    def __init__(self, what: What, user: str, run: Run) -> None:
        self.what, self.user, self.run = what, user, run
        self.done: Future[Seen] = Future()
        self.tells: dict[int, Callable[[Progress], None]] = {}  # of those who wait, by a number
        self.last: Any = None

    def tell(self, progress: Progress) -> None:
        """How far it is. AbandonedError when nobody waits."""
        if not self.tells:
            raise AbandonedError
        self.last = progress
        for one in list(self.tells.values()):
            one(progress)


class _Queue:
    """Of one machine."""

    def __init__(self) -> None:
        self.now: _Look | None = None
        self.people: OrderedDict[str, deque[_Look]] = OrderedDict()

    def find(self, what: What) -> _Look | None:
        """The same look, for which somebody waits. One that tells more is not the same: not everybody may see all of it."""
        looks = (self.now, *(one for line in self.people.values() for one in line))
        return next((one for one in looks if one is not None and one.tells and one.what == what), None)

    def put(self, look: _Look) -> None:
        self.people.setdefault(look.user, deque()).append(look)

    def next(self) -> _Look | None:
        """Whose turn it is: each person's oldest look, one person after the other."""
        while self.people:
            user, line = next(iter(self.people.items()))
            look = line.popleft()
            if line:
                self.people.move_to_end(user)
            else:
                del self.people[user]
            if look.tells:
                return look
        return None

    def before(self, look: _Look) -> int:
        """Looks that come first, at most."""
        if self.now is look:
            return 0
        own = self.people.get(look.user, deque())
        place = own.index(look) if look in own else 0
        others = sum(min(len(line), place + 1) for user, line in self.people.items() if user != look.user)
        return place + others + (self.now is not None)


class Nodes:
    """The queues of all machines."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._queues: dict[str, _Queue] = {}
        self._number = 0

    def look(
        self, node: str, what: What, user: str, run: Run, *, tell: Tell, check: Callable[[], None],
        waits: Callable[[Waiting], None] = lambda _: None,
    ) -> tuple[Seen, bool]:  # fmt: skip
        """Look at `node`, when it is `user`'s turn, or join a look that is the same; and whether it was joined.

        `run` does it in a thread of its own. `tell` is told of its progress from there; `check`, called in this thread, raises
        when the asker gives up; `waits` is told when the look has to wait. What `run` raises is raised here.
        """
        look, joined, number = self._entered(node, what, user, run, tell)
        try:
            said: Waiting | None = None
            while True:
                if (now := self._standing(node, look, joined)) is not None and now != said:
                    waits(now)
                    said = now
                try:
                    return look.done.result(POLL), joined
                except NotYet:
                    if look.done.done():  # what the look itself raised was such an error
                        raise
                check()
        finally:
            with self._lock:
                look.tells.pop(number, None)

    def _entered(self, node: str, what: What, user: str, run: Run, tell: Tell) -> tuple[_Look, bool, int]:
        with self._lock:
            queue = self._queues.setdefault(node, _Queue())
            self._number += 1
            look = queue.find(what)
            joined = look is not None
            if look is None:
                look = _Look(what, user, run)
                queue.put(look)
            look.tells[self._number] = tell
            number, last = self._number, look.last
        if last is not None:
            tell(last)
        self._pump(node)
        return look, joined, number

    def _standing(self, node: str, look: _Look, joined: bool) -> Waiting | None:
        with self._lock:
            queue = self._queues.get(node)
            if queue is None or look.done.done() or (queue.now is look and not joined):
                return None
            return Waiting(queue.before(look), joined)

    def _pump(self, node: str) -> None:
        with self._lock:
            queue = self._queues.get(node)
            if queue is None or queue.now is not None:
                return
            queue.now = queue.next()
            if queue.now is None:
                del self._queues[node]
                return
            look = queue.now
        Thread(target=self._running, args=(node, queue, look), name=f"look-{node}", daemon=True).start()

    def _running(self, node: str, queue: _Queue, look: _Look) -> None:
        found: Seen | None = None
        failed: BaseException | None = None
        try:
            found = look.run(look.tell)
        except BaseException as error:  # noqa: BLE001 - raised again in the threads that wait for it
            failed = error
        with self._lock:
            queue.now = None
            if found is not None:
                look.done.set_result(found)
            else:
                look.done.set_exception(failed or AbandonedError())
        self._pump(node)
