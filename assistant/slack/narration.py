"""An answer in other words, as a second small message of its thread; and what a mention may have meant that nobody understood.

It comes once the answer stands, or not at all: nobody waits for it, and nothing is said of what was withheld (narration.log says
it). It is made of the reply as its asker may see it. Rich text only: nothing that a model writes can mention, link or format.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from assistant.narrate import asks
from assistant.narrate.asks import Retold
from assistant.narrate.narrator import Narrated, Narrator
from assistant.render.narration import heading
from assistant.slack import rich
from assistant.slack.budget import SECTION, cut
from assistant.slack.ledger import OVER, Ticket
from assistant.slack.page import Page, Rendered
from assistant.slack.words import ToldError
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.intent.query import Query
    from assistant.narrate.narrator import Pending
    from assistant.narrate.slots import Suggestion
    from assistant.slack.bot import Asker, Bot
    from assistant.slack.heard import Place
    from assistant.slack.turns import Outcome, Request

MEANT = "meant"  # the button that says yes to what a sentence may have meant
LATE, LOOK = 5.0, 0.2  # seconds: beyond the model's deadline, and between two looks whether it has come
ASKED = 200  # characters of the question that a narration is about
_YES = Text("Yes, ask that", "是，就问这个")


class Narrations:
    """One narrator for the bot's life; none where no model is set."""

    def __init__(self, bot: Bot) -> None:
        self._bot, self._llm = bot, bot.settings.llm
        self._narrator = Narrator(bot.settings) if self._llm.model else None

    def begin(self, request: Request, place: Place, outcome: Outcome) -> None:
        """The answer stands: have it reworded, and say it below. Returns at once."""
        if self._narrator is None:
            return
        answer, query = outcome.answer, outcome.answer.query
        if query is not None and asks.not_understood(answer):
            pending = self._narrator.ask(asks.meaning(query.text, query.lang, outcome.hosts))
        else:
            pending = self._narrator.ask(asks.answered(answer))
        if pending is not None:
            self._bot.spawn(self._later(pending, request, place))

    def close(self) -> None:
        """End the model's process."""
        if self._narrator is not None:
            self._narrator.close()

    async def _later(self, pending: Pending, request: Request, place: Place) -> None:
        until = self._bot.loop.time() + self._llm.deadline + LATE
        while not pending.done and self._bot.loop.time() < until:
            await asyncio.sleep(LOOK)
        found = pending.result()
        if not isinstance(found, Narrated):
            return
        said = found.narration
        page = self._told(said, request) if isinstance(said, Retold) else self._asked(said, request.asker, place)
        await self._bot.poster.post(place, page)

    def _told(self, said: Retold, request: Request) -> Rendered:
        page = Page(said.lang, [rich.span(heading(self._llm.model, said.lang), "bold")])
        asked = cut(request.asked, ASKED)
        page.add([*rich.quote(rich.span(asked)), *rich.section(rich.span(cut(said.text, SECTION)))])
        return page.done()

    def _asked(self, said: Suggestion, asker: Asker, place: Place) -> Rendered:
        """A question; what it stands for is in the ledger, and acted on by whoever presses, with their rights."""
        query, lang = said.query, said.query.lang
        data = {
            "text": query.text,
            "lang": lang,
            "intent": str(query.intent),
            "slots": {k: list(v) for k, v in query.slots.named()},
        }
        number = self._bot.ledger.issue(Ticket(MEANT, place, asker.person.id, data))
        page = Page(lang, [rich.span(said.question.in_(lang))])
        return page.done(buttons=[rich.button(MEANT, _YES.in_(lang), number)])


def meant(data: Any) -> Query:
    """What a ticket says that a sentence means. ToldError for one that is not understood any more."""
    from assistant.intent.echo import echo
    from assistant.intent.query import Intent, Query, Slots

    try:
        slots = Slots(**{str(name): tuple(values) for name, values in data["slots"].items()})
        return echo(Query(str(data["text"]), str(data["lang"]), Intent(data["intent"]), slots))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ToldError(OVER) from None
