"""What to do: the vendor's word, its risk, the first steps with their commands filled in; tasks; the finding in focus."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.dialogue import Turn
from assistant.dialogue.fix import answer
from assistant.intent.parse import understand
from assistant.intent.query import Intent, Query, Slots
from assistant.render.sheet import Code, Heading
from assistant.reply import Reply
from knowledge.catalog.xid import all_xids
from knowledge.howto import howtos
from knowledge.runbook import runbook
from tests.assistant.dialogue.talk import OFF_BUS, ask, log, query, rules, said
from tests.cases import each

NO_SLOTS = Slots()


def fix(text: str, lang: str = "en", *, slots: Slots = NO_SLOTS, topics: tuple[str, ...] = ()) -> Reply:
    return ask(None, query(Intent.FIX, text, lang, slots=slots, topics=topics))


@each("entry", lambda: [e for e in all_xids() if e.immediate][::7], ids=lambda e: str(e.code))
def test_the_action_of_a_code_is_nvidias(entry: object) -> None:
    code, word = entry.code, str(entry.immediate)  # type: ignore[attr-defined]
    for lang in ("en", "zh"):
        reply = fix(f"how do I fix xid {code}", lang, slots=Slots(xid=(code,)))
        assert reply.headline.startswith(word), reply.headline
        assert reply.data["bucket"] == word
        assert "NVIDIA" in said(reply)


def test_the_first_steps_of_its_runbook() -> None:
    reply = fix("how do I fix xid 79 on gpu-12", slots=Slots(xid=(79,), node=("gpu-12",), gpu=("0000:3b:00.0",)))
    book = runbook(reply.data["runbook"])
    headings = [p.text for p in reply.parts if isinstance(p, Heading)]
    assert [h for h in headings if h[:1].isdigit()] == [f"{n}. {s.title.en}" for n, s in enumerate(book.steps[:3], 1)]
    commands = [line for p in reply.parts if isinstance(p, Code) for line in p.lines]
    assert any("0000:3b:00.0" in c for c in commands)
    assert not any("{gpu_pci}" in c for c in commands)
    assert "disruptive" in said(reply)
    assert f"show runbook {book.id}" in reply.suggestions


@each(("text", "node"), [("how do I drain a node in slurm", "NODE"), ("how do I drain this node in slurm", "n1")])
def test_any_node_is_not_the_one_that_is_asked_on(text: str, node: str) -> None:
    reply = answer(Turn(understand(text), "en", rules(), None, host="n1"))
    assert f"nodename={node} " in " ".join(line for p in reply.parts if isinstance(p, Code) for line in p.lines)


def test_a_place_that_cannot_stand_in_a_command_stays_open() -> None:
    reply = fix("fix xid 79", slots=Slots(xid=(79,), gpu=("; rm -rf /",), node=("--help",)))
    assert "rm -rf" not in said(reply)
    assert "--help" not in said(reply)


@each(
    ("text", "lang", "task"),
    [
        ("how do I enable ECC", "en", "enable-ecc"),
        ("how do I enable ECC on gpu 3", "en", "enable-ecc"),
        ("turn off ecc", "en", "disable-ecc"),
        ("how to reset the gpu", "en", "reset-gpu"),
        ("set the power limit", "en", "set-power-limit"),
        ("drain the node", "en", "drain-slurm"),
        ("如何开启 ECC", "zh", "enable-ecc"),
        ("怎么排空节点", "zh", "drain-slurm"),
        ("怎么更新驱动", "zh", "update-driver"),
    ],
)
def test_tasks(text: str, lang: str, task: str) -> None:
    reply = fix(text, lang, slots=Slots(gpu=(3,)) if "gpu 3" in text else NO_SLOTS)
    assert reply.data["topics"] == [f"howto {task}"]
    assert reply.headline == howtos()[task].about.in_(lang)
    if "gpu 3" in text:
        assert "nvidia-smi -i 3 -e 1" in said(reply)


@pytest.mark.slow
@each("name", lambda: sorted(howtos()))
def test_every_task_answers_to_its_first_phrase(name: str) -> None:
    h = howtos()[name]
    for text, lang in ((h.ask[0], "en"), (h.title.en, "en"), (h.title.zh, "zh")):
        assert fix(text, lang).data["topics"] == [f"howto {name}"], text


@each(
    ("text", "topic"),
    [
        ("what should I do about row remap pending", "rule row-remap-pending"),
        ("how do I fix ncclSystemError", "nccl nccl-systemerror"),
        ("how do I fix cudaErrorIllegalAddress", "cuda cudaErrorIllegalAddress"),
        ("how do I fix slow training", "symptom slow-training"),
        ("how do I fix cuda cudaErrorLaunchFailure", "cuda cudaErrorLaunchFailure"),
        ("how do I fix rule gpu-fell-off-bus", "rule gpu-fell-off-bus"),
    ],
)
def test_named_problems(text: str, topic: str) -> None:
    reply = fix(text)
    assert reply.data["topics"] == [topic]
    assert reply.settled


def test_several_codes() -> None:
    reply = fix("fix xid 48 and 63", slots=Slots(xid=(48, 63)))
    assert reply.data["answer"] == "fix"
    assert reply.data["topics"] == ["xid 48", "xid 63"]


def test_a_code_that_does_not_exist_has_no_action() -> None:
    reply = fix("how do I fix xid 999", slots=Slots(xid=(999,)))
    assert "999" in reply.headline
    assert "catalogue" in reply.headline
    assert not any(isinstance(p, Code) for p in reply.parts)


def test_the_finding_that_the_talk_is_about() -> None:
    d = log(OFF_BUS)
    reply = ask(d, query(Intent.FIX, "how do I fix it"))
    assert reply.focus == d.findings[0].id
    assert "RESTART_BM" in reply.headline
    named = ask(d, query(Intent.FIX, "how do I enable ECC"))
    assert named.data["topics"] == ["howto enable-ecc"]


@pytest.mark.parametrize("text", ["how do I fix my printer", "how to bake bread", "怎么做红烧肉"])
def test_nothing_is_made_up(text: str) -> None:
    reply = fix(text, "zh" if text[0] > "z" else "en")
    assert not reply.settled
    assert not any(isinstance(p, Code) for p in reply.parts)


@given(
    st.text(max_size=100), st.sampled_from(["en", "zh"]), st.booleans(), st.lists(st.integers(0, 99_999), max_size=2)
)
def test_any_text(text: str, lang: str, found: bool, codes: list[int]) -> None:
    q = Query(text, lang, Intent.FIX, Slots(xid=tuple(codes)))
    turn = Turn(q, lang, rules(), log(OFF_BUS) if found else None)
    reply = answer(turn)
    assert reply.headline
    assert said(reply) == said(answer(turn))
    json.dumps(reply.data, default=str)
