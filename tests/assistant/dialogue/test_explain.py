"""Explaining: one page with its answer first, codes side by side, values in their band, and nothing made up."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.dialogue import Turn
from assistant.dialogue._pages import first_sentence
from assistant.dialogue.explain import answer
from assistant.intent.query import Intent, Query, Slots
from assistant.render.sheet import Heading, Items, Table
from assistant.reply import Reply
from knowledge.catalog.xid import all_xids
from tests.assistant.dialogue.talk import ask, query, rules, said
from tests.cases import each

ROOT = Path(__file__).parents[3]
LANGUAGES = ("en", "zh")


def explain(text: str, lang: str = "en", *, slots: Slots = Slots(), topics: tuple[str, ...] = ()) -> Reply:  # noqa: B008 - a tuple
    return ask(None, query(Intent.EXPLAIN, text, lang, slots=slots, topics=topics))


@each("lang", LANGUAGES)
@each("code", lambda: [e.code for e in all_xids()][::9])
def test_a_code_is_answered_with_its_title_and_meaning(code: int, lang: str) -> None:
    reply = explain(f"xid {code}", lang, slots=Slots(xid=(code,)))
    entry = next(e for e in all_xids() if e.code == code)
    assert reply.headline.startswith(f"XID {code}: {entry.title.in_(lang)}")
    assert first_sentence(entry.description.in_(lang))[0] in reply.headline
    assert reply.data["topics"] == [f"xid {code}"]
    assert any(isinstance(p, Heading) and p.text in ("Sources", "来源") for p in reply.parts)
    assert reply.settled
    assert 2 <= len(reply.suggestions) <= 3


@each(
    ("text", "topic"),
    [
        ("79?", "xid 79"),
        ("719", "cuda cudaErrorLaunchFailure"),  # no XID: another catalogue's
        ("what does SM active mean", "term sm-active"),
        ("explain row remapping", "term row-remap"),
        ("什么是行重映射", "term row-remap"),
        ("DCGM_FI_DEV_GPU_UTIL", "dcgm DCGM_FI_DEV_GPU_UTIL"),
        ("what is gpu.temperature.core?", "fact gpu.temperature.core"),
        ("cudaErrorIllegalAddress", "cuda cudaErrorIllegalAddress"),
        ("meaning of hw slowdown", "clock hw_slowdown"),
        ("explain rule gpu-fell-off-bus", "rule gpu-fell-off-bus"),
        ("what is symptom hang?", "symptom hang"),
        ("解释 howto enable-ecc 是什么", "howto enable-ecc"),
        ("what does NCCL WARN NET/IB : Got completion from peer 10.0.0.1<1> with status=12 mean", "nccl ib-retry-exceeded"),
    ],
)  # fmt: skip
def test_the_topic_that_is_named(text: str, topic: str) -> None:
    reply = explain(text, "zh" if "什么" in text else "en")
    assert reply.data["topics"] == [topic]
    assert reply.settled


@each(
    ("text", "lang", "slots"),
    [
        ("difference between xid 94 and 95", "en", Slots(xid=(94, 95))),
        ("difference between 94 and 95", "en", Slots()),
        ("94 vs 95?", "en", Slots()),
        ("94 和 95 有什么区别", "zh", Slots()),
    ],
)
def test_codes_side_by_side(text: str, lang: str, slots: Slots) -> None:
    reply = explain(text, lang, slots=slots)
    (table,) = [p for p in reply.parts if isinstance(p, Table)]
    assert table.header == ("", "XID 94", "XID 95")
    rows = {row[0]: row[1:] for row in table.rows}
    meaning, severity, action = (
        rows[w] for w in (("meaning", "severity", "action") if lang == "en" else ("含义", "级别", "动作"))
    )
    assert meaning[0] != meaning[1]
    assert severity[0] != severity[1]
    assert action[0].startswith("RESTART_APP")
    assert action[1].startswith("RESET_GPU")
    assert reply.data["topics"] == ["xid 94", "xid 95"]


def test_words_side_by_side() -> None:
    reply = explain("difference between SM active and occupancy")
    assert reply.data["topics"] == ["term sm-active", "term occupancy"]
    (table,) = [p for p in reply.parts if isinstance(p, Table)]
    assert len(table.rows) == 2


@each(
    ("text", "lang"),
    [
        ("compare h100 pcie and h100 sxm", "en"),
        ("difference between a100 and h200", "en"),
        ("H100 和 H200 的区别", "zh"),
    ],
)
def test_models_side_by_side_tell_figures(text: str, lang: str) -> None:
    reply = explain(text, lang)
    (table,) = [p for p in reply.parts if isinstance(p, Table)]
    assert len(table.rows) > 5
    assert all(cell for row in table.rows for cell in row)
    assert "GB/s" in reply.headline
    assert "TFLOP/s" in reply.headline


def test_a_code_that_the_catalogue_lacks() -> None:
    reply = explain("xid 790", slots=Slots(xid=(790,)))
    assert "790 is not in NVIDIA's catalogue" in reply.headline
    assert "xid 79" in reply.data["closest"]  # a digit too many
    assert reply.data["topics"] == []
    both = explain("xid 94 and 999", slots=Slots(xid=(94, 999)))
    assert "Not in NVIDIA's catalogue: XID 999." in said(both)
    none = explain("xid 998 and 999", slots=Slots(xid=(998, 999)))
    assert none.headline == "NVIDIA's catalogue lacks XID 998, XID 999."
    assert not none.settled


@each("text", ["what is the flux capacitor", "what is a gribble", "量子纠缠是什么意思", "explain my toaster"])
def test_nothing_is_made_up(text: str) -> None:
    reply = explain(text, "zh" if text[0] > "z" else "en")
    assert not reply.settled
    assert reply.data["topics"] == []
    assert not any(isinstance(p, Table) for p in reply.parts)


def test_what_is_unsure_is_asked() -> None:
    q = query(
        Intent.EXPLAIN, "reset", topics=("howto reset-gpu", "term gpu-reset", "action RESET_GPU", "runbook gpu-reset")
    )
    unsure = Query(q.text, q.lang, q.intent, topics=q.topics, unsure=True)
    reply = ask(None, unsure)
    assert reply.headline.endswith("?")
    assert not reply.settled
    (items,) = [p for p in reply.parts if isinstance(p, Items)]
    assert len(items.items) == 3
    assert len(reply.suggestions) == 3


@each(
    ("text", "rating", "value"),
    [
        ("is 43 % MFU good", "good", 43),
        ("is an mfu of 0.43 ok?", "good", 43),
        ("our MFU is 12%, is that bad", "poor", 12),
        ("MFU 120%", "bad", 120),
        ("is 92 C ok as gpu temperature", "poor", 92),
        ("GPU 温度 60 度正常吗", "good", 60),
        ("retired pages: 70, is that ok", "bad", 70),
        ("is 1,000 remapped rows too much", "bad", 1000),
        ("gpu utilization 5%", "poor", 5),
        ("effective ber of 1e-15 good?", "good", 1e-15),
    ],
)
def test_a_value_in_its_band(text: str, rating: str, value: float) -> None:
    reply = explain(text, "zh" if "正常" in text else "en")
    assert reply.data["rating"] == rating
    assert reply.data["value"] == pytest.approx(value)
    assert f"{value:.6g}" in reply.headline


def test_a_good_value_without_one() -> None:
    reply = explain("what is a good gpu utilization")
    assert reply.data["topics"] == ["range gpu-utilization"]
    assert any(isinstance(p, Table) for p in reply.parts)


def test_a_number_of_a_name_is_no_value() -> None:
    """NVLink 4 and H100 hold numbers that nobody measured."""
    assert "value" not in explain("good nvlink bandwidth of an H100").data
    assert "value" not in explain("what is a normal nvlink 4 bandwidth").data


@given(
    st.text(max_size=120) | st.from_regex(r"(is|what|xid|difference between) ?[0-9]{0,6} ?(and|%|MFU|vs)? ?[0-9a-z]{0,6}\??", fullmatch=True),
    st.sampled_from(LANGUAGES), st.lists(st.integers(0, 200_000), max_size=3),
)  # fmt: skip
def test_any_text_is_answered(text: str, lang: str, codes: list[int]) -> None:
    q = Query(text, lang, Intent.EXPLAIN, Slots(xid=tuple(codes)))
    reply = answer(Turn(q, lang, rules()))
    assert reply.headline
    assert "\n" not in reply.headline
    assert said(reply) == said(answer(Turn(q, lang, rules())))
    json.dumps(reply.data, default=str)


@each(
    "text",
    ["x " * 500_000, "79 " * 300_000, "difference between " + "a and " * 100_000, "is 1" + "0" * 400_000 + " MFU good"],
)
def test_a_paste_is_answered(text: str) -> None:
    assert explain(text).headline


@pytest.mark.process
def test_explaining_loads_neither_probes_nor_pydantic() -> None:
    from assistant.find import search

    search("x")  # the index is built
    program = (
        "import sys\nfrom assistant.dialogue import Turn\nfrom assistant.dialogue.explain import answer\n"
        "from assistant.intent.query import Intent, Query, Slots\n"
        "print(answer(Turn(Query('xid 79', 'en', Intent.EXPLAIN, Slots(xid=(79,))), 'en', None)).headline)\n"
        "print(' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    headline, modules = done.stdout.splitlines()
    assert headline.startswith("XID 79")
    assert {m.split(".")[0] for m in modules.split()}.isdisjoint({"pydantic", "re2", "probes", "numpy", "textual"})
    assert "rules.engine" not in modules


@each("lang", LANGUAGES)
@each(
    "topic", ["xid 79", "term mfu", "rule row-remap-pending", "nccl nccl-systemerror", "range mfu", "howto enable-ecc"]
)
def test_what_is_suggested_is_understood(topic: str, lang: str) -> None:
    """And asks for what it stands for: never an unknown sentence."""
    from assistant.intent.parse import understand

    for sentence in explain(f"explain {topic}", lang).suggestions:
        assert understand(sentence, lang=lang).intent is not Intent.UNKNOWN, sentence
