"""The knowledge browser: search, pages, links, the way back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tui.lab import DBE, app_of, running, screen, typed, understood, until
from tui.screens.knowledge import KnowledgePane


def pane_of(pilot: Any) -> KnowledgePane:
    return app_of(pilot).workspace.query_one(KnowledgePane)


async def ready(pilot: Any) -> KnowledgePane:
    await until(pilot, lambda: bool(app_of(pilot).workspace.query(KnowledgePane)) and bool(pane_of(pilot).list.rows))
    return pane_of(pilot)


async def opened(pilot: Any, name: str) -> None:
    pane = pane_of(pilot)
    await until(pilot, lambda: pane.reader.page is not None and pane.reader.page.name == name)


@pytest.mark.slow
async def test_search_while_typing_read_follow_and_back(tmp_path: Path) -> None:
    async with running(tmp_path, *DBE, "--screen", "knowledge", size=(80, 24)) as pilot:
        pane = await ready(pilot)
        for size in ((80, 24), (120, 40), (200, 60)):
            await pilot.resize_terminal(*size)
            if app_of(pilot).workspace.name_shown != "knowledge":
                await pilot.press("alt+8")
            await until(pilot, lambda: "XID codes" in screen(pilot.app) and pane.list.has_focus)
            await typed(pilot, "slash", *"xid 79")
            await until(pilot, lambda: bool(pane.list.shown) and pane.list.shown[0].key == "xid 79")
            await pilot.press("enter", "enter")
            await opened(pilot, "xid 79")
            assert "fallen off the bus" in screen(pilot.app)
            assert understood(pane.question())
            await pilot.press("n")
            there = pane.reader.link
            assert there
            await pilot.press("enter")
            await opened(pilot, there)
            await pilot.press("b")
            await opened(pilot, "xid 79")
            await pilot.press("escape", "escape")
            await until(pilot, lambda: "XID codes" in screen(pilot.app))
            assert app_of(pilot).workspace.name_shown == "knowledge"
            await pilot.press("escape")
            await pilot.pause()
            assert app_of(pilot).workspace.name_shown == "chat"


@pytest.mark.slow
async def test_a_kind_lists_its_pages(tmp_path: Path) -> None:
    async with running(tmp_path, *DBE, "--screen", "knowledge", size=(80, 24)) as pilot:
        pane = await ready(pilot)
        pane.list.select("runbook")
        await pilot.press("enter")
        await until(
            pilot,
            lambda: bool(pane.list.row) and pane.list.row is not None and pane.list.row.key.startswith("runbook "),
        )
        await pilot.press("e")  # the row answers as well
        await until(pilot, lambda: app_of(pilot).workspace.name_shown == "chat")


@pytest.mark.slow
async def test_what_nobody_knows_is_said_and_a_link_is_clicked(tmp_path: Path) -> None:
    async with running(tmp_path, *DBE, "--screen", "knowledge", size=(80, 24)) as pilot:
        pane = await ready(pilot)
        pane.filter("zzqqxx")
        await until(pilot, lambda: "nothing is known" in screen(pilot.app))
        pane.show_target("xid 99999")
        await until(pilot, lambda: "There is no page" in screen(pilot.app))
        pane.show_target("xid 48")
        await opened(pilot, "xid 48")
        await pilot.pause()
        line, start, _, there = pane.reader._links[0]
        await pilot.click(pane.reader, offset=(start + 1, line))
        await opened(pilot, there)


@pytest.mark.slow
async def test_it_is_kept_and_speaks_chinese(tmp_path: Path) -> None:
    async with running(tmp_path, *DBE, "--screen", "knowledge", lang="zh") as pilot:
        pane = await ready(pilot)
        pane.filter("行重映射")
        await until(pilot, lambda: bool(pane.list.shown) and pane.list.shown[0].key.count(" ") > 0)
        pane.open("xid 63")
        await opened(pilot, "xid 63")
        app_of(pilot).keep()
    async with running(tmp_path, *DBE, "--screen", "knowledge", lang="zh") as pilot:
        pane = await ready(pilot)
        await opened(pilot, "xid 63")
        assert pane.kept()["search"] == "行重映射"
        assert understood(pane.question(), "zh")


@pytest.mark.slow
async def test_beside_the_list_stands_the_page_of_its_row(tmp_path: Path) -> None:
    async with running(tmp_path, *DBE, "--screen", "knowledge", size=(200, 60)) as pilot:
        pane = await ready(pilot)
        pane.filter("row remap")
        await until(pilot, lambda: pane.list.row is not None and pane.list.row.data != "kind")
        await opened(pilot, pane.list.shown[0].key)
        await pilot.press("j")
        second = pane.list.shown[1].key
        await opened(pilot, second)
        assert pane.list.has_focus
        await pilot.press("enter")
        await until(pilot, lambda: pane.reader.has_focus)
        pane.open("xid 63")
        await opened(pilot, "xid 63")
        await pilot.press("b")
        await opened(pilot, second)
        await pilot.press("B")
        await opened(pilot, "xid 63")
