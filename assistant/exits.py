"""Exit codes of the command line."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What the process says to a shell script."""

    OK = 0  # nothing above info
    FINDING = 1  # a confirmed or probable finding of warning or worse
    USAGE = 2  # asked wrongly, or an input that cannot be used
    UNDECIDED = 3  # no such finding, but the asked question stays open
    BUG = 70  # ours
    INTERRUPTED = 130
