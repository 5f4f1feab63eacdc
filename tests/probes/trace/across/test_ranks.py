"""Comparison of ranks on jobs whose truth is known."""

from __future__ import annotations

import pickle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.errors import InputError
from probes.trace.across.collectives import of_kernel, operation, ranks_in
from probes.trace.across.ranks import NEEDS, RankDigest, compare, digest
from probes.trace.model import Ranks
from probes.trace.reading.reader import read
from tests.trace_jobs import Cluster


def digests(folder: Path, **job: Any) -> list[RankDigest]:
    return [digest(read(path, NEEDS)) for path in Cluster(**job).save(folder)]


def compared(folder: Path, **job: Any) -> Ranks:
    return compare(digests(folder, **job))


def test_the_rank_that_computes_a_fifth_longer_is_named(tmp_path: Path) -> None:
    found = compared(tmp_path, compute=[4000, 4000, 4800, 4000], steps=5)
    (one,) = found.stragglers
    assert (one.rank, one.cause, one.extra_ns) == (2, "compute", 5 * 800_000)
    assert one.makes_wait_ns == 5 * 800_000 * 3  # three wait for it, in each of five steps
    assert one.share == 1
    assert [t.waits_ns for t in found.timings] == [4_000_000, 4_000_000, 0, 4_000_000]
    (line,) = found.collectives
    assert (line.count, line.transfer_ns, line.skew_ns, line.late_rank) == (5, 5 * 500_000, 5 * 800_000, 2)
    assert not line.slow_link
    assert found.imbalance == pytest.approx(4800 / 4200 - 1)
    assert found.iterations == 5
    assert [(s.number, s.slowest_rank, s.max_ns, s.mean_ns) for s in found.spreads] == [
        (n, 2, 4_800_000, 4_200_000) for n in range(1, 6)
    ]


def test_a_starved_rank_is_late_for_its_data(tmp_path: Path) -> None:
    found = compared(tmp_path, compute=[4000] * 4, loader=[100, 3000, 100, 100])
    (one,) = found.stragglers
    assert (one.rank, one.cause) == (1, "data_loader")
    assert found.timings[1].data_loader_ns == 5 * 3_000_000
    assert {w.late_rank for w in found.waits} == {1}
    assert {w.rank for w in found.waits} == {0, 2, 3}


def test_a_late_host_is_told_from_slow_kernels(tmp_path: Path) -> None:
    (one,) = compared(tmp_path, compute=[4000] * 4, host=[0, 0, 0, 1000]).stragglers
    assert (one.rank, one.cause, one.extra_ns) == (3, "host", 5_000_000)


def test_slow_launches_are_told_from_a_slow_host(tmp_path: Path) -> None:
    (one,) = compared(tmp_path, compute=[4000] * 4, call=[1, 1, 301, 1]).stragglers
    assert (one.rank, one.cause, one.extra_ns) == (2, "launch", 5 * 4 * 300_000)


def test_a_rank_with_more_kernels_has_more_work(tmp_path: Path) -> None:
    (one,) = compared(tmp_path, compute=[4000, 6000, 4000, 4000], kernels=[4, 6, 4, 4]).stragglers
    assert (one.rank, one.cause) == (1, "compute")
    assert "more kernels" in one.why.en


def test_who_only_passes_lateness_on_is_no_straggler(tmp_path: Path) -> None:
    """Rank 1 waits for rank 0 in their group, and so comes late to rank 3 in the other."""
    groups = [((0, 1), 300), ((2, 3), 300), ((0, 2), 500), ((1, 3), 500)]
    found = compared(tmp_path, compute=[5000, 4000, 4000, 4000], groups=groups)
    assert [s.rank for s in found.stragglers] == [0]
    assert {(w.rank, w.late_rank) for w in found.waits} == {(1, 0), (2, 0), (3, 1)}


def test_a_rank_that_was_late_before_the_window(tmp_path: Path) -> None:
    found = compared(tmp_path, compute=[4000] * 4, steps=3, late=[0, 0, 2500, 0])
    (one,) = found.stragglers
    assert (one.rank, one.cause, one.extra_ns) == (2, "before", 2_500_000)


def test_nobody_is_late_where_all_are_alike(tmp_path: Path) -> None:
    found = compared(tmp_path, compute=[4000] * 4)
    assert not found.stragglers
    assert not found.waits
    assert found.imbalance == 0


def test_chance_is_no_straggler(tmp_path: Path) -> None:
    found = compared(tmp_path, compute=[4000] * 8, steps=12, jitter=0.05)
    assert not found.stragglers
    assert sum(w.ns for w in found.waits) > 0


def test_a_straggler_stands_out_of_chance(tmp_path: Path) -> None:
    found = compared(tmp_path, compute=[4000] * 5 + [4800] + [4000] * 2, steps=12, jitter=0.05)
    assert [(s.rank, s.cause) for s in found.stragglers] == [(5, "compute")]


def test_a_slow_link_is_no_slow_rank(tmp_path: Path) -> None:
    groups = [((0, 1), 500), ((2, 3), 500), ((4, 5), 1500), ((6, 7), 500)]
    found = compared(tmp_path, compute=[4000] * 8, groups=groups)
    slow = [c for c in found.collectives if c.slow_link]
    assert [c.ranks for c in slow] == [(4, 5)]
    assert slow[0].slower == pytest.approx(3)
    assert not found.stragglers
    size = (1 << 20) * 2
    assert slow[0].bytes == size * 5
    assert slow[0].bus_gbs == pytest.approx(size / 1_500_000)  # all-reduce of two: 2(n-1)/n = 1


def test_a_slow_rank_is_no_slow_link(tmp_path: Path) -> None:
    groups = [((0, 1), 500), ((2, 3), 500), ((0, 1, 2, 3), 500)]
    found = compared(tmp_path, compute=[4000, 4000, 5000, 4000], groups=groups)
    assert [s.rank for s in found.stragglers] == [2]
    assert not any(c.slow_link for c in found.collectives)


@pytest.mark.parametrize("record", [True, False])
@pytest.mark.parametrize("sequence", [True, False])
def test_clocks_that_are_seconds_apart(tmp_path: Path, record: bool, sequence: bool) -> None:
    offset = [0, 3_000_000, -7_000_000, 123]
    found = compared(tmp_path, compute=[4000, 4000, 4800, 4000], offset=[o + 10**7 for o in offset], record=record, sequence=sequence)  # fmt: skip
    assert found.aligned
    assert found.residual_ns == 0
    assert list(found.offsets_ns.values()) == [o * 1000 for o in offset]
    assert [s.rank for s in found.stragglers] == [2]
    assert any("not recorded" in n.en for n in found.notes) is not record


def test_missing_ranks_are_a_result(tmp_path: Path) -> None:
    found = compare(digests(tmp_path, compute=[4000] * 4, world=8)[:3], {"broken.json": "not JSON"})
    assert found.missing == (3, 4, 5, 6, 7)
    assert found.world_size == 8
    assert found.failed == {"broken.json": "not JSON"}
    assert "3, 4, 5, 6, 7" in found.notes[0].en


def test_a_gap_in_the_numbering_is_a_missing_rank(tmp_path: Path) -> None:
    found = compared(tmp_path, compute=[4000] * 3, numbers=[0, 1, 3], world=4)
    assert found.missing == (2,)


def test_a_truncated_file_counts_as_far_as_it_goes(tmp_path: Path) -> None:
    paths = Cluster(compute=[4000, 4000, 4800, 4000], steps=6).save(tmp_path)
    whole = Path(paths[1]).read_bytes()
    Path(paths[1]).write_bytes(whole[: int(len(whole) * 0.7)])
    found = compare([digest(read(p, NEEDS)) for p in paths])
    assert [s.rank for s in found.stragglers] == [2]
    assert found.iterations is not None
    assert 2 <= found.iterations <= 5


def test_a_file_that_is_no_trace_fails_alone(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("hello")
    with pytest.raises(InputError):
        read(str(tmp_path / "x.json"), NEEDS)


def test_nothing_and_one_rank_are_no_comparison(tmp_path: Path) -> None:
    assert compare([]).timings == ()
    found = compare(digests(tmp_path, compute=[4000, 4000])[:1])
    assert found.missing == (1,)
    assert not found.collectives
    assert not found.stragglers
    assert any("nobody can say" in n.en for n in found.notes)


def test_streams_of_other_groups_are_not_taken_for_one(tmp_path: Path) -> None:
    """Two groups of two without any record of it: their calls do not end together, so nobody waits for anybody there."""
    apart = [((0, 1), 500), ((2, 3), 500)]
    found = compared(tmp_path, compute=[4000, 4100, 9000, 9100], groups=apart, record=False)
    assert not found.collectives
    assert any("not one group" in n.en for n in found.notes)


TRACES = Path(__file__).parents[3] / "traces"


def test_two_ranks_of_a_job_on_processors() -> None:
    """Recorded by bench/record_traces.py: two ranks over Gloo, whose calls stand on Gloo's own threads."""
    found = compare([digest(read(str(TRACES / f"gloo_rank{n}.json.gz"), NEEDS)) for n in (0, 1)])
    assert [t.rank for t in found.timings] == [0, 1]
    assert found.iterations == 2
    assert [t.span_ns for t in found.timings] == [212_037_756, 210_641_978]
    assert {c.name for c in found.collectives} == {"all_reduce"}  # of a broadcast the root may leave first
    assert not found.aligned  # two all-reduces: any offset would fit one of them
    assert found.offsets_ns == {}
    assert found.missing == ()


HALF = settings(max_examples=settings().max_examples // 2)  # each example is a job of four ranks, written and read
jobs = st.fixed_dictionaries({
    "compute": st.lists(st.integers(100, 9000), min_size=4, max_size=4),
    "loader": st.lists(st.integers(0, 3000), min_size=4, max_size=4),
    "steps": st.integers(1, 3),
    "groups": st.sampled_from([None, [((0, 1), 100), ((2, 3), 200), ((0, 1, 2, 3), 300)]]),
})  # fmt: skip


def in_folder(**job: Any) -> list[RankDigest]:
    with TemporaryDirectory() as folder:
        found = digests(Path(folder), **job)
    return [_renamed(d) for d in found]


def _renamed(d: RankDigest) -> RankDigest:
    from dataclasses import replace

    return replace(d, file=Path(d.file).name)


@pytest.mark.slow
@HALF
@given(jobs)
def test_all_waiting_is_somebodys_lateness(job: dict[str, Any]) -> None:
    found = compare(in_folder(**job))
    assert sum(t.waits_ns for t in found.timings) == sum(t.makes_wait_ns for t in found.timings)
    assert sum(w.ns for w in found.waits) == sum(t.waits_ns for t in found.timings)
    assert all(0 <= t.waits_ns <= t.span_ns for t in found.timings)


@pytest.mark.slow
@HALF
@given(jobs, st.integers(0, 3), st.integers(-(10**9), 10**9))
def test_a_clock_that_is_off_changes_no_conclusion(job: dict[str, Any], rank: int, us: int) -> None:
    offset = [2 * 10**9] * 4
    before = compare(in_folder(**job, offset=list(offset)))
    offset[rank] += us
    after = compare(in_folder(**job, offset=offset))
    for part in ("timings", "collectives", "stragglers", "waits", "aligned", "residual_ns", "imbalance"):
        assert getattr(before, part) == getattr(after, part), part


@pytest.mark.slow
@HALF
@given(jobs, st.permutations(range(4)))
def test_other_numbers_permute_the_result(job: dict[str, Any], numbers: list[int]) -> None:
    before = {t.file: t for t in compare(in_folder(**job)).timings}
    after = compare(in_folder(**job, numbers=numbers))
    for t in after.timings:
        was = before[t.file]
        assert t.rank == numbers[was.rank or 0]
        assert (t.waits_ns, t.makes_wait_ns, t.compute_ns) == (was.waits_ns, was.makes_wait_ns, was.compute_ns)


def test_a_digest_is_small_and_can_be_sent(tmp_path: Path) -> None:
    found = digests(tmp_path, compute=[4000, 4800], steps=50)
    data = pickle.dumps(found)
    assert len(data) < 40_000
    assert compare(pickle.loads(data)) == compare(found)


@pytest.mark.parametrize(("kernel", "op"), [
    ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all_reduce"),
    ("ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclWorkElem)", "all_gather"),
    ("ncclDevKernel_ReduceScatter_Sum_f32_RING_SIMPLE(...)", "reduce_scatter"),
    ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)", "send_recv"),
    ("void vllm::cross_device_reduce_1stage<__half, 2>(vllm::RankData*)", "cross_device_reduce_1stage"),
])  # fmt: skip
def test_what_a_kernel_does(kernel: str, op: str) -> None:
    assert of_kernel(kernel) == op


def test_spellings_and_lists() -> None:
    assert operation("nccl:_all_gather_base") == operation("allgather") == "all_gather"
    assert operation("_allgather_base") == "all_gather"
    assert ranks_in("[0, 1, 8]") == (0, 1, 8)
    assert ranks_in("[0, 1, ..., 8]") == ()
