"""``ethtool -S``: the counters of one interface, under the names of its driver.

    NIC statistics:
         rx_packets: 81203
         tx_pause_storm_error_events: 0

One reading: what was paused within it is not told. Rows that were picked out (``ethtool -S ens2np0 | grep phy``) are known by the names of
counters of the wire; whose they are, only the command says.
"""

from __future__ import annotations

import re
from dataclasses import replace

from knowledge.observation import Observation, Scope, Status, Subject
from probes.base import Context, DocumentFormat
from probes.parse import _interface_counters
from probes.parse._app_emit import clean_lines
from probes.parse._interface_counters import Reading, emit_counters
from probes.parse._sysfs import Sheet
from probes.parse._whose import interface

NAME, REVISION = "ethtool-stats", 4
_HEAD = re.compile(r"^\s{0,8}NIC statistics:\s{0,8}$", re.MULTILINE)
# $ ethtool -S ens2np0 | egrep 'phy|err'        a filter took the headline away
_ASKED = re.compile(
    r"(?m)^[^\n]{0,120}\bethtool (?:-S|--statistics) [\w.:@-]{1,40}\b[^\n]{0,200}\n {1,12}[\w.\[\]-]{1,60}: \d{1,20}\s{0,4}$"
)
_LINE = re.compile(r"\s{1,12}([\w.\[\]-]{1,60})(?: \(.{0,20}\))?: (\d{1,20})\s{0,4}")
# Damage that error correction did not mend, and links that were lost -> how many are many: for the links what ibqueryerrors takes
# for many of InfiniBand's, for damage a packet in a thousand seconds of a month.
_MANY = {
    **dict.fromkeys(
        (
            "rx_crc_errors_phy",
            "rx_symbol_err_phy",
            "rx_pcs_symbol_err_phy",
            "rx_crc_errors",
            "rx_fcs_err_frames",
            "rx_crc_errors.nic",
        ),
        2600,
    ),
    **dict.fromkeys(("link_down_events_phy", "link_down_events"), 10),
}
# rx_prio3_discards: 918223      rx_prio3_pause: 0      tx_prio3_pause: 0      a priority of its own is for traffic that must not be lost
_DROPPED = re.compile(r"rx_prio([1-7])_discards")
_OF_WIRE = re.compile(r"[rt]x_[a-z0-9_]{2,40}_phy|[rt]x_prio[0-7]_[a-z_]{2,40}")
_UNPAUSED_MANY = 1000
_ERROR = re.compile(r"(?:netlink error|Cannot get stats (?:strings )?(?:information|count)): (.{1,120})")
_MOST = 20_000


def sniff(head: str) -> int:
    """90 on the headline, or on the command with a counter below it; 80 on rows of which one is a counter of the wire."""
    if _HEAD.search(head) or _ASKED.search(head):
        return 90
    written = [line for line in head.splitlines() if line.strip()][:2000]
    rows = [found[1] for line in written if (found := _LINE.fullmatch(line[:200]))]
    return (
        80
        if rows and len(rows) == len(written) and any(name in _MANY or _OF_WIRE.fullmatch(name) for name in rows)
        else 0
    )


def parse(text: str, context: Context) -> list[Observation]:
    """Counters of the interface."""
    sheet = Sheet.of(NAME, REVISION, context, {})
    subject = Subject(Scope.NIC, interface(text, context), sheet.node)
    values: dict[str, int] = {}
    lines: dict[str, int] = {}
    for line in clean_lines(text):
        if len(values) < _MOST and (found := _LINE.fullmatch(line.text)):
            values.setdefault(found[1], int(found[2]))
            lines.setdefault(found[1], line.number)
    if not values:
        found = _ERROR.search(text)
        why = found[1] if found else "no counter is printed"
        sheet.missing("nic.pause.rx", subject, Status.UNSUPPORTED if found else Status.FAILED, why, context.source)
        return sheet.out
    emit_counters(sheet, subject, {}, [Reading(None, None, values)])
    if judged := [(name, value) for name, value in values.items() if name in _MANY]:
        over = tuple(sorted(f"{name} {value}" for name, value in judged if value >= _MANY[name]))
        shown = ", ".join(f"{name}: {value}" for name, value in judged)
        sheet.fact("nic.counters.over", subject, over, context.source, shown)
    dropped = [(m[1], value) for name, value in values.items() if (m := _DROPPED.fullmatch(name))]
    pausing = [(n, value, _pauses(values, n)) for n, value in dropped]
    if told := [(n, value, pauses) for n, value, pauses in pausing if pauses is not None]:
        free = tuple(sorted(f"prio{n} {value}" for n, value, pauses in told if value >= _UNPAUSED_MANY and not pauses))
        shown = ", ".join(f"rx_prio{n}_discards: {value}" for n, value, _ in told)
        sheet.fact("nic.priorities.unpaused", subject, free, context.source, shown)
    return [replace(o, source=replace(o.source, call=context.source, line=_line(o, lines))) for o in sheet.out]


def _pauses(values: dict[str, int], priority: str) -> int | None:
    """Pause frames of a priority in both directions; None where the driver does not count them."""
    told = [values.get(f"{way}_prio{priority}_pause") for way in ("rx", "tx")]
    return None if None in told else sum(n for n in told if n is not None)


def _line(o: Observation, lines: dict[str, int]) -> int | None:
    return lines.get(o.excerpt.partition(":")[0])


FORMAT = DocumentFormat(
    NAME,
    "ethtool -S",
    REVISION,
    (*_interface_counters.FACTS, "nic.counters.over", "nic.priorities.unpaused"),
    sniff,
    parse,
)
