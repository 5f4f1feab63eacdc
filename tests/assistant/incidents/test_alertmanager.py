"""A real Alertmanager posts to a real listener: it groups, repeats, resolves, and comes again after an outage."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from assistant.incidents.book import Book
from assistant.incidents.fold import Incident
from tests.command_server import Command, CommandServer
from tests.components import component
from tests.conftest import ROOT

TOKEN = "a-token-that-nobody-guesses"
CONFIG = """
route:
  receiver: gpudiag
  group_by: [alertname]
  group_wait: 200ms
  group_interval: 400ms
  repeat_interval: 1s
receivers:
  - name: gpudiag
    webhook_configs:
      - url: http://127.0.0.1:{port}/alertmanager
        send_resolved: true
        http_config:
          authorization: {{credentials_file: {token}}}
"""


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def until(true: Callable[[], bool], what: str, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.1)


class Manager:
    """Alertmanager on loopback."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ready(self) -> bool:
        try:
            return bool(self._get("/-/ready"))
        except OSError:
            return False

    def fire(self, name: str, instance: str, **labels: str) -> None:
        self._tell(name, instance, labels, timedelta(0), timedelta(hours=1))

    def resolve(self, name: str, instance: str, **labels: str) -> None:
        self._tell(name, instance, labels, timedelta(milliseconds=-1), timedelta(0))

    def _tell(self, name: str, instance: str, labels: Mapping[str, str], starts: timedelta, ends: timedelta) -> None:
        now = datetime.now(UTC)
        row = {"labels": {"alertname": name, "instance": instance, **labels}, "annotations": {"summary": f"{name} there"},
               "startsAt": (now + starts).isoformat(), "endsAt": (now + ends).isoformat()}  # fmt: skip
        ask = urllib.request.Request(
            f"{self.url}/api/v2/alerts", json.dumps([row]).encode(), {"Content-Type": "application/json"}
        )
        urllib.request.urlopen(ask, timeout=10).close()

    def sent(self, metric: str = "notification_requests_total") -> int:
        found = re.search(rf'alertmanager_{metric}{{integration="webhook"}} (\d+)', self._get("/metrics"))
        return int(found[1]) if found else 0

    def _get(self, path: str) -> str:
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            text: str = answer.read().decode()
            return text


@contextmanager
def process(argv: list[str], log: Path, **more: Any) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("ab") as out, subprocess.Popen(argv, stdout=out, stderr=out, **more) as child:
        try:
            yield child
        finally:
            child.kill()


@contextmanager
def listener(server: CommandServer, words: list[str], log: Path, environment: dict[str, str]) -> Iterator[Command]:
    """``gpudiag WORDS``, with what it says in a file."""
    with log.open("ab") as out, Path(os.devnull).open("rb") as nothing:
        child = server.begin(words, [nothing.fileno(), out.fileno(), out.fileno()], env=environment)
        try:
            yield child
        finally:
            child.kill()
            child.wait()


@pytest.fixture
def place(tmp_path: Path) -> tuple[Path, int]:
    """A folder with the token, and the port for the listener."""
    (tmp_path / "token").write_text(TOKEN + "\n")
    return tmp_path, free_port()


@pytest.fixture
def manager(place: tuple[Path, int]) -> Iterator[Manager]:
    program = component("alertmanager")
    folder, port = place
    (folder / "am.yml").write_text(CONFIG.format(port=port, token=folder / "token"))
    own = free_port()
    argv = [program, f"--config.file={folder}/am.yml", f"--storage.path={folder}/am", f"--web.listen-address=127.0.0.1:{own}",
            "--cluster.listen-address="]  # fmt: skip
    with process(argv, folder / "am.log"):
        here = Manager(f"http://127.0.0.1:{own}")
        until(here.ready, "Alertmanager does not start")
        yield here


@pytest.mark.process
def test_grouped_repeated_resolved_and_after_an_outage(
    manager: Manager, place: tuple[Path, int], clean_environment: dict[str, str], command_server: CommandServer
) -> None:
    folder, port = place
    address = f"sqlite:///{folder}/history.db"
    book, environment = Book(address), clean_environment | {"GPUDIAG_HISTORY_URL": address}
    words = ["incident", "listen", "--address", f"127.0.0.1:{port}", "--token-file", f"{folder}/token"]

    def state(number: int) -> tuple[str, int]:
        found = {i.number: i for i in book.incidents()}.get(number, Incident())
        return str(found.status), sum(e.kind == "alert" for e in found.events)

    with listener(command_server, words, folder / "listen.log", environment):
        lost = {"rule": "gpu-fell-off-bus", "subject": "gpu 0000:3b:00.0", "xid": "79", "severity": "critical"}
        manager.fire("GpuLost", "gpu-12:9400", **lost)
        manager.fire("GpuLost", "gpu-13:9400", gpu="3")
        until(lambda: state(1) == ("open", 2), "two alerts of one group")
        manager.fire("GpuHot", "gpu-12:9400")
        until(lambda: state(2) == ("open", 1), "another group")
        before = manager.sent()
        until(lambda: manager.sent() >= before + 3, "repeat_interval")
        assert (state(1), state(2), len(book.incidents())) == (("open", 2), ("open", 1), 2), "repetitions add nothing"
        first = book.incident(1)
        assert set(first.hosts) == {"gpu-12", "gpu-13"}
        assert (first.severity, first.runbooks) == ("critical", ("gpu-off-bus",))
        assert [f.key for f in first.findings] == ["gpu-fell-off-bus@gpu-12/0000:3b:00.0"]
        manager.resolve("GpuLost", "gpu-13:9400", gpu="3")
        until(lambda: state(1) == ("open", 3), "one of two is over")
    manager.resolve("GpuLost", "gpu-12:9400", **lost)
    failed = manager.sent("notification_requests_failed_total")
    until(lambda: manager.sent("notification_requests_failed_total") > failed, "nobody listens")
    assert state(1) == ("open", 3)
    with listener(command_server, words, folder / "listen.log", environment) as again:
        until(lambda: state(1) == ("mitigated", 4), "told again once somebody listens")
        manager.fire("GpuLost", "gpu-12:9400", **lost)
        until(lambda: state(1) == ("open", 5), "it fires again")
        assert len(book.incidents()) == 2
        again.terminate()
        assert again.wait(15) == 0
    assert "refused" not in (folder / "listen.log").read_text()


@pytest.mark.process
def test_a_wrong_token_and_a_history_that_is_away_are_seen_in_its_metrics(
    manager: Manager, place: tuple[Path, int], clean_environment: dict[str, str], command_server: CommandServer
) -> None:
    folder, port = place
    data = folder / "data"
    data.write_text("a file where a folder is wanted")
    environment = clean_environment | {"GPUDIAG_HISTORY_URL": f"sqlite:///{data}/history.db"}
    words = ["incident", "listen", "--address", f"127.0.0.1:{port}", "--token-file"]
    (folder / "other").write_text("another-token-than-that-one")
    with listener(command_server, [*words, f"{folder}/other"], folder / "listen.log", environment):
        manager.fire("GpuLost", "gpu-12:9400")
        until(lambda: "401" in (folder / "listen.log").read_text(), "the token is another one")
    with listener(command_server, [*words, f"{folder}/token"], folder / "listen.log", environment):
        until(lambda: "503" in (folder / "listen.log").read_text(), "the history cannot be used")
        data.unlink()
        until(lambda: len(Book(environment["GPUDIAG_HISTORY_URL"]).incidents()) == 1, "it was told again")


# --- what the page says -------------------------------------------------------------------


def blocks() -> tuple[str, str]:
    """Alertmanager's part of the page, and Prometheus's."""
    page = (ROOT / "docs" / "alertmanager.md").read_text()
    receiver, rules = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    return receiver, rules


@pytest.mark.process
def test_the_receiver_of_the_page_is_one(tmp_path: Path) -> None:
    component("alertmanager")
    amtool = shutil.which("amtool")
    assert amtool is not None, "it comes with Alertmanager"
    (tmp_path / "am.yml").write_text(blocks()[0])
    done = subprocess.run(
        [amtool, "check-config", str(tmp_path / "am.yml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.process
def test_the_rule_of_the_page_gives_the_labels_that_are_read(tmp_path: Path) -> None:
    promtool = component("promtool")
    (tmp_path / "rules.yml").write_text(blocks()[1])
    (tmp_path / "test.yml").write_text("""
rule_files: [rules.yml]
tests:
  - interval: 1m
    input_series:
      - {series: 'gpudiag_info{version="1", host="gpu-12", instance="10.0.0.7:9836"}', values: '1 1 1'}
      - series: 'gpudiag_alert{rule="gpu-fell-off-bus",severity="critical",subject="gpu 0000:3b:00.0",xid="79",action="RESTART_BM",phase="firing",instance="10.0.0.7:9836"}'
        values: '1 1 _'
      - series: 'gpudiag_alert{rule="gpu-fell-off-bus",severity="critical",subject="gpu 0000:3b:00.0",xid="79",action="RESTART_BM",phase="holding",instance="10.0.0.7:9836"}'
        values: '_ _ 1'
    alert_rule_test:
      - eval_time: 2m
        alertname: GpudiagFinding
        exp_alerts:
          - exp_labels: {host: gpu-12, instance: '10.0.0.7:9836', rule: gpu-fell-off-bus, severity: critical, subject: 'gpu 0000:3b:00.0', xid: '79'}
            exp_annotations: {summary: 'gpu-fell-off-bus: gpu 0000:3b:00.0 of gpu-12'}
""")
    done = subprocess.run(
        [promtool, "test", "rules", str(tmp_path / "test.yml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
