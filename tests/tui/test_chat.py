"""The conversation in the app: asked, answered, folded, chosen, cancelled, kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from textual import events
from textual.geometry import Offset
from textual.selection import Selection

from assistant.session.steps import Confirmed
from tests.tui.lab import BUS, DBE, app_of, running, screen, typed, understood, until
from tui.chat import STARTERS, Chat
from tui.widgets.consent import Consent
from tui.widgets.rows import length
from tui.widgets.sentence import Sentence
from tui.widgets.turns import Turn

if TYPE_CHECKING:
    from textual.pilot import Pilot


def chat(pilot: Pilot[Any]) -> Chat:
    """The conversation."""
    return app_of(pilot).workspace.chat


def answered(pilot: Pilot[Any]) -> list[Turn]:
    """Turns that have come to an end."""
    return [t for t in chat(pilot).transcript.turns if t.over and not t.note]


async def ask(pilot: Pilot[Any], text: str) -> Turn:
    """Type a sentence and wait for what comes of it."""
    before = len(answered(pilot))
    line = chat(pilot).line
    line.focus()
    line.put(text)
    await pilot.press("enter")
    await until(pilot, lambda: len(answered(pilot)) > before)
    return answered(pilot)[-1]


async def anew(pilot: Pilot[Any]) -> None:
    """Another talk, with nothing in its line."""
    app_of(pilot).new_talk()
    chat(pilot).line.put("")
    chat(pilot).line.focus()
    await pilot.pause()
    assert not answered(pilot)


# --- answers --------------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_question_is_answered_with_its_evidence_and_begins_in_view(tmp_path: Path) -> None:
    async with running(tmp_path, *BUS, size=(80, 24)) as pilot:
        for size in ((80, 24), (120, 40), (200, 60)):
            await pilot.resize_terminal(*size)
            turn = await ask(pilot, "is this node healthy?")
            assert turn.shown is not None
            assert turn.echo.startswith("understood: ")
            shown = screen(pilot.app)
            assert "❯ is this node healthy?" in shown
            assert "understood: " in shown
            assert "fallen off the bus" in shown
            if size == (80, 24):
                await ask(pilot, "what is xid 79?")
                lines = screen(pilot.app).splitlines()
                assert any("❯ what is xid 79?" in line for line in lines[:6]), "however long the answer is"


@pytest.mark.slow
async def test_resizing_keeps_the_place_and_fits_every_width(tmp_path: Path) -> None:
    async with running(tmp_path, *BUS, size=(120, 40)) as pilot:
        await ask(pilot, "what is wrong?")
        await ask(pilot, "what is xid 79?")
        said = chat(pilot).transcript
        for size in ((80, 24), (200, 60), (60, 20), (111, 30), (40, 10), (120, 40)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert all(length(row) <= said.scrollable_content_region.width for row in said._rows)
        assert "❯ what is xid 79?" in screen(pilot.app)
        said.action_edge(-1)
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert said.scroll_y == 0


@pytest.mark.slow
async def test_whoever_reads_further_up_is_not_scrolled_away(tmp_path: Path) -> None:
    async with running(tmp_path, *BUS, size=(80, 24)) as pilot:
        await ask(pilot, "what is wrong?")
        said = chat(pilot).transcript
        said.action_edge(-1)
        await pilot.pause()
        said.add(Turn("\n".join("a word of the app" for _ in range(9)), note=True))
        await pilot.pause()
        assert said.scroll_y == 0
        await until(pilot, lambda: "more below" in screen(pilot.app))
        await pilot.click("#hint")
        await until(pilot, lambda: "more below" not in screen(pilot.app))
        said.action_edge(-1)
        turn = await ask(pilot, "what is xid 79?")  # whoever asks wants to see the answer
        await until(pilot, lambda: said._heads[said.turns.index(turn)] >= said.scroll_y > 0)


@pytest.mark.slow
async def test_what_an_answer_offers(tmp_path: Path) -> None:
    async with running(tmp_path, *BUS, size=(120, 40)) as pilot:
        await a_finding_folds_by_key_and_by_mouse_and_is_shown_whole(pilot)
        await anew(pilot)
        await a_finding_in_an_answer_is_explained_from_what_the_answer_rests_on(pilot)
        await anew(pilot)
        await a_hypothetical_answer_is_marked(pilot)
        await anew(pilot)
        await a_suggestion_or_a_choice_is_taken_by_its_letter(pilot)


async def a_finding_folds_by_key_and_by_mouse_and_is_shown_whole(pilot: Pilot[Any]) -> None:
    turn = await ask(pilot, "what is wrong?")
    said = chat(pilot).transcript
    await pilot.press("shift+tab")
    assert said.has_focus
    stops = said._stops_of(turn)
    folds = [n for n, (_, t, s) in enumerate(said._places) if said.turns[t] is turn and stops[s].kind == "fold"]
    before = len(said._rows)
    said._go(folds[0])
    await pilot.press("enter")
    assert len(said._rows) != before
    row = said._places[folds[0]][0] - round(said.scroll_y)
    await pilot.click(type(said), offset=(8, row))
    assert len(said._rows) == before
    more = next(s for s in said._stops_of(turn) if s.kind == "more")
    said._choose(turn, more)  # everything is shown on demand
    await until(pilot, lambda: turn.full)


async def a_finding_in_an_answer_is_explained_from_what_the_answer_rests_on(pilot: Pilot[Any]) -> None:
    turn = await ask(pilot, "what is wrong?")
    said = chat(pilot).transcript
    stops = said._stops_of(turn)
    finding = next(n for n, (_, t, s) in enumerate(said._places) if said.turns[t] is turn and stops[s].question)
    before = app_of(pilot).desk.talk._remembered().now().frame.seen
    said.focus()
    said._go(finding)
    await pilot.press("e")
    await until(pilot, lambda: len(answered(pilot)) == 2)
    assert "has fallen off the bus" in answered(pilot)[1].shown.headline  # type: ignore[union-attr]
    assert app_of(pilot).desk.talk._remembered().now().frame.seen == before


async def a_hypothetical_answer_is_marked(pilot: Pilot[Any]) -> None:
    await ask(pilot, "what if there was no xid 79?")
    assert "┆" in screen(pilot.app)
    assert "nothing of this was seen" in screen(pilot.app)


async def a_suggestion_or_a_choice_is_taken_by_its_letter(pilot: Pilot[Any]) -> None:
    turn = await ask(pilot, "what is xid 79?")
    assert turn.shown is not None
    first = turn.shown.suggestions[0]
    pilot.app.post_message(events.Key("alt+a", "a"))  # as terminals send it: with the letter
    await until(pilot, lambda: len(answered(pilot)) == 2)
    assert answered(pilot)[-1].text == first
    assert chat(pilot).line.text == ""
    turn = await ask(pilot, "is this node healthy?")
    assert turn.shown is not None
    assert turn.shown.choices
    assert turn.shown.question in " ".join(screen(pilot.app).split()) or turn.shown.question
    await pilot.press("alt+a")
    await until(pilot, lambda: len(answered(pilot)) == 4)
    assert not turn.asked
    assert answered(pilot)[-1].text == turn.shown.choices[0].text


@pytest.mark.slow
async def test_what_is_pointed_at_is_asked_in_the_chat(tmp_path: Path) -> None:
    async with running(tmp_path, *BUS, "--screen", "findings") as pilot:
        from tui.messages import Explain

        app_of(pilot).workspace.post_message(Explain("why do you say gpu-fell-off-bus?"))
        await until(pilot, lambda: bool(answered(pilot)))
        (turn,) = answered(pilot)
        assert turn.own
        assert turn.shown is not None
        assert "fallen off the bus" in turn.shown.headline


@pytest.mark.slow
async def test_an_empty_page_greets_and_offers_questions_that_are_understood(tmp_path: Path) -> None:
    from assistant.session.phrases import HEALTHY

    assert STARTERS[0] == HEALTHY
    for lang in ("en", "zh"):
        assert all(understood(text.in_(lang), lang) for text in STARTERS)
    async with running(tmp_path, *DBE) as pilot:
        assert "Ask in your own words" in screen(pilot.app)
        found = chat(pilot).transcript.get_selection(Selection(Offset(1, 0), Offset(4, 0)))
        assert found is not None, "what is marked with the mouse can be copied"
        assert found[0] == "Ask"
        await pilot.press("alt+b")
        await until(pilot, lambda: bool(answered(pilot)))
        assert answered(pilot)[0].text == STARTERS[1].en


# --- suggestions and questions --------------------------------------------------------------


async def existing(pilot: Pilot[Any], folder: Path, name: str = "report") -> Path:
    """An answer that is to be written over a file."""
    path = folder / f"{name}.md"
    path.write_text("mine")
    if not answered(pilot):
        await ask(pilot, "what is wrong?")
    await ask(pilot, f"export to {path}")
    await until(pilot, lambda: isinstance(pilot.app.screen, Consent))
    return path


@pytest.mark.slow
async def test_consent_is_asked_in_a_dialog_and_nothing_is_done_without_a_yes(tmp_path: Path) -> None:
    async with running(tmp_path, *BUS, pause=0.0) as pilot:

        async def told(key: str, more: int) -> None:
            """The key closes the dialog, and so many turns come of it."""
            turns = len(answered(pilot)) + more
            await pilot.press(key)
            await until(pilot, lambda: not isinstance(pilot.app.screen, Consent) and len(answered(pilot)) == turns)

        path = await existing(pilot, tmp_path, "no")
        assert "Overwrite" in screen(pilot.app)
        await told("n", 1)
        assert path.read_text() == "mine"
        assert not answered(pilot)[-2].asked
        path = await existing(pilot, tmp_path, "enter")
        await told("enter", 0)
        assert path.read_text() == "mine"
        path = await existing(pilot, tmp_path, "later")
        await told("escape", 0)
        assert path.read_text() == "mine"
        assert answered(pilot)[-1].asked
        await ask(pilot, "yes")  # "not now": the question can still be answered
        assert path.read_text() != "mine"
        path = await existing(pilot, tmp_path, "yes")
        await told("y", 1)
        assert path.read_text() != "mine"


@pytest.mark.slow
async def test_nothing_is_agreed_to_by_accident(tmp_path: Path) -> None:
    async with running(tmp_path, *BUS) as pilot:
        await enter_is_no_consent_to_what_has_just_come_up(pilot, tmp_path)
        await anew(pilot)
        await a_dialog_does_not_come_up_over_a_half_typed_sentence(pilot, tmp_path)
        await anew(pilot)
        await a_sentence_that_is_being_typed_consents_to_nothing(pilot, tmp_path)


async def enter_is_no_consent_to_what_has_just_come_up(pilot: Pilot[Any], folder: Path) -> None:
    path = await existing(pilot, folder)
    await pilot.press("enter")
    await until(pilot, lambda: not isinstance(pilot.app.screen, Consent))
    assert path.read_text() == "mine"


async def a_dialog_does_not_come_up_over_a_half_typed_sentence(pilot: Pilot[Any], folder: Path) -> None:
    path = folder / "report.md"
    path.write_text("mine")
    await ask(pilot, "what is wrong?")
    app_of(pilot).desk.talk.say(f"export to {path}")
    chat(pilot).line.put("and th")
    await until(pilot, lambda: len(answered(pilot)) == 2)
    assert not isinstance(pilot.app.screen, Consent)
    assert answered(pilot)[-1].shown.choices[0].event == Confirmed(True)  # type: ignore[union-attr]
    chat(pilot).line.put("")
    await pilot.press("alt+a")
    await until(pilot, lambda: isinstance(pilot.app.screen, Consent))
    await pilot.press("escape")
    await until(pilot, lambda: not isinstance(pilot.app.screen, Consent))


async def a_sentence_that_is_being_typed_consents_to_nothing(pilot: Pilot[Any], folder: Path) -> None:
    app_of(pilot).pause = 60.0
    path = await existing(pilot, folder)
    await typed(pilot, *"how do you know")
    assert isinstance(pilot.app.screen, Consent)
    await pilot.press("escape")
    assert path.read_text() == "mine"


# --- one after the other, and given up -------------------------------------------------------


@pytest.mark.slow
async def test_one_after_the_other_and_given_up(tmp_path: Path) -> None:
    async with running(tmp_path, *BUS) as pilot:
        await what_is_said_meanwhile_waits_is_shown_so_and_is_answered_in_order(pilot)
        await anew(pilot)
        await escape_gives_up_and_leaves_the_talk_as_it_was(pilot)
        await anew(pilot)
        await an_error_is_told_and_the_talk_goes_on(pilot, tmp_path)


async def what_is_said_meanwhile_waits_is_shown_so_and_is_answered_in_order(pilot: Pilot[Any]) -> None:
    talk = app_of(pilot).desk.talk
    for text in ("what is xid 79?", "what is xid 31?", "what is xid 63?"):
        talk.say(text)
    assert talk.waiting == ("what is xid 31?", "what is xid 63?")
    await until(pilot, lambda: len(answered(pilot)) == 3)
    assert [t.text for t in answered(pilot)] == ["what is xid 79?", "what is xid 31?", "what is xid 63?"]
    assert not any(t.waits for t in chat(pilot).transcript.turns)
    from tui.talk import Heard, Waits

    app_of(pilot).new_talk()
    page = chat(pilot)
    page.heard(Heard("first"))
    page.waits(Waits(("second", "third")))
    await pilot.pause()
    shown = screen(pilot.app)
    assert shown.index("❯ first") < shown.index("❯ second") < shown.index("❯ third")
    assert shown.count("◌ waits") == 2


async def escape_gives_up_and_leaves_the_talk_as_it_was(pilot: Pilot[Any]) -> None:
    await ask(pilot, "is this node healthy?")
    talk = app_of(pilot).desk.talk
    asking = answered(pilot)[0]
    assert asking.asked
    assert asking.shown is not None
    assert asking.shown.choices
    before = talk._remembered().now()
    with talk._lock:  # the thread waits here: on a starved machine it has its answer before the next line of this one
        talk.say("what is xid 79?")
        talk.say("what is xid 31?")
    assert talk.cancel()
    await until(pilot, lambda: len(answered(pilot)) == 3)
    assert [t.text for t in answered(pilot)[1:]] == ["what is xid 79?", "what is xid 31?"]
    assert all("as it was before" in t.broken for t in answered(pilot)[1:])
    assert not talk.waiting
    assert talk._remembered().now() is before
    assert asking.asked, "its question stands again"
    assert "fallen off the bus" in (await ask(pilot, "why?")).shown.headline  # type: ignore[union-attr]


async def an_error_is_told_and_the_talk_goes_on(pilot: Pilot[Any], folder: Path) -> None:
    app_of(pilot).open_files(str(folder))  # a folder that holds no recording
    turn = await ask(pilot, "what is wrong?")
    assert turn.trouble
    assert "✖" in screen(pilot.app)
    assert (await ask(pilot, "what is xid 79?")).shown is not None


# --- the line ---------------------------------------------------------------------------------


@pytest.mark.slow
async def test_earlier_sentences_come_back_also_in_the_next_start(tmp_path: Path) -> None:
    async with running(tmp_path, *BUS) as pilot:
        await ask(pilot, "what is xid 79?")
        await ask(pilot, "help")
        await pilot.press("up", "up")
        assert chat(pilot).line.text == "what is xid 79?"
        await pilot.press("down", "down")
        assert chat(pilot).line.text == ""
    async with running(tmp_path, *BUS) as pilot:
        await pilot.press("up")
        assert chat(pilot).line.text == "help"


@pytest.mark.slow
async def test_the_line(tmp_path: Path) -> None:
    async with running(tmp_path, *BUS) as pilot:
        await signs_on_an_empty_line_are_commands_also_in_one_burst(pilot)
        await anew(pilot)
        await tab_completes_sentences_nodes_and_codes(pilot)
        await anew(pilot)
        await a_pasted_log_is_one_sentence(pilot)
        await anew(pilot)
        await keys_of_one_burst_are_taken_in_their_order(pilot)


async def signs_on_an_empty_line_are_commands_also_in_one_burst(pilot: Pilot[Any]) -> None:
    assert isinstance(pilot.app.focused, Sentence)
    for key in ("colon", *"go log"):
        sign = {"colon": ":"}.get(key, key)
        pilot.app.post_message(events.Key("space" if key == " " else key, sign))
    line = app_of(pilot).workspace.query_one("#command-line")
    await until(pilot, lambda: line.is_open and line.query_one("Input").value == "go log")  # type: ignore[attr-defined]
    assert chat(pilot).line.text == ""
    await pilot.press("escape")
    await until(pilot, lambda: isinstance(pilot.app.focused, Sentence))
    await pilot.press("colon")
    assert line.is_open  # type: ignore[attr-defined]
    await pilot.press("escape")
    await until(pilot, lambda: isinstance(pilot.app.focused, Sentence))
    await pilot.press("a", "colon")
    assert chat(pilot).line.text == "a:"


async def tab_completes_sentences_nodes_and_codes(pilot: Pilot[Any]) -> None:
    page = chat(pilot)
    await until(pilot, lambda: bool(page._names))
    await typed(pilot, *"is this n", "tab")
    assert page.line.text == "is this node healthy?"
    page.line.put("")
    await typed(pilot, *"what is xid 7", "tab")
    assert page.line.text.startswith("what is xid 7")
    assert len(page.line.text) > len("what is xid 7")


async def a_pasted_log_is_one_sentence(pilot: Pilot[Any]) -> None:
    log = "\n".join(f"[{n}] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus." for n in range(40))
    line = chat(pilot).line
    line.post_message(events.Paste(log))
    await until(pilot, lambda: "[40 lines]" in line.text)
    assert line.size.height == 1
    await pilot.press("enter")
    await until(pilot, lambda: bool(answered(pilot)))
    assert answered(pilot)[0].text == log
    assert answered(pilot)[0].shown is not None


async def keys_of_one_burst_are_taken_in_their_order(pilot: Pilot[Any]) -> None:
    for key in ("x", "ctrl+u", *"help", "enter", "a", "ctrl+j", "b", "left", "c"):
        pilot.app.post_message(events.Key(key, key if len(key) == 1 else None))
    await until(pilot, lambda: bool(answered(pilot)))
    assert answered(pilot)[0].text == "help"
    assert chat(pilot).line.text == "a\ncb"
    chat(pilot).line.put("")
    await until(pilot, lambda: chat(pilot).line.size.height == 1)
    await pilot.press(*"two", "ctrl+j", *"six")
    await until(pilot, lambda: chat(pilot).line.size.height == 2)  # the line grows
    assert chat(pilot).line.text == "two\nsix"


# --- kept, copied, begun anew -----------------------------------------------------------------


@pytest.mark.slow
async def test_a_talk_goes_on_in_the_next_start(tmp_path: Path) -> None:
    async with running(tmp_path, *BUS) as pilot:
        await ask(pilot, "is this node healthy?")
    async with running(tmp_path, *BUS) as pilot:
        await until(pilot, lambda: "Going on with" in screen(pilot.app))
        assert "still open" in screen(pilot.app)
        assert "fallen off the bus" in (await ask(pilot, "why?")).shown.headline  # type: ignore[union-attr]


@pytest.mark.slow
async def test_copied_begun_anew_and_told_of_another_recording(tmp_path: Path) -> None:
    async with running(tmp_path, *BUS) as pilot:
        await new_begins_anew(pilot)
        await anew(pilot)
        await an_answer_is_copied_and_exported_in_every_format(pilot, tmp_path)
        await anew(pilot)
        await another_recording_is_told_and_asked_about(pilot)


async def new_begins_anew(pilot: Pilot[Any]) -> None:
    await ask(pilot, "is this node healthy?")
    app_of(pilot).new_talk()
    await pilot.pause()
    assert not answered(pilot)
    await ask(pilot, "what is xid 79?")
    assert len(app_of(pilot).desk.talk._remembered().now().frames) <= 2  # the picture, and this one


async def an_answer_is_copied_and_exported_in_every_format(pilot: Pilot[Any], folder: Path) -> None:
    await ask(pilot, "is this node healthy?")
    page, workspace = chat(pilot), app_of(pilot).workspace
    assert "fallen off the bus" in page.copied()
    for suffix in ("md", "txt", "html", "json"):
        workspace.export(str(folder / f"answer.{suffix}"))
        assert "fallen off the bus" in (folder / f"answer.{suffix}").read_text()
    data = json.loads((folder / "answer.json").read_text())
    assert data["schema"] == "gpudiag/diagnosis/1"


async def another_recording_is_told_and_asked_about(pilot: Pilot[Any]) -> None:
    await ask(pilot, "is this node healthy?")
    before = app_of(pilot).desk.picture.diagnosis
    app_of(pilot).open_files(f"{DBE[1]} {DBE[3]}")
    await until(pilot, lambda: app_of(pilot).desk.picture.diagnosis not in (None, before))
    turn = await ask(pilot, "why?")
    assert "ECC" in turn.shown.headline  # type: ignore[union-attr]
    assert "kern.log" in screen(pilot.app)


@pytest.mark.slow
async def test_chinese_is_answered_in_chinese_and_fits(tmp_path: Path) -> None:
    async with running(tmp_path, *BUS, size=(80, 24), lang="zh") as pilot:
        turn = await ask(pilot, "这个节点健康吗？")
        assert turn.echo.startswith("理解为")
        assert "掉线" in "".join(screen(pilot.app).splitlines()[2:])
