"""Who somebody is, by the real client against our Slack: what Slack does not say counts against them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

pytest.importorskip("slack_sdk")
pytest.importorskip("aiohttp")

from slack_sdk.web.async_client import AsyncWebClient

from assistant.rights.policy import Person, Policy
from assistant.slack.people import People
from assistant.slack.post import SlackError
from tests.assistant.rights.rights_lab import policy
from tests.slack_lab import Slack


@pytest.fixture
def slack() -> Iterator[Slack]:
    with Slack() as slack:
        slack.add_user("U1", name="Ann\u202e <!channel>", locale="zh-CN", zone="Asia/Shanghai")
        slack.add_user("U2", guest=True)
        slack.add_user("U3", external=True)
        slack.add_user("U4", bot=True)
        slack.add_user("U5", deleted=True)
        slack.add_group("S1", ["U1", "U2"])
        slack.add_group("S9", ["U1"])  # the policy does not name it
        yield slack


def people(slack: Slack, lasts: float = 60.0) -> People:
    return People(AsyncWebClient(token=slack.bot_token, base_url=slack.base_url), policy, lasts)


def calls(slack: Slack, method: str) -> int:
    return sum(c.method == method for c in slack.calls)


async def refused(who: People, user: str) -> str:
    with pytest.raises(SlackError) as caught:
        await who.known(user)
    return caught.value.code


async def test_what_slack_says_of_people(slack: Slack) -> None:
    who = people(slack)
    ann = await who.known("U1")
    assert ann.person == Person("U1", frozenset({"S1"}))  # S3 of the policy does not exist: nobody is in it
    assert (ann.lang, ann.name, ann.zone) == ("zh", "Ann <!channel>", "Asia/Shanghai")
    assert (await who.known("U2")).person == Person("U2", frozenset({"S1"}), guest=True)
    assert (await who.known("U3")).person == Person("U3", external=True)
    assert (await who.known("U4")).person.bot
    assert await refused(who, "U5") == "account_inactive"
    assert await refused(who, "U6") == "user_not_found"
    assert await refused(who, "../U1 or 1=1") == "user_not_found"


async def test_what_slack_leaves_out_counts_against_somebody(slack: Slack) -> None:
    who = people(slack)
    del slack.users["U1"]["is_restricted"]
    assert (await who.known("U1")).person.guest
    slack.users["U1"] |= {"is_restricted": False, "team_id": None}
    assert (await who.known("U1", anew=True)).person.external
    slack.users["U1"] |= {"team_id": "T0OTHER", "enterprise_user": {"enterprise_id": ""}}
    assert (await who.known("U1", anew=True)).person.external  # no enterprise is nobody's
    slack.users["U1"] |= {"team_id": "T0LAB", "is_stranger": True}
    assert (await who.known("U1", anew=True)).person.external
    slack.users["U1"] |= {"id": "U2"}  # an answer about somebody else
    with pytest.raises(SlackError):
        await who.known("U1", anew=True)


async def test_answers_are_kept_for_a_while_and_asked_anew_where_something_is_run(slack: Slack) -> None:
    who = people(slack)
    found = await asyncio.gather(*(who.known("U1") for _ in range(50)))
    assert len(set(found)) == 1
    assert (calls(slack, "users.info"), calls(slack, "usergroups.users.list"), calls(slack, "auth.test")) == (1, 2, 1)
    slack.add_group("S1", [])
    assert (await who.known("U1")).person.groups == {"S1"}
    assert (await who.known("U1", anew=True)).person.groups == frozenset()
    assert (await who.known("U1")).person.groups == frozenset()  # the newer answer counts for all
    short = people(slack, lasts=0.0)
    slack.add_group("S1", ["U1"])
    assert (await short.known("U1")).person.groups == {"S1"}
    slack.users["U1"]["is_restricted"] = True
    assert (await short.known("U1")).person.guest


async def test_when_slack_cannot_tell_nobody_is_anybody_and_the_next_one_asks_again(slack: Slack) -> None:
    who = people(slack)
    for method, error in (
        ("usergroups.users.list", "missing_scope"),
        ("users.info", "ratelimited"),
        ("auth.test", "fatal_error"),
    ):
        slack.fail(method, error)
        fresh = people(slack)
        assert await refused(fresh, "U1") == error
        assert (await fresh.known("U1")).person.groups == {"S1"}
    assert (await who.known("U1")).person.groups == {"S1"}


async def test_worker_threads_ask_for_this_moment(slack: Slack) -> None:
    who = people(slack)
    await who.known("U1")
    slack.add_group("S1", [])
    assert await asyncio.to_thread(who.now, "U1") == Person("U1")
    for nobody in ("U5", "U6", "alice", "gpudiag clock"):
        assert await asyncio.to_thread(who.now, nobody) is None
    slack.fail("users.info", "internal_error")
    with pytest.raises(SlackError):  # no answer is not "nobody": it says so
        await asyncio.to_thread(who.now, "U1")


async def test_the_groups_of_the_policy_of_this_moment(slack: Slack) -> None:
    at = [Policy()]
    who = People(AsyncWebClient(token=slack.bot_token, base_url=slack.base_url), lambda: at[0])
    assert (await who.known("U1")).person.groups == frozenset()
    assert calls(slack, "usergroups.users.list") == 0
    at[0] = policy()
    assert (await who.known("U1")).person.groups == {"S1"}
