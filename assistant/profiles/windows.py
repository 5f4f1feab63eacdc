"""Windows of time as people write them: ``2h`` (ago), ``14:30``, ``2026-11-20T14:30``, ``now``; two with ``..`` between."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from knowledge.errors import UsageError
from knowledge.units import parse_duration

_HINT = "for example 2h (ago), 14:30, 2026-11-20T14:30, now; a window: 26h..25h"
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)\Z")
S = 1_000_000_000


def moment(text: str, now: int) -> int:
    """A time, ns UTC; `now` is the present. A clock time is the last one that has passed, in UTC. UsageError otherwise."""
    word = text.strip()
    if word == "now":
        return now
    if found := _CLOCK.match(word):
        present = datetime.fromtimestamp(now / S, UTC)
        then = present.replace(hour=int(found[1]), minute=int(found[2]), second=0, microsecond=0)
        return int((then if then <= present else then - timedelta(days=1)).timestamp()) * S
    try:
        return now - parse_duration(word)
    except ValueError:
        pass
    try:
        then = datetime.fromisoformat(word)
        return int((then if then.tzinfo else then.replace(tzinfo=UTC)).timestamp() * S)
    except (ValueError, OverflowError):
        raise UsageError(f"{text!r} is no time", hint=_HINT) from None


def window(text: str, now: int) -> tuple[int, int]:
    """``FROM..TO``, or ``FROM`` until now: [from, to), ns UTC. UsageError for what is none, and for one that is empty."""
    first, dots, last = text.partition("..")
    since, until = moment(first, now), moment(last, now) if dots else now
    if since >= until:
        raise UsageError(f"{text}: the window is empty", hint=f"it begins first: {last}..{first}" if dots else _HINT)
    return since, until


def ahead(since: int, until: int) -> tuple[int, int]:
    """The window of the same length directly ahead: what a change is held against when nothing else is named."""
    return since - (until - since), since
