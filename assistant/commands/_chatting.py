"""Narration in a conversation: nobody waits for it. It appears above the prompt while nothing is typed, or not at all.

Over a pipe nobody reads meanwhile: there it is waited for, and only where --narrate asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.commands._narrated import Narration, yes
from assistant.narrate.asks import Retold, not_understood
from assistant.narrate.narrator import Withheld
from assistant.narrate.reasons import Reason
from assistant.output import write
from assistant.render import narration as render
from assistant.session.reading import PROMPT

if TYPE_CHECKING:
    from assistant.commands._talk import Talk
    from assistant.intent.query import Query
    from assistant.narrate.slots import Suggestion
    from assistant.session.driver import Answer
    from assistant.session.terminal import Editor

_SILENT = (Reason.NOTHING, Reason.CLOSED)  # not every answer can be told in other words


def chatting(here: Talk, editor: Editor | None, *, recorded: bool) -> Chatting | None:
    """The narration of a conversation; None where there is none. A recorded one is held again without a model: it suggests nothing."""
    args = here.args
    later = editor is not None and editor.prompts and args.settings.output.format in ("text", "markdown")
    wanted = args.narrate if args.narrate is not None else bool(args.settings.llm.model) and later
    return Chatting(here, editor if later else None, suggests=not recorded) if wanted else None


class Chatting(Narration):
    """The narration of each turn. With an editor it comes later, above the prompt."""

    def __init__(self, here: Talk, editor: Editor | None, *, suggests: bool) -> None:
        super().__init__(here.args)
        self._here, self._later, self._suggests = here, editor is not None, suggests
        self._told: set[Reason] = set()
        if editor is not None:
            editor.idle(PROMPT, self._above)

    def turned(self, answer: Answer) -> None:
        """A turn has its answer."""
        if self._suggests or not not_understood(answer):
            self.answered(answer, self._here.talk.session.inventory.hosts)

    def said(self, text: str) -> Query | None:
        """Something is said: what comes of the turn before comes too late. The query, when it is a yes to our question."""
        meant, self.suggested = self.suggested, None
        self.drop()
        return meant.query if meant is not None and yes(text) else None

    def below(self) -> Query | None:
        """Behind the answer, where somebody waits for that."""
        return None if self._later else super().below()

    def complain(self, found: Withheld) -> None:
        """Each reason once: it will hardly have changed with the next turn."""
        if found.reason not in self._told and found.reason not in _SILENT:
            self._told.add(found.reason)
            super().complain(found)

    def confirmed(self, found: Suggestion) -> bool:
        """The next sentence answers it."""
        self.suggested = found
        write(f"{self.question(found)}\n")
        return False

    def _above(self) -> str:
        """What there is to show, once."""
        if not self.done:
            return ""
        found = self.found()
        if isinstance(found, Retold):
            return f"{render.below(found, self._llm.model, self._output._replace(lang=found.lang))}\n"
        if not isinstance(found, Withheld):
            self.suggested = found
            return f"{self.question(found)}\n"
        if found.reason in self._told or found.reason in _SILENT or self._args.quiet:
            return ""
        self._told.add(found.reason)
        return f"gpudiag: {render.withheld(found, self._lang)}\n"
