"""gpu-burn: matrix products at full load, compared with each other (options: its ``-h``, github.com/wilicc/gpu-burn)."""

from __future__ import annotations

from collections.abc import Sequence

from knowledge.language import Text
from knowledge.lazy import lazy
from probes.active import ActiveTest, Refused, Step, share_of
from probes.active._common import STRESS
from probes.host import Host
from probes.parse._active_facts import GPU_BURN

SECONDS = 300  # by then a GPU has reached its steady temperature; a habit, and short beside a burn-in of acceptance
_SHARE = lazy(r"(\d{1,3}\.\d)%  proc'd")


def _steps(_: Host, gpus: tuple[int, ...]) -> Sequence[Step] | Refused:
    del gpus  # chosen by CUDA_VISIBLE_DEVICES
    return (Step(("gpu_burn", str(SECONDS)), SECONDS + 30.0, SECONDS + 300.0),)


def _progress(lines: Sequence[str]) -> float | None:
    return share_of(_SHARE, lines, 100.0)


TEST = ActiveTest(
    name="gpu-burn",
    title=Text("burn-in of the GPUs", "GPU 烤机"),
    binaries=("gpu_burn", "gpu-burn"),
    level=3,
    cost=STRESS,
    seconds=SECONDS + 30.0,
    main=("benchmark.burn.verdict",),
    provides=GPU_BURN,
    steps=_steps,
    progress=_progress,
)
