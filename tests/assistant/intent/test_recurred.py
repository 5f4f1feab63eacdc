"""That a fault came back, in words: after what, and never of what is over or of the cure itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.intent.parse import understand
from assistant.intent.recurred import FACT, back_after, ended_by_cure, with_any_program
from knowledge.observation import Event

CURES = (
    ("reboot", "the reboot", "重启"),
    ("reset", "a gpu reset", "复位"),
    ("reseat", "reseating it", "重新插拔"),
    ("replacement", "we swapped the card", "换卡"),
)


@given(st.sampled_from(CURES), st.sampled_from(("xid 79", "xid 48", "xid 119")))
def test_what_came_back_after_a_cure_is_told_with_it(cure: tuple[str, str, str], fault: str) -> None:
    """In both languages."""
    value, en, zh = cure
    for sentence in (f"{fault} came back after {en}", f"after {en} {fault} is there again", f"{zh}后又出现 {fault}"):
        assert [o.value for o in understand(sentence).observations if o.fact == FACT] == [value], sentence


@pytest.mark.parametrize(
    "sentence",
    [
        "xid 79, after the reboot it is gone",
        "xid 79 has not come back after the reset",
        "重启后好了",
        "should I reset it again?",
        "can I reboot the node",
        "复位后没再出现",
    ],
)
def test_what_is_over_or_only_thought_of_did_not_come_back(sentence: str) -> None:
    """A cure alone is no fault."""
    assert back_after(sentence) == ""


@pytest.mark.parametrize(
    ("sentence", "value"),
    [
        ("the gpu came back after the reboot but fell off again", "reboot"),
        ("gpu was lost, the error came back after a reset", "reset"),
        ("掉卡，重启后又出现了", "reboot"),
        ("rebooted already, xid 79 is still there", "reboot"),
    ],
)
def test_a_fault_that_came_back_beside_its_device_is_told(sentence: str, value: str) -> None:
    """That the device is back says nothing of the fault, neither way."""
    assert back_after(sentence) == value


@pytest.mark.parametrize(
    "sentence",
    [
        "third xid 79 this week",
        "xid 79 第三次了",
        "xid 79 twice this month",
        "xid 48 three times on that gpu since monday",
        "xid 95 twice on the same card",
        "xid 48 这周在同一张卡上出现了两次",
    ],
)
def test_so_many_times_is_told_without_a_cure(sentence: str) -> None:
    """It was dealt with somehow in between."""
    assert back_after(sentence) == "handled"


@pytest.mark.parametrize(
    "sentence",
    [
        "xid 31 keeps happening on the same gpu even with different jobs",
        "xid 31 again on gpu 5, different job this time",
        "gpu 2 又报 xid 31，换了三个程序都一样",
    ],
)
def test_a_fault_that_stays_whichever_program_runs_is_told_so(sentence: str) -> None:
    """A page fault is the program's own, as long as it is one program's."""
    told = [o.value for o in understand(sentence).observations if o.fact == "xid"]
    assert [isinstance(v, Event) and v.get("any_program") for v in told] == [True]


@pytest.mark.parametrize(
    "sentence",
    [
        "xid 31 on gpu 5 again",
        "two jobs died with xid 31",
        "换了卡还是报 xid 31",
        "two jobs keep hitting xid 31, always on different gpus",
        "不同任务在不同的卡上都报 xid 31",
    ],
)
def test_what_came_again_alone_is_no_program_changed(sentence: str) -> None:
    assert not with_any_program(sentence)


@pytest.mark.parametrize(
    "sentence", ["no devices were found after the reboot", "重启后 nvidia-smi 报 No devices were found"]
)
def test_a_driver_that_finds_nothing_after_a_reboot_was_not_helped_by_it(sentence: str) -> None:
    assert [o.value for o in understand(sentence).observations if o.fact == FACT] == ["reboot"]


@pytest.mark.parametrize(
    ("value", "sentences"),
    [
        ("moved", ("swapped the gpu to another slot and error followed the gpu. xid 79 again", "换了个插槽错误跟着卡走，还是 xid 79",
                   "put the same gpu in another server and it fails there too with xid 79", "swapped gpu 2 and gpu 5, xid 48 moved to gpu 5")),
        ("replacement", ("put a new gpu in the same slot, xid 79 again", "新卡插同一个槽位也掉卡 xid 79", "replaced the card, new one in the same slot also throws xid 79", "xid 79 stays with the slot after swapping cards",
                         "同一个槽位换了张卡还是 xid 79", "错误没有跟着卡走，留在原来的插槽，xid 79")),
        ("", ("moved the card to another slot and xid 79 is gone", "should I try the card in another slot, xid 79?", "follow the runbook for the gpu?")),
    ],
)  # fmt: skip
def test_what_goes_with_the_card_is_the_card_and_what_stays_is_the_place(
    value: str, sentences: tuple[str, ...]
) -> None:
    """The swap decides it, whatever else was done."""
    assert {back_after(s) for s in sentences} == {value}


def test_what_was_over_each_time_and_came_again_came_back() -> None:
    assert back_after("XID 79 之后重启又好了，一周内第二次了") == "reboot"
    assert back_after("刚换的新卡又报 XID 79，同一个槽位") == "replacement"


@given(
    st.sampled_from(CURES),
    st.sampled_from(("ok?", "ok to let it train?", "is it fine to use?", "is that ok", "all fine?", "healthy?")),
)
def test_a_yes_that_is_asked_for_ends_no_fault(cure: tuple[str, str, str], asked: str) -> None:
    value, en, _ = cure
    assert back_after(f"xid 79 after {en} it is still there, {asked}") == value
    assert not ended_by_cure(f"xid 79 after {en}, {asked}")
    assert ended_by_cure(f"xid 79, all fine since {en}, {asked}")


@pytest.mark.parametrize("wanted", ["GPU Reset Required", "the gpu needs a reset", "reboot recommended", "需要复位"])
def test_a_cure_that_is_asked_for_is_none_that_was_done(wanted: str) -> None:
    assert not ended_by_cure(f"xid 154, {wanted}, the job is healthy, go on")
