"""Probes held against the policy: what it does not grant is denied, and says so as an observation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.render.labels import reason_name
from assistant.rights.model import Decision, Lack
from assistant.rights.pages import act_of
from assistant.rights.parse import parse
from assistant.rights.policy import Act, Person, Policy
from assistant.slack import gate
from assistant.slack.bot import Asker
from assistant.slack.heard import Place
from knowledge.errors import UnknownNameError
from knowledge.observation import Status
from probes.active import tests as active_tests
from probes.live import Cost, probes
from tests.assistant.rights.rights_lab import hosts

FILE = """
channels = ["C1", "direct"]
[roles.support]
users = ["U1"]
[roles.vendor]
users = ["UV", "UG"]
external = true
[roles.oncall]
users = ["U2"]
[roles.lead]
users = ["U3"]
[roles.idle]
users = ["U4"]
[grants.checks]
roles = ["support"]
run = ["check", "profile"]
nodes = ["gpu-*"]
cost = "cheap"
[grants.vendor]
roles = ["vendor"]
run = ["nvml"]
nodes = ["gpu-12"]
cost = "cheap"
[grants.all]
roles = ["oncall"]
run = ["*"]
nodes = ["*"]
cost = "heavy"
[grants.tests]
roles = ["oncall"]
run = ["test:*", "job-trace"]
nodes = ["@training"]
cost = "heavy"
risk = "disruptive"
privileged = true
approvers = ["lead"]
"""
POLICY = parse(FILE, "p.toml", hosts())
NAMES = tuple(p.name for p in probes())
PIDS = {"pids": "4242"}


def asker(user: str, channel: str = "C1", *, guest: bool = False, external: bool = False, bot: bool = False) -> Asker:
    return Asker(Person(user, frozenset(), guest, external, bot), Place("T", channel), "en", frozenset())


def test_each_probe_is_what_its_spec_says() -> None:
    for spec in probes():
        act = gate.probe_act(spec.name, "gpu-1", {"pids": "1", "gpus": "0", "names": "x", "made-up": "y"})
        assert act.cost == spec.cost.name.lower()
        assert act.argv[:3] == ("gpudiag", "probe", spec.name)
        assert {w.partition("=")[0] for w in act.argv[3:]} == set(spec.takes) - {"guarded"}
        assert act.sound
        assert act.alone or spec.cost is Cost.HEAVY
    for test in active_tests():
        act = gate.probe_act(test.name, "gpu-1", {})
        assert (act.risk, act.cost, act.privileged) == ("disruptive", "heavy", test.root or test.name == "dcgm-diag")
    assert gate.probe_act("job-trace", "gpu-1", PIDS).privileged  # it puts a profiler into somebody's job
    assert not gate.probe_act("job-stacks", "gpu-1", PIDS).privileged  # it only reads
    with pytest.raises(UnknownNameError):
        gate.probe_act("nvmll", "gpu-1", {})


def test_config_rights_rules_the_same_acts_as_the_bot() -> None:
    for name in NAMES:
        act = gate.probe_act(name, "gpu-1", {})
        for word in (name, f"test:{name}") if act.risk == "disruptive" else (name,):
            said = act_of(word, "gpu-1")
            assert (said.cost, said.risk, said.privileged) == (act.cost, act.risk, act.privileged)


def test_an_approval_is_for_these_options_and_no_others() -> None:
    one = gate.probe_act("job-trace", "gpu-1", PIDS)
    assert one == gate.probe_act("job-trace", "gpu-1", PIDS | {"gpus": "0"})  # an option that it does not take
    assert one.argv != gate.probe_act("job-trace", "gpu-1", {"pids": "4243"}).argv


def test_check_and_profile_stand_for_several_but_for_nothing_that_takes_two() -> None:
    found = gate.ruled(POLICY, asker("U1"), "dgx3", NAMES, PIDS)  # an alias of gpu-12
    cheap = {p.name for p in probes() if p.default and p.cost <= Cost.CHEAP}
    assert set(found.allowed) == cheap
    assert not found.second
    assert set(found.denied) == set(NAMES) - cheap
    assert set(gate.ruled(POLICY, asker("U1"), "gpu-12", ("check", "profile", "*")).denied) == {
        "check",
        "profile",
        "*",
    }  # no probes
    assert found.denied["nvlink"].rule == Lack.COST  # nearer than "no grant covers nvlink"
    assert found.denied["job-stacks"].rule == Lack.COST
    assert found.denied["job-trace"].rule == Lack.ACT
    assert found.denied["nvbandwidth"].rule == Lack.ACT


def test_a_probe_by_its_own_name_on_its_own_node() -> None:
    assert gate.ruled(POLICY, asker("UV", external=True), "gpu-12", ("nvml", "pci")).allowed == ("nvml",)
    assert not gate.ruled(POLICY, asker("UV", external=True), "gpu-7", ("nvml",)).allowed
    assert not gate.ruled(POLICY, asker("UG", guest=True), "gpu-12", ("nvml",)).allowed
    assert gate.may_look(POLICY, asker("UV", external=True), "gpu-12").decision is Decision.DENIED
    assert gate.may_look(POLICY, asker("U1"), "gpu-12").decision is Decision.ALLOWED
    assert gate.may_look(POLICY, asker("U1"), "web-1").decision is Decision.DENIED


def test_what_loads_a_node_takes_two() -> None:
    found = gate.ruled(POLICY, asker("U2"), "gpu-7", (*NAMES, "job-trace"), PIDS)
    assert set(found.second) == {"job-trace", *(t.name for t in active_tests())}
    assert all(r.approvers == {"lead"} for r in found.second.values())
    assert set(found.allowed) == set(NAMES) - set(found.second)
    elsewhere = gate.ruled(POLICY, asker("U2"), "gpu-12", ("nvbandwidth", "job-trace", "nvml"), PIDS)
    assert (elsewhere.allowed, set(elsewhere.second), set(elsewhere.denied)) == (
        ("nvml",),
        set(),
        {"nvbandwidth", "job-trace"},
    )


@given(
    st.sampled_from(["U1", "U2", "U3", "U4", "U9", "UV", "", "x y"]), st.sampled_from(["C1", "C2", "D7", "", "G"]),
    st.sampled_from(["gpu-12", "gpu-7", "web-1", "", "a b", "*", "@training"]), st.booleans(), st.booleans(), st.booleans(),
    st.lists(st.sampled_from([*NAMES, "*", "check", "no such", "test:nvbandwidth", ""]), max_size=6),
)  # fmt: skip
def test_every_probe_is_ruled_once_and_nothing_is_allowed_that_the_policy_denies(
    user: str, channel: str, node: str, guest: bool, external: bool, bot: bool, names: list[str]
) -> None:
    who = asker(user, channel, guest=guest, external=external, bot=bot)
    found = gate.ruled(POLICY, who, node, names, PIDS)
    assert sorted((*found.allowed, *found.second, *found.denied)) == sorted(set(names))
    for name in found.allowed:
        act = gate.probe_act(name, node, PIDS)
        words = (name, "check", "profile")
        assert act.alone
        assert any(
            POLICY.decide(who.person, Act(w, node, act.cost), channel).decision is Decision.ALLOWED for w in words
        )
    for name in found.second:
        act = gate.probe_act(name, node, PIDS)
        assert POLICY.decide(who.person, act, channel).decision is Decision.SECOND_PERSON
    if gate.entry(POLICY, who).decision is Decision.DENIED:
        assert set(found.denied) == set(names)
    nothing = gate.ruled(Policy(), who, node, names, PIDS)
    assert set(nothing.denied) == set(names)


def test_who_may_turn_to_the_bot_at_all() -> None:
    def at(who: Asker) -> str:
        ruling = gate.entry(POLICY, who)
        assert ruling.decision is (Decision.DENIED if ruling.rule else Decision.ALLOWED)
        assert ruling.why.zh
        return ruling.rule

    assert (
        at(asker("U1")) == at(asker("U1", "D0BOT")) == at(asker("U4")) == ""
    )  # without a grant one may still ask what a word means
    assert at(asker("U9")) == Lack.MEMBER
    assert at(asker("U1", "C2")) == at(asker("U1", "D/../C1")) == Lack.CHANNEL
    assert at(asker("U1", guest=True)) == Lack.GUEST
    assert at(asker("U1", external=True)) == Lack.EXTERNAL
    assert at(asker("UV", external=True)) == ""
    assert at(asker("U1", bot=True)) == Lack.PERSON


def test_could_not_look_is_an_answer() -> None:
    found = gate.ruled(POLICY, asker("U1"), "gpu-12", ("nvlink", "bmc", "job-trace", "made up"), PIDS)
    told = gate.denials(found.denied, "gpu-12")
    specs = {p.name: p for p in probes()}
    assert {(o.source.probe, o.fact) for o in told} == {
        (n, f) for n in ("nvlink", "bmc", "job-trace") for f in specs[n].main
    }
    assert {(o.status, o.value, o.subject.id) for o in told} == {(Status.DENIED, None, "gpu-12")}
    assert all(o.detail for o in told)


def test_denials_are_told_in_chinese_too() -> None:
    names = ("nvlink", "nvml", "bmc", "job-trace", "nvbandwidth", "gpu-burn")
    rulings = [
        *gate.ruled(POLICY, asker("U1"), "gpu-12", names, PIDS).denied.values(),
        *gate.ruled(POLICY, asker("U1"), "web-1", ("nvml",)).denied.values(),
        *gate.ruled(POLICY, asker("U2"), "gpu-7", names, PIDS).second.values(),
        *gate.ruled(POLICY, asker("U2"), "gpu-12", names, PIDS).denied.values(),
        *gate.ruled(POLICY, asker("U4"), "gpu-12", ("nvml",)).denied.values(),
    ]
    for ruling in rulings:
        for o in gate.denials({"nvml": ruling}, "n"):
            shown = reason_name(f"{o.status}: {o.detail}", "zh")
            assert not any(w in shown for w in ("grant", "rights", "costs", "person")), shown


def test_a_denial_says_why_and_whom_to_ask() -> None:
    ruling = gate.ruled(POLICY, asker("U1"), "gpu-12", ("bmc",)).denied["bmc"]
    error = gate.DeniedError.of(ruling, "gpu-12")
    assert "bmc" in str(error)
    assert "policy" in error.in_("en")
    assert "权限文件" in error.in_("zh")
