"""What a clause rests on: one statement, in its sense and with its roles. The laws, and sly lies of true words only."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.narrate.alike import IMPLIED, SYNONYMS
from assistant.narrate.clauses import content, kinds
from assistant.narrate.clauses import given as lends
from assistant.narrate.fence import Narration, Withheld
from assistant.narrate.material import Kind
from assistant.narrate.roles import acts, turned
from assistant.narrate.statements import Mode, statements
from assistant.narrate.vocabulary import with_alike
from assistant.narrate.wording import stem
from tests.assistant.narrate.narrate_lab import fresh, made, say

HALVES = {
    "dev": 36,
    "final": 20,
}  # of 50 each; final was never looked at. Far from the 48 that are wanted: the lies come first
CASES = ("off-the-bus", "overheating", "small-shm", "half-width", "cpu-limit", "rail-down", "driver-hangs")

# True words in a false sentence: each once passed a fence that looked at words alone.
SLY = {
    "off-the-bus en": (
        "The reboot made {gpu_1} fall off the bus.", "All GPUs have fallen off the bus.", "The bus fell off.", "{gpu_1} is back on the bus.",
        "The node has been drained and rebooted.", "Reboot the GPU.", "Drain the GPU.", "The driver is the problem.", "The driver does not answer.",
        "Power, cooling and seating were inspected.", "The problem is over now.", "Inspect power before the reboot.", "The management interface is down.",
    ),
    "overheating en": ("The job heats up the GPU.", "Move the GPU elsewhere.", "The GPU cools itself.", "The cooling works.", "Heat lowers its temperature."),
    "small-shm en": ("The container is too small for the job.", "Give the node more memory.", "The node has too little memory."),
    "half-width en": ("The other GPUs have fewer lanes.", "The GPU waits for the job.", "The card is not seated well."),
    "cpu-limit en": ("The GPU holds the container back.", "Drop the container.", "The CPU limit is too high.", "Raise the limit of the GPU."),
    "driver-hangs en": ("The GSP hangs the GPU.", "The firmware waited for the driver.", "Stop the driver.", "Use the GPU until it has been reset."),
    "power-brake en": ("The GPU sends the signal to the server.", "The clocks brake the power.", "All GPUs are affected."),
    "nfs-hung en": ("The node does not answer.", "The server is a victim.", "Ask the platform team to reset the GPU."),
    "overheating zh": ("降频使 {gpu_1} 过热。", "将该 GPU 迁走。", "该 GPU 等待作业。", "GPU 使硬件过热。", "节点过热。"),
    "driver-hangs zh": ("请停止 GPU。", "GPU 已复位。", "GSP 在等待驱动。", "复位 GPU 后再停止进程。", "请复位驱动。"),
}  # fmt: skip


@pytest.mark.parametrize("where", SLY)
def test_true_words_in_a_false_sentence_do_not_pass(where: str) -> None:
    case, lang = where.split()
    passed = [t for t in SLY[where] if not isinstance(say(made(case, lang), {"text": t, "cites": ["f1"]}), Withheld)]
    assert passed == []


@pytest.mark.parametrize("half", HALVES)
def test_faithful_narratives_of_another_hand_pass(half: str) -> None:
    chosen = [o for o in fresh() if o["half"] == half]
    assert len(chosen) == 50
    passed = sum(isinstance(say(made(o["case"], o["lang"]), *o["say"]), Narration) for o in chosen)
    assert passed >= HALVES[half], passed


@settings(max_examples=30)
@given(st.sampled_from(CASES), st.data())
def test_a_name_of_another_finding_does_not_pass_for_a_synonym(case: str, data: st.DataObject) -> None:
    """What one finding is called, told of another that shares no statement with it, is refused with or without synonyms."""
    m = made(case, "en")
    found = [i for i in m.items if i.kind is Kind.FINDING]
    one, two = data.draw(st.sampled_from(found)), data.draw(st.sampled_from(found))
    lent = frozenset().union(*(lends(s.text) for s in statements(two, "en"))) | kinds(two)
    if len(content(one.what) - lent) > 1:
        assert isinstance(say(m, {"text": f"{one.what}.", "cites": [two.id]}), Withheld)


@given(st.sampled_from([row for row in SYNONYMS if len(row) > 1]), st.data())
def test_synonyms_hold_both_ways(row: tuple[str, ...], data: st.DataObject) -> None:
    a, b = data.draw(st.sampled_from(row)), data.draw(st.sampled_from(row))
    assert stem(a) in with_alike([stem(b)])
    assert stem(b) in with_alike([stem(a)])


@given(st.frozensets(st.sampled_from(sorted(IMPLIED))), st.frozensets(st.sampled_from(sorted(IMPLIED))))
def test_more_words_never_lend_less(one: frozenset[str], two: frozenset[str]) -> None:
    assert with_alike(one) <= with_alike(one | two)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("case", CASES)
def test_every_statement_stands_in_its_finding(case: str, lang: str) -> None:
    for item in made(case, lang).items:
        found = statements(item, lang)
        assert found
        assert found[0].name
        assert {s.item for s in found} == {item.id}
        if item.kind is Kind.FINDING and item.actions:
            assert any(s.mode is Mode.DEED for s in found)


def test_a_passive_is_turned_round_before_it_is_compared() -> None:
    source = "The hardware slows the clocks of the card"
    assert not turned("The clocks are slowed by the hardware", source)
    assert turned("The clocks slow the hardware", source)
    assert acts("Drain and reboot the node")[0].object == acts("Drain and reboot the node")[1].object
