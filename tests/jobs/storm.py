# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201, ANN204, PTH116, PTH123
"""A process that is hard to stop well: it allocates, collects garbage, imports, raises, and reads files all the time, in
several threads. Python 3.8, standard library."""

import gc
import importlib
import json
import os
import re
import sys
import threading
import zlib

from counters import Counters, ready

MODULES = ("json.decoder", "xml.dom.minidom", "html.parser", "email.message", "textwrap", "difflib", "fractions")


class Node:
    """A cycle, so that the collector has work."""

    def __init__(self):
        self.me = self
        self.load = bytearray(1000)

    def __del__(self):
        self.load = None


def allocate():
    """Small and large blocks, and cycles."""
    blocks = [bytearray(1 << (i % 20)) for i in range(40)]
    nodes = [Node() for _ in range(100)]
    del blocks, nodes
    gc.collect()


def import_again(turn):
    """A module is forgotten and imported again."""
    name = MODULES[turn % len(MODULES)]
    sys.modules.pop(name, None)
    importlib.import_module(name)


def compute(turn):
    """C code that lets go of the interpreter's lock, regular expressions, exceptions, a file."""
    data = zlib.compress(json.dumps([{"a": i} for i in range(300)]).encode() * 5, 6)
    re.sub(r"[aeiou]+", "_", "the quick brown fox " * 50)
    try:
        raise ValueError(turn)
    except ValueError:
        pass
    with open(__file__) as file:
        file.read()
    return zlib.decompress(data)


def storm(stop):
    """What the other threads do."""
    while not stop.is_set():
        allocate()
        compute(1)
        os.stat("/")


def main():
    stop = threading.Event()
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 2):
        threading.Thread(target=storm, args=(stop,), daemon=True).start()
    counters = Counters()
    ready()
    turn = 0
    while True:
        allocate()
        import_again(turn)
        compute(turn)
        turn += 1
        counters.tick()


if __name__ == "__main__":
    main()
