"""Incidents: commands, the buttons of a card, the forms behind them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from assistant.slack import cards, incident_pages, incidents
from assistant.slack.heard import Kind
from assistant.slack.home import SHOW
from assistant.slack.ledger import Ticket

if TYPE_CHECKING:
    from assistant.slack.bot import Asker, Bot
    from assistant.slack.heard import Heard

ACTIONS = (cards.NOTE, cards.CLOSE, SHOW)
COMMANDS = incidents.FIRST
HOME = False


async def handle(bot: Bot, heard: Heard, asker: Asker, ticket: Ticket | None) -> None:
    """Do what was said, open a form, or write what was filled in."""
    if ticket is not None:
        await _pressed(bot, heard, asker, ticket)
        return
    wanted = incidents.wish(heard.text)
    if wanted is None:  # "open" may be about anything
        from assistant.slack.handlers import ask

        await ask.handle(bot, heard, asker, None)
        return
    place = heard.place
    if not place.thread and not place.direct and heard.kind is Kind.SENTENCE:
        place = place._replace(thread=heard.ts)  # the answer stands below what was said
    await incidents.do(bot, asker, place, wanted)


async def _pressed(bot: Bot, heard: Heard, asker: Asker, ticket: Ticket) -> None:
    number = int(ticket.data["incident"])
    if heard.action == SHOW:
        await incidents.show(bot, asker, heard.place, number)
        return
    if heard.kind is Kind.FORM:
        if bot.ledger.spend(heard.ticket) is not None:
            wanted = incidents.Wish(heard.action, number, heard.values.get("text", "").strip())
            await incidents.change(bot, asker, ticket.place, number, wanted)
        return
    place = heard.place if heard.place.channel else ticket.place
    incident = await asyncio.to_thread(bot.book().incident, number)
    form = bot.ledger.issue(Ticket(heard.action, place, asker.person.id, {"incident": number}))
    await bot.poster.open(heard.trigger, incident_pages.form(heard.action, incident, asker.lang, form))
