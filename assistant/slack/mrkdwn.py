"""The one text of a message that Slack reads as markup: the line that notifications show instead of its blocks."""

from __future__ import annotations

from typing import Any

from assistant.slack.budget import FALLBACK, cut
from knowledge.text import clean

# How a message is posted, beside its blocks and its text: `text` is read literally, and nobody's address becomes a preview.
POSTING: dict[str, Any] = {
    "mrkdwn": False,
    "parse": "none",
    "link_names": False,
    "unfurl_links": False,
    "unfurl_media": False,
}


def escape(text: str) -> str:
    """The three characters that Slack gives a meaning; it decodes these and no other entity."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def unescape(text: str) -> str:
    """What `escape` was given."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def fallback(text: str) -> str:
    """`text` as one line for notifications; never empty."""
    return escape(cut(" ".join(clean(text).split()), FALLBACK)) or "gpudiag"
