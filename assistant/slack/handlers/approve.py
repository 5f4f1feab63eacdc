"""Somebody agrees to, or refuses, what needs a second person. Whoever presses is looked at anew: the button proves nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from assistant.rights.fold import Approval, State
from assistant.rights.model import Decision
from assistant.rights.refusals import Reason, RightsError, refusal
from assistant.slack import gate, second
from assistant.slack.ledger import OVER
from assistant.slack.words import ToldError

if TYPE_CHECKING:
    from assistant.rights.model import Person
    from assistant.slack.bot import Asker, Bot
    from assistant.slack.heard import Heard
    from assistant.slack.ledger import Ticket

ACTIONS = (second.APPROVE, second.REFUSE)
COMMANDS: tuple[str, ...] = ()
HOME = False

# After these nothing can happen to the request any more: the card says so, and loses its buttons.
_OVER = {Reason.REFUSED: State.REFUSED, Reason.EXPIRED: State.EXPIRED, Reason.USED: State.USED}


async def handle(bot: Bot, heard: Heard, asker: Asker, ticket: Ticket | None) -> None:
    """One press. RightsError, DeniedError and ToldError: why it does not count, for the presser alone, and the card stands; so
    it does after SlackError and StoreError."""
    if ticket is None or ticket.kind != heard.action or ticket.kind not in ACTIONS:
        raise ToldError(OVER)
    if ticket.place.channel != heard.place.channel:
        raise ToldError(OVER)
    known = await bot.people.known(heard.user, anew=True)
    ruling = gate.entry(bot.policy(), asker._replace(person=known.person, place=heard.place))
    if ruling.decision is Decision.DENIED:
        raise gate.DeniedError.of(ruling)
    card = second.Card.of(ticket.data)
    try:
        done = await asyncio.to_thread(_step, bot, heard.action, card.numbers, known.person)
    except RightsError as error:
        if (state := _OVER.get(error.reason)) is not None:
            await _ended(bot, heard, card, state)
        raise
    await _taken(bot, heard, card, done)


def _step(bot: Bot, action: str, numbers: tuple[str, ...], person: Person) -> list[Approval]:
    """Agree to all, or refuse all, and how they stand then. RightsError for the first that this person may not.

    A press may have been cut off in the middle, so what it got done counts: who presses now had to be entitled to the same.
    """
    agrees = action == second.APPROVE
    take = bot.approvals.approve if agrees else bot.approvals.refuse
    done: list[Approval] = []
    for number in numbers:
        try:
            done.append(take(number, person))
        except RightsError as error:
            if error.reason is not (Reason.APPROVED if agrees else Reason.REFUSED):
                raise
            done.append(bot.approvals.look(number))
    return done


async def _ended(bot: Bot, heard: Heard, card: second.Card, state: State) -> None:
    """Take the buttons of a card away that nobody can answer any more."""
    if bot.ledger.spend(card.ticket) is None:
        return
    asked = [await asyncio.to_thread(bot.approvals.look, n) for n in card.numbers]
    second.tell(card.numbers)
    await bot.poster.edit(heard.place, heard.ts, second.answered(card, asked, state))


async def _taken(bot: Bot, heard: Heard, card: second.Card, done: list[Approval]) -> None:
    """Say who answered, and go on. Of two who press at the same time one gets the card's ticket."""
    agreed = heard.action == second.APPROVE
    if bot.ledger.spend(card.ticket) is None:
        raise refusal(Reason.APPROVED if agreed else Reason.REFUSED)
    second.tell(card.numbers)
    state = State.APPROVED if agreed else State.REFUSED
    who = tuple(dict.fromkeys(a.approver for a in done)) if agreed else (heard.user,)
    await bot.poster.edit(heard.place, heard.ts, second.answered(card, done, state, who))
    if agreed and card.then.get("do") == "turn":
        await bot.turns.agreed(card.then, card.numbers)
