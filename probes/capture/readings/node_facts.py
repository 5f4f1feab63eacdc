"""Facts from samples of the whole machine: its run queue, swapping, and traffic of its network adapters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from knowledge.observation import Observation, Scope, Status, Subject, node
from knowledge.text import clean
from probes.capture.readings import timebase
from probes.capture.readings._telling import Gap, Teller, Told, Window, begun, gap, growth, inside, known, mapping

PROBE = "job-samples"
BAD_LOOKS = "fewer than two looks at it"
PAGE = 4096  # bytes of a page that is swapped, where the document does not tell
RDMA_WORD = 4  # bytes: port_rcv_data and port_xmit_data count in units of four (InfiniBand specification, PortCounters)


def observations(document: Mapping[str, Any], host: str, *, window: Window | None = None) -> list[Observation]:
    """What the samples say of the whole machine."""
    tell = Teller(PROBE, begun(document, window))
    here = node(host)
    if why := gap(document) if "status" in document else None:
        for fact in ("node.window.run_queue", "node.window.swap.in"):
            tell.add(fact, here, why)
        return tell.out
    at = timebase.times(document.get("at"))
    running = known(document.get("running"), inside(at, window))
    shown = (
        f"{len(running)} readings, {int(running.min())} to {int(running.max())}, of which one is the sampler"
        if len(running)
        else ""
    )
    queue: Told = (
        float(max(running.mean() - 1, 0.0)) if len(running) else Gap(Status.FAILED, "/proc/loadavg was not read")
    )
    tell.add("node.window.run_queue", here, queue, "/proc/loadavg", shown)
    _swap(tell, here, document, window)
    _network(tell, here, document.get("network"), window)
    _rdma(tell, here, document.get("rdma"), window)
    return tell.out


def _swap(tell: Teller, here: Subject, document: Mapping[str, Any], window: Window | None) -> None:
    read = document.get("vmstat")
    about, told_page = mapping(read), document.get("page_bytes")
    page = told_page if isinstance(told_page, int) else PAGE
    grown, seconds = growth(timebase.times(about.get("at")), about.get("pswpin"), window)
    told: Told = (
        grown * page / seconds
        if seconds > 0
        else gap(read if "status" in about else {}) or Gap(Status.FAILED, BAD_LOOKS)
    )
    tell.add(
        "node.window.swap.in",
        here,
        told,
        "/proc/vmstat",
        f"pswpin grew by {grown:.0f} in {seconds:.3f} s" if seconds else "",
    )


def _network(tell: Teller, here: Subject, read: object, window: Window | None) -> None:
    about = mapping(read)
    at = timebase.times(about.get("at"))
    for name, counters in sorted(about.items()):
        if isinstance(counters, Mapping) and any(_ever(counters.get(c)) for c in ("rx_bytes", "tx_bytes")):
            _traffic(
                tell,
                Subject(Scope.NIC, clean(name), here),
                at,
                (counters, "rx_bytes", "tx_bytes"),
                1,
                "/proc/net/dev",
                window,
            )


def _rdma(tell: Teller, here: Subject, read: object, window: Window | None) -> None:
    about = mapping(read)
    at = timebase.times(about.get("at"))
    for name, counters in sorted(about.items()):
        if isinstance(counters, Mapping) and name.endswith("/ports/1"):
            subject = Subject(Scope.NIC, clean(name.partition("/")[0]), here)
            names = (counters, "port_rcv_data", "port_xmit_data")
            _traffic(tell, subject, at, names, RDMA_WORD, f"/sys/class/infiniband/{name}/counters", window)


def _traffic(
    tell: Teller, nic: Subject, at: timebase.Times, names: tuple[Mapping[str, Any], str, str], unit: int, call: str,
    window: Window | None,
) -> None:  # fmt: skip
    counters, *both = names
    for fact, name in zip(("node.window.nic.rx", "node.window.nic.tx"), both, strict=True):
        grown, seconds = growth(at, counters.get(name), window)
        told: Told = grown * unit / seconds if seconds > 0 else Gap(Status.FAILED, BAD_LOOKS)
        tell.add(fact, nic, told, call, f"{name} grew by {grown:.0f} in {seconds:.3f} s" if seconds else "")


def _ever(values: object) -> bool:
    return isinstance(values, Sequence) and any(isinstance(v, int) and v > 0 for v in values)
