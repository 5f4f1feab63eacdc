"""The manifest from which Slack makes the app: the shipped file, with the addresses filled in where Slack is to call us over HTTP."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from knowledge.errors import UsageError

FILE = Path(__file__).parent.parent / "deploy" / "slack-manifest.yaml"
PATH = "/slack/events"
_URL = re.compile(r"https://[a-z0-9.-]+(?::\d{1,5})?(?:/[A-Za-z0-9._~/-]*)?", re.IGNORECASE)
_COMMAND = re.compile(r"/[a-z0-9_-]{1,31}")
_SOCKET = "  socket_mode_enabled: true "


def text(url: str = "", command: str = "/gpudiag") -> str:
    """The manifest as YAML. `url`: where Slack reaches the bot over HTTPS, with or without a path; empty: Socket Mode.

    `command`: the slash command. UsageError for what Slack would not take.
    """
    if not _COMMAND.fullmatch(command):
        raise UsageError(f"{command!r} is no slash command", hint="a slash and up to 31 of a-z 0-9 _ -")
    out = FILE.read_text(encoding="utf-8").replace("command: /gpudiag\n", f"command: {command}\n")
    if not url:
        return out
    if not _URL.fullmatch(url):
        raise UsageError(f"{url!r} is no address that Slack can call", hint="https://gpudiag.example.org/slack/events")
    host, slash, path = url.removeprefix("https://").partition("/")
    where = f"https://{host}{slash}{path}" if path else f"https://{host}{PATH}"
    out = out.replace(f"command: {command}\n", f"command: {command}\n      url: {where}\n")
    out = out.replace("event_subscriptions:\n", f"event_subscriptions:\n    request_url: {where}\n")
    out = out.replace("interactivity:\n", f"interactivity:\n    request_url: {where}\n")
    return "".join(
        "  socket_mode_enabled: false\n" if line.startswith(_SOCKET) else line for line in out.splitlines(keepends=True)
    )


def plain(shown: str) -> dict[str, Any]:
    """A manifest as data."""
    from knowledge import yamlfile

    found: dict[str, Any] = yamlfile.parse(shown, FILE.name).data
    return found
