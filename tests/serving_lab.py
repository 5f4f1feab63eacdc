"""Inference servers to be looked at: real processes under the command lines of the real ones, serving recorded pages.

`Lab.serve` starts one and waits until it listens. The program stands in for vLLM's ``api_server`` module, SGLang's
``launch_server``, ``tritonserver`` and ``text-generation-router``; it is ours, and knows nothing but HTTP.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

MODULES = {"vllm": "vllm.entrypoints.openai.api_server", "sglang": "sglang.launch_server"}
NAMES = {"triton": "/opt/tritonserver/bin/tritonserver", "tgi": "text-generation-router"}

PROGRAM = r"""
import os, socket, subprocess, sys, threading, time
mode, pages = os.environ["LAB_MODE"], os.environ["LAB_PAGES"].split(":")
port = int(os.environ["LAB_PORT"])
if os.environ.get("LAB_WORKER"):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)"])
if mode == "starting":
    time.sleep(120)
door = socket.socket(socket.AF_INET6 if os.environ.get("LAB_V6") else socket.AF_INET)
door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
door.bind(("::1" if os.environ.get("LAB_V6") else os.environ.get("LAB_BIND", "127.0.0.1"), port))
door.listen(16)
print("listening", flush=True)
asked = 0

def answer(line):
    global asked
    request = line.recv(4096)
    if mode == "hang":
        time.sleep(60)
    if mode == "garbage":
        line.sendall(b"\x00\x01SSH-2.0-no\r\n\r\n")
    elif mode == "flood":
        line.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while True:
                line.sendall(b"x" * 65536)
        except OSError:
            pass
    elif mode.isdigit() or not request.startswith(b"GET /metrics "):
        line.sendall(b"HTTP/1.1 %s No\r\nContent-Length: 2\r\n\r\nno" % (mode if mode.isdigit() else "404").encode())
    else:
        body = open(pages[min(asked, len(pages) - 1)], "rb").read()
        asked += 1
        if mode == "breaks":
            line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body[: body.index(b"_waiting{") + 60])
        elif mode == "chunked":
            parts = b"".join(b"%x\r\n%s\r\n" % (len(body[i:i + 700]), body[i:i + 700]) for i in range(0, len(body), 700))
            line.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + parts + b"0\r\n\r\n")
        else:
            line.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" + body)
    line.close()

def doors():
    while True:
        line, _ = door.accept()
        threading.Thread(target=answer, args=(line,), daemon=True).start()

if mode == "burn":
    threading.Thread(target=doors, daemon=True).start()
    while True:
        sum(range(1000))
doors()
"""


def free_port() -> int:
    """A port of loopback at which nobody listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Lab:
    """Starts servers below a folder, and ends them all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[subprocess.Popen[str]] = []
        for module in MODULES.values():
            path = folder / (module.replace(".", "/") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            for above in path.parents:
                if above == folder:
                    break
                (above / "__init__.py").touch()
            path.write_text(PROGRAM)
        (folder / "server.py").write_text(PROGRAM)

    def serve(
        self, engine: str, pages: Sequence[str | Path] = (), mode: str = "pages", options: Sequence[str] = (),
        before: Sequence[str] = (), port: int | None = None, **more: str,
    ) -> tuple[int, int]:  # fmt: skip
        """Start one; its pid and port."""
        port = port or free_port()
        env = {**os.environ, "LAB_MODE": mode, "LAB_PAGES": ":".join(str(p) for p in pages), "LAB_PORT": str(port)}
        env.update({f"LAB_{k.upper()}": v for k, v in more.items()}, PYTHONPATH=str(self.folder))
        if engine in MODULES:
            words = [*before, sys.executable, "-m", MODULES[engine], "--port", str(port), *options]
            child = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True)
        else:
            flag = "--metrics-port" if engine == "triton" else "--port"
            words = [NAMES[engine], str(self.folder / "server.py"), flag, str(port), *options]
            child = subprocess.Popen(words, executable=sys.executable, env=env, stdout=subprocess.PIPE, text=True)
        self._started.append(child)
        if mode != "starting":
            assert child.stdout is not None
            assert child.stdout.readline() == "listening\n"
        else:
            self._until_named(child.pid, engine)
        return child.pid, port

    def _until_named(self, pid: int, engine: str) -> None:
        """Until the new process runs its program: before that it is a copy of this one."""
        word = MODULES.get(engine, NAMES.get(engine, ""))
        for _ in range(500):
            if word.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                return
            time.sleep(0.01)
        raise AssertionError("the server did not start")

    def close(self) -> None:
        """End all of them, and what they started."""
        for child in self._started:
            for pid in [*_children(child.pid), child.pid]:
                try:
                    os.kill(pid, 9)
                except ProcessLookupError:
                    continue
            child.wait(60)
            if child.stdout is not None:
                child.stdout.close()


def _children(pid: int) -> list[int]:
    try:
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
