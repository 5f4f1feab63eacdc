"""``systemctl show UNIT...`` as a person captures it: the state of services."""

from __future__ import annotations

import re

from knowledge.observation import Observation
from probes.base import Context, DocumentFormat
from probes.parse._host_snapshot import Snapshot
from probes.parse._systemctl import UNIT, units
from probes.parse.services_snapshot import OF_UNIT, STATES, tell

NAME, REVISION = "systemctl-show", 2
PROVIDES = (*STATES, *(fact for fact in OF_UNIT if fact != "service.uptime"))
_ID = re.compile(rf"^Id={UNIT}\s{{0,4}}$", re.MULTILINE)
_STATE = re.compile(r"^ActiveState=[a-z-]{3,20}\s{0,4}$", re.MULTILINE)


def sniff(head: str) -> int:
    """95 on the block of a service with its state."""
    return 95 if _ID.search(head) and _STATE.search(head) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of the units. How long they have been active is not told without the time of the capture."""
    emit = Snapshot(context, NAME, REVISION, {})
    tell(emit, units(text.splitlines()), "systemctl show", None)
    return emit.out


FORMAT = DocumentFormat(NAME, "systemctl show", REVISION, PROVIDES, sniff, parse)
