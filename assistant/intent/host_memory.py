"""What is asked of the memory of a host: the errors of its modules, or how much of it is left."""

from __future__ import annotations

import re

from knowledge.lazy import lazy

_I = re.IGNORECASE
_L, _R = "(?<![a-z])", "(?![a-z])"
_MODULE = lazy(
    rf"{_L}(?:dimms?|(?:memory|ram) (?:modules?|sticks?)){_R}|内存条|(?:主机)?内存[^，,。]{{0,6}}(?:错误|ecc)", _I
)
_ERRORS = lazy(
    rf"{_L}(?:un)?correct(?:ed|able) (?:memory |ecc )?errors?{_R}|{_L}(?:memory|ecc|ce|ue) errors?{_R}|可?(?:不可|未|已)?纠正|ecc 错误",
    _I,
)
_ASKS = lazy(rf"{_L}(?:which|what|how many|are there|is there|any|do i|replace|swap){_R}|哪|多少|几|换|有没有", _I)
_LEFT = lazy(
    rf"{_L}(?:memory|ram) (?:is |was )?(?:full|left|free|available|used|in use|exhausted|used up){_R}|{_L}how (?:much|full)(?: (?:free|available|host))* (?:is the )?(?:memory|ram){_R}|{_L}(?:enough|out of|short of|free|available) (?:memory|ram){_R}"
    r"|内存(?:是不是|是否)?(?:满|够|不足|不够|用完|用光|耗尽|还剩|剩|占用|使用率)|(?:多少|剩余|可用|空闲)内存",
    _I,
)
_OF_GPU = lazy(rf"{_L}(?:gpus?|cards?|vram|hbm|framebuffer|cuda|device memory){_R}|显存|显?卡", _I)
_OTHER = lazy(rf"{_L}(?:why|mean\w*|normal\w*|should|too many|rma|when){_R}|为什么|为啥|正常|意思|怎么", _I)


def modules(text: str) -> bool:
    """Whether the errors of modules are asked for by name: nothing else is a DIMM."""
    return _MODULE.search(text) is not None and _ASKS.search(text) is not None


def errors(text: str) -> bool:
    """Whether memory errors are asked for, which may be those of a host."""
    return modules(text) or (_ERRORS.search(text) is not None and _ASKS.search(text) is not None and _plain(text))


def left(text: str) -> bool:
    """Whether it is asked how much memory is left, which may be that of a host."""
    return _LEFT.search(text) is not None and _plain(text)


def _plain(text: str) -> bool:
    return not _OF_GPU.search(text) and not _OTHER.search(text)
