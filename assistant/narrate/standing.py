"""What may not be said of a finding: its opposite, more than it knows, deeds that are not its own, another verdict.

Each guard is a pure function that says what is wrong, or nothing. Words, signs and placeholders were judged before
(`assistant.narrate.guards`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from assistant.narrate import lexicon as lex
from assistant.narrate.guards import listed_pairs, uncovered
from assistant.narrate.material import Item, Kind
from assistant.narrate.sentence import Sentence
from assistant.narrate.vocabulary import (
    IMPERATIVES,
    denied_in,
    han_negations,
    imperative,
    negated_at,
    plain,
    scope,
    stemmed,
    with_alike,
    words_of,
)
from assistant.narrate.wording import runs, stem, tokens

# --- polarity, certainty ------------------------------------------------------------------

_LACKING = frozenset(
    stem(w)
    for w in [
        "stop",
        "fail",
        "lose",
        "cease",
        "without",
        "silent",
        "unresponsive",
        "unreachable",
        "vain",
        "refuse",
        "lack",
        "missing",
        "hang",
        "until",
        "once",
        "after",
        "before",
        "when",
    ]
)
_UNSEEN_EN = frozenset(
    stem(w) for w in ["see", "read", "look", "answer", "know", "give", "measure", "take", "tell", "reach", "check"]
)
_UNUSED = frozenset(stem(w) for w in ["use", "usable", "service", "put", "place", "schedule", "start", "send"])


def polarity(s: Sentence) -> str:
    """Nothing is denied that the finding asserts, and nothing asserted that it denies."""
    if s.lang == "zh":
        return _polarity_zh(s) or _kinds(s)
    allowed = with_alike(s.words.denied) | _may_deny(s)
    reached: set[str] = set()
    apart = any(i.id in s.material.reaches(j.id) for i in s.items for j in s.items)
    for at in negated_at(s.tokens):
        if (
            apart
            and s.low[at + 1 : at + 3]
            and s.low[at + 2 : at + 3] in (("separate",), ("independent",), ("own",), ("new",))
        ):
            continue  # "not a separate fault" of what another cited finding explains
        found = scope(s.tokens, at) or [stem(t) for t in s.tokens[at + 1 : at + 5] if t[0].isalpha()]
        reached |= set(found) | {stem(t) for t in s.tokens[at + 1 : at + 6] if t[0].isalpha()}
        if at and (s.low[at - 1], s.low[at]) in s.words.phrases and s.low[at] in ("nothing", "none", "nobody"):
            continue
        flips = found and found[0] in _LACKING - s.words.denied
        if not found or flips or not (found[0] in allowed or (not scope(s.tokens, at) and set(found) & allowed)):
            return f"denies what the finding does not deny: {' '.join(s.tokens[at : at + 4])}"
        here = {t.lower() for c in s.clauses if negated_at(tokens(c)) for t in tokens(c)}
        if found[0] in _UNUSED and here & {"once", "after", "when", "if"}:
            return "denies use after what allows it"
    if any(len(negated_at(tokens(c))) > 1 for c in s.clauses):
        return "denies twice"
    return _asserts(s, reached) or _kinds(s)


def _asserts(s: Sentence, reached: set[str]) -> str:
    """A word that the finding only denies, without a denial."""
    if imperative(s.text) or set(s.low) & lex.ADVISING:
        return ""
    must = s.words.only_denied | s.words.title_denied
    for i, t in enumerate(s.tokens):
        if not t[0].isalpha() or stem(t) not in must or stem(t) in reached:
            continue
        ahead = {stem(x) for x in s.tokens[max(0, i - 5) : i] if x[0].isalpha()}
        late = "timed" in s.low[i + 1 : i + 4]
        alone = len(must & set(s.marks)) == 1 and t.lower() in ("driver", "interface", "management")
        if not ahead & _LACKING and not late and not alone:
            return f"asserts what the finding denies: {t}"
    return ""


def _may_deny(s: Sentence) -> frozenset[str]:
    out: set[str] = set()
    if any(i.kind in (Kind.UNSEEN, Kind.UNDECIDED) for i in s.items):
        out |= _UNSEEN_EN
    if all(i.kind is Kind.RULED_OUT for i in s.items):
        out |= {m for m in s.marks if not m.startswith("{")}
    if s.material.usable in ("no", "not_yet") and any(i.standing for i in s.items):
        out |= _UNUSED
    if any(m in s.words.denied for m in (stem("action"), stem("need"), stem("nothing"))):
        out |= {stem(w) for w in ["need", "action", "do", "require", "necessary"]}
    return frozenset(out)


def _polarity_zh(s: Sentence) -> str:
    free = "可用使用查看读取判断"
    for said, found in han_negations(s.text):
        generic = any(p in free for p in found) and (
            s.material.usable in ("no", "not_yet") or any(i.kind is not Kind.FINDING for i in s.items)
        )
        generic = generic or (
            "不是原因" in said and any(w in r for r in s.words.han for w in ("原因不在", "不是原因", "非原因"))
        )
        ruled_out = all(i.kind is Kind.RULED_OUT for i in s.items)
        if not (set(found) & s.words.denied or (found and generic) or ruled_out):
            return f"denies what the finding does not deny: {said}"
    reached = denied_in(s.text, "zh")
    listed = listed_pairs()
    sure = [m for m in s.marks if m in s.words.only_denied and m not in reached and m not in listed]
    named = [m for m in s.marks if m in s.words.title_denied and m not in reached]
    if (len(sure) > 1 or named) and not any(w in s.text for w in ("直到", "之前", "恢复", "超时", "停止", "等待")):
        return f"asserts what the finding denies: {(named or sure)[0]}"
    return ""


_SAYS_SO: dict[Kind, tuple[tuple[str, ...], tuple[str, ...]]] = {
    Kind.RULED_OUT: (("ruled out", "excluded", "speaks against", "speak against"), ("排除",)),
    Kind.UNDECIDED: (
        ("undecided", "open", "unknown", " not ", "unclear", "cannot", "whether"),
        ("未", "不", "无法", "是否"),
    ),
    Kind.UNSEEN: (
        (" not ", "unseen", "missing", "unread", "no answer", "cannot", "unavailable", "without"),
        ("未", "不", "无法", "没有"),
    ),
}


def _kinds(s: Sentence) -> str:
    """What was ruled out is told as ruled out, what was not seen as not seen."""
    for item in s.items:
        if (says := _SAYS_SO.get(item.kind)) and not any(w in f" {s.text.lower()} " for w in says[s.lang == "zh"]):
            return f"{item.id} is told as if it were found"
    if any(i.kind is Kind.RULED_OUT for i in s.items) and "not ruled out" in s.text.lower():
        return "told as not ruled out"
    return ""


def certainty(s: Sentence) -> str:
    """No surer than the finding."""
    found = [i for i in s.items if i.kind is Kind.FINDING]
    hedged = (
        bool(set(s.low) & lex.STRONG_HEDGES) or "points to" in s.text
        if s.lang == "en"
        else any(w in s.text for w in lex.ZH_HEDGES)
    )
    sure = set(s.low) & lex.CERTAIN if s.lang == "en" else [w for w in lex.ZH_CERTAIN if w in s.text]
    unsure = [i for i in found if i.certainty in ("probable", "possible")]
    sure_titles = frozenset().union(*(_title(i, s.lang) for i in found if i not in unsure))
    for item in unsure:
        names_it = set(s.marks) & _title(item, s.lang) - sure_titles
        if names_it and not hedged:
            return f"{item.id} is only {item.certainty}"
    if sure and (unsure or hedged or not found):
        return f"surer than the finding: {min(sure)}"
    return ""


def _title(item: Item, lang: str) -> frozenset[str]:
    return words_of(item, lang).title


# --- deeds and verdict --------------------------------------------------------------------


def deeds(s: Sentence) -> str:
    """Nobody is told to do what is no action of a cited finding."""
    if s.lang == "zh":
        return _deeds_zh(s)
    commands = any(n.startswith("cmd_") for n in s.names)
    told = False
    for clause in s.clauses:
        words = [t for t in tokens(clause) if t[0].isalpha()]
        low = {w.lower() for w in words}
        does = {stem(w) for w in words} & (stemmed(lex.DEEDS) | _DOING)
        told = (
            imperative(clause.strip())
            or bool(low & lex.ADVISING and does)
            or (told and clause.strip().split(" ")[0] in lex.DEEDS)
        )
        if told and (wrong := _deed(s, words, commands)):
            return wrong
    return ""


def _deed(s: Sentence, words: Iterable[str], commands: bool) -> str:
    for t in words:
        if t.lower() == "switch" and any("=True" in a for i in s.items for a in i.actions):
            continue
        if stem(t) in s.words.action or t.lower() in lex.NEGATIONS:
            continue
        if stem(t) in stemmed(lex.DEEDS) and not (commands and stem(t) == "run"):
            return f"no action of a cited finding: {t}"
        if stem(t) in s.words.all and stem(t) not in plain("en") | s.words.title:
            return f"no part of an action of a cited finding: {t}"
    return ""


_TELLING_ZH = re.compile("请|(?<![响对相反适供])应(?![用答])|必须|建议|务必|需要|(?<![需必重主不])要")


def _deeds_zh(s: Sentence) -> str:
    told = " ".join(s.words.han_action)
    every = " ".join(s.words.han)
    advising = bool(_TELLING_ZH.search(s.text))
    on = ("打开", "启用") if any("=True" in a for i in s.items for a in i.actions) else ()
    for word in lex.ZH_DEEDS:
        if word in s.text and word not in on and word not in told and (advising or word not in every):
            return f"no action of a cited finding: {word}"
    if advising and (told or every):
        found = _TELLING_ZH.search(s.text)
        start = found.start() if found else 0
        for run in runs(s.text[start:]):
            titles = tuple(r for i in s.items for r in runs(i.what))
            if at := uncovered(run, (*s.words.han_action, *titles)):
                return f"no part of an action of a cited finding: {at}"
    return ""


_USED = re.compile(
    r"\b(?:can|could|may)\b[^.,;]{0,24}\b(?:use|used|service)\b|\bin (?:use|service)\b|\bkeep(?:s)? using\b|\bcontinue to (?:use|be used)\b|\bstays? in\b"
)
_STATE = ("healthy", "fine", "ok", "okay", "good", "normal", "well", "unaffected", "stable", "operational")
_DOING = frozenset(stem(w) for w in IMPERATIVES)
_LATER = frozenset({"until", "once", "before", "after", "again", "out"})


def verdict(s: Sentence) -> str:
    """What is said of use and health is what the verdict says."""
    m = s.material
    if s.lang == "zh":
        return _verdict_zh(s)
    denied = negated_at(s.tokens)
    for i, w in enumerate(s.low):
        if w in lex.ILL and (m.usable == "yes" or w not in s.low or stem(w) not in s.words.all | {stem("unusable")}):
            return f"not the verdict: {w}"
        if w not in lex.WELL or w in ("use", "used", "using", "safely", "normally"):
            continue
        no = any(0 < i - at <= 4 for at in denied)
        looks = any(stem(x) in (stem("look"), stem("seem"), stem("appear")) for x in s.low[max(0, i - 2) : i])
        if w in _STATE:
            right = (m.state == "ok" and not no) or (
                stem(w) in s.words.all - s.words.only_denied and (m.usable == "yes" or looks) and not no
            )
        else:
            right = (m.usable == "yes" and not no) or (
                m.usable in ("no", "not_yet") and (no or (bool(_LATER & set(s.low)) and "until" not in s.low))
            )
        if not right and not (no and stem(w) in s.words.denied and m.usable != "yes"):
            return f"not the verdict: {w}"
    if found := _USED.search(s.text.lower()):
        no = bool(denied) or bool(_LATER - {"until"} & set(s.low)) or "out" in s.low
        if (m.usable == "yes" and denied) or (m.usable != "yes" and not no) or m.usable == "unknown":
            return f"not the verdict: {found[0]}"
    return ""


def _verdict_zh(s: Sentence) -> str:
    usable = s.material.usable
    text = s.text
    for word in lex.ZH_ILL:
        if word in text and not any(word in r for r in s.words.han):
            return f"not the verdict: {word}"
    no = bool(han_negations(text))
    for word in ("可用", "可以使用", "继续使用", "可以用"):
        if word in text:
            later = any(w in text for w in ("直到", "之后", "后", "之前"))
            if (usable == "yes" and no) or (usable != "yes" and not (no or later)):
                return f"not the verdict: {word}"
    for word in ("健康", "正常", "安全", "良好", "完好", "没有问题", "无问题", "就绪"):
        if word in text and s.material.state != "ok" and not (no and any(word in r for r in s.words.han)):
            return f"not the verdict: {word}"
    if any(w in text for w in ("请勿使用", "勿使用", "不要使用", "停用")) and usable == "yes":
        return "not the verdict"
    return ""
