"""Questions in general: the entry whose questions are like them, none where nothing is known, and what is told of a machine left alone."""

from __future__ import annotations

import pytest

from assistant.find import asked
from assistant.intent.parse import understand
from assistant.intent.query import Intent
from knowledge.advice import advice
from knowledge.compiled import shard
from tests.cases import each


@each(
    ("said", "page"),
    [
        ("what goes in gres.conf for an 8 GPU box", "slurm-gres"),
        ("ways to stop unattended upgrades from touching the nvidia driver?", "hold-driver-packages"),
        ("AWQ or FP8 for serving on H100?", "awq-or-gptq"),
        ("how do I find the one bad node out of 128", "find-bad-node"),
        ("机房进风温度多少合适", "inlet-temperature"),
    ],
)
def test_the_nearest_entry_answers(said: str, page: str) -> None:
    query = understand(said)
    assert (query.intent, query.page) == (Intent.EXPLAIN, f"advice {page}")


@each(
    "said",
    [
        "how do I configure bgp on the leaf switches of the gpu pod?",
        "should we use rust for our tooling?",
        "should GPU nodes have two boot drives?",
        "what is the best way to label the racks?",
    ],
)
def test_what_nobody_knows_is_no_look_and_no_other_page(said: str) -> None:
    query = understand(said)
    assert query.intent in (Intent.EXPLAIN, Intent.FIX, Intent.UNKNOWN)
    assert not query.page


@each(
    "said",
    [
        "should I drain node gpu07?",
        "is this node ok for training?",
        "can I keep using it?",
        "temp is 97, ok?",
        "remapped rows 256 256 512 256, can I keep using it?",
        "is the all-reduce overlapped with backward?",
        "why are my gpus idle",
    ],
)
def test_a_question_of_a_machine_or_a_run_stays_one(said: str) -> None:
    assert not understand(said).page.startswith("advice ")


def test_another_thing_counts_against_an_entry() -> None:
    """The verb is that of the task, the thing is not."""
    assert asked.share("how do I turn on ECC", "howto enable-ecc") > 0.9
    assert asked.share("how do I turn on jumbo frames on the switch", "howto enable-ecc") < 0.3


@pytest.mark.slow
def test_each_entry_is_the_nearest_to_its_own_questions() -> None:
    """Where another one is as near, both answer the question; none may be nearer."""
    for e in shard("advice"):
        for said in (*e.get("ask", {}).get("en", ()), *e.get("ask", {}).get("zh", ())):
            best, own = asked.nearest(said, 1)[0], asked.share(said, f"advice {e['id']}")
            assert own > best.score - 0.06, (said, e["id"], best)


def test_what_an_entry_leads_to_exists() -> None:
    from assistant.find import topic

    assert not [(a.id, name) for a in advice().values() for name in a.see if topic(name) is None]
