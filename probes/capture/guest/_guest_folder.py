"""The private folder that an agent shares with us, in the target's file system.

The target may be hostile: everything goes through a descriptor of the folder, no link is followed, and a file is taken only
when it is a regular one of the target's or ours and not larger than it may be.
"""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from probes.capture._inroot import file_in, open_at
from probes.capture.agent.report import MADE
from probes.capture.model import Process
from probes.capture.whom import _room

PREFIX = ".gpudiag-"
MOST_SWEPT = 64  # folders that are looked at for that: more of them nobody made by being killed
MOST_LEFT = 1000  # files that are taken away with it
SWEEPING = 0.2  # seconds for it: a folder may hold millions of files
STALE = 3600.0  # seconds after which a folder of a capture that was killed is removed by the next


class Folder:
    """Made by `Folder(process)`, in the first of `places` that has room. OSError when there is no place for it.

    `sweeps`: folders of captures that were killed, of which so many are looked at. `make` is `os.mkdir`.
    """

    def __init__(
        self, process: Process, *, places: Sequence[str] = _room.FOLDERS, sweeps: int = MOST_SWEPT,
        make: Callable[..., None] = os.mkdir,
    ) -> None:  # fmt: skip
        place = _room.folder(process, among=places)
        if not place:
            raise OSError(28, "no folder of the target has room")
        self._uid = process.uid
        self._parent = open_at(process.root, place, os.O_RDONLY | os.O_DIRECTORY)
        self._name = f"{PREFIX}{process.inner_pid or process.pid}-{secrets.token_hex(6)}"
        self.inside = f"{place}/{self._name}"  # as the target calls it
        self._at = -1
        self._beat = -1
        try:
            self._sweep(process, sweeps)
            make(self._name, 0o700, dir_fd=self._parent)
            self._at = os.open(
                self._name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._parent
            )
            told = os.fstat(self._at)
            # where the target may rename what is not its own, an old folder of ours could be put in the place of the new one
            if told.st_uid != os.geteuid() or os.listdir(self._at):  # noqa: PTH208 - of a descriptor
                os.close(self._at)
                self._at = -1  # nothing is taken away there
                raise OSError(1, "the folder was taken by another")
            self._gid = _gid(process.pid)
        except OSError:
            self.remove()
            raise

    def hand_over(self) -> None:
        """The folder becomes the target's, after what it is to read was put there."""
        self.put("beat", b"")
        self._beat = os.open("beat", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._at)
        if os.fstat(self._at).st_uid != self._uid:
            os.fchown(self._at, self._uid, self._gid)

    def put(self, name: str, content: bytes) -> None:
        """A new file, whole. OSError when it is there."""
        with self._made(f"{name}.part") as file:
            file.write(content)
        os.rename(f"{name}.part", name, src_dir_fd=self._at, dst_dir_fd=self._at)

    @contextmanager
    def _made(self, name: str) -> Iterator[BinaryIO]:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, 0o600, dir_fd=self._at), "wb") as file:
            if self._uid != os.geteuid():
                os.fchown(file.fileno(), self._uid, self._gid)
            yield file

    def beat(self) -> None:
        """We are still here."""
        if self._beat >= 0:
            with suppress(OSError):
                os.utime(self._beat)

    @contextmanager
    def opened(self, name: str, most: int) -> Iterator[BinaryIO]:
        """A file of the agent. OSError when it is not there, or is not what it should be."""
        descriptor = file_in(self._at, name)
        with os.fdopen(descriptor, "rb") as file:
            told = os.fstat(descriptor)
            if told.st_nlink != 1 or told.st_uid not in (self._uid, os.geteuid()):
                raise OSError(1, f"{name} is not a file that the target made")
            if told.st_size > most:
                raise OSError(27, f"{name} has {told.st_size} bytes")
            yield file

    def read(self, name: str, most: int) -> bytes:
        """All of it. OSError as `opened`."""
        with self.opened(name, most) as file:
            return file.read(most)

    @property
    def there(self) -> bool:
        """Whether it still stands under its name."""
        try:
            now = os.stat(self._name, dir_fd=self._parent, follow_symlinks=False)
            told = os.fstat(self._at)
        except OSError:
            return False
        return (now.st_dev, now.st_ino) == (told.st_dev, told.st_ino)

    def remove(self) -> None:
        """It and all that an agent puts there. May be called twice."""
        if self._at >= 0:
            _empty(self._at)
            for name in _names(self._at, MOST_LEFT):  # what torch's own writer began, and did not come to rename
                with suppress(OSError):
                    os.unlink(name, dir_fd=self._at)
        if self._parent >= 0:
            with suppress(OSError):
                os.rmdir(self._name, dir_fd=self._parent)
        for descriptor in (self._at, self._parent, self._beat):
            if descriptor >= 0:
                os.close(descriptor)
        self._at = self._parent = self._beat = -1

    def _sweep(self, process: Process, most: int) -> None:
        """Folders of captures that were killed before their agent began."""
        for name in _old(self._parent, most):
            with suppress(OSError):
                at = file_in(self._parent, name, os.O_RDONLY | os.O_DIRECTORY, stat.S_IFDIR)
                try:
                    told = os.fstat(at)
                    if told.st_uid in (process.uid, os.geteuid()) and time.time() - _newest(at, told.st_mtime) > STALE:
                        _empty(at)
                        os.rmdir(name, dir_fd=self._parent)
                finally:
                    os.close(at)


def _old(folder: int, most: int) -> list[str]:
    """Names of folders of captures: at most so many, and as many as are found in a short time."""
    found: list[str] = []
    until = time.monotonic() + SWEEPING
    with suppress(OSError), os.scandir(folder) as entries:
        for number, entry in enumerate(entries):
            if entry.name.startswith(PREFIX):
                found.append(entry.name)
            if len(found) >= most or (number % 512 == 511 and time.monotonic() > until):
                break
    return found


def _newest(at: int, otherwise: float) -> float:
    try:
        return max(otherwise, os.stat("beat", dir_fd=at, follow_symlinks=False).st_mtime)
    except OSError:
        return otherwise


def _empty(at: int) -> None:
    for name in (*MADE, *(f"{n}.part" for n in MADE)):
        with suppress(OSError):
            os.unlink(name, dir_fd=at)


def _names(at: int, most: int) -> list[str]:
    try:
        with os.scandir(at) as entries:
            return [entry.name for entry in islice(entries, most)]
    except OSError:
        return []


def _gid(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
        if line.startswith("Gid:"):
            return int(line.split()[2])
    raise OSError(3, "the process has no group")
