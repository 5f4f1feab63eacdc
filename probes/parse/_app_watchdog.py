"""PyTorch's NCCL watchdog: collectives that timed out, who lagged, and what that adds up to for the job."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import field

from knowledge.lazy import lazy
from knowledge.observation import Scalar, Status, Subject
from knowledge.record import dataclass
from knowledge.text import excerpt
from probes.parse._app_emit import Emitter
from probes.parse._app_lines import AppLine, rank_subject

TRIGGERS = (
    r"Watchdog caught|detected by watchdog|Timeout at NCCL work|FlightRecorder is disabled",
    r"[Hh]eartbeat monitor|watchdog got stuck|Could not acquire GIL|to signal dumping|dump signal",
    r"lagging|finished collective #|joined but didn't finish|Timeout at collective|monitoredBarrier|mismatch between collectives",
    r"world[_ ]size|WORLD_SIZE|nranks \d",
)

# [rank0]:[E1206 18:44:12.715298746 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout:
#   WorkNCCL(SeqNum=7753, OpType=_REDUCE_SCATTER_BASE, NumelIn=544997376, NumelOut=68124672, Timeout(ms)=600000) ran for
#   600061 milliseconds before timing out.
_CAUGHT = lazy(r"Watchdog caught collective operation timeout: WorkNCCL\((.{0,400}?)\) ran for (\d{1,12}) milliseconds")
_PAIR = lazy(r"(\w{1,20}(?:\(ms\))?)=(\[[^\]]{0,200}\]|[^,()]{1,80})")
_GROUP_RANK = lazy(r"\[(?:PG[^\]]{0,120} )?Rank (\d{1,6})\] {1,2}Watchdog caught")
# [PG 1 Rank 0] Exception (either an error or timeout) detected by watchdog at work: 1580, last enqueued NCCL work: 1582, ...
# [PG ID 0 PG GUID 0(default_pg) Rank 3]  failure detected by watchdog at work sequence id: 5 PG status: last enqueued work: 5, ...
_STATUS = lazy(
    r"(?:at work(?: sequence id)?|Timeout at NCCL work): (\d{1,12})\b.{0,80}?last enqueued (?:NCCL )?work: (-?\d{1,12})"
    r"(?:, last started work: -?\d{1,12}[^,]{0,60})?, last completed (?:NCCL )?work: (-?\d{1,12})"
)
_GROUP = lazy(r"\[PG (?:ID \d{1,6} PG GUID )?(\w{1,40}(?:\([^)]{0,60}\))?)[^\]]{0,80}Rank \d{1,6}\]")

_AT = lazy(r"Timeout at collective: (\w{1,60}), #(\d{1,12})")
_LAGGING = (
    (
        "not_joined",
        lazy(r"\[([\d, ]{1,400})\] finished collective #(\d{1,12}), but didn't join collective #(\d{1,12})"),
    ),
    ("not_finished", lazy(r"\[([\d, ]{1,400})\] joined but didn't finish collective #(\d{1,12})")),
    ("never_joined", lazy(r"ranks \[([\d, ]{1,400})\] are the lagging ranks")),
    (
        "monitored_barrier",
        lazy(r"[Rr]anks? ([\d, ]{1,400}?) failed to pass monitoredBarrier(?: in (\d{1,12}) ms)?"),
    ),
)
_MISMATCH = lazy(r"mismatch between collectives on ranks")
_RUNNING = lazy(r"Rank (\d{1,6}) is running collective: CollectiveFingerPrint\(.{0,200}?OpType=(\w{1,60})")
_WORLD = lazy(r"(?:\bworld[_ ]size['\"]?|WORLD_SIZE)\s?[:=]\s?(\d{1,7})\b|\bnranks (\d{1,7})\b", re.IGNORECASE)
_FIRST = lazy(r"dump signal due to a collective timeout from {1,3}(?:global )?rank (\d{1,6})\b")
_NO_RECORDER = lazy(r"FlightRecorder is disabled")
_STATES = (
    ("heartbeat_timeout", lazy(r"[Hh]eartbeat monitor timed out|watchdog got stuck for")),
    ("gil_hang", lazy(r"Could not acquire GIL")),
)


@dataclass(slots=True)
class Stop:
    """One collective of one rank that did not end in time."""

    line: AppLine
    rank: int | None
    seq: int | None
    fields: dict[str, Scalar] = field(default_factory=dict)
    caught: bool = False  # the watchdog's own line was there, not only the status of the group

    @property
    def who(self) -> str:
        """The rank, or the line when no rank is told."""
        return str(self.rank) if self.rank is not None else f"line {self.line.number}"


def stops(lines: Sequence[AppLine]) -> list[Stop]:
    """All timeouts, one for each rank, group and sequence number, in the order of the log."""
    found: dict[tuple[Scalar, ...], Stop] = {}
    for line in lines:
        if caught := _CAUGHT.search(line.text):
            stop = _caught(line, caught)
            key: tuple[Scalar, ...] = (
                stop.rank,
                stop.seq,
                *(() if stop.rank is not None else (stop.fields.get("ran_ms"),)),
            )
            known = found.setdefault(key, stop)
            known.fields = {**stop.fields, **known.fields}
            known.caught = True
        elif status := _STATUS.search(line.text):
            group = _GROUP.search(line.text)
            told: dict[str, Scalar] = {"last_enqueued": int(status[2]), "last_completed": int(status[3])}
            if group:
                told["group"] = group[1]
            stop = found.setdefault((line.rank, int(status[1])), Stop(line, line.rank, int(status[1])))
            stop.fields |= told
    # a status line alone may be of an error; beside timeouts of other ranks it is one of them
    timed_out = any(stop.caught for stop in found.values())
    return [stop for stop in found.values() if stop.caught or timed_out]


def _caught(line: AppLine, caught: re.Match[str]) -> Stop:
    pairs = dict(_PAIR.findall(caught[1]))
    own = _GROUP_RANK.search(line.text)
    # the [rank3] in front is the global rank; the [Rank 3] behind is the rank within the group
    rank = line.rank if line.rank is not None else (int(own[1]) if own else None)
    seq = _int(pairs.get("SeqNum"))
    return Stop(
        line,
        rank,
        seq,
        {
            "op": pairs.get("OpType"),
            "numel_in": _int(pairs.get("NumelIn")),
            "numel_out": _int(pairs.get("NumelOut")),
            "shape": pairs.get("TensorShape"),
            "timeout_ms": _int(pairs.get("Timeout(ms)")),
            "ran_ms": int(caught[2]),
            "group_rank": int(own[1]) if own else None,
        },
    )


def _int(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) <= 18 else None


def report(emit: Emitter, lines: Sequence[AppLine]) -> list[Stop]:
    """Emit timeouts, disagreements between ranks, and what they add up to."""
    found = stops(lines)
    for stop in found:
        line = stop.line
        emit.event(
            "nccl_watchdog_timeout",
            rank_subject(stop.rank, emit.document),
            {**stop.fields, "rank": stop.rank, "seq": stop.seq, "message": excerpt(line.text)},
            line.number,
            line.raw,
            code=stop.seq,
            at=line.at,
            clock=line.clock,
        )
    if not found and (told := next(((line, m) for line in lines if (m := _FIRST.search(line.text))), None)):
        _passed_on(emit, *told)
    _desync(emit, lines)
    _states(emit, lines)
    if found:
        _summary(emit, found, lines)
    return found


def _passed_on(emit: Emitter, line: AppLine, told: re.Match[str]) -> None:
    """A time-out of which only other ranks tell, that write down what they did: their numbers are not that rank's."""
    rank = int(told[1])
    emit.event(
        "nccl_watchdog_timeout",
        rank_subject(rank, emit.document),
        {"rank": rank, "message": excerpt(line.text)},
        line.number,
        line.raw,
        at=line.at,
        clock=line.clock,
    )


def _desync(emit: Emitter, lines: Sequence[AppLine]) -> None:
    seen: set[tuple[Scalar, ...]] = set()
    op: tuple[str, int] | None = None
    for line in lines:
        if at := _AT.search(line.text):
            op = (at[1], int(at[2]))
        fields = _disagreement(line.text)
        if fields is None:
            continue
        if op and fields["state"] != "mismatch":
            fields |= {"op": op[0], "seq": fields.get("seq") or op[1]}
        key = (fields["state"], fields.get("ranks"), fields.get("seq"))
        if key in seen:  # every rank prints the same report
            continue
        seen.add(key)
        fields |= {"rank": line.rank, "message": excerpt(line.text)}
        emit.event("nccl_desync", emit.document, fields, line.number, line.raw, at=line.at, clock=line.clock)


def _disagreement(text: str) -> dict[str, Scalar] | None:
    if _MISMATCH.search(text):
        running = _RUNNING.findall(text)
        return {
            "state": "mismatch",
            "ranks": ",".join(rank for rank, _ in running) or None,
            "op": running[0][1] if running else None,
            "other_op": running[1][1] if len(running) > 1 else None,
        }
    for state, words in _LAGGING:
        if not (found := words.search(text)):
            continue
        fields: dict[str, Scalar] = {"state": state, "ranks": found[1].replace(" ", "").strip(",")}
        if state == "not_joined":
            fields["seq"] = int(found[3])
        elif state == "not_finished":
            fields["seq"] = int(found[2])
        elif state == "monitored_barrier" and found[2]:
            fields["timeout_ms"] = int(found[2])
        return fields
    return None


def _states(emit: Emitter, lines: Sequence[AppLine]) -> None:
    """Watchdogs that were stuck themselves, and whether the flight recorder ran."""
    seen: set[tuple[str, str]] = set()
    for line in lines:
        kind = next((name for name, words in _STATES if words.search(line.text)), "")
        if not kind or (kind, line.label) in seen:
            continue
        seen.add((kind, line.label))
        fields: dict[str, Scalar] = {"kind": kind, "rank": line.rank, "message": excerpt(line.text), "count": 1}
        subject = rank_subject(line.rank, emit.document)
        emit.event("nccl_error", subject, fields, line.number, line.raw, at=line.at, clock=line.clock)
    if off := next((line for line in lines if _NO_RECORDER.search(line.text)), None):
        emit.fact("job.nccl.flight_recorder", emit.document, False, off.number, off.raw)


def world_size(lines: Sequence[AppLine]) -> tuple[int, AppLine] | None:
    """The largest number of ranks that the log names, and the line that does."""
    found = [
        (int(m[1] or m[2]), line) for line in lines if (m := _WORLD.search(line.text)) and not line.text.startswith("#")
    ]
    return max(found, key=lambda item: item[0], default=None)


def _summary(emit: Emitter, found: Sequence[Stop], lines: Sequence[AppLine]) -> None:
    """What the timeouts of all ranks say together. Each rank counts with its first timeout."""
    first: dict[str, Stop] = {}
    for stop in found:
        first.setdefault(stop.who, stop)
    line, text = found[0].line.number, found[0].line.raw
    job = emit.document
    emit.fact("job.nccl.timeout.ranks", job, len(first), line, text)
    ops = tuple(sorted({op for stop in found if isinstance(op := stop.fields.get("op"), str)}))
    if ops:
        emit.fact("job.nccl.timeout.ops", job, ops, line, text)
    groups = Counter(stop.fields.get("group") for stop in first.values() if stop.fields.get("group") is not None)
    main = groups.most_common(1)[0][0] if groups else None
    same = [stop for stop in first.values() if stop.seq is not None and stop.fields.get("group") in (None, main)]
    seqs = {stop.seq for stop in same}
    if len(same) > 1:
        emit.fact("job.nccl.timeout.same_seq", job, len(seqs) == 1, line, text)
        if len(seqs) > 1:
            least = min(stop.seq for stop in same if stop.seq is not None)
            late = [stop for stop in same if stop.seq == least]
            names = tuple(sorted({str(stop.rank) for stop in late if stop.rank is not None}, key=int))
            if names:
                emit.fact("job.nccl.timeout.min_seq_rank", job, names, late[0].line.number, late[0].line.raw)
    if told := next((m for m in (_FIRST.search(entry.text) for entry in lines) if m), None):
        emit.fact("job.nccl.timeout.first_rank", job, told[1], line, told[0])
    _missing(emit, job, first, main, lines)


def _missing(emit: Emitter, job: Subject, first: dict[str, Stop], group: Scalar, lines: Sequence[AppLine]) -> None:
    name = "job.nccl.timeout.missing_ranks"
    world = world_size(lines)
    ranks = {stop.rank for stop in first.values() if stop.rank is not None}
    whole = group is None or (isinstance(group, str) and (group == "0" or "default_pg" in group))
    if world is None and whole and (gaps := _gaps(ranks)):
        some = next(iter(first.values())).line
        emit.fact(
            name,
            job,
            gaps,
            some.number,
            some.raw,
            detail=f"of the ranks up to {max(ranks)}, the highest that the log names",
        )
    elif world is None:
        emit.missing(name, job, Status.UNSUPPORTED, "the log does not say how many ranks the job has")
    elif not ranks or (not whole and len(ranks) * 2 <= world[0]):
        emit.missing(name, job, Status.UNSUPPORTED, f"the log does not say which ranks belong to process group {group}")
    elif world[0] <= 2**20:
        absent = tuple(str(rank) for rank in range(world[0]) if rank not in ranks)
        emit.fact(name, job, absent, world[1].number, world[1].raw, detail=f"of {world[0]} ranks")


def _gaps(ranks: Collection[int]) -> tuple[str, ...]:
    """The ranks below the highest that did not report, where most did: fewer may be one process group of many."""
    every = max(ranks, default=0) + 1
    return tuple(str(r) for r in range(every) if r not in ranks) if len(ranks) >= 3 and len(ranks) * 2 > every else ()
