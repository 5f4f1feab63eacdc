"""That a fault came back, told in words: "again after the reboot", "third time this week", 重启后又出现."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from assistant.intent import things
from assistant.intent.slots import Named
from assistant.intent.told import TOLD
from knowledge.lazy import lazy
from knowledge.observation import Observation, Origin, Scope, gpu, node
from knowledge.text import excerpt
from rules.life import BACK_AFTER

FACT = BACK_AFTER
_I = re.IGNORECASE
# From what helps least to what should have helped most: of several that were tried the last one counts.
_CURES = (
    ("reload", r"re-?load(?:ed|ing)?(?: of)? (?:the |our )?driver|driver re-?load|重新加载驱动|重载驱动"),
    ("reset", r"(?:gpu[ -])?reset(?:s|ting|ted)?|复位|重置"),
    ("reboot", r"re-?boot(?:s|ed|ing)?|power[- ]?cycl(?:e|ed|ing)|(?:cold|warm) boot|restart(?:ed|ing)? (?:of )?(?:the |our )?(?:node|machine|server|host|box)|重启|断电|冷启动"),
    ("reseat", r"re-?seat(?:ed|ing|s)?|re-?insert(?:ed|ing)?|重新插拔|重新插|重插|插拔"),
    ("replacement", r"(?:swap(?:ped|ping)?|replac(?:ed|ing|ement)|chang(?:ed|ing)|new)(?: of)?(?: out)?(?: (?:the|a|our|this|that|it))?(?: (?:gpu|card|board|cable|riser|part))?|换(?:了|过|完)?(?:新|一?[张块])?(?:卡|线|板|gpu)?"),
)  # fmt: skip
_ANY = "|".join(f"(?P<{name}>{pattern})" for name, pattern in _CURES)
_AGAIN_EN = r"(?<![a-z])(?:again|back(?! (?:up|online|in (?:service|production|rotation|the (?:pool|cluster))|to normal|alive|and running))|came back(?! (?:up|online|clean|fine|healthy|ok))|comes back|returned|returns|recur\w*|re-?appear\w*|re-?occur\w*|still|once more|anew|same (?:xid|error|fault|thing|gpu|card)|(?:second|third|fourth|fifth|2nd|3rd|[4-9]th) time)(?![a-z])"
_AGAIN_ZH = r"又|再次|再度|还是|仍|依然|照样|复发|重现|重新出现|第[二三四五2-9]次"
_AFTER_EN = lazy(
    rf"(?<![a-z])(?:after|since|post|despite|following|even with)\s+(?:[a-z']+\s+){{0,4}}?(?:{_ANY})(?![a-z])", _I
)
_THEN_EN = lazy(
    rf"(?<![a-z])(?:we|i|they|already|ops|support|node|machine|server)\s+(?:[a-z']+\s+){{0,3}}?(?:{_ANY})(?![a-z])[^.;?!]{{0,40}}?(?:,|(?<![a-z])(?:and|but|yet|now|then)(?![a-z]))",
    _I,
)
_AFTER_ZH = lazy(rf"(?:{_ANY})[^，。；,;？?]{{0,4}}?(?:[之以]?后|了|过|完)|(?:重启|复位)(?=[^，。；,;]{{0,6}}[又仍还])")
_AGAIN = lazy(rf"{_AGAIN_EN}|{_AGAIN_ZH}", _I)
# third time this week | 2 times since monday | 这周第三次
_TIMES = lazy(
    r"(?<![a-z0-9])(?:second|third|fourth|fifth|sixth|2nd|3rd|[4-9]th|[1-9][0-9]th)(?![a-z])[^,.;?!]{0,40}?(?<![a-z])(?:time|this (?:week|month|year|quarter)|today|in a row|in (?:a|one|two|three|[0-9]+) (?:days?|weeks?|months?)|since)(?![a-z])"
    r"|(?<![a-z])(?:twice|thrice|(?:two|three|four|five|[2-9]|[1-9][0-9]) times)\s+(?:this|in|since|today|already|now|within|a|per)(?![a-z])"
    r"|(?<![a-z])(?:keeps? (?:coming back|happening|returning|recurring)|happens? again and again|again and again|over and over)(?![a-z])"
    r"|第\s?[二三四五六七八九十2-9]\s?次|(?:已经|都|这周|本周|这个?月|今天|最近)[^，。；]{0,4}[两二三四五六七八九十2-9]\s?次|反复(?:出现|掉|报)|三番五次|隔三差五|屡次",
    _I,
)
_OVER = lazy(
    r"(?<![a-z])(?:gone|fine|ok|okay|clean|healthy|disappeared|not (?:come|came) back|no longer|never came back|(?:did|has|have)(?:n't| not) (?:come back|recur\w*|re-?appear\w*|return\w*)|works? again|(?:is|are|was) (?:back|up) (?:again|online|up)|back to normal|again (?:ok|fine))(?![a-z])|好了|正常了|恢复|没再|没有再|不再|未再|消失",
    _I,
)


def back_after(text: str) -> str:
    """What a sentence says that a fault came back after, as a value of the fact; empty where it says nothing of the kind."""
    if _OVER.search(text):
        return ""
    if _AGAIN.search(text):
        found = [m for p in (_AFTER_EN, _THEN_EN, _AFTER_ZH) for m in p.finditer(text) if _elsewhere(text, m)]
        names = [name for name, _ in _CURES if any(m[name] for m in found)]
        if names:
            return names[-1]
    return "handled" if _TIMES.search(text) else ""


def _elsewhere(text: str, cure: re.Match[str]) -> bool:
    """Whether that it came back is said of something else than the cure itself: "reset it again" says nothing of a fault."""
    rest = f"{text[: cure.start()]} | {text[cure.end() :]}"
    return _AGAIN.search(rest) is not None


def told(text: str, named: Named) -> Iterator[Observation]:
    """That it came back, of each GPU that is named, else of the one that nobody named."""
    if value := back_after(text):
        filled = named.slots
        host = node(filled.node[0] if len(filled.node) == 1 and "[" not in filled.node[0] else "").id
        for called in tuple(map(things.named, filled.gpu)) or (things.UNSAID,):
            yield Observation(FACT, gpu(called, host), value, source=TOLD, excerpt=excerpt(text), origin=Origin.TOLD)


def without(clauses: Sequence[str]) -> tuple[str, ...]:
    """The clauses that say more than that something was done about it, or that it came back."""
    patterns = (_AFTER_EN, _THEN_EN, _AFTER_ZH, _TIMES)
    return tuple(c for c in clauses if not (_short(c) and any(p.search(f"{c},") for p in patterns)))


_SHORT = 10  # words
_HAN = 14  # characters


def _short(clause: str) -> bool:
    return len(re.findall(r"[a-z]+", clause, _I)) <= _SHORT and len(re.findall("[\u4e00-\u9fff]", clause)) <= _HAN


def of_fault(told: Sequence[Observation]) -> bool:
    """Whether something was told that can come back: an event, or the state of hardware."""
    return any(o.fact != FACT and o.subject.up(Scope.NODE) is not None for o in told)
