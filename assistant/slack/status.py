"""The one message that tells how a turn stands: posted when the turn takes long, edited at most once a second, ended with its outcome.

A command begins a thread, so its message is there at once, stays as the thread's first line, and ends with the verdict; the
answer stands below it. In a thread it is posted only after a second, and becomes the answer itself.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from assistant.slack import cards
from assistant.slack.ledger import Ticket, Turn
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.slack.bot import Asker, Bot
    from assistant.slack.heard import Place
    from assistant.slack.nodes import Waiting
    from assistant.slack.page import Rendered
    from probes.runner import Progress

PATIENCE = 1.0  # seconds without a word, in a thread
_BEGUN = Text("looking ...", "正在查看……")
_BEFORE = Text("waiting: {n} looks at this machine come first", "等待中：该机器上还有 {n} 次查看在前")
_ONE_BEFORE = Text("waiting: one look at this machine comes first", "等待中：该机器上还有 1 次查看在前")
_JOINED = Text("somebody else asked for the same look: sharing it", "已有他人请求同样的查看：共用其结果")
CANCELLED = Text("cancelled: nothing more is run", "已取消：不再运行任何内容")
AGAIN = Text("gpudiag was restarted: asking again ...", "gpudiag 已重启：正在重新提问……")
FAULT = Text(
    "this failed: it is a fault of gpudiag; its log has the details", "出错：这是 gpudiag 的故障，已写入其日志"
)


class Status:
    """Of one turn. All but `progress` and `waits` is called in the event loop."""

    def __init__(self, bot: Bot, asker: Asker, turn: Turn, asked: str, *, root: bool) -> None:
        """`asked`: the question, for the first line. `root`: the message begins a thread."""
        self._bot, self._asker, self._turn, self._asked, self._root = bot, asker, turn, asked, root
        self.place: Place = turn.place
        self.ts = turn.status
        self._line = _BEGUN.in_(asker.lang)
        self._over = False
        self._ticket = ""
        self._task: asyncio.Task[None] | None = None
        self._posting = False  # the message is on its way: it cannot be taken back, only become the answer

    async def begin(self) -> None:
        """A thread's first message stands at once; in a thread nothing is said for a second."""
        if self.ts:  # of before a restart
            self._line = AGAIN.in_(self._asker.lang)
            await self._draw()
        elif self._root:
            await self._post()
            if not self.place.direct:
                self.place = self.place._replace(thread=self.ts)
            self._noted()
        else:
            self._task = asyncio.create_task(self._patient())

    async def _patient(self) -> None:
        await asyncio.sleep(PATIENCE)
        self._posting = True
        await self._post()
        self._noted()

    async def _post(self) -> None:
        self.ts = await self._bot.poster.post(self.place, self._message())

    def _noted(self) -> None:
        self._turn = Turn(self._turn.id, self.place, self._turn.user, self.ts, self._turn.data)
        self._bot.ledger.put(self._turn)

    # --- told from any thread -----------------------------------------------------------------

    def progress(self, progress: Progress) -> None:
        """How far the look is."""
        self._tell(cards.looking_words(progress.done, progress.total, progress.waiting, self._asker.lang))

    def waits(self, waiting: Waiting) -> None:
        """Its turn is not yet."""
        lang = self._asker.lang
        if waiting.joined:
            self._tell(_JOINED.in_(lang))
        elif waiting.before:
            self._tell((_ONE_BEFORE if waiting.before == 1 else _BEFORE).in_(lang).format(n=waiting.before))

    def _tell(self, line: str) -> None:
        self._bot.loop.call_soon_threadsafe(self._told, line)

    def _told(self, line: str) -> None:
        if self._over or line == self._line:
            return
        self._line = line
        if self.ts:
            self._bot.spawn(self._draw())

    async def _draw(self) -> None:
        if not self._over:
            await self._bot.poster.edit(self.place, self.ts, self._message())

    # --- its end ------------------------------------------------------------------------------

    async def end(self, message: Rendered, outcome: str) -> str:
        """The answer: posted below the thread's first message, or in place of this one. Its time stamp."""
        await self._settle()
        if self._root and not self.place.direct:
            ts = await self._bot.poster.post(self.place, message)
            await self._ended(outcome)
            return ts
        if self.ts:
            await self._bot.poster.edit(self.place, self.ts, message)
            return self.ts
        return await self._bot.poster.post(self.place, message)

    async def stop(self, outcome: str) -> None:
        """There is no answer: only this line, where anything stands already."""
        await self._settle()
        if self.ts:
            await self._ended(outcome)

    async def _settle(self) -> None:
        self._over = True
        if self._task is not None:
            if not self._posting:
                self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _ended(self, outcome: str) -> None:
        self._line = outcome
        await self._bot.poster.edit(self.place, self.ts, self._message(over=True))

    def _message(self, over: bool = False) -> Rendered:
        if not self._ticket and not over:
            self._ticket = self._bot.ledger.issue(
                Ticket(cards.CANCEL, self.place, self._asker.person.id, {"turn": self._turn.id})
            )
        who = self._asker.name or self._asker.person.id
        ticket = None if over else lambda _: self._ticket
        return cards.status(who, self._asked, self._line, self._asker.lang, ticket)
