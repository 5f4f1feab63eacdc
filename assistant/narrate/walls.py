"""Walls around the process that speaks to the model, held by the kernel and not by the interpreter that they hold.

Put up once, by a process that has one thread and has loaded nothing but the standard library. What stands afterwards is tried out
and not believed (`standing`): a kernel may lack Landlock (before 5.13) or system call filters, and a container may forbid either. Without
Landlock a root folder of its own, with what may be read and nothing else, stands for the wall around files, where namespaces are allowed.

A process behind them reads its own interpreter, its packages and the certificates of this system; writes nothing; starts no program;
has no socket but those it is handed; looks into no process and signals none. Standard library only, as child.py.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import resource
import socket
import ssl
import struct
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

MEMORY = 2 << 30  # bytes of address space: litellm and its libraries map 0.5 GB of it
OPEN_FILES = 256
# Users that nobody is: systemd gives the numbers 61184 to 65519 to services for as long as they run.
FIRST_USER, USERS = 61184, 4336
# <linux/prctl.h>, <linux/capability.h>, <linux/seccomp.h>
NO_NEW_PRIVS, SET_SECCOMP, CAPABILITY_VERSION, FILTER = 38, 22, 0x20080522, 2
WALLS = ("user", "privileges", "reads", "writes", "programs", "sockets", "processes")

# <linux/sched.h>, <linux/mount.h>: namespaces of mounts and users; what mount is asked for.
NEW_MOUNTS, NEW_USER = 0x20000, 0x10000000
BIND, PRIVATE, RECURSIVE, DETACH = 0x1000, 1 << 18, 0x4000, 2
ROOM = "/tmp"  # a folder of every system, over which the root of its own is made, for this process alone
OUTSIDE = ("/proc/version", "/etc/passwd")  # open to all, and none of its business

# <linux/landlock.h>: all that can be done to files, by the version of the interface that knows it.
CREATE, ADD, RESTRICT = 444, 445, 446  # the same on every architecture
READ_FILE, READ_DIR = 1 << 2, 1 << 3
FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
TCP = {4: 0b11}  # bind, connect: none is allowed
SCOPES = {6: 0b11}  # abstract sockets and signals of others

# Certificates, libraries of the system and time zones: read by what speaks TLS and by the loader.
READABLE = (
    "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/usr/share/zoneinfo", "/etc/localtime",
    "/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates",
    "/etc/pki/tls/certs", "/etc/pki/tls/cert.pem", "/etc/pki/tls/openssl.cnf", "/etc/pki/ca-trust/extracted", "/etc/crypto-policies",
    "/dev/null", "/dev/urandom",
)  # fmt: skip

# System calls by their numbers on x86-64 and on arm64 (None: that architecture has none such).
ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
LAST = 462  # mseal; what came later is answered as an old kernel does, so that nothing new gets by
REFUSED: dict[str, tuple[int | None, int | None]] = {
    # programs, processes, signals
    "execve": (59, 221), "execveat": (322, 281), "fork": (57, None), "vfork": (58, None), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "process_madvise": (440, 440), "kcmp": (312, 272),
    "kill": (62, 129), "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "process_mrelease": (448, 448),
    # connections
    "socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201), "accept": (43, 202), "accept4": (288, 242),
    "shmget": (29, 194), "semget": (64, 190), "msgget": (68, 186), "mq_open": (240, 180),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    # files: Landlock leaves modes, owners, times and attributes alone, and older kernels have no Landlock
    "creat": (85, None), "mkdir": (83, None), "mkdirat": (258, 34), "rmdir": (84, None), "unlink": (87, None), "unlinkat": (263, 35),
    "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276), "link": (86, None), "linkat": (265, 37),
    "symlink": (88, None), "symlinkat": (266, 36), "mknod": (133, None), "mknodat": (259, 33), "chmod": (90, None),
    "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None), "fchown": (93, 55), "lchown": (94, None),
    "fchownat": (260, 54), "truncate": (76, 45), "ftruncate": (77, 46), "utime": (132, None), "utimes": (235, None),
    "futimesat": (261, None), "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16), "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    # the machine
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97), "setns": (308, 268),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fspick": (433, 433), "mount_setattr": (442, 442), "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142), "acct": (163, 89),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "sethostname": (170, 161), "setdomainname": (171, 162), "quotactl": (179, 60), "iopl": (172, None), "ioperm": (173, None),
    "modify_ldt": (154, None), "swapon": (167, 224), "swapoff": (168, 225),
}  # fmt: skip
# (argument, test, value): refused unless, or where, the argument is so. Pointers are out of a filter's reach: such calls do not exist.
CLONE, CLONE3, OPENAT2 = (56, 220), (435, 435), (437, 437)
THREAD = 0x10000  # CLONE_THREAD
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
FASTOPEN = 0x20000000  # connects without connect


def put_up() -> dict[str, bool]:
    """All walls that this kernel offers; which of `WALLS` were found to stand. Raises nothing: a wall that is missing is told."""
    outside = [path for path in OUTSIDE if _open_to_us(path)]
    limits()
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.syscall.restype = ctypes.c_long
        readable = readable_paths()
        steps: tuple[Callable[[], None], ...] = (
            partial(own_root, libc, readable), partial(leave_root, readable), partial(powerless, libc), partial(close_files, libc, readable),
            partial(close_calls, libc),
        )  # fmt: skip
        for step in steps:
            with contextlib.suppress(OSError, ValueError, AttributeError):
                step()
    return standing(outside)


def limits() -> None:
    """No core files, no files with anything in them, bounded memory."""
    wanted = (
        (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_NOFILE, OPEN_FILES), (resource.RLIMIT_AS, MEMORY)
    )  # fmt: skip
    for which, most in wanted:
        hard = resource.getrlimit(which)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(which, (most, most))


def readable_paths() -> list[str]:
    """What is read: this interpreter's library, the packages of its environment, certificates. Never a whole prefix, which may be /."""
    prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    above = Path(
        sys.executable or "/"
    ).parent.parent  # not resolved: the link in a virtual environment is what makes it one
    if (above / "pyvenv.cfg").exists():
        prefixes.add(str(above))
    own = [f"{prefix}/{name}" for prefix in sorted(prefixes) for name in ("lib", "lib64", "pyvenv.cfg")]
    told = ssl.get_default_verify_paths()
    certificates = [
        os.environ.get("SSL_CERT_FILE"), *os.environ.get("SSL_CERT_DIR", "").split(":"), told.openssl_cafile, told.openssl_capath
    ]  # fmt: skip
    here = str(Path(__file__).parent)
    found = [*own, here, *(p for p in sys.path if p != "/"), *(c for c in certificates if c), *READABLE]
    return [path for path in dict.fromkeys(found) if path.startswith("/") and os.path.exists(path)]  # noqa: PTH110


def own_root(libc: ctypes.CDLL, readable: Iterable[str]) -> None:
    """Where there is no Landlock: a root folder with what is `readable` alone, in namespaces of this process. Nothing of it lies on a disk."""
    if libc.syscall(CREATE, None, 0, 1) >= 1:
        return
    user, group, column = os.geteuid(), os.getegid(), ARCHITECTURES[platform.machine()][1]
    _zero(libc.unshare(NEW_MOUNTS if user == 0 else NEW_MOUNTS | NEW_USER))
    if user != 0:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            Path(f"/proc/self/{name}").write_text(text, encoding="ascii")
    _zero(libc.mount(None, b"/", None, RECURSIVE | PRIVATE, None))
    places = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in readable if _open_to_us(path)}
    try:
        _zero(libc.mount(b"none", ROOM.encode(), b"tmpfs", 0, b"size=1m,mode=755"))
        for path, place in places.items():
            target = Path(ROOM + path)
            (target if Path(f"/proc/self/fd/{place}").is_dir() else target.parent).mkdir(parents=True, exist_ok=True)
            if not target.exists():
                target.touch()
            _zero(libc.mount(f"/proc/self/fd/{place}".encode(), str(target).encode(), None, BIND | RECURSIVE, None))
        os.chdir(ROOM)
        pivot_root = REFUSED["pivot_root"][column]
        assert pivot_root is not None
        _called(libc, pivot_root, b".", b".")
        _zero(libc.umount2(b".", DETACH))
        os.chdir("/")
    finally:
        for place in places.values():
            os.close(place)


def _zero(got: int) -> None:
    if got != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def leave_root(readable: Iterable[str]) -> None:
    """Become a user that nobody else is. Not where that one could not read the packages: a home of root's is closed to all others."""
    if os.geteuid() != 0:
        return
    number = FIRST_USER + os.getpid() % USERS
    os.setgroups([])
    os.setegid(number)
    os.seteuid(number)
    try:
        closed = not all(_open_to_us(path) for path in readable if path.startswith(tuple(_needed())))
    finally:
        os.seteuid(0)
        os.setegid(0)
    if not closed:
        os.setresgid(number, number, number)
        os.setresuid(number, number, number)


def _open_to_us(path: str) -> bool:
    try:
        with os.scandir(path) if Path(path).is_dir() else open(path, "rb"):  # noqa: PTH123
            return True
    except OSError:
        return False


def _needed() -> list[str]:
    """Without which no module is found."""
    above = Path(sys.executable or "/").parent.parent
    searched = [path for path in sys.path if path.startswith("/") and path != "/"]
    return [
        *(f"{prefix}/lib" for prefix in (sys.prefix, sys.base_prefix, str(above))),
        *searched,
        str(Path(__file__).parent),
    ]


def powerless(libc: ctypes.CDLL) -> None:
    """No capability, and no program that gives one."""
    libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0)
    header, nothing = (
        struct.pack("=Ii", CAPABILITY_VERSION, 0),
        bytes(24),
    )  # two sets of effective, permitted, inheritable
    if libc.capset(header, nothing) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def close_files(libc: ctypes.CDLL, readable: Iterable[str]) -> None:
    """Landlock: below `readable` files are read, and nothing else is done to any file; no TCP connection is opened."""
    version = libc.syscall(CREATE, None, 0, 1)
    if version < 1:
        raise OSError(ctypes.get_errno(), "landlock")
    rights = (1 << max(n for v, n in FILE_RIGHTS.items() if v <= version)) - 1
    rules = struct.pack("=QQQ", rights, _from(TCP, version), _from(SCOPES, version))
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _called(libc, CREATE, rules, size, 0)
    try:
        for path in readable:
            _allow(libc, ruleset, path)
        _called(libc, RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)


def _from(known: dict[int, int], version: int) -> int:
    return max((mask for since, mask in known.items() if since <= version), default=0)


def _allow(libc: ctypes.CDLL, ruleset: int, path: str) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what cannot be opened cannot be read either
    try:
        right = READ_FILE | READ_DIR if Path(path).is_dir() else READ_FILE
        _called(libc, ADD, ruleset, 1, struct.pack("=Qi", right, place), 0)
    finally:
        os.close(place)


def _called(libc: ctypes.CDLL, number: int, *args: int | bytes) -> int:
    """The call's result; its error as OSError."""
    got = libc.syscall(
        ctypes.c_long(number), *(ctypes.c_long(a) if isinstance(a, int) else ctypes.c_char_p(a) for a in args)
    )
    if got < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(got)


def close_calls(libc: ctypes.CDLL) -> None:
    """The filter of system calls: for this thread and all that it begins."""
    code = program(platform.machine(), os.getpid())
    held = ctypes.create_string_buffer(code, len(code))
    head = struct.pack("@HP", len(code) // 8, ctypes.addressof(held))
    if libc.prctl(SET_SECCOMP, FILTER, head, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


# <linux/bpf_common.h>: a 32-bit word of the call's record; jumps; the answer.
LOAD, EQUAL, ABOVE, SET, RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
ALLOW, KILL, ERROR = 0x7FFF0000, 0x80000000, 0x00050000


def program(machine: str, pid: int) -> bytes:
    """The filter for an architecture as instructions of 8 bytes. OSError for one whose numbers are not known here."""
    if machine not in ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no numbers of system calls for {machine}")
    arch, column = ARCHITECTURES[machine]
    lines = [_line(LOAD, 4), _line(EQUAL, arch, 1, 0), _line(RETURN, KILL)]  # other numbers would mean other calls
    lines += [_line(LOAD, 0), _line(ABOVE, LAST, 0, 1), _line(RETURN, ERROR | errno.ENOSYS)]
    for number in (pair[column] for pair in REFUSED.values()):
        lines += [] if number is None else _whole(number, errno.EPERM)
    for pair in (CLONE3, OPENAT2):  # their arguments stand behind a pointer; libraries know kernels without them
        lines += _whole(pair[column], errno.ENOSYS)
    lines += _unless(CLONE[column], 0, SET, THREAD)
    lines += _unless((234, 131)[column], 0, EQUAL, pid)  # tgkill: abort() signals its own process
    lines += _unless((302, 261)[column], 0, EQUAL, 0)  # prlimit64 of itself
    lines += _where((257, 56)[column], 2, WRITES)  # openat
    lines += _where(2, 1, WRITES) if column == 0 else []  # open
    lines += _where((44, 206)[column], 3, FASTOPEN)  # sendto
    lines += _where((46, 211)[column], 2, FASTOPEN)  # sendmsg
    lines += _where((307, 269)[column], 3, FASTOPEN)  # sendmmsg
    # socketpair: a stream between two ends of its own; a datagram socket could still be sent anywhere
    lines += [_line(EQUAL, (53, 199)[column], 0, 6), _line(LOAD, 16), _line(EQUAL, socket.AF_UNIX, 0, 3), _line(LOAD, 24),
              _line(SET, socket.SOCK_DGRAM | 4, 1, 0), _line(RETURN, ALLOW), _line(RETURN, ERROR | errno.EPERM)]  # fmt: skip
    return b"".join([*lines, _line(RETURN, ALLOW)])


def _line(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


def _whole(number: int, error: int) -> list[bytes]:
    return [_line(EQUAL, number, 0, 1), _line(RETURN, ERROR | error)]


def _unless(number: int, argument: int, test: int, value: int) -> list[bytes]:
    return [_line(EQUAL, number, 0, 4), _line(LOAD, 16 + 8 * argument), _line(test, value, 0, 1), _line(RETURN, ALLOW),
            _line(RETURN, ERROR | errno.EPERM)]  # fmt: skip


def _where(number: int, argument: int, bits: int) -> list[bytes]:
    return [_line(EQUAL, number, 0, 4), _line(LOAD, 16 + 8 * argument), _line(SET, bits, 0, 1), _line(RETURN, ERROR | errno.EPERM),
            _line(RETURN, ALLOW)]  # fmt: skip


def standing(outside: Sequence[str] = OUTSIDE) -> dict[str, bool]:
    """Which of `WALLS` hold, found out by running against each. `outside`: files that could be read before the walls were put up."""
    return {
        "user": os.getuid() != 0,
        "privileges": _powers() == 0,
        "reads": bool(outside) and not any(map(_open_to_us, outside)),
        "writes": _stopped(lambda: os.close(os.open("/dev/null", os.O_WRONLY))),
        "programs": _stopped(lambda: os.execv("/nonexistent", ["none"])),
        "sockets": all(_stopped(partial(socket.socket, *kind)) for kind in SOCKETS),
        "processes": _stopped(lambda: os.kill(os.getppid(), 0)),
    }


SOCKETS = (
    (socket.AF_INET, socket.SOCK_STREAM),
    (socket.AF_INET6, socket.SOCK_DGRAM),
    (socket.AF_UNIX, socket.SOCK_STREAM),
)


def _powers() -> int:
    """The capabilities that this process has; -1 where that is not told (it is asked of the kernel, not read from /proc)."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, got = (
        ctypes.create_string_buffer(struct.pack("=Ii", CAPABILITY_VERSION, 0)),
        ctypes.create_string_buffer(24),
    )
    if sys.platform != "linux" or libc.capget(header, got) != 0:
        return -1
    effective, permitted, _, high_effective, high_permitted, _ = struct.unpack("=6I", got.raw[:24])
    return int(effective | permitted | high_effective | high_permitted)


def _stopped(act: Callable[[], object]) -> bool:
    """Whether the kernel refused it: EPERM of the filter, EACCES of Landlock. Any other end is no wall."""
    try:
        act()
    except OSError as error:
        return error.errno in (errno.EPERM, errno.EACCES)
    return False
