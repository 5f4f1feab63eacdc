"""The one screen of the app: the verdict above, the chat on one side, a pane on the other, the keys below.

Where there is no room for both sides, one of them is shown.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType
from textual.screen import Screen

from knowledge.errors import UsageError
from tui.chat import Chat
from tui.screens import screens
from tui.screens._pane import Pane
from tui.widgets.banner import Banner
from tui.widgets.command_line import CommandLine
from tui.widgets.ground import Ground
from tui.widgets.keys import KeyHints
from tui.widgets.replay import ReplayBar
from tui.widgets.tabs import ScreenTabs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from textual.app import ComposeResult
    from textual.widget import Widget

    from tui.app import GpudiagApp
    from tui.desk import Picture
    from tui.messages import MomentChanged
    from tui.player import Player

BOTH = 110  # columns from which chat and pane stand side by side


class Workspace(Screen[None]):
    """Chat and panes."""

    app: GpudiagApp
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(n), f"go_place({n})", show=False) for n in range(1, 10)),
        *(Binding(f"alt+{n}", f"go_place({n})", show=False) for n in range(1, 10)),
        Binding("e", "explain", "Explain"),
        Binding("slash", "find", "Filter", key_display="/"),
        Binding("colon", "command", "Command", key_display=":"),
        Binding("c", "chat", "Chat"),
        Binding("z", "zoom", "Zoom", show=False),
        Binding("y", "copy", "Copy", show=False),
        Binding("r", "look", "Look again", show=False),
        Binding("ctrl+o", "jump", "Node/recording", show=False),
        Binding("tab", "app.focus_next", show=False),
        Binding("space", "play", "Play", show=False),
        Binding("less_than_sign", "mark(-1)", show=False),
        Binding("greater_than_sign", "mark(1)", show=False),
        Binding("left_square_bracket", "step(-1)", show=False),
        Binding("right_square_bracket", "step(1)", show=False),
        Binding("plus", "speed(1)", show=False),
        Binding("minus", "speed(-1)", show=False),
        Binding("question_mark", "app.help", "Help", key_display="?"),
        Binding("escape", "back", "Back"),  # last: it gives way first where there is no room
    ]
    DEFAULT_CSS = """
    Workspace { layout: vertical; background: $background; }
    Workspace #body { height: 1fr; layout: horizontal; }
    Workspace #left { width: 2fr; min-width: 44; }
    Workspace #chat { border-right: solid $rule; }
    Workspace #right { width: 3fr; }
    Workspace.-narrow #left { width: 1fr; min-width: 0; }
    Workspace.-narrow #chat, Workspace.-zoomed #chat { border-right: none; }
    Workspace.-narrow #right { width: 1fr; }
    Workspace.-narrow.-chat #right { display: none; }
    Workspace.-narrow.-pane #left { display: none; }
    Workspace.-zoomed.-chat #right { display: none; }
    Workspace.-zoomed.-pane #left { display: none; }
    """

    def __init__(self, first: str = "chat") -> None:
        super().__init__()
        self._panes: dict[str, Pane] = {}
        self._missed: set[str] = set()  # panes that have not been told of the newest picture
        self._first = first
        self.name_shown = "chat"  # "chat" or the name of a pane: what has the keys
        self.pane_name = ""  # the pane on the right

    def compose(self) -> ComposeResult:
        """The frame; panes are made when they are first shown."""
        yield Banner(id="banner")
        yield ScreenTabs(id="tabs")
        with Ground(id="body"):
            with Ground(id="left"):
                yield Chat(id="chat")
            yield Ground(id="right")
        yield ReplayBar(id="replay")
        yield CommandLine(id="command-line")
        yield KeyHints(id="keys")

    def on_mount(self) -> None:
        """Show what was shown last; beside the chat there is always a pane."""
        self._arrange()
        names = [s.name for s in screens()]
        kept = self.app.kept.get("pane")
        self._show_pane(self._first if self._first in names else kept if kept in names else names[0])
        self.go("chat" if self._first not in names else self._first)

    # --- which side -----------------------------------------------------------------------

    @property
    def chat(self) -> Chat:
        """The conversation."""
        return self.query_one(Chat)

    @property
    def pane(self) -> Pane | None:
        """The pane on the right."""
        return self._panes.get(self.pane_name)

    @property
    def narrow(self) -> bool:
        """Whether there is room for one side only."""
        return (self.size or self.app.size).width < BOTH  # it has none before it is laid out

    def go(self, name: str) -> None:
        """Show "chat" or a pane, and give it the keys. UsageError for an unknown name."""
        name = name.strip()
        names = [s.name for s in screens()]
        if name != "chat":
            if name not in names:
                from knowledge.errors import nearest_hint

                raise UsageError(
                    f"there is no screen {name!r}",
                    hint=nearest_hint(name, names) or f"screens: chat, {', '.join(names)}",
                    zh=f"没有画面 {name!r}",
                    hint_zh=nearest_hint(name, names, lang="zh") or f"画面：chat, {', '.join(names)}",
                )
            self._show_pane(name)
        self.name_shown = name
        self._arrange()
        if name == "chat":
            self.chat.focus_input()
        elif (pane := self.pane) is not None:
            self.call_after_refresh(self._focus, pane)
        self.query_one(ScreenTabs).show(name)

    def _focus(self, pane: Pane, again: int = 20) -> None:
        target: Widget | None = pane.first() or (pane.grid if pane.grid is not None and pane.grid.display else None)
        target = target or next((w for w in pane.query("*") if w.focusable and _seen(w)), None)
        if target is not None and self.name_shown == pane.NAME:
            target.focus()
        elif target is None and again:  # what stands in containers is made a moment later
            self.set_timer(0.02, lambda: self._focus(pane, again - 1))

    def _show_pane(self, name: str) -> None:
        before = self.pane
        if name == self.pane_name:
            return
        self.pane_name = name
        pane = self._panes.get(name)
        if before is not None:
            before.display = False
            before.on_hidden()
        if pane is None:
            pane = self._panes[name] = next(s.make() for s in screens() if s.name == name)
            self.query_one("#right").mount(pane)
            self._missed.add(name)
            self.call_after_refresh(self._made, pane)
            return
        pane.display = True
        self._shown(pane)

    def _made(self, pane: Pane) -> None:
        from tui.memory import section

        if not pane.is_mounted:  # what stands in the pane is made a moment later
            if pane.is_attached:
                self.set_timer(0.02, lambda: self._made(pane))
            return
        pane.restore(section(self.app.kept, f"screen-{pane.NAME}"))
        if self.pane is pane:
            self._shown(pane)

    def _shown(self, pane: Pane) -> None:
        if pane.NAME in self._missed:
            self._missed.discard(pane.NAME)
            pane.picture_changed(self.app.desk.picture)
        pane.on_shown()

    def _arrange(self) -> None:
        chat = self.name_shown == "chat"
        self.update_classes({"-narrow": self.narrow, "-chat": chat, "-pane": not chat})

    def on_resize(self) -> None:
        """Another size: one side or both."""
        self._arrange()

    # --- what the app tells ---------------------------------------------------------------

    def tick(self) -> None:
        """Once a second: what is shown grows older."""
        for part in (*self.query(Banner), *self.query(Chat)):  # none are there any more while the app ends
            part.tick()

    def picture_changed(self, picture: Picture) -> None:
        """A look began, ended or failed."""
        for banner in self.query(Banner):  # none is there any more while the app ends
            banner.show(picture)
        for name, pane in self._panes.items():
            if name == self.pane_name and pane.is_attached:
                pane.picture_changed(picture)
            else:
                self._missed.add(name)

    def language_changed(self) -> None:
        """Every word is to be drawn anew."""
        for widget in self.query("*"):
            widget.refresh(layout=True)
        self.source_changed()
        self.picture_changed(self.app.desk.picture)

    def source_changed(self) -> None:
        """Something else is looked at."""
        self.chat.source_changed()
        for pane in self._panes.values():
            if pane.is_attached:
                pane.source_changed()
        self.query_one(ReplayBar).update()

    def moment_changed(self, message: MomentChanged) -> None:
        """Other readings are to be shown; a pane that is hidden catches up when it is shown."""
        self.query_one(ReplayBar).update()
        if (pane := self.pane) is not None and pane.is_attached and pane.display:
            pane.moment_changed(message.frame, message.moment)

    def show(self, name: str, target: str) -> None:
        """Go to a thing on a screen."""
        self.go(name)
        if target and (pane := self.pane) is not None and name != "chat":
            self.call_after_refresh(pane.show_target, target)

    def kept(self) -> Mapping[str, Any]:
        """What is to be as it was next time."""
        own = {f"screen-{name}": dict(pane.kept()) for name, pane in self._panes.items() if pane.is_attached}
        return {"pane": self.pane_name, "zoomed": self.has_class("-zoomed"), **own}

    # --- keys -----------------------------------------------------------------------------

    def action_go_place(self, place: int) -> None:
        """By its digit."""
        if place == 1:
            self.go("chat")
        elif (spec := next((s for s in screens() if s.place == place), None)) is not None:
            self.go(spec.name)

    def action_explain(self) -> None:
        """Ask about what is under the cursor."""
        if self.pane is not None and self.name_shown != "chat":
            self.pane.explain()

    def action_find(self) -> None:
        """Type a filter."""
        self.query_one(CommandLine).open("/", (self.pane.grid.filtered if self.pane and self.pane.grid else ""))

    def action_command(self) -> None:
        """Type a command."""
        self.query_one(CommandLine).open(":")

    def action_chat(self) -> None:
        """To the conversation."""
        self.go("chat")

    def action_zoom(self) -> None:
        """One side over the whole width, or both."""
        self.toggle_class("-zoomed")

    def action_look(self) -> None:
        """Look again now."""
        self.app.desk.look()

    def action_jump(self) -> None:
        """Between the node and the recording."""
        if not self.app.desk.jump():
            self.app.notify(self.app.t("Nothing else was looked at: :open FILE", "没有可切换的来源：:open 文件"))

    def action_back(self) -> None:
        """Close what is open; else to the other side."""
        line = self.query_one(CommandLine)
        if line.is_open:
            line.close()
            self.refocus()
        elif self.app.desk.talk.cancel():
            return
        elif (
            self.pane is not None
            and self.pane.grid is not None
            and self.pane.grid.filtered
            and self.name_shown != "chat"
        ):
            self.filter("")
        elif self.name_shown == "chat":
            self.go(self.pane_name)
        else:
            self.go("chat")

    # --- the player of a recording --------------------------------------------------------

    def _player(self) -> Player | None:
        """The player; where there is nothing to play it is said why."""
        player = self.app.desk.player
        if player is not None and not player.still:
            return player
        said = self.app.t(
            "There is nothing to play: only a recording with times can be played.",
            "没有可回放的内容：只有带时间的录制可以回放。",
        )
        self.app.notify(said, timeout=3)
        return None

    def action_play(self) -> None:
        """Play, or pause."""
        if (player := self._player()) is not None:
            player.toggle()

    def action_mark(self, which: int) -> None:
        """To the next thing that happened, or the one before."""
        if (player := self._player()) is not None and (mark := player.mark(which)) is not None:
            self.app.clear_notifications()  # of the marks before
            self.app.notify(mark.text, timeout=4, markup=False)

    def action_step(self, which: int) -> None:
        """Some seconds on, or back."""
        if (player := self._player()) is not None:
            from tui.player import STEP

            player.step(which * STEP)

    def action_speed(self, by: int) -> None:
        """Faster, or slower."""
        if (player := self._player()) is not None:
            player.faster(by)

    def refocus(self) -> None:
        """Give the keys back to the side that has them."""
        if self.name_shown == "chat":
            self.chat.focus_input()
        elif self.pane is not None:
            self._focus(self.pane)

    def action_copy(self) -> None:
        """Copy the row, through the terminal (OSC 52: over ssh as well)."""
        text = self.chat.copied() if self.name_shown == "chat" or self.pane is None else self.pane.copied()
        if text:
            self.app.copy_to_clipboard(text)
            self.app.notify(self.app.t(f"Copied: {text[:60]}", f"已复制：{text[:60]}"), timeout=2)

    def filter(self, text: str) -> None:
        """Show rows with these words only."""
        if self.pane is not None:
            self.pane.filter(text)
            self.query_one(KeyHints).update()

    def sort(self, name: str) -> None:
        """Sort the table by a column."""
        grid = self.pane.grid if self.pane is not None else None
        if grid is None:
            raise UsageError("there is no table to sort", zh="此处没有可排序的表格")
        if not name:
            grid.sort_by(None)
            return
        found = [c for c in grid.columns if name.casefold() in (c.key.casefold(), c.title.casefold())]
        if not found:
            from knowledge.errors import nearest_hint

            names = self.column_names()
            listed = ", ".join(names)
            raise UsageError(
                f"there is no column {name!r}", hint=nearest_hint(name, names) or listed,
                zh=f"没有列 {name!r}", hint_zh=nearest_hint(name, names, lang="zh") or listed,
            )  # fmt: skip
        again = grid.order is not None and grid.order[0] == found[0].key
        grid.sort_by(found[0].key, not grid.order[1] if again and grid.order is not None else True)

    def column_names(self) -> list[str]:
        """Columns of the table that is shown."""
        grid = self.pane.grid if self.pane is not None else None
        return [c.key for c in grid.columns] if grid is not None else []

    def export(self, path: str) -> None:
        """Write what is shown to a new file. UsageError when it exists, or cannot be written."""
        target = Path(path).expanduser()
        suffix = target.suffix.lower()
        if target.exists():
            raise UsageError(
                f"{target} exists already", hint="name another file", zh=f"{target} 已存在", hint_zh="请换一个文件名"
            )
        formats = {".md": "markdown", ".html": "html", ".json": "json", ".txt": "text"}
        if suffix == ".svg":
            text = self.app.export_screenshot()
        elif suffix in formats:
            text = self._as(formats[suffix])
        else:
            raise UsageError(
                f"{target.name}: of which kind?", hint="name it .md, .html, .json, .txt or .svg",
                zh=f"{target.name}：哪种格式？", hint_zh="请以 .md、.html、.json、.txt 或 .svg 结尾",
            )  # fmt: skip
        try:
            target.write_text(text, encoding="utf-8")
        except OSError as error:
            why = error.strerror
            raise UsageError(f"{target} cannot be written: {why}", zh=f"无法写入 {target}：{why}") from None
        self.app.notify(self.app.t(f"Written: {target}", f"已写入：{target}"))

    def _as(self, format: str) -> str:
        from assistant.render import sheet as render
        from assistant.render.sheet import Sheet, Table

        output = self.app.desk.settings.output._replace(format=format, color="never", lang=self.app.desk.lang)
        if self.name_shown == "chat" or self.pane is None:
            return self.chat.exported(output)
        sheet = self.pane.exported()
        if sheet is None:
            grid = self.pane.grid
            if grid is None:
                raise UsageError("there is nothing here to export", zh="此处没有可导出的内容")
            title = next(s.title for s in screens() if s.name == self.pane_name).in_(self.app.desk.lang)
            rows = tuple(tuple(c if isinstance(c, str) else c.text for c in row.cells) for row in grid.shown)
            header = tuple(c.title for c in grid.columns)
            sheet = Sheet(title, (Table(header, rows),), {"columns": list(header), "rows": [list(r) for r in rows]})
        return render.show(sheet, output)


def _seen(widget: Widget) -> bool:
    """Whether neither it nor what it stands in is hidden."""
    return all(w.display for w in widget.ancestors_with_self if hasattr(w, "display"))
