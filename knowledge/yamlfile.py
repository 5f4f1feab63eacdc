"""Strict YAML: the 1.2 core schema, no duplicate keys, bounded aliases, and a place for every value.

``off`` and ``no`` are strings, ``1:30`` is a string, a key that stands twice is a fault.
The loader never stops at the first fault of a file that can be parsed at all.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import field
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from knowledge.errors import Fault, FaultsError, alike
from knowledge.record import dataclass

Path_: TypeAlias = tuple[str | int, ...]
MAX_COPIED = 10_000  # values that aliases repeat: a billion-laughs file needs millions, honest files tens
MAX_DEPTH = 60  # a rule nests about twelve deep; the C library's own limit lies beyond Python's stack
_Loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STR = "tag:yaml.org,2002:str"
# Characters that YAML does not allow at all (1.2, rule 1): controls, surrogates, non-characters.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_NULL = re.compile(r"~|null|Null|NULL|")
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)


@dataclass(slots=True)
class Document:
    """One parsed file: plain data, the place of each value and key, and what was wrong where."""

    file: str
    data: Any
    marks: dict[Path_, tuple[int, int]] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    faulty: set[Path_] = field(default_factory=set)  # paths of which nothing more can be told

    def at(self, path: Path_) -> tuple[int, int]:
        """Line and column (1-based) of the value at `path`, or of its nearest parent."""
        while path and path not in self.marks:
            path = path[:-1]
        return self.marks.get(path, (1, 1))

    def fault(self, path: Path_, message: str, hint: str = "") -> None:
        """Record a fault at the place of `path`."""
        line, column = self.at(path)
        self.faults.append(Fault(self.file, line, column, message, hint))
        self.faulty.add(path)

    def raise_faults(self) -> None:
        """Raise all faults of this document, if any."""
        if self.faults:
            raise FaultsError(self.faults)


def unsure(path: Path_, faulty: Collection[Path_]) -> bool:
    """Whether nothing can be told of what stands at `path`: it has a fault, stands within one, or is there, misspelt."""
    for bad in faulty:
        depth = min(len(bad), len(path))
        if bad[:depth] == path[:depth]:
            return True
        if len(bad) <= len(path) and bad[:-1] == path[: len(bad) - 1] and alike(bad[-1], path[len(bad) - 1]):
            return True
    return False


def load(path: Path, name: str | None = None) -> Document:
    """Read `path`. Unreadable files and syntax errors become faults of the document."""
    shown = name or str(path)
    try:
        raw = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        return Document(shown, None, faults=[Fault(shown, 1, 1, f"cannot be read: {error}")])
    try:
        return parse(raw.decode("utf-8"), shown)
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8")
        message = f"cannot be read: byte 0x{raw[error.start]:02x} is not UTF-8"
        return Document(shown, None, faults=[Fault(shown, *_place(before), message)])


def parse(text: str, file: str) -> Document:
    """Parse `text` (one YAML document) with the place of every value. Never raises on any text."""
    document = Document(file, None)
    text = text.removeprefix("\ufeff")
    if bad := _FORBIDDEN.search(text):
        message = f"character U+{ord(bad[0]):04X} is not allowed"
        document.faults.append(Fault(file, *_place(text[: bad.start()]), message))
        return document
    composer = _Composer(document)
    try:
        for event in yaml.parse(text, Loader=_Loader):
            composer.take(event)
    except yaml.MarkedYAMLError as error:
        document.faults.append(
            Fault(
                file, *_marked(error.problem_mark or error.context_mark), error.problem or "not YAML", error.note or ""
            )
        )
    except yaml.YAMLError as error:  # what the reader itself refuses carries no mark
        document.faults.append(Fault(file, 1, 1, " ".join(str(error).split())))
    except _StopError as error:
        document.faults.append(Fault(file, *error.place, str(error)))
    else:
        if composer.root is not None:
            document.data = _Builder(document).build(composer.root, ())
    return document


def _place(before: str) -> tuple[int, int]:
    """Line and column (1-based) of what follows `before`."""
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


def _marked(mark: Any) -> tuple[int, int]:
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)


class _StopError(Exception):
    """The text is YAML, but not of a kind that is read at all."""

    def __init__(self, message: str, place: tuple[int, int]) -> None:
        super().__init__(message)
        self.place = place


@dataclass(slots=True)
class _Node:
    """One value of the text; shared by all aliases of it."""

    place: tuple[int, int]
    tag: str = ""  # empty unless the file wrote one
    text: str | None = None  # of a scalar
    quoted: bool = False
    items: list[_Node] = field(default_factory=list)  # of a list; of a mapping key, value, key, value
    is_map: bool = False


class _Composer:
    """Events to nodes with a stack of its own: the library's composer recurses and overflows the C stack."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.root: _Node | None = None
        self.started = False
        self.stack: list[_Node] = []
        self.anchors: dict[str, _Node] = {}

    def take(self, event: yaml.Event) -> None:
        """Raises _StopError on a second document, deep nesting, and aliases that cannot be followed."""
        place = _marked(event.start_mark)
        match event:
            case yaml.DocumentStartEvent():
                if self.started:
                    raise _StopError("a second document begins", place)
                self.started = True
            case yaml.CollectionEndEvent():
                self.stack.pop()
            case yaml.AliasEvent():
                self._put(self._named(str(event.anchor), place))
            case yaml.ScalarEvent():
                node = _Node(place, event.tag or "", event.value, bool(event.style))
                self._put(node, event.anchor)
            case yaml.CollectionStartEvent():
                if len(self.stack) == MAX_DEPTH:
                    raise _StopError(f"nested more than {MAX_DEPTH} deep", place)
                node = _Node(place, event.tag or "", is_map=isinstance(event, yaml.MappingStartEvent))
                self._put(node, event.anchor)
                self.stack.append(node)

    def _named(self, anchor: str, place: tuple[int, int]) -> _Node:
        node = self.anchors.get(anchor)
        if node is None:
            raise _StopError(f"alias {anchor!r} names nothing that stands before it", place)
        if any(node is open_ for open_ in self.stack):
            raise _StopError(f"alias {anchor!r} names what it stands in", place)
        return node

    def _put(self, node: _Node, anchor: str | None = None) -> None:
        if anchor:
            self.anchors[anchor] = node
        if self.stack:
            self.stack[-1].items.append(node)
        else:
            self.root = node


class _Builder:
    def __init__(self, document: Document) -> None:
        self.document = document
        self.seen: set[int] = set()
        self.copied = 0

    def build(self, node: _Node, path: Path_) -> Any:
        if self.copied > MAX_COPIED:
            return None  # said already; no more memory for this file
        self.document.marks[path] = node.place
        if self._too_much(node, path):
            return None
        if node.tag not in ("", "!") and not (node.tag == _STR and node.text is not None):
            self.document.fault(path, f"tag {node.tag!r} is not allowed")
            return None
        if node.text is not None:
            return self._scalar(node, node.text, path)
        if node.is_map:
            return self._mapping(node, path)
        return [self.build(item, (*path, i)) for i, item in enumerate(node.items)]

    def _too_much(self, node: _Node, path: Path_) -> bool:
        """Whether aliases blow the file up: too many values repeated, or trees hung below each other."""
        if len(path) > MAX_DEPTH:
            self.document.fault(path, f"aliases nest more than {MAX_DEPTH} deep")
            return True
        if id(node) in self.seen:
            self.copied += 1
            if self.copied == MAX_COPIED + 1:
                self.document.fault(path, f"aliases repeat more than {MAX_COPIED} values")
        self.seen.add(id(node))
        return self.copied > MAX_COPIED

    def _mapping(self, node: _Node, path: Path_) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key_node, value_node in zip(node.items[::2], node.items[1::2], strict=True):
            key, here = key_node.text, key_node.place
            if key is None:
                self.document.faults.append(Fault(self.document.file, *here, "a key must be a plain word"))
                continue
            if key in out:
                line, column = self.document.marks[*path, key]
                message = f"key {key!r} stands twice (first at {line}:{column})"
                self.document.faults.append(Fault(self.document.file, *here, message))
                continue
            out[key] = self.build(value_node, (*path, key))
            self.document.marks[*path, key] = here
        return out

    def _scalar(self, node: _Node, text: str, path: Path_) -> Any:
        if node.quoted or node.tag == _STR:
            return text
        if _NULL.fullmatch(text):
            return None
        if _BOOL.fullmatch(text):
            return text[0] in "tT"
        if _INT.fullmatch(text):
            return self._int(text, path)
        if _FLOAT.fullmatch(text):
            return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        return text

    def _int(self, text: str, path: Path_) -> int | None:
        try:
            return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
        except ValueError:  # Python reads at most some thousand decimal digits
            self.document.fault(path, f"a number of {len(text)} digits")
            return None
