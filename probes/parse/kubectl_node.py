"""``kubectl describe node``: how many GPUs the kubelet counts, how many it gives to pods, and whether the node is ready."""

from __future__ import annotations

import re

from knowledge.observation import Observation, Status, Subject, Value, node
from knowledge.text import clean, digits, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of

NAME, REVISION = "kubectl-node", 2
PROVIDES = (
    "node.kubernetes.gpus", "node.kubernetes.gpus.allocatable", "node.kubernetes.gpus.withheld", "node.kubernetes.ready",
    "node.kubernetes.pressure", "node.kubernetes.problems", "node.kubernetes.cordoned",
)  # fmt: skip
_NAME = re.compile(r"Name:\s{1,40}(\S{1,253})\s{0,20}")
_SECTION = re.compile(r"([A-Z][A-Za-z ]{2,40}):\s{0,20}")
#   nvidia.com/gpu:     8
_GPUS = re.compile(
    r"\s{1,8}((?:nvidia|amd|habana|gpu\.intel)\.(?:com|ai)/(?:gpu|gaudi|i915|xe)):\s{1,40}(\d{1,6})\s{0,20}"
)
#   nvidia.com/mig-1g.10gb:     7           nvidia.com/gpu.shared:     32
_OTHER = re.compile(r"\s{1,8}\w{1,20}\.com/(?:mig-|gpu\.shared|gpu-)[\w.-]{0,40}:\s{1,40}(\d{1,6})\s{0,20}")
#   Ready                True    Wed, 12 Nov 2025 09:02:11 +0000 ...
_READY = re.compile(r"\s{1,8}Ready\s{1,40}(True|False|Unknown)\b.{0,2000}")

#   DiskPressure         False   ...
_PRESSURE = re.compile(r"\s{1,8}(Memory|Disk|PID)Pressure\s{1,40}(True|False)\b.{0,2000}")
#   GPUUnhealthy         True    Tue, 24 Nov 2026 ...   Tue, ...   XidError79   GPU 3 has fallen off the bus
_PROBLEM = re.compile(r"\s{1,8}([A-Z]\w{2,60})\s{1,40}(True|False)\s{1,20}(.{0,2000})")
_GOOD = ("Ready", "Healthy", "Available", "OK")  # how the name of a condition ends that is to be True
# Unschedulable:      true
_CORDON = re.compile(r"Unschedulable:\s{1,40}(true|false)\s{0,20}")


def sniff(head: str) -> int:
    """95 for the name of a node with its capacity and what of it can be given."""
    texts = [line.text[:300] for line in lines_of(head)]
    titles = {found[1] for text in texts if (found := _SECTION.fullmatch(text))}
    return 95 if {"Capacity", "Allocatable"} <= titles and any(_NAME.fullmatch(text) for text in texts) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Facts of each node that is described."""
    out: list[Observation] = []
    here, section = node(context.host), ""
    problems: dict[Subject, list[tuple[str, Line]]] = {}  # conditions of other checkers that are True
    pressures: dict[Subject, dict[str, tuple[bool, Line]]] = {}
    shared: set[Subject] = set()  # nodes that give their GPUs out under another name too
    counts: dict[tuple[Subject, str], dict[str, tuple[int, Line]]] = {}

    def add(fact: str, subject: Subject, value: Value, line: Line, shown: str = "") -> None:
        quoted = excerpt(clean(shown or line.text.strip()), 300)
        out.append(
            Observation(fact, subject, value, Status.OK, context.at(NAME, REVISION, line.number), excerpt=quoted)
        )

    for line in lines_of(text):
        if named := _NAME.fullmatch(line.text[:400]):
            here, section = node(clean(named[1])), ""
        elif cordon := _CORDON.fullmatch(line.text[:80]):
            add("node.kubernetes.cordoned", here, cordon[1] == "true", line)
        elif titled := _SECTION.fullmatch(line.text[:80]):
            section = titled[1]
        elif (found := _GPUS.fullmatch(line.text[:200])) and section in ("Capacity", "Allocatable"):
            if (number := digits(found[2])) is not None:
                counts.setdefault((here, found[1]), {}).setdefault(section, (number, line))
        elif (found := _OTHER.fullmatch(line.text[:200])) and section == "Capacity" and digits(found[1]):
            shared.add(here)
        elif section == "Conditions" and (ready := _READY.fullmatch(line.text[:2100])):
            add("node.kubernetes.ready", here, ready[1] == "True", line)
        elif section == "Conditions" and (pressed := _PRESSURE.fullmatch(line.text[:2100])):
            pressures.setdefault(here, {})[pressed[1].lower()] = pressed[2] == "True", line
        elif section == "Conditions" and (found := _PROBLEM.fullmatch(line.text[:2100])):
            problems.setdefault(here, [])
            if found[2] == "True" and not found[1].endswith(_GOOD):
                said = re.split(r"\s{2,}", found[3].strip())
                problems[here].append((excerpt(clean(" ".join([f"{found[1]}:", *said[2:]])), 160), line))
    for subject, bad in problems.items():
        if bad:
            add("node.kubernetes.problems", subject, tuple(words for words, _ in bad), bad[0][1])
    for subject, pressed_by in pressures.items():
        short = [name for name, (is_so, _) in pressed_by.items() if is_so]
        add(
            "node.kubernetes.pressure",
            subject,
            tuple(short),
            pressed_by[short[0] if short else next(iter(pressed_by))][1],
        )
    for (subject, resource), told in counts.items():
        if "Capacity" in told and (told["Capacity"][0] or subject not in shared):
            add("node.kubernetes.gpus", subject, *told["Capacity"])
        if "Allocatable" in told:
            add("node.kubernetes.gpus.allocatable", subject, *told["Allocatable"])
        if len(told) == 2:
            (all_, _), (given, line) = told["Capacity"], told["Allocatable"]
            shown = f"{resource}: capacity {all_}, allocatable {given}"
            add("node.kubernetes.gpus.withheld", subject, max(0, all_ - given), line, shown)
    return out


FORMAT = DocumentFormat(NAME, "kubectl describe node", REVISION, PROVIDES, sniff, parse)
