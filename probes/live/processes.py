"""Processes: who uses the GPUs, and which job, rank, container, pod and user that is."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._fetch import document
from probes.parse import processes_snapshot

NAME = "processes"
MAIN = processes_snapshot.MAIN
# The check itself, and the collectors that open GPUs for it, are not what anybody wants to know of.
ALWAYS = ("--skip-family",)


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of two readings half a second apart. The options `pids` and `names` (programs, scripts, modules; with
    commas between) name processes that are told of in any case."""
    wanted = [pid for pid in request.options.get("pids", "").replace(",", " ").split() if pid.isdigit()]
    names = [name for name in request.options.get("names", "").split(",") if name]
    args = [*ALWAYS, *(word for pid in wanted for word in ("--pid", pid)), *(f"--name={name}" for name in names)]
    return document(host.snapshot(NAME, *args, deadline=request.deadline), host, processes_snapshot.FORMAT, MAIN)


PROBE = ProbeSpec(
    name="processes",
    title=Text("processes on GPUs, their jobs, ranks, containers and users", "GPU 上的进程及其作业、rank、容器与用户"),
    provides=processes_snapshot.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(files=("/proc/stat",), privileges=("root", "CAP_SYS_PTRACE")),
    cost=Cost.CHEAP,
    deadline=10.0,
    takes=frozenset({"pids", "names"}),
)
