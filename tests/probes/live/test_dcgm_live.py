"""``dcgmi`` and ``nvidia-smi topo`` through a live host, with tools that answer, fail, hang and babble."""

from __future__ import annotations

from pathlib import Path

import pytest

from knowledge.observation import Observation, Scope, Status
from probes.host import RecordingHost, ReplayHost
from probes.live import Cost, ProbeRequest, ProbeSpec, dcgm_diag, dcgm_health, nvidia_smi_topo
from probes.live_host import LiveHost
from tests.probes.live.machine import tool
from tests.probes.parse.smi_case import CAPTURES, all_of, events, one, status, value
from tests.probes.parse.vocabulary_check import faults_of

pytestmark = pytest.mark.process

HEALTHY = """
echo '{"body": {"Overall Health": {"value": "Healthy"}}, "header": ["Health Monitor Report"]}'
"""
MATRIX = """
cat <<'END'
\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV18\tPIX\t0-31\t0\t\tN/A
GPU1\tNV18\t X \tSYS\t32-63\t1\t\tN/A
NIC0\tPIX\tSYS\t X \t\t\t\t

Legend:

  X    = Self

NIC Legend:

  NIC0: mlx5_0

END
"""


def asked(folder: Path, spec: ProbeSpec, name: str, script: str, deadline: float | None = None) -> list[Observation]:
    tool(folder / "bin", name, script)
    with LiveHost(environ={"PATH": f"{folder / 'bin'}:/usr/bin:/bin"}) as live:
        host = RecordingHost(live)
        request = ProbeRequest(deadline or spec.deadline)
        got = spec.collect(request, host)
        assert spec.collect(request, ReplayHost(host.name, host.replies, host.as_of)) == got
    # What a tool would have told of its GPUs is missing on the node: which GPUs there are is not known.
    assert not faults_of([o for o in got if o.status.answered or o.subject.scope is not Scope.NODE], spec.provides)
    return got


@pytest.fixture(params=[dcgm_health.PROBE, dcgm_diag.PROBE], ids=lambda spec: spec.name)
def spec(request: pytest.FixtureRequest) -> ProbeSpec:
    found: ProbeSpec = request.param
    return found


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("sleep 600", Status.TIMEOUT),
        ("trap '' TERM INT; sleep 600", Status.TIMEOUT),
        ("head -c 300000 /dev/urandom", Status.FAILED),
        ("exit 0", Status.FAILED),
        ("exit 226", Status.FAILED),
        ("kill -SEGV $$", Status.FAILED),
        ("echo 'Error: unable to establish a connection to the specified host: localhost'; exit 1", Status.FAILED),
        ('echo \'{"body": {"Overall\'; exit 1', Status.FAILED),
        ("echo 'Permission denied' >&2; exit 1", Status.DENIED),
    ],
)
def test_no_answer_has_a_reason_and_is_never_healthy(
    tmp_path: Path, spec: ProbeSpec, script: str, expected: Status
) -> None:
    got = asked(tmp_path, spec, "dcgmi", script, 1.5)
    found = all_of(got, spec.main[0])
    assert [o.status for o in found] == [expected]
    assert all(o.detail for o in found)
    assert not any(o.status.answered for o in got)


def test_it_is_not_installed(spec: ProbeSpec) -> None:
    with LiveHost(environ={"PATH": "/nowhere"}) as host:
        if host.run(["dcgmi", "--version"], deadline=5).status is not Status.UNSUPPORTED:
            pytest.skip("dcgmi is installed here")
        got = spec.collect(ProbeRequest(1.0), host)
    assert [(o.fact, o.status) for o in got] == [(spec.main[0], Status.UNSUPPORTED)]


def test_healthy(tmp_path: Path) -> None:
    got = asked(tmp_path, dcgm_health.PROBE, "dcgmi", HEALTHY)
    assert value(got, "node.dcgm.health") == "healthy"
    assert status(got, "dcgm_health_node") is Status.NONE_SEEN


def test_healthy_from_a_tool_that_fails_reassures_nobody(tmp_path: Path) -> None:
    got = asked(tmp_path, dcgm_health.PROBE, "dcgmi", HEALTHY + "exit 1")
    assert not [o for o in got if o.status is Status.NONE_SEEN]


@pytest.mark.parametrize("ending", ["exit 0", "exit 1"])
def test_a_failure_counts_whatever_the_exit_code(tmp_path: Path, ending: str) -> None:
    got = asked(tmp_path, dcgm_health.PROBE, "dcgmi", f"cat {CAPTURES}/dcgm/health-v4.json\n{ending}")
    assert [e.get("system") for e in events(got, "dcgm_health")] == ["thermal"]


def test_watches_that_are_off_were_not_asked(tmp_path: Path) -> None:
    script = "echo 'Error: Health watches not enabled. Please enable watches.'; exit 1"
    assert one(asked(tmp_path, dcgm_health.PROBE, "dcgmi", script), "node.dcgm.health").status is Status.NOT_ASKED


def test_a_diagnostic_that_found_something_ends_with_an_error_and_is_whole(tmp_path: Path) -> None:
    got = asked(tmp_path, dcgm_diag.PROBE, "dcgmi", f"cat {CAPTURES}/dcgm/diag-v4.json; exit 226")
    assert status(got, "node.dcgm.diag.result") is Status.OK
    assert all(o.status is Status.OK for o in all_of(got, "node.dcgm.diag.tests_failed"))


def test_what_each_may_do() -> None:
    assert dcgm_health.PROBE.default
    assert dcgm_health.ARGV == ("dcgmi", "health", "-c", "-j")
    assert (dcgm_diag.PROBE.default, dcgm_diag.PROBE.cost) == (False, Cost.HEAVY)
    assert dcgm_diag.PROBE.side_effects
    assert not nvidia_smi_topo.PROBE.default


def test_the_matrix(tmp_path: Path) -> None:
    got = asked(tmp_path, nvidia_smi_topo.PROBE, "nvidia-smi", MATRIX)
    assert [o.value for o in all_of(got, "gpu.nearest_nic", "index:0")] == ["nic:mlx5_0"]
    assert value(got, "gpu.numa", "index:1") == 1


@pytest.mark.parametrize(
    ("script", "expected"),
    [("sleep 600", Status.TIMEOUT), ("exit 9", Status.FAILED), ("echo nonsense", Status.FAILED)],
)
def test_no_matrix_has_a_reason(tmp_path: Path, script: str, expected: Status) -> None:
    got = asked(tmp_path, nvidia_smi_topo.PROBE, "nvidia-smi", script, 1.5)
    assert {(o.fact, o.status) for o in got} == {(fact, expected) for fact in nvidia_smi_topo.MAIN}
