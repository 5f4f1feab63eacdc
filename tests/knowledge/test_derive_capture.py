"""What follows from a capture: of the right process, never from what is missing, and whatever the order."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from knowledge.derive.capture import enrich
from knowledge.observation import Observation, Origin, Scope, Source, Status, Subject, gpu, node
from tests.cases import each

HERE = node("n1")
JOB = Subject(Scope.JOB, "7", HERE)
A, B = gpu("0000:01:00.0", "n1"), gpu("0000:02:00.0", "n1")
NIC = Subject(Scope.NIC, "mlx5_0", HERE)


def process(pid: int) -> Subject:
    return Subject(Scope.PROCESS, str(pid), HERE)


def seen(fact: str, value: Any, on: Subject, at: int | None = None) -> Observation:
    if isinstance(value, Status):
        return Observation(fact, on, None, value, Source("p", "c"), at)
    return Observation(fact, on, value, Status.OK, Source("p", "c"), at)


def derived(*batch: Observation) -> dict[tuple[str, Subject], Any]:
    return {
        (o.fact, o.subject): o.value if o.status is Status.OK else o.status
        for o in enrich(batch)
        if o.origin is Origin.DERIVED
    }


def uses(pid: int, *gpus: Subject) -> list[Observation]:
    return [seen("process.uses_gpu", f"gpu:{g.id}", process(pid)) for g in gpus]


def test_the_slow_rank_is_one_process() -> None:
    found = derived(
        seen("job.slow_rank.is_process", "process:43", JOB), seen("job.slow_rank.wait.share", 31.5, JOB),
        seen("job.slow_rank.function", "f (a.py:1)", JOB), seen("process.in_job", "job:7", process(42)),
    )  # fmt: skip
    assert found == {
        ("process.late.share", process(43)): 31.5, ("process.late.function", process(43)): "f (a.py:1)",
    }  # fmt: skip


@each("named", [Status.NONE_SEEN, Status.DENIED, "rank:3", "nonsense", ""])
def test_without_a_process_nobody_is_late(named: Any) -> None:
    assert not derived(seen("job.slow_rank.is_process", named, JOB), seen("job.slow_rank.wait.share", 31.5, JOB))


def test_who_holds_up_the_job() -> None:
    tie = seen("job.hung.is_process", "process:43", JOB)
    assert derived(tie, seen("job.hung", True, JOB)) == {("process.holds_up_job", process(43)): True}
    assert derived(tie, seen("job.hung", False, JOB)) == {("process.holds_up_job", process(43)): False}
    assert not derived(tie, seen("job.hung", Status.FAILED, JOB))


@each(
    ("named", "number"),
    [("rank:3", 3), ("rank:0", 0), ("rank:", None), ("rank:x", None), ("rank:²", None), ("rank:-1", None)],
)
def test_the_number_of_a_rank(named: str, number: int | None) -> None:
    found = derived(seen("process.is_rank", named, process(1)))
    assert found == ({("process.rank", process(1)): number} if number is not None else {})


@each(
    ("sync", "utilization", "cost"),
    [(80.0, 98.0, 2.0), (10.0, 40.0, 10.0), (60.0, 55.0, 45.0), (0.0, 0.0, 0.0), (50.0, 130.0, 0.0)],
)
def test_a_wait_costs_no_more_than_the_gpu_idles(sync: float, utilization: float, cost: float) -> None:
    found = derived(
        *uses(1, A), seen("stack.sync.share", sync, process(1)), seen("gpu.window.utilization", utilization, A)
    )
    assert found["stack.sync.cost.share", process(1)] == cost


def test_of_several_gpus_the_busiest_counts_and_all_must_be_known() -> None:
    both = [*uses(1, A, B), seen("gpu.window.utilization", 30.0, A)]
    assert ("process.gpu_idle.share", process(1)) not in derived(
        *both, seen("gpu.window.utilization", Status.UNSUPPORTED, B)
    )
    assert derived(*both, seen("gpu.window.utilization", 80.0, B))["process.gpu_idle.share", process(1)] == 20.0


def test_a_captured_process_without_a_gpu_waits_for_none() -> None:
    window = seen("capture.window.seconds", 2.0, process(1))
    none = seen("process.uses_gpu", Status.NONE_SEEN, process(1))
    found = derived(window, none)
    assert found["process.gpu_idle.share", process(1)] is Status.NOT_APPLICABLE
    assert found["stack.sync.cost.share", process(1)] is Status.NOT_APPLICABLE
    assert not derived(window, seen("process.uses_gpu", Status.DENIED, process(1))), "not knowing is not none"
    assert ("process.gpu_idle.share", process(1)) not in derived(window, none, *uses(1, A)), "another source lists one"


def test_what_a_gpu_waits_for_is_where_its_process_stands_longest() -> None:
    def waits(pid: int, share: float, where: str) -> list[Observation]:
        return [
            *uses(pid, A),
            seen("stack.collective.share", share, process(pid)),
            seen("stack.collective.function", where, process(pid)),
        ]

    assert (
        derived(*waits(1, 30.0, "broadcast"), *waits(2, 70.0, "all_reduce"))["gpu.window.waits_for", A] == "all_reduce"
    )
    assert ("gpu.window.waits_for", A) not in derived(*waits(1, 10.0, "broadcast"))


@each(
    ("generation", "width", "rate", "share"),
    [(4, 8, 7.876e9, 50.0), (1, 16, 1e9, 25.0), (5, 16, 63.008e9, 100.0), (9, 16, 1e9, None), (4, 0, 1e9, None)],
)
def test_how_full_a_pcie_link_is(generation: int, width: int, rate: float, share: float | None) -> None:
    told = [
        seen("gpu.window.pcie.rx", rate, A),
        seen("gpu.window.pcie.tx", 1.0, A),
        seen("gpu.pcie.gen", generation, A),
        seen("gpu.pcie.width", width, A),
    ]
    assert derived(*told).get(("gpu.window.pcie.used.share", A)) == share
    assert ("gpu.window.pcie.used.share", A) not in derived(*told[:3])


def test_how_full_an_adapter_is() -> None:
    told = [seen("node.window.nic.rx", 1e9, NIC), seen("node.window.nic.tx", 6.25e9, NIC)]
    assert derived(*told, seen("nic.speed", 100.0, NIC))["node.window.nic.used.share", NIC] == 50.0
    assert not derived(*told, seen("nic.speed", 0.0, NIC))
    assert derived(seen("nic.used.share", 99.0, NIC))["node.window.nic.used.share", NIC] == 99.0


def test_of_several_captures_the_last_counts() -> None:
    found = derived(seen("gpu.window.utilization", 90.0, A, at=1), seen("gpu.window.utilization", 40.0, A, at=2))
    assert found["gpu.window.idle.share", A] == 60.0


def test_what_is_measured_is_not_derived_again() -> None:
    kept = seen("process.rank", 5, process(1))
    assert [
        o.value for o in enrich([seen("process.is_rank", "rank:3", process(1)), kept]) if o.fact == "process.rank"
    ] == [5]


FACTS = ["job.slow_rank.is_process", "job.slow_rank.wait.share", "process.is_rank", "process.in_job",
         "gpu.window.utilization", "stack.sync.share", "process.uses_gpu", "capture.window.seconds", "gpu.window.pcie.rx", "nic.speed",
         "node.window.nic.rx", "node.window.nic.tx"]  # fmt: skip
VALUES = st.sampled_from(
    [0, -1.0, 3.5, 1e300, True, "", "process:1", "rank:1", "job:7", "gpu:0000:01:00.0", "collective", None]
)
ANY = st.builds(
    lambda fact, on, value, status, at: Observation(fact, on, value, status, Source("p", "c"), at),
    st.sampled_from(FACTS), st.sampled_from([process(1), process(2), A, B, JOB, NIC]), VALUES, st.sampled_from(Status), st.sampled_from([None, 1, 2]),
)  # fmt: skip


@given(st.lists(ANY, max_size=12), st.randoms(use_true_random=False))
def test_any_batch_gives_the_same_in_any_order(batch: list[Observation], random: Any) -> None:
    def added(observations: list[Observation]) -> set[str]:
        return {
            repr((o.fact, o.subject, o.value, o.status)) for o in enrich(observations) if o.origin is Origin.DERIVED
        }

    expected = added(batch)
    random.shuffle(batch)
    assert added(batch) == expected


READS = {
    "stack.workers.read.share": 70.0, "stack.workers.function": "fetch (data.py:1)", "stack.data_wait.share": 40.0,
    "stack.io.share": 20.0, "stack.io.function": "load (loop.py:2)",
    "stack.data_work.share": 50.0, "stack.data_work.function": "make (data.py:3)", "thread.blocked_io.share": 30.0,
}  # fmt: skip


@each(
    ("known", "share", "function"),
    [
        (READS, 40.0, "fetch (data.py:1)"),
        (READS | {"stack.workers.read.share": 5.0}, 20.0, "load (loop.py:2)"),
        (READS | {"stack.workers.read.share": Status.NOT_APPLICABLE, "stack.io.share": 1.0}, 30.0, "make (data.py:3)"),
        (dict.fromkeys(READS, 2.0), None, None),
        ({"stack.data_work.share": 50.0, "thread.blocked_io.share": Status.DENIED}, None, None),
    ],
    ids=["workers", "loop", "loader in the loop", "little", "not told"],
)
def test_whose_reads_the_loop_waits_for(known: dict[str, Any], share: float | None, function: str | None) -> None:
    found = derived(*(seen(fact, value, process(1)) for fact, value in known.items()))
    assert found.get(("process.read.wait.share", process(1))) == share
    assert found.get(("process.read.wait.function", process(1))) == function


def test_what_all_ranks_wait_is_the_least_of_them() -> None:
    ranks = [o for pid, share in ((1, 80.0), (2, 60.0))
             for o in (seen("process.in_job", "job:7", process(pid)), seen("stack.collective.share", share, process(pid)))]  # fmt: skip
    assert derived(*ranks)["job.collective.share", JOB] == 60.0
    assert ("job.collective.share", JOB) not in derived(*ranks[:2]), "one rank alone says nothing of the others"
