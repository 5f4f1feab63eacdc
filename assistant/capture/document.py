"""``profile --outside --document``: the capture itself on stdout, for a program that asks, such as gpudiag on another machine."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from threading import Event

from assistant import __version__
from assistant.asking import interruptible
from assistant.capture.flow import here
from assistant.exits import Exit
from assistant.output import write
from knowledge.errors import InputError
from probes.capture import run
from probes.capture.plan import Plan


def printed(args: argparse.Namespace, plan: Plan) -> int:
    """Capture, print the document, keep nothing. Broken off, it is what was captured by then. InputError without a folder."""
    cancel = Event()
    try:
        with tempfile.TemporaryDirectory(prefix="gpudiag-") as folder, interruptible(cancel):
            document = run.capture(
                plan, Path(folder), cancel=cancel, host=args.settings.machine.name or here(), version=__version__
            )
    except OSError as error:
        raise InputError(f"the capture cannot be made: {error.strerror or error}") from None
    write(json.dumps(document, default=str) + "\n")
    return Exit.INTERRUPTED if cancel.is_set() else Exit.OK
