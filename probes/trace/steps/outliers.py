"""Which iterations are out of the ordinary, and which part of them is."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from knowledge.language import Text
from probes.trace.columns import F64, Mask
from probes.trace.model import Iteration

PARTS: Final = ("compute", "exposed_comm", "mem", "idle")  # that an outlier is blamed on
# Modified z-score over 3.5: Iglewicz and Hoaglin, How to Detect and Handle Outliers (1993). And 10 % of the median at
# least: steps that are alike have a tiny deviation (six steps of 75.7 to 81.2 ms, measured), and nobody acts on less.
Z_LIMIT: Final = 3.5
LEAST: Final = 0.1
ENOUGH: Final = 4  # of fewer iterations nobody knows what is ordinary


def _population(item: Iteration) -> tuple[str, int, int]:
    """Steps that may be compared: of one kind, and of batches and token counts within a factor of two."""
    return item.kind, (item.batch or 0).bit_length(), (item.tokens or 0).bit_length()


def with_outliers(items: tuple[Iteration, ...]) -> tuple[tuple[Iteration, ...], tuple[Text, ...]]:
    """`items` with `outlier` filled in, among steps that may be compared; and what to say of the first."""
    found = list(items)
    groups: dict[tuple[str, int, int], list[int]] = {}
    for i, item in enumerate(items):
        groups.setdefault(_population(item), []).append(i)
    for rows in groups.values():
        for i, part in zip(rows, _odd([items[i] for i in rows]), strict=True):
            if part:
                found[i] = replace(items[i], outlier=part)
    notes: tuple[Text, ...] = ()
    if found and found[0].outlier and found[0].span_ns > np.median([i.span_ns for i in found]):
        notes = (Text("the first iteration is longer than the others: it may be a warm-up", "首个迭代比其他迭代长：可能是预热"),)  # fmt: skip
    return tuple(found), notes


def _odd(items: list[Iteration]) -> list[str]:
    """For each of comparable iterations the part that is out of the ordinary: where the whole is, or where a part alone
    differs by 10 % of an ordinary iteration (communication doubled, and idle time hid it)."""
    if len(items) < ENOUGH:
        return [""] * len(items)
    spans = np.array([i.span_ns for i in items], np.float64)
    median = float(np.median(spans))
    values = {p: np.array([_part(i, p) for i in items], np.float64) for p in (*PARTS, "data_loader")}
    ordinary = {p: float(np.median(v)) for p, v in values.items()}
    odd = unusual(spans)
    more = {p: unusual(values[p]) & (values[p] - ordinary[p] > LEAST * median) for p in PARTS}
    found = []
    for k, item in enumerate(items):
        alone = [p for p in PARTS if more[p][k]]
        found.append(_blame(item, ordinary, median) if odd[k] or alone else "")
    return found


def unusual(values: F64) -> Mask:
    """Which values stand out: modified z-score over 3.5, and over 10 % from the median."""
    median = float(np.median(values))
    off = np.abs(values - median)
    scale = float(np.median(off)) * 1.4826  # the MAD of a normal distribution, as its standard deviation
    return (off > Z_LIMIT * scale) & (off > LEAST * median)


def _part(item: Iteration, part: str) -> int:
    return int(getattr(item, f"{part}_ns"))


def _blame(item: Iteration, ordinary: dict[str, float], median: float) -> str:
    """The part that differs most in the direction in which the whole does; data_loader when idle time is explained by it."""
    sign = -1 if item.span_ns < (1 - LEAST) * median else 1
    more = {part: sign * (_part(item, part) - ordinary[part]) for part in PARTS}
    worst = max(PARTS, key=lambda part: more[part])
    loader = sign * (_part(item, "data_loader") - ordinary["data_loader"])
    return "data_loader" if worst == "idle" and loader > 0.5 * more["idle"] else worst
