from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Clock, Scope, Status
from probes.parse.nvidia_smi_q import FORMAT
from tests.cases import each
from tests.probes.parse import smi_pair
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

NAMES = ("hopper-590-sick.txt", "kepler-340.txt", "lost-535.txt", "mig-590.txt", "pages-only.txt")
GPU = "0000:3b:00.0"


def test_a_sick_gpu_of_a_new_driver_tells_every_sick_value() -> None:
    got = parse(FORMAT, "smi/hopper-590-sick.txt")
    assert {
        fact: value(got, fact, GPU)
        for fact in (
            "gpu.pcie.width", "gpu.pcie.width.max", "gpu.pcie.replay", "gpu.clock.event.hw_thermal",
            "gpu.clock.event.hw_slowdown", "gpu.clock.event.sw_thermal", "gpu.clock.event.idle",
            "gpu.clock.event_time.hw_thermal", "gpu.ecc.mode", "gpu.ecc.mode.pending",
            "gpu.ecc.volatile.uncorrected.dram", "gpu.ecc.sram_threshold_exceeded", "gpu.repair.channel_pending",
            "gpu.row_remap.pending", "gpu.row_remap.failure", "gpu.row_remap.banks.none", "gpu.temperature.core",
            "gpu.temperature.tlimit", "gpu.power.limit", "gpu.power.limit.requested", "gpu.fabric.state",
            "gpu.fabric.health.summary", "gpu.fabric.health.bandwidth", "gpu.fabric.health.route_unhealthy",
            "gpu.fabric.health.configuration", "gpu.retired_pages.double_bit", "gpu.retired_pages.pending",
            "gpu.recovery_action", "gpu.architecture", "gpu.performance_state", "gpu.nvml.reachable",
        )
    } == {
        "gpu.pcie.width": 8, "gpu.pcie.width.max": 16, "gpu.pcie.replay": 120, "gpu.clock.event.hw_thermal": True,
        "gpu.clock.event.hw_slowdown": True, "gpu.clock.event.sw_thermal": True, "gpu.clock.event.idle": False,
        "gpu.clock.event_time.hw_thermal": 4000, "gpu.ecc.mode": True, "gpu.ecc.mode.pending": False,
        "gpu.ecc.volatile.uncorrected.dram": 5, "gpu.ecc.sram_threshold_exceeded": True,
        "gpu.repair.channel_pending": True, "gpu.row_remap.pending": True, "gpu.row_remap.failure": True,
        "gpu.row_remap.banks.none": 1, "gpu.temperature.core": 88, "gpu.temperature.tlimit": -3,
        "gpu.power.limit": 500.0, "gpu.power.limit.requested": 700.0, "gpu.fabric.state": "in_progress",
        "gpu.fabric.health.summary": "limited_capacity", "gpu.fabric.health.bandwidth": "degraded",
        "gpu.fabric.health.route_unhealthy": True, "gpu.fabric.health.configuration": "no_partition",
        "gpu.retired_pages.double_bit": 4, "gpu.retired_pages.pending": True, "gpu.recovery_action": "none",
        "gpu.architecture": "hopper", "gpu.performance_state": 0, "gpu.nvml.reachable": True,
    }  # fmt: skip


def test_sums_that_the_driver_does_not_print_are_made_of_their_parts() -> None:
    got = parse(FORMAT, "smi/hopper-590-sick.txt")
    assert value(got, "gpu.ecc.volatile.uncorrected.sram") == 1 + 2
    assert value(got, "gpu.ecc.volatile.uncorrected.total") == 1 + 2 + 5
    assert value(got, "gpu.ecc.aggregate.corrected.total") == 6 + 900
    assert "SRAM Uncorrectable SEC-DED: 2" in one(got, "gpu.ecc.volatile.uncorrected.sram").excerpt


def test_the_first_power_reading_that_has_a_value_counts() -> None:
    assert value(parse(FORMAT, "smi/hopper-590-sick.txt"), "gpu.power.draw") == 625.68


def test_place_time_and_source_of_an_observation() -> None:
    got = one(parse(FORMAT, "smi/hopper-590-sick.txt"), "gpu.temperature.core")
    lines = capture("smi/hopper-590-sick.txt").splitlines()
    assert got.source.line is not None
    assert lines[got.source.line - 1].split(" : ")[0].strip() == "GPU Current Temp"
    assert (got.at, got.clock) == (1772510706 * 10**9, Clock.LOCAL)  # 2026-03-03 04:05:06
    assert got.excerpt == "GPU Current Temp: 88 C"
    assert got.subject.host == "node-a"


def test_the_layout_of_kepler_drivers() -> None:
    got, first = parse(FORMAT, "smi/kepler-340.txt"), "0000:02:00.0"
    assert value(got, "node.gpu.count") == value(got, "node.gpu.listed") == 2
    assert value(got, "gpu.ecc.volatile.corrected.dram", first) == 7
    assert value(got, "gpu.ecc.volatile.corrected.sram", first) == 3
    assert value(got, "gpu.ecc.volatile.corrected.total", first) == 10
    assert value(got, "gpu.ecc.volatile.uncorrected.total", first) == 1
    assert status(got, "gpu.ecc.aggregate.corrected.sram", first) is Status.UNSUPPORTED  # one part is N/A
    assert value(got, "gpu.power.limit", first) == 200.0
    assert value(got, "gpu.power.limit.requested", first) == 235.0
    assert value(got, "gpu.compute_mode", first) == "exclusive_process"
    assert value(got, "gpu.retired_pages.pending", first) is True
    assert value(got, "process.gpu_memory", "1234") == 40
    assert value(got, "gpu.nvml.reachable", first) is True
    assert value(got, "gpu.index", first) == 0


def test_a_gpu_that_answers_only_with_errors_has_no_values() -> None:
    got, second = parse(FORMAT, "smi/kepler-340.txt"), "0000:84:00.0"
    assert value(got, "gpu.nvml.reachable", second) is False
    assert value(got, "gpu.fan.state", second) == "error"
    for fact in ("gpu.temperature.core", "gpu.power.draw", "gpu.memory.used", "gpu.fan.speed", "gpu.processes"):
        found = one(got, fact, second)
        assert (found.status, found.value) == (Status.FAILED, None), fact
        assert found.detail


def test_a_lost_gpu_and_missing_rights() -> None:
    got = parse(FORMAT, "smi/lost-535.txt")
    assert value(got, "gpu.nvml.reachable", "0000:af:00.0") is False
    assert value(got, "gpu.nvml.reachable", GPU) is True
    assert value(got, "gpu.reset_required", "0000:af:00.0") is True
    assert status(got, "gpu.name", "0000:af:00.0") is Status.FAILED
    assert status(got, "gpu.row_remap.failure", GPU) is Status.DENIED
    assert status(got, "gpu.row_remap.banks.max", GPU) is Status.DENIED
    assert value(got, "gpu.processes", GPU) == 0
    assert not all_of(got, "gpu.processes", "0000:af:00.0")  # not printed, not claimed


def test_a_piece_of_a_report_without_its_gpu_is_of_one_that_it_does_not_name() -> None:
    piece = capture("smi/pages-only.txt")
    got = FORMAT.parse(f"{piece}\n{piece.replace('61', '2')}", CONTEXT)
    assert [value(got, "gpu.retired_pages.double_bit", f"unknown:row {n}") for n in (0, 1)] == [61, 2]
    assert not all_of(got, "node.gpu.listed")  # who is not named is not counted
    text = "GPU 00000002:00:00.0\n" + capture("smi/pages-only.txt")
    got = FORMAT.parse(text, CONTEXT)
    assert value(got, "gpu.retired_pages.double_bit", "0002:00:00.0") == 61
    assert value(got, "gpu.retired_pages.pending", "0002:00:00.0") is True
    assert not [o for o in got if "row_remap" in o.fact]
    indented = "\n".join("      " + line for line in text.splitlines())
    assert value(FORMAT.parse(indented, CONTEXT), "gpu.retired_pages.double_bit") == 61


def test_mig_devices_are_subjects_of_their_own() -> None:
    got = parse(FORMAT, "smi/mig-590.txt")
    assert value(got, "gpu.mig.devices") == 2
    assert value(got, "mig.memory.used", "2") == 26
    assert value(got, "mig.memory.used", "2/1") == 17
    assert value(got, "mig.ecc.volatile.uncorrected.sram", "2") == 1
    found = one(got, "mig.memory.total", "2")
    assert found.subject.scope is Scope.MIG
    assert found.subject.up(Scope.GPU) == one(got, "gpu.name").subject
    assert value(got, "process.uses_mig", "21181") == "mig:2/1"
    assert value(got, "process.uses_gpu", "21181") == "gpu:0001:00:00.0"
    assert value(got, "process.gpu_contexts", "21181") == ("compute", "mps")
    assert status(got, "gpu.utilization.core") is Status.UNSUPPORTED
    assert status(got, "gpu.row_remap.pending") is Status.UNSUPPORTED


def test_a_selected_gpu_gets_no_index() -> None:
    text = smi_pair.text().replace("Attached GPUs                                          : 1", "Attached GPUs : 8")
    got = FORMAT.parse(text, CONTEXT)
    assert not all_of(got, "gpu.index")
    assert (value(got, "node.gpu.count"), value(got, "node.gpu.listed")) == (8, 1)


def test_a_healthy_gpu_has_no_failing_state() -> None:
    healthy = {i: "Not Active" for i, row in enumerate(smi_pair.LAYOUT) if row.tag.startswith("clocks_event_reason_")}
    healthy |= {
        i: "0" for i, row in enumerate(smi_pair.LAYOUT) if "correctable" in row.tag or "remapped_row" in row.tag
    }
    healthy |= {i: "No" for i, row in enumerate(smi_pair.LAYOUT) if row.value == "Yes"}
    got = FORMAT.parse(smi_pair.text(healthy), CONTEXT)
    assert not [o for o in got if o.status is Status.FAILED]
    for fact in ("gpu.row_remap.failure", "gpu.row_remap.pending", "gpu.clock.event.hw_slowdown"):
        assert value(got, fact) is False


@each(
    ("printed", "wanted"),
    [
        ("[N/A]", Status.UNSUPPORTED),
        ("Not Supported", Status.UNSUPPORTED),
        ("Requested functionality has been deprecated", Status.UNSUPPORTED),
        ("Unknown Error", Status.FAILED),
        ("[Unknown Error]", Status.FAILED),
        ("ERR!", Status.FAILED),
        ("GPU is lost. Reboot the system to recover this GPU", Status.FAILED),
        ("Insufficient Permissions", Status.DENIED),
        ("9223372036854775807", Status.FAILED),
        ("9223372036854775794", Status.UNSUPPORTED),
        ("18446744073709551615", Status.FAILED),
        ("2147483634", Status.UNSUPPORTED),
        ("2147483635", Status.DENIED),
        ("seven", Status.FAILED),
        ("7 C", Status.FAILED),
        ("1.5", Status.FAILED),
    ],
)
def test_what_only_looks_like_a_count(printed: str, wanted: Status) -> None:
    at = next(i for i, row in enumerate(smi_pair.LAYOUT) if row.tag == "remapped_row_unc")
    found = one(FORMAT.parse(smi_pair.text({at: printed}), CONTEXT), "gpu.row_remap.uncorrectable")
    assert (found.status, found.value) == (wanted, None)
    assert found.detail


def test_a_number_whose_unit_is_cut_off_is_no_reading() -> None:
    text = smi_pair.text()
    cut = text[: text.index("88 C") + 1]  # "GPU Current Temp : 8"
    assert status(FORMAT.parse(cut, CONTEXT), "gpu.temperature.core") is Status.FAILED


def test_recognition() -> None:
    assert FORMAT.sniff(capture("smi/hopper-590-sick.txt")) == 100
    assert FORMAT.sniff(capture("smi/kepler-340.txt")) == 100
    assert FORMAT.sniff("GPU 00000002:00:00.0\n" + capture("smi/pages-only.txt")) == 60
    assert FORMAT.sniff(capture("smi/pages-only.txt")) == 30
    for other in ("smi/mig-590.xml", "smi/table-590-mig.txt", "smi/nvlink-s.txt", "smi/topo.txt", "dcgm/health-v4.txt"):
        assert FORMAT.sniff(capture(other)) == 0, other
    assert FORMAT.sniff("Some prose : with a colon\n    Another Line : 3\n") == 0


def test_a_report_ends_where_the_next_output_begins() -> None:
    twice = smi_pair.text() + "\n" + "#" * 80 + "\n# load\n" + "#" * 80 + "\n" + smi_pair.text()
    assert len(all_of(FORMAT.parse(twice, CONTEXT), "gpu.temperature.core")) == 1


@given(st.sampled_from(NAMES), st.integers(0, 10**6))
def test_any_cut_is_answered(name: str, at: int) -> None:
    check_cut(FORMAT, f"smi/{name}", at)


@given(shuffled_lines([f"smi/{name}" for name in NAMES]))
def test_any_text_is_answered(text: str) -> None:
    check_any(FORMAT, text)
