"""Iterations as they end: when, with which loss, and how many micro-batches they had."""

# ruff: noqa: B905, RUF007, SIM105 - nothing raises into the target, and nothing more is imported there than must be
from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import FunctionType
from typing import Any

from probes.capture.agent.anchors import Watch, find, watch
from probes.capture.agent.optimizers import OptimizerWatch, compiled
from probes.capture.agent.reading import Values, gradients_norm, local, part, readable
from probes.capture.agent.report import Refused

MOST = 100_000  # iterations that are kept
# Steps of serving engines, by the module that must be loaded.
ENGINES = (
    ("vllm.v1.engine.core", "EngineCore.step"),
    ("vllm.v1.engine.core", "EngineCore.step_with_batch_queue"),
    ("vllm.v1.worker.gpu_worker", "Worker.execute_model"),
    ("vllm.engine.llm_engine", "LLMEngine.step"),
    ("sglang.srt.managers.scheduler", "Scheduler.run_batch"),
)


class Steps:
    """Watches the loop from `arm` to `remove`.

    The first of several candidates that comes is the one that counts: one optimizer of two, one thread of several.
    """

    def __init__(self, torch: Any, anchor: str, loss: str, gradnorm: bool, needed: bool = False) -> None:
        """`needed`: without iterations there is nothing to capture."""
        self._needed = needed
        self._torch, self._anchor, self._loss, self._gradnorm = torch, anchor, loss, gradnorm
        self._watches: list[Watch] = []
        self._key: Any = None
        self._backwards = 0
        self.label = ""
        self.ends: list[int] = []
        self.batches: list[int] = []
        self.others: dict[str, int] = {}  # steps of optimizers that do not count
        self.losses, self.norms = Values(torch), Values(torch)
        self.thread = 0  # native id of the thread that runs the loop
        self.first = threading.Event()
        self.at_end: Callable[[int], None] | None = None  # called in the loop's thread
        self.counted = False  # whether micro-batches are

    def arm(self) -> None:
        """Begin to watch. Refused when the anchor cannot be."""
        self.losses.prepare()
        self.norms.prepare()
        if self._anchor and self._anchor != "Optimizer.step":
            self._watch([(self._anchor, find(self._anchor))])
        else:
            if not self._anchor:
                self._watch(_engines())
            if not compiled():
                self._watches.append(OptimizerWatch(self._optimizer))
            elif not self._watches and (self._anchor or self._needed):
                raise Refused("optimizer-compiled")
        backward = getattr(getattr(self._torch, "autograd", None), "backward", None)
        if isinstance(backward, FunctionType):
            try:
                self._watches.append(watch([backward], self._backward, start=True))
                self.counted = True
            except Refused:
                pass

    def _watch(self, functions: list[tuple[str, FunctionType]]) -> None:
        for name, function in functions:
            self._watches.append(watch([function], self._function(name)))

    def _function(self, name: str) -> Callable[[Any, Any], None]:
        def told(frame: Any, value: Any) -> None:
            self._ended((name, threading.get_ident()), name, frame, value, None)

        return told

    def _optimizer(self, frame: Any, optimizer: Any) -> None:
        label = type(optimizer).__name__ + ".step"
        self._ended((id(optimizer), threading.get_ident()), label, frame, None, optimizer)

    def _backward(self, _frame: Any, _value: Any) -> None:
        self._backwards += 1

    def _ended(self, key: Any, label: str, frame: Any, value: Any, optimizer: Any) -> None:
        if self._key is None:
            self._key, self.label = key, label
            self.thread = threading.get_native_id()
        if key != self._key:
            self.others[label] = self.others.get(label, 0) + 1
            return
        if len(self.ends) >= MOST:
            return
        if self._loss:
            found = local(frame, self._loss)
            self.losses.put(part(value, self._loss) if found is None and value is not None else found)
        if self._gradnorm:
            self.norms.put(gradients_norm(self._torch, optimizer) if optimizer is not None else None)
        self.batches.append(self._backwards)
        self._backwards = 0
        now = time.monotonic_ns()
        self.ends.append(now)
        self.first.set()
        if self.at_end is not None:
            self.at_end(now)

    @property
    def period(self) -> int:
        """Median time of an iteration so far, ns; 0 before two ends."""
        ends = self.ends[-64:]
        took = sorted(b - a for a, b in zip(ends, ends[1:]))
        return took[len(took) // 2] if took else 0

    def remove(self) -> None:
        """Watch no longer, and leave nothing."""
        self.at_end = None
        watches, self._watches = self._watches, []
        for one in reversed(watches):
            one.remove()

    def document(self) -> dict[str, Any]:
        """What was seen; `ends` is empty where no anchor ever came."""
        count = len(self.ends)
        return {
            "anchor": self.label, "thread": self.thread, "ends": self.ends, "others": self.others,
            "batches": self.batches if self.counted and any(self.batches) else None,
            "loss": readable(self.losses.numbers()[:count]) if self._loss else None,
            "gradnorm": readable(self.norms.numbers()[:count]) if self._gradnorm else None,
            "unread": self.losses.failed or self.norms.failed,
        }  # fmt: skip


def _engines() -> list[tuple[str, FunctionType]]:
    found = []
    for module, path in ENGINES:
        if module in sys.modules:
            try:
                found.append((module + ":" + path, find(module + ":" + path)))
            except Refused:
                pass
    return found
