"""Money: arithmetic over the figures of the sentence. gpudiag knows no prices, and never makes one up."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

from assistant.dialogue._pages import data_of, text_in
from assistant.render.labels import listed
from assistant.render.sheet import Fields, Items, Paragraph, Part
from assistant.reply import Reply
from knowledge.lazy import lazy

if TYPE_CHECKING:
    from assistant.dialogue import Turn

_LONG = 1000  # characters that are read
_N = r"(?<![a-z0-9_.])(?P<n>[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]{1,12}(?:\.[0-9]{1,6})?)(?P<k>k\b)?"
_MODEL = r"(?:gb[23]00|b[23]00|h[128]00|a[18]00|l40s?|v100|mi[23][0-9]{2}x?)s?"
_GPUS = lazy(
    rf"{_N}\s*x?\s*(?:块|张|个|台)?\s*(?:nvidia |idle |空闲的?)?(?:{_MODEL}[- ]?)?(?:gpus?\b|cards?\b|gpu|显卡|卡)"
)
_MODELS = lazy(rf"{_N}\s*x?\s*(?:块|张|个)?\s*{_MODEL}\b")
_THINGS = rf"[0-9][0-9,]{{0,8}}\s*x?\s*(?:块|张|个|台)?\s*(?:nvidia\s*)?(?:(?:{_MODEL}[- ]?)?(?:gpus?\b|cards?\b|gpu|显卡|卡)|{_MODEL}\b)"
_THE = r"(?:(?:all|the|our|my|its|these|those|a total)\s+(?:of\s+)?){0,2}"
# 24 of our 64 GPUs | 64 GPUs, 24 of them | of 64 GPUs 24 | 64 张卡里有 24 张: of these, and not of all
_PART = lazy(
    rf"{_N}\s*(?:(?:out\s+)?of\s+|/\s*){_THE}{_THINGS}"
    rf"|{_THINGS}[^.;。；0-9]{{0,24}}{_N.replace('?P<n>', '?P<n2>').replace('?P<k>', '?P<k2>')}\s*of\s+(?:them|which|those|these)\b"
    rf"|(?<![a-z])of\s+{_THE}{_THINGS}\s*,?\s*(?:only\s+|just\s+)?(?P<n3>[0-9]{{1,6}})(?![0-9.,]|\s*-?(?:h|m|d|w|小时|天|周|分|个))"
    rf"|{_THINGS}\s*(?:里面?|中|之中|当中|，?其中)\s*(?:只?有\s*)?(?P<n4>[0-9]{{1,6}})\s*(?:张|块|个(?!小时|半小时|月))"
)
_HALF = lazy(
    rf"(?<![a-z])half\s+(?:of\s+)?{_THE}(?P<of>{_THINGS})|(?P<of2>{_THINGS})\s*(?:里面?|中|的)?\s*(?:有\s*)?一半"
)
# how many is not said
_SOME = lazy(
    rf"(?<![a-z])(?:some|most|many|few|several|part|third|quarter|thirds|quarters|%|percent)\s+of\s+{_THE}{_THINGS}|%\s+of\s+{_THE}{_THINGS}|{_THINGS}\s*(?:里面?|中)?\s*(?:有\s*)?(?:一些|部分|大部分|多数|好几|几张|几块)"
)
_TIME = lazy(
    rf"{_N}\s*-?(?:个|整)?(?P<u>months?(?![a-z])|个?月|years?(?![a-z])|年|minutes?|mins?|m\b|hours?|hrs?|hr|h\b|days?|d\b|weeks?|w\b|个?小时|分钟|天|周)"
)
_NODES = lazy(rf"{_N}\s*(?:个|台)?\s*(?:nodes?|hosts?|servers?|machines?|节点|机器|服务器)")
_CURRENCY = r"usd|eur|gbp|cny|rmb|dollars?|bucks?|euros?|yuan|[$€£¥]|美元|美金|欧元|人民币|元|块钱"
_AMOUNT = r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]{1,9}(?:\.[0-9]{1,6})?"
# 每卡时 15 块 | 15块/卡时: beside an hour the word that counts cards is money
_OF_AN_HOUR = r"(?:每|一)?\s*(?:个|张|块)?\s*(?:卡|gpu)?\s*(?:小时|时)"
_PRICE = lazy(
    rf"(?P<c>{_CURRENCY})\s*(?P<a>{_AMOUNT})|(?<![\w.])(?P<b>{_AMOUNT})\s*(?P<d>{_CURRENCY})"
    rf"|(?:每|一)\s*(?:个|张|块)?\s*(?:卡|gpu)?\s*(?:小时|时)\s*(?:要|是|约|收)?\s*(?P<a2>{_AMOUNT})\s*(?P<c2>块)"
    rf"|(?<![\w.])(?P<b2>{_AMOUNT})\s*(?P<d2>块)\s*(?:/|每|一)\s*{_OF_AN_HOUR}"
)
MONTH = 730.0  # hours: a twelfth of 365 days
_LONG_TIMES = {"month": MONTH, "月": MONTH, "year": 12 * MONTH, "年": 12 * MONTH}
_HOURS = {"m": 1 / 60, "h": 1.0, "d": 24.0, "w": 168.0, "分": 1 / 60, "小": 1.0, "个": 1.0, "天": 24.0, "周": 168.0}


_COUNT = {
    w: n
    for n, row in enumerate(
        (
            ("one", "一"),
            ("two", "两"),
            ("three", "三"),
            ("four", "四"),
            ("five", "五"),
            ("six", "六"),
            ("seven", "七"),
            ("eight", "八"),
        ),
        1,
    )
    for w in row
}
# two days | 两天 | eight GPUs
_SPELLED = lazy(
    rf"(?<![a-z])(?:{'|'.join(w for w in _COUNT if w.isascii())})(?=\s+(?:days?|hours?|weeks?|months?|gpus?|cards?|minutes?|(?:out\s+)?of)(?![a-z]))|(?<=for )an?(?=\s+(?:day|hour|week|month|year)(?![a-z]))|(?<![a-z])(?:this|last|past|a|per|each|every)(?=\s+(?:week|month|year)(?![a-z]))|[本这上每](?=个?(?:周|月|年))|[{''.join(w for w in _COUNT if not w.isascii())}](?=\s*(?:天|个?小时|周|个?月|年|分钟|块|张))",
    re.IGNORECASE,
)


class Figures(NamedTuple):
    """What a sentence says; None where it says nothing."""

    gpus: float | None
    hours: float | None
    price: float | None  # of a GPU hour
    currency: str
    nodes: float | None


def answer(turn: Turn) -> Reply:
    """GPU hours, and money when a price is given; else which figures are needed."""
    lang = turn.lang
    f = figures(_SPELLED.sub(lambda m: str(_COUNT.get(m[0].casefold(), 1)), turn.query.text[:_LONG]))
    if f.price is None and (lost := _wasted(turn, f)) is not None:
        return lost
    if f.price is not None and ((idle := _idle_share(turn.query.text[:_LONG])) is not None or f.hours is None):
        return _priced(f, f.price, idle, lang)
    if f.gpus is None or f.hours is None:
        return _ask(f, lang)
    spent = f.gpus * f.hours
    counted = f"{_n(f.gpus)} GPU × {_n(f.hours)} h = {_n(spent)} GPU h"
    data = data_of("cost", [], gpus=f.gpus, hours=f.hours, gpu_hours=spent, price=f.price, currency=f.currency or None)
    if f.price is None:
        headline = text_in(
            lang,
            f"{_n(spent)} GPU hours; gpudiag knows no prices, so multiply by what a GPU hour costs you.",
            f"{_n(spent)} GPU 小时；gpudiag 没有价格数据，请乘以每 GPU 小时的价格。",
        )
        asks = (_worked(f, lang),)
        return Reply(lang, headline, (Paragraph(counted),), settled=False, suggestions=asks, data=data)
    total = spent * f.price
    money = f"{_n(total)} {f.currency}"
    headline = text_in(
        lang,
        f"{money}: {_n(spent)} GPU hours at the price you gave.",
        f"{money}：{_n(spent)} GPU 小时，按你给的价格计算。",
    )
    worked = f"{counted}; × {_n(f.price)} {f.currency} = {money}"
    parts: tuple[Part, ...] = (Paragraph(worked), Paragraph(_caveat(lang)))
    return Reply(lang, headline, parts, suggestions=(_idle(lang),), data={**data, "total": total})


def _wasted(turn: Turn, f: Figures) -> Reply | None:
    """GPU-hours that a stated utilisation leaves unused, or how the loss of a GPU that is slowed down is read; None where neither is told."""
    text, lang = turn.query.text[:_LONG], turn.lang
    used, only_busy = _used(text)
    if used is None and "mfu" in text.casefold():
        return None
    if used is not None and 0 <= used <= 100:
        gpus, hours = f.gpus or 1, f.hours or 24
        lost = gpus * hours * (100 - used) / 100
        counted = f"{_n(gpus)} GPU × {_n(hours)} h × {_n(100 - used)} % = {_n(lost)} GPU h"
        busy = only_busy and used > 0
        headline = text_in(
            lang,
            f"{_n(100 - used)} % of the time{' at least' if used else ''}: {_n(lost)} GPU-hours in {_n(hours)} h on {'each GPU' if f.gpus is None else f'{_n(gpus)} GPUs'}."
            + (" The rest was busy, which is not working yet: SM active tells." if busy else ""),
            f"{'至少 ' if used else ''}{_n(100 - used)} % 的时间：{'每块' if f.gpus is None else f'{_n(gpus)} 块'} GPU 在 {_n(hours)} 小时内损失 {_n(lost)} GPU 小时。"
            + ("其余时间只是忙碌，是否在工作要看 SM active。" if busy else ""),
        )
        data = data_of("cost", [], gpus=f.gpus, hours=f.hours, gpu_hours=lost)
        return Reply(lang, headline, (Paragraph(counted),), settled=False, suggestions=(_idle(lang),), data=data)
    return _slowed(lang) if _SLOWED.search(text) else None


def _idle_share(text: str) -> float | None:
    """Percent of the time in which nothing runs, as a sentence tells: utilisation without it, "half of the time idle"; None
    where it says nothing."""
    if found := _IDLE_PART.search(text):
        return 50.0 if found["half"] else float(found["n"] or found["n2"])
    used, _ = _used(text)
    return None if used is None or not 0 <= used <= 100 else 100 - used


_IDLE_PART = lazy(
    r"(?P<half>(?<![a-z])half (?:of )?(?:the |their |its )?(?:time|hours|day)?\s*(?:is |are |they |sits? |stands? )*(?:idle|unused|wasted)|一半(?:的)?时间[^，。]{0,4}(?:空闲|闲置|空着))"
    r"|(?P<n>[0-9]{1,3}(?:\.[0-9]+)?)\s*%\s*(?:of the time\s*)?(?:is |are )?(?:idle|unused|wasted)|(?:空闲|闲置)(?:率|时间)?(?:为|是|约|占)?\s*(?P<n2>[0-9]{1,3}(?:\.[0-9]+)?)\s*%",
    re.IGNORECASE,
)


def _priced(f: Figures, price: float, idle: float | None, lang: str) -> Reply:
    """What GPUs cost at a price that was given: an hour and a month where no time was, and of that what stands idle."""
    gpus, hours = f.gpus or 1, f.hours
    spans = (
        ((hours, f"{_n(hours)} h", f"{_n(hours)} 小时"),)
        if hours
        else ((1.0, "an hour", "每小时"), (MONTH, "a month", "每月"))
    )
    of = (f"{_n(gpus)} GPUs" if f.gpus else "each GPU", f"{_n(gpus)} 块 GPU" if f.gpus else "每块 GPU")

    def told(share: float) -> tuple[str, str]:
        sums = [(_n(gpus * h * price * share), en, zh) for h, en, zh in spans]
        mark = "for " if hours else ""
        return (
            ", ".join(f"{money} {f.currency} {mark}{en}" for money, en, _ in sums),
            "，".join(f"{zh} {money} {f.currency}" for money, _, zh in sums),
        )

    whole, lost = told(1.0), told((idle or 0.0) / 100)
    en, zh = f"{of[0]}: {whole[0]}", f"{of[1]}：{whole[1]}"
    if idle is not None:
        en += f"; of that idle ({_n(idle)} %): {lost[0]}"
        zh += f"；其中空闲（{_n(idle)} %）：{lost[1]}"
    missing = [] if f.gpus else ["gpus"]
    asks = text_in(lang, "How many GPUs it is about was not said.", "未说明有多少块 GPU。")
    worked = f"{_n(gpus)} GPU × {_n(price)} {f.currency}" + (
        f" × {_n(hours)} h"
        if hours
        else text_in(lang, f" an hour; a month is {_n(MONTH)} h", f"/小时；一个月按 {_n(MONTH)} 小时计")
    )
    parts = [Paragraph(worked), *([Paragraph(asks)] if missing else [])]
    if idle is not None:
        parts.append(Paragraph(text_in(
            lang, "Idle by utilization, which counts a kernel that waits as busy: what is really unused may be more.",
            "按利用率计算的空闲；等待中的 kernel 也算忙碌，实际浪费可能更多。",
        )))  # fmt: skip
    data = data_of("cost", [], gpus=f.gpus, hours=hours, price=price, currency=f.currency, idle=idle, missing=missing)
    return Reply(
        lang,
        f"{en[:1].upper()}{en[1:]}." if lang != "zh" else f"{zh}。",
        (*parts, Paragraph(_caveat(lang))),
        settled=not missing,
        data=data,
    )


def _used(text: str) -> tuple[float | None, bool]:
    """The use of a GPU that a sentence tells, in percent, and whether that only says how long it was busy: SM active says more."""
    from assistant.intent.grammar import words_of
    from assistant.intent.numerals import numerals
    from assistant.intent.readings import values
    from assistant.intent.slots import slots
    from assistant.intent.stated import stated

    told = {o.fact: float(o.value) for o in stated(text, slots(text)).observations if isinstance(o.value, int | float)}
    asked = values(
        words_of(numerals(text))
    ).taken  # "how many hours do we lose at 20 % utilization": asked, and told all the same
    told |= {t.fact: float(v) for t in asked for v in t.values[:1] if t.fact not in told and isinstance(v, int | float)}
    used = next((told[name] for name in ("gpu.activity.sm", "gpu.utilization.core") if name in told), None)
    return used, "gpu.activity.sm" not in told


_SLOWED = lazy(r"throttl|slow(?:ed|s)? down|power[- ]?cap|power brake|降频|限频|功率墙|功耗墙|时钟被", re.IGNORECASE)


def _slowed(lang: str) -> Reply:
    """How much a GPU loses whose clocks are held down, and how that is read."""
    look = "nvidia-smi --query-gpu=clocks.sm,clocks.max.sm,clocks_event_reasons.active --format=csv -l 1"
    headline = text_in(
        lang,
        f"As much as its SM clock falls, for work bound by computing (1200 of 1980 MHz are 39 %), less for work bound by memory; in a job that works in step all ranks lose it. Read it under load: {look}.",
        f"计算受限的任务按 SM 时钟下降的比例损失（1200/1980 MHz 即 39 %），访存受限的损失较小；同步作业中所有 rank 一起变慢。在负载下读取：{look}。",
    )
    return Reply(lang, headline, (), settled=False, data=data_of("cost", []))


def figures(text: str) -> Figures:
    """The figures of a sentence. A price counts as that of a GPU hour: nothing else is asked for."""
    plain = unicodedata.normalize("NFKC", text[:_LONG]).casefold()
    price, currency, plain = _price(plain)
    nodes, time = _NODES.search(plain), _TIME.search(plain)
    hours = (
        _number(time) * (_LONG_TIMES.get(time["u"].rstrip("s").removeprefix("个")) or _HOURS[time["u"][0]])
        if time is not None
        else None
    )
    return Figures(_gpus(plain), hours, price, currency, _number(nodes) if nodes else None)


def _gpus(plain: str) -> float | None:
    """How many GPUs it is about: of "24 of our 64" the 24; None where only how many there are in all is said."""
    if part := _PART.search(plain):
        said = next(part[name] for name in ("n", "n2", "n3", "n4") if part[name])
        return float(said.replace(",", "")) * (1000 if part["k"] or part["k2"] else 1)
    if _SOME.search(plain):
        return None
    found = _GPUS.search(plain) or _MODELS.search(plain)
    return None if found is None else _number(found) / (2 if _HALF.search(plain) else 1)


def _price(plain: str) -> tuple[float | None, str, str]:
    """Price and currency, and the sentence without them: "2 $/h" holds no number of hours."""
    found = _PRICE.search(plain)
    if found is None:
        return None, "", plain
    value = float(next(found[name] for name in ("a", "b", "a2", "b2") if found[name]).replace(",", ""))
    money = next(found[name] for name in ("c", "d", "c2", "d2") if found[name])
    return value, _COINS.get(money, money).upper(), f"{plain[: found.start()]} {plain[found.end() :]}"


_COINS = {
    "块": "元",
    "块钱": "元",
    "美金": "美元",
    "dollar": "dollars",
    "euro": "euros",
    "buck": "dollars",
    "bucks": "dollars",
}


def _number(found: re.Match[str]) -> float:
    return float(found["n"].replace(",", "")) * (1000 if found["k"] else 1)


def _ask(f: Figures, lang: str) -> Reply:
    """Which figures are missing."""
    names = (
        (f.gpus, text_in(lang, "how many GPUs stood idle or were lost", "空闲或损失了多少块 GPU")),
        (f.hours, text_in(lang, "for how many hours", "持续多少小时")),
        (f.price, text_in(lang, "what a GPU hour costs you", "每 GPU 小时的价格")),
    )
    missing = tuple(said for value, said in names if value is None)
    headline = text_in(
        lang,
        f"gpudiag knows no prices; it needs {listed(missing, 'en')}.",
        f"gpudiag 没有价格数据；还需要知道：{listed(missing, 'zh')}。",
    )
    given = tuple((name, _n(value)) for name, value in (("GPU", f.gpus), ("h", f.hours)) if value is not None)
    parts: list[Part] = [Items(missing)]
    if given:
        parts.append(Fields(given))
    if f.nodes is not None and f.gpus is None:
        parts.append(Paragraph(text_in(
            lang, "A node may hold 4, 8 or another number of GPUs: say how many GPUs in all.", "每个节点的 GPU 数量不一：请给出 GPU 总数。"
        )))  # fmt: skip
    return Reply(
        lang,
        headline,
        tuple(parts),
        settled=False,
        suggestions=(_idle(lang),),
        data=data_of("cost", [], missing=list(missing)),
    )


def _worked(f: Figures, lang: str) -> str:
    gpus, hours = _n(f.gpus or 0), _n(f.hours or 0)
    return text_in(
        lang,
        f"what do {gpus} GPUs for {hours} hours cost at $2 per GPU hour",
        f"{gpus} 块 GPU {hours} 小时，每 GPU 小时 2 美元，共多少钱",
    )


def _idle(lang: str) -> str:
    return text_in(
        lang,
        "what do 64 GPUs idle for 12 hours cost at $2 per GPU hour",
        "64 块 GPU 空闲 12 小时，每 GPU 小时 2 美元，共多少钱",
    )


def _caveat(lang: str) -> str:
    return text_in(
        lang,
        "Only the hours of the GPUs: not the work since the last checkpoint, nor people's time.",
        "只计 GPU 小时：不含上次检查点之后的损失，也不含人力。",
    )


def _n(value: float) -> str:
    """``1,536``, ``2.5``: at most two digits behind the point."""
    return f"{value:,.2f}".rstrip("0").rstrip(".")
