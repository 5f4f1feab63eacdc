"""What the real tools print of things that we run ourselves: ipmitool of a simulated controller, chronyc of a chronyd."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from knowledge.observation import Observation, Status
from probes.base import best
from probes.live import ProbeRequest, bmc
from probes.live._fetch import document
from probes.live_host import LiveHost
from probes.parse import ipmi_sel, ipmi_sensors, time_service
from probes.registry import document_formats
from tests.components import component
from tests.probes.live.bmc_lab import CELSIUS, RPM, WATTS, analog, controller, discrete, logged
from tests.probes.parse.smi_case import CONTEXT, all_of, events, status, value
from tests.probes.parse.vocabulary_check import assert_in_vocabulary

pytestmark = pytest.mark.process

NOW = 1_784_000_000  # 2026-07-14 03:33:20 UTC
MACHINE = [
    *analog(0x04, (7, 1), 1, CELSIUS, 1, 38, 3, 42, "Inlet Temp"), *analog(0x0E, (3, 1), 1, CELSIUS, 1, 101, 3, 95, "CPU1 Temp"),
    *analog(0x30, (29, 1), 4, RPM, 120, 82, 5, 250, "Fan1A"), *analog(0x32, (29, 3), 4, RPM, 120, 0, 5, 250, "FAN3"),
    *analog(0x77, (7, 1), 0x0B, WATTS, 20, 147, 0, 250, "Pwr Consumption"), *discrete(0x85, (10, 1), 8, 0x6F, [0], "PSU1 Status"),
    *discrete(0x86, (10, 2), 8, 0x6F, [0, 3], "PSU2 Status"), *discrete(0x78, (7, 1), 9, 0x0B, [1], "PS Redundancy"),
    logged(NOW - 900, 8, 0x85, 0x6F, 3), logged(NOW - 800, 8, 0x85, 0xEF, 3), logged(NOW - 60, 8, 0x86, 0x6F, 3),
    logged(NOW - 30, 0x0C, 2, 0x6F, 1), logged(NOW, 0x14, 0x53, 0x6F, 0),
]  # fmt: skip


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    component("ipmi_sim")
    component("ipmitool")
    with controller(tmp_path_factory.mktemp("bmc"), MACHINE) as found:
        yield found


@pytest.fixture
def host(words: list[str], tmp_path: Path) -> Iterator[LiveHost]:
    """This machine, with an ipmitool on the path that reaches the simulated controller."""
    stand_in = tmp_path / "ipmitool"
    stand_in.write_text(f'#!/bin/sh\nexec {component("ipmitool")} {" ".join(words[1:])} "$@"\n')
    stand_in.chmod(0o755)
    with LiveHost(environ={"PATH": f"{tmp_path}:/usr/bin:/bin"}) as live:
        yield live


def test_the_sensors_of_the_controller(host: LiveHost) -> None:
    found = document(host.run(bmc.SENSORS, deadline=20), host, ipmi_sensors.FORMAT, bmc.SENSORS_MAIN)
    assert_in_vocabulary(found, ipmi_sensors.FORMAT)
    states = {o.subject.id: o.value for o in all_of(found, "sensor.state")}
    assert states == {
        "Inlet Temp": "non_critical", "CPU1 Temp": "critical", "Fan1A": "ok", "FAN3": "non_recoverable", "Pwr Consumption": "ok",
    }  # fmt: skip
    assert {o.subject.id: o.value for o in all_of(found, "psu.state")} == {
        "PSU1 Status": "ok",
        "PSU2 Status": "input_lost",
    }
    assert (value(found, "node.inlet.temperature"), value(found, "node.power.draw")) == (38.0, 2940.0)
    assert value(found, "node.power.redundancy") == "lost"


def test_the_event_log_of_the_controller(host: LiveHost) -> None:
    found = document(host.run(bmc.LOG, deadline=20), host, ipmi_sel.FORMAT, bmc.LOG_MAIN)
    assert_in_vocabulary(found, ipmi_sel.FORMAT)
    told = [(e.get("kind"), e.get("sensor"), e.get("state")) for e in events(found, "bmc_event")]
    assert told == [
        ("psu_input_lost", "PSU1 Status", "cleared"), ("psu_input_lost", "PSU2 Status", "asserted"), ("memory_uncorrected", "Memory #0x02", "asserted"),
    ]  # fmt: skip
    assert [o.status for o in all_of(found, "bmc_event")][-1] is Status.NONE_SEEN
    info = document(host.run(bmc.INFO, deadline=20), host, ipmi_sel.FORMAT, ("node.bmc.log.used",))
    assert (value(info, "node.bmc.log.used"), value(info, "node.bmc.log.entries")) == (0.0, 5)


def test_the_other_listings_of_sensors(words: list[str]) -> None:
    told = {
        "PSU1 Status": "ok",
        "PSU2 Status": "input_lost",
    }  # by the bits that `sensor` prints; `sdr list` says only ok
    for command, supplies in ((["sdr", "list"], dict.fromkeys(told)), (["sensor"], told)):
        text = subprocess.run([*words, *command], capture_output=True, text=True, check=True, timeout=30).stdout
        assert best(document_formats(), text) is ipmi_sensors.FORMAT
        found = ipmi_sensors.parse(text, CONTEXT)
        assert value(found, "sensor.state", "CPU1 Temp") == "critical"
        assert value(found, "sensor.fan.speed", "Fan1A") == 9840.0
        assert {o.subject.id: o.value for o in all_of(found, "psu.state")} == supplies


def test_this_machine_has_no_controller_or_it_answers() -> None:
    with LiveHost() as live:
        found = bmc.collect(ProbeRequest(10.0), live)
    assert {o.fact for o in found} >= {"bmc_event"}


def tracked(folder: Path, lines: str) -> list[Observation]:
    """What chronyc says of a chronyd that only this test knows, and that leaves the clock alone."""
    folder.chmod(0o700)
    sock = folder / "chronyd.sock"
    text = f"{lines}\nport 0\ncmdport 0\nbindcmdaddress {sock}\npidfile {folder}/pid\ndriftfile {folder}/drift\n"
    (folder / "chrony.conf").write_text(text)
    argv = [component("chronyd"), "-x", "-n", "-u", "root", "-f", str(folder / "chrony.conf")]
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as running:
        try:
            printed = ""
            for _ in range(100):
                asked = subprocess.run(
                    ["chronyc", "-h", str(sock), "-n", "tracking"], capture_output=True, text=True, check=False
                )
                printed = asked.stdout
                if not asked.returncode:
                    break
                time.sleep(0.05)
        finally:
            running.kill()
    assert time_service.sniff(printed) == 90
    return time_service.parse(printed, CONTEXT)


@pytest.fixture
def chrony(tmp_path_factory: pytest.TempPathFactory) -> Path:
    component("chronyd")
    if os.geteuid() != 0:
        pytest.skip("chronyd needs root")
    return tmp_path_factory.mktemp("c")


def test_a_clock_that_follows_itself(chrony: Path) -> None:
    found = tracked(chrony, "local stratum 8")
    assert (value(found, "node.time.followed"), value(found, "node.time.stratum")) == (True, 8)
    assert value(found, "node.time.offset") == 0.0


def test_a_clock_that_follows_nothing(chrony: Path) -> None:
    found = tracked(chrony, "server 192.0.2.1")
    assert value(found, "node.time.followed") is False
    assert status(found, "node.time.offset") is Status.UNSUPPORTED
