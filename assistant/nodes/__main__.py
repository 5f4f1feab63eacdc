"""``python -m assistant.nodes``: reads a request of `assistant.nodes.bundles`, prints a line for each recording."""

from __future__ import annotations

import os
import sys

from assistant.config import load
from assistant.nodes.bundles import answers


def main() -> int:
    """Until all are read, or nobody listens any more."""
    settings = load({"format": None, "lang": None, "color": None})
    try:
        for line in answers(sys.stdin.read(), settings):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
