"""The workspace behind `tests.slack_lab`: its people, channels, messages and files, and Slack's Web API methods over them.

A method takes the arguments of one call, as text or JSON values, and gives what Slack answers, or raises `Refused` with
Slack's error word. Nothing here knows about HTTP.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable

from tests import slack_blocks as limits
from tests.slack_payloads import BOT, BOT_USER, DOMAIN, TEAM, Payload, stamp
from tests.slack_shapes import Edit, File, Message, Refused, channel_shown, escaped_bytes, listed, needed, page, truth

TEXT_CHARACTERS = 40_000
UPDATE_BYTES = 4_000  # the text of chat.update, as UTF-8 with & < > escaped (GitLab measured it: merge request 258898)
TRIGGER_SECONDS = 3.0


class Workspace:
    """All that the lab's Slack remembers. Tests read the attributes; only the lab's methods change them."""

    def __init__(self) -> None:
        self.root = ""
        self.users: dict[str, Payload] = {}
        self.groups: dict[str, Payload] = {}
        self.channels: dict[str, Payload] = {}
        self.messages: list[Message] = []
        self.files: dict[str, File] = {}
        self.views: list[Payload] = []
        self.homes: dict[str, Payload] = {}
        self.tickets: set[str] = set()
        self._triggers: set[str] = set()
        self.methods: dict[str, Callable[[Payload], Payload]] = {
            "api.test": lambda args: {"args": args}, "auth.test": self._auth_test, "users.info": self._users_info,
            "users.list": self._users_list, "usergroups.list": self._usergroups, "usergroups.users.list": self._members,
            "conversations.info": self._channel_info, "conversations.replies": self._replies, "chat.postMessage": self._post,
            "chat.postEphemeral": self._ephemeral, "chat.update": self._update, "chat.delete": self._delete,
            "reactions.add": self._react, "views.open": self._open_view, "views.publish": self._publish_view,
            "files.getUploadURLExternal": self._promise, "files.completeUploadExternal": self._complete,
            "files.info": self._file_info, "apps.connections.open": self._connection,
        }  # fmt: skip

    def file_shown(self, file: File) -> Payload:
        """A file as Slack's answers and events carry it; the download needs the bot's token."""
        where = f"{self.root}/files-pri/{TEAM}-{file.id}"
        return {
            "id": file.id, "name": file.name, "title": file.title or file.name, "size": file.size, "user": file.user,
            "mode": "hosted", "is_external": False, "mimetype": "application/octet-stream", "channels": list(file.channels),
            "filetype": file.name.rpartition(".")[2], "url_private": f"{where}/{file.name}",
            "url_private_download": f"{where}/download/{file.name}", "permalink": f"{self.root}/files/{file.id}",
        }  # fmt: skip

    def message(self, channel: str, ts: str) -> Message:
        """A message that still stands and that all may see; `Refused` where there is none."""
        for one in reversed(self.messages):
            if (one.channel, one.ts) == (channel, ts) and not one.deleted and not one.to:
                return one
        raise Refused("message_not_found")

    def check(self, text: str, blocks: list[Payload]) -> None:
        """Refuse what Slack would not post."""
        if not text and not blocks:
            raise Refused("no_text")
        if len(text) > TEXT_CHARACTERS:
            raise Refused("msg_too_long")
        if found := limits.faults(blocks):
            raise Refused("invalid_blocks", found)
        if limits.characters(blocks) > limits.MESSAGE_CHARACTERS:
            raise Refused("msg_blocks_too_long")

    def _auth_test(self, _: Payload) -> Payload:
        return {
            "url": f"https://{DOMAIN}.slack.com/", "team": "Lab", "user": "gpudiag", "team_id": TEAM, "user_id": BOT_USER,
            "bot_id": BOT, "is_enterprise_install": False,
        }  # fmt: skip

    def _users_info(self, args: Payload) -> Payload:
        user = self.users.get(needed(args, "user"))
        if user is None:
            raise Refused("user_not_found")
        return {"user": user if truth(args.get("include_locale")) else {k: v for k, v in user.items() if k != "locale"}}

    def _users_list(self, args: Payload) -> Payload:
        part, rest = page(list(self.users.values()), args)
        return {"members": part, "response_metadata": {"next_cursor": rest}}

    def _usergroups(self, args: Payload) -> Payload:
        whole = truth(args.get("include_users"))
        return {
            "usergroups": [
                one if whole else {k: v for k, v in one.items() if k != "users"} for one in list(self.groups.values())
            ]
        }

    def _members(self, args: Payload) -> Payload:
        group = self.groups.get(needed(args, "usergroup"))
        if group is None:
            raise Refused("no_such_subteam")
        return {"users": group["users"]}

    def _channel(self, args: Payload, name: str = "channel") -> Payload:
        channel = self.channels.get(needed(args, name))
        if channel is None:
            raise Refused("channel_not_found")
        return channel

    def _channel_info(self, args: Payload) -> Payload:
        return {"channel": self._channel(args)}

    def _replies(self, args: Payload) -> Payload:
        channel, ts = self._channel(args)["id"], needed(args, "ts")
        thread = [
            one
            for one in list(self.messages)
            if one.channel == channel and ts in {one.ts, one.thread_ts} and not one.deleted and not one.to
        ]
        if not thread:
            raise Refused("thread_not_found")
        part, rest = page([one.shown() for one in thread], args)
        return {"messages": part, "has_more": bool(rest), "response_metadata": {"next_cursor": rest}}

    def _place(self, args: Payload) -> Payload:
        """A channel that the bot may post to; a person's id stands for their direct messages."""
        if (user := args.get("channel")) in self.users:
            return self.channels.setdefault(f"D{user}", channel_shown(f"D{user}", im=True))
        channel = self._channel(args)
        if channel["is_archived"]:
            raise Refused("is_archived")
        if not channel["is_member"]:
            raise Refused("not_in_channel")
        return channel

    def _post(self, args: Payload) -> Payload:
        channel, text, blocks = self._place(args)["id"], str(args.get("text") or ""), listed(args.get("blocks"))
        self.check(text, blocks)
        posted = Message(channel, stamp(), BOT_USER, text, blocks, str(args.get("thread_ts") or ""))
        self.messages.append(posted)
        return {"channel": channel, "ts": posted.ts, "message": posted.shown()}

    def _ephemeral(self, args: Payload) -> Payload:
        channel, user = self._place(args)["id"], needed(args, "user")
        if user not in self.users:
            raise Refused("user_not_in_channel")
        text, blocks = str(args.get("text") or ""), listed(args.get("blocks"))
        self.check(text, blocks)
        posted = Message(channel, stamp(), BOT_USER, text, blocks, str(args.get("thread_ts") or ""), to=user)
        self.messages.append(posted)
        return {"message_ts": posted.ts}

    def _own(self, args: Payload, error: str) -> Message:
        found = self.message(self._channel(args)["id"], needed(args, "ts"))
        if found.user != BOT_USER:
            raise Refused(error)
        return found

    def _update(self, args: Payload) -> Payload:
        found = self._own(args, "cant_update_message")
        text, blocks = str(args.get("text") or ""), listed(args.get("blocks")) if "blocks" in args else found.blocks
        self.check(text, blocks)
        if escaped_bytes(text) > UPDATE_BYTES:
            raise Refused("msg_too_long")
        found.text, found.blocks = text or found.text, blocks
        found.edits.append(Edit(time.monotonic(), found.text, blocks))
        return {"channel": found.channel, "ts": found.ts, "text": found.text, "message": found.shown()}

    def _delete(self, args: Payload) -> Payload:
        found = self._own(args, "cant_delete_message")
        found.deleted = True
        return {"channel": found.channel, "ts": found.ts}

    def _react(self, args: Payload) -> Payload:
        found, name = self.message(self._channel(args)["id"], needed(args, "timestamp")), needed(args, "name")
        if not name.replace("_", "").replace("-", "").replace("+", "").isalnum():
            raise Refused("invalid_name")
        if name in found.reactions:
            raise Refused("already_reacted")
        found.reactions.append(name)
        return {}

    def _open_view(self, args: Payload) -> Payload:
        spent = needed(args, "trigger_id")
        made = spent.partition(".")[0]
        if not made.isdigit():
            raise Refused("invalid_trigger_id")
        if spent in self._triggers:
            raise Refused("exchanged_trigger_id")
        if time.time() - int(made) / 1000 > TRIGGER_SECONDS:
            raise Refused("expired_trigger_id")
        view = _view(args)
        self._triggers.add(spent)
        self.views.append(view)
        return {"view": view}

    def _publish_view(self, args: Payload) -> Payload:
        user = needed(args, "user_id")
        if user not in self.users:
            raise Refused("user_not_found")
        if args.get("hash") and args["hash"] != self.homes.get(user, {}).get("hash"):
            raise Refused("hash_conflict")
        self.homes[user] = _view(args)
        return {"view": self.homes[user]}

    def _promise(self, args: Payload) -> Payload:
        name, length = needed(args, "filename"), needed(args, "length")
        if not length.isdigit() or not int(length):
            raise Refused("invalid_arguments", ["[ERROR] must be greater than 0 [json-pointer:/length]"])
        file = File(f"F{secrets.token_hex(4).upper()}", name, int(length), BOT_USER)
        self.files[file.id] = file
        return {"upload_url": f"{self.root}/upload/v1/{file.id}", "file_id": file.id}

    def _complete(self, args: Payload) -> Payload:
        wanted = listed(args.get("files"))
        files = [self.files.get(str(one.get("id"))) for one in wanted]
        ready = [file for file in files if file is not None and file.content is not None]
        if not wanted or len(ready) < len(wanted):
            raise Refused("file_not_found")
        thread, places = str(args.get("thread_ts") or ""), str(args.get("channel_id") or args.get("channels") or "")
        channels = [self._place({"channel": one})["id"] for one in places.split(",") if one]
        for one, file in zip(wanted, ready, strict=True):
            file.title, file.channels, file.thread_ts = str(one.get("title") or file.name), channels, thread
        shown = [self.file_shown(file) for file in ready]
        for channel in channels:
            self.messages.append(
                Message(channel, stamp(), BOT_USER, str(args.get("initial_comment") or ""), [], thread, files=shown)
            )
        return {"files": shown}

    def _file_info(self, args: Payload) -> Payload:
        file = self.files.get(needed(args, "file"))
        if file is None or file.content is None:
            raise Refused("file_not_found")
        return {"file": self.file_shown(file)}

    def _connection(self, _: Payload) -> Payload:
        ticket = secrets.token_urlsafe(12)
        self.tickets.add(ticket)
        return {"url": f"ws{self.root.removeprefix('http')}/link/?ticket={ticket}&app_id=A0LAB"}


def _view(args: Payload) -> Payload:
    view = args.get("view")
    try:
        whole = json.loads(view) if isinstance(view, str) else view
    except ValueError:
        whole = None
    if found := limits.view_faults(whole):
        raise Refused("invalid_arguments", found)
    assert isinstance(whole, dict)
    return whole | {
        "id": f"V{secrets.token_hex(4).upper()}",
        "hash": secrets.token_hex(6),
        "team_id": TEAM,
        "state": {"values": {}},
    }
