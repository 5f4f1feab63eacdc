"""Being told when an optimizer has made a step, by torch's own global hook."""

# ruff: noqa: BLE001, SIM105 - nothing raises into the target, and nothing more is imported there than must be
from __future__ import annotations

import os
import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from probes.capture.agent.anchors import Watch

HOOKS = "_global_optimizer_post_hooks"
KEY = "gpudiag"


def compiled() -> bool:
    """Whether torch.compile has seen steps of an optimizer, or what calls them.

    A hook would make it compile them again, which may take minutes, with our code in it; after eight times it gives up for good.
    """
    convert = sys.modules.get("torch._dynamo.convert_frame")
    for reference in list(getattr(getattr(convert, "input_codes", None), "seen", ())):
        code = reference() if callable(reference) else None
        file = str(getattr(code, "co_filename", "")).replace("\\", "/")
        if "/torch/optim/" in file or ("/torch/" not in file and "step" in getattr(code, "co_names", ())):
            return True
    return False


class OptimizerWatch(Watch):
    """`told(frame, optimizer)` after each step of any optimizer, in the thread that made it.

    The dictionary of hooks is replaced, not changed: a step that runs just now iterates over the old one, and would raise
    into the training loop if it changed. `there` is False where torch is too old (before 2.0) to have such hooks.
    """

    def __init__(self, told: Callable[[Any, Any], None]) -> None:
        self._told, self._pid = told, os.getpid()
        self._module: Any = sys.modules.get("torch.optim.optimizer")
        self._old = self._now()
        self.there = isinstance(self._old, dict)
        self._new: Any = None
        if self.there:
            self._new = OrderedDict(self._old, **{KEY: self._hook})
            setattr(self._module, HOOKS, self._new)

    def _now(self) -> Any:
        return getattr(self._module, HOOKS, None)

    def _taken(self) -> Any:
        return self._new, None

    def _hook(self, optimizer: Any, _args: Any, _words: Any) -> None:
        if self._new is not None and os.getpid() == self._pid:
            try:
                self._told(sys._getframe(1), optimizer)
            except Exception:
                pass

    def remove(self) -> None:
        """See `Watch`. Hooks that the job has added meanwhile stay."""
        new, self._new = self._taken()
        if new is None or self._now() is not new:
            return
        others = OrderedDict((k, v) for k, v in new.items() if k != KEY)
        if others == self._old:
            setattr(self._module, HOOKS, self._old)
        else:
            new.pop(KEY, None)  # what was registered meanwhile holds on to this dictionary
