"""Walks: begin one, answer its questions by buttons, take it over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.slack import cards, incidents
from assistant.slack.walk_talk import ANSWER
from assistant.slack.walks import TAKE_OVER

if TYPE_CHECKING:
    from assistant.slack.bot import Asker, Bot
    from assistant.slack.heard import Heard
    from assistant.slack.ledger import Ticket

ACTIONS = (cards.WALK, TAKE_OVER, ANSWER)
COMMANDS: tuple[str, ...] = ()
HOME = False


async def handle(bot: Bot, heard: Heard, asker: Asker, ticket: Ticket | None) -> None:
    """One press. ToldError when it counts no more, or is somebody else's to answer."""
    assert ticket is not None  # a press without one goes to nobody
    if heard.action == ANSWER:
        bot.walks.pressed(ticket, asker)
        return
    node = str(ticket.data.get("node", ""))
    take_over = heard.action == TAKE_OVER
    await incidents.walk(bot, asker, heard.place, int(ticket.data["incident"]), node, take_over=take_over)
