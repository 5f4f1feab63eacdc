"""Whether a question asks what is different between two captures of one thing."""

from __future__ import annotations

import re

from knowledge.lazy import lazy

_CHANGED = lazy(
    r"(?<![a-z])what(?:'s| is| has|s)? (?:else )?(?:changed|different|new)(?![a-z])|(?<![a-z])(?:what (?:is|are) the |any |tell me the |show (?:me )?the )?(?:differences?|changes?) (?:between|from|to the (?:first|earlier|one before))(?![a-z])"
    r"|(?<![a-z])(?:did|has|have) (?:anything|something|it|that) change(?:d)?(?![a-z])|(?<![a-z])compare (?:the (?:two|both)|both|them|before)(?![a-z])|(?<![a-z])(?:before (?:and|vs\.?|versus) after)(?![a-z])|(?<![a-z])diff (?:the|these|between)(?![a-z])"
    r"|变化了?(?:什么|哪些|多少|吗)|有(?:什么|哪些|何|没有)?(?:变化|不同|差异|区别)|变了(?:什么|哪些|多少)|(?:改变|变动)了(?:什么|哪些)|前后(?:两[次份]?)?(?:有)?(?:何|什么|哪些)?(?:对比|变化|差别|差异|不同|区别)|对比(?:一下)?(?:这?两|前后)|哪里(?:变|不同|不一样)",
    re.IGNORECASE,
)


def changed(text: str) -> bool:
    """ "what changed between the two?", "is anything different?", 前后有什么变化."""
    return _CHANGED.search(text) is not None
