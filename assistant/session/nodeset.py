"""Sets of nodes as Slurm and ClusterShell write them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from knowledge.lazy import lazy
from knowledge.text import excerpt

MOST = 4096  # nodes of a set: the largest machines have about ten thousand, and nobody names half of them
_LONGEST = 4000  # characters that are looked at
_SET = lazy(r"\[([0-9, -]{1,2000})\]")
_PART = lazy(r" *([0-9]{1,9})(?: *- *([0-9]{1,9}))? *")


def is_set(text: str) -> bool:
    """Whether `text` is written as a set: with brackets that hold numbers."""
    return _SET.search(text[:_LONGEST]) is not None


def expand(text: str, limit: int = MOST) -> tuple[str, ...]:
    """The nodes of a set as Slurm and ClusterShell write them: ``gpu[001-064,070]``, ``r[1-2]n[1-4]``, ``a1,b2``.

    ValueError when it is no set, or one of more than `limit` nodes.
    """
    out: dict[str, None] = {}
    for word in _words(text[:_LONGEST]):
        pieces: list[list[str]] = []
        size, end = 1, 0
        for match in _SET.finditer(word):
            numbers = _numbers(match[1], limit)
            pieces += [[word[end : match.start()]], numbers]
            size, end = size * len(numbers), match.end()
            if size > limit:
                raise ValueError(f"{excerpt(text, 60)} names more than {limit} nodes")
        rest = word[end:]
        if "[" in rest or "]" in rest:
            raise ValueError(f"{excerpt(text, 60)} is no set of nodes")
        out.update(dict.fromkeys("".join(parts) for parts in product(*pieces, [rest])))
        if len(out) > limit:
            raise ValueError(f"{excerpt(text, 60)} names more than {limit} nodes")
    if not out:
        raise ValueError("no node is named")
    return tuple(out)


def _words(text: str) -> Iterator[str]:
    """The parts between commas and blanks that stand outside of brackets."""
    word, deep = "", 0
    for c in text:
        deep += (c == "[") - (c == "]")
        if deep <= 0 and (c == "," or c.isspace()):
            if word:
                yield word
            word = ""
        else:
            word += c
    if word:
        yield word


def _numbers(text: str, limit: int) -> list[str]:
    """The members of ``001-064,070``, as wide as they are written."""
    out: list[str] = []
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"{excerpt(text, 60)} is no list of numbers")
        first, last = match[1], match[2] or match[1]
        if int(last) < int(first) or int(last) - int(first) >= limit:
            raise ValueError(f"{excerpt(part, 60)} is no range of at most {limit} nodes")
        out += [str(n).zfill(len(first)) for n in range(int(first), int(last) + 1)]
        if len(out) > limit:
            raise ValueError(f"{excerpt(text, 60)} names more than {limit} nodes")
    return out
