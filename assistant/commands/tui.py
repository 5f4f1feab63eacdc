"""``gpudiag tui``: the terminal app over the same session; what `gpudiag` alone starts on a terminal."""

from __future__ import annotations

import argparse
import importlib

NAME = "tui"
HELP = "the terminal app: talk, live GPUs, findings, traces, log, runbooks"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What it is about, and where it begins."""
    from assistant.commands.ask import add_sources

    add_sources(parser)
    add = parser.add_argument
    add(
        "--nodes", default="", metavar="NODES", help="nodes to show: a set such as gpu[001-064], or a folder of bundles"
    )
    add("--trace", nargs="+", action="extend", default=[], metavar="FILE", help="traces to open in the trace screen")
    add("--screen", default="", metavar="NAME", help="the screen to begin with")
    add("--theme", default="", metavar="NAME", help="dark, light or contrast")
    add("--thread", default="", metavar="NAME", help="a conversation of its own")
    add("--new", action="store_true", help="begin a new conversation")
    add("--serve", nargs="?", const="", default=None, metavar="HOST:PORT",
        help="show it in a browser instead, at this address (default: 127.0.0.1:8000)")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Until the person leaves."""
    # The screens stand above this package: it knows them by name only.
    code: int = importlib.import_module("tui.launch").run(args)
    return code
