"""Probes of other vendors' GPUs: quiet where there is none, recorded outputs, tools that fail, and trees of files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from knowledge.identity import resolve
from knowledge.observation import Observation, Status, gpu
from probes.host import CallKind, RecordingHost, ReplayHost, Reply
from probes.live import ProbeRequest, ProbeSpec, amd_smi, amdgpu, hl_smi, npu_smi, probes, xpu_smi
from probes.live_host import LiveHost
from tests.conftest import ROOT
from tests.probes.amd_tree import GPUS, machine, sicken
from tests.probes.collectors.collecting import collect
from tests.probes.live.machine import tool
from tests.probes.parse.vocabulary_check import faults_of

CAPTURES = ROOT / "tests/captures/vendor"
REQUEST = ProbeRequest(5.0)
ALL = (amdgpu.PROBE, amd_smi.PROBE, xpu_smi.PROBE, npu_smi.PROBE, hl_smi.PROBE)
# what has to be there before a tool is started
BOUND = {
    "amdgpu": ("/sys/bus/pci/drivers/amdgpu/0*", f"/sys/bus/pci/drivers/amdgpu/{GPUS[0]}"),
    "amd-smi": ("/sys/bus/pci/drivers/amdgpu/0*", f"/sys/bus/pci/drivers/amdgpu/{GPUS[0]}"),
    "xpu-smi": ("/sys/bus/pci/drivers/xe/0*", "/sys/bus/pci/drivers/xe/0000:29:00.0"),
    "npu-smi": ("/dev/davinci*", "/dev/davinci0"),
    "hl-smi": (hl_smi.THERE, f"{hl_smi.THERE.rstrip('*')}0"),
}


def capture(name: str) -> bytes:
    return (CAPTURES / name).read_bytes()


def ran(argv: Sequence[str], data: bytes, **more: object) -> Reply:
    ended = {} if "status" in more else {"exit_code": 0}
    return Reply(CallKind.COMMAND, tuple(argv), data=data, **(ended | more))  # type: ignore[arg-type] # any field of it


def there(probe: ProbeSpec, *replies: Reply) -> ReplayHost:
    """A node that has a device of the driver."""
    pattern, path = BOUND[probe.name]
    return ReplayHost("gpu-1", [Reply(CallKind.LISTING, (pattern,), data=path.encode() + b"\n"), *replies])


def values(found: Sequence[Observation]) -> dict[tuple[str, str], object]:
    return {(o.fact, o.subject.id): o.value if o.status is Status.OK else o.status for o in resolve(found)}


# --- laws of all ----------------------------------------------------------------------------


@pytest.mark.process
@pytest.mark.parametrize("probe", ALL, ids=lambda p: p.name)
def test_without_a_device_nothing_is_started(probe: ProbeSpec) -> None:
    with LiveHost(root="/nonexistent") as live:
        host = RecordingHost(live)
        found = probe.collect(REQUEST, host)
    assert {r.kind for r in host.replies} <= {CallKind.LISTING, CallKind.FILE}
    assert probe.collect(REQUEST, ReplayHost(host.name, host.replies, host.as_of)) == found
    assert not faults_of(found, probe.provides)
    assert {(o.fact, o.status) for o in found} == {(fact, Status.UNSUPPORTED) for fact in probe.main}
    assert all(o.detail for o in found)


@pytest.mark.parametrize("probe", ALL, ids=lambda p: p.name)
def test_a_recording_that_never_asked_does_not_say_that_there_is_none(probe: ProbeSpec) -> None:
    assert {o.status for o in probe.collect(REQUEST, ReplayHost("gpu-1"))} == {Status.NOT_ASKED}


@pytest.mark.parametrize("probe", ALL, ids=lambda p: p.name)
@pytest.mark.parametrize("status", [Status.TIMEOUT, Status.DENIED, Status.FAILED])
def test_what_does_not_answer_says_why(probe: ProbeSpec, status: Status) -> None:
    calls = {
        "amd-smi": amd_smi.STATIC, "xpu-smi": xpu_smi.DISCOVERY, "npu-smi": npu_smi.ARGV, "hl-smi": hl_smi.ARGV,
    }  # fmt: skip
    reply = (
        ran(calls[probe.name], b"", status=status, detail="why")
        if probe.name in calls
        else Reply(CallKind.SNAPSHOT, ("amdgpu",), status=status, detail="why")
    )
    found = probe.collect(REQUEST, there(probe, reply))
    assert not faults_of(found, probe.provides)
    assert {(o.fact, o.status) for o in found} == {(fact, status) for fact in probe.main}


def test_what_is_asked_by_default() -> None:
    assert {p.name for p in probes()} >= {p.name for p in ALL}
    assert {p.name for p in ALL if p.default} == {"amdgpu", "xpu-smi", "npu-smi", "hl-smi"}


# --- recorded outputs -----------------------------------------------------------------------


def test_amd_smi_ties_its_numbers_to_addresses() -> None:
    host = there(
        amd_smi.PROBE,
        ran(amd_smi.STATIC, capture("amd-smi-static.json")),
        ran(amd_smi.METRIC, capture("amd-smi-metric-sick.json")),
        ran(amd_smi.THROTTLE, b"usage: amd-smi metric", exit_code=2),
    )
    found = amd_smi.PROBE.collect(REQUEST, host)
    assert not faults_of(found, amd_smi.PROBE.provides)
    assert [o.value for o in found if o.fact == "node.gpus.amd"] == [4]
    assert values(found)["gpu.ras.uncorrected", GPUS[2]] == 2


def test_amd_smi_without_its_driver_is_not_asked_again() -> None:
    host = there(amd_smi.PROBE, ran(amd_smi.STATIC, capture("amd-smi-no-driver.txt"), exit_code=255))
    said, found = amd_smi.PROBE.collect(REQUEST, host)
    assert (said.fact, found.fact, found.status) == ("vendor_tool_refused", "node.gpus.amd", Status.FAILED)


def test_xpu_smi_asks_for_each_gpu() -> None:
    host = there(
        xpu_smi.PROBE,
        ran(xpu_smi.DISCOVERY, capture("xpu-smi-discovery.json")),
        ran(xpu_smi.HEALTH, capture("xpu-smi-health-sick.txt")),
        ran(("xpu-smi", "stats", "-d", "0", "-j"), capture("xpu-smi-stats-healthy.json")),
        ran(("xpu-smi", "stats", "-d", "1", "-j"), capture("xpu-smi-stats-sick.json")),
    )
    found = xpu_smi.PROBE.collect(REQUEST, host)
    assert not faults_of(found, xpu_smi.PROBE.provides)
    seen = values(found)
    assert (seen["gpu.ras.uncorrected", "0000:29:00.0"], seen["gpu.ras.uncorrected", "0000:9a:00.0"]) == (0, 3)
    assert seen["gpu.health.state", "0000:9a:00.0"] == "critical"


def test_a_graphics_unit_of_a_processor_starts_nothing() -> None:
    pattern, own = "/sys/bus/pci/drivers/i915/0*", "/sys/bus/pci/drivers/i915/0000:00:02.0"
    module = Reply(CallKind.FILE, (xpu_smi.MODULE,), Status.UNSUPPORTED, detail="there is no such file")
    host = ReplayHost("gpu-1", [Reply(CallKind.LISTING, (pattern,), data=own.encode() + b"\n"), module])
    assert {o.status for o in xpu_smi.PROBE.collect(REQUEST, host)} == {Status.UNSUPPORTED}


@pytest.mark.parametrize(
    ("probe", "argv", "name", "count"),
    [
        (npu_smi.PROBE, npu_smi.ARGV, "npu-smi-sick.txt", 4),
        (hl_smi.PROBE, hl_smi.ARGV, "hl-smi-sick.txt", 2),
    ],
)
def test_tables(probe: ProbeSpec, argv: Sequence[str], name: str, count: int) -> None:
    found = probe.collect(REQUEST, there(probe, ran(argv, capture(name))))
    assert not faults_of(found, probe.provides)
    assert [o.value for o in found if o.fact in probe.main] == [count]


def test_a_table_that_was_cut_has_no_count() -> None:
    half = capture("npu-smi-healthy.txt")[:900]
    found = npu_smi.PROBE.collect(
        REQUEST, there(npu_smi.PROBE, ran(npu_smi.ARGV, half, status=Status.TIMEOUT, detail="slow"))
    )
    assert not faults_of(found, npu_smi.PROBE.provides)
    assert [o.status for o in found if o.fact in npu_smi.MAIN] == [Status.TIMEOUT]


# --- files ----------------------------------------------------------------------------------


@pytest.mark.process
def test_the_driver_of_amd_needs_no_tool(tmp_path: Path) -> None:
    node = machine(tmp_path / "root")
    sicken(node)
    with LiveHost(root=str(node.root)) as live:
        host = RecordingHost(live)
        found = amdgpu.PROBE.collect(REQUEST, host)
        assert amdgpu.PROBE.collect(REQUEST, ReplayHost(host.name, host.replies, host.as_of)) == found
    assert not faults_of(found, amdgpu.PROBE.provides)
    seen = {(o.fact, o.subject): o.value for o in found}
    assert [seen["gpu.ras.uncorrected", gpu(address, "gpu-1")] for address in GPUS] == [0, 0, 2, 0]


@pytest.mark.process
def test_a_recorded_snapshot_is_read_without_the_machine(tmp_path: Path) -> None:
    text = collect("amdgpu", machine(tmp_path / "root").root)
    found = amdgpu.PROBE.collect(
        REQUEST, there(amdgpu.PROBE, Reply(CallKind.SNAPSHOT, ("amdgpu",), data=text.encode()))
    )
    assert [o.value for o in found if o.fact == "node.gpus.amd"] == [4]


@pytest.mark.process
def test_a_tool_on_the_path_is_run_as_it_is(tmp_path: Path) -> None:
    tool(tmp_path / "bin", "npu-smi", f"cat {CAPTURES / 'npu-smi-healthy.txt'}\n")
    with LiveHost(environ={"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}) as live:
        reply = live.run(npu_smi.ARGV, deadline=5.0)
    found = npu_smi.PROBE.collect(REQUEST, there(npu_smi.PROBE, reply))
    assert [o.value for o in found if o.fact == "node.gpus.huawei"] == [4]
