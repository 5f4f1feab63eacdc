"""What an English clause says: its words without those that say nothing, and whether it tells somebody to do something."""

from __future__ import annotations

import re
from functools import lru_cache

from assistant.narrate import freewords as fw
from assistant.narrate import lexicon as lex
from assistant.narrate.material import Item
from assistant.narrate.placeholders import PLACEHOLDER
from assistant.narrate.roles import entity
from assistant.narrate.vocabulary import IMPERATIVES, imperative, implied, stemmed, with_alike
from assistant.narrate.wording import stem, tokens


def stems_of(words: str) -> frozenset[str]:
    """The stems of a list of words."""
    return frozenset(stem(w) for w in words.split())


_DEED = re.compile(
    r"\b(?:has|have|is|are) to\b|\bto be [a-z]+(?:ed|en|t)\b|^\s*[A-Za-z]+ing\b.*\b(?:help|helps|enough|fix|action|remedy|step)\b|\b(?:fix|remedy|action|step|task)\b.*\b(?:is|would be)\b|\bis (?:the |a )?(?:next |right |only )?(?:step|action|fix|remedy|thing)\b"
)
REMEDY = re.compile(r"\bis (?:the|a) (?:remedy|fix|cure|way out)\b")
CONDITION = re.compile(rf"^\s*(?:{'|'.join(sorted(fw.CONDITIONS))})\b", re.IGNORECASE)
_PLACE = re.compile(
    r"\b(?:on|of|in|for) (?:the|this|that|its|a|one) (?:whole )?(?:node|machine|server|host)s?\b(?! of)"
)
_LOGS = re.compile(
    r"\bthe (?:driver|kernel) (?:also |then )?(?=(?:log|record|report|print|sa|note|wr)[a-z]*\b)", re.IGNORECASE
)
_IDIOMS = re.compile(
    r"\b(?:stopped|stops|ceased)(?= [a-z]+ing\b)|\bso far\b|\bmost (?=probably|likely)|\btoo(?=[.,;]|$)|\bas soon as\b|\bas well\b|(?<=slow) down\b|(?<=slows) down\b|(?<=slowed) down\b|\brun (?=\{cmd)|\bonly (?=(?:shows|records|reports|means)\b)|\bat least(?= \{)|\bonly(?= \{f)|\bboth (?=the\b|its\b)|\bfail(?:s|ed)? to (?=[a-z])"
    r"|\bover(?= (?:the |this |its )?(?:PCIe|bus|NVLink|link|network|InfiniBand|\{))|\b(?:after|before|until) (?:that|then|this)\b(?! [a-z]+ (?:has|is))",
    re.IGNORECASE,
)
# What a reading does: "reaches {f1.value}", "keeps {f1.used}".
_READS = re.compile(r"\b(?:reach|run|spend|count|keep|hold|use)[a-z]*(?= (?:at |to )?\{f\d)", re.IGNORECASE)


def told_to(part: str, verbs: frozenset[str]) -> bool:
    """Whether a clause tells somebody to do something; `verbs` are the deeds of the cited findings."""
    low = [t.lower() for t in tokens(part) if t[0].isalpha()]
    low = low[1:] if low[:1] in (["then"], ["please"], ["next"], ["now"], ["first"]) else low
    starts = bool(low) and stem(low[0]) in with_alike(verbs) and not low[0].endswith(("s", "ed"))
    return (
        starts
        or (imperative(part.strip()) and low[0] != "power")
        or bool(set(low) & lex.ADVISING)
        or bool(_DEED.search(part))
    )


@lru_cache(maxsize=1024)
def deed_verbs(text: str) -> frozenset[str]:
    """The stems of the verbs with which a text tells people to do something."""
    low = [t.lower() for t in tokens(text) if t[0].isalpha()]
    known = stemmed(lex.DEEDS - {"power"}) | stemmed(frozenset(IMPERATIVES)) | {"inspect", "end", "enlarg", "run"}
    return frozenset(stem(w) for k, w in enumerate(low) if not k or stem(w) in known)


@lru_cache(maxsize=4096)
def content(text: str) -> frozenset[str]:
    """The stems of a text that say something."""
    free = stemmed(fw.FREE)
    for idiom in (CONDITION, _LOGS, _PLACE, _IDIOMS, _READS):
        text = idiom.sub(" ", text)
    return frozenset(
        stem(t) for t in tokens(text)
        if t[0].isascii() and t[0].isalpha() and not _negation(t) and stem(t) not in free
    )  # fmt: skip


def _negation(word: str) -> bool:
    return word.lower() in lex.NEGATIONS or word.lower().replace("’", "'").endswith("n't")


@lru_cache(maxsize=4096)
def given(text: str) -> frozenset[str]:
    """The stems that a statement lends: its words, those of the same meaning, and what they imply."""
    words = {stem(t) for t in tokens(text) if t[0].isascii() and t[0].isalpha()}
    return frozenset(with_alike(words)) | implied(words)


@lru_cache(maxsize=512)
def kinds(item: Item) -> frozenset[str]:
    """The kinds of thing that a finding is about, by where it is and what it is called."""
    own = {stem(entity(n)) for n in PLACEHOLDER.findall(" ".join((item.where, *item.members))) if entity(n)}
    title = {stem(t) for t in tokens(item.what) if t[0].isalpha()}
    return with_alike((own | title) & stemmed(fw.ENTITIES))
