"""A call into the GPU driver that does not come back is itself evidence."""

from __future__ import annotations

import re
from collections.abc import Iterable

from knowledge.observation import Observation, Source, Status, node
from probes._children import BUSY
from probes.base import DocumentFormat
from probes.host import Host, Reply
from probes.live._fetch import reason
from probes.parse.nvml_snapshot import OPENS_WITHIN

STATE = "node.driver.state"
_WAITED = re.compile(
    r"^no end after (\d+(?:\.\d+)?(?:e[+-]?\d+)?) s$"
)  # what a live host says, of a child that it could end


def unresponsive(found: Iterable[Observation], reply: Reply, host: Host, parser: DocumentFormat) -> list[Observation]:
    """`found`, with the state of the driver put right when the call had to be given up.

    What it printed before it hung may well say that the driver is loaded. Why the call was given up is the excerpt. A
    call that had less time than any driver needs shows nothing, and one that was runnable till the end hung nowhere.
    """
    if BUSY in reply.detail:
        return list(found)  # it was kept from the CPU, or still at work: no word of the driver
    waited = _WAITED.match(reply.detail)
    if reply.status is not Status.TIMEOUT or (waited and float(waited[1]) < OPENS_WITHIN):
        return list(found)
    source = Source(parser.name, reply.title, None, parser.revision)
    said = Observation(STATE, node(host.name), "unresponsive", source=source, excerpt=reason(reply))
    return [*(o for o in found if o.fact != STATE), said]
