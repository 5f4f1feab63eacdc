"""Figures that stand together in a sentence: what an allocation asked for beside what is free, and what a step takes for data."""

from __future__ import annotations

import re
from typing import NamedTuple

from knowledge.lazy import lazy

_I = re.IGNORECASE
_MOST = 600  # characters of a sentence that are looked at
_MIB = {"g": 1024.0, "m": 1.0, "t": 1024.0**2}
_AMOUNT = r"(?<![\w.])([0-9]+(?:\.[0-9]+)?)\s?(g|m|t)(?:i?b|ig)?(?![a-z0-9])"
# cuda oom | CUDA out of memory | torch.OutOfMemoryError | 显存不足 | 爆显存; not the kernel's, and not the host's
_OOM = lazy(
    r"(?<![a-z])oom(?:s|ed|ing)?(?![a-z-])|out[ -]of[ -](?:gpu |device |cuda |video )?memory|outofmemory|显存不足|显存不够|爆显存|显存溢出|显存爆",
    _I,
)
_OF_HOST = lazy(
    r"oom[- ]?kill|killed|exit (?:code )?137|host memory|cgroup|(?<![a-z])ram(?![a-z])|主机内存|容器内存|被杀", _I
)
_FREE = lazy(
    rf"{_AMOUNT}\s*(?:of\s+)?(?:(?:gpu|device|vram|video|the)\s+)?(?:memory|vram|显存)?\s*(?:is|are|was|were|still|seems?|shown as|的|是|还)?\s*(?:still |are |is )?(?:free|available|left|unused|empty|idle|空闲|可用|剩余|没用)"
    rf"|(?:free|available|unused|left)\s*(?:memory|vram)?\s*(?:is|are|was|of|at|:|=|about|shows?)*\s*{_AMOUNT}|(?:还剩|剩余|还有|剩下|空闲|可用|剩|空着)(?:的)?(?:显存)?[^0-9，。,]{{0,6}}{_AMOUNT}",
    _I,
)
_ASKED = lazy(
    rf"(?:(?:tried|trying|tries|fail\w*|unable|could not|cannot|can't|want\w*|attempt\w*)\s+to\s+)?(?:allocat\w+|malloc|request\w*|ask\w*(?:\s+for)?|needs?|wants?)\s*(?:only|just|about|a|an|of|:|=)*\s*{_AMOUNT}"
    rf"|{_AMOUNT}\s*(?:allocation|request|tensor|buffer|malloc)|(?:申请|分配|请求|需要)(?:了|个|只|仅)*\s*{_AMOUNT}",
    _I,
)
_RESERVED = lazy(
    rf"{_AMOUNT}\s*(?:is|are|was|were|still|的|被)?\s*(?:reserved|cached|保留|预留|已保留)[^,;，；]{{0,30}}(?:unallocated|not allocated|unused|未分配|未使用|没用)"
    rf"|(?:reserved|保留|预留)[^,;，；0-9]{{0,30}}(?:unallocated|not allocated|unused|未分配|未使用|没用)[^0-9,;，；]{{0,16}}{_AMOUNT}",
    _I,
)


# nvidia-smi 只用了 40G/80G: what is free is the rest
_ONLY_USED = lazy(
    r"(?:only|just|merely|只|才|仅)\s*(?:uses?|using|used|shows?|用了?|占了?|显示|有)?\s*([0-9]+(?:\.[0-9]+)?)\s?(?:(g|m)(?:i?b|ig)?)?\s*(?:/|of|out of)\s*([0-9]+(?:\.[0-9]+)?)\s?(g|m)(?:i?b|ig)?(?![a-z0-9])",
    _I,
)


class Oom(NamedTuple):
    """What is said of an allocation on a GPU that was refused, in MiB; None where it is not said."""

    free: float | None
    requested: float | None
    unallocated: float | None  # reserved by the allocator of the program, and not in use


def oom(text: str) -> Oom | None:
    """The figures beside a GPU that ran out of memory; None where it did not, or none of what is known is said."""
    text = text[:_MOST]
    if not _OOM.search(text) and not re.search(r"tried to allocate", text, _I):
        return None
    if _OF_HOST.search(text):
        return None
    told = Oom(*(_amount(p, text) for p in (_FREE, _ASKED, _RESERVED)))
    if told.free is None and (part := _ONLY_USED.search(text)) is not None:
        used = float(part[1]) * _MIB[(part[2] or part[4]).casefold()]
        told = told._replace(free=max(float(part[3]) * _MIB[part[4].casefold()] - used, 0.0))
    return told if told.free is not None or told.unallocated is not None else None


def _amount(pattern: re.Pattern[str], text: str) -> float | None:
    found = pattern.search(text)
    if found is None:
        return None
    number, unit = [g for g in found.groups() if g is not None][:2]
    return float(number) * _MIB[unit.casefold()]


_TIME = r"(?<![\w.])([0-9]+(?:\.[0-9]+)?)\s?(ms|milliseconds?|毫秒|s|sec|seconds?|秒)(?![a-z0-9])"
_MS = {"m": 1.0, "毫": 1.0, "s": 1000.0, "秒": 1000.0}
_STEP = r"(?:steps?|iterations?|iters?|batch(?:es)?|step time|一?步|每步|单步|迭代|一个 ?step|每个 ?step)"
_DATA = r"(?:data\s?-?load\w*|data wait\w*|data time|input(?: pipeline| wait)?|fetch\w*|reading data|数据加载|读数据|取数据|等数据|数据读取|加载数据)"
_LOADING = lazy(_DATA, _I)
_PART_OF = lazy(
    rf"{_TIME}[^0-9]{{0,30}}?(?:of|out of|per|in|/|占)\s*(?:each|every|a|an|the|our|my)?\s*{_TIME}\s*(?:long )?{_STEP}"
    rf"|{_TIME}[^0-9]{{0,24}}{_STEP}\s*(?:of|is|takes|=|:)?\s*{_TIME}|{_STEP}[^0-9]{{0,16}}{_TIME}[^0-9]{{0,40}}{_DATA}[^0-9]{{0,16}}{_TIME}|{_DATA}[^0-9]{{0,20}}{_TIME}[^0-9]{{0,24}}{_STEP}[^0-9]{{0,10}}{_TIME}",
    _I,
)


class Loading(NamedTuple):
    """How long a step waits for its data, and how long it takes, in ms."""

    wait: float
    step: float

    @property
    def share(self) -> float:
        """% of the step."""
        return 100 * self.wait / self.step


def loading(text: str) -> Loading | None:
    """The time of a step that goes into loading data; None where it is not said, or is no part of the step."""
    text = text[:_MOST]
    found = _PART_OF.search(text) if _LOADING.search(text) else None
    if found is None:
        return None
    a, a_unit, b, b_unit = [g for g in found.groups() if g is not None][:4]
    one, other = float(a) * _MS[a_unit[0].casefold()], float(b) * _MS[b_unit[0].casefold()]
    wait, step = min(one, other), max(one, other)
    return Loading(wait, step) if 0 < wait < step else None


_CLUSTER = lazy(
    r"(?:cluster|fleet|all (?:our |the )?(?:gpus|nodes)|集群|机群|所有(?:gpu|卡|节点))[^.;。；]{0,40}?(?<![\w.])([0-9]+(?:\.[0-9]+)?)\s?(?:%|percent)[^.;。；]{0,30}"
    r"|(?<![\w.])([0-9]+(?:\.[0-9]+)?)\s?(?:%|percent)[^.;。；]{0,40}?(?:cluster|fleet|集群|机群)[^.;。；]{0,20}",
    _I,
)
_MEAN_USE = lazy(
    r"(?<![a-z])(?:mean|average|avg|overall|cluster|fleet)[a-z -]{0,20}util|(?<![a-z])util\w*|利用率|使用率", _I
)
# One job that waits, or the power beside it: no mean over a cluster.
_ONE_JOB = lazy(
    r"(?<![a-z])(?:hang\w*|hung|stuck|freez\w*|frozen|stall\w*|dead ?lock\w*)(?![a-z])|(?<![a-z0-9])[0-9]+\s?(?:w|watts?)(?![a-z])|卡住|卡死|卡在|挂起|挂住|挂了|死锁|不动|[0-9]\s?瓦",
    _I,
)
_OTHER_USE = lazy(r"(?<![a-z])(?:cpu|memory|network|disk|storage|link)(?![a-z])|内存|显存|网络|磁盘|存储", _I)


def cluster_use(text: str) -> float | None:
    """The mean utilisation of a cluster's GPUs in %; None where none is said."""
    text = text[:_MOST]
    found = _CLUSTER.search(text)
    if found is None or not _MEAN_USE.search(text) or _OTHER_USE.search(text) or _ONE_JOB.search(text):
        return None
    return float(found[1] or found[2])


def told(text: str) -> bool:
    """Whether any such figures stand in a sentence."""
    return oom(text) is not None or loading(text) is not None or cluster_use(text) is not None
