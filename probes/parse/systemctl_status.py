"""``systemctl status UNIT``: the state of a service, and what the last lines of its journal say.

The journal's lines are read as those of a log, but prove nothing by what they lack: they are ten.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from knowledge.observation import Observation, Status
from knowledge.text import clean
from probes.base import Context, DocumentFormat, lines_of
from probes.parse import kernel_log
from probes.parse._host_snapshot import Snapshot
from probes.parse._systemctl import UNIT, Unit
from probes.parse.services_snapshot import OF_UNIT, STATES, tell

NAME, REVISION = "systemctl-status", 3
# What daemons say in their own journal, and how many of their errors were not understood; the kernel says nothing there.
_LOGGED = (
    "fm_error",
    "fm_failed",
    "fm_gave_up",
    "fm_nothing_to_do",
    "fm_version_mismatch",
    "hostengine_failed",
    "imex_connection_lost",
    "imex_error",
    "log.driver.errors_not_read",
    "nvidia_service_failed",
    "persistenced_failed",
)
PROVIDES = (*STATES, *(fact for fact in OF_UNIT if fact != "service.uptime"), *_LOGGED)
# \u25cf nvidia-fabricmanager.service - NVIDIA fabric manager service
_NAME = re.compile(rf"[ *x\u25cf\u00d7\u25cb\u21bb]{{0,4}}({UNIT})(?: - .{{0,200}})?")
#      Loaded: loaded (/lib/systemd/system/slurmd.service; enabled; vendor preset: enabled)
_LOADED = re.compile(
    r"\s{1,12}Loaded: (loaded|not-found|masked|error|bad-setting)\b(?: \([^;)]{0,300}; ([\w-]{2,40}))?.{0,300}"
)
#      Active: failed (Result: exit-code) since Tue 2026-11-24 00:31:12 UTC; 42min ago        activating (auto-restart) (Result: ...)
_ACTIVE = re.compile(r"\s{1,12}Active: ([a-z-]{3,20})(?: \(([a-z-]{2,30})\))?.{0,300}")
_CALL = "systemctl status"
_RESULT = re.compile(r"\(Result: ([a-z-]{2,40})\)")


def sniff(head: str) -> int:
    """94 for a unit with its state below it."""
    lines = [line.text[:600] for line in lines_of(head)[:400]]
    named = any(_NAME.fullmatch(line.rstrip()) for line in lines)
    return (
        94
        if named and any(_ACTIVE.fullmatch(line) for line in lines) and any(_LOADED.fullmatch(line) for line in lines)
        else 0
    )


def parse(text: str, context: Context) -> list[Observation]:
    """Facts of each service, and the events of its journal's lines."""
    emit = Snapshot(context, NAME, REVISION, {})
    found: list[dict[str, str]] = []
    lines = lines_of(text)
    places: list[int] = []
    for line in lines:
        told = clean(line.text[:900]).rstrip()
        if named := _NAME.fullmatch(told):
            found.append({"Id": named[1]})
            places.append(line.number)
        elif found and (loaded := _LOADED.fullmatch(told)):
            found[-1] |= {"LoadState": loaded[1], "UnitFileState": loaded[2] or ""}
        elif found and (active := _ACTIVE.fullmatch(told)):
            result = _RESULT.search(told)
            sub = active[2] or ("failed" if active[1] == "failed" else "")
            found[-1] |= {"ActiveState": active[1], "SubState": sub, "Result": result[1] if result else ""}
    units = [Unit(words, at) for words, at in zip(found, places, strict=True) if "ActiveState" in words]
    last = {unit.id: unit for unit in units}  # of one that is shown twice what is shown last
    tell(emit, tuple(last.values()), _CALL, None)
    return [_placed(o, context, last) for o in emit.out] + [
        o for o in kernel_log.parse(lines, context) if o.status is Status.OK and o.fact in _LOGGED
    ]


def _placed(o: Observation, context: Context, units: Mapping[str, Unit]) -> Observation:
    """With the file and the line: two files of one unit are two voices."""
    unit = units.get(o.source.call.removeprefix(f"{_CALL} "))
    return replace(o, source=replace(o.source, call=context.source, line=unit.line)) if unit is not None else o


FORMAT = DocumentFormat(NAME, "systemctl status", REVISION, PROVIDES, sniff, parse)
