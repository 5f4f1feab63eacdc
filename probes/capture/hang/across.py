"""Several ranks over the same window: which of them the others wait for, how long, what it does meanwhile, and where they wait.

Ranks of one job go in step, so all of them are as slow as the slowest. Which one that is shows in their stacks: at the same
moment the others stand in a collective, and it does not. In a balanced job that happens to each as often as to the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowledge.record import dataclass
from probes.capture.hang.standing import Member
from probes.capture.stacks import blame
from probes.capture.stacks.activity import Frame, State, classify, function, known
from probes.capture.stacks.thread_states import States
from probes.parse._host_snapshot import mapping, mappings, whole

LEAST_SHARE: Final = 10.0  # percent of the window: below it, jitter and the times of samples explain it
LEAST_FACTOR: Final = 2.0  # against what the others make each other wait
_POINTS: Final = 4000  # the window is looked at this often at most
_STEP_NS: Final = 5_000_000
_ALONE: Final = 0.01  # of the window: others that are seen in a function less do not do it
_FEW: Final = 1.0  # percent in collectives, below which a job waits for its others in the device

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Late:
    """The rank that the others wait for."""

    rank: int
    pid: int
    share: float  # percent of the window in which the others wait for it, on average
    function: str  # what it does more than they do, while they wait
    waiting: str  # where they wait


class Doing(NamedTuple):
    """What a thread does at one moment."""

    activity: str
    place: blame.Place
    line: int
    waits: bool  # for the other ranks, as far as itself shows
    path: tuple[
        tuple[blame.Place, int], ...
    ] = ()  # the program's functions on the stack with their lines, outermost first


@dataclass(slots=True)
class Timeline:
    """What the driving thread of one rank does at each point of the common grid."""

    member: Member
    kinds: list[Doing]
    at: NDArray[np.int32]  # index into `kinds`, -1: not seen

    def mask(self, which: Sequence[bool]) -> Mask:
        """The points at which it does one of the `kinds` that are chosen."""
        chosen = np.array([*which, False], np.bool_)  # -1 is the last
        return np.asarray(chosen[self.at])


def compare(document: Mapping[str, Any], members: Sequence[Member]) -> Late | None:
    """The late rank among `members` of one job; None when nobody is, or the document does not tell. Never raises."""
    with suppress(ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError):
        ranked = [m for m in members if m.rank is not None]
        grid = _grid(document, ranked)
        if len(ranked) < 2 or grid is None:
            return None
        lines = [_timeline(document, m, grid) for m in ranked]
        return judge([line for line in lines if line is not None])
    return None


def judge(lines: Sequence[Timeline]) -> Late | None:
    """The late rank by what each does; their order does not matter."""
    if len(lines) < 2:
        return None
    lines = sorted(lines, key=lambda line: (line.member.rank or 0, line.member.pid))
    waits = _waits(lines)
    blame_ = [_blamed(waits, i, slice(None)) for i in range(len(lines))]
    worst = max(range(len(lines)), key=lambda i: (blame_[i], -i))
    rest = max(b for i, b in enumerate(blame_) if i != worst)
    if blame_[worst] < LEAST_SHARE or blame_[worst] < LEAST_FACTOR * rest:
        return None
    half = len(lines[0].at) // 2
    for part in (slice(0, half), slice(half, None)):  # late now, waited for by the other then: they take turns
        shares = [_blamed(waits, i, part) for i in range(len(lines))]
        if half and shares[worst] < max(shares):
            return None
    late = lines[worst]
    others = [line for i, line in enumerate(lines) if i != worst]
    held = np.mean([w for i, w in enumerate(waits) if i != worst], axis=0) >= 0.5
    when = held & ~waits[worst] & (late.at >= 0)
    return Late(
        late.member.rank or 0,
        late.member.pid,
        blame_[worst],
        _instead(late, others, when),
        _where(lines, worst, waits, when),
    )


def _blamed(waits: Sequence[Mask], one: int, part: slice) -> float:
    """Percent of the points at which others wait and `one` does not, on average over the others."""
    rest = [w[part] & ~waits[one][part] for i, w in enumerate(waits) if i != one]
    return float(100 * np.mean(rest)) if rest and len(rest[0]) else 0.0


def _waits(lines: Sequence[Timeline]) -> list[Mask]:
    """When each rank waits for the others. Where no rank is ever in a collective, they wait for the device, which waits for them."""
    found = [line.mask([d.waits for d in line.kinds]) for line in lines]
    if max((100 * float(np.mean(w)) for w in found if len(w)), default=0.0) >= _FEW:
        return found
    return [line.mask([d.activity == "sync" for d in line.kinds]) for line in lines]


def _instead(late: Timeline, others: Sequence[Timeline], when: Mask) -> str:
    """The function in which the late rank spends more time than the others do, while they wait for it.

    The deepest one; or, where nobody else enters it, the outermost of those that nobody else enters.
    """
    mine: Counter[blame.Place] = Counter()
    paths: Counter[tuple[blame.Place, int]] = Counter()
    for i, n in Counter(late.at[when].tolist()).items():
        place = late.kinds[i].place._replace(of="")
        mine[place] += n
        paths[place, i] += n
    usual = _inside(others)
    excess = {place: n - usual[place] / len(others) for place, n in mine.items()}
    if not excess:
        return ""
    best = min(excess, key=lambda place: (-excess[place], place))
    taken = max((i for place, i in paths if place == best), key=lambda i: (paths[best, i], -i))
    least = max(_ALONE * len(late.at) * len(others), 1)
    path = late.kinds[taken].path
    alone = next((step for step in path if usual[step[0]] < least), None)
    if alone is not None and alone[0] != best and usual[best] < least:
        return blame.said(*alone)
    return blame.said(best, _line(late, best, when))


def _inside(lines: Sequence[Timeline]) -> Counter[blame.Place]:
    """At how many points the ranks are in each function, or in what it calls."""
    seen: Counter[blame.Place] = Counter()
    for line in lines:
        for i, n in Counter(line.at[line.at >= 0].tolist()).items():
            doing = line.kinds[i]
            for place in {doing.place._replace(of=""), *(p for p, _ in doing.path)}:
                seen[place] += n
    return seen


def _line(line: Timeline, place: blame.Place, when: Mask) -> int:
    seen: Counter[int] = Counter()
    for i, n in Counter(line.at[when].tolist()).items():
        if line.kinds[i].place._replace(of="") == place:
            seen[line.kinds[i].line] += n
    return min(seen, key=lambda number: (-seen[number], number), default=0)


def _where(lines: Sequence[Timeline], late: int, waits: Sequence[Mask], when: Mask) -> str:
    """The call in which the others wait most."""
    seen: Counter[tuple[blame.Place, int]] = Counter()
    for i, line in enumerate(lines):
        if i != late:
            for kind, n in Counter(line.at[when & waits[i]].tolist()).items():
                seen[line.kinds[kind].place, line.kinds[kind].line] += n
    if not seen:
        return ""
    (place, number) = min(seen, key=lambda key: (-seen[key], key))
    caller = blame.said(place._replace(of=""), number)
    return f"{place.of}, called by {caller}" if place.of and place.of != place.name else caller


# --- from a document -----------------------------------------------------------------------------------


def _grid(document: Mapping[str, Any], members: Sequence[Member]) -> NDArray[np.int64] | None:
    """Points of the time that all ranks were seen in."""
    docs = [mapping(mapping(document.get("stacks")).get(str(m.pid))) for m in members]
    docs = [d for d in docs if mapping(d.get("threads"))]
    spans = [(whole(d.get("began")), whole(d.get("ended"))) for d in docs]
    begin, end = max((a or 0 for a, _ in spans), default=0), min((b or 0 for _, b in spans), default=0)
    if len(docs) < 2 or end <= begin:
        return None
    return np.linspace(begin, end, num=int(min(max((end - begin) // _STEP_NS, 2), _POINTS)), endpoint=False).astype(
        np.int64
    )


def _timeline(document: Mapping[str, Any], member: Member, grid: NDArray[np.int64]) -> Timeline | None:
    doc: Any = mapping(mapping(document.get("stacks")).get(str(member.pid)))
    if not mapping(doc.get("threads")):
        return None
    row = next((r for r in mappings(document.get("targets")) if mapping(r.get("process")).get("pid") == member.pid), {})
    sources = {str(k): str(v) for k, v in mapping(row.get("sources")).items()}
    tid = blame.driving(doc, member.pid, sources)
    if tid is None:
        return None
    states = States(mapping(document.get("threads")), member.pid)
    others = [t for t in doc["threads"] if t != tid and states.known(t)]
    numbers: dict[tuple[int, State | None, bool], int] = {}
    kinds: list[Doing] = []
    at = np.full(len(grid), -1, np.int32)
    for began, ns, stack in doc["threads"][tid]["samples"]:
        parts = list(states.parts(tid, began, ns))
        edges = [began, *(moment for moment, _, _ in parts[1:]), began + ns]
        for moment, end, (_, _, state) in zip(edges, edges[1:], parts, strict=False):
            first, last = np.searchsorted(grid, (moment, end))
            if first == last:
                continue
            quiet = state not in (None, State.CPU) and not any(states.at(t, moment) is State.CPU for t in others)
            key = (stack, state, quiet)
            if key not in numbers:
                numbers[key] = len(kinds)
                kinds.append(_doing(blame.frames_of(doc, stack), state, sources, quiet=quiet))
            at[first:last] = numbers[key]
    return Timeline(member, kinds, at)


def _doing(frames: tuple[Frame, ...], state: State | None, sources: Mapping[str, str], *, quiet: bool) -> Doing:
    """`quiet`: no thread of the process runs. In backward, that is the wait for gradients that the others have not sent."""
    if not frames:
        return Doing("unknown", blame.Place("?", ""), 0, waits=False)
    told = classify(frames, state, blame.text_of(sources, frames[-1]))
    name, file, line = frames[told.blamed]
    calls = (function(n) for n, f, _ in frames if any(a.id == "collective" for a, _ in known(n, f).hits))
    of = next(calls, "") if told.activity == "collective" else ""
    waits = told.activity == "collective" or (told.activity == "backward" and quiet)
    path = tuple((blame.Place(n, f), at) for n, f, at in frames if blame.is_programs(n, f))
    return Doing(told.activity, blame.Place(name, file, of), line, waits, path)
