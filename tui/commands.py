"""What `:` and the command palette offer: the app's own commands, and those of the screen that is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from knowledge.errors import nearest_hint
from knowledge.language import LANGUAGES, Text
from tui.messages import Goto

if TYPE_CHECKING:
    from tui.app import GpudiagApp


class Command(NamedTuple):
    """One command. `run` gets what stands behind its name; a GpudiagError that it raises is shown."""

    name: str
    usage: str  # "FILE", "" when it takes nothing; in brackets when it may be left out
    about: Text
    run: Callable[[str], object]
    complete: Callable[[str], Iterable[str]] = lambda _: ()


def available(app: GpudiagApp) -> Sequence[Command]:
    """Every command that would be understood now: the screen's own before the app's."""
    pane = app.workspace.pane
    return (*(pane.commands() if pane is not None else ()), *_of_app(app))


def run(app: GpudiagApp, line: str) -> None:
    """Carry out what was typed behind `:`. UsageError for what is no command, with the nearest ones."""
    name, _, rest = line.strip().partition(" ")
    if not name:
        return
    known = available(app)
    found = [c for c in known if c.name == name] or [c for c in known if c.name.startswith(name)]
    if len({c.name for c in found}) != 1:
        from knowledge.errors import UsageError

        names = [c.name for c in known]
        several = ", ".join(sorted({c.name for c in found}))
        raise UsageError(
            f"there is no command :{name}", hint=several or nearest_hint(name, names) or ":help names them all",
            zh=f"没有命令 :{name}", hint_zh=several or nearest_hint(name, names, lang="zh") or ":help 列出所有命令",
        )  # fmt: skip
    command, rest = found[0], rest.strip()
    if not rest and command.usage and not command.usage.startswith("["):
        from knowledge.errors import UsageError

        raise UsageError(f":{command.name} wants {command.usage}", zh=f":{command.name} 需要 {command.usage}")
    command.run(rest)


def completions(app: GpudiagApp, line: str) -> list[str]:
    """Whole lines that begin with `line`."""
    name, blank, rest = line.partition(" ")
    if not blank:
        return sorted({c.name + (" " if c.usage else "") for c in available(app) if c.name.startswith(name)})
    for command in available(app):
        if command.name == name:
            return [f"{name} {word}" for word in command.complete(rest) if word.startswith(rest)]
    return []


def files(start: str) -> list[str]:
    """Files and folders whose path begins with `start`."""
    folder, _, name = start.rpartition("/")
    try:
        found = sorted(Path(folder or ("/" if start.startswith("/") else ".")).expanduser().iterdir())
    except OSError:
        return []
    lead = f"{folder}/" if folder or start.startswith("/") else ""
    hidden = name.startswith(".")
    return [
        f"{lead}{p.name}{'/' if p.is_dir() else ''}" for p in found
        if p.name.startswith(name) and (hidden or not p.name.startswith("."))
    ]  # fmt: skip


def _of_app(app: GpudiagApp) -> tuple[Command, ...]:
    from tui.screens import screens
    from tui.themes import NAMES

    names = [s.name for s in screens()]
    return (
        Command("go", "SCREEN", Text("show a screen", "切换画面"), app.workspace.go, lambda _: names),
        Command("open", "FILE...", Text("look at a bundle, a log or a captured output instead", "改看录制包、日志或工具输出"),
                app.open_files, files),
        Command("live", "", Text("look at this machine again", "回到本机"), lambda _: app.open_live()),
        Command("host", "NAME", Text("look at another machine, which the inventory names", "查看清单中的另一台机器"), app.open_host,
                lambda _: sorted(app.desk.inventory().reach)),
        Command("look", "", Text("read the machine or the recording now", "立即重新读取"), lambda _: app.desk.look()),
        Command("ask", "QUESTION", Text("ask in the chat", "在对话中提问"), app.ask),
        Command("filter", "[WORDS]", Text("show rows with these words only", "只显示包含这些词的行"), app.workspace.filter),
        Command("sort", "[COLUMN]", Text("sort by a column; again for the other way", "按列排序；再次执行则反序"),
                app.workspace.sort, lambda _: app.workspace.column_names()),
        Command("export", "FILE", Text("write what is shown: .md .html .json .txt, or .svg for a picture",
                                       "导出当前内容：.md .html .json .txt，或 .svg 图片"), app.workspace.export, files),
        Command("theme", "NAME", Text("dark, light or contrast", "主题：dark、light 或 contrast"), app.choose_theme,
                lambda _: NAMES),
        Command("lang", "en|zh", Text("language of the app", "界面语言"), app.choose_language, lambda _: LANGUAGES),
        Command("incident", "[TITLE]", Text("open an incident from what is found; with a title by hand",
                                            "开立事件：根据诊断结果，或给出标题人工开立"),
                lambda title: app.post_message(Goto("incidents", f"open-by-hand {title}" if title.strip() else "open"))),
        Command("new", "", Text("begin a new conversation", "开始新的对话"), lambda _: app.new_talk()),
        Command("help", "", Text("keys and commands", "按键与命令"), lambda _: app.action_help()),
        Command("quit", "", Text("leave", "退出"), lambda _: app.leave()),
    )  # fmt: skip
