"""BM25 over fields, worked out when the index is built: a query only adds whole numbers.

Score of a document for a term (BM25F, Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework", section 3.6):

    tf  = sum over fields of weight * count / (1 - b + b * length / average length of the field)
    w   = prior of the kind * idf * tf * (k1 + 1) / (k1 + tf),   idf = ln(1 + (N - df + 0.5) / (df + 0.5))

To it comes, once a document, the longest run of query words that is one of its names or titles.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from assistant.find.corpus import Doc
from assistant.find.index import BUCKETS, LONGEST_RUN, SCALE, bucket, wanted
from assistant.find.tokens import is_han, terms, tokens

K1 = 1.2  # the usual 1.2 .. 2; questions are short and a page's tenth "XID" says no more than its third: the low end
# Titles are all of a length, so length there says little; a rule's page is twenty times a fact's line, and without
# normalisation near the usual 0.75 the long pages would come first for every word.
FIELDS: Mapping[str, tuple[float, float]] = {  # weight, b
    "name": (4.0, 0.3),
    "title": (3.0, 0.3),
    "said": (2.5, 0.5),
    "like": (1.0, 0.5),
    "body": (1.0, 0.7),
}
# A question is about a problem, a code, a word or a task far more often than about one of 852 fact names or 438 DCGM
# names, which share all their words with them: those come up when they are asked by name (a name's run of words
# still wins). Action words are reached through what they are for. Set on the labelled questions of
# tests/assistant/find/questions.yaml, in steps of a tenth: no finer, so that they are not fitted to it.
PRIOR: Mapping[str, float] = {
    "term": 1.1, "xid": 1.1, "symptom": 1.1, "howto": 1.0, "range": 1.0, "rule": 1.0, "runbook": 0.8, "clock": 1.0, "status": 0.8,
    "cuda": 0.9, "nccl": 1.0, "pytorch": 1.0, "gpu": 0.8, "sxid": 0.7, "action": 0.7, "fact": 0.6, "dcgm": 0.6, "advice": 0.6,
}  # fmt: skip
RUN = 0.8  # of the words' idf, for a run of words that is a name or title
COMMON = 500  # documents kept for one term, those with most points: "gpu" stands in two thousand pages


def build(docs: Sequence[Doc], groups: Iterable[Sequence[str]]) -> dict[str, Any]:
    """The index of `docs` as plain data; `groups` are spellings of one thing each."""
    fields = [_fields(doc) for doc in docs]
    _add_spellings(fields, groups)
    counts = [{name: Counter(words) for name, words in f.items()} for f in fields]
    df = Counter(term for f in counts for term in set().union(*f.values()))
    idf = {term: math.log(1 + (len(docs) - n + 0.5) / (n + 0.5)) for term, n in df.items()}
    average = {name: sum(len(f[name]) for f in fields) / max(1, len(docs)) or 1.0 for name in FIELDS}
    points: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, (doc, per_field) in enumerate(zip(docs, counts, strict=True)):
        for term, tf in _weighted(per_field, average).items():
            worth = PRIOR[doc.kind] * idf[term] * tf * (K1 + 1) / (K1 + tf)
            points[term].append((round(worth * SCALE), number))
    return {
        "ids": "\n".join(d.id for d in docs),
        "titles": "\n".join(f"{_line(d.title.en)}\t{_line(d.title.zh)}" for d in docs),
        "words": _words(docs),
        **_table("points", {term: sorted(found, reverse=True)[:COMMON] for term, found in points.items()}),
        **_table("runs", _runs(docs, idf)),
    }


def _fields(doc: Doc) -> dict[str, list[str]]:
    return {
        "name": _all_terms(doc.names),
        "title": _all_terms((doc.title.en, doc.title.zh if doc.title.zh != doc.title.en else "")),
        "said": _all_terms(doc.said),
        "like": [],
        # A number in running text names nothing: "within 79 ms" is not about XID 79.
        "body": [t for t in _all_terms(doc.body) if not t[0].isdecimal()],
    }


def _all_terms(texts: Iterable[str]) -> list[str]:
    return [term for text in texts for term in terms(text)]


def _add_spellings(fields: Sequence[dict[str, list[str]]], groups: Iterable[Sequence[str]]) -> None:
    """Where a name, title or phrase holds one spelling, the others are findable too."""
    starts: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = defaultdict(list)
    for group in groups:
        spelled = [tuple(terms(s)) for s in group]
        for one in filter(None, spelled):
            others = tuple(t for other in spelled if other != one for t in other if t not in one)
            starts[one[0]].append((one, others))
    for field in fields:
        added: dict[str, None] = {}
        for name in ("name", "title", "said"):
            words = field[name]
            for at, word in enumerate(words):
                for one, others in starts.get(word, ()):
                    if tuple(words[at : at + len(one)]) == one:
                        added.update(dict.fromkeys(others))
        field["like"] = list(added)


def _weighted(counts: Mapping[str, Counter[str]], average: Mapping[str, float]) -> dict[str, float]:
    """Term -> count over all fields, by weight and length."""
    out: dict[str, float] = defaultdict(float)
    for name, (weight, b) in FIELDS.items():
        length = 1 - b + b * counts[name].total() / average[name]
        for term, n in counts[name].items():
            out[term] += weight * n / length
    return out


def _runs(docs: Sequence[Doc], idf: Mapping[str, float]) -> dict[str, list[tuple[int, int]]]:
    """Names and titles as runs of terms -> the points for them, and whose they are."""
    owners: dict[str, dict[int, int]] = defaultdict(dict)
    for number, doc in enumerate(docs):
        for phrase in (*doc.names, doc.title.en, doc.title.zh, *doc.said):
            run = wanted(phrase)
            if run and len(run) <= LONGEST_RUN:
                worth = PRIOR[doc.kind] * RUN * sum(idf.get(t, 0.0) for t in run)
                owners[" ".join(run)][number] = round(worth * SCALE)
    return {run: sorted(((w, n) for n, w in o.items()), reverse=True) for run, o in owners.items()}


def _words(docs: Sequence[Doc]) -> str:
    """Latin words as written -> how many documents hold them: what a typo can be a typo of."""
    df: Counter[str] = Counter()
    for doc in docs:
        text = "\n".join((doc.title.en, *doc.names, *doc.said, *doc.body))
        df.update({t for t in tokens(text) if t.isalpha() and not is_han(t)})
    return "\n".join(f"{word} {n}" for word, n in sorted(df.items()))


def _table(name: str, found: Mapping[str, Iterable[tuple[int, int]]]) -> dict[str, str]:
    """Key -> points and documents, as one text a bucket: what costs time to load is the number of strings."""
    lines = [["\n"] for _ in range(BUCKETS)]
    for key, pairs in sorted(found.items()):
        packed = " ".join(f"{worth} {number}" for worth, number in pairs)
        lines[bucket(key)].append(f"{key}\t{packed}\n")
    return {f"{name} {number}": "".join(bucketed) for number, bucketed in enumerate(lines)}


def _line(text: str) -> str:
    return " ".join(text.split())
