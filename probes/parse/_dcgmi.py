"""What the outputs of ``dcgmi`` have in common: the boxed tree, its JSON form, and the error sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

from knowledge.record import dataclass
from knowledge.text import clean
from probes.base import Line, lines_of
from probes.parse._json import DECODER
from probes.parse._smi_tree import Node
from probes.parse._smi_values import slug

MAX_JSON = 32 * 1024 * 1024  # a level 4 diagnostic of 16 GPUs prints some 200 kB
MAX_ATTEMPTS = 50  # at text that only looks like JSON
_ARROW = re.compile(r"(\s{0,60})-> (.{1,200})")
# Error: unable to establish a connection to the specified host: localhost
# Error: Unable to connect to host engine. Host engine connection invalid/disconnected.
ERROR = re.compile(r"^\s{0,8}Error:? .{1,300}", re.MULTILINE)


@dataclass(slots=True)
class Box:
    """One printed table or JSON document: its header lines and its tree."""

    headers: list[str] = field(default_factory=list)
    root: Node = field(default_factory=lambda: Node(""))
    line: int | None = None


def documents(text: str) -> Iterator[Any]:
    """The JSON values of a text, one after another; what stands around or between them is left out."""
    if len(text) > MAX_JSON:
        return
    at, attempts = _opening(text, 0), 0
    while at >= 0 and attempts < MAX_ATTEMPTS:
        try:
            value, at = DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = _opening(text, _next_line(text, at))
            attempts += 1
            continue
        if isinstance(value, dict):
            yield value
        at = _opening(text, at)


def _opening(text: str, at: int) -> int:
    return text.find("{", at) if 0 <= at < len(text) else -1


def _next_line(text: str, at: int) -> int:
    """A cut document is not tried again at each of its braces."""
    end = text.find("\n{", at + 1)
    return end if end >= 0 else len(text)


def boxes(text: str) -> list[Box]:
    """All boxed trees and JSON trees of a text."""
    found = [box for value in documents(text) if (box := _json_box(value)) is not None]
    return found or _text_boxes(lines_of(text))


def _json_box(value: Any) -> Box | None:
    body, header = value.get("body"), value.get("header")
    if not isinstance(body, dict):
        return None
    box = Box([clean(str(h)) for h in header] if isinstance(header, list) else [])
    _grow(box.root, body, 0)
    return box


def _grow(parent: Node, children: dict[str, Any], depth: int) -> None:
    for name, content in children.items():
        node = Node(slug(name), clean(name))
        parent.children.append(node)
        if not isinstance(content, dict):
            node.value = clean(str(content))
            continue
        words = [content.get("value"), *_as_list(content.get("overflow"))]
        shown = " ".join(clean(str(w)) for w in words if w not in (None, ""))
        node.value = shown if shown or "value" in content else None
        below = content.get("children")
        if isinstance(below, dict) and depth < 12:
            _grow(node, below, depth + 1)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def cells(text: str) -> list[str]:
    """The cells of a row between its outer bars: one of a heading, two of a table, none of other lines.

    The left one keeps its indentation behind the first blank.
    """
    text = text.strip()
    if len(text) < 2 or text[0] != "|" or text[-1] != "|":
        return []
    left, bar, right = text[1:-1].removeprefix(" ").partition("|")
    return [left.rstrip(), right.strip()] if bar else [left.strip()]


def rows(lines: Sequence[Line]) -> Iterator[tuple[str, str, Line]]:
    """Left and right cell of each row of a two-column table."""
    for line in lines:
        found = cells(clean(line.text))
        if len(found) == 2:
            yield found[0], found[1], line


_CELL_ENDS = re.compile(
    r"([\w.-]*)[ ]{1,2}\|\s*$"
)  # a cell that is filled: `dcgmi diag` cuts at 45 characters, one less than fit
_CELL_BEGINS = re.compile(r"\| ([\w.-]+)[^|]{0,400}\|\s*$")


def between(above: str, below: str) -> str:
    """What stands between two rows of one cell: nothing where a word was cut at the cell's end, as dcgmi cuts it, else a blank.

    | Warning         | Detected 3 Uncorrec |
    |                 | table errors        |
    """
    end, begin = _CELL_ENDS.search(clean(above)), _CELL_BEGINS.search(clean(below))
    if end is None or begin is None or not end[1]:
        return " "
    return " " if _is_word(end[1]) and _is_word(begin[1]) else ""


def _is_word(text: str) -> bool:
    """Whether DCGM's errors are told with this word; a number is one."""
    from knowledge.catalog.dcgm import words

    plain = text.lower().strip(".,-")
    return plain.isdigit() or plain in words()


def _text_boxes(lines: Sequence[Line]) -> list[Box]:
    out: list[Box] = []
    stack: list[tuple[int, Node]] = []
    heading = False
    above = ""
    for line in lines:
        text = clean(line.text).strip()
        if text.startswith("+"):
            heading = heading and "=" not in text
            continue
        found = cells(text)
        if len(found) < 2:
            if found:
                if not heading:
                    out.append(Box(line=line.number))
                    stack = [(-1, out[-1].root)]
                    heading = True
                out[-1].headers.append(found[0])
            continue
        if not out:
            out.append(Box(line=line.number))
            stack = [(-1, out[-1].root)]
        left, right = found
        if not left.strip():  # the value above goes on
            last = stack[-1][1]
            last.value = f"{last.value or ''}{between(above, line.text)}{right}".strip()
            above = line.text
            continue
        above = line.text
        arrow = _ARROW.fullmatch(left)
        level, label = (len(arrow[1]) // 3 + 1, arrow[2]) if arrow else (0, left.strip())
        node = Node(slug(label), label, right or None, line.number)
        while stack[-1][0] >= level:
            stack.pop()
        stack[-1][1].children.append(node)
        stack.append((level, node))
    return out


def number(text: str) -> int | None:
    """A whole number within a label (``GPU 3``, ``Link 12``); None when there is none."""
    found = re.search(r"\d{1,6}", text)
    return int(found[0]) if found else None
