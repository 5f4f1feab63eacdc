"""The kernel log of a machine as text: whole, in the words of the source that keeps it.

The probe ``kernel-log`` draws facts from the same replies; this is for people who want to read the lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo

from knowledge.observation import Clock, Observation, Status
from knowledge.record import dataclass
from probes.host import Host
from probes.live._kernel_sources import Part, Span, Spot, boot_time, crashes, files, journal, of_zone, ring, zone_of
from probes.live.kernel_log import LOOKBACK, NAMES

DEADLINE = 20.0  # seconds for one source: a journal of 50,000 lines takes some two


@dataclass(frozen=True, slots=True)
class KernelText:
    """What one source holds. `data` is empty, and `why` says the reason, where it holds nothing of the kernel."""

    kind: str  # "journal", "ring", "files", "crash"
    title: str  # the call: "journalctl -k", "/dev/kmsg", "/var/log/kern.log"
    data: bytes = b""
    found: tuple[Observation, ...] = ()  # what the parser read in it, by line
    status: Status = Status.OK
    why: str = ""  # why there is nothing, or not all
    boot: int | None = None  # when the boot clock began, ns UTC
    zone: tzinfo | None = None  # of the machine, for times that name none
    until: int | None = None  # when it was read, ns UTC

    def spot(self, latest: int | None) -> Spot:
        """What places a time of this text in UTC, where that can be told. `latest`: its latest time without a year."""
        boot, zoned = self.boot, of_zone(self.zone, self.until, latest) if self.zone and self.until else None

        def spot(at: int, clock: Clock) -> tuple[int, Clock]:
            if clock is Clock.BOOT:
                return (boot + at, Clock.REALTIME) if boot is not None else (at, clock)
            return zoned(at, clock) if zoned else (at, clock)

        return spot


def kernel_texts(host: Host, deadline: float = DEADLINE) -> Iterator[KernelText]:
    """The journal, the ring buffer, the files of a syslog daemon where neither answers, and what a crash left.

    The first that holds something is the best; a source that holds nothing says why.
    """
    until, boot = host.as_of, boot_time(host)
    span = Span(until - LOOKBACK, until) if until is not None else None
    told = False
    for source in (journal, ring, files, crashes):
        if source is files and told:
            continue
        # The journal prints times of UTC; with a span it would only be asked for the boots that it keeps as well.
        for part in source(host, None if source is journal else span, deadline):
            zone = zone_of(host) if part.kind == "files" and part.readable else None
            yield _text(part, boot if part.kind == "ring" else None, zone, until)
            told = told or part.readable
            if source is files and part.readable:
                break


def _text(part: Part, boot: int | None, zone: tzinfo | None, until: int | None) -> KernelText:
    title = part.reply.title if part.reply.call[0] != "journalctl" else "journalctl -k"
    shown = f"{NAMES[part.kind]}: {title}" if part.kind == "crash" else title
    data = part.reply.data if part.readable else b""
    why = part.why or ("" if part.readable else f"{title}: holds no line of the kernel")
    return KernelText(part.kind, shown, data, part.found if part.readable else (), part.status, why, boot, zone, until)
