"""``kubectl get pods -o json`` and ``-o yaml``, a list or one pod: containers that do not come up, pods that nobody places or that the node refused."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from knowledge.observation import Event, Observation, Scalar, Scope, Status, Subject, node
from knowledge.text import excerpt
from probes.base import Context, DocumentFormat
from probes.parse import _kubernetes
from probes.parse._kubectl_events import INFRASTRUCTURE, REFUSED_DEVICES, SHORT, UNNAMED
from probes.parse._vendor_emit import opens, table, tables, words

NAME, REVISION = "kubectl-pods-json", 2
PROVIDES = ("pod_failing", "pod_unplaced", "pod_refused")
# Reasons of a container that waits and is on its way.
_ON_ITS_WAY = frozenset({"ContainerCreating", "PodInitializing", ""})
_AGAIN = "CrashLoopBackOff"  # it is tried again: how it ended stands beside it


def sniff(head: str) -> int:
    """95 for JSON or YAML of kind Pod with a phase, or of a list of such."""
    if "Pod" in _kubernetes.kinds(head):
        return 95 if re.search(r"(?m)^ {2,4}phase: \w", head) else 0
    if opens(head) != "{" or '"phase"' not in head:
        return 0
    return 95 if '"Pod"' in head and '"kind"' in head and '"metadata"' in head else 0


def parse(text: str, context: Context) -> list[Observation]:
    """An event for each pod that fails, is not placed, or was refused; none seen of each kind that the list does not hold."""
    document = table(_kubernetes.document(text))
    pods = tables(document["items"]) if "items" in document else [document]
    pods = [pod for pod in pods if words(table(pod.get("status")).get("phase"))]
    out = [o for pod in pods for o in _of_pod(pod, context)]
    for fact in PROVIDES if pods else ():
        if not any(o.fact == fact for o in out):
            out.append(Observation(fact, node(context.host), None, Status.NONE_SEEN, context.at(NAME, REVISION)))
    return out


def _of_pod(pod: Mapping[str, Any], context: Context) -> Iterator[Observation]:
    about, status = table(pod.get("metadata")), table(pod.get("status"))
    name = "/".join(part for key in ("namespace", "name") if (part := excerpt(words(about.get(key)), 253))) or UNNAMED
    here = node(context.host or words(table(pod.get("spec")).get("nodeName")))
    phase, message = words(status.get("phase")), words(status.get("message"))

    def told(fact: str, fields: dict[str, Scalar], shown: str) -> Observation:
        source = context.at(NAME, REVISION)
        return Observation(fact, Subject(Scope.POD, name, here), Event(None, {"pod": "" if name == UNNAMED else name, **fields}), Status.OK, source,
                           excerpt=excerpt(shown, 300))  # fmt: skip

    if refused := REFUSED_DEVICES.search(message):
        short: dict[str, Scalar] = {"resource": refused[1], "requested": int(refused[2]), "available": int(refused[3])}
        yield told("pod_refused", short, f"{name}: {message}")
        return
    for condition in tables(status.get("conditions")) if phase == "Pending" else ():
        if words(condition.get("type")) == "PodScheduled" and words(condition.get("reason")) == "Unschedulable":
            why = words(condition.get("message"))
            lacks, reasons = SHORT.search(why), excerpt(why.partition(" preemption: ")[0].rstrip(". "), 160)
            unplaced: dict[str, Scalar] = {
                "short": lacks[1].rstrip(".") if lacks else None,
                "reasons": reasons,
                "message": excerpt(why, 300),
            }
            yield told("pod_unplaced", unplaced, f"{name}: Unschedulable, {why}")
    if failing := _failing(status, phase):
        shown = f"{name}: {phase}, " + ", ".join(
            f"{key} {value}" for key, value in failing.items() if value is not None
        )
        yield told("pod_failing", {**failing, "infrastructure": INFRASTRUCTURE.search(name) is not None}, shown)


def _failing(status: Mapping[str, Any], phase: str) -> dict[str, Scalar]:
    """Why the first container that does not come up ended or waits; of a pod that failed as a whole its reason. Empty for none."""
    for kind in ("initContainerStatuses", "containerStatuses"):
        for container in tables(status.get(kind)):
            state, last = table(container.get("state")), table(table(container.get("lastState")).get("terminated"))
            ended, waits = table(state.get("terminated")), words(table(state.get("waiting")).get("reason"))
            code = ended.get("exitCode") if ended else last.get("exitCode")
            restarts = container.get("restartCount")
            reason = ""
            if waits not in _ON_ITS_WAY:
                said = words(last.get("reason"))
                reason = said if waits == _AGAIN and said not in ("", "Error", "Completed") else waits
            elif ended and ended.get("exitCode") not in (0, None) and phase != "Succeeded":
                reason = words(ended.get("reason")) or "Error"
            if reason:
                return {"reason": excerpt(reason, 80), "exitcode": _count(code), "restarts": _count(restarts)}
    return {"reason": excerpt(words(status.get("reason")) or "Error", 80)} if phase == "Failed" else {}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else None


FORMAT = DocumentFormat(NAME, "kubectl get pods -o json", REVISION, PROVIDES, sniff, parse)
