"""What a person takes back within the sentence: "not A but B", "不是 A 是 B", "I never said A". Only what stands is read.

Of two values of a kind the second is meant. Where A and B are not of a kind ("not loaded but all GPUs show") both are said.
"""

from __future__ import annotations

import re

from knowledge.lazy import lazy

_I = re.IGNORECASE
# temp is not 67 but 97 | not xid 79 but xid 74 | not x16 but x8 | not 0 but 14 uncorrectable
_NOT_BUT = lazy(
    r"(?<!why )(?<!if )(?<![a-z])(?P<is>is|are|was|were)?(?:(?<=s)n't|\s*(?<![a-z])not)\s+(?!only|just)[^,.;?!\n]{0,20}?[0-9][^,;?!\n]{0,12}?,?\s+but\s+(?:rather\s+|it'?s\s+|it\s+is\s+)?(?=[^,;?!\n0-9]{0,16}[0-9])",
    _I,
)
# ecc is not 0, it's 14 uncorrectable
_NOT_IT_IS = lazy(
    r"(?<![a-z])(?P<is>is|are|was|were)(?:n't|\s+not)\s+[^,.;?!\n]{0,20}?[0-9][^,;?!\n]{0,12}?[,;.]\s*(?:it|they|that)(?:'s|'re|\s+is|\s+are|\s+was)\s+(?:just\s+|only\s+)?(?=[^,;?!\n0-9]{0,16}[0-9])",
    _I,
)
# not gpu 3, gpu 5 has it
_NOT_THING = lazy(
    r"(?<!why )(?<![a-z])not\s+(?P<kind>gpu|card|node|rank|link|nvlink|port|xid|sxid)\s*#?[\w-]{1,24}\s*[,;]\s*(?:but\s+|it'?s\s+)?(?=(?P=kind)s?\s*#?[\w-]{1,24})",
    _I,
)
# 温度不是 97 度是 67 度 | 不是 79，是 xid 94 | 不是 2 号卡，是 4 号卡
_NOT_ZH = lazy(
    r"(?<![是要还就])不是\s*[^，,。？！；\n]{0,12}?[0-9一二三四五六七八九十零][^，,。？！；\n]{0,8}?\s*[，,]?\s*(?:而)?是\s*(?=[^，,。？！；\n]{0,8}?[0-9一二三四五六七八九十零])"
)
# I never said the link is down; | 说错了，
_UNSAID = lazy(
    r"(?<![a-z])(?:i|we|nobody|no one)\s+(?:never|did\s*n[o']t|didn't)?\s*(?:say|said|mean|meant|claim|claimed)\s+(?:that\s+)?[^,.;?!\n]{1,80}[,.;]\s*"
    r"|(?:(?<![\u4e00-\u9fff])我?)(?:说错了?|打错了?|口误|写错了?|更正一?下?|纠正一?下?)\s*[，,。；:：]\s*|(?<![a-z])(?:sorry|correction)\s*[,:]\s*",
    _I,
)
_TOOK_BACK = lazy(r"never|not|n't|nobody|no one|sorry|correction|[\u4e00-\u9fff]", _I)


def corrected(said: str) -> str:
    """`said` without what it takes back."""
    if "not" not in (low := said.casefold()) and not any(w in low for w in ("n't", "不是", "错", "正", "误", "n't", "sorry", "correction", "never", "nobody", "no one")):  # fmt: skip
        return said
    said = _UNSAID.sub(lambda m: "" if _TOOK_BACK.search(m[0]) else m[0], said)
    said = _NOT_IT_IS.sub(lambda m: f"{m['is']} ", said)
    said = _NOT_BUT.sub(lambda m: f"{m['is']} " if m["is"] else "", said)
    return _NOT_ZH.sub("是 ", _NOT_THING.sub("", said))
