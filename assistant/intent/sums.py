"""Sums that a sentence asks for: how often to save, how often a job of some size is interrupted, its MFU, what a better utilisation saves.

Only reading; the formulas stand in `assistant.dialogue._sums`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from assistant.intent.part_heat import PartHeat, part_heat
from assistant.intent.reckoned import (
    KV,
    CudaOnDriver,
    KvCache,
    Load,
    Scaled,
    TokenCost,
    cuda_on_driver,
    kv_cache,
    load_of,
    scaled,
    token_cost,
)
from assistant.intent.things import MODEL
from knowledge.gpus import GpuSpec, candidates
from knowledge.lazy import lazy

_I = re.IGNORECASE
_MOST = 400  # characters: such a question is short
_SCALES = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12, "千": 1e3, "万": 1e4, "百万": 1e6, "亿": 1e8}
_N = (
    r"(?<![\w.,])(?P<{0}>[0-9]{{1,3}}(?:,[0-9]{{3}})+|[0-9]+(?:\.[0-9]+)?)\s?(?P<{0}s>百万|[千万亿]|[kmb](?![a-z0-9]))?"
)
_DAY, _HOUR, _YEAR = 24.0, 1.0, 365 * 24.0


class Saves(NamedTuple):
    """How often to save a checkpoint."""

    failing: float  # hours between two interruptions of the job; 0: nobody said of what size it is
    nodes: int  # 0: nobody said
    gpus: int
    told: bool  # whether the sentence says how often something fails
    write: float  # hours that one save takes; 0: nobody said


class Interrupted(NamedTuple):
    """How often a job on so many GPUs is interrupted."""

    gpus: int
    nodes: int = 0  # 0: nobody said
    each: float = 0.0  # hours between two failures of one part, as told; 0: nobody said
    parts: int = 0  # how many of that part


class Mfu(NamedTuple):
    """The throughput of a model on some GPUs."""

    parameters: float
    tokens: float  # a second, of all GPUs
    gpus: int
    model: GpuSpec
    fp8: bool


class TrainingTime(NamedTuple):
    """A training whose duration is asked."""

    parameters: float
    tokens: float
    gpus: int
    model: GpuSpec


class Saving(NamedTuple):
    """Utilisation that is raised."""

    before: float  # %
    after: float
    gpus: int  # 0: nobody said
    price: float  # of a GPU-hour; 0: nobody said
    money: str  # $


class Memory(NamedTuple):
    """The GPU memory that a model takes."""

    parameters: float
    use: str  # serve, train, lora; empty: nobody said
    bits: int  # of a weight; 0: nobody said
    model: GpuSpec | None  # the GPU that is named
    gib: float  # of one GPU; 0: nobody said
    gpus: int  # 0: nobody said
    load: Load | None = None  # where the context of a request is told


Sum = (
    Saves | Interrupted | Mfu | Saving | Memory | CudaOnDriver | KvCache | TokenCost | Scaled | TrainingTime | PartHeat
)


def asked(text: str) -> Sum | None:
    """The sum that a sentence asks for; None where it asks for none, or says too little to make one."""
    if len(text) > _MOST or not any(map(str.isdigit, text)):
        return None
    figured = part_heat(text) or cuda_on_driver(text) or kv_cache(text) or token_cost(text) or scaled(text)
    if figured is not None:
        return figured
    return _training_time(text) or _saving(text) or _mfu(text) or _saves(text) or _interrupted(text) or _memory(text)


# --- counts -------------------------------------------------------------------------------

_GPUS = lazy(
    _N.format("n")
    + r"\s?[-x×]?\s?(?:(?<=[x×])(?=[0-9]{2,3}\s?gi?b?(?![a-z]))|(?:nvidia\s+)?(?:gpus?|cards?|accelerators?)(?![a-z])|(?=(?:rtx )?[abhlv]i?[0-9]{2,4}s?(?![0-9]))|(?<=x)\s?(?=[2-5]0[5-9]0(?![0-9]))|[张块]\s?(?:gpu|卡|[abhlv][0-9]|显卡)?|卡(?![住死]))",
    _I,
)
_NODES = lazy(_N.format("n") + r"\s?-?\s?(?:nodes?|servers?|machines?|hosts?|台|个?节点|机)(?![a-z])", _I)


def _number(m: re.Match[str], name: str = "n") -> float:
    return float(m[name].replace(",", "")) * _SCALES.get((m[f"{name}s"] or "").casefold(), 1.0)


def _count(pattern: re.Pattern[str], text: str) -> int:
    found = [int(_number(m)) for m in pattern.finditer(text)]
    return max(found, default=0)


# --- how often to save --------------------------------------------------------------------

_SAVED = lazy(r"(?<![a-z])(?:checkpoint\w*|ckpts?|sav(?:e|es|ing))(?![a-z])|检查点|存档|存盘|保存", _I)
_HOW_OFTEN = lazy(
    r"(?<![a-z])(?:how (?:often|frequent\w*)|interval|every how|frequency|when to save|optimal|best)(?![a-z])|多久|间隔|多长时间|频率|几分钟|几小时|最[佳优]",
    _I,
)
_DURATION = lazy(
    _N.format("n")
    + r"\s?-?\s?(?P<u>days?|d|weeks?|w|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s|years?|yrs?|months?|天|日|周|年|个月|小时|个小时|分钟|分|秒)(?![a-z])",
    _I,
)
_HOURS = {"d": _DAY, "w": 7 * _DAY, "h": _HOUR, "m": _HOUR / 60, "s": _HOUR / 3600, "y": _YEAR, "mo": _YEAR / 12, "天": _DAY, "年": _YEAR, "个月": _YEAR / 12, "日": _DAY, "周": 7 * _DAY, "小": _HOUR, "个": _HOUR, "分": _HOUR / 60, "秒": _HOUR / 3600}  # fmt: skip
_FAILS = lazy(
    r"(?<![a-z])(?:mtbf|mtti|mttf|fail\w*|crash\w*|die[sd]?|break\w*|interrupt\w*|between|los(?:e|es|ing|t)|drop(?:s|ped)? out|go(?:es)? down|outages?|faults?)(?![a-z])|故障|坏|挂|中断|失败|掉|宕|死|出问题|平均无故障",
    _I,
)
_OF_NODE = lazy(r"(?<![a-z])(?:a|one|each|per|every|single|of) (?:one |a |each )?(?:node|server|machine|host)(?![a-z])|(?:hours?|days?|years?|months?) each(?![a-z])|(?<![a-z])node (?:mtbf|mttf|mtti|fail)|每[台个]|单[台机节]|节点", _I)  # fmt: skip
# we lose a node about every 2 days | 大约两天坏一台: whichever it is, so that is how often the whole of them is interrupted
_OF_ANY = lazy(
    r"(?<![a-z])(?:a|an|one|some|another)\s+(?:gpu\s+)?(?:node|server|machine|host|gpu|card|box|of (?:them|the \w+))s?(?![a-z])[^.;?]{0,40}?(?<![a-z])(?:every|once|per|each|in)(?![a-z])"
    r"|(?<![a-z])(?:every|once (?:in|per|every|a)|each)(?![a-z])[^.;?]{0,24}?(?<![a-z])(?:a|an|one|some)\s+(?:gpu\s+)?(?:node|server|machine|host|gpu|card|box)(?![a-z])"
    r"|[就会要都]?[坏挂掉死宕丢](?:一|1)[台张个块次]|(?:有|出现?)(?:一|1)[台张个块次][^，。？]{0,6}[坏挂掉死宕障]|(?:坏|挂|掉|死|宕|故障)(?:一|1)次",
    _I,
)
_OF_GPU = lazy(r"(?<![a-z])(?:a|one|each|per|single|of) (?:one |a |each )?(?:gpu|card)(?![a-z])|每[张块]|单卡", _I)
_OF_EACH = lazy(
    r"(?<![a-z])(?:mtbf|mttf|mtti|each node|every node|per node|of a node|each gpu|per gpu|of a gpu|single)(?![a-z])|每[台个张块]|单[台机节卡]",
    _I,
)
_A_NODE = 8  # GPUs, where nobody says otherwise: HGX, DGX, MI300X platforms
# Llama 3 405B: 419 unexpected interruptions in 54 days on 16,384 H100 (arXiv 2407.21783, table 5).
GPU_HOURS = 54 * 24 * 16384 / 419


def _saves(text: str) -> Saves | None:
    if not _SAVED.search(text) or not _HOW_OFTEN.search(text):
        return None
    text = _in_digits(text)
    failing = write = 0.0
    for m in _DURATION.finditer(text):
        hours = _hours(m)
        if _EVERY.search(text, 0, m.start()):
            continue  # checkpoint every 60 min: how often it saves today
        clause = _clause(text, m.start(), m.end())
        if _FAILS.search(clause) and not (failing or (_SAVED.search(clause) and hours < _HOUR)):
            failing = hours
        elif not write and hours <= _HOUR:
            write = hours
    gpus, nodes = _count(_GPUS, text), _count(_NODES, text)
    nodes = nodes or -(-gpus // _A_NODE)
    gpus = gpus or nodes * _A_NODE
    told = bool(failing)
    if failing and _is_of_whole(text, failing):
        pass
    elif failing and _OF_NODE.search(text):
        failing = failing / nodes if nodes else 0.0
    elif failing and _OF_GPU.search(text):
        failing = failing / gpus if gpus else 0.0
    elif not failing and gpus:
        failing = GPU_HOURS / gpus
    return Saves(failing, nodes, gpus, told, write) if failing else None


# what stands right ahead of how often is saved today; who tells how often something fails says so ("a crash every 9 h")
_EVERY = lazy(
    r"(?<![a-z])(?:checkpoint\w*|ckpts?|sav(?:e|es|ed|ing)(?: (?:it|them|one|a checkpoint))?|interval(?: (?:is|of|now|at))*)\s*(?:once |now |today |is |at )*(?:every|each)?\s*$"
    r"|(?:每隔?|间隔(?:是|为|现在)?)\s*$",
    _I,
)
_SPAN = r"(?:days?|weeks?|hours?|minutes?|months?)(?![a-z])"
_WORDED = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_IN_WORDS = lazy(
    rf"(?<![a-z])(?P<en>{'|'.join(_WORDED)})\s+(?={_SPAN})|(?<![a-z])(?P<a>a|an|per|each|every|every other)\s+(?={_SPAN})"
    r"|(?<![0-9零一二三四五六七八九十百])(?P<zh>[一二两三四五六七八九十])(?=个?(?:天|周|小时|月|分钟))|(?P<each>每)(?=(?:天|周|个?小时|个?月))",
    _I,
)


def _is_of_whole(text: str, failing: float) -> bool:
    """Whether it is told how often some one of all fails: "we lose a node every 2 days". Of "a node fails every 200 days" a span that
    a single one may well have is that of each."""
    if not _OF_ANY.search(text) or _OF_EACH.search(text):
        return False
    return failing < _ONE_LASTS or _LOSES.search(text) is not None


_ONE_LASTS = 10 * _DAY  # hours; published for Llama 3: 264 days for a node of eight GPUs
_LOSES = lazy(r"(?<![a-z])(?:lose|loses|losing|lost)(?![a-z])|[坏挂掉死宕丢][一1][台张块]", _I)


def _in_digits(text: str) -> str:
    """A text with the counts of spans of time as digits: every two days, once a week, 两天, 每周."""

    def digits(m: re.Match[str]) -> str:
        if m["en"]:
            return f"{_WORDED.index(m['en'].casefold()) + 1} "
        if m["zh"]:
            return f" {'一二三四五六七八九十'.index(m['zh'].replace('两', '二')) + 1} "
        return "every 2 " if (m["a"] or "").casefold().endswith("other") else f"{m['a'] or m['each']} 1 "

    return _IN_WORDS.sub(digits, text)


def _hours(m: re.Match[str]) -> float:
    unit = m["u"].casefold()
    short = unit[:2] if unit.startswith(("mo", "个月")) else unit[0]
    return _number(m) * _HOURS[short]


def _clause(text: str, start: int, end: int) -> str:
    """The clause that a place of a text stands in: up to the next comma of either side that is none of a number."""
    cuts = [m.start() for m in re.finditer(r"[;，。；?？]|,(?!\d{3})|(?<![a-z])(?:and|but|if|with)(?![a-z])", text)]
    return text[max((c for c in cuts if c < start), default=0) : min((c for c in cuts if c >= end), default=len(text))]


_EACH_TIME = lazy(
    r"(?<![a-z])(?:how often|mtbf|mttf|mtti|mean time|time between)(?![a-z])|多久|平均.{0,6}(?:时间|故障)|几天", _I
)


def _interrupted(text: str) -> Interrupted | None:
    gpus = _count(_GPUS, text) or _count(_NODES, text) * _A_NODE
    large = gpus >= 2 * _A_NODE  # of a few GPUs a mean over thousands says little
    asks = _EACH_TIME.search(text) and _FAILS.search(text)
    if not large or not asks:
        return None
    told = list(_DURATION.finditer(text))
    if not told:
        return Interrupted(gpus)
    # of one part a time between failures is told: that of N of them is its N-th part
    nodes = _count(_NODES, text)
    parts = gpus if _OF_GPU.search(text) else nodes if nodes and _OF_NODE.search(text) else 0
    if len(told) > 1 or not parts:
        return None
    return Interrupted(gpus, nodes, _hours(told[0]), parts)


# --- MFU ----------------------------------------------------------------------------------

_ASKS_MFU = lazy(r"(?<![a-z])[mh]fu(?![a-z])", _I)
_PARAMETERS = lazy(
    r"(?<![\w.])(?P<n>[0-9]+(?:\.[0-9]+)?)\s?(?P<u>b|bn|billion|t|trillion|亿|万亿)(?![a-z0-9/:]|\s?(?:tok|个?\s?token))",
    _I,
)
_OF = {"b": 1e9, "t": 1e12, "亿": 1e8, "万": 1e12}
_TOKENS = lazy(
    _N.format("n")
    + r"\s?(?:个\s?)?(?:tok(?:en)?s?|词元)\s?(?:/|per|a|each|每)\s?(?:s(?:ec(?:ond)?)?|秒)(?P<each>[^,.;，。]{0,12}?(?:/|per|a|each|每)\s?(?:gpu|card|张|块|卡))?"
    + r"|每秒(?:钟)?\s?(?:约|大约|处理|跑)?\s?(?P<z>[0-9][0-9,]*(?:\.[0-9]+)?)\s?(?P<zs>百万|[千万亿]|[kmb])?\s?(?:个\s?)?(?:tok(?:en)?s?|词元)",
    _I,
)
_EACH = lazy(r"(?<![a-z])(?:per|each|/)\s?(?:gpu|card)(?![a-z])|每[张块]|单卡", _I)


def _mfu(text: str) -> Mfu | None:
    if not _ASKS_MFU.search(text):
        return None
    tokens, size, named = _TOKENS.search(text), _PARAMETERS.search(text), MODEL.search(text)
    if tokens is None or size is None or named is None:
        return None
    specs = candidates(named[0].strip(" ,").rstrip("sS"))
    if not specs:
        return None
    gpus = _count(_GPUS, text)
    rate = _number(tokens, "n" if tokens["n"] else "z")
    each = bool(tokens["each"]) or _EACH.search(text) is not None
    if not (gpus or each):
        return None
    # of several forms of a model the one with the highest peak: large trainings run on these
    model = max(specs, key=lambda s: s.peak("bf16") or 0.0)
    if not model.peak("bf16"):
        return None
    parameters = float(size["n"]) * _OF[size["u"][0].casefold()]
    return Mfu(parameters, rate * (gpus or 1) if each else rate, gpus or 1, model, "fp8" in text.casefold())


# 1T tokens | 15 trillion tokens | 2 万亿 token
_ALL_TOKENS = lazy(
    r"(?<![\w.])(?P<n>[0-9]+(?:\.[0-9]+)?)\s?(?P<u>t|trillion|b|billion|万亿|亿)\s?(?:个\s?)?(?:tok(?:en)?s?|词元)(?!\s?(?:/|per|每))",
    _I,
)
_HOW_LONG = lazy(
    r"(?<![a-z])(?:how (?:long|many (?:days|weeks|hours))|time to train|duration|days?|weeks?)(?![a-z])|多久|多长时间|几天|多少天|几周|多少小时",
    _I,
)


def _training_time(text: str) -> TrainingTime | None:
    tokens, named = _ALL_TOKENS.search(text), MODEL.search(text)
    if tokens is None or named is None or not _HOW_LONG.search(text):
        return None
    rest = f"{text[: tokens.start()]} {text[tokens.end() :]}"
    size, gpus = _PARAMETERS.search(rest), _count(_GPUS, rest)
    specs = candidates(named[0].strip(" ,").rstrip("sS"))
    model = max(specs, key=lambda s: s.peak("bf16") or 0.0) if specs else None
    if size is None or not gpus or model is None or not model.peak("bf16"):
        return None
    return TrainingTime(
        float(size["n"]) * _OF[size["u"][0].casefold()],
        float(tokens["n"]) * _OF[tokens["u"][0].casefold()],
        gpus,
        model,
    )


# --- utilisation --------------------------------------------------------------------------

_RAISED = lazy(
    r"(?<![\w.])(?P<a>[0-9]{1,2}(?:\.[0-9]+)?)\s?(?:%|percent)?\s*(?:to|->|→|up to|提[升高]?到|升到|到|涨到|增加到)\s*(?P<b>[0-9]{1,3}(?:\.[0-9]+)?)\s?(?:%|percent)?",
    _I,
)
_USE = lazy(r"(?<![a-z])(?:utili[sz]ation|util|usage|busy|mfu|goodput)(?![a-z])|利用率|使用率", _I)
_ASKS_SAVING = lazy(
    r"(?<![a-z])(?:save[sd]?|saving\w*|gain\w*|worth|cheaper|cost|money|win|bring)(?![a-z])|省|节约|节省|值|划算|多少钱|收益",
    _I,
)
_PRICE = lazy(
    r"(?P<m>[$€£¥])\s?(?P<n>[0-9]+(?:\.[0-9]+)?)|(?<![\w.])(?P<n2>[0-9]+(?:\.[0-9]+)?)\s?(?P<m2>usd|eur|dollars?|euros?|美元|美金|元|欧元|块钱)",
    _I,
)
_MONEY = {"usd": "$", "dollar": "$", "dollars": "$", "美元": "$", "美金": "$", "元": "¥", "块钱": "¥", "eur": "€", "euro": "€", "euros": "€", "欧元": "€"}  # fmt: skip


def _saving(text: str) -> Saving | None:
    raised = _RAISED.search(text)
    if raised is None or not _USE.search(text) or not _ASKS_SAVING.search(text):
        return None
    before, after = float(raised["a"]), float(raised["b"])
    if not 0 < before < after <= 100:
        return None
    price = _PRICE.search(text)
    money = (price["m"] or _MONEY[price["m2"].casefold()]) if price else ""
    return Saving(before, after, _count(_GPUS, text), float(price["n"] or price["n2"]) if price else 0.0, money)


# --- memory -------------------------------------------------------------------------------

_ASKS_MEMORY = lazy(
    r"(?<![a-z])(?:how many (?:[a-z0-9]+ ){0,2}?(?:gpus?|cards?|[abhl]i?[0-9]{2,3}s?|mi[0-9]{3}x?s?)|how much (?:gpu |v|video )?(?:memory|ram|vram)|(?:gpu |v)(?:memory|ram)(?: is| are)? (?:needed|required|need|requirements?)|(?:fits?|enough|sufficient|big enough|possible|feasible|doable|estimate|calculate|need(?:ed)?|required?)(?![a-z]))"
    r"|几[张块]|多少[张块]?(?:卡|显存|gpu)|多大(?:的)?显存|[放装存]得?下|够[吗么不用]|够不够|能跑|跑得[动了]|能不能跑|需要多少|要多少|估算",
    _I,
)
# can I run 70B on 2x L40S | would a 13b work on a 3090: model and GPU are named, and whether it goes is asked
_ASKS_PLACE = lazy(
    r"(?<![a-z])(?:can|could|will|would|does|do|is it|possible|able)(?![a-z])[^.;?]{0,40}?(?<![a-z])(?:run|serve|host|load|use|train|fine[- ]?tune|deploy|put|squeeze|work|go|cope)(?![a-z])[^.;?]{0,60}?(?<![a-z])(?:on|onto|with|in|into|using)(?![a-z])|(?<![a-z])(?:can|could|will|would|does|do)(?![a-z])[^.;?]{1,40}?(?<![a-z])(?:run|serve|hold|handle|host|load|train|fit)(?![a-z])[^.;?0-9]{0,30}(?<![0-9a-z])[0-9.]+\s?b(?![a-z])|[能可][不否]?[能以]?[^，。；?？]{0,20}?(?:跑|部署|训练?|微调|加载|推理|放)",
    _I,
)
# OOM loading a 70B on two cards: where it cannot fit, that is what there is to say
_LOADING = lazy(
    r"(?<![a-z])(?:oom\w*|out of memory)(?![a-z])[^.;?]{0,40}?(?<![a-z])(?:load\w*|start\w*|init\w*)(?![a-z])|(?<![a-z])(?:load\w*|start\w*)(?![a-z])[^.;?]{0,60}?(?<![a-z])(?:oom\w*|out of memory)(?![a-z])|加载[^，。；]{0,24}(?:oom|爆显存|显存不足|溢出)|(?:oom|爆显存|显存不足)[^，。；]{0,24}加载",
    _I,
)
_SERVES = lazy(
    r"(?<![a-z])(?:infer\w*|serv\w+|decod\w+|vllm|sglang|tgi|tensorrt|run|host|deploy\w*)(?![a-z])|推理|部署|服务", _I
)
_TRAINS = lazy(
    r"(?<![a-z])(?:re)?train\w*|(?<![a-z])(?:fine[- ]?tun\w*|pre-?train\w*|sft|adam\w*)|训练|微调|预训练", _I
)
_LORA = lazy(r"(?<![a-z])q?lora(?![a-z])|adapters?|(?<![a-z])peft", _I)
_BITS = (
    (4, lazy(r"(?<![a-z0-9])(?:int4|fp4|nvfp4|4[- ]?bit|awq|gptq|qlora|q4)(?![0-9])|4\s?比特", _I)),
    (8, lazy(r"(?<![a-z0-9])(?:int8|fp8|8[- ]?bit|q8)(?![0-9])|8\s?比特", _I)),
    (16, lazy(r"(?<![a-z0-9])(?:bf16|fp16|16[- ]?bit|half)(?![0-9])", _I)),
)
_GIB = lazy(r"(?:(?<![\w.])|(?<=[0-9][x×]))([0-9]{1,3})\s?g(?:i?b)?(?![a-z0-9/])", _I)
# a report of a failure, and a rate, are other questions
_NO_MEMORY = lazy(
    r"(?<![a-z])(?:oom\w*|out of memory|crash\w*|fail\w*|error|hang\w*|slow\w*|tok(?:en)?s?\s?(?:/|per)|mfu|how (?:often|long)|days?|weeks?|gpu[- ]hours?|cost|tokens?|checkpoints?|ckpts?|disks?|storage|ssds?|hdd)(?![a-z])|磁盘|硬盘|溢出|爆显存|不足|报错|失败|挂|慢|多久|几天|多少天|每秒|检查点",
    _I,
)


_COUNTS = {"two": "2x", "three": "3x", "four": "4x", "six": "6x", "eight": "8x"} | dict(
    zip("一二两三四五六七八", "122345678", strict=True)
)
# two 4090s, 两张 A100
_HAN_CARDS = lazy(
    r"[一二两三四五六七八](?=\s?(?:[张块]|卡))|(?<![a-z])(?:two|three|four|six|eight)(?=\s(?:[0-9]{2,3}\s?gb\s)?(?:gpus|cards|rtx|(?:[abhlv][0-9]{1,3}|[2-5]0[5-9]0)s?(?![a-z0-9])))",
    _I,
)
# is 13b ok on a single 24gb card: yes or no
_IS_OK = lazy(
    r"(?<![a-z])(?:is|are)(?![a-z])[^.;?]{0,30}?(?<![a-z])(?:ok|okay|fine|possible|doable|realistic|runnable)(?![a-z])",
    _I,
)
# yes or no of one card; how many it takes, or what several can do, is another question
_YES_OR_NO = lazy(
    r"(?<![a-z])(?:can|could|will|would|does|do|is|fits?|enough|ok)(?![a-z])|能|可以|够|行吗|跑得|[放装存]得?下", _I
)
_MANY = lazy(
    r"(?<![a-z])(?:how (?:many|much)|gpus|cards|nodes?|servers?|machines?|clusters?|dgx|hgx|box(?:es)?)(?![a-z])|(?<![a-z0-9])(?:[abhlv][0-9]{1,3}|[2-5]0[5-9]0)s(?![a-z0-9])|几[张块台卡]|多少|节点|机器|服务器|集群|多卡",
    _I,
)
# Nothing but the model, the GPU and a format: "mixtral 8x7b in int4 on 2x3090?"
_BESIDE_IT = lazy(
    r"(?<![a-z])(?:llama|qwen|mistral|mixtral|for|deepseek|yi|gemma|phi|falcon|glm|baichuan|internlm|models?|llm|in|on|with|at|an?|the|one|single|two|four|eight|x|gpus?|cards?|nvidia|rtx|geforce|bit|awq|gptq|instruct|chat|inference|serving|gb?|gib|s)(?![a-z])|推理|部署|模型|[张块卡上用跑]|[0-9x×\s?？!！。,，:：()（）/=_.+-]",
    _I,
)


_A_MODEL = lazy(r"(?<![a-z])(?:models?|param\w*|moe|llm)(?![a-z])|模型|参数", _I)


def _memory(text: str) -> Memory | None:
    said, text = text, _HAN_CARDS.sub(lambda m: _COUNTS[m[0].casefold()], _with_size(text))
    size = _PARAMETERS.search(text)
    specs, gib = _specs(text), _GIB.search(text)
    each = float(gib[1]) if gib else 0.0 if specs else _of_games(text)
    placed = (specs or each) and (
        _ASKS_PLACE.search(text) is not None or _IS_OK.search(text) is not None or _nothing_else(text)
    )
    loading = bool(specs) and _LOADING.search(text) is not None
    if (
        size is None
        or KV.search(text)
        or not (loading or ((placed or _ASKS_MEMORY.search(text)) and not _NO_MEMORY.search(text)))
    ):
        return None
    if size["u"][0] in "tT" and not _A_MODEL.search(text):  # 2T of memory
        return None
    parameters = float(size["n"]) * _OF[size["u"][0].casefold()]
    use = "lora" if _LORA.search(text) else "train" if _TRAINS.search(text) else "serve" if _SERVES.search(text) else ""
    bits = next((n for n, pattern in _BITS if pattern.search(text)), 8 if _IN_FP8.search(said) else 0)
    # of several sizes of a model the smallest: what fits there fits the others
    model = min(specs, key=lambda s: s.memory_gib or 0.0) if specs else None
    gpus = _count(_GPUS, text) or (1 if _ONE.search(text) else 0)
    if not gpus and (specs or each) and not _MANY.search(text) and (_YES_OR_NO.search(text) or _nothing_else(text)):
        gpus = 1
    if loading and not _too_large(parameters, bits, gpus * (each or (model.memory_gib if model else None) or 0.0)):
        return None  # it should fit: why it does not is another question
    return Memory(parameters, use or ("serve" if loading else ""), bits, model, each, gpus, load_of(said, parameters))


# GB of the cards of games that have no page of their own: NVIDIA's comparison of GeForce cards.
_GEFORCE = {
    "2080": 8, "2080ti": 11, "3050": 8, "3060": 12, "3060ti": 8, "3070": 8, "3070ti": 8, "3080": 10, "3080ti": 12, "3090ti": 24,
    "4060": 8, "4060ti": 8, "4070": 12, "4070ti": 12, "4080": 16, "5060": 8, "5060ti": 8, "5070": 12, "5070ti": 16, "5080": 16,
}  # fmt: skip


def _of_games(text: str) -> float:
    """The memory of the card of games that is named, in GB; 0 where none is, or several are."""
    named = {"".join(m[0].casefold().split()).removesuffix("super") for m in _CARD.finditer(text)}
    return float(_GEFORCE.get(named.pop(), 0)) if len(named) == 1 else 0.0


def _nothing_else(text: str) -> bool:
    """Whether a text is nothing but a model, GPUs and a number format, as a question."""
    if "?" not in text and "？" not in text:
        return False
    rest = text
    for known in (MODEL, _CARD, _PARAMETERS, *(pattern for _, pattern in _BITS), _BESIDE_IT):
        rest = known.sub(" ", rest)
    return not rest.strip()


def _specs(text: str) -> tuple[GpuSpec, ...]:
    """The models that the first GPU in a text may be: L40S, H100s, a 4090; none where none is known."""
    for m in (*MODEL.finditer(text), *_CARD.finditer(text)):
        called = m[0].strip(" ,")
        if found := candidates(called) or candidates(called.rstrip("sS")):
            return found
    return ()


_CARD = lazy(
    r"(?<![a-wyz0-9.])(?<![a-z]x)(?:[2-5]0[5-9]0)(?:\s?(?:ti|super|d))?(?=s?(?![a-z0-9.%]|\s*(?:%|w|mhz)(?![a-z])))", _I
)


def _too_large(parameters: float, bits: int, memory: float) -> bool:
    """Whether a model does not fit into `memory` GB, where that is told: the weights, and a fifth of them for the rest, into nine tenths."""
    return memory > 0 and 1.2 * parameters / 1e9 * (bits or 16) / 8 > 0.9 * memory


# published in FP8 (model cards): nobody serves them in 16 bits
_IN_FP8 = lazy(r"(?<![a-z])(?:deepseek[- ]?(?:v3(?:\.[0-9])?|r1)|kimi[- ]?k2)(?![0-9a-z]|[- ]?distill)", _I)
# Total parameters in billions of models whose names do not tell them: their model cards.
_SIZES = (
    ("671", lazy(r"(?<![a-z])deepseek[- ]?(?:v3(?:\.[0-9])?|r1)(?![0-9a-z])", _I)),
    ("236", lazy(r"(?<![a-z])deepseek[- ]?v2(?:\.5)?(?![0-9a-z])", _I)),
    ("141", lazy(r"(?<![a-z0-9])(?:mixtral[- ]?)?8x22b(?![a-z])", _I)),
    ("47", lazy(r"(?<![a-z0-9])(?:mixtral[- ]?)?8x7b(?![a-z])", _I)),
    ("132", lazy(r"(?<![a-z])dbrx(?![a-z])", _I)),
    ("1000", lazy(r"(?<![a-z])kimi[- ]?k2(?![a-z])", _I)),
    ("400", lazy(r"(?<![a-z])(?:llama[- ]?4[- ]?)?maverick(?![a-z])", _I)),
    ("109", lazy(r"(?<![a-z])llama[- ]?4[- ]?scout(?![a-z])", _I)),
)


def _with_size(text: str) -> str:
    """`text` with the parameters of a model that is known by its name in place of that."""
    if _PARAMETERS.search(text) is None:
        for size, name in _SIZES:
            if name.search(text):
                return name.sub(f" {size}b ", text, 1)
    return text


_ONE = lazy(
    r"(?<![a-z])(?:on|in|into|onto|with|using) (?:a|an|one|my|the|this|our) (?:single )?(?:[0-9]+ ?gi?b )?(?:(?:nvidia|rtx|geforce) )*(?:gpu(?!s)|card(?!s)|[abhlt]?[0-9]{2,4}(?:ti)?(?![0-9s]))|(?<![a-z])single (?:gpu|card)|单卡|单张|一张|一块",
    _I,
)
