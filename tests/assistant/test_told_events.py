"""The events of a JSON answer: each by itself, and of a flood the ends and a count."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assistant.render.json_ import SAMPLED, SORTS, told
from knowledge.observation import Clock, Event, Observation, Scope, Source, Subject, how_many, node

NODE = node("n1")
THINGS = [Subject(Scope.GPU, f"0000:{i}b:00.0", NODE) for i in (3, 5)]


def event(place: int, thing: int, code: int, word: str, times: int) -> Observation:
    at = place * 10**9
    value = Event(code, {"pid": place, "state": word, "text": f"line {place}"})
    window = (at - 10**8, at) if times > 1 else None
    return Observation(
        "xid", THINGS[thing], value, source=Source("", line=place), at=at, clock=Clock.LOCAL, window=window, times=times
    )


FLOODS = st.lists(
    st.tuples(
        st.integers(1, 90),
        st.integers(0, 1),
        st.sampled_from([31, 79]),
        st.sampled_from(["up", "down", ""]),
        st.integers(1, 3),
    ),
    max_size=6,
)


@given(FLOODS)
def test_entries_of_events_stand_for_all_of_them(floods: list[tuple[int, int, int, str, int]]) -> None:
    each = [flood[1:] for flood in floods for _ in range(flood[0])]
    events = [event(i, thing, code, word, times) for i, (thing, code, word, times) in enumerate(each, 1)]
    entries, places = told(events)
    assert sum(entry.times for entry in entries) == how_many(events)
    assert [e.event.source.line for e in entries] == sorted(e.event.source.line or 0 for e in entries)
    sorts = {(o.subject, o.value.code) for o in events if isinstance(o.value, Event)}
    assert len(entries) <= len(sorts) * (SAMPLED + SORTS + 1)
    for o in events:
        entry = entries[places[id(o)]]
        assert isinstance(o.value, Event)
        assert isinstance(entry.event.value, Event)
        assert (entry.event.subject, entry.event.value.code) == (o.subject, o.value.code)
        assert entry.event.value.get("state") == o.value.get("state")
        assert entry.since is not None
        assert entry.since <= (o.at or 0) <= (entry.event.at or 0)


def test_the_first_and_the_last_of_a_flood_have_entries_of_their_own() -> None:
    events = [event(i, 0, 31, "", 1) for i in range(1, 501)]
    entries, _ = told(events)
    half = SAMPLED // 2
    assert [e.event for e in entries] == [*events[:half], events[-half - 1], *events[-half:]]
    assert [e.times for e in entries] == [1] * half + [500 - SAMPLED] + [1] * half


def test_what_no_flood_is_is_told_event_by_event() -> None:
    events = [event(i, 0, 31, "", 1) for i in range(1, SAMPLED + 1)]
    assert [e.event for e in told(events)[0]] == events


def test_many_sorts_in_a_flood_are_bounded_too() -> None:
    events = [event(i, 0, 31, f"state {i}", 1) for i in range(1, 1001)]
    assert len(told(events)[0]) <= SAMPLED + SORTS + 1
