"""Published causes: the counts, their sums, and the order they give."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge import priors
from knowledge.priors import CauseClass, Publication
from tests.cases import each

HAN = re.compile("[\u4e00-\u9fff]")
ALL = list(priors.publications().values())


@each("entry", ALL, ids=lambda p: p.id)
def test_a_publication_is_complete(entry: Publication) -> None:
    assert entry.sources
    texts = [entry.title, entry.fleet, *(c.label for c in entry.causes), *(f.text for f in entry.figures)]
    assert all(t.en and HAN.search(t.zh) and not HAN.search(t.en) for t in texts)
    assert entry.causes or entry.figures
    if entry.causes:
        assert sum(c.value for c in entry.causes) == pytest.approx(entry.total)
        assert sum(entry.class_shares().values()) == pytest.approx(1)
        assert sum(entry.share(c.id) or 0 for c in entry.causes) == pytest.approx(1)


def test_llama_counts_not_its_printed_percentages() -> None:
    llama = priors.publications()["meta-llama3-405b"]
    assert llama.total == 419
    assert round(100 * (llama.share("faulty-gpu") or 0), 1) == 35.3  # the paper prints 30.1
    in_gpu = ("faulty-gpu", "hbm3", "gpu-sram", "gpu-processor", "silent-corruption", "thermal-sensor")
    assert round(100 * sum(llama.share(c) or 0 for c in in_gpu), 1) == 64.0  # the paper prints 58.7
    assert round(100 * (llama.share("network") or 0), 1) == 8.4
    assert round(100 * (llama.share("software-bug") or 0), 1) == 12.9
    mtti, per = llama.figure("mtti"), llama.figure("gpu-hours-per-interruption")
    assert mtti is not None
    assert per is not None
    assert llama.days is not None
    assert llama.gpus is not None
    assert mtti.value == pytest.approx(llama.days * 24 / 419, abs=0.01)
    assert per.value == pytest.approx(llama.days * 24 * llama.gpus / 419, abs=5)
    assert len(llama.disagrees) >= 3
    assert llama.share("no-such-cause") is None


def test_figures_that_were_only_recalled_say_so() -> None:
    assert priors.publications()["meta-rsc"].certainty == "memory"
    assert {p.certainty for p in ALL} == {"read", "memory"}


def test_the_order_of_causes() -> None:
    assert priors.order([CauseClass.STORAGE, CauseClass.NETWORK, CauseClass.GPU, CauseClass.GPU]) == [
        CauseClass.GPU, CauseClass.NETWORK, CauseClass.STORAGE,
    ]  # fmt: skip


@given(st.lists(st.sampled_from(list(CauseClass))))
def test_the_order_does_not_depend_on_the_input(classes: list[CauseClass]) -> None:
    ordered = priors.order(classes)
    assert set(ordered) == set(classes)
    assert len(ordered) == len(set(classes))
    assert ordered == priors.order(reversed(classes))
    assert ordered == [c for c in priors.order(CauseClass) if c in ordered]
