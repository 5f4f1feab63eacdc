"""One line for Nagios, Icinga and their kind, with performance data and their own exit codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.exits import Exit
from knowledge.observation import Status
from rules.model import Severity

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis

OK, WARNING, CRITICAL, UNKNOWN = range(4)
_WORDS = ("OK", "WARNING", "CRITICAL", "UNKNOWN")


def code(diagnosis: Diagnosis) -> int:
    """0 OK, 1 WARNING, 2 CRITICAL (an error or worse), 3 UNKNOWN. Mere possibilities do not count."""
    from assistant.diagnosis import bad

    worst = max((f.severity.rank for f in bad(diagnosis.findings)), default=0)
    if worst >= Severity.ERROR.rank:
        return CRITICAL
    if worst >= Severity.WARNING.rank:
        return WARNING
    return UNKNOWN if diagnosis.exit is Exit.UNDECIDED else OK


def render(diagnosis: Diagnosis, lang: str = "en") -> str:
    """``GPUDIAG CRITICAL - text | gpus=8 findings=1``."""
    from assistant.render.view import view

    text = line(code(diagnosis), view(diagnosis, lang).headline)  # names subjects as the other answers do
    gpus = _gpus(diagnosis)
    shown = "" if gpus is None else f"gpus={gpus} "
    return (
        f"{text} | {shown}findings={len(diagnosis.roots)} symptoms={len(diagnosis.findings) - len(diagnosis.roots)}\n"
    )


def _gpus(diagnosis: Diagnosis) -> int | None:
    """How many GPUs the driver shows, else the bus, all nodes together; a log names GPUs, but does not count them."""
    for fact in ("node.gpu.count", "node.pci.gpu_count"):
        told = {
            k.inner.subject: k.inner.value
            for k in diagnosis.facts.observations
            if k.fact == fact and k.inner.status is Status.OK and isinstance(k.inner.value, int)
        }
        if told:
            return sum(told.values())
    return None


def line(status: int, text: str) -> str:
    """The part before the performance data; a bar or a line end would break the protocol."""
    from knowledge.text import excerpt

    return f"GPUDIAG {_WORDS[status]} - {excerpt(text.replace('|', '/'), 800)}"
