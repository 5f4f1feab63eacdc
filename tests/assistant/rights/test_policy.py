"""The policy file: what it grants, what it denies, and everything that is wrong with one at once."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.config import Settings, load
from assistant.inventory.parse import parse as machines
from assistant.rights import source
from assistant.rights.model import COSTS, RISKS, globs
from assistant.rights.parse import parse
from assistant.rights.policy import Act, Decision, Grant, Lack, Person, Policy, Role, Sight
from assistant.rights.reach import known_acts
from assistant.rights.sight import command_line, user
from assistant.slack.gate import DeniedError
from knowledge.errors import Fault, FaultsError, InputError
from tests.assistant.rights.rights_lab import LOOK, RESET, hosts, policy, text
from tests.cases import each
from tests.conftest import Gpudiag

ROOT = Path(__file__).parents[3]
DECISIONS = (Decision.DENIED, Decision.SECOND_PERSON, Decision.ALLOWED)


def example() -> tuple[str, str]:
    """The policy and the inventory of the page."""
    first, second, *_ = re.findall(
        r"```toml\n(.*?)```", (ROOT / "docs/rights.md").read_text(encoding="utf-8"), re.DOTALL
    )
    return first, second


def faults(text: str) -> list[str]:
    with pytest.raises(FaultsError) as caught:
        parse(text, "p.toml", hosts())
    return [str(f) for f in caught.value.faults]


def rules(person: Person, act: Act, channel: str = "C1") -> tuple[Decision, str]:
    ruling = policy().decide(person, act, channel)
    assert ruling.why.en
    assert ruling.why.zh
    return ruling.decision, ruling.rule


def test_what_a_policy_grants() -> None:
    assert rules(Person("U1"), LOOK) == (Decision.ALLOWED, "looks")
    assert rules(Person("U9", frozenset({"S1"})), LOOK) == (Decision.ALLOWED, "looks")
    assert rules(Person("U1"), RESET) == (Decision.SECOND_PERSON, "acts")
    assert policy().decide(Person("U1"), RESET, "C1").approvers == {"lead"}
    assert rules(Person("U1"), LOOK, "D77") == (Decision.ALLOWED, "looks")
    assert rules(Person("U1"), replace(LOOK, node="dgx3")) == (Decision.ALLOWED, "looks")
    assert rules(Person("U1"), replace(LOOK, privileged=True))[1] == "privileged"


@each(
    ("person", "act", "channel", "lack"),
    [
        (Person("U9"), LOOK, "C1", Lack.MEMBER),
        (Person("U1", guest=True), LOOK, "C1", Lack.GUEST),
        (Person("U1", external=True), LOOK, "C1", Lack.EXTERNAL),
        (Person("U1", bot=True), LOOK, "C1", Lack.PERSON),
        (Person(""), LOOK, "C1", Lack.PERSON),
        (Person("U1\n"), LOOK, "C1", Lack.PERSON),
        (Person("U1"), LOOK, "C2", Lack.CHANNEL),
        (Person("U1"), LOOK, "direct", Lack.CHANNEL),
        (Person("U1"), replace(LOOK, what="test:nvbandwidth"), "C1", Lack.ACT),
        (Person("U1"), replace(LOOK, what="nvbandwidth"), "C1", Lack.ACT),  # an active test by its other name
        (Person("U1"), replace(LOOK, node="web-1"), "C1", Lack.NODE),
        (Person("U1"), replace(LOOK, node="gpu-1;reboot"), "C1", Lack.SOUND),
        (Person("U1"), replace(LOOK, node="gpu-1\n"), "C1", Lack.SOUND),
        (Person("U1"), replace(LOOK, cost="heavy"), "C1", Lack.COST),
        (Person("U1"), replace(LOOK, cost="gratis"), "C1", Lack.SOUND),
        (Person("U1"), replace(LOOK, risk="disruptive"), "C1", Lack.RISK),
        (Person("U3"), RESET, "C1", Lack.ACT),
    ],
    ids=lambda v: v.value if isinstance(v, Lack) else "",
)
def test_what_it_denies(person: Person, act: Act, channel: str, lack: Lack) -> None:
    assert rules(person, act, channel) == (Decision.DENIED, lack.value)


def test_a_denial_tells_nothing_of_others() -> None:
    for person in (Person("U9"), Person("U1", guest=True), Person("U3")):
        why = policy().decide(person, RESET, "C1").why
        for told in ("oncall", "lead", "U1", "U2", "looks", "acts", "S1"):
            assert told not in why.en.split()
            assert told not in why.zh


PEOPLE = st.builds(
    Person, st.sampled_from(["U1", "U2", "U3", ""]), st.frozensets(st.sampled_from(["S1", "S2"])),
    st.booleans(), st.booleans(), st.booleans(),
)  # fmt: skip
ACTS = st.builds(
    Act, st.sampled_from(["nvml", "pci", "test:nvbandwidth", "step:a/b", "x y"]), st.sampled_from(["gpu-1", "gpu-2", "web", "@a", ""]),
    st.sampled_from([*COSTS, "none"]), st.sampled_from([*RISKS, "none"]), st.booleans(),
)  # fmt: skip
GLOBS = st.lists(st.sampled_from(["nvml", "p*", "*", "test:*", "step:a/*", "?vml"]), max_size=3)
NODES = st.lists(st.sampled_from(["gpu-1", "gpu-*", "web", "*", "gpu-?"]), max_size=3)
ROLES = st.builds(
    Role, st.just(""), st.frozensets(st.sampled_from(["U1", "U2"])), st.frozensets(st.sampled_from(["S1"])), st.booleans(), st.booleans()
)  # fmt: skip
GRANTS = st.builds(
    lambda roles, run, nodes, cost, risk, privileged, approvers: Grant(
        "", roles, globs(run, run, within=":"), globs(nodes, nodes), cost, risk, privileged, approvers
    ),
    st.frozensets(st.sampled_from("ab")), GLOBS, NODES, st.sampled_from(COSTS), st.sampled_from(RISKS), st.booleans(),
    st.frozensets(st.sampled_from("ab"), min_size=1),
)  # fmt: skip
POLICIES = st.builds(
    lambda channels, roles, grants: Policy(
        channels, {n: replace(r, name=n) for n, r in roles.items()}, tuple(replace(g, name=f"g{i}") for i, g in enumerate(grants))
    ),
    st.frozensets(st.sampled_from(["C1", "direct"])), st.fixed_dictionaries({"a": ROLES, "b": ROLES}), st.lists(GRANTS, max_size=4),
)  # fmt: skip
CHANNELS = st.sampled_from(["C1", "C2", "D1", "", "direct"])


@given(PEOPLE, ACTS, CHANNELS)
def test_nothing_is_granted_by_default(person: Person, act: Act, channel: str) -> None:
    assert Policy().decide(person, act, channel).decision is Decision.DENIED
    bare = replace(policy(), grants=(), channels=frozenset({"C1", "direct"}))
    assert bare.decide(person, act, channel).decision is Decision.DENIED


@given(POLICIES, GRANTS, PEOPLE, ACTS, CHANNELS)
def test_a_grant_more_takes_nothing_away(known: Policy, grant: Grant, person: Person, act: Act, channel: str) -> None:
    before = known.decide(person, act, channel)
    after = replace(known, grants=(replace(grant, name="new"), *known.grants)).decide(person, act, channel)
    assert DECISIONS.index(after.decision) >= DECISIONS.index(before.decision)
    assert after.approvers >= before.approvers


@given(POLICIES, PEOPLE, ACTS, CHANNELS)
def test_laws_of_every_ruling(known: Policy, person: Person, act: Act, channel: str) -> None:
    ruling = known.decide(person, act, channel)
    assert ruling.why.en
    assert ruling.why.zh
    if ruling.decision is Decision.DENIED:
        assert ruling.rule in {k.value for k in Lack}
        return
    grant = next(g for g in known.grants if g.name == ruling.rule)
    roles = [known.roles[r] for r in grant.roles if r in known.roles]
    assert any(person.id in r.users or r.groups & person.groups for r in roles)
    assert not person.bot
    assert not person.guest or any(r.guests for r in roles)
    assert not person.external or any(r.external for r in roles)
    assert channel in known.channels or ("direct" in known.channels and channel in ("", "D1"))
    assert (COSTS.index(act.cost), RISKS.index(act.risk)) <= (COSTS.index(grant.cost), 2)
    assert RISKS.index(act.risk) <= RISKS.index(grant.risk)
    assert (ruling.decision is Decision.ALLOWED) == (act.risk == "safe" and not act.privileged)
    assert bool(ruling.approvers) == (ruling.decision is Decision.SECOND_PERSON)


@given(st.text("ab*?:./-", max_size=6), st.text("ab:./-", max_size=6))
def test_globs(word: str, name: str) -> None:
    def fits(w: str, n: str) -> bool:
        if not w:
            return not n
        if w[0] == "*":
            return fits(w[1:], n) or (bool(n) and n[0] != ":" and fits(w, n[1:]))
        return bool(n) and (n[0] == w[0] or (w[0] == "?" and n[0] != ":")) and fits(w[1:], n[1:])

    assert globs([word], [word], within=":").has(name) == fits(word, name)


@each(
    ("more", "fault"),
    [
        ("[rules]", "22:1: unknown key 'rules' (did you mean roles?)"),
        ("[roles.x]", "22:1: nobody belongs to it (users = [...] or groups = [...])"),
        ("[roles.'a b']\nusers=['U1']", "22:1: 'a b' is no name: letters, digits, dots, dashes and underscores"),
        ("[roles.x]\nusers = ['alice']", "23:1: 'alice' is no id of a user (U...)"),
        ("[roles.x]\ngroups = ['@oncall']", "23:1: '@oncall' is no id of a user group (S...)"),
        ("[roles.x]\nusers = 3", "23:1: users is a list of words, not 3"),
        ("[roles.x]\nusers = ['U1']\nguest = true", "24:1: unknown key 'guest' (did you mean guests?)"),
        ("[roles.x]\nusers = ['U1']\nguests = 'yes'", "24:1: guests is true or false, not 'yes'"),
        ("[roles.x]\nusers = ['U1']\nsee = ['secrets']", "24:1: there is nothing called 'secrets' to see (nobody is shown secrets)"),
        ("[roles.x]\nusers = ['U1']\nsee = 'user'", "24:1: there is nothing called 'user' to see (did you mean users?)"),
        ("[grants.x]\nroles = 'leed'\nrun='*'\nnodes='*'\ncost='free'", "23:1: there is no role 'leed' (did you mean lead?)"),
        ("[grants.x]\nroles = 'lead'\nrun='nvmll'\nnodes='*'\ncost='free'", "24:1: there is no probe 'nvmll' (did you mean nvml?)"),
        ("[grants.x]\nroles = 'lead'\nrun='test:burn'\nnodes='*'\ncost='free'", "24:1: there is no test 'test:burn'"),
        ("[grants.x]\nroles = 'lead'\nrun='step:x'\nnodes='*'\ncost='free'", "24:1: 'step:x' is no step of a runbook"),
        ("[grants.x]\nroles = 'lead'\nrun='step:gpu-off-bus/rest'\nnodes='*'\ncost='free'", "24:1: runbook gpu-off-bus has no step 'rest' (did you mean reset"),
        ("[grants.x]\nroles = 'lead'\nrun='shell:*'\nnodes='*'\ncost='free'", "24:1: 'shell:*' is nothing that can be run"),
        ("[grants.x]\nroles = 'lead'\nrun='*'\nnodes='@trainig'\ncost='free'", "25:1: there is no group '@trainig' of machines (did you mean @training?)"),
        ("[grants.x]\nroles = 'lead'\nrun='*'\nnodes='gpu[2-1]'\ncost='free'", "25:1: 2-1 is no range"),
        ("[grants.x]\nroles = 'lead'\nrun='*'\nnodes='a;b'\ncost='free'", "25:1: 'a;b' is no name"),
        ("[grants.x]\nroles = 'lead'\nrun='*'\nnodes='*'\ncost='heavi'", "26:1: cost is 'heavi' (did you mean heavy, cheap?)"),
        ("[grants.x]\nroles = 'lead'\nrun='*'\nnodes='*'", "22:1: cost is missing: what is not said is not granted"),
        ("[grants.x]\nroles='lead'\nrun='*'\nnodes='*'\ncost='free'\nrisk='disruptive'", "22:1: a second person has to agree"),
        ("[grants.x]\nroles='lead'\nrun='*'\nnodes='*'\ncost='free'\nprivileged=true\napprovers=[]", "28:1: nobody could agree"),
        ("[grants.x]\nroles='lead'\nrun='*'\nnodes='*'\ncost='free'\nsecond_person=false", "27:1: the second person cannot be left out"),
        ("[people]\nann = ['a b']", "23:1: 'a b' is no id"),
    ],
)  # fmt: skip
def test_a_fault_has_its_place(more: str, fault: str) -> None:
    found = faults(text(more=more))
    assert len(found) == 1
    assert found[0].startswith("p.toml:")
    assert fault in found[0]


def test_all_faults_at_once() -> None:
    assert faults("grants = 3\n") == ["p.toml:1:1: grants is a table, not 3"]
    assert faults("a = \n")[0].startswith("p.toml:1:5: it is no TOML")
    found = faults(
        "[roles.a]\nuser = ['x']\n[grants.g]\nroles = ['b']\nrun = ['zz', 'nvml']\nnodes = ['@x']\ncost = 1\n"
    )
    assert [f.split(" ")[0] for f in found] == [f"p.toml:{n}:1:" for n in (1, 1, 2, 4, 5, 6, 7)]


@given(st.text("[]rolesgant.uschl=ab\"' \n*@,{}U1", max_size=80))
def test_any_text_is_a_policy_or_its_faults(written: str) -> None:
    found: tuple[Fault, ...] = ()
    known = Policy()
    try:
        known = parse(written, "p.toml")
    except FaultsError as error:
        found = error.faults
    assert [f for f in found if f.line < 1 or f.column < 1 or not f.message] == []
    assert known.decide(Person("U9"), LOOK).decision is Decision.DENIED


def test_a_policy_is_read_afresh_and_with_care(tmp_path: Path) -> None:
    path, inventory = tmp_path / "policy.toml", tmp_path / "inventory.toml"
    inventory.write_text("[hosts.gpu-12]\n")
    now = source(Settings(policy_file=path, inventory=inventory))
    with pytest.raises(InputError, match="cannot be read"):
        now()
    path.write_text(text())
    assert now().decide(Person("U1"), LOOK, "C1").decision is Decision.ALLOWED
    path.write_text(text(oncall=()))
    assert now().decide(Person("U1"), LOOK, "C1").decision is Decision.DENIED
    path.chmod(0o666)
    with pytest.raises(InputError, match="written by anybody"):
        now()
    assert source(Settings())() == Policy()
    assert load({}, {"GPUDIAG_POLICY_FILE": str(path)}, ()).policy_file == path


def test_the_example_of_the_page() -> None:
    written, inventory = example()
    known = parse(written, "policy.toml", machines(inventory, "inventory.toml"))
    oncall, lead = Person("U1", frozenset({"S0614TZR7"})), Person("U06AFRG30")
    reset = replace(RESET, node="gpu-014")
    ruling = known.decide(oncall, reset, "C024BE7LH")
    assert (ruling.decision, ruling.rule) == (Decision.SECOND_PERSON, "repair")
    assert known.approves(lead, ruling.approvers)
    assert not known.approves(oncall, ruling.approvers)
    assert known.decide(oncall, replace(reset, node="serving-1"), "C024BE7LH").rule == Lack.NODE.value
    assert known.sees(oncall) == {Sight.USERS, Sight.COMMAND_LINES}
    assert known.sees(Person("U07SUPP0RT")) == frozenset()


def test_what_somebody_sees_of_others() -> None:
    argv = ("python3", "train.py", "--api-key=abcdefgh", "--lr", "3e-4")
    everything = frozenset(Sight)
    assert command_line(argv, everything) == ("python3", "train.py", "--api-key=***", "--lr", "3e-4")
    assert command_line(argv, (), own=True) == command_line(argv, everything)
    assert command_line(argv, {Sight.USERS}) == ("python3", "***")
    assert command_line(("ray::train run=7 secret",), ()) == ("ray::train", "***")
    assert command_line(("[kworker]",), ()) == ("[kworker]",)
    assert command_line((), ()) == ()
    assert (user("ann", ()), user("ann", everything), user("ann", (), own=True), user("", ())) == (
        "***",
        "ann",
        "ann",
        "",
    )


def test_names_of_acts_are_sound() -> None:
    for what in known_acts():
        assert Act(what, "n").sound


def test_the_command(gpudiag: Gpudiag, tmp_path: Path) -> None:
    written, inventory = example()
    (tmp_path / "p.toml").write_text(written)
    (tmp_path / "i.toml").write_text(inventory)
    env = {"GPUDIAG_POLICY_FILE": str(tmp_path / "p.toml"), "GPUDIAG_INVENTORY": str(tmp_path / "i.toml")}
    shown = gpudiag("config", "rights", env=env)
    assert shown.code == 0
    assert re.search(r"repair +\S.*oncall", shown.out)
    asked = ("config", "rights", "--as", "U06AFRG30", "--node", "gpu-014", "--act")
    allowed = gpudiag(*asked, "nvml", "--format", "json", env=env)
    assert allowed.code == 0
    ruling = json.loads(allowed.out)["ruling"]
    assert (ruling["decision"], ruling["rule"]) == ("allowed", "looks")
    denied = gpudiag(*asked, "kernel-log", "--as", "U1", env=env | {"GPUDIAG_LANG": "zh"})
    assert denied.code == 0
    assert "拒绝" in denied.out
    (tmp_path / "p.toml").write_text(text(more="[rules]"))
    wrong = gpudiag("config", "rights", env=env)
    assert (wrong.code, wrong.out) == (2, "")
    assert ":22:1: unknown key 'rules'" in wrong.err
    assert gpudiag("config", "rights", "--as", "U1", env=env).code == 2


def test_what_it_names_in_vain_is_said_and_counts_no_less() -> None:
    """No fault: it may be called so elsewhere. A known name, a wildcard and a policy without an inventory are silent."""
    grant = "[grants.x]\nroles = 'lead'\nrun=['step:gpu-of-bus/reset', 'step:gpu-off-bus/*', 'step:*']\nnodes=['gpu-99', 'gpu-*', 'dgx3']\ncost='free'\n"
    found = parse(text(more=grant), "p.toml", hosts())
    said = [str(d) for d in found.doubts]
    assert [s.partition(": ")[2].partition("'")[0] for s in said] == [
        "no runbook here is called ",
        "no machine of the inventory is called ",
    ]
    assert "did you mean gpu-off-bus" in said[0]
    assert "gpu-99" in said[1]
    assert not [d for d in parse(text(more=grant), "p.toml").doubts if "machine" in d.message]


def test_a_denial_names_who_keeps_the_policy() -> None:
    policy = parse('keepers = ["Ann Lee", "#gpu-admins"]\n' + text(), "p.toml", hosts())
    ruling = policy.decide(Person("U9"), LOOK)
    assert ruling.keepers == ("Ann Lee", "#gpu-admins")
    said = DeniedError.of(ruling)
    assert "ask Ann Lee, #gpu-admins" in said.in_("en")
    assert "Ann Lee, #gpu-admins" in said.in_("zh")
    assert policy.may_approve(["lead", "nobody"]) == (("U3",), ("S3",))
