"""One thing, one name: canonical identifiers and the resolution of aliases.

A GPU is a device (UUID) in a slot (host, PCI address). Sources name it in different ways:
kernel logs by slot, exporters by index or UUID. `resolve` rewrites the subjects of a batch
of observations so that each GPU has one name, its PCI address where any source tells it.
What cannot be resolved stays two subjects.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from knowledge.observation import Observation, Scope, Status, Subject, node

# The shapes that drivers and tools print:
#   0000:3b:00.0   0000:3B:00   00000000:3B:00.0   0009:00 (bus:device, before 2011)   3b:00.0
#   PCI:0001:ab:cd   PCI:0000:..:00 (redacted)
_PCI = re.compile(
    r"(?:PCI:)?(?:(?P<domain>[0-9a-f]{4,8}):)?(?P<bus>[0-9a-f]{2}):(?P<device>[0-9a-f]{2})(?:\.(?P<function>[0-9a-f]))?",
    re.IGNORECASE,
)
_OLD = re.compile(r"(?:PCI:)?00(?P<bus>[0-9a-f]{2}):(?P<device>[0-9a-f]{2})", re.IGNORECASE)
UNKNOWN_PCI = "unknown:"


def normalise_pci(text: str) -> str:
    """`text` as ``dddd:bb:dd.f`` in lower case.

    The two-field form of old drivers (``0009:00`` is bus 09, device 00) gets domain 0.
    What is not an address, a redacted one for instance, becomes ``unknown:<text>``, so that
    it stays a GPU of its own and is never merged with another.
    """
    text = text.strip()
    if old := _OLD.fullmatch(text):
        return f"0000:{old['bus']}:{old['device']}.0".lower()
    found = _PCI.fullmatch(text)
    if not found:
        return UNKNOWN_PCI + text.lower().removeprefix("pci:")
    domain = int(found["domain"] or "0", 16)
    return f"{domain:04x}:{found['bus']}:{found['device']}.{found['function'] or 0}".lower()


def is_pci(identifier: str) -> bool:
    """True for a canonical address ``dddd:bb:dd.f``."""
    return _PCI.fullmatch(identifier) is not None and identifier.count(":") == 2


def resolve(observations: Iterable[Observation]) -> list[Observation]:
    """The same observations under canonical subjects.

    * When exactly one host name occurs, observations that name no host belong to it.
    * A GPU known by UUID or index is renamed to its PCI address when an observation
      (`gpu.pci`, `gpu.uuid`, `gpu.index`) ties the two on the same host.
    """
    batch = list(observations)
    hosts = {o.subject.host for o in batch if o.subject.up(Scope.NODE)} - {""}
    only = hosts.pop() if len(hosts) == 1 else ""
    if only:
        batch = [o.about(_rehost(o.subject, only)) for o in batch]
    return _rename_gpus(batch)


def _rehost(subject: Subject, host: str) -> Subject:
    if subject.scope is Scope.NODE:
        return node(subject.id or host)
    if subject.parent is None:
        return subject
    return Subject(subject.scope, subject.id, _rehost(subject.parent, host))


def _rename_gpus(batch: Sequence[Observation]) -> list[Observation]:
    names: dict[tuple[str, str], str] = {}
    for o in batch:
        if o.subject.scope is not Scope.GPU or o.status is not Status.OK:
            continue
        host = o.subject.host
        if o.fact == "gpu.pci" and isinstance(o.value, str) and not is_pci(o.subject.id):
            names[host, o.subject.id] = o.value
        elif o.fact == "gpu.uuid" and is_pci(o.subject.id):
            names[host, str(o.value)] = o.subject.id
        elif o.fact == "gpu.index" and is_pci(o.subject.id):
            names.setdefault((host, f"index:{o.value}"), o.subject.id)
    if not names:
        return list(batch)

    def rename(subject: Subject) -> Subject:
        parent = rename(subject.parent) if subject.parent else None
        identifier = subject.id
        if subject.scope is Scope.GPU:
            for _ in range(2):  # index -> uuid -> pci
                identifier = names.get((subject.host, identifier), identifier)
        return Subject(subject.scope, identifier, parent)

    return [o.about(rename(o.subject)) for o in batch]
