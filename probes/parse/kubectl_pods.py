"""``kubectl get pods`` and ``kubectl describe pod``: pods that do not come up, and what the scheduler says of those that wait."""

from __future__ import annotations

import re

from knowledge.observation import Event, Observation, Scalar, Scope, Status, Subject, node
from knowledge.text import clean, digits, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of

NAME, REVISION = "kubectl-pods", 3
PROVIDES = ("pod_failing", "pod_unplaced", "pod_refused")
# NAMESPACE      NAME                                  READY   STATUS             RESTARTS        AGE
_HEAD = re.compile(r"(NAMESPACE\s{1,80})?NAME\s{1,260}READY\s{1,20}STATUS\s{1,80}RESTARTS\s{1,40}AGE\b.{0,400}")
# gpu-operator   nvidia-driver-daemonset-x7k2p         0/1     CrashLoopBackOff   17 (2m11s ago)  71m
_ROW = re.compile(
    r"(?:([a-z0-9][a-z0-9-]{0,62})\s{1,80})?([a-z0-9][a-z0-9.-]{0,252})\s{1,260}(\d{1,4})/(\d{1,4})\s{1,20}([A-Z][\w:/]{2,60})\s{1,80}(\d{1,9})\b.{0,400}"
)
# States in which a container was tried and failed; Pending, ContainerCreating and Init:0/1 are on their way.
_FAILED = re.compile(
    r"(?:Init:)?(?:CrashLoopBackOff|Error|ErrImagePull|ImagePullBackOff|InvalidImageName|CreateContainer(?:Config)?Error|RunContainerError|"
    r"OOMKilled|ContainerCannotRun|StartError|ContainerStatusUnknown|UnexpectedAdmissionError|NodeLost|ExitCode:\d{1,4}|Signal:\d{1,4})"
)
# Name:             llama-train-0           Namespace:        ml          Node:             gpu-worker-2/10.0.2.12
_FIELD = re.compile(r"(Name|Namespace|Node|Status|Reason):\s{1,40}(\S{1,253})\s{0,20}")
#       Reason:       CrashLoopBackOff            Exit Code:    1
_REASON = re.compile(r"\s{2,20}Reason:\s{1,40}([A-Z]\w{2,60})\s{0,20}")
_CODE = re.compile(r"\s{2,20}Exit Code:\s{1,40}(\d{1,4})\s{0,20}")
#   Warning  FailedScheduling  4m12s  default-scheduler  0/6 nodes are available: 2 Insufficient nvidia.com/gpu, 3 node(s) had untolerated taint ...
_UNPLACED = re.compile(
    r"\s{1,12}Warning\s{1,12}FailedScheduling\s{1,12}.{0,80}?(\d{1,6}/\d{1,6} nodes are available: .{1,1500})"
)
SHORT = re.compile(r"Insufficient ((?:nvidia|amd|habana|gpu\.intel)\.(?:com|ai)/[\w.-]{1,40})")
# Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 8, Available: 7, which is unexpected
REFUSED_DEVICES = re.compile(r"\b([\w.-]{1,60}/[\w.-]{1,60})\. Requested: (\d{1,6}), Available: (\d{1,6})")
INFRASTRUCTURE = re.compile(
    r"nvidia-|gpu-operator|gpu-feature-discovery|dcgm|amd-gpu|amdgpu-|rocm-|k8s-device-plugin|network-operator|mofed-|node-problem-detector"
)


def sniff(head: str) -> int:
    """95 for the heading of the list, or for a pod that is described: its name, its node and its containers or events."""
    lines = [line.text[:800] for line in lines_of(head)][:400]
    if any(_HEAD.fullmatch(line) for line in lines[:20]):
        return 95
    titles = {line.partition(":")[0] for line in lines}
    return 95 if {"Name", "Namespace", "Node"} <= titles and titles & {"Containers", "Events", "Status"} else 0


def parse(text: str, context: Context) -> list[Observation]:
    """An event for each pod that fails and each that cannot be placed; none seen where a list or a description holds none."""
    lines = lines_of(text)
    listed = any(_HEAD.fullmatch(line.text[:800]) for line in lines[:20])
    out = _listed(lines, context) if listed else _described(lines, context)
    here, source = node(context.host), context.at(NAME, REVISION)
    for fact in PROVIDES:
        if sniff(text) and not any(o.fact == fact for o in out) and not (listed and fact != "pod_failing"):
            out.append(Observation(fact, here, None, Status.NONE_SEEN, source))
    return out


def _event(fact: str, name: str, fields: dict[str, Scalar], line: Line, context: Context) -> Observation:
    pod = Subject(Scope.POD, name, node(context.host))
    shown = excerpt(clean(line.text.strip()), 300)
    return Observation(
        fact, pod, Event(None, fields), Status.OK, context.at(NAME, REVISION, line.number), excerpt=shown
    )


def _listed(lines: list[Line], context: Context) -> list[Observation]:
    out = []
    for line in lines:
        row = _ROW.fullmatch(line.text[:1200])
        if row is None or not _FAILED.fullmatch(row[5]):
            continue
        name = f"{row[1]}/{row[2]}" if row[1] else row[2]
        fields: dict[str, Scalar] = {
            "pod": name,
            "reason": row[5].removeprefix("Init:"),
            "restarts": digits(row[6]),
            "infrastructure": INFRASTRUCTURE.search(name) is not None,
        }
        out.append(_event("pod_failing", name, fields, line, context))
    return out


def _described(lines: list[Line], context: Context) -> list[Observation]:
    out: list[Observation] = []
    told: dict[str, str] = {}
    code: int | None = None
    failing: tuple[str, Line] | None = None
    unplaced: Line | None = None
    refused: Line | None = None
    for line in lines:
        text = line.text[:2000]
        refused = refused or (line if REFUSED_DEVICES.search(text) else None)
        if field := _FIELD.fullmatch(text):
            told.setdefault(field[1], field[2])
            if (
                field[1] == "Reason" and told.get("Status") == "Failed"
            ):  # of the pod as a whole: evicted, refused, its node lost
                failing = (field[2], line)
        elif reason := _REASON.fullmatch(text):
            # why it ended stands below that it is tried again; Error says less than that
            said = failing is not None and (failing[0] != "CrashLoopBackOff" or reason[1] == "Error")
            failing = (reason[1], line) if _FAILED.fullmatch(reason[1]) and not said else failing
        elif exited := _CODE.fullmatch(text):
            code = int(exited[1])
        elif _UNPLACED.fullmatch(text):
            unplaced = line
    name = "/".join(told[key] for key in ("Namespace", "Name") if key in told)
    if refused and name and (short_of := REFUSED_DEVICES.search(refused.text[:2000])):
        lacks: dict[str, Scalar] = {
            "pod": name, "resource": short_of[1], "requested": int(short_of[2]), "available": int(short_of[3]),
        }  # fmt: skip
        out.append(_event("pod_refused", name, lacks, refused, context))
    elif failing and name:
        fields: dict[str, Scalar] = {
            "pod": name,
            "reason": failing[0],
            "exitcode": code,
            "infrastructure": INFRASTRUCTURE.search(name) is not None,
        }
        out.append(_event("pod_failing", name, fields, failing[1], context))
    if (
        unplaced
        and name
        and (told.get("Node", "<none>") == "<none>")
        and (why := _UNPLACED.fullmatch(unplaced.text[:2000]))
    ):
        short = SHORT.search(why[1])
        said = clean(why[1])
        reasons = excerpt(said.partition(" preemption: ")[0].rstrip(". "), 160)
        fields = {
            "pod": name,
            "short": short[1] if short else None,
            "reasons": reasons,
            "message": excerpt(said, 300),
        }
        out.append(_event("pod_unplaced", name, fields, unplaced, context))
    return out


FORMAT = DocumentFormat(NAME, "kubectl get pods and describe pod", REVISION, PROVIDES, sniff, parse)
