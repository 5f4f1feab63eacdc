"""The shipped unit of ``gpudiag incident listen`` under a real systemd: it starts, has its token, loses nothing, ends well."""

from __future__ import annotations

import json
import socket
from pathlib import Path

from tests.assistant.incidents.alert_lab import alert, message
from tests.assistant.incidents.test_listen import request
from tests.assistant.watch.systemd_lab import INSIDE, ROOT, run, serving, until
from tests.conftest import Gpudiag

UNIT = ROOT / "assistant" / "deploy" / "gpudiag-incidents.service"
TOKEN = "0123456789abcdef-token"
LAYOUT = f"mount --make-rshared /  # as on a machine: what systemd mounts for the token is seen by the service{INSIDE}"
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
    gpudiag("incident", "--all")  # compiles the data
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (start,) = [line for line in UNIT.read_text().splitlines() if line.startswith("ExecStart=")]
    assert "127.0.0.1:9196" in start
    start = start.replace("127.0.0.1:9196", f"127.0.0.1:{port}")
    (tmp_path / "token").write_text(TOKEN)
    conf = HERE.format(root=ROOT, folder=tmp_path, start=start)
    cache = Path(clean_environment["GPUDIAG_CACHE_DIR"])

    with serving(tmp_path, UNIT, conf, cache, LAYOUT) as pid:

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
