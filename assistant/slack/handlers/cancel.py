"""The button that gives a turn up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.slack import cards
from assistant.slack.words import ToldError
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.slack.bot import Asker, Bot
    from assistant.slack.heard import Heard
    from assistant.slack.ledger import Ticket

ACTIONS = (cards.CANCEL,)
_NOT_YOURS = Text("Only who asked can cancel it.", "只有提问者可以取消。")
_OVER = Text("There is nothing left to cancel.", "已没有可取消的内容。")


async def handle(bot: Bot, heard: Heard, asker: Asker, ticket: Ticket | None) -> None:
    """Give it up, where it is the presser's own."""
    del heard
    assert ticket is not None
    if ticket.user != asker.person.id:
        raise ToldError(_NOT_YOURS)
    if not bot.turns.cancel(str(ticket.data["turn"]), asker.person.id):
        raise ToldError(_OVER)
