"""Jobs of several ranks, simulated with known truth, one trace file a rank.

All ranks run the same steps: data, compute kernels, collectives of their groups. A collective begins on a rank when it
arrives there and ends on all its ranks when the last has arrived and the transfer is done; the host waits for it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.trace_files import DATA_LOADER, GEMM, TraceFile

ALLREDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


class Cluster:
    """`compute`, `loader`, `host`: us a step of each rank (in kernels, the data loader, and Python before them); `late`: us by
    which its first step begins late; `kernels`: how many the computing is split into; `jitter`: share by which each varies;
    `call`: us that launching one takes; `groups`: (ranks, transfer
    in us) in the order in which they are called; `offset`: us that each rank's clock is ahead; `record`: process groups stand in the kernels' arguments."""

    def __init__(self, *, compute: Sequence[int], loader: Sequence[int] | None = None, steps: int = 5,
                 groups: Sequence[tuple[tuple[int, ...], int]] | None = None, offset: Sequence[int] | None = None,
                 record: bool = True, sequence: bool = True, elements: int = 1 << 20, world: int | None = None,
                 numbers: Sequence[int] | None = None, host: Sequence[int] | None = None,
                 late: Sequence[int] | None = None, kernels: Sequence[int] | None = None, jitter: float = 0, call: Sequence[int] | None = None) -> None:  # fmt: skip
        n = len(compute)
        self.compute, self.loader, self.host = compute, loader or [0] * n, host or [0] * n
        self.call = call or [1] * n
        self.kernels, self._jitter, self._chance = kernels or [4] * n, jitter, random.Random(1)
        self.groups = groups or [(tuple(range(n)), 500)]
        self.offset, self.record, self.sequence, self.elements = offset or [0] * n, record, sequence, elements
        self.numbers = list(numbers) if numbers is not None else list(range(n))
        self.files = [TraceFile(rank=self.numbers[r], world=world or n, at=self.offset[r]) for r in range(n)]
        self._now = [1000 + us for us in late or [0] * n]  # host and device of each rank, in step
        self._calls = [0] * n
        self._sequence = [0] * len(self.groups)
        for step in range(1, steps + 1):
            self._step(step)

    def _step(self, number: int) -> None:
        begin = list(self._now)
        for r, file in enumerate(self.files):
            if self.loader[r]:
                file.annotation(DATA_LOADER, self._now[r], self.loader[r])
                self._now[r] += self.loader[r]
            self._now[r] += self.host[r]
            for _ in range(self.kernels[r]):
                factor = 1 + self._jitter * self._chance.uniform(-1, 1)
                self._kernel(r, GEMM, self._now[r] + self.call[r] - 1, int(self.compute[r] * factor) // self.kernels[r])
        for g, (ranks, transfer) in enumerate(self.groups):
            self._collective(g, ranks, transfer)
        for r, file in enumerate(self.files):
            file.annotation(f"ProfilerStep#{number}", begin[r], self._now[r] - begin[r])

    def _kernel(self, r: int, name: str, start: int, us: int, **args: Any) -> None:
        self._calls[r] += 1
        self.files[r].launch(self._now[r], self.call[r] if name == GEMM else 1, correlation=self._calls[r])
        self.files[r].kernel(name, start, us, correlation=self._calls[r], **args)
        self._now[r] = max(self._now[r], start + us)

    def _collective(self, g: int, ranks: tuple[int, ...], transfer: int) -> None:
        end = max(self._now[r] for r in ranks) + transfer
        self._sequence[g] += 1
        args: dict[str, Any] = {}
        if self.record:
            args = {"Collective name": "allreduce", "In msg nelems": self.elements, "Out msg nelems": self.elements,
                    "Group size": len(ranks), "dtype": "BFloat16", "Process Group Name": str(g),
                    "Process Group Ranks": str([self.numbers[r] for r in ranks])}  # fmt: skip
            if self.sequence:
                args["Seq"] = self._sequence[g]
        for r in ranks:
            self._kernel(r, ALLREDUCE, self._now[r], end - self._now[r], stream=20, **args)

    def save(self, folder: Path, **how: object) -> list[str]:
        """One file a rank."""
        return [f.save(folder / f"file{i:02}.json", **how) for i, f in enumerate(self.files)]  # type: ignore[arg-type]
