"""Disks, network interfaces, TCP, sockets and file descriptors in a snapshot."""

from __future__ import annotations

import re
from collections.abc import Mapping

from knowledge.observation import Scope, Status, Subject
from knowledge.text import clean
from probes.parse._system_doc import Gap, Number, Out, Pair, Reading, growth, whole

TRAFFIC = ("node.disk.read", "node.disk.write", "node.disk.operations")
BUSIEST = ("node.disk.busiest", "node.disk.busiest.busy", "node.disk.busiest.await", "node.disk.busiest.queue")
NIC_RATES = {
    "nic.rx.rate": 0, "nic.rx.errors.rate": 2, "nic.rx.dropped.rate": 3,
    "nic.tx.rate": 8, "nic.tx.errors.rate": 10, "nic.tx.dropped.rate": 11,
}  # fmt: skip
NIC_TOTALS = {"nic.rx.errors": 2, "nic.rx.dropped": 3, "nic.tx.errors": 10, "nic.tx.dropped": 11}
TCP = ("node.tcp.retransmits", "node.tcp.segments.out", "node.tcp.retransmits.share")
LISTEN = {"node.tcp.listen_overflows": "ListenOverflows", "node.tcp.listen_drops": "ListenDrops"}
UDP = {"node.udp.receive_errors": "RcvbufErrors"}
SOCKETS = {
    "node.sockets.used": ("sockets", "used"), "node.sockets.tcp": ("TCP", "inuse"),
    "node.sockets.tcp.time_wait": ("TCP", "tw"), "node.sockets.tcp.memory": ("TCP", "mem"),
}  # fmt: skip
FILES = ("node.files.open", "node.files.max", "node.files.share")
PROVIDES = (*TRAFFIC, *BUSIEST, *NIC_RATES, *NIC_TOTALS, "nic.operstate", *TCP, *LISTEN, *UDP, *SOCKETS, *FILES)
SECTOR = 512  # bytes of a sector of /proc/diskstats, whatever the disk's own are
MIN_SEGMENTS = 200  # fewer in the window tell no share: one segment would be half a percent
_VIRTUAL = re.compile(r"(?:loop|ram|zram|dm-|md|sr|fd)\d")
_PARTITION = re.compile(r"(?:(?:nvme\d+n\d+|mmcblk\d+)p\d+|(?:[shv]d|xvd)[a-z]+\d+)")
_STATES = frozenset({"up", "down", "unknown", "dormant", "lowerlayerdown", "notpresent", "testing"})


def parse(out: Out) -> None:
    """Everything about disks and the network."""
    _disks(out)
    _interfaces(out)
    _tcp(out)
    _sockets(out)
    _files(out)


# --- disks --------------------------------------------------------------------------------


def _disk_lines(seen: Reading, known: frozenset[str]) -> dict[str, list[int | None]]:
    """The counters of each whole disk: partitions and devices that stand upon others would count twice."""
    out = {}
    for line in seen.text.splitlines():
        words = line.split()
        if len(words) < 14:
            continue
        name = words[2]
        if _VIRTUAL.match(name) or (name not in known if known else _PARTITION.fullmatch(name)):
            continue
        out[name] = [whole(word) for word in words[3:14]]
    return out


def _disks(out: Out) -> None:
    path = "/proc/diskstats"
    pair = out.snapshot.twice(path)
    if isinstance(pair, Gap):
        out.gap((*TRAFFIC, *BUSIEST), pair, path)
        return
    listing = out.snapshot.get("/sys/block")
    names = listing.plain.get("names") if isinstance(listing, Reading) else None
    known = (
        frozenset(n.replace("!", "/") for n in names if isinstance(n, str)) if isinstance(names, list) else frozenset()
    )
    before, after = _disk_lines(pair.before, known), _disk_lines(pair.after, known)
    both = sorted(set(before) & set(after))
    if not both:
        out.gap((*TRAFFIC, *BUSIEST), Gap(Status.NOT_APPLICABLE, "the machine has no disk of its own"), path)
        return
    sums = [0.0, 0.0, 0.0]
    for name in both:
        grown = [growth(before[name][i], after[name][i], f"field {i + 4} of {name} in {path}") for i in (2, 6, 0, 4)]
        if bad := next((g for g in grown if isinstance(g, Gap)), None):
            out.gap(TRAFFIC, bad, path)
            break
        read, written, reads, writes = (g for g in grown if not isinstance(g, Gap))
        sums = [sums[0] + read, sums[1] + written, sums[2] + reads + writes]
    else:
        shown = f"{', '.join(both[:6])}{' ...' if len(both) > 6 else ''} in {pair.seconds:.3f} s"
        for fact, total, times in zip(TRAFFIC, sums, (SECTOR / 2**20, SECTOR / 2**20, 1.0), strict=True):
            out.value(fact, total * times / pair.seconds, pair, shown)
    _busiest(out, pair, before, after, both)


def _busiest(
    out: Out, pair: Pair, before: Mapping[str, list[int | None]], after: Mapping[str, list[int | None]], both: list[str]
) -> None:
    """The disk on which requests waited longest, taken together."""
    path, times = pair.after.path, {}
    for name in both:
        grown = [
            growth(before[name][i], after[name][i], f"field {i + 4} of {name} in {path}") for i in (9, 10, 3, 7, 0, 4)
        ]
        if bad := next((g for g in grown if isinstance(g, Gap)), None):
            out.gap(BUSIEST, bad, path)
            return
        times[name] = [g for g in grown if not isinstance(g, Gap)]
    name = max(both, key=lambda n: (times[n][1], times[n][0], n))
    busy, weighted, reading, writing, reads, writes = times[name]
    milliseconds = pair.seconds * 1000
    shown = f"{name}: busy for {busy} ms of {milliseconds:.0f}, {reads + writes} requests took {reading + writing} ms"
    out.value(BUSIEST[0], name, pair, shown)
    out.value(BUSIEST[1], min(100.0, 100.0 * busy / milliseconds), pair, shown)
    out.value(BUSIEST[3], weighted / milliseconds, pair, shown)
    if reads + writes:
        out.value(BUSIEST[2], (reading + writing) / (reads + writes), pair, shown)
    else:
        gap = Gap(Status.NOT_APPLICABLE, "no request ended between the readings")
        out.gap(BUSIEST[2:3], gap, path, shown=shown)


# --- network ------------------------------------------------------------------------------


def _interfaces(out: Out) -> None:
    path = "/proc/net/dev"
    seen, pair = out.snapshot.get(path), out.snapshot.twice(path)
    if isinstance(seen, Gap):
        out.gap((*NIC_RATES, *NIC_TOTALS), seen, path)
    listing = out.snapshot.get("/sys/class/net")
    devices = listing.plain.get("devices") if isinstance(listing, Reading) else None
    chosen = devices if isinstance(devices, dict) else None
    if isinstance(listing, Gap):
        out.gap(("nic.operstate",), listing, "/sys/class/net")
    for name, entry in sorted((chosen or {}).items()):
        state = entry.get("operstate") if isinstance(entry, dict) else None
        if isinstance(listing, Reading) and isinstance(state, str) and state in _STATES:
            here = Reading(f"/sys/class/net/{name}/operstate", at=listing.at)
            out.value("nic.operstate", state, here, f"{name}: {state}", subject=_nic(out, name))
    if isinstance(seen, Gap):
        return
    lines = _net_lines(seen)
    earlier = {} if isinstance(pair, Gap) else _net_lines(pair.before)
    for name, (line, counts) in sorted(lines.items()):
        if name not in chosen if chosen is not None else name == "lo" or name.startswith("veth"):
            continue  # bridges and the ends of containers count what passes an adapter a second time
        subject = _nic(out, name)
        for fact, field in NIC_TOTALS.items():
            count = counts[field]
            if count is None:
                out.gap((fact,), Gap(Status.FAILED, f"{path} is not understood"), path, subject=subject, shown=line)
            else:
                out.value(fact, count, seen, line, subject=subject)
        if isinstance(pair, Gap):
            out.gap(NIC_RATES, pair, path, subject=subject)
            continue
        old = earlier[name][1] if name in earlier else [None] * 16
        for fact, field in NIC_RATES.items():
            times = 1 / 2**20 if fact in ("nic.rx.rate", "nic.tx.rate") else 1.0
            out.rate(
                fact, old[field], counts[field], pair, f"field {field + 1} of {name}", times=times, subject=subject
            )


def _nic(out: Out, name: str) -> Subject:
    return Subject(Scope.NIC, clean(name), out.node)


def _net_lines(seen: Reading) -> dict[str, tuple[str, list[int | None]]]:
    """Sixteen counters of each interface: eight received, eight sent."""
    out = {}
    for line in seen.text.splitlines():
        name, colon, rest = line.rpartition(":")
        words = rest.split()
        if colon and len(words) >= 16:
            out[name.strip()] = (line, [whole(word) for word in words[:16]])
    return out


def paired(text: str, protocol: str) -> dict[str, str]:
    """A line of names and one of values, both called `protocol` (/proc/net/snmp, /proc/net/netstat)."""
    lines = [line.split()[1:] for line in text.splitlines() if line.startswith(protocol + ":")]
    return dict(zip(lines[0], lines[1], strict=False)) if len(lines) > 1 else {}


def _tcp(out: Out) -> None:
    path = "/proc/net/snmp"
    pair = out.snapshot.twice(path)
    if isinstance(pair, Gap):
        out.gap((*TCP, *UDP), pair, path)
    else:
        one, two = (paired(r.text, "Tcp") for r in (pair.before, pair.after))
        again = [whole(t.get("RetransSegs")) for t in (one, two)]
        sent = [whole(t.get("OutSegs")) for t in (one, two)]
        out.rate(TCP[0], again[0], again[1], pair, "RetransSegs")
        out.rate(TCP[1], sent[0], sent[1], pair, "OutSegs")
        _share(out, pair, growth(again[0], again[1], "RetransSegs"), growth(sent[0], sent[1], "OutSegs"))
        one, two = (paired(r.text, "Udp") for r in (pair.before, pair.after))
        for fact, key in UDP.items():
            out.rate(fact, whole(one.get(key)), whole(two.get(key)), pair, f"Udp {key}")
    path = "/proc/net/netstat"
    more = out.snapshot.twice(path)
    if isinstance(more, Gap):
        out.gap(LISTEN, more, path)
        return
    one, two = (paired(r.text, "TcpExt") for r in (more.before, more.after))
    for fact, key in LISTEN.items():
        out.rate(fact, whole(one.get(key)), whole(two.get(key)), more, key)


def _share(out: Out, pair: Pair, again: Number | Gap, sent: Number | Gap) -> None:
    """Retransmitted segments of all that were sent (OutSegs counts those that were not retransmitted)."""
    if isinstance(again, Gap) or isinstance(sent, Gap):
        bad = again if isinstance(again, Gap) else sent
        out.gap(TCP[2:], bad if isinstance(bad, Gap) else Gap(Status.FAILED, "not understood"), pair.after.path)
    elif again + sent < MIN_SEGMENTS:
        why = f"{again + sent} segments were sent between the readings: too few to tell a share"
        out.gap(TCP[2:], Gap(Status.NOT_APPLICABLE, why), pair.after.path)
    else:
        shown = f"{again} of {again + sent} segments were sent again in {pair.seconds:.3f} s"
        out.value(TCP[2], 100.0 * again / (again + sent), pair, shown)


def _sockets(out: Out) -> None:
    path = "/proc/net/sockstat"
    seen = out.snapshot.get(path)
    if isinstance(seen, Gap):
        out.gap(SOCKETS, seen, path)
        return
    for fact, (start, key) in SOCKETS.items():
        line = seen.line(start + ":")
        words = line.split()
        count = whole(words[words.index(key) + 1]) if key in words[:-1] else None
        if count is None:
            out.gap((fact,), Gap(Status.FAILED, f"{path} does not tell {key} of {start}"), path, shown=line)
        elif key == "mem":
            out.value(fact, count * out.snapshot.page / 2**20, seen, line)  # pages
        else:
            out.value(fact, count, seen, line)


def _files(out: Out) -> None:
    path = "/proc/sys/fs/file-nr"
    seen = out.snapshot.get(path)
    if isinstance(seen, Gap):
        out.gap(FILES, seen, path)
        return
    words = [whole(word) for word in seen.text.split()]
    if len(words) != 3 or None in words or not words[2]:
        out.gap(FILES, Gap(Status.FAILED, f"{path} is not understood"), path, shown=seen.text)
        return
    used, limit = (words[0] or 0) - (words[1] or 0), words[2]
    out.value(FILES[0], max(0, used), seen, seen.text)
    out.value(FILES[1], limit, seen, seen.text)
    out.value(FILES[2], 100.0 * max(0, used) / limit, seen, seen.text)
