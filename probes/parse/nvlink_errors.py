"""``nvidia-smi nvlink -e``: error counters of each NVLink.

Volta to Hopper print Replay, Recovery and CRC errors; Blackwell prints packet counters and
bit error rates.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from knowledge.observation import Observation, Scope, Status, Subject
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse import _smi_errors
from probes.parse._smi_emit import Emitter, cleaned
from probes.parse._smi_fields import count
from probes.parse._smi_values import LOST, Reading, absent, not_understood, slug
from probes.parse.nvidia_smi_table import LISTED, listed_gpu

NAME, REVISION = "nvlink-errors", 1
#          Link 0: Replay Errors: 0
#          Link 17: Effective BER: 15e-255
_COUNTER = re.compile(r"\s{0,20}Link (\d{1,3}):?\s{1,4}([A-Z][A-Za-z0-9 ()/-]{2,50}?)\s?:\s{1,8}(\S.{0,60})")
# NVML: Unable to retrieve NVLink error counters ...
_ERROR = re.compile(r"(?:NVML: )?Unable to (?:retrieve|get|query) .{0,160}", re.IGNORECASE)

# slug of the printed counter -> fact
COUNTERS: dict[str, str] = {
    "replay_errors": "link.errors.replay", "replay_error": "link.errors.replay",
    "recovery_errors": "link.errors.recovery", "recovery_error": "link.errors.recovery",
    "crc_errors": "link.errors.crc_flit", "crc_flit_errors": "link.errors.crc_flit",
    "crc_flit_error": "link.errors.crc_flit",
    "crc_data_errors": "link.errors.crc_data", "crc_data_error": "link.errors.crc_data",
    "malformed_packet_errors": "link.errors.malformed_packet",
    "malformed_packet_error": "link.errors.malformed_packet",
    "buffer_overrun_errors": "link.errors.buffer_overrun", "buffer_overrun_error": "link.errors.buffer_overrun",
    "rx_errors": "link.errors.rx", "rx_error": "link.errors.rx",
    "rx_remote_errors": "link.errors.rx_remote", "rx_remote_error": "link.errors.rx_remote",
    "rx_general_errors": "link.errors.rx_general", "rx_general_error": "link.errors.rx_general",
    "local_link_integrity_errors": "link.errors.integrity", "link_integrity_error": "link.errors.integrity",
    "tx_discards": "link.errors.tx_discards",
    "symbol_errors": "link.errors.symbol", "rx_symbol_error": "link.errors.symbol",
    "effective_errors": "link.errors.effective", "effective_error": "link.errors.effective",
    "link_recovery_successful_events": "link.recovery.successful",
    "link_recovery_failed_events": "link.recovery.failed",
    "effective_ber": "link.ber.effective", "symbol_ber": "link.ber.symbol",
}  # fmt: skip
PROVIDES = (*COUNTERS.values(), "gpu.index", "gpu.name", "gpu.uuid", *_smi_errors.PROVIDES)


def rate(text: str) -> Reading:
    """A bit error rate: ``15e-255`` or a decimal number."""
    if reading := absent(text):
        return reading
    found = re.fullmatch(r"(\d{1,10}(?:\.\d{0,20})?)(?:[eE]([+-]?\d{1,3}))?", text.strip())
    if not found:
        return not_understood(text, "a rate")
    value = float(f"{found[1]}e{found[2] or 0}")
    if value > 1:
        return Reading(None, Status.FAILED, f"{text.strip()[:40]} is no rate")
    return Reading(value)


def sniff(head: str) -> int:
    """100 on counters below GPU lines, 85 without them."""
    lines = head.splitlines()[:400]
    hits = sum(1 for x in lines if (m := _COUNTER.fullmatch(x.rstrip())) and slug(m[2]) in COUNTERS)
    if not hits:
        return 0
    return 100 if any(LISTED.fullmatch(x) for x in lines) else 85


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of one listing."""
    emit = Emitter(context, NAME, REVISION)
    read(emit, cleaned(lines_of(text)))
    return emit.finish()


def read(emit: Emitter, lines: Sequence[Line]) -> None:
    """Add the facts of one listing to `emit`. Counters before any GPU line belong to an unnamed one."""
    _smi_errors.errors(emit, lines)
    holder: Subject | None = None
    for line in lines:
        if found := _COUNTER.fullmatch(line.text.rstrip()):
            fact = COUNTERS.get(slug(found[2]))
            if fact is None:
                continue
            subject = Subject(Scope.LINK, str(int(found[1])), holder or emit.gpu("not named"))
            reading = rate(found[3]) if ".ber." in fact else count(found[3])
            emit.add(fact, subject, reading, line.number, line.text)
        elif found := LISTED.fullmatch(line.text):
            holder = listed_gpu(emit, found, line)
        elif holder is not None and _ERROR.search(line.text):
            subject = Subject(Scope.LINK, "all", holder)
            reading = Reading(None, Status.FAILED, line.text.strip()[:160])
            emit.add("link.errors.replay", subject, reading, line.number, line.text)
        if holder is not None and LOST.search(line.text):
            emit.add("gpu.nvml.reachable", holder, False, line.number, line.text)


FORMAT = DocumentFormat(NAME, "nvidia-smi nvlink -e", REVISION, tuple(sorted(set(PROVIDES))), sniff, parse)
