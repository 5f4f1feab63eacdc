"""A capture from running jobs, for probes: ``python -I -B capture.py --deadline SECONDS --pid 4242,4243 [options]``.

Unlike the other collectors it uses the package `probes`, which knows how to capture without harm; so it runs from a checkout
or an installation, and under the interpreter of gpudiag itself. It prints the document ``gpudiag/capture/1``; the traces of a
capture with ``--inject`` lie in ``--into``, or are read and thrown away. What cannot be captured is a document that says why.
"""

from __future__ import annotations

import argparse
import json
import signal
import socket
import sys
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent.parent
MARGIN = 1.0  # seconds kept of the deadline for what comes after the window
SCHEMA = "gpudiag/capture/1"


def main() -> int:
    """Capture, print."""
    options = arguments().parse_args()
    sys.path.append(str(HERE))  # -I leaves it out; behind all else, so that nothing here shadows a module
    cancel = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: cancel.set())
    timer = threading.Timer(max(0.5, options.deadline - MARGIN), cancel.set)
    timer.daemon = True
    timer.start()
    document = captured(options, cancel)
    timer.cancel()
    json.dump(document, sys.stdout, default=str)
    sys.stdout.write("\n")
    return 0


def arguments() -> argparse.ArgumentParser:
    """``--pid`` and what is captured of them."""
    parser = argparse.ArgumentParser(description="capture from running jobs; prints JSON")
    add = parser.add_argument
    add("--deadline", type=float, default=30.0)
    add("--root", default="")
    add("--pid", required=True, help="process ids, with commas between")
    add("--milliseconds", type=int, default=2000)
    add("--inject", action="store_true", help="also what runs inside the job: operators and kernels")
    add("--into", default="", help="folder for the traces; without one they are thrown away when they have been read")
    return parser


def captured(options: argparse.Namespace, cancel: threading.Event) -> dict[str, object]:
    """The document; on a fault one with the reason."""
    from knowledge.errors import GpudiagError

    host = socket.gethostname()
    try:
        if options.root:
            raise GpudiagError("jobs are captured from the host's own namespaces, not through --root")
        with tempfile.TemporaryDirectory(prefix="gpudiag-") as folder:
            return _capture(options, Path(options.into or folder), cancel, host)
    except (GpudiagError, OSError, ValueError) as error:
        return {"schema": SCHEMA, "host": host, "error": str(error), "targets": []}


def _capture(options: argparse.Namespace, folder: Path, cancel: threading.Event, host: str) -> dict[str, object]:
    from probes.capture import plan, run
    from probes.capture.model import Window
    from probes.capture.whom import target

    pids = [int(word) for word in options.pid.replace(",", " ").split() if word.isdigit()]
    items = (*plan.DEFAULT, *plan.AGREED) if options.inject else plan.DEFAULT
    wish = plan.Wish(
        items, Window(options.milliseconds * 1_000_000), line="gpudiag profile --pid " + ",".join(map(str, pids))
    )
    targets = target.find(pids)
    made = plan.make(wish, targets, run.survey(targets, plan.whole(items)))
    document: dict[str, object] = run.capture(made, folder, cancel=cancel, host=host)
    return document


if __name__ == "__main__":
    raise SystemExit(main())
