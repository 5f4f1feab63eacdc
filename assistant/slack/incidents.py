"""``/gpudiag incident ...`` and what is said in the thread of an incident: understood, written, shown.

Whoever may turn to the bot may read and write incidents. What is written is an event, as at a terminal; nobody's words are
ever taken back.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from assistant.incidents import events
from assistant.slack import cards, incident_pages
from assistant.slack.heard import Kind
from assistant.slack.incident_words import FIRST, HOW, NOTE, NUMBER, Wish, wish
from assistant.slack.ledger import Ticket
from assistant.slack.post import SlackError
from assistant.slack.walk_words import hand_of, who
from assistant.slack.words import ToldError
from assistant.store.location import StoreError
from knowledge.errors import GpudiagError
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.incidents.events import Entry
    from assistant.incidents.fold import Incident
    from assistant.slack.bot import Asker, Bot
    from assistant.slack.heard import Heard, Place
    from assistant.slack.page import Rendered

_USER = re.compile(
    r"^(?:@(?=[UW])|(?=[UW][A-Z0-9]*\d[A-Z0-9]*$)(?=.{8}))([A-Z0-9]+)$"
)  # @U9, a mention; U024BE7LH, copied
__all__ = ["FIRST", "Notes", "Wish", "do", "post", "show", "walk", "wish"]
_CHANGES: dict[str, Callable[[str], Entry]] = {
    "severity": events.severity, "status": events.status, "runbook": events.runbook,
}  # fmt: skip


# --- doing it -----------------------------------------------------------------------------


async def do(bot: Bot, asker: Asker, place: Place, wanted: Wish) -> None:
    """Do it, and show in `place` what came of it. GpudiagError, StoreError."""
    number = wanted.number or bot.ledger.about(place)
    match wanted.verb:
        case "list":
            closed = wanted.words.casefold() in ("all", "全部", "--all")
            found = await asyncio.to_thread(bot.book().incidents, closed)
            await post(bot, asker, place, incident_pages.many(found, asker.lang, closed=closed))
            return
        case "open":
            await _open(bot, asker, place, wanted.words)
            return
    if not number:
        raise ToldError(Text("Which incident is meant? Its number is missing.", "指哪个事件？缺少编号。"), HOW)
    match wanted.verb:
        case "show":
            await show(bot, asker, place, number)
        case "report":
            await _report(bot, asker, place, number)
        case "similar":
            incident, others = await asyncio.to_thread(_with_others, bot, number)
            told = incident_pages.alike(incident, others, asker.lang, always=True)
            assert told is not None  # always asked for
            await post(bot, asker, place, told, number)
        case "run":
            await walk(bot, asker, place, number, wanted.words)
        case _:
            await change(bot, asker, place, number, wanted)


async def change(bot: Bot, asker: Asker, place: Place, number: int, wanted: Wish) -> None:
    """Write it, and say how the incident stands now."""
    person = await _owner(bot, asker, wanted.words) if wanted.verb == "owner" else ""
    incident = await asyncio.to_thread(_written, bot, asker, number, wanted, person)
    await post(bot, asker, place, incident_pages.changed(incident, asker.lang), number)
    bot.homes.refresh()


def _written(bot: Bot, asker: Asker, number: int, wanted: Wish, person: str) -> Incident:
    from assistant.incidents.links import link

    book, hand, words = bot.book(), hand_of(asker), wanted.words
    if wanted.verb == "link":
        other = NUMBER.match(words)
        if other is None:
            raise ToldError(Text("Which other incident belongs to it?", "关联到哪个事件？"),
                            Text(f"incident link {number} OTHER", f"incident 关联 {number} 另一编号"))  # fmt: skip
        return link(book, number, int(other[1]), hand)
    if wanted.verb == "close":

        def close(incident: Incident) -> Sequence[Entry]:
            if not incident.is_open:
                raise ToldError(Text(f"Incident {number} is closed already.", f"事件 {number} 已关闭。"))
            return [events.closed(words)]

        return book.change(number, hand, close)
    if wanted.verb == "note":
        return book.add(number, hand, events.note(words))
    if wanted.verb == "owner":
        return book.add(number, hand, events.owner(person))
    word, _, why = words.partition(" ")
    if wanted.verb == "step":
        return book.change(number, hand, lambda i: [_step(i, word, why.strip())])
    entries = [_CHANGES[wanted.verb](word.casefold())]
    return book.add(number, hand, *entries, *([events.note(why)] if why.strip() else []))


def _step(incident: Incident, name: str, words: str) -> Entry:
    """How far a step is: past one that failed there is no other way."""
    from assistant.incidents.events import named_step
    from assistant.incidents.progress import books_of

    state, _, why = words.partition(" ")
    if not name or not state:
        raise ToldError(Text("Which step, and how far is it?", "哪个步骤，进展如何？"),
                        Text(f"incident step {incident.number} STEP done, skipped, failed, doing or todo",
                             f"incident 步骤 {incident.number} 步骤名 done、skipped、failed、doing 或 todo"))  # fmt: skip
    return events.step(*named_step(name, books_of(incident.runbooks)), state.casefold(), why)


async def _owner(bot: Bot, asker: Asker, words: str) -> str:
    """Who takes care of it: a mention, an id, ``me``, ``nobody``, or a name as it is."""
    if words.casefold() in ("me", "i", "我"):
        return who(asker)
    if words.casefold() in ("nobody", "none", "-", "无", "没有"):
        return ""
    if not words:
        raise ToldError(Text("Who takes care of it?", "由谁负责？"), Text("@somebody, me or nobody", "@某人、我 或 无"))
    if found := _USER.match(words):
        known = await bot.people.known(found[1])
        return who(asker._replace(person=known.person, name=known.name))
    return words


# --- opening ------------------------------------------------------------------------------


async def _open(bot: Bot, asker: Asker, place: Place, title: str) -> None:
    """By hand with a title, else from the diagnosis of this thread."""
    from assistant.slack.incident_opening import opened

    incident, new, others = await asyncio.to_thread(opened, bot, asker, place, title)
    if not new:
        said = Text(f"#{incident.number} is open about it already.", f"已有未关闭的事件 #{incident.number}。")
        await bot.tell(place, said, asker.lang)
    shown = await show(bot, asker, place, incident.number)
    if (like := incident_pages.alike(incident, others, asker.lang)) is not None:
        await post(bot, asker, shown, like, incident.number)
    bot.homes.refresh()


# --- showing ------------------------------------------------------------------------------


async def post(bot: Bot, asker: Asker, place: Place, message: Rendered, number: int = 0) -> Place:
    """A message; where it begins a thread, that thread. `number`: of the incident that it is about."""
    ts = await bot.poster.post(place, message)
    if not place.thread and not place.direct:
        place = place._replace(thread=ts)
    bot.ledger.join(place, asker.person.id)
    if number:
        bot.ledger.talk_about(place, number)
    return place


async def show(bot: Bot, asker: Asker, place: Place, number: int) -> Place:
    """How the incident stands, with its buttons; the thread in which it is told."""
    incident = await asyncio.to_thread(bot.book().incident, number)

    def ticket(kind: str) -> str:
        return bot.ledger.issue(Ticket(kind, place, asker.person.id, {"incident": number}))

    card = cards.incident(incident, asker.lang, ticket)
    place = await post(bot, asker, place, card, number)
    if card.overflow:
        await _attach(bot, asker, place, incident)
    return place


async def _attach(bot: Bot, asker: Asker, place: Place, incident: Incident) -> None:
    from assistant.incidents import pages
    from assistant.render.sheet import show as shown

    output = bot.settings.output._replace(lang=asker.lang, format="markdown", color="never")
    text = shown(pages.one(incident_pages.as_seen(incident, asker), asker.lang), output)
    name = f"incident-{incident.number}.md"
    await bot.poster.upload(place, name, text.encode("utf-8", "replace"), name)


async def _report(bot: Bot, asker: Asker, place: Place, number: int) -> None:
    incident, others = await asyncio.to_thread(_with_others, bot, number)
    files = await asyncio.to_thread(incident_pages.report, incident, others, asker, bot.settings)
    place = await show(bot, asker, place, number)
    for name, content in files:
        await bot.poster.upload(place, name, content, name)


def _with_others(bot: Bot, number: int) -> tuple[Incident, list[Incident]]:
    from assistant.incidents.similar import PAST

    book = bot.book()
    return book.incident(number), book.incidents(limit=PAST)


async def walk(bot: Bot, asker: Asker, place: Place, number: int, node: str = "", *, take_over: bool = False) -> None:
    """Walk its runbook in the thread; a command begins one."""
    if not place.thread and not place.direct:
        place = await show(bot, asker, place, number)
    await bot.walks.begin(asker._replace(place=place), place, number, node.strip(), take_over=take_over)


# --- what is said in the thread -----------------------------------------------------------


class Notes:
    """``note: ...`` in the thread of an incident, without naming the bot."""

    def __init__(self, bot: Bot) -> None:
        self._bot = bot

    def take(self, heard: Heard) -> bool:
        """Whether it was a note for the incident of that thread."""
        found = NOTE.match(heard.text.strip()) if heard.kind is Kind.SENTENCE else None
        number = self._bot.ledger.about(heard.place) if found is not None else 0
        if found is None or not number:
            return False
        self._bot.spawn(self._noted(heard, Wish("note", number, found[1].strip())))
        return True

    async def _noted(self, heard: Heard, wanted: Wish) -> None:
        asker = await self._bot.asker(heard.user, heard.place)
        try:
            await change(self._bot, asker, heard.place, wanted.number, wanted)
        except SlackError:
            raise
        except (GpudiagError, StoreError) as error:
            told = ToldError(error.said) if isinstance(error, StoreError) else error
            await self._bot.poster.whisper(heard.place, heard.user, cards.error(told, asker.lang))
