"""Questions about all that was given: which, when, in short, of what kind, and what of the others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.diagnosis import diagnose
from assistant.dialogue.which import WHOLE_NODE
from assistant.intent.parse import understand
from assistant.intent.query import Intent
from assistant.intent.window import AROUND, DAY, window_of
from assistant.reply import Reply
from assistant.sources import parse_text
from rules.loader import load
from tests.assistant.dialogue.talk import ask, log, query, said
from tests.diagnoses import incident

LINE = "[{at}.0] NVRM: Xid (PCI:0000:{bus}:00): {code}, pid=1882, name=python3, {text}"
DBE, LOST = "DBE (double bit error) ECC Error: Uncorrectable error in HBM3", "GPU has fallen off the bus."


def of(text: str, *lines: str) -> Reply:
    return ask(log("\n".join(lines) + "\n"), understand(text))


@pytest.mark.parametrize(
    ("said", "intent"),
    [
        ("which gpu?", Intent.WHICH), ("which of my gpus is broken", Intent.WHICH), ("哪张卡坏了", Intent.WHICH),
        ("which gpus can I still use?", Intent.WHICH), ("哪些卡还能用", Intent.WHICH), ("which process did it", Intent.WHICH),
        ("show me the errors", Intent.EVENTS), ("summarize this", Intent.SUMMARY), ("写个工单", Intent.SUMMARY),
        ("is it hardware or software?", Intent.CAUSE), ("硬件问题还是软件问题", Intent.CAUSE),
        ("which driver do I need for CUDA 12.4?", Intent.EXPLAIN), ("which gpu is faster, A100 or L40S?", Intent.EXPLAIN),
    ],
)  # fmt: skip
def test_what_is_asked_of_the_whole(said: str, intent: Intent) -> None:
    assert understand(said).intent is intent


@given(st.sampled_from((48, 79)), st.sampled_from(("3b", "9d", "c3")))
def test_the_gpu_and_the_program_that_a_line_names_are_told(code: int, bus: str) -> None:
    line = LINE.format(at=100, bus=bus, code=code, text=DBE if code == 48 else LOST)
    for text in ("which gpu is it?", "哪张卡坏了"):
        assert f"0000:{bus}:00.0" in of(text, line).headline
    assert "1882" in of("which process did it?", line).headline


def test_what_takes_the_node_down_takes_the_others_down() -> None:
    reset, reboot = (
        of("can the other gpus keep running?", LINE.format(at=1, bus="3b", code=c, text=t))
        for c, t in ((48, DBE), (79, LOST))
    )
    assert reset.headline.startswith("Nothing that was read is about another GPU")
    assert any(str(bucket) in reboot.headline for bucket in WHOLE_NODE)


def test_events_stand_in_the_order_of_time_and_a_summary_quotes_one() -> None:
    lines = [LINE.format(at=at, bus="3b", code=48, text=DBE) for at in (900, 100)]
    shown = said(of("what happened first?", *lines))
    assert shown.index("100") < shown.index("900")
    assert "1882" in said(of("write a ticket", *lines))


def test_the_worst_leads_and_times_of_two_clocks_make_no_span() -> None:
    line = "{at} oak kernel: NVRM: Xid (PCI:0000:3b:00): {code}, pid=1882, name=python3, {text}\n"
    dated = line.format(at="2026-08-19T02:40:56+00:00", code=79, text=LOST)
    yearless = line.format(at="Aug 19 02:51:00", code=45, text="Ch 00000001")
    about = diagnose([*parse_text("log", dated), *parse_text("log", yearless)], load())
    headline = ask(about, query(Intent.EVENTS, "what happened?")).headline
    assert headline.index("fallen off the bus") < headline.index("2 events, 1 of them at 2026-08-19 02:40:56")


def test_a_restart_of_the_job_is_judged_and_nothing_has_to_be_assumed() -> None:
    assert of("what if I just restart the job?", LINE.format(at=1, bus="3b", code=48, text=DBE)).headline.startswith(
        "No"
    )


@given(st.integers(0, DAY - 1), st.integers(0, DAY - 1))
def test_a_time_that_is_named_means_half_an_hour_around_it(at: int, other: int) -> None:
    window = window_of(f"what happened at {at // 60}:{at % 60:02d}?", "")
    assert window is not None
    apart = min((at - other) % DAY, (other - at) % DAY)
    assert window.holds(other) is (apart <= AROUND)


def test_the_rank_that_is_missing_is_named_and_not_those_that_report() -> None:
    line = (
        "[rank{0}]:[E612 03:40:26.335780633 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=48211, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600022 milliseconds before timing out."
    )
    lines = "\n".join(line.format(rank) for rank in (0, 1, 2, 4))
    reply = ask(diagnose(parse_text("log", lines), load()), understand("which rank?"))
    assert "rank 3" in reply.headline


def test_a_reset_is_not_enough_where_the_spare_rows_are_used_up() -> None:
    told = understand("row remap failure is yes and 2 uncorrectable volatile ECC errors on gpu 1. will a reset fix it?")
    assert not said(ask(diagnose(told.observations, load()), told)).startswith("Yes")


def test_a_state_that_was_looked_at_is_denied_with_the_value() -> None:
    about = incident("row-remap-pending")
    assert ask(about, understand("is it overheating?")).headline.startswith("No: ")
    assert not ask(about, understand("why is it overheating?")).headline.startswith("No: ")


def test_what_is_left_alone_stays_and_why_not_reboot_is_judged() -> None:
    line = LINE.format(at=1, bus="3b", code=48, text=DBE)
    for text in ("what if we do nothing until monday", "不管它会怎样"):
        assert of(text, line).headline.startswith(("It does not mend itself", "不会自行恢复"))
    assert of("why not just reboot it?", line).headline.startswith("No, rebooting the node is not called for")


def test_heat_is_denied_beside_a_power_brake_and_a_low_clock_is_not() -> None:
    about = incident("power-brake")
    assert ask(about, understand("is it overheating?")).headline.startswith("No: ")
    assert not ask(about, understand("is it throttling?")).headline.startswith("No")
