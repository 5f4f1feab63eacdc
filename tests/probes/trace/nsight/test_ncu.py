"""Reports of Nsight Compute: one launch told in three layouts is one profile, and what follows from it."""

from __future__ import annotations

import csv
import io
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.errors import InputError
from probes.trace.nsight.ncu import Bound, KernelProfile, Stall, looks_like, read_ncu
from probes.trace.nsight.ncu_advice import meaning
from probes.trace.nsight.ncu_csv import number, scaled

PROLOGUE = '==PROF== Connected to process 7 (/usr/bin/python3)\nepoch 1, loss 0.5\n==PROF== Profiling "k" - 0: 0%....100% - 40 passes\n'
ABOUT = [
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
]
KERNEL = [
    "0",
    "7",
    "python3",
    "127.0.0.1",
    "void k<float, 4>(float *, int)",
    "1",
    "7",
    "(200, 1, 1)",
    "(100, 1, 1)",
    "0",
    "9.0",
]

# display name, raw name, unit of the details page, unit of the raw page, value (details), value (raw)
METRICS = [
    ("GPU Speed Of Light Throughput", "Duration", "gpu__time_duration.sum", "us", "nsecond", "1,234.50", "1,234,500"),
    ("GPU Speed Of Light Throughput", "Compute (SM) Throughput", "sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", "%", "12.50", "12.50"),
    ("GPU Speed Of Light Throughput", "Memory Throughput", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "%", "%", "40.00", "40.00"),
    ("Memory Workload Analysis", "Memory Throughput", "dram__bytes.sum.per_second", "Gbyte/s", "Gbyte/second", "1,340.25", "1,340.25"),
    ("GPU Speed Of Light Throughput", "DRAM Throughput", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "%", "%", "38.00", "38.00"),
    ("Launch Statistics", "Registers Per Thread", "launch__registers_per_thread", "register/thread", "register/thread", "168", "168"),
    ("Launch Statistics", "Static Shared Memory Per Block", "launch__shared_mem_per_block_static", "Kbyte/block", "byte/block", "4.00", "4,000"),
    ("Launch Statistics", "Waves Per SM", "launch__waves_per_multiprocessor", "", "", "1.25", "1.25"),
    ("Launch Statistics", "# SMs", "launch__sm_count", "SM", "", "132", "132"),
    ("Occupancy", "Block Limit SM", "launch__occupancy_limit_blocks", "block", "block", "32", "32"),
    ("Occupancy", "Block Limit Registers", "launch__occupancy_limit_registers", "block", "block", "1", "1"),
    ("Occupancy", "Block Limit Shared Mem", "launch__occupancy_limit_shared_mem", "block", "block", "12", "12"),
    ("Occupancy", "Block Limit Warps", "launch__occupancy_limit_warps", "block", "block", "9", "9"),
    ("Occupancy", "Theoretical Occupancy", "sm__maximum_warps_per_active_cycle_pct", "%", "%", "21.88", "21.88"),
    ("Occupancy", "Achieved Occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active", "%", "%", "10.50", "10.50"),
]  # fmt: skip


def table(rows: list[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows(rows)
    return text.getvalue()


def details(kernel: list[str] = KERNEL) -> str:
    head = [
        *ABOUT,
        "Section Name",
        "Metric Name",
        "Metric Unit",
        "Metric Value",
        "Rule Name",
        "Rule Type",
        "Rule Description",
    ]
    rows = [[*kernel, section, name, unit, value, "", "", ""] for section, name, _, unit, _, value, _ in METRICS]
    rule = [*kernel, "SpeedOfLight", "", "", "", "SOLBottleneck", "OPT", "This kernel exhibits low compute throughput."]
    return PROLOGUE + table([head, *rows, rule])


def raw(*extra: tuple[str, str, str]) -> str:
    columns = [(raw_name, unit, value) for _, _, raw_name, _, unit, _, value in METRICS] + list(extra)
    return PROLOGUE + table([[*ABOUT, *(c[0] for c in columns)], [""] * len(ABOUT) + [c[1] for c in columns],
                             [*KERNEL, *(c[2] for c in columns)]])  # fmt: skip


def european(text: str) -> str:
    return text.replace(".", "\0").replace(",", ".").replace("\0", ",")


def read(path: Path, text: str, encoding: str = "utf-8") -> tuple[KernelProfile, ...]:
    (path / "ncu.csv").write_text(text, encoding=encoding)
    return read_ncu(str(path / "ncu.csv"))


def only(path: Path, text: str, encoding: str = "utf-8") -> KernelProfile:
    (one,) = read(path, text, encoding)
    return one


@pytest.mark.parametrize("text", [details(), raw()])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_both_layouts_tell_the_same_launch(text: str, encoding: str, tmp_path: Path) -> None:
    one = only(tmp_path, text, encoding)
    assert one.name == "void k<float, 4>(float *, int)"
    assert (one.grid, one.block, one.blocks, one.threads) == ((100, 1, 1), (200, 1, 1), 100, 200)
    assert one.duration_ns == pytest.approx(1_234_500)
    assert (one.compute_pct, one.memory_pct, one.dram_pct) == (12.5, 40, 38)
    assert (one.occupancy_theoretical_pct, one.occupancy_achieved_pct) == (21.88, 10.5)
    assert one.limits == {"registers": 1, "shared memory": 12, "blocks": 32, "warps": 9}
    assert (one.limiters, one.registers, one.shared_bytes, one.waves, one.sms) == (("registers",), 168, 4000, 1.25, 132)
    assert (one.bound, one.tensor_pct, one.l2_pct, one.stalls, one.lines) == (Bound.LATENCY, None, None, (), ())


def test_a_report_of_another_locale_is_the_same(tmp_path: Path) -> None:
    head = [*ABOUT, "Section Name", "Metric Name", "Metric Unit", "Metric Value"]
    rows = [[*KERNEL, s, name, unit, european(value)] for s, name, _, unit, _, value, _ in METRICS]
    theirs, ours = only(tmp_path, table([head, *rows])), only(tmp_path, details())
    assert theirs.duration_ns == ours.duration_ns
    assert theirs.waves == ours.waves
    assert theirs.limits == ours.limits


def test_the_launch_is_advised(tmp_path: Path) -> None:
    one = only(tmp_path, details())
    assert [a.code for a in one.advice] == [
        "grid-below-sms",
        "block-not-warps",
        "tail-wave",
        "occupancy-registers",
        "occupancy-not-reached",
    ]
    assert "at least 32 of them idle" in one.advice[0].text.en
    assert "24 lanes" in one.advice[1].text.en
    assert one.rules == ("This kernel exhibits low compute throughput.",)
    assert all(a.text.zh for a in one.advice)


def test_a_launch_near_its_peak_is_left_alone(tmp_path: Path) -> None:
    busy = (
        raw()
        .replace('"12.50"', '"91.00"')
        .replace("(200, 1, 1)", "(256, 1, 1)")
        .replace("(100, 1, 1)", "(13200, 1, 1)")
    )
    one = only(tmp_path, busy.replace('"1.25"', '"100.00"').replace('"10.50"', '"20.00"'))
    assert (one.bound, one.advice) == (Bound.COMPUTE, ())


def test_nothing_is_advised_of_what_is_not_there(tmp_path: Path) -> None:
    one = only(
        tmp_path,
        '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n"0","k","gpu__time_duration.sum","us","n/a"\n',
    )
    assert (one.duration_ns, one.grid, one.bound, one.advice, one.limiters) == (None, None, Bound.UNKNOWN, (), ())


def test_stalls_prefer_samples_and_leave_out_what_was_issued(tmp_path: Path) -> None:
    extra = [("smsp__pcsamp_warps_issue_stalled_long_scoreboard", "", "60"), ("smsp__pcsamp_warps_issue_stalled_selected", "", "20"),
             ("smsp__pcsamp_warps_issue_stalled_barrier", "", "20"), ("smsp__pcsamp_warps_issue_stalled_barrier_not_issued", "", "19"),
             ("smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", "inst", "9.5")]  # fmt: skip
    assert only(tmp_path, raw(*extra)).stalls == (Stall("long_scoreboard", 0.6, 60), Stall("barrier", 0.2, 20))
    ratios = [("smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", "inst", "1.50"),
              ("smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", "inst", "4.50")]  # fmt: skip
    assert only(tmp_path, raw(*ratios)).stalls == (Stall("long_scoreboard", 0.75), Stall("wait", 0.25))
    assert meaning("long_scoreboard") is not None
    assert meaning("something new") is None


HEAD = ["Warp Stall Sampling (All Samples)", "Warp Stall Sampling (Not-issued Samples)", "# Samples", "Instructions Executed",
        "stall_barrier", "stall_long_sb", "stall_selected", "stall_long_sb (Not Issued)"]  # fmt: skip


def test_the_source_page_names_lines(tmp_path: Path) -> None:
    text = table([["File Name", "/src/k.cu"], ["Line No", "Source", "Address", "Source", *HEAD],
                  ["41", "  x = in[i];", "-", "-", "1,050", "900", "1,050", "32", "0", "1,000", "50", "900"],
                  ["41", "  x = in[i];", "0x7f00", "LDG.E R2, [R4]", "1,050", "900", "1,050", "32", "0", "1,000", "50", "900"],
                  ["42", "  __syncthreads();", "-", "-", "350", "300", "350", "32", "350", "0", "0", "0"],
                  ["43", "}", "-", "-", "0", "0", "0", "0", "0", "0", "0", "0"]])  # fmt: skip
    one = only(tmp_path, text)
    assert [(x.file, x.line, x.samples, x.share) for x in one.lines] == [
        ("/src/k.cu", 41, 1050, 0.75),
        ("/src/k.cu", 42, 350, 0.25),
    ]
    assert one.lines[0].text == "x = in[i];"
    assert one.lines[0].stalls == (Stall("long_scoreboard", 1000 / 1050, 1000),)
    assert [s.reason for s in one.stalls] == ["long_scoreboard", "barrier"]


def test_instructions_stand_in_for_lines(tmp_path: Path) -> None:
    page = [
        ["Kernel Name", "k_a(float *)"],
        ["Address", "Source", *HEAD],
        ["0x7f00", "LDG.E R2", "90", "80", "90", "8", "0", "80", "10", "80"],
        ["0x7f10", "BAR.SYNC", "30", "30", "30", "8", "30", "0", "0", "0"],
    ]
    one, two = read(tmp_path, table([*page, ["Kernel Name", "k_b"], *page[1:]]))
    assert (one.name, two.name) == ("k_a(float *)", "k_b")
    assert [(x.address, x.text, x.line, x.samples) for x in one.lines] == [
        ("0x7f00", "LDG.E R2", None, 90),
        ("0x7f10", "BAR.SYNC", None, 30),
    ]


def test_launches_of_one_kernel_stay_apart(tmp_path: Path) -> None:
    again = details(["1", *KERNEL[1:]])
    assert [p.id for p in read(tmp_path, details() + again)] == ["0", "1"]


@pytest.mark.parametrize(
    "text", ["", "a,b\n1,2\n", "==PROF== nothing\n", '"ID","Kernel Name","Metric Name","Metric Value"\n', "\0\0\0"]
)
def test_what_is_no_report_is_an_input_error(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read(tmp_path, text)
    with pytest.raises(InputError):
        read_ncu(str(tmp_path / "missing.csv"))


@given(st.lists(st.lists(st.sampled_from([*ABOUT, *HEAD, "Metric Name", "Metric Value", "Source", "Address", "Line No", "a__b", "", "1e999",
                                          "-5", "(1,", "File Name", "\x1b[31m", "stall_x", "9" * 50]), max_size=14), max_size=12))  # fmt: skip
def test_any_table_gives_profiles_or_an_input_error(rows: list[list[str]]) -> None:
    with TemporaryDirectory() as folder, suppress(InputError):
        for one in read(Path(folder), table(rows)):
            assert "\x1b" not in one.name
            assert all(0 <= x.share <= 1 for x in one.stalls)
            assert all(0 <= x.share <= 1 for x in one.lines)


@given(st.integers(0, 10**12), st.integers(0, 99))
def test_numbers_of_both_locales_are_one(whole: int, part: int) -> None:
    text = f"{whole:,}.{part:02d}"
    assert number(text, comma=False) == number(european(text), comma=True) == float(f"{whole}.{part:02d}")


@pytest.mark.parametrize(("unit", "seconds"), [("ns", 1e-9), ("nsecond", 1e-9), ("us", 1e-6), ("usecond", 1e-6), ("ms", 1e-3),
                                               ("msecond", 1e-3), ("s", 1), ("second", 1), ("Kbyte/block", 1e3), ("byte", 1)])  # fmt: skip
def test_units_of_all_versions(unit: str, seconds: float) -> None:
    assert scaled(1.0, unit) == seconds
    assert scaled(1.0, "cycle") is None


def test_reports_are_recognised() -> None:
    for text in (
        details(),
        raw(),
        details()[len(PROLOGUE) :],
        raw()[len(PROLOGUE) :],
        table([["Address", "Source", *HEAD]]),
    ):
        assert looks_like(text.encode()[:4096])
    assert looks_like(details().encode("utf-16")[:4096])
    for other in (
        b"",
        b'"Time (%)","Total Time (ns)","Instances","Name"',
        b'{"traceEvents": []}',
        b"Start (ns),Duration (ns),CorrId,Name",
    ):
        assert not looks_like(other)
