"""Objects of Kubernetes as ``kubectl -o json`` and ``-o yaml`` print them: the same keys, so one reader has both."""

from __future__ import annotations

import re

from knowledge import yamlfile
from probes.parse._vendor_emit import load, opens

# apiVersion: v1      items:      of a document that begins so; its kind, of a list those of its items
_BEGINS = re.compile(r"\s{0,8}(?:---\s{0,8}\n)?(?:apiVersion: v1|kind: \w{1,40}|items:)\s{0,8}\n")
_KINDS = re.compile(r"(?m)^(?:- |  )?kind: (\w{1,40})\s{0,8}$")
_MOST = 8 << 20  # characters; YAML is read with a mark for each value


def kinds(head: str) -> set[str]:
    """The kinds of objects that YAML of kubectl holds; none where it is no such text."""
    return set(_KINDS.findall(head)) if _BEGINS.match(head) else set()


def document(text: str) -> object:
    """What the text holds; None where it is neither, or is cut within a value."""
    if opens(text) in ("{", "[") or not _BEGINS.match(text):
        return load(text)
    if len(text) > _MOST:
        return None
    found = yamlfile.parse(text.lstrip().removeprefix("---"), "-")
    return None if found.faults else found.data
