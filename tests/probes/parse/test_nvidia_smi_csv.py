from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Status
from probes.parse.nvidia_smi_csv import FORMAT
from tests.cases import each
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
from tests.probes.parse.vocabulary_check import assert_in_vocabulary

NAMES = ("smi/query-gpu.csv", "smi/query-apps.csv", "smi/query-pages.csv", "smi/dmon.txt", "smi/pmon.txt")
FIRST, SECOND = "0000:3b:00.0", "0000:af:00.0"


def test_a_query_names_its_fields_in_the_header() -> None:
    got = parse(FORMAT, NAMES[0])
    assert value(got, "gpu.temperature.core", FIRST) == 41
    assert value(got, "gpu.power.draw", FIRST) == 69.85
    assert value(got, "gpu.memory.total", FIRST) == 97887
    assert value(got, "gpu.ecc.volatile.corrected.dram", FIRST) == 1  # .dram is N/A, .device_memory is not
    assert value(got, "gpu.clock.event.hw_slowdown", FIRST) is False
    assert value(got, "gpu.row_remap.pending", SECOND) is True
    assert value(got, "gpu.recovery_action", SECOND) == "gpu_reset"
    assert value(got, "node.driver.version") == "590.10.01"
    assert value(got, "node.gpu.count") == value(got, "node.gpu.listed") == 2
    assert one(got, "gpu.index", SECOND).at == 1784016758_700 * 10**6


def test_a_gpu_that_is_lost_among_the_rows() -> None:
    got = parse(FORMAT, NAMES[0])
    assert value(got, "gpu.nvml.reachable", FIRST) is True
    assert value(got, "gpu.nvml.reachable", SECOND) is False
    assert status(got, "gpu.power.draw", SECOND) is Status.FAILED
    assert status(got, "gpu.ecc.volatile.uncorrected.total", SECOND) is Status.DENIED
    assert value(got, "gpu.fan.state", SECOND) == "error"
    assert not all_of(got, "gpu.fan.state", FIRST)  # N/A: it has no fan


def test_each_look_has_the_reasons_of_its_own_word() -> None:
    rows = (f"2026/11/24 08:00:0{n}.000, 0, {word}" for n, word in enumerate(("0x0", "0x40", "0x4")))
    got = FORMAT.parse("\n".join(("timestamp, index, clocks_event_reasons.active", *rows)), CONTEXT)
    for fact, told in (("hw_thermal", [False, True, False]), ("sw_power_cap", [False, False, True])):
        assert [o.value for o in all_of(got, f"gpu.clock.event.{fact}")] == told


def test_nounits_takes_the_unit_from_the_header_or_from_the_field() -> None:
    text = "index, memory.used [MiB], power.draw [W], clocks.current.sm [MHz], temperature.gpu\n0, 12, 55.5, 345, 41\n"
    got = FORMAT.parse(text, CONTEXT)
    assert_in_vocabulary(got, FORMAT)
    assert [value(got, f) for f in ("gpu.memory.used", "gpu.power.draw", "gpu.clock.sm", "gpu.temperature.core")] == [
        12, 55.5, 345, 41]  # fmt: skip
    assert one(got, "gpu.memory.used").subject.id == "index:0"


def test_rows_that_name_no_gpu_are_not_given_to_one() -> None:
    got = FORMAT.parse("temperature.gpu, memory.used [MiB]\n41, 12 MiB\n42, 13 MiB\n", CONTEXT)
    assert {o.subject.id for o in all_of(got, "gpu.temperature.core")} == {"unknown:row 0", "unknown:row 1"}


def test_processes_with_commas_in_their_names_and_on_two_gpus() -> None:
    got = parse(FORMAT, NAMES[1])
    assert value(got, "process.gpu_memory", "11327") == 2566 + 34
    assert value(got, "process.name", "11327") == "python, -c, print(1)"
    assert status(got, "process.gpu_memory", "11345") is Status.DENIED
    assert value(got, "gpu.processes", SECOND) == 2


def test_retired_pages_are_counted_by_row() -> None:
    got = parse(FORMAT, NAMES[2])
    assert value(got, "gpu.retired_pages.double_bit") == 2
    assert status(got, "gpu.retired_pages.single_bit") is Status.UNSUPPORTED


def test_an_empty_result_says_nothing_about_other_gpus() -> None:
    assert FORMAT.parse("pid, process_name, used_gpu_memory [MiB]\n", CONTEXT) == []


def test_of_a_listing_the_last_sample_counts_and_those_that_tell_of_work_are_kept() -> None:
    got = parse(FORMAT, NAMES[3])
    assert [o.value for o in got if o.fact == "gpu.power.draw" and o.subject.id == "index:0"] == [69.0, 71.0]
    assert value(got, "gpu.temperature.core", "index:1") == 62
    assert status(got, "gpu.temperature.memory", "index:0") is Status.UNSUPPORTED
    assert value(got, "gpu.clock.sm", "index:1") == 1980


def test_processes_of_a_listing() -> None:
    got = parse(FORMAT, NAMES[4])
    assert value(got, "gpu.processes", "index:0") == 0
    assert value(got, "gpu.processes", "index:1") == 2
    assert value(got, "process.gpu_utilization", "11345") == 99
    assert status(got, "process.gpu_utilization", "11346") is Status.UNSUPPORTED
    assert value(got, "process.name", "11346") == "my tool"
    assert value(got, "process.gpu_contexts", "11346") == ("compute", "graphics")
    assert status(got, "process.gpu_memory", "11345") is Status.UNSUPPORTED


def test_recognition() -> None:
    assert [FORMAT.sniff(capture(name)) for name in NAMES] == [95, 95, 95, 92, 92]
    assert FORMAT.sniff("temperature.gpu\n41\n") == 70
    for other in ("name\n", "date,price,amount\n1,2,3\n", "hello, world\n", "# gpu cluster notes\nthe gpu is new\n"):
        assert FORMAT.sniff(other) == 0, other
    for other in ("smi/hopper-590-sick.txt", "smi/table-590-mig.txt", "dcgm/exporter-k8s.prom", "smi/topo.txt"):
        assert FORMAT.sniff(capture(other)) == 0, other


@given(st.sampled_from(NAMES), st.integers(0, 10**6))
def test_any_cut_is_answered(name: str, at: int) -> None:
    check_cut(FORMAT, name, at)


@given(shuffled_lines(NAMES))
def test_any_text_is_answered(text: str) -> None:
    check_any(FORMAT, text)


def test_requires_reset_in_the_place_of_any_value_is_the_drivers_word_and_an_answer() -> None:
    rows = "0, 00000000:3B:00.0, 31, 0, 5 MiB\n1, 00000000:AF:00.0, {0}, {0}, {0}\n"
    head = "index, pci.bus_id, temperature.gpu, ecc.errors.uncorrected.volatile.total, memory.used [MiB]\n"
    for words in ("[GPU requires reset]", "GPU requires reset"):
        got = FORMAT.parse(head + rows.format(words), CONTEXT)
        assert_in_vocabulary(got, FORMAT)
        assert value(got, "gpu.reset_required", SECOND) is value(got, "gpu.nvml.reachable", SECOND) is True
        assert not all_of(got, "gpu.reset_required", FIRST)
    other = FORMAT.parse(head + rows.format("[Unknown Error]"), CONTEXT)
    assert value(other, "gpu.nvml.reachable", SECOND) is False
    assert not all_of(other, "gpu.reset_required")


VIOLATIONS = """# gpu    pwr     sm    mem   pclk  pviol  tviol     smutil     mmaact       dram      pcirx
# Idx      W      %      %    MHz      %   bool      GPM:%      GPM:%      GPM:%   GPM:MB/s
    0    128     99      1   1980      3      0          -          -          -          -
    0    131     98      1   1980     97      1       7.25          1          2       1000
"""


@each("comma", ("", ","))
def test_dmon_tells_violations_and_profiling_metrics(comma: str) -> None:
    text = "\n".join(
        line if not comma else "#" * line.startswith("#") + ", ".join(line.strip("# ").split())
        for line in VIOLATIONS.splitlines()
    )
    got = FORMAT.parse(text + "\n", CONTEXT)
    told = {f: [o.value for o in got if o.fact == f] for f in (o.fact for o in got)}
    assert told["gpu.violation.power.share"] == [3, 97]
    assert told["gpu.violation.thermal.now"] == [False, True]
    assert told["gpu.activity.sm"] == [None, 7.25], "a dash is no number"
    assert told["gpu.activity.tensor"][1] == 1
    assert told["gpu.pcie.rx"][1] == pytest.approx(1.048576)  # NVML counts MiB, whatever the heading says
    assert told["gpu.utilization.core"] == [99, 98]


ROW = "0, NVIDIA H100 80GB HBM3, GPU-5f6a1c2e-0000-4000-8000-000000000001, 00000000:1B:00.0, 34, 71.20 W, 700.00 W, 0 %, 1 MiB, 81559 MiB, 1980 MHz, P0\n"


def test_without_a_header_only_what_the_values_tell_is_told() -> None:
    text = ROW + ROW.replace("0, NV", "1, NV").replace("1B:", "43:").replace("0001", "0002")
    assert FORMAT.sniff(text) > 0
    got = FORMAT.parse(text, CONTEXT)
    assert_in_vocabulary(got, FORMAT)
    told = {o.fact: o.value for o in got if o.subject.id == "0000:43:00.0"}
    assert told == {
        "gpu.index": 1, "gpu.name": "NVIDIA H100 80GB HBM3", "gpu.uuid": "GPU-5f6a1c2e-0000-4000-8000-000000000002", "gpu.pci": "0000:43:00.0",
        "gpu.power.draw": 71.2, "gpu.memory.total": 81559, "gpu.performance_state": 0, "gpu.nvml.reachable": True,
    }  # fmt: skip
    assert FORMAT.unread is not None
    assert "column 5 (34), 7 (700.00 W), 8 (0 %), 9 (1 MiB), 11 (1980 MHz)" in str(FORMAT.unread(text)[0][1])
    assert not FORMAT.unread("index, temperature.gpu\n0, 34\n")


@each(
    ("cell", "fact", "said"),
    [
        ("[GPU is lost]", "gpu.nvml.reachable", False), ("[Unknown Error]", "gpu.nvml.reachable", False),
        ("[GPU requires reset]", "gpu.reset_required", True), ("[N/A]", "gpu.reset_required", None),
    ],
)  # fmt: skip
def test_without_a_header_a_gpu_that_answers_with_errors_alone_is_seen(cell: str, fact: str, said: bool | None) -> None:
    text = f"0, NVIDIA L40S, 30, 5 %, 61.33 W\n1, NVIDIA L40S, {cell}, {cell}, {cell}\n"
    assert FORMAT.sniff(text) > 0
    assert [o.value for o in all_of(FORMAT.parse(text, CONTEXT), fact, "index:1")] == (
        [said] if said is not None else []
    )


@each(
    ("text", "known"),
    [
        ("00000000:1B:00.0, Active, 0x0000000000000001\n", {"gpu.pci"}),
        ("GPU-5f6a1c2e-0000-4000-8000-000000000001, 560.35.03, 96.00.89.00.01\n", {"gpu.uuid", "node.driver.version", "gpu.vbios"}),
        ("2026/11/30 08:00:00.123, NVIDIA L40S, P0, 12 %\n", {"gpu.name", "gpu.performance_state"}),
        ("0, Tesla T4, 8\n1, Tesla T4, 8\n", {"gpu.index", "gpu.name"}),
    ],
)  # fmt: skip
def test_what_tells_itself_in_a_row(text: str, known: set[str]) -> None:
    assert FORMAT.sniff(text) > 0
    got = FORMAT.parse(text, CONTEXT)
    assert {o.fact for o in got} - {"node.gpu.listed", "gpu.nvml.reachable"} == known
    assert all(o.at is not None for o in got) is text.startswith("2026")


@each(
    "text",
    ["a, b, 3\nc, d, 4\n", "1, 2\n3, 4\n", "NVIDIA thinks, 3\nof, 4\n", "step 1, loss 2 %\nstep 2, loss 3 %\n", "5 MiB, x\ny, 5 MiB\n"],
)  # fmt: skip
def test_other_tables_with_commas_are_not_its_rows(text: str) -> None:
    assert FORMAT.sniff(text) == 0
