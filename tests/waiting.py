"""Waiting for what is to come, that a busy machine does not cut short."""

from __future__ import annotations

import time
from collections.abc import Iterator

from assistant.store.patience import crowd


def passing(seconds: float) -> Iterator[None]:
    """Goes on until so many seconds of a free machine have passed: where many tasks want each CPU they are longer. Never sleeps."""
    left, seen = seconds, time.monotonic()
    while left > 0:
        yield
        now = time.monotonic()
        left, seen = left - (now - seen) / crowd(), now
    yield
