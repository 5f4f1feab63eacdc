"""Facts of one clause: called by their names, or told by the unit of a number. A number belongs to one fact, the one it stands with.

The unit decides: "106 C" is never a count, "345 MHz" never a share, "5 per minute" never a total. What is an index
("link 4", "slot 4") or is denied ("not 97") is nobody's value; nor is a number of something else: of a word that stands
between it and the name ("row remap histogram shows 3"), or right behind it ("3 banks"), or of a part that is none of the
GPU ("inlet", "chassis fan"). What no fact took is open, and who reads the clause has to say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from assistant.find.tokens import STOP
from assistant.intent import phrases
from assistant.intent.grammar import facts_of, runs
from assistant.intent.tables import tables
from assistant.values import Problem, parse
from knowledge.facts import FactSpec, Kind, Type, vocabulary
from knowledge.lazy import lazy
from knowledge.lexicon import lexicon
from knowledge.observation import Value

# Words behind a number -> the units of the vocabulary that they can be.
_C, _W, _MHZ, _PERCENT = ("C",), ("W",), ("MHz",), ("percent", "ratio")
_SIZE, _RATE, _TIME = ("MiB", "B"), ("Gb/s", "GB/s", "MiB/s", "B/s"), ("s", "ms", "us", "ns")
_BEHIND: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("c", "celsius", "degrees", "degree", "deg", "度", "摄"), _C),
    **dict.fromkeys(("w", "watts", "watt", "瓦", "kw"), _W),
    **dict.fromkeys(("mhz", "ghz"), _MHZ),
    **dict.fromkeys(("%", "percent", "pct"), _PERCENT),
    **dict.fromkeys(("gib", "mib", "mb", "tib"), _SIZE), "gb": (*_SIZE, *_RATE), "g": (*_SIZE, *_RATE),
    **dict.fromkeys(("gbps", "gbit", "gbits"), _RATE),
    **dict.fromkeys(("ms", "seconds", "secs", "sec", "second", "minutes", "mins", "minute", "min", "hours", "hour", "days", "day", "weeks", "week", "秒", "分", "天", "周", "us"), _TIME),
    "s": _TIME, **dict.fromkeys(("rpm", "gt", "mw", "khz", "volts", "volt", "v", "amps", "tflops", "转"), ("none of ours",)),
}  # fmt: skip
_COUNTED = ("count", "")  # a number without a unit fits anything, one with a unit no count
_PER = ("per second", "per minute", "per day")
_EACH = frozenset(["per", "a", "an", "each", "every"])
_SPANS = {
    **dict.fromkeys(("second", "sec", "s", "秒"), 1.0),
    **dict.fromkeys(("minute", "min", "分"), 60.0),
    **dict.fromkeys(("hour", "hr", "h", "时"), 3600.0),
    **dict.fromkeys(("day", "天", "日", "晚"), 86400.0),
    **dict.fromkeys(("week", "周"), 604800.0),
}
_LY = {"hourly": "hour", "daily": "day", "weekly": "week"}
_SECONDS = {
    **dict.fromkeys(("seconds", "secs", "sec", "second", "秒"), 1.0),
    **dict.fromkeys(("minutes", "mins", "minute", "min", "分"), 60.0),
    **dict.fromkeys(("hours", "hour"), 3600.0),
    **dict.fromkeys(("days", "day", "天"), 86400.0),
    **dict.fromkeys(("weeks", "week", "周"), 604800.0),
}
# 2x slower, 3 times as long, 2 倍, 20 % lower than the others: how it differs, and no reading
_FOLD = frozenset(["x", "times", "fold"])
_DIFFERS = frozenset(
    ["slower", "faster", "longer", "shorter", "lower", "higher", "worse", "better", "less", "more", "smaller", "larger", "slowdown", "speedup", "as"]
)  # fmt: skip
# Counters of which a rate means something by itself.
_RATES = {
    "gpu.pcie.replay": "gpu.pcie.replay.rate",
    "gpu.nvlink.errors.replay": "gpu.nvlink.replay.rate",
    **dict.fromkeys(("gpu.nvlink.errors.crc_flit", "gpu.nvlink.errors.crc_data"), "gpu.nvlink.crc.rate"),
    **{f"gpu.ecc.{life}.{kind}.{part}": f"gpu.ecc.{kind}.rate"
       for life in ("volatile", "aggregate") for kind in ("corrected", "uncorrected") for part in ("total", "dram", "sram")},
}  # fmt: skip
_IS = frozenset(["is", "are", "was", "是", "为", "有", "只"])
# Ahead of a number it is the index of a thing; "x16" are lanes and "gen 5" is a generation.
_INDEXED = frozenset(
    ["nvlink", "nvlinks", "link", "links", "port", "slot", "psu", "lane", "rank", "bay", "bus", "switch", "nvswitch", "node", "no", "number", "rail", "号", "ib", "mlx", "nic", "dimm", "socket", "fan", "fans", "pump", "iteration", "iter", "step", "epoch", "batch", "seq"]
)  # fmt: skip
_DENIED = (("not",), ("isn't",), ("wasn't",), ("never",), ("不", "是"), ("并", "非"))
# What it should be is no reading: "350 W instead of 700 W", "should be at 400 but is at 200".
_WANTED = (
    ("instead", "of"),
    ("rather", "than"),
    ("should", "be"),
    ("should", "have"),
    ("should", "run"),
    ("supposed", "to", "be"),
    ("meant", "to", "be"),
    ("ought", "to", "be"),
    ("应", "该", "是"),
    ("应", "该", "有"),
    ("应", "为"),
    ("应", "是"),
    ("应", "该"),
    ("本", "来", "是"),
    ("不", "到"),  # 功耗到不了 700, 跑不到 700: what it does not reach
    ("没", "到"),
    ("不", "了"),
    ("不", "上"),
    ("原", "来", "是"),
)
_NOUGHT = frozenset(["no", "zero", "without", "没", "无", "零", "未"])
_COUNTS = {
    w: n for n, w in enumerate(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"])
}
# What the words around a number mean when its unit is not that of the fact that they name.
_MEMORY = frozenset(["hbm", "vram", "memory", "mem", "显", "dram", "gddr"])
_CORE = frozenset(["core", "die", "gpu", "junction", "edge", "核", "芯", "结"])
# Of these a part that is no GPU has one too.
_SHARED = ("gpu.temperature.", "gpu.fan.", "gpu.power.", "gpu.clock.", "gpu.utilization.")
_LIMITED = frozenset(["capped", "cap", "limited", "limit", "限"])
_PORT = frozenset(["ib", "infiniband", "port", "mlx", "ndr", "hdr", "端", "rdma", "roce"])
_SIZES, _HELD = (
    _BEHIND["gb"],
    frozenset(["allocated", "held", "occupied", "taken", "reserved", "holds", "holding", "occupies", "takes"]),
)
_NOT_IN_USE = frozenset(["fragmented", "fragmentation", "free", "left", "unused", "碎", "剩", "空"])
_SMI = frozenset(["smi", "nvtop", "nvitop", "gpustat"])  # what they show in percent is utilisation
_AT = frozenset(
    [
        "",
        "at",
        "runs",
        "running",
        "sits",
        "shows",
        "is",
        "gpu",
        "<gpu>",
        "<model>",
        "the",
        "my",
        "our",
        "a",
        "an",
        "this",
        "card",
    ]
)
_PCIE = frozenset(["pcie", "pci", "lanes", "lane", "width", "gen"])
_TROUBLE = lazy(r"\.(?:\w*pending|failure|failed|\w*exceeded|\w*required|hw_\w+|sw_thermal|died|hung|\w*unhealthy)$")
_OK = frozenset(["ok", "fine", "good", "normal", "clean", "healthy", "正", "好"])
UNITS = frozenset(_BEHIND)
_CUTS = frozenset([",", "|", "and", "but", "while", "plus", "和", "而", "但", "且"])
_HAN_OTHERS = 5  # Han characters between a name and a number from which on they say something else
_NEAR = 3  # words ahead of a name among which its state stands: "a failed fabric manager", not "failed to start inside docker"
_LONG = 2  # words of a name beyond which no other thing is meant: a word is its value, "driver is loaded" is no version


class Number(NamedTuple):
    """A number within the words of a clause."""

    at: int
    said: str  # as a value of its unit is parsed: "1.2 ghz"
    units: tuple[str, ...]  # of the vocabulary that it can be in; empty: it has none
    kind: str = ""  # "x" of lanes, "gen" of a generation, "index", "denied", "other"
    every: float = 0.0  # of a rate: the seconds in which there are so many


def is_number(word: str) -> bool:
    """Whether a word is a number."""
    return word[:1].isdecimal() and word.isascii()


class Taken(NamedTuple):
    """A fact that a clause tells."""

    fact: str
    values: tuple[Value, ...]  # several where they are listed: one of each thing of its kind
    places: frozenset[int]  # the words that told it


class Values(NamedTuple):
    """What the words of a clause tell."""

    taken: tuple[Taken, ...]
    open: tuple[int, ...]  # where numbers stand that are of nothing known


def values(words: Sequence[str], before: str = "", whole: Sequence[str] = (), *, foreign: bool = False) -> Values:
    """The facts that the words of a clause tell, each with its value, and the numbers that none of them took.

    `before`: the fact that was told last; `whole`: the words of the whole clause, where others of it were read already;
    `foreign`: it goes on about a part that is none of a GPU's.
    """
    words, whole = _cards(words), _cards(whole)
    spans = [s for s in named_in(words) if _counts(s[2]) and not _is_unit(words, *s[:2])]
    spans = [s for s in spans if not (_is_heading(s, words, spans) or _is_time(words, *s[:2]))]
    named = {i for start, end, _ in spans for i in range(start, end)}  # the 32 of "fp32 pipe" is no number
    every = {n.at: n for n in _numbers(words) if n.at not in named}
    free = dict(every)
    told: dict[str, Taken] = {}
    for _, end, name in tuple(spans):
        if len(spans) > 1 and (upto := _enum_at(name, words, end)):  # "the kind is fan": a value that is a name too
            spans = [s for s in spans if not end <= s[0] < upto]
    for i, (start, end, name) in enumerate(spans):
        behind = range(end, spans[i + 1][0] if i + 1 < len(spans) else len(words))
        ahead = range(start - 1, (spans[i - 1][1] if i else 0) - 1, -1)
        if _loose(name, words, start, end, spans, before, every):
            continue
        if (name.startswith(_SHARED) and (foreign or _foreign(words, start, spans))) or _left_of_it(name, words, start):
            continue
        if (one := _of_name(name, words, behind, ahead, free, i + 1 < len(spans))) is not None and one.fact not in told:
            told[one.fact] = one._replace(places=one.places | frozenset(range(start, end)))
    around = frozenset((*words, *whole, "port" if before.startswith(("port.", "node.ib.")) else ""))
    for number in list(free.values()):
        fact = _by_unit(number, _near(words, number, every, around), around)
        if (
            fact
            and fact not in told
            and not (foreign or _foreign(words, number.at, spans))
            and (value := _read(fact, number)) is not None
        ):
            told[fact] = _listed(fact, value, number, words, free)
    if (over := _threshold(words, before)) is not None:
        told.setdefault(over.fact, over)
    family = dict(_of_family(before, words)) if before and (not told or _counts_remaps(before, words)) else {}
    if family:
        return Values(tuple(Taken(f, (v,), frozenset(range(len(words)))) for f, v in family.items()), ())
    return Values(
        tuple(told.values()), tuple(n.at for n in free.values() if n.kind not in ("index", "denied") and not _lasts(n))
    )


# Names of a part that are names of more than its activity: "dram errors 3", "SM 90", "fp32".
_OF_MORE = frozenset(["sm", "sms", "dram", "tensor", "tensor core", "tensor cores", "fp 32", "fp 64"])
_WHOLE = 100.0
_WORK = ("gpu.activity.", "gpu.utilization.", "gpu.power.")


def _cards(words: Sequence[str]) -> Sequence[str]:
    """`words` with 显卡 as 卡 and 显示 as 示: by itself 显 is the memory, 显存."""
    pairs = zip(words, (*words[1:], ""), strict=True)
    return tuple(b if (a, b) in _NO_MEMORY_OF else a for a, b in pairs) if "显" in words else words


_NO_MEMORY_OF = (("显", "卡"), ("显", "示"))


def _loose(
    name: str,
    words: Sequence[str],
    start: int,
    end: int,
    spans: Sequence[tuple[int, int, str]],
    before: str,
    numbers: Mapping[int, Number],
) -> bool:
    """Whether a name of a part stands beside no share, and nowhere near other counters of work: then it is of something else."""
    if not name.startswith("gpu.activity.") or " ".join(words[start:end]) not in _OF_MORE:
        return False
    if before.startswith(_WORK) or any(n.startswith(_WORK) for a, _, n in spans if a != start):
        return False
    near = [n for n in numbers.values() if n.at in _segment(words, start)]
    return not any(n.units == _PERCENT or "." in n.said for n in near)


def _is_unit(words: Sequence[str], start: int, end: int) -> bool:
    """Whether a name is the unit of the number ahead: the watts of "limit 700 watts" name no draw."""
    return end - start == 1 and words[start] in UNITS and start > 0 and is_number(words[start - 1])


def _is_time(words: Sequence[str], start: int, end: int) -> bool:
    """Whether it is a share of the time that a profile tells of: "60% of cpu time" is no load of CPUs."""
    return words[end : end + 1] == ["time"] and "of" in words[max(0, start - 2) : start]


def _is_heading(span: tuple[int, int, str], words: Sequence[str], spans: Sequence[tuple[int, int, str]]) -> bool:
    """Whether "clocks event reasons" only heads what is said: a reason that is named itself, or the mask of them all."""
    _, end, name = span
    if not name.startswith(_REASONS) or words[end - 1] not in ("reason", "reasons"):
        return False
    behind = words[end : end + 3]
    other_thing = behind and is_content(behind[0]) and not _NOT & {*behind} and not _words_for_values().find(behind)
    mask = any(is_number(w) for w in behind)  # 0x4
    return mask or bool(other_thing) or any(other != span and other[2].startswith(_REASONS) for other in spans)


_REASONS = "gpu.clock.event."
# "spare rows", 剩余可重映射行: of a counter, how much room is left, which is the contrary.
_LEFT = frozenset(["spare", "remaining", "available", "remappable", "unused"])


def _left_of_it(name: str, words: Sequence[str], at: int) -> bool:
    """Whether it is said how many of a thing that is counted are left, and not how many there were."""
    if vocabulary()[name].kind is not Kind.COUNTER:
        return False
    ahead = words[max(0, at - 4) : at]
    return bool(_LEFT & set(ahead)) or any(
        part in " ".join(ahead) for part in ("剩 余", "剩 下", "可 用", "还 剩", "余 量")
    )


def _lasts(number: Number) -> bool:
    """Whether it is how long something took, or when: nothing was measured."""
    return number.units == _TIME or number.kind == "span"


def _listed(fact: str, value: Value, number: Number, words: Sequence[str], free: dict[int, Number]) -> Taken:
    """A value, with those that are listed behind it ("61 63 60 91"), out of what is free."""
    found, used, at = [value], {number.at}, number.at
    free.pop(number.at, None)
    while (at := _next(words, at)) in free and free[at].kind == number.kind:
        if number.units and free[at].units not in ((), number.units):
            break
        if (more := _read(fact, free[at])) is None:
            break
        found.append(more)
        used.add(at)
        del free[at]
    upto = _next(words, max(used))
    return Taken(fact, tuple(found), frozenset({*used, *range(min(used), upto)}))


def _next(words: Sequence[str], at: int) -> int:
    """The word behind a number and its unit."""
    at += 1
    while at < len(words) and (words[at] in UNITS or words[at] == "s"):
        at += 1
    return at


def _segment(words: Sequence[str], at: int) -> range:
    """The words around a place, up to where another thing begins: "and", "but", a comma."""
    start = next((i + 1 for i in range(at - 1, -1, -1) if words[i] in _CUTS), 0)
    return range(start, next((i for i in range(at, len(words)) if words[i] in _CUTS), len(words)))


def _foreign(words: Sequence[str], at: int, spans: Sequence[tuple[int, int, str]]) -> bool:
    """Whether a part is named there that is none of a GPU, and no GPU: "cpu temp", 机箱风扇. A word within a name is none (电源刹车)."""
    named = {i for start, end, _ in spans for i in range(start, end)}
    said = ["|" if i in named else words[i] for i in _segment(words, at)]
    beside = [words[i] for i in range(max(0, at - 2), at) if i not in named]  # "gpu 3 coolant temp": the coolant's
    found = bool(runs("otherpart").find(said))
    return found and ("<gpu>" not in said or bool(runs("otherpart").find(beside)))


def _near(words: Sequence[str], number: Number, every: Mapping[int, Number], around: frozenset[str]) -> frozenset[str]:
    """The words that say of what a number is: those of its segment, and of these, where it holds several numbers, those
    ahead of it where the first one has some there ("hbm 103 C core 88 C") or the last one none behind it ("88 C hbm 103 C"),
    else those behind it ("101 C on the memory 70 C on the core")."""
    segment = _segment(words, number.at)
    inside = [at for at in sorted(every) if at in segment]
    start, stop = segment.start, segment.stop
    if len(inside) > 1:
        which = inside.index(number.at)
        parts, behind = _MEMORY | _CORE, words[_next(words, inside[0]) : inside[1]]
        after = bool(parts & set(words[_next(words, inside[-1]) : stop])) or behind[:1] in (
            ["on"],
            ["at"],
            ["of"],
            ["in"],
            ["for"],
        )
        if parts & set(words[start : inside[0]]) or not after:
            start, stop = (inside[which - 1] + 1 if which else start), number.at
        else:
            start, stop = (number.at if which else start), (inside[which + 1] if which + 1 < len(inside) else stop)
    said = frozenset(words[start:stop]) | (_LIMITED & {*words[(at := _next(words, number.at)) : at + 1]})  # 350 W cap
    return said if (_MEMORY | _CORE) & said or len(every) > 1 else said | around


def _apart(words: Sequence[str], between: range, name: str) -> bool:
    """Whether words stand between a name and a number that are something else, whose number it is."""
    said = [words[i] for i in between]
    han = sum(not w.isascii() and w not in _linking() for w in said)
    return han >= _HAN_OTHERS or any(_is_thing(w, name) for w in said)


@cache
def _linking() -> frozenset[str]:
    """Words that may stand between a name and its number, and behind a number, and are not what is counted or measured."""
    return STOP.union(lexicon().roles["linking"])


def _is_thing(word: str, name: str) -> bool:
    """Whether a word is the name of a thing: no word that links, and none of the name of the fact."""
    if not is_content(word):
        return False
    if name.startswith("gpu.ecc.") and word in ("sram", "dram", "bit", "ecc"):
        return False
    return word.rstrip("s") not in name and word not in _MEMORY and word not in _CORE


def is_content(word: str) -> bool:
    """Whether a Latin word is the name of something, and none of those that link a name and a number."""
    return word.isascii() and word.isalpha() and len(word) > 2 and word not in _linking() and word not in UNITS


def _counts(name: str) -> bool:
    spec = vocabulary().get(name)
    return spec is not None and spec.kind is not Kind.EVENT


def _of_name(
    name: str, words: Sequence[str], behind: range, ahead: range, free: dict[int, Number], more: bool
) -> Taken | None:
    """A fact called by a name: the number that stands with it, or the word that says how it is."""
    spec = vocabulary()[name]
    after, first, end = [words[i] for i in behind], [words[i] for i in reversed(ahead)], behind.start
    if spec.type in (Type.INT, Type.FLOAT) or name == "gpu.ecc.mode":
        for place in (ahead, behind) if _unit_ahead(words, ahead, end, free) else (behind, ahead):
            if (one := _number_of(name, words, place, free)) is not None:
                return one
        if (said := _in_words(spec, after, first, more)) is not None:
            fact = "gpu.ecc.volatile.uncorrected.total" if name == "gpu.ecc.mode" else name
            return Taken(fact, (said,), _with(words, behind, ahead))
    value = None
    if spec.type is Type.BOOL or name == "gpu.ecc.mode":
        value = _yes_or_no(spec, after, first, [free[i] for i in (*behind, *ahead) if i in free])
    elif spec.type is Type.ENUM and not _ABSENT.intersection(first[-1:]):  # "no links inactive"
        after = [*after, *words[end : _enum_at(name, words, end)]]
        value = next((v for v in (*_enums(spec, after), *_enums(spec, first[-_NEAR:]))), None) or _service(spec, after)
    elif spec.type is Type.STR and end - ahead.start - 1 > _LONG and after[:1] and after[0] in _IS and len(after) > 1:
        text = parse(spec, after[1])
        value = None if isinstance(text, Problem) else text
    if value is None:
        return None
    if spec.type is not Type.ENUM:
        for i in (*behind, *ahead):
            if i in free and not free[i].units and not free[i].kind:
                del free[i]  # "row remap failure is 1"
                break
    return Taken(name, (value,), _with(words, behind, ahead))


def _with(words: Sequence[str], behind: range, ahead: range) -> frozenset[int]:
    """The words with a name that say how it is: those up to where another thing begins, and two ahead."""
    upto = next((i for i in behind if words[i] in _CUTS), behind.stop)
    return frozenset((*range(behind.start, upto), *ahead[:2]))


def _unit_ahead(words: Sequence[str], ahead: range, end: int, free: Mapping[int, Number]) -> bool:
    """Whether a name says of what the number ahead of it is: "at 100 % power", "101 C on the memory"."""
    at = ahead.start
    while at in ahead and words[at] in ("on", "of", "in", "for", "the", "its", "at"):
        at -= 1
    while at in ahead and words[at] in UNITS:
        at -= 1
    if at not in free or words[at + 1] not in UNITS:
        return False
    return end not in free or _named_behind(words, end)


def _named_behind(words: Sequence[str], at: int) -> bool:
    """Whether the last number of a segment has its name behind it, as then all have: "101 C memory 70 C core", not "88 C hbm 103 C"."""
    segment = _segment(words, at)
    last = next(i for i in reversed(segment) if is_number(words[i]))
    rest = words[_next(words, last) : segment.stop]
    return bool((_MEMORY | _CORE) & set(rest)) or bool(named_in(rest))


def _in_words_of(name: str, words: Sequence[str], between: range) -> str:
    """An ECC counter with what the words beside its name say of it: corrected, aggregate, of which memory."""
    said = {words[i] for i in between}
    text = " ".join(words[i] for i in between)
    if name == "gpu.row_remap.uncorrectable" and _CORRECTED & said:
        return "gpu.row_remap.correctable"
    if not name.startswith("gpu.ecc.") or name.count(".") != 4:
        return name
    _, _, life, kind, where = name.split(".")
    if where not in ("total", "dram", "sram"):
        return name
    if {"aggregate", "lifetime"} & said or "累 计" in text or "聚 合" in text:
        life = "aggregate"
    elif {"volatile"} & said or "易 失" in text:
        life = "volatile"
    if _CORRECTED & said or "单 比 特" in text or _MENDED.search(text):
        kind = "corrected"
    if {"uncorrected", "uncorrectable", "dbe", "dbes", "double"} & said or "双 比 特" in text:
        kind = "uncorrected"
    where = "sram" if "sram" in said else "dram" if {"dram", "hbm"} & said else where
    meant = f"gpu.ecc.{life}.{kind}.{where}"
    return meant if meant in vocabulary() else name


_CORRECTED = frozenset(["corrected", "correctable", "sbe", "sbes", "single"])
_MENDED = lazy(r"(?<!不)(?<!不 )(?<!未 )(?<!未)(?<!法 )(?:可 纠 正|已 纠 正|(?<!可 )纠 正|可 修 复)")


def _number_of(name: str, words: Sequence[str], place: range, free: dict[int, Number]) -> Taken | None:
    """The number on one side of a name that is of it."""
    behind = place.step > 0
    for i in place:
        if (number := free.get(i)) is None or number.kind in ("index", "denied", "other"):
            if number is not None and number.kind == "other" and behind:
                return None
            continue
        between = range(place.start, i) if behind else range(i + 1, place.start + 1)
        if _apart(words, between, name) or (behind and _of_other(words, number, name)):
            return None
        if not behind and not number.units and words[place.start + 1] in _CORE:
            return None  # a 64 core box
        if tuple(words[max(0, i - 2) : i]) == ("set", "to") and name.startswith("serving."):
            return None  # a setting, and no reading
        if name == "node.memory.available" and _USED & {words[w] for w in _segment(words, i)}:
            return None  # what is used is not what is left
        if name == "node.memory.available" and not _REST & {words[w] for w in _segment(words, i)}:
            return None  # how much there is in all
        around = range(_after_number(words, min(i, *place) if behind else i), max(i, place.start) + 1)
        if name in _REMAPS and (part := _PARTS.get(words[i - 1]) or _PARTS.get(" ".join(words[i + 1 : i + 2]))):
            del free[i]  # "failure 1 for row remapping": not so many rows
            return Taken(f"gpu.row_remap.{part}", (float(number.said) > 0,), frozenset((i - 1, i, i + 1)))
        called = _in_words_of(name, words, around)
        if name in _REMAPS and _CORRECTED & set(words[i + 1 : i + 2]):  # "row remapper shows 1 correctable"
            called = "gpu.row_remap.correctable"
        fact = _meant(called, number, words)
        if fact is not None and (value := _read(fact, number)) is not None:
            return _listed(fact, value, number, words, free)
        if behind:
            return None
    return None


_REST = frozenset(["available", "free", "left", "remaining", "only", "剩", "余", "可", "空", "闲", "只", "仅"])
_USED = frozenset(["used", "use", "full", "用", "占", "满"])


def _after_number(words: Sequence[str], at: int) -> int:
    """Where the words begin that say of what the number there, or the one behind, is: behind the number before it."""
    before = next((i for i in range(at - 1, -1, -1) if is_number(words[i]) or words[i] in _CUTS), -1)
    return before + 1


def _of_other(words: Sequence[str], number: Number, name: str) -> bool:
    """Whether the word right behind a number without a unit is what it counts, and that is nothing of the name: "3 banks"."""
    at = number.at + 1
    return not number.units and at < len(words) and _is_thing(words[at], name) and not _starts_name(words, at)


def _starts_name(words: Sequence[str], at: int) -> bool:
    return any(start == at for start, _, _ in named_in(words[: at + 8]))


def _in_words(spec: FactSpec, behind: Sequence[str], ahead: Sequence[str], more: bool) -> int | None:
    """A count in words: "no ecc errors", "two retired pages", "remapped rows: none"."""
    if spec.unit not in _COUNTED or (spec.kind is not Kind.COUNTER and spec.name.startswith(("gpu.nvlink.a", "node."))):
        return None
    last = ahead[-1:]
    if last and last[0] in _COUNTS:
        return _COUNTS[last[0]]
    if (set(ahead[-2:]) & _NOUGHT) or (not more and set(behind[:3]) & {"none", "zero", "clean"}) or behind[:2] == ["没", "有"]:  # fmt: skip
        return 0
    return None


def _of_family(before: str, words: Sequence[str]) -> Iterator[tuple[str, Value]]:
    """ "... and pending is yes", "failure no", "it's 14": of what was spoken of last."""
    family = before.rpartition(".")[0]
    for said, part in (
        ("pending", "pending"),
        ("待", "pending"),
        ("failure", "failure"),
        ("failed", "failure"),
        ("失", "failure"),
    ):
        spec = vocabulary().get(f"{family}.{part}")
        if said not in words or spec is None or spec.type is not Type.BOOL:
            continue
        at = list(words).index(said)
        ahead, behind = words[max(0, at - 1) : at], words[at + 1 : at + 4]
        number = next((w for w in (*ahead, *behind) if is_number(w)), None)  # "0 pending", "待处理 0"
        value = float(number) > 0 if number is not None else _yes_or_no(spec, words[at + 1 :], words[:at], ())
        if value is not None:
            yield spec.name, value
    if (
        before.startswith(_REASONS) and len(words) < _SHORT and {"active", "inactive"} & {*words}
    ):  # "... not active now"
        yield before, "active" in words and not _NOT & {*words}
    counter, numbers = before.removesuffix(".growing"), [w for w in words if is_number(w)]
    rest = (w for w in words if not is_number(w))
    if counter != before and counter in vocabulary() and len(numbers) == 1 and all(w in _linking() for w in rest):
        yield counter, int(float(numbers[0]))  # "... is climbing, 41200 now"
    if _counts_remaps(before, words):
        yield _REMAPS[words[1] in _CORRECTED], int(float(words[0]))


def _counts_remaps(before: str, words: Sequence[str]) -> bool:
    """Whether a clause behind row remaps counts more of them: "0 uncorrectable", "2 uncorrectable remaps"."""
    if (
        len(words) not in (2, 3)
        or not is_number(words[0])
        or words[1] not in {*_CORRECTED, "uncorrectable", "uncorrected"}
    ):
        return False
    return (
        before in _REMAPS
        if len(words) == 2
        else before.startswith("gpu.row_remap.") and words[2] in ("remap", "remaps", "rows")
    )


_SHORT = 6  # words
_PARTS = {"pending": "pending", "failure": "failure", "failures": "failure", "failed": "failure"}
_REMAPS = ("gpu.row_remap.uncorrectable", "gpu.row_remap.correctable")


def _threshold(words: Sequence[str], before: str) -> Taken | None:
    """Whether the replacement threshold of SRAM errors is exceeded, said beside their number: "2 with threshold exceeded yes"."""
    at = next((n for n, w in enumerate(words) if w in ("threshold", "阈")), -1)
    if at < 0 or not ("sram" in words or before.endswith(".sram")):
        return None
    ahead, behind = words[max(0, at - 3) : at], words[at + 1 : at + 6]
    said = next(iter(_words_for_values().find(behind)), None)
    if any(is_number(w) for w in behind) or not (said or _OVER & {*ahead, *behind}):
        return None
    spec = vocabulary()["gpu.ecc.sram_threshold_exceeded"]
    value = not _UNDER & {*ahead} and _yes_or_no(spec, behind, ahead, ())
    places = frozenset(range(max(0, at - 3), min(len(words), at + 6)))
    return None if value is None else Taken(spec.name, (value,), places)


_OVER = frozenset(
    ["exceeded", "exceeds", "exceed", "exceeding", "over", "above", "past", "beyond", "reached", "超", "达"]
)
_UNDER = frozenset(["below", "under", "within", "低", "没", "未"])


def _numbers(words: Sequence[str]) -> Iterator[Number]:
    for at, word in enumerate(words):
        if not is_number(word):
            continue
        last = words[at - 1] if at else ""
        after = [*words[at + 1 : at + 4], "", "", ""]
        hexadecimal = words[at - 2 : at] == ["0", "x"] or (word == "0" and after[0] == "x")  # 0x1: a code, and no lanes
        kind = "x" if last == "x" else "gen" if last == "gen" or (last == "pcie" and "." in word) else ""
        units = _BEHIND.get(after[0], ())
        said, every = f"{word} {after[0]}" if after[0] in UNITS else word, 0.0
        if word_s := _SECONDS.get(after[0]):
            said = f"{float(word) * word_s:g} s"
        if after[0] in ("gb", "mb", "gib", "tb") and after[1] == "s":
            units = _RATE
            said = f"{word} {after[0]}/s"
        if every := _each(words, at):
            units, said = _PER, word
        if last in ("minus", "default", "expected", "otherwise", "normally", "默", "认"):
            kind = "other"  # below nought, or what it would be: no reading
        elif any(tuple(words[max(0, at - gap - len(w)) : at - gap]) == w for w in _WANTED for gap in (0, 1)):
            kind = "other"
        elif any(tuple(words[max(0, at - gap - len(d)) : at - gap]) == d for d in _DENIED for gap in (0, 1)) or (
            after[0] == "倍"
            or (after[0] in _FOLD and after[1] in _DIFFERS)
            or (units == _PERCENT and after[1] in _DIFFERS)
        ):
            kind = "denied"
        elif last in ("from", "从") and {"to", "到"} & set(after[:4]):
            kind = "denied"  # from 3 to 12000: what it was
        elif (
            (last in _INDEXED and not units and not kind)
            or after[0] == "号"
            or words[at - 2 : at - 1] == ["mlx"]
            or hexadecimal
            or _of_setting(words, at)
        ):
            kind = "index"
        yield Number(at, said, units, kind, every)


def _of_setting(words: Sequence[str], at: int) -> bool:
    """Whether a number is how a job was set up: "batch size 1", "num_workers=0", "4 per gpu"."""
    ahead = [w for w in words[max(0, at - 3) : at] if w not in ("of", "size", "sizes")]
    return ahead[-1:] in (["batch"], ["microbatch"], ["workers"]) or tuple(words[at + 1 : at + 3]) in _PER_GPU


_IN_USE = 2.0  # percent of its memory, which a program takes with its context alone
_PER_GPU = tuple((per, of) for per in ("per", "each") for of in ("gpu", "card", "rank", "<gpu>"))


def _each(words: Sequence[str], at: int) -> float:
    """The seconds in which there are so many: "90000 per hour", "每分钟 300"; 0 of a number that is no rate."""
    after, first = words[at + 1 : at + 9], words[max(0, at - 4) : at]  # "400 correctable ecc errors on gpu 5 an hour"
    after = after[: next((i for i, w in enumerate(after) if w in _CUTS or (is_number(w) and i)), len(after))]
    span = next((b for a, b in pairwise(after) if a in _EACH and b in _SPANS), "")
    span = span or next((_LY[w] for w in (*after, *words[max(0, at - 1) : at]) if w in _LY), "")
    if not span:
        span = next((b for a, b in pairwise(first) if a in ("每", "一", "1") and b in _SPANS), "")
    if not span and "每" in first:  # 每 10 分钟 has a number of its own
        span = next((w for w in first[first.index("每") :] if w in _SPANS), "")
    return _SPANS.get(span, 0.0)


def _meant(name: str, number: Number, words: Sequence[str]) -> str | None:
    """The fact that a number beside a name is of: the named one, or a near one that its unit tells; None when it is of neither."""
    spec = vocabulary()[name]
    if (
        name.startswith("gpu.memory.")
        and number.units == _PERCENT
        and _NOT_IN_USE & {*words[max(0, number.at - 4) : number.at + 4]}
    ):
        return None
    near = {*words[max(0, number.at - 3) : number.at]}
    if (
        name == "gpu.memory.used"
        and number.units == _PERCENT
        and "utilization" in near
        and float(number.said.split(" ")[0]) < _IN_USE
    ):
        return "gpu.utilization.memory"  # of nvidia-smi's pair: time with any read or write
    if name == "gpu.ecc.mode":
        return None if number.units else "gpu.ecc.volatile.uncorrected.total"
    if name == "gpu.utilization.core" and not number.units and float(number.said) > 100:
        return "node.load.1m"  # 负载 480: no share is more than all of it
    if number.kind == "x":
        return name if name.endswith((".width", ".width.max")) else None
    if number.kind == "gen":
        return name if ".gen" in name else None
    if number.every:
        return _RATES.get(name, name if spec.unit in _PER else None)
    if not number.units or spec.unit in number.units:
        index = name == "gpu.nvlink.active" and not (
            {"active", "up", "正", "激"} & set(words) or words[number.at - 1] in _IS
        )
        return None if index else name
    return {
        ("gpu.clock", _PERCENT): "gpu.clock.sm.share", ("gpu.violation", _PERCENT): "gpu.violation.power.share", ("gpu.power", _PERCENT): "gpu.power.share", ("gpu.nvlink", _RATE): "gpu.nvlink.tx",
        ("gpu.memory", _PERCENT): "gpu.memory.share", ("gpu.memory", _C): "gpu.temperature.memory",
        ("gpu.memory", _MHZ): "gpu.clock.memory", ("port.state", _BEHIND["gb"]): "port.rate", ("port.state", _RATE): "port.rate",
        ("port.state", _BEHIND["g"]): "port.rate",
    }.get((".".join(name.split(".")[:2]), number.units))  # fmt: skip


def _by_unit(number: Number, words: frozenset[str], around: frozenset[str]) -> str:
    """The fact of a number that nothing names: "94 C", "hbm 106 C", "x8", "capped at 150 W". `words` stand with it, `around` in its clause."""
    if number.kind in ("index", "denied", "other"):
        return ""
    if number.kind == "x":
        return "gpu.pcie.width" if number.said in ("1", "2", "4", "8", "16") else ""
    if number.kind == "gen":
        return f"gpu.pcie.gen{'.max' if {'max', 'maximum', 'capable', '最'} & words else ''}" if around & _PCIE else ""
    if number.units == _C:
        return "gpu.temperature.memory" if words & _MEMORY else "gpu.temperature.core"
    if number.units == _W:
        return "gpu.power.limit" if words & _LIMITED else "gpu.power.draw"
    if number.units == _MHZ:
        return "gpu.clock.memory" if words & _MEMORY else "gpu.clock.sm"
    model = "<model>" in around and bool(words & _AT) and words <= _AT | {number.said.split(" ")[0]} | UNITS
    if number.units == _PERCENT and (words & _SMI or model):
        return "gpu.utilization.core"
    if number.units in (_SIZE, _SIZES) and words & _HELD:
        return "gpu.memory.used"
    return "port.rate" if set(_RATE) <= set(number.units) and around & _PORT else ""


def _read(fact: str, number: Number) -> Value:
    spec = vocabulary().get(fact)
    of_one = fact.startswith("gpu.activity.") or fact == "gpu.utilization.core"
    if of_one and not number.units and "." in number.said and 0 < float(number.said) <= 1:
        number = number._replace(said=f"{100 * float(number.said):g}")  # as DCGM prints it: 0.35 of the cycles
    if spec is None or spec.type not in (Type.INT, Type.FLOAT):
        return None
    if number.units and spec.unit not in number.units:
        return None
    if fact.startswith("gpu.activity.") and float(number.said.split(" ")[0]) > _WHOLE:
        return None  # no share of cycles
    if number.every:
        within = {"per second": 1.0, "per minute": 60.0, "per day": 86400.0}[spec.unit]
        rate = float(number.said) * within / number.every
        return (rate if rate >= 1 else float(f"{rate:.2g}")) if spec.type is Type.FLOAT else None
    read = parse(spec, number.said)
    if isinstance(read, Problem):
        read = parse(spec, number.said.split(" ")[0]) if not number.units else read
    if isinstance(read, Problem) or (
        spec.unit == "percent" and isinstance(read, float) and read > 100 and fact.startswith("gpu.")
    ):
        return None
    return read


def _yes_or_no(spec: FactSpec, behind: Sequence[str], ahead: Sequence[str], numbers: Sequence[Number]) -> Value:
    plain = next((n for n in numbers if not n.units and not n.kind), None)
    if plain is not None:
        if spec.name.endswith("threshold_exceeded") and plain.said not in ("0", "1"):
            return None  # where the threshold is
        return float(plain.said.split(" ")[0]) > 0
    said = next(iter(_words_for_values().find(behind)), None)
    if said is not None and said[2] in ("true", "false"):
        return (said[2] == "true") != bool(_NOT & set(behind[max(0, said[0] - 2) : said[0]]))
    if _TROUBLE.search(spec.name) is None:
        return None  # "ecc": of a setting its name alone says nothing
    if _OK & set(behind[:3]):
        return None
    return not (_NOT & {*behind[:4], *ahead[-3:]})


_NOT = frozenset(
    ["no", "not", "without", "never", "none", "nothing", "zero", "isn't", "hasn't", "没", "无", "未", "不"]
)


def _enum_at(name: str, words: Sequence[str], end: int) -> int:
    """Where the value ends that is said right behind a name that ends at `end`: "... is infiniband"; 0 where none is."""
    spec = vocabulary()[name]
    if spec.type is not Type.ENUM or words[end : end + 1] == [] or words[end] not in _IS:
        return 0
    return end + 2 if next(_enums(spec, words[end + 1 : end + 2]), None) else 0


def _enums(spec: FactSpec, words: Sequence[str]) -> Iterator[str]:
    text = f" {' '.join(words)} "
    if any(f" {word} " in text for word in ("not", "isn't", "没", "不", "未")):
        return
    for value in sorted(spec.values, key=len, reverse=True):
        label = spec.labels.get(value)
        names = [
            " ".join(phrases.split(value.replace("_", " "))),
            *((label.en.casefold(), " ".join(label.zh)) if label else ()),
        ]
        if any(f" {name} " in text for name in names) and not any(
            f" {no} {name} " in text for no in _ABSENT for name in names
        ):
            yield value


_ABSENT = frozenset(["no", "without", "zero", "0"])  # "no inactive links"


# How people say that a service runs, or does not: words in a row, joined.
_DOWN = lazy(
    r"not (?:running|started|up|active|there)|(?:is|has|was|just|keeps)? ?(?:down|dead|died|stopped|off|inactive|killed|gone|dying)\b|没 有? ?[运启跑起在]|未 [运启]|停|挂|死|没 起|没 跑|没 在"
)
_FAILED = lazy(
    r"fail|crash|(?:won't|cannot|can't|not|refuses to|unable to) (?:re)?start(?!ed)|失 败|崩|报 错|出 错|[起拉] 不 [来起]|启 ?动? 不 [了起来]|起 动 不|拉 起 失|无 法 启|不 能 启"
)
_RUNS = lazy(r"running|active|\bup\b|works|started|在 跑|运 行|启 动|起 来|正 常|没 问 题|[好在] ")


def _service(spec: FactSpec, behind: Sequence[str]) -> str | None:
    """The state of a service as people say it: "is dead", "isn't failed", 没起来, 没挂."""
    if not {"running", "stopped", "failed"} <= set(spec.values):
        return None
    said = f"{' '.join(behind[:8])} "
    denied = _NOT_BAD.search(said) is not None
    if denied:
        return "running"
    if _FAILED.search(said):
        return "failed"
    if _DOWN.search(said):
        return "stopped"
    return "running" if _RUNS.search(said) else None


_NOT_BAD = lazy(
    r"(?:not|never|no longer) (?:failed|down|dead|stopped|crashed|inactive|failing)|没 有? ?[挂停死崩]|未 [停崩]"
)


@cache
def _words_for_values() -> phrases.Runs:
    return phrases.Runs(lexicon().values.items())


# --- names --------------------------------------------------------------------------------


def named_in(words: Sequence[str]) -> list[tuple[int, int, str]]:
    """Start, end and fact of each name: those of the lexicon, and the fact's own words where they say more."""
    spans = sorted([*facts_of(words), *_own().find(words)], key=lambda s: (s[0] - s[1], s[0]))
    out: list[tuple[int, int, str]] = []
    for start, end, name in spans:
        if all(end <= a or start >= b for a, b, _ in out):
            out.append((start, end, name))
    return _joined(sorted(out), words)


def _joined(spans: list[tuple[int, int, str]], words: Sequence[str]) -> list[tuple[int, int, str]]:
    """`spans` with the words of one counter as one: "volatile" beside "correctable ECC errors", "uncorrectable" beside "remapped rows"."""
    out: list[tuple[int, int, str]] = []
    for start, end, name in spans:
        first = out[-1] if out else (0, -1, "")
        if first[1] == start and first[2].startswith("gpu.ecc.") and name.startswith(("gpu.ecc.", *_REMAPS)):
            out[-1] = (first[0], end, _in_words_of(name, words, range(first[0], end)))
        else:
            out.append((start, end, name))
    return out


@cache
def _own() -> phrases.Runs:
    return phrases.Runs.ready(tables()["facts"])
