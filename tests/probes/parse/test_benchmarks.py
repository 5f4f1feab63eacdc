"""Stories of benchmark outputs: nccl-tests, perftest, nvbandwidth, gpu-burn, GPCNeT, SuperBench's monitor."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Clock, Observation, Scope, Status, Subject, gpu, node
from probes.base import Context
from probes.parse import fio, gpcnet, gpu_burn, hpl, nccl_tests, nvbandwidth, perftest, superbench_monitor

CAPTURES = Path(__file__).parents[2] / "captures" / "bench"
DOCUMENT = Subject(Scope.DOCUMENT, "out.txt", node())


def capture(name: str) -> str:
    return (CAPTURES / name).read_bytes().decode()


def told(found: list[Observation]) -> dict[tuple[str, str], object]:
    return {(o.subject.id, o.fact): o.value if o.status is Status.OK else o.status for o in found}


def collective(text: str) -> dict[tuple[str, str], object]:
    return told(nccl_tests.parse(text, Context("out.txt")))


def test_a_collective_with_wrong_results() -> None:
    facts = collective(capture("nccl-tests.wrong.txt"))
    run = "all_reduce"
    prefix = "benchmark.collective"
    assert (facts[run, f"{prefix}.correct"], facts[run, f"{prefix}.wrong"]) == (False, 3)
    assert (facts[run, f"{prefix}.ranks"], facts[run, f"{prefix}.nodes"], facts[run, f"{prefix}.nccl"]) == (
        4,
        2,
        "2.27.3",
    )
    assert (facts[run, f"{prefix}.busbw.avg"], facts[run, f"{prefix}.busbw.max"]) == (71.718, 189.45)
    assert (facts[run, f"{prefix}.busbw.largest"], facts[run, f"{prefix}.latency"]) == (189.17, 21.5)
    assert facts["8589934592 B", f"{prefix}.in_place.busbw"] == 189.45
    assert facts["out.txt", "benchmark.completed"] is True


def test_a_run_that_ends_early_has_no_average() -> None:
    facts = collective(capture("nccl-tests.wrong.txt").split("# Out of bounds")[0])
    assert facts["all_reduce", "benchmark.collective.busbw.avg"] is Status.FAILED
    assert facts["out.txt", "benchmark.completed"] is False
    assert facts["all_reduce", "benchmark.collective.busbw.max"] == 189.45


OLD = """\
#   Rank  0 Pid 1 on localhost device  0 [0x00] A100
#   Rank  1 Pid 1 on localhost device  1 [0x00] A100
#   Rank  2 Pid 1 on localhost device  2 [0x00] A100
#   Rank  3 Pid 1 on localhost device  3 [0x00] A100
#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error
   134217728      33554432   float     sum   1162.2  100.00  150.00    N/A   1162.5  100.00  150.00    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 150.0
"""


def test_results_that_nobody_checked_are_not_called_right() -> None:
    assert collective(OLD)["all_reduce", "benchmark.collective.correct"] is Status.UNSUPPORTED
    checked = OLD.replace("N/A", "0e+00")
    assert collective(checked)["all_reduce", "benchmark.collective.correct"] is True


def test_the_old_table_does_not_name_its_collective() -> None:
    assert collective(OLD)["all_reduce", "benchmark.collective.op"] == "all_reduce"
    gather = OLD.replace("150.00", "75.00").replace("   sum", "      ")
    assert ("collective", "benchmark.collective.op") not in collective(gather)
    assert collective(gather)["collective", "benchmark.collective.busbw.max"] == 75.0


def test_two_tests_in_one_file_are_two_runs() -> None:
    text = capture("nccl-tests.wrong.txt")
    names = {
        subject
        for subject, fact in collective(text + text.replace("all_reduce", "all_gather"))
        if fact.endswith(".busbw.avg")
    }
    assert names == {"all_reduce#1", "all_gather#2"}


def test_rdma_bandwidth_is_in_gigabits() -> None:
    facts = told(perftest.parse(capture("perftest.write-bw.txt"), Context("out.txt")))
    assert (facts["ib_write_bw", "benchmark.rdma.bw.max"], facts["ib_write_bw", "benchmark.rdma.bw.largest"]) == (
        391.54,
        195.87,
    )
    assert (facts["ib_write_bw", "benchmark.rdma.device"], facts["ib_write_bw", "benchmark.rdma.mtu"]) == (
        "mlx5_4",
        4096,
    )
    text = capture("perftest.write-bw.txt").replace("Gb/sec", "MB/sec")
    assert told(perftest.parse(text, Context("out.txt")))["8388608 B", "benchmark.rdma.bw.average"] == pytest.approx(
        195.87 * 2**20 * 8 / 1e9, abs=1e-3
    )


def test_rdma_latency_by_size() -> None:
    facts = told(perftest.parse(capture("perftest.read-lat.txt"), Context("out.txt")))
    assert (facts["2 B", "benchmark.rdma.latency.typical"], facts["64 B", "benchmark.rdma.latency.p99"]) == (2.23, 2.95)
    assert facts["ib_read_lat", "benchmark.rdma.latency.smallest"] == 2.23


def test_a_test_that_could_not_connect() -> None:
    text = capture("perftest.write-bw.txt").split(" local address")[0] + " Couldn't connect to 10.0.0.1:18515\n"
    facts = told(perftest.parse(text, Context("out.txt")))
    assert (facts["out.txt", "benchmark.completed"], facts["out.txt", "benchmark.error"]) == (
        False,
        "Couldn't connect to 10.0.0.1:18515",
    )


def test_a_test_that_failed_before_its_table() -> None:
    nccl = "gpu-3: Test NCCL failure common.cu:1005 'unhandled system error / '\n .. gpu-3 pid 8: Test failure common.cu:891\n"
    rdma = "$ ib_write_bw -d mlx5_0 gpu-4\nCouldn't connect to gpu-4:18515\n"
    for form, text, said in (
        (nccl_tests.FORMAT, nccl, "gpu-3: Test NCCL"),
        (perftest.FORMAT, rdma, "Couldn't connect"),
    ):
        assert form.sniff(text)
        facts = told(form.parse(text, Context("out.txt")))
        assert facts["out.txt", "benchmark.completed"] is False
        assert str(facts["out.txt", "benchmark.error"]).startswith(said)
    assert not perftest.FORMAT.sniff("Couldn't connect to gpu-4:18515\n")
    assert not nccl_tests.FORMAT.sniff("Test failure x.cu:12\n")


CHECKED = "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   0.0032310 ...... {}\n"
SUMMARY = "Finished      2 tests with the following results:\n              1 tests completed and passed residual checks,\n              1 tests completed and failed residual checks,\n"


def test_residuals_count_by_the_summary_or_so_far() -> None:
    def facts(text: str) -> tuple[object, object]:
        assert hpl.FORMAT.sniff(text) == 95
        found = told(hpl.parse(text, Context("out.txt")))
        return found.get(("out.txt", "benchmark.residual.failed")), found["out.txt", "benchmark.completed"]

    assert facts(CHECKED.format("PASSED")) == (0, False)
    assert facts(CHECKED.format("FAILED") + CHECKED.format("PASSED")) == (1, False)
    assert facts(CHECKED.format("PASSED") + CHECKED.format("FAILED") + SUMMARY) == (1, True)


def test_an_error_of_fio_is_told_and_its_speed_is_not_judged() -> None:
    job = "read: (g=0): rw=read, bs=(R) 1024KiB-1024KiB, ioengine=libaio, iodepth=32\n"
    done = "read: (groupid=0, jobs=4): err= 0: pid=8: Mon Nov 30 02:11:33 2026\nRun status group 0 (all jobs):\n"
    wrong = "fio: io_u error on file /raid/t.0.0: Input/output error: read offset=8, buflen=1048576\n"
    assert fio.FORMAT.sniff(job) == 92
    assert {fact: value for (_, fact), value in told(fio.parse(job + done, Context("x"))).items()} == {
        "benchmark.name": "fio",
        "benchmark.completed": True,
    }
    failed = {fact: value for (_, fact), value in told(fio.parse(job + wrong + done, Context("x"))).items()}
    assert (failed["benchmark.completed"], failed["benchmark.error"]) == (False, wrong.strip())


def test_copies_between_host_and_gpus() -> None:
    facts = told(nvbandwidth.parse(capture("nvbandwidth.two-gpus.txt"), Context("out.txt")))
    assert (facts["0000:18:00.0", "benchmark.h2d"], facts["0000:2a:00.0", "benchmark.h2d"]) == (55.3, 27.61)
    assert facts["0000:2a:00.0", "benchmark.d2d.min"] == 389.77
    assert facts["host_to_device_memcpy_ce", "benchmark.copy.sum"] == 82.91
    assert facts["host_device_latency_sm", "benchmark.copy.latency"] == 801.1
    assert facts["multinode_device_to_device_memcpy_read_ce", "benchmark.copy.sum"] is Status.UNSUPPORTED
    assert facts["out.txt", "benchmark.completed"] is True


def test_a_copy_that_failed() -> None:
    text = (
        capture("nvbandwidth.two-gpus.txt").split("SUM device_to")[0]
        + "[CUDA_ERROR_ILLEGAL_ADDRESS] an illegal memory access in expression cuMemcpy\n"
    )
    facts = told(nvbandwidth.parse(text, Context("out.txt")))
    assert facts["out.txt", "benchmark.completed"] is False
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in str(facts["out.txt", "benchmark.error"])


def test_burning_gpus() -> None:
    facts = told(gpu_burn.parse(capture("gpu-burn.faulty.txt"), Context("out.txt")))
    good, bad, dead = (f"GPU-0{letter}0{letter}0{letter}0{letter}-1111-2222-3333-444444444444" for letter in "abc")
    prefix = "benchmark.burn"
    assert [facts[name, f"{prefix}.verdict"] for name in (good, bad, dead)] == ["ok", "faulty", "faulty"]
    assert [facts[name, f"{prefix}.errors"] for name in (good, bad, dead)] == [
        0,
        9,
        0,
    ]  # 7 before the summary, 2 after it
    assert [facts[name, f"{prefix}.died"] for name in (good, bad, dead)] == [False, False, True]
    assert (facts[bad, f"{prefix}.temperature.max"], facts[good, f"{prefix}.gflops"]) == (79, 16942)
    assert (dead, f"{prefix}.temperature.max") not in facts


def test_a_burn_without_verdict_is_not_ok() -> None:
    found = gpu_burn.parse(capture("gpu-burn.faulty.txt").split("Tested")[0], Context("out.txt"))
    verdicts = {o.status for o in found if o.fact == "benchmark.burn.verdict"}
    assert verdicts == {Status.FAILED}
    assert told(found)["out.txt", "benchmark.completed"] is False


def test_a_burn_without_uuids_names_gpus_by_index() -> None:
    text = "\n".join(line for line in capture("gpu-burn.faulty.txt").splitlines() if "UUID" not in line)
    assert gpu("index:1") in {o.subject for o in gpu_burn.parse(text, Context("out.txt"))}


def test_a_refusal_is_no_fault_of_the_network() -> None:
    found = gpcnet.parse(capture("gpcnet.refused.txt"), Context("out.txt"))
    facts = told(found)
    assert facts["out.txt", "benchmark.refused"] == "needs at least 10 nodes"
    assert {o.fact for o in found} == {"benchmark.name", "benchmark.refused", "benchmark.completed"}


def test_a_network_under_congestion() -> None:
    facts = told(gpcnet.parse(capture("gpcnet.load.txt"), Context("out.txt")))
    alone = "Isolated Network Tests: RR Two-sided Lat (8 B)"
    assert (facts[alone, "benchmark.network.latency.avg"], facts[alone, "benchmark.network.latency.p99"]) == (2.9, 4.3)
    assert (facts["out.txt", "benchmark.network.nodes"], facts["out.txt", "benchmark.network.ranks"]) == (10, 80)
    [factor] = [value for (name, fact), value in facts.items() if fact == "benchmark.network.congestion.p99"]
    assert factor == 1.7


def test_samples_of_the_monitor_keep_their_times() -> None:
    found = superbench_monitor.parse(capture("superbench-monitor.jsonl"), Context("out.txt"))
    heat = [(o.value, o.at) for o in found if o.fact == "gpu.temperature.core" and o.subject == gpu("index:1")]
    start = 1_763_208_000 * 10**9  # 2025-11-15 12:00:00
    assert heat == [(61, start), (62, start + 10 * 10**9), (63, start + 20 * 10**9)]
    assert {o.clock for o in found if o.at is not None} == {Clock.LOCAL}
    facts = told(found)
    assert (facts["index:0", "gpu.memory.used"], facts["index:0", "gpu.memory.total"]) == (40960, 81559)
    assert (facts["index:1", "gpu.row_remap.uncorrectable"], facts["index:1", "gpu.row_remap.banks.max"]) == (1, 2559)


@given(st.one_of(st.none(), st.booleans(), st.text(max_size=4), st.floats(allow_nan=True), st.integers()))
def test_a_metric_that_is_no_number_is_a_failure(value: object) -> None:
    import json

    line = json.dumps({"time": "2025-11-15 12:00:00", "gpu_temperature:0": value})
    [heat] = [o for o in superbench_monitor.parse(line, Context("out.txt")) if o.fact == "gpu.temperature.core"]
    number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**63
    assert (heat.status is Status.OK) == number
