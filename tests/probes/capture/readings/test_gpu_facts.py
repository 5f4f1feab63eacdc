"""Facts of GPUs over a window: machines of the GPU lab, and documents of any kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.derive import derive
from knowledge.facts import vocabulary
from knowledge.observation import Observation, Status
from probes.capture.readings import gpu_facts
from tests.probes.capture.loads import HOST, target
from tests.probes.collectors.test_gpu_samples import ADDRESSES, looked

pytestmark = pytest.mark.process

ROWS = [[100, 7, 30, 0, 0, 0], [200, 7, 50, 0, 0, 0], [100, 9, 20, 0, 0, 0]]


@pytest.fixture(scope="module")
def tmp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the library is compiled, once."""
    return tmp_path_factory.mktemp("lab")


def facts(document: dict[str, Any], gpu: int, *pids: int, **more: Any) -> dict[str, Observation]:
    """The facts of one GPU, which the processes `pids` use."""
    targets = [target(pid, gpus=[ADDRESSES[gpu]]) for pid in pids or (4200 + gpu,)]
    return {o.fact: o for o in gpu_facts.observations(document, targets, HOST, **more)}


def told(found: dict[str, Observation]) -> dict[str, Any]:
    """Values, or why there is none."""
    return {o.fact.removeprefix("gpu.window."): o.value if o.status is Status.OK else o.status for o in found.values()}


def test_a_healthy_gpu(tmp: Path) -> None:
    found = told(facts(looked(tmp, "healthy8"), 0))
    assert found["utilization"] == 87
    assert found["sm_activity"] == 88.25
    assert found["power.share"] == pytest.approx(100 * 522 / 700, abs=0.1)
    assert found["clock.share"] == pytest.approx(100 * 1755 / 1980, abs=0.1)
    assert (
        found["thermal.share"]
        == found["power_cap.share"]
        == found["hw_slowdown.share"]
        == found["power_brake.share"]
        == 0
    )
    assert found["pcie.rx"] == pytest.approx(1024 * 1048576, rel=1e-6)
    assert found["nvlink.tx"] == 20480 * 1048576
    assert found["temperature.max"] == 58
    assert found["others.memory"] == 0


@pytest.mark.parametrize(
    ("scenario", "gpu", "expected"),
    [
        ("hot", 1, {"thermal.share": 100, "hw_slowdown.share": 100, "temperature.max": 91}),
        ("throttled", 6, {"power_brake.share": 100, "thermal.share": 0}),
        (
            "capped",
            2,
            {
                "power_cap.share": 100,
                "power.share": pytest.approx(99.97, abs=0.1),
                "clock.share": pytest.approx(71.2, abs=0.1),
            },
        ),
        (
            "busy_nothing",
            1,
            {"utilization": 100, "waves": False, "sm_activity": 3.5, "power.share": pytest.approx(18.6, abs=0.1)},
        ),
        ("no_gpm", 0, {"sm_activity": Status.UNSUPPORTED, "utilization": 87}),
        ("restricted", 0, {"sm_activity": Status.DENIED, "others.share": Status.DENIED}),
        ("mig", 0, {"utilization": Status.UNSUPPORTED, "others.share": Status.UNSUPPORTED}),
        ("lost", 5, {"utilization": Status.FAILED, "temperature.max": Status.FAILED}),
        ("hidden_memory", 0, {"others.memory": 0}),
    ],
)
def test_what_is_wrong_is_told(tmp: Path, scenario: str, gpu: int, expected: dict[str, Any]) -> None:
    found = told(facts(looked(tmp, scenario), gpu))
    assert {name: found[name] for name in expected} == expected


def test_who_else_uses_it(tmp: Path) -> None:
    document = looked(tmp, "neighbour", "--seconds", "1.2")
    found = facts(document, 3)
    assert found["gpu.window.others.share"].value == 40
    assert "7777" in found["gpu.window.others.share"].excerpt
    assert found["gpu.window.others.memory"].value == 8 << 30
    assert facts(document, 3, 4203, 7777)["gpu.window.others.share"].value == 0
    # numbers of another pid namespace: what is ours cannot be told from what is not
    other = facts(document, 3, 12)
    assert other["gpu.window.others.share"].status is Status.UNSUPPORTED
    assert "namespace" in other["gpu.window.others.memory"].detail


def test_a_clock_within_iterations(tmp: Path) -> None:
    document = looked(tmp, "swinging", "--seconds", "1.2", "--hz", "50")
    begun = document["at"][0] // 10**8 * 10**8 + 2 * 10**8
    spans = [(begun + i * 10**8 + 3 * 10**7, begun + (i + 1) * 10**8 - 10**7) for i in range(6)]
    found = gpu_facts.in_windows(document, ADDRESSES[0], "sm_clock", spans)
    assert {round(v) for v in found[::2]} != {round(v) for v in found[1::2]}
    assert max(found) > 1.3 * min(found)


def test_a_part_of_the_window(tmp: Path) -> None:
    document = looked(tmp, "healthy8")
    at = document["at"]
    assert told(facts(document, 0, window=(at[2], at[-1])))["utilization"] == 87
    assert told(facts(document, 0, window=(1, 2)))["utilization"] is Status.FAILED


def test_gpus_that_nobody_names_are_all_told(tmp: Path) -> None:
    found = gpu_facts.observations(looked(tmp, "healthy8"), [target(1)], HOST)
    assert len({o.subject for o in found}) == 8


def test_a_gpu_that_is_not_there_and_no_driver(tmp: Path) -> None:
    found = facts(looked(tmp, "no_devices"), 0)
    assert {o.status for o in found.values()} == {Status.FAILED}
    found = facts(looked(tmp, "driver_not_loaded"), 0)
    assert {o.status for o in found.values()} == {Status.UNSUPPORTED}
    assert set(found) == set(gpu_facts.FACTS)


def test_every_fact_is_in_the_vocabulary() -> None:
    known = vocabulary()
    assert [fact for fact in gpu_facts.FACTS if fact not in known] == []
    assert known["gpu.window.others.memory"].type.value == "int"


def test_a_process_without_a_sample_has_not_used_the_gpu() -> None:
    document = {
        "at": [0, 300],
        "devices": {ADDRESSES[0]: {"series": {}, "processes": ROWS, "memory": {"7": {"last": 5}}}},
    }
    assert facts(document, 0, 7)["gpu.window.others.share"].value == 10  # 20 in one of two periods
    assert facts(document, 0, 7, window=(150, 300))["gpu.window.others.share"].value == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 1 << 63) | st.floats(allow_nan=True) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.sampled_from(
        ["series", "utilization", "reasons", "power_mw", "sm_clock", "sm_clock_max", "power_limit_mw", "temperature", "processes",
         "memory", "7", "last", "counters_ns", "sw_thermal", "status", "detail", "stopped"]), inner, max_size=6),
    max_leaves=30,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(["at", "clocks", "status"]), JSON), JSON)
def test_no_document_raises(document: dict[str, Any], device: object) -> None:
    for one in gpu_facts.observations(
        {**document, "devices": {ADDRESSES[0]: device}}, [target(7, gpus=[ADDRESSES[0]])], HOST
    ):
        assert (one.value is None) == (one.status is not Status.OK)
        assert one.status is Status.OK or one.detail


def test_what_a_window_of_a_load_shows_of_its_work(tmp: Path) -> None:
    """Full and empty by turns is work in waves, a kernel without SMs is none, and neighbours that work are neither."""
    found = looked(tmp, "sawtooth", "--seconds", "2.5")
    every = [o for i in (2, 3) for o in facts(found, i).values()] + [*facts(looked(tmp, "busy_nothing"), 1).values()]
    told = {str(o.subject.id): o.value for o in derive(every) if o.fact == "gpu.work.class"}
    assert told == {ADDRESSES[2]: "in_waves", ADDRESSES[3]: "tensor_bound", ADDRESSES[1]: "busy_idle"}
