"""The digests of the traces that are asked about, the comparison of their ranks, and what the rules conclude."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from assistant.trace.reading import Results, each
from assistant.trace.words import rank_name
from knowledge.language import Text
from knowledge.record import dataclass
from probes.trace.columns import both
from probes.trace.reading.reader import Trace

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from probes.trace.across.ranks import RankDigest as Timed
    from probes.trace.breakdown.utilisation import HeatRow
    from probes.trace.model import Ranks
    from probes.trace.verdict.digest import RankDigest


@dataclass(frozen=True, slots=True)
class Looked:
    """One trace from all sides."""

    digest: RankDigest
    timed: Timed | None  # for the comparison with others; None without GPU activity
    row: HeatRow | None = None  # how busy it was over time

    @property
    def empty(self) -> bool:
        """No GPU activity."""
        return not self.digest.gpu_events


@dataclass(frozen=True, slots=True)
class Job:
    """All traces that are asked about."""

    results: Results[Looked]
    ranks: Ranks | None
    diagnosis: Diagnosis

    @property
    def digests(self) -> list[RankDigest]:
        """One of each trace, in order of ranks."""
        return [one.digest for one in self.results.found]

    @property
    def empty(self) -> bool:
        """No trace holds GPU activity."""
        return all(one.empty for one in self.results.found)


def job(args: argparse.Namespace, top: int) -> Job:
    """Reads and concludes. InputError when no file can be used."""
    from probes.trace.across import ranks
    from probes.trace.breakdown import utilisation
    from probes.trace.verdict import digest

    results = each(args, both(digest.NEEDS, ranks.NEEDS, utilisation.NEEDS), partial(_one, args, top))
    results.found.sort(key=lambda o: (o.digest.rank is None, o.digest.rank or 0))
    timed = [o.timed for o in results.found if o.timed is not None]
    several = len(timed) > 1 or any(t.world_size and t.world_size > 1 for t in timed)
    compared = ranks.compare(timed, results.failed) if several else None
    return Job(results, compared, conclude(args, [o.digest for o in results.found], compared, results.failed))


def _one(args: argparse.Namespace, top: int, trace: Trace) -> Looked:
    from probes.trace.across import ranks
    from probes.trace.breakdown.utilisation import rank_row
    from probes.trace.links import Links
    from probes.trace.verdict.digest import digest

    model = (
        {"parameters": args.parameters, "tokens_per_second": args.tokens_per_second}
        if hasattr(args, "parameters")
        else {}
    )
    kind = args.window if len(trace.gpu) else "trace"
    links = Links(trace)
    found = digest(trace, kind, marker=args.marker, top=top, gpu=getattr(args, "gpu", ""), links=links, **model)
    if not len(trace.gpu):
        return Looked(found, None)
    timed = ranks.digest(trace, found.window, found=found.iterations, links=links, idle=found.summary.idle)
    return Looked(found, timed, rank_row(trace, rank_name(trace.rank, trace.path), found.window))


def conclude(
    args: argparse.Namespace, digests: Sequence[RankDigest], compared: Ranks | None, failed: Iterable[str] = ()
) -> Diagnosis:
    """What the rules in force say of the facts that the traces told."""
    from assistant.diagnosis import Question
    from assistant.trace.answer import judge
    from probes.trace.verdict.facts import observations

    asked = Question(
        ("trace.gpu_events",),
        Text("Nothing that slows the job was found.", "未发现拖慢作业的因素。"),
        Text("What bounds the job is not known", "作业受什么限制尚不清楚"),
    )
    return judge(args, observations(digests, compared), [d.file for d in digests], failed, asked)
