"""Whether a value is good: "is 43 % MFU good", "what is a normal GPU temperature"."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from assistant.dialogue._pages import ask_for, data_of, follow_ups, read, text_in
from assistant.find import search
from assistant.find.index import hints, wanted
from assistant.find.tokens import terms
from assistant.intent import things
from assistant.intent.query import Topic
from assistant.intent.stated import asks_usual
from assistant.render.sheet import Paragraph
from assistant.reply import Reply
from assistant.topics.range import bounds, judged, page
from knowledge.language import Text
from knowledge.lazy import lazy
from knowledge.ranges import Band, Range, ranges
from knowledge.workloads import Workload, named

if TYPE_CHECKING:
    from assistant.intent.query import Query

_LONG = 300  # characters: a question about one value is short
# 43, 43%, 0.43, 1,200 GB/s, 85°C, 1e-12, 90 degrees; not the 4 of "NVLink4", the 100 of "H100", the 17 of "rank 17", the 10 of "10 minutes".
_NUMBER = lazy(
    r"(?<![\w.])(?<![a-z]-)(?<!rank )(?<!ranks )(?<!rank #)(?<!gpu )(?<!node )(?<!card )(?P<n>[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?)\s*"
    r"(?P<u>%|percent|°\s*c\b|℃|celsius|degrees?|c\b|gb/s|gbps|gb/sec|tb/s|gb?/s|w\b|watts?|mhz|ghz|h\b|hours?|/s|/min|度|瓦|百分)?(?![a-z0-9])"
    r"(?!\s*(?:ms|mins?|minutes?|s|secs?|seconds?|days?|weeks?|steps?|ranks?|nodes?|gpus?)(?![a-z0-9])|\s*(?:分钟|秒|天|步|号))",
    re.IGNORECASE,
)
# What a question for the normal begins with, by the band.
_LEADS = {
    "good": Text("Yes: ", "正常："), "fair": Text("It depends: ", "视情况而定："), "open": Text("It depends: ", "视情况而定："),
    "poor": Text("No: ", "不正常："), "bad": Text("No: ", "不正常："),
}  # fmt: skip
_SHARE = 110  # a bare number above is no share in percent
_UNITS = {
    "%": "%", "percent": "%", "百分": "%", "℃": "°C", "celsius": "°C", "degree": "°C", "degrees": "°C", "c": "°C", "度": "°C",
    "gb/s": "GB/s", "gb/sec": "GB/s", "gbps": "Gb/s", "w": "W", "watt": "W", "watts": "W", "瓦": "W", "h": "h", "hour": "h", "hours": "h",
}  # fmt: skip


class Value(NamedTuple):
    """A number of a sentence, with the unit that stands behind it ("" none)."""

    number: float
    unit: str


def answer(query: Query, lang: str) -> Reply | None:
    """The band in which the sentence's value lies, or the bands; None when no value of a measure is asked about."""
    if len(query.text) > _LONG or query.slots.xid or query.slots.sxid:
        return None
    found = _measured(query)
    if found is None:
        return None
    value = value_of(read(query), found)
    if value is not None and _of_another(read(query), value, found):
        value = None  # "does occupancy matter if SM active is 95 %"
    asks = "range" in hints(read(query))
    if value is None and not asks and not (query.topics and query.topics[0].kind == "range"):
        return None
    band = found.band(value.number) if value is not None and value.unit in ("", found.unit) else None
    if band is not None and value is not None:
        return _judged(found, value, *band.among(named(query.text)), read(query), lang)
    return _bands(found, asks, lang)


def _measured(query: Query) -> Range | None:
    """The measure that a sentence names by one of its names: the longest name wins."""
    asked = wanted(read(query))
    best: tuple[int, str] | None = None
    for t in search(read(query), 3, {"range"}):
        r = ranges()[t.name]
        for name in (r.title.en, r.title.zh, r.id.replace("-", " "), *r.aliases):
            run = terms(name)
            if run and _holds(asked, run) and (best is None or len(run) > best[0]):
                best = (len(run), r.id)
    return ranges()[best[1]] if best is not None else None


def _holds(asked: list[str], run: list[str]) -> bool:
    """Whether all words of a name stand in what was asked; of Han characters next to each other."""
    return set(run) <= set(asked)


def value_of(text: str, r: Range) -> Value | None:
    """The value that is asked about: the number with the measure's unit, else the only one that no name holds."""
    plain = things.without_counts(unicodedata.normalize("NFKC", text[:_LONG]).casefold())
    if r.unit == "/min" and _SLOWER.search(plain):
        return None  # of an hour or a day no band is given
    plain = _DIFFERENCE.sub(" ", plain)
    names = " ".join((r.id, r.title.en, r.title.zh, *r.aliases)).casefold()
    values = [
        Value(float(m["n"].replace(",", "")), _unit(m["u"]))
        for m in _NUMBER.finditer(plain)
        if not re.search(rf"(?<![0-9]){re.escape(m['n'])}(?![0-9])", names)
    ]
    values = [_scaled(v, r) for v in values]
    fitting = [v for v in values if v.unit == r.unit]
    if fitting:
        return fitting[0] if len(fitting) == 1 else min(fitting, key=lambda v: _away(plain, v, r))
    bare = [v for v in values if not v.unit and not (r.unit == "%" and v.number > _SHARE)]
    return bare[0] if len(bare) == 1 else None


# 8 % slower | clocks are 8% lower | 比别人慢 8 %: how far one is from another, and the value of neither
_DIFFERENCE = lazy(
    r"(?<![0-9.])[0-9]+(?:\.[0-9]+)?\s?(?:%|percent)\s*(?:points? )?(?:slower|faster|lower|higher|less|more|fewer|below|above|under|over|behind|ahead|worse|better|longer|shorter|hotter|cooler|drop|loss|gain|difference|off)(?![a-z])"
    r"|(?:[慢快低高少多差]|下降|降低|提升|上升|减少|增加)[了出约大概近]{0,3}\s?[0-9]+(?:\.[0-9]+)?\s?%"
)
_SLOWER = lazy(r"每(?:小时|天|日|周)|(?:小时|天)内?|(?<![a-z])(?:per|an?|each|every) (?:hour|day|week)|hourly|daily")


def _away(plain: str, v: Value, r: Range) -> int:
    """How many characters lie between a value and the measure's name."""
    number = f"{v.number:g}"
    places = [m.start() for m in re.finditer(rf"(?<![\w.]){re.escape(number)}(?![\w])", plain)]
    names = [(m.start(), m.end()) for name in r.aliases for m in re.finditer(re.escape(name.casefold()), plain)]
    gaps = [max(start - at - len(number), at - end) for start, end in names for at in places]
    return min(gaps, default=_LONG)


def _of_another(text: str, value: Value, r: Range) -> bool:
    """Whether the name of another measure stands right beside a value, and that of `r` does not."""
    plain = unicodedata.normalize("NFKC", text[:_LONG]).casefold()
    near = {other.id: _away(plain, value, other) for other in ranges().values() if other.unit == r.unit}
    return near[r.id] > _BESIDE and any(gap <= _BESIDE for name, gap in near.items() if name != r.id)


_BESIDE = 5  # characters between a name and its value: " is ", "达到"


def _unit(word: str | None) -> str:
    plain = re.sub(r"^°\s*", "", (word or "").casefold())
    return _UNITS.get(plain, plain)


def _scaled(v: Value, r: Range) -> Value:
    """0.43 of a share is 43 %."""
    if r.unit == "%" and not v.unit and 0 < v.number <= 1:
        return Value(v.number * 100, "%")
    if r.unit == "GB/s" and v.unit == "tb/s":
        return Value(v.number * 1000, "GB/s")
    return v


def judge(r: Range, value: float, asked: str, lang: str) -> Reply | None:
    """What `value`, in the unit of the measure, is by its bands; None where they do not hold it."""
    band = r.band(value)
    return _judged(r, Value(value, r.unit), band, None, asked, lang) if band is not None else None


def lead_of(rating: str, lang: str) -> str:
    """What an answer to "is that normal?" begins with, by the rating of a band."""
    return _LEADS[rating].in_(lang)


def _judged(r: Range, value: Value, band: Band, kind: Workload | None, asked: str, lang: str) -> Reply:
    lead = lead_of(band.rating, lang) if asks_usual(asked) else ""
    headline = lead + judged(r, value.number, band, kind).in_(lang)
    sheet = page(r, lang)
    here = text_in(lang, f"The band is {bounds(band, r.unit, lang)}.", f"所在区间：{bounds(band, r.unit, lang)}。")
    return Reply(
        lang, headline, (Paragraph(here), *sheet.parts), suggestions=_next(r, lang),
        data=data_of("explain", [f"range {r.id}"], value=value.number, unit=r.unit, rating=band.rating, entry=sheet.data),
    )  # fmt: skip


def _bands(r: Range, asks: bool, lang: str) -> Reply:
    """What is a good value, without one to judge; with its bounds first where that is what is asked."""
    from assistant.dialogue._pages import spoken

    sheet = page(r, lang)
    headline, parts = spoken(sheet, lang)
    good = [b for b in r.bands if b.rating == "good"]
    if asks and good and all(a.high == b.low for a, b in pairwise(good)):
        whole = bounds(replace(good[0], high=good[-1].high), r.unit, lang)
        headline += text_in(lang, f" Good: {whole}.", f"良好：{whole}。")
    return Reply(
        lang, headline, parts, suggestions=_next(r, lang), data=data_of("explain", [f"range {r.id}"], entry=sheet.data)
    )


def _next(r: Range, lang: str) -> tuple[str, ...]:
    from assistant.find import topic

    term = topic(f"term {r.id}")
    ask = (ask_for(Topic(term.id, 0.0, term.title), lang),) if term is not None else ()
    return (*ask, *follow_ups(f"range {r.id}", lang))[:3]
