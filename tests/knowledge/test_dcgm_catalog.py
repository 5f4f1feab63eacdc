"""DCGM's fields, error codes and blank values; the clock event reasons."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from knowledge.catalog import clock_events, dcgm
from knowledge.catalog.clock_events import ClockEvent, Fault
from knowledge.catalog.dcgm import DcgmError, DcgmField, FieldKind
from knowledge.compiled import shard
from knowledge.observation import Status
from tests.cases import each

HAN = re.compile("[\u4e00-\u9fff]")
FIELDS = list(dcgm.fields().values())
ERRORS = list(dcgm.errors().values())
EVENTS = clock_events.all_events()


@each("entry", FIELDS, ids=lambda f: f.name)
def test_a_field_is_complete_and_found_by_every_name(entry: DcgmField) -> None:
    assert HAN.search(entry.meaning.zh)
    assert not HAN.search(entry.meaning.en)
    assert entry.sources
    assert entry.traps is None or HAN.search(entry.traps.zh)
    assert dcgm.field(entry.name) is entry
    assert all(dcgm.field(alias.name) is entry for alias in entry.aliases)
    assert entry.id is None or dcgm.field(str(entry.id)) is entry


def test_names_aliases_and_numbers_are_unique() -> None:
    names = [f.name for f in FIELDS] + [a.name for f in FIELDS for a in f.aliases]
    numbers = [f.id for f in FIELDS if f.id is not None]
    assert len(names) == len(set(names))
    assert len(numbers) == len(set(numbers))
    assert len(FIELDS) >= 150


def test_the_default_exporter_prints_these_and_no_others() -> None:
    assert sorted(f.name.removeprefix("DCGM_FI_") for f in FIELDS if f.exported_by_default) == [
        "DEV_CORRECTABLE_REMAPPED_ROWS", "DEV_DEC_UTIL", "DEV_ENC_UTIL", "DEV_FB_FREE", "DEV_FB_RESERVED", "DEV_FB_USED",
        "DEV_GPU_TEMP", "DEV_GPU_UTIL", "DEV_MEMORY_TEMP", "DEV_MEM_CLOCK", "DEV_MEM_COPY_UTIL",
        "DEV_NVLINK_BANDWIDTH_TOTAL", "DEV_PCIE_REPLAY_COUNTER", "DEV_POWER_USAGE", "DEV_ROW_REMAP_FAILURE",
        "DEV_SM_CLOCK", "DEV_TOTAL_ENERGY_CONSUMPTION", "DEV_UNCORRECTABLE_REMAPPED_ROWS", "DEV_VGPU_LICENSE_STATUS",
        "DEV_XID_ERRORS", "DRIVER_VERSION", "PROF_DRAM_ACTIVE", "PROF_GR_ENGINE_ACTIVE", "PROF_PCIE_RX_BYTES",
        "PROF_PCIE_TX_BYTES", "PROF_PIPE_TENSOR_ACTIVE",
    ]  # fmt: skip
    off = {f.name for f in FIELDS if f.listed_but_off}
    assert {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_DEV_RETIRED_PENDING"} <= off


@each(
    ("name", "number", "current"),
    [
        ("DCGM_FI_DEV_XID_ERROR", 230, "DCGM_FI_DEV_XID_ERRORS"),
        ("DCGM_FI_DEV_FB_USED_RATIO", 254, "DCGM_FI_DEV_FB_USED_PERCENT"),
        ("DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL", 449, "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"),
        ("DCGM_FI_DEV_NVLINK_THROUGHPUT_L7", 476, "DCGM_FI_DEV_NVLINK_BANDWIDTH_L7"),
        ("DCGM_FI_PROF_SM_UTIL_RATIO", 1002, "DCGM_FI_PROF_SM_ACTIVE"),
        ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", 112, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"),
        ("dcgm_gpu_temp", 150, "DCGM_FI_DEV_GPU_TEMP"),
        ("dcgm_ecc_dbe_volatile_total", 311, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"),
        ("DCGM_FI_PROF_NVLINK_L17_RX_BYTES", 1075, "DCGM_FI_PROF_NVLINK_L17_RX_BYTES"),
        ("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L12", 406, "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L12"),
    ],
)
def test_names_of_all_versions_lead_to_the_same_field(name: str, number: int, current: str) -> None:
    entry = dcgm.field(name)
    assert entry is not None
    assert (entry.id, entry.name) == (number, current)


def test_a_field_in_other_units_is_no_alias() -> None:
    # DCGM 4.6 has fields of their own (1600-1612) in bytes, Hz and joules: same quantity, other number.
    for name in ("DCGM_FI_DEV_SM_CLOCK_HERTZ", "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", "DCGM_FI_DEV_BAR1_USED_BYTES"):
        assert dcgm.field(name) is None


def test_the_traps_that_people_fall_into_are_named() -> None:
    def trap(name: str) -> str:
        found = dcgm.field(f"DCGM_FI_{name}")
        assert found is not None
        assert found.traps is not None
        return found.traps.en

    assert "MiB" in trap("DEV_FB_USED")
    assert "last value" in trap("DEV_XID_ERRORS")
    assert "rate()" in trap("PROF_PCIE_TX_BYTES")
    assert "Commented out" in trap("DEV_ECC_DBE_VOL_TOTAL")
    assert all(
        "profiling access" in (f.traps.en if f.traps else "")
        for f in FIELDS
        if re.match(r"DCGM_FI_PROF_(SM_A|PIPE|DRAM)", f.name)
    )
    assert {f.kind for f in FIELDS if "PCIE_TX_BYTES" in f.name} == {FieldKind.GAUGE, FieldKind.COUNTER}


@each("entry", ERRORS, ids=lambda e: e.name)
def test_an_error_is_complete(entry: DcgmError) -> None:
    assert HAN.search(entry.meaning.zh)
    assert entry.sources
    assert entry.bucket in {b["name"] for b in shard("buckets")}
    assert dcgm.error(entry.name) is entry
    if entry.alias_of:
        present = dcgm.error(entry.alias_of)
        assert present is not None
        assert present.code == entry.code
    elif entry.code is not None:
        assert dcgm.error(entry.code) is entry


def test_error_numbers_run_without_a_gap() -> None:
    assert sorted(e.code for e in ERRORS if e.code is not None and not e.alias_of) == list(range(133))
    assert len(ERRORS) >= 134
    assert dcgm.error("row_remap_failure") is dcgm.error("DCGM_FR_ROW_REMAP_FAILURE") is dcgm.error(80)
    assert dcgm.error("NO_SUCH") is None
    assert dcgm.error(999) is None


def test_advice_follows_the_sense_of_the_error() -> None:
    def bucket(name: str) -> str:
        found = dcgm.error(name)
        assert found is not None
        return found.bucket

    assert bucket("FALLEN_OFF_BUS") == "RESTART_BM"
    assert bucket("CLOCKS_EVENT_POWER") == "IGNORE"  # a power cap under load is normal
    assert bucket("PENDING_ROW_REMAP") == "DRAIN_AND_RESET"
    assert bucket("PERSISTENCE_MODE") == "CHANGE_SETTING"
    assert bucket("ROW_REMAP_FAILURE") == "CONTACT_SUPPORT"
    assert bucket("GPU_RECOVERY_REBOOT") == "RESTART_BM"
    assert all(e.disagrees for e in ERRORS if e.action == "RESTART_VM" and e.bucket not in ("RESTART_VM", "RESTART_BM"))


@each(
    ("value", "status"),
    [
        (0x7FFFFFF0, Status.NOT_ASKED), (0x7FFFFFF2, Status.UNSUPPORTED), ("2147483635", Status.DENIED),
        (0x7FFFFFFFFFFFFFF2, Status.UNSUPPORTED), ("9223372036854775794", Status.UNSUPPORTED),
        (9.223372036854775807e18, Status.NOT_ASKED), ("140737488355328.0", Status.NOT_ASKED),
        (140737488355330.0, Status.UNSUPPORTED), ("<<<NOT_SUPPORTED>>>", Status.UNSUPPORTED),
        ("<<<NOT_PERM>>>", Status.DENIED), ("<<<NULL>>>", Status.NOT_ASKED),
    ],
)  # fmt: skip
def test_blank_values_have_a_reason(value: float | str, status: Status) -> None:
    found = dcgm.blank(value)
    assert found is not None
    assert found.status is status
    assert found.detail
    assert not found.status.answered


@given(st.integers(-(10**9), 2 * 10**9) | st.floats(-1e12, 1e12).filter(lambda x: not 0x7FFFFFF0 <= x < 0x7FFFFFF4))
def test_measurements_are_not_blank(value: float) -> None:
    assert dcgm.blank(value) is None
    assert dcgm.blank(str(value)) is None


@given(st.text(max_size=80))
def test_any_word_is_answered(word: str) -> None:
    assert dcgm.field(word) in (None, *FIELDS)
    assert dcgm.error(word) in (None, *ERRORS)
    dcgm.blank(word)
    assert clock_events.find(word) in (None, *EVENTS)


@each("entry", EVENTS, ids=lambda e: e.id)
def test_a_clock_event_is_complete_and_found_by_every_name(entry: ClockEvent) -> None:
    for text in (entry.meaning, entry.fault_when, entry.check):
        assert HAN.search(text.zh)
        assert not HAN.search(text.en)
    assert entry.sources
    assert entry.bucket in {b["name"] for b in shard("buckets")}
    for name in (*entry.names, hex(entry.bit), str(entry.bit)):
        assert clock_events.find(name) is entry
        assert clock_events.find(name.upper()) is entry


def test_bits_and_faults() -> None:
    assert [e.bit for e in EVENTS] == [1 << n for n in range(9)]
    faults = {e.id: e.fault for e in EVENTS}
    assert faults["sw_power_cap"] is Fault.DEPENDS
    assert faults["hw_power_brake_slowdown"] is faults["hw_slowdown"] is faults["hw_thermal_slowdown"] is Fault.YES
    assert faults["gpu_idle"] is faults["sync_boost"] is Fault.NO
    assert clock_events.find("clocks_throttle_reasons.hw_power_brake_slowdown") is clock_events.find("HW Power Braking")


@given(st.integers(-(1 << 64), 1 << 64))
def test_a_mask_is_its_reasons_and_the_rest(mask: int) -> None:
    found, rest = clock_events.decode(mask)
    if mask < 0:
        assert (found, rest) == ((), 0)
    else:
        assert sum(e.bit for e in found) | rest == mask
        assert not rest & 0x1FF
