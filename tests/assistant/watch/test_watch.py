"""`gpudiag watch` as a real process: a real Prometheus scrapes it, a real receiver gets its messages, a restart forgets nothing."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import sqlite3
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

from tests.command_server import Command, CommandServer
from tests.conftest import Gpudiag

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
    server: CommandServer
    name: str = "n1"

    def log(self, text: str) -> None:
        part = self.folder / "part"
        part.write_text(text)
        part.replace(self.folder / "log")

    @contextmanager
    def watch(self, *words: str, fresh: bool = False) -> Iterator[Command | subprocess.Popen[str]]:
        """The command; `fresh`: in an interpreter of its own."""
        argv = ["watch", "--probe", "kernel-log", "--interval", "0.3", *words]
        env = {"GPUDIAG_HISTORY_URL": "off"} | self.env | {"GPUDIAG_STATE_DIR": str(self.folder / "state"), "GPUDIAG_HOST_NAME": self.name,
                          "GPUDIAG_HOST_ROOT": str(self.folder / "root"),
                          "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}  # fmt: skip
        with self._begun(argv, env, fresh) as child:
            try:
                yield child
            finally:
                child.kill()

    def _begun(self, argv: list[str], env: dict[str, str], fresh: bool) -> Command | subprocess.Popen[str]:
        if not fresh:
            return self.server.start(argv, env=env)
        whole = [sys.executable, "-m", "assistant", *argv]
        return subprocess.Popen(whole, env=env, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def machine(tmp_path: Path, clean_environment: dict[str, str], command_server: CommandServer) -> Machine:
    for name in ("bin", "root/proc/sys/kernel"):
        (tmp_path / name).mkdir(parents=True)
    for name, script in (("dmesg", f"cat {tmp_path}/log"), ("journalctl", "exit 1")):
        path = tmp_path / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    here = Machine(tmp_path, clean_environment, command_server)
    here.log(QUIET)
    return here


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def stop(child: Command | subprocess.Popen[str]) -> tuple[int, str, str]:
    child.send_signal(signal.SIGTERM)
    out, err = child.communicate(timeout=40)
    return child.wait(), out, err


@pytest.mark.process
def test_a_fault_is_said_served_and_sent_once(machine: Machine, receiver: Receiver) -> None:
    port = free_port()
    receiver.statuses = [503]
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
        time.sleep(1)
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


@pytest.mark.process
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


@pytest.mark.process
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


@pytest.mark.process
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


@pytest.mark.process
def test_an_address_that_is_taken_is_one_sentence(machine: Machine) -> None:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        with machine.watch("--listen", f"127.0.0.1:{s.getsockname()[1]}") as child:
            _, err = child.communicate(timeout=60)
    assert child.returncode == 2
    assert "cannot listen on 127.0.0.1" in err
    assert "Traceback" not in err


@pytest.mark.process
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


@pytest.mark.process
def test_a_real_prometheus_scrapes_it(machine: Machine, require: Callable[[str], str], tmp_path: Path) -> None:
    prometheus = require("prometheus")
    port, own = free_port(), free_port()
    machine.log(QUIET + XID + "\n")
    config = tmp_path / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 200ms}\nscrape_configs:\n- job_name: gpudiag\n  static_configs:\n"
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
            text = get(port, "/metrics")[1]
        finally:
            child.kill()
    promtool = require("promtool")
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def query(port: int, text: str) -> list[dict[str, Any]]:
    url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": text})
    with urllib.request.urlopen(url, timeout=10) as answer:
        result: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return result


# --- what goes wrong around it ------------------------------------------------------------


@pytest.mark.process
def test_it_stops_within_seconds_though_a_probe_hangs(machine: Machine) -> None:
    (machine.folder / "bin/journalctl").write_text("#!/bin/sh\ntrap '' TERM\ntouch $0.runs\nsleep 600\n")
    with machine.watch(fresh=True) as child:
        until((machine.folder / "bin/journalctl.runs").exists)
        code, _, err = stop(child)
    assert code == 3, "nothing was found out"
    assert "Traceback" not in err
    left = subprocess.run(["pgrep", "-f", str(machine.folder / "bin/journalctl")], capture_output=True, check=False)
    assert not left.stdout, "no child is left behind"


@pytest.mark.process
def test_a_receiver_that_never_answers_delays_neither_checks_nor_others_nor_the_end(
    machine: Machine, receiver: Receiver
) -> None:
    port = free_port()
    machine.log(QUIET + XID + "\n")
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()  # takes connections, and says nothing
        silent = f"http://127.0.0.1:{mute.getsockname()[1]}/"
        words = ("--webhook", silent, "--webhook", receiver.url, "--listen", f"127.0.0.1:{port}")
        with machine.watch(*words) as child:
            until(lambda: receiver.got)
            before = number(port, "gpudiag_rounds_total")
            until(lambda: number(port, "gpudiag_rounds_total") >= before + 3)
            stop(child)
    (kept,) = json.loads((machine.folder / "state/watch.json").read_text())["outbox"]
    assert json.loads(kept["body"])["rule"] == "gpu-fell-off-bus"


def number(port: int, name: str) -> float:
    return next(float(line.split()[1]) for line in get(port, "/metrics")[1].splitlines() if line.startswith(name + " "))


@pytest.mark.process
def test_slow_clients_do_not_keep_others_out(machine: Machine) -> None:
    if not socket.has_ipv6:
        pytest.skip("there is no IPv6 here")
    with machine.watch("--listen", "[::1]:0") as child:
        assert child.stderr is not None
        line = next(line for line in child.stderr if "metrics on" in line)
        port = int(line.split("http://[::1]:")[1].split("/")[0])
        slow = [socket.create_connection(("::1", port)) for _ in range(60)]
        try:
            for s in slow:
                with contextlib.suppress(OSError):
                    s.sendall(b"GET /metr")
            until(
                lambda: (
                    "gpudiag_rounds"
                    in urllib.request.urlopen(f"http://[::1]:{port}/metrics", timeout=5).read().decode()
                )
            )
            assert len(list(Path(f"/proc/{child.pid}/task").iterdir())) < 60
        finally:
            for s in slow:
                s.close()
        stop(child)


@pytest.mark.process
def test_a_round_is_kept_in_the_history_by_another_process(machine: Machine) -> None:
    path = machine.folder / "history.db"
    machine.env = machine.env | {"GPUDIAG_HISTORY_URL": f"sqlite:///{path}"}
    machine.log(QUIET + XID + "\n")
    with machine.watch(fresh=True) as child:
        until(path.exists)
        until(lambda: kept(path) == [("n1", "watch", "gpu-fell-off-bus")])
        assert "sqlalchemy" not in Path(f"/proc/{child.pid}/maps").read_text(), "it is not loaded where it would stay"
        until(lambda: not writers(child.pid))  # what it wrote can be read before it has ended
        _, _, err = stop(child)
    assert "history" not in err


def writers(pid: int) -> list[str]:
    """The processes of a watch that write its history."""
    below = " ".join(of.read_text() for of in Path(f"/proc/{pid}/task").glob("*/children")).split()
    return [p for p in below if b"assistant.watch.keeper" in Path(f"/proc/{p}/cmdline").read_bytes()]


def kept(path: Path) -> list[tuple[str, str, str]]:
    sql = (
        "select distinct host, origin, rule from run join node on node.id = run.node_id"
        " join finding on finding.first_run = run.id where severity = 'critical'"
    )
    with (
        contextlib.suppress(sqlite3.OperationalError),  # it is being made
        contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db,
    ):
        return list(db.execute(sql))
    return []


@pytest.mark.process
def test_a_history_that_cannot_be_written_is_one_line(machine: Machine) -> None:
    (machine.folder / "no").write_text("a file, not a folder")
    machine.env = machine.env | {"GPUDIAG_HISTORY_URL": f"sqlite:///{machine.folder}/no/history.db"}
    with machine.watch() as child:
        assert child.stderr is not None
        line = next(line for line in child.stderr if "history" in line)
        _, _, err = stop(child)
    assert f"{machine.folder}/no" in line
    assert "Traceback" not in err


@pytest.mark.process
def test_it_can_be_told_to_look_at_once(machine: Machine) -> None:
    port = free_port()
    with machine.watch("--listen", f"127.0.0.1:{port}", "--interval", "1000") as child:
        until(lambda: get(port, "/readyz")[0] == 200)
        child.send_signal(signal.SIGHUP)
        until(lambda: number(port, "gpudiag_rounds_total") == 2)
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 0


@pytest.mark.process
def test_a_second_watcher_says_so_and_stops(machine: Machine) -> None:
    with machine.watch() as first:
        until((machine.folder / "state/watch.json").exists)
        with machine.watch() as second:
            _, err = second.communicate(timeout=30)
        assert second.returncode == 2
        assert f"another gpudiag watch (process {first.pid})" in err
        assert first.poll() is None
        first.kill()
    with machine.watch("--rounds", "1") as third:
        third.communicate(timeout=30)
    assert third.returncode == 0, "a lock does not outlive its owner"


@pytest.mark.process
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"schema": "gpudiag/watch/9", "book": {}}', "written by another version"),
        ('{"schema": "gpudiag/wat', "is damaged"),
        ("[]", "is damaged"),
    ],
)
def test_a_state_that_is_not_understood_is_set_aside(machine: Machine, text: str, said: str) -> None:
    state = machine.folder / "state"
    state.mkdir()
    (state / "watch.json").write_text(text)
    with machine.watch("--rounds", "1") as child:
        _, err = child.communicate(timeout=30)
    assert said in err
    assert (state / "watch.json.set-aside").read_text() == text
    assert json.loads((state / "watch.json").read_text())["schema"] == "gpudiag/watch/1"


@pytest.mark.process
def test_without_a_place_for_its_state_it_watches_and_says_so_once(machine: Machine) -> None:
    (machine.folder / "state").write_text("a file, not a folder")
    machine.log(QUIET + XID + "\n")
    with machine.watch("--rounds", "3") as child:
        _, err = child.communicate(timeout=30)
    assert err.count("alerts are not kept over a restart") == 1
    assert err.count("FIRING") == 1
    assert child.returncode == 1


@pytest.mark.process
def test_a_machine_that_gets_another_name_keeps_its_alerts(machine: Machine) -> None:
    machine.log(QUIET + XID + "\n")
    with machine.watch("--rounds", "1") as child:
        child.communicate(timeout=30)
    machine.name = "n2"
    with machine.watch("--rounds", "2") as child:
        _, err = child.communicate(timeout=30)
    assert "FIRING" not in err
    (alert,) = json.loads((machine.folder / "state/watch.json").read_text())["book"]["alerts"].values()
    assert alert["host"] == "n2"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--webhook", "ftp://x/y"), "a webhook is an address"),
        (("--webhook", "https://"), "a webhook is an address"),
        (("--webhook", "http://h:99999/"), "a webhook is an address"),
        (("--webhook-file", "/no/such/file"), "/no/such/file cannot be read"),
        (("--listen", "here:there"), "address such as"),
        (("--listen", "no.such.host.invalid:1"), "cannot listen on"),
        (("--interval", "0"), "number of seconds"),
        (("--probe", "nvmll"), "there is no probe"),
    ],
)
def test_a_wrong_option_is_one_sentence(gpudiag: Gpudiag, words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    answer = gpudiag("watch", *words, env={"GPUDIAG_STATE_DIR": str(tmp_path)})
    assert answer.code == 2
    assert said in answer.err
    assert len(answer.err.strip().splitlines()) <= 3
    assert "Traceback" not in answer.err


@pytest.mark.process
def test_the_alert_rules_of_the_page_are_rules(require: Callable[[str], str], tmp_path: Path) -> None:
    page = (ROOT / "docs/watch.md").read_text()
    (block,) = (part.partition("```")[0] for part in page.split("```yaml\n")[1:])
    path = tmp_path / "rules.yml"
    path.write_text(block)
    done = subprocess.run(
        [require("promtool"), "check", "rules", str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.process
def test_the_page_names_the_metrics_that_there_are(machine: Machine) -> None:
    port = free_port()
    machine.log(QUIET + XID + "\n")
    with machine.watch("--listen", f"127.0.0.1:{port}"):
        until(lambda: get(port, "/readyz")[0] == 200)
        text = get(port, "/metrics")[1]
    there = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    named = set(re.findall(r"gpudiag_[a-z_]+", (ROOT / "docs/watch.md").read_text()))
    assert named == there
