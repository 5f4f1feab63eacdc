"""Text of ``nvidia-smi -q`` and XML of ``nvidia-smi -q -x`` as one kind of tree.

Keys of both are brought to one spelling (`key`), so that one table of paths serves both.
The trees of old and new drivers differ in section names; the table lists them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from xml.parsers import expat

from knowledge.record import dataclass
from knowledge.text import clean
from probes.base import Line
from probes.parse._smi_values import slug

MAX_XML = 64 * 1024 * 1024  # a 16-GPU node prints 1 MB with all supported clocks
MAX_DEPTH = 40  # the deepest path of the real format has 6 levels


@dataclass(slots=True)
class Node:
    """One printed field or section: its key, its value (None for a pure section), its place."""

    key: str
    label: str = ""
    value: str | None = None
    line: int | None = None
    children: list[Node] = field(default_factory=list)

    def child(self, name: str) -> Node | None:
        """The first child called `name`."""
        return next((c for c in self.children if c.key == name), None)

    def all(self, name: str) -> Iterator[Node]:
        """The children called `name`, in order."""
        return (c for c in self.children if c.key == name)

    def find(self, path: str) -> Node | None:
        """The node at ``a/b/c``; when a section on the way was printed as a bare value, that section."""
        here: Node = self
        for part in path.split("/"):
            found = here.child(part)
            if found is None:
                return here if here is not self and here.value is not None and not here.children else None
            here = found
        return here

    def walk(self) -> Iterator[Node]:
        """This node and everything below it."""
        stack = [self]
        while stack:
            here = stack.pop()
            yield here
            stack.extend(reversed(here.children))

    @property
    def excerpt(self) -> str:
        """``label: value`` as a person would quote it."""
        shown = " ".join(clean(self.value or "").split())
        return f"{self.label}: {shown}"[:300]


_RENAMED = {"row_remapper": "remapped_rows"}  # the name of its display option stands over the section in some copies


def key(label: str) -> str:
    """One spelling for the labels of all drivers: ``Clocks Throttle Reasons`` -> ``clocks_event_reasons``."""
    word = slug(label)
    for prefix in ("clocks_throttle_reason", "clocks_event_reason"):
        if word.startswith(prefix):
            rest = word[len(prefix) :]
            if rest in ("s", "s_counters"):
                return f"clocks_event_reasons{rest[1:]}"
            return rest.removeprefix("s_counters_").removeprefix("_")
    return _RENAMED.get(word, word)


# "GPU 00000000:3B:00.0"; before driver 367 "GPU 0000:3B:00.0"
GPU_HEAD = re.compile(r"GPU\s+([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])")


def gpu_key(address: str) -> str:
    """The key of a GPU section; the address follows the colon."""
    return f"gpu:{address}"


def text_tree(lines: Sequence[Line]) -> Node:
    """The tree of an indented ``label : value`` listing; other lines are left out."""
    root = Node("")
    stack: list[tuple[int, Node]] = [(-1, root)]
    for line in lines:
        text = clean(line.text).expandtabs(8).rstrip()
        bare = text.lstrip()
        if not bare or bare.startswith(("=", "#", "+", "|")):
            continue
        indent = len(text) - len(bare)
        label, colon, value = _split(bare)
        if not colon and len(bare) > 80:  # a sentence, not a heading
            continue
        head = GPU_HEAD.fullmatch(bare)
        node = Node(gpu_key(head[1]) if head else key(label), label, value if colon else None, line.number)
        while stack[-1][0] >= indent:
            stack.pop()
        if len(stack) > MAX_DEPTH:
            continue
        stack[-1][1].children.append(node)
        stack.append((indent, node))
    return root


def _split(bare: str) -> tuple[str, bool, str]:
    """Label and value of ``label   : value``; the colon stands after a blank."""
    label, colon, value = bare.partition(" : ")
    if colon:
        return label.rstrip(), True, value.strip()
    if bare.endswith(" :"):
        return bare[:-2].rstrip(), True, ""
    return bare.rstrip(), False, ""


class XmlRefusedError(ValueError):
    """The document declares entities, is too large or too deep: not an output of nvidia-smi."""


def xml_tree(text: str) -> tuple[Node, str]:
    """The tree of an XML report, and why it ends early (empty when it is complete).

    Entities are refused (no report has any), so that no document can grow while it is read.
    Fields that were complete before a cut or a fault stay.
    """
    builder = _XmlBuilder()
    if len(text) > MAX_XML:
        return builder.root, f"larger than {MAX_XML} bytes"
    start = text.find("<")
    try:
        builder.parser.Parse(text[start:].encode("utf-8", "replace") if start >= 0 else b"", True)
    except expat.ExpatError as error:
        builder.close_open_sections()
        return builder.root, f"line {error.lineno}: {expat.ErrorString(error.code)}"
    except XmlRefusedError as error:
        builder.close_open_sections()
        return builder.root, str(error)
    return builder.root, ""


class _XmlBuilder:
    def __init__(self) -> None:
        self.root = Node("")
        self.open: list[Node] = [self.root]
        self.texts: list[list[str]] = [[]]
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.data
        self.parser.EntityDeclHandler = self.entity

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self.open) > MAX_DEPTH:
            raise XmlRefusedError(f"elements nest deeper than {MAX_DEPTH}")
        name = gpu_key(attributes["id"]) if tag == "gpu" and "id" in attributes else key(tag)
        self.open.append(Node(name, tag, None, self.parser.CurrentLineNumber))
        self.texts.append([])

    def end(self, _tag: str) -> None:
        """A closed element joins its parent; one that a cut left open never does, unless it is a section."""
        node, pieces = self.open.pop(), self.texts.pop()
        value = " ".join("".join(pieces).split())
        if not node.children:
            node.value = value
        self.open[-1].children.append(node)

    def data(self, data: str) -> None:
        self.texts[-1].append(data)

    def entity(self, *_declaration: object) -> None:
        raise XmlRefusedError("it declares entities")

    def close_open_sections(self) -> None:
        """Hang sections that were still open at a cut into the tree."""
        while len(self.open) > 1:
            node = self.open.pop()
            if node.children or node.key.startswith("gpu:"):
                self.open[-1].children.append(node)
