"""Small traces built by code: a writer of Kineto files, and a simulated job that fills one plausibly.

`TraceFile` writes any event with exact times (microseconds as int, decimal text or float of at most ns steps)::

    from tests.trace_files import TraceFile, Job, data_bound, launch_bound, compute_bound, comm_bound, sync_bound

    path = (TraceFile(rank=0, world=2, gpu="NVIDIA H100 80GB HBM3")
            .op("aten::mm", 0, 20, dims=[[64, 32], [32, 16]], types=["float", "float"])
            .launch(5, 4, correlation=1)                      # cudaLaunchKernel on the op's thread
            .kernel("sm90_gemm", "12.345", 30, stream=7, correlation=1)
            .memcpy("Memcpy HtoD (Pinned -> Device)", 50, 3, bytes=4096, stream=7)
            .annotation("ProfilerStep#1", 0, 60)
            .save(tmp_path / "t.json"))                        # style="kineto" | "old" | "compact", gz=True

`save` returns the path as text. Styles: ``kineto`` (pretty, three decimals), ``old`` (capital categories, whole
microseconds as they were before 2022), ``compact`` (one line, `}, {`, other key order). ``old`` rounds to microseconds.

`read(trace_or_job, summary.NEEDS)` gives the `Trace` at once, for tests of what stands behind the reader.

`Job` runs a program on a host clock and device clocks, so that launches, delays, waits and gaps follow from one another::

    job = Job(rank=0)
    with job.step(1):                                         # ProfilerStep#1
        job.wait_data(600)                                    # enumerate(DataLoader)#...__next__
        with job.frame("train.py(12): train_step"), job.frame("nn.Module: Linear_0"):
            job.op("aten::addmm", [("sm90_xmma_gemm_bf16", 300)], dims=[[8], [64, 32], [32, 8]])
        job.collective("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 200)
        job.sync()                                            # cudaStreamSynchronize: until the device is done
    path = job.save(tmp_path / "rank0.json")

and `data_bound(0.6)`, `launch_bound()`, ... give whole jobs of a known ailment; each takes `steps` and keywords of `Job`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.trace_writer import TraceFile, Us, nanoseconds, read

__all__ = [
    "ALLREDUCE", "DATA_LOADER", "ELEMENTWISE", "GEMM", "Job", "TraceFile", "Us", "comm_bound", "compute_bound", "data_bound",
    "launch_bound", "nanoseconds", "read", "sync_bound",
]  # fmt: skip

DATA_LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_kernel"
ELEMENTWISE = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
    "(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"
)
ALLREDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


class Job:
    """A program on one host thread (`tid`) with one device, whose clocks move as the calls do. Times in microseconds.

    `call` is the length of a launch call, `delay` the way of a launch to the device, `host` what an operator costs
    on the host beside its calls.
    """

    def __init__(self, *, call: float = 4, delay: float = 6, host: float = 10, start: float = 100, **file: Any) -> None:
        self.trace = TraceFile(**file)
        self.call, self.delay, self.host = call, delay, host
        self.now = float(start)  # the host's clock
        self.tid = 1
        self.done: dict[int | str, float] = {}  # stream -> when its last work ends
        self._correlation = 0
        self._python = 0

    def spend(self, us: float) -> None:
        """The host does something that nobody recorded."""
        self.now += us

    def _close(self, event: dict[str, Any]) -> None:
        """What contains stands in front of what it contains, as the profiler writes it: they may be equally long."""
        event["dur"] = nanoseconds(self.now) + self.trace.shift_ns - event["ts"]

    @contextmanager
    def annotate(self, name: str) -> Iterator[None]:
        """A record_function range."""
        event = self.trace.annotation(name, self.now, 0, tid=self.tid).events[-1]
        yield
        self._close(event)

    @contextmanager
    def frame(self, name: str) -> Iterator[None]:
        """A Python function on the stack."""
        self._python += 1
        event = self.trace.python(name, self.now, 0, tid=self.tid, **{"Python id": self._python}).events[-1]
        yield
        self._close(event)

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        """An iteration: ProfilerStep#number."""
        with self.annotate(f"ProfilerStep#{number}"):
            yield

    @contextmanager
    def thread(self, tid: int) -> Iterator[None]:
        """What follows runs on another thread (the autograd engine's), while this one waits."""
        before, self.tid = self.tid, tid
        yield
        self.tid = before

    def wait_data(self, us: float, name: str = DATA_LOADER) -> None:
        """The host waits in the data loader."""
        with self.annotate(name):
            self.now += us

    def launch(self, name: str, us: float, *, stream: int | str = 7, after: Sequence[int | str] = (),
               call: str = "cudaLaunchKernel", **args: Any) -> None:  # fmt: skip
        """Launches one kernel (or copy, by its name). It waits for its stream and for the streams in `after`."""
        self._correlation += 1
        self.trace.launch(self.now, self.call, correlation=self._correlation, name=call, tid=self.tid)
        self.now += self.call
        ready = max([self.now + self.delay, *(self.done.get(s, 0) for s in (stream, *after))])
        add = self.trace.memcpy if name.startswith("Memcpy") else self.trace.kernel
        add(name, ready, us, stream=stream, correlation=self._correlation, external=self._correlation, **args)
        self.done[stream] = ready + us

    def graph(self, kernels: Sequence[tuple[str, float]], *, gap: float = 1, stream: int | str = 7) -> None:
        """Replays a CUDA graph: one call, many kernels with its correlation id."""
        self._correlation += 1
        self.trace.launch(self.now, self.call, correlation=self._correlation, name="cudaGraphLaunch", tid=self.tid)
        self.now += self.call
        ready = max(self.now + self.delay, self.done.get(stream, 0))
        for name, us in kernels:
            self.trace.kernel(name, ready, us, stream=stream, correlation=self._correlation)
            self.done[stream] = ready + us
            ready += us + gap

    def op(self, name: str, kernels: Sequence[tuple[str, float]] = (), *, dims: Any = None, types: Any = None,
           stream: int | str = 7, inner: str = "", **args: Any) -> None:  # fmt: skip
        """An operator that launches `kernels`; `inner`: they are launched by an operator of that name within it."""
        begin = self.now
        self.now += self.host / 2
        within = self.now
        for kernel, us in kernels:
            self.launch(kernel, us, stream=stream)
        self._correlation += 1
        if inner:
            self.trace.op(inner, within, self.now - within, dims=dims, types=types, tid=self.tid)
        self.now += self.host / 2
        self.trace.op(name, begin, self.now - begin, dims=dims, types=types, tid=self.tid, **args)

    def copy_in(self, us: float, *, pinned: bool = True) -> None:
        """A batch to the device: asynchronous when pinned, else a copy that blocks the host."""
        begin = self.now
        kind = "Pinned" if pinned else "Pageable"
        self.launch(f"Memcpy HtoD ({kind} -> Device)", us, call="cudaMemcpyAsync", bytes=int(us * 10_000))
        if not pinned:
            self.sync()
        self.trace.op("aten::copy_", begin, self.now - begin, tid=self.tid)

    def collective(self, name: str = ALLREDUCE, us: float = 100, *, stream: int | str = 20,
                   join: bool = True) -> None:  # fmt: skip
        """A collective on its own stream behind what was computed; `join`: computing goes on only after it."""
        what: dict[str, Any] = {"Collective name": "allreduce", "In msg nelems": 1 << 20, "Out msg nelems": 1 << 20,
                                "dtype": "BFloat16", "Group size": 2, "Process Group Name": "0",
                                "Process Group Ranks": "[0, 1]"}  # fmt: skip
        self.launch(name, us, stream=stream, after=[7], **what)
        if join:
            self.done[7] = max(self.done.get(7, 0), self.done[stream])

    def sync(self, name: str = "cudaStreamSynchronize") -> None:
        """The host waits until the device has nothing left to do."""
        begin = self.now
        self.now = max([self.now + 2, *(end + 1 for end in self.done.values())])
        self._correlation += 1
        self.trace.launch(begin, self.now - begin, correlation=self._correlation, name=name, tid=self.tid)

    def item(self) -> None:
        """``loss.item()``: a copy to the host, and a wait for it."""
        begin = self.now
        self.launch("Memcpy DtoH (Device -> Pinned)", 2, call="cudaMemcpyAsync", bytes=4)
        self.sync()
        for name in ("aten::item", "aten::_local_scalar_dense"):
            self.trace.op(name, begin, self.now - begin, tid=self.tid)

    def train_step(self, number: int, *, data: float = 0, layers: int = 4, gemm: float = 200, pointwise: float = 40,
                   comm: float = 0, overlap: bool = False, item: bool = False, python: float = 0,
                   size: Sequence[int] = (2048, 1024, 1024)) -> None:  # fmt: skip
        """One training step: data, forward and backward of `layers` linear layers, gradients' exchange, optimizer.

        `data`: wait in the data loader; `gemm`, `pointwise`, `comm`: kernel times; `overlap`: the exchange runs beside
        the backward pass; `item`: the loss is read; `python`: host time between operators.
        """
        m, n, k = size
        with self.step(number), self.frame("train.py(11): train_step"):
            if data:
                self.wait_data(data)
            self.copy_in(10)
            for layer in range(layers):
                with self.frame(f"nn.Module: Linear_{layer}"):
                    self.spend(python)
                    self.op("aten::linear", [(GEMM, gemm)], inner="aten::addmm", dims=[[n], [m, k], [k, n]],
                            types=["c10::BFloat16"] * 3)  # fmt: skip
                    self.op("aten::gelu", [(ELEMENTWISE, pointwise)], dims=[[m, n]], types=["c10::BFloat16"])
            with self.thread(2):
                for _ in range(layers):
                    self.spend(python)
                    self.op("autograd::engine::evaluate_function: AddmmBackward0", [(GEMM, gemm), (GEMM, gemm)],
                            inner="aten::mm", dims=[[m, n], [n, k]], types=["c10::BFloat16"] * 2)  # fmt: skip
                    if comm:
                        self.collective(us=comm / layers, join=not overlap)
            self.done[7] = max(self.done.values())
            with self.annotate("Optimizer.step#AdamW.step"):
                self.op("aten::_foreach_add_", [("void at::native::multi_tensor_apply_kernel<FusedAdam>()", pointwise)])
            if item:
                self.item()
        self.trace.annotation(f"ProfilerStep#{number}", self.now, 0, gpu=True)

    def save(self, path: Path, **how: Any) -> str:
        """Writes the trace; see `TraceFile.save`."""
        return self.trace.save(path, **how)


def compute_bound(steps: int = 3, **file: Any) -> Job:
    """Large matrix products, launched well ahead: the device is never idle for long."""
    return _job(steps, file, gemm=400, pointwise=60)


def data_bound(share: float = 0.6, steps: int = 3, **file: Any) -> Job:
    """`share` of each step waits for data, and the device with it (the loss is read, so nothing is queued)."""
    work = 4 * (3 * 200 + 40) + 40
    return _job(steps, file, data=work * share / (1 - share), item=True)


def launch_bound(steps: int = 3, **file: Any) -> Job:
    """Kernels of 3 us behind 40 us of Python each."""
    return _job(steps, file, gemm=3, pointwise=2, layers=16, python=40)


def comm_bound(steps: int = 3, **file: Any) -> Job:
    """Exposed exchange of gradients of more than half of the step."""
    return _job(steps, file, gemm=50, pointwise=10, comm=2400)


def sync_bound(steps: int = 3, **file: Any) -> Job:
    """A ``.item()`` behind every small operator."""
    job = Job(**file)
    for number in range(1, steps + 1):
        with job.step(number):
            for _ in range(20):
                job.op("aten::mul", [(ELEMENTWISE, 8)], dims=[[1024], []], types=["float", ""])
                job.item()
    return job


def _job(steps: int, file: dict[str, Any], **step: Any) -> Job:
    job = Job(**file)
    for number in range(1, steps + 1):
        job.train_step(number, **step)
    return job
