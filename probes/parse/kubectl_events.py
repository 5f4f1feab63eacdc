"""``kubectl get events`` and ``kubectl events``: what Kubernetes warns of, by the object that it is about.

A pod that waits or fails, a node that is not ready: as the other outputs of kubectl tell them; every other warning as it
stands. Of several events of a node the youngest counts.
"""

from __future__ import annotations

import re
from functools import partial

from knowledge.observation import Observation, Status, Subject, Value, node
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse._columns import cells
from probes.parse._kubectl_events import PASSED, PROVIDES, READY, seconds, warning

NAME, REVISION = "kubectl-events", 3
# LAST SEEN   TYPE      REASON             OBJECT                    MESSAGE           NAMESPACE ahead of them, more with -o wide
_HEAD = re.compile(
    r"(?:NAMESPACE\s{1,80})?LAST SEEN\s{1,40}TYPE\s{1,40}REASON\s{1,80}OBJECT\s{1,260}.{0,200}\bMESSAGE\b.{0,200}"
)
# Back-off restarting failed container nvidia-driver-ctr in pod nvidia-driver-daemonset-k2x8p_gpu-operator(88f1)
_NAMESPACE = re.compile(r"\bin pod [\w.-]{1,253}_([\w-]{1,63})\(")


def sniff(head: str) -> int:
    """98 for the heading: a message of an event may quote any other tool."""
    return 98 if any(_HEAD.fullmatch(line.text[:600].rstrip()) for line in lines_of(head)[:20]) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """An observation for each warning; none seen of the kinds of which the list holds none."""
    out: list[Observation] = []
    columns: list[str] = []
    ready: dict[str, tuple[int, Observation]] = {}
    for line in lines_of(text):
        if _HEAD.fullmatch(line.text[:600].rstrip()):
            columns = line.text.replace("LAST SEEN", "LAST_SEEN").replace("FIRST SEEN", "FIRST_SEEN").split()
            continue
        row = cells(line.text, columns, "MESSAGE") if columns else {}
        kind, _, name = row.get("OBJECT", "").partition("/")
        if row.get("TYPE") not in ("Normal", "Warning") or not name:
            continue
        if kind.lower() == "node" and row["REASON"] in READY:
            age = seconds(row["LAST_SEEN"])
            told = _told("node.kubernetes.ready", node(name), READY[row["REASON"]], line, context)
            if name not in ready or age < ready[name][0]:
                ready[name] = age, told
        elif row["TYPE"] == "Warning" and row["REASON"] not in PASSED:
            out.append(_warning(row, kind.lower(), name, line, context))
    seen = {o.fact for o in out}
    absent = [f for f in PROVIDES if columns and f not in seen and not f.startswith(("node.", "kubernetes_condition"))]
    here, source = node(context.host), context.at(NAME, REVISION)
    out += [Observation(fact, here, None, Status.NONE_SEEN, source) for fact in absent]
    return [*out, *(told for _, told in ready.values())]


def _warning(row: dict[str, str], kind: str, name: str, line: Line, context: Context) -> Observation:
    within = _NAMESPACE.search(row["MESSAGE"]) if kind == "pod" else None
    namespace = row.get("NAMESPACE") or (within[1] if within else "")
    full = f"{namespace}/{name}" if namespace and kind != "node" else name
    told = partial(_told, context=context)
    return warning(row["REASON"], row["MESSAGE"], kind, full, context.host, line, told)


def _told(fact: str, subject: Subject, value: Value, line: Line, context: Context) -> Observation:
    shown = excerpt(clean(line.text.strip()), 300)
    return Observation(fact, subject, value, Status.OK, context.at(NAME, REVISION, line.number), excerpt=shown)


FORMAT = DocumentFormat(NAME, "kubectl get events", REVISION, PROVIDES, sniff, parse)
