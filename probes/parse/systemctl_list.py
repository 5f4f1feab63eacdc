"""``systemctl --failed`` and ``systemctl list-units`` as a person pastes them: the state of services and of what else failed.

A list of failed units that is empty is an answer; one of other units tells nothing of those that are not loaded.
The text of ``systemctl status`` ends in lines of the journal and is read as a log: these tell why.
"""

from __future__ import annotations

import re

from knowledge.observation import Observation, Status
from knowledge.text import clean
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse._host_snapshot import Snapshot
from probes.parse._smi_values import Reading
from probes.parse._systemctl import UNIT, Unit
from probes.parse.services_snapshot import OF_UNIT, STATES, tell

NAME, REVISION = "systemctl-list", 3
PROVIDES = (*STATES, *(fact for fact in OF_UNIT if fact != "service.uptime"))
#   UNIT                          LOAD   ACTIVE SUB    DESCRIPTION
_HEADING = re.compile(
    r"[ *\u25cf]{0,4}UNIT\s{1,200}LOAD\s{1,20}ACTIVE\s{1,20}SUB\s{1,40}(?:JOB\s{1,20})?DESCRIPTION\s{0,20}"
)
# \u25cf nvidia-fabricmanager.service  loaded failed failed NVIDIA fabric manager service
_ROW = re.compile(
    rf"[ *\u25cf\u00d7\u25cb]{{0,4}}({UNIT})\s{{1,200}}(loaded|not-found|masked|error|bad-setting|merged|stub)\s{{1,20}}([a-z]{{3,20}})\s{{1,20}}([a-z-]{{3,40}})\b.{{0,400}}"
)
# 0 loaded units listed.            0 loaded units listed. Pass --all to see loaded but inactive units, too.
_NONE = re.compile(r"\s{0,4}0 loaded units listed\.(?P<any> Pass --all to see .{0,80})?\s{0,4}")
_HINT = re.compile(r"\s{0,4}To show all installed unit files use .{0,60}")
_CALL = re.compile(
    r"(?:.{0,120}[$#>] ?)?(?:sudo )?systemctl\b(?P<failed>.{0,80}--(?:failed|state[= ]failed)\b)?.{0,120}"
)


def sniff(head: str) -> int:
    """94 for the heading of a list, and for an empty one without it."""
    lines = [line for line in lines_of(head)[:400] if line.text.strip()]
    if any(_HEADING.fullmatch(line.text[:900]) for line in lines):
        return 94
    return 94 if _none_failed(lines) is not None else 0


def _none_failed(lines: list[Line]) -> Line | None:
    """The line that says that no unit has failed, where nothing else is told.

    Older versions add how to see more to each list, newer ones not to that of failed units: with it the command has to be there.
    """
    rest = [line for line in lines if not _HEADING.fullmatch(line.text[:900]) and not _HINT.fullmatch(line.text[:900])]
    calls = [found for line in rest if (found := _CALL.fullmatch(line.text[:400]))]
    counts = [(line, found) for line in rest if (found := _NONE.fullmatch(line.text[:400]))]
    if len(calls) + len(counts) < len(rest) or len(calls) > 1 or len(counts) != 1:
        return None
    line, told = counts[0]
    asked = calls[0]["failed"] is not None if calls else told["any"] is None
    return line if asked else None


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of the services, and of other units that failed."""
    emit = Snapshot(context, NAME, REVISION, {})
    found: dict[str, Unit] = {}
    for line in lines_of(text):
        told = clean(line.text[:900])
        if (row := _ROW.fullmatch(told)) and (row[1].endswith(".service") or row[3] == "failed"):
            words = {"Id": row[1], "LoadState": row[2], "ActiveState": row[3], "SubState": row[4]}
            found.setdefault(row[1], Unit(words, line.number))
    tell(emit, list(found.values()), "systemctl", None)
    if none := _none_failed([line for line in lines_of(text) if line.text.strip()]):
        emit.add(
            "service.state", emit.node, Reading(None, Status.NONE_SEEN), "systemctl --failed", clean(none.text.strip())
        )
    return emit.out


FORMAT = DocumentFormat(NAME, "systemctl list-units", REVISION, PROVIDES, sniff, parse)
