"""Active tests as probes: what they run on a machine, and that a recording tells the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Observation, Status
from probes.active import Refused, call, chosen, duration, named, spec
from probes.active import tests as all_tests
from probes.active.ib_write_bw import Port, pairs, ports
from probes.host import CallKind, RecordingHost, ReplayHost, Reply, listing
from probes.live import Cost, ProbeRequest, probes
from probes.live_host import LiveHost
from tests.active_lab import Lab

OUTPUTS = {
    "nvbandwidth": "nvbandwidth.two.txt",
    "gpu_burn": "gpu-burn.healthy8.txt",
    "all_reduce_perf": "nccl-tests.healthy8.txt",
}


def collect(lab: Lab, name: str, **options: str) -> list[Observation]:
    probe = next(p for p in probes() if p.name == name)
    with LiveHost("n1", environ=lab.environ) as live:
        host = RecordingHost(live)
        request = ProbeRequest(60.0, options)
        got = probe.collect(request, host)
        replayed = probe.collect(request, ReplayHost(host.name, host.replies, host.as_of))
    assert replayed == got
    assert {o.fact for o in got} <= set(probe.provides)
    return got


def of(got: list[Observation], fact: str) -> list[Observation]:
    return [o for o in got if o.fact == fact]


def test_every_test_is_a_probe_that_nobody_runs_unasked() -> None:
    known = {p.name: p for p in probes()}
    for test in all_tests():
        probe = known[test.name]
        assert not probe.default
        assert probe.cost is Cost.HEAVY
        assert set(test.main) <= set(probe.provides)
        assert all(text.en and text.zh for text in (test.title, test.cost, *probe.side_effects))
        assert test.seconds < spec(test).deadline


@pytest.mark.process
@pytest.mark.parametrize(
    ("name", "tool"), [("nvbandwidth", "nvbandwidth"), ("gpu-burn", "gpu_burn"), ("nccl-tests", "all_reduce_perf")]
)
def test_it_runs_and_a_recording_tells_the_same(tmp_path: Path, name: str, tool: str) -> None:
    lab = Lab(tmp_path, 8)
    lab.prints(tool, OUTPUTS[tool])
    got = collect(lab, name, gpus="0,1")
    test = named(name)
    assert test is not None
    assert [o.value for o in of(got, "active.outcome")] == ["ended"]
    assert all(of(got, fact)[0].status is Status.OK for fact in test.main)


@pytest.mark.process
def test_the_diagnostic_keeps_its_result_when_it_fails(tmp_path: Path) -> None:
    lab = Lab(tmp_path, 8)
    diag = {
        "DCGM Diagnostic": {
            "test_categories": [
                {"tests": [{"name": "memory", "results": [{"gpu_id": "1", "status": "Fail", "warnings": ["bad"]}]}]}
            ]
        }
    }
    (tmp_path / "diag.json").write_text(json.dumps(diag))
    lab.prints("dcgmi", str(tmp_path / "diag.json"), code=226)
    for name, level in (("dcgm-diag", "1"), ("dcgm-diag-2", "2"), ("dcgm-diag-3", "3"), ("dcgm-diag-4", "4")):
        got = collect(lab, name, gpus="0,1", guarded="1")
        assert [o.value for o in of(got, "node.dcgm.diag.result")] == ["fail"]
        assert lab.called()[-1].endswith(f"diag -r {level} -j -i 0,1")


@pytest.mark.process
def test_what_did_not_run_gives_its_main_facts_the_reason(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.prints("nvbandwidth", "nvbandwidth.two.txt")
    lab.rows[0]["util"] = "99"
    lab.write()
    got = collect(lab, "nvbandwidth")
    [h2d] = of(got, "benchmark.h2d")
    assert (h2d.status, h2d.value) == (Status.FAILED, None)
    assert "GPU 0 is in use" in h2d.detail
    assert not lab.called()


@pytest.mark.process
def test_a_tool_that_is_not_there_is_said_to_be(tmp_path: Path) -> None:
    got = collect(Lab(tmp_path), "gpu-burn")
    assert [o.value for o in of(got, "active.outcome")] == ["absent"]
    assert "not installed" in of(got, "benchmark.burn.verdict")[0].detail


def test_a_collective_needs_two_gpus() -> None:
    test = named("nccl-tests")
    assert test is not None
    assert isinstance(test.steps(ReplayHost("n1"), (3,)), Refused)
    assert isinstance(test.steps(ReplayHost("n1"), ()), Refused)
    found = [f"/proc/driver/nvidia/gpus/0000:{n:02x}:00.0/information" for n in range(4)]
    [step] = test.steps(ReplayHost("n1", [listing("/proc/driver/nvidia/gpus/*/information", found)]), ())  # type: ignore[misc]
    assert step.argv[-2:] == ("-g", "4")


# --- RDMA ports --------------------------------------------------------------------------


def rdma(*found: tuple[str, str, str, str]) -> ReplayHost:
    """A machine with ports: device, state, rate, link layer."""
    base = "/sys/class/infiniband"
    replies: list[Reply] = [listing(f"{base}/*/ports/*/state", [f"{base}/{d}/ports/1/state" for d, *_ in found])]
    for device, *texts in found:
        for name, text in zip(("state", "rate", "link_layer"), texts, strict=True):
            replies.append(Reply(CallKind.FILE, (f"{base}/{device}/ports/1/{name}",), data=text.encode()))
    return ReplayHost("n1", replies)


ACTIVE, NDR, EDR = "4: ACTIVE\n", "400 Gb/sec (4X NDR)\n", "100 Gb/sec (4X EDR)\n"


def test_ports_are_the_active_ones_of_the_highest_rate() -> None:
    host = rdma(("mlx5_10", ACTIVE, NDR, "InfiniBand\n"), ("mlx5_2", ACTIVE, NDR, "InfiniBand\n"), ("mlx5_0", "1: DOWN\n", NDR, "InfiniBand\n"),
                ("mlx5_1", ACTIVE, EDR, "Ethernet\n"), ("-x", ACTIVE, NDR, "InfiniBand\n"))  # fmt: skip
    assert [p.device for p in ports(host)] == ["mlx5_2", "mlx5_10"]
    test = named("ib-write-bw")
    assert test is not None
    [step] = test.steps(host, ())  # type: ignore[misc]
    assert step.argv[:3] == ("ib_write_bw", "-d", "mlx5_10")
    assert step.argv[-1] == "localhost"
    assert step.beside[2] == "mlx5_2"
    assert isinstance(test.steps(rdma(), ()), Refused)


@given(
    st.lists(
        st.builds(
            Port,
            st.text("ab", min_size=1, max_size=3),
            st.integers(1, 2),
            st.just(400.0),
            st.sampled_from(["IB", "Ethernet"]),
        ),
        max_size=10,
        unique=True,
    )
)
def test_every_port_is_tested_with_one_of_its_own_kind(found: list[Port]) -> None:
    made = pairs(found)
    assert {p for pair in made for p in pair} == set(found)
    assert all(a.layer == b.layer for a, b in made)
    assert len(made) <= len(found)


@pytest.mark.process
def test_between_two_ports_of_the_node(tmp_path: Path) -> None:
    """The real collector, with a server and a client that are stand-ins."""
    lab = Lab(tmp_path)
    lab.prints("ib_write_bw", "ib-write-bw.healthy400.txt")
    test = named("ib-write-bw")
    assert test is not None
    with LiveHost("n1", environ=lab.environ) as live:

        class Both:
            """Files of one machine, collectors of another."""

            name, as_of = "n1", None

            def __getattr__(self, name: str) -> Any:
                return getattr(
                    live if name == "snapshot" else rdma(("mlx5_0", ACTIVE, NDR, "x"), ("mlx5_1", ACTIVE, NDR, "x")),
                    name,
                )

        got = spec(test).collect(ProbeRequest(60.0), Both())
    assert [o.value for o in of(got, "benchmark.rdma.bw.largest")] == [392.69]
    assert len(lab.called()) == 2


# --- words -------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 127), min_size=1, max_size=20))
def test_gpus_are_named_by_their_numbers(numbers: list[int]) -> None:
    assert chosen(",".join(map(str, numbers))) == tuple(sorted(set(numbers)))


@pytest.mark.parametrize("text", ["all", "1,", "-1", "0 1", "1;2", "9999"])
def test_what_names_no_gpu_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="names no GPUs"):
        chosen(text)


def test_calls_hold_no_shell_and_say_what_they_are() -> None:
    test = named("dcgm-diag-3")
    assert test is not None
    [step] = test.steps(ReplayHost("n1"), (0, 3))  # type: ignore[misc]
    assert call(test, step, (0, 3)) == (
        "--test", "dcgm-diag-3", "--gpus", "0,3", "--allow", ",".join(test.allow), "--", "dcgmi", "diag", "-r", "3", "-j", "-i", "0,3",
    )  # fmt: skip


def test_times_are_said_as_people_say_them() -> None:
    assert (duration(30, "en"), duration(900, "en"), duration(5400, "zh")) == ("30 seconds", "15 minutes", "90 分钟")
