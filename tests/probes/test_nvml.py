"""The collector `nvml` in a process of its own, with the real pynvml on a library that plays sick and healthy machines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Observation, Status
from probes.base import Context
from probes.host import CallKind, RecordingHost, ReplayHost, Reply
from probes.live import ProbeRequest, nvidia_smi, nvml
from probes.live_host import LiveHost
from probes.parse import nvml_snapshot
from tests import nvml_lab as lab
from tests.at_once import at_once

pytestmark = pytest.mark.process


@pytest.fixture(scope="session")
def tmp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the libraries lie."""
    return tmp_path_factory.mktemp("nvml-lab")


def document(tmp: Path, scenario: str, *more: str, deadline: float = 10.0) -> dict[str, Any]:
    out: dict[str, Any] = json.loads(lab.collect(lab.folder(tmp, scenario), *more, deadline=deadline))
    return out


HANG = (("hung_call", 6.0), ("hung_init", 6.0), ("hung_all", 6.0), ("hung_init", 1.0))  # scenario and deadline
Waits = dict[tuple[str, float], Future[str]]


@pytest.fixture(scope="module", autouse=True)
def waits(tmp: Path) -> Iterator[Waits]:
    """What the collector says of drivers that hang. It waits for them while other tests run."""
    with ThreadPoolExecutor() as threads:
        yield {(s, d): threads.submit(lab.collect, lab.folder(tmp, s), deadline=d) for s, d in HANG}


def hung(waits: Waits, scenario: str, deadline: float) -> list[Observation]:
    return nvml_snapshot.parse(waits[scenario, deadline].result(), Context("-"))


def seen(tmp: Path, scenario: str, *more: str, deadline: float = 10.0) -> list[Observation]:
    text = lab.collect(lab.folder(tmp, scenario), *more, deadline=deadline)
    assert nvml_snapshot.sniff(text[: 1 << 16]) == 100
    return nvml_snapshot.parse(text, Context("-"))


def of(found: Sequence[Observation], fact: str, subject: str = "") -> Observation:
    (one,) = (o for o in found if o.fact == fact and subject in (o.subject.id, ""))
    return one


def test_a_healthy_machine_answers_every_call_that_it_can(tmp: Path) -> None:
    got = document(tmp, "healthy8")
    assert (got["schema"], got["hung"], len(got["devices"])) == ("gpudiag/nvml/1", [], 8)
    for device in got["devices"]:
        failed = {name for name, raw in device["calls"].items() if isinstance(raw, dict) and "error" in raw}
        assert failed == {
            "nvmlDeviceGetInforomVersion(POWER)", "nvmlDeviceGetNumaNodeId", "nvmlDeviceGetC2cModeInfoV",
            "nvmlDeviceGetTemperatureThreshold(ACOUSTIC_CURR)", "nvmlDeviceGetFanSpeed",
            "nvmlDeviceGetRetiredPages(MULTIPLE_SINGLE_BIT_ECC_ERRORS)", "nvmlDeviceGetRetiredPages(DOUBLE_BIT_ECC_ERROR)",
            "nvmlDeviceGetRetiredPagesPendingStatus",
        }  # fmt: skip
        assert len(device["links"]) == 18
        assert device["calls"]["nvmlDeviceGetFieldValues"] == len(device["fields"]) + sum(
            len(e["fields"]) for e in device["field_errors"].values()
        )
        assert 0.25 < device["gpm"]["window_s"] < 2
    assert [d["calls"]["nvmlDeviceGetModuleId"] for d in got["devices"]] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_every_function_of_the_collector_stands_in_the_library(tmp: Path) -> None:
    """ "Function not found" comes only where a scenario says so: else a test would pass for the wrong reason."""
    for scenario in ("healthy8", "nvlink5", "mig", "accounting"):
        text = json.dumps(document(tmp, scenario))
        assert "FUNCTION_NOT_FOUND" not in text
        assert "AttributeError" not in text
        assert "TypeError" not in text


@pytest.mark.parametrize(
    ("fact", "value"),
    [
        ("gpu.power.draw", 521.25), ("gpu.power.limit.min", 200.0), ("gpu.energy", 123457789.012),
        ("gpu.memory.total", 81920), ("gpu.memory.reserved", 640), ("gpu.bar1.total", 131072), ("gpu.pcie.tx", 1.2),
        ("gpu.nvlink.tx", 21.474836), ("gpu.activity.tensor", 62.125), ("gpu.temperature.tlimit", 29),
        ("gpu.temperature.tlimit_shutdown", -8), ("gpu.temperature.memory", 66), ("gpu.compute_capability", "9.0"),
        ("gpu.architecture", "hopper"), ("gpu.fabric.state", "completed"), ("gpu.fabric.status", "success"),
        ("gpu.fabric.health.bandwidth", "full"), ("gpu.fabric.health.configuration", "none"),
        ("gpu.recovery_action", "none"), ("gpu.row_remap.banks.max", 2560), ("gpu.nvlink.active", 18),
        ("gpu.processes", 1), ("gpu.ecc.volatile.uncorrected.sram_parity", 0), ("gpu.inforom.valid", True),
        ("gpu.clock.event.hw_thermal", False), ("gpu.nvml.reachable", True), ("gpu.readings.failed", ()),
    ],
)  # fmt: skip
def test_units_are_those_of_the_vocabulary(tmp: Path, fact: str, value: object) -> None:
    found = _healthy(tmp)
    assert of(found, fact, "0000:3b:00.0").value == value


_KEPT: dict[Path, list[Observation]] = {}


def _healthy(tmp: Path) -> list[Observation]:
    if tmp not in _KEPT:
        _KEPT[tmp] = seen(tmp, "healthy8")
    return _KEPT[tmp]


def test_processes_have_their_memory_and_share(tmp: Path) -> None:
    found = _healthy(tmp)
    assert of(found, "process.gpu_memory", "4203").value == 39936
    assert of(found, "process.gpu_utilization", "4203").value == 85  # the newest of two samples
    assert of(found, "process.uses_gpu", "4203").value == "gpu:0000:5d:00.0"
    hidden = of(seen(tmp, "hidden_memory"), "process.gpu_memory", "4203")
    assert (hidden.value, hidden.status) == (None, Status.UNSUPPORTED)


def test_a_lost_gpu_costs_the_others_nothing(tmp: Path) -> None:
    found = seen(tmp, "lost")
    assert of(found, "gpu.nvml.reachable", "0000:ba:00.0").value is False
    assert of(found, "gpu.uuid", "0000:ba:00.0").value  # what it told before stays
    assert of(found, "node.driver.state").value == "lost_gpu"
    assert sum(o.fact == "gpu.power.draw" and o.status is Status.OK for o in found) == 7


def test_gpus_without_a_handle_are_named_by_what_the_driver_holds(tmp: Path, tmp_path: Path) -> None:
    for bus in ("1a", "3b", "4c", "5d", "9a", "ba", "ca", "da"):
        (tmp_path / f"proc/driver/nvidia/gpus/0000:{bus}:00.0").mkdir(parents=True)
    found = seen(tmp, "lost_handles", "--root", str(tmp_path))
    down = sorted(o.subject.id for o in found if o.fact == "gpu.nvml.reachable" and o.value is False)
    assert down == ["0000:ba:00.0", "0000:ca:00.0"]
    (tmp_path / "proc/driver/nvidia/gpus/0000:da:00.0").rmdir()  # the list no longer fits: nothing is guessed
    found = seen(tmp, "lost_handles", "--root", str(tmp_path))
    down = sorted(o.subject.id for o in found if o.fact == "gpu.nvml.reachable" and o.value is False)
    assert down == ["index:5", "index:6"]


def test_a_hanging_call_is_named_and_everything_else_is_there(waits: Waits) -> None:
    got = json.loads(waits["hung_call", 6.0].result())
    (call,) = got["hung"]
    assert (call["device"], call["call"]) == (3, "nvmlDeviceGetMemoryInfo_v2")
    assert 1.5 < call["seconds"] < 6, "it is given up ahead of the deadline"
    assert all("fields" in d for d in got["devices"] if d["index"] != 3)
    found = nvml_snapshot.parse(json.dumps(got), Context("-"))
    gone = of(found, "gpu.nvml.reachable", "0000:5d:00.0")
    assert (gone.value, gone.source.call) == (False, "nvmlDeviceGetMemoryInfo_v2(3)")
    assert of(found, "gpu.memory.used", "0000:5d:00.0").status is Status.TIMEOUT
    assert of(found, "gpu.power.draw", "0000:5d:00.0").value == 521.25
    assert of(found, "node.driver.state").value == "ok"


@pytest.mark.parametrize(
    ("scenario", "call"), [("hung_init", "nvmlInitWithFlags"), ("hung_all", "nvmlDeviceGetBoardPartNumber")]
)
def test_a_driver_that_answers_nobody_is_unresponsive(waits: Waits, scenario: str, call: str) -> None:
    got = json.loads(waits[scenario, 6.0].result())
    if scenario == "hung_init":
        early = nvml_snapshot.parse(json.dumps(got), Context("-"))
        assert of(early, "node.driver.state").status is Status.TIMEOUT, (
            "eight GPUs without persistence mode take longer"
        )
        got["hung"][0]["seconds"] = 24.3
    found = nvml_snapshot.parse(json.dumps(got), Context("-"))
    assert of(found, "node.driver.state").value == "unresponsive"
    assert of(found, "node.driver.hung_call").value == call
    assert all(w["state"] == "S" and w["awake"] < 0.05 for w in got["hung"]), "the collector looked at its threads"


@given(
    device=st.sampled_from([None, 0]), seconds=st.floats(0, 60), awake=st.none() | st.floats(0, 1),
    state=st.sampled_from(["R", "S", "D", None]),
)  # fmt: skip
def test_only_what_stands_still_for_long_hangs(
    device: int | None, seconds: float, awake: float | None, state: str | None
) -> None:
    """The law of starvation: who is awake waits for a CPU, and nobody is accused."""
    wait = {"device": device, "call": "nvmlX", "seconds": seconds, "state": state} | (
        {} if awake is None else {"awake": awake}
    )
    calls = {"nvmlInitWithFlags": "NVML_SUCCESS"} if device is not None else {}
    got = {"schema": "gpudiag/nvml/1", "host": "n1", "at_ns": 1, "calls": calls, "hung": [wait],
           "devices": [] if device is None else [{"index": 0, "calls": {}}]}  # fmt: skip
    told = of(nvml_snapshot.parse(json.dumps(got), Context("-")), "node.driver.state")
    still = awake is None or awake < 0.05 or state == "D"
    long = seconds >= (20 if device is None and state != "D" else 2)
    assert (told.value == "unresponsive") is (still and long)


def test_a_deadline_that_is_too_short_accuses_nobody(waits: Waits) -> None:
    found = hung(waits, "hung_init", 1.0)
    assert of(found, "node.driver.state").status is Status.TIMEOUT


@pytest.mark.parametrize(
    ("scenario", "state", "status"),
    [
        ("library_mismatch", "library_mismatch", Status.OK), ("init_failed", "nvml_failed", Status.OK),
        ("no_devices", "no_devices", Status.OK), ("no_permission", None, Status.DENIED),
        ("driver_not_loaded", None, Status.UNSUPPORTED),  # on this machine without a GPU nothing is missed
    ],
)  # fmt: skip
def test_why_nvml_does_not_start(tmp: Path, tmp_path: Path, scenario: str, state: str | None, status: Status) -> None:
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    told = of(seen(tmp, scenario, "--root", str(tmp_path)), "node.driver.state")
    assert (told.value, told.status) == (state, status)


def test_a_missing_driver_is_missed_where_a_gpu_is_on_the_bus(tmp: Path, tmp_path: Path) -> None:
    card = tmp_path / "sys/bus/pci/devices/0000:3b:00.0"
    card.mkdir(parents=True)
    (card / "vendor").write_text("0x10de\n")
    (card / "class").write_text("0x030200\n")
    told = of(seen(tmp, "driver_not_loaded", "--root", str(tmp_path)), "node.driver.state")
    assert told.value == "not_loaded"
    argv = [sys.executable, "-I", "-B", str(lab.COLLECTOR), "--deadline", "5", "--root", str(tmp_path)]
    env = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    done = subprocess.run(argv, env=env, capture_output=True, timeout=10, check=True)
    got = json.loads(done.stdout)
    if got["calls"]["nvmlInitWithFlags"] == "NVML_SUCCESS":
        pytest.skip("this machine has an NVIDIA driver")
    assert of(nvml_snapshot.parse(done.stdout.decode(), Context("-")), "node.driver.state").value == "library_missing"


def test_a_missing_driver_is_not_missed_where_nobody_knows_of_a_gpu(tmp: Path, tmp_path: Path) -> None:
    """The bus cannot be listed: this may well be a node without a GPU."""
    told = of(seen(tmp, "driver_not_loaded", "--root", str(tmp_path)), "node.driver.state")
    assert (told.value, told.status) == (None, Status.FAILED)
    assert "whether there is a GPU is not known: /sys/bus/pci/devices: ENOENT" in told.detail
    (tmp_path / "proc/driver/nvidia/gpus/0000:3b:00.0").mkdir(parents=True)
    told = of(seen(tmp, "driver_not_loaded", "--root", str(tmp_path)), "node.driver.state")
    assert told.value == "not_loaded", "the driver holds one"


def test_the_library_is_found_where_drivers_put_it(tmp: Path, tmp_path: Path) -> None:
    place = tmp_path / "run/nvidia/driver/usr/lib64"
    place.mkdir(parents=True)
    (place / lab.NAME).write_bytes(lab.library(tmp).read_bytes())
    argv = [sys.executable, "-I", "-B", str(lab.COLLECTOR), "--deadline", "5", "--root", str(tmp_path)]
    env = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    got = json.loads(subprocess.run(argv, env=env, capture_output=True, timeout=10, check=True).stdout)
    if got["library"] == lab.NAME:
        pytest.skip("this machine has an NVIDIA driver of its own")
    assert (got["library"], len(got["devices"])) == (str(place / lab.NAME), 8)


def test_an_old_gpu_says_of_each_fact_that_it_has_not_got_it(tmp: Path) -> None:
    found = seen(tmp, "unsupported")
    power = of(found, "gpu.power.draw")
    assert (power.value, power.status) == (None, Status.UNSUPPORTED)
    assert of(found, "gpu.memory.used").value == 3  # told by the first version of the call
    assert of(found, "gpu.retired_pages.double_bit").value == 1
    assert of(found, "gpu.clock.event.hw_thermal").status is Status.UNSUPPORTED
    assert of(found, "gpu.nvml.reachable").value is True
    assert {o.status for o in found} == {Status.OK, Status.UNSUPPORTED}


def test_all_ones_and_refusals_are_no_values(tmp: Path) -> None:
    ones = of(seen(tmp, "all_ones"), "gpu.power.draw", "0000:4c:00.0")
    assert (ones.value, ones.status) == (None, Status.FAILED)
    denied = of(seen(tmp, "restricted"), "gpu.activity.sm", "0000:4c:00.0")
    assert denied.status is Status.DENIED
    assert "sudo gpudiag check" in denied.detail


def test_mig_instances_are_parts_of_their_gpu(tmp: Path) -> None:
    found = seen(tmp, "mig")
    mig = [o for o in found if o.fact == "mig.profile"]
    assert [(o.subject.id, o.value, o.subject.parent and o.subject.parent.id) for o in mig] == [
        ("1", "3g.40gb", "0000:1a:00.0"), ("9", "1g.10gb", "0000:1a:00.0"),
    ]  # fmt: skip
    assert of(found, "gpu.mig.devices", "0000:1a:00.0").value == 2
    assert of(found, "mig.activity.sm", "9").value == 88.25
    assert of(found, "process.uses_mig", "4200").value == "mig:1"
    assert of(found, "gpu.utilization.core", "0000:1a:00.0").status is Status.UNSUPPORTED


def test_links_of_blackwell_have_bit_error_rates(tmp: Path) -> None:
    found = seen(tmp, "nvlink5")
    rates = {
        (o.subject.parent and o.subject.parent.id, o.subject.id): o.value
        for o in found
        if o.fact == "link.ber.effective"
    }
    assert rates["0000:9a:00.0", "7"] == 5e-11
    assert rates["0000:9a:00.0", "8"] == 15e-255
    assert not any(o.fact == "link.errors.replay" for o in found)  # what the generation does not count is not asked
    assert {o.value for o in found if o.fact == "link.version"} == {"5.0"}


def test_quick_asks_less_and_the_same_of_what_changes(tmp: Path) -> None:
    place = lab.folder(tmp, "throttled")
    whole, quick = (nvml_snapshot.parse(lab.collect(place, *more), Context("-")) for more in ((), ("--quick",)))
    facts = {o.fact for o in quick}
    assert {
        "gpu.power.draw",
        "gpu.clock.event.hw_thermal",
        "link.errors.replay",
        "gpu.processes",
        "gpu.activity.sm",
    } <= facts
    assert facts < {o.fact for o in whole}
    assert len(quick) < len(whole)


def test_counters_climb_from_one_snapshot_to_the_next(tmp: Path) -> None:
    place = lab.folder(tmp, "ecc_climbing")
    fact = ("gpu.ecc.volatile.uncorrected.dram", "0000:4c:00.0")
    counts = [of(nvml_snapshot.parse(lab.collect(place, "--quick"), Context("-")), *fact).value for _ in range(3)]
    assert counts == [2, 4, 6]


AS_NOBODY = """
import __future__, argparse, contextlib, errno, json, os, sys, threading, time, typing, pynvml  # before the stdlib below /root is closed
program = compile(open(sys.argv[1]).read(), sys.argv[1], "exec")
os.setgroups([]); os.setgid(65534); os.setuid(65534)
sys.argv = sys.argv[1:]
exec(program, {"__name__": "__main__"})
"""


def test_an_ordinary_user_sees_the_same(tmp: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to become another user")
    place = lab.folder(tmp, "healthy8")
    for folder in (place, *place.parents):
        if not folder.stat().st_mode & 1:
            folder.chmod(folder.stat().st_mode | 0o711)
    argv = [sys.executable, "-I", "-B", "-c", AS_NOBODY, str(lab.COLLECTOR), "--deadline", "5"]
    done = subprocess.run(argv, env=lab.environment(place), capture_output=True, timeout=10, check=False)
    assert len(json.loads(done.stdout)["devices"]) == 8, done.stderr.decode()


# --- the probe ----------------------------------------------------------------------------


def live(tmp: Path, scenario: str) -> LiveHost:
    place = lab.folder(tmp, scenario)
    return LiveHost("n1", environ={**os.environ, "LD_LIBRARY_PATH": str(place)})


def test_a_replay_gives_what_the_live_run_gave(tmp: Path) -> None:
    def law(scenario: str) -> None:
        with live(tmp, scenario) as machine:
            host = RecordingHost(machine)
            first = nvml.collect(ProbeRequest(4.0), host)
        again = nvml.collect(ProbeRequest(30.0), ReplayHost("n1", host.replies))
        assert first == again
        assert {o.fact for o in first} <= set(nvml.PROBE.provides)
        assert all(o.subject.host == "n1" for o in first)

    lab.library(tmp)
    at_once(law, ("healthy8", "lost", "mig", "hung_call", "hung_init", "crash"))


def test_a_child_that_was_given_up_is_evidence() -> None:
    call = Reply(
        CallKind.SNAPSHOT,
        ("nvml",),
        Status.TIMEOUT,
        detail="no end after 25 s; process 7 cannot be killed (state D in nvidia_ioctl)",
    )
    (state,) = (o for o in nvml.collect(ProbeRequest(25.0), ReplayHost("n1", [call])) if o.fact == "node.driver.state")
    assert state.value == "unresponsive"
    assert "state D in nvidia_ioctl" in state.excerpt
    printed = replace(
        call, kind=CallKind.COMMAND, call=nvidia_smi.ARGV, data=b"==NVSMI LOG==\n\nDriver Version : 575.57\n"
    )
    (state,) = (
        o for o in nvidia_smi.collect(ProbeRequest(25.0), ReplayHost("n1", [printed])) if o.fact == "node.driver.state"
    )
    assert state.value == "unresponsive"


def test_a_whole_document_of_a_child_that_cannot_end_is_used(waits: Waits) -> None:
    """A thread that sleeps in the driver keeps the process, after it has printed everything."""
    text = waits["hung_call", 6.0].result().encode()
    stuck = Reply(CallKind.SNAPSHOT, ("nvml",), Status.TIMEOUT, text, detail="process 7 cannot be killed (state D)")
    found = nvml.collect(ProbeRequest(4.0), ReplayHost("n1", [stuck]))
    assert of(found, "node.driver.state").value == "ok"
    assert of(found, "gpu.nvml.reachable", "0000:5d:00.0").value is False
    half = replace(stuck, data=text[: len(text) // 2])
    assert of(nvml.collect(ProbeRequest(4.0), ReplayHost("n1", [half])), "node.driver.state").value == "unresponsive"


def test_what_was_not_recorded_says_so() -> None:
    found = nvml.collect(ProbeRequest(4.0), ReplayHost("n1"))
    assert {o.fact for o in found} == set(nvml.MAIN)
    assert {o.status for o in found} == {Status.NOT_ASKED}
