"""A vendor's tool that prints one table of its devices: asked only where a device of its driver is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from knowledge.observation import Observation
from probes.base import DocumentFormat
from probes.host import Host
from probes.live import ProbeRequest
from probes.live._absent import absent
from probes.live._fetch import document


class Driver(NamedTuple):
    """How the devices of one driver are seen without its tool."""

    there: str  # a path that each of them has, as a pattern
    module: str  # a file that its kernel module has
    none: str  # what is said where there is no device


def printed(
    tool: DocumentFormat, argv: Sequence[str], main: tuple[str, ...], driver: Driver
) -> Callable[[ProbeRequest, Host], list[Observation]]:
    """What collects the observations of the table; without a device of the driver the tool is not started."""

    def collect(request: ProbeRequest, host: Host) -> list[Observation]:
        if not host.files(driver.there):
            return absent(main, host, driver.module, tool, driver.none)
        return document(host.run(argv, deadline=request.deadline), host, tool, main, sums=main)

    return collect
