"""What the flight recorders of several ranks say together: which collective is stuck, and who has not entered it. Pure.

Collectives of a group are numbered in the order in which a rank calls them, so equal numbers belong together. The stuck one is the
first that somebody entered and not everybody finished; missing are the members that have not come to that number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any, Final

from knowledge.record import dataclass
from probes.capture.hang.standing_frames import ours, where
from probes.capture.stacks.activity import Frame
from probes.parse._host_snapshot import mapping, mappings, whole

# Ranks may pass different sizes to these.
_UNEVEN: Final = frozenset({"all_to_all", "all_to_allv", "alltoall", "alltoallv", "all_to_all_v_single", "all_gather_v", "reduce_scatter_v",
                            "gather", "scatter", "broadcast", "_broadcast_oop", "coalesced"})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stuck:
    """One collective that does not end."""

    group: str
    seq: int
    collective: str  # all_reduce; of several names the most common
    state: str  # scheduled, started
    entered: tuple[int, ...]
    missing: tuple[int, ...]  # members whose recorder has not come to this number
    silent: tuple[int, ...]  # members without a dump: they may have entered, or not
    mismatch: str  # "", "collective", "size", "type": what the ranks do not agree in
    differing: Mapping[str, tuple[int, ...]]  # what each passed, by rank, where they do not agree
    called: str  # where the program calls it
    since: int | None  # ns UTC: when the first rank entered it


@dataclass(frozen=True, slots=True)
class Flight:
    """All that is stuck, what holds up the rest first."""

    stuck: tuple[Stuck, ...] = ()
    guilty: tuple[int, ...] = ()  # ranks that are missing somewhere and wait nowhere
    ranks: tuple[int, ...] = ()  # whose dumps were read


def analyse(dumps: Mapping[int, Mapping[str, Any]], world: int = 0) -> Flight:
    """`dumps`: by rank, as `flight_files.load` gives them; `world`: ranks of the job, where known. Bad input never raises."""
    entries = {
        rank: [e for e in mappings(d.get("entries")) if not e.get("p2p") and whole(e.get("seq")) is not None]
        for rank, d in dumps.items()
    }
    groups = sorted({_key(e) for found in entries.values() for e in found})
    found = [
        s for key in groups if (s := _stuck(key, dumps, entries, _members(key, dumps, world, entries))) is not None
    ]
    waiting = {rank for s in found for rank in s.entered}
    missing = {rank for s in found for rank in s.missing}
    # Who is missing here and waits there is held up itself: what it waits for comes first.
    found.sort(key=lambda s: (not (set(s.missing) - waiting or s.mismatch), s.since or 0, s.group))
    return Flight(tuple(found), tuple(sorted(missing - waiting)), tuple(sorted(dumps)))


def of_part(part: object, world: int = 0) -> Flight:
    """The same of the ``flight`` part of a capture."""
    rows = mapping(mapping(part).get("ranks"))
    dumps = {
        int(r): mapping(mapping(row).get("dump"))
        for r, row in rows.items()
        if r.isascii() and r.isdigit() and len(r) < 9
    }
    return analyse({r: d for r, d in dumps.items() if d}, world)


def _key(entry: Mapping[str, Any]) -> tuple[str, str]:
    return str(entry.get("group")), str(entry.get("desc"))


def _members(
    key: tuple[str, str],
    dumps: Mapping[int, Mapping[str, Any]],
    world: int,
    entries: Mapping[int, Sequence[Mapping[str, Any]]],
) -> set[int]:
    """The ranks of a group: as configured; of the default group all; else those that used it."""
    used = {rank for rank, found in entries.items() if any(_key(e) == key for e in found)}
    for dump in dumps.values():
        row = mapping(mapping(dump.get("groups")).get(key[0]))
        told = row.get("ranks")
        if isinstance(told, list) and told:
            return {r for r in map(whole, told) if r is not None} | used
    default = key[1] == "default_pg" or key[0] in ("", "0")
    return used | set(dumps) | set(range(min(world, 1 << 20))) if default else used


_Entries = Mapping[int, Sequence[Mapping[str, Any]]]


def _enqueued(key: tuple[str, str], rank: int, dumps: Mapping[int, Mapping[str, Any]], entries: _Entries) -> int:
    """The last number that a rank's group counted, where its entries have left the ring; -1 when that is not told."""
    numbers = {n for e in entries[rank] if _key(e) == key and (n := whole(e.get("id"))) is not None}
    # Ids are counted by each process for itself, in the order of the groups: alike where all make the same groups.
    numbers = numbers or {
        n for found in entries.values() for e in found if _key(e) == key and (n := whole(e.get("id"))) is not None
    }
    status = mapping(dumps[rank].get("status"))
    told = [n for i in numbers if (n := whole(mapping(status.get(str(i))).get("enqueued"))) is not None]
    return max(told, default=-1) if len(numbers) == 1 else -1


def _stuck(
    key: tuple[str, str], dumps: Mapping[int, Mapping[str, Any]], entries: _Entries, members: set[int]
) -> Stuck | None:
    mine = {rank: {int(e["seq"]): e for e in found if _key(e) == key} for rank, found in entries.items()}
    pending = [seq for found in mine.values() for seq, e in found.items() if e.get("state") != "completed"]
    if not pending:
        return None
    seq = min(pending)
    at = {rank: found[seq] for rank, found in mine.items() if seq in found}
    reached = {rank: max(max(found, default=-1), _enqueued(key, rank, dumps, entries)) for rank, found in mine.items()}
    missing = {r for r in members & entries.keys() if reached.get(r, -1) < seq}
    if len(members) < 2 or (not missing and members <= at.keys() and len(at) < 2):
        return None
    held = {rank: e for rank, e in at.items() if e.get("state") != "completed"}
    names = [_bare(e) for e in at.values()]
    mismatch, differing = _mismatch(at)
    first = min(held.values(), key=lambda e: whole(e.get("created")) or 0)
    return Stuck(
        key[1] if key[1] not in ("", "undefined", "default_pg") else key[0], seq, max(sorted(set(names)), key=names.count),
        str(first.get("state")), tuple(sorted(held)), tuple(sorted(missing)), tuple(sorted(members - entries.keys())),
        mismatch, differing, _called(first), min((c for e in held.values() if (c := whole(e.get("created")))), default=None),
    )  # fmt: skip


def _bare(entry: Mapping[str, Any]) -> str:
    """``nccl:all_reduce`` without the backend."""
    return str(entry.get("name", "")).rpartition(":")[2] or "unknown"


def _mismatch(at: Mapping[int, Mapping[str, Any]]) -> tuple[str, dict[str, tuple[int, ...]]]:
    """In what the ranks that entered do not agree: the collective, the element type, the number of elements."""
    for what, told in (("collective", _bare), ("type", _types), ("size", _elements)):
        if what == "size" and any(_bare(e) in _UNEVEN for e in at.values()):
            continue
        same: dict[str, list[int]] = defaultdict(list)
        for rank, e in sorted(at.items()):
            same[told(e)].append(rank)
        if len(same) > 1:
            return what, {shown: tuple(ranks) for shown, ranks in sorted(same.items())}
    return "", {}


def _types(entry: Mapping[str, Any]) -> str:
    return ",".join(str(t) for side in _sides(entry.get("types")) for t in side)


def _elements(entry: Mapping[str, Any]) -> str:
    return ",".join(
        str(sum(prod(x for x in dims if isinstance(x, int)) for dims in side if isinstance(dims, list)))
        for side in _sides(entry.get("sizes"))
    )


def _sides(value: object) -> Iterable[list[Any]]:
    return [side for side in value if isinstance(side, list)] if isinstance(value, list) else []


def _called(entry: Mapping[str, Any]) -> str:
    """Where the program calls it: its frames begin at the deepest."""
    rows = entry.get("frames")
    frames: list[Frame] = [
        (f[0], f[1], f[2]) for f in (rows if isinstance(rows, list) else [])
        if isinstance(f, list) and len(f) == 3 and isinstance(f[0], str) and isinstance(f[1], str) and isinstance(f[2], int)
    ]  # fmt: skip
    mine = next((f for f in frames if ours(f)), frames[0] if frames else None)
    return where(mine) if mine else ""
