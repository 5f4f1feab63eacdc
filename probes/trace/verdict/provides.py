"""Names of the facts that traces tell, without loading what reads them."""

from __future__ import annotations

from typing import Final

JOB_FACTS: Final = (
    "job.step.data_wait.share", "job.step.exposed_communication.share", "job.step.gpu_idle.share", "job.trace.ranks",
    "job.trace.missing", "job.trace.failed", "job.straggler.rank", "job.straggler.share", "job.straggler.of_waiting",
    "job.straggler.cause", "job.straggler.extra_ms", "job.collective.wait.share", "job.collective.slow_link.share",
    "job.collective.slow_link.what", "job.compute.imbalance", "job.pipeline.bubble.share", "job.pipeline.ideal.share",
)  # fmt: skip
RANK_FACTS: Final = (
    "trace.window", "trace.window.seconds", "trace.whole", "trace.gpu_events", "trace.stacks", "trace.shapes",
    "trace.device", "trace.device.tensor_cores", "trace.idle.share", "trace.idle.data_loader.share",
    "trace.idle.sync.share", "trace.idle.host.share", "trace.idle.launch.share", "trace.idle.kernel.share",
    "trace.idle.unknown.share", "trace.idle.python.share", "trace.idle.operators.share", "trace.idle.threads.share",
    "trace.idle.after_sync.share", "trace.idle.longest", "trace.python.top", "trace.sync.calls", "trace.sync.top",
    "trace.sync.per_kernel", "trace.compute.share", "trace.communication.share",
    "trace.exposed_communication.share", "trace.overlap.share", "trace.collective_wait.share", "trace.communication.top",
    "trace.exposed_copy.share", "trace.copies.pageable.share", "trace.copies.pageable.count",
    "trace.data_loader.workers", "trace.data_loader.share", "trace.checkpoint.share", "trace.checkpoint.what",
    "trace.iterations", "trace.iteration.median_ms", "trace.iteration.slow", "trace.iteration.slow.share",
    "trace.iteration.first", "trace.kernels", "trace.kernel.median_us", "trace.kernels.short.share",
    "trace.kernels.tiny.share", "trace.kernels.underfilled.share", "trace.launches.rate", "trace.launch.call_us", "trace.launch.top",
    "trace.queue.empty.share", "trace.graph.kernels.share", "trace.kernel.top", "trace.kernel.top.share",
    "trace.tensor_core.yes.share", "trace.tensor_core.unknown.share", "trace.gemm.plain.share",
    "trace.gemm.plain.top", "trace.bytes_only.share", "trace.memory_bound.share", "trace.compute_bound.share",
    "trace.memory_bound.window.share", "trace.compute_bound.window.share", "trace.gemm.rate", "trace.gemm.of_peak", "trace.gemm.covered.share", "trace.gemm.batch_factor", "trace.layout.share", "trace.compiled",
    "trace.optimizer", "trace.optimizer.share", "trace.graph_candidate.share", "trace.graph_candidate.kernels",
    "trace.graph_candidate.top", "trace.fusion_candidate.share", "trace.fusion_candidate.chains",
    "trace.fusion_candidate.top", "trace.allocator.calls", "trace.allocator.calls.share", "trace.allocator.idle.share", "trace.allocator.growth",
    "trace.allocator.fragmentation", "trace.allocator.peak",
)  # fmt: skip
NAMED_FACTS: Final = (
    "trace.by_kernel.share", "trace.by_kernel.ms", "trace.by_kernel.calls", "trace.by_kernel.class",
    "trace.by_operator.share", "trace.by_operator.ms", "trace.by_operator.all_ms", "trace.by_operator.host_ms",
    "trace.by_operator.calls",
)  # fmt: skip
FACTS: Final = (*RANK_FACTS, *JOB_FACTS, *NAMED_FACTS)
