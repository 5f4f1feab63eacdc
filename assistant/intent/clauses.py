"""The questions of one message, each by itself: "what is xid 95, and do I have to RMA the card?" is two.

A question is cut off only where it begins as one: with its own verb ahead of its subject, or in Chinese with its own asking
word. What is stated stands ahead of every question. "A or B", "is it the network" behind "why is it slow", and what
somebody wants to see ("how do I see who uses it and how much") are one question.
"""

from __future__ import annotations

import re

from assistant.intent.normal import has_han
from knowledge.lazy import lazy

LONGEST = 300  # characters: who says more tells a story, and asks one thing of it
MOST = 4  # questions of one message
_AUX = r"(?:is|are|was|were|am|do|does|did|can|could|should|shall|will|would|must|has|have|'s|'re)"
_SUBJECT = r"(?:i|we|you|he|she|it|they|this|that|these|those|there|the|an?|my|our|your|all|any|one|both|s?xid|gpu|node|rank|nvidia|nccl|cuda|dcgm)"
_BEGINS = (
    rf"(?:(?:and|but|also|so|then|ok|please|hi|hey|well|now)[,\s]+)*"
    rf"(?:(?:what|which|why|how|when|where|who|whose)(?:'s|'re|\s+to\b|(?:\s+[\w.-]+){{0,3}}?\s+(?:{_AUX}|happened|happens|failed|broke|died|caused|causes|crashed|uses|holds)\b)"
    rf"|{_AUX}(?:n't)?\s+(?:not\s+)?{_SUBJECT}\b|any (?:idea|way|chance|need)\b)"
)
_ASKS = lazy(rf"\s*{_BEGINS}", re.IGNORECASE)
_CUTS = lazy(
    rf"(?<=[?!;])\s+|(?<=[a-z)0-9])\.\s+(?=\S)|,\s+(?={_BEGINS})|\s+(?:and|but)\s+(?:also\s+|then\s+)?(?={_BEGINS})",
    re.IGNORECASE,
)
# is it the network? | or ... | how do I fix it | why: said of the question ahead of it
_LEANS = lazy(
    r"\s*(?:(?:and|but|so)\s+)*(?:or\b|like\b|(?:is|was|could|might|can)\s+(?:it|this|that)\s+(?:be\s+)?(?:the|an?|my|our|due|caused|because|related|hardware|software)\b"
    r"|how\s+(?:do|can|should|could|would|is|are|does|did)\s+(?:i|we|you|it|they|that|this)\s+(?:\w+\s+)?(?:it|that|this|them|from|different\s+from\s+.+)\W*$|(?:why|how|what|when|which)\W*$)",
    re.IGNORECASE,
)
# how do I see who uses it and how much it takes: all of it is to be seen
_HOLDS = lazy(
    r"\b(?:see|check|find out|find|know|tell|figure out|show|list|say|explain|understand|monitor)\s+(?:me\s+)?(?:what|which|why|how|when|where|who|whose|if|whether)\b",
    re.IGNORECASE,
)
_WH = lazy(r"\s*(?:(?:and|but|also)\s+)*(?:what|which|why|how|when|where|who|whose)\b", re.IGNORECASE)
_STRONG = frozenset("?!;.")
_JOINS = lazy(r"\A(?:(?:and|but|also|so|then)[,\s]+)+|\A(?:另外|还有|而且|那么?|顺便)[，,]?", re.IGNORECASE)

_HAN_CUTS = lazy(r"(?<=[？?！!；;])\s*(?=\S)|[，,。]\s*")
_HAN_ASKS = lazy(
    r"吗|呢|(?<![这那多])么(?!样)|啥|怎么|怎样|如何|咋|为何|哪|谁|多少|(?<!好)几[号张块台点次个]|是否|能否|可否|[?？]"
    r"|要不要|能不能|可不可以|该不该|需不需要|用不用|有没有|会不会|是不是|行不行|好不好|严不严重|是.{1,16}还是"
)
# 是不是网络 | 还是... | 怎么回事 | 该怎么处理 | 为啥: said of the question ahead of it
_HAN_LEANS = lazy(
    r"\s*(?:还是|或者?|是不是|难道|会不会|会是|比如|例如|也就是|跟|和|与)"
    r"|\s*(?:那|该|又|要|应该|应当|我们?|具体|到底)*(?:为什么|为啥|为何|咋回事|(?:怎么|如何|怎样|咋)(?:才能)?(?:给.{1,3})?(?:回事|办|设置?|弄|处理|解决|整|做|改|调|修|排查|查|查找|定位|找|判断|确认|避免|恢复|解释|说)?(?:它|好)?)[呢啊呀的?？!！。\s]*$"
)


def questions(text: str) -> tuple[str, ...]:
    """Each question of `text`, with what is stated ahead of it; empty where there are not several."""
    if len(text) > LONGEST or "\n" in text:
        return ()
    han = has_han(text)
    pieces = _joined(text, han)
    asked = [p for p in pieces if _asks(p, han)]
    if not 1 < len(asked) <= MOST:
        return ()
    told = [p.rstrip(" .。，,") for p in pieces if p not in asked]
    comma = "，" if han else ", "
    return tuple(comma.join((*told, _JOINS.sub("", p))) for p in asked)


def _asks(piece: str, han: bool) -> bool:
    return (_HAN_ASKS.search(piece) if han else _ASKS.match(piece)) is not None or piece.endswith(("?", "？"))


def _joined(text: str, han: bool) -> list[str]:
    """The pieces of a text, those that lean on the one ahead of them together with it."""
    cuts, leans = (_HAN_CUTS, _HAN_LEANS) if han else (_CUTS, _LEANS)
    pieces: list[str] = []
    at = 0
    for cut in [*cuts.finditer(text), None]:
        piece = text[at : cut.start() if cut else len(text)].strip()
        if not piece:
            at = cut.end() if cut else at
            continue
        held = bool(pieces) and (
            leans.match(piece) is not None
            or (
                not han and pieces[-1][-1] not in _STRONG and _HOLDS.search(pieces[-1]) and _WH.match(piece) is not None
            )
        )
        if held:
            pieces[-1] = text[text.rindex(pieces[-1], 0, at) : cut.start() if cut else len(text)].strip()
        else:
            pieces.append(piece)
        at = cut.end() if cut else at
    return pieces
