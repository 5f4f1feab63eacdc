"""What the recognisers of kernel and daemon messages share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache

from knowledge.identity import UNKNOWN_PCI, is_pci, normalise_pci
from knowledge.lazy import lazy
from knowledge.observation import Clock, Event, Observation, Scalar, Scope, Source, Status, Subject, gpu, node
from knowledge.text import excerpt
from probes.base import Context
from probes.parse._kernel_shape import Entry, Kind
from probes.parse._logtime import SECOND, names_host
from probes.parse._speakers import hearsay

# An address as drivers print it; not validated: a device "cd" occurs in virtual machines.
PCI = r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?"
# NVRM: GPU at PCI:0000:91:00: GPU-...   NVRM: GPU 0000:91:00.0: ...   NVRM: Xid (PCI:0000:91:00): 79, ...
_NAMES_GPU = (
    r"NVRM: .{0,160}?\b([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?)\b",
    r"NVRM: Xid \((?:PCI:)?(00[0-9a-fA-F]{2}:[0-9a-fA-F]{2})\)",
    # nvidia 0000:3b:00.0: AER: can't recover        nvidia-gpu 0000:09:00.3: Refused to change power state
    r"\bnvidia(?:-gpu|-vgpu-vfio)? ((?:[0-9a-fA-F]{4,8}:)[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F])\b",
)
# NVRM: GPU5 _kgspRpcRecvPoll: ...       ... waiting for RPC response from GPU4 GSP!
_INSTANCE = r"\bGPU(\d{1,3})\b"
# NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023
LOADING = r"NVRM: loading NVIDIA UNIX .{0,60}?Kernel Module .{0,40}?(\d{2,4}\.\d{1,4}(?:\.\d{1,3})?)\b"
# Words that make a mention of a message a command about it.
_COMMAND = lazy(r"\b(?:[efz]?grep|rg|awk|sed|echo|printf|logger)\b|\bCOMMAND=|\bCMD \(|\b_raw_params=")
# What stands ahead of a message that somebody writes about: a comment, source code, an example in prose.
#     # NVRM: Xid (PCI:0000:3b:00): 79, ...        line = "NVRM: Xid ..."        parse("NVRM: Xid ...")
#     When a node reports `NVRM: Xid ...` drain it.        XID 48 ("NVRM: Xid ...") asks for a reset.
#     The message looks like this: `NVRM: Xid ...`      test_parse.py::test_xid79 PASSED: "NVRM: Xid ..."
_MENTION = lazy(
    r"^\s*(?:#|//)|\bassert\b|::test_\w|\b(?:PASSED|FAILED|SKIPPED|XFAIL|XPASS)\b.{0,40}[\"'`]|\w\s{1,4}(?::=|==?)\s{1,4}[bfru]{0,2}[\"'`]|\w\(\s{0,4}[bfru]{0,2}[\"'`]|"
    r"(?:\w\s{1,2}\(?|\w（|[\u4e00-\u9fff]\s{0,2}[(（]?)[`\"“「『](?:NVRM: )?$|"
    r"\b(?:[Ee]\.g\.|(?:[Ff]or )?[Ee]xample|[Ll]ooks? like|[Ss]uch as|of the form)\b.{0,40}$"
)
_NO_NAME = frozenset({"localhost", "localhost.localdomain", "(none)", "-"})
_UNNAMED = f"{UNKNOWN_PCI}unnamed"


@lru_cache(maxsize=4096)
def address_of(text: str) -> str:
    """The canonical address of `text`; logs repeat few of them very often."""
    return normalise_pci(text)


@cache
def rx(pattern: str) -> re.Pattern[str]:
    """`pattern`, compiled at its first use: most logs need few of them."""
    return re.compile(pattern)


class Reading:
    """One log being read: its entries, the GPUs that it names, and the observations so far.

    `backwards`: its lines do not stand in the order of their times: ``journalctl -r`` on the boot clock, pstore.
    """

    def __init__(
        self, entries: Sequence[Entry], context: Context, probe: str, revision: int, backwards: bool = False,
    ) -> None:  # fmt: skip
        self.entries = entries
        self.backwards = backwards
        self.context = context
        self.probe = probe
        self.revision = revision
        self.found: list[Observation] = []
        self.again: set[int] = set()  # numbers of lines that only go on with an event of a line before
        self.gpus: set[tuple[str, str]] = set()  # (host, slot)
        self.instances: dict[tuple[str, int], str] = {}  # (host, RM instance) -> address
        for entry in entries:
            self._learn(entry)

    def _learn(self, entry: Entry) -> None:
        if "NVRM: " not in entry.message and "nvidia" not in entry.message:
            return
        for pattern in _NAMES_GPU:
            if named := rx(pattern).search(entry.message):
                address = address_of(named[1])
                if not is_pci(address):
                    continue
                self.gpus.add((self.host(entry), slot(address)))
                index = rx(_INSTANCE).search(entry.message, named.end())
                if index and "Xid" in entry.message:
                    self.instances.setdefault((self.host(entry), int(index[1])), address)

    def host(self, entry: Entry) -> str:
        """The host that the line names, else the one that the input was taken on."""
        if entry.host and entry.host not in _NO_NAME and names_host(entry.host):
            return entry.host
        return self.context.host

    def node(self, entry: Entry) -> Subject:
        """The node that wrote the line."""
        return node(self.host(entry))

    def gpu(self, entry: Entry, address: str) -> Subject:
        """The GPU at `address` on the host of the line."""
        return gpu(address_of(address), self.host(entry))

    def device(self, entry: Entry, address: str) -> Subject:
        """The GPU in that slot when the log names one there, else the PCI device itself."""
        canonical, host = address_of(address), self.host(entry)
        if (host, slot(canonical)) in self.gpus:
            return gpu(f"{slot(canonical)}.0", host)
        return Subject(Scope.PCI, canonical, node(host))

    def is_gpu(self, entry: Entry, address: str) -> bool:
        """True when the log names a GPU in the slot of `address`."""
        return (self.host(entry), slot(address_of(address))) in self.gpus

    def near_gpu(self, index: int) -> Subject:
        """The GPU that an NVRM line without an address is about.

        The address in the line itself; else the one that the log ties to its ``GPU<n>``;
        else the only one that NVRM names within four lines and five seconds. Failing that
        a GPU of its own, never merged with another.
        """
        entry = self.entries[index]
        for pattern in _NAMES_GPU:
            if named := rx(pattern).search(entry.message):
                return self.gpu(entry, named[1])
        host = self.host(entry)
        instance = rx(_INSTANCE).search(entry.message)
        if instance and (tied := self.instances.get((host, int(instance[1])))):
            return gpu(tied, host)
        near = {
            address_of(named[1])
            for other in self._around(index)
            for pattern in _NAMES_GPU
            if (named := rx(pattern).search(other.message))
        }
        if len(near) == 1:
            return gpu(near.pop(), host)
        return gpu(f"instance:{instance[1]}" if instance else _UNNAMED, host)

    def _around(self, index: int) -> Iterator[Entry]:
        entry = self.entries[index]
        for other in self.entries[max(0, index - 6) : index + 7]:
            close = abs(other.number - entry.number) <= 4 and self.host(other) == self.host(entry)
            if close and within(entry, other, 5 * SECOND):
                yield other

    def add(
        self, fact: str, subject: Subject, entry: Entry, value: Scalar | Event = None, *,
        status: Status = Status.OK, detail: str = "", raw: str = "", times: int = 1,
    ) -> None:  # fmt: skip
        """Record an observation that `entry` shows."""
        text = str(value.fields.get("text", "")) if isinstance(value, Event) else entry.message
        self.found.append(
            Observation(
                fact, subject, value, status,
                source=Source(self.probe, self.context.source, entry.number, self.revision),
                at=entry.at, clock=entry.clock, excerpt=quote(raw or entry.raw, text), detail=detail,
                times=times,
            )
        )  # fmt: skip

    def event(
        self, fact: str, subject: Subject, entry: Entry, fields: Mapping[str, Scalar],
        code: int | None = None, raw: str = "", times: int = 1,
    ) -> None:  # fmt: skip
        """Record an event that stands for so many; fields that the line does not tell (None, empty) are left out."""
        told = {name: value for name, value in fields.items() if value not in (None, "")}
        self.add(fact, subject, entry, Event(code, told), raw=raw, times=times)


def slot(address: str) -> str:
    """``0000:3b:00`` of ``0000:3b:00.1``."""
    return address.rpartition(".")[0] or address


def number(text: str | None, base: int = 10) -> int | None:
    """An integer that may be missing."""
    return int(text, base) if text else None


def body(text: str, limit: int = 1000) -> str:
    """The text of an event: one line, single blanks, bounded."""
    return excerpt(" ".join(text.replace("#012", " ").split()), limit)


def within(one: Entry, other: Entry, span: int) -> bool:
    """True unless both lines carry a time of the same clock and are further apart than `span` ns."""
    if one.at is None or other.at is None or one.clock is not other.clock or one.clock is Clock.NONE:
        return True
    return abs(one.at - other.at) <= span


def quote(raw: str, text: str) -> str:
    """An excerpt of the raw line that shows `text`, also when the line is very long."""
    if len(raw) > 400 and text and (start := raw.find(text[:40])) > 200:
        raw = "... " + raw[start - 120 : start + 400]
    return excerpt(raw)


def from_kernel(entry: Entry, start: int = 0) -> bool:
    """True when a message that begins at `start` can be the kernel's own word.

    A line without any prefix counts when the message opens it (``dmesg -t``).
    """
    return entry.kind is Kind.KERNEL or (entry.kind is Kind.BARE and start == 0)


def says(entry: Entry, start: int) -> bool:
    """A line without any prefix may carry the name of the subsystem ahead of what is matched."""
    ahead = entry.message[:start]
    return from_kernel(entry, start) or (
        entry.kind is Kind.BARE and rx(r"(?:[\w-]{1,24}: ){1,2}$").fullmatch(ahead) is not None
    )


def is_command(entry: Entry, start: int) -> bool:
    """True when what begins at `start` is merely mentioned: by a shell command, in source code, as an example, in a chat."""
    if entry.kind is Kind.DAEMON and hearsay(entry.tag):
        return True
    if entry.kind is Kind.KERNEL or not start:
        return False
    ahead = entry.message[max(0, start - 300) : start]
    return _COMMAND.search(ahead) is not None or (entry.kind is Kind.BARE and _MENTION.search(ahead) is not None)


def severity_of(text: str) -> str | None:
    """corrected, nonfatal or fatal, from the words that AER and EDAC use."""
    lowered = text.lower()
    if "non-fatal" in lowered or "nonfatal" in lowered:
        return "nonfatal"
    if "uncorrect" in lowered:
        return "fatal" if "fatal" in lowered else None
    return "corrected" if "correct" in lowered else "fatal" if "fatal" in lowered else None
