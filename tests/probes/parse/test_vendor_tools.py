"""Laws of the parsers behind other vendors' tools: what a healthy, a sick, a cut and a foreign output says."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.identity import resolve
from knowledge.observation import Clock, Event, Observation, Status, Subject, Value, gpu, node
from probes.base import Context, DocumentFormat, best
from probes.parse import amd_smi, hl_smi, mthreads_gmi, npu_smi, rocm_smi, rocminfo, xpu_dump, xpu_smi
from probes.parse._vendor_emit import MIB, PLAIN, WATTS, number, text_of
from probes.registry import formats
from tests.cases import each
from tests.conftest import ROOT
from tests.probes.parse.vocabulary_check import assert_in_vocabulary

CAPTURES = ROOT / "tests/captures/vendor"
FORMATS: dict[str, DocumentFormat] = {
    f.name: f
    for f in (
        amd_smi.FORMAT, rocm_smi.FORMAT, xpu_smi.FORMAT, xpu_dump.FORMAT, npu_smi.FORMAT, hl_smi.FORMAT, mthreads_gmi.FORMAT,
    )
}  # fmt: skip
OUTPUTS = sorted(p.name for p in CAPTURES.iterdir() if p.name not in ("README.md", "lspci-mi300x.txt"))
DOCUMENTS = [name for name in OUTPUTS if name.endswith(".json")]
TABLES = [name for name in OUTPUTS if name.endswith(".txt") and "no-driver" not in name]
CONTEXT = Context("-", "n1")
JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=30), st.just([]), st.just({}),
    st.just({"value": None, "unit": "W"}), st.just({"value": "7", "unit": 3}), st.just("N/A"), st.just(10**400),
    st.lists(st.integers(), max_size=3), st.just("\x1b[31m\u202e63"), st.just("-1 W"), st.just("9" * 40),
).map(copy.deepcopy)  # fmt: skip


@cache
def text(name: str) -> str:
    return (CAPTURES / name).read_text()


@cache
def form_of(name: str) -> DocumentFormat:
    form = best(formats(), text(name)[: 64 << 10])
    assert form is not None
    return FORMATS[form.name]


def read(name: str, edited: str | None = None) -> dict[tuple[str, str], Any]:
    """(fact, name of the subject) -> the value, or why there is none."""
    found = form_of(name).parse(text(name) if edited is None else edited, CONTEXT)
    return {(o.fact, o.subject.id): o.value if o.status is Status.OK else o.status for o in found}


@cache
def told(name: str) -> frozenset[tuple[str, Subject, Value]]:
    """Everything that an output tells."""
    return frozenset((o.fact, o.subject, o.value) for o in form_of(name).parse(text(name), CONTEXT))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(p for key, child in items for p in places(child, (*path, key)))]


# --- laws of all ----------------------------------------------------------------------------


@each("name", OUTPUTS)
def test_each_output_has_one_reader_and_stays_in_the_vocabulary(name: str) -> None:
    head = text(name)[: 64 << 10]
    form = form_of(name)
    assert name.startswith(form.name)
    assert [f.name for f in formats() if f.sniff(head) >= 90] == [form.name]
    assert_in_vocabulary(form.parse(text(name), CONTEXT), form)


@pytest.mark.slow
@each("name", DOCUMENTS)
@given(data=st.data())
def test_any_part_of_a_document_may_be_anything(name: str, data: st.DataObject) -> None:
    document = json.loads(text(name))
    if "gpu_data" in document:
        del document["gpu_data"][1:]
    for _ in range(data.draw(st.integers(1, 3))):
        *way, last = data.draw(st.sampled_from([p for p in places(document) if p] or [("gpu",)]))
        here = document
        for step in way:
            here = here[step]
        if data.draw(st.booleans()) and places(document)[1:]:
            del here[last]
        else:
            here[last] = data.draw(JUNK)
    form = form_of(name)
    assert_in_vocabulary(form.parse(json.dumps(document), CONTEXT), form)


@each("name", DOCUMENTS)
@given(share=st.floats(0, 1))
def test_a_document_that_is_cut_tells_of_no_gpu(name: str, share: float) -> None:
    whole = text(name).rstrip()
    found = form_of(name).parse(whole[: int(share * (len(whole) - 1))], CONTEXT)
    assert [o.status for o in found] == [Status.FAILED]
    assert found[0].fact.startswith("node.gpus.")


@each("name", TABLES)
@given(share=st.floats(0, 1))
def test_of_a_table_that_is_cut_the_whole_lines_are_told(name: str, share: float) -> None:
    whole, form = text(name), form_of(name)
    found = form.parse(whole[: int(share * len(whole))], CONTEXT)
    assert_in_vocabulary(found, form)
    if "health" not in name:  # the worst of a cut list of parts may be better than the worst of all
        cut = {(o.fact, o.subject, o.value) for o in found if o.status is Status.OK and not o.fact.startswith("node.")}
        assert cut <= told(name)


@each("name", FORMATS)
@given(said=st.text(max_size=200))
def test_of_any_text_nothing_is_invented(name: str, said: str) -> None:
    form = FORMATS[name]
    assert form.sniff(said) == 0
    found = form.parse(said, CONTEXT)
    assert_in_vocabulary(found, form)
    assert all(o.status is not Status.OK for o in found)


@each("name", TABLES)
@given(data=st.data())
def test_a_table_with_other_characters(name: str, data: st.DataObject) -> None:
    whole, form = text(name), form_of(name)
    at = data.draw(st.integers(0, len(whole) - 1))
    put = data.draw(st.text(max_size=6))
    assert_in_vocabulary(form.parse(whole[:at] + put + whole[at + data.draw(st.integers(0, 6)) :], CONTEXT), form)


@each("form", FORMATS.values(), ids=list(FORMATS))
def test_a_deep_document_is_no_document(form: DocumentFormat) -> None:
    found = form.parse('{"gpu":' + "[" * 200_000, CONTEXT)
    assert [o.status for o in found] == [Status.FAILED]


# --- printed quantities ---------------------------------------------------------------------


@each(
    ("said", "units", "value", "status"),
    [
        ({"value": 41, "unit": "W"}, WATTS, 41.0, Status.OK),
        ({"value": 41000, "unit": "mW"}, WATTS, 41.0, Status.OK),
        ({"value": 2, "unit": "GB"}, MIB, 2048.0, Status.OK),
        ("41.5", WATTS, 41.5, Status.OK),
        ("41 W", WATTS, 41.0, Status.OK),
        (0, PLAIN, 0.0, Status.OK),
        ("N/A", PLAIN, None, Status.UNSUPPORTED),
        ({"value": "N/A", "unit": "W"}, WATTS, None, Status.UNSUPPORTED),
        (None, PLAIN, None, Status.UNSUPPORTED),
        ({"value": 41, "unit": "J"}, WATTS, None, Status.FAILED),
        (True, PLAIN, None, Status.FAILED),
        ([1], PLAIN, None, Status.FAILED),
        ("many", PLAIN, None, Status.FAILED),
        (float("inf"), PLAIN, None, Status.FAILED),
        (10**400, PLAIN, None, Status.FAILED),
    ],
)
def test_printed_quantities(said: object, units: dict[str, float], value: float | None, status: Status) -> None:
    reading = number(said, units)
    assert (reading.value, reading.status) == (value, status)
    assert reading.ok or reading.detail


def test_printed_names() -> None:
    assert text_of("MI300X").value == "MI300X"
    nothing: list[object] = ["N/A", "", None, []]
    assert [text_of(said).status for said in nothing] == [Status.UNSUPPORTED] * 4


# --- AMD ------------------------------------------------------------------------------------


def test_the_numbers_of_metric_become_the_addresses_of_static() -> None:
    both = [
        *amd_smi.parse(text("amd-smi-static.json"), CONTEXT),
        *amd_smi.parse(text("amd-smi-metric-sick.json"), CONTEXT),
    ]
    found = {(o.fact, o.subject): o.value for o in resolve(both)}
    assert found["gpu.ras.uncorrected", gpu("0000:65:00.0", "n1")] == 2
    assert found["gpu.xgmi.state", gpu("0000:05:00.0", "n1")] == "multiple_errors"
    assert found["gpu.throttle.reasons", gpu("0000:75:00.0", "n1")] == ("hbm_thermal", "thermal")
    assert {s.id for f, s in found if f == "gpu.vendor"} == {f"0000:{bus}:00.0" for bus in ("05", "15", "65", "75")}


def test_before_rocm_7_the_document_was_a_list() -> None:
    listed = json.dumps(json.loads(text("amd-smi-metric-sick.json"))["gpu_data"])
    assert form_of("amd-smi-metric-sick.json").sniff(listed[:65536]) == 95
    assert read("amd-smi-metric-sick.json", listed) == read("amd-smi-metric-sick.json")


def edited(**ecc: object) -> dict[tuple[str, str], Any]:
    document = json.loads(text("amd-smi-metric-healthy.json"))
    document["gpu_data"][0]["ecc"] |= ecc
    return read("amd-smi-metric-healthy.json", json.dumps(document))


@pytest.mark.parametrize("channels", [1, 16, 128])
def test_counters_of_a_gpu_that_slept_are_no_errors(channels: int) -> None:
    ones = 0xFFFF * channels
    found = edited(total_correctable_count=ones, total_uncorrectable_count=ones)
    assert found["gpu.ras.uncorrected", "amd:0"] is Status.FAILED
    assert found["gpu.ras.corrected", "amd:0"] is Status.FAILED
    assert ("gpu.ras.uncorrected.blocks", "amd:0") not in found


def test_many_errors_are_errors() -> None:
    found = edited(total_correctable_count=0xFFFF, total_uncorrectable_count=3)
    assert (found["gpu.ras.corrected", "amd:0"], found["gpu.ras.uncorrected", "amd:0"]) == (0xFFFF, 3)
    assert edited(total_uncorrectable_count="N/A")["gpu.ras.uncorrected", "amd:0"] is Status.UNSUPPORTED


def test_a_tool_without_a_driver_says_so() -> None:
    for name, words in (("amd-smi-no-driver.txt", "driver not initialized"), ("npu-smi-no-driver.txt", "failed")):
        *_, found = form_of(name).parse(text(name), CONTEXT)
        assert (found.subject, found.status) == (node("n1"), Status.FAILED)
        assert words in found.detail


def test_warnings_before_the_document() -> None:
    name = "amd-smi-metric-healthy.json"
    assert read(name, "WARNING: user is not in the group render\n" + text(name)) == read(name)


def test_rocm_smi_tells_the_address_itself() -> None:
    found = read("rocm-smi-all.json")
    assert found["gpu.temperature.hotspot", "0000:15:00.0"] == 52
    assert found["gpu.memory.total", "0000:05:00.0"] == 196592
    assert found["gpu.vendor_index", "0000:05:00.0"] == "amd:card0"


# --- Intel ----------------------------------------------------------------------------------


def test_tiles_are_one_gpu() -> None:
    found = read("xpu-smi-stats-sick.json")
    assert (found["gpu.ras.uncorrected", "intel:1"], found["gpu.resets", "intel:1"]) == (3, 2)
    assert found["gpu.temperature.core", "intel:1"] == 50  # the hottest of 49 and 50


def test_rows_of_a_dump_are_samples_and_a_cut_one_is_none() -> None:
    found = xpu_dump.parse(text("xpu-dump.txt"), CONTEXT)
    own = [o for o in found if o.subject == gpu("intel:0", "n1")]
    assert [o.value for o in own if o.fact == "gpu.utilization.core"] == [100, 100]
    assert [o.value for o in own if o.fact == "gpu.activity.dram"] == [0.41, 0.39]
    assert {o.clock for o in own if o.at is not None} == {Clock.DAY}
    hot = [o for o in found if o.fact == "gpu.temperature.core" and o.subject.id == "intel:1"]
    assert {o.status for o in hot} == {Status.UNSUPPORTED}
    assert xpu_dump.FORMAT.sniff("Timestamp, DeviceId, nothing of ours") == 0
    tiles = "Timestamp, DeviceId, TileId, GPU Power (W)\n11:42:07.000, 0, 0, 90.1\n"
    assert [o.value for o in xpu_dump.parse(tiles, CONTEXT) if o.fact == "gpu.power.draw"] == [], (
        "a tile's power is not the GPU's"
    )


def test_tiles_of_a_dump_are_one_gpu_and_idle_units_have_no_work() -> None:
    head = "Timestamp, DeviceId, TileId, GPU Utilization (%), GPU EU Array Idle (%), GPU Memory Used (MiB)\n"
    rows = "11:42:07.000,    0, 0, 99.00, 96.00, 100.00\n11:42:07.000,    0, 1, 97.00, 90.00, 300.00\n"
    found = {o.fact: o.value for o in xpu_dump.parse(head + rows, CONTEXT)}
    assert (found["gpu.utilization.core"], found["gpu.activity.sm"], found["gpu.memory.used"]) == (98, 7, 400)
    cut = {o.fact: o.status for o in xpu_dump.parse(head + rows.replace("97.00", "N/A"), CONTEXT)}
    assert (cut["gpu.utilization.core"], cut["gpu.activity.sm"]) == (Status.UNSUPPORTED, Status.OK)


def test_the_list_ties_numbers_to_addresses() -> None:
    texts = ("xpu-smi-discovery.json", "xpu-smi-stats-sick.json", "xpu-smi-health-sick.txt")
    found = {(o.fact, o.subject): o.value for o in resolve([o for t in texts for o in xpu_smi.parse(text(t), CONTEXT)])}
    sick = gpu("0000:9a:00.0", "n1")
    assert (found["gpu.health.state", sick], found["gpu.health.parts", sick]) == (
        "critical",
        ("gpu frequency", "gpu memory"),
    )
    assert found["gpu.ras.uncorrected", sick] == 3
    assert found["gpu.health.state", gpu("0000:29:00.0", "n1")] == "ok"


def test_a_part_that_nobody_knows_makes_a_health_no_better() -> None:
    table = text("xpu-smi-health-healthy.txt").replace("Status: Ok     ", "Status: Unknown")
    found = read("xpu-smi-health-healthy.txt", table)
    assert found["gpu.health.state", "intel:0"] == "unknown"


def test_virtual_functions_are_shares() -> None:
    document = json.loads(text("xpu-smi-discovery.json"))
    document["device_list"][1]["device_function_type"] = "virtual"
    found = read("xpu-smi-discovery.json", json.dumps(document))
    assert found["node.gpus.intel", "n1"] == 1
    assert ("gpu.vendor", "0000:9a:00.0") not in found


@each(
    "document",
    [
        {"device_id": 4, "pci_bdf_address": "0000:41:00.0"},
        {"device_list": [{"device_id": 0, "pci_bdf_address": "0000:41:00.0", "vendor_name": "NVIDIA Corporation"}]},
        {"inventory": {"device_id": "0x2330", "pci_bdf_address": "0000:41:00.0", "note": "beside Intel(R) Xeon"}},
        {"device_id": "nic-7", "pci_bdf_address": "0000:41:00.0", "vendor_name": "Intel(R) Corporation"},
        {"about": "XPUM_STATS_POWER", "device_id": 1},
    ],
    ids=["no vendor", "another vendor", "an inventory", "an id of another kind", "a word of it"],
)
def test_keys_that_others_use_as_well_are_not_enough(document: dict[str, Any]) -> None:
    assert xpu_smi.FORMAT.sniff(json.dumps(document, indent=1)) == 0


def test_one_device_of_the_tool_is_known_by_its_maker() -> None:
    one = json.loads(text("xpu-smi-discovery.json"))["device_list"][0]
    for plain in (one, {k: v for k, v in one.items() if k != "vendor_name"}):
        assert xpu_smi.FORMAT.sniff(json.dumps(plain)) == 95


def test_an_error_of_the_tool_is_its_own_words() -> None:
    (found,) = xpu_smi.parse('{"error": "Fail to initialize XPUM", "errno": 1}', CONTEXT)
    assert (found.status, found.detail) == (Status.FAILED, "Fail to initialize XPUM")


# --- tables ---------------------------------------------------------------------------------


def test_states_of_ascend_chips() -> None:
    found = read("npu-smi-sick.txt")
    states = {s: v for (f, s), v in found.items() if f == "gpu.health.state"}
    assert list(states.values()) == ["ok", "alarm", "warning", "unknown"]
    assert found["node.gpus.huawei", "n1"] == 4
    assert ("gpu.power.draw", "0000:9b:00.0") not in found  # of a second chip there is none


def test_an_ascend_table_of_cards_with_one_chip() -> None:
    table = (
        "+------+\n| npu-smi 23.0.rc2                 Version: 23.0.rc2                        |\n"
        "| 2     910B3               | OK            | 95.1        47                0    / 0             |\n"
        "| 0                         | 0000:41:00.0  | 12          0    / 0          3385 / 65536         |\n"
        "| 3     310P3               | NA            | NA          NA                0    / 0             |\n"
    )
    assert npu_smi.FORMAT.sniff(table) == 100
    found = {(o.fact, o.subject.id): o.value for o in npu_smi.parse(table, CONTEXT)}
    assert found["gpu.name", "0000:41:00.0"] == "Ascend 910B3"
    assert (found["gpu.utilization.core", "0000:41:00.0"], found["gpu.memory.used", "0000:41:00.0"]) == (12, 3385)


def test_errors_of_gaudi() -> None:
    found = read("hl-smi-sick.txt")
    assert found["gpu.ras.uncorrected", "0000:44:00.0"] == 3
    table = text("hl-smi-sick.txt").replace("                   3  |", "                 N/A  |")
    assert read("hl-smi-sick.txt", table)["gpu.ras.uncorrected", "0000:44:00.0"] is Status.UNSUPPORTED


def test_moore_threads_tells_no_health() -> None:
    facts: set[str] = {fact for fact, _ in read("mthreads-gmi.txt")}
    assert not facts & {"gpu.ras.uncorrected", "gpu.health.state"}


def test_who_made_the_captures_is_told() -> None:
    assert "made by us" in Path(CAPTURES / "README.md").read_text().replace("\n", " ")


def test_no_two_gpus_of_an_output_are_one() -> None:
    for name in OUTPUTS:
        found: list[Observation] = form_of(name).parse(text(name), CONTEXT)
        keys = [(o.fact, o.subject, o.at) for o in found]
        assert len(keys) == len(set(keys)), name


def test_a_limit_of_zero_is_none() -> None:
    record = {
        "gpu": 0,
        "temperature": {"hotspot": {"value": 36, "unit": "C"}},
        "limit": {"slowdown_hotspot_temperature": {"value": 0, "unit": "C"}},
    }
    got = {o.fact: o for o in amd_smi.FORMAT.parse(json.dumps({"gpu_data": [record]}), Context("x", "n"))}
    assert got["gpu.temperature.hotspot"].value == 36
    assert got["gpu.temperature.hotspot_slowdown"].status is Status.UNSUPPORTED


def test_another_document_with_a_gpu_and_a_hotspot_is_not_taken() -> None:
    assert amd_smi.FORMAT.sniff('{"gpu": 0, "hotspot": "wifi"}') == 0


# What amd-smi metric -u -p --csv and amd-smi monitor --csv print: keys without sections, numbers without units.
METRIC_CSV = (
    "gpu,gfx_activity,umc_activity,mm_activity,socket_power,gfx_voltage,power_management\n0,100,2,N/A,215,N/A,ENABLED\n"
)
MONITOR_CSV = (
    "gpu,xcp,power_usage,hotspot_temperature,memory_temperature,gfx_clk,gfx,mem,encoder,decoder,vram_used,vram_total\n"
    "0,0,215,44,37,2100,100,2,N/A,0,171000,196592\n0,0,741,71,58,2050,100,48,N/A,0,171000,196592\n"
)


def test_comma_separated_values_are_those_of_the_document() -> None:
    usage, power = "gpu.utilization.core", "gpu.power.draw"
    metric = {o.fact: o.value for o in amd_smi.parse(METRIC_CSV, CONTEXT)}
    assert (metric[usage], metric["gpu.utilization.memory"], metric[power]) == (100, 2, 215)
    monitor = {o.fact: o.value for o in amd_smi.parse(MONITOR_CSV, CONTEXT)}
    assert (monitor[usage], monitor["gpu.utilization.memory"], monitor[power]) == (100, 48, 741)
    assert (monitor["gpu.memory.used"], monitor["gpu.clock.graphics"]) == (171000, 2050)
    assert "gpu.temperature.memory" in monitor


# amd-smi monitor -w 1, as printed in ROCm/rocm_smi_lib issue 216
WATCHED = """\
 TIMESTAMP  GPU  POWER  GPU_TEMP  MEM_TEMP  GFX_UTIL  GFX_CLOCK  MEM_UTIL  MEM_CLOCK  SINGLE_ECC  DOUBLE_ECC  PCIE_REPLAY  VRAM_USED  VRAM_TOTAL
1740686195    0    8 W     28 °C     32 °C       0 %      0 MHz       0 %     96 MHz           0           0            0      16 MB    30679 MB
1740686195    1  210 W     29 °C     32 °C      97 %   1900 MHz      20 %     96 MHz           0           0            0    9016 MB    30679 MB
1740686196    0  190 W     28 °C     32 °C      99 %   1950 MHz      31 %     96 MHz           0           0            0    9020 MB    30679 MB
1740686196    1  211 W     29 °C     32 °C      98 %   1900 MHz      20 %     96 MHz           0           0            0    9016 MB    30679 MB
"""


def test_rounds_that_tell_their_time_are_all_read() -> None:
    """What is watched is a row of samples, each with its time; a round without one tells the last alone."""
    as_csv = "timestamp,gpu,power_usage,gfx\n1740686195,0,8,0\n1740686195,1,210,97\n1740686196,0,190,99\n1740686196,1,211,98\n"
    for shown in (WATCHED, as_csv):
        assert amd_smi.sniff(shown) == 95
        of = [o for o in amd_smi.parse(shown, CONTEXT) if o.fact == "gpu.utilization.core" and o.subject.id == "amd:0"]
        assert [(o.value, (o.at or 0) // 10**9, o.clock) for o in of] == [
            (0, 1740686195, Clock.REALTIME),
            (99, 1740686196, Clock.REALTIME),
        ]
    untimed = "".join(f"{line[10:]}\n" for line in WATCHED.splitlines())
    last = [
        o.value for o in amd_smi.parse(untimed, CONTEXT) if o.fact == "gpu.utilization.core" and o.subject.id == "amd:0"
    ]
    assert last == [99]
    others = ("gpu,power,clk\n0,215,2100\n", "gpu,name,temp\n0,a,1\n", "index, name\n0, NVIDIA L4\n", "gpu,gfx\n0,1\n")
    assert [amd_smi.FORMAT.sniff(text) for text in (METRIC_CSV, MONITOR_CSV, *others)] == [95, 95, 0, 0, 0, 0]
    assert amd_smi.parse(METRIC_CSV[:-20], CONTEXT)[0].status is not Status.OK, "a row that is cut tells nothing"


PAGES = "GPU: 5\n    RETIRED:\n        RETIRED_BAD_PAGES:\n            PAGE_ADDRESS: 0x7f01\n            STATUS: RESERVED\n            PAGE_ADDRESS: 0x7f02\n            STATUS: RESERVED\n    PENDING:\n        PAGE_ADDRESS: 0x7f03\n        STATUS: PENDING\n    UN_RES: No bad pages found.\n"
PAGES_JSON = [{"gpu": 5, "retired": [{"page_address": "0x1", "status": "RESERVED"}] * 2, "pending": {"page_address": "0x2"}, "un_res": "No bad pages found."}]  # fmt: skip


@pytest.mark.parametrize("said", [PAGES, json.dumps(PAGES_JSON)])
def test_bad_pages_are_counted_by_what_became_of_them(said: str) -> None:
    assert amd_smi.FORMAT.sniff(said) == 95
    got = {o.fact.rpartition(".")[2]: o.value for o in amd_smi.parse(said, CONTEXT) if "bad_pages" in o.fact}
    assert got == {"retired": 2, "pending": 1, "failed": 0}


def test_bad_pages_that_the_driver_does_not_tell_are_not_none() -> None:
    got = amd_smi.parse("GPU: 0\n    RETIRED: N/A\n    PENDING: N/A\n    UN_RES: N/A\n", CONTEXT)
    assert {o.status for o in got if "bad_pages" in o.fact} == {Status.UNSUPPORTED}


def test_a_value_as_wide_as_its_column_is_read() -> None:
    table = (
        "GPU  XCP  POWER   PWR_CAP  GPU_T  MEM_T   GFX_CLK   GFX%   MEM%    VRAM_USAGE\n"
        "  0    0  138 W     750 W  38 °C  31 °C   132 MHz    0 %    0 %    0.3/191.7 GB\n"
        "  1    0 1348 W    1400 W 108 °C 101 °C   780 MHz  100 %    N/A  181.0/191.7 GB\n"
    )
    found = {(o.fact, o.subject.id): o.value for o in amd_smi.parse(table, CONTEXT)}
    assert [found[f"gpu.{fact}", "amd:1"] for fact in ("power.draw", "temperature.hotspot", "temperature.memory")] == [
        1348,
        108,
        101,
    ]
    assert found["gpu.memory.used", "amd:1"] == 185344


AGENTS = (
    "ROCk module version 6.10.5 is loaded\n==========               \nHSA Agents               \n==========               \n"
    "Agent 1                  \n  Marketing Name:          AMD EPYC 9654 96-Core Processor\n  Device Type:             CPU                \n"
    "Agent 2                  \n  Marketing Name:          AMD Instinct MI300X                \n  Device Type:             GPU                \n"
)


def test_agents_of_rocminfo_are_told_of_a_whole_listing_only() -> None:
    assert rocminfo.FORMAT.sniff(AGENTS) == 96
    found = {o.fact: o.value for o in rocminfo.parse(AGENTS + "*** Done ***             \n", CONTEXT)}
    assert (found["node.gpus.amd"], found["gpu.name"]) == (1, "AMD Instinct MI300X")
    assert [o.status for o in rocminfo.parse(AGENTS, CONTEXT)] == [Status.FAILED]


@each(
    "said, kind",
    [
        (text("amd-smi-no-driver.txt"), "not_loaded"),
        (text("npu-smi-no-driver.txt"), "unreachable"),
        ("cat: /sys/module/amdgpu/initstate: No such file or directory\nERROR:root:Driver not initialized (amdgpu not found in modules)\n", "not_loaded"),
        ("ROCk module is NOT loaded, possibly no GPU devices\n", "not_loaded"),
        ("ROCk module is loaded\nUnable to open /dev/kfd read-write: Permission denied\n", "denied"),
    ],
)  # fmt: skip
def test_what_stands_between_a_tool_and_its_gpus(said: str, kind: str) -> None:
    form = best(formats(), said)
    assert isinstance(form, DocumentFormat)
    [event] = [o for o in form.parse(said, CONTEXT) if o.status is Status.OK]
    assert isinstance(event.value, Event)
    assert event.value.fields["kind"] == kind
    assert_in_vocabulary(form.parse(said, CONTEXT), form)


def test_health_and_errors_of_one_ascend_chip_after_another() -> None:
    text = (
        "$ npu-smi info -t health -i 3\n        Health Status                  : Alarm\n        Error Code                     : 80E01801\n"
        "        Error Information              : event state=Multi bit ECC\n"
    )
    found = {(o.fact, o.subject.id): o.value for o in npu_smi.parse(text, CONTEXT)}
    assert found["gpu.health.state", "huawei:3/0"] == "alarm"
    assert found["gpu.health.parts", "huawei:3/0"] == ("event state=Multi bit ECC 80E01801",)
    chip = "        DDR Double Bit Error Count     : {}\n        HBM Single Bit Error Count     : 7\n        HBM Double Bit Error Count     : {}\n        Chip ID                        : {}\n"
    text = (
        "        NPU ID                         : 5\n        Chip Count                     : 2\n\n"
        + chip.format(0, 0, 0)
        + chip.format(1, 2, 1)
    )
    assert npu_smi.FORMAT.sniff(text) == 95
    found = {(o.fact, o.subject.id): o.value for o in npu_smi.parse(text, CONTEXT)}
    assert [found["gpu.ras.uncorrected", f"huawei:5/{n}"] for n in (0, 1)] == [0, 3]
    assert "node.gpus.huawei" not in {fact for fact, _ in found}


XPU_STATS = (
    "| Device ID                    | 3                                                                 |\n"
    "| GPU Utilization (%)          | Tile 0: 99, Tile 1: 98                                            |\n"
    "| Reset                        | Tile 0: 2; Tile 1: 0; total: 2                                    |\n"
    "| Cache Errors Uncorrectable   | Tile 0: 3; Tile 1: 1; total: 4                                    |\n"
    "| Mem Errors Uncorrectable     | 0                                                                 |\n"
    "| GPU Power (W)                | Tile 0: 312, Tile 1: N/A                                          |\n"
)


def test_intels_tables_tell_what_its_documents_tell() -> None:
    assert xpu_smi.FORMAT.sniff(XPU_STATS) == 95
    found = {
        (o.fact, o.subject.id): o.value
        for o in xpu_smi.parse(XPU_STATS + XPU_STATS.replace(" 3  ", " 4  ", 1), CONTEXT)
    }
    for name in ("intel:3", "intel:4"):
        told = [found[f"gpu.{fact}", name] for fact in ("utilization.core", "resets", "ras.uncorrected", "power.draw")]
        assert told == [99, 2, 4, None]
    listing = (
        "| Device ID | Device Information                                                                   |\n"
        "| 0         | Device Name: Intel(R) Data Center GPU Max 1550                                       |\n"
        "|           | PCI BDF Address: 0000:29:00.0                                                        |\n"
        "|           | Function Type: physical                                                              |\n"
    )
    assert xpu_smi.FORMAT.sniff(listing) == 95
    found = {(o.fact, o.subject.id): o.value for o in xpu_smi.parse(listing, CONTEXT)}
    assert found["gpu.name", "0000:29:00.0"] == "Intel(R) Data Center GPU Max 1550"
    assert found["node.gpus.intel", "n1"] == 1


@each("column, count, told", [("volatile", 3, 3), ("aggregate", 0, 0), ("aggregate", 3, None)])
def test_a_query_of_gaudis_is_one_of_gaudis(column: str, count: int, told: int | None) -> None:
    text = (
        f"index, name, bus_id, temperature.aip [C], ecc.errors.uncorrected.{column}.total, memory.used [MiB]\n"
        f"1, HL-225, 0000:9a:00.0, 27, {count}, 768 MiB\n"
    )
    assert best(formats(), text) is hl_smi.FORMAT
    found = {(o.fact, o.subject.id): o.value for o in hl_smi.parse(text, CONTEXT)}
    assert found["gpu.ras.uncorrected", "0000:9a:00.0"] == told
    assert (found["gpu.temperature.core", "0000:9a:00.0"], found["gpu.vendor", "0000:9a:00.0"]) == (27, "habana")
