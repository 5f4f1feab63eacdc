"""An answer in short, below the answer, once a language model has said it and the fence let it pass; nothing otherwise. Below a
sentence that nobody understood: what it may have meant, as a question.

Nothing waits for it: the narrator is made when the first answer stands, in a thread, and what comes too late for the app is dropped.
"""

from __future__ import annotations

import time
from threading import Lock
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from assistant.config import Settings
    from assistant.narrate.narrator import Narrator, Pending
    from assistant.session.driver import Answer
    from tui.widgets.turns import Meant, Turn
    from tui.work import Job, Jobs

LOOK, LATE = 0.2, 5.0  # seconds: between two looks whether it has come, and beyond the model's deadline


class Retold(Message):
    """A narration that may be shown below the answer of `turn`."""

    def __init__(self, turn: Turn, heading: str, text: str) -> None:
        super().__init__()
        self.turn, self.heading, self.text = turn, heading, text


class Suggested(Message):
    """What the sentence of `turn` may have meant; nothing is asked before somebody says so."""

    def __init__(self, turn: Turn, meant: Meant) -> None:
        super().__init__()
        self.turn, self.meant = turn, meant


class Narration:
    """One narrator for the life of the app; none where no model is set."""

    def __init__(
        self, settings: Settings, jobs: Jobs, post: Callable[[Message], object], hosts: Callable[[], Sequence[str]]
    ) -> None:
        """`post` takes a `Retold` or a `Suggested`, from a thread. `hosts`: the machines that are known, asked in a thread."""
        self._settings, self._jobs, self._post, self._hosts = settings, jobs, post, hosts
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
        from assistant.narrate.slots import Suggestion
        from assistant.render.narration import heading
        from tui.widgets.turns import Meant

        pending = self._asked(answer)
        until = time.monotonic() + self._settings.llm.deadline + LATE
        while pending is not None and not pending.done and time.monotonic() < until:
            if job.wait(LOOK):
                return
        found = pending.result() if pending is not None else None
        if not isinstance(found, Narrated):
            return
        said = found.narration
        job.check()
        if isinstance(said, Suggestion):
            lang = said.query.lang
            self._post(Suggested(turn, Meant(said.question.in_(lang), said.query.echo.in_(lang), said.query)))
        else:
            self._post(Retold(turn, heading(self._settings.llm.model, said.lang), said.text))

    def _asked(self, answer: Answer) -> Pending | None:
        from assistant.narrate import asks
        from assistant.narrate.narrator import Narrator

        with self._lock:
            if self._closed:
                return None
            self._narrator = self._narrator or Narrator(self._settings)
            narrator = self._narrator
        query = answer.query
        if query is not None and asks.not_understood(answer):
            return narrator.ask(asks.meaning(query.text, query.lang, self._hosts()))
        return narrator.ask(asks.answered(answer))
