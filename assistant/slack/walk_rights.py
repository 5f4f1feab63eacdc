"""What a walk from a chat may do: each command is ruled by the policy, each look goes through the bot's own eyes.

The policy and the people are asked anew for every command, and once more right before it is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assistant.incidents.looking import Sight
from assistant.incidents.walk_parts import LeftError, Permit
from assistant.rights.model import Act, Decision, Ruling
from assistant.rights.model import Sight as Seeing
from assistant.rights.refusals import RightsError
from assistant.slack.post import SlackError
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.actions.order import Order
    from assistant.machine import Look
    from assistant.slack.bot import Asker, Bot
    from assistant.slack.eyes import SlackEyes
    from assistant.slack.walk_talk import ThreadTalk
    from probes.runner import ProbeResult

# A step's command is no probe, and has no cost of its own: `gpudiag config rights` rules steps by the same word.
COST = "cheap"
_NOT_AGREED = Text(
    "Not run: nobody else agreed to it in time, or it was refused.", "未运行：无人及时同意，或已被拒绝。"
)
_WITHHELD = Text(
    "The command's output is not shown here: your roles may not see other users' names and command lines.",
    "此处不显示命令输出：您的角色不可查看其他用户的名称与命令行。",
)
_SLACK = Text("Not run: Slack does not tell who you are now.", "未运行：目前无法从 Slack 确认您的身份。")


def act_of(order: Order) -> Act:
    """What is ruled about: the step on its machine with every argument."""
    return Act(order.what, order.node, COST, str(order.risk), False, tuple(order.argv))


def sees_all(asker: Asker) -> bool:
    """Whether what a command prints may be shown to them: nobody can tell whose names stand in it."""
    return {Seeing.USERS, Seeing.COMMAND_LINES} <= asker.sights


class PolicyPermit(Permit):
    """The policy's word, and the second person's, about the commands of one walk. For the walk's own thread."""

    def __init__(self, bot: Bot, talk: ThreadTalk) -> None:
        self._bot, self._talk = bot, talk
        self._numbers: tuple[str, ...] = ()  # approvals for the command that is next

    def ask(self, order: Order) -> Text | None:
        """Rule about it; where it takes two, wait for the second person."""
        self._numbers = ()
        try:
            asker = self._now()
        except SlackError:
            return _SLACK
        ruling = self._ruled(asker, order)
        if ruling.decision is not Decision.SECOND_PERSON:
            return ruling.why if ruling.decision is Decision.DENIED else None
        return self._second(asker, order, ruling)

    def claim(self, order: Order) -> Text | None:
        """Once more, right before it is run; an approval is used up here."""
        from assistant.slack import second

        numbers, self._numbers = self._numbers, ()
        try:
            asker = self._now()
            ruling = self._ruled(asker, order)
            if ruling.decision is Decision.DENIED:
                return ruling.why
            if numbers:
                second.claim(self._bot, asker, numbers, (act_of(order),))
            elif ruling.decision is not Decision.ALLOWED:
                return _NOT_AGREED
        except SlackError:
            return _SLACK
        except RightsError as error:
            return error.said
        return None

    def output(self, text: str) -> str:
        """Without secrets, and for who may see other users only."""
        from probes.collectors.processes import masked_prose

        if not text:
            return text
        return masked_prose(text) if sees_all(self._talk.walker) else _WITHHELD.in_(self._talk.lang)

    def _now(self) -> Asker:
        """The walker as Slack and the policy know them now. SlackError."""
        walker = self._talk.walker
        known = self._talk.call(self._bot.people.known(walker.person.id, anew=True))
        return walker._replace(person=known.person)

    def _ruled(self, asker: Asker, order: Order) -> Ruling:
        return self._bot.policy().decide(asker.person, act_of(order), asker.place.channel)

    def _second(self, asker: Asker, order: Order, ruling: Ruling) -> Text | None:
        from assistant.slack import second

        self._talk.say(ruling.why)
        self._talk.flush()
        what = Text(f"step {order.runbook}/{order.step} on {order.node}",
                    f"在 {order.node} 上执行步骤 {order.runbook}/{order.step}")  # fmt: skip
        cost = Text("it stops or blocks work", "会中断或推迟工作")
        if order.before:
            cost = Text(f"{cost.en}. {order.before.en}", f"{cost.in_('zh')}。{order.before.in_('zh')}")
        try:
            numbers = self._talk.call(second.ask_second(self._bot, asker, (act_of(order),), what, cost, {"do": "walk"}))
        except RightsError as error:
            return error.said
        try:
            agreed = self._talk.call(second.wait(self._bot, numbers), leaves=True)
        except LeftError:
            self._take_back(asker, numbers)
            raise
        self._numbers = numbers if agreed else ()
        return None if agreed else _NOT_AGREED

    def _take_back(self, asker: Asker, numbers: Sequence[str]) -> None:
        """Nobody waits for it any more: it must not be agreed to later."""
        for number in numbers:
            try:
                self._bot.approvals.refuse(number, asker.person)
            except RightsError:  # somebody was faster, which is as good: only the walk would have used it
                continue


class Eyed(Sight):
    """What the walker may see of the machine: probe by probe, through the policy, the queue of the machine and the journal."""

    def __init__(self, bot: Bot, talk: ThreadTalk, node: str, host: str) -> None:
        """`host`: as it is called from here; empty: this machine."""
        super().__init__(self._probed)
        self._bot, self._talk, self._node, self._host = bot, talk, node, host

    def _probed(self, probes: Sequence[str]) -> Look:
        from assistant.machine import Look

        found = [self._one(name) for name in probes]
        as_of = max((at for _, at in found if at is not None), default=None)
        return Look(self._node, tuple(result for result, _ in found), (), as_of, None)

    def _one(self, name: str) -> tuple[ProbeResult, int | None]:
        from assistant.session.state import Origin
        from assistant.session.steps import Collect, Collected
        from assistant.slack import gate
        from knowledge.observation import Status
        from probes.runner import ProbeResult

        try:
            event = self._eyes().do(Collect(Origin(host=self._host), (name,)))
        except gate.DeniedError as error:
            self._talk.say(error.why)
            denied = gate.denials({name: Ruling(Decision.DENIED, error.why, "")}, self._node)
            return ProbeResult(name, denied, Status.DENIED, error.why.en), None
        assert isinstance(event, Collected)  # it was asked to collect
        return ProbeResult(name, event.seen.observations, Status.OK), event.seen.as_of

    def _eyes(self) -> SlackEyes:
        from assistant.slack.eyes import Ears, SlackEyes

        def check() -> None:
            if self._talk.left:
                raise LeftError

        output = self._bot.settings.output._replace(lang=self._talk.lang, format="text", color="never")
        ears = Ears(lambda _: None, lambda _: None, check)
        settings = self._bot.settings._replace(output=output)
        return SlackEyes(self._bot, self._talk.walker, settings, self._bot.turns.nodes, ears)
