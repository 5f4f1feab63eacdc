"""One connection: a child of ours (ssh, srun, kubectl) whose standard input and output lead to the far side.

A thread of its own reads and writes; whoever asks waits for an answer, for a bounded time. The far
side is not trusted: one that says nothing, closes, floods, prints noise before it begins, or answers
what nobody asked ends the line, with a reason, and holds up nobody.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import struct
import subprocess
import time
import zlib
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from knowledge.record import dataclass
from knowledge.text import excerpt
from probes._children import Kept, kill_group

NOISE = 64 << 10  # bytes that may be printed before the far side begins: messages of the day, a chatty .bashrc
HEADER = 64 << 10  # most bytes of one header
BODY = 128 << 10  # most bytes of one body, before and after zlib: twice `far.CHUNK`
SLACK = 2 << 20  # bytes that an answer may be longer than was asked for: `_reader` keeps a tail with a margin
ERRORS = 16 << 10  # bytes of what the child says of its own that are kept
LEAVE = 1.0  # seconds that the child has for ending by itself, once its input is closed
_READ = 1 << 18
_SENSELESS = "what it says makes no sense"


class LineBrokenError(Exception):
    """The line has ended; the words say why."""


class LateError(Exception):
    """No answer in time."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the far side said to one question: how it ended, output and standard error."""

    end: Mapping[str, Any]
    out: bytes
    errors: bytes


@dataclass(slots=True)
class _Question:
    room: int  # bytes that the answer may still have
    touched: float  # when something of the answer came last
    out: list[bytes] = field(default_factory=list)
    errors: list[bytes] = field(default_factory=list)
    size: int = 0
    end: dict[str, Any] | None = None
    done: Event = field(default_factory=Event)


class Line:
    """The connection. Threads may share it; `close` ends it and the child with it."""

    def __init__(
        self, argv: Sequence[str], payload: bytes, mark: bytes, *, limit: float, env: Mapping[str, str] | None = None
    ) -> None:
        """Start the child, hand it `payload` and wait for nothing. OSError when it cannot be started.

        The far side begins with `mark` on a line of its own. After `limit` seconds the line ends, whatever it is at.
        """
        self._child = subprocess.Popen(
            list(argv), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=None if env is None else dict(env),
            start_new_session=True, close_fds=True,
        )  # fmt: skip
        self._program = Path(argv[0]).name
        self._until = time.monotonic() + limit
        self._limit = limit
        self._mark = mark + b"\n"
        self._begun = False
        self._lock = Lock()
        self._outgoing: deque[bytes] = deque([payload])
        self._waiting: dict[int, _Question] = {}
        self._last = 0
        self._buffer = bytearray()
        self._noise = b""
        self._errors = Kept(ERRORS)
        self._hello: dict[str, Any] | None = None
        self._greeted = Event()
        self._broken = ""
        self._closing = False
        self._closed_at = 0.0
        self.sent = self.received = 0  # bytes
        self.exit_code: int | None = None  # of the child, once the line has ended
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        self._thread = Thread(target=self._run, name="gpudiag-line", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            kill_group(self._child.pid)
            raise OSError(str(error)) from None

    @property
    def broken(self) -> str:
        """Why the line has ended; empty while it lives."""
        return self._broken

    @property
    def closed(self) -> bool:
        """True when it was ended from this side."""
        return self._closing

    @property
    def errors(self) -> str:
        """What the child, and what it started, said on standard error."""
        return (self._errors.head + self._errors.tail).decode("utf-8", "replace")

    @property
    def noise(self) -> str:
        """What was printed before the far side began."""
        return self._noise.decode("utf-8", "replace")

    def hello(self, timeout: float) -> dict[str, Any]:
        """What the far side says of itself. LineBrokenError when it never began, LateError when it takes too long."""
        if not self._greeted.wait(timeout):
            raise LateError(f"no answer in {timeout:g} s")
        if self._hello is None:
            raise LineBrokenError(self._broken)
        return self._hello

    def tell(self, header: Mapping[str, Any], body: bytes = b"") -> None:
        """Say something that has no answer."""
        with self._lock:
            if not self._broken:
                self._send(header, body)

    def ask(self, header: Mapping[str, Any], *, room: int, patience: float) -> Answer:
        """The answer, of at most about `room` bytes.

        LateError when nothing of it came for `patience` seconds; LineBrokenError when the line ends before it is whole.
        """
        with self._lock:
            if self._broken:
                raise LineBrokenError(self._broken)
            self._last += 1
            number, question = self._last, _Question(room + SLACK, time.monotonic())
            self._waiting[number] = question
            self._send({**header, "id": number}, b"")
        while not question.done.wait(max(question.touched + patience - time.monotonic(), 0.001)):
            if time.monotonic() >= question.touched + patience:
                with self._lock:
                    self._waiting.pop(number, None)
                    self._send({"op": "cancel", "id": number}, b"")
                raise LateError(f"no answer in {patience:g} s")
        if question.end is None:
            raise LineBrokenError(self._broken)
        return Answer(question.end, b"".join(question.out), b"".join(question.errors))

    def close(self) -> None:
        """End the line, what runs on the other side, and the child."""
        with self._lock:
            self._closing, self._closed_at = True, time.monotonic()
            if not self._broken:
                self._send({"op": "bye"}, b"")
        self._thread.join(LEAVE + 2.0)

    # --- the thread -----------------------------------------------------------------------

    def _send(self, header: Mapping[str, Any], body: bytes) -> None:
        """Behind what waits to be written. The lock is held."""
        self._outgoing.append(json.dumps({**header, "size": len(body)}).encode() + b"\n" + body)
        with suppress(OSError):
            os.write(self._wake_write, b"x")

    def _run(self) -> None:
        why = "it was ended"
        try:
            why = self._loop()
        except OSError as error:
            why = str(error)
        finally:
            self._ended(why)

    def _loop(self) -> str:
        """Read and write until the line ends; why it did."""
        child = self._child
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        with selectors.DefaultSelector() as selector:
            for stream in (child.stdin, child.stdout, child.stderr):
                os.set_blocking(stream.fileno(), False)
            selector.register(child.stdout, selectors.EVENT_READ)
            selector.register(child.stderr, selectors.EVENT_READ)
            selector.register(self._wake_read, selectors.EVENT_READ)
            writing = True
            selector.register(child.stdin, selectors.EVENT_WRITE)
            while True:
                left = self._until - time.monotonic()
                if left <= 0:
                    return f"the time for looking at it, {self._limit:g} s, was spent"
                with self._lock:
                    wanted = bool(self._outgoing)
                    # A far side that reads nothing, or talks on, must not keep a line alive that was closed.
                    if self._closing and (not wanted or time.monotonic() > self._closed_at + LEAVE):
                        return "it was closed"
                if wanted != writing:
                    writing = wanted
                    if writing:
                        selector.register(child.stdin, selectors.EVENT_WRITE)
                    else:
                        selector.unregister(child.stdin)
                for key, _ in selector.select(min(left, LEAVE)):
                    if key.fileobj is child.stdin:
                        self._write(child.stdin.fileno())
                    elif key.fileobj is child.stderr:
                        if not self._said(child.stderr.fileno()):
                            selector.unregister(child.stderr)
                    elif key.fileobj is child.stdout:
                        why = self._heard(child.stdout.fileno())
                        if why is not None:
                            return why
                    else:
                        os.read(self._wake_read, 4096)

    def _write(self, handle: int) -> None:
        with self._lock:
            first = self._outgoing.popleft()
        try:
            done = os.write(handle, first)
            self.sent += done
        except BlockingIOError:
            done = 0
        except BrokenPipeError:  # it has left: what it said at last is still to be read
            with self._lock:
                self._outgoing.clear()
            return
        if done < len(first):
            with self._lock:
                self._outgoing.appendleft(first[done:])

    def _said(self, handle: int) -> bool:
        try:
            part = os.read(handle, _READ)
        except BlockingIOError:
            return True
        self._errors.add(part)
        return bool(part)

    def _heard(self, handle: int) -> str | None:
        """Take what came; the reason, when the line is over."""
        try:
            part = os.read(handle, _READ)
        except BlockingIOError:
            return None
        if not part:
            return ""  # the child tells why
        self.received += len(part)
        self._buffer += part
        if not self._begun:
            at = self._buffer.find(self._mark)
            if at < 0:
                self._noise = bytes(self._buffer[:NOISE])
                return "it prints without end before it answers" if len(self._buffer) > NOISE else None
            self._noise = bytes(self._buffer[:at])
            del self._buffer[: at + len(self._mark)]
            self._begun = True
        try:
            self._frames()
        except (ValueError, RecursionError, zlib.error) as error:
            return f"{_SENSELESS} ({excerpt(str(error), 120)})"
        return None

    def _frames(self) -> None:
        """Take the frames that are whole. ValueError for what cannot be one."""
        at = 0
        while len(self._buffer) - at >= 8:
            head, body = struct.unpack_from(">II", self._buffer, at)
            if head > HEADER or body > BODY:
                raise ValueError(f"a header of {head} and a body of {body} bytes")
            if len(self._buffer) - at < 8 + head + body:
                break
            header = json.loads(self._buffer[at + 8 : at + 8 + head])
            if not isinstance(header, dict):
                raise ValueError("a header that is none")  # noqa: TRY004 - one kind of fault for all nonsense
            self._frame(header, bytes(self._buffer[at + 8 + head : at + 8 + head + body]))
            at += 8 + head + body
        del self._buffer[:at]

    def _frame(self, header: dict[str, Any], body: bytes) -> None:
        if self._hello is None:
            if "hello" not in header:
                raise ValueError("no hello")
            self._hello = header
            self._greeted.set()
            return
        number = header.get("id")
        with self._lock:
            question = self._waiting.get(number) if isinstance(number, int) else None
            if question is None:
                if isinstance(number, int) and 0 < number <= self._last:
                    return  # nobody waits for it any more
                raise ValueError("an answer to what nobody asked")
        question.touched = time.monotonic()
        if "end" in header:
            question.end = _checked(header, question.size)
            with self._lock:
                self._waiting.pop(int(number or 0), None)
            question.done.set()
            return
        part = _unpacked(header, body)
        question.size += len(part)
        if question.size > question.room:
            raise ValueError("more of an answer than was asked for")
        if part:
            (question.errors if header.get("part") == "err" else question.out).append(part)

    def _ended(self, why: str) -> None:
        """Tell everybody why, and let go of the child; where only the child knows why, the other way round."""
        if not why:
            self._leave()
            why = self._last_words()
        with self._lock:
            self._broken = why or "it was ended"
            waiting, self._waiting = list(self._waiting.values()), {}
            self._outgoing.clear()
            # From here on nobody writes to it: `_send` is called while the line lives, or finds it closed.
            os.close(self._wake_read)
            os.close(self._wake_write)
            self._wake_write = -1
        self._greeted.set()
        for question in waiting:
            question.done.set()
        self._leave()

    def _leave(self) -> None:
        """The child's input ends; then it has a moment; then it is ended."""
        child = self._child
        if child.stdin is None or child.stdin.closed:
            return
        with suppress(OSError):
            child.stdin.close()
        for grace, number in ((LEAVE if self._hello else 0.1, signal.SIGTERM), (0.5, signal.SIGKILL), (0.5, None)):
            until = time.monotonic() + grace
            while child.poll() is None and time.monotonic() < until:
                self._drained(min(0.05, grace))
            if child.poll() is not None or number is None:
                break
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, number)
        self._drained(0.0)
        kill_group(child.pid)  # a ProxyCommand, or what else it left
        self.exit_code = child.poll()
        if self.exit_code is None:
            child.returncode = -signal.SIGKILL  # Popen would wait for it when it is collected
        for stream in (child.stdout, child.stderr):
            with suppress(OSError):
                if stream:
                    stream.close()

    def _drained(self, wait: float) -> None:
        """Read what the child says while it leaves: it could not leave otherwise."""
        with selectors.DefaultSelector() as selector:
            for stream in (self._child.stdout, self._child.stderr):
                if stream:
                    selector.register(stream, selectors.EVENT_READ)
            for key, _ in selector.select(wait):
                with suppress(BlockingIOError):
                    part = os.read(key.fd, _READ)
                    if key.fileobj is self._child.stderr:
                        self._errors.add(part)
                    if not part:
                        time.sleep(min(wait, 0.01))  # closed, and the child is still there

    def _last_words(self) -> str:
        said = [line for line in self.errors.splitlines() if line.strip()]
        ended = (
            "it was closed there" if not self.exit_code else f"{self._program} ended with exit code {self.exit_code}"
        )
        return f"{ended}: {excerpt(said[-1], 200)}" if said else ended


def _checked(end: dict[str, Any], size: int) -> dict[str, Any]:
    """How an answer ended. ValueError when that is not how one can."""
    numbers = {"exit": (-128, 255), "lost": (0, 1 << 62), "head": (0, size), "time": (0, 1 << 63)}
    for name, (least, most) in numbers.items():
        value = end.get(name)
        if value is not None and (type(value) is not int or not least <= value <= most):
            raise ValueError(f"{name} cannot be {excerpt(str(value), 40)}")
    stuck, fault, said = end.get("stuck"), end.get("fault"), end.get("said")
    if stuck is not None and not (isinstance(stuck, list) and [type(s) for s in stuck] == [int, str, str]):
        raise ValueError("a stuck process that cannot be one")
    for pair in (fault, said.get("fault") if isinstance(said, dict) else None):
        if pair is not None and not (isinstance(pair, list) and len(pair) == 2 and type(pair[0]) in (int, type(None))):
            raise ValueError("a fault that cannot be one")
    if said is not None and not isinstance(said, dict | list):
        raise ValueError("a word that cannot be one")
    if isinstance(said, dict) and "ok" in said:
        for name, most in (("lost", 1 << 62), ("head", size)):
            value = said.get(name, 0)
            if type(value) is not int or not 0 <= value <= most:
                raise ValueError(f"{name} cannot be {excerpt(str(value), 40)}")
        if type(said.get("errno")) not in (int, type(None)):
            raise ValueError("an error number that cannot be one")
    return end


def _unpacked(header: Mapping[str, Any], body: bytes) -> bytes:
    size = header.get("z")
    if size is None:
        return body
    unpacker = zlib.decompressobj()
    out = unpacker.decompress(body, BODY)
    if len(out) != size or not unpacker.eof:
        raise ValueError("a body that is not what its header says")
    return out
