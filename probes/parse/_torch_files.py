"""What a PyTorch says of its own build: the file ``torch/version.py`` and the list of architectures in its library."""

from __future__ import annotations

import re
from collections.abc import Iterator

from knowledge.observation import Status
from probes.parse._host_snapshot import gap, mapping, words
from probes.parse._smi_values import Reading

CUDA, ARCHITECTURES = "process.torch.cuda", "process.torch.architectures"
FACTS = (CUDA, ARCHITECTURES)
# cuda: Optional[str] = '12.4'      cuda = '11.7'      cuda: Optional[str] = None
_CUDA = re.compile(r"(?m)^cuda(?:: [\w.\[\] |]{1,40})? = (?:None|'(\d{1,3}\.\d{1,3}(?:\.\d{1,4})?)')\s{0,4}$")
_NOT_CUDA = "this PyTorch was built without CUDA"


def read(torch: object) -> Iterator[tuple[str, Reading | str | tuple[str, ...], str]]:
    """Facts, values and raw text; none when the process has no PyTorch mapped."""
    if not isinstance(torch, dict):
        return
    version = torch.get("version")
    cuda, shown = _cuda(version)
    yield CUDA, cuda, shown
    without = isinstance(cuda, Reading) and cuda.status is Status.NOT_APPLICABLE
    lists = torch.get("architectures")
    why = gap(mapping(lists))
    found = words(lists)
    if without:
        yield ARCHITECTURES, Reading(None, Status.NOT_APPLICABLE, _NOT_CUDA), ""
    elif why is not None:
        yield ARCHITECTURES, why, ""
    elif len(found) == 1:
        yield ARCHITECTURES, tuple(found[0].split()), f"libtorch_python.so: {found[0]}"
    else:
        detail = (
            f"its library names several lists: {'; '.join(found)}" if found else "its library names no architecture"
        )
        yield ARCHITECTURES, Reading(None, Status.FAILED if found else Status.UNSUPPORTED, detail), ""


def _cuda(version: object) -> tuple[Reading | str, str]:
    if isinstance(version, dict):
        return gap(version) or Reading(None, Status.FAILED, "torch/version.py was not read"), ""
    found = _CUDA.search(version) if isinstance(version, str) else None
    if found is None:
        return Reading(None, Status.FAILED, "torch/version.py names no CUDA"), ""
    if found[1] is None:
        return Reading(None, Status.NOT_APPLICABLE, _NOT_CUDA), found[0]
    return found[1], found[0]
