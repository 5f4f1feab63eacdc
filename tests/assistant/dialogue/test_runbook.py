"""The steps: all of them, filled in, with risk and consent; none for what no runbook is about."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.intent.query import Intent, Query, Slots
from assistant.render.sheet import Code, Heading
from assistant.reply import Reply
from knowledge.runbook import about, all_runbooks, runbook
from tests.assistant.dialogue.talk import OFF_BUS, ask, log, query, said
from tests.cases import each

NO_SLOTS = Slots()


def steps(text: str, lang: str = "en", *, slots: Slots = NO_SLOTS, topics: tuple[str, ...] = ()) -> Reply:
    return ask(None, query(Intent.RUNBOOK, text, lang, slots=slots, topics=topics))


@each("lang", ["en", "zh"])
@each("book", lambda: [b.id for b in all_runbooks()])
def test_every_runbook_by_its_name(book: str, lang: str) -> None:
    reply = steps(f"runbook {book}" if lang == "en" else f"处置手册 {book}", lang)
    assert reply.data["runbook"] == book
    numbered = [p.text for p in reply.parts if isinstance(p, Heading) and p.text[:1].isdigit()]
    assert numbered == [f"{n}. {s.title.in_(lang)}" for n, s in enumerate(runbook(book).steps, 1)]
    assert reply.settled


@pytest.mark.parametrize(("code", "book"), [(79, "gpu-off-bus"), (63, "row-remap-pending"), (64, "row-remap-failure")])
def test_the_runbook_of_a_code_is_the_one_written_for_it(code: int, book: str) -> None:
    assert steps(f"runbook for xid {code}", slots=Slots(xid=(code,))).data["runbook"] == book


def test_a_bare_number_is_a_code() -> None:
    assert steps("runbook 79").data["runbook"] == "gpu-off-bus"


def test_commands_are_filled_in_and_say_what_they_cost() -> None:
    reply = steps("runbook for xid 79 on gpu-12", slots=Slots(xid=(79,), node=("gpu-12",)))
    commands = " ".join(line for p in reply.parts if isinstance(p, Code) for line in p.lines)
    assert "nodename=gpu-12" in commands
    assert "{node}" not in commands
    assert "consent: the operator's" in said(reply)
    assert "risk: disruptive" in said(reply)


def test_a_code_without_a_runbook_says_so() -> None:
    from knowledge.catalog.xid import all_xids

    bare = next(e.code for e in all_xids() if not about(f"xid {e.code}") and str(e.immediate) == "IGNORE")
    reply = steps(f"runbook for xid {bare}", slots=Slots(xid=(bare,)))
    if reply.data["runbook"] is None:
        assert "No runbook" in reply.headline
    else:
        assert reply.data["runbook"] in {b.id for b in all_runbooks()}  # that of its action


def test_a_task_has_steps_of_its_own() -> None:
    reply = steps("walk me through draining")
    assert reply.data["topics"] == ["howto drain-slurm"]


def test_the_finding_in_focus() -> None:
    d = log(OFF_BUS)
    reply = ask(d, query(Intent.RUNBOOK, "show me the steps"))
    assert reply.data["runbook"] == d.findings[0].advice.runbook
    assert "0000:3b:00.0" in said(reply)


@pytest.mark.parametrize("text", ["runbook for unicorns", "steps to bake bread"])
def test_none_fits(text: str) -> None:
    reply = steps(text)
    assert not reply.settled
    assert reply.headline == "No runbook fits that."


@given(st.text(max_size=100), st.sampled_from(["en", "zh"]), st.lists(st.integers(0, 99_999), max_size=2))
def test_any_text(text: str, lang: str, codes: list[int]) -> None:
    reply = ask(None, Query(text, lang, Intent.RUNBOOK, Slots(xid=tuple(codes))))
    assert reply.headline
