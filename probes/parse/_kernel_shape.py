"""The shapes in which kernel messages are written down, and their reduction to one: `Entry`.

The same printk reaches people through dmesg, syslog daemons, the journal, pstore, container
runtimes and agents. Each shape below stands with a sample line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from knowledge.lazy import lazy
from knowledge.observation import Clock
from knowledge.record import dataclass
from knowledge.text import clean
from probes.base import Line
from probes.parse._json import loaded
from probes.parse._logtime import ISO, Stamp, calendar_stamp, iso_stamp, parse_iso, seconds

LIMIT = 65_536  # characters of a line that are looked at


class Kind(StrEnum):
    """Who wrote a line."""

    KERNEL = "kernel"  # the shape says that the kernel did
    BARE = "bare"  # no prefix at all: perhaps `dmesg -t`, perhaps anything
    DAEMON = "daemon"  # a program, through syslog or the journal
    QUOTE = "quote"  # the line is part of another tool's message


@dataclass(slots=True)
class Entry:
    """One message: what it says, when, on which host, and who wrote it.

    `at` and `clock` are filled in once all lines of the log are known; nothing else changes.
    """

    number: int
    raw: str
    message: str
    kind: Kind = Kind.BARE
    stamp: Stamp | None = None
    host: str = ""
    tag: str = ""  # program name, for a daemon
    indented: bool = False
    uptime: int | None = None  # ns since the boot, where the line tells them beside the time of a wall clock
    boot_id: str = ""  # of the journal
    at: int | None = None  # settled time, ns of `clock`
    clock: Clock = Clock.NONE

    @property
    def boots(self) -> bool:
        """True for a line that opens a boot."""
        return self.message.startswith(BOOT_MARKS) and self.kind in (Kind.KERNEL, Kind.BARE)

    @property
    def ticks(self) -> int | None:
        """ns since the boot, however the line tells them."""
        told = self.stamp
        return told.value if told is not None and told.clock is Clock.BOOT and not told.delta else self.uptime


BOOT_MARKS = ("Linux version ", "-- Boot ", "-- Reboot --")

# 6,3973,227996636,-;msg            6,3973,227996636,-,caller=T12;msg
_KMSG = lazy(r"(\d{1,6}),\d+,(\d{1,18})(?:,[^;]{0,80})?;(.*)", re.DOTALL)
# <3>[6085126.134786] NVRM: ...     <1>BUG: ...
_PRIORITY = lazy(r"<(\d{1,3})>")
# <4>1 2024-05-01T10:00:00.1Z host kernel - - - msg           (RFC 5424)
_RFC5424 = lazy(
    r"1 (?:-|" + ISO + r") (?P<host>\S+) (?P<tag>\S+) \S+ \S+ (?:-|(?:\[[^\]]{0,2000}\])+) ?(?P<msg>.*)", re.DOTALL
)
# 192.168.11.119: kern: warning: [2026-04-22T21:30:51.526447914Z]: NVRM: ...      (talosctl dmesg)
_TALOS = lazy(r"(?:(\S+): )?([a-z]\w*): +([a-z]+): +\[([^\]]{10,40})\]: ?(.*)", re.DOTALL)
# kern  :warn  : 2025-01-21T04:41:44,283302+00:00 NVRM: ...                       (dmesg --decode)
_DECODED = lazy(r"(kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|local\d) *:[a-z]+ *: ?")
# [  201.650687] msg    [201.650687 <    0.000012>] msg    [123.4][ T1234] msg    [   12.3] [   C0] msg
_SECONDS = lazy(r"\[ *(\d{1,10}\.\d{1,9})(?: *<[^>]{0,20}>)?\](?: ?\[ *[TC]\d+\])?:? ?")
# [    12.345] (II) LoadModule: "nvidia"        the X server's log looks like dmesg
_XORG = ("(II)", "(WW)", "(EE)", "(--)", "(==)", "(**)", "(++)", "(!!)", "(NI)", "(??)")
# [  +0.000844] msg
_DELTA = lazy(r"\[ *\+(\d{1,8}\.\d{1,9})\](?: ?\[ *[TC]\d+\])? ?")
# [Fri Oct 14 14:56:49 2022] msg    [二 11月 15 14:15:47 2022] msg    [... 2022 <    0.000012>]
_CTIME = lazy(
    r"\[ *[^\s\]]{1,12} +([^\s\]\d]{2,10}|\d{1,2}[月월]) +(\d{1,2}) (\d\d:\d\d:\d\d)(?: ([A-Z]{2,5}))? (\d{4})"
    r"(?: *<[^>]{0,20}>)?\](?: ?\[ *[TC]\d+\])? ?"
)
# [Sep20 12:00] msg    the minute marks of `dmesg -H`
_MINUTE = lazy(r"\[([^\W\d]{3,5})(\d\d) (\d\d:\d\d)\] ?")
# Nov 22 18:29:55 hostname kernel: msg    11月 15 14:15:47 ...    Nov 22 2024 18:29:55 ...
_SYSLOG = lazy(
    r"([^\W\d]{3,10}\.?|\d{1,2}[月월]) {1,2}(\d{1,2})(?: (\d{4}))? (\d\d:\d\d:\d\d(?:\.\d{1,9})?)(?: (UTC|GMT)\b)? +"
)
# Fri 2022-10-14 14:56:49 UTC host kernel: msg       (journalctl short-full; localised weekday)
_FULL = lazy(r"[^\W\d]{1,12}\.? (?=\d{4}-\d\d-\d\d )")
_ZONE_NAME = lazy(r" ?[A-Z]{3,5}\b(?= )")
_ISO_HEAD = lazy(ISO)
# 2020/08/10 19:09:42 msg                            (Go programs)
_SLASHED = lazy(r"(\d{4})/(\d\d)/(\d\d) (\d\d:\d\d:\d\d(?:\.\d{1,9})?) ")
# > [Fri Aug 30 11:43:09 2024] msg      +> [12.3] msg      **Nov 22 14:56:44 host kernel: msg**      (a pasted log)
_PASTED = lazy(r"(?:[+-]?>|[+*|•-])(?: +|(?=\[))|\*\*(?=[\[<\w])")
# [2025-11-12T10:22:44.101] error: Setting node gpu-b-031 state to DRAIN ...         slurmctld, slurmd, slurmstepd
_SLURM = lazy(r"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?)\] (?=\S)")
# 2026-11-27_04:11:40.220+0100: [E] Lost membership in cluster gpfs1. Unmounting file systems.        mmfs.log of GPFS
_MMFS = lazy(r"(\d{4}-\d\d-\d\d)_(\d\d:\d\d:\d\d\.\d{1,9}[+-]\d{4}): (?=\[[A-Z]\] )")
# I1112 08:03:11.442188       1 server.go:146] Registered device plugin for 'nvidia.com/gpu' with Kubelet
_KLOG = lazy(r"[IWEF](\d\d)(\d\d) (\d\d:\d\d:\d\d\.\d{1,9}) +\d{1,10} [\w.-]{1,80}\.go:\d{1,6}\] ")
# 1665755809.123456 host kernel: msg                 (journalctl short-unix)
_UNIX = lazy(r"(\d{10}\.\d{1,9}) +")
# 2024-05-01T10:00:00.1Z stdout F msg                (container runtime)
_STREAM = lazy(r" ?(?:stdout|stderr) [FP] ")
# host kernel: msg    host app[12]: msg    kernel: msg    host kern.warn kernel: msg (busybox)
# a level of a log stands where the host would: 2026-11-25T10:02:11Z ERROR shard-manager: ...
_HOST = (
    r"(?!(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL) )(?P<host>[\w.%-](?:[\w.:%-]{0,254}[\w.%-])?)"
)
_TAG = lazy(
    rf"(?:{_HOST} +(?:[a-z]\w{{1,8}}\.[a-z]{{3,8}} +)?)?(?P<tag>[^\s:\[\]]{{1,64}})(?:\[(?P<pid>\d{{1,10}})\])?: ?"
)
_HOST_TAG = lazy(rf"{_HOST} (?P<tag>kernel|[^\s:\[\]]{{1,64}}\[\d{{1,10}}\]): ?")
# gpu-012: [  123.4] NVRM: ...       (pdsh, clush)
_PARALLEL = lazy(r"([\w.-]{1,120}): (?=\[|<\d|kern |[^\W\d]{3} {1,2}\d|\d{4}-\d\d-\d\d)")
# /var/log/kern.log.1:Nov 22 18:29:55 ...     kern.log-1234-Nov 22 ...     1234:[  123.4] ...      (grep -H, -n, -C)
_GREPPED = lazy(
    r"(?:[\w.@~-]{0,80}(?:/[\w.@~-]{0,80}){1,20}?[:-]|[\w.@-]{0,80}(?:log|messages|dmesg)[\w.@-]{0,40}[:-]|(?=\d))"
    r"(?:\d{1,9}[:-])?(?=\[|<\d|[^\W\d]{3} {1,2}\d|\d{4}-\d\d-\d\d)"
)
# Tags that begin a driver's own message rather than name a program.
_DRIVER_TAG = lazy(r"NVRM|nvidia-nvswitch\d*|nvidia-nvlink|nvidia_peermem|pcieport|nvidia|mce|EDAC|AER|BUG")

_HOST_KEYS = ("_HOSTNAME", "hostname", "Hostname", "host", "node_name", "nodeName", "nodename", "node")
_TIME_KEYS = ("timestamp", "@timestamp", "time", "ts", "receiveTimestamp", "date")
# Substrings that make a JSON string worth reading as a kernel message.
_WORTH = ("NVRM", "Xid", "kernel:", "nvidia", "nv-", "pcieport", "AER", "oom", "Out of memory", "[")

# MESSAGE=...  (export)      MESSAGE=...  indented (verbose)      "MESSAGE" : "...",  (json-pretty)
_FIELD = lazy(r"\s*(?:\"([A-Z_][A-Z0-9_]{1,63})\" ?: |([A-Z_][A-Z0-9_]{1,63})=)(.*)", re.DOTALL)
# Fri 2022-10-14 14:56:49.123456 UTC [s=06eb;i=1;b=59b7;m=1;t=5;x=f]      the head of a verbose record
_VERBOSE = lazy(r"[^\W\d]{1,12}\.? " + ISO + r"(?: ?[A-Z]{2,5})? \[s=")
_RECORD_KEYS = frozenset({
    "__CURSOR", "__REALTIME_TIMESTAMP", "_SOURCE_REALTIME_TIMESTAMP", "_HOSTNAME", "MESSAGE", "_TRANSPORT",
    "SYSLOG_IDENTIFIER", "_BOOT_ID", "__MONOTONIC_TIMESTAMP", "PRIORITY", "SYSLOG_FACILITY", "_MACHINE_ID",
})  # fmt: skip


def is_record_file(lines: Sequence[Line]) -> bool:
    """True for journal output whose records span several lines (export, verbose, json-pretty)."""
    return sum(1 for line in lines[:200] if _field(line.text[:400], started=False)) >= 2


def _field(text: str, started: bool) -> tuple[str, str] | None:
    """Name and raw value of a journal field; the first of a record must be one of the usual."""
    found = _FIELD.match(text)
    if found is None:
        return None
    name = found[1] or found[2]
    return (name, found[3]) if started or name in _RECORD_KEYS else None


class _Record:
    """The fields of one journal record whose lines are still coming in."""

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}
        self.place: Line | None = None
        self.stamp: Stamp | None = None
        self.begun = False  # a brace stood alone: what follows is fields, in any order
        self.binary = False  # "MESSAGE" stood alone: the next line is length and text

    def entries(self) -> list[Entry]:
        """The messages of the record; what merely looks like a field is an ordinary line."""
        place = self.place
        if place is None:
            return []
        if "MESSAGE" not in self.fields or not any(name.startswith("_") for name in self.fields):
            return [parse_line(place.number, clean(place.text[:LIMIT]))]
        out = list(_from_journal(place.number, clean(place.text[:LIMIT]), self.fields))
        for entry in out:
            entry.stamp = entry.stamp or self.stamp
        return out

    def add(self, line: Line, name: str, value: Any) -> None:
        """One more field."""
        self.fields.setdefault(name, value)
        if name == "MESSAGE" or self.place is None:
            self.place = line


def entries_of(lines: Sequence[Line]) -> list[Entry]:
    """All messages of `lines`, in order; lines that carry none (JSON braces, blanks) are left out."""
    out: list[Entry] = []
    record = _Record()
    for line in lines:
        text = clean(line.text[:LIMIT])
        if record.binary:
            record.add(line, "MESSAGE", text)
            record.binary = False
        elif field := _field(text, record.begun or bool(record.fields)):
            if field[0] == "__CURSOR" and not record.begun:
                out += record.entries()
                record = _Record()
            record.add(line, field[0], _field_value(field[1]))
        elif record.fields and text == "MESSAGE":
            record.binary = True
        else:
            out += record.entries()
            record = _Record()
            record.begun = text.strip() == "{"
            if head := _VERBOSE.match(text):
                record.stamp = iso_stamp(head)
            elif text.strip(" \t{}[],"):
                out += _entries(line.number, text)
    return out + record.entries()


def _field_value(text: str) -> Any:
    """A field of a record; json-pretty quotes it."""
    text = text.rstrip(" ,") if text[:1] in '"[' else text
    if text[:1] in '"[':
        try:
            return loaded(text)
        except ValueError:
            return text.strip('"')
    return text


def _entries(number: int, text: str) -> Iterator[Entry]:
    brace = text.find("{")
    if brace >= 0 and text.rstrip().endswith("}") and '":' in text.replace('" :', '":'):
        try:
            data = loaded(text[brace:])
        except (ValueError, RecursionError):
            data = None
        if isinstance(data, dict):
            outer = parse_line(number, text[:brace]) if brace else Entry(number, text, "")
            found = list(_from_json(number, text, data, outer))
            if found:
                yield from found
                return
    yield parse_line(number, text)


def _from_json(number: int, raw: str, data: Mapping[str, Any], outer: Entry) -> Iterator[Entry]:
    """The messages within a JSON object; `outer` is what stands ahead of it on the line."""
    if "MESSAGE" in data and ("__REALTIME_TIMESTAMP" in data or "_TRANSPORT" in data or "SYSLOG_IDENTIFIER" in data):
        yield from _from_journal(number, raw, data)
        return
    stamp, host = _json_stamp(data) or outer.stamp, _json_host(data) or outer.host
    for text in _strings(data):
        for part in text.splitlines():
            if any(word in part for word in _WORTH):
                inner = parse_line(number, clean(part.rstrip()))
                kind = Kind.QUOTE if inner.kind is Kind.BARE else inner.kind
                wins = inner.stamp is not None and inner.stamp.clock in (Clock.REALTIME, Clock.LOCAL)
                yield _with(
                    inner, raw=raw, kind=kind, host=inner.host or host,
                    stamp=inner.stamp if wins or stamp is None else stamp,
                )  # fmt: skip


def _from_journal(number: int, raw: str, data: Mapping[str, Any]) -> Iterator[Entry]:
    message = data.get("MESSAGE")
    if isinstance(message, list):  # bytes that are no UTF-8, or hold control characters
        message = bytes(b for b in message if isinstance(b, int) and 0 <= b < 256).decode("utf-8", "replace")
    if not isinstance(message, str):
        return
    tag = str(data.get("SYSLOG_IDENTIFIER") or data.get("_COMM") or "")
    kernel = data.get("_TRANSPORT") == "kernel" or tag == "kernel"
    stamp: Stamp | None = None
    time = str(data.get("_SOURCE_REALTIME_TIMESTAMP") or data.get("__REALTIME_TIMESTAMP") or "")
    if time.isdigit() and len(time) <= 17:
        stamp = Stamp(Clock.REALTIME, int(time) * 1000)
    host = str(data.get("_HOSTNAME") or "")
    for part in message.splitlines() or [""]:
        text = clean(part)
        kind = Kind.KERNEL if kernel else Kind.DAEMON
        entry = Entry(
            number, raw, text, kind, stamp, host, "" if kernel else tag, boot_id=str(data.get("_BOOT_ID") or "")
        )
        ticks = str(data.get("_SOURCE_MONOTONIC_TIMESTAMP") or "")
        entry.uptime = int(ticks) * 1000 if ticks.isdecimal() and len(ticks) <= 16 else None
        yield _said(entry, text) if kernel else entry


def _json_stamp(data: Mapping[str, Any]) -> Stamp | None:
    for key in _TIME_KEYS:
        value = data.get(key)
        if isinstance(value, str) and (stamp := parse_iso(value)):
            return stamp
        if isinstance(value, int | float) and not isinstance(value, bool) and 1e9 <= value < 4e9:
            return Stamp(Clock.REALTIME, round(value * 10**6) * 1000)
    return None


def _json_host(data: Mapping[str, Any]) -> str:
    for key in _HOST_KEYS:
        value = data.get(key)
        if isinstance(value, str) and value and " " not in value:
            return value
    return ""


def _strings(data: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif depth < 8 and isinstance(data, Mapping):
        for value in data.values():
            yield from _strings(value, depth + 1)
    elif depth < 8 and isinstance(data, list):
        for value in data[:1000]:
            yield from _strings(value, depth + 1)


def _with(entry: Entry, **changes: Any) -> Entry:
    """A fresh entry with some of its parts told; much cheaper than `dataclasses.replace`."""
    for name, value in changes.items():
        setattr(entry, name, value)
    return entry


def parse_line(number: int, text: str, nested: bool = False) -> Entry:
    """One line of text in any shape but JSON. Never fails: at worst the whole line is the message.

    A `nested` text is what a container runtime or a parallel shell put its mark ahead of.
    """
    indented = text[:1] in (" ", "\t")
    body = text.strip()
    entry = Entry(number, text, body, indented=indented)
    if not nested and (found := _PASTED.match(body)):
        inner = parse_line(number, body[found.end() :].removesuffix("**"), nested=True)
        if inner.stamp is not None or inner.kind is Kind.KERNEL:
            return _with(inner, raw=text)
    if found := _KMSG.match(body):
        kind = Kind.KERNEL if int(found[1]) >> 3 == 0 else Kind.DAEMON
        return _with(entry, message=found[3], kind=kind, stamp=Stamp(Clock.BOOT, int(found[2]) * 1000))
    kernel = False
    if found := _PRIORITY.match(body):
        rest = body[found.end() :]
        kernel = int(found[1]) >> 3 == 0
        if rfc := _RFC5424.match(rest):
            return _rfc5424(entry, rfc, kernel)
        body = rest
        if kernel and not rest.startswith("["):
            entry = _with(entry, message=rest, kind=Kind.KERNEL)
    if found := _TALOS.match(body):
        return _talos(entry, found)
    if found := _DECODED.match(body):
        kernel = True  # only dmesg prints these
        body = body[found.end() :]
        entry = _with(entry, message=body, kind=Kind.KERNEL)
    return _timed(entry, body, kernel, nested)


def _rfc5424(entry: Entry, found: re.Match[str], kernel: bool) -> Entry:
    stamp = iso_stamp(found) if found["y"] else None
    tag = "" if found["tag"] == "-" else found["tag"]
    host = "" if found["host"] == "-" else found["host"]
    kernel = kernel or tag == "kernel"
    entry = _with(entry, kind=Kind.KERNEL if kernel else Kind.DAEMON, stamp=stamp, host=host, tag="" if kernel else tag)
    return _said(entry, found["msg"]) if kernel else _with(entry, message=found["msg"])


def _talos(entry: Entry, found: re.Match[str]) -> Entry:
    stamp = parse_iso(found[4])
    if stamp is None and (ticks := _SECONDS.match(f"[{found[4]}]")):
        stamp = Stamp(Clock.BOOT, seconds(ticks[1]))
    kind = Kind.KERNEL if found[2] == "kern" else Kind.DAEMON
    return _with(
        entry,
        message=found[5],
        kind=kind,
        stamp=stamp,
        host=found[1] or "",
        tag="" if kind is Kind.KERNEL else found[2],
    )


def _timed(entry: Entry, body: str, kernel: bool, nested: bool) -> Entry:
    """The shapes that begin with a time, or with nothing."""
    if (found := _SECONDS.match(body)) and not body.startswith(_XORG, found.end()):
        return _ring(entry, body[found.end() :], Stamp(Clock.BOOT, seconds(found[1])))
    if found := _DELTA.match(body):
        return _with(
            entry,
            kind=Kind.KERNEL,
            message=body[found.end() :],
            stamp=Stamp(Clock.MONOTONIC, seconds(found[1]), delta=True),
        )
    if (found := _CTIME.match(body)) and (
        stamp := calendar_stamp(found[1], found[2], found[3], found[5], found[4] or "")
    ):
        return _with(entry, kind=Kind.KERNEL, message=body[found.end() :], stamp=stamp)
    if (found := _MINUTE.match(body)) and (stamp := calendar_stamp(found[1], found[2], found[3])):
        return _with(entry, kind=Kind.KERNEL, message=body[found.end() :], stamp=stamp)
    if (found := _SLURM.match(body)) and (stamp := parse_iso(found[1])):
        return _with(entry, message=body[found.end() :], kind=Kind.DAEMON, tag="slurm", stamp=stamp)
    if (found := _MMFS.match(body)) and (stamp := parse_iso(f"{found[1]} {found[2]}")):
        return _with(entry, message=body[found.end() :], kind=Kind.DAEMON, tag="mmfs", stamp=stamp)
    if (found := _KLOG.match(body)) and (stamp := calendar_stamp(f"{int(found[1])}月", found[2], found[3])):
        return _with(entry, message=body[found.end() :], kind=Kind.DAEMON, tag="klog", stamp=stamp)
    start = found.end() if (found := _FULL.match(body)) else 0
    if (found := _ISO_HEAD.match(body, start)) and (stamp := iso_stamp(found)):
        end = found.end()
        if start and not found["z"] and (zone := _ZONE_NAME.match(body, end)):
            end = zone.end()
        if not nested and (stream := _STREAM.match(body, end)):
            inner = parse_line(entry.number, body[stream.end() :], nested=True)
            return _with(inner, raw=entry.raw, stamp=stamp, kind=_outer(inner.kind))
        return _tagged(entry, body[end:].lstrip(), stamp, kernel)
    if (found := _SYSLOG.match(body)) and (
        stamp := calendar_stamp(found[1], found[2], found[4], found[3], found[5] or "")
    ):
        return _tagged(entry, body[found.end() :], stamp, kernel)
    if (found := _SLASHED.match(body)) and (stamp := parse_iso(f"{found[1]}-{found[2]}-{found[3]} {found[4]}")):
        rest = body[found.end() :]
        if _HOST_TAG.match(rest) or rest.startswith("kernel: "):
            return _tagged(entry, rest, stamp, kernel)
        return _with(entry, message=rest, kind=Kind.QUOTE, stamp=stamp)
    if found := _UNIX.match(body):
        return _tagged(entry, body[found.end() :], Stamp(Clock.REALTIME, seconds(found[1])), kernel)
    if body.startswith("kernel: "):
        return _said(_with(entry, kind=Kind.KERNEL), body[8:])
    if _HOST_TAG.match(body):
        return _tagged(entry, body, None, kernel)
    if not nested and (found := _PARALLEL.match(body)):
        inner = parse_line(entry.number, body[found.end() :], nested=True)
        if inner.kind is Kind.KERNEL:
            return _with(inner, raw=entry.raw, host=inner.host or found[1])
    if not nested and (found := _GREPPED.match(body)) and found.end():
        inner = parse_line(entry.number, body[found.end() :], nested=True)
        if inner.stamp is not None:
            return _with(inner, raw=entry.raw)
    if (found := _TAG.match(body)) and found["pid"]:
        return _with(entry, message=body[found.end() :], kind=Kind.DAEMON, tag=found["tag"], host=found["host"] or "")
    return entry


def _outer(kind: Kind) -> Kind:
    return Kind.QUOTE if kind is Kind.BARE else kind


def _ring(entry: Entry, body: str, stamp: Stamp) -> Entry:
    """``[secs] msg`` of dmesg, or ``[secs] host kernel: msg`` of the journal's short-monotonic."""
    if _HOST_TAG.match(body):
        return _tagged(entry, body, stamp, kernel=False)
    return _with(entry, message=body, stamp=stamp, kind=Kind.KERNEL)


def _tagged(entry: Entry, body: str, stamp: Stamp | None, kernel: bool) -> Entry:
    """What stands behind a syslog time: ``[host] tag[pid]: msg``, with parts missing."""
    entry = _with(entry, stamp=stamp)
    found = _TAG.match(body)
    if not found:
        if _SECONDS.match(body):
            return _said(_with(entry, kind=Kind.KERNEL), body)
        return _with(entry, message=body, kind=Kind.KERNEL if kernel else Kind.QUOTE)
    host, tag, rest = found["host"] or "", found["tag"], body[found.end() :]
    if tag == "kernel":
        return _said(_with(entry, kind=Kind.KERNEL, host=host), rest)
    if not found["pid"] and _DRIVER_TAG.fullmatch(tag):
        return _with(entry, message=body[found.start("tag") :], kind=Kind.KERNEL, host=host)
    if kernel:
        return _with(entry, message=body, kind=Kind.KERNEL)
    return _with(entry, message=rest, kind=Kind.DAEMON, host=host, tag=tag)


def _said(entry: Entry, text: str) -> Entry:
    """The entry of a line of the kernel behind whose time `text` stands: perhaps the seconds since the boot, then the message."""
    found = _SECONDS.match(text)
    return _with(entry, message=text[found.end() :], uptime=seconds(found[1])) if found else _with(entry, message=text)
