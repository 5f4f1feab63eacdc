"""Processes that are forked while a capture runs: they have our hooks and not our thread, so nothing would ever end there.

A worker of a data loader that was forked while the profiler ran would record each of its operators for as long as it lives:
about 1 KB each.
"""

# ruff: noqa: BLE001, SIM105 - nothing raises into the target, and nothing more is imported there than must be
from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any


def at_fork(clean: Callable[[], None]) -> None:
    """`clean` is called in each process that is forked from now on, for as long as the calling thread lives.

    `os.register_at_fork` would stay for ever. But `threading` asks each thread that it knows to forget its locks in the child:
    there we come in, and nothing is left of it when this thread ends.
    """
    me: Any = threading.current_thread()
    mine = os.getpid()
    for name in ("_after_fork", "_reset_internal_locks"):  # from Python 3.13 on; before
        old = getattr(me, name, None)
        if old is not None:
            setattr(me, name, _followed(old, mine, clean))
            return


def _followed(old: Any, mine: int, clean: Callable[[], None]) -> Any:
    def forked(*args: Any, **words: Any) -> Any:
        if os.getpid() != mine:
            try:
                clean()
            except Exception:
                pass
        return old(*args, **words)

    return forked
