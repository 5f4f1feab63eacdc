"""Profiler endpoints of servers: stand-ins of ours, laid out and started as vLLM and SGLang are, over real HTTP."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from probes.capture.model import Item, Process, Refusal, Window
from probes.capture.serve import endpoints

pytestmark = pytest.mark.process

SERVER = '''
"""A server with the profiler endpoints of {engine}: it traces when told, and writes when it stops."""
import http.server, json, os, pathlib, sys, threading, time

folder = os.environ.get("VLLM_TORCH_PROFILER_DIR", "")
state = {{"orders": None, "began": 0.0}}

def write():
    orders, state["orders"] = state["orders"], None
    where = pathlib.Path(orders.get("output_dir") or folder)
    seconds = time.monotonic() - state["began"]
    (where / "rank0.pt.trace.json").write_text(json.dumps({{"traceEvents": [], "orders": orders, "seconds": seconds}}))

class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or b"{{}}")
        code = 200
        if "--api-key" in sys.argv:
            code = 401
        elif self.path == "/start_profile" and state["orders"] is None:
            state.update(orders=body, began=time.monotonic())
            if "num_steps" in body:
                threading.Timer(0.3, write).start()
        elif self.path == "/stop_profile" and state["orders"] is not None:
            write()
        else:
            code = 400
        self.send_response(code)
        self.end_headers()

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Handler)
child = os.fork()
if not child:
    time.sleep(300)
print(server.server_port, child, flush=True)
server.serve_forever()
'''
MODULES = {"vllm": "vllm.entrypoints.openai.api_server", "sglang": "sglang.launch_server"}


class Server:
    def __init__(self, engine: str, folder: Path, port: int, *more: str, traces: Path | None = None, before: tuple[str, ...] = ()) -> None:  # fmt: skip
        file = folder.joinpath(*MODULES[engine].split(".")).with_suffix(".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(SERVER.format(engine=engine))
        env = {**os.environ, "PYTHONPATH": str(folder)} | ({"VLLM_TORCH_PROFILER_DIR": str(traces)} if traces else {})
        self.child = subprocess.Popen(
            [*before, sys.executable, "-m", MODULES[engine], "--port", str(port), *more], cwd=folder, env=env,
            stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        assert self.child.stdout is not None
        self.port, self.engine = map(int, self.child.stdout.readline().split())
        self.pid = self.child.pid

    def end(self) -> None:
        for pid in (self.engine, self.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        self.child.wait(60)
        assert self.child.stdout is not None
        self.child.stdout.close()


@pytest.fixture
def servers() -> Iterator[list[Server]]:
    found: list[Server] = []
    yield found
    for server in found:
        server.end()


def free_port() -> int:
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def found(server: Server, pid: int = 0) -> endpoints.Endpoint:
    endpoint = endpoints.find(Process(pid or server.pid, 0, "python"))
    assert isinstance(endpoint, endpoints.Endpoint)
    return endpoint


def test_vllm_traces_for_the_window(servers: list[Server], tmp_path: Path) -> None:
    traces = tmp_path / "traces"
    traces.mkdir()
    (traces / "old.pt.trace.json").write_text("{}")
    servers.append(Server("vllm", tmp_path, free_port(), traces=traces))
    endpoint = found(servers[0], servers[0].engine)  # an engine leads to the server above it
    assert (endpoint.engine, endpoint.port, endpoint.folder) == ("vllm", servers[0].port, str(traces))
    files = endpoints.capture(endpoint, Window(200_000_000), frozenset({Item.TORCH}), "/nowhere", deadline=20)
    assert files == (str(traces / "rank0.pt.trace.json"),)


def test_sglang_counts_its_steps(servers: list[Server], tmp_path: Path) -> None:
    servers.append(Server("sglang", tmp_path, free_port()))
    items = frozenset({Item.KERNELS, Item.SHAPES})
    files = endpoints.capture(found(servers[0]), Window(iterations=5, skip=2), items, str(tmp_path), deadline=20)
    text = Path(files[0]).read_text()
    assert '"num_steps": 7' in text
    assert '"GPU"' in text
    assert '"record_shapes": true' in text


def test_sglang_stops_after_the_time(servers: list[Server], tmp_path: Path) -> None:
    servers.append(Server("sglang", tmp_path, free_port()))
    files = endpoints.capture(
        found(servers[0]), Window(100_000_000), frozenset({Item.TORCH}), str(tmp_path), deadline=20
    )
    assert '"activities": ["CPU"]' in Path(files[0]).read_text()


def test_given_up_half_way_it_is_told_to_stop(servers: list[Server], tmp_path: Path) -> None:
    servers.append(Server("sglang", tmp_path, free_port()))
    stop = Event()
    stop.set()
    endpoints.capture(found(servers[0]), Window(), frozenset({Item.TORCH}), str(tmp_path), deadline=20, stop=stop)
    assert (tmp_path / "rank0.pt.trace.json").exists()  # it stopped: a server that went on would have written nothing


def test_a_server_with_a_key(servers: list[Server], tmp_path: Path) -> None:
    servers.append(Server("sglang", tmp_path, free_port(), "--api-key", "secret"))
    with pytest.raises(endpoints.Unavailable) as caught:
        endpoints.capture(found(servers[0]), Window(), frozenset(), str(tmp_path), deadline=5)
    assert caught.value.refusal.code == "api-key"


def test_vllm_without_a_folder(servers: list[Server], tmp_path: Path) -> None:
    servers.append(Server("vllm", tmp_path, free_port()))
    refusal = endpoints.find(Process(servers[0].pid, 0, "python"))
    assert isinstance(refusal, Refusal)
    assert refusal.code == "no-folder"
    assert "--profiler-config" in refusal.remedy.en


def test_vllm_configured_by_json_and_a_relative_folder(servers: list[Server], tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    servers.append(Server("vllm", tmp_path, free_port(), "--profiler-config", '{"torch_profiler_dir": "./out"}'))
    assert found(servers[0]).folder == str(tmp_path / "out")


@pytest.mark.machine
def test_a_server_in_a_network_of_its_own(servers: list[Server], tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root makes a network namespace")
    up = 'ip link set lo up 2>/dev/null || ifconfig lo up; exec "$@"'
    server = Server("sglang", tmp_path, 30000, before=("unshare", "--net", "sh", "-c", up, "sh"))
    servers.append(server)
    files = endpoints.capture(found(server), Window(100_000_000), frozenset(), str(tmp_path), deadline=20)
    assert files


def test_an_ordinary_process_has_none() -> None:
    assert endpoints.find(Process(os.getpid(), 0, "python")) is None


def test_a_server_that_has_gone(servers: list[Server], tmp_path: Path) -> None:
    servers.append(Server("sglang", tmp_path, free_port()))
    endpoint = found(servers[0])
    gone = endpoints.Endpoint(endpoint.engine, os.getpid(), endpoint.host, free_port())
    with pytest.raises(endpoints.Unavailable) as caught:
        endpoints.capture(gone, Window(), frozenset(), str(tmp_path), deadline=5)
    assert caught.value.refusal.code == "endpoint-failed"


@pytest.mark.parametrize(
    ("text", "address"),
    [("0100007F", "127.0.0.1"), ("00000000", "0.0.0.0"), ("00000000000000000000000001000000", "::1")],
)
def test_addresses_of_proc(text: str, address: str) -> None:
    if sys.byteorder != "little":
        pytest.skip("words of a little-endian machine")
    assert endpoints._address(text) == address
