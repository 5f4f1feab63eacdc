"""The host's memory as EDAC, the storms of corrected errors, and the daemons mcelog and rasdaemon tell of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from knowledge.observation import Scalar
from probes.parse._kernel_common import Reading, body, rx, says
from probes.parse._kernel_shape import Entry, Kind

TRIGGERS = (r"CMCI storm", r"memory error count exceeded", r"mcelog(?:\[\d{1,8}\])?: Location", r"mc_event:")
HINTS = ("CMCI storm", "count exceeded", "mcelog", "mc_event")
# EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0 (channel:0 slot:0 page:0x1 offset:0x0 ...)
# EDAC MC0: 1 CE single-bit ECC on unknown memory (node:0 card:2 module:0 ...)        EDAC MC2: 4 CE error on CPU#0Channel#2_DIMM#0 (channel:2
_EDAC = r"EDAC (?:\w{1,20} )?(MC\d{1,3}): (\d{1,9}) (CE|UE) ?(.{0,400})"
_MODULE = r"(?:(.{1,120}?) )?on (?:(?:any|unknown) (?:memory|label)|(.{1,200}?)) \(([\w:. -]{1,80})"
_PARTS = r"(csrow|channel|slot|node|card|module):(\d{1,5})"
# CMCI storm detected: switching to poll mode        CPU12 BANK7 CMCI storm detected
_STORM = r"(?:CPU(\d{1,5}) BANK(\d{1,4}) )?CMCI storm detected"
# mcelog: corrected DIMM memory error count exceeded threshold: 10 in 24h        mcelog: Location: SOCKET:0 CHANNEL:0 DIMM:? []
_MCELOG = r"^(Un)?corrected (?:DIMM|Socket) memory error count exceeded threshold: (\d{1,9}) in \d"
_LOCATION = r"^Location:? (SOCKET:\S{1,6})(?: (CHANNEL:\S{1,6}))?(?: (DIMM:\S{1,6}))?(?: \[(.{1,60})\])?"
# rasdaemon: <...>-1128  [004]     0.000006: mc_event: 2024-03-19 10:57:23 -0700 1 Corrected error: memory read error on DIMM_A1 (mc: 0 location: 1:0
_RASDAEMON = r"\bmc_event: .{0,60}?\b(\d{1,9}) (Corrected|Uncorrected|Fatal) errors?:? ?(?:(.{1,120}?) )?on (.{1,160}?) \(mc: ?(\d{1,3}) location: ?([\d:-]{1,20})"


def read(reading: Reading) -> None:
    """Memory errors by their module, and storms."""
    for place, entry in enumerate(reading.entries):
        message = entry.message
        if entry.kind is Kind.DAEMON:
            if entry.tag.startswith("mcelog") and "count exceeded" in message:
                _mcelog(reading, place, entry)
            elif "mc_event" in message and (found := rx(_RASDAEMON).search(message)):
                label = f"{found[4]}, MC{found[5]} location {found[6]}"
                _emit(
                    reading,
                    entry,
                    "corrected" if found[2] == "Corrected" else "uncorrected",
                    int(found[1]),
                    label,
                    found[3],
                )
        elif "EDAC" in message and (found := rx(_EDAC).search(message)) and says(entry, found.start()):
            _edac(reading, entry, found)
        elif "CMCI storm" in message and (found := rx(_STORM).search(message)) and says(entry, found.start()):
            fields: dict[str, Scalar] = {
                "cpu": int(found[1]) if found[1] else None, "bank": int(found[2]) if found[2] else None, "severity": "storm",
                "text": body(message),
            }  # fmt: skip
            reading.event("machine_check", reading.node(entry), entry, fields)


def _edac(reading: Reading, entry: Entry, found: re.Match[str]) -> None:
    """The module by its label and its place on the controller: the label may be the driver's own, or a wrong one of the board."""
    said = body(found[4], 300)
    location, error = said.partition(" (")[0], ""
    if told := rx(_MODULE).match(said):
        place = " ".join((found[1], *(f"{m[1]} {m[2]}" for m in rx(_PARTS).finditer(told[3]))))
        location, error = f"{told[2]}, {place}" if told[2] else place, told[1] or ""
    severity = "corrected" if found[3] == "CE" else "uncorrected"
    _emit(reading, entry, severity, int(found[2]), location, error, found[1])


def _mcelog(reading: Reading, place: int, entry: Entry) -> None:
    """What mcelog says once of a module whose limit was passed; the lines behind it name the module."""
    found = rx(_MCELOG).match(entry.message)
    if found is None:
        return
    named = next((m for other in _behind(reading.entries, place) if (m := rx(_LOCATION).match(other.message))), None)
    location = " ".join(part.replace(":", " ") for part in named.groups() if part) if named else ""
    _emit(reading, entry, "uncorrected" if found[1] else "corrected", int(found[2]), location)


def _behind(entries: Sequence[Entry], place: int) -> Sequence[Entry]:
    return [e for e in entries[place + 1 : place + 4] if e.kind is Kind.DAEMON and e.tag.startswith("mcelog")]


def _emit(
    reading: Reading, entry: Entry, severity: str, count: int, location: str, error: str | None = "", controller: str = ""
) -> None:  # fmt: skip
    fields: dict[str, Scalar] = {
        "severity": severity, "count": count, "controller": controller, "location": location, "error": error or "",
        "text": body(entry.message),
    }  # fmt: skip
    times = max(1, count) if severity == "corrected" else 1
    reading.event("host_memory_error", reading.node(entry), entry, fields, times=times)
