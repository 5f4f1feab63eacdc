"""The folder of files from Slack, below its paths: names, sizes, and what is still under way."""

from __future__ import annotations

import os
import re
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from knowledge.errors import InputError
from knowledge.text import clean

NAME = 80  # characters of a name
BYTES = 240  # of a name, of 255 that file systems take
HEAD = 65_536  # bytes that a recording of a machine is told by
_NOT_IN_NAMES = re.compile(r"[^\w.+-]+")
_TAR = b"ustar"  # at 257 of a tar


def digest(text: str, length: int) -> str:
    """A name for `text` that tells nothing of it, in hexadecimal digits."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:length]


def named(name: str) -> str:
    """What is left of a name: no folder, nothing that a program could take for an option or a hidden file."""
    kept = _NOT_IN_NAMES.sub(" ", clean(name)).strip(" .-+")
    if len(kept) > NAME:  # the end tells more than the middle: what kind of file it is
        kept = f"{kept[: NAME - 24].rstrip()}_{kept[-23:].lstrip()}"
    return kept.encode()[:BYTES].decode("utf-8", "ignore").strip() or "file"


def placed(thread: Path, home: Path, part: Path, name: str) -> Path:
    """Put a whole file where it belongs, under a name that no other file of the thread has."""
    name = named(name)
    taken = {path.name for entry in listed(thread) if (path := inside(entry)) is not None}
    stem, dot, ending = name.partition(".")
    free = next(
        n for i in range(1, len(taken) + 2) if (n := name if i == 1 else f"{stem}-{i}{dot}{ending}") not in taken
    )
    home.mkdir(mode=0o700, exist_ok=True)
    part.replace(home / free)
    os.utime(thread)
    return home / free


@contextmanager
def incoming(thread: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """A stream into the thread's folder and its path, gone at the end unless somebody moved its file."""
    thread.mkdir(mode=0o700, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".part-", dir=thread)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream, Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def inside(home: Path) -> Path | None:
    """The file that lies in its own folder."""
    return next(iter(listed(home)), None)


def listed(folder: Path) -> list[Path]:
    """What is in a folder; nothing when it is not there (any more). What is still under way is not."""
    try:
        return sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return []


def bytes_in(folder: Path) -> int:
    """What the files below a folder take; 0 when it is not there."""
    total = 0
    for base, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += Path(base, name).stat().st_size
    return total


def is_recording(path: Path) -> bool:
    """Whether a file is a recorded machine, a bundle or NVIDIA's bug report, by its content."""
    from probes._scan_open import opened, unpacked
    from probes.parse import bug_report

    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as packed:
                return any(name.rpartition("/")[2] == "manifest.json" for name in packed.namelist())
        _, stream, _, _ = opened(str(path))
        with stream:
            reader = unpacked(stream)
            head = bytearray()
            while len(head) < HEAD and (part := reader.read(HEAD - len(head))):
                head += part
    except (InputError, OSError, ValueError, zipfile.BadZipFile):
        return False  # reading it will tell what is wrong with it
    return head[257:262] == _TAR or bug_report.is_nvidia(head.decode("utf-8", "replace"))
