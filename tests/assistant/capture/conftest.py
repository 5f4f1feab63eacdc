"""Live captures one after the other, whichever worker of a test run makes them: two side by side disturb each other."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live_jobs import precede


@pytest.fixture
def alone() -> Iterator[None]:
    """One capture at a time, and before other work of the machine."""
    with (Path(tempfile.gettempdir()) / f"gpudiag-captures-{os.getuid()}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        precede(os.getpid(), -8)
        try:
            yield
        finally:
            precede(os.getpid(), 0)
