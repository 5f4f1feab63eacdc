"""``gpudiag profile``: why a running job is slow or hangs, from what it does right now."""

from __future__ import annotations

import argparse

from assistant.capture import options

NAME = "profile"
HELP = "capture from running jobs: what they do, what they wait for, who is late, and why"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Targets, window, parts; or ``profile list | show | delete``."""
    options.add(parser)


def run(args: argparse.Namespace) -> int:
    """Capture and answer, or look at what was captured."""
    from knowledge.errors import UsageError

    if args.action is None and args.files and args.files[0] in options.ACTIONS:
        args.action, *args.files = args.files  # behind flags, argparse takes it for an operand
    if args.action is not None:
        from assistant.capture import records

        return records.run(args)
    if args.files:
        word = args.files[0]
        hint = f"--pid {word}" if word.isdigit() else f"--name {word}, or one of {', '.join(options.ACTIONS)}"
        raise UsageError(f"profile {word}: whom to capture is named by an option", hint=hint)
    from assistant.capture import flow

    return flow.run(args)
