"""Messages, files and refusals of `tests.slack_lab`, and how arguments of a call are read: as text of a form, or JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.slack_payloads import BOT, BOT_USER, TEAM, Payload


class Refused(Exception):
    """Slack says no: its error word, and the lines of `response_metadata.messages`."""

    def __init__(self, error: str, messages: Iterable[str] = ()) -> None:
        super().__init__(error)
        self.error, self.messages = error, list(messages)


@dataclass(frozen=True, slots=True)
class Edit:
    """What a message was turned into, and when (monotonic seconds)."""

    at: float
    text: str
    blocks: list[Payload]


@dataclass(slots=True)
class Message:
    """One message as it stands, with all its earlier edits; `to` is the only reader of an ephemeral one."""

    channel: str
    ts: str
    user: str
    text: str
    blocks: list[Payload] = field(default_factory=list)
    thread_ts: str = ""
    to: str = ""
    files: list[Payload] = field(default_factory=list)
    reactions: list[str] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    deleted: bool = False
    at: float = field(default_factory=time.monotonic)

    def shown(self) -> Payload:
        """The message as the Web API gives it."""
        whole: Payload = {
            "type": "message",
            "user": self.user,
            "text": self.text,
            "ts": self.ts,
            "blocks": self.blocks,
            "team": TEAM,
        }
        whole |= {"bot_id": BOT} if self.user == BOT_USER else {}
        whole |= {"thread_ts": self.thread_ts} if self.thread_ts else {}
        whole |= {"files": self.files} if self.files else {}
        return whole | ({"edited": {"user": self.user, "ts": self.ts}} if self.edits else {})


@dataclass(slots=True)
class File:
    """A file: promised (`content` is None), uploaded, or shared by a person."""

    id: str
    name: str
    size: int
    user: str
    content: bytes | None = None
    title: str = ""
    channels: list[str] = field(default_factory=list)
    thread_ts: str = ""


def channel_shown(
    channel: str,
    *,
    private: bool = False,
    shared: bool = False,
    member: bool = True,
    archived: bool = False,
    im: bool = False,
) -> Payload:
    """A channel as `conversations.info` gives it; `shared` is Slack Connect."""
    return {
        "id": channel, "name": channel.lower(), "is_channel": not im, "is_im": im, "is_private": private or im, "is_member": member,
        "is_archived": archived, "is_ext_shared": shared, "is_shared": shared, "context_team_id": TEAM,
    }  # fmt: skip


def needed(args: Mapping[str, Any], name: str) -> str:
    """An argument as text; `Refused` where it was not given."""
    if args.get(name) in (None, ""):  # a list has no hash
        raise Refused("invalid_arguments", [f"[ERROR] missing required field: {name}"])
    return str(args[name])


def truth(value: object) -> bool:
    """A form says `1` or `true`, JSON says true."""
    return str(value).lower() in {"1", "true"}


def listed(value: object) -> list[Payload]:
    """An array, given as JSON or, in a form, as the text of it."""
    if isinstance(value, str) and value:
        try:
            value = json.loads(value)
        except ValueError:
            raise Refused("invalid_arguments", ["[ERROR] failed to parse an array"]) from None
    if value in (None, ""):
        return []
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise Refused("invalid_blocks_format")
    return value


def page(items: list[Payload], args: Mapping[str, Any]) -> tuple[list[Payload], str]:
    """One page of `limit` items from the cursor on, and the cursor of the next (empty: none)."""
    start, size = args.get("cursor") or "0", int(args.get("limit") or 1_000)
    if not str(start).isdigit():
        raise Refused("invalid_cursor")
    end = int(start) + max(size, 1)
    return items[int(start) : end], str(end) if end < len(items) else ""


def escaped_bytes(text: str) -> int:
    """Bytes of a text once Slack has escaped what is not escaped yet."""
    bare = text.replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">")
    return len(bare.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").encode())


def object_of(text: str) -> Payload:
    """A JSON object; `Refused` where the text is none."""
    try:
        value = json.loads(text)
    except ValueError:
        raise Refused("invalid_json") from None
    if not isinstance(value, dict):
        raise Refused("json_notobject_of")
    return value
