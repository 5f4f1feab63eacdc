"""Phrases over words: what a pattern of the lexicon is made of, and where it stands in a sentence.

A word is a Latin word, a number, one Han character, ``?`` or the mark of a slot (``<xid>``). A phrase is a row of

    word            itself
    (a|b c|d)       one of several
    [a|b]           the same, or nothing
    @name           one of the words of a class of the lexicon
    ..              up to six words, whatever they are

No regular expression: each element moves a set of places forward, so the work is bounded by
(places x elements), whatever the sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from knowledge.lazy import lazy

GAP = 6  # words that ".." stands for at most

_WORD = r"<[a-z]+>|[a-z]+|[0-9]+(?:\.[0-9]+)?|[\u3400-\u4dbf\u4e00-\u9fff]|[?!%]"
_words = lazy(_WORD)
_element = lazy(rf"\.\.|@[a-z0-9-]+|[()\[\]|]|{_WORD}")


class Optional(NamedTuple):
    """One of the rows, or nothing."""

    rows: tuple[Row, ...]


class Either(NamedTuple):
    """One of the rows."""

    rows: tuple[Row, ...]


# A word (".." is a gap), one of several words, rows.
Element: TypeAlias = "str | frozenset[str] | Optional | Either"
Row: TypeAlias = "tuple[Element, ...]"


def split(text: str) -> list[str]:
    """The words of a lower-case text."""
    return _simple(text) or _words.findall(text)


def _simple(text: str) -> list[str]:
    """The words of most entries of the lists: one Latin word, or Han characters. Of any other nothing."""
    if text.isascii():
        return [text] if text.isalpha() and text.islower() else []
    return list(text) if min(text) >= "\u4e00" and max(text) <= "\u9fff" else []


def of_class(words: Iterable[str], classes: Mapping[str, Element]) -> Element:
    """What ``@name`` stands for: any of `words`, each a phrase of its own."""
    return _either([parse(word, classes) for word in words])


def parse(text: str, classes: Mapping[str, Element]) -> Row:
    """A phrase of the data. ValueError when a bracket is missing or a class does not exist."""
    if simple := _simple(text):
        return tuple(simple)
    parts = iter(_element.findall(text))
    rows, end = _rows(parts, classes)
    if end or len(rows) != 1:
        raise ValueError(f"brackets do not match in {text!r}")
    return rows[0]


def _either(rows: Sequence[Row]) -> Element:
    """The rows as one element: a set of words where each is one word."""
    if all(len(row) == 1 and isinstance(row[0], str) and row[0] != ".." for row in rows):
        return frozenset(row[0] for row in rows if isinstance(row[0], str))
    return Either(tuple(rows))


def _rows(parts: Iterator[str], classes: Mapping[str, Element]) -> tuple[list[Row], str]:
    """Alternatives up to a closing bracket, and that bracket."""
    rows: list[Row] = []
    row: list[Element] = []
    for part in parts:
        if part in "([":
            inner, end = _rows(parts, classes)
            if end != {"(": ")", "[": "]"}[part]:
                raise ValueError("brackets do not match")
            row.append(_either(inner) if part == "(" else Optional(tuple(inner)))
        elif part == "|":
            rows.append(tuple(row))
            row = []
        elif part in ")]":
            return [*rows, tuple(row)], part
        elif part[0] == "@":
            if part[1:] not in classes:
                raise ValueError(f"no class is called {part}")
            row.append(classes[part[1:]])
        else:
            row.append(part)
    return [*rows, tuple(row)], ""


def firsts(row: Row) -> set[str]:
    """The words that a row can begin with. ValueError when it can begin with anything."""
    out: set[str] = set()
    for element in row:
        if element == "..":
            break
        if isinstance(element, str | frozenset):
            return out | ({element} if isinstance(element, str) else element)
        for inner in filter(None, element.rows):
            out |= firsts(inner)
        if isinstance(element, Either) and all(element.rows):
            return out
    raise ValueError(f"a phrase must begin with a word: {row}")


def vocabulary(row: Row) -> frozenset[str]:
    """Every word that a row can hold, apart from those in gaps."""
    out: set[str] = set()
    for element in row:
        if isinstance(element, str):
            out.add(element)
        elif isinstance(element, frozenset):
            out |= element
        else:
            out = out.union(*(vocabulary(inner) for inner in element.rows))
    return frozenset(out - {".."})


def needs(row: Row) -> tuple[frozenset[str], ...]:
    """What a sentence must hold where `row` stands in it: one word of each of these. Cheaper to tell than where it ends."""
    out: list[frozenset[str]] = []
    for element in row:
        if isinstance(element, frozenset):
            out.append(element)
        elif isinstance(element, str):
            out += [frozenset((element,))] if element != ".." else ()
        elif isinstance(element, Either):
            inner = [needs(one)[:1] for one in element.rows]
            out += [frozenset().union(*(one[0] for one in inner))] if all(inner) else ()
    return tuple(out)


def ends(row: Row, words: Sequence[str], starts: Iterable[int]) -> set[int]:
    """Where `row` can end when it begins at one of `starts`."""
    places = set(starts)
    for element in row:
        if not places:
            break
        if element == "..":
            places = {i for p in places for i in range(p, min(p + GAP, len(words)) + 1)}
        elif isinstance(element, str):
            places = {p + 1 for p in places if p < len(words) and words[p] == element}
        elif isinstance(element, frozenset):
            places = {p + 1 for p in places if p < len(words) and words[p] in element}
        else:
            here = {words[p] for p in places if p < len(words)}  # most rows begin with another word: not looked at
            found = {end for inner in element.rows if _may_begin(inner, here) for end in ends(inner, words, places)}
            places = found | places if isinstance(element, Optional) else found
    return places


def _may_begin(row: Row, here: set[str]) -> bool:
    """Whether `row` can begin with one of the words `here`, as far as its first element tells."""
    first = row[0] if row else ".."
    return not isinstance(first, str) or first == ".." or first in here


class Runs:
    """Word lists with something behind each entry, found as runs of words, the longest first."""

    def __init__(self, entries: Iterable[tuple[str, str]]) -> None:
        self._by_first: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        for text, value in entries:
            run = tuple(split(text))
            if run:
                self._by_first.setdefault(run[0], []).append((run, value))
        for runs in self._by_first.values():
            runs.sort(key=lambda pair: -len(pair[0]))

    @classmethod
    def ready(cls, by_first: Mapping[str, Iterable[tuple[str, str]]]) -> Runs:
        """Of runs that were split already, in the order in which they are tried: their words parted by blanks."""
        out = cls(())
        out._by_first = {
            first: [(tuple(run.split(" ")), value) for run, value in runs] for first, runs in by_first.items()
        }
        return out

    def find(self, words: Sequence[str]) -> list[tuple[int, int, str]]:
        """Start, end and value of each run, left to right, none within another."""
        if self._by_first.keys().isdisjoint(words):
            return []
        out, at, words = [], 0, tuple(words)
        while at < len(words):
            for run, value in self._by_first.get(words[at], ()):
                if words[at : at + len(run)] == run:
                    out.append((at, at + len(run), value))
                    at += len(run) - 1
                    break
            at += 1
        return out
