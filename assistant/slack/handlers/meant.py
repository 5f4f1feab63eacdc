"""The button that says yes to what a sentence may have meant: it is asked, by whoever pressed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.slack.narration import MEANT, meant
from assistant.slack.turns import Request

if TYPE_CHECKING:
    from assistant.slack.bot import Asker, Bot
    from assistant.slack.heard import Heard
    from assistant.slack.ledger import Ticket

ACTIONS = (MEANT,)


async def handle(bot: Bot, heard: Heard, asker: Asker, ticket: Ticket | None) -> None:
    """Ask it."""
    assert ticket is not None
    query = meant(ticket.data)
    asked = query.echo.in_(query.lang)
    await bot.turns.take(
        Request(asker, ticket.place, asked, query.text, base=ticket.user, once=heard.once, query=query)
    )
