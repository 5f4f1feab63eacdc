"""What a surface adds to a talk: a look of its own that the talk goes on from, and questions that nobody put in words."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from assistant.intent.parse import understand
from assistant.intent.query import Intent
from assistant.session import phrases
from assistant.session.continued import about, adopts
from assistant.session.driver import Conversation
from assistant.session.state import Origin, Seen, State, plain, restored
from assistant.session.steps import Said
from tests.assistant.session.test_core import OFF_BUS, ROW_REMAP, eyes, held, said, session

LIVE = Origin()


@cache
def seen_of(origin: Origin) -> Seen:
    """What a surface has read of a recording: all rounds of looking as one."""
    (turn,) = held(origin, ["is this node healthy?"])
    rounds = [turn.state.seen[n] for n in turn.state.frame.seen]
    return replace(
        rounds[0], observations=tuple(o for r in rounds for o in r.observations), offers=(),
        probes=tuple(name for r in rounds for name in r.probes), as_of=rounds[-1].as_of,
    )  # fmt: skip


def adopted(origin: Origin = OFF_BUS, state: State = State()) -> State:  # noqa: B008 - a constant
    """A talk that begins with what a surface shows."""
    return session().adopted(state, seen_of(origin), origin)


@pytest.mark.slow
def test_a_talk_that_adopts_a_look_answers_follow_ups_without_looking() -> None:
    turn = said(adopted(), "why?", OFF_BUS, session(), eyes())
    assert not turn.done
    asked = held(OFF_BUS, ["is this node healthy?", "why?"])[1]
    assert turn.reply.headline == asked.reply.headline


def test_what_is_adopted_survives_a_restart_and_can_be_undone() -> None:
    state = adopted()
    assert restored(plain(state)).frame.seen == state.frame.seen
    undone = said(state, "undo", OFF_BUS, session(), eyes())
    assert not undone.state.frames


def test_adopting_says_what_the_surface_shows() -> None:
    state = adopted()
    assert about(state) == about(held(OFF_BUS, ["is this node healthy?"])[0].state)
    assert state.frame.headline
    conversation = Conversation(session(), eyes())
    conversation.adopt(seen_of(OFF_BUS), OFF_BUS)
    assert conversation.state.frame == state.frame


def test_the_same_adopted_twice_concludes_the_same() -> None:
    once, again = adopted(), adopted(state=adopted())
    assert once.frame.headline == again.frame.headline
    assert [s.observations for s in again.seen.values()] == [s.observations for s in once.seen.values()] * 2


def test_a_question_that_somebody_pointed_at_is_taken_as_it_is() -> None:
    query = replace(understand("why not xid 31?"), text="this value")
    state, steps = session().step(adopted(), Said("this value", OFF_BUS, None, query))
    assert state.said == query
    assert steps
    assert understand("this value").intent is not Intent.WHYNOT


# --- what the next sentence rests on --------------------------------------------------------


def wants(state: State, seen: Seen, origin: Origin, *, pointed: bool = False, moved: bool = False) -> bool:
    """Whether a sentence would rest on `seen`."""
    return adopts(state, seen, origin, pointed=pointed, moved=moved)


def test_a_talk_of_nothing_begins_with_what_is_shown() -> None:
    assert wants(State(), seen_of(OFF_BUS), OFF_BUS)


def test_what_the_talk_rests_on_is_not_adopted_again() -> None:
    assert not wants(adopted(), seen_of(OFF_BUS), OFF_BUS)
    assert not wants(adopted(), seen_of(OFF_BUS), OFF_BUS, pointed=True)


@pytest.mark.slow
def test_another_recording_is_adopted() -> None:
    assert wants(adopted(), seen_of(ROW_REMAP), ROW_REMAP)


@pytest.mark.slow
def test_a_newer_look_counts_for_what_is_pointed_at_but_does_not_break_a_talk() -> None:
    newer = replace(seen_of(OFF_BUS), as_of=2 * 10**18)
    asked = held(OFF_BUS, ["why is training slow?"])[0].state
    assert not wants(asked, newer, OFF_BUS)
    assert wants(asked, newer, OFF_BUS, pointed=True)
    assert wants(adopted(), newer, OFF_BUS)  # nobody has asked anything yet


def test_a_question_about_a_file_that_was_named_goes_on_until_the_surface_turns_elsewhere() -> None:
    named = held(OFF_BUS, ["what is wrong?"])[0].state
    assert not wants(named, seen_of(OFF_BUS), LIVE)
    assert wants(named, seen_of(OFF_BUS), LIVE, moved=True)


def test_nobody_asks_for_health_but_in_words_that_are_understood() -> None:
    for lang in ("en", "zh"):
        assert understand(phrases.HEALTHY.in_(lang), lang=lang).intent in (Intent.VERDICT, Intent.DIAGNOSE)


def test_two_threads_conclude_at_the_same_time_without_harm() -> None:
    """A screen looks at the machine while somebody asks."""
    from concurrent.futures import ThreadPoolExecutor

    from assistant.session.concluding import KEPT, concluded

    talk, seen = session(), replace(seen_of(ROW_REMAP), observations=())
    states = [State().looked(replace(seen, host=f"n{n}")) for n in range(KEPT + 2)]

    def all_of_them(_: int) -> list[str]:
        return [concluded(talk, state, (number,), ()).verdict.text.en for state, number in states]

    with ThreadPoolExecutor(2) as threads:
        first, *others = threads.map(all_of_them, range(2))
    assert all(said == first for said in others)
