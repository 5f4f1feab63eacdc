"""``docker inspect`` and ``podman inspect``: how a container ended, in the runtime's own state of it.

The keys are those of the Docker Engine API (``ContainerState``: Status, OOMKilled, ExitCode, Error), which podman prints as well. 128 and
more is a signal, as of a shell; a container that runs, and one that ended with 0, tells of nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from knowledge.observation import Observation
from knowledge.text import excerpt
from probes.base import Context, DocumentFormat
from probes.parse._containers import ENDED, ended, none_ended
from probes.parse._vendor_emit import load, opens, table, tables, words

NAME, REVISION = "container-inspect", 1
PROVIDES = (ENDED,)
# "State": {  "Status": "exited", ... "OOMKilled": false, ... "ExitCode": 139
_KEYS = tuple(re.compile(rf'"{key}"\s{{0,4}}:') for key in ("State", "OOMKilled", "ExitCode"))
_REQUESTED = 143  # SIGTERM: somebody asked it to end


def sniff(head: str) -> int:
    """96 for JSON with the state of a container."""
    return 96 if opens(head) in ("[", "{") and all(key.search(head) for key in _KEYS) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """An event for each container that ended with an error; none seen where all that are shown run or ended well."""
    states = [(c, table(c.get("State"))) for c in tables(load(text))]
    states = [(container, state) for container, state in states if "ExitCode" in state]
    out = [o for container, state in states for o in _ended(container, state, context)]
    if states and not out:
        out.append(none_ended(context, context.at(NAME, REVISION)))
    return out


def _ended(container: Mapping[str, Any], state: Mapping[str, Any], context: Context) -> Iterator[Observation]:
    code = state["ExitCode"]
    killed = state.get("OOMKilled") is True
    if state.get("Running") is True or not isinstance(code, int) or isinstance(code, bool):
        return
    if not killed and (code <= 0 or code == _REQUESTED):
        return
    name = excerpt(words(container.get("Name")).lstrip("/") or words(container.get("Id"))[:12], 80)
    shown = ", ".join(
        f"{key} {state[key]}"
        for key in ("Status", "OOMKilled", "ExitCode", "Error")
        if state.get(key) not in (None, "")
    )
    yield ended(name, code, f"{name}: {shown}", context, context.at(NAME, REVISION), "oom_killed" if killed else "")


FORMAT = DocumentFormat(NAME, "docker inspect", REVISION, PROVIDES, sniff, parse)
