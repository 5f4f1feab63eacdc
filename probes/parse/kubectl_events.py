"""``kubectl get events`` and ``kubectl events``: what Kubernetes warns of, by the object that it is about.

A pod that waits or fails, a node that is not ready: as the other outputs of kubectl tell them; every other warning as it
stands. Of several events of a node the youngest counts.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from knowledge.observation import Observation, Status, Subject, Value, node
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse._columns import cells
from probes.parse._kubectl_events import (
    LONGEST,
    PASSED,
    PROVIDES,
    READY,
    Row,
    goes_on,
    longer,
    overcome,
    seconds,
    warning,
)

NAME, REVISION = "kubectl-events", 5
# LAST SEEN   TYPE      REASON             OBJECT                    MESSAGE           NAMESPACE ahead of them, more with -o wide
_HEAD = re.compile(
    r"(?:NAMESPACE\s{1,80})?LAST SEEN\s{1,40}TYPE\s{1,40}REASON\s{1,80}OBJECT\s{1,260}.{0,200}\bMESSAGE\b.{0,200}"
)
# Back-off restarting failed container nvidia-driver-ctr in pod nvidia-driver-daemonset-k2x8p_gpu-operator(88f1)
_IN_POD = re.compile(r"\bin pod ([\w.-]{1,253})_([\w-]{1,63})\(")
# Successfully assigned ml/train-0 to gpu-w-14
_PLACED = re.compile(r"Successfully assigned ([\w-]{1,63})/([\w.-]{1,253}) to ([\w.-]{1,253})")


def sniff(head: str) -> int:
    """98 for the heading: a message of an event may quote any other tool."""
    return 98 if any(_HEAD.fullmatch(line.text[:600].rstrip()) for line in lines_of(head)[:20]) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """An observation for each warning; none seen of the kinds of which the list holds none."""
    out: list[Observation] = []
    ready: dict[str, tuple[int, Observation]] = {}
    rows = _rows(text)
    listed = any(_HEAD.fullmatch(line.text[:600].rstrip()) for line in lines_of(text))
    pods = _pods([row for row, _ in rows])
    own: dict[tuple[str, str], list[Row]] = defaultdict(list)  # by object
    for row, line in rows:
        event = Row(row["TYPE"], row["REASON"], seconds(row["LAST_SEEN"]), row["MESSAGE"], line)
        own[row.get("NAMESPACE", ""), row["OBJECT"].lower()].append(event)
    for row, line in rows:
        kind, _, name = row["OBJECT"].partition("/")
        if kind.lower() == "node" and row["REASON"] in READY:
            age = seconds(row["LAST_SEEN"])
            told = _told("node.kubernetes.ready", node(name), READY[row["REASON"]], line, context)
            if name not in ready or age < ready[name][0]:
                ready[name] = age, told
        elif row["TYPE"] == "Warning" and row["REASON"] not in PASSED and not _over(row, line, own):
            out.append(_warning(row, kind.lower(), name, pods, line, context))
    seen = {o.fact for o in out}
    absent = [f for f in PROVIDES if listed and f not in seen and not f.startswith(("node.", "kubernetes_condition"))]
    here, source = node(context.host), context.at(NAME, REVISION)
    out += [Observation(fact, here, None, Status.NONE_SEEN, source) for fact in absent]
    return [*out, *(told for _, told in ready.values())]


def _over(row: dict[str, str], line: Line, own: Mapping[tuple[str, str], Sequence[Row]]) -> bool:
    """Whether its object got over what an event warns of."""
    events = own[row.get("NAMESPACE", ""), row["OBJECT"].lower()]
    return any(overcome(event, events) for event in events if event.line is line)


def _rows(text: str) -> list[tuple[dict[str, str], Line]]:
    """The events under their heading. Messages hold line ends of what they quote: what is no row goes on with the one above."""
    rows: list[tuple[dict[str, str], Line]] = []
    columns: list[str] = []
    ended = True
    for line in lines_of(text):
        if _HEAD.fullmatch(line.text[:600].rstrip()):
            columns = line.text.replace("LAST SEEN", "LAST_SEEN").replace("FIRST SEEN", "FIRST_SEEN").split()
            continue
        row = cells(line.text, columns, "MESSAGE") if columns else {}
        if row.get("TYPE") in ("Normal", "Warning") and row["OBJECT"].partition("/")[2]:
            rows.append((row, line))
            ended = False
        elif ended or not goes_on(line.text):
            ended = True
        else:
            above, first = rows[-1]
            above["MESSAGE"] = f"{above['MESSAGE']} {line.text.strip()}"[:LONGEST]
            rows[-1] = above, longer(first, line)
    return rows


class _Pods(NamedTuple):
    """What events tell of the pods beside what they warn of."""

    spaces: Mapping[str, set[str]]  # namespaces by the pod's name
    hosts: Mapping[tuple[str, str], str]  # node by namespace and name

    def space(self, name: str) -> str:
        """The namespace of a pod; empty where nothing names it, or several have one of that name."""
        return next(iter(self.spaces[name])) if len(self.spaces.get(name, ())) == 1 else ""


def _pods(rows: Sequence[dict[str, str]]) -> _Pods:
    spaces: dict[str, set[str]] = defaultdict(set)
    hosts: dict[tuple[str, str], str] = {}
    for row in rows:
        for found in _IN_POD.finditer(row["MESSAGE"]):
            spaces[found[1]].add(found[2])
        if placed := _PLACED.search(row["MESSAGE"]):
            spaces[placed[2]].add(placed[1])
            hosts[placed[1], placed[2]] = placed[3]
    return _Pods(spaces, hosts)


def _warning(row: dict[str, str], kind: str, name: str, pods: _Pods, line: Line, context: Context) -> Observation:
    namespace = row.get("NAMESPACE") or (pods.space(name) if kind == "pod" else "")
    host = pods.hosts.get((namespace, name), context.host) if kind == "pod" else context.host
    full = f"{namespace}/{name}" if namespace and kind != "node" else name
    told = partial(_told, context=context)
    return warning(row["REASON"], row["MESSAGE"], kind, full, host, line, told)


def _told(fact: str, subject: Subject, value: Value, line: Line, context: Context) -> Observation:
    shown = excerpt(clean(line.text.strip()), 300)
    return Observation(fact, subject, value, Status.OK, context.at(NAME, REVISION, line.number), excerpt=shown)


FORMAT = DocumentFormat(NAME, "kubectl get events", REVISION, PROVIDES, sniff, parse)
