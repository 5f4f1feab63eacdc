"""The findings: tree, proof, what if by editing a value, why not by picking a rule."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from textual.widgets import Input, OptionList

from tests.tui.lab import BUS, DBE, DEMOS, app_of, running, screen, typed, understood, until
from tui.screens.findings import FindingsPane
from tui.widgets.grid import Grid
from tui.widgets.tree import Branch, Piece, TreeView, laid
from tui.widgets.whatif import WhatIf
from tui.widgets.whynot import WhyNot

if TYPE_CHECKING:
    from textual.pilot import Pilot

HOT = ("--bundle", str(DEMOS / "overheating" / "bundle"), "--screen", "findings")
HEALTHY = ("--bundle", str(DEMOS / "healthy" / "bundle"), "--screen", "findings")


async def pane_of(pilot: Pilot[int]) -> FindingsPane:
    """The pane, once its first proof stands there."""
    await until(pilot, lambda: any(p.query_one(TreeView).shown for p in app_of(pilot).workspace.query(FindingsPane)))
    return app_of(pilot).workspace.query_one(FindingsPane)


@pytest.mark.slow
async def test_the_cause_and_its_proof_are_on_the_screen_of_any_size(tmp_path: Path) -> None:
    async with running(tmp_path, *BUS, "--screen", "findings", size=(80, 24)) as pilot:
        pane = await pane_of(pilot)
        for size in ((80, 24), (120, 40), (200, 60)):
            await pilot.resize_terminal(*size)
            await until(pilot, lambda: "Because" in screen(pilot.app))
            text = screen(pilot.app)
            assert "has fallen off the bus" in text
            assert "✔" in text
            assert pane.query_one(Grid).row is not None
        for size in ((40, 10), (200, 60), (80, 24), (20, 5), (160, 50)):
            await pilot.resize_terminal(*size)
            await pilot.press("tab", "j")
        await until(pilot, lambda: "has fallen off the bus" in screen(pilot.app))


@pytest.mark.slow
async def test_every_row_answers_explain_this(tmp_path: Path) -> None:
    async with running(tmp_path, *BUS, "--screen", "findings") as pilot:
        pane = await pane_of(pilot)
        proof = pane.query_one(TreeView)
        await pilot.press("enter" if not pane.query_one(Grid).row.data.leads else "tab")  # type: ignore[union-attr]
        await until(pilot, lambda: proof.has_focus)
        asked = set()
        for _ in range(len(proof.shown)):
            asked.add(pane.question())
            await pilot.press("j")
        assert len(asked) > 2
        assert all(understood(q) for q in asked), asked


@pytest.mark.slow
async def test_a_value_is_edited_and_the_difference_shown_and_asked(tmp_path: Path) -> None:
    async with running(tmp_path, *HOT) as pilot:
        pane = await pane_of(pilot)
        proof = pane.query_one(TreeView)
        proof.focus()
        while not (proof.branch and proof.branch.data.targets and str(proof.branch.data.targets[0].what) == "fact"):
            before = proof.branch
            await pilot.press("j")
            assert proof.branch is not before
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, WhatIf))
        dialog = pilot.app.screen
        assert isinstance(dialog, WhatIf)
        if dialog.query(Input):
            dialog.query_one(Input).value = "a lot"
            await pilot.press("enter")
            await until(pilot, lambda: "never 'a lot'" in screen(pilot.app))
            dialog.query_one(Input).value = "1"
        else:
            assert dialog.query_one(OptionList).highlighted is not None
        await pilot.resize_terminal(80, 14)
        await pilot.press("enter")
        await until(pilot, lambda: "Supposed: " in screen(pilot.app))
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: dialog.query_one("#difference").region.height > 4)  # it takes the room that there is
        await pilot.press("enter")
        await until(pilot, lambda: not isinstance(pilot.app.screen, WhatIf))
        await until(pilot, lambda: "what if " in screen(pilot.app) and "Supposed: " in screen(pilot.app), 60)


@pytest.mark.slow
async def test_escape_supposes_nothing_and_what_was_chosen_is_kept(tmp_path: Path) -> None:
    async with running(tmp_path, *DBE, "--screen", "findings") as pilot:
        pane = await pane_of(pilot)
        before = screen(pilot.app)
        await pilot.press("w")
        await until(pilot, lambda: isinstance(pilot.app.screen, WhatIf))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(pilot.app.screen, WhatIf))
        assert pane.query_one(Grid).row is not None
        assert screen(pilot.app) == before
        await pilot.press("G")
        await pilot.pause()
        kept = pane.kept()
        pane.restore({"chosen": 3, "folds": {"a": "b", "section undecided": False}})
        pane.restore(kept)
        assert pane.kept()["chosen"] == kept["chosen"]


@pytest.mark.slow
async def test_folded_and_asked_about(tmp_path: Path) -> None:
    async with running(tmp_path, *BUS, "--screen", "findings") as pilot:
        await explaining_a_finding_answers_in_the_chat(pilot)
        await why_not_is_picked_by_its_words(pilot)
        await sections_and_the_proof_fold_and_filters_look_into_them(pilot)


async def sections_and_the_proof_fold_and_filters_look_into_them(pilot: Pilot[int]) -> None:
    pane = await pane_of(pilot)
    proof = pane.query_one(TreeView)
    because = next(n for n, b in enumerate(proof.shown) if b.key == "because")
    y = proof._first[because] + 1  # the line below the blank one
    await pilot.click(TreeView, offset=(1, y + 1))  # and below the rule above the proof
    await until(pilot, lambda: proof.branch is not None and proof.branch.key == "because")
    n = len(proof.shown)
    assert proof.is_folded(proof.shown[because])
    await pilot.press("l")
    await until(pilot, lambda: len(proof.shown) > n)
    grid = pane.query_one("#outline", Grid)
    section = next(r for r in grid.shown if str(r.data.kind) == "section")
    assert grid.select(section.key)
    grid.focus()
    n = len(grid.shown)
    await pilot.press("enter")
    await until(pilot, lambda: len(grid.shown) > n)
    await pilot.press("enter")
    await until(pilot, lambda: len(grid.shown) == n)
    pane.filter("bus")
    await pilot.pause()
    assert all("bus" in grid.text(r) for r in grid.shown)


async def why_not_is_picked_by_its_words(pilot: Pilot[int]) -> None:
    await pane_of(pilot)
    await pilot.press("n")
    await until(pilot, lambda: isinstance(pilot.app.screen, WhyNot) and bool(pilot.app.screen.query_one(Grid).rows))
    await typed(pilot, *"fabric")
    await until(pilot, lambda: "fabric" in pilot.app.screen.query_one(Grid).filtered)
    await pilot.press("enter")
    await until(pilot, lambda: "› why not fabric" in screen(pilot.app), 60)


async def explaining_a_finding_answers_in_the_chat(pilot: Pilot[int]) -> None:
    await pane_of(pilot)
    await pilot.press("e")
    await until(pilot, lambda: "It holds because" in screen(pilot.app), 60)


@pytest.mark.slow
async def test_nothing_found_is_told_with_what_was_looked_at(tmp_path: Path) -> None:
    async with running(tmp_path, *HEALTHY) as pilot:
        await pane_of(pilot)
        text = screen(pilot.app)
        assert "Nothing wrong was found" in text
        assert "Looked at" in text


async def test_in_chinese_and_back_and_a_target_is_shown_and_a_command_copied(tmp_path: Path) -> None:
    async with running(tmp_path, *BUS, "--screen", "findings", lang="zh") as pilot:
        pane = await pane_of(pilot)
        assert "依据" in screen(pilot.app)
        app_of(pilot).choose_language("en")
        await until(pilot, lambda: "Because" in screen(pilot.app))
        picture = app_of(pilot).desk.picture
        assert picture.diagnosis is not None
        last = picture.diagnosis.findings[-1]
        pane.show_target(last.rule.id)
        await until(pilot, lambda: last.rule.id in pane.question())
        pane.show_target("gpu-fell-off-bus")
        proof = pane.query_one(TreeView)
        await until(pilot, lambda: any(b.key == "command" for b in proof.shown))
        proof.focus()
        assert proof.select("command")
        await pilot.pause()
        assert pane.copied() == next(b for b in proof.shown if b.key == "command").data.copy


@pytest.mark.slow
async def test_another_look_leaves_the_cursor_where_it_is(tmp_path: Path) -> None:
    async with running(tmp_path, *DBE, "--screen", "findings") as pilot:
        pane = await pane_of(pilot)
        proof, before = pane.query_one(TreeView), app_of(pilot).desk.picture.diagnosis
        await pilot.press("j")
        await pilot.pause()
        proof.focus()
        await pilot.press("j", "j", "j", "r")
        here, row = proof.branch, pane.query_one("#outline", Grid).row
        await until(pilot, lambda: app_of(pilot).desk.picture.diagnosis is not before)
        assert here is not None
        assert row is not None
        await until(pilot, lambda: proof.branch is not None and proof.branch.key == here.key)
        assert pane.query_one("#outline", Grid).row.key == row.key  # type: ignore[union-attr]
        assert proof.has_focus


async def test_without_anything_read_it_says_why(tmp_path: Path) -> None:
    empty = tmp_path / "nothing.log"
    empty.write_text("")
    async with running(tmp_path, "--log", str(empty), "--screen", "findings") as pilot:
        await until(pilot, lambda: "Cannot say" in screen(pilot.app))


@pytest.mark.parametrize("room", [20, 44, 78, 118])
def test_a_branch_fits_its_room(room: int) -> None:
    branch = Branch(
        "k", 3, Piece("核心温度 of the GPU that is being looked at, in a sentence of some length"), Piece("✔"), (Piece("91 °C"), Piece("at least 87 °C")),
        (Piece("/a/path/without/any/blank/that/goes/on/and/on/and/on/and/on/and/on/and/on/and/on"), Piece("kern.log:12 · 2026-08-19")), True,
    )  # fmt: skip
    from assistant.render.cells import width

    lines = laid(branch, room, "▾")
    assert all(sum(width(p.text) for p in line) <= room + 2 for line in lines)
    text = "".join(p.text for line in lines for p in line).replace(" ", "")
    assert "91°C" in text
    assert "kern.log:12" in text
