"""The plan of tests for machines: what stands in their way is told as people are told it."""

from __future__ import annotations

from assistant.active.choosing import Gpu, Plan
from assistant.active.consent import data, hindrances
from knowledge.language import NO_TEXT, Text
from tests.cases import each

BUSY = Text("gpu0 is in use by pid 77", "gpu0 正被 pid 77 使用")
BLIND = Text("the driver does not answer", "驱动没有应答")


@each(
    ("busy", "blind"),
    [(NO_TEXT, NO_TEXT), (BUSY, NO_TEXT), (NO_TEXT, BLIND)],
)
def test_why_no_test_can_run_is_told_to_machines_too(busy: Text, blind: Text) -> None:
    plan = Plan((), (Gpu(0, "H100", "0000:3b:00.0", busy),), (0,), blind)
    for lang in ("en", "zh"):
        told = data(plan, lang)
        assert [w for w in (told["gpus"][0]["why"], told["blind"]) if w is not None] == hindrances(plan, lang)
        assert told["gpus"][0]["idle"] is (not busy)
