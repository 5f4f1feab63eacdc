"""From a finding to an action: who speaks, about which events, and what a command is filled with."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.facts import vocabulary
from knowledge.language import Text
from knowledge.observation import Clock, Event, Observation, Scope, Subject
from rules.factbase import FactBase
from rules.loader import load
from rules.model import ActionSpec, Bucket, Rule, Severity, Usable
from rules.resolve import BURST, Advice, Case, advise, fill
from tests.cases import each
from tests.rules.lab import GPU, GPUS, HERE, MINUTE, bang, base, rule, seen

SECOND, HOUR = MINUTE // 60, 60 * MINUTE


def xid(code: int, at: int | None = 0, on: Subject = GPU, **more: Any) -> Observation:
    return bang(at, on, name="xid", code=code, **more)


def case(code: int, world: list[Observation], on: Subject = GPU, action: ActionSpec | None = None) -> Case:
    """A finding about all XIDs of one code on one GPU."""
    usual = ActionSpec(Bucket.MONITOR, ("recovery154", "workflow"))
    a_rule: Rule = replace(rule("r", {"event": "bang"}, xid=code), action=action or usual)
    own = [o for o in world if o.subject == on and o == xid_of(o, code)]
    return Case(a_rule, on, own, base(world))


def xid_of(o: Observation, code: int) -> Observation | None:
    return o if getattr(o.value, "code", None) == code else None


def advice(code: int, world: list[Observation], on: Subject = GPU) -> Advice:
    return advise(case(code, world, on))


def bucket(code: int, world: list[Observation], on: Subject = GPU) -> Bucket:
    return advice(code, world, on).bucket


# --- workflows ----------------------------------------------------------------------------


@each(
    ("apart", "expected"),
    [(0, Bucket.DRAIN_AND_RESET), (BURST, Bucket.DRAIN_AND_RESET), (-BURST, Bucket.DRAIN_AND_RESET),
     (BURST + 1, Bucket.RESET_GPU), (-BURST - 1, Bucket.RESET_GPU)],
)  # fmt: skip
def test_48_with_a_repair_in_its_burst(apart: int, expected: Bucket) -> None:
    for repair in (63, 64):
        assert bucket(48, [xid(48), xid(repair, apart)]) is expected


def test_48_with_a_repair_that_failed_ends_with_the_replacement() -> None:
    assert "replaced (RMA)" in advice(48, [xid(48), xid(64)]).then[0].en
    assert "replaced" not in advice(48, [xid(48), xid(63)]).then[0].en


def test_48_minds_only_its_own_gpu() -> None:
    assert bucket(48, [xid(48), xid(63, 0, GPUS[1])]) is Bucket.RESET_GPU
    assert bucket(48, [xid(48), xid(31)]) is Bucket.RESET_GPU


@pytest.mark.parametrize("repair", [xid(63, -900 * MINUTE, clock=Clock.BOOT), xid(63, None)])
def test_a_repair_of_another_clock_may_lie_in_the_burst(repair: Observation) -> None:
    assert bucket(48, [xid(48), repair]) is Bucket.DRAIN_AND_RESET


def test_45_follows_another_xid_of_the_node_and_alone_asks_for_the_fabric_manager() -> None:
    assert bucket(45, [xid(45)]) is Bucket.RESTART_FM
    assert bucket(45, [xid(45), xid(31, 5 * HOUR)]) is Bucket.IGNORE, "the same GPU"
    assert bucket(45, [xid(45), xid(31, BURST, GPUS[1])]) is Bucket.IGNORE, "its neighbour, in the same burst"
    assert bucket(45, [xid(45), xid(31, BURST + 1, GPUS[1])]) is Bucket.RESTART_FM
    assert bucket(45, [xid(45), xid(31, -5 * HOUR, GPUS[1], clock=Clock.BOOT)]) is Bucket.IGNORE, (
        "may be the same burst"
    )
    there = Subject(Scope.GPU, GPU.id, Subject(Scope.NODE, "n2"))
    assert bucket(45, [xid(45), xid(31, 0, there)]) is Bucket.RESTART_FM, "another node"
    assert bucket(45, [xid(45), xid(45, 0, GPUS[1])]) is Bucket.RESTART_FM, "more of the same are no cause"


def test_45_names_who_ended_the_process() -> None:
    killed = replace(xid(0, SECOND, HERE), fact="oom_kill", value=Event(None, {"pid": 7, "process": "train"}))
    step = replace(killed, fact="slurm_step_ended", value=Event(None, {"step": "88.0"}))
    for torn, ended, wanted, said in [
        (xid(45, SECOND * 9, pid=7), killed, Bucket.IGNORE, "killed train"),
        (xid(45, SECOND * 9), step, Bucket.IGNORE, "step 88.0"),
        (xid(45, SECOND * 90), step, Bucket.RESTART_FM, "Find who ended the process"),
        (xid(45), step, Bucket.RESTART_FM, "Find who ended the process"),
    ]:
        facts = FactBase([torn, ended], vocabulary())
        got = advise(replace(case(45, [torn]), facts=facts))
        assert got.bucket is wanted
        assert said in got.text.en


@each(("apart", "again"), [(BURST, False), (BURST + 1, True), (24 * HOUR, True), (24 * HOUR + 1, False)])
def test_13_again_at_the_same_place_within_a_day(apart: int, again: bool) -> None:
    there: dict[str, Any] = {"gpc": 1, "tpc": 2}
    assert bool(advice(13, [xid(13, -apart, **there), xid(13, 0, **there)]).then) is again
    assert not advice(13, [xid(13, -apart, gpc=1, tpc=3), xid(13, 0, **there)]).then
    assert not advice(13, [xid(13, -apart), xid(13, 0)]).then, "a place that is not told is not the same"
    assert bool(advice(31, [xid(31, -apart), xid(31, 0)]).then) is again, "31 has no place but the GPU"


@each(("programs", "said"), [(1, "same program"), (2, "same place"), (0, "same place")])
def test_31_again_of_one_program_asks_for_the_program_first(programs: int, said: str) -> None:
    world = [xid(31, -HOUR, programs_on_gpu=programs), xid(31, 0, programs_on_gpu=programs)]
    assert said in advice(31, world).then[0].en


def test_31_of_three_programs_on_one_gpu_alone_asks_for_a_swap_however_far_apart() -> None:
    got = advice(31, [xid(31, -48 * HOUR, programs_on_gpu=3), xid(31, 0, programs_on_gpu=3)])
    assert got.text.en.startswith("Three different programs")


def test_137_needs_nothing_here_and_says_where_to_look() -> None:
    got = advice(137, [xid(137)])
    assert (got.bucket, got.usable) == (Bucket.IGNORE, Usable.YES)
    assert "on the GPU that asked" in got.text.en


# --- the driver's own word ----------------------------------------------------------------


def test_the_driver_s_word_goes_first() -> None:
    got = advice(48, [xid(48), xid(154, MINUTE, recovery="node_reboot")])
    assert (got.bucket, got.resolver) == (Bucket.RESTART_BM, "recovery154")
    assert [getattr(o.value, "code", None) for o in got.because] == [154], "and is the evidence"
    assert advice(48, [xid(48)]).resolver == "workflow"


def test_the_driver_s_word_in_another_text_needs_a_time_in_common() -> None:
    """An XID without a stamp is not followed by whatever another log says of the same slot."""

    def other(at: int | None) -> Observation:
        told = xid(154, at, recovery="gpu_reset")
        return replace(told, source=replace(told.source, call="another.log"))

    assert bucket(79, [xid(79, None), other(None)]) is not Bucket.RESET_GPU
    assert bucket(79, [xid(79, None), xid(154, None, recovery="gpu_reset")]) is Bucket.RESET_GPU
    assert bucket(79, [xid(79, 0), other(MINUTE)]) is Bucket.RESET_GPU


def test_the_latest_word_counts() -> None:
    words = [xid(154, MINUTE, recovery="node_reboot"), xid(154, 2 * MINUTE, recovery="gpu_reset")]
    assert bucket(48, [xid(48), *words]) is bucket(48, [xid(48), *words[::-1]]) is Bucket.RESET_GPU


def test_a_word_from_long_before_is_about_something_else() -> None:
    assert advice(48, [xid(48), xid(154, -BURST - 1, recovery="node_reboot")]).resolver == "workflow"
    assert advice(48, [xid(48), xid(154, -BURST, recovery="node_reboot")]).resolver == "recovery154"
    assert advice(48, [xid(48), xid(154, 0, GPUS[1], recovery="node_reboot")]).resolver == "workflow"
    assert advice(48, [xid(48), xid(154, 0)]).resolver == "workflow", "a word that is not told is none"
    assert advice(48, [xid(48), xid(154, 0, recovery="something_new")]).resolver == "workflow", "nor is one of no sense"


# --- fallbacks ----------------------------------------------------------------------------


def test_a_rule_without_an_answer_falls_back_to_its_bucket() -> None:
    spec = ActionSpec(Bucket.RESET_GPU, ("decoded", "catalogue"), text=Text("own", "自己"))
    got = advise(case(99, [xid(99)], action=spec))
    assert (got.bucket, got.resolver, got.text.en) == (Bucket.RESET_GPU, "rule", "own")
    assert advise(case(99, [xid(99)], action=ActionSpec())).bucket is Bucket.MONITOR


def test_a_word_that_is_no_bucket_is_no_answer() -> None:
    spec = ActionSpec(Bucket.MONITOR, ("decoded", "catalogue"))
    assert advise(case(99, [xid(99, bucket="DO_MAGIC", decoded=1)], action=spec)).resolver == "rule"
    assert advise(case(99, [xid(99, bucket="RESET_GPU")], action=spec)).resolver == "catalogue"
    strongest = [xid(99, -1, bucket="IGNORE", decoded=1), xid(99, 0, bucket="RESET_GPU", decoded=1),
                 xid(99, 1, bucket="RESTART_APP", decoded=1)]  # fmt: skip
    assert advise(case(99, strongest, action=spec)).bucket is Bucket.RESET_GPU


def test_the_rule_s_own_words_belong_to_its_own_bucket() -> None:
    spec = ActionSpec(Bucket.MONITOR, ("catalogue",), text=Text("just watch", "观察"), command="watch it")
    got = advise(case(99, [xid(99, bucket="RESET_GPU")], action=spec))
    assert got.bucket is Bucket.RESET_GPU
    assert "watch" not in got.text.en + got.command


# --- commands -----------------------------------------------------------------------------


def test_what_is_known_is_filled_in_and_what_is_not_stays_visible() -> None:
    command = "do {node} {gpu_pci} {gpu_index} {pid} {other}"
    assert fill(command, GPU, base([seen("gpu.index", 3)])) == f"do n1 {GPU.id} 3 {{pid}} {{other}}"
    assert fill(command, GPU, base([]), [xid(1, pid=42)]) == f"do n1 {GPU.id} {GPU.id} 42 {{other}}"
    assert fill(command, HERE, base([])) == "do n1 {gpu_pci} {gpu_index} {pid} {other}"
    assert fill("no placeholders", GPU, base([])) == "no placeholders"


@each(
    ("name", "shown"),
    [("index:3", "3"), ("GPU-aaaa", "GPU-aaaa"), ("unknown:0000:..:00", "{gpu_pci}"), ("0000:3b:00.0", "0000:3b:00.0")],
)
def test_a_gpu_without_an_address_is_named_as_nvidia_smi_takes_it(name: str, shown: str) -> None:
    assert fill("nvidia-smi -i {gpu_pci}", Subject(Scope.GPU, name, HERE), base([])) == f"nvidia-smi -i {shown}"


@given(
    st.text(max_size=20) | st.sampled_from(("{process}", "$(reboot)", "a; reboot", "'; reboot; '", "{node}")), st.text()
)
def test_nothing_that_a_stranger_wrote_leaves_its_quotes(host: str, process: str) -> None:
    """Host and process names come from logs: a placeholder in one of them must not open the quotes of the other."""
    on = Subject(Scope.GPU, GPU.id, Subject(Scope.NODE, host))
    command = fill("drain {node} {process}", on, base([]), [xid(1, 0, on, process=process)])
    assert shlex.split(command) == ["drain", host or "{node}", process or "{process}"]


@each(
    ("command", "pasteable"),
    [
        ("nvidia-smi -r -i 3", True),
        ("nvidia-smi -r -i {pid}", False),
        ("kubectl get node -o jsonpath={.items}", True),
        ("docker ps --format '{{id}}'", True),
        ("echo ${home}", True),
        ("", False),
    ],
)
def test_a_command_with_a_gap_cannot_be_pasted(command: str, pasteable: bool) -> None:
    spec = ActionSpec(Bucket.MONITOR, command=command)
    assert advise(case(99, [xid(99)], action=spec)).pasteable is pasteable


def test_the_fields_of_a_case_are_not_changed_by_advice() -> None:
    a_case = case(48, [xid(48), xid(63)])
    assert advise(a_case) == advise(a_case)
    assert HERE.id == "n1"


def test_an_error_of_the_machine_is_never_a_yes() -> None:
    """`usable` is about the machine: what a program did to itself, or its own settings, says nothing against it; all else does."""
    machine = {
        Scope.NODE,
        Scope.GPU,
        Scope.NIC,
        Scope.PORT,
        Scope.LINK,
        Scope.PCI,
        Scope.NVSWITCH,
        Scope.SWITCH,
        Scope.MIG,
    }
    program = {Bucket.FIX_CODE, Bucket.TUNE_JOB, Bucket.RESTART_APP, Bucket.IGNORE, Bucket.CHECK_UVM}
    for r in load().rules:
        if r.severity.rank < Severity.ERROR.rank:
            continue
        for bucket in Bucket if r.action.resolve else [r.action.bucket]:  # whatever a resolver may say
            told = replace(r, action=replace(r.action, bucket=bucket, resolve=()))
            usable = advise(Case(told, Subject(r.scope, "x", HERE), (), base([]))).usable
            mild = program | ({Bucket.CHANGE_SETTING} if r.scope not in machine else set())
            allowed = r.severity is Severity.ERROR and bucket in mild
            assert allowed or usable is not Usable.YES, (r.id, bucket)


# --- DCGM's tests -------------------------------------------------------------------------

# The suites of NVIDIA's own runner (FillTestVectors in NvidiaValidationSuite.cpp); each holds the tests of the one before.
SUITES = {
    "1": ("Denylist", "NVML Library", "CUDA Main Library", "Permissions and OS Blocks", "Persistence Mode", "Environment Variables",
          "Page Retirement/Row Remap", "Graphics Processes", "Inforom", "software", "Fabric Manager"),
    "2": ("PCIe", "pcie", "GPU Memory", "memory"),
    "3": ("Diagnostic", "NVBandwidth", "EUD Test", "eud", "cpu_eud", "Memory Bandwidth", "memory_bandwidth", "SM Stress",
          "Targeted Stress", "targeted_stress", "Targeted Power"),
    "4": ("Memtest", "memtest", "Pulse Test", "pulse_test"),
    "nccl_tests": ("NCCL Tests",),
    "context_create": ("Context Create",),
}  # fmt: skip


@pytest.mark.parametrize("word", ["fail", "warn"])
def test_a_dcgm_test_is_run_again_by_a_suite_that_holds_it_on_its_gpu(word: str) -> None:
    a_rule = next(r for r in load().rules if r.id == f"dcgm-diag-{word}ed")
    gpu = Subject(Scope.GPU, "index:5", HERE)
    for suite, tests in SUITES.items():
        for test in tests:
            told = bang(0, gpu, name="dcgm_diag", test=test, status=word)
            assert (
                advise(Case(a_rule, gpu, [told], FactBase([told], vocabulary()))).command
                == f"dcgmi diag -r {suite} -i 5"
            ), test
