"""Facts of one clause: called by their names, or told by the unit of a number. A number belongs to one fact, the one it stands with.

The unit decides: "106 C" is never a count, "345 MHz" never a share, "5 per minute" never a total. What is an index
("link 4", "slot 4") or is denied ("not 97") is nobody's value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from assistant.intent import phrases
from assistant.intent.grammar import facts_of
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
    **dict.fromkeys(("ms", "seconds", "secs", "minutes", "mins", "hours", "秒", "分", "us"), _TIME),
    "s": _TIME,
}  # fmt: skip
_COUNTED = ("count", "")  # a number without a unit fits anything, one with a unit no count
_PER = ("per second", "per minute")
_EACH = frozenset(["per", "a", "each", "every"])
_SPANS = frozenset(["second", "minute", "min", "hour", "day", "week", "sec", "秒", "分", "时", "天", "日", "周"])
_IS = frozenset(["is", "are", "was", "是", "为", "有", "只"])
# Ahead of a number it is the index of a thing; "x16" are lanes and "gen 5" is a generation.
_INDEXED = frozenset(
    ["nvlink", "nvlinks", "link", "links", "port", "slot", "psu", "lane", "rank", "bay", "bus", "switch", "nvswitch", "node", "no", "number", "rail", "号", "ib", "mlx", "nic", "dimm", "socket"]
)  # fmt: skip
_DENIED = (("not",), ("isn't",), ("wasn't",), ("never",), ("不", "是"), ("并", "非"))
_NOUGHT = frozenset(["no", "zero", "without", "没", "无", "零", "未"])
_COUNTS = {
    w: n for n, w in enumerate(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"])
}
# What the words around a number mean when its unit is not that of the fact that they name.
_MEMORY = frozenset(["hbm", "vram", "memory", "显", "dram"])
_LIMITED = frozenset(["capped", "cap", "limited", "limit", "限"])
_PORT = frozenset(["ib", "infiniband", "port", "mlx", "ndr", "hdr", "端", "rdma", "roce"])
_PCIE = frozenset(["pcie", "pci", "lanes", "lane", "width", "gen"])
_TROUBLE = lazy(r"\.(?:\w*pending|failure|failed|\w*exceeded|\w*required|hw_\w+|sw_thermal|died|hung|\w*unhealthy)$")
_OK = frozenset(["ok", "fine", "good", "normal", "clean", "healthy", "正", "好"])
_UNITS = frozenset(_BEHIND)
_LONG = 2  # words of a name beyond which no other thing is meant: a word is its value, "driver is loaded" is no version


class Number(NamedTuple):
    """A number within the words of a clause."""

    at: int
    said: str  # as a value of its unit is parsed: "1.2 ghz"
    units: tuple[str, ...]  # of the vocabulary that it can be in; empty: it has none
    kind: str = ""  # "x" of lanes, "gen" of a generation, "index", "denied"


def is_number(word: str) -> bool:
    """Whether a word is a number."""
    return word[:1].isdecimal() and word.isascii()


def values(words: Sequence[str], before: str = "", whole: Sequence[str] = ()) -> Iterator[tuple[str, Value]]:
    """The facts that the words of a clause tell, each with its value.

    `before`: the fact that was told last; `whole`: the words of the whole clause, where others of it were read already.
    """
    free = {n.at: n for n in _numbers(words)}
    spans = [s for s in named_in(words) if _counts(s[2])]
    told: set[str] = set()
    for _, end, name in tuple(spans):
        if len(spans) > 1 and (upto := _enum_at(name, words, end)):  # "the kind is fan": a value that is a name too
            spans = [s for s in spans if not end <= s[0] < upto]
    for i, (start, end, name) in enumerate(spans):
        behind = range(end, spans[i + 1][0] if i + 1 < len(spans) else len(words))
        ahead = range(start - 1, (spans[i - 1][1] if i else 0) - 1, -1)
        for fact, value in _of_name(name, words, behind, ahead, free, i + 1 < len(spans)):
            told.add(fact)
            yield fact, value
    around = frozenset((*words, *whole, "port" if before.startswith("port.") else ""))
    for number in list(free.values()):
        fact = _by_unit(number, around)
        if fact and fact not in told and (value := _read(fact, number)) is not None:
            del free[number.at]
            told.add(fact)
            yield fact, value
    if not told and before:
        yield from _of_family(before, words)


def _counts(name: str) -> bool:
    spec = vocabulary().get(name)
    return spec is not None and spec.kind is not Kind.EVENT


def _of_name(name: str, words: Sequence[str], behind: range, ahead: range, free: dict[int, Number], more: bool) -> Iterator[tuple[str, Value]]:  # fmt: skip
    """A fact called by a name: the number that stands with it, or the word that says how it is."""
    spec = vocabulary()[name]
    after, first, end = [words[i] for i in behind], [words[i] for i in reversed(ahead)], behind.start
    if spec.type in (Type.INT, Type.FLOAT) or name == "gpu.ecc.mode":
        unit = (
            ahead.start in free and words[ahead.start + 1] in _UNITS
        )  # "90 watts at 100 %": the name is the number's unit
        for place in (ahead, behind) if unit else (behind, ahead):
            for i in place:
                if (number := free.get(i)) is None or (number.kind in ("index", "denied")):
                    continue
                fact = _meant(name, number, words)
                if fact is not None and (value := _read(fact, number)) is not None:
                    del free[i]
                    yield fact, value
                    return
                if place is behind:
                    break
        if (said := _in_words(spec, after, first, more)) is not None:
            yield ("gpu.ecc.volatile.uncorrected.total" if name == "gpu.ecc.mode" else name), said
            return
    value = None
    if spec.type is Type.BOOL or name == "gpu.ecc.mode":
        value = _yes_or_no(spec, after, first, [free[i] for i in (*behind, *ahead) if i in free])
    elif spec.type is Type.ENUM:
        after = [*after, *words[end : _enum_at(name, words, end)]]
        value = next((v for v in (*_enums(spec, after), *_enums(spec, first))), None) or _service(spec, after)
    elif spec.type is Type.STR and end - ahead.start - 1 > _LONG and after[:1] and after[0] in _IS and len(after) > 1:
        text = parse(spec, after[1])
        value = None if isinstance(text, Problem) else text
    if value is not None:
        yield name, value


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
    for word, part in (("pending", "pending"), ("failure", "failure"), ("failed", "failure"), ("失", "failure"), ("待", "pending")):  # fmt: skip
        spec = vocabulary().get(f"{family}.{part}")
        if word in words and spec is not None and spec.type is Type.BOOL:
            at = list(words).index(word)
            if (value := _yes_or_no(spec, words[at + 1 :], words[:at], ())) is not None:
                yield spec.name, value
            return


def _numbers(words: Sequence[str]) -> Iterator[Number]:
    for at, word in enumerate(words):
        if not is_number(word):
            continue
        last = words[at - 1] if at else ""
        after = [*words[at + 1 : at + 4], "", "", ""]
        kind = "x" if last == "x" else "gen" if last == "gen" or (last == "pcie" and "." in word) else ""
        units = _BEHIND.get(after[0], ())
        if after[0] in ("gb", "mb", "gib") and after[1] == "s":
            units = _RATE
        if _each(words, at):
            units = _PER
        if any(tuple(words[max(0, at - gap - len(d)) : at - gap]) == d for d in _DENIED for gap in (0, 1)):
            kind = "denied"
        elif last in ("from", "从") and {"to", "到"} & set(after[:4]):
            kind = "denied"  # from 3 to 12000: what it was
        elif last in _INDEXED and not units and not kind:
            kind = "index"
        yield Number(at, f"{word} {after[0]}" if after[0] in _UNITS and units is not _PER else word, units, kind)


def _each(words: Sequence[str], at: int) -> bool:
    """Whether so much comes every minute: "90000 per hour", "每分钟 300"."""
    after = words[at + 1 : at + 5]
    return any(a in _EACH and b in _SPANS for a, b in pairwise(after)) or "每" in words[max(0, at - 4) : at]  # fmt: skip


def _meant(name: str, number: Number, words: Sequence[str]) -> str | None:
    """The fact that a number beside a name is of: the named one, or a near one that its unit tells; None when it is of neither."""
    spec = vocabulary()[name]
    if name == "gpu.ecc.mode":
        return None if number.units else "gpu.ecc.volatile.uncorrected.total"
    if number.kind == "x":
        return name if name.endswith((".width", ".width.max")) else None
    if number.kind == "gen":
        return name if ".gen" in name else None
    if not number.units or spec.unit in number.units:
        index = name == "gpu.nvlink.active" and not (
            {"active", "up", "正", "激"} & set(words) or words[number.at - 1] in _IS
        )
        return None if index else name
    return {
        ("gpu.clock", _PERCENT): "gpu.clock.sm.share", ("gpu.power", _PERCENT): "gpu.power.share",
        ("gpu.memory", _PERCENT): "gpu.memory.share", ("gpu.memory", _C): "gpu.temperature.memory",
        ("gpu.memory", _MHZ): "gpu.clock.memory", ("port.state", _BEHIND["gb"]): "port.rate", ("port.state", _RATE): "port.rate",
        ("port.state", _BEHIND["g"]): "port.rate",
    }.get((".".join(name.split(".")[:2]), number.units))  # fmt: skip


def _by_unit(number: Number, words: frozenset[str]) -> str:
    """The fact of a number that nothing names: "94 C", "hbm 106 C", "x8", "capped at 150 W"."""
    if number.kind in ("index", "denied"):
        return ""
    if number.kind == "x":
        return "gpu.pcie.width" if number.said in ("1", "2", "4", "8", "16") else ""
    if number.kind == "gen":
        return "gpu.pcie.gen" if words & _PCIE else ""
    if number.units == _C:
        return "gpu.temperature.memory" if words & _MEMORY else "gpu.temperature.core"
    if number.units == _W:
        return "gpu.power.limit" if words & _LIMITED else "gpu.power.draw"
    if number.units == _MHZ:
        return "gpu.clock.memory" if words & _MEMORY else "gpu.clock.sm"
    return "port.rate" if set(_RATE) <= set(number.units) and words & _PORT else ""


def _read(fact: str, number: Number) -> Value:
    spec = vocabulary().get(fact)
    if spec is None or spec.type not in (Type.INT, Type.FLOAT):
        return None
    if number.units and spec.unit not in number.units:
        return None
    read = parse(spec, number.said)
    if isinstance(read, Problem):
        read = parse(spec, number.said.split(" ")[0]) if not number.units else read
    return None if isinstance(read, Problem) else read


def _yes_or_no(spec: FactSpec, behind: Sequence[str], ahead: Sequence[str], numbers: Sequence[Number]) -> Value:
    plain = next((n for n in numbers if not n.units and not n.kind), None)
    if plain is not None:
        return float(plain.said.split(" ")[0]) > 0
    said = [v for _, _, v in _words_for_values().find(behind)]
    if said and said[0] in ("true", "false"):
        return said[0] == "true"
    if _TROUBLE.search(spec.name) is None:
        return None  # "ecc": of a setting its name alone says nothing
    if _OK & set(behind[:3]):
        return None
    return not (_NOT & {*behind[:4], *ahead[-3:]})


_NOT = frozenset(["no", "not", "without", "never", "none", "zero", "isn't", "hasn't", "没", "无", "未", "不"])


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
        names = [value.replace("_", " "), *((label.en.casefold(), " ".join(label.zh)) if label else ())]
        if any(f" {name} " in text for name in names):
            yield value


# How people say that a service runs, or does not: words in a row, joined.
_DOWN = lazy(
    r"not (?:running|started|up|active|there)|(?:is|has|was|just|keeps)? ?(?:down|dead|died|stopped|off|inactive|killed|gone|dying)\b|没 有? ?[运启跑起在]|未 [运启]|停|挂|死|没 起|没 跑|没 在"
)
_FAILED = lazy(r"fail|crash|失 败|崩|报 错|出 错")
_RUNS = lazy(r"running|active|\bup\b|works|started|在 跑|运 行|启 动|起 来|正 常|没 问 题|[好在] ")


def _service(spec: FactSpec, behind: Sequence[str]) -> str | None:
    """The state of a service as people say it: "is dead", "isn't failed", 没起来, 没挂."""
    if not {"running", "stopped", "failed"} <= set(spec.values):
        return None
    said = f"{' '.join(behind[:8])} "
    denied = _NOT_BAD.search(said) is not None
    if denied:
        return "running"
    if _DOWN.search(said):
        return "stopped"
    if _FAILED.search(said):
        return "failed"
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
    return sorted(out)


@cache
def _own() -> phrases.Runs:
    return phrases.Runs.ready(tables()["facts"])
