"""``gpudiag`` for tests without its start-up: a process that has everything loaded, and forks once for each command line.

A command runs in a process of its own, with its own streams, folder, environment and exit, as on any machine; only what
an interpreter does before ``main`` is saved (0.8 CPU seconds). Where that is the subject (start-up, PYTHON* or locale
variables, closed streams), tests take a fresh interpreter: `conftest.gpudiag_process`.

The server has one thread and runs nothing itself after it has loaded. A client connects for each command, sends one JSON
object ``{"argv", "cwd", "env", "program", "session"}`` with the three streams as descriptors, and gets the process
id, then the exit status. All workers of a test run share the server, which ends with the run; what still runs then is killed.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import json
import os
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import traceback
import types
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NoReturn, Self

ROOT = Path(__file__).parent.parent
_LOG = "[  100.000000] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=python, GPU has fallen off the bus.\n"
_STATUS = struct.Struct("<i")


class Command:
    """A command that runs: what tests use of `subprocess.Popen`, but no child of theirs."""

    def __init__(self, line: socket.socket, what: Sequence[str], pipes: Sequence[IO[Any] | None] = (None,) * 3) -> None:
        self._line, self._what = line, what
        self._stdin, self._stdout, self._stderr = pipes
        self.pid = _number(line)
        self._status: int | None = None

    @property
    def stdin(self) -> IO[Any]:
        """Its end of the pipe; so are `stdout` and `stderr`."""
        assert self._stdin is not None
        return self._stdin

    @property
    def stdout(self) -> IO[Any]:
        assert self._stdout is not None
        return self._stdout

    @property
    def stderr(self) -> IO[Any]:
        assert self._stderr is not None
        return self._stderr

    @property
    def returncode(self) -> int | None:
        """Its exit status (negative: the signal), once it was waited for."""
        return self._status

    def poll(self) -> int | None:
        """Its exit status; None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self._status

    def wait(self, timeout: float = 120) -> int:
        """Its exit status. TimeoutExpired when it still runs after so many seconds."""
        if self._status is None:
            if not select.select([self._line], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(["gpudiag", *self._what], timeout)
            self._status = _number(self._line)
            self._line.close()
        return self._status

    def communicate(self, given: Any = None, timeout: float = 120) -> tuple[Any, Any]:
        """All it has said yet to be read, once its input (and no more) was given and it has ended."""
        until = time.monotonic() + timeout
        said: dict[int, Any] = {}

        def read(number: int, stream: IO[Any]) -> None:
            said[number] = stream.read()

        pipes = [(n, p) for n, p in enumerate((self._stdout, self._stderr)) if p is not None]
        readers = [threading.Thread(target=read, args=pipe, daemon=True) for pipe in pipes]
        for reader in readers:
            reader.start()
        if self._stdin is not None:
            with suppress(BrokenPipeError):  # it has ended without reading all of it
                if given:
                    self._stdin.write(given)
                self._stdin.close()
        for reader in readers:
            reader.join(max(0.0, until - time.monotonic()))
            if reader.is_alive():
                raise subprocess.TimeoutExpired(["gpudiag", *self._what], timeout)
        self.wait(max(0.0, until - time.monotonic()))
        return said.get(0), said.get(1)

    def send_signal(self, number: int) -> None:
        """To it, while it runs."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None) -> None:
        for pipe in (self._stdin, self._stdout, self._stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        self.wait()


class CommandServer:
    """The server whose socket is in `folder`, begun by whoever needs it first; `run` answers as `subprocess.run` does."""

    def __init__(self, folder: Path, environment: Mapping[str, str], owner: int) -> None:
        """`owner`: the process with which the server ends."""
        self._path = str(folder / "socket")
        with (folder / "begun").open("a+") as begun:
            fcntl.flock(begun, fcntl.LOCK_EX)
            begun.seek(0)
            if not begun.read():
                argv = [sys.executable, "-m", "tests.command_server", self._path, str(owner)]
                begun.write(str(subprocess.Popen(argv, env=dict(environment), cwd=ROOT, stdin=subprocess.DEVNULL).pid))
            begun.seek(0)
            self._server = os.pidfd_open(int(begun.read()))

    def run(
        self, words: Sequence[str], stdin: bytes, cwd: Path, env: Mapping[str, str], timeout: float
    ) -> tuple[int, bytes, bytes]:
        """Exit status (negative: the signal), standard output and error. TimeoutExpired after `timeout` seconds."""
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            given.write(stdin)
            given.seek(0)
            command = self.begin(words, [f.fileno() for f in (given, out, err)], env=env, cwd=cwd)
            try:
                code = command.wait(timeout)
            except subprocess.TimeoutExpired:
                command.kill()
                raise
            out.seek(0)
            err.seek(0)
            return code, out.read(), err.read()

    def start(self, words: Sequence[str], *, env: Mapping[str, str], text: bool = True, **more: Any) -> Command:
        """``gpudiag WORDS`` with a pipe for each stream. With a `program`, ``python -c PROGRAM WORDS`` in its place."""
        (stdin, given), (said, stdout), (told, stderr) = os.pipe(), os.pipe(), os.pipe()
        try:
            kind, encoding = ("", "utf-8") if text else ("b", None)
            ends = ((given, "w"), (said, "r"), (told, "r"))
            pipes = [os.fdopen(fd, mode + kind, encoding=encoding) for fd, mode in ends]
            return self.begin(words, [stdin, stdout, stderr], pipes, env=env, **more)
        finally:
            for fd in (stdin, stdout, stderr):
                os.close(fd)

    def begin(
        self, words: Sequence[str], streams: Sequence[int], pipes: Sequence[IO[Any] | None] = (None,) * 3, *,
        env: Mapping[str, str], cwd: Path = ROOT, program: str = "", session: bool = False,
    ) -> Command:  # fmt: skip
        """With these descriptors as its streams. `session`: of its own, with the first as its terminal if it is one."""
        wish = {"argv": [*words], "cwd": str(cwd), "env": {**env}, "program": program, "session": session}
        request = json.dumps(wish).encode()
        line = self._connected()
        socket.send_fds(line, [struct.pack("<i", len(request))], list(streams))
        line.sendall(request)
        return Command(line, words, pipes)

    def _connected(self) -> socket.socket:
        """A connection; the first waits until the server has loaded."""
        until = time.monotonic() + 120
        while True:
            line = socket.socket(socket.AF_UNIX)
            try:
                line.connect(self._path)
            except OSError:
                line.close()
                if select.select([self._server], [], [], 0)[0] or time.monotonic() > until:
                    raise RuntimeError("the server of commands did not start: its error stands above") from None
                time.sleep(0.02)
            else:
                return line


def _number(line: socket.socket) -> int:
    data = line.recv(_STATUS.size, socket.MSG_WAITALL)
    if len(data) != _STATUS.size:
        raise RuntimeError("the server of commands hung up")
    number: int = _STATUS.unpack(data)[0]
    return number


def _load() -> None:
    """Every module, and what a command may need of each, by running some of each kind; what they print goes nowhere."""
    from assistant.cli import main

    for package in (
        "knowledge",
        "probes",
        "rules",
        "assistant",
    ):  # tui: the terminal app begins in a process of its own
        for file in sorted((ROOT / package).rglob("*.py")):
            if file.stem != "__main__":
                import_module(".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
    kept = sys.stdout, sys.stderr
    with tempfile.TemporaryDirectory() as folder, Path(os.devnull).open("w") as nowhere:
        log = Path(folder, "kernel.log")
        log.write_text(_LOG)
        sys.stdout = sys.stderr = nowhere
        homes = ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME")
        os.environ |= dict.fromkeys(homes, folder) | {"GPUDIAG_HISTORY_URL": f"sqlite:///{folder}/history.db"}
        trace = str(Path(__file__).parent / "traces" / "cpu_train.json.gz")
        bundle = str(ROOT / "assistant" / "demos" / "off-the-bus" / "bundle")
        for words in (
            ["check", "--log", str(log)],
            ["check", "--log", str(log), "--format", "json"],
            ["ask", "can I keep using it?", "--log", str(log)],
            ["ask", "why is my training slow on GPU 3 since 14:05, at 40 of 80 GiB?", "--bundle", bundle],
            ["ask", "我的训练为什么这么慢？", "--bundle", bundle, "--lang", "zh"],
            ["explain", "xid", "79"],
            ["check", "--bundle", bundle, "--format", "html"],
            ["incident", "open", "--bundle", bundle],
            ["demo", "rail-down"],
            ["rules", "list"],
            ["trace", "summary", trace],
            ["trace", "report", trace, "-o", f"{folder}/report.html"],
        ):
            main(words)
        sys.stdout, sys.stderr = kept


def _serve(path: str, owner: int) -> None:
    """Take requests until the process `owner`, a pidfd, ends."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(16)
    watched = selectors.DefaultSelector()
    watched.register(listener, selectors.EVENT_READ)
    watched.register(owner, selectors.EVENT_READ)
    running: dict[int, tuple[int, socket.socket]] = {}
    while True:
        for key, _ in watched.select():
            if key.fd == owner:
                for pid, _ in running.values():
                    os.kill(pid, signal.SIGKILL)
                return
            if key.fileobj is listener:
                line, _address = listener.accept()
                size, fds, _, _ = socket.recv_fds(line, 4, 3)
                request = json.loads(line.recv(struct.unpack("<i", size)[0], socket.MSG_WAITALL))
                pid = os.fork()
                if not pid:
                    for fd in (*running, owner, listener.fileno(), line.fileno()):
                        os.close(fd)
                    for _, other in running.values():
                        other.close()
                    watched.close()
                    _command(request, fds)
                for fd in fds:
                    os.close(fd)
                line.sendall(_STATUS.pack(pid))
                watched.register(pidfd := os.pidfd_open(pid), selectors.EVENT_READ)
                running[pidfd] = pid, line
            else:
                pid, line = running.pop(key.fd)
                _, status = os.waitpid(pid, 0)
                with suppress(OSError):  # a client that gave up is gone
                    line.sendall(_STATUS.pack(os.waitstatus_to_exitcode(status)))
                line.close()
                watched.unregister(key.fd)
                os.close(key.fd)


def _command(request: dict[str, Any], fds: Sequence[int]) -> NoReturn:
    """Become ``gpudiag WORDS``, or ``python -c PROGRAM WORDS``, as a fresh interpreter would run it."""
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    if request["session"]:
        os.setsid()
        if os.isatty(0):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    os.chdir(request["cwd"])
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1)  # noqa: SIM115
    if request["program"]:
        sys.argv = ["-c", *request["argv"]]
        code = _run(request["program"])
    else:
        sys.argv = ["gpudiag", *request["argv"]]
        from assistant.cli import main

        code = main(request["argv"])
    # As the interpreter ends, but for taking its modules apart: that costs more than the command.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # its reader is gone: told or not, by now
            stream.flush()
    os._exit(code)


def _run(program: str) -> int:
    """The program as the main module; its exit status."""
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        exec(compile(program, "<string>", "exec"), main.__dict__)
    except SystemExit as leaving:
        if leaving.code is None or isinstance(leaving.code, int):
            return leaving.code or 0
        print(leaving.code, file=sys.stderr)
        return 1
    except BaseException:  # noqa: BLE001  # told, as the interpreter does
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    ending = os.pidfd_open(int(sys.argv[2]))
    _load()
    gc.collect()
    gc.freeze()  # a child that looks for garbage would copy all that is loaded
    _serve(sys.argv[1], ending)
