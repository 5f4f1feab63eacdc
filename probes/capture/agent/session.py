"""One run of torch's profiler over all threads of the target, which gives way as soon as the job uses the profiler itself.

There is one profiler in a process. When the job starts its own while ours runs, ours would be taken away and asking for its
result would crash: so torch's two functions that begin a profile are led through `_give_way` for as long as ours runs.
"""

# ruff: noqa: BLE001 - nothing raises into the target, and nothing more is imported there than must be
from __future__ import annotations

import gc
import os
import sys
import threading
import time
from typing import Any

from probes.capture.agent.report import Refused

BEGINNINGS = ("_prepare_profiler", "_enable_profiler")
QUIET = 0.1  # seconds between the last event and the stop
CUDA_GRAPHS = (12, 6)  # from this CUDA on, CUPTI may be torn down in a process with CUDA graphs


def loaded_torch() -> Any:
    """The target's torch. Refused when it is not there, or not yet."""
    torch = sys.modules.get("torch")
    if torch is None:
        raise Refused("no-torch")
    if getattr(getattr(torch, "__spec__", None), "_initializing", False) or not hasattr(torch, "autograd"):
        raise Refused("torch-importing")
    return torch


def check(torch: Any, enabled: bool, kernels: bool, force: bool) -> None:
    """Refused where the profiler must not be started. `enabled`: whether the main thread is being profiled."""
    profiler = sys.modules.get("torch.autograd.profiler")
    available = getattr(torch.autograd, "kineto_available", None)
    if profiler is None or available is None or not available() or not hasattr(profiler, "_ExperimentalConfig"):
        raise Refused("torch-too-old", str(torch.__version__))
    if enabled or getattr(profiler, "_is_profiler_enabled", False) or _recording():
        raise Refused("profiler-active")
    if kernels and not force and _old_cuda(torch) and _graphs(torch):
        raise Refused("cuda-graphs", "CUDA " + str(torch.version.cuda))


def _recording() -> bool:
    """Whether a profiler with a schedule is warming up or recording."""
    module = sys.modules.get("torch.profiler.profiler")
    kind = getattr(module, "profile", None)
    if not isinstance(kind, type):
        return False
    idle = getattr(getattr(module, "ProfilerAction", None), "NONE", None)
    for one in gc.get_referrers(kind):
        if isinstance(one, kind) and getattr(one, "current_action", idle) != idle:
            inner = getattr(one, "profiler", None)
            if inner is not None and getattr(inner, "kineto_results", None) is None:
                return True
    return False


def _old_cuda(torch: Any) -> bool:
    try:
        version = tuple(int(w) for w in str(torch.version.cuda).split(".")[:2])
    except ValueError:
        return False
    return version < CUDA_GRAPHS


def _graphs(torch: Any) -> bool:
    """Whether CUDA graphs were captured: they have memory pools of their own."""
    if not torch.cuda.is_initialized():
        return False
    return any(tuple(s.get("segment_pool_id", (0, 0))) != (0, 0) for s in torch.cuda.memory_snapshot())


class Session:
    """`start` and `stop` once each. `everywhere` is False where torch cannot profile all threads (before about 2.6): then both
    must be called by the thread that is profiled."""

    def __init__(self, torch: Any, *, kernels: bool, shapes: bool, everywhere: bool = True) -> None:
        self._torch, self._kernels, self._shapes = torch, kernels, shapes
        self._module: Any = sys.modules["torch.autograd.profiler"]
        self.everywhere, self._config = _configuration(self._module, everywhere)
        self._profile: Any = None
        self._taken: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self.thread = 0
        self.running = False
        self.gave_way = False
        self.began = self.ended = 0  # monotonic ns
        self.stop_ns = self.stop_cpu_ns = self.save_cpu_ns = 0
        self._result: Any = None

    def start(self) -> None:
        """Begin, on this thread. Exceptions of torch pass, with nothing left on."""
        with self._lock:
            if self.running or self.gave_way or self.ended:
                return
            words: dict[str, Any] = {
                "use_kineto": True,
                "record_shapes": self._shapes,
                "experimental_config": self._config,
            }
            if self._kernels:
                try:
                    self._profile = self._module.profile(use_device="cuda", **words)
                except TypeError:
                    self._profile = self._module.profile(use_cuda=True, **words)
            else:
                self._profile = self._module.profile(**words)
            try:
                self._profile._prepare_trace()
                self._profile._start_trace()
            except BaseException:
                getattr(self._module, "_run_on_profiler_stop", int)()
                raise
            self.running, self.thread = True, threading.get_ident()
            self.began = time.monotonic_ns()
            self._lead()

    def _lead(self) -> None:
        for name in BEGINNINGS:
            old = getattr(self._module, name, None)
            if old is not None:
                self._taken[name] = (old, self._giving_way(old))
                setattr(self._module, name, self._taken[name][1])

    def _giving_way(self, old: Any) -> Any:
        def begin(*args: Any, **words: Any) -> Any:
            if os.getpid() == self._pid:
                self._give_way()
            return old(*args, **words)

        return begin

    def _give_way(self) -> None:
        if self._lock.acquire(timeout=5):
            try:
                if self.running:
                    self.gave_way = True
                    self._stop()
                    self._result = None
            finally:
                self._lock.release()

    def stop(self, *, wait: bool = True) -> bool:
        """End, on this thread; False when the job's own profiler has taken over, or another thread ends it just now."""
        if not self._lock.acquire(blocking=wait):
            return False
        try:
            if self.running:
                self._stop()
            return not self.gave_way
        finally:
            self._lock.release()

    def _stop(self) -> None:
        self.running = False
        self._unlead()
        if getattr(self._module, "_is_profiler_enabled", True) is False:  # taken away all the same
            self.gave_way = True
            return
        self.ended = time.monotonic_ns()
        self._quiet()
        at, cpu = time.monotonic_ns(), time.thread_time_ns()
        result = self._torch.autograd._disable_profiler()
        self.stop_ns, self.stop_cpu_ns = time.monotonic_ns() - at, time.thread_time_ns() - cpu
        getattr(self._module, "_run_on_profiler_stop", int)()
        self._profile.entered = False
        if result is None or not _start(result):
            self.gave_way = True  # an empty result: asking it for anything more crashes
            return
        self._result = result

    def _quiet(self) -> None:
        """No thread begins an event any more, and one that is amid beginning one has time to leave it.

        The stop takes the events away from under all threads. One that was set aside by the scheduler just then, on a machine
        with more to run than CPUs, wrote into what was gone: a crash in `ThreadLocalSubqueue::begin_op`.
        """
        if not self.everywhere or threading.get_ident() != self.thread:
            return
        try:
            # CPU alone: the device's own buffers are flushed by the stop, and no thread of the job writes them
            self._torch._C._autograd._toggle_collection_dynamic(False, {self._module.ProfilerActivity.CPU})
            time.sleep(QUIET)
        except Exception:  # a torch without it stops as torch itself does
            pass

    def forked(self) -> None:
        """In a process that was just forked: nothing is recorded there. What is recorded is only let be: the profiler has threads,
        and perhaps CUDA, that this process does not have."""
        self._unlead()
        if self._profile is not None and not self.stop_ns and not self.gave_way:
            self._torch.autograd._enable_record_function(False)
        self.running = False

    def _unlead(self) -> None:
        taken, self._taken = self._taken, {}
        for name, (old, new) in taken.items():
            if getattr(self._module, name, None) is new:
                setattr(self._module, name, old)

    def describe(self, ranks: str) -> None:
        """Metadata that ends up in the trace, while it runs."""
        if ranks:
            self._torch.autograd._add_metadata_json("distributedInfo", ranks)

    def save(self, path: str) -> int:
        """Write the trace; ns that took, 0 without one. Holds the interpreter's lock for that time."""
        if self._result is None:
            return 0
        at, cpu = time.monotonic_ns(), time.thread_time_ns()
        self._result.save(path)
        self.save_cpu_ns = time.thread_time_ns() - cpu
        return time.monotonic_ns() - at

    def forget(self) -> None:
        """Give its memory back."""
        self._result = None
        self._profile = None


def _configuration(module: Any, everywhere: bool) -> Any:
    """(whether all threads can be profiled, the configuration): what this torch knows is found by trying."""
    tries: list[dict[str, bool]] = [{"profile_all_threads": True, "trace_only": True}, {"profile_all_threads": True}]
    for words in tries if everywhere else []:
        try:
            return True, module._ExperimentalConfig(**words)
        except TypeError:
            continue
    return False, module._ExperimentalConfig()


def _start(result: Any) -> int:
    """When it began; 0 for an empty result."""
    told = getattr(result, "trace_start_ns", None) or getattr(result, "trace_start_us", None)
    return int(told()) if told is not None else 1


def ranks() -> dict[str, Any] | None:
    """Place in the job, as torch.profiler writes it; None outside a job."""
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is None or not distributed.is_available() or not distributed.is_initialized():
            return None
        return {
            "backend": distributed.get_backend(),
            "rank": distributed.get_rank(),
            "world_size": distributed.get_world_size(),
        }
    except Exception:
        return None
