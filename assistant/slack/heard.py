"""What Slack told, in one shape whatever way it came: a command, a sentence, a pressed button, a filled form, a look at the home page.

`once` is the same for every copy of the same event (a retry, a replay within the five minutes in which Bolt takes a signed
request again, a redelivery after a reconnect): who has seen it drops the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from enum import StrEnum
from typing import Any, NamedTuple

from knowledge.record import dataclass

PREFIX = "gpudiag."  # of action and form ids
DIRECT = "D"  # ids of channels with one person begin with it


class Kind(StrEnum):
    """How somebody turned to the bot."""

    COMMAND = "command"
    SENTENCE = "sentence"  # a mention, a message in a thread of ours or to the bot alone
    PRESS = "press"
    FORM = "form"
    HOME = "home"


class Place(NamedTuple):
    """Where something was said. `thread`: the time stamp of its first message; empty: outside of any."""

    team: str
    channel: str
    thread: str = ""

    @property
    def direct(self) -> bool:
        """Whether one person is alone with the bot."""
        return self.channel.startswith(DIRECT)


class File(NamedTuple):
    """A file that was shared, as the event names it."""

    id: str
    name: str
    size: int  # bytes
    url: str  # of the download, with the bot's token
    mode: str = "hosted"  # hosted, snippet, external, tombstone, ...


@dataclass(frozen=True, slots=True)
class Heard:
    """One thing that was told."""

    kind: Kind
    once: str
    place: Place
    user: str  # id
    text: str = (
        ""  # of a command what stands behind it, of a sentence all of it, as Slack sent it (markup and entities)
    )
    ts: str = ""  # of the message that was written, or whose button was pressed
    files: tuple[File, ...] = ()
    action: str = ""  # of a press or a form: its kind, without "gpudiag."
    ticket: str = ""  # the opaque id that it carries
    trigger: str = ""  # for opening a form, within three seconds
    answer_to: str = ""  # response URL: works where the bot is no member
    values: Mapping[str, str] = field(default_factory=dict)  # of a form: what was filled in, by block id
    mentioned: bool = False  # a sentence that names the bot, rather than follows in a thread
    status: str = ""  # time stamp of the status message that was posted before a restart


def plain(heard: Heard) -> dict[str, Any]:
    """As JSON, without what lasts for seconds only."""
    out = {f.name: getattr(heard, f.name) for f in fields(heard)}
    return out | {"place": list(heard.place), "files": [list(f) for f in heard.files], "values": dict(heard.values),
                  "trigger": "", "kind": str(heard.kind)}  # fmt: skip


def restored(data: Mapping[str, Any]) -> Heard:
    """What `plain` gave."""
    given = dict(data)
    given |= {
        "place": Place(*data["place"]),
        "files": tuple(File(*f) for f in data["files"]),
        "kind": Kind(data["kind"]),
    }
    return Heard(**given)


def command(payload: Mapping[str, Any]) -> Heard:
    """A slash command."""
    team, user = str(payload.get("team_id") or ""), str(payload.get("user_id") or "")
    place = Place(team, str(payload.get("channel_id") or ""))
    trigger = str(payload.get("trigger_id") or "")
    return Heard(
        Kind.COMMAND, f"command {team} {trigger}", place, user, str(payload.get("text") or ""), trigger=trigger,
        answer_to=str(payload.get("response_url") or ""),
    )  # fmt: skip


def sentence(payload: Mapping[str, Any], bot: str) -> Heard | None:
    """A message event; None for what no person said to us: our own words, edits, joins. `bot`: our user id.

    A mention in a channel comes twice, as `app_mention` and as `message`: both are the same message, so the same `once`.
    """
    event: Mapping[str, Any] = payload.get("event") or {}
    if event.get("bot_id") or event.get("subtype") not in (None, "", "file_share", "thread_broadcast"):
        return None
    user, channel, ts = (str(event.get(k) or "") for k in ("user", "channel", "ts"))
    if not user or user == bot or not channel or not ts:
        return None
    team = str(payload.get("team_id") or event.get("team") or "")
    text = str(event.get("text") or "")
    return Heard(
        Kind.SENTENCE, f"message {team} {channel} {ts}", Place(team, channel, str(event.get("thread_ts") or "")), user, text,
        ts, tuple(_file(f) for f in event.get("files") or () if isinstance(f, Mapping)),
        mentioned=event.get("type") == "app_mention" or f"<@{bot}" in text,
    )  # fmt: skip


def press(payload: Mapping[str, Any]) -> Heard | None:
    """A pressed button of ours; None for any other action."""
    actions = payload.get("actions") or [{}]
    act: Mapping[str, Any] = actions[0]
    name = str(act.get("action_id") or "")
    if not name.startswith(PREFIX):
        return None
    message: Mapping[str, Any] = payload.get("message") or {}
    held: Mapping[str, Any] = payload.get("container") or {}
    ts = str(message.get("ts") or held.get("message_ts") or "")
    team, user = _id(payload, "team"), _id(payload, "user")
    channel = _id(payload, "channel") or str(held.get("channel_id") or "")
    thread = str(message.get("thread_ts") or held.get("thread_ts") or ts)
    trigger = str(payload.get("trigger_id") or "")
    return Heard(
        Kind.PRESS, f"press {team} {user} {trigger or ts} {act.get('action_ts')} {name}", Place(team, channel, thread), user,
        ts=ts, action=_bare(name), ticket=str(act.get("value") or ""), trigger=trigger,
        answer_to=str(payload.get("response_url") or ""),
    )  # fmt: skip


def form(payload: Mapping[str, Any]) -> Heard | None:
    """A form of ours that was sent off: its ticket stands in `private_metadata`."""
    view: Mapping[str, Any] = payload.get("view") or {}
    name = str(view.get("callback_id") or "")
    if not name.startswith(PREFIX):
        return None
    filled: dict[str, str] = {}
    for block, inputs in ((view.get("state") or {}).get("values") or {}).items():
        for given in inputs.values():
            chosen = given.get("selected_option") or {}
            filled[str(block)] = str(given.get("value") or chosen.get("value") or "")
    team, user = _id(payload, "team"), _id(payload, "user")
    return Heard(
        Kind.FORM, f"form {team} {user} {view.get('id')} {view.get('hash')}", Place(team, ""), user,
        action=_bare(name), ticket=str(view.get("private_metadata") or ""),
        trigger=str(payload.get("trigger_id") or ""), values=filled,
    )  # fmt: skip


def home(payload: Mapping[str, Any]) -> Heard | None:
    """Somebody opened the app's home page."""
    event: Mapping[str, Any] = payload.get("event") or {}
    user, team = str(event.get("user") or ""), str(payload.get("team_id") or "")
    if not user or event.get("tab") not in (None, "home"):
        return None
    once = str(payload.get("event_id") or event.get("event_ts") or "")
    return Heard(Kind.HOME, f"home {team} {user} {once}", Place(team, str(event.get("channel") or "")), user)


def _bare(name: str) -> str:
    """The kind of an action: of several buttons of one kind in a row each has a number behind it."""
    return name.removeprefix(PREFIX).partition(".")[0]


def _id(payload: Mapping[str, Any], name: str) -> str:
    found = payload.get(name)
    return str(found.get("id") or "") if isinstance(found, Mapping) else ""


def _file(raw: Mapping[str, Any]) -> File:
    size = raw.get("size")
    url = str(raw.get("url_private_download") or raw.get("url_private") or "")
    return File(
        str(raw.get("id") or ""), str(raw.get("name") or ""), size if isinstance(size, int) else 0, url,
        str(raw.get("mode") or "hosted"),
    )  # fmt: skip
