"""Where the branches of runbooks lead: steps that no walk comes to, and runbooks that send one in a circle.

Within a page branches lead down (`knowledge.schema.runbook` sees to it), so one pass from the top is enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from knowledge import yamlfile

Leads: TypeAlias = Mapping[str, frozenset[str]]
"""To which other runbooks each leads on."""
NOWHERE: Leads = {}
_TARGET = re.compile(r"^ {4}on_failure: *([a-z0-9-]+)", re.MULTILINE)


def leads_of(paths: Iterable[Path]) -> Leads:
    """What the files say, by their names; the later of two of one name counts. A file that cannot be read leads nowhere."""
    out: dict[str, frozenset[str]] = {}
    for path in paths:
        try:
            out[path.stem] = frozenset(_TARGET.findall(path.read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError):
            out[path.stem] = frozenset()
    return out


def round_trip(here: str, target: object, leads: Leads) -> tuple[str, ...]:
    """The way from `here` over the runbook `target` back to `here`; empty when there is none."""
    ways: list[tuple[str, ...]] = [(here, target)] if isinstance(target, str) and target in leads else []
    seen: set[str] = set()
    while ways:
        way = ways.pop()
        if way[-1] == here:
            return way
        if way[-1] not in seen:
            seen.add(way[-1])
            ways += [(*way, name) for name in sorted(leads.get(way[-1], frozenset())) if name in leads]
    return ()


def check_flow(document: yamlfile.Document, steps: Sequence[dict[str, Any]]) -> None:
    """Report each step to which nothing leads."""
    place = {step.get("id"): index for index, step in enumerate(steps) if isinstance(step.get("id"), str)}
    reached = {0}
    for index, step in enumerate(steps):
        if index in reached:
            reached |= _ways(index, step, place)
    for index in range(len(steps)):
        if index not in reached:
            document.fault(
                ("steps", index, "id"), f"step {steps[index].get('id')!r} is never reached: no branch leads to it"
            )


def _ways(index: int, step: dict[str, Any], place: dict[Any, int]) -> set[int]:
    """Where a walk may go from here: on, past it, or along a branch."""
    target = step.get("next")
    named = isinstance(target, str)
    out = {index + 1} if not named or step.get("if") or step.get("when") else set()
    for key in ("next", "on_failure"):
        if isinstance(step.get(key), str) and step[key] in place:
            out.add(place[step[key]])
    return out
