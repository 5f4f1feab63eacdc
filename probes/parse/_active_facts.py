"""Names of the facts that the tools of active tests give. Apart from their parsers, whose patterns cost more than the names."""

from __future__ import annotations

COMMON = ("benchmark.name", "benchmark.completed", "benchmark.error", "benchmark.refused")
RDMA_LATENCIES = ("min", "max", "typical", "avg", "stdev", "p99", "p999")
# Of the run itself: probes/parse/active_run.py.
OWN = (
    "active.test", "active.outcome", "active.why", "active.reason", "active.exit_code", "active.seconds", "active.left_running",
    "gpu.active.temperature.max", "gpu.active.power.max", "gpu.active.clock.sm.median",
    "gpu.active.slowed.thermal.share", "gpu.active.slowed.power_brake.share",
)  # fmt: skip
NVBANDWIDTH = (
    *COMMON,
    "benchmark.copy.sum",
    "benchmark.copy.min",
    "benchmark.copy.max",
    "benchmark.copy.latency",
    "benchmark.h2d",
    "benchmark.d2h",
    "benchmark.d2d.min",
    "benchmark.d2d.median",
    "gpu.name",
    "node.driver.version",
)
NCCL_TESTS = (
    *COMMON,
    "benchmark.collective.op",
    "benchmark.collective.ranks",
    "benchmark.collective.nodes",
    "benchmark.collective.gpu",
    "benchmark.collective.nccl",
    "benchmark.collective.busbw.avg",
    "benchmark.collective.busbw.max",
    "benchmark.collective.busbw.largest",
    "benchmark.collective.largest",
    "benchmark.collective.latency",
    "benchmark.collective.wrong",
    "benchmark.collective.correct",
    "benchmark.collective.algbw",
    "benchmark.collective.busbw",
    "benchmark.collective.time",
    "benchmark.collective.in_place.algbw",
    "benchmark.collective.in_place.busbw",
    "benchmark.collective.in_place.time",
)
PERFTEST = (
    *COMMON,
    "benchmark.rdma.device",
    "benchmark.rdma.link_type",
    "benchmark.rdma.mtu",
    "benchmark.rdma.bw.max",
    "benchmark.rdma.bw.largest",
    "benchmark.rdma.bw.peak",
    "benchmark.rdma.bw.average",
    "benchmark.rdma.message_rate",
    "benchmark.rdma.latency.smallest",
    *(f"benchmark.rdma.latency.{name}" for name in RDMA_LATENCIES),
)
GPU_BURN = (
    *COMMON,
    "benchmark.burn.verdict",
    "benchmark.burn.errors",
    "benchmark.burn.died",
    "benchmark.burn.gflops",
    "benchmark.burn.temperature.max",
    "gpu.name",
)
