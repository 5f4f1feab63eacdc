"""The app in this process, again and again: what has been loaded is not looked through for garbage each time."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(scope="session", autouse=True)
def _seldom_looked_through() -> None:
    """A collection goes over all that was imported and loaded: a quarter of the time of these tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
