"""What may not stand in a sentence: each guard is a pure function that says what is wrong, or nothing.

The order is that of `assistant.narrate.fence`: signs, placeholders, numbers, words; what a clause rests on and its sense come after these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from assistant.narrate import lexicon as lex
from assistant.narrate.freewords import FREE
from assistant.narrate.material import Kind
from assistant.narrate.placeholders import PLACEHOLDER
from assistant.narrate.sentence import Sentence
from assistant.narrate.vocabulary import (
    implied,
    plain,
    stemmed,
)
from assistant.narrate.wording import marks, pairs, runs, stem, tokens

LONGEST, MOST_WORDS = 420, 70  # characters and tokens of a sentence
# All else is markup, a link, a mention, a digit, a look-alike letter, or cannot be seen.
_SIGNS = {
    "en": re.compile(r"[A-Za-z ,.;:'’\"“”()=\-–—]*"),
    "zh": re.compile(r"[A-Za-z \u4e00-\u9fff，。：；、（）“”—…,.:;()=\-]*"),
}
_JOINED = re.compile(r"[A-Za-z]\.[A-Za-z]|\.\.|--|[a-z]://|\bwww\b|\bhttps?\b|[=](?!True|False|\{)", re.IGNORECASE)
_DEVICES = (
    "gpu_",
    "node_",
    "process_",
    "rank_",
    "job_",
    "nic_",
    "port_",
    "object_",
    "document_",
    "pci_",
    "link_",
    "nvswitch_",
    "container_",
    "pod_",
    "mig_",
)


def signs(s: Sentence) -> str:
    """Letters of its language and a few signs; all else only within placeholders."""
    bare = PLACEHOLDER.sub("", s.text)
    if not 2 <= len(s.text) <= LONGEST or len(s.tokens) > MOST_WORDS:
        return "length"
    bad = "".join(dict.fromkeys(c for c in bare if not _SIGNS[s.lang].fullmatch(c)))
    if bad:
        return f"a sign that is not allowed: {bad[:10]!a}"
    if found := _JOINED.search(PLACEHOLDER.sub("{", s.text).removesuffix(".")):
        return f"looks like a link or markup: {found[0]!a}"
    if s.lang == "zh" and not runs(bare):
        return "another language"
    return ""


# --- placeholders -------------------------------------------------------------------------


def placeholders(s: Sentence) -> str:
    """Each is known, belongs to a cited finding, and stands where the finding's own texts put it."""
    for name in s.names:
        slot = s.slots.get(name)
        if slot is None:
            return f"unknown placeholder {{{name}}}"
        if not slot.owners.intersection(s.cites):
            return f"{{{name}}} belongs to a finding that is not cited"
    return next((w for c in _stretches(s) for check in (_of_device, _of_value) if (w := check(s, c))), "") or _units(s)


def _stretches(s: Sentence) -> Iterable[str]:
    return [c for c in s.clauses if PLACEHOLDER.search(c)]


def _bare(text: str) -> list[str]:
    return PLACEHOLDER.findall(text)


def _of_device(s: Sentence, clause: str) -> str:
    """A thing that is only compared with is no subject: it may stand beside its own reading and nothing else."""
    names = _bare(clause)
    for name in names:
        if not name.startswith(_DEVICES) or any(f"{{{name}}}" in (i.where, *i.members) for i in s.items):
            continue
        lines = [line for i in s.items for line in i.seen if f"{{{name}}}" in line]
        texts = [t for i in s.items for t in (i.what, *i.actions, *i.then, i.standing) if f"{{{name}}}" in t]
        values = [n for n in names if n != name and not n.startswith(_DEVICES)]
        said = {m for m in marks(clause, s.lang) if not m.startswith("{")}
        status = any(len(_bare(line)) == 1 and said & set(marks(line, s.lang)) - _everywhere(s.lang) for line in lines)
        if not texts and not status and not any(f"{{{v}}}" in line for line in lines for v in values):
            return f"{{{name}}} is not what this finding is about"
    return ""


def _of_value(s: Sentence, clause: str) -> str:
    """A reading stands with its own thing, and in the words of its own line."""
    names = _bare(clause)
    things = [f"{{{n}}}" for n in names if n.startswith(_DEVICES)]
    said = {m for m in marks(clause, s.lang) if not m.startswith("{")} - _everywhere(s.lang)
    for name in names:
        lines = [line for i in s.items for line in i.seen if f"{{{name}}}" in line]
        if not lines or name.startswith(_DEVICES):
            continue
        named = {t for line in lines for t in things if t in line}
        if things and not named and any(t in line for i in s.items for line in i.seen for t in things):
            return f"{{{name}}} was not read from {things[0]}"
        own = max(len(said & _line_words(line, name, s.lang)) for line in lines)
        others = [
            (n, line) for i in s.items for line in i.seen for n in _bare(line)
            if f"{{{name}}}" not in line and n != name and "." in n and n not in names
        ]  # fmt: skip
        if any(len(said & _line_words(line, n, s.lang)) > own for n, line in others):
            return f"{{{name}}} is another reading"
    return ""


def _everywhere(lang: str) -> frozenset[str]:
    return stemmed(lex.FUNCTION) if lang == "en" else frozenset()


def _line_words(line: str, name: str, lang: str) -> set[str]:
    called = stem(re.sub(r"_\d+$", "", name).rpartition(".")[2])
    return {m for m in marks(line, lang) if not m.startswith("{")} | {called}


_COUNTED = frozenset(
    stem(w)
    for w in [
        "gpu",
        "gpus",
        "node",
        "process",
        "rank",
        "machine",
        "card",
        "job",
        "server",
        "switch",
        "port",
        "link",
        "container",
        "pod",
    ]
)
_FIRST, _LAST = frozenset({"first", "began", "begin", "started", "since"}), frozenset({"last", "latest", "recently"})


def _units(s: Sentence) -> str:
    """A number of events counts nothing else; the first time is not the last."""
    for i, t in enumerate(s.low[:-1]):
        if t.startswith("{") and t.endswith(".count}"):
            following = s.low[i + 1]
            title = {m for item in s.items for m in marks(item.what, s.lang)}
            if stem(following) in _COUNTED and stem(following) not in title:
                return f"{t} does not count {following}"
            if s.lang == "zh" and following[0] in "个块张台":
                return f"{t} does not count {following[:4]}"
    for clause in s.clauses:
        low = {t.lower() for t in tokens(clause)}
        times = {n.rpartition(".")[2] for n in _bare(clause)} & {"first", "last"}
        if len(times) == 1 and (
            (times == {"last"} and low & (_FIRST - {"since"})) or (times == {"first"} and low & _LAST)
        ):
            return "the first time and the last one"
    return ""


# --- numbers and words --------------------------------------------------------------------


def numbers(s: Sentence) -> str:
    """A number in words is a number."""
    single = not any(i.members for i in s.items)
    for i, w in enumerate(s.low):
        if w not in lex.NUMBERS:
            continue
        around = [w for w in (*s.low[max(0, i - 2) : i], *s.low[i + 1 : i + 3]) if w[0].isalpha()]
        written = any((a, w) in s.words.phrases or (w, a) in s.words.phrases for a in around)
        if w == "one" and s.low[i + 1 : i + 2] == ("source",) and all(x.kind is not Kind.FINDING for x in s.items):
            continue
        if w == "one" and single and any(a in ("of", "that", "this", "other", "same", "single", "a") for a in around):
            continue
        if not written:
            return f"a number in words: {w}"
    if s.lang == "zh":
        for run in runs(s.text):
            if bad := _han_number(run, s, single):
                return f"a number in words: {bad}"
    return ""


def _han_number(run: str, s: Sentence, single: bool) -> str:
    for i, c in enumerate(run):
        if c in lex.ZH_NUMBERS:
            near = {run[a:b] for a in range(max(0, i - 2), i + 1) for b in range(i + 1, i + 4) if 2 <= b - a <= 4}
            known = near & (lex.ZH_WORDS | {"下一步", "一次", "单一"}) or any(
                p in r for p in near for r in s.words.han if len(p) >= 2
            )
            if not known and not (single and c == "一" and run[i + 1 : i + 2] in set("块个台张条")):
                return run[max(0, i - 1) : i + 2]
    return ""


def words(s: Sentence) -> str:
    """Every word is one that holds any sentence together or one of a cited finding."""
    known = plain(s.lang) | s.words.all | s.words.denied | stemmed(FREE) | implied(s.words.all) | _READS
    if any(i.kind is not Kind.FINDING for i in s.items):
        known |= _OUTSIDE
    listed = lex.NEGATIONS | lex.HEDGES | lex.CERTAIN | lex.WELL | lex.ILL | lex.ADVISING | lex.NUMBERS
    for t in s.tokens:
        strange = t[0].isascii() and t[0].isalpha() and stem(t) not in known and not _driver_logs(s, t)
        judged = s.lang == "en" and (t.lower() in listed or t.lower().replace("’", "'").endswith("n't"))  # by others
        if strange and not judged:
            return f"a word that no cited finding says: {t}"
    return ""  # Han is taken apart by `assistant.narrate.support_zh`


_OUTSIDE = frozenset(
    stem(w) for w in ("answer", "read", "see", "source", "rule", "exclude", "decide")
)  # told of what was not found
_READS = frozenset(stem(w) for w in ("reach", "run", "spend", "count", "keep", "hold", "raise"))  # what a reading does
_LOGS = frozenset(stem(w) for w in ["log", "logged", "record", "print", "report", "write", "say", "note"])


def _driver_logs(s: Sentence, word: str) -> bool:
    """The driver writes every XID: that it logged one names no cause."""
    at = s.tokens.index(word)
    return word.lower() in ("driver", "kernel") and any(
        stem(t) in _LOGS for t in s.tokens[at + 1 : at + 4] if t[0].isalpha()
    )


def uncovered(run: str, han: tuple[str, ...]) -> str:
    """The place from which `run` is made neither of listed words nor of pieces of the findings' texts."""
    reach = {0}
    for i in range(len(run)):
        if i not in reach:
            continue
        for j in range(i + 1, min(len(run), i + 12) + 1):
            piece = run[i:j]
            listed = piece in lex.ZH_WORDS or piece in _HAN_LISTED
            if listed or (j - i >= 2 and any(piece in r for r in han)):
                reach.add(j)
    if len(run) in reach:
        return ""
    return run[max(reach) : max(reach) + 4]


_HAN_LISTED = frozenset((*lex.ZH_HEDGES, *lex.ZH_CERTAIN, *lex.ZH_WELL, *lex.ZH_ILL, *lex.ZH_DEEDS, *lex.ZH_PLAIN, *lex.ZH_ADVISING,
                         *lex.ZH_NEGATIONS, "一个", "一块", "一台", "一条", "排除", "尚", "尚未",
        "无法",
        "自动", "拖", "拖慢"))  # fmt: skip


@cache
def listed_pairs() -> frozenset[str]:
    """Neighbouring characters of the listed words: they tell nothing of a finding."""
    return frozenset(p for w in (*lex.ZH_WORDS, *_HAN_LISTED) for p in pairs(w))
