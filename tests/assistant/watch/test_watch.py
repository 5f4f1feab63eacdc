"""`gpudiag watch` as a real process: a real Prometheus scrapes it, a real receiver gets its messages, a restart forgets nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent.parent
XID = "[   5.000000] NVRM: Xid (PCI:0000:3b:00): 79, pid=7, name=train, GPU has fallen off the bus."
QUIET = "[    0.000000] Linux version 6.8.0 (build@host) #1 SMP\n[    1.000000] usb 1-1: new device\n"


@dataclass
class Receiver:
    """A webhook receiver that answers what it is told to."""

    statuses: list[int] = field(default_factory=list)  # for the next requests; 200 after that
    got: list[tuple[str, dict[str, Any]]] = field(default_factory=list)  # idempotency key, body
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook/secret-token"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    here = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status = here.statuses.pop(0) if here.statuses else 200
            if status == 200:
                here.got.append((self.headers["Idempotency-Key"], body))
            self.send_response(status)
            if status == 429:
                self.send_header("Retry-After", "1")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    here.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield here
    server.shutdown()
    server.server_close()


def until(what: Callable[[], Any], seconds: float = 40.0) -> Any:
    """The first true value of `what`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if value := what():
                return value
        except (OSError, urllib.error.URLError):
            pass
        time.sleep(0.1)
    raise AssertionError("it did not come to pass")


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


@dataclass
class Machine:
    """A machine of ours: a kernel log that a fake dmesg prints, and nothing else."""

    folder: Path
    env: dict[str, str]

    def log(self, text: str) -> None:
        part = self.folder / "part"
        part.write_text(text)
        part.replace(self.folder / "log")

    @contextmanager
    def watch(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        argv = [sys.executable, "-m", "assistant", "watch", "--probe", "kernel-log", "--interval", "0.3", *words]
        env = self.env | {"GPUDIAG_STATE_DIR": str(self.folder / "state"), "GPUDIAG_HOST_NAME": "n1",
                          "GPUDIAG_HOST_ROOT": str(self.folder / "root"),
                          "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}  # fmt: skip
        with subprocess.Popen(
            argv, env=env, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as child:
            try:
                yield child
            finally:
                child.kill()


@pytest.fixture
def machine(tmp_path: Path, clean_environment: dict[str, str]) -> Machine:
    for name in ("bin", "root/proc/sys/kernel"):
        (tmp_path / name).mkdir(parents=True)
    for name, script in (("dmesg", f"cat {tmp_path}/log"), ("journalctl", "exit 1")):
        path = tmp_path / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    here = Machine(tmp_path, clean_environment)
    here.log(QUIET)
    return here


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def stop(child: subprocess.Popen[str]) -> tuple[int, str, str]:
    child.send_signal(signal.SIGTERM)
    out, err = child.communicate(timeout=40)
    return child.returncode, out, err


def test_a_fault_is_said_served_and_sent_once(machine: Machine, receiver: Receiver) -> None:
    port = free_port()
    receiver.statuses = [503, 429]
    words = ("--listen", f"127.0.0.1:{port}", "--webhook", receiver.url, "--format", "json")
    with machine.watch(*words) as child:
        until(lambda: get(port, "/readyz")[0] == 200)
        assert 'gpudiag_alerts{severity="critical"} 0.0' in get(port, "/metrics")[1]
        machine.log(QUIET + XID + "\n")
        until(lambda: 'gpudiag_alerts{severity="critical"} 1.0' in get(port, "/metrics")[1])
        assert get(port, "/healthz")[0] == 200
        assert json.loads(get(port, "/diagnosis")[1])["schema"] == "gpudiag/diagnosis/1"
        (alert,) = json.loads(get(port, "/alerts")[1])["alerts"]
        assert (alert["rule"], alert["xid"]) == ("gpu-fell-off-bus", 79)
        until(lambda: receiver.got)
        time.sleep(3)
        assert get(port, "/nothing")[0] == 404
        code, out, err = stop(child)
    assert code == 1
    assert len(receiver.got) == 1, "a change is told once, however often the receiver had refused it"
    body = receiver.got[0][1]
    assert (body["schema"], body["status"], body["severity"], body["action"]["bucket"]) == (
        "gpudiag/alert/1", "firing", "critical", "RESTART_BM",
    )  # fmt: skip
    assert json.loads(out.splitlines()[0])["fingerprint"] == body["fingerprint"]
    assert "FIRING critical" in err
    assert "secret-token" not in err
    assert "Traceback" not in err


def test_a_restart_neither_forgets_nor_repeats(machine: Machine, receiver: Receiver) -> None:
    machine.log(QUIET + XID + "\n")
    hook = ("--webhook", receiver.url)
    receiver.statuses = [500] * 1000  # down
    with machine.watch(*hook) as child:
        until(
            lambda: (
                (machine.folder / "state/watch.json").exists()
                and "gpu-fell" in (machine.folder / "state/watch.json").read_text()
            )
        )
        child.kill()
        child.wait()
    kept = (machine.folder / "state/watch.json").read_text()
    assert "secret-token" not in kept, "an address is a secret"
    receiver.statuses = []
    state = json.loads(kept)
    for message in state["outbox"]:
        message["due"] = 0  # the pause before the next try is over
    (machine.folder / "state/watch.json").write_text(json.dumps(state))
    with machine.watch(*hook, "--rounds", "4") as child:
        _, err = child.communicate(timeout=60)
    assert [body["status"] for _, body in receiver.got] == ["firing"]
    assert "FIRING" not in err


def test_a_log_that_cannot_be_read_any_more_clears_nothing(machine: Machine) -> None:
    machine.log(QUIET + XID + "\n")
    with machine.watch("--rounds", "1"):
        until(lambda: "gpu-fell" in (machine.folder / "state/watch.json").read_text())
    (machine.folder / "bin/dmesg").write_text(
        "#!/bin/sh\necho 'dmesg: read kernel buffer failed: Operation not permitted' >&2; exit 1\n"
    )
    with machine.watch("--rounds", "6", "--clear-after", "1") as child:
        _, err = child.communicate(timeout=60)
    assert "RESOLVED" not in err
    assert json.loads((machine.folder / "state/watch.json").read_text())["book"]["alerts"]


def test_what_went_away_and_was_looked_for_is_resolved(machine: Machine, receiver: Receiver) -> None:
    machine.log(QUIET + XID + "\n")
    with machine.watch("--clear-after", "1", "--webhook", f"slack+{receiver.url}", "--rounds", "40") as child:
        until(lambda: receiver.got)
        machine.log(QUIET)
        until(lambda: len(receiver.got) == 2)
        stop(child)
    fired, resolved = (body for _, body in receiver.got)
    assert "*Do next:* `RESTART_BM`" in json.dumps(fired)
    assert resolved["text"].startswith("resolved: ")


def test_an_address_that_is_taken_is_one_sentence(machine: Machine) -> None:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        with machine.watch("--listen", f"127.0.0.1:{s.getsockname()[1]}") as child:
            _, err = child.communicate(timeout=60)
    assert child.returncode == 2
    assert "cannot listen on 127.0.0.1" in err
    assert "Traceback" not in err


def test_systemd_is_told(machine: Machine) -> None:
    path = machine.folder / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(str(path))
        s.settimeout(40)
        machine.env = machine.env | {"NOTIFY_SOCKET": str(path)}
        with machine.watch("--rounds", "2") as child:
            got: list[str] = []
            while not got or not got[-1].startswith("STOPPING"):
                got.append(s.recv(4096).decode())
            child.wait(30)
    assert any(line.startswith("STATUS=") for line in got)
    assert "READY=1" in got
    assert "WATCHDOG=1" in got


def test_a_real_prometheus_scrapes_it(machine: Machine, require: Callable[[str], str], tmp_path: Path) -> None:
    prometheus = require("prometheus")
    port, own = free_port(), free_port()
    machine.log(QUIET + XID + "\n")
    config = tmp_path / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: gpudiag\n  static_configs:\n"
        f"  - targets: ['127.0.0.1:{port}']\n"
    )
    server = [
        prometheus,
        f"--config.file={config}",
        f"--storage.tsdb.path={tmp_path / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{own}",
    ]
    with machine.watch("--listen", f"127.0.0.1:{port}"), subprocess.Popen(server, stderr=subprocess.DEVNULL) as child:
        try:
            found = until(lambda: query(own, 'gpudiag_alert{rule="gpu-fell-off-bus"}'))
            assert found[0]["metric"]["action"] == "RESTART_BM"
            assert found[0]["metric"]["xid"] == "79"
            assert query(own, "gpudiag_verdict == 1")[0]["metric"]["state"] == "unhealthy"
            until(lambda: query(own, "increase(gpudiag_rounds_total[1m]) > 0"))
        finally:
            child.kill()
    if promtool := shutil.which("promtool"):
        with machine.watch("--listen", f"127.0.0.1:{port}"):
            until(lambda: get(port, "/readyz")[0] == 200)
            text = get(port, "/metrics")[1]
        done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def query(port: int, text: str) -> list[dict[str, Any]]:
    url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": text})
    with urllib.request.urlopen(url, timeout=10) as answer:
        result: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return result
