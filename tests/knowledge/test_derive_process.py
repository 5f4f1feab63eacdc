"""Joins of what the driver and /proc say of processes on GPUs; what is not known is never taken as none."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from knowledge.derive import derive
from knowledge.derive.process import cpus, enrich
from knowledge.observation import Observation, Origin, Scope, Source, Status, Subject, Value, gpu, node
from tests.cases import each

N = node("n1")
A = gpu("0000:3b:00.0", "n1")


def process(pid: int) -> Subject:
    return Subject(Scope.PROCESS, str(pid), N)


def told(fact: str, value: Value, on: Subject, status: Status = Status.OK, detail: str = "") -> Observation:
    return Observation(fact, on, value, status, Source("p", "c"), detail=detail)


def alive(pid: int, **facts: Value) -> list[Observation]:
    """A process that /proc tells of, on GPU A by the driver's list."""
    base = [told("process.state", "running", process(pid)), told("process.uses_gpu", f"gpu:{A.id}", process(pid))]
    return [*base, *(told(f"process.{name}", value, process(pid)) for name, value in facts.items())]


def derived(batch: list[Observation]) -> dict[tuple[str, Subject], Any]:
    return {
        (o.fact, o.subject): o.value if o.status is Status.OK else o.status
        for o in derive(batch)
        if o.origin is Origin.DERIVED
    }


# --- who shares ---------------------------------------------------------------------------


@each(
    ("owners", "count", "batch"),
    [
        (["job 1", "job 1"], 1, 1),
        (["job 1", "job 2"], 2, 2),
        (["job 1", "user a"], 2, 1),
        (["pod a/x", "user a"], 2, 0),
    ],
)
def test_owners(owners: list[str], count: int, batch: int) -> None:
    found = derived([o for i, owner in enumerate(owners) for o in alive(i + 1, owner=owner)])
    assert (found["gpu.owners", A], found["gpu.owners.batch", A]) == (count, batch)


def test_one_of_whom_nobody_knows_leaves_it_open() -> None:
    known = alive(1, owner="job 1")
    assert derived([*known, *alive(2)])["gpu.owners", A] is Status.NOT_ASKED
    assert derived([*known, *alive(2), *alive(3, owner="job 3")])["gpu.owners", A] == 2


def test_sharing_on_purpose() -> None:
    both = [*alive(1, owner="job 1"), *alive(2, owner="job 2", gpu_contexts=("compute", "mps"))]
    assert derived(both)["gpu.owners", A] is Status.NOT_APPLICABLE
    server = [*alive(1, owner="job 1"), *alive(2, owner="user root", comm="nvidia-cuda-mps")]
    assert derived(server)["gpu.owners", A] is Status.NOT_APPLICABLE


def test_a_desktop_is_no_job() -> None:
    both = [*alive(1, owner="job 1"), *alive(2, owner="user root", gpu_contexts=("graphics",))]
    assert derived(both)["gpu.owners", A] == 1


# --- who holds ----------------------------------------------------------------------------


def test_holding() -> None:
    opens = [told("process.state", "sleeping", process(1)), told("process.opens_gpu", f"gpu:{A.id}", process(1))]
    none = [
        told("process.state", "sleeping", process(2)),
        told("process.opens_gpu", None, process(2), Status.NONE_SEEN),
    ]
    hidden = [
        told("process.state", "sleeping", process(3)),
        told("process.opens_gpu", None, process(3), Status.DENIED, "x"),
    ]
    listed = [*alive(4), told("process.opens_gpu", None, process(4), Status.DENIED, "x")]
    found = derived([*opens, *none, *hidden, *listed])
    assert [found.get(("process.holds_gpu", process(pid))) for pid in (1, 2, 3, 4)] == [True, False, None, True]


def test_a_list_of_the_driver_alone_says_nothing_new() -> None:
    batch = [told("process.uses_gpu", f"gpu:{A.id}", process(1)), told("gpu.processes", 0, A)]
    assert enrich(batch) == batch


@each(
    ("holder", "whole", "expected"),
    [(True, True, 1), (True, False, 1), (False, True, 0), (False, False, Status.DENIED)],
)
def test_holders_that_the_driver_does_not_list(holder: bool, whole: bool, expected: Any) -> None:
    batch = [
        told("process.state", "sleeping", process(1)), told("process.computes", holder, process(1)), told("gpu.processes", 0, A),
        told("node.processes.on_gpu", 1 if whole else None, N, Status.OK if whole else Status.DENIED, "" if whole else "root"),
        told("process.opens_gpu", f"gpu:{A.id}", process(1)),
    ]  # fmt: skip
    assert derived(batch)["gpu.unlisted_holders", A] == expected


def test_sources_that_count_the_processes_differently_leave_the_holders_open() -> None:
    batch = [
        *alive(1), told("process.computes", False, process(1)), told("gpu.processes", 0, A),
        told("node.processes.on_gpu", 4, N), told("node.processes.on_gpu", 2, N),
    ]  # fmt: skip
    (one,) = (o for o in enrich(batch) if o.fact == "gpu.unlisted_holders")
    assert (one.status, one.value, one.detail) == (Status.FAILED, None, "sources disagree: 2 and 4")


def test_by_the_number_of_the_device_file() -> None:
    """Another source tells which GPU has the minor number."""
    batch = [
        told("process.state", "sleeping", process(1)), told("process.computes", True, process(1)), told("gpu.processes", 0, A),
        told("process.opens_gpu", "gpu:minor:4", process(1)), told("gpu.minor", 4, A), told("node.processes.on_gpu", 1, N),
    ]  # fmt: skip
    assert derived(batch)["gpu.unlisted_holders", A] == 1


# --- near ---------------------------------------------------------------------------------


@each(("allowed", "share"), [("0-47", 100.0), ("0-95", 50.0), ("48-95", 0.0), ("47,48", 50.0), ("?", None)])
def test_cpus_near_a_gpu(allowed: str, share: float | None) -> None:
    batch = [*alive(1, computes=True, cpus_allowed=allowed), told("gpu.cpu_affinity", "0-47", A)]
    assert derived(batch).get(("process.cpus_near_gpu", process(1))) == share


def test_a_gpu_whose_cpus_are_not_known_leaves_it_open() -> None:
    other = told("process.uses_gpu", "gpu:0000:86:00.0", process(1))
    batch = [*alive(1, computes=True, cpus_allowed="48-95"), told("gpu.cpu_affinity", "0-47", A), other]
    assert ("process.cpus_near_gpu", process(1)) not in derived(batch)


def test_of_two_open_devices_neither_is_the_one() -> None:
    batch = [told("process.state", "running", process(1)), told("process.computes", True, process(1)),
             told("process.cpus_allowed", "48-95", process(1)), told("gpu.cpu_affinity", "0-47", A),
             told("process.opens_gpu", f"gpu:{A.id}", process(1))]  # fmt: skip
    assert derived(batch)["process.cpus_near_gpu", process(1)] == 0.0
    second = told("process.opens_gpu", "gpu:0000:86:00.0", process(1))
    assert ("process.cpus_near_gpu", process(1)) not in derived([*batch, second])


# --- laws ---------------------------------------------------------------------------------


@given(st.sets(st.integers(0, 200), min_size=1))
def test_lists_of_cpus_round_trip(members: set[int]) -> None:
    assert cpus(",".join(map(str, sorted(members)))) == members
    assert cpus(" ".join(map(str, sorted(members)))) == members


@given(st.permutations([*alive(1, owner="job 1", computes=True, cpus_allowed="0-3"), *alive(2, owner="job 2"),
                        told("gpu.cpu_affinity", "0-1", A), told("gpu.processes", 2, A), told("node.processes.on_gpu", 2, N)]))  # fmt: skip
def test_order_says_nothing_and_twice_is_once(batch: list[Observation]) -> None:
    once = enrich(batch)
    assert enrich(once) == once
    assert sorted(map(repr, once)) == sorted(map(repr, enrich(batch[::-1])))
