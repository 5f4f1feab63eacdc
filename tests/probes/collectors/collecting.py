"""Running a collector as the child process that it is."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import probes.collectors
from knowledge.observation import Observation, Status, Subject
from probes.base import Context, DocumentFormat

FOLDER = Path(probes.collectors.__path__[0])


def collect(name: str, root: Path | None, *args: str, deadline: float = 10, uid: int | None = None) -> str:
    """What the collector prints; it has to end by itself, well, and in time."""
    argv = [sys.executable, "-I", "-B", str(FOLDER / f"{name}.py"), "--deadline", str(deadline)]
    argv += ["--root", str(root)] if root else []
    if uid is not None:
        # the interpreter may lie where an ordinary user cannot look: the file comes by standard input
        argv = [
            "setpriv",
            f"--reuid={uid}",
            f"--regid={uid}",
            "--clear-groups",
            "/usr/bin/env",
            "python3",
            "-I",
            "-B",
            "-",
            *argv[4:],
        ]
    source = (FOLDER / f"{name}.py").read_bytes() if uid is not None else b""
    done = subprocess.run([*argv, *args], input=source, capture_output=True, timeout=deadline + 60, check=False)
    assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode()[-2000:]
    return done.stdout.decode()


def read(form: DocumentFormat, text: str) -> list[Observation]:
    """The parser's observations of a document that it has to recognise."""
    assert form.sniff(text[:65536]) == 100
    return form.parse(text, Context("-", "gpu-1"))


def told(found: Sequence[Observation]) -> dict[tuple[str, Subject], Any]:
    """The last value of each fact, or why there is none."""
    return {(o.fact, o.subject): o.value if o.status is Status.OK else o.status for o in found}


def document(text: str) -> dict[str, Any]:
    """The collector's JSON."""
    data = json.loads(text)
    assert isinstance(data, dict)
    return data
