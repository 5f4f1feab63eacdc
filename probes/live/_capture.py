"""What the two probes that capture from a job share: whom, how long, and what becomes of a capture that was not to be had."""

from __future__ import annotations

import json
from collections.abc import Sequence

from knowledge.observation import Observation, Source, Status, node
from knowledge.text import excerpt
from probes.base import Context
from probes.capture.model import SCHEMA
from probes.host import Host, Reply
from probes.live import ProbeRequest
from probes.live._fetch import missing
from probes.parse import job_capture

NAME = "capture"
MOST = 64  # processes
NOBODY = "no process was named: ask about one, such as pid 4242, or run gpudiag profile"


def pids(request: ProbeRequest) -> list[str]:
    """The process ids that were named."""
    words = request.options.get("pids", "").replace(",", " ").split()
    return [w for w in dict.fromkeys(words) if w.isascii() and w.isdigit() and len(w) < 11][:MOST]


def told(request: ProbeRequest, host: Host, main: Sequence[str], *words: str) -> list[Observation]:
    """Observations of one capture."""
    chosen = pids(request)
    if not chosen:
        source = Source(NAME, "", revision=job_capture.REVISION)
        return [Observation(fact, node(host.name), None, Status.NOT_ASKED, source, detail=NOBODY) for fact in main]
    reply = host.snapshot(NAME, "--pid", ",".join(chosen), *words, deadline=request.deadline)
    why = _why(reply, host.name)
    if why:
        return missing(main, host, reply, job_capture.FORMAT, why=why)
    found = job_capture.FORMAT.parse(reply.text, Context(reply.title, host.name))
    return found if not {o.fact for o in found}.isdisjoint(main) else missing(main, host, reply, job_capture.FORMAT)


def _why(reply: Reply, name: str) -> str:
    """Why there is no capture of the machine called `name`; empty when there is one."""
    if not reply.data:
        return reply.detail or excerpt(reply.errors, 200) or "nothing was printed"
    try:
        document = json.loads(reply.text)
    except (ValueError, RecursionError):
        printed = f"the document of {excerpt(name, 100)} is cut or is no JSON"
        return reply.detail or f"{printed}: it begins with {excerpt(reply.text.strip(), 60)}"
    if not isinstance(document, dict):
        return "it is no document"
    if (schema := document.get("schema")) != SCHEMA:
        said = excerpt(str(schema or "none"), 60)
        return f"the gpudiag on {excerpt(name, 100)} makes captures of another version ({said}) than this one reads ({SCHEMA})"
    error = document.get("error")
    return excerpt(str(error), 300) if error else ""
