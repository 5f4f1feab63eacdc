"""Several nvidia-smi outputs in one file, each under a banner that names its command.

::

    ################################################################################
    # idle :: topo -m
    # $ nvidia-smi topo -m
    ################################################################################
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from knowledge.observation import Observation
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse import (
    nvidia_smi_csv,
    nvidia_smi_q,
    nvidia_smi_table,
    nvidia_smi_topo,
    nvidia_smi_xml,
    nvlink_errors,
    nvlink_status,
)  # fmt: skip
from probes.parse._smi_emit import Emitter

_RULE = re.compile(r"#{20,200}\s{0,4}")
_COMMAND = re.compile(r"# \$ (?:\S{0,80}/)?nvidia-smi(?:\s(.{0,20000}))?")
_ANY = re.compile(r"^# \$ (?:\S{0,80}/)?nvidia-smi(?: |$)", re.MULTILINE)
_Reader = tuple[str, int, Callable[[Emitter, Sequence[Line]], None]]
NAME, REVISION = "nvidia-smi-bundle", 1


def sniff(head: str) -> int:
    """100 when a ruled banner names an nvidia-smi command."""
    return 100 if "#" * 20 in head and _ANY.search(head) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of every section whose command is known; line numbers are those of the whole file."""
    out: list[Observation] = []
    for command, lines in sections(lines_of(text)):
        reader = reader_of(command)
        if reader is None:
            continue
        name, revision, read = reader
        emit = Emitter(context, name, revision)
        read(emit, lines)
        out += emit.finish()
    return out


def sections(lines: Sequence[Line]) -> list[tuple[str, list[Line]]]:
    """Command (without ``nvidia-smi``) and body of each section; a body before any banner is a report."""
    out: list[tuple[str, list[Line]]] = []
    command: str | None = "-q"
    body: list[Line] = []
    banner = False
    for line in lines:
        if _RULE.fullmatch(line.text):
            if not banner and body and command is not None:
                out.append((command, body))
            banner, body = not banner, []
            if banner:
                command = None
        elif banner:
            if found := _COMMAND.fullmatch(line.text.rstrip()):
                command = (found[1] or "").strip()
        else:
            body.append(line)
    if body and command is not None and not banner:
        out.append((command, body))
    return out


def reader_of(command: str) -> _Reader | None:
    """The parser of a command's output; None when there is none (help texts, for instance)."""
    words = command.split()
    if "-x" in words and "-q" in words:
        return nvidia_smi_xml.NAME, nvidia_smi_xml.REVISION, _read_xml
    if "-h" in words or any(w.startswith("--help") for w in words):
        return None
    if words[:1] == ["topo"]:
        return nvidia_smi_topo.NAME, nvidia_smi_topo.REVISION, nvidia_smi_topo.read
    if words[:1] == ["nvlink"]:
        if any(w in ("-e", "--errorcounters", "-ec") for w in words):
            return nvlink_errors.NAME, nvlink_errors.REVISION, nvlink_errors.read
        if any(w in ("-s", "--status") for w in words):
            return nvlink_status.NAME, nvlink_status.REVISION, nvlink_status.read
        return None
    if "-q" in words or "--query" in words:
        return nvidia_smi_q.NAME, nvidia_smi_q.REVISION, nvidia_smi_q.read
    if words[:1] in (["dmon"], ["pmon"]) or any(w.startswith("--query-") for w in words):
        return nvidia_smi_csv.NAME, nvidia_smi_csv.REVISION, nvidia_smi_csv.read
    if not words or words[0] in ("-L", "--list-gpus", "-i"):
        return nvidia_smi_table.NAME, nvidia_smi_table.REVISION, nvidia_smi_table.read
    return None


def _read_xml(emit: Emitter, lines: Sequence[Line]) -> None:
    nvidia_smi_xml.read(emit, "\n".join(line.text for line in lines))


_READ = (nvidia_smi_q, nvidia_smi_xml, nvidia_smi_table, nvidia_smi_csv, nvidia_smi_topo, nvlink_status, nvlink_errors)
FORMAT = DocumentFormat(
    NAME, "file of several nvidia-smi outputs", REVISION,
    tuple(sorted({fact for module in _READ for fact in module.FORMAT.provides})), sniff, parse,
)  # fmt: skip
