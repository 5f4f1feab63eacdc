"""A yes or a no to a look that costs something, and to a question of ours. What one person may not have alone goes to a second one."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from assistant.journal.unended import unended
from assistant.session.steps import Confirmed
from assistant.slack import answers, blocks, cards, gate
from assistant.slack.eyes import Consent
from assistant.slack.ledger import OVER
from assistant.slack.turns import Request
from assistant.slack.words import ToldError
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.session.state import Pending
    from assistant.slack.bot import Asker, Bot
    from assistant.slack.heard import Heard
    from assistant.slack.ledger import Ticket

ACTIONS = (blocks.RUN_NEXT, cards.AGREE, cards.NO, answers.ANSWER)
_NOT_YOURS = Text("This was asked of somebody else. Ask yourself, and agree to your own.",
                  "该问题是向他人提出的。请自行提问，并同意您自己的请求。")  # fmt: skip


async def handle(bot: Bot, heard: Heard, asker: Asker, ticket: Ticket | None) -> None:
    """Go on with what was waited for, as far as this person may."""
    assert ticket is not None
    if ticket.user != asker.person.id:
        raise ToldError(_NOT_YOURS)
    pending = await asyncio.to_thread(_pending, bot, asker, ticket)
    if pending is None or bot.ledger.spend(heard.ticket) is None:
        raise ToldError(OVER)
    base = Request(asker, ticket.place, str(ticket.data["asked"]), once=heard.once)
    if ticket.kind == answers.ANSWER:
        chosen = _choices(pending, asker.lang)[int(ticket.data["choice"])]
        await bot.turns.take(replace(base, event=chosen.event))
    elif ticket.kind == cards.NO:
        await bot.turns.take(replace(base, event=Confirmed(False)))
    else:
        await _agreed(bot, asker, ticket, pending, base)


async def _agreed(bot: Bot, asker: Asker, ticket: Ticket, pending: Pending, base: Request) -> None:
    node, options = str(ticket.data["node"]), dict(ticket.data["options"])
    ruled = gate.ruled(bot.policy(), asker, node, pending.probes, options)
    if not ruled.allowed and not ruled.second:
        raise gate.DeniedError.of(next(iter(ruled.denied.values())), node)
    if not ruled.second:
        await bot.turns.take(replace(base, event=Confirmed(True), consent=Consent(pending.probes)))
        return
    from assistant.slack import second

    names = list(ruled.second)
    acts = [gate.probe_act(name, node, options) for name in names]
    then = {"do": "turn", "place": list(ticket.place), "user": asker.person.id, "asked": base.asked,
            "waits": list(pending.probes), "second": names}  # fmt: skip
    here = asker._replace(place=ticket.place)
    before = await asyncio.to_thread(unended, bot.settings.history.url, node, names)
    pending = replace(pending, before=before)
    offer = answers.offered(pending, second=False)
    cost = Text(answers.terms(pending, "en") or offer.cost.en, answers.terms(pending, "zh") or offer.cost.in_("zh"))
    await second.ask_second(bot, here, acts, offer.what, cost, then)


def _pending(bot: Bot, asker: Asker, ticket: Ticket) -> Pending | None:
    """What the conversation waits for still, if it is what the button stands for."""
    waits = bot.turns.continued(ticket.place, asker.person.id).now().frame.pending
    if waits is None:
        return None
    if ticket.kind == answers.ANSWER:
        same = (waits.fact, waits.path) == (ticket.data["fact"], ticket.data["path"]) and not waits.probes
        return waits if same else None
    return waits if list(waits.probes) == ticket.data["probes"] else None


def _choices(pending: Pending, lang: str) -> tuple[Any, ...]:
    from assistant.session.shown import choices

    return choices(pending, lang)
