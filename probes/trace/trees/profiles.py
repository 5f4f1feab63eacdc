"""Profiles of other tools as call trees: folded stacks (py-spy raw, perf) and speedscope (py-spy, rbspy)."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Final

from knowledge.errors import InputError
from probes.trace.trees.calltree import CallTree
from probes.trace.trees.folded import from_folded
from probes.trace.trees.speedscope import from_speedscope

LARGEST: Final = 1 << 30  # bytes, uncompressed: profiles are small, and they are held as a whole


def read_profile(path: str) -> CallTree:
    """The profile at `path`, compressed with gzip or not. InputError when it cannot be read or is neither format."""
    data = _bytes(path)
    name = Path(path).name
    if data[:64].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return from_speedscope(data.removeprefix(b"\xef\xbb\xbf"), name)
    return from_folded(data.decode("utf-8", "replace").splitlines(), name)


def _bytes(path: str) -> bytes:
    try:
        with Path(path).open("rb") as raw:
            zipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            data = (gzip.GzipFile(fileobj=raw) if zipped else raw).read(LARGEST + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if len(data) > LARGEST:
        raise InputError(f"{path} is larger than {LARGEST >> 30} GiB: no profile of stacks")
    return data
