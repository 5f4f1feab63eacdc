"""Pipeline bubbles on a GPipe schedule whose waiting is known by arithmetic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.trace.across.ranks import NEEDS as RANKS
from probes.trace.across.ranks import compare, digest
from probes.trace.model import Pipeline, PipelineStage
from probes.trace.reading.reader import read
from probes.trace.steps.pipeline import NEEDS, bubbles, stage_of
from tests.trace_files import GEMM, TraceFile
from tests.trace_jobs import ALLREDUCE

SENDRECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"


class Stage:
    """One rank of the pipeline; `kind`: recorded (kernel arguments), annotation, or neither."""

    def __init__(self, rank: int, depth: int, kind: str) -> None:
        self.file, self.now, self.calls, self.kind = TraceFile(rank=rank, world=depth), 0, 0, kind
        self.rank, self.depth = rank, depth

    def kernel(self, name: str, start: int, us: int, stream: int = 7, **args: Any) -> None:
        self.calls += 1
        self.file.launch(self.now, 0.5, correlation=self.calls).kernel(
            name, start, us, stream=stream, correlation=self.calls, **args
        )

    def compute(self, us: int) -> int:
        self.kernel(GEMM, self.now, us)
        self.now += us
        return self.now

    def point(self, what: str, peer: int, start: int, us: int) -> None:
        args: dict[str, Any] = {}
        if self.kind == "recorded":
            args = {"Collective name": what, "Process Group Ranks": str(list(range(self.depth))), "Process Group Name": "pp",
                    ("Dst Rank" if what == "send" else "Src Rank"): peer}  # fmt: skip
        if self.kind == "annotation":
            self.file.annotation(f"nccl:{what}", self.now, 0.6)
        self.kernel(SENDRECV, start, us, 20 if what == "send" else 21, **args)

    def receive(self, peer: int, arrival: int) -> None:
        end = max(arrival, self.now) + 1
        self.point("recv", peer, self.now, end - self.now)
        self.now = end


def gpipe(
    folder: Path, depth: int, micro: int, forward: int, backward: int, kind: str = "recorded", steps: int = 2
) -> list[str]:
    """All forwards, all backwards, then an all-reduce at which the stages meet; a transfer takes 1 us."""
    stages = [Stage(r, depth, kind) for r in range(depth)]
    for step in range(1, steps + 1):
        begin = stages[0].now
        done: dict[tuple[str, int, int], int] = {}
        for way, us in (("f", forward), ("b", backward)):
            for r in range(depth) if way == "f" else reversed(range(depth)):
                before, after = (r - 1, r + 1) if way == "f" else (r + 1, r - 1)
                for m in range(micro):
                    if 0 <= before < depth:
                        stages[r].receive(before, done[way, before, m])
                    done[way, r, m] = stages[r].compute(us)
                    if 0 <= after < depth:
                        stages[r].point("send", after, stages[r].now, 1)
        end = max(s.now for s in stages) + 10
        for s in stages:
            s.now += 1  # not within the last send's annotation
            s.kernel(
                ALLREDUCE, s.now, end - s.now, 22, **{"Collective name": "allreduce"} if kind == "recorded" else {}
            )
            s.now = end
            s.file.annotation(f"ProfilerStep#{step}", begin, end - begin)
    return [s.file.save(folder / f"r{i}.json") for i, s in enumerate(stages)]


def stages(paths: list[str]) -> list[PipelineStage]:
    found = [stage_of(read(p, NEEDS)) for p in paths]
    assert all(s is not None for s in found)
    return [s for s in found if s is not None]


def pipeline(paths: list[str]) -> Pipeline:
    found = bubbles(stages(paths))
    assert found is not None
    return found


@pytest.mark.parametrize("kind", ["recorded", "annotation"])
def test_each_stage_waits_as_long_as_the_schedule_says(tmp_path: Path, kind: str) -> None:
    depth, micro, forward, backward = 4, 8, 100, 200
    found = stages(gpipe(tmp_path, depth, micro, forward, backward, kind))
    for s, one in enumerate(found):
        waits = s * forward + (depth - 1 - s) * (
            forward + backward
        )  # the drain, s * backward, stands in the all-reduce
        hops = 2 * micro * 3 * 1000
        assert 0 <= one.bubble_ns - 2 * waits * 1000 <= 2 * hops
        assert one.evidence == kind
        assert (one.iterations, one.stage) == (2, s if kind == "recorded" else None)


def test_the_ideal_bubble(tmp_path: Path) -> None:
    found = pipeline(gpipe(tmp_path, 4, 8, 1000, 2000))
    assert (found.depth, found.microbatches) == (4, 8)
    assert found.ideal == pytest.approx(3 / 11)
    assert found.stages[0].fraction == pytest.approx(3 / 11, abs=0.02)
    assert 0.5 * 3 / 11 < found.fraction < 1.1 * 3 / 11
    assert not found.notes


def test_what_is_not_recorded_is_said(tmp_path: Path) -> None:
    found = pipeline(gpipe(tmp_path, 2, 4, 100, 200, "annotation"))
    assert found.ideal is None
    assert found.depth is None
    assert any("not recorded" in n.en for n in found.notes)


def test_an_all_to_all_is_no_pipeline(tmp_path: Path) -> None:
    file = (
        TraceFile(rank=0)
        .annotation("nccl:all_to_all", 0, 10)
        .launch(1, 2, correlation=1)
        .kernel(SENDRECV, 5, 50, correlation=1)
    )
    assert stage_of(read(file.save(tmp_path / "t.json"), NEEDS)) is None
    assert stage_of(read(TraceFile().kernel(GEMM, 0, 5).save(tmp_path / "u.json"), NEEDS)) is None
    assert bubbles([]) is None
    for path in gpipe(tmp_path, 2, 4, 100, 200, "kernel name"):  # an all-to-all has the same
        assert stage_of(read(path, NEEDS)) is None


def test_a_comparison_of_ranks_holds_the_pipeline(tmp_path: Path) -> None:
    found = compare([digest(read(p, RANKS)) for p in gpipe(tmp_path, 3, 4, 300, 600)])
    assert found.pipeline is not None
    assert [s.stage for s in found.pipeline.stages] == [0, 1, 2]
    pairs = {c.group for c in found.collectives if c.name == "send_recv"}
    assert len(pairs) == 4  # each direction between neighbours


@pytest.mark.slow
@given(st.integers(2, 5), st.integers(1, 6), st.integers(50, 400), st.integers(50, 400))
def test_a_bubble_is_no_longer_than_the_window(depth: int, micro: int, forward: int, backward: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        found = stages(gpipe(Path(folder), depth, micro, forward, backward))
    for one in found:
        work = micro * (forward + backward) * 2000
        assert one.exposed_ns <= one.bubble_ns <= one.window_ns - work
