"""Whether one thing caused another, or came before it: "did the OOM kill cause the GPU failure?", "是 OOM 导致掉卡的吗"."""

from __future__ import annotations

import re
from typing import NamedTuple

from assistant.intent.lines import codes, names_any, words
from knowledge.lazy import lazy

_I = re.IGNORECASE
_ASK = r"^\W*(?:so |and |but |ok |then )?"
_DID = r"(?:did|does|do|could|can|might|may|would|has|have)"
_BE = r"(?:was|were|is|are|be|been)"
# The first that fits. a: the cause that is suspected, b: what it is suspected of; `order`: which came first is all that is asked.
_SHAPES = (
    lazy(rf"{_ASK}{_DID}\s+(?P<a>.{{2,80}}?)\s+(?:have )?(?:caused?|causes|led to|lead to|trigger(?:ed|s)?|result(?:ed)? in|brought on|bring on|provoked?)\s+(?P<b>.{{2,80}}?)[\s?？.!]*$", _I),
    lazy(rf"{_ASK}{_DID}\s+(?P<a>.{{2,80}}?)\s+(?:kill|crash|break|take down|bring down|make|hang)\s+(?P<b>.{{2,80}}?)[\s?？.!]*$", _I),
    lazy(rf"{_ASK}{_BE}\s+(?P<a>.{{2,80}}?)\s+(?:really )?(?:the |a |to )?(?:root |real )?(?:cause|reason|culprit|trigger|blame)\s+(?:of|for|behind|why)\s+(?P<b>.{{2,80}}?)[\s?？.!]*$", _I),
    lazy(rf"{_ASK}(?:{_BE}|{_DID})\s+(?P<b>.{{2,80}}?)\s+(?:{_BE} )?(?:happen(?:ed)? )?(?:(?:caused|triggered|brought on|explained|produced) by|because of|due to|down to|(?:as )?a (?:result|consequence) of|the (?:result|consequence) of)\s+(?P<a>.{{2,80}}?)[\s?？.!]*$", _I),
    lazy(r"^\W*(?:这次|那|是|是不是|会不会是|难道是)?\s*(?P<a>.{1,40}?)\s*(?:导致|造成|引起|引发|触发|弄)(?:了|的)?\s*(?P<b>.{1,40}?)\s*(?:的)?(?:吗|么|吧|嘛)?[?？。]*$", _I),
    lazy(r"^\W*(?P<b>.{1,40}?)\s*(?:是不是|会不会是|是)\s*(?:因为|由于|由|被)\s*(?P<a>.{1,40}?)\s*(?:导致|造成|引起|引发|触发)?(?:的)?(?:吗|么|吧|嘛)?[?？。]*$", _I),
)  # fmt: skip
_ORDERS = (
    lazy(rf"{_ASK}(?:which|what) (?:{_BE} |came |happened |started |failed |broke )+first\W+(?P<a>.{{2,80}}?)\s+or\s+(?P<b>.{{2,80}}?)[\s?？.!]*$", _I),
    lazy(rf"{_ASK}{_DID}\s+(?P<a>.{{2,80}}?)\s+(?:happen |come |occur |start |begin |fail )?before\s+(?P<b>.{{2,80}}?)[\s?？.!]*$", _I),
    lazy(rf"{_ASK}{_DID}\s+(?P<b>.{{2,80}}?)\s+(?:happen |come |occur |start |begin |fail )?after\s+(?P<a>.{{2,80}}?)[\s?？.!]*$", _I),
    lazy(r"^\W*(?P<a>.{1,40}?)(?:和|与|跟|还是)(?P<b>.{1,40}?)(?:哪个|谁|哪一个)(?:更)?(?:先|早)", _I),
)  # fmt: skip


class Caused(NamedTuple):
    """The words of the one thing and of the other."""

    cause: str
    effect: str
    order: bool


def caused(text: str) -> Caused | None:
    """Which thing is suspected of which; None where that is not asked, or one of them is no more than "it"."""
    for shapes, order in ((_SHAPES, False), (_ORDERS, True)):
        for shape in shapes:
            if (found := shape.search(text)) is not None:
                a, b = found["a"], found["b"]
                return Caused(a, b, order) if names_any(b) and (codes(a) or words(a) or names_any(a)) else None
    return None
