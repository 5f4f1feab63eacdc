"""The index, ready to be asked: whole numbers are added, nothing is computed."""

from __future__ import annotations

import math
import zlib
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from heapq import nlargest
from itertools import pairwise
from typing import Any, NamedTuple

from assistant.find.tokens import is_han, stem, terms, tokens
from knowledge.lazy import lazy

SCALE = 100  # points are whole numbers: the same on every machine, in every order of adding
WHOLE = 1.6  # times the points of a run, when that run is the whole question
LONGEST_RUN = 14  # Han titles have one term a character
MAX_TERMS = 48  # of a question; what is longer was pasted, and its first words decide
BUCKETS = 256

# Words of asking: they say what is wanted of a topic, not which. Left out of questions, unless nothing else is there.
_ASKING = """
mean means meaning explain describe definition define tell show give list help know understand difference between compare
versus vs happen happened happens good normal want need get got see say says said make thing fix solve resolve handle repair
walk through guide procedure runbook playbook steps step
问题 什么 么意 意思 是什 怎么 怎样 么办 如何 为什 为啥 解释 说明 含义 区别 请问 一下 多少 正常 哪些 哪个 告诉 我想 知道 的是 处理 何处 修复 解决 何解 何修 处置 置手 手册 步骤
"""
ASKING = frozenset(map(stem, _ASKING.split()))

# How a question is put says which kind of page it wants: "what is a good ..." a range, "how do I ..." a task. Enough
# to decide between pages about the same thing, not enough to bring up a page about another.
HINTED = 1.35
_RANGE = """
good normal healthy typical expected acceptable reasonable enough
正常 多少 合理 算高 算低 好吗 范围
"""
_HINTS: Mapping[str, frozenset[str]] = {
    "range": frozenset(_RANGE.split()),
    "howto": frozenset(("howto", "怎么", "如何", "怎样", "命令")),
    "runbook": frozenset(("runbook", "playbook", "steps", "手册", "步骤", "预案")),
}
_HOW = frozenset(("to", "do", "can", "should", "i"))  # behind "how"; not "how much", "how often"
# DCGM_FI_DEV_GPU_TEMP, gpu.temperature.core: written like this one thing is meant, whatever else shares its words.
_SYMBOL = lazy(r"(?<![\w.])[A-Za-z][A-Za-z0-9]{1,40}(?:[_.][A-Za-z0-9]{1,40}){1,8}")
SYMBOL = 30.0  # points: above what names and words of another page reach together
STRADDLES = 1.0  # weight of an unknown pair of Han characters; a rare term weighs 8
MAX_SYMBOLS = 2000  # characters of a question in which they are looked for
LONE_NUMBER = (
    0.25  # of its points, for a number beside other words that is no part of a name ("43 % MFU", not "xid 43")
)


class Hit(NamedTuple):
    """A document found."""

    doc: int
    score: float


class Index:
    """The built index, ready to be asked."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data
        self.ids: Sequence[str] = data["ids"].split("\n")
        self._unpacked = lru_cache(maxsize=512)(self._unpack)

    @cached_property
    def titles(self) -> Sequence[Sequence[str]]:
        """English and Chinese title of each document."""
        return [line.split("\t") for line in self._data["titles"].split("\n")]

    @cached_property
    def words(self) -> Mapping[str, int]:
        """Words as written -> in how many documents they stand."""
        pairs = (line.split(" ") for line in self._data["words"].split("\n"))
        return {word: int(df) for word, df in pairs}

    @cached_property
    def _spans(self) -> Mapping[str, range]:
        """Kind -> numbers of its documents, which stand together."""
        kinds = [name.partition(" ")[0] for name in self.ids]
        return {kind: range(bisect_left(kinds, kind), bisect_right(kinds, kind)) for kind in set(kinds)}

    def of_kind(self, kind: str) -> range:
        """Numbers of the documents of a kind."""
        return self._spans.get(kind, range(0))

    def find(self, text: str, limit: int, kinds: Collection[str] | None = None) -> list[Hit]:
        """The best documents for `text`, best first; equals in the order of their ids. Never raises on text."""
        asked = wanted(text)
        runs, within = self._best_runs(asked)
        lone = not all(t[0].isdecimal() for t in asked)
        scores: dict[int, int] = defaultdict(int)
        for term in dict.fromkeys(asked):
            part = LONE_NUMBER if lone and term[0].isdecimal() and term not in within else 1
            for worth, number in self._unpacked(term):
                scores[number] += worth if part == 1 else round(worth * part)
        for number, worth in runs.items():
            scores[number] += worth
        for number in self._symbols(text):
            scores[number] += round(SYMBOL * SCALE)
        for kind in hints(text):
            span = self._spans.get(kind, range(0))
            for number in [n for n in scores if n in span]:
                scores[number] = round(scores[number] * HINTED)
        if kinds is not None:
            spans = [self._spans[k] for k in kinds if k in self._spans]
            scores = {n: s for n, s in scores.items() if any(n in span for span in spans)}
        if limit < 1 or not scores:
            return []
        least = nlargest(limit, scores.values())[
            -1
        ]  # sorting thousands by their ids would cost more than all the adding
        near = [(worth, number) for number, worth in scores.items() if worth >= least]
        best = sorted(near, key=lambda pair: (-pair[0], self.ids[pair[1]]))[:limit]
        return [Hit(number, worth / SCALE) for worth, number in best]

    def _symbols(self, text: str) -> list[int]:
        """The documents that the text names as they are written, underscores and dots included."""
        found = _SYMBOL.findall(text[:MAX_SYMBOLS])
        return [self._by_symbol[w] for word in found if (w := word.casefold()) in self._by_symbol]

    @cached_property
    def _by_symbol(self) -> Mapping[str, int]:
        names = ((name.partition(" ")[2].casefold(), number) for number, name in enumerate(self.ids))
        return {name: number for name, number in names if "_" in name or "." in name}

    def named(self, text: str) -> dict[str, float]:
        """Ids of the documents that `text` names -> how much of the question their heaviest name is, 0 to 1."""
        asked = wanted(text)
        heavy = self.weights(asked)
        total = sum(heavy[t] for t in asked) or 1.0
        best: dict[str, float] = {}
        for start, end, found in self._named_runs(asked):
            part = sum(heavy[t] for t in asked[start:end]) / total
            for _, number in found:
                name = self.ids[number]
                best[name] = max(best.get(name, 0.0), part)
        return best

    def weights(self, asked: Sequence[str]) -> dict[str, float]:
        """How much each term says: a common one little, one that no page holds most; a number beside words nothing."""
        lone = not all(t[0].isdecimal() for t in asked)
        within = {t for start, end, _ in self._named_runs(asked) if end > start + 1 for t in asked[start:end]}
        return {t: 0.0 if lone and t[0].isdecimal() and t not in within else self._weight(t) for t in asked}

    def _weight(self, term: str) -> float:
        held = len(self._unpacked(term))
        if not held and is_han(term):
            return STRADDLES  # most pairs that nobody writes lie across two words: the "是行" of "什么是行重映射"
        return math.log(1 + len(self.ids) / (held or 1))

    def _named_runs(self, asked: Sequence[str]) -> Iterator[tuple[int, int, Sequence[tuple[int, int]]]]:
        """Start and end of every run of terms that is somebody's name, with whose it is."""
        alone = all(t[0].isdecimal() for t in asked)
        for start in range(len(asked)):
            for end in range(start + 1, min(len(asked), start + LONGEST_RUN) + 1):
                if end == start + 1 and asked[start][0].isdecimal() and not alone:
                    continue  # "43" of "43 % MFU" is no XID
                if found := self._read("runs", " ".join(asked[start:end])):
                    yield start, end, found

    def _best_runs(self, asked: Sequence[str]) -> tuple[dict[int, int], set[str]]:
        """For each document the points of the best run that names it; and the terms of runs longer than one."""
        best: dict[int, int] = {}
        within: set[str] = set()
        for start, end, found in self._named_runs(asked):
            if end > start + 1:
                within.update(asked[start:end])
            whole = WHOLE if end - start == len(asked) else 1.0
            for worth, number in found:
                best[number] = max(best.get(number, 0), round(worth * whole))
        return best, within

    def _unpack(self, term: str) -> Sequence[tuple[int, int]]:
        return self._read("points", term)

    def _read(self, table: str, key: str) -> Sequence[tuple[int, int]]:
        """Points and document of everything that stands under `key`."""
        lines: str = self._data[f"{table} {bucket(key)}"]
        at = lines.find(f"\n{key}\t")
        if at < 0:
            return ()
        at += len(key) + 2
        numbers = list(map(int, lines[at : lines.index("\n", at)].split(" ")))
        return list(zip(numbers[::2], numbers[1::2], strict=True))


def bucket(term: str) -> int:
    """In which bucket a term or run stands: thirty thousand strings of their own would triple the time to load."""
    return zlib.crc32(term.encode(errors="replace")) % BUCKETS


def hints(text: str) -> list[str]:
    """The kinds of page that the wording of a question asks for."""
    words = tokens(text)
    found = [kind for kind, signs in _HINTS.items() if not signs.isdisjoint(words)]
    if "howto" not in found and any(a == "how" and b in _HOW for a, b in pairwise(words)):
        found.append("howto")
    return found


def wanted(text: str) -> list[str]:
    """The terms of a question; without the words of asking, when others are left."""
    found = terms(text)
    return ([t for t in found if t not in ASKING] or found)[:MAX_TERMS]
