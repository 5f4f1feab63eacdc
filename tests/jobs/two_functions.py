# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201
"""Two functions that take turns at each whole tenth of a second of the monotonic clock, beside a helper thread. Python 3.8, standard library."""

import sys
import threading
import time

TENTH = 100_000_000


def spin(until):
    while time.monotonic_ns() < until:
        pass


def rest(until):
    while time.monotonic_ns() < until:
        time.sleep(0.002)


def stand_by(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.05)


threading.Thread(target=stand_by, args=(1e6,), name="helper: thread (x)", daemon=True).start()
if "short" in sys.argv:
    threading.Thread(target=stand_by, args=(0.7,), name="short-lived", daemon=True).start()
print("ready", flush=True)
at = (time.monotonic_ns() // TENTH + 1) * TENTH
while True:
    spin(at)
    rest(at + TENTH)
    at += 2 * TENTH
