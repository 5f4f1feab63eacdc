"""Walks of runbooks in threads: who walks what, where; begun, taken over, left, and told of after a restart.

A walk is `assistant.incidents.walk.Walk` in a thread of its own: it may wait half an hour for a word. What it does is an event
of its incident, so that whatever ends it here, anybody goes on with it from any surface.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import defaultdict
from contextlib import suppress
from dataclasses import field
from threading import Thread
from typing import TYPE_CHECKING

from assistant.incidents import claims
from assistant.incidents.events import Hand, StepState
from assistant.slack import cards, rich
from assistant.slack.heard import Kind, Place
from assistant.slack.ledger import Ticket, Turn
from assistant.slack.page import Page, Rendered
from assistant.slack.rich import span
from assistant.slack.walk_talk import PATIENCE, ThreadTalk
from assistant.slack.walk_words import going_on, hand_of, holder, walkable, who
from assistant.slack.words import ToldError
from assistant.store.location import StoreError
from knowledge.errors import GpudiagError
from knowledge.language import Text
from knowledge.record import dataclass

if TYPE_CHECKING:
    from assistant.incidents.fold import Incident
    from assistant.slack.bot import Asker, Bot
    from assistant.slack.heard import Heard

MOST = 24  # walks at once, a thread each
ENDS = 15.0  # s in which a walk that was told to leave has ended: a probe that hangs is given up by then
TAKE_OVER = "take_over"
_LOG = logging.getLogger(__name__)
_FAULT = Text(
    "The walk broke off: this is a fault of gpudiag, and stands in its log.",
    "流程中断：这是 gpudiag 的故障，已记入日志。",
)


@dataclass
class _Walking:
    """One walk under way."""

    key: str
    number: int  # of the incident
    talk: ThreadTalk
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    quiet: bool = False  # the bot ends: nothing more is said


class Walks:
    """The walks of this bot. For its event loop."""

    def __init__(self, bot: Bot, patience: float = PATIENCE) -> None:
        """`patience`: s that a question waits for an answer."""
        self._bot, self._patience = bot, patience
        self._walks: dict[str, _Walking] = {}
        self._begins: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)

    # --- begin ------------------------------------------------------------------------------

    async def begin(self, asker: Asker, place: Place, number: int, node: str = "", *, take_over: bool = False) -> None:
        """Walk incident `number` in the thread `place`. ToldError, UnknownNameError, StoreError when it cannot be.

        Where somebody else has it in hand, that is said, with a button to take over.
        """
        async with self._begins[number]:  # of two presses at once one finds the other's walk
            await self._begin(asker, place, number, node, take_over=take_over)

    async def _begin(self, asker: Asker, place: Place, number: int, node: str, *, take_over: bool) -> None:
        incident = await asyncio.to_thread(self._bot.book().incident, number)
        walkable(incident)
        if not await self._free(incident, asker, place, node, take_over=take_over):
            return
        if len(self._walks) >= MOST:
            raise ToldError(
                Text(f"{MOST} walks are under way: that is the most.", f"已有 {MOST} 个流程在进行，已达上限。")
            )
        key = secrets.token_urlsafe(12)
        talk = ThreadTalk(self._bot, place, asker, number, key, self._patience)
        one = self._walks[key] = _Walking(key, number, talk)
        user = asker.person.id
        data = {"do": "walk", "incident": number, "who": who(asker), "lang": asker.lang}
        self._bot.ledger.hear(Turn(f"walk {key}", place, user, data=data))
        self._bot.ledger.join(place, user)
        self._bot.ledger.talk_about(place, number)
        Thread(target=self._run, args=(one, incident, node, take_over), name=f"walk-{number}", daemon=True).start()

    async def _free(self, incident: Incident, asker: Asker, place: Place, node: str, *, take_over: bool) -> bool:
        """Whether nobody else is at it now; else they are asked to take over, or have just done so."""
        here = next((w for w in self._walks.values() if w.talk.place == place), None)
        now = next((w for w in self._walks.values() if w.number == incident.number), here)
        if now is None:
            held = holder(incident, who(asker))
            if held is None or take_over:
                return True
            await self._offer(asker, place, incident, node, held)
            return False
        walker = now.talk.walker
        if now.number != incident.number:
            raise ToldError(
                Text(f"Incident {now.number} is walked in this thread.", f"本话题正在处理事件 {now.number}。")
            )
        if walker.person.id == asker.person.id and not take_over:
            raise ToldError(
                Text("You walk it already: answer its last question.", "您已在处理该事件：请回答最后一个问题。")
            )
        if not take_over:
            await self._offer(asker, place, incident, node, walker.name)
            return False
        if not now.talk.waiting:
            raise ToldError(Text(f"A command or a probe of {walker.name} is running.", f"{walker.name} 的命令或探针正在运行。"),
                            Text("take over when it has ended", "请在结束后再接替"))  # fmt: skip
        now.talk.leave(Text(f"{asker.name} takes over", f"由 {asker.name} 接替").in_(walker.lang))
        try:
            await asyncio.wait_for(now.ended.wait(), ENDS)
        except TimeoutError:
            raise ToldError(Text("The other walk does not end: try again.", "另一个流程尚未结束：请重试。")) from None
        return True

    async def _offer(self, asker: Asker, place: Place, incident: Incident, node: str, held: str) -> None:
        lang = asker.lang
        said = Text(f"{held} has #{incident.number} in hand.", f"#{incident.number} 正由 {held} 处理。").in_(lang)
        page = Page(lang, [span(said, "bold")])
        ticket = Ticket(TAKE_OVER, place, asker.person.id, {"incident": incident.number, "node": node})
        button = rich.button(TAKE_OVER, Text("Take over", "接替").in_(lang), self._bot.ledger.issue(ticket))
        await self._bot.poster.post(place, page.done((), [button]))

    # --- what people say and press -------------------------------------------------------------

    def take(self, heard: Heard) -> bool:
        """Offered to before anybody else hears it; whether it was an answer of the one who walks in that thread."""
        if heard.kind is not Kind.SENTENCE or heard.files:
            return False
        for one in self._walks.values():
            if one.talk.place == heard.place and one.talk.walker.person.id == heard.user:
                return one.talk.hears(heard.text)
        return False

    def pressed(self, ticket: Ticket, asker: Asker) -> None:
        """A button of a question. ToldError when it counts no more, or is not theirs."""
        number, asked = int(ticket.data["incident"]), int(ticket.data["asked"])
        one = self._walks.get(str(ticket.data["walk"]))
        if one is None:
            raise ToldError(Text("This walk is over, or was left.", "该流程已结束或已离开。"), going_on(number))
        if one.talk.walker.person.id != asker.person.id:
            name = one.talk.walker.name
            raise ToldError(
                Text(f"{name} walks it, and only their answers count.", f"由 {name} 处理，仅其回答有效。"),
                going_on(number),
            )
        if not one.talk.pressed(asked, str(ticket.data["word"])):
            raise ToldError(Text("This question was answered already.", "该问题已有回答。"))

    # --- the end ------------------------------------------------------------------------------

    async def close(self) -> None:
        """The bot ends: every walk is left, so that it is gone on with anywhere."""
        walks = list(self._walks.values())
        for one in walks:
            one.quiet = True
            one.talk.leave("")
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*(w.ended.wait() for w in walks)), ENDS)

    async def cut_off(self, turn: Turn) -> None:
        """After a restart: a walk that it cut off is left, and its thread told how to go on."""
        number, lang = int(turn.data["incident"]), str(turn.data["lang"])
        try:
            unsure = await asyncio.to_thread(self._released, number, str(turn.data["who"]))
            said = [Text(f"gpudiag was restarted: the walk of #{number} is left where it stood.",
                         f"gpudiag 已重启：#{number} 的流程停在原处。")]  # fmt: skip
            said += [
                Text(f"It is not known how this ended: {name}", f"不清楚以下命令的结果：{name}") for name in unsure
            ]
            page = Page(lang, [span(said[0].in_(lang), "bold")])
            for line in said[1:]:
                page.add(rich.section(span(page.cut(line.in_(lang), 1_000))))
            page.add(rich.section(span(going_on(number).in_(lang))))
            ticket = Ticket(cards.WALK, turn.place, turn.user, {"incident": number})
            words = Text("Go on", "继续").in_(lang)
            await self._bot.poster.post(
                turn.place, page.done((), [rich.button(cards.WALK, words, self._bot.ledger.issue(ticket))])
            )
        except (GpudiagError, StoreError) as error:
            _LOG.warning("walk of incident %d, cut off by a restart: %s", number, error)
        self._bot.ledger.end(turn.id)

    def _released(self, number: int, name: str) -> list[str]:
        """Leave the steps that `name` had in hand. What was run and nobody knows how it ended."""
        book, hand = self._bot.book(), Hand(name, "slack")
        incident = book.incident(number)
        for runbook, step in incident.steps:
            event = claims.last(incident, runbook, step)
            if event is not None and event.surface == "slack" and claims.holder(event, name) is claims.Holder.SAME:
                entry = claims.step_entry(runbook, step, StepState.DOING, "restarted", left=True)
                seen = event.seq
                with suppress(claims.MovedError):
                    book.change(number, hand, lambda i: claims.if_unmoved(i, runbook, step, seen, [entry]))  # noqa: B023 - called at once
        records = self._bot.journal.of(incident.uid or str(number))
        known = {r.data.get("intent") for r in records if r.kind == "result"}
        return [r.text("what") for r in records if r.kind == "intent" and r.who == name and r.seq not in known]

    # --- in the walk's thread -------------------------------------------------------------------

    def _run(self, one: _Walking, incident: Incident, node: str, take_over: bool) -> None:
        trouble: Rendered | None = None
        try:
            self._walk(one, incident, node, take_over)
            if not one.quiet:
                one.talk.flush()
        except GpudiagError as error:
            trouble = cards.error(error, one.talk.lang)
        except StoreError as error:
            trouble = cards.error(ToldError(error.said), one.talk.lang)
        except Exception:  # noqa: BLE001 - a thread's last word: it is logged, and the person is told
            _LOG.exception("walk of incident %d", one.number)
            trouble = Page(one.talk.lang, [span(_FAULT.in_(one.talk.lang), "bold")]).done()
        finally:
            with suppress(RuntimeError):  # the loop has ended
                self._bot.loop.call_soon_threadsafe(lambda: self._bot.spawn(self._told(one, trouble)))

    def _walk(self, one: _Walking, incident: Incident, node: str, take_over: bool) -> None:
        from assistant.incidents.looking import Sight, looker
        from assistant.incidents.walk import Walk
        from assistant.incidents.walk_parts import Way
        from assistant.slack.walk_rights import Eyed, PolicyPermit

        node = node or (incident.hosts[0] if len(incident.hosts) == 1 else "")
        look, here = looker(self._bot.settings, node)
        sight = Eyed(self._bot, one.talk, node, "" if here else node) if look is not None else Sight(None)
        talk = one.talk
        Walk(
            self._bot.book(), one.number, hand_of(talk.walker), self._bot.journal, sight, talk,
            Way(node, here, take_over=take_over), talk.lang, talk.rest, lambda: talk.left, PolicyPermit(self._bot, talk),
        ).run()  # fmt: skip

    async def _told(self, one: _Walking, trouble: Rendered | None) -> None:
        """The walk is over: what became of the incident."""
        from assistant.slack.incidents import show

        self._walks.pop(one.key, None)
        one.ended.set()
        if one.quiet:  # its line stays in the ledger: the next start tells the thread how to go on
            return
        self._bot.ledger.end(f"walk {one.key}")
        try:
            if trouble is not None:
                await self._bot.poster.post(one.talk.place, trouble)
            await show(self._bot, one.talk.walker, one.talk.place, one.number)
        except (GpudiagError, StoreError) as error:
            _LOG.warning("walk of incident %d: %s", one.number, error)
