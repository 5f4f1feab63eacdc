"""``gpudiag completion``: tab completion, made from the argument parsers themselves."""

from __future__ import annotations

import argparse

from assistant.output import write

NAME = "completion"
HELP = "print a completion script for bash, zsh or tcsh"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``completion SHELL``."""
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"), help="source the output in this shell")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    import shtab

    from assistant.arguments import full_parser
    from assistant.cli import load_all

    write(shtab.complete(full_parser(load_all()), args.shell) + "\n")
    return 0
