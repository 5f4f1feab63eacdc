"""``kubectl get node -o json`` and ``-o yaml``, and the conditions alone that ``jq`` takes out of it: whether nodes are ready, and what troubles them.

What ``kubectl describe node`` prints as a table of conditions stands here as objects of type, status, reason and message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from knowledge.observation import Event, Observation, Status, Subject, Value, node
from knowledge.text import excerpt
from probes.base import Context, DocumentFormat
from probes.parse import _kubernetes
from probes.parse._kubectl_events import xid_of_condition
from probes.parse._vendor_emit import opens, table, tables, words
from probes.parse.kubectl_node import GOOD, RESOURCE

NAME, REVISION = "kubectl-conditions", 3
PROVIDES = (
    "kubernetes_condition", "xid_reported", "node.kubernetes.ready", "node.kubernetes.schedulable",
    "node.kubernetes.gpus", "node.kubernetes.gpus.allocatable", "node.kubernetes.gpus.withheld",
)  # fmt: skip


def sniff(head: str) -> int:
    """94 for JSON or YAML with a condition Ready that has a reason, of a node."""
    if "Node" in _kubernetes.kinds(head):
        return 94 if re.search(r"(?m)^\s{2,8}reason: (?:KubeletReady|KubeletNotReady|NodeStatusUnknown)", head) else 0
    if opens(head) not in ("{", "[") or '"Ready"' not in head:
        return 0
    spoken = '"KubeletReady"' in head or '"KubeletNotReady"' in head or '"NodeStatusUnknown"' in head
    return 94 if spoken and '"type"' in head and '"status"' in head else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Ready, and open to new pods, of each node; an event for each other condition that tells of trouble."""
    document = _kubernetes.document(text)
    listed = tables(table(document).get("items")) if "items" in table(document) else tables(document)
    out: list[Observation] = []
    nodes = [item for item in listed if "status" in item and isinstance(item["status"], dict)]
    for item in nodes:
        here = node(words(table(item.get("metadata")).get("name")) or context.host)
        closed = table(item.get("spec")).get("unschedulable") is True
        out.append(_told("node.kubernetes.schedulable", here, not closed, f"unschedulable: {closed}", context))
        out += _gpus(here, table(item["status"]), context)
        out += _conditions(here, tables(table(item["status"]).get("conditions")), context)
    return out if nodes else _conditions(node(context.host), listed, context)


def _conditions(here: Subject, conditions: Iterable[Mapping[str, Any]], context: Context) -> list[Observation]:
    out: list[Observation] = []
    names = []
    for condition in conditions:
        name, status = words(condition.get("type")), words(condition.get("status"))
        reason, message = words(condition.get("reason")), words(condition.get("message"))
        shown = excerpt(f"{name}: {status}, {reason}, {message}", 300)
        names.append(name)
        if name == "Ready" and status in ("True", "False", "Unknown"):
            out.append(_told("node.kubernetes.ready", here, status == "True", shown, context))
        elif name and status == ("False" if GOOD.fullmatch(name) else "True"):
            fields = {"condition": excerpt(name, 80), "reason": excerpt(reason, 100), "message": excerpt(message, 200)}
            out.append(_told("kubernetes_condition", here, Event(None, fields), shown, context))
            if said := xid_of_condition(name, message, here.id):
                out.append(_told("xid_reported", *said, shown, context))
    if "Ready" in names and not any(o.fact == "kubernetes_condition" for o in out):
        out.append(Observation("kubernetes_condition", here, None, Status.NONE_SEEN, context.at(NAME, REVISION)))
    return out


def _gpus(here: Subject, status: Mapping[str, Any], context: Context) -> list[Observation]:
    """What the node has of each kind of GPU, and what of it pods can get."""
    out: list[Observation] = []
    counts = {
        part: {
            name: int(text)
            for name, text in table(status.get(part)).items()
            if RESOURCE.fullmatch(name) and re.fullmatch(r"\d{1,6}", str(text))
        }
        for part in ("capacity", "allocatable")
    }
    for name, has in sorted(counts["capacity"].items()):
        gives = counts["allocatable"].get(name)
        shown = f"{name}: capacity {has}, allocatable {gives}"
        out.append(_told("node.kubernetes.gpus", here, has, shown, context))
        if gives is not None:
            out.append(_told("node.kubernetes.gpus.allocatable", here, gives, shown, context))
            out.append(_told("node.kubernetes.gpus.withheld", here, max(0, has - gives), shown, context))
    return out


def _told(fact: str, here: Subject, value: Value, shown: str, context: Context) -> Observation:
    return Observation(fact, here, value, Status.OK, context.at(NAME, REVISION), excerpt=shown)


FORMAT = DocumentFormat(NAME, "kubectl get node -o json", REVISION, PROVIDES, sniff, parse)
