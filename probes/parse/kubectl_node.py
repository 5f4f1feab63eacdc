"""``kubectl describe node``: how many GPUs the kubelet counts, how many it gives to pods, whether the node is ready and open
for new pods, and what its conditions and events tell; also a part of it from the conditions on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from knowledge.observation import Event, Observation, Status, Subject, Value, node
from knowledge.text import clean, digits, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse._kubectl_events import described, rows, xid_of_condition
from probes.parse.container_runtime import EVENT as REFUSED

NAME, REVISION = "kubectl-node", 4
PROVIDES = (
    "kubernetes_warning",
    REFUSED,
    "kubernetes_condition",
    "xid_reported",
    "node.kubernetes.gpus",
    "node.kubernetes.gpus.allocatable",
    "node.kubernetes.gpus.withheld",
    "node.kubernetes.ready",
    "node.kubernetes.schedulable",
    "node.kubernetes.taints",
)
_NAME = re.compile(r"Name:\s{1,40}(\S{1,253})\s{0,20}")
_SECTION = re.compile(r"([A-Z][A-Za-z ]{2,40}):\s{0,20}")
#   nvidia.com/gpu:     8
RESOURCE = re.compile(r"(?:nvidia|amd|habana|gpu\.intel)\.(?:com|ai)/(?:gpu|gaudi|i915|xe)")
_GPUS = re.compile(rf"\s{{1,8}}({RESOURCE.pattern}):\s{{1,40}}(\d{{1,6}})\s{{0,20}}")
#   nvidia.com/mig-1g.10gb:  7        nvidia.com/gpu.shared:  32        GPUs that are given under another name
_OTHER_NAME = re.compile(r"\s{1,8}nvidia\.com/(?:mig-|gpu\.shared|pgpu)\S{0,40}:\s{1,40}0*[1-9]\d{0,6}\s{0,20}")
#   Type             Status  LastHeartbeatTime                 LastTransitionTime                Reason                   Message
_HEARTBEATS = re.compile(r"\s{0,8}Type\s{1,40}Status\s{1,20}LastHeartbeatTime\s{1,40}LastTransitionTime\b.{0,120}")
#   Ready                True    Wed, 12 Nov 2025 09:02:11 +0000 ...
#   DiskPressure         True    Tue, 24 Nov 2026 10:11:01 +0000   Tue, 24 Nov 2026 10:01:01 +0000   KubeletHasDiskPressure   kubelet has disk pressure
_CONDITION = re.compile(r"\s{1,8}([A-Z]\w{1,80})\s{1,60}(True|False|Unknown)\b(.{0,2000})")
# Conditions that are good when they are true; of all others True is trouble (node-problem-detector, the kubelet's pressures).
GOOD = re.compile(r"\w*(?:Ready|Healthy|Available|Initialized|Voter)")
# Taints:             nvidia.com/gpu.unhealthy=xid79:NoSchedule        Unschedulable:      true        node.kubernetes.io/unschedulable:NoSchedule
_TAINT = re.compile(r"(?:Taints:)?\s{1,60}([\w./-]{1,250}(?:=[\w.-]{0,70})?:No(?:Schedule|Execute))\s{0,20}")
_CLOSED = re.compile(r"Unschedulable:\s{1,40}(true|false)\s{0,20}")
#                     nvidia.com/gpu.present=true      a label of gpu-feature-discovery
_LABELLED = re.compile(r"(?:Labels:)?\s{1,60}nvidia\.com/gpu\.present=true\s{0,20}")


def sniff(head: str) -> int:
    """98 for the name of a node with its capacity and what of it can be given, 97 for a table of conditions: messages quote other
    tools; 95 for capacity and what can be given alone, with GPUs in both."""
    texts = [line.text[:300] for line in lines_of(head)]
    titles = {found[1] for text in texts if (found := _SECTION.fullmatch(text))}
    if {"Capacity", "Allocatable"} <= titles and any(_NAME.fullmatch(text) for text in texts):
        return 98
    if {"Capacity", "Allocatable"} <= titles and sum(map(bool, map(_GPUS.fullmatch, texts))) > 1:
        return 95
    return 97 if any(map(_HEARTBEATS.fullmatch, texts)) and any(map(_CONDITION.fullmatch, texts)) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Facts of each node that is described."""
    out: list[Observation] = []
    here, section = node(context.host), ""
    counts: dict[tuple[Subject, str], dict[str, tuple[int, Line]]] = {}

    def add(fact: str, subject: Subject, value: Value, line: Line, shown: str = "") -> None:
        quoted = excerpt(clean(shown or line.text.strip()), 300)
        out.append(
            Observation(fact, subject, value, Status.OK, context.at(NAME, REVISION, line.number), excerpt=quoted)
        )

    labels: dict[Subject, Line] = {}
    otherwise: set[Subject] = set()
    sections: dict[Subject, set[str]] = {}
    taints: dict[Subject, list[tuple[str, Line]]] = {}
    for line in lines_of(text):
        if named := _NAME.fullmatch(line.text[:400]):
            here, section = node(clean(named[1])), ""
        elif titled := _SECTION.fullmatch(line.text[:80]):
            section = titled[1]
            sections.setdefault(here, set()).add(section)
        elif taint := _TAINT.fullmatch(line.text[:400]):
            taints.setdefault(here, []).append((taint[1], line))
        elif closed := _CLOSED.fullmatch(line.text[:80]):
            add("node.kubernetes.schedulable", here, closed[1] == "false", line)
        elif _LABELLED.fullmatch(line.text[:200]):
            labels[here] = line
        elif _OTHER_NAME.fullmatch(line.text[:200]):
            otherwise.add(here)
        elif (found := _GPUS.fullmatch(line.text[:200])) and section in ("Capacity", "Allocatable"):
            if (number := digits(found[2])) is not None:
                counts.setdefault((here, found[1]), {}).setdefault(section, (number, line))
        elif _HEARTBEATS.fullmatch(line.text[:300]):
            section = "Conditions"
            sections.setdefault(here, set()).add(section)
        elif section == "Conditions" and (told := _CONDITION.fullmatch(line.text[:2100])):
            _condition(out, here, told, line, context)
    out += _events(lines_of(text), out, context)
    troubled = {o.subject for o in out if o.fact == "kubernetes_condition"}
    for subject in (s for s, titles in sections.items() if "Conditions" in titles and s not in troubled):
        source = context.at(NAME, REVISION)
        out.append(Observation("kubernetes_condition", subject, None, Status.NONE_SEEN, source))
    for subject, kept in taints.items():
        add("node.kubernetes.taints", subject, ", ".join(taint for taint, _ in kept)[:300], kept[0][1])
    for subject, line in labels.items():
        if "Allocatable" in sections.get(subject, ()) and not any(key[0] == subject for key in counts):
            counts[subject, "nvidia.com/gpu"] = {"Capacity": (0, line)}
    counts = {
        key: value for key, value in counts.items() if key[0] not in otherwise or any(n for n, _ in value.values())
    }
    for (subject, resource), by_section in counts.items():
        if "Capacity" in by_section:
            add("node.kubernetes.gpus", subject, *by_section["Capacity"])
        if "Allocatable" in by_section:
            add("node.kubernetes.gpus.allocatable", subject, *by_section["Allocatable"])
        if len(by_section) == 2:
            (all_, _), (given, line) = by_section["Capacity"], by_section["Allocatable"]
            shown = f"{resource}: capacity {all_}, allocatable {given}"
            add("node.kubernetes.gpus.withheld", subject, max(0, all_ - given), line, shown)
    return out


def _events(lines: Sequence[Line], known: Sequence[Observation], context: Context) -> list[Observation]:
    """What the events of each node tell besides its conditions, which say how it is now."""
    out: list[Observation] = []
    starts = [i for i, line in enumerate(lines) if _NAME.fullmatch(line.text[:400])] or [0]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        named = _NAME.fullmatch(lines[start].text[:400])
        here = node(clean(named[1]) if named else context.host)
        told = described(rows(lines[start:end]), "node", here.id, context.host, partial(_told, context=context))
        stated = any(o.subject == here and o.fact == "node.kubernetes.ready" for o in known)
        out += [o for o in told if not stated or o.fact not in ("node.kubernetes.ready", "kubernetes_condition")]
    return out


def _told(fact: str, subject: Subject, value: Value, line: Line, context: Context) -> Observation:
    shown = excerpt(clean(line.text.strip()), 300)
    return Observation(fact, subject, value, Status.OK, context.at(NAME, REVISION, line.number), excerpt=shown)


def _condition(out: list[Observation], here: Subject, told: re.Match[str], line: Line, context: Context) -> None:
    """Ready as a state of the node; of all other conditions those that tell of trouble."""
    source, shown = context.at(NAME, REVISION, line.number), excerpt(clean(line.text.strip()), 300)
    name, status = told[1], told[2]
    trouble = "False" if GOOD.fullmatch(name) else "True"
    if name == "Ready":
        out.append(Observation("node.kubernetes.ready", here, status == "True", Status.OK, source, excerpt=shown))
    elif status == trouble:
        _, _, reason, message, *_ = (*re.split(r"\s{2,}", clean(told[3]).strip()), "", "", "", "")  # after two times
        fields = {"condition": name, "reason": excerpt(reason, 100), "message": excerpt(message, 200)}
        out.append(Observation("kubernetes_condition", here, Event(None, fields), Status.OK, source, excerpt=shown))
        if said := xid_of_condition(name, message, here.id):
            out.append(Observation("xid_reported", *said, Status.OK, source, excerpt=shown))


FORMAT = DocumentFormat(NAME, "kubectl describe node", REVISION, PROVIDES, sniff, parse)
