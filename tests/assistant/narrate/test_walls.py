"""A litellm that is written to break out, in the real child: what the kernel keeps it from, and that what does not stand is told."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import shutil
import socket
import struct
import subprocess
import sys
import venv
from contextlib import closing
from pathlib import Path

import pytest

from assistant.narrate import walls
from assistant.narrate.completion import Model
from assistant.narrate.hosts import place
from assistant.narrate.pages import _WALLS
from assistant.narrate.worker import Worker
from tests.components import cannot
from tests.llm_lab import STAND_IN, loaded, serving

# Each returns only when it succeeded. Without libraries of Python in between where there is a way without.
HOSTILE = """
import ctypes, os, socket, subprocess
libc = ctypes.CDLL(None, use_errno=True)
def whether(good):
    if not good: raise OSError(ctypes.get_errno(), "refused")
def sent(kind, address, family=socket.AF_INET):
    number = libc.socket(family, kind, 0)
    whether(number >= 0)
    whether(libc.connect(number, address, len(address)) == 0)
    whether(libc.send(number, b"x", 1, 0) == 1)
def internet(port):
    return (2).to_bytes(2, "little") + port.to_bytes(2, "big") + bytes([127, 0, 0, 1]) + bytes(8)
ACTS = {
    "read a key": lambda: open(HOME + "/.ssh/id_rsa").read(),
    "read the passwords": lambda: open("/etc/shadow").read(),
    "write to a start-up file": lambda: open(HOME + "/.bashrc", "a").write("x"),
    "open a key to all": lambda: whether(libc.chmod((HOME + "/.ssh/id_rsa").encode(), 0o777) == 0),
    "make a file": lambda: os.close(os.open(HOME + "/made", os.O_CREAT | os.O_RDWR)),
    "run a shell": lambda: whether(libc.system(("touch " + HOME + "/ran").encode()) == 0),
    "run a program": lambda: subprocess.run(["true"], check=True),
    "become a program": lambda: whether(libc.fork() >= 0),
    "connect elsewhere": lambda: sent(socket.SOCK_STREAM, internet(OTHER)),
    "connect by name": lambda: socket.create_connection(("localhost", OTHER)),
    "send a datagram": lambda: sent(socket.SOCK_DGRAM, internet(OTHER)),
    "speak to a service here": lambda: sent(socket.SOCK_STREAM, (1).to_bytes(2, "little") + (HOME + "/s").encode(), socket.AF_UNIX),
    "listen": lambda: whether(libc.bind(libc.socket(2, 1, 0), internet(0), 16) == 0),
    "signal its parent": lambda: os.kill(os.getppid(), 0),
    "read its parent's memory": lambda: open(f"/proc/{os.getppid()}/mem", "rb").seek(1),
    "read its parent's environment": lambda: open(f"/proc/{os.getppid()}/environ", "rb").read(),
    "trace its parent": lambda: whether(libc.ptrace(0x4206, os.getppid(), 0, 0) == 0),
    "hide behind a ring": lambda: whether(libc.syscall(425, 8, bytes(120)) >= 0),
    "become root": lambda: (whether(os.getuid() != 0), os.setuid(0)),
}
def done():
    found = []
    for name, act in ACTS.items():
        try: act()
        except BaseException: continue
        found.append(name)
    return found
DONE = done()
"""
ACTS = HOSTILE.count(": lambda: ")


@pytest.fixture
def hostile(tmp_path: Path) -> str:
    """An interpreter whose litellm acts while it is loaded, and whose .pth file acts before that."""
    venv.create(tmp_path / "env", symlinks=True)
    packages = next((tmp_path / "env").glob("lib/python3*/site-packages"))
    shutil.copy(STAND_IN / "httpx.py", packages)
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh/id_rsa").write_text("KEY")
    (home / ".bashrc").write_text("")
    head = f"HOME = {str(home)!r}\nOTHER = {{other}}\n"
    (packages / "hostile.txt").write_text(head + HOSTILE)
    (packages / "litellm-1.106.2.dist-info").mkdir()
    (packages / "litellm-1.106.2.dist-info/METADATA").write_text(
        "Metadata-Version: 2.1\nName: litellm\nVersion: 1.106.2\n"
    )
    return str(tmp_path / "env/bin/python")


# Makes of this kernel one without Landlock: its calls do not exist there. NAMESPACES is a number: unshare, where that is refused as well.
OLD = """
import ctypes, os, struct, sys
code = b"".join(struct.pack("=HBBI", *line) for line in
    [(0x20, 0, 0, 0), (0x15, 0, 1, NAMESPACES), (0x06, 0, 0, 0x50000 | 1),
     (0x35, 0, 2, 444), (0x25, 1, 0, 446), (0x06, 0, 0, 0x50000 | 38), (0x06, 0, 0, 0x7FFF0000)])
held = ctypes.create_string_buffer(code, len(code))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, struct.pack("@HP", len(code) // 8, ctypes.addressof(held)), 0, 0) == 0
"""
OLDER = f"""#!{sys.executable} -I
{OLD.replace("NAMESPACES", "9999")}
beside = os.path.join(os.path.dirname(sys.argv[0]), "python")
os.execv(beside, [beside, *sys.argv[1:]])
"""


@pytest.mark.process
@pytest.mark.parametrize("kernel", ["this", "before 5.13"])
def test_a_hostile_package_does_nothing(kernel: str, hostile: str, tmp_path: Path) -> None:
    """While it is loaded, at the interpreter's start, and while it is asked: none of the acts, and the one server is still reached."""
    packages = next((tmp_path / "env").glob("lib/python3*/site-packages"))
    if kernel != "this":
        older = Path(hostile).with_name("older")
        older.write_text(OLDER)
        older.chmod(0o755)
        hostile = str(older)
    with serving() as server, closing(socket.socket(socket.AF_UNIX)) as service, closing(socket.socket()) as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        service.bind(str(tmp_path / "home/s"))
        service.listen()
        code = (packages / "hostile.txt").read_text().replace("{other}", str(other.getsockname()[1]))
        (packages / "hostile.txt").unlink()
        (packages / "hostile.py").write_text(code)
        (packages / "start.pth").write_text("import hostile\n")
        stand_in = (STAND_IN / "litellm.py").read_text()
        (packages / "litellm.py").write_text(
            f"{stand_in}\nimport hostile\nOLD = completion\ndef completion(**more):\n"
            "    answer = OLD(**more)\n    answer.choices[0].message.content = json.dumps({'done': hostile.DONE + hostile.done()})\n"
            "    return answer\n"
        )
        worker = loaded(Worker(Model(hostile, place(server.base, ""), "openai/m", "sk-x"), 60.0))
        try:
            if not (worker.walls or {}).get("programs"):
                cannot("seccomp", "this kernel has no system call filters")
            if kernel != "this" and not (worker.walls or {}).get("reads"):
                cannot("namespaces", "nobody may have a root of their own here")
            assert json.loads(worker.complete([{"role": "user", "content": "?"}], 50).text) == {"done": []}
            assert len(server.requests) == 1
        finally:
            worker.close()
    assert ACTS >= 11
    home = tmp_path / "home"
    assert (home / ".bashrc").read_text() == ""
    assert {p.name for p in home.iterdir()} == {".ssh", ".bashrc", "s"}


@pytest.mark.process
def test_the_same_acts_succeed_without_the_walls(tmp_path: Path) -> None:
    """Else the test above could not fail."""
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/id_rsa").write_text("KEY")
    with closing(socket.socket()) as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        code = f"HOME, OTHER = {str(tmp_path)!r}, {other.getsockname()[1]}\n" + HOSTILE.replace(
            "libc.fork() >= 0", "True"
        )
        done = subprocess.run(
            [sys.executable, "-c", code + "\nprint(len(DONE), sep='')"], capture_output=True, text=True, check=True
        )
    assert int(done.stdout) >= 11


@pytest.mark.process
def test_a_wall_that_is_not_there_is_not_claimed() -> None:
    """The acts that `standing` tries succeed in a process without walls, so it claims none of them."""
    code = f"import sys; sys.path.insert(0, {str(Path(walls.__file__).parent)!r}); import walls, json; print(json.dumps(walls.standing()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    stand = json.loads(done.stdout)
    assert list(stand) == list(walls.WALLS) == list(_WALLS)
    assert not any(stand[name] for name in ("reads", "writes", "programs", "sockets", "processes"))
    assert stand["user"] is (os.getuid() != 0)


@pytest.mark.process
def test_without_landlock_and_namespaces_reading_is_not_claimed() -> None:
    """As in many containers on an old kernel. The other walls stand."""
    unshare = walls.REFUSED["unshare"][walls.ARCHITECTURES[platform.machine()][1]]
    code = OLD.replace("NAMESPACES", str(unshare))
    code += f"sys.path.insert(0, {str(Path(walls.__file__).parent)!r})\nimport walls, json\nprint(json.dumps(walls.put_up()))"
    done = subprocess.run([sys.executable, "-IB", "-c", code], capture_output=True, text=True, check=True)
    stand = json.loads(done.stdout)
    assert {name for name, holds in stand.items() if not holds} - {"user"} == {"reads"}


def _run(program: bytes, machine: int, number: int, *arguments: int) -> int:
    """The filter's answer to a call, as the kernel would come to it."""
    record = struct.pack("=iIQ6Q", number, machine, 0, *arguments, *[0] * (6 - len(arguments)))
    at, held = 0, 0
    while True:
        code, yes, no, value = struct.unpack_from("=HBBI", program, 8 * at)
        at += 1
        if code == walls.RETURN:
            return int(value)
        if code == walls.LOAD:
            held = struct.unpack_from("=I", record, value)[0]
        else:
            true = {walls.EQUAL: held == value, walls.ABOVE: held > value, walls.SET: bool(held & value)}[code]
            at += yes if true else no


@pytest.mark.parametrize("machine", list(walls.ARCHITECTURES))
def test_the_filter_of_each_architecture(machine: str) -> None:
    """Every call of the list is refused and no other; unknown architectures and calls younger than the list do not get by."""
    number, column = walls.ARCHITECTURES[machine]
    program = walls.program(machine, 4242)
    assert len(program) // 8 < 4096  # what the kernel takes
    refused = {pair[column] for pair in walls.REFUSED.values()} - {None}
    conditional = {p[column] for p in (walls.CLONE, walls.CLONE3, walls.OPENAT2)}
    for call in range(600):
        got = _run(program, number, call, 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF)
        if call in refused or call > walls.LAST:
            assert got & 0xFFFF0000 == walls.ERROR, call
        elif call not in conditional and got != walls.ALLOW:
            assert (
                _run(program, number, call) == walls.ALLOW
                or _run(program, number, call, 4242) == walls.ALLOW
                or (_run(program, number, call, socket.AF_UNIX, socket.SOCK_STREAM) == walls.ALLOW)
            ), call
    assert _run(program, number, walls.CLONE[column], walls.THREAD) == walls.ALLOW
    assert _run(program, number, walls.CLONE[column], 17) != walls.ALLOW
    assert _run(program, 0x40000003, 11) == walls.KILL  # the numbers of 32 bits
    with pytest.raises(OSError, match="s390x"):
        walls.program("s390x", 1)


def test_a_ruleset_that_the_kernel_does_not_know_is_an_error() -> None:
    """Not a wall that is silently missing."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    with pytest.raises(OSError):  # noqa: PT011 - EINVAL with Landlock, ENOSYS or EOPNOTSUPP without
        walls._called(libc, walls.CREATE, bytes(7), 7, 0)
