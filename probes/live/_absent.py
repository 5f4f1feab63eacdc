"""What a probe says where the thing that it looks at is not there: nothing is started, and the reason is told.

A listing without a line looks alike on a machine that has none of it and in a recording that never asked. So one small
file is read that is there only with the thing: a live machine says that it is absent, a recording that it does not know.
"""

from __future__ import annotations

from collections.abc import Iterable

from knowledge.observation import Observation, Status
from probes.base import DocumentFormat
from probes.host import Host
from probes.live._fetch import missing


def absent(facts: Iterable[str], host: Host, path: str, parser: DocumentFormat, why: str) -> list[Observation]:
    """The facts without a value: `why` where the file at `path` is not there, else what kept it from being read."""
    reply = host.read(path)
    if reply.status in (Status.OK, Status.UNSUPPORTED):
        return missing(facts, host, reply, parser, Status.UNSUPPORTED, why)
    return missing(facts, host, reply, parser)
