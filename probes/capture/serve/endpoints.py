"""Servers that trace themselves when they are asked: vLLM and SGLang have an endpoint for it, and it is used first.

vLLM answers ``POST /start_profile`` and ``/stop_profile`` when it was started with a folder for traces
(``VLLM_TORCH_PROFILER_DIR``, later ``--profiler-config``); SGLang always does, takes the folder with the request, and
stops by itself after ``num_steps``. Both are asked over loopback, in the network namespace of the server.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any

from knowledge.language import Text
from knowledge.record import dataclass
from probes.capture.model import Item, Process, Refusal, Window
from probes.capture.serve import network

VLLM, SGLANG = "vllm", "sglang"
PORTS = {VLLM: 8000, SGLANG: 30000}
_UP = 4  # generations: an engine is a child or grandchild of the server that has the port
_LISTEN = "0A"
_ANY = frozenset({"0.0.0.0", "::"})
_ENGINE = re.compile(r"(?:^|[/\s=.])(vllm|sglang)(?=$|[\s./:])|^(VLLM|sglang)::", re.IGNORECASE)
_TRACE = re.compile(r"\.json(\.gz)?\Z")
# SGLang counts its steps from /start_profile on; a window of time is cut by /stop_profile.
_QUIET = 30.0  # seconds that a stop may take to answer: it writes the traces first


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that can be asked for traces."""

    engine: str
    pid: int  # of the process that has the port
    host: str
    port: int
    folder: str = ""  # where it writes, as it sees it; empty: it is told with the request


class Unavailable(Exception):
    """The server did not do it."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.why.en)
        self.refusal = refusal


def find(process: Process) -> Endpoint | Refusal | None:
    """The endpoint of the server that `process` belongs to; why it has none that can be used; None for no such server."""
    family = list(_family(process.pid))
    engine = next((e for pid in family if (e := _engine(pid))), "")
    if not engine:
        return None
    for pid in family:
        address = _listening(pid, _port(pid) or PORTS[engine])
        if address is not None:
            return _usable(engine, pid, *address)
    return Refusal(
        "no-port",
        Text(f"it looks like {engine}, and no server's port was found", f"该进程像是 {engine}，但未找到其服务端口"),
        Text("an engine without its HTTP server is captured as any other process",
             "没有 HTTP 服务的引擎按普通进程采集"),
    )  # fmt: skip


def _usable(engine: str, pid: int, host: str, port: int) -> Endpoint | Refusal:
    if engine == SGLANG:
        return Endpoint(engine, pid, host, port)
    folder = _folder(pid)
    if folder:
        return Endpoint(engine, pid, host, port, folder)
    return Refusal(
        "no-folder",
        Text("vLLM was started without a folder for traces, so it has no profiler endpoint",
             "vLLM 启动时未指定轨迹目录，因此没有 profiler 端点"),
        Text('start it with --profiler-config \'{"profiler":"torch","torch_profiler_dir":"/path"}\' (older: VLLM_TORCH_PROFILER_DIR)',
             '启动时加 --profiler-config \'{"profiler":"torch","torch_profiler_dir":"/path"}\'（旧版：VLLM_TORCH_PROFILER_DIR）'),
    )  # fmt: skip


# --- asking -------------------------------------------------------------------------------


def capture(
    endpoint: Endpoint, window: Window, items: frozenset[Item], folder: str, *, deadline: float, stop: Event | None = None
) -> tuple[str, ...]:  # fmt: skip
    """Traces of one window, as paths that the server names; `folder` is where a server that is told writes.

    Blocks for the window and until the files are whole, at most `deadline` seconds. Unavailable when the server says no.
    The server is told to stop whatever happens in between.
    """
    return network.inside(endpoint.pid, lambda: _capture(endpoint, window, items, folder, deadline, stop or Event()))


def _capture(
    endpoint: Endpoint, window: Window, items: frozenset[Item], folder: str, deadline: float, stop: Event
) -> tuple[str, ...]:  # fmt: skip
    until = time.monotonic() + deadline
    where = endpoint.folder or folder
    before = _files(endpoint.pid, where)
    counted = window.by_iterations and endpoint.engine == SGLANG
    _post(endpoint, "/start_profile", _orders(window, items, folder) if endpoint.engine == SGLANG else {}, 10.0)
    try:
        if not counted:
            # vLLM does not count steps for us: iterations become the time that the caller gave for them.
            stop.wait(min(window.duration_ns / 1e9, max(0.0, until - time.monotonic())))
        elif _wait(endpoint.pid, where, before, until, stop):
            return _new(endpoint.pid, where, before)
    finally:
        with suppress(Unavailable):  # one that has stopped by itself says so with an error
            _post(endpoint, "/stop_profile", {}, max(_QUIET, until - time.monotonic()))
    _wait(endpoint.pid, where, before, until, stop)
    found = _new(endpoint.pid, where, before)
    if not found:
        raise Unavailable(_no_trace(endpoint, where))
    return found


def _orders(window: Window, items: frozenset[Item], folder: str) -> dict[str, Any]:
    said: dict[str, Any] = {
        "output_dir": folder,
        "activities": ["CPU", "GPU"] if Item.KERNELS in items else ["CPU"],
        "with_stack": False,
        "record_shapes": not items.isdisjoint({Item.SHAPES, Item.FLOPS}),
    }
    return said | ({"num_steps": window.skip + window.iterations} if window.by_iterations else {})


def _post(endpoint: Endpoint, path: str, body: Mapping[str, Any], seconds: float) -> None:
    where = f"POST {endpoint.host}:{endpoint.port}{path}"
    line = http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=seconds)
    try:
        line.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = line.getresponse()
        said = answer.read(2000).decode("utf-8", "replace").strip()
    except (OSError, http.client.HTTPException) as error:
        raise Unavailable(_said_no(where, str(error) or type(error).__name__)) from None
    finally:
        line.close()
    if answer.status in (401, 403):
        raise Unavailable(Refusal(
            "api-key",
            Text(f"{where}: the server wants its API key", f"{where}：服务器要求 API key"),
            Text("gpudiag does not take secrets of servers; use the other ways, or ask who runs it",
                 "gpudiag 不读取服务的密钥；请用其他方式，或联系服务的管理者"),
        ))  # fmt: skip
    if answer.status >= 300:
        raise Unavailable(_said_no(where, f"{answer.status} {said[:200]}"))


def _said_no(where: str, why: str) -> Refusal:
    return Refusal(
        "endpoint-failed",
        Text(f"{where}: {why}", f"{where}：{why}"),
        Text("it is captured as any other process instead", "改为按普通进程采集"),
    )


def _no_trace(endpoint: Endpoint, where: str) -> Refusal:
    return Refusal(
        "no-trace",
        Text(f"{endpoint.engine} wrote no trace to {where}: no step ran in the window, or it is still writing",
             f"{endpoint.engine} 未在 {where} 写出轨迹：窗口内没有执行任何 step，或仍在写入"),
        Text("send requests while it is captured, or look into the folder later", "采集时请发送请求，或稍后查看该目录"),
    )  # fmt: skip


# --- files --------------------------------------------------------------------------------


def _files(pid: int, folder: str) -> dict[str, int]:
    """Traces in a folder that process `pid` names, and their sizes."""
    found = {}
    with suppress(OSError, ValueError), os.scandir(f"/proc/{pid}/root{folder}") as entries:
        for entry in entries:
            if _TRACE.search(entry.name) and entry.is_file(follow_symlinks=False):
                found[entry.name] = entry.stat(follow_symlinks=False).st_size
    return found


def _new(pid: int, folder: str, before: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(f"{folder.rstrip('/')}/{name}" for name in sorted(_files(pid, folder)) if name not in before)


def _wait(pid: int, folder: str, before: Mapping[str, int], until: float, stop: Event) -> bool:
    """Until there are new files and none has grown for half a second; whether that came to be."""
    sizes: dict[str, int] = {}
    steady = 0
    while time.monotonic() < until and not stop.is_set():
        now = {name: size for name, size in _files(pid, folder).items() if name not in before and size}
        steady = steady + 1 if now and now == sizes else 0
        if steady >= 5:
            return True
        sizes = now
        stop.wait(0.1)
    return False


# --- which server -------------------------------------------------------------------------


def _family(pid: int) -> Iterator[int]:
    """The process, then its ancestors."""
    for _ in range(_UP + 1):
        if pid <= 1:
            return
        yield pid
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError, IndexError):
            return


def _words(pid: int) -> list[str]:
    try:
        return os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes()).rstrip("\0").split("\0")
    except OSError:
        return []


def _engine(pid: int) -> str:
    """Which engine the command line names: a module or a script of it, or the title that its processes give themselves."""
    words = _words(pid)[:4]
    for word in words:
        if found := _ENGINE.search(word):
            return (found[1] or found[2]).lower()
    return ""


def _option(words: Sequence[str], name: str) -> str:
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if word == name:
            return after
        if word.startswith(f"{name}="):
            return word.split("=", 1)[1]
    return ""


def _port(pid: int) -> int:
    said = _option(_words(pid), "--port")
    return int(said) if said.isascii() and said.isdigit() and len(said) < 6 and int(said) < 65536 else 0


def _folder(pid: int) -> str:
    """Where vLLM writes traces, absolute and as it names it; empty when it was given none."""
    words = _words(pid)
    folder = _option(words, "--profiler-config.torch_profiler_dir")
    with suppress(ValueError, AttributeError, RecursionError):
        folder = folder or str(json.loads(_option(words, "--profiler-config") or "{}").get("torch_profiler_dir") or "")
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            if line.startswith(b"VLLM_TORCH_PROFILER_DIR=") and not folder:
                folder = os.fsdecode(line.split(b"=", 1)[1])
        if folder and not folder.startswith("/"):
            folder = os.path.normpath(Path(f"/proc/{pid}/cwd").readlink() / folder)
    return folder


def _listening(pid: int, port: int) -> tuple[str, int] | None:
    """The address at which the process itself listens on `port`; None when it does not."""
    sockets = set()
    try:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                link = str(entry.readlink())
                if link.startswith("socket:["):
                    sockets.add(link[8:-1])
        rows = [
            (row.split(), host)
            for name, host in (("tcp", "127.0.0.1"), ("tcp6", "::1"))
            for row in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
        ]
    except OSError:
        return None
    for row, loopback in rows:
        if len(row) > 9 and row[3] == _LISTEN and row[9] in sockets and int(row[1].rsplit(":", 1)[1], 16) == port:
            host = _address(row[1].rsplit(":", 1)[0])
            return (loopback if host in _ANY else host), port
    return None


def _address(text: str) -> str:
    """``0100007F`` -> 127.0.0.1: words of 32 bits in the machine's order."""
    import socket
    import sys

    raw = bytes.fromhex(text)
    if sys.byteorder == "little":
        raw = b"".join(raw[i : i + 4][::-1] for i in range(0, len(raw), 4))
    return socket.inet_ntop(socket.AF_INET if len(raw) == 4 else socket.AF_INET6, raw)
