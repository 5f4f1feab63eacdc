"""The gentlest way to a trace: a job that was started with ``KINETO_USE_DAEMON=1`` asks a daemon for orders.

Its libkineto polls the abstract datagram socket ``dynolog`` of its network namespace every five seconds. Where no
dynolog runs there, we answer for as long as one order takes. A message is a header (u64 size, 32 bytes of type)
and its payload: ``req`` {i32 type, i32 n, i64 job, i32 pids[n]}, its own pid first, is answered with the text of a
configuration, an empty one for nothing to do. Format: libkineto, ``IpcFabricConfigClient.cpp``.
"""

from __future__ import annotations

import errno
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

from knowledge.language import Text
from knowledge.record import dataclass
from probes.capture.model import Item, Process, Refusal, Window
from probes.capture.serve import network

ADDRESS = b"\0dynolog\0"
CLIENT = "@dynoconfigclient"  # how libkineto's own socket is called in /proc/net/unix
POLL = 5.0  # seconds between two questions of a job
WARM_UP = 1  # seconds that libkineto prepares; its own choice of five is for buffers that a short window does not fill
ACTIVITIES = 2  # bit of the request's type: asks for an order to trace
_HEADER = struct.Struct("<Q32s")
_REQUEST = struct.Struct("<iiq")
_CREDENTIALS = struct.Struct("iII")  # pid, uid, gid of the sender
_MOST = 1 << 16  # bytes of one message


@dataclass(slots=True)
class Order:
    """What one process is to trace, and what came of it."""

    process: Process
    text: str  # the configuration
    taken: int = 0  # monotonic ns at which the job took it; 0: not yet


def listens(process: Process) -> bool:
    """Whether the process polls for orders: it was started so, and its network namespace holds such a socket."""
    try:
        environ = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
        sockets = Path(f"/proc/{process.pid}/net/unix").read_text(errors="replace")
    except OSError:
        return False
    started = any(line.startswith(b"KINETO_USE_DAEMON=") and line[18:] not in (b"", b"0") for line in environ)
    return started and CLIENT in sockets


def order(window: Window, items: frozenset[Item], log: str, start_ms: int = 0) -> str:
    """The configuration for `window`; `log` is where the job writes, as the job names it, less ``_<pid>.json``.

    `start_ms` (ms since 1970 UTC) starts ranks together; 0: at once. ValueError for a path that is no single line.
    """
    if not log.endswith(".json") or any(c in log for c in "\r\n,"):
        raise ValueError(log)
    lines = {
        "ACTIVITIES_LOG_FILE": log,
        "PROFILE_START_TIME": str(start_ms),
        "ACTIVITIES_WARMUP_PERIOD_SECS": str(WARM_UP),
        "PROFILE_REPORT_INPUT_SHAPES": _yes(not items.isdisjoint({Item.SHAPES, Item.FLOPS})),
        "PROFILE_WITH_STACK": "false",
        "PROFILE_PROFILE_MEMORY": "false",
    }
    if window.by_iterations:
        lines["PROFILE_START_ITERATION"] = str(max(0, window.skip))
        lines["PROFILE_START_ITERATION_ROUNDUP"] = "1"
        lines["ACTIVITIES_ITERATIONS"] = str(window.iterations)
    else:
        lines["ACTIVITIES_DURATION_MSECS"] = str(max(1, window.duration_ns // 1_000_000))
    return "".join(f"{key}={value}\n" for key, value in lines.items())


def written(log: str, process: Process) -> str:
    """The file that the job writes for an order with `log`: its pid as it sees it stands in the name."""
    return f"{log.removesuffix('.json')}_{process.inner_pid or process.pid}.json"


def _yes(value: bool) -> str:
    return "true" if value else "false"


@contextmanager
def handing_out(
    orders: Sequence[Order], *, deadline: float = 2 * POLL + 1, stop: Event | None = None
) -> Iterator[Refusal | None]:
    """Give each job its order when it asks; the block begins when all have taken theirs, or after `deadline` seconds.

    `taken` tells who has. The refusal is of a place where a dynolog answers already, or where we may not answer.
    Stay in the block until the trace is there: libkineto waits 50 ms for an answer. One that comes later lies in its
    socket until its next question, and that it can ask only while somebody answers.
    """
    done = stop or Event()
    rooms: dict[int, list[Order]] = {}
    for one in orders:
        rooms.setdefault(network.of(one.process.pid), []).append(one)
    desks = [_Desk(room, deadline, done) for room in rooms.values()]
    try:
        for desk in desks:
            desk.served.wait(deadline + 5)
        yield next((d.refusal for d in desks if d.refusal is not None), None)
    finally:
        for desk in desks:
            desk.close()


class _Desk:
    """Answers the jobs of one network namespace, from a thread: a thread can go there alone."""

    def __init__(self, orders: Sequence[Order], deadline: float, given_up: Event) -> None:
        self._waiting = {o.process.pid: o for o in orders}
        self._until = time.monotonic() + deadline
        self._given_up = given_up
        self._closed = Event()
        self.served = Event()  # all have taken their orders, or there is no more waiting for them
        self.refusal: Refusal | None = None
        self.thread = Thread(target=self._work, name="dynolog", daemon=True)
        self.thread.start()

    def _work(self) -> None:
        try:
            network.enter(next(iter(self._waiting)))
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as desk:
                desk.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
                desk.bind(ADDRESS)
                self._serve(desk)
        except OSError as error:
            self.refusal = _refused(error)
        finally:
            self.served.set()

    def close(self) -> None:
        self._closed.set()
        self.thread.join(5)

    def _serve(self, desk: socket.socket) -> None:
        desk.settimeout(0.2)
        while not self._closed.is_set():
            if not self._waiting or self._given_up.is_set() or time.monotonic() > self._until:
                self._waiting.clear()  # whoever asks from now on is told that there is nothing to do
                self.served.set()
            with suppress(TimeoutError):
                data, credentials, _, client = desk.recvmsg(_MOST, socket.CMSG_SPACE(_CREDENTIALS.size))
                self._answer(desk, data, _sender(credentials), client)

    def _answer(self, desk: socket.socket, data: bytes, pid: int, client: bytes) -> None:
        """One message. What is no request is left alone, and a job that has gone is no trouble."""
        if asking(data) is None:
            return
        found = self._waiting.get(pid)
        text = found.text.encode() if found is not None else b""
        with suppress(OSError):
            desk.sendto(_HEADER.pack(len(text), b"req") + text, client)
            if found is not None:
                found.taken = time.monotonic_ns()
                del self._waiting[pid]


def _sender(credentials: Sequence[tuple[int, int, bytes]]) -> int:
    """Who sent a message, in our pid namespace: the kernel says so, whatever the message does."""
    for level, kind, data in credentials:
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS and len(data) >= _CREDENTIALS.size:
            return int(_CREDENTIALS.unpack_from(data)[0])
    return 0


def asking(data: bytes) -> tuple[int, ...] | None:
    """The pids of a request to trace: the asking process, then its ancestors; None for any other message."""
    if len(data) < _HEADER.size + _REQUEST.size:
        return None
    size, kind = _HEADER.unpack_from(data)
    wants, count, _ = _REQUEST.unpack_from(data, _HEADER.size)
    body = data[_HEADER.size + _REQUEST.size :]
    if kind.rstrip(b"\0") != b"req" or not wants & ACTIVITIES or size != len(data) - _HEADER.size:
        return None
    return struct.unpack_from(f"<{count}i", body) if 0 < count <= len(body) // 4 else None


def _refused(error: OSError) -> Refusal:
    if error.errno == errno.EADDRINUSE:
        return Refusal(
            "dynolog-runs",
            Text("dynolog runs here and gives the orders", "本机已有 dynolog 在下发指令"),
            Text("use it: dyno gputrace --pids PID --log-file FILE, then gpudiag trace summary FILE",
                 "请直接使用：dyno gputrace --pids PID --log-file FILE，再运行 gpudiag trace summary FILE"),
        )  # fmt: skip
    why = error.strerror or str(error)
    return Refusal(
        "dynolog-denied",
        Text(f"the job's network namespace cannot be entered: {why}", f"无法进入作业的网络命名空间：{why}"),
        Text("run as root", "请以 root 运行"),
    )
