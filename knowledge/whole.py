"""Files that are replaced at once or not at all, whatever is killed on the way."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def replace_file(target: Path, data: bytes) -> None:
    """Put `data` in the place of `target`, readable by its owner only; it is on the disk when this returns. OSError."""
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).replace(target)
    finally:
        Path(name).unlink(missing_ok=True)
