"""Why: the chain, the focus, the reason of a question, and why it is considered fine."""

from __future__ import annotations

import pytest

from assistant.dialogue import Turn, answerer
from assistant.intent.query import Intent, Slots
from assistant.planner import goal_of, plan
from assistant.session.state import Pending
from knowledge.language import Text
from knowledge.observation import node
from tests.assistant.dialogue.talk import OFF_BUS, ask, log, query, rules, said, texts
from tests.diagnoses import incident


def test_the_chain() -> None:
    reply = ask(log(OFF_BUS), query(Intent.WHY))
    assert texts(reply) == [
        "UNHEALTHY, because GPU 0000:3b:00.0 has fallen off the bus (probable).",
        "It holds because",
        "[100.0] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus. (kmsg:1)",
        "rule: gpu-fell-off-bus: The driver read only ones from the GPU: it no longer answers on PCIe. Power delivery, "
        "overheating, a loose card or riser, or a dead GPU are the usual causes.",
        "action: RESTART_BM: Drain and reboot the node.",
        "action from: NVIDIA's catalogue: [100.0] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, "
        "GPU has fallen off the bus. (kmsg:1)",
    ]
    assert reply.focus == "gpu-fell-off-bus@0000:3b:00.0"
    assert reply.data["said_by"] == "catalogue"


def test_the_chain_in_chinese() -> None:
    reply = ask(log(OFF_BUS), query(Intent.WHY, lang="zh"))
    assert texts(reply)[:3] == [
        "异常，因为“GPU 0000:3b:00.0：从总线上掉线”（很可能）。",
        "成立依据",
        "[100.0] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, "
        "GPU has fallen off the bus.（kmsg:1）",
    ]


def test_symptoms_are_folded_and_counted() -> None:
    told = said(ask(incident("off-the-bus"), query(Intent.WHY)))
    assert "explains: " in told
    assert " more\n" in told, "some are named, the rest is counted"
    assert "action from: the driver's own recovery action (XID 154): 2026-08-19" in told
    assert "answers the driver's management interface: no" in told, "what agrees"


def test_a_code_that_is_named_takes_the_focus() -> None:
    d = incident("double-bit-error")
    reply = ask(d, query(Intent.WHY, "why xid 63", slots=Slots(xid=(63,))))
    assert reply.focus == "row-remap-recorded@ash-a100-17/0000:48:00.0"
    assert reply.headline == (
        "GPU 2 (0000:48:00.0): A memory repair was recorded (confirmed). "
        "It is a consequence of this. GPU 2 (0000:48:00.0): Uncorrectable memory error (double-bit ECC)."
    )
    again = ask(d, query(Intent.WHY), focus=reply.focus)
    assert again.headline == reply.headline
    by_rule = ask(d, query(Intent.WHY, topics=("rule row-remap-pending",)))
    assert by_rule.data["finding"]["rule"] == "row-remap-pending"


def test_a_gpu_that_is_named() -> None:
    d = incident("power-brake")
    assert ask(d, query(Intent.WHY, slots=Slots(gpu=("0000:ab:00.0",)))).focus.endswith("0000:ab:00.0")


def test_what_no_finding_is_about() -> None:
    reply = ask(incident("double-bit-error"), query(Intent.WHY, slots=Slots(xid=(99,))))
    assert reply.headline == "There is no finding about xid 99."
    assert reply.suggestions[0] == "why not xid 99?"
    gone = ask(incident("double-bit-error"), query(Intent.WHY, slots=Slots(gpu=(77,))))
    assert "There is: " in said(gone)


def test_a_ruled_out_finding_says_what_speaks_against_it() -> None:
    d = incident("off-the-bus")
    reply = ask(d, query(Intent.WHY, topics=("rule gpu-lost-without-xid",)))
    assert "ruled out" in reply.headline
    assert "What speaks against it" in texts(reply)


@pytest.mark.parametrize(
    ("lang", "text"), [("en", "why do you ask?"), ("en", "why are you asking me that"), ("zh", "为什么问这个？")]
)
def test_why_a_question_is_asked(lang: str, text: str) -> None:
    d = log(OFF_BUS)
    goal = goal_of(query(Intent.DIAGNOSE, slots=Slots(xid=(79,))), rules(), d.facts)
    asked = plan(goal, d.facts, rules(), [], [], None)
    assert asked.questions, "the maintenance question"
    reply = ask(d, query(Intent.WHY, text, lang), plan=asked)
    assert reply.data["fact"] == "node.maintenance.gpu_reset"
    assert reply.data["rules"] == ["gpu-fell-off-bus"]
    yes, no = reply.data["answers"].values()
    assert (
        yes
        == {
            "en": "no longer: GPU 0000:3b:00.0 has fallen off the bus",
            "zh": "不再成立：GPU 0000:3b:00.0：从总线上掉线",
        }[lang]
    )
    assert no == {"en": "nothing changes", "zh": "没有变化"}[lang]
    assert ask(d, query(Intent.WHY, "why", lang), plan=asked).data["answer"] == "why", "a plain why is about the answer"


def test_why_it_is_fine() -> None:
    reply = ask(incident("healthy"), query(Intent.WHY))
    assert reply.headline.startswith("Nothing wrong was found in what was given (8 GPUs seen): no rule")
    told = said(reply)
    assert "The GPU inventory: " in told
    assert "The kernel log: read (" in told
    assert "5709 of 5863 values could be read" in told


def test_before_anything_was_looked_at() -> None:
    for lang, start in (("en", "Nothing was looked at yet"), ("zh", "还没有查看过")):
        reply = ask(None, query(Intent.WHY, lang=lang))
        assert reply.headline.startswith(start)
        assert not reply.settled


def test_why_of_what_waits_for_an_answer() -> None:
    """The question that was put, or the consent that was asked for, though the plan has other ones first."""
    d = log(OFF_BUS)
    text = Text("Is somebody servicing it?", "有人在维护吗？")
    waits = Pending(
        "node.maintenance.gpu_reset",
        node(),
        reason=Text("It may be planned.", "可能是计划内的。"),
        text=text,
        kind="bool",
    )
    for lang, head in (("en", "It may be planned."), ("zh", "可能是计划内的。")):
        t = Turn(query(Intent.WHY, "why do you ask?", lang), lang, rules(), d, pending=waits)
        reply = answerer(Intent.WHY).answer(t)
        assert reply.headline == head
        assert reply.data["rules"] == ["gpu-fell-off-bus"]
        assert not reply.settled
    consent = Turn(query(Intent.WHY, "why do you ask?"), "en", rules(), d, pending=Pending(probes=("dcgm-diag",)))
    assert answerer(Intent.WHY).answer(consent).headline == "To run dcgm-diag needs your consent."
