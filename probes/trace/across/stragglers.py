"""Who is late and why, and which group's link is slow, out of matched collectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from knowledge.language import Text
from probes.trace.across.waits import Matched
from probes.trace.columns import I64, Mask
from probes.trace.model import Collective, Straggler, Wait

if TYPE_CHECKING:
    from probes.trace.across.ranks import RankDigest

# Others must lose 5 % of their time to a rank before anybody would act; and it must stand out from an even share,
# as in every collective somebody is the last.
_LOSS: Final = 0.05
# Bus bandwidth varies by 10 to 20 % between equal groups with what else runs; a lost lane or rail costs more.
_SLOW: Final = 1 / 0.7
_PAIRS: Final = 64

# Bus bandwidth is data per rank over time times this (nccl-tests, doc/PERFORMANCE.md), n ranks.
_BUS: Final = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0, "all_to_all": 1.0}
_CAUSES: Final = {
    "compute": Text("its kernels take longer", "其 kernel 耗时更长"),
    "more_compute": Text(
        "it launches more kernels: its share of the work is larger", "它启动的 kernel 更多：分到的工作更多"
    ),
    "data_loader": Text("it waits for its data loader", "它在等待数据加载器"),
    "host": Text("the host holds it up: Python, or a busy processor", "被主机拖慢：Python 或处理器繁忙"),
    "launch": Text("its launches take longer", "其 kernel 启动耗时更长"),
    "sync": Text("its host synchronises with the device", "其主机在与设备同步"),
    "mem": Text("it copies more", "它的内存拷贝更多"),
    "before": Text(
        "it entered the window late: what held it up came before the recording",
        "它进入窗口时就已落后：延误发生在记录之前",
    ),
    "unknown": Text(
        "it arrives late, but nothing that was recorded takes longer on it", "它到达较晚，但记录中没有更耗时的部分"
    ),
}


def collective_table(groups: Sequence[Matched], ranks: Sequence[int | None]) -> tuple[Collective, ...]:
    """One line for each group and operation, those with the longest waiting and transfer first."""
    lines = []
    for g in groups:
        for code in np.unique(g.op).tolist():
            calls = np.equal(g.op, code) & (g.wait >= 0).all(axis=0)
            if calls.any():
                lines.append(_line(g, g.ops[code], calls, ranks))
    slower = _slower(lines)
    lines = [_with_link(line, s) for line, s in zip(lines, slower, strict=True)]
    return tuple(sorted(lines, key=lambda c: (-(c.transfer_ns + c.skew_ns), c.group, c.name)))


def _line(g: Matched, name: str, calls: Mask, ranks: Sequence[int | None]) -> Collective:
    wait, dur = g.wait[:, calls], (g.end - g.start)[:, calls]
    transfer = int((dur - wait).min(axis=0).sum())
    by_late = np.bincount(g.late[calls], weights=wait.sum(axis=0).astype(np.float64), minlength=len(g.who))
    total = float(by_late.sum())
    worst = int(by_late.argmax())
    sizes = g.bytes[calls]
    size = int(sizes.sum()) if (sizes >= 0).all() else None
    n = len(g.members) or len(g.who)
    factor = _BUS[name] * (n - 1) / n if name in _BUS else 1.0
    who = sorted(r for r in (ranks[p] for p in g.who.tolist()) if r is not None)
    return Collective(
        name=name, group=g.group, count=int(calls.sum()), ranks=tuple(who), transfer_ns=transfer, skew_ns=int(wait.max(axis=0).sum()),
        late_rank=ranks[int(g.who[worst])] if total else None, late_share=float(by_late[worst]) / total if total else 0.0,
        bytes=size, bus_gbs=size * factor / transfer if size and transfer else None,
    )  # fmt: skip


def _slower(lines: Sequence[Collective]) -> list[float | None]:
    """Transfer time per byte (per call where sizes are not recorded) against the median of the other groups that do the
    same: same operation, number of ranks and calls."""
    alike: dict[tuple[str, int, int, bool], list[int]] = {}
    for i, line in enumerate(lines):
        alike.setdefault((line.name, len(line.ranks), line.count, line.bytes is None), []).append(i)
    found: list[float | None] = [None] * len(lines)
    for rows in alike.values():
        cost = np.array([lines[i].transfer_ns / (lines[i].bytes or lines[i].count) for i in rows])
        for k, i in enumerate(rows):
            others = float(np.median(np.delete(cost, k))) if len(rows) > 1 else 0.0
            found[i] = float(cost[k]) / others if others > 0 else None
    return found


def _with_link(line: Collective, slower: float | None) -> Collective:
    return replace(line, slower=slower, slow_link=slower is not None and slower > _SLOW)


def pair_waits(groups: Sequence[Matched]) -> dict[tuple[int, int], int]:
    """(position of who waits, position of who is late) -> ns."""
    found: dict[tuple[int, int], int] = {}
    for g in groups:
        told = np.maximum(g.wait, 0)
        for late in np.unique(g.late).tolist():
            sums = told[:, g.late == late].sum(axis=1)
            for row in np.flatnonzero(sums).tolist():
                pair = int(g.who[row]), int(g.who[late])
                found[pair] = found.get(pair, 0) + int(sums[row])
    return found


def waits_table(digests: Sequence[RankDigest], groups: Sequence[Matched]) -> tuple[Wait, ...]:
    """Who waited for whom, longest first."""
    pairs = sorted(pair_waits(groups).items(), key=lambda p: (-p[1], p[0]))[:_PAIRS]
    return tuple(Wait(digests[a].rank, digests[a].file, digests[b].rank, digests[b].file, ns) for (a, b), ns in pairs)


def stragglers(digests: Sequence[RankDigest], sums: Sequence[Mapping[str, int]], groups: Sequence[Matched], waits: I64,
               makes: I64, entry: I64 | None = None) -> tuple[Straggler, ...]:  # fmt: skip
    """Ranks that cost another at least 5 % of its time, more than twice what they wait themselves and more than an even share. `entry`: when each
    rank's window begins, on one clock."""
    total, found = int(makes.sum()), []
    worst: dict[int, int] = {}
    for (_, late), ns in pair_waits(groups).items():
        worst[late] = max(worst.get(late, 0), ns)
    for i, delays in worst.items():
        share = int(makes[i]) / total if total else 0.0
        stands_out = share > min(0.5, 2 / len(digests)) or share == 1.0
        if delays >= _LOSS * sums[i]["span"] and delays > 2 * int(waits[i]) and stands_out:
            cause, extra = _cause(digests, sums, i, delays, entry)
            text = _CAUSES["more_compute" if cause == "compute" and _more(sums, i) else cause]
            found.append(Straggler(digests[i].rank, digests[i].file, int(makes[i]), delays, share, cause, extra, text))
    return tuple(sorted(found, key=lambda s: (-s.makes_wait_ns, s.file)))


def _extra(sums: Sequence[Mapping[str, int]], i: int, part: str) -> int:
    return sums[i][part] - int(np.median([s[part] for k, s in enumerate(sums) if k != i]))


def _more(sums: Sequence[Mapping[str, int]], i: int) -> bool:
    """More kernels by 5 % than the others: more work, not slower work."""
    usual = sums[i]["kernels"] - _extra(sums, i, "kernels")
    return usual > 0 and _extra(sums, i, "kernels") > 0.05 * usual


def _cause(digests: Sequence[RankDigest], sums: Sequence[Mapping[str, int]], i: int, delays: int,
           entry: I64 | None) -> tuple[str, int]:  # fmt: skip
    """The part that takes longest beyond the others' median; unknown when it explains under a fifth of the delay."""
    loader = _extra(sums, i, "data_loader")
    if not digests[i].device:  # a job on processors: the host is all there is
        return ("data_loader", loader) if loader > 0.5 * delays else ("host", delays)
    extra = {part: _extra(sums, i, part) for part in ("compute", "idle", "mem")}
    part = max(extra, key=lambda p: extra[p])
    if extra[part] < 0.2 * delays:
        late = int(entry[i] - np.median(np.delete(entry, i))) if entry is not None else 0
        return ("before", late) if late > 0.5 * delays else ("unknown", 0)
    if part != "idle":
        return part, extra[part]
    if loader > 0.5 * extra["idle"]:
        return "data_loader", min(loader, extra["idle"])
    return _idle_cause(digests, i), extra["idle"]


def _idle_cause(digests: Sequence[RankDigest], i: int) -> str:
    """What the idle time is made of that this rank has more of, as a share of its own time."""
    mine, others = digests[i], [d for k, d in enumerate(digests) if k != i and d.idle is not None]
    if mine.idle is None or not others:
        return "host"
    extra = {
        p: _share(mine, p) - float(np.median([_share(o, p) for o in others]))
        for p in ("data_loader", "sync", "host", "launch")
    }
    return max(extra, key=lambda p: extra[p])


def _share(d: RankDigest, part: str) -> float:
    return float(getattr(d.idle, f"{part}_ns")) / max(int(d.parts["span"].sum()), 1)


def missing_note(missing: Sequence[int], world: int | None) -> Text:
    """Which ranks have no trace."""
    shown = ", ".join(map(str, missing[:16])) + (" ..." if len(missing) > 16 else "")
    of = f" of {world}" if world else ""
    return Text(f"no trace of {len(missing)} ranks{of}: {shown}; who is late among them cannot be seen",
                f"缺少 {len(missing)} 个 rank 的轨迹{f'（共 {world} 个）' if world else ''}：{shown}；其中谁拖慢无法看到")  # fmt: skip
