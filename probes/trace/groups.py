"""Rows by keys: numbers for combined keys, and exact sums over them."""

from __future__ import annotations

from math import isqrt, sqrt
from typing import Final, NamedTuple

import numpy as np

from probes.trace.columns import I64

_LIMB: Final = 18  # bits: products of two limbs, summed over 2^27 events, fit in 63 bits


class Sums(NamedTuple):
    """Exact sums of durations for each key."""

    number: I64
    total: I64
    shortest: I64
    longest: I64


def sums(key: I64, dur: I64, size: int) -> Sums:
    """Sums of `dur` over the rows of each key 0..size-1."""
    count, total = np.bincount(key, minlength=size), np.zeros(size, np.int64)
    shortest, longest = np.full(size, np.iinfo(np.int64).max), np.zeros(size, np.int64)
    np.add.at(total, key, dur)
    np.minimum.at(shortest, key, dur)
    np.maximum.at(longest, key, dur)
    return Sums(count, total, shortest, longest)


def squares(key: I64, dur: I64, size: int) -> list[int]:
    """The exact sum of squares of `dur` over the rows of each key, in Python's integers: they outgrow 64 bits."""
    mask = (1 << _LIMB) - 1
    limbs = [dur & mask, (dur >> _LIMB) & mask, dur >> 2 * _LIMB]
    found = [0] * size
    for i, a in enumerate(limbs):
        for j, b in enumerate(limbs[: i + 1]):
            if not (a.any() and b.any()):
                continue
            part = np.zeros(size, np.int64)
            np.add.at(part, key, a * b)
            shift = _LIMB * (i + j) + (i != j)  # twice, off the diagonal
            found = [f + (p << shift) for f, p in zip(found, part.tolist(), strict=True)]
    return found


def deviation(count: int, total: int, square: int) -> float:
    """Standard deviation of the population from exact sums: sqrt(n * sum(x^2) - sum(x)^2) / n."""
    inner = count * square - total * total
    if inner >= 1 << 1000:  # beyond a float: only of durations that no clock gives
        return float(isqrt(inner) // count)
    return sqrt(inner) / count


def combined(*columns: I64) -> I64:
    """One number, 0..n-1, for each different row of the columns, in their order."""
    key = np.unique(columns[0], return_inverse=True)[1]
    for column in columns[1:]:
        low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
        if low == high:
            continue
        if high - low >= 1 << 32:  # no numbers of strings
            column, low, high = np.unique(column, return_inverse=True)[1], 0, len(column)
        key = np.unique(key * (high - low + 1) + (column - low), return_inverse=True)[1]
    return key


def size_of(key: I64) -> int:
    """How many keys there are."""
    return int(key.max()) + 1 if len(key) else 0
