"""One child: begun with an empty environment, spoken to in lines with a deadline, ended with all it started.

It cannot open a connection (walls.py). What it asks for over its door is a connection to the one host and port of the settings: that is
made here, by a thread of the child's own, and its descriptor is handed over.
"""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from assistant.narrate.reasons import NarrationError, Reason
from knowledge.language import Text

PROGRAM = Path(__file__).with_name("child.py")
LINE = 2 << 20  # bytes of one line from the child: its own cap, with every character escaped
TERM_GRACE = 0.3  # seconds between SIGTERM and SIGKILL
# All that the child inherits: where this system keeps its certificates. No proxy, no key, no setting of ours.
INHERITED = ("SSL_CERT_FILE", "SSL_CERT_DIR")
FIXED = {
    "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8",
    "LITELLM_MODE": "PRODUCTION",  # else it reads .env of the working folder
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it fetches a list of prices
    "LITELLM_TELEMETRY": "False", "HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1",
    "HOME": "/nonexistent", "TMPDIR": "/nonexistent",  # it writes nothing, anywhere
}  # fmt: skip
CONNECT = 10.0  # seconds to wait for the server of the model
PAUSE = 0.02  # seconds between two connections: one request takes one
_BAD = ("1.82.7", "1.82.8", "1.107.0")


class Child:
    """A running child. Written to and read by one thread; `kill` may come from any."""

    def __init__(self, python: str, hello: Mapping[str, Any]) -> None:
        """NarrationError when there is no such interpreter, or when what it holds must not even be started."""
        refuse_malware(python)
        self.began, self.ready, self._ended = time.monotonic(), False, False
        self.walls: Mapping[str, bool] | None = None  # as the child found them, before it loaded anything
        self._buffer, self._lock = bytearray(), threading.Lock()
        ours, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                [python, "-ISB", str(PROGRAM), str(theirs.fileno())], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, env=environment(), cwd="/", start_new_session=True, pass_fds=(theirs.fileno(),),
            )  # fmt: skip
        except OSError as error:
            ours.close()
            raise NarrationError(
                Reason.NOT_INSTALLED, f"{python}: {error.strerror}",
                Text(f"{python} cannot be started ({error.strerror}): llm_python names the interpreter that has litellm.",
                     f"无法启动 {python}（{error.strerror}）：llm_python 应指向装有 litellm 的解释器。"),
            ) from error  # fmt: skip
        finally:
            theirs.close()
        place = (str(hello.get("host", "")), int(hello.get("port", 0)))
        threading.Thread(target=_hand_over, args=(ours, place), name="narration-door", daemon=True).start()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        self.pid = self._process.pid
        with suppress(NarrationError):  # one that has ended already is found out by the first reading
            self.send({"hello": dict(hello)}, time.monotonic() + 5.0)

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        with self._lock:
            return not self._ended and self._process.poll() is None

    def send(self, message: Mapping[str, Any], until: float) -> None:
        """One line, whole. NarrationError when the child has gone, or does not take it in time."""
        left = memoryview(json.dumps(message).encode() + b"\n")
        while left:
            wait = until - time.monotonic()
            if wait <= 0:
                raise NarrationError(Reason.SLOW, "the process takes no request")
            if not select.select((), (self._to,), (), wait)[1]:
                continue
            try:
                left = left[os.write(self._to, left) :]
            except BlockingIOError:
                continue
            except OSError:
                raise NarrationError(Reason.DOWN, "the process has ended") from None

    def receive(self, until: float) -> dict[str, Any] | None:
        """The next line; None at the deadline or when the child ended. NarrationError for what is no line of ours."""
        while b"\n" not in self._buffer:
            if len(self._buffer) > LINE:
                raise NarrationError(Reason.HUGE, f"more than {LINE} bytes")
            wait = until - time.monotonic()
            if wait <= 0 or not select.select((self._from,), (), (), wait)[0]:
                return None
            try:
                part = os.read(self._from, 1 << 16)
            except BlockingIOError:
                continue
            except OSError:
                part = b""
            if not part:
                self._ended = True  # of its output: it may still be on its way out
                return None
            self._buffer += part
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            raise NarrationError(Reason.MALFORMED, "the process said something else")
        return said

    def end(self) -> None:
        """Ask it to end, then kill it, with all that it started, and close the pipes: only for the thread that reads them."""
        self._signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired), self._lock:
            self._process.wait(TERM_GRACE)
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def kill(self) -> None:
        """Kill it now, with all that it started. Its reader sees the end of its output."""
        self._signal(signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired), self._lock:
            self._process.wait(1.0)

    def _signal(self, number: int) -> None:
        """To its group, which bears its number: also after it has ended, for what it may have left."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


def environment() -> dict[str, str]:
    """All variables of the child."""
    return {name: os.environ[name] for name in INHERITED if name in os.environ} | FIXED


def _hand_over(door: socket.socket, place: tuple[str, int]) -> None:
    """A connection to `place` for each byte that comes through `door`, or the number of the error; until the child has gone."""
    with door, suppress(OSError):
        while door.recv(1):
            try:
                with socket.create_connection(place, CONNECT) as connection:
                    connection.setblocking(True)
                    socket.send_fds(door, [b"0"], [connection.fileno()])
            except OSError as error:  # a name that is not known and a silence have no number of the system's
                known = (error.errno or 0) > 0 and not isinstance(error, socket.gaierror)
                door.sendall(str(error.errno if known else errno.ETIMEDOUT).encode())
            time.sleep(PAUSE)


def refuse_malware(python: str) -> None:
    """NarrationError before an interpreter is started whose litellm carries malware: that runs at every start, unasked.

    Looks where a virtual environment keeps its packages; the child looks again, wherever they are.
    """
    root = Path(python or sys.executable).parent.parent
    for version in _BAD:
        found = next(root.glob(f"lib*/python3*/site-packages/litellm-{version}.dist-info"), None)
        if found is not None:
            raise NarrationError(
                Reason.UNSAFE, str(found),
                Text(f"litellm {version} in {root} is compromised. Do not start anything there: delete that environment, "
                     "change every secret that it could read, and install requirements-llm.txt into a new one.",
                     f"{root} 中的 litellm {version} 已被植入恶意代码。不要在其中启动任何程序：删除该环境，更换它可读取的所有密钥，"
                     "并在新环境中安装 requirements-llm.txt。"),
            )  # fmt: skip
