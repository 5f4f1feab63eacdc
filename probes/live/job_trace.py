"""What a running job does, also from inside: operators and kernels by the profiler, which is started in the job."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation
from probes.capture.provides import FACTS
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._capture import told

MAIN = ("capture.samples", "operator.hot")


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of the processes that the option `pids` names."""
    return told(request, host, MAIN, "--inject")


PROBE = ProbeSpec(
    name="job-trace",
    title=Text("operators and kernels of a running job, by the profiler started inside it", "在运行中的作业内启动 profiler 获取算子与 kernel"),
    provides=FACTS,
    main=MAIN,
    collect=collect,
    needs=Needs(privileges=("the job's user", "CAP_SYS_PTRACE")),
    cost=Cost.HEAVY,
    side_effects=(
        Text("runs torch's profiler in the job for two seconds: up to 18 % slower meanwhile, a stop of at most 0.4 s at the end; a thread "
             "of the profiler and some memory stay, and a few lines go to the job's stderr",
             "在作业内运行 torch profiler 两秒：期间最多慢 18 %，结束时最多停顿 0.4 秒；会留下 profiler 的一个线程和一些内存，并向作业 stderr 写几行"),
    ),
    deadline=40.0,
    default=False,
    takes=frozenset({"pids"}),
    wants=frozenset({"pids"}),
)  # fmt: skip
