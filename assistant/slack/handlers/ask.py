"""A question: as a command, by mention, alone with the bot, or in a thread in which it answers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from assistant.session.state import Origin
from assistant.slack import said
from assistant.slack.heard import Kind
from assistant.slack.turns import WRONG, Request
from assistant.slack.words import ToldError
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.slack.bot import Asker, Bot
    from assistant.slack.heard import Heard
    from assistant.slack.ledger import Ticket

_NOTHING = Text("Nothing was asked. For example: check gpu-12, why pid 4242, explain xid 79, help.",
                "没有提出问题。例如：check gpu-12、why pid 4242、explain xid 79、help。")  # fmt: skip


async def handle(bot: Bot, heard: Heard, asker: Asker, ticket: Ticket | None) -> None:
    """Answer it."""
    del ticket
    place = heard.place
    if not place.thread and heard.kind is Kind.SENTENCE and not place.direct:
        place = place._replace(thread=heard.ts)  # the answer stands below what was said
    text, log = await asyncio.to_thread(said.split, heard.text)
    origin = Origin()
    notes: tuple[Text, ...] = ()
    if heard.files or log:
        given = await bot.uploads.fetch(place, heard.files) if heard.files else None
        paths = [*given.paths] if given else []
        notes = given.notes if given else ()
        if log:
            paths.append(await asyncio.to_thread(bot.uploads.paste, place, log))
        if paths:
            origin = await asyncio.to_thread(bot.uploads.origin, paths)
            text = text or WRONG.in_(asker.lang)
    if notes and origin == Origin():
        raise ToldError(_joined(notes))
    if not text.strip():
        raise ToldError(_NOTHING)
    quiet = heard.kind is Kind.SENTENCE and not heard.mentioned and not place.direct and origin == Origin()
    await bot.turns.take(Request(
        asker, place, text, text, origin=origin, once=heard.once, quiet=quiet, root=heard.kind is Kind.COMMAND,
        at=heard.status,
    ))  # fmt: skip
    if notes:
        await bot.tell(place, _joined(notes), asker.lang)


def _joined(notes: Sequence[Text]) -> Text:
    return Text(*("\n".join(note.in_(lang) for note in notes) for lang in ("en", "zh")))
