"""The state of a conversation survives being written down."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.intent.query import Assumed, Intent, Query, Slots, Topic
from assistant.session.state import FRAMES, SEEN, Frame, Origin, Pending, Seen, State, plain, restored
from knowledge.language import Text
from knowledge.observation import Clock, Event, Observation, Source, Status, gpu, node
from knowledge.observation import Origin as Who

WORDS = st.text(max_size=12)
TEXTS = st.builds(Text, WORDS, WORDS)
OBSERVATIONS = st.builds(
    Observation,
    fact=st.sampled_from(["gpu.temperature.core", "xid"]),
    subject=st.builds(gpu, st.just("0000:3b:00.0"), WORDS),
    value=st.one_of(st.integers(), st.floats(allow_nan=False), WORDS, st.builds(Event, st.integers(0, 200))),
    status=st.sampled_from(list(Status)),
    source=st.builds(Source, WORDS, WORDS),
    at=st.one_of(st.none(), st.integers(0, 2**62)),
    clock=st.sampled_from(list(Clock)),
    origin=st.sampled_from(list(Who)),
)
QUERIES = st.builds(
    Query,
    text=WORDS,
    lang=st.sampled_from(["en", "zh"]),
    intent=st.sampled_from(list(Intent)),
    slots=st.builds(
        Slots,
        xid=st.tuples(st.integers(0, 200)),
        gpu=st.tuples(st.one_of(st.integers(0, 9), WORDS)),
        node=st.tuples(WORDS),
        file=st.just(()),
    ),
    topics=st.tuples(st.builds(Topic, WORDS, st.floats(0, 10), TEXTS)),
    symptoms=st.tuples(WORDS),
    assumed=st.tuples(st.builds(Assumed, WORDS, WORDS, st.sampled_from(["is", "above"]))),
    observations=st.tuples(OBSERVATIONS),
    asks=WORDS,
    unread=st.tuples(WORDS),
    fine=st.tuples(WORDS),
    pasted=st.booleans(),
    fixed=st.tuples(st.tuples(WORDS, WORDS)),
    echo=TEXTS,
    unsure=st.booleans(),
)
PENDINGS = st.builds(
    Pending,
    fact=st.sampled_from(["", "gpu.ecc.mode"]),
    subject=st.one_of(st.none(), st.builds(gpu, WORDS, WORDS)),
    probes=st.tuples(WORDS),
    text=TEXTS,
)
SEENS = st.builds(
    Seen, host=WORDS, observations=st.tuples(OBSERVATIONS), probes=st.tuples(WORDS), as_of=st.integers(0, 2**62),
    whole=st.booleans(), seconds=st.floats(0, 100),
)  # fmt: skip
STATES = st.builds(
    State,
    frames=st.tuples(
        st.builds(
            Frame,
            query=st.one_of(st.none(), QUERIES),
            origin=st.builds(Origin, bundle=WORDS, logs=st.tuples(WORDS), host=WORDS),
            seen=st.just((0,)),
            told=st.tuples(OBSERVATIONS),
            focus=WORDS,
            pending=st.one_of(st.none(), PENDINGS),
            declined=st.tuples(WORDS),
            last=st.one_of(st.none(), QUERIES),
        )
    ),
    seen=st.fixed_dictionaries({0: SEENS}),
    next=st.just(1),
    lang=st.sampled_from(["", "en", "zh"]),
)


@pytest.mark.slow
@given(STATES)
def test_what_is_read_back_is_what_was_written(state: State) -> None:
    assert restored(json.loads(json.dumps(plain(state)))) == state


@pytest.mark.parametrize("data", [{}, {"version": 99}, {"version": 1}, {"version": 1, "frames": 3, "seen": {}},
                                  {"version": 1, "frames": [{"seen": [3]}], "seen": {}, "next": 0, "lang": "en"},
                                  {"version": 1, "frames": [{"pending": {"fact": "no.such"}}], "seen": {}, "next": 0, "lang": ""},
                                  {"version": 1, "frames": [], "seen": {}, "next": float("inf"), "lang": "en"}])  # fmt: skip
def test_what_is_no_state_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="conversation"):
        restored(data)


@pytest.mark.parametrize("place", ["seen", "told", "query"])
def test_a_talk_about_a_fact_that_this_version_does_not_know_is_refused(place: str) -> None:
    one = (Observation("widget.fault", node("n1"), True, source=Source("widget")),)
    query = Query("is it?", "en", Intent.DIAGNOSE, observations=one if place == "query" else ())
    frame = Frame(query, seen=(0,), told=one if place == "told" else ())
    state = State((frame,), {0: Seen("n1", one if place == "seen" else ())}, 1)
    with pytest.raises(ValueError, match=r"fact 'widget.fault' is not known to this version of gpudiag"):
        restored(json.loads(json.dumps(plain(state))))


def test_a_talk_does_not_grow_without_end() -> None:
    state = State()
    for n in range(50):
        state, number = state.looked(Seen("n1", (Observation("node.gpu.count", node("n1"), n),)))
        state = state.pushed(Frame(seen=(number,), headline=str(n)))
    assert len(state.frames) <= FRAMES
    assert len(state.seen) <= SEEN
    assert state.frame.headline == "49"
    assert all(n in state.seen for f in state.frames for n in f.seen)


def test_undo_goes_back_turn_by_turn() -> None:
    state = State().pushed(Frame(headline="a")).pushed(Frame(headline="b"))
    assert state.popped().frame.headline == "a"
    assert state.popped().popped().frame == Frame()


def test_putting_a_frame_changes_the_last_turn_only() -> None:
    state = State().pushed(Frame(headline="a")).pushed(Frame(headline="b"))
    changed = state.put(replace(state.frame, headline="c"))
    assert [f.headline for f in changed.frames] == ["a", "c"]
