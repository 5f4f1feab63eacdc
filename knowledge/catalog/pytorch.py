"""What PyTorch's out-of-memory messages say: their numbers, and which kind of shortage they describe."""

from __future__ import annotations

import re
from enum import StrEnum

from knowledge.lazy import lazy
from knowledge.record import dataclass

_UNIT = {"bytes": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}
_SIZE = r"(\d{1,15}(?:\.\d{1,6})?) (bytes|[KMGT]iB)"

# PyTorch 2.1 and later:
#   CUDA out of memory. Tried to allocate 6.00 GiB. GPU 2 has a total capacity of 79.14 GiB of which 1.20 GiB is free.
#   Process 88121 has 47.70 GiB memory in use. Including non-PyTorch memory, this process has 30.20 GiB memory in use.
#   20.00 GiB allowed; Of the allocated memory 29.50 GiB is allocated by PyTorch, and 310.00 MiB is reserved by PyTorch but
#   unallocated.
# PyTorch before:
#   CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total capacity; 9.58 GiB already allocated;
#   14.69 MiB free; 9.60 GiB reserved in total by PyTorch)
_HEAD = lazy(rf"(?:CUDA|HIP) out of memory\. Tried to allocate {_SIZE}", re.IGNORECASE)
_FIELDS = {
    "total": lazy(rf"total capacity of {_SIZE}|{_SIZE} total capacity", re.IGNORECASE),
    "free": lazy(rf"of which {_SIZE} is free|{_SIZE} free", re.IGNORECASE),
    "process": lazy(rf"this process has {_SIZE} memory in use", re.IGNORECASE),
    "allowed": lazy(rf"{_SIZE} allowed", re.IGNORECASE),
    "allocated": lazy(rf"{_SIZE} is allocated by PyTorch|{_SIZE} already allocated", re.IGNORECASE),
    "idle": lazy(rf"{_SIZE} is reserved by PyTorch but unallocated", re.IGNORECASE),
    "reserved": lazy(rf"{_SIZE} reserved in total", re.IGNORECASE),
}
_LONGEST = 4000  # characters after the head that still belong to the message


class OomKind(StrEnum):
    """Why an allocation did not fit."""

    FULL = "full"  # this process uses nearly all of the card
    FRAGMENTED = "fragmented"  # the allocator holds much that no tensor uses
    NEAR_FIT = "near_fit"  # less than 2 % of the request was missing
    OTHER_PROCESS = "other_process"  # others hold a good part of the card
    LIMITED = "limited"  # the program capped itself
    UNKNOWN = "unknown"  # the message does not hold the numbers


@dataclass(frozen=True, slots=True)
class Oom:
    """The numbers of one message, in bytes; None where it does not say."""

    tried: int
    total: int | None = None
    free: int | None = None
    process: int | None = None  # in use by this process, its context included
    allowed: int | None = None
    allocated: int | None = None  # held by tensors
    idle: int | None = None  # reserved by the allocator, held by no tensor

    @property
    def others(self) -> int | None:
        """Bytes in use by other processes."""
        if self.total is None or self.free is None or self.process is None:
            return None
        return max(0, self.total - self.free - self.process)

    @property
    def kind(self) -> OomKind:
        """Which kind of shortage it is.

        In this order: a cap that the program set; a shortfall of at most 2 % of the request (any small
        saving helps); 10 % or more of the card in other hands; a tenth or more of this process's memory
        reserved but idle (PyTorch's own hint says "large" without a number); else the card is full.
        """
        if self.allowed is not None:
            return OomKind.LIMITED
        if self.free is None or self.total is None:
            return OomKind.UNKNOWN
        if 0 <= self.tried - self.free <= 0.02 * self.tried:
            return OomKind.NEAR_FIT
        if self.others is not None and self.others >= 0.10 * self.total:
            return OomKind.OTHER_PROCESS
        if self.idle is None:
            return OomKind.UNKNOWN
        mine = self.process if self.process is not None else (self.allocated or 0) + self.idle
        return OomKind.FRAGMENTED if self.idle >= 0.10 * mine > 0 else OomKind.FULL


def read_oom(text: str) -> Oom | None:
    """The numbers of the first out-of-memory message in `text`; None when there is none."""
    head = _HEAD.search(text)
    if head is None:
        return None
    rest = text[head.end() : head.end() + _LONGEST]
    following = _HEAD.search(rest)
    rest = rest[: following.start()] if following else rest
    found = {name: _bytes(pattern.search(rest)) for name, pattern in _FIELDS.items()}
    idle, reserved, allocated = found["idle"], found.pop("reserved"), found["allocated"]
    if idle is None and reserved is not None and allocated is not None:
        found["idle"] = max(0, reserved - allocated)
    return Oom(tried=_bytes(head) or 0, **found)


def _bytes(found: re.Match[str] | None) -> int | None:
    if found is None:
        return None
    number, unit = (group for group in found.groups() if group is not None)
    return round(float(number) * _UNIT[unit.lower()])
