"""What a running job does, from outside: stacks, threads, I/O, GPU readings over two seconds. Nothing runs in the job."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation
from probes.capture.provides import OUTSIDE
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._capture import told

MAIN = ("capture.samples", "stack.hot.function", "thread.cpu.share")


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of the processes that the option `pids` names."""
    return told(request, host, MAIN)


PROBE = ProbeSpec(
    name="job-stacks",
    title=Text("Python stacks, threads and GPUs of a running job over two seconds, read from outside",
               "从外部读取运行中作业两秒内的 Python 调用栈、线程与 GPU"),
    provides=OUTSIDE,
    main=MAIN,
    collect=collect,
    needs=Needs(privileges=("the job's user", "CAP_SYS_PTRACE")),
    cost=Cost.SECONDS,
    side_effects=(Text("reads the job's memory 50 times a second for two seconds; the job is not stopped",
                       "两秒内每秒读取作业内存 50 次；作业不会暂停"),),
    deadline=15.0,
    default=False,
    takes=frozenset({"pids"}),
    wants=frozenset({"pids"}),
)  # fmt: skip
