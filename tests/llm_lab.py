"""A server of our own that speaks as OpenAI's does, over loopback, well and badly; and the interpreter that has litellm.

litellm is looked for in GPUDIAG_LLM_PYTHON (an interpreter that has it), in `.llm/` of the checkout, and here itself. Loading it
takes 4 CPU seconds: where it is not the subject, `stand_in_python` has a small module of the tests in its place.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import json
import os
import shutil
import sys
import tempfile
import threading
import time
import venv
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from assistant.narrate.worker import Worker
from tests.components import cannot

ROOT = Path(__file__).parent.parent
STAND_IN = Path(__file__).parent / "assistant/narrate/stand_in"
FINE = '{"sentences": [{"text": "All is well.", "cites": ["f1"]}]}'


def llm_python() -> str:
    """An interpreter that has litellm; the test skips without one, and fails when GPUDIAG_REQUIRE names litellm."""
    named = os.environ.get("GPUDIAG_LLM_PYTHON", "")
    for path in (named, str(ROOT / ".llm/bin/python")):
        if path and os.access(path, os.X_OK):
            return path
    if importlib.util.find_spec("litellm") is not None:
        return sys.executable
    return cannot("litellm", "no interpreter with litellm: GPUDIAG_LLM_PYTHON, or make llm in the checkout")


@functools.cache
def stand_in_python() -> str:
    """An interpreter in a virtual environment whose litellm is that of the tests (`narrate/stand_in`), made once."""
    folder = Path(tempfile.mkdtemp(prefix="gpudiag-stand-in-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    venv.create(folder, symlinks=True)
    packages = next(folder.glob("lib/python3*/site-packages"))
    for module in STAND_IN.glob("*.py"):
        shutil.copy(module, packages)
    (packages / "litellm-1.106.2.dist-info").mkdir()
    about = "Metadata-Version: 2.1\nName: litellm\nVersion: 1.106.2\n"
    (packages / "litellm-1.106.2.dist-info/METADATA").write_text(about)
    return str(folder / "bin/python")


@dataclass(frozen=True, slots=True)
class Got:
    """One request, as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]


@dataclass(slots=True)
class Model:
    """How the server behaves. `mode`: ok, slow, dribble, error, refuse, busy, flaky, cut, cut_unsized, length, stream, huge,
    html, empty, redirect."""

    mode: str = "ok"
    text: str | Callable[[Mapping[str, Any]], str] = FINE  # what the model says, or how it makes that of a request
    finish: str = "stop"
    seconds: float = 30.0  # slow: before the answer; dribble: for all of it
    to: str = ""  # redirect: where
    requests: list[Got] = field(default_factory=list)
    base: str = ""
    port: int = 0

    def answer(self, body: Mapping[str, Any], path: str = "") -> dict[str, Any]:
        """As the API of that path has it: OpenAI's, Ollama's own, Anthropic's."""
        said = self.text if isinstance(self.text, str) else self.text(body)
        if path == "/api/chat":
            return {"model": body.get("model", ""), "created_at": "2026-01-01T00:00:00Z", "done": True, "done_reason": "stop",
                    "message": {"role": "assistant", "content": said}, "prompt_eval_count": 100, "eval_count": 20}  # fmt: skip
        if path == "/v1/messages":
            return {"id": "m1", "type": "message", "role": "assistant", "model": body.get("model", ""), "stop_reason": "end_turn",
                    "content": [{"type": "text", "text": said}], "usage": {"input_tokens": 100, "output_tokens": 20}}  # fmt: skip
        usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": self.finish}
        return {"id": "c1", "object": "chat.completion", "created": 1, "model": body.get("model", ""), "choices": [choice],
                "usage": usage}  # fmt: skip


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: Model

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        self.model.requests.append(Got(self.path, dict(self.headers.items()), {}))
        self._send(404, b"{}")

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        body = json.loads(self.rfile.read(length) or b"{}")
        self.model.requests.append(Got(self.path, dict(self.headers.items()), body))
        with suppress(OSError):  # whoever asked has gone
            getattr(self, f"_{self.model.mode}")(body)

    def _send(self, status: int, data: bytes, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def _fault(self, status: int, message: str, **headers: str) -> None:
        self._send(status, json.dumps({"error": {"message": message, "type": "server_error"}}).encode(), **headers)

    def _whole(self, body: Mapping[str, Any]) -> bytes:
        return json.dumps(self.model.answer(body, self.path)).encode()

    def _ok(self, body: Mapping[str, Any]) -> None:
        self._send(200, self._whole(body))

    def _slow(self, body: Mapping[str, Any]) -> None:
        time.sleep(self.model.seconds)
        self._ok(body)

    def _dribble(self, body: Mapping[str, Any]) -> None:
        """A byte now and then: no single read ever waits long."""
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", "100000")
        self.end_headers()
        until = time.monotonic() + self.model.seconds
        while time.monotonic() < until:
            self.wfile.write(b" ")
            time.sleep(0.05)

    def _error(self, body: Mapping[str, Any]) -> None:
        self._fault(500, "out of memory")

    def _refuse(self, body: Mapping[str, Any]) -> None:
        self._fault(401, f"bad key {self.headers.get('authorization', '')}")

    def _busy(self, body: Mapping[str, Any]) -> None:
        self._fault(429, "slow down", retry_after="1")

    def _flaky(self, body: Mapping[str, Any]) -> None:
        """Every second one works."""
        if len(self.model.requests) % 2:
            self._fault(503, "try again")
        else:
            self._ok(body)

    def _cut(self, body: Mapping[str, Any]) -> None:
        data = self._whole(body)
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2])
        self.close_connection = True

    def _cut_unsized(self, body: Mapping[str, Any]) -> None:
        """HTTP/1.0: the end of the connection is the end of the answer, so half of one looks whole."""
        data = self._whole(body)
        self.wfile.write(b"HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n" + data[: len(data) // 2])
        self.close_connection = True

    def _length(self, body: Mapping[str, Any]) -> None:
        """The model itself was cut, at its limit of tokens; some servers say "stop" all the same."""
        self._send(200, json.dumps(self.model.answer(body)).replace('}]}"', '"', 1).encode())

    def _stream(self, body: Mapping[str, Any]) -> None:
        """Events, which nobody asked for."""
        part = {"id": "c1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "{"}}]}
        self._send(200, f"data: {json.dumps(part)}\n\ndata: [DONE]\n\n".encode(), "text/event-stream")

    def _huge(self, body: Mapping[str, Any]) -> None:
        answer = self.model.answer(body)
        answer["choices"][0]["message"]["content"] = json.dumps({"sentences": "x" * (1 << 20)})
        self._send(200, json.dumps(answer).encode())

    def _html(self, body: Mapping[str, Any]) -> None:
        self._send(200, b"<html><body>Sign in to the guest network</body></html>", "text/html")

    def _empty(self, body: Mapping[str, Any]) -> None:
        self._send(200, b'{"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": []}')

    def _redirect(self, body: Mapping[str, Any]) -> None:
        self._send(307, b"", location=self.model.to)


@contextmanager
def serving() -> Iterator[Model]:
    """A server on a free port of loopback; `Model` says how it behaves and what it was asked."""
    model = Model()
    handler = type("Handler", (_Handler,), {"model": model})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    model.port = server.server_port
    model.base = f"http://127.0.0.1:{model.port}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def loaded(worker: Worker) -> Worker:
    """`worker`, once litellm is there: what follows measures the model and not the import."""
    worker.start()
    assert worker.loaded.wait(120)
    return worker
