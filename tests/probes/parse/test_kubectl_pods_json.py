"""Pods and nodes as JSON and YAML: what fails, waits or was refused, and a list in which all is well."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import yaml

from knowledge.observation import Event, Status
from probes import registry
from probes.base import Context
from probes.parse import kubectl_conditions
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


@each("written", [lambda document: json.dumps(document, indent=2), yaml.safe_dump])
def test_yaml_tells_what_json_tells(written: Callable[[object], str]) -> None:
    failed = {**pod(container(state={"terminated": {"exitCode": 137, "reason": "OOMKilled"}}))}
    text = written({"apiVersion": "v1", "kind": "List", "items": [failed]})
    assert registry.sniff(text) is FORMAT
    [event] = [o for o in FORMAT.parse(text, Context("x")) if o.status is Status.OK]
    assert (event.fact, event.subject.id, event.subject.host) == ("pod_failing", "ml/train-0", "gpu-7")


@each("written", [lambda document: json.dumps(document, indent=2), yaml.safe_dump])
def test_a_node_that_gives_fewer_gpus_than_it_has(written: Callable[[object], str]) -> None:
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
    status = {
        "capacity": {"cpu": "224", "nvidia.com/gpu": "8"},
        "allocatable": {"cpu": "224", "nvidia.com/gpu": "6"},
        "conditions": [ready],
    }
    text = written({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-7"}, "spec": {}, "status": status})
    assert registry.sniff(text) is kubectl_conditions.FORMAT
    found = {o.fact: o.value for o in kubectl_conditions.FORMAT.parse(text, Context("x")) if o.subject.id == "gpu-7"}
    assert (found["node.kubernetes.gpus"], found["node.kubernetes.gpus.withheld"], found["node.kubernetes.ready"]) == (
        8,
        2,
        True,
    )


def test_yaml_of_something_else_is_not_taken() -> None:
    for text in (
        "kind: Pod\n",
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\n",
        "name: x\nkind: Pod\n  phase: Failed\n",
    ):
        assert not FORMAT.sniff(text)
    assert FORMAT.parse("apiVersion: v1\nkind: Pod\nstatus: {phase: [\n", Context("x")) == []
