"""XML of ``nvidia-smi -q -x`` (DTDs v4 to v13): the same facts as the text report."""

from __future__ import annotations

from knowledge.observation import Observation
from probes.base import Context, DocumentFormat, lines_of
from probes.parse import _smi_errors
from probes.parse._smi_emit import Emitter
from probes.parse._smi_report import PROVIDES, report
from probes.parse._smi_tree import xml_tree

NAME, REVISION = "nvidia-smi-xml", 2


def sniff(head: str) -> int:
    """100 when the root element or its DTD is named near the top."""
    return 100 if "<nvidia_smi_log" in head or "<!DOCTYPE nvidia_smi_log" in head else 0


def read(emit: Emitter, text: str) -> None:
    """Add the facts of one report to `emit`; a cut report gives what it holds."""
    start = text.find("<")
    _smi_errors.errors(emit, lines_of(text[:start] if start >= 0 else text))
    root, incomplete = xml_tree(text)
    report(emit, root, incomplete)


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of a report."""
    emit = Emitter(context, NAME, REVISION)
    read(emit, text)
    return emit.finish()


FORMAT = DocumentFormat(
    NAME, "nvidia-smi -q -x XML", REVISION, tuple(sorted({*PROVIDES, *_smi_errors.PROVIDES})), sniff, parse
)
