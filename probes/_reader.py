"""Reads files and lists paths for `probes.live_host.LiveHost`, in a process that can be given up.

A read of /proc or of a dead file system can sleep in the kernel where no signal reaches it, so
nothing of that kind happens in the process that has to answer. Run as ``python -I -S -B
_reader.py``; requests come as JSON lines on standard input, each answered by one JSON line and as many
bytes as it says. Ends when standard input ends. Standard library only, and Python 3.6: `probes/remote/far.py`
reads files with it on other machines.
"""

import errno
import glob
import json
import os
import stat
import sys

CHUNK = 1 << 16
KMSG = 8192  # one record of /dev/kmsg a read; longer ones do not exist (kernel: CONSOLE_EXT_LOG_MAX)


TYPE_CHECKING = False  # the typing module would cost its import
if TYPE_CHECKING:
    from collections.abc import Callable


def read(path: str, cap: int, say: "Callable[[bytes], object] | None" = None) -> "tuple[bytes, bytes, int]":
    """Head and tail of a file, at most `cap` bytes together, and the bytes between them that are left out.

    With `say`, which is handed the head part by part, the head that is returned is empty.
    """
    # O_NONBLOCK: a FIFO is opened at once, and /dev/kmsg ends where the log ends today.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        kind = os.fstat(handle)
        if stat.S_ISDIR(kind.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        half = cap // 2
        head, lost = bytearray(), 0
        if _upto(handle, half, stat.S_ISCHR(kind.st_mode), say or head.extend) < half:
            return bytes(head), b"", 0
        if stat.S_ISREG(kind.st_mode) and kind.st_size > cap:
            lost = kind.st_size - cap
            os.lseek(handle, lost + half, os.SEEK_SET)
        tail = bytearray()
        while True:
            part = _once(handle, stat.S_ISCHR(kind.st_mode))
            if not part:
                return bytes(head), bytes(tail), lost
            tail += part
            if len(tail) > half + (1 << 20):
                lost += len(tail) - half
                del tail[: len(tail) - half]
    finally:
        os.close(handle)


def _upto(handle: int, size: int, device: bool, say: "Callable[[bytes], object]") -> int:
    """Hand `say` what is read until there are `size` bytes of it, or no more. How many there were."""
    done = 0
    while done < size:
        part = _once(handle, device, size - done)
        if not part:
            break
        say(part)
        done += len(part)
    return done


def _once(handle: int, device: bool, most: int = CHUNK) -> bytes:
    while True:
        try:
            return os.read(handle, KMSG if device else min(CHUNK, most))
        except BlockingIOError:
            return b""
        except BrokenPipeError:  # /dev/kmsg: records were overwritten while we read; the next read goes on
            continue


def answer(request: "dict[str, object]") -> "tuple[dict[str, object], bytes]":
    """Header and bytes for one request."""
    path, cap = str(request["path"]), request.get("cap", 0)
    assert isinstance(cap, int)
    try:
        if request["op"] == "glob":
            found = sorted(glob.glob(path))  # noqa: PTH207 - pathlib would be most of what a start costs
            return {"ok": True}, os.fsencode("".join(p + "\n" for p in found if "\n" not in p))
        head, tail, lost = read(path, cap)
        return {"ok": True, "lost": lost, "head": len(head)}, head + tail
    except OSError as error:
        return {"ok": False, "errno": error.errno, "why": error.strerror or str(error)}, b""
    except ValueError as error:  # a path with a NUL
        return {"ok": False, "errno": errno.EINVAL, "why": str(error)}, b""


def main() -> None:
    """Answer until standard input ends."""
    out = sys.stdout.buffer
    for line in sys.stdin.buffer:
        header, data = answer(json.loads(line))
        header["size"] = len(data)
        out.write(json.dumps(header).encode() + b"\n" + data)
        out.flush()


if __name__ == "__main__":
    main()
