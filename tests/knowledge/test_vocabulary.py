"""The vocabulary: what a fact accepts, what it says, and laws that hold for every shipped fact."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.errors import GpudiagError, UndeclaredFactError, UnknownNameError
from knowledge.facts import FactSpec, Kind, Type, Vocabulary, vocabulary
from knowledge.language import Text
from knowledge.observation import Event, Observation, Scope, Series, Source, Status, Subject, gpu, latest, node
from tests.cases import each

GPU = gpu("0000:01:00.0", "n1")
UNITS = {"", "C", "W", "h", "MHz", "MiB", "MiB/s", "B/s", "GB/s", "GT/s", "count", "percent", "s", "ratio",
         "ms", "us", "ns", "Gb/s", "B", "J", "Gflop/s", "Tflop/s", "Mpps", "per minute", "per second", "per day"}  # fmt: skip


def spec(type_: Type, kind: Kind = Kind.STATE, says: str = "{subject}: {value} {unit}", **more: Any) -> FactSpec:
    return FactSpec("f", Scope.GPU, type_, kind, Text("f"), Text(says, says), **more)


# --- values -------------------------------------------------------------------------------

SAMPLES: dict[str, Any] = {
    "bool": True, "int": 3, "float": 1.5, "str": "red", "set": ("red",), "event": Event(1, {"place": 3}),
    "subject": "gpu:0000:01:00.0", "series": Series((1, 2), (1.0, 2.0)), "none": None, "nan": math.nan,
}  # fmt: skip


@each(
    ("type_", "accepted"),
    [
        (Type.BOOL, {"bool"}), (Type.INT, {"int", "series"}), (Type.FLOAT, {"int", "float", "series"}),
        (Type.STR, {"str", "subject"}), (Type.ENUM, {"str"}), (Type.SET, {"set"}), (Type.EVENT, {"event"}),
        (Type.SUBJECT, {"subject"}),
    ],
)  # fmt: skip
def test_what_a_type_accepts(type_: Type, accepted: set[str]) -> None:
    fact = spec(type_, values=("red", "blue") if type_ in (Type.ENUM, Type.SET) else (), fields={"place": "int"})
    assert {name for name, value in SAMPLES.items() if fact.accepts(value)} == accepted


@pytest.mark.parametrize("type_", [Type.INT, Type.FLOAT])
def test_a_number_that_no_float_holds_is_none_and_can_be_said(type_: Type) -> None:
    fact = spec(type_, says="{value} {size}")
    assert fact.accepts(2**900)
    assert not fact.accepts(10**400)
    assert not fact.accepts(-(10**400))
    assert fact.sentence(Observation("f", GPU, 10**400)).startswith("1000")


def test_words_that_may_not_stand_there() -> None:
    assert not spec(Type.ENUM, values=("red",)).accepts("green")
    assert not spec(Type.SET, values=("red",)).accepts(("red", "green"))
    assert spec(Type.SET, values=("red",)).accepts(())
    assert spec(Type.SET).accepts(("anything",))
    assert not spec(Type.SUBJECT).accepts("nothing:1")


def test_fields_of_an_event() -> None:
    fact = spec(Type.EVENT, fields={"place": "int", "text": "str"})
    assert fact.accepts(Event(None, {"place": None}))
    assert not fact.accepts(Event(1, {"place": "three"}))
    assert not fact.accepts(Event(1, {"other": 1}))
    assert not fact.accepts(Event(True, {}))


# --- sentences ----------------------------------------------------------------------------


@each(
    ("type_", "value", "en", "zh"),
    [
        (Type.BOOL, True, "yes", "是"), (Type.BOOL, False, "no", "否"), (Type.SET, (), "none", "无"),
        (Type.SET, ("a", "b"), "a, b", "a, b"), (Type.FLOAT, 1 / 3, "0.333333", "0.333333"), (Type.INT, 1234567, "1234567", "1234567"),
        (Type.INT, None, "-", "-"), (Type.FLOAT, Series((1, 2), (1.0, 2.5)), "2.5", "2.5"), (Type.STR, "{odd}", "{odd}", "{odd}"),
    ],
)  # fmt: skip
def test_a_value_in_words(type_: Type, value: Any, en: str, zh: str) -> None:
    fact = spec(type_, says="<{value}>")
    assert fact.sentence(Observation("f", GPU, value)) == f"<{en}>"
    assert fact.sentence(Observation("f", GPU, value), "zh") == f"<{zh}>"


def test_a_field_that_the_line_lacks_is_a_dash() -> None:
    fact = spec(Type.EVENT, Kind.EVENT, says="{code} at {place}: {text}", fields={"place": "int", "text": "str"})
    assert fact.sentence(Observation("f", GPU, Event(5, {"text": "{place}"}))) == "5 at -: {place}"


def test_the_noun_goes_with_the_number() -> None:
    fact = spec(Type.INT, says="{value} {value:error|errors}")
    assert [fact.sentence(Observation("f", GPU, n)) for n in (0, 1, 2)] == ["0 errors", "1 error", "2 errors"]
    event = spec(Type.EVENT, Kind.EVENT, says="{n} {n:time|times}", fields={"n": "int"})
    assert event.sentence(Observation("f", GPU, Event(None, {"n": 1}))) == "1 time"
    assert event.sentence(Observation("f", GPU, Event(None, {}))) == "- times"


@each(
    ("value", "said"),
    [
        (0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (123_456_789, "118 MiB"), (1_048_575.0, "1024 KiB"), (5e12, "4.55 TiB"),
        (5e15, "4547 TiB"), (None, "-"), ("text", "text"), (math.inf, "inf"),
    ],
)  # fmt: skip
def test_an_amount_of_bytes_is_said_as_people_write_it(value: Any, said: str) -> None:
    assert spec(Type.FLOAT, says="<{size}>").sentence(Observation("f", GPU, value)) == f"<{said}>"


def test_a_word_of_an_enum_is_said_in_the_language_of_the_sentence() -> None:
    labels = {"not_run": Text("not run", "未运行"), "pass": Text("passed", "通过")}
    one = spec(Type.ENUM, says="<{value}>", values=("not_run", "pass", "else"), labels=labels)
    assert [one.sentence(Observation("f", GPU, "not_run"), x) for x in ("en", "zh")] == ["<not run>", "<未运行>"]
    assert one.sentence(Observation("f", GPU, "else"), "zh") == "<else>"
    assert (
        spec(Type.ENUM, says="{value}", values=("two_words",)).sentence(Observation("f", GPU, "two_words"))
        == "two words"
    )
    assert spec(Type.STR, says="{value}").sentence(Observation("f", GPU, "some_name")) == "some_name", "not ours"
    many = spec(Type.SET, says="<{value}>", values=("not_run", "pass"), labels=labels)
    assert many.sentence(Observation("f", GPU, ("not_run", "pass")), "zh") == "<未运行, 通过>"
    event = spec(Type.EVENT, Kind.EVENT, says="{state}: {text}", fields={"state": "str", "text": "str"}, labels=labels)
    assert event.sentence(Observation("f", GPU, Event(None, {"state": "pass", "text": "x"})), "zh") == "通过: x"


@each("fact", lambda: [f for f in vocabulary() if f.values], ids=lambda f: f.name)
def test_no_raw_word_stands_in_a_sentence(fact: FactSpec) -> None:
    """A word of several parts is our own spelling; no tool prints it, and nobody should have to read it."""
    for word in fact.values:
        for language in ("en", "zh"):
            value = (word,) if fact.type is Type.SET else word
            assert "_" not in fact.sentence(Observation(fact.name, GPU, value), language)


@given(
    st.deferred(lambda: st.sampled_from(list(vocabulary()))),
    st.sampled_from(("en", "zh")),
    st.sampled_from(list(SAMPLES.values())),
)
def test_every_fact_can_be_said_of_any_value(fact: FactSpec, language: str, value: Any) -> None:
    assert fact.sentence(Observation(fact.name, GPU, value), language)


# --- the shipped facts --------------------------------------------------------------------


@each("fact", lambda: list(vocabulary()), ids=lambda f: f.name)
def test_every_fact_is_sound(fact: FactSpec) -> None:
    assert fact.unit in UNITS, "one spelling for each unit"
    assert fact.meaning.en
    assert fact.says.en
    assert re.search("[\u4e00-\u9fff]", fact.meaning.zh), "Chinese"
    assert fact.says.zh
    assert not fact.per_boot or fact.kind is Kind.COUNTER
    assert not fact.replaced_by or fact.replaced_by in vocabulary()
    assert fact.kind not in (Kind.COUNTER, Kind.GAUGE) or fact.type in (Type.INT, Type.FLOAT, Type.BOOL)


def test_what_a_fact_is_called_now() -> None:
    old, new = spec(Type.INT, replaced_by="g"), spec(Type.INT)
    words = Vocabulary({"f": old, "g": new})
    assert [words.current(name) for name in ("f", "g", "h")] == ["g", "g", None]


def test_what_we_tell_under_no_name_of_the_vocabulary_is_our_bug() -> None:
    words = Vocabulary({"gpu.level": spec(Type.INT)})
    assert words.told(Observation("gpu.level", GPU, 1)) is words["gpu.level"]
    for source, said in ((Source("widget"), "widget tells 'gpu.levle'"), (Source(""), "something tells 'gpu.levle'")):
        with pytest.raises(UndeclaredFactError) as caught:
            words.told(Observation("gpu.levle", GPU, 1, source=source))
        assert str(caught.value) == f"{said}, which is no fact; the nearest is 'gpu.level'"
        assert not isinstance(caught.value, GpudiagError), "what handles those makes an answer of it"


def test_an_unknown_fact_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError) as caught:
        vocabulary()["gpu.temperature.cores"]
    assert "gpu.temperature.core" in caught.value.hint
    assert vocabulary().get("nothing.at.all") is None
    assert vocabulary().nearest("gpu.temperature.cores") == "gpu.temperature.core"
    assert len(Vocabulary({})) == 0


# --- observations -------------------------------------------------------------------------


def test_only_three_statuses_are_answers() -> None:
    assert {s for s in Status if s.answered} == {Status.OK, Status.NONE_SEEN, Status.NOT_APPLICABLE}


def test_a_subject_knows_what_it_is_part_of() -> None:
    link = Subject(Scope.LINK, "3", GPU)
    assert [s.scope for s in link.ancestors()] == [Scope.LINK, Scope.GPU, Scope.NODE]
    assert (link.host, link.up(Scope.NODE), link.up(Scope.JOB)) == ("n1", node("n1"), None)


@pytest.mark.parametrize(("times", "values"), [((1,), (1.0, 2.0)), ((2, 1), (1.0, 2.0))])
def test_a_series_in_disorder_is_refused(times: tuple[int, ...], values: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="time"):
        Series(times, values)


@given(st.permutations(range(5)))
def test_the_latest_does_not_depend_on_order(order: list[int]) -> None:
    samples = [Observation("f", GPU, i, at=i * 10) for i in range(5)]
    assert latest([samples[i] for i in order]).value == 4


@each(
    ("change", "fault"),
    [
        ({}, ""),
        ({"says": {"en": "{value} {value:error|errors}", "zh": "{value}"}}, ""),
        ({"says": {"en": "{value:error}", "zh": "{value}"}}, "write {value:one|many}"),
        ({"says": {"en": "{colour}", "zh": "{value}"}}, "which is not a field"),
        ({"labels": {"red": {"en": "red", "zh": "红"}}}, ""),
        ({"labels": {"green": {"en": "green", "zh": "绿"}}}, "labels of what is no value: green"),
        ({"type": "str", "values": [], "labels": {"red": {"en": "red", "zh": "红"}}}, "labels go with"),
    ],
)
def test_what_an_entry_of_the_vocabulary_may_say(change: dict[str, Any], fault: str) -> None:
    from pydantic import ValidationError

    from knowledge.schema.facts import Entry

    words = {"en": "{value}", "zh": "{value}"}
    plain = {"name": "gpu.colour", "scope": "gpu", "type": "enum", "kind": "state", "values": ["red", "blue"],
             "meaning": words, "says": words} | change  # fmt: skip
    if not fault:
        Entry.model_validate(plain)
        return
    with pytest.raises(ValidationError) as caught:
        Entry.model_validate(plain)
    assert fault in str(caught.value)
