"""Numbers as people write them, as digits with a unit behind: 三万多, 2.3 million, 40/min, 2.5 GT/s, "7 of 8", 131/700 W."""

from __future__ import annotations

import re

from assistant.intent import parts
from assistant.intent.readings import is_number
from knowledge.lazy import lazy

_I = re.IGNORECASE
_HAN_DIGITS = "零一二三四五六七八九"
_TIMES = {"百": 100, "千": 1000, "万": 10_000, "亿": 100_000_000}
# 8 万 | 三万多 | 250,000 | 两个 (一个都没有 says none)
_BIG = lazy(r"([0-9]+(?:\.[0-9]+)?|[一二两三四五六七八九])\s*(?:[多来余几]\s?(?=[万亿]))?([万千百亿])")
_WATTS = lazy(r"(?<=[0-9])\s*w(?![a-z0-9]|/(?![0-9]))", _I)  # "w" alone is how people write "with"
_GROUPED = lazy(r"(?<![0-9.,])[0-9]{1,3}(?:,[0-9]{3})+(?![0-9,])")
_HAN_COUNT = lazy(
    r"([一二两三四五六七八九十])\s*(?=[次个条页行根](?!都没|都不|也没))|(?<![0-9第])([一二两三四五六七八九十])\s*(?=[张块])|(?<![0-9第])([二两三四五六七八九十])\s*(?=卡(?!掉)|号)"
)
_WORDED = (
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
)
# three GPUs | two of the eight cards | both power supplies
_COUNTED_EN = lazy(
    rf"(?<![a-z-])(?:{'|'.join(_WORDED)}|both)(?=\s+(?:(?:out\s+)?of\s+(?:the\s+|our\s+|its\s+|my\s+)?|other\s+|more\s+|different\s+)?(?:{'|'.join(_WORDED)}|[0-9]+\s+)?\s*(?:gpus?|cards?|<model>|nvlinks?|links?|ports?|psus?|fans?|nodes?|power\s+supplies|(?:<?[a-z]+>?\s+)?(?:processes|servers|programs|containers|pods|notebooks|models|engines|instances|jobs|users|people|colleagues|students|teams|tenants)|retired|pages|rows|uncorrect\w+|correct\w+|double|single|ecc|dbes?|errors)(?![a-z]))",
    _I,
)
_GREAT = lazy(r"([0-9]+(?:\.[0-9]+)?)\s*(million|mio|thousand|k|m)(?![a-z0-9/])", _I)
_FACTORS = {"million": 1_000_000, "mio": 1_000_000, "m": 1_000_000, "thousand": 1000, "k": 1000}
_NONE_OF = lazy(
    r"(?<![0-9.])(?:0|zero|none)\s+(?:out\s+)?of\s+(?:the\s+|our\s+|its\s+)?(?:[0-9]+\s+)?(?:gpus?\s+|cards?\s+)?(?=[a-z])",
    _I,
)  # 0 of 8 GPUs
_KILL = lazy(r"(?<![a-z])(?:kill|signal|sig)\s*-?\s*(?:9|15)(?![0-9])", _I)
_SHARE = lazy(
    r"(?<![0-9./])([0-9]{1,3})\s*/\s*([0-9]{1,3})(?![0-9./])(?=\s*(?:[a-z]{3}|<gpu>|<model>|[\u4e00-\u9fff]))", _I
)  # 11/12 links
# one corrected error a week | 每天两三次: of a range the greater counts
_ONE_EACH = lazy(
    r"(?<![a-z])(?:one|a single|a)(?=\s+(?:[a-z]+\s+){1,4}(?:per|an?|each|every)\s+(?:second|minute|hour|day|week)(?![a-z]))",
    _I,
)
_HAN_RANGE = lazy(r"[一二两三四五六七八](?=[二两三四五六七八九][次个张块台])")
# 40/min | 120 次/分 | 3/s
_EVERY = lazy(
    r"(?<=[0-9次个])\s*/\s*(seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|秒|分钟?|小时|天)(?![a-z])", _I
)
_SHORT = {
    "s": "second",
    "m": "minute",
    "min": "minute",
    "h": "hour",
    "hr": "hour",
    "d": "day",
    "分": "minute",
    "分钟": "minute",
    "秒": "second",
    "小时": "hour",
    "天": "day",
}
_TRANSFERS = lazy(r"(?<![0-9.])([0-9]{1,2}(?:\.[0-9])?)\s*gt\s*/\s*s(?![a-z])", _I)
_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}  # PCI Express: transfers a second of a lane
# 78 of 80 GB used | 显存 81080/81559 MiB
_USED_OF = lazy(
    r"(?<![0-9.])([0-9]+(?:\.[0-9]+)?)\s*(gi?b|mi?b|ti?b)?\s*(?:(?:out\s+)?of|/)\s*([0-9]+(?:\.[0-9]+)?)\s*(gi?b|mi?b|ti?b)(?![a-z/])",
    _I,
)


_DRAWS_OF = lazy(
    r"(?<![0-9.])([0-9]+(?:\.[0-9]+)?)\s*(?:watts?)?\s*(?:(?:out\s+)?of|/)\s*([0-9]+(?:\.[0-9]+)?)\s*watts?(?![a-z])",
    _I,
)  # 131 of 700 W


# power limit 350 W of 700 W
_LIMIT_OF = lazy(
    r"(?<![a-z])(?:limit|cap|capped|(?:功耗|功率)上限)\s*(?:is|of|at|to|[:=为是])?\s*([0-9]{2,4})\s*(?:watts?)?\s*(?:(?:out\s+)?of|/)\s*([0-9]{2,4})\s*watts?(?![a-z])",
    _I,
)


# power 210/700
_POWER_OF = lazy(
    r"(?<![a-z])(power(?:\s+draw)?|功耗|功率)\s*[:=为是]?\s*([0-9]{2,4})\s*(?:of|/)\s*([0-9]{2,4})(?![0-9.]|\s*(?:%|w|mhz))",
    _I,
)


_SIZES = {"m": 1, "g": 1024, "t": 1024 * 1024}
_OF_HOST = lazy(r"(?:host|system|main|node)(?: memory)?|ram|swap|内存|主机", _I)
_OF_DISK = lazy(r"disk|硬盘|磁盘|分区|<path>|/[a-z]", _I)
# 内存 1T 用了 1020G
_USED_ZH = lazy(
    r"(?P<what>内存|swap|交换分区|交换空间)[^0-9,，。;；]{0,6}(?P<all>[0-9]+(?:\.[0-9]+)?)\s*(?P<u>[mgt])i?b?[^0-9,，。;；]{0,4}(?:用|占)(?:了|掉|到)?\s*(?P<used>[0-9]+(?:\.[0-9]+)?)\s*(?P<v>[mgt])i?b?",
    _I,
)


# 内存 2T 只剩 3G: what is left is told, and how much there is beside it
_LEFT_ZH = lazy(
    r"(?:主机|系统)?内存[^0-9,，。;；]{0,6}[0-9]+(?:\.[0-9]+)?\s*[mgt]i?b?[^0-9,，。;；]{0,3}(?:只剩|还剩|剩下?|可用|空闲)[^0-9,，。;；]{0,4}(?=[0-9])",
    _I,
)
# 64M of /dev/shm, 2T of memory: of a size these are units of bytes, and no millions
_OF_SIZE = lazy(r"shm|memory|(?<![a-z])(?:ram|swap|vram|hbm|disk)(?![a-z])|内存|显存|硬盘|磁盘|空间|缓存", _I)
_BARE_SIZE = lazy(r"(?<![a-z0-9_.-])([0-9]+(?:\.[0-9]+)?)\s*([MT])(?![A-Za-z0-9/])")


def _share_of_host(m: re.Match[str]) -> str:
    share = 100 * float(m["used"]) * _SIZES[m["v"].casefold()] / (float(m["all"]) * _SIZES[m["u"].casefold()] or 1)
    return f" | {'ram' if m['what'] == '内存' else 'swap'} {min(share, 100):.0f} % used | "


def _used_of(m: re.Match[str]) -> str:
    """So much of so much: of the host's memory as a share, of the GPU's as two readings; of a disk it is left as it stands."""
    ahead = m.string[max(0, m.start() - 24) : m.start()]
    host = [*_OF_HOST.finditer(ahead)]
    if host:
        unit = _SIZES[m[4][0].casefold()]
        share = 100 * float(m[1]) * _SIZES[(m[2] or m[4])[0].casefold()] / (float(m[3]) * unit or 1)
        return f" | {'swap' if host[-1][0].casefold() == 'swap' else 'ram'} {min(share, 100):.0f} % used | "
    if _OF_DISK.search(ahead):
        return m[0]
    return f" | memory used {m[1]} {m[2] or m[4]} | total memory {m[3]} {m[4]} | "


_MINUS = lazy(r"(?<![A-Za-z0-9_.)-])-(?=[0-9])")
# 61, 63, 60 | 61/63/60: one row of readings
_ROW = lazy(
    r"(?<![0-9.,/])[0-9]{1,9}(?:\.[0-9])?\s?(?:c|%|w|mhz)?(?:(?:\s*[,/、]\s*|,?\s*(?:and|和)\s*)[0-9]{1,9}(?:\.[0-9])?\s?(?:c|%|w|mhz)?){2,}(?![0-9/]|\s*[a-z]{4})",
    _I,
)


_PERCENT = lazy(r"(?<=[0-9])\s*(?:percent|per cent|pct)(?![a-z])", _I)
_FLAG = lazy(
    r"(?<=\s)--?[a-z][a-z-]{0,20}[ =]?[0-9]+(?:,[0-9]+)*(?![0-9.])(?!\s*(?:c|w|mhz|%|度|瓦)(?![a-z]))", _I
)  # dcgmi diag -r 3


# In how much time it came to be so stands between a name and its number, and is neither.
_WHEN = lazy(r"一夜之间|一夜间?|一晚上?|(?:昨|今|前)(?:天|晚|夜)|这[几两]天|短短|突然")


# 同一个任务 counts nothing
_SAME = lazy("同[一样]的?个?(?=[^0-9])")
# 几百条 | 上千次: the least that it can be
_SOME = lazy("(?<![0-9一二三四五六七八九十])[几上数好](?:几)?([十百千万])多?(?=[次个条行页]|$|[，。;；\\s])")
_LEAST = {"十": 20, "百": 200, "千": 2000, "万": 20_000}


# P0 to P12: a performance state, and no reading
_P_STATE = lazy(r"(?<![a-z0-9._/-])p(?:[0-9]|1[0-2])(?![a-z0-9._/-])", _I)


def numerals(clause: str) -> str:
    """A clause with its numbers as digits and its units as words."""
    clause = _P_STATE.sub(" ", parts.plain(clause))
    if "-" in clause:
        clause = _FLAG.sub(" ", clause)
    if "pct" in clause or "per" in clause:
        clause = _PERCENT.sub(" % ", clause)
    if not clause.isascii():
        clause = _USED_ZH.sub(_share_of_host, _WHEN.sub(" ", clause))
        clause = _LEFT_ZH.sub(" 剩余内存 ", _SAME.sub(" ", clause))
        clause = _SOME.sub(lambda m: f" {_LEAST[m[1]]} ", clause)
    if _OF_SIZE.search(clause):
        clause = _BARE_SIZE.sub(lambda m: f"{m[1]} {m[2].casefold()}ib ", clause)
    clause = _WATTS.sub(" watts ", clause)  # "w" alone is "with"
    clause = _GROUPED.sub(lambda m: m[0].replace(",", ""), clause) if "," in clause else clause
    clause = _KILL.sub("kill", _NONE_OF.sub("no ", clause))
    clause = _SHARE.sub(r"\1 of \2 ", clause) if "/" in clause else clause
    clause = _HAN_RANGE.sub("", _ONE_EACH.sub("1", clause))
    if "/" in clause:
        clause = _EVERY.sub(lambda m: f" per {_SHORT.get(m[1].casefold(), m[1])} ", clause)
        clause = _TRANSFERS.sub(lambda m: f" gen {_GENERATIONS.get(float(m[1]), m[1])} ", clause)
    if "/" in clause or "of" in clause.casefold():
        clause = _LIMIT_OF.sub(r"limit \1 watts | default power limit \2 watts | ", clause)
        clause = _POWER_OF.sub(r"\1 \2/\3 watts ", clause)
        clause = _DRAWS_OF.sub(r" | power draw \1 watts | power limit \2 watts | ", _USED_OF.sub(_used_of, clause))
    clause = _MINUS.sub(" minus ", clause) if "-" in clause else clause
    clause = _GREAT.sub(lambda m: f"{float(m[1]) * _FACTORS[m[2].casefold()]:.0f}", clause)
    clause = _COUNTED_EN.sub(
        lambda m: str({"both": 2}.get(m[0].casefold()) or _WORDED.index(m[0].casefold()) + 2), clause
    )
    if clause.isascii():
        return clause
    for _ in range(2):  # 一百万
        clause = _BIG.sub(lambda m: f" {_plain(m[1]) * _TIMES[m[2]]:.0f} ", clause)
    return _HAN_COUNT.sub(lambda m: f" {10 if m[0][:1] == '十' else _plain(m[0][0]):.0f} " if m[0] else "", clause)


def _plain(said: str) -> float:
    return float(said) if is_number(said) else _HAN_DIGITS.find(said.replace("两", "二"))


def in_a_row(text: str) -> str:
    """Readings that are listed ("61, 63/60") with nothing but blanks between."""
    return _ROW.sub(lambda m: re.sub(r"\s*(?:[,/、]|and|和)\s*", " ", m[0]) if _is_row(m[0]) else m[0], text)


def _is_row(listed: str) -> bool:
    """Whether values are of one kind: neither of two units, nor with a value and what it is of at the end ("58, 640/700 W")."""
    last = _SHARE_LAST.search(listed)
    of_whole = listed.count("/") == 1 and last is not None and float(last[1]) <= float(last[2])
    return not of_whole and len({m.casefold() for m in _UNIT_OF.findall(listed)}) < 2


_UNIT_OF = lazy(r"(?<=[0-9])\s?(c|%|w|mhz)", _I)
_SHARE_LAST = lazy(r"[,、]\s*([0-9.]+)\s*/\s*([0-9.]+)\s?(?:c|%|w|mhz)?$", _I)
