"""What needs a second person: asked for in the thread, agreed to by somebody else, used once.

The card carries a ticket that tells nothing. Whether a press counts is decided by the policy at that moment, by who presses as
Slack knows them at that moment, and by the records of the journal: so it works after a restart, and nothing that is kept here
could make it count.
"""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from assistant.render.labels import colon
from assistant.rights import words
from assistant.rights.approvals import LASTS
from assistant.rights.fold import SECOND, Approval, State
from assistant.rights.refusals import Reason, refusal
from assistant.slack import parts, rich
from assistant.slack.heard import Place
from assistant.slack.ledger import Ticket
from assistant.slack.page import Page, Rendered
from assistant.slack.rich import Element, span
from assistant.slack.words import ToldError
from assistant.store.location import StoreError
from knowledge.errors import GpudiagError
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.rights.model import Act
    from assistant.slack.bot import Asker, Bot

APPROVE, REFUSE = "approve", "refuse"
KIND = "approval"  # of a card's own ticket, which nobody is given: it is spent by the press that ends the card
PROSE = 600  # characters
MENTIONS = 10  # people, and user groups, who are told of a card by name
COMMANDS = 2_400  # of all commands of a card: nobody agrees to what cannot be shown whole
LOOK = 5.0  # s between two looks at the journal: another surface may have answered
_BUTTONS = {APPROVE: Text("Approve", "同意"), REFUSE: Text("Refuse", "拒绝")}
_TITLE = Text("A second person has to agree", "需要第二人同意")
_ASKS = Text("asked for by", "请求者")
_ON = Text("machine", "机器")
_COST = Text("cost", "代价")
_RISK = Text("risk", "风险")
_WHO = Text("may agree", "可同意者")
_UNTIL = Text("until", "有效期至")
_WEAKER = Text(
    "Agreeing here proves that you hold this account, which is weaker than a login on the machine: press only what you were told of.",
    "在此同意只能证明您持有该账号，弱于登录机器本身：仅在确知缘由时点击。",
)
_LONG = Text(
    "The command is too long to be shown whole, so nobody can agree to it here.",
    "命令过长，无法完整显示，因此无法在此同意。",
)
_PRIVILEGED = Text("privileged", "需要特权")
_ENDS = {
    State.APPROVED: Text("Agreed to by", "已同意"), State.USED: Text("Agreed to by", "已同意"),
    State.REFUSED: Text("Refused by", "已拒绝"), State.EXPIRED: Text("Nobody agreed in time: nothing was run.", "无人及时同意：未运行任何操作。"),
}  # fmt: skip
_signals: dict[str, asyncio.Event] = {}  # by number of an approval: somebody has pressed


class Card(NamedTuple):
    """What the ticket of a card holds."""

    numbers: tuple[str, ...]
    what: Text
    cost: Text
    approvers: tuple[str, ...]  # roles
    lang: str
    then: Mapping[str, Any]
    ticket: str = ""  # the card's own

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Card:
        """From the ticket of it."""
        what, cost = Text(*data["what"]), Text(*data["cost"])
        return cls(
            tuple(data["numbers"]), what, cost, tuple(data["approvers"]), data["lang"], data["then"], data["ticket"]
        )

    @property
    def data(self) -> dict[str, Any]:
        """As JSON."""
        what, cost = [self.what.en, self.what.zh], [self.cost.en, self.cost.zh]
        return {"numbers": list(self.numbers), "what": what, "cost": cost, "approvers": list(self.approvers),
                "lang": self.lang, "then": dict(self.then), "ticket": self.ticket}  # fmt: skip


async def ask_second(
    bot: Bot, asker: Asker, acts: Sequence[Act], what: Text, cost: Text, then: Mapping[str, Any], *, lasts: int = LASTS
) -> tuple[str, ...]:  # fmt: skip
    """Ask, in the asker's thread, for somebody who agrees to all of `acts`. The numbers of the approvals, in order of the acts.

    `then`: JSON; with ``do`` = ``turn`` the turn goes on once it is agreed to. RightsError when the policy denies one of them, or
    it needs nobody else; SlackError; StoreError: then nothing was asked for. `lasts`: ns.
    """
    if not acts:
        raise ValueError("nothing to agree to")
    if sum(len(_command(act.argv)) for act in acts) > COMMANDS:
        raise ToldError(_LONG)
    person = (await bot.people.known(asker.person.id, anew=True)).person
    asked: list[Approval] = []
    try:
        for act in acts:
            made = await asyncio.to_thread(bot.approvals.request, person, act, asker.place.channel, lasts=lasts)
            asked.append(made)
        policy = bot.policy()
        roles = sorted({r for act in acts for r in policy.decide(person, act, asker.place.channel).approvers})
        own = bot.ledger.issue(Ticket(KIND, asker.place, person.id))
        card = Card(tuple(a.id for a in asked), what, cost, tuple(roles), asker.lang, then, own)
        tickets = {k: bot.ledger.issue(Ticket(k, asker.place, person.id, card.data)) for k in (APPROVE, REFUSE)}
        ts = await bot.poster.post(asker.place, waiting(card, asked, tickets, policy.may_approve(roles)))
    except (GpudiagError, StoreError):
        for approval in asked:  # nobody could answer: it stands for nothing
            with suppress(GpudiagError, StoreError):
                await asyncio.to_thread(bot.approvals.refuse, approval.id, person)
        raise
    bot.spawn(_over(bot, asker.place, ts, card, min(a.expires for a in asked)))
    return card.numbers


async def wait(bot: Bot, numbers: Sequence[str]) -> bool:
    """Whether all are agreed to; False as soon as one was refused, has expired, or was used. Forgotten when the bot is stopped."""
    signals = [_signals.setdefault(n, asyncio.Event()) for n in numbers]
    try:
        while True:
            for signal in signals:
                signal.clear()
            states = [(await asyncio.to_thread(bot.approvals.look, n)).state for n in numbers]
            if all(s is State.APPROVED for s in states):
                return bool(states)
            if any(s.over for s in states):
                return False
            pressed = [asyncio.create_task(s.wait()) for s in signals]
            await asyncio.wait(pressed, timeout=LOOK, return_when=asyncio.FIRST_COMPLETED)
            for task in pressed:
                task.cancel()
    finally:
        for number in numbers:
            _signals.pop(number, None)


def tell(numbers: Sequence[str]) -> None:
    """Somebody has pressed: who waits looks now."""
    for number in numbers:
        if (signal := _signals.get(number)) is not None:
            signal.set()


def claim(bot: Bot, asker: Asker, numbers: Sequence[str], acts: Sequence[Act]) -> None:
    """Use the approvals for exactly these acts, right before the intent. For worker threads. RightsError: nothing may be run.

    The asker is looked up anew, and so is whoever agreed.
    """
    if not acts or len(numbers) != len(acts):
        raise refusal(Reason.CHANGED)
    person = bot.people.now(asker.person.id)
    if person is None:
        raise refusal(Reason.REQUESTER)
    for number, act in zip(numbers, acts, strict=True):
        bot.approvals.claim(number, act, person)


# --- the card ---------------------------------------------------------------------------------------


def waiting(
    card: Card,
    asked: Sequence[Approval],
    tickets: Mapping[str, str],
    may: tuple[Sequence[str], Sequence[str]] = ((), ()),
) -> Rendered:
    """The card while it waits. `may`: ids of the users and user groups who may agree: Slack tells them."""
    page = _page(card, asked)
    until = min(a.expires for a in asked)
    who = _field(page, _WHO, ", ".join(card.approvers))
    told = [e for user in may[0] if user != asked[0].requester for e in _person(user)][: 2 * MENTIONS]
    told += [e for group in may[1][:MENTIONS] for e in ({"type": "usergroup", "usergroup_id": group}, span(" "))]
    page.add([*who, _section(*told)] if who and told else who)
    page.add(_field(page, _UNTIL, moment(until)))
    page.add(rich.section(span(_WEAKER.in_(card.lang), "italic")))
    return page.done((), [
        rich.button(APPROVE, _BUTTONS[APPROVE].in_(card.lang), tickets[APPROVE], "primary"),
        rich.button(REFUSE, _BUTTONS[REFUSE].in_(card.lang), tickets[REFUSE], "danger"),
    ])  # fmt: skip


def answered(card: Card, asked: Sequence[Approval], state: State, who: Sequence[str] = ()) -> Rendered:
    """The card once it is answered: by whom (ids), and when. No buttons."""
    page = _page(card, asked)
    people = [e for w in who for e in _person(w)]
    page.add([_section(span(f"\n{_ENDS[state].in_(card.lang)} ", "bold"), *people, span(moment(time.time_ns())))])
    return page.done()


def _section(*elements: Element) -> Element:
    return {"type": "rich_text_section", "elements": list(elements)}


def moment(ns: int) -> str:
    """A time (ns UTC) as it stands on a card."""
    return f"{datetime.fromtimestamp(ns // SECOND, UTC):%Y-%m-%d %H:%M} UTC"


def _page(card: Card, asked: Sequence[Approval]) -> Page:
    lang, first = card.lang, asked[0]
    page = Page(lang, [span(f"{_TITLE.in_(lang)}{colon(lang)}", "bold"), span(card.what.in_(lang), "bold")])
    lead = span(f"{_ASKS.in_(lang)}{colon(lang)}", "bold")
    page.add([_section(lead, *_person(first.requester), span("\n"))])
    page.add(_field(page, _ON, ", ".join(dict.fromkeys(a.act.node for a in asked))))
    risks = dict.fromkeys(words.RISK[a.act.risk].in_(lang) for a in asked if a.act.risk in words.RISK)
    risks |= dict.fromkeys(_PRIVILEGED.in_(lang) for a in asked if a.act.privileged)
    page.add(_field(page, _RISK, ("，" if lang == "zh" else ", ").join(risks)))
    page.add(_field(page, _COST, card.cost.in_(lang)))
    parts.code(page, [_command(a.shown) or a.act.what for a in asked])
    return page


def _command(argv: Sequence[str]) -> str:
    """A command line in one line, in which the arguments can be told apart."""
    return shlex.join(argv).replace("\n", "\\n").replace("\r", "\\r")


def _field(page: Page, name: Text, value: str) -> list[Element]:
    if not value:
        return []
    lead = span(f"{name.in_(page.lang)}{colon(page.lang)}", "bold")
    return rich.section(lead, span(f"{page.cut(value, PROSE)}\n"))


def _person(user: str) -> list[Element]:
    """Somebody by their id: Slack shows whose it is, whatever they call themselves."""
    return [{"type": "user", "user_id": user}, span(" ")] if user else []


async def _over(bot: Bot, place: Place, ts: str, card: Card, at: int) -> None:
    """Take the buttons away when the time is over. After a restart the next press does."""
    await asyncio.sleep(max(0.0, (at - time.time_ns()) / SECOND) + 0.5)
    try:
        asked = [await asyncio.to_thread(bot.approvals.look, n) for n in card.numbers]
        if any(a.state is State.EXPIRED for a in asked) and bot.ledger.spend(card.ticket) is not None:
            tell(card.numbers)
            await bot.poster.edit(place, ts, answered(card, asked, State.EXPIRED))
    except (
        GpudiagError,
        StoreError,
    ):  # the journal or Slack is away: a press finds out, and nothing is run without the journal
        return
