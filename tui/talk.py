"""The conversation behind the chat: the session that every surface runs, turned in a thread of its own.

One turn at a time; what is said meanwhile waits. The state is kept as the command line keeps it, so that a talk goes on
when the app is opened again.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from textual.message import Message

if TYPE_CHECKING:
    from assistant.intent.query import Query
    from assistant.session.continued import Continued
    from assistant.session.driver import Answer, Conversation
    from assistant.session.shown import Shown
    from assistant.session.state import Origin
    from assistant.session.steps import Event, Step
    from probes.runner import Progress
    from tui.desk import Desk, Picture
    from tui.work import Job

OFTEN = 0.2  # seconds between two words about a file that is being read


class Heard(Message):
    """A question began to be answered. `own`: somebody pointed at something, and the app put it in words."""

    def __init__(self, text: str, own: bool = False) -> None:
        super().__init__()
        self.text, self.own = text, own


class Waits(Message):
    """What was said and waits for the turn that is under way."""

    def __init__(self, texts: tuple[str, ...]) -> None:
        super().__init__()
        self.texts = texts


class Working(Message):
    """What is being done for it: a step of the session, the probes that are under way, a file that is read."""

    def __init__(
        self, step: Step | None = None, progress: Progress | None = None, *, echo: str = "", reading: str = ""
    ) -> None:  # fmt: skip
        super().__init__()
        self.step, self.progress = step, progress
        self.echo = echo  # as what the sentence was understood
        self.reading = reading  # of a file: its name, and how much of it


class Said(Message):
    """The answer of a turn."""

    def __init__(self, job: Job, answer: Answer, shown: Shown, complaints: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.job, self.answer, self.shown = job, answer, shown
        self.complaints = complaints  # why it is not remembered


class Failed(Message):
    """Why there is no answer; the talk stands where it stood. Empty: it was cancelled."""

    def __init__(self, job: Job, text: str) -> None:
        super().__init__()
        self.job, self.text = job, text


class GoesOn(Message):
    """A conversation of before goes on: what it is about, and what was asked last, if nobody has answered that yet."""

    def __init__(self, about: str, headline: str, asked: Shown | None) -> None:
        super().__init__()
        self.about, self.headline, self.asked = about, headline, asked


class Turn(NamedTuple):
    """One thing that is to be said."""

    text: str
    query: Query | None = None
    event: Event | None = None
    about: Picture | None = None
    pointed: bool = False


class Talk:
    """One conversation. Everything here is called in the app's thread but what begins with an underscore and takes a job."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._waiting: deque[Turn] = deque()
        self._job: Job | None = None
        self._ready: Job | None = None  # its answer is on the way to the screen
        self._lock = Lock()
        self._kept: Continued | None = None
        self._given: Origin | None = None  # what the app looked at in the last turn

    @property
    def busy(self) -> bool:
        """Whether a turn is under way."""
        return self._job is not None and not self._job.stopped

    @property
    def waiting(self) -> tuple[str, ...]:
        """What was said and waits."""
        return tuple(turn.text for turn in self._waiting)

    def say(
        self, text: str, query: Query | None = None, about: Picture | None = None, *, pointed: bool = False
    ) -> None:  # fmt: skip
        """One turn. `about`: the picture on the screen, which the answer is to rest on where the talk rests on nothing
        else, or where somebody `pointed` at it."""
        self._put(Turn(text, query, None, about, pointed))

    def tell(self, event: Event, text: str = "") -> None:
        """One event from a dialog: `Confirmed`, `Answered`, `Cancelled`. `text`: what it says in words."""
        self._put(Turn(text, event=event))

    def cancel(self) -> bool:
        """Give up the turn that is under way, and what waits; False when there is none."""
        dropped = bool(self._waiting)
        self._waiting.clear()
        with self._lock:
            if not self.busy or self._job is None or self._job is self._ready:
                if dropped:
                    self._tell_waiting()
                return dropped
            self._job.stop()
        self._desk.app.post_message(Failed(self._job, ""))
        return True

    def over(self, message: Said | Failed) -> bool:
        """A turn has ended, and the next may begin. False when that turn had been given up before."""
        if message.job is not self._job:
            return False
        self._job = None
        if self._waiting:
            self._next()
            self._tell_waiting()
        return True

    def go_on(self) -> None:
        """Tell what the conversation of before was about, if there is one."""
        if not self._desk.args.new:
            self._desk.jobs.start("before", self._before)

    def _put(self, turn: Turn) -> None:
        self._waiting.append(turn)
        # Not while an answer is on its way to the screen: `over` begins the next one.
        if self._job is None:
            self._next()
        else:
            self._tell_waiting()

    def _next(self) -> None:
        turn = self._waiting.popleft()
        self._desk.app.post_message(Heard(turn.text, own=turn.pointed))
        self._job = self._desk.jobs.start(
            "talk", lambda job: job.post(self._answered(job, turn)), lambda job, said: job.post(Failed(job, said))
        )

    def _tell_waiting(self) -> None:
        self._desk.app.post_message(Waits(self.waiting))

    # --- in a thread ----------------------------------------------------------------------

    def _answered(self, job: Job, turn: Turn) -> Said:
        from assistant.render.reply import echo
        from assistant.session.driver import Conversation, Eyes
        from assistant.session.shown import shown
        from assistant.session.talk import session_of
        from assistant.sources import tells

        desk, kept = self._desk, self._remembered()
        if desk.args.new:
            desk.args.new = False
            kept.forget()

        def probing(progress: Progress) -> None:
            job.check()
            job.post(Working(progress=progress))

        def stepped(step: Step) -> None:
            job.check()
            query = talk.state.said
            said = echo(query) if query is not None and turn.event is None else ""
            job.post(Working(step=step, echo=said))

        eyes = Eyes(
            desk.settings,
            desk.ruleset(),
            desk.wish(),
            probing,
            _Reading(job),
            history=not desk.args.no_history,
            others=desk.others,
        )
        talk = Conversation(session_of(eyes), eyes, kept.now(), stepped)
        job.check()
        if (origin := self._aside(talk, turn)) is None:
            self._rest_on(talk, turn)
            origin = desk.origin
        answer = talk.tell(turn.event) if turn.event is not None else talk.say(turn.text, origin, turn.query)
        found = shown(answer, tells)
        if turn.event is not None:  # a word of ours that was chosen: there was nothing to understand
            found = replace(found, echo="")
        with self._lock:
            job.check()
            self._ready = job  # from here on it has been said
        kept.keep(talk.state)
        self._given = desk.origin
        return Said(job, answer, found, tuple(c.in_(desk.lang) for c in kept.complaints()))

    def _aside(self, talk: Conversation, turn: Turn) -> Origin | None:
        """What a sentence is about that is not what the app looks at: a trace that was pointed at, and of what follows up
        on its answer still that. None for all others."""
        from assistant.intent.parse import understand
        from assistant.session.state import Origin

        here, frame = self._desk.origin, talk.state.frame
        if turn.pointed:
            return turn.about.origin if turn.about is not None and turn.about.origin != here else None
        if turn.event is not None or frame.query is None or frame.origin == here or self._given != here:
            return None
        query = turn.query or understand(turn.text, lang=self._desk.lang)
        return Origin() if query.follows_up else None  # the talk goes on

    def _rest_on(self, talk: Conversation, turn: Turn) -> None:
        """Let the talk begin with what is on the screen, where it does not rest on something of its own."""
        from assistant.session.continued import adopts

        about = turn.about
        if turn.event is not None or about is None or about.seen is None:
            return
        moved = self._given is not None and self._given != about.origin
        if adopts(talk.state, about.seen, about.origin, pointed=turn.pointed, moved=moved):
            talk.adopt(about.seen, about.origin)

    def _remembered(self) -> Continued:
        with self._lock:
            if self._kept is not None:
                return self._kept
            from assistant.session.continued import Continued
            from assistant.session.key import terminal_key
            from assistant.session.store import dialogues

            desk = self._desk
            self._kept = Continued(dialogues(desk.settings), terminal_key(desk.args.thread or "tui", "tui"))
            return self._kept

    def _before(self, job: Job) -> None:
        from assistant.session.continued import about
        from assistant.session.shown import still_asked

        state = self._remembered().now()
        frame, lang = state.frame, state.lang or self._desk.lang
        if said := about(state):
            asked = still_asked(frame.pending, lang) if frame.pending is not None else None
            job.post(GoesOn(said, frame.headline, asked))


class _Reading:
    """Says how much of a file has been read, seldom enough that nobody waits for the saying."""

    def __init__(self, job: Job) -> None:
        self._job, self._told = job, time.monotonic()

    def __call__(self, name: str, done: int, whole: int | None) -> None:
        self._job.check()
        now = time.monotonic()
        if now - self._told >= OFTEN:
            self._told = now
            share = f" {100 * done // whole} %" if whole else f" {done >> 20} MiB"
            self._job.post(Working(reading=name.rpartition("/")[2] + share))
