"""Dynolog's address is the machine's: whoever binds it goes one after the other, whichever worker of a test run that is."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """One test at a time."""
    with (Path(tempfile.gettempdir()) / f"gpudiag-dynolog-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
