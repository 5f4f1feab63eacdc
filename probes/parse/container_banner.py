"""What the start script of NVIDIA's images prints, above whatever the container runs then.

    WARNING: The NVIDIA Driver was not detected.  GPU functionality will not be available.
       Use the NVIDIA Container Toolkit to start this container with GPU support; see

Sources: entrypoints of the images of NGC (CUDA, PyTorch, TensorFlow, Triton) and their release notes. What starts with NOTE and
tells of a mode of compatibility that is enabled is no trouble.
"""

from __future__ import annotations

from collections.abc import Sequence

from knowledge.lazy import lazy
from knowledge.observation import Observation, Status
from knowledge.text import excerpt
from probes.base import Context, Line, LogFormat
from probes.parse._app_emit import Emitter
from probes.parse._app_lines import peel

NAME, REVISION = "container-banner", 1
EVENT = "container_banner"
# Container image Copyright (c) 2016-2023, NVIDIA CORPORATION & AFFILIATES. All rights reserved.
_BANNER = r"Container image Copyright \(c\) .{4,20}NVIDIA CORPORATION"
TRIGGERS = (
    r"WARNING: The NVIDIA Driver was not detected",
    # ERROR: This container was built for NVIDIA Driver Release 450.36 or later, but
    r"ERROR: This container was built for NVIDIA Driver Release [\d.]{1,20} or later",
    # ERROR: No supported GPU(s) detected to run this container
    r"ERROR: No supported GPU\(s\) detected to run this container|WARNING: Detected NVIDIA .{1,80} GPU, which (?:is not yet supported|may not yet be supported)",
    # NOTE: The SHMEM allocation limit is set to the default of 64MB.  This may be
    r"NOTE: The SHMEM allocation limit is set to the default of 64 ?MB",
)
_KINDS = tuple(zip(("no_driver", "driver_old", "gpu_unsupported", "shm_default"), map(lazy, TRIGGERS), strict=True))
_ANY = lazy("|".join((_BANNER, *TRIGGERS)))
_END = lazy(r"[.;] {2}|[.;]$")  # of its first sentence


def sniff(head: str) -> int:
    """36 for a banner or one of its warnings: whatever the container ran then says more."""
    return 36 if _ANY.search(head) else 0


def parse(lines: Sequence[Line], context: Context) -> list[Observation]:
    """An event for each warning; none seen where there is a banner, of whatever its script would have said."""
    emit = Emitter(NAME, REVISION, context)
    for line in lines:
        text = line.text[:2000]
        found = next(((kind, m) for kind, pattern in _KINDS if (m := pattern.search(text))), None)
        if found is not None:
            app = peel(line)
            said = _END.split(text[found[1].start() :].partition(": ")[2], maxsplit=1)[0]
            fields = {"kind": found[0], "message": excerpt(said, 160)}
            emit.event(EVENT, emit.node, fields, line.number, line.text, at=app.at, clock=app.clock)
    if any(_ANY.search(line.text[:2000]) for line in lines):
        why = "no other warning of the image's start script"
        emit.out.append(Observation(EVENT, emit.node, None, Status.NONE_SEEN, emit.source(None), detail=why))
    return emit.out


FORMAT = LogFormat(
    name=NAME,
    title="what NVIDIA's images print at their start",
    revision=REVISION,
    provides=(EVENT,),
    sniff=sniff,
    triggers=(_BANNER, *TRIGGERS),
    parse=parse,
    after=2,
)
