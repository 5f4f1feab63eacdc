"""One thing, one name: canonical identifiers and the resolution of aliases.

A GPU is a device (UUID) in a slot (host, PCI address). Sources name it in different ways:
kernel logs by slot, exporters by index or UUID. `resolve` rewrites the subjects of a batch
of observations so that each GPU has one name, its PCI address where any source tells it.
What cannot be resolved stays two subjects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

from knowledge.lazy import lazy
from knowledge.observation import Event, Observation, Scope, Status, Subject, node

# The shapes that drivers and tools print:
#   0000:3b:00.0   0000:3B:00   00000000:3B:00.0   0009:00 (bus:device, before 2011)   3b:00.0
#   PCI:0001:ab:cd   PCI:0000:..:00 (redacted)
_PCI = lazy(
    r"(?:PCI:)?(?:(?P<domain>[0-9a-f]{4,8}):)?(?P<bus>[0-9a-f]{2}):(?P<device>[0-9a-f]{2})(?:\.(?P<function>[0-9a-f]))?",
    re.IGNORECASE,
)
_OLD = lazy(r"(?:PCI:)?00(?P<bus>[0-9a-f]{2}):(?P<device>[0-9a-f]{2})", re.IGNORECASE)
UNKNOWN_PCI = "unknown:"
_NAMING = frozenset(
    {"gpu.pci", "gpu.uuid", "gpu.index", "gpu.minor", "gpu.vendor_index"}
)  # facts that give a GPU another name
_INDEX = "index:"
_RELATED = re.compile(r"(gpu:|mig:[\w/]{1,40}@gpu:)(.+)")  # a relation to a GPU or to a part of one
_MINOR = "minor:"  # number of the device file /dev/nvidiaN
# Numbers of other vendors' tools: each tool counts its own from 0, so a node with GPUs of two makers has two of each.
TOOL_NUMBERS = ("amd:", "intel:", "huawei:", "habana:", "moorethreads:")
_NUMBERED = (_INDEX, _MINOR, *TOOL_NUMBERS)
_Name: TypeAlias = tuple[str, str]  # host, identifier of a GPU there


@lru_cache(4096)  # a log names few, each in many lines
def normalise_pci(text: str) -> str:
    """`text` as ``dddd:bb:dd.f`` in lower case.

    The two-field form of old drivers (``0009:00`` is bus 09, device 00) gets domain 0.
    What is not an address, a redacted one for instance, becomes ``unknown:<text>``, so that
    it stays a GPU of its own and is never merged with another.
    """
    text = text.strip()
    if text.startswith(UNKNOWN_PCI):
        return text.lower()
    if old := _OLD.fullmatch(text):
        return f"0000:{old['bus']}:{old['device']}.0".lower()
    found = _PCI.fullmatch(text)
    if not found:
        return UNKNOWN_PCI + text.lower().removeprefix("pci:")
    domain = int(found["domain"] or "0", 16)
    return f"{domain:04x}:{found['bus']}:{found['device']}.{found['function'] or 0}".lower()


def is_pci(identifier: str) -> bool:
    """True for a canonical address ``dddd:bb:dd.f``; other spellings of one are not canonical."""
    return not identifier.startswith(UNKNOWN_PCI) and normalise_pci(identifier) == identifier


def resolve(observations: Iterable[Observation]) -> list[Observation]:
    """The same observations under canonical subjects.

    * When exactly one host name occurs, observations that name no host belong to it.
    * A GPU known by UUID, index or minor number is renamed to its PCI address (else its UUID) when observations
      (`gpu.pci`, `gpu.uuid`, `gpu.index`, `gpu.minor`, `gpu.vendor_index`) tie the two on the same host; so are the values of relations.
    * What gave a renamed UUID another name also tells the UUID of the address, as one observation more:
      the tie stays known, so that resolving again, as "what if" does, merges nothing that was kept apart.

    A name that is tied to two different things, an index that moved at a reboot for instance,
    is no name of either: two GPUs that are known to be different are never merged.
    """
    batch = list(observations)
    hosts = {s.host for s in {o.subject for o in batch}} - {""}
    only = hosts.pop() if len(hosts) == 1 else ""
    if only:
        foreign = _of_other_nodes(batch, only)
        homes = _Memo(lambda s: s if _document(s) in foreign else _rehost(s, only))
        batch = [o.about(homes[o.subject]) for o in batch]
    names = _gpu_names(batch)
    if not names:
        return batch
    canonical = _Memo(lambda s: _canonical(s, names))
    out: list[Observation] = []
    for o in batch:
        out.append(_renamed(o, names, canonical))
        if o.fact in _NAMING:
            out += _tie_kept(o, names, canonical)
    return out


class _Memo(dict[Subject, Subject]):
    """What a function makes of each subject, asked once: a batch has twenty observations a subject."""

    def __init__(self, function: Callable[[Subject], Subject]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, subject: Subject) -> Subject:
        found = self[subject] = self._function(subject)
        return found


def _tie_kept(o: Observation, names: Mapping[_Name, str], canonical: _Memo) -> list[Observation]:
    """The UUID that `o` gave another name, as a fact about the address that it is renamed to; else none."""
    uuid = o.subject.id
    if _alias(o) in ("", uuid) or uuid.startswith((*_NUMBERED, UNKNOWN_PCI)) or (o.subject.host, uuid) not in names:
        return []
    return [replace(_renamed(o, names, canonical), fact="gpu.uuid", value=uuid)]


def _document(subject: Subject) -> Subject | None:
    return subject.up(Scope.DOCUMENT)


def _of_other_nodes(batch: Iterable[Observation], host: str) -> set[Subject | None]:
    """Documents whose ranks all say that they ran elsewhere: a job's log of other nodes is not adopted by `host`."""
    told: dict[Subject, set[str]] = {}
    for o in batch:
        if o.fact != "rank.on_node":
            continue
        document = _document(o.subject)
        if document is not None and not document.host:
            told.setdefault(document, set()).add(str(o.value).removeprefix("node:"))
    return {document for document, hosts in told.items() if host not in hosts}


def _rehost(subject: Subject, host: str) -> Subject:
    if subject.scope is Scope.NODE:
        return node(subject.id or host)
    if subject.parent is None:
        return subject
    return Subject(subject.scope, subject.id, _rehost(subject.parent, host))


def _gpu_names(batch: Sequence[Observation]) -> dict[_Name, str]:
    """Canonical identifier of each GPU name that has a better one."""
    tied: dict[_Name, set[str]] = {}
    for o in batch:
        alias = _alias(o) if o.fact in _NAMING else ""
        if alias and alias != o.subject.id:
            host = o.subject.host
            tied.setdefault((host, o.subject.id), set()).add(alias)
            tied.setdefault((host, alias), set()).add(o.subject.id)
    for host, pci, uuid in (*_by_index(tied), *_by_xid(batch, tied)):
        tied.setdefault((host, pci), set()).add(uuid)
        tied.setdefault((host, uuid), set()).add(pci)
    names: dict[_Name, str] = {}
    for (host, name), others in tied.items():  # UUID to address, where each has only the other
        addresses = {other for other in others if is_pci(other)}
        if not name.startswith(_NUMBERED) and not is_pci(name) and len(addresses) == 1:
            (pci,) = addresses
            if len({u for u in tied[host, pci] if not u.startswith(_NUMBERED)}) == 1:
                names[host, name] = pci
    for (host, name), others in tied.items():
        if name.startswith(_NUMBERED):
            devices = {names.get((host, other), other) for other in others}
            if len(devices) == 1:
                names[host, name] = devices.pop()
    return names


def _by_index(tied: Mapping[_Name, set[str]]) -> list[tuple[str, str, str]]:
    """Host, address and UUID that only an index ties: it stands for one of each, and neither has another partner."""
    out = []
    for (host, name), others in tied.items():
        if not name.startswith(_INDEX) or len(others) != 2:
            continue
        pci, uuid = sorted(others, key=is_pci, reverse=True)
        partners = [p for one in (pci, uuid) for p in tied[host, one] if not p.startswith(_NUMBERED)]
        if is_pci(pci) and not is_pci(uuid) and not partners:
            out.append((host, pci, uuid))
    return out


def _by_xid(batch: Sequence[Observation], tied: Mapping[_Name, set[str]]) -> list[tuple[str, str, str]]:
    """Host, address and UUID of a GPU whose XID the kernel logged by address and a monitor (the device plugin) reported by UUID.

    Only where on that host one address and one UUID have an XID at all, it is the same one, and neither has another partner.
    """
    told: dict[str, tuple[dict[str, set[int | None]], dict[str, set[int | None]]]] = {}
    for o in batch:
        if o.fact in ("xid", "xid_reported") and isinstance(o.value, Event) and o.subject.scope is Scope.GPU:
            by_address, by_uuid = told.setdefault(o.subject.host, ({}, {}))
            if is_pci(o.subject.id):
                by_address.setdefault(o.subject.id, set()).add(o.value.code)
            elif o.subject.id.startswith("GPU-"):
                by_uuid.setdefault(o.subject.id, set()).add(o.value.code)
    out = []
    for host, (by_address, by_uuid) in told.items():
        if len(by_address) == len(by_uuid) == 1:
            (pci, logged), (uuid, reported) = *by_address.items(), *by_uuid.items()
            if reported <= logged and all(
                p.startswith(_NUMBERED) for one in (pci, uuid) for p in tied.get((host, one), ())
            ):
                out.append((host, pci, uuid))
    return out


def _alias(o: Observation) -> str:
    """The other name that an observation gives its GPU; empty when it gives none."""
    if o.subject.scope is not Scope.GPU or o.status is not Status.OK or isinstance(o.value, bool):
        return ""
    if o.fact == "gpu.pci" and isinstance(o.value, str):
        address = normalise_pci(o.value)
        return address if is_pci(address) else ""
    if o.fact == "gpu.uuid" and isinstance(o.value, str):
        return o.value
    if o.fact == "gpu.vendor_index" and isinstance(o.value, str) and o.value.startswith(TOOL_NUMBERS):
        return "" if o.subject.id.startswith(_NUMBERED) else o.value
    number = {"gpu.index": _INDEX, "gpu.minor": _MINOR}.get(o.fact)
    if number and isinstance(o.value, int) and not o.subject.id.startswith(_NUMBERED):
        return f"{number}{o.value}"
    return ""  # one number is no other name of another


def _canonical(subject: Subject, names: Mapping[_Name, str]) -> Subject:
    """`subject` with every GPU in it under its best name."""
    parent = _canonical(subject.parent, names) if subject.parent else None
    identifier = subject.id
    if subject.scope is Scope.GPU:
        identifier = names.get((subject.host, identifier), identifier)
    return Subject(subject.scope, identifier, parent)


def _renamed(o: Observation, names: Mapping[_Name, str], canonical: _Memo) -> Observation:
    o = o.about(canonical[o.subject])
    if isinstance(o.value, str) and (related := _RELATED.fullmatch(o.value)):
        named = names.get((o.subject.host, related[2]))
        if named:
            return replace(o, value=f"{related[1]}{named}")
    return o
