"""The bot: what every handler is given, and what happens to everything that is heard, from first to last.

heard -> first time? -> who is it, may they? -> handler -> answer, or what went wrong, in words. Whatever was heard stands in the
ledger until it has been dealt with, so that a restart knows what it cut off.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from assistant.rights.policy import Decision
from assistant.slack import gate, said, status
from assistant.slack.handlers import Handler, handlers
from assistant.slack.heard import Heard, Kind, Place, plain, restored
from assistant.slack.home import Homes
from assistant.slack.incidents import Notes
from assistant.slack.ledger import OVER, Turn
from assistant.slack.page import Page
from assistant.slack.post import SlackError
from assistant.slack.rich import span
from assistant.slack.turns import Turns
from assistant.slack.walks import Walks
from assistant.slack.words import ToldError
from assistant.store.location import StoreError
from knowledge.errors import GpudiagError
from knowledge.language import Text
from knowledge.record import dataclass

if TYPE_CHECKING:
    from slack_sdk.web.async_client import AsyncWebClient

    from assistant.config import Settings
    from assistant.incidents.book import Book
    from assistant.journal import Journal
    from assistant.rights.approvals import Approvals
    from assistant.rights.model import Person, Sight
    from assistant.rights.policy import Policy
    from assistant.slack.ledger import Ledger, Ticket
    from assistant.slack.people import People
    from assistant.slack.post import Poster
    from assistant.slack.uploads import Uploads
    from rules.loader import RuleSet

log = logging.getLogger("gpudiag.slack")
_CUT = Text(
    "gpudiag was restarted in the middle of this. Nothing of it is repeated: press again, or ask again.",
    "gpudiag 在处理过程中重启。不会自动重做：请重新点击或重新提问。",
)
_AGAIN = frozenset({Kind.COMMAND, Kind.SENTENCE})  # what is begun again after a restart: a yes never is
Taker = Callable[[Heard], bool]


class Asker(NamedTuple):
    """Somebody who turned to the bot, where, as Slack and the policy know them now."""

    person: Person
    place: Place
    lang: str  # en or zh, by their locale in Slack
    sights: frozenset[Sight]  # what they may see of other users
    name: str = ""  # for people; never for rights


@dataclass
class Bot:
    """Everything by name. Made once, in the event loop that it runs in."""

    client: AsyncWebClient
    settings: Settings
    ruleset: RuleSet
    policy: Callable[[], Policy]  # read afresh at every call
    ledger: Ledger
    journal: Journal
    approvals: Approvals
    people: People
    poster: Poster
    uploads: Uploads
    user: str = ""  # our own id
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    turns: Turns = field(init=False)
    walks: Walks = field(init=False)
    homes: Homes = field(init=False)
    takers: list[Taker] = field(
        default_factory=list
    )  # what waits for a sentence of somebody: asked before all handlers
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.turns, self.walks, self.homes = Turns(self), Walks(self), Homes(self)
        self.takers += [self.walks.take, Notes(self).take]

    def book(self) -> Book:
        """The incidents; used in worker threads: it reads and writes a database."""
        from assistant.incidents.book import Book

        return Book(self.settings.history.url)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Do it beside everything else. What goes wrong there stands in the log."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            expected = isinstance(error, GpudiagError)
            log.error("%s", error, exc_info=None if expected else error)

    async def close(self) -> None:
        """Give up what is under way."""
        await self.walks.close()
        self.turns.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.ledger.close()

    async def asker(self, user: str, place: Place, *, anew: bool = False) -> Asker:
        """Who an id is. SlackError when Slack cannot tell: then nothing is allowed."""
        known = await self.people.known(user, anew=anew)
        sights = self.policy().sees(known.person)
        return Asker(known.person, place, known.lang, sights, known.name)

    async def tell(self, place: Place, words: Text, lang: str) -> str:
        """One sentence of ours."""
        return await self.poster.post(place, Page(lang, [span(words.in_(lang))]).done())

    # --- what is heard ------------------------------------------------------------------------

    async def hear(self, heard: Heard) -> None:
        """Deal with it, once."""
        turn = Turn(heard.once, heard.place, heard.user, data={"heard": plain(heard), "tries": 1})
        if not await asyncio.to_thread(self.ledger.hear, turn):
            return
        await self._dealt(heard)

    async def recover(self) -> None:
        """Take up what a restart cut off: questions are asked again, once; of anything else is told that it was cut off."""
        for turn in await asyncio.to_thread(self.ledger.cut_off):
            if turn.data.get("do") == "walk":
                self.spawn(self.walks.cut_off(turn))
                continue
            try:
                heard = replace(restored(turn.data["heard"]), status=turn.status)
                tries = int(turn.data["tries"])
            except (KeyError, TypeError, ValueError):
                self.ledger.end(turn.id)
                continue
            if heard.kind in _AGAIN and tries < 2:
                if turn.status:
                    heard = replace(heard, place=turn.place)
                self.ledger.put(replace(turn, data={**turn.data, "tries": tries + 1}))
                self.spawn(self._dealt(heard))
                continue
            self.ledger.end(turn.id)
            if turn.place.channel:
                self.spawn(self._cut_off(turn))

    async def _cut_off(self, turn: Turn) -> None:
        asker = await self.asker(turn.user, turn.place)
        page = Page(asker.lang, [span(_CUT.in_(asker.lang))]).done()
        if turn.status:
            await self.poster.edit(turn.place, turn.status, page)
        else:
            await self.poster.whisper(turn.place, turn.user, page)

    async def _dealt(self, heard: Heard) -> None:
        try:
            await self._handled(heard)
        except asyncio.CancelledError:  # we are ended: after the next start it is taken up
            raise
        except (GpudiagError, StoreError) as error:
            await self._sorry(heard, error)
        except Exception:
            log.exception("%s of %s", heard.kind, heard.user)
            await self._sorry(heard, ToldError(status.FAULT))
        await asyncio.to_thread(self.ledger.end, heard.once)

    async def _handled(self, heard: Heard) -> None:
        ours = heard.mentioned or heard.place.direct or heard.kind is not Kind.SENTENCE
        if not ours and not self.ledger.last(heard.place):
            return
        if not heard.place.channel and (ticket := self.ledger.ticket(heard.ticket)) is not None:
            heard = replace(heard, place=ticket.place)  # a form, a button of the home page: they tell no channel
        asker = await self.asker(heard.user, heard.place)
        if (ruling := gate.entry(self.policy(), asker)).decision is Decision.DENIED:
            if ours:
                raise gate.DeniedError.of(ruling)
            return
        raw, heard = heard.text, replace(heard, text=said.plain(heard.text, self.user))
        if heard.kind is Kind.SENTENCE and any(take(heard) for take in self.takers):
            return
        if heard.kind is Kind.SENTENCE and not ours and "<@" in raw:  # they speak to each other
            return
        handler, ticket = self._chosen(heard)
        await handler.handle(self, heard, asker, ticket)

    def _chosen(self, heard: Heard) -> tuple[Handler, Ticket | None]:
        """What deals with it, and what the button stands for. ToldError for a button that is over."""
        known = handlers()
        if heard.kind is Kind.HOME:
            return known.home or known.ask, None
        if heard.kind in (Kind.PRESS, Kind.FORM):
            handler, ticket = known.actions.get(heard.action), self.ledger.ticket(heard.ticket)
            if handler is None or ticket is None or ticket.kind != heard.action:
                raise ToldError(OVER)
            return handler, ticket
        first = heard.text.split(maxsplit=1)
        word = first[0].casefold() if first else ""
        addressed = heard.mentioned or heard.place.direct or heard.kind is Kind.COMMAND
        return (known.commands.get(word, known.ask) if addressed else known.ask), None

    async def _sorry(self, heard: Heard, error: GpudiagError | StoreError) -> None:
        """Tell only whoever turned to us what went wrong."""
        from assistant.slack import cards

        told = ToldError(error.said) if isinstance(error, StoreError) else error
        if isinstance(told, SlackError):
            log.warning("%s", told)
        try:
            lang = (await self.people.known(heard.user)).lang
        except SlackError:
            lang = "en"
        page = cards.error(told, lang)
        try:
            if heard.answer_to:
                await self.poster.answer(heard.answer_to, page)
            elif heard.place.channel:
                await self.poster.whisper(heard.place, heard.user, page)
        except SlackError as failed:
            log.warning("%s could not be told: %s", heard.user, failed)
