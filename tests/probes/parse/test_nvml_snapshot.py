"""NVML snapshots: no document breaks the parser, nothing that was not told becomes a value, every error has a status."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from knowledge.facts import vocabulary
from knowledge.observation import Observation, Status
from probes.base import Context
from probes.parse import _nvml_values as values
from probes.parse import nvml_snapshot
from probes.parse._nvml_fields import GPU
from tests.cases import each

BASE: dict[str, Any] = {
    "schema": "gpudiag/nvml/1", "host": "n1", "at_ns": 1750000000000000000,
    "calls": {"nvmlInitWithFlags": "NVML_SUCCESS", "nvmlDeviceGetCount_v2": 1}, "hung": [],
    "devices": [{
        "index": 0,
        "calls": {
            "nvmlDeviceGetPciInfo_v3": {"busId": "00000000:3B:00.0"}, "nvmlDeviceGetTemperature(GPU)": 50,
            "nvmlDeviceGetPowerUsage": 70000, "nvmlDeviceGetClockInfo(SM)": 1980, "nvmlDeviceGetMigMode": [1, 1],
            "nvmlDeviceGetUtilizationRates": {"gpu": 3, "memory": 1}, "nvmlDeviceGetFieldValues": 3,
            "nvmlDeviceGetComputeRunningProcesses_v3": [{"pid": 7, "usedGpuMemory": 1048576, "gpuInstanceId": 1, "computeInstanceId": 0}],
            "nvmlDeviceGetProcessUtilization": [{"pid": 7, "timeStamp": 5, "smUtil": 9}],
            "nvmlDeviceGetGpuFabricInfoV(v3)": {"state": 3, "status": 0, "healthMask": 426, "healthSummary": 1},
            "nvmlDeviceGetSramEccErrorStatus": {"volatileUncParity": 0, "bThresholdExceeded": 0},
            "nvmlDeviceGetCurrentClocksEventReasons": 4,
        },
        "links": {"0": {"nvmlDeviceGetNvLinkState": 1, "nvmlDeviceGetNvLinkVersion": 7}},
        "fields": {"MEMORY_TEMP": 60, "NVLINK_COUNT_EFFECTIVE_BER[0]": 4095},
        "field_errors": {"NVML_ERROR_NOT_SUPPORTED: Not Supported": {"code": 3, "fields": ["GET_GPU_RECOVERY_ACTION"]}},
        "gpm": {"window_s": 0.3, "SM_UTIL": 40.5},
        "mig": [{"index": 0, "calls": {"nvmlDeviceGetGpuInstanceId": 1, "nvmlDeviceGetComputeInstanceId": 0}}],
    }],
}  # fmt: skip
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5)
    | st.just({"error": "NVML_ERROR_UNKNOWN: Unknown Error", "code": 999}),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


def parse(document: object) -> list[Observation]:
    return nvml_snapshot.parse(json.dumps(document), Context("-"))


def places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of everything in a document."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(p for key, part in inside for p in places(part, (*path, key)))]


def put(path: tuple[Any, ...], value: object) -> Any:
    document = copy.deepcopy(BASE)
    here: Any = document
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = value
    return document


@given(st.sampled_from([p for p in places(BASE) if p]), JUNK)
def test_no_document_breaks_the_parser(path: tuple[Any, ...], junk: object) -> None:
    known = vocabulary()
    for o in parse(put(path, junk)):
        spec = known.get(o.fact)
        assert spec is not None
        assert o.fact in nvml_snapshot.PROVIDES
        assert (o.value is None) == (o.status is not Status.OK)
        assert o.status is Status.OK or o.detail
        if o.value is not None and spec.values and isinstance(o.value, str):
            assert o.value in spec.values


@given(st.integers(0, 400))
def test_a_document_that_was_cut_off_tells_nothing(length: int) -> None:
    text = json.dumps(BASE)
    (only,) = nvml_snapshot.parse(text[: len(text) - 1 - length], Context("-"))
    assert (only.fact, only.status) == ("node.driver.state", Status.FAILED)


@given(
    st.sampled_from([row for row in GPU if row.calls[0].startswith("nvmlDevice")]), st.integers(1, 31) | st.just(999)
)
def test_no_error_becomes_a_value(row: Any, code: int) -> None:
    document = copy.deepcopy(BASE)
    calls = document["devices"][0]["calls"]
    for call in row.calls:
        calls[call] = {"error": f"NVML_ERROR_{code}", "code": code}
    told = [o for o in parse(document) if o.fact == row.fact]
    # a GPU that wants a reset says so by any call
    assert all(o.status is not Status.OK for o in told) or (row.fact, code) == ("gpu.reset_required", 16)


@each(
    ("code", "status"),
    [
        (3, Status.UNSUPPORTED),
        (13, Status.UNSUPPORTED),
        (4, Status.DENIED),
        (10, Status.TIMEOUT),
        (999, Status.FAILED),
        (15, Status.FAILED),
    ],
)
def test_errors_have_their_status(code: int, status: Status) -> None:
    reading = values.failed({"error": "NVML_ERROR_X: words", "code": code})
    assert reading is not None
    assert reading.status is status


@each(("raw", "rate"), [(0xFFF, 15e-255), (0x50B, 5e-11), (0x10C, 1e-12), (0, 0.0)])
def test_bit_error_rates(raw: int, rate: float) -> None:
    assert values.ber(raw).value == rate


@each("raw", [0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF, -1, 1 << 12, "1e-12", None, True, 0x101])
def test_what_is_no_rate(raw: object) -> None:
    reading = values.ber(raw)
    assert reading.ok is (raw == 0x101)  # 1e-1 is a rate, a terrible one


@given(st.integers(0, 2**64 - 1))
def test_all_bits_set_is_no_number(raw: int) -> None:
    taken = values.number(1e-3)(raw)
    if raw in (0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF):
        assert taken.status is Status.FAILED
    elif taken.ok:
        assert taken.value == round(raw * 1e-3)


def test_a_reason_that_the_gpu_cannot_report_is_no_no() -> None:
    document = put(("devices", 0, "calls", "nvmlDeviceGetSupportedClocksEventReasons"), 0x4)
    told = {o.fact: o for o in parse(document)}
    assert told["gpu.clock.event.sw_power_cap"].value is True
    assert told["gpu.clock.event.hw_thermal"].status is Status.UNSUPPORTED


def test_links_without_any_that_is_up_are_only_counted() -> None:
    """A card without a bridge looks like this: a rule that compares links must not see one that is down."""
    told = {o.fact: o.value for o in parse(put(("devices", 0, "links", "0", "nvmlDeviceGetNvLinkState"), 0))}
    assert told["gpu.nvlink.active"] == 0
    assert "link.state" not in told
    assert "gpu.nvlink.inactive" not in told


def test_sram_of_old_chips_is_the_sum_of_its_parts() -> None:
    document = copy.deepcopy(BASE)
    calls = document["devices"][0]["calls"]
    label = "nvmlDeviceGetMemoryErrorCounter(CORRECTED, VOLATILE, "
    calls[label + "SRAM)"] = {"error": "NVML_ERROR_NOT_SUPPORTED: Not Supported", "code": 3}
    calls.update({label + "L1_CACHE)": 2, label + "REGISTER_FILE)": 5, label + "DRAM)": 1})
    told = {o.fact: o.value for o in parse(document)}
    assert told["gpu.ecc.volatile.corrected.sram"] == 7
    assert told["gpu.ecc.volatile.corrected.total"] == 8


def test_a_vgpu_guest_reads_zeroes_that_are_no_readings() -> None:
    document = put(("devices", 0, "calls", "nvmlDeviceGetVirtualizationMode"), 2)
    document["devices"][0]["calls"]["nvmlDeviceGetTemperature(GPU)"] = 0
    assert {o.fact: o for o in parse(document)}["gpu.temperature.core"].status is Status.UNSUPPORTED
