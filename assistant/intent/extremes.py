"""Which of several is asked for by a degree: "the hottest GPU", "which card draws the most power", "哪张卡最闲"."""

from __future__ import annotations

import re
from typing import NamedTuple

from assistant.intent.window import window_of
from knowledge.language import Text
from knowledge.lazy import lazy

_I = re.IGNORECASE
_L, _R = "(?<![a-z])", "(?![a-z])"


class Quantity(NamedTuple):
    """What the degree is of: the facts that tell it, the first that is known counts."""

    id: str
    said: re.Pattern[str]
    facts: tuple[str, ...]
    name: Text


QUANTITIES = (
    Quantity("memory temperature", lazy(r"(?:memory|hbm)[- ]?temperature|hottest (?:memory|hbm)|显存温度|显存最热", _I), ("gpu.temperature.memory",),
             Text("memory temperature", "显存温度")),
    Quantity("temperature", lazy(rf"{_L}(?:hot|hotter|hottest|warm\w*|cool(?:er|est)?|cold(?:er|est)?|temps?|temperatures?){_R}|热|温度|凉", _I),
             ("gpu.temperature.core", "gpu.temperature.hotspot"), Text("temperature", "温度")),
    Quantity("power", lazy(rf"{_L}(?:power|watts?|electricity|energy){_R}|功耗|功率|耗电|费电", _I), ("gpu.power.draw", "gpu.power.draw.instant"), Text("power draw", "功耗")),
    Quantity("memory", lazy(rf"{_L}(?:vram|memory|framebuffer){_R}|显存", _I), ("gpu.memory.used",), Text("memory in use", "已用显存")),
    Quantity("clock", lazy(rf"{_L}(?:clocks?|clocked|frequenc(?:y|ies)|mhz){_R}|频率|时钟", _I), ("gpu.clock.sm", "gpu.clock.graphics"), Text("clock", "时钟")),
    Quantity("ecc", lazy(rf"{_L}(?:ecc|bit) errors?{_R}|ecc", _I),
             ("gpu.ecc.volatile.uncorrected.total", "gpu.ecc.aggregate.uncorrected.total", "gpu.ecc.volatile.corrected.total", "gpu.ecc.aggregate.corrected.total"),
             Text("ECC errors", "ECC 错误")),
    Quantity("load", lazy(rf"{_L}(?:busy|busier|busiest|utili[sz]\w*|load(?:ed)?|idle\w*|idling|unused|does nothing|doing nothing|do nothing|not (?:working|used|doing (?:anything|any work))){_R}|忙|利用率|负载|闲|没在(?:用|跑|干活)|不干活|什么都没干", _I),
             ("gpu.utilization.core", "gpu.activity.graphics", "gpu.activity.sm"), Text("utilization", "利用率")),
)  # fmt: skip
_MOST = lazy(
    rf"{_L}(?:hottest|warmest|busiest|highest|most(?! (?:recent|likely))|largest|biggest|max(?:imum)?|greatest|top|peak\w*){_R}|最(?!近|后|先|早|新|初|终|好)",
    _I,
)
_LEAST = lazy(
    rf"{_L}(?:coolest|coldest|lowest|least|smallest|fewest|min(?:imum)?|slowest){_R}|最(?:低|小|少|凉|冷|慢|闲)", _I
)
_IDLE = lazy(
    rf"{_L}(?:idle|idling|unused|does nothing|doing nothing|do nothing|not (?:working|used|doing (?:anything|any work))){_R}|闲|没在(?:用|跑|干活)|不干活|什么都没干",
    _I,
)
_ASKS = lazy(
    rf"{_L}(?:which|what(?:'s| is| are)?|when|find|show|name|tell|list|is there)(?![a-z])|哪|谁|有没有|几号|多少|几度|多高|什么时候|^\W*(?:the )?(?:hottest|coolest|busiest|highest|lowest|max(?:imum)?|min(?:imum)?|peak)|最[高低大小]\S{{0,4}}[?？]?$",
    _I,
)
_THINGS = lazy(rf"{_L}(?:gpus?|cards?|ones?|devices?|boards?){_R}|卡|几号", _I)


_PLAIN = lazy(
    rf"{_L}(?:highest|lowest|hottest|coolest|peak){_R}|最高|最低|最热", _I
)  # of GPUs, even where nobody says so
# how hot did GPU 3 get, GPU 3 最热到多少度: the most that it reached
_REACHED = lazy(
    rf"{_L}how (?:hot|warm|high|busy)(?: \w+)? (?:did|has|have|had) .{{1,40}}?{_L}(?:get|got|go|gone|become|run|reach\w*){_R}",
    _I,
)
_STOOD = lazy(
    rf"{_L}how (?:hot|warm|high|busy|loaded|much){_R}|{_L}what (?:is|was|were|are){_R}|多少|几度|多高|多热|多忙", _I
)
_ONE = lazy(r"(?<![a-z])(?:gpu|card)s? ?#?[0-9]|[0-9] ?号?卡", _I)
_PAST = lazy(rf"{_L}(?:was|were|did|has been|ever|reached|when|peak\w*){_R}|什么时候|几点|曾|达到|峰值", _I)
_LIMIT = lazy(rf"{_L}(?:limits?|thresholds?|allowed|rated|spec\w*|supported|safe){_R}|上限|阈值|允许|额定", _I)


class Extreme(NamedTuple):
    """The quantity, whether the most of it is wanted, and what else of the winner."""

    quantity: Quantity
    most: bool
    idle: bool  # those that do nothing, however many
    more: tuple[Quantity, ...]
    of_one: bool = False  # GPUs are named: how they stood is asked, not which it is
    in_time: bool = False  # of all samples, and not of the last
    at: bool = False  # how it stood at a time that is named, and not at its most


def extreme(text: str) -> Extreme | None:
    """The degree that a sentence asks for; None where it asks for none."""
    rests = _IDLE.search(text)
    idle = rests is not None
    most, least = _MOST.search(text) or _REACHED.search(text), _LEAST.search(text)
    one, window = _ONE.search(text) is not None, window_of(text, "") is not None
    at = one and window and not (most or least) and (stood := _STOOD.search(text)) is not None
    if at:
        most, idle = stood, False
    degree = least or most or rests
    if degree is None or not (_ASKS.search(text) or _REACHED.search(text) or at) or _LIMIT.search(text):
        return None
    if not _THINGS.search(text) and (idle or not _PLAIN.search(text)):
        return None
    named = sorted(
        (min(abs(m.start() - degree.start()) for m in q.said.finditer(text)), n)
        for n, q in enumerate(QUANTITIES)
        if q.said.search(text)
    )
    if not named:
        return None
    first = (
        next(q for q in QUANTITIES if q.id == "load")
        if idle and not (most or least)
        else QUANTITIES[min(named, key=lambda n: n)[1]]
    )
    more = tuple(QUANTITIES[n] for _, n in named if QUANTITIES[n] is not first)
    if any(q.id == "memory temperature" for q in (first, *more)):
        more = tuple(q for q in more if q.id not in ("memory", "temperature"))
    in_time = one or window or _PAST.search(text) is not None
    return Extreme(first, least is None, idle and first.id == "load", more, one, in_time, at)
