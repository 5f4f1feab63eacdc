"""``kubectl get pods`` and ``kubectl describe pod``, also the table of events alone that ends a description: pods that do not come up,
what the scheduler says of those that wait, and every other warning."""

from __future__ import annotations

import re
from functools import partial

from knowledge.observation import Event, Observation, Scalar, Scope, Status, Subject, Value, node
from knowledge.text import clean, digits, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse._kubectl_events import (
    INFRASTRUCTURE,
    PROVIDES,
    REFUSED_DEVICES,
    UNNAMED,
    described,
    headed,
    pod_of,
    rows,
)
from probes.parse.container_runtime import EVENT as REFUSED

NAME, REVISION = "kubectl-pods", 4
_OF_PODS = ("pod_failing", "pod_unplaced", "pod_refused")
_OF_EVENTS = ("kubernetes_warning", REFUSED)
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


def sniff(head: str) -> int:
    """95 for the heading of the list, 97 for a pod that is described: its name, its node and its containers or events; 96 for a table
    of events, 93 for two of its rows. A message of an event may quote any other tool."""
    lines = [line.text[:800] for line in lines_of(head)][:400]
    if any(_HEAD.fullmatch(line) for line in lines[:20]):
        return 95
    titles = {line.partition(":")[0] for line in lines}
    if {"Name", "Namespace", "Node"} <= titles and titles & {"Containers", "Events", "Status"}:
        return 97
    found = rows(lines_of(head)[:400])
    if found and any(map(headed, lines)):
        return 96
    return 93 if len(found) > 1 else 0


def parse(text: str, context: Context) -> list[Observation]:
    """An event for each pod that fails and each that cannot be placed; none seen where a list or a description holds none."""
    lines = lines_of(text)
    listed = any(_HEAD.fullmatch(line.text[:800]) for line in lines[:20])
    out = _listed(lines, context) if listed else _described(lines, context)
    here, source = node(context.host), context.at(NAME, REVISION)
    for fact in (*_OF_PODS, *(() if listed else _OF_EVENTS)):
        if sniff(text) and not any(o.fact == fact for o in out) and not (listed and fact != "pod_failing"):
            out.append(Observation(fact, here, None, Status.NONE_SEEN, source))
    return out


def _event(fact: str, name: str, fields: dict[str, Scalar], line: Line, context: Context) -> Observation:
    return _told(fact, Subject(Scope.POD, name, node(context.host)), Event(None, fields), line, context=context)


def _told(fact: str, subject: Subject, value: Value, line: Line, context: Context) -> Observation:
    shown = excerpt(clean(line.text.strip()), 300)
    return Observation(fact, subject, value, Status.OK, context.at(NAME, REVISION, line.number), excerpt=shown)


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
    found = rows(lines)
    name = "/".join(told[key] for key in ("Namespace", "Name") if key in told) or pod_of(found) or UNNAMED
    if refused and (short_of := REFUSED_DEVICES.search(refused.text[:2000])):
        lacks: dict[str, Scalar] = {
            "pod": "" if name == UNNAMED else name, "resource": short_of[1], "requested": int(short_of[2]), "available": int(short_of[3]),
        }  # fmt: skip
        out.append(_event("pod_refused", name, lacks, refused, context))
    elif failing:
        fields: dict[str, Scalar] = {
            "pod": "" if name == UNNAMED else name,
            "reason": failing[0],
            "exitcode": code,
            "infrastructure": INFRASTRUCTURE.search(name) is not None,
        }
        out.append(_event("pod_failing", name, fields, failing[1], context))
    on = told.get("Node", "<none>").partition("/")[0]
    host = context.host or ("" if on == "<none>" else on)
    events = described(found, "pod", name, host, partial(_told, context=context))
    known = {o.fact for o in out} | ({"pod_failing"} if refused else set())  # its state says more than the event
    return [*out, *(o for o in events if o.fact not in known and not (on != "<none>" and o.fact == "pod_unplaced"))]


FORMAT = DocumentFormat(NAME, "kubectl get pods and describe pod", REVISION, PROVIDES, sniff, parse)
