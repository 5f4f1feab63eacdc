"""``nvidia-smi nvlink -s`` and ``-e``: state, speed and error counters of each NVLink."""

from __future__ import annotations

from dataclasses import replace

from knowledge.language import Text
from knowledge.observation import Observation, Scope, Status
from probes.base import DocumentFormat
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._fetch import document
from probes.parse import nvlink_errors, nvlink_status

STATES = ("nvidia-smi", "nvlink", "-s")
ERRORS = ("nvidia-smi", "nvlink", "-e")
SUMS = ("gpu.nvlink.active", "gpu.nvlink.inactive")
MAIN = ("gpu.nvlink.active", "link.errors.replay")


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of both listings; GPUs that are listed without links have none that the driver reports."""
    return [
        *_listing(request, host, STATES, nvlink_status.FORMAT, MAIN[:1], ("link.state", *SUMS)),
        *_listing(request, host, ERRORS, nvlink_errors.FORMAT, MAIN[1:], tuple(nvlink_errors.COUNTERS.values())),
    ]


def _listing(
    request: ProbeRequest, host: Host, argv: tuple[str, ...], parser: DocumentFormat,
    main: tuple[str, ...], proof: tuple[str, ...],
) -> list[Observation]:  # fmt: skip
    reply = host.run(argv, deadline=request.deadline)
    found = document(reply, host, parser, main, sums=SUMS, proof=proof)
    if not (reply.whole and any(o.fact == "gpu.index" for o in found)):
        return found
    why = f"{reply.title}: no NVLink is listed for these GPUs"
    return [  # what `document` missed stands on the node: parsers name the GPU or the link
        replace(o, status=Status.UNSUPPORTED, detail=why) if o.fact in main and o.subject.scope is Scope.NODE else o
        for o in found
    ]


PROBE = ProbeSpec(
    name="nvlink",
    title=Text("NVLink states and error counters (nvidia-smi nvlink -s, -e)", "NVLink 状态与错误计数（nvidia-smi nvlink -s、-e）"),
    provides=tuple(sorted({*nvlink_status.FORMAT.provides, *nvlink_errors.FORMAT.provides})),
    main=MAIN,
    collect=collect,
    needs=Needs(binaries=("nvidia-smi",)),
    cost=Cost.SECONDS,
    instead_of="nvml",
)  # fmt: skip
