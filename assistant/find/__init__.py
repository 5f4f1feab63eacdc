"""Finding what a sentence is about among everything that gpudiag can explain.

`search` gives topics, best first; `known_words` is the vocabulary that typos are repaired against. The index is built
from the data once and kept in parts; nothing of the engine, the parsers or pydantic is loaded to ask it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from knowledge import compiled
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.find.index import Index
    from assistant.intent.query import Topic

SHARD = "topics"
_NO_TOPICS = ("lexicon", "examples")  # folders of the data with words of asking


def search(text: str, limit: int = 8, kinds: Collection[str] | None = None) -> list[Topic]:
    """The topics that `text` is about, best first: at most `limit`, of `kinds` only when given.

    Scores compare within one call. An empty list means that no word of `text` is known. Never raises on text.
    """
    from assistant.intent.query import Topic

    index = _index()
    return [Topic(index.ids[n], score, Text(*index.titles[n])) for n, score in index.find(text, limit, kinds)]


def named(text: str) -> Mapping[str, float]:
    """Ids of the topics that `text` calls by a name, title or known phrase -> how much of the question that is, 0 to 1."""
    return _index().named(text)


def weights(text: str) -> Mapping[str, float]:
    """The terms of a question -> how much each says: common ones little, those that no page holds most."""
    from assistant.find.index import wanted

    return _index().weights(wanted(text))


def known_words() -> Mapping[str, int]:
    """Every Latin word of the corpus, casefolded and unstemmed -> in how many documents it stands."""
    return _index().words


def topic(identifier: str) -> Topic | None:
    """The topic called `identifier` (``xid 79``; case does not count), score 0; None when there is none."""
    from assistant.intent.query import Topic

    index, number = _index(), _numbers().get(identifier.casefold())
    return None if number is None else Topic(index.ids[number], 0.0, Text(*index.titles[number]))


def topics(kind: str) -> list[Topic]:
    """Every topic of a kind, codes by their number, score 0."""
    from assistant.intent.query import Topic

    index = _index()
    found = [Topic(index.ids[n], 0.0, Text(*index.titles[n])) for n in index.of_kind(kind)]
    return sorted(found, key=lambda t: (int(t.name) if t.name.isdecimal() else 0, t.name.casefold()))


def build() -> dict[str, Any]:
    """The index as plain data (the wheel's ``_compiled/topics.parts``). FaultsError when the data has faults."""
    from assistant.find import bm25, corpus

    return bm25.build(corpus.documents(), corpus.spellings())


@cache
def _index() -> Index:
    from assistant.find.index import Index

    return Index(compiled.in_parts(SHARD, _files, build))


@cache
def _numbers() -> Mapping[str, int]:
    return {name.casefold(): number for number, name in enumerate(_index().ids)}


def _files() -> list[str | bytes]:
    """What the index is made from: data, rules, runbooks and the code that reads them."""
    root, under = compiled.ROOT.parent, compiled.files_under
    data = (name for name in under(compiled.DATA, ".yaml") if Path(name).parent.name not in _NO_TOPICS)
    rules, books = compiled.stamp(root / "rules" / "catalog", ".yaml"), under(compiled.ROOT / "runbooks", ".md")
    return [*data, rules, *books, *under(Path(__file__).parent, ".py")]
