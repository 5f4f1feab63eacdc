"""Counters that were read answer what is asked of them: yes, no, who; and never worse than `check` says."""

from __future__ import annotations

from assistant.diagnosis import Diagnosis, diagnose
from assistant.intent.parse import understand
from assistant.intent.query import Intent
from assistant.sources import parse_text
from tests.assistant.dialogue.talk import ask, query, rules
from tests.cases import each

PMON = """# gpu         pid  type    sm   mem   enc   dec   jpg   ofa    command
# Idx           #   C/G     %     %     %     %     %     %    name
    0      41822     C    39    11     -     -     -     -    python3
    0      60044     C    23     4     -     -     -     -    tritonserver
"""


def _csv(busy: int, watts: int) -> Diagnosis:
    head = "timestamp, index, name, utilization.gpu [%], power.draw [W], power.limit [W], memory.used [MiB], clocks_event_reasons.sw_power_cap\n"
    rows = [
        f"2026/11/28 09:12:{n:02}.175, 0, NVIDIA H100 80GB HBM3, {busy} %, {watts}.00 W, 700.00 W, 71234 MiB, Not Active"
        for n in range(30)
    ]
    return diagnose(parse_text("input", head + "\n".join(rows) + "\n"), rules())


@each(
    ("said", "busy", "watts", "begins"),
    [
        ("is this gpu actually working?", 100, 128, "No, not as it should:"),
        ("is this gpu actually working?", 99, 650, "Yes:"),
        ("is it idle?", 0, 118, "Yes:"),
        ("are these gpus idle?", 99, 650, "No:"),
        ("能不能再快点", 100, 128, "能："),
        ("is it throttled?", 99, 650, "What was read names no reason that lowers the clocks"),
    ],
)
def test_the_counters_answer(said: str, busy: int, watts: int, begins: str) -> None:
    d = _csv(busy, watts)
    reply = ask(d, query(Intent.DIAGNOSE, said, understand(said).lang))
    assert reply.headline.startswith(begins), reply.headline
    assert reply.diagnosis is not None
    assert reply.diagnosis.verdict.state is d.verdict.state


def test_who_shares_it_is_named() -> None:
    d = diagnose(parse_text("input", PMON), rules())
    headline = ask(d, query(Intent.DIAGNOSE, "who shares this gpu")).headline
    assert "python3 (pid 41822)" in headline
    assert "tritonserver (pid 60044)" in headline
