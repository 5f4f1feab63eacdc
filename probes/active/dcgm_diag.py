"""``dcgmi diag -r 1`` to ``4``: NVIDIA's diagnostic, from deployment checks to hours of stress.

Durations: docs.nvidia.com, DCGM, command line reference, dcgmi-diag (level 1 seconds, 2 about two minutes, 3 about 15
minutes); level 4 adds memtest and pulse tests and takes one to two hours (DCGM user guide, run levels).
``-i`` takes DCGM's GPU numbers, which are NVML's as long as no GPU was taken away while the host engine ran.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from knowledge.language import Text
from probes.active import ActiveTest, Refused, Step
from probes.active._common import LIGHT, STRESS
from probes.host import Host
from probes.parse import dcgmi_diag

# Level, seconds as a rule, seconds after which it is ended.
LEVELS = ((1, 15.0, 180.0), (2, 150.0, 900.0), (3, 900.0, 3600.0), (4, 5400.0, 14400.0))
# The host engine starts these; nobody here does.
OWN = (
    "nvvs",
    "nv-hostengine",
    "dcgmproftester11",
    "dcgmproftester12",
    "dcgmproftester13",
    "nvbandwidth",
    "nvbandwidth_13",
)
MAIN = ("node.dcgm.diag.result",)


def _steps(level: int, seconds: float, limit: float) -> Callable[[Host, tuple[int, ...]], Sequence[Step] | Refused]:
    def steps(_: Host, gpus: tuple[int, ...]) -> Sequence[Step] | Refused:
        only = ("-i", ",".join(map(str, gpus))) if gpus else ()
        return (Step(("dcgmi", "diag", "-r", str(level), "-j", *only), seconds, limit),)

    return steps


def _test(level: int, seconds: float, limit: float) -> ActiveTest:
    return ActiveTest(
        name="dcgm-diag" if level == 1 else f"dcgm-diag-{level}",
        title=Text(
            f"{'short ' if level == 1 else ''}diagnostic of DCGM (dcgmi diag -r {level})",
            f"DCGM {'快速' if level == 1 else ''}诊断（dcgmi diag -r {level}）",
        ),
        binaries=("dcgmi",),
        level=level,
        cost=LIGHT if level == 1 else STRESS,
        seconds=seconds,
        main=MAIN,
        provides=dcgmi_diag.PROVIDES,
        steps=_steps(level, seconds, limit),
        progress=lambda _: None,  # it prints everything at its end
        allow=OWN,
        root=True,
        family="dcgm-diag",
    )


TESTS = [_test(*level) for level in LEVELS]
