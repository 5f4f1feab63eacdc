"""What a thread off the CPU waits for, as the functions of its kernel stack tell: the patterns of ``data/waits.yaml``, typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache

from knowledge.compiled import shard
from knowledge.language import Text
from knowledge.record import dataclass

PLUMBING = "plumbing"  # the scheduler itself: never what is waited for, never named
PREEMPTED = "preempted"  # told by the state, not by functions
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Wait:
    """One kind of waiting."""

    id: str
    title: Text
    rank: int  # of several whose functions are in a stack the highest has it; of equals the innermost
    functions: frozenset[str]
    prefixes: tuple[str, ...]


@cache
def waits() -> Mapping[str, Wait]:
    """All of them by id, in the order of the file."""
    return {
        e["id"]: Wait(
            e["id"], Text.of(e["title"]), e["rank"], frozenset(f for f in e.get("functions") or () if f[-1] != "*"),
            tuple(f[:-1] for f in e.get("functions") or () if f[-1] == "*"),
        )
        for e in shard("waits")
    }  # fmt: skip


@lru_cache(maxsize=16384)
def wait_of(function: str) -> Wait | None:
    """The kind that a function of the kernel belongs to; of several the one of the highest rank."""
    found = [w for w in waits().values() if function in w.functions or function.startswith(w.prefixes or ("\0",))]
    return max(found, key=lambda w: w.rank, default=None)


def kind(functions: Sequence[str], state: str = "?") -> str:
    """The id of what a stack waits for, outermost function first. In state R the thread waits for nothing but a CPU, unless it is throttled."""
    best: Wait | None = None
    for name in reversed(functions):
        found = wait_of(name)
        if found is not None and found.id != PLUMBING and (best is None or found.rank > best.rank):
            best = found
    if state == "R" and (best is None or best.id != "quota"):
        return PREEMPTED
    return best.id if best is not None else UNKNOWN


def named(functions: Sequence[str]) -> str:
    """The function of the kernel that a thread waits in: the innermost that is not the scheduler's; "" for an empty stack."""
    mine = (f for f in reversed(functions) if (w := wait_of(f)) is None or w.id != PLUMBING)
    return next(mine, functions[-1] if functions else "")
