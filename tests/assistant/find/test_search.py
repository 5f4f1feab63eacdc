"""The search: never raises, is deterministic, finds every page by its own title, loads next to nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from assistant import find, topics
from assistant.find import corpus
from assistant.find.bm25 import PRIOR
from assistant.find.index import Index, hints, wanted
from tests.overlay import compiled_data

ROOT = Path(__file__).parents[3]
WORDS = sorted(find.known_words())
docs = cache(corpus.documents)  # not while tests are collected


def test_every_kind_of_topic_is_found() -> None:
    held = {d.kind for d in docs()}
    assert held == set(topics.kinds())
    assert held <= set(PRIOR)


def test_ids_are_unique() -> None:
    ids = [d.id for d in docs()]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("kind", topics.kinds())
def test_every_topic_has_a_page(kind: str) -> None:
    of_kind = [d for d in docs() if d.kind == kind]
    for d in of_kind[:: max(1, len(of_kind) // 40)]:
        for lang in ("en", "zh"):
            assert topics.topic(kind).sheet([d.id.partition(" ")[2]], lang).title


@pytest.mark.slow
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_its_own_title_finds_a_page_first_or_second(lang: str) -> None:
    """Or pages of the same title do: a rule, its runbook and its XID often share one.

    Of facts, DCGM fields and SXids the title is a sentence that many share in part: they are named by symbols.
    """
    missed = []
    for d in docs():
        title = d.title.in_(lang)
        if d.kind in ("fact", "dcgm", "sxid", "action") or not wanted(title):
            continue
        found = find.search(title, 8)
        same = next((n for n, t in enumerate(found) if t.id == d.id), 99)
        before = [t for t in found[:same] if wanted(t.title.in_(lang)) != wanted(title)]
        if same == 99 and len([t for t in found if wanted(t.title.in_(lang)) == wanted(title)]) > 1:
            continue
        if len(before) > 1 or same == 99:
            missed.append((d.id, [t.id for t in found[:3]]))
    assert len(missed) <= len(docs()) // 100, missed  # titles that say less than a neighbour's: one in a hundred


@pytest.mark.parametrize("kind", ["fact", "dcgm", "cuda", "action", "xid", "sxid"])
def test_its_own_symbol_finds_a_page_first(kind: str) -> None:
    """A symbol as it is written, underscores and dots included; a code with its kind."""
    for d in [d for d in docs() if d.kind == kind][::7]:
        name = d.id if kind in ("xid", "sxid") else d.id.partition(" ")[2]
        if kind in ("xid", "sxid") or "_" in name or "." in name or kind == "cuda":
            assert d.id in [t.id for t in find.search(name, 2)], name


SENTENCE = st.one_of(
    st.text(max_size=200), st.lists(st.sampled_from([*WORDS, "行重映射", "79", "xid"]), max_size=12).map(" ".join)
)


@given(SENTENCE, st.integers(-2, 20))
@example("\ud800 \udfff", 3)
@example("\u202e79 dix", 3)
def test_any_text(text: str, limit: int) -> None:
    found = find.search(text, limit)
    assert found == find.search(text, limit)
    assert len(found) <= max(0, limit)
    assert [t.score for t in found] == sorted((t.score for t in found), reverse=True)
    assert all(0 <= part <= 1.000001 for part in find.named(text).values())
    hints(text)


@given(SENTENCE, st.sets(st.sampled_from(topics.kinds())))
def test_kinds_narrow_and_do_not_reorder(text: str, kinds: set[str]) -> None:
    everything = find.search(text, 5000)
    assert find.search(text, 5000, kinds) == [t for t in everything if t.kind in kinds]


@settings(max_examples=20)
@given(st.sampled_from(["a", "xid ", "显", "\u200b", "(", "79 "]), st.integers(1, 400_000))
def test_a_paste_costs_no_more_than_its_head(piece: str, times: int) -> None:
    long = piece * times
    assert find.search(long, 3) == find.search(long[:20_000], 3)


def test_a_number_beside_words_is_no_code() -> None:
    assert "xid 43" not in [t.id for t in find.search("is 43 % MFU good", 5)]
    assert find.search("xid 43", 1)[0].id == "xid 43"
    assert {t.id for t in find.search("94 95", 2)} == {"xid 94", "xid 95"}


def test_facts_do_not_drown_what_people_ask_about() -> None:
    """852 fact names share their words with the terms, rules and tasks that are about them."""
    for text in (
        "row remap",
        "pcie link width degraded",
        "gpu utilization",
        "ecc mode",
        "nvlink errors",
        "temperature",
    ):
        kinds = [t.kind for t in find.search(text, 3)]
        assert "fact" not in kinds, (text, kinds)
        assert "dcgm" not in kinds, (text, kinds)


def test_known_words_are_written_as_they_stand() -> None:
    words = find.known_words()
    assert words["throttling"] > 0  # not stemmed
    assert words["gpu"] > words["remapping"] > 0
    assert all(w.isalpha() and n > 0 for w, n in words.items())


def test_named_weighs_what_is_not_known() -> None:
    """A common word that happens to be a name does not make a sentence about something else a question for us."""
    assert find.named("xid 79")["xid 79"] == pytest.approx(1.0)
    assert max(find.named("my toaster burns the memory of bread").values(), default=0.0) < 0.5


@pytest.mark.slow
def test_the_index_is_plain_json() -> None:
    data = find.build()
    again = Index(json.loads(json.dumps(data)))
    found = [h.doc for h in Index(data).find("row remap pending", 5)]
    assert len(found) == 5
    assert [h.doc for h in again.find("row remap pending", 5)] == found


@pytest.mark.process
def test_a_search_loads_neither_engine_nor_parsers(tmp_path: Path) -> None:
    """In a process of its own, with the index built: what start-up pays for."""
    own = os.environ | {"GPUDIAG_CACHE_DIR": str(compiled_data(tmp_path))}
    program = (
        "import sys; from assistant.find import search; print(search('xid 79', 1)[0].id); print(' '.join(sys.modules))"
    )
    for _ in ("builds the index", "reads it"):
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT, env=own
        )
    first, modules = done.stdout.splitlines()
    assert first == "xid 79"
    loaded = {m.split(".")[0] for m in modules.split()}
    assert loaded.isdisjoint({"pydantic", "re2", "yaml", "rules", "probes", "numpy", "sqlmodel", "textual"})


def test_a_word_is_explained_before_it_is_measured() -> None:
    """`gpudiag explain MFU`: the term; the range and the task stand behind their kinds, or behind names of their own."""
    from assistant.commands.explain import page

    assert page(["MFU"], "en").data["kind"] == "term"
    assert page(["range", "mfu"], "en").data["kind"] == "range"
    assert page(["enable", "ecc"], "en").data["kind"] == "howto"
    assert page(["hang"], "en").data["kind"] == "symptom"
    assert page(["79"], "en").data["kind"] == "xid"
