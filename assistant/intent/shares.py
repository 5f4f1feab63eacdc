"""How many of a kind are in order: "6 of 8 IB ports up", "of the four PSUs one is dead", 八个口里只有六个通.

The order of the words is free and the numbers may be words. What is found is put into one order, "2 of 8 port down", in which the
statements of ``lexicon/stated_shares.yaml`` are written: they say what facts it tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from assistant.intent import readings
from assistant.intent.seen import seen
from knowledge.lazy import lazy
from knowledge.lexicon import lexicon

HALF = -1  # of as many as are said
MOST = 1024  # of a kind in one machine or one rack
_KINDS = (
    "fan",
    "psu",
    "pump",
    "memory",
    "drive",
    "nvlink",
    "port",
    "gpu",
    "link",
)  # the first that a run of words names is meant
_EN = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen"
_DIGITS = {
    **{word: n for n, word in enumerate(_EN.split(), 1)},
    **{c: n for n, c in enumerate("一二三四五六七八九十", 1)},
    "两": 2,
    "both": 2,
}
_TOKEN = lazy(
    r"<[a-z]+>|[a-z]+(?:'[a-z]+)?|[0-9]+(?:\.[0-9]+)?|[\u3400-\u4dbf\u4e00-\u9fff]|[/:,;.?!，；。：？！%°+-]",
    re.IGNORECASE,
)
# One letter a word: T a thing, N a number, G well, B ill, A absent, O "of", Y "only", L "all", E "all but", S "in all", C a comma,
# P a full stop, W a word that only links, X any other.
_WORDS = {
    "N": "half|一半|半数",
    "O": "of|out of|of which|/|from|among|里|里面|中|当中|之中|其中",
    "Y": "only|just|merely|只有|只|仅|仅有|才|就|就剩|只剩|剩|剩下|still only",
    "C": "but|and|though|while|但|但是|而|不过|却",
    "L": "all|every|each|全|全部|都|全都|均",
    "E": "all but|all except|except|除了|除",
    "S": "in total|total|altogether|there are|共|一共|总共|本来|本来有|原来|应该有|should be|instead of|there should be",
    "W": (
        "the|our|its|my|your|these|those|is|are|was|were|has|have|had|now|currently|still|say|says|"
        "reports|report|state|status|a|an|it|as|to|be|being|with|got|modules|module|compute|chassis|"
        "system|server|case|power|per|<model>|mlx|hdr|edr|a100|them|个|张|块|条|根|台|把|路|的|了|是|有|着|能|还|现在|目前|"
        "显示|处于|状态|机箱|服务器|已|经|模块|卡在"
    ),
}
_GPUS_THERE = [
    "visible",
    "present",
    "seen",
    "show up",
    "showing up",
    "shows up",
    "detected",
    "listed",
    "found",
    "recognized",
    "recognised",
    "there",
    "come up",
    "came up",
    "看到",
    "看得到",
    "看得见",
    "认到",
    "识别到",
    "识别",
    "可见",
    "认出",
    "显示",
]
_SHAPES = lazy(
    r"(?P<e>E)?(?P<a>N)O+L?(?P<b>N)T+"  # 6 of 8 ports
    r"|T+[WYC:]*(?P<a2>N)O+(?P<b2>N)T*"  # ports: 6 of 8
    r"|O(?P<b3>N)T+C?[YO]*(?P<a3>N)T*"  # of the 8 ports 6
    r"|(?P<b4>N)T+O+C?(?P<s4>[GBA])?Y*(?P<a4>N)T*"  # 8 个口里 6 个
    r"|(?P<b5>N)T+C?Y+C?(?P<a5>N)T*"  # 8 个口只有 6 个
    r"|(?P<b6>N)T+C?Y*(?P<s6>[GBA])?Y*(?P<a6>N)T*"  # 六个风扇停了三个
    r"|T+S?(?P<b7>N)[OCY]*(?P<s7>[GBA])?[YO]*(?P<a7>N)T*"  # 电源共四个坏了一个
    r"|Y?(?P<a8>N)T+(?P<s8>[GBA])?(?:O|C?S)+(?P<b8>N)T*"  # 6 ports up out of 8
    r"|T+(?P<s10>[GBA])?(?P<a10>N)C?S(?P<b10>N)T*"  # 只认到七张,本来八张
    r"|(?P<l>L)?O*(?P<n>N)O?T+(?P<l2>L)?"  # all 8 ports | two of the fans
    r"|T+(?P<s11>[GBA])?Y?(?P<n11>N)(?![TOY]{0,4}N)"  # 电源坏了一个
    r"|(?P<l3>L)O?T+|T+X{0,2}(?P<l4>L)(?P<n2>N)?"
)


_MEASURES = tuple("个条张块根路台只把")
_SINGULAR = lazy(r"(?<![a-z])(?:psu|fan|pump|supply|port|gpu|unit|module)\s*#?$", re.IGNORECASE)


class Share(NamedTuple):
    """So many of so many, and how they are."""

    start: int  # of the characters that say it, and their end
    end: int
    phrase: str  # in the words of the statements


class _Word(NamedTuple):
    start: int
    end: int
    letter: str
    number: int = 0
    kind: str = ""


def shares(text: str) -> list[Share]:
    """What `text` (with marks for its slots) says of how many of a kind are in order, from left to right; none within another."""
    low = text.casefold()
    if not any(word in low for kind in _KINDS for word in lexicon().roles[f"counted-{kind}"]):
        return []
    words = [w for w in _words(text) if w.letter != "W"]
    shape = "".join(w.letter for w in words)
    out = [Share(s.start, s.end, _said("gpu", s.listed, s.there, True, False)) for s in seen(text)]
    for found in _SHAPES.finditer(shape):
        one = _share(found, words, shape, text)
        if one is not None and all(one.end <= o.start or one.start >= o.end for o in out):
            out.append(one)
    return sorted(out)


def _share(found: re.Match[str], words: Sequence[_Word], shape: str, text: str) -> Share | None:
    named = {
        name.rstrip("0123456789"): (found.start(name), value) for name, value in found.groupdict().items() if value
    }
    inside = words[found.start() : found.end()]
    kind = next((k for k in _KINDS if any(w.kind == k for w in inside)), "")
    if kind == "link":
        kind = (
            "nvlink"
            if re.search(r"<gpu>|<model>|gpu|nvlink|卡", text, re.IGNORECASE) and "ib" not in text.casefold()
            else "port"
        )
    state, upto = _state(named, shape, found)
    part = words[named["a"][0]].number if "a" in named else words[named["n"][0]].number if "n" in named else 0
    whole = words[named["b"][0]].number if "b" in named else 0
    if HALF in (part, whole):
        part, whole = max(part, whole) // 2, max(part, whole)
    if whole and part > whole:
        part, whole = whole, part
    if found["n11"] and text[words[found.start("n11")].end :].lstrip()[:1] not in _MEASURES:
        return None  # nvlink 4 is down: the fourth one
    every = "l" in named and not whole
    if not part and not (every and kind != "gpu"):
        return None
    only = "Y" in found[0] or (found.start() and shape[found.start() - 1] == "Y")
    state = state or ("G" if only and whole else "")
    if (
        state != "G"
        and "a" in named
        and shape[named["a"][0] - 1] == "T"
        and _SINGULAR.search(text, 0, words[named["a"][0]].start)
    ):
        return None  # psu 2 of 4: the second one
    if not state or max(part, whole) > MOST or (kind == "gpu" and not _of_gpus(state, whole, every, text)):
        return None
    good = state == "G"
    if "e" in named:
        good = not good
    if "<" in text[words[found.end() - 1].end : words[upto - 1].end]:
        upto = found.end()  # 2 nvlinks of <gpu> are down: what is named between stays
    return Share(words[found.start()].start, words[upto - 1].end, _said(kind, part, whole, good, every))


def many(words: Sequence[str]) -> int:
    """How many things a statement in the words of a share is about: those that are not in order, else all of them; 0 of any other."""
    if len(words) < 3 or words[-1] not in ("up", "down") or words[-2] not in _KINDS:
        return 0
    return next((int(w) for w in words if w.isdecimal()), 0)


def _said(kind: str, part: int, whole: int, good: bool, every: bool) -> str:
    """The phrase."""
    if whole and good and part < whole:
        part, good = whole - part, False
    if not part:
        return f"all {kind} {'up' if good else 'down'}"
    if good:
        return f"all {part} {kind} up" if every or whole else f"{part} {kind} up"
    whole = part if every else whole
    return f"{part} of {whole} {kind} down" if whole else f"{part} {kind} down"


def _state(named: Mapping[str, tuple[int, str]], shape: str, found: re.Match[str]) -> tuple[str, int]:
    """How they are, G, B or A, and where what says so ends: within the words, right behind them or right ahead."""
    if "s" in named:
        return named["s"][1], found.end()
    if behind := re.match(r"[LYXO]{0,4}?([GBA])", shape[found.end() :]):
        return behind[1], found.end() + behind.end()
    ahead = re.search(r"([GBA])[YX]?$", shape[: found.start()])
    return (ahead[1] if ahead else ""), found.end()


def _of_gpus(state: str, whole: int, every: bool, text: str) -> bool:
    """Whether it is how many GPUs are there: of those that are hot or slow each has readings of its own."""
    return (whole > 0 or every) and (
        state == "A" or any(word in text.casefold() for word in ("掉", "都在", "剩", *_GPUS_THERE))
    )


def _words(text: str) -> Iterator[_Word]:
    found = list(_TOKEN.finditer(text))
    said = [m[0].casefold() for m in found]
    at = 0
    by_first = _letters()
    while at < len(said):
        for run, letter, kind in by_first.get(said[at], ()):
            if tuple(said[at : at + len(run)]) == run:
                yield _Word(
                    found[at].start(), found[at + len(run) - 1].end(), letter, HALF if letter == "N" else 0, kind
                )
                at += len(run)
                break
        else:
            yield _one(found[at], said, at)
            at += 1


def _one(found: re.Match[str], said: Sequence[str], at: int) -> _Word:
    word = found[0].casefold()
    number = int(word) if word.isdecimal() and word.isascii() and len(word) < 5 else _DIGITS.get(word, 0)
    glued = found.string[max(0, found.start() - 1) : found.start()]  # mlx5_3
    if (
        number
        and not _is_index(said, at)
        and not (word.isascii() and (glued in ("_", "-", ".", "#") or (glued.isascii() and glued.isalpha())))
    ):
        return _Word(*found.span(), "N", number)
    return _Word(*found.span(), "C" if word in ",，:：" else "P" if word in ";.?!；。？！" else "X")


_MEASURED = frozenset(["温度", "功耗", "功率", "频率", "转速", "利用率", "使用率", "显存", "内存"])


def _is_index(said: Sequence[str], at: int) -> bool:
    """Whether a number is called by its number or measures something: "port 4", "3 号", "98 %", "400 gb/s"."""
    behind = said[at + 1] if at + 1 < len(said) else ""
    ahead = said[at - 1] if at else ""
    if "".join(said[max(0, at - 2) : at]) in _MEASURED or "".join(said[max(0, at - 3) : at]) in _MEASURED:
        return True  # 温度 60 风扇 100%
    singular = ahead in (
        "port",
        "psu",
        "fan",
        "supply",
        "pump",
        "link",
        "slot",
        "number",
        "gen",
        "x",
        "dimm",
        "mlx",
        "第",
        "#",
        "unit",
    )
    return (
        behind in readings.UNITS
        or behind in ("号", "%", "°")
        or (singular and behind not in ("of", "out", "/", "里", "中"))
    )


@cache
def _letters() -> dict[str, list[tuple[tuple[str, ...], str, str]]]:
    """The runs of words that each word can begin, the longest first, with their letter and of things their kind."""
    rows = [(word, letter, "") for letter, words in _WORDS.items() for word in words.split("|")]
    rows += [(word, "G", "") for word in (*lexicon().roles["well"], *_GPUS_THERE)]
    rows += [(word, letter, "") for letter, role in (("B", "ill"), ("A", "absent")) for word in lexicon().roles[role]]
    rows += [(word, "T", kind) for kind in _KINDS for word in lexicon().roles[f"counted-{kind}"]]
    out: dict[str, list[tuple[tuple[str, ...], str, str]]] = {}
    for word, letter, kind in rows:
        run = tuple(m[0] for m in _TOKEN.finditer(word))
        out.setdefault(run[0], []).append((run, letter, kind))
    for runs in out.values():
        runs.sort(key=lambda row: -len(row[0]))
    return out
