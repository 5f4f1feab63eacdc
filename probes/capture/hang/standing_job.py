"""The ranks of a job together: do they stand still, who waits, and who is waited for. Pure.

Ranks in a collective, or in a wait for the device, wait for the others; the few that stand elsewhere are the suspects
(stack trace analysis: the minority). Where all wait in the same collective nobody is late here: then a rank on another
node is, or the network. Ranks in different collectives have lost step with each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from knowledge.language import NO_TEXT, Text
from knowledge.record import dataclass
from knowledge.text import excerpt
from probes.capture.hang.flight import of_part
from probes.capture.hang.stack_tree import Group, groups, tree
from probes.capture.hang.standing import LEAST_S, POLLS, SHORT, SPINS, Member, Standing, standing
from probes.capture.hang.standing_frames import Cause, Kind
from probes.parse._host_snapshot import mapping, mappings, whole

PENDING_S: Final = 60.0  # a collective that has not ended for so long does not run: the slowest take seconds
IDLE_PERCENT: Final = 1.0  # utilisation; a collective's kernel that waits counts as work, at 100 %
POINT_TO_POINT: Final = frozenset(
    {"send", "recv", "isend", "irecv", "batch_isend_irecv", "send_object_list", "recv_object_list"}
)
_WORST: Final = (Cause.ENDED, Cause.STOPPED, Cause.TRACED, Cause.DEBUGGER, Cause.STDIN, Cause.DRIVER, Cause.DEADLOCK,
                 Cause.WORKERS_DEAD, Cause.STORAGE)  # fmt: skip


class Pattern(StrEnum):
    """How the ranks stand to each other."""

    LATE = "late"  # some wait in a collective, others are elsewhere
    ABSENT = "absent"  # a rank has no process any more
    DESYNC = "desync"  # they stand in different collectives
    TOGETHER = "together"  # all wait in the same one
    APART = "apart"  # nobody is in a collective


@dataclass(frozen=True, slots=True)
class JobStanding:
    """What the looks at a job's ranks say together."""

    job: str
    ranks: tuple[Standing, ...]  # by rank, then pid
    pattern: Pattern
    hung: bool | None  # None: cannot be told; `why` says why
    why: Text = NO_TEXT
    waiting: tuple[Standing, ...] = ()
    late: tuple[Standing, ...] = ()  # those waited for, the worst first
    collective: str = ""  # what most of the waiting ones stand in
    absent: tuple[int, ...] = ()  # ranks without a process
    desync: bool = False
    elsewhere: int = 0  # ranks of the job that were not looked at
    groups: tuple[Group, ...] = ()
    tree: str = ""
    links: tuple[str, ...] = ()  # connections whose data nobody acknowledges

    @property
    def guilty(self) -> Standing | None:
        """The one process that the others wait for."""
        return self.late[0] if self.late else None

    @property
    def seconds(self) -> float:
        """That the job has stood still, at least."""
        return min((s.seconds for s in self.ranks if s.cause is not Cause.ENDED), default=0.0)


def jobs(hang: Mapping[str, Any], members: Iterable[Member]) -> tuple[JobStanding, ...]:
    """The verdict over each job of the members; a member without a job stands for itself."""
    together: dict[str, list[Standing]] = {}
    for m in members:
        together.setdefault(m.job or f"pid-{m.pid}", []).append(standing(hang, m))
    return tuple(judge(job, found, hang) for job, found in sorted(together.items()))


def judge(job: str, found: Sequence[Standing], hang: Mapping[str, Any] | None = None) -> JobStanding:
    """The verdict over one job from where each of its processes stands; their order does not matter."""
    ranks = tuple(sorted(found, key=lambda s: (s.member.rank is None, s.member.rank or 0, s.member.pid)))
    absent = _absent(ranks, mapping(mapping(hang).get("proc")))
    here = [s for s in ranks if s.cause is not Cause.ENDED]
    waiting = [s for s in here if s.waits]
    several = len(ranks) + len(absent) > 1 or any((s.member.world or 0) > 1 for s in ranks)
    if several and waiting:  # a host that waits for its device waits for NCCL's kernel there
        waiting = [s for s in here if s.waits or _waits_for_device(s)]
    elif several and len(here) > 1 and any(_waits_for_device(s) for s in here):
        waiting = [s for s in here if _waits_for_device(s)]
    late = _ordered([s for s in here if s not in waiting]) if waiting else []
    names = Counter(s.name for s in waiting if s.name)
    desync = len(names) > 1 and not names.keys() & POINT_TO_POINT
    pattern = _pattern(waiting, late, absent, desync)
    if pattern is Pattern.DESYNC:
        late = _minority(waiting, names)
    hung, why = _hung(here, waiting, late if pattern is not Pattern.DESYNC else [], absent)
    if hung is None and why == SPINS and _nothing_runs(mapping(hang)):
        hung, why = True, NO_TEXT
    stacks = {_number(s): s.stack for s in here if s.stack}
    return JobStanding(
        job, ranks, pattern, hung, why, tuple(waiting), tuple(late), _most(names), absent, desync,
        _elsewhere(ranks, absent), groups(stacks), tree(stacks), _links(ranks, mapping(mapping(hang).get("proc"))),
    )  # fmt: skip


def _number(s: Standing) -> int:
    return s.member.rank if s.member.rank is not None else s.member.pid


def _waits_for_device(s: Standing) -> bool:
    return s.kind is Kind.DEVICE and s.cause is not Cause.DRIVER


def _pattern(waiting: Sequence[Standing], late: Sequence[Standing], absent: Sequence[int], desync: bool) -> Pattern:
    if late:
        return Pattern.LATE
    if absent and waiting:
        return Pattern.ABSENT
    if not waiting:
        return Pattern.APART
    return Pattern.DESYNC if desync else Pattern.TOGETHER


def _ordered(late: Sequence[Standing]) -> list[Standing]:
    """Those that stand still before those that move; then by what is wrong with them; the rarer place first."""
    places = Counter(s.stack for s in late)

    def rank(s: Standing) -> tuple[bool, int, int, int]:
        worst = _WORST.index(s.cause) if s.cause in _WORST else len(_WORST)
        return s.still is False, worst, places[s.stack], _number(s)

    return sorted(late, key=rank)


def _minority(waiting: Sequence[Standing], names: Counter[str]) -> list[Standing]:
    """The ranks in the collective that the fewest are in; none when that is as good for another one."""
    fewest = min(names.values())
    if list(names.values()).count(fewest) > 1:
        return []
    return [s for s in waiting if names.get(s.name) == fewest]


def _most(names: Counter[str]) -> str:
    return min(names, key=lambda n: (-names[n], n)) if names else ""


def _absent(ranks: Sequence[Standing], proc: Mapping[str, Any]) -> tuple[int, ...]:
    """Ranks that ended, and local ranks of this node that no process has. A rank that was only not captured is not absent."""
    ended = {s.member.rank for s in ranks if s.cause is Cause.ENDED and s.member.rank is not None}
    seen = {whole(r) for r in mapping(proc.get("ranks")).values()}
    tied = [
        (s.member.rank, s.member.local_rank)
        for s in ranks
        if s.member.rank is not None and s.member.local_rank is not None
    ]
    shifts = {rank - local for rank, local in tied if rank is not None and local is not None}
    worlds = {n for s in ranks if (n := whole(mapping(proc.get("local_world")).get(str(s.member.pid)))) is not None}
    if len(shifts) == 1 and len(worlds) == 1 and (count := worlds.pop()) <= 1024 and proc.get("ranks") is not None:
        (shift,) = shifts
        have = {s.member.rank for s in ranks if s.cause is not Cause.ENDED} | seen
        ended |= {shift + i for i in range(count) if shift + i not in have}
    return tuple(sorted(ended))


def _elsewhere(ranks: Sequence[Standing], absent: Sequence[int]) -> int:
    world = max((s.member.world or 0 for s in ranks), default=0)
    known = {s.member.rank for s in ranks if s.member.rank is not None} | set(absent)
    return max(world - len(known), 0) if known else 0


def _hung(
    here: Sequence[Standing], waiting: Sequence[Standing], late: Sequence[Standing], absent: Sequence[int]
) -> tuple[bool | None, Text]:
    """Whether the job stands still. What is waited for decides; those that wait must not have been let through meanwhile."""
    moving = next((s for s in here if s.still is False), None)
    if moving is not None:
        return False, moving.why
    if not here:
        return (True, NO_TEXT) if absent else (None, NO_TEXT)
    if not waiting:  # nobody in a collective: each by itself
        doubt = next((s for s in here if s.still is None), None)
        return (None, doubt.why) if doubt else (True, NO_TEXT)
    # One that polls stands still if nobody whom it holds up was woken; one that spins stands still if what it waits for does.
    blocked = [s for s in waiting if s.still]
    doubt = next((s for s in waiting if s.still is None and s.why != SPINS), None)
    if doubt is not None:
        return None, doubt.why
    held = bool(blocked) and all(s.seconds >= LEAST_S for s in blocked)
    for s in late:
        if s.still or (s.why == POLLS and held):
            continue
        return None, s.why
    if late or absent or held:
        return True, NO_TEXT
    return None, SPINS if len(blocked) < len(waiting) else SHORT


def _nothing_runs(hang: Mapping[str, Any]) -> bool:
    """Whether what the hosts spin for is no long kernel: their GPUs do nothing, or the flight recorder has waited for long."""
    used = [u for u in mapping(hang.get("gpus")).values() if isinstance(u, int | float)]
    if used and max(used) < IDLE_PERCENT:
        return True
    rows = mapping(mapping(hang.get("flight")).get("ranks")).values()
    written = max((n for row in rows if (n := whole(mapping(row).get("written"))) is not None), default=0)
    since = [s.since for s in of_part(hang.get("flight")).stuck if s.since]
    return bool(since) and written - min(since) >= PENDING_S * 1_000_000_000


def _links(ranks: Sequence[Standing], proc: Mapping[str, Any]) -> tuple[str, ...]:
    """Connections whose data was sent again and again, and is not acknowledged."""
    out = []
    for s in ranks:
        for row in mappings(mapping(proc.get("sockets")).get(str(s.member.pid))):
            again, waits = whole(row.get("retransmits")), whole(row.get("tx"))
            if again and waits:
                ends = f"{row.get('local')} to {row.get('remote')}"
                out.append(
                    excerpt(
                        f"pid {s.member.pid}: {ends}: {waits} bytes not acknowledged, sent again {again} times", 200
                    )
                )
    return tuple(out[:16])
