"""The session as what it is: a function of what happened. Talks over recorded incidents: events in, steps out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assistant.commands import demo
from assistant.config import Output, Settings
from assistant.intent.parse import understand
from assistant.render import reply as render
from assistant.reply import Reply
from assistant.session.core import Session
from assistant.session.inventory import Inventory
from assistant.session.replay import RecordedEyes
from assistant.session.state import Frame, Origin, Seen, State, plain, restored
from assistant.session.steps import (
    Ask,
    Collect,
    Conclude,
    Confirm,
    Event,
    Recalled,
    Said,
    Step,
    Write,
    Written,
)  # fmt: skip
from assistant.sources import tells
from probes.live import probes
from rules.loader import RuleSet
from rules.loader import load as load_rules

SENTENCES = (
    "is this node healthy?", "can I keep using it?", "what is wrong?", "why is training slow?", "training hangs",
    "check gpu 3", "is gpu 0 ok?", "is gpu 77 ok?", "why is pid 4242 slow?", "why is gpu 3 throttling?",
    "node gpu-12 threw xid 48 then 63, can I keep using it?", "what is xid 79", "difference between 94 and 95",
    "what does SM active mean", "how do I fix xid 79", "how do I enable ECC", "runbook for xid 79",
    "what is the temperature of gpu 3", "show ecc errors", "list processes on gpu 0", "how much memory is free",
    "has xid 63 happened before?", "what happened last night", "what did this outage cost", "help", "hi",
    "why?", "why do you say that", "how do you know", "which log line", "how sure are you", "what if ECC is off",
    "suppose there was no xid 79", "what if the temperature were 95", "why not a cable problem", "why isn't it xid 79",
    "again", "and gpu 5?", "same for gpu 1", "and on gpu-13?", "on the other node", "what else could it be", "next",
    "yes", "no", "cancel", "undo", "go back", "export", "save this as html", "why do you ask?", "I don't know", "42",
    "write me a poem", "asdf qwer", "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.",
    "run dcgm-diag", "show me what is in absent.log", "\u202e\x1b[31m xid\x00 79", "a" * 5000,
    "这个节点健康吗？", "训练为什么慢？", "第3块GPU还能用吗？", "xid 79 是什么意思", "为什么？", "你怎么知道？", "有多大把握？",
    "如果关闭ECC呢？", "再查一次", "那 gpu 5 呢？", "还有什么可能？", "下一步呢？", "是", "不", "取消", "撤销", "导出", "不知道",
    "为什么问这个？", "昨天发生过什么", "天气怎么样",
)  # fmt: skip
HOSTS = Inventory(("desk", "gpu-12", "gpu-13"), "desk")


@cache
def rules() -> RuleSet:
    """The shipped rules."""
    return load_rules()


@cache
def origin(name: str) -> Origin:
    """What an incident is told from."""
    story, folder = demo.load(name), demo.FOLDER / name
    files = {kind: tuple(str(folder / f) for f in story.get(kind, ())) for kind in ("log", "input")}
    return Origin(str(folder / story["bundle"]) if story.get("bundle") else "", files["log"], files["input"])


_SEEN: dict[tuple[Origin, tuple[str, ...]], Event] = {}


class Reader(RecordedEyes):
    """Reads each part of an incident once: it is the same each time, and that is tested elsewhere."""

    def do(self, step: Step) -> Event:
        """What a step gives; the live machine is never reached (`RecordedEyes` refuses)."""
        match step:
            case Collect(origin, probes, _, _):
                if (origin, probes) not in _SEEN:
                    _SEEN[origin, probes] = super().do(step)
                return _SEEN[origin, probes]
            case Write():
                return Written(step.path or "report.md", exists=not step.replace and bool(step.path))
            case _:
                return Recalled(())


@dataclass
class Turn:
    """One turn, as it was seen from outside."""

    state: State
    reply: Reply
    steps: tuple[Step, ...]  # the last ones
    done: tuple[Step, ...]  # what was carried out


def session() -> Session:
    """A session over known nodes."""
    return Session(rules(), HOSTS)


def eyes() -> Reader:
    """What reads the incidents."""
    return Reader(Settings(), rules(), history=False)


def said(state: State, text: str, about: Origin, talk: Session, reader: Reader) -> Turn:
    """Say `text` and do what is wanted."""
    event: Event = Said(text, about)
    done: list[Step] = []
    for _ in range(40):
        state, steps = talk.step(state, event)
        wants = [s for s in steps if not isinstance(s, Conclude | Ask | Confirm)]
        done += wants
        if not wants:
            (reply,) = [s.reply for s in steps if isinstance(s, Conclude)]
            return Turn(state, reply, steps, tuple(done))
        (want,) = wants
        event = reader.do(want)
    raise AssertionError("the turn does not end")


def held(about: Origin, sentences: Sequence[str], state: State = State()) -> list[Turn]:  # noqa: B008 - a constant
    """A whole talk."""
    talk, reader, turns = session(), eyes(), []
    for text in sentences:
        turns.append(said(state, text, about, talk, reader))
        state = turns[-1].state
    return turns


def shown(turn: Turn) -> str:
    """Everything that an answer says, in JSON."""
    return render.show(turn.reply, Output(format="json"), tells, query=turn.state.said)


def asks(turn: Turn) -> list[Step]:
    """What the person is asked at the end of a turn."""
    return [s for s in turn.steps if isinstance(s, Ask | Confirm)]


TALKS = st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=5)
INCIDENTS = st.sampled_from(demo.names()).map(origin)
SOME = settings(max_examples=max(12, settings().max_examples // 4))


@pytest.mark.slow
@SOME
@given(INCIDENTS, TALKS)
def test_any_talk_goes_on_after_a_restart_as_if_there_had_been_none(about: Origin, sentences: list[str]) -> None:
    whole = held(about, sentences)
    kept = plain(State())
    for text, expected in zip(sentences, whole, strict=True):
        again = held(about, [text], restored(json.loads(json.dumps(kept))))[0]
        kept = plain(again.state)
        assert shown(again) == shown(expected)
        assert kept == plain(expected.state)


@pytest.mark.slow
@SOME
@given(INCIDENTS, TALKS)
def test_what_is_waited_for_is_what_was_asked_last(about: Origin, sentences: list[str]) -> None:
    for turn in held(about, sentences):
        pending = turn.state.frame.pending
        asked = [s.pending for s in asks(turn) if isinstance(s, Ask | Confirm)]
        assert asked in ([], [pending])
        assert (
            asked or pending is None or pending.fact
        )  # a question may stay open; consent stands right above its "yes"


@pytest.mark.slow
@SOME
@given(INCIDENTS, TALKS, st.sampled_from(SENTENCES))
def test_undo_takes_back_what_the_last_turn_did(about: Origin, sentences: list[str], last: str) -> None:
    *_, before, after = [State(), *(t.state for t in held(about, [*sentences, last]))]
    if after.frames[:-1] != before.frames:
        assert after.frames == before.frames or last in ("undo", "go back", "撤销")
        return  # a word in between, or an undo: there is nothing of it to take back
    (undone,) = held(about, ["undo"], after)
    assert undone.state.frame == before.frame
    assert [s.pending for s in asks(undone) if isinstance(s, Ask | Confirm)] == [p for p in [before.frame.pending] if p]


# --- what is waited for -------------------------------------------------------------------

OFF_BUS = origin("off-the-bus")
ROW_REMAP = origin("row-remap-pending")


def waiting(about: Origin = OFF_BUS) -> State:
    """A talk at whose end the person is asked something."""
    (turn,) = held(about, ["is this node healthy?"])
    assert asks(turn)
    return turn.state


def test_a_question_about_the_past_drops_what_was_asked() -> None:
    asked, answered = held(OFF_BUS, ["what happened last night", "yes"], waiting())
    assert not asked.state.frame.pending
    assert not asks(asked)
    assert not answered.state.frame.told


def test_undo_asks_again_what_was_asked_then() -> None:
    state = waiting()
    helped, undone = held(OFF_BUS, ["help", "undo"], state)
    assert not asks(helped)
    assert undone.state.frame == state.frame
    assert asks(undone)


def test_undo_after_cancel_asks_again() -> None:
    state = waiting()
    dropped, undone = held(OFF_BUS, ["cancel", "undo"], state)
    assert "Dropped" in dropped.reply.headline
    assert undone.state.frame == state.frame
    assert asks(undone)


def test_a_no_to_overwriting_is_not_taken_for_nothing() -> None:
    _, exists, refused = held(OFF_BUS, ["what is wrong?", "export to report.md", "no"])
    assert asks(exists)
    assert "nothing to cancel" not in refused.reply.headline
    assert not [s for s in refused.done if isinstance(s, Write)]
    assert not refused.state.frame.pending


def test_a_file_that_is_overwritten_gets_the_format_that_was_named() -> None:
    *_, written = held(OFF_BUS, ["what is wrong?", "export as json to report.txt", "yes"])
    (step,) = written.done
    assert isinstance(step, Write)
    assert (step.path, step.format, step.replace) == ("report.txt", "json", True)


def test_what_was_consented_to_once_is_not_run_again_unasked() -> None:
    dear = next(s.name for s in probes() if not s.default)
    state, number = State().looked(Seen("n1", (), ("kernel-log", dear), as_of=1))
    state = state.pushed(Frame(understand("what is wrong?"), seen=(number,)))
    _, (step,) = session().step(state, Said("again"))
    assert isinstance(step, Collect)
    assert "kernel-log" in step.probes
    assert dear not in step.probes


def test_who_asked_for_a_value_that_is_none_has_looked_for_no_finding() -> None:
    """What asks of findings behind it looks first: "not sure, none of none was read" would be no answer."""
    asked, sure = held(OFF_BUS, ["show me the frobs of the node", "are you sure?"])
    assert not asked.reply.settled
    assert "has fallen off the bus" in sure.reply.headline


# --- about what ---------------------------------------------------------------------------

NOTHING_GIVEN = Origin()


def test_a_follow_up_about_another_recording_is_not_answered_from_this_one() -> None:
    (first,) = held(OFF_BUS, ["what is wrong?"])
    (other,) = held(ROW_REMAP, ["why?"], first.state)
    assert "bus" not in shown(other)
    assert "Uncorrectable memory error" in other.reply.headline, "the files that are given are what it is about"


def test_a_yes_beside_another_recording_consents_to_nothing() -> None:
    (turn,) = held(ROW_REMAP, ["yes"], waiting())
    assert not turn.done
    assert not turn.state.frame.told


@pytest.mark.slow
def test_again_beside_another_recording_looks_at_that_one() -> None:
    (first,) = held(OFF_BUS, ["what is wrong?"])
    (other,) = held(ROW_REMAP, ["again"], first.state)
    assert {s.origin for s in other.done if isinstance(s, Collect)} == {ROW_REMAP}
    assert not other.state.frame.before


def test_another_gpu_is_another_gpu_of_the_same_recording() -> None:
    (first,) = held(OFF_BUS, ["is gpu 3 ok?"])
    (other,) = held(NOTHING_GIVEN, ["and gpu 5?"], first.state)
    assert other.state.frame.origin == OFF_BUS
    assert other.state.frame.query is not None
    assert other.state.frame.query.slots.gpu == (5,)


def test_the_same_about_another_gpu_is_told_by_that_gpu_alone() -> None:
    _, other, third = held(OFF_BUS, ["is gpu 3 ok?", "and gpu 5?", "那 gpu 1 呢？"])
    assert other.state.said is not None
    assert other.state.said.echo.en == "can it be used: gpu 5"
    assert third.state.said is not None
    assert third.state.said.echo.zh == "能否继续使用：gpu 1"


def test_a_gpu_of_a_node_that_was_not_read_is_no_gpu_of_another_node() -> None:
    _, other, part = held(OFF_BUS, ["is this node healthy?", "and on gpu-13?", "and gpu 5?"])
    assert "gpu-13" in other.reply.headline
    assert "gpu-13" in part.reply.headline
    assert "bus" not in part.reply.headline


def test_a_thing_that_is_not_there_is_told_beside_one_of_which_nothing_is_known() -> None:
    *_, turn = held(origin("power-brake"), ["is gpu 0 and gpu 77 ok?"])
    assert "No GPU 77 is known" in shown(turn)


@pytest.mark.slow
@given(INCIDENTS, st.sampled_from(["what is wrong?", "is this node healthy?", "why is training slow?"]))
@settings(max_examples=max(8, settings().max_examples // 6))
def test_again_over_what_has_not_changed_finds_the_same(about: Origin, question: str) -> None:
    first, again, later = held(about, [question, "again", "can I use it?"])
    assert "Nothing changed" in shown(again)
    assert again.reply.diagnosis is not None
    assert first.reply.diagnosis is not None
    assert again.reply.diagnosis.findings == first.reply.diagnosis.findings
    (fresh,) = held(about, ["can I use it?"])
    assert later.reply.headline == fresh.reply.headline


# --- what comes back from disk ------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "x", "xid", "node", "-1", "1e999"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["en", "id", "0", "intent"]), inner, max_size=3),
    max_leaves=4,
)  # fmt: skip


def places(data: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """Every place within plain data."""
    found = [path] if path else []
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return found + [p for key, value in items for p in places(value, (*path, key))]


@cache
def kept() -> str:
    """A talk that holds something of everything, as it is kept."""
    talk = held(OFF_BUS, ["is this node healthy?", "again", "no", "why?", "export to report.md"])
    data = plain(talk[-1].state)
    for seen in data["seen"].values():
        seen["observations"] = seen["observations"][:3]
    return json.dumps(data)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_what_was_damaged_on_disk_is_refused_or_works(data: st.DataObject) -> None:
    plain_state = json.loads(kept())
    *way, last = data.draw(st.sampled_from(places(plain_state)))
    spot = plain_state
    for step in way:
        spot = spot[step]
    if data.draw(st.booleans()):
        spot[last] = data.draw(JSON)
    else:
        del spot[last]
    try:
        state = restored(plain_state)
    except ValueError:
        return
    for turn in held(NOTHING_GIVEN, ["why?", "what is xid 79", "undo"], state):
        assert shown(turn)
    json.dumps(plain(state))
