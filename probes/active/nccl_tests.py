"""nccl-tests: ``all_reduce_perf`` over the GPUs of this node (options: README of github.com/NVIDIA/nccl-tests)."""

from __future__ import annotations

from collections.abc import Sequence

from knowledge.language import Text
from knowledge.lazy import lazy
from probes.active import ActiveTest, Refused, Step, installed_gpus
from probes.active._common import LINKS, NO_GPU
from probes.host import Host
from probes.parse._active_facts import NCCL_TESTS

LEAST, MOST = 8, 8 << 30  # bytes: the figure that is compared is that of the largest message
_ROW = lazy(r"\s{1,30}(\d{1,18})\s{1,30}\d{1,18}\s{1,20}float")


def _steps(host: Host, gpus: tuple[int, ...]) -> Sequence[Step] | Refused:
    count = len(gpus) or installed_gpus(host)
    if not count:
        return Refused(NO_GPU)
    if count < 2:
        return Refused(Text("a collective needs two GPUs", "集合通信至少需要两块 GPU"))
    return (Step(("all_reduce_perf", "-b", "8", "-e", "8G", "-f", "2", "-g", str(count)), 60.0, 600.0),)


def _progress(lines: Sequence[str]) -> float | None:
    sizes = [int(found[1]) for line in lines if (found := _ROW.match(line)) and found[1] != "0"]
    # sizes double, and so does the time of the large ones
    return min(1.0, sizes[-1].bit_length() / MOST.bit_length()) if sizes else None


TEST = ActiveTest(
    name="nccl-tests",
    title=Text("all-reduce over the GPUs of this node", "本节点 GPU 间的 all-reduce"),
    binaries=("all_reduce_perf",),
    level=2,
    cost=LINKS,
    seconds=60.0,
    main=("benchmark.collective.busbw.largest",),
    provides=NCCL_TESTS,
    steps=_steps,
    progress=_progress,
)
