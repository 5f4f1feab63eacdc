"""The last line: the keys that hold where one is. One line that is drawn, where Textual's Footer makes widgets anew at
each change of the focus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text as Line
from textual.widget import Widget

from assistant.render.cells import width
from tui.tones import Tone, styles
from tui.widgets.columns import clip

if TYPE_CHECKING:
    from rich.console import RenderableType
    from textual import events
    from textual.screen import Screen

# Bindings carry one word; here it is in the other language. A word that is missing is shown as it is.
WORDS = {
    "Explain": "解释", "Filter": "筛选", "Command": "命令", "Chat": "对话", "Help": "帮助", "Ask": "提问", "Cancel": "取消", "Open": "打开",
    "Fold": "折叠", "What if": "假设", "Why not": "为何不是", "Yes": "是", "No": "否", "Back": "返回", "Zoom": "缩放", "Next": "下一个",
    "Previous": "上一个", "Play": "播放", "Search": "搜索", "Done": "完成", "Begin": "开始", "Open incident": "开立事件", "Skip": "跳过", "Note": "备注", "Compare": "对比", "Close": "关闭",
    "Follow": "跟随", "Cards": "卡片", "Sort": "排序", "Processes": "进程", "Later": "以后再说", "Send": "发送", "Run": "执行",
    "View": "视图", "Next mark": "下一标记", "Marked only": "只看标记", "Next link": "下一链接", "All GPUs": "全部 GPU", "Span": "时段",
}  # fmt: skip
LABELS = {
    "enter": "⏎",
    "escape": "Esc",
    "backspace": "⌫",
    "space": "␣",
    "slash": "/",
    "colon": ":",
    "question_mark": "?",
}
UNNAMED = {"slash": "/", "plus": "+", "minus": "-"}  # keys of which Textual does not know that they are typed


class KeyHints(Widget):
    """Keys and what they do, as many as there is room for; a click does it."""

    DEFAULT_CSS = "KeyHints { height: 1; background: $panel; padding: 0 1; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._places: list[tuple[int, int, str]] = []
        self._said = ""

    def on_mount(self) -> None:
        """Draw again when other keys hold."""
        self.screen.bindings_updated_signal.subscribe(self, self._changed)

    def _changed(self, _: Screen[object]) -> None:
        self.update()

    def update(self) -> None:
        """Other keys may hold, or another filter."""
        if self.is_attached and self._line().plain != self._said:
            self.refresh()

    def _filtered(self) -> str:
        """The filter that is in force: rows that are hidden are not to be forgotten."""
        pane = getattr(self.screen, "pane", None)
        grid = pane.grid if pane is not None and pane.is_mounted else None
        return grid.filtered if grid is not None else ""

    def _line(self) -> Line:
        from tui.app import desk_of

        lang, look = desk_of(self.app).lang, styles(self.app.theme_variables)
        line, self._places = Line(no_wrap=True), []
        seen: set[str] = set()
        focused, filtered = self.screen.focused, self._filtered()
        for key, active in self.screen.active_bindings.items():
            binding = active.binding
            if not binding.show or not active.enabled or not binding.description or binding.action in seen:
                continue
            if focused is not None and key in UNNAMED and focused.check_consume_key(key, UNNAMED[key]):
                continue
            seen.add(binding.action)
            name = binding.key_display or LABELS.get(key, key)
            said = WORDS.get(binding.description, binding.description) if lang == "zh" else binding.description
            if filtered and binding.action == "find":
                said = clip(f"{filtered}  (Esc)", 30)
            if line.cell_len + width(name) + width(said) + 4 > self.size.width:
                break
            begun = line.cell_len
            line.append(name, style=look[Tone.ACCENT])
            line.append(f" {said}   ", style=look[Tone.DIM])
            self._places.append((begun, line.cell_len - 2, key))
        return line

    def render(self) -> RenderableType:
        """The line."""
        line = self._line()
        self._said = line.plain
        return line

    async def on_click(self, event: events.Click) -> None:
        """As if the key had been pressed."""
        where = event.get_content_offset(self)
        key = next((k for begun, ended, k in self._places if where is not None and begun <= where.x < ended), None)
        if key is not None:
            self.app.simulate_key(key)
