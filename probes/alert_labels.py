"""What the labels of an alert of Prometheus name: how bad it is, which node, which GPU.

Labels are written by whoever may write a rule or a metric: nothing is longer than a line. Pure.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from knowledge.identity import is_pci, normalise_pci
from knowledge.lazy import lazy
from knowledge.observation import Subject, gpu
from knowledge.text import clean, excerpt

LINE, NAME = 300, 100  # characters of a sentence, of a name
# Words that rules give their severity, as alerting handbooks, pagers and syslog have them.
_GRADES: Mapping[str, str] = {
    "critical": "critical crit page emergency emerg fatal disaster blocker alert p0 p1 sev0 sev1 s1",
    "error": "error err high major severe p2 sev2 s2",
    "warning": "warning warn ticket medium moderate minor average p3 sev3 s3",
    "info": "info information informational notice low none ok debug p4 p5 sev4 sev5 s4",
}
SEVERITIES: Mapping[str, str] = {word: grade for grade, words in _GRADES.items() for word in words.split()}
_SEVERITY = ("severity", "level", "priority")
# The node's own name comes before where its exporter listens: that may be a pod's address.
_NODE = ("node", "kubernetes_node", "nodename", "node_name", "Hostname", "hostname", "host", "instance")
_UUID = ("UUID", "uuid", "gpu_uuid", "GPU_UUID", "gpu")
_PCI = ("pci_bus_id", "pciBusId", "pci_bus", "pci_address", "pci", "bus_id", "gpu_pci", "gpu")
_INDEX = ("gpu_index", "gpu_id", "gpu", "index")
_SUMMARY = ("summary", "message", "description", "title")
_GPU_UUID = lazy(r"GPU-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PORT = lazy(r"(?P<host>[^:\[\]]+):[0-9]{1,5}")
_BRACKETS = lazy(r"\[(?P<host>[0-9a-fA-F:.%]+)\](?::[0-9]{1,5})?")
_NAMELESS = frozenset({"localhost", "localhost.localdomain", "ip6-localhost"})


def severity_of(labels: Mapping[str, str]) -> str:
    """A severity of rules; empty when no label tells, or in a word that is not known."""
    words = (labels.get(name, "").strip().casefold() for name in _SEVERITY)
    return next((SEVERITIES[w] for w in words if w in SEVERITIES), "")


def summary_of(annotations: Mapping[str, str]) -> str:
    """The sentence for people; empty where there is none."""
    return next((excerpt(annotations[n][: 4 * LINE], LINE) for n in _SUMMARY if annotations.get(n, "").strip()), "")


def hosts_of(labels: Mapping[str, str]) -> list[str]:
    """The nodes that labels name, the surest first."""
    return list(dict.fromkeys(h for n in _NODE if (h := host_of(labels.get(n, "")))))


def host_of(text: str) -> str:
    """A host without port, scheme and brackets; empty for none, and for a name that every machine has."""
    said = clean(text[: 4 * NAME]).strip()
    if "://" in said:
        try:
            said = urlsplit(said).hostname or ""
        except ValueError:
            return ""
    found = _BRACKETS.fullmatch(said) or _PORT.fullmatch(said)
    host = (found["host"] if found else said).rstrip(".")
    if not host or len(host) > 253 or any(c.isspace() or c == "/" for c in host):
        return ""
    return "" if host.casefold() in _NAMELESS or _loopback(host) else host


def _loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


# --- the GPU ------------------------------------------------------------------------------


def gpu_of(labels: Mapping[str, str], host: str) -> Subject | None:
    """The GPU that an alert is about: by its address, else its UUID, else its number; None when no label names one."""
    for name in _of(labels, _PCI):
        if is_pci(address := normalise_pci(name[:NAME])):
            return gpu(address, host)
    for name in _of(labels, _UUID):
        if _GPU_UUID.fullmatch(name):
            return gpu(name, host)
    for name in _of(labels, _INDEX):
        if name.isascii() and name.isdecimal() and len(name) < 4:
            return gpu(f"index:{int(name)}", host)
    return None


def _of(labels: Mapping[str, str], names: Sequence[str]) -> list[str]:
    return [labels[n].strip() for n in names if labels.get(n, "").strip()]
