"""A walk's voice in a thread: what it says gathers until it asks or ends; a question has buttons, and the next word counts too.

The walk runs in a thread of its own and calls `say`, `show`, `ask` and `rest`; everything else is called from the event loop.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from queue import Empty, SimpleQueue
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from assistant.incidents.walk_parts import LeftError
from assistant.render.sheet import Code, Paragraph, Part
from assistant.slack import parts, rich
from assistant.slack.ledger import Ticket
from assistant.slack.mrkdwn import fallback
from assistant.slack.page import Page, Rendered
from assistant.slack.rich import span
from knowledge.language import Text
from knowledge.text import clean, excerpt

if TYPE_CHECKING:
    from assistant.slack.bot import Asker, Bot
    from assistant.slack.heard import Place

T = TypeVar("T")
PATIENCE = (
    30 * 60.0
)  # s that a question waits: whoever was called away finds the walk left, and goes on where they like
SLACK = 120.0  # s for a message: Slack may ask for pauses
ANSWER = "walk_answer"
LEAVE = frozenset({"q", "quit", "leave", "stop", "cancel", "exit", "离开", "退出", "停止", "取消"})
_DONE = frozenset({"done", "ok", "okay", "yes", "y", "finished", "完成", "已完成", "好", "好了", "是"})
_SAYS = {
    "y": frozenset({"y", "yes", "是", "好"}), "n": frozenset({"n", "no", "否", "不"}), "s": frozenset({"s", "skip", "跳过"}),
    "q": LEAVE,
}  # fmt: skip
_LABELS = {
    "y": Text("Yes", "是"), "n": Text("No", "否"), "s": Text("Skip", "跳过"), "q": Text("Leave", "离开"),
    "done": Text("Done", "完成"), "unknown": Text("Not known", "不清楚"),
}  # fmt: skip
_LETTERS = re.compile(r"\s*(?:\[[a-z]\] ?\w*[,，]? ?)+$")  # [y]es, [s]kip, [q]uit     [y] 是，[s] 跳过，[q] 离开
_EITHER = re.compile(r"\s*\[y/N\]$")
_WRITE = Text("write it here", "请在此输入")


class Choices(NamedTuple):
    """What can be answered: the question without its hints, and words for buttons."""

    text: Text
    words: tuple[str, ...]  # of `_LABELS`
    typed: bool = False  # a word is wanted that no button has


def choices(question: Text) -> Choices:
    """How a question of a walk is put where there are buttons."""
    en, zh = question.en, question.in_("zh")
    if _EITHER.search(en):
        return Choices(Text(_EITHER.sub("", en), _EITHER.sub("", zh)), ("y", "n"))
    if found := _LETTERS.search(en):
        letters = tuple(c for c in re.findall(r"\[([a-z])\]", found[0]) if c in _SAYS and c != "q")
        return Choices(Text(en[: found.start()], _LETTERS.sub("", zh)), letters)
    if en.endswith("or nothing:"):
        return Choices(question, ("unknown",), typed=True)
    if en.startswith("Enter when"):
        return Choices(Text("Is it done?", "完成了吗？"), ("done",))
    return Choices(question, (), typed=True)


def understood(asked: Choices, text: str) -> str | None:
    """What a message means as an answer, as the walk wants it; None when it is none: people also talk to each other."""
    said = " ".join(clean(text).lower().split()).rstrip(".!。！")
    if said in LEAVE:
        return "q"
    for word in asked.words:
        if said in (_DONE if word == "done" else _SAYS.get(word, frozenset())):
            return "" if word == "done" else word
    return said if asked.typed and said and " " not in said else None


class _Asked(NamedTuple):
    number: int
    choices: Choices


class ThreadTalk:
    """One walk's talk."""

    def __init__(self, bot: Bot, place: Place, walker: Asker, incident: int, walk: str, patience: float) -> None:
        self._bot, self._walk, self._patience, self._incident = bot, walk, patience, incident
        self.place, self.walker, self.lang = place, walker, walker.lang
        self._parts: list[Part] = []
        self._title = ""
        self._answers: SimpleQueue[tuple[str, str]] = SimpleQueue()
        self._lock, self._left = Lock(), Event()
        self._asked: _Asked | None = None
        self._number = 0
        self.idle = False  # in a pause, so that nothing is cut off when somebody takes over

    # --- for the walk, in its thread ----------------------------------------------------------

    def say(self, text: Text) -> None:
        """A line; of several the last in brackets is how a command ended, and those with a prompt are commands."""
        lines = text.in_(self.lang).split("\n")
        if len(lines) == 1:
            self._parts.append(Paragraph(lines[0]))
        elif lines[-1].startswith("["):
            self._parts += [Code(tuple(lines[:-1])), Paragraph(lines[-1].strip("[]"))]
        else:
            self._parts += [Paragraph(lines[0]), Code(tuple(lines[1:]))]

    def show(self, title: str, parts: list[Part]) -> None:
        """A step."""
        self._title = title
        self._parts += parts

    def ask(self, question: Text) -> str:
        """An answer of the walker. LeftError when they leave, do not answer for long, or somebody takes over."""
        asked = choices(question)
        if self.left:
            raise LeftError
        with self._lock:
            self._number += 1
            self._asked = _Asked(self._number, asked)
        told, self._parts = self._parts, []
        try:
            ts = self._posted(told, asked)
            word, shown = self._answers.get(timeout=self._patience)
        except Empty:
            minutes = f"{self._patience / 60:.0f}"
            word, shown = "q", Text(f"nobody answered for {minutes} min", f"{minutes} 分钟内无人回答").in_(self.lang)
        finally:
            with self._lock:
                self._asked = None
        self._mark(ts, self._message(told, asked.text, answer=shown))
        if word == "q":
            self._left.set()
            raise LeftError
        return word

    def rest(self, seconds: float) -> None:
        """Wait between two rounds. LeftError when the walk is left meanwhile."""
        self.flush(leave=True)
        self.idle = True
        try:
            if self._left.wait(seconds):
                raise LeftError
        finally:
            self.idle = False

    def flush(self, leave: bool = False) -> None:
        """Post what was said and not posted yet."""
        told, self._parts = self._parts, []
        if told:
            self._posted(told, Choices(Text(""), ()) if leave else None)

    def call(self, work: Coroutine[Any, Any, T], *, leaves: bool = False, seconds: float | None = SLACK) -> T:
        """The result of `work`, done in the event loop. `leaves`: LeftError as soon as the walk is left."""
        future = asyncio.run_coroutine_threadsafe(work, self._bot.loop)
        if not leaves:
            return future.result(seconds)
        while not future.done():
            if self._left.wait(0.2):
                future.cancel()
                raise LeftError
        return future.result()

    # --- for the event loop -------------------------------------------------------------------

    @property
    def left(self) -> bool:
        """Whether the walk is left, or is to be."""
        return self._left.is_set()

    @property
    def waiting(self) -> bool:
        """Whether it waits for the walker or for time: nothing is under way that would be cut off."""
        return self.idle or self._asked is not None

    def leave(self, why: str) -> None:
        """The walk is to end where it stands."""
        self._left.set()
        self._answers.put(("q", why))

    def hears(self, text: str) -> bool:
        """A message of the walker in the thread; whether it was meant for the walk."""
        with self._lock:
            asked = self._asked
            word = understood(asked.choices, text) if asked is not None else None
            if asked is not None and word is not None:
                self._asked = None  # the next word is about what comes next
                self._answers.put((word, excerpt(text, 80)))
        if word is None and asked is None and " ".join(text.lower().split()) in LEAVE:
            self.leave(excerpt(text, 80))
            return True
        return word is not None

    def pressed(self, number: int, word: str) -> bool:
        """A button of question `number` (0: of a pause); False when that is over."""
        label = _LABELS[word].in_(self.lang) if word in _LABELS else ""
        if number == 0 and word == "q":
            self.leave(label)
            return True
        with self._lock:
            if self._asked is None or self._asked.number != number:
                return False
            self._asked = None
            self._answers.put(("" if word in ("done", "unknown") else word, label))
        return True

    # --- messages -----------------------------------------------------------------------------

    def _message(
        self, told: Sequence[Part], question: Text, buttons: Sequence[rich.Element] = (), answer: str = "", hint: str = "",
    ) -> Rendered:  # fmt: skip
        head = f"#{self._incident}" + (f"  {self._title}" if self._title else "")
        page = Page(self.lang, [span(head, "bold")])
        parts.add(page, told)
        tail = []
        if question.en:
            said = [span(page.cut(question.in_(self.lang), 1_000), "bold")]
            said += [span(f"  → {clean(self.walker.name)}: {page.cut(answer, 200)}")] if answer else []
            said += [span(f"  ({hint})", "italic")] if hint else []
            tail.append(rich.section(*said))
        done = page.done(tail, buttons)
        return replace(done, text=fallback(f"{head}: {question.in_(self.lang)}")) if question.en else done

    def _posted(self, told: Sequence[Part], asked: Choices | None) -> str:
        number = self._number if asked is not None and asked.text.en else 0
        words = (*asked.words, "q") if asked is not None else ()
        buttons = [
            rich.button(f"{ANSWER}.{w}", _LABELS[w].in_(self.lang), self._ticket(number, w), "primary" if not n else "")
            for n, w in enumerate(words)
        ]
        hint = _WRITE.in_(self.lang) if asked is not None and asked.typed else ""
        message = self._message(told, asked.text if asked is not None else Text(""), buttons, hint=hint)
        ts = self.call(self._bot.poster.post(self.place, message))
        if message.overflow:
            self._attach(told)
        return ts

    def _ticket(self, number: int, word: str) -> str:
        data = {"walk": self._walk, "asked": number, "word": word, "incident": self._incident}
        return self._bot.ledger.issue(Ticket(ANSWER, self.place, self.walker.person.id, data))

    def _attach(self, told: Sequence[Part]) -> None:
        from assistant.config import Output
        from assistant.render.sheet import Sheet, show

        text = show(Sheet(self._title, tuple(told)), Output(self.lang, "text", "never"))
        name = f"incident-{self._incident}.txt"
        self.call(self._bot.poster.upload(self.place, name, text.encode("utf-8", "replace"), name))

    def _mark(self, ts: str, message: Rendered) -> None:
        """Show what was answered, without buttons; the walk does not wait for it, nor for why it fails."""

        async def edit() -> None:
            from assistant.slack.post import SlackError

            with suppress(SlackError):
                await self._bot.poster.edit(self.place, ts, message)

        asyncio.run_coroutine_threadsafe(edit(), self._bot.loop)
