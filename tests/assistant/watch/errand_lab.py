"""What an errand of the tests does: writes a line into a folder, which may be missing."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> None:
    """``{folder, line}`` on standard input; a complaint where there is no such folder."""
    told = json.load(sys.stdin)
    folder = Path(told["folder"])
    if not folder.is_dir():
        print("no folder")
        return
    with (folder / "lines").open("a") as stream:
        stream.write(told["line"])
