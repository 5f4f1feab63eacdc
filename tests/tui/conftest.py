"""The app in this process, again and again: what has been loaded is not looked through for garbage each time."""

from __future__ import annotations

import gc
import os

import pytest

_FRAMES = "TEXTUAL_FPS"  # what Textual reads once, when it is loaded
if _FRAMES not in os.environ:
    # Nobody watches: whatever waits for the screen has it drawn anyway, and pictures in between cost most of all.
    os.environ[_FRAMES] = "10"
    import textual.constants  # noqa: F401

    del os.environ[_FRAMES]  # the app in a terminal of its own is as it always is


@pytest.fixture(scope="session", autouse=True)
def _seldom_looked_through() -> None:
    """A collection goes over all that was imported and loaded: a quarter of the time of these tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
