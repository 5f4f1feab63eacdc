"""An observation survives being written as JSON; what is no observation is refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from knowledge.facts import vocabulary
from knowledge.observation import Clock, Event, Observation, Origin, Scope, Series, Source, Status, Subject
from knowledge.observation_json import UnknownFactError, plain, restored
from tests.cases import each

FACTS = sorted(spec.name for spec in vocabulary() if not spec.replaced_by)
WORDS = st.text(max_size=12)
SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | WORDS
TIMES = st.integers(-(2**62), 2**62)
SERIES = st.lists(st.tuples(TIMES, st.floats(allow_nan=False)), max_size=4).map(
    lambda pairs: Series(tuple(sorted(t for t, _ in pairs)), tuple(v for _, v in pairs))
)
EVENTS = st.builds(Event, st.none() | st.integers(), st.dictionaries(WORDS, SCALARS, max_size=3))
VALUES = SCALARS | EVENTS | SERIES | st.lists(WORDS, max_size=3).map(tuple)


@st.composite
def subjects(draw: st.DrawFn) -> Subject:
    made = None
    for _ in range(draw(st.integers(1, 3))):
        made = Subject(draw(st.sampled_from(Scope)), draw(WORDS), made)
    assert made is not None
    return made


OBSERVATIONS = st.builds(
    Observation, st.sampled_from(FACTS), subjects(), VALUES, st.sampled_from(Status),
    st.builds(Source, WORDS, WORDS, st.none() | st.integers(0, 9), st.integers(1, 9)),
    st.none() | TIMES, st.sampled_from(Clock), st.none() | st.tuples(TIMES, TIMES), WORDS, WORDS, st.sampled_from(Origin),
)  # fmt: skip


@given(OBSERVATIONS)
def test_what_is_read_back_equals_what_was_written(o: Observation) -> None:
    assert restored(json.loads(json.dumps(plain(o)))) == o


@each(
    "text",
    ["null", "[]", "{}", '{"fact": "xid"}', '"x"', '{"fact": "xid", "subject": [], "status": "ok", "source": {}}'],
)
def test_what_is_no_observation_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no observation"):
        restored(json.loads(text))


@given(OBSERVATIONS, WORDS)
def test_a_fact_that_another_version_knew_is_told_as_such(o: Observation, name: str) -> None:
    assume(name not in vocabulary())
    with pytest.raises(UnknownFactError, match="is not known to this version of gpudiag") as caught:
        restored(plain(replace(o, fact=name)))
    assert caught.value.fact == name


@given(OBSERVATIONS, st.data())
def test_a_changed_object_is_an_observation_or_refused(o: Observation, data: st.DataObject) -> None:
    row = plain(o)
    name = data.draw(st.sampled_from(sorted(row)))
    row[name] = data.draw(
        st.none() | st.integers() | st.lists(st.integers(), max_size=2) | st.dictionaries(WORDS, WORDS, max_size=2)
    )
    try:
        again = restored(row)
    except ValueError:
        return
    assert isinstance(again, Observation)
    assert not (isinstance(again.value, float) and math.isnan(again.value))
