"""The course of the talk on the screen: which turn is under way, which ones wait, what has become of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tui.widgets.turns import NAMED, Turn

if TYPE_CHECKING:
    from probes.runner import Progress
    from tui.talk import Failed, Heard, Said, Waits, Working
    from tui.widgets.transcript import Transcript


class Course:
    """Puts into the transcript what the talk tells."""

    def __init__(self, page: Transcript, t: Callable[[str, str], str]) -> None:
        """`t` picks the words of the app's language."""
        self.page, self._t = page, t
        self.turn: Turn | None = None  # the one under way
        self.queue: list[Turn] = []  # those that wait
        self._closed: list[Turn] = []  # whose questions the turn under way has closed

    @property
    def idle(self) -> bool:
        """Whether nothing is under way, and nothing was ever said."""
        return self.turn is None and all(t.note for t in self.page.turns)

    def heard(self, message: Heard) -> None:
        """A question began."""
        for turn in self.page.turns:
            if turn.asked and turn.shown is not None and turn.shown.choices:
                self.close(turn)
        waiting = next((t for t in self.queue if t.text == message.text), None)
        if waiting is not None:
            self.queue.remove(waiting)
            self.page.remove_turns([waiting])
        self.turn = Turn(message.text, own=message.own)
        if self.queue:
            self.page.insert(self.turn, self.queue[0])
        else:
            self.page.add(self.turn)

    def waits(self, message: Waits) -> None:
        """Something waits for the turn that is under way, or does no longer."""
        self.page.remove_turns(self.queue)
        self.queue = [Turn(text, waits=True) for text in message.texts]
        for turn in self.queue:
            self.page.add(turn)

    def working(self, message: Working) -> None:
        """What is being done."""
        turn = self.turn
        if turn is None:
            return
        turn.echo = message.echo or turn.echo
        doing = message.reading or (self._probing(message.progress) if message.progress is not None else "")
        turn.doing = doing or turn.doing
        self.page.changed(turn)

    def said(self, message: Said) -> Turn:
        """The answer; the turn that it belongs to."""
        turn, self.turn = self.turn or Turn(""), None
        self._closed = []
        turn.echo, turn.shown = message.shown.echo or turn.echo, message.shown
        self.page.changed(turn)
        for complaint in message.complaints:
            self.note(complaint)
        return turn

    def failed(self, message: Failed) -> None:
        """No answer: what went wrong, or what was given up, with all that waited for it."""
        from assistant.session.phrases import BROKEN

        turn, self.turn = self.turn, None
        if turn is None:
            return
        for asking in self._closed:  # the talk stands where it stood
            asking.asked = True
            asking.changed()
        self._closed = []
        turn.trouble = message.text
        if not message.text:
            for dropped in (turn, *self.queue):
                dropped.waits, dropped.broken = False, self._t(BROKEN.en, BROKEN.zh)
                dropped.changed()
            self.queue = []
        self.page.changed(turn)

    def note(self, text: str, offers: tuple[str, ...] = ()) -> None:
        """A word of the app."""
        self.page.add(Turn(text, note=True, offers=offers))

    def clear(self) -> None:
        """Nothing was said."""
        self.turn, self.queue, self._closed = None, [], []
        self.page.clear()

    def close(self, turn: Turn) -> None:
        """Something was said: the question at the end of `turn` is answered by it, or by words later on."""
        turn.asked = False
        turn.changed()
        self._closed.append(turn)

    def _probing(self, progress: Progress) -> str:
        names = ", ".join(progress.waiting[:NAMED])
        more = f" +{len(progress.waiting) - NAMED}" if len(progress.waiting) > NAMED else ""
        of = f"{progress.done}/{progress.total}"
        return self._t(f"looking {of}", f"查看中 {of}") + (f" · {names}{more}" if names else "")
