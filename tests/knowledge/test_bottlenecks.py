"""What people ask of a trace by name."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from knowledge.bottlenecks import Bottleneck, asked_about, bottlenecks, measures
from knowledge.facts import vocabulary
from rules.loader import load
from tests.cases import each

ALL = list(bottlenecks().values())
HAN = re.compile("[\u4e00-\u9fff]")


@each("entry", ALL, ids=lambda b: b.id)
def test_an_entry_names_rules_and_facts_that_are_there(entry: Bottleneck) -> None:
    assert set(entry.rules) <= {r.id for r in load().rules}
    for name in (*entry.facts, *entry.same, *entry.whole, *entry.names):
        assert name in vocabulary(), name
    assert set(entry.over) <= set(bottlenecks()) - {entry.id}
    assert not HAN.search(entry.title.en)


@each(
    ("said", "ids"),
    [
        ("is it compute bound or communication bound?", ["compute", "communication"]),
        ("是通信受限还是计算受限", ["communication", "compute"]),
        ("would more num_workers help the data loader?", ["more-workers"]),
        ("does communication overlap with compute?", ["overlap"]),
        ("should I use torch.compile?", ["compile"]),
        ("how much would CUDA-graphs gain", ["cuda-graphs"]),
        ("加 worker 有用吗", ["more-workers"]),
        ("why is training slow?", []),
        ("is it a cable problem?", []),
        ("", []),
    ],
)
def test_a_sentence_names_them_in_its_order(said: str, ids: list[str]) -> None:
    assert [b.id for b in asked_about(said)] == ids


def test_a_phrase_counts_as_whole_words() -> None:
    assert not asked_about("the template is translated")


def test_every_phrase_of_the_data_is_understood() -> None:
    from knowledge.compiled import shard

    for entry in shard("bottlenecks"):
        for lang in ("en", "zh"):
            for phrase in entry["said"][lang]:
                assert asked_about(phrase), phrase


def test_a_measure_goes_with_the_same_of_the_whole_job() -> None:
    found = measures("trace.idle.data_loader.share")
    assert found is not None
    assert found.same == ("job.step.data_wait.share",)
    assert measures("gpu.ecc.mode") is None


@given(st.text(max_size=300))
def test_any_text_is_looked_at(text: str) -> None:
    assert all(b.id in bottlenecks() for b in asked_about(text))
