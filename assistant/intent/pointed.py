"""What points back to GPUs that were counted or named: "two GPUs are at 95 C, namely 2 and 7", "gpus 0-3 at 61 C and 4 at 98 C".

The GPUs are put where they are meant, so that each value is read of its own: "gpus 2 and 7 are at 95 C".
"""

from __future__ import annotations

import re

from knowledge.lazy import lazy

_I = re.IGNORECASE
_EN = {w: n for n, w in enumerate(("two", "three", "four", "five", "six", "seven", "eight"), 2)}
_ZH = {w: n for n, w in enumerate("一二三四五六七八九", 1)} | {"两": 2}
_LIST_EN = r"[0-9]{1,3}(?:\s*(?:,\s*and|,|and|&)\s*[0-9]{1,3}){0,15}"
_LIST_ZH = r"[0-9]{1,3}号?(?:\s*(?:和|与|跟|、|,|，|还有)\s*[0-9]{1,3}号?){0,15}"
# two of the eight gpus are at 95 C, namely 2 and 7 | three cards report ECC errors (1, 4, 6)
_NAMELY_EN = lazy(
    rf"(?<![a-z])(?P<some>{'|'.join(_EN)}|[2-8]|one|1|a single|some|several|a few)\s+(?:(?:out\s+)?of\s+(?:(?:the|our|my|its)\s+)?(?:[a-z]{{3,5}}\s+|[0-9]{{1,2}}\s+)?)?(?:gpus?|cards?|accelerators?|devices)"
    rf"(?P<rest>(?:\s[^.;?!:(]{{2,120}}?)?)\s*(?:[,;:(]|\s[-–—])\s*(?P<word>namely|specifically|i\.?\s?e\.?|(?:they|these|those) are|which are|that is|to be exact)?\s*,?\s*(?:(?:gpus?|cards?|numbers?|nr|indices|index|ids?)\s*)?#?(?P<list>{_LIST_EN})(?:\)|(?=\s*(?:[,.;:?!]|$)))",
    _I,
)
# 两张卡温度95度,分别是2和7 | 有三块卡报错:1、4、6
_NAMELY_ZH = lazy(
    rf"(?P<some>[一两二三四五六七八]|[1-8]|几)\s*[张块个]\s*(?:显?卡|gpu)(?P<rest>[^,，;；。:：？?！!(（]{{0,60}})[,，:：;；(（]\s*(?P<word>分别(?:是|为)?|就?是|为|即|也就是)?\s*(?:第|编号)?\s*(?P<list>{_LIST_ZH})\s*(?:号)?\s*(?:显?卡|gpu)?\s*(?:[)）]|(?=\s*(?:[,，;；。:：？?！!]|$)))",
    _I,
)
# gpus 0-3 at 61 C and 4 at 98 C
_ANOTHER_EN = lazy(
    r"(?P<cut>(?:[,;]|(?<![a-z])(?:and|but|while|whereas))\s+(?:only\s+|just\s+)?)(?=(?:number\s+|#)?[0-9]{1,2}(?:\s*(?:-|to|,|and|&)\s*[0-9]{1,2}){0,8}\s+(?:(?:is|are|sits?|runs?|reads?|shows?|stays?|only|stuck|has|have|draws?|at|with|had|got)\s+){1,3}(?:[a-z]+\s+){0,2}-?[0-9])",
    _I,
)
_NAMED_EN = lazy(r"(?<![a-z])(?:gpus?|cards?)\s*#?[0-9]", _I)
# 0到3号卡61度,4号98度
_ANOTHER_ZH = lazy(
    r"(?<=[,，;；、而但])\s*(?P<n>[0-9]{1,2})\s*号(?=\s*(?:是|为|却|才|只|到|达|有|在)?\s*(?:有|到|了)?\s*[0-9])"
)
_NAMED_ZH = lazy(r"[0-9一二三四五六七八]\s*号?\s*(?:显?卡|gpu)|gpu\s*[0-9]", _I)


def pointed(said: str) -> str:
    """`said` with GPUs that it names later in the place of "two GPUs", and with "gpu" ahead of a bare number that goes on with them."""
    low = said.casefold()
    if not any(word in low for word in ("gpu", "card", "卡", "accelerator", "device")):
        return said
    said = _NAMELY_EN.sub(_en, said)
    if _NAMED_EN.search(said):
        said = _ANOTHER_EN.sub(lambda m: f"{m['cut']}gpu " if _NAMED_EN.search(said, 0, m.start()) else m[0], said)
    if said.isascii():
        return said
    said = _NAMELY_ZH.sub(_zh, said)
    return _ANOTHER_ZH.sub(lambda m: f"{m['n']}号卡" if _NAMED_ZH.search(said, 0, m.start()) else m[0], said)


def _en(m: re.Match[str]) -> str:
    some = m["some"].casefold()
    many = int(some) if some.isdecimal() else _EN.get(some, 1 if some in ("one", "a single") else 0)
    return f"gpus {m['list']}{m['rest']}" if _fits(many, m) else m[0]


def _zh(m: re.Match[str]) -> str:
    many = int(m["some"]) if m["some"].isdecimal() else _ZH.get(m["some"], 0)
    return f"{'和'.join(f'{n}号' for n in re.findall('[0-9]+', m['list']))}卡{m['rest']}" if _fits(many, m) else m[0]


def _fits(many: int, m: re.Match[str]) -> bool:
    """Whether so many are listed as were counted. What only follows a comma, and how many nobody said, may be anything."""
    listed = len(re.findall("[0-9]+", m["list"]))
    return listed == many if many > 1 else bool(m["word"]) and many in (0, listed)
