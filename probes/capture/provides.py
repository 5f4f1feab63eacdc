"""Every fact that a capture can give. Importing this costs nothing."""

from __future__ import annotations

from typing import Final

from probes.trace.verdict.provides import FACTS as TRACE_FACTS

_STACK: Final = (
    "data_wait.share", "data_wait.function", "data_work.share", "data_work.function", "collective.share", "collective.function",
    "sync.share", "sync.function", "python.share", "python.function", "operator.share", "operator.function", "backward.share",
    "optimizer.share", "checkpoint.share", "checkpoint.function", "compile.share", "import.share", "logging.share",
    "logging.function", "sleep.share", "sleep.function", "io.share", "io.function", "gc.share", "gil_wait.share", "gil.holder",
    "hot.share", "hot.function", "workers", "workers.busy.share", "workers.function", "workers.cpu.share", "workers.read.share",
)  # fmt: skip
_GPU: Final = (
    "utilization", "waves", "sm_activity", "tensor_activity", "memory_bandwidth", "power.share", "clock.share", "thermal.share",
    "power_cap.share", "hw_slowdown.share", "power_brake.share", "pcie.rx", "pcie.tx", "nvlink.rx", "nvlink.tx",
    "temperature.max", "others.share", "others.memory",
)  # fmt: skip
CAPTURE: Final = (
    "capture.window.seconds", "capture.samples", "capture.parts.missing", "capture.left_clean", "capture.iteration.longest",
    "capture.rate.loss", "capture.targets", "capture.ranks.whole", "capture.ended", "capture.enough",
)  # fmt: skip
RELATIONS: Final = (
    "process.uses_gpu", "process.state", "process.in_job", "process.is_rank", "rank.is_process", "rank.uses_gpu",
    "process.script",
)  # fmt: skip
STEPS: Final = (
    "step.count", "step.median", "step.worst", "step.worst.ratio", "step.batches", "step.loss.last", "step.loss.nan",
    "step.gradnorm.last", "step.anchor",
)  # fmt: skip
STACKS: Final = tuple(f"stack.{name}" for name in _STACK)
THREADS: Final = (
    "thread.cpu.share", "thread.runqueue.share", "thread.blocked_io.share", "thread.gil_wait.share", "process.window.cpu",
    "process.window.threads", "process.window.runnable", "process.window.faults.major", "process.window.read",
    "process.window.write", "process.window.read.miss.share", "process.window.swap", "process.window.migrations",
    "process.window.remote_memory.share", "process.cgroup.cpu.limit", "process.cgroup.throttled.share",
    "process.cgroup.throttled.periods.share", "process.cpus_allowed.count", "node.window.swap.in", "node.window.run_queue", "node.window.nic.rx",
    "node.window.nic.tx",
)  # fmt: skip
GPUS: Final = tuple(f"gpu.window.{name}" for name in _GPU)
RANKS: Final = (
    "job.ranks.captured", "job.slow_rank", "job.slow_rank.is_process", "job.slow_rank.function", "job.slow_rank.wait.share",
    "job.waiting.function", "job.hung", "job.hung.rank", "job.hung.is_process", "job.hung.function", "job.hung.collective",
    "job.hung.ranks_waiting", "job.hung.absent", "job.hung.desync", "process.hung", "process.hung.function", "process.hung.kind",
    "nccl.flight.collective", "nccl.flight.seq", "nccl.flight.missing_ranks",
)  # fmt: skip
OPERATORS: Final = ("operator.hot", "operator.hot.share")
OFFCPU: Final = (
    "offcpu.share", "offcpu.kind", "offcpu.kind.share", "offcpu.function", "offcpu.kernel.function", "offcpu.driver.share",
    "offcpu.driver.function", "offcpu.memory.share", "offcpu.memory.function", "offcpu.shared_storage.share",
    "offcpu.shared_storage.function", "launches.rate",
)  # fmt: skip
OUTSIDE: Final = (*CAPTURE, *RELATIONS, *STACKS, *THREADS, *GPUS, *RANKS)  # nothing is injected for these
FACTS: Final = tuple(dict.fromkeys((*OUTSIDE, *STEPS, *OPERATORS, *OFFCPU, *TRACE_FACTS)))
