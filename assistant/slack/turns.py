"""A turn of a conversation in Slack, from what somebody said to the message that answers it.

The session is the one that every surface runs; here stand only whose conversation it is, in which order, how much at once, and
how it is shown. One conversation a person and thread; whoever speaks first in somebody else's thread goes on from there.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from assistant.session.key import Key
from assistant.session.state import Origin, State
from assistant.slack import status
from assistant.slack.eyes import Consent, Ears, SlackEyes
from assistant.slack.ledger import OVER, Turn
from assistant.slack.mrkdwn import unescape
from assistant.slack.narration import Narrations
from assistant.slack.nodes import Nodes
from assistant.slack.post import SlackError
from assistant.slack.veil import veiled
from assistant.slack.words import ToldError
from knowledge.errors import GpudiagError
from knowledge.language import Text
from knowledge.record import dataclass

if TYPE_CHECKING:
    from assistant.config import Settings
    from assistant.intent.query import Query
    from assistant.reply import Reply
    from assistant.session.continued import Continued
    from assistant.session.core import Session
    from assistant.session.driver import Answer, Conversation
    from assistant.session.steps import Event
    from assistant.slack.bot import Asker, Bot
    from assistant.slack.heard import Place

THREADS = 24  # turns that are worked on at once: nearly all of them wait for machines
THINKING = 2  # of them that compute at a time
EACH = 2  # of one person
WAITING = 6  # of one person that are under way or wait; one more is refused
LONGEST = 900.0  # seconds that a turn may take, its wait for other people's looks included
_MANY = Text(
    f"You have {WAITING} questions under way: wait for an answer, or cancel one.",
    f"您已有 {WAITING} 个问题在处理中：请等待回答，或取消一个。",
)
WRONG = Text("what is wrong?", "出了什么问题？")
_LATE = Text("This took too long and was given up.", "耗时过长，已放弃。")


NOWHERE, NOTHING = Origin(), Consent()
_DEAF = Ears(lambda _: None, lambda _: None, lambda: None)


class StoppedError(GpudiagError):
    """The asker has given up, or nobody has the patience any more."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a turn is to answer."""

    asker: Asker
    place: Place  # where the answer goes; without a thread a new one begins
    asked: str  # for people: what stands above the answer
    text: str = ""
    event: Event | None = None  # instead of a text: consent, an answer to a question of ours
    origin: Origin = NOWHERE
    consent: Consent = NOTHING
    base: str = ""  # whose conversation it goes on from: an answer's own, when a button below it was pressed
    once: str = ""  # its line in the ledger
    quiet: bool = False  # nobody spoke to us: what is no question for us gets no answer
    root: bool = False  # a command: its message begins a thread
    at: str = ""  # time stamp of the status message, after a restart
    again: Mapping[str, Any] = field(default_factory=dict)  # how it is begun again after a restart; empty: it is not
    query: Query | None = None  # as what the text is to be understood, after a yes to that


@dataclass
class _Job:
    """A turn under way."""

    user: str
    stop: threading.Event = field(default_factory=threading.Event)
    until: float = field(default_factory=lambda: time.monotonic() + LONGEST)

    def check(self) -> None:
        """Raises when it was given up."""
        if self.stop.is_set():
            raise StoppedError(status.CANCELLED.en)
        if time.monotonic() > self.until:
            raise ToldError(_LATE)


@dataclass
class _Talk:
    """A conversation with turns under way, or waiting."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    turns: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a turn came to, in the thread that worked on it."""

    answer: Answer
    exports: tuple[tuple[Reply, str], ...]
    settings: Settings
    here: str = ""  # the name of the bot's own machine
    options: Mapping[str, str] = field(default_factory=dict)  # what the probes that wait for consent are told
    complaints: tuple[Text, ...] = ()
    hosts: tuple[str, ...] = ()  # the machines that a sentence may name


class Turns:
    """All turns of the bot."""

    def __init__(self, bot: Bot) -> None:
        self._bot = bot
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="turn")
        self.nodes = Nodes()
        self._thinking = threading.BoundedSemaphore(THINKING)
        self._jobs: dict[str, _Job] = {}
        self._count: Counter[str] = Counter()
        self._each: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(EACH))
        self._talks: dict[Key, _Talk] = {}
        self._narrations = Narrations(bot)

    # --- in the event loop --------------------------------------------------------------------

    async def take(self, request: Request) -> Answer | None:
        """Answer it where it was asked. None when there is no answer: cancelled, failed, nothing for us."""
        user = request.asker.person.id
        if self._count[user] >= WAITING:
            raise ToldError(_MANY)
        self._count[user] += 1
        try:
            return await self._taken(request)
        finally:
            self._count[user] -= 1
            if not self._count[user]:
                del self._count[user]
                self._each.pop(user, None)

    def cancel(self, once: str, user: str) -> bool:
        """Give up a turn; only whose it is may. False when it is over, or somebody else's."""
        job = self._jobs.get(once)
        if job is None or job.user != user:
            return False
        job.stop.set()
        return True

    def close(self) -> None:
        """Give up everything."""
        for job in self._jobs.values():
            job.stop.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._narrations.close()

    @asynccontextmanager
    async def _talking(self, key: Key) -> AsyncIterator[None]:
        """One turn of a conversation after the other, in the order in which they came."""
        talk = self._talks.setdefault(key, _Talk())
        talk.turns += 1
        try:
            async with talk.lock:
                yield
        finally:
            talk.turns -= 1
            if not talk.turns:
                del self._talks[key]

    async def _taken(self, request: Request) -> Answer | None:
        asker, once = request.asker, request.once or f"turn {time.monotonic_ns()}"
        turn = Turn(once, request.place, asker.person.id, request.at, request.again)
        here = status.Status(self._bot, asker, turn, request.asked, root=request.root)
        job = self._jobs[once] = _Job(asker.person.id)
        try:
            if request.quiet and not await self._bot.loop.run_in_executor(self._pool, self._meant, request):
                return None
            await here.begin()
            request = replace(request, place=here.place)
            ears = Ears(here.progress, here.waits, job.check)
            async with self._each[asker.person.id], self._talking(key_of(here.place, asker.person.id)):
                job.check()
                outcome = await self._bot.loop.run_in_executor(self._pool, self._worked, request, ears)
            await self._told(request, here, outcome)
            return outcome.answer
        except StoppedError:
            await here.stop(status.CANCELLED.in_(asker.lang))
        except SlackError:  # nothing can be said there: whoever deals with what was heard finds another way
            raise
        except GpudiagError as error:
            from assistant.slack import cards

            shown = ToldError(Text(self._bot.uploads.shown(error.in_(asker.lang))))
            await here.end(cards.error(shown, asker.lang), shown.message.partition("\n")[0])
        except Exception:
            await here.stop(status.FAULT.in_(asker.lang))
            raise
        finally:
            self._jobs.pop(once, None)
        return None

    async def _told(self, request: Request, here: status.Status, outcome: Outcome) -> None:
        """Show the answer, with what belongs to it."""
        from assistant.slack.answers import message

        answer, asker = outcome.answer, request.asker
        said = await asyncio.to_thread(message, self._bot, asker, here.place, request.asked, outcome)
        await here.end(said, unescape(said.text))
        await asyncio.to_thread(self._bot.ledger.join, here.place, asker.person.id)
        if said.overflow and not outcome.exports:
            await self._upload(here.place, outcome, answer.reply, "markdown")
        for reply, form in outcome.exports:
            await self._upload(here.place, outcome, reply, form)
        self._narrations.begin(request, here.place, outcome)

    async def _upload(self, place: Place, outcome: Outcome, reply: Reply, form: str) -> None:
        from assistant.slack.export import whole

        name, content = await asyncio.to_thread(whole, replace(outcome.answer, reply=reply), outcome.settings, form)
        await self._bot.poster.upload(place, name, content, name)

    async def export(self, asker: Asker, place: Place, base: str) -> None:
        """The answer that stands, as a page and as Markdown."""
        outcome = await asyncio.to_thread(self._standing, asker, place, base)
        if outcome is None:
            raise ToldError(OVER)
        for form in ("html", "markdown"):
            await self._upload(place, outcome, outcome.answer.reply, form)

    async def agreed(self, then: Mapping[str, Any], numbers: tuple[str, ...]) -> None:
        """A second person has agreed to what a turn waits for: go on with it, for who asked."""
        from assistant.session.steps import Confirmed
        from assistant.slack.heard import Place

        place, user = Place(*then["place"]), str(then["user"])
        asker = await self._bot.asker(user, place, anew=True)
        consent = Consent(tuple(then["waits"]), dict(zip(then["second"], numbers, strict=True)))
        await self.take(Request(asker, place, str(then["asked"]), event=Confirmed(True), consent=consent))

    # --- in a worker thread -------------------------------------------------------------------

    def _settings(self, asker: Asker) -> Settings:
        settings = self._bot.settings
        return settings._replace(output=settings.output._replace(lang=asker.lang, format="text", color="never"))

    def continued(self, place: Place, user: str) -> Continued:
        """Somebody's conversation in a thread."""
        from assistant.session.continued import Continued
        from assistant.session.store import dialogues

        return Continued(dialogues(self._bot.settings), key_of(place, user))

    def state(self, request: Request) -> tuple[Continued, State]:
        """Where the conversation stands: one's own, or the one that it goes on from, as far as this person may see it."""
        user = request.asker.person.id
        kept = self.continued(request.place, user)
        own = kept.now()
        base = request.base or ("" if own.frames else self._bot.ledger.last(request.place))
        other = self.continued(request.place, base).now() if base and base != user else None
        if other is None or not other.frames:
            return kept, _veiled(own, request.asker)
        state = _veiled(other, request.asker)
        return kept, state.put(replace(state.frame, pending=None))  # consent is asked of each for themselves

    def _meant(self, request: Request) -> bool:
        """Whether what somebody wrote into the thread is for us."""
        with self._thinking:
            settings, (_, state) = self._settings(request.asker), self.state(request)
            eyes = SlackEyes(self._bot, request.asker, settings, self.nodes, _DEAF)
            return _for_us(request.text, state, settings, eyes)

    def _worked(self, request: Request, ears: Ears) -> Outcome:
        """The turn itself. The event loop waits for the interpreter's lock with every thread that computes, so few do."""
        with self._thinking:
            return self._work(request, replace(ears, thinking=self._thinking))

    def _work(self, request: Request, ears: Ears) -> Outcome:
        from assistant.session.driver import Conversation
        from assistant.session.talk import session_of

        settings = self._settings(request.asker)
        kept, state = self.state(request)
        if (agreed := request.consent.waits) and (state.frame.pending is None or state.frame.pending.probes != agreed):
            raise ToldError(OVER)  # something else is asked by now: nobody agreed to that
        eyes = SlackEyes(self._bot, request.asker, settings, self.nodes, ears, request.consent)
        talk = Conversation(session_of(eyes), eyes, state, lambda _: ears.check())
        answer = _answered(talk, request, settings, eyes)
        ears.check()
        kept.keep(talk.state)
        here = talk.session.inventory.here
        return Outcome(
            answer, tuple(eyes.exports), settings, here, waiting_options(talk.session, talk.state), kept.complaints(),
            tuple(talk.session.inventory.hosts),
        )  # fmt: skip

    def _standing(self, asker: Asker, place: Place, base: str) -> Outcome | None:
        """The answer that the conversation stands at, made again from what was seen."""
        from assistant.session.concluding import concluded
        from assistant.session.driver import Answer
        from assistant.session.talk import session_of

        request = Request(asker, place, "", base=base)
        _, state = self.state(request)
        frame = state.frame
        if not (frame.seen or frame.told):
            return None
        settings = self._settings(asker)
        eyes = SlackEyes(self._bot, asker, settings, self.nodes, _DEAF)
        found = concluded(session_of(eyes), state, frame.seen, frame.told)
        from assistant.reply import Reply as Reply_

        return Outcome(Answer(Reply_(asker.lang, "", diagnosis=found), frame.query, None, frame), (), settings)


def key_of(place: Place, user: str) -> Key:
    """Whose conversation it is."""
    return Key("slack", f"{place.team}/{place.channel}", place.thread, user)


def waiting_options(session: Session, state: State) -> Mapping[str, str]:
    """What the probes that wait for consent are told when they run, as the session will tell them: the process, the node."""
    frame = state.frame
    if frame.pending is None or not frame.pending.probes or frame.query is None:
        return {}
    from assistant.session.concluding import concluded
    from assistant.session.naming import options

    return options(frame.query, concluded(session, state, frame.seen, frame.told).facts)


def _veiled(state: State, asker: Asker) -> State:
    """What was seen, as far as this person may see it now: a role may have been taken away since."""
    seen = {n: replace(s, observations=veiled(s.observations, asker.sights)) for n, s in state.seen.items()}
    return replace(state, seen=seen)


def _answered(talk: Conversation, request: Request, settings: Settings, eyes: SlackEyes) -> Answer:
    if request.event is not None:
        return talk.tell(request.event)
    if request.query is not None:
        return talk.say(request.text, request.origin, request.query)
    return talk.say(_about_it(request, settings, eyes), request.origin)


def _about_it(request: Request, settings: Settings, eyes: SlackEyes) -> str:
    """The sentence; of one that only hands something over ("what is this?", "help!") the question that is meant."""
    if request.origin.live:
        return request.text
    from assistant.intent.query import Intent

    query = _understood(request.text, settings, eyes)
    vague = query.follows_up or query.intent in (Intent.UNKNOWN, Intent.HELP)
    return WRONG.in_(settings.output.lang) if vague else request.text


def _understood(text: str, settings: Settings, eyes: SlackEyes, lang: str = "", *, pending: bool = False) -> Query:
    from assistant.intent.parse import understand
    from assistant.session.inventory import known

    hosts = known(settings, others=eyes.others).words
    return understand(text, lang=lang or settings.output.lang, pending=pending, hosts=hosts)


def _for_us(text: str, state: State, settings: Settings, eyes: SlackEyes) -> bool:
    """Whether a sentence that somebody wrote into the thread is a question, or an answer to ours, that we understand."""
    from assistant.intent.query import Intent

    pending = state.frame.pending is not None
    query = _understood(text, settings, eyes, state.lang, pending=pending)
    if query.intent in (Intent.CONFIRM, Intent.DENY):
        return pending
    return query.intent is not Intent.UNKNOWN
