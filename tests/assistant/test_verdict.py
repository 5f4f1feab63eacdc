"""The first line of every answer: state, usability and exit code follow from the findings, never from silence."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.diagnosis import Diagnosis, State, diagnose, judged
from assistant.exits import Exit
from assistant.sources import parse_text
from knowledge.facts import vocabulary
from knowledge.observation import Event, Observation, Origin, Scope, Source, Status, Subject, gpu, node
from rules.condition import leaves
from rules.engine import run
from rules.factbase import FactBase
from rules.loader import load
from rules.model import Bucket, Rule, Severity, Usable
from rules.testing import facts_of_case
from tests.cases import each

CARD = gpu("0000:3b:00.0", "n1")


def see(fact: str, value: object, subject: Subject = CARD, **more: object) -> Observation:
    return Observation(fact, subject, value, **{"source": Source("test", "f", 1), **more})  # type: ignore[arg-type]


def judge(*observations: Observation) -> Diagnosis:
    return diagnose(observations, load())


def test_nothing_read_is_unknown_and_not_fine() -> None:
    d = judge()
    assert (d.verdict.state, d.verdict.usable, d.exit) == (State.UNKNOWN, Usable.UNKNOWN, Exit.UNDECIDED)


def test_what_a_person_says_alone_settles_nothing() -> None:
    d = judge(see("node.gpu.expected", 8, node("n1"), origin=Origin.TOLD))
    assert (d.verdict.state, d.exit) == (State.UNKNOWN, Exit.UNDECIDED)


@each("status", [Status.UNSUPPORTED, Status.DENIED, Status.TIMEOUT, Status.FAILED, Status.NOT_ASKED])
def test_only_missing_values_are_not_fine(status: Status) -> None:
    d = judge(see("gpu.row_remap.failure", None, status=status))
    assert (d.verdict.state, d.exit) == (State.UNKNOWN, Exit.UNDECIDED)
    assert not d.findings


def test_a_machine_without_gpus_is_no_yes_whatever_else_is_found() -> None:
    here = node("n1")
    bare = [see("node.pci.gpu_count", 0, here), see("node.gpu.count", 0, here), see("log.kernel.readable", True, here)]
    load_ = {"node.cpu.busy": 99, "node.load.per_cpu": 20.0, "node.pressure.cpu.some.avg60": 90.0}
    d = judge(*bare, *(see(fact, value, here) for fact, value in load_.items()))
    assert [f.rule.id for f in d.findings] == ["cpu-starved"]
    assert (d.verdict.state, d.verdict.usable) == (State.DEGRADED, Usable.UNKNOWN)
    assert d.verdict.text.en.startswith("No GPU is on the bus. Node n1: The CPUs are overloaded")


def test_a_healthy_value_is_ok() -> None:
    healthy = see("gpu.row_remap.failure", False)
    d = judge(healthy)
    assert (d.verdict.state, d.verdict.usable, d.exit) == (State.OK, Usable.UNKNOWN, Exit.OK)
    assert d.verdict.text.en.endswith(
        "Not enough to call it usable: the GPU inventory and the kernel log were not read."
    )
    base = (see("node.gpu.count", 8, node("n1")), see("log.kernel.readable", True, node("n1")))
    d = judge(healthy, *base)
    assert d.verdict.usable is Usable.UNKNOWN, "the log may begin after the fault"
    assert "does not go back to the boot" in d.verdict.text.en
    d = judge(healthy, *base, see("log.kernel.truncated_head", False, node("n1")))
    assert (d.verdict.state, d.verdict.usable, d.exit) == (State.OK, Usable.YES, Exit.OK)


@each("severity", ["info", "warning", "error", "critical"])
def test_an_alert_that_fires_is_never_fine_and_told_once(severity: str) -> None:
    fields = {"name": "GpuOdd", "state": "firing", "severity": severity}
    d = judge(see("alert", Event(None, fields), node("n1"), origin=Origin.TOLD))
    assert d.verdict.state is not State.OK
    assert d.verdict.text.en.count("The alert GpuOdd fires") == 1


def test_a_lost_gpu_makes_the_node_unusable_until_a_reboot() -> None:
    d = judge(see("xid", Event(79, {"text": "GPU has fallen off the bus."})))
    assert (d.verdict.state, d.verdict.usable, d.exit) == (State.UNHEALTHY, Usable.NOT_YET, Exit.FINDING)
    assert "rebooted" in d.verdict.until.en
    assert d.verdict.until.zh


def test_an_application_fault_leaves_the_node_usable() -> None:
    fault = see("xid", Event(31, {"text": "Ch 00000009, engmask 00000101, intr 10000000"}))
    d = judge(
        fault, see("node.gpu.count", 1), see("log.kernel.readable", True), see("log.kernel.truncated_head", False)
    )
    assert (d.verdict.state, d.verdict.usable, d.exit) == (State.DEGRADED, Usable.YES, Exit.FINDING)
    alone = judge(fault)  # of the node itself nothing was read
    assert (alone.verdict.state, alone.verdict.usable, alone.exit) == (State.DEGRADED, Usable.UNKNOWN, Exit.FINDING)
    assert "not read" in alone.verdict.text.en


def xid(code: int, **fields: object) -> Observation:
    return see("xid", Event(code, {"text": "", **fields}), at=10**18)  # type: ignore[dict-item]


@pytest.mark.parametrize("codes", [(43,), (43, 43), (43, 45)])
def test_a_reset_channel_asks_for_nothing(codes: tuple[int, ...]) -> None:
    """NVIDIA: ignore, the GPU is healthy. An XID 45 in its wake asks for no more."""
    d = judge(*(xid(code) for code in codes))
    assert d.roots[0].xid == 43
    assert d.roots[0].advice.bucket is Bucket.IGNORE
    assert (d.verdict.state, d.verdict.usable, d.exit) == (State.OK, Usable.UNKNOWN, Exit.OK)


def test_a_torn_down_channel_alone_is_not_nothing() -> None:
    assert judge(xid(45)).exit is Exit.FINDING


@pytest.mark.parametrize("code", [43, 63])
def test_what_the_driver_wants_reset_is_no_information_only(code: int) -> None:
    """Codes that ask for nothing themselves carry the driver's own word when it prints one."""
    d = judge(xid(code), xid(154, recovery="gpu_reset"))
    assert d.verdict.state is not State.OK
    assert (d.verdict.usable, d.exit) == (Usable.NOT_YET, Exit.FINDING)
    assert d.roots[0].advice.bucket is Bucket.RESET_GPU


def test_what_a_harmless_root_explains_is_harmless() -> None:
    job = Subject(Scope.DOCUMENT, "train.log")
    rank = Subject(Scope.RANK, "0", job)
    d = judge(
        see("job_terminated", Event(None, {"reason": "preempted"}), Subject(Scope.JOB, "j", job)),
        see("rank_failed", Event(None, {"exitcode": 1, "echo": False}), rank),
    )
    assert {f.rule.id: str(f.role) for f in d.findings} == {"job-preempted": "root", "rank-failed": "symptom"}
    assert (d.verdict.state, d.exit) == (State.OK, Exit.OK)


def test_the_worst_of_several_decides() -> None:
    d = judge(
        see("xid", Event(31, {"text": "Ch 00000009, engmask 00000101, intr 10000000"})),
        see("gpu.row_remap.failure", True, gpu("0000:5e:00.0", "n1")),
    )
    assert d.verdict.usable is Usable.NO
    assert d.roots[0].advice.bucket is Bucket.CONTACT_SUPPORT


def test_information_never_raises_the_exit_code() -> None:
    d = judge(see("gpu.persistence_mode", False))
    assert d.findings
    assert (d.verdict.state, d.exit) == (State.OK, Exit.OK)


_POOL = (
    see("xid", Event(79, {"text": "GPU has fallen off the bus."})),
    see("xid", Event(119, {"text": "Timeout waiting for RPC from GSP!"})),
    see("gpu.row_remap.pending", True),
    see("gpu.nvml.reachable", False),
    see("gpu.uuid", "GPU-11111111-2222-3333-4444-555555555555"),
    see("gpu.temperature.core", 70, gpu("GPU-11111111-2222-3333-4444-555555555555", "n1")),
    see("port.state", "down", Subject(Scope.PORT, "mlx5_0/1", node("n1"))),
    see("xid", None, node("n1"), status=Status.NONE_SEEN),
)


@given(st.permutations(_POOL))
def test_order_of_observations_changes_nothing(order: list[Observation]) -> None:
    a, b = judge(*_POOL), judge(*order)
    assert (a.verdict, a.events, a.coverage) == (b.verdict, b.events, b.coverage)
    assert [(f.id, f.role, f.grade, f.because) for f in a.findings] == [
        (f.id, f.role, f.grade, f.because) for f in b.findings
    ]


# What a rule reads that holds the clocks of a GPU down, now, over a while, in a captured window or under an active test.
HOLDS = re.compile(
    r"gpu\.(clock\.event\.(hw_\w+|sw_thermal|app_clocks)|work\.held\.(heat|brake)|window\.(thermal|power_brake|hw_slowdown)\.share"
    r"|active\.slowed\.\w+\.share|throttle\.reasons)"
)
SLOWED = [
    r for r in load().rules
    if r.scope is Scope.GPU and r.severity is not Severity.INFO and r.action.bucket is not Bucket.MONITOR
    and any(HOLDS.fullmatch(str(getattr(leaf, "fact", ""))) and not getattr(leaf, "negated", False) for leaf in leaves(r.when))
]  # fmt: skip


@each("rule", SLOWED)
def test_what_loses_the_same_share_of_the_clock_says_the_same_whatever_takes_it(rule: Rule) -> None:
    """At 345 of 1980 MHz a GPU is as slow for heat as for the brake, seen in one look, by a counter or in a window."""
    case = next(t for t in rule.tests if t.expect == "matched" and "facts" in t.given)
    told = [k.inner for k in facts_of_case(case, parse_text).observations]
    lost = [replace(told[0], fact=fact, value=83.0) for fact in ("gpu.work.clock.lost", "gpu.window.clock.lost.share")]
    (f,) = run(
        [rule], FactBase([*(o for o in told if o.fact not in {x.fact for x in lost}), *lost], vocabulary())
    ).findings
    assert (f.severity, f.advice.usable, judged([f], f.advice.usable)) == (
        Severity.ERROR,
        Usable.IMPAIRED,
        State.DEGRADED,
    )


def test_what_is_lost_now_leads_over_what_is_near_a_limit() -> None:
    throttled = [see("gpu.clock.event.sw_thermal", True), see("gpu.work.clock.lost", 54.5)]
    d = judge(see("gpu.temperature.memory", 95), *throttled)
    assert [f.rule.id for f in d.findings[:2]] == ["sw-thermal-slowdown", "memory-hot-limit-not-told"]
    assert "throttled, 54.5 % of the clock lost" in d.verdict.text.en.partition(" Also: ")[0]


def test_those_are_all_kinds_of_slowdown() -> None:
    kinds = {
        m[1].split(".")[0]
        for r in SLOWED
        for leaf in leaves(r.when)
        if (m := HOLDS.fullmatch(str(getattr(leaf, "fact", ""))))
    }
    assert kinds == {"clock", "work", "window", "active", "throttle"}


def test_an_input_that_no_parser_reads_is_said_not_to_have_been_read() -> None:
    strange = see("input.layout_known", False, node(""), source=Source("", "page.txt"))
    d = diagnose([strange], load(), cut=["page.txt"])
    assert d.verdict.text.en.startswith("Cannot say: page.txt was not read: no known layout. Give ")
    d = diagnose([strange, see("gpu.row_remap.failure", False)], load(), cut=["page.txt", "f"])
    assert (
        "nothing wrong was found in what could be read, but f could not be read in full, and page.txt"
        in d.verdict.text.en
    )


@each(("named", "seen"), [(0, "1 GPU seen"), (1, "1 GPU seen"), (2, "2 GPUs seen")])
def test_a_piece_that_names_no_gpu_is_none_more(named: int, seen: str) -> None:
    ids = ["unknown:row 0", *(f"0000:{n + 1}b:00.0" for n in range(named))]
    facts = [see("gpu.fabric.state", "completed", gpu(i, "n1")) for i in ids]
    assert seen in judge(*facts).verdict.text.en
