"""Files of a target by the paths that it uses itself, opened so that no link of its leads out of its file system.

``/proc/PID/root/x`` alone would not do: a link there that begins with "/" is followed in our own file system.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
from typing import Final

_OPENAT2: Final = 437  # on all architectures (Linux 5.6)
_RESOLVE_IN_ROOT, _RESOLVE_NO_MAGICLINKS = 0x10, 0x02


class KindError(OSError):
    """What has the name is another kind of file than it should be."""


def open_at(root: str, path: str, flags: int) -> int:
    """A descriptor of `path` below the folder `root` as if that were "/". OSError when it cannot be opened.

    Without openat2 (before Linux 5.6, or a filter of system calls) a path with a link in it is refused: ELOOP.
    """
    flags |= os.O_CLOEXEC | (0 if flags & os.O_PATH else os.O_NOCTTY)  # with O_PATH openat2 refuses the other flags
    base = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            return _openat2(base, path, flags)
        except OSError as error:
            if error.errno not in (errno.ENOSYS, errno.EPERM):
                raise
        return _walked(base, path, flags)
    finally:
        os.close(base)


def file_at(root: str, path: str, flags: int = os.O_RDONLY, kind: int = stat.S_IFREG) -> int:
    """As `open_at`, of a file that is of this kind (a regular one). KindError for any other, which is not opened.

    To open a device may do something already: a watchdog begins to count, a tape rewinds. Containers may make such nodes.
    """
    return _opened(open_at(root, path, os.O_PATH | flags & os.O_NOFOLLOW), flags, kind, path)


def file_in(folder: int, name: str, flags: int = os.O_RDONLY, kind: int = stat.S_IFREG) -> int:
    """The same of a file right in the folder of a descriptor; a link is of another kind."""
    handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    return _opened(handle, flags, kind, name)


def _opened(handle: int, flags: int, kind: int, path: str) -> int:
    """Opens what an O_PATH descriptor stands for, which is closed."""
    try:
        if stat.S_IFMT(os.fstat(handle).st_mode) != kind:
            raise KindError(errno.EINVAL, "it is another kind of file", path)
        # what it stands for can be no other by now, nor be waited for
        return os.open(f"/proc/self/fd/{handle}", flags & ~os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    finally:
        os.close(handle)


def read_at(root: str, path: str, most: int) -> bytes | None:
    """The first `most` bytes of a regular file; None when there is none, or it cannot be read."""
    try:
        descriptor = file_at(root, path)
    except (OSError, ValueError):
        return None
    try:
        return content(descriptor, most)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def content(descriptor: int, most: int) -> bytes:
    """What a descriptor gives, at most `most` bytes."""
    parts, left = [], most
    while left > 0 and (part := os.read(descriptor, min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _openat2(base: int, path: str, flags: int) -> int:
    how = ctypes.create_string_buffer(struct.pack("=QQQ", flags, 0, _RESOLVE_IN_ROOT | _RESOLVE_NO_MAGICLINKS), 24)
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    found = call(
        ctypes.c_long(_OPENAT2), ctypes.c_int(base), ctypes.c_char_p(os.fsencode(path)), how, ctypes.c_size_t(24)
    )
    if found < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), path)
    return int(found)


def _walked(base: int, path: str, flags: int) -> int:
    """Part by part, following no link."""
    parts = [p for p in path.split("/") if p not in ("", ".")]
    if not parts or ".." in parts:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    here = os.dup(base)
    try:
        for part in parts[:-1]:
            below = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = below
        last = os.open(parts[-1], flags | os.O_NOFOLLOW, dir_fd=here)
        if flags & os.O_PATH and stat.S_ISLNK(os.fstat(last).st_mode):
            os.close(last)
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        return last
    finally:
        os.close(here)
