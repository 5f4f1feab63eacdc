"""What workers and screens tell each other. Workers only post; whoever shows something decides when to paint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from assistant.intent.query import Query
    from assistant.live.frames import Frame
    from tui.desk import Picture


class PictureChanged(Message):
    """What is known of the machine or the recording has changed: a look began, ended, or failed."""

    def __init__(self, picture: Picture) -> None:
        super().__init__()
        self.picture = picture


class SourceChanged(Message):
    """Another machine or recording is looked at: what a screen holds of the one before is to be let go."""


class Explain(Message):
    """A question about something on a screen; the chat asks it. `query`: as what it is to be understood, when the words
    alone would not tell (an edited value). `about`: what it is asked of, when that is not what the app looks at."""

    def __init__(self, question: str, query: Query | None = None, about: Picture | None = None) -> None:
        super().__init__()
        self.question, self.query, self.about = question, query, about


class Goto(Message):
    """Show a screen, and there the thing called `target` (a finding's id, a topic, a line)."""

    def __init__(self, screen: str, target: str = "") -> None:
        super().__init__()
        self.screen, self.target = screen, target


class MomentChanged(Message):
    """There are other readings to be seen: newer ones of this machine, or those of another moment of a recording."""

    def __init__(self, frame: Frame | None, moment: int) -> None:
        super().__init__()
        self.frame, self.moment = frame, moment  # moment: ns UTC
