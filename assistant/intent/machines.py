"""Machines by their place in a sentence, where the name alone does not tell: "is hole healthy?", "what about hole", "hole 健康吗".

Two kinds of names. A word of every day that the inventory calls a machine by is that machine where a machine is asked about, and
the word everywhere else ("a hole in the log"). A word that nobody knows is a machine only where nothing else can stand ("is
badger healthy?"): it is asked back, for an answer about this machine would be one to another question.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re
    from collections.abc import Sequence
    from typing import TypeAlias

    Frames: TypeAlias = Sequence[
        tuple[re.Pattern[str], re.Pattern[str]]
    ]  # what stands ahead of the name, and behind it

AHEAD, BEHIND = 60, 60  # characters that are looked at
_SHORTEST = 3

# A clause begins; it ends. \0 stands where another slot was found.
_START = r"(?:^|[\0.!?;:,()\n。！？；，：]\s*|(?<![a-z'-])(?:and|but|so|please|hey|hi|hello|now|then|ok|okay|well|also|because|since)\s+)"
_END = (
    r"(?=\s*(?:$|[\0.!?;:,)\n。！？；，]|(?:now|today|again|please|right now|at the moment|currently|or not|yet|still|and|or|but|since|"
    r"after|at all|these days|this morning|anymore|any more|for training|for a job)(?![a-z0-9])))"
)
_HOW = (
    r"(?:\s+(?:still|really|even|now|currently|fully|completely|actually|also|again|always|so|very|too|that|all|definitely|suddenly|"
    r"just|not|being|been|getting|back|feeling|a bit))*\s+"
)
_STATE = (
    r"(?:healthy|unhealthy|ok|okay|fine|good|bad|alright|all right|alive|dead|up|down|sick|broken|slow|slower|usable|busy|idle|free|"
    r"stable|unstable|reachable|unreachable|drained|cordoned|hot|overheating|overheated|throttling|throttled|hanging|hung|stuck|"
    r"faulty|failing|in (?:good|bad) (?:shape|health|order|condition)|safe(?: to use)?|ready|working|running|online|offline|crashing|"
    r"rebooting|acting up|degraded|available|well|loaded|overloaded|the problem|to blame)"
)
_DOES = (
    r"\s+(?:still\s+)?(?:look|seem|feel|work|hang|fail|crash|throttle|overheat|reboot|need|have|keep)(?:ed|s)?(?![a-z])"
)
_OF = (
    r"(?:health|state|status|condition|temperatures?|clocks?|memory|utili[sz]ation|power|gpus?|driver|uptime|errors?|load|history|xids?|"
    r"topology|problems?|findings?|summary|report)"
)
_ASKED = (
    r"(?:(?:can|could|would|will)\s+you\s+|let'?s\s+|let\s+us\s+|i\s+want\s+(?:you\s+)?to\s+)?(?:please\s+)?"
    r"(?:re-?check|check|diagnose|inspect|examine|look\s+(?:at|into)|(?:have|take)\s+a\s+look\s+at|analy[sz]e|debug|troubleshoot|monitor)"
)
_MAY = (
    r"(?:(?:can|could|may|should|shall|must)\s+(?:i|we|one|you)|is\s+it\s+(?:safe|ok|okay|fine)\s+to|do\s+(?:i|we)\s+(?:have|need)\s+to)\s+"
    r"(?:still\s+|safely\s+|now\s+|just\s+|to\s+|keep\s+|continue\s+)*(?:use|using|trust|trusting|drain|cordon|reboot|restart|reset|return)"
)
# Ahead of a name among Han characters: not the rest of an English phrase.
_NO_PHRASE = r"(?:^|[^A-Za-z0-9_\s.'-]\s*)$"
_ZH_HOW = r"\s*(?:这台|那台|这个|那个)?(?:机器|节点|服务器|主机)?(?:现在|目前|今天|还|是否|是不是|到底|最近|是|很|太|有点|又|总|一直|也|到|在)*\s*"
_ZH_STATE = (
    r"(?:健康|健不健康|正常|正不正常|好吗|好着|好了|好不好|怎么样|怎样|如何|咋样|有问题|有没有问题|有什么问题|有啥问题|没问题|没事|怎么了|咋了|怎么回事|"
    r"能用|能不能用|可用|可以用|能继续用|坏|挂|宕机|慢|变慢|卡住|卡死|掉线|掉卡|过热|状态|情况|稳定|在线|空闲|忙|为什么|为何|为啥|怎么这么)"
)
_ZH_ASKED = r"(?:检查|看看|看一下|看下|查看|诊断|查一下|查查|体检|排查|检测|分析|巡检|换成|改看)(?:一下|下)?\s*$"

# Where a machine of the inventory is meant, whatever else its name means.
_KNOWN_FRAMES = (
    (rf"{_START}(?:why\s+|how\s+come\s+)?(?:is|was|isn't|is\s+not|be)\s+$", rf"{_HOW}{_STATE}{_END}"),
    (rf"{_START}(?:why\s+|when\s+|how\s+often\s+)?(?:does|did|will)\s+$", _DOES),
    (rf"{_START}(?:how\s+(?:is|was)|how's)\s+$", rf"(?:\s+(?:doing|feeling|looking|going|holding\s+up))?{_END}"),
    (rf"{_START}(?:(?:what|how)\s+about|same\s+(?:for|on)|try|switch\s+to)\s+$", _END),
    (r"^\s*(?:and|now|or|and\s+for|and\s+on)\s+$", _END),
    (r"^\s*$", r"\s*[?!.。？！]*\s*$"),
    (r"(?<![a-z])(?:wrong|up|matter|problems?|trouble|issues?|going\s+on|happening|happened)\s+with\s+$", _END),
    (rf"(?<![a-z]){_MAY}\s+$", _END),
    (rf"{_START}{_ASKED}\s+$", _END),
    (rf"(?:{_START}|(?<![a-z])(?:whether|if|think)\s+)$", rf"\s+(?:is|was|looks?|seems?|feels?|has\s+been){_HOW}{_STATE}{_END}"),
    (r"(?<![a-z])(?:show|get|give|print|list|check|what\s+is|what\s+are|what's)(?:\s+me)?\s+$", r"'s\s+[a-z]"),
    (rf"(?<![a-z]){_OF}\s+(?:of|for|on)\s+$", _END),
    (_NO_PHRASE, rf"{_ZH_HOW}{_ZH_STATE}"),
    (_NO_PHRASE, r"\s*(?:上|上面|的(?:健康|状态|情况|温度|显存|利用率|功耗|驱动|日志|gpu|卡))"),
    (r"(?:^|[，。？！,?!]\s*)(?:那么?|还有|换成|对于)?\s*$", r"\s*呢"),
    (_ZH_ASKED, r"(?=\s*(?:$|[，。？！,?!吧的上]))"),
    (r"(?:能|可以|应该|该|要)(?:不能|不要|否)?(?:继续|再|还)?(?:用|使用|下线|排空|重启)\s*$", r"(?=\s*(?:$|[，。？！,?!吗么了]))"),
)  # fmt: skip
# Where nothing but a machine can stand: what is said of it is said of machines.
_OWN_STATE = r"(?:healthy|unhealthy|reachable|unreachable|drained|cordoned|in (?:good|bad) (?:shape|health|condition))"
_ANY_FRAMES = (
    (rf"{_START}(?:is|was|isn't|is\s+not)\s+(?:(?:the\s+)?(?:node|host|machine|server|box)\s+)?$", rf"{_HOW}{_OWN_STATE}{_END}"),
    (rf"{_START}how\s+healthy\s+is\s+$", _END),
    (_NO_PHRASE, rf"{_ZH_HOW}(?:健康|健不健康)(?:吗|么|嘛|不|与否|[?？]|\s*$)"),
)  # fmt: skip


def asked_about(ahead: str, behind: str) -> bool:
    """Whether a machine is asked about between the two texts, when the word there can be the name of one."""
    return _fits(_compiled("known"), ahead, behind)


def only_machine(name: str, ahead: str, behind: str) -> bool:
    """Whether `name`, which no inventory holds, can be nothing but a machine: no word that anybody knows, in the one place."""
    return is_strange(name) and _fits(_compiled("any"), ahead, behind)


def is_strange(name: str) -> bool:
    """Whether `name` is no word of any language, field or page that is known here, nor made of two of them."""
    from assistant.intent.typos import is_word

    parts = [part for part in name.casefold().replace("_", "-").split("-") if part]
    return len(name) >= _SHORTEST and name.isascii() and bool(parts) and not all(is_word(p) for p in parts)


def means_itself(word: str) -> bool:
    """Whether a word is of the field or of its questions ("memory", "training", "it"): it means that, whatever a machine is called."""
    from assistant.intent.typos import is_lexical

    return is_lexical(word) and word not in _far_off()


def _fits(frames: Frames, ahead: str, behind: str) -> bool:
    return any(first.search(ahead[-AHEAD:]) and last.match(behind[:BEHIND]) for first, last in frames)


@cache
def _compiled(which: str) -> Frames:
    """The frames, compiled when a sentence first needs them."""
    import re

    pairs = _KNOWN_FRAMES if which == "known" else _ANY_FRAMES
    return [(re.compile(ahead, re.IGNORECASE), re.compile(behind, re.IGNORECASE)) for ahead, behind in pairs]


@cache
def _far_off() -> frozenset[str]:
    """Words of other trades, in which machines have their names: ovens, dogs, airports."""
    from knowledge.lexicon import lexicon

    return frozenset(lexicon().roles.get("elsewhere", ()))
