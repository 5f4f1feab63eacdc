"""What holds for every incident, whatever was written into it and by whom."""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.incidents import events as make
from assistant.incidents import pages, words
from assistant.incidents.events import Event, Kind, Status, StepState
from assistant.incidents.fold import Incident, after, fold
from assistant.incidents.progress import books_of, progress, values_of
from assistant.incidents.who import person
from knowledge.errors import UnknownNameError, UsageError
from knowledge.runbook import runbook

BOOKS = ("gpu-off-bus", "gpu-reset", "no-such-book")
STEPS = ("evidence", "reset", "reboot", "no-such-step")
T0 = 1_790_000_000 * 10**9

word = st.text(max_size=6) | st.sampled_from([*BOOKS, *STEPS, *StepState, *Status, *make.SEVERITIES])
anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats() | word,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(word, inner, max_size=3),
    max_leaves=6,
)
fields = st.sampled_from([
    "text", "title", "severity", "status", "owner", "runbook", "step", "state", "key", "rule", "host", "subject", "role", "xid",
])  # fmt: skip
wild = st.tuples(st.sampled_from([*Kind, "handed-over"]), st.dictionaries(fields, anything, max_size=6))
sound = st.one_of(
    st.tuples(st.just(Kind.STEP), st.fixed_dictionaries({"runbook": st.sampled_from(BOOKS), "step": st.sampled_from(STEPS),
                                                         "state": st.sampled_from([s.value for s in StepState])})),
    st.tuples(st.just(Kind.STATUS), st.fixed_dictionaries({"status": st.sampled_from([s.value for s in Status])})),
    st.tuples(st.just(Kind.OWNER), st.fixed_dictionaries({"owner": word})),
    st.tuples(st.just(Kind.SEVERITY), st.fixed_dictionaries({"severity": st.sampled_from(make.SEVERITIES)})),
    st.tuples(st.just(Kind.CLOSED), st.fixed_dictionaries({"text": word})),
    st.tuples(st.just(Kind.NOTE), st.fixed_dictionaries({"text": word})),
    st.tuples(st.just(Kind.FINDING), st.fixed_dictionaries({
        "key": word, "rule": word, "host": word, "role": st.sampled_from(["root", "symptom"]), "runbook": st.sampled_from(BOOKS)})),
)  # fmt: skip


def log(entries: Sequence[tuple[str, dict[str, Any]]]) -> list[Event]:
    return [Event(n, T0 + n, kind, "alice", "cli", data) for n, (kind, data) in enumerate(entries, 1)]


logs = st.lists(wild | sound, max_size=20).map(log)


@given(logs, st.integers(0, 20))
def test_folding_goes_on_where_it_stopped(events: list[Event], at: int) -> None:
    assert reduce(after, events[at:], fold(events[:at], 3, "u")) == fold(events, 3, "u")


@given(logs)
def test_nothing_that_was_written_is_lost_or_refused(events: list[Event]) -> None:
    assert fold(events).events == tuple(events)


@given(logs)
def test_the_last_word_counts(events: list[Event]) -> None:
    found = fold(events)
    said = [
        e for e in events if e.kind == Kind.CLOSED or (e.kind == Kind.STATUS and e.data.get("status") in list(Status))
    ]
    over = bool(said) and (said[-1].kind == Kind.CLOSED or said[-1].data["status"] == Status.CLOSED)
    assert found.is_open is not over
    assert (found.closed_at is not None) is over
    owners = [e.text("owner") for e in events if e.kind == Kind.OWNER]
    assert found.owner == (owners[-1] if owners else "")
    marks = {
        (e.text("runbook"), e.text("step")): e.text("state")
        for e in events
        if e.kind == Kind.STEP and e.text("runbook") and e.text("step") and e.data.get("state") in list(StepState)
    }
    assert {k: m.state for k, m in found.steps.items()} == marks


@given(logs, st.lists(st.tuples(st.just("handed-over"), st.dictionaries(fields, anything, max_size=4)), max_size=3))
def test_kinds_of_a_newer_gpudiag_stand_in_the_timeline_alone(
    events: list[Event], more: list[tuple[str, dict[str, Any]]]
) -> None:
    before = fold(events)
    now = reduce(after, log(more), before)
    assert now.events == (*events, *log(more))
    assert Incident(**{**_of(now), "events": before.events}) == before


def _of(incident: Incident) -> dict[str, Any]:
    return {name: getattr(incident, name) for name in Incident.__dataclass_fields__}


@given(logs)
def test_each_step_of_a_runbook_stands_there_once_and_no_mark_is_dropped(events: list[Event]) -> None:
    found = fold(events)
    views = progress(found)
    assert [v.name for v in views] == list(found.runbooks)
    for view in views:
        known = [s.id for s in view.runbook.steps] if view.runbook is not None else []
        assert [s.name for s in view.steps][: len(known)] == known
        assert len({s.name for s in view.steps}) == len(view.steps)
        assert view.ended <= len(view.steps)
        following = view.next
        assert (following is None) == all(s.state.ended for s in view.steps)
    marked = {(s.runbook, s.name): s.mark for v in views for s in v.steps if s.mark is not None}
    assert marked == dict(found.steps)


@given(logs, st.sampled_from(["en", "zh"]))
def test_every_incident_can_be_shown_and_written_down(events: list[Event], lang: str) -> None:
    found = fold(events, 7, "u")
    for sheet in (pages.one(found, lang), pages.many([found], lang), pages.brief(found, lang)):
        assert json.dumps(sheet.data)
    for event in events:
        assert isinstance(words.said(event, lang, found), str)
    told = words.story(found, lang)
    assert [e for t in told for e in t.events] == events, "each once, in order"


@pytest.mark.parametrize("kind", list(Kind))
def test_each_kind_is_told_in_both_languages(kind: Kind) -> None:
    data = {
        "text": "x", "title": "x", "status": "working", "severity": "error", "owner": "bob", "runbook": "gpu-reset", "step": "reset",
        "state": "done", "key": "k", "rule": "r", "name": "nvml",
    }  # fmt: skip
    (event,) = log([(kind, data)])
    said = [words.said(event, lang) for lang in ("en", "zh")]
    assert all(said)
    assert said[0] != said[1] or kind in (Kind.NOTE, Kind.MESSAGE, Kind.PROBE, Kind.ACTION)


# --- what people type ---------------------------------------------------------------------


def test_what_is_no_word_of_ours_is_refused_with_those_that_are() -> None:
    calls: list[Callable[[], object]] = [
        lambda: make.step("gpu-reset", "reset", "finished"), lambda: make.status("fine"), lambda: make.severity("bad"),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(UsageError, match="there is no") as caught:
            call()
        assert "allowed:" in caught.value.hint
    for empty in ("", " \n", "\x1b[31m"):
        with pytest.raises(UsageError, match="words"):
            make.note(empty)
    with pytest.raises(UnknownNameError):
        make.runbook("gpu-of-bus")
    assert make.status("closed", "done").kind == Kind.CLOSED


@given(st.text())
def test_what_is_noted_is_safe_to_show(text: str) -> None:
    try:
        entry = make.note(text)
    except UsageError:
        return
    kept = entry.data["text"]
    assert kept.strip() == kept != ""
    assert not set(kept) & {"\x1b", "\0", "\u202e", "\u200b"}


def test_a_step_is_named_by_its_name_its_number_or_with_its_runbook() -> None:
    one = books_of(["gpu-off-bus"])
    first = runbook("gpu-off-bus").steps[0].id
    assert make.named_step(first, one) == make.named_step("1", one) == make.named_step(f"gpu-off-bus/{first}", one)
    both = books_of(["gpu-off-bus", "gpu-reset"])
    with pytest.raises(UsageError, match="several runbooks"):
        make.named_step("1", both)
    assert make.named_step("gpu-reset/1", both)[0] == "gpu-reset"
    for wrong in ("0", "99", "resett", "gpu-reset/99"):
        with pytest.raises(UnknownNameError):
            make.named_step(wrong, both)
    with pytest.raises(UsageError, match="no runbook"):
        make.named_step("1", {})


def test_who_it_is_behind_sudo_is_who_called_it() -> None:
    own = pwd.getpwuid(os.getuid()).pw_name
    assert person({}) == own
    assert person({"SUDO_USER": "alice"}) == ("alice" if os.geteuid() == 0 else own)
    assert person({"SUDO_USER": "root"}) == own


def _about(subject: str, host: str = "n1", role: str = "root") -> tuple[str, dict[str, Any]]:
    return Kind.FINDING, {"key": subject, "rule": "r", "host": host, "subject": subject, "role": role}


def test_a_command_is_filled_with_what_is_one_thing_only() -> None:
    one = fold(log([_about("node:n1/gpu:0000:3b:00.0"), _about("node:n1/gpu:0000:5e:00.0", role="symptom")]))
    assert values_of(one) == {"node": "n1", "gpu_pci": "0000:3b:00.0"}
    two = fold(log([_about("node:n1/gpu:0000:3b:00.0"), _about("node:n1/gpu:0000:5e:00.0")]))
    assert values_of(two) == {"node": "n1"}, "a command must not hit one of two"
    apart = fold(log([_about("node:n1/gpu:0000:3b:00.0"), _about("node:n2/gpu:0000:3b:00.0", "n2")]))
    assert "node" not in values_of(apart)
    assert values_of(fold(log([_about("node:n1/gpu:unknown:?"), _about("nonsense")]))) == {"node": "n1"}
