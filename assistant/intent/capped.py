"""What a lower power limit would cost: "cap at 500 W, how much do I lose?", 把功耗限制到 300W 会慢多少."""

from __future__ import annotations

from typing import NamedTuple

from knowledge.gpus import candidates
from knowledge.lazy import lazy

_LIMIT = lazy(
    r"(?<![a-z])(?:power[- ]?(?:cap|limit)\w*|cap(?:ped|ping)?|limit(?:ed|ing)?|-pl|undervolt\w*)(?![a-z])|功耗[^，。]{0,8}(?:限|墙|上限|调低|降)|(?:限|降|压|调低)[^，。]{0,4}功耗|限功率|限功耗|(?:限制|限|压|降|调)(?:到|在|为|至)\s*[0-9]{2,4}\s*(?:w|瓦)"
)
_LOSS = lazy(
    r"(?<![a-z])(?:lose|loss|losing|cost|costs|hurt\w*|slower|slow down|impact|affect\w*|drop|perf|performance|throughput)(?![a-z])|损失|慢多少|会慢|影响|掉多少|性能"
)
_ASKS = lazy(
    r"(?<![a-z])(?:how much|how many|what|will|would|does|do|is|are|if|can)(?![a-z])|[?？吗]|多少|会不会|会|如果"
)
_WATTS = lazy(r"(?<![0-9.])([0-9]{2,4})\s*(?:w|watts?|瓦)(?![a-z])")
# from 700w to 500w, 从 700W 降到 500W: today's limit, and the one that is thought of
_FROM_TO = lazy(
    r"(?:from|从|由)\s*([0-9]{2,4})\s*(?:w|watts?|瓦)?\s*(?:down\s+)?(?:to|降到|降至|降为|调到|调低到|压到|限到|改到|改成|到|->)\s*([0-9]{2,4})\s*(?:w|watts?|瓦)?(?![a-z0-9%])"
    r"|(?<![0-9.])([0-9]{2,4})\s*(?:w|watts?|瓦)\s*(?:(?:down\s+)?to|降到|降至|降为|调到|压到|到|->)\s*([0-9]{2,4})\s*(?:w|watts?|瓦)(?![a-z0-9])"
)
_SHARE = lazy(r"(?<![0-9.])([0-9]{2})\s*(?:%|percent)")
_HELD = lazy(r"sw power cap|hw slowdown|power brake|clocks? event|throttle reason|降频")


class Capped(NamedTuple):
    """A power limit that is thought of."""

    model: str  # as it is called; empty where nobody said
    watts: float | None
    most: float | None  # W that the model is built for
    share: float | None  # of that, 0 to 1


def capped(text: str) -> Capped | None:
    """The limit whose cost a sentence asks; None where it asks nothing of the kind."""
    from assistant.intent.things import MODEL

    plain = text.casefold()
    if not all(p.search(plain) for p in (_LIMIT, _LOSS, _ASKS)) or _HELD.search(plain):
        return None
    watts, share, model = _WATTS.search(plain), _SHARE.search(plain), MODEL.search(text)
    if watts is None and share is None and not _FROM_TO.search(plain):
        return None
    name = model[0].strip().upper() if model else ""
    name = name if candidates(name) else name.removesuffix("S")  # H100s, and L40S
    most = max((spec.tdp_w or 0.0 for spec in candidates(name)), default=0.0) if name else 0.0
    said = float(watts[1]) if watts else None
    if both := _FROM_TO.search(plain):
        most, said = (float(n) for n in both.groups() if n)
    part = float(share[1]) / 100 if share and said is None else said / most if said and most else None
    return Capped(name, said, most or None, part)
