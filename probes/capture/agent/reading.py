"""Numbers of the training loop: a named local, and the norm of the gradients, without making the device wait.

A value on a device is copied to pinned memory without waiting and read after the window. Only plain tensors are touched:
asking a distributed tensor for its value would be a collective, which the other ranks do not take part in.
"""

# ruff: noqa: BLE001 - nothing raises into the target, and nothing more is imported there than must be
from __future__ import annotations

import math
from types import FrameType
from typing import Any

OPTIMIZED = 0x1  # co_flags: locals are no dictionary, `f_locals` is made on request
SLOTS = 4096


def local(frame: FrameType | None, name: str, depth: int = 12) -> Any:
    """The value of the nearest local of that name, from this frame outwards; None without one.

    Up to Python 3.12 `f_locals` is a copy that stays with the frame and would keep its tensors alive: it is emptied again.
    """
    for _ in range(depth):
        if frame is None:
            return None
        code = frame.f_code
        if not code.co_flags & OPTIMIZED:
            if name in frame.f_locals:
                return frame.f_locals[name]
        elif name in code.co_varnames or name in code.co_cellvars or name in code.co_freevars:
            values = frame.f_locals
            value = values.get(name)
            if type(values) is dict:
                values.clear()
            if value is not None:
                return value
        frame = frame.f_back
    return None


def part(value: Any, name: str) -> Any:
    """The loss in what a function returned: itself, or under its name in a dictionary or object; None without one."""
    if isinstance(value, dict):
        return value.get(name)
    inner = getattr(type(value), name, None)
    if inner is None and name in getattr(value, "__dict__", ()):
        return value.__dict__[name]
    return value


class Values:
    """Numbers that become known later: `put` within the loop, `numbers` after the window."""

    def __init__(self, torch: Any) -> None:
        self._torch: Any = torch
        self._held: list[Any] = []
        self._buffer: Any = None
        self._event: Any = None
        self.failed = ""

    def prepare(self) -> None:
        """Pinned memory, before the loop is watched; a failure is told in `failed`."""
        try:
            if self._torch is not None and self._torch.cuda.is_initialized():
                self._buffer = self._torch.empty(SLOTS, dtype=self._torch.float32, pin_memory=True)
        except Exception as e:
            self.failed = repr(e)

    def put(self, value: Any) -> None:
        """One more; None and what cannot be read count too."""
        try:
            self._held.append(self._take(value))
        except Exception as e:
            self.failed = repr(e)
            self._held.append(None)

    def _take(self, value: Any) -> Any:
        if isinstance(value, (int, float)):
            return float(value)
        torch = self._torch
        if torch is None or type(value) not in (torch.Tensor, torch.nn.Parameter):
            if type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0:
                return float(value)
            return None
        if value.numel() != 1 or value.is_complex():
            return None
        if value.device.type == "cpu":
            return float(value.detach().item())
        slot = len(self._held)
        if (
            self._buffer is None
            or slot >= SLOTS
            or value.device.type != "cuda"
            or torch.cuda.is_current_stream_capturing()
        ):
            return None
        self._buffer[slot].copy_(value.detach().reshape(()), non_blocking=True)
        if self._event is None:
            self._event = torch.cuda.Event()
        self._event.record(torch.cuda.current_stream(value.device))
        return slot  # an int: where it will stand

    def numbers(self) -> list[float | None]:
        """Now, after the window: what has not arrived yet is None."""
        arrived = self._event is None or self._event.query()
        found: list[float | None] = []
        for held in self._held:
            number = held
            if isinstance(held, int):
                number = float(self._buffer[held]) if arrived else None
            found.append(number)
        return found


def readable(numbers: list[float | None]) -> list[Any]:
    """For JSON, which has no NaN: "nan", "inf" and "-inf" are words."""
    return [n if n is None or math.isfinite(n) else str(n) for n in numbers]


def gradients_norm(torch: Any, optimizer: Any) -> Any:
    """The norm over all gradients of this optimizer's parameters (of this rank's shard where they are sharded); None without."""
    found = [p.grad for group in optimizer.param_groups for p in group["params"]]
    plain = [g.detach() for g in found if type(g) is torch.Tensor and not g.is_sparse]
    if not plain or len(plain) < sum(g is not None for g in found):
        return None
    norms = torch._foreach_norm(plain) if hasattr(torch, "_foreach_norm") else [g.norm() for g in plain]
    where = norms[0].device
    return torch.stack([n.to(where, torch.float32) for n in norms]).norm()
