"""What people say to a question, in both languages: only what is clear counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.planner import DONT_KNOW, Question, answer_value, only_answer
from knowledge.answers import answer_words
from knowledge.facts import FactSpec, vocabulary
from knowledge.language import Text
from knowledge.observation import node
from tests.cases import each


def question(kind: str, **more: object) -> Question:
    return Question("f", node(), Text("?"), kind, more.pop("values", ()), Text("why"), (), **more)  # type: ignore[arg-type]


BOOL, INT, FLOAT, STR = question("bool"), question("int"), question("float", unit="percent"), question("str")
ENUM = question("enum", values=("requests", "limits", "both", "hw_slowdown"),
                labels=(("requests", Text("the requests key", "请求键")), ("both", Text("both of them", "两者"))))  # fmt: skip


@each(
    "said",
    ["yes", "Yes.", "y", "YES!", "yeah, since monday", "yes please", "correct", "it is", "of course", "是", "是的。", "对",
     "有的", "嗯", "没错", "正在维护", "是，今天早上开始", "ＹＥＳ"],
)  # fmt: skip
def test_yes(said: str) -> None:
    assert answer_value(BOOL, said, "en") is True
    assert answer_value(BOOL, said, "zh") is True


@each(
    "said",
    ["no", "No.", "nope", "n", "nobody is", "no, nobody", "not that I know of", "it isn't", "never", "否", "不是", "没有",
     "没有人", "不", "没人在维护", "没有，谢谢"],
)  # fmt: skip
def test_no(said: str) -> None:
    assert answer_value(BOOL, said, "en") is False


@each(
    "said",
    ["i don't know", "I don’t know", "no idea", "not sure", "dunno", "sorry, no clue", "?", "hard to say", "maybe", "unknown",
     "skip", "不知道", "我不清楚", "不确定", "这个不好说", "可能吧"],
)  # fmt: skip
@each("asked", [BOOL, INT, FLOAT, STR, ENUM], ids=["bool", "int", "float", "str", "enum"])
def test_dont_know(said: str, asked: Question) -> None:
    assert answer_value(asked, said) is DONT_KNOW


@each("said", ["", "   ", "yes and no", "yes, no", "why do you ask?", "what is xid 79", "banana", "为什么", "8",
                                  "notebook", "yesterday", "nothingness", "norway"])  # fmt: skip
def test_what_is_neither_yes_nor_no_is_not_understood(said: str) -> None:
    assert answer_value(BOOL, said) is None


@each(
    ("said", "number"),
    [("8", 8), ("8 GPUs", 8), ("it should have 8", 8), ("eight", 8), ("there are sixteen of them", 16), ("8 H100", 8),
     ("1,024", 1024), ("0", 0), ("none", 0), ("8块", 8), ("八", 8), ("八块卡", 8), ("应该有 8 个", 8), ("十六", 16), ("8.0", 8)],
)  # fmt: skip
def test_whole_numbers(said: str, number: int) -> None:
    got = answer_value(INT, said)
    assert got == number
    assert type(got) is int


@each(
    "said",
    ["7.5", "8 or 16", "8-16", "more than 8", "at least 8", "not 8", "不到 8", "8 或 16", "-8", "H100", "0.1.2", "50%", "two or three",
     "lots", "yes", "1,02,4", "三十五"],
)  # fmt: skip
def test_what_is_no_single_whole_number_is_not_understood(said: str) -> None:
    assert answer_value(INT, said) is None


@each(
    ("said", "number"),
    [("35", 35.0), ("35%", 35.0), ("about 12.5 percent", 12.5), ("0.35%", 0.35), ("百分之 40", 40.0), ("0", 0.0)],
)
def test_shares(said: str, number: float) -> None:
    assert answer_value(FLOAT, said) == number


@each("said", ["0.35", "135", "200 ms", "35 or 40", "-5", "half"])
def test_a_share_that_could_mean_two_things_is_not_understood(said: str) -> None:
    assert answer_value(FLOAT, said) is None


@each(
    ("said", "word"),
    [("limits", "limits"), ("it is LIMITS", "limits"), ("the requests key", "requests"), ("请求键", "requests"),
     ("hw slowdown", "hw_slowdown"), ("hw_slowdown", "hw_slowdown"), ("both", "both"), ("两者", "both")],
)  # fmt: skip
def test_words_of_an_enum(said: str, word: str) -> None:
    assert answer_value(ENUM, said) == word


@each("said", ["requests or limits", "neither", "requestsomething", "1"])
def test_an_enum_takes_one_word_of_its_own(said: str) -> None:
    assert answer_value(ENUM, said) is None


@pytest.mark.parametrize(
    ("said", "text"), [("it is 570.86.15", "570.86.15"), ("570.86.15", "570.86.15"), (" n1-a ", "n1-a")]
)
def test_text(said: str, text: str) -> None:
    assert answer_value(STR, said) == text


@given(st.text(max_size=400), st.sampled_from([BOOL, INT, FLOAT, STR, ENUM]))
def test_any_text_gives_a_value_of_the_kind_or_none(said: str, asked: Question) -> None:
    got = answer_value(asked, said)
    if got is None or got is DONT_KNOW:
        return
    kinds = {"bool": bool, "int": int, "float": (int, float), "str": str, "enum": str}
    assert isinstance(got, kinds[asked.kind])  # type: ignore[arg-type]
    if asked.kind == "enum":
        assert got in asked.values


@pytest.mark.parametrize("asked", [BOOL, INT, STR])
def test_an_essay_is_cut(asked: Question) -> None:
    got = answer_value(asked, "spam " * 400_000)
    assert got is None or len(str(got)) <= 400


def test_every_fact_that_people_are_asked_takes_an_answer() -> None:
    said = {"bool": "yes", "int": "8", "float": "12 %", "str": "570.86.15"}
    for spec in vocabulary().having("ask"):
        text = said.get(str(spec.type), spec.values[0] if spec.values else "")
        asked = question(str(spec.type), values=spec.values, labels=tuple(spec.labels.items()), unit=spec.unit)
        assert _accepts(spec, answer_value(asked, text)), spec.name


def _accepts(spec: FactSpec, value: object) -> bool:
    return value is not None and value is not DONT_KNOW and spec.accepts(value)  # type: ignore[arg-type]


def test_yes_and_no_share_no_phrase() -> None:
    words = answer_words()
    assert not set(words.yes) & set(words.no)
    assert not set(words.yes) & set(words.dont_know)
    assert not set(words.no) & set(words.dont_know)


@each(
    "text",
    ["16 %", "3", "about 8 gpus", "8 GPUs.", "it should have 8", "yes", "no, nobody", "约 5%", "大概 8 个", "是的", "没有",
     "I don't know", "around 40 percent of the step"],
)  # fmt: skip
def test_a_bare_answer_is_one(text: str) -> None:
    assert only_answer(text)


@each(
    "text",
    ["what if the width were 16?", "show pcie status of gpu 4", "ok, what is xid 79", "why is pid 4242 slow", "gpu 3 fell off the bus",
     "yes but why do you think it is the cable", "no xid 79 was seen, right?", "3号卡温度多少", "what is MFU", "undo"],
)  # fmt: skip
def test_a_sentence_of_its_own_is_no_answer(text: str) -> None:
    assert not only_answer(text)
