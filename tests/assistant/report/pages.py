"""Reports of small traces that code writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assistant.diagnosis import diagnose
from assistant.report import build
from assistant.report.parts import NEEDS, parts
from probes.trace.across import ranks
from probes.trace.breakdown.utilisation import rank_row
from probes.trace.columns import both
from probes.trace.links import Links
from probes.trace.reading.reader import read
from probes.trace.trees import diff
from probes.trace.verdict import digest
from probes.trace.verdict.facts import observations
from rules.loader import load
from tests.trace_files import TraceFile, comm_bound, data_bound

EVIL = "</script><img src=x onerror=alert(1)><!-- \u2028 {{7*7}} <b>bold</b> & 'quotes\" %{x}"


def page(*files: str, lang: str = "en", compare: bool = False, **more: Any) -> str:
    """The report of traces, as ``gpudiag trace report`` puts it together."""
    traces = [read(f, both(digest.NEEDS, NEEDS, ranks.NEEDS, diff.NEEDS)) for f in files]
    digests = [digest.digest(t) for t in traces]
    timed = [ranks.digest(t, d.window, found=d.iterations, links=Links(t), idle=d.summary.idle)
             for t, d in zip(traces, digests, strict=True) if len(t.gpu)]  # fmt: skip
    compared = ranks.compare(timed, {}) if len(timed) > 1 else None
    made = parts(traces[0], digests[0].window, digests[0].iterations)
    rows = [row for t in traces if (row := rank_row(t, f"rank {t.rank}")) is not None]
    return build(
        digests, diagnose(observations(digests, compared), load()), ranks=compared, timeline=made.timeline, heat=made.heat,
        rank_heat=rows if len(rows) > 1 else (), trees=made.trees, kernels=made.kernels, ops=made.ops, lang=lang, files=files,
        diff=diff.diff(traces[0], traces[1]) if compare else None, **more,
    )  # fmt: skip


def one(folder: Path, lang: str = "en") -> str:
    """A job that waits for its data, with GEMM shapes and memory events."""
    job = data_bound(0.5, steps=8, rank=0, gpu="NVIDIA H100 80GB HBM3")
    return page(job.save(folder / "rank0.json"), lang=lang)


def two(folder: Path, lang: str = "en") -> str:
    """Two ranks, compared."""
    slow = comm_bound(steps=4, rank=0, world=2).save(folder / "rank0.json")
    fast = data_bound(0.4, steps=4, rank=1, world=2).save(folder / "rank1.json")
    return page(slow, fast, lang=lang, compare=True)


def hostile(folder: Path) -> str:
    """Names that try to leave their place."""
    file = TraceFile(rank=0, gpu=EVIL)
    for i in range(12):
        at = i * 100
        file.annotation(f"ProfilerStep#{i}", at, 99)
        file.op(EVIL, at + 1, 40, dims=[[64, 32], [32, 16]], types=["float", "float"])
        file.launch(at + 2, 4, correlation=i + 1)
        file.kernel(f"kernel {EVIL}", at + 10, 30, stream=7, correlation=i + 1)
    return page(file.save(folder / "evil'<b>\".json"), title=EVIL)
