"""Statistics of operators, against a walk over the tree they stand in."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.trace.breakdown import kernels
from probes.trace.model import OpStat
from tests.trace_files import GEMM, TraceFile, launch_bound, read


@dataclass
class Node:
    """An operator that runs `before` us, launches `gpu` us if any, calls `inner`, and ends a microsecond later."""

    name: str
    before: int
    gpu: int
    inner: list[Node] = field(default_factory=list)

    def write(self, file: TraceFile, at: int) -> int:
        start = at
        event = file.op(self.name, at, 0).events[-1]
        at += self.before
        if self.gpu:
            number = len(file.events)
            file.launch(at, 1, correlation=number).kernel(GEMM, 10_000 + 20 * number, self.gpu, correlation=number)
            at += 1
        for child in self.inner:
            at = child.write(file, at)
        event["dur"] = (at + 1 - start) * 1000
        return at + 1

    def size(self) -> int:
        return self.before + bool(self.gpu) + sum(c.size() for c in self.inner) + 1

    def device(self) -> int:
        return self.gpu + sum(c.device() for c in self.inner)

    def tell(self, found: dict[str, list[int]], above: frozenset[str] = frozenset()) -> dict[str, list[int]]:
        row = found.setdefault(self.name, [0] * 6)
        outermost = self.name not in above
        for i, more in enumerate((1, self.size() * outermost, self.size() - sum(c.size() for c in self.inner), self.gpu,
                                  self.device() * outermost, bool(self.gpu))):  # fmt: skip
            row[i] += more
        for child in self.inner:
            child.tell(found, above | {self.name})
        return found


def nodes(inner: st.SearchStrategy[list[Node]]) -> st.SearchStrategy[Node]:
    return st.builds(Node, st.sampled_from("abc"), st.integers(0, 3), st.integers(0, 4), inner)


TREES = st.recursive(nodes(st.just([])), lambda children: nodes(st.lists(children, max_size=3)), max_leaves=8)


@given(st.lists(TREES, min_size=1, max_size=3))
def test_statistics_are_those_of_the_tree(roots: list[Node]) -> None:
    file, at, expected = TraceFile(), 0, dict[str, list[int]]()
    for root in roots:
        at = root.write(file, at)
        root.tell(expected)
    got = kernels.op_stats(read(file, kernels.NEEDS))
    assert {o.name: row(o) for o in got} == expected
    assert [o.gpu_ns for o in got] == sorted((o.gpu_ns for o in got), reverse=True)


def row(one: OpStat) -> list[int]:
    return [
        one.count,
        one.cpu_ns // 1000,
        one.cpu_self_ns // 1000,
        one.gpu_ns // 1000,
        one.gpu_total_ns // 1000,
        one.kernels,
    ]


def test_operators_count_nested_times_once() -> None:
    file = (TraceFile().op("f", 0, 100).op("g", 10, 50).op("f", 20, 30).launch(25, 3, correlation=1)
            .launch(70, 3, correlation=2).op("f", 200, 10))  # fmt: skip
    file.kernel(GEMM, 300, 40, correlation=1).memcpy("Memcpy", 350, 10, correlation=2).kernel(
        GEMM, 400, 50, correlation=9
    )
    found = {o.name: o for o in kernels.op_stats(read(file, kernels.NEEDS))}
    f, g = found["f"], found["g"]
    assert (f.count, f.cpu_ns, f.cpu_self_ns) == (3, 110_000, 90_000)
    assert (f.gpu_ns, f.gpu_total_ns, f.kernels, f.share) == (50_000, 50_000, 2, 0.5)
    assert (g.count, g.cpu_ns, g.cpu_self_ns, g.gpu_ns, g.gpu_total_ns, g.kernels) == (1, 50_000, 20_000, 0, 40_000, 0)


def test_an_operator_that_ends_behind_the_one_around_it() -> None:
    file = TraceFile().op("f", 0, 10).op("g", 5, 15)
    assert {o.name: o.cpu_self_ns for o in kernels.op_stats(read(file, kernels.NEEDS))} == {"f": 5000, "g": 15_000}


def test_operators_by_shape_written_anyhow() -> None:
    file = (
        TraceFile()
        .op("aten::mm", 0, 5, dims=[[4, 8], [8, 2]])
        .op("aten::mm", 10, 5, dims=[[4, 8], [8, 2]])
        .op("aten::mm", 20, 7)
    )
    found = kernels.op_stats(read(file, kernels.NEEDS), "shape")
    assert [(o.shapes, o.count) for o in found] == [("[[4, 8], [8, 2]]", 2), ("", 1)]
    with pytest.raises(ValueError, match="name, shape"):
        kernels.op_stats(read(file, kernels.NEEDS), "stream")


def test_self_times_add_up_to_what_was_covered() -> None:
    trace = read(launch_bound(), kernels.NEEDS)
    found = kernels.op_stats(trace)
    assert sum(o.cpu_self_ns for o in found) == sum(
        o.cpu_ns for o in found if not o.name.startswith(("aten::addmm", "aten::mm"))
    )
    assert sum(o.share for o in found) <= 1 + 1e-12
