"""``gpudiag completion``: tab completion, made from the argument parsers themselves."""

from __future__ import annotations

import argparse

from assistant.output import write

NAME = "completion"
# Names of machines are letters, digits, dots, dashes and underscores (`assistant.inventory.words.NAME`): compgen reads its
# list as a shell would, and finds nothing in them to run.
MACHINES = {
    "bash": """_gpudiag_machines() {
  compgen -W "$(gpudiag config hosts --names 2>/dev/null)" -- "$1"
}
""",
    "zsh": """_gpudiag_machines() {
  local -a machines
  machines=(${(f)"$(gpudiag config hosts --names 2>/dev/null)"})
  compadd -a machines
}
""",
}
HELP = "print a completion script for bash, zsh or tcsh"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``completion SHELL``."""
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"), help="source the output in this shell")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    import shtab

    from assistant.arguments import full_parser
    from assistant.cli import load_all

    script = shtab.complete(full_parser(load_all()), args.shell, preamble=MACHINES)  # type: ignore[arg-type]  # one each
    write(script + "\n")
    return 0
