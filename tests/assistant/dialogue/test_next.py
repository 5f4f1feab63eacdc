"""What now: the first action with its command and runbook step, the next thing to look at, or nothing."""

from __future__ import annotations

from assistant.diagnosis import diagnose
from assistant.intent.query import Intent, Slots
from assistant.planner import Plan, goal_of, plan
from rules.engine import Role
from tests.assistant.dialogue.talk import OFF_BUS, ask, log, query, rules, said, texts
from tests.diagnoses import incident


def test_the_first_action() -> None:
    reply = ask(incident("double-bit-error"), query(Intent.NEXT))
    assert reply.headline == "DRAIN_AND_RESET: Let running work finish, then reset the GPU."
    lines = texts(reply)
    assert "$ nvidia-smi --gpu-reset -i 0000:48:00.0" in lines
    assert "risk: disruptive: stops or blocks the work there" in lines
    assert any(x.startswith("who must agree: ") for x in lines)
    assert any(x.startswith("Runbook uncorrectable-ecc, step 1: ") for x in lines)
    assert reply.data["step"]
    assert reply.suggestions[0] == "show runbook uncorrectable-ecc"


def test_in_chinese() -> None:
    reply = ask(log(OFF_BUS), query(Intent.NEXT, lang="zh"))
    assert reply.headline == "RESTART_BM：排空并重启节点。"
    assert "处置手册 gpu-off-bus 第 1 步：保存内核日志" in texts(reply)


def test_a_consequence_that_asks_for_nothing_gives_way_to_its_cause() -> None:
    d = incident("double-bit-error")
    quiet = next(f for f in d.findings if f.rule.id == "channel-preemptive-removal")
    assert ask(d, query(Intent.NEXT), focus=quiet.id).focus == d.roots[0].id
    named = ask(d, query(Intent.NEXT, slots=Slots(xid=(94,))))
    assert named.data["finding"]["rule"] == "contained-memory-error"


def test_what_else_waits() -> None:
    told = said(ask(incident("left-behind"), query(Intent.NEXT)))
    assert told.startswith("ASK_PLATFORM")


def test_nothing_to_do() -> None:
    reply = ask(incident("healthy"), query(Intent.NEXT))
    assert reply.headline == "Nothing: no finding asks for an action."
    assert ask(diagnose([], rules()), query(Intent.NEXT)).settled is False


def test_the_next_question() -> None:
    goal = goal_of(query(Intent.DIAGNOSE, slots=Slots(xid=(79,))), rules(), None)
    d = diagnose([], rules())
    made = plan(goal, log(OFF_BUS).facts, rules(), [], [], None)
    assert made.questions
    undecided = Plan((), (), made.questions, made.open, decided=False)
    reply = ask(d, query(Intent.NEXT), plan=undecided)
    assert reply.headline == made.questions[0].text.en
    assert reply.suggestions[0] == "why do you ask?"
    assert ask(None, query(Intent.NEXT), plan=undecided).headline == reply.headline
    assert ask(None, query(Intent.NEXT)).headline.startswith("Nothing was looked at yet")


def test_nothing_is_to_be_done_for_a_gpu_that_is_fine() -> None:
    """After "is gpu 3 ok?" the node's own trouble is not the answer, but it is named."""
    base = query(Intent.VERDICT, slots=Slots(gpu=(3,)))
    reply = ask(incident("overheating"), query(Intent.NEXT), base=base)
    assert reply.headline == "Nothing needs doing for GPU 3 (0000:5d:00.0)."
    assert "CHECK_MECHANICALS" in said(reply)
    proof = ask(incident("overheating"), query(Intent.EVIDENCE), base=base)
    assert proof.headline.startswith("Nothing wrong was found on GPU 3 (0000:5d:00.0). ")
    hot = ask(incident("overheating"), query(Intent.NEXT), base=query(Intent.VERDICT, slots=Slots(gpu=(1,))))
    assert hot.headline.startswith("CHECK_MECHANICALS")


def test_of_a_consequence_the_cause_is_dealt_with_first() -> None:
    d = incident("off-the-bus")
    symptom = next(f for f in d.findings if f.role is Role.SYMPTOM and f.advice.bucket != d.roots[0].advice.bucket)
    reply = ask(d, query(Intent.NEXT), base=query(Intent.DIAGNOSE), focus=symptom.id)
    assert reply.headline.startswith(str(d.roots[0].advice.bucket))
