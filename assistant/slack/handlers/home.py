"""Somebody opened the app's home page."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assistant.slack.bot import Asker, Bot
    from assistant.slack.heard import Heard
    from assistant.slack.ledger import Ticket

ACTIONS: tuple[str, ...] = ()
COMMANDS: tuple[str, ...] = ()
HOME = True


async def handle(bot: Bot, heard: Heard, asker: Asker, ticket: Ticket | None) -> None:
    """Draw it as it is now."""
    del heard, ticket
    await bot.homes.draw(asker)
