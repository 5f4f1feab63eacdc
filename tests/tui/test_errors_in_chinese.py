"""What a person does wrong in the app is said in their language."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.tui.lab import DBE, app_of, running, screen, until

SAID = ("UsageError", "InputError")
# what stands in a variable was put into words elsewhere: it has both languages already, or is a fault of a file
WORDED = {"tui/desk.py", "tui/launch.py", "tui/traces/graph.py"}


def english_only(name: str, source: str) -> list[int]:
    """Lines at which a module raises an error with words in English alone."""
    out = []
    for node in ast.walk(ast.parse(source)):
        named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SAID
        if isinstance(node, ast.Call) and named and not any(k.arg == "zh" for k in node.keywords):
            words = node.args and isinstance(node.args[0], ast.Constant | ast.JoinedStr)
            if words or name not in WORDED:
                out.append(node.lineno)
    return out


def test_every_error_of_the_app_has_both_languages() -> None:
    modules = {str(p.relative_to(ROOT)): p.read_text(encoding="utf-8") for p in sorted((ROOT / "tui").rglob("*.py"))}
    assert len(modules) > 50
    assert not {name: lines for name, source in modules.items() if (lines := english_only(name, source))}


def test_one_without_is_found() -> None:
    assert english_only("tui/x.py", 'raise UsageError("only this")') == [1]
    assert english_only("tui/x.py", "raise UsageError(why)") == [1]
    assert not english_only("tui/x.py", 'raise UsageError("this", zh="两种")')


@pytest.mark.slow
async def test_toasts(tmp_path: Path) -> None:
    async with running(tmp_path, *DBE, "--screen", "findings", lang="zh") as pilot:
        app = app_of(pilot)
        for line, said in (
            ("thme dark", "没有命令 :thme"),
            ("go nowhere", "没有画面"),
            ("sort nothing", "没有列"),
            ("open /no/such/file", "没有此文件"),
            ("theme pink", "没有主题"),
            ("export x.pdf", "哪种格式"),
            ("host no-such-machine", "没有名为"),
        ):
            app.clear_notifications()
            await pilot.press("colon")
            app.workspace.query_one("CommandLine Input").value = line  # type: ignore[attr-defined]
            await pilot.press("enter")
            await until(pilot, lambda: bool(list(app._notifications)))
            (told,) = app._notifications
            assert said in told.message
            assert "there is no" not in told.message
            assert "did you mean" not in told.message
            if line == "thme dark":
                await until(pilot, lambda: "thme" in screen(app))
