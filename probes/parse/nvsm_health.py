"""``nvsm show health``: the checks of NVIDIA's system manager on a DGX, and which of them found the machine not healthy."""

from __future__ import annotations

import re

from knowledge.observation import Event, Observation, Status, Value, node
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of

NAME, REVISION = "nvsm-health", 1
PROVIDES = ("vendor_check_failed",)
# Verify power supply PSU3................................................. Unhealthy
# GPU link speed [0000:0f:00.0][8GT/s] ................................... Unhealthy
_CHECK = re.compile(r"\s{0,8}(\S.{2,200}?)\s?\.{3,200}\s{0,4}(Healthy|Unhealthy|Informational|Unknown)\s{0,8}")
# 195 out of 197 checks are healthy            Overall system status is unhealthy
_COUNT = re.compile(r"\s{0,8}(\d{1,6}) out of (\d{1,6}) checks are (healthy|unhealthy)\s{0,8}")
_OVERALL = re.compile(r"\s{0,8}Overall system status is (\w{4,20})\.?\s{0,8}")


def sniff(head: str) -> int:
    """95 for a check, the count or the overall state."""
    lines = [line.text[:600] for line in lines_of(head)[:2000]]
    checks = sum(_CHECK.fullmatch(line) is not None for line in lines)
    return 95 if checks > 2 or any(_COUNT.fullmatch(line) or _OVERALL.fullmatch(line) for line in lines) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """An event for each check that failed; none seen where the tool calls the system healthy, a reason where its word is missing."""
    here, out = node(context.host), list[Observation]()
    lines = lines_of(text)
    overall: tuple[str, Line] | None = None
    unhealthy = 0

    def add(value: Value, line: Line | None, status: Status = Status.OK, detail: str = "") -> None:
        source = context.at(NAME, REVISION, line.number if line else None)
        shown = excerpt(clean(line.text.strip()), 300) if line else ""
        out.append(Observation("vendor_check_failed", here, value, status, source, excerpt=shown, detail=detail))

    for at, line in enumerate(lines):
        told = clean(line.text[:600])
        if found := _CHECK.fullmatch(told):
            if found[2] == "Unhealthy":
                below = clean(lines[at + 1].text.strip()) if at + 1 < len(lines) else ""
                plain = (
                    below
                    and not any(p.fullmatch(below[:600]) for p in (_CHECK, _COUNT, _OVERALL))
                    and not below.startswith("-")
                )
                named = below if plain and below not in ("Health Summary", "Info", "Checks") else ""
                add(
                    Event(None, {"tool": "nvsm", "check": excerpt(found[1], 120), "message": excerpt(named, 200)}), line
                )
        elif found := _COUNT.fullmatch(told):
            unhealthy = int(found[1]) if found[3] == "unhealthy" else max(unhealthy, int(found[2]) - int(found[1]))
        elif found := _OVERALL.fullmatch(told):
            overall = found[1].lower(), line
    if not out and overall and overall[0] == "healthy":
        add(None, overall[1], Status.NONE_SEEN)
    elif not out and overall:
        add(
            Event(None, {"tool": "nvsm", "check": f"{unhealthy} checks" if unhealthy else overall[0], "message": ""}),
            overall[1],
        )
    elif not overall:
        add(None, None, Status.FAILED, "the listing ends early: its summary is missing")
    return out


FORMAT = DocumentFormat(NAME, "nvsm show health", REVISION, PROVIDES, sniff, parse)
