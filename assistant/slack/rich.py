"""Rich text: the blocks whose texts Slack shows as they are written.

In `rich_text` a mention, a link, an emoji and a style are elements of their own; a `text` element is parsed for none of
them and needs no escaping. So whatever comes from logs, names and people goes into these, and into nothing else. An empty
text is refused by Slack: it is left out here.
"""

from __future__ import annotations

from collections.abc import Sequence

from assistant.slack.budget import BUTTON, Block, cut
from knowledge.text import clean

Element = Block


def span(text: str, *styles: str) -> Element:
    """A piece of text; `styles` are ``bold``, ``italic``, ``code``."""
    out: Element = {"type": "text", "text": clean(text)}
    return {**out, "style": dict.fromkeys(styles, True)} if styles else out


def _holding(kind: str, spans: Sequence[Element]) -> list[Element]:
    kept = [s for s in spans if s["text"]]
    return [{"type": kind, "elements": kept}] if kept else []


def section(*spans: Element) -> list[Element]:
    """Running text, as no element or one."""
    return _holding("rich_text_section", spans)


def quote(*spans: Element) -> list[Element]:
    """Somebody else's words."""
    return _holding("rich_text_quote", spans)


def code(*lines: str) -> list[Element]:
    """Lines to be copied."""
    return _holding("rich_text_preformatted", [span("\n".join(lines))])


def bullets(items: Sequence[Sequence[Element]], ordered: bool = False, first: int = 1) -> list[Element]:
    """A list of lines of spans; `first`: the number that it begins with."""
    kept = [line for spans in items for line in section(*spans)]
    if not kept:
        return []
    out: Element = {"type": "rich_text_list", "style": "ordered" if ordered else "bullet", "elements": kept}
    return [{**out, "offset": first - 1} if ordered and first > 1 else out]


def block(elements: Sequence[Element]) -> Block:
    """The elements as a block; there is at least one."""
    return {"type": "rich_text", "elements": list(elements)}


def button(kind: str, words: str, ticket: str, style: str = "") -> Element:
    """A button that carries nothing but `ticket`. `words` are ours: Slack shows them without markup or emoji."""
    text = {"type": "plain_text", "text": cut(words, BUTTON), "emoji": False}
    out: Element = {"type": "button", "action_id": f"gpudiag.{kind}", "text": text, "value": ticket}
    return {**out, "style": style} if style else out


def actions(buttons: Sequence[Element]) -> list[Block]:
    """The buttons in a row, as no block or one."""
    return [{"type": "actions", "elements": list(buttons)}] if buttons else []
