"""Runs what CONTRIBUTING.md shows, in a checkout that has it: ``python -m tests.smallest FOLDER`` prints what came as JSON.

One process for all of it: the start costs more than the rest. FOLDER holds ``proc/buddyinfo``, as a machine's root does.
"""

from __future__ import annotations

import asyncio
import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from assistant.cli import main
from probes.host import Host, RecordingHost, ReplayHost
from probes.live_host import LiveHost
from probes.runner import run, select
from tests.tui.lab import running, screen, until

RULE = "memory-in-small-pieces"


def answer(*words: str) -> tuple[int, str]:
    """Exit code and standard output of a command line."""
    with redirect_stdout(io.StringIO()) as out:
        code = main(words)
    return int(code), out.getvalue()


def probed(host: Host) -> list[tuple[str, Any, str, str]]:
    """What the probe sees of a machine."""
    (result,) = run(host, select(["buddyinfo"]))
    return [(o.fact, o.value, str(o.status), o.detail) for o in result.observations]


def probe(root: Path) -> dict[str, Any]:
    """Of a machine below a folder, of its recording, and of one that tells nothing."""
    with LiveHost("n1", root=str(root)) as live:
        host = RecordingHost(live)
        seen = probed(host)
    return {"seen": seen, "again": probed(ReplayHost("n1", host.replies)), "absent": probed(ReplayHost("n1"))}


async def shown(folder: Path, file: Path) -> list[str]:
    """The screen after its key, with a capture opened."""
    async with running(folder, "--input", str(file)) as pilot:
        await pilot.press("alt+9")
        await until(pilot, lambda: "2 MiB" in screen(pilot.app))
        return screen(pilot.app).splitlines()


def everything(folder: Path) -> dict[str, Any]:
    """Each part on its own."""
    file = folder / "proc/buddyinfo"
    return {
        "format": answer("check", "--input", str(file), "--format", "json"),
        "probe": probe(folder),
        "lint": answer("rules", "lint", f"rules/catalog/system/{RULE}.yaml"),
        "test": answer("rules", "test", RULE, "--mutate"),
        "command": answer("facts", "node.memory.large"),
        "help": answer("--help"),
        "screen": asyncio.run(shown(folder, file)),
    }


if __name__ == "__main__":
    print(json.dumps(everything(Path(sys.argv[1]))))
