"""Our Slack over loopback, driven by the real clients: slack_sdk and Bolt must not notice the difference."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

pytest.importorskip("slack_bolt")
pytest.importorskip("aiohttp")

from aiohttp import ClientSession, FormData, web
from aiohttp.test_utils import TestServer
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_async_handlers import AsyncRateLimitErrorRetryHandler
from slack_sdk.signature import SignatureVerifier
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.webhook.async_client import AsyncWebhookClient

from tests import slack_payloads as sent
from tests.slack_lab import NotAcknowledged, Slack


@pytest.fixture
def slack() -> Iterator[Slack]:
    with Slack() as slack:
        slack.add_user("U1", locale="zh-CN")
        slack.add_user("U2", guest=True, external=True)
        slack.add_group("S1", ["U1"])
        slack.add_channel("C1")
        yield slack


@pytest.fixture
def client(slack: Slack) -> WebClient:
    return WebClient(token=slack.bot_token, base_url=slack.base_url)


@pytest.fixture
def a_client(slack: Slack) -> AsyncWebClient:
    return AsyncWebClient(token=slack.bot_token, base_url=slack.base_url)


def refusal(call: Any, **arguments: Any) -> tuple[str, list[str]]:
    with pytest.raises(SlackApiError) as caught:
        call(**arguments)
    answer = caught.value.response
    return answer["error"], answer.get("response_metadata", {}).get("messages", [])


def actions(*ids: str) -> list[dict[str, Any]]:
    label = {"type": "plain_text", "text": "go"}
    return [{"type": "actions", "elements": [{"type": "button", "action_id": one, "text": label} for one in ids]}]


# the Web API


def test_a_message_is_posted_edited_answered_and_deleted(slack: Slack, client: WebClient) -> None:
    assert client.api_test(foo="1")["args"]["foo"] == "1"
    assert client.auth_test()["user_id"] == sent.BOT_USER
    first = client.chat_postMessage(channel="C1", text="running", blocks=sent.plain(["running"]))
    ts = first["ts"]
    client.chat_postMessage(channel="C1", text="done", thread_ts=ts)
    client.chat_postEphemeral(channel="C1", user="U1", text="only you")
    client.chat_update(channel="C1", ts=ts, text="2 of 3")
    client.chat_update(channel="C1", ts=ts, text="3 of 3", blocks=sent.plain(["3 of 3"]))
    client.reactions_add(channel="C1", timestamp=ts, name="white_check_mark")
    assert refusal(client.reactions_add, channel="C1", timestamp=ts, name="white_check_mark")[0] == "already_reacted"

    shown = slack.message("C1", ts)
    assert [edit.text for edit in shown.edits] == ["2 of 3", "3 of 3"]
    assert shown.edits[0].at <= shown.edits[1].at
    assert [one["text"] for one in client.conversations_replies(channel="C1", ts=ts)["messages"]] == ["3 of 3", "done"]
    assert [one.to for one in slack.messages] == ["", "", "U1"]
    client.chat_delete(channel="C1", ts=ts)
    assert refusal(client.chat_update, channel="C1", ts=ts, text="x")[0] == "message_not_found"
    assert slack.calls[-1].error == "message_not_found"


def test_people_groups_and_channels(slack: Slack, client: WebClient) -> None:
    assert client.users_info(user="U1", include_locale=True)["user"]["locale"] == "zh-CN"
    assert "locale" not in client.users_info(user="U1")["user"]
    guest = client.users_info(user="U2")["user"]
    assert (guest["is_restricted"], guest["is_stranger"]) == (True, True)
    assert guest["team_id"] != client.auth_test()["team_id"]
    assert refusal(client.users_info, user="U9")[0] == "user_not_found"
    assert [one["id"] for page in client.users_list(limit=1) for one in page["members"]] == ["U1", "U2"]
    assert client.usergroups_users_list(usergroup="S1")["users"] == ["U1"]
    assert client.usergroups_list(include_users=True)["usergroups"][0]["users"] == ["U1"]
    assert refusal(client.usergroups_users_list, usergroup="S9")[0] == "no_such_subteam"
    slack.add_channel("C2", shared=True, member=False)
    assert client.conversations_info(channel="C2")["channel"]["is_ext_shared"]
    assert refusal(client.conversations_info, channel="C9")[0] == "channel_not_found"
    assert refusal(client.chat_postMessage, channel="C2", text="x")[0] == "not_in_channel"
    assert client.chat_postMessage(channel="U1", text="to you alone")["channel"] == "DU1"


def test_only_the_right_token_opens(slack: Slack) -> None:
    assert refusal(WebClient(token="xoxb-other", base_url=slack.base_url).auth_test)[0] == "invalid_auth"
    assert refusal(WebClient(base_url=slack.base_url).auth_test)[0] == "not_authed"
    assert refusal(WebClient(token=slack.app_token, base_url=slack.base_url).auth_test)[0] == "not_allowed_token_type"
    bot = WebClient(token=slack.bot_token, base_url=slack.base_url)
    assert refusal(bot.apps_connections_open, app_token=slack.bot_token)[0] == "not_allowed_token_type"
    assert refusal(bot.api_call, api_method="no.such")[0] == "unknown_method"


@pytest.mark.parametrize(
    ("blocks", "said", "where"),
    [
        (sent.plain(["x"] * 51), "no more than 50 items", "/blocks"),
        (sent.plain(["x" * 3001]), "less than 3001 characters", "/blocks/0/text/text"),
        (actions(*map(str, range(26))), "no more than 25 items", "/blocks/0/elements"),
        (actions("a", "a"), "`action_id` a already exists", "/blocks/0/elements/1"),
        ([one | {"block_id": "b"} for one in sent.plain(["x", "y"])], "`block_id` b already exists", "/blocks"),
        (
            [{"type": "header", "text": {"type": "plain_text", "text": "x" * 151}}],
            "less than 151",
            "/blocks/0/text/text",
        ),
        ([{"type": "header", "text": {"type": "mrkdwn", "text": "x"}}], "valid text object", "/blocks/0/text"),
        ([{"type": "poem"}], "unsupported type", "/blocks/0/type"),
        (sent.plain([""]), "more than 0 characters", "/blocks/0/text/text"),
    ],
    ids=["blocks", "section", "actions", "action_id", "block_id", "header", "header-mrkdwn", "type", "empty"],
)
def test_bad_blocks_are_refused_with_the_place(client: WebClient, blocks: list[Any], said: str, where: str) -> None:
    error, messages = refusal(client.chat_postMessage, channel="C1", text="x", blocks=blocks)
    assert error == "invalid_blocks"
    assert len(messages) == 1
    assert said in messages[0]
    assert messages[0].endswith(f"[json-pointer:{where}]")


def test_limits_are_exact(client: WebClient) -> None:
    client.chat_postMessage(channel="C1", text="x" * 40_000, blocks=sent.plain(["x" * 3_000] * 4 + ["x"] * 46))
    assert refusal(client.chat_postMessage, channel="C1", text="x" * 40_001)[0] == "msg_too_long"
    assert refusal(client.api_call, api_method="chat.postMessage", json={"channel": "C1"})[0] == "no_text"
    assert (
        refusal(client.chat_postMessage, channel="C1", text="x", blocks=sent.plain(["x" * 3_000] * 5))[0]
        == "msg_blocks_too_long"
    )
    button = actions("a")
    button[0]["elements"][0]["value"] = "v" * 2_000
    ts = client.chat_postMessage(channel="C1", text="x", blocks=button)["ts"]
    button[0]["elements"][0]["value"] += "v"
    assert refusal(client.chat_postMessage, channel="C1", text="x", blocks=button)[0] == "invalid_blocks"
    client.chat_update(channel="C1", ts=ts, text="x" * 4_000)
    assert refusal(client.chat_update, channel="C1", ts=ts, text="汉" * 1_334)[0] == "msg_too_long"
    assert refusal(client.chat_update, channel="C1", ts=ts, text="<" * 1_001)[0] == "msg_too_long"


def test_views(slack: Slack, client: WebClient) -> None:
    home = {"type": "home", "blocks": sent.plain(["hello"])}
    client.views_publish(user_id="U1", view=home)
    assert slack.homes["U1"]["blocks"] == home["blocks"]
    modal = {"type": "modal", "title": {"type": "plain_text", "text": "Run"}, "blocks": sent.plain(["sure?"])}
    once = sent.trigger()
    assert client.views_open(trigger_id=once, view=modal)["view"]["id"] == slack.views[0]["id"]
    assert refusal(client.views_open, trigger_id=once, view=modal)[0] == "exchanged_trigger_id"
    old = f"{int(time.time() * 1000) - 3_100}.1.x"
    assert refusal(client.views_open, trigger_id=old, view=modal)[0] == "expired_trigger_id"
    title = {"type": "plain_text", "text": "x" * 25}
    error, messages = refusal(client.views_open, trigger_id=sent.trigger(), view=modal | {"title": title})
    assert (error, messages) == (
        "invalid_arguments",
        ["[ERROR] must be less than 25 characters [json-pointer:/view/title/text]"],
    )


async def test_rate_limits_are_waited_for(slack: Slack, a_client: AsyncWebClient) -> None:
    slack.limit("auth.test", retry_after=1)
    with pytest.raises(SlackApiError) as caught:
        await a_client.auth_test()
    assert (caught.value.response.status_code, caught.value.response["error"]) == (429, "ratelimited")
    a_client.retry_handlers.append(AsyncRateLimitErrorRetryHandler(max_retry_count=1))
    slack.limit("auth.test", retry_after=1)
    assert (await a_client.auth_test())["ok"]
    limited, again = slack.calls[-2:]
    assert limited.error == "ratelimited"
    assert again.at - limited.at >= 1
    slack.fail("auth.test", "fatal_error")
    with pytest.raises(SlackApiError, match="fatal_error"):
        await a_client.auth_test()


# files


async def test_a_report_is_uploaded_into_a_thread(slack: Slack, a_client: AsyncWebClient) -> None:
    content = b"<html>" + bytes(range(256)) * 6_000  # more than aiohttp's own limit of 1 MiB
    done = await a_client.files_upload_v2(
        file=content,
        filename="report.html",
        title="Report",
        channel="C1",
        thread_ts="1.000001",
        initial_comment="all of it",
    )
    file = slack.files[done["file"]["id"]]
    assert (file.content, file.title, file.channels, file.thread_ts) == (content, "Report", ["C1"], "1.000001")
    posted = slack.messages[-1]
    assert (posted.text, posted.thread_ts, posted.files[0]["name"]) == ("all of it", "1.000001", "report.html")
    with pytest.raises(SlackApiError, match="channel_not_found"):
        await a_client.files_upload_v2(content="x", filename="x.txt", channel="C9")
    promised = await a_client.files_getUploadURLExternal(filename="x", length=3)
    with pytest.raises(SlackApiError, match="file_not_found"):
        await a_client.files_completeUploadExternal(files=[{"id": promised["file_id"], "title": "x"}])


def test_the_synchronous_client_uploads_too(slack: Slack, client: WebClient) -> None:
    done = client.files_upload_v2(content="a=1&b=2", filename="x.txt", channel="C1")
    assert slack.files[done["file"]["id"]].content == b"a=1&b=2"


async def test_bytes_come_by_put_and_by_form(slack: Slack, a_client: AsyncWebClient) -> None:
    form = FormData()
    form.add_field("file", b"\x00\xff", filename="x.bin")
    async with ClientSession() as session:
        for verb, data, status in (("PUT", b"\x00\xff", 200), ("POST", form, 200), ("POST", b"too long", 400)):
            promised = await a_client.files_getUploadURLExternal(filename="x.bin", length=2)
            async with session.request(verb, promised["upload_url"], data=data) as answer:
                assert answer.status == status
            assert slack.files[promised["file_id"]].content == (b"\x00\xff" if status == 200 else None)


def test_a_persons_file_needs_the_token(slack: Slack, client: WebClient) -> None:
    shown = slack.add_file("dmesg.log", b"NVRM: Xid")
    url = client.files_info(file=shown["id"])["file"]["url_private_download"]
    asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {slack.bot_token}"})
    with urllib.request.urlopen(asked, timeout=10) as answer:
        assert answer.read() == b"NVRM: Xid"
    with urllib.request.urlopen(url, timeout=10) as answer:  # as Slack does: a login page, and no error
        assert (answer.status, b"<html>" in answer.read()) == (200, True)


async def test_a_response_url_is_good_for_five_posts(slack: Slack) -> None:
    url = slack.response_url()
    hook = AsyncWebhookClient(url)
    assert [(await hook.send(text=str(number))).status_code for number in range(6)] == [200] * 5 + [404]
    assert [one["text"] for one in slack.answers(url)] == ["0", "1", "2", "3", "4"]
    late = await AsyncWebhookClient(slack.response_url(seconds=-1)).send(text="x")
    assert (late.status_code, json.loads(late.body)["error"]) == (404, "expired_url")
    bad = await AsyncWebhookClient(slack.response_url()).send(text="x", blocks=[{"type": "poem"}])
    assert (bad.status_code, json.loads(bad.body)["error"]) == (400, "invalid_blocks")


# Socket Mode, with the real Bolt


class Bot:
    """A small app: a command, a button, a dialog, mentions, and what it saw."""

    def __init__(self, slack: Slack) -> None:
        self.app = AsyncApp(
            client=AsyncWebClient(token=slack.bot_token, base_url=slack.base_url), signing_secret=slack.signing_secret
        )
        self.seen: list[str] = []
        self.deaf = 0  # mentions still to be left without an acknowledgement

        @self.app.command("/gpudiag")
        async def command(ack: Any, command: Any, respond: Any) -> None:
            await ack("checking " + command["text"])
            await respond("all well")

        @self.app.action("why")
        async def why(ack: Any, action: Any, say: Any, body: Any) -> None:
            await ack()
            await say(text="because of " + action["value"], thread_ts=body["container"]["message_ts"])

        @self.app.view("run")
        async def run(ack: Any) -> None:
            await ack(response_action="errors", errors={"node": "no such node"})

        @self.app.event("app_mention")
        async def mention(event: Any, body: Any, request: Any) -> None:
            retry = request.headers.get("x-slack-retry-num", ["0"])[0]
            self.seen.append(f"{body['event_id']} {retry} {event.get('thread_ts', '')}")

        @self.app.event("message")
        async def message(event: Any) -> None:
            self.seen.append(f"{event.get('subtype')} {[one['name'] for one in event.get('files', ())]}")

        @self.app.event("app_home_opened")
        async def home(event: Any, client: Any) -> None:
            await client.views_publish(user_id=event["user"], view={"type": "home", "blocks": sent.plain(["hi"])})

        @self.app.middleware
        async def ear(body: Any, next: Any) -> None:
            if self.deaf and body.get("event", {}).get("type") == "app_mention":
                self.deaf -= 1
                raise RuntimeError("a bug in the app: nothing is acknowledged")
            await next()


@asynccontextmanager
async def connected(slack: Slack, bot: Bot, ping: float = 5.0) -> AsyncIterator[None]:
    handler = AsyncSocketModeHandler(bot.app, app_token=slack.app_token, ping_interval=ping)
    await handler.connect_async()  # type: ignore[no-untyped-call]
    try:
        await slack.until(lambda: slack.connected)
        yield
    finally:
        await handler.close_async()  # type: ignore[no-untyped-call]


async def test_bolt_acknowledges_commands_buttons_dialogs_and_events(slack: Slack) -> None:
    bot = Bot(slack)
    async with connected(slack, bot):
        url = slack.response_url()
        ack = await slack.envelope("slash_commands", sent.slash_command("/gpudiag", "gpu 3", response_url=url))
        assert ack.payload == {"text": "checking gpu 3"}
        assert 0 < ack.seconds < 3  # Slack gives up then
        await slack.until(lambda: slack.answers(url))
        assert slack.answers(url)[0]["text"] == "all well"

        said = slack.say("hello")
        pressed = sent.block_actions("why", "xid 79", message_ts=said.ts)
        assert (await slack.envelope("interactive", pressed)).payload is None
        await slack.until(lambda: slack.messages[-1].text == "because of xid 79")
        assert slack.messages[-1].thread_ts == said.ts

        dialog = await slack.envelope("interactive", sent.view_submission("run"))
        assert dialog.payload == {"response_action": "errors", "errors": {"node": "no such node"}}
        await slack.envelope("events_api", sent.app_home_opened())
        await slack.until(lambda: "U1" in slack.homes)
        file = slack.add_file("dmesg.log", b"x")
        await slack.envelope("events_api", sent.message("look", files=[file]))
        await slack.envelope("events_api", sent.app_mention("why", thread_ts=said.ts, event_id="Ev1"))
        await slack.until(lambda: len(bot.seen) == 2)
        assert sorted(bot.seen) == [f"Ev1 0 {said.ts}", "file_share ['dmesg.log']"]
        assert slack.pings >= 1


async def test_an_unacknowledged_event_comes_again(slack: Slack) -> None:
    bot = Bot(slack)
    async with connected(slack, bot):
        bot.deaf = 1
        ack = await slack.envelope("events_api", sent.app_mention("hi", event_id="Ev7"), deadline=0.5, resend=3)
        assert ack.attempts == 2
        await slack.until(lambda: bot.seen)
        assert bot.seen == ["Ev7 1 "]
        bot.deaf = 1
        with pytest.raises(NotAcknowledged):
            await slack.envelope("events_api", sent.app_mention("hi"), deadline=0.2)
        with pytest.raises(RuntimeError, match=r"slack\.envelope"):
            slack.send_envelope("events_api", sent.app_mention("hi"))


async def test_bolt_comes_back_after_a_disconnect_and_a_cut(slack: Slack) -> None:
    bot = Bot(slack)
    async with connected(slack, bot, ping=1.0):
        for number, lose in enumerate((slack.disconnect, slack.cut), 2):
            lose()
            await slack.until(lambda number=number: slack.connections == number and slack.connected == 1, 30)  # type: ignore[misc]
            ack = await slack.envelope("slash_commands", sent.slash_command("/gpudiag", "again"))
            assert ack.payload == {"text": "checking again"}


async def test_bolt_leaves_a_server_that_does_not_answer_pings(slack: Slack) -> None:
    bot = Bot(slack)
    async with connected(slack, bot, ping=0.5):
        slack.answer_pings = False
        await slack.until(lambda: slack.connections == 2, 30)
        slack.answer_pings = True


async def test_an_event_that_came_while_nobody_was_connected_comes_as_a_retry(slack: Slack) -> None:
    bot = Bot(slack)
    event = sent.app_mention("hi", event_id="Ev8")
    early = asyncio.create_task(slack.envelope("events_api", event, deadline=0.2, resend=50))
    await asyncio.sleep(0.1)
    async with connected(slack, bot):
        assert (await early).attempts >= 2
        await slack.until(lambda: bot.seen)
        name, retry, *_ = bot.seen[0].split()
        assert (name, int(retry) >= 1) == ("Ev8", True)


def test_a_synchronous_test_sends_and_waits(slack: Slack) -> None:
    from slack_sdk.socket_mode.builtin import SocketModeClient
    from slack_sdk.socket_mode.response import SocketModeResponse

    client = SocketModeClient(
        app_token=slack.app_token, web_client=WebClient(token=slack.bot_token, base_url=slack.base_url)
    )
    threads: list[str] = []

    def answer(client: Any, request: Any) -> None:
        threads.append(threading.current_thread().name)
        client.send_socket_mode_response(SocketModeResponse(request.envelope_id, {"text": request.type}))

    client.socket_mode_request_listeners.append(answer)
    with pytest.raises(NotAcknowledged):
        slack.send_envelope("slash_commands", sent.slash_command("/gpudiag"), deadline=0.1)
    client.connect()
    try:
        slack.wait(lambda: slack.connected)
        assert slack.send_envelope("slash_commands", sent.slash_command("/gpudiag")).payload == {
            "text": "slash_commands"
        }
    finally:
        client.close()
    assert threads


# signed HTTP, with the real Bolt


@pytest.mark.process
async def test_bolt_accepts_only_what_slack_signed(slack: Slack) -> None:
    bot = Bot(slack)

    async def events(request: web.Request) -> web.Response:
        return await to_aiohttp_response(await bot.app.async_dispatch(await to_bolt_request(request)))

    door = web.Application()
    door.router.add_post("/slack/events", events)
    body, kind = sent.http_body(
        "slash_commands", sent.slash_command("/gpudiag", "gpu & 汉", response_url=slack.response_url())
    )
    good = sent.sign(slack.signing_secret, body)
    assert SignatureVerifier(slack.signing_secret).is_valid_request(body, good)
    async with TestServer(door) as server, ClientSession() as session:

        async def post(body: str, headers: dict[str, str], kind: str = kind) -> tuple[int, str]:
            async with session.post(
                server.make_url("/slack/events"), data=body, headers=headers | {"Content-Type": kind}
            ) as answer:
                return answer.status, await answer.text()

        assert await post(body, good) == (200, "checking gpu & 汉")
        assert (await post(body, sent.sign(slack.signing_secret, body, time.time() - 301)))[0] == 401
        assert (await post(body.replace("gpu", "cpu"), good))[0] == 401
        assert (await post(body, sent.sign("other", body)))[0] == 401
        assert (await post(body, {}))[0] == 401
        for name, payload in (
            ("interactive", sent.block_actions("why", "x")),
            ("events_api", sent.app_mention("hi", event_id="Ev3")),
        ):
            body, kind = sent.http_body(name, payload)
            assert (await post(body, sent.sign(slack.signing_secret, body), kind))[0] == 200
        await slack.until(lambda: bot.seen and slack.messages[-1].text == "because of x")
        assert bot.seen == ["Ev3 0 "]
