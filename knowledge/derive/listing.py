"""GPUs that a listing lacks: fewer than expected or than another tool lists, a number left out, one that the kernel log names.

A listing that is known to show only some GPUs (``nvidia-smi -q -i 3`` tells that eight are attached) misses none, and one that lacks
more than a third was asked for some of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from knowledge.derive._added import with_added
from knowledge.identity import is_pci
from knowledge.observation import Event, Observation, Origin, Scope, Source, Status, Subject, latest, node

MOST_LEFT_OUT = 3  # of so many GPUs one: who chooses some with -i leaves out more
APART = 60 * 10**9  # ns: what was printed within a minute was taken together (as `rules.factbase` has it)
BOARD = 8  # GPUs of a board with NVSwitches that the node itself sees (HGX A100 to B300)
_BOARDS = ("A100", "A800", "H100", "H200", "H800", "H20", "B200", "B300")


def enrich(observations: Sequence[Observation]) -> list[Observation]:
    """The batch with `node.gpu.shown`, what a listing lacks (`node.gpu.left_out` and its kin) and `gpu.unlisted`."""
    read = [o for o in observations if not o.source.call.startswith("history:")]
    listed: dict[str, list[Observation]] = defaultdict(list)
    for o in read:
        if o.fact in ("node.gpu.count", "node.gpu.listed") and o.status is Status.OK and isinstance(o.value, int):
            listed[o.subject.host].append(o)
    return with_added(observations, (o for host, of in sorted(listed.items()) for o in _host(host, of, read)))


def _host(host: str, told: Sequence[Observation], read: Sequence[Observation]) -> Iterator[Observation]:
    counts = [o for o in told if o.fact == "node.gpu.count"]
    fullest = latest(counts) if counts else max(told, key=_number)
    shown = _of("node.gpu.shown", node(host), _number(fullest), fullest)
    yield replace(shown, value=None, status=Status.NOT_APPLICABLE, detail="their count is told") if counts else shown
    whole = [o for o in told if o.fact == "node.gpu.listed" and _number(o) >= max(map(_number, told))]
    here = [o for o in read if o.subject.host == host]
    fewer = list(_fewer(told, here))
    yield from fewer
    for listing in whole[-1:]:
        rows = {g: o for o in here if o.source.call == listing.source.call and (g := o.subject.up(Scope.GPU))}
        yield from () if fewer else _left_out(listing, here)
        yield from _unlisted(listing, set(rows), here)


def _fewer(told: Sequence[Observation], here: Sequence[Observation]) -> Iterator[Observation]:
    """What the listing with the fewest GPUs lacks of those that another tool lists at that time, or that are on the bus."""
    own = min((o for o in told if o.fact == "node.gpu.listed"), key=_number, default=None)
    on_bus = [o for o in here if o.fact == "node.pci.gpu_count" and o.status is Status.OK]
    others = [o for o in (*told, *on_bus) if own is not None and _beside(o, own)]
    full = max(others, key=_number, default=None)
    if own is None or full is None:
        return
    lacks = _number(full) - _number(own)
    of_driver = own.source.probe.startswith("nvidia-smi") and not any(o.fact == "node.gpu.count" for o in told)
    if full in on_bus and of_driver and lacks == 0:
        yield _of("node.gpu.bus_only", own.subject, 0, own)
    if not 0 < lacks * MOST_LEFT_OUT <= _number(full) or _number(own) < 2:
        return
    names = sorted(g.id for g in _rows(full, here) - _rows(own, here))
    known = len(names) == lacks and all(map(is_pci, names))
    where = "on the bus" if full in on_bus else "by another tool"
    shown = f"{_number(own)} GPUs are listed, {_number(full)} {where} ({full.source})"
    yield from _lacking(own, lacks, shown)
    if known:
        yield replace(_of("node.gpu.left_out_names", own.subject, 0, own, shown), value=tuple(names))
    if full in on_bus and of_driver:
        yield _of("node.gpu.bus_only", own.subject, lacks, own, shown)


def _lacking(listing: Observation, lacks: int, shown: str) -> Iterator[Observation]:
    yield _of("node.gpu.left_out", listing.subject, lacks, listing, shown)
    yield _of("node.gpu.listed_fewest", listing.subject, _number(listing), listing)


def _beside(one: Observation, other: Observation) -> bool:
    """Whether two tools counted at one time, as far as is known: in between a GPU may have gone or come back."""
    known = one.at is not None and other.at is not None and one.clock is other.clock
    return one.source.probe != other.source.probe and not (known and abs((one.at or 0) - (other.at or 0)) >= APART)


def _rows(count: Observation, here: Sequence[Observation]) -> set[Subject]:
    """The GPUs that the output of a count names."""
    return {
        g
        for o in here
        if (o.source.probe, o.source.call) == (count.source.probe, count.source.call) and (g := o.subject.up(Scope.GPU))
    }


def _left_out(listing: Observation, here: Sequence[Observation]) -> Iterator[Observation]:
    """Numbers that are left out among others, and places of the board without a GPU."""
    number, call = _number(listing), listing.source.call
    seen = {o.value for o in here if o.fact == "gpu.index" and o.source.call == call and isinstance(o.value, int)}
    gap = sorted(set(range(max(seen, default=-1) + 1)) - seen)
    # Who chooses some with -i names a few: most numbers are left out then, or the first is.
    if gap and len(seen) == number and 0 in seen and len(gap) * MOST_LEFT_OUT <= number:
        yield from _lacking(listing, len(gap), f"GPU {', '.join(map(str, gap))} is left out of 0 to {max(seen)}")
        return
    switches = [o for o in here if o.fact in ("node.pci.nvswitch_count", "node.nvswitch.listed") and _number(o)]
    names = {str(o.value) for o in here if o.fact == "gpu.name" and o.source.call == call}
    board = bool(names) and all(any(word in name for word in _BOARDS) for name in names)
    if switches and board and BOARD // 2 < number < BOARD:
        shown = f"{number} GPUs beside {_number(switches[0])} NVSwitches, whose board has {BOARD}"
        yield from _lacking(listing, BOARD - number, shown)
    elif 0 in seen and not gap:
        yield _of("node.gpu.left_out", listing.subject, 0, listing)


def _unlisted(listing: Observation, rows: set[Subject], here: Sequence[Observation]) -> Iterator[Observation]:
    """GPUs with an XID in the kernel log whose address no row has. Without an address in each row nobody knows."""
    if len(rows) != _number(listing) or not all(is_pci(g.id) for g in rows):
        return
    named = {o.subject for o in here if o.fact.startswith("xid") and isinstance(o.value, Event)}
    for subject in sorted(named | rows if named else (), key=str):
        if subject.scope is Scope.GPU and is_pci(subject.id):
            shown = f"{len(rows)} GPUs are listed" + ("" if subject in rows else f", {subject.id} is not")
            yield _of("gpu.unlisted", subject, subject not in rows, listing, shown)


def _number(o: Observation) -> int:
    return o.value if isinstance(o.value, int) else 0


def _of(fact: str, subject: Subject, value: bool | int, of: Observation, shown: str = "") -> Observation:
    return Observation(
        fact, subject, value, source=Source("derived", of.source.call, of.source.line), at=of.at, clock=of.clock,
        excerpt=shown or of.excerpt, origin=Origin.DERIVED,
    )  # fmt: skip
