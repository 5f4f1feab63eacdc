"""Incidents that begin in a thread: by hand, or from the diagnosis that stands there. In a worker thread."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from assistant.incidents.opening import by_hand, from_diagnosis, same_as
from assistant.slack.walk_words import hand_of
from assistant.slack.words import ToldError
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.incidents.fold import Incident
    from assistant.slack.bot import Asker, Bot
    from assistant.slack.heard import Place

_NOTHING = Text("Nothing was diagnosed in this thread.", "本话题中没有诊断结果。")
_HOW = Text("incident open TITLE begins one by hand", "incident open 标题 可人工开立")


def opened(bot: Bot, asker: Asker, place: Place, title: str) -> tuple[Incident, bool, list[Incident]]:
    """The incident, whether it is a new one, and all others. GpudiagError, StoreError."""
    from assistant.incidents.similar import PAST

    book, hand = bot.book(), hand_of(asker)
    if title:
        incident, new = book.open(hand, by_hand(title))
    else:
        incident, new = _diagnosed(bot, asker, place)
    return incident, new, book.incidents(limit=PAST)


def _diagnosed(bot: Bot, asker: Asker, place: Place) -> tuple[Incident, bool]:
    """About what was found in this thread, as for somebody who may see nothing of other users: everybody reads an incident."""
    from assistant.session.concluding import concluded
    from assistant.session.talk import session_of
    from assistant.slack.eyes import Ears, SlackEyes
    from assistant.slack.turns import Request
    from assistant.slack.veil import veiled

    _, state = bot.turns.state(Request(asker, place, ""))
    frame = state.frame
    if not (frame.seen or frame.told):
        raise ToldError(_NOTHING, _HOW)
    seen = {n: bot.uploads.told(replace(s, observations=veiled(s.observations, ()))) for n, s in state.seen.items()}
    eyes = SlackEyes(bot, asker, bot.settings, bot.turns.nodes, Ears(lambda _: None, lambda _: None, lambda: None))
    found = concluded(session_of(eyes), replace(state, seen=seen), frame.seen, frame.told)
    host = next((state.seen[n].host for n in reversed(frame.seen) if state.seen[n].host), "")
    entries = from_diagnosis(found, host)
    return bot.book().open(hand_of(asker), entries, same_as(entries))
