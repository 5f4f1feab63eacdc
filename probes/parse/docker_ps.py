"""``docker ps`` and ``podman ps``: containers that are started again and again, or ended with an error within the last hour.

Column STATUS as docker/cli prints it (units.HumanDuration); a container that ended long ago tells nothing of now. One that calls itself
unhealthy says why only in ``docker inspect``.
"""

from __future__ import annotations

import re

from knowledge.language import Text
from knowledge.observation import Observation
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse._containers import ENDED, ended, none_ended

NAME, REVISION = "docker-ps", 1
PROVIDES = (ENDED,)
# CONTAINER ID   IMAGE        COMMAND     CREATED        STATUS                            PORTS     NAMES
_HEAD = re.compile(r"CONTAINER ID\s{2,60}IMAGE\s{2,200}COMMAND\s{2,60}CREATED\s{2,40}STATUS\s.{0,120}NAMES\s{0,20}")
# Restarting (139) 12 seconds ago        Exited (137) 4 minutes ago
_ENDED = re.compile(
    r"\s{2}(Restarting|Exited) \((\d{1,3})\) (?:Less than a (?:second|minute)|About a minute|\d{1,2} (?:seconds?|minutes?)) ago(?:\s|$)"
)
_UNHEALTHY = re.compile(r"\s{2}Up .{1,40}? \(unhealthy\)(?:\s|$)")
_ASKED_TO = (0, 130, 143)  # Ctrl-C and SIGTERM


def sniff(head: str) -> int:
    """94 for its heading."""
    return 94 if any(_HEAD.fullmatch(line.text[:600]) for line in lines_of(head)[:40]) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """An event for each container that fails; none seen where the list holds none."""
    lines = lines_of(text)
    out = [o for line in lines if (o := _event(line, context)) is not None]
    if not out and sniff(text):
        out.append(none_ended(context, context.at(NAME, REVISION)))
    return out


def _name(line: Line) -> str:
    return excerpt(clean(line.text.split()[-1]), 80)


def _event(line: Line, context: Context) -> Observation | None:
    found = _ENDED.search(line.text[:800])
    if found is None or int(found[2]) in _ASKED_TO:
        return None
    return ended(_name(line), int(found[2]), clean(line.text.strip()), context, context.at(NAME, REVISION, line.number))


def unread(text: str) -> list[tuple[int, Text]]:
    """Containers that call themselves unhealthy."""
    return [
        (line.number, Text(
            f"container {name} is unhealthy by its own check: `docker inspect -f '{{{{json .State.Health}}}}' {name}` tells why",
            f"容器 {name} 的健康检查未通过：`docker inspect -f '{{{{json .State.Health}}}}' {name}` 给出原因",
        ))
        for line in lines_of(text)
        if _UNHEALTHY.search(line.text[:800]) and (name := _name(line))
    ]  # fmt: skip


FORMAT = DocumentFormat(NAME, "docker ps", REVISION, PROVIDES, sniff, parse, unread=unread)
