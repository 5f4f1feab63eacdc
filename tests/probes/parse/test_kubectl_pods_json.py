"""Pods as JSON: what fails, waits or was refused, and a list in which all is well."""

from __future__ import annotations

import json
from typing import Any

from knowledge.observation import Event, Status
from probes.base import Context
from probes.parse.kubectl_pods_json import FORMAT
from tests.cases import each


def pod(status: dict[str, Any], name: str = "train-0", on: str = "gpu-7") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "ml"}, "spec": {"nodeName": on}, "status": status}  # fmt: skip


def container(**state: Any) -> dict[str, Any]:
    return {"phase": "Running", "containerStatuses": [{"name": "main", "restartCount": 4, **state}]}


def told(document: dict[str, Any]) -> dict[str, dict[str, object]]:
    text = json.dumps(document, indent=4)
    assert FORMAT.sniff(text) == 95
    found = [o for o in FORMAT.parse(text, Context("x")) if o.status is Status.OK and isinstance(o.value, Event)]
    return {o.fact: {**o.value.fields, "on": o.subject.host} for o in found if isinstance(o.value, Event)}


AGAIN = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}}
RUNS = container(state={"running": {"startedAt": "2026-11-16T08:00:00Z"}})


@each(
    "status, fact, field, value",
    [
        (container(state=AGAIN, lastState={"terminated": {"exitCode": 137, "reason": "OOMKilled"}}), "pod_failing", "reason", "OOMKilled"),
        (container(state=AGAIN, lastState={"terminated": {"exitCode": 1, "reason": "Error"}}), "pod_failing", "reason", "CrashLoopBackOff"),
        (container(state={"waiting": {"reason": "ImagePullBackOff"}}), "pod_failing", "reason", "ImagePullBackOff"),
        ({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}, "pod_failing", "reason", "Evicted"),
        ({"phase": "Failed", "reason": "UnexpectedAdmissionError",
          "message": "Allocate failed: nvidia.com/gpu. Requested: 8, Available: 6, which is unexpected"}, "pod_refused", "available", 6),
        ({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
          "message": "0/12 nodes are available: 12 Insufficient nvidia.com/gpu."}]}, "pod_unplaced", "short", "nvidia.com/gpu"),
    ],
)  # fmt: skip
def test_a_pod_in_trouble(status: dict[str, Any], fact: str, field: str, value: object) -> None:
    found = told({"apiVersion": "v1", "kind": "List", "items": [pod(RUNS, "other"), pod(status)]})
    assert list(found) == [fact]
    assert (found[fact][field], found[fact]["pod"], found[fact]["on"]) == (value, "ml/train-0", "gpu-7")


@each(
    "status",
    [
        RUNS,
        {
            "phase": "Succeeded",
            "containerStatuses": [{"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}],
        },
        {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]},
    ],
)
def test_a_pod_that_runs_or_is_on_its_way(status: dict[str, Any]) -> None:
    assert told(pod(status)) == {}


def test_what_is_no_pod() -> None:
    assert not FORMAT.sniff('{"kind": "Node", "metadata": {}, "status": {"phase": "x"}}')
    assert not FORMAT.parse("{", Context("x"))
