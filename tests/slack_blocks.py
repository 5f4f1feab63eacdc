"""What Slack refuses in blocks and dialogs, and in which words. Limits from docs.slack.dev ("Block Kit reference").

The total of all blocks of a message is not documented: `MESSAGE_CHARACTERS` is what a report on bolt-js measured (issue 2509).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MESSAGE_BLOCKS, VIEW_BLOCKS = 50, 100
MESSAGE_CHARACTERS = 13_200
SECTION, FIELD, HEADER, VALUE, BUTTON, ALT, MARKDOWN = 3_000, 2_000, 150, 2_000, 75, 2_000, 12_000
FIELDS, ELEMENTS, CONTEXT = 10, 25, 10
IDENTIFIER, TITLE, METADATA = 255, 24, 3_000
KINDS = {
    "actions", "alert", "card", "carousel", "call", "context", "context_actions", "divider", "file", "header", "image", "input",
    "markdown", "plan", "rich_text", "section", "table", "task_card", "video",
}  # fmt: skip


def faults(blocks: object, most: int = MESSAGE_BLOCKS, at: str = "/blocks") -> list[str]:
    """Everything that Slack would refuse, in its words, each with the place."""
    if not isinstance(blocks, list):
        return [_fault("must be an array", at)]
    found = [] if len(blocks) <= most else [_fault(f"no more than {most} items allowed", at)]
    identifiers = [one["block_id"] for one in blocks if isinstance(one, Mapping) and one.get("block_id")]
    twice = sorted({one for one in identifiers if identifiers.count(one) > 1})
    found += [_fault(f"`block_id` {again} already exists", at) for again in twice]
    for number, block in enumerate(blocks):
        found += _block(block, f"{at}/{number}")
    return found


def view_faults(view: object) -> list[str]:
    """The same for a dialog (`modal`) or a home page."""
    if not isinstance(view, Mapping) or view.get("type") not in {"modal", "home"}:
        return [_fault("must be one of: modal, home", "/view/type")]
    found = faults(view.get("blocks"), VIEW_BLOCKS, "/view/blocks")
    found += _long(view, "private_metadata", METADATA, "/view") + _long(view, "callback_id", IDENTIFIER, "/view")
    if view["type"] == "modal":
        found += _text(view.get("title"), TITLE, "/view/title", plain=True)
        for name in ("submit", "close"):
            found += _text(view[name], TITLE, f"/view/{name}", plain=True) if name in view else []
        if "submit" not in view and any(one.get("type") == "input" for one in view.get("blocks") or ()):
            found.append(_fault("a submit is required when an input is in the blocks array", "/view"))
    return found


def characters(value: object) -> int:
    """Characters of all texts in blocks, wherever they stand."""
    return sum(len(text) for text in _texts(value))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name == "text" and isinstance(inner, str):
                yield inner
            else:
                yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _block(block: object, at: str) -> list[str]:
    if not isinstance(block, Mapping) or block.get("type") not in KINDS:
        return [_fault("unsupported type", f"{at}/type")]
    found = _long(block, "block_id", IDENTIFIER, at)
    kind = block["type"]
    if kind == "section":
        found += _section(block, at)
    elif kind == "header":
        found += _text(block.get("text"), HEADER, f"{at}/text", plain=True)
    elif kind == "markdown":
        found += _long(block, "text", MARKDOWN, at)
    elif kind in {"actions", "context"}:
        found += _elements(block.get("elements"), ELEMENTS if kind == "actions" else CONTEXT, f"{at}/elements")
    elif kind == "image":
        found += _long(block, "alt_text", ALT, at) + (
            [] if "alt_text" in block else [_fault("missing required field: alt_text", at)]
        )
    elif kind == "input":
        found += _text(block.get("label"), 2_000, f"{at}/label", plain=True) + _elements(
            [block.get("element")], 1, f"{at}/element"
        )
    return found


def _section(block: Mapping[str, Any], at: str) -> list[str]:
    found: list[str] = []
    if "text" not in block and "fields" not in block:
        found.append(_fault("missing required field: text", at))
    if "text" in block:
        found += _text(block["text"], SECTION, f"{at}/text")
    fields = block.get("fields", [])
    if len(fields) > FIELDS:
        found.append(_fault(f"no more than {FIELDS} items allowed", f"{at}/fields"))
    for number, one in enumerate(fields):
        found += _text(one, FIELD, f"{at}/fields/{number}")
    return found + (_elements([block["accessory"]], 1, f"{at}/accessory") if "accessory" in block else [])


def _elements(elements: object, most: int, at: str) -> list[str]:
    if not isinstance(elements, list) or not elements:
        return [_fault("must have at least 1 item", at)]
    found = [] if len(elements) <= most else [_fault(f"no more than {most} items allowed", at)]
    known: set[str] = set()
    for number, one in enumerate(elements):
        place = f"{at}/{number}"
        if not isinstance(one, Mapping) or not isinstance(one.get("type"), str):
            found.append(_fault("unsupported type", place))
            continue
        found += _long(one, "action_id", IDENTIFIER, place) + _long(one, "value", VALUE, place)
        if one.get("action_id") in known:
            found.append(_fault(f"`action_id` {one['action_id']} already exists", place))
        known |= {one["action_id"]} if one.get("action_id") else set()
        if one["type"] == "button":
            found += _text(one.get("text"), BUTTON, f"{place}/text", plain=True)
            if one.get("style", "primary") not in {"primary", "danger"}:
                found.append(_fault("must be one of: primary, danger", f"{place}/style"))
    return found


def _text(text: object, most: int, at: str, plain: bool = False) -> list[str]:
    if not isinstance(text, Mapping) or text.get("type") not in ({"plain_text"} if plain else {"plain_text", "mrkdwn"}):
        return [_fault("must be a valid text object", at)]
    if not isinstance(text.get("text"), str) or not text["text"]:
        return [_fault("must be more than 0 characters", f"{at}/text")]
    return _long(text, "text", most, at)


def _long(holder: Mapping[str, Any], name: str, most: int, at: str) -> list[str]:
    value = holder.get(name, "")
    if not isinstance(value, str):
        return [_fault("must be a string", f"{at}/{name}")]
    return [_fault(f"must be less than {most + 1} characters", f"{at}/{name}")] if len(value) > most else []


def _fault(what: str, at: str) -> str:
    return f"[ERROR] {what} [json-pointer:{at}]"
