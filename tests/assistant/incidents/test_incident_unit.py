"""The shipped unit of ``gpudiag incident listen`` under a real systemd: it starts, has its token, loses nothing, ends well."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.assistant.incidents.alert_lab import alert, message
from tests.assistant.incidents.test_listen import request
from tests.assistant.watch.systemd_lab import HIDDEN, ROOT, until
from tests.conftest import Gpudiag
from tests.systemd_pid1 import systemd, within

UNIT = ROOT / "assistant" / "deploy" / "gpudiag-incidents.service"
TOKEN = "0123456789abcdef-token"
LAYOUT = f"""
mount --make-rshared /  # as on a machine: what systemd mounts for the token is seen by the service
for place in {" ".join(HIDDEN)}; do mount -t tmpfs -o mode=755 none $place; done
mkdir -p /etc/systemd/system /run/systemd/system /opt/gpudiag/bin /var/cache/gpudiag
cp -r "$1"/units/* /etc/systemd/system/
cp "$1/gpudiag" /opt/gpudiag/bin/gpudiag
cp -r "$1/cache/." /var/cache/gpudiag/
"""
# What the machine of a test lacks or has elsewhere: the checkout and its Python may lie in somebody's home.
HERE = """[Unit]
DefaultDependencies=no
[Service]
ProtectHome=read-only
BindReadOnlyPaths={root}
LoadCredential=
LoadCredential=token:{folder}/token
StandardError=append:{folder}/log
ExecStart=
{start}
"""


def test_the_unit_as_it_is_printed(gpudiag: Gpudiag) -> None:
    printed = gpudiag("incident", "listen", "--print", "systemd")
    assert (printed.code, printed.out) == (0, UNIT.read_text())


def test_systemd_runs_it_as_shipped(tmp_path: Path, gpudiag: Gpudiag, clean_environment: dict[str, str]) -> None:
    if any(ROOT.is_relative_to(hidden) for hidden in HIDDEN):
        pytest.skip(f"the unit's own folders hide this checkout: {ROOT}")
    gpudiag("incident", "--all")  # compiles the data
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (start,) = [line for line in UNIT.read_text().splitlines() if line.startswith("ExecStart=")]
    assert "127.0.0.1:9196" in start
    start = start.replace("127.0.0.1:9196", f"127.0.0.1:{port}")
    drop = tmp_path / "units" / f"{UNIT.name}.d"
    drop.mkdir(parents=True)
    shutil.copy(UNIT, drop.parent)
    (drop / "test.conf").write_text(HERE.format(root=ROOT, folder=tmp_path, start=start))
    (drop.parent / "test.target").write_text(f"[Unit]\nDefaultDependencies=no\nWants={UNIT.name}\n")
    (tmp_path / "token").write_text(TOKEN)
    program = tmp_path / "gpudiag"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -B -m assistant "$@"\n')
    program.chmod(0o755)
    cache = Path(clean_environment["GPUDIAG_CACHE_DIR"])
    cache.mkdir(parents=True, exist_ok=True)
    shutil.copytree(cache, tmp_path / "cache")

    def run(pid: int, *words: str) -> str:
        done = subprocess.run([*within(pid), *words], capture_output=True, text=True, timeout=30, check=False)
        return (done.stdout + done.stderr).strip()

    def ready(pid: int) -> bool:
        return run(pid, "systemctl", "is-system-running") in ("running", "degraded", "starting")

    with systemd(tmp_path, LAYOUT, ready) as pid:

        def why() -> str:
            log = tmp_path / "log"
            return (log.read_text() if log.exists() else "") + run(pid, "systemctl", "status", UNIT.name)

        def posted(status: str) -> dict[str, object]:
            body = message([alert("a", status)])
            code, answer = request(port, body, Authorization=f"Bearer {TOKEN}")
            assert code == 200, (code, answer, why())
            return answer

        until(lambda: "listens" in (tmp_path / "log").read_text(), 20, why)
        assert request(port, message([alert("a")]))[0] == 401  # the credential counts
        assert posted("firing")["new"] is True
        run(pid, "systemctl", "restart", UNIT.name)
        until(lambda: (tmp_path / "log").read_text().count("listens") == 2, 20, why)
        assert posted("resolved")["incident"] == 1  # kept over the restart
        env = [
            "env",
            "HOME=/var/lib/gpudiag",
            "GPUDIAG_STATE_DIR=/var/lib/gpudiag",
            "GPUDIAG_CACHE_DIR=/var/cache/gpudiag",
        ]
        shown = run(pid, *env, "/opt/gpudiag/bin/gpudiag", "incident", "show", "1", "--format", "json")
        assert json.loads(shown)["incident"]["status"] == "mitigated"
        run(pid, "systemctl", "stop", UNIT.name)
        assert run(pid, "systemctl", "show", "-P", "Result", UNIT.name) == "success"
