"""The options of ``gpudiag test``."""

from __future__ import annotations

import argparse

from assistant.arguments import within
from assistant.inventory.target import add_target

LIST = "list"
level = within(1, 4, "level (1 to 4)", int)
_seconds = within(1, 3600, "number of seconds (1 to 3600)", float)


def add(parser: argparse.ArgumentParser) -> None:
    """Which tests, on which GPUs, and what may be done for it."""
    one = parser.add_argument
    one("names", nargs="*", metavar="NAME", help="tests by name (default: those of --level); list shows them all")
    one("--level", type=level, default=None, metavar="N",
        help="1 (seconds, the default), 2 (minutes), 3 (a quarter of an hour and more), 4 (hours)")  # fmt: skip
    one(
        "--gpu",
        action="append",
        default=[],
        metavar="N,...",
        help="only these GPUs, by index (default: all of the node)",
    )
    add_target(
        parser, host="another machine of the inventory: its GPUs are tested over the line that check --host uses"
    )
    one("--yes", action="store_true", help="agree to the load at the stated cost; without it you are asked")
    one("--dry-run", action="store_true", help="say what would run, be refused and cost; start nothing")
    one("--verbose", action="store_true", help="everything: all evidence, the rule's page, all that is undecided")
    one("--no-history", action="store_true", help="neither read nor write the history")
    one("--record", metavar="FILE", help="also write the bundle that this answer can be given again from")
    one("--site", metavar="FILE", help="site file: changed thresholds and severities, suppressed rules")
    one("--rules", action="append", default=[], metavar="PACK", help="rule file or folder laid over the shipped rules")
    one("--budget", type=_seconds, default=30.0, metavar="SECONDS",
        help="time for looking at the machine after the tests (default: 30)")  # fmt: skip
