"""A driver call that was given up shows that the driver hangs, unless it was given no time to answer."""

from __future__ import annotations

import pytest

from knowledge.observation import Status
from probes.host import CallKind, ReplayHost, Reply
from probes.live import ProbeSpec, nvidia_smi, nvml
from probes.runner import run

CALLS = ((nvml.PROBE, (CallKind.SNAPSHOT, ("nvml",))), (nvidia_smi.PROBE, (CallKind.COMMAND, nvidia_smi.ARGV)))


@pytest.mark.parametrize(("spec", "call"), CALLS)
@pytest.mark.parametrize(
    ("detail", "value", "status"),
    [
        ("no end after 0.0958 s", None, Status.TIMEOUT),
        ("no end after 1.99 s", None, Status.TIMEOUT),
        ("no end after 25 s", "unresponsive", Status.OK),
        ("no end after 0.0958 s; process 812 cannot be killed (state D in nvidia_ioctl)", "unresponsive", Status.OK),
        ("", "unresponsive", Status.OK),
    ],
)
def test_a_call_without_time_shows_nothing(
    spec: ProbeSpec, call: tuple[CallKind, tuple[str, ...]], detail: str, value: str | None, status: Status
) -> None:
    host = ReplayHost("n1", [Reply(*call, Status.TIMEOUT, detail=detail)])
    (result,) = run(host, [spec])
    found = [(o.value, o.status) for o in result.observations if o.fact == "node.driver.state"]
    assert found == [(value, status)]
