"""What a PyTorch says of its build: ``python -m torch.utils.collect_env``, ``torch.__config__.show()``, ``get_arch_list()``.

The three may stand in one text. GPUs stand there as nvidia-smi -L lists them, by the driver's index.
"""

from __future__ import annotations

import re

from knowledge.lazy import lazy
from knowledge.observation import Observation, Status, gpu
from knowledge.text import clean
from probes.base import Context, DocumentFormat
from probes.parse._host_snapshot import Snapshot
from probes.parse._smi_values import Reading

NAME, REVISION = "torch-env", 1
PROVIDES = (
    "node.torch.version", "node.torch.cuda", "node.torch.for_cpu", "node.torch.architectures", "node.driver.version",
    "node.cuda.toolkit.version", "node.gpu.count", "gpu.name",
)  # fmt: skip
_LINES = 4000
# PyTorch version: 2.6.0+cu124          CUDA used to build PyTorch: 12.4       ROCM used to build PyTorch: N/A
# Nvidia driver version: 570.86.15      CUDA runtime version: 12.4.131         CUDA runtime version: Could not collect
_FIELD = lazy(
    r"\s{0,8}(PyTorch version|(?:CUDA|ROCM) used to build PyTorch|Nvidia driver version|CUDA runtime version): (\S.{0,120})"
)
# GPU 0: NVIDIA A100 80GB PCIe
_GPU = lazy(r"\s{0,8}GPU (\d{1,3}): (\S.{0,100})")
# 2.6.0+cu124 12.4 ['sm_50', 'sm_60', 'sm_70', 'sm_75', 'sm_80', 'sm_86', 'sm_90']
_LIST = lazy(r"\[((?:'(?:sm|compute)_\d{2,3}[af]?'(?:, )?){1,40})\]")
#   - NVCC architecture flags: -gencode;arch=compute_50,code=sm_50;-gencode;arch=compute_90,code=compute_90
_FLAGS = lazy(r"NVCC architecture flags: (-gencode;\S{10,4000})")
#   - CUDA Runtime 12.4
_RUNTIME = lazy(r"\s{0,8}- CUDA Runtime (\d{1,3}\.\d{1,3})\s{0,4}")
_VERSION = lazy(r"\d{1,4}(?:\.\d{1,4}){1,3}")
_ARCH = lazy(r"(?:sm|compute)_\d{2,3}[af]?")


def sniff(head: str) -> int:
    """95 for collect_env, 80 for a short text that holds a build's configuration or list."""
    if "PyTorch version: " in head and "CUDA used to build PyTorch: " in head:
        return 95
    if head.count("\n") > 60:  # a log quotes such lines and is something else
        return 0
    return 80 if _FLAGS.search(head) or _LIST.search(head) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Facts of the environment, of the node's driver and of the GPUs that are named."""
    emit = Snapshot(context, NAME, REVISION, {})
    fields: dict[str, str] = {}
    for raw in text.splitlines()[:_LINES]:
        line = clean(raw)
        if found := _FIELD.fullmatch(line):
            fields.setdefault(found[1], found[2].strip())
        elif (found := _GPU.fullmatch(line)) and "PyTorch version" in fields and "CPU" not in fields:
            name = re.sub(r" \(UUID: .{1,60}\)$", "", found[2].strip())
            emit.add("gpu.name", gpu(f"index:{int(found[1])}", emit.host), name, emit.name, line.strip())
        elif line.strip() == "CPU:":
            fields["CPU"] = ""  # below it nothing is of GPUs
    if emit.out:
        emit.add("node.gpu.count", emit.node, len(emit.out), emit.name, f"{len(emit.out)} lines of GPUs")
    _build(emit, fields, text)
    _versions(emit, fields)
    return emit.out


def _build(emit: Snapshot, fields: dict[str, str], text: str) -> None:
    version = fields.get("PyTorch version")
    if version is not None:
        emit.add("node.torch.version", emit.node, _or_gap(version, "PyTorch"), emit.name, f"PyTorch version: {version}")
    cuda, rocm = fields.get("CUDA used to build PyTorch", ""), fields.get("ROCM used to build PyTorch", "")
    runtime = _RUNTIME.search(text[: 1 << 20])
    shown = f"CUDA used to build PyTorch: {cuda}, ROCM used to build PyTorch: {rocm or '-'}" if cuda else ""
    if _VERSION.fullmatch(cuda):
        emit.add("node.torch.cuda", emit.node, cuda, emit.name, shown)
        emit.add("node.torch.for_cpu", emit.node, False, emit.name, shown)
    elif cuda in ("None", "N/A", "Could not collect"):
        none = Reading(None, Status.NOT_APPLICABLE, "this PyTorch was built without CUDA")
        emit.add("node.torch.cuda", emit.node, none, emit.name, shown)
        if cuda == "None" and rocm in ("N/A", "None"):
            emit.add("node.torch.for_cpu", emit.node, True, emit.name, shown)
    elif runtime:
        emit.add("node.torch.cuda", emit.node, runtime[1], emit.name, runtime[0].strip())
        emit.add("node.torch.for_cpu", emit.node, False, emit.name, runtime[0].strip())
    listed = _LIST.search(text[: 1 << 20])
    flags = _FLAGS.search(text[: 1 << 20])
    if listed:
        emit.add("node.torch.architectures", emit.node, _words(listed[1]), emit.name, listed[0])
    elif flags:
        codes = tuple(dict.fromkeys(c for c in re.findall(r"code=([a-z]{2,7}_\d{2,3}[af]?)", flags[1])))
        emit.add("node.torch.architectures", emit.node, codes, emit.name, flags[0])


def _words(listed: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(m[0] for m in _ARCH.finditer(listed)))


def _versions(emit: Snapshot, fields: dict[str, str]) -> None:
    for field, fact in (
        ("Nvidia driver version", "node.driver.version"),
        ("CUDA runtime version", "node.cuda.toolkit.version"),
    ):
        told = fields.get(field)
        if told is not None:
            emit.add(fact, emit.node, _or_gap(told, field), emit.name, f"{field}: {told}")


def _or_gap(told: str, what: str) -> Reading | str:
    """A version as it was printed; what is none (`Could not collect`, `N/A`) with that as its reason."""
    return told if told[:1].isdigit() else Reading(None, Status.UNSUPPORTED, f"{what}: {told}")


FORMAT = DocumentFormat(NAME, "environment and build of PyTorch (collect_env)", REVISION, PROVIDES, sniff, parse)
