"""What needs a second person, through the real Bolt and slack_sdk: nobody alone, nothing twice, nothing else, nothing too late."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("slack_bolt")

from assistant.rights.approvals import SHORTEST, Approvals
from assistant.rights.fold import State
from assistant.rights.policy import Act
from assistant.rights.refusals import Reason, RightsError
from assistant.slack import second
from assistant.slack.bot import Asker
from assistant.slack.heard import Place
from assistant.slack.post import SlackError
from assistant.slack.words import ToldError
from knowledge.language import Text
from tests import slack_payloads as sent
from tests.slack_bot import Lab, buttons, lab, quiet, words
from tests.slack_lab import Slack
from tests.slack_shapes import Message

POLICY = """
channels = ["C1", "C2"]
[roles.oncall]
users = ["U1", "U2"]
groups = ["S1"]
[roles.lead]
users = ["U6", "U8"]
groups = ["S3"]
[roles.owner]
users = ["U7"]
[grants.resets]
roles = ["oncall"]
run = ["step:*", "test:*"]
nodes = ["gpu-*"]
cost = "heavy"
risk = "disruptive"
privileged = true
approvers = ["lead"]
[grants.web]
roles = ["oncall"]
run = ["step:*"]
nodes = ["web-1"]
cost = "heavy"
risk = "disruptive"
approvers = ["owner"]
[people]
ann = ["U1", "U3"]
"""
RESET = Act("step:gpu-off-bus/reset", "gpu-12", "heavy", "disruptive", True, ("nvidia-smi", "--gpu-reset", "-i", "3"))
WEB = Act("step:stuck/drain", "web-1", "cheap", "disruptive", False, ("scontrol", "update", "node=web-1"))
WHAT, COST = Text("reset GPU 3 of gpu-12", "重置 gpu-12 的 GPU 3"), Text("ends its jobs", "会结束其作业")


@pytest.fixture
def slack() -> Iterator[Slack]:
    with Slack() as slack:
        for user in ("U1", "U2", "U3", "U6", "U7", "U8", "U9"):
            slack.add_user(user, name=user.lower())
        slack.add_user("UG", guest=True)
        slack.add_user("UX", external=True)
        slack.add_user("UB", bot=True)
        slack.add_group("S1", ["U4"])
        slack.add_group("S3", ["U3", "U9", "UG", "UX", "UB"])
        slack.add_user("U4", locale="zh-CN")
        slack.add_channel("C1")
        slack.add_channel("C2")
        yield slack


@dataclass
class Card:
    """A card in its thread, and its buttons as they were while it waited."""

    here: Lab
    message: Message
    numbers: tuple[str, ...]
    by: dict[str, dict[str, Any]]

    async def press(self, kind: str, user: str, *, channel: str = "C1", value: str = "") -> Any:
        """Press one of its buttons; the payload, to be sent again."""
        payload = sent.block_actions(
            f"gpudiag.{kind}", value or self.by[kind]["value"], user=user, channel=channel, message_ts=self.message.ts,
            thread_ts=self.message.thread_ts, response_url=self.here.slack.response_url(channel, user),
        )  # fmt: skip
        await self.here.slack.envelope("interactive", payload)
        return payload

    async def told(self, kind: str, user: str, **more: Any) -> str:
        """Press, and what only the presser is told then."""
        before = len(self.here.whispers(user))
        await self.press(kind, user, **more)
        await self.here.slack.until(lambda: len(self.here.whispers(user)) > before)
        return words(self.here.whispers(user)[-1])

    @property
    def waits(self) -> bool:
        return bool(buttons(self.message, "approve"))

    async def done(self) -> str:
        """What it shows once its buttons are gone."""
        await self.here.slack.until(lambda: not self.waits)
        assert not buttons(self.message, "refuse")
        return words(self.message) + json.dumps(self.message.blocks)

    def states(self) -> list[State]:
        return [self.here.bot.approvals.look(n).state for n in self.numbers]


async def asker(here: Lab, user: str = "U1", thread: str = "") -> Asker:
    said = here.slack.say("reset it", user=user)
    return await here.bot.asker(user, Place(sent.TEAM, "C1", thread or said.ts))


async def ask(here: Lab, user: str = "U1", acts: tuple[Act, ...] = (RESET,), **more: Any) -> Card:
    who = await asker(here, user)
    numbers = await second.ask_second(here.bot, who, acts, WHAT, COST, {"do": "walk"}, **more)
    (message,) = here.said("C1", who.place.thread).values()
    return Card(here, message, numbers, {k: buttons(message, k)[0] for k in ("approve", "refuse")})


async def claim(here: Lab, card: Card, acts: tuple[Act, ...] = (RESET,), user: str = "U1") -> str:
    """Use it; why not, or empty."""
    who = await asker(here, user)
    try:
        await asyncio.to_thread(second.claim, here.bot, who, card.numbers, acts)
    except RightsError as error:
        return error.reason.value
    return ""


def kinds(card: Card) -> list[str]:
    return [r.kind for n in card.numbers for r in card.here.bot.journal.of(n)]


@pytest.mark.slow
async def test_one_asks_another_agrees_it_is_used_once(slack: Slack, tmp_path: Path) -> None:
    async with lab(tmp_path, slack, policy=POLICY) as here:
        card = await ask(here)
        shown = words(card.message)
        for word in (
            "reset GPU 3",
            "gpu-12",
            "disruptive",
            "privileged",
            "ends its jobs",
            "nvidia-smi --gpu-reset -i 3",
            "lead",
            "UTC",
            "weaker",
        ):
            assert word in shown
        named = [e for b in card.message.blocks for p in b["elements"] for e in p.get("elements", [])]
        assert {"type": "user", "user_id": "U1"} in named  # who asked
        users, groups = here.bot.policy().may_approve(["lead"])
        assert {e["user_id"] for e in named if e["type"] == "user"} == {"U1", *users}  # and who may agree is told
        assert {e["usergroup_id"] for e in named if e["type"] == "usergroup"} == set(groups)
        assert await claim(here, card) == Reason.WAITING
        waiting = asyncio.create_task(second.wait(here.bot, card.numbers))
        await card.press("approve", "U8")
        assert await asyncio.wait_for(waiting, 3)  # at once, and not only when the journal is looked at again
        assert "U8" in await card.done()
        assert (
            await claim(here, card, (replace(RESET, argv=("nvidia-smi", "--gpu-reset", "-i", "4")),)) == Reason.CHANGED
        )
        assert await claim(here, card, (replace(RESET, node="gpu-13"),)) == Reason.CHANGED
        assert await claim(here, card, (RESET, RESET)) == await claim(here, card, ()) == Reason.CHANGED
        with pytest.raises(RightsError):
            await asyncio.to_thread(second.claim, here.bot, await asker(here), (), ())
        assert await claim(here, card, user="U2") == Reason.OTHER
        assert await claim(here, card) == ""
        assert await claim(here, card) == Reason.USED
        assert kinds(card) == ["requested", "approved", "used"]
        assert await second.wait(here.bot, card.numbers) is False


async def test_nobody_alone_and_nobody_who_may_not(slack: Slack, tmp_path: Path) -> None:
    async with lab(tmp_path, slack, policy=POLICY) as here:
        card = await ask(here)
        assert "asked for this yourself" in await card.told("approve", "U1")
        assert "asked for this yourself" in await card.told("approve", "U3")  # the same person, and a lead by that id
        assert "no role that may decide" in await card.told("approve", "U2")
        assert "guest" in await card.told("approve", "UG")
        assert "another organisation" in await card.told("approve", "UX")
        assert "only people" in await card.told("approve", "UB")
        assert "no role" in await card.told("refuse", "U2")
        assert card.waits
        assert card.states() == [State.WAITING]
        await here.bot.people.known("U9")  # as the dispatcher knows them for the next minute
        slack.add_group("S3", [])
        assert "no role" in await card.told("approve", "U9")
        await here.bot.people.known("U8")
        slack.users["U8"]["is_restricted"] = True
        assert "you are a guest" in await card.told("approve", "U8")
        await card.press("approve", "U6")
        assert "U6" in await card.done()
        assert kinds(card) == ["requested", "approved"]


async def test_a_right_that_is_lost_between_click_and_run_is_lost(slack: Slack, tmp_path: Path) -> None:
    async with lab(tmp_path, slack, policy=POLICY) as here:
        card = await ask(here, "U4")
        slack.add_group("S1", [])
        assert "may not do so any more" in await card.told("approve", "U9")  # who asked has left the group
        slack.add_group("S1", ["U4"])
        await card.press("approve", "U9")
        assert "同意" in await card.done()  # in the language of who asked
        slack.add_group("S3", [])
        assert await claim(here, card, user="U4") == Reason.LOST
        slack.add_group("S3", ["U9"])
        slack.users["U9"]["is_restricted"] = True
        assert await claim(here, card, user="U4") == Reason.LOST
        slack.users["U9"] |= {"is_restricted": False, "deleted": True}
        assert await claim(here, card, user="U4") == Reason.LOST
        slack.users["U9"]["deleted"] = False
        slack.users["U4"]["deleted"] = True
        who = replace_person(await asker(here, "U1"), "U4")
        with pytest.raises(RightsError) as caught:
            await asyncio.to_thread(second.claim, here.bot, who, card.numbers, (RESET,))
        assert caught.value.reason is Reason.REQUESTER
        slack.users["U4"]["deleted"] = False
        (tmp_path / "policy.toml").write_text(POLICY.replace('approvers = ["lead"]', 'approvers = ["owner"]'))
        assert await claim(here, card, user="U4") == Reason.LOST
        (tmp_path / "policy.toml").write_text(POLICY)
        slack.fail("users.info", "internal_error")
        with pytest.raises(SlackError):  # what Slack cannot tell allows nothing
            await asyncio.to_thread(second.claim, here.bot, who, card.numbers, (RESET,))
        assert "used" not in kinds(card)
        assert await claim(here, card, user="U4") == ""


def replace_person(who: Asker, user: str) -> Asker:
    return who._replace(person=replace(who.person, id=user))


async def test_refused_or_taken_back_stays_so(slack: Slack, tmp_path: Path) -> None:
    async with lab(tmp_path, slack, policy=POLICY) as here:
        for user in ("U8", "U1"):  # a lead, and who asked
            card = await ask(here)
            waiting = asyncio.create_task(second.wait(here.bot, card.numbers))
            await card.press("refuse", user)
            assert await asyncio.wait_for(waiting, 3) is False
            assert "Refused by" in (shown := await card.done())
            assert user in shown
            assert "refused" in (await card.told("approve", "U9")).lower()
            assert await claim(here, card) == Reason.REFUSED
            assert kinds(card) == ["requested", "refused"]


async def test_a_replay_and_two_at_the_same_time_agree_once(slack: Slack, tmp_path: Path) -> None:
    async with lab(tmp_path, slack, policy=POLICY) as here:
        card = await ask(here)
        payload = await card.press("approve", "U8")
        for _ in range(3):
            await slack.envelope("interactive", payload)
        await card.done()
        await quiet()
        assert kinds(card) == ["requested", "approved"]
        assert not here.whispers("U8")
        other = await ask(here)
        await asyncio.gather(other.press("approve", "U8"), other.press("approve", "U9"))
        await other.done()
        await slack.until(lambda: len(here.whispers("U8")) + len(here.whispers("U9")) == 1)
        assert kinds(other) == ["requested", "approved"]
        assert await claim(here, other) == ""


async def test_a_button_is_good_for_nothing_else(slack: Slack, tmp_path: Path) -> None:
    async with lab(tmp_path, slack, policy=POLICY) as here:
        card, other = await ask(here), await ask(here)
        assert "no longer valid" in await card.told("approve", "U8", channel="C2")
        assert "no longer valid" in await card.told("approve", "U8", value=card.by["refuse"]["value"])
        assert "no longer valid" in await card.told("approve", "U8", value="made-up")
        assert "no longer valid" in await card.told("approve", "U8", value=card.numbers[0])
        assert "no longer valid" in await card.told("agree", "U8", value=card.by["approve"]["value"])
        assert card.states() == other.states() == [State.WAITING]
        values = [c.by[k]["value"] for c in (card, other) for k in ("approve", "refuse")]
        assert len(set(values)) == 4
        # (what is only a few letters long stands in a random value now and then)
        assert all(len(v) > 20 and v not in card.numbers + other.numbers for v in values)
        assert not any(told in v for v in values for told in (RESET.what, RESET.node, *RESET.argv[:2]))
        assert not any(n in json.dumps(card.message.blocks) for n in card.numbers)


async def test_a_card_of_several_needs_all_of_them(slack: Slack, tmp_path: Path) -> None:
    async with lab(tmp_path, slack, policy=POLICY) as here:
        card = await ask(here, acts=(RESET, WEB))
        assert "lead, owner" in words(card.message)
        assert "no role that may decide" in await card.told("approve", "U8")  # the second one is not theirs
        assert card.waits
        assert card.states() == [State.APPROVED, State.WAITING]
        assert await claim(here, card, (RESET, WEB)) == Reason.WAITING  # the first is used up by that: nothing was run
        again = await ask(here, acts=(WEB,))
        await again.press("approve", "U7")
        assert "U7" in await again.done()


async def test_after_a_restart_old_cards_work(slack: Slack, tmp_path: Path) -> None:
    async with lab(tmp_path, slack, policy=POLICY) as here:
        card, half = await ask(here), await ask(here)
        await asyncio.to_thread(here.bot.approvals.approve, half.numbers[0], (await here.bot.people.known("U8")).person)
    async with lab(tmp_path, slack, policy=POLICY) as again:
        card.here = half.here = again
        await card.press("approve", "U8")
        assert "U8" in await card.done()
        assert await claim(again, card) == ""
        await half.press("approve", "U9")  # the first press did not get to the end of the card
        shown = await half.done()
        assert "U8" in shown
        assert "U9" not in shown
        assert kinds(half) == ["requested", "approved"]


async def test_time_ends_it_and_takes_the_buttons_away(slack: Slack, tmp_path: Path) -> None:
    async with lab(tmp_path, slack, policy=POLICY) as here:
        bot, behind = here.bot, SHORTEST - 3 * 10**8
        late = [behind]  # ns that the clock stands back: the request ends 0.3 s after it was made
        bot.approvals = Approvals(bot.journal, bot.policy, lambda: time.time_ns() - late[0], people=bot.people.now)
        card = await ask(here, lasts=SHORTEST)
        waiting = asyncio.create_task(second.wait(bot, card.numbers))
        late[0] = 0
        assert "Nobody agreed in time" in await card.done()  # by itself
        assert await asyncio.wait_for(waiting, 3) is False
        assert "time for this is over" in await card.told("approve", "U8")
        assert await claim(here, card) == Reason.EXPIRED
        other = await ask(here)
        assert other.states() == [State.WAITING]
        late[0] = -3_600 * 10**9
        assert "time for this is over" in await other.told("approve", "U8")  # where the timer was lost in a restart
        assert "Nobody agreed in time" in await other.done()
        late[0] = 0
        assert await claim(here, other) == Reason.EXPIRED  # a clock that is set back revives nothing
        assert kinds(other) == ["requested", "expired"]


async def test_what_cannot_be_asked_for_leaves_nothing_behind(slack: Slack, tmp_path: Path) -> None:
    async with lab(tmp_path, slack, policy=POLICY) as here:
        who = await asker(here)
        safe = replace(RESET, risk="safe", privileged=False)
        destructive = replace(RESET, risk="destructive")
        for acts, reason in (((RESET, destructive), Reason.DENIED), ((RESET, safe), Reason.ALONE)):
            with pytest.raises(RightsError) as caught:
                await second.ask_second(here.bot, who, acts, WHAT, COST, {})
            assert caught.value.reason is reason
        with pytest.raises(ToldError):  # nobody agrees to what cannot be shown
            await second.ask_second(here.bot, who, (replace(RESET, argv=("echo", "x" * 3_000)),), WHAT, COST, {})
        slack.fail("chat.postMessage", "is_archived")
        with pytest.raises(SlackError):
            await second.ask_second(here.bot, who, (RESET,), WHAT, COST, {})
        slack.users["U1"]["deleted"] = True  # since the dispatcher looked
        with pytest.raises(SlackError):
            await second.ask_second(here.bot, who, (RESET,), WHAT, COST, {})
        assert not here.said("C1", who.place.thread)
        asked = [r for r in here.bot.journal.records() if r.kind == "requested"]
        assert len(asked) == 3
        assert {here.bot.approvals.look(r.subject).state for r in asked} == {State.REFUSED}


async def test_when_slack_cannot_tell_who_presses_nothing_is_agreed_to(slack: Slack, tmp_path: Path) -> None:
    async with lab(tmp_path, slack, policy=POLICY) as here:
        card = await ask(here)
        await here.bot.people.known("U8")  # the dispatcher knows them; the press asks anew
        slack.fail("usergroups.users.list", "fatal_error", times=2)
        assert "Slack" in await card.told("approve", "U8")
        assert card.waits
        assert kinds(card) == ["requested"]
        await card.press("approve", "U8")
        await card.done()


async def test_a_hostile_command_is_shown_as_it_is_in_one_line(slack: Slack, tmp_path: Path) -> None:
    act = replace(RESET, argv=("sh", "-c", "true\n\nsafe: <!channel> *bold* `x`\u202e", "--token", "hunter2"))
    async with lab(tmp_path, slack, policy=POLICY) as here:
        card = await ask(here, acts=(act,))
        shown = words(card.message)
        assert r"'true\n\nsafe: <!channel> *bold* `x`'" in shown
        assert "hunter2" not in shown
        assert "mrkdwn" not in json.dumps(card.message.blocks)
        await card.press("approve", "U8")
        await card.done()
        assert await claim(here, card, (act,)) == ""
