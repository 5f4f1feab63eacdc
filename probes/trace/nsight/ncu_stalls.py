"""Why warps did not issue, by kernel and by line: from metrics of the raw page, or from the source page."""

from __future__ import annotations

import re
from typing import Final

from knowledge.text import clean
from probes.trace.nsight.ncu_csv import Line, Record, number, scaled
from probes.trace.nsight.ncu_types import SourceLine, Stall

_LINES: Final = 20


class Values:
    """The numbers of one record."""

    def __init__(self, record: Record, comma: bool) -> None:
        self.record, self.comma = record, comma

    def of(self, *names: str, base: float | None = None) -> float | None:
        """The first metric of these names that has a value; with `base` a time or size in units of 1 / base."""
        for name in names:
            metric = self.record.metrics.get(name)
            value = number(metric.text, self.comma) if metric else None
            if metric is None or value is None:
                continue
            if base is None:
                return value
            if (found := scaled(value, metric.unit, base)) is not None:
                return found
        return None

    def whole(self, *names: str) -> int | None:
        """A count; None also for what is negative or too great to be one."""
        value = self.of(*names)
        return round(value) if value is not None and 0 <= value < 1e15 else None


# Counters of stalls, by preference: samples of the program counter, warps per issued instruction, shares of a warp's time.
_RAW_STALLS: Final = (
    re.compile(r"smsp__pcsamp_warps_issue_stalled_(\w+?)(?:\.sum)?"),
    re.compile(r"smsp__average_warps_issue_stalled_(\w+?)_per_issue_active(?:\.ratio)?"),
    re.compile(r"smsp__average_warp_latency_issue_stalled_(\w+?)(?:\.ratio)?"),
    re.compile(r"smsp__warp_issue_stalled_(\w+?)_per_warp_active(?:\.pct)?"),
)
_REASONS: Final = {  # of the source page -> of the metrics
    "long_sb": "long_scoreboard", "short_sb": "short_scoreboard", "math": "math_pipe_throttle", "mio": "mio_throttle",
    "lg": "lg_throttle", "tex": "tex_throttle", "imc": "imc_miss", "no_inst": "no_instruction",
    "no_instructions": "no_instruction", "dispatch": "dispatch_stall", "branch_resolve": "branch_resolving",
    "sleep": "sleeping",
}  # fmt: skip
_SELECTED: Final = "selected"  # issued: no stall


def stalls_of(values: Values) -> tuple[Stall, ...]:
    """The reasons that the raw page gives, the greatest first; none when it gives none."""
    for place, pattern in enumerate(_RAW_STALLS):
        counts: dict[str, float] = {}
        for name in values.record.metrics:
            found = pattern.fullmatch(name)
            value = values.of(name) if found and not found[1].endswith("_not_issued") else None
            if found and value is not None and value >= 0:
                counts[_reason(found[1])] = value
        if any(counts.values()):
            return _shares(counts, samples=place == 0, total=100.0 if place == 3 else None)
    return ()


def _reason(word: str) -> str:
    return clean(_REASONS.get(word, word))[:40]


def _shares(counts: dict[str, float], samples: bool, total: float | None = None) -> tuple[Stall, ...]:
    whole = total or sum(counts.values())
    found = [Stall(r, v / whole, round(v) if samples else None) for r, v in counts.items() if r != _SELECTED and v > 0]
    return tuple(sorted(found, key=lambda s: (-s.share, s.reason)))


def source_lines(lines: list[Line], comma: bool) -> tuple[tuple[SourceLine, ...], tuple[Stall, ...]]:
    """The most sampled lines, and the stalls of all of them together.

    Where lines and their instructions are both listed, lines hold the sums: only they count.
    """
    whole = [x for x in lines if x.number is not None and not x.address.startswith("0x")]
    counted = [(x, _samples(x, comma), _line_stalls(x, comma)) for x in (whole or lines)]
    total = sum(n for _, n, _ in counted)
    together: dict[str, float] = {}
    for _, _, stalls in counted:
        for reason, count in stalls.items():
            together[reason] = together.get(reason, 0) + count
    best = sorted((c for c in counted if c[1] > 0), key=lambda c: -c[1])[:_LINES]
    shown = tuple(
        SourceLine(clean(x.file)[-300:], x.number, clean(x.address)[:40], clean(x.text)[:300], n, n / total, _shares(stalls, samples=True))
        for x, n, stalls in best
    )  # fmt: skip
    return shown, _shares(together, samples=True) if any(together.values()) else ()


def _samples(line: Line, comma: bool) -> int:
    for name in (
        "Warp Stall Sampling (All Samples)",
        "# Samples",
        "Warp Stall Sampling (All Cycles)",
        "Sampling Data (All)",
    ):
        value = number(line.counters.get(name, ""), comma)
        if value is not None and 0 <= value < 1e15:
            return round(value)
    return round(sum(_line_stalls(line, comma).values()))


def _line_stalls(line: Line, comma: bool) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, text in line.counters.items():
        value = number(text, comma)
        if (
            name.startswith(("stall_", "smsp__pcsamp_warps_issue_stalled_"))
            and "ot Issued" not in name
            and "_not_issued" not in name
            and value
        ):
            found[_reason(name.removeprefix("stall_").removeprefix("smsp__pcsamp_warps_issue_stalled_"))] = min(
                value, 1e12
            )
    return found
