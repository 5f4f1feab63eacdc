"""What a GPU model can do, asked of it and of nothing else: "does a T4 support bf16", "is nvlink supported on the rtx 4090", L20 能用 FP8 吗."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from assistant.intent.models import all_meant, mentions
from knowledge.gpus import GpuSpec
from knowledge.lazy import lazy

_I = re.IGNORECASE
_LONG = 120  # characters


class Feature(StrEnum):
    """What a model has or has not."""

    CAPABILITY = "compute capability"
    FLASH_3 = "FlashAttention 3"
    FLASH_2 = "FlashAttention"
    NVLINK = "NVLink"
    MIG = "MIG"
    FP4 = "FP4"
    FP8 = "FP8"
    BF16 = "BF16"
    TF32 = "TF32"


PEAKS = {Feature.BF16: "bf16", Feature.TF32: "tf32", Feature.FP8: "fp8", Feature.FP4: "fp4"}


class Supported(NamedTuple):
    """A feature that is asked of the models of one name, the usual one first."""

    feature: Feature
    of: tuple[GpuSpec, ...]


_FEATURES = (
    (Feature.CAPABILITY, lazy(r"(?:cuda )?compute capability|计算能力|算力(?:是|为|等级|版本|多少|\s)*(?:sm|cc)[ _]?(?:是|几|多少|版本)*|(?<![a-z])sm[ _]?(?:version|number|版本|是?几|是?多少)|算力(?:版本|等级)|(?:which|what) sm(?: version)?(?![a-z])", _I)),
    (Feature.FLASH_3, lazy(r"(?:flash[- _]?att(?:entio)?n?|(?<![a-z])fa)[- ]?v?3(?![0-9.])", _I)),
    (Feature.FLASH_2, lazy(r"flash[- _]?att(?:entio)?n?(?:[- ]?v?2)?(?![0-9.])", _I)),
    (Feature.NVLINK, lazy(r"nv[- ]?links?(?: bridges?)?|nvlink 桥", _I)),
    (Feature.MIG, lazy(r"(?<![a-z])mig(?: mode)?(?![a-z])|multi[- ]instance gpu", _I)),
    (Feature.FP4, lazy(r"(?<![a-z0-9])(?:nv|mx)?fp4(?![0-9])", _I)),
    (Feature.FP8, lazy(r"(?<![a-z0-9])(?:fp8|float8|e4m3)(?![0-9])", _I)),
    (Feature.BF16, lazy(r"(?<![a-z0-9])(?:bf[- ]?16|bfloat16)(?![0-9])", _I)),
    (Feature.TF32, lazy(r"(?<![a-z0-9])tf32(?![0-9])", _I)),
)  # fmt: skip
_ASKS = lazy(
    r"(?<![a-z])(?:do|does|is|are|can|could|will|has|have|supports?|supported|which|what)(?![a-z])|支持|能|有没有|带不带|可以|可否|是否|几|多少|什么|吗|么|[?？]",
    _I,
)
_HOW = lazy(r"(?<![a-z])how(?![a-z])|怎么|如何|怎样", _I)
# what may stand beside model and feature in a question that is of nothing else
_AROUND = lazy(
    r"请问|一下|我想知道|想问|支不支持|能不能|可不可以|有没有|是不是|是否|能否|可否|支持|可以|硬件|原生|上面|显卡|这张|这块|一张|一块|单卡|之间|互[联连]|桥接|训练|推理|精度|格式|功能|模式|架构|[这那个张块能可有的是为用跑开做上带连走不了卡几吗么呢啊吧得到用在里]"
    r"|(?<![a-z])(?:do|does|did|is|are|be|been|can|could|will|would|connected?|linked|bridged|together|an?|the|on|of|for|with|to|in|it|its|i|we|you|my|our|one|two|any|has|have|had|got|get|gets|come|comes|supports?|supported|supporting|use|uses|used|using|run|runs|enable|enabled|available|works?|working|natively?|native|hardware|accelerated|really|actually|still|also|gpus?|cards?|nvidia|geforce|tesla|amd|tensor|cores?|training|train|inference|mode|format|compatible|capable|able|possible|ok|which|what|whats|what's|version|number|cuda|please|and|or|not|no|yes)(?![a-z])"
    r"|(?:n't)(?![a-z])|[\s?？!！。,，:：'’/（）()_-]",
    _I,
)
_SIZE_OR_FORM = lazy(
    r"(?<![0-9.])(?:[1-9][0-9]{0,2})\s?gi?b?(?![a-z0-9])|(?<![a-z])(?:sxm[2-6]?|pcie|nvl|oam)(?![a-z])", _I
)


def supported(said: str) -> Supported | None:
    """The feature that a sentence asks of one model, and nothing else; None for any other."""
    if len(said) > _LONG or not _ASKS.search(said) or _HOW.search(said):
        return None
    found = next(((f, m) for f, p in _FEATURES if (m := p.search(said)) is not None), None)
    if found is None:
        return None
    feature, where = found
    said = f"{said[: where.start()]} {said[where.end() :]}"
    places = list(mentions(said))
    if len({family for _, _, family in places}) != 1:
        return None
    rest = said
    for start, end, _ in reversed(places):
        rest = f"{rest[:start]} {rest[end:]}"
    if _AROUND.sub("", _SIZE_OR_FORM.sub("", rest)).strip("s"):
        return None
    of = all_meant(places[0][2], rest)
    known = of and (of[0].compute_capability or (feature in PEAKS and of[0].peak(PEAKS[feature])))
    return Supported(feature, of) if known else None
