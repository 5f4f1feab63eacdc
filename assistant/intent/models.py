"""Which GPU models a sentence compares or chooses between: "A100 vs H100 for finetuning", "H100 SXM or PCIe", A100 和 H20 推理选哪个."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import cache
from typing import NamedTuple

from assistant.intent.grammar import words_of
from assistant.intent.tasks import named
from knowledge.gpus import Dtype, GpuSpec, all_specs
from knowledge.lazy import lazy

_LONG = 200  # characters
MOST = 4  # models
# 460 GB/s, 1980 MHz: readings are told, and a size is part of a name
_READING = lazy(
    r"(?<![a-z0-9])[0-9.]+\s*(?:g[bt]/s|gbps|mhz|w(?:att)?s?(?![a-z0-9])|%|°|c(?![a-z0-9])|ms|tok|度)|xid",
    re.IGNORECASE,
)
_TRAINS = lazy(r"train|tun(?:e|ing)|sft|rlhf|prefill|训练|微调|预训练|训", re.IGNORECASE)
_SERVES = lazy(r"inferenc|infer|serv|decod|deploy|vllm|sglang|推理|部署|推", re.IGNORECASE)
_SIZE = lazy(r"(?<![0-9.])(24|32|40|48|64|80|94|96|128|141|180|192|256|288)\s?g", re.IGNORECASE)
_FORM = lazy(r"sxm|pcie|nvl(?!ink)|oam", re.IGNORECASE)


class Figure(StrEnum):
    """A figure of a data sheet that is asked of a model."""

    BANDWIDTH = "bandwidth"  # of the memory
    NVLINK = "nvlink"
    MEMORY = "memory"
    POWER = "power"  # the limit of the board as it ships
    PEAK = "peak"
    PCIE = "pcie"


class Work(StrEnum):
    """What the models are wanted for, which decides what of them counts."""

    TRAINING = "training"
    SERVING = "serving"
    EITHER = "either"


def compared(said: str) -> tuple[GpuSpec, ...]:
    """The models between which a sentence chooses; empty where it names fewer than two, or tells readings of them."""
    chooses = _MOVES.search(said) is not None or not named("ask", words_of(said)).keys().isdisjoint(("choose",))
    if len(said) > _LONG or _READING.search(said) or not chooses:
        return ()
    places = list(mentions(said))
    found: dict[str, GpuSpec] = {}
    for at, (_, end, family) in enumerate(places):
        rest = said[end : places[at + 1][0] if at + 1 < len(places) else len(said)] if len(places) > 1 else said
        for one in _meant(family, rest, alone=len(places) == 1):
            found.setdefault(one.id, one)
    return tuple(found.values())[:MOST] if len(found) > 1 else ()


# moving from 8xA100 to 8xH100, what speedup | how much faster is H200 than H100
_MOVES = lazy(
    r"(?<![a-z])(?:mov(?:e|ing)|upgrad(?:e|ing)|migrat(?:e|ing)|switch(?:ing)?|going|go) from [^?]{2,40} to [^?]{2,80}(?:speed ?up|faster|gain|expect|worth)"
    r"|(?<![a-z])(?:how much (?:faster|slower|better)|what speed ?up|(?:is|are) (?:an? |the )?[a-z0-9 -]{2,20} (?:much |a lot |really )?(?:faster|slower|better|cheaper)) [^?]{0,30}(?<![a-z])(?:than|over|from|versus|vs)(?![a-z])|比[^，。；]{2,16}(?:慢|快)|从.{2,20}(?:换|升级|迁移)到.{2,30}(?:快|提升|加速)",
    re.IGNORECASE,
)


def work(said: str) -> Work:
    """What the models are wanted for."""
    trains, serves = _TRAINS.search(said) is not None, _SERVES.search(said) is not None
    if trains == serves:
        return Work.EITHER
    return Work.TRAINING if trains else Work.SERVING


def mentions(said: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and family of each model that is named, left to right."""
    low, at = _TIMES.sub(lambda m: " " * len(m[0]), said.casefold()), 0
    while at < len(low):
        fits = (f for f in _families() if low.startswith(f, at))
        family = next((f for f in fits if _apart(low, at, at + len(f))), "")
        if family:
            yield at, at + len(family), family
        at += len(family) or 1


_TIMES = lazy(r"(?<![a-z0-9])[0-9]{1,4}\s?x\s?(?=[a-z])")  # 8xH100


def _apart(low: str, start: int, end: int) -> bool:
    ahead, behind = low[start - 1 : start], low[end : end + 1]
    return not any(c.isascii() and c.isalnum() for c in (ahead, "" if behind == "s" else behind))


@cache
def _families() -> tuple[str, ...]:
    """What people call them: the family, and cards of games by their number alone ("4090"); the longest first."""
    known = {s.family.casefold() for s in all_specs()}
    short = {f.removeprefix("rtx ") for f in known if f.removeprefix("rtx ").isdecimal()}
    return tuple(sorted(known | short, key=lambda f: (-len(f), f)))


def _meant(family: str, rest: str, *, alone: bool) -> Sequence[GpuSpec]:
    """The model that a mention means by the size or form behind it; `alone`: each size and form behind it is one."""
    of = [s for s in all_specs() if s.family.casefold() in (family, f"rtx {family}")]
    marks = [*(m[1] for m in _SIZE.finditer(rest)), *(m[0].casefold() for m in _FORM.finditer(rest))]
    kept = of
    for mark in dict.fromkeys(marks):
        fitting = [s for s in of if mark in f"{s.id} {s.memory_gib:g} {s.form_factor}"]
        if alone and fitting and len(set(marks)) > 1:
            kept = [*([] if kept is of else kept), _usual(fitting)]
        elif fitting:
            kept = [s for s in kept if s in fitting] or fitting
    return kept if alone and len(set(marks)) > 1 and kept is not of else [_usual(kept)]


def _usual(of: Sequence[GpuSpec]) -> GpuSpec:
    """The model that a bare name means: the one that is called so, else on a module before a card, the plain before the bridged, the larger first."""
    return max(
        of, key=lambda s: (s.id == s.family.casefold(), s.form_factor != "pcie", "nvl" not in s.id, s.memory_gib or 0.0)
    )


# a 13b model | Llama-70B | 7 billion; not 80 GB
_PARAMETERS = lazy(r"(?<![a-z0-9.])([0-9]{1,4}(?:\.[0-9]{1,2})?)\s?(?:b(?:illion)?|十亿)(?![a-z0-9])", re.IGNORECASE)


def parameters(said: str) -> float:
    """How many parameters the language model has that a sentence names; 0 where it names none, or several."""
    sizes = {float(m[1]) for m in _PARAMETERS.finditer(said)}
    return 1e9 * sizes.pop() if len(sizes) == 1 else 0.0


# The more particular one first: of "显存带宽" nobody asks the size.
_FIGURES = (
    (Figure.BANDWIDTH, lazy(r"(?:hbm|memory|vram|dram|gddr)(?: memory)? bandwidth|bandwidth of (?:the )?(?:hbm|memory|vram)|(?:显存|hbm|内存)的?带宽", re.IGNORECASE)),
    (Figure.NVLINK, lazy(r"nv[- ]?links?(?:\s?的?(?:互联|总)?带宽| bandwidth| speed| links)?", re.IGNORECASE)),
    (Figure.PEAK, lazy(r"(?:bf16|fp16|fp8|fp4|fp32|fp64|tf32|int8)?\s?(?:稠密|理论|峰值|dense|peak)?的?\s?(?:算力|峰值算力|tflops|tflop/s|flops|peak(?: performance| compute)?)", re.IGNORECASE)),
    (Figure.POWER, lazy(r"tdp|(?:power limit|max(?:imum)? power|rated power)|(?:功[耗率]上限|最大功[耗率]|额定功[耗率]|功耗墙)", re.IGNORECASE)),
    (Figure.PCIE, lazy(r"pci-?e ?(?:gen(?:eration)?|version|版本|代数|几代|是?第?几代)", re.IGNORECASE)),
    (Figure.MEMORY, lazy(r"(?:memory|vram|hbm)(?: size| capacity)?|显存(?:大小|容量)?|hbm", re.IGNORECASE)),
)  # fmt: skip
# What may stand beside them in a question that is of nothing else.
_AROUND = lazy(
    r"请问|一下|我想知道|查一?下|单卡|单张|一张|一块|每张|每块|支持|有没有|能不能开|能不能用|能开|能用|能上|有|的|是|为|能到|能有|可以|到底|大概|理论上?|峰值|最大|标称|官方|总共|一共|多少|多大|多高|几条|条|几|什么|啥|和|呢|吗|么|没有|支不支持"
    r"|(?<![a-z])(?:what|what's|whats|is|are|the|an?|of|how|much|many|big|large|does|do|have|has|support|there|on|for|single|one|please|links?|in|it|its|nvidia|amd|gpus?|card|gen|theoretical|dense)(?![a-z])"
    r"|(?<![a-z])(?:tb/s|gb/s|gib|gb|tflops|watts?|[gwt])(?![a-z])|[\s?？!！。,，:：'’/（）()-]",
    re.IGNORECASE,
)
_ASKS = lazy(
    r"多少|多大|多高|几|什么|啥|吗|么|有没有|支不支持|[?？]|(?<![a-z])(?:what|what's|whats|how|does|do)(?![a-z])",
    re.IGNORECASE,
)
_DTYPE = lazy(r"(?<![a-z0-9])(bf16|fp16|fp8|fp4|fp32|fp64|tf32|int8)", re.IGNORECASE)


class Specified(NamedTuple):
    """A figure that is asked of the models of one name."""

    figure: Figure
    of: tuple[GpuSpec, ...]  # the usual one first
    dtype: Dtype = Dtype.BF16  # of a peak


def specified(said: str) -> Specified | None:
    """The figure of a data sheet that a sentence asks of one model and nothing else: H800 的 NVLink 带宽多少. None for any other."""
    if len(said) > _LONG or _READING.search(said):
        return None
    places = list(mentions(said))
    found = next(((f, m) for f, p in _FIGURES if (m := p.search(said)) is not None), None)
    if len(places) != 1 or found is None:
        return None
    (figure, where), (start, end, family) = found, places[0]
    if where.start() < end and start < where.end():
        return None
    spans = sorted(((start, end), where.span()))
    rest = " ".join((said[: spans[0][0]], said[spans[0][1] : spans[1][0]], said[spans[1][1] :]))
    alone = figure in (Figure.BANDWIDTH, Figure.POWER) or where[0].endswith("带宽")
    left = _AROUND.sub("", _DTYPE.sub("", _FORM.sub("", _SIZE.sub("", rest))))
    if left.strip("0123456789") or not (alone or _ASKS.search(said)):
        return None
    of = all_meant(family, rest)
    if not of or (figure is Figure.NVLINK and of[0].vendor != "nvidia"):
        return None
    named_type = _DTYPE.search(said)
    return Specified(figure, of, Dtype(named_type[1].casefold()) if named_type else Dtype.BF16)


def all_meant(family: str, rest: str) -> tuple[GpuSpec, ...]:
    """Every model of a name that the size or form beside it leaves, the usual one first."""
    of = [s for s in all_specs() if s.family.casefold() in (family, f"rtx {family}")]
    for mark in (*(m[1] for m in _SIZE.finditer(rest)), *(m[0].casefold() for m in _FORM.finditer(rest))):
        of = [s for s in of if mark in f"{s.id} {s.memory_gib:g} {s.form_factor}"] or of
    first = _usual(of) if of else None
    return (first, *(s for s in of if s is not first)) if first is not None else ()
