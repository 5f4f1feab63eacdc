"""How many GPUs something lists, held against how many are there: "nvidia-smi lists 7 gpus on an 8 gpu box", 8 卡机只认到 7 张."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from knowledge.lazy import lazy

_I = re.IGNORECASE
_EN = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_DIGITS = (
    {w: n for n, w in enumerate(_EN.split(), 1)} | {c: n for n, c in enumerate("一二三四五六七八九十", 1)} | {"两": 2}
)
_N = rf"(?:[1-9][0-9]{{0,2}}|{_EN.replace(' ', '|')})"
_H = r"(?:[1-9][0-9]{0,2}|[一二两三四五六七八九十])"
_GPUS = r"(?:gpus?|cards?|devices?|accelerators?|<model>|[abhlv][0-9]{2,3}s?)(?![a-z0-9])"
_SEES = r"(?:lists?|listed|listing|shows?|showing|sees?|found|finds?|detects?|detected|reports?|reported|returns?|recogni[sz]es?|enumerates?|counts?|prints?|see|got|gives?)"
_BOX = r"(?:box|node|server|machine|system|chassis|host|hgx|dgx|baseboard)"
_END = r"(?=\s*(?:[,.;?!]|in total|total|only|instead|of them|in (?:lspci|nvidia-smi|dmesg|the os|slurm)|why|what|is that|is this|any|and nothing|$))"
_BY = r"(?:(?:the|our|my|but|and|yet|while|only|just|now|then)\s+)*(?:nvidia-smi(?: -l)?|lspci|dcgm[a-z-]*|driver|cuda|torch(?:\.cuda\.device_count(?:\(\))?)?|pytorch|jax|slurm|kubernetes|k8s|docker|container|os|bios|bmc|we|i|it|node|training|job)?\s*"
_EN_SHAPES = (
    # lists 7 gpus on an 8 gpu box
    rf"(?<![a-z]){_SEES}\s+(?:up\s+)?(?:only |just )?(?P<a>{_N})\s*(?:{_GPUS}\s*)?(?:on|in|of|for|from|out of)\s+(?:an?|the|our|my|this|that)?\s*(?P<b>{_N})\s?[-x×]?\s?{_GPUS}(?:\s+{_BOX})?{_END}",
    # 8 gpus in this node, nvidia-smi lists 7
    rf"(?:(?<![a-z])(?:lspci|nvidia-smi|bmc|bios|driver)\s+{_SEES}\s+)?(?<![a-z0-9.])(?P<b>{_N})\s?[-x×]?\s?{_GPUS}(?:\s+(?:are|is)?\s*(?:in|on|per|installed|physically|plugged|present|there|{_BOX})(?![a-z])[a-z ]{{0,24}})?\s*[,;:]?\s*{_BY}(?:only |just )?(?<![a-z]){_SEES}\s+(?:up\s+)?(?:only |just )?(?P<a>{_N})(?:\s+{_GPUS})?{_END}",
    # should see 8 gpus, see 7 | expected 8 GPUs but found 6
    rf"(?<![a-z])(?:should (?:see|be|have|show|list|find)|supposed to (?:see|be|have|show)|expect(?:s|ed|ing)?(?: to see)?)\s+(?P<b>{_N})\s+{_GPUS}\s*[,;:]?\s*{_BY}(?:only |just )?(?:{_SEES}|there (?:are|is)|has|have)\s+(?:only |just )?(?P<a>{_N})(?:\s+{_GPUS})?{_END}",
    # six of the GPUs came up, the server has eight
    rf"(?<![a-z0-9.])(?P<a>{_N})\s+(?:of (?:the|our|my) )?{_GPUS}\s+(?:(?:have|has|are|is)\s+)?(?:came up|come up|shows? up|showed up|visible|listed|detected|found|recogni[sz]ed)\s*[,;:]?\s*(?:(?:but|and|the|our|my|it|there|{_BOX})\s+)*(?:has|have|holds|should (?:have|be|see)|are supposed to be)\s+(?P<b>{_N})(?:\s+{_GPUS})?{_END}",
    # see 7 gpus, should be 8
    rf"(?<![a-z]){_SEES}\s+(?:only |just )?(?P<a>{_N})\s+{_GPUS}\s*[,;:]?\s*(?:but |and |it |there |we |where )*(?:should (?:see|be|have|show|list)|supposed to (?:see|be|have)|expect(?:s|ed|ing)?|instead of|rather than|has|have|not)\s+(?P<b>{_N})(?:\s+{_GPUS})?{_END}",
)
_ZH_SEES = r"(?:看到|看得到|显示|列出|识别到?|识别出|认到|认出|检测到|找到|扫到|扫出|列了|认了|查到)"
_ZH_END = r"(?=\s*(?:卡|gpu|显卡)?\s*(?:[,，。；;?？!！]|$|吗|怎么|为什么|为啥|咋|正常|了|是不是|啥))"
_ZH_SHAPES = (
    rf"(?<![0-9.])(?P<b>{_H})\s*(?:张|块|个)?\s*(?:卡|gpu|显卡)[^0-9。；;一二两三四五六七八九十]{{0,24}}?(?:只|仅|才|就)?(?:能)?{_ZH_SEES}(?:了)?\s*(?P<a>{_H})\s*(?:张|块|个)?{_ZH_END}",
    rf"{_ZH_SEES}(?:了)?\s*(?P<a>{_H})\s*(?:张|块|个)\s*(?:卡|gpu|显卡)?\s*[,，]?\s*(?:但|可|而|机器|服务器|节点|其实|实际|物理|本来|应该?|应有|原来|明明|一共|总共|插|装|是|有|了)*\s*(?P<b>{_H})\s*(?:张|块|个)?\s*(?:卡|gpu|显卡)?(?:机|的?服务器|的?节点|的?机器|的)?{_ZH_END}",
    rf"(?:应该?|本来|应有|明明)(?:能)?(?:看到|有|是)?\s*(?P<b>{_H})\s*(?:张|块|个)\s*(?:卡|gpu|显卡)?\s*[,，]?\s*(?:但|可|却|现在|实际|nvidia-smi|lspci|只|仅|就|能)*\s*(?:{_ZH_SEES}|有|剩)(?:了)?\s*(?P<a>{_H})\s*(?:张|块|个)?{_ZH_END}",
)
_SHAPES = tuple(lazy(p, _I) for p in (*_EN_SHAPES, *_ZH_SHAPES))
_SEEN = lazy(rf"(?<![a-z]){_SEES}(?![a-z])|c[oa]me up|visible|{_ZH_SEES}|应|本来|明明", _I)


class Seen(NamedTuple):
    """So many GPUs are listed of so many that are there; where in the text it is said."""

    start: int
    end: int
    listed: int
    there: int


def seen(text: str) -> Iterator[Seen]:
    """Each count of listed GPUs that stands beside how many there are."""
    if not _SEEN.search(text):
        return
    upto = 0
    for m in sorted((m for p in _SHAPES for m in p.finditer(text)), key=lambda m: (m.start(), -m.end())):
        a, b = _number(m["a"]), _number(m["b"])
        if m.start() >= upto and 0 < a <= b:
            yield Seen(m.start(), m.end(), a, b)
            upto = m.end()


def _number(word: str) -> int:
    return int(word) if word.isdecimal() else _DIGITS[word.casefold()]
