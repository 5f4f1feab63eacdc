# mypy: ignore-errors
# ruff: noqa: ANN001, ANN202, PTH120, PTH123
"""A server of jobs: an interpreter that has imported torch and run nothing forks for each job (tests/served_jobs.py asks it).

The interpreter imports this module before it runs its script. The server never leaves it; a forked process does, and the
interpreter then runs the script of the job as it runs anybody's: no frame of ours is in its stacks. What /proc tells of the
process is put right before: command line, environment, and a stack that begins elsewhere than its parent's (as after exec).
"""

import contextlib
import ctypes
import gc
import json
import mmap
import os
import selectors
import signal
import socket
import sys
import tempfile
import time

_PRCTL = ctypes.CDLL(None, use_errno=True).prctl
_DIE_WITH_PARENT, _SET_MM, _MAP = 1, 35, 14
_NUMBERS = ("start_code", "end_code", "start_data", "end_data", "start_brk", "brk", "start_stack", "arg_start", "arg_end", "env_start",
            "env_end", "auxv")  # fmt: skip


class _Memory(ctypes.Structure):
    """struct prctl_mm_map of linux/prctl.h."""

    _fields_ = [*((name, ctypes.c_uint64) for name in _NUMBERS), ("auxv_size", ctypes.c_uint32), ("exe", ctypes.c_uint32)]  # fmt: skip


def _import():
    """What a training loop has imported after its first iterations."""
    with contextlib.suppress(ImportError):
        import numpy  # noqa: F401
    import torch._dynamo
    import torch.distributed
    import torch.nn.parallel
    import torch.utils.data  # noqa: F401

    return len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208


def _wide(text):
    """As C keeps it in wchar_t."""
    return (text + "\0").encode("utf-32-le")


def _places(text):
    """Where the interpreter's configuration keeps a text: in the memory that C allocates."""
    wanted, found = _wide(text), []
    with open("/proc/self/maps") as maps:
        (heap,) = (line for line in maps if line.rstrip().endswith("[heap]"))
    begin, end = (int(part, 16) for part in heap.split()[0].split("-"))
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        memory.seek(begin)
        held = memory.read(end - begin)
    at = held.find(wanted)
    while at >= 0:
        found.append(begin + at)
        at = held.find(wanted, at + 1)
    return found


def _rename(places, text, script):
    """The interpreter runs `script` for `text`, in whose room it has to fit."""
    old, new = _wide(text), _wide(script)
    assert len(new) <= len(old)
    for at in places:
        if ctypes.string_at(at, len(old)) == old:  # and is not used for something else by now
            ctypes.memmove(at, new, len(new))


def _show(words, environment):
    """What /proc/PID/cmdline and environ tell. OSError where that is not allowed."""
    argv = b"".join(os.fsencode(word) + b"\0" for word in words)
    env = b"".join(os.fsencode(name + "=" + value) + b"\0" for name, value in environment.items())
    area = mmap.mmap(-1, len(argv) + len(env), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    area.write(argv + env)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(area))  # which keeps the area
    _kept.append(area)
    with open("/proc/self/stat") as file:
        stat = [0, 0, 0, *file.read().rpartition(")")[2].split()]
    sbrk = ctypes.CDLL(None).sbrk
    sbrk.restype = ctypes.c_void_p
    middle = begin + len(argv)
    shown = _Memory(
        start_code=int(stat[26]), end_code=int(stat[27]), start_data=int(stat[45]), end_data=int(stat[46]),
        start_brk=int(stat[47]), brk=sbrk(0), start_stack=int(stat[28]) - 64, arg_start=begin, arg_end=middle, env_start=middle,
        env_end=middle + len(env), exe=0xFFFFFFFF,
    )  # fmt: skip
    if _PRCTL(_SET_MM, _MAP, ctypes.byref(shown), ctypes.sizeof(shown), 0):
        raise OSError(ctypes.get_errno(), "PR_SET_MM_MAP")


def _become(request, fds):
    """The forked process is the job from here on."""
    os.setsid()
    for number, fd in enumerate((fds[0], fds[1], fds[1])):
        os.dup2(fd, number)
    _show(request["argv"], request["env"])
    _rename(_script_places, _NOBODY, request["argv"][1])
    sys.argv[:] = request["argv"][1:]
    sys.orig_argv[:] = request["argv"]
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    tempfile.tempdir = None
    if request["cwd"]:
        os.chdir(request["cwd"])
    sys.path.remove(os.path.dirname(__file__))
    os.write(fds[2], b"pid %d" % os.getpid())


def _serve():
    """Take requests until the test run ends; comes back in a forked process only."""
    me, jobs, lines, watched = os.getpid(), {}, set(), selectors.DefaultSelector()
    listener, owner = socket.socket(fileno=os.dup(0)), os.pidfd_open(int(os.environ["JOB_SERVER_OWNER"]))
    watched.register(listener, selectors.EVENT_READ)
    watched.register(owner, selectors.EVENT_READ)
    while True:
        for key, _ in watched.select():
            line = key.fileobj
            if line is listener:
                line = listener.accept()[0]
                watched.register(line, selectors.EVENT_READ)
                lines.add(line)
                line.send(b"ready")
                continue
            if line not in lines:
                if line == owner:
                    os._exit(0)  # with it go its jobs: each asked to
                watched.unregister(line)
                _tell(*jobs.pop(line)[:2], line)
                continue
            text, fds, _, _ = socket.recv_fds(line, 1 << 20, 3)
            if not text:
                watched.unregister(line)
                lines.remove(line)
                _end([pid for pid, _, whose in jobs.values() if whose is line])
                line.close()
                continue
            pid = os.fork()
            if pid:
                ended = os.pidfd_open(pid)
                jobs[ended] = pid, fds.pop(), line
                watched.register(ended, selectors.EVENT_READ)
            else:
                _PRCTL(_DIE_WITH_PARENT, signal.SIGKILL)
                try:
                    assert os.getppid() == me
                    _become(json.loads(text), fds)
                except BaseException:  # noqa: BLE001 - nothing of this process may go on as if it were a job
                    os._exit(1)
                watched.close()
                for one in (listener, *lines):
                    one.close()
                fds += [owner, *(fd for ended, (_, said, _) in jobs.items() for fd in (ended, said))]
            for fd in fds:
                os.close(fd)
            if not pid:
                return


def _end(pids):
    """The jobs of a worker that is gone."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)  # ended or not: nobody has its number until it is waited for


def _tell(pid, said, ended):
    """How a job ended, to whom it may still concern."""
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(OSError):
        os.write(said, b"%d" % status)
    os.close(said)
    os.close(ended)


_kept = []
_NOBODY = os.environ.get("JOB_SERVER_SCRIPT")
if _NOBODY:
    _script_places = _places(_NOBODY)
    if not _import() or not _script_places:
        os._exit(1)
    gc.collect()
    gc.freeze()
    _serve()
