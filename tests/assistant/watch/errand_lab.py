"""What an errand of the tests does: writes a line into a folder, which may be missing, once `after` is there."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


def main() -> None:
    """``{folder, line, after}`` on standard input; a complaint where there is no such folder."""
    told = json.load(sys.stdin)
    while told.get("after") and not Path(told["after"]).exists():
        time.sleep(0.05)
    folder = Path(told["folder"])
    if not folder.is_dir():
        print("no folder")
        return
    with (folder / "lines").open("a") as stream:
        stream.write(told["line"])
