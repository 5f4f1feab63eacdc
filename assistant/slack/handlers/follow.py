"""The buttons below an answer that ask something of it: why, evidence, what if; and the answer as a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.slack import blocks
from assistant.slack.turns import Request

if TYPE_CHECKING:
    from assistant.slack.bot import Asker, Bot
    from assistant.slack.heard import Heard
    from assistant.slack.ledger import Ticket

ACTIONS = (blocks.WHY, blocks.EVIDENCE, blocks.WHAT_IF, blocks.EXPORT)


async def handle(bot: Bot, heard: Heard, asker: Asker, ticket: Ticket | None) -> None:
    """Ask it, of the conversation that the answer belongs to."""
    assert ticket is not None
    if ticket.kind == blocks.EXPORT:
        await bot.turns.export(asker, ticket.place, ticket.user)
        return
    text = str(ticket.data["ask"])
    await bot.turns.take(Request(asker, ticket.place, text, text, base=ticket.user, once=heard.once))
