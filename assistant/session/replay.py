"""A recorded conversation, held again: the same sentences over the same data, and what is answered differently."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from assistant.session.driver import Answer, Conversation, Eyes
from assistant.session.state import Seen
from assistant.session.steps import Event, Step, Write, Written
from assistant.session.talk import session_of
from assistant.session.transcript import Transcript
from knowledge.errors import GpudiagError, UsageError

if TYPE_CHECKING:
    from assistant.session.state import Origin

Shown = Callable[[Answer], str]


class RecordedEyes(Eyes):
    """Sees what was recorded and nothing else: no clock, no machine, and no file is written."""

    gone: frozenset[str] = frozenset()  # probes of which the machine had no tool on that day

    def absent(self) -> frozenset[str]:
        """As it was on the recorded machine: what is planned there hangs on it."""
        return self.gone

    def now(self) -> int | None:
        """None: no reading grows old."""
        return None

    def do(self, step: Step) -> Event:
        """As `Eyes.do`; of a file that would be written only its name is told."""
        if isinstance(step, Write):
            from assistant.session.export import format_of, usual_name

            return Written(step.path or str(usual_name(step.reply, format_of(step), self.settings)))
        return super().do(step)

    def _live(
        self, probes: Sequence[str], budget: float | None, options: Mapping[str, str], host: str = ""
    ) -> Seen:  # fmt: skip
        if not self.replay:
            raise UsageError(f"the machine is asked for what was not recorded: {', '.join(probes) or 'all probes'}")
        return super()._live(probes, budget, options, host)


def replayed(transcript: Transcript, eyes: RecordedEyes, origin: Origin, show: Shown) -> Transcript:
    """The conversation of now. `show` makes the text of an answer."""
    eyes.gone = frozenset(transcript.one("absent").split())
    talk = Conversation(session_of(eyes), eyes)
    turns = []
    for said in transcript.turns:
        eyes.replay[:] = said.looks  # what an earlier turn did not ask for is not this one's
        turns.append(said._replace(answer=answered(talk, said.text, origin, show)))
    return Transcript(transcript.about, tuple(turns), transcript.file)


def answered(talk: Conversation, text: str, origin: Origin, show: Shown) -> str:
    """The text of one turn. What goes wrong is an answer too: the next sentence is none the worse for it."""
    try:
        return show(talk.say(text, origin))
    except GpudiagError as error:
        return f"gpudiag: {error}\n"
