# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201
"""A process of 151 threads: 150 that wake ten times a second, and the main thread that counts. Python 3.8, standard library."""

import sys
import threading

from counters import Counters, burn, ready


def wait_a_little(event):
    """What the other threads do."""
    while True:
        event.wait(0.1)


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 150
    threading.stack_size(1 << 18)
    never = threading.Event()
    for _ in range(count):
        threading.Thread(target=wait_a_little, args=(never,), daemon=True).start()
    counters = Counters()
    ready()
    while True:
        burn(0.002)
        counters.tick()


if __name__ == "__main__":
    main()
