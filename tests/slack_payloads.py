"""What Slack sends to an app, in Slack's shape: slash commands, buttons, dialogs, events; and how it signs them over HTTP.

A payload is the same over Socket Mode (inside an envelope) and over HTTP, where `http_body` packs it. Trigger ids carry the
time when they were made, so that the server of `tests.slack_lab` knows without a list which of them are too old.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

Payload = dict[str, Any]

TEAM = "T0LAB"
APP = "A0LAB"
BOT_USER = "U0BOT"
BOT = "B0BOT"
DOMAIN = "lab"
_numbers = itertools.count(1)


def sign(secret: str, body: str, timestamp: float | None = None) -> dict[str, str]:
    """Headers that Slack sends with a request: `v0=` and HMAC-SHA256 over version, time (seconds since 1970) and body.

    Source: docs.slack.dev, "Verifying requests from Slack".
    """
    stamp = str(int(time.time() if timestamp is None else timestamp))
    mac = hmac.new(secret.encode(), f"v0:{stamp}:{body}".encode(), hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={mac}"}


def http_body(kind: str, payload: Mapping[str, Any]) -> tuple[str, str]:
    """Body and content type under which Slack posts a payload of a `slash_commands`, `interactive` or `events_api` envelope."""
    if kind == "events_api":
        return json.dumps(payload), "application/json"
    form = payload if kind == "slash_commands" else {"payload": json.dumps(payload)}
    return urlencode(form), "application/x-www-form-urlencoded"


def trigger() -> str:
    """A fresh trigger id: good for one `views.open` within three seconds."""
    return f"{time.time_ns() // 1_000_000}.{next(_numbers)}.{secrets.token_hex(8)}"


def slash_command(
    command: str, text: str = "", *, user: str = "U1", channel: str = "C1", response_url: str = "", team: str = TEAM
) -> Payload:
    """`/command text` in a channel. Slash commands have no thread: Slack does not run them there."""
    return {
        "token": "lab", "team_id": team, "team_domain": DOMAIN, "channel_id": channel, "channel_name": channel.lower(),
        "user_id": user, "user_name": user.lower(), "command": command, "text": text, "api_app_id": APP,
        "is_enterprise_install": "false", "response_url": response_url, "trigger_id": trigger(),
    }  # fmt: skip


def block_actions(
    action_id: str,
    value: str = "",
    *,
    user: str = "U1",
    channel: str = "C1",
    message_ts: str = "",
    thread_ts: str = "",
    block_id: str = "b1",
    response_url: str = "",
    view: Mapping[str, Any] | None = None,
    team: str = TEAM,
) -> Payload:
    """A pressed button, on a message (`message_ts`) or, with `view`, in a dialog or on the app's home page."""
    action = {
        "type": "button", "action_id": action_id, "block_id": block_id, "value": value, "action_ts": stamp(),
        "text": {"type": "plain_text", "text": action_id, "emoji": True},
    }  # fmt: skip
    common: Payload = {
        "type": "block_actions", "team": {"id": team, "domain": DOMAIN}, "api_app_id": APP, "token": "lab",
        "user": {"id": user, "username": user.lower(), "name": user.lower(), "team_id": team},
        "enterprise": None, "is_enterprise_install": False, "trigger_id": trigger(), "actions": [action],
    }  # fmt: skip
    if view is not None:
        where: Payload = {"type": "view", "view_id": view.get("id", "V0")}
        return common | {"container": where, "view": dict(view)}
    ts = message_ts or stamp()
    message: Payload = {"type": "message", "user": BOT_USER, "bot_id": BOT, "ts": ts, "text": "", "team": team}
    container: Payload = {"type": "message", "message_ts": ts, "channel_id": channel, "is_ephemeral": False}
    if thread_ts:
        message["thread_ts"] = container["thread_ts"] = thread_ts
    place = {"id": channel, "name": channel.lower()}
    return common | {"container": container, "channel": place, "message": message, "response_url": response_url}


def view_submission(
    callback_id: str,
    values: Mapping[str, Mapping[str, Mapping[str, Any]]] | None = None,
    *,
    user: str = "U1",
    private_metadata: str = "",
    view_id: str = "V1",
    team: str = TEAM,
) -> Payload:
    """A dialog that was sent off; `values` is block id -> action id -> `{"type": ..., "value": ...}`."""
    view = {
        "id": view_id, "team_id": team, "type": "modal", "callback_id": callback_id, "private_metadata": private_metadata,
        "blocks": [], "state": {"values": values or {}}, "hash": secrets.token_hex(6), "root_view_id": view_id,
        "app_id": APP, "bot_id": BOT, "title": {"type": "plain_text", "text": "lab"},
    }  # fmt: skip
    return {
        "type": "view_submission", "team": {"id": team, "domain": DOMAIN}, "api_app_id": APP, "token": "lab",
        "user": {"id": user, "username": user.lower(), "name": user.lower(), "team_id": team},
        "trigger_id": trigger(), "view": view, "response_urls": [], "enterprise": None, "is_enterprise_install": False,
    }  # fmt: skip


def event_callback(event: Mapping[str, Any], *, event_id: str = "", team: str = TEAM, shared: bool = False) -> Payload:
    """An event in its envelope. `shared`: it comes from a channel shared with another organisation (Slack Connect)."""
    return {
        "token": "lab", "team_id": team, "api_app_id": APP, "type": "event_callback", "event": dict(event),
        "event_id": event_id or f"Ev{secrets.token_hex(5).upper()}", "event_time": int(time.time()),
        "authorizations": [
            {"enterprise_id": None, "team_id": team, "user_id": BOT_USER, "is_bot": True, "is_enterprise_install": False}
        ],
        "is_ext_shared_channel": shared, "event_context": secrets.token_hex(8),
    }  # fmt: skip


def app_mention(
    text: str,
    *,
    user: str = "U1",
    channel: str = "C1",
    ts: str = "",
    thread_ts: str = "",
    event_id: str = "",
    team: str = TEAM,
    shared: bool = False,
) -> Payload:
    """The bot was named in a channel, or in a thread of it. `team` is the author's: another one than ours is an outsider's."""
    event = _said("app_mention", f"<@{BOT_USER}> {text}", user, channel, ts, thread_ts, team)
    return event_callback(event, event_id=event_id, shared=shared)


def message(
    text: str,
    *,
    user: str = "U1",
    channel: str = "C1",
    ts: str = "",
    thread_ts: str = "",
    files: Sequence[Mapping[str, Any]] = (),
    channel_type: str = "channel",
    event_id: str = "",
    team: str = TEAM,
) -> Payload:
    """A message, in a thread where `thread_ts` is given; with `files` it is a `file_share`. Direct messages: channel type `im`."""
    event = _said("message", text, user, channel, ts, thread_ts, team) | {"channel_type": channel_type}
    if files:
        event |= {"subtype": "file_share", "upload": False, "files": [dict(one) for one in files]}
    return event_callback(event, event_id=event_id)


def app_home_opened(*, user: str = "U1", channel: str = "D1", tab: str = "home", event_id: str = "") -> Payload:
    """Somebody opened the app's page; the tab is `home` or `messages`."""
    event = {"type": "app_home_opened", "user": user, "channel": channel, "tab": tab, "event_ts": stamp()}
    return event_callback(event, event_id=event_id)


def stamp() -> str:
    """A message's time in Slack's form, `seconds.microseconds`: different at each call, within one process."""
    return f"{int(time.time())}.{next(_numbers) % 1_000_000:06d}"


def plain(texts: Iterable[str]) -> list[Payload]:
    """Section blocks with these texts, in Slack's markdown."""
    return [{"type": "section", "text": {"type": "mrkdwn", "text": text}} for text in texts]


def _said(kind: str, text: str, user: str, channel: str, ts: str, thread_ts: str, team: str) -> Payload:
    ts = ts or stamp()
    event = {
        "type": kind, "user": user, "text": text, "ts": ts, "channel": channel, "event_ts": ts, "team": team,
        "client_msg_id": secrets.token_hex(16),
    }  # fmt: skip
    return event | ({"thread_ts": thread_ts} if thread_ts else {})
