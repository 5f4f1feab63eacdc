"""Files of our own: replaced at once or not at all, whatever is killed on the way, and nobody else's to read."""

from __future__ import annotations

import os
from pathlib import Path


def private_folder(folder: Path) -> None:
    """Make it, and those above it that are missing, for its owner only. OSError."""
    for one in (*reversed(folder.parents), folder):
        one.mkdir(mode=0o700, exist_ok=True)


def private_lock(path: Path) -> int:
    """The descriptor of a file to be locked, made with its folder where it is missing: whoever could open it could hold it. OSError."""
    private_folder(path.parent)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def replace_file(target: Path, data: bytes) -> None:
    """Put `data` in the place of `target`, readable by its owner only; it is on the disk when this returns. OSError."""
    import tempfile

    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).replace(target)
    finally:
        Path(name).unlink(missing_ok=True)
