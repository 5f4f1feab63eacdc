"""``kubectl get nodes``: which nodes are ready, and which are closed to new pods."""

from __future__ import annotations

import re

from knowledge.observation import Observation, Status, node
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat, lines_of

NAME, REVISION = "kubectl-get-nodes", 1
PROVIDES = ("node.kubernetes.ready", "node.kubernetes.schedulable")
# NAME           STATUS                        ROLES           AGE   VERSION
_HEAD = re.compile(r"NAME\s{1,260}STATUS\s{1,80}ROLES\s{1,200}AGE\s{1,40}VERSION\b.{0,400}")
# gpu-worker-3   Ready,SchedulingDisabled      <none>          90d   v1.29.8
_ROW = re.compile(r"([a-z0-9][a-z0-9.-]{0,252})\s{1,260}((?:Not)?Ready|Unknown)((?:,\w{1,40}){0,4})\s{1,80}\S.{0,600}")


def sniff(head: str) -> int:
    """95 for its heading."""
    return 95 if any(_HEAD.fullmatch(line.text[:800]) for line in lines_of(head)[:20]) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Ready, and open to new pods, of each node that is listed."""
    out: list[Observation] = []
    for line in lines_of(text):
        if row := _ROW.fullmatch(line.text[:1000]):
            source, shown = context.at(NAME, REVISION, line.number), excerpt(clean(line.text.strip()), 300)
            said = {
                "node.kubernetes.ready": row[2] == "Ready",
                "node.kubernetes.schedulable": "SchedulingDisabled" not in row[3],
            }
            out += [
                Observation(fact, node(row[1]), value, Status.OK, source, excerpt=shown) for fact, value in said.items()
            ]
    return out


FORMAT = DocumentFormat(NAME, "kubectl get nodes", REVISION, PROVIDES, sniff, parse)
