"""What holds for every text."""

from __future__ import annotations

import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.intent.parse import understand
from assistant.intent.query import Intent
from tests.cases import each
from tests.overlay import compiled_data

NUMBER = st.integers(0, 99999)
ANY = st.text(st.characters(), max_size=300)  # surrogates and controls too
PLAIN = [
    "why is pid 4242 slow on gpu-12",
    "gpu 3 threw xid 79",
    "ranks 0-3 hang since yesterday",
    "is node17 ok",
    "第3块GPU掉卡了",
]


@given(ANY)
def test_no_text_raises_and_the_same_text_is_the_same_query(text: str) -> None:
    query = understand(text)
    assert query == understand(text)
    assert query.lang in ("en", "zh")
    query.echo.en.encode()
    query.text.encode()


@each("text", [
    "a" * 100_000, "xid " * 25_000, "gpu 0-" * 15_000, "[" * 50_000, "如果" * 50_000, "a-" * 50_000 + "1", "/" * 100_000,
    "\n" * 100_000, "\ud800" * 1000, "\u202e why \u200b?", "what if ecc is off and " * 4000, "a.b" * 30_000, "",
])  # fmt: skip
def test_hostile_texts(text: str) -> None:
    query = understand(text)
    assert len(query.text) < 2000
    assert all(len(values) <= 1024 * 65 for _, values in query.slots.named())


@given(NUMBER, st.sampled_from(["xid", "pid", "rank", "sxid"]))
def test_a_number_behind_its_word_is_that_slot(number: int, word: str) -> None:
    for text in (f"why {word} {number}", f"{word.upper()}{number}很慢", f"{word}: {number}?"):
        assert getattr(understand(text).slots, word) == (number,)


@given(st.integers(0, 500), st.integers(0, 5000))
def test_ranges_are_counted_and_bounded(first: int, more: int) -> None:
    found = understand(f"gpus {first}-{first + more}").slots.gpu
    assert found[0] == first
    assert len(found) == min(more + 1, 1024)


@each("text", PLAIN)
def test_case_and_width_do_not_matter(text: str) -> None:
    wide = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)
    assert unicodedata.normalize("NFKC", wide) == text
    for variant in (text.upper(), wide):
        assert understand(variant).slots == understand(text).slots
    assert understand(text.upper()).intent is understand(text).intent


@each("text", [
    "8 GPUs are slow", "H100 80GB is throttling", "A100 overheats", "CUDA 12.4 fails", "driver 550.54 hangs", "PCIe x8 link",
    "gen 4 link is slow", "GPU at 43 %", "nccl port 8080 refused", "nan at step 300", "64 ranks hang", "gpu 90% busy",
    "llama-3 training is slow", "gpu util 99", "tokens/s dropped", "job on 16 nodes crashes",
])  # fmt: skip
def test_counts_models_and_versions_are_no_slots(text: str) -> None:
    assert dict(understand(text).slots.named()) == {}


@each(("text", "lang"), [
    ("why is pid 4242 slow", "en"), ("pid4242很慢", "zh"), ("gpu 3 温度多少", "zh"), ("what does 显存 mean", "en"), ("79", "zh"),
    ("dmesg 显示 no such device was found", "zh"),
])  # fmt: skip
def test_the_language_is_that_of_the_sentence(text: str, lang: str) -> None:
    assert understand(text, lang="zh").lang == lang


def test_names_of_the_inventory_are_nodes() -> None:
    assert understand("check pluto", hosts=("pluto", "mars")).slots.node == ("pluto",)
    assert understand("why is pluto slow").slots.node == ()
    # an ordinary word where a place is named, and an unknown name of a known series, which is asked back
    assert understand("why is training slow on hole?", hosts=("hole",)).slots.node == ("hole",)
    assert understand("why is training slow on dgx-b?", hosts=("dgx-a",)).slots.node == ("dgx-b",)
    assert understand("is it slow on gpu3", hosts=("gpu01",)).slots.node == ()
    assert understand("does it hang on gpu-burn", hosts=("gpu-12",)).slots.node == ()


@pytest.mark.process
def test_nothing_heavy_is_loaded_to_understand(tmp_path: Path) -> None:
    code = (
        "import sys; from assistant.intent.parse import understand; q = understand('waht is xdi 79'); "
        "assert q.slots.xid == (79,); understand('why is pid 4242 slow?');"
        "print([m for m in ('pydantic', 'sqlmodel', 'rules.engine', 'textual', 'numpy', 'probes') if m in sys.modules])"
    )
    env = os.environ | {"GPUDIAG_CACHE_DIR": str(compiled_data(tmp_path))}
    for _ in range(2):  # the shards are built: from here on they are only read
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_unknown_sentence_is_not_guessed() -> None:
    assert understand("my hovercraft is full of eels").intent is Intent.UNKNOWN


@each("said", [
    "how do I fix it?", "how can I fix this", "fix it", "how to fix", "how do I fix that problem", "how should we resolve this issue",
    "how do I fix gpu 3", "怎么修复它", "怎么解决", "怎么处理这个问题", "如何修复", "怎么修 gpu 3",
])  # fmt: skip
def test_a_wish_for_a_remedy_of_what_is_spoken_of_asks_what_next(said: str) -> None:
    """Not "lock the clocks", because somebody fixed one in a page."""
    found = understand(said)
    assert found.intent is Intent.NEXT
    assert not found.topics


@each(("said", "topic"), [
    ("fix the clock", "howto lock-clocks"), ("how do I fix xid 79", "xid 79"), ("how do I fix the ECC errors", "symptom memory-errors"),
    ("怎么修复显存错误", "symptom memory-errors"),
])  # fmt: skip
def test_a_remedy_of_something_is_about_that(said: str, topic: str) -> None:
    found = understand(said)
    assert found.intent is Intent.FIX
    assert topic in [t.id for t in found.topics]


@each("said", [
    "what happens if I do nothing?", "and if we ignore it?", "what if we keep using it", "what happens if I don't do anything", "如果不管它会怎样",
])  # fmt: skip
def test_what_comes_of_doing_nothing_stands_in_the_verdict(said: str) -> None:
    found = understand(said)
    assert found.intent is Intent.DIAGNOSE
    assert not found.symptoms
    assert understand("what if there was no xid 79").intent is Intent.WHATIF


@each(("said", "symptom", "never"), [
    ("the job ended with exit code 137", "out-of-memory", ""), ("exit code 139 in rank 3", "crash", "out-of-memory"),
    ("cuda out of memory even though nvidia-smi shows 30 GB free", "out-of-memory", "gpu-missing"),
])  # fmt: skip
def test_a_number_of_a_symptom_is_heard(said: str, symptom: str, never: str) -> None:
    """Codes stand for themselves: 137 is not 139; and a number of GPUs is not any number."""
    found = understand(said).symptoms
    assert symptom in found
    assert never not in found


@each(("said", "symptoms"), [
    ("no packet loss but nccl hangs", ("hang",)), ("nccl hangs, no packet loss, all ports active", ("hang",)),
    ("没有掉卡,但是训练变慢", ("slow-training",)), ("训练卡住,没有丢包", ("hang",)), ("no gpu is visible", ("gpu-missing",)),
    ("training hangs every 6h no error", ("hang",)),
])  # fmt: skip
def test_what_is_denied_is_no_symptom(said: str, symptoms: tuple[str, ...]) -> None:
    """A symptom that lies in the "no" itself stays one; and none is made of pieces of two clauses."""
    assert understand(said).symptoms == symptoms
