"""Strict YAML: the 1.2 core schema, no duplicate keys, bounded aliases, and a place for every value.

``off`` and ``no`` are strings, ``1:30`` is a string, a key that stands twice is a fault.
The loader never stops at the first fault of a file that can be parsed at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from knowledge.errors import Fault, FaultsError

Path_: TypeAlias = tuple[str | int, ...]
MAX_ALIASES = 200  # a billion-laughs file needs millions; honest files use a handful
_Loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_NULL = re.compile(r"~|null|Null|NULL|")
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)


@dataclass(slots=True)
class Document:
    """One parsed file: plain data, the place of each value and key, and what was wrong."""

    file: str
    data: Any
    marks: dict[Path_, tuple[int, int]] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def at(self, path: Path_) -> tuple[int, int]:
        """Line and column (1-based) of the value at `path`, or of its nearest parent."""
        while path and path not in self.marks:
            path = path[:-1]
        return self.marks.get(path, (1, 1))

    def fault(self, path: Path_, message: str, hint: str = "") -> None:
        """Record a fault at the place of `path`."""
        line, column = self.at(path)
        self.faults.append(Fault(self.file, line, column, message, hint))

    def raise_faults(self) -> None:
        """Raise all faults of this document, if any."""
        if self.faults:
            raise FaultsError(self.faults)


def load(path: Path, name: str | None = None) -> Document:
    """Read `path`. Unreadable files and syntax errors become faults of the document."""
    shown = name or str(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return Document(shown, None, faults=[Fault(shown, 1, 1, f"cannot be read: {error}")])
    return parse(text, shown)


def parse(text: str, file: str) -> Document:
    """Parse `text` (one YAML document) with the place of every value."""
    document = Document(file, None)
    try:
        loader = _Loader(text)
        try:
            root = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        document.faults.append(Fault(file, line, column, error.problem or "not YAML", error.note or ""))
        return document
    except yaml.YAMLError as error:  # characters that YAML forbids carry no mark
        document.faults.append(Fault(file, 1, 1, " ".join(str(error).split())))
        return document
    if root is not None:
        document.data = _Builder(document).build(root, ())
    return document


class _Builder:
    def __init__(self, document: Document) -> None:
        self.document = document
        self.seen: dict[int, int] = {}
        self.aliases = 0

    def build(self, node: yaml.Node, path: Path_) -> Any:
        mark = node.start_mark
        self.document.marks[path] = (mark.line + 1, mark.column + 1)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        self.seen[id(node)] = self.seen.get(id(node), 0) + 1
        if self.seen[id(node)] > 1:
            self.aliases += 1
            if self.aliases > MAX_ALIASES:
                if self.aliases == MAX_ALIASES + 1:
                    self.document.fault(path, f"more than {MAX_ALIASES} aliases")
                return None
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*path, i)) for i, item in enumerate(node.value)]
        assert isinstance(node, yaml.MappingNode)
        return self._mapping(node, path)

    def _mapping(self, node: yaml.MappingNode, path: Path_) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            here = (key_node.start_mark.line + 1, key_node.start_mark.column + 1)
            if key is None:
                self.document.faults.append(Fault(self.document.file, *here, "a key must be a plain word"))
                continue
            if key in out:
                self.document.faults.append(Fault(self.document.file, *here, f"key {key!r} stands twice"))
                continue
            out[key] = self.build(value_node, (*path, key))
            self.document.marks[*path, key] = here
        return out

    def _scalar(self, node: yaml.ScalarNode, path: Path_) -> Any:
        text: str = node.value
        if node.style in ("'", '"', "|", ">"):  # quoted or block: always a string
            return text
        if node.tag not in ("tag:yaml.org,2002:str", None) and not node.tag.startswith("tag:yaml.org,2002:"):
            self.document.fault(path, f"tag {node.tag!r} is not allowed")
            return None
        if _NULL.fullmatch(text):
            return None
        if _BOOL.fullmatch(text):
            return text[0] in "tT"
        if _INT.fullmatch(text):
            return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
        if _FLOAT.fullmatch(text):
            return float(
                text.replace(".inf", "inf")
                .replace(".Inf", "inf")
                .replace(".INF", "inf")
                .replace(".nan", "nan")
                .replace(".NaN", "nan")
                .replace(".NAN", "nan")
            )
        return text
