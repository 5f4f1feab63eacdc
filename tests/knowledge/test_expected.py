"""What hardware should reach: the data, and what is derived from measured figures."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from knowledge.derive import derive
from knowledge.derive.benchmark import CHANGES
from knowledge.expected import all_reduce, expected, host_copy, peer_copy, rdma_share
from knowledge.gpus import spec
from knowledge.observation import Observation, Scope, Source, Status, Subject, Value, gpu, node
from tests.cases import each

G = gpu("0000:3b:00.0", "n1")
BUSBW = Subject(Scope.COLLECTIVE, "all_reduce", Subject(Scope.DOCUMENT, "x", node("n1")))
RDMA = Subject(Scope.OBJECT, "ib_write_bw", Subject(Scope.DOCUMENT, "x", node("n1")))


def seen(fact: str, value: Value, on: Subject = G, call: str = "x", status: Status = Status.OK) -> Observation:
    return Observation(fact, on, value, status, Source("active-run", call))


def values(batch: list[Observation]) -> dict[str, Value]:
    return {o.fact: o.value for o in derive(batch) if o.source.probe == "derived"}


def test_the_data_names_models_that_are_known_and_gives_sources() -> None:
    assert all(e.sources for e in expected())
    assert not [name for e in expected() for name in e.gpus if spec(name) is None]
    assert all(0 < e.floor < e.typical for e in expected())
    assert rdma_share() is not None


def test_no_two_entries_speak_of_the_same_hardware() -> None:
    keys = [
        (e.measure, e.pcie_generation, e.pcie_width, model, e.ranks) for e in expected() for model in e.gpus or ("",)
    ]
    assert len(keys) == len(set(keys))


def test_what_is_not_known_is_not_guessed() -> None:
    assert host_copy(5, 8) is None
    assert peer_copy("NVIDIA L40S") is None
    assert peer_copy("NVIDIA H100 PCIe") is None
    assert all_reduce("NVIDIA H100 80GB HBM3", 4) is None


@each(("gen", "width", "floor"), [(5, 16, 44.0), (4, 16, 20.8), (3, 16, 9.0), (5, 8, None)])
def test_host_copies_are_held_against_the_link(gen: int, width: int, floor: float | None) -> None:
    got = values([seen("benchmark.h2d", 55.0), seen("gpu.pcie.gen.max", gen), seen("gpu.pcie.width.max", width)])
    assert got.get("benchmark.host_copy.floor") == floor


def test_a_gpu_on_nvlink_c2c_has_no_pcie_figure() -> None:
    link = [seen("gpu.pcie.gen.max", 5), seen("gpu.pcie.width.max", 16), seen("gpu.c2c_mode", True)]
    assert "benchmark.host_copy.floor" not in values([seen("benchmark.h2d", 369.0), *link])


def test_a_collective_over_several_nodes_or_models_has_no_figure_of_one() -> None:
    run = [seen("benchmark.collective.busbw.largest", 300.0, BUSBW), seen("benchmark.collective.ranks", 8, BUSBW),
           seen("benchmark.collective.op", "all_reduce", BUSBW)]  # fmt: skip
    one, name = seen("benchmark.collective.nodes", 1, BUSBW), seen("gpu.name", "NVIDIA H200")
    assert values([*run, one, name])["benchmark.collective.busbw.floor"] == 365
    other = seen("gpu.name", "NVIDIA H100 80GB HBM3", gpu("0000:4c:00.0", "n1"))
    assert "benchmark.collective.busbw.floor" not in values([*run, one, name, other])
    assert "benchmark.collective.busbw.floor" not in values([*run, seen("benchmark.collective.nodes", 2, BUSBW), name])
    elsewhere = seen("gpu.name", "NVIDIA H200", gpu("0000:4c:00.0", "n2"))
    assert "benchmark.collective.busbw.floor" not in values([*run, one, elsewhere])


def test_rdma_is_held_against_the_rate_of_its_own_port() -> None:
    run = [seen("benchmark.rdma.bw.largest", 390.0, RDMA), seen("benchmark.rdma.device", "mlx5_1", RDMA)]
    rates = [seen("port.rate", 400.0, Subject(Scope.PORT, "mlx5_1/1", node("n1"))),
             seen("port.rate", 100.0, Subject(Scope.PORT, "mlx5_2/1", node("n1")))]  # fmt: skip
    assert values([*run, *rates])["benchmark.rdma.bw.floor"] == 340
    assert "benchmark.rdma.bw.floor" not in values([*run, rates[1]])


@given(st.sampled_from(sorted(CHANGES)), st.lists(st.integers(1, 1000), max_size=6), st.integers(1, 1000))
def test_change_is_against_the_median_of_earlier_tests(fact: str, before: list[int], now: int) -> None:
    on = BUSBW if "collective" in fact else G
    kind: type = int if fact.endswith("gflops") else float
    history = [seen(fact, kind(v), on, f"history:{n}") for n, v in enumerate(before)]
    got = values([seen(fact, kind(now), on), *history]).get(CHANGES[fact])
    if not before:
        assert got is None
    else:
        middle = sorted(before)
        half = len(middle) // 2
        usual = middle[half] if len(middle) % 2 else (middle[half - 1] + middle[half]) / 2
        assert got == round(100 * (now / usual - 1), 1)


def test_history_alone_is_no_result() -> None:
    link = [seen("gpu.pcie.gen.max", 5), seen("gpu.pcie.width.max", 16)]
    assert not [
        fact for fact in values([seen("benchmark.h2d", 55.0, call="history:1"), *link]) if fact.startswith("benchmark")
    ]
