"""``nvidia-smi topo -m`` (and ``-mp``, ``-p2p``): how the GPUs and network adapters of a node reach each other.

A pair is one link subject, named ``GPU0-GPU1`` or ``GPU0-mlx5_0`` in the order of the matrix.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from knowledge.observation import Observation, Scope, Subject, gpu
from knowledge.record import dataclass
from knowledge.text import clean
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse import _smi_errors
from probes.parse._smi_emit import Emitter, cleaned
from probes.parse._smi_fields import count
from probes.parse._smi_values import Reading, absent, enumeration, not_understood, text_value

NAME, REVISION = "nvidia-smi-topo", 2
_DEVICE = re.compile(
    r"GPU\d{1,3}|NIC\d{1,3}|mlx\d{1,2}_\w{1,20}|bnxt_\w{1,20}|rdmap?\w{1,30}|irdma\d{1,3}|hfi\d\w{0,20}"
)
#         GPU0    GPU1    mlx5_0  CPU Affinity    NUMA Affinity   GPU NUMA ID
_HEAD = re.compile(r"\s{1,16}(?:GPU\d{1,3}|NIC\d{1,3})(?:\s{1,12}\S.{0,4000})?")
_LEGEND = re.compile(r"\s{0,8}(NIC\d{1,3}):\s{1,6}(\S{1,40})\s*")
_BONDED = re.compile(r"NV(\d{1,3})")
_CPUS = re.compile(r"\d{1,5}(?:-\d{1,5})?(?:,\d{1,5}(?:-\d{1,5})?)*")

# Nearest first; the order decides which adapter is nearest.
_ORDER = ("nvlink", "c2c", "pix", "pxb", "phb", "node", "sys")
path_word = enumeration({"pix": "pix", "pxb": "pxb", "phb": "phb", "node": "node", "sys": "sys", "soc": "sys",
                         "c2c": "c2c", "psb": "pix"})  # fmt: skip
_P2P = enumeration({
    "ok": "ok", "cns": "chipset_not_supported", "gns": "gpu_not_supported", "tns": "topology_not_supported",
    "ns": "not_supported", "dr": "disabled", "u": "unknown",
})  # fmt: skip
PROVIDES = (
    "gpu.peer.path", "gpu.peer.nvlinks", "gpu.peer.nvlinks.most", "gpu.peer.nvlinks.short", "gpu.peer.p2p", "nic.peer.path", "gpu.nearest_nic", "gpu.numa",
    "gpu.cpu_affinity", "gpu.index", "node.gpu.listed", *(fact for fact in _smi_errors.PROVIDES if fact != "gpu.reset_required"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Matrix:
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...], Line], ...]
    names: dict[str, str]  # NIC0 -> mlx5_0

    def name(self, device: str) -> str:
        return self.names.get(device, device)


def sniff(head: str) -> int:
    """100 on a matrix with its legend or affinities near the top, 85 on the matrix alone."""
    lines = [line for line in lines_of(clean(head)) if line.text.strip()]
    top = next((i for i, line in enumerate(lines[:20]) if _HEAD.fullmatch(line.text.expandtabs(8).rstrip())), None)
    matrix = _matrix(lines[top:]) if top is not None else None
    if matrix is None:
        return 0
    return 100 if "X    = Self" in head or "CPU Affinity" in head else 85


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of one matrix."""
    emit = Emitter(context, NAME, REVISION)
    read(emit, cleaned(lines_of(text)))
    return emit.finish()


def read(emit: Emitter, lines: Sequence[Line]) -> None:
    """Add the facts of one matrix to `emit`."""
    _smi_errors.errors(emit, lines, resets=False)
    matrix = _matrix(lines)
    if matrix is None:
        return
    cells = [c for _, row, _ in matrix.rows for c in row[: len(matrix.columns)] if c != "X"]
    peers = bool(cells) and all(_P2P(c).ok for c in cells)
    gpus = [name for name, _, _ in matrix.rows if name.startswith("GPU")]
    if not gpus:
        return
    if not peers:
        emit.add("node.gpu.listed", emit.node, len(gpus), matrix.rows[0][2].number, f"{len(gpus)} rows")
    done: set[tuple[str, str]] = set()
    for device, row, line in matrix.rows:
        for other, cell in zip(matrix.columns, row, strict=False):
            pair = (device, other)
            if cell == "X" or pair in done or (other, device) in done:
                continue
            done.add(pair)
            _pair(emit, matrix, pair, cell, line, peers=peers)
        if device.startswith("GPU") and not peers:
            _own(emit, matrix, device, row, line)
    if not peers:
        _links_among(emit, matrix)


def _links_among(emit: Emitter, matrix: _Matrix) -> None:
    """Of each GPU how many NVLinks join it to its nearest peer, and how many fewer that are than at most of the GPUs.

    "Most" is more than half of them, and at least three: below that nobody can say which one is odd.
    """
    most: dict[str, int] = {}
    lines = {device: line for device, _, line in matrix.rows}
    for device, row, _ in matrix.rows:
        cells = [
            c for other, c in zip(matrix.columns, row, strict=False) if other.startswith("GPU") and other != device
        ]
        if device.startswith("GPU") and cells and all(_BONDED.fullmatch(c) or path_word(c).ok for c in cells):
            most[device] = max(int(found[1]) if (found := _BONDED.fullmatch(c)) else 0 for c in cells)
    usual, count_ = Counter(most.values()).most_common(1)[0] if most else (0, 0)
    if count_ < 3 or count_ * 2 <= len(most):
        return
    for device, links in most.items():
        subject, line = gpu(f"index:{int(device[3:])}", emit.host), lines[device]
        emit.add("gpu.peer.nvlinks.most", subject, links, line.number, line.text)
        quoted = f"{device}: {links} NVLinks to a peer, {count_} of {len(most)} GPUs have {usual}"
        emit.add("gpu.peer.nvlinks.short", subject, max(0, usual - links), line.number, quoted)


def _matrix(lines: Iterable[Line]) -> _Matrix | None:
    columns: tuple[str, ...] = ()
    rows: list[tuple[str, tuple[str, ...], Line]] = []
    names: dict[str, str] = {}
    for line in lines:
        words = line.text.split()
        if not columns:
            if _HEAD.fullmatch(line.text.expandtabs(8).rstrip()):
                columns = tuple(_devices(words))
        elif (
            words and _DEVICE.fullmatch(words[0]) and len(words) > len(columns) and not line.text.rstrip().endswith(":")
        ):
            rows.append((words[0], tuple(words[1:]), line))
        elif found := _LEGEND.fullmatch(line.text):
            names[found[1]] = found[2]
    return _Matrix(columns, tuple(rows), names) if columns and rows else None


def _devices(words: Iterable[str]) -> list[str]:
    out: list[str] = []
    for word in words:
        if not _DEVICE.fullmatch(word):
            break
        out.append(word)
    if out and out[-1] == "GPU":
        out.pop()
    return out


def _pair(emit: Emitter, matrix: _Matrix, pair: tuple[str, str], cell: str, line: Line, *, peers: bool) -> None:
    subject = Subject(Scope.LINK, "-".join(map(matrix.name, pair)), emit.node)
    quoted = f"{pair[0]} to {pair[1]}: {cell}"
    if peers:
        emit.add("gpu.peer.p2p", subject, _P2P(cell), line.number, quoted)
        return
    both = all(device.startswith("GPU") for device in pair)
    bonded = _BONDED.fullmatch(cell)
    reading = Reading("nvlink") if bonded else path_word(cell)
    emit.add("gpu.peer.path" if both else "nic.peer.path", subject, reading, line.number, quoted)
    if both and bonded:
        emit.add("gpu.peer.nvlinks", subject, int(bonded[1]), line.number, quoted)


def _own(emit: Emitter, matrix: _Matrix, device: str, row: Sequence[str], line: Line) -> None:
    """Index, affinities and nearest adapters of one GPU row."""
    index = int(device[3:])
    subject = gpu(f"index:{index}", emit.host)
    emit.add("gpu.index", subject, index, line.number, f"row {device}")
    rest = row[len(matrix.columns) :]
    if rest:
        cpus = text_value(rest[0]) if _CPUS.fullmatch(rest[0]) else absent(rest[0]) or not_understood(rest[0], "CPUs")
        emit.add("gpu.cpu_affinity", subject, cpus, line.number, f"CPU Affinity: {rest[0]}")
    if len(rest) > 1:
        numa = count(rest[1]) if rest[1].isdigit() else absent(rest[1]) or not_understood(rest[1], "one NUMA node")
        emit.add("gpu.numa", subject, numa, line.number, f"NUMA Affinity: {rest[1]}")
    paths = {
        other: word
        for other, cell in zip(matrix.columns, row, strict=False)
        if not other.startswith("GPU") and isinstance(word := path_word(cell).value, str)
    }
    nearest = min((_ORDER.index(word) for word in paths.values()), default=None)
    for other, word in paths.items():
        if _ORDER.index(word) == nearest:
            emit.add("gpu.nearest_nic", subject, f"nic:{matrix.name(other)}", line.number,
                     f"{device} to {other}: {word.upper()}")  # fmt: skip


FORMAT = DocumentFormat(NAME, "nvidia-smi topo -m", REVISION, tuple(sorted(set(PROVIDES))), sniff, parse)
