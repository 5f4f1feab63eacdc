"""One line for each request, and for each narration that was withheld: when, why, how long, how much. Never what was said."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from knowledge.whole import private_folder

NAME = "narration.log"
CAP = 256 << 10  # bytes; then it becomes narration.log.1, and the one before that goes


def note(folder: Path, fields: Mapping[str, object]) -> None:
    """Append a JSON line, readable by its owner only. What cannot be written is not kept: a log is no reason for an error."""
    path = folder / NAME
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    line = (
        json.dumps({"at": at, **fields}, ensure_ascii=True, default=str).encode() + b"\n"
    )  # ASCII: nothing that moves a cursor
    with suppress(OSError):
        private_folder(folder)
        if path.exists() and path.stat().st_size + len(line) > CAP:
            path.replace(path.with_name(f"{NAME}.1"))
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, line)  # one call: lines of two processes do not mix
        finally:
            os.close(descriptor)
