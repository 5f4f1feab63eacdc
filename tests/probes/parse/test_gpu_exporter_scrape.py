from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from knowledge.metrics import metrics
from knowledge.observation import Status
from probes.parse.gpu_exporter_scrape import FORMAT
from tests.probes.parse.smi_case import (
    CONTEXT,
    all_of,
    capture,
    check_any,
    check_cut,
    one,
    parse,
    shuffled_lines,
    status,
    value,
)  # fmt: skip

NAME, GPU = "dcgm/gpu-exporter.prom", "0000:3b:00.0"


def test_series_become_facts_in_our_units() -> None:
    got = parse(FORMAT, NAME)
    assert value(got, "gpu.temperature.core", GPU) == 53
    assert value(got, "gpu.memory.used", GPU) == 11125
    assert value(got, "gpu.utilization.core", GPU) == 98
    assert value(got, "gpu.clock.event.hw_slowdown", GPU) is True  # under its name of older drivers
    assert value(got, "gpu.clock.event_time.sw_power_cap", GPU) == 1_500_000
    assert value(got, "gpu.fabric.state", GPU) == "completed"
    assert value(got, "gpu.row_remap.failure", GPU) is True
    assert value(got, "node.driver.version") == "590.10.01"
    assert value(got, "gpu.uuid", GPU) == "GPU-11111111-2222-3333-4444-555555555555"


def test_what_is_missing_has_a_reason() -> None:
    got = parse(FORMAT, NAME)
    assert status(got, "gpu.recovery_action", GPU) is Status.FAILED  # 9 is no known action
    assert status(got, "gpu.serial", GPU) is Status.UNSUPPORTED
    assert value(got, "exporter.collect.success") is False


def test_processes() -> None:
    got = parse(FORMAT, NAME)
    assert value(got, "process.gpu_memory", "21180") == 2296
    assert value(got, "process.name", "21180") == "./hog"
    assert value(got, "process.uses_gpu", "21180") == f"gpu:{GPU}"
    assert status(got, "process.gpu_memory", "21181") is Status.UNSUPPORTED


def test_without_the_info_series_the_uuid_names_the_gpu() -> None:
    text = "\n".join(line for line in capture(NAME).splitlines() if "gpu_info" not in line)
    got = FORMAT.parse(text, CONTEXT)
    assert one(got, "gpu.temperature.core").subject.id == "GPU-11111111-2222-3333-4444-555555555555"
    assert not all_of(got, "gpu.index")


def test_recognition() -> None:
    assert FORMAT.sniff(capture(NAME)) == 100
    for other in ("dcgm/exporter-k8s.prom", "smi/query-gpu.csv", "smi/table-590-mig.txt"):
        assert FORMAT.sniff(capture(other)) == 0, other


def test_provides_is_what_the_table_gives() -> None:
    table = {fact for m in metrics().all if m.exporter == "nvidia_gpu_exporter" for fact in m.facts()}
    assert table <= set(FORMAT.provides)


@given(st.integers(0, 10**6))
def test_any_cut_is_answered(at: int) -> None:
    check_cut(FORMAT, NAME, at)


@given(shuffled_lines([NAME]))
def test_any_text_is_answered(text: str) -> None:
    check_any(FORMAT, text)
