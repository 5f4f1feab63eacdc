"""Probes of the hardware around the GPUs: stand-ins of the tools print recorded outputs, a replay says the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from knowledge.observation import Observation, Status
from probes.host import CallKind, RecordingHost, ReplayHost, Reply, listing
from probes.live import ProbeRequest, ProbeSpec, bmc, drives_smart, memory_modules, nvme_smart, platform, time_service
from probes.live_host import LiveHost
from tests.probes.parse.smi_case import all_of, capture, status, value
from tests.probes.parse.vocabulary_check import faults_of

SPECS = (bmc.PROBE, drives_smart.PROBE, memory_modules.PROBE, nvme_smart.PROBE, platform.PROBE, time_service.PROBE)


def command(argv: Sequence[str], text: str, code: int = 0, **more: object) -> Reply:
    return Reply(CallKind.COMMAND, tuple(argv), data=text.encode(), exit_code=code, **more)  # type: ignore[arg-type]


def ask(spec: ProbeSpec, *replies: Reply) -> list[Observation]:
    host = RecordingHost(ReplayHost("n7", replies))
    found = spec.collect(ProbeRequest(5.0), host)
    assert faults_of([o for o in found if o.status is Status.OK], spec.provides) == []
    assert all(o.fact in spec.provides for o in found)
    assert spec.collect(ProbeRequest(5.0), ReplayHost("n7", host.replies)) == found
    return found


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_where_there_is_nothing_the_reason_stands_at_each_main_fact(spec: ProbeSpec) -> None:
    found = ask(spec)
    assert {o.fact for o in found if not o.status.answered} >= set(spec.main)
    assert all(o.detail for o in found if not o.status.answered)


@pytest.mark.process
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_on_this_machine_each_of_them_ends_and_says_something(spec: ProbeSpec) -> None:
    with LiveHost() as live:
        host = RecordingHost(live)
        found = spec.collect(ProbeRequest(spec.deadline), host)
    assert {o.fact for o in found} >= set(spec.main)
    assert spec.collect(ProbeRequest(spec.deadline), ReplayHost(live.name, host.replies)) == found


def test_no_tool_is_started_where_its_files_are_not() -> None:
    for spec in (bmc.PROBE, memory_modules.PROBE, nvme_smart.PROBE, drives_smart.PROBE, time_service.PROBE):
        host = RecordingHost(ReplayHost("n7"))
        spec.collect(ProbeRequest(5.0), host)
        assert {reply.kind for reply in host.replies} == {CallKind.LISTING, CallKind.FILE}, spec.name


def test_the_management_controller() -> None:
    log = "".join(line + "\n" for line in capture("bmc/sel-simulator.txt").splitlines() if " | " in line)
    info = "SEL Information\nVersion          : 1.5\nEntries          : 19\nPercent Used     : 1%\n"
    found = ask(
        bmc.PROBE, listing(bmc.DEVICES[0], ["/dev/ipmi0"]), command(bmc.INFO, info), command(bmc.LOG, log),
        command(bmc.SENSORS, capture("bmc/sdr-sick.txt")),
    )  # fmt: skip
    assert value(found, "node.bmc.log.used") == 1.0
    assert value(found, "psu.state", "PSU2 Status") == "input_lost"
    assert {o.status for o in all_of(found, "bmc_event")} == {Status.OK, Status.NONE_SEEN}


def test_a_controller_that_does_not_answer() -> None:
    closed = b"Could not open device at /dev/ipmi0 or /dev/ipmi/0 or /dev/ipmidev/0: Permission denied\n"
    replies = [command(argv, "", 1, stderr=closed) for argv in (bmc.INFO, bmc.LOG, bmc.SENSORS)]
    found = ask(bmc.PROBE, listing(bmc.DEVICES[0], ["/dev/ipmi0"]), *replies)
    assert {o.status for o in found} == {Status.DENIED, Status.FAILED} or {o.status for o in found} == {Status.DENIED}
    assert not any(o.status is Status.NONE_SEEN for o in found)


def smart_log(name: str) -> tuple[str, ...]:
    return ("nvme", "smart-log", f"/dev/{name}", "-o", "json")


def test_each_drive_is_asked_by_itself() -> None:
    drives = listing(
        nvme_smart.CONTROLLERS, [f"/sys/class/nvme/{n}" for n in ("nvme0", "nvme1", "nvme10", "nvme-fabrics")]
    )
    found = ask(
        nvme_smart.PROBE, drives, command(smart_log("nvme0"), capture("drives/nvme-healthy.json")),
        command(smart_log("nvme1"), capture("drives/nvme-sick.json")),
        command(smart_log("nvme10"), "", 1, stderr=b"Failed to open /dev/nvme10: Permission denied\n"),
    )  # fmt: skip
    assert value(found, "drive.warning.spare", "nvme1") is True
    assert value(found, "drive.warning.spare", "nvme0") is False
    assert [o.status for o in all_of(found, "drive.warning.reliability")] == [Status.OK, Status.OK, Status.DENIED]


def test_a_bus_that_hangs_is_not_asked_for_ever() -> None:
    names = [f"nvme{i}" for i in range(8)]
    silent = [Reply(CallKind.COMMAND, smart_log(n), Status.TIMEOUT, detail="no answer within 1 s") for n in names]
    found = ask(nvme_smart.PROBE, listing(nvme_smart.CONTROLLERS, [f"/sys/class/nvme/{n}" for n in names]), *silent)
    assert [o.status for o in found] == [Status.TIMEOUT] * nvme_smart.PATIENCE


def smartctl(name: str) -> tuple[str, ...]:
    return ("smartctl", "-j", "-x", "-n", "standby", f"/dev/{name}")


def test_a_failing_disk_is_told_though_the_tool_ends_with_an_error() -> None:
    sleeping = json.dumps(
        {
            "json_format_version": [1, 0],
            "smartctl": {"exit_status": 2, "messages": [{"string": "Device is in STANDBY mode"}]},
        }
    )
    found = ask(
        drives_smart.PROBE, listing(drives_smart.LISTED[0], ["/sys/block/sda", "/sys/block/sdb", "/sys/block/sdc"]),
        listing(drives_smart.LISTED[1], []), command(smartctl("sda"), capture("drives/smartctl-sata-sick.json"), 24),
        command(smartctl("sdb"), sleeping, 2), command(smartctl("sdc"), "", 127),
    )  # fmt: skip
    assert value(found, "drive.healthy", "sda") is False
    assert [o.status for o in all_of(found, "drive.healthy")] == [Status.OK, Status.FAILED, Status.FAILED]


def test_memory_modules_and_time() -> None:
    found = ask(
        memory_modules.PROBE, listing(memory_modules.TABLES, ["/sys/firmware/dmi/tables/DMI"]),
        command(memory_modules.ARGV, capture("board/dmidecode-sick.txt")),
    )  # fmt: skip
    assert value(found, "node.memory.modules") == 7
    (pattern, argv), (other, second) = time_service.ASKED
    clock = ask(
        time_service.PROBE,
        listing(pattern, ["/run/chrony"]),
        command(argv, capture("board/chronyc-far-off.txt")),
    )
    assert value(clock, "node.time.offset") == 3201.4
    sync = ask(
        time_service.PROBE,
        listing(other, ["/run/systemd/timesync"]),
        command(second, capture("board/timesync.txt")),
    )
    assert value(sync, "node.time.followed") is True
    gone = ask(
        time_service.PROBE,
        listing(pattern, ["/run/chrony"]),
        command(argv, "506 Cannot talk to daemon\n", 1),
    )
    assert status(gone, "node.time.followed") is Status.FAILED


@pytest.mark.process
def test_a_stand_in_on_the_path_is_run_without_a_shell(tmp_path: Path) -> None:
    tool = tmp_path / "nvme"
    tool.write_text('#!/bin/sh\nprintf \'{"argv": "%s"}\' "$*"\n')
    tool.chmod(0o755)
    with LiveHost(environ={"PATH": f"{tmp_path}:/usr/bin:/bin"}) as live:
        reply = live.run(smart_log("nvme0"), deadline=5)
    assert json.loads(reply.text)["argv"] == "smart-log /dev/nvme0 -o json"
