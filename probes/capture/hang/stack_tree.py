"""Stacks of many ranks as one tree: who stands where, the few against the many (as STAT, the stack trace analysis tool, does)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from knowledge.record import dataclass


@dataclass(frozen=True, slots=True)
class Group:
    """Ranks that stand at the same place."""

    stack: tuple[str, ...]  # root first, without lines
    members: tuple[int, ...]  # ranks, or pids where ranks are not known; in order


def groups(stacks: Mapping[int, tuple[str, ...]]) -> tuple[Group, ...]:
    """Members by equal stacks, the largest group first; of equal size the one with the lowest member."""
    same: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for member, stack in stacks.items():
        same[stack].append(member)
    made = [Group(stack, tuple(sorted(members))) for stack, members in same.items()]
    return tuple(sorted(made, key=lambda g: (-len(g.members), g.members)))


def spans(members: Iterable[int]) -> str:
    """Numbers for people: ``0-6,9``."""
    out: list[list[int]] = []
    for n in sorted(set(members)):
        if out and n == out[-1][1] + 1:
            out[-1][1] = n
        else:
            out.append([n, n])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in out)


def tree(stacks: Mapping[int, tuple[str, ...]], *, most: int = 200) -> str:
    """The prefix tree of the stacks, a line a frame, indented where they part; at most `most` lines.

    A run of frames that all of a branch share is kept to its first and last one.
    """
    lines: list[str] = []

    def grow(held: Sequence[tuple[int, tuple[str, ...]]], depth: int, indent: int) -> None:
        branches: dict[str, list[tuple[int, tuple[str, ...]]]] = defaultdict(list)
        for member, stack in held:
            if len(stack) > depth:
                branches[stack[depth]].append((member, stack))
        ordered = sorted(branches.items(), key=lambda item: (-len(item[1]), min(m for m, _ in item[1])))
        for frame, inside in ordered:
            end = depth + 1
            while len({s[end : end + 1] for _, s in inside}) == 1 and len(inside[0][1]) > end:
                end += 1
            last = inside[0][1][end - 1]
            between = "" if end == depth + 1 else f" > {last}" if end == depth + 2 else f" > .. > {last}"
            lines.append(f"{'  ' * indent}[{spans(m for m, _ in inside)}] {frame}{between}")
            grow(inside, end, indent + 1)

    grow(sorted(stacks.items()), 0, 0)
    return "\n".join([*lines[:most], f".. {len(lines) - most} lines more"] if len(lines) > most else lines)
