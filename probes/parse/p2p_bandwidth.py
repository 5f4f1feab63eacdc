"""``p2pBandwidthLatencyTest`` of the CUDA samples: which GPUs reach which others, and how fast.

Layout as Samples/5_Domain_Specific/p2pBandwidthLatencyTest prints it. Of its matrices the copies in one direction with peer access
count, a row for each GPU that writes; the diagonal is the GPU's own memory. A GPU that cannot reach more peers than is usual on its
node has lost them: where no pair can, the model or the machine has no peer access.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from statistics import median

from knowledge.identity import normalise_pci
from knowledge.observation import Observation, Scope, Status, Subject, gpu
from probes.base import Context, DocumentFormat, Line
from probes.parse import _app_bench
from probes.parse._app_emit import Emitter, clean_lines

NAME, REVISION = "p2p-bandwidth", 1
PROVIDES = ("gpu.name", "gpu.peer.p2p", "gpu.peer.p2p.short", "benchmark.d2d.min", "benchmark.d2d.median")
_TITLE = "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]"
# Device: 0, NVIDIA H100 80GB HBM3, pciBusID: 18, pciDeviceID: 0, pciDomainID:0
_DEVICE = re.compile(
    r"Device: (\d{1,3}), (.{1,100}?), pciBusID: ([0-9a-f]{1,2}), pciDeviceID: ([0-9a-f]{1,2}), pciDomainID: ?([0-9a-f]{1,8})\s{0,8}"
)
# Device=0 CANNOT Access Peer Device=5
_ACCESS = re.compile(r"Device=(\d{1,3}) (CAN|CANNOT) Access Peer Device=(\d{1,3})\s{0,8}")
# Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)
_MATRIX = re.compile(r"\s{0,8}(?:Uni|Bi)directional P2P=(?:En|Dis)abled .{0,40}Matrix \((?:GB/s|us)\)\s{0,8}")
_WANTED = re.compile(r"\s{0,8}Unidirectional P2P=Enabled ")
_ROW = re.compile(r"\s{1,12}(\d{1,3})((?:\s{1,16}[0-9.]{1,16}){1,64})\s{0,8}")


def sniff(head: str) -> int:
    """95 where the test names itself or says who reaches whom."""
    return 95 if _TITLE in head or re.search(r"(?m)^Device=\d{1,3} CAN(?:NOT)? Access Peer Device=\d", head) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Peer access of each pair, and the copies of each GPU to the others."""
    emit = Emitter(NAME, REVISION, context)
    devices: dict[int, Subject] = {}
    blocked: dict[int, list[Line]] = {}
    rows: dict[int, tuple[list[float], Line]] = {}
    wanted = False
    for line in clean_lines(text):
        if found := _DEVICE.fullmatch(line.text):
            address = normalise_pci(f"{int(found[5], 16):04x}:{found[3]:0>2}:{found[4]:0>2}.0")
            devices[int(found[1])] = subject = gpu(address, context.host)
            emit.fact("gpu.name", subject, found[2], line.number, line.text)
            emit.fact("gpu.index", subject, int(found[1]), line.number, line.text)
        elif found := _ACCESS.fullmatch(line.text):
            link = Subject(Scope.LINK, f"GPU{found[1]}-GPU{found[3]}", emit.node)
            reaches = found[2] == "CAN"
            emit.fact("gpu.peer.p2p", link, "ok" if reaches else "not_supported", line.number, line.text)
            blocked.setdefault(int(found[1]), []).extend([] if reaches else [line])
        elif _MATRIX.match(line.text):
            wanted = _WANTED.match(line.text) is not None
        elif wanted and (found := _ROW.fullmatch(line.text)):
            values = [_app_bench.decimal(word) for word in found[2].split()]
            others = [v for peer, v in enumerate(values) if v is not None and peer != int(found[1])]
            rows.setdefault(int(found[1]), (others, line))
    _access(emit, devices, blocked)
    for number in sorted({*devices, *rows}):
        subject = devices.get(number, gpu(f"index:{number}", context.host))
        others, at = rows.get(number, ([], None))
        if at is not None and others:
            emit.fact("benchmark.d2d.min", subject, min(others), at.number, at.text)
            emit.fact("benchmark.d2d.median", subject, round(median(others), 2), at.number, at.text)
        elif len(devices) > 1:
            emit.missing("benchmark.d2d.median", subject, Status.FAILED, "the output ends early: no row of this GPU")
    return emit.out


def _access(emit: Emitter, devices: Mapping[int, Subject], blocked: Mapping[int, list[Line]]) -> None:
    """How many peers more than usual each GPU does not reach."""
    if len(blocked) < 3:  # of two nobody tells whose fault it is
        return
    usual = median(len(lines) for lines in blocked.values())
    for number, lines in blocked.items():
        subject = devices.get(number, gpu(f"index:{number}", emit.context.host))
        at = lines[0] if lines else None
        short = max(0, round(len(lines) - usual))
        emit.fact("gpu.peer.p2p.short", subject, short, at.number if at else None, at.text if at else "")


FORMAT = DocumentFormat(NAME, "p2pBandwidthLatencyTest", REVISION, (*PROVIDES, "gpu.index"), sniff, parse)
