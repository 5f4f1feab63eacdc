"""What is sent to the other side: the program there, and what a collector imports. And what a child here is given."""

from __future__ import annotations

import functools
import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from probes import _reader
from probes.live_host import environment
from probes.remote import far
from probes.remote.reach import Via


def payload(start: Mapping[str, Any]) -> bytes:
    """What the bootstrap reads: a length on a line, then the program and how it is started, compressed."""
    told = json.dumps({**start, "reader": _source(_reader.__file__)})
    packed = zlib.compress(f"{_source(far.__file__)}\nmain(json.loads({told!r}))\n".encode(), 9)
    return f"{len(packed)}\n".encode() + packed


@functools.cache
def _source(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")


def package(name: str) -> bytes:
    """The source of a package that is one file; one that says so when it is not installed here."""
    import importlib.util

    spec = importlib.util.find_spec(name)
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        return b"raise ImportError('pynvml is not installed where gpudiag runs')\n"
    return Path(spec.origin).read_bytes()


def child_environment(via: Via) -> dict[str, str]:
    """What the child here gets. srun hands its environment on to the other side: it gets what a tool gets, and no secret."""
    if via is Via.SLURM:
        return environment(os.environ)
    asks = {"DISPLAY", "WAYLAND_DISPLAY", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE"}  # nobody sits there to be asked
    return {k: v for k, v in os.environ.items() if k not in asks} | {"LC_ALL": "C.UTF-8"}
