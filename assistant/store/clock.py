"""What time it is for what is too old: no clock alone decides that, for a wrong one would take everything away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assistant.store.file import Transaction

DAY = 86_400 * 10**9
WITNESSES = 1000  # newest checks, in the order of writing, that together tell what time it is: a week of `watch`
STATEMENTS: Mapping[str, str] = {
    "witnesses": "SELECT as_of FROM run WHERE origin <> 'bundle' AND node_id = :node ORDER BY id DESC LIMIT :most",
    "all witnesses": "SELECT as_of FROM run WHERE origin <> 'bundle' ORDER BY id DESC LIMIT :most",
}


def witnesses(c: Transaction, node: int | None = None) -> list[int]:
    """The times of the newest checks of a node, or of all, the one written last first, ns UTC."""
    about = {"most": WITNESSES} if node is None else {"node": node, "most": WITNESSES}
    rows = c.rows(STATEMENTS["all witnesses" if node is None else "witnesses"], about)
    return [int(as_of) for (as_of,) in rows]


def agreed(times: Sequence[int], days: int) -> int:
    """The time by which things are old, ns UTC: the newest of `times` behind which no gap of more than `days` lies.

    Where a clock jumped, the earlier times count, until checks enough were written at the later ones: too much is kept and nothing lost.
    """
    ordered = sorted(times)
    for one, following in pairwise(ordered):
        if following - one > days * DAY:
            return one
    return ordered[-1]
