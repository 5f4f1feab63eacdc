"""Libraries that are compiled from a C file with the package (`hatch_build.py`), next to that file.

Each carries the hash of the source it was built from: one of another source is not used, and what it does is done in Python.
"""

from __future__ import annotations

import ctypes
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any


@cache
def source_hash(source: Path) -> str:
    """What a library built from the present source carries: checksums and not a hash, as loading OpenSSL takes 3 ms of each start."""
    text = source.read_bytes()
    return f"{zlib.crc32(text):08x}{zlib.adler32(text):08x}-{len(text):x}"


def loaded(path: Path, source: Path, signatures: Mapping[str, tuple[Any, Sequence[Any]]]) -> ctypes.CDLL | None:
    """The library at `path`, its functions typed; None when it is not there, does not load, or was built from another source.

    `signatures` is from a function's name to its result and arguments; the first function tells the hash.
    """
    try:
        found = ctypes.CDLL(str(path))
        for name, (result, arguments) in signatures.items():
            function = getattr(found, name)
            function.restype, function.argtypes = result, arguments
        told = getattr(found, next(iter(signatures)))()
    except (OSError, AttributeError):
        return None
    return found if told == source_hash(source).encode() else None
