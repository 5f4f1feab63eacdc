"""Which container a name means: the runtimes' own command lines tell, and on a Kubernetes node the names of log files."""

from __future__ import annotations

import re
from collections.abc import Iterable

from knowledge.observation import Status
from probes.host import Host
from probes.parse._process_place import SHORT, Place

DEADLINE = 3.0  # seconds for one runtime's answer
# Each prints "ID NAME" lines of running containers.
_TOOLS = (
    ("docker", "ps", "--no-trunc", "--format", "{{.ID}} {{.Names}}"),
    ("podman", "ps", "--no-trunc", "--format", "{{.ID}} {{.Names}}"),
    ("nerdctl", "ps", "--no-trunc", "--format", "{{.ID}} {{.Names}}"),
)
_LOGS = "/var/log/containers/*.log"
# trainer-0_team-a_main-4c2f...ef.log: pod, namespace, container, id
_LOG = re.compile(
    r"(?P<pod>[a-z0-9.-]{1,253})_(?P<namespace>[a-z0-9-]{1,63})_(?P<name>[a-z0-9.-]{1,63})-(?P<id>[0-9a-f]{64})\.log"
)
_HEX = re.compile(r"[0-9a-f]{3,64}")
_LINE = re.compile(r"([0-9a-f]{12,64})\s+(\S{1,255})$")


def named(host: Host) -> dict[str, set[str]]:
    """Short id of each running container -> its names, as far as anything here tells them."""
    out: dict[str, set[str]] = {}
    for argv in _TOOLS:
        reply = host.run(argv, deadline=DEADLINE)
        if reply.status is Status.OK and reply.exit_code == 0:
            for line in reply.text.splitlines():
                if found := _LINE.match(line.strip()):
                    out.setdefault(found[1][:SHORT], set()).update(found[2].split(","))
    for path in host.files(_LOGS):
        if found := _LOG.fullmatch(path.rpartition("/")[2]):
            pod, namespace, name = found["pod"], found["namespace"], found["name"]
            out.setdefault(found["id"][:SHORT], set()).update(
                {name, pod, f"{namespace}/{pod}", f"{pod}/{name}", f"{namespace}/{pod}/{name}"}
            )
    return out


def means(wanted: str, place: Place, names: Iterable[str] = ()) -> bool:
    """Whether `wanted` is this container: by the beginning of its id, a name, or the uid of its pod."""
    if not place.container:
        return False
    by_id = bool(_HEX.fullmatch(wanted)) and (place.container.startswith(wanted) or wanted.startswith(place.container))
    return by_id or wanted in (place.container, place.pod) or wanted in set(names)
