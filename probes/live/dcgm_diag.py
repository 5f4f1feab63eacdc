"""``dcgmi diag -r 1``: the short diagnostic of DCGM (deployment checks, no stress test)."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation
from probes.active import collect as guarded
from probes.active.dcgm_diag import TESTS
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._fetch import document
from probes.parse import dcgmi_diag
from probes.parse._active_facts import OWN

ARGV = ("dcgmi", "diag", "-r", "1", "-j")
MAIN = ("node.dcgm.diag.result",)


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of the results. The tool ends with an error when a test fails: a JSON document that can be read is whole.

    Option ``guarded``: as an active test, on idle GPUs only, with facts of the run.
    """
    if request.options.get("guarded"):
        return guarded(TESTS[0], request, host)
    reply = host.run(ARGV, deadline=request.deadline)
    return document(reply, host, dcgmi_diag.FORMAT, MAIN)


PROBE = ProbeSpec(
    name="dcgm-diag",
    title=Text("short diagnostic of DCGM (dcgmi diag -r 1)", "DCGM 快速诊断（dcgmi diag -r 1）"),
    provides=(*dcgmi_diag.FORMAT.provides, *OWN),
    main=MAIN,
    collect=collect,
    needs=Needs(binaries=("dcgmi",), privileges=("root",)),
    cost=Cost.HEAVY,
    side_effects=(
        Text(
            "opens a context on every GPU for some seconds: a running job may see slower steps or less free memory",
            "会在每块 GPU 上打开上下文数秒：正在运行的作业可能变慢或可用显存减少",
        ),
        Text(
            "starts a host engine for its own time when none runs",
            "若没有 host engine 在运行，会临时启动一个",
        ),
    ),
    deadline=210.0,
    default=False,
    takes=frozenset({"gpus", "guarded"}),
)
