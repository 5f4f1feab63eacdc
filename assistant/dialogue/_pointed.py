"""What the words of a complaint point at."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from assistant.dialogue._rated import usual
from assistant.intent import symptoms
from assistant.intent.grammar import facts_of, words_of
from assistant.intent.stated import negated
from knowledge.lazy import lazy
from knowledge.readings import Rating, scales
from knowledge.suspects import suspected
from knowledge.symptoms import hypotheses

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assistant.intent.query import Query
    from knowledge.observation import Observation

_DENYING = lazy(
    r"[,;，；。]|\.\s|(?<![a-z])(?:but|although|though|yet|however|while)(?![a-z])|但是?|不过|而(?!且)", re.IGNORECASE
)
_CLAUSES = lazy(r"[,;，；。]|\.\s")


# gpu memory was fine | the network is ok | disk has plenty left | 显存还有很多 | 网络正常: it is looked for last
_SOUND = lazy(
    r"(?<![a-z])(?:is|are|was|were|looks?|looked|seems?|has|have|had|with|still)\s+(?:\w+\s+){0,2}?(?:fine|ok|okay|good|normal|healthy|enough|plenty|free|low|clean|ruled out|excluded|not full|half used|half full|not the (?:problem|cause|issue))(?![a-z])"
    r"|(?<![a-z])(?:not|isn'?t|wasn'?t)\s+(?:the|a|an|caused by)\s|(?<![a-z])(?:ruled out|excluded|already checked)(?![a-z])"
    r"|还有(?:很多|不少|富余|余量|剩余|空闲)|(?<!不)(?:正常|够用|充足|没问题|没有问题|没满|没爆|没有满|没用满|没用完|只用了?[一两]?[一半成]|[才只]用|很空|排除了|排除)|(?<![是要])不是",
    re.IGNORECASE,
)
_ASKED = lazy(r"[?？吗么]|是不是|是否|(?<![a-z])(?:why|what|should|could)(?![a-z])", re.IGNORECASE)


def pointed(query: Query) -> tuple[str, ...]:
    """Ids of the hypotheses that a sentence points at, the fullest match first; what it denies ("no flaps") points at nothing."""
    said = ", ".join(c for c in _CLAUSES.split(query.text) if not _denies(c))
    return symptoms.pointed(words_of(said), said)


def denied(query: Query, stated: Sequence[Observation]) -> frozenset[str]:
    """Ids of the hypotheses that a sentence speaks against: in words ("no flaps", "gpu memory was fine"), or by a usual reading of a fact of theirs."""
    clauses = _DENYING.split(query.text)
    named = symptoms.pointed(words_of(" ".join(filter(_denies, _CLAUSES.split(query.text)))))
    sound = [c for c in clauses if _SOUND.search(c) and not _ASKED.search(c)]
    named = (*named, *(h.id for c in sound if (s := suspected(c)) is not None for h in s.hypotheses))
    good = {o.fact for o in stated if o.fact in scales() and usual(o) is Rating.GOOD}
    good.update(name for c in sound for _, _, name in facts_of(words_of(c)))
    return frozenset(named) | {h.id for h in hypotheses().values() if not good.isdisjoint(h.facts)}


def _denies(clause: str) -> bool:
    return negated(clause.casefold())
