"""The shipped unit of ``gpudiag slack`` under a real systemd: it has its tokens, says when it is ready, answers, and ends well."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("slack_bolt")

from tests.assistant.incidents.test_incident_unit import LAYOUT
from tests.assistant.watch.systemd_lab import ROOT, run, serving, until
from tests.conftest import Gpudiag
from tests.slack_bot import Lab, settings
from tests.slack_lab import Slack

UNIT = ROOT / "assistant" / "deploy" / "gpudiag-slack.service"
# What the machine of a test lacks or has elsewhere: the checkout and its Python may lie in somebody's home.
HERE = """[Unit]
DefaultDependencies=no
[Service]
ProtectHome=read-only
BindReadOnlyPaths={root} {folder}/etc
LoadCredential=
LoadCredential=bot-token:{folder}/bot-token
LoadCredential=app-token:{folder}/app-token
Environment=GPUDIAG_POLICY_FILE={folder}/etc/policy.toml GPUDIAG_SLACK_API={api} GPUDIAG_HOST_NAME=gpu-12
StandardError=append:{folder}/log
"""


def test_the_unit_as_it_is_printed(gpudiag: Gpudiag) -> None:
    printed = gpudiag("slack", "--print", "systemd")
    assert (printed.code, printed.out) == (0, UNIT.read_text())


def test_systemd_runs_it_as_shipped(tmp_path: Path, gpudiag: Gpudiag, clean_environment: dict[str, str]) -> None:
    gpudiag("explain", "xid", "79")  # compiles the data
    cache = Path(clean_environment["GPUDIAG_CACHE_DIR"])
    with Slack() as slack:
        slack.add_user("U1", name="u1")
        slack.add_channel("C1")
        settings(tmp_path / "etc", slack)  # the policy
        conf = HERE.format(root=ROOT, folder=tmp_path, api=slack.base_url)
        (tmp_path / "bot-token").write_text(slack.bot_token + "\n")
        (tmp_path / "app-token").write_text(slack.app_token + "\n")
        with serving(tmp_path, UNIT, conf, cache, LAYOUT) as pid:

            def why() -> str:
                log = tmp_path / "log"
                return (log.read_text() if log.exists() else "") + run(pid, "systemctl", "status", UNIT.name)

            until(lambda: run(pid, "systemctl", "is-active", UNIT.name) == "active", 40, why)
            until(lambda: slack.connected > 0, 20, why)
            here = Lab(slack, None, "")  # type: ignore[arg-type]  # the bot is a process of its own

            async def asked() -> str:
                return (await here.answer(await here.command("explain xid 79"))).text

            assert "79" in asyncio.run(asked()), why()
            run(pid, "systemctl", "stop", UNIT.name)
            assert run(pid, "systemctl", "show", "-P", "Result", UNIT.name) == "success", why()
