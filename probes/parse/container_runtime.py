"""What docker, containerd, CRI-O and the NVIDIA container toolkit say when a container cannot be given its GPUs.

    docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].
    nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown

Sources: moby (daemon/devices.go), containerd and CRI-O (sandbox runtimes), libnvidia-container (src/cli), nvidia-container-toolkit (CDI).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from knowledge.lazy import lazy
from knowledge.observation import Observation
from knowledge.text import excerpt
from probes.base import Context, Line, LogFormat
from probes.parse._app_emit import Emitter
from probes.parse._app_lines import peel

NAME, REVISION = "container-runtime", 2
EVENT = "container_gpus_refused"
TRIGGERS = (
    r"could not select device driver",
    r"nvidia-container-cli(?:\.real)?: ",
    r'no runtime for [\\"]*nvidia[\\"]* is configured',  # escaped within a field of a log: error="... no runtime for \"nvidia\" is configured"
    r'[Uu]nknown (?:or invalid )?runtime (?:name|specified):? ?[\\"]*nvidia',
    r"unresolvable CDI devices|failed to inject (?:CDI )?devices|CDI device injection failed",
)
# What is wrong, the more exact first. `unconfigured`: the runtime knows no GPUs; the rest: the toolkit was asked and failed.
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("unconfigured", lazy(TRIGGERS[0])),
    ("unconfigured", lazy(TRIGGERS[2])),
    ("unconfigured", lazy(TRIGGERS[3])),
    ("cdi", lazy(TRIGGERS[4])),
    ("driver", lazy(r"driver not loaded|driver rpc error|nvml error: (?:uninitialized|driver)")),
    ("mismatch", lazy(r"[Dd]river/library version mismatch")),
    (
        "library",
        lazy(r"load library failed|libnvidia-ml\.so|ldcache error|mount error|file creation failed|permission denied"),
    ),
    ("requirement", lazy(r"requirement error|unsatisfied condition|please update your driver")),
    ("device", lazy(r"device error|unknown device|detection error|unknown error|GPU is lost|gpu access blocked")),
)
_ANY = lazy("|".join(f"(?:{t})" for t in TRIGGERS))
_SAID = lazy(
    r"(?:could not select device driver|nvidia-container-cli|no runtime for|[Uu]nknown (?:or invalid )?runtime|unresolvable CDI|failed to inject|CDI device).{0,200}"
)

_NEXT = lazy(
    r"\\*\"{1,2} (?=[A-Za-z]\w{1,30}=)"
)  # ... all: unknown\"" pod="ml/train-0" podUID="1b2c"      the next field of the record


def refused(text: str) -> tuple[str, str] | None:
    """Kind and words of what refused a container its GPUs; None when `text` tells of no such thing."""
    if not _ANY.search(text):
        return None
    said = _SAID.search(text)
    words = _NEXT.split(said[0] if said else text, maxsplit=1)[0]
    return next((kind for kind, pattern in _KINDS if pattern.search(text)), "other"), excerpt(words, 200)


def sniff(head: str) -> int:
    """35 when a line tells of a container that did not get its GPUs: a document with such a sentence is more."""
    return 35 if _ANY.search(head) else 0


def parse(lines: Sequence[Line], context: Context) -> list[Observation]:
    """An event for each line that tells of one."""
    emit = Emitter(NAME, REVISION, context)
    for line in lines:
        if found := refused(line.text[:4000]):
            app = peel(line)
            fields = {"kind": found[0], "message": found[1].replace("\\n", " ").replace('\\"', '"').rstrip('"} ')}
            emit.event(EVENT, emit.node, fields, line.number, line.text, at=app.at, clock=app.clock)
    return emit.out


FORMAT = LogFormat(
    name=NAME,
    title="errors of container runtimes about GPUs",
    revision=REVISION,
    provides=(EVENT,),
    sniff=sniff,
    triggers=TRIGGERS,
    parse=parse,
)
