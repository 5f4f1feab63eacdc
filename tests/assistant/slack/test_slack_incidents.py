"""Incidents in Slack: by command, in threads, by forms, on the home page; the real bot with a real history."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("slack_bolt")

from assistant.incidents.book import Book
from assistant.incidents.events import Event, Hand, Kind, Status
from assistant.incidents.fold import fold
from assistant.incidents.opening import by_hand
from assistant.rights.model import Person, Sight
from assistant.rights.policy import Policy
from assistant.slack.bot import Asker
from assistant.slack.heard import Place
from assistant.slack.home import SHOWN, view
from assistant.slack.incident_pages import as_seen, many
from assistant.slack.incidents import Wish, wish
from assistant.slack.manifest import text as manifest
from assistant.slack.words import ToldError
from knowledge.errors import UsageError
from knowledge.language import Text
from tests import slack_payloads as sent
from tests.assistant.slack.walk_lab import WALKING, Walker, people, runbooks
from tests.cases import each
from tests.conftest import Gpudiag
from tests.slack_blocks import faults, view_faults
from tests.slack_bot import KERNEL_LOG, Lab, lab, words
from tests.slack_lab import Slack
from tests.slack_shapes import Message


@pytest.fixture
def slack() -> Iterator[Slack]:
    with Slack() as slack:
        people(slack)
        yield slack


def book_of(folder: Path) -> Book:
    return Book(f"sqlite:///{folder}/history.db")


async def said(here: Lab, thread: str, what: str, channel: str = "C1") -> Message:
    return await Walker(here, thread, channel=channel).says(what)


def whispered(here: Lab, count: int) -> bool:
    return len(here.whispers("U1")) == count


async def filled(slack: Slack, view: dict[str, Any], text: str, user: str) -> None:
    """The form, sent off with `text`."""
    values = {"text": {"text": {"type": "plain_text_input", "value": text}}}
    await slack.envelope("interactive", sent.view_submission(
        view["callback_id"], values, user=user, private_metadata=view["private_metadata"], view_id=view["id"],
    ))  # fmt: skip


async def test_an_incident_from_a_command_to_its_end(slack: Slack, tmp_path: Path) -> None:
    book = book_of(tmp_path)
    async with lab(tmp_path, slack, policy=WALKING) as here:
        root = await here.command("incident open rack <4> & row 2 is *warm* @channel")
        card = here.said()[root]
        assert not faults(card.blocks)
        assert book.incident(1).title.en == "rack <4> & row 2 is *warm* @channel"
        assert "rack <4> & row 2 is *warm* @channel" in words(card)
        # In its thread the number need not be said, and a note needs no mention.
        await here.mention("incident severity error", thread=root)
        await said(here, root, "severity: ERROR")
        await here.mention("incident owner me", thread=root, user="U2")
        await said(here, root, "u2 (U2) takes care of it")
        await here.mention("incident owner <@U9>", thread=root)
        await said(here, root, "u9 (U9) takes care of it")
        await here.write("Note: the fan tray was *swapped*", thread=root, user="U3")
        await slack.until(lambda: book.incident(1).notes)
        (note,) = book.incident(1).notes
        # A name that looks like somebody else's id does not become it.
        assert (note.who, note.surface, note.text()) == ("U3 U1 (U3)", "slack", "the fan tray was *swapped*")
        # A button opens a form; what is filled in is a note, once, however often Slack sends it.
        await here.press(card, "note", user="U2")
        await slack.until(lambda: slack.views)
        for _ in range(2):
            await filled(slack, slack.views[-1], "vendor ticket 81123", "U2")
        await slack.until(lambda: len(book.incident(1).notes) == 2)
        await here.command("incident status 1 mitigated moved the jobs")
        await slack.until(lambda: book.incident(1).status is Status.MITIGATED)
        await here.command("incident report 1")
        await slack.until(lambda: len([f for f in slack.files.values() if f.content]) == 2)
        html, markdown = sorted((f for f in slack.files.values()), key=lambda f: f.name)
        assert (html.name, markdown.name) == ("incident-1.html", "incident-1.md")
        assert markdown.content is not None
        assert "vendor ticket 81123" in markdown.content.decode()
        assert html.content is not None
        assert b"<html" in html.content
        await here.press(card, "close")
        await slack.until(lambda: len(slack.views) == 2)
        await filled(slack, slack.views[-1], "", "U1")
        await slack.until(lambda: not book.incident(1).is_open)
        assert len(book.incident(1).notes) == 3
        await here.mention("incident close", thread=root, user="U2")
        await slack.until(lambda: any("closed already" in words(m) for m in here.whispers("U2")))


async def test_opened_from_the_diagnosis_of_a_thread_once(slack: Slack, tmp_path: Path) -> None:
    book = book_of(tmp_path)
    async with lab(tmp_path, slack, policy=WALKING) as here:
        thread = await here.mention(f"what is this?\n```\n{KERNEL_LOG}```")
        await here.answer(thread)
        await here.mention("open an incident", thread=thread)
        card = await Walker(here, thread).says("#1", having="walk")
        assert "fallen off the bus" in words(card)
        incident = book.incident(1)
        assert incident.runbooks
        evidence = [line for e in incident.events for line in e.data.get("evidence", ())]
        assert evidence
        assert not [line for line in evidence if str(tmp_path) in str(line)]  # nobody is told of our folders
        await here.mention("开立事件", thread=thread, user="U3")  # somebody else, in their own words
        await said(here, thread, "已有未关闭的事件 #1")
        assert len(book.incidents()) == 1
        root = await here.command("incident similar 1")
        assert "No earlier incident is like #1" in words(here.said()[root])


async def test_what_cannot_be_done_is_said_and_nothing_is_written(slack: Slack, tmp_path: Path) -> None:
    book = book_of(tmp_path)
    book.open(Hand("ann", "cli"), by_hand("quiet"))
    async with lab(tmp_path, slack, policy=WALKING) as here:
        for n, (text, why) in enumerate((
            ("incident 77", "no incident named '77'"), ("incident frobnicate", "nothing that incidents know"),
            ("incident note", "number is missing"), ("incident severity 1 awful", "no severity 'awful'"),
            ("incident open", "Nothing was diagnosed"), ("incident run 1", "follows no runbook"),
        )):  # fmt: skip
            await here.mention(text)
            await slack.until(partial(whispered, here, n + 1), 20)
            assert why in words(here.whispers("U1")[-1])
        await here.mention("incident list", user="U4")  # a guest
        await slack.until(lambda: here.whispers("U4"))
        assert len(book.incident(1).events) == 1
        root = await here.command("incident")
        assert "#1 quiet" in words(here.said()[root])


async def test_the_home_page_shows_what_is_open_and_changes_with_it(slack: Slack, tmp_path: Path) -> None:
    with runbooks(tmp_path / "site"):
        book = book_of(tmp_path)
        book.open(Hand("ann", "cli"), by_hand("it is hot", "error", ["walked"], "gpu-12"))
        async with lab(tmp_path, slack, policy=WALKING) as here:
            here.bot.homes._pause = 0.05
            slack.channels["DU1"] = sent_channel("DU1")
            await slack.envelope("events_api", sent.app_home_opened(user="U1", channel="DU1"))
            await slack.until(lambda: "U1" in slack.homes)
            shown = slack.homes["U1"]
            assert "#1 it is hot" in str(shown)
            assert "step:walked/look" in str(shown)
            await here.command("incident step 1 look skipped by hand", user="U2")
            await slack.until(lambda: "Look" in str(slack.homes["U1"]) and book.incident(1).steps)
            mark = book.incident(1).steps["walked", "look"]
            assert (str(mark.state), mark.who, mark.text) == ("skipped", "u2 (U2)", "by hand")
            await here.command("incident close 1 done", user="U2")
            await slack.until(lambda: "#1 it is hot" not in str(slack.homes["U1"]))
            # A button of a page that is still open on somebody's screen answers in their own talk with the bot.
            button = next(e for b in shown["blocks"] if b["type"] == "actions" for e in b["elements"])
            await slack.envelope("interactive", sent.block_actions(button["action_id"], button["value"], view=shown))
            await slack.until(lambda: any("#1 it is hot" in words(m) for m in here.said("DU1").values()))


def sent_channel(name: str) -> dict[str, Any]:
    from tests.slack_shapes import channel_shown

    return channel_shown(name, im=True)


# --- pure ---------------------------------------------------------------------------------


@each(
    ("text", "meant"),
    [
        ("incident", Wish("list")), ("事件", Wish("list")), ("incident list all", Wish("list", 0, "all")),
        ("incident 3", Wish("show", 3)), ("incident #3", Wish("show", 3)), ("事件3", Wish("show", 3)),
        ("incident open rack 4 is warm", Wish("open", 0, "rack 4 is warm")), ("open an incident", Wish("open")),
        ("Open new incident: rack 4", Wish("open", 0, "rack 4")), ("开立事件", Wish("open")), ("新建事件 机柜过热", Wish("open", 0, "机柜过热")),
        ("incident note 3 two\nlines", Wish("note", 3, "two\nlines")), ("事件 备注 3 已更换", Wish("note", 3, "已更换")),
        ("事件备注3 已更换", Wish("note", 3, "已更换")), ("note: 3 GPUs", Wish("note", 0, "3 GPUs")), ("备注：三块 GPU", Wish("note", 0, "三块 GPU")),
        ("incident run 3 gpu-12", Wish("run", 3, "gpu-12")), ("incident status 3 working", Wish("status", 3, "working")),
        ("incident link 3 5", Wish("link", 3, "5")), ("incident note 3rd fan is loud", Wish("note", 0, "3rd fan is loud")),
        ("open the pod bay doors", None), ("incidental findings", None), ("check gpu-12", None),
    ],
)  # fmt: skip
def test_what_somebody_wants_of_incidents(text: str, meant: Wish | None) -> None:
    assert wish(text) == meant


def test_what_is_nothing_is_answered_with_what_there_is() -> None:
    with pytest.raises(ToldError, match="note NUMBER TEXT"):
        wish("incident destroy 3")


def asker(*sights: Sight, lang: str = "en") -> Asker:
    return Asker(Person("U1"), Place("T0LAB", "DU1"), lang, frozenset(sights), "ann")


@each("lang", ["en", "zh"])
def test_a_home_page_of_many_incidents_is_one_that_slack_takes(lang: str) -> None:
    hostile = "<!channel> *x* " + "長" * 5_000
    found = [
        fold((Event(1, n, Kind.OPENED, "a", "cli", {"title": {"en": hostile, "zh": hostile}, "host": hostile, "severity": "error"}),
              Event(2, n, Kind.OWNER, "a", "cli", {"owner": hostile}), Event(3, n, Kind.RUNBOOK, "a", "cli", {"runbook": "gpu-reset"})), n)
        for n in range(1, SHOWN + 30)
    ]  # fmt: skip
    policies = Policy(), _policy()
    for policy in policies:
        for incidents in (found, [], Text("the history is off", "历史功能已关闭")):
            page = view(incidents, policy, asker(lang=lang), lambda _: "ticket", 10**18)
            assert not view_faults(page)
            assert '"mrkdwn"' not in str(page).replace("'", '"')
    listed = many(found, lang)
    assert not faults(listed.blocks)


def _policy() -> Policy:
    from assistant.rights.model import Grant, Role, globs

    grants = tuple(
        Grant(f"g{n}", frozenset({"r"}), globs(["x" * 400] * 9, ["x"]), globs(["n*"], ["n*"]), "heavy", approvers=frozenset({"r"}))
        for n in range(40)
    )  # fmt: skip
    return Policy(frozenset({"direct"}), {"r": Role("r", frozenset({"U1"}))}, grants)


def test_raw_lines_and_outputs_are_for_who_may_see_other_users() -> None:
    finding = {"key": "k", "rule": "r", "evidence": [{"line": "bob: python train.py", "source": "ps"}]}
    ran = {"name": "ps aux", "text": "exit code 0, 0.1 s: bob python train.py", "journal": 1}
    told = [Event(1, 1, Kind.FINDING, "a", "cli", finding), Event(2, 1, Kind.ACTION, "a", "slack", ran),
            Event(3, 1, Kind.FINDING, "a", "slack", {**finding, "key": "j", "evidence": [{"line": "veiled", "source": "ps"}]})]  # fmt: skip
    incident = fold(told, 1)
    little = as_seen(incident, asker(Sight.USERS))
    assert "train.py" not in str(little.events)
    assert "exit code 0, 0.1 s" in str(little.events)
    assert "veiled" in str(little.events)
    assert as_seen(incident, asker(*Sight)) == incident


def test_the_manifest_for_socket_mode_and_for_http() -> None:
    ours = yaml.safe_load(manifest())
    assert ours["settings"]["socket_mode_enabled"] is True
    assert ours["settings"]["interactivity"] == {"is_enabled": True}
    http = yaml.safe_load(manifest("https://bot.example.org", "/gpu"))
    assert http["settings"]["socket_mode_enabled"] is False
    where = "https://bot.example.org/slack/events"
    assert http["settings"]["event_subscriptions"]["request_url"] == where
    assert http["settings"]["interactivity"] == {"request_url": where, "is_enabled": True}
    assert http["features"]["slash_commands"][0]["url"] == where
    assert http["features"]["slash_commands"][0]["command"] == "/gpu"
    for url, command in (
        ("http://x.example", "/gpudiag"),
        ("https://x.example\nfoo: bar", "/gpudiag"),
        ("", "gpudiag"),
        ("", "/a b"),
    ):
        with pytest.raises(UsageError):
            manifest(url, command)


def test_the_manifest_as_json(gpudiag: Gpudiag) -> None:
    got = gpudiag("slack", "manifest", "--format", "json")
    assert json.loads(got.out) == yaml.safe_load(manifest())


def test_every_method_that_the_bot_calls_has_its_scope() -> None:
    scopes = set(yaml.safe_load(manifest())["oauth_config"]["scopes"]["bot"])
    needs = {
        "chat_postMessage": "chat:write", "chat_update": "chat:write", "chat_postEphemeral": "chat:write",
        "users_info": "users:read", "usergroups_users_list": "usergroups:read", "files_upload_v2": "files:write",
        "files_info": "files:read", "views_open": "", "views_publish": "", "auth_test": "", "conversations_info": "channels:read",
    }  # fmt: skip
    import re

    called = {
        name for file in Path("assistant/slack").rglob("*.py")
        for name in re.findall(r"client\.((?:chat|users|usergroups|files|views|auth|conversations)_\w+)\(", file.read_text())
    }  # fmt: skip
    assert called <= set(needs), f"say here which scope these need: {called - set(needs)}"
    assert {needs[name] for name in called} - {""} <= scopes
