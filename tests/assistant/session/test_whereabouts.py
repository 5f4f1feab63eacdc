"""Talks about other machines: which one is looked at, when the talk goes on about it, and what is said when it cannot be reached."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from assistant.intent.parse import understand
from assistant.intent.query import Intent
from assistant.session.core import Result, Session
from assistant.session.inventory import Inventory
from assistant.session.looking import FRESH
from assistant.session.state import Origin, Seen, State, _sum, plain, restored
from assistant.session.steps import Collect, Collected, Conclude, Said
from assistant.session.whereabouts import about_elsewhere
from knowledge.language import NO_TEXT, Text
from knowledge.observation import Observation, Source, node
from rules.loader import load as load_rules
from tests.cases import each

NODES = Inventory(
    ("login-7", "gpu-12", "gpu-13", "gpu-20", "old-1"), "login-7", reach=frozenset({"gpu-12", "gpu-13", "gpu-20"}),
    called={"dgx3": "gpu-12"},
)  # fmt: skip
NOW = 1_800_000_000 * 10**9
LOST = Text(
    "gpu-12: 10.0.3.12 refuses connections: no ssh server listens there\n  is sshd running?",
    "gpu-12：10.0.3.12 拒绝连接：该处没有 ssh 服务监听\n  sshd 是否在运行？",
)


@cache
def session() -> Session:
    return Session(load_rules(), NODES)


def say(text: str, state: State | None = None, origin: Origin = Origin(), at: int = NOW) -> Result:  # noqa: B008 - a constant
    return session().step(state or State(), Said(text, origin, at))


def looked(host: str, probes: tuple[str, ...], at: int = NOW, lost: Text = NO_TEXT) -> Collected:
    seen = Observation("node.uptime", node(host), 5.0, source=Source("system"))
    return Collected(Seen(host, (seen,), probes, as_of=at, whole=True, lost=lost))


def answered(result: Result, host: str, at: int = NOW) -> Result:
    """Until there is an answer, each look gives next to nothing."""
    state, steps = result
    while isinstance(steps[0], Collect):
        assert steps[0].origin.host == host
        state, steps = session().step(state, looked(host, steps[0].probes, at))
    return state, steps


def where(result: Result) -> str:
    """The machine that is to be looked at; "-" when none is."""
    step = result[1][0]
    return (step.origin.host or "here") if isinstance(step, Collect) else "-"


@each(
    ("sentence", "given", "looks"),
    [
        ("is gpu-12 healthy?", "", "gpu-12"),
        ("why is training slow on gpu-13?", "", "gpu-13"),
        ("can I use GPU-12?", "", "gpu-12"),
        ("is dgx3 ok?", "", "gpu-12"),
        ("check gpu-[12]", "", "gpu-12"),
        ("gpu-12 还能用吗？", "", "gpu-12"),
        ("is this node healthy?", "", "here"),
        ("is login-7 healthy?", "", "here"),
        ("is this node healthy?", "gpu-13", "gpu-13"),
        ("is gpu-12 healthy?", "gpu-13", "gpu-12"),
        ("is login-7 healthy?", "gpu-13", "here"),
        ("is old-1 healthy?", "", "-"),
        ("is gpu-77 healthy?", "", "-"),
        ("is gpu-[12-13] healthy?", "", "-"),
        ("are gpu-12 and gpu-13 healthy?", "", "-"),
        ("what is xid 79?", "gpu-13", "-"),
    ],
)
def test_which_machine_is_looked_at(sentence: str, given: str, looks: str) -> None:
    assert where(say(sentence, origin=Origin(host=given))) == looks


@each(
    ("sentence", "away"),
    [
        ("is my gpu ok", True), ("should I replace the card?", True), ("the gpu came back after the reboot, was it broken?", True),
        ("这张卡还能用吗", True), ("is this node ok", False), ("is login-7 healthy?", False), ("what is wrong with the gpus here", False),
    ],
)  # fmt: skip
def test_a_gpu_is_never_judged_by_a_machine_that_has_none(sentence: str, away: bool) -> None:
    state, steps = say(sentence)
    while isinstance(steps[0], Collect):
        none = Observation("node.pci.gpu_count", node("login-7"), 0, source=Source("pci"))
        state, steps = session().step(
            state, Collected(Seen("login-7", (none,), steps[0].probes, as_of=NOW, whole=True))
        )
    (end,) = [s for s in steps if isinstance(s, Conclude)]
    assert end.reply.headline.startswith("Cannot say: this machine (login-7) has no GPU") is (
        away and sentence.isascii()
    )
    assert (end.reply.diagnosis is None) is away


def test_a_known_message_alone_is_answered_by_its_page() -> None:
    """Of a container on another machine no look at this one tells anything."""
    state, steps = say("Failed to initialize NVML: Unknown Error inside docker after systemctl daemon-reload")
    while isinstance(steps[0], Collect):
        none = Observation("node.pci.gpu_count", node("login-7"), 0, source=Source("pci"))
        state, steps = session().step(
            state, Collected(Seen("login-7", (none,), steps[0].probes, as_of=NOW, whole=True))
        )
    (end,) = [s for s in steps if isinstance(s, Conclude)]
    assert end.reply.headline.startswith("A running container lost its GPU devices: ")


def test_several_machines_are_looked_at_one_by_one() -> None:
    _, (step, *_) = say("what is wrong with gpu-[12-13] and gpu-20?")
    assert isinstance(step, Conclude)
    assert step.reply.headline == "One node is looked at at a time: gpu-12, gpu-13, gpu-20."
    assert step.reply.suggestions == ("is gpu-12 healthy?", "is gpu-13 healthy?", "is gpu-20 healthy?")


def test_a_talk_goes_on_about_its_machine_for_as_long_as_the_look_is_new() -> None:
    state, _ = answered(say("is dgx3 healthy?"), "gpu-12")
    assert state.frame.query is not None
    assert state.frame.query.slots.node == ("gpu-12",)
    soon, _ = say("is gpu 3 throttling?", state, at=NOW + FRESH)
    assert soon.frame.origin == Origin(host="gpu-12")
    assert soon.frame.query is not None
    assert "gpu-12" in soon.frame.query.echo.en
    assert where(say("is gpu 3 throttling?", state, at=NOW + FRESH + 1)) == "here"
    assert where(say("is gpu 3 on login-7 throttling?", state)) == "here"
    assert say("why?", state)[0].frame.origin == Origin(host="gpu-12")


def test_the_same_question_about_another_machine() -> None:
    state, _ = answered(say("is gpu-12 healthy?"), "gpu-12")
    assert where(say("what about gpu-13?", state)) == "gpu-13"
    assert where(say("and login-7?", state)) == "here"
    assert where(say("what about this machine?", state)) == "here"
    assert where(say("again", state)) == "gpu-12"


def test_a_machine_that_cannot_be_reached() -> None:
    state, steps = say("is gpu-12 healthy?")
    assert isinstance(steps[0], Collect)
    state, steps = session().step(state, Collected(Seen("gpu-12", (), steps[0].probes, lost=LOST)))
    assert [type(s) for s in steps] == [Conclude]
    assert isinstance(steps[0], Conclude)
    reply = steps[0].reply
    assert reply.headline == "gpu-12 was not looked at: 10.0.3.12 refuses connections: no ssh server listens there"
    assert (reply.settled, reply.suggestions) == (False, ("again",))
    chinese, asked = say("gpu-12 健康吗？")
    assert isinstance(asked[0], Collect)
    _, (said, *_) = session().step(chinese, Collected(Seen("gpu-12", (), asked[0].probes, lost=LOST)))
    assert isinstance(said, Conclude)
    assert said.reply.headline == "未能查看 gpu-12：10.0.3.12 拒绝连接：该处没有 ssh 服务监听"
    assert not state.frame.seen
    assert where(say("again", state)) == "gpu-12"
    assert where(say("what about gpu-13?", state)) == "gpu-13"


def test_what_was_said_is_answered_though_the_machine_cannot_be_reached() -> None:
    state, steps = say("node gpu-12 threw xid 48 then 63, can I keep using it?")
    assert isinstance(steps[0], Collect)
    _, (step, *_) = session().step(state, Collected(Seen("gpu-12", (), steps[0].probes, lost=LOST)))
    assert isinstance(step, Conclude)
    assert step.reply.data["usable"] == "not_yet"
    assert any("was not looked at" in getattr(p, "text", "") for p in step.reply.parts)


def test_of_a_line_that_broke_nothing_more_is_asked_in_that_turn() -> None:
    state, steps = say("is gpu-12 healthy?")
    assert isinstance(steps[0], Collect)
    broken = looked("gpu-12", steps[0].probes, lost=Text("the connection to gpu-12 broke: it closed"))
    state, steps = session().step(state, broken)
    assert isinstance(steps[0], Conclude)
    assert any("ended early" in getattr(p, "text", "") for p in steps[0].reply.parts)
    assert where(say("again", state)) == "gpu-12"


def test_nobody_is_asked_to_agree_to_what_cannot_run_there() -> None:
    wanted = replace(session(), absent=frozenset)
    for absent in ((), tuple(s.name for s in wanted.probes if not s.default)):
        state, steps = wanted.step(State(), Said("run dcgm-diag on gpu-12", at=NOW))
        while isinstance(steps[0], Collect):
            event = looked("gpu-12", steps[0].probes)
            state, steps = wanted.step(state, Collected(replace(event.seen, absent=absent)))
        pending = state.frame.pending
        assert (pending is not None and "dcgm-diag" in pending.probes) == (not absent)


def test_a_talk_about_another_machine_survives_a_restart() -> None:
    state, _ = answered(say("is gpu-12 healthy?"), "gpu-12")
    again = restored(plain(state))
    assert again.frame.origin == Origin(host="gpu-12")
    assert again.seen == state.seen
    kept = replace(next(iter(state.seen.values())), absent=("dcgm-diag",), lost=Text("gone", "已断开"))
    number = next(iter(state.seen))
    older = plain(replace(state, seen={**state.seen, number: replace(kept, lost=Text("gone"))}))
    older["seen"][str(number)]["lost"] = "gone"
    older["sum"] = _sum(older)
    assert restored(older).seen[number].lost == Text("gone")
    assert restored(plain(replace(state, seen={**state.seen, number: kept}))).seen[number] == kept


# --- machines that are called by a word of every day, and names that nobody knows ----------------------------------------------------

WORDS = Inventory(
    ("login-7", "hole", "oven", "badgers", "memory"), "login-7", reach=frozenset({"hole", "oven", "badgers", "memory"})
)


def about(text: str, state: State | None = None) -> Result:
    return replace(session(), inventory=WORDS).step(state or State(), Said(text, at=NOW))


@each(
    ("sentence", "looks"),
    [
        ("is hole healthy?", "hole"),
        ("what about hole", "hole"),
        ("why is hole so slow today?", "hole"),
        ("check oven", "oven"),
        ("can I keep using hole?", "hole"),
        ("what's wrong with Hole?", "hole"),
        ("how is oven doing?", "oven"),
        ("hole", "hole"),
        ("hole 健康吗？", "hole"),
        ("那 hole 呢？", "hole"),
        ("检查一下 oven", "oven"),
        ("is memory healthy?", "here"),  # a word of the field means itself, of the machine that can be looked at
        ("is node memory healthy?", "memory"),
        ("is there a hole in the log?", "here"),
        ("is the hole healthy?", "here"),
        ("is everything healthy?", "here"),
        ("is badger healthy?", "-"),
        ("badger 健康吗？", "-"),
    ],
)
def test_machines_that_are_called_like_a_word(sentence: str, looks: str) -> None:
    assert where(about(sentence)) == looks


def test_the_same_question_about_a_machine_called_like_a_word() -> None:
    state, _ = answered(say("is gpu-12 healthy?"), "gpu-12")
    assert where(about("what about hole?", state)) == "hole"
    assert where(about("and oven?", state)) == "oven"


@each(
    ("sentence", "headline", "offered"),
    [
        ("is badger healthy?", "No node called badger is known; did you mean badgers?", ("badgers",)),
        ("is zarquon in good shape", "No node called zarquon is known; these are: login-7, hole, oven, badgers, memory.", ("login-7", "hole", "oven")),
        ("zarquon 健康吗", "未知节点 zarquon；已知节点：login-7、hole、oven、badgers、memory。", ("login-7", "hole", "oven")),
    ],
)  # fmt: skip
def test_a_name_that_nobody_knows_is_asked_back(sentence: str, headline: str, offered: tuple[str, ...]) -> None:
    _, (step, *rest) = about(sentence)
    assert isinstance(step, Conclude)
    assert rest == []
    assert step.reply.headline == headline
    assert step.reply.suggestions == offered
    assert not step.reply.settled
    assert where(about(offered[-1])) == offered[-1]  # each of them is a sentence that can be said


@each(("sentence", "apart"), [
    ("py-spy dump --pid says Permission Denied in k8s pod", True), ("wandb shows no gpu metrics", True), ("kubectl logs 看不到输出", True),
    ("dataloader worker (pid 4411) is killed by signal: Bus error", True), ("check this node", False), ("what is wrong", False),
    ("why is pid 4411 slow", False),
])  # fmt: skip
def test_a_tool_of_gpu_work_is_not_looked_for_on_a_machine_without_a_gpu(sentence: str, apart: bool) -> None:
    query = replace(understand(sentence), page="")
    query = query if query.intent in (Intent.DIAGNOSE, Intent.VERDICT) else replace(query, intent=Intent.DIAGNOSE)
    assert about_elsewhere(Origin(), query) is apart
