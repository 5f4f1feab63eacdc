"""From a machine's NVML, through the probe, to the diagnosis."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from assistant.diagnosis import Diagnosis, diagnose
from knowledge.observation import Observation, Scope
from probes.base import Context, lines_of
from probes.live import ProbeRequest, nvml
from probes.live_host import LiveHost
from probes.parse import kernel_log
from rules.engine import Role
from rules.loader import load
from rules.model import Severity
from tests import nvml_lab as lab
from tests.cases import each


@pytest.fixture(scope="session")
def tmp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the libraries lie."""
    return tmp_path_factory.mktemp("nvml-scenarios")


def seen(place: Path, deadline: float = 5.0) -> list[Observation]:
    with LiveHost("n1", environ={**os.environ, "LD_LIBRARY_PATH": str(place)}) as host:
        return nvml.collect(ProbeRequest(deadline), host)


HUNG = ("hung_call", "hung_init", "hung_all")


def seen_to_hang(place: Path, deadline: float) -> list[Observation]:
    """A look that was kept from the CPU proves no hang and says so: then it is made again."""
    for _ in range(4):
        observed = seen(place, deadline)
        if any(o.at for o in observed):
            break
    return observed


@pytest.fixture(scope="module")
def hung(tmp: Path) -> Mapping[str, tuple[Observation, ...]]:
    """What is seen of a driver that never answers: each look waits until its deadline, so they wait together."""
    places = [lab.folder(tmp, scenario) for scenario in HUNG]
    with ThreadPoolExecutor(len(HUNG)) as pool:
        # a driver that does not open is given the time that opening eight GPUs takes before it counts as hung
        return dict(zip(HUNG, map(tuple, pool.map(seen_to_hang, places, (5.0, 25.0, 25.0))), strict=True))


def roots(found: Diagnosis) -> set[tuple[str, str]]:
    """What is the matter, and with which GPU."""
    root = (f for f in found.findings if f.role is Role.ROOT)
    return {(f.rule.id, str((f.subject.up(Scope.GPU) or f.subject).id)) for f in root}


@pytest.mark.process
@each("scenario", ["healthy8", "mig", "unsupported", "restricted", "accounting", "slow", "hidden_memory"])
def test_a_machine_without_a_fault_gets_no_finding(tmp: Path, scenario: str) -> None:
    found = diagnose(seen(lab.folder(tmp, scenario)), load())
    assert [f.rule.id for f in found.findings if f.severity is not Severity.INFO] == []
    assert found.settled


@pytest.mark.process
@each(
    ("scenario", "cause"),
    [
        ("lost", ("gpu-lost-without-xid", "0000:ba:00.0")),
        ("ecc_climbing", ("ecc-uncorrected-volatile", "0000:4c:00.0")),
        ("hung_call", ("gpu-driver-call-hangs", "0000:5d:00.0")),
        ("hung_init", ("driver-unresponsive", "n1")),
        ("hung_all", ("driver-unresponsive", "n1")),
        ("library_mismatch", ("driver-library-mismatch", "n1")),
        ("init_failed", ("nvml-failed", "n1")),
        ("nvlink5", ("nvlink5-bit-errors", "0000:9a:00.0")),
        ("sram", ("sram-threshold-exceeded", "0000:9a:00.0")),
        ("inforom", ("inforom-corrupt", "0000:3b:00.0")),
        ("reset_wanted", ("gpu-reset-required", "0000:da:00.0")),
        ("link_down", ("nvlink-link-down", "0000:3b:00.0")),
        ("link_errors", ("nvlink-errors-counted", "0000:1a:00.0")),
        ("no_devices", ("no-gpu-found", "n1")),
        ("busy_nothing", ("gpu-works-less-than-peers", "0000:3b:00.0")),
    ],
)
def test_one_fault_is_one_cause(
    tmp: Path, hung: Mapping[str, tuple[Observation, ...]], scenario: str, cause: tuple[str, str]
) -> None:
    observed = hung[scenario] if scenario in HUNG else seen(lab.folder(tmp, scenario))
    assert roots(diagnose(observed, load())) == {cause}


@pytest.mark.process
def test_two_slow_gpus_are_told_apart(tmp: Path) -> None:
    found = roots(diagnose(seen(lab.folder(tmp, "throttled")), load()))
    assert {("hw-thermal-slowdown", "0000:3b:00.0"), ("power-brake-at-idle-clocks", "0000:ca:00.0")} <= found
    assert {subject for _, subject in found} == {"0000:3b:00.0", "0000:ca:00.0"}


@pytest.mark.process
@pytest.mark.parametrize("scenario", ["no_permission", "driver_not_loaded"])
def test_what_could_not_be_seen_reassures_nobody(tmp: Path, scenario: str) -> None:
    found = diagnose(seen(lab.folder(tmp, scenario)), load())
    assert (found.findings, found.settled) == ((), False)


@pytest.mark.process
def test_errors_that_grow_between_two_snapshots(tmp: Path) -> None:
    place = lab.folder(tmp, "ecc_climbing")
    earlier = [replace(o, at=o.at - 40 * 60 * 10**9) for o in seen(place) if o.at]
    found = diagnose([*earlier, *seen(place)], load())
    assert ("ecc-uncorrected-growing", "0000:4c:00.0") in roots(found)


@pytest.mark.process
@each(
    ("scenario", "xid", "rule"),
    [
        ("hung_call", "119, pid=7, name=python3, Timeout after 6s of waiting for RPC response from GPU3 GSP! Expected function 76 (GSP_RM_CONTROL)", "gsp-rpc-timeout"),
        ("hung_init", "79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", "gpu-fell-off-bus"),
        ("hung_init", "120, GSP task timeout @ pc:0x1234, task: 1", "gsp-firmware-crash"),
    ],
)  # fmt: skip
def test_the_kernel_log_tells_why_nothing_answers(
    hung: Mapping[str, tuple[Observation, ...]], scenario: str, xid: str, rule: str
) -> None:
    observed = hung[scenario]
    at = next(o.at for o in observed if o.at)

    when = datetime.datetime.fromtimestamp(at / 1e9 - 60, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S+00:00")
    line = f"{when} n1 kernel: NVRM: Xid (PCI:0000:5d:00): {xid}"
    log = kernel_log.FORMAT.parse(lines_of(line), Context("kern.log", "n1"))
    assert {r for r, _ in roots(diagnose([*observed, *log], load()))} == {rule}
