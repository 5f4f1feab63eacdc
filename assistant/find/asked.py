"""Which entry of knowledge answers a question in general: the one whose own questions share most of its telling words.

The search (`assistant.find.search`) ranks pages and always has a first one. Here a page must earn its place: what the
question says and the entry does not hold counts against it, so that "how do I turn on PFC" is not answered with
how to turn on something else.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from assistant.find.index import ASKING
from assistant.find.tokens import is_han, stem, terms
from knowledge import compiled
from knowledge.lazy import lazy

SHARD = "asked"
KINDS = ("advice", "howto", "term", "range")
_FILES = ("glossary", "ranges", "howto", "advice", "synonyms")
BODY = 0.5  # of a word's weight, where only the answer holds it
MISSED = (
    0.4  # of its weight, that a word of other entries counts more where this one lacks it: another thing is asked about
)
STRANGE = 0.8  # of the weight of a word that one entry holds, for one that none holds and that is no everyday word
EVERYDAY = 0.12  # the same, for one of everyday English
_HAN_STRANGE = 0.25  # most pairs of characters that no entry holds lie across two words
# Words of every second question: they tell entries apart only beside others.
_PLAIN_WORDS = """
use using used run running work working set best way practice recommend recommended should better right many much long often big large new
our one two several other more less first last time thing things people team tell know find out whether if when while during still actually
really only box boxes kind sort case reason always never ever without within per every each machine machines server servers please possible
able worth idea safe it
"""
_PLAIN = frozenset(map(stem, _PLAIN_WORDS.split()))
_PLAIN_SHARE = 0.35
_OF_MODEL = lazy(
    r"(?<![a-z0-9])(?:dgx|hgx|gb200|gb300|gh200|[abhvtl](?:\d{1,3}0|4|40s|10g?)s?|b[123]00|rtx|a6000)(?:[ -]?(?:sxm\d?|pcie|nvl|\d{2,3} ?gb))*(?![a-z0-9])",
    re.IGNORECASE,
)
_OF_GAMES = lazy(
    r"(?<![0-9a-z.])(?:rtx ?)?(?:20[678]0|30[6789]0|40[6789]0|50[789]0)(?: ?ti| ?super)?s?(?![0-9a-z.%])", re.IGNORECASE
)


class Near(NamedTuple):
    """An entry, and how much of the question is its own: 0 to 1."""

    id: str
    score: float
    held: float = (
        0.0  # weight of the words that it shares with the question: of two common words little, of three rare ones much
    )


def nearest(text: str, limit: int = 3) -> list[Near]:
    """The entries whose questions are most like `text`, best first."""
    data, asked = index(), _words(text)
    if not asked:
        return []
    heavy = {t: _weight(t) for t in dict.fromkeys(asked)}
    score = _scorer(heavy)
    found = ((e, score(e)) for e in data["entries"])
    best = sorted(((e, score) for e, score in found if score > 0), key=lambda pair: (-pair[1], pair[0]["id"]))[:limit]
    return [Near(e["id"], score, sum(w for t, w in heavy.items() if t in e["called"])) for e, score in best]


def share(text: str, identifier: str) -> float:
    """How much of the question `text` is that of the entry `identifier`: 0 to 1; 1 for what is no such entry."""
    entry = _by_id().get(identifier)
    if entry is None:
        return 1.0
    heavy = {t: _weight(t) for t in dict.fromkeys(_words(text))}
    return _scorer(heavy)(entry) if heavy else 1.0


def _scorer(heavy: Mapping[str, float]) -> Callable[[Mapping[str, Any]], float]:
    """How much of the question of these words is that of an entry."""
    total = sum(heavy.values())
    named = index()["named"]
    asked_for = {t: w for t, w in heavy.items() if t in named and not _everyday(t)}

    def score(entry: Mapping[str, Any]) -> float:
        called, told = entry["called"], entry["told"]
        if called.isdisjoint(heavy) and told.isdisjoint(heavy):
            return 0.0
        covered = sum(w if t in called else BODY * w for t, w in heavy.items() if t in called or t in told)
        missing = MISSED * sum(w for t, w in asked_for.items() if t not in called and t not in told)
        covered /= total + missing
        if covered < 0.2:
            return 0.0
        own = max((_own(question, heavy) for question in entry["questions"]), default=0.0)
        return covered * (0.45 + 0.55 * own)

    return score


def _own(question: Sequence[Sequence[str]], heavy: Mapping[str, float]) -> float:
    """How much of one question of an entry stands in what was asked."""
    whole = said = 0.0
    for choices in question:
        here = [t for t in choices if t in heavy]
        weight = heavy[here[0]] if here else min(map(_weight, choices))
        whole += weight
        said += weight if here else 0.0
    return said / whole if whole else 0.0


@lru_cache(maxsize=8192)
def _weight(term: str) -> float:
    data = index()
    held = data["held"].get(term, 0)
    most = math.log(1 + len(data["entries"]))
    if not held or (term not in data["named"] and _everyday(term)):  # an answer has many words that nobody asks for
        return most * (_HAN_STRANGE if is_han(term) else EVERYDAY if _everyday(term) else STRANGE)
    weight = math.log(1 + len(data["entries"]) / held)
    return weight * (_PLAIN_SHARE if term in _PLAIN else 1.0)


def _everyday(term: str) -> bool:
    return term in _PLAIN or term in _common()


@cache
def _common() -> frozenset[str]:
    from knowledge.lexicon import lexicon

    return frozenset(stem(w) for text in lexicon().roles.get("common", ()) for w in text.split())


def _words(text: str) -> list[str]:
    """The telling words of a question: no words of asking, no numbers, any GPU model as "gpu"."""
    plain = _OF_MODEL.sub(" gpu ", _OF_GAMES.sub(" geforce ", text))
    same = _spellings()
    return [same.get(t, t) for t in terms(plain) if t not in ASKING and not t[0].isdecimal()]


def build() -> dict[str, Any]:
    """The index as plain data. FaultsError when the data has faults."""
    entries = []
    held: Counter[str] = Counter()
    named: set[str] = set()
    for identifier, asks, told in _entries():
        questions = [q for ask in asks if (q := _question(ask))]
        called = sorted(
            {t for q in questions for choices in q for t in choices} | {t for a in asks for t in _words(_bare(a))}
        )
        body = sorted({t for text in told for t in _words(text)} - set(called))
        held.update(called)
        held.update(body)
        named.update(called)
        entries.append({"id": identifier, "questions": questions, "called": called, "told": body})
    return {"entries": entries, "held": dict(sorted(held.items())), "named": sorted(named)}


def _entries() -> Iterator[tuple[str, list[str], list[str]]]:
    """Id, questions and answer of each entry, in both languages."""
    for e in compiled.shard("advice"):
        said = [t for key in ("ask", "said") for lang in ("en", "zh") for t in (e.get(key) or {}).get(lang, ())]
        yield (
            f"advice {e['id']}",
            [*e["title"].values(), *e.get("variables", ()), *said],
            _both(e["says"], *e.get("more", ())),
        )
    for e in compiled.shard("howto"):
        steps = [s for step in e["steps"] for s in (*_both(step["do"], step.get("note")), step.get("command") or "")]
        yield (
            f"howto {e['id']}",
            [*e["title"].values(), *e["ask"]["en"], *e["ask"]["zh"]],
            [*steps, *_both(e.get("about"))],
        )
    for e in compiled.shard("glossary"):
        yield f"term {e['id']}", [*e["term"].values(), e["id"].replace("-", " "), *e.get("also", ())], _both(e["text"])
    for e in compiled.shard("ranges"):
        names = [a for lang in ("en", "zh") for a in e["aliases"][lang]]
        yield f"range {e['id']}", [*e["title"].values(), *names], _both(e["about"], e.get("depends"))


def _both(*texts: Mapping[str, str] | str | None) -> list[str]:
    return [s for t in texts if t for s in (t.values() if isinstance(t, Mapping) else (t,))]


def _bare(ask: str) -> str:
    """The words of a phrase of the lexicon without its marks."""
    return re.sub(r"[()\[\]|^]|\.\.|@[a-z0-9-]+", " ", ask)


def _question(ask: str) -> list[list[str]]:
    """A question as its telling words; of a phrase of the lexicon each with the words that may stand in its place."""
    if not re.search(r"[()\[\]|]|\.\.", ask):
        return [[t] for t in dict.fromkeys(_words(ask))]
    out: list[list[str]] = []
    open_ = False  # whether a part may be a word that tells nothing
    for part in re.findall(r"\([^()]*\)|\[[^\[\]]*\]|[^()\[\]]+", ask):
        if part[0] == "(":
            choices = list(dict.fromkeys(t for one in part[1:-1].split("|") for t in _words(one)))
            plain = any(not _words(one) for one in part[1:-1].split("|"))
            out += [choices] if choices and not plain else []
            open_ = open_ or plain
        elif part[0] != "[":
            out += [[t] for t in _words(_bare(part))]
    return out if len(out) > 1 or not open_ else []  # one word that is left of several is no question


@cache
def index() -> Mapping[str, Any]:
    """The index, built where none is shipped or kept. FaultsError when the data has faults."""
    shipped = compiled.SHIPPED / f"{SHARD}.json"
    data: dict[str, Any] = (
        json.loads(shipped.read_bytes()) if shipped.is_file() else dict(compiled.cached(SHARD, _files(), build))
    )
    data["named"] = frozenset(data["named"])
    for e in data["entries"]:
        e["called"], e["told"] = frozenset(e["called"]), frozenset(e["told"])
    return data


@cache
def _by_id() -> Mapping[str, Mapping[str, Any]]:
    return {e["id"]: e for e in index()["entries"]}


@cache
def _spellings() -> Mapping[str, str]:
    """A word -> the word that stands for all of its spellings, of those that are one word."""
    out: dict[str, str] = {}
    for group in _groups():
        single = list(dict.fromkeys(ts[0] for s in group if len(ts := terms(s)) == 1))
        out.update({t: single[0] for t in single[1:] if t not in out})
    return out


def _groups() -> Iterable[Sequence[str]]:
    for e in compiled.shard("synonyms"):
        yield [*e["en"], *e["zh"]]


def _files() -> list[Path]:
    data = [path for name in _FILES for path in compiled.shard_files(name)]
    here = Path(__file__).parent
    return [*data, *(here / name for name in ("asked.py", "tokens.py", "index.py"))]
