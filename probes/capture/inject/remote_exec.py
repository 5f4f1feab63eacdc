"""`sys.remote_exec` of Python 3.14: the interpreter of the target itself asks the target to run a script.

Both sides must be of the same minor version, so the very program of the target (/proc/PID/exe) is run, within the target's root
and namespaces, and with no more rights than the target has: it may be a container's, and nobody here knows what it does. The script
lies in the target's /tmp or /dev/shm, belongs to its user, and takes itself away first: by that we know that it ran. On a
process that never comes back to Python the request stays and finds no script.

Not possible: PYTHON_DISABLE_REMOTE_DEBUG, -X disable_remote_debug, a build --without-remote-debug, a root without /proc.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from knowledge.record import dataclass
from probes.capture.inject._refusals import refusal, refuse
from probes.capture.model import Refusal

OLDEST = (3, 14)
SWITCH = "PYTHON_DISABLE_REMOTE_DEBUG"
_PLACES = (("tmp",), ("dev", "shm"), ("var", "tmp"))
_SPACES = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")
_PROGRAM = "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])"
_OFF = ("not enabled", "not supported", "disabled", "without remote")
_CAPBSET_DROP, _NO_NEW_PRIVS, _CAPABILITIES = 24, 38, 64
_MKNOD, _ADMIN = 27, 21  # CAP_MKNOD, CAP_SYS_ADMIN
_LEAST = 0.5  # seconds that the helper is given at least
_MOST_ENVIRON = 1 << 20


def able(pid: int) -> Refusal | None:
    """What speaks against it, as far as can be seen without touching anything: None when nothing does."""
    if switched_off(_words(pid, "environ"), _words(pid, "cmdline")):
        return refusal("remote-debug-off", SWITCH)
    if not Path(f"/proc/{pid}/root/proc/{_status(pid).inner}/maps").exists():
        return refusal("failed", "its root has no /proc", "其根目录下没有 /proc")
    if os.geteuid() == 0 and _bound(pid):
        return refusal(
            "no-permission", "it is bound by rules (seccomp, devices of its control group) that a second interpreter would not be",
            "其受 seccomp 或 cgroup 设备规则约束,而另起的解释器不受其约束",
        )  # fmt: skip
    if os.geteuid() != 0 and not _same_root(pid):
        return refusal(
            "no-permission", "its root is another one, and entering it takes root", "其根目录不同,需要 root 才能进入"
        )
    return None


def _bound(pid: int) -> bool:
    """Whether the target is held by more than its user and capabilities, so that running its program would give it more than it has.

    Its program may be anything. Out of its filter of system calls, or with the right to make device nodes out of the control group
    that forbids their use, it could leave its container. Who administers the system needs no such way.
    """
    about = _status(pid)
    makes = bool(about.capabilities >> _MKNOD & 1) and not about.capabilities >> _ADMIN & 1
    return about.filtered or makes


def switched_off(environ: list[str], command: list[str]) -> bool:
    """Whether its environment or its command line switches remote debugging off."""
    options = []
    for at, word in enumerate(command[1:], 1):
        if not word.startswith("-") and command[at - 1] != "-X":
            break
        options.append(word.removeprefix("-X").replace("-", "_"))
    ignores = any(o.startswith(("_I", "_E")) for o in options)
    named = any(e.startswith(SWITCH + "=") and e != SWITCH + "=" for e in environ)
    return "disable_remote_debug" in options or (named and not ignores)


def inject(pid: int, code: str, *, until: float) -> float:
    """Ask process `pid` to run `code` on its main thread; seconds it took. InjectError with the refusal.

    Raises `no-answer` when it did not run until `until` (time.monotonic).
    """
    began, about = time.monotonic(), _status(pid)
    with _script(pid, code, about) as script:
        _ask(pid, script.inside, about, until)
        while script.waits():
            if not Path(f"/proc/{pid}").exists():
                raise refuse("gone")
            if time.monotonic() >= until:
                raise refuse("no-answer")
            time.sleep(0.002)
    return time.monotonic() - began


@dataclass(frozen=True, slots=True)
class _Status:
    """Who the target is, in numbers."""

    inner: int  # its pid in its own namespace
    uid: int  # effective, as we see it
    gid: int
    groups: tuple[int, ...]
    capabilities: int  # permitted
    filtered: bool  # by seccomp


def _status(pid: int) -> _Status:
    try:
        text = Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        raise refuse("gone") from None
    rows = {n: v.split() for n, _, v in (line.partition(":") for line in text.splitlines())}
    return _Status(
        int(rows.get("NSpid", [str(pid)])[-1]), int(rows["Uid"][1]), int(rows["Gid"][1]),
        tuple(int(g) for g in rows.get("Groups", [])), int(rows.get("CapPrm", ["0"])[0], 16),
        rows.get("Seccomp", ["0"])[0] != "0" and rows.get("Seccomp") != _own_filter(),
    )  # fmt: skip


def _own_filter() -> list[str]:
    """The mode of seccomp that we run under ourselves: then so does what we start."""
    found = [
        row.split()[1:] for row in Path("/proc/self/status").read_text().splitlines() if row.startswith("Seccomp:")
    ]
    return found[0] if found else ["0"]


def _words(pid: int, name: str) -> list[str]:
    try:
        with Path(f"/proc/{pid}/{name}").open("rb") as file:
            return [w.decode(errors="replace") for w in file.read(_MOST_ENVIRON).split(b"\0")]
    except OSError:
        return []


def _same_root(pid: int) -> bool:
    try:
        ours, theirs = Path("/").stat(), Path(f"/proc/{pid}/root/.").stat()
        spaces = str(Path(f"/proc/{pid}/ns/mnt").readlink()) == str(Path("/proc/self/ns/mnt").readlink())
    except OSError:
        return False
    return spaces and (ours.st_dev, ours.st_ino) == (theirs.st_dev, theirs.st_ino)


# --- the script -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Script:
    """A file in the target's file system."""

    folder: int  # descriptor
    name: str
    inside: str  # its path as the target sees it

    def waits(self) -> bool:
        """Whether it still lies there: the target has not run it."""
        try:
            os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True


@contextmanager
def _script(pid: int, code: str, about: _Status) -> Iterator[_Script]:
    """The script, written where the target can read it and take it away; gone afterwards in any case."""
    for parts in _PLACES:
        with suppress(OSError):
            folder = _folder(pid, parts)
            break
    else:
        raise refuse("failed", "no folder of the target can be written", "目标的临时目录均不可写")
    name = f"gpudiag-{secrets.token_hex(8)}.py"
    script = _Script(folder, name, "/" + "/".join((*parts, name)))
    try:
        _write(script, text(code, script.inside, about.inner).encode(), about)
        yield script
    finally:
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)
        os.close(folder)


def _write(script: _Script, data: bytes, about: _Status) -> None:
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(script.name, flags, 0o600, dir_fd=script.folder)
        try:
            if os.geteuid() == 0:
                os.fchown(handle, about.uid, about.gid)
            os.write(handle, data)
        finally:
            os.close(handle)
    except OSError as error:
        raise refuse("failed", f"its script: {error.strerror}", f"脚本:{error.strerror}") from None


def _folder(pid: int, parts: tuple[str, ...]) -> int:
    """A folder of the target's, opened step by step: no link of its may lead us elsewhere."""
    folder = os.open(f"/proc/{pid}/root", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in parts:
        try:
            deeper = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        finally:
            os.close(folder)
        folder = deeper
    if not os.access(".", os.W_OK, dir_fd=folder):
        os.close(folder)
        raise PermissionError
    return folder


def text(code: str, path: str, inner: int) -> str:
    """The script: takes itself away, runs `code` in a namespace of its own, raises nothing."""
    inside = (
        "try:\n import os\n"
        f" if os.getpid() == {inner}:\n  os.unlink({path!r})\n  exec({code!r}, {{'__name__': '_gpudiag'}})\n"
        "except KeyboardInterrupt:\n import _thread; _thread.interrupt_main()\nexcept BaseException:\n pass\n"
    )
    return f"try:\n exec({inside!r}, {{'__name__': '_gpudiag'}})\nexcept BaseException:\n pass\n"


# --- the helper -----------------------------------------------------------------------------------


def _ask(pid: int, path: str, about: _Status, until: float) -> None:
    """Run the target's interpreter, as the target would run it."""
    try:
        enter = _Enter(pid, about)
    except OSError as error:
        raise refuse("no-permission", f"its namespaces: {error.strerror}") from None
    try:
        code, said = _run(enter, [enter.program, "-I", "-S", "-c", _PROGRAM, str(about.inner), path], until)
    finally:
        enter.close()
    if code is None:
        raise refuse("failed", "its interpreter did not start in time", "其解释器未及时启动")
    if code != 0:
        last = said.decode(errors="replace").strip().splitlines()[-1:] or [f"exit {code}"]
        raise refuse(_meaning(last[0]), last[0][:200])


def _run(enter: _Enter, argv: list[str], until: float) -> tuple[int | None, bytes]:
    """Exit code and what it said of errors; None: it was ended at the deadline. By fork: a pid namespace takes two of them."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - seen by its effects alone
        _child(enter, argv, writer)
    os.close(writer)
    os.set_blocking(reader, False)
    said, code = b"", None
    try:
        limit = max(until, time.monotonic() + _LEAST)
        while time.monotonic() < limit and code is None:
            with suppress(BlockingIOError):
                said = (said + os.read(reader, 4096))[-8192:]
            done, status = os.waitpid(child, os.WNOHANG)
            code = os.waitstatus_to_exitcode(status) if done else None
            time.sleep(0.002)
        with suppress(BlockingIOError):
            said += os.read(reader, 8192)
    finally:
        if code is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
        os.close(reader)
    return code, said


def _child(enter: _Enter, argv: list[str], writer: int) -> NoReturn:  # pragma: no cover - runs in a fork
    try:
        os.setsid()
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        nothing = os.open(os.devnull, os.O_RDWR)
        for handle, number in ((nothing, 0), (nothing, 1), (writer, 2)):
            os.dup2(handle, number)
        enter.enter()
        if enter.forks and (inner := os.fork()):
            os._exit(os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]) & 0xFF)
        enter.down()
        os.execve(enter.exe, argv, {})
    except BaseException as error:  # noqa: BLE001 - a fork must never come back
        os.write(2, f"{error}\n".encode())
    os._exit(127)


def _meaning(said: str) -> str:
    low = said.lower()
    if any(word in low for word in _OFF):
        return "remote-debug-off"
    return "no-permission" if "permission" in low or "not permitted" in low else "failed"


class _Enter:
    """Runs in a fork: into the target's namespaces and root, and down to its rights."""

    def __init__(self, pid: int, about: _Status) -> None:
        self._about = about
        self.exe = os.open(f"/proc/{pid}/exe", os.O_RDONLY | os.O_CLOEXEC)
        self._root = (
            -1 if _same_root(pid) else os.open(f"/proc/{pid}/root", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        )
        differing = [name for name in _SPACES if _differs(pid, name)]
        self._spaces = [os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in differing]
        self.forks = "pid" in differing  # entering a pid namespace counts for children alone
        program, root = str(Path(f"/proc/{pid}/exe").readlink()), str(Path(f"/proc/{pid}/root").readlink())
        self.program = program.removeprefix(root) if root != "/" else program
        self._uid, self._gid = about.uid, about.gid
        if "user" in differing:
            self._uid, self._gid = _mapped(pid, "uid_map", about.uid), _mapped(pid, "gid_map", about.gid)
        self._libc = ctypes.CDLL(None, use_errno=True)

    def close(self) -> None:
        """Close what was opened."""
        for handle in (self.exe, self._root, *self._spaces):
            if handle >= 0:
                os.close(handle)

    def enter(self) -> None:
        """The namespaces, then the root."""
        for handle in self._spaces:
            if self._libc.setns(handle, 0) != 0:
                raise OSError(ctypes.get_errno(), "setns: " + os.strerror(ctypes.get_errno()))
        if self._root >= 0:
            os.fchdir(self._root)
            os.chroot(".")

    def down(self) -> None:
        """To the user and the capabilities of the target: its interpreter must not get more than it has."""
        if os.geteuid() != 0:
            return
        for number in range(_CAPABILITIES):
            if not self._about.capabilities >> number & 1:
                self._libc.prctl(_CAPBSET_DROP, number, 0, 0, 0)
        with suppress(PermissionError):
            os.setgroups(self._about.groups)
        os.setresgid(self._gid, self._gid, self._gid)
        os.setresuid(self._uid, self._uid, self._uid)
        self._libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)


def _differs(pid: int, name: str) -> bool:
    try:
        return str(Path(f"/proc/{pid}/ns/{name}").readlink()) != str(Path(f"/proc/self/ns/{name}").readlink())
    except OSError:
        return False


def _mapped(pid: int, name: str, outer: int) -> int:
    """A user's or group's number within the target's user namespace."""
    for line in Path(f"/proc/{pid}/{name}").read_text().splitlines():
        inside, outside, count = (int(w) for w in line.split())
        if outside <= outer < outside + count:
            return inside + outer - outside
    return outer
