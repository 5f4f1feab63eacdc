"""``/gpudiag incident ...`` and what is said in the thread of an incident: understood, written, shown.

Whoever may turn to the bot may read and write incidents. What is written is an event, as at a terminal; nobody's words are
ever taken back.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from assistant.incidents import events
from assistant.slack import cards, incident_pages
from assistant.slack.heard import Kind
from assistant.slack.ledger import Ticket
from assistant.slack.post import SlackError
from assistant.slack.walk_words import hand_of, who
from assistant.slack.words import ToldError
from assistant.store.location import StoreError
from knowledge.errors import GpudiagError
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.incidents.events import Entry
    from assistant.incidents.fold import Incident
    from assistant.slack.bot import Asker, Bot
    from assistant.slack.heard import Heard, Place
    from assistant.slack.page import Rendered

FIRST = ("incident", "incidents", "事件", "open", "开立事件", "新建事件")
_LEAD = re.compile(r"(?i)^(?:incidents?(?!\w)|事件)\s*[:：]?\s*(.*)$", re.DOTALL)
_OPEN = re.compile(
    r"(?i)^(?:open|开立|新建)\s*(?:an?\s+|one\s+)?(?:new\s+)?(?:incident|事件)\s*[:：]?\s*(.*)$", re.DOTALL
)
_NOTE = re.compile(r"(?i)^(?:note|备注)\s*[:：]\s*(.+)$", re.DOTALL)
_NUMBER = re.compile(r"^#?(\d{1,9})(?!\w)\s*(.*)$", re.DOTALL)
_USER = re.compile(r"^(?:@(?=[UW])|(?=[UW][A-Z0-9]*\d[A-Z0-9]*$)(?=.{8}))([A-Z0-9]+)$")  # @U9, a mention; U024BE7LH, copied
_VERBS = {
    "list": ("list", "ls", "列表", "列出"), "open": ("open", "new", "开立", "新建"), "show": ("show", "查看", "显示"),
    "note": ("note", "备注"), "close": ("close", "关闭"), "severity": ("severity", "级别"), "owner": ("owner", "负责人"),
    "status": ("status", "状态"), "link": ("link", "关联"), "similar": ("similar", "类似"), "report": ("report", "报告"),
    "run": ("run", "walk", "处理", "执行"), "runbook": ("runbook", "手册"),
}  # fmt: skip
_HOW = Text(
    "incident [list | list all], open [TITLE], NUMBER, note NUMBER TEXT, close NUMBER [HOW IT ENDED], severity NUMBER error, "
    "owner NUMBER me, status NUMBER working, link NUMBER OTHER, runbook NUMBER ID, similar NUMBER, report NUMBER, run NUMBER [NODE]",
    "incident [列表 | 列表 all]、开立 [标题]、编号、备注 编号 文字、关闭 编号 [结果]、级别 编号 error、负责人 编号 me、"
    "状态 编号 working、关联 编号 另一编号、手册 编号 ID、类似 编号、报告 编号、处理 编号 [节点]",
)
_CHANGES: dict[str, Callable[[str], Entry]] = {
    "severity": events.severity, "status": events.status, "runbook": events.runbook,
}  # fmt: skip


class Wish(NamedTuple):
    """What somebody wants of incidents. `number` 0: the one that the thread is about."""

    verb: str
    number: int = 0
    words: str = ""


def wish(text: str) -> Wish | None:
    """What a command or a sentence asks for; None when it is about something else. ToldError when it is not understood."""
    text = text.strip()
    if found := _OPEN.match(text):
        return Wish("open", 0, found[1].strip())
    if found := _NOTE.match(text):
        return Wish("note", 0, found[1].strip())
    lead = _LEAD.match(text)
    if lead is None:
        return None
    rest = lead[1].strip()
    if not rest:
        return Wish("list")
    if found := _NUMBER.match(rest):
        return Wish("show", int(found[1]))
    verb, rest = _verb(rest)
    if verb in ("list", "open"):
        return Wish(verb, 0, rest)
    found = _NUMBER.match(rest)
    return Wish(verb, int(found[1]), found[2].strip()) if found else Wish(verb, 0, rest)


def _verb(rest: str) -> tuple[str, str]:
    head, _, tail = rest.partition(" ")
    for verb, names in _VERBS.items():
        if head.casefold().rstrip(":：") in names:
            return verb, tail.strip()
        for name in names:
            if not name.isascii() and rest.startswith(name):
                return verb, rest.removeprefix(name).lstrip(" :：")
    raise ToldError(Text("This is nothing that incidents know.", "无法识别该事件操作。"), _HOW)


# --- doing it -----------------------------------------------------------------------------


async def do(bot: Bot, asker: Asker, place: Place, wanted: Wish) -> None:
    """Do it, and show in `place` what came of it. GpudiagError, StoreError."""
    number = wanted.number or bot.ledger.about(place)
    match wanted.verb:
        case "list":
            closed = wanted.words.casefold() in ("all", "全部", "--all")
            found = await asyncio.to_thread(bot.book().incidents, closed)
            await post(bot, asker, place, incident_pages.many(found, asker.lang, closed=closed))
            return
        case "open":
            await _open(bot, asker, place, wanted.words)
            return
    if not number:
        raise ToldError(Text("Which incident is meant? Its number is missing.", "指哪个事件？缺少编号。"), _HOW)
    match wanted.verb:
        case "show":
            await show(bot, asker, place, number)
        case "report":
            await _report(bot, asker, place, number)
        case "similar":
            incident, others = await asyncio.to_thread(_with_others, bot, number)
            told = incident_pages.alike(incident, others, asker.lang, always=True)
            assert told is not None  # always asked for
            await post(bot, asker, place, told, number)
        case "run":
            await walk(bot, asker, place, number, wanted.words)
        case _:
            await change(bot, asker, place, number, wanted)


async def change(bot: Bot, asker: Asker, place: Place, number: int, wanted: Wish) -> None:
    """Write it, and say how the incident stands now."""
    person = await _owner(bot, asker, wanted.words) if wanted.verb == "owner" else ""
    incident = await asyncio.to_thread(_written, bot, asker, number, wanted, person)
    await post(bot, asker, place, incident_pages.changed(incident, asker.lang), number)
    bot.homes.refresh()


def _written(bot: Bot, asker: Asker, number: int, wanted: Wish, person: str) -> Incident:
    from assistant.incidents.links import link

    book, hand, words = bot.book(), hand_of(asker), wanted.words
    if wanted.verb == "link":
        other = _NUMBER.match(words)
        if other is None:
            raise ToldError(Text("Which other incident belongs to it?", "关联到哪个事件？"),
                            Text(f"incident link {number} OTHER", f"incident 关联 {number} 另一编号"))  # fmt: skip
        return link(book, number, int(other[1]), hand)
    if wanted.verb == "close":

        def close(incident: Incident) -> Sequence[Entry]:
            if not incident.is_open:
                raise ToldError(Text(f"Incident {number} is closed already.", f"事件 {number} 已关闭。"))
            return [events.closed(words)]

        return book.change(number, hand, close)
    if wanted.verb == "note":
        return book.add(number, hand, events.note(words))
    if wanted.verb == "owner":
        return book.add(number, hand, events.owner(person))
    word, _, why = words.partition(" ")
    entries = [_CHANGES[wanted.verb](word.casefold())]
    return book.add(number, hand, *entries, *([events.note(why)] if why.strip() else []))


async def _owner(bot: Bot, asker: Asker, words: str) -> str:
    """Who takes care of it: a mention, an id, ``me``, ``nobody``, or a name as it is."""
    if words.casefold() in ("me", "i", "我"):
        return who(asker)
    if words.casefold() in ("nobody", "none", "-", "无", "没有"):
        return ""
    if not words:
        raise ToldError(Text("Who takes care of it?", "由谁负责？"), Text("@somebody, me or nobody", "@某人、我 或 无"))
    if found := _USER.match(words):
        known = await bot.people.known(found[1])
        return who(asker._replace(person=known.person, name=known.name))
    return words


# --- opening ------------------------------------------------------------------------------


async def _open(bot: Bot, asker: Asker, place: Place, title: str) -> None:
    """By hand with a title, else from the diagnosis of this thread."""
    from assistant.slack.incident_opening import opened

    incident, new, others = await asyncio.to_thread(opened, bot, asker, place, title)
    if not new:
        said = Text(f"#{incident.number} is open about it already.", f"已有未关闭的事件 #{incident.number}。")
        await bot.tell(place, said, asker.lang)
    shown = await show(bot, asker, place, incident.number)
    if (like := incident_pages.alike(incident, others, asker.lang)) is not None:
        await post(bot, asker, shown, like, incident.number)
    bot.homes.refresh()


# --- showing ------------------------------------------------------------------------------


async def post(bot: Bot, asker: Asker, place: Place, message: Rendered, number: int = 0) -> Place:
    """A message; where it begins a thread, that thread. `number`: of the incident that it is about."""
    ts = await bot.poster.post(place, message)
    if not place.thread and not place.direct:
        place = place._replace(thread=ts)
    bot.ledger.join(place, asker.person.id)
    if number:
        bot.ledger.talk_about(place, number)
    return place


async def show(bot: Bot, asker: Asker, place: Place, number: int) -> Place:
    """How the incident stands, with its buttons; the thread in which it is told."""
    incident = await asyncio.to_thread(bot.book().incident, number)

    def ticket(kind: str) -> str:
        return bot.ledger.issue(Ticket(kind, place, asker.person.id, {"incident": number}))

    card = cards.incident(incident, asker.lang, ticket)
    place = await post(bot, asker, place, card, number)
    if card.overflow:
        await _attach(bot, asker, place, incident)
    return place


async def _attach(bot: Bot, asker: Asker, place: Place, incident: Incident) -> None:
    from assistant.incidents import pages
    from assistant.render.sheet import show as shown

    output = bot.settings.output._replace(lang=asker.lang, format="markdown", color="never")
    text = shown(pages.one(incident_pages.as_seen(incident, asker), asker.lang), output)
    name = f"incident-{incident.number}.md"
    await bot.poster.upload(place, name, text.encode("utf-8", "replace"), name)


async def _report(bot: Bot, asker: Asker, place: Place, number: int) -> None:
    incident, others = await asyncio.to_thread(_with_others, bot, number)
    files = await asyncio.to_thread(incident_pages.report, incident, others, asker, bot.settings)
    place = await show(bot, asker, place, number)
    for name, content in files:
        await bot.poster.upload(place, name, content, name)


def _with_others(bot: Bot, number: int) -> tuple[Incident, list[Incident]]:
    from assistant.incidents.similar import PAST

    book = bot.book()
    return book.incident(number), book.incidents(limit=PAST)


async def walk(bot: Bot, asker: Asker, place: Place, number: int, node: str = "", *, take_over: bool = False) -> None:
    """Walk its runbook in the thread; a command begins one."""
    if not place.thread and not place.direct:
        place = await show(bot, asker, place, number)
    await bot.walks.begin(asker._replace(place=place), place, number, node.strip(), take_over=take_over)


# --- what is said in the thread -----------------------------------------------------------


class Notes:
    """``note: ...`` in the thread of an incident, without naming the bot."""

    def __init__(self, bot: Bot) -> None:
        self._bot = bot

    def take(self, heard: Heard) -> bool:
        """Whether it was a note for the incident of that thread."""
        found = _NOTE.match(heard.text.strip()) if heard.kind is Kind.SENTENCE else None
        number = self._bot.ledger.about(heard.place) if found is not None else 0
        if found is None or not number:
            return False
        self._bot.spawn(self._noted(heard, Wish("note", number, found[1].strip())))
        return True

    async def _noted(self, heard: Heard, wanted: Wish) -> None:
        asker = await self._bot.asker(heard.user, heard.place)
        try:
            await change(self._bot, asker, heard.place, wanted.number, wanted)
        except SlackError:
            raise
        except (GpudiagError, StoreError) as error:
            told = ToldError(error.said) if isinstance(error, StoreError) else error
            await self._bot.poster.whisper(heard.place, heard.user, cards.error(told, asker.lang))
