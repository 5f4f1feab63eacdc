"""Since when: "last 2 hours", "since 14:00", "过去两小时", as the history reads it ("2h", "14:00")."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from knowledge.lazy import lazy

_I = re.IGNORECASE
_L, _R = r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9_])"
_NUMERALS = {"一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10,
             "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
             "nine": 9, "ten": 10, "twelve": 12, "couple": 2, "few": 3, "几": 3}  # fmt: skip
# "a month" is 30 days, as `units.parse_duration` knows nothing longer than a week.
_UNITS = {"s": "s", "m": "m", "h": "h", "d": "d", "w": "7", "month": "30", "秒": "s", "分": "m", "时": "h", "天": "d",
          "日": "d", "周": "7", "星": "7", "礼": "7", "月": "30"}  # fmt: skip
_HAN_DIGITS = "零一二三四五六七八九"
_UNIT = (
    r"(?:s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:ou)?rs?|h|d(?:ays?)?|w(?:eeks?|k)?|months?|秒钟?|分钟?|(?:个)?小?时|小时|天|日|"
    r"(?:个)?(?:星期|礼拜)|周|(?:个)?月)"
)
_COUNT = r"(?:[0-9]{1,4}(?:\.[0-9])?|an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|(?:a )?couple(?: of)?|(?:a )?few|[一二两三四五六七八九十几]{1,3}|半)"
_DATE = r"20[0-9]{2}-[01][0-9]-[0-3][0-9](?:[T ][0-2][0-9]:[0-5][0-9](?::[0-5][0-9])?Z?)?"
_CLOCK = r"[0-2]?[0-9]:[0-5][0-9](?::[0-5][0-9])?"

# last 2 hours | in the past 24h | within the last 30 min | over the last week | for the last day
_LAST = lazy(
    rf"{_L}(?:(?:in|within|during|over|for|from|since)\s+)?(?:the\s+)?(?:last|past|previous|recent)\s+(?:({_COUNT})\s*)?({_UNIT}){_R}",
    _I,
)
# 2 hours ago | since an hour ago | for 3 days | since 2h
_AGO = lazy(rf"{_L}(?:(?:since|from|started)\s+)?(?:about\s+)?({_COUNT})\s*({_UNIT})\s+ago{_R}", _I)
_SINCE = lazy(rf"{_L}since\s+({_COUNT})\s*({_UNIT}){_R}", _I)
# 过去两小时 | 最近24小时 | 近 7 天 | 两小时前 | 这两天
_HAN_LAST = lazy(rf"(?:在)?(?:过去|最近|近|前|这)\s*(?:的)?\s*({_COUNT})\s*({_UNIT})(?:内|里|以来|之内)?", _I)
_HAN_AGO = lazy(rf"({_COUNT})\s*({_UNIT})(?:之前|以前|前|之?内|以内|以来)(?:开始|起)?", _I)
_DAY = lazy(
    rf"{_L}(?:(?:since|from|until|as of)\s+)?(yesterday|today|last night|this morning|this week|last week|overnight|"
    rf"(?:mon|tues|wednes|thurs|fri|satur|sun)day){_R}(?:\s+(?:at\s+)?({_CLOCK}){_R})?",
    _I,
)
_WEEKDAY = r"(?:周|星期|礼拜)[一二三四五六日天](?![0-9A-Za-z]|期|次)"
_HAN_DAY_WORD = (
    rf"昨天夜里|昨天晚上|昨天半夜|昨儿晚上|昨晚上?|昨夜里?|(?:上个?|这个?|本)?{_WEEKDAY}|昨天|昨日|昨儿|今天早上|今早|今晨|今天|今日|大前天|前天|前晚|"
    r"(?:上个?|本|这个?)(?:周末|周|星期|礼拜|月)"
)
_PART = r"凌晨|清晨|早上|早晨|上午|中午|下午|傍晚|晚上|夜里|半夜"
_HAN_DAY = lazy(rf"(?:从|自|自从)?\s*({_HAN_DAY_WORD})(?:\s*({_CLOCK})|\s*的?(?:{_PART}))?(?:以来|开始|起)?")
# 昨天下午三点 | 凌晨2点半 | 14点20分
_HAN_CLOCK = lazy(
    rf"(?:从|自|自从)?\s*(?P<day>{_HAN_DAY_WORD})?\s*的?\s*(?P<part>{_PART})?\s*(?P<hour>[0-9]{{1,2}}|[一二两三四五六七八九十]{{1,3}})\s*点(?:钟|整)?"
    r"(?P<minute>半|一刻|三刻|[0-9]{1,2}分?|[一二三四五]?十[一二三四五六七八九]?分?)?(?P<after>\s*(?:左右|多|前后)?(?:以来|开始|起|之后|以后))?"
)
_HAN_PART = lazy(r"(?:从|自)(凌晨|半夜|夜里|后半夜|大半夜)(?:以来|开始|起)?")
# since 14:00 | since 2026-11-20 | after 14:00 | 从14:00开始
_AT = lazy(
    rf"(?:{_L}(?:since|from|after|at|around)\s+|(?:从|自|自从)\s*)({_DATE}|{_CLOCK})(?![0-9:])(?:\s*(?:开始|以来|起|之后|以后))?",
    _I,
)
_PM = lazy(rf"{_L}(?:since|from|after|at|around)\s+([0-9]{{1,2}})(?::([0-5][0-9]))?\s*(am|pm){_R}", _I)
_BOOT = lazy(
    rf"{_L}since\s+(?:the\s+)?(?:last\s+)?(?:re)?boot{_R}|(?:自|从|自从)(?:上次)?(?:重启|开机)(?:以来|之后|以后|后)?|上次(?:重启|开机)(?:以来|之?后|以后)|"
    r"(?:重启|开机)(?:以来|到现在|至今)|(?:重启|开机)(?:之后|以后|后)(?=.{0,8}(?:有没有|过没|[报有出]过|出现过|发生过|遇到过))",
    _I,
)

# since the last good check | since it last worked | before it broke | 自从上次正常以来 | 出问题之前
_GOOD = lazy(
    rf"{_L}since\s+(?:the\s+)?last\s+(?:good|healthy|clean|ok)\s+(?:check|run|state|time){_R}|"
    rf"{_L}since\s+(?:it|they|this|the\s+(?:node|machine|server|host|box))\s+(?:last\s+worked|worked\s+last|(?:was|were)\s+last\s+(?:good|ok|fine|healthy))"
    rf"(?:\s+(?:fine|well))?{_R}|{_L}before\s+(?:it|this|the\s+(?:node|machine|server|host|box))\s+(?:broke|failed|went\s+bad){_R}|"
    r"(?:自|从|自从)?上(?:次|回)(?:还)?(?:正常|健康|没问题|好的?)(?:的?检查)?(?:以来|之后|以后|后)|(?:坏掉?|出问题|出故障|出错)(?:之前|以前|前)",
    _I,
)

_DAYS = {
    "昨天": "yesterday", "昨日": "yesterday", "今天": "today", "今日": "today", "昨晚": "last night", "昨夜": "last night",
    "昨天夜里": "last night", "昨天晚上": "last night", "overnight": "last night", "今早": "this morning", "今天早上": "this morning",
    "昨天半夜": "last night", "昨儿晚上": "last night", "昨晚上": "last night", "昨夜里": "last night", "昨儿": "yesterday", "今晨": "this morning",
    "凌晨": "today", "半夜": "last night", "夜里": "last night", "后半夜": "last night", "大半夜": "last night",
    "前天": "2d", "前晚": "2d", "大前天": "3d", "上周": "7d", "last week": "7d", "本周": "7d", "这周": "7d", "this week": "7d",
}  # fmt: skip


# A time has one of these words; most sentences have none, and need no pattern.
_HINTS = (
    "last",
    "past",
    "previous",
    "recent",
    "ago",
    "since",
    "day",
    "night",
    "morning",
    "week",
    "after",
    "from",
    "at ",
    "around",
    "until",
    "as of",
    "before",
)


_WEEK = {
    "一": "monday",
    "二": "tuesday",
    "三": "wednesday",
    "四": "thursday",
    "五": "friday",
    "六": "saturday",
    "日": "sunday",
    "天": "sunday",
}


class When(NamedTuple):
    """A span of the text and what it says."""

    start: int
    end: int
    value: str


def times(text: str) -> Iterator[When]:
    """Every time in `text`, the exact forms first; spans may overlap."""
    low = text.casefold()
    english = any(hint in low for hint in _HINTS)
    han = not text.isascii()
    if not (english or han):
        return
    for found in _PM.finditer(text):
        hour = int(found[1]) % 12 + (12 if found[3].lower() == "pm" else 0)
        yield When(found.start(), found.end(), f"{hour:02d}:{found[2] or '00'}")
    for pattern in (*((_LAST, _AGO, _SINCE) if english else ()), *((_HAN_LAST, _HAN_AGO) if han else ())):
        for found in pattern.finditer(text):
            yield When(found.start(), found.end(), _duration(found[1], found[2]))
    yield from _han_clocks(text) if han and "点" in text else ()
    for pattern in (*((_DAY,) if english else ()), *((_HAN_DAY,) if han else ())):
        for found in pattern.finditer(text):
            day = _day(found[1].lower())
            yield When(found.start(), found.end(), f"{day} {found[2]}" if found[2] else day)
    for found in _AT.finditer(text):
        yield When(found.start(), found.end(), found[1])
    for found in _HAN_PART.finditer(text) if han else ():
        yield When(found.start(), found.end(), _day(found[1]))
    for found in _BOOT.finditer(text):
        yield When(found.start(), found.end(), "boot")
    for found in _GOOD.finditer(text):
        yield When(found.start(), found.end(), "good")


def _day(said: str) -> str:
    """A day as the history reads it."""
    if said in _DAYS or said.isascii():
        return _DAYS.get(said, said)
    if said.endswith("月"):
        return "30d"
    return _WEEK.get(said[-1], "7d")


def _han_clocks(text: str) -> Iterator[When]:
    """Times of the day in Han words. "一点" without a day is "a little"."""
    for found in _HAN_CLOCK.finditer(text):
        if not (found["day"] or found["part"] or (found["hour"].isdecimal() and found["after"])):
            continue
        hour = _han_number(found["hour"])
        part = found["part"] or ("晚上" if (found["day"] or "").endswith(("晚", "晚上", "夜", "夜里", "半夜")) else "")
        small = part in ("晚上", "夜里", "半夜") and (hour < 6 or hour == 12)  # 昨晚3点: after midnight
        if small:
            hour %= 12
        elif hour < 12 and (part in ("下午", "傍晚", "晚上", "夜里") or (part == "中午" and hour < 3)):
            hour += 12
        minute = {"半": 30, "一刻": 15, "三刻": 45, None: 0}.get(found["minute"])
        if minute is None:
            minute = _han_number(found["minute"].removesuffix("分"))
        clock = f"{hour:02d}:{minute:02d}"
        day = (
            _day(found["day"]).replace("last night", "today" if small else "yesterday").replace("this morning", "today")
            if found["day"]
            else ""
        )
        exact = day and not day[0].isdecimal()  # "2d 14:00" is no time that the history reads
        yield When(found.start(), found.end(), f"{day} {clock}" if exact else day or clock)


def _han_number(word: str) -> int:
    """A whole number below 100 in digits or Han numerals."""
    if word.isdecimal():
        return int(word)
    tens, ten, ones = word.replace("两", "二").rpartition("十")
    return (_HAN_DIGITS.find(tens) if tens else 1) * 10 * bool(ten) + max(0, _HAN_DIGITS.find(ones) if ones else 0)


def _duration(count: str | None, unit: str) -> str:
    """``2h`` of ("two", "hours"); weeks and months in days."""
    word = (count or "1").lower().removeprefix("a ").split(" ")[0]
    number = _NUMERALS.get(word) or (word if word[0].isascii() else str(_han_number(word)))
    unit = unit.lower().removeprefix("个").removeprefix("小")
    key = "month" if unit.startswith("month") else unit[0]
    short = _UNITS[key]
    if word == "半":
        return {"h": "30m", "d": "12h", "30": "15d", "7": "3d", "m": "30s"}.get(short, "1h")
    if short.isdigit():
        return f"{int(float(number) * int(short))}d"
    return f"{number}{short}"
