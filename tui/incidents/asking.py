"""The walk's side of the dialog: what it says is posted, what it asks waits for an answer. No method paints anything."""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Event
from typing import TYPE_CHECKING

from textual.message import Message

from assistant.incidents.walk_parts import LeftError

if TYPE_CHECKING:
    from assistant.render.sheet import Part
    from knowledge.language import Text
    from tui.work import Job

TICK = 0.2  # seconds between two looks at whether the app ends


class WalkSaid(Message):
    """A line, or the output of a command."""

    def __init__(self, text: Text) -> None:
        super().__init__()
        self.text = text


class WalkShows(Message):
    """A step, as it begins."""

    def __init__(self, title: str, parts: list[Part]) -> None:
        super().__init__()
        self.title, self.parts = title, tuple(parts)


class WalkAsks(Message):
    """It waits for an answer."""

    def __init__(self, question: Text) -> None:
        super().__init__()
        self.question = question


class WalkEnded(Message):
    """It is over. `trouble`: why it could not go on; empty when a person left, or no step is left."""

    def __init__(self, trouble: str = "") -> None:
        super().__init__()
        self.trouble = trouble


class Asker:
    """A `walk_parts.Talk` over messages: `say`, `show`, `ask`, `sleep` in the walk's thread, `answer` and `leave` in the app's."""

    def __init__(self, post: Callable[[Message], object], job: Job) -> None:
        self._post, self._job = post, job
        self._answers: SimpleQueue[str] = SimpleQueue()
        self._left = Event()

    # --- in the thread of the walk ------------------------------------------------------------

    def left(self) -> bool:
        """Whether the person leaves, or the app ends: also what ends a command that runs."""
        return self._left.is_set() or self._job.stopped

    def tell(self, message: Message) -> None:
        """Post, while there is an app to post to."""
        if not self._job.stopped:
            self._post(message)

    def say(self, text: Text) -> None:
        """A line."""
        self.tell(WalkSaid(text))

    def show(self, title: str, parts: list[Part]) -> None:
        """A step. LeftError when the person left meanwhile: none is begun then."""
        if self.left():
            raise LeftError
        self.tell(WalkShows(title, parts))

    def ask(self, question: Text) -> str:
        """Wait for the answer. LeftError when there is none any more."""
        if not self.left():
            self.tell(WalkAsks(question))
        while not self.left():
            try:
                return self._answers.get(timeout=TICK)
            except Empty:
                continue
        raise LeftError

    def sleep(self, seconds: float) -> None:
        """Between two rounds of a loop. LeftError as above."""
        while seconds > 0 and not self.left():
            self._left.wait(min(TICK, seconds))
            seconds -= TICK
        if self.left():
            raise LeftError

    # --- in the thread of the app -------------------------------------------------------------

    def answer(self, text: str) -> None:
        """What the person typed."""
        self._answers.put(text.strip().lower())

    def leave(self) -> None:
        """Ask the walk to end."""
        self._left.set()
