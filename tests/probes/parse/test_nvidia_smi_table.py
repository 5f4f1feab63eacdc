from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Clock, Status
from probes.parse.nvidia_smi_table import FORMAT
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

NAMES = ("smi/table-590-mig.txt", "smi/table-384-sick.txt")


def test_the_table_of_a_new_driver() -> None:
    got, first, second = parse(FORMAT, NAMES[0]), "0000:3b:00.0", "0000:af:00.0"
    assert value(got, "node.driver.version") == "590.10.01"
    assert value(got, "node.cuda.version") == "13.1"
    assert value(got, "node.driver.state") == "ok"
    assert value(got, "node.gpu.listed") == 2
    assert [value(got, "gpu.index", s) for s in (first, second)] == [0, 1]
    assert value(got, "gpu.mig.mode", first) is True
    assert value(got, "gpu.mig.mode.pending", first) is False  # the asterisk: it changes at the next reset
    assert not all_of(got, "gpu.mig.mode.pending", second)
    assert value(got, "gpu.ecc.mode", first) is True
    assert status(got, "gpu.ecc.volatile.uncorrected.total", first) is Status.UNSUPPORTED
    assert value(got, "gpu.ecc.volatile.uncorrected.total", second) == 2
    assert value(got, "gpu.compute_mode", second) == "exclusive_process"
    assert value(got, "gpu.utilization.core", second) == 98
    assert value(got, "gpu.power.draw", second) == 650.0
    assert value(got, "mig.memory.used", "2") == 26
    assert value(got, "mig.sm_count", "2") == 60
    assert value(got, "process.uses_mig", "21180") == "mig:2"
    assert one(got, "gpu.name", first).at == 1784019626 * 10**9
    assert one(got, "gpu.name", first).clock is Clock.LOCAL


def test_a_process_on_two_gpus_holds_the_sum() -> None:
    got = parse(FORMAT, NAMES[0])
    assert value(got, "process.gpu_memory", "21180") == 2296 + 100
    assert {o.value for o in all_of(got, "process.uses_gpu", "21180")} == {"gpu:0000:3b:00.0", "gpu:0000:af:00.0"}
    assert value(got, "gpu.processes", "0000:af:00.0") == 2


def test_the_narrow_table_of_an_old_driver_with_a_sick_fan_and_a_lost_gpu() -> None:
    got, well, fan, lost = parse(FORMAT, NAMES[1]), "0000:24:00.0", "0000:25:00.0", "0000:83:00.0"
    assert value(got, "gpu.fan.state", well) == "ok"
    assert value(got, "gpu.fan.speed", well) == 0
    assert value(got, "gpu.display.active", well) is True
    assert value(got, "process.gpu_memory", "489") == 1025
    assert value(got, "gpu.fan.state", fan) == "error"
    assert status(got, "gpu.fan.speed", fan) is Status.FAILED
    assert value(got, "gpu.temperature.core", fan) == 38
    assert value(got, "gpu.nvml.reachable", fan) is True
    assert status(got, "gpu.ecc.volatile.uncorrected.total", fan) is Status.NOT_APPLICABLE
    assert value(got, "gpu.ecc.mode", fan) is False
    assert not all_of(got, "gpu.name", fan)  # cut to "GeForce GTX 999..."
    assert status(got, "gpu.processes", fan) is Status.UNSUPPORTED
    assert value(got, "gpu.nvml.reachable", lost) is False
    for fact in ("gpu.temperature.core", "gpu.power.draw", "gpu.memory.used", "gpu.utilization.core"):
        assert status(got, fact, lost) is Status.FAILED, fact


def test_no_process_is_an_answer_only_where_the_list_is_complete() -> None:
    text = capture(NAMES[0])
    done = text[: text.index("|    0     2    0")] + "|  No running processes found |\n+-----+\n"
    got = FORMAT.parse(done, CONTEXT)
    hidden = all_of(got, "gpu.processes")  # a GPU works and nobody is listed: a container shows no processes
    assert {(o.status, o.value) for o in hidden} == {(Status.UNSUPPORTED, None)}
    idle = FORMAT.parse(re.sub(r"\d+%(?= +(?:Default|E\. Process))", " 0%", done), CONTEXT)
    assert {o.value for o in all_of(idle, "gpu.processes")} == {0}
    cut = FORMAT.parse(text[: text.index("|    1   N/A  N/A           21190")], CONTEXT)
    assert [o.value for o in all_of(cut, "gpu.processes")] == [1]


def test_the_list_of_gpus() -> None:
    text = (
        "GPU 0: NVIDIA H900 96GB (UUID: GPU-11111111-2222-3333-4444-555555555555)\n"
        "  MIG 3g.40gb     Device  0: (UUID: MIG-22222222-2222-3333-4444-555555555555)\n"
        "GPU 1: NVIDIA H900 96GB (UUID: GPU-11111111-2222-3333-4444-666666666666)\n"
    )
    got = FORMAT.parse(text, CONTEXT)
    assert_in_vocabulary(got, FORMAT)
    assert FORMAT.sniff(text) == 90
    assert value(got, "node.gpu.listed") == 2
    assert value(got, "gpu.index", "GPU-11111111-2222-3333-4444-666666666666") == 1
    assert value(got, "mig.profile") == "3g.40gb"
    assert value(got, "gpu.mig.devices") == 1


@each(
    ("text", "state"),
    [
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that it runs.",
         "not_loaded"),
        ("Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.183", "library_mismatch"),
        ("Failed to initialize NVML: Driver Not Loaded", "not_loaded"),
        ("Failed to initialize NVML: Unknown Error", "nvml_failed"),
        ("No devices were found", "no_devices"),
        ("Unable to determine the device handle for GPU 0000:BA:00.0: Unknown Error", "lost_gpu"),
        ("Unable to determine the device handle for GPU0: 0000:3B:00.0: GPU is lost.  Reboot the system", "lost_gpu"),
        ("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.", "library_missing"),
        ("failed to create task: nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown.",
         "not_loaded"),
        ("nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object",
         "library_missing"),
        ("failed to initialize NVML: ERROR_LIBRARY_NOT_FOUND", "library_missing"),
        ("error creating nvml.Device 3: nvml: GPU is lost, which is unexpected", "lost_gpu"),
    ],
)  # fmt: skip
def test_error_sentences_are_states_of_the_driver(text: str, state: str) -> None:
    got = FORMAT.parse(text + "\n", CONTEXT)
    assert_in_vocabulary(got, FORMAT)
    assert value(got, "node.driver.state") == state
    assert FORMAT.sniff(text) == 95


def test_what_the_error_sentences_add() -> None:
    mismatch = FORMAT.parse(
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.183\n", CONTEXT
    )
    assert value(mismatch, "node.driver.nvml_version") == "535.183"
    lost = FORMAT.parse(
        "Unable to determine the device handle for GPU 000:BA:00.0: GPU is lost.  Reboot it\nNo devices were found\n",
        CONTEXT,
    )
    assert value(lost, "gpu.nvml.reachable", "0000:ba:00.0") is False
    assert value(lost, "node.driver.state") == "lost_gpu"
    assert value(lost, "node.gpu.count") == 0
    denied = FORMAT.parse("Failed to initialize NVML: Insufficient Permissions", CONTEXT)
    assert status(denied, "node.driver.state") is Status.DENIED
    missing = FORMAT.parse("bash: line 1: nvidia-smi: command not found", CONTEXT)
    assert status(missing, "node.driver.state") is Status.FAILED


def test_recognition() -> None:
    for name in NAMES:
        assert FORMAT.sniff(capture(name)) == 100
    for other in (
        "smi/hopper-590-sick.txt",
        "smi/mig-590.xml",
        "smi/nvlink-s.txt",
        "smi/topo.txt",
        "smi/query-gpu.csv",
    ):
        assert FORMAT.sniff(capture(other)) == 0, other
    assert FORMAT.sniff("GPU 0 is fine") == 0


@given(st.sampled_from(NAMES), st.integers(0, 10**6))
def test_any_cut_is_answered(name: str, at: int) -> None:
    check_cut(FORMAT, name, at)


@given(shuffled_lines(NAMES))
def test_any_text_is_answered(text: str) -> None:
    check_any(FORMAT, text)


def test_rows_that_were_picked_out_tell_of_their_gpus_and_not_how_many_there_are() -> None:
    got, sick = parse(FORMAT, "smi/table-rows.txt"), "0000:43:00.0"
    assert FORMAT.sniff(capture("smi/table-rows.txt")) > 0
    assert value(got, "gpu.ecc.volatile.uncorrected.total", sick) == 3
    assert value(got, "gpu.temperature.core", sick) == 88
    assert value(got, "gpu.nvml.reachable", sick) is True
    assert not all_of(got, "node.gpu.listed")


def test_second_rows_alone_are_gpus_without_a_name() -> None:
    rows = [line for line in capture("smi/table-rows.txt").splitlines() if "MiB /" in line]
    assert FORMAT.sniff("\n".join(rows)) > 0
    got = FORMAT.parse("\n".join(rows), CONTEXT)
    assert {o.subject.id: o.value for o in all_of(got, "gpu.temperature.core")} == {
        "unknown:row 0": 34,
        "unknown:row 1": 88,
    }


@each("line", ["| GPU | Temp | Memory |", "|   0  some text   On  |  3 | 4 |", "| N/A  | 1MiB / 2MiB | free text |"])
def test_other_tables_are_not_its_rows(line: str) -> None:
    assert FORMAT.sniff(f"{line}\n{line}\n") == 0


LIST = "\n".join(f"GPU {n}: NVIDIA L40S (UUID: GPU-{n}a4c1d2e-9f30-4b55-8e3c-6f3b6b0e7a00)" for n in range(3))


@each(
    ("text", "listed"),
    [
        (f"gpus on node7:\n{LIST}", [3]), (f"{LIST}\nthats all", [3]), (f"Sat Nov 28 08:00:01 UTC 2026\n{LIST}\n以上", [3]),
        (f"before:\n{LIST}\n\nafter:\n" + LIST.rpartition("\n")[0], [3, 2]),  # two looks: the second is of fewer
    ],
)  # fmt: skip
def test_a_list_with_a_line_of_prose_above_or_below(text: str, listed: list[int]) -> None:
    assert all(FORMAT.sniff(part) for part in text.split("\n\n"))
    got = FORMAT.parse(text, CONTEXT)
    assert [o.value for o in got if o.fact == "node.gpu.listed"] == listed


@each("line", ["\t Link 0: 26.5 GB/s", "  Product Name : NVIDIA L40S"])
def test_an_indented_line_at_a_list_is_of_another_output(line: str) -> None:
    assert not FORMAT.sniff(f"{LIST}\n{line}")
