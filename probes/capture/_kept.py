"""Files of a capture as they are written: for their owner's eyes alone, and never through what somebody else put there."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import BinaryIO


def created(path: Path) -> BinaryIO:
    """A new file, 0600. What has that name already is taken away, a link too, and never written to. OSError."""
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def whole(stream: BinaryIO, most: int) -> bytes:
    """All of a file that somebody may still write to. OSError (EFBIG) where it has grown over `most` bytes."""
    data = stream.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most} bytes")
    return data


def copy(stream: BinaryIO, to: Path, most: int) -> None:
    """The same into a new file; nothing is left of it when it is too long. OSError."""
    try:
        with created(to) as out:
            while block := stream.read(1 << 20):
                most -= len(block)
                if most < 0:
                    raise OSError(errno.EFBIG, "it grows while it is read")
                out.write(block)
    except OSError:
        to.unlink(missing_ok=True)
        raise
