"""An answer in other words, below the answer, once a language model has said it and the fence let it pass; nothing otherwise.

Nothing waits for it: the narrator is made when the first answer stands, in a thread, and what comes too late for the app is dropped.
"""

from __future__ import annotations

import time
from threading import Lock
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from collections.abc import Callable

    from assistant.config import Settings
    from assistant.narrate.narrator import Narrator, Pending
    from assistant.session.driver import Answer
    from tui.widgets.turns import Turn
    from tui.work import Job, Jobs

LOOK, LATE = 0.2, 5.0  # seconds: between two looks whether it has come, and beyond the model's deadline


class Retold(Message):
    """A narration that may be shown below the answer of `turn`."""

    def __init__(self, turn: Turn, heading: str, text: str) -> None:
        super().__init__()
        self.turn, self.heading, self.text = turn, heading, text


class Narration:
    """One narrator for the life of the app; none where no model is set."""

    def __init__(self, settings: Settings, jobs: Jobs, post: Callable[[Message], object]) -> None:
        """`post` takes a `Retold`, from a thread."""
        self._settings, self._jobs, self._post = settings, jobs, post
        self._lock, self._closed = Lock(), False
        self._narrator: Narrator | None = None

    def begin(self, turn: Turn, answer: Answer) -> None:
        """The answer stands. Returns at once."""
        if self._settings.llm.model:
            self._jobs.start("narration", lambda job: self._tell(job, turn, answer), lambda *_: None)

    def close(self) -> None:
        """End the model's process."""
        with self._lock:
            self._closed, narrator = True, self._narrator
        if narrator is not None:
            narrator.close()

    # --- in a thread ----------------------------------------------------------------------

    def _tell(self, job: Job, turn: Turn, answer: Answer) -> None:
        from assistant.narrate.narrator import Narrated
        from assistant.render.narration import heading

        pending = self._asked(answer)
        until = time.monotonic() + self._settings.llm.deadline + LATE
        while pending is not None and not pending.done and time.monotonic() < until:
            if job.wait(LOOK):
                return
        found = pending.result() if pending is not None else None
        if isinstance(found, Narrated):
            said = found.narration
            job.check()
            self._post(Retold(turn, heading(self._settings.llm.model, said.lang), said.text))

    def _asked(self, answer: Answer) -> Pending | None:
        from assistant.narrate import asks
        from assistant.narrate.narrator import Narrator

        with self._lock:
            if self._closed:
                return None
            self._narrator = self._narrator or Narrator(self._settings)
            narrator = self._narrator
        return narrator.ask(asks.answered(answer))
