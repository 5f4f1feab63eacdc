"""The bot ends when it is told to, whatever it waits for, and an outage is a line of its log and not a traceback a try."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import pytest

from tests.assistant.slack.test_robust import started
from tests.slack_lab import Slack

LONG = 60  # seconds, on a machine under load: it took for ever before


@pytest.mark.process
async def test_a_server_that_has_gone_away(slack: Slack, tmp_path: Path) -> None:
    child = started(tmp_path, slack)
    try:
        await slack.until(lambda: slack.connected, LONG)
        slack.fail("apps.connections.open", "service_unavailable", times=10_000, status=503)
        before = len(slack.calls)
        slack.cut()
        await slack.until(lambda: sum(c.method == "apps.connections.open" for c in slack.calls[before:]) >= 2, LONG)
        child.send_signal(signal.SIGTERM)
        assert child.wait(LONG) in (0, 130)
        assert child.stderr is not None
        said = child.stderr.read()
    finally:
        child.kill()
        child.wait(LONG)
    assert "Traceback" not in said
    assert said.count("the line to Slack is broken") == 1
    assert len(said.splitlines()) <= 3


@pytest.mark.process
async def test_a_server_that_does_not_answer(slack: Slack, tmp_path: Path) -> None:
    """Told to end before it listens at all: somebody takes the connection, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        slack.base_url = f"http://127.0.0.1:{silent.getsockname()[1]}/api/"
        child = started(tmp_path, slack)
        try:
            silent.settimeout(LONG)
            taken, _ = silent.accept()
            child.send_signal(signal.SIGINT)
            assert child.wait(LONG) in (0, 130)
            assert child.stderr is not None
            assert "Traceback" not in child.stderr.read()
            taken.close()
        finally:
            child.kill()
            child.wait(LONG)
