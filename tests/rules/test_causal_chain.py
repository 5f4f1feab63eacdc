"""Hardware, system and program in one answer: the shipped rules over captured facts on several subjects.

Each story plants a cause and everything that follows from it. The cause alone must be left as a root.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.derive import derive
from knowledge.facts import vocabulary
from knowledge.observation import Observation, Scope, Source, Status, Subject, gpu, node
from rules.engine import Evaluation, Finding, Role, run
from rules.factbase import FactBase
from rules.loader import load
from rules.model import Severity
from tests.cases import each

HOST = "n1"
HERE = node(HOST)
JOB = Subject(Scope.JOB, "4711", HERE)
RANKS = range(4)


def process(rank: int) -> Subject:
    return Subject(Scope.PROCESS, str(4240 + rank), HERE)


def card(rank: int) -> Subject:
    return gpu(f"0000:0{rank + 1}:00.0", HOST)


def rank_of(number: int) -> Subject:
    return Subject(Scope.RANK, str(number), JOB)


def seen(fact: str, value: Any, on: Subject, status: Status = Status.OK) -> Observation:
    if isinstance(value, Status):
        value, status = None, value
    return Observation(fact, on, value, status, Source("capture", "capture.json"))


def told(subject: Subject, facts: Mapping[str, Any]) -> list[Observation]:
    return [seen(fact, value, subject) for fact, value in facts.items()]


QUIET_PROCESS: dict[str, Any] = {
    "capture.window.seconds": 2.0, "capture.samples": 100, "capture.left_clean": True, "process.hung": False,
    "stack.data_wait.share": 1.0, "stack.data_work.share": 0.0, "stack.collective.share": 4.0, "stack.sync.share": 6.0,
    "stack.python.share": 5.0, "stack.operator.share": 45.0, "stack.backward.share": 35.0, "stack.optimizer.share": 4.0,
    "stack.checkpoint.share": 0.0, "stack.compile.share": 0.0, "stack.import.share": 0.0, "stack.logging.share": 0.5,
    "stack.sleep.share": 0.0, "stack.io.share": 0.0, "stack.gc.share": 0.2, "stack.gil_wait.share": 0.1,
    "stack.workers": 4, "stack.workers.busy.share": 30.0, "stack.workers.cpu.share": 28.0, "stack.workers.read.share": 1.0,
    "thread.cpu.share": 93.0, "thread.runqueue.share": 0.3, "thread.blocked_io.share": 0.0, "thread.gil_wait.share": 0.0,
    "process.window.runnable": 1.2, "process.window.faults.major": 0.0, "process.window.read.miss.share": 2.0,
    "process.window.swap": 0, "process.window.migrations": 2.0, "process.window.remote_memory.share": 1.0,
    "process.cgroup.throttled.share": 0.0, "process.cpus_allowed.count": 16, "step.worst.ratio": 1.2, "step.count": 20,
    "step.batches": 1.0, "step.loss.nan": False, "step.gradnorm.last": 0.8, "process.state": "running",
}  # fmt: skip
QUIET_GPU: dict[str, Any] = {
    "gpu.window.utilization": 97.0, "gpu.window.power.share": 82.0, "gpu.window.clock.share": 88.0, "gpu.window.sm_activity": 85.0,
    "gpu.window.thermal.share": 0.0, "gpu.window.power_cap.share": 60.0, "gpu.window.hw_slowdown.share": 0.0,
    "gpu.window.power_brake.share": 0.0, "gpu.window.others.share": 0.0, "gpu.window.others.memory": 0,
}  # fmt: skip
QUIET_JOB: dict[str, Any] = {
    "job.ranks.captured": 4,
    "job.slow_rank.wait.share": 1.0,
    "job.hung": False,
    "job.hung.absent": (),
}
QUIET_NODE: dict[str, Any] = {"node.window.run_queue": 6.0, "node.cpu.online": 64, "node.window.swap.in": 0.0}
WAITS = {"stack.collective.share": 44.0, "stack.collective.function": "all_reduce (train.py:42)"}
SPINS = {"gpu.window.utilization": 99.0, "gpu.window.power.share": 24.0, "gpu.window.sm_activity": 12.0}
STARVED = {"gpu.window.utilization": 48.0, "gpu.window.power.share": 40.0}
SLOW_LOADER = {"stack.data_wait.share": 48.0, "stack.data_wait.function": "main (train.py:31)", "stack.workers.busy.share": 96.0,
               "stack.workers.function": "decode (data.py:12)"}  # fmt: skip


def world(
    processes: Mapping[int, Mapping[str, Any]] | None = None, gpus: Mapping[int, Mapping[str, Any]] | None = None,
    job: Mapping[str, Any] | None = None, on_node: Mapping[str, Any] | None = None, tied: bool = True,
) -> list[Observation]:  # fmt: skip
    """Four ranks on one node, each healthy but for what is said of it."""
    out = told(HERE, QUIET_NODE | dict(on_node or {})) + told(JOB, QUIET_JOB | dict(job or {}))
    for number in RANKS:
        own, here = process(number), card(number)
        out += told(own, QUIET_PROCESS | dict((processes or {}).get(number, {})))
        out += told(here, QUIET_GPU | dict((gpus or {}).get(number, {})))
        out.append(seen("process.in_job", f"job:{JOB.id}", own))
        out.append(seen("process.is_rank", f"rank:{number}", own))
        out.append(seen("rank.is_process", f"process:{own.id}", rank_of(number)))
        if tied:
            out.append(seen("process.uses_gpu", f"gpu:{here.id}", own))
    return out


def concluded(observations: Sequence[Observation]) -> Evaluation:
    return run(load().rules, FactBase(derive(observations), vocabulary()))


def names(findings: Sequence[Finding]) -> set[tuple[str, str]]:
    return {(f.rule.id, f.subject.id) for f in findings}


def roots(result: Evaluation) -> list[Finding]:
    """Root findings that ask for something."""
    return [f for f in result.findings if f.role is Role.ROOT and f.severity is not Severity.INFO]


def below(result: Evaluation, cause: Finding) -> set[str]:
    """Rules of everything that follows from a finding, near and far."""
    by_id = {f.id: f for f in result.findings}
    out: set[str] = set()
    stack = list(cause.explains)
    while stack:
        effect = by_id[stack.pop()]
        out.add(effect.rule.id)
        stack.extend(effect.explains)
    return out


SLOW_RANK = {"job.slow_rank": "3", "job.slow_rank.is_process": f"process:{process(3).id}", "job.slow_rank.wait.share": 38.0,
             "job.slow_rank.function": "forward (model.py:88)", "job.waiting.function": "all_reduce (train.py:42)"}  # fmt: skip
HOT = {"gpu.window.thermal.share": 90.0, "gpu.window.clock.share": 55.0, "gpu.window.temperature.max": 92.0}


def test_a_healthy_job_is_quiet() -> None:
    result = concluded(world())
    assert not roots(result)
    assert not [f for f in result.findings if f.severity is not Severity.INFO]


def test_heat_makes_a_rank_late_and_the_others_wait() -> None:
    result = concluded(world(dict.fromkeys((0, 1, 2), WAITS), {3: HOT, **dict.fromkeys((0, 1, 2), SPINS)}, SLOW_RANK))
    (root,) = roots(result)
    assert (root.rule.id, root.subject) == ("gpu-hot-in-window", card(3))
    assert root.impact is not None
    assert (round(root.impact.share, 3), root.impact.seconds) == (0.45, 0.9)
    assert {"rank-late", "job-waits-for-slow-rank", "rank-waits-in-collective", "gpu-busy-doing-nothing"} <= below(
        result, root
    )
    late = next(f for f in result.findings if f.rule.id == "rank-late")
    assert (late.subject, late.title.en.partition(": the other ranks wait for this one: ")[2]) == (
        process(3),
        "in forward (model.py:88)",
    )
    spinning = next(f for f in result.findings if f.rule.id == "gpu-busy-doing-nothing")
    assert "all_reduce (train.py:42)" in spinning.title.en
    assert "all_reduce (train.py:42)" in spinning.title.zh


def test_the_reading_of_the_moment_and_that_of_the_window_are_one_root() -> None:
    now = told(
        card(3),
        {
            "gpu.clock.event.hw_thermal": True,
            "gpu.clock.event.hw_slowdown": True,
            "gpu.clock.event.hw_power_brake": False,
        },
    )
    result = concluded(
        [*world(dict.fromkeys((0, 1, 2), WAITS), {3: HOT | {"gpu.window.hw_slowdown.share": 88.0}}, SLOW_RANK), *now]
    )
    (root,) = roots(result)
    assert (root.rule.id, root.subject) == ("hw-thermal-slowdown", card(3))
    assert {"gpu-hot-in-window", "gpu-slowed-by-hardware-in-window", "job-on-slowed-gpu", "rank-late"} <= below(
        result, root
    )


@each(
    ("fault", "cause"),
    [
        ({"gpu.window.power_brake.share": 100.0, "gpu.window.hw_slowdown.share": 100.0, "gpu.window.clock.share": 30.0}, "gpu-power-braked-in-window"),
        ({"gpu.window.hw_slowdown.share": 100.0, "gpu.window.clock.share": 30.0}, "gpu-slowed-by-hardware-in-window"),
        ({"gpu.window.power_cap.share": 100.0, "gpu.window.clock.share": 45.0}, "gpu-power-capped-in-window"),
        ({"gpu.window.power_cap.share": 0.0, "gpu.window.clock.share": 45.0}, "gpu-clock-low-without-reason"),
        ({"gpu.window.others.share": 40.0}, "gpu-shared-in-window"),
        ({"gpu.pcie.width": 8, "gpu.pcie.width.max": 16, "gpu.pcie.gen": 4, "gpu.pcie.gen.max": 4, "gpu.window.pcie.rx": 9e9,
          "gpu.window.pcie.tx": 0.0}, "pcie-link-degraded-while-copying"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)  # fmt: skip
def test_what_is_wrong_with_one_gpu_stands_above_what_the_ranks_do(fault: dict[str, Any], cause: str) -> None:
    result = concluded(world(dict.fromkeys((0, 1, 2), WAITS), {3: fault}, SLOW_RANK))
    assert [(f.rule.id, f.subject) for f in roots(result)] == [(cause, card(3))]


def test_the_gpu_of_another_rank_explains_nothing() -> None:
    """The slow rank is 3; that GPU 1 is hot is another matter."""
    result = concluded(world(dict.fromkeys((0, 1, 2), WAITS), {1: HOT}, SLOW_RANK))
    assert names(roots(result)) == {("gpu-hot-in-window", card(1).id), ("rank-late", process(3).id)}


def test_a_quota_starves_the_loader_and_the_gpu() -> None:
    fault = SLOW_LOADER | {
        "stack.workers.cpu.share": 30.0,
        "process.cgroup.throttled.share": 52.0,
        "process.cgroup.cpu.limit": 2.0,
    }
    result = concluded(world({0: fault}, {0: STARVED}))
    (root,) = roots(result)
    assert (root.rule.id, root.subject) == ("cpu-quota-throttles-process", process(0))
    assert {"loader-workers-lack-cpu", "loop-waits-for-data", "gpu-starved-by-host"} <= below(result, root)
    assert "2 cores" in root.title.en


def test_reads_that_miss_the_page_cache_make_the_loader_wait() -> None:
    fault = SLOW_LOADER | {
        "stack.workers.cpu.share": 8.0,
        "stack.workers.read.share": 80.0,
        "process.window.read.miss.share": 97.0,
    }
    result = concluded(world({0: fault}, {0: STARVED}))
    (root,) = roots(result)
    assert root.rule.id == "reads-miss-page-cache"
    assert {"loader-workers-wait-for-storage", "loop-waits-for-data", "gpu-starved-by-host"} <= below(result, root)


def test_busy_workers_are_named_with_their_function() -> None:
    result = concluded(world({0: SLOW_LOADER | {"stack.workers.cpu.share": 90.0}}, {0: STARVED}))
    (root,) = roots(result)
    assert root.title.en == "Data-bound: the data loader's workers cannot keep up: in decode (data.py:12)"
    assert {"loop-waits-for-data", "gpu-starved-by-host"} <= below(result, root)
    assert root.impact is not None
    assert root.impact.seconds == pytest.approx(0.96)


def test_another_thread_holds_the_interpreter() -> None:
    fault = {
        "stack.gil_wait.share": 46.0,
        "thread.gil_wait.share": 44.0,
        "stack.gil.holder": "metrics_loop (metrics.py:9)",
        "stack.python.share": 22.0,
    }
    result = concluded(world({0: fault}, {0: STARVED}))
    (root,) = roots(result)
    assert root.rule.id == "interpreter-lock-contended"
    assert "metrics_loop (metrics.py:9)" in root.title.en
    assert {"python-bound-loop", "gpu-starved-by-host"} <= below(result, root)


def test_a_data_bound_rank_makes_the_others_wait() -> None:
    fault = SLOW_LOADER | {"stack.workers.cpu.share": 90.0}
    result = concluded(world({3: fault, **dict.fromkeys((0, 1, 2), WAITS)}, {3: STARVED}, SLOW_RANK))
    (root,) = roots(result)
    assert (root.rule.id, root.subject) == ("loader-workers-busy", process(3))
    assert {"rank-late", "rank-waits-in-collective", "job-waits-for-slow-rank"} <= below(result, root)


def test_two_faults_at_once_are_both_roots_and_ranked_by_what_they_explain() -> None:
    slow_code = {"stack.python.share": 61.0, "stack.python.function": "tokenise (text.py:7)"}
    result = concluded(world({0: slow_code, **dict.fromkeys((1, 2), WAITS)}, {0: STARVED, 3: HOT}, SLOW_RANK))
    found = [(f.rule.id, f.subject) for f in roots(result)]
    assert found == [("python-bound-loop", process(0)), ("gpu-hot-in-window", card(3))]


def test_two_faults_of_one_process() -> None:
    fault = {"stack.data_wait.share": 30.0, "stack.logging.share": 24.0, "stack.logging.function": "log (train.py:50)", "stack.workers.busy.share": 95.0,
             "stack.workers.cpu.share": 92.0}  # fmt: skip
    result = concluded(world({0: fault}, {0: {"gpu.window.utilization": 55.0, "gpu.window.power.share": 50.0}}))
    assert [f.rule.id for f in roots(result)] == ["loader-workers-busy", "logging-in-loop"]


def test_a_cause_that_is_too_small_only_may_explain() -> None:
    little = HOT | {"gpu.window.clock.share": 90.0}
    result = concluded(world(dict.fromkeys((0, 1, 2), WAITS), {3: little}, SLOW_RANK))
    assert [f.rule.id for f in roots(result)] == ["rank-late", "gpu-hot-in-window"]
    hot = roots(result)[1]
    assert any(name.startswith("rank-late") for name in hot.may_explain)


def test_without_the_relation_the_chain_stays_open() -> None:
    result = concluded(world(dict.fromkeys((0, 1, 2), WAITS), {3: HOT}, SLOW_RANK, tied=False))
    hot = next(f for f in result.findings if f.rule.id == "gpu-hot-in-window")
    assert names(roots(result)) == {("gpu-hot-in-window", card(3).id), ("rank-late", process(3).id)}
    assert any(name.startswith("rank-late") for name in hot.may_explain)


def test_what_the_trace_says_is_not_said_twice() -> None:
    trace = told(
        rank_of(0), {"trace.idle.data_loader.share": 41.0, "trace.idle.host.share": 3.0, "trace.idle.python.share": 1.0}
    )
    result = concluded([*world({0: SLOW_LOADER | {"stack.workers.cpu.share": 90.0}}, {0: STARVED}), *trace])
    (root,) = roots(result)
    assert root.rule.id == "loader-workers-busy"
    assert "trace-data-bound" in below(result, root)


def test_all_ranks_alike_in_communication() -> None:
    result = concluded(world(dict.fromkeys(RANKS, WAITS), job={"job.waiting.function": "all_reduce (train.py:42)"}))
    (root,) = roots(result)
    assert root.rule.id == "ranks-equally-in-communication"
    assert "rank-waits-in-collective" in below(result, root)


# --- jobs that stand still ----------------------------------------------------------------

STANDS = {"process.hung": True, "process.hung.kind": "collective", "process.hung.function": "all_reduce (train.py:42)"}
HUNG = {"job.hung": True, "job.hung.collective": "all_reduce", "job.hung.ranks_waiting": 3}
GUILTY = HUNG | {
    "job.hung.rank": "3",
    "job.hung.is_process": f"process:{process(3).id}",
    "job.hung.function": "stuck_in_data_loader (data.py:77)",
}


def test_a_hang_names_the_guilty_rank() -> None:
    stuck = {
        "process.hung": True,
        "process.hung.kind": "lock",
        "process.hung.function": "stuck_in_data_loader (data.py:77)",
    }
    result = concluded(world({3: stuck, **dict.fromkeys((0, 1, 2), STANDS)}, job=GUILTY))
    (root,) = roots(result)
    assert (root.rule.id, root.subject) == ("process-hung-in-lock", process(3))
    guilty = next(f for f in result.findings if f.rule.id == "rank-holds-up-job")
    assert guilty.title.en.endswith(": in stuck_in_data_loader (data.py:77)")
    assert {"rank-holds-up-job", "job-hung", "process-hung"} <= below(result, root)


def test_a_stopped_rank_is_the_root_of_a_hang() -> None:
    stuck = {
        "process.state": "stopped",
        "process.hung": True,
        "process.hung.kind": "python",
        "process.hung.function": "forward (model.py:88)",
    }
    result = concluded(world({3: stuck, **dict.fromkeys((0, 1, 2), STANDS)}, job=GUILTY))
    (root,) = roots(result)
    assert (root.rule.id, root.subject, root.severity) == ("process-stopped", process(3), Severity.ERROR)


def test_all_ranks_in_one_collective_is_the_network() -> None:
    result = concluded(world(dict.fromkeys(RANKS, STANDS), job=HUNG | {"job.hung.ranks_waiting": 4}))
    assert [f.rule.id for f in roots(result)] == ["job-hung-in-collective"]


def test_ranks_in_different_collectives() -> None:
    other = STANDS | {"process.hung.function": "barrier (train.py:61)"}
    result = concluded(
        world(
            {3: other, **dict.fromkeys((0, 1, 2), STANDS)},
            job=HUNG | {"job.hung.ranks_waiting": 4, "job.hung.desync": True},
        )
    )
    assert [f.rule.id for f in roots(result)] == ["job-hung-desynchronised"]


def test_a_rank_that_is_gone() -> None:
    gone = HUNG | {"job.hung.absent": ("3",), "job.ranks.captured": 3, "job.ranks.missing_here": 1, "nccl.flight.missing_ranks": ("3",),
                   "nccl.flight.collective": "all_reduce"}  # fmt: skip
    result = concluded(world(dict.fromkeys(RANKS, STANDS), job=gone))
    (root,) = roots(result)
    assert root.rule.id == "job-rank-absent"
    assert root.title.en.endswith("rank 3")
    assert {"job-hung", "rank-missing-on-node", "flight-recorder-ranks-missing"} <= below(result, root)


# --- laws ---------------------------------------------------------------------------------


@pytest.mark.slow
@given(st.randoms(use_true_random=False))
def test_the_answer_does_not_depend_on_the_order(random: Any) -> None:
    whole = world(
        {3: SLOW_LOADER | {"stack.workers.cpu.share": 90.0}, **dict.fromkeys((0, 1, 2), WAITS)},
        {3: STARVED | HOT},
        SLOW_RANK,
    )
    expected = [(f.id, f.role, f.explains, f.title) for f in concluded(whole).findings]
    random.shuffle(whole)
    assert [(f.id, f.role, f.explains, f.title) for f in concluded(whole).findings] == expected


CAPTURED = sorted({*QUIET_PROCESS, *WAITS, *SLOW_LOADER} - {"process.state"})


@given(
    st.lists(st.sampled_from(CAPTURED), min_size=1, max_size=8), st.sampled_from([s for s in Status if not s.answered])
)
def test_what_could_not_be_read_is_never_a_fault(lost: list[str], status: Status) -> None:
    result = concluded(world({0: dict.fromkeys(lost, status)}))
    assert not roots(result)


def test_what_ends_a_rank_explains_whichever_watchdog_notices() -> None:
    """A job's watchdog (NCCL) and a server's (SGLang) both see only that a rank does not come."""
    told = {
        rule.id: {e.rule: (e.on, e.within, e.late, e.effect) for e in rule.explains}
        for rule in load().rules
        if rule.area in ("cuda", "xid")
    }
    ends = {
        rule: (e["nccl-watchdog-timeout"], e.get("serving-watchdog-timeout"))
        for rule, e in told.items()
        if "nccl-watchdog-timeout" in e
    }
    assert len(ends) > 10
    assert not [rule for rule, (job, server) in ends.items() if job != server]
