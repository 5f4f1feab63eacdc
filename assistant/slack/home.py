"""The app's home page: open incidents with a button each, what can be asked, and what the viewer may have run."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from assistant.incidents import pages
from assistant.rights import words as rights_words
from assistant.slack import cards, incident_pages, rich
from assistant.slack.budget import Block, cut
from assistant.slack.ledger import Ticket
from assistant.slack.rich import Element, span
from assistant.store.location import StoreError
from knowledge.errors import GpudiagError
from knowledge.language import Text
from knowledge.text import clean

if TYPE_CHECKING:
    from assistant.incidents.fold import Incident
    from assistant.rights.policy import Policy
    from assistant.slack.bot import Asker, Bot

SHOWN = 20  # incidents: with a row of buttons each 40 blocks of the 100 that a page may have
GRANTS = 12
VIEWERS = 200  # people whose page is kept up to date while the bot runs; everybody else's is made when they open it
PAUSE = 2.0  # s that changes gather before pages are published anew
NAME, LINE = 300, 500  # characters
SHOW = "incident_show"  # of the home page
_LOG = logging.getLogger(__name__)
_BUTTONS = {SHOW: Text("Show", "查看"), cards.NOTE: Text("Note", "备注"), cards.WALK: Text("Walk", "按手册处理")}
_ASK = (
    ("/gpudiag check gpu-12", Text("is it well, and what to do", "是否健康，以及如何处理")),
    ("/gpudiag why pid 4242 on gpu-12", Text("why a job is slow or hangs", "作业为何缓慢或挂起")),
    ("/gpudiag explain xid 79", Text("what a code means", "代码的含义")),
    ("/gpudiag incident", Text("incidents: open, note, walk, report", "事件：开立、备注、处理、报告")),
    ("/gpudiag help", Text("all that can be said", "所有可用的说法")),
)  # fmt: skip
_PASTE = Text("Paste lines of a log here or upload a file: it is diagnosed.", "在此粘贴日志行或上传文件即可诊断。")


def view(
    found: Sequence[Incident] | Text, policy: Policy, asker: Asker, issue: Callable[[Ticket], str], now: int
) -> dict[str, Any]:
    """The page. `found`: open incidents, or why they cannot be read; `issue` gives a ticket's id; `now`: ns UTC. Pure but for that."""
    lang = asker.lang
    blocks = [_head(Text("Incidents", "事件").in_(lang))]
    if isinstance(found, Text):
        blocks.append(_lines([[span(cut(found.in_(lang), LINE))]]))
    elif not found:
        blocks.append(_lines([[span(Text("No incident is open.", "没有未关闭的事件。").in_(lang))]]))
    else:
        for one in found[:SHOWN]:
            blocks += _incident(one, asker, issue, now)
        if rest := len(found) - SHOWN:
            more = Text(f"{rest} more: /gpudiag incident", f"另有 {rest} 个：/gpudiag incident")
            blocks += [_lines([[span(more.in_(lang), "italic")]])] if rest > 0 else []
    asking = [[span(said, "code"), span(f"  {meaning.in_(lang)}")] for said, meaning in _ASK]
    blocks += [
        {"type": "divider"}, _head(Text("What to ask", "可以问什么").in_(lang)), _lines([*asking, [span(_PASTE.in_(lang))]]),
        {"type": "divider"}, _head(Text("What you may have run", "您可运行的操作").in_(lang)), *_rights(policy, asker),
    ]  # fmt: skip
    return {"type": "home", "blocks": blocks}


def _head(text: str) -> Block:
    return {"type": "header", "text": {"type": "plain_text", "text": text, "emoji": False}}


def _lines(lines: Sequence[Sequence[Element]]) -> Block:
    return rich.block(rich.bullets(lines) if len(lines) > 1 else rich.section(*lines[0]))


def _incident(one: Incident, asker: Asker, issue: Callable[[Ticket], str], now: int) -> list[Block]:
    lang = asker.lang
    head = span(cut(pages.heading(one, lang), NAME), "bold")
    said = rich.section(head, span("\n" + cut(incident_pages.line(one, lang, now), LINE)))

    def button(kind: str) -> Element:
        ticket = Ticket(kind, asker.place, asker.person.id, {"incident": one.number})
        return rich.button(kind, _BUTTONS[kind].in_(lang), issue(ticket))

    kinds = (SHOW, cards.NOTE, *((cards.WALK,) if one.runbooks else ()))
    return [rich.block(said), *rich.actions([button(k) for k in kinds])]


def _rights(policy: Policy, asker: Asker) -> list[Block]:
    """The viewer's roles, and what each grant of theirs gives."""
    lang = asker.lang
    roles = sorted(policy.roles_of(asker.person))
    if not roles:
        none = Text(
            "You hold no role here, so nothing: ask whoever keeps the policy file.",
            "您没有任何角色，因此不可运行：请联系策略文件的维护者。",
        )
        return [_lines([[span(none.in_(lang))]])]
    told = [span(Text("your roles: ", "您的角色：").in_(lang), "bold"), span(cut(", ".join(roles), LINE))]
    own = [g for g in policy.grants if not g.roles.isdisjoint(roles)]
    lines: list[list[Element]] = []
    for g in own[:GRANTS]:
        what = clean(Text(", ", "、").in_(lang).join(g.run.words))
        where = clean(", ".join(g.nodes.words))
        cost, risk = rights_words.COST[g.cost].in_(lang), rights_words.RISK[g.risk].in_(lang)
        two = (
            Text("with a second person where it is not safe", "非安全操作须有第二人同意").in_(lang)
            if g.approvers
            else ""
        )
        rest = " · ".join(w for w in (where, cost, risk, two) if w)
        lines.append([span(cut(what, NAME), "code"), span("  " + cut(rest, NAME))])
    out = [rich.block(rich.section(*told))]
    if lines:
        out.append(_lines(lines))
    if len(own) > GRANTS:
        out.append(
            _lines(
                [
                    [
                        span(
                            Text(f"{len(own) - GRANTS} more grants", f"另有 {len(own) - GRANTS} 项授权").in_(lang),
                            "italic",
                        )
                    ]
                ]
            )
        )
    return out


class Homes:
    """Whose page was opened since the bot began, so that it is kept up to date."""

    def __init__(self, bot: Bot, pause: float = PAUSE) -> None:
        self._bot, self._pause = bot, pause
        self._viewers: OrderedDict[str, Asker] = OrderedDict()
        self._due: asyncio.Task[Any] | None = None

    async def draw(self, asker: Asker) -> None:
        """Publish the page of one person. SlackError."""
        self._viewers[asker.person.id] = asker
        self._viewers.move_to_end(asker.person.id)
        while len(self._viewers) > VIEWERS:
            self._viewers.popitem(last=False)
        found: Sequence[Incident] | Text
        try:
            found = await asyncio.to_thread(self._bot.book().incidents, False)
        except StoreError as error:
            found = error.said
        await self._bot.poster.publish(
            asker.person.id, view(found, self._bot.policy(), asker, self._bot.ledger.issue, time.time_ns())
        )

    def refresh(self) -> None:
        """An incident has changed: soon, every page that was opened shows it."""
        if self._viewers and (self._due is None or self._due.done()):
            self._due = self._bot.spawn(self._redrawn())

    async def _redrawn(self) -> None:
        await asyncio.sleep(self._pause)
        for user, asker in list(self._viewers.items()):
            try:
                await self.draw(await self._bot.asker(user, asker.place))
            except GpudiagError as error:  # one page less: it is made anew when it is opened
                self._viewers.pop(user, None)
                _LOG.warning("home page of %s: %s", user, error)
