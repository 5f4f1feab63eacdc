"""nvbandwidth: copies between host and GPUs and between GPUs (options: README of github.com/NVIDIA/nvbandwidth, v0.4 and later)."""

from __future__ import annotations

from collections.abc import Sequence

from knowledge.language import Text
from knowledge.lazy import lazy
from probes.active import ActiveTest, Refused, Step
from probes.active._common import LINKS
from probes.host import Host
from probes.parse._active_facts import NVBANDWIDTH

# Those that `probes.parse.nvbandwidth` draws figures of a GPU from; all of them would take minutes.
CASES = ("host_to_device_memcpy_ce", "device_to_host_memcpy_ce", "device_to_device_memcpy_write_ce")
_RUNNING = lazy(r"Running (\w{3,80})\.")


def _steps(_: Host, gpus: tuple[int, ...]) -> Sequence[Step] | Refused:
    cases = CASES[:2] if len(gpus) == 1 else CASES  # with one GPU there is no other to copy to
    return (Step(("nvbandwidth", "-t", *cases), 30.0, 300.0),)


def _progress(lines: Sequence[str]) -> float | None:
    names = [found[1] for line in lines if (found := _RUNNING.search(line))]
    return CASES.index(names[-1]) / len(CASES) if names and names[-1] in CASES else None


TEST = ActiveTest(
    name="nvbandwidth",
    title=Text("copy bandwidth between host and GPUs, and between GPUs", "主机与 GPU 之间及 GPU 之间的拷贝带宽"),
    binaries=("nvbandwidth",),
    level=1,
    cost=LINKS,
    seconds=30.0,
    main=("benchmark.h2d", "benchmark.d2h"),
    provides=NVBANDWIDTH,
    steps=_steps,
    progress=_progress,
)
