"""This machine, read so that nothing can hang the reader.

Files are read by helper processes, commands and collectors run as children, each with a
deadline; what does not come back is given up and described, which is evidence: a process that not
even SIGKILL ends sleeps in a driver or in a dead file system.
"""

from __future__ import annotations

import errno
import json
import os
import selectors
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Condition
from typing import Any

import probes.collectors
from knowledge.observation import Status
from knowledge.text import excerpt
from probes import _children, _reader
from probes.hang_memory import HangMemory
from probes.host import Call, CallKind, Reply, cut_between, iso, title

READ_DEADLINE = 5.0  # seconds for one file or listing
OUTPUT_CAP = 32 << 20  # bytes of one output or file that are kept: head and tail
COLLECTORS = Path(probes.collectors.__path__[0])
PACKAGED = frozenset({"nvml", "gpu_samples", "capture"})  # collectors that use installed packages: pynvml, or our own
# What a child's environment keeps of ours; all else, and every secret in it, stays here.
KEPT = (
    "PATH", "HOME", "USER", "LD_LIBRARY_PATH", "TZ", "SLURM_CONF", "KUBECONFIG", "CONTAINER_HOST", "DOCKER_HOST",
    "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS",
)  # fmt: skip
# Where administrators' tools lie, though a service's or a user's PATH may not name it.
FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/nvidia/bin",
           "/run/nvidia/driver/usr/bin", "/opt/mellanox/bin")  # fmt: skip
CLOSED = "the check was broken off"
START_GRACE = 1.0  # seconds that `close` waits for a child that is just being started
_DENIED = frozenset({errno.EACCES, errno.EPERM})
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENXIO, errno.ENODEV})
# Tools that enter the GPU driver: remembered on disk while they run, since a sick driver can take the machine down.
DRIVER_TOOLS = frozenset({"nvidia-smi", "dcgmi", "nvml", "gpu_samples", "rocm-smi", "amd-smi", "xpu-smi"})


class LiveHost:
    """The machine that this runs on. Threads may share it; `close` ends its helpers."""

    def __init__(
        self, name: str = "", *, root: str = "", memory: HangMemory | None = None, environ: Mapping[str, str] | None = None,
        cap: int = OUTPUT_CAP, as_of: int | None = None,
    ) -> None:  # fmt: skip
        """`root` is where the machine's file system is mounted, when this runs in a container (``/host``).

        `name` replaces the machine's own host name. `memory` remembers calls that hung. `environ` is where
        the children's environment is taken from, by default this process's.
        """
        self._root = root.rstrip("/")
        self._memory = memory
        self._cap = cap
        self._env = environment(os.environ if environ is None else environ)
        self._idle: list[_Reader] = []
        self._running: set[int] = set()
        self._begun: set[Call] = set()  # what the memory was told of
        self._closed = False
        self._starting = 0  # children that are being started: known to nobody yet
        self._lock = Condition()
        self._as_of = time.time_ns() if as_of is None else as_of
        self._name = name or excerpt(self._text("/proc/sys/kernel/hostname"), 255)

    @property
    def name(self) -> str:
        """Host name."""
        return self._name

    @property
    def as_of(self) -> int | None:
        """When this object was made, ns since 1970 UTC."""
        return self._as_of

    def read(self, path: str) -> Reply:
        """The file, at most `cap` bytes of it. A character device such as /dev/kmsg is read as far as it goes now."""
        started = time.time_ns()
        header, data = self._ask({"op": "read", "path": self._root + path, "cap": self._cap}, READ_DEADLINE)
        reply = Reply(CallKind.FILE, (path,), started=started)
        if not header.get("ok"):
            status, why = fault(header)
            return replace(reply, status=status, detail=f"{title(*reply.key)}: {why}")
        if not header["lost"]:
            return replace(reply, data=data)
        data, said = cut_between(data[: header["head"]], data[header["head"] :], header["lost"])
        return replace(reply, data=data, cut=True, detail=said)

    def files(self, pattern: str) -> list[str]:
        """Paths that match, sorted; none when the listing takes longer than `READ_DEADLINE`."""
        header, data = self._ask({"op": "glob", "path": self._root + pattern}, READ_DEADLINE)
        return [p.removeprefix(self._root) for p in os.fsdecode(data).splitlines()] if header.get("ok") else []

    def run(self, argv: Sequence[str], *, deadline: float) -> Reply:
        """The output of a command."""
        blank = Reply(CallKind.COMMAND, tuple(argv), started=time.time_ns())
        program = shutil.which(argv[0], path=self._env["PATH"])
        if program is None:
            return replace(blank, status=Status.UNSUPPORTED, detail=f"{excerpt(argv[0], 80)} is not installed")
        if self._root and argv[0] == "journalctl":  # the machine's journal lies below its root
            argv = (argv[0], f"--root={self._root}", *argv[1:])
        return self._child(blank, program, argv, deadline)

    def snapshot(self, name: str, *args: str, deadline: float, on_start: Callable[[int], None] | None = None) -> Reply:
        """The output of a collector. ValueError when there is none of that name.

        `on_start` is told the collector's process id: one that looks over a window ends early, and well, on SIGTERM.
        """
        path = COLLECTORS / f"{name}.py"
        if not name.isidentifier() or not path.is_file():
            raise ValueError(f"there is no collector {name!r}")
        blank = Reply(CallKind.SNAPSHOT, (name, *args), started=time.time_ns())
        # It ends by itself with what it has, a little ahead of being ended.
        own = max(deadline - 0.5, deadline * 0.7)
        bare = [] if name in PACKAGED else ["-S"]  # without installed packages a start takes three quarters of the time
        argv = [sys.executable, "-I", *bare, "-B", str(path), "--deadline", f"{own:.3f}"]
        rooted = ["--root", self._root] if self._root else []
        return self._child(blank, sys.executable, [*argv, *rooted, *args], deadline, on_start)

    def close(self) -> None:
        """End the helpers that are idle, and the children that an interrupted check has left."""
        with self._lock:
            self._closed = True
            self._lock.wait_for(lambda: not self._starting, START_GRACE)
            readers, self._idle = self._idle, []
            running, begun = list(self._running), list(self._begun)
        for pid in running:
            _children.kill_group(pid)
        for call in begun:
            if self._memory:
                self._memory.broken_off(call)
        for reader in readers:
            reader.close()

    def __enter__(self) -> LiveHost:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- children -------------------------------------------------------------------------

    def _child(
        self,
        blank: Reply,
        program: str,
        argv: Sequence[str],
        deadline: float,
        tell: Callable[[int], None] | None = None,
    ) -> Reply:
        if self._closed:
            return replace(blank, status=Status.FAILED, detail=CLOSED)
        memory = self._memory if blank.call[0].rsplit("/", 1)[-1] in DRIVER_TOOLS else None
        if memory and (refusal := memory.refusal(blank.key)):
            status = Status.TIMEOUT if refusal.hangs else Status.FAILED
            return replace(blank, status=status, detail=f"{blank.title}: {refusal.why}")
        at = iso(blank.started) or ""
        if memory:
            with self._lock:
                self._begun.add(blank.key)
            memory.begin(blank.key, at)
        stuck = None
        pids: list[int] = []

        def on_start(pid: int) -> None:
            pids.append(pid)
            with self._lock:
                self._running.add(pid)
                self._started()
                closed = self._closed
            if closed:  # the one who asks has gone
                _children.kill_group(pid)
            elif tell is not None:
                tell(pid)

        with self._lock:
            begins = not self._closed
            self._starting += begins
        try:
            if not begins:
                return replace(blank, status=Status.FAILED, detail=CLOSED)
            outcome = _children.run(program, argv, deadline=deadline, cap=self._cap, env=self._env, on_start=on_start)
            stuck = outcome.stuck
        except (OSError, ValueError) as error:
            status = Status.DENIED if getattr(error, "errno", 0) in _DENIED else Status.FAILED
            why = getattr(error, "strerror", None) or error
            return replace(blank, status=status, detail=f"{blank.title}: cannot be started: {why}")
        finally:
            with self._lock:
                if begins and not pids:
                    self._started()
                self._running.difference_update(pids)
            if memory:
                memory.end(blank.key, at, stuck)
                with self._lock:
                    self._begun.discard(blank.key)  # not before: `close` ends what is still in it
        return told(blank, outcome, deadline)

    def _started(self) -> None:
        self._starting -= 1
        self._lock.notify_all()

    # --- files ----------------------------------------------------------------------------

    def _text(self, path: str) -> str:
        reply = self.read(path)
        return reply.text.strip() if reply.status is Status.OK else ""

    def _ask(self, request: Mapping[str, Any], deadline: float) -> tuple[dict[str, Any], bytes]:
        with self._lock:
            if self._closed:
                return {"ok": False, "errno": None, "why": CLOSED}, b""
            reader = self._idle.pop() if self._idle else None
        try:
            reader = reader or _Reader(self._env)
            answer = reader.ask(request, deadline)
        except (OSError, ValueError) as error:
            if reader is not None:
                reader.give_up()
            return {"ok": False, "errno": None, "why": f"the reading process failed: {error}"}, b""
        if answer is None:
            where = reader.give_up()
            return {
                "ok": False,
                "errno": errno.ETIMEDOUT,
                "why": f"no answer in {deadline:g} s{where and f': {where}'}",
            }, b""
        if not self._put_back(reader):
            reader.close()
        return answer

    def _put_back(self, reader: _Reader) -> bool:
        """Keep a helper for the next question; False when nobody will ask any more."""
        with self._lock:
            if not self._closed:
                self._idle.append(reader)
            return not self._closed


def boot_id() -> str:
    """What tells one boot of this machine from another; empty where the kernel does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def environment(ours: Mapping[str, str]) -> dict[str, str]:
    """What a child gets of our environment: where programs lie, in English, and no secret."""
    env = {name: ours[name] for name in KEPT if name in ours}
    folders = [*(f for f in env.get("PATH", "").split(os.pathsep) if f), *FOLDERS]
    return env | {"PATH": os.pathsep.join(dict.fromkeys(folders)), "LC_ALL": "C.UTF-8", "TERM": "dumb"}


def fault(header: Mapping[str, Any]) -> tuple[Status, str]:
    """What the error number and the words of a reader come to."""
    number, why = header.get("errno"), str(header.get("why"))
    if number in _DENIED:
        return Status.DENIED, f"{why}: run as root to see it"
    if number in _ABSENT:
        return Status.UNSUPPORTED, "there is no such file"
    return (Status.TIMEOUT if number == errno.ETIMEDOUT else Status.FAILED), why


def told(blank: Reply, outcome: _children.Outcome, deadline: float) -> Reply:
    """`blank`, answered by a child that ended so, given `deadline` seconds."""
    data, details = outcome.head + outcome.tail, []
    if outcome.timed_out:
        details += [f"no end after {deadline:.3g} s", *([outcome.busy] if outcome.busy else [])]
    if outcome.stuck:
        details.append(f"process {outcome.stuck.pid} cannot be killed ({outcome.stuck.where})")
    if outcome.lost:
        data, said = cut_between(outcome.head, outcome.tail, outcome.lost)
        details.append(said)
    status = Status.TIMEOUT if outcome.timed_out else Status.OK
    if not outcome.timed_out and outcome.exit_code is not None and outcome.exit_code < 0:
        status = Status.FAILED
        details.append(f"was ended by signal {-outcome.exit_code}")
    return replace(
        blank, status=status, data=data, exit_code=outcome.exit_code, stderr=outcome.errors, cut=bool(outcome.lost),
        detail="; ".join(details),
    )  # fmt: skip


class _Reader:
    """One helper process that reads files."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", _reader.__file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=dict(env), start_new_session=True,
        )  # fmt: skip
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._in, self._out = self._child.stdin, self._child.stdout
        os.set_blocking(self._out.fileno(), False)

    def ask(self, request: Mapping[str, Any], deadline: float) -> tuple[dict[str, Any], bytes] | None:
        """Header and bytes; None at the deadline. OSError or ValueError when the helper broke."""
        until = time.monotonic() + deadline
        self._in.write(json.dumps(request).encode() + b"\n")
        self._in.flush()
        buffer = bytearray()
        header: dict[str, Any] | None = None
        with selectors.DefaultSelector() as selector:
            selector.register(self._out, selectors.EVENT_READ)
            while True:
                if header is None and (end := buffer.find(b"\n")) >= 0:
                    header = json.loads(buffer[:end])
                    del buffer[: end + 1]
                if header is not None and len(buffer) >= header["size"]:
                    return header, bytes(buffer)
                if not selector.select(max(until - time.monotonic(), 0.0)):
                    return None
                part = os.read(self._out.fileno(), 1 << 18)
                if not part:
                    raise OSError(f"it ended with {self._child.wait()}")
                buffer += part

    def give_up(self) -> str:
        """Kill it, and do not wait for it; where it hangs, when it cannot be killed."""
        self._child.kill()
        where = ""
        try:
            self._child.wait(_children.KILL_GRACE)
        except subprocess.TimeoutExpired:
            where = f"process {self._child.pid} cannot be killed ({_children.where(self._child.pid)})"
            self._child.returncode = -9  # Popen would wait for it when it is collected
        for pipe in (self._in, self._out):
            with suppress(OSError):
                pipe.close()
        return where

    def close(self) -> None:
        """Let it end: its input ends."""
        with suppress(OSError):
            self._in.close()
        try:
            self._child.wait(1.0)
        except subprocess.TimeoutExpired:
            self.give_up()
        with suppress(OSError):
            self._out.close()
