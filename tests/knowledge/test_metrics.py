from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from knowledge.facts import Type, vocabulary
from knowledge.metrics import Metric, metrics
from knowledge.schema.metrics import Entry
from tests.cases import each

TABLE = metrics()


def test_every_metric_carries_facts_of_the_vocabulary() -> None:
    unknown = {fact for m in TABLE.all for fact in m.facts() if fact not in vocabulary()}
    assert not unknown


def test_words_of_enumerations_are_those_of_their_facts() -> None:
    for metric in TABLE.all:
        for word in metric.values.values():
            assert word in vocabulary()[metric.fact].values, metric.name
        for fact in metric.bits.values():
            assert vocabulary()[fact].type is Type.BOOL, metric.name
        if metric.fact and vocabulary()[metric.fact].type is Type.ENUM:
            assert metric.values, metric.name


@given(st.sampled_from(TABLE.all), st.integers(0, 200))
def test_a_converted_number_is_a_value_of_its_fact(metric: Metric, number: int) -> None:
    found = TABLE.find(metric.exporter, metric.name.replace("{lane}", "4"))
    assert found is not None
    for fact in found.metric.facts():
        value = found.convert(number, fact)
        if value is None:
            assert number not in found.metric.values
        elif not found.metric.bits:
            assert vocabulary()[fact].accepts(value), (fact, value)


def test_both_ways() -> None:
    for metric in TABLE.all:
        for fact in metric.facts():
            assert metric in TABLE.for_fact(fact, metric.exporter)
        for name in (metric.name, *(a.name for a in metric.aliases)):
            for spelled in (name, name.lower()):
                found = TABLE.find(metric.exporter, spelled.replace("{lane}", "17"))
                assert found is not None
                assert found.metric == metric
    assert {m.exporter for m in TABLE.for_fact("gpu.temperature.core")} == {
        "dcgm",
        "nvidia_gpu_exporter",
        "amd_device_metrics_exporter",
    }


def test_names_and_units() -> None:
    def convert(exporter: str, name: str, number: float, help_text: str = "") -> object:
        found = TABLE.find(exporter, name)
        assert found is not None, name
        return found.convert(number, found.metric.fact, help_text)

    assert convert("dcgm", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 2500) == 2.5
    assert convert("dcgm", "dcgm_power_violation", 7) == 7
    assert convert("dcgm", "DCGM_FI_DEV_POWER_VIOLATION", 7000) == 7
    assert convert("dcgm", "DCGM_FI_DEV_POWER_VIOLATION", 7, "held down (in us).") == 7
    assert convert("dcgm", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.022137) == 2.2137
    assert convert("nvidia_gpu_exporter", "nvidia_smi_memory_used_bytes", 1.1665408e10) == 11125
    assert convert("nvidia_gpu_exporter", "nvidia_smi_pstate", 8.0) == 8
    lane = TABLE.find("dcgm", "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_L17_TOTAL")
    assert lane is not None
    assert (lane.lane, lane.metric.fact) == (17, "link.errors.replay")
    assert TABLE.find("dcgm", "DCGM_FI_DEV_NO_SUCH_FIELD") is None
    assert TABLE.find("nvidia_gpu_exporter", "DCGM_FI_DEV_GPU_TEMP") is None


@each(
    "wrong",
    [
        {"fact": ""},
        {"fact": "gpu.x", "bits": {"0x1": "gpu.y"}},
        {"fact": "GPU"},
        {"fact": "gpu.x", "factor": 0.0},
        {"fact": "gpu.x", "values": {"one": "a"}},
        {"fact": "gpu.x", "name": "1x"},
        {"fact": "gpu.x", "exporter": "other"},
        {"fact": "gpu.x", "colour": "red"},
    ],
)
def test_the_schema_refuses(wrong: dict[str, object]) -> None:
    good = {"name": "DCGM_FI_X", "exporter": "dcgm", "kind": "gauge", "fact": "gpu.x"}
    Entry.model_validate(good)
    with pytest.raises(ValidationError):
        Entry.model_validate(good | wrong)
