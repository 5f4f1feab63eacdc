"""The log of NVIDIA Fabric Manager (``/var/log/fabricmanager.log``), and of IMEX in the same layout (``/var/log/nvidia-imex.log``)."""

from __future__ import annotations

from collections.abc import Sequence

from knowledge.observation import Clock, Observation, Status, node
from knowledge.text import clean
from probes.base import Context, Line, LogFormat, lines_of
from probes.parse._kernel_common import Reading, rx
from probes.parse._kernel_fabric import OF_IMEX, fabric, imex
from probes.parse._kernel_shape import Entry, Kind
from probes.parse._logtime import calendar_stamp

NAME = "fabricmanager-log"
REVISION = 5
EVENTS = (
    "fm_error",
    "fm_gave_up",
    "fm_nothing_to_do",
    "fm_version_mismatch",
    "nvlink_training_failed",
    "sxid",
)
IMEX_EVENTS = ("imex_connection_lost", "imex_error")

# [Feb 27 2025 15:10:02] [ERROR] [tid 12727] detected NVSwitch non-fatal error 12028 on fid 0 ...
_LINE = (
    r"\[([^\W\d]{3,9}\.?|\d{1,2}月) {1,2}(\d{1,2}) (\d{4}) (\d\d:\d\d:\d\d)\] \[(\w{3,12})\] \[tid (\d{1,12})\] ?(.*)"
)
_NONE = "the log was read from end to end of this window; what is not listed did not occur in it"


def parse(lines: Sequence[Line], context: Context) -> list[Observation]:
    """SXIDs and errors that Fabric Manager logged; times are of the node's own zone (LOCAL)."""
    entries: list[Entry] = []
    levels: list[str] = []
    for line in lines:
        text = clean(line.text[:65_536])
        found = rx(_LINE).match(text)
        stamp = calendar_stamp(found[1], found[2], found[4], found[3]) if found else None
        if found and stamp:
            entries.append(
                Entry(line.number, text, found[7], Kind.DAEMON, stamp, tag=NAME, at=stamp.value, clock=Clock.LOCAL)
            )
            levels.append(found[5])
    reading = Reading(entries, context, NAME, REVISION)
    of_imex = any(rx(OF_IMEX).search(entry.message) for entry in entries)
    for entry, level in zip(entries, levels, strict=True):
        (imex if of_imex else fabric)(reading, entry, level)
    return [*reading.found, *_coverage(entries, context, of_imex)]


def _coverage(entries: Sequence[Entry], context: Context, of_imex: bool) -> list[Observation]:
    source, here = context.at(NAME, REVISION), node(context.host)
    times = [e.at for e in entries if e.at is not None]
    if not times:
        detail = "no line of Fabric Manager's log among those read"
        return [Observation("log.fabricmanager.readable", here, None, Status.FAILED, source, detail=detail)]
    window = (min(times), max(times))
    none = [
        Observation(fact, here, None, Status.NONE_SEEN, source, window[1], Clock.LOCAL, window, detail=_NONE)
        for fact in (IMEX_EVENTS if of_imex else EVENTS)
    ]
    return none if of_imex else [Observation("log.fabricmanager.readable", here, True, source=source), *none]


def sniff(head: str) -> int:
    """Certain when a good part of the first lines have Fabric Manager's shape."""
    lines = [line.text for line in lines_of(head)[:400] if line.text.strip()]
    hits = sum(rx(_LINE).match(text[:400]) is not None for text in lines)
    return 0 if not hits else 96 if hits * 5 >= len(lines) else 45


FORMAT = LogFormat(
    name=NAME,
    title="Fabric Manager or IMEX log",
    revision=REVISION,
    provides=(*EVENTS, *IMEX_EVENTS, "log.fabricmanager.readable", "node.fabricmanager.version", "node.version.imex"),
    sniff=sniff,
    triggers=(
        r"\] \[(?:ERROR|CRITICAL|FATAL|ALERT)\] \[tid ",
        r"detected NVSwitch",
        r"raining fail",
        r"excluded from",
        r"NV_WARN_NOTHING_TO_DO",
        r"match with driver version",
        r"abric [Mm]anager version",
        r"IMEX version",
        r"node \d+ with ip address",
    ),
    parse=parse,
)
