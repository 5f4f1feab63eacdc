"""``systemctl --failed`` and ``systemctl list-units`` as a person pastes them: the state of services.

The text of ``systemctl status`` ends in lines of the journal and is read as a log: these tell why.
"""

from __future__ import annotations

import re

from knowledge.observation import Observation
from knowledge.text import clean
from probes.base import Context, DocumentFormat, lines_of
from probes.parse._host_snapshot import Snapshot
from probes.parse._systemctl import Unit
from probes.parse.services_snapshot import OF_UNIT, STATES, tell

NAME, REVISION = "systemctl-list", 1
PROVIDES = (*STATES, *(fact for fact in OF_UNIT if fact != "service.uptime"))
#   UNIT                          LOAD   ACTIVE SUB    DESCRIPTION
_HEADING = re.compile(
    r"[ *\u25cf]{0,4}UNIT\s{1,200}LOAD\s{1,20}ACTIVE\s{1,20}SUB\s{1,40}(?:JOB\s{1,20})?DESCRIPTION\s{0,20}"
)
# \u25cf nvidia-fabricmanager.service  loaded failed failed NVIDIA fabric manager service
_ROW = re.compile(
    r"[ *\u25cf\u00d7\u25cb]{0,4}([\w@:.\\-]{1,200}\.service)\s{1,200}(loaded|not-found|masked|error|bad-setting|merged|stub)\s{1,20}([a-z]{3,20})\s{1,20}([a-z-]{3,40})\b.{0,400}"
)


def sniff(head: str) -> int:
    """94 for the heading of a list."""
    return 94 if any(_HEADING.fullmatch(line.text[:900]) for line in lines_of(head)[:400]) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of the services."""
    emit = Snapshot(context, NAME, REVISION, {})
    found: dict[str, Unit] = {}
    for line in lines_of(text):
        told = clean(line.text[:900])
        if row := _ROW.fullmatch(told):
            words = {"Id": row[1], "LoadState": row[2], "ActiveState": row[3], "SubState": row[4]}
            found.setdefault(row[1], Unit(words, line.number))
    tell(emit, list(found.values()), "systemctl", None)
    return emit.out


FORMAT = DocumentFormat(NAME, "systemctl list-units", REVISION, PROVIDES, sniff, parse)
